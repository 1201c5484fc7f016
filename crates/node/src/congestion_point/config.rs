//! Configuration and counters of a congestion point.

use crate::limiter::Limits;
use crate::proxy_directory::Reading;
use crate::reasons::counters;
use fcn_observe::data::FlowKey;
use fcn_wire::Qp;
use fcn_wire::pnc::Prefix;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Thresholds at which a queue counts as congested, as in DCQCN (Zhu et al., SIGCOMM 2015, section
/// 3.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Marking {
    /// Kmin: up to this depth of the egress queue, in octets, no packet is marked.
    pub kmin: u64,
    /// Kmax: above this depth, in octets, every packet is marked.
    pub kmax: u64,
    /// Pmax: probability at Kmax, 0 to 1.
    pub pmax: f64,
}

impl Default for Marking {
    /// As deployed with DCQCN: Kmin 5 KB, Kmax 200 KB, Pmax 1 %.
    fn default() -> Self {
        Self {
            kmin: 5_000,
            kmax: 200_000,
            pmax: 0.01,
        }
    }
}

impl Marking {
    /// Returns the probability of marking a packet that finds `depth` octets in the queue: 0 up to
    /// Kmin, then linear to Pmax at Kmax, 1 above.
    #[must_use]
    pub fn probability(&self, depth: u64) -> f64 {
        if depth <= self.kmin {
            return 0.0;
        }
        if depth > self.kmax {
            return 1.0;
        }
        // Here kmin < depth <= kmax.
        let share = (depth - self.kmin) as f64 / (self.kmax - self.kmin) as f64;
        (share * self.pmax).clamp(0.0, 1.0)
    }

    /// Returns the congestion level of a queue of `depth` octets in a WAN FCN: 1 up to Kmin, in
    /// seven equal steps to 7 at Kmax \[choice\]. Level 0 would mean that none is given
    /// (draft-he-rtgwg-wan-fcn section 4.2).
    #[must_use]
    pub fn wan_level(&self, depth: u64) -> u8 {
        1 + self.step(depth, 7)
    }

    /// Returns the congestion level of a queue of `depth` octets in a notification to a proxy: 0 up
    /// to Kmin, in eight equal steps to 7 at Kmax \[choice;
    /// draft-xiao-rtgwg-proxy-congestion-notification section 4 says that 0 is the lowest and 7 the
    /// highest\].
    #[must_use]
    pub fn proxy_level(&self, depth: u64) -> u8 {
        self.step(depth, 8)
    }

    /// Returns the index, from 0, of the part in which a queue of `depth` octets ends, if the range
    /// from Kmin to Kmax is divided into `parts` equal parts.
    fn step(&self, depth: u64, parts: u8) -> u8 {
        let above = depth.saturating_sub(self.kmin);
        let range = self.kmax.saturating_sub(self.kmin).max(1);
        let step = u128::from(above) * u128::from(parts) / u128::from(range);
        u8::try_from(step).unwrap_or(u8::MAX).min(parts - 1)
    }
}

/// Ability of a sender to handle Fast CNPs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Ability {
    /// The sender handles them.
    Able,
    /// The sender does not handle them.
    Unable,
    /// The ability is not configured.
    #[default]
    Unknown,
}

/// Source address of the plain CNPs of a congestion point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum CnpName {
    /// The receiver's address.
    #[default]
    Receiver,
    /// The congestion point's own address.
    Own,
}

/// Configuration. The three mechanisms of the drafts are off by default, as they demand.
#[derive(Clone, Debug)]
pub struct Config {
    /// The node's IPv6 loopback address: source of its notifications.
    pub address: Ipv6Addr,
    /// The node's IPv4 address: source of notifications to proxies that have an IPv4 address.
    pub address4: Option<Ipv4Addr>,
    /// The ingress PE to notify if the packet does not name it (SR-MPLS).
    pub ingress: Option<Ipv6Addr>,
    /// Enables marking with ECN CE. Default true.
    pub ecn: bool,
    /// Enables Fast CNPs. Default false.
    pub fast_cnp: bool,
    /// Enables plain CNPs, and selects their source address. Default: none.
    pub cnp: Option<CnpName>,
    /// QPs at senders, by flow, that need not be learnt; used by plain CNPs.
    pub qps: Vec<(FlowKey, Qp)>,
    /// Maximum number of connections remembered, and of flows whose acknowledgements are tracked.
    /// Default 65 536.
    pub connections: usize,
    /// Enables notifications to proxy nodes. Default false.
    pub proxy: bool,
    /// Enables Fast CNPs in the WAN. Default false.
    pub wan_fcn: bool,
    /// If true, packets of senders with unknown ability are marked CE in addition to the Fast CNP.
    /// Default true.
    pub mark_unknown: bool,
    /// Abilities of senders to handle Fast CNPs, by longest prefix. That of senders not listed is
    /// unknown.
    pub senders: Vec<(Prefix, Ability)>,
    /// Proxies to notify about senders, by longest prefix of the sender.
    pub proxies: Vec<(Prefix, IpAddr)>,
    /// Proxies that are accepted if routing or a data packet names them. Empty: any.
    pub allowed_proxies: Vec<Prefix>,
    /// Nodes that may be notified: senders, proxy nodes, ingress PEs. Empty: any, which is only
    /// safe if the domain's border filters.
    pub allowed_targets: Vec<Prefix>,
    /// Limits on notifications.
    pub limits: Limits,
    /// Copies the flow label of a WAN FCN into its own IPv6 header. Default false.
    pub copy_flow_label: bool,
    /// Includes a congestion level in a WAN FCN; otherwise it is 0. Default true.
    pub wan_level: bool,
    /// Maximum number of prefixes in the directory of proxies learnt from routing. Default 65 536.
    pub directory: usize,
    /// Senders that a node with PNC serves. Default: those in the prefixes that it advertises.
    pub pnc_reading: Reading,
}

impl Config {
    /// Creates the default configuration for the node at `address`.
    #[must_use]
    pub fn new(address: Ipv6Addr) -> Self {
        Self {
            address,
            address4: None,
            ingress: None,
            ecn: true,
            fast_cnp: false,
            cnp: None,
            qps: Vec::new(),
            connections: 65_536,
            proxy: false,
            wan_fcn: false,
            mark_unknown: true,
            senders: Vec::new(),
            proxies: Vec::new(),
            allowed_proxies: Vec::new(),
            allowed_targets: Vec::new(),
            limits: Limits::default(),
            copy_flow_label: false,
            wan_level: true,
            directory: 65_536,
            pnc_reading: Reading::default(),
        }
    }
}

counters! {
    /// Counters of a congestion point: its actions and omissions, with reasons. In packets, unless
    /// stated otherwise.
    pub struct Counters {
        /// Packets judged: at a switch, those that meet a queue above Kmin.
        pub packets: u64,
        /// Judged packets that met congestion.
        pub congested: u64,
        /// Packets marked CE.
        pub marked: u64,
        /// Fast CNPs sent.
        pub fast_cnps: u64,
        /// Plain CNPs sent.
        pub cnps: u64,
        /// Proxy notifications sent.
        pub proxy_cns: u64,
        /// Proxy notifications about flows that are not RoCEv2.
        pub proxy_cns_other: u64,
        /// WAN FCNs sent.
        pub wan_fcns: u64,
        /// Not notified: the last notification about the flow was too recent.
        pub flow_limited: u64,
        /// Not notified, but marked if possible: all flows together have used up the rate.
        pub total_limited: u64,
        /// Flows that the limiter forgot because its table was full.
        pub flows_evicted: u64,
        /// Met congestion, and the sender handles Fast CNPs: marked only if counted in
        /// `total_limited`.
        pub able: u64,
        /// Not marked although congested: the packet is not ECN-capable.
        pub unmarked_not_capable: u64,
        /// Not notified: the node to notify is not on the list of permitted ones.
        pub not_to_be_told: u64,
        /// Not notified: the packet's source cannot be a node (unspecified, multicast or loopback).
        pub sender_invalid: u64,
        /// Not notified: the packet's destination is not a single node, which has no QP that a
        /// notification could name.
        pub receiver_invalid: u64,
        /// No Fast CNP: the sender does not handle it.
        pub sender_unable: u64,
        /// No Fast CNP: the data packet is IPv4.
        pub not_ipv6: u64,
        /// No plain CNP: the QP at the sender is neither configured nor learnt.
        pub cnp_unknown: u64,
        /// No plain CNP: it would have this node's source address, but the sender has an IPv4
        /// address and this node has none.
        pub cnp_no_source: u64,
        /// Fast CNPs sent with option 1 because the packet's IOAM trace is invalid or does not fit
        /// option 2.
        pub trace_left_out: u64,
        /// No proxy notification: the proxy of the sender is unknown.
        pub proxy_unknown: u64,
        /// Proxies named by routing or the packet that were skipped because they are not on the
        /// list of accepted ones.
        pub proxy_not_allowed: u64,
        /// No proxy notification: the proxy has an IPv4 address, and this node has none.
        pub proxy_no_source: u64,
        /// No WAN FCN: the outer ECN field is neither 01 nor 10.
        pub wan_not_capable: u64,
        /// No WAN FCN: the outer flow label is 0, so that it identifies no flow.
        pub wan_no_label: u64,
        /// No WAN FCN: neither the packet nor the configuration names the ingress PE.
        pub wan_no_ingress: u64,
    }
}
