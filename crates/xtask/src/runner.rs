//! Builds the workspace's tests and runs each in a process of its own, one more at a time than
//! there are processors. The exit status is the result, and output cannot be mixed up.
//! Not here: the selection of tests (`suite.rs`, `matrix`), and the counts (`tally.rs`).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::bail;
use serde_json::Value;

use crate::failure::Outcome;
use crate::report::{Ink, ink};
use crate::tally::{End, SKIP_FILE, SKIP_MARK, Tally, Test};
use crate::tshark::Tshark;
use crate::wireshark::tested_minor;
use crate::{cargo, process};

/// Options of `cargo xtask test`.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Install nothing; checks that cannot be built or run without are skipped, and listed
    #[arg(long)]
    pub no_install: bool,
    /// Also test the plugin with this Wireshark, from the Debian release that has it; with all
    /// tested ones if none is named
    #[arg(long, value_name = "VERSION", value_parser = tested_minor)]
    pub wireshark: Vec<(u32, u32)>,
    /// Only format, lints, unit and property tests, and sample captures: no tests that send, and no
    /// other Wiresharks
    #[arg(long)]
    pub quick: bool,
    /// Run only tests with one of these in their names, and no other checks
    pub filter: Vec<String>,
}

/// A program with tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binary {
    /// Name: "fcn-gen", or "fcn-gen::cli" with the name of an integration test.
    pub name: String,
    /// Package that it belongs to.
    pub package: String,
    /// True if it contains unit tests.
    pub unit: bool,
    program: PathBuf,
    folder: PathBuf,
}

/// Results of a build.
#[derive(Debug, Default)]
pub struct Built {
    /// Test programs.
    pub tests: Vec<Binary>,
    /// Wireshark plugin.
    pub plugin: Option<PathBuf>,
    /// Environment variables that save tests from determining or building something themselves.
    pub environment: Vec<(&'static str, PathBuf)>,
}

/// Builds the tests of the workspace, with the arguments `scope` that exclude packages.
///
/// # Errors
/// The build failed; cargo has reported the reason on standard error.
pub fn build(scope: &[&str]) -> Outcome<Built> {
    let mut command = cargo::command(&["test", "--workspace", "--no-run", cargo::MESSAGES])?;
    let messages = cargo::messages(command.args(scope))?;
    let mut tests: Vec<Binary> = messages.lines().filter_map(binary).collect();
    tests.sort_by(|one, other| one.name.cmp(&other.name));
    let plugin = cargo::shared_library(&messages).ok();
    // If there is no tshark, or it does not load the plugin, the tests report that.
    let tried = plugin.as_deref().map(|plugin| Tshark::tried(None, plugin));
    let mut environment = tried.and_then(Result::ok).unwrap_or_default();
    let built = cargo::BUILT
        .map(|(tool, variable)| Some((variable, cargo::executable(&messages, tool).ok()?)));
    environment.extend(built.into_iter().flatten());
    Ok(Built {
        tests,
        plugin,
        environment,
    })
}

/// Returns the test program in a message of cargo.
fn binary(message: &str) -> Option<Binary> {
    let message: Value = serde_json::from_str(message).ok()?;
    if message["profile"]["test"] != true {
        return None;
    }
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    let package = message["package_id"].as_str()?;
    // "path+file:///w/crates/wire#fcn-wire@0.1.0", or "…/fcn-gen#0.1.0" if the folder has the
    // package's name.
    let (path, named) = package.split_once('#')?;
    let package = match named.split_once('@') {
        Some((name, _)) => name,
        None => path.rsplit('/').next()?,
    };
    let kinds = message["target"]["kind"].as_array()?;
    let unit = !kinds.iter().any(|kind| kind == "test");
    let target = message["target"]["name"].as_str()?;
    Some(Binary {
        name: match unit {
            true => package.to_owned(),
            false => format!("{package}::{target}"),
        },
        package: package.to_owned(),
        unit,
        program: PathBuf::from(message["executable"].as_str()?),
        folder: folder.to_owned(),
    })
}

impl Binary {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        cargo::without_its_variables(&mut command);
        command
            .args(arguments)
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }

    /// Returns the names of its tests.
    fn list(&self) -> Outcome<Vec<String>> {
        let text = process::stdout(&mut self.command(&["--list", "--format", "terse"]))?;
        let name = |line: &str| line.strip_suffix(": test").map(str::to_owned);
        Ok(text.lines().filter_map(name).collect())
    }

    /// Runs one test, and returns its result and its output.
    fn run(&self, test: &str, skips: &Path, environment: &[(&str, PathBuf)]) -> (End, String) {
        // Ignored tests are run, too: the harness would otherwise report them as passed.
        let mut command = self.command(&["--exact", test, "--include-ignored", "--test-threads=1"]);
        command.env(SKIP_FILE, skips);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        match process::output(&mut command) {
            Ok(output) if output.status.success() => {
                // Only a test that skipped has written it.
                let why = std::fs::read_to_string(skips).unwrap_or_default();
                let _ = std::fs::remove_file(skips);
                let why: Vec<String> = why.lines().map(str::to_owned).collect();
                let passed = why.is_empty().then_some(End::Passed);
                (passed.unwrap_or(End::Skipped(why)), String::new())
            }
            Ok(output) => {
                let printed = [output.stdout, output.stderr].concat();
                let printed = String::from_utf8_lossy(&printed);
                (End::Failed, format!("{printed}({})", output.status))
            }
            Err(failure) => (End::Failed, format!("{failure:#}")),
        }
    }
}

/// Runs the tests of these programs whose names contain one of `filters`, or all; `environment` is
/// added to theirs.
///
/// # Errors
/// A test failed, or a program does not list its tests.
pub fn run<'a>(
    binaries: impl IntoIterator<Item = &'a Binary>,
    filters: &[String],
    environment: &[(&str, PathBuf)],
    tally: &mut Tally,
) -> Outcome<String> {
    let mut listed = Vec::new();
    for binary in binaries {
        listed.push((binary, binary.list()?));
    }
    // Programs with few tests have long ones: these begin, so that none is left over at the end.
    listed.sort_by_key(|(_, tests)| tests.len());
    let open = (listed.into_iter())
        .flat_map(|(binary, tests)| tests.into_iter().map(move |test| (binary, test)));
    let mut open: Vec<_> = open.collect();
    open.retain(|(_, test)| filters.is_empty() || filters.iter().any(|part| test.contains(part)));
    let total = open.len();
    let folder = cargo::target_folder("test-skips")?;
    let shared = Mutex::new(&mut *tally);
    let processors = std::thread::available_parallelism().map_or(2, usize::from);
    process::in_parallel(
        // One more, because tests with links wait more than they compute.
        processors + 1,
        open.into_iter().enumerate(),
        |(index, (binary, name))| {
            let began = Instant::now();
            let skips = folder.join(format!("{}-{index}", std::process::id()));
            let (end, printed) = binary.run(&name, &skips, environment);
            let test = Test {
                binary: binary.name.clone(),
                name,
                took: began.elapsed(),
                end,
            };
            show(&test, index + 1, total, &printed);
            let mut tally = shared.lock().unwrap_or_else(PoisonError::into_inner);
            tally.tests.push(test);
            true
        },
    );
    if tally.failed() > 0 {
        let counts = tally.summary();
        bail!("{counts}\n  what to do: see above; one test again: cargo xtask test NAME");
    }
    Ok(tally.summary())
}

fn show(test: &Test, number: usize, total: usize, printed: &str) {
    let (word, more) = match &test.end {
        End::Passed => (ink(Ink::Green, "ok"), String::new()),
        End::Failed => (ink(Ink::Red, "FAILED"), format!("\n{printed}")),
        End::Skipped(why) => (ink(Ink::Yellow, SKIP_MARK), format!(": {}", why.join("; "))),
    };
    let took = test.took.as_secs_f64();
    println!("[{number:>4}/{total}] {took:>7.2} s  {word} {test}{more}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_with_tests_are_found_among_cargos_messages() {
        let message = |id: &str, target: &str, kind: &str, test: bool| {
            let value = serde_json::json!({"reason": "compiler-artifact", "package_id": id,
                "manifest_path": "/w/crates/wire/Cargo.toml", "target": {"name": target, "kind": [kind]},
                "profile": {"test": test}, "executable": "/t/x-0123"});
            binary(&value.to_string())
        };
        let wire = "path+file:///w/crates/wire#fcn-wire@0.1.0";
        let found = message(wire, "frame", "test", true).unwrap();
        assert_eq!(
            (found.name.as_str(), found.unit),
            ("fcn-wire::frame", false)
        );
        assert_eq!(found.folder, Path::new("/w/crates/wire"));
        let found = message("path+file:///w/fcn-gen#0.1.0", "fcn_gen", "lib", true).unwrap();
        assert_eq!((found.name.as_str(), found.unit), ("fcn-gen", true));
        assert_eq!(message(wire, "fcn_wire", "lib", false), None);
        assert_eq!(binary("no json"), None);
    }
}
