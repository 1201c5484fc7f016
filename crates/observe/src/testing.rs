//! Frames and values shared by tests, including those of other crates (feature `testing`).
#![expect(missing_docs, reason = "test values")]

use fcn_wire::bth::{BthRepr, Deth};
use fcn_wire::compose::{self, Part, UdpChecksum};
use fcn_wire::icrc::Policy;
use fcn_wire::mad::GSI_Q_KEY;
use fcn_wire::rdma_cm::{
    CmRepr, ConnectRejectRepr, ConnectReplyRepr, ConnectRequestRepr, DisconnectReplyRepr,
    DisconnectRequestRepr, MessageRepr, ReadyToUseRepr,
};
use fcn_wire::{Frame, LinkType, Opcode, Profile, Qp};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub const SWITCH: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 3);
pub const SENDER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
pub const RECEIVER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 9);
pub const SENDER4: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);
pub const RECEIVER4: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 9);

/// Calls `act` with the frame in `bytes`, an IP packet.
pub fn with_frame<T>(bytes: &[u8], act: impl FnOnce(&Frame<'_>) -> T) -> T {
    act(&Frame::parse(
        bytes,
        bytes.len(),
        LinkType::RawIp,
        &Profile::DEFAULT,
    ))
}

pub fn build(parts: &[Part<'_>]) -> Vec<u8> {
    compose::packet(parts, &Profile::DEFAULT).unwrap()
}

/// Returns the IP header between two addresses of one family, with ECN field 10.
pub fn ip(source: IpAddr, destination: IpAddr) -> Part<'static> {
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => Part::Ipv4 {
            source,
            destination,
            tos: 2,
            ttl: 64,
            id: 0,
            options: &[],
        },
        (IpAddr::V6(source), IpAddr::V6(destination)) => Part::Ipv6 {
            source,
            destination,
            traffic_class: 2,
            flow_label: 0,
            hop_limit: 64,
        },
        _ => panic!("two families"),
    }
}

pub fn udp(destination: u16) -> Part<'static> {
    Part::Udp {
        source: 49152,
        destination,
        // Notifications in UDP have a checksum; RoCEv2 has none.
        checksum: match destination {
            1021 | 1022 => UdpChecksum::Compute,
            _ => UdpChecksum::Zero,
        },
    }
}

pub const ICRC: Part<'static> = Part::Icrc(Policy::Compute(fcn_wire::icrc::Reading::Covered));

/// Returns a data packet of `opcode`.
pub fn data(source: IpAddr, destination: IpAddr, opcode: Opcode, qp: Qp) -> Vec<u8> {
    let zeros = [0; 64];
    build(&[
        ip(source, destination),
        udp(4791),
        Part::Bth(BthRepr::new(opcode, qp, 1)),
        Part::Bytes(&zeros),
        ICRC,
    ])
}

/// Returns the IP packet with an RDMA CM message.
pub fn cm(source: IpAddr, destination: IpAddr, message: impl Into<MessageRepr>) -> Vec<u8> {
    let mad = CmRepr::new(7, message).to_bytes().unwrap();
    let deth = Deth {
        qkey: GSI_Q_KEY,
        source_qp: Qp::GSI,
    };
    build(&[
        ip(source, destination),
        udp(4791),
        Part::Bth(BthRepr::new(Opcode::UD_SEND_ONLY, Qp::GSI, 1)),
        Part::Bytes(&deth.to_bytes()),
        Part::Bytes(&mad),
        ICRC,
    ])
}

/// The setup of a connection between two hosts.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub active: IpAddr,
    pub passive: IpAddr,
    /// Communication ID and QP of the active side.
    pub active_end: (u32, u32),
    /// The same of the passive side.
    pub passive_end: (u32, u32),
}

impl Setup {
    pub fn v6() -> Self {
        Self {
            active: SENDER.into(),
            passive: RECEIVER.into(),
            active_end: (0xA, 0x111),
            passive_end: (0xB, 0x222),
        }
    }

    pub fn v4() -> Self {
        Self {
            active: SENDER4.into(),
            passive: RECEIVER4.into(),
            ..Self::v6()
        }
    }

    pub fn request(&self) -> Vec<u8> {
        let mut message =
            ConnectRequestRepr::roce((self.active, 5000), (self.passive, 18515)).unwrap();
        (message.local_comm_id, message.local_qpn) = self.active_end;
        cm(self.active, self.passive, message)
    }

    pub fn reply(&self) -> Vec<u8> {
        let message = ConnectReplyRepr {
            local_comm_id: self.passive_end.0,
            remote_comm_id: self.active_end.0,
            local_qpn: self.passive_end.1,
            ..ConnectReplyRepr::default()
        };
        cm(self.passive, self.active, message)
    }

    pub fn ready(&self) -> Vec<u8> {
        let message = ReadyToUseRepr {
            local_comm_id: self.active_end.0,
            remote_comm_id: self.passive_end.0,
            ..ReadyToUseRepr::default()
        };
        cm(self.active, self.passive, message)
    }

    /// ConnectReject of the passive side, with the ID that it has given so far.
    pub fn reject_by_passive(&self, local_comm_id: u32) -> Vec<u8> {
        let message = ConnectRejectRepr {
            local_comm_id,
            remote_comm_id: self.active_end.0,
            ..ConnectRejectRepr::default()
        };
        cm(self.passive, self.active, message)
    }

    /// ConnectReject of the active side, with the ID that it has learnt so far.
    pub fn reject(&self, remote_comm_id: u32) -> Vec<u8> {
        let message = ConnectRejectRepr {
            local_comm_id: self.active_end.0,
            remote_comm_id,
            message_rejected: 1,
            ..ConnectRejectRepr::default()
        };
        cm(self.active, self.passive, message)
    }

    /// DisconnectRequest of the passive side.
    pub fn disconnect_by_passive(&self) -> Vec<u8> {
        let message = DisconnectRequestRepr {
            local_comm_id: self.passive_end.0,
            remote_comm_id: self.active_end.0,
            remote_qpn: self.active_end.1,
            ..DisconnectRequestRepr::default()
        };
        cm(self.passive, self.active, message)
    }

    /// DisconnectRequest of the active side.
    pub fn disconnect(&self) -> Vec<u8> {
        let message = DisconnectRequestRepr {
            local_comm_id: self.active_end.0,
            remote_comm_id: self.passive_end.0,
            remote_qpn: self.passive_end.1,
            ..DisconnectRequestRepr::default()
        };
        cm(self.active, self.passive, message)
    }

    /// DisconnectReply of the passive side.
    pub fn disconnected(&self) -> Vec<u8> {
        let message = DisconnectReplyRepr {
            local_comm_id: self.passive_end.0,
            remote_comm_id: self.active_end.0,
            ..DisconnectReplyRepr::default()
        };
        cm(self.passive, self.active, message)
    }

    /// The three messages of the setup.
    pub fn messages(&self) -> [Vec<u8>; 3] {
        [self.request(), self.reply(), self.ready()]
    }
}

/// Yields a frame as built by its sender, or with some octets changed, or truncated.
pub fn mutated(good: Vec<Vec<u8>>) -> impl proptest::strategy::Strategy<Value = Vec<u8>> {
    use proptest::prelude::*;
    let changes = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8);
    (
        prop::sample::select(good),
        changes,
        any::<prop::sample::Index>(),
        any::<bool>(),
    )
        .prop_map(|(mut bytes, changes, len, cut)| {
            for (at, value) in changes {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            if cut {
                let len = len.index(bytes.len());
                bytes.truncate(len);
            }
            bytes
        })
}
