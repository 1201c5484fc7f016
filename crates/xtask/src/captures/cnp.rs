//! Plain CNPs over IPv4 and IPv6, with the data that caused them.

use super::scene::{
    CE_CLASS, CNP_V6, Capture, DATA_CLASS, DATA_UDP, ETHERNET, ICRC, RECEIVER, RECEIVER4, SENDER,
    SENDER_QP, SENDER4, Scene, acknowledge, cnp, data, v4, v6, write_first,
};
use fcn_wire::Result;
use fcn_wire::bth::Qp;
use fcn_wire::cnp::DEFAULT_TRAFFIC_CLASS;
use fcn_wire::compose::{Part, UdpChecksum};

pub fn captures() -> Result<Vec<Capture>> {
    let mut scene = Scene::new(
        "cnp",
        "Plain CNPs over IPv4 and IPv6, after data marked CE; VLAN, MPLS and VXLAN",
    );
    let (bth, payload) = write_first();
    let first = [DATA_UDP, Part::Bth(bth), Part::Bytes(&payload), ICRC];
    let (ack, aeth) = acknowledge(0x101);
    let ack = [DATA_UDP, Part::Bth(ack), Part::Bytes(&aeth), ICRC];
    for (ip_data, ip_ce, ip_back, ip_cnp) in [
        (
            v4(SENDER4, RECEIVER4, DATA_CLASS),
            v4(SENDER4, RECEIVER4, CE_CLASS),
            v4(RECEIVER4, SENDER4, DATA_CLASS),
            v4(RECEIVER4, SENDER4, DEFAULT_TRAFFIC_CLASS),
        ),
        (
            v6(SENDER, RECEIVER, DATA_CLASS),
            v6(SENDER, RECEIVER, CE_CLASS),
            v6(RECEIVER, SENDER, DATA_CLASS),
            CNP_V6,
        ),
    ] {
        scene.say(
            "RDMA WRITE to QP 0x12 at the receiver, ECT(0)",
            &[&[ip_data], &first[..]].concat(),
        )?;
        scene.say(
            "The same flow: a switch has marked CE",
            &[&[ip_ce], &data(0x101)[..]].concat(),
        )?;
        scene.say(
            "Acknowledged to QP 0x11 at the sender",
            &[&[ip_back], &ack[..]].concat(),
        )?;
        scene.say(
            "The CNP: BECN, DestQP is the sender's own QP 0x11",
            &[&[ip_cnp], &cnp(SENDER_QP)[..]].concat(),
        )?;
        scene.wait(50_000);
    }
    let tag = |id, service| Part::Vlan {
        id,
        priority: 6,
        service,
    };
    let ip = v4(RECEIVER4, SENDER4, DEFAULT_TRAFFIC_CLASS);
    let label = Part::Mpls {
        label: 100_016,
        traffic_class: 6,
        ttl: 62,
    };
    let vxlan = Part::Udp {
        source: 51_000,
        destination: 4789,
        checksum: UdpChecksum::Zero,
    };
    let qp = Qp::truncate(0x00AB_CDEF);
    scene.say(
        "CNP in two VLAN tags, QP of 24 bits",
        &[&[tag(200, true), tag(30, false), ip], &cnp(qp)[..]].concat(),
    )?;
    scene.say(
        "CNP behind an MPLS label",
        &[&[label, CNP_V6], &cnp(qp)[..]].concat(),
    )?;
    scene.say(
        "CNP in VXLAN",
        &[
            &[ip, vxlan, Part::Vxlan { vni: 5_000 }, ETHERNET, CNP_V6],
            &cnp(qp)[..],
        ]
        .concat(),
    )?;
    Ok(vec![scene.done()])
}
