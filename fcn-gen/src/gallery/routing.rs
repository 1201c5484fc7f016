//! Routing messages of the proxy node: IS-IS, OSPFv2, OSPFv3 and BGP. What they say is the families' business.

use super::cast::{CONTROL_CLASS, PROXY, PROXY4, RECEIVER4, SENDER4};
use super::scene::Scene;
use crate::routing::{self, ALL_L2, FIRST_SEQUENCE, METRIC, carried};
pub use crate::routing::{reach, update};
use fcn_wire::Result;
use fcn_wire::compose::{Part, UdpChecksum};
use fcn_wire::pnc::bgp::CharacteristicRepr;
use fcn_wire::pnc::isis::ReachRepr;
use fcn_wire::pnc::{Level, Prefix, isis, ospf2, ospf3};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Prefix Attribute Flags of IS-IS with the PNC flag, bit 7, alone.
pub const ISIS_PNC: &[u8] = &[isis::FLAG_PNC];
/// Prefix Attribute Flags of OSPF with the PNC flag, bit 2, alone.
pub const OSPF_PNC: &[u8] = &ospf2::FLAGS_PNC_ONLY;

/// A characteristic that has nothing to do with proxies: the next hop processes entropy labels.
pub const OTHER_CHARACTERISTIC: CharacteristicRepr<'static> = CharacteristicRepr {
    code: 1,
    value: &[],
};

/// The proxy node's router ID.
pub const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 15);
/// OSPF's backbone area.
pub const BACKBONE: Ipv4Addr = Ipv4Addr::UNSPECIFIED;
const LINK_LOCAL: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0xf);

impl Scene {
    /// The characteristic that says PNC.
    pub const fn pnc(&self) -> CharacteristicRepr<'static> {
        CharacteristicRepr {
            code: self.profile().bgp_pnc_characteristic,
            value: &[],
        }
    }
}

/// The proxy's host prefixes.
pub fn hosts() -> [Prefix; 2] {
    [Prefix::host(PROXY4.into()), Prefix::host(PROXY.into())]
}

/// The LSP of the proxy node, as LLC and PDU.
pub fn lsp(prefixes: &[ReachRepr<'_>]) -> Result<Vec<u8>> {
    lsp_of(Level::L2, 0x15, prefixes)
}

/// The LSP of a system at a level, as LLC and PDU.
pub fn lsp_of(level: Level, system: u32, prefixes: &[ReachRepr<'_>]) -> Result<Vec<u8>> {
    routing::lsp(level, system, 7, prefixes)
}

/// An LSP in an Ethernet frame.
pub const fn isis(bytes: &[u8]) -> [Part<'_>; 2] {
    let header = Part::Ethernet {
        source: [2, 0, 0, 0, 0, 0xF],
        destination: ALL_L2,
    };
    [header, carried(0, bytes)]
}

/// An OSPFv2 LS Update of the proxy node.
pub fn ospf2_update(prefix: Prefix, flags: Option<&[u8]>) -> Result<Vec<u8>> {
    ospf2_update_of((ROUTER, BACKBONE), ospf2::INTRA_AREA, prefix, flags)
}

/// An OSPFv2 LS Update of a router in an area.
pub fn ospf2_update_of(
    router: (Ipv4Addr, Ipv4Addr),
    route_type: u8,
    prefix: Prefix,
    flags: Option<&[u8]>,
) -> Result<Vec<u8>> {
    let prefixes = [ospf2::ExtendedPrefixRepr {
        route_type,
        prefix,
        tlv_flags: 0x40,
        flags,
    }];
    routing::ospf2_update(router, FIRST_SEQUENCE, &prefixes)
}

/// An OSPFv2 packet.
pub const fn ospf2(bytes: &[u8]) -> [Part<'_>; 2] {
    routing::ospf2(ROUTER, bytes)
}

/// An OSPFv3 LS Update of the proxy node.
pub fn ospf3_update(kind: ospf3::LsaKind, prefix: Prefix, flags: Option<&[u8]>) -> Result<Vec<u8>> {
    ospf3_update_of((ROUTER, BACKBONE), kind, prefix, flags)
}

/// An OSPFv3 LS Update of a router in an area.
pub fn ospf3_update_of(
    router: (Ipv4Addr, Ipv4Addr),
    kind: ospf3::LsaKind,
    prefix: Prefix,
    flags: Option<&[u8]>,
) -> Result<Vec<u8>> {
    let prefixes = [ospf3::PrefixRepr {
        prefix,
        options: 0x02,
        metric: METRIC,
        flags,
    }];
    routing::ospf3_update(router, LINK_LOCAL, kind, FIRST_SEQUENCE, &prefixes)
}

/// An OSPFv3 packet.
pub const fn ospf3(bytes: &[u8]) -> [Part<'_>; 2] {
    routing::ospf3(LINK_LOCAL, bytes)
}

/// A segment of a BGP session with `bytes`. The checksum is left 0, as capturing before offload shows it.
pub const fn bgp(sequence: u32, bytes: &[u8]) -> [Part<'_>; 3] {
    [
        Part::v4(SENDER4, RECEIVER4, CONTROL_CLASS),
        Part::Tcp {
            source: 50_000,
            destination: fcn_wire::pnc::bgp::PORT,
            sequence,
            acknowledgement: 1,
            push: true,
            window: 0x4000,
            checksum: UdpChecksum::Zero,
        },
        Part::Bytes(bytes),
    ]
}
