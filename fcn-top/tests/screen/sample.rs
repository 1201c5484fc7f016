//! Tables as during an incast: eight senders, one receiver, switches between them.

use fcn_top::nic::known::Quantity;
use fcn_top::record::RowId;
use fcn_top::record::{
    Advice, Answer, Cause, CounterRecord, Ecn, EventRecord, Evidence, FlowRecord, HopRecord,
    InterfaceRecord, LocalQpRecord, Maker, PointRecord, QpRecord, QpSide, Resolved, Slower, Unit,
    origin,
};
use fcn_top::tables::{
    Detail, Details, Nics, PastPacket, Tables, Totals, Traffic, TrafficStep, WantedDetails,
};
use fcn_wire::{Kind, Origin, Rule};
use std::net::IpAddr;

/// 2025-11-22 08:15:00 UTC.
pub const START: u64 = 1_763_799_300_000_000_000;
pub const SECOND: u64 = 1_000_000_000;

pub fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Returns the tables `second` seconds after the start.
pub fn incast(second: u64) -> Tables {
    let now = START + second * SECOND;
    let mut totals = Totals {
        packets: 4_812_345 + second * 80_000,
        octets: 5_214_400_123 + second * 90_000_000,
        data: 4_700_000 + second * 78_000,
        ce: 310_000,
        other: 1_204,
        cut: 3,
        undecodable: 1,
        icrc_bad: 2,
        findings: [4, 17, 3],
        rows: 13,
        rows_evicted: 0,
        flows: 26,
        notifiers: 4,
        ..Totals::default()
    };
    totals.notifications = [
        6_000 + second * 900,
        2_000 + second * 1_234,
        3_000 + second * 100,
        410,
        120,
    ];
    Tables {
        now,
        started: Some(START),
        since: START,
        qps: qps(now),
        flows: flows(now),
        points: points(now),
        hops: hops(now),
        events: events(now),
        interfaces: interfaces(second),
        nics: nics(second).into(),
        totals,
        rate_1s: Some(2_234.0),
        data_rate: Some(9.29e9 / 8.0),
        ce_1s: Some(0.03),
        rules: vec![
            ("fastcnp.rate.exceeded", 14),
            ("rocev2.icrc.bad", 2),
            ("cnp.psn.nonzero", 3),
        ],
        unread: vec![],
        receivers: vec![],
        pauses: vec![],
        trimmed: vec![],
    }
}

/// A NIC that handles fewer CNPs than arrive, and one of another driver, with a hostile name.
fn nics(second: u64) -> Nics {
    let told = 6_000 + second * 900;
    let record = |counter: &str, quantity, growth: u64| CounterRecord {
        device: "mlx5_0".into(),
        port: 1,
        interface: Some("eth1".into()),
        driver: Some("mlx5".into()),
        counter: counter.into(),
        quantity,
        qps: None,
        value: 70_000 + growth,
        growth: Some(growth),
        seen: None,
        resets: 0,
        vanished: false,
    };
    let seen = |record: CounterRecord| CounterRecord {
        seen: Some(told),
        ..record
    };
    let soft = CounterRecord {
        device: "rxe\x1b[2J".into(),
        interface: None,
        driver: Some("rxe".into()),
        resets: 2,
        ..record("out_of_seq_request", Some(Quantity::OutOfSequence), 3)
    };
    let pair = |qp: u32, process: &str, notified: Option<u64>| LocalQpRecord {
        device: "mlx5_0".into(),
        port: Some(1),
        qp,
        kind: Some("rc"),
        state: Some(if qp == 0x1236 { "err" } else { "rts" }),
        remote_qp: Some(qp + 0x100),
        pid: notified.map(|_| 4_242),
        process: Some(process.into()),
        container: notified.map(|_| "0123456789ab".into()),
        notified,
    };
    Nics {
        counters: vec![
            seen(record(
                "rp_cnp_handled",
                Some(Quantity::CnpHandled),
                told / 3,
            )),
            seen(record("rp_cnp_ignored", Some(Quantity::CnpIgnored), 17)),
            record("out_of_sequence", Some(Quantity::OutOfSequence), 0),
            record("port_xmit_wait", None, 123_456),
            CounterRecord {
                qps: Some("0x1234 0x1235".into()),
                ..record("cc_rx_cnp_pkts", Some(Quantity::CnpReceived), 12)
            },
            soft,
        ],
        local_qps: vec![
            pair(0x1234, "ib_write_bw", Some(told)),
            pair(0x1236, "python3\x07", Some(2)),
            pair(1, "[ib_core]", None),
        ],
        sentences: vec![
            (
                "mlx5_0 port 1".to_owned(),
                format!(
                    "notified by {told} CNPs; the NIC handled {}, ignored 17",
                    told / 3
                ),
            ),
            (
                "rxe\x1b[2J port 1".to_owned(),
                "its network interface is not known; its driver counts no CNPs".to_owned(),
            ),
        ],
        missing: None,
    }
}

/// Changes rows of tables.
pub fn change(tables: &mut Tables, act: impl FnOnce(&mut Vec<(RowId, QpRecord)>)) {
    act(&mut tables.qps);
}

fn qps(now: u64) -> Vec<(RowId, QpRecord)> {
    use Maker::{Mixed, Network, Receiver, Unknown};
    let mut rows = Vec::new();
    for i in 0..8u32 {
        let (rate, obeys) = (f64::from(900 - i * 110), i != 3);
        rows.push(QpRecord {
            sender: Some(address(&format!("10.0.{}.{}", 1 + i / 4, 10 + i))),
            qp: Some(0x1200 + i * 7),
            qp_side: Some(QpSide::Sender),
            kind: Kind::Cnp,
            notifier_role: Origin::Receiver,
            notifier: address("10.0.9.20"),
            destination: address(&format!("10.0.{}.{}", 1 + i / 4, 10 + i)),
            sender_qp: Some(0x1200 + i * 7),
            sender_qp_from: Some(Resolved::Packet),
            receiver: Some(address("10.0.9.20")),
            receiver_qp: Some(0x88),
            receiver_qp_from: Some(Resolved::Cm),
            made_by: Some([Network, Receiver, Unknown, Mixed][i as usize % 4]),
            rate_now: Some(if i == 7 { 0.0 } else { rate * 1.1 }),
            rate_1s: Some(if i == 7 { 0.0 } else { rate }),
            rate_10s: Some(if i == 7 { 0.0 } else { rate * 0.97 }),
            rate_mean: Some(rate * 0.8),
            rate_peak: Some(rate * 1.6),
            total: 12_000 - u64::from(i) * 1_111,
            gap_min: Some(48_000),
            gap_p50: Some(812_000),
            gap_p90: Some(1_250_000),
            gap_p99: Some(9_870_000),
            ce_share: Some(0.125 / f64::from(i + 1)),
            dscp: Some(48),
            ecn: None,
            vlan_priority: None,
            data_dscp: Some(26),
            data_vlan_priority: None,
            class: None,
            data_rate: Some(9.8e9 / f64::from(i + 1)),
            data_packets: Some(612_345),
            change: obeys.then_some(-0.42 + f64::from(i) * 0.03),
            measured: 412,
            verdict: Some(if obeys {
                Answer::Obeys
            } else {
                Answer::DoesNotObey
            }),
            evidence: Some(if obeys {
                Evidence::SlowerThanPredicted(Slower {
                    at_least: 0.42,
                    errors: 7.3,
                    window: 8,
                    unit: Unit::Packets,
                })
            } else {
                Evidence::Steady {
                    most: 0.05,
                    alone: true,
                }
            }),
            made_by_evidence: Some(origin::Evidence::Nearer {
                passed: 1,
                receiver: 3,
                macs: None,
            }),
            first_seen: START + SECOND,
            last_seen: now - 1_000_000,
            ..empty(now)
        });
    }
    for i in 0..3u32 {
        let sender = address(&format!("2001:db8:0:{}::{:x}", i + 1, 0x10 + i));
        rows.push(QpRecord {
            sender: Some(sender),
            qp: Some(0x88 + i),
            qp_side: Some(QpSide::Receiver),
            kind: if i == 0 {
                Kind::FastCnp1
            } else {
                Kind::FastCnp2
            },
            notifier_role: Origin::Switch,
            notifier: address("2001:db8:ffff::1"),
            notifiers: 2,
            destination: sender,
            sender_qp: (i == 0).then_some(0x77),
            sender_qp_from: (i == 0).then_some(Resolved::Cm),
            receiver: Some(address("2001:db8:0:9::20")),
            receiver_qp: Some(0x88 + i),
            receiver_qp_from: Some(Resolved::Cm),
            rate_now: Some(1_240.0),
            rate_1s: Some(1_234.0 - f64::from(i) * 400.0),
            rate_10s: Some(990.5),
            rate_peak: Some(1_300.0),
            total: 98_765,
            gap_min: Some(50_100),
            gap_p50: Some(790_000),
            gap_p90: Some(990_000),
            gap_p99: Some(2_000_000),
            queue: (i > 0).then_some(4_096),
            queue_max: (i > 0).then_some(65_536),
            measured: 900,
            verdict: Some(Answer::Unclear),
            evidence: Some(Evidence::NeverQuiet),
            advice: Some(Advice::FromBefore),
            findings: 14,
            icrc_bad: if i == 2 { 2 } else { 0 },
            ..empty(now)
        });
    }
    rows.push(QpRecord {
        sender: Some(address("10.0.1.77")),
        qp: Some(0xabc),
        qp_side: Some(QpSide::Receiver),
        kind: Kind::ProxyCn,
        notifier_role: Origin::Switch,
        notifier: address("10.255.0.2"),
        destination: address("10.0.1.1"),
        receiver: Some(address("10.0.9.20")),
        receiver_qp: Some(0xabc),
        rate_1s: Some(41.0),
        rate_10s: Some(40.2),
        total: 410,
        level: Some(3),
        level_max: Some(6),
        ..empty(now)
    });
    rows.push(QpRecord {
        kind: Kind::WanFcn,
        notifier_role: Origin::Switch,
        notifier: address("10.255.7.1"),
        destination: address("10.0.1.254"),
        flow_label: Some(0xbeef),
        rate_1s: Some(12.0),
        rate_10s: Some(11.9),
        total: 120,
        level: Some(1),
        level_max: Some(7),
        ..empty(now)
    });
    (1..).map(RowId).zip(rows).collect()
}

/// Returns a row without any optional value.
pub fn empty(now: u64) -> QpRecord {
    QpRecord {
        sender: None,
        qp: None,
        qp_side: None,
        kind: Kind::Cnp,
        notifier_role: Origin::Receiver,
        notifier: address("10.0.9.20"),
        notifiers: 1,
        destination: address("10.0.1.10"),
        flow_label: None,
        sender_qp: None,
        sender_qp_from: None,
        receiver: None,
        receiver_qp: None,
        receiver_qp_from: None,
        interface: None,
        path: None,
        rate_now: Some(0.0),
        rate_1s: Some(0.0),
        rate_10s: Some(0.0),
        rate_mean: None,
        rate_peak: Some(0.0),
        total: 1,
        total_low: None,
        total_high: None,
        sampled: None,
        gap_min: None,
        gap_p50: None,
        gap_p90: None,
        gap_p99: None,
        level: None,
        level_max: None,
        queue: None,
        queue_max: None,
        ce_share: None,
        dscp: None,
        ecn: None,
        vlan_priority: None,
        data_dscp: None,
        data_vlan_priority: None,
        class: None,
        data_rate: None,
        data_packets: None,
        data_sampled: None,
        change: None,
        measured: 0,
        verdict: None,
        evidence: None,
        advice: None,
        made_by: None,
        made_by_evidence: None,
        first_seen: START,
        last_seen: now,
        icrc_bad: 0,
        findings: 0,
    }
}

fn points(now: u64) -> Vec<PointRecord> {
    let point = |notifier: &str, origin, flows, rate: f64, total| PointRecord {
        notifier: address(notifier),
        notifier_role: origin,
        made_by: (origin == Origin::Receiver).then_some(Maker::Mixed),
        trusted: Some(notifier != "10.255.7.1"),
        flows,
        flows_at_least: false,
        rate_now: Some(rate * 1.1),
        rate_1s: Some(rate),
        rate_10s: Some(rate * 0.9),
        rate_peak: Some(rate * 1.5),
        total,
        samples: 0,
        cnp: 0,
        fast_cnp_1: 0,
        fast_cnp_2: 0,
        proxy_cn: 0,
        wan_fcn: 0,
        level_max: None,
        queue_max: None,
        malformed: 0,
        findings: 0,
        first_seen: START,
        last_seen: now,
    };
    vec![
        PointRecord {
            cnp: 64_000,
            ..point("10.0.9.20", Origin::Receiver, 8, 4_120.0, 64_000)
        },
        PointRecord {
            fast_cnp_1: 98_765,
            fast_cnp_2: 197_530,
            queue_max: Some(65_536),
            findings: 42,
            ..point("2001:db8:ffff::1", Origin::Switch, 3, 2_502.0, 296_295)
        },
        PointRecord {
            proxy_cn: 410,
            level_max: Some(6),
            ..point("10.255.0.2", Origin::Switch, 1, 41.0, 410)
        },
        PointRecord {
            wan_fcn: 120,
            level_max: Some(7),
            findings: 120,
            ..point("10.255.7.1", Origin::Switch, 1, 12.0, 120)
        },
    ]
}

fn flows(now: u64) -> Vec<FlowRecord> {
    let flow = |sender: &str, qp: u32| FlowRecord {
        sender: sender.parse().unwrap(),
        receiver: "10.0.9.20".parse().unwrap(),
        receiver_qp: qp,
        sender_qp: Some(qp + 0x1000),
        sender_qp_from: Some(Resolved::Acks),
        data_rate: Some(9.2e9),
        data_packets: 812_345,
        data_octets: 845_000_000,
        data_sampled: None,
        ce_share: Some(0.07),
        ecn: Some(Ecn::Ect0),
        not_ect: 0,
        data_dscp: Some(26),
        data_vlan_priority: None,
        ack_dscp: Some(48),
        ack_vlan_priority: None,
        acks: 203_086,
        rnr_naks: 0,
        nak_sequence: 0,
        nak_invalid_request: 0,
        nak_remote_access: 0,
        nak_remote_operation: 0,
        resent: 0,
        late: 0,
        stall_max: None,
        stall_after: None,
        stalls: 0,
        stalls_all: 0,
        stalled: 0,
        tries: None,
        path_pauses: 0,
        exhausted: false,
        rtt_min: Some(4_210),
        rtt_last: Some(11_870),
        verdict: Some(Answer::Obeys),
        first_seen: START,
        last_seen: now,
    };
    vec![
        flow("10.0.1.11", 0x88),
        FlowRecord {
            ecn: Some(Ecn::NotCapable),
            not_ect: 7_001,
            ce_share: Some(0.0),
            data_packets: 7_001,
            data_octets: 7_300_000,
            data_rate: Some(8.1e6),
            acks: 6_990,
            rnr_naks: 5,
            resent: 5,
            stall_max: Some(655_360_000),
            stall_after: Some(Cause::RnrNak),
            stalls: 5,
            stalls_all: 5,
            stalled: 3_276_800_000,
            verdict: None,
            ..flow("10.0.1.12", 0x211)
        },
        FlowRecord {
            sender_qp: None,
            sender_qp_from: None,
            data_packets: 8,
            data_octets: 2_400,
            data_rate: Some(0.0),
            acks: 0,
            ack_dscp: None,
            resent: 7,
            stall_max: Some(268_435_456),
            stall_after: Some(Cause::Unanswered),
            stalls: 6,
            stalls_all: 6,
            stalled: 1_610_612_736,
            tries: Some(8),
            exhausted: true,
            rtt_min: None,
            rtt_last: None,
            verdict: None,
            ..flow("2001:db8::7", 0x212)
        },
    ]
}

fn hops(now: u64) -> Vec<HopRecord> {
    let mut hops = Vec::new();
    for (path, nodes) in [(1, [101, 201, 102].as_slice()), (2, &[103, 202, 102])] {
        for (hop, &node) in (1u8..).zip(nodes) {
            let deep = u32::from(hop) * u32::from(hop) * 1_200 * path;
            hops.push(HopRecord {
                path,
                traces: 197_530 / u64::from(path),
                hop,
                node: Some(node),
                namespace: 7,
                ingress: Some(hop.into()),
                egress: Some(u32::from(hop) + 8),
                queue: Some(deep),
                queue_mean: Some(f64::from(deep) * 0.8),
                queue_max: Some(deep * 3),
                delay: Some(u64::from(deep) * 11),
                delay_max: Some(u64::from(deep) * 40),
                between: (hop > 1).then_some(1_950),
                last_seen: now,
            });
        }
    }
    hops
}

fn events(now: u64) -> Vec<EventRecord> {
    let event = |before: u64, rule: Rule| EventRecord {
        at: now - before * 1_000_000,
        last: now - before * 1_000_000,
        severity: rule.info().severity,
        what: rule.info().id,
        times: 1,
        frame: Some(4_812_345 - before),
        interface: Some("eth0".into()),
        from: Some(address("2001:db8:ffff::1")),
        to: Some(address("2001:db8:0:1::10")),
        text: rule.info().text.into(),
        section: rule.info().section,
    };
    vec![
        EventRecord {
            what: "interface.down",
            frame: None,
            from: None,
            to: None,
            text: "eth1 has gone down; waiting until it is back".into(),
            section: "",
            severity: fcn_wire::Severity::Warning,
            ..event(9_000, Rule::CnpPsn)
        },
        EventRecord {
            times: 3,
            from: Some(address("10.0.9.20")),
            to: Some(address("10.0.1.10")),
            ..event(7_000, Rule::CnpPsn)
        },
        EventRecord {
            times: 14,
            last: now - 120_000_000,
            ..event(3_000, Rule::FastCnpRate)
        },
        event(400, Rule::RoceIcrcBad),
    ]
}

fn interfaces(second: u64) -> Vec<InterfaceRecord> {
    let up = InterfaceRecord {
        name: "eth0".into(),
        state: "up",
        received: 4_812_345 + second * 80_000,
        octets: 5_214_400_123,
        rate_1s: Some(80_123.0),
        notifications: 11_530 + second * 2_234,
        data: 4_700_000,
        other: 1_204,
        pfc: 0,
        paused: None,
        cut: 3,
        undecodable: 1,
        dropped_kernel: Some(0),
        dropped_interface: Some(0),
        about: "mlx5_core, Ethernet, filter udp port 4791 or ip6 dest-opts or vlan".into(),
    };
    let down = InterfaceRecord {
        name: "eth1".into(),
        state: "down",
        received: 0,
        octets: 0,
        rate_1s: Some(0.0),
        notifications: 0,
        data: 0,
        other: 0,
        cut: 0,
        undecodable: 0,
        about: "veth, Ethernet: the interface is down".into(),
        ..up.clone()
    };
    vec![up, down]
}

/// Returns the requested time series at that moment.
pub fn details(wanted: &WantedDetails, now: u64) -> Details {
    let course = detail(now);
    let kinds = |at: u64| [at % 9 * 60, at % 7 * 30, 10, at % 5, 1].map(|count| count as u32);
    let steps = (0..64).map(|at| TrafficStep {
        notifications: if at < 20 { [0; 5] } else { kinds(at) },
        data: 4_000,
        ce: 120,
        octets: 250_000_000 + at * 1_000_000,
    });
    // Data every 10 ms with a notification at every twentieth, and less data after it.
    let packets = (0..2_000u64).map(|at| PastPacket {
        at: now - (2_000 - at) * 10_000_000,
        octets: match at % 20 {
            0 => 0,
            1..10 => 1_086,
            _ => 4_182,
        },
        ce: at % 20 == 19,
        reordered: at % 200 == 7,
    });
    Details {
        traffic: Traffic {
            start: course.start,
            step: course.step,
            until: now,
            steps: steps.collect(),
        },
        rows: qps(now)
            .into_iter()
            .filter(|(row, _)| wanted.rows.contains(row))
            .map(|(row, record)| {
                let main = (record.notifier, record.total - record.total / 20);
                let other = (address("2001:db8:ffff::2"), record.total / 20);
                let others = record.notifiers.saturating_sub(1) as usize;
                let notifiers = [main].into_iter().chain([other].into_iter().take(others));
                let course = Detail {
                    notifiers: notifiers.collect(),
                    ..course.clone()
                };
                (row, course)
            })
            .collect(),
        points: wanted
            .points
            .iter()
            .map(|who| (*who, course.clone()))
            .collect(),
        notified: wanted.packets.map(|_| {
            let times = packets.clone().filter(|packet| packet.octets == 0);
            (0, times.map(|packet| packet.at).collect())
        }),
        packets: wanted.packets.map_or_else(Vec::new, |_| packets.collect()),
    }
}

/// A flow that obeys: its data drops with the notifications and recovers slowly.
fn detail(now: u64) -> Detail {
    let step = 1 << 28;
    let mut rate = 1.0_f32;
    let (mut notifications, mut data) = (Vec::new(), Vec::new());
    for at in 0..64u64 {
        let rate_of_notifications = if matches!(at % 21, 4 | 5 | 9) {
            30.0 + (at % 5) as f32 * 12.0
        } else {
            0.0
        };
        if rate_of_notifications > 0.0 {
            rate *= 0.55;
        }
        rate = (rate + 0.05).min(1.0);
        notifications.push(rate_of_notifications);
        data.push(rate * 320e6);
    }
    Detail {
        until: now,
        start: now - 64 * step,
        step,
        most: notifications
            .iter()
            .map(|rate_of_notifications: &f32| (rate_of_notifications / 9.0).ceil())
            .collect(),
        queue: notifications.iter().map(|count| count * 700.0).collect(),
        level: notifications.iter().map(|count| count / 10.0).collect(),
        notifications,
        data,
        notifiers: Vec::new(),
    }
}

/// Returns the tables with drops.
pub fn lossy(second: u64) -> Tables {
    let mut tables = incast(second);
    let first = &mut tables.interfaces[0];
    first.dropped_kernel = Some(1_234);
    (first.pfc, first.paused) = (46, Some("class 3 ×46, 4 ×2".into()));
    tables.totals.pfc = 46;
    tables
}
