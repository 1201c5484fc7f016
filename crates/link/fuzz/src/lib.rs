//! The fuzz targets of `fcn-link`; what they demand is in [`targets`], which runs on stable too.

pub mod targets;
