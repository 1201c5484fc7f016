//! Locates the IP header in front of a known header: a dissector knows the offset of its own
//! octets, but not that of the IP packet around them.
//!
//! The search goes backwards from the known header, so link types and tunnels need not be
//! understood.
#![forbid(unsafe_code)]

use fcn_wire::ipv6_ext::{ExtHeaders, next_header};

/// Maximum distance back to an IPv6 header, in octets: extension headers are seldom longer than a
/// few hundred octets.
const MAX_DISTANCE: usize = 4096;

/// Kind of header that is known to begin at an offset behind an IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderKind {
    /// A UDP header.
    Udp,
    /// An IPv6 extension header.
    ExtensionHeader,
}

/// Returns the offset of the IP header, with source address `source` (4 or 16 octets), of the
/// packet that has the header `kind` at offset `place`.
pub fn ip_header(bytes: &[u8], place: usize, kind: HeaderKind, source: &[u8]) -> Option<usize> {
    match source.len() {
        4 if kind == HeaderKind::Udp => ipv4(bytes, place, source),
        16 => ipv6(bytes, place, kind, source),
        _ => None,
    }
}

fn ipv4(bytes: &[u8], place: usize, source: &[u8]) -> Option<usize> {
    (5..=15u8).find_map(|words| {
        let start = place.checked_sub(usize::from(words) * 4)?;
        let header = bytes.get(start..place)?;
        let fits =
            header[0] == 0x40 | words && header[9] == next_header::UDP && &header[12..16] == source;
        fits.then_some(start)
    })
}

fn ipv6(bytes: &[u8], place: usize, kind: HeaderKind, source: &[u8]) -> Option<usize> {
    let nearest = place.checked_sub(40)?;
    (nearest.saturating_sub(MAX_DISTANCE)..=nearest)
        .rev()
        .step_by(8)
        .find(|start| {
            let Some(packet) = bytes.get(*start..) else {
                return false;
            };
            if packet.len() < 40 || packet[0] >> 4 != 6 || &packet[8..24] != source {
                return false;
            }
            let inside = place - start;
            let mut chain = ExtHeaders::new(packet);
            match kind {
                HeaderKind::Udp => {
                    // If a header runs past the capture, the chain ends before it reaches `place`.
                    chain.by_ref().for_each(drop);
                    chain.upper_start() == inside && chain.upper_protocol() == next_header::UDP
                }
                HeaderKind::ExtensionHeader => {
                    inside == 40 && packet[6] != next_header::UDP
                        || chain.flatten().any(|header| {
                            header.start == inside || header.start + header.len == inside
                        })
                }
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];

    fn ipv6_packet(next: u8, rest: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, rest.len() as u8, next, 64];
        packet.extend(SOURCE);
        packet.extend([9; 16]);
        packet.extend(rest);
        packet
    }

    #[test]
    fn headers_are_found_behind_any_prefix() {
        let mut v4 = vec![
            0x45, 0, 0, 48, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ];
        v4.extend([0; 28]);
        for lead in [0, 14, 18, 51] {
            let mut bytes = vec![0x66; lead];
            bytes.extend(&v4);
            assert_eq!(
                ip_header(&bytes, lead + 20, HeaderKind::Udp, &[10, 0, 0, 1]),
                Some(lead)
            );
            assert_eq!(
                ip_header(&bytes, lead + 20, HeaderKind::Udp, &[10, 0, 0, 9]),
                None
            );
            let mut options = vec![17, 0, 1, 4, 0, 0, 0, 0, 60, 0, 1, 4, 0, 0, 0, 0];
            options.swap(0, 8);
            options.extend([0; 8]);
            let mut bytes = vec![0x66; lead];
            bytes.extend(ipv6_packet(60, &options));
            assert_eq!(
                ip_header(&bytes, lead + 56, HeaderKind::Udp, &SOURCE),
                Some(lead)
            );
            for place in [40, 48] {
                assert_eq!(
                    ip_header(&bytes, lead + place, HeaderKind::ExtensionHeader, &SOURCE),
                    Some(lead)
                );
            }
            assert_eq!(ip_header(&bytes, lead + 48, HeaderKind::Udp, &SOURCE), None);
        }
    }

    #[test]
    fn offsets_outside_the_bytes_find_no_header() {
        for place in 0..64 {
            assert_eq!(ip_header(&[0x60; 8], place, HeaderKind::Udp, &SOURCE), None);
            assert_eq!(ip_header(&[], place, HeaderKind::Udp, &[1, 2, 3, 4]), None);
        }
    }
}
