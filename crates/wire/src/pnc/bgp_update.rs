//! A BGP UPDATE as a proxy node sends it within an AS; `crate::pnc::bgp` parses it.

use crate::pnc::Prefix;
use crate::pnc::bgp::attribute::{MP_REACH, NEXT_HOP};
use crate::pnc::bgp::{AFI_IPV4, AFI_IPV6, MARKER, NhcRepr, SAFI_UNICAST, UPDATE};
use crate::pnc::tlv::Writer;
use crate::{Error, Layer, Result};
use std::net::IpAddr;

const TRANSITIVE: u8 = 0x40;
const OPTIONAL: u8 = 0x80;
/// LOCAL_PREF of a route without special preference.
const LOCAL_PREF: u32 = 100;

/// Returns an UPDATE for `prefixes`, all of one family. IPv4 with an IPv4 next hop goes into the
/// NLRI field with NEXT_HOP, everything else into MP_REACH_NLRI (RFC 4760; IPv4 with an IPv6 next
/// hop as in RFC 8950).
///
/// # Errors
/// Fails on prefixes of both families, IPv6 prefixes with an IPv4 next hop, or content too long for
/// a length field.
pub fn bgp_update(
    next_hop: IpAddr,
    prefixes: &[Prefix],
    nhc: Option<NhcRepr<'_>>,
) -> Result<Vec<u8>> {
    let v6 = prefixes
        .first()
        .map_or(next_hop.is_ipv6(), |p| p.address().is_ipv6());
    let wrong = |field, found, expected| Err(Error::value(Layer::Bgp, 0, field, found, expected));
    if prefixes.iter().any(|p| p.address().is_ipv6() != v6) {
        return wrong("prefix", 0, "prefixes of one family");
    }
    if v6 && next_hop.is_ipv4() {
        return wrong("next hop", 4, "an IPv6 address");
    }
    let nlri = |w: &mut Writer| {
        for prefix in prefixes {
            w.put(&[prefix.bits()]);
            w.address(*prefix, Prefix::octets(prefix.bits()));
        }
    };
    let mut w = Writer::new(Layer::Bgp);
    w.put(&[0xFF; MARKER]);
    w.put(&[0, 0, UPDATE, 0, 0]);
    w.counted(2, "Total Path Attribute Length", |w| {
        // ORIGIN: IGP. AS_PATH: empty within an AS.
        w.put(&[TRANSITIVE, 1, 1, 0, TRANSITIVE, 2, 0]);
        if let IpAddr::V4(hop) = next_hop {
            w.attribute(TRANSITIVE, NEXT_HOP, &hop.octets())?;
        }
        w.attribute(TRANSITIVE, 5, &LOCAL_PREF.to_be_bytes())?;
        if let IpAddr::V6(hop) = next_hop {
            let mut value = Writer::new(Layer::Bgp);
            value.u16(if v6 { AFI_IPV6 } else { AFI_IPV4 });
            value.put(&[SAFI_UNICAST, 16]);
            value.put(&hop.octets());
            value.put(&[0]);
            nlri(&mut value);
            w.attribute(OPTIONAL, MP_REACH, &value.finish())?;
        }
        if let Some(nhc) = nhc {
            w.put(&nhc.to_bytes()?);
        }
        Ok(())
    })?;
    if next_hop.is_ipv4() {
        nlri(&mut w);
    }
    w.patch_len(MARKER, 2, "Length", w.len())?;
    Ok(w.finish())
}
