//! Scenarios: what is played. `model.rs` has the values, `file.rs` reads them from TOML, `builtin.rs` has our own,
//! `draw.rs` shows them.

mod addresses;
mod build;
pub mod builtin;
mod check;
mod document;
mod draw;
mod error;
mod file;
mod flows;
mod happenings;
pub mod model;
mod qps;
mod role_settings;
mod roles;
mod schema;
mod stress;
mod text;
mod topology;

#[cfg(test)]
mod tests;

pub use document::Parameter;
pub use draw::draw;
pub use error::{Error, Place};
pub use file::{Play, Scenario, Source, load};
pub use text::{delay, duration, rate, size};
