//! The committed corpus of every fuzz target, run through the target's function on a stable compiler.
//!
//! `fuzz/Cargo.toml` says how the corpus is made and how to look for more.

#[path = "../fuzz/src/targets.rs"]
mod targets;

#[path = "../../wire/tests/harness/corpus.rs"]
mod harness;

/// Most files that a target keeps.
const MOST_FILES: usize = 96;
/// Most octets of one.
const LARGEST: usize = 4096;
