//! Defects of the notification to the proxy node, and of the proxy address option.

use super::BEHIND_V6;
use crate::gallery::cast::{DATA_V4, DATA_V6, PROXY, PROXY4, SWITCH, SWITCH4};
use crate::gallery::messages::proxy_cn;
use crate::gallery::scene::Scene;
use fcn_wire::cnp::DEFAULT_TRAFFIC_CLASS;
use fcn_wire::compose::{OptionPart, Part};
use fcn_wire::proxy_address::ProxyAddress;
use fcn_wire::{Result, Rule};
use std::net::Ipv6Addr;

const IP4: Part<'static> = Part::v4(SWITCH4, PROXY4, DEFAULT_TRAFFIC_CLASS);
const IP6: Part<'static> = Part::v6(SWITCH, PROXY, DEFAULT_TRAFFIC_CLASS);

pub fn compose(scene: &mut Scene) -> Result<()> {
    over_v4(scene)?;
    over_v6(scene)?;
    options(scene)
}

/// A notification behind `ip`.
fn tell(
    scene: &mut Scene,
    comment: &str,
    ip: Part<'_>,
    bytes: &[u8],
    breaks: &[Rule],
) -> Result<()> {
    scene
        .say(comment, &[ip, scene.proxy_udp(), Part::Bytes(bytes)])?
        .breaks(breaks);
    Ok(())
}

fn over_v4(scene: &mut Scene) -> Result<()> {
    let quoted = scene.invoking(DATA_V4)?;
    let good = proxy_cn(scene.tuple4(), 5, &quoted)?;
    tell(scene, "A good one first", IP4, &good, &[])?;
    for (comment, octet, mask, breaks) in [
        (
            "Reserved bits are not 0",
            15,
            1,
            &[Rule::ProxyCnReserved][..],
        ),
        (
            "The five-tuple has another source port",
            9,
            1,
            &[Rule::ProxyCnTuple],
        ),
        ("Another protocol", 8, 17 ^ 6, &[Rule::ProxyCnTuple]),
        (
            "Another source address: the quoted packet no longer tells the family",
            3,
            1,
            &[Rule::ProxyCnFamily, Rule::ProxyCnTuple],
        ),
        (
            "What is quoted is no IP packet",
            16,
            0x45 ^ 0x15,
            &[Rule::ProxyCnFamily, Rule::ProxyCnTuple],
        ),
    ] {
        let mut bytes = good.clone();
        bytes[octet] ^= mask;
        tell(scene, comment, IP4, &bytes, breaks)?;
    }
    let comment = "No invoking packet";
    let rules = [Rule::ProxyCnInvokingNone];
    tell(scene, comment, IP4, &good[..16], &rules)?;
    let comment = "Less of the invoking packet than would fit: worth a note";
    let rules = [Rule::ProxyCnInvokingShort];
    tell(scene, comment, IP4, &good[..16 + 28], &rules)?;
    let comment = "Too short for its five-tuple";
    tell(scene, comment, IP4, &good[..15], &[Rule::ProxyCnMalformed])?;
    let long = proxy_cn(scene.tuple4(), 5, &[&quoted[..], &[0; 500]].concat())?;
    let rules = [Rule::ProxyCnTooLong];
    tell(scene, "Longer than 576 octets", IP4, &long, &rules)
}

fn over_v6(scene: &mut Scene) -> Result<()> {
    let quoted = scene.invoking(DATA_V6)?;
    let mut other = proxy_cn(scene.tuple6(), 5, &quoted)?;
    other[35] ^= 1;
    let comment = "The five-tuple has another destination port, IPv6";
    tell(scene, comment, IP6, &other, &[Rule::ProxyCnTuple])?;
    other[35] ^= 1;
    let comment = "Another UDP checksum, IPv6";
    tell(scene, comment, IP6, &other, &[Rule::ProxyCnChecksum])?;
    scene.spoil(|b| b[BEHIND_V6 + 6] ^= 1);
    let long = proxy_cn(scene.tuple6(), 5, &[&quoted[..], &[0; 1200]].concat())?;
    let rules = [Rule::ProxyCnTooLong];
    tell(scene, "Longer than 1280 octets", IP6, &long, &rules)
}

fn options(scene: &mut Scene) -> Result<()> {
    let address = |address| OptionPart::ProxyAddress(ProxyAddress(address));
    let right = address(PROXY);
    let code = scene.profile().proxy_address_option;
    for (comment, header, rule) in [
        (
            "Proxy address in a Hop-by-Hop Options header",
            Part::HopByHop(&[right]),
            Rule::ProxyAddressHopByHop,
        ),
        (
            "Two proxy addresses",
            Part::DestinationOptions(&[right, right]),
            Rule::ProxyAddressSeveral,
        ),
        (
            "Opt Data Len 12",
            Part::DestinationOptions(&[OptionPart::Raw(code, (4, 2), &[0x20; 12])]),
            Rule::ProxyAddressLength,
        ),
        (
            "The unspecified address",
            Part::DestinationOptions(&[address(Ipv6Addr::UNSPECIFIED)]),
            Rule::ProxyAddressInvalid,
        ),
        (
            "A multicast address",
            Part::DestinationOptions(&[address(Ipv6Addr::new(0xff0e, 0, 0, 0, 0, 0, 0, 1))]),
            Rule::ProxyAddressInvalid,
        ),
    ] {
        scene
            .say(
                comment,
                &[&[DATA_V6, header], &scene.data(0x800)[..]].concat(),
            )?
            .breaks(&[rule]);
    }
    let whole = [DATA_V6, Part::DestinationOptions(&[right])];
    scene
        .say(
            "Runs past its header",
            &[&whole, &scene.data(0x800)[..]].concat(),
        )?
        .spoil(|b| b[BEHIND_V6 + 3] = 200)
        .breaks(&[Rule::ProxyAddressLength]);
    Ok(())
}
