//! Addresses in ICMP (errors with the packet they are about, redirects, neighbour discovery) and in ARP.

use super::walk::Walk;
use crate::frame::{Frame, Ip};
use crate::header::icmp::LEN as HEADER;
use crate::ipv6_ext::next_header::{ICMPV4, ICMPV6};
use crate::octets::array;

/// Places in an ARP packet between Ethernet and IPv4 addresses (RFC 826).
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

/// Rewrites the ICMP message that `ip` carries, if it is one. Returns where it quotes a packet, and as much as it quotes.
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
    // RFC 4884 section 3: how much is quoted, where extensions follow; in 4 octets in ICMPv4, in 8 in ICMPv6.
    let quoted_len = match (protocol, kind) {
        (ICMPV4, 3 | 11 | 12) => Some(usize::from(in_half_words) * 4),
        (ICMPV4, 4 | 5) => Some(0),
        (ICMPV6, 1 | 3) => Some(usize::from(in_words) * 8),
        (ICMPV6, 2 | 4) => Some(0),
        _ => None,
    };
    let addresses = match (protocol, kind) {
        // RFC 792: the gateway of a redirect.
        (ICMPV4, 5) if message.len() >= HEADER => {
            walk.ipv4(at + 4);
            0
        }
        // RFC 4861: targets of neighbour solicitation and advertisement; target and destination of a redirect.
        (ICMPV6, 135 | 136) => 1,
        (ICMPV6, 137) => 2,
        _ => 0,
    };
    for place in (HEADER..).step_by(16).take(addresses) {
        if message.len() >= place + 16 {
            walk.ipv6(at + place);
        }
    }
    let quoted = message.get(HEADER..).unwrap_or_default();
    let part = quoted.get(..quoted_len?).filter(|q| !q.is_empty());
    Some((at + HEADER, part.unwrap_or(quoted)))
}
