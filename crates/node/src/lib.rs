//! The nodes of the congestion-notification drafts, as state machines without I/O.
//!
//! Inputs are times ([`Time`]) and packets ([`Frame`](fcn_wire::Frame) or [`DataPacket`]). Outputs
//! are values: the notification to send ([`OutgoingNotification`]), the rate to use, the time of
//! the next call. There are no sockets, threads, clocks or random numbers here, so that a
//! simulator, a live tool and a test run the same code. `fcn-wire` interprets the octets,
//! `fcn-observe` extracts flows and connections from packets.
//!
//! | role | module | source |
//! |---|---|---|
//! | congestion point: marks ECN CE, sends Fast CNPs, proxy notifications, WAN FCNs | [`congestion_point`] | draft-xiao-rtgwg-rocev2-fast-cnp sections 4 and 5; draft-xiao-rtgwg-proxy-congestion-notification sections 4 and 5; draft-he-rtgwg-wan-fcn section 4 |
//! | proxies that a congestion point learns from routing | [`proxy_directory`] | draft-xiao-rtgwg-proxy-congestion-notification section 5.1 |
//! | notification point: a receiver that answers CE with CNPs | [`notification_point`] | InfiniBand volume 1, Annex A17.9; DCQCN section 3.1 |
//! | reaction point: a sender that slows down | [`reaction_point`] | draft-xiao-rtgwg-rocev2-fast-cnp sections 4 and 5 |
//! | proxy node: turns proxy notifications into CNPs | [`proxy`] | draft-xiao-rtgwg-proxy-congestion-notification section 3 |
//! | border: keeps notifications inside their domain | [`border`] | draft-xiao-rtgwg-rocev2-fast-cnp section 5; draft-xiao-rtgwg-proxy-congestion-notification section 6; draft-he-rtgwg-wan-fcn section 6 |
//! | translator: turns Fast CNPs into CNPs in front of a NIC that does not know them | [`translator`] | draft-xiao-rtgwg-rocev2-fast-cnp sections 4 and 5, InfiniBand volume 1, Annex A17.9 |
//! | ingress PE: labels flows, turns WAN FCNs into CNPs | [`ingress_pe`] | draft-he-rtgwg-wan-fcn section 4.1 |
//!
//! Every feature of the drafts is off until its `Config` enables it, as they demand. Every table is
//! bounded, and its documentation says what happens when it is full. The same inputs cause the same
//! outputs: nothing depends on the order of a hash table.
#![forbid(unsafe_code)]

// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod border;
pub mod congestion_point;
pub mod ingress_pe;
pub mod limiter;
pub mod notification_point;
pub mod outgoing;
mod prefix_map;
pub mod proxy;
pub mod proxy_directory;
pub mod reaction_point;
mod reasons;
mod sender_qps;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod translator;

pub use border::Border;
pub use congestion_point::CongestionPoint;
pub use fcn_observe::{Connections, DataPacket, Ecn, FlowKey, Outer, Time, access};
pub use ingress_pe::IngressPe;
pub use notification_point::NotificationPoint;
pub use outgoing::{DataPacketContext, OutgoingNotification};
pub use proxy::Proxy;
pub use proxy_directory::ProxyDirectory;
pub use reaction_point::ReactionPoint;
pub use sender_qps::{KnownBy, SenderQps};
pub use translator::Translator;
