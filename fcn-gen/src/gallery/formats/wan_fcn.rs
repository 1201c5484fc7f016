//! Fast CNP in the WAN: data in SRv6, VXLAN and SR-MPLS, the FCN to the ingress PE, the CNP that it makes of it.

use crate::gallery::cast::{
    CE_CLASS, CNP_V6, DATA_CLASS, DATA_V6, EGRESS, FCN_V6, FLOW_LABEL, INGRESS, SENDER_QP, SWITCH,
    TO_EGRESS, VXLAN, VXLAN_UDP, outer, srv6, tag,
};
use crate::gallery::messages::fcn;
use crate::gallery::scene::ETHERNET;
use crate::gallery::scene::Scene;
use fcn_wire::Result;
use fcn_wire::cnp::DEFAULT_TRAFFIC_CLASS;
use fcn_wire::compose::Part;

/// The Entropy Label Indicator: the next label is no more than entropy (RFC 6790 section 3).
const ENTROPY_LABEL_INDICATOR: u32 = 7;
/// Segments of an SR-MPLS path.
const SEGMENTS: [Part<'static>; 2] = [sr_label(16_001, 62), sr_label(100_016, 62)];

/// A label of the path to the egress PE, with the traffic class of data.
const fn sr_label(label: u32, ttl: u8) -> Part<'static> {
    Part::Mpls {
        label,
        traffic_class: 3,
        ttl,
    }
}

/// Entropy label and its indicator. The label is never forwarded by, so its TTL is 0 (RFC 6790 section 4.2).
const fn entropy(flow_label: u32) -> [Part<'static>; 2] {
    [
        sr_label(ENTROPY_LABEL_INDICATOR, 62),
        sr_label(flow_label, 0),
    ]
}

pub fn compose(scene: &mut Scene) -> Result<()> {
    let to_egress = outer(INGRESS, EGRESS, DATA_CLASS);
    carried(
        scene,
        "Data in SRv6; the outer flow label 0xabcde stands for the flow",
        &srv6(INGRESS, TO_EGRESS, DATA_CLASS),
    )?;
    tell(
        scene,
        "The congested P node tells the ingress PE: flow label 0xabcde, level 6",
        &[FCN_V6],
        6,
    )?;
    scene.say(
        "The ingress PE tells the sender in a standard CNP about its own QP 0x11",
        &[&[CNP_V6], &scene.cnp(SENDER_QP)[..]].concat(),
    )?;
    tell(
        scene,
        "Level not used (0), flow label not copied",
        &[Part::v6(SWITCH, INGRESS, DEFAULT_TRAFFIC_CLASS)],
        0,
    )?;
    let vxlan = [to_egress, VXLAN_UDP, VXLAN, ETHERNET];
    carried(scene, "Data in VXLAN over IPv6", &vxlan)?;
    tell(
        scene,
        "Level 1 (lowest), in a VLAN tag",
        &[tag(30, false), FCN_V6],
        1,
    )?;
    let ce = [outer(INGRESS, EGRESS, CE_CLASS)];
    let comment = "Data in SRv6 without a routing header, outer ECN field CE: no FCN for this one";
    carried(scene, comment, &ce)?;
    sr_mpls(scene)
}

/// SR-MPLS has no flow label: an entropy label carries it, alone or once for each part of the path.
fn sr_mpls(scene: &mut Scene) -> Result<()> {
    carried(scene, "Data in SR-MPLS without entropy", &SEGMENTS)?;
    let below = [&SEGMENTS[..], &entropy(FLOW_LABEL)].concat();
    carried(
        scene,
        "Data in SR-MPLS with entropy at the bottom (RFC 6790): indicator 7, then the label 0xabcde that stands for the flow",
        &below,
    )?;
    tell(
        scene,
        "The FCN about the entropy label 0xabcde, behind an MPLS label, level 7 (highest)",
        &[SEGMENTS[1], FCN_V6],
        7,
    )?;
    let [first, second] = SEGMENTS;
    let [indicator, entropy] = entropy(FLOW_LABEL);
    let twice = [first, indicator, entropy, second, indicator, entropy];
    carried(
        scene,
        "Data in SR-MPLS with the entropy label behind each segment (RFC 8662 section 7): for nodes that read few labels",
        &twice,
    )?;
    let vlan = [&[tag(30, false)], &below[..]].concat();
    carried(scene, "Data in SR-MPLS with entropy, in a VLAN tag", &vlan)
}

/// Data of the flow behind `tunnel`.
fn carried(scene: &mut Scene, comment: &str, tunnel: &[Part<'_>]) -> Result<()> {
    scene.say(comment, &[tunnel, &[DATA_V6], &scene.data(0x500)].concat())?;
    Ok(())
}

/// An FCN about the flow behind `around`.
fn tell(scene: &mut Scene, comment: &str, around: &[Part<'_>], level: u8) -> Result<()> {
    let bytes = fcn(FLOW_LABEL, level, 0)?;
    scene.say(
        comment,
        &[around, &[scene.fcn_udp(), Part::Bytes(&bytes)]].concat(),
    )?;
    Ok(())
}
