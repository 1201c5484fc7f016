//! The licences of what is linked into the plugin: Wireshark's is GPL-2.0-or-later, so each must go with GPL-2.0.
//! Not here: build scripts and procedural macros, which are not linked.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use spdx::{Expression, ParseMode};

use crate::cargo;
use crate::failure::{Failure, Outcome};

/// Licences, as SPDX writes them, whose code may be part of a GPL-2.0 program.
const COMPATIBLE: &[&str] = &[
    "0BSD",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "GPL-2.0-only",
    "GPL-2.0-or-later",
    "ISC",
    "LGPL-2.0-or-later",
    "LGPL-2.1-only",
    "LGPL-2.1-or-later",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
    "Zlib",
];

/// Checks every crate that is linked into the plugin on Linux, and says how many there are.
///
/// # Errors
/// A crate offers no licence that goes with GPL-2.0.
pub fn check() -> Outcome<String> {
    let metadata = cargo::metadata(&["--locked", "--filter-platform", "x86_64-unknown-linux-gnu"])?;
    let (linked, wrong) = examine(&metadata, cargo::PLUGIN_PACKAGE)?;
    if wrong.is_empty() {
        return Ok(format!(
            "{linked} crates are linked into the plugin, each with a licence that goes with GPL-2.0"
        ));
    }
    Err(Failure::new(format!(
        "no licence that goes with GPL-2.0:\n  {}",
        wrong.join("\n  ")
    ))
    .todo("link another crate into the plugin, or move what needs this one into a tool"))
}

/// Whether a licence expression has an alternative that goes with GPL-2.0.
fn compatible(expression: &str) -> bool {
    // Lax: old crates write "MIT/Apache-2.0".
    Expression::parse_mode(expression, ParseMode::LAX).is_ok_and(|parsed| {
        parsed.evaluate(|requirement| COMPATIBLE.contains(&requirement.to_string().as_str()))
    })
}

/// Walks what `root` links; returns the number of crates and a line on each with a wrong licence.
fn examine(metadata: &Value, root: &str) -> Outcome<(usize, Vec<String>)> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let id = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages: HashMap<String, Value> = list(&metadata["packages"])
        .into_iter()
        .map(|p| (id(&p["id"]), p))
        .collect();
    let nodes: HashMap<String, Value> = list(&metadata["resolve"]["nodes"])
        .into_iter()
        .map(|n| (id(&n["id"]), n))
        .collect();
    let start = packages
        .iter()
        .find(|(_, p)| p["name"] == root)
        .map(|(id, _)| id.clone())
        .ok_or_else(|| Failure::new(format!("{root} is not in the workspace")))?;

    let mut wrong = Vec::new();
    let mut seen = HashSet::from([start.clone()]);
    let mut open = vec![(start, String::new())];
    while let Some((package_id, because)) = open.pop() {
        let package = &packages[&package_id];
        let name = format!("{} {}", id(&package["name"]), id(&package["version"]));
        let licence = package["license"].as_str().unwrap_or("none stated");
        if !compatible(licence) {
            wrong.push(format!("{name}: {licence}{because}"));
        }
        for dependency in list(&nodes[&package_id]["deps"]) {
            let target = id(&dependency["pkg"]);
            let normal = list(&dependency["dep_kinds"])
                .iter()
                .any(|kind| kind["kind"].is_null());
            if normal && !is_macro(&packages[&target]) && seen.insert(target.clone()) {
                open.push((target, format!(" (for {name})")));
            }
        }
    }
    wrong.sort();
    Ok((seen.len(), wrong))
}

fn is_macro(package: &Value) -> bool {
    package["targets"].as_array().is_some_and(|targets| {
        targets.iter().any(|t| {
            t["kind"]
                .as_array()
                .is_some_and(|kinds| kinds.iter().any(|k| k == "proc-macro"))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
    fn every_name_in_the_list_is_as_spdx_writes_it() {
        for name in COMPATIBLE {
            assert!(compatible(name), "{name}");
        }
    }

    fn sample(licence_of_b: &str) -> Value {
        let package = |name: &str, licence: &str, kind: &str| json!({"id": name, "name": name, "version": "1.0.0", "license": licence, "targets": [{"kind": [kind]}]});
        let dependency =
            |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        json!({
            "packages": [
                package("root", "GPL-2.0-or-later", "cdylib"),
                package("a", "MIT", "lib"),
                package("b", licence_of_b, "lib"),
                package("build", "Apache-2.0", "lib"),
                package("derive", "Apache-2.0", "proc-macro"),
            ],
            "resolve": {"nodes": [
                {"id": "root", "deps": [
                    dependency("a", Value::Null),
                    dependency("build", json!("build")),
                    dependency("derive", Value::Null),
                ]},
                {"id": "a", "deps": [dependency("b", Value::Null), dependency("build", json!("dev"))]},
                {"id": "b", "deps": [dependency("a", Value::Null)]},
                {"id": "build", "deps": []},
                {"id": "derive", "deps": []},
            ]},
        })
    }

    #[test]
    fn walks_what_is_linked_and_nothing_else() {
        assert_eq!(examine(&sample("MIT"), "root"), Ok((3, Vec::new())));
        let (_, wrong) = examine(&sample("Apache-2.0"), "root").unwrap();
        assert_eq!(wrong, ["b 1.0.0: Apache-2.0 (for a 1.0.0)"]);
        assert!(examine(&sample("MIT"), "absent").is_err());
    }
}
