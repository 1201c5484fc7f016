//! The data packets sent to a congestion point.

use super::super::plan::{
    DataSent, FlowPath, FrameContent, OtherSent, Planned, Setup, WIRE_OVERHEAD, emit_packet,
    framed, kinds,
};
use super::{FIRST_LABEL, TRACE, switch};
use crate::scenario::model::{NodeId, NodeKind, Tunnel};
use crate::sim::frames::{Encapsulation, mac};
use crate::units::{Ps, Rate};
use fcn_node::FlowKey;
use fcn_wire::bth::{Aeth, BthRepr};
use fcn_wire::cnp::CnpRepr;
use fcn_wire::compose::{self, OptionPart, Part, UdpChecksum};
use fcn_wire::emit::{self, Carrier};
use fcn_wire::header::ethernet;
use fcn_wire::icrc::Policy;
use fcn_wire::ioam::{IoamOption, NodeValues, OptType, filled_trace};
use fcn_wire::proxy_address::ProxyAddress;
use fcn_wire::{Kind, Opcode, Profile, Qp};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// First QP of data packets, and the distance between QPs: no fault turns one into another.
const FIRST_QP: u32 = 0x0010_0000;
const BETWEEN_QPS: u32 = 0x101;
/// First UDP source port of data packets.
const FIRST_PORT: u16 = 0xC000;

/// First QP of other packets, and their first UDP or TCP source port.
const FIRST_OTHER_QP: u32 = 0x0080_0000;
const FIRST_OTHER_PORT: u16 = 0x8000;
/// Destinations of multicast (RFC 2365 section 6.1, RFC 4291 section 2.7).
const GROUP4: Ipv4Addr = Ipv4Addr::new(239, 255, 47, 91);
const GROUP: Ipv6Addr = Ipv6Addr::new(0xFF05, 0, 0, 0, 0, 0, 0, 0x4791);
/// Kinds of other packets.
const ACKNOWLEDGEMENT: &str = "an acknowledgement";
const CNP: &str = "a CNP";
const TCP: &str = "a TCP segment";
const MULTICAST: &str = "a multicast packet";
const OTHERS: [&str; 4] = [ACKNOWLEDGEMENT, CNP, TCP, MULTICAST];
/// One packet in this many is another one.
const OTHER_ONE_IN: usize = 4;

/// Properties of the packets of one step.
#[derive(Clone, Copy, Default)]
pub struct PacketOptions {
    /// With an IOAM trace.
    pub traced: bool,
    /// All of one flow.
    pub same_qp: bool,
    /// Not ECN-capable.
    pub incapable: bool,
    /// With other packets between them.
    pub mixed: bool,
}

/// Builds data packets, and records them.
pub struct DataBuilder<'a, 's> {
    /// The setup of the check.
    pub setup: &'a Setup<'s>,
    /// The packets built so far.
    pub sent: Vec<DataSent>,
    /// The packets that are not data.
    pub others: Vec<OtherSent>,
}

impl DataBuilder<'_, '_> {
    /// Returns the tunnel of a packet on this path, with its start and end.
    fn tunnel(&self, path: &FlowPath<'_>) -> Option<(Ipv6Addr, Ipv6Addr, Tunnel)> {
        if !kinds(self.setup).contains(&Kind::WanFcn) {
            return None;
        }
        let nodes = self.setup.simulation.nodes.iter().enumerate();
        let edges = nodes.filter_map(|(index, node)| match &node.kind {
            NodeKind::Switch(switch) => Some((index, node.ipv6, switch.edge.as_ref()?.tunnel)),
            NodeKind::Host(_) => None,
        });
        let edges: Vec<_> = edges.collect();
        let at = |link: usize| {
            edges
                .iter()
                .find(|(node, ..)| self.setup.towards(*node) == Some(link))
        };
        let ((_, ingress, tunnel), (_, egress, _)) = (at(path.from)?, at(path.to)?);
        // Labels do not identify the ingress PE: the device has it configured.
        let configured = switch(self.setup).and_then(|switch| switch.congestion.ingress);
        let ingress = match tunnel {
            Tunnel::SrMpls { .. } => configured.unwrap_or(*ingress),
            _ => *ingress,
        };
        Some((ingress, *egress, *tunnel))
    }

    /// Builds the next packet that is not data, on the same path, as a frame.
    fn other(&mut self, path: &FlowPath<'_>) -> Option<Vec<u8>> {
        let (flow, profile) = (path.flow, &self.setup.simulation.profile);
        let number = self.others.len();
        let qp = Qp::truncate(FIRST_OTHER_QP + number as u32 * BETWEEN_QPS);
        let port = FIRST_OTHER_PORT + (number & 0x3FFF) as u16;
        let what = *OTHERS.get(number % OTHERS.len())?;
        let receiver = match (what, flow.destination) {
            (MULTICAST, IpAddr::V6(_)) => IpAddr::V6(GROUP),
            (MULTICAST, IpAddr::V4(_)) => IpAddr::V4(GROUP4),
            (_, unicast) => unicast,
        };
        let class = flow.dscp << 2 | 2;
        let ip = match (flow.source, receiver) {
            (IpAddr::V6(source), IpAddr::V6(receiver)) => Part::v6(source, receiver, class),
            (IpAddr::V4(source), IpAddr::V4(receiver)) => Part::v4(source, receiver, class),
            _ => return None,
        };
        let bth = |opcode| Part::Bth(BthRepr::new(opcode, qp, 0));
        let (udp, icrc) = (
            Part::udp(port, profile.rocev2_port),
            Part::Icrc(Policy::Compute(profile.icrc_reading)),
        );
        let payload = [0x5A; 256];
        let aeth = Part::Aeth(Aeth {
            syndrome: 0x1F,
            msn: 0,
        });
        let packet = match what {
            ACKNOWLEDGEMENT => {
                compose::packet(&[ip, udp, bth(Opcode::RC_ACKNOWLEDGE), aeth, icrc], profile)
            }
            TCP => {
                let tcp = Part::Tcp {
                    source: port,
                    destination: profile.rocev2_port,
                    sequence: 0,
                    acknowledgement: 0,
                    push: false,
                    window: 0xFFFF,
                    checksum: UdpChecksum::Compute,
                };
                compose::packet(&[ip, tcp, Part::Bytes(&payload)], profile)
            }
            MULTICAST => compose::packet(
                &[
                    ip,
                    udp,
                    bth(Opcode::RC_SEND_ONLY),
                    Part::Bytes(&payload),
                    icrc,
                ],
                profile,
            ),
            _ => {
                let mut cnp = CnpRepr::new(qp);
                cnp.bth.psn = 0;
                let carrier = Carrier {
                    udp_source: port,
                    ..Carrier::new(flow.source, receiver)
                };
                Ok(emit_packet(|out| emit::cnp(&carrier, &cnp, profile, out)))
            }
        };
        self.others.push(OtherSent {
            what,
            key: FlowKey {
                sender: flow.source,
                receiver,
                receiver_qp: qp,
            },
            port,
        });
        Some(framed((flow.from, flow.to), &packet.ok()?))
    }

    /// Builds the next data packet as a frame.
    fn data(
        &mut self,
        path: &FlowPath<'_>,
        options: PacketOptions,
        first: usize,
        payload: u16,
    ) -> Option<Vec<u8>> {
        let (flow, profile) = (path.flow, &self.setup.simulation.profile);
        let number = self.sent.len() as u32;
        let own = if options.same_qp {
            first as u32
        } else {
            number
        };
        let qp = Qp::truncate(FIRST_QP + own * BETWEEN_QPS);
        let port = FIRST_PORT | (own & 0x3FFF) as u16;
        let tunnel = self.tunnel(path);
        let ecn = if options.incapable { 0 } else { 2 };
        let class = flow.dscp << 2 | ecn;
        let trace = options.traced.then(|| {
            let before = NodeValues {
                hop_limit: 63,
                node_id: 0xBE_0000 | u64::from(number),
                ingress: 1,
                egress: 2,
                queue_depth: number,
                ..NodeValues::default()
            };
            filled_trace(TRACE, TRACE.node_len() * 4 * 3, [before].iter())
        });
        let trace = trace.and_then(Result::ok);
        let mut inner = vec![match (flow.source, flow.destination) {
            (IpAddr::V6(source), IpAddr::V6(destination)) => Part::Ipv6 {
                source,
                destination,
                traffic_class: class,
                flow_label: flow.flow_label,
                hop_limit: compose::DEFAULT_HOP_LIMIT,
            },
            (IpAddr::V4(source), IpAddr::V4(destination)) => Part::v4(source, destination, class),
            _ => return None,
        }];
        let ioam = trace.as_deref().map(|body| {
            [OptionPart::Ioam(IoamOption {
                reserved: 0,
                opt_type: OptType::Preallocated,
                body,
            })]
        });
        if let Some(options) = &ioam {
            inner.push(Part::HopByHop(options));
        }
        let proxy = flow
            .proxy_option
            .map(|address| [OptionPart::ProxyAddress(ProxyAddress(address))]);
        if let Some(options) = &proxy {
            inner.push(Part::DestinationOptions(options));
        }
        let payload = vec![0x5A; usize::from(payload)];
        inner.extend([
            Part::udp(port, profile.rocev2_port),
            Part::Bth(BthRepr::new(Opcode::RC_SEND_ONLY, qp, number)),
            Part::Bytes(&payload),
            Part::Icrc(Policy::Compute(profile.icrc_reading)),
        ]);
        let packet = compose::packet(&inner, profile).ok()?;
        let label = FIRST_LABEL + own;
        let nodes = (flow.from, flow.to);
        let frame = match tunnel {
            None => framed(nodes, &packet),
            Some(tunnel) => encapsulated(nodes, &packet, tunnel, (label, ecn))?,
        };
        let link = self.setup.towards(flow.from);
        self.sent.push(DataSent {
            link: link.filter(|link| self.setup.neighbour(*link) == flow.from),
            flow: FlowKey {
                sender: flow.source,
                receiver: flow.destination,
                receiver_qp: qp,
            },
            port,
            ecn,
            trace,
            outer: tunnel.map(|(ingress, ..)| (label, ingress)),
            packet,
            number,
            is_of_many: options.same_qp,
        });
        Some(frame)
    }
}

/// Builds a frame like [`framed`], in a tunnel.
fn encapsulated(
    (from, to): (NodeId, NodeId),
    packet: &[u8],
    (ingress, egress, tunnel): (Ipv6Addr, Ipv6Addr, Tunnel),
    (label, ecn): (u32, u8),
) -> Option<Vec<u8>> {
    let link = Part::Ethernet {
        source: mac(from),
        destination: mac(to),
    };
    let is_v4 = packet.first()? >> 4 == 4;
    let inner = Part::Payload {
        ether_type: if is_v4 {
            ethernet::IPV4
        } else {
            ethernet::IPV6
        },
        protocol: if is_v4 { 4 } else { 41 },
        bytes: packet,
    };
    let encapsulation = Encapsulation {
        ends: (ingress, egress),
        tunnel,
        traffic_class: ecn,
        label,
        udp_source: FIRST_PORT,
        hop_limit: compose::DEFAULT_HOP_LIMIT,
    };
    encapsulation.put([link, link, inner], |parts| {
        compose::packet(parts, &Profile::DEFAULT).ok()
    })
}

/// Builds frames for these paths, as fast as their links can carry them.
pub fn burst(
    builder: &mut DataBuilder<'_, '_>,
    begin: Ps,
    ways: &[FlowPath<'_>],
    options: PacketOptions,
    (count, payload): (u64, u16),
) -> Vec<Planned> {
    let first = builder.sent.len();
    let mut free: HashMap<usize, Ps> = HashMap::new();
    let mut frames = Vec::new();
    let mut turn = HashMap::new();
    while (frames.len() as u64) < count {
        // Takes the link that is free first, and the next of its flows.
        let link = ways.iter().map(|way| way.from);
        let Some(link) = link.min_by_key(|link| (free.get(link).copied().unwrap_or(begin), *link))
        else {
            break;
        };
        let of_link: Vec<_> = ways.iter().filter(|way| way.from == link).collect();
        let turn = turn.entry(link).or_insert(0);
        let Some(way) = of_link.get(*turn % of_link.len()) else {
            break;
        };
        *turn += usize::from(!options.same_qp);
        let is_other = options.mixed && frames.len() % OTHER_ONE_IN == OTHER_ONE_IN - 1;
        let built = match is_other {
            true => builder.other(way),
            false => builder.data(way, options, first, payload),
        };
        let Some(bytes) = built else { break };
        let at = free.entry(link).or_insert(begin);
        let rate: Rate = builder.setup.rate(link);
        let planned = Planned {
            at: *at,
            link,
            content: FrameContent::Octets(bytes.clone()),
        };
        *at = *at + rate.time((bytes.len() + WIRE_OVERHEAD) as u64);
        frames.push(planned);
    }
    frames
}
