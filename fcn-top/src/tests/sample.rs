//! Hand-written tables, for tests of code that shows tables.

use crate::nic::known::Quantity;
use crate::record::RowId;
use crate::record::{
    Advice, Answer, Cause, ClassRelation, CounterRecord, Ecn, EventRecord, Evidence, FlowRecord,
    HopRecord, InterfaceRecord, LocalQpRecord, Maker, Pacing, PauseRecord, PointRecord, QpRecord,
    QpSide, ReceiverRecord, Resolved, Slower, TrimmedRecord, Unit, UnreadRecord, origin,
};
use crate::tables::{Course, FlowCourse, FlowStep, Nics, Tables, Totals, TrafficStep};
use fcn_observe::FlowKey;
use fcn_wire::{Kind, Origin, Qp, Rule};
use std::net::IpAddr;

/// 2025-11-22 08:15:00.123456789 UTC.
pub(crate) const START: u64 = 1_763_799_300_123_456_789;

/// Returns the time that many milliseconds later.
pub(crate) const fn after(milliseconds: u64) -> u64 {
    START + milliseconds * 1_000_000
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A row with a value in every column that a Fast CNP can fill.
pub(crate) fn qp() -> QpRecord {
    QpRecord {
        sender: Some(address("2001:db8:0:1::10")),
        qp: Some(0x77),
        qp_side: Some(QpSide::Sender),
        kind: Kind::FastCnp2,
        notifier_role: Origin::Switch,
        notifier: address("2001:db8:ffff::1"),
        notifiers: 2,
        destination: address("2001:db8:0:1::10"),
        flow_label: None,
        sender_qp: Some(0x77),
        sender_qp_from: Some(Resolved::Cm),
        receiver: Some(address("2001:db8:0:2::20")),
        receiver_qp: Some(0x1234),
        receiver_qp_from: Some(Resolved::Cm),
        interface: None,
        path: None,
        rate_now: Some(1_240.0),
        rate_1s: Some(1_180.0),
        rate_10s: Some(990.5),
        rate_mean: Some(751.5),
        rate_peak: Some(1_300.0),
        total: 12_345,
        total_low: None,
        total_high: None,
        sampled: None,
        gap_min: Some(50_100),
        gap_p50: Some(812_000),
        gap_p90: Some(1_250_000),
        gap_p99: Some(9_870_000),
        level: None,
        level_max: None,
        queue: Some(4_096),
        queue_max: Some(65_536),
        ce_share: Some(0.125),
        dscp: Some(48),
        ecn: Some(Ecn::Ect0),
        vlan_priority: None,
        data_dscp: Some(26),
        data_vlan_priority: Some(3),
        class: Some(ClassRelation::Apart),
        data_rate: Some(9.87e9),
        data_packets: Some(1_234_567),
        data_sampled: None,
        change: Some(-0.42),
        measured: 900,
        verdict: Some(Answer::Obeys),
        evidence: Some(Evidence::SlowerThanPredicted(Slower {
            at_least: 0.42,
            errors: 7.3,
            window: 8,
            unit: Unit::Packets,
        })),
        advice: None,
        made_by: None,
        made_by_evidence: None,
        first_seen: after(3),
        last_seen: after(9_900),
        icrc_bad: 0,
        findings: 3,
    }
}

/// A row of every kind.
pub(crate) fn rows() -> Vec<(RowId, QpRecord)> {
    let fast = qp();
    let cnp = QpRecord {
        sender: Some(address("198.18.1.3")),
        qp: Some(0x11),
        qp_side: Some(QpSide::Sender),
        kind: Kind::Cnp,
        notifier_role: Origin::Receiver,
        notifier: address("198.18.2.4"),
        notifiers: 1,
        destination: address("198.18.1.3"),
        sender_qp: Some(0x11),
        sender_qp_from: Some(Resolved::Packet),
        receiver: Some(address("198.18.2.4")),
        receiver_qp: None,
        receiver_qp_from: None,
        interface: Some("leaf1:7".into()),
        path: None,
        rate_now: Some(0.0),
        rate_1s: Some(20.0),
        rate_10s: Some(12.5),
        rate_mean: Some(8.0),
        rate_peak: Some(40.0),
        total: 240,
        queue: None,
        queue_max: None,
        change: Some(0.07),
        measured: 3,
        verdict: Some(Answer::Unclear),
        evidence: Some(Evidence::TooFew),
        advice: Some(Advice::Notifications(40)),
        made_by: Some(Maker::Network),
        made_by_evidence: Some(origin::Evidence::Nearer {
            passed: 1,
            receiver: 3,
            macs: None,
        }),
        icrc_bad: 2,
        findings: 2,
        ..fast.clone()
    };
    let proxy = QpRecord {
        qp: None,
        qp_side: None,
        kind: Kind::ProxyCn,
        destination: address("2001:db8:0:9::1"),
        level: Some(3),
        level_max: Some(7),
        sender_qp: None,
        sender_qp_from: None,
        receiver_qp: None,
        total: 17,
        gap_p99: None,
        findings: 0,
        ce_share: None,
        dscp: None,
        ecn: None,
        vlan_priority: None,
        data_dscp: None,
        data_vlan_priority: None,
        class: None,
        data_rate: None,
        data_packets: None,
        change: None,
        measured: 0,
        verdict: None,
        evidence: None,
        rate_1s: Some(3.0),
        rate_10s: Some(1.7),
        ..fast.clone()
    };
    let wan = QpRecord {
        sender: None,
        kind: Kind::WanFcn,
        flow_label: Some(0x2_1234),
        receiver: None,
        receiver_qp: None,
        total: 5,
        rate_1s: Some(0.0),
        rate_10s: Some(0.5),
        ..proxy.clone()
    };
    vec![
        (RowId(1), cnp),
        (RowId(2), fast),
        (RowId(5), proxy),
        (RowId(9), wan),
    ]
}

/// A notified flow, and one whose receiver was not ready and that has ended.
fn flows() -> Vec<FlowRecord> {
    let notified = FlowRecord {
        sender: "2001:db8:0:1::10".parse().unwrap(),
        receiver: "2001:db8:0:2::20".parse().unwrap(),
        receiver_qp: 0x22,
        sender_qp: Some(0x1234),
        sender_qp_from: Some(Resolved::Cm),
        data_rate: Some(12.5e9),
        data_packets: 1_200_000,
        data_octets: 1_250_000_000,
        data_sampled: None,
        ce_share: Some(0.125),
        ecn: Some(Ecn::Ect0),
        not_ect: 0,
        data_dscp: Some(26),
        data_vlan_priority: Some(3),
        ack_dscp: Some(26),
        ack_vlan_priority: Some(3),
        acks: 300_000,
        rnr_naks: 0,
        nak_sequence: 2,
        nak_invalid_request: 0,
        nak_remote_access: 0,
        nak_remote_operation: 0,
        resent: 40,
        late: 1,
        stall_max: None,
        stall_after: None,
        stalls: 0,
        stalls_all: 0,
        stalled: 0,
        tries: None,
        path_pauses: 4,
        exhausted: false,
        rtt_min: Some(4_012),
        rtt_last: Some(9_870),
        verdict: Some(Answer::Obeys),
        first_seen: after(0),
        last_seen: after(9_990),
    };
    let stalled = FlowRecord {
        sender: "198.18.1.3".parse().unwrap(),
        receiver: "192.0.2.77".parse().unwrap(),
        receiver_qp: 0x77,
        sender_qp: None,
        sender_qp_from: None,
        data_rate: None,
        data_packets: 34_567,
        data_octets: 35_000_000,
        ce_share: Some(0.0),
        ecn: Some(Ecn::NotCapable),
        not_ect: 34_567,
        data_vlan_priority: None,
        ack_dscp: None,
        ack_vlan_priority: None,
        acks: 812,
        rnr_naks: 5,
        nak_sequence: 0,
        resent: 12,
        late: 0,
        stall_max: Some(655_360_000),
        stall_after: Some(Cause::RnrNak),
        stalls: 5,
        stalls_all: 12,
        stalled: 5_155_000_000,
        tries: Some(8),
        path_pauses: 0,
        exhausted: true,
        rtt_min: None,
        rtt_last: None,
        verdict: None,
        ..notified.clone()
    };
    vec![notified, stalled]
}

/// Tables with a row of every kind, and entries in every other table.
pub(crate) fn tables() -> Tables {
    Tables {
        now: after(10_000),
        started: Some(START),
        since: START,
        qps: rows(),
        flows: flows(),
        points: points(),
        hops: hops(),
        events: events(),
        interfaces: interfaces(),
        nics: nics().into(),
        totals: Totals {
            stamps_back: 3,
            stamps_back_most: 1_500_000,
            packets: 1_300_000,
            octets: 1_340_000_000,
            notifications: [240, 0, 12_345, 17, 5],
            copies: 90,
            malformed: 2,
            samples: 0,
            data: 1_234_567,
            ce: 154_320,
            other: 52_800,
            pfc: 0,
            global_pauses: 0,
            cnms: 0,
            trimmed: 0,
            roce_v1: 0,
            unread: 7,
            cut: 20,
            incomplete: 0,
            undecodable: 6,
            icrc_bad: 2,
            findings: [1, 5, 1],
            findings_left_out: 0,
            rows: 4,
            rows_evicted: 0,
            flows: 3,
            flows_evicted: 1,
            notifiers: 2,
            notifiers_evicted: 0,
        },
        rate_1s: Some(1_203.0),
        data_rate: None,
        ce_1s: None,
        rules: vec![
            (Rule::IoamOverflow.info().id, 1),
            (Rule::CnpPsn.info().id, 4),
            (Rule::FastCnpHopByHop.info().id, 1),
            (Rule::FastCnpRate.info().id, 1),
        ],
        receivers: vec![
            ReceiverRecord {
                receiver: address("2001:db8:0:2::20"),
                marked: 154_300,
                expected: 300,
                cnps: 240,
                unprompted: 12,
                answered: Some(0.76),
                silent: false,
                captured: true,
                delay_p50: Some(3_100),
                delay_p99: Some(9_500),
                paced_by: Some(Pacing::Qp),
                gap_qp: Some(50_100),
                gap_addresses: Some(1_200),
                gap_port: None,
                with_naks: 1,
            },
            ReceiverRecord {
                receiver: address("198.18.2.4"),
                marked: 40,
                expected: 9,
                cnps: 0,
                unprompted: 0,
                answered: Some(0.0),
                silent: true,
                captured: true,
                delay_p50: None,
                delay_p99: None,
                paced_by: None,
                gap_qp: None,
                gap_addresses: None,
                gap_port: None,
                with_naks: 0,
            },
        ],
        pauses: vec![PauseRecord {
            interface: Some("eth0".into()),
            mac: "02:00:00:00:00:77".into(),
            class: Some(3),
            frames: 2_501,
            quanta: 163_903_035,
            paused: 839_183_500,
            share: Some(0.14),
            episodes: 2,
            resumed: 1,
            timed_out: 1,
            longest: 800_300_000,
            storm: true,
            first_seen: 1_000_000_000,
            last_seen: 2_000_000_000,
        }],
        trimmed: vec![TrimmedRecord {
            interface: Some("eth0".into()),
            sender: "2001:db8:0:1::10".parse().unwrap(),
            receiver: "2001:db8:0:2::20".parse().unwrap(),
            receiver_qp: 0x22,
            to_receiver: 12,
            to_source: 3,
            unknown: 0,
            first_seen: after(20),
            last_seen: after(30),
        }],
        unread: vec![
            UnreadRecord {
                kind: "roce_unproven",
                number: Some(4791),
                packets: 4,
            },
            UnreadRecord {
                kind: "ether_type",
                number: Some(0x88E5),
                packets: 2,
            },
            UnreadRecord {
                kind: "fragment",
                number: None,
                packets: 1,
            },
        ],
    }
}

/// Four steps of 2.5 s, in which the flow of [`qp`] slows down.
pub(crate) fn course() -> Course {
    let step = |notifications, data, ce| FlowStep {
        notifications,
        data,
        ce,
        octets: u64::from(data) * 1_000,
    };
    let own = [
        step(0, 0, 0),
        step(8_000, 900_000, 100_000),
        step(4_345, 300_000, 0),
        step(0, 0, 0),
    ];
    let traffic = own
        .iter()
        .zip([1, 2, 0, 3])
        .map(|(own, others)| TrafficStep {
            notifications: [others * 40, 0, own.notifications, 0, 0],
            data: own.data + others * 5_000,
            ce: own.ce,
            octets: own.octets + u64::from(others) * 64_000,
        });
    Course {
        start: START - START % 1_000_000,
        step: 2_500_000_000,
        traffic: traffic.collect(),
        flows: vec![FlowCourse {
            key: FlowKey {
                sender: address("2001:db8:0:1::10"),
                receiver: address("2001:db8:0:2::20"),
                receiver_qp: Qp::new(0x1234).unwrap(),
            },
            since: after(3),
            notified: 12_345,
            steps: own.to_vec(),
        }],
    }
}

/// A port whose NIC handled fewer CNPs than arrived, with hostile names.
fn nics() -> Nics {
    let handled = CounterRecord {
        device: "mlx5_0".into(),
        port: 1,
        interface: Some("leaf1:7".into()),
        driver: Some("mlx5".into()),
        counter: "rp_cnp_handled".into(),
        quantity: Some(Quantity::CnpHandled),
        qps: None,
        value: 70_400,
        growth: Some(100),
        seen: Some(240),
        resets: 0,
        vanished: false,
    };
    let ignored = CounterRecord {
        counter: "rp_cnp_ignored".into(),
        quantity: Some(Quantity::CnpIgnored),
        value: 12,
        growth: Some(12),
        resets: 1,
        ..handled.clone()
    };
    let unknown = CounterRecord {
        device: "rocep\x1b[2J".into(),
        counter: "of 192.0.2.77\x1b]0;".into(),
        quantity: None,
        value: u64::MAX,
        growth: None,
        seen: None,
        interface: None,
        driver: None,
        ..handled.clone()
    };
    let bound = CounterRecord {
        counter: "cc_rx_cnp_pkts".into(),
        quantity: Some(Quantity::CnpReceived),
        qps: Some("0x1234 0x1235".into()),
        value: 5,
        growth: Some(5),
        seen: None,
        ..handled.clone()
    };
    let of_process = LocalQpRecord {
        device: "mlx5_0".into(),
        port: Some(1),
        qp: 0x1234,
        kind: Some("rc"),
        state: Some("rts"),
        remote_qp: Some(0x77),
        pid: Some(4_242),
        process: Some("ib_write_bw\x1b[31m".into()),
        container: Some("0123456789ab".into()),
        notified: Some(240),
    };
    let of_kernel = LocalQpRecord {
        port: None,
        qp: 1,
        kind: Some("gsi"),
        remote_qp: None,
        pid: None,
        process: Some("[ib_core]".into()),
        container: None,
        notified: None,
        ..of_process.clone()
    };
    Nics {
        counters: vec![handled, ignored, bound, unknown],
        local_qps: vec![of_process, of_kernel],
        sentences: vec![(
            "mlx5_0 port 1".to_owned(),
            "notified by 240 CNPs; the NIC handled 100, ignored 12".to_owned(),
        )],
        missing: None,
    }
}

fn points() -> Vec<PointRecord> {
    let switch = PointRecord {
        notifier: address("2001:db8:ffff::1"),
        notifier_role: Origin::Switch,
        made_by: None,
        trusted: Some(true),
        flows: 3,
        flows_at_least: true,
        rate_now: Some(1_250.0),
        rate_1s: Some(1_183.0),
        rate_10s: Some(992.7),
        rate_peak: Some(1_303.0),
        total: 12_367,
        samples: 0,
        cnp: 0,
        fast_cnp_1: 0,
        fast_cnp_2: 12_345,
        proxy_cn: 17,
        wan_fcn: 5,
        level_max: Some(7),
        queue_max: Some(65_536),
        malformed: 2,
        findings: 3,
        first_seen: after(3),
        last_seen: after(9_900),
    };
    let receiver = PointRecord {
        notifier: address("198.18.2.4"),
        notifier_role: Origin::Receiver,
        made_by: Some(Maker::Network),
        trusted: None,
        flows: 1,
        flows_at_least: false,
        rate_now: Some(0.0),
        rate_1s: Some(20.0),
        rate_10s: Some(12.5),
        rate_peak: Some(40.0),
        total: 240,
        cnp: 240,
        fast_cnp_2: 0,
        proxy_cn: 0,
        wan_fcn: 0,
        level_max: None,
        queue_max: None,
        malformed: 0,
        findings: 4,
        ..switch.clone()
    };
    vec![switch, receiver]
}

fn hops() -> Vec<HopRecord> {
    let first = HopRecord {
        path: 1,
        traces: 12_345,
        hop: 1,
        node: Some(11),
        namespace: 0,
        ingress: Some(1),
        egress: Some(49),
        queue: Some(12),
        queue_mean: Some(20.5),
        queue_max: Some(90),
        delay: Some(1_200),
        delay_max: Some(4_500),
        between: None,
        last_seen: after(9_900),
    };
    let second = HopRecord {
        hop: 2,
        node: Some(21),
        ingress: None,
        queue: Some(4_096),
        queue_mean: Some(3_800.25),
        queue_max: Some(65_536),
        delay: Some(48_000),
        delay_max: Some(812_000),
        between: Some(2_300),
        ..first.clone()
    };
    vec![first, second]
}

fn event(rule: Rule, at: u64, frame: u64, times: u64) -> EventRecord {
    let info = rule.info();
    EventRecord {
        at,
        // A millisecond apart.
        last: at + (times - 1) * 1_000_000,
        severity: info.severity,
        what: info.id,
        times,
        frame: Some(frame),
        interface: Some("leaf1:7".into()),
        from: Some(address("198.18.2.4")),
        to: Some(address("198.18.1.3")),
        text: info.text.into(),
        section: info.section,
    }
}

fn events() -> Vec<EventRecord> {
    let mut rate = event(Rule::FastCnpRate, after(80), 214, 1);
    rate.text = "2001:db8:ffff::1 sent 31 Fast CNPs about QP 0x1234 at 2001:db8:0:2::20 within 1 ms; 21 are allowed".into();
    rate.from = Some(address("2001:db8:ffff::1"));
    rate.to = Some(address("2001:db8:0:1::10"));
    vec![
        event(Rule::CnpPsn, after(5), 17, 4),
        event(Rule::FastCnpHopByHop, after(7), 23, 1),
        rate,
        event(Rule::IoamOverflow, after(90), 230, 1),
    ]
}

fn interfaces() -> Vec<InterfaceRecord> {
    let live = InterfaceRecord {
        name: "leaf1:7".into(),
        state: "up",
        received: 1_000_000,
        octets: 1_000_000_000,
        rate_1s: Some(101_000.0),
        notifications: 12_590,
        data: 934_590,
        other: 52_800,
        pfc: 0,
        paused: None,
        cut: 14,
        undecodable: 6,
        dropped_kernel: Some(3),
        dropped_interface: Some(0),
        about: "veth; Ethernet; filter udp port 4791".into(),
    };
    let file = InterfaceRecord {
        name: "swp\x1b[31m\"1\"".into(),
        state: "file",
        received: 300_000,
        octets: 340_000_000,
        rate_1s: Some(0.0),
        notifications: 17,
        data: 299_977,
        other: 0,
        pfc: 0,
        paused: None,
        cut: 6,
        undecodable: 0,
        dropped_kernel: None,
        dropped_interface: None,
        about: "=HYPERLINK(\"x\") at 192.0.2.77".into(),
    };
    vec![live, file]
}
