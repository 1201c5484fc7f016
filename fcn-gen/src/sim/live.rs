//! One node of a simulation on real links: the same states as in virtual time, but the rest of the
//! network is reached by frames that are received and sent as octets.
//!
//! The node sends [`OutgoingFrame`] frames, each with the time of its arrival at the other end of
//! the scenario's link (its rate, queue and delay are simulated, and faults too). Received frames
//! are passed to [`LiveNode::on_frame`]. A switch forwards octets as received, regardless of their
//! sender, marks them in place, and takes the data for its roles from the octets. A host plays the
//! scenario's flows that begin or end at it. Neither waits nor reads a clock.
//!
//! The state of the scenario's other nodes is unknown here: their figures stay 0.

mod responder;

use super::connection::{Connection, Peer};
use super::event::Event;
use super::packet::{CE, CONTROL, DataInfo, NONE, Octets, Packet, PacketKind};
use super::{State, World, frames};
use crate::scenario::model::{Flow, NodeId, NodeKind, Simulation};
use crate::sim::outcome::Outcome;
use crate::truth::MadeBy;
use crate::units::Ps;
use fcn_node::{DataPacket, Ecn};
use fcn_observe::table::Table;
use fcn_wire::bth::{MAX_24, Opcode, Roce};
use fcn_wire::header::ethernet;
use fcn_wire::icrc::Verdict;
use fcn_wire::pfc::ETHERTYPE_MAC_CONTROL;
use fcn_wire::proxy_cn::FiveTuple;
use fcn_wire::rdma_cm::Cm;
use fcn_wire::{Frame, Kind, Layer, LinkType, Message, ip};
use responder::Responder;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Maximum number of neighbours whose MAC addresses are stored.
const NEIGHBOURS: usize = 65_536;
/// Maximum number of buffers kept for further frames.
const SPARE: usize = 4_096;
/// Length of an Ethernet header in octets.
const ETHERNET: usize = ethernet::LEN;
/// Class of packets whose DSCP is not used by any flow of the scenario.
const BEST_EFFORT: u8 = 0;

/// A frame to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingFrame {
    /// The node's link, in the scenario's order.
    pub link: usize,
    /// Time of arrival at the other end.
    pub at: Ps,
    /// Its Ethernet header, if that is not part of `octets`: for frames forwarded as received.
    pub header: Option<[u8; ETHERNET]>,
    /// Its octets. [`LiveNode::recycle`] reuses the buffer.
    pub octets: Vec<u8>,
    /// For a notification: its kind, the arrival time of the packet that it answers, and the time
    /// at which it was put on the link.
    pub reaction: Option<(Kind, Ps, Ps)>,
}

impl OutgoingFrame {
    /// Returns its separate Ethernet header, which may be empty, and its other octets.
    #[must_use]
    pub fn parts(&self) -> (&[u8], &[u8]) {
        let header = self.header.as_ref();
        (header.map_or(&[], |header| header.as_slice()), &self.octets)
    }
}

/// Counters of the roles: by role, counters by name.
pub type Counters = Vec<(&'static str, Vec<(&'static str, u64)>)>;

/// Defines a struct of counters with their names.
macro_rules! counted {
    ($(#[$about:meta])* $name:ident { $($(#[$what:meta])* $counter:ident,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$what])* pub $counter: u64,)*
        }

        impl $name {
            /// Returns the counters by name.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($counter), self.$counter),)*].into_iter()
            }
        }
    };
}
use counted;

counted! {
    /// Frames that a live node ignored, by reason.
    IgnoredFrames {
        /// Addressed to another node than this host.
        not_for_us,
        /// To a QP that no flow of the scenario has, or not from the other end of that flow.
        unknown_qp,
        /// RoCEv2 with a wrong ICRC.
        bad_icrc,
        /// Data of another length, or with a PSN far from the expected one.
        out_of_place,
        /// Frames that could not be parsed.
        unreadable,
    }
}

/// State that a world needs to be a single live node.
pub(super) struct Live {
    pub node: u32,
    /// The node's own MAC addresses, by link.
    macs: Vec<[u8; 6]>,
    /// Destination MAC address for IP addresses from which no frame has been received; if `None`,
    /// the MAC address that the scenario gives the destination node.
    peer: Option<[u8; 6]>,
    /// MAC address of each IP address, taken from received frames.
    neighbours: Table<IpAddr, [u8; 6]>,
    /// Traffic class by DSCP.
    classes: [u8; 64],
    outgoing: Vec<OutgoingFrame>,
    /// Buffers to reuse.
    spare: Vec<Vec<u8>>,
    /// True if all links of this switch are one interface.
    is_one: bool,
    /// The frame being processed: its ingress port, arrival time, and source MAC address.
    cause: Option<(u32, Ps, [u8; 6])>,
    /// Serves connections that are not in the scenario, and requests of a sender's peers.
    responder: Responder,
    passed_over: IgnoredFrames,
}

/// A node on real links.
pub struct LiveNode<'s> {
    world: World<'s>,
    /// The node's ports, in the order of its links.
    ports: Vec<u32>,
    next: Option<(Ps, Event)>,
}

impl<'s> LiveNode<'s> {
    /// Creates `node` of the simulation, with these MAC addresses on its links, in the scenario's
    /// order. `peer` is the destination MAC address for IP addresses from which no frame has been
    /// received; if `None`, it is the MAC address that the scenario gives the destination node.
    #[must_use]
    pub fn new(
        simulation: &'s Simulation,
        node: NodeId,
        macs: Vec<[u8; 6]>,
        peer: Option<[u8; 6]>,
    ) -> Self {
        let mut world = World::new(simulation, None);
        let ports = world.ports.iter().enumerate();
        let ports = ports.filter(|(_, port)| port.node == node as u32);
        let ports: Vec<u32> = ports.map(|(index, _)| index as u32).collect();
        let mut classes = [BEST_EFFORT; 64];
        for flow in &simulation.flows {
            classes[usize::from(flow.dscp & 63)] = flow.priority & 7;
        }
        world.live = Some(Box::new(Live {
            node: node as u32,
            macs,
            peer,
            neighbours: Table::new(NEIGHBOURS),
            classes,
            outgoing: Vec::new(),
            spare: Vec::new(),
            is_one: false,
            cause: None,
            responder: Responder::default(),
            passed_over: IgnoredFrames::default(),
        }));
        world.begin(Some(node));
        Self {
            world,
            ports,
            next: None,
        }
    }

    /// Makes a switch use one interface for all its links: link 0, with its first MAC address.
    /// Frames to that address are sent back from it to the address from which their destination was
    /// last received; all other frames are ignored.
    pub fn reflect(&mut self) {
        if let Some(live) = &mut self.world.live {
            live.is_one = true;
        }
    }

    /// Returns the links of `node`, in the order in which ports are numbered.
    pub fn links(simulation: &Simulation, node: NodeId) -> impl Iterator<Item = usize> + '_ {
        let links = simulation.links.iter().enumerate();
        links
            .filter(move |(_, link)| link.a == node || link.b == node)
            .map(|(index, _)| index)
    }

    /// Returns the node's link towards another one; `None` if no route leads there.
    #[must_use]
    pub fn towards(&self, to: NodeId) -> Option<usize> {
        let live = self.world.live.as_ref()?;
        if matches!(self.world.nodes.get(live.node as usize)?, State::Host(_)) {
            return Some(0);
        }
        let port = self.world.routes.port(live.node as usize, to, || 0)?;
        self.ports.iter().position(|own| *own == port)
    }

    /// Processes a frame received on the node's `link`.
    pub fn on_frame(&mut self, now: Ps, link: usize, bytes: &[u8]) {
        self.on_timer(now);
        if let Some(&port) = self.ports.get(link) {
            self.world.now = now;
            self.put_back();
            self.world.octets_arrive(port, bytes);
            self.on_timer(now);
        }
    }

    /// Processes all due events.
    pub fn on_timer(&mut self, now: Ps) {
        while let Some((at, event)) = self.next.take().or_else(|| self.world.events.next()) {
            if at > now {
                self.next = Some((at, event));
                return;
            }
            self.world.now = at.max(self.world.now);
            self.world.handle(event);
        }
    }

    /// Returns the time of the next event.
    pub fn next_timer(&mut self) -> Option<Ps> {
        if self.next.is_none() {
            self.next = self.world.events.next();
        }
        self.next.map(|(at, _)| at)
    }

    /// Returns the next event to the queue, since new events may be scheduled before it.
    fn put_back(&mut self) {
        if let Some((at, event)) = self.next.take() {
            self.world.events.plan(at, event);
        }
    }

    /// Stops posting messages; [`is_quiet`](Self::is_quiet) returns true when the connections are
    /// taken down.
    pub fn stop(&mut self, now: Ps) {
        self.on_timer(now);
        self.put_back();
        self.world.now = self.world.now.max(now);
        for (index, flow) in self.world.simulation.flows.iter().enumerate() {
            if self.world.is_live(flow.from) {
                self.world.stop(index as u32);
            }
        }
        self.on_timer(now);
    }

    /// Returns true if none of the flows that begin here sends or waits for an answer.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let flows = self.world.simulation.flows.iter();
        flows
            .zip(&self.world.connections)
            .filter(|(flow, _)| self.world.is_live(flow.from))
            .all(|(_, connection)| connection.is_over())
    }

    /// Returns true if the connection of any flow that begins here was ever open.
    #[must_use]
    pub fn has_opened(&self) -> bool {
        self.world.connections.iter().any(|c| c.opened)
    }

    /// Appends the frames to send to `frames`.
    pub fn take_outgoing(&mut self, frames: &mut Vec<OutgoingFrame>) {
        if let Some(live) = &mut self.world.live {
            frames.append(&mut live.outgoing);
        }
    }

    /// Takes back the buffer of a sent frame.
    pub fn recycle(&mut self, octets: Vec<u8>) {
        if let Some(live) = &mut self.world.live
            && live.spare.len() < SPARE
        {
            live.spare.push(octets);
        }
    }

    /// Returns the counters of ignored frames.
    #[must_use]
    pub fn passed_over(&self) -> IgnoredFrames {
        let live = self.world.live.as_ref();
        live.map_or_else(IgnoredFrames::default, |live| live.passed_over)
    }

    /// Returns the reason why the node cannot continue, if there is one.
    pub fn failure(&mut self) -> Option<String> {
        self.world.failed.take().map(|failure| failure.to_string())
    }

    /// Returns the payload delivered in order here so far, in octets; the sum of the rates of flows
    /// that begin here, in bit/s; and the present depth of the deepest queue of data, in octets.
    pub fn figures(&mut self) -> (u64, f64, u64) {
        let world = &mut self.world;
        let delivered = world.connections.iter().map(|c| c.counts.delivered).sum();
        let flows = world.simulation.flows.iter().enumerate();
        let own: Vec<usize> = flows
            .filter(|(_, flow)| world.is_live(flow.from))
            .map(|(index, _)| index)
            .collect();
        let rate = own.into_iter().map(|flow| world.rate_of(flow)).sum();
        let deepest = self.ports.iter().filter_map(|port| {
            let port = world.ports.get(*port as usize)?;
            Some(port.deepest())
        });
        (delivered, rate, deepest.max().unwrap_or(0))
    }

    /// Returns the counters of the roles, by role and counter.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let live = self.world.live.as_ref();
        let node = live.and_then(|live| self.world.nodes.get(live.node as usize));
        match node {
            Some(State::Switch(switch)) => switch.counters(),
            Some(State::Host(host)) => {
                let served = live.map(|live| *live.responder.counters());
                let served = served.filter(|served| *served != responder::Counters::default());
                let mut all = host.counters();
                all.extend(served.map(|served| ("responder", served.named().collect())));
                all
            }
            None => Vec::new(),
        }
    }

    /// Returns the truth and the figures, as far as they are known at this node.
    #[must_use]
    pub fn end(self, name: &str) -> Outcome {
        self.world.end(name)
    }
}

impl World<'_> {
    pub(super) fn is_live(&self, node: NodeId) -> bool {
        let live = self.live.as_ref();
        live.is_some_and(|live| live.node == node as u32)
    }

    /// Processes a frame received on a port of this node.
    fn octets_arrive(&mut self, port: u32, bytes: &[u8]) {
        let Some(live) = &mut self.live else { return };
        let (Some(source), Some(ether_type)) = (mac(bytes, 6), ether_type(bytes)) else {
            live.passed_over.unreadable += 1;
            return;
        };
        let node = live.node;
        if live.is_one && mac(bytes, 0) != live.macs.first().copied() {
            live.passed_over.not_for_us += 1;
            return;
        }
        live.cause = Some((port, self.now, source));
        let profile = &self.simulation.profile;
        let frame = Frame::parse(bytes, bytes.len(), LinkType::Ethernet, profile);
        if let Some(ip) = frame.ip()
            && ip::is_node_address(ip.source)
            && ip.start == ETHERNET
            && source[0] & 1 == 0
            && live.neighbours.peek(&ip.source) != Some(&source)
        {
            live.neighbours.put(ip.source, source);
        }
        if ether_type == ETHERTYPE_MAC_CONTROL {
            let octets = Octets {
                bytes: bytes.get(ETHERNET..).unwrap_or_default().to_vec(),
                ..Octets::default()
            };
            let packet = self.frame_to(node, octets);
            self.paused_by_peer(port, &packet);
            self.discard(&packet);
            return;
        }
        let port = match &mut self.live {
            Some(live) if live.is_one => {
                // It is treated as coming from the link towards its sender, if known.
                let from = frame.ip().and_then(|ip| self.addresses.get(&ip.source));
                let towards =
                    from.and_then(|from| self.routes.port(node as usize, *from as usize, || 0));
                let port = towards.unwrap_or(port);
                live.cause = Some((port, self.now, source));
                port
            }
            _ => port,
        };
        match self.nodes[node as usize] {
            State::Host(_) => self.host_process(node, &frame),
            State::Switch(_) => self.switch_process(node, port, &frame, ether_type),
        }
        if let Some(live) = &mut self.live {
            live.cause = None;
        }
    }

    pub(super) fn pass_over(&mut self, count: impl FnOnce(&mut IgnoredFrames) -> &mut u64) {
        if let Some(live) = &mut self.live {
            *count(&mut live.passed_over) += 1;
        }
    }

    /// Processes a frame at a host: data and acknowledgements of its flows, and self-contained
    /// messages.
    fn host_process(&mut self, node: u32, frame: &Frame<'_>) {
        let simulation = self.simulation;
        let own = &simulation.nodes[node as usize];
        let Some(ip) = frame.ip() else { return };
        if ip.destination != own.ipv6 && ip.destination != own.ipv4 {
            return self.pass_over(|counts| &mut counts.not_for_us);
        }
        match frame.message() {
            Message::Roce(bth, Some(roce)) => {
                let key = (ip.destination, bth.dest_qp().get());
                let flow = self.qps.get(&key).copied();
                let values = flow.and_then(|flow| simulation.flows.get(flow as usize));
                let (Some(flow), Some(values)) = (flow, values) else {
                    return self.respond(node, frame, &roce);
                };
                let is_data = values.to == node as usize;
                let peer = if is_data {
                    values.source
                } else {
                    values.destination
                };
                if ip.source != peer || !is_data && roce.aeth().is_none() {
                    return self.respond(node, frame, &roce);
                }
                if !matches!(frame.verify_icrc(), Verdict::Good(_)) {
                    return self.pass_over(|counts| &mut counts.bad_icrc);
                }
                let connection = &mut self.connections[flow as usize];
                if is_data && is_write(bth.opcode()) && !connection.joined {
                    connection.join(values, bth.psn());
                }
                let near = if is_data {
                    connection.expected
                } else {
                    connection.acknowledged
                };
                let index = index_of((values, connection), near, bth.psn());
                let kind = match (is_data, roce.aeth()) {
                    (true, _) if is_write(bth.opcode()) => PacketKind::Data,
                    (false, Some(aeth)) => match aeth.syndrome >> 5 {
                        0 => PacketKind::Ack,
                        // PSN sequence error.
                        3 if aeth.syndrome & 31 == 0 => PacketKind::Nak,
                        3 => {
                            let syndrome = aeth.syndrome;
                            self.give_up(
                                flow,
                                &format!("refuses RDMA WRITEs: NAK, AETH syndrome {syndrome:#04x}"),
                            );
                            return;
                        }
                        _ => return self.pass_over(|counts| &mut counts.out_of_place),
                    },
                    _ => return self.pass_over(|counts| &mut counts.out_of_place),
                };
                let Some(index) = index else {
                    return self.pass_over(|counts| &mut counts.out_of_place);
                };
                if kind == PacketKind::Data {
                    let payload = connection.payload(values, index) as usize;
                    let len = roce.payload().len();
                    if len != payload && len != payload.next_multiple_of(4) {
                        return self.pass_over(|counts| &mut counts.out_of_place);
                    }
                }
                let extra = match frame.ioam_trace() {
                    Some((_, trace)) if kind == PacketKind::Data => {
                        self.traces.put(super::packet::Trace {
                            opt_type: trace.opt_type(),
                            bytes: trace.bytes().to_vec(),
                        })
                    }
                    _ => NONE,
                };
                let packet = Packet {
                    class: values.priority & 7,
                    ecn: ip.ecn(),
                    ack_request: bth.ack_request(),
                    hops: ip.hop_limit,
                    flow,
                    extra,
                    index,
                    ..Packet::new(kind, node, frame.wire_len() as u32)
                };
                self.host_receives(node, packet);
            }
            Message::Other => {}
            _ => {
                let bytes = frame.bytes();
                let packet = bytes.get(ip.start..ip.end.min(bytes.len()));
                let octets = Octets::ip(packet.unwrap_or_default().to_vec());
                self.read_frame(node, &octets, frame);
            }
        }
    }

    /// Registers a sender's open connection with the responder, since its receiver may send
    /// requests, too.
    pub(super) fn is_opened(&mut self, values: &Flow, peer: &Peer) {
        let Some(live) = &mut self.live else { return };
        let (responder, ends) = (&mut live.responder, (values.destination, peer.id));
        responder.opened(self.now, values.sender_qp, ends, peer.qp, values.first_psn);
    }

    /// Answers connection management of a connection that is not in the scenario.
    pub(super) fn respond_to_management(
        &mut self,
        node: u32,
        frame: &Frame<'_>,
        message: (u64, &Cm<'_>),
    ) {
        let is_receiver = self
            .simulation
            .flows
            .iter()
            .any(|flow| flow.to == node as usize);
        let (Some(ip), Some(live), true) = (frame.ip(), &mut self.live, is_receiver) else {
            return self.pass_over(|counts| &mut counts.unknown_qp);
        };
        let (ends, profile) = ((ip.source, ip.destination), &self.simulation.profile);
        let answer = live
            .responder
            .on_management(self.now, ends, message, profile);
        self.answer(node, ip.source, answer);
    }

    /// Answers a packet to a QP that is not the scenario's, or not from that QP's peer.
    fn respond(&mut self, node: u32, frame: &Frame<'_>, roce: &Roce<'_>) {
        let (ip, live) = (frame.ip(), &mut self.live);
        let known = ip.zip(live.as_mut()).and_then(|(ip, live)| {
            let peer_qp = live.responder.peer_qp(ip.source, roce.bth().dest_qp())?;
            Some((ip, live, peer_qp, DataPacket::from_frame(frame)?))
        });
        let Some((ip, live, peer_qp, data)) = known else {
            return self.pass_over(|counts| &mut counts.unknown_qp);
        };
        if !matches!(frame.verify_icrc(), Verdict::Good(_)) {
            return self.pass_over(|counts| &mut counts.bad_icrc);
        }
        let from = (ip, data.source_port);
        let profile = &self.simulation.profile;
        let answer = live.responder.on_packet(self.now, from, roce, profile);
        if data.ecn == Ecn::Ce {
            let now = self.now.into();
            if let Some(cnp) = self.host(node).answer_to_ce(now, &data, peer_qp) {
                self.notify((node, MadeBy::Receiver), &cnp, None, NONE);
            }
        }
        self.answer(node, ip.source, answer);
    }

    fn answer(&mut self, node: u32, to: IpAddr, packet: Option<Vec<u8>>) {
        let packet = packet.and_then(|packet| self.frame(to, Octets::ip(packet)));
        if let Some(packet) = packet {
            self.host_sends(node, packet);
        }
    }

    /// Processes a frame at a switch: learns from it, and forwards or consumes it.
    fn switch_process(&mut self, node: u32, came_by: u32, frame: &Frame<'_>, ether_type: u16) {
        let now = self.now.into();
        let state = self.nodes[node as usize].switch();
        if frame.routing().is_some() {
            state.congestion.on_transit(now, frame);
        }
        state.learn(now, frame);
        let bytes = frame.bytes();
        let outermost = frame
            .inner_spans()
            .iter()
            .find(|span| matches!(span.layer, Layer::Ipv4 | Layer::Ipv6))
            .map(|span| span.start);
        let data = DataPacket::from_frame(frame);
        let inner = frame.ip().copied();
        let begin = match self.decapsulation_offset(node, frame, outermost) {
            Some(inner) => inner,
            None => ETHERNET,
        };
        let destination = match (begin, outermost) {
            (ETHERNET, Some(at)) => destination_at(bytes, at),
            (ETHERNET, None) => inner.map(|ip| ip.destination),
            _ => inner.map(|ip| ip.destination),
        };
        let to = destination.and_then(|address| self.addresses.get(&address).copied());
        let is_cm_or_notification = match frame.message() {
            Message::Roce(..) => false,
            Message::Other => outermost.is_none(),
            _ => true,
        };
        let class = match (&self.live, inner) {
            (Some(live), Some(ip)) if !is_cm_or_notification => {
                live.classes[usize::from(ip.traffic_class >> 2)]
            }
            _ => CONTROL,
        };
        let place = self.octets.take();
        let Some(octets) = self.octets.at_mut(place) else {
            return;
        };
        let mut kept = std::mem::take(&mut octets.bytes);
        kept.clear();
        kept.extend_from_slice(bytes.get(begin..).unwrap_or_default());
        *octets = Octets {
            bytes: kept,
            ether_type,
            macs: mac(bytes, 0).zip(mac(bytes, 6)),
            ..Octets::default()
        };
        let mut ecn = inner.map_or(0, |ip| ip.ecn());
        if begin != ETHERNET {
            // Decapsulated; congestion met in the tunnel stays marked (RFC 6040).
            let is_v4 = inner.is_some_and(|ip| ip.source.is_ipv4());
            octets.ether_type = if is_v4 {
                ethernet::IPV4
            } else {
                ethernet::IPV6
            };
            octets.macs = None;
            let end = inner.map_or(0, |ip| ip.end - ip.start);
            octets.bytes.truncate(end);
            let outer = outermost.and_then(|at| ecn_at(bytes, at));
            if outer == Some(CE) && ecn != 0 {
                ip::set_traffic_class(&mut octets.bytes, CE, CE);
                ecn = CE;
            }
        }
        let offset = |at: usize| at.saturating_sub(begin);
        if let Some(data) = data {
            let outer_at = if begin == ETHERNET {
                outermost
            } else {
                inner.map(|ip| ip.start)
            };
            let trace = frame.ioam_trace().map(|(at, trace)| {
                let at = offset(at);
                (trace.opt_type(), at..at + trace.bytes().len())
            });
            octets.data = Some(DataInfo {
                data: DataPacket {
                    source: data.source,
                    destination: data.destination,
                    source_port: data.source_port,
                    destination_port: data.destination_port,
                    dest_qp: data.dest_qp,
                    ecn: if begin == ETHERNET {
                        data.ecn
                    } else {
                        Ecn::from_bits(ecn)
                    },
                    outer: data.outer.filter(|_| begin == ETHERNET),
                    trace: None,
                    proxy_option: data.proxy_option,
                },
                trace,
                ecn_at: outer_at.map(offset),
                inner: inner.map_or(0..0, |ip| offset(ip.start)..offset(ip.end)),
            });
        } else if !is_cm_or_notification && matches!(frame.message(), Message::Other) {
            octets.other = FiveTuple::from_packet(&octets.bytes);
        }
        let len = (ETHERNET + octets.bytes.len()) as u32;
        let mut packet = Packet {
            class,
            ecn,
            hops: inner.map_or(super::packet::HOPS, |ip| ip.hop_limit),
            came_by,
            extra: place,
            ..Packet::new(PacketKind::Frame, to.unwrap_or(NONE), len)
        };
        if packet.to != NONE && self.stops_at_border(node, came_by, &packet) {
            self.discard(&packet);
        } else if packet.to == node {
            self.consume(node, &packet);
            self.discard(&packet);
        } else {
            if packet.to != NONE && matches!(packet_type(&self.octets, place), Some(true)) {
                self.enter_tunnel(node, &mut packet);
            }
            self.forward(node, packet);
        }
    }

    /// Returns the offset of a frame's inner packet, if it leaves its tunnel here.
    fn decapsulation_offset(
        &self,
        node: u32,
        frame: &Frame<'_>,
        outermost: Option<usize>,
    ) -> Option<usize> {
        let NodeKind::Switch(switch) = &self.simulation.nodes[node as usize].kind else {
            return None;
        };
        switch.edge.as_ref()?;
        let inner = frame.ip()?;
        let is_mpls = frame
            .inner_spans()
            .iter()
            .any(|span| span.layer == Layer::Mpls);
        let host = self.addresses.get(&inner.destination).copied()?;
        let ours = match outermost {
            Some(outer) if outer < inner.start => {
                let own = self.simulation.nodes[node as usize].ipv6;
                destination_at(frame.bytes(), outer) == Some(own.into())
            }
            // No header names the tunnel's end: it is here if no tunnel continues.
            Some(_) => is_mpls && self.routes.tunnel(node as usize, host as usize).is_none(),
            None => false,
        };
        ours.then_some(inner.start)
    }

    /// Floods a switch's packet without a known route to all other ports, like a bridge.
    pub(super) fn flood_octets(&mut self, node: u32, packet: Packet) {
        // Rare, and with few ports; a bump in the wire has only one other port.
        let ports = &self.nodes[node as usize].switch().ports;
        let mut others = ports.iter().copied().filter(|port| *port != packet.came_by);
        let (Some(first), rest) = (others.next(), others.collect::<Vec<_>>()) else {
            return self.lose(&packet);
        };
        let is_one = self.live.as_ref().is_some_and(|live| live.is_one);
        for port in rest.into_iter().filter(|_| !is_one) {
            let copy = self.octets.at(packet.extra).cloned().unwrap_or_default();
            let extra = self.octets.put(copy);
            self.egress(node, port, Packet { extra, ..packet });
        }
        self.egress(node, first, packet);
    }

    /// Returns the ingress port of the packet that `packet` answers, to which it goes if no route
    /// leads to its destination.
    pub(super) fn port_of_cause(&self, packet: &Packet) -> Option<u32> {
        let noted = self
            .octets
            .at(packet.extra)
            .and_then(|octets| octets.caused);
        noted.or_else(|| self.cause()).map(|(_, port)| port)
    }

    /// Returns arrival time and ingress port of the packet being answered.
    pub(super) fn cause(&self) -> Option<(Ps, u32)> {
        let (port, at, _) = self.live.as_ref()?.cause?;
        Some((at, port))
    }

    /// Puts a packet on a real link, with its time of arrival at the other end.
    pub(super) fn leave(&mut self, index: u32, arrival: Ps, packet: &Packet) {
        let port = &self.ports[index as usize];
        let (node, peer) = (port.node as usize, port.peer as usize);
        let Some(mut live) = self.live.take() else {
            return;
        };
        let link = match live.is_one {
            true => 0,
            false => Self::place(self.simulation, node, index),
        };
        let mut room = live.spare.pop().unwrap_or_default();
        room.clear();
        let octets = match packet.kind {
            PacketKind::Frame => self.octets.at_mut(packet.extra),
            _ => None,
        };
        let as_it_came = octets.filter(|_| packet.tunnel == NONE);
        let as_it_came = as_it_came.and_then(|octets| Some((octets.macs?, octets)));
        let as_it_came = as_it_came.map(|(macs, octets)| match (live.is_one, live.macs.first()) {
            (true, Some(own)) => {
                let known = destination_at(&octets.bytes, 0);
                let known = known.and_then(|address| live.neighbours.get(&address).copied());
                let towards = if packet.to == NONE {
                    peer
                } else {
                    packet.to as usize
                };
                let to = known.or(live.peer).unwrap_or(frames::mac(towards));
                ((to, *own), octets)
            }
            _ => (macs, octets),
        });
        let header = as_it_came.map(|((destination, source), octets)| {
            let mut header = [0; ETHERNET];
            header[..6].copy_from_slice(&destination);
            header[6..12].copy_from_slice(&source);
            header[12..].copy_from_slice(&octets.ether_type.to_be_bytes());
            // Received octets are sent unchanged; the pool entry gets this buffer instead.
            std::mem::swap(&mut room, &mut octets.bytes);
            header
        });
        let octets = match packet.kind {
            PacketKind::Frame => self.octets.at(packet.extra),
            _ => None,
        };
        if header.is_none() {
            room.resize(packet.len as usize, 0);
            let context = frames::Context {
                connections: &self.connections,
                octets: &self.octets,
                traces: &self.traces,
            };
            let made = self.frames.write(packet, (node, peer), context, &mut room);
            if let Err(error) = made {
                self.failed = Some(format!("cannot build a packet: {error}").into());
                self.live = Some(live);
                return;
            }
            let class = octets.and_then(|octets| Some(octets.data.as_ref()?.class(octets)));
            if let (Some(class), true) = (class, packet.tunnel != NONE) {
                ip::set_traffic_class(&mut room[ETHERNET..], class, 0xFC);
            }
            let is_group = room.first().is_some_and(|first| first & 1 == 1);
            if !is_group {
                let to = self.link_address(&mut live, packet, peer, &room);
                room[..6].copy_from_slice(&to);
            }
            if let Some(own) = live.macs.get(link) {
                room[6..12].copy_from_slice(own);
            }
        }
        let note = octets.and_then(|octets| Some((octets.note.as_ref()?.kind, octets.caused?)));
        live.outgoing.push(OutgoingFrame {
            link,
            at: arrival,
            header,
            octets: room,
            reaction: note.map(|(kind, (caused, _))| (kind, caused, self.now)),
        });
        self.live = Some(live);
    }

    /// Returns the destination MAC address for a packet of this node's own, already written to
    /// `frame`.
    fn link_address(&self, live: &mut Live, packet: &Packet, peer: usize, frame: &[u8]) -> [u8; 6] {
        let destination = destination_at(frame, ETHERNET);
        if let Some(known) = destination.and_then(|address| live.neighbours.get(&address)) {
            return *known;
        }
        let cause = live.cause.filter(|_| packet.to == NONE);
        let node = match self.frames.path(packet.tunnel) {
            Some(path) => path.egress,
            None if packet.to == NONE => peer,
            None => packet.to as usize,
        };
        cause
            .map(|(.., mac)| mac)
            .or(live.peer)
            .unwrap_or(frames::mac(node))
    }

    /// Returns a port's index among those of its node.
    fn place(simulation: &Simulation, node: usize, port: u32) -> usize {
        LiveNode::links(simulation, node)
            .position(|link| link == port as usize / 2)
            .unwrap_or(0)
    }
}

/// Returns true if pooled octets are an IP packet, and false for protocols that a tunnel of IP does
/// not carry.
fn packet_type(octets: &super::packet::Pool<Octets>, place: u32) -> Option<bool> {
    let ether_type = octets.at(place)?.ether_type;
    Some(matches!(ether_type, ethernet::IPV4 | ethernet::IPV6))
}

fn mac(bytes: &[u8], at: usize) -> Option<[u8; 6]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn ether_type(bytes: &[u8]) -> Option<u16> {
    let octets = bytes.get(ETHERNET - 2..)?.first_chunk()?;
    Some(u16::from_be_bytes(*octets))
}

/// Returns the destination address of the IP header at `at`.
fn destination_at(bytes: &[u8], at: usize) -> Option<IpAddr> {
    let header = bytes.get(at..)?;
    match header.first()? >> 4 {
        4 => {
            let address: &[u8; 4] = header.get(16..)?.first_chunk()?;
            Some(Ipv4Addr::from(*address).into())
        }
        6 => {
            let address: &[u8; 16] = header.get(24..)?.first_chunk()?;
            Some(Ipv6Addr::from(*address).into())
        }
        _ => None,
    }
}

/// Returns the ECN field of the IP header at `at`.
fn ecn_at(bytes: &[u8], at: usize) -> Option<u8> {
    let header = bytes.get(at..)?;
    let class = match header.first()? >> 4 {
        4 => *header.get(1)?,
        _ => *header.get(1)? >> 4,
    };
    Some(class & 3)
}

/// Returns the index of the packet with this PSN that is nearest to packet `near`; `None` if it
/// would be before the first.
fn index_of((flow, connection): (&Flow, &Connection), near: u64, number: u32) -> Option<u64> {
    let ahead = number.wrapping_sub(connection.psn(flow, near)) & MAX_24;
    let half = 1 << 23;
    if ahead < half {
        near.checked_add(ahead.into())
    } else {
        near.checked_sub(u64::from(MAX_24 + 1 - ahead))
    }
}

/// Returns true if the opcode belongs to an RDMA WRITE without immediate data, which flows consist
/// of.
fn is_write(opcode: Opcode) -> bool {
    [
        Opcode::RC_WRITE_FIRST,
        Opcode::RC_WRITE_MIDDLE,
        Opcode::RC_WRITE_LAST,
        Opcode::RC_WRITE_ONLY,
    ]
    .contains(&opcode)
}

#[cfg(test)]
mod tests;
