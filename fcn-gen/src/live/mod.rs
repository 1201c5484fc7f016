//! `fcn-gen run`: sends a scenario on a link, or into a capture file instead of a link.
//!
//! `simulation.rs` plays a simulation ahead of time and hands over its frames, `frames.rs` sends
//! those of a gallery, `schedule.rs` converts options to the sender's settings. Frames of a stress
//! come from `stress`, the link's addresses in frames from `macs`, sending from `fcn_link`, and the
//! options and reports shared by all tools from `fcn_tool`.

mod frames;
mod run;
mod schedule;
mod simulation;

pub use run::{RUN_SCHEMA, RUN_VERSION, run};
