//! The RoCEv2 Invariant CRC: computation and verification. `template.rs` patches it when a few
//! octets change.
//!
//! The ICRC is CRC-32 with the Ethernet polynomial over 8 octets of ones followed by the packet
//! from the IP header on. Fields that a switch may change count as ones (InfiniBand volume 1, Annex
//! A17.3.3). `frame.rs` finds the packet in a frame.
//!
//! ```text
//! | ones (64) | IP | extension headers | UDP | BTH, other headers, payload, pad | ICRC, least significant octet first |
//! ones in place of   IPv4: TOS, TTL, header checksum       UDP: checksum
//!                    IPv6: traffic class, flow label,      BTH: F, B, Resv6
//!                          hop limit                       extension headers: see [`Reading`]
//! ```
//!
//! ```
//! use fcn_wire::cnp::CnpRepr;
//! use fcn_wire::emit::{self, Carrier};
//! use fcn_wire::icrc::{Verdict, verify};
//! use fcn_wire::{Profile, Qp};
//!
//! let carrier = Carrier::new([192, 0, 2, 2].into(), [192, 0, 2, 1].into());
//! let mut packet = [0; 60];
//! emit::cnp(&carrier, &CnpRepr::new(Qp::truncate(0x11)), &Profile::DEFAULT, &mut packet)?;
//! assert_eq!(verify(&packet, 20), Verdict::Good(None));
//! packet[8] -= 1;
//! assert_eq!(verify(&packet, 20), Verdict::Good(None), "a router has forwarded it");
//! packet[50] ^= 1;
//! assert!(matches!(verify(&packet, 20), Verdict::Bad { .. }));
//! # Ok::<(), fcn_wire::Error>(())
//! ```

use crate::bth::{BTH_LEN, field as bth_field};
use crate::header::{ipv4, ipv6, udp};
use crate::identified;
use crate::ipv6_ext::{ExtHeaders, Options, next_header};
use crate::layer::Layer;
use crate::octets::u8_at;
use core::fmt;
use core::ops::Range;
use crc32fast::Hasher;
use serde::Deserialize;
use std::sync::LazyLock;

pub use crate::header::ICRC_LEN;

identified! {
    /// Treatment of IPv6 extension headers between the IPv6 header and UDP in the ICRC, in the
    /// order in which [`verify`] tries the variants. No specification defines it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Deserialize)]
    Reading {
        /// The default: covered like the rest of the packet; data of options that may change on the
        /// path counts as ones.
        #[default]
        #[serde(rename = "B")]
        Covered = "B",
        /// Skipped, with next header and payload length as if there were no extension headers.
        #[serde(rename = "A2")]
        Rewritten = "A2",
        /// Skipped, with the IPv6 header as on the wire.
        #[serde(rename = "A")]
        Skipped = "A",
        /// The computation of Linux soft-RoCE: the 8 octets after the IPv6 header are taken for
        /// UDP, then the BTH follows.
        #[serde(rename = "C")]
        SoftRoce = "C",
    }
}

impl Reading {
    /// Returns a description of the reading.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Covered => "extension headers covered, mutable option data as ones",
            Self::Skipped => "extension headers skipped, IPv6 header as on the wire",
            Self::Rewritten => "extension headers skipped, IPv6 header rewritten as if absent",
            Self::SoftRoce => "as Linux soft-RoCE: 8 octets after the IPv6 header taken as UDP",
        }
    }

    /// Returns the reading with that short name, ignoring case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|reading| reading.id().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// Policy by which an emitter writes the ICRC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The correct one, by this reading.
    Compute(Reading),
    /// Four octets of zero (some senders leave the field to their hardware).
    Zero,
    /// The correct one by the default reading with every bit flipped: for negative tests.
    Corrupt,
    /// The correct one by the default reading, most significant octet first: a common mistake.
    Swapped,
}

impl Default for Policy {
    fn default() -> Self {
        Self::Compute(Reading::default())
    }
}

/// Result of verifying an ICRC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It matches. `Some` names the reading if extension headers make a difference.
    Good(Option<Reading>),
    /// It matches no reading.
    Bad {
        /// ICRC in the packet, as a number (the field is least significant octet first).
        found: u32,
        /// ICRC expected by the default reading.
        expected: u32,
    },
    /// Could not be computed: the packet is truncated, a fragment, or cannot be parsed that far.
    Unchecked,
}

impl Verdict {
    /// Returns true if the octets of the ICRC are in the opposite order: it would match the default
    /// reading if its most significant octet came last.
    #[must_use]
    pub const fn is_swapped(self) -> bool {
        matches!(self, Self::Bad { found, expected } if found.swap_bytes() == expected)
    }
}

/// The Ethernet polynomial, reflected.
pub(crate) const POLYNOMIAL: u32 = 0xEDB8_8320;
/// CRC-32 of the 8 octets of ones that replace the missing Local Route Header: the start value of
/// every ICRC.
const ONES_LRH: u32 = 0x2144_DF1C;
/// Initial hasher. It is cloned because each new one queries the processor's features again.
static START: LazyLock<Hasher> = LazyLock::new(|| Hasher::new_with_initial(ONES_LRH));
/// Number of octets of the BTH up to and including the one with FECN and BECN, the last one masked.
const BTH_MASKED: usize = bth_field::ECN + 1;
/// Maximum length of a packet that is copied and masked as a whole.
const SHORT: usize = 256;

/// Computes the ICRC of `packet`, which begins at its IP header and ends where the ICRC begins; UDP
/// begins at offset `udp`.
///
/// Returns `None` if `packet` is not IPv4 or IPv6 with UDP and a BTH, and for
/// [`Reading::Rewritten`] if the payload length is less than the extension headers. The reading
/// matters only for IPv6 with extension headers.
#[must_use]
pub fn compute(packet: &[u8], udp: usize, reading: Reading) -> Option<u32> {
    if packet.len() < udp.checked_add(udp::LEN + BTH_LEN)? {
        return None;
    }
    let is_covered = reading == Reading::Covered || udp <= ipv6::LEN || u8_at(packet, 0) >> 4 == 4;
    if is_covered && packet.len() <= SHORT {
        return compute_short(packet, udp);
    }
    let masked_end = udp + udp::LEN + BTH_MASKED;
    let (headers, rest) = packet.split_at_checked(masked_end)?;
    let mut crc = START.clone();
    // Headers are masked in a copy on the stack and fed in one call.
    match u8_at(packet, 0) >> 4 {
        4 if (ipv4::LEN..=ipv4::MAX_LEN).contains(&udp) => {
            let mut copy = [0; ipv4::MAX_LEN + udp::LEN + BTH_MASKED];
            let copy = copy.get_mut(..masked_end)?;
            copy.copy_from_slice(headers);
            let (ip, transport) = copy.split_at_mut_checked(udp)?;
            mask_ipv4(ip.first_chunk_mut()?);
            mask_transport(transport.first_chunk_mut()?);
            crc.update(copy);
        }
        6 if udp == ipv6::LEN => {
            let mut copy = *headers.first_chunk::<{ ipv6::LEN + udp::LEN + BTH_MASKED }>()?;
            let (ip, transport) = copy.split_first_chunk_mut::<{ ipv6::LEN }>()?;
            mask_ipv6(ip);
            mask_transport(transport.first_chunk_mut()?);
            crc.update(&copy);
        }
        6 if udp > ipv6::LEN => {
            let mut ip = *headers.first_chunk::<{ ipv6::LEN }>()?;
            let mut transport = *headers.last_chunk::<{ udp::LEN + BTH_MASKED }>()?;
            mask_ipv6(&mut ip);
            match reading {
                Reading::Covered | Reading::Skipped => {}
                Reading::Rewritten => {
                    let payload = u16::from_be_bytes([ip[4], ip[5]]);
                    // A payload length of 0 (jumbograms) or a wrong one cannot be rewritten: the
                    // result would be a guess.
                    let without = payload.checked_sub(u16::try_from(udp - ipv6::LEN).ok()?)?;
                    ip[4..6].copy_from_slice(&without.to_be_bytes());
                    ip[6] = next_header::UDP;
                }
                Reading::SoftRoce => {
                    let (udp, _) = transport.split_first_chunk_mut::<{ udp::LEN }>()?;
                    *udp = *headers.get(ipv6::LEN..)?.first_chunk()?;
                }
            }
            mask_transport(&mut transport);
            crc.update(&ip);
            if reading == Reading::Covered {
                covered_headers(&mut crc, packet.get(..udp)?);
            }
            crc.update(&transport);
        }
        _ => return None,
    }
    crc.update(rest);
    Some(crc.finalize())
}

/// Performs [`compute`] for a packet of at most [`SHORT`] octets (notifications, acknowledgements)
/// with extension headers covered. It masks a copy of the whole packet and feeds it in one call,
/// because each call costs more than the octets of a header.
fn compute_short(packet: &[u8], udp: usize) -> Option<u32> {
    let mut copy = [0; SHORT];
    let copy = copy.get_mut(..packet.len())?;
    copy.copy_from_slice(packet);
    let (headers, transport) = copy.split_at_mut_checked(udp)?;
    mask_transport(transport.first_chunk_mut()?);
    match u8_at(packet, 0) >> 4 {
        4 if (ipv4::LEN..=ipv4::MAX_LEN).contains(&udp) => mask_ipv4(headers.first_chunk_mut()?),
        6 if udp >= ipv6::LEN => {
            if udp > ipv6::LEN {
                mutable_options(packet.get(..udp)?, |data| {
                    if let Some(data) = headers.get_mut(data) {
                        data.fill(0xFF);
                    }
                });
            }
            mask_ipv6(headers.first_chunk_mut()?);
        }
        _ => return None,
    }
    let mut crc = START.clone();
    crc.update(copy);
    Some(crc.finalize())
}

/// Masks TOS, TTL and header checksum.
fn mask_ipv4(header: &mut [u8; ipv4::LEN]) {
    header[ipv4::TOS] = 0xFF;
    header[ipv4::TTL] = 0xFF;
    header[ipv4::CHECKSUM..ipv4::SOURCE].fill(0xFF);
}

/// Masks traffic class, flow label and hop limit.
fn mask_ipv6(header: &mut [u8; ipv6::LEN]) {
    header[0] |= 0x0F;
    header[1..4].fill(0xFF);
    header[ipv6::HOP_LIMIT] = 0xFF;
}

/// Masks the UDP checksum, and the BTH octet with FECN, BECN and the adjacent reserved bits.
fn mask_transport(headers: &mut [u8; udp::LEN + BTH_MASKED]) {
    headers[udp::CHECKSUM..udp::LEN].fill(0xFF);
    headers[udp::LEN + BTH_MASKED - 1] = 0xFF;
}

/// Feeds the extension headers of `packet` (which ends where UDP begins), with data of mutable
/// options as ones.
fn covered_headers(crc: &mut Hasher, packet: &[u8]) {
    const ONES: [u8; 255] = [0xFF; 255];
    let mut fed = ipv6::LEN;
    mutable_options(packet, |data| {
        crc.update(packet.get(fed..data.start).unwrap_or_default());
        crc.update(ONES.get(..data.len()).unwrap_or_default());
        fed = data.end;
    });
    crc.update(packet.get(fed..).unwrap_or_default());
}

/// Calls `found` with the range of each mutable option's data in the extension headers of `packet`
/// (which ends where UDP begins).
#[inline]
fn mutable_options(packet: &[u8], mut found: impl FnMut(Range<usize>)) {
    for header in ExtHeaders::new(packet) {
        let Ok(header) = header else { break };
        if !matches!(header.layer, Layer::HopByHop | Layer::DestinationOptions) {
            continue;
        }
        let Some(bytes) = packet.get(header.start..header.start + header.len) else {
            break;
        };
        for option in Options::new(header.layer, bytes) {
            let Ok(option) = option else { break };
            if option.may_change() {
                let data = header.start + option.offset + 2;
                found(data..data + option.data.len());
            }
        }
    }
}

/// Verifies the ICRC at the end of `packet`, which begins at its IP header; UDP begins at offset
/// `udp`.
#[must_use]
pub fn verify(packet: &[u8], udp: usize) -> Verdict {
    let Some((covered, field)) = packet.split_last_chunk::<ICRC_LEN>() else {
        return Verdict::Unchecked;
    };
    let found = u32::from_le_bytes(*field);
    let Some(expected) = compute(covered, udp, Reading::default()) else {
        return Verdict::Unchecked;
    };
    let has_extensions = u8_at(packet, 0) >> 4 == 6 && udp > ipv6::LEN;
    if expected == found {
        return Verdict::Good(has_extensions.then_some(Reading::default()));
    }
    if has_extensions {
        for reading in Reading::ALL {
            if reading != Reading::default() && compute(covered, udp, reading) == Some(found) {
                return Verdict::Good(Some(reading));
            }
        }
    }
    Verdict::Bad { found, expected }
}

/// Writes the ICRC into the last four octets of `packet`, which begins at its IP header.
///
/// Returns false if there is no room for one, or no packet from which to compute it.
pub fn fill(packet: &mut [u8], udp: usize, policy: Policy) -> bool {
    let Some((covered, field)) = packet.split_last_chunk_mut::<ICRC_LEN>() else {
        return false;
    };
    let value = match policy {
        Policy::Zero => Some(0),
        Policy::Compute(reading) => compute(covered, udp, reading),
        Policy::Corrupt => compute(covered, udp, Reading::default()).map(|crc| !crc),
        Policy::Swapped => compute(covered, udp, Reading::default()).map(u32::swap_bytes),
    };
    let Some(value) = value else { return false };
    *field = value.to_le_bytes();
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A CNP that a ConnectX-4 Lx sent, as published with Scapy's RoCE tests.
    const CNP: [u8; 60] = [
        0x45, 0xC2, 0x00, 0x3C, 0x71, 0x8C, 0x40, 0x00, 0x40, 0x11, 0x91, 0x61, 10, 0, 17, 1, 10,
        0, 18, 1, // IPv4
        0x00, 0x00, 0x12, 0xB7, 0x00, 0x28, 0x00, 0x00, // UDP
        0x81, 0x00, 0xFF, 0xFF, 0x40, 0x00, 0x01, 0x18, 0, 0, 0, 0, // BTH
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // reserved
        0x82, 0xFD, 0x00, 0x2A, // ICRC
    ];

    /// A UC SEND-ONLY between two QPs of one host, as published with Scapy's RoCE tests.
    const UC_SEND: [u8; 64] = [
        0x45, 0x01, 0x00, 0x40, 0x04, 0x78, 0x40, 0x00, 0x40, 0x11, 0xB4, 0xD5, 192, 168, 0, 7,
        192, 168, 0, 7, // IPv4
        0xC0, 0x00, 0x12, 0xB7, 0x00, 0x2C, 0xAC, 0xA2, // UDP
        0x24, 0x60, 0xFF, 0xFF, 0x00, 0x00, 0x00, 0xD3, 0x00, 0xCF, 0x17, 0x10, // BTH
        0x46, 0x30, 0x81, 0x8B, 0xE2, 0x89, 0x35, 0xD9, 0x0E, 0x9A, 0x95, 0x50, 0x54, 0x01, 0xBE,
        0x88, 0x5E, 0x50, 0, 0, // payload and pad
        0x78, 0xF3, 0x53, 0xF3, // ICRC
    ];

    #[test]
    fn start_value_covers_eight_octets_of_ones() {
        assert_eq!(crc32fast::hash(&[0xFF; 8]), ONES_LRH);
    }

    #[test]
    fn published_packets_have_the_published_icrc() {
        for packet in [&CNP[..], &UC_SEND] {
            assert_eq!(verify(packet, 20), Verdict::Good(None));
            let mut filled = packet.to_vec();
            for reading in Reading::ALL {
                filled[packet.len() - ICRC_LEN..].fill(0);
                assert!(fill(&mut filled, 20, Policy::Compute(reading)));
                assert_eq!(filled, packet);
            }
        }
    }

    #[test]
    fn a_swapped_icrc_is_recognised() {
        let mut packet = CNP;
        assert!(!verify(&packet, 20).is_swapped());
        assert!(fill(&mut packet, 20, Policy::Swapped));
        assert_eq!(packet[56..], [0x2A, 0x00, 0xFD, 0x82]);
        assert!(verify(&packet, 20).is_swapped());
        assert!(fill(&mut packet, 20, Policy::Corrupt));
        assert!(!verify(&packet, 20).is_swapped());
        assert!(!Verdict::Unchecked.is_swapped());
    }

    #[test]
    fn readings_have_their_common_names() {
        assert_eq!(
            Reading::ALL.map(|reading| reading.to_string()),
            ["B", "A2", "A", "C"]
        );
        for reading in Reading::ALL {
            let lower = reading.id().to_lowercase();
            assert_eq!(Reading::from_name(&lower), Some(reading));
            assert!(!reading.describe().is_empty());
        }
        assert_eq!(Reading::from_name("D"), None);
    }

    #[test]
    fn unusable_payload_length_yields_no_icrc() {
        let mut packet = [0; 40 + 24 + 8 + 12 + 16];
        packet[0] = 0x60;
        packet[6] = 60;
        packet[40..42].copy_from_slice(&[17, 2]);
        for (payload, computable) in [(0, false), (23, false), (24, true), (u16::MAX, true)] {
            packet[4..6].copy_from_slice(&payload.to_be_bytes());
            let icrc = compute(&packet, 64, Reading::Rewritten);
            assert_eq!(icrc.is_some(), computable, "{payload}");
        }
    }

    #[test]
    fn packets_without_ip_and_bth_have_no_icrc() {
        let mut packet = CNP;
        assert_eq!(compute(&packet, 19, Reading::Covered), None);
        assert_eq!(compute(&packet, 41, Reading::Covered), None);
        assert_eq!(compute(&[0x45; 200], 61, Reading::Covered), None);
        assert_eq!(compute(&[0x65; 200], 39, Reading::Covered), None);
        packet[0] = 0x55;
        assert_eq!(compute(&packet, 20, Reading::Covered), None);
        assert_eq!(verify(&packet, 20), Verdict::Unchecked);
    }
}
