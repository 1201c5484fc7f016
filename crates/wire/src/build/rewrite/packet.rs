//! Locates the items that the rules change in a packet: in its headers, its options, our messages,
//! and packets quoted in it.
//!
//! `frame.rs` locates headers, `checksums.rs` maintains checksums; RDMA CM messages are in `cm.rs`,
//! ICMP and ARP in `icmp.rs`.

use super::checksums::{Icrc, PacketPatcher, Pseudo, Sum};
use super::walk::Walk;
use super::{PriorIcrc, Rules, cm, icmp, link};
use crate::bth::{BTH_LEN, Bth, Deth, ExtendedHeader, Opcode, Qp, field as bth_field};
use crate::claim::Claim;
use crate::fast_cnp::FastCnpRepr;
use crate::frame::{Datagram, End, Frame, Ip, LinkType, Span, Upper};
use crate::header::{gre, icmp as icmp_header, ipv4, ipv6, routing, tcp, udp};
use crate::icrc::{ICRC_LEN, Verdict};
use crate::ipv6_ext::{ExtHeader, Options, last_segment_at, next_header};
use crate::layer::Layer;
use crate::octets::{u8_at, u16_at, u32_at};
use crate::profile::{GENEVE_PORT, GTP_U_PORT, SFLOW_PORT, VXLAN_GPE_PORT, VXLAN_PORT};
use crate::proxy_address::ProxyAddress;
use crate::proxy_cn::{Family, ProxyCn};
use crate::wan_fcn::WanFcn;

/// Maximum depth of packets quoted within quoted packets.
const MAX_QUOTES: usize = 2;

/// Offset of a five-tuple's source port after its addresses.
const TUPLE_SOURCE_PORT: usize = 1;

/// UDP ports of protocols with addresses or packets that are not opened: routing (RIP, RIPng, LDP,
/// AODV, OLSR, HSRP, GLBP, LSP ping, LISP, Babel), IPsec, L2TP, Teredo, GUE, MPLS, Linux's VXLAN,
/// sFlow, and tunnels whose header was not recognised.
const UNPARSED_PORTS: [u16; 23] = [
    520,
    521,
    646,
    654,
    698,
    1985,
    2029,
    3222,
    3503,
    4341,
    4342,
    6696,
    500,
    4500,
    1701,
    3544,
    6080,
    6635,
    8472,
    SFLOW_PORT,
    VXLAN_GPE_PORT,
    GENEVE_PORT,
    GTP_U_PORT,
];

/// IPv6 options without addresses, besides padding, by IANA's registry: Tunnel Encapsulation Limit,
/// Router Alert, CALIPSO, Performance and Diagnostic Metrics, IOAM, AltMark, Minimum Path MTU,
/// IOAM, Jumbo Payload.
const NO_ADDRESS: [u8; 9] = [0x04, 0x05, 0x07, 0x0F, 0x11, 0x12, 0x30, 0x31, 0xC2];

/// Rewrites `frame` after its link header. Returns the previous state of the innermost packet's
/// ICRC, and whether there may be addresses that were not found.
pub(super) fn rewrite(
    rules: &Rules,
    frame: &Frame<'_>,
    link: LinkType,
    patcher: &mut PacketPatcher<'_>,
) -> (PriorIcrc, bool) {
    let mut walk = Walk {
        rules,
        patcher,
        link,
        base: 0,
        quotes: 0,
        may_contain_unmapped: false,
    };
    (walk.packet(frame), walk.may_contain_unmapped)
}

impl Walk<'_, '_> {
    fn packet(&mut self, frame: &Frame<'_>) -> PriorIcrc {
        self.may_contain_unmapped |= may_contain_unmapped_addresses(frame, self.link);
        let open = self.patcher.open_count();
        let unrepaired = self.open_checksums(frame);
        for span in frame.spans() {
            self.header(frame, span);
        }
        match frame.upper() {
            Upper::Udp(datagram) => self.datagram(frame, datagram),
            Upper::Other => {
                if let Some(at) = link::arp_at(frame, self.link) {
                    icmp::arp(self, at);
                } else if let Some((ip, protocol)) = whole_ip(frame)
                    && let Some((at, quoted)) = icmp::icmp(self, frame, ip, protocol)
                {
                    self.quoted(frame, at, quoted);
                }
            }
            _ => {}
        }
        self.patcher.close(open).unwrap_or(unrepaired)
    }

    /// Opens the checksums of all headers, outermost first. Returns the state of the ICRC if it
    /// cannot be opened.
    fn open_checksums(&mut self, frame: &Frame<'_>) -> PriorIcrc {
        let bytes = frame.bytes();
        let mut pseudo = None;
        let mut transport = 0;
        let clear = !matches!(frame.end(), End::Malformed(e) if e.layer != Layer::Ipv6Option);
        for span in frame.spans() {
            let start = span.start;
            match span.layer {
                Layer::Ipv4 => {
                    let at = start + ipv4::CHECKSUM;
                    self.open(at, start..span.header_end, None, true);
                    pseudo = Some((start + ipv4::SOURCE, start + ipv4::DESTINATION, 4));
                }
                Layer::Ipv6 => {
                    pseudo = Some((start + ipv6::SOURCE, start + ipv6::DESTINATION, 16));
                }
                Layer::Routing => {
                    let header = ExtHeader {
                        layer: span.layer,
                        start,
                        len: span.header_end - start,
                        next: 0,
                    };
                    if let (Some(p), Some(at)) = (&mut pseudo, last_segment_at(bytes, &header)) {
                        p.1 = at;
                    }
                }
                Layer::Udp | Layer::Tcp => {
                    transport = start;
                    let (protocol, at) = if span.layer == Layer::Udp {
                        (next_header::UDP, start + udp::CHECKSUM)
                    } else {
                        (next_header::TCP, start + tcp::CHECKSUM)
                    };
                    let whole = clear && span.end <= bytes.len();
                    self.open_transport(bytes, protocol, at, start..span.end, (pseudo, whole));
                }
                // RFC 2784: no pseudo-header.
                Layer::Gre if u16_at(bytes, start) & gre::CHECKSUM_PRESENT != 0 => {
                    let whole = clear && span.end <= bytes.len();
                    self.open(start + gre::CHECKSUM, start..span.end, None, whole);
                }
                _ => {}
            }
        }
        let Some(ip) = frame.ip().filter(|ip| ip.payload > transport) else {
            return self.open_icrc(frame, clear);
        };
        // Protocols for which the walk over the frame has no layer, and first fragments.
        let (fragment, first) = match frame.walk_end() {
            End::Fragment { offset, .. } => (true, offset == 0),
            _ => (false, true),
        };
        let field = match ip.protocol {
            next_header::UDP if fragment => udp::CHECKSUM,
            next_header::TCP if fragment => tcp::CHECKSUM,
            next_header::ICMPV4 | next_header::ICMPV6 => icmp_header::CHECKSUM,
            next_header::OSPF if ip.source.is_ipv6() => 12,
            _ => return PriorIcrc::Absent,
        };
        // RFC 792: no pseudo-header.
        let pseudo = pseudo.filter(|_| ip.protocol != next_header::ICMPV4);
        if first && ip.payload + field + 2 <= bytes.len().min(ip.end) {
            let whole = clear && !fragment && ip.end <= bytes.len();
            let body = ip.payload..ip.end;
            let at = ip.payload + field;
            self.open_transport(bytes, ip.protocol, at, body, (pseudo, whole));
        }
        PriorIcrc::Absent
    }

    fn open_transport(
        &mut self,
        bytes: &[u8],
        protocol: u8,
        at: usize,
        body: core::ops::Range<usize>,
        (pseudo, whole): (Option<(usize, usize, usize)>, bool),
    ) {
        // RFC 768, RFC 6935: the sender computed none.
        if protocol == next_header::UDP && u16_at(bytes, at) == 0 {
            return;
        }
        let base = self.base;
        let pseudo = pseudo.map(|(source, destination, len)| Pseudo {
            source: base + source,
            destination: base + destination,
            len,
            protocol,
        });
        self.open(at, body, pseudo, whole);
    }

    fn open(
        &mut self,
        at: usize,
        body: core::ops::Range<usize>,
        pseudo: Option<Pseudo>,
        whole: bool,
    ) {
        let base = self.base;
        self.patcher.open_sum(Sum {
            at: base + at,
            body: base + body.start..base + body.end,
            pseudo,
            whole,
        });
    }

    fn open_icrc(&mut self, frame: &Frame<'_>, clear: bool) -> PriorIcrc {
        let Some(datagram) = frame.datagram().filter(|_| frame.is_roce()) else {
            return PriorIcrc::Absent;
        };
        if !clear || !datagram.is_whole() || datagram.payload_len < BTH_LEN + ICRC_LEN {
            return PriorIcrc::Unrepaired;
        }
        let verifies = self.rules.base().verify && self.quotes == 0;
        let verdict = verifies.then(|| frame.verify_icrc());
        if verdict == Some(Verdict::Unchecked) {
            return PriorIcrc::Unrepaired;
        }
        self.patcher.open_icrc(Icrc {
            ip: self.base + datagram.ip.start,
            udp: self.base + datagram.start,
            at: self.base + datagram.payload_at() + datagram.payload_len - ICRC_LEN,
            verdict,
            default: frame.profile().icrc_reading,
        });
        PriorIcrc::Absent
    }

    fn header(&mut self, frame: &Frame<'_>, span: &Span) {
        let (bytes, start) = (frame.bytes(), span.start);
        match span.layer {
            Layer::Ipv4 => {
                self.ipv4(start + ipv4::SOURCE);
                self.ipv4(start + ipv4::DESTINATION);
                let mut options = bytes.get(start + ipv4::LEN..span.header_end);
                // End of the list, no operation, router alert (RFC 2113).
                while let Some([0 | 1, rest @ ..] | [148, 4, _, _, rest @ ..]) = options {
                    options = Some(rest);
                }
                self.may_contain_unmapped |= options.is_some_and(|options| !options.is_empty());
            }
            Layer::Ipv6 => {
                let word = u32_at(bytes, start);
                let label = self.rules.flow_label(word & 0x000F_FFFF);
                self.write(start, (word & 0xFFF0_0000 | label).to_be_bytes());
                self.ipv6(start + ipv6::SOURCE);
                self.ipv6(start + ipv6::DESTINATION);
            }
            Layer::Routing => {
                let room = (span.header_end - start).saturating_sub(routing::SEGMENTS) / 16;
                let count = match u8_at(bytes, start + routing::TYPE) {
                    // RFC 2460 and RFC 6275: only addresses.
                    0 | 2 => room,
                    // RFC 8754: Last Entry counts from 0; options follow the segments.
                    routing::SEGMENT_ROUTING => {
                        let last = u8_at(bytes, start + routing::LAST_ENTRY);
                        room.min(usize::from(last) + 1)
                    }
                    _ => 0,
                };
                for segment in 0..count {
                    self.ipv6(start + routing::SEGMENTS + 16 * segment);
                }
                self.may_contain_unmapped |=
                    start + routing::SEGMENTS + 16 * count < span.header_end;
            }
            Layer::HopByHop | Layer::DestinationOptions => self.options(frame, span),
            Layer::Udp => {
                let destination = u16_at(bytes, start + udp::DESTINATION);
                // A quote may be too short to show what the packet was.
                let is_quoted = self.quotes > 0 && destination == frame.profile().rocev2_port;
                // Only a tunnel has a layer after it.
                let is_tunnel = (frame.spans().last()).is_some_and(|last| last.start > start);
                if destination == VXLAN_PORT || is_tunnel || frame.is_roce() || is_quoted {
                    self.udp_source(start);
                }
            }
            _ => {}
        }
    }

    fn options(&mut self, frame: &Frame<'_>, span: &Span) {
        let (start, end) = (span.start, span.header_end);
        let header = frame.bytes().get(start..end).unwrap_or_default();
        for option in Options::new(span.layer, header) {
            let Ok(option) = option else {
                self.may_contain_unmapped = true;
                return;
            };
            let at = start + option.offset + 2;
            let (kind, data, profile) = (option.kind, option.data, frame.profile());
            if option.is_padding() {
                continue;
            }
            if let Some(Ok(fast)) = FastCnpRepr::parse(kind, data, profile) {
                self.ipv6(at + fast.address_at(data.len()));
            } else if let Some(Ok(_)) = ProxyAddress::parse(kind, data, profile) {
                self.ipv6(at);
            } else {
                self.may_contain_unmapped |=
                    kind != profile.ioam_option && !NO_ADDRESS.contains(&kind);
            }
        }
    }

    fn datagram(&mut self, frame: &Frame<'_>, datagram: &Datagram<'_>) {
        let (profile, port) = (frame.profile(), datagram.destination_port);
        let (at, payload) = (datagram.payload_at(), datagram.payload);
        if frame.is_roce() {
            self.roce(at, payload, datagram.payload_len);
            return;
        }
        let claim = datagram.claim(profile);
        if claim != Claim::Ours {
            self.may_contain_unmapped |= claim == Claim::Broken && port == profile.proxy_cn_port;
            return;
        }
        if port == profile.proxy_cn_port {
            let outer = Family::from_address(datagram.ip.source);
            if let Ok(message) = ProxyCn::new_checked(payload, outer) {
                self.proxy_cn(frame, at, &message);
            }
        } else if let Ok(message) = WanFcn::new_checked(payload) {
            let label = self.rules.flow_label(message.flow_label());
            let word = u32_at(payload, 0) & 0x0FFF | label << 12;
            self.write(at, word.to_be_bytes());
        }
    }

    /// Rewrites a RoCEv2 packet of `len` octets, of which `payload` was captured, from its BTH at
    /// `at` on.
    fn roce(&mut self, at: usize, payload: &[u8], len: usize) {
        // The last four octets are the ICRC, whatever headers an opcode may claim.
        let payload = payload
            .get(..len.saturating_sub(ICRC_LEN))
            .unwrap_or(payload);
        let Ok(bth) = Bth::new_checked(payload) else {
            return;
        };
        self.qp(at + bth_field::DEST_QP);
        let opcode = bth.opcode();
        if opcode != Opcode::CNP {
            self.psn(at + bth_field::PSN);
        }
        if opcode.extended_headers().and_then(<[_]>::first) != Some(&ExtendedHeader::Deth) {
            return;
        }
        let behind = BTH_LEN + Deth::LEN;
        let Some(data) = payload.get(behind..) else {
            return;
        };
        self.qp(at + BTH_LEN + Deth::SOURCE_QP);
        if opcode == Opcode::UD_SEND_ONLY && bth.dest_qp() == Qp::GSI {
            cm::rewrite(self, at + behind, data);
        }
    }

    fn proxy_cn(&mut self, frame: &Frame<'_>, at: usize, message: &ProxyCn<'_>) {
        let family = message.family();
        let len = family.address_len();
        for address in [at, at + len] {
            match family {
                Family::V4 => self.ipv4(address),
                Family::V6 => self.ipv6(address),
            }
        }
        let tuple = message.five_tuple();
        let roce = frame.profile().rocev2_port;
        if tuple.protocol == next_header::UDP && tuple.destination_port == roce {
            self.udp_source(at + 2 * len + TUPLE_SOURCE_PORT);
        }
        self.quoted(frame, at + message.invoking_at(), message.invoking_packet());
    }

    /// Rewrites a packet quoted at `at`, from its IP header on, as far as quoted.
    fn quoted(&mut self, frame: &Frame<'_>, at: usize, packet: &[u8]) {
        if self.quotes == MAX_QUOTES || packet.is_empty() {
            self.may_contain_unmapped |= !packet.is_empty();
            return;
        }
        let wire_len = match u8_at(packet, 0) >> 4 {
            4 => usize::from(u16_at(packet, ipv4::LENGTH)),
            _ => ipv6::LEN + usize::from(u16_at(packet, ipv6::LENGTH)),
        };
        let quoted = Frame::parse(packet, wire_len, LinkType::RawIp, frame.profile());
        let mut walk = Walk {
            rules: self.rules,
            patcher: &mut *self.patcher,
            link: LinkType::RawIp,
            base: self.base + at,
            quotes: self.quotes + 1,
            may_contain_unmapped: false,
        };
        walk.packet(&quoted);
        self.may_contain_unmapped |= walk.may_contain_unmapped;
    }
}

/// Returns true if `frame` may contain addresses that [`rewrite`] does not reach, judging by the
/// innermost packet's content.
fn may_contain_unmapped_addresses(frame: &Frame<'_>, link: LinkType) -> bool {
    let last = frame.spans().last();
    match (frame.upper(), frame.ip()) {
        (Upper::MacControl(..), _) => false,
        // It quotes the beginning of a frame.
        (Upper::Cnm(..), _) => true,
        _ if matches!(frame.walk_end(), End::Fragment { .. }) => false,
        (Upper::Udp(datagram), _) => {
            let ports = [datagram.source_port, datagram.destination_port];
            !frame.is_roce() && ports.iter().any(|port| UNPARSED_PORTS.contains(port))
        }
        (Upper::Other, Some(_)) if last.is_some_and(|last| last.layer == Layer::Tcp) => false,
        (Upper::Other, Some(ip)) if last.is_some_and(|last| last.header_end <= ip.payload) => {
            !matches!(
                ip.protocol,
                // TCP: a quote may contain less than its header.
                next_header::ICMPV4 | next_header::ICMPV6 | next_header::NONE | next_header::TCP
            )
        }
        (Upper::Other, _) => link::arp_at(frame, link).is_none(),
        // GIDs of RoCE v1 are not mapped.
        (Upper::InfiniBand(_), _) => frame.is_roce_v1(),
        (Upper::Bgp(..) | Upper::Ospf(..) | Upper::IsIs(..), _) => true,
    }
}

/// Returns the innermost IP packet and its protocol, unless it is a fragment.
fn whole_ip<'f>(frame: &'f Frame<'_>) -> Option<(&'f Ip, u8)> {
    let ip = frame.ip()?;
    let is_fragment = matches!(frame.walk_end(), End::Fragment { .. });
    (!is_fragment).then_some((ip, ip.protocol))
}
