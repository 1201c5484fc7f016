//! The switches: they forward, queue, mark and notify by their role, pause their neighbours, and
//! tunnel between provider edges.

use super::connection::entropy;
use super::event::Event;
use super::frames::Path;
use super::hash::mix;
use super::links::Links;
use super::live::Counters;
use super::packet::{CE, ECT0, HOPS, MAC_CONTROL, NONE, Octets, Packet, PacketKind};
use super::{State, World};
use crate::scenario::model::{self, Flow, MarkingPoint, NodeKind, Thresholds};
use crate::truth::{MadeBy, SwitchTruth};
use crate::units::Ps;
use fcn_node::border::Side;
use fcn_node::congestion_point::Marking;
use fcn_node::reaction_point::hpcc::HopCount;
use fcn_node::reaction_point::telemetry::HopLoad;
use fcn_node::{
    Border, CongestionPoint, DataPacket, Ecn, IngressPe, Outer, OutgoingNotification, Proxy,
    SenderQps, Time,
};
use fcn_wire::ioam::{IoamOption, NodeValues, OptType, append_incremental, fill_preallocated};
use fcn_wire::ip;
use fcn_wire::ipv6_ext::next_header;
use fcn_wire::pfc::{ETHERTYPE_MAC_CONTROL, PFC_DESTINATION, Pfc, PfcRepr, pause_nanoseconds};
use fcn_wire::proxy_cn::FiveTuple;
use fcn_wire::{Frame, LinkType, Profile};
use rand_xoshiro::rand_core::Rng;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Octets after a PFC frame's Ethernet header, including padding.
const PFC_ROOM: usize = 46;
/// State of a switch.
pub struct SwitchState {
    pub(super) congestion: CongestionPoint,
    proxy: Option<Proxy>,
    edge: Option<IngressPe>,
    border: Option<Border>,
    /// Its node identifier in IOAM traces.
    ioam_node: Option<u32>,
    /// True if its roles need the QPs at senders.
    learns_qps: bool,
    /// True if it sends plain CNPs of its own.
    sends_cnps: bool,
    /// True if its CNPs imitate the receiver's packets.
    imitates: bool,
    /// Hop limit with which packets from one host to another leave it, if known.
    hop_limits: FxHashMap<(IpAddr, IpAddr), u8>,
    pub ports: Vec<u32>,
    /// Routing messages forwarded: the last round of each advertising node.
    pub flooded: BTreeMap<u32, u32>,
}

impl SwitchState {
    /// Creates a switch with these ports.
    pub fn new(switch: &model::Switch, ports: Vec<u32>, profile: &Profile) -> Self {
        Self {
            congestion: CongestionPoint::new(switch.congestion.clone(), profile.clone()),
            proxy: switch.proxy.as_ref().map(|p| Proxy::new(p.config.clone())),
            edge: switch
                .edge
                .as_ref()
                .map(|e| IngressPe::new(e.config.clone())),
            border: switch.border_filter.then(Border::default),
            ioam_node: switch.ioam_node,
            sends_cnps: switch.congestion.cnp.is_some(),
            imitates: switch.imitates && switch.congestion.cnp.is_some(),
            hop_limits: FxHashMap::default(),
            learns_qps: switch.proxy.is_some()
                || switch.congestion.cnp.is_some()
                || switch.edge.as_ref().is_some_and(|edge| edge.config.enabled),
            ports,
            flooded: BTreeMap::new(),
        }
    }

    /// Records the hop limit of a forwarded packet between two hosts.
    fn sees(&mut self, ends: (IpAddr, IpAddr), hops: u8) {
        if self.imitates {
            self.hop_limits.insert(ends, hops.saturating_sub(1));
        }
    }

    /// Returns the tables of the QPs at senders of its roles.
    fn sender_qps(&mut self) -> impl Iterator<Item = &mut SenderQps> {
        let congestion = self.sends_cnps.then_some(&mut self.congestion.qps);
        let proxy = self.proxy.as_mut().map(|proxy| &mut proxy.qps);
        let edge = self.edge.as_mut().map(|edge| &mut edge.qps);
        proxy.into_iter().chain(edge).chain(congestion)
    }

    /// Lets its roles learn the QPs at senders from a forwarded frame.
    pub(super) fn learn(&mut self, now: Time, frame: &Frame<'_>) {
        if let Some(ip) = frame.ip() {
            self.sees((ip.source, ip.destination), ip.hop_limit);
        }
        if self.learns_qps {
            for qps in self.sender_qps() {
                qps.learn(now, frame);
            }
        }
    }

    /// Returns the counters of its roles.
    pub fn counters(&self) -> Counters {
        let congestion = self.congestion.counters().named().collect();
        let mut all = vec![("congestion_point", congestion)];
        if let Some(proxy) = &self.proxy {
            all.push(("proxy", proxy.counters().named().collect()));
        }
        if let Some(edge) = &self.edge {
            all.push(("ingress_pe", edge.counters().named().collect()));
        }
        if let Some(border) = &self.border {
            all.push(("border", border.counters().named().collect()));
        }
        all
    }

    /// Copies its counters to the truth.
    pub fn settle(&self, truth: &mut SwitchTruth) {
        let counters = self.congestion.counters();
        truth.stopped_at_border = self.border.as_ref().map_or(0, |b| b.counters().dropped());
        truth.held_back = counters.flow_limited + counters.total_limited;
    }
}

impl<L: Links> World<'_, L> {
    /// Processes a packet that arrives on one of its ports.
    pub(super) fn switch_receives(&mut self, node: u32, came_by: u32, mut packet: Packet) {
        packet.came_by = came_by;
        if packet.kind == PacketKind::Frame {
            if self.stops_at_border(node, came_by, &packet) {
                self.discard(&packet);
                return;
            }
            if let Some(origin) = self.octets.at(packet.extra).and_then(|o| o.flooded) {
                self.flood(node, came_by, packet, origin);
                return;
            }
            self.snoop(node, &packet);
        } else {
            self.snoop_flow(node, &packet);
        }
        self.leave_tunnel(node, &mut packet);
        if packet.to == node {
            self.consume(node, &packet);
            self.discard(&packet);
            return;
        }
        let hops = if packet.tunnel == NONE {
            &mut packet.hops
        } else {
            &mut packet.outer_hops
        };
        if *hops <= 1 {
            return self.lose(&packet);
        }
        *hops -= 1;
        self.enter_tunnel(node, &mut packet);
        self.forward(node, packet);
    }

    /// Sends a packet of the switch's own, possibly to itself: a congestion point may be its own
    /// proxy or ingress PE.
    pub(super) fn originate(&mut self, node: u32, mut packet: Packet) {
        packet.came_by = NONE;
        if self.stops_at_border(node, NONE, &packet) {
            self.discard(&packet);
        } else if packet.to == node {
            self.consume(node, &packet);
            self.discard(&packet);
        } else {
            self.forward(node, packet);
        }
    }

    pub(super) fn forward(&mut self, node: u32, packet: Packet) {
        if packet.to == NONE {
            // Its destination is a host on real links that is not in the scenario.
            self.recorder.switches[node as usize].forwarded += 1;
            return match (packet.came_by, self.port_of_cause(&packet)) {
                (NONE, Some(port)) => self.egress(node, port, packet),
                _ => L::forward_unknown(self, node, packet),
            };
        }
        let path = self.frames.path(packet.tunnel);
        let target = path.map_or(packet.to as usize, |path| path.egress);
        let out = self
            .routes
            .port(node as usize, target, || self.entropy(&packet));
        let Some(out) = out else {
            return self.lose(&packet);
        };
        self.recorder.switches[node as usize].forwarded += 1;
        self.egress(node, out, packet);
    }

    /// Returns the hash used by ECMP: over the headers' addresses, ports and flow label; within a
    /// tunnel, over the outer flow label (RFC 6438).
    fn entropy(&self, packet: &Packet) -> u64 {
        if packet.tunnel != NONE {
            return mix(packet.label.into());
        }
        if packet.kind == PacketKind::Frame {
            return self
                .octets
                .at(packet.extra)
                .map_or(0, |octets| header_hash(&octets.bytes));
        }
        let Some(flow) = self.simulation.flows.get(packet.flow as usize) else {
            return 0;
        };
        let (from, to) = match packet.kind {
            PacketKind::Data => (flow.source, flow.destination),
            _ => (flow.destination, flow.source),
        };
        let (source_port, label) = entropy(flow, packet.path);
        let label = if from.is_ipv6() { label } else { 0 };
        let port = self.simulation.profile.rocev2_port;
        flow_hash(from, to, label, (source_port, port))
    }

    /// Returns the ingress port of the packet that `packet` answers, to which it goes if no route
    /// leads to its destination.
    fn port_of_cause(&self, packet: &Packet) -> Option<u32> {
        let noted = self
            .octets
            .at(packet.extra)
            .and_then(|octets| octets.caused);
        noted.or_else(|| self.links.cause()).map(|(_, port)| port)
    }

    /// Adds a packet to an egress queue.
    pub(super) fn egress(&mut self, node: u32, out: u32, mut packet: Packet) {
        let now = self.now;
        let depth = self.ports[out as usize].depth(packet.class);
        let Thresholds {
            marking,
            marks_at,
            queue,
            ..
        } = self.ports[out as usize].thresholds;
        let marks_now = marks_at == MarkingPoint::Arrival || L::REAL;
        let pfc = match packet.came_by {
            NONE => None,
            port => self.ports[port as usize].thresholds.pfc,
        };
        // With PFC, the limit on an ingress port bounds the queues: nothing is dropped, and the
        // port's peer is paused.
        let lossless = pfc.is_some() && packet.class < super::packet::CONTROL;
        if !lossless && depth + u64::from(packet.len) > queue {
            self.recorder.switches[node as usize].dropped += 1;
            return self.lose(&packet);
        }
        let is_data = self.is_data(&packet);
        if is_data {
            let after = depth + u64::from(packet.len);
            let thresholds = &self.ports[out as usize].thresholds;
            self.recorder.queued(node, now, after, thresholds);
            let ioam_node = self.nodes[node as usize].switch().ioam_node;
            if let (Some(id), true) = (ioam_node, packet.extra != NONE && marks_now)
                && !self.counts(&packet)
            {
                let port = &self.ports[out as usize];
                let wait = port.wait(now, packet.class);
                self.write_trace(out, &mut packet, id, wait);
            }
            if depth > marking.kmin && marks_now {
                self.congested(node, &mut packet, depth, &marking);
            }
            if after > marking.kmax && !self.ports[out as usize].above_kmax {
                self.ports[out as usize].above_kmax = true;
                self.recorder.crossed_kmax(now, true);
            }
        }
        if packet.kind == PacketKind::Frame && !is_data && depth > marking.kmin && marks_now {
            self.tcp_congested(node, &packet, depth, &marking);
        }
        if packet.came_by != NONE && packet.class < super::packet::CONTROL {
            let held = &mut self.ports[packet.came_by as usize].held[usize::from(packet.class)];
            *held += u64::from(packet.len);
            if let Some(pfc) = pfc
                && *held >= pfc.xoff
            {
                self.start_pause(packet.came_by, packet.class);
            }
        }
        let port = &mut self.ports[out as usize];
        if packet.class < super::packet::CONTROL {
            port.queue_changes(now, packet.len.into());
        }
        packet.queued_at = now;
        port.enqueue(packet);
        self.kick(out);
    }

    /// Returns true if a packet is RoCEv2 data, as a value or as octets.
    fn is_data(&self, packet: &Packet) -> bool {
        match packet.kind {
            PacketKind::Data => true,
            PacketKind::Frame => self
                .octets
                .at(packet.extra)
                .is_some_and(|octets| octets.data.is_some()),
            PacketKind::Ack | PacketKind::Nak => false,
        }
    }

    /// Updates the state when a packet leaves an egress queue, and marks it if it is to be marked
    /// then.
    pub(super) fn leaves(&mut self, out: u32, packet: &mut Packet) {
        let now = self.now;
        let node = self.ports[out as usize].node;
        if matches!(self.nodes[node as usize], State::Host(_)) {
            return;
        }
        let is_data = self.is_data(packet);
        let port = &mut self.ports[out as usize];
        let Thresholds {
            marking, marks_at, ..
        } = port.thresholds;
        // A trace may make the packet longer.
        let len = packet.len;
        let departs = marks_at == MarkingPoint::Departure && !L::REAL;
        let depth = port.depth(packet.class);
        let ioam_node = self.nodes[node as usize].switch().ioam_node;
        if let (Some(id), true) = (ioam_node, is_data && packet.extra != NONE)
            && (departs || self.counts(packet))
        {
            self.write_trace(out, packet, id, now.since(packet.queued_at));
        }
        self.ports[out as usize].load.sent(now, packet.len);
        if depth > marking.kmin && departs {
            if is_data {
                self.congested(node, packet, depth, &marking);
            } else if packet.kind == PacketKind::Frame {
                self.tcp_congested(node, packet, depth, &marking);
            }
        }
        let port = &mut self.ports[out as usize];
        if packet.class < super::packet::CONTROL {
            port.queue_changes(now, -i64::from(len));
        }
        if port.above_kmax && is_data && depth <= marking.kmax {
            port.above_kmax = false;
            self.recorder.crossed_kmax(now, false);
        }
        if packet.came_by == NONE || packet.class >= super::packet::CONTROL {
            return;
        }
        let from = &mut self.ports[packet.came_by as usize];
        let held = &mut from.held[usize::from(packet.class)];
        *held = held.saturating_sub(u64::from(len));
        if let Some(pfc) = from.thresholds.pfc
            && *held <= pfc.xon
            && from.pausing >> packet.class & 1 == 1
        {
            from.pausing &= !(1 << packet.class);
            self.send_pause(packet.came_by, packet.class, 0);
        }
    }

    /// Asks the role about a data packet that meets a deep queue, and applies its decision.
    fn congested(&mut self, node: u32, packet: &mut Packet, depth: u64, marking: &Marking) {
        let simulation = self.simulation;
        let octets = match packet.kind {
            PacketKind::Frame => self.octets.at(packet.extra),
            _ => None,
        };
        let seen = octets.and_then(|octets| Some((octets.data.as_ref()?, &octets.bytes)));
        let flow = simulation.flows.get(packet.flow as usize);
        if seen.is_none() && flow.is_none() {
            return;
        }
        let random = self.rng.next_u32();
        let path = self.frames.path(packet.tunnel).copied();
        let outer = path.map(|path| Outer {
            ingress: match path.tunnel {
                model::Tunnel::SrMpls { .. } => None,
                _ => simulation.nodes.get(path.ingress).map(|n| n.ipv6),
            },
            flow_label: packet.label,
        });
        let has_ecn = tunnel_has_ecn(path);
        let ecn = if has_ecn {
            packet.outer_ecn
        } else {
            packet.ecn
        };
        let view = match (seen, flow) {
            (Some((seen, bytes)), _) => DataPacket {
                outer: outer.or(seen.data.outer),
                trace: seen.trace(bytes),
                ecn: match has_ecn {
                    true => Ecn::from_bits(ecn),
                    false => seen.data.ecn,
                },
                ..seen.data
            },
            (None, Some(flow)) => DataPacket {
                outer,
                trace: self.traces.in_packet(packet),
                ..data_packet(flow, packet.path, ecn, &simulation.profile)
            },
            (None, None) => return,
        };
        let key = (view.destination, view.dest_qp.get());
        let congestion = &mut self.nodes[node as usize].switch().congestion;
        let verdict = congestion.on_packet(self.now.into(), &view, (depth, marking), random);
        if verdict.mark_ce {
            let ecn = if has_ecn {
                &mut packet.outer_ecn
            } else {
                &mut packet.ecn
            };
            *ecn = CE;
            self.recorder.marked(node);
            if !has_ecn
                && let Some(octets) = self.octets.at_mut(packet.extra)
                && let (PacketKind::Frame, Some(seen)) = (packet.kind, &mut octets.data)
            {
                seen.data.ecn = Ecn::Ce;
                let header = seen.ecn_at.and_then(|at| octets.bytes.get_mut(at..));
                ip::set_traffic_class(header.unwrap_or_default(), CE, CE);
            }
        }
        if let Some(outgoing) = verdict.notify {
            let flow = match packet.kind {
                PacketKind::Frame => self.qps.get(&key).copied().unwrap_or(NONE),
                _ => packet.flow,
            };
            let by = (node, MadeBy::Switch);
            self.notify(by, &outgoing, Some(packet), flow);
        }
    }

    /// Sends a role's packet as soon as the node has generated it.
    pub(super) fn notify(
        &mut self,
        (node, by): (u32, MadeBy),
        outgoing: &OutgoingNotification,
        about: Option<&Packet>,
        flow: u32,
    ) {
        let Some(mut packet) = self.notification(by, outgoing, about, flow) else {
            return;
        };
        if let State::Switch(switch) = &self.nodes[node as usize]
            && let (MadeBy::Switch, OutgoingNotification::Cnp { .. }) = (by, outgoing)
        {
            packet.hops = switch
                .hop_limits
                .get(&outgoing.addresses())
                .copied()
                .unwrap_or(HOPS);
        }
        let kind = self
            .octets
            .at(packet.extra)
            .and_then(|o| o.note.as_ref())
            .map_or(outgoing.kind(), |note| note.kind);
        let delay = match &self.simulation.nodes[node as usize].kind {
            NodeKind::Host(host) => host.notification_delay,
            NodeKind::Switch(switch) => switch.notification_delay,
        };
        // On real links, the actual processing time is the delay.
        let delay = if L::REAL { Ps(0) } else { delay };
        let place = self.pending.put(Some((node, kind, flow, packet)));
        self.events.plan(self.now + delay, Event::Notify(place));
    }

    /// Sends a notification that has been generated.
    pub(super) fn notification_ready(&mut self, place: u32) {
        let made = self.pending.at_mut(place).and_then(Option::take);
        self.pending.release(place);
        let Some((node, kind, flow, packet)) = made else {
            return;
        };
        self.recorder.notified(node, kind, flow, self.now);
        match self.nodes[node as usize] {
            State::Switch(_) => self.originate(node, packet),
            State::Host(_) => self.host_sends(node, packet),
        }
    }

    /// Returns true if a packet's trace is for HPCC, whose counts are those of its departure.
    fn counts(&self, packet: &Packet) -> bool {
        let flow = self.simulation.flows.get(packet.flow as usize);
        flow.and_then(|flow| flow.ioam)
            .is_some_and(|ioam| ioam.counts)
    }

    /// Writes the switch's data into the IOAM trace of a packet that waits in the queue for `wait`.
    fn write_trace(&mut self, out: u32, packet: &mut Packet, id: u32, wait: Ps) {
        let (now, epoch) = (self.now, self.simulation.epoch);
        let port = &self.ports[out as usize];
        let rate = port.rate;
        let depth = port.depth(packet.class);
        let came_by = Some(packet.came_by).filter(|port| *port != NONE);
        let load = port.load.rate;
        let in_100mbps = |bits: f64| (bits / 1e8).round().min(65_535.0) as u16;
        let load = HopLoad {
            capacity_100mbps: in_100mbps(rate.bits_per_second() as f64),
            throughput_100mbps: in_100mbps(load),
        };
        let count = HopCount {
            capacity_100mbps: load.capacity_100mbps,
            octets: port.load.total,
        };
        let namespace_data = match self.counts(packet) {
            true => count.to_bits(),
            false => u64::from(load.to_bits()),
        };
        let nanoseconds = epoch + now.as_nanos();
        let values = NodeValues {
            hop_limit: packet.hops,
            node_id: u64::from(id),
            ingress: came_by.unwrap_or(0),
            egress: out,
            seconds: (nanoseconds / 1_000_000_000) as u32,
            fraction: (nanoseconds % 1_000_000_000) as u32,
            transit_delay: wait.as_nanos().min(0x7FFF_FFFF) as u32,
            namespace_data,
            queue_depth: depth.min(u64::from(u32::MAX) - 1) as u32,
            ..NodeValues::default()
        };
        if packet.kind == PacketKind::Frame {
            if let Some(octets) = self.octets.at_mut(packet.extra)
                && let Some((OptType::Preallocated, range)) =
                    octets.data.as_ref().and_then(|seen| seen.trace.clone())
                && let Some(trace) = octets.bytes.get_mut(range)
            {
                let _ = fill_preallocated(trace, &values);
            }
            return;
        }
        let Some(trace) = self.traces.at_mut(packet.extra) else {
            return;
        };
        let before = trace.bytes.len();
        // A full trace gets its overflow flag there.
        let _ = match trace.opt_type {
            OptType::Incremental => append_incremental(&mut trace.bytes, &values),
            _ => fill_preallocated(&mut trace.bytes, &values),
        };
        let grown = IoamOption::header_len(trace.bytes.len()) - IoamOption::header_len(before);
        packet.len += grown as u32;
    }

    /// Returns true if a notification is at the border of its domain, and this switch stops it
    /// there.
    pub(super) fn stops_at_border(&mut self, node: u32, came_by: u32, packet: &Packet) -> bool {
        let domain = |node: u32| self.simulation.nodes[node as usize].domain;
        let side = |port: Option<u32>| {
            let peer = port.and_then(|port| self.ports.get(port as usize));
            match peer.is_some_and(|port| domain(port.peer) != domain(node)) {
                true => Side::Outside,
                false => Side::Inside,
            }
        };
        let out = match packet.to {
            NONE => self.port_of_cause(packet),
            to => self
                .routes
                .port(node as usize, to as usize, || self.entropy(packet)),
        };
        let (from, to) = (side(Some(came_by)), side(out));
        if (from, to) == (Side::Inside, Side::Inside) {
            return false;
        }
        let border = &mut self.nodes[node as usize].switch().border;
        let (Some(border), Some(octets)) = (border, self.octets.at(packet.extra)) else {
            return false;
        };
        let frame = raw(octets, &self.simulation.profile);
        border.filter(from, to, &frame).is_some()
    }

    /// Lets the roles inspect a flow's data and acknowledgements, which show the QPs that no RDMA
    /// CM exchange did.
    fn snoop_flow(&mut self, node: u32, packet: &Packet) {
        let state = self.nodes[node as usize].switch();
        if !state.learns_qps {
            return;
        }
        let Some(flow) = self.simulation.flows.get(packet.flow as usize) else {
            return;
        };
        if packet.kind != PacketKind::Data {
            state.sees((flow.destination, flow.source), packet.hops);
        }
        let psn = self.connections[packet.flow as usize].psn(flow, packet.index);
        let is_data = packet.kind == PacketKind::Data;
        let (port, _) = entropy(flow, if is_data { packet.path } else { 0 });
        for qps in state.sender_qps() {
            if is_data {
                qps.data(self.now.into(), flow.key(), port, psn);
            } else {
                let to = (flow.destination, flow.source, flow.sender_qp);
                qps.acknowledged(self.now.into(), to, port, psn);
            }
        }
    }

    /// Lets the roles inspect forwarded packets that set up connections.
    fn snoop(&mut self, node: u32, packet: &Packet) {
        let Some(octets) = self.octets.at(packet.extra).filter(|o| o.note.is_none()) else {
            return;
        };
        let state = self.nodes[node as usize].switch();
        let frame = raw(octets, &self.simulation.profile);
        if let Some(ip) = frame.ip() {
            state.sees((ip.source, ip.destination), packet.hops);
        }
        for qps in state.sender_qps() {
            qps.learn(self.now.into(), &frame);
        }
    }

    /// Processes a packet addressed to the switch itself.
    pub(super) fn consume(&mut self, node: u32, packet: &Packet) {
        let now: Time = self.now.into();
        if packet.kind != PacketKind::Frame {
            return;
        }
        let Some(octets) = self.octets.at(packet.extra) else {
            return;
        };
        let state = self.nodes[node as usize].switch();
        let frame = raw(octets, &self.simulation.profile);
        state.congestion.on_transit(now, &frame);
        let proxied = state
            .proxy
            .as_mut()
            .and_then(|proxy| Some((MadeBy::Proxy, proxy.on_message(now, &frame).ok()?)));
        let translated = proxied.or_else(|| {
            let edge = state.edge.as_mut()?;
            Some((MadeBy::IngressPe, edge.on_message(now, &frame).ok()?))
        });
        if let Some((by, outgoing)) = translated {
            let flow = self.flow_of(&outgoing);
            self.notify((node, by), &outgoing, None, flow);
        }
    }

    /// Decapsulates a packet at the end of its tunnel; congestion met in the tunnel stays marked
    /// (RFC 6040).
    fn leave_tunnel(&self, node: u32, packet: &mut Packet) {
        let Some(path) = self.frames.path(packet.tunnel) else {
            return;
        };
        if path.egress != node as usize {
            return;
        }
        packet.len -= path.overhead();
        packet.tunnel = NONE;
        if packet.outer_ecn == CE && packet.ecn != 0 {
            packet.ecn = CE;
        }
    }

    /// Encapsulates a packet at a provider edge if its host is behind another one.
    pub(super) fn enter_tunnel(&mut self, node: u32, packet: &mut Packet) {
        if packet.tunnel != NONE {
            return;
        }
        let Some(tunnel) = self.routes.tunnel(node as usize, packet.to as usize) else {
            return;
        };
        let flow = self.simulation.flows.get(packet.flow as usize);
        let seen = match packet.kind {
            PacketKind::Frame => self.octets.at(packet.extra).and_then(|o| o.data.as_ref()),
            _ => None,
        };
        let edge = &mut self.nodes[node as usize].switch().edge;
        packet.label = match (flow, edge, packet.kind) {
            (Some(flow), Some(edge), PacketKind::Data) => {
                edge.label(flow.source, flow.destination, flow.receiver_qp)
            }
            (_, Some(edge), _) if seen.is_some() => {
                let data = seen.map(|seen| &seen.data);
                data.map_or(0, |d| edge.label(d.source, d.destination, d.dest_qp))
            }
            // Entropy for traffic that no FCN concerns.
            _ => (mix(u64::from(packet.flow) << 32 | u64::from(packet.to)) & 0xF_FFFF) as u32,
        };
        packet.tunnel = tunnel;
        packet.outer_ecn = packet.ecn;
        packet.outer_hops = HOPS;
        packet.len += self.frames.path(tunnel).map_or(0, Path::overhead);
    }

    /// Pauses a class at the peer of an ingress port, once until it is resumed.
    fn start_pause(&mut self, port: u32, class: u8) {
        let state = &mut self.ports[port as usize];
        if state.pausing >> class & 1 == 0 {
            state.pausing |= 1 << class;
            self.pause_again(port, class);
        }
    }

    /// Sends a pause while it is needed, and schedules a repetition before it expires.
    pub(super) fn pause_again(&mut self, port: u32, class: u8) {
        let state = &self.ports[port as usize];
        if let (Some(pfc), 1) = (state.thresholds.pfc, state.pausing >> class & 1) {
            let nanoseconds = pause_nanoseconds(pfc.quanta, state.rate.non_zero());
            let again = self.now + Ps::from_nanos((nanoseconds / 2).max(1));
            self.send_pause(port, class, pfc.quanta);
            self.events.plan(again, Event::PauseAgain(port, class));
        }
    }

    pub(super) fn send_pause(&mut self, port: u32, class: u8, quanta: u16) {
        let Some(repr) = PfcRepr::for_class(usize::from(class), quanta) else {
            return;
        };
        let mut bytes = repr.to_bytes().to_vec();
        bytes.resize(PFC_ROOM, 0);
        let octets = Octets {
            bytes,
            ether_type: ETHERTYPE_MAC_CONTROL,
            multicast: Some(PFC_DESTINATION),
            ..Octets::default()
        };
        let node = self.ports[port as usize].node;
        let mut packet = self.frame_to(self.ports[port as usize].peer, octets);
        packet.class = MAC_CONTROL;
        self.recorder.paused(node);
        self.ports[port as usize].enqueue(packet);
        self.kick(port);
    }

    /// Processes a received PFC frame: pauses or resumes classes of this port.
    pub(super) fn paused_by_peer(&mut self, port: u32, packet: &Packet) {
        let mut times = [None; 8];
        if let Some(octets) = self.octets.at(packet.extra)
            && let Ok(pfc) = Pfc::new_checked(&octets.bytes)
        {
            for (class, quanta) in pfc.enabled() {
                times[class & 7] = Some(quanta);
            }
        }
        for (class, quanta) in times.into_iter().enumerate() {
            let (Some(quanta), class) = (quanta, class as u8) else {
                continue;
            };
            let state = &mut self.ports[port as usize];
            let nanoseconds = pause_nanoseconds(quanta, state.rate.non_zero());
            let until = self.now + Ps::from_nanos(nanoseconds);
            state.paused_until[usize::from(class)] = until;
            state.pause(class, quanta > 0);
            if quanta > 0 {
                self.events.plan(until, Event::PauseEnds(port, class));
            } else {
                self.resume(port, class);
            }
        }
    }

    /// Resumes a class whose pause has expired, unless it was repeated.
    pub(super) fn pause_ends(&mut self, port: u32, class: u8) {
        let state = &mut self.ports[port as usize];
        if state.is_paused(class) && self.now >= state.paused_until[usize::from(class)] {
            state.pause(class, false);
            self.resume(port, class);
        }
    }

    fn resume(&mut self, port: u32, class: u8) {
        let node = self.ports[port as usize].node;
        self.resume_flows(node, class);
        self.kick(port);
    }
}

/// Returns the hash used by ECMP.
fn flow_hash(from: IpAddr, to: IpAddr, label: u32, (source, destination): (u16, u16)) -> u64 {
    let address = |address| match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    };
    let fold = |hash, value: u128| mix(mix(hash ^ value as u64) ^ (value >> 64) as u64);
    let ports = u128::from(source) << 64 | u128::from(destination) << 32 | u128::from(label);
    [address(from), address(to), ports]
        .into_iter()
        .fold(0, fold)
}

/// Returns the ECMP hash of a packet of octets. Notifications, RDMA CM and routing messages are not
/// in tunnels where they are generated.
fn header_hash(bytes: &[u8]) -> u64 {
    let Some(tuple) = FiveTuple::from_packet(bytes) else {
        return 0;
    };
    // Over IPv6, the flow label replaces the ports of other transports.
    let ports = if tuple.source.is_ipv4() || tuple.protocol == next_header::UDP {
        (tuple.source_port, tuple.destination_port)
    } else {
        (0, 0)
    };
    let label = ip::flow_label(bytes);
    flow_hash(tuple.source, tuple.destination, label, ports)
}

/// Returns true if congestion is marked in the tunnel's own header. MPLS has none, so the inner
/// packet is marked.
const fn tunnel_has_ecn(path: Option<Path>) -> bool {
    match path {
        Some(path) => !matches!(path.tunnel, model::Tunnel::SrMpls { .. }),
        None => false,
    }
}

/// Parses a packet of octets as its receiver does.
pub fn raw<'a>(octets: &'a Octets, profile: &'a Profile) -> Frame<'a> {
    Frame::parse(&octets.bytes, octets.bytes.len(), LinkType::RawIp, profile)
}

/// Returns a data packet of `flow` for the roles, outside of tunnels and without a trace.
pub fn data_packet<'a>(flow: &Flow, path: u8, ecn: u8, profile: &Profile) -> DataPacket<'a> {
    DataPacket {
        source: flow.source,
        destination: flow.destination,
        source_port: entropy(flow, path).0,
        destination_port: profile.rocev2_port,
        dest_qp: flow.receiver_qp,
        ecn: Ecn::from_bits(ecn),
        outer: None,
        trace: None,
        proxy_option: flow.proxy_option,
    }
}

/// Returns the ECN field that senders set on data packets: ECT(0) if capable.
pub const fn data_ecn(capable: bool) -> u8 {
    if capable { ECT0 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds the first octets of an IPv6 header and a UDP header.
    fn octets(label: u8, source_port: u8) -> Vec<u8> {
        let mut bytes = vec![0; 48];
        bytes[0] = 0x60;
        (bytes[3], bytes[6]) = (label, 17);
        (bytes[23], bytes[39]) = (1, 2);
        bytes[40..44].copy_from_slice(&[0xC0, source_port, 0x12, 0xB7]);
        bytes
    }

    #[test]
    fn ecmp_hash_is_the_same_for_values_and_octets() {
        let (from, to) = ("::1".parse().unwrap(), "::2".parse().unwrap());
        let hash = header_hash(&octets(7, 9));
        assert_eq!(hash, flow_hash(from, to, 7, (0xC009, 4_791)));
        assert_ne!(hash, header_hash(&octets(8, 9)), "flow label");
        assert_ne!(hash, header_hash(&octets(7, 8)), "source port");
        assert_ne!(hash, flow_hash(to, from, 7, (0xC009, 4_791)), "addresses");
        let ipv4 = [
            &[
                0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2,
            ][..],
            &[0xC0, 9, 0x12, 0xB7, 0, 8, 0, 0],
        ]
        .concat();
        let [from, to] = [[198, 18, 0, 1], [198, 18, 0, 2]].map(IpAddr::from);
        assert_eq!(header_hash(&ipv4), flow_hash(from, to, 0, (0xC009, 4_791)));
        assert_eq!(header_hash(&[1, 2, 3]), 0, "no IP");
        let mut option = octets(7, 9);
        option[6] = 60;
        option.splice(40..40, [17, 0, 1, 4, 0, 0, 0, 0]);
        assert_eq!(header_hash(&option), hash, "behind an option");
    }
}
