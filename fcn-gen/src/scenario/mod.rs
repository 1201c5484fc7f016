//! Scenarios: `model.rs` has the values, `file.rs` reads them from TOML, `builtin.rs` has the
//! built-in ones, `draw.rs` shows them.

mod addresses;
mod build;
pub mod builtin;
mod document;
mod draw;
mod error;
mod faults;
mod file;
mod flows;
mod limits;
pub mod model;
mod pairs;
mod qps;
mod roles;
mod schema;
mod stress;
mod thresholds;
mod topology;

#[cfg(test)]
mod tests;

pub use document::Parameter;
pub use draw::draw;
pub use error::{Error, Position};
pub use file::{Play, Scenario, Source, load, text_of};
