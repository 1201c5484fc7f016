//! What is changed in packets, the same for the same seed. Not here: octets changed at a rate, which is `editcap -E`.

use super::packets::Packet;
use super::places::{Place, Role, places};
use super::random::Random;

/// A way of changing packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// `editcap -E` with this rate, in thousandths.
    Octets(u32),
    /// The capture ends early.
    Cut,
    /// The packet itself ends early.
    Short,
    /// Fields that decide how the rest is read.
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
            Self::Cut => "cut".to_owned(),
            Self::Short => "short".to_owned(),
            Self::Fields => "fields".to_owned(),
            Self::Parts => "parts".to_owned(),
            Self::Order => "order".to_owned(),
        }
    }

    /// Changes packets; `round` is how often it was called on the same ones.
    #[must_use]
    pub fn apply(self, packets: &[Packet], round: usize, random: &mut Random) -> Vec<Packet> {
        if self == Self::Order {
            return reordered(packets, random);
        }
        packets
            .iter()
            .enumerate()
            .map(|(index, packet)| {
                let mut packet = packet.clone();
                match self {
                    // Each packet at each length, over as many rounds.
                    Self::Cut => cut(&mut packet, index + round),
                    Self::Short => {
                        cut(&mut packet, index + round);
                        packet.wire_len = packet.bytes.len() as u32;
                    }
                    Self::Fields => {
                        for _ in 0..=random.below(3) {
                            field(&mut packet, random);
                        }
                    }
                    Self::Parts => {
                        let other = &packets[random.below(packets.len())].bytes;
                        part(&mut packet, other, random);
                    }
                    Self::Octets(_) | Self::Order => {}
                }
                packet
            })
            .collect()
    }
}

fn cut(packet: &mut Packet, at: usize) {
    let len = at % (packet.bytes.len() + 1);
    packet.bytes.truncate(len);
}

/// Values that were mistaken for something before, or lie on a border.
const BORDERS: [u32; 12] = [
    0,
    1,
    2,
    3,
    7,
    8,
    0x7F,
    0x80,
    0xFE,
    0xFF,
    0x7FFF_FFFF,
    0xFFFF_FFFF,
];
/// Kinds of header, option, port and opcode that lead into code of ours or of its neighbours.
const KINDS: [u32; 26] = [
    0, 1, 4, 6, 17, 41, 43, 44, 50, 51, 58, 59, 60, 89, 0x31, 0x81, 0x9E, 0x9F, 0x1E, 0x3E, 0xC2,
    1021, 1022, 4789, 4791, 0x86DD,
];

fn field(packet: &mut Packet, random: &mut Random) {
    let found = places(packet.link, &packet.bytes);
    if found.is_empty() {
        return;
    }
    let Place { at, len, role } = found[random.below(found.len())];
    let place = &mut packet.bytes[at..at + len];
    let old = place
        .iter()
        .fold(0u32, |n, octet| n << 8 | u32::from(*octet));
    let new = match (random.below(4), role) {
        (0, _) => random.one(&BORDERS),
        (1, _) => random.number() as u32,
        (2, Role::Length) => old.wrapping_add(random.one(&[1, u32::MAX])),
        (_, Role::Length) => old.wrapping_add(random.below(64) as u32).wrapping_sub(32),
        (_, Role::Kind) => random.one(&KINDS),
        (_, Role::Bits) => old ^ 1 << random.below(8 * len),
    };
    for (octet, shift) in place.iter_mut().rev().zip((0..).step_by(8)) {
        *octet = (new >> shift) as u8;
    }
}

/// Longest packet made.
const LONGEST: usize = 9_000;

fn part(packet: &mut Packet, other: &[u8], random: &mut Random) {
    let bytes = &mut packet.bytes;
    let from = random.below(other.len() + 1);
    let len = random.below((other.len() - from).min(128) + 1);
    let piece = &other[from..from + len];
    let at = random.below(bytes.len() + 1);
    match random.below(5) {
        // Over what is there, at the same place: fields meet fields.
        0 => {
            let at = from.min(bytes.len());
            let len = len.min(bytes.len() - at);
            bytes[at..at + len].copy_from_slice(&piece[..len]);
        }
        1 => {
            let len = len.min(bytes.len() - at);
            bytes[at..at + len].copy_from_slice(&piece[..len]);
        }
        2 => drop(bytes.splice(at..at, piece.iter().copied())),
        3 => drop(bytes.drain(at..(at + len).min(bytes.len()))),
        _ => {
            // A part of its own, again.
            let own = bytes[at..(at + len).min(bytes.len())].to_vec();
            drop(bytes.splice(at..at, own));
        }
    }
    bytes.truncate(LONGEST);
    packet.wire_len = bytes.len() as u32;
}

fn reordered(packets: &[Packet], random: &mut Random) -> Vec<Packet> {
    let mut out: Vec<Packet> = Vec::with_capacity(packets.len());
    for packet in packets {
        match random.below(8) {
            0 => {}
            1 => out.extend([packet.clone(), packet.clone()]),
            2 if !out.is_empty() => {
                let at = out.len() - 1 - random.below(out.len().min(20));
                out.insert(at, packet.clone());
            }
            3 => {
                let mut late = packet.clone();
                late.time += std::time::Duration::from_micros(random.number() % 1_000_000);
                out.push(late);
            }
            _ => out.push(packet.clone()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Packet> {
        let folder = crate::cargo::root().unwrap().join("captures");
        super::super::packets::read(&folder.join("formats-ioam.pcapng")).unwrap()
    }

    #[test]
    fn changes_are_the_same_each_time_and_do_something() {
        let packets = samples();
        for change in Change::ALL {
            let once = change.apply(&packets, 3, &mut Random(5));
            assert_eq!(once, change.apply(&packets, 3, &mut Random(5)));
            // Octets are editcap's business.
            let same = matches!(change, Change::Octets(_));
            assert_eq!(once == packets, same, "{change:?}");
            let fits = |packet: &Packet| packet.bytes.len() as u32 <= packet.wire_len;
            assert!(once.iter().all(fits), "{change:?}");
        }
    }

    #[test]
    fn cuts_reach_every_length() {
        let packets = &samples()[..1];
        let len = packets[0].bytes.len();
        let mut seen: Vec<_> = (0..=len)
            .map(|round| {
                Change::Cut.apply(packets, round, &mut Random(1))[0]
                    .bytes
                    .len()
            })
            .collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..=len).collect::<Vec<_>>());
    }

    #[test]
    fn nothing_is_too_short_to_be_changed() {
        let mut packets = vec![Packet::whole(1, Vec::new()), Packet::whole(101, vec![0x60])];
        for round in 0..500 {
            for change in Change::ALL {
                packets = change.apply(&packets, round, &mut Random(round as u64));
                packets.truncate(8);
                if packets.len() < 2 {
                    packets = vec![Packet::whole(1, vec![1]), Packet::whole(0, vec![])];
                }
            }
        }
    }
}
