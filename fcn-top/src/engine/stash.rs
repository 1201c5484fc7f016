//! A few packets put by, so that the monitor can look at them together before it takes them in.

use super::Taking;
use crate::monitor::{AHEAD, Ahead};
use crate::packet::Packet;
use arrayvec::ArrayVec;
use fcn_wire::LinkType;

/// Longer packets are not copied, but taken in at once: what is kept of a packet is no longer, unless it was asked for.
const LONGEST: usize = 2_048;

/// Where a packet put by is, and what is known of it.
struct Kept {
    at: u64,
    start: usize,
    end: usize,
    wire_len: usize,
    link: LinkType,
    interface: u32,
    number: u64,
}

/// Packets put by.
#[derive(Default)]
pub struct Stash {
    octets: Vec<u8>,
    kept: ArrayVec<Kept, AHEAD>,
}

impl Stash {
    /// Puts a packet by, or takes it in with those before it; says whether more are wanted.
    #[inline]
    pub fn put(&mut self, packet: &Packet<'_>, taking: &mut Taking<'_>) -> bool {
        if packet.bytes.len() > LONGEST {
            return self.hand_over(taking) && taking.take(packet);
        }
        let start = self.octets.len();
        self.octets.extend_from_slice(packet.bytes);
        self.kept.push(Kept {
            at: packet.at,
            start,
            end: self.octets.len(),
            wire_len: packet.wire_len,
            link: packet.link,
            interface: packet.interface,
            number: packet.number,
        });
        !self.kept.is_full() || self.hand_over(taking)
    }

    /// Takes in what was put by; says whether more is wanted.
    pub fn hand_over(&mut self, taking: &mut Taking<'_>) -> bool {
        let mut packets: ArrayVec<Packet<'_>, AHEAD> = ArrayVec::new();
        for kept in &self.kept {
            packets.push(Packet {
                at: kept.at,
                bytes: self.octets.get(kept.start..kept.end).unwrap_or_default(),
                wire_len: kept.wire_len,
                link: kept.link,
                interface: kept.interface,
                number: kept.number,
            });
        }
        let more = taking.take_all(&packets);
        drop(packets);
        self.kept.clear();
        self.octets.clear();
        more
    }
}

impl Taking<'_> {
    /// Takes packets in, [`AHEAD`] at most; says whether more are wanted.
    pub(super) fn take_all(&mut self, packets: &[Packet<'_>]) -> bool {
        let monitor = &self.0.monitor;
        // A copy of a few octets, so that what is looked at does not borrow the monitor.
        let profile = monitor.profile().clone();
        let mut ahead = Ahead::new(&profile);
        monitor.look_ahead(packets, &mut ahead);
        let mut packets = packets.iter().enumerate();
        packets.all(|(place, packet)| {
            self.take_by(packet, |monitor, counted| {
                monitor.observe_ahead(counted, &ahead, place)
            })
        })
    }
}
