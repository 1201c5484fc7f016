//! RDMA CM messages of real adapters: written from their values, they must yield the ICRC that the
//! adapter sent.
//!
//! The values and ICRCs are from an exchange between a ConnectX adapter (and, in the second, Linux
//! soft-RoCE) and an FPGA, published with the RoCEv2 tests of LiteEth. A matching ICRC shows that
//! all 256 octets match.

mod icrc_support;

use fcn_wire::Qp;
use fcn_wire::icrc::{Policy, Verdict, fill, verify};
use fcn_wire::mad::GSI_Q_KEY;
use fcn_wire::rdma_cm::{Cm, CmRepr, ConnectRequestRepr, DisconnectRequestRepr, ReadyToUseRepr};
use icrc_support::V4;
use std::net::{IpAddr, Ipv4Addr};

const ADAPTER: Ipv4Addr = Ipv4Addr::new(192, 170, 1, 2);
const FPGA: Ipv4Addr = Ipv4Addr::new(192, 170, 1, 50);

/// Header fields that differ between the published packets.
struct Headers {
    tos: u8,
    id: u16,
    source_port: u16,
    migration_request: bool,
    acknowledge: bool,
    psn: u16,
}

/// Returns the ICRC of the packet that carries `cm` as UD SEND-ONLY.
fn icrc(headers: &Headers, cm: &CmRepr) -> [u8; 4] {
    let ip = V4 {
        tos: headers.tos,
        id: headers.id,
        flags: 2,
        ttl: 64,
        source: ADAPTER.octets(),
        destination: FPGA.octets(),
        options: Vec::new(),
    };
    let mut bth = [
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
        0,
    ];
    bth[1] = u8::from(headers.migration_request) << 6;
    bth[8] = u8::from(headers.acknowledge) << 7;
    bth[10..].copy_from_slice(&headers.psn.to_be_bytes());
    let mut payload = GSI_Q_KEY.to_be_bytes().to_vec();
    payload.extend(Qp::GSI.get().to_be_bytes());
    let mad = cm.to_bytes().unwrap();
    assert_eq!(CmRepr::parse(&Cm::new_checked(&mad).unwrap()), Some(*cm));
    payload.extend(mad);
    let mut packet = ip.packet(headers.source_port, bth, &payload);
    assert!(fill(&mut packet.bytes, packet.udp, Policy::default()));
    assert_eq!(verify(&packet.bytes, packet.udp), Verdict::Good(None));
    packet.icrc().to_le_bytes()
}

fn request(source_port: u16, port: u16) -> ConnectRequestRepr {
    let endpoint = |address: Ipv4Addr, port| (IpAddr::V4(address), port);
    ConnectRequestRepr::roce(endpoint(ADAPTER, source_port), endpoint(FPGA, port)).unwrap()
}

#[test]
fn a_connectx_adapter() {
    const TRANSACTION: u64 = 0x3_57FE_B735;
    const LOCAL: u32 = 0x35B7_FE57;
    let headers = |id, psn| Headers {
        tos: 2,
        id,
        source_port: 0xFA4F,
        migration_request: true,
        acknowledge: false,
        psn,
    };
    let mut request = ConnectRequestRepr {
        local_comm_id: LOCAL,
        vendor_id: 0x15B3,
        local_ca_guid: 0xB859_9F03_0007_7E2A,
        local_qpn: 0x144,
        responder_resources: 16,
        initiator_depth: 16,
        remote_cm_response_timeout: 22,
        starting_psn: 0xCF_7BF6,
        local_cm_response_timeout: 22,
        ..request(0xAFFA, 0x6B13)
    };
    // The flow label matches the UDP source port with which Linux spreads a connection's packets:
    // 0xFA4F.
    request.primary.flow_label = 0x5_BA59;
    request.primary.local_ack_timeout = 18;
    let request = CmRepr::new(TRANSACTION, request);
    let sent = icrc(&headers(0x9D40, 0x1CC), &request);
    assert_eq!(sent, [0x2F, 0xCC, 0x9E, 0x99]);

    let ready = CmRepr::new(
        TRANSACTION,
        ReadyToUseRepr {
            local_comm_id: LOCAL,
            remote_comm_id: 0xFEDC_ABED,
            ..ReadyToUseRepr::default()
        },
    );
    let sent = icrc(&headers(0x9D41, 0x1CD), &ready);
    assert_eq!(sent, [0xA2, 0x86, 0xB2, 0x50]);
}

#[test]
fn linux_soft_roce() {
    const TRANSACTION: u64 = 0x2_F2C9_7E40;
    const LOCAL: u32 = 0x407E_C9F2;
    let headers = |id, psn| Headers {
        tos: 0,
        id,
        source_port: 0xD872,
        migration_request: false,
        acknowledge: true,
        psn,
    };
    let mut request = ConnectRequestRepr {
        local_comm_id: LOCAL,
        local_ca_guid: 0x227B_D2FF_FE93_899A,
        local_qpn: 0x15,
        responder_resources: 1,
        initiator_depth: 16,
        starting_psn: 0x4B_1DD4,
        ..request(0xAB40, 0x1C06)
    };
    request.primary.flow_label = 0x4_D8C6;
    request.primary.local_ack_timeout = 17;
    let request = CmRepr::new(TRANSACTION, request);
    let sent = icrc(&headers(0x200A, 0x12), &request);
    assert_eq!(sent, [0xC9, 0x62, 0xF0, 0x10]);

    let disconnect = CmRepr::new(
        TRANSACTION,
        DisconnectRequestRepr {
            local_comm_id: LOCAL,
            remote_comm_id: 0xFEDC_ABED,
            remote_qpn: 0xDE_ADED,
            ..DisconnectRequestRepr::default()
        },
    );
    let sent = icrc(&headers(0x22CA, 0x14), &disconnect);
    assert_eq!(sent, [0xFC, 0x81, 0x3E, 0x59]);
}
