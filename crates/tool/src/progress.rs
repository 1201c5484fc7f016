//! A bar on standard error for work that takes a while. Nothing is drawn in the first half second,
//! or if standard error is not a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Shorter work needs no bar.
const SHOW_AFTER: Duration = Duration::from_millis(500);

/// A bar that is shown only when needed. It disappears when dropped.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    began: Instant,
    allowed: bool,
    shown: AtomicBool,
}

impl Progress {
    /// Creates a bar for work called `what`, which is shown only if `allowed`.
    #[must_use]
    pub fn new(what: String, allowed: bool) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if let Ok(style) =
            ProgressStyle::with_template("{msg} {wide_bar} {percent:>3} %, {eta} left")
        {
            bar.set_style(style);
        }
        bar.set_message(what);
        Self {
            bar,
            began: Instant::now(),
            allowed,
            shown: AtomicBool::new(false),
        }
    }

    /// Reports progress: `done` of `of`.
    pub fn at(&self, done: u64, of: u64) {
        if !self.allowed {
            return;
        }
        if !self.shown.load(Ordering::Relaxed) {
            if self.began.elapsed() < SHOW_AFTER || self.shown.swap(true, Ordering::Relaxed) {
                return;
            }
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_length(of);
        self.bar.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
