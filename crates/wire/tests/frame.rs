//! Layers located by `Frame`, octet by octet: every encapsulation and link type, extension headers
//! in any order, fragments, lengths of zero, and trailing octets; and the number of messages found
//! in third-party captures.

mod frame_support;

use fcn_wire::bth::BthRepr;
use fcn_wire::cnp::CNP_LEN;
use fcn_wire::compose::{OptionPart, Part};
use fcn_wire::csig::Csig;
use fcn_wire::emit::{Encapsulation, MirroredFrame};
use fcn_wire::erspan::{Direction, Erspan, Erspan2};
use fcn_wire::frame::Upper;
use fcn_wire::icrc::{Policy, Verdict};
use fcn_wire::infiniband::erf_header_len;
use fcn_wire::pnc;
use fcn_wire::{
    End, Error, Findings, Frame, IcrcCheck, Kind, Layer, LinkType, Message, Notification, Opcode,
    Profile, Qp, Rule, Subject, Unread,
};
use frame_support::{
    ICRC, MAC, QP, RECEIVER, ROCE, SENDER, SWITCH, Sample, build, erf, infiniband, isis_frame,
    roce_v1_frame, samples, snap_frame, tags_frame, udp, v4, v6, wrappings,
};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;

fn read(bytes: &[u8]) -> Frame<'_> {
    Frame::parse(bytes, bytes.len(), LinkType::Ethernet, &Profile::DEFAULT)
}

fn sample(name: &str) -> Sample {
    let found = samples().into_iter().find(|sample| sample.name == name);
    found.unwrap_or_else(|| panic!("there is no sample {name}"))
}

fn layers(frame: &Frame<'_>) -> Vec<Layer> {
    frame.spans().iter().map(|span| span.layer).collect()
}

fn findings(frame: &Frame<'_>) -> Findings {
    let mut findings = Findings::new();
    frame.check(IcrcCheck::On, &mut findings);
    findings
}

/// Returns the headers before the sample's IPv6 header, by first octet and the octet after the
/// header.
fn in_front(name: &str) -> &'static [(Layer, usize, usize)] {
    use Layer::{
        Arista, Authentication, CiscoMetadata, Csig, DestinationOptions, ETag, Erspan, Ethernet,
        Fragment, Geneve, Gre, GtpU, HopByHop, Ipv4, Ipv6, Mpls, Routing, ServiceInstance,
        Spectrum, Tzsp, Udp, Vlan, VnTag, Vxlan, VxlanGpe,
    };
    match name {
        "plain" => &[(Ethernet, 0, 14)],
        "vlan" => &[(Ethernet, 0, 14), (Vlan, 14, 18)],
        "vlan_stack" => &[
            (Ethernet, 0, 14),
            (Vlan, 14, 18),
            (Vlan, 18, 22),
            (Vlan, 22, 26),
        ],
        "vn_tag" => &[(Ethernet, 0, 14), (VnTag, 14, 20), (Vlan, 20, 24)],
        "e_tag_vlan" => &[(Ethernet, 0, 14), (ETag, 14, 22), (Vlan, 22, 26)],
        "arista_64" => &[(Ethernet, 0, 14), (Arista, 14, 28), (Vlan, 28, 32)],
        "arista_48" => &[(Ethernet, 0, 14), (Arista, 14, 26), (Vlan, 26, 30)],
        "cisco_metadata" => &[(Ethernet, 0, 14), (CiscoMetadata, 14, 22), (Vlan, 22, 26)],
        "service_instance" => &[
            (Ethernet, 0, 14),
            (Vlan, 14, 18),
            (ServiceInstance, 18, 22),
            (Ethernet, 22, 36),
        ],
        "csig" => &[(Ethernet, 0, 14), (Csig, 14, 18), (Vlan, 18, 22)],
        "spectrum" => &[
            (Ethernet, 0, 14),
            (Ipv4, 14, 34),
            (Gre, 34, 38),
            (Spectrum, 38, 60),
            (Ethernet, 60, 74),
        ],
        "tzsp" => &[
            (Ethernet, 0, 14),
            (Ipv4, 14, 34),
            (Udp, 34, 42),
            (Tzsp, 42, 51),
            (Ethernet, 51, 65),
        ],
        "mpls" => &[(Ethernet, 0, 14), (Mpls, 14, 18), (Mpls, 18, 22)],
        // A control word of four octets follows the label.
        "pseudowire" => &[(Ethernet, 0, 14), (Mpls, 14, 18), (Ethernet, 22, 36)],
        "vxlan_v6" => &[
            (Ethernet, 0, 14),
            (Ipv6, 14, 54),
            (Udp, 54, 62),
            (Vxlan, 62, 70),
            (Ethernet, 70, 84),
        ],
        "vxlan_v4_options_vlan" => &[
            (Ethernet, 0, 14),
            (Ipv4, 14, 38),
            (Udp, 38, 46),
            (Vxlan, 46, 54),
            (Ethernet, 54, 68),
            (Vlan, 68, 72),
        ],
        "srv6" => &[(Ethernet, 0, 14), (Ipv6, 14, 54), (Routing, 54, 94)],
        "srv6_ethernet" => &[
            (Ethernet, 0, 14),
            (Ipv6, 14, 54),
            (Routing, 54, 94),
            (Ethernet, 94, 108),
        ],
        "ip6_in_ip6" => &[(Ethernet, 0, 14), (Ipv6, 14, 54)],
        "ip6_in_ip4" => &[(Ethernet, 0, 14), (Ipv4, 14, 34)],
        "three_deep" => &[
            (Ethernet, 0, 14),
            (Ipv6, 14, 54),
            (Ipv4, 54, 74),
            (Ipv6, 74, 114),
        ],
        "extension_headers" => &[
            (Ethernet, 0, 14),
            (Ipv6, 14, 54),
            (HopByHop, 54, 62),
            (DestinationOptions, 62, 70),
            (Routing, 70, 110),
            (Fragment, 110, 118),
            (Authentication, 118, 142),
            (DestinationOptions, 142, 150),
        ],
        "mpls_in_ip" => &[(Ethernet, 0, 14), (Ipv6, 14, 54), (Mpls, 54, 58)],
        "gre" => &[(Ethernet, 0, 14), (Ipv4, 14, 34), (Gre, 34, 38)],
        // Checksum, key and sequence number.
        "gre_fields_mpls" => &[
            (Ethernet, 0, 14),
            (Ipv6, 14, 54),
            (Gre, 54, 70),
            (Mpls, 70, 74),
        ],
        "nvgre" => &[
            (Ethernet, 0, 14),
            (Ipv4, 14, 34),
            (Gre, 34, 42),
            (Ethernet, 42, 56),
        ],
        "erspan_1" => &[
            (Ethernet, 0, 14),
            (Ipv4, 14, 34),
            (Gre, 34, 38),
            (Ethernet, 38, 52),
        ],
        "erspan_2" => &[
            (Ethernet, 0, 14),
            (Ipv6, 14, 54),
            (Gre, 54, 62),
            (Erspan, 62, 70),
            (Ethernet, 70, 84),
            (Vlan, 84, 88),
        ],
        "erspan_3" => &[
            (Ethernet, 0, 14),
            (Ipv4, 14, 34),
            (Gre, 34, 42),
            (Erspan, 42, 62),
            (Ethernet, 62, 76),
        ],
        "geneve_ip" => &[
            (Ethernet, 0, 14),
            (Ipv4, 14, 34),
            (Udp, 34, 42),
            (Geneve, 42, 50),
        ],
        "geneve_options" => &[
            (Ethernet, 0, 14),
            (Ipv6, 14, 54),
            (Udp, 54, 62),
            (Geneve, 62, 78),
            (Ethernet, 78, 92),
        ],
        "vxlan_gpe" => &[
            (Ethernet, 0, 14),
            (Ipv4, 14, 34),
            (Udp, 34, 42),
            (VxlanGpe, 42, 50),
            (Ethernet, 50, 64),
        ],
        "vxlan_gpe_ip" => &[
            (Ethernet, 0, 14),
            (Ipv6, 14, 54),
            (Udp, 54, 62),
            (VxlanGpe, 62, 70),
        ],
        "gtp_u" => &[
            (Ethernet, 0, 14),
            (Ipv4, 14, 34),
            (Udp, 34, 42),
            (GtpU, 42, 50),
        ],
        "gtp_u_extensions" => &[
            (Ethernet, 0, 14),
            (Ipv6, 14, 54),
            (Udp, 54, 62),
            (GtpU, 62, 86),
        ],
        other => panic!("{other} has no expectation"),
    }
}

#[test]
fn every_encapsulation_is_located_octet_by_octet() {
    let fast_cnp = sample("fast_cnp_1");
    for (name, outer) in wrappings() {
        let bytes = fast_cnp.wrapped_in(&outer);
        let frame = read(&bytes);
        let front = in_front(name);
        let ip = front.last().unwrap().2;
        let own = [
            (Layer::Ipv6, ip, ip + 40),
            (Layer::DestinationOptions, ip + 40, ip + 64),
            (Layer::Udp, ip + 64, ip + 72),
        ];
        let want = [front, &own].concat();
        let found: Vec<_> = frame
            .spans()
            .iter()
            .map(|span| (span.layer, span.start, span.header_end))
            .collect();
        assert_eq!(found, want, "{name}");
        // Nothing follows the packet, so that every layer ends with the frame.
        assert!(
            frame.spans().iter().all(|span| span.end == bytes.len()),
            "{name}"
        );
        let found = frame.ip().unwrap();
        assert_eq!(
            (found.start, found.payload, found.end),
            (ip, ip + 64, bytes.len())
        );
        assert_eq!(
            (found.source, found.destination),
            (SWITCH.into(), SENDER.into())
        );
        assert_eq!(
            (found.traffic_class, found.ecn(), found.hop_limit),
            (0xC2, 2, 64)
        );
        assert_eq!((found.flow_label, found.protocol), (0x12345, 17));
        let datagram = frame.datagram().unwrap();
        assert_eq!((datagram.start, datagram.payload_at()), (ip + 64, ip + 72));
        assert_eq!(datagram.payload, &bytes[ip + 72..]);
        let headers: Vec<_> = frame.options_headers().map(|header| header.start).collect();
        assert_eq!(headers, [ip + 40], "{name}: the innermost packet's alone");
        let Message::FastCnp(message) = frame.message() else {
            panic!("{name}: {:?}", frame.message());
        };
        assert_eq!(message.option_at(), ip + 42);
    }
}

#[test]
fn every_link_type_is_opened() {
    let fast_cnp = sample("fast_cnp_1");
    let cnp = sample("cnp_v4");
    let cooked = |protocol: [u8; 2]| [&[0; 14][..], &protocol].concat();
    let cooked_2 = |protocol: [u8; 2]| [&protocol[..], &[0; 18]].concat();
    let with = |header: &[u8], ip: &Sample| [header, &ip.ip].concat();
    let v6_type = [0x86, 0xDD];
    for (link, header, layer) in [
        (LinkType::RawIp, vec![], None),
        (
            LinkType::LinuxCooked,
            cooked(v6_type),
            Some(Layer::LinuxCooked),
        ),
        (
            LinkType::LinuxCooked2,
            cooked_2(v6_type),
            Some(Layer::LinuxCooked),
        ),
        // Little and big endian; the numbers of Linux, FreeBSD and macOS.
        (LinkType::Null, vec![10, 0, 0, 0], Some(Layer::Ethernet)),
        (LinkType::Null, vec![28, 0, 0, 0], Some(Layer::Ethernet)),
        (LinkType::Null, vec![0, 0, 0, 30], Some(Layer::Ethernet)),
    ] {
        let bytes = with(&header, &fast_cnp);
        let frame = Frame::parse(&bytes, bytes.len(), link, &Profile::DEFAULT);
        assert_eq!(frame.end(), End::Complete, "{link:?}");
        let own = [Layer::Ipv6, Layer::DestinationOptions, Layer::Udp];
        let want: Vec<_> = layer.into_iter().chain(own).collect();
        assert_eq!(layers(&frame), want, "{link:?}");
        assert_eq!(frame.ip().unwrap().start, header.len());
        let n = Notification::from_frame(&frame).unwrap();
        assert!(
            n.kind == Kind::FastCnp1 && findings(&frame).is_empty(),
            "{link:?}"
        );
    }
    let v4_type = [0x08, 0x00];
    for (link, header) in [
        (LinkType::RawIp, vec![]),
        (LinkType::LinuxCooked, cooked(v4_type)),
        (LinkType::LinuxCooked2, cooked_2(v4_type)),
        (LinkType::Null, vec![2, 0, 0, 0]),
        (LinkType::Null, vec![0, 0, 0, 2]),
    ] {
        let bytes = with(&header, &cnp);
        let frame = Frame::parse(&bytes, bytes.len(), link, &Profile::DEFAULT);
        assert!(matches!(frame.message(), Message::Cnp(_)), "{link:?}");
    }
    // A tag that the kernel did not strip.
    let bytes = [&cooked([0x81, 0x00])[..], &[0, 5, 0x86, 0xDD], &fast_cnp.ip].concat();
    let frame = Frame::parse(
        &bytes,
        bytes.len(),
        LinkType::LinuxCooked,
        &Profile::DEFAULT,
    );
    assert_eq!(
        layers(&frame)[..3],
        [Layer::LinuxCooked, Layer::Vlan, Layer::Ipv6]
    );
    // ISO over BSD loopback is not IP, even if its first nibble matches.
    let bytes = with(&[7, 0, 0, 0], &cnp);
    let frame = Frame::parse(&bytes, bytes.len(), LinkType::Null, &Profile::DEFAULT);
    assert_eq!((frame.end(), frame.ip()), (End::Complete, None));
    // Raw IP with an invalid version.
    let e = Error::value(Layer::Ipv4, 0, "version", 5, "4 or 6");
    let frame = Frame::parse(&[0x50; 60], 60, LinkType::RawIp, &Profile::DEFAULT);
    assert_eq!(frame.end(), End::Malformed(e));
    for (number, link) in [
        (1, Some(LinkType::Ethernet)),
        (101, Some(LinkType::RawIp)),
        (113, Some(LinkType::LinuxCooked)),
        (276, Some(LinkType::LinuxCooked2)),
        (0, Some(LinkType::Null)),
        (105, None),
    ] {
        assert_eq!(LinkType::from_pcap(number), link);
    }
}

#[test]
fn isis_is_found_only_after_llc() {
    let tag = Part::Vlan {
        id: 3,
        priority: 6,
        service: false,
    };
    for (tags, llc) in [(vec![], 14), (vec![tag], 18)] {
        let bytes = isis_frame(&tags);
        let frame = read(&bytes);
        let Upper::IsIs(at, pdu) = *frame.upper() else {
            panic!("{:?}", frame.upper());
        };
        assert_eq!((at, pdu), (llc + 3, &bytes[llc + 3..]));
        let spans = frame.spans();
        let [.., outer, inner] = spans else { panic!() };
        assert_eq!(
            (outer.layer, outer.start, outer.header_end),
            (Layer::Llc, llc, llc + 3)
        );
        assert_eq!(
            (inner.layer, inner.start, inner.end),
            (Layer::IsIs, llc + 3, bytes.len())
        );
    }
    // The length field ends the PDU, not the padding after it.
    let mut bytes = isis_frame(&[]);
    let end = bytes.len();
    bytes.extend([0; 40]);
    let Upper::IsIs(_, pdu) = *read(&bytes).upper() else {
        panic!();
    };
    assert_eq!(pdu.len(), end - 17);
    // In a Linux cooked capture, 4 means LLC; it is not a length.
    let lsp = &isis_frame(&[])[14..];
    let cooked = [&[0; 14][..], &[0, 4], lsp].concat();
    let frame = Frame::parse(
        &cooked,
        cooked.len(),
        LinkType::LinuxCooked,
        &Profile::DEFAULT,
    );
    let Upper::IsIs(19, pdu) = *frame.upper() else {
        panic!("{:?}", frame.upper());
    };
    assert_eq!(pdu, &lsp[3..]);
    assert_eq!(frame.end(), End::Complete);
    assert!(findings(&frame).is_empty());
    // Spanning tree also uses LLC; a discriminator other than 0x83 is not IS-IS.
    for (at, octet) in [(14, 0x42), (15, 0x42), (17, 0x82)] {
        let mut other = isis_frame(&[]);
        other[at] = octet;
        assert!(matches!(read(&other).upper(), Upper::Other));
        assert_eq!(read(&other).end(), End::Complete);
    }
}

#[test]
fn tags_are_opened_in_any_number() {
    let bytes = tags_frame(&sample("fast_cnp_1"));
    let frame = read(&bytes);
    let want = [
        Layer::Ethernet,
        Layer::ServiceInstance,
        Layer::Ethernet,
        Layer::VnTag,
        Layer::ETag,
        Layer::Arista,
        Layer::CiscoMetadata,
        Layer::Csig,
        Layer::Ipv6,
    ];
    assert_eq!(layers(&frame)[..want.len()], want);
    assert!(matches!(frame.message(), Message::FastCnp(_)));
    for len in 0..bytes.len() {
        let frame = Frame::parse(
            &bytes[..len],
            bytes.len(),
            LinkType::Ethernet,
            &Profile::DEFAULT,
        );
        assert!(matches!(frame.end(), End::Cut { .. }), "{len}");
    }
}

#[test]
fn snap_is_opened_if_an_ether_type_follows() {
    let mut bytes = snap_frame(&sample("fast_cnp_1"));
    let frame = read(&bytes);
    let want = [Layer::Ethernet, Layer::Llc, Layer::Snap, Layer::Ipv6];
    assert_eq!(layers(&frame)[..4], want);
    assert!(matches!(frame.message(), Message::FastCnp(_)));
    // An organisation's own protocol, such as CDP.
    bytes[19] = 0x0C;
    let frame = read(&bytes);
    assert_eq!(layers(&frame), [Layer::Ethernet, Layer::Llc]);
    assert_eq!((frame.end(), frame.unread()), (End::Complete, None));
}

#[test]
fn roce_v1_is_read_like_infiniband() {
    let gids = [SENDER, RECEIVER];
    let bth = BthRepr::new(Opcode::RC_SEND_ONLY, QP, 5).to_bytes();
    let mut bytes = roce_v1_frame(gids, &[&bth[..], &[0xAB; 16]].concat());
    let end = bytes.len();
    // Padding is not part of the packet.
    bytes.extend([0; 10]);
    let frame = read(&bytes);
    assert_eq!(layers(&frame), [Layer::Ethernet, Layer::Grh]);
    assert_eq!(frame.end(), End::Complete);
    assert!(frame.is_roce_v1() && !frame.is_roce());
    let ip = frame.ip().unwrap();
    assert_eq!((ip.start, ip.payload, ip.end), (14, 54, end));
    assert_eq!(
        (ip.source, ip.destination),
        (SENDER.into(), RECEIVER.into())
    );
    assert_eq!(frame.transport(), Some((&bytes[54..end], 32)));
    let Message::Roce(found, _) = frame.message() else {
        panic!("{:?}", frame.message());
    };
    assert_eq!(
        (found.opcode(), found.dest_qp()),
        (Opcode::RC_SEND_ONLY, QP)
    );
    for len in 0..end {
        let frame = Frame::parse(&bytes[..len], end, LinkType::Ethernet, &Profile::DEFAULT);
        assert!(matches!(frame.end(), End::Cut { .. }), "{len}");
    }
    // A native packet is not RoCE v1.
    let native = infiniband(Some(gids), &bth);
    let link = LinkType::InfiniBand;
    let frame = Frame::parse(&native, native.len(), link, &Profile::DEFAULT);
    assert!(!frame.is_roce_v1());
}

#[test]
fn a_csig_tag_is_located_and_read() {
    let outer = wrappings().into_iter().find(|(name, _)| *name == "csig");
    let bytes = sample("fast_cnp_1").wrapped_in(&outer.unwrap().1);
    assert_eq!(read(&bytes).csig(), Some(Csig::from_bits(0x2B85)));
    let mut profile = Profile::DEFAULT;
    profile.set("csig_ether_type=0x9901").unwrap();
    let frame = Frame::parse(&bytes, bytes.len(), LinkType::Ethernet, &profile);
    assert_eq!(
        (frame.csig(), frame.unread()),
        (None, Some(Unread::EtherType(0x9900)))
    );
}

#[test]
fn what_was_not_read_is_named() {
    let of = |bytes: &[u8]| read(bytes).unread();
    let frame_of = |ether_type, bytes| {
        build(&[
            MAC,
            Part::Payload {
                ether_type,
                protocol: 59,
                bytes,
            },
        ])
    };
    // MACsec may carry anything; ARP and LLDP carry no packets; PFC is read.
    assert_eq!(
        of(&frame_of(0x88E5, &[0; 46])),
        Some(Unread::EtherType(0x88E5))
    );
    assert_eq!(of(&frame_of(0x0806, &[0; 46])), None);
    assert_eq!(of(&frame_of(0x88CC, &[0; 46])), None);
    assert_eq!(of(&frame_of(0x8808, &[1, 1, 0, 0])), None);
    // An Arista tag of an unknown version.
    let tag = [0, 2, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0];
    assert_eq!(of(&frame_of(0xD28B, &tag)), Some(Unread::EtherType(0xD28B)));
    let gre = |bytes| {
        build(&[
            MAC,
            v4(&[]),
            Part::Payload {
                ether_type: 0,
                protocol: 47,
                bytes,
            },
        ])
    };
    assert_eq!(
        of(&gre(&[0, 0, 0x12, 0x34])),
        Some(Unread::GreProtocol(0x1234))
    );
    assert_eq!(
        of(&gre(&[0, 1, 0x88, 0x0B])),
        Some(Unread::GreProtocol(0x880B))
    );
    // Datagrams to RoCEv2's port: of an unusual source port, with a wrong ICRC and a right one.
    let data = |icrc| {
        build(&[
            MAC,
            v4(&[]),
            udp(4791, 4791),
            Part::Bth(BthRepr::new(Opcode::RC_SEND_ONLY, QP, 5)),
            Part::Bytes(&[0xAB; 16]),
            icrc,
        ])
    };
    let wrong = data(Part::Icrc(Policy::Zero));
    assert_eq!(of(&wrong), Some(Unread::RoceUnproven(4791)));
    assert_eq!(of(&data(ICRC)), None);
    let mut frame = read(&wrong);
    frame.accept_as_roce();
    assert!(frame.is_roce() && frame.unread().is_none());
    assert!(matches!(frame.verify_icrc(), Verdict::Bad { .. }));
    // Nothing else can be accepted.
    let other = build(&[MAC, v4(&[]), udp(4791, 4792), Part::Bytes(&[0; 40])]);
    let mut frame = read(&other);
    frame.accept_as_roce();
    assert!(!frame.is_roce() && frame.unread().is_none());
    // Fragments of what may carry RoCE.
    let fragment = |protocol| {
        let mut bytes = build(&[MAC, v4(&[]), udp(50000, 4791), Part::Bytes(&[0; 40])]);
        (bytes[20], bytes[23]) = (0x20, protocol);
        of(&bytes)
    };
    assert_eq!(fragment(17), Some(Unread::Fragment));
    assert_eq!(fragment(1), None);
}

#[test]
fn a_bridges_notification_is_read_with_its_tag() {
    let mut message = [0; 24];
    (message[1], message[9], message[14]) = (21, 3, 0x60);
    for tag in [&[][..], &[0x22, 0xE9, 0, 7]] {
        let mut bytes = build(&[
            MAC,
            Part::Payload {
                ether_type: 0x22E7,
                protocol: 59,
                bytes: &message,
            },
        ]);
        bytes.splice(12..12, tag.iter().copied());
        let whole = bytes.len();
        let frame = read(&bytes);
        let Message::Cnm(cnm) = frame.message() else {
            panic!("{:?}", frame.message());
        };
        assert_eq!((cnm.feedback(), cnm.congestion_point()), (21, 3));
        assert!(frame.unread().is_none() && findings(&frame).is_empty());
        for len in 0..whole {
            let frame = Frame::parse(&bytes[..len], whole, LinkType::Ethernet, &Profile::DEFAULT);
            assert!(matches!(frame.end(), End::Cut { .. }), "{len}");
        }
    }
}

#[test]
fn a_global_pause_is_not_pfc() {
    let pause = |opcode: [u8; 2]| {
        build(&[
            MAC,
            Part::Payload {
                ether_type: 0x8808,
                protocol: 59,
                bytes: &[opcode[0], opcode[1], 0xFF, 0xFF],
            },
        ])
    };
    let (all, classes) = (pause([0, 1]), pause([1, 1]));
    assert_eq!(read(&all).global_pause(), Some(0xFFFF));
    assert_eq!(read(&classes).global_pause(), None);
    assert_eq!(read(&all).mac_control_source(), Some([2, 0, 0, 0, 0, 1]));
}

#[test]
fn extension_headers_are_followed_in_any_order() {
    const SEGMENTS: [Ipv6Addr; 2] = [SENDER, RECEIVER];
    let segments = Part::SegmentRouting {
        left: 1,
        segments: &SEGMENTS,
    };
    let atomic = Part::Fragment {
        offset: 0,
        more: false,
        id: 1,
    };
    let pad = [OptionPart::Raw(0x1D, (1, 0), &[0; 4])];
    let authentication = Part::RawExtension(51, &[0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 2, 3, 4]);
    let headers = [
        (segments, 40),
        (atomic, 8),
        (authentication, 16),
        (Part::DestinationOptions(&pad), 8),
    ];
    let mut orders = 0;
    for order in 0..4usize.pow(4) {
        let order: Vec<_> = (0..4).map(|i| order / 4usize.pow(i) % 4).collect();
        if (0..4).any(|header| !order.contains(&header)) {
            continue;
        }
        orders += 1;
        for hop_by_hop in [false, true] {
            // The final destination is the routing header's first segment, preceded by a hop.
            let mut parts = vec![MAC, v6(SWITCH, RECEIVER)];
            let mut payload = 54 + 48;
            if hop_by_hop {
                parts.push(Part::HopByHop(&pad));
                payload += 8;
            }
            parts.extend(order.iter().map(|header| headers[*header].0));
            payload += 24;
            let option = [OptionPart::FastCnp(
                fcn_wire::fast_cnp::FastCnpRepr::Option1 {
                    original_destination: RECEIVER,
                },
            )];
            let cnp = fcn_wire::cnp::CnpRepr::new(QP);
            parts.extend([
                Part::DestinationOptions(&option),
                ROCE,
                Part::Cnp(cnp),
                ICRC,
            ]);
            payload += 24;
            let bytes = build(&parts);
            let frame = read(&bytes);
            assert_eq!(frame.end(), End::Complete, "{order:?}");
            let ip = frame.ip().unwrap();
            assert_eq!((ip.payload, ip.protocol), (payload, 17), "{order:?}");
            assert_eq!(ip.destination, IpAddr::from(SENDER), "the last segment");
            assert_eq!(bytes.len(), payload + 8 + CNP_LEN);
            let n = Notification::from_frame(&frame).unwrap();
            assert_eq!((n.kind, n.destination), (Kind::FastCnp1, SENDER.into()));
            let rules: Vec<_> = findings(&frame).into_iter().map(|f| f.rule).collect();
            assert_eq!(rules, [Rule::FastCnpSeveralHeaders], "{order:?}");
        }
    }
    assert_eq!(orders, 24);
}

#[test]
fn fragments_are_reported_as_fragments() {
    let inner = sample("cnp_v6");
    let udp = &inner.ip[40..];
    for (offset, more, whole) in [
        (0, true, false),
        (8, true, false),
        (1480, false, false),
        (0, false, true),
    ] {
        let fragment = Part::Fragment {
            offset,
            more,
            id: 7,
        };
        let payload = Part::Payload {
            ether_type: 0,
            protocol: 17,
            bytes: udp,
        };
        let option = [OptionPart::FastCnp(
            fcn_wire::fast_cnp::FastCnpRepr::Option1 {
                original_destination: RECEIVER,
            },
        )];
        for options in [&[][..], &[Part::DestinationOptions(&option)]] {
            let bytes =
                build(&[&[MAC, v6(SWITCH, SENDER)], options, &[fragment, payload]].concat());
            let frame = read(&bytes);
            if whole {
                assert_eq!(frame.end(), End::Complete);
                assert!(frame.is_roce());
                continue;
            }
            let offset = usize::from(offset);
            assert_eq!(frame.end(), End::Fragment { offset, more });
            assert!(frame.datagram().is_none() && !frame.is_roce());
            assert!(findings(&frame).is_empty(), "{:?}", findings(&frame));
            assert_eq!(Notification::from_frame(&frame), None);
            assert_eq!(frame.verify_icrc(), Verdict::Unchecked);
        }
    }
    // IPv4: more fragments, an offset, both; don't-fragment alone is not a fragment.
    let good = sample("cnp_v4").wrapped_in(&[]);
    for (field, end) in [
        (0x4000u16, End::Complete),
        (0x0000, End::Complete),
        (
            0x2000,
            End::Fragment {
                offset: 0,
                more: true,
            },
        ),
        (
            0x0001,
            End::Fragment {
                offset: 8,
                more: false,
            },
        ),
        (
            0x3FFF,
            End::Fragment {
                offset: 65528,
                more: true,
            },
        ),
    ] {
        let mut bytes = good.clone();
        bytes[20..22].copy_from_slice(&field.to_be_bytes());
        let frame = read(&bytes);
        assert_eq!(frame.end(), end, "{field:#06x}");
        assert_eq!(frame.is_roce(), end == End::Complete);
        assert_eq!(layers(&frame).contains(&Layer::Udp), end == End::Complete);
    }
}

#[test]
fn zero_lengths_extend_to_the_end_of_the_frame() {
    // Segmentation left to the sender's hardware, or a jumbogram. The range that the ICRC covers is
    // unknown then.
    let (ip4, ip6, udp6) = (16, 18, 58);
    for (name, zeros) in [
        ("cnp_v4", &[ip4][..]),
        ("cnp_v6", &[ip6]),
        ("cnp_v6", &[udp6]),
        ("cnp_v6", &[ip6, udp6]),
    ] {
        let mut bytes = sample(name).wrapped_in(&[]);
        for at in zeros {
            bytes[*at..at + 2].fill(0);
        }
        let frame = read(&bytes);
        assert_eq!(frame.end(), End::Complete, "{name} {zeros:?}");
        let datagram = frame.datagram().unwrap();
        assert_eq!(datagram.payload_len, CNP_LEN);
        assert!(matches!(frame.message(), Message::Cnp(_)));
        assert_eq!(frame.verify_icrc(), Verdict::Unchecked);
    }
    // IPv4 has no jumbograms, so its UDP always states a length.
    let mut bytes = sample("cnp_v4").wrapped_in(&[]);
    bytes[38..40].fill(0);
    let frame = read(&bytes);
    assert!(matches!(frame.end(), End::Malformed(e) if e.offset == 38));
    assert!(!frame.is_roce());
    let mut bytes = sample("bgp").wrapped_in(&[]);
    bytes[18..20].fill(0);
    let frame = read(&bytes);
    let Upper::Bgp(74, found) = *frame.upper() else {
        panic!("{:?}", frame.upper());
    };
    assert_eq!(found, &bytes[74..]);
    assert!(findings(&frame).is_empty());
}

#[test]
fn trailing_octets_are_not_payload() {
    // Padding to Ethernet's minimum, a frame check sequence, both.
    for trailer in [&[0; 2][..], &[0xDE, 0xAD, 0xBE, 0xEF], &[0x5A; 46]] {
        for sample in samples() {
            // BGP has no length besides the packet's; the message is the same.
            let bytes = sample.wrapped_in(&[]);
            let longer = [&bytes[..], trailer].concat();
            let (frame, with) = (read(&bytes), read(&longer));
            assert_eq!(with.end(), End::Complete, "{}", sample.name);
            assert_eq!(with.spans()[0].end, longer.len());
            assert_eq!(with.spans()[1..], frame.spans()[1..]);
            assert_eq!(with.ip(), frame.ip());
            assert!(findings(&with).is_empty(), "{}", sample.name);
            assert_eq!(with.verify_icrc(), frame.verify_icrc());
            if let Some(datagram) = with.datagram() {
                assert_eq!(datagram.payload, frame.datagram().unwrap().payload);
            }
            // Cut within the trailer, the packet is complete.
            let cut = &longer[..longer.len() - 1];
            let cut = Frame::parse(cut, longer.len(), LinkType::Ethernet, &Profile::DEFAULT);
            assert_eq!(cut.end(), End::Complete, "{}", sample.name);
            assert!(!cut.is_cut());
        }
    }
    // Octets after UDP's own length, within the IP packet.
    let inner = sample("cnp_v6");
    let longer = [&inner.ip[40..], &[0xEE; 6]].concat();
    let payload = Part::Payload {
        ether_type: 0,
        protocol: 17,
        bytes: &longer,
    };
    let bytes = build(&[MAC, v6(RECEIVER, SENDER), payload]);
    let frame = read(&bytes);
    assert_eq!(frame.datagram().unwrap().payload_len, CNP_LEN);
    assert!(matches!(frame.message(), Message::Cnp(_)));
}

#[test]
fn only_vxlan_with_its_flag_is_opened() {
    let inner = sample("cnp_v6").wrapped_in(&[]);
    for flags in 0..=255u8 {
        let header = [flags, 0, 0, 0, 0, 0, 42, 0];
        let bytes = build(&[
            MAC,
            v4(&[]),
            udp(1, 4789),
            Part::Bytes(&header),
            Part::Bytes(&inner),
        ]);
        let frame = read(&bytes);
        assert_eq!(frame.end(), End::Complete);
        if flags & 8 != 0 {
            assert!(matches!(frame.message(), Message::Cnp(_)), "{flags:#x}");
        } else {
            assert_eq!(layers(&frame), [Layer::Ethernet, Layer::Ipv4, Layer::Udp]);
            assert!(matches!(frame.message(), Message::Other), "{flags:#x}");
        }
    }
}

/// A port (0: GRE), a tunnel's header, its payload, and the bits of the header's octets that
/// identify the tunnel.
type Telling<'a> = (u16, &'a [u8], &'a [u8], &'a [(usize, u8)]);

/// A payload at a tunnel's port or in GRE that cannot be the tunnel is left to other protocols.
#[test]
fn only_valid_tunnel_headers_are_opened() {
    let inner = sample("cnp_v6").wrapped_in(&[]);
    let ip = &inner[14..];
    let headers: [Telling<'_>; 4] = [
        (
            6081,
            &[0, 0, 0x65, 0x58, 0, 0, 42, 0],
            &inner,
            &[(0, 0xC0), (1, 0x80), (2, 0xFF), (3, 0xFF)],
        ),
        (
            4790,
            &[0x0C, 0, 0, 3, 0, 0, 42, 0],
            &inner,
            &[(0, 0x3D), (3, 0xF8)],
        ),
        (
            2152,
            &[0x30, 255, 0, 0, 0, 0, 0, 42],
            ip,
            &[(0, 0xF0), (1, 0xFF)],
        ),
        (
            0,
            &[0, 0, 0x65, 0x58],
            &inner,
            &[(0, 0x4C), (1, 0x07), (2, 0xFF), (3, 0xFF)],
        ),
    ];
    for (port, header, inner, telling) in headers {
        let build = |header: &[u8]| {
            let content = [header, inner].concat();
            if port == 0 {
                let payload = Part::Payload {
                    ether_type: 0,
                    protocol: 47,
                    bytes: &content,
                };
                return build(&[MAC, v4(&[]), payload]);
            }
            build(&[MAC, v4(&[]), udp(1, port), Part::Bytes(&content)])
        };
        let mut right = header.to_vec();
        if port == 2152 {
            right[2..4].copy_from_slice(&(inner.len() as u16).to_be_bytes());
        }
        let bytes = build(&right);
        assert!(matches!(read(&bytes).message(), Message::Cnp(_)), "{port}");
        for &(at, bits) in telling {
            for bit in (0..8).map(|bit| 1u8 << bit) {
                let mut wrong = right.clone();
                wrong[at] ^= bit;
                if bit & bits == 0 {
                    continue;
                }
                let bytes = build(&wrong);
                let frame = read(&bytes);
                assert_eq!(frame.end(), End::Complete, "{port} {at} {bit:#x}");
                assert!(
                    matches!(frame.message(), Message::Other),
                    "{port} {at} {bit:#x}"
                );
                assert!(!frame.is_checked());
                // It is the same datagram as without a tunnel.
                assert_eq!(frame.datagram().is_some(), port != 0);
            }
        }
    }
    // Too short for the header, and empty.
    for port in [6081, 4790, 2152] {
        for len in 0..8 {
            let bytes = build(&[
                MAC,
                v4(&[]),
                udp(1, port),
                Part::Bytes(&[0x30, 255, 0, 0, 0, 0, 0][..len.min(7)]),
            ]);
            let frame = read(&bytes);
            assert_eq!(frame.end(), End::Complete, "{port} {len}");
            assert_eq!(frame.datagram().map(|d| d.payload_len), Some(len.min(7)));
        }
    }
}

#[test]
fn mirror_headers_identify_the_capture_point() {
    let fast_cnp = sample("fast_cnp_1");
    let wrappings: BTreeMap<_, _> = wrappings().into_iter().collect();
    let place = |name: &str| {
        let bytes = fast_cnp.wrapped_in(&wrappings[name]);
        let frame = read(&bytes);
        let own: Vec<_> = frame.inner_spans().iter().map(|span| span.start).collect();
        frame.mirror().map(|mirror| {
            assert_eq!(own.first(), Some(&mirror.start), "{name}");
            let header = mirror.header;
            assert_eq!(
                mirror.format,
                match name {
                    "spectrum" => Layer::Spectrum,
                    "tzsp" => Layer::Tzsp,
                    _ => Layer::Erspan,
                }
            );
            (
                mirror.exporter,
                header.session(),
                header.direction(),
                header.port(),
            )
        })
    };
    let v4: IpAddr = frame_support::SENDER4.into();
    assert_eq!(place("erspan_1"), Some((v4, None, None, None)));
    assert_eq!(
        place("erspan_2"),
        Some((SWITCH.into(), Some(17), None, Some(5)))
    );
    let ingress = Some(Direction::Ingress);
    assert_eq!(place("erspan_3"), Some((v4, Some(18), ingress, Some(9))));
    for name in ["spectrum", "tzsp"] {
        assert_eq!(place(name), Some((v4, None, None, None)));
    }
    let mirrors = ["erspan", "spectrum", "tzsp"];
    let is_mirror = |name: &str| mirrors.iter().any(|mirror| name.starts_with(mirror));
    for name in wrappings.keys().filter(|name| !is_mirror(name)) {
        assert_eq!(place(name), None, "{name}");
    }
}

/// A mirror that truncates frames indicates it; the original length is in the frame's own length
/// fields.
#[test]
fn mirror_truncated_frames_are_cut() {
    let data = frame_support::data_v6();
    let payload = Part::Payload {
        ether_type: 0x86DD,
        protocol: 41,
        bytes: &data,
    };
    let inner = build(&[MAC, payload]);
    let whole = {
        let header = Erspan::II(Erspan2::default());
        copy(header, &inner)
    };
    assert!(read(&whole).is_complete());
    let bth_end = read(&inner).datagram().unwrap().payload_at() + 12;
    for kept in 0..inner.len() {
        let header = Erspan::II(Erspan2 {
            truncated: true,
            ..Erspan2::default()
        });
        let mut bytes = copy(header, &inner[..kept]);
        let copied = bytes.len();
        // Padded by the link that carried the copy.
        bytes.extend([0xEE; 20]);
        let frame = read(&bytes);
        let End::Cut { have, .. } = frame.end() else {
            panic!("{kept}: {:?}", frame.end());
        };
        assert_eq!((have, frame.bytes().len()), (copied, copied));
        assert!(findings(&frame).is_empty(), "{kept}");
        if kept >= bth_end {
            assert!(matches!(frame.message(), Message::Roce(..)), "{kept}");
            assert_eq!(frame.verify_icrc(), Verdict::Unchecked);
        }
        // A header without a flag for it: truncated according to the frame's length fields, if
        // these were kept.
        let bytes = copy(Erspan::I, &inner[..kept]);
        let is_cut = matches!(read(&bytes).end(), End::Cut { .. });
        assert_eq!(is_cut, kept >= 54, "{kept}");
        // Without the flag, the lengths contradict each other.
        let bytes = copy(Erspan::II(Erspan2::default()), &inner[..kept]);
        assert!(matches!(read(&bytes).end(), End::Malformed(_)), "{kept}");
    }
}

fn copy(header: Erspan, frame: &[u8]) -> Vec<u8> {
    let gre = Part::Gre {
        checksum: false,
        key: None,
        sequence: (!matches!(header, Erspan::I)).then_some(1),
    };
    let payload = Part::Payload {
        ether_type: 0,
        protocol: 143,
        bytes: frame,
    };
    build(&[MAC, v4(&[]), gre, Part::Erspan(header), payload])
}

/// Every mirror's copy of every message equals that message, octet for octet.
#[test]
fn mirrored_copies_equal_the_original() {
    for sample in samples() {
        let plain = sample.wrapped_in(&[]);
        for encapsulation in Encapsulation::ALL {
            let name = encapsulation.id();
            for (source, destination) in [
                (SWITCH.into(), SENDER.into()),
                (
                    frame_support::SENDER4.into(),
                    frame_support::RECEIVER4.into(),
                ),
            ] {
                let mirrored = MirroredFrame {
                    encapsulation,
                    source,
                    destination,
                    session: 17,
                    port: 3,
                    sequence: 1,
                    at: 5,
                };
                let mut out = vec![0; plain.len() + MirroredFrame::MAX_HEADERS];
                let (len, _) = mirrored
                    .write(&plain, plain.len(), &Profile::DEFAULT, &mut out)
                    .unwrap()
                    .expect("an IP packet");
                let (one, other) = (read(&plain), read(&out[..len]));
                assert_eq!(other.end(), End::Complete, "{name} {}", sample.name);
                let (start, end) = (other.ip().unwrap().start, other.ip().unwrap().end);
                let own = one.ip().unwrap();
                assert_eq!(out[start..end], plain[own.start..own.end], "{name}");
                assert_eq!(
                    Notification::from_frame(&one),
                    Notification::from_frame(&other)
                );
                assert_eq!(
                    other.mirror().is_some(),
                    name.starts_with("erspan"),
                    "{name}"
                );
                // The captured part is sufficient to determine the original length.
                let kept = plain.len() - 1;
                let (len, wire_len) = mirrored
                    .write(&plain[..kept], plain.len(), &Profile::DEFAULT, &mut out)
                    .unwrap()
                    .unwrap();
                assert_eq!(wire_len, len + 1);
                let cut =
                    Frame::parse(&out[..len], wire_len, LinkType::Ethernet, &Profile::DEFAULT);
                assert!(matches!(cut.end(), End::Cut { need, .. } if need <= wire_len));
            }
        }
    }
}

#[test]
fn an_inner_frame_that_is_not_ip_leaves_the_outer_packet() {
    let arp = Part::Payload {
        ether_type: 0x0806,
        protocol: 59,
        bytes: &[0; 28],
    };
    let bytes = build(&[
        MAC,
        v6(SWITCH, RECEIVER),
        udp(1, 4789),
        Part::Vxlan { vni: 1 },
        MAC,
        arp,
    ]);
    let frame = read(&bytes);
    assert_eq!(frame.end(), End::Complete);
    assert_eq!(frame.ip().map(|ip| ip.source), Some(SWITCH.into()));
    assert!(frame.datagram().is_none());
    assert!(matches!(frame.message(), Message::Other));
}

/// A longer packet with the opcode of a CNP, captured up to the length of a CNP.
#[test]
fn a_longer_truncated_packet_is_not_a_cnp() {
    let mut payload = sample("cnp_v6").ip[48..].to_vec();
    payload.extend([0; 64]);
    let bytes = build(&[MAC, v6(RECEIVER, SENDER), ROCE, Part::Bytes(&payload)]);
    let kept = 14 + 48 + CNP_LEN;
    let frame = Frame::parse(
        &bytes[..kept],
        bytes.len(),
        LinkType::Ethernet,
        &Profile::DEFAULT,
    );
    assert!(matches!(frame.end(), End::Cut { need, .. } if need == bytes.len()));
    assert!(matches!(frame.message(), Message::Roce(_, None)));
    assert_eq!(Notification::from_frame(&frame), None);
    let whole = read(&bytes);
    assert!(findings(&whole).has(Rule::CnpMalformed));
}

/// If a header has several IOAM options, the trace is found at any position.
#[test]
fn a_trace_after_another_ioam_option_is_found() {
    let trace = frame_support::trace(fcn_wire::ioam::OptType::Preallocated);
    let option = |code: u8, body| {
        OptionPart::Ioam(fcn_wire::ioam::IoamOption {
            reserved: 0,
            opt_type: code.into(),
            body,
        })
    };
    let options = [option(4, &[0; 8]), option(0, &trace)];
    let bytes = build(&[
        MAC,
        v6(SENDER, RECEIVER),
        Part::HopByHop(&options),
        udp(1, 9),
    ]);
    let frame = read(&bytes);
    let (at, found) = frame.ioam_trace().unwrap();
    assert_eq!(found.bytes(), &trace);
    assert_eq!(bytes[at..at + trace.len()], trace);
    assert_eq!(found.deepest_queue(), Some(9000));
}

/// Counts the contents of a capture, under the names that the captures' manifest uses.
fn counts(path: &Path) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    let mut count = |name, is| {
        if is {
            *counts.entry(name).or_default() += 1;
        }
    };
    for (wire_len, bytes, link) in packets(path) {
        let link = LinkType::from_pcap(link).expect("a link type that is opened");
        let outer = Frame::parse(&bytes, wire_len, link, &Profile::DEFAULT);
        let end = outer.end();
        assert!(!matches!(end, End::Malformed(_)), "{path:?} {end:?}");
        count("frames", true);
        count("pfc", matches!(outer.message(), Message::Pfc(_)));
        let lsp = matches!(*outer.upper(), Upper::IsIs(_, pdu) if pnc::isis::is_lsp(pdu));
        count("isis_lsp", lsp);
        // A packet that an ICMPv6 error quotes counts too. Its original length is only in its own
        // length fields.
        let quoted = outer
            .ip()
            .filter(|ip| ip.protocol == 58 && bytes.get(ip.payload).is_some_and(|kind| *kind < 128))
            .map(|ip| &bytes[ip.payload + 8..ip.end])
            .map(|ip| Frame::parse(ip, 1 << 16, LinkType::RawIp, &Profile::DEFAULT));
        let frames = || [Some(&outer), quoted.as_ref()].into_iter().flatten();
        let any = |is: &dyn Fn(&Frame<'_>) -> bool| frames().any(is);
        let has = |layer| any(&|frame| layers(frame).contains(&layer));
        let roce = |v4| {
            any(&|frame| frame.is_roce() && frame.ip().is_some_and(|ip| ip.source.is_ipv4() == v4))
        };
        count("roce_v4", roce(true));
        count("roce_v6", roce(false));
        count("vxlan", has(Layer::Vxlan));
        count("srh", has(Layer::Routing));
        count("dstopts", has(Layer::DestinationOptions));
        let ioam = any(&|frame| {
            let mut headers = frame.options_headers();
            headers.any(|header| header.readable().any(|option| option.kind == 0x31))
        });
        count("ioam_0x31", ioam);
    }
    counts
}

/// Returns the packets of a pcap or pcapng file: length on the wire, captured octets, link type.
fn packets(path: &Path) -> Vec<(usize, Vec<u8>, u32)> {
    let file = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut packets = Vec::new();
    // By content: one file has the other format's name.
    if file.starts_with(&[0x0A, 0x0D, 0x0D, 0x0A]) {
        let mut reader = pcap_file::pcapng::PcapNgReader::new(&file[..]).unwrap();
        while let Some(block) = reader.next_block() {
            let (block, state) = block.unwrap();
            let pcap_file::pcapng::Block::EnhancedPacket(packet) = block else {
                continue;
            };
            let (len, data) = (packet.original_len as usize, packet.data.to_vec());
            let link = state.interfaces()[packet.interface_id as usize].linktype;
            packets.push((len, data, u32::from(link)));
        }
    } else {
        let mut reader = pcap_file::pcap::PcapReader::new(&file[..]).unwrap();
        let link = u32::from(reader.header().datalink);
        while let Some(packet) = reader.next_packet() {
            let packet = packet.unwrap();
            packets.push((packet.orig_len() as usize, packet.data().to_vec(), link));
        }
    }
    packets
}

#[test]
fn third_party_captures_match_their_manifest() {
    let Some(folder) = std::env::var_os("FCN_CAPTURES") else {
        fcn_skip::skipped!("FCN_CAPTURES is not set");
        return;
    };
    let folder = Path::new(&folder);
    let manifest = std::fs::read_to_string(folder.join("MANIFEST.tsv")).unwrap();
    let mut compared = 0;
    for line in manifest.lines().skip(1) {
        let columns: Vec<_> = line.split('\t').collect();
        let [file, _, frames, _, contents] = columns[..] else {
            panic!("{line}");
        };
        let found = counts(&folder.join(file));
        let contents = contents
            .split(' ')
            .filter_map(|entry| entry.split_once('='));
        let wanted = contents.chain([("frames", frames)]);
        // For OSPF the manifest counts every packet that names such an LSA, including
        // acknowledgements; `pnc_captures.rs` has those that advertise prefixes.
        for (name, want) in wanted.filter(|(name, _)| !name.starts_with("ospf")) {
            let want = want.parse::<usize>().unwrap();
            let found = found.get(name).copied().unwrap_or(0);
            assert_eq!(found, want, "{file}: {name}");
            compared += 1;
        }
    }
    assert!(compared > 13, "{compared} counts compared");
}

#[test]
fn offloaded_checksums_are_not_wrong() {
    let part = |bytes: &[u8]| {
        bytes
            .chunks(2)
            .map(|two| u32::from(two[0]) << 8 | u32::from(two[1]))
            .sum::<u32>()
    };
    let packet = build(&[
        v6(SWITCH, SENDER),
        udp(49152, 1022),
        Part::Bytes(&(0xABCD_u32 << 12 | 3 << 9).to_be_bytes()),
    ]);
    let (ip, at) = (&packet[..40], 46);
    // The pseudo-header alone, as Linux leaves it: addresses, length, protocol.
    let sum = part(&ip[8..]) + 12 + 17;
    let pseudo = (sum & 0xFFFF) + (sum >> 16);
    let pseudo = ((pseudo & 0xFFFF) + (pseudo >> 16)) as u16;
    for (checksum, dropped) in [(pseudo, false), (pseudo ^ 1, true), (0, true)] {
        let mut bytes = packet.clone();
        bytes[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
        let frame = Frame::parse(&bytes, bytes.len(), LinkType::RawIp, &Profile::DEFAULT);
        let datagram = frame.datagram().unwrap();
        assert_eq!(datagram.has_bad_checksum(), dropped, "{checksum:#06x}");
        assert_eq!(matches!(frame.message(), Message::WanFcn(_)), !dropped);
    }
}

#[test]
fn an_empty_datagram_is_not_attributed() {
    let mut bytes = sample("cnp_v6").wrapped_in(&[]);
    bytes.truncate(62);
    bytes[18..20].copy_from_slice(&8u16.to_be_bytes());
    bytes[58..60].copy_from_slice(&8u16.to_be_bytes());
    let frame = read(&bytes);
    assert_eq!((frame.end(), frame.is_roce()), (End::Complete, false));
    assert!(findings(&frame).is_empty());
}

#[test]
fn outer_lengths_do_not_affect_the_innermost_packet() {
    // 40 octets of outer IPv6 with a wrong length; then both lengths are wrong.
    let inner = sample("cnp_v6").wrapped_in(&[]);
    let mut bytes = inner[..54].to_vec();
    bytes[20] = 41;
    bytes[18..20].copy_from_slice(&200u16.to_be_bytes());
    bytes.extend(&inner[14..]);
    let frame = read(&bytes);
    assert!(matches!(frame.end(), End::Malformed(e) if e.offset == 18));
    assert!(matches!(frame.verify_icrc(), Verdict::Good(_)));
    assert!(findings(&frame).is_empty());
    bytes[58..60].copy_from_slice(&100u16.to_be_bytes());
    let frame = read(&bytes);
    let found = findings(&frame);
    let first = found.as_slice()[0];
    assert_eq!((first.rule, first.offset), (Rule::PacketLength, 58));
    assert_eq!(frame.verify_icrc(), Verdict::Unchecked);
}

#[test]
fn an_options_header_longer_than_its_packet_contradicts_the_length() {
    let mut bytes = sample("fast_cnp_1").wrapped_in(&[]);
    bytes[55] = 40;
    let rules: Vec<_> = findings(&read(&bytes))
        .as_slice()
        .iter()
        .map(|found| (found.rule, found.offset))
        .collect();
    assert_eq!(rules, [(Rule::PacketLength, 54)]);
    // Not recognised as ours.
    bytes[56] = 0x1D;
    assert!(findings(&read(&bytes)).is_empty());
}

/// Builds a transport header with that opcode for QP 0x1234, the given FECN, and `more` octets.
fn transport(opcode: Opcode, fecn: bool, more: usize) -> Vec<u8> {
    let bth = BthRepr {
        fecn,
        becn: opcode == Opcode::IB_CNP,
        ..BthRepr::new(opcode, Qp::truncate(0x1234), 9)
    };
    let mut octets = bth.to_bytes().to_vec();
    octets.resize(octets.len() + more, 0);
    octets
}

#[test]
fn infiniband_is_opened_by_itself_and_in_erf() {
    let cnp = transport(Opcode::IB_CNP, false, 16);
    let gids = [1, 2].map(|end| Ipv6Addr::from([0xFE80, 0, 0, 0, 2, 0xC9FF, 0xFE00, end]));
    let lids = [0x17, 0x2A].map(|lid| Ipv6Addr::from([0xFE80, 0, 0, 0, 0, 0, 0, lid]));
    for ends in [None, Some(gids)] {
        let plain = infiniband(ends, &cnp);
        let [source, destination] = ends.unwrap_or(lids).map(IpAddr::from);
        for (link, bytes, front) in [
            (LinkType::InfiniBand, plain.clone(), vec![]),
            (LinkType::Erf, erf(21, 0, &plain), vec![Layer::Erf]),
            (LinkType::Erf, erf(21, 2, &plain), vec![Layer::Erf]),
        ] {
            let parse = |bytes, wire_len| Frame::parse(bytes, wire_len, link, &Profile::DEFAULT);
            let frame = parse(&bytes, bytes.len());
            assert_eq!(frame.end(), End::Complete);
            let own = [Layer::Lrh].into_iter().chain(ends.map(|_| Layer::Grh));
            assert_eq!(
                layers(&frame),
                front.into_iter().chain(own).collect::<Vec<_>>()
            );
            let n = Notification::from_frame(&frame).unwrap();
            assert_eq!(
                (n.kind, n.notifier, n.destination),
                (Kind::Cnp, source, destination)
            );
            assert_eq!(n.subject, Subject::SenderQp(Qp::truncate(0x1234)));
            assert!(findings(&frame).is_empty());
            // Everything except the Variant CRC.
            let (payload, len) = frame.transport().unwrap();
            assert_eq!((payload.len(), len), (cnp.len() + 4, cnp.len() + 4));
            for len in 0..bytes.len() {
                let cut = parse(&bytes[..len], bytes.len());
                if len < bytes.len() - 2 {
                    assert!(
                        matches!(cut.end(), End::Cut { .. }),
                        "{len}: {:?}",
                        cut.end()
                    );
                }
                // Its length on the wire is sufficient if the transport header is present.
                let told = Notification::from_frame(&cut).map(|n| (n.notifier, n.subject));
                let has_it = bytes.len() - len <= 16 + 4 + 2;
                assert_eq!(told, has_it.then_some((source, n.subject)), "{len}");
            }
            // The part left out of a capture, as if it had not existed: CRCs may be missing, for a
            // CNP at least.
            for missing in 1..=6 {
                let len = bytes.len() - missing;
                assert_eq!(
                    Notification::from_frame(&parse(&bytes[..len], len)),
                    Some(n),
                    "{missing}"
                );
            }
            let len = bytes.len() - 7;
            assert_eq!(Notification::from_frame(&parse(&bytes[..len], len)), None);
        }
    }
    // Data, and packets with another transport or version.
    let data = infiniband(Some(gids), &transport(Opcode::RC_SEND_ONLY, true, 64));
    let of = |bytes: &[u8]| {
        let frame = Frame::parse(bytes, bytes.len(), LinkType::InfiniBand, &Profile::DEFAULT);
        let is_roce = matches!(frame.message(), Message::Roce(bth, Some(_)) if bth.fecn());
        (is_roce, frame.end(), frame.transport().is_some())
    };
    assert_eq!(of(&data), (true, End::Complete, true));
    for (at, octet) in [(1, 0x30), (1, 0x31), (14, 17)] {
        let mut other = data.clone();
        other[at] = octet;
        assert_eq!(of(&other), (false, End::Complete, false), "{at}");
    }
    for (at, octet) in [(0, 0x11), (8, 0x5B), (5, 0), (5, 2)] {
        let mut wrong = data.clone();
        wrong[at] = octet;
        let (is_roce, end, has_transport) = of(&wrong);
        assert!(
            !is_roce && !has_transport && matches!(end, End::Malformed(_)),
            "{at}: {end:?}"
        );
    }
    // A length too short for the content: the rest does not count.
    let mut short = data.clone();
    short[5] = 12 + 3;
    assert_eq!(of(&short).1, End::Complete);
    // A longer CNP is not a CNP, and RoCEv2's opcode is not valid here.
    for octets in [
        transport(Opcode::IB_CNP, false, 20),
        transport(Opcode::CNP, false, 16),
    ] {
        let bytes = infiniband(None, &octets);
        let frame = Frame::parse(&bytes, bytes.len(), LinkType::InfiniBand, &Profile::DEFAULT);
        assert_eq!(Notification::from_frame(&frame), None);
    }
}

#[test]
fn ethernet_is_opened_in_erf() {
    let fast_cnp = samples().swap_remove(3).wrapped_in(&[]);
    for (kind, extensions) in [(2, 0), (2, 3)] {
        // The frame check sequence follows it.
        let bytes = erf(kind, extensions, &[&fast_cnp[..], &[0xFC; 4]].concat());
        let parse =
            |bytes, wire_len| Frame::parse(bytes, wire_len, LinkType::Erf, &Profile::DEFAULT);
        let frame = parse(&bytes, bytes.len());
        assert_eq!(frame.end(), End::Complete);
        assert_eq!(layers(&frame)[..2], [Layer::Erf, Layer::Ethernet]);
        let n = Notification::from_frame(&frame).unwrap();
        assert_eq!(n.kind, Kind::FastCnp1);
        assert!(findings(&frame).is_empty());
        assert!(matches!(frame.verify_icrc(), Verdict::Good(_)));
        assert_eq!(erf_header_len(&bytes), bytes.len() - fast_cnp.len() - 4);
        for len in 0..bytes.len() - 4 {
            assert!(
                matches!(parse(&bytes[..len], bytes.len()).end(), End::Cut { .. }),
                "{len}"
            );
        }
        // A record that states a shorter length holds no more than that.
        let mut wrong = bytes.clone();
        wrong[14..16].copy_from_slice(&20_u16.to_be_bytes());
        assert!(matches!(
            parse(&wrong, wrong.len()).end(),
            End::Malformed(_)
        ));
    }
    // Another type.
    let bytes = erf(1, 0, &fast_cnp);
    let frame = Frame::parse(&bytes, bytes.len(), LinkType::Erf, &Profile::DEFAULT);
    assert_eq!(
        (layers(&frame), frame.end()),
        (vec![Layer::Erf], End::Complete)
    );
}
