//! Stress: frames of a mix of message kinds over many flows and queue pairs, made as fast as a link takes them.
//!
//! `model.rs` has the parameters, `pattern.rs` in which order kinds follow one another, `walk.rs` which connection each
//! frame is about, `prototype.rs` builds one frame of each kind, `stream.rs` changes what differs from frame to frame, and
//! `source.rs` hands them to the sender. Reading a stress from a scenario file is `scenario`'s business, sending it `live`'s.
//!
//! Everything is counted, nothing drawn by lot: the same stress and number of queues give the same frames.

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
