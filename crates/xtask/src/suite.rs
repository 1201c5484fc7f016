//! `cargo xtask test`: every check of the project, and a summary that ends with the counts.
//! Not here: running tests (`runner.rs`), and counting them (`tally.rs`).

use std::io::Write;
use std::process::{Command, ExitCode};

use crate::failure::{Failure, Outcome};
use crate::packages::{self, Use};
use crate::report::{self, Done, Ink, Step, Took, ink};
use crate::runner::{self, Binary};
use crate::tally::{End, SKIP_MARK, Tally};
use crate::{cargo, install_plugin, licences, matrix, process};

/// Titles of the steps.
const PACKAGES: &str = "System packages and Rust components";
const LICENCES: &str = "Licences of what the plugin links";
const RUSTFMT: &str = "rustfmt";
const CLIPPY: &str = "clippy";
const BUILD: &str = "Build of the tests";
const TESTS: &str = "Tests";
const EXAMPLES: &str = "Examples in the documentation";
const OTHERS: &str = "Tests with other Wiresharks";

/// How to run the checks.
#[derive(Debug, Clone)]
pub struct Options {
    /// Install nothing; leave out what cannot be built without.
    pub no_install: bool,
    /// Minor versions of Wireshark to test the plugin with, besides this machine's; where there are none, all that it is
    /// written for, unless only some tests are run.
    pub wireshark: Vec<(u32, u32)>,
    /// Leave out licences, examples in the documentation and other Wiresharks, and of the tests those that run programs or
    /// send, but for the sample captures.
    pub quick: bool,
    /// Run only tests with one of these in their names, and no other checks.
    pub filters: Vec<String>,
}

/// Packages that touch neither files nor links nor other programs: all their tests are quick.
const WITHOUT_IO: [&str; 3] = ["fcn-node", "fcn-observe", "fcn-wire"];

/// The test of the sample captures.
const GOLDEN: &str = "xtask::golden";

/// Whether `--quick` runs it.
fn is_quick(binary: &Binary) -> bool {
    binary.unit || binary.name == GOLDEN || WITHOUT_IO.contains(&binary.package.as_str())
}

/// Runs the checks. The last line printed has the counts.
///
/// # Errors
/// A check could not begin.
pub fn run(options: &Options) -> Outcome<ExitCode> {
    let mut tally = Tally::default();
    let scope = scope(options, &mut tally)?;
    let scope = scope.as_slice();

    let whole = options.filters.is_empty();
    let every = whole && !options.quick;
    let titles = [
        (PACKAGES, true),
        (LICENCES, every),
        (RUSTFMT, whole),
        (CLIPPY, whole),
        (BUILD, true),
        (TESTS, true),
        (EXAMPLES, every),
        (OTHERS, every || !options.wireshark.is_empty()),
    ];
    let titles: Vec<&str> = titles
        .into_iter()
        .filter_map(|(title, wanted)| wanted.then_some(title))
        .collect();

    let (mut built, mut rounds) = (Vec::new(), Vec::new());
    let mut done: Vec<Done> = Vec::new();
    for (index, title) in titles.iter().copied().enumerate() {
        let mut work = || match title {
            PACKAGES => system_packages(options),
            LICENCES => licences::check(),
            RUSTFMT => checked(&["fmt", "--all", "--check"], &[], "cargo fmt --all"),
            CLIPPY => {
                let words = [&["clippy", "--workspace"], scope, &["--all-targets"]].concat();
                let todo = "mend what clippy says above";
                checked(&words, &["-D", "warnings"], todo)
            }
            BUILD => {
                built = runner::build(scope)?;
                Ok(format!("{} programs", built.len()))
            }
            TESTS => {
                let chosen = built.iter().filter(|b| !options.quick || is_quick(b));
                runner::run(chosen, &options.filters, &[], &mut tally)
            }
            EXAMPLES => {
                let words = [&["test", "--workspace"], scope, &["--doc", "--quiet"]].concat();
                checked(&words, &[], "mend the examples above")
            }
            _ => {
                let wanted = matrix::Wanted {
                    versions: &options.wireshark,
                    no_install: options.no_install,
                    filters: &options.filters,
                };
                matrix::run(&wanted, &built, &mut rounds)
            }
        };
        let mut step = Step {
            title,
            work: &mut work,
        };
        let one = report::step(index + 1, titles.len(), &mut step);
        let hopeless = [PACKAGES, BUILD].contains(&title) && one.result.is_err();
        done.push(one);
        if hopeless {
            break;
        }
    }
    let table = matrix::table(&built, &tally, &rounds).filter(|_| titles.contains(&OTHERS));
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
    println!("{}", tally.times());
    for test in &tally.tests {
        match &test.end {
            End::Passed => {}
            End::Failed => println!("{} {test}", ink(Ink::Red, "FAILED:")),
            End::Skipped(why) => {
                println!(
                    "{} {}  [{test}]",
                    ink(Ink::Yellow, SKIP_MARK),
                    why.join("; ")
                );
            }
        }
    }
    if tally.passed() + tally.failed() == 0 {
        println!("{}", ink(Ink::Red, "No test ran."));
        good = false;
    }
    println!("{}", tally.summary());
    // Before cargo says that this program failed, where it says so.
    let _ = std::io::stdout().flush();
    if good && tally.failed() == 0 {
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
        tally.note(package, End::Skipped(vec![reason]));
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
