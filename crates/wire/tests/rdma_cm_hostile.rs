//! RDMA CM messages: round trips in both directions, truncated messages, and errors in every field.

use fcn_wire::bth::MAX_24;
use fcn_wire::mad::{MAD_HEADER_LEN, MAD_LEN, Mad};
use fcn_wire::rdma_cm::{
    Cm, CmRepr, ConnectRejectRepr, ConnectReplyRepr, ConnectRequestRepr, DREQ_PRIVATE_LEN,
    DisconnectReplyRepr, DisconnectRequestRepr, IDS_PRIVATE_LEN, IP_CM_LEN, IpCm, Kind,
    MessageRepr, Path, PathMtu, REJ_PRIVATE_LEN, REP_PRIVATE_LEN, REQ_PRIVATE_LEN, ReadyToUseRepr,
    ServiceId, Transport, gid_from_ip, gid_to_ip,
};
use fcn_wire::{Error, ErrorKind, Layer};
use proptest::array::uniform;
use proptest::collection::vec;
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const KINDS: [Kind; 6] = [
    Kind::ConnectRequest,
    Kind::ConnectReject,
    Kind::ConnectReply,
    Kind::ReadyToUse,
    Kind::DisconnectRequest,
    Kind::DisconnectReply,
];

/// Returns the number of octets of each message before its private data, including the MAD header.
const fn fixed(kind: Kind) -> usize {
    MAD_LEN
        - match kind {
            Kind::ConnectRequest => REQ_PRIVATE_LEN,
            Kind::ConnectReply => REP_PRIVATE_LEN,
            Kind::ConnectReject => REJ_PRIVATE_LEN,
            Kind::DisconnectRequest => DREQ_PRIVATE_LEN,
            _ => IDS_PRIVATE_LEN,
        }
}

fn path() -> impl Strategy<Value = Path> {
    (
        any::<(u16, u16, Ipv6Addr, Ipv6Addr, u8, u8, bool)>(),
        (0u32..1 << 20, 0u8..64, 0u8..16, 0u8..32),
    )
        .prop_map(
            |(
                (
                    local_lid,
                    remote_lid,
                    local_gid,
                    remote_gid,
                    traffic_class,
                    hop_limit,
                    subnet_local,
                ),
                (flow_label, packet_rate, sl, local_ack_timeout),
            )| Path {
                local_lid,
                remote_lid,
                local_gid,
                remote_gid,
                flow_label,
                packet_rate,
                traffic_class,
                hop_limit,
                sl,
                subnet_local,
                local_ack_timeout,
            },
        )
}

fn request() -> impl Strategy<Value = MessageRepr> {
    let narrow = (
        uniform::<_, 5>(0..=MAX_24),
        uniform::<_, 2>(0u8..32),
        uniform::<_, 3>(0u8..8),
        uniform::<_, 2>(0u8..16),
        0u8..4,
    );
    let wide = any::<(u32, u64, u64, u32, u8, u8, u16, bool, bool, bool)>();
    (narrow, wide, path(), path(), uniform(any::<u8>())).prop_map(
        |((n24, n5, n3, n4, transport), wide, primary, alternate, private)| {
            MessageRepr::from(ConnectRequestRepr {
                local_comm_id: wide.0,
                vendor_id: n24[0],
                service_id: ServiceId(wide.1),
                local_ca_guid: wide.2,
                local_q_key: wide.3,
                local_qpn: n24[1],
                responder_resources: wide.4,
                local_eecn: n24[2],
                initiator_depth: wide.5,
                remote_eecn: n24[3],
                remote_cm_response_timeout: n5[0],
                transport: [
                    Transport::Rc,
                    Transport::Uc,
                    Transport::Rd,
                    Transport::Extended,
                ][usize::from(transport)],
                end_to_end_flow_control: wide.7,
                starting_psn: n24[4],
                local_cm_response_timeout: n5[1],
                retry_count: n3[0],
                partition_key: wide.6,
                path_mtu: PathMtu(n4[0]),
                rdc_exists: wide.8,
                rnr_retry_count: n3[1],
                max_cm_retries: n4[1],
                srq: wide.9,
                extended_transport: n3[2],
                primary,
                alternate,
                private_data: private,
            })
        },
    )
}

fn reply() -> impl Strategy<Value = MessageRepr> {
    let narrow = (uniform::<_, 4>(0..=MAX_24), 0u8..32, 0u8..4, 0u8..8);
    let wide = any::<(u32, u32, u32, u8, u8, u64, bool, bool)>();
    (narrow, wide, uniform(any::<u8>())).prop_map(|((n24, n5, n2, n3), wide, private)| {
        MessageRepr::from(ConnectReplyRepr {
            local_comm_id: wide.0,
            remote_comm_id: wide.1,
            vendor_id: n24[0],
            local_q_key: wide.2,
            local_qpn: n24[1],
            local_eecn: n24[2],
            starting_psn: n24[3],
            responder_resources: wide.3,
            initiator_depth: wide.4,
            target_ack_delay: n5,
            failover_accepted: n2,
            end_to_end_flow_control: wide.6,
            rnr_retry_count: n3,
            srq: wide.7,
            local_ca_guid: wide.5,
            private_data: private,
        })
    })
}

fn message() -> impl Strategy<Value = MessageRepr> {
    let ids = || any::<(u32, u32)>();
    prop_oneof![
        request(),
        reply(),
        (
            ids(),
            0..4_u8,
            any::<u16>(),
            0..128_u8,
            uniform(any::<u8>()),
            uniform(any::<u8>())
        )
            .prop_map(
                |(ids, message_rejected, reason, information_len, information, private)| {
                    MessageRepr::from(ConnectRejectRepr {
                        local_comm_id: ids.0,
                        remote_comm_id: ids.1,
                        message_rejected,
                        reason,
                        information_len,
                        information,
                        private_data: private,
                    })
                }
            ),
        (ids(), uniform(any::<u8>())).prop_map(|(ids, private)| {
            MessageRepr::from(ReadyToUseRepr {
                local_comm_id: ids.0,
                remote_comm_id: ids.1,
                private_data: private,
            })
        }),
        (ids(), 0..=MAX_24, uniform(any::<u8>())).prop_map(|(ids, remote_qpn, private)| {
            MessageRepr::from(DisconnectRequestRepr {
                local_comm_id: ids.0,
                remote_comm_id: ids.1,
                remote_qpn,
                private_data: private,
            })
        }),
        (ids(), uniform(any::<u8>())).prop_map(|(ids, private)| {
            MessageRepr::from(DisconnectReplyRepr {
                local_comm_id: ids.0,
                remote_comm_id: ids.1,
                private_data: private,
            })
        }),
    ]
}

fn cm() -> impl Strategy<Value = CmRepr> {
    (any::<u64>(), any::<u32>(), message()).prop_map(
        |(transaction_id, attribute_modifier, message)| CmRepr {
            transaction_id,
            attribute_modifier,
            message,
        },
    )
}

/// Sets the octets that are the same in all such MADs, and clears the message's reserved bits.
fn canonical(kind: Kind, mad: &mut [u8; MAD_LEN]) {
    mad[..8].copy_from_slice(&[1, 7, 2, 3, 0, 0, 0, 0]);
    mad[16..18].copy_from_slice(&kind.attribute().to_be_bytes());
    mad[18..20].fill(0);
    let data = &mut mad[MAD_HEADER_LEN..];
    match kind {
        Kind::ConnectRequest => {
            data[4] = 0;
            data[24..28].fill(0);
            for path in [52, 96] {
                data[path + 38] &= 0xF0;
                data[path + 39] &= 0x3F;
                data[path + 42] &= 0xF8;
                data[path + 43] &= 0xF8;
            }
        }
        Kind::ConnectReply => data[27] &= 0xF0,
        Kind::ConnectReject => {
            data[8] &= 0xC0;
            data[9] &= 0xFE;
        }
        Kind::DisconnectRequest => data[11] = 0,
        _ => {}
    }
}

fn parse(mad: &[u8]) -> CmRepr {
    CmRepr::parse(&Cm::new_checked(mad).unwrap()).unwrap()
}

fn emitted(message: MessageRepr) -> [u8; MAD_LEN] {
    CmRepr::new(7, message).to_bytes().unwrap()
}

fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<Ipv4Addr>().prop_map(IpAddr::V4),
        any::<Ipv6Addr>().prop_map(IpAddr::V6)
    ]
}

proptest! {
    #[test]
    fn parse_after_emit_gives_back_the_value(cm in cm()) {
        let mad = cm.to_bytes().unwrap();
        prop_assert_eq!(parse(&mad), cm);
        prop_assert_eq!(Cm::new_checked(&mad).unwrap().kind(), cm.message.kind());
    }

    #[test]
    fn emit_after_parse_gives_back_the_octets(
        mad in uniform(any::<u8>()),
        kind in proptest::sample::select(&KINDS[..]),
    ) {
        let mut mad: [u8; MAD_LEN] = mad;
        canonical(kind, &mut mad);
        let cm = parse(&mad);
        prop_assert_eq!(cm.message.kind(), kind);
        prop_assert_eq!(cm.to_bytes(), Ok(mad));
    }

    #[test]
    fn reserved_bits_are_ignored(
        mad in uniform(any::<u8>()),
        kind in proptest::sample::select(&KINDS[..]),
    ) {
        let mut mad: [u8; MAD_LEN] = mad;
        mad[..4].copy_from_slice(&[1, 7, 2, 3]);
        mad[16..18].copy_from_slice(&kind.attribute().to_be_bytes());
        let read = parse(&mad);
        canonical(kind, &mut mad);
        prop_assert_eq!(parse(&mad), read);
    }

    #[test]
    fn no_octets_make_it_panic(
        bytes in vec(any::<u8>(), 0..300),
        kind in proptest::sample::select(&KINDS[..]),
        dress in any::<bool>(),
    ) {
        let mut bytes = bytes;
        if dress && bytes.len() >= MAD_HEADER_LEN {
            bytes[..4].copy_from_slice(&[1, 7, 2, 3]);
            bytes[16..18].copy_from_slice(&kind.attribute().to_be_bytes());
        }
        let _ = (format!("{:?}", Mad::new_checked(&bytes)), Cm::new_checked(&bytes).map(|view| CmRepr::parse(&view)));
        if let Ok(view) = Cm::new_lax(&bytes) {
            let _ = (view.kind(), view.local_comm_id(), view.remote_comm_id(), view.local_qpn());
            if let Cm::ConnectRequest(request) = view {
                let _ = request.ip_cm();
                let _ = format!("{:?} {}", gid_to_ip(request.primary().local_gid), request.service_id());
            }
        }
    }

    #[test]
    fn ip_cm_headers_round_trip(
        versions in (0u8..16, 0u8..16),
        source_port in any::<u16>(),
        source in address(),
        destination in address(),
    ) {
        let header = IpCm { major: versions.0, minor: versions.1, source_port, source, destination };
        if source.is_ipv4() == destination.is_ipv4() {
            prop_assert_eq!(IpCm::parse(&header.to_bytes().unwrap()), Ok(header));
        } else {
            prop_assert!(header.to_bytes().is_err());
        }
    }

    #[test]
    fn gids_are_addresses(address in address()) {
        let gid = gid_from_ip(address);
        prop_assert_eq!(gid_to_ip(gid), address.to_canonical());
    }

    #[test]
    fn service_ids_hold_ports(protocol in any::<u8>(), port in any::<u16>(), other in any::<u64>()) {
        let id = ServiceId::ip(protocol, port);
        prop_assert_eq!(id.ip_protocol_port(), Some((protocol, port)));
        prop_assert_eq!(id.0 >> 24, 1);
        let is_ip = other >> 24 == 1;
        prop_assert_eq!(ServiceId(other).port().is_some(), is_ip);
    }
}

fn one_of_each() -> [MessageRepr; 5] {
    let v4 = |last| IpAddr::from([192, 0, 2, last]);
    [
        ConnectRequestRepr::roce((v4(1), 40000), (v4(2), 18515))
            .unwrap()
            .into(),
        ConnectReplyRepr::default().into(),
        ReadyToUseRepr::default().into(),
        DisconnectRequestRepr::default().into(),
        DisconnectReplyRepr::default().into(),
    ]
}

#[test]
fn every_truncation_is_said() {
    for message in one_of_each() {
        let kind = message.kind();
        let mad = emitted(message);
        for len in 0..MAD_LEN {
            let cut = &mad[..len];
            let whole = Error::short(Layer::Mad, MAD_LEN, len);
            assert_eq!(Cm::new_checked(cut), Err(whole));
            let lax = Cm::new_lax(cut);
            if len < MAD_HEADER_LEN {
                assert_eq!(lax, Err(Error::short(Layer::Mad, MAD_HEADER_LEN, len)));
            } else if len < fixed(kind) {
                assert_eq!(lax, Err(Error::short(Layer::RdmaCm, fixed(kind), len)));
            } else {
                let view = lax.unwrap();
                assert_eq!(view.kind(), kind);
                if let Cm::ConnectRequest(request) = view {
                    assert_eq!(request.private_data().len(), len - fixed(kind));
                    let have = len - fixed(kind);
                    match request.ip_cm().unwrap() {
                        Ok(header) => {
                            assert!(have >= IP_CM_LEN);
                            assert_eq!(header.source_port, 40000);
                        }
                        Err(e) => {
                            let expected = Error::short(Layer::RdmaCm, IP_CM_LEN, have);
                            assert_eq!(e, expected.at(fixed(kind)));
                        }
                    }
                }
            }
        }
    }
    let mut header = [0; IP_CM_LEN];
    header[1] = 0x40;
    for len in 0..IP_CM_LEN {
        assert_eq!(
            IpCm::parse(&header[..len]),
            Err(Error::short(Layer::RdmaCm, IP_CM_LEN, len))
        );
    }
}

#[test]
fn other_mads_are_refused_with_the_offset() {
    let good = emitted(one_of_each()[0]);
    for offset in 0..3 {
        for wrong in [0, 255] {
            let mut mad = good;
            mad[offset] = wrong;
            let e = Cm::new_checked(&mad).unwrap_err();
            assert_eq!((e.layer, e.offset), (Layer::RdmaCm, offset));
        }
    }
    // Other methods and attributes belong to the class, but are not one of the six messages.
    for (offset, wrong) in [(3, 0x81), (3, 0), (17, 0x11), (17, 0), (16, 0xFF)] {
        let mut mad = good;
        mad[offset] = wrong;
        let view = Cm::new_checked(&mad).unwrap();
        assert!(matches!(view, Cm::Other(_)), "{view:?}");
        assert_eq!(
            (
                view.local_comm_id(),
                view.remote_comm_id(),
                view.local_qpn()
            ),
            (None, None, None)
        );
        assert_eq!(CmRepr::parse(&view), None);
    }
    for version in (0..16).filter(|v| ![4, 6].contains(v)) {
        let mut mad = good;
        mad[fixed(Kind::ConnectRequest) + 1] = version << 4;
        let Cm::ConnectRequest(request) = Cm::new_checked(&mad).unwrap() else {
            panic!("still a ConnectRequest");
        };
        let e = request.ip_cm().unwrap().unwrap_err();
        assert_eq!(e.offset, fixed(Kind::ConnectRequest) + 1);
        assert!(matches!(e.kind, ErrorKind::Value { value, .. } if value == u64::from(version)));
    }
    // A service ID outside the RDMA IP CM service does not imply a header.
    let mut mad = good;
    mad[MAD_HEADER_LEN + 8] = 1;
    let Cm::ConnectRequest(request) = Cm::new_checked(&mad).unwrap() else {
        panic!("still a ConnectRequest");
    };
    assert_eq!(request.ip_cm(), None);
}

#[test]
fn values_wider_than_their_fields_are_refused() {
    fn path(request: ConnectRequestRepr, alternate: Path) -> ConnectRequestRepr {
        ConnectRequestRepr {
            alternate,
            ..request
        }
    }
    let v4 = |last| IpAddr::from([192, 0, 2, last]);
    let request = ConnectRequestRepr::roce((v4(1), 40000), (v4(2), 18515)).unwrap();
    let reply = ConnectReplyRepr::default();
    let over = MAX_24 + 1;
    let wide: Vec<(usize, MessageRepr)> = vec![
        (
            5,
            ConnectRequestRepr {
                vendor_id: over,
                ..request
            }
            .into(),
        ),
        (
            32,
            ConnectRequestRepr {
                local_qpn: over,
                ..request
            }
            .into(),
        ),
        (
            36,
            ConnectRequestRepr {
                local_eecn: over,
                ..request
            }
            .into(),
        ),
        (
            40,
            ConnectRequestRepr {
                remote_eecn: over,
                ..request
            }
            .into(),
        ),
        (
            43,
            ConnectRequestRepr {
                remote_cm_response_timeout: 32,
                ..request
            }
            .into(),
        ),
        (
            44,
            ConnectRequestRepr {
                starting_psn: u32::MAX,
                ..request
            }
            .into(),
        ),
        (
            47,
            ConnectRequestRepr {
                local_cm_response_timeout: 32,
                ..request
            }
            .into(),
        ),
        (
            47,
            ConnectRequestRepr {
                retry_count: 8,
                ..request
            }
            .into(),
        ),
        (
            50,
            ConnectRequestRepr {
                path_mtu: PathMtu(16),
                ..request
            }
            .into(),
        ),
        (
            50,
            ConnectRequestRepr {
                rnr_retry_count: 8,
                ..request
            }
            .into(),
        ),
        (
            51,
            ConnectRequestRepr {
                max_cm_retries: 16,
                ..request
            }
            .into(),
        ),
        (
            51,
            ConnectRequestRepr {
                extended_transport: 8,
                ..request
            }
            .into(),
        ),
        (
            96 + 36,
            path(
                request,
                Path {
                    flow_label: 1 << 20,
                    ..Path::default()
                },
            )
            .into(),
        ),
        (
            96 + 39,
            path(
                request,
                Path {
                    packet_rate: 64,
                    ..Path::default()
                },
            )
            .into(),
        ),
        (
            96 + 42,
            path(
                request,
                Path {
                    sl: 16,
                    ..Path::default()
                },
            )
            .into(),
        ),
        (
            96 + 43,
            path(
                request,
                Path {
                    local_ack_timeout: 32,
                    ..Path::default()
                },
            )
            .into(),
        ),
        (
            12,
            ConnectReplyRepr {
                local_qpn: over,
                ..reply
            }
            .into(),
        ),
        (
            15,
            ConnectReplyRepr {
                vendor_id: over,
                ..reply
            }
            .into(),
        ),
        (
            16,
            ConnectReplyRepr {
                local_eecn: over,
                ..reply
            }
            .into(),
        ),
        (
            20,
            ConnectReplyRepr {
                starting_psn: over,
                ..reply
            }
            .into(),
        ),
        (
            26,
            ConnectReplyRepr {
                target_ack_delay: 32,
                ..reply
            }
            .into(),
        ),
        (
            26,
            ConnectReplyRepr {
                failover_accepted: 4,
                ..reply
            }
            .into(),
        ),
        (
            27,
            ConnectReplyRepr {
                rnr_retry_count: 8,
                ..reply
            }
            .into(),
        ),
        (
            8,
            DisconnectRequestRepr {
                remote_qpn: over,
                ..DisconnectRequestRepr::default()
            }
            .into(),
        ),
    ];
    for (offset, message) in wide {
        let e = CmRepr::new(0, message).to_bytes().unwrap_err();
        assert_eq!(e.offset, MAD_HEADER_LEN + offset, "{e}");
        assert!(matches!(e.kind, ErrorKind::Value { .. }), "{e}");
    }
    let (v4, v6) = (Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into());
    assert!(ConnectRequestRepr::roce((v4, 1), (v6, 2)).is_err());
}

#[test]
fn a_request_identifies_the_connection() {
    let (client, server) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
    let request = ConnectRequestRepr {
        local_qpn: 0x12,
        ..ConnectRequestRepr::roce((client, 40000), (server, 18515)).unwrap()
    };
    let mad = emitted(request.into());
    let view = Cm::new_checked(&mad).unwrap();
    assert_eq!(view.local_qpn(), Some(0x12));
    assert_eq!(view.remote_comm_id(), None);
    let Cm::ConnectRequest(view) = view else {
        panic!("a ConnectRequest");
    };
    assert_eq!(view.service_id().port(), Some(18515));
    assert_eq!(gid_to_ip(view.primary().local_gid), client);
    assert_eq!(gid_to_ip(view.primary().remote_gid), server);
    assert!(view.primary() != Path::default() && view.alternate() == Path::default());
    let header = view.ip_cm().unwrap().unwrap();
    assert_eq!(
        (header.source, header.source_port, header.destination),
        (client, 40000, server)
    );
    assert_eq!(view.path_mtu().octets(), Some(1024));
}

#[test]
fn names_and_codes_round_trip() {
    for id in 0..=0xFFFF {
        assert_eq!(Kind::from_attribute(id).attribute(), id);
    }
    for code in 0..16 {
        let octets = (1..=5).contains(&code).then(|| 128u16 << code);
        assert_eq!(PathMtu(code).octets(), octets);
    }
    assert_eq!(Kind::ReadyToUse.to_string(), "ReadyToUse");
    assert_eq!(Kind::Other(0x19).to_string(), "CM attribute 0x0019");
    assert_eq!(Kind::Other(0x11).to_string(), "MsgRcptAck");
    assert_eq!(
        ServiceId::ip(6, 18515).to_string(),
        "RDMA IP CM protocol 6 port 18515"
    );
    assert_eq!(ServiceId(2).to_string(), "0x0000000000000002");
}
