//! `fcn-gen check`: a device under test on real links, judged against the drafts rule by rule.
//!
//! **Plan, record, judge.** A role's module says in a `Plan` which frames it sends when, and which nodes of the
//! scenario are played around the device meanwhile. The `Bench` carries that out: it is given frames and the
//! time, gives frames, and keeps all that passed. Afterwards `judge` reads the record. So a check neither waits
//! nor reads a clock, and runs against our own roles in virtual time as it does against a device.
//!
//! **One list.** What is tested comes from the rules of `fcn_wire` and from the statements of the drafts in `statements.rs`, which
//! name those rules, a test here, or why nobody sees it from outside. Formats are judged by the findings of `fcn_wire`, rates and
//! borders by `fcn_observe::rules`.
//!
//! **Which packet was it?** A Fast CNP names a QP. So in the main step at a congestion point each packet has a QP of its own, and
//! what the switch says and does is told packet by packet.

mod bench;
mod command;
mod congestion_point;
mod judge;
mod plan;
mod receiver;
mod report;
mod roles;
mod sender;
pub mod statements;
#[cfg(test)]
mod tests;
mod translator;

pub use command::check;
pub use report::{CHECK_SCHEMA, CHECK_VERSION};
