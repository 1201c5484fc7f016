//! Runs the plugin's tests with other Wiresharks than this machine's: those of Debian's releases,
//! each unpacked into a folder, with a plugin built for it from the same source.
//! Not here: the tests, which get their Wireshark from `system.rs`, and this machine's own, which
//! `suite.rs` runs.

pub(crate) mod release;

use std::path::Path;

use anyhow::bail;

use crate::failure::Outcome;
use crate::report::{Ink, heading, ink};
use crate::runner::{self, Binary, Built, Options};
use crate::system::System;
use crate::tally::{End, SKIP_MARK, Tally};
use crate::tshark::Tshark;
use crate::wireshark::{self, Version};
use crate::{cargo, figures};

use release::{RELEASES, Release};

/// Tests of this package that run tshark, besides the plugin's own.
const OTHER_TESTS: [&str; 4] = [
    "xtask::extcap",
    "xtask::golden",
    "xtask::profile",
    "xtask::simulated",
];

/// Results of the tests with one Wireshark.
#[derive(Debug)]
pub struct Round {
    /// Name, such as "4.4.18, Debian 13".
    pub name: String,
    /// The counts.
    pub tally: Tally,
}

/// Runs the tests with each requested Wireshark other than this machine's, and returns a summary;
/// the rounds are added to `rounds`.
///
/// # Errors
/// A plugin was not built, or a test failed.
pub fn run(options: &Options, built: &Built, rounds: &mut Vec<Round>) -> Outcome<String> {
    if built.plugin.is_none() {
        return Ok("none: the plugin is left out or was not built".to_owned());
    }
    let here = wireshark::version(&System::HERE)?;
    for release in &RELEASES {
        let minor = release.wireshark;
        let wanted = options.wireshark.is_empty() || options.wireshark.contains(&minor);
        if wanted && here.minor() != minor {
            rounds.push(round(release, options, built));
        }
    }
    let counts = |round: &Round| format!("{}: {}", round.name, round.tally.summary());
    let counts: Vec<String> = rounds.iter().map(counts).collect();
    let counts = counts.join("\n");
    if rounds.iter().any(|round| round.tally.failed() > 0) {
        bail!(
            "{counts}\n  what to do: see above; one again: cargo xtask test --wireshark VERSION NAME"
        );
    }
    Ok(counts)
}

/// Returns true if its tests run tshark with the plugin.
fn runs_tshark(binary: &Binary) -> bool {
    let of_plugin = !binary.unit && binary.package == cargo::PLUGIN_PACKAGE;
    of_plugin || OTHER_TESTS.contains(&binary.name.as_str())
}

fn round(release: &Release, options: &Options, built: &Built) -> Round {
    let (major, minor) = release.wireshark;
    let mut round = Round {
        name: format!("{major}.{minor}, {}", release.name),
        tally: Tally::default(),
    };
    heading(&format!("      Wireshark {}", round.name));
    let (folder, version) = match release.ready(options.no_install) {
        Ok(found) => found,
        Err(failure) => {
            let reason = format!("{failure:#}").replace('\n', " ");
            println!("{SKIP_MARK} Wireshark {}: {reason}", round.name);
            round.tally.note(&round.name, End::Skipped(vec![reason]));
            return round;
        }
    };
    round.name = format!("{version}, {}", release.name);
    if let Err(failure) = tested(release, &folder, options, built, &mut round.tally) {
        let failure = format!("{failure:#}");
        println!("{}", ink(Ink::Red, &failure));
        if round.tally.failed() == 0 {
            round.tally.note(&failure, End::Failed);
        }
    }
    round
}

fn tested(
    release: &Release,
    folder: &Path,
    options: &Options,
    built: &Built,
    tally: &mut Tally,
) -> Outcome<String> {
    let target = cargo::target_folder(&format!("wireshark/{}/build", release.suite))?;
    let library = cargo::build_plugin_for(folder, &target, |_| Ok(()))?;
    let tried = Tshark::tried(Some(folder), &library)?;
    // After the variables for this machine, so that these override them.
    let environment = [built.environment.clone(), tried].concat();
    let tests = built.tests.iter().filter(|binary| runs_tshark(binary));
    runner::run(tests, &options.filter, &environment, tally)
}

/// Returns a table of the tests with every Wireshark; `here` has the results with this machine's.
#[must_use]
pub fn table(built: &[Binary], here: &Tally, rounds: &[Round]) -> Option<String> {
    let tests = built.iter().filter(|binary| runs_tshark(binary));
    let names: Vec<&str> = tests.map(|binary| binary.name.as_str()).collect();
    let version = wireshark::version(&System::HERE).ok()?;
    Some(rows(&names, version, here, rounds))
}

fn rows(names: &[&str], version: Version, here: &Tally, rounds: &[Round]) -> String {
    let targets = names
        .iter()
        .map(|name| name.rsplit("::").next().unwrap_or(name));
    let heading: Vec<&str> = std::iter::once("With Wireshark").chain(targets).collect();
    let here = (format!("{version}, this machine"), here);
    let rounds = rounds
        .iter()
        .map(|round| (round.name.clone(), &round.tally));
    let row = |(name, tally): (String, &Tally)| {
        let cells = names.iter().map(|test| cell(tally, test));
        std::iter::once(format!("  {name}")).chain(cells).collect()
    };
    let all: Vec<Vec<String>> = std::iter::once(here).chain(rounds).map(row).collect();
    figures::table(&heading, &all)
}

/// Formats a cell: "16", "15 (1 failed)", or "-" if no test ran.
fn cell(tally: &Tally, binary: &str) -> String {
    let tests = tally.tests.iter().filter(|test| test.binary == binary);
    let tests: Vec<_> = tests.cloned().collect();
    if tests.is_empty() {
        return "-".to_owned();
    }
    let [passed, failed, skipped] = Tally { tests }.counts();
    let others = [(failed, "failed"), (skipped, "skipped")];
    let others = others.iter().filter(|(count, _)| *count > 0);
    let others: Vec<String> = others.map(|(n, what)| format!("{n} {what}")).collect();
    match others.is_empty() {
        true => passed.to_string(),
        false => format!("{passed} ({})", others.join(", ")),
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
                    tally.tests.last_mut().unwrap().binary = (*target).to_owned();
                }
            }
            tally
        };
        let here = tally(&[
            ("fcn-dissector::decode", 16, End::Passed),
            ("fcn-wire", 9, End::Passed),
            ("fcn-dissector::stock", 3, End::Passed),
        ]);
        let other = tally(&[
            ("fcn-dissector::decode", 14, End::Passed),
            ("fcn-dissector::decode", 1, End::Failed),
            ("fcn-dissector::decode", 1, End::Skipped(Vec::new())),
        ]);
        let rounds = [Round {
            name: "4.4.18, Debian 13".to_owned(),
            tally: other,
        }];
        let names = ["fcn-dissector::decode", "fcn-dissector::stock"];
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
