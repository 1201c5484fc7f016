//! The octets of packets, made when a vantage point (or a node that quotes a packet) asks for them.
//!
//! Data and acknowledgements come from headers built once per flow and kind; what changes from packet to packet is
//! patched, the ICRC too, so that the payload is copied and never summed. What they mean is decided elsewhere.

use super::connection::{Connection, entropy, psn};
use super::packet::{ECT0, NONE, Octets, Packet, Shelf, Trace, What};
use crate::scenario::model::{Flow, Simulation, Tunnel};
use etherparse::{IpNumber, Ipv6FlowLabel, Ipv6Header, UdpHeader};
use fcn_wire::bth::{Aeth, BthRepr, Opcode, Reth};
use fcn_wire::compose::{self, OptionPart, Part, UdpChecksum};
use fcn_wire::icrc::{ICRC_LEN, Patcher, Policy};
use fcn_wire::ioam::IoamOption;
use fcn_wire::profile::VXLAN_PORT;
use fcn_wire::proxy_address::ProxyAddress;
use fcn_wire::{LinkType, Qp};
use rustc_hash::FxHashMap;
use std::net::IpAddr;
use std::rc::Rc;

/// Octets of an Ethernet header.
pub const ETHERNET: usize = 14;
/// Hop limit that senders start with.
pub const HOPS: u8 = 64;
/// The longest payload of a packet: the largest path MTU of InfiniBand.
const LONGEST_PAYLOAD: usize = 4_096;
/// What messages consist of: it says where in the packet one looks.
static PAYLOAD: [u8; LONGEST_PAYLOAD] = {
    let mut payload = [0; LONGEST_PAYLOAD];
    let mut i = 0;
    while i < LONGEST_PAYLOAD {
        payload[i] = i as u8;
        i += 1;
    }
    payload
};
/// Where senders write: the start of a memory region, which messages fill one after another.
const REGION: u64 = 0x7F00_0000_0000;
/// Octets of that region; behind them, messages start over.
const REGION_LEN: u64 = 1 << 30;
/// AETH syndrome: acknowledgement, credits not limited (InfiniBand volume 1, table 43).
const SYNDROME_ACK: u8 = 0x1F;
/// AETH syndrome: PSN sequence error.
const SYNDROME_SEQUENCE: u8 = 0x60;
/// EtherType of MPLS.
const MPLS: u16 = fcn_wire::frame::ETHERTYPE_MPLS;
/// Entropy label indicator (RFC 6790).
const ENTROPY_LABEL_INDICATOR: u32 = 7;
/// Next header of a routing header.
const ROUTING: u8 = fcn_wire::ipv6_ext::next_header::ROUTING;

/// A tunnel between two provider edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Where packets get in.
    pub ingress: usize,
    /// Where they get out.
    pub egress: usize,
    /// How.
    pub tunnel: Tunnel,
}

impl Path {
    /// Octets that it adds to a frame.
    pub const fn overhead(&self) -> u32 {
        match self.tunnel {
            Tunnel::Srv6 => 40 + 24,
            Tunnel::Vxlan { .. } => 40 + 8 + 8 + ETHERNET as u32,
            Tunnel::SrMpls { .. } => 16,
        }
    }
}

/// The kinds of packets that a flow has a header for.
#[derive(Clone, Copy)]
enum Shape {
    Data(Opcode),
    Acknowledgement,
}

/// How many kinds that are.
const SHAPES: usize = 5;

impl Shape {
    const fn slot(self) -> usize {
        match self {
            Self::Data(Opcode::RC_WRITE_FIRST) => 0,
            Self::Data(Opcode::RC_WRITE_MIDDLE) => 1,
            Self::Data(Opcode::RC_WRITE_LAST) => 2,
            Self::Data(_) => 3,
            Self::Acknowledgement => 4,
        }
    }
}

/// The headers of a flow's packets of one kind, from IP on, with the ICRC that goes with them.
struct Headers {
    /// The path that they are for: after a change they are built anew.
    path: u8,
    bytes: Box<[u8]>,
    bth: usize,
    payload: usize,
    pad: usize,
    icrc: u32,
    /// Patches the acknowledge request and the PSN.
    sequence: Rc<Patcher>,
    /// Patches RETH or AETH behind the BTH, where there is one.
    extended: Option<Rc<Patcher>>,
}

/// Makes octets of packets.
pub struct Frames<'s> {
    simulation: &'s Simulation,
    paths: Vec<Path>,
    headers: Vec<[Option<Box<Headers>>; SHAPES]>,
    patchers: FxHashMap<(usize, usize), Rc<Patcher>>,
}

/// What packets refer to.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Connections by flow.
    pub connections: &'a [Connection],
    /// Octets of other packets.
    pub octets: &'a Shelf<Octets>,
    /// IOAM traces.
    pub traces: &'a Shelf<Trace>,
}

/// Octets written one after another, as far as there is room: a snap length cuts.
struct Out<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl Out<'_> {
    fn put(&mut self, bytes: &[u8]) {
        let room = self.out.get_mut(self.at..).unwrap_or_default();
        let len = bytes.len().min(room.len());
        if let (Some(to), Some(from)) = (room.get_mut(..len), bytes.get(..len)) {
            to.copy_from_slice(from);
        }
        self.at += bytes.len();
    }
}

/// The MAC address of a node: locally administered, its number in the last octets.
pub const fn mac(node: usize) -> [u8; 6] {
    let [.., a, b, c] = (node as u32 + 1).to_be_bytes();
    [0x02, 0xFC, 0x00, a, b, c]
}

impl<'s> Frames<'s> {
    /// Nothing built yet.
    pub fn new(simulation: &'s Simulation, paths: Vec<Path>) -> Self {
        let headers = simulation
            .flows
            .iter()
            .map(|_| Default::default())
            .collect();
        Self {
            simulation,
            paths,
            headers,
            patchers: FxHashMap::default(),
        }
    }

    /// A tunnel.
    pub fn path(&self, tunnel: u32) -> Option<&Path> {
        self.paths.get(tunnel as usize)
    }

    /// Octets of the frame of a data packet of `flow` with `payload` octets of payload and a trace option of `trace`
    /// octets (0: none), outside of tunnels.
    pub fn data_len(flow: &Flow, opcode: Opcode, payload: u32, trace: usize) -> u32 {
        let ip = if flow.source.is_ipv4() { 20 } else { 40 };
        let extended = opcode.extended_len().unwrap_or(0) as u32;
        let option = u32::from(flow.proxy_option.is_some()) * 24;
        let hop_by_hop = if trace == 0 { 0 } else { hop_by_hop_len(trace) };
        ETHERNET as u32
            + ip
            + hop_by_hop
            + option
            + 8
            + 12
            + extended
            + payload.next_multiple_of(4)
            + ICRC_LEN as u32
    }

    /// Octets of the frame of an acknowledgement of `flow`, outside of tunnels.
    pub const fn ack_len(flow: &Flow) -> u32 {
        let ip = if flow.source.is_ipv4() { 20 } else { 40 };
        (ETHERNET + ip + 8 + 12 + 4 + ICRC_LEN) as u32
    }

    /// Writes the frame of `packet` on its way from one node to another, as much of it as `out` has room for.
    pub fn write(
        &mut self,
        packet: &Packet,
        (from, to): (usize, usize),
        context: Context<'_>,
        out: &mut [u8],
    ) -> fcn_wire::Result<()> {
        let octets = (packet.what == What::Frame)
            .then(|| context.octets.at(packet.extra))
            .flatten();
        let mut out = Out { out, at: 0 };
        out.put(&octets.and_then(|o| o.multicast).unwrap_or(mac(to)));
        out.put(&mac(from));
        let ether_type = match octets {
            Some(octets) if octets.ether_type == 0 => octets.bytes.len() as u16,
            Some(octets) => octets.ether_type,
            None => self.ether_type(packet.flow),
        };
        match self.paths.get(packet.tunnel as usize).copied() {
            Some(path) => self.tunnel(packet, &path, ether_type, &mut out),
            None => out.put(&ether_type.to_be_bytes()),
        }
        self.network(packet, context, &mut out)
    }

    /// The packet from its own IP header on, without the tunnel around it.
    pub fn quote(
        &mut self,
        packet: &Packet,
        context: Context<'_>,
        into: &mut Vec<u8>,
    ) -> fcn_wire::Result<()> {
        let tunnel = self
            .paths
            .get(packet.tunnel as usize)
            .map_or(0, Path::overhead);
        into.clear();
        into.resize((packet.len - tunnel) as usize - ETHERNET, 0);
        self.network(packet, context, &mut Out { out: into, at: 0 })
    }

    fn ether_type(&self, flow: u32) -> u16 {
        match self.simulation.flows.get(flow as usize) {
            Some(flow) if flow.source.is_ipv4() => 0x0800,
            _ => 0x86DD,
        }
    }

    /// The tunnel's headers, EtherType included.
    fn tunnel(&self, packet: &Packet, path: &Path, ether_type: u16, out: &mut Out<'_>) {
        let inner = packet.len as usize - ETHERNET - path.overhead() as usize;
        let address = |node: usize| {
            self.simulation
                .nodes
                .get(node)
                .map_or([0; 16], |node| node.ipv6.octets())
        };
        let class = self.traffic_class(packet) & 0xFC | packet.outer_ecn;
        let ip = |payload: usize, next: u8| Ipv6Header {
            traffic_class: class,
            flow_label: Ipv6FlowLabel::try_new(packet.label).unwrap_or_default(),
            payload_length: payload as u16,
            next_header: IpNumber(next),
            hop_limit: packet.outer_hops,
            source: address(path.ingress),
            destination: address(path.egress),
        };
        let next = if ether_type == 0x0800 { 4 } else { 41 };
        match path.tunnel {
            Tunnel::Srv6 => {
                out.put(&0x86DD_u16.to_be_bytes());
                out.put(&ip(24 + inner, ROUTING).to_bytes());
                out.put(&[next, 2, 4, 0, 0, 0, 0, 0]);
                out.put(&address(path.egress));
            }
            Tunnel::Vxlan { vni } => {
                let udp = 8 + 8 + ETHERNET + inner;
                out.put(&0x86DD_u16.to_be_bytes());
                out.put(&ip(udp, 17).to_bytes());
                let udp = UdpHeader {
                    // Entropy in the port, as RFC 7348 section 5 advises.
                    source_port: 0xC000 | (packet.label & 0x3FFF) as u16,
                    destination_port: VXLAN_PORT,
                    length: udp as u16,
                    checksum: 0,
                };
                out.put(&udp.to_bytes());
                let [_, a, b, c] = vni.to_be_bytes();
                out.put(&[0x08, 0, 0, 0, a, b, c, 0]);
                out.put(&mac(path.egress));
                out.put(&mac(path.ingress));
                out.put(&ether_type.to_be_bytes());
            }
            Tunnel::SrMpls { transport, service } => {
                out.put(&MPLS.to_be_bytes());
                let stack = [
                    (transport, 0),
                    (ENTROPY_LABEL_INDICATOR, 0),
                    (packet.label, 0),
                    (service, 1),
                ];
                for (label, bottom) in stack {
                    let entry = label << 12 | bottom << 8 | u32::from(packet.outer_hops);
                    out.put(&entry.to_be_bytes());
                }
            }
        }
    }

    /// Traffic class of the packet's own header.
    fn traffic_class(&self, packet: &Packet) -> u8 {
        match self.simulation.flows.get(packet.flow as usize) {
            Some(flow) if packet.what != What::Frame => flow.dscp << 2 | packet.ecn,
            _ => 0xC0,
        }
    }

    /// The packet's own headers and what follows them.
    fn network(
        &mut self,
        packet: &Packet,
        context: Context<'_>,
        out: &mut Out<'_>,
    ) -> fcn_wire::Result<()> {
        match packet.what {
            What::Frame => {
                let bytes = context
                    .octets
                    .at(packet.extra)
                    .map_or(&[][..], |octets| &octets.bytes);
                let mut head = [0; 40];
                let len = bytes.len().min(head.len());
                head[..len].copy_from_slice(&bytes[..len]);
                set_hops(&mut head[..len], packet.hops);
                out.put(&head[..len]);
                out.put(bytes.get(len..).unwrap_or_default());
                Ok(())
            }
            What::Data if packet.extra != NONE => self.traced(packet, context, out),
            What::Data => self.data(packet, context, out),
            What::Ack | What::Nak => self.acknowledgement(packet, context, out),
        }
    }

    /// The flow that a packet belongs to, and its connection.
    fn flow<'c>(
        &self,
        packet: &Packet,
        context: Context<'c>,
    ) -> Option<(&'s Flow, &'c Connection)> {
        let index = packet.flow as usize;
        let simulation: &'s Simulation = self.simulation;
        Some((
            simulation.flows.get(index)?,
            context.connections.get(index)?,
        ))
    }

    fn data(
        &mut self,
        packet: &Packet,
        context: Context<'_>,
        out: &mut Out<'_>,
    ) -> fcn_wire::Result<()> {
        let index = packet.flow as usize;
        let Some((flow, connection)) = self.flow(packet, context) else {
            return Ok(());
        };
        let opcode = connection.opcode(packet.index);
        let payload = connection.payload(flow, packet.index);
        let headers = self.headers(index, Shape::Data(opcode), packet.path, payload)?;
        let extended = headers
            .extended
            .is_some()
            .then(|| address(flow, connection, packet.index).to_be_bytes());
        let sequence = u32::from(packet.ack_request) << 31 | psn(flow, packet.index);
        let extended = extended.as_ref().map_or(&[][..], |e| e);
        headers.write(
            flow.dscp << 2 | packet.ecn,
            packet.hops,
            sequence,
            extended,
            out,
        );
        Ok(())
    }

    fn acknowledgement(
        &mut self,
        packet: &Packet,
        context: Context<'_>,
        out: &mut Out<'_>,
    ) -> fcn_wire::Result<()> {
        let index = packet.flow as usize;
        let Some((flow, connection)) = self.flow(packet, context) else {
            return Ok(());
        };
        let headers = self.headers(index, Shape::Acknowledgement, 0, 0)?;
        let nak = packet.what == What::Nak;
        let done = packet.index + u64::from(!nak);
        let aeth = Aeth {
            syndrome: if nak { SYNDROME_SEQUENCE } else { SYNDROME_ACK },
            msn: (done / connection.packets_a_message) as u32 & 0x00FF_FFFF,
        };
        let sequence = psn(flow, packet.index);
        headers.write(
            flow.dscp << 2 | packet.ecn,
            packet.hops,
            sequence,
            &aeth.to_bytes(),
            out,
        );
        Ok(())
    }

    /// A data packet with an IOAM trace, built anew: its length may change at every node.
    fn traced(
        &mut self,
        packet: &Packet,
        context: Context<'_>,
        out: &mut Out<'_>,
    ) -> fcn_wire::Result<()> {
        let (Some((flow, connection)), Some(trace)) =
            (self.flow(packet, context), context.traces.at(packet.extra))
        else {
            return Ok(());
        };
        let ioam = [OptionPart::Ioam(IoamOption {
            reserved: 0,
            opt_type: trace.opt_type,
            body: &trace.bytes,
        })];
        let bytes = build(
            self.simulation,
            flow,
            Shape::Data(connection.opcode(packet.index)),
            connection.payload(flow, packet.index),
            Values {
                path: packet.path,
                traffic_class: flow.dscp << 2 | packet.ecn,
                hops: packet.hops,
                psn: psn(flow, packet.index),
                ack_request: packet.ack_request,
                address: address(flow, connection, packet.index),
            },
            &ioam,
        )?;
        out.put(&bytes);
        Ok(())
    }

    /// The headers of a kind of packet, built when first asked for.
    fn headers(
        &mut self,
        index: usize,
        shape: Shape,
        path: u8,
        payload: u32,
    ) -> fcn_wire::Result<&Headers> {
        let slot = shape.slot();
        let there = self.headers.get(index).and_then(|h| h[slot].as_deref());
        if there.is_none_or(|headers| headers.path != path) {
            let built = self.build(index, shape, path, payload)?;
            if let Some(headers) = self.headers.get_mut(index) {
                headers[slot] = Some(Box::new(built));
            }
        }
        let built = self.headers.get(index).and_then(|h| h[slot].as_deref());
        built.ok_or_else(|| {
            fcn_wire::Error::length(
                fcn_wire::Layer::Bth,
                0,
                "flow",
                index,
                0,
                self.headers.len(),
            )
        })
    }

    fn build(
        &mut self,
        index: usize,
        shape: Shape,
        path: u8,
        payload: u32,
    ) -> fcn_wire::Result<Headers> {
        let simulation = self.simulation;
        let flow = &simulation.flows[index];
        let values = Values {
            path,
            traffic_class: flow.dscp << 2 | ECT0,
            hops: HOPS,
            psn: 0,
            ack_request: false,
            address: 0,
        };
        let bytes = build(simulation, flow, shape, payload, values, &[])?;
        let frame =
            fcn_wire::Frame::parse(&bytes, bytes.len(), LinkType::RawIp, &simulation.profile);
        let bth = frame
            .datagram()
            .map_or(0, fcn_wire::frame::Datagram::payload_at);
        let extended = match shape {
            Shape::Data(opcode) => opcode.extended_len().unwrap_or(0),
            Shape::Acknowledgement => 4,
        };
        let end = bytes.len() - ICRC_LEN;
        let headers_end = bth + 12 + extended;
        let patched = match shape {
            Shape::Data(_) if extended == 0 => 0,
            // The address; R_Key and length stay.
            Shape::Data(_) => 8,
            Shape::Acknowledgement => 4,
        };
        let sequence = self.patcher(4, end - (bth + 12));
        let extended = (patched > 0).then(|| self.patcher(patched, end - (bth + 12 + patched)));
        let mut icrc = [0; ICRC_LEN];
        icrc.copy_from_slice(&bytes[end..]);
        Ok(Headers {
            path,
            bytes: bytes[..headers_end].into(),
            bth,
            payload: payload as usize,
            pad: end - headers_end - payload as usize,
            icrc: u32::from_le_bytes(icrc),
            sequence,
            extended,
        })
    }

    fn patcher(&mut self, len: usize, behind: usize) -> Rc<Patcher> {
        self.patchers
            .entry((len, behind))
            .or_insert_with(|| Rc::new(Patcher::new(len, behind)))
            .clone()
    }
}

impl Headers {
    fn write(
        &self,
        traffic_class: u8,
        hops: u8,
        sequence: u32,
        extended: &[u8],
        out: &mut Out<'_>,
    ) {
        // The longest: IPv6, the proxy option, UDP, BTH, RETH.
        let mut head = [0; 40 + 24 + 8 + 12 + 16];
        let Some(head) = head.get_mut(..self.bytes.len()) else {
            return;
        };
        head.copy_from_slice(&self.bytes);
        set_traffic_class(head, traffic_class);
        set_hops(head, hops);
        let at = self.bth + 8;
        let sequence = sequence.to_be_bytes();
        let mut icrc = self.sequence.patch(self.icrc, &head[at..at + 4], &sequence);
        head[at..at + 4].copy_from_slice(&sequence);
        if let Some(patcher) = &self.extended {
            let at = self.bth + 12;
            let end = at + extended.len();
            icrc = patcher.patch(icrc, &head[at..end], extended);
            head[at..end].copy_from_slice(extended);
        }
        out.put(head);
        out.put(&PAYLOAD[..self.payload]);
        out.put(&[0; 3][..self.pad]);
        out.put(&icrc.to_le_bytes());
    }
}

/// Octets of a Hop-by-Hop Options header around an IOAM trace: next header and length, padding that puts the option at
/// 4n, option type and length, reserved and IOAM type, the trace, padding to 8 octets.
const fn hop_by_hop_len(trace: usize) -> u32 {
    (2 + 2 + 2 + 2 + trace).next_multiple_of(8) as u32
}

/// Address that the message of packet `index` is written to.
fn address(flow: &Flow, connection: &Connection, index: u64) -> u64 {
    let message = index / connection.packets_a_message;
    REGION + message.wrapping_mul(u64::from(flow.message)) % REGION_LEN
}

/// What changes from one packet of a kind to the next.
struct Values {
    path: u8,
    traffic_class: u8,
    hops: u8,
    psn: u32,
    ack_request: bool,
    address: u64,
}

/// A packet of `flow`, from its IP header on.
fn build(
    simulation: &Simulation,
    flow: &Flow,
    shape: Shape,
    payload: u32,
    values: Values,
    hop_by_hop: &[OptionPart<'_>],
) -> fcn_wire::Result<Vec<u8>> {
    let (source, destination) = match shape {
        Shape::Data(_) => (flow.source, flow.destination),
        Shape::Acknowledgement => (flow.destination, flow.source),
    };
    let (source_port, flow_label) = entropy(flow, values.path);
    let mut parts = Vec::with_capacity(8);
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => parts.push(Part::Ipv4 {
            source,
            destination,
            tos: values.traffic_class,
            ttl: values.hops,
            id: 0,
            options: &[],
        }),
        (IpAddr::V6(source), IpAddr::V6(destination)) => parts.push(Part::Ipv6 {
            source,
            destination,
            traffic_class: values.traffic_class,
            flow_label,
            hop_limit: values.hops,
        }),
        _ => {}
    }
    if !hop_by_hop.is_empty() {
        parts.push(Part::HopByHop(hop_by_hop));
    }
    let proxy = flow
        .proxy_option
        .map(|proxy| [OptionPart::ProxyAddress(ProxyAddress(proxy))]);
    if let (Some(option), Shape::Data(_)) = (&proxy, shape) {
        parts.push(Part::DestinationOptions(option));
    }
    parts.push(Part::Udp {
        source: source_port,
        destination: simulation.profile.rocev2_port,
        checksum: UdpChecksum::Zero,
    });
    let (opcode, qp): (_, Qp) = match shape {
        Shape::Data(opcode) => (opcode, flow.receiver_qp),
        Shape::Acknowledgement => (Opcode::RC_ACKNOWLEDGE, flow.sender_qp),
    };
    let pad = (payload.next_multiple_of(4) - payload) as usize;
    let mut bth = BthRepr::new(opcode, qp, values.psn);
    bth.pad = pad as u8;
    bth.ack_request = values.ack_request;
    parts.push(Part::Bth(bth));
    let reth = Reth {
        address: values.address,
        rkey: flow.receiver_qp.get() << 8 | 1,
        length: flow.message,
    }
    .to_bytes();
    match shape {
        Shape::Data(opcode) if opcode.extended_len() == Some(reth.len()) => {
            parts.push(Part::Bytes(&reth));
        }
        Shape::Data(_) => {}
        Shape::Acknowledgement => parts.push(Part::Bytes(&[0; 4])),
    }
    parts.push(Part::Bytes(&PAYLOAD[..payload as usize]));
    parts.push(Part::Bytes(&[0; 3][..pad]));
    parts.push(Part::Icrc(Policy::Compute(simulation.profile.icrc_reading)));
    compose::packet(&parts, &simulation.profile)
}

/// Sets hop limit or TTL in an IP header; anything else stays as it is.
pub fn set_hops(ip: &mut [u8], hops: u8) {
    match ip.first().map(|octet| octet >> 4) {
        Some(6) if ip.len() >= 40 => ip[7] = hops,
        Some(4) if ip.len() >= 20 => {
            ip[8] = hops;
            set_ipv4_checksum(ip);
        }
        _ => {}
    }
}

/// Sets TOS or traffic class in an IP header.
pub fn set_traffic_class(ip: &mut [u8], class: u8) {
    match ip.first().map(|octet| octet >> 4) {
        Some(6) if ip.len() >= 2 => {
            ip[0] = 0x60 | class >> 4;
            ip[1] = class << 4 | ip[1] & 0x0F;
        }
        Some(4) if ip.len() >= 20 => {
            ip[1] = class;
            set_ipv4_checksum(ip);
        }
        _ => {}
    }
}

fn set_ipv4_checksum(ip: &mut [u8]) {
    let header = usize::from(ip[0] & 0x0F) * 4;
    if header < 20 || ip.len() < header {
        return;
    }
    ip[10..12].fill(0);
    let sum: u32 = ip[..header]
        .chunks_exact(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    let folded = (sum & 0xFFFF) + (sum >> 16);
    let folded = (folded & 0xFFFF) + (folded >> 16);
    ip[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
}
