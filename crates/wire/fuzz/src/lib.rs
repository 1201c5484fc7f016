//! Fuzz targets of `fcn-wire`; their requirements are in [`targets`], which also runs on stable.

pub mod targets;
