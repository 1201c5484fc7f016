//! Notifications that roles send: small values that are only encoded as octets on request.

use fcn_observe::data::DataPacket;
use fcn_wire::cnp::CnpRepr;
use fcn_wire::emit::{self, Carrier};
use fcn_wire::fast_cnp::FastCnpRepr;
use fcn_wire::ioam::{OptType, Trace};
use fcn_wire::proxy_cn::{FiveTuple, ProxyCnRepr};
use fcn_wire::wan_fcn::WanFcnRepr;
use fcn_wire::{Frame, Kind, Profile, Qp, Result};
use std::net::{IpAddr, Ipv6Addr};

/// A notification to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutgoingNotification {
    /// A standard CNP (InfiniBand volume 1, Annex A17.9).
    Cnp {
        /// Source address: that of the receiver, the proxy or the congestion point.
        source: IpAddr,
        /// Address of the data sender.
        destination: IpAddr,
        /// QP at the data sender.
        qp: Qp,
    },
    /// A Fast CNP (draft-xiao-rtgwg-rocev2-fast-cnp section 4), with option 2 if the data packet
    /// has a trace that fits, otherwise option 1.
    FastCnp {
        /// Loopback address of the congestion point, or the receiver's address.
        source: Ipv6Addr,
        /// Address of the data sender.
        destination: Ipv6Addr,
        /// Destination address of the data packet.
        original_destination: Ipv6Addr,
        /// DestQP of the data packet.
        qp: Qp,
    },
    /// A notification to the proxy node (draft-xiao-rtgwg-proxy-congestion-notification section 4).
    ProxyCn {
        /// Address of the congestion point, of the proxy's family.
        source: IpAddr,
        /// Address of the proxy node.
        proxy: IpAddr,
        /// Five-tuple of the data packet.
        tuple: FiveTuple,
        /// Congestion level, 0 to 7.
        level: u8,
    },
    /// A Fast CNP in the WAN (draft-he-rtgwg-wan-fcn section 4.2).
    WanFcn {
        /// Address of the congestion point.
        source: Ipv6Addr,
        /// Address of the ingress PE.
        ingress: Ipv6Addr,
        /// Outer flow label of the data packet, 20 bits.
        flow_label: u32,
        /// Congestion level, 1 to 7; 0 if not given.
        level: u8,
        /// If true, the label is also copied into the message's own IPv6 header.
        copy_flow_label: bool,
    },
}

/// Parts of a notification that are copied from the data packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct DataPacketContext<'a> {
    /// IOAM option type and trace of the data packet, copied into a Fast CNP.
    pub trace: Option<(OptType, &'a [u8])>,
    /// The data packet from its IP header on, whose beginning a proxy notification quotes.
    pub invoking: &'a [u8],
}

impl<'a> DataPacketContext<'a> {
    /// Extracts the parts from the data packet `packet` in `frame`.
    #[must_use]
    pub fn new(packet: &DataPacket<'a>, frame: &Frame<'a>) -> Self {
        let bytes = frame.bytes();
        let invoking = frame
            .ip()
            .and_then(|ip| bytes.get(ip.start..ip.end.min(bytes.len())));
        Self {
            trace: packet.trace,
            invoking: invoking.unwrap_or_default(),
        }
    }

    /// True if a Fast CNP cannot carry the trace: it does not fit option 2, or is invalid.
    #[must_use]
    pub fn loses_trace(&self) -> bool {
        let option = self.option(Ipv6Addr::UNSPECIFIED);
        self.trace.is_some() && option.number() == 1
    }

    /// Returns the option of a Fast CNP about a packet to `original_destination`.
    fn option(&self, original_destination: Ipv6Addr) -> FastCnpRepr<'a> {
        FastCnpRepr::for_data_packet(original_destination, self.readable_trace()).0
    }

    fn readable_trace(&self) -> Option<Trace<'a>> {
        let (opt_type, bytes) = self.trace.filter(|(opt_type, _)| opt_type.is_trace())?;
        Trace::new_checked(opt_type, bytes).ok()
    }
}

impl OutgoingNotification {
    /// Maximum length of an IP packet written by [`emit`](Self::emit): that of a proxy notification
    /// over IPv6.
    pub const MAX_LEN: usize = fcn_wire::proxy_cn::MAX_IPV6_PACKET;

    /// Returns the kind of notification. A Fast CNP is always reported with option 1 here;
    /// [`emit`](Self::emit) returns the actual one.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Cnp { .. } => Kind::Cnp,
            Self::FastCnp { .. } => Kind::FastCnp1,
            Self::ProxyCn { .. } => Kind::ProxyCn,
            Self::WanFcn { .. } => Kind::WanFcn,
        }
    }

    /// Returns source and destination address of the IP packet.
    #[must_use]
    pub const fn addresses(&self) -> (IpAddr, IpAddr) {
        match *self {
            Self::Cnp {
                source,
                destination,
                ..
            } => (source, destination),
            Self::FastCnp {
                source,
                destination,
                ..
            } => (IpAddr::V6(source), IpAddr::V6(destination)),
            Self::ProxyCn { source, proxy, .. } => (source, proxy),
            Self::WanFcn {
                source, ingress, ..
            } => (IpAddr::V6(source), IpAddr::V6(ingress)),
        }
    }

    /// Writes the complete IP packet to the beginning of `out`, and returns its length and kind.
    ///
    /// # Errors
    /// `out` is too short ([`MAX_LEN`](Self::MAX_LEN) always suffices), the addresses are of
    /// different families, or a value is too wide for its field.
    pub fn emit(
        &self,
        context: &DataPacketContext<'_>,
        profile: &Profile,
        out: &mut [u8],
    ) -> Result<(usize, Kind)> {
        let (source, destination) = self.addresses();
        let carrier = Carrier::new(source, destination);
        let len = match *self {
            Self::Cnp { qp, .. } => emit::cnp(&carrier, &CnpRepr::new(qp), profile, out)?,
            Self::FastCnp {
                original_destination,
                qp,
                ..
            } => {
                let option = context.option(original_destination);
                let len = emit::fast_cnp(&carrier, &option, &CnpRepr::new(qp), profile, out)?;
                let kind = match option {
                    FastCnpRepr::Option1 { .. } => Kind::FastCnp1,
                    FastCnpRepr::Option2 { .. } => Kind::FastCnp2,
                };
                return Ok((len, kind));
            }
            Self::ProxyCn { tuple, level, .. } => {
                let message = ProxyCnRepr {
                    five_tuple: tuple,
                    level,
                    reserved: 0,
                    invoking: context.invoking,
                };
                emit::proxy_cn(&carrier, &message, profile, out)?
            }
            Self::WanFcn {
                flow_label,
                level,
                copy_flow_label,
                ..
            } => {
                let message = WanFcnRepr {
                    flow_label,
                    level,
                    reserved: 0,
                };
                let carrier = Carrier {
                    flow_label: if copy_flow_label { flow_label } else { 0 },
                    ..carrier
                };
                emit::wan_fcn(&carrier, &message, profile, out)?
            }
        };
        Ok((len, self.kind()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fcn_wire::compose::{self, OptionPart, Part, UdpChecksum};
    use fcn_wire::fast_cnp::MAX_TRACE_LEN;
    use fcn_wire::icrc::Policy;
    use fcn_wire::notification::{Notification, Origin, Subject};
    use fcn_wire::{Findings, IcrcCheck, LinkType};
    use std::net::Ipv4Addr;

    const SWITCH: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 3);
    const SENDER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
    const RECEIVER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 9);
    const FAST: OutgoingNotification = OutgoingNotification::FastCnp {
        source: SWITCH,
        destination: SENDER,
        original_destination: RECEIVER,
        qp: Qp::truncate(0x123),
    };

    #[test]
    fn a_data_packet_is_quoted_without_its_tunnel() {
        use crate::testing::{ICRC, build, ip, udp};
        use fcn_wire::bth::BthRepr;
        let inner = [
            ip(SENDER.into(), RECEIVER.into()),
            udp(4791),
            Part::Bth(BthRepr::new(
                fcn_wire::Opcode::RC_SEND_ONLY,
                Qp::truncate(7),
                1,
            )),
            ICRC,
        ];
        let bytes = build(&[&[ip(SWITCH.into(), SENDER.into())], &inner[..]].concat());
        let frame = Frame::parse(&bytes, bytes.len(), LinkType::RawIp, &Profile::DEFAULT);
        let context = DataPacketContext::new(&DataPacket::from_frame(&frame).unwrap(), &frame);
        assert_eq!(
            (context.trace, context.invoking),
            (None, &build(&inner)[..])
        );
    }

    fn emitted(outgoing: OutgoingNotification, context: &DataPacketContext<'_>) -> (Vec<u8>, Kind) {
        let mut out = [0; OutgoingNotification::MAX_LEN];
        let (len, kind) = outgoing.emit(context, &Profile::DEFAULT, &mut out).unwrap();
        (out[..len].to_vec(), kind)
    }

    /// Parses an emitted packet, which must not violate any rule.
    fn read_back(bytes: &[u8]) -> Notification {
        let frame = Frame::parse(bytes, bytes.len(), LinkType::RawIp, &Profile::DEFAULT);
        let notification = Notification::from_frame(&frame).unwrap();
        let mut findings = Findings::new();
        frame.check(IcrcCheck::On, &mut findings);
        let broken: Vec<_> = findings
            .into_iter()
            .filter(|f| f.rule.info().severity != fcn_wire::Severity::Note)
            .collect();
        assert!(broken.is_empty(), "{broken:?}");
        notification
    }

    #[test]
    fn a_fast_cnp_has_option_2_if_the_trace_fits() {
        for (len, want) in [
            (7, Kind::FastCnp1),
            (8, Kind::FastCnp2),
            (MAX_TRACE_LEN, Kind::FastCnp2),
            (MAX_TRACE_LEN + 1, Kind::FastCnp1),
        ] {
            let trace = vec![0; len];
            let context = DataPacketContext {
                trace: Some((OptType::Incremental, &trace)),
                ..DataPacketContext::default()
            };
            assert_eq!(emitted(FAST, &context).1, want, "{len}");
            assert_eq!(context.loses_trace(), want == Kind::FastCnp1, "{len}");
        }
        let other = DataPacketContext {
            trace: Some((OptType::Other(4), &[0; 8])),
            ..DataPacketContext::default()
        };
        assert_eq!(emitted(FAST, &other).1, Kind::FastCnp1);
        assert!(other.loses_trace() && !DataPacketContext::default().loses_trace());
    }

    #[test]
    fn a_fast_cnp_equals_that_of_compose() {
        let option = FastCnpRepr::Option1 {
            original_destination: RECEIVER,
        };
        let parts = [
            Part::Ipv6 {
                source: SWITCH,
                destination: SENDER,
                traffic_class: 0xC2,
                flow_label: 0,
                hop_limit: 64,
            },
            Part::DestinationOptions(&[OptionPart::FastCnp(option)]),
            Part::Udp {
                source: fcn_wire::cnp::DEFAULT_UDP_SOURCE,
                destination: 4791,
                checksum: UdpChecksum::Zero,
            },
            Part::Cnp(CnpRepr::new(Qp::truncate(0x123))),
            Part::Icrc(Policy::default()),
        ];
        let (bytes, _) = emitted(FAST, &DataPacketContext::default());
        assert_eq!(bytes, compose::packet(&parts, &Profile::DEFAULT).unwrap());
        let notification = read_back(&bytes);
        let (receiver, qp) = (RECEIVER.into(), Qp::truncate(0x123));
        assert_eq!(notification.subject, Subject::ReceiverQp { receiver, qp });
        assert_eq!(notification.origin, Origin::Switch);
    }

    #[test]
    fn every_kind_round_trips() {
        let cnp = OutgoingNotification::Cnp {
            source: Ipv4Addr::new(192, 0, 2, 2).into(),
            destination: Ipv4Addr::new(192, 0, 2, 1).into(),
            qp: Qp::truncate(0xABCDEF),
        };
        let (bytes, kind) = emitted(cnp, &DataPacketContext::default());
        assert_eq!((bytes.len(), kind), (20 + 8 + 32, Kind::Cnp));
        let subject = Subject::SenderQp(Qp::truncate(0xABCDEF));
        assert_eq!(read_back(&bytes).subject, subject);

        let wan = |copy_flow_label| OutgoingNotification::WanFcn {
            source: SWITCH,
            ingress: SENDER,
            flow_label: 0xBEEF1,
            level: 6,
            copy_flow_label,
        };
        for copy in [false, true] {
            let (bytes, kind) = emitted(wan(copy), &DataPacketContext::default());
            assert_eq!((bytes.len(), kind), (52, Kind::WanFcn));
            let label = u32::from_be_bytes(*bytes.first_chunk().unwrap()) & 0xF_FFFF;
            assert_eq!(label, if copy { 0xBEEF1 } else { 0 });
            let notification = read_back(&bytes);
            assert_eq!(notification.subject, Subject::FlowLabel(0xBEEF1));
            assert_eq!(notification.level, Some(6));
        }
    }

    #[test]
    fn a_proxy_notification_quotes_as_much_as_is_allowed() {
        let data = [
            Part::Ipv6 {
                source: SENDER,
                destination: RECEIVER,
                traffic_class: 2,
                flow_label: 9,
                hop_limit: 60,
            },
            Part::Udp {
                source: 49152,
                destination: 4791,
                checksum: UdpChecksum::Zero,
            },
            Part::Bth(fcn_wire::bth::BthRepr::new(
                fcn_wire::Opcode::RC_SEND_ONLY,
                Qp::truncate(0x55),
                1,
            )),
            Part::Bytes(&[7; 2048]),
            Part::Icrc(Policy::default()),
        ];
        let data = compose::packet(&data, &Profile::DEFAULT).unwrap();
        let tuple = FiveTuple {
            source: SENDER.into(),
            destination: RECEIVER.into(),
            protocol: 17,
            source_port: 49152,
            destination_port: 4791,
        };
        let context = DataPacketContext {
            trace: None,
            invoking: &data,
        };
        let v4 = Ipv4Addr::new(192, 0, 2, 7).into();
        for (source, proxy, len) in [(SWITCH.into(), SENDER.into(), 1280), (v4, v4, 576)] {
            let outgoing = OutgoingNotification::ProxyCn {
                source,
                proxy,
                tuple,
                level: 3,
            };
            let (bytes, kind) = emitted(outgoing, &context);
            assert_eq!((bytes.len(), kind), (len, Kind::ProxyCn));
            let notification = read_back(&bytes);
            let receiver_qp = Some(Qp::truncate(0x55));
            assert_eq!(notification.subject, Subject::Flow { tuple, receiver_qp });
        }
    }

    #[test]
    fn too_little_room_is_an_error() {
        let mut out = [0; 103];
        let context = DataPacketContext::default();
        assert!(FAST.emit(&context, &Profile::DEFAULT, &mut out).is_err());
    }
}
