//! The layers of packets as written in the galleries' files, and packets built from them.
//! `stacks.toml` defines layers shared by many packets; a file refers to them by name.

use super::EPOCH;
use crate::routing::{self, ALL_L2, METRIC, carried, update};
use bumpalo::Bump;
use fcn_tool::quantity;
use fcn_wire::bth::{BthRepr, Deth, Opcode, Qp};
use fcn_wire::cnp::{CnpRepr, DEFAULT_TRAFFIC_CLASS};
use fcn_wire::compose::{DEFAULT_HOP_LIMIT, OptionPart, Part, UdpChecksum, packet};
use fcn_wire::emit::Carrier;
use fcn_wire::fast_cnp::FastCnpRepr;
use fcn_wire::icrc::{Policy, Reading};
use fcn_wire::ioam::{IoamOption, NodeValues, TraceType, filled_trace};
use fcn_wire::ipv6_ext::next_header;
use fcn_wire::mad::GSI_Q_KEY;
use fcn_wire::pfc::PfcRepr;
use fcn_wire::pnc::bgp::{AFI_IPV4, CharacteristicRepr, NhcRepr, PORT, SAFI_UNICAST};
use fcn_wire::pnc::isis::{ReachKind, ReachRepr};
use fcn_wire::pnc::{Level, Prefix, ospf2, ospf3};
use fcn_wire::profile::VXLAN_PORT;
use fcn_wire::proxy_address::ProxyAddress;
use fcn_wire::proxy_cn::{FiveTuple, ProxyCnRepr};
use fcn_wire::rdma_cm::{
    CmRepr, ConnectReplyRepr, ConnectRequestRepr, DisconnectReplyRepr, DisconnectRequestRepr,
    MessageRepr, ReadyToUseRepr,
};
use fcn_wire::wan_fcn::WanFcnRepr;
use fcn_wire::{Profile, Result};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::sync::LazyLock;

/// Default Ethernet header of packets: from the sender's side of a link to the other.
pub const ETHERNET: Part<'static> = Part::Ethernet {
    source: [0x02, 0, 0, 0, 0, 0x01],
    destination: [0x02, 0, 0, 0, 0, 0x02],
};

/// Stacks of layers by name.
static STACKS: LazyLock<BTreeMap<String, Vec<Layer>>> =
    LazyLock::new(|| super::document(include_str!("stacks.toml")));

/// Addresses with names, from the ranges of RFC 3849 and RFC 5737.
const HOSTS: [(&str, &str); 10] = [
    ("sender", "2001:db8:1::1"),
    ("receiver", "2001:db8:2::1"),
    // The congestion point.
    ("switch", "2001:db8:ffff::3"),
    // The proxy node near the sender.
    ("proxy", "2001:db8:1::f"),
    ("ingress", "2001:db8:ee::1"),
    ("egress", "2001:db8:ee::2"),
    ("sender4", "192.0.2.1"),
    ("receiver4", "198.51.100.1"),
    ("switch4", "203.0.113.3"),
    ("proxy4", "192.0.2.15"),
];
/// Sender and receiver of the flow.
const SENDER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
const RECEIVER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 1);
/// UDP source port of the flow, which carries its entropy.
const ENTROPY: u16 = 49_321;
/// QP of the flow at the receiver.
const RECEIVER_QP: Qp = Qp::truncate(0x12);

/// Trace data written by three switches on the path, of which the last one is congested. The fourth
/// entry is the third with an opaque snapshot.
const PATH: [NodeValues<'static>; 4] = [
    hop(63, 0x00_0101, (1, 7), 820, 0),
    hop(62, 0x00_0201, (12, 3), 1_150, 4_096),
    CONGESTED,
    NodeValues {
        opaque: (0x00_2A_01, b"8 octets"),
        ..CONGESTED
    },
];
const CONGESTED: NodeValues<'static> = hop(61, 0x00_0301, (5, 24), 48_300, 1_572_864);

const fn hop(
    hop_limit: u8,
    node_id: u64,
    (ingress, egress): (u32, u32),
    transit_delay: u32,
    queue_depth: u32,
) -> NodeValues<'static> {
    NodeValues {
        hop_limit,
        node_id,
        ingress,
        egress,
        seconds: (EPOCH / 1_000_000_000) as u32,
        fraction: 0x1234_5678,
        transit_delay,
        namespace_data: 0x0A0B_0C0D,
        queue_depth,
        checksum_complement: 0xFFFF_0000,
        buffer_occupancy: 2_097_152,
        opaque: (0, &[]),
    }
}

/// An address, given as such or by name.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String", bound(deserialize = "T: FromStr<Err: Display>"))]
pub struct Host<T>(T);

impl<T: FromStr<Err: Display>> TryFrom<String> for Host<T> {
    type Error = String;

    fn try_from(name: String) -> core::result::Result<Self, String> {
        let known = HOSTS.iter().find(|(known, _)| *known == name);
        let address = known.map_or(&*name, |(_, address)| address).parse();
        (address.map(Self)).map_err(|error| format!("{name}: {error}"))
    }
}

/// Octets in hexadecimal digits, optionally separated by blanks.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(try_from = "String")]
pub struct Hex(pub Vec<u8>);

impl TryFrom<String> for Hex {
    type Error = hex::FromHexError;

    fn try_from(digits: String) -> core::result::Result<Self, Self::Error> {
        hex::decode(digits.replace(' ', "")).map(Self)
    }
}

fn mac<'de, D: Deserializer<'de>>(deserializer: D) -> core::result::Result<[u8; 6], D::Error> {
    quantity::deserialize(deserializer, quantity::mac)
}

fn prefix<'de, D: Deserializer<'de>>(deserializer: D) -> core::result::Result<Prefix, D::Error> {
    quantity::deserialize(deserializer, quantity::prefix)
}

/// Traffic class of an IP header: DSCP and ECN.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Class {
    #[default]
    Default = 0,
    /// DSCP 26, ECT(0).
    Data = 26 << 2 | 0b10,
    /// Data that met congestion: DSCP 26, CE.
    Ce = 26 << 2 | 0b11,
    /// A notification.
    Cnp = DEFAULT_TRAFFIC_CLASS,
    /// Tunnels around notifications, and routing messages: DSCP 48, not ECN-capable.
    Control = 48 << 2,
}

/// A UDP destination port.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Port {
    Rocev2,
    ProxyCn,
    WanFcn,
    Vxlan,
}

/// The ICRC of a packet.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Icrc {
    /// Correct in the profile's reading.
    Right,
    Corrupt,
    Zero,
    Reading(Reading),
}

/// Type of an IPv6 option.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OptionType {
    #[serde(rename = "fast_cnp_1")]
    FastCnp1,
    #[serde(rename = "fast_cnp_2")]
    FastCnp2,
    ProxyAddress,
    Ioam,
    /// RFC 4727; its data may change in transit.
    Experimental,
}

/// An IPv6 option.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Ipv6Option {
    /// Option 1 about this original destination.
    #[serde(rename = "fast_cnp_1")]
    FastCnp1(Host<Ipv6Addr>),
    /// Option 2 about the flow.
    #[serde(rename = "fast_cnp_2")]
    FastCnp2(Ioam),
    Ioam(Ioam),
    ProxyAddress(Host<Ipv6Addr>),
    Raw {
        code: OptionType,
        /// Alignment: multiple and remainder.
        align: (usize, usize),
        data: Vec<Layer>,
    },
}

/// A trace in an option.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ioam {
    #[serde(default)]
    reserved: u8,
    /// IOAM Option-Type: 0 pre-allocated, 1 incremental.
    kind: u8,
    trace: Vec<Layer>,
}

/// A message of the RDMA CM.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    ConnectRequest,
    ConnectReply,
    ReadyToUse,
    DisconnectRequest,
    DisconnectReply,
}

/// A prefix announced by a router.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reach {
    #[serde(deserialize_with = "prefix")]
    prefix: Prefix,
    flags: Hex,
    /// Multi-topology ID.
    topology: Option<u16>,
    /// True for an SRv6 locator.
    #[serde(default)]
    locator: bool,
    #[serde(default)]
    down: bool,
}

/// A prefix in OSPF.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ospf {
    router: Ipv4Addr,
    area: Ipv4Addr,
    kind: Scope,
    #[serde(deserialize_with = "prefix")]
    prefix: Prefix,
    flags: Option<Hex>,
}

/// Origin of an OSPF prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    IntraArea,
    InterArea,
    External,
}

/// Capability of a next hop.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Characteristic {
    /// PNC, with this value.
    Pnc(Hex),
    /// Processing of entropy labels: the value is empty, or has these octets instead.
    EntropyLabel(Vec<Layer>),
}

/// Next Hop dependent Characteristics, attribute 39.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Characteristics {
    of: Host<IpAddr>,
    list: Vec<Characteristic>,
}

/// A layer, or the name of several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Layer {
    /// The layers of this name in `stacks.toml`.
    Stack(String),
    One(Box<One>),
}

/// A layer. Fields that are left out have their usual values.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum One {
    Ethernet {
        #[serde(deserialize_with = "mac")]
        source: [u8; 6],
        #[serde(deserialize_with = "mac")]
        destination: [u8; 6],
    },
    /// The packet's own Ethernet header, repeated in a tunnel.
    InnerEthernet {},
    Vlan(u16),
    ServiceVlan(u16),
    Mpls {
        label: u32,
        class: u8,
        ttl: u8,
    },
    Ip {
        source: Host<IpAddr>,
        destination: Host<IpAddr>,
        #[serde(default)]
        class: Class,
        #[serde(default)]
        flow_label: u32,
        #[serde(default = "hop_limit")]
        hop_limit: u8,
        /// Options of IPv4.
        #[serde(default)]
        options: Hex,
    },
    HopByHop(Vec<Ipv6Option>),
    DestinationOptions(Vec<Ipv6Option>),
    /// A segment routing header on the way to the first of two segments; the last segment comes
    /// first.
    SegmentRouting([Host<Ipv6Addr>; 2]),
    Fragment {
        offset: u16,
        more: bool,
        id: u32,
    },
    Udp {
        source: u16,
        destination: Port,
        #[serde(default)]
        checksum: bool,
    },
    Vxlan(u32),
    /// A segment of a BGP session. The checksum is 0, as in captures before checksum offload.
    BgpSegment(u32),
    Icmpv6 {
        kind: [u8; 2],
        rest: u32,
    },
    Bth {
        opcode: u8,
        qp: u32,
        psn: u32,
    },
    /// The CNP about a QP, from its BTH to its reserved octets.
    Cnp(u32),
    /// A data packet of the flow in the middle of a message, with this PSN, from its UDP header to
    /// its ICRC.
    Data(u32),
    Icrc(Icrc),
    /// A message about one of the connections, from its BTH on.
    RdmaCm {
        connection: u32,
        psn: u32,
        message: Message,
    },
    ProxyCn {
        source: Host<IpAddr>,
        destination: Host<IpAddr>,
        level: u8,
        invoking: Vec<Layer>,
    },
    WanFcn {
        flow_label: u32,
        level: u8,
        #[serde(default)]
        reserved: u16,
    },
    Pfc(PfcRepr),
    /// An IOAM trace: the data of nodes of [`PATH`], in the order of the path.
    Trace {
        fields: u32,
        /// Remaining room in octets.
        #[serde(default)]
        free: usize,
        nodes: Vec<usize>,
    },
    /// An LSP with its frame.
    Lsp {
        level: u8,
        system: u32,
        prefixes: Vec<Reach>,
    },
    Ospf2(Ospf),
    Ospf3(Ospf),
    /// A BGP UPDATE for a prefix that is also its next hop.
    BgpUpdate {
        next_hop: Host<IpAddr>,
        characteristics: Characteristics,
    },
    /// Attribute 39 alone, for IPv4.
    Characteristics(Characteristics),
    Octets(Hex),
    Text(String),
    Fill {
        octet: u8,
        len: usize,
    },
    /// Octets announced by the preceding layer.
    Payload {
        #[serde(default)]
        ether_type: u16,
        #[serde(default)]
        protocol: u8,
        of: Vec<Layer>,
    },
    /// The octets of other layers: a part of them, or changed.
    Part {
        of: Vec<Layer>,
        #[serde(default)]
        from: usize,
        to: Option<usize>,
        #[serde(default)]
        change: Vec<(usize, Hex)>,
    },
}

const fn hop_limit() -> u8 {
    DEFAULT_HOP_LIMIT
}

/// Addresses of the proxy node in OSPF, and on the link.
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 15);
const LINK_LOCAL: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0xf);

/// Builds parts from layers, with the code points of a profile.
#[derive(Clone, Copy)]
pub struct Composer<'a> {
    pub profile: &'a Profile,
    /// Storage for data borrowed by parts.
    pub arena: &'a Bump,
}

impl<'a> Composer<'a> {
    /// Returns the octets of a packet.
    fn octets(self, layers: &[Layer]) -> Result<Vec<u8>> {
        packet(&self.parts(layers)?, self.profile)
    }

    /// Returns the parts of a packet.
    pub fn parts(self, layers: &[Layer]) -> Result<Vec<Part<'a>>> {
        let mut parts = Vec::new();
        for layer in layers {
            match layer {
                Layer::Stack(name) => parts.extend(self.stack(name)?),
                Layer::One(layer) => self.push(layer, &mut parts)?,
            }
        }
        Ok(parts)
    }

    fn stack(self, name: &str) -> Result<Vec<Part<'a>>> {
        let layers = STACKS.get(name);
        self.parts(layers.unwrap_or_else(|| panic!("stacks.toml has no {name}")))
    }

    fn held(self, layers: &[Layer]) -> Result<&'a [u8]> {
        Ok(self.hold(&self.octets(layers)?))
    }

    fn hold<T: Copy>(self, values: &[T]) -> &'a [T] {
        self.arena.alloc_slice_copy(values)
    }

    fn push(self, layer: &One, parts: &mut Vec<Part<'a>>) -> Result<()> {
        let part = match layer {
            One::Ethernet {
                source,
                destination,
            } => Part::Ethernet {
                source: *source,
                destination: *destination,
            },
            One::InnerEthernet {} => ETHERNET,
            One::Vlan(id) => tag(*id, false),
            One::ServiceVlan(id) => tag(*id, true),
            One::Mpls { label, class, ttl } => Part::Mpls {
                label: *label,
                traffic_class: *class,
                ttl: *ttl,
            },
            One::Ip {
                source,
                destination,
                class,
                flow_label,
                hop_limit,
                options: own,
            } => {
                let carrier = Carrier {
                    traffic_class: *class as u8,
                    flow_label: *flow_label,
                    hop_limit: *hop_limit,
                    ..Carrier::new(source.0, destination.0)
                };
                let mut ip = carrier.ip()?;
                if let Part::Ipv4 { options, .. } = &mut ip {
                    *options = self.hold(&own.0);
                }
                ip
            }
            One::HopByHop(options) => Part::HopByHop(self.options(options)?),
            One::DestinationOptions(options) => Part::DestinationOptions(self.options(options)?),
            One::SegmentRouting(segments) => Part::SegmentRouting {
                left: 1,
                segments: self.hold(&segments.map(|segment| segment.0)),
            },
            One::Fragment { offset, more, id } => Part::Fragment {
                offset: *offset,
                more: *more,
                id: *id,
            },
            One::Udp {
                source,
                destination,
                checksum,
            } => {
                let destination = self.port(*destination);
                if *checksum {
                    Part::udp_summed(*source, destination)
                } else {
                    Part::udp(*source, destination)
                }
            }
            One::Vxlan(vni) => Part::Vxlan { vni: *vni },
            One::BgpSegment(sequence) => Part::Tcp {
                source: 50_000,
                destination: PORT,
                sequence: *sequence,
                acknowledgement: 1,
                push: true,
                window: 0x4000,
                checksum: UdpChecksum::Zero,
            },
            One::Icmpv6 { kind, rest } => Part::Icmpv6 {
                kind: *kind,
                rest: *rest,
            },
            One::Bth { opcode, qp, psn } => {
                Part::Bth(BthRepr::new(Opcode(*opcode), Qp::truncate(*qp), *psn))
            }
            One::Cnp(qp) => Part::Cnp(CnpRepr::new(Qp::truncate(*qp))),
            One::Data(psn) => {
                let bth = BthRepr::new(Opcode::RC_WRITE_MIDDLE, RECEIVER_QP, *psn);
                parts.extend(self.stack("data-udp")?);
                parts.push(Part::Bth(bth));
                parts.extend(self.stack("payload")?);
                self.icrc(Icrc::Right)
            }
            One::Icrc(icrc) => self.icrc(*icrc),
            One::RdmaCm {
                connection,
                psn,
                message,
            } => {
                let bth = BthRepr::new(Opcode::UD_SEND_ONLY, Qp::GSI, *psn);
                let deth = Deth {
                    qkey: GSI_Q_KEY,
                    source_qp: Qp::GSI,
                };
                parts.extend([Part::Bth(bth), Part::Deth(deth)]);
                let message = rdma_cm(*connection, *message)?;
                let mad = CmRepr::new(0x0000_1234_5678_9ABC, message).to_bytes()?;
                Part::Bytes(self.hold(&mad))
            }
            One::ProxyCn {
                source,
                destination,
                level,
                invoking,
            } => Part::ProxyCn(ProxyCnRepr {
                five_tuple: FiveTuple {
                    source: source.0,
                    destination: destination.0,
                    protocol: next_header::UDP,
                    source_port: ENTROPY,
                    destination_port: self.profile.rocev2_port,
                },
                level: *level,
                reserved: 0,
                invoking: self.held(invoking)?,
            }),
            One::WanFcn {
                flow_label,
                level,
                reserved,
            } => Part::WanFcn(WanFcnRepr {
                flow_label: *flow_label,
                level: *level,
                reserved: *reserved,
            }),
            One::Pfc(repr) => Part::Pfc(*repr),
            One::Trace {
                fields,
                free,
                nodes,
            } => {
                let nodes = nodes.iter().filter_map(|node| PATH.get(*node));
                let fields = TraceType::from_bits(*fields);
                let trace = filled_trace(fields, *free, nodes)?;
                Part::Bytes(self.hold(&trace))
            }
            One::Lsp {
                level,
                system,
                prefixes,
            } => {
                let prefixes: Vec<_> = prefixes.iter().map(Reach::repr).collect();
                let level = if *level == 1 { Level::L1 } else { Level::L2 };
                let bytes = routing::lsp(level, *system, 7, &prefixes)?;
                parts.push(Part::Ethernet {
                    source: [2, 0, 0, 0, 0, 0xF],
                    destination: ALL_L2,
                });
                carried(0, self.hold(&bytes))
            }
            One::Ospf2(of) => {
                let bytes = of.update2()?;
                parts.extend(routing::ospf2(ROUTER, self.hold(&bytes)));
                return Ok(());
            }
            One::Ospf3(of) => {
                let bytes = of.update3()?;
                parts.extend(routing::ospf3(LINK_LOCAL, self.hold(&bytes)));
                return Ok(());
            }
            One::BgpUpdate {
                next_hop,
                characteristics: Characteristics { of, list },
            } => {
                let prefix = Prefix::host(next_hop.0);
                let list = self.characteristics(list)?;
                let bytes = update(&[prefix], next_hop.0, of.0, &list)?;
                Part::Bytes(self.hold(&bytes))
            }
            One::Characteristics(Characteristics { of, list }) => {
                let repr = NhcRepr {
                    afi: AFI_IPV4,
                    safi: SAFI_UNICAST,
                    next_hop: of.0,
                    characteristics: &self.characteristics(list)?,
                };
                Part::Bytes(self.hold(&repr.to_bytes()?))
            }
            One::Octets(octets) => Part::Bytes(self.hold(&octets.0)),
            One::Text(text) => Part::Bytes(self.hold(text.as_bytes())),
            One::Fill { octet, len } => Part::Bytes(self.hold(&vec![*octet; *len])),
            One::Payload {
                ether_type,
                protocol,
                of,
            } => Part::Payload {
                ether_type: *ether_type,
                protocol: *protocol,
                bytes: self.held(of)?,
            },
            One::Part {
                of,
                from,
                to,
                change,
            } => {
                let mut bytes = self.octets(of)?;
                self::change(&mut bytes, change);
                let to = to.unwrap_or(bytes.len());
                Part::Bytes(self.hold(bytes.get(*from..to).unwrap_or_default()))
            }
        };
        parts.push(part);
        Ok(())
    }

    const fn port(self, port: Port) -> u16 {
        match port {
            Port::Rocev2 => self.profile.rocev2_port,
            Port::ProxyCn => self.profile.proxy_cn_port,
            Port::WanFcn => self.profile.wan_fcn_port,
            Port::Vxlan => VXLAN_PORT,
        }
    }

    const fn icrc(self, icrc: Icrc) -> Part<'static> {
        Part::Icrc(match icrc {
            Icrc::Right => Policy::Compute(self.profile.icrc_reading),
            Icrc::Reading(reading) => Policy::Compute(reading),
            Icrc::Corrupt => Policy::Corrupt,
            Icrc::Zero => Policy::Zero,
        })
    }

    fn options(self, options: &[Ipv6Option]) -> Result<&'a [OptionPart<'a>]> {
        let parts: Result<Vec<_>> = options.iter().map(|option| self.option(option)).collect();
        Ok(self.hold(&parts?))
    }

    fn option(self, option: &Ipv6Option) -> Result<OptionPart<'a>> {
        Ok(match option {
            Ipv6Option::FastCnp1(original) => OptionPart::FastCnp(FastCnpRepr::Option1 {
                original_destination: original.0,
            }),
            Ipv6Option::FastCnp2(ioam) => OptionPart::FastCnp(FastCnpRepr::Option2 {
                ioam: self.ioam(ioam)?,
                original_destination: RECEIVER,
            }),
            Ipv6Option::Ioam(ioam) => OptionPart::Ioam(self.ioam(ioam)?),
            Ipv6Option::ProxyAddress(proxy) => OptionPart::ProxyAddress(ProxyAddress(proxy.0)),
            Ipv6Option::Raw { code, align, data } => {
                let code = match code {
                    OptionType::FastCnp1 => self.profile.fast_cnp_option1,
                    OptionType::FastCnp2 => self.profile.fast_cnp_option2,
                    OptionType::ProxyAddress => self.profile.proxy_address_option,
                    OptionType::Ioam => self.profile.ioam_option,
                    OptionType::Experimental => 0x3E,
                };
                OptionPart::Raw(code, *align, self.held(data)?)
            }
        })
    }

    fn ioam(self, ioam: &Ioam) -> Result<IoamOption<'a>> {
        Ok(IoamOption {
            reserved: ioam.reserved,
            opt_type: ioam.kind.into(),
            body: self.held(&ioam.trace)?,
        })
    }

    fn characteristics(self, list: &[Characteristic]) -> Result<Vec<CharacteristicRepr<'a>>> {
        let repr = |characteristic: &Characteristic| {
            Ok(match characteristic {
                Characteristic::Pnc(value) => CharacteristicRepr {
                    code: self.profile.bgp_pnc_characteristic,
                    value: self.hold(&value.0),
                },
                Characteristic::EntropyLabel(value) => CharacteristicRepr {
                    code: 1,
                    value: self.held(value)?,
                },
            })
        };
        list.iter().map(repr).collect()
    }
}

impl Reach {
    fn repr(&self) -> ReachRepr<'_> {
        let kind = match (self.locator, self.topology) {
            (true, id) => ReachKind::Srv6Locator {
                id: id.unwrap_or(0),
                algorithm: 0,
            },
            (false, Some(id)) => ReachKind::MultiTopology { id },
            (false, None) => ReachKind::Plain,
        };
        ReachRepr {
            down: self.down,
            ..routing::reach(kind, self.prefix, Some(&self.flags.0))
        }
    }
}

impl Ospf {
    fn flags(&self) -> Option<&[u8]> {
        self.flags.as_ref().map(|flags| &flags.0[..])
    }

    fn update2(&self) -> Result<Vec<u8>> {
        let prefix = ospf2::ExtendedPrefixRepr {
            route_type: match self.kind {
                Scope::IntraArea => ospf2::INTRA_AREA,
                Scope::InterArea => ospf2::INTER_AREA,
                Scope::External => 5,
            },
            prefix: self.prefix,
            tlv_flags: 0x40,
            flags: self.flags(),
        };
        routing::ospf2_update((self.router, self.area), 0, &[prefix])
    }

    fn update3(&self) -> Result<Vec<u8>> {
        let prefix = ospf3::PrefixRepr {
            prefix: self.prefix,
            options: 0x02,
            metric: METRIC,
            flags: self.flags(),
        };
        let kind = match self.kind {
            Scope::IntraArea => ospf3::LsaKind::IntraAreaPrefix,
            Scope::InterArea => ospf3::LsaKind::InterAreaPrefix,
            Scope::External => ospf3::LsaKind::AsExternal,
        };
        let router = (self.router, self.area);
        routing::ospf3_update(router, LINK_LOCAL, kind, 0, &[prefix])
    }
}

const fn tag(id: u16, service: bool) -> Part<'static> {
    Part::Vlan {
        id,
        priority: 6,
        service,
    }
}

/// Overwrites octets; changes beyond the end are ignored.
pub fn change(bytes: &mut [u8], changes: &[(usize, Hex)]) {
    for (at, Hex(octets)) in changes {
        if let Some(place) = bytes.get_mut(*at..at + octets.len()) {
            place.copy_from_slice(octets);
        }
    }
}

/// Builds a message about the connection of this number, from 1, which determines the identifiers
/// and QPs of both sides.
fn rdma_cm(connection: u32, message: Message) -> Result<MessageRepr> {
    let (sender_id, receiver_id) = (0x0A00_0000 + connection, 0x0B00_0000 + connection);
    let (sender_qp, receiver_qp) = (0x10 * connection + 1, 0x10 * connection + 2);
    Ok(match message {
        Message::ConnectRequest => ConnectRequestRepr {
            local_comm_id: sender_id,
            local_qpn: sender_qp,
            starting_psn: 0x100,
            ..ConnectRequestRepr::roce((SENDER.into(), 40_000), (RECEIVER.into(), 18_515))?
        }
        .into(),
        Message::ConnectReply => ConnectReplyRepr {
            local_comm_id: receiver_id,
            remote_comm_id: sender_id,
            local_qpn: receiver_qp,
            starting_psn: 0x700,
            ..ConnectReplyRepr::default()
        }
        .into(),
        Message::ReadyToUse => ReadyToUseRepr {
            local_comm_id: sender_id,
            remote_comm_id: receiver_id,
            ..ReadyToUseRepr::default()
        }
        .into(),
        Message::DisconnectRequest => DisconnectRequestRepr {
            local_comm_id: sender_id,
            remote_comm_id: receiver_id,
            remote_qpn: receiver_qp,
            ..DisconnectRequestRepr::default()
        }
        .into(),
        Message::DisconnectReply => DisconnectReplyRepr {
            local_comm_id: receiver_id,
            remote_comm_id: sender_id,
            ..DisconnectReplyRepr::default()
        }
        .into(),
    })
}
