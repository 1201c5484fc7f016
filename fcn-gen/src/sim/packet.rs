//! A packet in transit: the fields by which nodes decide, and references to the rest. Its octets
//! are built in `frames.rs` on demand.

pub use crate::truth::NONE;
use crate::truth::Note;
use crate::units::Ps;
use fcn_node::DataPacket;
use fcn_wire::header::ethernet;
use fcn_wire::ioam::OptType;
use fcn_wire::proxy_cn::FiveTuple;
use std::ops::Range;

/// Number of queues of a port: one per traffic class, and one for MAC control, which is never
/// paused.
pub const QUEUES: usize = 9;
/// The queue of PFC frames.
pub const MAC_CONTROL: u8 = 8;
/// The class of notifications, connection management and routing.
pub const CONTROL: u8 = 7;
/// Initial hop limit.
pub const HOPS: u8 = 64;
/// ECN field of a packet that met congestion: CE.
pub const CE: u8 = 0b11;
/// ECN field of a packet that may be marked: ECT(0).
pub const ECT0: u8 = 0b10;
/// Octets that a frame takes on a link besides those captured: preamble, FCS and the gap between
/// frames.
pub const WIRE_OVERHEAD: u32 = 8 + 4 + 12;
/// Minimum length of a frame without its FCS, in octets.
pub const SHORTEST_FRAME: u32 = 60;

/// Kind of a packet.
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
    /// Its kind.
    pub kind: PacketKind,
    /// Class of the queue in which it waits.
    pub class: u8,
    /// ECN field of its own IP header.
    pub ecn: u8,
    /// ECN field of the tunnel's IP header.
    pub outer_ecn: u8,
    /// Remaining hop limit.
    pub hops: u8,
    /// Remaining hop limit of the tunnel's header.
    pub outer_hops: u8,
    /// True if it requests an acknowledgement.
    pub ack_request: bool,
    /// Data: number of path changes before it (`connection::entropy`).
    pub path: u8,
    /// Its flow, or [`NONE`].
    pub flow: u32,
    /// Length of the frame on this link in octets, without FCS.
    pub len: u32,
    /// The destination node.
    pub to: u32,
    /// Its tunnel, or [`NONE`].
    pub tunnel: u32,
    /// Flow label of the tunnel's header.
    pub label: u32,
    /// The ingress port at the present node, or [`NONE`].
    pub came_by: u32,
    /// Data and acknowledgements: index of the IOAM trace in the [`Pool`], or [`NONE`]. Frame: index
    /// of its octets.
    pub extra: u32,
    /// Time at which it joined the present queue of a switch.
    pub queued_at: Ps,
    /// Data: index of the packet in its flow. Acknowledgements: index of the data packet concerned.
    pub index: u64,
}

impl Packet {
    /// Creates a packet on its first link, outside of tunnels.
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
            queued_at: Ps(0),
            index: 0,
        }
    }
}

/// Octets of a packet that is neither data nor an acknowledgement, with the information for
/// counting it.
#[derive(Clone, Debug, Default)]
pub struct Octets {
    /// The octets after the Ethernet header.
    pub bytes: Vec<u8>,
    /// EtherType, or 0 for an IEEE 802.3 length.
    pub ether_type: u16,
    /// Destination MAC address, if it is not the next node's.
    pub multicast: Option<[u8; 6]>,
    /// The notification in it, for the ground truth.
    pub note: Option<Note>,
    /// Its flow, for traffic of another transport.
    pub other: Option<FiveTuple>,
    /// For routing messages: the advertising node, and the round.
    pub flooded: Option<(u32, u32)>,
    /// On a real link: destination and source MAC address as received, which are kept.
    pub macs: Option<([u8; 6], [u8; 6])>,
    /// On a real link: data for the roles, if it is a data packet.
    pub data: Option<DataInfo>,
    /// On a real link: arrival time and ingress port of the packet that this notification answers.
    pub caused: Option<(Ps, u32)>,
}

/// Data for the roles about a data packet of octets. Offsets count from the start of
/// [`Octets::bytes`].
#[derive(Clone, Debug)]
pub struct DataInfo {
    /// The data packet, without its trace.
    pub data: DataPacket<'static>,
    /// Type and position of the IOAM trace.
    pub trace: Option<(OptType, Range<usize>)>,
    /// Offset of the outermost IP header.
    pub ecn_at: Option<usize>,
    /// The innermost IP packet.
    pub inner: Range<usize>,
}

impl DataInfo {
    /// Returns its IOAM trace.
    pub fn trace<'a>(&self, octets: &'a [u8]) -> Option<(OptType, &'a [u8])> {
        let (opt_type, range) = self.trace.as_ref()?;
        Some((*opt_type, octets.get(range.clone())?))
    }

    /// Returns the traffic class of the innermost packet.
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
    /// Wraps an IP packet.
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

/// An IOAM trace in transit.
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

/// Storage for packet data that do not fit into [`Packet`]. Entries are reused, and so is their
/// memory.
#[derive(Debug, Default)]
pub struct Pool<T> {
    places: Vec<T>,
    free: Vec<u32>,
}

impl<T: Default> Pool<T> {
    /// Returns the index of a free entry, which may have old content.
    pub fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.places.push(T::default());
            (self.places.len() - 1) as u32
        })
    }

    /// Releases an entry; ignores [`NONE`].
    pub fn release(&mut self, place: u32) {
        if place != NONE {
            self.free.push(place);
        }
    }

    /// Returns an entry; `None` for [`NONE`].
    pub fn at(&self, place: u32) -> Option<&T> {
        self.places.get(place as usize)
    }

    /// Returns an entry for modification.
    pub fn at_mut(&mut self, place: u32) -> Option<&mut T> {
        self.places.get_mut(place as usize)
    }

    /// Stores `value` in an entry, and returns its index.
    pub fn put(&mut self, value: T) -> u32 {
        let place = self.take();
        if let Some(there) = self.at_mut(place) {
            *there = value;
        }
        place
    }
}

impl Pool<Trace> {
    /// Returns the trace in a data packet, or returned by an acknowledgement, if it has one.
    pub fn in_packet(&self, packet: &Packet) -> Option<(OptType, &[u8])> {
        let has_one = matches!(packet.kind, PacketKind::Data | PacketKind::Ack);
        let trace = has_one.then(|| self.at(packet.extra))??;
        Some((trace.opt_type, &trace.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_reused() {
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
