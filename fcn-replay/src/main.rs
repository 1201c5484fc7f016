//! `fcn-replay`: the implementation is in the library.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    fcn_tool::console::main_with(|args, console| fcn_replay::run::run(args, console))
}
