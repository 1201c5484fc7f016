//! The cast of hosts, and packets said one after another with what to look at. Which packets is the families' business.

use fcn_wire::bth::{Aeth, BthRepr, Opcode, Qp, Reth};
use fcn_wire::cnp::{CnpRepr, DEFAULT_TRAFFIC_CLASS, DEFAULT_UDP_SOURCE};
use fcn_wire::compose::{Part, UdpChecksum, packet};
use fcn_wire::icrc::{self, Policy};
use fcn_wire::ioam::{IoamOption, NodeValues, OptType, TraceRepr, TraceType};
use fcn_wire::profile::ROCEV2_PORT;
use fcn_wire::{Frame, LinkType, Profile, Result, Rule};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

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
/// Hop limit, node identifier, interfaces, transit delay and queue depth: what control from telemetry wants.
pub const HOP_TRACE: TraceType = TraceType::from_bits(0b1100_1010 << 16);

/// Traffic class of data: DSCP 26, ECT(0).
pub const DATA_CLASS: u8 = 26 << 2 | 0b10;
/// Traffic class of data that met congestion: DSCP 26, CE.
pub const CE_CLASS: u8 = 26 << 2 | 0b11;

/// What data packets carry.
const PAYLOAD: [u8; 64] = *b"fcn-tools sample payload, sixty-four octets of RDMA WRITE data..";

/// One packet of a capture.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Nanoseconds since the capture's first packet.
    pub at: u64,
    /// What to look at.
    pub comment: String,
    /// The octets captured.
    pub bytes: Vec<u8>,
    /// Octets on the wire.
    pub wire_len: usize,
    /// What they begin with.
    pub link: LinkType,
    /// The rules (warnings and errors) that the packet is meant to break.
    pub breaks: Vec<Rule>,
}

impl Packet {
    /// Whether all of it was captured.
    #[must_use]
    pub fn whole(&self) -> bool {
        self.bytes.len() == self.wire_len
    }
}

/// One sample capture.
#[derive(Clone, Debug)]
pub struct Capture {
    /// File name without its ending.
    pub name: &'static str,
    /// What it shows, in a line.
    pub about: &'static str,
    /// Its packets.
    pub packets: Vec<Packet>,
}

impl Capture {
    /// The capture's file name.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}.pcapng", self.name)
    }
}

/// When the captures were taken.
pub const EPOCH: Duration = Duration::from_secs(1_767_225_600);

/// A capture while it is being written down.
pub struct Scene {
    capture: Capture,
    now: u64,
}

impl Scene {
    pub const fn new(name: &'static str, about: &'static str) -> Self {
        Self {
            capture: Capture {
                name,
                about,
                packets: Vec::new(),
            },
            now: 0,
        }
    }

    /// A packet in an Ethernet frame between two of our own ports.
    pub fn say(&mut self, comment: &str, parts: &[Part<'_>]) -> Result<&mut Self> {
        self.framed(comment, &[&[ETHERNET], parts].concat())
    }

    /// A packet whose parts begin with its link layer.
    pub fn framed(&mut self, comment: &str, parts: &[Part<'_>]) -> Result<&mut Self> {
        let bytes = packet(parts, &Profile::DEFAULT)?;
        let wire_len = bytes.len();
        self.octets(comment, bytes, wire_len, LinkType::Ethernet);
        Ok(self)
    }

    /// A packet as octets.
    pub fn octets(
        &mut self,
        comment: &str,
        bytes: Vec<u8>,
        wire_len: usize,
        link: LinkType,
    ) -> &mut Self {
        let (at, comment, breaks) = (self.now, comment.to_owned(), Vec::new());
        self.capture.packets.push(Packet {
            at,
            comment,
            bytes,
            wire_len,
            link,
            breaks,
        });
        self.now += 2_000;
        self
    }

    /// Lets time pass, in nanoseconds.
    pub const fn wait(&mut self, nanoseconds: u64) {
        self.now += nanoseconds;
    }

    /// Says which rules the last packet breaks on purpose.
    pub fn breaks(&mut self, rules: &[Rule]) -> &mut Self {
        if let Some(last) = self.capture.packets.last_mut() {
            last.breaks = rules.to_vec();
        }
        self
    }

    /// Changes the last packet's octets; the ICRC is computed anew, so that it is not what is wrong.
    pub fn spoil(&mut self, change: impl FnOnce(&mut Vec<u8>)) -> &mut Self {
        if let Some(last) = self.capture.packets.last_mut() {
            change(&mut last.bytes);
            last.wire_len = last.bytes.len();
            refit(&mut last.bytes);
        }
        self
    }

    /// Keeps only the first `len` octets of the last packet, as a snap length does.
    pub fn cut(&mut self, len: usize) -> &mut Self {
        if let Some(last) = self.capture.packets.last_mut() {
            last.bytes.truncate(len);
        }
        self
    }

    pub fn done(self) -> Capture {
        self.capture
    }
}

/// Computes the ICRC of a RoCEv2 packet anew, where it can be found.
fn refit(bytes: &mut [u8]) {
    let profile = Profile::DEFAULT;
    let frame = Frame::parse(bytes, bytes.len(), LinkType::Ethernet, &profile);
    let Some(datagram) = frame.datagram().filter(|_| frame.is_roce()).copied() else {
        return;
    };
    let (start, udp, end) = (
        datagram.ip.start,
        datagram.start,
        datagram.payload_at() + datagram.payload_len,
    );
    if let Some(packet) = bytes.get_mut(start..end) {
        icrc::fill(packet, udp - start, Policy::default());
    }
}

/// From the sender's side of a link to the other.
pub const ETHERNET: Part<'static> = Part::Ethernet {
    source: [0x02, 0, 0, 0, 0, 0x01],
    destination: [0x02, 0, 0, 0, 0, 0x02],
};

/// An IPv6 header.
pub const fn v6(source: Ipv6Addr, destination: Ipv6Addr, traffic_class: u8) -> Part<'static> {
    Part::Ipv6 {
        source,
        destination,
        traffic_class,
        flow_label: 0,
        hop_limit: 64,
    }
}

/// An IPv4 header.
pub const fn v4(source: Ipv4Addr, destination: Ipv4Addr, tos: u8) -> Part<'static> {
    Part::Ipv4 {
        source,
        destination,
        tos,
        ttl: 64,
        id: 0,
        options: &[],
    }
}

/// UDP of a CNP.
pub const CNP_UDP: Part<'static> = Part::Udp {
    source: DEFAULT_UDP_SOURCE,
    destination: ROCEV2_PORT,
    checksum: UdpChecksum::Zero,
};
/// UDP of the flow's data.
pub const DATA_UDP: Part<'static> = Part::Udp {
    source: ENTROPY,
    destination: ROCEV2_PORT,
    checksum: UdpChecksum::Zero,
};
/// The right ICRC.
pub const ICRC: Part<'static> = Part::Icrc(Policy::Compute(icrc::Reading::Covered));
/// IPv6 of a plain CNP, from receiver to sender.
pub const CNP_V6: Part<'static> = v6(RECEIVER, SENDER, DEFAULT_TRAFFIC_CLASS);
/// IPv6 of a Fast CNP, from switch to sender.
pub const FAST_V6: Part<'static> = v6(SWITCH, SENDER, DEFAULT_TRAFFIC_CLASS);

/// The CNP about `qp`, from its UDP header on.
pub const fn cnp(qp: Qp) -> [Part<'static>; 3] {
    [CNP_UDP, Part::Cnp(CnpRepr::new(qp)), ICRC]
}

/// A data packet of the flow in the middle of a message, from its UDP header on.
pub const fn data(psn: u32) -> [Part<'static>; 4] {
    let bth = BthRepr::new(Opcode::RC_WRITE_MIDDLE, RECEIVER_QP, psn);
    [DATA_UDP, Part::Bth(bth), Part::Bytes(&PAYLOAD), ICRC]
}

/// The first packet of an RDMA WRITE message, its RETH and payload.
pub fn write_first() -> (BthRepr, Vec<u8>) {
    let reth = Reth {
        address: 0x7F00_0000_1000,
        rkey: 0x1234,
        length: 1 << 20,
    };
    (
        BthRepr::new(Opcode::RC_WRITE_FIRST, RECEIVER_QP, 0x100),
        [&reth.to_bytes()[..], &PAYLOAD].concat(),
    )
}

/// An acknowledgement of `psn` to the sender, and its AETH.
pub fn acknowledge(psn: u32) -> (BthRepr, [u8; 4]) {
    let aeth = Aeth {
        syndrome: 0x1F,
        msn: 1,
    };
    (
        BthRepr::new(Opcode::RC_ACKNOWLEDGE, SENDER_QP, psn),
        aeth.to_bytes(),
    )
}

/// A trace of `trace_type` with room for `free` octets more, filled by `nodes` (in the order passed).
pub fn trace(
    opt_type: OptType,
    trace_type: TraceType,
    free: usize,
    nodes: &[NodeValues<'_>],
) -> Result<Vec<u8>> {
    let mut list = vec![0; free];
    for node in nodes.iter().rev() {
        let mut data = vec![0; node.buffer_len(trace_type)];
        node.emit(trace_type, &mut data)?;
        list.extend(data);
    }
    let repr = TraceRepr {
        opt_type,
        namespace_id: 1,
        node_len: trace_type.node_len() as u8,
        flags: 0,
        remaining_len: (free / 4) as u8,
        trace_type,
        reserved: 0,
        list: &list,
    };
    let mut out = vec![0; repr.buffer_len()];
    repr.emit(&mut out)?;
    Ok(out)
}

/// The IOAM option around a trace.
pub const fn ioam(opt_type: OptType, trace: &[u8]) -> IoamOption<'_> {
    IoamOption {
        reserved: 0,
        opt_type,
        body: trace,
    }
}

/// What three switches on the path wrote: the last one is congested.
pub const PATH: [NodeValues<'static>; 3] = [
    hop(63, 0x00_0101, 1, 7, 820, 0),
    hop(62, 0x00_0201, 12, 3, 1_150, 4_096),
    hop(61, 0x00_0301, 5, 24, 48_300, 1_572_864),
];

const fn hop(
    hop_limit: u8,
    node_id: u64,
    ingress: u32,
    egress: u32,
    transit_delay: u32,
    queue_depth: u32,
) -> NodeValues<'static> {
    NodeValues {
        hop_limit,
        node_id,
        ingress,
        egress,
        seconds: 1_767_225_600,
        fraction: 0x1234_5678,
        transit_delay,
        namespace_data: 0x0A0B_0C0D,
        queue_depth,
        checksum_complement: 0xFFFF_0000,
        buffer_occupancy: 2_097_152,
        opaque: (0, &[]),
    }
}
