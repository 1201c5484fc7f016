//! Whole packets from parts, outermost first: lengths, next headers, checksums and the ICRC are filled in.
//!
//! For templates, tests and sample captures: it allocates. What changes per packet is patched in place afterwards, at
//! the offsets that [`Frame`](crate::Frame) finds. Headers below ours are etherparse's.

use crate::bth::BthRepr;
use crate::cnp::CnpRepr;
use crate::error::{Error, Result};
use crate::fast_cnp::FastCnpRepr;
use crate::icrc::{self, ICRC_LEN, Policy};
use crate::ioam::IoamOption;
use crate::ipv6_ext::{MAX_OPTIONS_HEADER, OptionsWriter, next_header};
use crate::layer::Layer;
use crate::octets::put;
use crate::profile::Profile;
use crate::proxy_address::ProxyAddress;
use etherparse::{
    EtherType, Ethernet2Header, IpDscp, IpFragOffset, IpNumber, Ipv4Header, Ipv4Options,
    Ipv6FlowLabel, Ipv6Header, SingleVlanHeader, UdpHeader, VlanId, VlanPcp,
};
use std::net::{Ipv4Addr, Ipv6Addr};

/// One option of an options header to write.
#[derive(Clone, Copy, Debug)]
pub enum OptionPart<'a> {
    /// A Fast CNP option.
    FastCnp(FastCnpRepr<'a>),
    /// The proxy's address.
    ProxyAddress(ProxyAddress),
    /// IOAM, aligned at 4n (RFC 9486 section 3).
    Ioam(IoamOption<'a>),
    /// Anything: option type, alignment (multiple, rest), data of at most 255 octets.
    Raw(u8, (usize, usize), &'a [u8]),
}

/// What to do about the UDP checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdpChecksum {
    /// None: what RoCEv2 and tunnels send.
    Zero,
    /// The right one.
    Compute,
}

/// One part of a packet. Reserved and rarely used fields are 0.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// Ethernet II header; an IEEE 802.3 length where LLC follows.
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
    /// MPLS label stack entry; the last of several in a row gets the bottom-of-stack bit.
    Mpls {
        /// Label, 20 bits.
        label: u32,
        /// Traffic class, 3 bits.
        traffic_class: u8,
        /// Time to live.
        ttl: u8,
    },
    /// IPv4 header, don't-fragment set.
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
    /// Segment routing header (RFC 8754), segments in wire order: the last one to visit first.
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
    /// An extension header as octets, of the given next-header number; its first octet is filled in.
    RawExtension(u8, &'a [u8]),
    /// UDP header.
    Udp {
        /// Source port.
        source: u16,
        /// Destination port.
        destination: u16,
        /// What to do about the checksum.
        checksum: UdpChecksum,
    },
    /// VXLAN header.
    Vxlan {
        /// Network identifier, 24 bits.
        vni: u32,
    },
    /// Base Transport Header.
    Bth(BthRepr),
    /// A CNP from its BTH to its reserved octets.
    Cnp(CnpRepr),
    /// Octets, for what this module does not build.
    Bytes(&'a [u8]),
    /// Octets that an EtherType (in Ethernet) or a protocol number (in IP) announces.
    Payload {
        /// EtherType; below 1536 an IEEE 802.3 length is written instead.
        ether_type: u16,
        /// IP protocol number.
        protocol: u8,
        /// The octets.
        bytes: &'a [u8],
    },
    /// The ICRC: the last part of a RoCEv2 packet.
    Icrc(Policy),
}

/// How a part is announced by the one in front of it.
#[derive(Clone, Copy)]
struct Announced {
    ether_type: u16,
    protocol: u8,
}

/// Fields that can only be filled once the IP header is there.
#[derive(Clone, Copy, Default)]
struct Pending {
    /// Where UDP begins in what is built so far.
    udp: usize,
    checksum: bool,
    icrc: Option<Policy>,
}

/// Builds the packet of `parts`.
///
/// # Errors
/// A part that cannot be written (an option too long, a header longer than its length field can say), or an ICRC asked
/// for where there is no IP with UDP and a BTH.
pub fn packet(parts: &[Part<'_>], profile: &Profile) -> Result<Vec<u8>> {
    let mut out: Vec<u8> = Vec::new();
    let mut announced = Announced {
        ether_type: 0,
        protocol: next_header::NONE,
    };
    let mut pending = Pending::default();
    // Inside out: a header's length fields need what follows it.
    for part in parts.iter().rev() {
        let (header, this) = one(*part, &out, announced, profile)?;
        pending.udp += header.len();
        match *part {
            Part::Udp { checksum, .. } => {
                pending.udp = 0;
                pending.checksum = checksum == UdpChecksum::Compute;
            }
            Part::Icrc(policy) => pending.icrc = Some(policy),
            _ => {}
        }
        out.splice(0..0, header);
        announced = this;
        if matches!(part, Part::Ipv4 { .. } | Part::Ipv6 { .. }) {
            finish_ip(&mut out, pending)?;
            pending = Pending::default();
        }
    }
    if pending.icrc.is_some() {
        return Err(Error::short(Layer::Icrc, 20 + 8 + 12, out.len()));
    }
    Ok(out)
}

fn finish_ip(out: &mut [u8], pending: Pending) -> Result<()> {
    if let Some(policy) = pending.icrc {
        // A corrupt ICRC is one that differs from the right one; zero needs no computation at all.
        if !icrc::fill(out, pending.udp, policy) {
            return Err(Error::short(
                Layer::Icrc,
                pending.udp + 8 + 12 + ICRC_LEN,
                out.len(),
            ));
        }
    }
    if pending.checksum {
        let checksum = udp_checksum(out, pending.udp);
        put(out, pending.udp + 6, &checksum.to_be_bytes());
    }
    Ok(())
}

/// The UDP checksum of the IP packet `packet` whose UDP header begins at `udp`.
fn udp_checksum(packet: &[u8], udp: usize) -> u16 {
    let Some((header, rest)) = packet.split_at_checked(udp) else {
        return 0;
    };
    let (Some(ports), payload) = (rest.first_chunk::<8>(), rest.get(8..).unwrap_or_default())
    else {
        return 0;
    };
    let udp_header = UdpHeader {
        source_port: u16::from_be_bytes([ports[0], ports[1]]),
        destination_port: u16::from_be_bytes([ports[2], ports[3]]),
        length: u16::from_be_bytes([ports[4], ports[5]]),
        checksum: 0,
    };
    if let Ok((ip, _)) = Ipv4Header::from_slice(header) {
        return udp_header.calc_checksum_ipv4(&ip, payload).unwrap_or(0);
    }
    let Ok((mut ip, _)) = Ipv6Header::from_slice(header) else {
        return 0;
    };
    // RFC 8200 section 8.1: with a routing header, the pseudo-header has the final destination.
    if let Some(last) = final_segment(header) {
        ip.destination = last;
    }
    udp_header.calc_checksum_ipv6(&ip, payload).unwrap_or(0)
}

fn final_segment(header: &[u8]) -> Option<[u8; 16]> {
    crate::ipv6_ext::ExtHeaders::new(header)
        .flatten()
        .filter(|h| h.layer == Layer::Routing)
        .find_map(|h| {
            let routing = header.get(h.start..h.start + h.len)?;
            let left = *routing.get(3)?;
            (left > 0 && *routing.get(2)? == 4)
                .then(|| routing.get(8..24)?.first_chunk().copied())
                .flatten()
        })
}

/// The octets of one part's header in front of `inner`, and how it is announced itself.
fn one(
    part: Part<'_>,
    inner: &[u8],
    next: Announced,
    profile: &Profile,
) -> Result<(Vec<u8>, Announced)> {
    let ip = |protocol| Announced {
        ether_type: 0,
        protocol,
    };
    let bytes: Vec<u8>;
    let this = match part {
        Part::Ethernet {
            source,
            destination,
        } => {
            let ether_type = if next.ether_type < 1536 {
                u16_len(Layer::Ethernet, inner.len())?
            } else {
                next.ether_type
            };
            let header = Ethernet2Header {
                source,
                destination,
                ether_type: EtherType(ether_type),
            };
            bytes = header.to_bytes().to_vec();
            ip(next_header::ETHERNET)
        }
        Part::Vlan {
            id,
            priority,
            service,
        } => {
            let header = SingleVlanHeader {
                pcp: VlanPcp::try_new(priority)
                    .map_err(|_| wide(Layer::Vlan, "PCP", priority.into(), "0 to 7"))?,
                drop_eligible_indicator: false,
                vlan_id: VlanId::try_new(id)
                    .map_err(|_| wide(Layer::Vlan, "VID", id.into(), "0 to 4095"))?,
                ether_type: EtherType(next.ether_type),
            };
            bytes = header.to_bytes().to_vec();
            let tpid = if service {
                EtherType::PROVIDER_BRIDGING
            } else {
                EtherType::VLAN_TAGGED_FRAME
            };
            Announced {
                ether_type: tpid.0,
                protocol: next_header::NONE,
            }
        }
        Part::Mpls {
            label,
            traffic_class,
            ttl,
        } => {
            let bottom = u32::from(next.protocol != next_header::MPLS);
            let entry = (label & 0x000F_FFFF) << 12
                | u32::from(traffic_class & 7) << 9
                | bottom << 8
                | u32::from(ttl);
            bytes = entry.to_be_bytes().to_vec();
            Announced {
                ether_type: crate::frame::ETHERTYPE_MPLS,
                protocol: next_header::MPLS,
            }
        }
        Part::Ipv4 {
            source,
            destination,
            tos,
            ttl,
            id,
            options,
        } => {
            let options = Ipv4Options::try_from(options)
                .map_err(|_| Error::length(Layer::Ipv4, 0, "options", options.len(), 0, 40))?;
            let mut header = Ipv4Header {
                dscp: IpDscp::try_new(tos >> 2).unwrap_or_default(),
                ecn: etherparse::IpEcn::try_new(tos & 3).unwrap_or_default(),
                total_len: 0,
                identification: id,
                dont_fragment: true,
                more_fragments: false,
                fragment_offset: IpFragOffset::ZERO,
                time_to_live: ttl,
                protocol: IpNumber(next.protocol),
                header_checksum: 0,
                source: source.octets(),
                destination: destination.octets(),
                options,
            };
            header.total_len = u16_len(Layer::Ipv4, header.header_len() + inner.len())?;
            header.header_checksum = header.calc_header_checksum();
            bytes = header.to_bytes().to_vec();
            Announced {
                ether_type: EtherType::IPV4.0,
                protocol: next_header::IPV4,
            }
        }
        Part::Ipv6 {
            source,
            destination,
            traffic_class,
            flow_label,
            hop_limit,
        } => {
            let header = Ipv6Header {
                traffic_class,
                flow_label: Ipv6FlowLabel::try_new(flow_label)
                    .map_err(|_| wide(Layer::Ipv6, "flow label", flow_label.into(), "20 bits"))?,
                payload_length: u16_len(Layer::Ipv6, inner.len())?,
                next_header: IpNumber(next.protocol),
                hop_limit,
                source: source.octets(),
                destination: destination.octets(),
            };
            bytes = header.to_bytes().to_vec();
            Announced {
                ether_type: EtherType::IPV6.0,
                protocol: next_header::IPV6,
            }
        }
        Part::HopByHop(options) => {
            bytes = options_header(Layer::HopByHop, options, next.protocol, profile)?;
            ip(next_header::HOP_BY_HOP)
        }
        Part::DestinationOptions(options) => {
            bytes = options_header(Layer::DestinationOptions, options, next.protocol, profile)?;
            ip(next_header::DESTINATION_OPTIONS)
        }
        Part::SegmentRouting { left, segments } => {
            let units = segments.len() * 2;
            let last = segments.len().saturating_sub(1) as u8;
            let Ok(units) = u8::try_from(units) else {
                return Err(Error::length(
                    Layer::Routing,
                    1,
                    "Hdr Ext Len",
                    units,
                    0,
                    255,
                ));
            };
            let mut header = vec![next.protocol, units, 4, left, last, 0, 0, 0];
            header.extend(segments.iter().flat_map(Ipv6Addr::octets));
            bytes = header;
            ip(next_header::ROUTING)
        }
        Part::Fragment { offset, more, id } => {
            let field = offset & 0xFFF8 | u16::from(more);
            let mut header = vec![next.protocol, 0];
            header.extend(field.to_be_bytes());
            header.extend(id.to_be_bytes());
            bytes = header;
            ip(next_header::FRAGMENT)
        }
        Part::RawExtension(number, raw) => {
            let mut header = raw.to_vec();
            put(&mut header, 0, &[next.protocol]);
            bytes = header;
            ip(number)
        }
        Part::Udp {
            source,
            destination,
            ..
        } => {
            let header = UdpHeader {
                source_port: source,
                destination_port: destination,
                length: u16_len(Layer::Udp, 8 + inner.len())?,
                checksum: 0,
            };
            bytes = header.to_bytes().to_vec();
            ip(next_header::UDP)
        }
        Part::Vxlan { vni } => {
            let [_, a, b, c] = vni.to_be_bytes();
            bytes = vec![0x08, 0, 0, 0, a, b, c, 0];
            next
        }
        Part::Bth(repr) => {
            let mut header = vec![0; repr.buffer_len()];
            repr.emit(&mut header)?;
            bytes = header;
            next
        }
        Part::Cnp(repr) => {
            let mut header = vec![0; repr.buffer_len()];
            repr.emit(&mut header)?;
            bytes = header;
            next
        }
        Part::Bytes(raw) => {
            bytes = raw.to_vec();
            next
        }
        Part::Payload {
            ether_type,
            protocol,
            bytes: raw,
        } => {
            bytes = raw.to_vec();
            Announced {
                ether_type,
                protocol,
            }
        }
        Part::Icrc(_) => {
            bytes = vec![0; ICRC_LEN];
            next
        }
    };
    Ok((bytes, this))
}

fn options_header(
    layer: Layer,
    options: &[OptionPart<'_>],
    next: u8,
    profile: &Profile,
) -> Result<Vec<u8>> {
    let mut out = vec![0; MAX_OPTIONS_HEADER];
    let mut writer = OptionsWriter::new(layer, &mut out);
    for option in options {
        match *option {
            OptionPart::FastCnp(repr) => repr.emit(profile, &mut writer)?,
            OptionPart::ProxyAddress(address) => address.emit(profile, &mut writer)?,
            OptionPart::Ioam(ioam) => {
                writer.option((4, 0), profile.ioam_option, ioam.buffer_len(), |data| {
                    ioam.emit(data)
                })?;
            }
            OptionPart::Raw(kind, align, data) => {
                writer.option(align, kind, data.len(), |place| {
                    place.copy_from_slice(data);
                    Ok(())
                })?;
            }
        }
    }
    let len = writer.finish(next)?;
    out.truncate(len);
    Ok(out)
}

fn u16_len(layer: Layer, len: usize) -> Result<u16> {
    u16::try_from(len).map_err(|_| Error::length(layer, 0, "length", len, 0, usize::from(u16::MAX)))
}

fn wide(layer: Layer, field: &'static str, value: u64, expected: &'static str) -> Error {
    Error::value(layer, 0, field, value, expected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bth::Qp;
    use crate::frame::{End, Frame, LinkType};
    use crate::icrc::{Reading, Verdict};
    use crate::notification::{Kind, Notification, Origin};
    use crate::{IcrcCheck, Subject};

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

    #[test]
    fn a_fast_cnp_is_118_octets_and_breaks_no_rule() {
        let bytes = fast_cnp(Reading::Covered);
        assert_eq!(bytes.len(), 118);
        let frame = read(&bytes);
        assert_eq!(frame.end(), End::Complete);
        assert_eq!(frame.verify_icrc(), Verdict::Good(Some(Reading::Covered)));
        let n = Notification::of(&frame, IcrcCheck::On).unwrap();
        assert!(n.findings.is_empty(), "{:?}", n.findings);
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
    fn a_cnp_cut_behind_its_bth_still_notifies() {
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
            let n = Notification::of(&frame, IcrcCheck::On);
            assert_eq!(n.map(|n| n.kind), known.then_some(Kind::FastCnp1), "{len}");
        }
    }

    #[test]
    fn every_reading_of_the_icrc_is_named() {
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
            let n = Notification::of(&frame, IcrcCheck::On).unwrap();
            assert!(n.findings.is_empty(), "{tunnel:?} {:?}", n.findings);
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
                let mut findings = crate::Findings::new();
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
        let ip = Ipv6Header::from_slice(&bytes).unwrap().0;
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
