//! PNC in IS-IS: the Prefix Attribute Flags sub-TLV (RFC 7794) of the prefixes in an LSP, parsed
//! and written.
//!
//! Parses the Extended IP Reachability TLVs 135 (RFC 5305), 236 (RFC 5308), 235 and 237 (RFC 5120),
//! and the SRv6 Locator TLV 27 (RFC 9352). Hellos, sequence-number PDUs and other TLVs are skipped.
//! LLC and Ethernet are in `frame.rs`.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  LSP (ISO/IEC 10589 section 9.8)
//! |     0x83      | Length Ind 27 |   Version 1   |   ID Length   |   0
//! |0 0 0| PDU Type|   Version 1   |       0       |Max Area Addrs |   4
//! |          PDU Length           |      Remaining Lifetime       |   8
//! |                          LSP ID (64)                          |  12
//! |                        Sequence Number                        |  20
//! |           Checksum            |P|  ATT  |O|IS |     TLVs      |  24
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  TLV
//! |     Type      |    Length     |0 0 0 0|  MT ID of 235, 237, 27|
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  an entry of it, 135 and 235
//! |                            Metric                             |   0
//! |D|S|Prefix Len.|  Prefix (0 to 32 bits, whole octets)          |   4
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  236 and 237
//! |                            Metric                             |   0
//! |D|X|S|    0    | Prefix Length |  Prefix (0 to 128 bits)       |   4
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  27
//! |                            Metric                             |   0
//! |D|      0      |   Algorithm   |   Loc Size    |   Locator     |   4
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  after the prefix if S is set, always in 27
//! | Sub-TLVs Len. |    Type 4     |    Length     |X R N . . . . P|  R: re-advertised, P: PNC (bit 7)
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! ```
//! use fcn_wire::pnc::isis::{FLAG_PNC, Lsp, LspRepr, ReachKind, ReachRepr};
//! use fcn_wire::pnc::{Level, Prefix};
//! use std::net::Ipv4Addr;
//!
//! let prefixes = [ReachRepr {
//!     kind: ReachKind::Plain,
//!     prefix: Prefix::host(Ipv4Addr::new(192, 0, 2, 15).into()),
//!     metric: 10,
//!     down: false,
//!     flags: Some(&[FLAG_PNC]),
//! }];
//! let lsp = LspRepr {
//!     level: Level::L2,
//!     lsp_id: [0, 0, 0, 0, 0, 15, 0, 0],
//!     sequence: 1,
//!     lifetime: 1200,
//!     area: &[0x49, 0, 1],
//!     hostname: "proxy",
//!     prefixes: &prefixes,
//! };
//! let pdu = lsp.to_bytes()?;
//!
//! let found = Lsp::new_checked(&pdu, pdu.len())?.advertisements().next().unwrap();
//! assert!(found.pnc && found.prefix == Some(prefixes[0].prefix));
//! # Ok::<(), fcn_wire::Error>(())
//! ```

use super::tlv::{FlagsSubTlv, Region, Shape, Writer};
use super::{Advertisement, Inner, Level, Origin, Prefix, Report, Walk};
use crate::checksum;
use crate::error::{Error, Result};
use crate::finding::Rule;
use crate::layer::Layer;
use crate::octets::{array, u8_at, u16_at, u32_at};

/// Intradomain Routeing Protocol Discriminator: the first octet of an IS-IS PDU.
const DISCRIMINATOR: u8 = 0x83;
/// PDU type of a level 1 LSP.
pub const PDU_L1_LSP: u8 = 18;
/// PDU type of a level 2 LSP.
pub const PDU_L2_LSP: u8 = 20;
/// Sub-TLV type of the Prefix Attribute Flags (RFC 7794 section 2.1).
pub const FLAGS_SUB_TLV: u8 = 4;
/// Re-advertisement flag (R) in the first octet of the Prefix Attribute Flags: bit 1 (RFC 7794
/// section 2.1).
pub const FLAG_READVERTISED: u8 = 0x40;
/// PNC in the first octet of the Prefix Attribute Flags: bit 7 (draft section 5.1.1).
pub const FLAG_PNC: u8 = 0x01;

const LAYER: Layer = Layer::IsIs;

const FLAGS: FlagsSubTlv = FlagsSubTlv {
    shape: Shape::Narrow,
    kind: FLAGS_SUB_TLV as u16,
    pnc: FLAG_PNC,
};

/// TLV types.
mod tlv_type {
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
    pub const AREA_ADDRESSES: u8 = 1;
    pub const PROTOCOLS: u8 = 129;
    pub const HOSTNAME: u8 = 137;
}

/// Length of an LSP's header in octets; TLVs begin after it.
const HEADER: usize = 27;

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

/// Returns true if `bytes` begin with the header of an LSP of either level.
#[must_use]
pub fn is_lsp(bytes: &[u8]) -> bool {
    bytes.first() == Some(&DISCRIMINATOR)
        && bytes
            .get(field::PDU_TYPE)
            .is_some_and(|kind| matches!(kind & 0x1F, PDU_L1_LSP | PDU_L2_LSP))
}

/// A link state PDU, from its discriminator on. Octets after its PDU length are ignored.
#[derive(Clone, Copy, Debug)]
pub struct Lsp<'a> {
    bytes: &'a [u8],
    end: usize,
}

impl<'a> Lsp<'a> {
    /// Creates a view of all octets after the header, regardless of the lengths in it.
    pub(super) fn all_of(bytes: &'a [u8]) -> Option<Self> {
        let end = bytes.len();
        (is_lsp(bytes) && end >= HEADER).then_some(Self { bytes, end })
    }

    /// Parses the header of an LSP that had `wire_len` octets on the wire; the capture may have
    /// truncated it.
    ///
    /// # Errors
    /// Fails if it is not an LSP with 6-octet system IDs, is longer than `wire_len`, or its header
    /// is incomplete.
    pub fn new_checked(bytes: &'a [u8], wire_len: usize) -> Result<Self> {
        if bytes.len() < HEADER {
            return Err(Error::short(LAYER, HEADER, bytes.len()));
        }
        let value = |at, field, value: u8, expected| {
            Err(Error::value(LAYER, at, field, value.into(), expected))
        };
        let length = |at, field, len, most| Err(Error::length(LAYER, at, field, len, HEADER, most));
        if u8_at(bytes, 0) != DISCRIMINATOR {
            return value(0, "discriminator", u8_at(bytes, 0), "0x83");
        }
        let (at, indicator) = (
            field::LENGTH_INDICATOR,
            u8_at(bytes, field::LENGTH_INDICATOR),
        );
        if usize::from(indicator) != HEADER {
            return length(at, "Length Indicator", indicator.into(), HEADER);
        }
        let (at, id_length) = (field::ID_LENGTH, u8_at(bytes, field::ID_LENGTH));
        if !matches!(id_length, 0 | 6) {
            return value(at, "ID Length", id_length, "0 or 6 (6-octet system IDs)");
        }
        let (at, kind) = (field::PDU_TYPE, u8_at(bytes, field::PDU_TYPE) & 0x1F);
        if !matches!(kind, PDU_L1_LSP | PDU_L2_LSP) {
            return value(at, "PDU Type", kind, "18 or 20 (LSP)");
        }
        let (at, end) = (
            field::PDU_LENGTH,
            usize::from(u16_at(bytes, field::PDU_LENGTH)),
        );
        if end < HEADER || end > wire_len {
            return length(at, "PDU Length", end, wire_len);
        }
        Ok(Self { bytes, end })
    }

    /// Returns the level.
    #[must_use]
    pub fn level(&self) -> Level {
        if u8_at(self.bytes, field::PDU_TYPE) & 0x1F == PDU_L1_LSP {
            Level::L1
        } else {
            Level::L2
        }
    }

    /// Returns system ID (6 octets), pseudonode number, LSP number.
    #[must_use]
    pub fn lsp_id(&self) -> [u8; 8] {
        array(self.bytes, field::LSP_ID)
    }

    /// Returns the sequence number: of two LSPs with the same ID, the greater is newer.
    #[must_use]
    pub fn sequence(&self) -> u32 {
        u32_at(self.bytes, field::SEQUENCE)
    }

    /// Returns the remaining lifetime in seconds; 0 purges the LSP.
    #[must_use]
    pub fn lifetime(&self) -> u16 {
        u16_at(self.bytes, field::LIFETIME)
    }

    /// Returns the advertised prefixes, in order.
    #[must_use]
    pub fn advertisements(&self) -> Walk<'a> {
        Walk(Inner::IsIs(Advertisements {
            lsp: *self,
            tlvs: Region::new(self.bytes, HEADER, self.end),
            entries: Region::whole(&[], 0),
            tlv: 0,
            tlv_at: 0,
            topology: 0,
        }))
    }
}

/// Iterator over the prefixes of an LSP.
#[derive(Clone, Debug)]
pub(super) struct Advertisements<'a> {
    lsp: Lsp<'a>,
    tlvs: Region<'a>,
    entries: Region<'a>,
    tlv: u8,
    tlv_at: usize,
    topology: u16,
}

impl<'a> Advertisements<'a> {
    pub(super) fn step(&mut self, report: &mut Report<'_>) -> Option<Advertisement<'a>> {
        loop {
            while self.entries.left() > 0 {
                if let Some(found) = self.entry(report) {
                    if self.tlv != tlv_type::SRV6_LOCATOR {
                        report.host_only(&found);
                    }
                    return Some(found);
                }
            }
            let tlv = self.tlvs.next(Shape::Narrow, report)?;
            let (kind, mut entries) = (tlv.kind as u8, tlv.value);
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
            (self.tlv, self.tlv_at) = (kind, tlv.at);
            (self.topology, self.entries) = (topology, entries);
        }
    }

    /// Parses one entry of the current TLV; `None` if the rest of the TLV cannot be parsed.
    fn entry(&mut self, report: &mut Report<'_>) -> Option<Advertisement<'a>> {
        let entries = &mut self.entries;
        let offset = entries.at;
        let v4 = matches!(self.tlv, tlv_type::IP_REACH | tlv_type::MT_IP_REACH);
        let locator = self.tlv == tlv_type::SRV6_LOCATOR;
        // The last octet of an entry's head is the prefix length.
        let head = entries.take(if v4 { 5 } else { 6 + usize::from(locator) }, report)?;
        let (control, bits) = (u8_at(head, 4), u8_at(head, head.len() - 1));
        let (bits, most, sub_tlvs) = match v4 {
            true => (bits & V4_BITS, 32, V4_SUB_TLVS),
            false => (bits, 128, V6_SUB_TLVS),
        };
        if bits > most {
            report.push(Rule::PncMalformed, entries.at - 1, 1);
            entries.stop();
            return None;
        }
        let octets = entries.take(Prefix::octets(bits), report)?;
        let mut found = Advertisement {
            origin: Origin::IsIs {
                level: self.lsp.level(),
                lsp_id: self.lsp.lsp_id(),
                tlv: self.tlv,
                topology: self.topology,
                down: control & DOWN != 0,
            },
            prefix: Prefix::from_octets(!v4, octets, bits),
            container: self.tlv_at,
            offset,
            carrier: None,
            flag_offset: None,
            ignored: false,
            pnc: false,
        };
        // A prefix whose sub-TLVs cannot be parsed is still a prefix.
        if (locator || control & sub_tlvs != 0)
            && let Some(len) = entries.take(1, report)
            && let Some(subs) = entries.sub(u8_at(len, 0).into(), entries.at - 1, 1, report)
        {
            FLAGS.read(subs, &mut found, report);
        }
        Some(found)
    }
}

/// TLV for a prefix.
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

/// A prefix to write into an LSP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReachRepr<'a> {
    /// Its TLV type.
    pub kind: ReachKind,
    /// The prefix.
    pub prefix: Prefix,
    /// Metric.
    pub metric: u32,
    /// Up/down bit.
    pub down: bool,
    /// Octets of the Prefix Attribute Flags; `None` writes no sub-TLV.
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
                let (bits, expected) = (self.prefix.bits(), "an IPv6 prefix of 1 to 128 bits");
                let bits = bits.into();
                return Err(Error::value(LAYER, 0, "locator size", bits, expected));
            }
        })
    }

    fn write(&self, w: &mut Writer) -> Result<()> {
        let bits = self.prefix.bits();
        let down = if self.down { DOWN } else { 0 };
        let sub_tlvs = |bit: u8| if self.flags.is_some() { bit } else { 0 };
        let locator = matches!(self.kind, ReachKind::Srv6Locator { .. });
        w.u32(self.metric);
        match self.kind {
            ReachKind::Srv6Locator { algorithm, .. } => w.put(&[down, algorithm, bits]),
            _ if self.prefix.address().is_ipv6() => w.put(&[down | sub_tlvs(V6_SUB_TLVS), bits]),
            _ => w.put(&[down | sub_tlvs(V4_SUB_TLVS) | bits]),
        }
        w.address(self.prefix, Prefix::octets(bits));
        if self.flags.is_none() && !locator {
            return Ok(());
        }
        w.counted(1, "sub-TLVs length", |w| FLAGS.write(w, self.flags))
    }
}

/// An LSP to write.
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
    /// The prefixes; adjacent ones with the same TLV type and topology share a TLV as long as they
    /// fit.
    pub prefixes: &'a [ReachRepr<'a>],
}

impl LspRepr<'_> {
    /// Returns the LSP with its lengths and checksum.
    ///
    /// # Errors
    /// Fails if a TLV or the LSP is too long for its length field, or a locator is not IPv6.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut w = Writer::new(LAYER);
        // IS type: 1 for level 1, 3 for level 2.
        let (kind, is_type) = match self.level {
            Level::L1 => (PDU_L1_LSP, 1),
            Level::L2 => (PDU_L2_LSP, 3),
        };
        w.put(&[DISCRIMINATOR, HEADER as u8, 1, 0, kind, 1, 0, 0, 0, 0]);
        w.u16(self.lifetime);
        w.put(&self.lsp_id);
        w.u32(self.sequence);
        w.put(&[0, 0, is_type]);
        if !self.area.is_empty() {
            w.put(&[tlv_type::AREA_ADDRESSES]);
            w.counted(1, "TLV length", |w| {
                w.counted_octets(1, "area address length", self.area)
            })?;
        }
        w.put(&[tlv_type::PROTOCOLS, 2, 0xCC, 0x8E]);
        if !self.hostname.is_empty() {
            w.put(&[tlv_type::HOSTNAME]);
            w.counted_octets(1, "TLV length", self.hostname.as_bytes())?;
        }
        let mut rest = self.prefixes;
        while let Some(first) = rest.first() {
            let (tlv, topology) = first.tlv()?;
            w.put(&[tlv]);
            w.counted(1, "TLV length", |w| {
                let start = w.len();
                topology.inspect(|id| w.u16(*id));
                let entries = w.len();
                while let Some((next, behind)) = rest.split_first()
                    && next.tlv()? == (tlv, topology)
                {
                    let before = w.len();
                    next.write(w)?;
                    if before > entries && w.len() - start > 0xFF {
                        w.truncate(before);
                        break;
                    }
                    rest = behind;
                }
                Ok(())
            })?;
        }
        w.patch_len(field::PDU_LENGTH, 2, "PDU Length", w.len())?;
        // ISO 10589 section 7.3.11: from the LSP ID to the end.
        let sum = checksum::fletcher(
            w.octets_from(field::LSP_ID),
            field::CHECKSUM - field::LSP_ID,
        );
        w.patch(field::CHECKSUM, &sum.to_be_bytes());
        Ok(w.finish())
    }
}
