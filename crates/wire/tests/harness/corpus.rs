//! Runs a crate's committed corpus, and checks that targets, corpus and entry points match. For the
//! `corpus.rs` of every crate with fuzz targets, which provides `targets` and the limits: a corpus
//! is committed and read by every test run.

use super::{LARGEST, MOST_FILES, targets};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus")
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn corpus_inputs_keep_the_invariants() {
    let mut broken = Vec::new();
    for (target, run) in targets::ALL {
        let file = File::open(corpus().join(format!("{target}.tar"))).unwrap();
        let mut archive = tar::Archive::new(file);
        let mut inputs = 0;
        for input in archive.entries().unwrap() {
            let mut input = input.unwrap();
            let name = input.path().unwrap().display().to_string();
            let mut data = Vec::new();
            input.read_to_end(&mut data).unwrap();
            inputs += 1;
            let len = data.len();
            assert!(len <= LARGEST, "{target}/{name} has {len} octets");
            if catch_unwind(|| run(&data)).is_err() {
                broken.push(format!("{target}/{name}"));
            }
        }
        assert!(inputs > 0, "{target} has no corpus");
        assert!(inputs <= MOST_FILES, "{target} has {inputs} inputs");
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn targets_corpus_and_entry_points_match() {
    let targets: BTreeSet<_> = targets::ALL
        .iter()
        .map(|(name, _)| name.to_string())
        .collect();
    let archives: BTreeSet<_> = names(&corpus())
        .iter()
        .filter_map(|name| name.strip_suffix(".tar").map(str::to_owned))
        .collect();
    assert_eq!(archives, targets);
    let entries = corpus().with_file_name("fuzz_targets");
    let entries: BTreeSet<_> = names(&entries)
        .iter()
        .map(|name| name.trim_end_matches(".rs").to_owned())
        .collect();
    assert_eq!(entries, targets);
    let manifest = fs::read_to_string(corpus().with_file_name("Cargo.toml")).unwrap();
    for target in targets {
        let bin = format!("[[bin]]\nname = \"{target}\"\npath = \"fuzz_targets/{target}.rs\"");
        assert!(manifest.contains(&bin), "{target}");
    }
}
