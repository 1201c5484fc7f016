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

mod host;
mod links;
mod responder;
mod switch;

use super::event::Event;
use super::packet::Octets;
use super::{State, World};
use crate::scenario::model::{NodeId, Simulation};
use crate::sim::outcome::Outcome;
use crate::units::Ps;
use fcn_wire::header::ethernet;
use fcn_wire::pfc::ETHERTYPE_MAC_CONTROL;
use fcn_wire::{Frame, Kind, LinkType, ip};
use links::{Neighbour, RealLinks};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

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

/// A node on real links.
pub struct LiveNode<'s> {
    world: World<'s, RealLinks>,
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
        let mut classes = [BEST_EFFORT; 64];
        for flow in &simulation.flows {
            classes[usize::from(flow.dscp & 63)] = flow.priority & 7;
        }
        let links = RealLinks::new(node as u32, macs, peer, classes);
        let mut world = World::new(simulation, None, links);
        let ports = world.ports.iter().enumerate();
        let ports = ports.filter(|(_, port)| port.node == node as u32);
        let ports: Vec<u32> = ports.map(|(index, _)| index as u32).collect();
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
        self.world.links.is_one = true;
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
        let node = self.world.links.node as usize;
        if matches!(self.world.nodes.get(node)?, State::Host(_)) {
            return Some(0);
        }
        let port = self.world.routes.port(node, to, || 0)?;
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
            if self.world.is_here(flow.from) {
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
            .filter(|(flow, _)| self.world.is_here(flow.from))
            .all(|(_, connection)| connection.is_over())
    }

    /// Returns true if the connection of any flow that begins here was ever open.
    #[must_use]
    pub fn has_opened(&self) -> bool {
        self.world.connections.iter().any(|c| c.opened)
    }

    /// Appends the frames to send to `frames`.
    pub fn take_outgoing(&mut self, frames: &mut Vec<OutgoingFrame>) {
        frames.append(&mut self.world.links.outgoing);
    }

    /// Takes back the buffer of a sent frame.
    pub fn recycle(&mut self, octets: Vec<u8>) {
        self.world.links.recycle(octets);
    }

    /// Returns the counters of ignored frames.
    #[must_use]
    pub fn passed_over(&self) -> IgnoredFrames {
        self.world.links.passed_over
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
            .filter(|(_, flow)| world.is_here(flow.from))
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
        let links = &self.world.links;
        match &self.world.nodes[links.node as usize] {
            State::Switch(switch) => switch.counters(),
            State::Host(host) => {
                let mut all = host.counters();
                let served = *links.responder.counters();
                if served != responder::Counters::default() {
                    all.push(("responder", served.named().collect()));
                }
                all
            }
        }
    }

    /// Returns the truth and the figures, as far as they are known at this node.
    #[must_use]
    pub fn end(self, name: &str) -> Outcome {
        self.world.end(name)
    }
}

impl World<'_, RealLinks> {
    fn is_here(&self, node: NodeId) -> bool {
        self.links.node == node as u32
    }

    /// Processes a frame received on a port of this node.
    fn octets_arrive(&mut self, port: u32, bytes: &[u8]) {
        let (Some(source), Some(ether_type)) = (mac(bytes, 6), ether_type(bytes)) else {
            self.links.passed_over.unreadable += 1;
            return;
        };
        let node = self.links.node;
        if self.links.is_one && mac(bytes, 0) != self.links.macs.first().copied() {
            self.links.passed_over.not_for_us += 1;
            return;
        }
        let profile = &self.simulation.profile;
        let frame = Frame::parse(bytes, bytes.len(), LinkType::Ethernet, profile);
        let sender = Neighbour::of(&frame, source);
        if let (Some(ip), Some(sender)) = (frame.ip(), &sender)
            && ip::is_node_address(ip.source)
            && source[0] & 1 == 0
            && self.links.neighbours.peek(&ip.source) != Some(sender)
        {
            self.links.neighbours.put(ip.source, sender.clone());
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
        let port = if self.links.is_one {
            // It is treated as coming from the link towards its sender, if known.
            let from = frame.ip().and_then(|ip| self.addresses.get(&ip.source));
            let towards =
                from.and_then(|from| self.routes.port(node as usize, *from as usize, || 0));
            towards.unwrap_or(port)
        } else {
            port
        };
        let sender = sender.unwrap_or(Neighbour::untagged(source));
        self.links.cause = Some((port, self.now, sender));
        match self.nodes[node as usize] {
            State::Host(_) => self.host_process(node, &frame),
            State::Switch(_) => self.switch_process(node, port, &frame, ether_type),
        }
        self.links.cause = None;
    }
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

#[cfg(test)]
mod tests;
