//! Hosts, layers and stacks of layers that packets of galleries share, and what else their modules
//! need. UDP ports and the reading of the ICRC are the default ones; the composer replaces them by
//! those of the profile.

use super::EPOCH;
use fcn_wire::cnp::{CnpRepr, DEFAULT_TRAFFIC_CLASS};
use fcn_wire::compose::UdpChecksum;
use fcn_wire::fast_cnp::FastCnpRepr;
use fcn_wire::icrc::Reading;
use fcn_wire::ioam::{NodeValues, TraceType, filled_trace};
use fcn_wire::pfc::{PFC_DESTINATION, PfcRepr};
use fcn_wire::pnc::{Prefix, bgp, ospf2, ospf3};
use fcn_wire::profile::VXLAN_PORT;
use fcn_wire::proxy_address::ProxyAddress;
use fcn_wire::proxy_cn::{FiveTuple, ProxyCnRepr};
use std::net::IpAddr;

pub use super::composer::{Composer, Layers, composed};
pub use super::{Family, Gallery};
pub(super) use crate::routing::{self, carried};
pub use fcn_wire::bth::{Aeth, BthRepr, Deth, Opcode, Qp, Reth};
pub use fcn_wire::compose::OptionPart;
pub use fcn_wire::compose::Part::{self, Bytes, DestinationOptions, HopByHop};
pub use fcn_wire::icrc::Policy;
pub use fcn_wire::ioam::IoamOption;
pub use fcn_wire::ipv6_ext::next_header;
pub use fcn_wire::pnc::Level;
pub use fcn_wire::pnc::bgp::CharacteristicRepr;
pub use fcn_wire::pnc::isis::{ReachKind, ReachRepr};
pub use fcn_wire::pnc::ospf2::{INTER_AREA, INTRA_AREA};
pub use fcn_wire::pnc::ospf3::LsaKind;
pub use fcn_wire::wan_fcn::WanFcnRepr;
pub use fcn_wire::{LinkType, Profile, Rule};
pub use std::net::{Ipv4Addr, Ipv6Addr};

pub const ROCEV2_PORT: u16 = Profile::DEFAULT.rocev2_port;
pub const PROXY_PORT: u16 = Profile::DEFAULT.proxy_cn_port;
pub const FCN_PORT: u16 = Profile::DEFAULT.wan_fcn_port;
pub const READING: Reading = Profile::DEFAULT.icrc_reading;

// Hosts, from the ranges of RFC 3849 and RFC 5737. The switch is the congestion point, the proxy
// node is near the sender.
pub const SENDER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
pub const RECEIVER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 1);
pub const SWITCH: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 3);
pub const PROXY: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 0xf);
pub const INGRESS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xee, 0, 0, 0, 0, 1);
pub const EGRESS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xee, 0, 0, 0, 0, 2);
pub const SENDER4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub const RECEIVER4: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
pub const SWITCH4: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 3);
pub const PROXY4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 15);

/// Traffic class of data: DSCP 26, ECT(0).
pub const DATA: u8 = 26 << 2 | 0b10;
/// Traffic class of data that met congestion: DSCP 26, CE.
pub const CE: u8 = 26 << 2 | 0b11;
/// Traffic class of trimmed data: DSCP 11, ECT(0).
pub const TRIMMED: u8 = 11 << 2 | 0b10;
/// Traffic class of notifications.
pub const NOTICE: u8 = DEFAULT_TRAFFIC_CLASS;
/// Traffic class of tunnels around notifications, and of routing: DSCP 48, not ECN-capable.
pub const CONTROL: u8 = 48 << 2;

/// Usual Ethernet header: from the sender's side of a link to the other.
pub const ETHERNET: Part<'_> = ethernet(1, [0x02, 0, 0, 0, 0, 0x02]);
pub const VLAN: Part<'_> = Part::Vlan { id: 30, priority: 6, service: false };
pub const SERVICE_VLAN: Part<'_> = Part::Vlan { id: 200, priority: 6, service: true };
/// ICRC that is correct in the profile's reading.
pub const ICRC: Part<'_> = Part::Icrc(Policy::Compute(READING));

/// Returns an Ethernet header from the address with this last octet.
pub const fn ethernet(source: u8, destination: [u8; 6]) -> Part<'static> {
    Part::Ethernet { source: [0x02, 0, 0, 0, 0, source], destination }
}

pub const fn mpls(label: u32, traffic_class: u8, ttl: u8) -> Part<'static> {
    Part::Mpls { label, traffic_class, ttl }
}

// The flow: its IP headers, its UDP header, whose source port carries its entropy, and its packets
// from there on.
pub const DATA6: Part<'_> = Part::v6(SENDER, RECEIVER, DATA);
pub const DATA4: Part<'_> = Part::v4(SENDER4, RECEIVER4, DATA);
pub const MARKED6: Part<'_> = Part::v6(SENDER, RECEIVER, CE);
pub const MARKED4: Part<'_> = Part::v4(SENDER4, RECEIVER4, CE);
pub const BACK6: Part<'_> = Part::v6(RECEIVER, SENDER, DATA);
pub const BACK4: Part<'_> = Part::v4(RECEIVER4, SENDER4, DATA);
pub const DATA_UDP: Part<'_> = Part::udp(49_321, ROCEV2_PORT);
pub const PAYLOAD: Part<'_> =
    Bytes(b"fcn-tools sample payload, sixty-four octets of RDMA WRITE data..");
const RETH: Reth = Reth { address: 0x7F00_0000_1000, rkey: 0x1234, length: 0x10_0000 };
pub const WRITE_FIRST: [Part<'_>; 5] =
    [DATA_UDP, bth(Opcode::RC_WRITE_FIRST, 0x12, 0x100), Part::Reth(RETH), PAYLOAD, ICRC];
const AETH: Aeth = Aeth { syndrome: 0x1F, msn: 1 };
pub const ACKNOWLEDGE: [Part<'_>; 4] =
    [DATA_UDP, bth(Opcode::RC_ACKNOWLEDGE, 0x11, 0x101), Part::Aeth(AETH), ICRC];

/// Returns a packet in the middle of a message.
pub const fn data(psn: u32) -> [Part<'static>; 4] {
    [DATA_UDP, bth(Opcode::RC_WRITE_MIDDLE, 0x12, psn), PAYLOAD, ICRC]
}

pub const fn bth(opcode: Opcode, qp: u32, psn: u32) -> Part<'static> {
    Part::Bth(BthRepr::new(opcode, Qp::truncate(qp), psn))
}

// CNPs, from the UDP header on: about the sender's own QP, and about the receiver's.
pub const CNP6: Part<'_> = Part::v6(RECEIVER, SENDER, NOTICE);
pub const CNP4: Part<'_> = Part::v4(RECEIVER4, SENDER4, NOTICE);
pub const CNP_UDP: Part<'_> = Part::udp(0, ROCEV2_PORT);
pub const SENDER_CNP: [Part<'_>; 3] = cnp(0x11);
pub const RECEIVER_CNP: [Part<'_>; 3] = cnp(0x12);

pub const fn cnp(qp: u32) -> [Part<'static>; 3] {
    [CNP_UDP, cnp_body(qp), ICRC]
}

/// Returns a CNP from its BTH to its reserved octets.
pub const fn cnp_body(qp: u32) -> Part<'static> {
    Part::Cnp(CnpRepr::new(Qp::truncate(qp)))
}

// The Fast CNP from the switch.
pub const FAST: Part<'_> = Part::v6(SWITCH, SENDER, NOTICE);
pub const OPTION_1: Part<'_> = DestinationOptions(&[option_1(RECEIVER)]);
pub const FAST_CNP: [Part<'_>; 5] = [FAST, OPTION_1, CNP_UDP, cnp_body(0x12), ICRC];

/// Returns option 1 about an original destination.
pub const fn option_1(original_destination: Ipv6Addr) -> OptionPart<'static> {
    OptionPart::FastCnp(FastCnpRepr::Option1 { original_destination })
}

/// Returns option 2 about the flow.
pub const fn option_2(ioam: IoamOption<'_>) -> OptionPart<'_> {
    OptionPart::FastCnp(FastCnpRepr::Option2 { ioam, original_destination: RECEIVER })
}

/// Returns a trace with its IOAM option type: 0 pre-allocated, 1 incremental.
pub fn ioam(kind: u8, body: &[u8]) -> IoamOption<'_> {
    IoamOption { reserved: 0, opt_type: kind.into(), body }
}

/// Trace type: hop limit, node identifier, interfaces, transit delay and queue depth, which
/// control from telemetry wants.
pub const WANTED: u32 = 0xCA_0000;
/// Trace data written by three switches on the path, of which the last one is congested.
pub const PATH: [NodeValues<'_>; 3] = [
    NodeValues { hop_limit: 63, node_id: 0x101, ingress: 1, egress: 7, transit_delay: 820,
        queue_depth: 0, ..CONGESTED },
    NodeValues { hop_limit: 62, node_id: 0x201, ingress: 12, egress: 3, transit_delay: 1_150,
        queue_depth: 4_096, ..CONGESTED },
    CONGESTED,
];
const CONGESTED: NodeValues<'_> = NodeValues {
    hop_limit: 61, node_id: 0x301, ingress: 5, egress: 24,
    seconds: (EPOCH / 1_000_000_000) as u32, fraction: 0x1234_5678,
    transit_delay: 48_300, namespace_data: 0x0A0B_0C0D, queue_depth: 1_572_864,
    checksum_complement: 0xFFFF_0000, buffer_occupancy: 2_097_152, opaque: (0, &[]),
};
/// The congested switch's data with an opaque snapshot.
pub const SNAPSHOT: NodeValues<'_> = NodeValues { opaque: (0x2A01, b"8 octets"), ..CONGESTED };

/// Returns a trace of nodes in the order of the path, with free octets.
pub fn trace(fields: u32, free: usize, nodes: &[NodeValues<'_>]) -> Vec<u8> {
    composed(filled_trace(TraceType::from_bits(fields), free, nodes.iter()))
}

/// Returns octets with one of them changed.
pub fn changed(octets: &[u8], at: usize, octet: u8) -> Vec<u8> {
    let mut octets = octets.to_vec();
    octets[at] = octet;
    octets
}

// Notifications to the proxy node.
pub const PROXY_CN6: [Part<'_>; 2] = [Part::v6(SWITCH, PROXY, NOTICE), PROXY_UDP];
pub const PROXY_CN4: [Part<'_>; 2] = [Part::v4(SWITCH4, PROXY4, NOTICE), PROXY_UDP];
pub const PROXY_UDP: Part<'_> = Part::udp_summed(61_000, PROXY_PORT);

/// Returns a notification about the flow of the invoking packet; none without a flow.
pub fn proxy_cn(level: u8, invoking: &[u8]) -> Part<'_> {
    let message = |five_tuple| ProxyCnRepr { five_tuple, level, reserved: 0, invoking };
    FiveTuple::from_packet(invoking).map_or(Bytes(&[]), |flow| Part::ProxyCn(message(flow)))
}

/// Returns the option with the proxy node's address.
pub const fn proxy_address(address: Ipv6Addr) -> OptionPart<'static> {
    OptionPart::ProxyAddress(ProxyAddress(address))
}

/// Flow label that stands for the flow in tunnels.
pub const LABEL: u32 = 0xABCDE;
/// FCN from the congested P node, with the flow label copied.
pub const FCN: [Part<'_>; 2] = [labelled(SWITCH, INGRESS, NOTICE, 64), FCN_UDP];
pub const FCN_UDP: Part<'_> = Part::udp_summed(61_000, FCN_PORT);

pub const fn fcn(level: u8) -> Part<'static> {
    Part::WanFcn(WanFcnRepr { flow_label: LABEL, level, reserved: 0 })
}

// Tunnels.
pub const TO_INGRESS: Part<'_> = outer(EGRESS, INGRESS, CONTROL);
pub const TO_EGRESS: Part<'_> = outer(INGRESS, EGRESS, CONTROL);
pub const OUTER4: Part<'_> = Part::v4(RECEIVER4, SENDER4, CONTROL);
pub const VXLAN: [Part<'_>; 3] =
    [Part::udp(52_000, VXLAN_PORT), Part::Vxlan { vni: 5_000 }, ETHERNET];
// SRv6 by way of the congested P node: the first segment is the destination (RFC 8754 section 4.1).
// The last segment comes first in the header.
pub const SRV6_TO_INGRESS: [Part<'_>; 2] = [outer(EGRESS, SWITCH, CONTROL),
    Part::SegmentRouting { left: 1, segments: &[INGRESS, SWITCH] }];
pub const SRV6_TO_EGRESS: [Part<'_>; 2] = [outer(INGRESS, SWITCH, CONTROL), SEGMENTS_TO_EGRESS];
pub const SEGMENTS_TO_EGRESS: Part<'_> =
    Part::SegmentRouting { left: 1, segments: &[EGRESS, SWITCH] };
// Labels of an SR-MPLS path to the egress PE. It has no flow label: an entropy label carries it,
// behind its indicator (RFC 6790 section 3), and is never forwarded by, so its TTL is 0 (section
// 4.2).
pub const SEGMENT_1: Part<'_> = mpls(16_001, 3, 62);
pub const SEGMENT_2: Part<'_> = mpls(100_016, 3, 62);
pub const ENTROPY: [Part<'_>; 2] = [mpls(7, 3, 62), mpls(LABEL, 3, 0)];

/// Returns a tunnel's header, whose flow label stands for the flow inside.
pub const fn outer(source: Ipv6Addr, destination: Ipv6Addr, class: u8) -> Part<'static> {
    labelled(source, destination, class, 60)
}

const fn labelled(source: Ipv6Addr, destination: Ipv6Addr, traffic_class: u8, hop_limit: u8)
    -> Part<'static> {
    Part::Ipv6 { source, destination, traffic_class, flow_label: LABEL, hop_limit }
}

// RDMA CM between the general services QPs.
pub const CM_THERE: [Part<'_>; 2] = [Part::v6(SENDER, RECEIVER, 0), CM_UDP];
pub const CM_BACK: [Part<'_>; 2] = [Part::v6(RECEIVER, SENDER, 0), CM_UDP];
const CM_UDP: Part<'_> = Part::udp(49_152, ROCEV2_PORT);

// Addresses of the proxy node in OSPF, and on the link.
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 15);
const LINK_LOCAL: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0xf);

/// Returns the prefix of a host.
pub fn host(address: impl Into<IpAddr>) -> Prefix {
    Prefix::host(address.into())
}

/// Returns the prefix of an address with this length.
pub fn network(address: impl Into<IpAddr>, len: u8) -> Prefix {
    let address = address.into();
    Prefix::new(address, len).unwrap_or(Prefix::host(address))
}

/// Returns a prefix of an LSP in the usual TLV.
pub const fn plain(prefix: Prefix, flags: &[u8]) -> ReachRepr<'_> {
    routing::reach(ReachKind::Plain, prefix, Some(flags))
}

/// Returns a segment of one side of a BGP session.
pub const fn bgp_segment(sequence: u32) -> [Part<'static>; 2] {
    [Part::v4(SENDER4, RECEIVER4, CONTROL), Part::Tcp { source: 50_000, destination: bgp::PORT,
        sequence, acknowledgement: 1, push: true, window: 0x4000, checksum: UdpChecksum::Compute }]
}

/// Returns a BGP UPDATE for a host that is also its next hop, with characteristics of `of`.
pub fn update<T: Into<IpAddr>>(next_hop: T, of: T, list: &[CharacteristicRepr<'_>]) -> Vec<u8> {
    let next_hop = next_hop.into();
    composed(routing::update(&[Prefix::host(next_hop)], next_hop, of.into(), list))
}

/// Characteristic for the processing of entropy labels.
pub const ENTROPY_LABELS: CharacteristicRepr<'_> = CharacteristicRepr { code: 1, value: &[] };

/// Ethernet header of PFC.
pub const PFC: Part<'_> = ethernet(3, PFC_DESTINATION);
/// PFC message by which class 3 stops; the times of the others do not count.
pub const PAUSE: Part<'_> = pfc(0x08, [0xFFFF; 8]);

pub const fn pfc(vector: u16, times: [u16; 8]) -> Part<'static> {
    Part::Pfc(PfcRepr { vector, times })
}

impl Composer<'_> {
    /// Composes a Fast CNP from the switch with these destination options.
    pub fn fast(&mut self, comment: &str, options: &[OptionPart<'_>]) -> &mut Self {
        self.packet(comment, (FAST, DestinationOptions(options), RECEIVER_CNP))
    }

    /// Composes a Fast CNP from the switch with option 2.
    pub fn fast_cnp_2(&mut self, comment: &str, trace: IoamOption<'_>) -> &mut Self {
        self.fast(comment, &[option_2(trace)])
    }

    /// Composes data with an IOAM option.
    pub fn traced(&mut self, comment: &str, psn: u32, trace: IoamOption<'_>) -> &mut Self {
        self.packet(comment, (DATA6, HopByHop(&[OptionPart::Ioam(trace)]), data(psn)))
    }

    /// Composes data with these destination options.
    pub fn informed(&mut self, comment: &str, options: &[OptionPart<'_>]) -> &mut Self {
        self.packet(comment, (DATA6, DestinationOptions(options), data(0x800)))
    }

    /// Composes an LSP of a system at a level.
    pub fn lsp(&mut self, comment: &str, system: (Level, u32), prefixes: &[ReachRepr<'_>])
        -> &mut Self {
        let lsp = composed(routing::lsp(system.0, system.1, 7, prefixes));
        let layers = (ethernet(0xF, routing::ALL_L2), carried(0, &lsp));
        self.frame(LinkType::Ethernet, comment, layers)
    }

    /// Composes an OSPFv2 LS Update of a router in an area, which have these last octets. Without
    /// octets of flags there is no sub-TLV for them.
    pub fn ospf2(&mut self, comment: &str, origin: (u8, u8), (route_type, prefix): (u8, Prefix),
        flags: &[u8]) -> &mut Self {
        let flags = (!flags.is_empty()).then_some(flags);
        let prefix = ospf2::ExtendedPrefixRepr { route_type, prefix, tlv_flags: 0x40, flags };
        let update = routing::ospf2_update(ospf(origin), 0, &[prefix]);
        self.packet(comment, routing::ospf2(ROUTER, &composed(update)))
    }

    /// Composes an OSPFv3 LS Update of a router in an area, which have these last octets.
    pub fn ospf3(&mut self, comment: &str, origin: (u8, u8), (kind, prefix): (LsaKind, Prefix),
        flags: &[u8]) -> &mut Self {
        let (metric, flags) = (routing::METRIC, Some(flags));
        let prefix = ospf3::PrefixRepr { prefix, options: 0x02, metric, flags };
        let update = routing::ospf3_update(ospf(origin), LINK_LOCAL, kind, 0, &[prefix]);
        self.packet(comment, routing::ospf3(LINK_LOCAL, &composed(update)))
    }
}

/// Returns the addresses of a router and an area with these last octets.
fn ospf((router, area): (u8, u8)) -> (Ipv4Addr, Ipv4Addr) {
    ([10, 0, 0, router].into(), [0, 0, 0, area].into())
}
