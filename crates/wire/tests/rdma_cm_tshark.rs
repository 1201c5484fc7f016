//! RDMA CM messages as parsed by Wireshark: every field it shows must have the value that was
//! written.
//!
//! Excluded: flow label and packet rate of a path, which Wireshark 4.0 reads from too few octets
//! (`rdma_cm_published.rs` verifies their position), and vendor IDs, which it calls reserved.

mod icrc_support;

use fcn_wire::Qp;
use fcn_wire::icrc::{Policy, fill};
use fcn_wire::mad::GSI_Q_KEY;
use fcn_wire::rdma_cm::{
    CmRepr, ConnectReplyRepr, ConnectRequestRepr, DisconnectReplyRepr, DisconnectRequestRepr,
    MessageRepr, Path, PathMtu, ReadyToUseRepr, ServiceId, Transport, gid_to_ip,
};
use icrc_support::{V4, V6};
use std::net::{IpAddr, Ipv6Addr};
use std::process::{Command, Stdio};

const TRANSACTION: u64 = 0x0102_0304_0506_0708;

/// Expected output of Wireshark: field names under `infiniband.`, and numbers, addresses or octets.
type Shown = Vec<(&'static str, String)>;

fn shown(fields: &[(&'static str, u64)]) -> Shown {
    fields
        .iter()
        .map(|(name, value)| (*name, value.to_string()))
        .collect()
}

fn v6(last: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xDB8, 0, 0, 0, 0, 0, last)
}

fn octets(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn private<const N: usize>(first: u8) -> [u8; N] {
    core::array::from_fn(|i| first.wrapping_add(i as u8))
}

fn path(first: u8, local: IpAddr, remote: IpAddr) -> Path {
    Path {
        local_lid: u16::from(first) << 8 | 1,
        remote_lid: u16::from(first) << 8 | 2,
        flow_label: 0xA_5A5A,
        packet_rate: 0x2A,
        traffic_class: first | 3,
        hop_limit: first | 4,
        sl: 5,
        subnet_local: true,
        local_ack_timeout: 0x15,
        ..Path::roce(local, remote)
    }
}

fn request(local: IpAddr, remote: IpAddr) -> (MessageRepr, Shown) {
    let mut request = ConnectRequestRepr {
        local_comm_id: 0x1112_1314,
        vendor_id: 0x15_1617,
        local_ca_guid: 0x2021_2223_2425_2627,
        local_q_key: 0x3031_3233,
        local_qpn: 0x41_4243,
        responder_resources: 0x51,
        local_eecn: 0x61_6263,
        initiator_depth: 0x71,
        remote_eecn: 0x81_8283,
        remote_cm_response_timeout: 0x15,
        transport: Transport::Uc,
        end_to_end_flow_control: true,
        starting_psn: 0x91_9293,
        local_cm_response_timeout: 0x0A,
        retry_count: 5,
        partition_key: 0xA1A2,
        path_mtu: PathMtu(5),
        rdc_exists: true,
        rnr_retry_count: 6,
        max_cm_retries: 9,
        srq: true,
        extended_transport: 3,
        primary: path(0xB0, local, remote),
        alternate: path(0xC0, remote, local),
        ..ConnectRequestRepr::roce((local, 0xD1D2), (remote, 0xE1E2)).unwrap()
    };
    request.private_data[36..].fill(0x77);
    let mut fields = shown(&[
        ("mad.attributeid", 0x10),
        ("cm.req", 0x1112_1314),
        ("cm.req.serviceid.protocol", 6),
        ("cm.req.serviceid.dport", 0xE1E2),
        ("cm.req.localcaguid", 0x2021_2223_2425_2627),
        ("cm.req.localqkey", 0x3031_3233),
        ("cm.req.localqpn", 0x41_4243),
        ("cm.req.responderres", 0x51),
        ("cm.req.localeecn", 0x61_6263),
        ("cm.req.initdepth", 0x71),
        ("cm.req.remoteeecn", 0x81_8283),
        ("cm.req.remoteresptout", 0x15),
        ("cm.req.transpsvctype", 1),
        ("cm.req.e2eflowctrl", 1),
        ("cm.req.startpsn", 0x91_9293),
        ("cm.req.localresptout", 0x0A),
        ("cm.req.retrcount", 5),
        ("cm.req.pkey", 0xA1A2),
        ("cm.req.pppmtu", 5),
        ("cm.req.rdcexist", 1),
        ("cm.req.rnrretrcount", 6),
        ("cm.req.maxcmretr", 9),
        ("cm.req.srq", 1),
        ("cm.req.ext_transport", 3),
        ("cm.req.prim_locallid", 0xB001),
        ("cm.req.prim_remotelid", 0xB002),
        ("cm.req.prim_tfcclass", 0xB3),
        ("cm.req.prim_hoplim", 0xB4),
        ("cm.req.prim_sl", 5),
        ("cm.req.prim_subnetlocal", 1),
        ("cm.req.prim_localacktout", 0x15),
        ("cm.req.alt_locallid", 0xC001),
        ("cm.req.alt_remotelid", 0xC002),
        ("cm.req.alt_tfcclass", 0xC3),
        ("cm.req.alt_hoplim", 0xC4),
        ("cm.req.alt_sl", 5),
        ("cm.req.alt_subnetlocal", 1),
        ("cm.req.alt_localacktout", 0x15),
        ("cm.req.ip_cm.majv", 0),
        ("cm.req.ip_cm.minv", 0),
        ("cm.req.ip_cm.ipv", if local.is_ipv4() { 4 } else { 6 }),
        ("cm.req.ip_cm.sport", 0xD1D2),
    ]);
    fields.extend([
        (
            "cm.req.alt_localgid",
            octets(&request.alternate.local_gid.octets()),
        ),
        (
            "cm.req.alt_remotegid",
            octets(&request.alternate.remote_gid.octets()),
        ),
        ("cm.req.ip_cm.private", octets(&[0x77; 56])),
    ]);
    let names = if local.is_ipv4() {
        [
            "cm.req.prim_localgid_ipv4",
            "cm.req.prim_remotegid_ipv4",
            "cm.req.ip_cm.sip4",
            "cm.req.ip_cm.dip4",
        ]
    } else {
        [
            "cm.req.prim_localgid",
            "cm.req.prim_remotegid",
            "cm.req.ip_cm.sip6",
            "cm.req.ip_cm.dip6",
        ]
    };
    let addresses = [local, remote, local, remote].map(|address| address.to_string());
    fields.extend(names.into_iter().zip(addresses));
    (request.into(), fields)
}

fn messages() -> Vec<(MessageRepr, Shown)> {
    let v4 = request(
        IpAddr::from([192, 0, 2, 1]),
        IpAddr::from([198, 51, 100, 2]),
    );
    let MessageRepr::ConnectRequest(plain) = v4.0 else {
        panic!("a ConnectRequest");
    };
    let ids = |name_local: &'static str, name_remote: &'static str, attribute| {
        shown(&[
            ("mad.attributeid", attribute),
            (name_local, 0x1112_1314),
            (name_remote, 0x2122_2324),
        ])
    };
    vec![
        v4,
        request(v6(1).into(), v6(2).into()),
        (
            ConnectRequestRepr {
                service_id: ServiceId(0x1000_0000_0000_0001),
                private_data: private(1),
                ..plain
            }
            .into(),
            vec![
                ("cm.req.serviceid", 0x1000_0000_0000_0001u64.to_string()),
                ("cm.req.private", octets(&private::<92>(1))),
            ],
        ),
        (
            ConnectReplyRepr {
                local_comm_id: 0x1112_1314,
                remote_comm_id: 0x2122_2324,
                vendor_id: 0xFF_FFFF,
                local_q_key: 0x3132_3334,
                local_qpn: 0x41_4243,
                local_eecn: 0x51_5253,
                starting_psn: 0x61_6263,
                responder_resources: 0x71,
                initiator_depth: 0x81,
                target_ack_delay: 0x15,
                failover_accepted: 2,
                end_to_end_flow_control: true,
                rnr_retry_count: 5,
                srq: true,
                local_ca_guid: 0x9192_9394_9596_9798,
                private_data: private(2),
            }
            .into(),
            [
                shown(&[
                    ("mad.attributeid", 0x13),
                    ("cm.rep", 0x1112_1314),
                    ("cm.rep.remotecommid", 0x2122_2324),
                    ("cm.rep.localqkey", 0x3132_3334),
                    ("cm.rep.localqpn", 0x41_4243),
                    ("cm.rep.localeecn", 0x51_5253),
                    ("cm.rep.startpsn", 0x61_6263),
                    ("cm.rep.respres", 0x71),
                    ("cm.rep.initdepth", 0x81),
                    ("cm.rep.tgtackdelay", 0x15),
                    ("cm.rep.failoveracc", 2),
                    ("cm.rep.e2eflowctrl", 1),
                    ("cm.rep.rnrretrcount", 5),
                    ("cm.rep.srq", 1),
                    ("cm.rep.reserved", 0),
                    ("cm.rep.localcaguid", 0x9192_9394_9596_9798),
                ]),
                vec![("cm.rep.private", octets(&private::<196>(2)))],
            ]
            .concat(),
        ),
        (
            ReadyToUseRepr {
                local_comm_id: 0x1112_1314,
                remote_comm_id: 0x2122_2324,
                private_data: private(3),
            }
            .into(),
            [
                ids("cm.rtu.localcommid", "cm.rtu.remotecommid", 0x14),
                vec![("cm.rtu.private", octets(&private::<224>(3)))],
            ]
            .concat(),
        ),
        (
            DisconnectRequestRepr {
                local_comm_id: 0x1112_1314,
                remote_comm_id: 0x2122_2324,
                remote_qpn: 0x31_3233,
                private_data: private(4),
            }
            .into(),
            [
                ids("cm.dreq.localcommid", "cm.dreq.remotecommid", 0x15),
                vec![
                    ("cm.req.remoteqpneecn", 0x31_3233.to_string()),
                    ("cm.dreq.private", octets(&private::<220>(4))),
                ],
            ]
            .concat(),
        ),
        (
            DisconnectReplyRepr {
                local_comm_id: 0x1112_1314,
                remote_comm_id: 0x2122_2324,
                private_data: private(5),
            }
            .into(),
            [
                ids("cm.drsp.localcommid", "cm.drsp.remotecommid", 0x16),
                vec![("cm.drsp.private", octets(&private::<224>(5)))],
            ]
            .concat(),
        ),
    ]
}

/// Wraps the message in an Ethernet frame, from QP 1 of one host to QP 1 of another. Wireshark uses
/// the outer IP version to display a GID.
fn frame(message: MessageRepr) -> Vec<u8> {
    let bth = [
        0x64,
        0,
        0xFF,
        0xFF,
        0,
        0,
        0,
        Qp::GSI.get() as u8,
        0,
        0,
        0,
        1,
    ];
    let mut payload = GSI_Q_KEY.to_be_bytes().to_vec();
    payload.extend(Qp::GSI.get().to_be_bytes());
    let cm = CmRepr {
        attribute_modifier: 0x0910_1112,
        ..CmRepr::new(TRANSACTION, message)
    };
    payload.extend(cm.to_bytes().unwrap());
    let is_v6 = matches!(&message, MessageRepr::ConnectRequest(m) if gid_to_ip(m.primary.local_gid).is_ipv6());
    let (mut packet, ether_type) = if is_v6 {
        let ip = V6 {
            traffic_class: 0,
            flow_label: 0,
            hop_limit: 64,
            source: v6(1).octets(),
            destination: v6(2).octets(),
            extensions: Vec::new(),
        };
        (ip.packet(0xC001, bth, &payload), [0x86, 0xDD])
    } else {
        let ip = V4 {
            tos: 0,
            id: 1,
            flags: 2,
            ttl: 64,
            source: [192, 0, 2, 1],
            destination: [198, 51, 100, 2],
            options: Vec::new(),
        };
        (ip.packet(0xC001, bth, &payload), [8, 0])
    };
    assert!(fill(&mut packet.bytes, packet.udp, Policy::default()));
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    frame.extend(ether_type);
    frame.extend(packet.bytes);
    frame
}

fn pcap(frames: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(0xA1B2_C3D4u32.to_be_bytes());
    out.extend([0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]);
    out.extend(1u32.to_be_bytes());
    for frame in frames {
        let len = u32::try_from(frame.len()).unwrap().to_be_bytes();
        out.extend([0; 8]);
        out.extend(len);
        out.extend(len);
        out.extend(frame);
    }
    out
}

/// Returns a value as printed by Wireshark, with numbers converted to decimal.
fn plain(value: &str) -> String {
    match value.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).unwrap().to_string(),
        None => value.replace(':', ""),
    }
}

#[test]
fn wireshark_shows_the_written_values() {
    let usable = Command::new("tshark")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !usable {
        fcn_skip::skipped!("tshark is not installed (apt-get install tshark)");
        return;
    }
    let messages = messages();
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("rdma_cm_tshark.pcap");
    let frames = messages.iter().map(|(message, _)| frame(*message));
    std::fs::write(&file, pcap(frames)).unwrap();

    let common = shown(&[
        ("bth.destqp", 1),
        ("deth.srcqp", 1),
        ("mad.baseversion", 1),
        ("mad.mgmtclass", 7),
        ("mad.classversion", 2),
        ("mad.method", 3),
        ("mad.status", 0),
        ("mad.classspecific", 0),
        ("mad.transactionid", TRANSACTION),
        ("mad.attributemodifier", 0x0910_1112),
    ]);
    for (number, (message, fields)) in messages.iter().enumerate() {
        let fields: Vec<_> = common.iter().chain(fields).collect();
        let mut tshark = Command::new("tshark");
        tshark.arg("-r").arg(&file).args(["-T", "fields", "-Y"]);
        tshark.arg(format!("frame.number == {}", number + 1));
        for (name, _) in &fields {
            tshark.args(["-e", &format!("infiniband.{name}")]);
        }
        let output = tshark.output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let line = String::from_utf8(output.stdout).unwrap();
        let values: Vec<&str> = line.trim_end_matches('\n').split('\t').collect();
        assert_eq!(values.len(), fields.len(), "{line}");
        for ((name, expected), value) in fields.into_iter().zip(values) {
            let expected = expected.replace(':', "");
            assert_eq!(plain(value), expected, "{name} of {:?}", message.kind());
        }
    }
}
