//! Runs `cargo test`, shows what the tests print as they print it, and counts.
//! Not here: reading what they print (`tally.rs`), and what is run (`suite.rs`, `matrix`).

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::failure::{Failure, Outcome};
use crate::process;
use crate::report::{self, Ink, ink};
use crate::tally::{Show, Tally};

/// Runs a `cargo test` that ends with `--show-output` and names of tests.
///
/// # Errors
/// A test failed, or none could be run.
pub fn run(command: &mut Command, tally: &mut Tally) -> Outcome<String> {
    if report::colour() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    // One pipe for both streams: cargo's headings and the tests' results keep their order.
    let no_pipe = |error| Failure::new(format!("cannot make a pipe: {error}"));
    let (reader, writer) = std::io::pipe().map_err(no_pipe)?;
    command
        .stdout(writer.try_clone().map_err(no_pipe)?)
        .stderr(writer);
    let line = process::command_line(command);
    let mut child = command
        .spawn()
        .map_err(|e| Failure::new(format!("cannot start `{line}`: {e}")))?;
    // They hold the pipe's writing end, which would keep the reader waiting.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    for bytes in BufReader::new(reader).split(b'\n') {
        let bytes = bytes.map_err(|e| Failure::new(format!("cannot read from `{line}`: {e}")))?;
        let text = String::from_utf8_lossy(&bytes);
        match tally.line(text.trim_end_matches('\r')) {
            Show::Line => println!("{text}"),
            Show::Instead(other) => println!("{}", ink(Ink::Yellow, &other)),
            Show::Nothing => {}
        }
    }
    let status = child
        .wait()
        .map_err(|e| Failure::new(format!("cannot wait for `{line}`: {e}")))?;
    tally.finish(status.success());
    if tally.failed == 0 && status.success() {
        return Ok(tally.summary());
    }
    Err(
        Failure::new(format!("`{line}` failed: {}", tally.summary()))
            .todo("see the tests' output above; one test again: cargo xtask test NAME"),
    )
}
