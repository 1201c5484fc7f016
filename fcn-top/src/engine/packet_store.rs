//! Packets kept for exports: complete, as captured, within a memory limit; the oldest are dropped
//! first. `export.rs` writes them to files.
//!
//! They are stored in pieces of a sixteenth of the limit and dropped a piece at a time, so that
//! keeping a packet is a copy.

use crate::monitor::Observed;
use crate::packet::Packet;
use crate::record::RowId;
use fcn_observe::FlowKey;
use std::collections::VecDeque;
use std::mem::size_of;

/// Number of notification times remembered, over all rows: a MiB, usually reaching much further
/// back than the packets.
const TIMES: usize = 1 << 16;
/// Minimum and maximum size of a piece, in octets.
const PIECE: (usize, usize) = (4 << 10, 1 << 20);

/// Metadata of a kept packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredPacket {
    /// Capture time, in nanoseconds since the epoch.
    pub at: u64,
    /// Number of the interface it was captured on.
    pub interface: u32,
    /// Octets on the wire.
    pub wire_len: u32,
    /// Octets of the IP packet, if it is data that was not captured before.
    pub octets: u32,
    /// Row that counts it as a notification.
    pub row: Option<RowId>,
    /// Flow that it is data of.
    pub flow: Option<FlowKey>,
    /// True if it was captured before at another capture point.
    pub copy: bool,
    /// True if it is marked CE, and was not marked where it was captured before.
    pub ce: bool,
    /// True if its PSN does not advance: retransmitted, or out of order.
    pub back: bool,
    /// True if it carries samples, one of which is about the row and the flow.
    pub samples: bool,
    start: u32,
    len: u32,
}

#[derive(Debug)]
struct Piece {
    octets: Vec<u8>,
    packets: Vec<StoredPacket>,
}

impl Piece {
    fn with_room(octets: usize) -> Self {
        Self {
            octets: Vec::with_capacity(octets),
            packets: Vec::new(),
        }
    }

    const fn has_room(&self, len: usize) -> bool {
        self.octets.capacity() - self.octets.len() >= len
    }

    const fn size(&self) -> usize {
        self.octets.len() + self.packets.capacity() * size_of::<StoredPacket>()
    }

    fn packets(&self) -> impl Iterator<Item = (&StoredPacket, &[u8])> {
        self.packets.iter().filter_map(|kept| {
            let (start, len) = (kept.start as usize, kept.len as usize);
            Some((kept, self.octets.get(start..start + len)?))
        })
    }
}

/// Packet store with a memory limit.
#[derive(Debug)]
pub struct PacketStore {
    room: usize,
    piece: usize,
    /// The last piece is being filled.
    pieces: VecDeque<Piece>,
    /// Octets of all pieces except the last.
    full: usize,
    dropped: u64,
    /// Times and rows of the latest notifications, including those whose packets were dropped.
    notified: VecDeque<(u64, RowId)>,
}

impl PacketStore {
    /// Keeps packets and their metadata in about `room` octets.
    pub fn new(room: usize) -> Self {
        Self {
            room,
            piece: (room / 16).clamp(PIECE.0, PIECE.1),
            pieces: VecDeque::new(),
            full: 0,
            dropped: 0,
            notified: VecDeque::new(),
        }
    }

    /// Keeps a packet that is about a row, a flow, or both.
    pub fn keep(&mut self, packet: &Packet<'_>, about: &Observed) {
        let len = packet.bytes.len();
        if self.pieces.back().is_none_or(|piece| !piece.has_room(len)) {
            self.full += self.pieces.back().map_or(0, Piece::size);
            self.pieces.push_back(Piece::with_room(self.piece.max(len)));
        }
        let Some(piece) = self.pieces.back_mut() else {
            return;
        };
        // The size of a piece fits into a u32: a packet has at most 262,144 octets.
        piece.packets.push(StoredPacket {
            at: packet.at,
            interface: packet.interface,
            wire_len: u32::try_from(packet.wire_len).unwrap_or(u32::MAX),
            octets: about.octets,
            row: about.row,
            flow: about.flow,
            copy: about.copy,
            ce: about.ce,
            back: about.back,
            samples: about.samples,
            start: piece.octets.len() as u32,
            len: len as u32,
        });
        piece.octets.extend_from_slice(packet.bytes);
        if let Some(row) = about.row.filter(|_| about.counts && !about.samples) {
            if self.notified.len() == TIMES {
                self.notified.pop_front();
            }
            self.notified.push_back((packet.at, row));
        }
        let last = piece.size();
        while self.full + last > self.room && self.pieces.len() > 1 {
            if let Some(oldest) = self.pieces.pop_front() {
                self.full = self.full.saturating_sub(oldest.size());
                self.dropped += oldest.packets.len() as u64;
            }
        }
    }

    /// Records that the last packet is also about another row or flow.
    pub fn keep_again(&mut self, about: &Observed) {
        if let Some(packets) = self.pieces.back_mut().map(|piece| &mut piece.packets)
            && let Some(last) = packets.last().copied()
        {
            packets.push(StoredPacket {
                row: about.row,
                flow: about.flow,
                ..last
            });
        }
    }

    /// Returns the kept packets, oldest first. A packet about several rows or flows appears once
    /// for each, with the same octets.
    pub fn packets(&self) -> impl Iterator<Item = (&StoredPacket, &[u8])> {
        self.pieces.iter().flat_map(Piece::packets)
    }

    /// Returns the start of the period in which the time of every notification is remembered, and
    /// the times of a row's notifications.
    pub fn notified(&self, row: RowId) -> (u64, Vec<u64>) {
        let all = self.notified.len() < TIMES;
        let first = self.notified.front().filter(|_| !all);
        let of_it = self.notified.iter().filter(|(_, of)| *of == row);
        (
            first.map_or(0, |(at, _)| *at),
            of_it.map(|(at, _)| *at).collect(),
        )
    }

    /// Returns the number of packets dropped for lack of room.
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fcn_wire::LinkType;
    use proptest::prelude::*;

    fn packet(at: u64, bytes: &[u8]) -> Packet<'_> {
        Packet {
            at,
            bytes,
            wire_len: bytes.len() + 4,
            link: LinkType::Ethernet,
            interface: at as u32 % 3,
            number: at,
        }
    }

    proptest! {
        #[test]
        fn the_latest_packets_are_kept(
            lens in proptest::collection::vec(0usize..3_000, 1..400),
            room in 1usize..300_000,
        ) {
            let mut store = PacketStore::new(room);
            let all: Vec<Vec<u8>> = lens.iter().enumerate().map(|(i, len)| vec![i as u8; *len]).collect();
            for (i, bytes) in all.iter().enumerate() {
                let about = Observed { row: Some(RowId(i as u64)), ..Observed::default() };
                store.keep(&packet(i as u64, bytes), &about);
                let held: usize = store.packets().map(|(_, bytes)| bytes.len()).sum();
                prop_assert!(held <= room + PIECE.0.max(room / 16));
            }
            let gone = store.dropped() as usize;
            let kept: Vec<_> = store.packets().collect();
            prop_assert!(!kept.is_empty());
            prop_assert_eq!(kept.len() + gone, all.len());
            for ((kept, bytes), (i, expected)) in kept.iter().zip(all.iter().enumerate().skip(gone)) {
                prop_assert_eq!(*bytes, &expected[..]);
                prop_assert_eq!(kept.at, i as u64);
                prop_assert_eq!(kept.wire_len as usize, bytes.len() + 4);
                prop_assert_eq!(kept.row, Some(RowId(i as u64)));
            }
        }
    }

    #[test]
    fn a_packet_longer_than_the_room_is_kept_alone() {
        let mut store = PacketStore::new(100);
        let long = vec![7; 200_000];
        store.keep(&packet(1, &[1; 60]), &Observed::default());
        store.keep(&packet(2, &long), &Observed::default());
        store.keep(&packet(3, &long), &Observed::default());
        let kept: Vec<u64> = store.packets().map(|(kept, _)| kept.at).collect();
        assert_eq!((kept, store.dropped()), (vec![3], 2));
    }

    #[test]
    fn notification_times_outlive_their_packets() {
        let mut store = PacketStore::new(1);
        let about = |row, counts| Observed {
            row: Some(RowId(row)),
            counts,
            copy: !counts,
            ..Observed::default()
        };
        for at in 0..TIMES as u64 {
            store.keep(&packet(at, &[0; 100]), &about(at % 2, at % 4 != 1));
        }
        assert!(store.packets().count() < 100);
        let (since, times) = store.notified(RowId(1));
        assert_eq!((since, times.len()), (0, TIMES / 4), "copies do not count");
        for at in 0..TIMES as u64 {
            store.keep(&packet(1_000_000 + at, &[0; 100]), &about(2, true));
        }
        let (since, times) = store.notified(RowId(2));
        assert_eq!((since, times.len()), (1_000_000, TIMES));
        assert!(store.notified(RowId(1)).1.is_empty());
    }

    #[test]
    fn all_packets_stay_while_there_is_room() {
        let mut store = PacketStore::new(64 << 20);
        for at in 0..10_000 {
            store.keep(&packet(at, &[0; 100]), &Observed::default());
        }
        assert_eq!((store.packets().count(), store.dropped()), (10_000, 0));
    }
}
