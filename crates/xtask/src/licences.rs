//! Licences of crates linked into the plugin: Wireshark's is GPL-2.0-or-later, so each must be
//! compatible with GPL-2.0.
//! Not here: build scripts and procedural macros, which are not linked.

use std::collections::BTreeSet;

use spdx::{Expression, ParseMode};

use anyhow::ensure;

use crate::failure::Outcome;
use crate::{cargo, process};

/// Licences of code that may be part of a GPL-2.0 program, in SPDX notation, separated by bars.
const COMPATIBLE: &str = "0BSD|Apache-2.0 WITH LLVM-exception|BSD-2-Clause|BSD-3-Clause|BSL-1.0|CC0-1.0|GPL-2.0-only|\
    GPL-2.0-or-later|ISC|LGPL-2.0-or-later|LGPL-2.1-only|LGPL-2.1-or-later|MIT|MIT-0|MPL-2.0|Unicode-3.0|\
    Unicode-DFS-2016|Unlicense|Zlib";

/// Checks every crate that is linked into the plugin on Linux, and returns a message with their
/// number.
///
/// # Errors
/// A crate offers no licence that is compatible with GPL-2.0.
pub fn check() -> Outcome<String> {
    // "name v1.2.3|MIT OR Apache-2.0", one crate per line.
    let mut command = cargo::command(&["tree", "--locked", "--package", cargo::PLUGIN_PACKAGE])?;
    command.args(["--edges", "normal,no-proc-macro", "--target"]);
    command.args(["x86_64-unknown-linux-gnu", "--prefix", "none"]);
    let text = process::stdout(command.args(["--no-dedupe", "--format", "{p}|{l}"]))?;
    let (linked, wrong) = examine(&text);
    ensure!(
        wrong.is_empty(),
        "licences incompatible with GPL-2.0:\n  {}\n  what to do: link another crate into the plugin, or move what \
         needs this one into a tool; to see who needs it: cargo tree --invert CRATE",
        wrong.join("\n  ")
    );
    Ok(format!(
        "{linked} crates are linked into the plugin, each with a licence compatible with GPL-2.0"
    ))
}

/// Returns the number of crates, and those with a wrong licence.
fn examine(tree: &str) -> (usize, Vec<&str>) {
    let crates: BTreeSet<&str> = tree.lines().filter(|line| !line.is_empty()).collect();
    let good = |line: &&&str| line.rsplit_once('|').is_some_and(|(_, l)| compatible(l));
    let wrong = crates.iter().filter(|line| !good(line));
    (crates.len(), wrong.copied().collect())
}

/// Returns true if a licence expression has an alternative that is compatible with GPL-2.0.
fn compatible(expression: &str) -> bool {
    // Lax: old crates write "MIT/Apache-2.0".
    Expression::parse_mode(expression, ParseMode::LAX).is_ok_and(|parsed| {
        parsed.evaluate(|requirement| {
            COMPATIBLE
                .split('|')
                .any(|known| known == requirement.to_string())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternatives_count_and_conjunctions_bind() {
        for good in [
            "MIT",
            "MIT OR Apache-2.0",
            "MIT/Apache-2.0",
            "Apache-2.0 WITH LLVM-exception",
            "Zlib OR Apache-2.0 OR MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "GPL-2.0-or-later",
            "Unlicense/MIT",
        ] {
            assert!(compatible(good), "{good}");
        }
        for bad in [
            "Apache-2.0",
            "MIT AND Apache-2.0",
            "GPL-3.0-only",
            "BSD-4-Clause OR OpenSSL",
            "Apache-2.0 WITH Swift-exception",
            "none stated",
            "",
            "MIT OR",
        ] {
            assert!(!compatible(bad), "{bad}");
        }
    }

    #[test]
    fn listed_names_are_valid_spdx() {
        for name in COMPATIBLE.split('|') {
            assert!(compatible(name), "{name}");
        }
    }

    #[test]
    fn every_crate_is_examined_once() {
        let tree = "root v1 (/w)|GPL-2.0-or-later\na v1|MIT\nb v1|MIT/Apache-2.0\na v1|MIT\n\n";
        assert_eq!(examine(tree), (3, Vec::new()));
        let tree = "root v1|MIT\nb v1|Apache-2.0\nc v2|\n";
        assert_eq!(examine(tree), (3, vec!["b v1|Apache-2.0", "c v2|"]));
    }
}
