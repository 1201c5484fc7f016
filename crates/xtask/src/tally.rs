//! Reads what `cargo test -- --show-output` prints, line by line, and counts: passed, failed, skipped and why.
//! Not here: running it (`suite.rs`).
//!
//! A test that cannot run where it is prints `SKIPPED: reason` and returns. The harness calls that passed; here it counts as
//! skipped. With `--show-output` each test's output stands under its name, so the count does not depend on how
//! tests running side by side mix their lines.

use std::collections::BTreeSet;

/// What a test prints, at the beginning of a line, when it cannot run.
pub const SKIP_MARK: &str = "SKIPPED:";

/// A skip and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip {
    /// The test binary, and the test where it is known.
    pub test: String,
    /// What it printed, or why it is marked `ignored`.
    pub reason: String,
}

/// The counts of a test binary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The test binary: its source file, or its crate.
    pub binary: String,
    /// Tests that ran and passed.
    pub passed: usize,
    /// Tests that ran and failed.
    pub failed: usize,
    /// Tests that did not run.
    pub skipped: usize,
}

/// The counts.
#[derive(Debug, Default)]
pub struct Tally {
    /// Tests that ran and passed.
    pub passed: usize,
    /// Tests that ran and failed; also test binaries that ended without a result.
    pub failed: usize,
    /// Tests that did not run: ignored, or having printed [`SKIP_MARK`].
    pub skipped: usize,
    /// Each skip.
    pub skips: Vec<Skip>,
    /// How many lines with [`SKIP_MARK`] were printed.
    pub skip_lines: usize,
    /// Names of what failed.
    pub failures: Vec<String>,
    /// The counts of each test binary.
    pub groups: Vec<Group>,
    binary: String,
    open: Option<Run>,
}

/// A harness that has begun and not yet given its result.
#[derive(Debug)]
struct Run {
    expected: usize,
    passed: usize,
    section: Section,
    test: Option<String>,
    skipped: BTreeSet<String>,
    /// Lines with the mark that no test's name stands over.
    nameless: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Tests,
    Successes,
    Failures,
}

/// What to show of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Show {
    /// The line as it is.
    Line,
    /// Nothing: output of a test that passed.
    Nothing,
    /// This instead.
    Instead(String),
}

impl Tally {
    /// Takes the next line, without its line feed, and tells what to show of it.
    pub fn line(&mut self, line: &str) -> Show {
        let plain = without_colour(line);
        let plain = plain.as_str();
        if let Some(binary) = heading(plain) {
            self.close();
            binary.clone_into(&mut self.binary);
            return Show::Line;
        }
        let Some(run) = &mut self.open else {
            if let Some(expected) = beginning(plain) {
                self.open = Some(Run {
                    expected,
                    passed: 0,
                    section: Section::Tests,
                    test: None,
                    skipped: BTreeSet::new(),
                    nameless: 0,
                });
            } else if let Some(reason) = skip_reason(plain) {
                // From a test program without the usual harness.
                self.skip_lines += 1;
                self.skipped += 1;
                self.skips.push(Skip {
                    test: self.binary.clone(),
                    reason: reason.to_owned(),
                });
            }
            return Show::Line;
        };
        if let Some(counts) = Counts::read(plain).filter(|counts| counts.total() == run.expected) {
            let skipped = run.skipped.len() + run.nameless;
            self.open = None;
            self.group(
                counts.passed.saturating_sub(skipped),
                counts.failed,
                skipped + counts.ignored,
            );
            return Show::Line;
        }
        match plain {
            "successes:" => {
                (run.section, run.test) = (Section::Successes, None);
                return Show::Nothing;
            }
            "failures:" => {
                (run.section, run.test) = (Section::Failures, None);
                return Show::Line;
            }
            _ => {}
        }
        if run.section != Section::Tests
            && let Some(test) = plain
                .strip_prefix("---- ")
                .and_then(|rest| rest.strip_suffix(" stdout ----"))
        {
            run.test = Some(test.to_owned());
            return if run.section == Section::Successes {
                Show::Nothing
            } else {
                Show::Line
            };
        }
        if run.section == Section::Tests
            && let Some((test, result)) = test_line(plain)
        {
            let full = format!("{}: {test}", self.binary);
            if result == "ok" {
                run.passed += 1;
            } else if result.starts_with("FAILED") {
                self.failures.push(full);
            } else if let Some(why) = result.strip_prefix("ignored") {
                let reason = why
                    .strip_prefix(", ")
                    .unwrap_or("marked #[ignore]")
                    .to_owned();
                self.skips.push(Skip { test: full, reason });
            }
        }
        // A test that failed has failed, whatever it had skipped before.
        if run.section != Section::Failures
            && let Some(reason) = skip_reason(plain)
        {
            self.skip_lines += 1;
            let test = match &run.test {
                Some(test) => {
                    run.skipped.insert(test.clone());
                    format!("{}: {test}", self.binary)
                }
                None => {
                    run.nameless += 1;
                    self.binary.clone()
                }
            };
            let shown = format!("{SKIP_MARK} {test}: {reason}");
            self.skips.push(Skip {
                test,
                reason: reason.to_owned(),
            });
            return Show::Instead(shown);
        }
        if run.section == Section::Successes {
            Show::Nothing
        } else {
            Show::Line
        }
    }

    /// No line follows; `ok` tells whether cargo ended well.
    pub fn finish(&mut self, ok: bool) {
        self.close();
        if !ok && self.failed == 0 {
            self.failed = 1;
            self.failures
                .push("cargo test itself (something did not build?)".to_owned());
        }
    }

    /// Something else begins: a harness still open has crashed.
    fn close(&mut self) {
        if let Some(run) = self.open.take() {
            let skipped = run.skipped.len() + run.nameless;
            self.group(run.passed.saturating_sub(skipped), 1, skipped);
            self.failures.push(format!(
                "{}: ended after {} of {} tests without a result (crashed?)",
                self.binary, run.passed, run.expected
            ));
        }
    }

    /// Adds the counts of the present test binary.
    fn group(&mut self, passed: usize, failed: usize, skipped: usize) {
        self.passed += passed;
        self.failed += failed;
        self.skipped += skipped;
        self.groups.push(Group {
            binary: self.binary.clone(),
            passed,
            failed,
            skipped,
        });
    }

    /// Notes that something larger than a test was left out, which has been said in a line with [`SKIP_MARK`].
    pub fn skip(&mut self, what: &str, reason: &str) {
        self.skip_lines += 1;
        self.skipped += 1;
        self.skips.push(Skip {
            test: what.to_owned(),
            reason: reason.to_owned(),
        });
    }

    /// Notes that something larger than a test failed.
    pub fn fail(&mut self, what: &str) {
        self.failed += 1;
        self.failures.push(what.to_owned());
    }

    /// Takes another tally's counts in; `from` tells its tests from those of the same names.
    pub fn absorb(&mut self, from: &str, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.skip_lines += other.skip_lines;
        let named = |name: String| format!("{from}: {name}");
        self.failures.extend(other.failures.into_iter().map(named));
        self.skips.extend(other.skips.into_iter().map(|skip| Skip {
            test: named(skip.test),
            reason: skip.reason,
        }));
    }

    /// How many tests ran.
    #[must_use]
    pub fn ran(&self) -> usize {
        self.passed + self.failed
    }

    /// The last line of `cargo xtask test`.
    #[must_use]
    pub fn summary(&self) -> String {
        format!(
            "{} passed, {} failed, {} skipped",
            self.passed, self.failed, self.skipped
        )
    }
}

/// The name of the test binary that cargo says it runs.
fn heading(line: &str) -> Option<&str> {
    let line = line.strip_prefix("   ")?.trim_start();
    if let Some(rest) = line.strip_prefix("Running ") {
        // "unittests src/lib.rs (target/debug/deps/fcn_wire-0123)": the file names the crate.
        let (source, file) = rest.split_once(" (")?;
        let stem = file.rsplit('/').next()?.trim_end_matches(')');
        return Some(if source.starts_with("unittests") {
            stem.rsplit_once('-').map_or(stem, |(name, _)| name)
        } else {
            source
        });
    }
    line.strip_prefix("Doc-tests ").map(|_| line)
}

/// "running 12 tests"
fn beginning(line: &str) -> Option<usize> {
    let rest = line.strip_prefix("running ")?;
    rest.strip_suffix(" tests")
        .or_else(|| rest.strip_suffix(" test"))?
        .parse()
        .ok()
}

/// "test a::b ... ok"
fn test_line(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("test ")?.split_once(" ... ")
}

fn skip_reason(line: &str) -> Option<&str> {
    // Where a test's output is not captured, its first line stands behind the test's name.
    let line = test_line(line).map_or(line, |(_, rest)| rest);
    line.trim_start().strip_prefix(SKIP_MARK).map(str::trim)
}

/// "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s"
#[derive(Debug, PartialEq, Eq)]
struct Counts {
    passed: usize,
    failed: usize,
    ignored: usize,
    measured: usize,
}

impl Counts {
    fn read(line: &str) -> Option<Self> {
        let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
        let of = |what: &str| {
            counts.split("; ").find_map(|part| {
                part.strip_suffix(what)?
                    .strip_suffix(' ')?
                    .parse::<usize>()
                    .ok()
            })
        };
        Some(Self {
            passed: of("passed")?,
            failed: of("failed")?,
            ignored: of("ignored")?,
            measured: of("measured")?,
        })
    }

    fn total(&self) -> usize {
        self.passed + self.failed + self.ignored + self.measured
    }
}

/// The line without terminal colours.
fn without_colour(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        plain.push_str(before);
        rest = after
            .find(|c: char| c.is_ascii_alphabetic())
            .map_or("", |end| &after[end + 1..]);
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(text: &str, ok: bool) -> (Tally, String) {
        let mut tally = Tally::default();
        let mut shown = String::new();
        for line in text.lines() {
            match tally.line(line) {
                Show::Line => shown += &format!("{line}\n"),
                Show::Instead(other) => shown += &format!("{other}\n"),
                Show::Nothing => {}
            }
        }
        tally.finish(ok);
        (tally, shown)
    }

    const GOOD: &str = "\
   Compiling fcn-wire v0.1.0
     Running unittests src/lib.rs (/t/debug/deps/fcn_wire-0123456789abcdef)

running 4 tests
test a::one ... ok
test a::slow ... ignored, takes an hour
test a::two ... ok
test b::three ... ok

successes:

---- a::one stdout ----
talk
SKIPPED: no tshark here
SKIPPED: nor the other

---- b::three stdout ----
running 1 test
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
not SKIPPED: at the beginning


successes:
    a::one
    a::two
    b::three

test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s

     Running tests/golden.rs (/t/debug/deps/golden-0123456789abcdef)

running 0 tests

test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

   Doc-tests fcn_wire

running 1 test
test crates/wire/src/lib.rs - (line 10) ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.30s
";

    #[test]
    fn counts_passed_and_skipped() {
        let (tally, shown) = tally(GOOD, true);
        assert_eq!(tally.summary(), "3 passed, 0 failed, 2 skipped");
        assert_eq!(tally.skip_lines, 2);
        let groups: Vec<_> = tally
            .groups
            .iter()
            .map(|g| (g.binary.as_str(), g.passed, g.skipped))
            .collect();
        let expected = [
            ("fcn_wire", 2, 2),
            ("tests/golden.rs", 0, 0),
            ("Doc-tests fcn_wire", 1, 0),
        ];
        assert_eq!(groups, expected);
        let skips: Vec<_> = tally
            .skips
            .iter()
            .map(|s| (s.test.as_str(), s.reason.as_str()))
            .collect();
        assert_eq!(
            skips,
            [
                ("fcn_wire: a::slow", "takes an hour"),
                ("fcn_wire: a::one", "no tshark here"),
                ("fcn_wire: a::one", "nor the other"),
            ]
        );
        assert!(!shown.contains("talk") && shown.contains("test a::two ... ok\n"));
        assert!(shown.contains("SKIPPED: fcn_wire: a::one: no tshark here\n"));
    }

    #[test]
    fn tallies_add_up() {
        let (mut one, _) = tally(GOOD, true);
        let (two, _) = tally(GOOD, true);
        one.absorb("again", two);
        one.fail("all of it");
        one.skip("a version", "no network");
        assert_eq!(one.summary(), "6 passed, 1 failed, 5 skipped");
        assert_eq!((one.skip_lines, one.skips.len()), (5, 7));
        assert_eq!(one.skips[3].test, "again: fcn_wire: a::slow");
    }

    #[test]
    fn colours_do_not_hide_results() {
        let text = "\x1b[1m\x1b[32m     Running\x1b[0m unittests src/main.rs (t/x-0f)\n\nrunning 2 tests\n\
                    test a ... \x1b[32mok\x1b[m\ntest b ... \x1b[31mFAILED\x1b[m\n\nfailures:\n\n---- b stdout ----\n\
                    SKIPPED: but then it failed\n\n\nfailures:\n    b\n\ntest result: \x1b[31mFAILED\x1b[m. 1 passed; \
                    1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n";
        let (tally, shown) = tally(text, false);
        assert_eq!(tally.summary(), "1 passed, 1 failed, 0 skipped");
        assert_eq!(tally.failures, ["x: b"]);
        assert!(shown.contains("SKIPPED: but then it failed"));
    }

    #[test]
    fn a_crash_counts_as_a_failure() {
        let text = "     Running unittests src/lib.rs (t/one-0f)\nrunning 3 tests\ntest a ... ok\n\
                    error: test failed, to rerun pass `-p one --lib`\n     Running tests/two.rs (t/two-0f)\n\
                    running 1 test\ntest b ... ok\n\
                    test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
                         Running tests/three.rs (t/three-0f)\nrunning 5 tests\n";
        let (tally, _) = tally(text, false);
        assert_eq!(tally.summary(), "2 passed, 2 failed, 0 skipped");
        assert_eq!(
            tally.failures[0],
            "one: ended after 1 of 3 tests without a result (crashed?)"
        );
    }

    #[test]
    fn uncaptured_skips_count_too() {
        let text = "     Running tests/a.rs (t/a-0f)\nrunning 3 tests\ntest a ... SKIPPED: no root\nok\n\
                    test b ... ok\nSKIPPED: from a child process\ntest c ... ok\n\
                    test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
        let (tally, _) = tally(text, true);
        assert_eq!(tally.summary(), "1 passed, 0 failed, 2 skipped");
        assert_eq!(
            (tally.skips[0].reason.as_str(), tally.skip_lines),
            ("no root", 2)
        );
    }

    #[test]
    fn a_failed_build_is_a_failure_and_nothing_ran_is_seen() {
        let (failed, _) = tally("error: could not compile `x`\n", false);
        assert_eq!(failed.summary(), "0 passed, 1 failed, 0 skipped");
        let (nothing, _) = tally("", true);
        assert_eq!(
            (nothing.ran(), nothing.summary().as_str()),
            (0, "0 passed, 0 failed, 0 skipped")
        );
        let filtered = "running 0 tests\n\n\
                        test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out; finished in 0.00s";
        assert_eq!(tally(filtered, true).0.ran(), 0);
    }

    #[test]
    fn no_line_upsets_it() {
        for line in [
            "\x1b[",
            "\x1b[31",
            "running  tests",
            "running x tests",
            "test result: ok. ",
            "---- ",
            "test  ... ",
        ] {
            let (tally, _) = tally(&format!("running 1 test\n{line}\n{line}"), true);
            assert_eq!(tally.failed, 1, "{line:?}");
        }
    }
}
