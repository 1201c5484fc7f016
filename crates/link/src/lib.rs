//! Frames in and out. Today: capture files written ([`capture_file`]).
//!
//! What the octets of a frame mean is fcn-wire's business, when to send which frame that of the roles and tools.
#![forbid(unsafe_code)]

pub mod capture_file;
