//! PNC in BGP: the PNC characteristic in path attribute 39, Next Hop Dependent Characteristics
//! (NHC, draft-ietf-idr-nhc), of UPDATE messages. UPDATEs are parsed; the attribute is also
//! written.
//!
//! Parses the payload of one TCP segment. Messages that begin before it or end after it are
//! skipped: stream reassembly is out of scope, as are the IP and TCP headers. The state from the
//! session's OPEN messages is passed as a [`Session`]: without it path identifiers are guessed, and
//! a BGP Identifier characteristic is trusted.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  UPDATE (RFC 4271 sections 4.1, 4.3)
//! |                    Marker, all ones (128)                     |   0
//! |            Length             |     Type 2    |Withdrawn Rout-|  16
//! |es Length (16) |  Withdrawn Routes ...                         |  20
//! |  Total Path Attribute Length  |  Path Attributes, then NLRI ...
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  a path attribute
//! |O|T|P|E|   0   |     Type      | Length (8, 16 where E)        |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  the value of NHC, type 39
//! |              AFI              |     SAFI      | Next Hop Len. |   0
//! |                           Next Hop ...                        |   4
//! |      Characteristic Code      |     Characteristic Length     |  each
//! |                             Value ...                         |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  a prefix of the NLRI
//! |   Path Identifier (32), if ADD-PATH was negotiated            |
//! | Prefix Length |   Prefix, in whole octets                     |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! ```
//! use fcn_wire::Profile;
//! use fcn_wire::pnc::bgp::{AFI_IPV4, CharacteristicRepr, Messages, NhcRepr, SAFI_UNICAST, Update};
//! use fcn_wire::pnc::{Protocol, walk};
//! use std::net::{IpAddr, Ipv4Addr};
//!
//! let profile = Profile::DEFAULT;
//! let proxy = Ipv4Addr::new(192, 0, 2, 15);
//! let nhc = NhcRepr {
//!     afi: AFI_IPV4,
//!     safi: SAFI_UNICAST,
//!     next_hop: IpAddr::V4(proxy),
//!     characteristics: &[CharacteristicRepr { code: profile.bgp_pnc_characteristic, value: &[] }],
//! };
//! let attribute = nhc.to_bytes()?;
//!
//! // Marker, length, type, no withdrawn routes; NEXT_HOP and the attribute; the host prefix.
//! let next_hop = [&[0x40, 3, 4][..], &proxy.octets()].concat();
//! let total = (next_hop.len() + attribute.len()) as u8;
//! let nlri = [&[32][..], &proxy.octets()].concat();
//! let head = [&[0xFF; 16][..], &[0, 23 + total + nlri.len() as u8, 2, 0, 0, 0, total]].concat();
//! let segment = [head, next_hop, attribute, nlri].concat();
//!
//! let found = walk(Protocol::Bgp, &segment, segment.len(), &profile)?.unwrap().next().unwrap();
//! assert!(found.pnc);
//! let update = Update::new_checked(&Messages::new(&segment).next().unwrap())?;
//! assert_eq!(update.nhc().unwrap()?.next_hop, proxy.octets());
//! # Ok::<(), fcn_wire::Error>(())
//! ```

use super::tlv::{Region, Shape, Writer};
use super::{Advertisement, Carrier, Inner, Origin, Prefix, Report, Walk};
use crate::error::{Error, Result};
use crate::finding::Rule;
use crate::layer::Layer;
use crate::octets::{ipv4_at, ipv6_at, u8_at, u16_at, u32_at};
use core::ops::Range;
use std::net::{IpAddr, Ipv4Addr};

/// TCP port of BGP.
pub const PORT: u16 = 179;
/// Length of a message header in octets: marker, length, type.
pub const HEADER: usize = 19;
/// Message type of an OPEN.
pub const OPEN: u8 = 1;
/// Message type of an UPDATE.
pub const UPDATE: u8 = 2;
/// Message type of a NOTIFICATION, which ends the session.
pub const NOTIFICATION: u8 = 3;
/// Address family IPv4.
pub const AFI_IPV4: u16 = 1;
/// Address family IPv6.
pub const AFI_IPV6: u16 = 2;
/// Subsequent address family unicast.
pub const SAFI_UNICAST: u8 = 1;

/// Path attribute types parsed here.
pub mod attribute {
    /// NEXT_HOP.
    pub const NEXT_HOP: u8 = 3;
    /// MP_REACH_NLRI (RFC 4760).
    pub const MP_REACH: u8 = 14;
    /// MP_UNREACH_NLRI (RFC 4760).
    pub const MP_UNREACH: u8 = 15;
    /// Next Hop Dependent Characteristics (draft-ietf-idr-nhc).
    pub const NHC: u8 = 39;
    /// Attribute flags of NHC: optional and transitive.
    pub const FLAGS_NHC: u8 = 0xC0;
}

/// Code of the BGP Identifier characteristic (draft-ietf-idr-nhc section 3): BGP Identifier and AS
/// number of the owner of the next hop.
pub const BGP_IDENTIFIER: u16 = 3;

/// Returns the name of an assigned characteristic, if this crate knows it.
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
pub(super) const MARKER: usize = 16;
/// Maximum message length without RFC 8654; OPEN and KEEPALIVE never exceed it.
const MAX_MESSAGE_LEN: usize = 4096;
/// Octets before an NHC's next hop: AFI, SAFI, next hop length.
const NHC_HEAD: usize = 4;

/// Counts the octets of 0xFF at the beginning of `bytes`, at most a marker's length.
fn ones(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take(MARKER)
        .take_while(|octet| **octet == 0xFF)
        .count()
}

/// Returns length and type from the message header at the beginning of `bytes`, if it is plausible.
fn header(bytes: &[u8]) -> Option<(usize, u8)> {
    if bytes.len() < HEADER || ones(bytes) < MARKER {
        return None;
    }
    let (len, kind) = (usize::from(u16_at(bytes, MARKER)), u8_at(bytes, MARKER + 2));
    let most = match kind {
        1 => MAX_MESSAGE_LEN,
        2 | 3 | 5 => 0xFFFF,
        4 => HEADER,
        _ => return None,
    };
    (HEADER..=most).contains(&len).then_some((len, kind))
}

/// A complete BGP message in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Offset of the marker from the start of the segment, in octets.
    pub offset: usize,
    /// Message type: 1 OPEN, 2 UPDATE, 3 NOTIFICATION, 4 KEEPALIVE, 5 ROUTE-REFRESH.
    pub kind: u8,
    /// The message from its marker on.
    pub bytes: &'a [u8],
}

/// Iterator over the BGP messages that lie completely within a TCP segment's payload.
#[derive(Clone, Debug)]
pub struct Messages<'a> {
    segment: &'a [u8],
    at: usize,
    /// True if a message is known to begin at `at`.
    aligned: bool,
}

impl<'a> Messages<'a> {
    /// Searches for messages in `segment`, the payload of one TCP segment.
    #[must_use]
    pub fn new(segment: &'a [u8]) -> Self {
        Self {
            segment,
            at: 0,
            aligned: ones(segment) == MARKER,
        }
    }

    /// Returns the offset in `rest` of the next message, or its length if there is none.
    ///
    /// Sixteen octets of ones can occur inside a message. A candidate therefore needs a plausible
    /// length and type, and another marker after the message (as far as the segment extends).
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
                // The end, or the beginning of a header that continues in the next segment.
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

/// A path attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// Offset of the attribute flags from the start of the segment, in octets.
    pub offset: usize,
    /// Attribute flags.
    pub flags: u8,
    /// Attribute type.
    pub kind: u8,
    /// Offset of the value from the start of the segment, in octets.
    pub value_offset: usize,
    /// The value.
    pub value: &'a [u8],
}

/// An UPDATE message whose three parts fit into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update<'a> {
    /// Offset of the marker from the start of the segment, in octets.
    pub offset: usize,
    withdrawn: Region<'a>,
    attributes: Region<'a>,
    nlri: Region<'a>,
}

impl<'a> Update<'a> {
    /// Splits an UPDATE into its parts.
    ///
    /// # Errors
    /// Fails if it is not an UPDATE, or a length does not fit; offsets are from the start of the
    /// segment.
    pub fn new_checked(message: &Message<'a>) -> Result<Self> {
        const LEAST: usize = HEADER + 4;
        let (offset, bytes) = (message.offset, message.bytes);
        if message.kind != UPDATE {
            let (at, kind) = (offset + MARKER + 2, message.kind.into());
            return Err(Error::value(LAYER, at, "Type", kind, "2"));
        }
        let Some(room) = bytes.len().checked_sub(LEAST) else {
            let (at, len) = (offset + MARKER, bytes.len());
            return Err(Error::length(LAYER, at, "Length", len, LEAST, 0xFFFF));
        };
        let withdrawn = usize::from(u16_at(bytes, HEADER));
        if withdrawn > room {
            let (at, field) = (offset + HEADER, "Withdrawn Routes Length");
            return Err(Error::length(LAYER, at, field, withdrawn, 0, room));
        }
        let (length_at, room) = (HEADER + 2 + withdrawn, room - withdrawn);
        let total = usize::from(u16_at(bytes, length_at));
        if total > room {
            let (at, field) = (offset + length_at, "Total Path Attribute Length");
            return Err(Error::length(LAYER, at, field, total, 0, room));
        }
        let part =
            |from: usize, to| Region::whole(bytes.get(from..to).unwrap_or_default(), offset + from);
        let (attributes, nlri) = (length_at + 2, length_at + 2 + total);
        Ok(Self {
            offset,
            withdrawn: part(HEADER + 2, length_at),
            attributes: part(attributes, nlri),
            nlri: part(nlri, bytes.len()),
        })
    }

    /// Returns the withdrawn IPv4 and IPv6 unicast prefixes.
    pub fn withdrawn(&self, session: Session) -> impl Iterator<Item = Prefix> + use<'a> {
        let read = move |field, v6| {
            let ids = session.path_ids.get(usize::from(v6)).copied().flatten();
            let mut nlri = Nlri::read(field, v6, ids, &mut Report::discard());
            core::iter::from_fn(move || nlri.next().map(|(prefix, ..)| prefix))
        };
        let unreach = (self.attributes().filter_map(Result::ok))
            .filter(|found| found.kind == attribute::MP_UNREACH)
            .filter_map(move |found| {
                let (head, routes) = found.value.split_first_chunk::<3>()?;
                let [a, b, safi] = *head;
                let family = family(u16::from_be_bytes([a, b]), safi)?;
                let field = Region::whole(routes, found.value_offset + head.len());
                Some(read(field, family == 1))
            });
        read(self.withdrawn, false).chain(unreach.flatten())
    }

    /// Returns the path attributes, in order. Ends after the first that runs past their end.
    pub fn attributes(&self) -> impl Iterator<Item = Result<Attribute<'a>>> + use<'a> {
        let mut region = self.attributes;
        core::iter::from_fn(move || {
            let found = region.tlv(Shape::Attribute)?;
            Some(found.map(|tlv| Attribute {
                offset: tlv.at,
                flags: (tlv.kind >> 8) as u8,
                kind: tlv.kind as u8,
                value_offset: tlv.value.at,
                value: tlv.value.octets,
            }))
        })
    }

    /// Returns true if path attribute 39 is present, even if it runs past the attributes' end.
    fn has_nhc(&self) -> bool {
        self.nhc().is_some() || self.overrun() == Some(attribute::NHC)
    }

    /// Returns the type of the attribute that runs past the attributes' end.
    fn overrun(&self) -> Option<u8> {
        let mut region = self.attributes;
        loop {
            let octets = region.octets;
            if region.tlv(Shape::Attribute)?.is_err() {
                return octets.get(1).copied();
            }
        }
    }

    /// Returns the Next Hop Dependent Characteristics, if the UPDATE has that attribute: the first
    /// one, by RFC 7606 section 3.
    ///
    /// # Errors
    /// Fails if the attribute is malformed; only the attribute is to be discarded.
    pub fn nhc(&self) -> Option<Result<Nhc<'a>>> {
        let mut all = self.attributes().filter_map(Result::ok);
        let found = all.find(|a| a.kind == attribute::NHC)?;
        Some(Nhc::new_checked(&found))
    }
}

/// Information from an OPEN message that is needed to parse UPDATEs (RFC 4271 section 4.2, RFC
/// 5492).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// BGP Identifier.
    pub identifier: Ipv4Addr,
    /// AS number: that of the four-octet capability (RFC 6793) if present.
    pub as_number: u32,
    /// Send/Receive of the ADD-PATH capability (RFC 7911 section 4) for IPv4 and IPv6 unicast: 1
    /// receives, 2 sends, 3 both.
    pub add_path: [u8; 2],
}

impl Open {
    const RECEIVES: u8 = 1;
    const SENDS: u8 = 2;

    /// Parses an OPEN message as far as its parameters are complete. `None` for another message, or
    /// an incomplete fixed part.
    #[must_use]
    pub fn parse(message: &Message<'_>) -> Option<Self> {
        const PARAMETERS: usize = HEADER + 10;
        const CAPABILITIES: u16 = 2;
        /// Length and type that indicate two-octet lengths (RFC 9072 section 2).
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
        let parameters = bytes.get(PARAMETERS - 1..).unwrap_or_default();
        let (shape, from) = match parameters.starts_with(&EXTENDED) {
            true => (Shape::Extended, PARAMETERS + 3),
            false => (Shape::Narrow, PARAMETERS),
        };
        let mut parameters = Region::new(bytes, from, bytes.len());
        while let Some(Ok(parameter)) = parameters.tlv(shape) {
            if parameter.kind == CAPABILITIES {
                open.capabilities(parameter.value);
            }
        }
        Some(open)
    }

    fn capabilities(&mut self, mut all: Region<'_>) {
        const FOUR_OCTET_AS: u16 = 65;
        const ADD_PATH: u16 = 69;
        while let Some(Ok(capability)) = all.tlv(Shape::Narrow) {
            let value = capability.value.octets;
            match capability.kind {
                FOUR_OCTET_AS if value.len() == 4 => self.as_number = u32_at(value, 0),
                ADD_PATH => {
                    for item in value.chunks_exact(4) {
                        if let Some(family) = family(u16_at(item, 0), u8_at(item, 2))
                            && let Some(place) = self.add_path.get_mut(family)
                        {
                            *place = u8_at(item, 3);
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

/// Returns the index of a supported family: 0 for IPv4 unicast, 1 for IPv6 unicast.
const fn family(afi: u16, safi: u8) -> Option<usize> {
    match (afi, safi) {
        (AFI_IPV4, SAFI_UNICAST) => Some(0),
        (AFI_IPV6, SAFI_UNICAST) => Some(1),
        _ => None,
    }
}

/// State of one direction of a session from the OPEN messages of both sides. Empty by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// BGP Identifier and AS number of the sender of the UPDATEs.
    pub speaker: Option<(Ipv4Addr, u32)>,
    /// True if IPv4 or IPv6 unicast prefixes have path identifiers.
    pub path_ids: [Option<bool>; 2],
}

impl Session {
    /// Creates the state for messages from `speaker` to `listener`; `None` if that side's OPEN was
    /// not captured.
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

/// Returns true if an UPDATE in `segment` has path attribute 39, parseable or not.
pub(super) fn has_attribute_39(segment: &[u8]) -> bool {
    Messages::new(segment)
        .filter_map(|message| Update::new_checked(&message).ok())
        .any(|update| update.has_nhc())
}

/// A Next Hop Dependent Characteristics attribute (draft-ietf-idr-nhc section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nhc<'a> {
    /// Address family of the next hop's route.
    pub afi: u16,
    /// Subsequent address family.
    pub safi: u8,
    /// Octets of the next hop, as in MP_REACH_NLRI.
    pub next_hop: &'a [u8],
    /// Offset of the AFI from the start of the segment, in octets.
    pub offset: usize,
    rest: Region<'a>,
}

impl<'a> Nhc<'a> {
    /// Parses the attribute's value, and checks that every characteristic is complete.
    ///
    /// # Errors
    /// Fails if a length does not fit; offsets are from the start of the segment.
    pub fn new_checked(attribute: &Attribute<'a>) -> Result<Self> {
        let (value, offset) = (attribute.value, attribute.value_offset);
        let Some(room) = value.len().checked_sub(NHC_HEAD) else {
            return Err(Error::short(LAYER, NHC_HEAD, value.len()).at(offset));
        };
        let len = usize::from(u8_at(value, 3));
        if len > room {
            let (at, field) = (offset + 3, "Next Hop Length");
            return Err(Error::length(LAYER, at, field, len, 0, room));
        }
        let from = NHC_HEAD + len;
        let (head, rest) = value.split_at(from);
        let nhc = Self {
            afi: u16_at(value, 0),
            safi: u8_at(value, 2),
            next_hop: head.get(NHC_HEAD..).unwrap_or_default(),
            offset,
            rest: Region::whole(rest, offset + from),
        };
        nhc.characteristics()
            .try_for_each(|item| item.map(|_| ()))?;
        Ok(nhc)
    }

    /// Returns the characteristics, in order. Ends after the first that runs past the attribute.
    pub fn characteristics(&self) -> impl Iterator<Item = Result<Characteristic<'a>>> + use<'a> {
        let mut region = self.rest;
        core::iter::from_fn(move || {
            let found = region.tlv(Shape::Characteristic)?;
            Some(found.map(|tlv| Characteristic {
                code: tlv.kind,
                offset: tlv.at,
                value: tlv.value.octets,
            }))
        })
    }

    /// Returns true if the attribute's next hop is the route's: the same octets, or the same global
    /// address. A link-local address alone is not unique across links, so the BGP Identifier
    /// characteristic is also required, and has to match the `speaker` (BGP Identifier and AS
    /// number) if that is known (draft-ietf-idr-nhc sections 2.3 and 3.3).
    fn applies_to(&self, next_hop: &[u8], speaker: Option<(Ipv4Addr, u32)>) -> bool {
        let same = self.next_hop == next_hop
            || matches!((address(self.next_hop), address(next_hop)), (Some(a), Some(b)) if a == b);
        same && (!is_link_local_alone(next_hop)
            || self
                .owner()
                .is_some_and(|owner| speaker.is_none_or(|speaker| speaker == owner)))
    }

    /// Returns BGP Identifier and AS number in the first BGP Identifier characteristic, if it can
    /// be parsed.
    fn owner(&self) -> Option<(Ipv4Addr, u32)> {
        let mut all = self.characteristics().filter_map(Result::ok);
        let value = all.find(|item| item.code == BGP_IDENTIFIER)?.value;
        let owner = (ipv4_at(value, 0), u32_at(value, 4));
        (value.len() == 8 && !owner.0.is_unspecified()).then_some(owner)
    }

    /// Returns true if it has a characteristic of that code.
    #[must_use]
    pub fn has(&self, code: u16) -> bool {
        let mut all = self.characteristics().filter_map(Result::ok);
        all.any(|item| item.code == code)
    }
}

/// Returns true if a next-hop field has a link-local address and no global one.
fn is_link_local_alone(next_hop: &[u8]) -> bool {
    match address(next_hop) {
        Some(IpAddr::V6(v6)) => {
            v6.is_unicast_link_local() || (v6.is_unspecified() && matches!(next_hop.len(), 32 | 48))
        }
        _ => false,
    }
}

/// Returns the address in a next-hop field: IPv4, IPv6, or IPv6 followed by a link-local one, each
/// optionally preceded by a route distinguisher of 8 octets (RFC 4364, RFC 4659).
fn address(next_hop: &[u8]) -> Option<IpAddr> {
    match next_hop.len() {
        4 => Some(ipv4_at(next_hop, 0).into()),
        12 => Some(ipv4_at(next_hop, 8).into()),
        16 | 32 => Some(ipv6_at(next_hop, 0).into()),
        24 | 48 => Some(ipv6_at(next_hop, 8).into()),
        _ => None,
    }
}

/// A characteristic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Characteristic<'a> {
    /// Characteristic code.
    pub code: u16,
    /// Offset of the code from the start of the segment, in octets.
    pub offset: usize,
    /// The value.
    pub value: &'a [u8],
}

/// Plausibility of one interpretation of an NLRI field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NlriPlausibility {
    /// The encoding that speakers use.
    Usual,
    /// Can be parsed, but is an unusual encoding.
    Odd,
    /// Cannot be parsed to its end.
    Broken,
}

/// Prefixes of one NLRI field of IPv4 or IPv6 unicast.
#[derive(Clone, Debug, Default)]
struct Nlri<'a> {
    octets: &'a [u8],
    at: usize,
    v6: bool,
    /// Octets before each prefix: 4 with path identifiers (RFC 7911).
    skip: usize,
}

impl<'a> Nlri<'a> {
    /// Reads an NLRI field, with or without path identifiers.
    ///
    /// Path identifiers are negotiated in OPEN messages that may not have been captured (`ids` is
    /// `None`). Parsed without them, an NLRI that has them yields several default routes or bits
    /// after a prefix's end, which speakers hardly ever send: then path identifiers are tried. An
    /// NLRI that cannot be parsed yields no prefixes and a finding.
    fn read(field: Region<'a>, v6: bool, ids: Option<bool>, report: &mut Report<'_>) -> Self {
        let Region { octets, at, .. } = field;
        let [plain, with_ids] = [0, 4].map(|skip| Self {
            octets,
            at,
            v6,
            skip,
        });
        let looks = |nlri: &Self, fits: bool| match fits {
            true => nlri.plausibility(),
            false => NlriPlausibility::Broken,
        };
        match (
            looks(&plain, ids != Some(true)),
            looks(&with_ids, ids != Some(false)),
        ) {
            (NlriPlausibility::Usual, _) => plain,
            (_, NlriPlausibility::Usual) => with_ids,
            (NlriPlausibility::Odd, _) => plain,
            (NlriPlausibility::Broken, NlriPlausibility::Odd) => with_ids,
            (NlriPlausibility::Broken, NlriPlausibility::Broken) => {
                report.push(Rule::PncMalformed, at, octets.len());
                Self::default()
            }
        }
    }

    fn plausibility(&self) -> NlriPlausibility {
        let mut walk = self.clone();
        let (mut defaults, mut odd) = (0, false);
        while !walk.octets.is_empty() {
            let Some((prefix, _, octets)) = walk.next() else {
                return NlriPlausibility::Broken;
            };
            odd |= !prefix.padded().starts_with(octets);
            defaults += usize::from(prefix.bits() == 0);
        }
        if odd || (self.skip == 0 && defaults > 1) {
            NlriPlausibility::Odd
        } else {
            NlriPlausibility::Usual
        }
    }

    /// Returns the next prefix, the offset of its length octet, and its octets as encoded.
    fn next(&mut self) -> Option<(Prefix, usize, &'a [u8])> {
        let (bits, behind) = self.octets.get(self.skip..)?.split_first()?;
        let (octets, rest) = behind.split_at_checked(Prefix::octets(*bits))?;
        let prefix = Prefix::from_octets(self.v6, octets, *bits)?;
        let at = self.at + self.skip;
        (self.octets, self.at) = (rest, at + 1 + octets.len());
        Some((prefix, at, octets))
    }
}

/// Routes of one family in an UPDATE.
#[derive(Clone, Debug)]
struct Routes<'a> {
    afi: u16,
    safi: u8,
    next_hop: Option<IpAddr>,
    /// True if the NHC is about their next hop.
    applies: bool,
    nlri: Nlri<'a>,
    /// There are routes, but of a family whose prefixes are not parsed, and they have an NHC to
    /// report.
    unread: bool,
}

/// Returns the advertisements of the UPDATE messages in `segment`, the payload of one TCP segment:
/// one per prefix. `code` is that of the PNC characteristic.
pub(super) fn advertisements(segment: &[u8], code: u16) -> Walk<'_> {
    Walk(Inner::Bgp(Advertisements {
        messages: Messages::new(segment),
        code,
        session: Session::default(),
        update: 0,
        carrier: None,
        pnc_at: None,
        routes: [None, None],
    }))
}

/// Iterator over the prefixes announced by the UPDATE messages in a TCP segment.
///
/// Routes of families other than IPv4 and IPv6 unicast yield one item without a prefix, if they
/// have an NHC.
#[derive(Clone, Debug)]
pub(super) struct Advertisements<'a> {
    messages: Messages<'a>,
    code: u16,
    pub(super) session: Session,
    update: usize,
    carrier: Option<Carrier<'a>>,
    pnc_at: Option<usize>,
    routes: [Option<Routes<'a>>; 2],
}

impl<'a> Advertisements<'a> {
    pub(super) fn step(&mut self, report: &mut Report<'_>) -> Option<Advertisement<'a>> {
        loop {
            for routes in self.routes.iter_mut().flatten() {
                let found = routes.nlri.next();
                if found.is_none() && !core::mem::take(&mut routes.unread) {
                    continue;
                }
                let advertisement = Advertisement {
                    origin: Origin::Bgp {
                        afi: routes.afi,
                        safi: routes.safi,
                        next_hop: routes.next_hop,
                    },
                    prefix: found.map(|(prefix, ..)| prefix),
                    container: self.update,
                    offset: found.map_or(self.update, |(_, at, _)| at),
                    carrier: self.carrier,
                    flag_offset: self.pnc_at,
                    ignored: false,
                    pnc: routes.applies && self.pnc_at.is_some(),
                };
                report.host_only(&advertisement);
                return Some(advertisement);
            }
            self.routes = [None, None];
            if let Ok(update) = Update::new_checked(&self.messages.next()?) {
                self.enter(&update, report);
            }
        }
    }

    /// Reads the common attributes of an UPDATE's routes. Defects are reported only if PNC is
    /// present, or an attribute 39 cannot be parsed.
    fn enter(&mut self, update: &Update<'a>, report: &mut Report<'_>) {
        let mut all = (update.attributes().filter_map(Result::ok))
            .filter(|found| found.kind == attribute::NHC)
            .map(|attribute| (attribute, Nhc::new_checked(&attribute)));
        let speaks = |nhc: &Result<Nhc<'_>>| nhc.as_ref().map_or(true, |nhc| nhc.has(self.code));
        let first = all.next();
        let spoken = first.iter().any(|(_, nhc)| speaks(nhc))
            || all.any(|(_, nhc)| speaks(&nhc))
            || update.overrun() == Some(attribute::NHC);
        let mut nobody = Report::discard();
        let report = if spoken { report } else { &mut nobody };

        let (mut next_hop, mut mp, mut seen) = (None, None, false);
        for attribute in update.attributes() {
            let attribute = match attribute {
                Ok(found) => found,
                Err(e) => {
                    // The rest cannot be located; the NLRI still can.
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
        self.carrier = nhc.map(|(nhc, _)| Carrier {
            offset: nhc.rest.at,
            octets: nhc.rest.octets,
        });
        self.pnc_at = nhc.and_then(|(_, pnc_at)| pnc_at);

        let Session { speaker, path_ids } = self.session;
        let routes = |afi, safi, hop: &[u8], field, report: &mut Report<'_>| {
            let nlri = match family(afi, safi) {
                Some(family) => {
                    let ids = path_ids.get(family).copied().flatten();
                    Nlri::read(field, afi == AFI_IPV6, ids, report)
                }
                None => Nlri::default(),
            };
            Routes {
                afi,
                safi,
                next_hop: address(hop),
                applies: nhc.is_some_and(|(nhc, _)| nhc.applies_to(hop, speaker)),
                unread: nhc.is_some() && nlri.octets.is_empty(),
                nlri,
            }
        };
        let plain = (update.nlri.left() > 0).then(|| {
            if next_hop.is_none() {
                // RFC 4271 section 5: mandatory with an NLRI.
                report.push(Rule::PncMalformed, update.nlri.at, update.nlri.left());
            }
            let hop = next_hop.map_or(&[][..], |a| a.value);
            routes(AFI_IPV4, SAFI_UNICAST, hop, update.nlri, report)
        });
        let mp = mp.and_then(|attribute| {
            let Some((afi, safi, hop, nlri)) = mp_reach(&attribute) else {
                let (at, len) = (attribute.value_offset, attribute.value.len());
                report.push(Rule::PncMalformed, at, len);
                return None;
            };
            let at = attribute.value_offset + nlri.start;
            let field = Region::whole(attribute.value.get(nlri).unwrap_or_default(), at);
            Some(routes(afi, safi, hop, field, report))
        });
        if let Some((nhc, _)) = &nhc
            && ![&plain, &mp].into_iter().flatten().any(|r| r.applies)
        {
            let at = nhc.offset + NHC_HEAD;
            report.push(Rule::PncNhcNextHop, at, nhc.next_hop.len());
        }
        self.routes = [plain, mp];
    }
}

/// Returns AFI, SAFI, next hop, and the range of the NLRI in an MP_REACH_NLRI attribute (RFC 4760
/// section 3).
fn mp_reach<'a>(attribute: &Attribute<'a>) -> Option<(u16, u8, &'a [u8], Range<usize>)> {
    let value = attribute.value;
    let hop = value.get(4..4 + usize::from(*value.get(3)?))?;
    // A reserved octet comes between them.
    let start = 4 + hop.len() + 1;
    (start <= value.len()).then_some((u16_at(value, 0), u8_at(value, 2), hop, start..value.len()))
}

/// Checks an NHC attribute; `None` if it is to be discarded. Also returns the offset of a valid PNC
/// characteristic.
fn check_nhc<'a>(
    attribute: &Attribute<'a>,
    nhc: Result<Nhc<'a>>,
    code: u16,
    report: &mut Report<'_>,
) -> Option<(Nhc<'a>, Option<usize>)> {
    if attribute.flags & attribute::FLAGS_NHC != attribute::FLAGS_NHC {
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
    for item in nhc.characteristics().filter_map(Result::ok) {
        if let Some(before) = before {
            if item.code < before.code {
                report.push(Rule::PncNhcOrder, item.offset, 2);
            } else if (item.code, item.value) == (before.code, before.value) {
                report.push(Rule::PncNhcDuplicate, item.offset, 2);
            }
        }
        before = Some(item);
        if item.code == code {
            if item.value.is_empty() {
                pnc_at = pnc_at.or(Some(item.offset));
            } else {
                report.push(Rule::PncNhcLength, item.offset + 2, 2);
            }
        }
    }
    Some((nhc, pnc_at))
}

/// A characteristic to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CharacteristicRepr<'a> {
    /// Characteristic code.
    pub code: u16,
    /// Value; empty for PNC.
    pub value: &'a [u8],
}

/// An NHC attribute to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NhcRepr<'a> {
    /// Address family of the routes.
    pub afi: u16,
    /// Subsequent address family of the routes.
    pub safi: u8,
    /// Next hop of the route; a different one for negative testing.
    pub next_hop: IpAddr,
    /// Characteristics in increasing order of their codes; written in the order given.
    pub characteristics: &'a [CharacteristicRepr<'a>],
}

impl NhcRepr<'_> {
    /// Returns the attribute with flags, type and length.
    ///
    /// # Errors
    /// Fails if a value is too long for its length field.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut value = Writer::new(LAYER);
        value.u16(self.afi);
        value.put(&[self.safi]);
        match self.next_hop {
            IpAddr::V4(v4) => value.counted_octets(1, "Next Hop Length", &v4.octets())?,
            IpAddr::V6(v6) => value.counted_octets(1, "Next Hop Length", &v6.octets())?,
        }
        for item in self.characteristics {
            value.u16(item.code);
            value.counted_octets(2, "Characteristic Length", item.value)?;
        }
        let mut w = Writer::new(LAYER);
        w.attribute(attribute::FLAGS_NHC, attribute::NHC, &value.finish())?;
        Ok(w.finish())
    }
}
