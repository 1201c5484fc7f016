//! A bar on standard error for work that takes a while. Nothing is drawn in the first half second, nor where standard
//! error is no terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What is over sooner needs no bar.
const PATIENCE: Duration = Duration::from_millis(500);

/// A bar that may come to be shown. It is gone when dropped.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    began: Instant,
    allowed: bool,
    shown: AtomicBool,
}

impl Progress {
    /// A bar for work called `what`, shown only where `allowed`.
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

    /// So much of so much is done.
    pub fn at(&self, done: u64, of: u64) {
        if !self.allowed {
            return;
        }
        if !self.shown.load(Ordering::Relaxed) {
            if self.began.elapsed() < PATIENCE || self.shown.swap(true, Ordering::Relaxed) {
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
