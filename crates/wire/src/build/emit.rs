//! Writes notifications as whole IP packets into a caller's buffer without allocation, for nodes
//! that respond at line rate, and frames as mirrors copy them. `compose.rs` writes the parts.

use crate::cnp::{CnpRepr, DEFAULT_TRAFFIC_CLASS, DEFAULT_UDP_SOURCE};
use crate::compose::{DEFAULT_HOP_LIMIT, OptionPart, Part, write};
use crate::error::{Error, Result};
use crate::erspan::{Direction, Erspan, Erspan2, Erspan3, Granularity};
use crate::fast_cnp::FastCnpRepr;
use crate::frame::{Frame, LinkType};
use crate::header::{ethernet, ipv4, ipv6, udp};
use crate::icrc::Policy;
use crate::identified;
use crate::ipv6_ext::next_header;
use crate::layer::Layer;
use crate::octets::u16_at;
use crate::profile::{GENEVE_PORT, GTP_U_PORT, Profile, SFLOW_PORT, VXLAN_GPE_PORT};
use crate::proxy_cn::{Family, ProxyCnRepr, invoking_room};
use crate::wan_fcn::WanFcnRepr;
use std::net::IpAddr;

/// IP and UDP headers around a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carrier {
    /// Source address.
    pub source: IpAddr,
    /// Destination address, of the same family.
    pub destination: IpAddr,
    /// DSCP (6 bits) and ECN (2 bits).
    pub traffic_class: u8,
    /// IPv6 flow label, 20 bits; not used for IPv4.
    pub flow_label: u32,
    /// Hop limit or TTL.
    pub hop_limit: u8,
    /// UDP source port.
    pub udp_source: u16,
}

impl Carrier {
    /// Creates a carrier between these addresses, with the traffic class and UDP source port of
    /// CNPs, and flow label 0.
    #[must_use]
    pub const fn new(source: IpAddr, destination: IpAddr) -> Self {
        Self {
            source,
            destination,
            traffic_class: DEFAULT_TRAFFIC_CLASS,
            flow_label: 0,
            hop_limit: DEFAULT_HOP_LIMIT,
            udp_source: DEFAULT_UDP_SOURCE,
        }
    }

    /// Returns the IP header.
    ///
    /// # Errors
    /// Fails if the addresses are of different families.
    pub fn ip(&self) -> Result<Part<'static>> {
        Ok(match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => Part::Ipv4 {
                source,
                destination,
                tos: self.traffic_class,
                ttl: self.hop_limit,
                // RFC 6864: the field has no meaning if fragmentation is forbidden.
                id: 0,
                options: &[],
            },
            (IpAddr::V6(source), IpAddr::V6(destination)) => Part::Ipv6 {
                source,
                destination,
                traffic_class: self.traffic_class,
                flow_label: self.flow_label,
                hop_limit: self.hop_limit,
            },
            (_, destination) => return Err(family(destination, "that of the source")),
        })
    }
}

fn family(destination: IpAddr, expected: &'static str) -> Error {
    let found = if destination.is_ipv4() { 4 } else { 6 };
    let field = "address family of the destination";
    Error::value(Layer::Ipv6, 0, field, found, expected)
}

/// Writes a CNP with its ICRC, and returns the packet's length.
///
/// # Errors
/// Fails if `out` is too short, the addresses are of different families, or the flow label needs
/// more than 20 bits.
pub fn cnp(carrier: &Carrier, cnp: &CnpRepr, profile: &Profile, out: &mut [u8]) -> Result<usize> {
    // RoCEv2 sends UDP checksum 0; the ICRC protects it.
    let udp = Part::udp(carrier.udp_source, profile.rocev2_port);
    let icrc = Part::Icrc(Policy::Compute(profile.icrc_reading));
    write(&[carrier.ip()?, udp, Part::Cnp(*cnp), icrc], profile, out)
}

/// Writes a Fast CNP with its ICRC, and returns the packet's length.
///
/// # Errors
/// Fails like [`cnp`](fn@cnp), and on IPv4 addresses or a trace too long for option 2.
pub fn fast_cnp(
    carrier: &Carrier,
    option: &FastCnpRepr<'_>,
    cnp: &CnpRepr,
    profile: &Profile,
    out: &mut [u8],
) -> Result<usize> {
    if carrier.destination.is_ipv4() {
        return Err(family(carrier.destination, "6 (Fast CNPs use IPv6)"));
    }
    let options = [OptionPart::FastCnp(*option)];
    let parts = [
        carrier.ip()?,
        Part::DestinationOptions(&options),
        Part::udp(carrier.udp_source, profile.rocev2_port),
        Part::Cnp(*cnp),
        Part::Icrc(Policy::Compute(profile.icrc_reading)),
    ];
    write(&parts, profile, out)
}

/// Writes a proxy notification that quotes as much of the invoking packet as the draft allows (an
/// IP packet of at most 576 or 1280 octets, section 4), and returns the packet's length.
///
/// # Errors
/// Fails like [`cnp`](fn@cnp), and on a five-tuple of different families.
pub fn proxy_cn(
    carrier: &Carrier,
    message: &ProxyCnRepr<'_>,
    profile: &Profile,
    out: &mut [u8],
) -> Result<usize> {
    let outer = Family::from_address(carrier.source);
    let ip = match outer {
        Family::V4 => ipv4::LEN,
        Family::V6 => ipv6::LEN,
    };
    let room = invoking_room(
        outer,
        ip + udp::LEN,
        Family::from_address(message.five_tuple.source),
    );
    let invoking = message.invoking;
    let message = ProxyCnRepr {
        invoking: invoking.get(..room).unwrap_or(invoking),
        ..*message
    };
    let udp = Part::udp_summed(carrier.udp_source, profile.proxy_cn_port);
    write(&[carrier.ip()?, udp, Part::ProxyCn(message)], profile, out)
}

/// Writes a Fast CNP in the WAN, and returns the packet's length.
///
/// # Errors
/// Fails like [`cnp`](fn@cnp).
pub fn wan_fcn(
    carrier: &Carrier,
    message: &WanFcnRepr,
    profile: &Profile,
    out: &mut [u8],
) -> Result<usize> {
    let udp = Part::udp_summed(carrier.udp_source, profile.wan_fcn_port);
    write(&[carrier.ip()?, udp, Part::WanFcn(*message)], profile, out)
}

identified! {
    /// Encapsulation in which a mirror carries the frames that it copies, with its name in options.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    Encapsulation {
        /// ERSPAN type I.
        Erspan1 = "erspan1",
        /// ERSPAN type II.
        Erspan2 = "erspan2",
        /// ERSPAN type III.
        Erspan3 = "erspan3",
        /// GRE with a sequence number.
        Gre = "gre",
        /// NVGRE: GRE with a key.
        Nvgre = "nvgre",
        /// Geneve.
        Geneve = "geneve",
        /// VXLAN-GPE.
        VxlanGpe = "vxlan-gpe",
        /// GTP-U: carries only the IP packet.
        GtpU = "gtpu",
    }
}

/// Ethernet header from a switch to a collector.
const LINK: Part<'_> = Part::Ethernet {
    source: [2, 0, 0, 0, 0xFE, 1],
    destination: [2, 0, 0, 0, 0xFE, 2],
};

/// Writes an [sFlow datagram](crate::sflow) as an Ethernet frame from a switch to a collector, and
/// returns the frame's length.
///
/// # Errors
/// Fails if `out` is too short or the addresses are of different families.
pub fn sflow(
    source: IpAddr,
    destination: IpAddr,
    datagram: &[u8],
    profile: &Profile,
    out: &mut [u8],
) -> Result<usize> {
    let carrier = Carrier {
        traffic_class: 0,
        ..Carrier::new(source, destination)
    };
    let udp = Part::udp_summed(SFLOW_PORT, SFLOW_PORT);
    let parts = [LINK, carrier.ip()?, udp, Part::Bytes(datagram)];
    write(&parts, profile, out)
}

/// A mirrored copy of a frame, sent from a mirror to a collector.
#[derive(Clone, Copy, Debug)]
pub struct MirroredFrame {
    /// Encapsulation of the copy.
    pub encapsulation: Encapsulation,
    /// Mirror's address.
    pub source: IpAddr,
    /// Collector's address, of the same family.
    pub destination: IpAddr,
    /// Mirror's session, 10 bits; tunnels carry it as network identifier, key or endpoint
    /// identifier.
    pub session: u16,
    /// Mirrored port.
    pub port: u16,
    /// Sequence number of the copy.
    pub sequence: u32,
    /// Time at which the frame was copied, in nanoseconds.
    pub at: u64,
}

impl MirroredFrame {
    /// Maximum number of octets before the frame.
    pub const MAX_HEADERS: usize = 128;

    /// Writes the copy of an Ethernet frame to the start of `out`. `frame` is the captured part of
    /// a frame of `wire_len` octets. Returns the number of octets written and the length of the
    /// copy on the wire, or `None` if the frame has no IP packet and the encapsulation carries only
    /// IP.
    ///
    /// # Errors
    /// Fails if `out` is too short, the addresses are of different families, or the frame is too
    /// long to be carried.
    pub fn write(
        &self,
        frame: &[u8],
        wire_len: usize,
        profile: &Profile,
        out: &mut [u8],
    ) -> Result<Option<(usize, usize)>> {
        let read = Frame::parse(frame, wire_len, LinkType::Ethernet, profile);
        let (mut bytes, mut end) = (frame, wire_len);
        let (mut ether_type, mut protocol) = (0, next_header::ETHERNET);
        if self.encapsulation == Encapsulation::GtpU {
            let mut spans = read.spans().iter();
            let Some(ip) = spans.find(|s| !matches!(s.layer, Layer::Ethernet | Layer::Vlan)) else {
                return Ok(None);
            };
            (ether_type, protocol) = match ip.layer {
                Layer::Ipv4 => (ethernet::IPV4, next_header::IPV4),
                Layer::Ipv6 => (ethernet::IPV6, next_header::IPV6),
                _ => return Ok(None),
            };
            bytes = frame
                .get(ip.start..ip.end.min(frame.len()))
                .unwrap_or_default();
            end = ip.end - ip.start;
        }
        let tag = (read.spans().get(1)).filter(|span| span.layer == Layer::Vlan);
        let tag = tag.map(|span| u16_at(frame, span.start));
        let carrier = Carrier {
            traffic_class: 0,
            ..Carrier::new(self.source, self.destination)
        };
        let [first, second] = self.headers(tag);
        let behind = end.saturating_sub(bytes.len());
        let parts = [
            LINK,
            carrier.ip()?,
            first,
            second,
            Part::Payload {
                ether_type,
                protocol,
                bytes,
            },
            Part::Trailing {
                ether_type,
                protocol,
                len: behind,
            },
        ];
        let len = write(&parts, profile, out)?;
        Ok(Some((len, len + behind)))
    }

    /// Returns the headers between the IP header and the frame, whose VLAN tag is `tag`.
    fn headers(&self, tag: Option<u16>) -> [Part<'static>; 2] {
        let session = u32::from(self.session);
        let gre = |key, sequence| Part::Gre {
            checksum: false,
            key,
            sequence,
        };
        // The source port selects the path: one for each session.
        let udp = |port| Part::udp(0xC000 | self.session, port);
        let (vlan, cos) = tag.map_or((0, 0), |tag| (tag & 0x0FFF, (tag >> 13) as u8));
        match self.encapsulation {
            Encapsulation::Erspan1 => [gre(None, None), Part::Erspan(Erspan::I)],
            Encapsulation::Erspan2 => {
                let header = Erspan2 {
                    vlan,
                    cos,
                    // The copy still has the tag, if the frame had one.
                    encapsulation: if tag.is_some() { 3 } else { 0 },
                    session: self.session,
                    index: self.port.into(),
                    truncated: false,
                };
                let header = Part::Erspan(Erspan::II(header));
                [gre(None, Some(self.sequence)), header]
            }
            Encapsulation::Erspan3 => {
                // Platform 3: the port, and the high half of the time stamp.
                let ticks = self.at / 100;
                let port = u32::from(self.port & 0x3FFF);
                let words = [3 << 26 | port, (ticks >> 32) as u32].map(u32::to_be_bytes);
                let mut platform = [0; 8];
                for (place, octet) in platform.iter_mut().zip(words.as_flattened()) {
                    *place = *octet;
                }
                let header = Erspan3 {
                    vlan,
                    cos,
                    session: self.session,
                    timestamp: ticks as u32,
                    direction: Direction::Egress,
                    granularity: Granularity::Nanos100,
                    platform: Some(platform),
                    ..Erspan3::default()
                };
                let header = Part::Erspan(Erspan::III(header));
                [gre(None, Some(self.sequence)), header]
            }
            Encapsulation::Gre => [gre(None, Some(self.sequence)), Part::Bytes(&[])],
            // RFC 7637: 24 bits for the network, 8 for the flow.
            Encapsulation::Nvgre => [gre(Some(session << 8), None), Part::Bytes(&[])],
            Encapsulation::Geneve => {
                let header = Part::Geneve {
                    vni: session,
                    options: &[],
                };
                [udp(GENEVE_PORT), header]
            }
            Encapsulation::VxlanGpe => [udp(VXLAN_GPE_PORT), Part::VxlanGpe { vni: session }],
            Encapsulation::GtpU => {
                let header = Part::GtpU {
                    teid: session,
                    sequence: Some(self.sequence as u16),
                    extensions: &[],
                };
                [Part::udp(GTP_U_PORT, GTP_U_PORT), header]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bth::Qp;
    use crate::compose::{self, OptionPart, Part, UdpChecksum};
    use crate::fast_cnp::MAX_TRACE_LEN;
    use crate::icrc::Reading;
    use crate::ioam::{IoamOption, OptType};
    use crate::proxy_cn::FiveTuple;
    use proptest::prelude::*;
    use std::net::Ipv6Addr;

    fn ip_len(carrier: &Carrier) -> usize {
        compose::len(&[ip_part(carrier)], &Profile::DEFAULT)
    }

    fn ip_part(carrier: &Carrier) -> Part<'static> {
        match (carrier.source, carrier.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => Part::Ipv4 {
                source,
                destination,
                tos: carrier.traffic_class,
                ttl: carrier.hop_limit,
                id: 0,
                options: &[],
            },
            (IpAddr::V6(source), IpAddr::V6(destination)) => Part::Ipv6 {
                source,
                destination,
                traffic_class: carrier.traffic_class,
                flow_label: carrier.flow_label,
                hop_limit: carrier.hop_limit,
            },
            _ => panic!("two families"),
        }
    }

    fn udp_part(carrier: &Carrier, destination: u16, checksum: UdpChecksum) -> Part<'static> {
        Part::Udp {
            source: carrier.udp_source,
            destination,
            checksum,
        }
    }

    prop_compose! {
        fn carriers()(v6: bool, a: [u8; 16], b: [u8; 16], traffic_class: u8, flow_label in 0u32..1 << 20, hop_limit: u8, udp_source: u16) -> Carrier {
            let [source, destination] = [a, b].map(|octets| {
                if v6 { IpAddr::from(octets) } else { IpAddr::from(*octets.first_chunk::<4>().unwrap()) }
            });
            let flow_label = if v6 { flow_label } else { 0 };
            Carrier { source, destination, traffic_class, flow_label, hop_limit, udp_source }
        }
    }

    fn with_reading(reading: usize) -> Profile {
        Profile {
            icrc_reading: Reading::ALL[reading],
            ..Profile::DEFAULT
        }
    }

    proptest! {
        #[test]
        fn cnps_match_compose(carrier in carriers(), qp: u32, reading in 0usize..4) {
            let profile = with_reading(reading);
            let repr = CnpRepr::new(Qp::truncate(qp));
            let parts = [ip_part(&carrier), udp_part(&carrier, 4791, UdpChecksum::Zero), Part::Cnp(repr),
                Part::Icrc(Policy::Compute(profile.icrc_reading))];
            let mut out = [0xEE; 100];
            let len = cnp(&carrier, &repr, &profile, &mut out).unwrap();
            prop_assert_eq!(&out[..len], compose::packet(&parts, &profile).unwrap());
            prop_assert!(out[len..].iter().all(|octet| *octet == 0xEE));
            for short in 0..len {
                prop_assert!(cnp(&carrier, &repr, &profile, &mut out[..short]).is_err());
            }
        }

        #[test]
        fn fast_cnps_match_compose(a: [u8; 16], b: [u8; 16], original: [u8; 16], qp: u32, reading in 0usize..4,
            trace in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..=MAX_TRACE_LEN)))
        {
            let profile = with_reading(reading);
            let carrier = Carrier::new(a.into(), b.into());
            let original_destination = original.into();
            let option = match &trace {
                None => FastCnpRepr::Option1 { original_destination },
                Some(trace) => FastCnpRepr::Option2 { ioam: IoamOption { reserved: 0, opt_type: OptType::Incremental, body: trace }, original_destination },
            };
            let repr = CnpRepr::new(Qp::truncate(qp));
            let options = [OptionPart::FastCnp(option)];
            let parts = [ip_part(&carrier), Part::DestinationOptions(&options), udp_part(&carrier, 4791, UdpChecksum::Zero),
                Part::Cnp(repr), Part::Icrc(Policy::Compute(profile.icrc_reading))];
            let mut out = [0xEE; 400];
            let len = fast_cnp(&carrier, &option, &repr, &profile, &mut out).unwrap();
            prop_assert_eq!(&out[..len], compose::packet(&parts, &profile).unwrap());
            for short in 0..len {
                prop_assert!(fast_cnp(&carrier, &option, &repr, &profile, &mut out[..short]).is_err());
            }
        }

        #[test]
        fn wan_fcns_match_compose(carrier in carriers(), flow_label in 0u32..1 << 20, level in 0u8..8) {
            let repr = WanFcnRepr { flow_label, level, reserved: 0 };
            let message = repr.to_bytes();
            let parts = [ip_part(&carrier), udp_part(&carrier, 1022, UdpChecksum::Compute), Part::Bytes(&message)];
            let mut out = [0xEE; 60];
            let len = wan_fcn(&carrier, &repr, &Profile::DEFAULT, &mut out).unwrap();
            prop_assert_eq!(&out[..len], compose::packet(&parts, &Profile::DEFAULT).unwrap());
        }

        #[test]
        fn proxy_notifications_match_compose_within_limits(carrier in carriers(), v6: bool, a: [u8; 16], b: [u8; 16],
            level in 0u8..8, invoking in proptest::collection::vec(any::<u8>(), 0..1500))
        {
            let [source, destination] = [a, b].map(|octets| {
                if v6 { IpAddr::from(octets) } else { IpAddr::from(*octets.first_chunk::<4>().unwrap()) }
            });
            let five_tuple = FiveTuple { source, destination, protocol: 17, source_port: 7, destination_port: 4791 };
            let repr = ProxyCnRepr { five_tuple, level, reserved: 0, invoking: &invoking };
            let mut out = [0xEE; 1280];
            let len = proxy_cn(&carrier, &repr, &Profile::DEFAULT, &mut out).unwrap();
            let most = Family::from_address(carrier.source).max_packet();
            let ip_and_udp = ip_len(&carrier) + 8;
            prop_assert_eq!(len, most.min(ip_and_udp + repr.buffer_len()));

            let quoted = len - ip_and_udp - (repr.buffer_len() - invoking.len());
            let cut = ProxyCnRepr { invoking: &invoking[..quoted], ..repr };
            let mut message = vec![0; cut.buffer_len()];
            cut.emit(&mut message).unwrap();
            let parts = [ip_part(&carrier), udp_part(&carrier, 1021, UdpChecksum::Compute), Part::Bytes(&message)];
            prop_assert_eq!(&out[..len], compose::packet(&parts, &Profile::DEFAULT).unwrap());
        }
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        let (v4, v6) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([0x2001; 8]));
        let repr = CnpRepr::new(Qp::truncate(1));
        let mut out = [0; 400];
        let mut refused = |carrier: Carrier| {
            let e = cnp(&carrier, &repr, &Profile::DEFAULT, &mut out).unwrap_err();
            e.to_string()
        };
        assert!(refused(Carrier::new(v4, v6)).contains("that of the source"));
        assert!(refused(Carrier::new(v6, v4)).contains("that of the source"));
        let wide = Carrier {
            flow_label: 1 << 20,
            ..Carrier::new(v6, v6)
        };
        assert!(refused(wide).contains("20 bits"));
        let option = FastCnpRepr::Option1 {
            original_destination: Ipv6Addr::LOCALHOST,
        };
        let carrier = Carrier::new(v4, v4);
        assert!(fast_cnp(&carrier, &option, &repr, &Profile::DEFAULT, &mut out).is_err());
        let trace = [0; MAX_TRACE_LEN + 1];
        let option = FastCnpRepr::Option2 {
            ioam: IoamOption {
                reserved: 0,
                opt_type: OptType::Preallocated,
                body: &trace,
            },
            original_destination: Ipv6Addr::LOCALHOST,
        };
        let carrier = Carrier::new(v6, v6);
        assert!(fast_cnp(&carrier, &option, &repr, &Profile::DEFAULT, &mut out).is_err());
    }
}
