//! What an observer can infer from the packets that pass by.
//!
//! Shared by the monitor, the Wireshark plugin and the roles; no I/O, and time comes in as a value. `correlator.rs` is the entry: it
//! takes in packets, and drives the rest. `data.rs` says what a data
//! packet is, and which flow it belongs to; `connections.rs` who is connected to whom, read from RDMA CM; `topic.rs`
//! which notifications are about the same; `resolve.rs` which QP at the sender is meant, inferred by `pairing.rs` and `source_port.rs` where RDMA CM does not tell, `labels.rs` which flow a WAN FCN
//! means; `obedience.rs` whether senders obey; `rules.rs` which rules several packets break, `marks.rs` which CE marks do, `routing.rs` those of routing messages; `sightings.rs` which packets are the same, seen at several
//! places, `trail.rs` one after another, `unit.rs` how exact time stamps are; `translation.rs` which CNPs translate, `origin.rs` who really made a CNP; `broken.rs` what was meant as a notification; `access.rs` who is on a list of prefixes; `class.rs` what packets are queued by. `bounded.rs`, `table.rs`,
//! and `flow_table.rs` are the tables that it takes: bounded, seeded, and without an allocation for a packet.
#![forbid(unsafe_code)]

pub mod access;
pub mod bounded;
pub mod broken;
mod class;
mod connections;
pub mod correlator;
pub mod data;
mod flow_table;
mod labels;
pub mod marks;
pub mod obedience;
pub mod origin;
mod pairing;
mod resolve;
mod resolved;
pub mod routing;
pub mod rules;
pub mod sightings;
pub mod source_port;
pub mod table;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod time;
mod topic;
pub mod trail;
pub mod translation;
pub mod unit;

pub use bounded::{Bounded, Slot};
pub use class::{Class, Classes, Company};
pub use connections::Connections;
pub use correlator::Correlator;
pub use data::{DataPacket, Ecn, FlowKey, Outer};
pub use flow_table::{Begins, FlowTable, Sequenced};
pub use labels::Labels;
pub use obedience::{Advice, Answer, Evidence, Obedience, Order, Verdict};
pub use resolve::Resolver;
pub use resolved::Resolved;
pub use routing::Routing;
pub use time::Time;
pub use topic::{Aim, RowKey};
