//! PNC in OSPFv2: the OSPFv2 Prefix Extended Flags sub-TLV (RFC 9792) of Extended Prefix TLVs in
//! Extended Prefix Opaque LSAs (RFC 7684), parsed from and written as LS Update packets.
//!
//! Other packets, LSAs and TLVs are skipped. The IP header is in `frame.rs`.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  LS Update (RFC 2328 section A.3.5)
//! |   Version 2   |    Type 4     |         Packet Length         |   0
//! |                           Router ID                           |   4
//! |                            Area ID                            |   8
//! |           Checksum            |            AuType             |  12
//! |                     Authentication (64)                       |  16
//! |                        Number of LSAs                         |  24
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  Opaque LSA (RFC 5250)
//! |            LS Age             |    Options    |LS Type 9,10,11|   0
//! | Opaque Type 7 |                  Opaque ID                    |   4
//! |                      Advertising Router                       |   8
//! |                      LS Sequence Number                       |  12
//! |          LS Checksum          |            Length             |  16
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  Extended Prefix TLV (RFC 7684 section 2.1)
//! |            Type 1             |            Length             |   0
//! |  Route Type   | Prefix Length |     AF 0      |A|N|   Flags   |   4
//! |                        Address Prefix                         |   8
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  Prefix Extended Flags sub-TLV (RFC 9792)
//! |            Type 11            |     Length, at least 4        |   0
//! |   |P|              Flags, P: PNC (bit 2)                      |   4
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! ```
//! use fcn_wire::pnc::ospf2::{ExtendedPrefixRepr, FLAGS_PNC_ONLY, INTRA_AREA, LsUpdate, LsUpdateRepr, LsaRepr};
//! use fcn_wire::pnc::{Flooding, Prefix};
//! use std::net::Ipv4Addr;
//!
//! let router = Ipv4Addr::new(10, 0, 0, 15);
//! let prefixes = [ExtendedPrefixRepr {
//!     route_type: INTRA_AREA,
//!     prefix: Prefix::host(router.into()),
//!     tlv_flags: 0x40,
//!     flags: Some(&FLAGS_PNC_ONLY),
//! }];
//! let lsas = [LsaRepr {
//!     age: 1,
//!     flooding: Flooding::Area,
//!     opaque_id: 1,
//!     advertising_router: router,
//!     sequence: 0x8000_0001,
//!     prefixes: &prefixes,
//! }];
//! let update = LsUpdateRepr { router_id: router, area: Ipv4Addr::UNSPECIFIED, lsas: &lsas };
//! let packet = update.to_bytes()?;
//!
//! let found = LsUpdate::new_checked(&packet, packet.len())?.advertisements().next().unwrap();
//! assert!(found.pnc && found.prefix == Some(prefixes[0].prefix));
//! # Ok::<(), fcn_wire::Error>(())
//! ```

use super::{LsaHeader, PrefixTlvSpec, lsa_field};
use crate::checksum;
use crate::error::{Error, Result};
use crate::layer::Layer;
use crate::octets::{ipv4_at, u8_at, u24_at};
use crate::pnc::tlv::{FlagsSubTlv, Shape, Writer};
use crate::pnc::{Flooding, Origin, Prefix};
use std::net::Ipv4Addr;

/// Opaque type of the Extended Prefix Opaque LSA (RFC 7684 section 2).
pub const OPAQUE_EXTENDED_PREFIX: u8 = 7;
/// TLV type of the Extended Prefix TLV (RFC 7684 section 2.1).
const EXTENDED_PREFIX_TLV: u16 = 1;
/// Route type of the Extended Prefix TLV: intra-area.
pub const INTRA_AREA: u8 = 1;
/// Route type of the Extended Prefix TLV: inter-area.
pub const INTER_AREA: u8 = 3;
/// Sub-TLV type of the OSPFv2 Prefix Extended Flags (RFC 9792 section 2).
pub const FLAGS_SUB_TLV: u16 = 11;
/// PNC in the first octet of the Prefix Extended Flags: bit 2 of 32 (draft section 5.1.2).
pub(super) const FLAG_PNC: u8 = 0x20;
/// Flags with only PNC set.
pub const FLAGS_PNC_ONLY: [u8; 4] = [FLAG_PNC, 0, 0, 0];

const LAYER: Layer = Layer::Ospf2;
const CHECKSUM: usize = 12;

pub(super) const FLAGS: FlagsSubTlv = FlagsSubTlv {
    shape: Shape::Padded,
    kind: FLAGS_SUB_TLV,
    pnc: FLAG_PNC,
};

/// An OSPFv2 LS Update.
pub type LsUpdate<'a> = super::LsUpdate<'a, 2>;

/// Returns the TLVs with prefixes in the LSA with that header, if there are any.
pub(super) fn prefix_tlvs(header: &[u8]) -> Option<PrefixTlvSpec> {
    let extended_prefix = matches!(u8_at(header, lsa_field::TYPE), 9..=11)
        && u8_at(header, lsa_field::LINK_STATE_ID) == OPAQUE_EXTENDED_PREFIX;
    extended_prefix.then_some(PrefixTlvSpec {
        tlv: EXTENDED_PREFIX_TLV,
        head: 0,
        single: false,
    })
}

pub(super) fn origin(area: Ipv4Addr, lsa: &[u8], route_type: u8) -> Origin {
    Origin::Ospf2 {
        area,
        advertising_router: ipv4_at(lsa, lsa_field::ADVERTISING_ROUTER),
        opaque_id: u24_at(lsa, lsa_field::LINK_STATE_ID + 1),
        flooding: match u8_at(lsa, lsa_field::TYPE) {
            9 => Flooding::Link,
            10 => Flooding::Area,
            _ => Flooding::Domain,
        },
        route_type,
    }
}

/// An Extended Prefix TLV to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtendedPrefixRepr<'a> {
    /// 0 unspecified, 1 intra-area, 3 inter-area, 5 external, 7 NSSA external.
    pub route_type: u8,
    /// The prefix; IPv4.
    pub prefix: Prefix,
    /// Flags octet of the TLV: A 0x80, N 0x40.
    pub tlv_flags: u8,
    /// Octets of the Prefix Extended Flags; `None` writes no sub-TLV.
    pub flags: Option<&'a [u8]>,
}

/// An Extended Prefix Opaque LSA to write.
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

/// An OSPFv2 LS Update to write, without authentication.
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
    /// Returns the packet with its lengths and checksums.
    ///
    /// # Errors
    /// Fails on a prefix that is not IPv4, a scope that OSPFv2 does not have, or lengths too large
    /// for their fields.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        // After the area: checksum, no authentication.
        let ids = (self.router_id, self.area);
        let mut w = LsUpdate::write(ids, &[0; 12], self.lsas, |w, lsa| {
            let kind = match lsa.flooding {
                Flooding::Link => 9,
                Flooding::Area => 10,
                Flooding::Domain => 11,
                Flooding::Reserved => {
                    let (at, expected) = (w.len() + lsa_field::TYPE, "link, area or domain scope");
                    return Err(Error::value(LAYER, at, "LS Type", 0, expected));
                }
            };
            let header = LsaHeader {
                age: lsa.age,
                // Options: O, opaque LSAs are supported (RFC 5250).
                options_and_type: 0x4000 | kind,
                link_state_id: u32::from(OPAQUE_EXTENDED_PREFIX) << 24
                    | (lsa.opaque_id & 0x00FF_FFFF),
                advertising_router: lsa.advertising_router,
                sequence: lsa.sequence,
            };
            header.write(w, |w| lsa.prefixes.iter().try_for_each(|p| p.write(w)))
        })?;
        // RFC 2328 section A.3.1: without the authentication field, which is 0 here.
        let sum = checksum::internet(&[w.octets_from(0)]);
        w.patch(CHECKSUM, &sum.to_be_bytes());
        Ok(w.finish())
    }
}

impl ExtendedPrefixRepr<'_> {
    fn write(&self, w: &mut Writer) -> Result<()> {
        if self.prefix.address().is_ipv6() {
            return Err(Error::value(LAYER, w.len(), "prefix", 6, "an IPv4 prefix"));
        }
        w.u16(EXTENDED_PREFIX_TLV);
        w.counted(2, "TLV length", |w| {
            w.put(&[self.route_type, self.prefix.bits(), 0, self.tlv_flags]);
            w.address(self.prefix, 4);
            FLAGS.write(w, self.flags)
        })
    }
}
