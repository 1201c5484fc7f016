//! What the nodes of the congestion-notification drafts do, as state machines without I/O.
//!
//! Time comes in as a [`Time`], packets as [`Frame`](fcn_wire::Frame)s or [`DataPacket`]s; out come values that say what
//! to send ([`Outgoing`]), which rate to use, when to ask again. There are no sockets, threads, clocks or random numbers
//! here, so that a simulator, a live tool and a test drive the same code. What the octets mean is `fcn-wire`'s
//! business, what packets tell of flows and connections `fcn-observe`'s.
//!
//! | role | module | source |
//! |---|---|---|
//! | congestion point: marks ECN CE, sends Fast CNPs, proxy notifications, WAN FCNs | [`congestion_point`] | draft-xiao-rtgwg-rocev2-fast-cnp sections 4 and 5; draft-xiao-rtgwg-proxy-congestion-notification sections 4 and 5; draft-he-rtgwg-wan-fcn section 4 |
//! | what a congestion point learns about proxies from routing | [`proxy_directory`] | draft-xiao-rtgwg-proxy-congestion-notification section 5.1 |
//! | notification point: a receiver that answers CE with CNPs | [`notification_point`] | InfiniBand volume 1, Annex A17.9; DCQCN section 3.1 |
//! | reaction point: a sender that slows down | [`reaction_point`] | draft-xiao-rtgwg-rocev2-fast-cnp sections 4 and 5 |
//! | proxy node: turns proxy notifications into CNPs | [`proxy`] | draft-xiao-rtgwg-proxy-congestion-notification section 3 |
//! | border: keeps notifications inside their domain | [`border`] | draft-xiao-rtgwg-rocev2-fast-cnp section 5; draft-xiao-rtgwg-proxy-congestion-notification section 6; draft-he-rtgwg-wan-fcn section 6 |
//! | ingress PE: labels flows, turns WAN FCNs into CNPs | [`ingress_pe`] | draft-he-rtgwg-wan-fcn section 4.1 |
//!
//! Every feature of the drafts is off until its `Config` switches it on, as they demand. Every table is bounded, and
//! each says what happens when it is full. Same inputs, same outputs: nothing depends on a hash table's order.
#![forbid(unsafe_code)]

// Its example is a test.
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

pub use border::Border;
pub use congestion_point::CongestionPoint;
pub use fcn_observe::{Connections, DataPacket, Ecn, FlowKey, Outer, Time, access};
pub use ingress_pe::IngressPe;
pub use notification_point::NotificationPoint;
pub use outgoing::{About, Outgoing};
pub use proxy::Proxy;
pub use proxy_directory::ProxyDirectory;
pub use reaction_point::ReactionPoint;
pub use sender_qps::{KnownBy, SenderQps};
