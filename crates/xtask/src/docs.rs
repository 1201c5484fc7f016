//! `cargo xtask docs`: writes the generated pages, and the output of commands in all pages. Tests
//! compare each of them with the code, and write it on request. Not here: sample captures and their
//! index (`captures/`).

use crate::cargo;
use crate::failure::Outcome;
use crate::process;
use crate::report::heading;

/// Generated parts, and the package and tests that write each.
const WRITERS: [(&str, &str, &[&str]); 6] = [
    (
        "docs/fields.md",
        cargo::PLUGIN_PACKAGE,
        &["--lib", "the_page_about_fields"],
    ),
    (
        "docs/conformance.md",
        cargo::GENERATOR,
        &["--lib", "page_matches_the_list"],
    ),
    (
        "fcn-gen/src/check/matrix",
        cargo::GENERATOR,
        &["--lib", "check::matrix::faults"],
    ),
    (
        "docs/faults.md",
        cargo::GENERATOR,
        &["--lib", "page_matches_the_matrix"],
    ),
    (
        "fcn-top/SCHEMAS.md and schema.json",
        cargo::MONITOR,
        &["--lib", "schemas::"],
    ),
    (
        "output in pages",
        "xtask",
        &["--test", "pages", "commands_of"],
    ),
];

/// Writes all of them.
///
/// # Errors
/// A test cannot be built, or finds an error that writing does not correct.
pub fn run() -> Outcome {
    for (what, package, tests) in WRITERS {
        heading(what);
        let mut command = cargo::command(&["test", "--quiet", "--package", package])?;
        command.args(tests).env("INSTA_UPDATE", "always");
        process::run(&mut command)?;
    }
    println!("git diff shows what changed");
    Ok(())
}
