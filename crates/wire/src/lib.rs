//! RoCEv2 congestion notification on the wire: every format that fcn-tools reads and writes.
//!
//! The crate works on octets alone: no sockets, files or threads, and parsers do not allocate. A
//! packet is processed in these steps: octets → [`Frame`] (locates the layers, opens tunnels,
//! checks bounds) → [`Message`] (a view of one format) → [`Notification`] (who notifies which
//! sender about which QP or flow) and [`Findings`] (the rules it breaks).
//!
//! There is one module per format. Each has a view over octets, the values (`…Repr`) that are
//! parsed from it and emitted to it, and a `check` that reports broken rules. Numbers that the
//! drafts leave open are in [`Profile`].
#![forbid(unsafe_code)]

// Runs the README's example as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod bth;
pub mod checksum;
pub mod claim;
pub mod cnp;
pub mod compose;
pub mod draft;
pub mod emit;
pub mod error;
pub mod erspan;
pub mod fast_cnp;
mod fields;
pub mod finding;
pub mod frame;
pub mod header;
pub mod icrc;
mod identified;
pub mod infiniband;
pub mod ioam;
pub mod ip;
pub mod ipv6_ext;
mod layer;
mod link_type;
pub mod mad;
pub mod message;
pub mod notification;
mod octets;
pub mod pfc;
pub mod pnc;
pub mod profile;
pub mod proxy_address;
pub mod proxy_cn;
pub mod rdma_cm;
pub mod rewrite;
pub mod sflow;
pub mod template;
pub mod wan_fcn;

pub use bth::{Opcode, Qp};
pub use claim::Claim;
pub use error::{Error, ErrorKind, Result};
pub use erspan::Mirror;
pub use finding::{Finding, Findings, Rule, Severity};
pub use frame::{End, Frame, LinkType};
pub use layer::Layer;
pub use message::{IcrcCheck, Message};
pub use notification::{Kind, Notification, Origin, Subject};
pub use profile::Profile;
