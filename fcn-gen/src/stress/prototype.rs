//! One complete frame of each kind, with the data needed to change it. `stream.rs` changes fields
//! from frame to frame; the wire crate implements the formats.

use super::model::{Hosts, Kind, Stress};
use crate::ioam::IoamTrace;
use fcn_wire::bth::{BTH_LEN, BthRepr, Reth};
use fcn_wire::checksum::IncrementalUdpChecksum;
use fcn_wire::cnp::{CnpRepr, DEFAULT_TRAFFIC_CLASS};
use fcn_wire::compose::{OptionPart, Part, packet};
use fcn_wire::fast_cnp::FastCnpRepr;
use fcn_wire::header::{ethernet, ipv4, ipv6, udp};
use fcn_wire::icrc::{ICRC_LEN, Policy};
use fcn_wire::ioam::{NodeValues, OptType, Trace, filled_trace};
use fcn_wire::pfc::{PFC_DESTINATION, PfcRepr};
use fcn_wire::proxy_cn::{Family, FiveTuple, ProxyCnRepr, invoking_room};
use fcn_wire::template::{Field, Template};
use fcn_wire::wan_fcn::WanFcnRepr;
use fcn_wire::{LinkType, Profile};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

/// DSCP 26, ECT(0).
const DATA_CLASS: u8 = 26 << 2 | 0b10;

/// First of the 64 addresses of notifying switches.
pub(super) const SWITCH: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 1);
const SWITCH4: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
const PROXY: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 1, 0xf);
const PROXY4: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 250);
const INGRESS_PE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xee, 0, 0, 0, 0, 1);

/// A frame and its way of changing.
#[derive(Clone, Debug)]
pub(super) enum Prototype {
    /// A CNP, a Fast CNP, or data.
    Roce(Box<Template>),
    /// A notification to a proxy node, and the data packet that it quotes.
    ProxyCn(SummedFrame, Box<Template>),
    /// An FCN in the WAN.
    WanFcn(SummedFrame),
    /// A PFC frame.
    Pfc(Vec<u8>),
}

/// A frame whose UDP checksum is updated with the fields that it covers.
#[derive(Clone, Debug)]
pub(super) struct SummedFrame {
    pub bytes: Vec<u8>,
    /// Offset of its UDP header.
    pub udp: usize,
    pub checksum: IncrementalUdpChecksum,
}

impl SummedFrame {
    /// Creates a frame in which these octets change.
    fn new(bytes: Vec<u8>, udp: usize, changing: [Range<usize>; 2]) -> Self {
        let checksum = IncrementalUdpChecksum::new(udp + udp::CHECKSUM, changing);
        Self {
            bytes,
            udp,
            checksum,
        }
    }
}

impl Prototype {
    /// Returns the frame before any changes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Roce(template) => template.bytes(),
            Self::ProxyCn(frame, _) | Self::WanFcn(frame) => &frame.bytes,
            Self::Pfc(bytes) => bytes,
        }
    }
}

/// A prototype of each kind in a mix. Clones share the large parts.
#[derive(Clone, Debug)]
pub struct Prototypes(pub(super) Vec<(Kind, Prototype)>);

impl Prototypes {
    /// Builds the prototypes for the mix of `stress`.
    ///
    /// # Errors
    /// The wire crate refuses to write one of them because of an unusual code point.
    pub fn new(stress: &Stress) -> Result<Self, String> {
        let template = |&(kind, _): &(Kind, u32)| {
            let failed = |error| format!("a frame of kind {} cannot be built: {error}", kind.id());
            Ok((kind, stress.prototype(kind).map_err(failed)?))
        };
        let all: Result<_, String> = stress.mix.iter().map(template).collect();
        all.map(Self)
    }

    /// Returns the length of the longest frame in octets, without FCS.
    #[must_use]
    pub fn longest(&self) -> usize {
        let lengths = self.0.iter().map(|(_, prototype)| prototype.bytes().len());
        lengths.max().unwrap_or(0)
    }

    /// Returns the average frame length over the mix in octets, without FCS, rounded down.
    #[must_use]
    pub fn average(&self, stress: &Stress) -> usize {
        let order = stress.pattern.order();
        let lengths = order
            .iter()
            .filter_map(|kind| self.0.get(usize::from(*kind)));
        let octets: usize = lengths.map(|(_, prototype)| prototype.bytes().len()).sum();
        octets / order.len().max(1)
    }
}

type BuildResult<T> = Result<T, Box<dyn std::error::Error>>;

/// Construction of a stress's frames.
impl Stress {
    fn prototype(&self, kind: Kind) -> BuildResult<Prototype> {
        let roce = |template| Prototype::Roce(Box::new(template));
        let family = kind.family();
        let mut fields = vec![
            Field::SourceAddress,
            Field::DestinationAddress,
            Field::UdpSource,
            Field::DestQp,
        ];
        Ok(match kind {
            Kind::Cnp | Kind::CnpIpv4 => {
                if family == Family::V4 {
                    fields.push(Field::Identification);
                }
                let class = DEFAULT_TRAFFIC_CLASS;
                let ip = ip(&self.receivers, &self.senders, family, class);
                roce(self.cnp(&[ip], &fields)?)
            }
            Kind::FastCnp1 | Kind::FastCnp2 => {
                let trace = self.trace()?;
                let trace = (kind == Kind::FastCnp2)
                    .then(|| Trace::new_checked(OptType::Preallocated, &trace));
                let original_destination = self.receivers.v6(0);
                let (option, _) =
                    FastCnpRepr::for_data_packet(original_destination, trace.transpose()?);
                let options = [OptionPart::FastCnp(option)];
                let ip = Part::v6(SWITCH, self.senders.v6(0), DEFAULT_TRAFFIC_CLASS);
                fields.push(Field::FastCnpOriginalDestination);
                roce(self.cnp(&[ip, Part::DestinationOptions(&options)], &fields)?)
            }
            Kind::Data | Kind::DataIpv4 => {
                fields.push(Field::Psn);
                roce(self.data(family, self.payload, LinkType::Ethernet, &fields)?)
            }
            Kind::ProxyCn | Kind::ProxyCnIpv4 => {
                fields.push(Field::Psn);
                self.proxy(family, &fields)?
            }
            Kind::WanFcn => self.wan()?,
            Kind::Pfc => Prototype::Pfc(pfc()?),
        })
    }

    /// Builds a CNP after the parts `ip`.
    fn cnp(&self, ip: &[Part<'_>], fields: &[Field]) -> BuildResult<Template> {
        let profile = &self.profile;
        let mut parts = vec![frame()];
        parts.extend(ip);
        parts.push(Part::udp(ENTROPY, profile.rocev2_port));
        parts.push(Part::Cnp(CnpRepr::new(Stress::qp(0))));
        parts.push(Part::Icrc(Policy::Compute(profile.icrc_reading)));
        let bytes = packet(&parts, profile)?;
        Ok(Template::new(bytes, LinkType::Ethernet, profile, fields)?)
    }

    /// Builds a data packet of `payload` octets, with or without an Ethernet header.
    fn data(
        &self,
        family: Family,
        payload: usize,
        link: LinkType,
        fields: &[Field],
    ) -> BuildResult<Template> {
        let profile = &self.profile;
        let octets: Vec<u8> = (0..payload).map(|i| i as u8).collect();
        let mut parts = vec![
            ip(&self.senders, &self.receivers, family, DATA_CLASS),
            Part::udp(ENTROPY, profile.rocev2_port),
            Part::Bth(BthRepr::new(self.opcode.opcode(), Stress::qp(0), 0)),
        ];
        if link == LinkType::Ethernet {
            parts.insert(0, frame());
        }
        if self.extended() > 0 {
            parts.push(Part::Reth(Reth {
                address: 0x7f00_0000_0000,
                rkey: 0x1000,
                length: payload as u32,
            }));
        }
        parts.push(Part::Bytes(&octets));
        parts.push(Part::Icrc(Policy::Compute(profile.icrc_reading)));
        Ok(Template::new(
            packet(&parts, profile)?,
            link,
            profile,
            fields,
        )?)
    }

    /// Returns the length of data packets' extended headers in octets.
    fn extended(&self) -> usize {
        self.opcode.opcode().extended_len().unwrap_or(0)
    }

    /// Builds the trace that Fast CNPs return, filled by every node.
    fn trace(&self) -> BuildResult<Vec<u8>> {
        let node = |node: u32| NodeValues {
            hop_limit: 64 - node as u8,
            node_id: u64::from(node),
            ingress: node * 2,
            egress: node * 2 + 1,
            transit_delay: 900 + 100 * node,
            namespace_data: 0x03E8_0384,
            queue_depth: 40 * node,
            ..NodeValues::default()
        };
        let nodes: Vec<_> = (1..=self.trace_nodes as u32).map(node).collect();
        Ok(filled_trace(IoamTrace::TYPE, 0, nodes.iter())?)
    }

    /// Builds a notification to a proxy node that quotes a complete data packet, with as much
    /// payload as there is room for.
    fn proxy(&self, family: Family, fields: &[Field]) -> BuildResult<Prototype> {
        let (ip_len, ip) = match family {
            Family::V6 => (ipv6::LEN, Part::v6(SWITCH, PROXY, DEFAULT_TRAFFIC_CLASS)),
            Family::V4 => (ipv4::LEN, Part::v4(SWITCH4, PROXY4, DEFAULT_TRAFFIC_CLASS)),
        };
        let headers = ip_len + udp::LEN + BTH_LEN;
        let room = invoking_room(family, ip_len + udp::LEN, family)
            .saturating_sub(headers + self.extended() + ICRC_LEN);
        let payload = self.payload.min(room) & !3;
        let quoted = self.data(family, payload, LinkType::RawIp, fields)?;
        let profile = &self.profile;
        let repr = ProxyCnRepr {
            five_tuple: FiveTuple {
                source: self.senders.at(0, family),
                destination: self.receivers.at(0, family),
                protocol: 17,
                source_port: ENTROPY,
                destination_port: profile.rocev2_port,
            },
            level: 0,
            reserved: 0,
            invoking: quoted.bytes(),
        };
        let udp_part = Part::udp_summed(ENTROPY, profile.proxy_cn_port);
        let bytes = packet(&[frame(), ip, udp_part, Part::ProxyCn(repr)], profile)?;
        let (udp, icrc) = (ethernet::LEN + ip_len, bytes.len() - ICRC_LEN);
        let invoking = udp + udp::LEN + family.header_len();
        // From the ports to the quoted packet's headers, and its ICRC.
        let changing = [udp..invoking + headers, icrc..bytes.len()];
        let frame = SummedFrame::new(bytes, udp, changing);
        Ok(Prototype::ProxyCn(frame, Box::new(quoted)))
    }

    fn wan(&self) -> BuildResult<Prototype> {
        let repr = WanFcnRepr {
            flow_label: 0,
            level: 0,
            reserved: 0,
        };
        let profile = &self.profile;
        let parts = [
            frame(),
            Part::v6(SWITCH, INGRESS_PE, DEFAULT_TRAFFIC_CLASS),
            Part::udp_summed(ENTROPY, profile.wan_fcn_port),
            Part::WanFcn(repr),
        ];
        let bytes = packet(&parts, profile)?;
        let (ip, udp) = (ethernet::LEN, ethernet::LEN + ipv6::LEN);
        // The UDP checksum covers the source address.
        let source = ip + ipv6::SOURCE..ip + ipv6::DESTINATION;
        let changing = [source, udp..bytes.len()];
        Ok(Prototype::WanFcn(SummedFrame::new(bytes, udp, changing)))
    }
}

/// Returns the IP header from the first host of one side to the first of the other.
fn ip(from: &Hosts, to: &Hosts, family: Family, class: u8) -> Part<'static> {
    match family {
        Family::V6 => Part::v6(from.v6(0), to.v6(0), class),
        Family::V4 => Part::v4(from.v4(0), to.v4(0), class),
    }
}

/// UDP source port of prototypes.
const ENTROPY: u16 = 0xC000;

const fn frame() -> Part<'static> {
    Part::Ethernet {
        source: [0; 6],
        destination: [0; 6],
    }
}

fn pfc() -> BuildResult<Vec<u8>> {
    let header = Part::Ethernet {
        source: [0; 6],
        destination: PFC_DESTINATION,
    };
    let pause = Part::Pfc(PfcRepr::for_class(0, 1).unwrap_or_default());
    Ok(packet(&[header, pause], &Profile::DEFAULT)?)
}
