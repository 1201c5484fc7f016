//! The console: standard output, standard error, and Ctrl-C.

use crate::clean::clean_lines;
use crate::failure::{Exit, Failure, Result};
use serde::Serialize;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The streams and settings with which the program communicates.
pub struct Console<'a> {
    /// Standard output.
    pub out: &'a mut (dyn Write + Send),
    /// Standard error.
    pub err: &'a mut (dyn Write + Send),
    /// True if standard output is a terminal.
    pub out_is_terminal: bool,
    /// True if standard error is a terminal.
    pub err_is_terminal: bool,
    /// True if colour is wanted on a terminal.
    pub colour: bool,
    /// Catches Ctrl-C from now on; the returned flag becomes true when it is pressed.
    pub catch_interrupt: &'a dyn Fn() -> Result<Arc<AtomicBool>>,
}

/// Runs a program's `main` on the process's own console.
pub fn main_with(
    run: impl FnOnce(&mut dyn Iterator<Item = OsString>, &mut Console<'_>) -> u8,
) -> ExitCode {
    let code = run(
        &mut std::env::args_os(),
        &mut Console {
            out: &mut io::stdout(),
            err: &mut io::stderr(),
            out_is_terminal: io::stdout().is_terminal(),
            err_is_terminal: io::stderr().is_terminal(),
            colour: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
            catch_interrupt: &catch_interrupt,
        },
    );
    ExitCode::from(code)
}

/// Lets the first Ctrl-C (or SIGTERM, SIGHUP) ask the work to stop and clean up; a second one exits
/// immediately.
fn catch_interrupt() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let requested = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if requested.swap(true, Ordering::Relaxed) {
            std::process::exit(Exit::Interrupted.code().into());
        }
    })
    .map_err(|error| Failure::failed("cannot catch Ctrl-C").and(error.to_string()))?;
    Ok(stop)
}

/// Returns the exit code for the result of a program named `name`, and prints a failure.
pub fn conclude(name: &str, done: Result, console: &mut Console<'_>) -> u8 {
    let Err(failure) = done else { return 0 };
    print_failure(name, &failure, console);
    failure.exit().code()
}

fn print_failure(name: &str, failure: &Failure, console: &mut Console<'_>) {
    if failure.is_silent() {
        return;
    }
    // The message may contain text from a file, or a file name.
    let failure = failure.to_string();
    let failure = clean_lines(&failure);
    // If this fails, there is no other way to report it.
    let _ = if console.err_is_terminal && console.colour {
        writeln!(console.err, "\x1b[1;31m{name}:\x1b[0m {failure}")
    } else {
        writeln!(console.err, "{name}: {failure}")
    };
}

/// Prints help and version to standard output; everything else is a failure with the message of the
/// option parser.
///
/// # Errors
/// Neither help nor version was requested, or standard output cannot be written.
pub fn usage(error: &clap::Error, console: &mut Console<'_>) -> Result {
    let text = error.render().to_string();
    if error.use_stderr() {
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        return Err(Failure::usage(text.trim_end()));
    }
    print(console.out, &text)
}

/// Prints a text; a closed pipe is not an error.
///
/// # Errors
/// It cannot be written for another reason.
pub fn print(to: &mut dyn Write, text: &str) -> Result {
    match to.write_all(text.as_bytes()).and_then(|()| to.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::stdout(&error)),
        _ => Ok(()),
    }
}

/// Prints JSON.
///
/// # Errors
/// It cannot be written.
pub fn print_json(to: &mut dyn Write, report: &impl Serialize) -> Result {
    print(to, &format!("{:#}\n", to_json(report)?))
}

/// Converts a report to JSON.
///
/// # Errors
/// It cannot be represented as JSON.
pub fn to_json(report: &impl Serialize) -> Result<serde_json::Value> {
    serde_json::to_value(report)
        .map_err(|error| Failure::failed("cannot write the report as JSON").and(error.to_string()))
}
