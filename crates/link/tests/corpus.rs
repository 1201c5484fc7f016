//! Runs the committed corpus of every fuzz target through the target's function on a stable
//! compiler.
//!
//! `fuzz/Cargo.toml` describes how the corpus is created and how to search for more.

#[path = "../fuzz/src/targets.rs"]
mod targets;

#[path = "../../wire/tests/harness/corpus.rs"]
mod harness;

/// Maximum number of files of a target.
const MOST_FILES: usize = 96;
/// Maximum length of a file, in octets.
const LARGEST: usize = 4096;
