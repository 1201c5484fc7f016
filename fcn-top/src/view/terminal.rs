//! The loop on a real terminal. The terminal is restored however the loop ends.

use super::{App, Colours, Effect, Options, picture};
use crate::new_file;
use crate::tables::TableSource;
use crate::text::Formatter;
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
use nix::sys::signal::{Signal, raise};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{CompletedFrame, Terminal, TerminalOptions, Viewport};
use rustix::time::{ClockId, clock_gettime};
use std::io::{self, IsTerminal, Stdout, Write};
use std::mem::ManuallyDrop;
use std::panic::{self, PanicHookInfo};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum wait for a key before a request to stop is noticed.
const SLICE: Duration = Duration::from_millis(100);
/// Maximum number of inputs processed before the next picture, so that a flood of them does not
/// hide it.
const INPUTS: usize = 256;
/// Minimum wait for the next picture, as a multiple of the processor time of the last one: packets
/// take precedence over pictures.
const PACE: u32 = 10;

/// Maximum number of columns and lines drawn: a terminal may claim any size.
const MAX_SIZE: (u16, u16) = (1_000, 500);

/// Shows `source` on the terminal until the user quits, or `stop` becomes true.
///
/// # Errors
///
/// Standard output is not a terminal, or the terminal cannot be used.
pub fn run(
    source: &dyn TableSource,
    options: &Options,
    formatter: &Formatter,
    stop: &AtomicBool,
) -> Result {
    if !io::stdout().is_terminal() {
        return Err(Failure::usage("standard output is not a terminal")
            .and("the screen needs one; without it use --report, --json, --jsonl or --csv"));
    }
    if std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
        return Err(
            Failure::usage("the terminal cannot move the cursor (TERM=dumb)")
                .and("the screen needs that; without it use --report, --json, --jsonl or --csv"),
        );
    }
    let options = options.with_environment(|name| std::env::var(name).ok());
    let mut screen = Screen::enter().map_err(|error| unusable(&error))?;
    let mut app = App::new(&options, formatter);
    let done = screen.show(&mut app, source, &options, stop);
    let broken = screen.broken.load(Ordering::Relaxed);
    drop(screen);
    if broken {
        return Err(
            Failure::failed("internal error").and("see the message above; please report it")
        );
    }
    done.map_err(|error| unusable(&error))
}

fn unusable(error: &io::Error) -> Failure {
    Failure::failed("cannot use the terminal")
        .and(error.to_string())
        .and("use --report, --json, --jsonl or --csv without one")
}

/// Switches the terminal to the screen.
fn take() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(
        io::stdout(),
        EnterAlternateScreen,
        EnableBracketedPaste,
        EnableMouseCapture
    )
}

/// Restores the terminal. Errors are ignored, and the remaining steps are still done.
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
    /// Never dropped: its destructor only shows the cursor, and panics if the terminal and with it
    /// standard error are gone.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
    /// The previous panic hook.
    hook: Arc<Hook>,
    /// True if a thread has panicked: its message must not be painted over.
    broken: Arc<AtomicBool>,
}

impl Screen {
    fn enter() -> io::Result<Self> {
        let broken = Arc::new(AtomicBool::new(false));
        let hook: Arc<Hook> = Arc::from(panic::take_hook());
        let (before, tell) = (Arc::clone(&hook), Arc::clone(&broken));
        panic::set_hook(Box::new(move |info| {
            // The first panic restores the terminal; messages of further ones follow below.
            if !tell.swap(true, Ordering::Relaxed) {
                restore();
            }
            before(info);
        }));
        match Self::start() {
            Ok(terminal) => Ok(Self {
                terminal: ManuallyDrop::new(terminal),
                hook,
                broken,
            }),
            Err(error) => {
                restore();
                give_back(&hook);
                Err(error)
            }
        }
    }

    fn start() -> io::Result<Terminal<CrosstermBackend<Stdout>>> {
        take()?;
        let viewport = Viewport::Fixed(Rect::ZERO);
        let backend = CrosstermBackend::new(io::stdout());
        let mut terminal = Terminal::with_options(backend, TerminalOptions { viewport })?;
        clear(&mut terminal)?;
        Ok(terminal)
    }

    /// Stops the program as Ctrl-Z does, with the terminal restored; returns when it continues.
    fn suspend(&mut self) -> io::Result<()> {
        restore();
        raise(Signal::SIGTSTP)?;
        take()?;
        clear(&mut self.terminal)
    }

    /// Draws the screen at the current size of the terminal.
    fn draw(&mut self, app: &mut App<'_>) -> io::Result<CompletedFrame<'_>> {
        let area = area(&self.terminal)?;
        if self.terminal.get_frame().area() != area {
            self.terminal.resize(area)?;
        }
        self.terminal.draw(|frame| app.draw(frame))
    }

    /// Writes a picture of the screen.
    fn picture(
        &mut self,
        app: &mut App<'_>,
        colours: Colours,
        to: &Path,
    ) -> core::result::Result<u64, String> {
        let drawn = self.draw(app).map_err(|error| error.to_string())?;
        picture::write(drawn.buffer, colours, to)
    }

    fn show(
        &mut self,
        app: &mut App<'_>,
        source: &dyn TableSource,
        options: &Options,
        stop: &AtomicBool,
    ) -> io::Result<()> {
        let inputs = Inputs::begin()?;
        let mut due = Instant::now();
        let mut shown = None;
        let stopped = || stop.load(Ordering::Relaxed);
        let broken = Arc::clone(&self.broken);
        while !stopped() && !broken.load(Ordering::Relaxed) {
            let wanted = app.wanted();
            let (began, worked) = (Instant::now(), processor_time());
            let renews = began >= due || shown != Some(wanted);
            if renews {
                // After the end of input nothing changes.
                let ended = source.ended();
                if ended.is_none() || shown != Some(wanted) || !app.has_ended() {
                    app.drop_rows();
                    app.update(source.tables(wanted));
                }
                app.ended(ended);
                shown = Some(wanted);
                app.detail(source.details(&app.wanted_details()));
            }
            if broken.load(Ordering::Relaxed) {
                break;
            }
            self.draw(app)?;
            if renews {
                due = began
                    + options
                        .refresh
                        .max(processor_time().saturating_sub(worked) * PACE);
            }
            while !stopped() && !broken.load(Ordering::Relaxed) {
                let left = due.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                if inputs.take(app, left.min(SLICE))? {
                    break;
                }
            }
            for effect in app.effects() {
                match effect {
                    Effect::Quit => return Ok(()),
                    Effect::Redraw => clear(&mut self.terminal)?,
                    Effect::Suspend => self.suspend()?,
                    Effect::Picture(to) => {
                        let done = self.picture(app, options.colours, &to);
                        app.wrote(&to, done);
                    }
                    Effect::Export { row, to } => app.exported(&to, source.export(row, &to)),
                    Effect::Write { text, to } => {
                        let written = new_file::write(&to, &text.octets);
                        app.wrote(&to, written.map(|()| text.lines));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns the processor time of this thread: waiting for packets does not count.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Clears the terminal, so that everything is drawn again. [`Terminal::clear`] would query the
/// cursor position, and fail: another thread reads the answer, or it never comes.
fn clear(terminal: &mut Terminal<CrosstermBackend<Stdout>>) -> io::Result<()> {
    let area = area(terminal)?;
    terminal.resize(area)
}

/// Returns the part of the terminal that is drawn on.
fn area(terminal: &Terminal<CrosstermBackend<Stdout>>) -> io::Result<Rect> {
    let size = terminal.size()?;
    let (columns, lines) = MAX_SIZE;
    Ok(Rect::new(
        0,
        0,
        size.width.min(columns),
        size.height.min(lines),
    ))
}

/// Input from the terminal, read by a separate thread: if the terminal is gone, reading never
/// returns, and a thread waiting for it would miss the request to stop that comes with that.
struct Inputs(Receiver<io::Result<Event>>);

impl Inputs {
    /// Starts to read. The thread ends with the process.
    fn begin() -> io::Result<Self> {
        let (sender, events) = mpsc::sync_channel(INPUTS);
        thread::Builder::new()
            .name("keys".to_owned())
            .spawn(move || {
                loop {
                    let read = event::read();
                    let failed = read.is_err();
                    if sender.send(read).is_err() || failed {
                        return;
                    }
                }
            })?;
        Ok(Self(events))
    }

    /// Waits for input and processes all that is available; returns true if there was any.
    fn take(&self, app: &mut App<'_>, wait: Duration) -> io::Result<bool> {
        let mut next = match self.0.recv_timeout(wait) {
            Ok(first) => first,
            Err(RecvTimeoutError::Timeout) => return Ok(false),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(io::Error::other("it can no longer be read"));
            }
        };
        for _ in 0..INPUTS {
            match next? {
                Event::Key(key) => app.key(key),
                Event::Mouse(mouse) => app.mouse(mouse),
                Event::Paste(text) => app.paste(&text),
                Event::Resize(..) | Event::FocusGained | Event::FocusLost => {}
            }
            next = match self.0.try_recv() {
                Ok(next) => next,
                Err(_) => break,
            };
        }
        Ok(true)
    }
}

/// Restores the previous panic hook.
fn give_back(hook: &Arc<Hook>) {
    // A hook cannot be set while this thread panics; the process is about to end anyway.
    if !thread::panicking() {
        let hook = Arc::clone(hook);
        panic::set_hook(Box::new(move |info| hook(info)));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // If a panic has already restored it, later messages must not be cleared.
        if !self.broken.load(Ordering::Relaxed) {
            restore();
        }
        // A picture drawn in the meantime may have hidden the cursor.
        let _ = execute!(io::stdout(), Show);
        give_back(&self.hook);
    }
}
