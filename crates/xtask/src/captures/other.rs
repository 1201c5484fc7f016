//! What stands around notifications: the RDMA CM exchange, priority-based flow control, cut and fragmented packets.

use super::fast_cnp::{OPTION1, fast_cnp1};
use super::proxy_cn::{PROXY_UDP, TUPLE6, invoking, message};
use super::scene::{
    Capture, DATA_CLASS, ETHERNET, FAST_V6, ICRC, PROXY, RECEIVER, RECEIVER_QP, SENDER, SENDER_QP,
    SWITCH, Scene, cnp, data, v6,
};
use fcn_wire::Result;
use fcn_wire::bth::{BthRepr, Deth, Opcode, Qp};
use fcn_wire::compose::{Part, UdpChecksum};
use fcn_wire::pfc::{ETHERTYPE_MAC_CONTROL, PFC_DESTINATION, PfcRepr};
use fcn_wire::rdma_cm::{
    CmRepr, ConnectReplyRepr, ConnectRequestRepr, DisconnectReplyRepr, DisconnectRequestRepr,
    MessageRepr, ReadyToUseRepr,
};
use std::net::Ipv6Addr;

pub fn captures() -> Result<Vec<Capture>> {
    Ok(vec![rdma_cm()?, pfc()?, cut()?])
}

fn rdma_cm() -> Result<Capture> {
    let mut scene = Scene::new(
        "rdma-cm",
        "RDMA CM sets a connection up and takes it down: which QP belongs to which; a Fast CNP in between",
    );
    let request = ConnectRequestRepr {
        local_comm_id: 0x0A00_0001,
        local_qpn: SENDER_QP.get(),
        starting_psn: 0x100,
        ..ConnectRequestRepr::roce((SENDER.into(), 40_000), (RECEIVER.into(), 18_515))?
    };
    let reply = ConnectReplyRepr {
        local_comm_id: 0x0B00_0001,
        remote_comm_id: 0x0A00_0001,
        local_qpn: RECEIVER_QP.get(),
        starting_psn: 0x700,
        ..ConnectReplyRepr::default()
    };
    let (local_comm_id, remote_comm_id) = (0x0A00_0001, 0x0B00_0001);
    let ready = ReadyToUseRepr {
        local_comm_id,
        remote_comm_id,
        ..ReadyToUseRepr::default()
    };
    let bye = DisconnectRequestRepr {
        local_comm_id,
        remote_comm_id,
        remote_qpn: RECEIVER_QP.get(),
        ..DisconnectRequestRepr::default()
    };
    let gone = DisconnectReplyRepr {
        local_comm_id: 0x0B00_0001,
        remote_comm_id: 0x0A00_0001,
        ..DisconnectReplyRepr::default()
    };
    mad(
        &mut scene,
        "ConnectRequest: the sender's QP is 0x11",
        SENDER,
        RECEIVER,
        0,
        request,
    )?;
    mad(
        &mut scene,
        "ConnectReply: the receiver's QP is 0x12",
        RECEIVER,
        SENDER,
        0,
        reply,
    )?;
    mad(&mut scene, "ReadyToUse", SENDER, RECEIVER, 1, ready)?;
    scene.say(
        "Data to QP 0x12",
        &[&[v6(SENDER, RECEIVER, DATA_CLASS)], &data(0x100)[..]].concat(),
    )?;
    scene.say("A Fast CNP about QP 0x12 at the receiver: the exchange says that the sender's own QP is 0x11", &fast_cnp1())?;
    mad(&mut scene, "DisconnectRequest", SENDER, RECEIVER, 2, bye)?;
    mad(&mut scene, "DisconnectReply", RECEIVER, SENDER, 1, gone)?;
    Ok(scene.done())
}

/// A MAD from one general services QP to the other.
fn mad(
    scene: &mut Scene,
    comment: &str,
    from: Ipv6Addr,
    to: Ipv6Addr,
    psn: u32,
    message: impl Into<MessageRepr>,
) -> Result<()> {
    let mut bytes = Deth {
        qkey: fcn_wire::mad::GSI_Q_KEY,
        source_qp: Qp::GSI,
    }
    .to_bytes()
    .to_vec();
    bytes.resize(8 + CmRepr::LEN, 0);
    CmRepr::new(0x0000_1234_5678_9ABC, message).emit(&mut bytes[8..])?;
    let bth = BthRepr::new(Opcode::UD_SEND_ONLY, Qp::GSI, psn);
    let udp = Part::Udp {
        source: 49_152,
        destination: 4791,
        checksum: UdpChecksum::Zero,
    };
    scene.say(
        comment,
        &[
            v6(from, to, 0),
            udp,
            Part::Bth(bth),
            Part::Bytes(&bytes),
            ICRC,
        ],
    )?;
    Ok(())
}

/// A MAC control frame with `bytes` from the opcode on, padded to the least frame.
pub fn control(destination: [u8; 6], bytes: &[u8]) -> Vec<u8> {
    let mut out = [
        &destination[..],
        &[2, 0, 0, 0, 0, 3],
        &ETHERTYPE_MAC_CONTROL.to_be_bytes(),
        bytes,
    ]
    .concat();
    out.resize(60, 0);
    out
}

/// The octets of a PFC frame from its opcode on.
pub fn pfc_bytes(pfc: &PfcRepr) -> Result<Vec<u8>> {
    let mut out = vec![0; fcn_wire::pfc::PFC_LEN];
    pfc.emit(&mut out)?;
    Ok(out)
}

fn pfc() -> Result<Capture> {
    let mut scene = Scene::new(
        "pfc",
        "Priority-based flow control: a class told to stop, and let go",
    );
    for (comment, vector, times) in [
        (
            "Class 3 stops for the longest time",
            0x08,
            [0, 0, 0, 0xFFFF, 0, 0, 0, 0],
        ),
        ("Class 3 may send again", 0x08, [0; 8]),
        ("Classes 3 and 4", 0x18, [0, 0, 0, 100, 200, 0, 0, 0]),
    ] {
        let bytes = control(PFC_DESTINATION, &pfc_bytes(&PfcRepr { vector, times })?);
        let len = bytes.len();
        scene.octets(comment, bytes, len, fcn_wire::LinkType::Ethernet);
    }
    Ok(scene.done())
}

fn cut() -> Result<Capture> {
    let mut scene = Scene::new(
        "cut",
        "Packets cut by a snap length and fragments: said to be so, not called malformed, their ICRC unchecked",
    );
    let fast = fast_cnp1();
    for (comment, len) in [
        ("Fast CNP cut in its CNP: the option is all there", 96),
        ("Cut behind the UDP header", 86),
        ("Cut in the option", 64),
        ("Cut in the IPv6 header", 40),
    ] {
        scene.say(comment, &fast)?.cut(len);
    }
    let plain = [&[v6(SWITCH, SENDER, DATA_CLASS)], &data(0x600)[..]].concat();
    scene.say("Data cut in its payload", &plain)?.cut(100);
    let quoted = invoking(v6(SENDER, RECEIVER, DATA_CLASS))?;
    let bytes = message(TUPLE6, 5, &quoted)?;
    let notice = [
        v6(SWITCH, PROXY, DATA_CLASS),
        PROXY_UDP,
        Part::Bytes(&bytes),
    ];
    scene
        .say("Proxy notification cut in the quoted packet", &notice)?
        .cut(140);

    // A Fast CNP in two fragments: reassembled by Wireshark, said to be a fragment by tools that look at one packet.
    let [udp, body, icrc] = cnp(RECEIVER_QP);
    let whole = fcn_wire::compose::packet(
        &[
            FAST_V6,
            Part::DestinationOptions(&[OPTION1]),
            udp,
            body,
            icrc,
        ],
        &fcn_wire::Profile::DEFAULT,
    )?;
    let rest = whole.get(40..).unwrap_or_default();
    for (offset, piece) in [(0usize, rest.get(..40)), (40, rest.get(40..))] {
        let fragment = Part::Fragment {
            offset: offset as u16,
            more: offset == 0,
            id: 0x00C0_FFEE,
        };
        let piece = Part::Payload {
            ether_type: 0,
            protocol: 60,
            bytes: piece.unwrap_or_default(),
        };
        let comment = if offset == 0 {
            "First fragment of a Fast CNP"
        } else {
            "Last fragment of a Fast CNP"
        };
        scene.framed(comment, &[ETHERNET, FAST_V6, fragment, piece])?;
    }
    let atomic = Part::Fragment {
        offset: 0,
        more: false,
        id: 1,
    };
    scene.say(
        "An atomic fragment (RFC 6946) is a whole packet",
        &[
            FAST_V6,
            atomic,
            Part::DestinationOptions(&[OPTION1]),
            udp,
            body,
            icrc,
        ],
    )?;
    Ok(scene.done())
}
