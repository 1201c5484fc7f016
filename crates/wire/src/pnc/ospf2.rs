//! PNC in OSPFv2: the OSPFv2 Prefix Extended Flags sub-TLV (RFC 9792) of Extended Prefix TLVs in Extended Prefix Opaque LSAs
//! (RFC 7684), read from and written as LS Update packets.
//!
//! Other packets, LSAs and TLVs are passed over. The IP header is `frame.rs`'s business.

use super::tlv::{Region, Tlv, Writer, fletcher, internet};
use super::{Advertisement, Carrier, Flooding, Origin, Prefix, Report};
use crate::error::{Error, Result};
use crate::finding::{Findings, Rule};
use crate::layer::Layer;
use crate::octets::{ipv4_at, u8_at, u16_at, u24_at, u32_at};
use std::net::{IpAddr, Ipv4Addr};

/// OSPF version.
pub const VERSION: u8 = 2;
/// Packet type of an LS Update.
pub const LS_UPDATE: u8 = 4;
/// Opaque type of the Extended Prefix Opaque LSA (RFC 7684 section 2).
pub const OPAQUE_EXTENDED_PREFIX: u8 = 7;
/// TLV type of the Extended Prefix TLV (RFC 7684 section 2.1).
pub const EXTENDED_PREFIX_TLV: u16 = 1;
/// Route type of the Extended Prefix TLV: intra-area.
pub const INTRA_AREA: u8 = 1;
/// Route type of the Extended Prefix TLV: inter-area.
pub const INTER_AREA: u8 = 3;
/// Sub-TLV type of the OSPFv2 Prefix Extended Flags (RFC 9792 section 2).
pub const FLAGS_SUB_TLV: u16 = 11;
/// PNC in the first octet of the Prefix Extended Flags: bit 2 of 32 (draft section 5.1.2).
pub const FLAG_PNC: u8 = 0x20;
/// Flags that say PNC and nothing else.
pub const FLAGS_PNC_ONLY: [u8; 4] = [FLAG_PNC, 0, 0, 0];

/// Octets of an Extended Prefix TLV of IPv4 in front of its sub-TLVs.
const PREFIX_HEAD: usize = 8;
/// Octets of the packet header.
pub const HEADER: usize = 24;
/// Octets of an LSA header, in OSPFv2 and OSPFv3.
pub const LSA_HEADER: usize = 20;

mod field {
    pub const LENGTH: usize = 2;
    pub const AREA: usize = 8;
    pub const CHECKSUM: usize = 12;
    pub const AUTHENTICATION: usize = 16;
}

/// Offsets in an LSA header, the same in OSPFv2 and OSPFv3 from the Link State ID on.
pub(super) mod lsa_field {
    pub const OPTIONS: usize = 2;
    pub const TYPE: usize = 3;
    pub const LINK_STATE_ID: usize = 4;
    pub const ADVERTISING_ROUTER: usize = 8;
    pub const CHECKSUM: usize = 16;
    pub const LENGTH: usize = 18;
}

/// Whether `bytes` begin with the header of an OSPFv2 LS Update.
#[must_use]
pub fn is_ls_update(bytes: &[u8]) -> bool {
    bytes.starts_with(&[VERSION, LS_UPDATE])
}

/// Checks an OSPF header of `header` octets, and returns the packet's length.
pub(super) fn read_header(
    bytes: &[u8],
    layer: Layer,
    version: u8,
    header: usize,
    wire_len: usize,
) -> Result<usize> {
    // The number of LSAs follows the header.
    let least = header + 4;
    if bytes.len() < least {
        return Err(Error::short(layer, least, bytes.len()));
    }
    if u8_at(bytes, 0) != version {
        let expected = if version == VERSION { "2" } else { "3" };
        let value = u64::from(u8_at(bytes, 0));
        return Err(Error::value(layer, 0, "Version", value, expected));
    }
    if u8_at(bytes, 1) != LS_UPDATE {
        let value = u64::from(u8_at(bytes, 1));
        return Err(Error::value(layer, 1, "Type", value, "4 (LS Update)"));
    }
    let end = usize::from(u16_at(bytes, field::LENGTH));
    if end < least || end > wire_len {
        return Err(Error::length(
            layer,
            field::LENGTH,
            "Packet Length",
            end,
            least,
            wire_len,
        ));
    }
    Ok(end)
}

/// The LSAs of an LS Update, of either version.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lsas<'a> {
    region: Region<'a>,
    count_at: usize,
    left: u32,
}

impl<'a> Lsas<'a> {
    pub(super) fn new(bytes: &'a [u8], count_at: usize, end: usize) -> Self {
        Self {
            region: Region::new(bytes, count_at + 4, end),
            count_at,
            left: u32_at(bytes, count_at),
        }
    }

    /// The next LSA: its header, where that begins, and its body.
    pub(super) fn next(
        &mut self,
        report: &mut Report<'_>,
    ) -> Option<(&'a [u8], usize, Region<'a>)> {
        let offset = self.region.at;
        if (self.left == 0) != (self.region.left() == 0) {
            // More or fewer octets than the number of LSAs says.
            report.push(Rule::PncMalformed, self.count_at, 4);
            self.region.stop();
            self.left = 0;
        }
        if self.left == 0 {
            return None;
        }
        let Some(header) = self.region.take(LSA_HEADER, report) else {
            // Said once is enough.
            self.left = 0;
            return None;
        };
        let len = usize::from(u16_at(header, lsa_field::LENGTH));
        let length_at = offset + lsa_field::LENGTH;
        let Some(body_len) = len.checked_sub(LSA_HEADER) else {
            report.push(Rule::PncMalformed, length_at, 2);
            self.region.stop();
            self.left = 0;
            return None;
        };
        let Some(body) = self.region.sub(body_len, length_at, 2, report) else {
            self.left = 0;
            return None;
        };
        self.left -= 1;
        Some((header, offset, body))
    }
}

/// Reads the Prefix Extended Flags among the sub-TLVs `subs`, of type `kind`, into `found` (RFC 9792 section 2: whole
/// 32-bit words, no more than the bits that are set need).
pub(super) fn read_flags<'a>(
    mut subs: Region<'a>,
    kind: u16,
    found: &mut Advertisement<'a>,
    report: &mut Report<'_>,
) {
    while subs.left() > 0 {
        let head = subs;
        let Some(sub) = subs.wide(report) else {
            if u16_at(head.bytes, head.at) == kind && found.carrier.is_none() {
                found.carrier = head.overrun(4);
            }
            return;
        };
        if sub.kind != kind {
            continue;
        }
        if !has_whole_words(&sub) {
            report.push(Rule::PncFlagsLength, sub.length_at, 2);
        }
        if found.carrier.is_some() {
            report.push(Rule::PncSeveral, sub.length_at - 2, 2);
            continue;
        }
        let Some(octets) = sub.octets() else { continue };
        let offset = sub.value.at;
        found.carrier = Some(Carrier { offset, octets });
        if found.ignored {
            continue;
        }
        if octets.len() > 4 && octets.ends_with(&[0; 4]) {
            report.push(Rule::PncFlagsExcess, sub.length_at, 2);
        }
        found.flag_offset = Some(offset);
        found.pnc = u8_at(octets, 0) & FLAG_PNC != 0;
    }
}

/// Whether flags have a length that RFC 9792 allows; without a word there is nothing to be said by them.
fn has_whole_words(sub: &Tlv<'_>) -> bool {
    let len = sub.value.left();
    len > 0 && len.is_multiple_of(4)
}

/// Whether flags among the prefixes' sub-TLVs make the LSA malformed, which is then to be ignored (RFC 9792 section 2).
/// `subs_of` gives the sub-TLVs of a TLV, if it has some that count.
pub(super) fn is_malformed<'a>(
    mut tlvs: Region<'a>,
    kind: u16,
    subs_of: impl Fn(&Tlv<'a>) -> Option<Region<'a>>,
) -> bool {
    let nobody = &mut Report::nowhere();
    while let Some(tlv) = tlvs.wide(nobody) {
        let Some(mut subs) = subs_of(&tlv) else {
            continue;
        };
        while let Some(sub) = subs.wide(nobody) {
            if sub.kind == kind && !has_whole_words(&sub) {
                return true;
            }
        }
    }
    false
}

/// An OSPFv2 LS Update, from its version octet on. Octets behind its packet length (authentication data, link-local
/// signalling) are left alone.
#[derive(Clone, Copy, Debug)]
pub struct LsUpdate<'a> {
    bytes: &'a [u8],
    end: usize,
}

impl<'a> LsUpdate<'a> {
    /// Reads the header of a packet that is there as a whole.
    ///
    /// # Errors
    /// Not an OSPFv2 LS Update, or `bytes` end before it does.
    pub fn new(bytes: &'a [u8]) -> Result<Self> {
        Self::read(bytes, bytes.len())
    }

    /// The same for a packet of which a capture may have cut off the end.
    ///
    /// # Errors
    /// Not an OSPFv2 LS Update, or the header is not whole.
    pub fn new_lax(bytes: &'a [u8]) -> Result<Self> {
        Self::read(bytes, usize::MAX)
    }

    /// All octets behind the header, whatever its length says.
    pub(super) fn all_of(bytes: &'a [u8]) -> Option<Self> {
        let end = bytes.len();
        (is_ls_update(bytes) && end >= HEADER + 4).then_some(Self { bytes, end })
    }

    pub(super) fn read(bytes: &'a [u8], wire_len: usize) -> Result<Self> {
        let end = read_header(bytes, Layer::Ospf2, VERSION, HEADER, wire_len)?;
        Ok(Self { bytes, end })
    }

    /// Router ID of the router that sent the packet.
    #[must_use]
    pub fn router_id(&self) -> Ipv4Addr {
        ipv4_at(self.bytes, 4)
    }

    /// Area ID.
    #[must_use]
    pub fn area(&self) -> Ipv4Addr {
        ipv4_at(self.bytes, field::AREA)
    }

    /// Whether the capture ends before the packet does.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.end > self.bytes.len()
    }

    /// The advertised prefixes, in their order.
    #[must_use]
    pub fn advertisements(&self) -> Advertisements<'a> {
        Advertisements {
            area: self.area(),
            lsas: Lsas::new(self.bytes, HEADER, self.end),
            tlvs: Region::new(self.bytes, HEADER, HEADER),
            lsa: &[],
            lsa_at: HEADER,
            ignored: false,
        }
    }

    /// Puts the rules that the packet breaks, as far as PNC goes, into `findings`.
    pub fn check(&self, findings: &mut Findings) {
        let mut walk = self.advertisements();
        while walk.next_checked(findings).is_some() {}
    }
}

/// The prefixes of the Extended Prefix Opaque LSAs in an LS Update.
#[derive(Clone, Debug)]
pub struct Advertisements<'a> {
    area: Ipv4Addr,
    lsas: Lsas<'a>,
    tlvs: Region<'a>,
    lsa: &'a [u8],
    lsa_at: usize,
    /// Whether the present LSA is to be ignored.
    ignored: bool,
}

impl<'a> Advertisements<'a> {
    /// The next prefix; rules found broken on the way to it, and in it, go to `findings`.
    pub fn next_checked(&mut self, findings: &mut Findings) -> Option<Advertisement<'a>> {
        self.step(&mut Report::to(findings))
    }

    fn step(&mut self, report: &mut Report<'_>) -> Option<Advertisement<'a>> {
        loop {
            while let Some(tlv) = self.tlvs.wide(report) {
                if tlv.kind == EXTENDED_PREFIX_TLV
                    && let Some(found) = self.prefix(&tlv, report)
                {
                    report.host_only(&found);
                    return Some(found);
                }
            }
            let (header, offset, body) = self.lsas.next(report)?;
            if matches!(u8_at(header, lsa_field::TYPE), 9..=11)
                && u8_at(header, lsa_field::LINK_STATE_ID) == OPAQUE_EXTENDED_PREFIX
            {
                (self.lsa, self.lsa_at, self.tlvs) = (header, offset, body);
                self.ignored = is_malformed(body, FLAGS_SUB_TLV, |tlv| {
                    let mut value = tlv.value;
                    let counts = tlv.kind == EXTENDED_PREFIX_TLV;
                    let head = value.take(PREFIX_HEAD, &mut Report::nowhere())?;
                    (counts && u8_at(head, 2) == 0).then_some(value)
                });
            }
        }
    }

    fn prefix(&self, tlv: &Tlv<'a>, report: &mut Report<'_>) -> Option<Advertisement<'a>> {
        let offset = tlv.length_at - 2;
        let mut value = tlv.value;
        let head = value.take(4, report)?;
        let (route_type, bits, family) = (u8_at(head, 0), u8_at(head, 1), u8_at(head, 2));
        if family != 0 {
            // RFC 7684 section 2.1 knows IPv4 unicast alone; how long another family's prefix is cannot be told.
            return None;
        }
        if bits > 32 {
            report.push(Rule::PncMalformed, tlv.value.at + 1, 1);
            return None;
        }
        let prefix = Prefix::from_octets(false, value.take(4, report)?, bits);
        let mut found = Advertisement {
            origin: Origin::Ospf2 {
                area: self.area,
                advertising_router: ipv4_at(self.lsa, lsa_field::ADVERTISING_ROUTER),
                opaque_id: u24_at(self.lsa, lsa_field::LINK_STATE_ID + 1),
                flooding: match u8_at(self.lsa, lsa_field::TYPE) {
                    9 => Flooding::Link,
                    10 => Flooding::Area,
                    _ => Flooding::Domain,
                },
                route_type,
            },
            prefix,
            container: self.lsa_at,
            offset,
            carrier: None,
            flag_offset: None,
            ignored: self.ignored,
            pnc: false,
        };
        read_flags(value, FLAGS_SUB_TLV, &mut found, report);
        Some(found)
    }
}

impl<'a> Iterator for Advertisements<'a> {
    type Item = Advertisement<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(&mut Report::nowhere())
    }
}

/// Writes an OSPFv2 Prefix Extended Flags sub-TLV with `flags` (a multiple of 4 octets, at least 4; other lengths for
/// negative testing) to `out`, and returns its length with padding.
///
/// # Errors
/// `flags` too long, or `out` too small.
pub fn emit_flags(flags: &[u8], out: &mut [u8]) -> Result<usize> {
    let mut w = Writer::new(out);
    write_flags(&mut w, Layer::Ospf2, FLAGS_SUB_TLV, flags)?;
    w.finish(Layer::Ospf2)
}

pub(super) fn write_flags(w: &mut Writer<'_>, layer: Layer, kind: u16, flags: &[u8]) -> Result<()> {
    w.u16(kind);
    let at = w.at();
    w.u16(0);
    w.put(flags);
    w.patch_len16(layer, at, "sub-TLV length", flags.len())?;
    w.align4(at + 2);
    Ok(())
}

/// Writes an LSA: header with `options_and_type`, then what `body` writes, then length and checksum.
pub(super) fn write_lsa(
    w: &mut Writer<'_>,
    layer: Layer,
    age: u16,
    options_and_type: u16,
    (id, router, sequence): (u32, Ipv4Addr, u32),
    body: impl FnOnce(&mut Writer<'_>) -> Result<()>,
) -> Result<()> {
    let start = w.at();
    w.u16(age);
    w.u16(options_and_type);
    w.u32(id);
    w.put(&router.octets());
    w.u32(sequence);
    w.u32(0);
    body(w)?;
    w.patch_len16(
        layer,
        start + lsa_field::LENGTH,
        "LSA length",
        w.at() - start,
    )?;
    // RFC 2328 section 12.1.7: without the age.
    let covered = lsa_field::OPTIONS;
    let sum = fletcher(w.written(start + covered), lsa_field::CHECKSUM - covered);
    w.patch(start + lsa_field::CHECKSUM, &sum.to_be_bytes());
    Ok(())
}

/// One Extended Prefix TLV to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtendedPrefixRepr<'a> {
    /// 0 unspecified, 1 intra-area, 3 inter-area, 5 external, 7 NSSA external.
    pub route_type: u8,
    /// The prefix; IPv4.
    pub prefix: Prefix,
    /// Flags octet of the TLV: A 0x80, N 0x40.
    pub tlv_flags: u8,
    /// Prefix Extended Flags octets; `None` writes no sub-TLV.
    pub flags: Option<&'a [u8]>,
}

/// One Extended Prefix Opaque LSA to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LsaRepr<'a> {
    /// LS age in seconds, 0 to 3600.
    pub age: u16,
    /// Flooding scope; [`Flooding::Reserved`] cannot be written.
    pub flooding: Flooding,
    /// Opaque ID, 24 bits.
    pub opaque_id: u32,
    /// Advertising router.
    pub advertising_router: Ipv4Addr,
    /// LS sequence number; the first is 0x80000001.
    pub sequence: u32,
    /// Its prefixes.
    pub prefixes: &'a [ExtendedPrefixRepr<'a>],
}

/// An OSPFv2 LS Update to be written, without authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LsUpdateRepr<'a> {
    /// Router that sends the packet.
    pub router_id: Ipv4Addr,
    /// Area ID.
    pub area: Ipv4Addr,
    /// Its LSAs.
    pub lsas: &'a [LsaRepr<'a>],
}

impl LsUpdateRepr<'_> {
    /// Octets of the packet.
    ///
    /// # Errors
    /// What cannot be written, see [`emit`](Self::emit).
    pub fn buffer_len(&self) -> Result<usize> {
        let mut w = Writer::new(&mut []);
        self.write(&mut w)?;
        Ok(w.at())
    }

    /// Writes the packet with its lengths and checksums, and returns its length.
    ///
    /// # Errors
    /// A prefix that is not IPv4, a scope that OSPFv2 does not have, lengths too large for their fields, or `out` too small.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize> {
        let mut w = Writer::new(out);
        self.write(&mut w)?;
        // RFC 2328 section A.3.1: without the authentication field, which is 0 here.
        let sum = internet(&[w.written(0)]);
        w.patch(field::CHECKSUM, &sum.to_be_bytes());
        w.finish(Layer::Ospf2)
    }

    fn write(&self, w: &mut Writer<'_>) -> Result<()> {
        const LAYER: Layer = Layer::Ospf2;
        w.put(&[VERSION, LS_UPDATE, 0, 0]);
        w.put(&self.router_id.octets());
        w.put(&self.area.octets());
        w.u32(0);
        debug_assert_eq!(w.at(), field::AUTHENTICATION);
        w.put(&[0; 8]);
        w.u32(self.lsas.len() as u32);
        for lsa in self.lsas {
            let kind = match lsa.flooding {
                Flooding::Link => 9,
                Flooding::Area => 10,
                Flooding::Domain => 11,
                Flooding::Reserved => {
                    let at = w.at() + lsa_field::TYPE;
                    return Err(Error::value(
                        LAYER,
                        at,
                        "LS Type",
                        0,
                        "link, area or domain scope",
                    ));
                }
            };
            // Options: O, opaque LSAs are understood (RFC 5250).
            let options_and_type = 0x4000 | kind;
            let id = u32::from(OPAQUE_EXTENDED_PREFIX) << 24 | (lsa.opaque_id & 0x00FF_FFFF);
            write_lsa(
                w,
                LAYER,
                lsa.age,
                options_and_type,
                (id, lsa.advertising_router, lsa.sequence),
                |w| lsa.prefixes.iter().try_for_each(|p| p.write(w)),
            )?;
        }
        w.patch_len16(LAYER, field::LENGTH, "Packet Length", w.at())
    }
}

impl ExtendedPrefixRepr<'_> {
    fn write(&self, w: &mut Writer<'_>) -> Result<()> {
        const LAYER: Layer = Layer::Ospf2;
        let IpAddr::V4(address) = self.prefix.address() else {
            return Err(Error::value(LAYER, w.at(), "prefix", 6, "an IPv4 prefix"));
        };
        w.u16(EXTENDED_PREFIX_TLV);
        let at = w.at();
        w.u16(0);
        w.put(&[self.route_type, self.prefix.bits(), 0, self.tlv_flags]);
        w.put(&address.octets());
        if let Some(flags) = self.flags {
            write_flags(w, LAYER, FLAGS_SUB_TLV, flags)?;
        }
        w.patch_len16(LAYER, at, "TLV length", w.at() - at - 2)
    }
}
