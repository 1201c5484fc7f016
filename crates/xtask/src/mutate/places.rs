//! Where in a packet the fields are that decide how the rest is read: lengths, types, next headers, ports, counts.
//!
//! A walk of its own, not `fcn-wire`'s: what the plugin misreads is not to be missed here for the same reason.

/// What a field decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// What follows: a next header, an option type, a port, an opcode, an EtherType.
    Kind,
    /// How much follows.
    Length,
    /// Which parts are there: flags, a trace type.
    Bits,
}

/// A field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its first octet.
    pub at: usize,
    /// Its octets, at most 4.
    pub len: usize,
    /// What it decides.
    pub role: Role,
}

const fn kind(at: usize, len: usize) -> Place {
    let role = Role::Kind;
    Place { at, len, role }
}

const fn length(at: usize, len: usize) -> Place {
    let role = Role::Length;
    Place { at, len, role }
}

const fn bits(at: usize, len: usize) -> Place {
    let role = Role::Bits;
    Place { at, len, role }
}

/// Headers behind one another that are followed.
const DEEPEST: usize = 24;

/// What begins at a place.
#[derive(Clone, Copy)]
enum Header {
    Ethernet,
    EtherType,
    Mpls,
    Ip,
    Next(u8),
    Message(u16),
}

/// The deciding fields of a packet, as far as the headers can be followed, and further octets that look like lengths.
#[must_use]
pub fn places(link: u32, bytes: &[u8]) -> Vec<Place> {
    let mut found = Vec::new();
    let (mut at, mut header) = match link {
        1 => (0, Header::Ethernet),
        113 => (14, Header::EtherType),
        276 => (0, Header::EtherType),
        0 => (4, Header::Ip),
        _ => (0, Header::Ip),
    };
    if link == 276 {
        // The EtherType comes first, then 18 octets more.
        found.push(kind(0, 2));
        (at, header) = (20, Header::Ip);
    }
    for _ in 0..DEEPEST {
        let Some((next_at, next)) = step(at, header, bytes, &mut found) else {
            break;
        };
        (at, header) = (next_at, next);
    }
    lengths(at, bytes, &mut found);
    found.retain(|place| place.at + place.len <= bytes.len());
    found
}

fn octet(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

fn pair(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// Notes the fields of a header, and gives the next.
fn step(
    at: usize,
    header: Header,
    bytes: &[u8],
    found: &mut Vec<Place>,
) -> Option<(usize, Header)> {
    match header {
        Header::Ethernet => Some((at + 12, Header::EtherType)),
        Header::EtherType => {
            found.push(kind(at, 2));
            let next = match pair(bytes, at)? {
                0x8100 | 0x88A8 => return Some((at + 4, Header::EtherType)),
                0x0800 | 0x86DD => Header::Ip,
                0x8847 => Header::Mpls,
                0x8808 => Header::Message(0),
                _ => return None,
            };
            Some((at + 2, next))
        }
        Header::Mpls => {
            found.push(bits(at + 2, 1));
            let bottom = octet(bytes, at + 2)? & 1 == 1;
            Some((at + 4, if bottom { Header::Ip } else { header }))
        }
        Header::Ip if octet(bytes, at)? >> 4 == 4 => {
            let words = usize::from(octet(bytes, at)? & 15);
            found.extend([
                length(at, 1),
                length(at + 2, 2),
                bits(at + 6, 2),
                kind(at + 9, 1),
            ]);
            Some((at + words.max(5) * 4, Header::Next(octet(bytes, at + 9)?)))
        }
        Header::Ip => {
            found.extend([kind(at, 1), length(at + 4, 2), kind(at + 6, 1)]);
            Some((at + 40, Header::Next(octet(bytes, at + 6)?)))
        }
        Header::Next(protocol) => next_header(at, protocol, bytes, found),
        Header::Message(port) => {
            message(at, port, found);
            None
        }
    }
}

fn next_header(
    at: usize,
    protocol: u8,
    bytes: &[u8],
    found: &mut Vec<Place>,
) -> Option<(usize, Header)> {
    match protocol {
        0 | 60 | 43 => {
            found.extend([kind(at, 1), length(at + 1, 1)]);
            let len = (usize::from(octet(bytes, at + 1)?) + 1) * 8;
            if protocol == 43 {
                found.extend([kind(at + 2, 1), length(at + 3, 1), length(at + 4, 1)]);
            } else {
                options(at + 2, at + len, bytes, found);
            }
            Some((at + len, Header::Next(octet(bytes, at)?)))
        }
        44 => {
            found.extend([kind(at, 1), bits(at + 2, 2)]);
            Some((at + 8, Header::Next(octet(bytes, at)?)))
        }
        4 | 41 => Some((at, Header::Ip)),
        58 => {
            found.extend([kind(at, 1), kind(at + 1, 1), length(at + 4, 4)]);
            Some((at + 8, Header::Ip))
        }
        17 => {
            found.extend([kind(at, 2), kind(at + 2, 2), length(at + 4, 2)]);
            let port = pair(bytes, at + 2)?;
            if port == 4789 {
                found.push(bits(at + 8, 1));
                return Some((at + 16, Header::Ethernet));
            }
            if port == 1021 {
                message(at + 8, port, found);
                // Behind the addresses, ports and level lies the packet quoted.
                let quoted = [16, 40].map(|len| at + 8 + len);
                let is_v4 = octet(bytes, quoted[0]).is_some_and(|octet| octet >> 4 == 4);
                return Some((quoted[usize::from(!is_v4)], Header::Ip));
            }
            Some((at + 8, Header::Message(port)))
        }
        _ => None,
    }
}

fn options(mut at: usize, end: usize, bytes: &[u8], found: &mut Vec<Place>) {
    while at + 1 < end.min(bytes.len()) {
        found.extend([kind(at, 1), length(at + 1, 1)]);
        if bytes[at] == 0 {
            at += 1;
            continue;
        }
        let len = usize::from(bytes[at + 1]);
        if len > 8 {
            // An IOAM trace, as its own option or in Option 2: namespace, node length, flags, remaining length, type.
            let trace = at + 2;
            found.extend([
                kind(trace + 1, 1),
                length(trace + 4, 1),
                bits(trace + 4, 2),
                length(trace + 5, 1),
                bits(trace + 6, 3),
            ]);
        }
        at += 2 + len;
    }
}

fn message(at: usize, port: u16, found: &mut Vec<Place>) {
    match port {
        4791 => found.extend([
            kind(at, 1),
            bits(at + 1, 1),
            bits(at + 4, 1),
            bits(at + 5, 3),
            bits(at + 12, 4),
        ]),
        0 => found.extend([kind(at, 2), bits(at + 2, 2)]),
        _ => found.extend((0..6).map(|i| bits(at + 2 * i, 2))),
    }
}

/// Octets and pairs of octets from `at` on that may be lengths, because the packet, or what another of them counts,
/// ends where they say.
fn lengths(at: usize, bytes: &[u8], found: &mut Vec<Place>) {
    const MOST: usize = 64;
    let len = bytes.len();
    let mut ends = vec![len];
    for i in at..len {
        if ends.len() > MOST {
            break;
        }
        let one = i + 1 + usize::from(bytes[i]);
        let two = pair(bytes, i).map(|value| i + 2 + usize::from(value));
        if ends.contains(&one) && one > i + 1 {
            found.push(length(i, 1));
        } else if two.is_some_and(|end| ends.contains(&end) && end > i + 2) {
            found.push(length(i, 2));
        } else if bytes[i] != 0 && bytes[i] < 64 && one < len {
            // One that may be a type-length-value's: what is nested in it ends there.
            ends.push(one);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_a_fast_cnp_are_found() {
        let folder = crate::cargo::root().unwrap().join("captures");
        let packets = super::super::packets::read(&folder.join("formats-fast-cnp.pcapng")).unwrap();
        let with_options = |packet: &&super::super::packets::Packet| packet.bytes[20] == 60;
        let packet = packets.iter().find(with_options).unwrap();
        let found = places(packet.link, &packet.bytes);
        // EtherType, payload length, next header, of the options header, of the option, UDP's, the opcode.
        for place in [
            kind(12, 2),
            length(18, 2),
            kind(20, 1),
            kind(54, 1),
            length(55, 1),
        ] {
            assert!(found.contains(&place), "{place:?} of {found:?}");
        }
        assert!(
            found
                .iter()
                .filter(|place| place.role == Role::Bits)
                .count()
                > 3
        );
    }

    #[test]
    fn anything_is_walked() {
        let mut random = super::super::random::Random(3);
        for round in 0..2000 {
            let len = random.below(200);
            let mut bytes: Vec<u8> = (0..len).map(|_| random.number() as u8).collect();
            if let Some(kind) = bytes.get_mut(12..14) {
                kind.copy_from_slice(random.one(&[&[0x86, 0xDD], &[8, 0], &[0x88, 0x47]]));
            }
            let found = places([1, 101, 113, 276, 0][round % 5], &bytes);
            assert!(found.iter().all(|place| place.at + place.len <= len));
        }
    }
}
