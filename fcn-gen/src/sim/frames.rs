//! The octets of packets, built on demand for a vantage point or for a node that quotes a packet.
//!
//! Data and acknowledgements are built from a template per layout. Fields that change from packet
//! to packet are patched, including the ICRC, so that the payload is copied but never summed. The
//! meaning of packets is defined elsewhere.

use super::connection::{Connection, entropy};
use super::packet::{Octets, Packet, PacketKind, Pool, Trace};
use crate::scenario::model::{Flow, Simulation, Tunnel};
use fcn_wire::bth::{Aeth, BTH_LEN, BthRepr, ExtendedHeader, Opcode, Reth};
use fcn_wire::compose::{self, OptionPart, Part};
use fcn_wire::emit::Carrier;
use fcn_wire::header::{ethernet, ipv4, ipv6, routing, udp};
use fcn_wire::icrc::{ICRC_LEN, Policy};
use fcn_wire::ioam::IoamOption;
use fcn_wire::ipv6_ext::next_header;
use fcn_wire::profile::VXLAN_PORT;
use fcn_wire::proxy_address::ProxyAddress;
use fcn_wire::template::{Change, Field, Template, TemplateError};
use fcn_wire::{LinkType, Qp, ip};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::net::Ipv6Addr;

/// Maximum payload of a packet in octets: the largest path MTU of InfiniBand.
const LONGEST_PAYLOAD: usize = 4_096;
/// Payload of messages: each octet is its offset in the packet's payload, modulo 256.
static PAYLOAD: [u8; LONGEST_PAYLOAD] = {
    let mut payload = [0; LONGEST_PAYLOAD];
    let mut i = 0;
    while i < LONGEST_PAYLOAD {
        payload[i] = i as u8;
        i += 1;
    }
    payload
};
/// AETH syndrome: acknowledgement, credits not limited (InfiniBand volume 1, table 43).
const ACK: u8 = 0x1F;
/// AETH syndrome: PSN sequence error.
const NAK_SEQUENCE: u8 = 0x60;
/// Entropy label indicator (RFC 6790).
const ENTROPY_LABEL_INDICATOR: u32 = 7;
/// Maximum length in octets of the headers in front of a packet's own: Ethernet, IPv6, UDP, VXLAN,
/// Ethernet.
const LONGEST_LINK: usize = 2 * ethernet::LEN + ipv6::LEN + udp::LEN + udp::VXLAN_LEN;

type BuildResult = Result<(), TemplateError>;

/// A tunnel between two provider edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Node at the start of the tunnel.
    pub ingress: usize,
    /// Node at the end of the tunnel.
    pub egress: usize,
    /// Kind of tunnel.
    pub tunnel: Tunnel,
}

impl Path {
    /// Returns the octets that the tunnel adds to a frame.
    pub const fn overhead(&self) -> u32 {
        match self.tunnel {
            Tunnel::Srv6 => (ipv6::LEN + routing::SEGMENTS + 16) as u32,
            Tunnel::Vxlan { .. } => (LONGEST_LINK - ethernet::LEN) as u32,
            Tunnel::SrMpls { .. } => 4 * ethernet::LABEL_LEN as u32,
        }
    }
}

/// Tunnel encapsulation of a packet.
pub struct Encapsulation {
    /// Start and end of the tunnel.
    pub ends: (Ipv6Addr, Ipv6Addr),
    /// Kind of tunnel.
    pub tunnel: Tunnel,
    /// Traffic class of its IP header.
    pub traffic_class: u8,
    /// Entropy fields: flow label or entropy label, and the UDP source port.
    pub label: u32,
    pub udp_source: u16,
    /// Hop limit of its IP header, or TTL of its labels.
    pub hop_limit: u8,
}

impl Encapsulation {
    /// Calls `put` with the layers of a packet: Ethernet's `link` header, the tunnel's headers, and
    /// `inner`. A tunnel that carries frames has the Ethernet header `inside` in front of `inner`,
    /// too.
    pub fn put<T>(
        self,
        [link, inside, inner]: [Part<'_>; 3],
        put: impl FnOnce(&[Part<'_>]) -> T,
    ) -> T {
        let (source, destination) = self.ends;
        let outer = Part::Ipv6 {
            source,
            destination,
            traffic_class: self.traffic_class,
            flow_label: self.label,
            hop_limit: self.hop_limit,
        };
        match self.tunnel {
            Tunnel::Srv6 => {
                let segments = &[destination];
                let routing = Part::SegmentRouting { left: 0, segments };
                put(&[link, outer, routing, inner])
            }
            Tunnel::Vxlan { vni } => {
                let udp = Part::udp(self.udp_source, VXLAN_PORT);
                put(&[link, outer, udp, Part::Vxlan { vni }, inside, inner])
            }
            Tunnel::SrMpls { transport, service } => {
                let labels = [transport, ENTROPY_LABEL_INDICATOR, self.label, service];
                let [a, b, c, d] = labels.map(|label| Part::Mpls {
                    label,
                    traffic_class: 0,
                    ttl: self.hop_limit,
                });
                put(&[link, a, b, c, d, inner])
            }
        }
    }
}

/// Properties shared by packets that differ only in fields of a [`Template`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Layout {
    opcode: Opcode,
    is_v6: bool,
    payload: u32,
    /// Message length in a RETH, in octets.
    message: u32,
    /// Syndrome of an AETH.
    syndrome: u8,
    proxy_option: Option<Ipv6Addr>,
}

/// Fields that change from packet to packet.
#[derive(Clone, Copy)]
struct Values {
    carrier: Carrier,
    qp: Qp,
    psn: u32,
    ack_request: bool,
    /// Fields of a RETH.
    address: u64,
    rkey: u32,
    /// Field of an AETH.
    msn: u32,
}

/// Builds the octets of packets.
pub struct Frames<'s> {
    simulation: &'s Simulation,
    paths: Vec<Path>,
    templates: FxHashMap<Layout, Template>,
}

/// Data that packets refer to.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Connections by flow.
    pub connections: &'a [Connection],
    /// Octets of other packets.
    pub octets: &'a Pool<Octets>,
    /// IOAM traces of data packets.
    pub traces: &'a Pool<Trace>,
}

/// An output that is truncated at its end, as by a snap length.
struct TruncatedOutput<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl TruncatedOutput<'_> {
    fn put(&mut self, bytes: &[u8]) {
        let room = self.out.get_mut(self.at..).unwrap_or_default();
        let len = bytes.len().min(room.len());
        if let (Some(to), Some(from)) = (room.get_mut(..len), bytes.get(..len)) {
            to.copy_from_slice(from);
        }
        self.at += bytes.len();
    }
}

/// Returns the MAC address of a node: locally administered, with its number in the last octets. On
/// real links, its peers use it as the destination until they have received a frame from it.
pub const fn mac(node: usize) -> [u8; 6] {
    let [.., a, b, c] = (node as u32 + 1).to_be_bytes();
    [0x02, 0xFC, 0x00, a, b, c]
}

impl<'s> Frames<'s> {
    /// Creates a builder without templates.
    pub fn new(simulation: &'s Simulation, paths: Vec<Path>) -> Self {
        Self {
            simulation,
            paths,
            templates: FxHashMap::default(),
        }
    }

    /// Returns a tunnel.
    pub fn path(&self, tunnel: u32) -> Option<&Path> {
        self.paths.get(tunnel as usize)
    }

    /// Returns the frame length in octets of a packet of `flow` outside of tunnels, with this
    /// payload and a trace of `trace` octets (0 if there is none).
    pub fn len(flow: &Flow, opcode: Opcode, payload: u32, trace: usize) -> u32 {
        let ip = if flow.source.is_ipv4() {
            ipv4::LEN
        } else {
            ipv6::LEN
        };
        let has_option = flow.proxy_option.is_some() && opcode != Opcode::RC_ACKNOWLEDGE;
        let mut len = ethernet::LEN + ip + udp::LEN + BTH_LEN + ICRC_LEN;
        len += opcode.extended_len().unwrap_or(0);
        if has_option {
            len += ProxyAddress::HEADER_LEN;
        }
        if trace > 0 {
            len += IoamOption::header_len(trace);
        }
        len as u32 + payload.next_multiple_of(4)
    }

    /// Writes the frame of `packet` on its way from one node to another, truncated to the length of
    /// `out`.
    pub fn write(
        &mut self,
        packet: &Packet,
        (from, to): (usize, usize),
        context: Context<'_>,
        out: &mut [u8],
    ) -> BuildResult {
        let octets = (packet.kind == PacketKind::Frame)
            .then(|| context.octets.at(packet.extra))
            .flatten();
        let mut out = TruncatedOutput { out, at: 0 };
        let ethernet = Part::Ethernet {
            source: mac(from),
            destination: octets.and_then(|o| o.multicast).unwrap_or(mac(to)),
        };
        let ether_type = match octets {
            Some(octets) => octets.ether_type,
            None => self.ether_type(packet.flow),
        };
        self.link(packet, ethernet, ether_type, &mut out)?;
        self.network(packet, context, &mut out)
    }

    /// Builds the packet from its own IP header on, without the tunnel around it.
    pub fn quote(
        &mut self,
        packet: &Packet,
        context: Context<'_>,
        into: &mut Vec<u8>,
    ) -> BuildResult {
        let tunnel = self
            .paths
            .get(packet.tunnel as usize)
            .map_or(0, Path::overhead);
        into.clear();
        // A packet of octets may be in a tunnel that it entered elsewhere.
        if packet.kind == PacketKind::Frame
            && let Some(octets) = context.octets.at(packet.extra)
            && let Some(seen) = &octets.data
        {
            let inner = octets.bytes.get(seen.inner.clone());
            into.extend_from_slice(inner.unwrap_or(&octets.bytes));
            return Ok(());
        }
        into.resize((packet.len - tunnel) as usize - ethernet::LEN, 0);
        self.network(packet, context, &mut TruncatedOutput { out: into, at: 0 })
    }

    fn ether_type(&self, flow: u32) -> u16 {
        match self.simulation.flows.get(flow as usize) {
            Some(flow) if flow.source.is_ipv4() => ethernet::IPV4,
            _ => ethernet::IPV6,
        }
    }

    /// Writes the headers in front of the packet's own: Ethernet, and those of its tunnel.
    fn link(
        &self,
        packet: &Packet,
        ethernet: Part<'_>,
        ether_type: u16,
        out: &mut TruncatedOutput<'_>,
    ) -> BuildResult {
        let path = self.paths.get(packet.tunnel as usize);
        let around = ethernet::LEN + path.map_or(0, |path| path.overhead() as usize);
        let inner = Part::Trailing {
            ether_type,
            protocol: if ether_type == ethernet::IPV4 {
                next_header::IPV4
            } else {
                next_header::IPV6
            },
            len: packet.len as usize - around,
        };
        let mut put = |parts: &[Part<'_>]| {
            let mut head = [0; LONGEST_LINK];
            let len = compose::write(parts, &self.simulation.profile, &mut head)?;
            out.put(head.get(..len).unwrap_or_default());
            Ok(())
        };
        let Some(path) = path else {
            return put(&[ethernet, inner]);
        };
        let address = |node: usize| self.simulation.nodes[node].ipv6;
        let encapsulation = Encapsulation {
            ends: (address(path.ingress), address(path.egress)),
            tunnel: path.tunnel,
            traffic_class: self.traffic_class(packet) & 0xFC | packet.outer_ecn,
            label: packet.label,
            hop_limit: packet.outer_hops,
            // The port carries entropy, as RFC 7348 section 5 recommends.
            udp_source: 0xC000 | (packet.label & 0x3FFF) as u16,
        };
        let inside = Part::Ethernet {
            source: mac(path.ingress),
            destination: mac(path.egress),
        };
        encapsulation.put([ethernet, inside, inner], put)
    }

    /// Returns the traffic class of the packet's own header.
    fn traffic_class(&self, packet: &Packet) -> u8 {
        match self.simulation.flows.get(packet.flow as usize) {
            Some(flow) if packet.kind != PacketKind::Frame => flow.dscp << 2 | packet.ecn,
            _ => self.simulation.cnp_dscp << 2,
        }
    }

    /// Writes the packet's own headers, and what follows them.
    fn network(
        &mut self,
        packet: &Packet,
        context: Context<'_>,
        out: &mut TruncatedOutput<'_>,
    ) -> BuildResult {
        match packet.kind {
            PacketKind::Frame => {
                let bytes = context
                    .octets
                    .at(packet.extra)
                    .map_or(&[][..], |octets| &octets.bytes);
                let mut head = [0; ipv4::MAX_LEN];
                let len = bytes.len().min(head.len());
                let head = &mut head[..len];
                head.copy_from_slice(&bytes[..len]);
                ip::set_hop_limit(head, packet.hops);
                out.put(head);
                out.put(bytes.get(len..).unwrap_or_default());
                Ok(())
            }
            PacketKind::Data | PacketKind::Ack | PacketKind::Nak => self.roce(packet, context, out),
        }
    }

    /// Writes a data packet or an acknowledgement.
    fn roce(
        &mut self,
        packet: &Packet,
        context: Context<'_>,
        out: &mut TruncatedOutput<'_>,
    ) -> BuildResult {
        let index = packet.flow as usize;
        let simulation = self.simulation;
        let (Some(flow), Some(connection)) =
            (simulation.flows.get(index), context.connections.get(index))
        else {
            return Ok(());
        };
        let (layout, values) = describe(packet, flow, connection);
        if let Some((opt_type, body)) = context.traces.in_packet(packet) {
            // Built without a template, since the trace may grow at every node.
            let ioam = [OptionPart::Ioam(IoamOption {
                reserved: 0,
                opt_type,
                body,
            })];
            out.put(&build(simulation, layout, values, &ioam)?);
            return Ok(());
        }
        let template = match self.templates.entry(layout) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(place) => place.insert(template(simulation, layout, values)?),
        };
        let carrier = values.carrier;
        template.set(Change::SourceAddress(carrier.source))?;
        template.set(Change::DestinationAddress(carrier.destination))?;
        template.set(Change::TrafficClass(carrier.traffic_class))?;
        template.set(Change::HopLimit(carrier.hop_limit))?;
        if layout.is_v6 {
            template.set(Change::FlowLabel(carrier.flow_label))?;
        }
        template.set(Change::UdpSource(carrier.udp_source))?;
        template.set(Change::DestQp(values.qp))?;
        template.set(Change::AckRequest(values.ack_request))?;
        template.set(Change::Psn(values.psn))?;
        match layout.opcode.extended_headers() {
            Some([ExtendedHeader::Reth]) => {
                template.set(Change::RethAddress(values.address))?;
                template.set(Change::RethKey(values.rkey))?;
            }
            Some([ExtendedHeader::Aeth]) => template.set(Change::AethMsn(values.msn))?,
            _ => {}
        }
        out.put(template.bytes());
        Ok(())
    }
}

/// Returns layout and field values of a packet of `flow`.
fn describe(packet: &Packet, flow: &Flow, connection: &Connection) -> (Layout, Values) {
    let is_data = packet.kind == PacketKind::Data;
    let peer = connection.peer(flow);
    let (from_to, qp, opcode, payload) = if is_data {
        let opcode = connection.opcode(packet.index);
        let payload = connection.payload(flow, packet.index);
        let from_to = (flow.source, flow.destination);
        (from_to, peer.qp, opcode, payload)
    } else {
        let from_to = (flow.destination, flow.source);
        (from_to, flow.sender_qp, Opcode::RC_ACKNOWLEDGE, 0)
    };
    let (source, destination) = from_to;
    let is_nak = packet.kind == PacketKind::Nak;
    let layout = Layout {
        opcode,
        is_v6: source.is_ipv6(),
        payload,
        message: flow.message,
        syndrome: if is_nak { NAK_SEQUENCE } else { ACK },
        proxy_option: flow.proxy_option.filter(|_| is_data),
    };
    let (udp_source, flow_label) = entropy(flow, if is_data { packet.path } else { 0 });
    let done = packet.index + u64::from(!is_nak);
    let values = Values {
        carrier: Carrier {
            source,
            destination,
            traffic_class: flow.dscp << 2 | packet.ecn,
            flow_label,
            hop_limit: packet.hops,
            udp_source,
        },
        qp,
        psn: connection.psn(flow, packet.index),
        ack_request: is_data && packet.ack_request,
        address: connection.address(flow, packet.index),
        rkey: peer.region.rkey,
        msn: (done / connection.packets_a_message) as u32 & 0x00FF_FFFF,
    };
    (layout, values)
}

fn template(
    simulation: &Simulation,
    layout: Layout,
    values: Values,
) -> Result<Template, TemplateError> {
    let extended = match layout.opcode.extended_headers() {
        Some([ExtendedHeader::Reth]) => &[Field::RethAddress, Field::RethKey][..],
        Some([ExtendedHeader::Aeth]) => &[Field::AethMsn],
        _ => &[],
    };
    let fields = [
        &[
            Field::SourceAddress,
            Field::DestinationAddress,
            Field::UdpSource,
            Field::DestQp,
            Field::AckRequest,
            Field::Psn,
        ],
        extended,
    ]
    .concat();
    let bytes = build(simulation, layout, values, &[])?;
    Template::new(bytes, LinkType::RawIp, &simulation.profile, &fields)
}

/// Builds a packet from its IP header on.
fn build(
    simulation: &Simulation,
    layout: Layout,
    values: Values,
    hop_by_hop: &[OptionPart<'_>],
) -> fcn_wire::Result<Vec<u8>> {
    const NOTHING: Part<'static> = Part::Bytes(&[]);
    let profile = &simulation.profile;
    let proxy = layout
        .proxy_option
        .map(|proxy| [OptionPart::ProxyAddress(ProxyAddress(proxy))]);
    let pad = (layout.payload.next_multiple_of(4) - layout.payload) as usize;
    let mut bth = BthRepr::new(layout.opcode, values.qp, values.psn);
    bth.pad = pad as u8;
    bth.ack_request = values.ack_request;
    let parts = [
        values.carrier.ip()?,
        match hop_by_hop {
            [] => NOTHING,
            options => Part::HopByHop(options),
        },
        proxy
            .as_ref()
            .map_or(NOTHING, |option| Part::DestinationOptions(option)),
        Part::udp(values.carrier.udp_source, profile.rocev2_port),
        Part::Bth(bth),
        match layout.opcode.extended_headers() {
            Some([ExtendedHeader::Reth]) => Part::Reth(Reth {
                address: values.address,
                rkey: values.rkey,
                length: layout.message,
            }),
            Some([ExtendedHeader::Aeth]) => Part::Aeth(Aeth {
                syndrome: layout.syndrome,
                msn: values.msn,
            }),
            _ => NOTHING,
        },
        Part::Bytes(&PAYLOAD[..layout.payload as usize]),
        Part::Bytes(&[0; 3][..pad]),
        Part::Icrc(Policy::Compute(profile.icrc_reading)),
    ];
    compose::packet(&parts, profile)
}
