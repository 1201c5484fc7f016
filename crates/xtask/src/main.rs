//! `cargo xtask`: reads the arguments and reports failure. The commands are in the library.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use xtask::Cli;

fn main() -> ExitCode {
    Cli::parse().run().unwrap_or_else(|failure| {
        eprintln!("{failure:#}");
        ExitCode::FAILURE
    })
}
