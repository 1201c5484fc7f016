//! What switches do: forward, queue, mark and notify by their role, pause their neighbours, tunnel between provider edges.

use super::event::Event;
use super::frames::{HOPS, Path};
use super::outcome::SwitchTruth;
use super::packet::{CE, ECT0, MAC_CONTROL, NONE, Octets, Packet, What};
use super::route::mix;
use super::{State, World};
use crate::scenario::model::{self, NodeKind};
use crate::units::Ps;
use fcn_node::reaction_point::telemetry::HopLoad;
use fcn_node::{CongestionPoint, DataPacket, Ecn, IngressPe, Outer, Outgoing, Proxy, Time};
use fcn_wire::ioam::{NodeValues, OptType, Trace as TraceView, fill_preallocated};
use fcn_wire::pfc::{ETHERTYPE_MAC_CONTROL, PFC_DESTINATION, Pfc, PfcRepr, pause_nanoseconds};
use fcn_wire::{Frame, Kind, LinkType, Profile};
use rand_xoshiro::rand_core::Rng;
use std::collections::BTreeMap;

/// Octets behind a PFC frame's Ethernet header, padding included.
const PFC_ROOM: usize = 46;
/// A switch.
pub struct SwitchState {
    congestion: CongestionPoint,
    proxy: Option<Proxy>,
    edge: Option<IngressPe>,
    pub ports: Vec<u32>,
    /// Routing messages passed on: who advertised, and which time.
    pub flooded: BTreeMap<u32, u32>,
    forwarded: u64,
    dropped: u64,
    stopped: u64,
}

impl SwitchState {
    /// A switch with these ports.
    pub fn new(switch: &model::Switch, ports: Vec<u32>, profile: &Profile) -> Self {
        Self {
            congestion: CongestionPoint::new(switch.congestion.clone(), profile.clone()),
            proxy: switch.proxy.as_ref().map(|p| Proxy::new(p.config.clone())),
            edge: switch
                .edge
                .as_ref()
                .map(|e| IngressPe::new(e.config.clone())),
            ports,
            flooded: BTreeMap::new(),
            forwarded: 0,
            dropped: 0,
            stopped: 0,
        }
    }

    /// Learns from a routing message.
    pub fn learn(&mut self, frame: &Frame<'_>) {
        self.congestion.on_transit(frame);
    }

    /// Fills in what it has counted.
    pub fn settle(&self, truth: &mut SwitchTruth) {
        let counters = self.congestion.counters();
        truth.forwarded = self.forwarded;
        truth.dropped = self.dropped;
        truth.stopped_at_border = self.stopped;
        truth.held_back = counters.flow_limited + counters.total_limited;
    }
}

impl World<'_> {
    fn switch(&mut self, node: u32) -> Option<(&model::Switch, &mut SwitchState)> {
        match (
            &self.simulation.nodes.get(node as usize)?.kind,
            self.nodes.get_mut(node as usize)?,
        ) {
            (NodeKind::Switch(switch), State::Switch(state)) => Some((switch, state)),
            _ => None,
        }
    }

    /// A packet comes in by a port of its own.
    pub(super) fn switch_receives(&mut self, node: u32, came_by: u32, mut packet: Packet) {
        packet.came_by = came_by;
        if packet.what == What::Frame {
            if self.stops_at_border(node, came_by, &packet) {
                self.discard(&packet);
                return;
            }
            if let Some(origin) = self.octets.at(packet.extra).and_then(|o| o.flooded) {
                self.flood(node, came_by, packet, origin);
                return;
            }
            self.overhear(node, &packet);
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
            self.ledger.lost();
            self.discard(&packet);
            return;
        }
        *hops -= 1;
        self.enter_tunnel(node, &mut packet);
        self.forward(node, packet);
    }

    /// Sends a packet of the switch's own, be it to itself: a congestion point may be its own proxy or ingress PE.
    pub(super) fn originate(&mut self, node: u32, mut packet: Packet) {
        packet.came_by = NONE;
        if packet.to == node {
            self.consume(node, &packet);
            self.discard(&packet);
        } else {
            self.forward(node, packet);
        }
    }

    fn forward(&mut self, node: u32, packet: Packet) {
        let target = match self.frames.path(packet.tunnel) {
            Some(path) => path.egress,
            None => packet.to as usize,
        };
        let hash = match packet.tunnel {
            NONE => mix(u64::from(packet.flow) << 1 | u64::from(packet.what == What::Data)),
            // Within a tunnel the flow label is all there is to choose by (RFC 6438).
            _ => mix(u64::from(packet.label)),
        };
        let Some(out) = self.routes.port(node as usize, target, hash) else {
            self.ledger.lost();
            self.discard(&packet);
            return;
        };
        if let Some((_, state)) = self.switch(node) {
            state.forwarded += 1;
        }
        self.egress(node, out, packet);
    }

    /// A packet joins an egress queue.
    fn egress(&mut self, node: u32, out: u32, mut packet: Packet) {
        let now = self.now;
        let depth = self.ports[out as usize].depth(packet.class);
        let Some((switch, state)) = self.switch(node) else {
            return;
        };
        // With PFC, what an ingress port holds bounds the queues: nothing is dropped, the port's peer is stopped.
        let lossless =
            switch.pfc.is_some() && packet.came_by != NONE && packet.class < super::packet::CONTROL;
        if !lossless && depth + u64::from(packet.len) > switch.queue_limit {
            state.dropped += 1;
            self.ledger.lost();
            self.discard(&packet);
            return;
        }
        let marking = switch.congestion.marking;
        let pfc = switch.pfc;
        if packet.what == What::Data {
            let after = depth + u64::from(packet.len);
            self.ledger
                .queued(node as usize, now, after, after > marking.kmin);
            if let (Some(id), true) = (switch_ioam(self.simulation, node), packet.extra != NONE) {
                self.write_trace(out, &mut packet, id, depth);
            }
            if depth > marking.kmin {
                self.congested(node, &mut packet, depth);
            }
            if after > marking.kmax && !self.ports[out as usize].above_kmax {
                self.ports[out as usize].above_kmax = true;
                self.ledger.crossed_kmax(now, true);
            }
        }
        if packet.came_by != NONE && packet.class < super::packet::CONTROL {
            let held = &mut self.ports[packet.came_by as usize].held[usize::from(packet.class)];
            *held += u64::from(packet.len);
            if let Some(pfc) = pfc
                && *held >= pfc.xoff
            {
                self.ask_to_pause(packet.came_by, packet.class, pfc);
            }
        }
        self.ports[out as usize].enqueue(packet);
        self.kick(out);
    }

    /// A packet leaves an egress queue.
    pub(super) fn leaves(&mut self, out: u32, packet: &Packet) {
        let now = self.now;
        let node = self.ports[out as usize].node;
        let Some((switch, _)) = self.switch(node) else {
            return;
        };
        let (kmax, pfc) = (switch.congestion.marking.kmax, switch.pfc);
        let port = &mut self.ports[out as usize];
        port.load.sent(now, packet.len);
        if port.above_kmax && packet.what == What::Data && port.depth(packet.class) <= kmax {
            port.above_kmax = false;
            self.ledger.crossed_kmax(now, false);
        }
        if packet.came_by == NONE || packet.class >= super::packet::CONTROL {
            return;
        }
        let from = &mut self.ports[packet.came_by as usize];
        let held = &mut from.held[usize::from(packet.class)];
        *held = held.saturating_sub(u64::from(packet.len));
        if let Some(pfc) = pfc
            && *held <= pfc.xon
            && from.pausing >> packet.class & 1 == 1
        {
            from.pausing &= !(1 << packet.class);
            self.send_pause(packet.came_by, packet.class, 0);
        }
    }

    /// Asks the role about a data packet that meets a deep queue, and does what it says.
    fn congested(&mut self, node: u32, packet: &mut Packet, depth: u64) {
        let simulation = self.simulation;
        let Some(flow) = simulation.flows.get(packet.flow as usize) else {
            return;
        };
        let dice = self.chance.next_u32();
        let path = self.frames.path(packet.tunnel).copied();
        let outer = path.map(|path| Outer {
            ingress: match path.tunnel {
                model::Tunnel::SrMpls { .. } => None,
                _ => simulation.nodes.get(path.ingress).map(|n| n.ipv6),
            },
            flow_label: packet.label,
        });
        let ecn = if tunnel_has_ecn(path) {
            packet.outer_ecn
        } else {
            packet.ecn
        };
        let trace = self
            .traces
            .at(packet.extra)
            .filter(|_| packet.extra != NONE)
            .map(|trace| (trace.opt_type, &trace.bytes[..]));
        let view = DataPacket {
            source: flow.source,
            destination: flow.destination,
            source_port: flow.source_port,
            destination_port: simulation.profile.rocev2_port,
            dest_qp: flow.receiver_qp,
            ecn: Ecn::from_bits(ecn),
            outer,
            trace,
            proxy_option: flow.proxy_option,
        };
        let State::Switch(state) = &mut self.nodes[node as usize] else {
            return;
        };
        let verdict = state
            .congestion
            .on_packet(self.now.into(), &view, depth, dice);
        if verdict.mark_ce {
            if tunnel_has_ecn(path) {
                packet.outer_ecn = CE;
            } else {
                packet.ecn = CE;
            }
            self.ledger.marked(node as usize);
        }
        if let Some(outgoing) = verdict.notify {
            let flow = packet.flow;
            self.notify(node, &outgoing, Some(packet), flow);
        }
    }

    /// Sends what a role wants sent.
    pub(super) fn notify(
        &mut self,
        node: u32,
        outgoing: &Outgoing,
        about: Option<&Packet>,
        flow: u32,
    ) {
        let Some(packet) = self.notification(outgoing, about, flow) else {
            return;
        };
        let kind = self
            .octets
            .at(packet.extra)
            .and_then(|o| o.note.as_ref())
            .map_or(outgoing.kind(), |note| note.kind);
        self.ledger.notified(node as usize, kind);
        match self.nodes[node as usize] {
            State::Switch(_) => self.originate(node, packet),
            State::Host(_) => self.host_sends(node, packet),
        }
    }

    /// Writes the switch's data into a packet's IOAM trace.
    fn write_trace(&mut self, out: u32, packet: &mut Packet, id: u32, depth: u64) {
        let (now, epoch) = (self.now, self.simulation.epoch);
        let port = &self.ports[out as usize];
        let (rate, wait) = (port.rate, port.rate.time(depth));
        let ingress = if packet.came_by == NONE {
            0
        } else {
            packet.came_by
        };
        let load = port.load.rate;
        let in_100mbps = |bits: f64| (bits / 1e8).round().min(65_535.0) as u16;
        let load = HopLoad {
            capacity_100mbps: in_100mbps(rate.bits_per_second() as f64),
            throughput_100mbps: in_100mbps(load),
        };
        let nanoseconds = epoch + now.as_nanos();
        let values = NodeValues {
            hop_limit: packet.hops,
            node_id: u64::from(id),
            ingress,
            egress: out,
            seconds: (nanoseconds / 1_000_000_000) as u32,
            fraction: (nanoseconds % 1_000_000_000) as u32,
            transit_delay: wait.as_nanos().min(0x7FFF_FFFF) as u32,
            namespace_data: u64::from(load.to_bits()),
            queue_depth: depth.min(u64::from(u32::MAX) - 1) as u32,
            checksum_complement: 0,
            buffer_occupancy: 0,
            opaque: (0, &[]),
        };
        let Some(trace) = self.traces.at_mut(packet.extra) else {
            return;
        };
        let before = trace.bytes.len();
        if trace.opt_type == OptType::Incremental {
            append_incremental(&mut trace.bytes, &values);
            let grown = option_room(trace.bytes.len()) - option_room(before);
            packet.len += grown as u32;
        } else {
            // A full trace gets its overflow flag there.
            let _ = fill_preallocated(&mut trace.bytes, &values);
        }
    }

    /// Whether a Fast CNP is at the border of its domain, and this switch stops it there.
    fn stops_at_border(&mut self, node: u32, came_by: u32, packet: &Packet) -> bool {
        let fast = self
            .octets
            .at(packet.extra)
            .and_then(|o| o.note.as_ref())
            .is_some_and(|note| matches!(note.kind, Kind::FastCnp1 | Kind::FastCnp2));
        if !fast {
            return false;
        }
        let domain = |n: u32| self.simulation.nodes.get(n as usize).map(|n| n.domain);
        let here = domain(node);
        let inbound = domain(self.ports[came_by as usize].peer) != here;
        let out = self.routes.port(
            node as usize,
            packet.to as usize,
            mix(u64::from(packet.flow) << 1),
        );
        let outbound = out.is_some_and(|out| domain(self.ports[out as usize].peer) != here);
        let stops = (inbound || outbound)
            && self
                .switch(node)
                .is_some_and(|(switch, _)| switch.border_filter);
        if stops && let Some((_, state)) = self.switch(node) {
            state.stopped += 1;
        }
        stops
    }

    /// Lets proxy and provider edge see what passes: connections being set up.
    fn overhear(&mut self, node: u32, packet: &Packet) {
        let now: Time = self.now.into();
        let State::Switch(state) = &mut self.nodes[node as usize] else {
            return;
        };
        if state.proxy.is_none() && state.edge.is_none() {
            return;
        }
        let Some(octets) = self.octets.at(packet.extra).filter(|o| o.note.is_none()) else {
            return;
        };
        let frame = raw(octets, &self.simulation.profile);
        if let Some(proxy) = &mut state.proxy {
            proxy.on_transit(now, &frame);
        }
        if let Some(edge) = &mut state.edge {
            edge.on_transit(now, &frame);
        }
    }

    /// A packet for the switch itself.
    fn consume(&mut self, node: u32, packet: &Packet) {
        let now: Time = self.now.into();
        if packet.what != What::Frame {
            return;
        }
        let (State::Switch(state), Some(octets)) =
            (&mut self.nodes[node as usize], self.octets.at(packet.extra))
        else {
            return;
        };
        let frame = raw(octets, &self.simulation.profile);
        state.congestion.on_transit(&frame);
        let proxied = state
            .proxy
            .as_mut()
            .and_then(|proxy| proxy.on_message(now, &frame).ok());
        let translated = proxied.or_else(|| {
            let edge = state.edge.as_mut()?;
            edge.on_message(now, &frame).ok()
        });
        if let Some(outgoing) = translated {
            let flow = self.flow_of(&outgoing);
            self.notify(node, &outgoing, None, flow);
        }
    }

    /// At the end of its tunnel, a packet gets out; congestion met inside stays known (RFC 6040).
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

    /// At a provider edge, a packet for a host behind another one gets into a tunnel.
    fn enter_tunnel(&mut self, node: u32, packet: &mut Packet) {
        if packet.tunnel != NONE {
            return;
        }
        let Some(tunnel) = self.routes.tunnel(node as usize, packet.to as usize) else {
            return;
        };
        let flow = self.simulation.flows.get(packet.flow as usize);
        let State::Switch(state) = &mut self.nodes[node as usize] else {
            return;
        };
        packet.label = match (flow, &mut state.edge, packet.what) {
            (Some(flow), Some(edge), What::Data) => {
                edge.label(flow.source, flow.destination, flow.receiver_qp)
            }
            // Entropy for what no FCN will be about.
            _ => (mix(u64::from(packet.flow) << 32 | u64::from(packet.to)) & 0xF_FFFF) as u32,
        };
        packet.tunnel = tunnel;
        packet.outer_ecn = packet.ecn;
        packet.outer_hops = HOPS;
        packet.len += self.frames.path(tunnel).map_or(0, Path::overhead);
    }

    /// Tells the peer of an ingress port to stop a class, once until it is let go.
    fn ask_to_pause(&mut self, port: u32, class: u8, pfc: model::Pfc) {
        let state = &mut self.ports[port as usize];
        if state.pausing >> class & 1 == 1 {
            return;
        }
        state.pausing |= 1 << class;
        self.send_pause(port, class, pfc.quanta);
        self.plan_pause_again(port, class, pfc.quanta);
    }

    fn plan_pause_again(&mut self, port: u32, class: u8, quanta: u16) {
        let nanoseconds = pause_nanoseconds(quanta, self.ports[port as usize].rate.non_zero());
        let again = self.now + Ps::from_nanos((nanoseconds / 2).max(1));
        self.events.plan(again, Event::PauseAgain(port, class));
    }

    /// Repeats a pause before it runs out.
    pub(super) fn pause_again(&mut self, port: u32, class: u8) {
        let node = self.ports[port as usize].node;
        if self.ports[port as usize].pausing >> class & 1 == 0 {
            return;
        }
        if let Some(pfc) = self.switch(node).and_then(|(switch, _)| switch.pfc) {
            self.send_pause(port, class, pfc.quanta);
            self.plan_pause_again(port, class, pfc.quanta);
        }
    }

    pub(super) fn send_pause(&mut self, port: u32, class: u8, quanta: u16) {
        let Some(repr) = PfcRepr::one(usize::from(class), quanta) else {
            return;
        };
        let mut bytes = vec![0; PFC_ROOM];
        if repr.emit(&mut bytes).is_err() {
            return;
        }
        let octets = Octets {
            bytes,
            ether_type: ETHERTYPE_MAC_CONTROL,
            multicast: Some(PFC_DESTINATION),
            ..Octets::default()
        };
        let node = self.ports[port as usize].node;
        let mut packet = self.frame_to(self.ports[port as usize].peer, octets);
        packet.class = MAC_CONTROL;
        self.ledger.paused(node as usize);
        self.ports[port as usize].enqueue(packet);
        self.kick(port);
    }

    /// A PFC frame has come in: stops or lets go classes of this port.
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

    /// A pause has run out, unless it was repeated.
    pub(super) fn pause_ends(&mut self, port: u32, class: u8) {
        let state = &mut self.ports[port as usize];
        if state.is_paused(class) && self.now >= state.paused_until[usize::from(class)] {
            state.pause(class, false);
            self.resume(port, class);
        }
    }

    fn resume(&mut self, port: u32, class: u8) {
        let node = self.ports[port as usize].node;
        self.unpark(node, class);
        self.kick(port);
    }
}

/// Whether congestion is marked in the tunnel's own header: MPLS has none, so the packet's inside is used.
const fn tunnel_has_ecn(path: Option<Path>) -> bool {
    match path {
        Some(path) => !matches!(path.tunnel, model::Tunnel::SrMpls { .. }),
        None => false,
    }
}

/// The switch's node identifier in IOAM traces.
fn switch_ioam(simulation: &model::Simulation, node: u32) -> Option<u32> {
    match &simulation.nodes.get(node as usize)?.kind {
        NodeKind::Switch(switch) => switch.ioam_node,
        NodeKind::Host(_) => None,
    }
}

/// Octets of the Hop-by-Hop Options header around a trace.
const fn option_room(trace: usize) -> usize {
    (8 + trace).next_multiple_of(8)
}

/// Adds a node's data to an incremental trace, in front of those before it (RFC 9197 section 4.4.1).
fn append_incremental(bytes: &mut Vec<u8>, values: &NodeValues<'_>) {
    let Ok(trace) = TraceView::new_checked(OptType::Incremental, bytes) else {
        return;
    };
    let (kind, remaining) = (trace.trace_type(), trace.remaining_len());
    let units = values.buffer_len(kind) / 4;
    if units == 0 {
        return;
    }
    if units > remaining || trace.overflow() {
        set_lengths(bytes, None, true);
        return;
    }
    let mut data = vec![0; units * 4];
    if values.emit(kind, &mut data).is_ok() {
        bytes.splice(8..8, data);
        set_lengths(bytes, Some(remaining - units), false);
    }
}

/// Writes RemainingLen, or sets Overflow, in a trace header.
fn set_lengths(bytes: &mut [u8], remaining: Option<usize>, overflow: bool) {
    let mut field = u16::from_be_bytes([bytes[2], bytes[3]]);
    if let Some(remaining) = remaining {
        field = field & !0x7F | (remaining as u16 & 0x7F);
    }
    if overflow {
        field |= 0x8 << 7;
    }
    bytes[2..4].copy_from_slice(&field.to_be_bytes());
}

/// A frame of octets as its receiver parses it.
pub fn raw<'a>(octets: &'a Octets, profile: &'a Profile) -> Frame<'a> {
    Frame::parse(&octets.bytes, octets.bytes.len(), LinkType::RawIp, profile)
}

/// ECN field that senders set on what may be marked.
pub const fn data_ecn(capable: bool) -> u8 {
    if capable { ECT0 } else { 0 }
}
