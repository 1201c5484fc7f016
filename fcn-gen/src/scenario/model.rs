//! A simulation to play, complete and checked: every node with its addresses, every link, every
//! flow.
//!
//! Values only. `file.rs` reads them from TOML and adds defaults; `sim/` plays them.

use crate::ioam::IoamTrace;
use crate::units::{Ps, Rate};
use fcn_node::congestion_point::Marking;
use fcn_node::proxy_directory::Reading;
use fcn_node::{FlowKey, congestion_point, ingress_pe, notification_point, proxy, reaction_point};
use fcn_wire::pnc::Prefix;
use fcn_wire::{Profile, Qp};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Index of a node in [`Simulation::nodes`].
pub type NodeId = usize;
/// Index of a link in [`Simulation::links`].
pub type LinkId = usize;
/// Index of a flow in [`Simulation::flows`].
pub type FlowIndex = usize;

/// A simulation.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// Seed of all random decisions.
    pub seed: u64,
    /// Duration of the simulation.
    pub duration: Ps,
    /// Time from which a comparison measures goodput, utilisation and other figures; less than
    /// `duration`.
    pub warm_up: Ps,
    /// Duration for a comparison, if it differs from `duration`: long enough for its figures to
    /// settle.
    pub compare_for: Option<Ps>,
    /// Congestion mechanism named in the scenario; the configurations below follow it.
    pub mechanism: Mechanism,
    /// Code points.
    pub profile: Profile,
    /// Start of the capture, in nanoseconds since 1970.
    pub epoch: u64,
    /// Octets kept of each packet; 0 keeps all.
    pub snap_len: u32,
    /// DSCP of notifications.
    pub cnp_dscp: u8,
    /// Hosts and switches.
    pub nodes: Vec<Node>,
    /// Links between them.
    pub links: Vec<Link>,
    /// Flows, in the file's order.
    pub flows: Vec<Flow>,
    /// Capture points, one pcapng interface each.
    pub vantage_points: Vec<VantagePoint>,
    /// Faults of links.
    pub faults: Vec<Fault>,
    /// Packets that nodes send besides their role: attacks, defects, pause storms.
    pub injections: Vec<Injection>,
    /// Interval of routing advertisements, if there are any (`ProxyNode::known_by`).
    pub advertise_interval: Ps,
}

impl Simulation {
    /// Returns the names of the vantage points: `node:peer`.
    #[must_use]
    pub fn vantage_names(&self) -> Vec<String> {
        let name = |point: &VantagePoint| {
            let peer = self.links[point.link].other_end(point.node);
            format!("{}:{}", self.nodes[point.node].name, self.nodes[peer].name)
        };
        self.vantage_points.iter().map(name).collect()
    }
}

/// Returns a name without the number at its end: the part shared by all nodes of a file's entry.
#[must_use]
pub fn stem(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit())
}

fcn_wire::identified! {
    /// Mechanism by which a network notifies senders of congestion.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    Mechanism {
        /// No notifications; packets that exceed the queues are dropped.
        None = "none",
        /// Priority-based flow control alone: no marks, no notifications.
        Pfc = "pfc",
        /// ECN marks, and CNPs from the receiver.
        Cnp = "cnp",
        /// Plain CNPs from the congested switch, which learns the QPs at senders.
        SwitchCnp = "switch-cnp",
        /// Fast CNPs from the congested switch.
        FastCnp = "fast-cnp",
        /// Fast CNPs with the IOAM trace of the path; senders control their rate from it.
        FastCnpIoam = "fast-cnp-ioam",
        /// Notification to a proxy node, which sends the CNP.
        Proxy = "proxy",
        /// FCN in the WAN to the ingress PE, which sends the CNP.
        WanFcn = "wan-fcn",
    }
}

/// A host or a switch.
#[derive(Clone, Debug)]
pub struct Node {
    /// Unique name.
    pub name: String,
    /// IPv6 address: a host's own, a switch's loopback.
    pub ipv6: Ipv6Addr,
    /// IPv4 address.
    pub ipv4: Ipv4Addr,
    /// Administrative domain. Notifications that cross to another domain are dropped there, if the
    /// switch filters them.
    pub domain: u16,
    /// Kind of node.
    pub kind: NodeKind,
}

/// Kind of a node.
#[derive(Clone, Debug)]
pub enum NodeKind {
    /// A host, which sends and receives.
    Host(Box<Host>),
    /// A switch, which forwards.
    Switch(Box<Switch>),
}

/// A host with one NIC: notification point and reaction point. It has exactly one link.
#[derive(Clone, Debug)]
pub struct Host {
    /// Reaction to notifications: handling of Fast CNPs, access list, rate control.
    pub reaction: reaction_point::Config,
    /// CNPs that it sends; `None` if it sends none.
    pub notification: Option<notification_point::Config>,
    /// True if it answers an option that it does not recognise with ICMPv6 Parameter Problem (RFC
    /// 8200 section 4.2).
    pub answers_unknown_options: bool,
    /// Time to generate a CNP.
    pub notification_delay: Ps,
    /// Time from the arrival of a notification until the NIC applies it.
    pub reaction_delay: Ps,
}

/// A switch or router.
#[derive(Clone, Debug)]
pub struct Switch {
    /// Configuration of its congestion point.
    pub congestion: congestion_point::Config,
    /// True if its plain CNPs have the hop limit of the receiver's packets here, once it has
    /// received one.
    pub imitates: bool,
    /// Thresholds of its ports, by the port's link.
    pub ports: BTreeMap<LinkId, Thresholds>,
    /// Time to generate or translate a notification.
    pub notification_delay: Ps,
    /// Node identifier in IOAM traces; `None` if it writes no node data.
    pub ioam_node: Option<u32>,
    /// Configuration as a proxy node for congestion notification.
    pub proxy: Option<ProxyNode>,
    /// Configuration as a provider edge, which encapsulates packets to hosts behind another
    /// provider edge.
    pub edge: Option<Edge>,
    /// True if it drops Fast CNPs (a MUST of their draft, section 5), proxy notifications and WAN
    /// FCNs that would enter or leave its domain.
    pub border_filter: bool,
}

fcn_wire::identified! {
    /// Time at which a switch compares the queue of a packet with the thresholds: to mark it, or to
    /// notify.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    MarkingPoint {
        /// When the packet joins the queue: the octets before it count (DCQCN, SIGCOMM 2015,
        /// section 3.1). A mark then waits in the queue with its packet.
        Arrival = "arrival",
        /// When the packet leaves: the octets after it count, as in most switches, and in the
        /// simulator published with HPCC.
        #[default]
        Departure = "departure",
    }
}

impl MarkingPoint {
    /// Returns the other point.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Arrival => Self::Departure,
            Self::Departure => Self::Arrival,
        }
    }
}

/// Thresholds of a port's queues.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// Thresholds at which a queue counts as congested.
    pub marking: Marking,
    /// Time at which they apply. On real links, always the packet's arrival.
    pub marks_at: MarkingPoint,
    /// Capacity of an egress queue in octets; further packets are dropped.
    pub queue: u64,
    /// Priority-based flow control of packets received on the port, if the switch uses it.
    pub pfc: Option<Pfc>,
}

impl Default for Thresholds {
    /// DCQCN's marking and an unlimited queue.
    fn default() -> Self {
        Self {
            marking: Marking::default(),
            marks_at: MarkingPoint::default(),
            queue: u64::MAX,
            pfc: None,
        }
    }
}

/// Thresholds of priority-based flow control, per ingress port and class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pfc {
    /// Octets held from one ingress port at which its peer is paused.
    pub xoff: u64,
    /// Octets at which it is resumed; less than `xoff`.
    pub xon: u64,
    /// Pause time, in quanta of 512 bit times.
    pub quanta: u16,
}

/// A proxy node.
#[derive(Clone, Debug)]
pub struct ProxyNode {
    /// Configuration of its role.
    pub config: proxy::Config,
    /// Way in which congestion points learn of it.
    pub known_by: ProxyKnownBy,
    /// Senders that it serves: the prefixes it advertises.
    pub serves: Vec<Prefix>,
    /// The prefix that has the flag, in IS-IS and OSPF.
    pub reading: Reading,
}

/// Way in which congestion points learn of the proxy node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProxyKnownBy {
    /// By configuration (`congestion_point::Config::proxies`).
    #[serde(rename = "config")]
    Configuration,
    /// By the Proxy Network Node Address option in data packets, added by the flow's sender.
    Option,
    /// By IS-IS.
    IsIs,
    /// By OSPFv2.
    #[serde(rename = "ospfv2")]
    Ospf2,
    /// By OSPFv3.
    #[serde(rename = "ospfv3")]
    Ospf3,
    /// By BGP.
    Bgp,
}

/// A provider edge.
#[derive(Clone, Debug)]
pub struct Edge {
    /// Configuration of its role.
    pub config: ingress_pe::Config,
    /// Encapsulation towards other provider edges.
    pub tunnel: Tunnel,
}

/// Encapsulation between provider edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tunnel {
    /// IPv6 in IPv6 with a segment routing header of one segment besides the egress PE's.
    Srv6,
    /// VXLAN over IPv6.
    Vxlan {
        /// Network identifier.
        vni: u32,
    },
    /// SR-MPLS: transport label, entropy label indicator and entropy label (the flow label),
    /// service label.
    SrMpls {
        /// Label of the egress PE.
        transport: u32,
        /// Label of the VPN at the egress PE.
        service: u32,
    },
}

/// A link with the same properties in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// One end.
    pub a: NodeId,
    /// The other end.
    pub b: NodeId,
    /// Rate.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Ps,
}

impl Link {
    /// Returns the end that is not `node`.
    #[must_use]
    pub const fn other_end(&self, node: NodeId) -> NodeId {
        if self.a == node { self.b } else { self.a }
    }
}

/// A reliable connection over which one side sends RDMA WRITE messages to the other.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Unique name.
    pub name: String,
    /// The data sender, a host.
    pub from: NodeId,
    /// The data receiver, another host.
    pub to: NodeId,
    /// The sender's address.
    pub source: IpAddr,
    /// The receiver's address, of the same family.
    pub destination: IpAddr,
    /// QP at the sender, unique there.
    pub sender_qp: Qp,
    /// QP at the receiver, unique there.
    pub receiver_qp: Qp,
    /// UDP source port of its data packets (entropy for ECMP).
    pub source_port: u16,
    /// IPv6 flow label of its data packets.
    pub flow_label: u32,
    /// First PSN.
    pub first_psn: u32,
    /// Time of connection setup (or, without RDMA CM, of the first data).
    pub start: Ps,
    /// Time at which it stops posting messages; current ones are completed.
    pub stop: Ps,
    /// Number of messages to send; `None`: as many as fit before `stop`.
    pub messages: Option<u64>,
    /// Length of a message in octets.
    pub message: u32,
    /// Payload of a packet in octets: 256, 512, 1024, 2048 or 4096.
    pub mtu: u16,
    /// Maximum number of unacknowledged data packets.
    pub window: u32,
    /// Number of packets after which the sender requests an acknowledgement at the latest; it also
    /// does so at each message's end.
    pub ack_every: u32,
    /// Time that the sender waits for an acknowledgement before it retransmits.
    pub retransmit_timeout: Ps,
    /// Traffic class for PFC: 0 to 7.
    pub priority: u8,
    /// DSCP of its data packets.
    pub dscp: u8,
    /// True if its packets are ECN-capable.
    pub ecn: bool,
    /// IOAM trace in its data packets, if any.
    pub ioam: Option<IoamTrace>,
    /// Proxy Network Node Address option in its data packets, if any.
    pub proxy_option: Option<Ipv6Addr>,
    /// True if the connection is set up and taken down by RDMA CM.
    pub rdma_cm: bool,
    /// Maximum rate, in bits per second of Ethernet frames; `None`: the link's rate.
    pub rate_limit: Option<Rate>,
}

impl Flow {
    /// Returns the key by which roles identify the flow.
    #[must_use]
    pub const fn key(&self) -> FlowKey {
        FlowKey {
            sender: self.source,
            receiver: self.destination,
            receiver_qp: self.receiver_qp,
        }
    }
}

/// A capture point: the port of `node` towards its peer, in both directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VantagePoint {
    /// The node whose port it is.
    pub node: NodeId,
    /// The link of that port.
    pub link: LinkId,
}

/// A fault of a link.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The link.
    pub link: LinkId,
    /// Only towards this node; `None`: in both directions.
    pub towards: Option<NodeId>,
    /// Start time.
    pub start: Ps,
    /// End time.
    pub stop: Ps,
    /// Kind of fault.
    pub kind: FaultKind,
}

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultKind {
    /// Each packet is lost with this probability, 0 to 1.
    Loss(f64),
    /// Each packet is delayed by `by` with this probability, so that others overtake it.
    Reorder {
        /// Probability, 0 to 1.
        probability: f64,
        /// Delay.
        by: Ps,
    },
    /// No packet passes.
    Down,
}

/// Packets that a host sends besides its flows.
#[derive(Clone, Debug)]
pub struct Injection {
    /// The host that sends them.
    pub node: NodeId,
    /// Time of the first packet.
    pub start: Ps,
    /// Number of packets.
    pub count: u64,
    /// Time between them.
    pub interval: Ps,
    /// Kind of packets.
    pub what: Injected,
}

/// Kind of injected packets.
#[derive(Clone, Debug)]
pub enum Injected {
    /// Fast CNPs with option 1 about `flow`, with this source address.
    SpoofedFastCnp {
        /// Flow that they name.
        flow: FlowIndex,
        /// Spoofed source address.
        source: Ipv6Addr,
    },
    /// The first Fast CNP about `flow`, sent again unchanged: a replay attack.
    ReplayedFastCnp {
        /// Flow that it names.
        flow: FlowIndex,
    },
    /// CNPs about `flow` that appear to come from its receiver.
    SpoofedCnp {
        /// Flow that they name.
        flow: FlowIndex,
    },
    /// TCP segments to the receiver of `flow`, as long as its data packets and in their class:
    /// traffic that is not RoCEv2.
    Tcp {
        /// Flow whose receiver they go to.
        flow: FlowIndex,
    },
    /// PFC frames that pause a class at the other end of this host's link: a pause storm of a
    /// defective NIC.
    Pause {
        /// Paused class.
        class: u8,
        /// Pause time in quanta of 512 bit times.
        quanta: u16,
    },
}
