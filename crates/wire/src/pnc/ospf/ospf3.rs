//! PNC in OSPFv3: the OSPFv3 Prefix Extended Flags sub-TLV (RFC 9792) of the prefix TLVs in
//! extended LSAs (RFC 8362), parsed from and written as LS Update packets.
//!
//! Parses E-Inter-Area-Prefix, E-AS-External, E-Type-7 (NSSA), E-Link and E-Intra-Area-Prefix LSAs.
//! Legacy LSAs have no space for the flags and are skipped, as is the SRv6 Locator LSA (RFC 9513),
//! whose sub-TLVs have a separate registry. The IPv6 header is in `frame.rs`.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  LS Update (RFC 5340 section A.3.5)
//! |   Version 3   |    Type 4     |         Packet Length         |   0
//! |                           Router ID                           |   4
//! |                            Area ID                            |   8
//! |           Checksum            |  Instance ID  |       0       |  12
//! |                        Number of LSAs                         |  16
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  LSA (RFC 5340 section A.4.2)
//! |            LS Age             |U| S |      Function Code      |   0
//! |                         Link State ID                         |   4
//! |                      Advertising Router                       |   8
//! |                      LS Sequence Number                       |  12
//! |          LS Checksum          |            Length             |  16
//! |  before the TLVs: E-Link 32 bits, E-Intra-Area-Prefix 96 bits |  20
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  prefix TLV (RFC 8362 section 3)
//! |         Type 3, 5, 6          |            Length             |   0
//! |  Flags of 5   |                    Metric                     |   4
//! | Prefix Length |Prefix Options |               0               |   8
//! |                 Address Prefix, in whole words                |  12
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  Prefix Extended Flags sub-TLV (RFC 9792)
//! |            Type 37            |     Length, at least 4        |   0
//! |   |P|              Flags, P: PNC (bit 2)                      |   4
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! ```
//! use fcn_wire::pnc::Prefix;
//! use fcn_wire::pnc::ospf3::{FLAGS_PNC_ONLY, LsUpdate, LsUpdateRepr, LsaKind, LsaRepr, PrefixRepr};
//! use std::net::{Ipv4Addr, Ipv6Addr};
//!
//! let router = Ipv4Addr::new(10, 0, 0, 15);
//! let prefixes = [PrefixRepr {
//!     prefix: Prefix::host("2001:db8::f".parse::<Ipv6Addr>()?.into()),
//!     options: 0x02,
//!     metric: 10,
//!     flags: Some(&FLAGS_PNC_ONLY),
//! }];
//! let lsas = [LsaRepr {
//!     kind: LsaKind::IntraAreaPrefix,
//!     age: 1,
//!     link_state_id: 1,
//!     advertising_router: router,
//!     sequence: 0x8000_0001,
//!     prefixes: &prefixes,
//! }];
//! let area = Ipv4Addr::UNSPECIFIED;
//! let update = LsUpdateRepr { router_id: router, area, instance: 0, lsas: &lsas };
//! let packet = update.to_bytes("fe80::f".parse()?, "ff02::5".parse()?)?;
//!
//! let found = LsUpdate::new_checked(&packet, packet.len())?.advertisements().next().unwrap();
//! assert!(found.pnc && found.prefix == Some(prefixes[0].prefix));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use super::{LSA_HEADER, LsaHeader, PrefixTlvSpec, lsa_field};
use crate::checksum;
use crate::error::{Error, Result};
use crate::ipv6_ext::next_header;
use crate::layer::Layer;
use crate::octets::{ipv4_at, u8_at, u16_at, u32_at};
use crate::pnc::tlv::{FlagsSubTlv, Writer};
use crate::pnc::{Flooding, Origin, Prefix};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Sub-TLV type of the OSPFv3 Prefix Extended Flags (RFC 9792 section 2).
pub const FLAGS_SUB_TLV: u16 = 37;
/// Flags with only PNC set (bit 2 of 32, draft section 5.1.3).
pub const FLAGS_PNC_ONLY: [u8; 4] = super::ospf2::FLAGS_PNC_ONLY;

/// LS function codes (the low 13 bits of the LS type) of the extended LSAs with prefixes (RFC 8362
/// section 4).
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

const LAYER: Layer = Layer::Ospf3;
const CHECKSUM: usize = 12;

pub(super) const FLAGS: FlagsSubTlv = FlagsSubTlv {
    kind: FLAGS_SUB_TLV,
    ..super::ospf2::FLAGS
};

/// An OSPFv3 LS Update.
pub type LsUpdate<'a> = super::LsUpdate<'a, 3>;

/// Returns true if the instance carries IPv6; instances 64 to 127 carry IPv4 (RFC 5838 section
/// 2.1).
pub(super) const fn is_v6(instance: u8) -> bool {
    !matches!(instance, 64..=127)
}

/// Returns the length of an address prefix in whole 32-bit words, in octets (RFC 5340 section
/// A.4.1).
pub(super) const fn word_octets(bits: u8) -> usize {
    (bits as usize).div_ceil(32) * 4
}

/// Returns the TLVs with prefixes in an LSA of that type, if there are any.
pub(super) const fn prefix_tlvs(ls_type: u16) -> Option<PrefixTlvSpec> {
    // Octets before the TLVs: router priority and options of an E-Link-LSA; reference of an
    // E-Intra-Area-Prefix-LSA.
    let (tlv, head) = match ls_type & 0x1FFF {
        function::INTER_AREA_PREFIX => (tlv_type::INTER_AREA_PREFIX, 0),
        function::AS_EXTERNAL | function::TYPE_7 => (tlv_type::EXTERNAL_PREFIX, 0),
        function::LINK => (tlv_type::INTRA_AREA_PREFIX, 4),
        function::INTRA_AREA_PREFIX => (tlv_type::INTRA_AREA_PREFIX, 12),
        _ => return None,
    };
    let single = tlv != tlv_type::INTRA_AREA_PREFIX;
    Some(PrefixTlvSpec { tlv, head, single })
}

pub(super) fn origin(area: Ipv4Addr, lsa: &[u8]) -> Origin {
    let ls_type = u16_at(lsa, lsa_field::OPTIONS);
    Origin::Ospf3 {
        area,
        advertising_router: ipv4_at(lsa, lsa_field::ADVERTISING_ROUTER),
        ls_type,
        link_state_id: u32_at(lsa, lsa_field::LINK_STATE_ID),
        flooding: match ls_type >> 13 & 3 {
            0 => Flooding::Link,
            1 => Flooding::Area,
            2 => Flooding::Domain,
            _ => Flooding::Reserved,
        },
    }
}

/// Head of a prefix TLV: the fields before its address prefix, identical in all three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixTlv<'a> {
    bytes: &'a [u8],
}

impl<'a> PrefixTlv<'a> {
    /// Octets before the address prefix.
    pub const HEAD: usize = 12;

    /// Returns a view of the TLV at the start of `bytes`, which is where an
    /// [`Advertisement`](crate::pnc::Advertisement) begins.
    ///
    /// # Errors
    /// Fails if its head is incomplete.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self> {
        let head = bytes.get(..Self::HEAD);
        let bytes = head.ok_or(Error::short(LAYER, Self::HEAD, bytes.len()))?;
        Ok(Self { bytes })
    }

    /// Returns the TLV type, see [`tlv_type`].
    #[must_use]
    pub fn kind(&self) -> u16 {
        u16_at(self.bytes, 0)
    }

    /// Returns the TLV length: octets after type and length, without padding.
    #[must_use]
    pub fn value_len(&self) -> u16 {
        u16_at(self.bytes, 2)
    }

    /// Returns the flags of an External-Prefix TLV (E, F, T), above a metric of 24 bits.
    #[must_use]
    pub fn flags_and_metric(&self) -> u32 {
        u32_at(self.bytes, 4)
    }

    /// Returns the prefix length in bits.
    #[must_use]
    pub fn prefix_bits(&self) -> u8 {
        u8_at(self.bytes, 8)
    }

    /// Returns the prefix options (RFC 5340 section A.4.1.1).
    #[must_use]
    pub fn prefix_options(&self) -> u8 {
        u8_at(self.bytes, 9)
    }
}

/// Type of extended LSA to write.
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
}

/// A prefix TLV to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixRepr<'a> {
    /// The prefix, of the instance's family.
    pub prefix: Prefix,
    /// Prefix options octet (RFC 5340 section A.4.1.1): LA 0x02, N 0x20.
    pub options: u8,
    /// Metric, 24 bits.
    pub metric: u32,
    /// Octets of the Prefix Extended Flags; `None` writes no sub-TLV.
    pub flags: Option<&'a [u8]>,
}

/// An extended LSA to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LsaRepr<'a> {
    /// Type of the LSA.
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

/// An OSPFv3 LS Update to write.
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
    /// Returns the packet with its lengths and checksums (the packet's own for the IPv6 addresses
    /// `source` and `destination`).
    ///
    /// # Errors
    /// Fails on a prefix of a family that the instance does not carry, or lengths too large for
    /// their fields.
    pub fn to_bytes(&self, source: Ipv6Addr, destination: Ipv6Addr) -> Result<Vec<u8>> {
        // LS type of the E-Router-LSA.
        const E_ROUTER_LSA: u16 = 0xA021;
        let tail = [0, 0, self.instance, 0];
        let ids = (self.router_id, self.area);
        let mut w = LsUpdate::write(ids, &tail, self.lsas, |w, lsa| {
            let intra = lsa.kind == LsaKind::IntraAreaPrefix;
            if !intra && lsa.prefixes.len() != 1 {
                let (at, count) = (w.len() + LSA_HEADER, lsa.prefixes.len() as u64);
                return Err(Error::value(LAYER, at, "prefixes", count, "1 in this LSA"));
            }
            let header = LsaHeader {
                age: lsa.age,
                options_and_type: lsa.kind.ls_type(),
                link_state_id: lsa.link_state_id,
                advertising_router: lsa.advertising_router,
                sequence: lsa.sequence,
            };
            header.write(w, |w| {
                if intra {
                    w.u16(0);
                    w.u16(E_ROUTER_LSA);
                    w.u32(0);
                    w.put(&lsa.advertising_router.octets());
                }
                lsa.prefixes
                    .iter()
                    .try_for_each(|p| p.write(w, lsa.kind, is_v6(self.instance)))
            })
        })?;
        // RFC 5340 section A.3.1, RFC 8200 section 8.1.
        let addresses = [&source.octets()[..], &destination.octets()];
        let (len, parts) = (w.len(), [w.octets_from(0)]);
        let sum = checksum::of_transport(addresses, next_header::OSPF, len, &parts);
        w.patch(CHECKSUM, &sum.to_be_bytes());
        Ok(w.finish())
    }
}

impl PrefixRepr<'_> {
    fn write(&self, w: &mut Writer, kind: LsaKind, v6: bool) -> Result<()> {
        /// Metric type 2 (E bit).
        const EXTERNAL_2: u32 = 0x0400_0000;
        let prefix = self.prefix;
        if prefix.address().is_ipv6() != v6 {
            let (family, expected) = (if v6 { 4 } else { 6 }, "a prefix of the instance's family");
            return Err(Error::value(LAYER, w.len(), "prefix", family, expected));
        }
        let external = if kind == LsaKind::AsExternal {
            EXTERNAL_2
        } else {
            0
        };
        w.u16(prefix_tlvs(kind.ls_type()).map_or(0, |spec| spec.tlv));
        w.counted(2, "TLV length", |w| {
            w.u32(external | (self.metric & 0x00FF_FFFF));
            w.put(&[prefix.bits(), self.options, 0, 0]);
            w.address(prefix, word_octets(prefix.bits()));
            FLAGS.write(w, self.flags)
        })
    }
}
