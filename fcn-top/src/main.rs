//! `fcn-top`: a thin wrapper around the library.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    fcn_tool::console::main_with(|args, console| fcn_top::run::run(args, console))
}
