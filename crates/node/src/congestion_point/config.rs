//! What an operator sets at a congestion point, and what it counts.

use crate::limiter::Limits;
use crate::proxy_directory::Reading;
use crate::reasons::counters;
use fcn_observe::data::FlowKey;
use fcn_wire::Qp;
use fcn_wire::pnc::Prefix;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// When a queue counts as congested, as in DCQCN (Zhu et al., SIGCOMM 2015, section 3.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Marking {
    /// Kmin: up to this depth of the egress queue, in octets, nothing is marked.
    pub kmin: u64,
    /// Kmax: above this depth, in octets, everything is marked.
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
    /// Probability of marking a packet that finds `depth` octets in the queue: 0 up to Kmin, then linear to Pmax at Kmax,
    /// 1 above.
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

    /// Congestion level of a queue of `depth` octets in a WAN FCN: 1 up to Kmin, in seven equal steps to 7 at Kmax
    /// \[choice\]. 0 would say that none is given (draft-he-rtgwg-wan-fcn section 4.2).
    #[must_use]
    pub fn wan_level(&self, depth: u64) -> u8 {
        1 + self.step(depth, 7)
    }

    /// Congestion level of a queue of `depth` octets in a notification to a proxy: 0 up to Kmin, in eight equal steps to 7 at
    /// Kmax \[choice; draft-xiao-rtgwg-proxy-congestion-notification section 4 says that 0 is the lowest and 7 the highest\].
    #[must_use]
    pub fn proxy_level(&self, depth: u64) -> u8 {
        self.step(depth, 8)
    }

    /// In which of so many equal parts between Kmin and Kmax a queue of `depth` octets ends: from 0.
    fn step(&self, depth: u64, parts: u8) -> u8 {
        let above = depth.saturating_sub(self.kmin);
        let range = self.kmax.saturating_sub(self.kmin).max(1);
        let step = u128::from(above) * u128::from(parts) / u128::from(range);
        u8::try_from(step).unwrap_or(u8::MAX).min(parts - 1)
    }
}

/// Whether a sender handles Fast CNPs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Ability {
    /// It does.
    Able,
    /// It does not.
    Unable,
    /// Nobody said.
    #[default]
    Unknown,
}

/// In whose name a congestion point sends plain CNPs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum CnpName {
    /// The receiver's: its address is the source.
    #[default]
    Receiver,
    /// Its own.
    Own,
}

/// The settings. The three mechanisms of the drafts are off by default, as they demand.
#[derive(Clone, Debug)]
pub struct Config {
    /// The node's IPv6 loopback address: source of what it sends.
    pub address: Ipv6Addr,
    /// Its IPv4 address: source of notifications to proxies that have an IPv4 address.
    pub address4: Option<Ipv4Addr>,
    /// The ingress PE to tell where the packet does not name it (SR-MPLS).
    pub ingress: Option<Ipv6Addr>,
    /// Whether to mark ECN CE at all. Default true.
    pub ecn: bool,
    /// Whether to send Fast CNPs. Default false.
    pub fast_cnp: bool,
    /// Whether to send plain CNPs, and in whose name. Default: none.
    pub cnp: Option<CnpName>,
    /// QPs at senders, by flow, that need not be learnt: plain CNPs name them.
    pub qps: Vec<(FlowKey, Qp)>,
    /// Connections remembered, and as many flows whose acknowledgements are watched. Default 65 536.
    pub connections: usize,
    /// Whether to notify proxy nodes. Default false.
    pub proxy: bool,
    /// Whether to send Fast CNPs in the WAN. Default false.
    pub wan_fcn: bool,
    /// Whether a packet whose sender may or may not handle Fast CNPs is marked CE beside the Fast CNP. Default true.
    pub mark_unknown: bool,
    /// Which senders handle Fast CNPs; the longest prefix counts. Senders not listed are unknown.
    pub senders: Vec<(Prefix, Ability)>,
    /// Which proxy is to be told about which senders; the longest prefix counts.
    pub proxies: Vec<(Prefix, IpAddr)>,
    /// Which proxies are believed that routing or a data packet names. Empty: any.
    pub allowed_proxies: Vec<Prefix>,
    /// Who may be notified: senders, proxy nodes, ingress PEs. Empty: anybody, which is right only where the domain's border
    /// filters.
    pub tells: Vec<Prefix>,
    /// How many notifications may be sent.
    pub limits: Limits,
    /// Whether a WAN FCN has the flow label in its own IPv6 header too. Default false.
    pub copy_flow_label: bool,
    /// Whether a WAN FCN gives a congestion level; else it is 0. Default true.
    pub wan_level: bool,
    /// Prefixes that the directory of proxies learnt from routing may hold. Default 65 536.
    pub directory: usize,
    /// Which senders a node with PNC serves. Default: those in the prefixes that it advertises.
    pub pnc_reading: Reading,
}

impl Config {
    /// Everything at its default, for the node at `address`.
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
            tells: Vec::new(),
            limits: Limits::default(),
            copy_flow_label: false,
            wan_level: true,
            directory: 65_536,
            pnc_reading: Reading::default(),
        }
    }
}

counters! {
    /// What a congestion point has done and left undone, and why. Packets, unless said otherwise.
    pub struct Counters {
        /// Packets judged: of a switch, those that meet a queue above Kmin.
        pub packets: u64,
        /// Of these, those that met congestion.
        pub congested: u64,
        /// Marked CE.
        pub marked: u64,
        /// Fast CNPs sent.
        pub fast_cnps: u64,
        /// Plain CNPs sent.
        pub cnps: u64,
        /// Proxy notifications sent.
        pub proxy_cns: u64,
        /// Of these, those about flows that are not RoCEv2.
        pub proxy_cns_other: u64,
        /// WAN FCNs sent.
        pub wan_fcns: u64,
        /// Not notified: the last notification about the flow was too recent.
        pub flow_limited: u64,
        /// Not notified, but marked if it can be: all flows together have used up the rate.
        pub total_limited: u64,
        /// Flows forgotten by the limiter because its table was full.
        pub flows_evicted: u64,
        /// Met congestion, and the sender handles Fast CNPs: marked only where `total_limited` counts it.
        pub able: u64,
        /// Not marked: it was to be, but the packet is not ECN-capable.
        pub unmarked_not_capable: u64,
        /// Not notified: whoever would be told is not among those who may be.
        pub not_to_be_told: u64,
        /// Not notified: the packet's source cannot be a node (unspecified, multicast or loopback).
        pub sender_invalid: u64,
        /// No Fast CNP: the sender does not handle it.
        pub sender_unable: u64,
        /// No Fast CNP: the data packet is IPv4.
        pub not_ipv6: u64,
        /// No plain CNP: the QP at the sender is neither configured nor learnt.
        pub cnp_unknown: u64,
        /// No plain CNP: the sender has an IPv4 address and this node, in whose name it would be, none.
        pub cnp_no_source: u64,
        /// Fast CNPs sent with option 1 because the packet's IOAM trace does not fit option 2, or is none.
        pub trace_left_out: u64,
        /// No proxy notification: no proxy is known for the sender.
        pub proxy_unknown: u64,
        /// Proxies passed over that routing or the packet names: they are not on the list of those believed.
        pub proxy_not_allowed: u64,
        /// No proxy notification: the proxy has an IPv4 address and this node none.
        pub proxy_no_source: u64,
        /// No WAN FCN: the outer ECN field is neither 01 nor 10.
        pub wan_not_capable: u64,
        /// No WAN FCN: the outer flow label is 0, so that it names no flow.
        pub wan_no_label: u64,
        /// No WAN FCN: neither packet nor configuration names the ingress PE.
        pub wan_no_ingress: u64,
    }
}
