//! Summary of an IP header ([`Ip`]), and in-place access to fields that change on the path; the
//! IPv4 header checksum is updated accordingly. The access functions expect packets that begin with
//! the IP header. A packet that is not IP, or ends before the field, is left unchanged.

use crate::checksum;
use crate::header::{ipv4, ipv6};
use crate::octets::{put, u8_at, u16_at, u32_at};
use std::net::IpAddr;

/// The innermost IP packet of a frame, or its equivalent on native InfiniBand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip {
    /// First octet of the IP header.
    pub start: usize,
    /// Octet after the end of the packet according to its length field; may lie beyond the captured
    /// octets.
    pub end: usize,
    /// Source address.
    pub source: IpAddr,
    /// Destination address; the last segment's if a routing header lists others to visit first.
    pub destination: IpAddr,
    /// TOS or traffic class: DSCP (6 bits), ECN (2 bits).
    pub traffic_class: u8,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// IPv6 flow label (20 bits), 0 in IPv4.
    pub flow_label: u32,
    /// Number of the upper-layer protocol.
    pub protocol: u8,
    /// First octet after the IP header and its extension headers.
    pub payload: usize,
}

impl Ip {
    /// Returns the ECN field: 0 not capable, 1 ECT(1), 2 ECT(0), 3 congestion experienced.
    #[must_use]
    pub const fn ecn(&self) -> u8 {
        self.traffic_class & 3
    }
}

/// Returns true if `address` can be that of a single node, reachable from another one.
#[must_use]
pub const fn is_node_address(address: IpAddr) -> bool {
    !(address.is_unspecified() || address.is_multicast() || address.is_loopback())
}

/// Returns the flow label of an IPv6 header, or 0 for IPv4, which has none.
#[must_use]
pub fn flow_label(packet: &[u8]) -> u32 {
    match u8_at(packet, 0) >> 4 {
        6 => u32_at(packet, 0) & 0x000F_FFFF,
        _ => 0,
    }
}

/// Sets the bits of `mask` in the TOS or traffic class: DSCP (6 bits), ECN (2 bits).
#[inline]
pub fn set_traffic_class(packet: &mut [u8], class: u8, mask: u8) {
    match u8_at(packet, 0) >> 4 {
        4 => set_ipv4_octet(packet, ipv4::TOS, class, mask),
        6 => set_ipv6_word(packet, u32::from(class) << 20, u32::from(mask) << 20),
        _ => {}
    }
}

/// Sets the TTL or hop limit.
#[inline]
pub fn set_hop_limit(packet: &mut [u8], hops: u8) {
    match u8_at(packet, 0) >> 4 {
        4 => set_ipv4_octet(packet, ipv4::TTL, hops, 0xFF),
        6 => put(packet, ipv6::HOP_LIMIT, &[hops]),
        _ => {}
    }
}

/// Sets the flow label of an IPv6 header to the low 20 bits of `label`.
#[inline]
pub fn set_flow_label(packet: &mut [u8], label: u32) {
    set_ipv6_word(packet, label, 0x000F_FFFF);
}

/// Writes the bits of `mask` in the first four octets of the IPv6 header.
fn set_ipv6_word(packet: &mut [u8], bits: u32, mask: u32) {
    let word = u32_at(packet, 0) & !mask | bits & mask;
    put(packet, 0, &word.to_be_bytes());
}

fn set_ipv4_octet(packet: &mut [u8], at: usize, bits: u8, mask: u8) {
    let old = u8_at(packet, at);
    let new = old & !mask | bits & mask;
    put(packet, at, &[new]);
    let word = |octet: u8| u16::from(octet) << if at.is_multiple_of(2) { 8 } else { 0 };
    patch_ipv4_checksum(packet, [word(old)], [word(new)]);
}

/// Patches the IPv4 header checksum for header words that changed from `old` to `new`.
#[inline]
pub(crate) fn patch_ipv4_checksum<const N: usize>(packet: &mut [u8], old: [u16; N], new: [u16; N]) {
    let delta: u32 = old.iter().map(|word| u32::from(!word)).sum::<u32>()
        + new.iter().map(|word| u32::from(*word)).sum::<u32>();
    let checksum = checksum::patched(u16_at(packet, ipv4::CHECKSUM), delta.into());
    put(packet, ipv4::CHECKSUM, &checksum.to_be_bytes());
}
