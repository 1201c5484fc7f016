//! The notifications as whole IP packets, written into a caller's buffer without allocation.
//!
//! For nodes that answer at line rate. `compose.rs` builds anything from parts, and allocates; what is written here is
//! octet for octet what it would build.

use crate::cnp::{CNP_LEN, CnpRepr, DEFAULT_TRAFFIC_CLASS, DEFAULT_UDP_SOURCE};
use crate::error::{Error, Result};
use crate::fast_cnp::FastCnpRepr;
use crate::icrc::{self, Policy};
use crate::ipv6_ext::{OptionsWriter, next_header};
use crate::layer::Layer;
use crate::octets::put;
use crate::profile::Profile;
use crate::proxy_cn::{Family, ProxyCnRepr, invoking_room};
use crate::wan_fcn::{WAN_FCN_LEN, WanFcnRepr};
use etherparse::{
    IpDscp, IpEcn, IpFragOffset, IpNumber, Ipv4Header, Ipv4Options, Ipv6FlowLabel, Ipv6Header,
    UdpHeader,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const IPV4_LEN: usize = 20;
const IPV6_LEN: usize = 40;
const UDP_LEN: usize = 8;
/// Hop limit or TTL unless told otherwise.
pub const DEFAULT_HOP_LIMIT: u8 = 64;

/// The IP and UDP headers around a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carrier {
    /// Source address.
    pub source: IpAddr,
    /// Destination address, of the same family.
    pub destination: IpAddr,
    /// DSCP (6 bits) and ECN (2 bits).
    pub traffic_class: u8,
    /// IPv6 flow label, 20 bits; IPv4 has none.
    pub flow_label: u32,
    /// Hop limit or TTL.
    pub hop_limit: u8,
    /// UDP source port.
    pub udp_source: u16,
}

impl Carrier {
    /// Between these addresses, with the traffic class and UDP source port of CNPs, and flow label 0.
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
}

/// Writes a CNP with its ICRC, and returns the packet's length.
///
/// # Errors
/// `out` is too short, the addresses are of two families, or the flow label needs more than 20 bits.
pub fn cnp(carrier: &Carrier, cnp: &CnpRepr, profile: &Profile, out: &mut [u8]) -> Result<usize> {
    roce(carrier, None, cnp, profile, out)
}

/// Writes a Fast CNP with its ICRC, and returns the packet's length.
///
/// # Errors
/// As [`cnp`](fn@cnp); IPv4 addresses; a trace too long for option 2.
pub fn fast_cnp(
    carrier: &Carrier,
    option: &FastCnpRepr<'_>,
    cnp: &CnpRepr,
    profile: &Profile,
    out: &mut [u8],
) -> Result<usize> {
    roce(carrier, Some(option), cnp, profile, out)
}

fn roce(
    carrier: &Carrier,
    option: Option<&FastCnpRepr<'_>>,
    cnp: &CnpRepr,
    profile: &Profile,
    out: &mut [u8],
) -> Result<usize> {
    let headers = Headers::new(carrier, profile.rocev2_port, option, CNP_LEN)?;
    let packet = headers.write(profile, out)?;
    cnp.emit(packet.get_mut(headers.payload..).unwrap_or_default())?;
    // RoCEv2 sends UDP checksum 0; the ICRC protects it.
    icrc::fill(packet, headers.udp, Policy::Compute(profile.icrc_reading));
    Ok(packet.len())
}

/// Writes a proxy notification that quotes as much of the invoking packet as the draft allows (an IP packet of at most
/// 576 or 1280 octets, section 4), and returns the packet's length.
///
/// # Errors
/// As [`cnp`](fn@cnp); a five-tuple of two families.
pub fn proxy_cn(
    carrier: &Carrier,
    message: &ProxyCnRepr<'_>,
    profile: &Profile,
    out: &mut [u8],
) -> Result<usize> {
    let outer = Family::of(carrier.source);
    let room = invoking_room(
        outer,
        ip_len(carrier.source) + UDP_LEN,
        Family::of(message.five_tuple.source),
    );
    let invoking = message.invoking;
    let message = ProxyCnRepr {
        invoking: invoking.get(..room).unwrap_or(invoking),
        ..*message
    };
    let headers = Headers::new(carrier, profile.proxy_cn_port, None, message.buffer_len())?;
    let packet = headers.write(profile, out)?;
    message.emit(packet.get_mut(headers.payload..).unwrap_or_default())?;
    headers.checksum(packet);
    Ok(packet.len())
}

/// Writes a Fast CNP in the WAN, and returns the packet's length.
///
/// # Errors
/// As [`cnp`](fn@cnp).
pub fn wan_fcn(
    carrier: &Carrier,
    message: &WanFcnRepr,
    profile: &Profile,
    out: &mut [u8],
) -> Result<usize> {
    let headers = Headers::new(carrier, profile.wan_fcn_port, None, WAN_FCN_LEN)?;
    let packet = headers.write(profile, out)?;
    message.emit(packet.get_mut(headers.payload..).unwrap_or_default())?;
    headers.checksum(packet);
    Ok(packet.len())
}

const fn ip_len(address: IpAddr) -> usize {
    match address {
        IpAddr::V4(_) => IPV4_LEN,
        IpAddr::V6(_) => IPV6_LEN,
    }
}

/// The headers in front of a message, with their places.
struct Headers<'a> {
    ip: Ip,
    option: Option<&'a FastCnpRepr<'a>>,
    udp_header: UdpHeader,
    /// First octet of the UDP header.
    udp: usize,
    /// First octet of the message.
    payload: usize,
    /// Octets of the packet.
    len: usize,
}

enum Ip {
    V4(Ipv4Header),
    V6(Ipv6Header),
}

impl<'a> Headers<'a> {
    /// For a message of `payload_len` octets to UDP port `port`, behind `option` where there is one.
    fn new(
        carrier: &Carrier,
        port: u16,
        option: Option<&'a FastCnpRepr<'a>>,
        payload_len: usize,
    ) -> Result<Self> {
        let extension = option.map_or(0, FastCnpRepr::header_len);
        let udp = ip_len(carrier.source) + extension;
        let payload = udp + UDP_LEN;
        let udp_len = length(Layer::Udp, UDP_LEN + payload_len)?;
        let ip = match (carrier.source, carrier.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) if option.is_none() => {
                let total = length(Layer::Ipv4, payload + payload_len)?;
                Ip::V4(ipv4(carrier, source, destination, total))
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let len = length(Layer::Ipv6, extension + UDP_LEN + payload_len)?;
                let next = match option {
                    Some(_) => next_header::DESTINATION_OPTIONS,
                    None => next_header::UDP,
                };
                Ip::V6(ipv6(carrier, source, destination, len, next)?)
            }
            (_, destination) => {
                let family = if destination.is_ipv4() { 4 } else { 6 };
                let expected = match option {
                    Some(_) => "6, as a Fast CNP's",
                    None => "that of the source",
                };
                let field = "address family of the destination";
                return Err(Error::value(Layer::Ipv6, 0, field, family, expected));
            }
        };
        let udp_header = UdpHeader {
            source_port: carrier.udp_source,
            destination_port: port,
            length: udp_len,
            checksum: 0,
        };
        Ok(Self {
            ip,
            option,
            udp_header,
            udp,
            payload,
            len: payload + payload_len,
        })
    }

    /// Writes them, and returns the whole packet's place with the message still to be filled in.
    fn write<'b>(&self, profile: &Profile, out: &'b mut [u8]) -> Result<&'b mut [u8]> {
        let have = out.len();
        let Some(packet) = out.get_mut(..self.len) else {
            return Err(Error::buffer(Layer::Payload, self.len, have));
        };
        match &self.ip {
            Ip::V4(header) => put(packet, 0, &header.to_bytes()),
            Ip::V6(header) => put(packet, 0, &header.to_bytes()),
        }
        if let Some(option) = self.option {
            let place = packet.get_mut(IPV6_LEN..self.udp).unwrap_or_default();
            let mut writer = OptionsWriter::new(Layer::DestinationOptions, place);
            option.emit(profile, &mut writer)?;
            writer.finish(next_header::UDP)?;
        }
        put(packet, self.udp, &self.udp_header.to_bytes());
        Ok(packet)
    }

    /// Fills in the UDP checksum.
    fn checksum(&self, packet: &mut [u8]) {
        let payload = packet.get(self.payload..).unwrap_or_default();
        let checksum = match &self.ip {
            Ip::V4(header) => self.udp_header.calc_checksum_ipv4(header, payload),
            Ip::V6(header) => self.udp_header.calc_checksum_ipv6(header, payload),
        };
        // It fails only for payloads longer than a length field can say, which `new` has refused.
        put(packet, self.udp + 6, &checksum.unwrap_or(0).to_be_bytes());
    }
}

fn length(layer: Layer, len: usize) -> Result<u16> {
    u16::try_from(len).map_err(|_| Error::length(layer, 0, "length", len, 0, usize::from(u16::MAX)))
}

fn ipv4(carrier: &Carrier, source: Ipv4Addr, destination: Ipv4Addr, total_len: u16) -> Ipv4Header {
    let mut header = Ipv4Header {
        dscp: IpDscp::try_new(carrier.traffic_class >> 2).unwrap_or_default(),
        ecn: IpEcn::try_new(carrier.traffic_class & 3).unwrap_or_default(),
        total_len,
        // RFC 6864: of no meaning where fragmentation is forbidden.
        identification: 0,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset: IpFragOffset::ZERO,
        time_to_live: carrier.hop_limit,
        protocol: IpNumber::UDP,
        header_checksum: 0,
        source: source.octets(),
        destination: destination.octets(),
        options: Ipv4Options::default(),
    };
    header.header_checksum = header.calc_header_checksum();
    header
}

fn ipv6(
    carrier: &Carrier,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    payload_length: u16,
    next: u8,
) -> Result<Ipv6Header> {
    let flow_label = Ipv6FlowLabel::try_new(carrier.flow_label).map_err(|_| {
        let value = u64::from(carrier.flow_label);
        Error::value(Layer::Ipv6, 1, "flow label", value, "20 bits")
    })?;
    Ok(Ipv6Header {
        traffic_class: carrier.traffic_class,
        flow_label,
        payload_length,
        next_header: IpNumber(next),
        hop_limit: carrier.hop_limit,
        source: source.octets(),
        destination: destination.octets(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bth::Qp;
    use crate::compose::{self, OptionPart, Part, UdpChecksum};
    use crate::fast_cnp::MAX_TRACE_LEN;
    use crate::icrc::Reading;
    use crate::ioam::OptType;
    use crate::proxy_cn::FiveTuple;
    use proptest::prelude::*;

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
        fn cnps_are_what_compose_builds(carrier in carriers(), qp: u32, reading in 0usize..4) {
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
        fn fast_cnps_are_what_compose_builds(a: [u8; 16], b: [u8; 16], original: [u8; 16], qp: u32, reading in 0usize..4,
            trace in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..=MAX_TRACE_LEN)))
        {
            let profile = with_reading(reading);
            let carrier = Carrier::new(a.into(), b.into());
            let original_destination = original.into();
            let option = match &trace {
                None => FastCnpRepr::Option1 { original_destination },
                Some(trace) => FastCnpRepr::Option2 { reserved: 0, opt_type: OptType::Incremental, trace, original_destination },
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
        fn wan_fcns_are_what_compose_builds(carrier in carriers(), flow_label in 0u32..1 << 20, level in 0u8..8) {
            let repr = WanFcnRepr { flow_label, level, reserved: 0 };
            let mut message = [0; 4];
            repr.emit(&mut message).unwrap();
            let parts = [ip_part(&carrier), udp_part(&carrier, 1022, UdpChecksum::Compute), Part::Bytes(&message)];
            let mut out = [0xEE; 60];
            let len = wan_fcn(&carrier, &repr, &Profile::DEFAULT, &mut out).unwrap();
            prop_assert_eq!(&out[..len], compose::packet(&parts, &Profile::DEFAULT).unwrap());
        }

        #[test]
        fn proxy_notifications_are_what_compose_builds_and_never_too_long(carrier in carriers(), v6: bool, a: [u8; 16], b: [u8; 16],
            level in 0u8..8, invoking in proptest::collection::vec(any::<u8>(), 0..1500))
        {
            let [source, destination] = [a, b].map(|octets| {
                if v6 { IpAddr::from(octets) } else { IpAddr::from(*octets.first_chunk::<4>().unwrap()) }
            });
            let five_tuple = FiveTuple { source, destination, protocol: 17, source_port: 7, destination_port: 4791 };
            let repr = ProxyCnRepr { five_tuple, level, reserved: 0, invoking: &invoking };
            let mut out = [0xEE; 1280];
            let len = proxy_cn(&carrier, &repr, &Profile::DEFAULT, &mut out).unwrap();
            let most = Family::of(carrier.source).max_packet();
            let ip_and_udp = ip_len(carrier.source) + 8;
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
            reserved: 0,
            opt_type: OptType::Preallocated,
            trace: &trace,
            original_destination: Ipv6Addr::LOCALHOST,
        };
        let carrier = Carrier::new(v6, v6);
        assert!(fast_cnp(&carrier, &option, &repr, &Profile::DEFAULT, &mut out).is_err());
    }
}
