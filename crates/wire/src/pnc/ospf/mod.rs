//! Shared parts of OSPFv2 and OSPFv3: the LS Update packet, its LSAs, and the walk over their
//! prefixes. `ospf2.rs` and `ospf3.rs` have the differences and the figures.

pub mod ospf2;
pub mod ospf3;

use super::tlv::{FlagsSubTlv, Region, Shape, Tlv, Writer};
use super::{Advertisement, Inner, Prefix, Report, Walk};
use crate::checksum;
use crate::error::{Error, Result};
use crate::finding::Rule;
use crate::layer::Layer;
use crate::octets::{ipv4_at, u8_at, u16_at, u32_at};
use std::net::Ipv4Addr;

const LS_UPDATE: u8 = 4;
/// Length of an LSA header in octets.
pub(super) const LSA_HEADER: usize = 20;

mod field {
    pub const LENGTH: usize = 2;
    pub const ROUTER: usize = 4;
    pub const AREA: usize = 8;
    /// Only in OSPFv3.
    pub const INSTANCE: usize = 14;
}

/// Offsets in an LSA header; identical in both versions from the Link State ID on.
pub(super) mod lsa_field {
    pub const OPTIONS: usize = 2;
    pub const TYPE: usize = 3;
    pub const LINK_STATE_ID: usize = 4;
    pub const ADVERTISING_ROUTER: usize = 8;
    pub const CHECKSUM: usize = 16;
    pub const LENGTH: usize = 18;
}

/// An LS Update of OSPF version `V`, from its version octet on. Octets after its packet length
/// (authentication data, link-local signalling) are ignored.
#[derive(Clone, Copy, Debug)]
pub struct LsUpdate<'a, const V: u8> {
    bytes: &'a [u8],
    end: usize,
}

impl<'a, const V: u8> LsUpdate<'a, V> {
    const LAYER: Layer = if V == 2 { Layer::Ospf2 } else { Layer::Ospf3 };
    /// Length of the packet header in octets; the number of LSAs follows.
    const HEADER: usize = if V == 2 { 24 } else { 16 };

    /// Returns true if `bytes` begin with the header of such a packet.
    #[must_use]
    pub fn is_at(bytes: &[u8]) -> bool {
        bytes.starts_with(&[V, LS_UPDATE])
    }

    /// Parses the header of an LS Update that had `wire_len` octets on the wire; the capture may
    /// have truncated it.
    ///
    /// # Errors
    /// Fails if it is not an LS Update of this version, is longer than `wire_len`, or its header is
    /// incomplete.
    pub fn new_checked(bytes: &'a [u8], wire_len: usize) -> Result<Self> {
        let (layer, least) = (Self::LAYER, Self::HEADER + 4);
        if bytes.len() < least {
            return Err(Error::short(layer, least, bytes.len()));
        }
        if u8_at(bytes, 0) != V {
            let expected = if V == 2 { "2" } else { "3" };
            let value = u64::from(u8_at(bytes, 0));
            return Err(Error::value(layer, 0, "Version", value, expected));
        }
        if u8_at(bytes, 1) != LS_UPDATE {
            let value = u64::from(u8_at(bytes, 1));
            return Err(Error::value(layer, 1, "Type", value, "4 (LS Update)"));
        }
        let end = usize::from(u16_at(bytes, field::LENGTH));
        if end < least || end > wire_len {
            let (at, field) = (field::LENGTH, "Packet Length");
            return Err(Error::length(layer, at, field, end, least, wire_len));
        }
        Ok(Self { bytes, end })
    }

    /// Returns the LSAs of the types that advertise prefixes, with or without a body: the offset
    /// and the header of each.
    pub fn lsas(&self) -> impl Iterator<Item = (usize, &'a [u8])> + use<'a, V> {
        let mut lsas = self.all_lsas();
        core::iter::from_fn(move || {
            loop {
                let (header, offset, _) = lsas.next(&mut Report::discard())?;
                if prefix_tlvs(V, header).is_some() {
                    return Some((offset, header));
                }
            }
        })
    }

    /// Returns the area in which it is sent.
    #[must_use]
    pub fn area(&self) -> Ipv4Addr {
        ipv4_at(self.bytes, field::AREA)
    }

    fn all_lsas(&self) -> Lsas<'a> {
        Lsas {
            region: Region::new(self.bytes, Self::HEADER + 4, self.end),
            count_at: Self::HEADER,
            left: u32_at(self.bytes, Self::HEADER),
        }
    }

    /// Creates a view of all octets after the header, regardless of its length field.
    pub(super) fn all_of(bytes: &'a [u8]) -> Option<Self> {
        let end = bytes.len();
        (Self::is_at(bytes) && end >= Self::HEADER + 4).then_some(Self { bytes, end })
    }

    /// Returns the advertised prefixes, in order.
    #[must_use]
    pub fn advertisements(&self) -> Walk<'a> {
        Walk(Inner::Ospf(Advertisements {
            version: V,
            area: self.area(),
            v6: V == 3 && ospf3::is_v6(u8_at(self.bytes, field::INSTANCE)),
            lsas: self.all_lsas(),
            body: Region::whole(&[], 0),
            tlvs: Region::whole(&[], 0),
            lsa: &[],
            lsa_at: 0,
            prefix_tlvs: PrefixTlvSpec::default(),
            seen: false,
            ignored: false,
        }))
    }

    /// Writes the packet except for its checksum; `tail` is the part of the header after the area,
    /// `lsa` writes one LSA.
    pub(super) fn write<T>(
        (router, area): (Ipv4Addr, Ipv4Addr),
        tail: &[u8],
        lsas: &[T],
        lsa: impl Fn(&mut Writer, &T) -> Result<()>,
    ) -> Result<Writer> {
        let mut w = Writer::new(Self::LAYER);
        w.put(&[V, LS_UPDATE, 0, 0]);
        debug_assert_eq!(w.len(), field::ROUTER);
        w.put(&router.octets());
        w.put(&area.octets());
        w.put(tail);
        debug_assert_eq!(w.len(), Self::HEADER);
        w.u32(lsas.len() as u32);
        lsas.iter().try_for_each(|entry| lsa(&mut w, entry))?;
        w.patch_len(field::LENGTH, 2, "Packet Length", w.len())?;
        Ok(w)
    }
}

/// LSAs of an LS Update.
#[derive(Clone, Copy, Debug)]
struct Lsas<'a> {
    region: Region<'a>,
    count_at: usize,
    left: u32,
}

impl<'a> Lsas<'a> {
    /// Returns the header, offset and body of the next LSA. Ends at a broken one.
    fn next(&mut self, report: &mut Report<'_>) -> Option<(&'a [u8], usize, Region<'a>)> {
        if (self.left == 0) != (self.region.left() == 0) {
            // The number of octets does not match the number of LSAs.
            report.push(Rule::PncMalformed, self.count_at, 4);
            self.left = 0;
        }
        let found = (self.left > 0).then(|| self.lsa(report)).flatten();
        match found {
            Some(_) => self.left -= 1,
            None => {
                self.region.stop();
                self.left = 0;
            }
        }
        found
    }

    fn lsa(&mut self, report: &mut Report<'_>) -> Option<(&'a [u8], usize, Region<'a>)> {
        let offset = self.region.at;
        let header = self.region.take(LSA_HEADER, report)?;
        let len = usize::from(u16_at(header, lsa_field::LENGTH));
        let length_at = offset + lsa_field::LENGTH;
        let body = len.checked_sub(LSA_HEADER).unwrap_or(usize::MAX);
        let body = self.region.sub(body, length_at, 2, report)?;
        Some((header, offset, body))
    }
}

/// Returns the TLVs with prefixes in the LSA with that header, if there are any.
fn prefix_tlvs(version: u8, header: &[u8]) -> Option<PrefixTlvSpec> {
    match version {
        2 => ospf2::prefix_tlvs(header),
        _ => ospf3::prefix_tlvs(u16_at(header, lsa_field::OPTIONS)),
    }
}

/// Type of the TLVs with prefixes in an LSA, with parameters for the walk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PrefixTlvSpec {
    pub(super) tlv: u16,
    /// Octets of the LSA's body before its TLVs.
    pub(super) head: usize,
    /// Only the first TLV counts (RFC 8362).
    pub(super) single: bool,
}

/// Maximum number of TLVs of an LSA that are searched for the same prefix, so that the work stays
/// proportional to the packet; more than fit into an Ethernet frame.
const MAX_COMPARED: usize = 512;

/// Iterator over the prefixes of the LSAs in an LS Update.
#[derive(Clone, Debug)]
pub(super) struct Advertisements<'a> {
    version: u8,
    area: Ipv4Addr,
    v6: bool,
    lsas: Lsas<'a>,
    /// All TLVs of the current LSA, and those not read yet.
    body: Region<'a>,
    tlvs: Region<'a>,
    lsa: &'a [u8],
    lsa_at: usize,
    prefix_tlvs: PrefixTlvSpec,
    /// True if the current LSA has had such a TLV.
    seen: bool,
    /// True if the current LSA is malformed and has to be ignored (RFC 9792 section 2).
    ignored: bool,
}

impl<'a> Advertisements<'a> {
    pub(super) fn step(&mut self, report: &mut Report<'_>) -> Option<Advertisement<'a>> {
        loop {
            while let Some(tlv) = self.tlvs.next(Shape::Padded, report) {
                if tlv.kind != self.prefix_tlvs.tlv {
                    continue;
                }
                if core::mem::replace(&mut self.seen, true) && self.prefix_tlvs.single {
                    report.push(Rule::PncSeveral, tlv.at, 2);
                    continue;
                }
                if self.version == 2 && self.is_repeated(&tlv) {
                    report.push(Rule::PncSeveral, tlv.at, 2);
                    continue;
                }
                if let Some(found) = self.prefix(&tlv, report) {
                    report.host_only(&found);
                    return Some(found);
                }
            }
            let (header, offset, mut body) = self.lsas.next(report)?;
            if let Some(spec) = prefix_tlvs(self.version, header)
                && body.take(spec.head, report).is_some()
            {
                (self.lsa, self.lsa_at) = (header, offset);
                (self.body, self.tlvs) = (body, body);
                (self.prefix_tlvs, self.seen) = (spec, false);
                self.ignored = self.is_malformed();
            }
        }
    }

    const fn flags(&self) -> FlagsSubTlv {
        match self.version {
            2 => ospf2::FLAGS,
            _ => ospf3::FLAGS,
        }
    }

    /// Returns true if flags among the prefixes' sub-TLVs make the current LSA malformed.
    fn is_malformed(&self) -> bool {
        let (flags, nobody) = (self.flags(), &mut Report::discard());
        let mut tlvs = self.tlvs;
        while let Some(tlv) = tlvs.next(Shape::Padded, nobody) {
            let mut subs = tlv.value;
            if tlv.kind != self.prefix_tlvs.tlv || self.head(&mut subs, u8::MAX, nobody).is_none() {
                continue;
            }
            while let Some(sub) = subs.next(Shape::Padded, nobody) {
                if sub.kind == flags.kind && !flags.has_good_length(&sub) {
                    return true;
                }
            }
        }
        false
    }

    /// Returns true if an earlier TLV of the current LSA has the same prefix: then only the earlier
    /// one is used (RFC 7684 section 2.1). Only the first TLVs are searched.
    fn is_repeated(&self, tlv: &Tlv<'a>) -> bool {
        let Some(prefix) = self.prefix_of(tlv) else {
            return false;
        };
        let mut earlier = self.body;
        for _ in 0..MAX_COMPARED {
            match earlier.next(Shape::Padded, &mut Report::discard()) {
                Some(other) if other.at < tlv.at => {
                    if other.kind == tlv.kind && self.prefix_of(&other) == Some(prefix) {
                        return true;
                    }
                }
                _ => break,
            }
        }
        false
    }

    fn prefix_of(&self, tlv: &Tlv<'a>) -> Option<Prefix> {
        let mut value = tlv.value;
        let (_, bits, address) = self.head(&mut value, 32, &mut Report::discard())?;
        Prefix::from_octets(false, address, bits)
    }

    /// Reads the part before a TLV's sub-TLVs: its first octets, prefix length and address. `None`
    /// if it is broken, or the prefix is of an unknown family.
    fn head(
        &self,
        value: &mut Region<'a>,
        most: u8,
        report: &mut Report<'_>,
    ) -> Option<(&'a [u8], u8, &'a [u8])> {
        let at = value.at;
        let (head, bits_at) = match self.version {
            2 => (value.take(4, report)?, 1),
            _ => (value.take(8, report)?, 4),
        };
        let bits = u8_at(head, bits_at);
        if self.version == 2 && u8_at(head, 2) != 0 {
            // RFC 7684 section 2.1 defines only IPv4 unicast; the length of another family's prefix
            // is unknown.
            return None;
        }
        if bits > most {
            report.push(Rule::PncMalformed, at + bits_at, 1);
            return None;
        }
        let len = match self.version {
            2 => 4,
            _ => ospf3::word_octets(bits),
        };
        Some((head, bits, value.take(len, report)?))
    }

    fn prefix(&self, tlv: &Tlv<'a>, report: &mut Report<'_>) -> Option<Advertisement<'a>> {
        let mut value = tlv.value;
        let most = if self.v6 { 128 } else { 32 };
        let (head, bits, address) = self.head(&mut value, most, report)?;
        let mut found = Advertisement {
            origin: match self.version {
                2 => ospf2::origin(self.area, self.lsa, u8_at(head, 0)),
                _ => ospf3::origin(self.area, self.lsa),
            },
            prefix: Prefix::from_octets(self.v6, address, bits),
            container: self.lsa_at,
            offset: tlv.at,
            carrier: None,
            flag_offset: None,
            ignored: self.ignored,
            pnc: false,
        };
        self.flags().read(value, &mut found, report);
        Some(found)
    }
}

/// Header of an LSA to write.
pub(super) struct LsaHeader {
    pub(super) age: u16,
    pub(super) options_and_type: u16,
    pub(super) link_state_id: u32,
    pub(super) advertising_router: Ipv4Addr,
    pub(super) sequence: u32,
}

impl LsaHeader {
    /// Writes an LSA: the header, the output of `body`, then length and checksum.
    pub(super) fn write(
        &self,
        w: &mut Writer,
        body: impl FnOnce(&mut Writer) -> Result<()>,
    ) -> Result<()> {
        let start = w.len();
        w.u16(self.age);
        w.u16(self.options_and_type);
        w.u32(self.link_state_id);
        w.put(&self.advertising_router.octets());
        w.u32(self.sequence);
        w.u32(0);
        body(w)?;
        w.patch_len(start + lsa_field::LENGTH, 2, "LSA length", w.len() - start)?;
        // RFC 2328 section 12.1.7: without the age.
        let covered = lsa_field::OPTIONS;
        let sum = checksum::fletcher(
            w.octets_from(start + covered),
            lsa_field::CHECKSUM - covered,
        );
        w.patch(start + lsa_field::CHECKSUM, &sum.to_be_bytes());
        Ok(())
    }
}
