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

mod build;
pub mod error;
pub mod frame;
mod headers;
mod identified;
mod messages;
pub mod pnc;
mod rules;

pub use build::{compose, emit, rewrite, template};
pub(crate) use frame::layer;
pub use frame::{claim, message, notification};
pub use headers::{checksum, erspan, header, infiniband, ip, ipv6_ext, sflow};
pub(crate) use headers::{fields, octets};
pub use messages::{
    bth, cnm, cnp, csig, fast_cnp, icrc, ioam, mad, pfc, proxy_address, proxy_cn, rdma_cm, wan_fcn,
};
pub use rules::{draft, dscp_set, finding, profile};

pub use bth::{Opcode, Qp};
pub use claim::Claim;
pub use dscp_set::DscpSet;
pub use error::{Error, ErrorKind, Result};
pub use erspan::Mirror;
pub use finding::{Finding, Findings, Rule, Severity};
pub use frame::{End, Frame, LinkType, Trimming, Unread};
pub use layer::Layer;
pub use message::{IcrcCheck, Message};
pub use notification::{Kind, Notification, Origin, Subject};
pub use profile::Profile;
