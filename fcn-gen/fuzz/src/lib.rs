//! The fuzz target of `fcn-gen`; what it demands is in [`targets`], which runs on stable too.

pub mod targets;
