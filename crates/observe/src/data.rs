//! Properties of a RoCEv2 data packet that the roles use, read from a frame or supplied by a
//! simulator.

use core::hash::{Hash, Hasher};
use fcn_wire::bth::{Bth, Transport};
use fcn_wire::frame::Upper;
use fcn_wire::ioam::OptType;
use fcn_wire::{Frame, Layer, Opcode, Qp, identified};
use std::net::{IpAddr, Ipv6Addr};

identified! {
    /// The ECN field of an IP header (RFC 3168 section 5).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
    Ecn {
        /// 00: the transport does not do ECN.
        #[default]
        NotCapable = "not_ect",
        /// 01: ECN-capable transport (1).
        Ect1 = "ect_1",
        /// 10: ECN-capable transport (0).
        Ect0 = "ect_0",
        /// 11: congestion experienced.
        Ce = "ce",
    }
}

impl Ecn {
    /// Returns the field in the two low bits of a TOS or traffic class octet; the others are
    /// ignored.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotCapable,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Returns the two bits.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self as u8
    }

    /// Returns true for 01 or 10: may be marked CE.
    #[must_use]
    pub const fn is_ect(self) -> bool {
        matches!(self, Self::Ect0 | Self::Ect1)
    }
}

/// Properties of the tunnel around a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Outer {
    /// Address of the ingress PE: source of the outer IPv6 header. `None` with SR-MPLS, as no
    /// header names it.
    pub ingress: Option<Ipv6Addr>,
    /// Flow label of the outer IPv6 header, 20 bits; with SR-MPLS the entropy label (RFC 6790)
    /// \[choice\].
    pub flow_label: u32,
}

/// Key that identifies a flow to every role: the data packet's addresses and its DestQP, the QP at
/// the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowKey {
    /// The data sender.
    pub sender: IpAddr,
    /// The data receiver.
    pub receiver: IpAddr,
    /// The QP at the receiver.
    pub receiver_qp: Qp,
}

/// Hashes five words, as tables look up a flow for every packet.
impl Hash for FlowKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        for address in [&self.sender, &self.receiver] {
            let [first, second] = words(address);
            state.write_u64(first);
            state.write_u64(second);
        }
        state.write_u64(self.receiver_qp.get().into());
    }
}

/// Returns an address as two words. Those of an IPv4 address may equal those of an IPv6 address.
#[inline]
pub fn words(address: &IpAddr) -> [u64; 2] {
    match address {
        IpAddr::V4(v4) => [0, u64::from(v4.to_bits())],
        IpAddr::V6(v6) => {
            let bits = v6.to_bits();
            [(bits >> 64) as u64, bits as u64]
        }
    }
}

/// A RoCEv2 data packet.
#[derive(Clone, Copy, Debug)]
pub struct DataPacket<'a> {
    /// Source address: the sender. Of the innermost header if there is a tunnel.
    pub source: IpAddr,
    /// Destination address: the receiver. Of the innermost header if there is a tunnel.
    pub destination: IpAddr,
    /// UDP source port; 0 on native InfiniBand.
    pub source_port: u16,
    /// UDP destination port; 0 on native InfiniBand.
    pub destination_port: u16,
    /// DestQP: the QP at the receiver.
    pub dest_qp: Qp,
    /// ECN field of the outermost IP header, or CE if another one is marked; on native InfiniBand,
    /// whose switches set FECN, the equivalent of that.
    pub ecn: Ecn,
    /// The tunnel around it, if the tunnel identifies the flow that it carries.
    pub outer: Option<Outer>,
    /// IOAM option type and trace option data in the packet's Hop-by-Hop Options.
    pub trace: Option<(OptType, &'a [u8])>,
    /// The proxy node's address in the packet's Destination Options.
    pub proxy_option: Option<Ipv6Addr>,
}

impl<'a> DataPacket<'a> {
    /// Returns the data packet in `frame`, innermost if there are tunnels.
    ///
    /// `None` for anything else: neither RoCEv2 nor native InfiniBand, CNPs and Fast CNPs,
    /// acknowledgements (positive and negative), trimmed packets, packets to the management QPs 0 and 1, fragments.
    /// Read requests and atomic operations count as data: they belong to the flow and meet the same
    /// queue \[choice\].
    #[must_use]
    pub fn from_frame(frame: &Frame<'a>) -> Option<Self> {
        let bth = frame.bth()?;
        if !is_data(bth.opcode()) || bth.dest_qp() <= Qp::GSI || frame.trimming().is_some() {
            return None;
        }
        let (ip, source_port, destination_port, ecn) = match frame.upper() {
            Upper::Udp(datagram) => (
                &datagram.ip,
                datagram.source_port,
                datagram.destination_port,
                outermost_ecn(frame)?,
            ),
            Upper::InfiniBand(packet) => {
                let ecn = if bth.fecn() { Ecn::Ce } else { Ecn::Ect0 };
                (&packet.ip, 0, 0, ecn)
            }
            _ => return None,
        };
        Some(Self {
            source: ip.source,
            destination: ip.destination,
            source_port,
            destination_port,
            dest_qp: bth.dest_qp(),
            ecn,
            outer: outer(frame, ip.start),
            trace: frame
                .ioam_trace()
                .map(|(_, trace)| (trace.opt_type(), trace.bytes())),
            proxy_option: frame.proxy_address(),
        })
    }

    /// Returns the fields by which the network may choose the packet's path: the UDP source port,
    /// and the flow label of its innermost IP header.
    #[must_use]
    pub const fn entropy(&self, flow_label: u32) -> u32 {
        (self.source_port as u32).rotate_right(12) ^ flow_label
    }

    /// Returns the flow that the packet belongs to.
    #[must_use]
    pub const fn flow(&self) -> FlowKey {
        FlowKey {
            sender: self.source,
            receiver: self.destination,
            receiver_qp: self.dest_qp,
        }
    }
}

/// Returns true if packets with that opcode carry or request data: no CNPs, acknowledgements, or
/// opcodes of unknown services.
fn is_data(opcode: Opcode) -> bool {
    let known_service = !matches!(opcode.transport(), Transport::Cnp | Transport::Other(_));
    known_service && !acknowledges(opcode)
}

/// Returns true if packets with that opcode acknowledge, positively or negatively.
#[must_use]
pub fn acknowledges(opcode: Opcode) -> bool {
    let known_service = !matches!(opcode.transport(), Transport::Cnp | Transport::Other(_));
    let acks = [Opcode::RC_ACKNOWLEDGE, Opcode::RC_ATOMIC_ACKNOWLEDGE];
    known_service && acks.iter().any(|ack| ack.0 & 0x1F == opcode.0 & 0x1F)
}

/// Returns true if packets with that opcode respond to an RDMA READ. Their PSNs are the
/// requester's, unrelated to those of other packets from their sender.
#[must_use]
pub fn answers_read(opcode: Opcode) -> bool {
    let known_service = !matches!(opcode.transport(), Transport::Cnp | Transport::Other(_));
    let answers = Opcode::RC_READ_RESPONSE_FIRST.0..=Opcode::RC_READ_RESPONSE_ONLY.0;
    known_service && answers.contains(&(opcode.0 & 0x1F))
}

/// Returns true if a packet with that opcode is an RDMA READ request.
const fn requests_read(opcode: Opcode) -> bool {
    opcode.0 & 0x1F == Opcode::RC_READ_REQUEST.0
}

/// Returns true if a packet with that opcode is the last one of its message: any but a first or
/// middle one.
#[must_use]
pub fn ends_message(opcode: Opcode) -> bool {
    let parts = [
        Opcode::RC_SEND_FIRST,
        Opcode::RC_SEND_MIDDLE,
        Opcode::RC_WRITE_FIRST,
        Opcode::RC_WRITE_MIDDLE,
        Opcode::RC_READ_RESPONSE_FIRST,
        Opcode::RC_READ_RESPONSE_MIDDLE,
    ];
    !parts.iter().any(|part| part.0 == opcode.0 & 0x1F)
}

/// Sequence that the PSN of a data packet belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sequence {
    /// The sequence of the flow's connection.
    Connection(u32),
    /// The sequence of the flow's connection, for an RDMA READ request: the response packets use
    /// the PSNs that follow.
    Request(u32),
    /// The requester's sequence: the packet responds to an RDMA READ.
    Answer(u32),
    /// The sequence of one of the QPs that send datagrams to the same QP.
    Datagram,
}

impl Sequence {
    /// Returns the sequence of a data packet.
    #[must_use]
    pub fn of(bth: &Bth<'_>) -> Self {
        match bth.opcode() {
            opcode if answers_read(opcode) => Self::Answer(bth.psn()),
            opcode => match opcode.transport() {
                Transport::Rc | Transport::Xrc if requests_read(opcode) => Self::Request(bth.psn()),
                Transport::Rc | Transport::Uc | Transport::Xrc => Self::Connection(bth.psn()),
                _ => Self::Datagram,
            },
        }
    }

    /// Returns the UDP source port of a connection's packet; 0 for a datagram, whose port does not
    /// identify two QPs.
    #[must_use]
    pub const fn port(self, source_port: u16) -> u16 {
        match self {
            Self::Datagram => 0,
            Self::Connection(_) | Self::Request(_) | Self::Answer(_) => source_port,
        }
    }

    /// Returns the PSN, if it belongs to the flow's connection.
    #[must_use]
    pub const fn of_connection(self) -> Option<u32> {
        match self {
            Self::Connection(psn) | Self::Request(psn) => Some(psn),
            _ => None,
        }
    }
}

/// Returns true if packets with that opcode begin the response to an RDMA READ: their PSN is that
/// of the request.
#[must_use]
pub fn begins_answer(opcode: Opcode) -> bool {
    let start = [
        Opcode::RC_READ_RESPONSE_FIRST,
        Opcode::RC_READ_RESPONSE_ONLY,
    ];
    answers_read(opcode) && start.iter().any(|begins| begins.0 == opcode.0 & 0x1F)
}

fn outermost_ecn(frame: &Frame<'_>) -> Option<Ecn> {
    let headers = frame.inner_spans().iter();
    let headers = headers.filter(|span| matches!(span.layer, Layer::Ipv4 | Layer::Ipv6));
    let mut each = headers.map_while(|ip| {
        let header = frame.bytes().get(ip.start..ip.header_end)?;
        let class = match ip.layer {
            Layer::Ipv4 => *header.get(1)?,
            _ => header.get(1)? >> 4,
        };
        Some(Ecn::from_bits(class))
    });
    let outermost = each.next()?;
    // A mark on any of the tunnels is copied inwards at its end (RFC 6040 section 4.2).
    Some(each.find(|ecn| *ecn == Ecn::Ce).unwrap_or(outermost))
}

/// Entropy label indicator (RFC 6790 section 3).
const ENTROPY_LABEL_INDICATOR: u32 = 7;

/// Returns the tunnel around the IP packet that begins at `inner`: the outermost one with a label
/// for the flow.
fn outer(frame: &Frame<'_>, inner: usize) -> Option<Outer> {
    let bytes = frame.bytes();
    let word = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
    let mut indicated = false;
    let around = frame.inner_spans().iter();
    for span in around.take_while(|span| span.start < inner) {
        match span.layer {
            Layer::Mpls => {
                let label = word(span.start)? >> 12;
                if indicated {
                    return Some(Outer {
                        ingress: None,
                        flow_label: label,
                    });
                }
                indicated = label == ENTROPY_LABEL_INDICATOR;
            }
            Layer::Ipv6 => {
                let source = bytes.get(span.start + 8..)?.first_chunk::<16>()?;
                return Some(Outer {
                    ingress: Some(Ipv6Addr::from(*source)),
                    flow_label: word(span.start)? & 0x000F_FFFF,
                });
            }
            _ => indicated = false,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{
        ICRC, RECEIVER, RECEIVER4, SENDER, SENDER4, SWITCH, Setup, build, data, ip, mutated, udp,
        with_frame,
    };
    use fcn_wire::bth::BthRepr;
    use fcn_wire::compose::{OptionPart, Part};
    use fcn_wire::erspan::Erspan;
    use fcn_wire::ioam::IoamOption;
    use fcn_wire::proxy_address::ProxyAddress;
    use fcn_wire::{LinkType, Profile};
    use proptest::prelude::*;

    const QP: Qp = Qp::truncate(0x222);
    const PE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xee, 0, 0, 0, 0, 1);
    const ETHERNET: Part<'_> = Part::Ethernet {
        source: [2, 0, 0, 0, 0, 1],
        destination: [2, 0, 0, 0, 0, 2],
    };

    fn read<T>(bytes: &[u8], act: impl FnOnce(Option<DataPacket<'_>>) -> T) -> T {
        with_frame(bytes, |frame| act(DataPacket::from_frame(frame)))
    }

    fn is_read(opcode: Opcode, qp: Qp) -> bool {
        read(
            &data(SENDER.into(), RECEIVER.into(), opcode, qp),
            |packet| packet.is_some(),
        )
    }

    #[test]
    fn ecn_bits_round_trip() {
        for bits in 0..=255 {
            assert_eq!(Ecn::from_bits(bits).bits(), bits & 3);
        }
        let ect = [0, 1, 2, 3].map(|bits| Ecn::from_bits(bits).is_ect());
        assert_eq!(ect, [false, true, true, false]);
    }

    #[test]
    fn notifications_acknowledgements_and_management_are_no_data() {
        use Opcode as O;
        for opcode in [
            O::RC_SEND_ONLY,
            O::UC_WRITE_MIDDLE,
            O::RC_READ_REQUEST,
            O::RC_READ_RESPONSE_LAST,
            O::RC_FETCH_ADD,
            O::UD_SEND_ONLY,
        ] {
            assert!(is_read(opcode, QP), "{opcode}");
        }
        // Acknowledgements of XRC, and opcodes of an unassigned service, are not data.
        for opcode in [
            O::RC_ACKNOWLEDGE,
            O::RC_ATOMIC_ACKNOWLEDGE,
            O::CNP,
            Opcode(0xB1),
            Opcode(0xC0),
        ] {
            assert!(!is_read(opcode, QP), "{opcode}");
        }
        for qp in [0, 1] {
            assert!(!is_read(O::RC_SEND_ONLY, Qp::truncate(qp)));
        }
        for message in Setup::v6().messages() {
            assert!(read(&message, |packet| packet.is_none()), "RDMA CM");
        }
        let elsewhere = build(&[
            ip(SENDER.into(), RECEIVER.into()),
            udp(4790),
            Part::Bytes(&[4; 64]),
        ]);
        assert!(read(&elsewhere, |packet| packet.is_none()));
    }

    #[test]
    fn a_plain_packet_is_read() {
        for (source, destination) in [
            (SENDER.into(), RECEIVER.into()),
            (IpAddr::V4(SENDER4), IpAddr::V4(RECEIVER4)),
        ] {
            let bytes = data(source, destination, Opcode::RC_SEND_ONLY, QP);
            read(&bytes, |packet| {
                let packet = packet.unwrap();
                let flow = FlowKey {
                    sender: source,
                    receiver: destination,
                    receiver_qp: QP,
                };
                assert_eq!(packet.flow(), flow);
                assert_eq!((packet.source_port, packet.destination_port), (49152, 4791));
                assert_eq!(
                    (packet.ecn, packet.outer, packet.trace, packet.proxy_option),
                    (Ecn::Ect0, None, None, None)
                );
            });
        }
    }

    #[test]
    fn options_of_the_packet_are_read() {
        let trace = [0, 1, 0x08, 0, 0x80, 0, 0, 0, 64, 0, 0, 1];
        let ioam = IoamOption {
            reserved: 0,
            opt_type: OptType::Preallocated,
            body: &trace,
        };
        let bytes = build(&[
            ip(SENDER.into(), RECEIVER.into()),
            Part::HopByHop(&[OptionPart::Ioam(ioam)]),
            Part::DestinationOptions(&[OptionPart::ProxyAddress(ProxyAddress(PE))]),
            udp(4791),
            Part::Bth(BthRepr::new(Opcode::RC_SEND_ONLY, QP, 1)),
            Part::Bytes(&[0; 8]),
            ICRC,
        ]);
        with_frame(&bytes, |frame| {
            let packet = DataPacket::from_frame(frame).unwrap();
            assert_eq!(packet.trace, Some((OptType::Preallocated, &trace[..])));
            assert_eq!(packet.proxy_option, Some(PE));
        });
    }

    #[test]
    fn the_outermost_ecn_and_the_label_of_a_tunnel_are_read() {
        let outer = |traffic_class| Part::Ipv6 {
            source: PE,
            destination: SWITCH,
            traffic_class,
            flow_label: 0xABCDE,
            hop_limit: 64,
        };
        let vxlan = [udp(4789), Part::Vxlan { vni: 1 }, ETHERNET];
        let segments = [SWITCH, PE];
        let routing = Part::SegmentRouting {
            left: 1,
            segments: &segments,
        };
        let mpls = |label| Part::Mpls {
            label,
            traffic_class: 0,
            ttl: 9,
        };
        let outer4 = ip(SENDER4.into(), RECEIVER4.into());
        let by_pe = Some(Outer {
            ingress: Some(PE),
            flow_label: 0xABCDE,
        });
        let by_label = Some(Outer {
            ingress: None,
            flow_label: 0x12345,
        });
        // The indicator applies to its own label stack, not to another behind a pseudowire.
        let control_word = Part::Bytes(&[0; 4]);
        // The headers that carry a mirror's copy are no tunnel of the packet.
        let gre = Part::Gre {
            checksum: false,
            key: None,
            sequence: None,
        };
        let mirror = [outer(3), gre, Part::Erspan(Erspan::I), ETHERNET];
        let cases: [(Vec<Part<'_>>, Ecn, Option<Outer>); 12] = [
            (mirror.to_vec(), Ecn::Ect0, None),
            ([&mirror[..], &[outer(1)]].concat(), Ecn::Ect1, by_pe),
            (vec![], Ecn::Ect0, None),
            (vec![outer(3)], Ecn::Ce, by_pe),
            (vec![outer(0), outer(3)], Ecn::Ce, by_pe),
            (vec![outer(0), routing], Ecn::NotCapable, by_pe),
            ([&[outer(1)], &vxlan[..]].concat(), Ecn::Ect1, by_pe),
            ([&[outer4], &vxlan[..]].concat(), Ecn::Ect0, None),
            (vec![mpls(100), mpls(7), mpls(0x12345)], Ecn::Ect0, by_label),
            (vec![mpls(7), mpls(0x12345), outer(1)], Ecn::Ect1, by_label),
            (vec![mpls(100), mpls(0x12345)], Ecn::Ect0, None),
            (
                vec![mpls(7), control_word, ETHERNET, mpls(0x12345)],
                Ecn::Ect0,
                None,
            ),
        ];
        for (i, (tunnel, ecn, outer)) in cases.into_iter().enumerate() {
            let inner = [
                ip(SENDER.into(), RECEIVER.into()),
                udp(4791),
                Part::Bth(BthRepr::new(Opcode::RC_SEND_ONLY, QP, 1)),
                Part::Bytes(&[0; 8]),
                ICRC,
            ];
            let parts: Vec<_> = [ETHERNET].into_iter().chain(tunnel).chain(inner).collect();
            let bytes = build(&parts);
            let frame = Frame::parse(&bytes, bytes.len(), LinkType::Ethernet, &Profile::DEFAULT);
            let packet = DataPacket::from_frame(&frame).unwrap();
            assert_eq!((packet.ecn, packet.outer), (ecn, outer), "case {i}");
            assert_eq!(
                (packet.source, packet.destination),
                (SENDER.into(), RECEIVER.into())
            );
        }
    }

    fn samples() -> Vec<Vec<u8>> {
        let packet = |source, destination| data(source, destination, Opcode::RC_SEND_ONLY, QP);
        vec![
            packet(SENDER.into(), RECEIVER.into()),
            packet(SENDER4.into(), RECEIVER4.into()),
        ]
    }

    proptest! {
        #[test]
        fn hostile_frames_are_survived(bytes in mutated(samples()), raw in proptest::collection::vec(any::<u8>(), 0..200)) {
            for bytes in [&bytes, &raw] {
                for link in [LinkType::RawIp, LinkType::Ethernet] {
                    let frame = Frame::parse(bytes, bytes.len(), link, &Profile::DEFAULT);
                    let _ = DataPacket::from_frame(&frame);
                }
            }
        }
    }
}
