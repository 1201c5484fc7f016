//! Builds whole packets from parts, outermost first; lengths, next headers, checksums and the ICRC
//! are filled in.
//!
//! All headers that this crate writes are written here or by their message's module. Fields that
//! change from packet to packet are patched in place afterwards (`template.rs`).
//! [`write`](fn@write) fills a buffer and does not allocate.

use crate::bth::{Aeth, BTH_LEN, BthRepr, Deth, Reth};
use crate::checksum;
use crate::cnp::{CNP_BODY_LEN, CnpRepr};
use crate::error::{Error, Result};
use crate::erspan::Erspan;
use crate::fast_cnp::FastCnpRepr;
use crate::header::{
    ethernet, fragment, geneve, gre, gtp_u, icmp, ipv4, ipv6, routing, tcp, udp, vxlan_gpe,
};
use crate::icrc::{self, ICRC_LEN, Policy};
use crate::ioam::IoamOption;
use crate::ipv6_ext::{ExtHeaders, OptionsWriter, last_segment_at, next_header};
use crate::layer::Layer;
use crate::octets::{put, put_u24};
use crate::pfc::{ETHERTYPE_MAC_CONTROL, PfcRepr};
use crate::profile::Profile;
use crate::proxy_address::ProxyAddress;
use crate::proxy_cn::ProxyCnRepr;
use crate::wan_fcn::{WAN_FCN_LEN, WanFcnRepr};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Minimum number of octets after the Ethernet header, without FCS.
const MIN_PAYLOAD_LEN: usize = 46;
/// IPv4 flags: don't fragment.
const DONT_FRAGMENT: [u8; 2] = [0x40, 0];
/// Default TTL and hop limit.
pub const DEFAULT_HOP_LIMIT: u8 = 64;

/// An option to write into an options header.
#[derive(Clone, Copy, Debug)]
pub enum OptionPart<'a> {
    /// A Fast CNP option.
    FastCnp(FastCnpRepr<'a>),
    /// Proxy node's address.
    ProxyAddress(ProxyAddress),
    /// IOAM option, aligned at 4n (RFC 9486 section 3).
    Ioam(IoamOption<'a>),
    /// Any option: option type, alignment (multiple, rest), data of at most 255 octets.
    Raw(u8, (usize, usize), &'a [u8]),
}

/// Treatment of the UDP checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdpChecksum {
    /// No checksum: as in RoCEv2 and tunnels.
    Zero,
    /// Compute the checksum.
    Compute,
}

/// One part of a packet. Reserved and rarely used fields are 0.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// Ethernet II header; an IEEE 802.3 length if LLC follows.
    Ethernet {
        /// Source MAC address.
        source: [u8; 6],
        /// Destination MAC address.
        destination: [u8; 6],
    },
    /// VLAN tag.
    Vlan {
        /// VLAN identifier, 12 bits.
        id: u16,
        /// Priority code point, 3 bits.
        priority: u8,
        /// IEEE 802.1ad service tag instead of an 802.1Q customer tag.
        service: bool,
    },
    /// MPLS label stack entry; the last of several in a row has the bottom-of-stack bit set.
    Mpls {
        /// Label, 20 bits.
        label: u32,
        /// Traffic class, 3 bits.
        traffic_class: u8,
        /// Time to live.
        ttl: u8,
    },
    /// IPv4 header with don't-fragment set.
    Ipv4 {
        /// Source address.
        source: Ipv4Addr,
        /// Destination address.
        destination: Ipv4Addr,
        /// DSCP (6 bits) and ECN (2 bits).
        tos: u8,
        /// Time to live.
        ttl: u8,
        /// Identification.
        id: u16,
        /// Options, a multiple of 4 octets and at most 40.
        options: &'a [u8],
    },
    /// IPv6 header.
    Ipv6 {
        /// Source address.
        source: Ipv6Addr,
        /// Destination address.
        destination: Ipv6Addr,
        /// DSCP (6 bits) and ECN (2 bits).
        traffic_class: u8,
        /// Flow label, 20 bits.
        flow_label: u32,
        /// Hop limit.
        hop_limit: u8,
    },
    /// Hop-by-Hop Options header.
    HopByHop(&'a [OptionPart<'a>]),
    /// Destination Options header.
    DestinationOptions(&'a [OptionPart<'a>]),
    /// Segment routing header (RFC 8754) with segments in wire order: the last one to visit first.
    SegmentRouting {
        /// Segments left to visit.
        left: u8,
        /// The segment list.
        segments: &'a [Ipv6Addr],
    },
    /// IPv6 Fragment header.
    Fragment {
        /// Offset in octets, a multiple of 8.
        offset: u16,
        /// More fragments follow.
        more: bool,
        /// Identification.
        id: u32,
    },
    /// An extension header as octets, with its next-header number; its first octet is filled in.
    RawExtension(u8, &'a [u8]),
    /// UDP header.
    Udp {
        /// Source port.
        source: u16,
        /// Destination port.
        destination: u16,
        /// Treatment of the checksum.
        checksum: UdpChecksum,
    },
    /// VXLAN header.
    Vxlan {
        /// Network identifier, 24 bits.
        vni: u32,
    },
    /// VXLAN-GPE header followed by IPv4, IPv6, Ethernet or MPLS.
    VxlanGpe {
        /// Network identifier, 24 bits.
        vni: u32,
    },
    /// Geneve header followed by Ethernet or a payload that an EtherType names.
    Geneve {
        /// Network identifier, 24 bits.
        vni: u32,
        /// Options, a multiple of 4 octets and at most 252.
        options: &'a [u8],
    },
    /// GTP-U header of a user's packet.
    GtpU {
        /// Tunnel endpoint identifier.
        teid: u32,
        /// Sequence number.
        sequence: Option<u16>,
        /// Extension headers: type and content, whose length is a multiple of 4 octets minus 2.
        extensions: &'a [(u8, &'a [u8])],
    },
    /// GRE header followed by Ethernet, a payload that an EtherType names, or a mirror's header.
    Gre {
        /// Include a checksum.
        checksum: bool,
        /// Key.
        key: Option<u32>,
        /// Sequence number; present in ERSPAN types II and III, absent in type I.
        sequence: Option<u32>,
    },
    /// A mirror's header, between GRE and Ethernet.
    Erspan(Erspan),
    /// TCP header without options: an acknowledgement with a window.
    Tcp {
        /// Source port.
        source: u16,
        /// Destination port.
        destination: u16,
        /// Sequence number.
        sequence: u32,
        /// Acknowledgement number.
        acknowledgement: u32,
        /// Push.
        push: bool,
        /// Receive window.
        window: u16,
        /// Treatment of the checksum.
        checksum: UdpChecksum,
    },
    /// ICMPv6 header with its checksum (RFC 4443).
    Icmpv6 {
        /// Type and code.
        kind: [u8; 2],
        /// Four octets after the checksum.
        rest: u32,
    },
    /// Base Transport Header.
    Bth(BthRepr),
    /// RDMA extended transport header.
    Reth(Reth),
    /// Acknowledge extended transport header.
    Aeth(Aeth),
    /// Datagram extended transport header.
    Deth(Deth),
    /// A CNP from its BTH to its reserved octets.
    Cnp(CnpRepr),
    /// Congestion notification to the proxy node.
    ProxyCn(ProxyCnRepr<'a>),
    /// Fast CNP in the WAN.
    WanFcn(WanFcnRepr),
    /// Priority-based flow control after an Ethernet header, padded to the minimum frame length.
    Pfc(PfcRepr),
    /// Raw octets, for content that this module does not build.
    Bytes(&'a [u8]),
    /// Octets announced by an EtherType (in Ethernet) or a protocol number (in IP).
    Payload {
        /// EtherType; below 1536 an IEEE 802.3 length is written instead.
        ether_type: u16,
        /// IP protocol number.
        protocol: u8,
        /// The octets.
        bytes: &'a [u8],
    },
    /// ICRC: the last part of a RoCEv2 packet.
    Icrc(Policy),
    /// Number of octets that follow the written ones, announced like those of
    /// [`Payload`](Self::Payload). No checksum can cover them. Allowed only as the last part.
    Trailing {
        /// EtherType; below 1536 an IEEE 802.3 length is written instead.
        ether_type: u16,
        /// IP protocol number.
        protocol: u8,
        /// Number of octets.
        len: usize,
    },
}

impl Part<'_> {
    /// Creates an IPv6 header without a flow label.
    #[must_use]
    pub const fn v6(source: Ipv6Addr, destination: Ipv6Addr, traffic_class: u8) -> Self {
        Self::Ipv6 {
            source,
            destination,
            traffic_class,
            flow_label: 0,
            hop_limit: DEFAULT_HOP_LIMIT,
        }
    }

    /// Creates an IPv4 header without options.
    #[must_use]
    pub const fn v4(source: Ipv4Addr, destination: Ipv4Addr, tos: u8) -> Self {
        Self::Ipv4 {
            source,
            destination,
            tos,
            ttl: DEFAULT_HOP_LIMIT,
            id: 0,
            options: &[],
        }
    }

    /// Creates a UDP header without a checksum.
    #[must_use]
    pub const fn udp(source: u16, destination: u16) -> Self {
        Self::Udp {
            source,
            destination,
            checksum: UdpChecksum::Zero,
        }
    }

    /// Creates a UDP header with its checksum.
    #[must_use]
    pub const fn udp_summed(source: u16, destination: u16) -> Self {
        Self::Udp {
            source,
            destination,
            checksum: UdpChecksum::Compute,
        }
    }
}

/// Numbers by which the preceding part announces a part.
#[derive(Clone, Copy)]
struct NextProtocol {
    ether_type: u16,
    protocol: u8,
}

impl NextProtocol {
    const fn new(ether_type: u16, protocol: u8) -> Self {
        Self {
            ether_type,
            protocol,
        }
    }

    const fn ip(protocol: u8) -> Self {
        Self::new(0, protocol)
    }

    /// Returns the EtherType by which a tunnel's header announces the part.
    fn in_tunnel(self, layer: Layer) -> Result<[u8; 2]> {
        match (self.ether_type, self.protocol) {
            (0, next_header::ETHERNET) => Ok(gre::ETHERNET.to_be_bytes()),
            (0..ethernet::LEAST_TYPE, _) => Err(unsupported_payload(layer, self.ether_type)),
            (ether_type, _) => Ok(ether_type.to_be_bytes()),
        }
    }
}

/// Fields that can only be filled once the IP header is written.
#[derive(Clone, Copy, Default)]
struct Pending {
    /// Start of UDP.
    udp: usize,
    /// Start of a transport header that needs a checksum, offset of the checksum in it, and
    /// protocol.
    checksum: Option<(usize, usize, u8)>,
    icrc: Option<Policy>,
}

/// Builds the packet of `parts`.
///
/// # Errors
/// Fails on a part that cannot be written (an option too long, a header longer than its length
/// field can state), or on an ICRC without IP, UDP and a BTH before it.
pub fn packet(parts: &[Part<'_>], profile: &Profile) -> Result<Vec<u8>> {
    let mut out = vec![0; len(parts, profile)];
    write(parts, profile, &mut out)?;
    Ok(out)
}

/// Returns the length of the packet of `parts`, without [`Trailing`](Part::Trailing) octets.
#[must_use]
pub fn len(parts: &[Part<'_>], profile: &Profile) -> usize {
    parts.iter().map(|part| part.len(profile)).sum()
}

/// Writes the packet of `parts` to the start of `out`, and returns its length.
///
/// # Errors
/// Fails like [`packet`], and if `out` is too short.
pub fn write(parts: &[Part<'_>], profile: &Profile, out: &mut [u8]) -> Result<usize> {
    let (need, have) = (len(parts, profile), out.len());
    let out = out
        .get_mut(..need)
        .ok_or_else(|| Error::buffer(Layer::Payload, need, have))?;
    let mut next = NextProtocol::ip(next_header::NONE);
    let mut pending = Pending::default();
    let (mut at, mut behind) = (need, 0);
    // Inside out: a header's length fields depend on the following parts.
    for part in parts.iter().rev() {
        let end = at;
        at -= part.len(profile);
        let (Some(place), inner) = (out.get_mut(at..end), need - end + behind) else {
            break;
        };
        next = part.emit(place, inner, next, profile)?;
        match *part {
            Part::Trailing { len, .. } => behind = len,
            Part::Udp { checksum, .. } => {
                pending.udp = at;
                let wanted = checksum == UdpChecksum::Compute;
                pending.checksum = wanted.then_some((at, udp::CHECKSUM, next_header::UDP));
            }
            Part::Tcp {
                checksum: UdpChecksum::Compute,
                ..
            } => {
                pending.checksum = Some((at, tcp::CHECKSUM, next_header::TCP));
            }
            Part::Icmpv6 { .. } => {
                pending.checksum = Some((at, icmp::CHECKSUM, next_header::ICMPV6));
            }
            Part::Icrc(policy) => pending.icrc = Some(policy),
            Part::Gre { checksum: true, .. } => {
                let covered = out.get_mut(at..).unwrap_or_default();
                let checksum = checksum::internet(&[covered]);
                put(covered, gre::CHECKSUM, &checksum.to_be_bytes());
            }
            Part::Ipv4 { .. } | Part::Ipv6 { .. } => {
                finish_ip(out, at, pending)?;
                pending = Pending::default();
            }
            _ => {}
        }
    }
    if pending.icrc.is_some() {
        return Err(no_icrc(need));
    }
    Ok(need)
}

fn no_icrc(have: usize) -> Error {
    Error::short(Layer::Icrc, ipv4::LEN + udp::LEN + 12 + ICRC_LEN, have)
}

/// Fills in the fields that cover the IP packet at `ip`, which extends to the end of `out`.
fn finish_ip(out: &mut [u8], ip: usize, pending: Pending) -> Result<()> {
    let packet = out.get_mut(ip..).unwrap_or_default();
    if let Some(policy) = pending.icrc {
        // A corrupt ICRC is one that differs from the correct one; zero needs no computation.
        let udp = pending.udp.checked_sub(ip);
        if !udp.is_some_and(|udp| icrc::fill(packet, udp, policy)) {
            return Err(no_icrc(packet.len()));
        }
    }
    if let Some((transport, field, protocol)) = pending.checksum {
        let at = transport - ip;
        let value = transport_checksum(packet, at, protocol);
        put(packet, at + field, &value.to_be_bytes());
    }
    Ok(())
}

/// Computes the checksum of the transport header at `at` in an IP packet.
fn transport_checksum(packet: &[u8], at: usize, protocol: u8) -> u16 {
    let segment = packet.get(at..).unwrap_or_default();
    let address = |at: usize, len: usize| packet.get(at..at + len).unwrap_or_default();
    let addresses = if packet.first().is_some_and(|first| first >> 4 == 4) {
        [ipv4::SOURCE, ipv4::DESTINATION].map(|at| address(at, 4))
    } else {
        let headers = packet.get(..at).unwrap_or_default();
        let last = ExtHeaders::new(headers)
            .flatten()
            .find_map(|header| last_segment_at(headers, &header));
        let destination = last.unwrap_or(ipv6::DESTINATION);
        [ipv6::SOURCE, destination].map(|at| address(at, 16))
    };
    checksum::of_transport(addresses, protocol, segment.len(), &[segment])
}

impl Part<'_> {
    /// Returns its length in octets.
    #[inline]
    fn len(&self, profile: &Profile) -> usize {
        match *self {
            Self::Ethernet { .. } => ethernet::LEN,
            Self::Vlan { .. } => ethernet::TAG_LEN,
            Self::Mpls { .. } => ethernet::LABEL_LEN,
            Self::Ipv4 { options, .. } => ipv4::LEN + options.len(),
            Self::Ipv6 { .. } => ipv6::LEN,
            // Typical case for switches: measuring it by writing takes about 30 of 150 ns.
            Self::DestinationOptions([OptionPart::FastCnp(repr)]) => repr.header_len(),
            Self::HopByHop(options) | Self::DestinationOptions(options) => {
                // Options that cannot be written are refused when they are written.
                let measured = write_options(options, profile, OptionsWriter::measuring());
                measured.map_or(0, |writer| writer.len())
            }
            Self::SegmentRouting { segments, .. } => routing::SEGMENTS + 16 * segments.len(),
            Self::Fragment { .. } => fragment::LEN,
            Self::Udp { .. } => udp::LEN,
            Self::Tcp { .. } => tcp::LEN,
            Self::Icmpv6 { .. } => icmp::LEN,
            Self::Vxlan { .. } => udp::VXLAN_LEN,
            Self::VxlanGpe { .. } => vxlan_gpe::LEN,
            Self::Geneve { options, .. } => geneve::LEN + options.len(),
            Self::GtpU {
                sequence,
                extensions,
                ..
            } => {
                let any = sequence.is_some() || !extensions.is_empty();
                let content = extensions.iter().map(|(_, content)| content.len() + 2);
                gtp_u::LEN + usize::from(any) * gtp_u::OPTIONAL_LEN + content.sum::<usize>()
            }
            Self::Gre {
                checksum,
                key,
                sequence,
            } => {
                let fields = [checksum, key.is_some(), sequence.is_some()];
                gre::LEN + gre::FIELD_LEN * fields.iter().filter(|there| **there).count()
            }
            Self::Erspan(header) => header.buffer_len(),
            Self::Bth(_) => BTH_LEN,
            Self::Reth(_) => Reth::LEN,
            Self::Aeth(_) => Aeth::LEN,
            Self::Deth(_) => Deth::LEN,
            Self::Cnp(_) => CNP_BODY_LEN,
            Self::ProxyCn(repr) => repr.buffer_len(),
            Self::WanFcn(_) => WAN_FCN_LEN,
            Self::Pfc(_) => MIN_PAYLOAD_LEN,
            Self::Bytes(bytes) | Self::Payload { bytes, .. } | Self::RawExtension(_, bytes) => {
                bytes.len()
            }
            Self::Icrc(_) => ICRC_LEN,
            Self::Trailing { .. } => 0,
        }
    }

    /// Writes the part to `out`, which has its length, before `inner` octets that it announces as
    /// `next`. Returns the numbers by which the part itself is announced.
    fn emit(
        &self,
        out: &mut [u8],
        inner: usize,
        next: NextProtocol,
        profile: &Profile,
    ) -> Result<NextProtocol> {
        Ok(match *self {
            Self::Ethernet {
                source,
                destination,
            } => {
                put(out, ethernet::DESTINATION, &destination);
                put(out, ethernet::SOURCE, &source);
                let ether_type = match next.ether_type {
                    0..ethernet::LEAST_TYPE => {
                        u16_len(Layer::Ethernet, ("length", ethernet::TYPE), inner)?
                    }
                    ether_type => ether_type.to_be_bytes(),
                };
                put(out, ethernet::TYPE, &ether_type);
                NextProtocol::ip(next_header::ETHERNET)
            }
            Self::Vlan {
                id,
                priority,
                service,
            } => {
                within(Layer::Vlan, "PCP", priority.into(), 7, "0 to 7")?;
                within(Layer::Vlan, "VID", id.into(), 0x0FFF, "0 to 4095")?;
                put(out, 0, &(u16::from(priority) << 13 | id).to_be_bytes());
                put(out, ethernet::TAG_TYPE, &next.ether_type.to_be_bytes());
                NextProtocol::new(tag_type(service), next_header::NONE)
            }
            Self::Mpls {
                label,
                traffic_class,
                ttl,
            } => {
                let bottom = u32::from(next.protocol != next_header::MPLS);
                let entry = (label & 0x000F_FFFF) << 12
                    | u32::from(traffic_class & 7) << 9
                    | bottom << 8
                    | u32::from(ttl);
                put(out, 0, &entry.to_be_bytes());
                NextProtocol::new(ethernet::MPLS, next_header::MPLS)
            }
            Self::Ipv4 {
                source,
                destination,
                tos,
                ttl,
                id,
                options,
            } => {
                if options.len() > ipv4::MAX_LEN - ipv4::LEN || !options.len().is_multiple_of(4) {
                    let (field, len) = ("options", options.len());
                    let max = ipv4::MAX_LEN - ipv4::LEN;
                    return Err(Error::length(Layer::Ipv4, 0, field, len, 0, max));
                }
                put(out, 0, &[0x40 | (out.len() / 4) as u8, tos]);
                let field = ("total length", ipv4::LENGTH);
                let total = u16_len(Layer::Ipv4, field, out.len() + inner)?;
                put(out, ipv4::LENGTH, &total);
                put(out, ipv4::IDENTIFICATION, &id.to_be_bytes());
                put(out, ipv4::FRAGMENT, &DONT_FRAGMENT);
                put(out, ipv4::TTL, &[ttl, next.protocol, 0, 0]);
                put(out, ipv4::SOURCE, &source.octets());
                put(out, ipv4::DESTINATION, &destination.octets());
                put(out, ipv4::LEN, options);
                let checksum = checksum::internet(&[out]);
                put(out, ipv4::CHECKSUM, &checksum.to_be_bytes());
                NextProtocol::new(ethernet::IPV4, next_header::IPV4)
            }
            Self::Ipv6 {
                source,
                destination,
                traffic_class,
                flow_label,
                hop_limit,
            } => {
                let (field, max) = ("flow label", 0x000F_FFFF);
                within(Layer::Ipv6, field, flow_label.into(), max, "20 bits")?;
                let word = 6 << 28 | u32::from(traffic_class) << 20 | flow_label;
                let out = room::<{ ipv6::LEN }>(out)?;
                put(out, 0, &word.to_be_bytes());
                let field = ("payload length", ipv6::LENGTH);
                put(out, ipv6::LENGTH, &u16_len(Layer::Ipv6, field, inner)?);
                put(out, ipv6::NEXT, &[next.protocol, hop_limit]);
                put(out, ipv6::SOURCE, &source.octets());
                put(out, ipv6::DESTINATION, &destination.octets());
                NextProtocol::new(ethernet::IPV6, next_header::IPV6)
            }
            Self::HopByHop(options) => {
                let writer = OptionsWriter::new(Layer::HopByHop, out);
                write_options(options, profile, writer)?.finish(next.protocol)?;
                NextProtocol::ip(next_header::HOP_BY_HOP)
            }
            Self::DestinationOptions(options) => {
                let writer = OptionsWriter::new(Layer::DestinationOptions, out);
                write_options(options, profile, writer)?.finish(next.protocol)?;
                NextProtocol::ip(next_header::DESTINATION_OPTIONS)
            }
            Self::SegmentRouting { left, segments } => {
                let units = segments.len() * 2;
                let Ok(units) = u8::try_from(units) else {
                    let field = "Hdr Ext Len";
                    return Err(Error::length(Layer::Routing, 1, field, units, 0, 255));
                };
                let last = segments.len().saturating_sub(1) as u8;
                let kind = routing::SEGMENT_ROUTING;
                put(out, 0, &[next.protocol, units, kind, left, last, 0, 0, 0]);
                for (number, segment) in segments.iter().enumerate() {
                    put(out, routing::SEGMENTS + 16 * number, &segment.octets());
                }
                NextProtocol::ip(next_header::ROUTING)
            }
            Self::Fragment { offset, more, id } => {
                let field = offset & 0xFFF8 | u16::from(more);
                put(out, 0, &[next.protocol, 0]);
                put(out, fragment::OFFSET, &field.to_be_bytes());
                put(out, fragment::IDENTIFICATION, &id.to_be_bytes());
                NextProtocol::ip(next_header::FRAGMENT)
            }
            Self::RawExtension(number, raw) => {
                put(out, 0, raw);
                put(out, 0, &[next.protocol]);
                NextProtocol::ip(number)
            }
            Self::Udp {
                source,
                destination,
                ..
            } => {
                let out = room::<{ udp::LEN }>(out)?;
                put(out, udp::SOURCE, &source.to_be_bytes());
                put(out, udp::DESTINATION, &destination.to_be_bytes());
                let field = ("UDP length", udp::LENGTH);
                put(
                    out,
                    udp::LENGTH,
                    &u16_len(Layer::Udp, field, udp::LEN + inner)?,
                );
                put(out, udp::CHECKSUM, &[0; 2]);
                NextProtocol::ip(next_header::UDP)
            }
            Self::Tcp {
                source,
                destination,
                sequence,
                acknowledgement,
                push,
                window,
                ..
            } => {
                put(out, tcp::SOURCE, &source.to_be_bytes());
                put(out, tcp::DESTINATION, &destination.to_be_bytes());
                put(out, tcp::SEQUENCE, &sequence.to_be_bytes());
                put(out, tcp::ACKNOWLEDGEMENT, &acknowledgement.to_be_bytes());
                // Data offset 5; the flag ACK.
                put(out, tcp::DATA_OFFSET, &[0x50, 0x10 | u8::from(push) << 3]);
                put(out, tcp::WINDOW, &window.to_be_bytes());
                put(out, tcp::CHECKSUM, &[0; 4]);
                NextProtocol::ip(next_header::TCP)
            }
            Self::Icmpv6 { kind, rest } => {
                put(out, 0, &kind);
                put(out, icmp::CHECKSUM, &[0; 2]);
                put(out, 4, &rest.to_be_bytes());
                NextProtocol::ip(next_header::ICMPV6)
            }
            Self::Vxlan { vni } => {
                put(out, 0, &[udp::VXLAN_FLAG, 0, 0, 0]);
                put_u24(out, 4, vni);
                put(out, 7, &[0]);
                next
            }
            Self::VxlanGpe { vni } => {
                let number = match (next.ether_type, next.protocol) {
                    (ethernet::IPV4, _) => vxlan_gpe::IPV4,
                    (ethernet::IPV6, _) => vxlan_gpe::IPV6,
                    (_, next_header::ETHERNET) => vxlan_gpe::ETHERNET,
                    (_, next_header::MPLS) => vxlan_gpe::MPLS,
                    (other, _) => return Err(unsupported_payload(Layer::VxlanGpe, other)),
                };
                put(out, vxlan_gpe::FLAGS, &[vxlan_gpe::DATA, 0, 0, number]);
                put_u24(out, vxlan_gpe::VNI, vni);
                put(out, vxlan_gpe::LEN - 1, &[0]);
                next
            }
            Self::Geneve { vni, options } => {
                if options.len() > geneve::MAX_OPTIONS || !options.len().is_multiple_of(4) {
                    let (field, len, max) = ("options", options.len(), geneve::MAX_OPTIONS);
                    return Err(Error::length(Layer::Geneve, 0, field, len, 0, max));
                }
                put(out, geneve::OPTIONS_LEN, &[(options.len() / 4) as u8, 0]);
                put(out, geneve::TYPE, &next.in_tunnel(Layer::Geneve)?);
                put_u24(out, geneve::VNI, vni);
                put(out, geneve::LEN - 1, &[0]);
                put(out, geneve::LEN, options);
                next
            }
            Self::GtpU {
                teid,
                sequence,
                extensions,
            } => {
                emit_gtp_u(out, inner, (teid, sequence), extensions)?;
                next
            }
            Self::Gre {
                checksum,
                key,
                sequence,
            } => {
                let mut flags = 0;
                // The checksum is filled in once everything that it covers is written.
                let fields = [
                    (checksum.then_some(0), gre::CHECKSUM_PRESENT),
                    (key, gre::KEY_PRESENT),
                    (sequence, gre::SEQUENCE_PRESENT),
                ];
                let mut at = gre::LEN;
                for (value, flag) in fields {
                    if let Some(value) = value {
                        put(out, at, &value.to_be_bytes());
                        at += gre::FIELD_LEN;
                        flags |= flag;
                    }
                }
                put(out, gre::FLAGS, &flags.to_be_bytes());
                put(out, gre::TYPE, &next.in_tunnel(Layer::Gre)?);
                NextProtocol::ip(next_header::GRE)
            }
            Self::Erspan(header) => {
                header.emit(out);
                NextProtocol::new(header.protocol_type(), next_header::NONE)
            }
            Self::Bth(repr) => copied(out, &repr.to_bytes(), next),
            Self::Reth(header) => copied(out, &header.to_bytes(), next),
            Self::Aeth(header) => copied(out, &header.to_bytes(), next),
            Self::Deth(header) => copied(out, &header.to_bytes(), next),
            Self::Cnp(repr) => copied(out, &repr.to_bytes(), next),
            Self::ProxyCn(repr) => repr.emit(out).map(|()| next)?,
            Self::WanFcn(repr) => copied(out, &repr.to_bytes(), next),
            Self::Pfc(repr) => {
                out.fill(0);
                put(out, 0, &repr.to_bytes());
                NextProtocol::new(ETHERTYPE_MAC_CONTROL, next_header::NONE)
            }
            Self::Bytes(bytes) => copied(out, bytes, next),
            Self::Icrc(_) => copied(out, &[0; ICRC_LEN], next),
            Self::Payload {
                ether_type,
                protocol,
                bytes,
            } => copied(out, bytes, NextProtocol::new(ether_type, protocol)),
            Self::Trailing {
                ether_type,
                protocol,
                ..
            } => NextProtocol::new(ether_type, protocol),
        })
    }
}

/// Returns the error for a tunnel without a number for its payload.
fn unsupported_payload(layer: Layer, ether_type: u16) -> Error {
    let (field, expected) = ("payload's EtherType", "one that the tunnel can carry");
    Error::value(layer, 0, field, ether_type.into(), expected)
}

fn emit_gtp_u(
    out: &mut [u8],
    inner: usize,
    (teid, sequence): (u32, Option<u16>),
    extensions: &[(u8, &[u8])],
) -> Result<()> {
    let mut flags = gtp_u::VERSION_1;
    if sequence.is_some() {
        flags |= gtp_u::SEQUENCE_PRESENT;
    }
    if !extensions.is_empty() {
        flags |= gtp_u::EXTENSION;
    }
    put(out, gtp_u::FLAGS, &[flags, gtp_u::G_PDU]);
    let field = ("length", gtp_u::LENGTH);
    let len = u16_len(Layer::GtpU, field, out.len() - gtp_u::LEN + inner)?;
    put(out, gtp_u::LENGTH, &len);
    put(out, gtp_u::TEID, &teid.to_be_bytes());
    if flags & gtp_u::OPTIONAL != 0 {
        let sequence = sequence.unwrap_or(0);
        put(out, gtp_u::SEQUENCE, &sequence.to_be_bytes());
        put(out, gtp_u::SEQUENCE + 2, &[0]);
        let first = extensions.first().map_or(0, |(kind, _)| *kind);
        put(out, gtp_u::NEXT, &[first]);
    }
    let mut at = gtp_u::LEN + gtp_u::OPTIONAL_LEN;
    for (number, (_, content)) in (1..).zip(extensions) {
        let len = content.len() + 2;
        let units = u8::try_from(len / 4).ok().filter(|_| len.is_multiple_of(4));
        let Some(units) = units else {
            let field = "extension header";
            return Err(Error::length(Layer::GtpU, at, field, len, 4, 4 * 255));
        };
        let next = extensions.get(number).map_or(0, |(kind, _)| *kind);
        put(out, at, &[units]);
        put(out, at + 1, content);
        put(out, at + len - 1, &[next]);
        at += len;
    }
    Ok(())
}

/// Returns a header of fixed length as an array, so that writing its fields needs no checks.
fn room<const N: usize>(out: &mut [u8]) -> Result<&mut [u8; N]> {
    let have = out.len();
    out.first_chunk_mut()
        .ok_or_else(|| Error::buffer(Layer::Payload, N, have))
}

fn copied(out: &mut [u8], bytes: &[u8], next: NextProtocol) -> NextProtocol {
    put(out, 0, bytes);
    next
}

fn write_options<'w>(
    options: &[OptionPart<'_>],
    profile: &Profile,
    mut writer: OptionsWriter<'w>,
) -> Result<OptionsWriter<'w>> {
    for option in options {
        match *option {
            OptionPart::FastCnp(repr) => repr.emit(profile, &mut writer)?,
            OptionPart::ProxyAddress(address) => address.emit(profile, &mut writer)?,
            OptionPart::Ioam(ioam) => {
                writer.option((4, 0), profile.ioam_option, &[&ioam.prefix(), ioam.body])?;
            }
            OptionPart::Raw(kind, align, data) => writer.option(align, kind, &[data])?,
        }
    }
    Ok(writer)
}

/// Returns the tag protocol identifier: IEEE 802.1ad's service tag, or 802.1Q's customer tag.
pub(crate) const fn tag_type(service: bool) -> u16 {
    if service {
        ethernet::SERVICE_TAG
    } else {
        ethernet::TAG
    }
}

/// Encodes `len` for the length field `field` at `at` of its header.
fn u16_len(layer: Layer, (field, at): (&'static str, usize), len: usize) -> Result<[u8; 2]> {
    let max = usize::from(u16::MAX);
    let octets = u16::try_from(len).map(u16::to_be_bytes);
    octets.map_err(|_| Error::length(layer, at, field, len, 0, max))
}

fn within(
    layer: Layer,
    field: &'static str,
    value: u64,
    max: u64,
    expected: &'static str,
) -> Result<()> {
    if value > max {
        return Err(Error::value(layer, 0, field, value, expected));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bth::Qp;
    use crate::frame::{End, Frame, LinkType};
    use crate::icrc::{Reading, Verdict};
    use crate::notification::{Kind, Notification, Origin};
    use crate::{Findings, IcrcCheck, Subject};

    const SWITCH: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 3);
    const SENDER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
    const RECEIVER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 9);
    const ETHERNET: Part<'_> = Part::Ethernet {
        source: [2, 0, 0, 0, 0, 1],
        destination: [2, 0, 0, 0, 0, 2],
    };
    const ROCE: Part<'_> = Part::Udp {
        source: 0,
        destination: 4791,
        checksum: UdpChecksum::Zero,
    };

    fn v6(source: Ipv6Addr, destination: Ipv6Addr) -> Part<'static> {
        Part::Ipv6 {
            source,
            destination,
            traffic_class: 0xC2,
            flow_label: 5,
            hop_limit: 64,
        }
    }

    fn fast_cnp(reading: Reading) -> Vec<u8> {
        let option = FastCnpRepr::Option1 {
            original_destination: RECEIVER,
        };
        let parts = [
            ETHERNET,
            v6(SWITCH, SENDER),
            Part::DestinationOptions(&[OptionPart::FastCnp(option)]),
            ROCE,
            Part::Cnp(CnpRepr::new(Qp::truncate(0x12))),
            Part::Icrc(Policy::Compute(reading)),
        ];
        packet(&parts, &Profile::DEFAULT).unwrap()
    }

    fn read(bytes: &[u8]) -> Frame<'_> {
        Frame::parse(bytes, bytes.len(), LinkType::Ethernet, &Profile::DEFAULT)
    }

    fn findings(frame: &Frame<'_>) -> Findings {
        let mut findings = Findings::new();
        frame.check(IcrcCheck::On, &mut findings);
        findings
    }

    #[test]
    fn a_fast_cnp_is_118_octets_and_breaks_no_rule() {
        let bytes = fast_cnp(Reading::Covered);
        assert_eq!(bytes.len(), 118);
        let frame = read(&bytes);
        assert_eq!(frame.end(), End::Complete);
        assert_eq!(frame.verify_icrc(), Verdict::Good(Some(Reading::Covered)));
        assert_eq!(findings(&frame), Findings::new());
        let n = Notification::from_frame(&frame).unwrap();
        assert_eq!(
            (n.kind, n.origin, n.sender),
            (Kind::FastCnp1, Origin::Switch, Some(SENDER.into()))
        );
        assert_eq!(
            n.subject,
            Subject::ReceiverQp {
                receiver: RECEIVER.into(),
                qp: Qp::truncate(0x12)
            }
        );
        assert_eq!(
            n.to_string(),
            "Fast CNP from switch 2001:db8:ffff::3 → sender 2001:db8:1::1, QP 0x12 at 2001:db8:2::9"
        );
    }

    #[test]
    fn a_cnp_cut_after_its_bth_still_notifies() {
        let bytes = fast_cnp(Reading::Covered);
        let bth_end = 14 + 40 + 24 + 8 + 12;
        for (len, known) in [
            (bytes.len() - 1, true),
            (bth_end, true),
            (bth_end - 1, false),
        ] {
            let frame = Frame::parse(
                &bytes[..len],
                bytes.len(),
                LinkType::Ethernet,
                &Profile::DEFAULT,
            );
            let n = Notification::from_frame(&frame);
            assert_eq!(n.map(|n| n.kind), known.then_some(Kind::FastCnp1), "{len}");
        }
    }

    #[test]
    fn every_icrc_reading_is_identified() {
        for reading in Reading::ALL {
            let bytes = fast_cnp(reading);
            assert_eq!(read(&bytes).verify_icrc(), Verdict::Good(Some(reading)));
        }
    }

    #[test]
    fn the_same_message_is_found_in_every_tunnel() {
        let (hop, pe) = (SWITCH, Ipv6Addr::new(0x2001, 0xdb8, 0xee, 0, 0, 0, 0, 1));
        let outer = v6(hop, pe);
        let segments = [pe, SWITCH];
        let vxlan = Part::Udp {
            source: 50000,
            destination: 4789,
            checksum: UdpChecksum::Zero,
        };
        let v4 = Part::Ipv4 {
            source: Ipv4Addr::new(192, 0, 2, 1),
            destination: Ipv4Addr::new(192, 0, 2, 2),
            tos: 0,
            ttl: 64,
            id: 1,
            options: &[1, 1, 1, 0],
        };
        let mpls = |label| Part::Mpls {
            label,
            traffic_class: 0,
            ttl: 64,
        };
        let tag = |id, service| Part::Vlan {
            id,
            priority: 3,
            service,
        };
        let tunnels: [&[Part<'_>]; 7] = [
            &[ETHERNET],
            &[ETHERNET, tag(100, true), tag(7, false)],
            &[ETHERNET, mpls(16), mpls(17)],
            &[ETHERNET, outer, vxlan, Part::Vxlan { vni: 42 }, ETHERNET],
            &[ETHERNET, v4, vxlan, Part::Vxlan { vni: 42 }, ETHERNET],
            &[
                ETHERNET,
                outer,
                Part::SegmentRouting {
                    left: 1,
                    segments: &segments,
                },
            ],
            &[ETHERNET, outer],
        ];
        for tunnel in tunnels {
            let option = FastCnpRepr::Option1 {
                original_destination: RECEIVER,
            };
            let inner = [
                v6(SWITCH, SENDER),
                Part::DestinationOptions(&[OptionPart::FastCnp(option)]),
                ROCE,
                Part::Cnp(CnpRepr::new(Qp::truncate(0x12))),
                Part::Icrc(Policy::default()),
            ];
            let parts: Vec<_> = tunnel.iter().chain(&inner).copied().collect();
            let bytes = packet(&parts, &Profile::DEFAULT).unwrap();
            let frame = read(&bytes);
            assert_eq!(frame.end(), End::Complete, "{tunnel:?}");
            assert_eq!(findings(&frame), Findings::new(), "{tunnel:?}");
            let n = Notification::from_frame(&frame).unwrap();
            assert_eq!((n.kind, n.notifier), (Kind::FastCnp1, SWITCH.into()));
            // Cut at every octet: never malformed, never a panic.
            for len in 0..bytes.len() {
                let cut = Frame::parse(
                    &bytes[..len],
                    bytes.len(),
                    LinkType::Ethernet,
                    &Profile::DEFAULT,
                );
                assert!(
                    matches!(cut.end(), End::Cut { .. }),
                    "{len} of {tunnel:?}: {:?}",
                    cut.end()
                );
                let mut findings = Findings::new();
                cut.check(IcrcCheck::On, &mut findings);
                assert!(findings.is_empty(), "{len} of {tunnel:?}: {findings:?}");
                assert_eq!(cut.verify_icrc(), Verdict::Unchecked);
            }
        }
    }

    #[test]
    fn a_computed_udp_checksum_is_right() {
        let parts = [
            v6(SWITCH, SENDER),
            Part::Udp {
                source: 1,
                destination: 1022,
                checksum: UdpChecksum::Compute,
            },
            Part::Bytes(&[0xAB, 0xCD, 0xEE, 0]),
        ];
        let bytes = packet(&parts, &Profile::DEFAULT).unwrap();
        let parsed = etherparse::SlicedPacket::from_ip(&bytes).unwrap();
        let Some(etherparse::TransportSlice::Udp(udp)) = parsed.transport else {
            panic!()
        };
        let ip = etherparse::Ipv6Header::from_slice(&bytes).unwrap().0;
        let want = udp
            .to_header()
            .calc_checksum_ipv6(&ip, &bytes[48..])
            .unwrap();
        assert_eq!(udp.checksum(), want);
        assert_ne!(want, 0);
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        let no_ip = [
            ROCE,
            Part::Cnp(CnpRepr::new(Qp::truncate(1))),
            Part::Icrc(Policy::default()),
        ];
        assert!(packet(&no_ip, &Profile::DEFAULT).is_err());
        let long = [0; 256];
        let option = [OptionPart::Raw(0x3E, (1, 0), &long)];
        assert!(
            packet(
                &[v6(SWITCH, SENDER), Part::HopByHop(&option)],
                &Profile::DEFAULT
            )
            .is_err()
        );
        let payload = vec![0; 65536];
        assert!(
            packet(
                &[v6(SWITCH, SENDER), Part::Bytes(&payload)],
                &Profile::DEFAULT
            )
            .is_err()
        );
    }
}
