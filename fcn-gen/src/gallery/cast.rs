//! The cast: which hosts there are, and the parts that their packets are made of.

use super::scene::Scene;
use fcn_wire::bth::{Aeth, BthRepr, Opcode, Qp, Reth};
use fcn_wire::cnp::{CnpRepr, DEFAULT_TRAFFIC_CLASS, DEFAULT_UDP_SOURCE};
use fcn_wire::compose::{OptionPart, Part};
use fcn_wire::fast_cnp::FastCnpRepr;
use fcn_wire::icrc::Policy;
use fcn_wire::profile::VXLAN_PORT;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The sender (reaction point).
pub const SENDER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
/// The receiver (notification point).
pub const RECEIVER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 1);
/// Loopback address of the congested switch (congestion point).
pub const SWITCH: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 3);
/// The proxy node, near the sender.
pub const PROXY: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 0xf);
/// The ingress PE.
pub const INGRESS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xee, 0, 0, 0, 0, 1);
/// The egress PE.
pub const EGRESS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xee, 0, 0, 0, 0, 2);
/// The sender in IPv4.
pub const SENDER4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// The receiver in IPv4.
pub const RECEIVER4: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
/// The switch in IPv4.
pub const SWITCH4: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 3);
/// The proxy node in IPv4.
pub const PROXY4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 15);
/// QP of the flow at the sender.
pub const SENDER_QP: Qp = Qp::truncate(0x11);
/// QP of the flow at the receiver.
pub const RECEIVER_QP: Qp = Qp::truncate(0x12);
/// UDP source port of the flow: its entropy.
pub const ENTROPY: u16 = 49_321;
/// Outer flow label of the flow in the WAN.
pub const FLOW_LABEL: u32 = 0xABCDE;

/// Traffic class of data: DSCP 26, ECT(0).
pub const DATA_CLASS: u8 = 26 << 2 | 0b10;
/// Traffic class of data that met congestion: DSCP 26, CE.
pub const CE_CLASS: u8 = 26 << 2 | 0b11;
/// Traffic class of tunnels around notifications, and of routing: DSCP 48, not ECN-capable.
pub const CONTROL_CLASS: u8 = 48 << 2;

/// What data packets carry.
const PAYLOAD: [u8; 64] = *b"fcn-tools sample payload, sixty-four octets of RDMA WRITE data..";

/// The outer IPv6 header of a tunnel; the flow label stands for the flow inside.
pub const fn outer(source: Ipv6Addr, destination: Ipv6Addr, traffic_class: u8) -> Part<'static> {
    Part::Ipv6 {
        source,
        destination,
        traffic_class,
        flow_label: FLOW_LABEL,
        hop_limit: 60,
    }
}

/// Segments to the egress PE by way of the congested P node, the last one first.
pub const TO_EGRESS: &[Ipv6Addr; 2] = &[EGRESS, SWITCH];
/// Segments to the ingress PE by way of the congested P node, the last one first.
pub const TO_INGRESS: &[Ipv6Addr; 2] = &[INGRESS, SWITCH];

/// SRv6 on its way to the first of two segments, which is therefore the destination (RFC 8754 section 4.1).
pub const fn srv6(
    source: Ipv6Addr,
    segments: &'static [Ipv6Addr; 2],
    traffic_class: u8,
) -> [Part<'static>; 2] {
    let [_, first] = *segments;
    let routing = Part::SegmentRouting { left: 1, segments };
    [outer(source, first, traffic_class), routing]
}

/// A VLAN tag; a service tag (IEEE 802.1ad) or a customer tag (IEEE 802.1Q).
pub const fn tag(id: u16, service: bool) -> Part<'static> {
    Part::Vlan {
        id,
        priority: 6,
        service,
    }
}

/// An MPLS label.
pub const fn label(label: u32) -> Part<'static> {
    Part::Mpls {
        label,
        traffic_class: 6,
        ttl: 62,
    }
}

/// UDP of VXLAN.
pub const VXLAN_UDP: Part<'static> = Part::udp(52_000, VXLAN_PORT);
/// A VXLAN header.
pub const VXLAN: Part<'static> = Part::Vxlan { vni: 5_000 };

/// IPv6 of a plain CNP, from receiver to sender.
pub const CNP_V6: Part<'static> = Part::v6(RECEIVER, SENDER, DEFAULT_TRAFFIC_CLASS);
/// IPv6 of a Fast CNP, from switch to sender.
pub const FAST_V6: Part<'static> = Part::v6(SWITCH, SENDER, DEFAULT_TRAFFIC_CLASS);
/// IPv6 of the flow's data.
pub const DATA_V6: Part<'static> = Part::v6(SENDER, RECEIVER, DATA_CLASS);
/// IPv4 of the flow's data.
pub const DATA_V4: Part<'static> = Part::v4(SENDER4, RECEIVER4, DATA_CLASS);
/// IPv6 of an FCN from the congested P node, with the flow label copied.
pub const FCN_V6: Part<'static> = Part::Ipv6 {
    source: SWITCH,
    destination: INGRESS,
    traffic_class: DEFAULT_TRAFFIC_CLASS,
    flow_label: FLOW_LABEL,
    hop_limit: 64,
};

/// Option 1 about the flow.
pub const OPTION1: OptionPart<'static> = OptionPart::FastCnp(FastCnpRepr::Option1 {
    original_destination: RECEIVER,
});

/// Parts that depend on the code points in use.
impl Scene {
    /// UDP of a CNP.
    pub const fn cnp_udp(&self) -> Part<'static> {
        Part::udp(DEFAULT_UDP_SOURCE, self.profile().rocev2_port)
    }

    /// UDP of the flow's data.
    pub const fn data_udp(&self) -> Part<'static> {
        Part::udp(ENTROPY, self.profile().rocev2_port)
    }

    /// The right ICRC.
    pub const fn icrc(&self) -> Part<'static> {
        Part::Icrc(Policy::Compute(self.profile().icrc_reading))
    }

    /// The CNP about `qp`, from its UDP header on.
    pub const fn cnp(&self, qp: Qp) -> [Part<'static>; 3] {
        [self.cnp_udp(), Part::Cnp(CnpRepr::new(qp)), self.icrc()]
    }

    /// A Fast CNP to the sender, from its IP header `ip` on, with `options`.
    pub fn fast_cnp<'a>(&self, ip: Part<'a>, options: &'a [OptionPart<'a>]) -> Vec<Part<'a>> {
        let [udp, cnp, icrc] = self.cnp(RECEIVER_QP);
        vec![ip, Part::DestinationOptions(options), udp, cnp, icrc]
    }

    /// The Fast CNP with option 1 from the switch, from its IPv6 header on.
    pub fn fast_cnp1(&self) -> Vec<Part<'static>> {
        self.fast_cnp(FAST_V6, &[OPTION1])
    }

    /// A data packet of the flow in the middle of a message, from its UDP header on.
    pub const fn data(&self, psn: u32) -> [Part<'static>; 4] {
        let bth = BthRepr::new(Opcode::RC_WRITE_MIDDLE, RECEIVER_QP, psn);
        [
            self.data_udp(),
            Part::Bth(bth),
            Part::Bytes(&PAYLOAD),
            self.icrc(),
        ]
    }

    /// The octets of a data packet of the flow, from its IP header `ip` on: what a notification quotes.
    pub fn invoking(&self, ip: Part<'_>) -> fcn_wire::Result<Vec<u8>> {
        self.packet(&[&[ip], &self.data(0x400)[..]].concat())
    }
}

/// The first packet of an RDMA WRITE message, from its BTH to its payload.
pub const WRITE_FIRST: [Part<'static>; 3] = [
    Part::Bth(BthRepr::new(Opcode::RC_WRITE_FIRST, RECEIVER_QP, 0x100)),
    Part::Reth(Reth {
        address: 0x7F00_0000_1000,
        rkey: 0x1234,
        length: 1 << 20,
    }),
    Part::Bytes(&PAYLOAD),
];

/// An acknowledgement of `psn` to the sender: BTH and AETH.
pub const fn acknowledge(psn: u32) -> [Part<'static>; 2] {
    let aeth = Aeth {
        syndrome: 0x1F,
        msn: 1,
    };
    let bth = BthRepr::new(Opcode::RC_ACKNOWLEDGE, SENDER_QP, psn);
    [Part::Bth(bth), Part::Aeth(aeth)]
}
