//! The fuzz target of `fcn-gen`. Its requirements are in [`targets`], which also runs on stable
//! Rust.

pub mod targets;
