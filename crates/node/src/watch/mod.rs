//! What one who only looks on infers from packets that pass by: shared by the monitor and the Wireshark plugin.
//!
//! `topic.rs` says which notifications are about the same, `resolve.rs` which QP at the sender is meant, `labels.rs` which
//! flow a WAN FCN means, `rules.rs` which rules several packets break. `bounded.rs`, `pairs.rs`, `hashing.rs` and `fetch.rs` are the
//! tables that it takes: bounded, seeded, and without an allocation for a packet. What is kept of a flow, and how it is
//! shown, is the users' business.

pub mod bounded;
pub mod fetch;
pub mod hashing;
pub mod labels;
pub mod pairs;
pub mod resolve;
pub mod rules;
pub mod topic;

pub use bounded::{Bounded, Chain, Slot};
pub use labels::Labels;
pub use pairs::Pairs;
pub use resolve::{Resolved, Resolver, SeenFlows};
pub use topic::RowKey;
