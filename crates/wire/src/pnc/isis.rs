//! PNC in IS-IS: the Prefix Attribute Flags sub-TLV (RFC 7794) of the prefixes in an LSP, read and written.
//!
//! Read are the Extended IP Reachability TLVs 135 (RFC 5305), 236 (RFC 5308), 235 and 237 (RFC 5120), and the SRv6
//! Locator TLV 27 (RFC 9352). Hellos, sequence-number PDUs and other TLVs are passed over. LLC and Ethernet are
//! `frame.rs`'s business.

use super::tlv::{Region, Writer, fletcher};
use super::{Advertisement, Carrier, Level, Origin, Prefix, Report};
use crate::error::{Error, Result};
use crate::finding::{Findings, Rule};
use crate::layer::Layer;
use crate::octets::{array, u8_at, u16_at, u32_at};

/// Intradomain Routeing Protocol Discriminator: the first octet of an IS-IS PDU.
pub const DISCRIMINATOR: u8 = 0x83;
/// PDU type of a level 1 LSP.
pub const PDU_L1_LSP: u8 = 18;
/// PDU type of a level 2 LSP.
pub const PDU_L2_LSP: u8 = 20;
/// Sub-TLV type of the Prefix Attribute Flags (RFC 7794 section 2.1).
pub const FLAGS_SUB_TLV: u8 = 4;
/// Re-advertisement flag (R) in the first octet of the Prefix Attribute Flags: bit 1 (RFC 7794 section 2.1).
pub const FLAG_READVERTISED: u8 = 0x40;
/// PNC in the first octet of the Prefix Attribute Flags: bit 7 (draft section 5.1.1).
pub const FLAG_PNC: u8 = 0x01;

/// TLV types read here.
pub mod tlv_type {
    /// SRv6 Locator (RFC 9352 section 7.1).
    pub const SRV6_LOCATOR: u8 = 27;
    /// Extended IP Reachability (RFC 5305 section 4).
    pub const IP_REACH: u8 = 135;
    /// Multi-topology IP Reachability (RFC 5120 section 7.3).
    pub const MT_IP_REACH: u8 = 235;
    /// IPv6 Reachability (RFC 5308 section 2).
    pub const IPV6_REACH: u8 = 236;
    /// Multi-topology IPv6 Reachability (RFC 5120 section 7.4).
    pub const MT_IPV6_REACH: u8 = 237;
    pub(super) const AREA_ADDRESSES: u8 = 1;
    pub(super) const PROTOCOLS: u8 = 129;
    pub(super) const HOSTNAME: u8 = 137;
}

/// Octets of an LSP's header; TLVs begin here.
pub const HEADER: usize = 27;

mod field {
    pub const LENGTH_INDICATOR: usize = 1;
    pub const ID_LENGTH: usize = 3;
    pub const PDU_TYPE: usize = 4;
    pub const PDU_LENGTH: usize = 8;
    pub const LIFETIME: usize = 10;
    pub const LSP_ID: usize = 12;
    pub const SEQUENCE: usize = 20;
    pub const CHECKSUM: usize = 24;
}

const DOWN: u8 = 0x80;
const V4_SUB_TLVS: u8 = 0x40;
const V6_SUB_TLVS: u8 = 0x20;
const V4_BITS: u8 = 0x3F;

/// Whether `bytes` begin with the header of an LSP of either level.
#[must_use]
pub fn is_lsp(bytes: &[u8]) -> bool {
    bytes.first() == Some(&DISCRIMINATOR)
        && bytes
            .get(field::PDU_TYPE)
            .is_some_and(|kind| matches!(kind & 0x1F, PDU_L1_LSP | PDU_L2_LSP))
}

/// A link state PDU, from its discriminator on. Octets behind its PDU length are left alone.
#[derive(Clone, Copy, Debug)]
pub struct Lsp<'a> {
    bytes: &'a [u8],
    end: usize,
}

impl<'a> Lsp<'a> {
    /// Reads the header of an LSP that is there as a whole.
    ///
    /// # Errors
    /// Not an LSP with 6-octet system IDs, or `bytes` end before it does.
    pub fn new(bytes: &'a [u8]) -> Result<Self> {
        Self::read(bytes, bytes.len())
    }

    /// The same for an LSP of which a capture may have cut off the end.
    ///
    /// # Errors
    /// Not an LSP with 6-octet system IDs, or the header is not whole.
    pub fn new_lax(bytes: &'a [u8]) -> Result<Self> {
        Self::read(bytes, usize::MAX)
    }

    /// All octets behind the header, whatever the lengths in it say.
    pub(super) fn all_of(bytes: &'a [u8]) -> Option<Self> {
        let end = bytes.len();
        (is_lsp(bytes) && end >= HEADER).then_some(Self { bytes, end })
    }

    pub(super) fn read(bytes: &'a [u8], wire_len: usize) -> Result<Self> {
        const LAYER: Layer = Layer::IsIs;
        if bytes.len() < HEADER {
            return Err(Error::short(LAYER, HEADER, bytes.len()));
        }
        if u8_at(bytes, 0) != DISCRIMINATOR {
            let value = u64::from(u8_at(bytes, 0));
            return Err(Error::value(LAYER, 0, "discriminator", value, "0x83"));
        }
        let indicator = usize::from(u8_at(bytes, field::LENGTH_INDICATOR));
        if indicator != HEADER {
            return Err(Error::length(
                LAYER,
                field::LENGTH_INDICATOR,
                "Length Indicator",
                indicator,
                HEADER,
                HEADER,
            ));
        }
        let id_length = u8_at(bytes, field::ID_LENGTH);
        if !matches!(id_length, 0 | 6) {
            return Err(Error::value(
                LAYER,
                field::ID_LENGTH,
                "ID Length",
                u64::from(id_length),
                "0 or 6 (6-octet system IDs)",
            ));
        }
        let kind = u8_at(bytes, field::PDU_TYPE) & 0x1F;
        if !matches!(kind, PDU_L1_LSP | PDU_L2_LSP) {
            return Err(Error::value(
                LAYER,
                field::PDU_TYPE,
                "PDU Type",
                u64::from(kind),
                "18 or 20 (LSP)",
            ));
        }
        let end = usize::from(u16_at(bytes, field::PDU_LENGTH));
        if end < HEADER || end > wire_len {
            return Err(Error::length(
                LAYER,
                field::PDU_LENGTH,
                "PDU Length",
                end,
                HEADER,
                wire_len,
            ));
        }
        Ok(Self { bytes, end })
    }

    /// The level.
    #[must_use]
    pub fn level(&self) -> Level {
        if u8_at(self.bytes, field::PDU_TYPE) & 0x1F == PDU_L1_LSP {
            Level::L1
        } else {
            Level::L2
        }
    }

    /// System ID (6 octets), pseudonode number, LSP number.
    #[must_use]
    pub fn lsp_id(&self) -> [u8; 8] {
        array(self.bytes, field::LSP_ID)
    }

    /// Sequence number.
    #[must_use]
    pub fn sequence(&self) -> u32 {
        u32_at(self.bytes, field::SEQUENCE)
    }

    /// Remaining lifetime in seconds; 0 purges the LSP.
    #[must_use]
    pub fn lifetime(&self) -> u16 {
        u16_at(self.bytes, field::LIFETIME)
    }

    /// PDU length in octets, header included.
    #[must_use]
    pub const fn pdu_len(&self) -> usize {
        self.end
    }

    /// Whether the capture ends before the LSP does.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.end > self.bytes.len()
    }

    /// The advertised prefixes, in their order.
    #[must_use]
    pub const fn advertisements(&self) -> Advertisements<'a> {
        Advertisements {
            lsp: *self,
            tlvs: Region::new(self.bytes, HEADER, self.end),
            entries: Region::new(self.bytes, HEADER, HEADER),
            tlv: 0,
            tlv_at: HEADER,
            topology: 0,
        }
    }

    /// Puts the rules that the LSP breaks, as far as PNC goes, into `findings`.
    pub fn check(&self, findings: &mut Findings) {
        let mut walk = self.advertisements();
        while walk.next_checked(findings).is_some() {}
    }
}

/// The prefixes of an LSP.
#[derive(Clone, Debug)]
pub struct Advertisements<'a> {
    lsp: Lsp<'a>,
    tlvs: Region<'a>,
    entries: Region<'a>,
    tlv: u8,
    tlv_at: usize,
    topology: u16,
}

impl<'a> Advertisements<'a> {
    /// The next prefix; rules found broken on the way to it, and in it, go to `findings`.
    pub fn next_checked(&mut self, findings: &mut Findings) -> Option<Advertisement<'a>> {
        self.step(&mut Report::to(findings))
    }

    fn step(&mut self, report: &mut Report<'_>) -> Option<Advertisement<'a>> {
        loop {
            while self.entries.left() > 0 {
                if let Some(found) = self.entry(report) {
                    if self.tlv != tlv_type::SRV6_LOCATOR {
                        report.host_only(&found);
                    }
                    return Some(found);
                }
            }
            let tlv = self.tlvs.narrow(report)?;
            let kind = tlv.kind as u8;
            let mut entries = tlv.value;
            let topology = match kind {
                tlv_type::IP_REACH | tlv_type::IPV6_REACH => 0,
                tlv_type::MT_IP_REACH | tlv_type::MT_IPV6_REACH | tlv_type::SRV6_LOCATOR => {
                    match entries.take(2, report) {
                        Some(octets) => u16_at(octets, 0) & 0x0FFF,
                        None => continue,
                    }
                }
                _ => continue,
            };
            (self.tlv, self.topology, self.entries) = (kind, topology, entries);
            self.tlv_at = tlv.length_at - 1;
        }
    }

    /// One entry of the present TLV; `None` when the TLV cannot be read further.
    fn entry(&mut self, report: &mut Report<'_>) -> Option<Advertisement<'a>> {
        let entries = &mut self.entries;
        let offset = entries.at;
        let (v6, down, bits, has_sub_tlvs);
        match self.tlv {
            tlv_type::IP_REACH | tlv_type::MT_IP_REACH => {
                let control = u8_at(entries.take(5, report)?, 4);
                (v6, down, bits) = (false, control & DOWN != 0, control & V4_BITS);
                has_sub_tlvs = control & V4_SUB_TLVS != 0;
            }
            tlv_type::SRV6_LOCATOR => {
                let head = entries.take(7, report)?;
                (v6, down, bits) = (true, u8_at(head, 4) & DOWN != 0, u8_at(head, 6));
                has_sub_tlvs = true;
            }
            _ => {
                let head = entries.take(6, report)?;
                (v6, down, bits) = (true, u8_at(head, 4) & DOWN != 0, u8_at(head, 5));
                has_sub_tlvs = u8_at(head, 4) & V6_SUB_TLVS != 0;
            }
        }
        let length_at = entries.at - 1;
        if bits > if v6 { 128 } else { 32 } {
            report.push(Rule::PncMalformed, length_at, 1);
            entries.stop();
            return None;
        }
        let prefix = Prefix::from_octets(v6, entries.take(Prefix::octets(bits), report)?, bits);
        let mut found = Advertisement {
            origin: Origin::IsIs {
                level: self.lsp.level(),
                lsp_id: self.lsp.lsp_id(),
                tlv: self.tlv,
                topology: self.topology,
                down,
            },
            prefix,
            container: self.tlv_at,
            offset,
            carrier: None,
            flag_offset: None,
            ignored: false,
            pnc: false,
        };
        // A prefix whose sub-TLVs cannot be read is still a prefix.
        if has_sub_tlvs && let Some(len) = entries.take(1, report) {
            let at = entries.at - 1;
            if let Some(subs) = entries.sub(usize::from(u8_at(len, 0)), at, 1, report) {
                flags(subs, &mut found, report);
            }
        }
        Some(found)
    }
}

impl<'a> Iterator for Advertisements<'a> {
    type Item = Advertisement<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(&mut Report::nowhere())
    }
}

fn flags<'a>(mut subs: Region<'a>, found: &mut Advertisement<'a>, report: &mut Report<'_>) {
    while subs.left() > 0 {
        let head = subs;
        let Some(sub) = subs.narrow(report) else {
            if u8_at(head.bytes, head.at) == FLAGS_SUB_TLV && found.carrier.is_none() {
                found.carrier = head.overrun(2);
            }
            return;
        };
        if sub.kind != u16::from(FLAGS_SUB_TLV) {
            continue;
        }
        if found.carrier.is_some() {
            report.push(Rule::PncSeveral, sub.length_at - 1, 1);
            continue;
        }
        let Some(octets) = sub.octets() else { continue };
        let offset = sub.value.at;
        found.carrier = Some(Carrier { offset, octets });
        match octets.first() {
            Some(first) => {
                found.flag_offset = Some(offset);
                found.pnc = first & FLAG_PNC != 0;
            }
            None => report.push(Rule::PncFlagsLength, sub.length_at, 1),
        }
    }
}

/// Writes a Prefix Attribute Flags sub-TLV with `flags` (1 to 253 octets; empty for negative testing) to `out`, and
/// returns its length.
///
/// # Errors
/// `flags` too long, or `out` too small.
pub fn emit_flags(flags: &[u8], out: &mut [u8]) -> Result<usize> {
    let mut w = Writer::new(out);
    write_flags(&mut w, flags)?;
    w.finish(Layer::IsIs)
}

fn write_flags(w: &mut Writer<'_>, flags: &[u8]) -> Result<()> {
    w.u8(FLAGS_SUB_TLV);
    let at = w.at();
    w.u8(0);
    w.put(flags);
    w.patch_len8(Layer::IsIs, at, "sub-TLV length", flags.len())
}

/// Which TLV a prefix goes into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReachKind {
    /// TLV 135 or 236, by the prefix's family.
    Plain,
    /// TLV 235 or 237, by the prefix's family.
    MultiTopology {
        /// Multi-topology ID, 12 bits.
        id: u16,
    },
    /// TLV 27; IPv6 only, at least 1 bit.
    Srv6Locator {
        /// Multi-topology ID, 12 bits.
        id: u16,
        /// IGP algorithm.
        algorithm: u8,
    },
}

/// One prefix of an LSP to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReachRepr<'a> {
    /// Its TLV.
    pub kind: ReachKind,
    /// The prefix.
    pub prefix: Prefix,
    /// Metric.
    pub metric: u32,
    /// Up/down bit.
    pub down: bool,
    /// Prefix Attribute Flags octets; `None` writes no sub-TLV.
    pub flags: Option<&'a [u8]>,
}

impl ReachRepr<'_> {
    fn tlv(&self) -> Result<(u8, Option<u16>)> {
        let v6 = self.prefix.address().is_ipv6();
        Ok(match self.kind {
            ReachKind::Plain if v6 => (tlv_type::IPV6_REACH, None),
            ReachKind::Plain => (tlv_type::IP_REACH, None),
            ReachKind::MultiTopology { id } if v6 => (tlv_type::MT_IPV6_REACH, Some(id & 0xFFF)),
            ReachKind::MultiTopology { id } => (tlv_type::MT_IP_REACH, Some(id & 0xFFF)),
            ReachKind::Srv6Locator { id, .. } if v6 && self.prefix.bits() > 0 => {
                (tlv_type::SRV6_LOCATOR, Some(id & 0xFFF))
            }
            ReachKind::Srv6Locator { .. } => {
                return Err(Error::value(
                    Layer::IsIs,
                    0,
                    "locator size",
                    u64::from(self.prefix.bits()),
                    "an IPv6 prefix of 1 to 128 bits",
                ));
            }
        })
    }

    fn write(&self, w: &mut Writer<'_>) -> Result<()> {
        let bits = self.prefix.bits();
        let down = if self.down { DOWN } else { 0 };
        let v6 = self.prefix.address().is_ipv6();
        w.u32(self.metric);
        match self.kind {
            ReachKind::Srv6Locator { algorithm, .. } => w.put(&[down, algorithm, bits]),
            _ if v6 => {
                let subs = if self.flags.is_some() { V6_SUB_TLVS } else { 0 };
                w.put(&[down | subs, bits]);
            }
            _ => {
                let subs = if self.flags.is_some() { V4_SUB_TLVS } else { 0 };
                w.u8(down | subs | bits);
            }
        }
        let octets = self.prefix.padded();
        w.put(octets.get(..Prefix::octets(bits)).unwrap_or(&octets));
        if self.flags.is_some() || matches!(self.kind, ReachKind::Srv6Locator { .. }) {
            let at = w.at();
            w.u8(0);
            if let Some(flags) = self.flags {
                write_flags(w, flags)?;
            }
            w.patch_len8(Layer::IsIs, at, "sub-TLVs length", w.at() - at - 1)?;
        }
        Ok(())
    }

    fn len(&self) -> Result<usize> {
        let mut w = Writer::new(&mut []);
        self.write(&mut w)?;
        Ok(w.at())
    }
}

/// An LSP to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LspRepr<'a> {
    /// Level.
    pub level: Level,
    /// System ID (6 octets), pseudonode number, LSP number.
    pub lsp_id: [u8; 8],
    /// Sequence number, from 1.
    pub sequence: u32,
    /// Remaining lifetime in seconds.
    pub lifetime: u16,
    /// Area address, such as `[0x49, 0x00, 0x01]`: 1 to 13 octets. Empty writes no TLV 1.
    pub area: &'a [u8],
    /// Dynamic hostname (RFC 5301), at most 255 octets. Empty writes no TLV 137.
    pub hostname: &'a str,
    /// The prefixes; neighbours that go to the same TLV type and topology share a TLV as long as it holds them.
    pub prefixes: &'a [ReachRepr<'a>],
}

impl LspRepr<'_> {
    /// Octets of the LSP.
    ///
    /// # Errors
    /// What cannot be written, see [`emit`](Self::emit).
    pub fn buffer_len(&self) -> Result<usize> {
        let mut w = Writer::new(&mut []);
        self.write(&mut w)?;
        Ok(w.at())
    }

    /// Writes the LSP with its lengths and checksum, and returns its length.
    ///
    /// # Errors
    /// A TLV or the LSP too long for its length field, a locator that is not IPv6, or `out` too small.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize> {
        let mut w = Writer::new(out);
        self.write(&mut w)?;
        // ISO 10589 section 7.3.11: from the LSP ID to the end.
        let sum = fletcher(w.written(field::LSP_ID), field::CHECKSUM - field::LSP_ID);
        w.patch(field::CHECKSUM, &sum.to_be_bytes());
        w.finish(Layer::IsIs)
    }

    fn write(&self, w: &mut Writer<'_>) -> Result<()> {
        const LAYER: Layer = Layer::IsIs;
        // IS type: 1 for level 1, 3 for level 2.
        let (kind, is_type) = match self.level {
            Level::L1 => (PDU_L1_LSP, 1),
            Level::L2 => (PDU_L2_LSP, 3),
        };
        w.put(&[DISCRIMINATOR, HEADER as u8, 1, 0, kind, 1, 0, 0]);
        w.u16(0);
        w.u16(self.lifetime);
        w.put(&self.lsp_id);
        w.u32(self.sequence);
        w.u16(0);
        w.u8(is_type);
        if !self.area.is_empty() {
            w.u8(tlv_type::AREA_ADDRESSES);
            let at = w.at();
            w.u8(0);
            w.u8(0);
            w.patch_len8(LAYER, at + 1, "area address length", self.area.len())?;
            w.put(self.area);
            w.patch_len8(LAYER, at, "TLV length", w.at() - at - 1)?;
        }
        w.put(&[tlv_type::PROTOCOLS, 2, 0xCC, 0x8E]);
        if !self.hostname.is_empty() {
            w.u8(tlv_type::HOSTNAME);
            let at = w.at();
            w.u8(0);
            w.put(self.hostname.as_bytes());
            w.patch_len8(LAYER, at, "TLV length", self.hostname.len())?;
        }
        let mut open: Option<(usize, (u8, Option<u16>))> = None;
        for reach in self.prefixes {
            let tlv = reach.tlv()?;
            let fits = match open {
                Some((at, same)) => same == tlv && w.at() - at - 1 + reach.len()? <= 255,
                None => false,
            };
            if !fits {
                close(w, open)?;
                w.u8(tlv.0);
                open = Some((w.at(), tlv));
                w.u8(0);
                if let Some(topology) = tlv.1 {
                    w.u16(topology);
                }
            }
            reach.write(w)?;
        }
        close(w, open)?;
        w.patch_len16(LAYER, field::PDU_LENGTH, "PDU Length", w.at())
    }
}

fn close(w: &mut Writer<'_>, open: Option<(usize, (u8, Option<u16>))>) -> Result<()> {
    match open {
        Some((at, _)) => w.patch_len8(Layer::IsIs, at, "TLV length", w.at() - at - 1),
        None => Ok(()),
    }
}
