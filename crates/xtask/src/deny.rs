//! cargo-deny: licences, sources and known flaws of every crate that the workspace is built with, by `deny.toml`.
//! Not here: what of them may be linked into the plugin (`licences.rs`).

use std::process::Command;

use crate::failure::{Outcome, Todo};
use crate::report::{Ink, ink};
use crate::tally::{End, SKIP_MARK, Tally};
use crate::{cargo, process};

/// The version that is installed where there is none; its answers change with it.
const VERSION: &str = "0.20.2";

/// Where flaws are looked up takes a network; not for ever.
const PATIENCE: &str = "90";

/// Checks; what cannot be checked here is noted as skipped.
///
/// # Errors
/// A crate is under a licence, from a source or in a version that it must not be.
pub fn check(no_install: bool, tally: &mut Tally) -> Outcome<String> {
    if !is_there()? {
        if no_install {
            skip(tally, "cargo-deny is not installed");
            return Ok("nothing checked".to_owned());
        }
        // Without optimisation it is there in half the time, and has little to do.
        let words = [
            "install",
            "--quiet",
            "--locked",
            "--debug",
            "cargo-deny",
            "--version",
            VERSION,
        ];
        process::run(&mut cargo::command(&words)?)
            .todo("or leave it out: cargo xtask test --no-install")?;
    }
    deny(&[
        "--locked",
        "--offline",
        "check",
        "licenses",
        "bans",
        "sources",
    ])
    .todo("deny.toml says what is allowed; who needs a crate: cargo tree --invert CRATE")?;
    let mut fetch = Command::new("timeout");
    fetch.arg(PATIENCE).arg(cargo::program());
    fetch
        .args(["deny", "--locked", "fetch", "db"])
        .current_dir(cargo::root()?);
    if !process::output(&mut fetch)?.status.success() {
        skip(
            tally,
            "known flaws of crates: the advisory database cannot be fetched from here",
        );
        return Ok(
            "licences and sources are as deny.toml allows; known flaws were not looked up"
                .to_owned(),
        );
    }
    deny(&["--locked", "check", "--disable-fetch", "advisories"])
        .todo("cargo update --package CRATE, or another crate")?;
    Ok("licences, sources and advisories are as deny.toml allows".to_owned())
}

fn skip(tally: &mut Tally, why: &str) {
    println!("{} {why}", ink(Ink::Yellow, SKIP_MARK));
    tally.note("cargo-deny", End::Skipped(vec![why.to_owned()]));
}

fn is_there() -> Outcome<bool> {
    let output = process::output(&mut cargo::command(&["deny", "--version"])?)?;
    Ok(output.status.success())
}

fn deny(words: &[&str]) -> Outcome {
    process::stdout(&mut cargo::command(&[&["deny"], words].concat())?).map(drop)
}
