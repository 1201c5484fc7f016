//! Runs the committed corpus of every fuzz target through the target's function on a stable
//! compiler.
//!
//! `fuzz/Cargo.toml` describes how the corpus is built and how to fuzz for more.

#[path = "../fuzz/src/targets.rs"]
mod targets;

#[path = "harness/corpus.rs"]
mod harness;

/// Maximum number of files per target.
const MOST_FILES: usize = 48;
/// Maximum size of a file, in octets.
const LARGEST: usize = 4096;
