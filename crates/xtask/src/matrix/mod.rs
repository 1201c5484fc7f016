//! The plugin's tests with the Wiresharks that are not this machine's: those of Debian's releases, each unpacked into a
//! folder, with a plugin built for it from the one source.
//! Not here: the tests, which ask `system.rs` for their Wireshark, and this machine's own, which `suite.rs` runs.

mod release;

use std::path::Path;

use crate::failure::{Failure, Outcome};
use crate::report::{Ink, heading, ink};
use crate::runner::{self, Binary};
use crate::system::{PLUGIN, SYSTEM, System};
use crate::tally::{End, SKIP_MARK, Tally};
use crate::wireshark::{self, Version};
use crate::{cargo, figures};

use release::{RELEASES, Release};

/// Tests of this package that run tshark, besides the plugin's own.
const OTHER_TESTS: [&str; 4] = ["extcap", "golden", "profile", "simulated"];

/// What is to be run.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Minor versions; all that the plugin is written for where there are none.
    pub versions: &'a [(u32, u32)],
    /// Use what was unpacked earlier, and fetch nothing.
    pub no_install: bool,
    /// Only tests with one of these in their names.
    pub filters: &'a [String],
}

/// How the tests went with one Wireshark.
#[derive(Debug)]
pub struct Round {
    /// "4.4.18, Debian 13"
    pub name: String,
    /// The counts.
    pub tally: Tally,
}

/// Runs the tests with each Wireshark wanted that is not this machine's, and says which; the rounds go into `rounds`.
///
/// # Errors
/// A plugin was not built, or a test failed.
pub fn run(wanted: &Wanted<'_>, built: &[Binary], rounds: &mut Vec<Round>) -> Outcome<String> {
    let tests: Vec<&Binary> = built.iter().filter(|binary| runs_tshark(binary)).collect();
    if tests
        .iter()
        .all(|test| test.package != cargo::PLUGIN_PACKAGE)
    {
        return Ok("none, since the plugin is left out, or was not built".to_owned());
    }
    let here = wireshark::version()?;
    for release in &RELEASES {
        let (major, minor) = release.wireshark;
        let asked = wanted.versions.is_empty() || wanted.versions.contains(&release.wireshark);
        if asked && (here.major, here.minor) != (major, minor) {
            rounds.push(round(release, wanted, &tests));
        }
    }
    let said: Vec<String> = rounds
        .iter()
        .map(|round| format!("{}: {}", round.name, round.tally.summary()))
        .collect();
    let said = said.join("\n");
    if rounds.iter().any(|round| round.tally.failed() > 0) {
        return Err(Failure::new(said)
            .todo("see above; one again: cargo xtask test --wireshark VERSION NAME"));
    }
    Ok(said)
}

/// Whether its tests run tshark with the plugin.
fn runs_tshark(binary: &Binary) -> bool {
    let package = binary.package.as_str();
    !binary.unit
        && (package == cargo::PLUGIN_PACKAGE
            || package == "xtask" && OTHER_TESTS.contains(&binary.target.as_str()))
}

fn round(release: &Release, wanted: &Wanted<'_>, tests: &[&Binary]) -> Round {
    let (major, minor) = release.wireshark;
    let mut round = Round {
        name: format!("{major}.{minor}, {}", release.name),
        tally: Tally::default(),
    };
    heading(&format!(
        "      Wireshark {major}.{minor} ({})",
        release.name
    ));
    let (folder, version) = match release.ready(wanted.no_install) {
        Ok(found) => found,
        Err(failure) => {
            let reason = failure.to_string().replace('\n', " ");
            println!("{SKIP_MARK} Wireshark {}: {reason}", round.name);
            round.tally.note(&round.name, End::Skipped(vec![reason]));
            return round;
        }
    };
    round.name = format!("{version}, {}", release.name);
    if let Err(failure) = tested(release, &folder, wanted, tests, &mut round.tally) {
        println!("{}", ink(Ink::Red, &failure.to_string()));
        if round.tally.failed() == 0 {
            round.tally.note(&failure.to_string(), End::Failed);
        }
    }
    round
}

fn tested(
    release: &Release,
    folder: &Path,
    wanted: &Wanted<'_>,
    tests: &[&Binary],
    tally: &mut Tally,
) -> Outcome<String> {
    let target = cargo::target_folder(&format!("wireshark/{}/build", release.suite))?;
    let library = cargo::build_plugin_for(folder, &target)?;
    let environment = [(SYSTEM, folder), (PLUGIN, library.as_path())];
    runner::run(tests.iter().copied(), wanted.filters, &environment, tally)
}

/// The tests with every Wireshark, as a table; `here` has those of this machine.
#[must_use]
pub fn table(built: &[Binary], here: &Tally, rounds: &[Round]) -> Option<String> {
    let tests = built.iter().filter(|binary| runs_tshark(binary));
    let names: Vec<String> = tests.map(|binary| binary.target.clone()).collect();
    let version = wireshark::version_on(&System::HERE).ok()?;
    Some(rows(&names, version, here, rounds))
}

fn rows(names: &[String], version: Version, here: &Tally, rounds: &[Round]) -> String {
    let heading: Vec<&str> = std::iter::once("With Wireshark")
        .chain(names.iter().map(String::as_str))
        .collect();
    let row = |name: &str, tally| {
        let cells = names.iter().map(|test| cell(tally, test));
        std::iter::once(format!("  {name}")).chain(cells).collect()
    };
    let mut all: Vec<Vec<String>> = vec![row(&format!("{version}, this machine"), here)];
    all.extend(rounds.iter().map(|round| row(&round.name, &round.tally)));
    figures::table(&heading, &all)
}

/// "16", "15 (1 failed)", "-" where none of them ran.
fn cell(tally: &Tally, target: &str) -> String {
    let tests = tally.tests.iter().filter(|test| test.target == target);
    let tally = Tally {
        tests: tests.cloned().collect(),
    };
    let others = [(tally.failed(), "failed"), (tally.skipped(), "skipped")];
    let others: Vec<String> = others
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if tally.tests.is_empty() {
        "-".to_owned()
    } else if others.is_empty() {
        tally.passed().to_string()
    } else {
        format!("{} ({})", tally.passed(), others.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wireshark_has_a_row() {
        let tally = |groups: &[(&str, usize, End)]| {
            let mut tally = Tally::default();
            for (target, count, end) in groups {
                for _ in 0..*count {
                    tally.note("", end.clone());
                    tally.tests.last_mut().unwrap().target = (*target).to_owned();
                }
            }
            tally
        };
        let here = tally(&[
            ("decode", 16, End::Passed),
            ("fcn-wire", 9, End::Passed),
            ("stock", 3, End::Passed),
        ]);
        let other = tally(&[
            ("decode", 14, End::Passed),
            ("decode", 1, End::Failed),
            ("decode", 1, End::Skipped(Vec::new())),
        ]);
        let rounds = [Round {
            name: "4.4.18, Debian 13".to_owned(),
            tally: other,
        }];
        let names = ["decode", "stock"].map(str::to_owned);
        let version = Version {
            major: 4,
            minor: 0,
            micro: 17,
        };
        assert_eq!(
            rows(&names, version, &here, &rounds),
            "With Wireshark                            decode  stock\n  \
               4.0.17, this machine                        16      3\n  \
               4.4.18, Debian 13     14 (1 failed, 1 skipped)      -"
        );
    }
}
