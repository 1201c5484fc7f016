//! Routing messages of a proxy node in galleries and simulations: IS-IS, OSPFv2, OSPFv3 and BGP.
//! The callers decide which prefixes are advertised, and when; the wire crate implements the
//! formats.

use fcn_wire::Result;
use fcn_wire::compose::Part;
use fcn_wire::ipv6_ext::next_header;
use fcn_wire::pnc::bgp::{AFI_IPV4, AFI_IPV6, SAFI_UNICAST};
use fcn_wire::pnc::bgp::{CharacteristicRepr, NhcRepr};
use fcn_wire::pnc::isis::{LspRepr, ReachKind, ReachRepr};
use fcn_wire::pnc::{Flooding, Level, Prefix, bgp_update, ospf2, ospf3};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// MAC address of all level 2 intermediate systems (ISO 10589).
pub const ALL_L2: [u8; 6] = [0x01, 0x80, 0xC2, 0x00, 0x00, 0x15];
const ALL_SPF4: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 5);
const ALL_SPF6: Ipv6Addr = Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 0, 0, 5);
/// First LSA sequence number of OSPF (RFC 2328 section 12.1.6).
const FIRST_SEQUENCE: u32 = 0x8000_0001;
/// Metric of every prefix.
pub const METRIC: u32 = 10;
/// LLC header of IS-IS.
const LLC: [u8; 3] = [0xFE, 0xFE, 0x03];
/// DSCP 48, not ECN-capable.
const CLASS: u8 = 48 << 2;

/// Returns a prefix of an LSP.
pub const fn reach(kind: ReachKind, prefix: Prefix, flags: Option<&[u8]>) -> ReachRepr<'_> {
    ReachRepr {
        kind,
        prefix,
        metric: METRIC,
        down: false,
        flags,
    }
}

/// Builds the LSP of a system at a level, as LLC header and PDU.
pub fn lsp(
    level: Level,
    system: u32,
    sequence: u32,
    prefixes: &[ReachRepr<'_>],
) -> Result<Vec<u8>> {
    let [a, b, c, d] = system.to_be_bytes();
    let repr = LspRepr {
        level,
        lsp_id: [0, 0, a, b, c, d, 0, 0],
        sequence,
        lifetime: 1_199,
        area: &[0x49, 0x00, 0x01],
        hostname: "proxy",
        prefixes,
    };
    Ok([&LLC[..], &repr.to_bytes()?].concat())
}

/// Builds an OSPFv2 LS Update of a router in an area; `number` counts its updates from 0.
pub fn ospf2_update(
    (router, area): (Ipv4Addr, Ipv4Addr),
    number: u32,
    prefixes: &[ospf2::ExtendedPrefixRepr<'_>],
) -> Result<Vec<u8>> {
    let lsas = [ospf2::LsaRepr {
        age: 1,
        flooding: Flooding::Area,
        opaque_id: 1,
        advertising_router: router,
        sequence: FIRST_SEQUENCE + number,
        prefixes,
    }];
    let repr = ospf2::LsUpdateRepr {
        router_id: router,
        area,
        lsas: &lsas,
    };
    repr.to_bytes()
}

/// Returns the layers of an OSPFv2 packet.
pub const fn ospf2(source: Ipv4Addr, bytes: &[u8]) -> [Part<'_>; 2] {
    let ip = Part::Ipv4 {
        source,
        destination: ALL_SPF4,
        tos: CLASS,
        ttl: 1,
        id: 0,
        options: &[],
    };
    [ip, carried(next_header::OSPF, bytes)]
}

/// Builds an OSPFv3 LS Update of a router in an area, from its link-local address; `number` counts
/// its updates from 0.
pub fn ospf3_update(
    (router, area): (Ipv4Addr, Ipv4Addr),
    source: Ipv6Addr,
    kind: ospf3::LsaKind,
    number: u32,
    prefixes: &[ospf3::PrefixRepr<'_>],
) -> Result<Vec<u8>> {
    let lsas = [ospf3::LsaRepr {
        kind,
        age: 1,
        link_state_id: 1,
        advertising_router: router,
        sequence: FIRST_SEQUENCE + number,
        prefixes,
    }];
    let repr = ospf3::LsUpdateRepr {
        router_id: router,
        area,
        instance: 0,
        lsas: &lsas,
    };
    repr.to_bytes(source, ALL_SPF6)
}

/// Returns the layers of an OSPFv3 packet from a link-local address.
pub const fn ospf3(source: Ipv6Addr, bytes: &[u8]) -> [Part<'_>; 2] {
    let ip = Part::Ipv6 {
        source,
        destination: ALL_SPF6,
        traffic_class: CLASS,
        flow_label: 0,
        hop_limit: 1,
    };
    [ip, carried(next_header::OSPF, bytes)]
}

/// Returns a payload that follows an IP header with this protocol number, or an IEEE 802.3 length.
pub const fn carried(protocol: u8, bytes: &[u8]) -> Part<'_> {
    Part::Payload {
        ether_type: 0,
        protocol,
        bytes,
    }
}

/// Builds a BGP UPDATE for `prefixes` by `next_hop`, with attribute 39 for `characteristics_of`.
pub fn update(
    prefixes: &[Prefix],
    next_hop: IpAddr,
    characteristics_of: IpAddr,
    characteristics: &[CharacteristicRepr<'_>],
) -> Result<Vec<u8>> {
    let nhc = NhcRepr {
        afi: if next_hop.is_ipv4() {
            AFI_IPV4
        } else {
            AFI_IPV6
        },
        safi: SAFI_UNICAST,
        next_hop: characteristics_of,
        characteristics,
    };
    bgp_update(next_hop, prefixes, Some(nhc))
}
