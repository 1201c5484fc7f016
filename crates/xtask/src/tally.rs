//! Results of tests, and the counts: passed, failed, skipped and why.
//! Not here: running them (`runner.rs`).
//!
//! A test that cannot run on this machine calls `fcn_skip::skip`, and returns: this writes the
//! reason into the file named by [`SKIP_FILE`]. The harness counts such a test as passed; here it
//! counts as skipped.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::report::Took;

pub use fcn_skip::{SKIP_FILE, SKIP_MARK};

/// Number of slowest tests listed in the summary.
const SLOWEST: usize = 5;

/// Result of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It ran, and found no error.
    Passed,
    /// It ran, and failed; or it could not be run.
    Failed,
    /// It, or a part of it, did not run, for these reasons.
    Skipped(Vec<String>),
}

/// A test of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// Its program, such as "fcn-gen::cli"; empty for steps larger than a test.
    pub binary: String,
    /// Name of the test.
    pub name: String,
    /// Run time.
    pub took: Duration,
    /// Result.
    pub end: End,
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let space = if self.binary.is_empty() { "" } else { " " };
        write!(f, "{}{space}{}", self.binary, self.name)
    }
}

/// The tests of a run.
#[derive(Debug, Default)]
pub struct Tally {
    /// The tests, in the order in which they ended.
    pub tests: Vec<Test>,
}

impl Tally {
    /// Records that a step larger than a test was left out, or failed.
    pub fn note(&mut self, what: &str, end: End) {
        self.tests.push(Test {
            binary: String::new(),
            name: what.to_owned(),
            took: Duration::ZERO,
            end,
        });
    }

    /// Adds the tests of another tally; `from` distinguishes them from those with the same names.
    pub fn absorb(&mut self, from: &str, other: Self) {
        self.tests.extend(other.tests.into_iter().map(|mut test| {
            test.binary = format!("{from}: {}", test.binary);
            test
        }));
    }

    /// Returns the numbers of passed, failed and skipped tests.
    #[must_use]
    pub fn counts(&self) -> [usize; 3] {
        let count =
            |matches: fn(&End) -> bool| self.tests.iter().filter(|t| matches(&t.end)).count();
        let skipped = |end: &End| matches!(end, End::Skipped(_));
        let [passed, failed] = [|e: &End| *e == End::Passed, |e: &End| *e == End::Failed];
        [count(passed), count(failed), count(skipped)]
    }

    /// Returns the number of failed tests.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.counts()[1]
    }

    /// Returns a text with the total time of each program's tests, and the slowest of all tests.
    #[must_use]
    pub fn times(&self) -> String {
        let mut groups: BTreeMap<&str, (usize, Duration)> = BTreeMap::new();
        for test in self.tests.iter().filter(|test| !test.binary.is_empty()) {
            let (count, took) = groups.entry(&test.binary).or_default();
            *count += 1;
            *took += test.took;
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(_, (_, took))| std::cmp::Reverse(*took));
        let mut text = "Time of each group's tests".to_owned();
        for (name, (count, took)) in groups {
            text += &format!("\n  {:>12}  {name} ({count})", Took(took).to_string());
        }
        let mut slowest: Vec<_> = self.tests.iter().collect();
        slowest.sort_by_key(|test| std::cmp::Reverse(test.took));
        text += "\nSlowest tests";
        for test in slowest.iter().take(SLOWEST) {
            text += &format!("\n  {:>12}  {test}", Took(test.took).to_string());
        }
        text
    }

    /// Returns the last line of `cargo xtask test`.
    #[must_use]
    pub fn summary(&self) -> String {
        let [passed, failed, skipped] = self.counts();
        format!("{passed} passed, {failed} failed, {skipped} skipped")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_times() {
        let mut tally = Tally::default();
        for (name, seconds, end) in [
            ("a", 1, End::Passed),
            ("b", 3, End::Failed),
            ("c", 0, End::Skipped(vec!["no tshark".to_owned()])),
        ] {
            tally.tests.push(Test {
                binary: "fcn-gen::cli".to_owned(),
                name: name.to_owned(),
                took: Duration::from_secs(seconds),
                end,
            });
        }
        let mut all = Tally::default();
        all.note("fcn-top", End::Skipped(vec!["no libpcap".to_owned()]));
        all.absorb("Wireshark 4.4", tally);
        assert_eq!(all.summary(), "1 passed, 1 failed, 2 skipped");
        let times = all.times();
        assert!(
            times.contains("4.0 s  Wireshark 4.4: fcn-gen::cli (3)"),
            "{times}"
        );
        assert!(
            times.contains("tests\n         3.0 s  Wireshark 4.4: fcn-gen::cli b\n"),
            "{times}"
        );
    }
}
