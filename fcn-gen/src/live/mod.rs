//! `fcn-gen run`: a scenario onto a link, or into a capture file in the link's place.
//!
//! `simulation.rs` plays a simulation ahead of its time and hands over its frames, `frames.rs` sends those of a gallery,
//! `schedule.rs` turns options into what the sender understands. Frames of a stress are `stress`'s, the link's addresses in
//! frames `macs`'s, sending is `fcn_link`'s, options and reports that all tools share are `fcn_tool`'s.

mod frames;
mod run;
mod schedule;
mod simulation;

pub use run::{RUN_SCHEMA, RUN_VERSION, run};
