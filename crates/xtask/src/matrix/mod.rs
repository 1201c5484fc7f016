//! The plugin's tests with the Wiresharks that are not this machine's: those of Debian's releases, each unpacked into a
//! folder, with a plugin built for it from the one source.
//! Not here: the tests, which ask `system.rs` for their Wireshark, and this machine's own, which `suite.rs` runs.

mod release;

use std::path::Path;

use crate::failure::{Failure, Outcome};
use crate::report::{Ink, ink};
use crate::system::{PLUGIN, SYSTEM, System};
use crate::tally::{Group, SKIP_MARK, Tally};
use crate::wireshark::{self, Version};
use crate::{cargo, harness};

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
    /// What is left out of the workspace.
    pub scope: &'a [&'a str],
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
pub fn run(wanted: &Wanted<'_>, rounds: &mut Vec<Round>) -> Outcome<String> {
    if wanted.scope.contains(&cargo::PLUGIN_PACKAGE) {
        return Ok("none, since the plugin is left out".to_owned());
    }
    let here = wireshark::version()?;
    let tests = test_names()?;
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
    if rounds.iter().any(|round| round.tally.failed > 0) {
        return Err(Failure::new(said)
            .todo("see above; one again: cargo xtask test --wireshark VERSION NAME"));
    }
    Ok(said)
}

/// Names of the tests that run tshark with the plugin.
fn test_names() -> Outcome<Vec<String>> {
    let mut names = cargo::integration_tests(cargo::PLUGIN_PACKAGE)?;
    names.extend(OTHER_TESTS.map(str::to_owned));
    Ok(names)
}

fn round(release: &Release, wanted: &Wanted<'_>, tests: &[String]) -> Round {
    let (major, minor) = release.wireshark;
    let mut round = Round {
        name: format!("{major}.{minor}, {}", release.name),
        tally: Tally::default(),
    };
    println!(
        "{}",
        ink(
            Ink::Bold,
            &format!("      Wireshark {major}.{minor} ({})", release.name)
        )
    );
    let (folder, version) = match release.ready(wanted.no_install) {
        Ok(found) => found,
        Err(failure) => {
            let reason = failure.to_string().replace('\n', " ");
            println!("{SKIP_MARK} Wireshark {}: {reason}", round.name);
            round.tally.skip(&round.name, &reason);
            return round;
        }
    };
    round.name = format!("{version}, {}", release.name);
    if let Err(failure) = tested(release, &folder, wanted, tests, &mut round.tally) {
        println!("{}", ink(Ink::Red, &failure.to_string()));
        if round.tally.failed == 0 {
            round.tally.fail(&failure.to_string());
        }
    }
    round
}

fn tested(
    release: &Release,
    folder: &Path,
    wanted: &Wanted<'_>,
    tests: &[String],
    tally: &mut Tally,
) -> Outcome<String> {
    let target = cargo::target_folder(&format!("wireshark/{}/build", release.suite))?;
    let library = cargo::build_plugin_for(folder, &target)?;
    // The whole workspace, as without another Wireshark: fewer packages would mean other features, and building anew.
    let mut command = cargo::command(&["test", "--workspace", "--no-fail-fast"])?;
    command.args(wanted.scope);
    for test in tests {
        command.args(["--test", test]);
    }
    command
        .args(["--", "--show-output"])
        .args(wanted.filters)
        .env(SYSTEM, folder)
        .env(PLUGIN, library);
    harness::run(&mut command, tally)
}

/// The tests with every Wireshark, as a table; `here` has those of this machine.
#[must_use]
pub fn table(here: &Tally, rounds: &[Round]) -> Option<String> {
    let names = test_names().ok()?;
    let version = wireshark::version_on(&System::HERE).ok()?;
    Some(rows(&names, version, here, rounds))
}

fn rows(names: &[String], version: Version, here: &Tally, rounds: &[Round]) -> String {
    let mut lines = vec![
        std::iter::once("With Wireshark")
            .chain(names.iter().map(String::as_str))
            .map(str::to_owned)
            .collect::<Vec<_>>(),
    ];
    let here = (format!("{version}, this machine"), here);
    let others = rounds
        .iter()
        .map(|round| (round.name.clone(), &round.tally));
    for (name, tally) in std::iter::once(here).chain(others) {
        let cells = names.iter().map(|test| cell(&tally.groups, test));
        lines.push(std::iter::once(format!("  {name}")).chain(cells).collect());
    }
    let columns = names.len() + 1;
    let width = |column: usize| {
        let cells = lines
            .iter()
            .map(|line: &Vec<String>| line[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |cells: &Vec<String>| -> String {
        let padded = cells
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, width))| {
                if column == 0 {
                    format!("{cell:<width$}")
                } else {
                    format!("  {cell:>width$}")
                }
            });
        padded.collect::<String>().trim_end().to_owned()
    };
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// "16", "15 (1 failed)", "-" where none of them ran.
fn cell(groups: &[Group], test: &str) -> String {
    let source = format!("tests/{test}.rs");
    let Some(group) = groups.iter().find(|group| group.binary == source) else {
        return "-".to_owned();
    };
    let others = [(group.failed, "failed"), (group.skipped, "skipped")];
    let others: Vec<String> = others
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if others.is_empty() {
        group.passed.to_string()
    } else {
        format!("{} ({})", group.passed, others.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wireshark_has_a_row() {
        let group = |binary: &str, passed, failed, skipped| Group {
            binary: binary.to_owned(),
            passed,
            failed,
            skipped,
        };
        let tally = |groups| {
            let mut tally = Tally::default();
            tally.groups = groups;
            tally
        };
        let here = tally(vec![
            group("tests/decode.rs", 16, 0, 0),
            group("fcn_wire", 9, 0, 0),
            group("tests/stock.rs", 3, 0, 0),
        ]);
        let other = tally(vec![group("tests/decode.rs", 14, 1, 1)]);
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
