//! RoCEv2 congestion notification on the wire.
#![forbid(unsafe_code)]

pub mod error;
pub mod finding;
pub mod icrc;
pub mod ipv6_ext;
pub mod layer;
mod octets;
pub mod profile;

pub use error::{Error, ErrorKind, Result};
pub use finding::{Finding, Findings, Rule, Severity};
pub use layer::Layer;
pub use profile::Profile;
