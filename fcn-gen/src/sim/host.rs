//! The hosts: a NIC that paces flows by the rate of their reaction point, acknowledges received
//! data, and answers congestion as a notification point. Connection management is in `rdma_cm.rs`.

use super::connection::{Acked, Answer, Stage};
use super::event::Event;
use super::frames::Frames;
use super::links::Links;
use super::live::Counters;
use super::packet::{CE, NONE, Octets, Packet, PacketKind, Trace};
use super::switch::{data_ecn, data_packet, raw};
use super::{State, World};
use crate::ioam::IoamTrace;
use crate::scenario::model::{Host, Injected, NodeKind};
use crate::truth::{MadeBy, Note};
use crate::units::Ps;
use fcn_node::reaction_point::{Ack, FlowId, Ignored, Reaction};
use fcn_node::{DataPacket, NotificationPoint, OutgoingNotification, ReactionPoint, Time};
use fcn_wire::bth::{Opcode, Qp};
use fcn_wire::ioam::{OptType, TRACE_HEADER_LEN, Trace as IoamView, TraceRepr};
use fcn_wire::{Frame, Notification};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::net::IpAddr;

/// State of a host.
pub struct HostState {
    pub port: u32,
    pub reaction: ReactionPoint,
    notification: Option<NotificationPoint>,
    answers_unknown_options: bool,
    ready: VecDeque<u32>,
    paused_flows: [Vec<u32>; 8],
    pub flows: FxHashMap<FlowId, u32>,
}

impl HostState {
    /// Creates a host whose NIC is this port.
    pub fn new(host: &Host, port: u32) -> Self {
        Self {
            port,
            reaction: ReactionPoint::new(host.reaction.clone()),
            notification: host.notification.map(NotificationPoint::new),
            answers_unknown_options: host.answers_unknown_options,
            ready: VecDeque::new(),
            paused_flows: Default::default(),
            flows: FxHashMap::default(),
        }
    }

    /// Returns the notification point's answer to a CE-marked packet of a flow with this QP at the
    /// sender.
    pub fn answer_to_ce(
        &mut self,
        now: Time,
        packet: &DataPacket<'_>,
        qp: Qp,
    ) -> Option<OutgoingNotification> {
        self.notification.as_mut()?.on_data(now, packet, qp)
    }

    /// Returns the counters of its roles.
    pub fn counters(&self) -> Counters {
        let reaction = self.reaction.counters().named().collect();
        let mut all = vec![("reaction_point", reaction)];
        if let Some(point) = &self.notification {
            all.push(("notification_point", point.counters().named().collect()));
        }
        all
    }
}

impl<L: Links> World<'_, L> {
    pub(super) fn host(&mut self, node: u32) -> &mut HostState {
        self.nodes[node as usize].host()
    }

    /// Returns true if a flow of this node waits for the NIC.
    pub(super) fn has_ready_flow(&self, node: u32) -> bool {
        match &self.nodes[node as usize] {
            State::Host(host) => !host.ready.is_empty(),
            State::Switch(_) => false,
        }
    }

    /// Returns a flow's present rate in bit/s; 0 while it is not open.
    pub(super) fn rate_of(&mut self, flow: usize) -> f64 {
        let connection = &self.connections[flow];
        let (Some(id), Stage::Open) = (connection.control, connection.stage) else {
            return 0.0;
        };
        if connection.is_done() {
            return 0.0;
        }
        let (node, now): (u32, Time) = (self.simulation.flows[flow].from as u32, self.now.into());
        self.host(node).reaction.rate(now, id)
    }

    /// Sends a packet of the host's own as soon as its link is free.
    pub(super) fn host_sends(&mut self, node: u32, packet: Packet) {
        let port = self.host(node).port;
        self.ports[port as usize].enqueue(packet);
        self.kick(port);
    }

    /// Adds a flow to the NIC's list, or makes it wait until its pacing permits a packet.
    pub(super) fn make_ready(&mut self, flow: u32) {
        let simulation = self.simulation;
        let values = &simulation.flows[flow as usize];
        let connection = &mut self.connections[flow as usize];
        if connection.queued || !connection.may_send(values) {
            return;
        }
        connection.queued = true;
        if connection.due > self.now {
            let at = connection.due;
            self.events.plan(at, Event::Due(flow));
            return;
        }
        let host = self.host(values.from as u32);
        host.ready.push_back(flow);
        let port = host.port;
        self.kick(port);
    }

    /// Lets the next flow in line send a packet; the NIC must be free.
    pub(super) fn send_data(&mut self, node: u32, port: u32) {
        let simulation = self.simulation;
        while let Some(flow) = self.host(node).ready.pop_front() {
            let values = &simulation.flows[flow as usize];
            let class = values.priority;
            if self.ports[port as usize].is_paused(class) {
                self.host(node).paused_flows[usize::from(class & 7)].push(flow);
                continue;
            }
            let connection = &mut self.connections[flow as usize];
            connection.queued = false;
            if !connection.may_send(values) {
                continue;
            }
            if connection.due > self.now {
                self.make_ready(flow);
                continue;
            }
            self.send_one(node, port, flow);
            return;
        }
    }

    fn send_one(&mut self, node: u32, port: u32, flow: u32) {
        let (simulation, now) = (self.simulation, self.now);
        let values = &simulation.flows[flow as usize];
        let connection = &mut self.connections[flow as usize];
        let (index, ack_request) = connection.send(values, now);
        let payload = connection.payload(values, index);
        let opcode = connection.opcode(index);
        let (control, path) = (connection.control, connection.path);
        connection.deadline = now + values.retransmit_timeout;
        self.plan_timeout(flow, now + values.retransmit_timeout);
        let extra = match values.ioam {
            Some(ioam) => self.empty_trace(ioam),
            None => NONE,
        };
        let trace = self.traces.at(extra).map_or(0, |trace| trace.bytes.len());
        let len = Frames::len(values, opcode, payload, trace);
        let packet = Packet {
            class: values.priority & 7,
            ecn: data_ecn(values.ecn),
            ack_request,
            path,
            flow,
            extra,
            index,
            ..Packet::new(PacketKind::Data, values.to as u32, len)
        };
        let took = self.ports[port as usize].sending(len);
        let link = self.ports[port as usize].rate.bits_per_second() as f64;
        // Octets that the packet takes on the wire, which the rate includes.
        let octets = (took.0 as f64 * link / 8e12) as u32;
        let reaction = &mut self.host(node).reaction;
        let rate = control.map_or(link, |id| {
            reaction.on_sent(id, octets);
            reaction.rate(now.into(), id)
        });
        let gap = if rate >= link {
            took
        } else {
            Ps((took.0 as f64 * (link / rate.max(1.0))) as u64)
        };
        let connection = &mut self.connections[flow as usize];
        connection.due = connection.due.max(now) + gap;
        self.transmit(port, packet);
        self.queue_again(node, port, flow);
    }

    /// Queues a flow again after its packet, or makes it wait; then lets the NIC continue if
    /// another flow is ready.
    fn queue_again(&mut self, node: u32, port: u32, flow: u32) {
        let simulation = self.simulation;
        let free = self.ports[port as usize].busy_until;
        let connection = &mut self.connections[flow as usize];
        if connection.may_send(&simulation.flows[flow as usize]) {
            connection.queued = true;
            if connection.due <= free {
                self.host(node).ready.push_back(flow);
            } else {
                let due = connection.due;
                self.events.plan(due, Event::Due(flow));
            }
        }
        if self.ports[port as usize].has_ready() || self.has_ready_flow(node) {
            self.plan_free(port);
        }
    }

    /// Creates a trace that no node has written into.
    fn empty_trace(&mut self, ioam: IoamTrace) -> u32 {
        let node_len = ioam.trace_type().node_len();
        let units = node_len * usize::from(ioam.nodes);
        let room = if ioam.incremental { 0 } else { units * 4 };
        let header = TraceRepr {
            namespace_id: ioam.namespace,
            node_len: node_len as u8,
            flags: 0,
            remaining_len: units as u8,
            trace_type: ioam.trace_type(),
            reserved: 0,
        };
        let place = self.traces.take();
        if let Some(Trace { opt_type, bytes }) = self.traces.at_mut(place) {
            *opt_type = match ioam.incremental {
                true => OptType::Incremental,
                false => OptType::Preallocated,
            };
            bytes.clear();
            bytes.extend(header.to_bytes());
            bytes.resize(TRACE_HEADER_LEN + room, 0);
        }
        place
    }

    /// Returns a copy of a data packet's trace, for its acknowledgement.
    fn copied_trace(&mut self, place: u32) -> u32 {
        let copy = self.traces.take();
        let mut to = self
            .traces
            .at_mut(copy)
            .map(std::mem::take)
            .unwrap_or_default();
        if let Some(from) = self.traces.at(place) {
            to.opt_type = from.opt_type;
            to.bytes.clear();
            to.bytes.extend_from_slice(&from.bytes);
        }
        if let Some(there) = self.traces.at_mut(copy) {
            *there = to;
        }
        copy
    }

    /// Processes a packet that arrives at a host.
    pub(super) fn host_receives(&mut self, node: u32, packet: Packet) {
        if packet.to == node && packet.tunnel == NONE {
            if self.reacts_later(node, &packet) {
                return;
            }
            match packet.kind {
                PacketKind::Data => self.receive_data(node, &packet),
                PacketKind::Ack | PacketKind::Nak => self.receive_answer(&packet),
                PacketKind::Frame => self.receive_frame(node, &packet),
            }
        }
        self.discard(&packet);
    }

    /// Returns true if a packet is a notification that the host's NIC takes time to apply; it is
    /// kept until then. On real links, the actual processing time is the delay.
    fn reacts_later(&mut self, node: u32, packet: &Packet) -> bool {
        let NodeKind::Host(host) = &self.simulation.nodes[node as usize].kind else {
            return false;
        };
        if host.reaction_delay == Ps(0) || packet.kind != PacketKind::Frame || L::REAL {
            return false;
        }
        let octets = self.octets.at(packet.extra);
        let is_notification = octets.is_some_and(|octets| octets.note.is_some());
        if is_notification {
            let place = self.received.put(Some((node, *packet)));
            let at = self.now + host.reaction_delay;
            self.events.plan(at, Event::React(place));
        }
        is_notification
    }

    /// Applies a notification that a host has received.
    pub(super) fn react(&mut self, place: u32) {
        let received = self.received.at_mut(place).and_then(Option::take);
        self.received.release(place);
        if let Some((node, packet)) = received {
            self.receive_frame(node, &packet);
            self.discard(&packet);
        }
    }

    fn receive_data(&mut self, node: u32, packet: &Packet) {
        let simulation = self.simulation;
        let values = &simulation.flows[packet.flow as usize];
        let connection = &mut self.connections[packet.flow as usize];
        let payload = connection.payload(values, packet.index);
        if packet.ecn == CE {
            connection.counts.ce += 1;
        }
        let answer = connection.receive(packet.index, payload, packet.ack_request);
        if packet.ecn == CE {
            self.congestion_experienced(node, packet);
        }
        let (kind, index) = match answer {
            Answer::Nothing => return,
            Answer::Ack(index) => (PacketKind::Ack, index),
            Answer::Nak(index) => (PacketKind::Nak, index),
        };
        let extra = match values.ioam {
            Some(ioam) if ioam.counts && kind == PacketKind::Ack => self.copied_trace(packet.extra),
            _ => NONE,
        };
        let trace = self.traces.at(extra).map_or(0, |trace| trace.bytes.len());
        let len = Frames::len(values, Opcode::RC_ACKNOWLEDGE, 0, trace);
        let acknowledgement = Packet {
            class: packet.class,
            ecn: data_ecn(values.ecn),
            flow: packet.flow,
            index,
            extra,
            ..Packet::new(kind, values.from as u32, len)
        };
        self.host_sends(node, acknowledgement);
    }

    /// Processes a CE-marked packet at the notification point.
    fn congestion_experienced(&mut self, node: u32, packet: &Packet) {
        let simulation = self.simulation;
        let values = &simulation.flows[packet.flow as usize];
        // A Fast CNP gets the trace with the packet.
        let view = data_packet(values, packet.path, CE, &simulation.profile);
        let now = self.now.into();
        let host = self.host(node);
        if let Some(outgoing) = host.answer_to_ce(now, &view, values.sender_qp) {
            self.notify(
                (node, MadeBy::Receiver),
                &outgoing,
                Some(packet),
                packet.flow,
            );
        }
    }

    /// Processes an acknowledgement or a NAK.
    fn receive_answer(&mut self, packet: &Packet) {
        let values = &self.simulation.flows[packet.flow as usize];
        let connection = &mut self.connections[packet.flow as usize];
        let acked = match packet.kind {
            PacketKind::Nak => connection.go_back(values, packet.index),
            _ => connection.acknowledge(values, packet.index),
        };
        let Some(acked) = acked else {
            return;
        };
        connection.deadline = self.now + values.retransmit_timeout;
        if connection.is_done() {
            connection.counts.done_at = Some(self.now);
            self.recorder.last_finished = self.now;
            self.finish(packet.flow);
        } else {
            self.acked(packet, acked);
            self.make_ready(packet.flow);
        }
    }

    /// Passes an acknowledgement to the flow's controller, with the trace that it returns.
    fn acked(&mut self, packet: &Packet, acked: Acked) {
        let flow = packet.flow;
        let values = &self.simulation.flows[flow as usize];
        let connection = &self.connections[flow as usize];
        let control = connection.control;
        let in_flight = (connection.sent - connection.acknowledged) * u64::from(values.mtu);
        if let (Some(id), Some(sent_at)) = (control, acked.sent_at) {
            let ack = Ack {
                rtt: self.now.since(sent_at).into(),
                octets: acked.octets,
            };
            let now = self.now.into();
            let reaction = &mut self.nodes[values.from].host().reaction;
            if reaction.goes_by_acks() {
                let before = (reaction.rate(now, id), reaction.window(id));
                let trace = self.traces.in_packet(packet);
                let trace = trace.and_then(|(kind, bytes)| IoamView::new_checked(kind, bytes).ok());
                match trace {
                    Some(trace) => reaction.on_telemetry(now, id, (&ack, in_flight), &trace),
                    None => reaction.on_ack(now, id, &ack),
                }
                let after = (reaction.rate(now, id), reaction.window(id));
                if after.0 < before.0 || after.1 < before.1 {
                    self.recorder.slowed(self.now);
                }
            } else {
                reaction.on_ack(now, id, &ack);
            }
            self.apply_window(flow);
        }
    }

    /// Applies the window that the flow's controller allows.
    pub(super) fn apply_window(&mut self, flow: u32) {
        let values = &self.simulation.flows[flow as usize];
        if let Some(id) = self.connections[flow as usize].control {
            let window = self.host(values.from as u32).reaction.window(id);
            let mtu = u64::from(values.mtu.max(1));
            self.connections[flow as usize].window = window.map(|octets| octets / mtu);
        }
    }

    /// Processes notifications, connection management, and other packets of octets.
    fn receive_frame(&mut self, node: u32, packet: &Packet) {
        // Taken out of the pool while they are read, since the responses may need the pool.
        let Some(octets) = self.octets.at_mut(packet.extra).map(std::mem::take) else {
            return;
        };
        let simulation = self.simulation;
        self.read_frame(node, &octets, &raw(&octets, &simulation.profile));
        if let Some(place) = self.octets.at_mut(packet.extra) {
            *place = octets;
        }
    }

    pub(super) fn read_frame(&mut self, node: u32, octets: &Octets, frame: &Frame<'_>) {
        if self.manage(node, frame) {
            return;
        }
        let Some(notification) = Notification::from_frame(frame) else {
            return;
        };
        let now: Time = self.now.into();
        let host = self.host(node);
        match host.reaction.on_frame(now, frame) {
            Reaction::Slowed { .. } if host.reaction.is_fixed() => {}
            Reaction::Slowed { flow, .. } => {
                let Some(&flow) = host.flows.get(&flow) else {
                    return;
                };
                let at = self.now;
                let counts = &mut self.connections[flow as usize].counts;
                let kind = notification.kind.id();
                *counts.slowed.entry(kind).or_default() += 1;
                counts.first_slowed.get_or_insert(at);
                self.recorder.slowed(at);
                self.apply_window(flow);
            }
            Reaction::Detoured { flow, path } => {
                if let Some(&flow) = host.flows.get(&flow) {
                    let connection = &mut self.connections[flow as usize];
                    connection.path = path as u8;
                    connection.counts.detours += 1;
                }
            }
            Reaction::Ignored(Ignored::FeatureOff) if host.answers_unknown_options => {
                self.answer_unknown_option(node, octets, notification.notifier);
            }
            Reaction::Ignored(_) => {}
        }
    }

    /// Sends ICMPv6 Parameter Problem, code 2, to the sender of an option that this host does not
    /// recognise (RFC 8200 section 4.2).
    fn answer_unknown_option(&mut self, node: u32, octets: &Octets, notifier: IpAddr) {
        let IpAddr::V6(destination) = notifier else {
            return;
        };
        let source = self.simulation.nodes[node as usize].ipv6;
        let Some(bytes) = super::rdma_cm::parameter_problem(source, destination, octets) else {
            return;
        };
        if let Some(packet) = self.frame(IpAddr::V6(destination), Octets::ip(bytes)) {
            self.host_sends(node, packet);
        }
    }

    /// Resumes the flows that waited for a paused class.
    pub(super) fn resume_flows(&mut self, node: u32, class: u8) {
        let State::Host(host) = &mut self.nodes[node as usize] else {
            return;
        };
        let paused_flows = std::mem::take(&mut host.paused_flows[usize::from(class & 7)]);
        for flow in paused_flows {
            self.connections[flow as usize].queued = false;
            self.make_ready(flow);
        }
    }

    /// Handles a timeout of a flow that waited for an acknowledgement, or for an answer to its
    /// ConnectRequest.
    pub(super) fn timeout(&mut self, flow: u32) {
        let values = &self.simulation.flows[flow as usize];
        let connection = &mut self.connections[flow as usize];
        connection.timer = false;
        match connection.stage {
            Stage::Connecting(_) | Stage::Disconnecting(_) => self.send_request(flow),
            Stage::Open if connection.sent > connection.acknowledged => {
                if self.now >= connection.deadline {
                    connection.next = connection.acknowledged;
                    let counted = self.now.since(self.simulation.warm_up);
                    connection.counts.waited =
                        connection.counts.waited + values.retransmit_timeout.min(counted);
                    connection.deadline = self.now + values.retransmit_timeout;
                    self.make_ready(flow);
                }
                self.plan_timeout(flow, self.connections[flow as usize].deadline);
            }
            _ => {}
        }
    }

    /// Schedules a flow's timeout, unless one is scheduled already.
    pub(super) fn plan_timeout(&mut self, flow: u32, at: Ps) {
        let timer = &mut self.connections[flow as usize].timer;
        if !std::mem::replace(timer, true) {
            self.events.plan(at, Event::Timeout(flow));
        }
    }

    /// Sends the next packet of an injection.
    pub(super) fn inject(&mut self, index: u32) {
        let simulation = self.simulation;
        let injection = &simulation.injections[index as usize];
        let done = self.now.since(injection.start).0 / injection.interval.0.max(1) + 1;
        if done < injection.count {
            let next = self.now + injection.interval;
            self.events.plan(next, Event::Inject(index));
        }
        let node = injection.node as u32;
        let outgoing = match injection.what {
            Injected::SpoofedFastCnp { flow, source } => {
                let values = &simulation.flows[flow];
                let ends = (values.source, values.destination);
                let (IpAddr::V6(destination), IpAddr::V6(original_destination)) = ends else {
                    return;
                };
                OutgoingNotification::FastCnp {
                    source,
                    destination,
                    original_destination,
                    qp: values.receiver_qp,
                }
            }
            Injected::SpoofedCnp { flow } => {
                let values = &simulation.flows[flow];
                OutgoingNotification::Cnp {
                    source: values.destination,
                    destination: values.source,
                    qp: values.sender_qp,
                }
            }
            Injected::ReplayedFastCnp { flow } => return self.replay(node, flow as u32),
            Injected::Tcp { flow } => return self.inject_tcp(node, flow, done),
            Injected::Pause { class, quanta } => {
                let port = self.host(node).port;
                return self.send_pause(port, class, quanta);
            }
        };
        let flow = self.flow_of(&outgoing);
        if let Some(packet) = self.notification(MadeBy::Injected, &outgoing, None, flow) {
            self.host_sends(node, packet);
        }
    }

    /// Sends the first Fast CNP about a flow again, unchanged.
    fn replay(&mut self, node: u32, flow: u32) {
        let Some(bytes) = self.first_fast_cnps.get(&flow).cloned() else {
            return;
        };
        let mut octets = Octets::ip(bytes);
        let frame = raw(&octets, &self.simulation.profile);
        let Some(read) = Notification::from_frame(&frame) else {
            return;
        };
        let destination = read.destination;
        octets.note = Some(Note::from_notification(&read, flow, Some(MadeBy::Injected)));
        if let Some(packet) = self.frame(destination, octets) {
            self.host_sends(node, packet);
        }
    }
}
