//! The real links of a live node: what it sends on them, and what it knows of its neighbours there.

use super::responder::Responder;
use super::{ETHERNET, IgnoredFrames, LiveNode, OutgoingFrame, destination_at};
use crate::scenario::model::{Flow, Simulation};
use crate::sim::World;
use crate::sim::connection::Peer;
use crate::sim::frames::{self, Path};
use crate::sim::links::Links;
use crate::sim::packet::{NONE, Packet, PacketKind};
use crate::units::Ps;
use arrayvec::ArrayVec;
use fcn_observe::table::Table;
use fcn_wire::header::ethernet;
use fcn_wire::rdma_cm::Cm;
use fcn_wire::{Frame, Layer, ip};
use std::net::IpAddr;

/// Maximum number of neighbours whose MAC addresses are stored.
const NEIGHBOURS: usize = 65_536;
/// Maximum number of buffers kept for further frames.
const SPARE: usize = 4_096;

/// Maximum length of the VLAN tags of a neighbour, in octets: two tags.
const MAX_TAGS: usize = 2 * ethernet::TAG_LEN;

/// A neighbour, as its frames show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Its MAC address.
    pub mac: [u8; 6],
    /// The VLAN tags of its frames, priority included.
    tags: ArrayVec<u8, MAX_TAGS>,
}

impl Neighbour {
    pub const fn untagged(mac: [u8; 6]) -> Self {
        Self {
            mac,
            tags: ArrayVec::new_const(),
        }
    }

    /// Returns the neighbour that sent a frame from this MAC address; frames in a tunnel, or with
    /// other tags than up to two of VLANs, are not its own.
    pub fn of(frame: &Frame<'_>, mac: [u8; 6]) -> Option<Self> {
        let start = frame.ip()?.start;
        let before = frame.spans().iter().take_while(|span| span.start < start);
        let mut before = before.map(|span| span.layer);
        let tags = frame.bytes().get(ethernet::TYPE..start - 2)?;
        let is_tagged = before.all(|layer| matches!(layer, Layer::Ethernet | Layer::Vlan));
        is_tagged.then_some(Self {
            mac,
            tags: ArrayVec::try_from(tags).ok()?,
        })
    }
}

/// The links of a single node, and its state that only real links need.
pub struct RealLinks {
    pub(super) node: u32,
    /// The node's own MAC addresses, by link.
    pub(super) macs: Vec<[u8; 6]>,
    /// Destination MAC address for IP addresses from which no frame has been received; if `None`,
    /// the MAC address that the scenario gives the destination node.
    peer: Option<[u8; 6]>,
    /// MAC address and VLAN of each IP address, taken from received frames.
    pub(super) neighbours: Table<IpAddr, Neighbour>,
    /// Traffic class by DSCP.
    pub(super) classes: [u8; 64],
    pub(super) outgoing: Vec<OutgoingFrame>,
    /// Buffers to reuse.
    spare: Vec<Vec<u8>>,
    /// True if all links of this switch are one interface.
    pub(super) is_one: bool,
    /// The frame being processed: its ingress port, arrival time, and sender.
    pub(super) cause: Option<(u32, Ps, Neighbour)>,
    /// Serves connections that are not in the scenario, and requests of a sender's peers.
    pub(super) responder: Responder,
    pub(super) passed_over: IgnoredFrames,
}

impl RealLinks {
    /// Creates the links of `node`, with its MAC addresses and the class of each DSCP.
    pub fn new(node: u32, macs: Vec<[u8; 6]>, peer: Option<[u8; 6]>, classes: [u8; 64]) -> Self {
        Self {
            node,
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
        }
    }

    /// Keeps the buffer of a sent frame for further ones.
    pub fn recycle(&mut self, octets: Vec<u8>) {
        if self.spare.len() < SPARE {
            self.spare.push(octets);
        }
    }

    /// Returns the neighbour to which a packet of this node's own goes, already written to `frame`.
    fn destination(
        &mut self,
        path: Option<&Path>,
        packet: &Packet,
        peer: usize,
        frame: &[u8],
    ) -> Neighbour {
        let destination = destination_at(frame, ETHERNET);
        if let Some(known) = destination.and_then(|address| self.neighbours.get(&address)) {
            return known.clone();
        }
        let cause = self.cause.as_ref().filter(|_| packet.to == NONE);
        let node = match path {
            Some(path) => path.egress,
            None if packet.to == NONE => peer,
            None => packet.to as usize,
        };
        match cause {
            Some((.., neighbour)) => neighbour.clone(),
            None => Neighbour::untagged(self.peer.unwrap_or(frames::mac(node))),
        }
    }
}

impl Links for RealLinks {
    const REAL: bool = true;

    fn carry(world: &mut World<'_, Self>, port: u32, arrival: Ps, packet: Packet) {
        world.leave(port, arrival, &packet);
        world.discard(&packet);
    }

    fn forward_unknown(world: &mut World<'_, Self>, node: u32, packet: Packet) {
        world.flood_octets(node, packet);
    }

    fn cause(&self) -> Option<(Ps, u32)> {
        let (port, at, _) = self.cause.as_ref()?;
        Some((*at, *port))
    }

    /// The receiver may send requests, too.
    fn connection_opened(&mut self, now: Ps, flow: &Flow, peer: &Peer) {
        let ends = (flow.destination, peer.id);
        self.responder
            .opened(now, flow.sender_qp, ends, peer.qp, flow.first_psn);
    }

    fn answer_management(
        world: &mut World<'_, Self>,
        node: u32,
        frame: &Frame<'_>,
        message: (u64, &Cm<'_>),
    ) {
        world.respond_to_management(node, frame, message);
    }
}

impl World<'_, RealLinks> {
    /// Queues a frame to be sent on a real link.
    fn leave(&mut self, index: u32, arrival: Ps, packet: &Packet) {
        let port = &self.ports[index as usize];
        let (node, peer) = (port.node as usize, port.peer as usize);
        let links = &mut self.links;
        let link = match links.is_one {
            true => 0,
            false => place(self.simulation, node, index),
        };
        let mut room = links.spare.pop().unwrap_or_default();
        room.clear();
        let octets = match packet.kind {
            PacketKind::Frame => self.octets.at_mut(packet.extra),
            _ => None,
        };
        let as_it_came = octets.filter(|_| packet.tunnel == NONE);
        let as_it_came = as_it_came.and_then(|octets| Some((octets.macs?, octets)));
        let as_it_came =
            as_it_came.map(|(macs, octets)| match (links.is_one, links.macs.first()) {
                (true, Some(own)) => {
                    let known = destination_at(&octets.bytes, 0);
                    let known = known.and_then(|address| links.neighbours.get(&address));
                    let towards = if packet.to == NONE {
                        peer
                    } else {
                        packet.to as usize
                    };
                    let known = known.map(|neighbour| neighbour.mac).or(links.peer);
                    let to = known.unwrap_or(frames::mac(towards));
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
                return;
            }
            let class = octets.and_then(|octets| Some(octets.data.as_ref()?.class(octets)));
            if let (Some(class), true) = (class, packet.tunnel != NONE) {
                ip::set_traffic_class(&mut room[ETHERNET..], class, 0xFC);
            }
            if let Some(own) = links.macs.get(link) {
                room[6..12].copy_from_slice(own);
            }
            let is_group = room.first().is_some_and(|first| first & 1 == 1);
            if !is_group {
                let to = links.destination(self.frames.path(packet.tunnel), packet, peer, &room);
                room[..6].copy_from_slice(&to.mac);
                room.splice(ethernet::TYPE..ethernet::TYPE, to.tags);
            }
        }
        let note = octets.and_then(|octets| Some((octets.note.as_ref()?.kind, octets.caused?)));
        links.outgoing.push(OutgoingFrame {
            link,
            at: arrival,
            header,
            octets: room,
            reaction: note.map(|(kind, (caused, _))| (kind, caused, self.now)),
        });
    }
}

/// Returns a port's index among those of its node.
fn place(simulation: &Simulation, node: usize, port: u32) -> usize {
    LiveNode::links(simulation, node)
        .position(|link| link == port as usize / 2)
        .unwrap_or(0)
}
