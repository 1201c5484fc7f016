//! RDMA CM: which QP of one side belongs to which of the other. Plain, and in the tunnels in which an ingress PE reads it.

use crate::gallery::cast::{
    CONTROL_CLASS, DATA_V6, EGRESS, INGRESS, RECEIVER, RECEIVER_QP, SENDER, SENDER_QP, TO_EGRESS,
    TO_INGRESS, VXLAN, VXLAN_UDP, outer, srv6,
};
use crate::gallery::scene::{ETHERNET, Scene};
use fcn_wire::Result;
use fcn_wire::bth::Qp;
use fcn_wire::compose::Part;
use fcn_wire::rdma_cm::{
    ConnectReplyRepr, ConnectRequestRepr, DisconnectReplyRepr, DisconnectRequestRepr,
    ReadyToUseRepr,
};

/// A connection: identifiers and QPs of its two sides.
struct Connection {
    sender_id: u32,
    sender_qp: Qp,
    receiver_id: u32,
    receiver_qp: Qp,
}

impl Connection {
    fn request(&self) -> Result<ConnectRequestRepr> {
        Ok(ConnectRequestRepr {
            local_comm_id: self.sender_id,
            local_qpn: self.sender_qp.get(),
            starting_psn: 0x100,
            ..ConnectRequestRepr::roce((SENDER.into(), 40_000), (RECEIVER.into(), 18_515))?
        })
    }

    fn reply(&self) -> ConnectReplyRepr {
        ConnectReplyRepr {
            local_comm_id: self.receiver_id,
            remote_comm_id: self.sender_id,
            local_qpn: self.receiver_qp.get(),
            starting_psn: 0x700,
            ..ConnectReplyRepr::default()
        }
    }

    fn ready(&self) -> ReadyToUseRepr {
        ReadyToUseRepr {
            local_comm_id: self.sender_id,
            remote_comm_id: self.receiver_id,
            ..ReadyToUseRepr::default()
        }
    }

    fn disconnect_request(&self) -> DisconnectRequestRepr {
        DisconnectRequestRepr {
            local_comm_id: self.sender_id,
            remote_comm_id: self.receiver_id,
            remote_qpn: self.receiver_qp.get(),
            ..DisconnectRequestRepr::default()
        }
    }

    fn disconnect_reply(&self) -> DisconnectReplyRepr {
        DisconnectReplyRepr {
            local_comm_id: self.receiver_id,
            remote_comm_id: self.sender_id,
            ..DisconnectReplyRepr::default()
        }
    }
}

pub fn compose(scene: &mut Scene) -> Result<()> {
    plain(scene)?;
    tunnelled(
        scene,
        "SRv6 with a segment routing header",
        &Connection {
            sender_id: 0x0A00_0002,
            sender_qp: Qp::truncate(0x21),
            receiver_id: 0x0B00_0002,
            receiver_qp: Qp::truncate(0x22),
        },
        &srv6(INGRESS, TO_EGRESS, CONTROL_CLASS),
        &srv6(EGRESS, TO_INGRESS, CONTROL_CLASS),
    )?;
    let vxlan = |from, to| [outer(from, to, CONTROL_CLASS), VXLAN_UDP, VXLAN, ETHERNET];
    tunnelled(
        scene,
        "VXLAN over IPv6",
        &Connection {
            sender_id: 0x0A00_0003,
            sender_qp: Qp::truncate(0x31),
            receiver_id: 0x0B00_0003,
            receiver_qp: Qp::truncate(0x32),
        },
        &vxlan(INGRESS, EGRESS),
        &vxlan(EGRESS, INGRESS),
    )
}

/// A connection from its beginning to its end.
fn plain(scene: &mut Scene) -> Result<()> {
    let (there, back) = (
        &[Part::v6(SENDER, RECEIVER, 0)],
        &[Part::v6(RECEIVER, SENDER, 0)],
    );
    let flow = Connection {
        sender_id: 0x0A00_0001,
        sender_qp: SENDER_QP,
        receiver_id: 0x0B00_0001,
        receiver_qp: RECEIVER_QP,
    };
    let comment = "ConnectRequest: the sender's QP is 0x11";
    scene.connection(comment, there, 0, flow.request()?)?;
    let comment = "ConnectReply: the receiver's QP is 0x12";
    scene.connection(comment, back, 0, flow.reply())?;
    scene.connection("ReadyToUse", there, 1, flow.ready())?;
    scene.say(
        "Data to QP 0x12",
        &[&[DATA_V6], &scene.data(0x100)[..]].concat(),
    )?;
    scene.say(
        "A Fast CNP about QP 0x12 at the receiver: the exchange says that the sender's own QP is 0x11",
        &scene.fast_cnp1(),
    )?;
    scene.connection("DisconnectRequest", there, 2, flow.disconnect_request())?;
    scene.connection("DisconnectReply", back, 1, flow.disconnect_reply())
}

/// The same exchange as the ingress PE's neighbours see it, in a tunnel.
fn tunnelled(
    scene: &mut Scene,
    tunnel: &str,
    flow: &Connection,
    there: &[Part<'_>],
    back: &[Part<'_>],
) -> Result<()> {
    let there = [there, &[Part::v6(SENDER, RECEIVER, 0)]].concat();
    let back = [back, &[Part::v6(RECEIVER, SENDER, 0)]].concat();
    let (sender, receiver) = (flow.sender_qp.get(), flow.receiver_qp.get());
    let comment = format!("ConnectRequest in {tunnel}: the sender's QP is {sender:#x}");
    scene.connection(&comment, &there, 3, flow.request()?)?;
    let comment = format!("ConnectReply in {tunnel}: the receiver's QP is {receiver:#x}");
    scene.connection(&comment, &back, 2, flow.reply())?;
    let comment = format!("ReadyToUse in {tunnel}");
    scene.connection(&comment, &there, 4, flow.ready())?;
    let comment = format!("DisconnectRequest in {tunnel}");
    scene.connection(&comment, &there, 5, flow.disconnect_request())?;
    let comment = format!("DisconnectReply in {tunnel}");
    scene.connection(&comment, &back, 3, flow.disconnect_reply())
}
