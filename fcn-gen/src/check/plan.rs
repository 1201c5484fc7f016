//! What a check is going to send, step by step, and which tests each step is for.

use super::statements::{Statement, Test, tests};
use crate::emulate::{Enabled, Role};
use crate::scenario::model::{Flow, NodeId, NodeKind, Simulation};
use crate::sim::frames;
use crate::sim::live::LiveNode;
use crate::units::{Ps, Rate};
use fcn_node::reaction_point::Control;
use fcn_observe::FlowKey;
use fcn_wire::compose::{self, Part};
use fcn_wire::emit::Carrier;
use fcn_wire::finding::Family;
use fcn_wire::{Kind, Rule, emit, ip};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};
use std::ops::Range;

/// Octets around a frame on the wire: preamble, FCS, gap.
pub const AROUND: usize = 24;
/// An address that nobody trusts (RFC 3849).
pub const STRANGER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xbad, 0, 0, 0, 0, 1);
/// As late as frames may be of a step in which milliseconds count.
pub const PUNCTUAL: Ps = Ps::from_nanos(500_000);
/// Longer than any check.
const FOREVER: Ps = Ps(100_000 * Ps::SECOND.0);
/// The longest notification.
const LONGEST: usize = fcn_wire::proxy_cn::MAX_IPV6_PACKET;

/// What is tested, and how.
#[derive(Debug)]
pub struct Setup<'s> {
    /// The network that the device is a node of.
    pub simulation: &'s Simulation,
    /// Which node.
    pub device: NodeId,
    /// As what.
    pub role: Role,
    /// Whether it is as it was delivered, nothing enabled.
    pub off: bool,
    /// Notifications a second that one notifier may send about one flow.
    pub flow_rate: u32,
    /// The tests to do.
    pub wanted: BTreeSet<Test>,
    /// By node: the device's link towards it.
    towards: Vec<Option<usize>>,
}

/// A flow through the device, and the device's links that it comes and goes by.
#[derive(Clone, Copy)]
pub struct Way<'s> {
    /// The flow.
    pub flow: &'s Flow,
    /// Where it comes from.
    pub from: usize,
    /// Where it goes.
    pub to: usize,
}

impl<'s> Setup<'s> {
    /// A source that the sender believes.
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

    /// Every test that this role has, on this device.
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
            flow_rate: fcn_observe::rules::FLOW_RATE,
            wanted: tests(&[role]).map(|(_, test)| test).collect(),
        }
    }

    /// Whether one of these statements is to be tested.
    #[must_use]
    pub fn wants(&self, statements: &[Statement]) -> bool {
        let mut statements = statements.iter();
        statements.any(|statement| self.wanted.contains(&Test::Statement(*statement)))
    }

    /// Whether a rule of these families is to be tested that one packet can break.
    #[must_use]
    pub fn wants_family(&self, families: &[Family]) -> bool {
        self.wanted.iter().any(|test| match test {
            Test::Rule(rule) => {
                families.contains(&rule.info().family) && !Rule::SEVERAL.contains(rule)
            }
            Test::Statement(_) => false,
        })
    }

    /// Whether one of these rules is to be tested.
    #[must_use]
    pub fn wants_rule(&self, rules: &[Rule]) -> bool {
        rules
            .iter()
            .any(|rule| self.wanted.contains(&Test::Rule(*rule)))
    }

    /// Whether the scenario has the device do what a test is about: with one mechanism it sends no messages of another.
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
            // Without an access list it believes nobody.
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
                    Some(("fastcnp", _)) => Some(Kind::FastCnp1),
                    Some(("proxycn", _)) => Some(Kind::ProxyCn),
                    Some(("wanfcn", _)) => Some(Kind::WanFcn),
                    _ => None,
                };
                // That a receiver must not do it by default holds whatever the scenario has it do.
                let is_receiver = self.role == Role::Receiver;
                let has = kind.is_none_or(has) || is_receiver && statement.is_off();
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

    /// The device's link towards a node.
    #[must_use]
    pub fn towards(&self, node: NodeId) -> Option<usize> {
        self.towards.get(node).copied().flatten()
    }

    /// The flows through the device.
    #[must_use]
    pub fn ways(&self) -> Vec<Way<'s>> {
        let flows = self.simulation.flows.iter();
        let ways = flows.filter_map(|flow| {
            let (from, to) = (self.towards(flow.from)?, self.towards(flow.to)?);
            (from != to).then_some(Way { flow, from, to })
        });
        ways.collect()
    }

    /// The rate of a link of the device.
    #[must_use]
    pub fn rate(&self, link: usize) -> Rate {
        let mut links = LiveNode::links(self.simulation, self.device);
        let link = links.nth(link).unwrap_or(0);
        self.simulation.links[link].rate
    }

    /// The neighbour at a link of the device.
    #[must_use]
    pub fn neighbour(&self, link: usize) -> NodeId {
        let mut links = LiveNode::links(self.simulation, self.device);
        let link = links.nth(link).unwrap_or(0);
        self.simulation.links[link].other_end(self.device)
    }

    /// Whether the device has a neighbour outside of its domain.
    #[must_use]
    pub fn has_border(&self) -> bool {
        let links = LiveNode::links(self.simulation, self.device).enumerate();
        links
            .into_iter()
            .any(|(link, _)| !self.is_inside(self.neighbour(link)))
    }

    /// Whether a node is in the device's domain.
    #[must_use]
    pub fn is_inside(&self, node: NodeId) -> bool {
        let nodes = &self.simulation.nodes;
        nodes[node].domain == nodes[self.device].domain
    }
}

/// What a frame of the plan is.
pub enum What {
    /// These octets.
    Octets(Vec<u8>),
    /// Made of the outer flow label that the device gives a flow.
    Labelled {
        /// The flow.
        flow: FlowKey,
        /// Makes it.
        make: Box<dyn Fn(u32) -> Option<Vec<u8>>>,
    },
}

/// A frame to send.
pub struct Planned {
    /// When.
    pub at: Ps,
    /// By which link of the device.
    pub link: usize,
    /// What.
    pub what: What,
}

/// A data packet that is going to be sent.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The flow, whose QP no other packet has but those of one step.
    pub flow: FlowKey,
    /// The device's link that the sender itself is at the other end of, if it is.
    pub link: Option<usize>,
    /// UDP source port.
    pub port: u16,
    /// ECN field, the outer one where there is a tunnel.
    pub ecn: u8,
    /// The trace in it.
    pub trace: Option<Vec<u8>>,
    /// The outer flow label, and the tunnel's beginning.
    pub outer: Option<(u32, Ipv6Addr)>,
    /// The packet from its own IP header on.
    pub packet: Vec<u8>,
}

/// A step: what is done, to see what.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its name.
    pub id: &'static str,
    /// What is done.
    pub what: String,
    /// When.
    pub time: Range<Ps>,
    /// Frames that the plan sends in it, beside those of nodes that are played.
    pub frames: usize,
}

/// What is going to be done.
pub struct Plan {
    /// The device.
    pub device: NodeId,
    /// The nodes that are played around it.
    pub peers: Vec<NodeId>,
    /// The frames, by time.
    pub frames: Vec<Planned>,
    /// The steps.
    pub steps: Vec<Step>,
    /// Data packets among the frames.
    pub sent: Vec<Sent>,
    /// When data of nodes that are played are marked CE on their way to the device.
    pub marks: Option<Range<Ps>>,
    /// Whether frames need the device's labels.
    pub learns_labels: bool,
    /// Whether it begins with the device's first packet: before it there is nobody to tell.
    pub waits: bool,
    /// How late a step's frames may be sent at most, where its verdict depends on when they were.
    pub punctual: Option<Ps>,
    /// When it is over.
    pub end: Ps,
}

impl Plan {
    /// Nothing yet.
    #[must_use]
    pub const fn new(device: NodeId) -> Self {
        Self {
            device,
            peers: Vec::new(),
            frames: Vec::new(),
            steps: Vec::new(),
            sent: Vec::new(),
            marks: None,
            learns_labels: false,
            waits: false,
            punctual: None,
            end: Ps(0),
        }
    }

    /// Adds a step of that length at the end, with its frames.
    pub fn step(&mut self, id: &'static str, what: String, lasts: Ps, frames: Vec<Planned>) {
        let begin = self.end;
        self.end = begin + lasts;
        self.steps.push(Step {
            id,
            what,
            time: begin..self.end,
            frames: frames.len(),
        });
        self.frames.extend(frames);
        self.frames.sort_by_key(|planned| planned.at);
    }

    /// Octets of the longest frame of its own.
    #[must_use]
    pub fn longest(&self) -> usize {
        let lengths = self.frames.iter().map(|planned| match &planned.what {
            What::Octets(bytes) => bytes.len(),
            What::Labelled { .. } => 0,
        });
        lengths.max().unwrap_or(0)
    }

    /// When a step takes place, where it does.
    #[must_use]
    pub fn time(&self, id: &str) -> Option<Range<Ps>> {
        let step = self.steps.iter().find(|step| step.id == id)?;
        Some(step.time.clone())
    }
}

/// The scenario as it is played around the device: nobody but the device notifies or reacts, and flows are slow enough to pass
/// unhindered.
#[must_use]
pub fn surroundings(simulation: &Simulation, device: NodeId) -> Simulation {
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

/// A frame of an IP packet, from and to the MAC addresses that the scenario has for these nodes.
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

/// The IP packet that an emitter writes.
pub fn emitted(write: impl FnOnce(&mut [u8]) -> fcn_wire::Result<usize>) -> Vec<u8> {
    let mut out = vec![0; LONGEST];
    let len = write(&mut out).unwrap_or_default();
    out.truncate(len);
    out
}

/// A plain CNP about the sender's QP of `flow`, from its receiver.
#[must_use]
pub fn cnp(simulation: &Simulation, flow: &Flow) -> Vec<u8> {
    let carrier = Carrier::new(flow.destination, flow.source);
    let cnp = fcn_wire::cnp::CnpRepr::new(flow.sender_qp);
    emitted(|out| emit::cnp(&carrier, &cnp, &simulation.profile, out))
}

/// The kinds of notification that the device sends because of congestion, by the scenario.
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

/// Octets of an IP packet with what may change on the way taken as 0: ECN, hop limit, IPv4's header checksum.
#[must_use]
pub fn unchanging(packet: &[u8]) -> Vec<u8> {
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
