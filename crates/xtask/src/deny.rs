//! Runs cargo-deny: licences, sources and known vulnerabilities of every crate that the workspace
//! is built with, by `deny.toml`.
//! Not here: which of them may be linked into the plugin (`licences.rs`).

use std::process::Command;

use crate::failure::{Advice, Outcome};
use crate::report::{Ink, ink};
use crate::tally::{End, SKIP_MARK, Tally};
use crate::{cargo, process};

/// Version that is installed if there is none; the results depend on it.
const VERSION: &str = "0.20.2";

/// Time limit in seconds: looking up vulnerabilities needs a network.
const PATIENCE: &str = "90";

/// Runs the checks; those that are not possible here are noted as skipped.
///
/// # Errors
/// A crate has a licence, a source or a version that is not allowed.
pub fn check(no_install: bool, tally: &mut Tally) -> Outcome<String> {
    if !is_there()? {
        if no_install {
            skip(tally, "cargo-deny is not installed");
            return Ok("nothing checked".to_owned());
        }
        // Without optimisation it builds in half the time, and it has little to do.
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
            .advise("or leave it out: cargo xtask test --no-install")?;
    }
    // A build downloads the crates of its own platform only; cargo-deny reads those of all.
    process::run(&mut cargo::command(&["fetch", "--quiet", "--locked"])?)?;
    deny(&[
        "--locked",
        "--offline",
        "check",
        "licenses",
        "bans",
        "sources",
    ])
    .advise(
        "deny.toml lists what is allowed; to see who needs a crate: cargo tree --invert CRATE",
    )?;
    let mut fetch = Command::new("timeout");
    fetch.arg(PATIENCE).arg(cargo::program());
    fetch
        .args(["deny", "--locked", "fetch", "db"])
        .current_dir(cargo::root()?);
    if !process::output(&mut fetch)?.status.success() {
        skip(
            tally,
            "known vulnerabilities of crates: the advisory database cannot be fetched",
        );
        return Ok(
            "licences and sources pass deny.toml; known vulnerabilities were not checked"
                .to_owned(),
        );
    }
    deny(&["--locked", "check", "--disable-fetch", "advisories"])
        .advise("cargo update --package CRATE, or another crate")?;
    Ok("licences, sources and advisories pass deny.toml".to_owned())
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
