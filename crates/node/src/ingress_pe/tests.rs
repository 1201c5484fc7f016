//! Tests of the ingress PE: lists of messages, and the exact answer to each.

use super::*;
use crate::outgoing::DataPacketContext;
use crate::testing::{
    RECEIVER, RECEIVER4, SENDER, SENDER4, SWITCH, Setup, data, mutated, with_frame,
};
use fcn_wire::{Opcode, Profile};
use proptest::prelude::*;
use std::collections::HashSet;

const PE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xee, 0, 0, 0, 0, 1);

/// Label of the flow to QP 0x222.
const KNOWN: u32 = 771_012;

fn pe(set: impl FnOnce(&mut Config)) -> IngressPe {
    let mut config = Config::new(PE);
    config.enabled = true;
    set(&mut config);
    let mut pe = IngressPe::new(config);
    for setup in [Setup::v6(), Setup::v4()] {
        for message in setup.messages() {
            with_frame(&message, |frame| pe.qps.learn(Time::default(), frame));
        }
    }
    pe
}

fn label6(pe: &mut IngressPe, qp: u32) -> u32 {
    pe.label(SENDER.into(), RECEIVER.into(), Qp::truncate(qp))
}

fn fcn(ingress: Ipv6Addr, flow_label: u32) -> Vec<u8> {
    fcn_of_level(ingress, flow_label, 3)
}

fn fcn_of_level(ingress: Ipv6Addr, flow_label: u32, level: u8) -> Vec<u8> {
    let outgoing = OutgoingNotification::WanFcn {
        source: SWITCH,
        ingress,
        flow_label,
        level,
        copy_flow_label: true,
    };
    let mut out = [0; 60];
    let (len, _) = outgoing
        .emit(&DataPacketContext::default(), &Profile::DEFAULT, &mut out)
        .unwrap();
    out[..len].to_vec()
}

fn ask(pe: &mut IngressPe, micros: u64, bytes: &[u8]) -> Result<OutgoingNotification, Refused> {
    let now = Time::from_nanos(micros * 1000);
    with_frame(bytes, |frame| pe.on_message(now, frame))
}

#[test]
fn an_fcn_becomes_a_cnp_in_the_receivers_name() {
    let mut pe = pe(|_| {});
    let v6 = label6(&mut pe, 0x222);
    let v4 = pe.label(SENDER4.into(), RECEIVER4.into(), Qp::truncate(0x222));
    let back = pe.label(RECEIVER.into(), SENDER.into(), Qp::truncate(0x111));
    let cnp = |source: IpAddr, destination: IpAddr, qp| {
        Ok(OutgoingNotification::Cnp {
            source,
            destination,
            qp: Qp::truncate(qp),
        })
    };
    for (label, want) in [
        (v6, cnp(RECEIVER.into(), SENDER.into(), 0x111)),
        (v4, cnp(RECEIVER4.into(), SENDER4.into(), 0x111)),
        (back, cnp(SENDER.into(), RECEIVER.into(), 0x222)),
    ] {
        assert_eq!(ask(&mut pe, 0, &fcn(PE, label)), want);
    }
    assert_eq!(
        pe.counters(),
        &Counters {
            cnps: 3,
            labelled: 3,
            ..Counters::default()
        }
    );
}

#[test]
fn refusals_are_counted_by_reason() {
    let mut pe = pe(|config| {
        config.congestion_points = vec![Prefix::host(SWITCH.into())];
    });
    let (known, unconnected) = (label6(&mut pe, 0x222), label6(&mut pe, 0x999));
    let mut stranger = fcn(PE, known);
    // Swaps two words of the address, so that the checksum stays correct.
    stranger[8..12].rotate_left(2);
    let unused = (1..)
        .find(|label| *label != known && *label != unconnected)
        .unwrap();
    let steps = [
        (
            data(
                SWITCH.into(),
                PE.into(),
                Opcode::RC_SEND_ONLY,
                Qp::truncate(5),
            ),
            Refused::NotANotification,
        ),
        (fcn(SENDER, known), Refused::NotForUs),
        (stranger, Refused::NotAllowed),
        (fcn(PE, unused), Refused::UnknownLabel),
        (fcn(PE, 0), Refused::UnknownLabel),
        (fcn(PE, unconnected), Refused::UnknownConnection),
    ];
    for (message, want) in steps {
        assert_eq!(ask(&mut pe, 0, &message), Err(want));
    }
    assert!(ask(&mut pe, 0, &fcn(PE, known)).is_ok());
    assert_eq!(ask(&mut pe, 49, &fcn(PE, known)), Err(Refused::TooSoon));
    assert!(ask(&mut pe, 50, &fcn(PE, known)).is_ok());
    let want = Counters {
        cnps: 2,
        inferred: 0,
        labelled: 2,
        evicted: 0,
        disabled: 0,
        not_a_notification: 1,
        not_for_us: 1,
        not_allowed: 1,
        too_many: 0,
        unknown_label: 2,
        unknown_connection: 1,
        too_soon: 1,
    };
    assert_eq!(pe.counters(), &want);
}

#[test]
fn no_more_fcns_are_read_than_the_limit_lets_in() {
    let mut pe = pe(|config| {
        config.limits.per_second = 1000;
        config.limits.burst = 2;
        config.limits.interval = Default::default();
        config.congestion_points = vec![Prefix::host(SWITCH.into())];
    });
    let known = label6(&mut pe, 0x222);
    let mut stranger = fcn(PE, known);
    // Swaps two words of the address, so that the checksum stays correct.
    stranger[8..12].rotate_left(2);
    // A node that may not notify does not use up the limit.
    for (micros, message, want) in [
        (0, &stranger, Some(Refused::NotAllowed)),
        (0, &fcn(PE, known), None),
        (0, &fcn(PE, known), None),
        (999, &fcn(PE, known), Some(Refused::TooMany)),
        (1000, &fcn(PE, known), None),
    ] {
        assert_eq!(ask(&mut pe, micros, message).err(), want);
    }
    assert_eq!((pe.counters().cnps, pe.counters().too_many), (3, 1));
}

#[test]
fn an_fcn_without_a_level_is_answered() {
    let mut pe = pe(|_| {});
    let label = label6(&mut pe, 0x222);
    assert!(ask(&mut pe, 0, &fcn_of_level(PE, label, 0)).is_ok());
}

#[test]
fn qps_are_learnt_from_acknowledgements_and_configuration() {
    let flow = |qp| FlowKey {
        sender: SENDER.into(),
        receiver: RECEIVER.into(),
        receiver_qp: Qp::truncate(qp),
    };
    let mut pe = pe(|config| config.qps = vec![(flow(0x888), Qp::truncate(0x887))]);
    for (qp, want, inferred) in [(0x888, 0x887, 0), (0x999, 0x998, 1)] {
        for psn in [50_000, 50_001] {
            pe.qps.data(Time::default(), flow(qp), 0, psn);
            let to = (RECEIVER.into(), SENDER.into(), Qp::truncate(0x998));
            pe.qps.acknowledged(Time::default(), to, 0, psn);
        }
        let label = label6(&mut pe, qp);
        let answer = ask(&mut pe, 0, &fcn(PE, label));
        assert!(
            matches!(answer, Ok(OutgoingNotification::Cnp { qp, .. }) if qp == Qp::truncate(want)),
            "{answer:?}"
        );
        assert_eq!(pe.counters().inferred, inferred);
    }
}

#[test]
fn by_default_it_is_off() {
    let mut pe = pe(|config| config.enabled = Config::new(PE).enabled);
    let label = label6(&mut pe, 0x222);
    assert_eq!(ask(&mut pe, 0, &fcn(PE, label)), Err(Refused::Disabled));
    assert_eq!(pe.counters().disabled, 1);
}

#[test]
fn labels_are_stable_and_machine_independent() {
    let mut first = pe(|_| {});
    let label = label6(&mut first, 0x222);
    assert_eq!(label6(&mut first, 0x222), label);
    assert_eq!(label6(&mut pe(|_| {}), 0x222), label);
    assert_eq!(first.counters().labelled, 1);
    // Another hash would move every flow to another path.
    assert_eq!(label, KNOWN);
}

#[test]
fn when_full_the_flow_labelled_longest_ago_loses_its_label() {
    let mut pe = pe(|config| config.flows = 2);
    let one = label6(&mut pe, 0x222);
    label6(&mut pe, 2);
    // Flow 1 is used once more, so flow 2 is evicted.
    label6(&mut pe, 0x222);
    label6(&mut pe, 3);
    assert_eq!(pe.counters().evicted, 1);
    assert!(ask(&mut pe, 0, &fcn(PE, one)).is_ok());
    label6(&mut pe, 4);
    label6(&mut pe, 5);
    assert_eq!(ask(&mut pe, 100, &fcn(PE, one)), Err(Refused::UnknownLabel));
    assert_eq!(pe.labels.by_label.len(), 2);
}

#[test]
fn half_of_all_labels_are_distinct_and_never_0() {
    let mut labels = Labels::new(MAX_FLOWS);
    let mut seen = HashSet::new();
    for qp in 0..60_000 {
        let flow = FlowKey {
            sender: SENDER.into(),
            receiver: RECEIVER.into(),
            receiver_qp: Qp::truncate(qp),
        };
        let (label, evicted) = labels.assign(flow);
        assert!((1..=MAX_FLOW_LABEL).contains(&label) && seen.insert(label) && !evicted);
    }
}

#[test]
fn a_label_in_use_is_skipped() {
    let flow = FlowKey {
        sender: SENDER.into(),
        receiver: RECEIVER.into(),
        receiver_qp: Qp::truncate(9),
    };
    let other = FlowKey {
        receiver_qp: Qp::truncate(10),
        ..flow
    };
    let mut labels = Labels::new(8);
    let wanted = hash(&flow) + 1;
    labels.by_label.insert(wanted, other);
    assert_eq!(labels.assign(flow), (wanted % MAX_FLOW_LABEL + 1, false));
}

proptest! {
    #[test]
    fn hostile_messages_cause_no_other_cnp(bytes in mutated(vec![fcn(PE, KNOWN), Setup::v6().request()]), raw in proptest::collection::vec(any::<u8>(), 0..100)) {
        let mut pe = pe(|_| {});
        label6(&mut pe, 0x222);
        let _ = ask(&mut pe, 0, &raw);
        if let Ok(outgoing) = ask(&mut pe, 0, &bytes) {
            let want = OutgoingNotification::Cnp { source: RECEIVER.into(), destination: SENDER.into(), qp: Qp::truncate(0x111) };
            prop_assert_eq!(outgoing, want);
            let word = u32::from_be_bytes(*bytes[48..].first_chunk().unwrap());
            prop_assert_eq!(word >> 12, KNOWN);
        }
    }
}
