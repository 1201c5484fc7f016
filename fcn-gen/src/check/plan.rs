//! The plan of a check: the frames to send, step by step, and the tests that each step serves.

use super::flows::LearntFlow;
use super::statements::{Statement, Test, tests};
use crate::device::{Enabled, Role};
use crate::scenario::model::{Flow, NodeId, NodeKind, Simulation};
use crate::sim::frames;
use crate::sim::live::LiveNode;
use crate::units::{Ps, Rate};
use fcn_node::reaction_point::Control;
use fcn_observe::FlowKey;
use fcn_wire::compose::{self, Part};
use fcn_wire::finding::Family;
use fcn_wire::{Kind, Rule, ip};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};
use std::ops::Range;

/// Octets that surround a frame on the wire: preamble, FCS, gap.
pub const WIRE_OVERHEAD: usize = 24;
/// A source address that is not on any access list (RFC 3849).
pub const UNTRUSTED_SOURCE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xbad, 0, 0, 0, 0, 1);
/// Maximum lateness of frames in a step in which milliseconds matter.
pub const PUNCTUAL: Ps = Ps::from_nanos(500_000);
/// Longer than any check.
const FOREVER: Ps = Ps(100_000 * Ps::SECOND.0);
/// Maximum length of a notification in octets.
const LONGEST: usize = fcn_wire::proxy_cn::MAX_IPV6_PACKET;

/// Earliest and latest possible time of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Earliest possible time.
    pub since: Ps,
    /// Latest possible time.
    pub at: Ps,
}

impl Span {
    /// Returns the shortest possible time since `earlier`.
    #[must_use]
    pub const fn shortest_since(self, earlier: Self) -> Ps {
        Ps(self.since.0.saturating_sub(earlier.at.0))
    }

    /// Returns the longest possible time since `earlier`.
    #[must_use]
    pub const fn longest_since(self, earlier: Self) -> Ps {
        Ps(self.at.0.saturating_sub(earlier.since.0))
    }
}

/// Returns the scenario of a role that does not fit the default one.
pub fn usual_config(role: Role) -> Option<&'static str> {
    match role {
        Role::Proxy => Some("proxy"),
        Role::IngressPe => Some("wan-fcn"),
        _ => None,
    }
}

/// Limits that the drafts leave to the operator. Times are the scenario's.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum notifications per second that one notifier may send about one flow.
    pub flow_rate: u32,
    /// Maximum time from a cause to the notification about it.
    pub latency: Ps,
    /// Minimum share, 0 to 1, of causes that are notified about in that time.
    pub share: f64,
}

impl Default for Limits {
    /// The rate that [`fcn_observe`] judges by; half a millisecond, less than the time in which a
    /// sender is to react; and half of the causes, as a device may limit all flows together.
    fn default() -> Self {
        Self {
            flow_rate: fcn_observe::rules::FLOW_RATE,
            latency: Ps::from_nanos(500_000),
            share: 0.5,
        }
    }
}

/// Subject and parameters of a check.
#[derive(Debug)]
pub struct Setup<'s> {
    /// The network that contains the device.
    pub simulation: &'s Simulation,
    /// The device's node.
    pub device: NodeId,
    /// The role in which it is tested.
    pub role: Role,
    /// True if the device is in its default configuration, with nothing enabled.
    pub off: bool,
    /// The limits that the operator sets.
    pub limits: Limits,
    /// The tests to run.
    pub wanted: BTreeSet<Test>,
    /// The device's link towards each node.
    towards: Vec<Option<usize>>,
}

/// A flow through the device, with the device's links on its path.
#[derive(Clone, Copy)]
pub struct FlowPath<'s> {
    /// The flow.
    pub flow: &'s Flow,
    /// Index of the ingress link.
    pub from: usize,
    /// Index of the egress link.
    pub to: usize,
}

impl<'s> Setup<'s> {
    /// Returns a source address on the sender's access list.
    pub fn listed(&self) -> Option<Ipv6Addr> {
        let NodeKind::Host(host) = &self.simulation.nodes[self.device].kind else {
            return None;
        };
        let mut list = host.reaction.access_list.iter();
        list.find_map(|prefix| match prefix.address() {
            IpAddr::V6(address) => Some(address),
            IpAddr::V4(_) => None,
        })
    }

    /// Returns the reason why the device's delays show nothing: this machine's are about as long as
    /// those that are judged.
    #[must_use]
    pub fn lateness(&self, plan: &Plan) -> Option<String> {
        plan.lateness(Ps(self.limits.latency.0 / 2))
    }

    /// Creates a setup with all tests of this role.
    #[must_use]
    pub fn new(simulation: &'s Simulation, device: NodeId, role: Role, off: bool) -> Self {
        let live = LiveNode::new(simulation, device, Vec::new(), None);
        let nodes = 0..simulation.nodes.len();
        Self {
            towards: nodes.map(|node| live.towards(node)).collect(),
            simulation,
            device,
            role,
            off,
            limits: Limits::default(),
            wanted: tests(&[role]).map(|(_, test)| test).collect(),
        }
    }

    /// Returns true if one of these statements is to be tested.
    #[must_use]
    pub fn wants(&self, statements: &[Statement]) -> bool {
        let mut statements = statements.iter();
        statements.any(|statement| self.wanted.contains(&Test::Statement(*statement)))
    }

    /// Returns true if a rule of these families that a single packet can break is to be tested.
    #[must_use]
    pub fn wants_family(&self, families: &[Family]) -> bool {
        self.wanted.iter().any(|test| match test {
            Test::Rule(rule) => {
                families.contains(&rule.info().family) && !Rule::MULTI_PACKET.contains(rule)
            }
            Test::Statement(_) => false,
        })
    }

    /// Returns true if one of these rules is to be tested.
    #[must_use]
    pub fn wants_rule(&self, rules: &[Rule]) -> bool {
        rules
            .iter()
            .any(|rule| self.wanted.contains(&Test::Rule(*rule)))
    }

    /// Returns true if the test concerns behaviour that the scenario gives the device: with one
    /// mechanism it sends no messages of another.
    #[must_use]
    pub fn applies(&self, test: Test) -> bool {
        let own = kinds(self);
        let flows = self
            .simulation
            .flows
            .iter()
            .filter(|flow| flow.from == self.device);
        let has = |kind: Kind| match self.role {
            Role::CongestionPoint | Role::Receiver => own.contains(&kind),
            Role::Proxy | Role::IngressPe => true,
            // Without an access list, a sender accepts no notifications.
            Role::Sender => {
                let mut flows = flows.clone();
                kind == Kind::FastCnp1
                    && self.listed().is_some()
                    && flows.any(|flow| flow.source.is_ipv6())
            }
        };
        match test {
            Test::Statement(statement) => {
                let kind = match test.id().split_once('.') {
                    _ if statement == Statement::CnpQp => Some(Kind::Cnp),
                    _ if statement.is_about_cnps() && self.role == Role::CongestionPoint => {
                        Some(Kind::FastCnp1)
                    }
                    Some(("fastcnp", _)) => Some(Kind::FastCnp1),
                    Some(("proxycn", _)) => Some(Kind::ProxyCn),
                    Some(("wanfcn", _)) => Some(Kind::WanFcn),
                    _ => None,
                };
                // The restrictions on a receiver's default configuration apply in every scenario.
                let is_receiver = self.role == Role::Receiver;
                let has = kind.is_none_or(has) || is_receiver && statement.is_off();
                let has = has
                    && match statement {
                        Statement::TraceOwnNode => self.writes_traces(),
                        // In a tunnel they all look alike.
                        Statement::CongestionData => !own.contains(&Kind::WanFcn),
                        _ => true,
                    };
                has && statement.is_off() == self.off
            }
            _ if self.off => false,
            Test::Rule(rule) => {
                let is_border = test.id().ends_with("border.crossed");
                let has = match rule.info().family {
                    Family::FastCnp => has(Kind::FastCnp1),
                    Family::ProxyCn => has(Kind::ProxyCn),
                    Family::WanFcn => has(Kind::WanFcn),
                    Family::Ioam if self.role == Role::Sender => {
                        flows.clone().any(|flow| flow.ioam.is_some())
                    }
                    Family::ProxyAddress => flows.clone().any(|flow| flow.proxy_option.is_some()),
                    Family::Roce | Family::Cnp | Family::Ioam
                        if self.role == Role::CongestionPoint =>
                    {
                        has(Kind::FastCnp1)
                    }
                    _ => true,
                };
                has && (!is_border || self.has_border())
            }
        }
    }

    /// Returns true if the device adds node data to IOAM traces, according to the scenario.
    fn writes_traces(&self) -> bool {
        match &self.simulation.nodes[self.device].kind {
            NodeKind::Switch(switch) => switch.ioam_node.is_some(),
            NodeKind::Host(_) => false,
        }
    }

    /// Returns the device's link towards a node.
    #[must_use]
    pub fn towards(&self, node: NodeId) -> Option<usize> {
        self.towards.get(node).copied().flatten()
    }

    /// Returns the flows through the device.
    #[must_use]
    pub fn flow_paths(&self) -> Vec<FlowPath<'s>> {
        let flows = self.simulation.flows.iter();
        let ways = flows.filter_map(|flow| {
            let (from, to) = (self.towards(flow.from)?, self.towards(flow.to)?);
            (from != to).then_some(FlowPath { flow, from, to })
        });
        ways.collect()
    }

    /// Returns the rate of a link of the device.
    #[must_use]
    pub fn rate(&self, link: usize) -> Rate {
        let mut links = LiveNode::links(self.simulation, self.device);
        let link = links.nth(link).unwrap_or(0);
        self.simulation.links[link].rate
    }

    /// Returns the neighbour at a link of the device.
    #[must_use]
    pub fn neighbour(&self, link: usize) -> NodeId {
        let mut links = LiveNode::links(self.simulation, self.device);
        let link = links.nth(link).unwrap_or(0);
        self.simulation.links[link].other_end(self.device)
    }

    /// Returns true if the device has a neighbour outside of its domain.
    #[must_use]
    pub fn has_border(&self) -> bool {
        let links = LiveNode::links(self.simulation, self.device).enumerate();
        links
            .into_iter()
            .any(|(link, _)| !self.is_inside(self.neighbour(link)))
    }

    /// Returns true if a node is in the device's domain.
    #[must_use]
    pub fn is_inside(&self, node: NodeId) -> bool {
        let nodes = &self.simulation.nodes;
        nodes[node].domain == nodes[self.device].domain
    }
}

/// Builds a frame about a flow of the device.
pub type MakeAbout = Box<dyn Fn(&LearntFlow) -> Option<Vec<u8>>>;

/// Content of a planned frame.
pub enum FrameContent {
    /// These octets.
    Octets(Vec<u8>),
    /// Built when the device has sent data of several flows, from the one with this index.
    Learnt {
        /// Index of the flow, in the order of their first packets.
        flow: usize,
        /// Builds the frame.
        make: MakeAbout,
    },
    /// Built when the outer flow label that the device assigns to a flow is known.
    Labelled {
        /// The flow.
        flow: FlowKey,
        /// Builds the frame from the label.
        make: Box<dyn Fn(u32) -> Option<Vec<u8>>>,
    },
}

/// A frame to send.
pub struct Planned {
    /// Time of sending.
    pub at: Ps,
    /// The device's link on which it arrives.
    pub link: usize,
    /// The content.
    pub content: FrameContent,
}

/// A data packet of the plan.
#[derive(Clone, Debug)]
pub struct DataSent {
    /// The flow. Its QP is used by no other packet, except those of one step.
    pub flow: FlowKey,
    /// The device's link to the sender, if the sender is a neighbour.
    pub link: Option<usize>,
    /// UDP source port.
    pub port: u16,
    /// ECN field; with a tunnel, that of the outer header.
    pub ecn: u8,
    /// The IOAM trace in the packet.
    pub trace: Option<Vec<u8>>,
    /// Outer flow label, and the tunnel's start address.
    pub outer: Option<(u32, Ipv6Addr)>,
    /// The packet from its own IP header on.
    pub packet: Vec<u8>,
    /// Its PSN: its index among the plan's data.
    pub number: u32,
    /// True if it is one of many packets of its flow.
    pub is_of_many: bool,
}

/// A packet of the plan about which nobody is to be notified.
#[derive(Clone, Copy, Debug)]
pub struct OtherSent {
    /// Its kind.
    pub what: &'static str,
    /// Its addresses, and the QP that is named nowhere else.
    pub key: FlowKey,
    /// Its UDP source port, which no data packet has.
    pub port: u16,
}

/// A step of a check.
#[derive(Clone, Debug)]
pub struct Step {
    /// Identifier of the step.
    pub id: &'static str,
    /// Description of the step.
    pub description: String,
    /// Time of the step.
    pub time: Range<Ps>,
    /// Number of frames sent by the plan itself, without those of played nodes.
    pub frames: usize,
    /// Maximum time by which this machine sent frames too late, of the plan and of played nodes.
    pub late: Ps,
}

/// The plan of a check.
pub struct Plan {
    /// The device.
    pub device: NodeId,
    /// The nodes played around the device.
    pub peers: Vec<NodeId>,
    /// The frames, in the order of time.
    pub frames: Vec<Planned>,
    /// The steps.
    pub steps: Vec<Step>,
    /// The data packets among the frames.
    pub sent: Vec<DataSent>,
    /// Packets among the frames about which nobody is to be notified.
    pub others: Vec<OtherSent>,
    /// Periods in which data of played nodes are marked CE on their way to the device.
    pub marks: Vec<Range<Ps>>,
    /// True if frames depend on the device's flows.
    pub learns_flows: bool,
    /// The device's flows.
    pub flows: Vec<LearntFlow>,
    /// True if frames depend on the device's flow labels.
    pub learns_labels: bool,
    /// True if the plan begins with the device's first packet, because there is no sender to notify
    /// before.
    pub waits: bool,
    /// Maximum lateness of a step's frames, if the verdict depends on their times.
    pub punctual: Option<Ps>,
    /// The steps that do not count because this machine sent their frames too late: their
    /// identifiers, and the maximum lateness.
    pub late: Vec<(&'static str, Ps)>,
    /// End of the plan.
    pub end: Ps,
}

impl Plan {
    /// Creates an empty plan.
    #[must_use]
    pub const fn new(device: NodeId) -> Self {
        Self {
            device,
            peers: Vec::new(),
            frames: Vec::new(),
            steps: Vec::new(),
            sent: Vec::new(),
            others: Vec::new(),
            marks: Vec::new(),
            learns_flows: false,
            flows: Vec::new(),
            learns_labels: false,
            waits: false,
            punctual: None,
            late: Vec::new(),
            end: Ps(0),
        }
    }

    /// Appends a step of that length with its frames.
    pub fn step(&mut self, id: &'static str, description: String, lasts: Ps, frames: Vec<Planned>) {
        let begin = self.end;
        self.end = begin + lasts;
        self.steps.push(Step {
            id,
            description,
            time: begin..self.end,
            frames: frames.len(),
            late: Ps(0),
        });
        self.frames.extend(frames);
        self.frames.sort_by_key(|planned| planned.at);
    }

    /// Returns the length of the plan's longest frame in octets.
    #[must_use]
    pub fn longest(&self) -> usize {
        let lengths = self.frames.iter().map(|planned| match &planned.content {
            FrameContent::Octets(bytes) => bytes.len(),
            FrameContent::Labelled { .. } | FrameContent::Learnt { .. } => 0,
        });
        lengths.max().unwrap_or(0)
    }

    /// Returns the reason why a completed plan lacks a step.
    #[must_use]
    pub fn missing(&self) -> String {
        match self.late.iter().max_by_key(|(_, late)| *late) {
            Some((step, late)) => was_late(step, *late),
            None => "its step was not completed".to_owned(),
        }
    }

    /// Returns the reason why the times of a completed plan's frames show nothing, if this machine
    /// was later than `most`: it may have been too late for the device's frames, too.
    #[must_use]
    pub fn lateness(&self, most: Ps) -> Option<String> {
        let late = self.steps.iter().map(|step| (step.late, step.id)).max()?;
        (late.0 > most).then(|| was_late(late.1, late.0))
    }

    /// Returns the time of a step, if the plan has it.
    #[must_use]
    pub fn time(&self, id: &str) -> Option<Range<Ps>> {
        let step = self.steps.iter().find(|step| step.id == id)?;
        Some(step.time.clone())
    }
}

fn was_late(step: &str, late: Ps) -> String {
    format!(
        "this machine was late: in step {step} it sent up to {late} after the planned time (a lower \
         --speed helps)"
    )
}

/// Returns the scenario as it is played around the device: no other node notifies or reacts, and
/// flows are slow enough not to meet congestion.
#[must_use]
pub fn test_network(simulation: &Simulation, device: NodeId) -> Simulation {
    let mut simulation = simulation.clone();
    simulation.duration = FOREVER;
    for (index, node) in simulation.nodes.iter_mut().enumerate() {
        if index == device {
            continue;
        }
        Enabled::default().restrict(node);
        match &mut node.kind {
            NodeKind::Host(host) => {
                host.notification = None;
                host.reaction.control = Control::Fixed;
            }
            NodeKind::Switch(switch) => switch.congestion.ecn = false,
        }
    }
    let slowest = simulation.links.iter().map(|link| link.rate).min();
    let share =
        |rate: Rate| Rate::new(rate.bits_per_second() / 2 / simulation.flows.len().max(1) as u64);
    let limit = slowest.and_then(share);
    let forever = simulation.duration;
    for flow in &mut simulation.flows {
        if flow.from != device {
            flow.rate_limit = limit;
        }
        flow.messages = None;
        flow.stop = forever;
    }
    simulation.injections.clear();
    simulation.faults.clear();
    simulation
}

/// Puts an IP packet into a frame, with the MAC addresses that the scenario gives these nodes.
#[must_use]
pub fn framed((from, to): (NodeId, NodeId), packet: &[u8]) -> Vec<u8> {
    let is_v4 = packet.first().is_some_and(|first| first >> 4 == 4);
    let parts = [
        Part::Ethernet {
            source: frames::mac(from),
            destination: frames::mac(to),
        },
        Part::Payload {
            ether_type: if is_v4 { 0x0800 } else { 0x86DD },
            protocol: 0,
            bytes: packet,
        },
    ];
    compose::packet(&parts, &fcn_wire::Profile::DEFAULT).unwrap_or_default()
}

/// Returns the IP packet written by an emitter.
pub fn emit_packet(write: impl FnOnce(&mut [u8]) -> fcn_wire::Result<usize>) -> Vec<u8> {
    let mut out = vec![0; LONGEST];
    let len = write(&mut out).unwrap_or_default();
    out.truncate(len);
    out
}

/// Returns the kinds of notification that the device sends because of congestion, according to the
/// scenario.
#[must_use]
pub fn kinds(setup: &Setup<'_>) -> Vec<Kind> {
    match &setup.simulation.nodes[setup.device].kind {
        NodeKind::Switch(switch) => {
            let config = &switch.congestion;
            let all = [
                (config.fast_cnp, Kind::FastCnp1),
                (config.proxy, Kind::ProxyCn),
                (config.wan_fcn, Kind::WanFcn),
            ];
            let on = all.into_iter().filter(|(on, _)| *on);
            on.map(|(_, kind)| kind).collect()
        }
        NodeKind::Host(host) => {
            let fast = host.notification.is_some_and(|point| point.fast_cnp);
            vec![if fast { Kind::FastCnp1 } else { Kind::Cnp }]
        }
    }
}

/// Returns the octets of an IP packet with the fields that routers may change set to 0: ECN, hop
/// limit, IPv4's header checksum.
#[must_use]
pub fn mask_mutable_fields(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    ip::set_traffic_class(&mut packet, 0, 3);
    ip::set_hop_limit(&mut packet, 0);
    if packet.first().is_some_and(|first| first >> 4 == 4)
        && let Some(checksum) = packet.get_mut(10..12)
    {
        checksum.fill(0);
    }
    packet
}
