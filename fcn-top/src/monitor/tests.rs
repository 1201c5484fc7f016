//! Tests of the monitor as a whole, with synthetic packets.

use super::{Limits, Monitor, Observed, Settings};
use crate::packet::Packet;
use crate::record::RowId;
use crate::record::{
    Answer, Cause, ClassRelation, Ecn, Evidence, Maker, QpRecord, QpSide, Resolved,
};
use crate::tables::{TrafficStep, Wanted, WantedDetails};
use fcn_observe::testing::Setup;
use fcn_observe::{FlowKey, RowKey};
use fcn_wire::bth::{Aeth, BthRepr};
use fcn_wire::cnp::CnpRepr;
use fcn_wire::compose::{OptionPart, Part, UdpChecksum, packet};
use fcn_wire::erspan::{Direction, Erspan, Erspan2, Erspan3, Granularity};
use fcn_wire::fast_cnp::FastCnpRepr;
use fcn_wire::icrc::{Policy, Reading};
use fcn_wire::ioam::{IoamOption, OptType};
use fcn_wire::pfc::PfcRepr;
use fcn_wire::pnc::Prefix;
use fcn_wire::sflow::{DatagramRepr, FlowSample, Port, RawRepr, Source};
use fcn_wire::wan_fcn::WanFcnRepr;
use fcn_wire::{Kind, LinkType, Opcode, Origin, Profile, Qp};
use parking_lot::Mutex;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

const SWITCH: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 3);
const SENDER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
const RECEIVER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 9);
const START: u64 = 1_767_225_600_000_000_000;
const MILLISECOND: u64 = 1_000_000;

fn frame(source: Ipv6Addr, inner: &[Part<'_>], icrc: Policy) -> Vec<u8> {
    let ipv6 = Part::Ipv6 {
        source,
        destination: SENDER,
        traffic_class: 0,
        flow_label: 0,
        hop_limit: 64,
    };
    let parts = [&[ipv6], inner, &[Part::Icrc(icrc)]].concat();
    packet(&parts, &Profile::DEFAULT).unwrap()
}

const UDP: Part<'_> = Part::Udp {
    source: 0xC000,
    destination: 4791,
    checksum: UdpChecksum::Zero,
};
const GOOD: Policy = Policy::Compute(Reading::Covered);

fn cnp(qp: u32) -> Vec<u8> {
    let cnp = Part::Cnp(CnpRepr::new(Qp::truncate(qp)));
    frame(RECEIVER, &[UDP, cnp], GOOD)
}

/// Returns a CNP with this DSCP.
fn cnp_of_class(qp: u32, dscp: u8) -> Vec<u8> {
    let mut cnp = cnp(qp);
    // The traffic class begins in the first octet.
    (cnp[0], cnp[1]) = (0x60 | dscp >> 2, dscp << 6);
    cnp
}

#[test]
fn cnps_of_another_class_than_expected_are_reported_for_each_qp() {
    let mut monitor = Monitor::new(Settings {
        cnp_dscp: fcn_wire::DscpSet::new([46, 48]).unwrap(),
        ..Settings::default()
    });
    for (number, (qp, dscp)) in
        (0..).zip([(5, 48), (5, 0), (5, 0), (6, 46), (7, 26), (5, 48), (5, 1)])
    {
        see(&mut monitor, START + number, 0, &cnp_of_class(qp, dscp));
    }
    let mut events = monitor.events();
    let first = events
        .find(|event| event.what == "cnp.class.unexpected")
        .unwrap();
    // Of frames 2, 5 and 7.
    assert_eq!((first.frame, first.times), (Some(2), 3));
}

fn fast_cnp(switch: Ipv6Addr, qp: u32) -> Vec<u8> {
    let cnp = Part::Cnp(CnpRepr::new(Qp::truncate(qp)));
    let option = [OptionPart::FastCnp(FastCnpRepr::Option1 {
        original_destination: RECEIVER,
    })];
    frame(switch, &[Part::DestinationOptions(&option), UDP, cnp], GOOD)
}

fn see(monitor: &mut Monitor, at: u64, interface: u32, bytes: &[u8]) -> Observed {
    let number = monitor.totals().packets + 1;
    monitor.observe(&Packet {
        at,
        bytes,
        wire_len: bytes.len(),
        link: LinkType::RawIp,
        interface,
        number,
    })
}

fn only(monitor: &Monitor) -> QpRecord {
    let rows: Vec<_> = monitor.rows().collect();
    assert_eq!(rows.len(), 1);
    rows[0].1.clone()
}

fn found(monitor: &Monitor) -> BTreeMap<&'static str, u64> {
    monitor.rules().into_iter().collect()
}

fn with_rows(rows: usize) -> Monitor {
    let limits = Limits {
        rows,
        ..Limits::default()
    };
    Monitor::new(Settings {
        limits,
        ..Settings::default()
    })
}

#[test]
fn a_cnp_creates_a_complete_row() {
    let mut monitor = Monitor::new(Settings::default());
    for (i, gap) in [0, 1, 3, 4, 1000].into_iter().enumerate() {
        let observed = see(&mut monitor, START + gap * MILLISECOND, 0, &cnp(0x12));
        assert!(observed.row.is_some() && observed.flow.is_none(), "{i}");
    }
    let row = only(&monitor);
    assert_eq!(
        (row.sender, row.destination),
        (Some(SENDER.into()), SENDER.into())
    );
    assert_eq!((row.qp, row.qp_side), (Some(0x12), Some(QpSide::Sender)));
    assert_eq!(
        (row.sender_qp, row.sender_qp_from),
        (Some(0x12), Some(Resolved::Packet))
    );
    assert_eq!((row.kind, row.notifier_role), (Kind::Cnp, Origin::Receiver));
    assert_eq!((row.notifier, row.notifiers), (RECEIVER.into(), 1));
    assert_eq!((row.receiver, row.receiver_qp), (None, None));
    assert_eq!((row.total, row.findings, row.icrc_bad), (5, 0, 0));
    assert_eq!(
        (row.first_seen, row.last_seen),
        (START, START + 1000 * MILLISECOND)
    );
    // Four in the first tenth of the completed second; the fifth is in the current tenth.
    assert_eq!((row.rate_1s, row.rate_10s), (Some(4.0), None));
    assert_eq!((row.rate_peak, row.rate_mean), (Some(4.0), Some(4.0)));
    assert_eq!(monitor.tables(Wanted::default()).rate_1s, Some(4.0));
    assert_eq!(row.gap_min, Some(MILLISECOND));
    // Gaps: 1, 2, 1 and 996 ms.
    let near = |found: Option<u64>, ms: f64| (found.unwrap() as f64 / 1e6 / ms - 1.0).abs() < 0.05;
    assert!(
        near(row.gap_p50, 1.0) && near(row.gap_p90, 996.0),
        "{row:?}"
    );
    let totals = monitor.totals();
    assert_eq!(
        (totals.notified(), totals.rows, totals.notifiers),
        (5, 1, 1)
    );
    assert_eq!(monitor.started, Some(START));
}

#[test]
fn notifications_in_several_classes_are_noted_once() {
    let mut monitor = Monitor::new(Settings::default());
    let notes = |monitor: &Monitor| {
        let wanted = Wanted {
            events: true,
            ..Wanted::default()
        };
        let events = monitor.tables(wanted).events;
        let notes = events
            .iter()
            .filter(|event| event.what.starts_with("class"));
        let notes: Vec<_> = notes.map(|event| (event.what, event.times)).collect();
        notes
    };
    let with_class = |octet: u8| {
        let mut bytes = cnp(0x12);
        (bytes[0], bytes[1]) = (0x60 | octet >> 4, octet << 4);
        bytes
    };
    see(&mut monitor, START, 0, &with_class(48 << 2 | 2));
    let row = only(&monitor);
    assert_eq!((row.dscp, row.ecn), (Some(48), Some(Ecn::Ect0)));
    assert_eq!((row.vlan_priority, row.class), (None, None));
    assert!(notes(&monitor).is_empty());
    for at in 1..5 {
        see(&mut monitor, START + at, 0, &with_class(26 << 2));
    }
    assert_eq!(only(&monitor).class, Some(ClassRelation::Several));
    assert_eq!(notes(&monitor), [("class.several", 1)]);
}

#[test]
fn of_several_notifiers_the_busiest_is_shown() {
    let mut monitor = Monitor::new(Settings::default());
    let switch = |n: u16| Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, n);
    // Six switches, the third with the most among the first four; the last two are beyond the limit
    // of distinguished notifiers.
    for (n, times) in [(1, 2), (2, 1), (3, 3), (4, 1), (5, 9), (6, 9)] {
        for i in 0..times {
            see(
                &mut monitor,
                START + i * MILLISECOND,
                0,
                &fast_cnp(switch(n), 7),
            );
        }
    }
    let row = only(&monitor);
    assert_eq!((row.notifier, row.notifiers), (switch(3).into(), 5));
    assert_eq!(
        (row.notifier_role, row.kind, row.total),
        (Origin::Switch, Kind::FastCnp1, 25)
    );
    assert_eq!(
        (row.receiver, row.receiver_qp),
        (Some(RECEIVER.into()), Some(7))
    );
    let (id, _) = monitor.rows().next().unwrap();
    let detail = monitor.detail(id).unwrap();
    let counts: Vec<_> = detail.notifiers.iter().map(|(_, count)| *count).collect();
    assert_eq!(counts, [2, 1, 3, 1]);
    assert_eq!(detail.notifications.iter().sum::<f32>(), 25.0);
    let flows: Vec<_> = monitor.points().map(|point| point.flows).collect();
    assert_eq!(flows, [1, 1, 1, 1, 0, 0]);
    assert_eq!(monitor.points().map(|point| point.total).sum::<u64>(), 25);
}

#[test]
fn interfaces_are_counted_separately_on_request() {
    for (per_interface, rows) in [(false, 1), (true, 2)] {
        let mut monitor = Monitor::new(Settings {
            per_interface,
            ..Settings::default()
        });
        monitor.know_interface(1, "eth1", "");
        let seen = [0, 1, 1].map(|interface| see(&mut monitor, START, interface, &cnp(5)));
        assert_eq!(seen.map(|seen| seen.copy), [false, true, false]);
        assert_eq!(seen.map(|seen| seen.counts), [true, per_interface, true]);
        let mut named: Vec<_> = monitor
            .rows()
            .map(|(_, row)| (row.interface, row.total))
            .collect();
        named.sort();
        assert_eq!(named.len(), rows);
        if per_interface {
            assert_eq!(named, [(Some("#0".into()), 1), (Some("eth1".into()), 2)]);
        }
        let received: Vec<_> = monitor
            .interfaces()
            .iter()
            .map(|i| (i.received, i.notifications))
            .collect();
        assert_eq!(received, [(1, 1), (2, 2)]);
    }
}

#[test]
fn a_wrong_icrc_is_counted_if_verified() {
    let part = Part::Cnp(CnpRepr::new(Qp::truncate(1)));
    let bad = frame(RECEIVER, &[UDP, part], Policy::Corrupt);
    for (verify_icrc, count) in [(true, 1), (false, 0)] {
        let mut monitor = Monitor::new(Settings {
            verify_icrc,
            ..Settings::default()
        });
        see(&mut monitor, START, 0, &bad);
        let row = only(&monitor);
        assert_eq!((row.icrc_bad, row.findings), (count, count));
        assert_eq!(monitor.totals().icrc_bad, count);
        assert_eq!(monitor.totals().findings, [0, 0, count]);
        assert_eq!(monitor.points().next().unwrap().findings, count);
        let events: Vec<_> = monitor
            .events()
            .map(|event| (event.what, event.frame))
            .collect();
        let wanted: &[_] = if verify_icrc {
            &[("rocev2.icrc.bad", Some(1))]
        } else {
            &[]
        };
        assert_eq!(events, wanted);
    }
}

#[test]
fn too_many_fast_cnps_about_one_flow_are_reported() {
    let mut monitor = Monitor::new(Settings::default());
    // At the limit: one every 50 µs. Copies on another interface do not add to it, nor do other
    // flows.
    monitor.know_interface(1, "eth1", "");
    for i in 0..200 {
        let at = START + i * 50_000;
        for (interface, qp) in [(0, 1), (1, 1), (0, 2)] {
            see(&mut monitor, at, interface, &fast_cnp(SWITCH, qp));
        }
    }
    assert_eq!(found(&monitor), BTreeMap::new());
    // 25 in one millisecond: 21 are allowed. CNPs have no such limit.
    let later = START + 1_000 * MILLISECOND;
    for i in 0..25 {
        see(&mut monitor, later + i, 0, &fast_cnp(SWITCH, 1));
        see(&mut monitor, later + i, 0, &cnp(1));
    }
    assert_eq!(
        found(&monitor),
        BTreeMap::from([("fastcnp.rate.exceeded", 4)])
    );
}

#[test]
fn notifiers_not_on_the_list_are_suspected() {
    let list = |address: Ipv6Addr| vec![Prefix::host(address.into())];
    let other = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 9);
    let cases = [
        (vec![], None, 0),
        (list(SWITCH), Some(true), 0),
        (list(other), Some(false), 3),
    ];
    for (trust, trusted, times) in cases {
        let mut monitor = Monitor::new(Settings {
            trust,
            ..Settings::default()
        });
        for i in 0..3 {
            see(
                &mut monitor,
                START + i * MILLISECOND,
                0,
                &fast_cnp(SWITCH, 1),
            );
            // A receiver's CNP needs no trust.
            see(&mut monitor, START + i * MILLISECOND, 0, &cnp(1));
        }
        let point = monitor
            .points()
            .find(|point| point.notifier_role == Origin::Switch);
        assert_eq!(point.unwrap().trusted, trusted);
        let count = found(&monitor).get("fastcnp.source.untrusted").copied();
        assert_eq!(count.unwrap_or(0), times);
    }
}

#[test]
fn truncated_and_malformed_packets_are_reported_and_decodable_notifications_count() {
    let mut monitor = Monitor::new(Settings::default());
    let whole = fast_cnp(SWITCH, 3);
    let mut cut = |keep: usize| {
        let number = monitor.totals().packets + 1;
        monitor.observe(&Packet {
            at: START,
            bytes: &whole[..keep],
            wire_len: whole.len(),
            link: LinkType::RawIp,
            interface: 0,
            number,
        })
    };
    // After the BTH: decodable. Within the option: not.
    assert!(cut(40 + 24 + 8 + 12).row.is_some());
    assert!(cut(50).row.is_none());
    let mut wrong = cnp(4);
    wrong[4..6].copy_from_slice(&[0xFF, 0xFF]);
    see(&mut monitor, START, 0, &wrong[..47]);
    let totals = monitor.totals();
    assert_eq!(
        (totals.notified(), totals.cut, totals.undecodable),
        (1, 1, 1)
    );
    let events: Vec<_> = monitor
        .events()
        .map(|event| (event.what, event.frame))
        .collect();
    assert_eq!(
        events,
        [("capture.cut", Some(2)), ("packet.malformed", Some(3))]
    );
}

/// Returns a data packet of the flow that the notifications are about.
fn data(psn: u32, ce: bool) -> Vec<u8> {
    let ipv6 = Part::Ipv6 {
        source: SENDER,
        destination: RECEIVER,
        traffic_class: if ce { 3 } else { 2 },
        flow_label: 0,
        hop_limit: 64,
    };
    let bth = Part::Bth(BthRepr::new(Opcode::RC_SEND_ONLY, Qp::truncate(7), psn));
    let parts = [ipv6, UDP, bth, Part::Bytes(&[0; 64]), Part::Icrc(GOOD)];
    packet(&parts, &Profile::DEFAULT).unwrap()
}

/// Returns everything that identifies the flow of a row.
fn flow_names(row: &QpRecord) -> impl PartialEq + std::fmt::Debug + use<> {
    let sender = (row.sender, row.sender_qp, row.receiver, row.receiver_qp);
    (sender, row.qp, row.qp_side)
}

/// Notifies about a flow by CNPs of a receiver and by Fast CNPs of a switch with both options,
/// before `learn` and after it.
fn told_by_all_kinds(learn: impl FnOnce(&mut Monitor), from: Resolved) {
    let (own, peer) = (Qp::truncate(0x111), 7);
    let mut monitor = Monitor::new(Settings::default());
    // Hop limit and number of one node.
    let trace = [0, 1, 1 << 3, 0, 0x80, 0, 0, 0, 64, 0, 0, 1];
    let option = [OptionPart::FastCnp(FastCnpRepr::Option2 {
        ioam: IoamOption {
            reserved: 0,
            opt_type: OptType::Preallocated,
            body: &trace,
        },
        original_destination: RECEIVER,
    })];
    let part = Part::Cnp(CnpRepr::new(Qp::truncate(peer)));
    let second = frame(
        SWITCH,
        &[Part::DestinationOptions(&option), UDP, part],
        GOOD,
    );
    for bytes in [cnp(own.get()), fast_cnp(SWITCH, peer), second] {
        see(&mut monitor, START, 0, &bytes);
    }
    let rows = |monitor: &Monitor| {
        let mut rows: Vec<_> = monitor.rows().map(|(_, row)| row).collect();
        rows.sort_by_key(|row| row.kind);
        rows
    };
    let sides: Vec<_> = rows(&monitor)
        .iter()
        .map(|row| (row.qp, row.qp_side))
        .collect();
    let receiver = (Some(peer), Some(QpSide::Receiver));
    let sender = (Some(own.get()), Some(QpSide::Sender));
    assert_eq!(sides, [sender, receiver, receiver]);
    learn(&mut monitor);
    let rows = rows(&monitor);
    let known: Vec<_> = rows.iter().map(|row| row.sender_qp_from).collect();
    assert_eq!(known, [Some(Resolved::Packet), Some(from), Some(from)]);
    assert_eq!((rows[0].qp, rows[0].qp_side), sender);
    assert_eq!(
        (rows[0].receiver, rows[0].receiver_qp),
        (Some(RECEIVER.into()), Some(peer))
    );
    assert!(
        rows.iter()
            .all(|row| flow_names(row) == flow_names(&rows[0])),
        "{rows:?}"
    );
    let flows: Vec<_> = monitor
        .points()
        .map(|point| (point.notifier_role, point.flows))
        .collect();
    assert_eq!(flows, [(Origin::Receiver, 1), (Origin::Switch, 1)]);
}

#[test]
fn a_flow_has_one_identity_across_kinds() {
    let setup = Setup {
        passive_end: (0xB, 7),
        ..Setup::v6()
    };
    let exchange = |monitor: &mut Monitor| {
        for message in setup.messages() {
            see(monitor, START, 0, &message);
        }
    };
    told_by_all_kinds(exchange, Resolved::Cm);
    let acknowledge = |monitor: &mut Monitor| {
        for psn in 5001..5004 {
            see(monitor, START, 0, &data(psn, false));
            let bth = BthRepr::new(Opcode::RC_ACKNOWLEDGE, Qp::truncate(0x111), psn);
            let ack = [UDP, Part::Bth(bth), Part::Bytes(&[0; 4])];
            see(monitor, START, 0, &frame(RECEIVER, &ack, GOOD));
        }
    };
    told_by_all_kinds(acknowledge, Resolved::Acks);
}

/// The QP at the receiver is reused for another QP of the same sender.
#[test]
fn a_reused_qp_starts_a_new_flow() {
    for by_cm in [[false, false], [true, true], [true, false], [false, true]] {
        let mut monitor = Monitor::new(Settings::default());
        let connections = [(0x111, 5_000, 90), (0x222, 9_000_000, 30)];
        for ((sender_qp, first_psn, packets), by_cm) in connections.into_iter().zip(by_cm) {
            let setup = Setup {
                active_end: (sender_qp, sender_qp),
                passive_end: (sender_qp, 7),
                ..Setup::v6()
            };
            for message in setup.messages().into_iter().filter(|_| by_cm) {
                see(&mut monitor, START, 0, &message);
            }
            for psn in first_psn..first_psn + packets {
                see(&mut monitor, START, 0, &data(psn, false));
                let bth = BthRepr::new(Opcode::RC_ACKNOWLEDGE, Qp::truncate(sender_qp), psn);
                let ack = [UDP, Part::Bth(bth), Part::Bytes(&[0; 4])];
                see(&mut monitor, START, 0, &frame(RECEIVER, &ack, GOOD));
            }
            for _ in 0..5 {
                see(&mut monitor, START, 0, &cnp(sender_qp));
            }
        }
        let rows = monitor.rows().map(|(_, row)| (row.qp, row.data_packets));
        let mut flows: Vec<_> = rows.collect();
        flows.sort_unstable();
        // Nothing of the first flow remains, or is reported for the second.
        let expected = [(Some(0x111), None), (Some(0x222), Some(30))];
        assert_eq!(flows, expected, "RDMA CM: {by_cm:?}");
        let flow = monitor.flows().next().unwrap();
        assert_eq!((flow.data_packets, flow.resent), (120, 0), "both");
    }
}

#[test]
fn rdma_cm_exchanges_count_and_are_learnt_once() {
    let mut monitor = Monitor::new(Settings::default());
    monitor.know_interface(0, "in", "");
    monitor.know_interface(1, "out", "");
    // The receiver's QP is reused for another one of the sender while copies of the first exchange
    // are still to come.
    let first = Setup::v6();
    let second = Setup {
        active_end: (0xC, 0x333),
        passive_end: (0xD, 0x222),
        ..first
    };
    let exchange = [first.messages(), second.messages()].concat();
    for (number, message) in (0..).zip(&exchange) {
        see(&mut monitor, START + number, 0, message);
    }
    for message in &exchange[..3] {
        see(&mut monitor, START + MILLISECOND, 1, message);
    }
    let flow = FlowKey {
        sender: SENDER.into(),
        receiver: RECEIVER.into(),
        receiver_qp: Qp::truncate(0x222),
    };
    let known = (Qp::truncate(0x333), Resolved::Cm);
    assert_eq!(monitor.correlator.sender_qp(&flow), Some(known));
    let totals = monitor.totals();
    assert_eq!((totals.packets, totals.copies, totals.other), (9, 3, 6));
}

#[test]
fn packets_on_several_interfaces_count_once() {
    const MICROSECOND: u64 = 1_000;
    let mut monitor = Monitor::new(Settings::default());
    monitor.know_interface(0, "in", "");
    monitor.know_interface(1, "out", "");
    // Two CNPs 50 µs apart, 100 times, each captured again after the bridge; data likewise, with
    // every fourth packet marked by the bridge.
    for i in 0..100 {
        let at = START + i * MILLISECOND;
        for (late, interface) in [(0, 0), (2, 1), (50, 0), (52, 1)] {
            see(&mut monitor, at + late * MICROSECOND, interface, &cnp(7));
        }
        let psn = i as u32;
        see(&mut monitor, at + 60 * MICROSECOND, 0, &data(psn, false));
        let marked = data(psn, psn.is_multiple_of(4));
        see(&mut monitor, at + 62 * MICROSECOND, 1, &marked);
        see(&mut monitor, at + 70 * MICROSECOND, 0, &fast_cnp(SWITCH, 7));
    }
    let totals = monitor.totals();
    assert_eq!((totals.packets, totals.copies), (700, 300));
    assert_eq!((totals.notified(), totals.data, totals.ce), (300, 100, 25));
    let course = monitor.details(&WantedDetails::default()).traffic.steps;
    let sum = |field: fn(&TrafficStep) -> u32| course.iter().map(field).sum::<u32>();
    assert_eq!((sum(|step| step.data), sum(|step| step.ce)), (100, 25));
    let mut rows: Vec<_> = monitor.rows().map(|(_, row)| row).collect();
    rows.sort_by_key(|row| row.kind);
    let seen = |row: &QpRecord| (row.total, row.interface.as_deref().map(str::to_owned));
    assert_eq!(seen(&rows[0]), (200, Some("in,out".to_owned())));
    assert_eq!(seen(&rows[1]), (100, Some("in".to_owned())));
    assert_eq!(
        (rows[1].data_packets, rows[1].ce_share),
        (Some(100), Some(0.25))
    );
    assert_eq!(monitor.points().map(|point| point.total).sum::<u64>(), 300);
    let received: Vec<_> = monitor
        .interfaces()
        .iter()
        .map(|i| (i.notifications, i.data))
        .collect();
    assert_eq!(received, [(300, 100), (200, 100)], "as seen");
}

#[test]
fn hidden_interfaces_have_numbers() {
    let mut monitor = Monitor::new(Settings {
        hides_names: true,
        ..Settings::default()
    });
    monitor.know_interface(0, "eth0-10-77-3-6", "at 10.77.3.6");
    let known = monitor.interfaces();
    assert_eq!((&*known[0].name, &*known[0].about), ("#0", ""));
}

#[test]
fn rows_by_interface_count_their_own_packets() {
    let mut monitor = Monitor::new(Settings {
        per_interface: true,
        ..Settings::default()
    });
    monitor.know_interface(1, "out", "");
    for i in 0..10 {
        for interface in [0, 1] {
            see(&mut monitor, START + i * MILLISECOND, interface, &cnp(7));
        }
    }
    let totals: Vec<_> = monitor.rows().map(|(_, row)| row.total).collect();
    assert_eq!((totals, monitor.totals().notified()), (vec![10, 10], 10));
}

#[test]
fn a_capture_without_interfaces_is_warned_about_once() {
    let mut monitor = Monitor::new(Settings::default());
    let mut cooked = vec![0; 16];
    cooked[14..].copy_from_slice(&[0x86, 0xDD]);
    cooked.extend(cnp(7));
    for number in 1..4 {
        monitor.observe(&Packet {
            at: START,
            bytes: &cooked,
            wire_len: cooked.len(),
            link: LinkType::LinuxCooked,
            interface: 0,
            number,
        });
    }
    assert_eq!(only(&monitor).total, 3);
    let events: Vec<_> = monitor
        .events()
        .map(|event| (event.what, event.times))
        .collect();
    assert_eq!(events, [("capture.places.unclear", 1)]);
}

#[test]
fn a_mark_after_a_switch_counts_with_the_packet_before_it() {
    let mut monitor = Monitor::new(Settings::default());
    monitor.know_interface(0, "in", "");
    monitor.know_interface(1, "out", "");
    let copies = (0..400).flat_map(|i| [(i, i, 0), (i + 5, i, 1)]);
    let mut copies: Vec<_> = copies.collect();
    copies.sort_unstable();
    for (ms, psn, interface) in copies {
        let bytes = data(psn as u32, interface == 1);
        see(&mut monitor, START + ms * MILLISECOND, interface, &bytes);
    }
    let steps = monitor.details(&WantedDetails::default()).traffic.steps;
    assert!(steps.iter().all(|step| step.ce == step.data), "{steps:?}");
}

#[test]
fn a_duplicated_capture_is_reported() {
    for (copies_of, doubtful) in [(2, true), (1, false)] {
        let mut monitor = Monitor::new(Settings::default());
        for psn in 0..300 {
            // One in ten is retransmitted anyway.
            let copies = copies_of + usize::from(psn % 10 == 0);
            for _ in 0..copies {
                see(&mut monitor, START, 0, &data(psn, false));
            }
        }
        // Reordered packets repeat no PSN.
        for psn in 0..300 {
            see(&mut monitor, START, 0, &data(1_000 + (psn ^ 7), false));
        }
        // A go-back-N retransmission.
        for psn in 0..300 {
            see(&mut monitor, START, 0, &data(1_000 + psn, false));
        }
        let events: Vec<_> = monitor.events().map(|event| event.what).collect();
        let expected = doubtful.then_some("capture.data.repeated");
        assert_eq!(events, Vec::from_iter(expected));
    }
    // A second capture point, whose clock is 100 packets behind.
    let mut monitor = Monitor::new(Settings::default());
    for psn in 100..400 {
        see(&mut monitor, START, 0, &data(psn, false));
        see(&mut monitor, START, 0, &data(psn - 100, false));
    }
    let mut events = monitor.events().map(|event| event.what);
    assert_eq!(events.next(), Some("capture.data.repeated"));
}

#[test]
fn capture_points_with_diverging_clocks_are_reported() {
    for (apart, doubtful) in [(2, false), (20, true), (3_000, true)] {
        let mut monitor = Monitor::new(Settings::default());
        monitor.know_interface(0, "near", "");
        monitor.know_interface(1, "far", "");
        let copies = (0..400).flat_map(|i| [(i, i, 0), (i + apart, i, 1)]);
        let mut copies: Vec<_> = copies.collect();
        copies.sort_unstable();
        for (ms, psn, interface) in copies {
            let at = START + ms * MILLISECOND;
            see(&mut monitor, at, interface, &data(psn as u32, false));
        }
        let told = |event: crate::record::EventRecord| event.what == "capture.places.apart";
        assert_eq!(monitor.events().any(told), doubtful, "{apart}");
    }
}

#[test]
fn notifications_in_transit_when_a_capture_point_begins_are_reported() {
    // A CNP every 400 µs, delayed by `way` µs to the capture point at the sender, which begins
    // later.
    for (way, doubtful) in [(10, false), (3_000, true)] {
        let mut monitor = Monitor::new(Settings::default());
        monitor.know_interface(0, "sender", "");
        monitor.know_interface(1, "receiver", "");
        let mut all = Vec::new();
        for n in 0..400_u32 {
            let at = u64::from(n) * 400;
            all.extend([(at, 0, data(n, false)), (at + way, 1, data(n, false))]);
            all.extend([(at, 1, cnp(17)), (at + way, 0, cnp(17))]);
        }
        all.retain(|(at, place, _)| *place == 1 || *at > 40_000);
        all.sort_unstable();
        for (at, place, packet) in all {
            see(&mut monitor, START + at * 1_000, place, &packet);
        }
        let told = |event: crate::record::EventRecord| event.what == "capture.places.late";
        assert_eq!(monitor.events().any(told), doubtful, "{way}");
    }
}

#[test]
fn go_back_n_is_not_taken_for_a_duplicated_capture() {
    let mut monitor = Monitor::new(Settings::default());
    let doubts = |monitor: &Monitor| -> Vec<_> { monitor.events().map(|e| e.what).collect() };
    // At first half of all packets are retransmissions, in blocks.
    for psn in 0..300 {
        see(&mut monitor, START, 0, &data(psn, false));
        if psn % 30 == 29 {
            for again in psn - 29..=psn {
                see(&mut monitor, START, 0, &data(again, false));
            }
        }
    }
    assert!(doubts(&monitor).is_empty());
    // Frequent short retransmissions.
    let mut often = Monitor::new(Settings::default());
    for psn in 0..1_200 {
        see(&mut often, START, 0, &data(psn, false));
        if psn % 9 == 8 {
            for again in psn - 2..=psn {
                see(&mut often, START, 0, &data(again, false));
            }
        }
    }
    assert!(often.repeated_singly >= super::ENOUGH_REPEATED && doubts(&often).is_empty());
    // For a while, a mirror copies both ingress and egress.
    for psn in (300..1_200).flat_map(|psn| [psn, psn]) {
        see(&mut monitor, START, 0, &data(psn, false));
    }
    assert_eq!(doubts(&monitor), ["capture.data.repeated"]);
    let text = monitor.repeats().unwrap();
    assert!(
        text.starts_with("at least 1,200 of 2,400 data packets repeat a PSN"),
        "{text}"
    );
    // It is not true of the whole capture at the end.
    for psn in 1_200..4_000 {
        see(&mut monitor, START, 0, &data(psn, false));
    }
    assert!(doubts(&monitor).is_empty());
}

#[test]
fn interfaces_of_a_cooked_capture_are_distinguished() {
    let mut monitor = Monitor::new(Settings::default());
    let mut cooked = vec![0; 20];
    cooked[..2].copy_from_slice(&[0x86, 0xDD]);
    cooked.extend(cnp(7));
    for (number, index) in [2, 2, 3, 3, 4].into_iter().enumerate() {
        cooked[7] = index;
        monitor.observe(&Packet {
            at: START + number as u64,
            bytes: &cooked,
            wire_len: cooked.len(),
            link: LinkType::LinuxCooked2,
            interface: 0,
            number: number as u64 + 1,
        });
    }
    assert_eq!((only(&monitor).total, monitor.totals().copies), (2, 3));
}

#[test]
fn malformed_notifications_are_attributed() {
    let mut monitor = Monitor::new(Settings::default());
    let mut broken = fast_cnp(SWITCH, 7);
    broken[43] = 15;
    for interface in [0, 0, 1] {
        see(&mut monitor, START, interface, &broken);
        monitor.know_interface(1, "out", "");
    }
    let points: Vec<_> = monitor.points().collect();
    assert_eq!(points.len(), 1);
    let point = &points[0];
    assert_eq!(
        (point.notifier, point.notifier_role),
        (SWITCH.into(), Origin::Switch)
    );
    let totals = monitor.totals();
    // The first was captured before there was another capture point to recognise it at.
    assert_eq!((point.malformed, point.total, totals.malformed), (2, 0, 2));
    assert_eq!((totals.undecodable, totals.copies, totals.other), (2, 1, 0));
    assert!(point.findings >= 2 && totals.findings[2] >= 2);
}

#[test]
fn acknowledgements_at_two_capture_points_count_once() {
    let mut monitor = Monitor::new(Settings::default());
    for psn in 1..=10 {
        let bth = BthRepr::new(Opcode::RC_ACKNOWLEDGE, Qp::truncate(0x111), psn);
        let bytes = frame(RECEIVER, &[UDP, Part::Bth(bth), Part::Bytes(&[0; 4])], GOOD);
        let at = START + u64::from(psn) * 1_000;
        see(&mut monitor, at, 0, &bytes);
        see(&mut monitor, at + 500, 1, &bytes);
    }
    // The first one was captured before there was a second capture point.
    let totals = monitor.totals();
    assert_eq!((totals.packets, totals.other, totals.copies), (20, 11, 9));
}

#[test]
fn late_copies_of_acknowledgements_leave_a_pair_alone() {
    let mut monitor = Monitor::new(Settings::default());
    let mut at = START;
    let acknowledgement = |psn| {
        let bth = BthRepr::new(Opcode::RC_ACKNOWLEDGE, Qp::truncate(0x111), psn);
        frame(RECEIVER, &[UDP, Part::Bth(bth), Part::Bytes(&[0; 4])], GOOD)
    };
    for psn in 100_000..100_064 {
        at += 1_000;
        see(&mut monitor, at, 0, &data(psn, false));
        see(&mut monitor, at + 500, 1, &data(psn, false));
    }
    // All of them pass the first capture point before any passes the second.
    for interface in 0..2 {
        for psn in 100_000..100_064 {
            at += 1_000;
            see(&mut monitor, at, interface, &acknowledgement(psn));
        }
    }
    see(&mut monitor, at + 1_000, 0, &cnp(0x111));
    assert_eq!(only(&monitor).receiver_qp, Some(7));
}

#[test]
fn rate_limits_and_borders_apply_to_every_kind() {
    let list = |address: Ipv6Addr| vec![Prefix::host(address.into())];
    let mut monitor = Monitor::new(Settings {
        domain: list(SENDER),
        ..Settings::default()
    });
    let wan = frame_of_wan();
    for i in 0..25 {
        see(&mut monitor, START + i, 0, &wan);
        see(&mut monitor, START + i, 0, &cnp(1));
    }
    assert_eq!(
        found(&monitor),
        BTreeMap::from([("wanfcn.rate.exceeded", 4), ("wanfcn.border.crossed", 25)])
    );
}

fn frame_of_wan() -> Vec<u8> {
    let ipv6 = Part::Ipv6 {
        source: SWITCH,
        destination: SENDER,
        traffic_class: 0,
        flow_label: 0,
        hop_limit: 64,
    };
    let udp = Part::Udp {
        source: 0xC000,
        destination: Profile::DEFAULT.wan_fcn_port,
        checksum: UdpChecksum::Compute,
    };
    let values = WanFcnRepr {
        flow_label: 5,
        level: 3,
        reserved: 0,
    };
    let message = values.to_bytes();
    packet(&[ipv6, udp, Part::Bytes(&message)], &Profile::DEFAULT).unwrap()
}

#[test]
fn a_notified_node_that_notifies_the_sender_is_an_ingress_pe() {
    // The WAN FCN is sent to the sender's address here, and is about label 5.
    for (label, by) in [(5, Origin::IngressPe), (6, Origin::Receiver)] {
        let mut monitor = Monitor::new(Settings::default());
        let inner = data(1, false);
        let outer = Part::Ipv6 {
            source: SENDER,
            destination: SWITCH,
            traffic_class: 2,
            flow_label: label,
            hop_limit: 64,
        };
        let inner = Part::Payload {
            ether_type: 0x86DD,
            protocol: 41,
            bytes: &inner,
        };
        let tunnelled = packet(&[outer, inner], &Profile::DEFAULT).unwrap();
        see(&mut monitor, START, 0, &tunnelled);
        see(&mut monitor, START + 1, 0, &frame_of_wan());
        let part = Part::Cnp(CnpRepr::new(Qp::truncate(1)));
        let cnp_of_pe = frame(SENDER, &[UDP, part], GOOD);
        see(&mut monitor, START + 2, 0, &cnp_of_pe);
        see(&mut monitor, START + 3, 0, &cnp(2));
        // Much later.
        let late = START + 11 * MILLISECOND;
        let part = Part::Cnp(CnpRepr::new(Qp::truncate(3)));
        see(&mut monitor, late, 0, &frame(SENDER, &[UDP, part], GOOD));
        let mut origins: Vec<_> = monitor
            .rows()
            .filter(|(_, row)| row.kind == Kind::Cnp)
            .map(|(_, row)| (row.qp, row.notifier_role))
            .collect();
        origins.sort_by_key(|(qp, _)| *qp);
        let wanted = [
            (Some(1), by),
            (Some(2), Origin::Receiver),
            (Some(3), Origin::Receiver),
        ];
        assert_eq!(origins, wanted);
    }
}

#[test]
fn a_switch_is_blamed_for_marks_on_its_own_packets() {
    for (marked, blamed) in [
        (true, "class.with_data fastcnp.ce.also_marked"),
        (false, "class.with_data"),
    ] {
        let mut monitor = Monitor::new(Settings {
            able: vec![Prefix::host(SENDER.into())],
            ..Settings::default()
        });
        monitor.know_interface(1, "behind", "");
        see(&mut monitor, START, 0, &data(1, false));
        see(&mut monitor, START + 10, 1, &data(1, marked));
        see(&mut monitor, START + 20, 0, &fast_cnp(SWITCH, 7));
        let rules: Vec<_> = monitor.rules().into_iter().map(|(rule, _)| rule).collect();
        assert_eq!(rules.join(" "), blamed);
    }
}

#[test]
fn packets_without_addresses_are_not_attributed_to_the_tunnel() {
    let broken = [
        [1, 0x80, 0xC2, 0, 0, 1, 2, 0, 0, 0, 0, 1].as_slice(),
        &[0x88, 0x08, 1, 1],
        &[0; 4],
    ]
    .concat();
    let udp = Part::Udp {
        source: 0xC000,
        destination: 4789,
        checksum: UdpChecksum::Zero,
    };
    let ipv6 = Part::Ipv6 {
        source: SWITCH,
        destination: SENDER,
        traffic_class: 0,
        flow_label: 0,
        hop_limit: 64,
    };
    let parts = [ipv6, udp, Part::Vxlan { vni: 1 }, Part::Bytes(&broken)];
    let tunnelled = packet(&parts, &Profile::DEFAULT).unwrap();
    let mut monitor = Monitor::new(Settings::default());
    see(&mut monitor, START, 0, &tunnelled);
    let events: Vec<_> = monitor.events().collect();
    assert!(!events.is_empty());
    assert!(
        events
            .iter()
            .all(|event| event.from.is_none() && event.to.is_none())
    );
}

#[test]
fn the_least_recently_notified_rows_leave_first() {
    let mut monitor = with_rows(32);
    let ids: Vec<RowId> = (0..32)
        .map(|qp| {
            see(&mut monitor, START + u64::from(qp), 0, &cnp(qp))
                .row
                .unwrap()
        })
        .collect();
    // QP 0 is notified again, with an older time: the time of processing counts.
    see(&mut monitor, START, 0, &cnp(0));
    let new = see(&mut monitor, START + 99, 0, &cnp(100)).row.unwrap();
    let kept: BTreeSet<_> = monitor.rows().filter_map(|(_, row)| row.qp).collect();
    let wanted: BTreeSet<_> = [0, 100].into_iter().chain(3..32).collect();
    assert_eq!(kept, wanted, "a sixteenth of 32 has left");
    assert!(monitor.row(ids[1]).is_none() && monitor.row(ids[3]).is_some());
    assert!(!ids.contains(&new), "an id names one row only");
    let totals = monitor.totals();
    assert_eq!((totals.rows, totals.rows_evicted), (31, 2));
    assert_eq!(monitor.points().next().unwrap().flows, 31);
    // QP 1 starts again.
    let again = see(&mut monitor, START + 100, 0, &cnp(1)).row.unwrap();
    assert!(again != ids[1] && monitor.row(again).unwrap().total == 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn rows_agree_with_a_plain_table(steps in proptest::collection::vec((0u32..30, any::<bool>()), 1..300), limit in 1usize..25) {
        let mut monitor = with_rows(limit);
        // By QP and kind: last use, and number of uses.
        let mut rows: BTreeMap<(u32, bool), (usize, u64)> = BTreeMap::new();
        let (mut gone, mut gone_rows) = (0, 0);
        for (i, (qp, fast)) in steps.iter().enumerate() {
            if !rows.contains_key(&(*qp, *fast)) && rows.len() >= limit {
                for _ in 0..(limit / 16).max(1) {
                    let oldest = rows.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| *key).unwrap();
                    gone += rows.remove(&oldest).unwrap().1;
                    gone_rows += 1;
                }
            }
            let row = rows.entry((*qp, *fast)).or_default();
            *row = (i, row.1 + 1);
            let bytes = if *fast { fast_cnp(SWITCH, *qp) } else { cnp(*qp) };
            see(&mut monitor, START + i as u64 * 100_000, 0, &bytes);
        }
        let found: BTreeMap<_, _> = monitor.rows()
            .map(|(_, row)| ((row.qp.unwrap(), row.kind != Kind::Cnp), row.total)).collect();
        let wanted: BTreeMap<_, _> = rows.iter().map(|(key, (_, total))| (*key, *total)).collect();
        prop_assert_eq!(found, wanted);
        let kept: u64 = monitor.rows().map(|(_, row)| row.total).sum();
        prop_assert_eq!(kept, monitor.totals().notified() - gone);
        prop_assert_eq!(monitor.totals().rows_evicted, gone_rows);
        let flows: u64 = monitor.points().map(|point| point.flows).sum();
        prop_assert_eq!(flows, rows.len() as u64);
        let points: u64 = monitor.points().map(|point| point.total).sum();
        prop_assert_eq!(points, steps.len() as u64);
    }

    #[test]
    fn keys_round_trip(qp in 0u32..1 << 24, sender: [u8; 16], v4: bool, interface: u32) {
        let address: IpAddr = if v4 { IpAddr::from([sender[0], sender[1], sender[2], sender[3]]) } else { IpAddr::from(sender) };
        let gist = fcn_wire::Notification {
            kind: Kind::FastCnp2,
            origin: Origin::Switch,
            notifier: SWITCH.into(),
            destination: address,
            sender: Some(address),
            subject: fcn_wire::Subject::ReceiverQp { receiver: address, qp: Qp::truncate(qp) },
            level: None,
            deepest_queue: None,
            hops: None,
        };
        let key = RowKey::new(&gist, Some(interface));
        prop_assert_eq!((key.sender(), key.receiver()), (Some(address), Some(address)));
        prop_assert_eq!(key.qp(), Some((Qp::truncate(qp), QpSide::Receiver)));
        prop_assert_eq!((key.kind(), key.interface(), key.flow_label()), (Kind::FastCnp2, interface, None));
    }
}

#[test]
fn packets_of_a_late_interface_count_once() {
    let mut monitor = Monitor::new(Settings::default());
    monitor.expect_interfaces();
    monitor.know_interface(0, "before", "");
    // CNPs 50 µs apart, first all those captured by one interface, as in merged files.
    let times = (0..100).map(|n| START + n * 50_000);
    for at in times.clone() {
        see(&mut monitor, at, 0, &cnp(1));
    }
    assert_eq!(
        (only(&monitor).total, only(&monitor).interface),
        (100, None)
    );
    monitor.know_interface(1, "behind", "");
    let names = |monitor: &Monitor| only(monitor).interface.unwrap().to_string();
    assert_eq!(names(&monitor), "before");
    for at in times {
        see(&mut monitor, at + 1_000, 1, &cnp(1));
    }
    assert_eq!(only(&monitor).total, 100);
    assert_eq!(monitor.totals().copies, 100);
    assert_eq!(names(&monitor), "before,behind");
}

#[test]
fn octets_exclude_capture_headers() {
    let mut monitor = Monitor::new(Settings::default());
    let cnp = cnp(1);
    // LINUX_SLL: type, address type, its length, the address, and IPv6.
    let mut cooked = vec![0; 14];
    cooked.extend([0x86, 0xDD]);
    cooked.extend(&cnp);
    monitor.observe(&Packet {
        at: START,
        bytes: &cooked,
        wire_len: cooked.len(),
        link: LinkType::LinuxCooked,
        interface: 0,
        number: 1,
    });
    assert_eq!(only(&monitor).total, 1);
    assert_eq!(monitor.totals().octets, cnp.len() as u64);
    assert_eq!(monitor.interfaces()[0].octets, cnp.len() as u64);
}

#[test]
fn gaps_of_reordered_notifications_are_not_shown() {
    let mut monitor = Monitor::new(Settings::default());
    let mut at = |n: u64| see(&mut monitor, START + n * MILLISECOND, 0, &cnp(1));
    // Every third is 2 ms late.
    for n in 0..90 {
        at(n * 10);
        at(n * 10 - n * 10 % 3);
    }
    let row = only(&monitor);
    assert_eq!((row.gap_min, row.gap_p50, row.gap_p99), (None, None, None));
    // One late packet among many makes no difference.
    let mut monitor = Monitor::new(Settings::default());
    for n in 0..200 {
        let late = if n == 100 { 15 } else { 0 };
        let at = START + (n * 10 - late) * MILLISECOND;
        see(&mut monitor, at, 0, &cnp(1));
    }
    let p50 = only(&monitor).gap_p50.unwrap();
    assert!(p50.abs_diff(10 * MILLISECOND) <= MILLISECOND / 10, "{p50}");
}

#[test]
fn listeners_receive_all_findings_about_packets() {
    let mut monitor = Monitor::new(Settings::default());
    let heard = Arc::new(Mutex::new([0; 3]));
    let times = Arc::clone(&heard);
    monitor.listen(Box::new(move |event| {
        if event.is_finding() {
            times.lock()[event.severity as usize] += event.times;
        }
    }));
    // Another protocol, and contradicts itself: an IPv6 header with a length beyond that on the
    // wire.
    let mut foreign = cnp(1)[..48].to_vec();
    foreign[6] = 6;
    see(&mut monitor, START, 0, &foreign);
    let mut wrong = cnp(1);
    *wrong.last_mut().unwrap() ^= 1;
    see(&mut monitor, START + 1, 0, &wrong);
    let findings = monitor.totals().findings;
    assert_eq!(findings, *heard.lock());
    assert!(findings.iter().sum::<u64>() >= 2, "{findings:?}");
    assert!(findings[0] >= 1, "{findings:?}");
}

/// Returns the copy of a packet by the switch with that number, whose own packets are marked CE.
fn copy(switch: u8, header: Erspan, packet: &[u8]) -> Vec<u8> {
    let parts = [
        Part::v4([192, 0, 2, switch].into(), [192, 0, 2, 254].into(), 3),
        Part::Gre {
            checksum: false,
            key: None,
            sequence: (header != Erspan::I).then_some(1),
        },
        Part::Erspan(header),
        Part::Ethernet {
            source: [2; 6],
            destination: [4; 6],
        },
        Part::Payload {
            ether_type: 0x86DD,
            protocol: 41,
            bytes: packet,
        },
    ];
    fcn_wire::compose::packet(&parts, &Profile::DEFAULT).unwrap()
}

#[test]
fn mirrored_packets_count_once_at_their_capture_point() {
    let mut monitor = Monitor::new(Settings::default());
    monitor.know_interface(0, "eth0", "");
    let session = |session, index| {
        Erspan::II(Erspan2 {
            session,
            index,
            ..Erspan2::default()
        })
    };
    let egress = Erspan::III(Erspan3 {
        session: 17,
        direction: Direction::Egress,
        platform: Some([0x0C, 0, 0, 9, 0, 0, 0, 0]),
        ..Erspan3::default()
    });
    // Five capture points on the path, passed twice.
    let places = [
        (1, Erspan::I),
        (1, session(17, 0)),
        (2, session(17, 0)),
        (1, session(17, 3)),
        (1, egress),
    ];
    for n in 0..10 {
        for (hop, (switch, header)) in (0..).zip(places) {
            let at = START + n * MILLISECOND + hop * 2_000;
            for late in [0, 1_000] {
                see(&mut monitor, at + late, 0, &copy(switch, header, &cnp(7)));
            }
            let data = copy(switch, header, &data(n as u32, false));
            see(&mut monitor, at + 1_500, 0, &data);
        }
    }
    let totals = monitor.totals();
    assert_eq!((totals.notified(), totals.data), (20, 10));
    assert_eq!(totals.copies, 120);
    assert_eq!(totals.ce, 0, "a mark on the mirror's own way");
    let names = [
        "eth0/erspan",
        "eth0/erspan 17",
        "eth0/erspan 17 (2)",
        "eth0/erspan 17 index 3",
        "eth0/erspan 17 egress port 9",
    ];
    let row = only(&monitor);
    assert_eq!(
        (row.total, row.interface.unwrap()),
        (20, names.join(",").into())
    );
    assert_eq!(row.path, None, "two at a time look the same");
    let interfaces = monitor.interfaces();
    let seen: Vec<_> = interfaces
        .iter()
        .map(|interface| (&*interface.name, interface.notifications, interface.data))
        .collect();
    assert_eq!(seen[0], ("eth0", 0, 0));
    assert_eq!(seen[1..], names.map(|name| (name, 20, 10)));
    // Interfaces registered after them keep their numbers.
    monitor.know_interface(1, "eth1", "");
    see(&mut monitor, START + 20 * MILLISECOND, 1, &cnp(7));
    assert_eq!(monitor.interfaces()[6].notifications, 1);
    assert_eq!(&*monitor.interfaces()[6].name, "eth1");
}

#[test]
fn paths_of_notifications_have_times() {
    let session = |session| {
        Erspan::II(Erspan2 {
            session,
            ..Erspan2::default()
        })
    };
    // Three switches on the path; copies of the second arrive after those of the third, which
    // misses some.
    let seen = |interval: u64| {
        let mut monitor = Monitor::new(Settings::default());
        for (number, name) in (0..).zip(["leaf1", "leaf2"]) {
            monitor.know_interface(number, name, "");
        }
        let mirror = |number| copy(number as u8, session(number), &cnp(7));
        for n in 0..40 {
            let at = START + n * (interval + 7);
            see(&mut monitor, at, 0, &cnp(7));
            if n % 4 != 0 {
                see(&mut monitor, at + 5_000, 0, &mirror(9));
            }
            see(&mut monitor, at + 8_200 + n % 2, 0, &mirror(4));
        }
        let row = only(&monitor);
        assert_eq!(row.total, 40);
        row.path.unwrap()
    };
    assert_eq!(
        &*seen(MILLISECOND),
        "leaf1 → leaf1/erspan 9 +5.00 µs (30) → leaf1/erspan 4 +3.20 µs (30), paired by nearness, as copies came in"
    );
    // With packets in quick succession, one of the times cannot be determined for most.
    assert_eq!(
        &*seen(10_000),
        "leaf1 → leaf1/erspan 9 +5.00 µs (10) → leaf1/erspan 4 +3.20 µs (30), paired by nearness, as copies came in"
    );
    // Two interfaces with diverging clocks, so that either one seems to be first.
    let mut monitor = Monitor::new(Settings::default());
    for (number, name) in (0..).zip(["leaf1", "leaf2"]) {
        monitor.know_interface(number, name, "");
    }
    for n in 0..20 {
        let at = START + n * MILLISECOND;
        let (ahead, behind) = if n < 10 {
            (at, at + 100 * n)
        } else {
            (at + 100 * n, at)
        };
        see(&mut monitor, ahead, 0, &cnp(7));
        see(&mut monitor, behind, 1, &cnp(7));
    }
    assert_eq!(
        only(&monitor).path.as_deref(),
        Some("leaf1 and leaf2: order unclear (20)")
    );
    // Two interfaces whose time stamps are all whole milliseconds.
    let mut monitor = Monitor::new(Settings::default());
    for (number, name) in (0..).zip(["leaf1", "leaf2"]) {
        monitor.know_interface(number, name, "");
    }
    for n in 0..20 {
        let at = START + n * 3 * MILLISECOND;
        see(&mut monitor, at, 0, &cnp(7));
        see(&mut monitor, at, 1, &cnp(7));
    }
    assert_eq!(
        only(&monitor).path.as_deref(),
        Some("leaf1 and leaf2: order unclear, time stamps of 3.00 ms (20)")
    );
}

#[test]
fn mirror_clocks_are_used_on_request() {
    // Two switches 3 µs apart, with copies of the first 200 µs late, so that they arrive after
    // those of the second.
    let told = |mirror_clock, granularity: Granularity, seconds: Option<u32>| {
        let mut monitor = Monitor::new(Settings {
            mirror_clock,
            ..Settings::default()
        });
        for (number, name) in (0..).zip(["eth0", "eth1"]) {
            monitor.know_interface(number, name, "");
        }
        let unit = match granularity {
            Granularity::Ieee1588 => 1,
            _ => 100,
        };
        for n in 0..20 {
            for (switch, passed, late) in [(2, 3_000, 1_000), (1, 0, 200_000)] {
                let platform = seconds.map(|seconds| {
                    let [a, b, c, d] = seconds.to_be_bytes();
                    [5 << 2, 0, 0, 0, a, b, c, d]
                });
                let at = n * (MILLISECOND + 7) + passed;
                let header = Erspan::III(Erspan3 {
                    session: switch,
                    timestamp: (at / unit) as u32 + 1,
                    granularity,
                    platform,
                    ..Erspan3::default()
                });
                let copy = copy(switch as u8, header, &cnp(7));
                see(&mut monitor, START + at + late, 0, &copy);
            }
        }
        let row = only(&monitor);
        assert_eq!(row.total, 20);
        let doubts = monitor.doubts().join("|");
        (row.path.unwrap().replace("eth0/erspan ", ""), doubts)
    };
    let (first, second) = ("1 ingress", "2 ingress");
    let ptp = told(true, Granularity::Ieee1588, None);
    assert_eq!(
        ptp,
        (
            format!("{first} → {second} +3.00 µs (20), paired by nearness, by IEEE 1588"),
            String::new()
        )
    );
    assert_eq!(told(true, Granularity::Ieee1588, Some(7)), ptp);
    let (path, doubts) = told(true, Granularity::Nanos100, None);
    assert!(path.ends_with("clocks unrelated (20)"), "{path}");
    assert!(doubts.contains("unrelated unless"), "{doubts}");
    // Not requested, and unusable.
    let late = format!("{second} → {first} +196 µs (20), paired by nearness, as copies came in");
    assert_eq!(
        told(false, Granularity::Ieee1588, None),
        (late.clone(), String::new())
    );
    let (path, doubts) = told(true, Granularity::Custom, None);
    assert_eq!(path, late);
    assert!(doubts.contains("configuration"), "{doubts}");
}

#[test]
fn mirrors_without_end_are_bounded() {
    let mut monitor = Monitor::new(Settings::default());
    for index in 0..12_000 {
        let header = Erspan::II(Erspan2 {
            index,
            ..Erspan2::default()
        });
        see(&mut monitor, START, 0, &copy(1, header, &cnp(7)));
    }
    let interfaces = monitor.interfaces();
    assert_eq!(interfaces.len(), 10_001);
    assert_eq!(interfaces[0].notifications, 2_000);
}

#[test]
fn infiniband_has_rows_and_flows() {
    // From one local identifier to another, without a Global Route Header.
    let infiniband = |source: u8, destination: u8, bth: [u8; 12], payload: usize| {
        let mut packet = vec![0, 2, 0, destination, 0, 0, 0, source];
        packet.extend(bth);
        packet.resize(packet.len() + payload + 4, 0);
        packet[5] = (packet.len() / 4) as u8;
        packet.extend([0; 2]);
        packet
    };
    let mut monitor = Monitor::new(Settings::default());
    let see = |monitor: &mut Monitor, at, bytes: &[u8]| {
        let number = monitor.totals().packets + 1;
        monitor.observe(&Packet {
            at,
            bytes,
            wire_len: bytes.len(),
            link: LinkType::InfiniBand,
            interface: 0,
            number,
        })
    };
    for psn in 0..50 {
        let fecn = if psn % 5 == 0 { 0x80 } else { 0 };
        let data = [4, 0, 0xFF, 0xFF, fecn, 0, 0, 7, 0x80, 1, 0, psn];
        let ack = [0x11, 0, 0xFF, 0xFF, 0, 0, 0, 9, 0, 1, 0, psn];
        let at = START + u64::from(psn) * 10_000;
        see(&mut monitor, at, &infiniband(1, 2, data, 64));
        see(&mut monitor, at + 4_000, &infiniband(2, 1, ack, 4));
    }
    let cnp = [0x80, 0, 0xFF, 0xFF, 0x40, 0, 0, 9, 0, 0, 0, 0];
    see(
        &mut monitor,
        START + MILLISECOND,
        &infiniband(2, 1, cnp, 16),
    );
    let row = only(&monitor);
    let lid = |lid| IpAddr::from(Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, lid));
    assert_eq!(
        (row.kind, row.notifier, row.sender),
        (Kind::Cnp, lid(2), Some(lid(1)))
    );
    assert_eq!(
        (row.sender_qp, row.receiver_qp),
        (Some(9), Some(7)),
        "by acknowledgements"
    );
    assert_eq!((row.data_packets, row.ce_share), (Some(50), Some(0.2)));
    assert_eq!((row.dscp, row.data_dscp, row.class), (None, None, None));
    let totals = monitor.totals();
    assert_eq!((totals.notified(), totals.data, totals.other), (1, 50, 50));
    assert_eq!(totals.findings, [0; 3]);
}

/// Returns an sFlow datagram of an agent with a sample of each packet: sampling interval, port,
/// packet.
fn samples(agent: u8, sequence: u32, packets: &[(u32, u32, &[u8])]) -> Vec<u8> {
    let header = DatagramRepr {
        agent: [10, 0, 0, agent].into(),
        sub_agent: 0,
        sequence,
        uptime: 0,
    };
    let mut out = [0; 8_000];
    let mut writer = header.begin(&mut out).unwrap();
    for (rate, port, bytes) in packets {
        let sample = FlowSample {
            rate: *rate,
            source: Source {
                kind: 0,
                index: *port,
            },
            input: Port::from_index(*port),
            ..FlowSample::default()
        };
        let raw = RawRepr {
            protocol: 12,
            frame_length: bytes.len() as u32 + 4,
            stripped: 4,
            header: &bytes[..bytes.len().min(128)],
        };
        writer.push(&sample, &raw).unwrap();
    }
    let len = writer.finish();
    sent_to(6343, &out[..len])
}

fn sent_to(port: u16, payload: &[u8]) -> Vec<u8> {
    let ip = Part::Ipv4 {
        source: [10, 9, 9, 9].into(),
        destination: [10, 9, 9, 1].into(),
        tos: 3,
        ttl: 9,
        id: 0,
        options: &[],
    };
    let parts = [ip, Part::udp(9, port), Part::Bytes(payload)];
    packet(&parts, &Profile::DEFAULT).unwrap()
}

#[test]
fn samples_count_as_packets_and_rows_by_capture_point() {
    let mut monitor = Monitor::new(Settings::default());
    monitor.know_interface(0, "eth0", "");
    let (cnp, data) = (cnp(7), data(1, true));
    for n in 0..20 {
        let at = START + u64::from(n) * 60 * MILLISECOND;
        let all = [
            (1000, 3, &cnp[..]),
            (1000, 4, &data),
            (500, 5, &cnp),
            (1000, 3, &cnp),
        ];
        assert!(see(&mut monitor, at, 0, &samples(1, n, &all)).samples);
        assert_eq!(monitor.of_samples().len(), 4);
        assert!(monitor.of_samples()[1].flow.is_some() && monitor.of_samples()[1].ce);
        see(&mut monitor, at, 0, &samples(2, n, &[(2000, 3, &data)]));
    }
    let totals = monitor.totals();
    assert_eq!(
        (totals.packets, totals.samples, totals.copies),
        (100, 100, 0)
    );
    assert_eq!(
        (totals.notified(), totals.data, totals.ce, totals.other),
        (60, 40, 40, 0)
    );
    let mut rows: Vec<_> = monitor.rows().map(|(_, row)| row).collect();
    rows.sort_by_key(|row| row.total);
    let told = rows.iter().map(|row| {
        let interval = (row.total_low.unwrap(), row.total_high.unwrap());
        (
            row.interface.clone().unwrap(),
            row.total,
            row.sampled.unwrap(),
            interval,
        )
    });
    let told: Vec<_> = told.collect();
    assert_eq!(
        told,
        [
            (
                "eth0/sflow 10.0.0.1 port 5".into(),
                10_000,
                500,
                (6_108, 15_445)
            ),
            (
                "eth0/sflow 10.0.0.1 port 3".into(),
                40_000,
                1_000,
                (28_573, 54_471)
            ),
        ]
    );
    for row in &rows {
        // Twenty in 1.14 s.
        assert!(row.rate_mean.unwrap() > 8_000.0 && row.rate_1s.is_some());
        assert_eq!((row.rate_peak, row.gap_p50, row.measured), (None, None, 0));
        assert_eq!(row.made_by, Some(Maker::Unknown));
        assert!(row.is_estimate("total") && !row.is_estimate("level"));
    }
    let point = monitor.points().next().unwrap();
    assert_eq!(
        (point.total, point.samples, point.rate_peak),
        (60, 60, None)
    );
    let names: Vec<_> = monitor
        .interfaces()
        .iter()
        .map(|one| one.name.to_string())
        .collect();
    assert!(
        names.contains(&"eth0/sflow 10.0.0.2 port 3".to_owned()),
        "{names:?}"
    );
    assert!(found(&monitor).is_empty());
}

#[test]
fn data_is_that_of_the_capture_point_with_most_samples() {
    let mut monitor = Monitor::new(Settings::default());
    let (told, data) = (fast_cnp(SWITCH, 7), data(1, false));
    for n in 0..40 {
        let at = START + u64::from(n) * 50 * MILLISECOND;
        let mut all = vec![(100, 1, &data[..]), (100, 2, &data)];
        if n % 4 == 0 {
            all.extend([(100, 1, &data[..]), (100, 9, &told)]);
        }
        see(&mut monitor, at, 0, &samples(1, n, &all));
    }
    let row = only(&monitor);
    assert_eq!(
        (row.data_packets, row.data_sampled),
        (Some(5_000), Some(100))
    );
    // 25 samples in the last second, each of which stands for 100 packets.
    let octets = data.len() as f64;
    assert_eq!(row.data_rate, Some(25.0 * 100.0 * octets * 8.0));
    assert_eq!(
        (row.verdict, row.evidence),
        (Some(Answer::Unclear), Some(Evidence::Sampled))
    );
    assert_eq!((row.total, row.change), (1_000, None));
}

#[test]
fn few_samples_have_no_rate() {
    let mut monitor = Monitor::new(Settings::default());
    monitor.watch_from(START - 60_000 * MILLISECOND);
    for n in 0..9 {
        let at = START + u64::from(n) * 20 * MILLISECOND;
        see(&mut monitor, at, 0, &samples(1, n, &[(1000, 3, &cnp(7))]));
    }
    monitor.advance(START + 500 * MILLISECOND);
    let row = only(&monitor);
    assert_eq!((row.total, row.rate_mean), (9_000, None));
    assert_eq!(
        (row.rate_now, row.rate_1s, row.rate_10s),
        (None, None, None)
    );
}

#[test]
fn truncated_and_missing_samples_are_reported() {
    let whole = samples(
        1,
        1,
        &[(10, 3, &cnp(7)), (10, 3, &cnp(7)), (10, 3, &cnp(7))],
    );
    // Truncated at every octet.
    for len in 60..whole.len() {
        let mut monitor = Monitor::new(Settings::default());
        monitor.observe(&Packet {
            at: START,
            bytes: &whole[..len],
            wire_len: whole.len(),
            link: LinkType::RawIp,
            interface: 0,
            number: 1,
        });
        let totals = monitor.totals();
        assert!(totals.notified() <= 3 && totals.cut >= 1, "{len}");
        let warned = monitor
            .events()
            .any(|event| event.what == "capture.samples.cut");
        assert!(
            warned && monitor.events().any(|event| event.what == "capture.cut"),
            "{len}"
        );
    }
    let mut monitor = Monitor::new(Settings::default());
    for sequence in [1, 2, 5] {
        see(
            &mut monitor,
            START,
            0,
            &samples(1, sequence, &[(10, 3, &cnp(7))]),
        );
    }
    let lost = monitor
        .events()
        .find(|event| event.what == "capture.samples.lost");
    assert_eq!(
        lost.map(|event| (event.times, event.frame)),
        Some((2, None))
    );
}

#[test]
fn other_datagrams_are_not_taken_for_samples() {
    let packet = samples(1, 1, &[(10, 3, &cnp(7))]);
    let inner = samples(2, 1, &[(10, 3, &packet)]);
    let payload = &packet[28..];
    let wrong = |at: usize, octet: u8| {
        let mut payload = payload.to_vec();
        payload[at] = octet;
        sent_to(6343, &payload)
    };
    let mut chosen = Profile::DEFAULT;
    chosen.set("proxy_cn_port=6343").unwrap();
    for (bytes, profile, why) in [
        (wrong(3, 4), Profile::DEFAULT, "version"),
        (wrong(27, 9), Profile::DEFAULT, "number of samples"),
        (wrong(32, 1), Profile::DEFAULT, "length"),
        (sent_to(6344, payload), Profile::DEFAULT, "port"),
        (packet.clone(), chosen, "a port of ours"),
    ] {
        let mut monitor = Monitor::new(Settings {
            profile,
            ..Settings::default()
        });
        assert!(!see(&mut monitor, START, 0, &bytes).samples, "{why}");
        let totals = monitor.totals();
        assert_eq!(
            (totals.notified(), totals.packets, totals.samples),
            (0, 1, 0),
            "{why}"
        );
    }
    // A sample of a datagram with samples counts as one packet; its samples were sent to another
    // host.
    let mut monitor = Monitor::new(Settings::default());
    assert!(see(&mut monitor, START, 0, &inner).samples);
    let totals = monitor.totals();
    assert_eq!((totals.notified(), totals.packets, totals.other), (0, 1, 1));
}

#[test]
fn a_mirror_may_be_sampled() {
    let mut monitor = Monitor::new(Settings {
        sampled: std::num::NonZeroU32::new(7),
        ..Settings::default()
    });
    monitor.know_interface(0, "eth0", "");
    see(&mut monitor, START, 0, &copy(1, Erspan::I, &cnp(7)));
    let row = only(&monitor);
    assert_eq!((row.total, row.sampled), (7, Some(7)));
    assert_eq!(row.interface.as_deref(), Some("eth0/erspan"));
    // A sample with its own sampling interval is not scaled again.
    see(&mut monitor, START, 0, &samples(1, 1, &[(10, 3, &cnp(8))]));
    let rows: BTreeSet<_> = monitor
        .rows()
        .map(|(_, row)| (row.total, row.sampled))
        .collect();
    assert_eq!(rows, BTreeSet::from([(7, Some(7)), (10, Some(10))]));
}

#[test]
fn packets_with_earlier_stamps_count_at_their_time() {
    // Two interfaces whose clocks are 50 ms apart, packet by packet.
    let mut monitor = Monitor::new(Settings::default());
    monitor.keep_course();
    for n in 0..100 {
        let at = START + n * MILLISECOND;
        see(&mut monitor, at, 0, &cnp(0x12));
        see(&mut monitor, at - 50 * MILLISECOND, 1, &cnp(0x13));
    }
    let first = START - 50 * MILLISECOND;
    let tables = monitor.tables(Wanted {
        qps: true,
        ..Wanted::default()
    });
    assert_eq!(tables.started, Some(first));
    assert_eq!(tables.span(), 149 * MILLISECOND);
    let totals = tables.totals;
    assert_eq!(
        (totals.stamps_back, totals.stamps_back_most),
        (100, 50 * MILLISECOND)
    );
    let firsts: BTreeSet<_> = tables.qps.iter().map(|(_, row)| row.first_seen).collect();
    assert_eq!(firsts, [first, START].into());
    // No step of the charts has packets of another.
    let course = monitor.course().unwrap();
    let all = u64::from(course.traffic.len() as u32) * course.step;
    assert!(course.start <= first && course.start + all > START + 99 * MILLISECOND);
    let steps = course.traffic.iter().zip(0..);
    for (step, number) in steps {
        let from = course.start + number * course.step;
        let until = from + course.step;
        let within = |at: u64| u32::from((from..until).contains(&at));
        let want = (0..100).map(|n| {
            let at = START + n * MILLISECOND;
            within(at) + within(at - 50 * MILLISECOND)
        });
        assert_eq!(step.notifications[0], want.sum::<u32>(), "{number}");
    }
}

#[test]
fn a_clock_may_start_in_1970() {
    let mut monitor = Monitor::new(Settings::default());
    assert_eq!(monitor.tables(Wanted::default()).started, None);
    see(&mut monitor, 0, 0, &cnp(0x12));
    assert_eq!(monitor.tables(Wanted::default()).started, Some(0));
}

#[test]
fn the_rate_of_all_data_is_exact_at_a_packet_a_second() {
    let mut monitor = Monitor::new(Settings::default());
    let mut octets = 0;
    for n in 0..20 {
        let before = monitor.details(&WantedDetails::default()).traffic.steps;
        let before: u64 = before.iter().map(|step| step.octets).sum();
        see(
            &mut monitor,
            START + n * 1_000 * MILLISECOND,
            0,
            &data(n as u32, false),
        );
        let after = monitor.details(&WantedDetails::default()).traffic.steps;
        octets = after.iter().map(|step| step.octets).sum::<u64>() - before;
    }
    let rate = monitor.tables(Wanted::default()).data_rate;
    assert_eq!(rate, Some(octets as f64));
}

#[test]
fn the_marked_share_covers_the_last_second() {
    let mut monitor = Monitor::new(Settings::default());
    let mut shares = Vec::new();
    // A packet every tenth of a second for minutes; all are marked in the second half.
    for n in 0..2_000 {
        see(
            &mut monitor,
            START + n * 100 * MILLISECOND,
            0,
            &data(n as u32, n >= 1_000),
        );
        shares.push(monitor.tables(Wanted::default()).ce_1s);
    }
    assert_eq!(shares[0], None);
    assert_eq!(shares[1..=1_000], [Some(0.0); 1_000]);
    assert_eq!(shares[1_003], Some(0.3));
    assert_eq!(shares[1_010..], [Some(1.0); 990]);
    // No value for a second without packets.
    monitor.advance(START + 300_000 * MILLISECOND);
    assert_eq!(monitor.tables(Wanted::default()).ce_1s, None);
}

/// Returns a data packet from that source port, with a wrong ICRC unless `icrc` is right.
fn data_from(port: u16, psn: u32, icrc: Policy) -> Vec<u8> {
    let udp = Part::Udp {
        source: port,
        destination: 4791,
        checksum: UdpChecksum::Zero,
    };
    let bth = BthRepr::new(Opcode::RC_SEND_ONLY, Qp::truncate(7), psn);
    frame(
        RECEIVER,
        &[udp, Part::Bth(bth), Part::Bytes(&[7; 16])],
        icrc,
    )
}

#[test]
fn what_was_not_read_is_counted_by_reason() {
    let mut monitor = Monitor::new(Settings::default());
    // One packet of its five-tuple, two whose PSNs are consecutive, one with a swapped ICRC.
    for (port, psn, icrc) in [
        (18_515, 5, Policy::Corrupt),
        (4791, 8, Policy::Corrupt),
        (4791, 9, Policy::Zero),
        (2049, 5, Policy::Swapped),
    ] {
        see(&mut monitor, START, 0, &data_from(port, psn, icrc));
    }
    let tables = monitor.tables(Wanted::default());
    let unread: Vec<_> = (tables.unread.iter())
        .map(|record| (record.kind, record.number, record.packets))
        .collect();
    let want = [
        ("roce_unproven", Some(18_515), 1),
        ("roce_unproven", Some(4791), 1),
    ];
    assert_eq!(unread, want);
    assert_eq!((tables.totals.unread, tables.totals.data), (2, 2));
    let rules = [("rocev2.icrc.missing", 1), ("rocev2.icrc.swapped", 1)];
    assert_eq!(found(&monitor), BTreeMap::from(rules));
}

#[test]
fn both_versions_of_roce_between_two_hosts_are_reported_once() {
    let mut monitor = Monitor::new(Settings::default());
    let see = |monitor: &mut Monitor, macs: [u8; 2], ether_type: u16, packet: &[u8]| {
        let [to, from] = macs.map(|last| [2, 0, 0, 0, 0, last]);
        let bytes = [&to[..], &from, &ether_type.to_be_bytes(), packet].concat();
        let number = monitor.totals().packets + 1;
        monitor.observe(&Packet {
            at: START,
            bytes: &bytes,
            wire_len: bytes.len(),
            link: LinkType::Ethernet,
            interface: 0,
            number,
        });
    };
    let v2 = data_from(50_000, 1, GOOD);
    // A Global Route Header instead of IPv6 and UDP.
    let mut v1 = v2.clone();
    v1.drain(40..48);
    let len = (v1.len() - 40) as u16;
    v1[4..6].copy_from_slice(&len.to_be_bytes());
    v1[6] = 0x1B;
    see(&mut monitor, [1, 2], 0x86DD, &v2);
    see(&mut monitor, [1, 2], 0x8915, &v1);
    see(&mut monitor, [1, 3], 0x86DD, &v2);
    assert_eq!(found(&monitor), BTreeMap::new());
    for _ in 0..2 {
        see(&mut monitor, [2, 1], 0x86DD, &v2);
    }
    assert_eq!(
        found(&monitor),
        BTreeMap::from([("rocev2.versions.both", 1)])
    );
    assert_eq!(monitor.totals().roce_v1, 1);
    let pause = [&[0, 1, 0xFF, 0xFF][..], &[0; 42]].concat();
    see(&mut monitor, [1, 2], 0x8808, &pause);
    let totals = monitor.totals();
    assert_eq!((totals.global_pauses, totals.pfc, totals.unread), (1, 0, 0));
    // A packet of which a switch has left the headers is neither data nor malformed.
    let data = totals.data;
    see(&mut monitor, [1, 2], 0x86DD, &v2[..60]);
    let totals = monitor.totals();
    assert_eq!((totals.trimmed, totals.data), (1, data));
    assert_eq!((totals.undecodable, totals.incomplete), (0, 0));
}

#[test]
fn trimmed_packets_are_counted_by_the_way_they_go() {
    let mut monitor = Monitor::new(Settings::default());
    let data = data(7_000, false);
    let mut forward = data[..60].to_vec();
    let mut back = forward.clone();
    let (sender, receiver) = (data[8..24].to_vec(), data[24..40].to_vec());
    back[8..24].copy_from_slice(&receiver);
    back[24..40].copy_from_slice(&sender);
    // Before any data of the flow.
    see(&mut monitor, START, 0, &forward);
    see(&mut monitor, START + 1, 0, &data);
    for number in 2..5 {
        see(&mut monitor, START + number, 0, &forward);
    }
    see(&mut monitor, START + 5, 0, &back);
    // Another connection's PSN.
    forward[57] ^= 0x80;
    see(&mut monitor, START + 6, 0, &forward);
    let tables = monitor.tables(Wanted::default());
    let [flow] = tables.trimmed.as_slice() else {
        panic!("{:?}", tables.trimmed);
    };
    assert_eq!(
        (flow.sender, flow.receiver),
        (SENDER.into(), RECEIVER.into())
    );
    assert_eq!((flow.to_receiver, flow.to_source, flow.unknown), (3, 1, 2));
    assert_eq!(tables.totals.trimmed, 6);
}

#[test]
fn a_storm_of_pauses_is_reported_once() {
    let mut monitor = Monitor::new(Settings::default());
    let to = [0x01, 0x80, 0xC2, 0, 0, 1];
    let pause = PfcRepr::for_class(3, u16::MAX).unwrap().to_bytes();
    let from = [2, 0, 0, 0, 0, 0x77];
    let bytes = [&to[..], &from, &[0x88, 0x08], &pause, &[0; 26]].concat();
    for number in 1..=1_000 {
        monitor.observe(&Packet {
            at: START + number * 300_000,
            bytes: &bytes,
            wire_len: bytes.len(),
            link: LinkType::Ethernet,
            interface: 0,
            number,
        });
    }
    let tables = monitor.tables(Wanted::ALL);
    let [record] = tables.pauses.as_slice() else {
        panic!("{:?}", tables.pauses);
    };
    assert_eq!((&*record.mac, record.class), ("02:00:00:00:00:77", Some(3)));
    assert_eq!(
        (record.frames, record.episodes, record.storm),
        (1_000, 1, true)
    );
    assert_eq!((record.paused, record.share), (999 * 300_000, Some(1.0)));
    let storms = tables
        .events
        .iter()
        .filter(|event| event.what == "pause.storm");
    assert_eq!(storms.map(|event| event.times).sum::<u64>(), 1);
}

#[test]
fn a_receiver_that_answers_no_mark_is_reported_once() {
    let mut monitor = Monitor::new(Settings::default());
    for number in 0..100 {
        see(
            &mut monitor,
            START + u64::from(number) * 60_000,
            0,
            &data(number, true),
        );
    }
    let silent = |monitor: &Monitor| {
        let tables = monitor.tables(Wanted::ALL);
        let events = tables
            .events
            .iter()
            .filter(|event| event.what == "receiver.silent");
        (tables.receivers[0].silent, events.count())
    };
    assert_eq!(
        silent(&monitor),
        (false, 0),
        "only one direction was captured"
    );
    let at = START + 100 * 60_000;
    let bth = BthRepr::new(Opcode::RC_ACKNOWLEDGE, Qp::truncate(0x77), 99);
    let ack = [UDP, Part::Bth(bth), Part::Bytes(&[0; 4])];
    see(&mut monitor, at, 0, &frame(RECEIVER, &ack, GOOD));
    see(&mut monitor, at + 1, 0, &data(101, true));
    see(&mut monitor, at + 2, 0, &data(102, true));
    assert_eq!(silent(&monitor), (true, 1));
    let tables = monitor.tables(Wanted::ALL);
    let receiver = &tables.receivers[0];
    assert_eq!((receiver.marked, receiver.expected), (102, 101));
}

#[test]
fn marks_after_the_first_capture_point_count_for_the_receiver() {
    let mut monitor = Monitor::new(Settings::default());
    let bth = BthRepr::new(Opcode::RC_ACKNOWLEDGE, Qp::truncate(0x77), 99);
    let ack = [UDP, Part::Bth(bth), Part::Bytes(&[0; 4])];
    see(&mut monitor, START, 1, &frame(RECEIVER, &ack, GOOD));
    for number in 0..100 {
        let at = START + 1_000 + u64::from(number) * 60_000;
        see(&mut monitor, at, 0, &data(number, false));
        see(&mut monitor, at + 5_000, 1, &data(number, number % 2 == 1));
    }
    let tables = monitor.tables(Wanted::ALL);
    assert_eq!(tables.totals.data, 100);
    let receiver = &tables.receivers[0];
    assert_eq!((receiver.marked, receiver.expected), (50, 50));
}

/// A packet of a connection between [`SENDER`] and [`RECEIVER`], in either direction.
fn of_connection(source: Ipv6Addr, ecn: u8, header: BthRepr, syndrome: Option<u8>) -> Vec<u8> {
    let destination = if source == SENDER { RECEIVER } else { SENDER };
    let ip = Part::Ipv6 {
        source,
        destination,
        traffic_class: 26 << 2 | ecn,
        flow_label: 0,
        hop_limit: 64,
    };
    let body = match syndrome {
        Some(syndrome) => Aeth { syndrome, msn: 0 }.to_bytes().to_vec(),
        None => vec![7; 64],
    };
    packet(
        &[
            ip,
            UDP,
            Part::Bth(header),
            Part::Bytes(&body),
            Part::Icrc(GOOD),
        ],
        &Profile::DEFAULT,
    )
    .unwrap()
}

#[test]
fn every_flow_has_a_row_with_its_acknowledgements_and_stalls() {
    let mut monitor = Monitor::new(Settings::default());
    for message in Setup::v6().messages() {
        see(&mut monitor, START, 0, &message);
    }
    let data = |psn| {
        let header = BthRepr {
            ack_request: true,
            ..BthRepr::new(Opcode::RC_SEND_ONLY, Qp::truncate(0x222), psn)
        };
        of_connection(SENDER, 0, header, None)
    };
    let ack = |psn, syndrome| {
        let header = BthRepr::new(Opcode::RC_ACKNOWLEDGE, Qp::truncate(0x111), psn);
        of_connection(RECEIVER, 2, header, Some(syndrome))
    };
    let mut at = START;
    for psn in 0..10 {
        see(&mut monitor, at, 0, &data(psn));
        if psn % 5 == 4 {
            see(&mut monitor, at + 2_000, 0, &ack(psn, 0x2C));
            at += 2_000 + 10 * MILLISECOND;
            see(&mut monitor, at, 0, &data(psn));
        }
        see(&mut monitor, at + 3_000, 0, &ack(psn, 0x1F));
        at += 10_000;
    }
    let flows: Vec<_> = monitor.flows().collect();
    let [flow] = &flows[..] else {
        panic!("{flows:?}");
    };
    assert_eq!(
        (flow.sender, flow.receiver),
        (SENDER.into(), RECEIVER.into())
    );
    let qps = (flow.receiver_qp, flow.sender_qp, flow.sender_qp_from);
    assert_eq!(qps, (0x222, Some(0x111), Some(Resolved::Cm)));
    assert_eq!((flow.data_packets, flow.resent, flow.late), (12, 2, 0));
    assert_eq!((flow.acks, flow.rnr_naks, flow.nak_sequence), (10, 2, 0));
    assert_eq!(flow.stall_max, Some(10 * MILLISECOND));
    assert_eq!((flow.stall_after, flow.stalls), (Some(Cause::RnrNak), 2));
    assert_eq!((flow.rtt_min, flow.tries), (Some(3_000), None));
    assert_eq!((flow.ecn, flow.not_ect), (Some(Ecn::NotCapable), 12));
    assert_eq!((flow.data_dscp, flow.ack_dscp), (Some(26), Some(26)));
    assert_eq!((flow.verdict, flow.exhausted), (None, false));
    let events: Vec<_> = monitor.events().map(|event| event.what).collect();
    assert_eq!(events, ["data.not_ect", "data.stalled"]);
    see(&mut monitor, at, 0, &cnp(0x111));
    assert_eq!(
        monitor.flows().next().unwrap().verdict,
        Some(Answer::Unclear)
    );
}
