//! A BGP UPDATE as a proxy node sends it within an AS: what `crate::pnc::bgp` reads.

use crate::pnc::Prefix;
use crate::pnc::bgp::attribute::{FLAG_EXTENDED, MP_REACH, NEXT_HOP};
use crate::pnc::bgp::{AFI_IPV4, AFI_IPV6, NhcRepr, SAFI_UNICAST};
use crate::{Error, Layer, Result};
use std::net::IpAddr;

const TRANSITIVE: u8 = 0x40;
const OPTIONAL: u8 = 0x80;
/// LOCAL_PREF of a route that nobody prefers to another.
const LOCAL_PREF: u32 = 100;

/// An UPDATE for `prefixes`, all of one family. IPv4 with an IPv4 next hop goes into the NLRI field with NEXT_HOP, all else
/// into MP_REACH_NLRI (RFC 4760; IPv4 with an IPv6 next hop as in RFC 8950).
///
/// # Errors
/// Prefixes of both families, IPv6 prefixes with an IPv4 next hop, or more than a length field can say.
pub fn bgp_update(
    next_hop: IpAddr,
    prefixes: &[Prefix],
    nhc: Option<NhcRepr<'_>>,
) -> Result<Vec<u8>> {
    let v6 = prefixes
        .first()
        .map_or(next_hop.is_ipv6(), |p| p.address().is_ipv6());
    if prefixes.iter().any(|p| p.address().is_ipv6() != v6) {
        return Err(Error::value(
            Layer::Bgp,
            0,
            "prefix",
            0,
            "prefixes of one family",
        ));
    }
    let mut nlri = Vec::new();
    for prefix in prefixes {
        let octets = match prefix.address() {
            IpAddr::V4(v4) => v4.octets().to_vec(),
            IpAddr::V6(v6) => v6.octets().to_vec(),
        };
        nlri.push(prefix.bits());
        nlri.extend(&octets[..usize::from(prefix.bits()).div_ceil(8)]);
    }
    // ORIGIN: IGP. AS_PATH: empty within an AS.
    let mut attributes = vec![TRANSITIVE, 1, 1, 0, TRANSITIVE, 2, 0];
    if let IpAddr::V4(hop) = next_hop {
        if v6 {
            return Err(Error::value(
                Layer::Bgp,
                0,
                "next hop",
                4,
                "an IPv6 address",
            ));
        }
        attributes.extend([TRANSITIVE, NEXT_HOP, 4]);
        attributes.extend(hop.octets());
    }
    attributes.extend([TRANSITIVE, 5, 4]);
    attributes.extend(LOCAL_PREF.to_be_bytes());
    if let IpAddr::V6(hop) = next_hop {
        let afi = if v6 { AFI_IPV6 } else { AFI_IPV4 };
        let len = 21 + nlri.len();
        match u8::try_from(len) {
            Ok(len) => attributes.extend([OPTIONAL, MP_REACH, len]),
            Err(_) => {
                attributes.extend([OPTIONAL | FLAG_EXTENDED, MP_REACH]);
                attributes.extend(length("attribute length", len)?);
            }
        }
        attributes.extend(afi.to_be_bytes());
        attributes.extend([SAFI_UNICAST, 16]);
        attributes.extend(hop.octets());
        attributes.push(0);
        attributes.append(&mut nlri);
    }
    if let Some(nhc) = nhc {
        let from = attributes.len();
        attributes.resize(from + nhc.buffer_len()?, 0);
        nhc.emit(&mut attributes[from..])?;
    }
    Ok([
        &[0xFF; 16][..],
        &length("Length", 23 + attributes.len() + nlri.len())?,
        &[2, 0, 0],
        &length("Total Path Attribute Length", attributes.len())?,
        &attributes,
        &nlri,
    ]
    .concat())
}

fn length(field: &'static str, len: usize) -> Result<[u8; 2]> {
    let fits = u16::try_from(len).map(u16::to_be_bytes);
    fits.map_err(|_| Error::length(Layer::Bgp, 0, field, len, 0, 0xFFFF))
}
