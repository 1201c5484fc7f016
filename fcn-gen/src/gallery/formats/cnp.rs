//! Plain CNPs over IPv4 and IPv6, with the data that caused them.

use crate::gallery::cast::{
    CE_CLASS, CNP_V6, DATA_CLASS, DATA_V4, DATA_V6, RECEIVER, RECEIVER4, SENDER, SENDER_QP,
    SENDER4, VXLAN, VXLAN_UDP, WRITE_FIRST, acknowledge, label, tag,
};
use crate::gallery::scene::{ETHERNET, Scene};
use fcn_wire::Result;
use fcn_wire::bth::Qp;
use fcn_wire::cnp::DEFAULT_TRAFFIC_CLASS;
use fcn_wire::compose::Part;

/// What the notification point leaves out between two CNPs about a flow, in nanoseconds.
const CNP_INTERVAL: u64 = 50_000;

pub fn compose(scene: &mut Scene) -> Result<()> {
    let cnp_v4 = Part::v4(RECEIVER4, SENDER4, DEFAULT_TRAFFIC_CLASS);
    after_data(
        scene,
        DATA_V4,
        Part::v4(SENDER4, RECEIVER4, CE_CLASS),
        Part::v4(RECEIVER4, SENDER4, DATA_CLASS),
        cnp_v4,
    )?;
    after_data(
        scene,
        DATA_V6,
        Part::v6(SENDER, RECEIVER, CE_CLASS),
        Part::v6(RECEIVER, SENDER, DATA_CLASS),
        CNP_V6,
    )?;
    let cnp = scene.cnp(Qp::truncate(0x00AB_CDEF));
    let router_alert = Part::Ipv4 {
        source: RECEIVER4,
        destination: SENDER4,
        tos: DEFAULT_TRAFFIC_CLASS,
        ttl: 64,
        id: 0,
        options: &[0x94, 4, 0, 0],
    };
    for (comment, around) in [
        (
            "CNP in two VLAN tags, QP of 24 bits",
            &[tag(200, true), tag(30, false), cnp_v4][..],
        ),
        ("CNP behind an MPLS label", &[label(100_016), CNP_V6]),
        (
            "CNP in VXLAN",
            &[cnp_v4, VXLAN_UDP, VXLAN, ETHERNET, CNP_V6],
        ),
        (
            "CNP behind IPv4 options (Router Alert): the ICRC covers them",
            &[router_alert],
        ),
    ] {
        scene.say(comment, &[around, &cnp].concat())?;
    }
    Ok(())
}

/// A flow that is marked, acknowledged and told about; its IP headers are given.
fn after_data(
    scene: &mut Scene,
    data: Part<'_>,
    marked: Part<'_>,
    back: Part<'_>,
    notification: Part<'_>,
) -> Result<()> {
    let (udp, icrc) = (scene.data_udp(), scene.icrc());
    scene.say(
        "RDMA WRITE to QP 0x12 at the receiver, ECT(0)",
        &[&[data, udp], &WRITE_FIRST[..], &[icrc]].concat(),
    )?;
    scene.say(
        "The same flow: a switch has marked CE",
        &[&[marked], &scene.data(0x101)[..]].concat(),
    )?;
    let [bth, aeth] = acknowledge(0x101);
    scene.say(
        "Acknowledged to QP 0x11 at the sender",
        &[back, udp, bth, aeth, icrc],
    )?;
    scene.say(
        "The CNP: BECN, DestQP is the sender's own QP 0x11",
        &[&[notification], &scene.cnp(SENDER_QP)[..]].concat(),
    )?;
    scene.wait(CNP_INTERVAL);
    Ok(())
}
