//! Inference from captured packets: correlation of notifications with data, attribution, and
//! verdicts on senders.
//!
//! Shared by the monitor, the Wireshark plugin and the roles. No I/O; the caller passes the time.
//! `correlator.rs` is the entry point: it processes packets and drives the other modules:
//!
//! - `data.rs`: data packets and the flows that they belong to
//! - `connections.rs`: connections between QPs, learnt from RDMA CM
//! - `topic.rs`: key of notifications about the same subject
//! - `resolve.rs`: QP at the sender, inferred by `pairing.rs` and `source_port.rs` if RDMA CM does
//!   not report it; `labels.rs`: the flow that a WAN FCN refers to
//! - `float.rs`: functions with the same results on every machine
//! - `exchange.rs`: acknowledgements, retransmissions and silences of a flow
//! - `obedience.rs`: verdicts on whether senders slow down
//! - `rules.rs`: rules that several packets break, `marks.rs`: rules about CE marks, `routing.rs`:
//!   rules about routing messages
//! - `sightings.rs`: copies of one packet at several capture points, `path_order.rs`: their order,
//!   `unit.rs`: resolution of time stamps
//! - `translation.rs`: CNPs that translate requests, `origin.rs`: the node that generated a CNP
//! - `unproven.rs`: RoCEv2 from source ports that it is not sent from
//! - `malformed.rs`: malformed notifications, `access.rs`: lists of prefixes, `class.rs`: traffic
//!   classes
//! - `bounded.rs`, `table.rs` and `flow_table.rs`: the tables used; bounded, seeded, and without an
//!   allocation per packet
#![forbid(unsafe_code)]

pub mod access;
pub mod bounded;
mod class;
mod connections;
pub mod correlator;
pub mod data;
pub mod exchange;
pub mod float;
mod flow_table;
pub mod gaps;
mod labels;
pub mod malformed;
pub mod marks;
pub mod obedience;
pub mod origin;
mod pairing;
pub mod path_order;
pub mod pauses;
pub mod receivers;
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
pub mod translation;
pub mod trimmed;
pub mod unit;
pub mod unproven;

pub use bounded::{Bounded, Slot};
pub use class::{Class, ClassRelation, Classes};
pub use connections::Connections;
pub use correlator::Correlator;
pub use data::{DataPacket, Ecn, FlowKey, Outer};
pub use exchange::Exchange;
pub use flow_table::{FlowStart, FlowTable, Sequenced};
pub use labels::Labels;
pub use obedience::{Advice, Answer, Evidence, Obedience, Order, Verdict};
pub use resolve::Resolver;
pub use resolved::Resolved;
pub use routing::Routing;
pub use time::Time;
pub use topic::{RowKey, Target};
