//! A packet on its way: what nodes decide by, and where to find the rest. Its octets are made in `frames.rs`, when
//! somebody looks.

pub use crate::truth::NONE;
use crate::truth::Note;
use crate::units::Ps;
use fcn_node::DataPacket;
use fcn_wire::header::ethernet;
use fcn_wire::ioam::OptType;
use fcn_wire::proxy_cn::FiveTuple;
use std::ops::Range;

/// Queues of a port: one a traffic class, and one for MAC control, which nothing pauses.
pub const QUEUES: usize = 9;
/// The queue of PFC frames.
pub const MAC_CONTROL: u8 = 8;
/// The class of notifications, connection management and routing.
pub const CONTROL: u8 = 7;
/// Hop limit that senders start with.
pub const HOPS: u8 = 64;
/// ECN field of a packet that met congestion.
pub const CE: u8 = 0b11;
/// ECN field of a packet that may be marked: ECT(0).
pub const ECT0: u8 = 0b10;
/// Octets that a frame costs on a link beside those captured: preamble, FCS and the gap between frames.
pub const WIRE_OVERHEAD: u32 = 8 + 4 + 12;
/// The shortest frame, without its FCS.
pub const SHORTEST_FRAME: u32 = 60;

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketKind {
    /// Data of its flow.
    Data,
    /// Acknowledgement of its flow's data.
    Ack,
    /// Negative acknowledgement: a gap in its flow's data.
    Nak,
    /// Anything else: octets in the [`Pool`], at `extra`.
    Frame,
}

/// A packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// What it is.
    pub kind: PacketKind,
    /// Queue that it waits in.
    pub class: u8,
    /// ECN field of its own IP header.
    pub ecn: u8,
    /// ECN field of the tunnel's IP header.
    pub outer_ecn: u8,
    /// Hop limit left.
    pub hops: u8,
    /// Hop limit left in the tunnel's header.
    pub outer_hops: u8,
    /// Asks for an acknowledgement.
    pub ack_request: bool,
    /// Data: changes of path before it (`connection::entropy`).
    pub path: u8,
    /// Its flow, or [`NONE`].
    pub flow: u32,
    /// Octets of the frame as it is on this link, without FCS.
    pub len: u32,
    /// The node that it is for.
    pub to: u32,
    /// The tunnel that it is in, or [`NONE`].
    pub tunnel: u32,
    /// Flow label of the tunnel's header.
    pub label: u32,
    /// The port by which it came to the node that holds it, or [`NONE`].
    pub came_by: u32,
    /// Data: its IOAM trace on the [`Pool`], or [`NONE`]. Frame: its octets there.
    pub extra: u32,
    /// Data: packets of the flow before it. Acknowledgements: that of the data packet meant.
    pub index: u64,
}

impl Packet {
    /// A packet on its first link, outside of tunnels.
    pub const fn new(kind: PacketKind, to: u32, len: u32) -> Self {
        Self {
            kind,
            class: CONTROL,
            ecn: 0,
            outer_ecn: 0,
            hops: HOPS,
            outer_hops: HOPS,
            ack_request: false,
            path: 0,
            flow: NONE,
            len,
            to,
            tunnel: NONE,
            label: 0,
            came_by: NONE,
            extra: NONE,
            index: 0,
        }
    }
}

/// Octets of a packet that is neither data nor acknowledgement, and what to count it as.
#[derive(Clone, Debug, Default)]
pub struct Octets {
    /// From behind the Ethernet header on.
    pub bytes: Vec<u8>,
    /// EtherType, or 0 for an IEEE 802.3 length.
    pub ether_type: u16,
    /// Destination MAC address that is not the next node's.
    pub multicast: Option<[u8; 6]>,
    /// Who says what, for the ground truth.
    pub note: Option<Note>,
    /// Traffic of another transport: its flow.
    pub other: Option<FiveTuple>,
    /// Routing: who advertises, and which time.
    pub flooded: Option<(u32, u32)>,
    /// On a real link: destination and source MAC address that it came with, and keeps.
    pub macs: Option<([u8; 6], [u8; 6])>,
    /// On a real link: what roles want to know, where it is data.
    pub seen: Option<Seen>,
    /// On a real link: when, and by which port, what this notification answers came in.
    pub caused: Option<(Ps, u32)>,
}

/// What roles want to know of a data packet that is octets. Places count from where [`Octets::bytes`] begin.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Without the trace.
    pub data: DataPacket<'static>,
    /// Type and place of the IOAM trace.
    pub trace: Option<(OptType, Range<usize>)>,
    /// Where the outermost IP header begins.
    pub ecn_at: Option<usize>,
    /// The innermost IP packet.
    pub inner: Range<usize>,
}

impl Seen {
    /// Its IOAM trace.
    pub fn trace<'a>(&self, octets: &'a [u8]) -> Option<(OptType, &'a [u8])> {
        let (opt_type, range) = self.trace.as_ref()?;
        Some((*opt_type, octets.get(range.clone())?))
    }

    /// Traffic class of the innermost packet.
    pub fn class(&self, octets: &Octets) -> u8 {
        let header = octets.bytes.get(self.inner.clone()).unwrap_or_default();
        match header {
            [first, second, ..] if first >> 4 == 6 => first << 4 | second >> 4,
            [_, second, ..] => *second,
            _ => 0,
        }
    }
}

impl Octets {
    /// An IP packet.
    pub fn ip(bytes: Vec<u8>) -> Self {
        let is_ipv4 = bytes.first().is_some_and(|first| first >> 4 == 4);
        Self {
            ether_type: if is_ipv4 {
                ethernet::IPV4
            } else {
                ethernet::IPV6
            },
            bytes,
            ..Self::default()
        }
    }
}

/// An IOAM trace on its way.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Pre-allocated or incremental.
    pub opt_type: OptType,
    /// Header and node data list.
    pub bytes: Vec<u8>,
}

impl Default for Trace {
    fn default() -> Self {
        Self {
            opt_type: OptType::Preallocated,
            bytes: Vec::new(),
        }
    }
}

/// Where packets keep what does not fit into [`Packet`]. Places are used again, and so is their memory.
#[derive(Debug, Default)]
pub struct Pool<T> {
    places: Vec<T>,
    free: Vec<u32>,
}

impl<T: Default> Pool<T> {
    /// A place, with whatever was left in it.
    pub fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.places.push(T::default());
            (self.places.len() - 1) as u32
        })
    }

    /// Gives a place back; [`NONE`] is nothing.
    pub fn release(&mut self, place: u32) {
        if place != NONE {
            self.free.push(place);
        }
    }

    /// What is there; nothing at [`NONE`].
    pub fn at(&self, place: u32) -> Option<&T> {
        self.places.get(place as usize)
    }

    /// What is there, to change.
    pub fn at_mut(&mut self, place: u32) -> Option<&mut T> {
        self.places.get_mut(place as usize)
    }

    /// Puts `value` into a place.
    pub fn put(&mut self, value: T) -> u32 {
        let place = self.take();
        if let Some(there) = self.at_mut(place) {
            *there = value;
        }
        place
    }
}

impl Pool<Trace> {
    /// The trace in a data packet, where it has one.
    pub fn in_packet(&self, packet: &Packet) -> Option<(OptType, &[u8])> {
        let trace = (packet.kind == PacketKind::Data).then(|| self.at(packet.extra))??;
        Some((trace.opt_type, &trace.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again() {
        let mut pool = Pool::default();
        let a = pool.put(1);
        let b = pool.put(2);
        assert_ne!(a, b);
        pool.release(a);
        pool.release(NONE);
        assert_eq!(pool.put(3), a);
        assert_eq!(pool.at(a), Some(&3));
        assert_eq!(pool.at(NONE), None);
    }
}
