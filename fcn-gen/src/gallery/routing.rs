//! Routing messages of the proxy node: IS-IS, OSPFv2, OSPFv3 and BGP. What they say is the families' business.

use super::cast::{CONTROL_CLASS, PROXY, PROXY4, RECEIVER4, SENDER4, v4};
use super::scene::Scene;
use crate::bgp_update::bgp_update;
use fcn_wire::Result;
use fcn_wire::compose::Part;
use fcn_wire::ipv6_ext::next_header;
use fcn_wire::pnc::bgp::{AFI_IPV4, AFI_IPV6, CharacteristicRepr, NhcRepr, SAFI_UNICAST};
use fcn_wire::pnc::isis::{LspRepr, ReachKind, ReachRepr};
use fcn_wire::pnc::{Flooding, Level, Prefix, isis, ospf2, ospf3};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

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
const ALL_SPF4: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 5);
const ALL_SPF6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 5);
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

/// A prefix of an LSP.
pub const fn reach(kind: ReachKind, prefix: Prefix, flags: Option<&[u8]>) -> ReachRepr<'_> {
    ReachRepr {
        kind,
        prefix,
        metric: 10,
        down: false,
        flags,
    }
}

/// The LSP of the proxy node, as LLC and PDU.
pub fn lsp(prefixes: &[ReachRepr<'_>]) -> Result<Vec<u8>> {
    lsp_of(Level::L2, 0x15, prefixes)
}

/// The LSP of a system at a level, as LLC and PDU.
pub fn lsp_of(level: Level, system: u8, prefixes: &[ReachRepr<'_>]) -> Result<Vec<u8>> {
    let repr = LspRepr {
        level,
        lsp_id: [0, 0, 0, 0, 0, system, 0, 0],
        sequence: 7,
        lifetime: 1199,
        area: &[0x49, 0x00, 0x01],
        hostname: "proxy",
        prefixes,
    };
    let mut out = vec![0; 3 + repr.buffer_len()?];
    out[..3].copy_from_slice(&[0xFE, 0xFE, 0x03]);
    repr.emit(&mut out[3..])?;
    Ok(out)
}

/// An LSP in an Ethernet frame.
pub const fn isis(bytes: &[u8]) -> [Part<'_>; 2] {
    let all_l2 = [0x01, 0x80, 0xC2, 0x00, 0x00, 0x15];
    [
        Part::Ethernet {
            source: [2, 0, 0, 0, 0, 0xF],
            destination: all_l2,
        },
        Part::Payload {
            ether_type: 0,
            protocol: 0,
            bytes,
        },
    ]
}

/// An OSPFv2 LS Update of the proxy node.
pub fn ospf2_update(prefix: Prefix, flags: Option<&[u8]>) -> Result<Vec<u8>> {
    ospf2_update_of((ROUTER, BACKBONE), ospf2::INTRA_AREA, prefix, flags)
}

/// An OSPFv2 LS Update of a router in an area.
pub fn ospf2_update_of(
    (router, area): (Ipv4Addr, Ipv4Addr),
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
    let lsa = ospf2::LsaRepr {
        age: 1,
        flooding: Flooding::Area,
        opaque_id: 1,
        advertising_router: router,
        sequence: 0x8000_0001,
        prefixes: &prefixes,
    };
    let lsas = [lsa];
    let repr = ospf2::LsUpdateRepr {
        router_id: router,
        area,
        lsas: &lsas,
    };
    let mut out = vec![0; repr.buffer_len()?];
    repr.emit(&mut out)?;
    Ok(out)
}

/// An OSPFv2 packet.
pub const fn ospf2(bytes: &[u8]) -> [Part<'_>; 2] {
    [
        Part::Ipv4 {
            source: ROUTER,
            destination: ALL_SPF4,
            tos: CONTROL_CLASS,
            ttl: 1,
            id: 0,
            options: &[],
        },
        Part::Payload {
            ether_type: 0,
            protocol: next_header::OSPF,
            bytes,
        },
    ]
}

/// An OSPFv3 LS Update of the proxy node.
pub fn ospf3_update(kind: ospf3::LsaKind, prefix: Prefix, flags: Option<&[u8]>) -> Result<Vec<u8>> {
    ospf3_update_of((ROUTER, BACKBONE), kind, prefix, flags)
}

/// An OSPFv3 LS Update of a router in an area.
pub fn ospf3_update_of(
    (router, area): (Ipv4Addr, Ipv4Addr),
    kind: ospf3::LsaKind,
    prefix: Prefix,
    flags: Option<&[u8]>,
) -> Result<Vec<u8>> {
    let prefixes = [ospf3::PrefixRepr {
        prefix,
        options: 0x02,
        metric: 10,
        flags,
    }];
    let lsas = [ospf3::LsaRepr {
        kind,
        age: 1,
        link_state_id: 1,
        advertising_router: router,
        sequence: 0x8000_0001,
        prefixes: &prefixes,
    }];
    let repr = ospf3::LsUpdateRepr {
        router_id: router,
        area,
        instance: 0,
        lsas: &lsas,
    };
    let mut out = vec![0; repr.buffer_len()?];
    repr.emit(LINK_LOCAL, ALL_SPF6, &mut out)?;
    Ok(out)
}

/// An OSPFv3 packet.
pub const fn ospf3(bytes: &[u8]) -> [Part<'_>; 2] {
    [
        Part::Ipv6 {
            source: LINK_LOCAL,
            destination: ALL_SPF6,
            traffic_class: CONTROL_CLASS,
            flow_label: 0,
            hop_limit: 1,
        },
        Part::Payload {
            ether_type: 0,
            protocol: next_header::OSPF,
            bytes,
        },
    ]
}

/// A BGP UPDATE for `prefixes` by `next_hop`, with attribute 39 for `characteristics_of`.
pub fn update(
    prefixes: &[Prefix],
    next_hop: IpAddr,
    characteristics_of: IpAddr,
    characteristics: &[CharacteristicRepr<'_>],
) -> Result<Vec<u8>> {
    let afi = match prefixes.iter().all(|prefix| prefix.address().is_ipv4()) {
        true => AFI_IPV4,
        false => AFI_IPV6,
    };
    let nhc = NhcRepr {
        afi,
        safi: SAFI_UNICAST,
        next_hop: characteristics_of,
        characteristics,
    };
    bgp_update(next_hop, prefixes, Some(nhc))
}

/// A segment of a BGP session: TCP header and `bytes`. The checksum is left 0, as capturing before offload shows it.
pub fn segment(sequence: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 20];
    out[..4].copy_from_slice(&[0xC3, 0x50, 0x00, 0xB3]);
    out[4..8].copy_from_slice(&sequence.to_be_bytes());
    out[8..12].copy_from_slice(&1u32.to_be_bytes());
    out[12..16].copy_from_slice(&[0x50, 0x18, 0x40, 0x00]);
    out.extend(bytes);
    out
}

/// A BGP packet.
pub const fn bgp(bytes: &[u8]) -> [Part<'_>; 2] {
    [
        v4(SENDER4, RECEIVER4, CONTROL_CLASS),
        Part::Payload {
            ether_type: 0,
            protocol: next_header::TCP,
            bytes,
        },
    ]
}
