//! The simulation: nodes, links and flows in virtual time. Equal seeds give equal bytes; vantage
//! points do not affect the result.
//!
//! Nodes decide by the roles of `fcn-node`. Notifications and RDMA CM travel as octets that their
//! receivers parse, data as values whose octets are built at vantage points. Hosts are in
//! `host.rs`, switches in `switch.rs`.

mod advertise;
mod connection;
mod event;
pub(crate) mod frames;
mod hash;
mod host;
mod links;
pub mod live;
pub mod outcome;
mod packet;
mod port;
mod rdma_cm;
mod recorder;
mod route;
mod switch;
mod tcp;
#[cfg(test)]
mod tests;

use crate::scenario::model::{FaultKind, NodeId, NodeKind, Simulation};
use crate::truth::{MadeBy, Note};
use crate::units::Ps;
use connection::Connection;
use event::{Event, Events};
use fcn_node::OutgoingNotification;
use fcn_wire::header::ethernet;
use fcn_wire::notification::Side;
use fcn_wire::{Kind, ip};
use frames::{Context, Frames};
use host::HostState;
use links::{Cables, Links};
use outcome::Outcome;
use packet::NONE;
use packet::{ECT0, Octets, Packet, PacketKind, Pool, Trace};
use port::Port;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use recorder::{Recorder, Totals};
use route::Routes;
use rustc_hash::FxHashMap;
use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::net::IpAddr;
use switch::SwitchState;

/// A packet captured at a vantage point.
pub struct Captured<'a> {
    /// Index of the vantage point.
    pub vantage_point: usize,
    /// Time in nanoseconds since 1970.
    pub at: u64,
    /// Octets on the wire (without FCS).
    pub wire_len: u32,
    /// Number of octets to keep.
    pub len: usize,
    /// Writes the packet's first `len` octets.
    pub fill: &'a mut dyn FnMut(&mut [u8]),
}

/// Destination of captured packets.
pub trait Sink {
    /// Processes a captured packet.
    ///
    /// # Errors
    /// The packet cannot be written; the simulation stops.
    fn take(&mut self, packet: Captured<'_>) -> Result<(), Box<dyn Error>>;
}

/// Plays `simulation`; packets that pass a vantage point go to `sink`, if there is one. `progress`
/// is called with the virtual time at intervals, and stops the simulation by returning `false`.
///
/// # Errors
/// An error of `sink`, or [`NoConnection`].
pub fn play(
    simulation: &Simulation,
    name: &str,
    sink: Option<&mut dyn Sink>,
    progress: &mut dyn FnMut(Ps) -> bool,
) -> Result<Outcome, Box<dyn Error>> {
    let mut world = World::new(simulation, sink, Cables);
    world.begin(None);
    let mut until_progress = PROGRESS_EVERY;
    let mut stopped = false;
    while let Some((at, event)) = world.events.next() {
        if at > simulation.duration {
            break;
        }
        world.now = at;
        world.handle(event);
        if world.failed.is_some() {
            break;
        }
        until_progress -= 1;
        if until_progress == 0 {
            until_progress = PROGRESS_EVERY;
            if !progress(at) {
                stopped = true;
                break;
            }
        }
    }
    match world.failed.take() {
        Some(failure) => Err(failure),
        None if !stopped && !world.connections.iter().any(|c| c.opened) => {
            Err(NoConnection(simulation.duration).into())
        }
        None => Ok(world.end(name)),
    }
}

/// Error: no flow's connection opened during the simulation, so that there was no congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoConnection(pub Ps);

impl Display for NoConnection {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no connection opened within {}; play for longer, or check the flows' start times, \
             links that are down, and the code points in [profile]",
            self.0
        )
    }
}

impl Error for NoConnection {}

/// Number of events between two reports of progress.
const PROGRESS_EVERY: u32 = 1 << 16;

/// A notification being generated: its node, kind and flow, and the packet.
type Pending = (u32, Kind, u32, Packet);

/// State of a node.
enum State {
    Host(Box<HostState>),
    Switch(Box<SwitchState>),
}

impl State {
    /// Returns the state of a node that sends or receives a flow's packets.
    fn host(&mut self) -> &mut HostState {
        match self {
            Self::Host(host) => host,
            Self::Switch(_) => unreachable!("flows begin and end at hosts"),
        }
    }

    /// Returns the state of a node that forwards packets.
    fn switch(&mut self) -> &mut SwitchState {
        match self {
            Self::Switch(switch) => switch,
            Self::Host(_) => unreachable!("hosts forward nothing"),
        }
    }
}

/// State of the whole simulation.
struct World<'s, L> {
    simulation: &'s Simulation,
    now: Ps,
    events: Events,
    ports: Vec<Port>,
    nodes: Vec<State>,
    connections: Vec<Connection>,
    octets: Pool<Octets>,
    traces: Pool<Trace>,
    frames: Frames<'s>,
    routes: Routes,
    rng: Xoshiro256PlusPlus,
    recorder: Recorder<'s>,
    sink: Option<&'s mut dyn Sink>,
    failed: Option<Box<dyn Error>>,
    addresses: FxHashMap<IpAddr, u32>,
    /// Flow by sender and its QP, and by receiver and its QP.
    qps: FxHashMap<(IpAddr, u32), u32>,
    /// The first Fast CNP about each flow, for replays.
    first_fast_cnps: FxHashMap<u32, Vec<u8>>,
    /// Buffer for the data packet quoted by a notification.
    scratch: Vec<u8>,
    /// Buffer for a notification.
    emitted: Vec<u8>,
    /// Notifications being generated.
    pending: Pool<Option<Pending>>,
    /// Notifications that hosts have received and not applied yet, by node.
    received: Pool<Option<(u32, Packet)>>,
    links: L,
}

impl<'s, L: Links> World<'s, L> {
    fn new<'a: 's>(simulation: &'s Simulation, sink: Option<&'a mut dyn Sink>, links: L) -> Self {
        let (routes, paths) = Routes::new(simulation);
        let mut ports = Vec::with_capacity(simulation.links.len() * 2);
        for link in &simulation.links {
            ports.push(Port::new(link.a, link.b, link.rate, link.delay));
            ports.push(Port::new(link.b, link.a, link.rate, link.delay));
        }
        for (index, port) in ports.iter_mut().enumerate() {
            if let NodeKind::Switch(switch) = &simulation.nodes[port.node as usize].kind
                && let Some(thresholds) = switch.ports.get(&(index / 2))
            {
                port.thresholds = *thresholds;
            }
        }
        for fault in &simulation.faults {
            for side in 0..2 {
                let port = &mut ports[fault.link * 2 + side];
                if fault.towards.is_none_or(|to| to as u32 == port.peer) {
                    port.faults.push((fault.start, fault.stop, fault.kind));
                }
            }
        }
        for (index, point) in simulation.vantage_points.iter().enumerate() {
            let here = point.link * 2 + usize::from(simulation.links[point.link].b == point.node);
            ports[here].watched_here = Some(index);
            ports[here ^ 1].watched_there = Some(index);
        }
        let mut of_node: Vec<Vec<u32>> = vec![Vec::new(); simulation.nodes.len()];
        for (index, port) in ports.iter().enumerate() {
            of_node[port.node as usize].push(index as u32);
        }
        let nodes = simulation
            .nodes
            .iter()
            .zip(of_node)
            .map(|(node, ports)| match &node.kind {
                NodeKind::Host(host) => State::Host(Box::new(HostState::new(host, ports[0]))),
                NodeKind::Switch(switch) => State::Switch(Box::new(SwitchState::new(
                    switch,
                    ports,
                    &simulation.profile,
                ))),
            })
            .collect();
        let mut addresses = FxHashMap::default();
        for (index, node) in simulation.nodes.iter().enumerate() {
            addresses.insert(IpAddr::V6(node.ipv6), index as u32);
            addresses.insert(IpAddr::V4(node.ipv4), index as u32);
        }
        let mut qps = FxHashMap::default();
        for (index, flow) in simulation.flows.iter().enumerate() {
            qps.insert((flow.source, flow.sender_qp.get()), index as u32);
            qps.insert((flow.destination, flow.receiver_qp.get()), index as u32);
        }
        Self {
            now: Ps(0),
            events: Events::default(),
            ports,
            nodes,
            connections: simulation.flows.iter().map(Connection::new).collect(),
            octets: Pool::default(),
            traces: Pool::default(),
            frames: Frames::new(simulation, paths),
            routes,
            rng: Xoshiro256PlusPlus::seed_from_u64(simulation.seed),
            recorder: Recorder::new(simulation),
            sink: sink.map(|sink| sink as &mut dyn Sink),
            failed: None,
            addresses,
            qps,
            first_fast_cnps: FxHashMap::default(),
            scratch: Vec::new(),
            emitted: vec![0; OutgoingNotification::MAX_LEN],
            pending: Pool::default(),
            received: Pool::default(),
            links,
            simulation,
        }
    }

    /// Schedules the scenario's events, of all nodes or of `only` one.
    fn begin(&mut self, only: Option<NodeId>) {
        let is_meant = |node: NodeId| only.is_none_or(|only| only == node);
        let (simulation, events) = (self.simulation, &mut self.events);
        events.plan(self.recorder.interval, Event::Sample);
        let (warm_up, end) = (simulation.warm_up, simulation.duration);
        events.plan(warm_up, Event::WarmedUp);
        let half = Ps(end.since(warm_up).0 / 2);
        events.plan(warm_up + half, Event::HalfCounted);
        for (index, node) in simulation.nodes.iter().enumerate() {
            if let NodeKind::Switch(switch) = &node.kind
                && switch.proxy.as_ref().is_some_and(advertise::is_advertised)
                && is_meant(index)
            {
                events.plan(Ps(0), Event::Advertise(index as u32));
            }
        }
        for (index, flow) in simulation.flows.iter().enumerate() {
            if is_meant(flow.from) {
                events.plan(flow.start, Event::Start(index as u32));
                if flow.stop < end {
                    events.plan(flow.stop, Event::Stop(index as u32));
                }
            }
        }
        for (index, injection) in simulation.injections.iter().enumerate() {
            if injection.count > 0 && is_meant(injection.node) {
                events.plan(injection.start, Event::Inject(index as u32));
            }
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrive(port) => self.arrive(port),
            Event::Free(port) => {
                self.ports[port as usize].free_planned = false;
                self.kick(port);
            }
            Event::PauseEnds(port, class) => self.pause_ends(port, class),
            Event::PauseAgain(port, class) => self.pause_again(port, class),
            Event::Start(flow) => self.start(flow),
            Event::Stop(flow) => self.stop(flow),
            Event::Due(flow) => {
                self.connections[flow as usize].queued = false;
                self.make_ready(flow);
            }
            Event::Timeout(flow) => self.timeout(flow),
            Event::Inject(index) => self.inject(index),
            Event::Advertise(node) => self.advertise(node),
            Event::Notify(place) => self.notification_ready(place),
            Event::React(place) => self.react(place),
            Event::WarmedUp => self.warmed_up(),
            Event::HalfCounted => {
                self.recorder.half = Totals::at(self.now, &self.connections, &self.ports);
            }
            Event::Sample => self.sample(),
        }
    }

    fn end(self, name: &str) -> Outcome {
        let mut recorder = self.recorder;
        for (node, state) in self.nodes.iter().enumerate() {
            if let State::Switch(switch) = state {
                switch.settle(&mut recorder.switches[node]);
            }
        }
        recorder.close(name, self.connections, &self.ports)
    }

    /// Starts counting delivered and sent data.
    fn warmed_up(&mut self) {
        for connection in &mut self.connections {
            connection.counts.warm = connection.counts.delivered;
        }
        self.recorder.warm = Totals::at(self.now, &self.connections, &self.ports);
    }

    /// Takes the next sample of each series.
    fn sample(&mut self) {
        let mut sum = 0.0;
        for flow in 0..self.connections.len() {
            let rate = self.rate_of(flow);
            sum += rate;
            let at = self.now.as_nanos();
            self.connections[flow].counts.rate.push((at, rate as u64));
        }
        self.recorder.metrics.rate_over_time.push((self.now, sum));
        // A queue without arrivals in the next interval still has a depth.
        let deepest = self.ports.iter().map(Port::deepest).max();
        self.recorder.still_queued(self.now, deepest.unwrap_or(0));
        let next = self.now + self.recorder.interval;
        self.events.plan(next, Event::Sample);
    }

    /// Puts a packet on the wire; the port's transmitter must be free.
    fn transmit(&mut self, index: u32, packet: Packet) {
        let port = &mut self.ports[index as usize];
        let sending = port.sending(packet.len);
        let sent = self.now + sending;
        port.busy_until = sent;
        port.work.busy = port.work.busy + sending;
        let mut arrival = sent + port.delay;
        let watched = port.watched_here;
        let (node, peer) = (port.node, port.peer);
        self.recorder.metrics.packets += 1;
        if let Some(point) = watched {
            self.capture(point, &packet, (node, peer));
        }
        if !self.ports[index as usize].faults.is_empty() {
            match self.fault_delay(index) {
                Some(later) => arrival = arrival + later,
                None => return self.lose(&packet),
            }
        }
        L::carry(self, index, arrival, packet);
    }

    /// Returns the additional delay of a packet on a faulty link; `None` if it is lost.
    fn fault_delay(&mut self, index: u32) -> Option<Ps> {
        let mut later = Ps(0);
        for &(start, stop, kind) in &self.ports[index as usize].faults {
            if self.now < start || self.now >= stop {
                continue;
            }
            match kind {
                FaultKind::Down => return None,
                FaultKind::Loss(probability) if below(self.rng.next_u64(), probability) => {
                    return None;
                }
                FaultKind::Reorder { probability, by }
                    if below(self.rng.next_u64(), probability) =>
                {
                    later = later + by;
                }
                FaultKind::Loss(_) | FaultKind::Reorder { .. } => {}
            }
        }
        Some(later)
    }

    /// Processes a packet's arrival at the other end of a port's link.
    fn arrive(&mut self, index: u32) {
        let (packet, next) = self.ports[index as usize].take_arrived(self.now);
        if let Some(at) = next {
            self.events.plan(at, Event::Arrive(index));
        }
        let Some(packet) = packet else { return };
        let port = &self.ports[index as usize];
        let (node, from) = (port.peer, port.node);
        if let Some(point) = port.watched_there {
            self.capture(point, &packet, (from, node));
        }
        // The receiving node's own port on that link.
        let came_by = index ^ 1;
        if packet.class == packet::MAC_CONTROL {
            self.paused_by_peer(came_by, &packet);
            self.discard(&packet);
            return;
        }
        match self.nodes[node as usize] {
            State::Host(_) => self.host_receives(node, packet),
            State::Switch(_) => self.switch_receives(node, came_by, packet),
        }
    }

    /// Makes a port send its next packet, now or as soon as the current one is sent.
    fn kick(&mut self, index: u32) {
        let port = &mut self.ports[index as usize];
        if port.busy_until > self.now {
            self.plan_free(index);
            return;
        }
        let node = port.node;
        if let Some(mut packet) = port.dequeue() {
            self.leaves(index, &mut packet);
            self.transmit(index, packet);
            if self.ports[index as usize].has_ready() || self.has_ready_flow(node) {
                self.plan_free(index);
            }
        } else if self.has_ready_flow(node) {
            self.send_data(node, index);
        }
    }

    /// Schedules the next packet after the current one.
    fn plan_free(&mut self, index: u32) {
        let port = &mut self.ports[index as usize];
        if !port.free_planned {
            port.free_planned = true;
            let at = port.busy_until;
            self.events.plan(at, Event::Free(index));
        }
    }

    /// Writes a packet to the sink, and counts it.
    fn capture(&mut self, point: usize, packet: &Packet, (from, to): (u32, u32)) {
        let note = match packet.kind {
            PacketKind::Frame => self.octets.at(packet.extra).and_then(|o| o.note.as_ref()),
            _ => None,
        };
        self.recorder.captured(point, self.now, packet, note);
        let Some(sink) = self.sink.as_deref_mut() else {
            return;
        };
        let snap = match self.simulation.snap_len {
            0 => packet.len,
            snap => packet.len.min(snap),
        };
        let context = Context {
            connections: &self.connections,
            octets: &self.octets,
            traces: &self.traces,
        };
        let frames = &mut self.frames;
        let mut built = Ok(());
        let taken = sink.take(Captured {
            vantage_point: point,
            at: self.simulation.epoch + self.now.as_nanos(),
            wire_len: packet.len,
            len: snap as usize,
            fill: &mut |out| {
                built = frames.write(packet, (from as usize, to as usize), context, out);
            },
        });
        if let Err(failure) = taken.and(built.map_err(Into::into)) {
            self.failed = Some(failure);
        }
    }

    /// Returns the packet built; on failure the simulation ends with an error, instead of
    /// continuing without the packet.
    fn built<T>(&mut self, what: &str, result: fcn_wire::Result<T>) -> Option<T> {
        result
            .map_err(|error| self.failed = Some(format!("cannot build {what}: {error}").into()))
            .ok()
    }

    /// Counts a lost packet.
    fn lose(&mut self, packet: &Packet) {
        self.recorder.metrics.lost += 1;
        self.discard(packet);
    }

    /// Releases a packet's entries in the pools.
    fn discard(&mut self, packet: &Packet) {
        match packet.kind {
            PacketKind::Frame => self.octets.release(packet.extra),
            PacketKind::Data | PacketKind::Ack | PacketKind::Nak => {
                self.traces.release(packet.extra);
            }
        }
    }

    /// Returns a packet of octets to the node with address `destination`; `None` if no node has it.
    fn frame(&mut self, destination: IpAddr, octets: Octets) -> Option<Packet> {
        let known = self.addresses.get(&destination).copied();
        // On real links there are other hosts than the scenario's nodes.
        let to = known.or(L::REAL.then_some(NONE))?;
        Some(self.frame_to(to, octets))
    }

    fn frame_to(&mut self, to: u32, octets: Octets) -> Packet {
        let len = (ethernet::LEN + octets.bytes.len()) as u32;
        Packet {
            extra: self.octets.put(octets),
            ..Packet::new(PacketKind::Frame, to, len)
        }
    }

    /// Builds the packet of a notification `outgoing`; `about` is the data packet concerned, quoted
    /// by some kinds.
    fn notification(
        &mut self,
        by: MadeBy,
        outgoing: &OutgoingNotification,
        about: Option<&Packet>,
        flow: u32,
    ) -> Option<Packet> {
        let context = Context {
            connections: &self.connections,
            octets: &self.octets,
            traces: &self.traces,
        };
        self.scratch.clear();
        if let (Some(packet), OutgoingNotification::ProxyCn { .. }) = (about, outgoing) {
            let quoted = self.frames.quote(packet, context, &mut self.scratch);
            quoted.ok()?;
        }
        let trace = about.and_then(|packet| {
            let octets = || self.octets.at(packet.extra);
            match packet.kind {
                PacketKind::Frame => octets().and_then(|o| o.data.as_ref()?.trace(&o.bytes)),
                _ => self.traces.in_packet(packet),
            }
        });
        let about = fcn_node::DataPacketContext {
            trace,
            invoking: &self.scratch,
        };
        let (len, kind) = outgoing
            .emit(&about, &self.simulation.profile, &mut self.emitted)
            .ok()?;
        let written = self.emitted.get_mut(..len)?;
        ip::set_traffic_class(written, self.simulation.cnp_dscp << 2, 0xFC);
        let octets = Octets {
            note: Some(self.note(by, outgoing, kind, flow)),
            caused: self.links.cause(),
            ..Octets::ip(self.emitted.get(..len)?.to_vec())
        };
        if matches!(kind, Kind::FastCnp1 | Kind::FastCnp2)
            && !self.first_fast_cnps.contains_key(&flow)
        {
            self.first_fast_cnps.insert(flow, octets.bytes.clone());
        }
        let (_, destination) = outgoing.addresses();
        let mut packet = self.frame(destination, octets)?;
        packet.ecn = ECT0;
        Some(packet)
    }

    /// Returns the ground truth's entry for a notification.
    fn note(&self, by: MadeBy, outgoing: &OutgoingNotification, kind: Kind, flow: u32) -> Note {
        let (notifier, destination) = outgoing.addresses();
        // The packet quoted by a proxy notification names the QP.
        let about = self.simulation.flows.get(flow as usize);
        let (sender, qp, flow_label, level) = match *outgoing {
            OutgoingNotification::Cnp { qp, .. } => {
                (Some(destination), Some((qp, Side::Sender)), None, None)
            }
            OutgoingNotification::FastCnp { qp, .. } => {
                (Some(destination), Some((qp, Side::Receiver)), None, None)
            }
            OutgoingNotification::ProxyCn { tuple, level, .. } => {
                let qp = about.map(|flow| (flow.receiver_qp, Side::Receiver));
                (Some(tuple.source), qp, None, Some(level))
            }
            // Level 0 means that there is no congestion.
            OutgoingNotification::WanFcn {
                flow_label, level, ..
            } => (
                None,
                None,
                Some(flow_label),
                Some(level).filter(|level| *level != 0),
            ),
        };
        Note {
            kind,
            notifier,
            destination,
            sender,
            qp: qp.map(|(qp, side)| (qp.get(), side)),
            flow_label,
            level,
            flow,
            made_by: Some(by),
        }
    }

    /// Returns the flow that a notification concerns.
    fn flow_of(&self, outgoing: &OutgoingNotification) -> u32 {
        let key = match *outgoing {
            OutgoingNotification::Cnp {
                destination, qp, ..
            } => (destination, qp.get()),
            OutgoingNotification::FastCnp {
                original_destination,
                qp,
                ..
            } => (IpAddr::V6(original_destination), qp.get()),
            _ => return NONE,
        };
        self.qps.get(&key).copied().unwrap_or(NONE)
    }
}

/// Returns true if a random number is below a probability.
fn below(random: u64, probability: f64) -> bool {
    // 53 bits are exact in a double.
    ((random >> 11) as f64) < probability * (1_u64 << 53) as f64
}
