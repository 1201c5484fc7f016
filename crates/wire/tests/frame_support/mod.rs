//! One well-formed packet of every message, and all its possible wrappings, for the tests of
//! `Frame` and for the seeds of the fuzz targets.
#![allow(dead_code, reason = "each program uses a part")]

use fcn_wire::bth::{BthRepr, Deth, Opcode, Qp, Reth};
use fcn_wire::cnp::CnpRepr;
use fcn_wire::compose::{OptionPart, Part, UdpChecksum, packet};
use fcn_wire::erspan::{Erspan, Erspan2, Erspan3};
use fcn_wire::fast_cnp::FastCnpRepr;
use fcn_wire::icrc::Policy;
use fcn_wire::ioam::{
    IoamOption, NodeValues, OptType, TRACE_HEADER_LEN, TraceRepr, TraceType, fill_preallocated,
};
use fcn_wire::mad::GSI_Q_KEY;
use fcn_wire::pfc::{PFC_DESTINATION, PfcRepr};
use fcn_wire::pnc::bgp::{CharacteristicRepr, NhcRepr};
use fcn_wire::pnc::isis::{LspRepr, ReachKind, ReachRepr};
use fcn_wire::pnc::{Flooding, Level, Prefix, bgp_update, ospf2, ospf3};
use fcn_wire::proxy_address::ProxyAddress;
use fcn_wire::proxy_cn::{FiveTuple, ProxyCnRepr};
use fcn_wire::rdma_cm::{CmRepr, DisconnectRequestRepr};
use fcn_wire::wan_fcn::WanFcnRepr;
use fcn_wire::{Kind, Profile};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub const SWITCH: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 3);
pub const SENDER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
pub const RECEIVER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 9);
pub const PROXY: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xf, 0, 0, 0, 0, 1);
pub const SENDER4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub const RECEIVER4: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 9);
pub const MAC: Part<'static> = Part::Ethernet {
    source: [2, 0, 0, 0, 0, 1],
    destination: [2, 0, 0, 0, 0, 2],
};
pub const ROCE: Part<'static> = udp(0, 4791);
pub const ICRC: Part<'static> = Part::Icrc(Policy::Compute(fcn_wire::icrc::Reading::Covered));
pub const QP: Qp = Qp::truncate(0x12);

pub const fn udp(source: u16, destination: u16) -> Part<'static> {
    Part::Udp {
        source,
        destination,
        // Notifications in UDP have a checksum, RoCEv2 has none.
        checksum: match destination {
            1021 | 1022 => UdpChecksum::Compute,
            _ => UdpChecksum::Zero,
        },
    }
}

pub const fn v6(source: Ipv6Addr, destination: Ipv6Addr) -> Part<'static> {
    Part::Ipv6 {
        source,
        destination,
        traffic_class: 0xC2,
        flow_label: 0x12345,
        hop_limit: 64,
    }
}

pub const fn v4(options: &[u8]) -> Part<'_> {
    Part::Ipv4 {
        source: SENDER4,
        destination: RECEIVER4,
        tos: 0xC2,
        ttl: 64,
        id: 1,
        options,
    }
}

pub fn build(parts: &[Part<'_>]) -> Vec<u8> {
    packet(parts, &Profile::DEFAULT).expect("a packet that can be written")
}

/// Returns a trace of three nodes (hop limit and id, interfaces, queue depth) of which two are
/// filled in.
pub fn trace(opt_type: OptType) -> Vec<u8> {
    let trace_type = TraceType::default().with(0).with(1).with(6);
    let node_len = trace_type.node_len();
    let incremental = opt_type == OptType::Incremental;
    let list = vec![0; if incremental { 2 } else { 3 } * node_len * 4];
    let mut header = TraceRepr {
        namespace_id: 1,
        node_len: node_len as u8,
        remaining_len: (list.len() / 4) as u8,
        trace_type,
        ..TraceRepr::default()
    };
    let mut bytes = [&header.to_bytes()[..], &list].concat();
    for (node_id, queue_depth) in [(0xA1, 100), (0xA2, 9000)] {
        let values = NodeValues {
            hop_limit: 62,
            node_id,
            ingress: 3,
            egress: 7,
            queue_depth,
            ..NodeValues::default()
        };
        assert!(fill_preallocated(&mut bytes, &values).unwrap());
    }
    if incremental {
        header.remaining_len = 0;
        bytes[..TRACE_HEADER_LEN].copy_from_slice(&header.to_bytes());
    }
    bytes
}

/// A well-formed message in its IP packet.
#[derive(Clone, Debug)]
pub struct Sample {
    pub name: &'static str,
    /// Kind of notification, if it is one.
    pub kind: Option<Kind>,
    /// The packet from the IP header on.
    pub ip: Vec<u8>,
}

impl Sample {
    fn new(name: &'static str, kind: Option<Kind>, parts: &[Part<'_>]) -> Self {
        let ip = build(parts);
        Self { name, kind, ip }
    }

    /// Returns it as the last part of a packet.
    pub fn part(&self) -> Part<'_> {
        let v6 = self.ip[0] >> 4 == 6;
        Part::Payload {
            ether_type: if v6 { 0x86DD } else { 0x0800 },
            protocol: if v6 { 41 } else { 4 },
            bytes: &self.ip,
        }
    }

    /// Returns it in an Ethernet frame, after `outer`.
    pub fn wrapped_in(&self, outer: &[Part<'_>]) -> Vec<u8> {
        build(&[&[MAC], outer, &[self.part()]].concat())
    }
}

fn fast_cnp_option(trace: Option<(OptType, &[u8])>) -> FastCnpRepr<'_> {
    let original_destination = RECEIVER;
    match trace {
        None => FastCnpRepr::Option1 {
            original_destination,
        },
        Some((opt_type, trace)) => FastCnpRepr::Option2 {
            ioam: IoamOption {
                reserved: 0,
                opt_type,
                body: trace,
            },
            original_destination,
        },
    }
}

/// Returns a Fast CNP with the headers `between` IPv6 and the option.
pub fn fast_cnp(between: &[Part<'_>], trace: Option<(OptType, &[u8])>) -> Vec<u8> {
    let option = [OptionPart::FastCnp(fast_cnp_option(trace))];
    let cnp = [
        Part::DestinationOptions(&option),
        ROCE,
        Part::Cnp(CnpRepr::new(QP)),
        ICRC,
    ];
    build(&[&[v6(SWITCH, SENDER)], between, &cnp].concat())
}

/// Returns a data packet over IPv6 with an IOAM trace and the proxy's address.
pub fn data_v6() -> Vec<u8> {
    let trace = trace(OptType::Preallocated);
    let ioam = IoamOption {
        reserved: 0,
        opt_type: OptType::Preallocated,
        body: &trace,
    };
    build(&[
        v6(SENDER, RECEIVER),
        Part::HopByHop(&[OptionPart::Ioam(ioam)]),
        Part::DestinationOptions(&[OptionPart::ProxyAddress(ProxyAddress(PROXY))]),
        udp(49152, 4791),
        Part::Bth(BthRepr::new(Opcode::RC_SEND_ONLY, QP, 5)),
        Part::Bytes(&[0xAB; 16]),
        ICRC,
    ])
}

/// Returns a data packet over IPv4.
pub fn data_v4() -> Vec<u8> {
    let reth = Reth {
        address: 0x1000,
        rkey: 7,
        length: 8,
    };
    build(&[
        v4(&[]),
        udp(49152, 4791),
        Part::Bth(BthRepr::new(Opcode::RC_WRITE_ONLY, QP, 5)),
        Part::Bytes(&reth.to_bytes()),
        Part::Bytes(&[0xAB; 8]),
        ICRC,
    ])
}

fn proxy_cn(source: IpAddr, destination: IpAddr, invoking: &[u8]) -> Vec<u8> {
    let repr = ProxyCnRepr {
        five_tuple: FiveTuple {
            source,
            destination,
            protocol: 17,
            source_port: 49152,
            destination_port: 4791,
        },
        level: 5,
        reserved: 0,
        invoking,
    };
    let mut out = vec![0; repr.buffer_len()];
    repr.emit(&mut out).unwrap();
    out
}

pub fn wan_fcn() -> [u8; 4] {
    let repr = WanFcnRepr {
        flow_label: 0x12345,
        level: 3,
        reserved: 0,
    };
    repr.to_bytes()
}

pub fn mad() -> Vec<u8> {
    let message = DisconnectRequestRepr {
        local_comm_id: 1,
        remote_comm_id: 2,
        remote_qpn: 0x12,
        ..DisconnectRequestRepr::default()
    };
    CmRepr::new(9, message).to_bytes().unwrap().to_vec()
}

const PNC_OSPF: [u8; 4] = [0x20, 0, 0, 0];

pub fn lsp() -> Vec<u8> {
    let reach = |kind, address, flags: Option<&'static [u8]>| ReachRepr {
        kind,
        prefix: Prefix::host(address),
        metric: 10,
        down: false,
        flags,
    };
    let prefixes = [
        reach(ReachKind::Plain, RECEIVER.into(), Some(&[1])),
        reach(ReachKind::Plain, RECEIVER4.into(), None),
        reach(ReachKind::MultiTopology { id: 2 }, PROXY.into(), Some(&[1])),
    ];
    let lsp = LspRepr {
        level: Level::L2,
        lsp_id: [0, 0, 0, 0, 0, 1, 0, 0],
        sequence: 1,
        lifetime: 1200,
        area: &[0x49, 0, 1],
        hostname: "leaf",
        prefixes: &prefixes,
    };
    lsp.to_bytes().unwrap()
}

pub fn ospf2() -> Vec<u8> {
    let prefixes = [ospf2::ExtendedPrefixRepr {
        route_type: 1,
        prefix: Prefix::host(RECEIVER4.into()),
        tlv_flags: 0x40,
        flags: Some(&PNC_OSPF),
    }];
    let lsas = [ospf2::LsaRepr {
        age: 1,
        flooding: Flooding::Area,
        opaque_id: 1,
        advertising_router: SENDER4,
        sequence: 0x8000_0001,
        prefixes: &prefixes,
    }];
    let update = ospf2::LsUpdateRepr {
        router_id: SENDER4,
        area: Ipv4Addr::UNSPECIFIED,
        lsas: &lsas,
    };
    update.to_bytes().unwrap()
}

pub fn ospf3() -> Vec<u8> {
    let prefixes = [ospf3::PrefixRepr {
        prefix: Prefix::host(RECEIVER.into()),
        options: 0x20,
        metric: 10,
        flags: Some(&PNC_OSPF),
    }];
    let lsas = [ospf3::LsaRepr {
        kind: ospf3::LsaKind::IntraAreaPrefix,
        age: 1,
        link_state_id: 1,
        advertising_router: SENDER4,
        sequence: 0x8000_0001,
        prefixes: &prefixes,
    }];
    let update = ospf3::LsUpdateRepr {
        router_id: SENDER4,
        area: Ipv4Addr::UNSPECIFIED,
        instance: 0,
        lsas: &lsas,
    };
    update.to_bytes(SWITCH, SENDER).unwrap()
}

pub fn bgp() -> Vec<u8> {
    let code = Profile::DEFAULT.bgp_pnc_characteristic;
    let pnc = [CharacteristicRepr { code, value: &[] }];
    let nhc = NhcRepr {
        afi: 2,
        safi: 1,
        next_hop: SWITCH.into(),
        characteristics: &pnc,
    };
    let prefixes = [Prefix::host(RECEIVER.into())];
    let mut bytes = bgp_update(SWITCH.into(), &prefixes, Some(nhc)).unwrap();
    // From another AS: 65001 in AS_PATH, which is empty so far.
    bytes.splice(29..30, [6, 2, 1, 0, 0, 0xFD, 0xE9]);
    bytes[17] += 6;
    bytes[22] += 6;
    bytes
}

/// Returns a TCP segment from the BGP port.
fn segment(payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 20];
    out[..4].copy_from_slice(&[0, 179, 0xC0, 0]);
    out[12] = 5 << 4;
    out.extend(payload);
    out
}

/// Returns one of every message that IP carries.
pub fn samples() -> Vec<Sample> {
    let (pre, inc) = (trace(OptType::Preallocated), trace(OptType::Incremental));
    let pre = fast_cnp_option(Some((OptType::Preallocated, &pre)));
    let inc = fast_cnp_option(Some((OptType::Incremental, &inc)));
    let one = fast_cnp_option(None);
    let cnp = Part::Cnp(CnpRepr::new(QP));
    let fast = |name, kind, option| {
        let option = [OptionPart::FastCnp(option)];
        let options = Part::DestinationOptions(&option);
        let parts = [v6(SWITCH, SENDER), options, ROCE, cnp, ICRC];
        Sample::new(name, Some(kind), &parts)
    };
    let raw = |name, kind, ip| Sample { name, kind, ip };
    let in_v4 = proxy_cn(SENDER4.into(), RECEIVER4.into(), &data_v4());
    let in_v6 = proxy_cn(SENDER.into(), RECEIVER.into(), &data_v6());
    let fcn = wan_fcn();
    let deth = Deth {
        qkey: GSI_Q_KEY,
        source_qp: Qp::GSI,
    };
    let mad = mad();
    let ip = |name, protocol, outer, bytes: &[u8]| {
        let payload = Part::Payload {
            ether_type: 0,
            protocol,
            bytes,
        };
        Sample::new(name, None, &[outer, payload])
    };
    vec![
        Sample::new("cnp_v4", Some(Kind::Cnp), &[v4(&[]), ROCE, cnp, ICRC]),
        Sample::new(
            "cnp_v4_options",
            Some(Kind::Cnp),
            &[v4(&[1, 1, 1, 0]), ROCE, cnp, ICRC],
        ),
        Sample::new(
            "cnp_v6",
            Some(Kind::Cnp),
            &[v6(RECEIVER, SENDER), ROCE, cnp, ICRC],
        ),
        fast("fast_cnp_1", Kind::FastCnp1, one),
        fast("fast_cnp_2_preallocated", Kind::FastCnp2, pre),
        fast("fast_cnp_2_incremental", Kind::FastCnp2, inc),
        Sample::new(
            "proxy_cn_v4",
            Some(Kind::ProxyCn),
            &[v4(&[]), udp(5000, 1021), Part::Bytes(&in_v4)],
        ),
        Sample::new(
            "proxy_cn_v6",
            Some(Kind::ProxyCn),
            &[v6(SWITCH, PROXY), udp(5000, 1021), Part::Bytes(&in_v6)],
        ),
        Sample::new(
            "wan_fcn",
            Some(Kind::WanFcn),
            &[v6(SWITCH, SENDER), udp(5000, 1022), Part::Bytes(&fcn)],
        ),
        raw("data_v4", None, data_v4()),
        raw("data_v6_ioam_proxy_address", None, data_v6()),
        Sample::new(
            "rdma_cm",
            None,
            &[
                v4(&[]),
                ROCE,
                Part::Bth(BthRepr::new(Opcode::UD_SEND_ONLY, Qp::GSI, 1)),
                Part::Bytes(&deth.to_bytes()),
                Part::Bytes(&mad),
                ICRC,
            ],
        ),
        ip("ospf2", 89, v4(&[]), &ospf2()),
        ip("ospf3", 89, v6(SWITCH, SENDER), &ospf3()),
        ip("bgp", 6, v6(SWITCH, SENDER), &segment(&bgp())),
    ]
}

/// Returns tags, labels and tunnels that can come between the Ethernet header and the packet of a
/// [`Sample`].
pub fn wrappings() -> Vec<(&'static str, Vec<Part<'static>>)> {
    const SEGMENTS: [Ipv6Addr; 2] = [RECEIVER, SWITCH];
    let tag = |id, service| Part::Vlan {
        id,
        priority: 3,
        service,
    };
    let mpls = |label| Part::Mpls {
        label,
        traffic_class: 0,
        ttl: 64,
    };
    let outer = v6(SWITCH, RECEIVER);
    let vxlan = [udp(50000, 4789), Part::Vxlan { vni: 42 }, MAC];
    let routing = Part::SegmentRouting {
        left: 1,
        segments: &SEGMENTS,
    };
    let pad = |layer: fn(&'static [OptionPart<'static>]) -> Part<'static>| {
        layer(&[OptionPart::Raw(0x1D, (1, 0), &[0; 4])])
    };
    let atomic = Part::Fragment {
        offset: 0,
        more: false,
        id: 7,
    };
    let authentication = Part::RawExtension(
        51,
        &[
            0, 4, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
        ],
    );
    let gre = |checksum, key, sequence| Part::Gre {
        checksum,
        key,
        sequence,
    };
    let erspan_2 = Erspan::II(Erspan2 {
        session: 17,
        index: 5,
        ..Erspan2::default()
    });
    let erspan_3 = Erspan::III(Erspan3 {
        session: 18,
        platform: Some([0x0C, 0, 0, 9, 0, 0, 0, 1]),
        ..Erspan3::default()
    });
    let geneve = |options| [udp(50000, 6081), Part::Geneve { vni: 42, options }];
    let gpe = [udp(50000, 4790), Part::VxlanGpe { vni: 42 }];
    let gtp = |sequence, extensions| Part::GtpU {
        teid: 42,
        sequence,
        extensions,
    };
    // Tags that end with the EtherType of what follows, and headers in front of a frame.
    let tag_of = |ether_type, bytes: &'static [u8]| Part::Payload {
        ether_type,
        protocol: 59,
        bytes,
    };
    vec![
        ("plain", vec![]),
        (
            "vn_tag",
            vec![tag_of(0x8926, &[0, 1, 0, 2, 0x81, 0]), tag(5, false)],
        ),
        (
            "e_tag_vlan",
            vec![
                tag_of(0x893F, &[0, 0, 0x10, 1, 0, 0, 0x81, 0]),
                tag(5, false),
            ],
        ),
        (
            "arista_64",
            vec![
                tag_of(0xD28B, &[0, 1, 0, 0x10, 1, 2, 3, 4, 5, 6, 7, 8, 0x81, 0]),
                tag(5, false),
            ],
        ),
        (
            "arista_48",
            vec![
                tag_of(0xD28B, &[0, 1, 1, 0x20, 1, 2, 3, 4, 5, 6, 0x81, 0]),
                tag(5, false),
            ],
        ),
        (
            "cisco_metadata",
            vec![tag_of(0x8909, &[1, 1, 0, 1, 0, 7, 0x81, 0]), tag(5, false)],
        ),
        (
            "service_instance",
            vec![tag(9, true), tag_of(0x88E7, &[0, 1, 2, 3]), MAC],
        ),
        (
            "csig",
            vec![tag_of(0x9900, &[0x2B, 0x85, 0x81, 0]), tag(5, false)],
        ),
        (
            "spectrum",
            vec![
                Part::Ipv4 {
                    source: SENDER4,
                    destination: RECEIVER4,
                    tos: 0,
                    ttl: 64,
                    id: 1,
                    options: &[],
                },
                Part::Payload {
                    ether_type: 0,
                    protocol: 47,
                    bytes: &[0, 0, 0x89, 0x49],
                },
                Part::Bytes(&[9; 22]),
                MAC,
            ],
        ),
        (
            "tzsp",
            vec![
                v4(&[]),
                udp(50000, 37008),
                // A received packet; padding, a signal strength, the end of the fields.
                Part::Bytes(&[1, 0, 0, 1, 0, 10, 1, 0xC4, 1]),
                MAC,
            ],
        ),
        ("vlan", vec![tag(100, false)]),
        (
            "vlan_stack",
            vec![tag(100, true), tag(7, false), tag(8, false)],
        ),
        ("mpls", vec![mpls(16), mpls(17)]),
        ("pseudowire", vec![mpls(16), Part::Bytes(&[0; 4]), MAC]),
        ("vxlan_v6", [&[outer], &vxlan[..]].concat()),
        (
            "vxlan_v4_options_vlan",
            [&[v4(&[1, 1, 1, 0])], &vxlan[..], &[tag(5, false)]].concat(),
        ),
        ("srv6", vec![outer, routing]),
        ("srv6_ethernet", vec![outer, routing, MAC]),
        ("ip6_in_ip6", vec![outer]),
        ("ip6_in_ip4", vec![v4(&[])]),
        ("three_deep", vec![outer, v4(&[]), outer]),
        (
            "extension_headers",
            vec![
                outer,
                pad(Part::HopByHop),
                pad(Part::DestinationOptions),
                routing,
                atomic,
                authentication,
                pad(Part::DestinationOptions),
            ],
        ),
        ("mpls_in_ip", vec![outer, mpls(18)]),
        ("gre", vec![v4(&[]), gre(false, None, None)]),
        (
            "gre_fields_mpls",
            vec![outer, gre(true, Some(7), Some(8)), mpls(18)],
        ),
        ("nvgre", vec![v4(&[]), gre(false, Some(42 << 8), None), MAC]),
        (
            "erspan_1",
            vec![
                v4(&[]),
                gre(false, None, None),
                Part::Erspan(Erspan::I),
                MAC,
            ],
        ),
        (
            "erspan_2",
            vec![
                outer,
                gre(false, None, Some(1)),
                Part::Erspan(erspan_2),
                MAC,
                tag(5, false),
            ],
        ),
        (
            "erspan_3",
            vec![
                v4(&[]),
                gre(false, None, Some(1)),
                Part::Erspan(erspan_3),
                MAC,
            ],
        ),
        ("geneve_ip", [&[v4(&[])], &geneve(&[])[..]].concat()),
        (
            "geneve_options",
            [&[outer], &geneve(&[1, 1, 1, 1, 0, 0, 0, 0])[..], &[MAC]].concat(),
        ),
        ("vxlan_gpe", [&[v4(&[])], &gpe[..], &[MAC]].concat()),
        ("vxlan_gpe_ip", [&[outer], &gpe[..]].concat()),
        ("gtp_u", vec![v4(&[]), udp(2152, 2152), gtp(None, &[])]),
        (
            "gtp_u_extensions",
            vec![
                outer,
                udp(2152, 2152),
                gtp(
                    Some(3),
                    &[(0x85, &[0x10, 9]), (0x40, &[8, 0x68, 0, 0, 0, 0])],
                ),
            ],
        ),
    ]
}

/// Returns an IS-IS LSP in an IEEE 802.3 frame, after `tags`.
pub fn isis_frame(tags: &[Part<'_>]) -> Vec<u8> {
    let pdu = [&[0xFE, 0xFE, 0x03][..], &lsp()].concat();
    let payload = Part::Payload {
        ether_type: pdu.len() as u16,
        protocol: 59,
        bytes: &pdu,
    };
    build(&[&[MAC], tags, &[payload]].concat())
}

/// Returns `sample` after one tag of each kind.
pub fn tags_frame(sample: &Sample) -> Vec<u8> {
    let mut bytes = sample.wrapped_in(&[]);
    let tags = [
        &[0x88, 0xE7, 0, 1, 2, 3, 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1][..],
        &[0x89, 0x26, 0, 1, 0, 2],
        &[0x89, 0x3F, 0, 0, 0x10, 1, 0, 0],
        &[0xD2, 0x8B, 0, 1, 0, 0x10, 1, 2, 3, 4, 5, 6, 7, 8],
        &[0x89, 0x09, 1, 1, 0, 1, 0, 7],
        &[0x99, 0x00, 0x2B, 0x85],
    ];
    bytes.splice(12..12, tags.concat());
    bytes
}

/// Returns `sample` in an IEEE 802.3 frame with SNAP.
pub fn snap_frame(sample: &Sample) -> Vec<u8> {
    let ether_type: [u8; 2] = match sample.ip[0] >> 4 {
        4 => [0x08, 0x00],
        _ => [0x86, 0xDD],
    };
    let pdu = [&[0xAA, 0xAA, 0x03, 0, 0, 0][..], &ether_type, &sample.ip].concat();
    let payload = Part::Payload {
        ether_type: pdu.len() as u16,
        protocol: 59,
        bytes: &pdu,
    };
    build(&[MAC, payload])
}

/// Returns a RoCE v1 frame around `transport`, to which an ICRC is added.
pub fn roce_v1_frame(gids: [Ipv6Addr; 2], transport: &[u8]) -> Vec<u8> {
    let packet = infiniband(Some(gids), transport);
    let bytes = &packet[8..packet.len() - 2];
    let payload = Part::Payload {
        ether_type: 0x8915,
        protocol: 59,
        bytes,
    };
    build(&[MAC, payload])
}

/// Returns a PFC frame, padded to Ethernet's minimum.
pub fn pfc_frame() -> Vec<u8> {
    let mut payload = [0; 46];
    payload[..20].copy_from_slice(&PfcRepr::for_class(3, 0xFFFF).unwrap().to_bytes());
    build(&[
        Part::Ethernet {
            source: [2, 0, 0, 0, 0, 1],
            destination: PFC_DESTINATION,
        },
        Part::Payload {
            ether_type: 0x8808,
            protocol: 59,
            bytes: &payload,
        },
    ])
}

/// Returns an InfiniBand packet from its Local Route Header on, from LID 0x17 to LID 0x2A; with
/// GIDs also a Global Route Header. After `transport` come both CRCs, which are never verified.
pub fn infiniband(gids: Option<[Ipv6Addr; 2]>, transport: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x10, 0x30, 0, 0x2A, 0, 0, 0, 0x17];
    packet[1] |= if gids.is_some() { 3 } else { 2 };
    if let Some([source, destination]) = gids {
        let len = u16::try_from(transport.len() + 4).unwrap();
        packet.extend([0x6B, 0x80, 0, 7]);
        packet.extend(len.to_be_bytes());
        packet.extend([0x1B, 3]);
        packet.extend(source.octets());
        packet.extend(destination.octets());
    }
    packet.extend(transport);
    packet.extend([0xC4; 4]);
    let words = u16::try_from(packet.len() / 4).unwrap();
    packet[4..6].copy_from_slice(&words.to_be_bytes());
    packet.extend([0xC2; 2]);
    packet
}

/// Returns an ERF record of that type around `frame`, with that number of extension headers.
pub fn erf(kind: u8, extensions: usize, frame: &[u8]) -> Vec<u8> {
    let mut record = vec![0; 16];
    record[8] = kind | if extensions > 0 { 0x80 } else { 0 };
    let wire_len = u16::try_from(frame.len()).unwrap();
    record[14..].copy_from_slice(&wire_len.to_be_bytes());
    for left in (0..extensions).rev() {
        record.extend([if left > 0 { 0x80 } else { 0 }, 0, 0, 0, 0, 0, 0, 0]);
    }
    if kind == 2 {
        record.extend([0; 2]);
    }
    record.extend(frame);
    record
}
