//! Fast CNPs in tunnels, and behind other link layers than Ethernet.

use crate::gallery::cast::{
    CONTROL_CLASS, EGRESS, INGRESS, RECEIVER4, SENDER4, TO_INGRESS, VXLAN, VXLAN_UDP, label, outer,
    srv6, tag,
};
use crate::gallery::scene::{ETHERNET, Scene};
use fcn_wire::compose::Part;
use fcn_wire::{LinkType, Result};

/// Linux cooked capture, version 1: unicast to us, Ethernet, 6 octets of address, IPv6.
const COOKED: [u8; 16] = [0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 0x86, 0xDD];

pub fn compose(scene: &mut Scene) -> Result<()> {
    let outer6 = outer(EGRESS, INGRESS, CONTROL_CLASS);
    let outer4 = Part::v4(RECEIVER4, SENDER4, CONTROL_CLASS);
    let [segment, routing] = srv6(EGRESS, TO_INGRESS, CONTROL_CLASS);
    for (comment, tunnel) in [
        ("One 802.1Q tag", &[tag(30, false)][..]),
        ("802.1ad and 802.1Q tags", &[tag(200, true), tag(30, false)]),
        ("Two MPLS labels", &[label(100_016), label(16)]),
        ("VXLAN over IPv4", &[outer4, VXLAN_UDP, VXLAN, ETHERNET]),
        (
            "VXLAN over IPv6, a tag inside",
            &[outer6, VXLAN_UDP, VXLAN, ETHERNET, tag(30, false)],
        ),
        ("SRv6 with a segment routing header", &[segment, routing]),
        ("SRv6 without one: IPv6 in IPv6", &[outer6]),
        (
            "SRv6 carrying VXLAN",
            &[segment, routing, outer4, VXLAN_UDP, VXLAN, ETHERNET],
        ),
        ("SRv6 carrying Ethernet (End.DX2)", &[outer6, ETHERNET]),
    ] {
        scene.say(comment, &[tunnel, &scene.fast_cnp1()].concat())?;
    }
    let bytes = scene.packet(&scene.fast_cnp1())?;
    let cooked = [&COOKED[..], &bytes].concat();
    scene.octets("Raw IP, without a link layer", bytes, LinkType::RawIp);
    scene.octets(
        "Linux cooked capture (the interface `any`)",
        cooked,
        LinkType::LinuxCooked,
    );
    Ok(())
}
