//! The loop on a real terminal. However it ends, the terminal is as it was.

use super::app::colours;
use super::{App, Effect, Options, Writing};
use crate::tables::Watched;
use crate::text::Words;
use crossterm::cursor::Show;
use crossterm::event::{
    self, DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
    Event,
};
use crossterm::execute;
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use fcn_tool::failure::{Failure, Result};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use std::io::{self, IsTerminal, Stdout, Write};
use std::panic::{self, PanicHookInfo};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The longest that a request to stop waits for a key.
const SLICE: Duration = Duration::from_millis(100);
/// Inputs taken before the next picture, so that a flood of them does not hide it.
const INPUTS: usize = 256;

/// Writes a table somewhere; returns how many lines it had, or what failed, on what, and what to do.
pub type Writer<'w> = dyn Fn(&Writing) -> core::result::Result<u64, String> + 'w;

/// Shows what is `watched` on the terminal until it is left, or `stop` becomes true.
///
/// # Errors
/// Standard output is no terminal, or the terminal cannot be used.
pub fn run(watched: &dyn Watched, options: &Options, words: &Words, stop: &AtomicBool) -> Result {
    run_with(watched, options, words, stop, &|_| {
        Err("tables cannot be written here".to_owned())
    })
}

/// The same, with somebody who writes tables.
///
/// # Errors
/// As [`run`].
pub fn run_with(
    watched: &dyn Watched,
    options: &Options,
    words: &Words,
    stop: &AtomicBool,
    write: &Writer<'_>,
) -> Result {
    if !io::stdout().is_terminal() {
        return Err(Failure::usage("standard output is no terminal")
            .and("the screen needs one; without it use --report, --json, --jsonl or --csv"));
    }
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let ground = std::env::var("COLORFGBG").ok();
    let options = Options {
        colours: colours(options.colours, no_color, ground.as_deref()),
        ..options.clone()
    };
    let mut screen = Screen::enter(options.mouse)?;
    let mut app = App::new(&options, words);
    let done = screen.show(&mut app, watched, &options, stop, write);
    let broken = screen.broken.load(Ordering::Relaxed);
    drop(screen);
    if broken {
        return Err(Failure::failed("a part of the program broke")
            .and("the message above says where; please report it"));
    }
    done
}

fn unusable(error: &io::Error) -> Failure {
    Failure::failed("cannot use the terminal")
        .and(error.to_string())
        .and("without one use --report, --json, --jsonl or --csv")
}

/// Makes the terminal as it was. What fails cannot be helped, and the rest is still done.
fn restore() {
    let mut out = io::stdout();
    let _ = execute!(out, DisableMouseCapture);
    let _ = execute!(out, DisableBracketedPaste);
    let _ = execute!(out, LeaveAlternateScreen);
    let _ = execute!(out, Show);
    let _ = disable_raw_mode();
    let _ = out.flush();
}

type Hook = dyn Fn(&PanicHookInfo<'_>) + Send + Sync + 'static;

/// The terminal while it shows the screen.
struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    /// What told of panics before.
    hook: Arc<Hook>,
    /// Whether a thread has panicked: its message must not be painted over.
    broken: Arc<AtomicBool>,
}

impl Screen {
    fn enter(mouse: bool) -> Result<Self> {
        let broken = Arc::new(AtomicBool::new(false));
        let hook: Arc<Hook> = Arc::from(panic::take_hook());
        let (before, tell) = (Arc::clone(&hook), Arc::clone(&broken));
        panic::set_hook(Box::new(move |info| {
            // The first panic restores the terminal; what another one has to say follows below.
            if !tell.swap(true, Ordering::Relaxed) {
                restore();
            }
            before(info);
        }));
        let started = Self::start(mouse);
        if started.is_err() {
            restore();
            give_back(&hook);
        }
        let terminal = started.map_err(|error| unusable(&error))?;
        Ok(Self {
            terminal,
            hook,
            broken,
        })
    }

    fn start(mouse: bool) -> io::Result<Terminal<CrosstermBackend<Stdout>>> {
        enable_raw_mode()?;
        let mut out = io::stdout();
        execute!(out, EnterAlternateScreen, EnableBracketedPaste)?;
        if mouse {
            execute!(out, EnableMouseCapture)?;
        }
        let mut terminal = Terminal::new(CrosstermBackend::new(out))?;
        terminal.clear()?;
        Ok(terminal)
    }

    fn show(
        &mut self,
        app: &mut App<'_>,
        watched: &dyn Watched,
        options: &Options,
        stop: &AtomicBool,
        write: &Writer<'_>,
    ) -> Result {
        let mut due = Instant::now();
        let mut shown = None;
        let stopped = || stop.load(Ordering::Relaxed);
        let broken = Arc::clone(&self.broken);
        while !stopped() && !broken.load(Ordering::Relaxed) {
            let wanted = app.wanted();
            let now = Instant::now();
            if now >= due || shown != Some(wanted) {
                // What has ended does not change any more.
                let ended = watched.ended();
                if ended.is_none() || shown != Some(wanted) || !app.has_ended() {
                    app.let_go();
                    app.update(watched.tables(wanted));
                }
                app.ended(ended);
                shown = Some(wanted);
                due = now + options.refresh;
            }
            if broken.load(Ordering::Relaxed) {
                break;
            }
            self.terminal
                .draw(|frame| app.draw(frame))
                .map_err(|error| unusable(&error))?;
            while !stopped() && !broken.load(Ordering::Relaxed) {
                let left = due.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                if input(app, left.min(SLICE)).map_err(|error| unusable(&error))? {
                    break;
                }
            }
            for effect in app.effects() {
                match effect {
                    Effect::Quit => return Ok(()),
                    Effect::Redraw => self.terminal.clear().map_err(|error| unusable(&error))?,
                    Effect::Export { row, to } => app.exported(&to, watched.export(row, &to)),
                    Effect::Write(writing) => app.wrote(&writing.to, write(&writing)),
                }
            }
        }
        Ok(())
    }
}

/// Waits for input and takes all that is there; returns whether there was any.
fn input(app: &mut App<'_>, wait: Duration) -> io::Result<bool> {
    if !event::poll(wait)? {
        return Ok(false);
    }
    for _ in 0..INPUTS {
        match event::read()? {
            Event::Key(key) => app.key(key),
            Event::Mouse(mouse) => app.mouse(mouse),
            Event::Paste(text) => app.paste(&text),
            Event::Resize(..) | Event::FocusGained | Event::FocusLost => {}
        }
        if !event::poll(Duration::ZERO)? {
            break;
        }
    }
    Ok(true)
}

/// Has panics told as before the screen.
fn give_back(hook: &Arc<Hook>) {
    // A hook cannot be set while this thread panics; the process is about to end then anyway.
    if !std::thread::panicking() {
        let hook = Arc::clone(hook);
        panic::set_hook(Box::new(move |info| hook(info)));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Where a panic has restored it already, what was said since must not be cleared away.
        if !self.broken.load(Ordering::Relaxed) {
            restore();
        }
        give_back(&self.hook);
    }
}
