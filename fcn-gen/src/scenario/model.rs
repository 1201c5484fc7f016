//! A simulation to play, complete and checked: every node with its addresses, every link, every flow.
//!
//! Values only. `file.rs` reads them from TOML and fills in what the file leaves out; `sim/` plays them.

use crate::units::{Ps, Rate};
use fcn_node::congestion_point::Marking;
use fcn_node::proxy_directory::Reading;
use fcn_node::{FlowKey, congestion_point, ingress_pe, notification_point, proxy, reaction_point};
use fcn_wire::ioam::{OPTION_PREFIX_LEN, TRACE_HEADER_LEN, TraceType};
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
    /// Seed of everything that chance decides.
    pub seed: u64,
    /// How long to play.
    pub duration: Ps,
    /// From then on a comparison counts goodput, utilisation and the like; less than `duration`.
    pub warm_up: Ps,
    /// How long a comparison plays, where that is not `duration`: until what it claims has settled.
    pub compare_for: Option<Ps>,
    /// What the network does about congestion, as the scenario names it; the configurations below follow it.
    pub mechanism: Mechanism,
    /// Code points.
    pub profile: Profile,
    /// When the capture was taken: nanoseconds since 1970.
    pub epoch: u64,
    /// Octets kept of each packet; 0: all.
    pub snap_len: u32,
    /// Hosts and switches.
    pub nodes: Vec<Node>,
    /// Links between them.
    pub links: Vec<Link>,
    /// Flows, in the order in which they are named.
    pub flows: Vec<Flow>,
    /// Where packets are captured, one pcapng interface each.
    pub vantage_points: Vec<VantagePoint>,
    /// What goes wrong on links.
    pub faults: Vec<Fault>,
    /// Packets that nodes send beside their part: attacks, defects, pause storms.
    pub injections: Vec<Injection>,
    /// How often routing is advertised where it is (`Proxying::by`).
    pub advertise_interval: Ps,
}

impl Simulation {
    /// `node:peer`: the names of the vantage points.
    #[must_use]
    pub fn vantage_names(&self) -> Vec<String> {
        let name = |point: &VantagePoint| {
            let peer = self.links[point.link].other_end(point.node);
            format!("{}:{}", self.nodes[point.node].name, self.nodes[peer].name)
        };
        self.vantage_points.iter().map(name).collect()
    }
}

/// A name without the number at its end: what those of one entry of a file share.
#[must_use]
pub fn stem(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit())
}

fcn_wire::identified! {
    /// How a network notifies senders of congestion.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    Mechanism {
        /// Nobody notifies anybody; what does not fit is dropped.
        None = "none",
        /// Priority-based flow control alone: no marks, no notifications.
        Pfc = "pfc",
        /// ECN marks, and CNPs from the receiver.
        Cnp = "cnp",
        /// Plain CNPs from the congested switch, which knows the QPs at senders.
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
    /// Its name, unique.
    pub name: String,
    /// Its IPv6 address: a host's own, a switch's loopback.
    pub ipv6: Ipv6Addr,
    /// Its IPv4 address.
    pub ipv4: Ipv4Addr,
    /// Administrative domain. Notifications that would cross from one to another are dropped there, where the switch filters.
    pub domain: u16,
    /// What it is.
    pub kind: NodeKind,
}

/// What a node is.
#[derive(Clone, Debug)]
pub enum NodeKind {
    /// Sends and receives.
    Host(Box<Host>),
    /// Forwards.
    Switch(Box<Switch>),
}

/// A host with one NIC: notification point and reaction point. It has exactly one link.
#[derive(Clone, Debug)]
pub struct Host {
    /// Its reaction to notifications: whether it handles Fast CNPs, whom it believes, how it controls its rate.
    pub reaction: reaction_point::Config,
    /// Its CNPs; `None`: it sends none.
    pub notification: Option<notification_point::Config>,
    /// Whether an option that it does not know makes it answer with ICMPv6 Parameter Problem (RFC 8200 section 4.2).
    pub answers_unknown_options: bool,
    /// How long a CNP takes to be made.
    pub notification_delay: Ps,
}

/// A switch or router.
#[derive(Clone, Debug)]
pub struct Switch {
    /// Its congestion point.
    pub congestion: congestion_point::Config,
    /// Whether its plain CNPs have the hop limit that the receiver's packets have here, once it has seen one.
    pub imitates: bool,
    /// Thresholds of each of its ports, by the port's link.
    pub ports: BTreeMap<LinkId, Thresholds>,
    /// How long a notification takes to be made, or to be translated.
    pub notification_delay: Ps,
    /// Node identifier in IOAM traces; `None`: it writes nothing into them.
    pub ioam_node: Option<u32>,
    /// Proxy node for congestion notification.
    pub proxy: Option<Proxying>,
    /// Provider edge: encapsulates what goes to hosts behind another provider edge.
    pub edge: Option<Edge>,
    /// Drops Fast CNPs (a MUST of their draft, section 5), proxy notifications and WAN FCNs that would cross into or out of its
    /// domain.
    pub border_filter: bool,
}

/// How deep a port's queues may be, and what happens on the way there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// When a queue counts as congested.
    pub marking: Marking,
    /// Octets that one egress queue holds; further packets are dropped.
    pub queue: u64,
    /// Priority-based flow control of what comes in by the port, where the switch does it.
    pub pfc: Option<Pfc>,
}

impl Default for Thresholds {
    /// DCQCN's marking and a queue without end.
    fn default() -> Self {
        Self {
            marking: Marking::default(),
            queue: u64::MAX,
            pfc: None,
        }
    }
}

/// Thresholds of priority-based flow control, per ingress port and class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pfc {
    /// Octets held from one ingress port at which it is paused.
    pub xoff: u64,
    /// Octets at which it is let go again; less than `xoff`.
    pub xon: u64,
    /// Pause time, in quanta of 512 bit times.
    pub quanta: u16,
}

/// A proxy node.
#[derive(Clone, Debug)]
pub struct Proxying {
    /// Its role's configuration.
    pub config: proxy::Config,
    /// How congestion points come to know of it.
    pub known_by: ProxyKnownBy,
    /// The senders that it serves: the prefixes it advertises.
    pub serves: Vec<Prefix>,
    /// Whose prefix has the flag, in IS-IS and OSPF.
    pub reading: Reading,
}

/// How congestion points come to know the proxy node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProxyKnownBy {
    /// By configuration (`congestion_point::Config::proxies`).
    #[serde(rename = "config")]
    Configuration,
    /// By the Proxy Network Node Address option, which the flow's sender puts into its data packets.
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
    /// Its role's configuration.
    pub config: ingress_pe::Config,
    /// How it encapsulates.
    pub tunnel: Tunnel,
}

/// How a provider edge carries packets to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tunnel {
    /// IPv6 in IPv6 with a segment routing header of one segment beside the egress PE's.
    Srv6,
    /// VXLAN over IPv6.
    Vxlan {
        /// Network identifier.
        vni: u32,
    },
    /// SR-MPLS: transport label, entropy label indicator and entropy label (the flow label), service label.
    SrMpls {
        /// Label of the egress PE.
        transport: u32,
        /// Label of the VPN at the egress PE.
        service: u32,
    },
}

/// A link, the same in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// One end.
    pub a: NodeId,
    /// The other.
    pub b: NodeId,
    /// Rate.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Ps,
}

impl Link {
    /// The end that is not `node`.
    #[must_use]
    pub const fn other_end(&self, node: NodeId) -> NodeId {
        if self.a == node { self.b } else { self.a }
    }
}

/// A reliable connection over which one side sends RDMA WRITE messages to the other.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Its name, unique.
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
    /// When the connection is set up (or, without RDMA CM, when data begin).
    pub start: Ps,
    /// When it stops posting messages; those under way are finished.
    pub stop: Ps,
    /// Messages to send; `None`: as many as fit before `stop`.
    pub messages: Option<u64>,
    /// Octets of a message.
    pub message: u32,
    /// Octets of payload a packet: 256, 512, 1024, 2048 or 4096.
    pub mtu: u16,
    /// Data packets that may be on the way unacknowledged.
    pub window: u32,
    /// The sender asks for an acknowledgement at least every so many packets, and at each message's end.
    pub ack_every: u32,
    /// How long the sender waits for an acknowledgement before it sends again.
    pub retransmit_timeout: Ps,
    /// Traffic class for PFC: 0 to 7.
    pub priority: u8,
    /// DSCP of its data packets.
    pub dscp: u8,
    /// Whether its packets are ECN-capable.
    pub ecn: bool,
    /// IOAM trace in its data packets.
    pub ioam: Option<IoamTrace>,
    /// Proxy Network Node Address option in its data packets.
    pub proxy_option: Option<Ipv6Addr>,
    /// Whether the connection is set up and taken down by RDMA CM.
    pub rdma_cm: bool,
    /// The most it sends, in bits per second of Ethernet frames; `None`: the link's rate.
    pub rate_limit: Option<Rate>,
}

impl Flow {
    /// What roles know it by.
    #[must_use]
    pub const fn key(&self) -> FlowKey {
        FlowKey {
            sender: self.source,
            receiver: self.destination,
            receiver_qp: self.receiver_qp,
        }
    }
}

/// IOAM trace that a flow's data packets carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoamTrace {
    /// Incremental trace instead of a pre-allocated one.
    pub incremental: bool,
    /// Nodes that find room.
    pub nodes: u8,
    /// Namespace.
    pub namespace: u16,
}

impl IoamTrace {
    /// What each node writes: hop limit and node identifier, interfaces, transit delay, namespace data (the link's load),
    /// queue depth.
    pub const TYPE: TraceType = TraceType::from_bits(0)
        .with(0)
        .with(1)
        .with(4)
        .with(5)
        .with(6);

    /// Opt Data Len of an IPv6 IOAM option whose trace holds `nodes` nodes' data; 255 is the most.
    #[must_use]
    pub const fn option_len(nodes: usize) -> usize {
        OPTION_PREFIX_LEN + TRACE_HEADER_LEN + nodes * Self::TYPE.node_len() * 4
    }
}

/// Where packets are captured: the port of `node` towards `peer`, both directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VantagePoint {
    /// The node whose port it is.
    pub node: NodeId,
    /// The link of that port.
    pub link: LinkId,
}

/// What goes wrong on a link.
#[derive(Clone, Debug)]
pub struct Fault {
    /// On which link.
    pub link: LinkId,
    /// Towards this node only; `None`: in both directions.
    pub towards: Option<NodeId>,
    /// From then on.
    pub start: Ps,
    /// Until then.
    pub stop: Ps,
    /// What.
    pub kind: FaultKind,
}

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultKind {
    /// Each packet is lost with this probability, 0 to 1.
    Loss(f64),
    /// Each packet is held back by `by` with this probability, and so overtaken.
    Reorder {
        /// Probability, 0 to 1.
        probability: f64,
        /// How long it is held back.
        by: Ps,
    },
    /// Nothing passes.
    Down,
}

/// Packets that a host sends beside its flows.
#[derive(Clone, Debug)]
pub struct Injection {
    /// The host that sends them.
    pub node: NodeId,
    /// The first one.
    pub start: Ps,
    /// How many.
    pub count: u64,
    /// Time between them.
    pub interval: Ps,
    /// What they are.
    pub what: Injected,
}

/// What is injected.
#[derive(Clone, Debug)]
pub enum Injected {
    /// Fast CNPs with option 1 about `flow`, with this source address.
    SpoofedFastCnp {
        /// About which flow.
        flow: FlowIndex,
        /// Claimed source.
        source: Ipv6Addr,
    },
    /// The first Fast CNP that anybody sent about `flow`, again and unchanged: a replay by somebody who overheard it.
    ReplayedFastCnp {
        /// About which flow.
        flow: FlowIndex,
    },
    /// CNPs about `flow`, as if from its receiver.
    SpoofedCnp {
        /// About which flow.
        flow: FlowIndex,
    },
    /// TCP segments to the receiver of `flow`, as long as its data packets and in their class: traffic that is not RoCEv2.
    Tcp {
        /// Beside which flow.
        flow: FlowIndex,
    },
    /// PFC frames that pause a class at the other end of this host's link: a pause storm of a defective NIC.
    Pause {
        /// The class.
        class: u8,
        /// Pause time in quanta of 512 bit times.
        quanta: u16,
    },
}
