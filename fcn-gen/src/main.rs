//! `fcn-gen`: what it talks to, and Ctrl-C. Everything else is in the library.
#![forbid(unsafe_code)]

use fcn_gen::failure::{Exit, Failure, Result};
use fcn_gen::run::{Console, run};
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn main() -> ExitCode {
    let code = run(
        std::env::args_os(),
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

/// The first Ctrl-C asks the work to stop and clear up; a second one does not wait for that.
fn catch_interrupt() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if asked.swap(true, Ordering::Relaxed) {
            std::process::exit(Exit::Interrupted.code().into());
        }
    })
    .map_err(|error| Failure::failed("cannot catch Ctrl-C").and(error.to_string()))?;
    Ok(stop)
}
