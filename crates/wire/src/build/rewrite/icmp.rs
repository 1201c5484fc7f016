//! Addresses in ICMP (errors with the packet that caused them, redirects, neighbour discovery) and
//! in ARP.

use super::walk::Walk;
use crate::frame::{Frame, Ip};
use crate::header::icmp::LEN as HEADER;
use crate::ipv6_ext::next_header::{ICMPV4, ICMPV6};
use crate::octets::array;

/// Offsets in an ARP packet between Ethernet and IPv4 addresses (RFC 826).
mod arp_field {
    pub const SENDER_MAC: usize = 8;
    pub const SENDER: usize = 14;
    pub const TARGET_MAC: usize = 18;
    pub const TARGET: usize = 24;
}

/// Rewrites the ARP packet at `at`.
pub(super) fn arp(walk: &mut Walk<'_, '_>, at: usize) {
    const IPV4_OVER_ETHERNET: [u8; 6] = [0, 1, 0x08, 0x00, 6, 4];
    if walk.old(at) != IPV4_OVER_ETHERNET {
        walk.may_contain_unmapped = true;
        return;
    }
    for place in [arp_field::SENDER_MAC, arp_field::TARGET_MAC] {
        let old = walk.old(at + place);
        let new = walk.rules.base().mac(old);
        walk.write(at + place, new);
    }
    walk.ipv4(at + arp_field::SENDER);
    walk.ipv4(at + arp_field::TARGET);
}

/// Rewrites the ICMP message that `ip` carries, if it is one. Returns the offset of the packet it
/// quotes, and the quoted octets.
pub(super) fn icmp<'f>(
    walk: &mut Walk<'_, '_>,
    frame: &Frame<'f>,
    ip: &Ip,
    protocol: u8,
) -> Option<(usize, &'f [u8])> {
    let at = ip.payload;
    let end = ip.end.min(frame.bytes().len());
    let message = frame.bytes().get(at..end).unwrap_or_default();
    let [kind, _, _, _, in_words, in_half_words, ..] = array::<HEADER>(message, 0);
    // RFC 4861: offset of the options of a router solicitation, after the target of neighbour
    // solicitation and advertisement, and after target and destination of a redirect.
    let options = match (protocol, kind) {
        (ICMPV6, 133) => Some(HEADER),
        (ICMPV6, 135 | 136) => Some(HEADER + 16),
        (ICMPV6, 137) => Some(HEADER + 32),
        _ => None,
    };
    if let Some(options) = options {
        for place in (HEADER..options).step_by(16) {
            if message.len() >= place + 16 {
                walk.ipv6(at + place);
            }
        }
        walk.may_contain_unmapped |= !message.get(options..).is_some_and(are_address_free);
        return None;
    }
    // RFC 792: the gateway of a redirect.
    if (protocol, kind) == (ICMPV4, 5) && message.len() >= HEADER {
        walk.ipv4(at + 4);
    }
    // RFC 4884 section 3: length of the quote if extensions follow; in units of 4 octets in ICMPv4,
    // of 8 in ICMPv6.
    let quoted_len = match (protocol, kind) {
        (ICMPV4, 3 | 11 | 12) => usize::from(in_half_words) * 4,
        (ICMPV6, 1 | 3) => usize::from(in_words) * 8,
        (ICMPV4, 4 | 5) | (ICMPV6, 2 | 4) => 0,
        // Echo, router solicitation, timestamps.
        (ICMPV4, 0 | 8 | 10 | 13 | 14) | (ICMPV6, 128 | 129) => return None,
        _ => {
            walk.may_contain_unmapped |= matches!(protocol, ICMPV4 | ICMPV6);
            return None;
        }
    };
    let quoted = message.get(HEADER..).unwrap_or_default();
    let part = quoted.get(..quoted_len).filter(|q| !q.is_empty());
    // An extension may contain an interface's address (RFC 5837).
    walk.may_contain_unmapped |= part.is_some_and(|part| part.len() < quoted.len());
    Some((at + HEADER, part.unwrap_or(quoted)))
}

/// Returns true if neighbour discovery's `options` are only link-layer addresses, MTUs and nonces.
fn are_address_free(mut options: &[u8]) -> bool {
    while let [1 | 2 | 5 | 14, units @ 1..=u8::MAX, ..] = options {
        options = options.get(usize::from(*units) * 8..).unwrap_or_default();
    }
    options.is_empty()
}
