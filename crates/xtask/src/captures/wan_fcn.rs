//! Fast CNP in the WAN: data in SRv6, VXLAN and MPLS, the FCN to the ingress PE, the CNP that it makes of it.

use super::scene::{
    Capture, DATA_CLASS, EGRESS, ETHERNET, INGRESS, RECEIVER, SENDER, SENDER_QP, SWITCH, Scene,
    cnp, data, v6,
};
use fcn_wire::cnp::DEFAULT_TRAFFIC_CLASS;
use fcn_wire::compose::{Part, UdpChecksum};
use fcn_wire::wan_fcn::WanFcnRepr;
use fcn_wire::{Profile, Result};

/// UDP of the FCN.
pub const FCN_UDP: Part<'static> = Part::Udp {
    source: 61_000,
    destination: Profile::DEFAULT.wan_fcn_port,
    checksum: UdpChecksum::Compute,
};
/// Outer flow label of the flow.
pub const FLOW_LABEL: u32 = 0xABCDE;

/// IPv6 of an FCN from the congested P node, with the flow label copied.
pub const FCN_V6: Part<'static> = Part::Ipv6 {
    source: SWITCH,
    destination: INGRESS,
    traffic_class: DEFAULT_TRAFFIC_CLASS,
    flow_label: FLOW_LABEL,
    hop_limit: 64,
};

/// The message.
pub fn fcn(flow_label: u32, level: u8, reserved: u16) -> Result<[u8; 4]> {
    let mut out = [0; 4];
    WanFcnRepr {
        flow_label,
        level,
        reserved,
    }
    .emit(&mut out)?;
    Ok(out)
}

pub fn captures() -> Result<Vec<Capture>> {
    let mut scene = Scene::new(
        "wan-fcn",
        "Data between data centres in SRv6 and VXLAN, the FCN about its outer flow label, the CNP made of it",
    );
    let outer = Part::Ipv6 {
        source: INGRESS,
        destination: EGRESS,
        traffic_class: DATA_CLASS,
        flow_label: FLOW_LABEL,
        hop_limit: 60,
    };
    let segments = [EGRESS, SWITCH];
    let inner = v6(SENDER, RECEIVER, DATA_CLASS);
    let vxlan = Part::Udp {
        source: 52_000,
        destination: 4789,
        checksum: UdpChecksum::Zero,
    };
    let routing = Part::SegmentRouting {
        left: 1,
        segments: &segments,
    };
    scene.say(
        "Data in SRv6; the outer flow label 0xabcde stands for the flow",
        &[&[outer, routing, inner], &data(0x500)[..]].concat(),
    )?;
    scene.say(
        "The congested P node tells the ingress PE: flow label 0xabcde, level 6",
        &[FCN_V6, FCN_UDP, Part::Bytes(&fcn(FLOW_LABEL, 6, 0)?)],
    )?;
    let to_sender = v6(RECEIVER, SENDER, DEFAULT_TRAFFIC_CLASS);
    scene.say(
        "The ingress PE tells the sender in a standard CNP about its own QP 0x11",
        &[&[to_sender], &cnp(SENDER_QP)[..]].concat(),
    )?;
    let plain = v6(SWITCH, INGRESS, DEFAULT_TRAFFIC_CLASS);
    scene.say(
        "Level not used (0), flow label not copied",
        &[plain, FCN_UDP, Part::Bytes(&fcn(FLOW_LABEL, 0, 0)?)],
    )?;
    scene.say(
        "Data in VXLAN over IPv6",
        &[
            &[outer, vxlan, Part::Vxlan { vni: 5_000 }, ETHERNET, inner],
            &data(0x501)[..],
        ]
        .concat(),
    )?;
    scene.say(
        "Level 1 (lowest), in a VLAN tag",
        &[
            Part::Vlan {
                id: 30,
                priority: 6,
                service: false,
            },
            FCN_V6,
            FCN_UDP,
            Part::Bytes(&fcn(FLOW_LABEL, 1, 0)?),
        ],
    )?;
    let labels = [16_001, 100_016].map(|label| Part::Mpls {
        label,
        traffic_class: 3,
        ttl: 62,
    });
    scene.say(
        "Data in SR-MPLS",
        &[&labels[..], &[inner], &data(0x502)].concat(),
    )?;
    scene.say(
        "The FCN behind an MPLS label",
        &[
            labels[1],
            FCN_V6,
            FCN_UDP,
            Part::Bytes(&fcn(FLOW_LABEL, 7, 0)?),
        ],
    )?;
    Ok(vec![scene.done()])
}
