//! Congestion notification to the proxy node (draft-xiao-rtgwg-proxy-congestion-notification
//! section 4): a UDP message with a five-tuple, a congestion level and the beginning of the packet
//! that met congestion.
//!
//! The draft's figure was not available; the layout chosen here is defined only in `mod field` and
//! [`FIXED_LEN`]. The option that names the proxy is in `proxy_address.rs`.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |       Source Address of the data packet (32 or 128)           |
//! |       Destination Address of the data packet (32 or 128)      |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  then, from 8 or 32 on
//! |   Protocol    |          Source Port          |Destination Por|   0
//! |t (16)         |Level|             Reserved (21)               |   4
//! |       the data packet from its IP header on, as far as fits   |   8
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! ```
//! use fcn_wire::proxy_cn::{Family, FiveTuple, ProxyCn, ProxyCnRepr};
//!
//! let message = ProxyCnRepr {
//!     five_tuple: FiveTuple {
//!         source: [192, 0, 2, 1].into(),
//!         destination: [192, 0, 2, 2].into(),
//!         protocol: 17,
//!         source_port: 49_152,
//!         destination_port: 4791,
//!     },
//!     level: 3,
//!     reserved: 0,
//!     invoking: &[],
//! };
//! let mut bytes = vec![0; message.buffer_len()];
//! message.emit(&mut bytes)?;
//! assert_eq!(ProxyCnRepr::parse(&ProxyCn::new_checked(&bytes, Family::V4)?), message);
//! # Ok::<(), fcn_wire::Error>(())
//! ```

use crate::error::{Error, Result};
use crate::finding::{Findings, Rule};
use crate::header::{fragment, ipv4, ipv6};
use crate::ipv6_ext::{ExtHeaders, next_header};
use crate::layer::Layer;
use crate::octets::{ipv4_at, ipv6_at, put, put_u24, u8_at, u16_at, u24_at};
use core::cmp::Ordering;
use std::net::IpAddr;

/// Octets between the two addresses and the invoking packet: protocol, two ports, level and
/// reserved.
pub const FIXED_LEN: usize = 8;
/// Maximum length of the IP packet that carries the message over IPv4.
pub const MAX_IPV4_PACKET: usize = 576;
/// Maximum length of the IP packet that carries the message over IPv6 (the minimum MTU).
pub const MAX_IPV6_PACKET: usize = 1280;
/// Largest congestion level (3 bits).
pub const MAX_LEVEL: u8 = 7;

/// Field offsets after the two addresses.
mod field {
    pub const PROTOCOL: usize = 0;
    pub const SOURCE_PORT: usize = 1;
    pub const DESTINATION_PORT: usize = 3;
    /// Level (3 bits) and reserved (21 bits).
    pub const LEVEL: usize = 5;
}

/// IP version of a five-tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Returns the length of an address in octets.
    #[must_use]
    pub const fn address_len(self) -> usize {
        match self {
            Self::V4 => 4,
            Self::V6 => 16,
        }
    }

    /// Returns the number of octets before the invoking packet.
    #[must_use]
    pub const fn header_len(self) -> usize {
        2 * self.address_len() + FIXED_LEN
    }

    /// Returns the family of `address`.
    #[must_use]
    pub const fn from_address(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    /// Returns the maximum length of the IP packet of this version that carries the message.
    #[must_use]
    pub const fn max_packet(self) -> usize {
        match self {
            Self::V4 => MAX_IPV4_PACKET,
            Self::V6 => MAX_IPV6_PACKET,
        }
    }
}

/// Identification of a flow (RFC 6438).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FiveTuple {
    /// Source of the data packet: the sender that has to slow down.
    pub source: IpAddr,
    /// Destination of the data packet: the receiver.
    pub destination: IpAddr,
    /// IP protocol number.
    pub protocol: u8,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
}

impl FiveTuple {
    /// Extracts the five-tuple of the IP packet in `packet`. The ports are 0 if there are none, or
    /// if the packet is a later fragment.
    ///
    /// Returns `None` if the IP header, or anything between it and the ports, is incomplete.
    #[must_use]
    pub fn from_packet(packet: &[u8]) -> Option<Self> {
        let quoted = five_tuple_of(packet)?;
        let (source_port, destination_port) = quoted.ports.unwrap_or_default();
        Some(Self {
            source: quoted.source,
            destination: quoted.destination,
            protocol: quoted.protocol?,
            source_port,
            destination_port,
        })
    }
}

/// Degree to which the invoking packet agrees with the five-tuple's family and addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TupleMatch {
    /// No agreement, or nothing is quoted: the family is the version of the outer header.
    None,
    /// The version agrees, and one of the addresses; or too little is quoted to compare them.
    Version,
    /// The version and both addresses agree.
    Addresses,
}

/// View of the message.
#[derive(Clone, Copy, Debug)]
pub struct ProxyCn<'a> {
    bytes: &'a [u8],
    family: Family,
    tuple_match: TupleMatch,
}

impl<'a> ProxyCn<'a> {
    /// Parses the message in `bytes`, the whole UDP payload; `outer` is the version of the
    /// enclosing IP header.
    ///
    /// The family is detected from the invoking packet at octet 16 or 40: the one whose version
    /// nibble and addresses (as far as quoted) agree better with the five-tuple. If both agree
    /// equally, the family is `outer`.
    ///
    /// # Errors
    /// Fails if `bytes` is too short for the five-tuple and the level.
    pub fn new_checked(bytes: &'a [u8], outer: Family) -> Result<Self> {
        let (v4, v6) = (
            tuple_match(bytes, Family::V4),
            tuple_match(bytes, Family::V6),
        );
        let (family, agreement) = match v4.cmp(&v6) {
            Ordering::Greater => (Family::V4, v4),
            Ordering::Less => (Family::V6, v6),
            Ordering::Equal => (outer, TupleMatch::None),
        };
        if bytes.len() < family.header_len() {
            return Err(Error::short(
                Layer::ProxyCn,
                family.header_len(),
                bytes.len(),
            ));
        }
        Ok(Self {
            bytes,
            family,
            tuple_match: agreement,
        })
    }

    /// Returns the IP version of the five-tuple's addresses.
    #[must_use]
    pub const fn family(&self) -> Family {
        self.family
    }

    /// Returns how well the invoking packet confirms the family and the addresses.
    #[must_use]
    pub const fn tuple_match(&self) -> TupleMatch {
        self.tuple_match
    }

    fn address(&self, at: usize) -> IpAddr {
        match self.family {
            Family::V4 => ipv4_at(self.bytes, at).into(),
            Family::V6 => ipv6_at(self.bytes, at).into(),
        }
    }

    const fn fixed(&self) -> usize {
        2 * self.family.address_len()
    }

    /// Returns the flow that has to slow down.
    #[must_use]
    pub fn five_tuple(&self) -> FiveTuple {
        let fixed = self.fixed();
        FiveTuple {
            source: self.address(0),
            destination: self.address(self.family.address_len()),
            protocol: u8_at(self.bytes, fixed + field::PROTOCOL),
            source_port: u16_at(self.bytes, fixed + field::SOURCE_PORT),
            destination_port: u16_at(self.bytes, fixed + field::DESTINATION_PORT),
        }
    }

    /// Returns the offset of the octet that holds the level.
    #[must_use]
    pub const fn level_at(&self) -> usize {
        self.fixed() + field::LEVEL
    }

    /// Returns the congestion level: 0 lowest to 7 highest.
    #[must_use]
    pub fn level(&self) -> u8 {
        u8_at(self.bytes, self.level_at()) >> 5
    }

    /// Returns the 21 reserved bits.
    #[must_use]
    pub fn reserved(&self) -> u32 {
        u24_at(self.bytes, self.level_at()) & 0x001F_FFFF
    }

    /// Returns the offset of the invoking packet.
    #[must_use]
    pub const fn invoking_at(&self) -> usize {
        self.family.header_len()
    }

    /// Returns the quoted part of the packet that met congestion, starting with its IP header.
    #[must_use]
    pub fn invoking_packet(&self) -> &'a [u8] {
        self.bytes.get(self.invoking_at()..).unwrap_or_default()
    }

    /// Performs the part of [`check`](Self::check) that also applies to a message whose end was not
    /// captured.
    pub fn check_header(&self, outer: Family, outer_len: usize, findings: &mut Findings) {
        if self.reserved() != 0 {
            findings.push(Rule::ProxyCnReserved, self.level_at(), 3);
        }
        if outer_len > outer.max_packet() {
            findings.push(Rule::ProxyCnTooLong, 0, self.bytes.len());
        }
    }

    /// Adds the rules that the message breaks, with offsets from its start. `outer_len` is the
    /// length in octets of the enclosing IP packet, and `outer` that packet's version.
    pub fn check(&self, outer: Family, outer_len: usize, findings: &mut Findings) {
        self.check_header(outer, outer_len, findings);
        let room = outer.max_packet();
        let (at, invoking) = (self.invoking_at(), self.invoking_packet());
        if invoking.is_empty() {
            findings.push(Rule::ProxyCnInvokingNone, at, 0);
            return;
        }
        if self.tuple_match == TupleMatch::None {
            findings.push(Rule::ProxyCnFamily, at, 1);
        } else if five_tuple_of(invoking).is_none() {
            // Without the whole IP header nothing confirms the addresses: malformed, not a
            // notification.
            findings.push(Rule::ProxyCnMalformed, at, invoking.len());
        }
        if !tuple_agrees(&self.five_tuple(), invoking) {
            findings.push(Rule::ProxyCnTuple, 0, at);
        }
        if declared_len(invoking).is_some_and(|len| len > invoking.len()) && outer_len < room {
            findings.push(Rule::ProxyCnInvokingShort, at, invoking.len());
        }
    }
}

/// Returns how well the invoking packet agrees with the five-tuple if `bytes` are parsed as
/// `family`.
fn tuple_match(bytes: &[u8], family: Family) -> TupleMatch {
    let (version, source_at) = match family {
        Family::V4 => (4, ipv4::SOURCE),
        Family::V6 => (6, ipv6::SOURCE),
    };
    let len = 2 * family.address_len();
    let invoking = bytes.get(family.header_len()..).unwrap_or_default();
    if invoking.first().is_none_or(|octet| octet >> 4 != version) {
        return TupleMatch::None;
    }
    match invoking.get(source_at..source_at + len) {
        None => TupleMatch::Version,
        Some(addresses) if bytes.starts_with(addresses) => TupleMatch::Addresses,
        Some(addresses) => {
            let (source, destination) = addresses.split_at(len / 2);
            let agrees = bytes.starts_with(source) || bytes[len / 2..len] == *destination;
            if agrees {
                TupleMatch::Version
            } else {
                TupleMatch::None
            }
        }
    }
}

/// Returns the length stated in the IP header of `packet`, or that of the header alone if the
/// length field is not quoted.
fn declared_len(packet: &[u8]) -> Option<usize> {
    match packet.first()? >> 4 {
        4 => Some(usize::from(u16_at(packet, ipv4::LENGTH)).max(ipv4::LEN)),
        6 => Some(ipv6::LEN + usize::from(u16_at(packet, ipv6::LENGTH))),
        _ => None,
    }
}

/// Returns true if the quoted part of `packet` agrees with `tuple`; fields that are not quoted
/// cannot disagree.
fn tuple_agrees(tuple: &FiveTuple, packet: &[u8]) -> bool {
    match five_tuple_of(packet) {
        Some(quoted) => {
            let ports = quoted
                .ports
                .is_none_or(|ports| ports == (tuple.source_port, tuple.destination_port));
            let protocol = quoted
                .protocol
                .is_none_or(|protocol| protocol == tuple.protocol);
            (quoted.source, quoted.destination) == (tuple.source, tuple.destination)
                && protocol
                && ports
        }
        // No whole IP header: only the version can be compared.
        None => matches!(
            (
                packet.first().map(|octet| octet >> 4),
                Family::from_address(tuple.source)
            ),
            (Some(4), Family::V4) | (Some(6), Family::V6) | (None, _)
        ),
    }
}

/// The part of a five-tuple that a quoted packet contains.
struct QuotedTuple {
    source: IpAddr,
    destination: IpAddr,
    protocol: Option<u8>,
    ports: Option<(u16, u16)>,
}

fn five_tuple_of(packet: &[u8]) -> Option<QuotedTuple> {
    let (source, destination, protocol, upper): (IpAddr, IpAddr, _, _) = match packet.first()? >> 4
    {
        4 if packet.len() >= ipv4::LEN => {
            let later_fragment = u16_at(packet, ipv4::FRAGMENT) & 0x1FFF != 0;
            let upper = (!later_fragment).then(|| usize::from(packet[0] & 0x0F) * 4);
            (
                ipv4_at(packet, ipv4::SOURCE).into(),
                ipv4_at(packet, ipv4::DESTINATION).into(),
                Some(u8_at(packet, ipv4::PROTOCOL)),
                upper,
            )
        }
        6 if packet.len() >= ipv6::LEN => {
            let mut chain = ExtHeaders::new(packet);
            let whole = chain.by_ref().all(|header| {
                header.is_ok_and(|h| {
                    h.layer != Layer::Fragment
                        || u16_at(packet, h.start + fragment::OFFSET) >> 3 == 0
                })
            });
            let upper = whole.then(|| chain.upper_start());
            let protocol = whole.then(|| chain.upper_protocol());
            (
                ipv6_at(packet, ipv6::SOURCE).into(),
                ipv6_at(packet, ipv6::DESTINATION).into(),
                protocol,
                upper,
            )
        }
        _ => return None,
    };
    let has_ports = matches!(protocol, Some(next_header::UDP | next_header::TCP));
    let ports = upper
        .filter(|at| has_ports && packet.len() >= at + 4)
        .map(|at| (u16_at(packet, at), u16_at(packet, at + 2)));
    Some(QuotedTuple {
        source,
        destination,
        protocol,
        ports,
    })
}

/// Values of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyCnRepr<'a> {
    /// The flow; both addresses are of the same family.
    pub five_tuple: FiveTuple,
    /// Congestion level, 0 to 7.
    pub level: u8,
    /// 21 reserved bits, 0 in a well-formed message.
    pub reserved: u32,
    /// Part of the invoking packet to quote; see [`invoking_room`].
    pub invoking: &'a [u8],
}

/// Returns the maximum number of octets to quote of the invoking packet. The message is carried in
/// an IP packet of version `outer` whose headers up to the UDP payload take `overhead` octets, and
/// its five-tuple is of `family`.
#[must_use]
pub const fn invoking_room(outer: Family, overhead: usize, family: Family) -> usize {
    outer
        .max_packet()
        .saturating_sub(overhead + family.header_len())
}

impl<'a> ProxyCnRepr<'a> {
    /// Returns the values of `message`.
    #[must_use]
    pub fn parse(message: &ProxyCn<'a>) -> Self {
        Self {
            five_tuple: message.five_tuple(),
            level: message.level(),
            reserved: message.reserved(),
            invoking: message.invoking_packet(),
        }
    }

    /// Returns the number of octets written by [`emit`](Self::emit).
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        Family::from_address(self.five_tuple.source).header_len() + self.invoking.len()
    }

    /// Writes the message; values wider than their field are truncated.
    ///
    /// # Errors
    /// Fails if `out` is too short or the two addresses are of different families.
    pub fn emit(&self, out: &mut [u8]) -> Result<()> {
        if out.len() < self.buffer_len() {
            return Err(Error::buffer(Layer::ProxyCn, self.buffer_len(), out.len()));
        }
        let tuple = &self.five_tuple;
        let fixed = match (tuple.source, tuple.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                put(out, 0, &source.octets());
                put(out, 4, &destination.octets());
                8
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                put(out, 0, &source.octets());
                put(out, 16, &destination.octets());
                32
            }
            (_, destination) => {
                let found = if destination.is_ipv4() { 4 } else { 6 };
                let (field, expected) = ("address family of the destination", "that of the source");
                return Err(Error::value(Layer::ProxyCn, 0, field, found, expected));
            }
        };
        let out = out.get_mut(fixed..).unwrap_or_default();
        put(out, field::PROTOCOL, &[tuple.protocol]);
        put(out, field::SOURCE_PORT, &tuple.source_port.to_be_bytes());
        put(
            out,
            field::DESTINATION_PORT,
            &tuple.destination_port.to_be_bytes(),
        );
        let level = u32::from(self.level & MAX_LEVEL) << 21 | self.reserved & 0x001F_FFFF;
        put_u24(out, field::LEVEL, level);
        put(out, FIXED_LEN, self.invoking);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Builds an IPv4 or IPv6 UDP header chain as a congestion point would quote it.
    fn invoking(family: Family, source: u8, ports: (u16, u16)) -> Vec<u8> {
        let mut packet = match family {
            Family::V4 => {
                let mut p = vec![0x45, 0, 0, 60, 0, 0, 0, 0, 64, 17, 0, 0];
                p.extend([10, 0, 0, source, 10, 0, 0, 99]);
                p
            }
            Family::V6 => {
                let mut p = vec![0x60, 0, 0, 0, 0, 40, 17, 64];
                p.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, source]);
                p.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 99]);
                p
            }
        };
        packet.extend(ports.0.to_be_bytes());
        packet.extend(ports.1.to_be_bytes());
        packet.resize(packet.len() + 36, 0);
        packet
    }

    fn tuple(family: Family) -> FiveTuple {
        let packet = invoking(family, 1, (49152, 4791));
        let quoted = five_tuple_of(&packet).unwrap();
        FiveTuple {
            source: quoted.source,
            destination: quoted.destination,
            protocol: 17,
            source_port: 49152,
            destination_port: 4791,
        }
    }

    fn emit(repr: &ProxyCnRepr<'_>) -> Vec<u8> {
        let mut out = vec![0; repr.buffer_len()];
        repr.emit(&mut out).unwrap();
        out
    }

    fn rules(bytes: &[u8], outer: Family, outer_len: usize) -> Vec<Rule> {
        let mut findings = Findings::new();
        ProxyCn::new_checked(bytes, outer)
            .unwrap()
            .check(outer, outer_len, &mut findings);
        findings.into_iter().map(|f| f.rule).collect()
    }

    #[test]
    fn ports_are_extracted_if_present() {
        let mut packet = [0; 24];
        packet[..4].copy_from_slice(&[0x45, 0, 0, 24]);
        packet[9] = 6;
        packet[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        packet[20..24].copy_from_slice(&[0x9C, 0x40, 0x01, 0xBB]);
        let tuple = FiveTuple {
            source: [10, 0, 0, 1].into(),
            destination: [10, 0, 0, 2].into(),
            protocol: 6,
            source_port: 40_000,
            destination_port: 443,
        };
        assert_eq!(FiveTuple::from_packet(&packet), Some(tuple));
        let without = FiveTuple {
            source_port: 0,
            destination_port: 0,
            ..tuple
        };
        assert_eq!(FiveTuple::from_packet(&packet[..23]), Some(without));
        packet[7] = 1;
        assert_eq!(
            FiveTuple::from_packet(&packet),
            Some(without),
            "a later fragment"
        );
        assert_eq!(FiveTuple::from_packet(&packet[..19]), None);
        assert_eq!(FiveTuple::from_packet(&[]), None);
    }

    #[test]
    fn families_are_distinguished_under_either_outer_header() {
        for family in [Family::V4, Family::V6] {
            for outer in [Family::V4, Family::V6] {
                let packet = invoking(family, 1, (49152, 4791));
                let bytes = emit(&ProxyCnRepr {
                    five_tuple: tuple(family),
                    level: 5,
                    reserved: 0,
                    invoking: &packet,
                });
                let message = ProxyCn::new_checked(&bytes, outer).unwrap();
                assert_eq!((message.family(), message.level()), (family, 5));
                assert_eq!(
                    (message.five_tuple(), message.invoking_packet()),
                    (tuple(family), &packet[..])
                );
                assert_eq!(rules(&bytes, outer, bytes.len() + 28), []);
            }
        }
    }

    #[test]
    fn the_rules_are_found() {
        let packet = invoking(Family::V4, 1, (49152, 4791));
        let good = ProxyCnRepr {
            five_tuple: tuple(Family::V4),
            level: 0,
            reserved: 0,
            invoking: &packet,
        };
        let bytes = emit(&ProxyCnRepr {
            reserved: 1,
            ..good
        });
        assert_eq!(rules(&bytes, Family::V4, 100), [Rule::ProxyCnReserved]);
        assert_eq!(rules(&emit(&good), Family::V4, 577), [Rule::ProxyCnTooLong]);
        let none = emit(&ProxyCnRepr {
            invoking: &[],
            ..good
        });
        assert_eq!(rules(&none, Family::V4, 44), [Rule::ProxyCnInvokingNone]);
        let short = emit(&ProxyCnRepr {
            invoking: &packet[..30],
            ..good
        });
        assert_eq!(rules(&short, Family::V4, 74), [Rule::ProxyCnInvokingShort]);
        assert_eq!(rules(&short, Family::V4, 576), []);
        let other = invoking(Family::V4, 1, (49153, 4791));
        let differs = emit(&ProxyCnRepr {
            invoking: &other,
            ..good
        });
        assert_eq!(rules(&differs, Family::V4, 104), [Rule::ProxyCnTuple]);
        let other = invoking(Family::V4, 2, (49152, 4791));
        let differs = emit(&ProxyCnRepr {
            invoking: &other,
            ..good
        });
        assert_eq!(rules(&differs, Family::V4, 104), [Rule::ProxyCnTuple]);
        let mut other = other;
        other[16..20].fill(0xEE);
        let differs = emit(&ProxyCnRepr {
            invoking: &other,
            ..good
        });
        assert_eq!(
            rules(&differs, Family::V4, 104),
            [Rule::ProxyCnFamily, Rule::ProxyCnTuple]
        );
    }

    #[test]
    fn mixed_families_are_refused() {
        let mut five_tuple = tuple(Family::V4);
        five_tuple.destination = tuple(Family::V6).destination;
        let repr = ProxyCnRepr {
            five_tuple,
            level: 0,
            reserved: 0,
            invoking: &[],
        };
        assert!(repr.emit(&mut [0; 64]).is_err());
    }

    proptest! {
        #[test]
        fn parsing_any_bytes_does_not_panic(v6: bool, bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let outer = if v6 { Family::V6 } else { Family::V4 };
            if let Ok(message) = ProxyCn::new_checked(&bytes, outer) {
                let mut findings = Findings::new();
                message.check(outer, bytes.len() + 48, &mut findings);
                let repr = ProxyCnRepr::parse(&message);
                prop_assert_eq!(&emit(&repr), &bytes);
                let again = emit(&repr);
                prop_assert_eq!(ProxyCnRepr::parse(&ProxyCn::new_checked(&again, outer).unwrap()), repr);
            } else {
                prop_assert!(bytes.len() < Family::V6.header_len());
            }
        }
    }
}
