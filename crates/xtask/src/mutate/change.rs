//! What is changed in packets, the same for the same seed.

use std::ops::Range;
use std::time::Duration;

use fastrand::Rng;

use crate::packets::Packet;

/// A way of changing packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Octets at this rate, in thousandths.
    Octets(u32),
    /// The capture ends early.
    Cut,
    /// The packet itself ends early.
    Short,
    /// Fields, among them those that decide how the rest is read.
    Fields,
    /// Parts put into, taken from and moved between packets.
    Parts,
    /// Packets again, missing, late and out of order.
    Order,
}

impl Change {
    /// Each, in the order of the batches.
    pub const ALL: [Self; 10] = [
        Self::Fields,
        Self::Cut,
        Self::Octets(10),
        Self::Parts,
        Self::Octets(1),
        Self::Short,
        Self::Fields,
        Self::Octets(50),
        Self::Order,
        Self::Octets(200),
    ];

    /// In a few words.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Octets(rate) => format!("octets at {}", f64::from(rate) / 1000.0),
            other => format!("{other:?}").to_lowercase(),
        }
    }

    /// Changes packets, whose fields lie at `places`; `round` is how often it was called on the same ones.
    #[must_use]
    pub fn apply(
        self,
        packets: &[Packet],
        places: &[Vec<Range<usize>>],
        round: usize,
        random: &mut Rng,
    ) -> Vec<Packet> {
        if self == Self::Order {
            return reordered(packets, random);
        }
        let mut changed = packets.to_vec();
        for (index, packet) in changed.iter_mut().enumerate() {
            match self {
                // Each packet at each length, over as many rounds.
                Self::Cut => cut(packet, index + round),
                Self::Short => {
                    cut(packet, index + round);
                    packet.wire_len = packet.bytes.len() as u32;
                }
                Self::Fields => {
                    let places = places.get(index).map_or(&[][..], |places| places);
                    for _ in 0..=random.usize(..3) {
                        field(packet, places, random);
                    }
                }
                Self::Parts => {
                    let other = &packets[random.usize(..packets.len())].bytes;
                    part(packet, other, random);
                }
                Self::Octets(rate) => {
                    for octet in &mut packet.bytes {
                        if random.u32(..1_000) < rate {
                            *octet = random.u8(..);
                        }
                    }
                }
                Self::Order => {}
            }
        }
        changed
    }
}

fn cut(packet: &mut Packet, at: usize) {
    let len = at % (packet.bytes.len() + 1);
    packet.bytes.truncate(len);
}

/// Values that lie on a border; and a few small ones.
const BORDERS: &[u32] = &[
    0,
    1,
    2,
    3,
    7,
    8,
    127,
    128,
    254,
    255,
    i32::MAX as u32,
    u32::MAX,
];
/// Kinds of header, option, port and opcode that lead into code of the plugin or of its neighbours.
const KINDS: &[u32] = &[
    0, 1, 4, 6, 17, 41, 43, 44, 50, 51, 58, 59, 60, 89, 0x31, 0x81, 0x9E, 0x9F, 0x1E, 0x3E, 0xC2,
    1021, 1022, 4789, 4791, 0x86DD,
];

fn field(packet: &mut Packet, places: &[Range<usize>], random: &mut Rng) {
    let place = random.choice(places).cloned();
    let Some(place) = place.and_then(|place| packet.bytes.get_mut(place)) else {
        return;
    };
    let number = |n, octet: &u8| n << 8 | u32::from(*octet);
    let old = place.iter().fold(0u32, number);
    let new = match random.usize(..6) {
        0 => *random.choice(BORDERS).unwrap_or(&0),
        1 => *random.choice(KINDS).unwrap_or(&0),
        2 => random.u32(..),
        3 => old ^ 1 << random.usize(..8 * place.len()),
        // Of lengths: one more or less, or a few.
        4 => old.wrapping_add(*random.choice(&[1, u32::MAX]).unwrap_or(&1)),
        _ => old.wrapping_add(random.u32(..64)).wrapping_sub(32),
    };
    let octets = new.to_be_bytes();
    place.copy_from_slice(&octets[octets.len() - place.len()..]);
}

/// Longest packet made.
const LONGEST: usize = 9_000;

fn part(packet: &mut Packet, other: &[u8], random: &mut Rng) {
    let bytes = &mut packet.bytes;
    let from = random.usize(..=other.len());
    let piece = &other[from..from + random.usize(..=(other.len() - from).min(128))];
    let at = random.usize(..=bytes.len());
    let end = (at + piece.len()).min(bytes.len());
    match random.usize(..5) {
        // Over what is there; the first at the same place: fields meet fields.
        way @ 0..2 => {
            let at = if way == 0 { from.min(bytes.len()) } else { at };
            let len = piece.len().min(bytes.len() - at);
            bytes[at..at + len].copy_from_slice(&piece[..len]);
        }
        2 => drop(bytes.splice(at..at, piece.iter().copied())),
        3 => drop(bytes.drain(at..end)),
        // A part of its own, again.
        _ => {
            let own = bytes[at..end].to_vec();
            drop(bytes.splice(at..at, own));
        }
    }
    bytes.truncate(LONGEST);
    packet.wire_len = bytes.len() as u32;
}

fn reordered(packets: &[Packet], random: &mut Rng) -> Vec<Packet> {
    let mut out: Vec<Packet> = Vec::with_capacity(packets.len());
    for packet in packets {
        let mut packet = packet.clone();
        match random.usize(..8) {
            0 => continue,
            1 => out.push(packet.clone()),
            2 if !out.is_empty() => {
                let at = out.len() - 1 - random.usize(..out.len().min(20));
                out.insert(at, packet);
                continue;
            }
            3 => packet.time += Duration::from_micros(random.u64(..1_000_000)),
            _ => {}
        }
        out.push(packet);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Packet> {
        let folder = crate::cargo::root().unwrap().join("captures");
        crate::packets::read(&folder.join("formats-ioam.pcapng"))
            .unwrap()
            .packets
    }

    #[test]
    fn changes_are_the_same_each_time_and_do_something() {
        let packets = samples();
        let places = vec![vec![12..14, 18..20, 20..21, 9_000..9_001]; packets.len()];
        for change in Change::ALL {
            let once = change.apply(&packets, &places, 3, &mut Rng::with_seed(5));
            let again = change.apply(&packets, &places, 3, &mut Rng::with_seed(5));
            assert_eq!(once, again);
            assert_ne!(once, packets, "{change:?}");
            let fits = |packet: &Packet| packet.bytes.len() as u32 <= packet.wire_len;
            assert!(once.iter().all(fits), "{change:?}");
        }
    }

    #[test]
    fn cuts_reach_every_length() {
        let packets = &samples()[..1];
        let len = packets[0].bytes.len();
        let cut = |round| Change::Cut.apply(packets, &[], round, &mut Rng::with_seed(1));
        let mut seen: Vec<_> = (0..=len).map(|round| cut(round)[0].bytes.len()).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..=len).collect::<Vec<_>>());
    }

    #[test]
    fn nothing_is_too_short_to_be_changed() {
        let mut packets = vec![Packet::whole(1, Vec::new()), Packet::whole(101, vec![0x60])];
        let places = [vec![0..1, 5..6], vec![0..4, 1..2]];
        for round in 0..500 {
            for change in Change::ALL {
                let mut random = Rng::with_seed(round as u64);
                packets = change.apply(&packets, &places, round, &mut random);
                packets.truncate(8);
                if packets.len() < 2 {
                    packets = vec![Packet::whole(1, vec![1]), Packet::whole(0, vec![])];
                }
            }
        }
    }
}
