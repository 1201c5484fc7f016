//! `fcn-gen check`: tests a device on real links against the drafts, rule by rule.
//!
//! **Plan, record, judge.** A role's module returns a `Plan`: the frames to send with their times,
//! and the scenario's nodes to play around the device. The `Bench` executes the plan: it is given
//! frames and the time, returns frames, and records all of them. Afterwards `judge` reads the
//! record. A check therefore neither waits nor reads a clock, and runs against our own roles in
//! virtual time as it does against a device.
//!
//! **One list.** The tests are derived from the rules of `fcn_wire` and from the statements of the
//! drafts in `statements.rs`. Each statement names such rules, a test here, or the reason why it
//! cannot be observed from outside. Formats are judged by the findings of `fcn_wire`, rates and
//! borders by `fcn_observe::rules`.
//!
//! **Identifying the packet.** A Fast CNP names a QP. In the main step at a congestion point each
//! packet therefore has its own QP, so that the switch's behaviour can be judged packet by packet:
//! when it was told about, and which queue it had found, computed from what came and left before.
//!
//! **Doubt favours the device.** A frame has an earliest and a latest possible time. A violation is
//! one only with the times that are best for the device; if this machine was late itself, or lost
//! frames, there is none.

mod bench;
mod command;
mod congestion_point;
mod flows;
mod judge;
#[cfg(test)]
mod matrix;
mod neighbour;
mod notification;
mod page;
mod plan;
mod receiver;
mod report;
mod roles;
mod sender;
pub mod statements;
mod test_plan;
#[cfg(test)]
mod tests;
mod traffic;
mod translator;

pub use command::command;
pub use report::{CHECK_SCHEMA, CHECK_VERSION};
pub use test_plan::planned;
