//! PNC in OSPFv3: the OSPFv3 Prefix Extended Flags sub-TLV (RFC 9792) of the prefix TLVs in extended LSAs (RFC 8362), read
//! from and written as LS Update packets.
//!
//! Read are E-Inter-Area-Prefix, E-AS-External, E-Type-7 (NSSA), E-Link and E-Intra-Area-Prefix LSAs. Legacy LSAs have
//! no room for the flags and are passed over, as is the SRv6 Locator LSA (RFC 9513), whose sub-TLVs have a registry of
//! their own. The IPv6 header is `frame.rs`'s business.

use super::ospf2::{
    LS_UPDATE, LSA_HEADER, Lsas, is_malformed, lsa_field, read_flags, read_header, write_flags,
    write_lsa,
};
use super::tlv::{Region, Tlv, Writer, internet};
use super::{Advertisement, Flooding, Origin, Prefix, Report};
use crate::error::{Error, Result};
use crate::finding::{Findings, Rule};
use crate::ipv6_ext::next_header;
use crate::layer::Layer;
use crate::octets::{ipv4_at, u8_at, u16_at, u32_at};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// OSPF version.
pub const VERSION: u8 = 3;
/// Sub-TLV type of the OSPFv3 Prefix Extended Flags (RFC 9792 section 2).
pub const FLAGS_SUB_TLV: u16 = 37;
/// PNC in the first octet of the Prefix Extended Flags: bit 2 of 32 (draft section 5.1.3).
pub const FLAG_PNC: u8 = super::ospf2::FLAG_PNC;
/// Flags that say PNC and nothing else.
pub const FLAGS_PNC_ONLY: [u8; 4] = super::ospf2::FLAGS_PNC_ONLY;
/// Octets of the packet header.
pub const HEADER: usize = 16;

/// LS function codes (the low 13 bits of the LS type) of the extended LSAs with prefixes (RFC 8362 section 4).
pub mod function {
    /// E-Inter-Area-Prefix-LSA, 0xA023.
    pub const INTER_AREA_PREFIX: u16 = 35;
    /// E-AS-External-LSA, 0xC025.
    pub const AS_EXTERNAL: u16 = 37;
    /// E-Type-7-LSA, 0xA027.
    pub const TYPE_7: u16 = 39;
    /// E-Link-LSA, 0x8028.
    pub const LINK: u16 = 40;
    /// E-Intra-Area-Prefix-LSA, 0xA029.
    pub const INTRA_AREA_PREFIX: u16 = 41;
}

/// TLV types of the prefix TLVs (RFC 8362 section 3).
pub mod tlv_type {
    /// Inter-Area-Prefix TLV.
    pub const INTER_AREA_PREFIX: u16 = 3;
    /// External-Prefix TLV.
    pub const EXTERNAL_PREFIX: u16 = 5;
    /// Intra-Area-Prefix TLV.
    pub const INTRA_AREA_PREFIX: u16 = 6;
}

mod field {
    pub const LENGTH: usize = 2;
    pub const AREA: usize = 8;
    pub const CHECKSUM: usize = 12;
    pub const INSTANCE: usize = 14;
}

/// E-Intra-Area-Prefix-LSA: octets before the TLVs, which refer to a router or network LSA.
const REFERENCE: usize = 12;
/// E-Link-LSA: octets before the TLVs, router priority and options.
const LINK_HEAD: usize = 4;
const E_ROUTER_LSA: u16 = 0xA021;

/// Whether `bytes` begin with the header of an OSPFv3 LS Update.
#[must_use]
pub fn is_ls_update(bytes: &[u8]) -> bool {
    bytes.starts_with(&[VERSION, LS_UPDATE])
}

/// An OSPFv3 LS Update, from its version octet on. Octets behind its packet length are left alone.
#[derive(Clone, Copy, Debug)]
pub struct LsUpdate<'a> {
    bytes: &'a [u8],
    end: usize,
}

impl<'a> LsUpdate<'a> {
    /// Reads the header of a packet that is there as a whole.
    ///
    /// # Errors
    /// Not an OSPFv3 LS Update, or `bytes` end before it does.
    pub fn new(bytes: &'a [u8]) -> Result<Self> {
        Self::read(bytes, bytes.len())
    }

    /// The same for a packet of which a capture may have cut off the end.
    ///
    /// # Errors
    /// Not an OSPFv3 LS Update, or the header is not whole.
    pub fn new_lax(bytes: &'a [u8]) -> Result<Self> {
        Self::read(bytes, usize::MAX)
    }

    /// All octets behind the header, whatever its length says.
    pub(super) fn all_of(bytes: &'a [u8]) -> Option<Self> {
        let end = bytes.len();
        (is_ls_update(bytes) && end >= HEADER + 4).then_some(Self { bytes, end })
    }

    pub(super) fn read(bytes: &'a [u8], wire_len: usize) -> Result<Self> {
        let end = read_header(bytes, Layer::Ospf3, VERSION, HEADER, wire_len)?;
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

    /// Instance ID; its range tells the address family (RFC 5838 section 2.1).
    #[must_use]
    pub fn instance(&self) -> u8 {
        u8_at(self.bytes, field::INSTANCE)
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
            v6: is_v6(self.instance()),
            lsas: Lsas::new(self.bytes, HEADER, self.end),
            tlvs: Region::new(self.bytes, HEADER, HEADER),
            lsa: &[],
            lsa_at: HEADER,
            wanted: 0,
            seen: false,
            ignored: false,
        }
    }

    /// Puts the rules that the packet breaks, as far as PNC goes, into `findings`.
    pub fn check(&self, findings: &mut Findings) {
        let mut walk = self.advertisements();
        while walk.next_checked(findings).is_some() {}
    }
}

/// RFC 5838 section 2.1: instances 64 to 127 carry IPv4.
const fn is_v6(instance: u8) -> bool {
    !matches!(instance, 64..=127)
}

/// Octets of an address prefix in whole 32-bit words (RFC 5340 section A.4.1).
const fn word_octets(bits: u8) -> usize {
    (bits as usize).div_ceil(32) * 4
}

/// The prefixes of the extended LSAs in an LS Update.
#[derive(Clone, Debug)]
pub struct Advertisements<'a> {
    area: Ipv4Addr,
    v6: bool,
    lsas: Lsas<'a>,
    tlvs: Region<'a>,
    lsa: &'a [u8],
    lsa_at: usize,
    /// The prefix TLV of the present LSA; others in it are to be ignored.
    wanted: u16,
    /// Whether the present LSA has had that TLV.
    seen: bool,
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
                if tlv.kind != self.wanted {
                    continue;
                }
                if self.seen && self.wanted != tlv_type::INTRA_AREA_PREFIX {
                    report.push(Rule::PncSeveral, tlv.length_at - 2, 2);
                    continue;
                }
                self.seen = true;
                if let Some(found) = self.prefix(&tlv, report) {
                    report.host_only(&found);
                    return Some(found);
                }
            }
            let (header, offset, mut body) = self.lsas.next(report)?;
            let (wanted, head) = match u16_at(header, lsa_field::OPTIONS) & 0x1FFF {
                function::INTER_AREA_PREFIX => (tlv_type::INTER_AREA_PREFIX, 0),
                function::AS_EXTERNAL | function::TYPE_7 => (tlv_type::EXTERNAL_PREFIX, 0),
                function::LINK => (tlv_type::INTRA_AREA_PREFIX, LINK_HEAD),
                function::INTRA_AREA_PREFIX => (tlv_type::INTRA_AREA_PREFIX, REFERENCE),
                _ => continue,
            };
            if body.take(head, report).is_some() {
                (self.lsa, self.lsa_at, self.tlvs) = (header, offset, body);
                (self.wanted, self.seen) = (wanted, false);
                self.ignored = is_malformed(body, FLAGS_SUB_TLV, |tlv| {
                    let (mut value, nobody) = (tlv.value, &mut Report::nowhere());
                    let bits = u8_at(value.take(8, nobody)?, 4);
                    value.take(word_octets(bits), nobody)?;
                    (tlv.kind == wanted).then_some(value)
                });
            }
        }
    }

    fn prefix(&self, tlv: &Tlv<'a>, report: &mut Report<'_>) -> Option<Advertisement<'a>> {
        let offset = tlv.length_at - 2;
        let mut value = tlv.value;
        let bits = u8_at(value.take(8, report)?, 4);
        if bits > if self.v6 { 128 } else { 32 } {
            report.push(Rule::PncMalformed, tlv.value.at + 4, 1);
            return None;
        }
        let prefix = Prefix::from_octets(self.v6, value.take(word_octets(bits), report)?, bits);
        let ls_type = u16_at(self.lsa, lsa_field::OPTIONS);
        let mut found = Advertisement {
            origin: Origin::Ospf3 {
                area: self.area,
                advertising_router: ipv4_at(self.lsa, lsa_field::ADVERTISING_ROUTER),
                ls_type,
                link_state_id: u32_at(self.lsa, lsa_field::LINK_STATE_ID),
                flooding: match ls_type >> 13 & 3 {
                    0 => Flooding::Link,
                    1 => Flooding::Area,
                    2 => Flooding::Domain,
                    _ => Flooding::Reserved,
                },
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

/// The head of a prefix TLV: what stands in front of its address prefix, alike in all three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixTlv<'a> {
    bytes: &'a [u8],
}

impl<'a> PrefixTlv<'a> {
    /// Octets in front of the address prefix.
    pub const HEAD: usize = 12;

    /// The TLV at `offset` of `bytes`, where an [`Advertisement`] begins. `None`: its head is not there as a whole.
    #[must_use]
    pub fn at(bytes: &'a [u8], offset: usize) -> Option<Self> {
        let bytes = bytes.get(offset..)?.get(..Self::HEAD)?;
        Some(Self { bytes })
    }

    /// TLV type, see [`tlv_type`].
    #[must_use]
    pub fn kind(&self) -> u16 {
        u16_at(self.bytes, 0)
    }

    /// TLV length: octets behind type and length, without padding.
    #[must_use]
    pub fn value_len(&self) -> u16 {
        u16_at(self.bytes, 2)
    }

    /// Flags of an External-Prefix TLV (E, F, T) above a metric of 24 bits.
    #[must_use]
    pub fn flags_and_metric(&self) -> u32 {
        u32_at(self.bytes, 4)
    }

    /// Prefix length in bits.
    #[must_use]
    pub fn prefix_bits(&self) -> u8 {
        u8_at(self.bytes, 8)
    }

    /// Prefix options (RFC 5340 section A.4.1.1).
    #[must_use]
    pub fn prefix_options(&self) -> u8 {
        u8_at(self.bytes, 9)
    }
}

impl<'a> Iterator for Advertisements<'a> {
    type Item = Advertisement<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(&mut Report::nowhere())
    }
}

/// Writes an OSPFv3 Prefix Extended Flags sub-TLV with `flags` (a multiple of 4 octets, at least 4; other lengths for
/// negative testing) to `out`, and returns its length with padding.
///
/// # Errors
/// `flags` too long, or `out` too small.
pub fn emit_flags(flags: &[u8], out: &mut [u8]) -> Result<usize> {
    let mut w = Writer::new(out);
    write_flags(&mut w, Layer::Ospf3, FLAGS_SUB_TLV, flags)?;
    w.finish(Layer::Ospf3)
}

/// Which extended LSA to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LsaKind {
    /// E-Inter-Area-Prefix-LSA; exactly one prefix.
    InterAreaPrefix,
    /// E-AS-External-LSA; exactly one prefix, metric type 2.
    AsExternal,
    /// E-Intra-Area-Prefix-LSA, referring to the E-Router-LSA of its advertising router.
    IntraAreaPrefix,
}

impl LsaKind {
    const fn ls_type(self) -> u16 {
        // U 1: flooded by routers that do not know it; S by scope.
        match self {
            Self::InterAreaPrefix => 0xA000 | function::INTER_AREA_PREFIX,
            Self::AsExternal => 0xC000 | function::AS_EXTERNAL,
            Self::IntraAreaPrefix => 0xA000 | function::INTRA_AREA_PREFIX,
        }
    }

    const fn tlv(self) -> u16 {
        match self {
            Self::InterAreaPrefix => tlv_type::INTER_AREA_PREFIX,
            Self::AsExternal => tlv_type::EXTERNAL_PREFIX,
            Self::IntraAreaPrefix => tlv_type::INTRA_AREA_PREFIX,
        }
    }
}

/// One prefix TLV to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixRepr<'a> {
    /// The prefix, of the instance's family.
    pub prefix: Prefix,
    /// Prefix options octet (RFC 5340 section A.4.1.1): LA 0x02, N 0x20.
    pub options: u8,
    /// Metric, 24 bits.
    pub metric: u32,
    /// Prefix Extended Flags octets; `None` writes no sub-TLV.
    pub flags: Option<&'a [u8]>,
}

/// One extended LSA to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LsaRepr<'a> {
    /// Which one.
    pub kind: LsaKind,
    /// LS age in seconds, 0 to 3600.
    pub age: u16,
    /// Link State ID.
    pub link_state_id: u32,
    /// Advertising router.
    pub advertising_router: Ipv4Addr,
    /// LS sequence number; the first is 0x80000001.
    pub sequence: u32,
    /// Its prefixes.
    pub prefixes: &'a [PrefixRepr<'a>],
}

/// An OSPFv3 LS Update to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LsUpdateRepr<'a> {
    /// Router that sends the packet.
    pub router_id: Ipv4Addr,
    /// Area ID.
    pub area: Ipv4Addr,
    /// Instance ID: 0 for IPv6 unicast, 64 for IPv4 unicast.
    pub instance: u8,
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

    /// Writes the packet with its lengths and checksums (that of the packet for the IPv6 addresses `source` and
    /// `destination`), and returns its length.
    ///
    /// # Errors
    /// A prefix of the family that the instance does not carry, lengths too large for their fields, or `out` too small.
    pub fn emit(&self, source: Ipv6Addr, destination: Ipv6Addr, out: &mut [u8]) -> Result<usize> {
        let mut w = Writer::new(out);
        self.write(&mut w)?;
        // RFC 5340 section A.3.1, RFC 8200 section 8.1.
        let sum = internet(&[
            &source.octets(),
            &destination.octets(),
            &(w.at() as u32).to_be_bytes(),
            &[0, next_header::OSPF],
            w.written(0),
        ]);
        w.patch(field::CHECKSUM, &sum.to_be_bytes());
        w.finish(Layer::Ospf3)
    }

    fn write(&self, w: &mut Writer<'_>) -> Result<()> {
        const LAYER: Layer = Layer::Ospf3;
        w.put(&[VERSION, LS_UPDATE, 0, 0]);
        w.put(&self.router_id.octets());
        w.put(&self.area.octets());
        w.put(&[0, 0, self.instance, 0]);
        w.u32(self.lsas.len() as u32);
        for lsa in self.lsas {
            let single = lsa.kind != LsaKind::IntraAreaPrefix;
            if single && lsa.prefixes.len() != 1 {
                return Err(Error::value(
                    LAYER,
                    w.at() + LSA_HEADER,
                    "prefixes",
                    lsa.prefixes.len() as u64,
                    "1 in this LSA",
                ));
            }
            write_lsa(
                w,
                LAYER,
                lsa.age,
                lsa.kind.ls_type(),
                (lsa.link_state_id, lsa.advertising_router, lsa.sequence),
                |w| {
                    if lsa.kind == LsaKind::IntraAreaPrefix {
                        w.u16(0);
                        w.u16(E_ROUTER_LSA);
                        w.u32(0);
                        w.put(&lsa.advertising_router.octets());
                    }
                    lsa.prefixes
                        .iter()
                        .try_for_each(|p| p.write(w, lsa.kind, is_v6(self.instance)))
                },
            )?;
        }
        w.patch_len16(LAYER, field::LENGTH, "Packet Length", w.at())
    }
}

impl PrefixRepr<'_> {
    fn write(&self, w: &mut Writer<'_>, kind: LsaKind, v6: bool) -> Result<()> {
        const LAYER: Layer = Layer::Ospf3;
        /// Metric type 2 (E bit).
        const EXTERNAL_2: u32 = 0x0400_0000;
        let prefix = self.prefix;
        if matches!(prefix.address(), IpAddr::V6(_)) != v6 {
            let family = if v6 { 4 } else { 6 };
            return Err(Error::value(
                LAYER,
                w.at(),
                "prefix",
                family,
                "a prefix of the instance's family",
            ));
        }
        let external = if kind == LsaKind::AsExternal {
            EXTERNAL_2
        } else {
            0
        };
        w.u16(kind.tlv());
        let at = w.at();
        w.u16(0);
        w.u32(external | (self.metric & 0x00FF_FFFF));
        w.put(&[prefix.bits(), self.options, 0, 0]);
        let octets = prefix.padded();
        w.put(octets.get(..word_octets(prefix.bits())).unwrap_or(&octets));
        if let Some(flags) = self.flags {
            write_flags(w, LAYER, FLAGS_SUB_TLV, flags)?;
        }
        w.patch_len16(LAYER, at, "TLV length", w.at() - at - 2)
    }
}
