//! `cargo xtask test`: every check of the project, and a summary that ends with the counts.
//! Not here: reading what the tests print (`tally.rs`).

use std::io::Write;
use std::process::{Command, ExitCode};

use crate::failure::{Failure, Outcome};
use crate::packages::{self, Use};
use crate::report::{self, Done, Ink, Step, Took, ink};
use crate::tally::{SKIP_MARK, Skip, Tally};
use crate::{cargo, harness, install_plugin, licences, matrix, process};

/// Titles of the steps that count tests.
const TESTS: &str = "Tests";
const OTHERS: &str = "Tests with other Wiresharks";

/// How to run the checks.
#[derive(Debug, Clone)]
pub struct Options {
    /// Install nothing; leave out what cannot be built without.
    pub no_install: bool,
    /// Minor versions of Wireshark to test the plugin with, besides this machine's; where there are none, all that it is
    /// written for, unless only some tests are run.
    pub wireshark: Vec<(u32, u32)>,
    /// Run only tests with one of these in their names, and no other checks.
    pub filters: Vec<String>,
}

/// Runs the checks. The last line printed has the counts.
///
/// # Errors
/// A check could not begin.
pub fn run(options: &Options) -> Outcome<ExitCode> {
    let mut tally = Tally::default();
    let scope = scope(options, &mut tally)?;
    let scope = scope.as_slice();

    let mut packages = || system_packages(options);
    let mut tests = || run_tests(scope, &options.filters, &mut tally);
    let mut licences = licences::check;
    let mut rustfmt = || checked(&["fmt", "--all", "--check"], &[], "cargo fmt --all");
    let mut clippy = || {
        let arguments = [&["clippy", "--workspace"], scope, &["--all-targets"]].concat();
        checked(
            &arguments,
            &["-D", "warnings"],
            "mend what clippy says above",
        )
    };
    let mut rounds = Vec::new();
    let wanted = matrix::Wanted {
        versions: &options.wireshark,
        no_install: options.no_install,
        scope,
        filters: &options.filters,
    };
    let mut others = || matrix::run(&wanted, &mut rounds);
    let mut steps = vec![
        Step {
            title: "System packages and Rust components",
            work: &mut packages,
        },
        Step {
            title: "Licences of what the plugin links",
            work: &mut licences,
        },
        Step {
            title: "rustfmt",
            work: &mut rustfmt,
        },
        Step {
            title: "clippy",
            work: &mut clippy,
        },
        Step {
            title: TESTS,
            work: &mut tests,
        },
        Step {
            title: OTHERS,
            work: &mut others,
        },
    ];
    if !options.filters.is_empty() {
        steps.retain(|s| match s.title {
            OTHERS => !options.wireshark.is_empty(),
            title => title == TESTS || title.starts_with("System"),
        });
    }

    let of = steps.len();
    let mut done: Vec<Done> = Vec::new();
    for (index, step) in steps.iter_mut().enumerate() {
        let one = report::step(index + 1, of, step);
        let hopeless = index == 0 && one.result.is_err();
        done.push(one);
        if hopeless {
            break;
        }
    }
    drop(steps);
    let table = matrix::table(&tally, &rounds);
    for round in rounds {
        tally.absorb(&format!("Wireshark {}", round.name), round.tally);
    }
    Ok(conclude(&done, table.as_deref(), &tally))
}

/// Prints the summary and decides the exit status.
fn conclude(done: &[Done], table: Option<&str>, tally: &Tally) -> ExitCode {
    println!("\n{}", ink(Ink::Bold, "Summary"));
    let mut good = true;
    for one in done {
        let word = if one.result.is_ok() {
            ink(Ink::Green, "passed")
        } else {
            ink(Ink::Red, "FAILED")
        };
        println!(
            "  {word}  {:<38} {:>12}",
            one.title,
            Took(one.took).to_string()
        );
        good &= one.result.is_ok();
    }
    if let Some(table) = table {
        println!("{table}");
    }
    if !tally.failures.is_empty() {
        println!("{}", ink(Ink::Red, "Failed tests"));
        for failure in &tally.failures {
            println!("  {failure}");
        }
    }
    println!("Lines with {SKIP_MARK} {}", tally.skip_lines);
    for Skip { test, reason } in &tally.skips {
        println!("  {} {reason}  [{test}]", ink(Ink::Yellow, "skipped:"));
    }
    if tally.ran() == 0 {
        println!("{}", ink(Ink::Red, "No test ran."));
        good = false;
    }
    println!("{}", tally.summary());
    // Before cargo says that this program failed, where it says so.
    let _ = std::io::stdout().flush();
    if good && tally.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// What is left out of the workspace for want of system packages, which is noted as skipped.
fn scope(options: &Options, tally: &mut Tally) -> Outcome<Vec<&'static str>> {
    let mut scope = Vec::new();
    if !options.no_install {
        return Ok(scope);
    }
    let needs = [
        (cargo::PLUGIN_PACKAGE, install_plugin::needs()?),
        (cargo::REPLAYER, vec![Use::Filter]),
        (cargo::MONITOR, vec![Use::Filter]),
    ];
    for (package, needs) in needs {
        let mut lacking: Vec<_> = packages::missing(&needs);
        lacking.retain(|p| p.used_for != Use::Run);
        if lacking.is_empty() {
            continue;
        }
        let reason = format!("cannot be built without {}", packages::describe(&lacking));
        println!("{SKIP_MARK} {package}: {reason}");
        tally.skip(package, &reason);
        scope.extend(["--exclude", package]);
    }
    Ok(scope)
}

fn system_packages(options: &Options) -> Outcome<String> {
    let uses = [
        install_plugin::needs()?,
        vec![Use::Test, Use::Filter, Use::Network, Use::Peer],
    ]
    .concat();
    let lacking = packages::missing(&uses);
    let packages = if !options.no_install {
        packages::ensure(&uses)
            .map_err(|f| Failure::new(format!("{f}\n  or: cargo xtask test --no-install")))?
    } else if lacking.is_empty() {
        "nothing missing".to_owned()
    } else {
        let command = packages::apt_command(&lacking, process::is_root());
        format!(
            "missing {}; to install: {command}",
            packages::describe(&lacking)
        )
    };
    rust_components(options)?;
    Ok(packages)
}

/// rustup's minimal profile has neither rustfmt nor clippy.
fn rust_components(options: &Options) -> Outcome {
    let mut absent = Vec::new();
    for component in ["fmt", "clippy"] {
        let output = process::output(&mut cargo::command(&[component, "--version"])?)?;
        if !output.status.success() {
            absent.push(if component == "fmt" {
                "rustfmt"
            } else {
                component
            });
        }
    }
    if absent.is_empty() {
        return Ok(());
    }
    let by_hand = format!("rustup component add {}", absent.join(" "));
    if options.no_install || process::which("rustup").is_none() {
        return Err(Failure::new(format!("Rust lacks {}", absent.join(" and "))).todo(by_hand));
    }
    process::stdout(
        Command::new("rustup")
            .args(["component", "add"])
            .args(&absent),
    )
    .map(|_| ())
}

/// Runs cargo, which shows what it finds.
fn checked(arguments: &[&str], behind: &[&str], todo: &str) -> Outcome<String> {
    let mut command = cargo::command(arguments)?;
    if !behind.is_empty() {
        command.arg("--").args(behind);
    }
    let status = command
        .status()
        .map_err(|e| Failure::new(format!("cannot start cargo: {e}")))?;
    if status.success() {
        Ok(String::new())
    } else {
        Err(Failure::new(format!("`{}` failed", process::command_line(&command))).todo(todo))
    }
}

/// Runs the tests, showing what they print as they print it.
fn run_tests(scope: &[&str], filters: &[String], tally: &mut Tally) -> Outcome<String> {
    let mut command = cargo::command(&["test", "--workspace", "--no-fail-fast"])?;
    command
        .args(scope)
        .args(["--", "--show-output"])
        .args(filters);
    harness::run(&mut command, tally)
}
