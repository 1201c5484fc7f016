//! The environment of a device under test: frames sent to it at given times, scenario nodes that
//! respond to it, and a record of all traffic. Frames and the time come in, frames go out; nothing
//! here waits or reads a clock.

use super::flows::FlowLearner;
use super::neighbour::Question;
use super::plan::{FrameContent, Plan, Span};
use crate::scenario::model::{NodeId, NodeKind, Simulation};
use crate::sim::frames;
use crate::sim::live::LiveNode;
use crate::units::Ps;
use fcn_observe::{DataPacket, Ecn, FlowKey};
use fcn_tool::quantity::counted;
use fcn_wire::header::ethernet;
use fcn_wire::{Frame, LinkType, Notification, Profile, ip};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::net::IpAddr;
use std::ops::Range;

/// Maximum number of frames in a record; further frames are only counted.
const MOST_FRAMES: usize = 1 << 19;
/// Maximum number of octets in a record.
const MOST_OCTETS: usize = 1 << 29;

/// A frame on a link of the device.
#[derive(Clone, Debug)]
pub struct LinkFrame {
    /// Latest possible time of arrival, or the time of sending.
    pub at: Ps,
    /// Earliest possible time of arrival: the link was last found empty then.
    pub since: Ps,
    /// Index of the device's link.
    pub link: usize,
    /// True if the device sent it.
    pub by_device: bool,
    octets: Range<usize>,
}

impl LinkFrame {
    /// Returns the possible times of the frame.
    #[must_use]
    pub const fn span(&self) -> Span {
        Span {
            since: self.since,
            at: self.at,
        }
    }
}

/// Statistics of a link at the end.
#[derive(Serialize)]
pub struct LinkReport {
    /// The interface.
    pub interface: String,
    /// The node played on it.
    pub peer: String,
    /// Method of sending and receiving frames.
    pub mode: String,
    /// Frames that the link did not accept.
    pub refused: u64,
    /// Received frames lost because they were not read in time; null if unknown.
    pub lost: Option<u64>,
}

/// All frames on the device's links, in order.
#[derive(Debug, Default)]
pub struct Record {
    /// The frames.
    pub frames: Vec<LinkFrame>,
    octets: Vec<u8>,
    /// Frames not recorded because a limit was reached.
    pub unrecorded: u64,
    /// Frames of the device that this machine lost before it read them, as far as known.
    pub lost_here: u64,
}

impl Record {
    /// Adds a frame, unless a limit is reached: its latest and earliest possible time, its link,
    /// and whether the device sent it.
    pub fn add(&mut self, (at, since): (Ps, Ps), link: usize, by_device: bool, bytes: &[u8]) {
        if self.frames.len() >= MOST_FRAMES || self.octets.len() + bytes.len() > MOST_OCTETS {
            self.unrecorded += 1;
            return;
        }
        let begin = self.octets.len();
        self.octets.extend_from_slice(bytes);
        self.frames.push(LinkFrame {
            at,
            since,
            link,
            by_device,
            octets: begin..self.octets.len(),
        });
    }

    /// Returns the reason why a missing frame of the device shows nothing.
    #[must_use]
    pub fn loss(&self) -> String {
        let lost = counted(self.lost_here, "frame");
        format!("this machine was late: it lost {lost} before it read them (a lower --speed helps)")
    }

    /// Returns the octets of a frame.
    #[must_use]
    pub fn bytes(&self, frame: &LinkFrame) -> &[u8] {
        self.octets.get(frame.octets.clone()).unwrap_or_default()
    }

    /// Returns the frames, each with its index and octets.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &LinkFrame, &[u8])> {
        let frames = self.frames.iter().enumerate();
        frames.map(|(index, frame)| (index, frame, self.bytes(frame)))
    }
}

/// Far end of a link of a played node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Device(usize),
    Node(usize, usize),
}

struct Peer<'s> {
    node: NodeId,
    live: LiveNode<'s>,
    /// Far end of each link of the node.
    ends: Vec<Option<End>>,
}

/// A frame in transit: its time of arrival, its sequence number, and its destination.
type InTransit = Reverse<(Ps, u64, bool, usize, usize, Vec<u8>)>;

/// The environment of a device.
pub struct Bench<'s> {
    simulation: &'s Simulation,
    plan: Plan,
    peers: Vec<Peer<'s>>,
    /// Index of the next frame of the plan.
    next: usize,
    macs: Vec<[u8; 6]>,
    device_mac: Option<[u8; 6]>,
    in_transit: BinaryHeap<InTransit>,
    number: u64,
    outgoing: Vec<(usize, Vec<u8>)>,
    /// Outer flow labels that the device assigns to flows, if the plan needs them.
    labels: BTreeMap<FlowKey, u32>,
    /// The device's link to each address of another node.
    reach: HashMap<IpAddr, usize>,
    /// The device's MAC addresses on its links, if it has asked for one of ours.
    learnt_macs: Vec<Option<[u8; 6]>>,
    /// The device's flows, if the plan needs them.
    flows: FlowLearner<'s>,
    /// Maximum lateness of the frames sent in each step.
    late: Vec<Ps>,
    /// The frames so far.
    pub record: Record,
    now: Ps,
}

impl<'s> Bench<'s> {
    /// Creates the environment of `device`, with the bench's MAC addresses on the device's links.
    /// `simulation` is the plan's own: behaviour that its nodes must not show is disabled there.
    #[must_use]
    pub fn new(
        simulation: &'s Simulation,
        device: NodeId,
        macs: &[[u8; 6]],
        device_mac: Option<[u8; 6]>,
        plan: Plan,
    ) -> Self {
        let own_links: Vec<usize> = LiveNode::links(simulation, device).collect();
        let is_host = matches!(simulation.nodes[device].kind, NodeKind::Host(_));
        let peers = plan.peers.iter().map(|node| {
            let links: Vec<usize> = LiveNode::links(simulation, *node).collect();
            let end = |link: &usize| {
                if is_host {
                    // The hosts are directly connected to a host under test.
                    return Some(End::Device(0));
                }
                if let Some(frame) = own_links.iter().position(|own| own == link) {
                    return Some(End::Device(frame));
                }
                let other = simulation.links[*link].other_end(*node);
                let peer = plan.peers.iter().position(|peer| *peer == other)?;
                let place = LiveNode::links(simulation, other).position(|l| l == *link)?;
                Some(End::Node(peer, place))
            };
            let ends: Vec<_> = links.iter().map(end).collect();
            let mac = |end: &Option<End>| match end {
                Some(End::Device(own)) => macs.get(*own).copied(),
                _ => None,
            };
            let own_macs = ends.iter();
            let own_macs = own_macs.map(|end| mac(end).unwrap_or(frames::mac(*node)));
            Peer {
                node: *node,
                live: LiveNode::new(simulation, *node, own_macs.collect(), device_mac),
                ends,
            }
        });
        let late = vec![Ps(0); plan.steps.len()];
        Self {
            simulation,
            peers: peers.collect(),
            plan,
            next: 0,
            macs: macs.to_vec(),
            device_mac,
            in_transit: BinaryHeap::new(),
            number: 0,
            outgoing: Vec::new(),
            labels: BTreeMap::new(),
            reach: reach(simulation, device),
            learnt_macs: vec![None; own_links.len()],
            flows: FlowLearner::new(simulation),
            late,
            record: Record::default(),
            now: Ps(0),
        }
    }

    /// Processes a frame sent by the device on its `link`. It arrived after `since`, when the link
    /// was empty.
    pub fn on_frame(&mut self, now: Ps, since: Ps, link: usize, bytes: &[u8]) {
        self.on_timer(now);
        self.record.add((now, since), link, true, bytes);
        if let Some(question) = Question::from_frame(bytes) {
            self.answer(link, &question, bytes);
        }
        if self.plan.learns_flows {
            self.flows.learn(&parse(bytes, &self.simulation.profile));
        }
        if self.plan.learns_labels {
            let frame = parse(bytes, &self.simulation.profile);
            let data = DataPacket::from_frame(&frame);
            if let Some((data, outer)) = data.and_then(|data| Some((data, data.outer?))) {
                let flow = data.flow();
                if self.simulation.flows.iter().any(|own| own.key() == flow) {
                    self.labels.insert(flow, outer.flow_label);
                }
            }
        }
        let is_host = matches!(
            self.simulation.nodes[self.plan.device].kind,
            NodeKind::Host(_)
        );
        for index in 0..self.peers.len() {
            let peer = &mut self.peers[index];
            let place = if is_host {
                let own = &self.simulation.nodes[peer.node];
                let to = destination(bytes, &self.simulation.profile);
                (to == Some(own.ipv6.into()) || to == Some(own.ipv4.into())).then_some(0)
            } else {
                let mut ends = peer.ends.iter();
                ends.position(|end| *end == Some(End::Device(link)))
            };
            if let Some(place) = place {
                peer.live.on_frame(now, place, bytes);
                self.take(index);
            }
        }
        self.on_timer(now);
    }

    /// Processes all due events.
    pub fn on_timer(&mut self, now: Ps) {
        self.now = now;
        loop {
            let Some(at) = self.next_timer().filter(|at| *at <= now) else {
                return;
            };
            let mut steps = self.plan.steps.iter_mut();
            if let Some(step) = steps.find(|step| step.time.contains(&at)) {
                step.late = step.late.max(now.since(at));
            }
            for index in 0..self.peers.len() {
                self.peers[index].live.on_timer(at);
                self.take(index);
            }
            while let Some(Reverse((due, ..))) = self.in_transit.peek()
                && *due <= at
            {
                let Some(Reverse((due, _, to_device, who, link, bytes))) = self.in_transit.pop()
                else {
                    break;
                };
                if to_device {
                    self.send(link, bytes);
                } else {
                    self.peers[who].live.on_frame(due, link, &bytes);
                    self.take(who);
                }
            }
            while let Some(planned) = self.plan.frames.get(self.next)
                && planned.at <= at
            {
                let (link, late) = (planned.link, now.since(planned.at));
                let mut steps = self.plan.steps.iter().zip(&mut self.late);
                if let Some((_, worst)) = steps.find(|(step, _)| step.time.contains(&planned.at)) {
                    *worst = late.max(*worst);
                }
                let bytes = match &planned.content {
                    FrameContent::Octets(bytes) => Some(bytes.clone()),
                    FrameContent::Learnt { flow, make } => {
                        self.flows.flows.get(*flow).and_then(make)
                    }
                    FrameContent::Labelled { flow, make } => {
                        self.labels.get(flow).and_then(|l| make(*l))
                    }
                };
                self.next += 1;
                if let Some(bytes) = bytes {
                    self.send(link, bytes);
                }
            }
        }
    }

    /// Returns the time of the next event.
    pub fn next_timer(&mut self) -> Option<Ps> {
        let peers = self.peers.iter_mut();
        let timers = peers.filter_map(|peer| peer.live.next_timer());
        let planned = self.plan.frames.get(self.next).map(|planned| planned.at);
        let arrival = self.in_transit.peek().map(|next| next.0.0);
        timers.chain(planned).chain(arrival).min()
    }

    /// Returns the frames to send now, each with the device's link.
    pub fn take_outgoing(&mut self) -> std::vec::Drain<'_, (usize, Vec<u8>)> {
        self.outgoing.drain(..)
    }

    /// Returns true if the plan is complete.
    #[must_use]
    pub fn is_over(&self, now: Ps) -> bool {
        now >= self.plan.end
    }

    /// The plan.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The code points in use.
    #[must_use]
    pub const fn profile(&self) -> &'s Profile {
        &self.simulation.profile
    }

    /// Returns the plan with the steps completed by then, and the record. If the plan requires
    /// punctuality, steps sent too late are removed.
    #[must_use]
    pub fn end(mut self, until: Ps) -> (Plan, Record) {
        let most = self.plan.punctual.unwrap_or(Ps::MAX);
        let mut late = self.late.iter();
        let left_out = &mut self.plan.late;
        self.plan.steps.retain(|step| {
            let late = late.next().copied().unwrap_or_default();
            if late > most {
                left_out.push((step.id, late));
            }
            step.time.end <= until && late <= most
        });
        self.plan.flows = self.flows.flows;
        (self.plan, self.record)
    }

    /// Returns the reason why a played node cannot continue, if there is one.
    pub fn failure(&mut self) -> Option<String> {
        self.peers.iter_mut().find_map(|peer| peer.live.failure())
    }

    fn send(&mut self, link: usize, mut bytes: Vec<u8>) {
        if self
            .plan
            .marks
            .iter()
            .any(|marks| marks.contains(&self.now))
        {
            let is_data = {
                let frame = parse(&bytes, &self.simulation.profile);
                DataPacket::from_frame(&frame).is_some_and(|data| data.ecn.is_ect())
            };
            if is_data {
                let ce = Ecn::Ce.bits();
                ip::set_traffic_class(bytes.get_mut(ethernet::LEN..).unwrap_or_default(), ce, ce);
            }
        }
        if let (Some(own), Some(place)) = (self.macs.get(link), bytes.get_mut(6..12)) {
            place.copy_from_slice(own);
        }
        let is_group = bytes.first().is_some_and(|first| first & 1 == 1);
        let learnt = self.learnt_macs.get(link).copied().flatten();
        let mac = self.device_mac.or(learnt);
        if let (Some(mac), false, Some(place)) = (mac, is_group, bytes.get_mut(..6)) {
            place.copy_from_slice(&mac);
        }
        if self.plan.learns_flows {
            self.flows.learn(&parse(&bytes, &self.simulation.profile));
        }
        self.outgoing.push((link, bytes));
    }

    /// Records a frame that was handed to the link after `since`.
    pub fn on_sent(&mut self, since: Ps, link: usize, bytes: &[u8]) {
        self.record.add((since, since), link, false, bytes);
    }

    /// Records that all frames handed over have been sent by `now`.
    pub fn on_flushed(&mut self, now: Ps) {
        let frames = self.record.frames.iter_mut().rev();
        for frame in frames.take_while(|frame| !frame.by_device) {
            if frame.at != frame.since {
                break;
            }
            frame.at = now;
        }
    }

    /// Answers a device that asks for the MAC address of a node on that link.
    fn answer(&mut self, link: usize, question: &Question, bytes: &[u8]) {
        if self.reach.get(&question.target) != Some(&link) {
            return;
        }
        if let Some(place) = self.learnt_macs.get_mut(link) {
            *place = Some(question.asker);
        }
        let own = self.macs.get(link).copied();
        if let Some(answer) = own.and_then(|own| question.answer(bytes, own)) {
            self.outgoing.push((link, answer));
        }
    }

    /// Delivers the frames sent by a played node.
    fn take(&mut self, index: usize) {
        let Peer { live, ends, node } = &mut self.peers[index];
        let is_switch = matches!(self.simulation.nodes[*node].kind, NodeKind::Switch(_));
        let mut leaving = Vec::new();
        live.take_outgoing(&mut leaving);
        for frame in leaving {
            let bytes = <[&[u8]; 2]>::from(frame.parts()).concat();
            // Played nodes notify nobody: this is the device's own, on its way back.
            let is_to_device = matches!(ends.get(frame.link), Some(Some(End::Device(_))));
            if is_to_device && is_switch && is_notification(&bytes, &self.simulation.profile) {
                continue;
            }
            let (to_device, who, link) = match ends.get(frame.link) {
                Some(Some(End::Device(link))) => (true, 0, *link),
                Some(Some(End::Node(peer, place))) => (false, *peer, *place),
                _ => continue,
            };
            self.number += 1;
            let next = (frame.at, self.number, to_device, who, link, bytes);
            self.in_transit.push(Reverse(next));
        }
    }
}

/// Parses an Ethernet frame.
#[must_use]
pub fn parse<'a>(bytes: &'a [u8], profile: &'a Profile) -> Frame<'a> {
    Frame::parse(bytes, bytes.len(), LinkType::Ethernet, profile)
}

/// Returns the device's link to each address of another node.
fn reach(simulation: &Simulation, device: NodeId) -> HashMap<IpAddr, usize> {
    let live = LiveNode::new(simulation, device, Vec::new(), None);
    let nodes = simulation.nodes.iter().enumerate();
    let others = nodes.filter(|(node, _)| *node != device);
    let links = others.filter_map(|(node, values)| Some((values, live.towards(node)?)));
    let addresses =
        links.flat_map(|(values, link)| [(values.ipv6.into(), link), (values.ipv4.into(), link)]);
    addresses.collect()
}

fn is_notification(bytes: &[u8], profile: &Profile) -> bool {
    Notification::from_frame(&parse(bytes, profile)).is_some()
}

fn destination(bytes: &[u8], profile: &Profile) -> Option<IpAddr> {
    Some(parse(bytes, profile).ip()?.destination)
}
