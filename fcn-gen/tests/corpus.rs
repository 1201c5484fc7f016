//! The committed corpus of the fuzz target, run through the target's function on a stable compiler.
//!
//! `fuzz/Cargo.toml` explains how the corpus is generated and extended.

#[path = "../fuzz/src/targets.rs"]
mod targets;

#[path = "../../crates/wire/tests/harness/corpus.rs"]
mod harness;

/// Maximum number of files of a target.
const MOST_FILES: usize = 96;
/// Maximum length of a file in octets.
const LARGEST: usize = 8192;
