//! The licences of the crates that are linked into programs, which these require to be included
//! when programs are distributed: each text once, with the crates that use it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use crate::failure::Outcome;
use crate::{cargo, process};

/// Beginnings of the names of licence files, in capitals.
const NAMES: [&str; 6] = [
    "LICENSE",
    "LICENCE",
    "COPYING",
    "COPYRIGHT",
    "NOTICE",
    "UNLICENSE",
];

/// Returns all texts, of the crates that these packages link.
pub(super) fn text(root: &Path, packages: &[&str]) -> Outcome<String> {
    let mut tree = cargo::command(&["tree", "--locked", "--edges", "normal,no-proc-macro"])?;
    tree.args(["--prefix", "none", "--no-dedupe", "--format", "{p}"]);
    tree.args(["--target", "x86_64-unknown-linux-gnu"])
        .current_dir(root);
    for package in packages {
        tree.args(["--package", package]);
    }
    let tree = process::stdout(&mut tree)?;
    let linked: BTreeSet<&str> = tree
        .lines()
        .map(|line| line.trim_end_matches(" (*)"))
        .collect();
    let mut metadata = cargo::command(&["metadata", "--locked", "--format-version", "1"])?;
    let metadata: Value = serde_json::from_str(&process::stdout(metadata.current_dir(root))?)?;
    let all = metadata["packages"].as_array().context("no packages")?;
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut without = Vec::new();
    for package in all.iter().filter(|package| !package["source"].is_null()) {
        let field = |name: &str| package[name].as_str().unwrap_or_default();
        if !linked.contains(format!("{} v{}", field("name"), field("version")).as_str()) {
            continue;
        }
        let name = format!(
            "{} {} ({})",
            field("name"),
            field("version"),
            field("license")
        );
        let folder = Path::new(field("manifest_path"))
            .parent()
            .context("no folder")?;
        let found = licences(folder)?;
        if found.is_empty() {
            without.push(name.clone());
        }
        for text in found {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    let mut parts: Vec<String> = texts
        .into_iter()
        .map(|(text, names)| format!("{}\n\n{}\n", names.join("\n"), text.trim_end()))
        .collect();
    parts.sort();
    if !without.is_empty() {
        parts.push(format!(
            "Without a text of their own:\n{}\n",
            without.join("\n")
        ));
    }
    Ok(parts.join(&format!("\n{}\n\n", "-".repeat(78))))
}

/// Returns the texts in a crate's folder.
fn licences(folder: &Path) -> Outcome<Vec<String>> {
    let mut texts = Vec::new();
    for entry in fs_err::read_dir(folder)?.flatten() {
        let name = entry.file_name().to_string_lossy().to_uppercase();
        if NAMES.iter().any(|begin| name.starts_with(begin)) && entry.path().is_file() {
            let octets = fs_err::read(entry.path())?;
            texts.push(String::from_utf8_lossy(&octets).replace("\r\n", "\n"));
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_of_linked_crates_are_included() {
        let text = text(&cargo::root().unwrap(), &["fcn-wire"]).unwrap();
        assert!(
            text.contains("\ncrc32fast ") || text.starts_with("crc32fast "),
            "{text}"
        );
        assert!(text.contains("Permission is hereby granted"));
        // Linked into other programs, and our own crates.
        assert!(!text.contains("\nratatui ") && !text.contains("\nfcn-"));
    }
}
