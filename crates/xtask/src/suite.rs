//! `cargo xtask test`: every check of the project, and a summary that ends with the counts.
//! Not here: running tests (`runner.rs`), and counting them (`tally.rs`).

use std::io::Write;
use std::process::{Command, ExitCode};

use anyhow::bail;

use crate::failure::{Advice, Outcome};
use crate::packages::{self, Use};
use crate::page::Compiler;
use crate::report::{self, Done, Ink, Took, ink};
use crate::runner::{self, Binary, Built, Options};
use crate::tally::{End, SKIP_MARK, Tally};
use crate::{cargo, deny, licences, matrix, process};

/// Titles of the steps.
const PACKAGES: &str = "System packages and Rust components";
const LICENCES: &str = "Licences of what the plugin links";
const CRATES: &str = "Licences, sources and flaws of crates";
const RUSTFMT: &str = "rustfmt";
const CLIPPY: &str = "clippy";
const BUILD: &str = "Build of the tests";
const TESTS: &str = "Tests";
const EXAMPLES: &str = "Examples in the documentation";
const OTHERS: &str = "Tests with other Wiresharks";

/// Packages that use neither files nor links nor other programs: all their tests are quick.
const WITHOUT_IO: [&str; 3] = ["fcn-node", "fcn-observe", "fcn-wire"];

/// The test of the sample captures.
const GOLDEN: &str = "xtask::golden";

/// Returns true if `--quick` runs it.
fn is_quick(binary: &Binary) -> bool {
    binary.unit || binary.name == GOLDEN || WITHOUT_IO.contains(&binary.package.as_str())
}

/// Runs the checks. The last line printed has the counts.
///
/// # Errors
/// A check could not be started.
pub fn run(options: &Options) -> Outcome<ExitCode> {
    let mut tally = Tally::default();
    let scope = scope(options, &mut tally)?;

    let whole = options.filter.is_empty();
    let every = whole && !options.quick;
    let mut titles = vec![
        (PACKAGES, true),
        (LICENCES, every),
        (CRATES, every),
        (RUSTFMT, whole),
        (CLIPPY, whole),
        (BUILD, true),
        (TESTS, true),
        (EXAMPLES, every),
        (OTHERS, every || !options.wireshark.is_empty()),
    ];
    titles.retain(|(_, wanted)| *wanted);

    let (mut built, mut rounds) = (Built::default(), Vec::new());
    let mut done: Vec<Done> = Vec::new();
    for (index, (title, _)) in titles.iter().copied().enumerate() {
        let cargo = |words: &str, todo: &str| {
            let words = words.replace("SCOPE", &scope.join(" "));
            let words: Vec<&str> = words.split_whitespace().collect();
            process::run(&mut cargo::command(&words)?).advise(todo)?;
            Ok(String::new())
        };
        let work = || match title {
            PACKAGES => system_packages(options),
            LICENCES => licences::check(),
            CRATES => deny::check(options.no_install, &mut tally),
            RUSTFMT => cargo("fmt --all --check", "cargo fmt --all"),
            CLIPPY => cargo(
                "clippy --workspace SCOPE --all-targets -- -D warnings",
                "fix what clippy reports above",
            ),
            BUILD => {
                built = runner::build(&scope)?;
                Ok(format!("{} programs", built.tests.len()))
            }
            TESTS => {
                let chosen = (built.tests.iter()).filter(|b| !options.quick || is_quick(b));
                runner::run(chosen, &options.filter, &built.environment, &mut tally)
            }
            EXAMPLES => cargo(
                "test --workspace SCOPE --doc --quiet",
                "fix the examples above",
            ),
            _ => matrix::run(options, &built, &mut rounds),
        };
        let one = report::step(index + 1, titles.len(), title, work);
        done.push(one);
        if [PACKAGES, BUILD].contains(&title) && !one.good {
            break;
        }
    }
    let others = titles.iter().any(|(title, _)| *title == OTHERS);
    let table = matrix::table(&built.tests, &tally, &rounds).filter(|_| others);
    for round in rounds {
        tally.absorb(&format!("Wireshark {}", round.name), round.tally);
    }
    Ok(conclude(&done, table.as_deref(), &tally))
}

/// Prints the summary and determines the exit status.
fn conclude(done: &[Done], table: Option<&str>, tally: &Tally) -> ExitCode {
    println!("\n{}", ink(Ink::Bold, "Summary"));
    let mut good = true;
    for one in done {
        let word = match one.good {
            true => ink(Ink::Green, "passed"),
            false => ink(Ink::Red, "FAILED"),
        };
        let took = Took(one.took).to_string();
        println!("  {word}  {:<38} {took:>12}", one.title);
        good &= one.good;
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
                let (mark, why) = (ink(Ink::Yellow, SKIP_MARK), why.join("; "));
                println!("{mark} {why}  [{test}]");
            }
        }
    }
    let [passed, failed, _] = tally.counts();
    if passed + failed == 0 {
        println!("{}", ink(Ink::Red, "No test ran."));
        good = false;
    }
    println!("{}", tally.summary());
    // Before cargo reports that this program failed, if it does.
    let _ = std::io::stdout().flush();
    match good && failed == 0 {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Returns the arguments that exclude packages from the workspace for lack of system packages;
/// these are noted as skipped.
fn scope(options: &Options, tally: &mut Tally) -> Outcome<Vec<&'static str>> {
    let mut scope = Vec::new();
    if !options.no_install {
        return Ok(scope);
    }
    let needs = [
        (cargo::PLUGIN_PACKAGE, Use::Build),
        (cargo::REPLAYER, Use::Filter),
        (cargo::MONITOR, Use::Filter),
        (cargo::MANUAL, Use::Filter),
    ];
    for (package, need) in needs {
        let lacking = packages::missing(&[need]);
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
    let others = [Use::Test, Use::Filter, Use::Network, Use::Peer];
    let mut uses = [packages::PLUGIN, &others].concat();
    rust_components(options)?;
    // Its tests report that they are skipped without it.
    if let Err(failure) = Compiler::ready(options.no_install) {
        println!("{SKIP_MARK} fcn.html: {failure:#}");
    }
    if !options.no_install {
        let done = packages::ensure(&uses)
            .advise("or leave out what needs them: cargo xtask test --no-install")?;
        if packages::missing(&[Use::Browser]).is_empty() {
            return Ok(done);
        }
        let browser = packages::ensure(&[Use::Browser])
            .unwrap_or_else(|failure| format!("some tests of pages will be skipped: {failure:#}"));
        return Ok(format!("{done}; {browser}"));
    }
    uses.push(Use::Browser);
    let lacking = packages::missing(&uses);
    if lacking.is_empty() {
        return Ok("nothing missing".to_owned());
    }
    let command = packages::apt_command(&lacking, process::is_root());
    let lacking = packages::describe(&lacking);
    Ok(format!("missing {lacking}; to install: {command}"))
}

/// rustup's minimal profile lacks rustfmt and clippy.
fn rust_components(options: &Options) -> Outcome {
    let mut absent = Vec::new();
    for (subcommand, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        let output = process::output(&mut cargo::command(&[subcommand, "--version"])?)?;
        if !output.status.success() {
            absent.push(component);
        }
    }
    if absent.is_empty() {
        return Ok(());
    }
    let by_hand = format!("rustup component add {}", absent.join(" "));
    if options.no_install || process::which("rustup").is_none() {
        let absent = absent.join(" and ");
        bail!("Rust lacks {absent}\n  what to do: {by_hand}");
    }
    let mut add = Command::new("rustup");
    process::stdout(add.args(["component", "add"]).args(absent)).map(drop)
}
