//! Stress: a mix of message kinds over many flows and queue pairs, generated as fast as a link
//! accepts frames.
//!
//! `model.rs` has the parameters, `pattern.rs` the order of kinds, `walk.rs` the connection of each
//! frame, `prototype.rs` builds one frame of each kind, `stream.rs` updates the fields that change
//! from frame to frame, and `source.rs` passes frames to the sender. Scenario files are parsed by
//! `scenario`, frames are sent by `live`.
//!
//! The frames are deterministic, not random: the same stress and number of queues give the same
//! frames.

mod model;
mod pattern;
mod prototype;
mod source;
mod stream;
mod walk;

#[cfg(test)]
mod tests;

pub use model::{DataOpcode, Hosts, Kind, MOST_CONNECTIONS, MOST_TRACE_NODES, Stress};
pub use pattern::{LONGEST_PATTERN, Pattern};
pub use prototype::Prototypes;
pub use source::StressSource;
