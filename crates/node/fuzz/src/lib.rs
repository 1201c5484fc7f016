//! The fuzz targets of `fcn-node`. The properties that they check are in [`targets`], which also
//! runs on stable.

pub mod targets;
