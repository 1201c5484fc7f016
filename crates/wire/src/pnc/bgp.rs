//! PNC in BGP: the PNC characteristic in path attribute 39, Next Hop Dependent Characteristics (NHC,
//! draft-ietf-idr-nhc), of UPDATE messages, read and written.
//!
//! Read is the payload of one TCP segment. Messages that begin before it or end behind it are passed over: putting a
//! stream together is somebody else's business, as is the IP and TCP header. What the session's OPEN messages told is
//! given as a [`Session`]: without it path identifiers are guessed, and a BGP Identifier characteristic is believed.

use super::tlv::Writer;
use super::{Advertisement, Carrier, Origin, Prefix, Report};
use crate::error::{Error, Result};
use crate::finding::{Findings, Rule};
use crate::layer::Layer;
use crate::octets::{array, ipv4_at, ipv6_at, u8_at, u16_at, u32_at};
use core::ops::Range;
use std::net::{IpAddr, Ipv4Addr};

/// TCP port of BGP.
pub const PORT: u16 = 179;
/// Octets of a message header: marker, length, type.
pub const HEADER: usize = 19;
/// Message type of an OPEN.
pub const OPEN: u8 = 1;
/// Message type of an UPDATE.
pub const UPDATE: u8 = 2;
/// Address family IPv4.
pub const AFI_IPV4: u16 = 1;
/// Address family IPv6.
pub const AFI_IPV6: u16 = 2;
/// Subsequent address family unicast.
pub const SAFI_UNICAST: u8 = 1;

/// Path attribute types used here.
pub mod attribute {
    /// ORIGIN.
    pub const ORIGIN: u8 = 1;
    /// AS_PATH.
    pub const AS_PATH: u8 = 2;
    /// NEXT_HOP.
    pub const NEXT_HOP: u8 = 3;
    /// LOCAL_PREF.
    pub const LOCAL_PREF: u8 = 5;
    /// MP_REACH_NLRI (RFC 4760).
    pub const MP_REACH: u8 = 14;
    /// Next Hop Dependent Characteristics (draft-ietf-idr-nhc).
    pub const NHC: u8 = 39;
    /// Attribute flag: optional.
    pub const FLAG_OPTIONAL: u8 = 0x80;
    /// Attribute flag: transitive.
    pub const FLAG_TRANSITIVE: u8 = 0x40;
    /// Attribute flag: the length has two octets.
    pub const FLAG_EXTENDED: u8 = 0x10;
}

/// Code of the BGP Identifier characteristic (draft-ietf-idr-nhc section 3): BGP Identifier and AS number of whom the next
/// hop belongs to.
pub const BGP_IDENTIFIER: u16 = 3;

/// The name of an assigned characteristic, where it is known here.
#[must_use]
pub const fn characteristic_name(code: u16) -> Option<&'static str> {
    match code {
        1 => Some("Entropy Label (ELCv3)"),
        2 => Some("Next-next Hop Nodes (NNHN)"),
        BGP_IDENTIFIER => Some("BGP Identifier (BGPID)"),
        _ => None,
    }
}

const LAYER: Layer = Layer::Bgp;
const MARKER: usize = 16;
/// Longest message without RFC 8654; OPEN and KEEPALIVE never exceed it.
const LONGEST_PLAIN: usize = 4096;
/// Octets before an NHC's next hop: AFI, SAFI, its length.
const NHC_HEAD: usize = 4;
/// Octets before a characteristic's value: code, length.
const CHARACTERISTIC_HEAD: usize = 4;

/// Octets of 0xFF at the beginning of `bytes`, at most a marker's.
fn ones(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take(MARKER)
        .take_while(|octet| **octet == 0xFF)
        .count()
}

/// What a message header at the beginning of `bytes` says, if it can be one: length and type.
fn header(bytes: &[u8]) -> Option<(usize, u8)> {
    if bytes.len() < HEADER || ones(bytes) < MARKER {
        return None;
    }
    let (len, kind) = (usize::from(u16_at(bytes, MARKER)), u8_at(bytes, MARKER + 2));
    let most = match kind {
        1 => LONGEST_PLAIN,
        2 | 3 | 5 => 0xFFFF,
        4 => HEADER,
        _ => return None,
    };
    (HEADER..=most).contains(&len).then_some((len, kind))
}

/// One whole BGP message in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Octets from the start of the segment to the marker.
    pub offset: usize,
    /// Message type: 1 OPEN, 2 UPDATE, 3 NOTIFICATION, 4 KEEPALIVE, 5 ROUTE-REFRESH.
    pub kind: u8,
    /// The message from its marker on.
    pub bytes: &'a [u8],
}

/// The BGP messages that lie wholly within a TCP segment's payload.
#[derive(Clone, Debug)]
pub struct Messages<'a> {
    segment: &'a [u8],
    at: usize,
    /// Whether a message is known to begin at `at`.
    aligned: bool,
}

impl<'a> Messages<'a> {
    /// Looks for messages in `segment`, the payload of one TCP segment.
    #[must_use]
    pub fn new(segment: &'a [u8]) -> Self {
        Self {
            segment,
            at: 0,
            aligned: ones(segment) == MARKER,
        }
    }

    /// Where in `rest` the next message begins; its length where none does.
    ///
    /// Sixteen octets of ones can occur inside a message, so that a length and type which make sense are asked for,
    /// and behind the message another marker (as far as the segment goes).
    fn resync(rest: &[u8]) -> usize {
        let mut at = 0;
        while let Some(from) = rest.get(at..)
            && from.len() >= HEADER
        {
            let run = ones(from);
            if run < MARKER {
                at += run + 1;
                continue;
            }
            if let Some((len, _)) = header(from) {
                let behind = from.get(len..).unwrap_or(&[]);
                if ones(behind) == behind.len().min(MARKER) {
                    return at;
                }
            }
            at += 1;
        }
        rest.len()
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let offset = self.at;
            let rest = self.segment.get(offset..).unwrap_or(&[]);
            if rest.is_empty()
                || (self.aligned && rest.len() < HEADER && ones(rest) >= rest.len().min(MARKER))
            {
                // The end, or the beginning of a header that the next segment continues.
                self.at = self.segment.len();
                return None;
            }
            if !self.aligned {
                self.at = offset + Self::resync(rest);
                self.aligned = true;
                continue;
            }
            let Some((len, kind)) = header(rest) else {
                self.at = offset + 1;
                self.aligned = false;
                continue;
            };
            self.at = (offset + len).min(self.segment.len());
            // `None`: it ends in a later segment.
            let bytes = rest.get(..len)?;
            return Some(Message {
                offset,
                kind,
                bytes,
            });
        }
    }
}

/// One path attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// Octets from the start of the segment to the attribute flags.
    pub offset: usize,
    /// Attribute flags.
    pub flags: u8,
    /// Attribute type.
    pub kind: u8,
    /// Octets from the start of the segment to the value.
    pub value_offset: usize,
    /// The value.
    pub value: &'a [u8],
}

/// The path attributes of an UPDATE. Ends behind the first that runs past them.
#[derive(Clone, Debug)]
pub struct Attributes<'a> {
    bytes: &'a [u8],
    base: usize,
    at: usize,
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<Attribute<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        let (offset, bytes) = (self.at, self.bytes);
        let rest = bytes.get(offset..).filter(|rest| !rest.is_empty())?;
        self.at = bytes.len();
        let flags = u8_at(rest, 0);
        let wide = flags & attribute::FLAG_EXTENDED != 0;
        let head = if wide { 4 } else { 3 };
        if rest.len() < head {
            let e = Error::short(LAYER, head, rest.len()).at(self.base + offset);
            return Some(Err(e));
        }
        let len = if wide {
            usize::from(u16_at(rest, 2))
        } else {
            usize::from(u8_at(rest, 2))
        };
        let Some(value) = rest.get(head..head + len) else {
            let at = self.base + offset + 2;
            let room = rest.len() - head;
            return Some(Err(Error::length(
                LAYER,
                at,
                "attribute length",
                len,
                0,
                room,
            )));
        };
        self.at = offset + head + len;
        Some(Ok(Attribute {
            offset: self.base + offset,
            flags,
            kind: u8_at(rest, 1),
            value_offset: self.base + offset + head,
            value,
        }))
    }
}

/// An UPDATE message whose three parts fit into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update<'a> {
    /// Octets from the start of the segment to the marker.
    pub offset: usize,
    bytes: &'a [u8],
    attributes: usize,
    nlri: usize,
}

impl<'a> Update<'a> {
    /// Divides an UPDATE into its parts.
    ///
    /// # Errors
    /// Not an UPDATE, or a length that does not fit; offsets count from the start of the segment.
    pub fn new(message: &Message<'a>) -> Result<Self> {
        let Message {
            offset,
            kind,
            bytes,
        } = *message;
        if kind != UPDATE {
            let at = offset + MARKER + 2;
            return Err(Error::value(LAYER, at, "Type", u64::from(kind), "2"));
        }
        let least = HEADER + 4;
        if bytes.len() < least {
            return Err(Error::length(
                LAYER,
                offset + MARKER,
                "Length",
                bytes.len(),
                least,
                0xFFFF,
            ));
        }
        let withdrawn = usize::from(u16_at(bytes, HEADER));
        let room = bytes.len() - least;
        if withdrawn > room {
            return Err(Error::length(
                LAYER,
                offset + HEADER,
                "Withdrawn Routes Length",
                withdrawn,
                0,
                room,
            ));
        }
        let length_at = HEADER + 2 + withdrawn;
        let total = usize::from(u16_at(bytes, length_at));
        let room = room - withdrawn;
        if total > room {
            return Err(Error::length(
                LAYER,
                offset + length_at,
                "Total Path Attribute Length",
                total,
                0,
                room,
            ));
        }
        Ok(Self {
            offset,
            bytes,
            attributes: length_at + 2,
            nlri: length_at + 2 + total,
        })
    }

    /// The path attributes, in their order.
    #[must_use]
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes {
            bytes: self
                .bytes
                .get(self.attributes..self.nlri)
                .unwrap_or_default(),
            base: self.offset + self.attributes,
            at: 0,
        }
    }

    /// Whether there is path attribute 39, be it one that runs past the attributes.
    fn has_nhc(&self) -> bool {
        self.attributes().any(|found| match found {
            Ok(attribute) => attribute.kind == attribute::NHC,
            Err(_) => false,
        }) || self.overrun() == Some(attribute::NHC)
    }

    /// Type of the attribute that runs past the others' end.
    fn overrun(&self) -> Option<u8> {
        let mut attributes = self.attributes();
        loop {
            let at = attributes.at;
            if attributes.next()?.is_err() {
                return attributes.bytes.get(at + 1).copied();
            }
        }
    }

    /// The Next Hop Dependent Characteristics, if the UPDATE has that attribute: the first one, as RFC 7606 section 3 says.
    ///
    /// # Errors
    /// The attribute is malformed, and to be discarded alone.
    pub fn nhc(&self) -> Option<Result<Nhc<'a>>> {
        self.attributes()
            .filter_map(Result::ok)
            .find(|a| a.kind == attribute::NHC)
            .map(|a| Nhc::new(&a))
    }
}

/// What an OPEN message tells that reading UPDATEs takes (RFC 4271 section 4.2, RFC 5492).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// BGP Identifier.
    pub identifier: Ipv4Addr,
    /// AS number: that of the four-octet capability (RFC 6793) where there is one.
    pub as_number: u32,
    /// Send/Receive of the ADD-PATH capability (RFC 7911 section 4) for IPv4 and IPv6 unicast: 1 receives, 2 sends, 3 both.
    pub add_path: [u8; 2],
}

impl Open {
    const RECEIVES: u8 = 1;
    const SENDS: u8 = 2;

    /// Reads an OPEN message as far as its parameters are whole. `None`: another message, or one without a whole head.
    #[must_use]
    pub fn read(message: &Message<'_>) -> Option<Self> {
        const PARAMETERS: usize = HEADER + 10;
        const CAPABILITIES: u8 = 2;
        /// Length and type that say: lengths of two octets follow (RFC 9072 section 2).
        const EXTENDED: [u8; 2] = [255, 255];
        let bytes = message.bytes;
        if message.kind != OPEN || bytes.len() < PARAMETERS {
            return None;
        }
        let mut open = Self {
            identifier: ipv4_at(bytes, HEADER + 5),
            as_number: u32::from(u16_at(bytes, HEADER + 1)),
            add_path: [0; 2],
        };
        let wide = bytes
            .get(PARAMETERS - 1..)
            .is_some_and(|b| b.starts_with(&EXTENDED));
        let head = if wide { 3 } else { 2 };
        let mut rest = bytes
            .get(PARAMETERS + if wide { 3 } else { 0 }..)
            .unwrap_or_default();
        while rest.len() >= head {
            let len = if wide {
                usize::from(u16_at(rest, 1))
            } else {
                usize::from(u8_at(rest, 1))
            };
            let Some(value) = rest.get(head..head + len) else {
                break;
            };
            if u8_at(rest, 0) == CAPABILITIES {
                open.capabilities(value);
            }
            rest = rest.get(head + len..).unwrap_or_default();
        }
        Some(open)
    }

    fn capabilities(&mut self, mut rest: &[u8]) {
        const FOUR_OCTET_AS: u8 = 65;
        const ADD_PATH: u8 = 69;
        while let Some(value) = rest.get(2..2 + usize::from(u8_at(rest, 1))) {
            match u8_at(rest, 0) {
                FOUR_OCTET_AS if value.len() == 4 => self.as_number = u32_at(value, 0),
                ADD_PATH => {
                    for one in value.chunks_exact(4) {
                        if let Some(family) = family(u16_at(one, 0), u8_at(one, 2))
                            && let Some(place) = self.add_path.get_mut(family)
                        {
                            *place = u8_at(one, 3);
                        }
                    }
                }
                _ => {}
            }
            rest = rest.get(2 + value.len()..).unwrap_or_default();
        }
    }
}

/// Place of a family whose prefixes are read, among two: IPv4 and IPv6 unicast.
const fn family(afi: u16, safi: u8) -> Option<usize> {
    match (afi, safi) {
        (AFI_IPV4, SAFI_UNICAST) => Some(0),
        (AFI_IPV6, SAFI_UNICAST) => Some(1),
        _ => None,
    }
}

/// What is known of one direction of a session by the OPEN messages of both sides. By default: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// BGP Identifier and AS number of who sends the UPDATEs.
    pub speaker: Option<(Ipv4Addr, u32)>,
    /// Whether prefixes of IPv4 and IPv6 unicast come with path identifiers.
    pub path_ids: [Option<bool>; 2],
}

impl Session {
    /// Of what `speaker` sends to `listener`; `None` where its OPEN was not seen.
    #[must_use]
    pub fn between(speaker: Option<&Open>, listener: Option<&Open>) -> Self {
        // RFC 7911 section 4: one side sends, and the other one is able to receive.
        let path_ids = |family: usize| {
            let has = |open: &Open, bit| open.add_path.get(family).is_some_and(|v| v & bit != 0);
            let sends = speaker.map(|open| has(open, Open::SENDS));
            let receives = listener.map(|open| has(open, Open::RECEIVES));
            match (sends, receives) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            }
        };
        Self {
            speaker: speaker.map(|open| (open.identifier, open.as_number)),
            path_ids: [path_ids(0), path_ids(1)],
        }
    }
}

/// Whether an UPDATE in `segment` has path attribute 39, readable or not.
pub(super) fn has_attribute_39(segment: &[u8]) -> bool {
    Messages::new(segment)
        .filter_map(|message| Update::new(&message).ok())
        .any(|update| update.has_nhc())
}

/// One Next Hop Dependent Characteristics attribute (draft-ietf-idr-nhc section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nhc<'a> {
    /// Address family of the next hop's route.
    pub afi: u16,
    /// Subsequent address family.
    pub safi: u8,
    /// The next hop's octets, as in MP_REACH_NLRI.
    pub next_hop: &'a [u8],
    /// Octets from the start of the segment to the AFI.
    pub offset: usize,
    value: &'a [u8],
}

impl<'a> Nhc<'a> {
    /// Reads the attribute's value, and sees that every characteristic is whole.
    ///
    /// # Errors
    /// A length does not fit; offsets count from the start of the segment.
    pub fn new(attribute: &Attribute<'a>) -> Result<Self> {
        let (value, offset) = (attribute.value, attribute.value_offset);
        if value.len() < NHC_HEAD {
            return Err(Error::short(LAYER, NHC_HEAD, value.len()).at(offset));
        }
        let len = usize::from(u8_at(value, 3));
        let Some(next_hop) = value.get(NHC_HEAD..NHC_HEAD + len) else {
            return Err(Error::length(
                LAYER,
                offset + 3,
                "Next Hop Length",
                len,
                0,
                value.len() - NHC_HEAD,
            ));
        };
        let nhc = Self {
            afi: u16_at(value, 0),
            safi: u8_at(value, 2),
            next_hop,
            offset,
            value,
        };
        let mut rest = nhc.characteristics();
        for one in &mut rest {
            one?;
        }
        Ok(nhc)
    }

    /// Octets from the start of the segment to the first characteristic.
    #[must_use]
    pub const fn characteristics_offset(&self) -> usize {
        self.offset + NHC_HEAD + self.next_hop.len()
    }

    /// The characteristics, in their order.
    #[must_use]
    pub fn characteristics(&self) -> Characteristics<'a> {
        let from = NHC_HEAD + self.next_hop.len();
        Characteristics {
            bytes: self.value.get(from..).unwrap_or_default(),
            base: self.offset + from,
            at: 0,
        }
    }

    /// Whether the header's next hop is the route's: the same octets, or the same global address. A link-local address
    /// alone is somebody's on every link: it takes the BGP Identifier characteristic too, which has to name the `speaker`
    /// (BGP Identifier and AS number) where that is known (draft-ietf-idr-nhc sections 2.3 and 3.3).
    #[must_use]
    pub fn applies_to(&self, next_hop: &[u8], speaker: Option<(Ipv4Addr, u32)>) -> bool {
        let same = self.next_hop == next_hop
            || matches!((address(self.next_hop), address(next_hop)), (Some(a), Some(b)) if a == b);
        same && (!is_link_local_alone(next_hop)
            || self
                .owner()
                .is_some_and(|owner| speaker.is_none_or(|speaker| speaker == owner)))
    }

    /// BGP Identifier and AS number in the first BGP Identifier characteristic, if that can be read.
    #[must_use]
    pub fn owner(&self) -> Option<(Ipv4Addr, u32)> {
        let mut all = self.characteristics().filter_map(Result::ok);
        let value = all.find(|one| one.code == BGP_IDENTIFIER)?.value;
        let owner = (ipv4_at(value, 0), u32_at(value, 4));
        (value.len() == 8 && !owner.0.is_unspecified()).then_some(owner)
    }

    /// Whether it has a characteristic of that code.
    #[must_use]
    pub fn has(&self, code: u16) -> bool {
        let mut all = self.characteristics().filter_map(Result::ok);
        all.any(|one| one.code == code)
    }
}

/// Whether a next-hop field has a link-local address and no global one.
fn is_link_local_alone(next_hop: &[u8]) -> bool {
    match address(next_hop) {
        Some(IpAddr::V6(v6)) => {
            v6.is_unicast_link_local() || (v6.is_unspecified() && matches!(next_hop.len(), 32 | 48))
        }
        _ => false,
    }
}

/// The address in a next-hop field: IPv4, IPv6, IPv6 with a link-local one behind it, each also behind a route
/// distinguisher of 8 octets (RFC 4364, RFC 4659).
fn address(next_hop: &[u8]) -> Option<IpAddr> {
    match next_hop.len() {
        4 => Some(ipv4_at(next_hop, 0).into()),
        12 => Some(ipv4_at(next_hop, 8).into()),
        16 | 32 => Some(ipv6_at(next_hop, 0).into()),
        24 | 48 => Some(ipv6_at(next_hop, 8).into()),
        _ => None,
    }
}

/// One characteristic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Characteristic<'a> {
    /// Characteristic code.
    pub code: u16,
    /// Octets from the start of the segment to the code.
    pub offset: usize,
    /// The value.
    pub value: &'a [u8],
}

/// The characteristics of an NHC attribute. Ends behind the first that runs past it.
#[derive(Clone, Debug)]
pub struct Characteristics<'a> {
    bytes: &'a [u8],
    base: usize,
    at: usize,
}

impl<'a> Iterator for Characteristics<'a> {
    type Item = Result<Characteristic<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        let offset = self.at;
        let rest = self.bytes.get(offset..).filter(|rest| !rest.is_empty())?;
        self.at = self.bytes.len();
        if rest.len() < CHARACTERISTIC_HEAD {
            let e = Error::short(LAYER, CHARACTERISTIC_HEAD, rest.len());
            return Some(Err(e.at(self.base + offset)));
        }
        let len = usize::from(u16_at(rest, 2));
        let Some(value) = rest.get(CHARACTERISTIC_HEAD..CHARACTERISTIC_HEAD + len) else {
            return Some(Err(Error::length(
                LAYER,
                self.base + offset + 2,
                "Characteristic Length",
                len,
                0,
                rest.len() - CHARACTERISTIC_HEAD,
            )));
        };
        self.at = offset + CHARACTERISTIC_HEAD + len;
        Some(Ok(Characteristic {
            code: u16_at(rest, 0),
            offset: self.base + offset,
            value,
        }))
    }
}

/// How an NLRI field looks when read in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looks {
    /// As speakers write it.
    Usual,
    /// Readable, yet as hardly anyone writes it.
    Odd,
    /// Not readable to its end.
    Broken,
}

/// The prefixes of one NLRI field of IPv4 or IPv6 unicast.
#[derive(Clone, Debug)]
struct Nlri<'a> {
    bytes: &'a [u8],
    base: usize,
    at: usize,
    v6: bool,
    /// Octets before each prefix: 4 with path identifiers (RFC 7911).
    skip: usize,
}

impl<'a> Nlri<'a> {
    const fn none() -> Self {
        Self {
            bytes: &[],
            base: 0,
            at: 0,
            v6: false,
            skip: 0,
        }
    }

    /// Whether there are path identifiers is agreed on in OPEN messages that may not have been seen (`ids` is `None`). Read
    /// without, they give several default routes or bits behind a prefix's end, which hardly a speaker sends: then they are
    /// tried. What cannot be read gives no prefixes, and a finding.
    fn read(
        bytes: &'a [u8],
        base: usize,
        v6: bool,
        ids: Option<bool>,
        report: &mut Report<'_>,
    ) -> Self {
        let plain = Self {
            bytes,
            base,
            at: 0,
            v6,
            skip: 0,
        };
        let with_ids = Self {
            skip: 4,
            ..plain.clone()
        };
        let looks = |nlri: &Self, fits: bool| match fits {
            true => nlri.looks(),
            false => Looks::Broken,
        };
        match (
            looks(&plain, ids != Some(true)),
            looks(&with_ids, ids != Some(false)),
        ) {
            (Looks::Usual, _) => plain,
            (_, Looks::Usual) => with_ids,
            (Looks::Odd, _) => plain,
            (Looks::Broken, Looks::Odd) => with_ids,
            (Looks::Broken, Looks::Broken) => {
                report.push(Rule::PncMalformed, base, bytes.len());
                Self::none()
            }
        }
    }

    fn looks(&self) -> Looks {
        let mut walk = self.clone();
        let (mut defaults, mut odd) = (0, false);
        while walk.at < walk.bytes.len() {
            let Some((prefix, at)) = walk.next() else {
                return Looks::Broken;
            };
            let len = Prefix::octets(prefix.bits());
            let written = self.bytes.get(at + 1..at + 1 + len).unwrap_or_default();
            odd |= prefix.padded().get(..len) != Some(written);
            defaults += usize::from(prefix.bits() == 0);
        }
        if odd || (self.skip == 0 && defaults > 1) {
            Looks::Odd
        } else {
            Looks::Usual
        }
    }

    /// The next prefix, and where its length octet is.
    fn next(&mut self) -> Option<(Prefix, usize)> {
        let at = self.at + self.skip;
        let bits = *self.bytes.get(at)?;
        let octets = self.bytes.get(at + 1..at + 1 + Prefix::octets(bits))?;
        let prefix = Prefix::from_octets(self.v6, octets, bits)?;
        self.at = at + 1 + octets.len();
        Some((prefix, at))
    }
}

/// The routes of one family in an UPDATE.
#[derive(Clone, Debug)]
struct Routes<'a> {
    afi: u16,
    safi: u8,
    next_hop: Option<IpAddr>,
    /// Whether the NHC is about their next hop.
    applies: bool,
    nlri: Nlri<'a>,
    /// There are routes, but of a family whose prefixes are not read, and they have an NHC to report.
    unread: bool,
}

/// The prefixes announced by the UPDATE messages in a TCP segment: one [`Advertisement`] a prefix.
///
/// Routes of families other than IPv4 and IPv6 unicast give one without a prefix, if they come with an NHC.
#[derive(Clone, Debug)]
pub struct Advertisements<'a> {
    messages: Messages<'a>,
    code: u16,
    session: Session,
    update: usize,
    carrier: Option<Carrier<'a>>,
    pnc_at: Option<usize>,
    routes: [Option<Routes<'a>>; 2],
}

impl<'a> Advertisements<'a> {
    /// Walks `segment`, the payload of one TCP segment; `code` is [`bgp_pnc_characteristic`](crate::profile::Profile::bgp_pnc_characteristic).
    #[must_use]
    pub fn new(segment: &'a [u8], code: u16) -> Self {
        Self {
            messages: Messages::new(segment),
            code,
            session: Session::default(),
            update: 0,
            carrier: None,
            pnc_at: None,
            routes: [None, None],
        }
    }

    /// With what is known of the session that the segment belongs to.
    #[must_use]
    pub const fn in_session(mut self, session: Session) -> Self {
        self.session = session;
        self
    }

    /// The next prefix; rules found broken on the way to it, and in it, go to `findings`.
    pub fn next_checked(&mut self, findings: &mut Findings) -> Option<Advertisement<'a>> {
        self.step(&mut Report::to(findings))
    }

    /// Puts the rules that the segment's messages break, as far as PNC goes, into `findings`.
    pub fn check(mut self, findings: &mut Findings) {
        while self.next_checked(findings).is_some() {}
    }

    fn step(&mut self, report: &mut Report<'_>) -> Option<Advertisement<'a>> {
        loop {
            for routes in self.routes.iter_mut().flatten() {
                let found = routes.nlri.next();
                if found.is_none() && !core::mem::take(&mut routes.unread) {
                    continue;
                }
                let offset = match found {
                    Some((_, at)) => routes.nlri.base + at,
                    None => self.update,
                };
                let advertisement = Advertisement {
                    origin: Origin::Bgp {
                        afi: routes.afi,
                        safi: routes.safi,
                        next_hop: routes.next_hop,
                    },
                    prefix: found.map(|(prefix, _)| prefix),
                    container: self.update,
                    offset,
                    carrier: self.carrier,
                    flag_offset: self.pnc_at,
                    ignored: false,
                    pnc: routes.applies && self.pnc_at.is_some(),
                };
                report.host_only(&advertisement);
                return Some(advertisement);
            }
            self.routes = [None, None];
            if let Ok(update) = Update::new(&self.messages.next()?) {
                self.enter(&update, report);
            }
        }
    }

    /// Reads what the routes of an UPDATE have in common. Only where PNC is spoken of, or an attribute 39 cannot be read,
    /// is what is broken our business.
    fn enter(&mut self, update: &Update<'a>, report: &mut Report<'_>) {
        let mut all = (update.attributes().filter_map(Result::ok))
            .filter(|found| found.kind == attribute::NHC)
            .map(|attribute| (attribute, Nhc::new(&attribute)));
        let speaks = |nhc: &Result<Nhc<'_>>| nhc.as_ref().map_or(true, |nhc| nhc.has(self.code));
        let first = all.next();
        let spoken = first.iter().any(|(_, nhc)| speaks(nhc))
            || all.any(|(_, nhc)| speaks(&nhc))
            || update.overrun() == Some(attribute::NHC);
        let mut nobody = Report::nowhere();
        let report = if spoken { report } else { &mut nobody };

        let (mut next_hop, mut mp, mut seen) = (None, None, false);
        for attribute in update.attributes() {
            let attribute = match attribute {
                Ok(found) => found,
                Err(e) => {
                    // What follows cannot be located; the NLRI still can.
                    report.push(Rule::PncMalformed, e.offset, 1);
                    break;
                }
            };
            match attribute.kind {
                attribute::NEXT_HOP => next_hop = next_hop.or(Some(attribute)),
                attribute::MP_REACH => mp = mp.or(Some(attribute)),
                attribute::NHC if core::mem::replace(&mut seen, true) => {
                    report.push(Rule::PncSeveral, attribute.offset, 2);
                }
                _ => {}
            }
        }
        self.update = update.offset;
        let nhc = first
            .filter(|(_, nhc)| speaks(nhc))
            .and_then(|(attribute, nhc)| check_nhc(&attribute, nhc, self.code, report));
        (self.carrier, self.pnc_at) = match &nhc {
            Some((nhc, pnc_at)) => {
                let offset = nhc.characteristics_offset();
                let octets = nhc
                    .value
                    .get(NHC_HEAD + nhc.next_hop.len()..)
                    .unwrap_or_default();
                (Some(Carrier { offset, octets }), *pnc_at)
            }
            None => (None, None),
        };
        let speaker = self.session.speaker;
        let applies = |hop: &[u8]| matches!(&nhc, Some((nhc, _)) if nhc.applies_to(hop, speaker));

        let [ids4, ids6] = self.session.path_ids;
        let nlri = update.bytes.get(update.nlri..).unwrap_or_default();
        let nlri_at = update.offset + update.nlri;
        if next_hop.is_none() && !nlri.is_empty() {
            // RFC 4271 section 5: mandatory with an NLRI.
            report.push(Rule::PncMalformed, nlri_at, nlri.len());
        }
        let next_hop = next_hop.map_or(&[][..], |a| a.value);
        let plain = (!nlri.is_empty()).then(|| {
            let nlri = Nlri::read(nlri, nlri_at, false, ids4, report);
            Routes {
                afi: AFI_IPV4,
                safi: SAFI_UNICAST,
                next_hop: address(next_hop),
                applies: applies(next_hop),
                unread: nhc.is_some() && nlri.bytes.is_empty(),
                nlri,
            }
        });
        let mp = mp.and_then(|attribute| {
            let found = mp_reach(&attribute);
            if found.is_none() {
                report.push(
                    Rule::PncMalformed,
                    attribute.value_offset,
                    attribute.value.len(),
                );
            }
            let (afi, safi, hop, nlri) = found?;
            let at = attribute.value_offset + nlri.start;
            let octets = attribute.value.get(nlri).unwrap_or_default();
            let nlri = match family(afi, safi) {
                Some(0) => Nlri::read(octets, at, false, ids4, report),
                Some(_) => Nlri::read(octets, at, true, ids6, report),
                None => Nlri::none(),
            };
            Some(Routes {
                afi,
                safi,
                next_hop: address(hop),
                applies: applies(hop),
                unread: nhc.is_some() && nlri.bytes.is_empty(),
                nlri,
            })
        });
        if let Some((nhc, _)) = &nhc
            && ![&plain, &mp].into_iter().flatten().any(|r| r.applies)
        {
            report.push(
                Rule::PncNhcNextHop,
                nhc.offset + NHC_HEAD,
                nhc.next_hop.len(),
            );
        }
        self.routes = [plain, mp];
    }
}

impl<'a> Iterator for Advertisements<'a> {
    type Item = Advertisement<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(&mut Report::nowhere())
    }
}

/// AFI, SAFI, next hop, and where the NLRI is, of an MP_REACH_NLRI attribute (RFC 4760 section 3).
fn mp_reach<'a>(attribute: &Attribute<'a>) -> Option<(u16, u8, &'a [u8], Range<usize>)> {
    let value = attribute.value;
    let hop = value.get(4..4 + usize::from(*value.get(3)?))?;
    // One reserved octet stands between.
    let start = 4 + hop.len() + 1;
    (start <= value.len()).then_some((u16_at(value, 0), u8_at(value, 2), hop, start..value.len()))
}

/// Checks an NHC attribute; `None` when it is to be discarded. With it, where a valid PNC characteristic is.
fn check_nhc<'a>(
    attribute: &Attribute<'a>,
    nhc: Result<Nhc<'a>>,
    code: u16,
    report: &mut Report<'_>,
) -> Option<(Nhc<'a>, Option<usize>)> {
    const CLASS: u8 = attribute::FLAG_OPTIONAL | attribute::FLAG_TRANSITIVE;
    if attribute.flags & CLASS != CLASS {
        report.push(Rule::PncNhcFlags, attribute.offset, 1);
    }
    let nhc = match nhc {
        Ok(nhc) => nhc,
        Err(e) => {
            report.push(Rule::PncNhcMalformed, e.offset, 1);
            return None;
        }
    };
    let mut pnc_at = None;
    let mut before: Option<Characteristic<'a>> = None;
    for one in nhc.characteristics().filter_map(Result::ok) {
        if let Some(before) = before {
            if one.code < before.code {
                report.push(Rule::PncNhcOrder, one.offset, 2);
            } else if (one.code, one.value) == (before.code, before.value) {
                report.push(Rule::PncNhcDuplicate, one.offset, 2);
            }
        }
        before = Some(one);
        if one.code == code {
            if one.value.is_empty() {
                pnc_at = pnc_at.or(Some(one.offset));
            } else {
                report.push(Rule::PncNhcLength, one.offset + 2, 2);
            }
        }
    }
    Some((nhc, pnc_at))
}

/// One characteristic to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CharacteristicRepr<'a> {
    /// Characteristic code.
    pub code: u16,
    /// The value; empty for PNC.
    pub value: &'a [u8],
}

/// An NHC attribute to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NhcRepr<'a> {
    /// Address family of the routes.
    pub afi: u16,
    /// Subsequent address family of the routes.
    pub safi: u8,
    /// The route's next hop; another one for negative testing.
    pub next_hop: IpAddr,
    /// The characteristics, in increasing order of their codes; written in the order given.
    pub characteristics: &'a [CharacteristicRepr<'a>],
}

impl NhcRepr<'_> {
    /// Octets of the attribute, with flags, type and length.
    ///
    /// # Errors
    /// What cannot be written, see [`emit`](Self::emit).
    pub fn buffer_len(&self) -> Result<usize> {
        let mut w = Writer::new(&mut []);
        self.write(&mut w)?;
        Ok(w.at())
    }

    /// Writes the attribute with flags, type and length, and returns its length.
    ///
    /// # Errors
    /// A value too long for its length field, or `out` too small.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize> {
        let mut w = Writer::new(out);
        self.write(&mut w)?;
        w.finish(LAYER)
    }

    fn write(&self, w: &mut Writer<'_>) -> Result<()> {
        const CLASS: u8 = attribute::FLAG_OPTIONAL | attribute::FLAG_TRANSITIVE;
        write_attribute(w, CLASS, attribute::NHC, |w| {
            w.u16(self.afi);
            w.u8(self.safi);
            write_address(w, self.next_hop);
            for one in self.characteristics {
                w.u16(one.code);
                let at = w.at();
                w.u16(0);
                w.put(one.value);
                w.patch_len16(LAYER, at, "Characteristic Length", one.value.len())?;
            }
            Ok(())
        })
    }
}

/// Length octet and address.
fn write_address(w: &mut Writer<'_>, address: IpAddr) {
    match address {
        IpAddr::V4(v4) => {
            w.u8(4);
            w.put(&v4.octets());
        }
        IpAddr::V6(v6) => {
            w.u8(16);
            w.put(&v6.octets());
        }
    }
}

/// Writes an attribute around what `value` writes, with a length of one octet where that does.
fn write_attribute(
    w: &mut Writer<'_>,
    flags: u8,
    kind: u8,
    value: impl Fn(&mut Writer<'_>) -> Result<()>,
) -> Result<()> {
    let mut counter = Writer::new(&mut []);
    value(&mut counter)?;
    let len = counter.at();
    if len > 255 {
        w.put(&[flags | attribute::FLAG_EXTENDED, kind]);
        let at = w.at();
        w.u16(0);
        w.patch_len16(LAYER, at, "attribute length", len)?;
    } else {
        w.put(&[flags, kind, len as u8]);
    }
    value(w)
}

/// Who originated the route (RFC 4271 section 5.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteOrigin {
    /// Interior to the originating AS.
    Igp,
    /// Learned by EGP.
    Egp,
    /// By other means.
    Incomplete,
}

/// An UPDATE to be written: IPv4 prefixes with an IPv4 next hop go into the NLRI field with NEXT_HOP, all others into
/// MP_REACH_NLRI (IPv4 with an IPv6 next hop as in RFC 8950).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpdateRepr<'a> {
    /// ORIGIN.
    pub origin: RouteOrigin,
    /// AS_PATH: one AS_SEQUENCE of at most 255 AS numbers; empty within an AS.
    pub as_path: &'a [u32],
    /// AS numbers of four octets in AS_PATH (RFC 6793); with two, larger ones are written as AS_TRANS, 23456.
    pub four_octet_as: bool,
    /// Next hop.
    pub next_hop: IpAddr,
    /// LOCAL_PREF, within an AS.
    pub local_pref: Option<u32>,
    /// The prefixes, all of one family.
    pub prefixes: &'a [Prefix],
    /// Attribute 39.
    pub nhc: Option<NhcRepr<'a>>,
}

impl UpdateRepr<'_> {
    /// Octets of the message.
    ///
    /// # Errors
    /// What cannot be written, see [`emit`](Self::emit).
    pub fn buffer_len(&self) -> Result<usize> {
        let mut w = Writer::new(&mut []);
        self.write(&mut w)?;
        Ok(w.at())
    }

    /// Writes the message with its lengths, and returns its length.
    ///
    /// # Errors
    /// Prefixes of both families, IPv6 prefixes with an IPv4 next hop, lengths too large for their fields (more than
    /// 4096 octets need RFC 8654 and are written), or `out` too small.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize> {
        let mut w = Writer::new(out);
        self.write(&mut w)?;
        w.finish(LAYER)
    }

    fn write(&self, w: &mut Writer<'_>) -> Result<()> {
        use attribute::{FLAG_OPTIONAL, FLAG_TRANSITIVE};
        const AS_SEQUENCE: u8 = 2;
        const AS_TRANS: u16 = 23456;
        let v6 = self
            .prefixes
            .first()
            .map_or(self.next_hop.is_ipv6(), |p| p.address().is_ipv6());
        if self.prefixes.iter().any(|p| p.address().is_ipv6() != v6) {
            return Err(Error::value(
                LAYER,
                0,
                "prefix",
                0,
                "prefixes of one family",
            ));
        }
        let plain: Option<Ipv4Addr> = match self.next_hop {
            IpAddr::V4(_) if v6 => {
                return Err(Error::value(LAYER, 0, "next hop", 4, "an IPv6 address"));
            }
            IpAddr::V4(v4) => Some(v4),
            IpAddr::V6(_) => None,
        };
        w.put(&[0xFF; MARKER]);
        w.u16(0);
        w.u8(UPDATE);
        w.u16(0);
        let total_at = w.at();
        w.u16(0);
        let origin = match self.origin {
            RouteOrigin::Igp => 0,
            RouteOrigin::Egp => 1,
            RouteOrigin::Incomplete => 2,
        };
        w.put(&[FLAG_TRANSITIVE, attribute::ORIGIN, 1, origin]);
        write_attribute(w, FLAG_TRANSITIVE, attribute::AS_PATH, |w| {
            if self.as_path.is_empty() {
                return Ok(());
            }
            w.u8(AS_SEQUENCE);
            let at = w.at();
            w.u8(0);
            w.patch_len8(LAYER, at, "AS path segment length", self.as_path.len())?;
            for asn in self.as_path {
                if self.four_octet_as {
                    w.u32(*asn);
                } else {
                    w.u16(u16::try_from(*asn).unwrap_or(AS_TRANS));
                }
            }
            Ok(())
        })?;
        if let Some(next_hop) = plain {
            w.put(&[FLAG_TRANSITIVE, attribute::NEXT_HOP, 4]);
            w.put(&next_hop.octets());
        }
        if let Some(preference) = self.local_pref {
            w.put(&[FLAG_TRANSITIVE, attribute::LOCAL_PREF, 4]);
            w.u32(preference);
        }
        if plain.is_none() {
            write_attribute(w, FLAG_OPTIONAL, attribute::MP_REACH, |w| {
                w.u16(if v6 { AFI_IPV6 } else { AFI_IPV4 });
                w.u8(SAFI_UNICAST);
                write_address(w, self.next_hop);
                w.u8(0);
                self.write_nlri(w);
                Ok(())
            })?;
        }
        if let Some(nhc) = &self.nhc {
            nhc.write(w)?;
        }
        let total = w.at() - total_at - 2;
        w.patch_len16(LAYER, total_at, "Total Path Attribute Length", total)?;
        if plain.is_some() {
            self.write_nlri(w);
        }
        w.patch_len16(LAYER, MARKER, "Length", w.at())
    }

    fn write_nlri(&self, w: &mut Writer<'_>) {
        for prefix in self.prefixes {
            let octets: [u8; 16] = array(&prefix.padded(), 0);
            w.u8(prefix.bits());
            w.put(
                octets
                    .get(..Prefix::octets(prefix.bits()))
                    .unwrap_or(&octets),
            );
        }
    }
}
