//! Flows by hand-checked cases.

use super::flow::Effect;
use super::*;
use fcn_observe::data::Sequence;
use fcn_observe::sightings::{Look, Place, Sightings};
use fcn_observe::{Answer, Sequenced};
use fcn_wire::{Qp, Rule};
use std::net::IpAddr;

const MS: u64 = 1_000_000;
const START: u64 = 1_767_225_600_000_000_000;

fn key(sender: u8, qp: u32) -> FlowKey {
    FlowKey {
        sender: IpAddr::from([10, 0, 1, sender]),
        receiver: IpAddr::from([10, 0, 2, 1]),
        receiver_qp: Qp::truncate(qp),
    }
}

fn look(ce: bool) -> Look {
    Look {
        at: START,
        frame: 1,
        place: Place::default(),
        ce,
    }
}

/// A switch's Fast CNP.
const FAST: Notified = Notified {
    place: Place::new(0),
    fast: true,
    several: false,
    answers: false,
    missed: None,
};

fn data(key: FlowKey) -> Data {
    Data {
        key,
        look: look(false),
        several: false,
        earlier: None,
        ip_octets: 1000,
        class: None,
        entropy: 0,
        ends_message: false,
        sequence: Sequence::Connection(7),
        source_port: 0,
        able: false,
    }
}

fn seen(flows: &mut Flows, at: u64, data: &Data) -> Effect {
    data.flow(at, flows).0.data(at, data)
}

#[test]
fn a_flow_says_what_it_carries() {
    let mut flows = Flows::new(10);
    assert!(flows.get(&key(1, 2)).is_none());
    for i in 0..40 {
        let data = Data {
            look: look(i % 4 == 0),
            sequence: Sequence::Connection(i),
            ..data(key(1, 2))
        };
        assert_eq!(
            seen(&mut flows, START + u64::from(i) * 50 * MS, &data).rule,
            None
        );
    }
    let flow = flows.get(&key(1, 2)).unwrap();
    assert_eq!(
        (flow.packets, flow.octets, flow.highest_psn()),
        (40, 40_000, Some(39))
    );
    assert_eq!(flow.ce_share(), Some(0.25));
    assert_eq!((flow.first, flow.last), (START, START + 1950 * MS));
    // Two packets in each of ten steps; then five steps of them; then none.
    for (now, want) in [
        (1950, 160_000.0),
        (2000, 160_000.0),
        (2599, 80_000.0),
        (3000, 0.0),
    ] {
        let rate = flow.data_rate(START + now * MS, START);
        assert_eq!(rate, Some(want), "{now}");
    }
    let series: u32 = flow.series.points(0).map(|(_, octets)| octets).sum();
    assert_eq!(u64::from(series), 40_000 / PART);
}

/// A QP that sends and is read from has two counts of PSNs on its way.
#[test]
fn answers_to_reads_count_apart_from_what_is_sent() {
    let mut flows = Flows::new(10);
    let mut back = |sequence| {
        let data = Data {
            sequence,
            ..data(key(1, 1))
        };
        seen(&mut flows, 0, &data).back
    };
    let (own, answer) = (Sequence::Connection, Sequence::Answer);
    let pairs = [100, 101, 102, 102].map(|psn| [back(own(psn)), back(answer(psn + 0x7F_0000))]);
    assert_eq!(pairs, [[false; 2], [false; 2], [false; 2], [true; 2]]);
    assert!(!back(own(103)));
    let mut flows = Flows::new(10);
    let answers = Data {
        sequence: answer(7),
        ..data(key(1, 1))
    };
    seen(&mut flows, 0, &answers);
    assert_eq!(flows.get(&key(1, 1)).unwrap().highest_psn(), None);
}

#[test]
fn a_time_that_goes_back_counts_as_the_last() {
    let mut flows = Flows::new(10);
    for at in [5 * MS, 0, 3 * MS] {
        seen(&mut flows, START + at, &data(key(1, 2)));
    }
    let flow = flows.get(&key(1, 2)).unwrap();
    assert_eq!((flow.packets, flow.last), (3, START + 5 * MS));
    // Three packets in a tenth of a second tell no rate; in a second they do.
    assert_eq!(flow.data_rate(START + 100 * MS, START), None);
    let rate = flow.data_rate(START + 1_000 * MS, START);
    assert_eq!(rate, Some(24_000.0));
}

#[test]
fn marks_beside_a_switchs_fast_cnp_are_told() {
    let able = Data {
        look: look(true),
        able: true,
        ..data(key(1, 2))
    };
    let mut flows = Flows::new(10);
    assert_eq!(seen(&mut flows, START, &able).rule, None, "no Fast CNP");
    flows
        .get_mut(&key(1, 2))
        .unwrap()
        .notified(START, &Notified::default());
    assert_eq!(
        seen(&mut flows, START, &able).rule,
        None,
        "none from a switch"
    );
    let unclear = Some(Rule::FastCnpMarkUnclear);
    assert_eq!(
        flows
            .get_mut(&key(1, 2))
            .unwrap()
            .notified(START + MS, &FAST),
        unclear
    );
    assert_eq!(seen(&mut flows, START + MS, &able).rule, unclear);
    let other = Data {
        key: key(1, 3),
        ..able
    };
    assert_eq!(seen(&mut flows, START + 2 * MS, &other).rule, None);
    assert_eq!(
        flows.get(&key(1, 2)).unwrap().seen(true).unanswered,
        Some(START + MS)
    );
}

#[test]
fn a_packet_seen_again_counts_for_its_mark_alone() {
    let mut flows = Flows::new(10);
    let first = data(key(1, 2));
    seen(&mut flows, START, &first);
    for ce in [true, false, true] {
        let earlier = flows.get(&key(1, 2)).unwrap().ce_share() == Some(1.0);
        let again = Data {
            look: look(ce),
            several: true,
            earlier: Some(look(earlier)),
            ..first
        };
        seen(&mut flows, START + 1, &again);
    }
    let flow = flows.get(&key(1, 2)).unwrap();
    assert_eq!((flow.packets, flow.octets), (1, 1000));
    assert_eq!(flow.ce_share(), Some(1.0));
}

#[test]
fn a_flow_that_obeys_is_told_apart_from_one_that_does_not() {
    let mut flows = Flows::new(10);
    let (good, bad) = (key(1, 2), key(2, 2));
    let mut psns = [0; 2];
    // Told each 20 ms, of which the good one is slower for ten.
    for step in 0..16_000 {
        let at = START + step * MS / 40;
        if step % 800 == 799 {
            flows.get_mut(&good).unwrap().notified(at, &FAST);
            flows.get_mut(&bad).unwrap().notified(at, &FAST);
        }
        let mut send = |number: usize, key| {
            let sequence = Sequence::Connection(psns[number]);
            psns[number] += 1;
            let data = Data {
                sequence,
                ..data(key)
            };
            seen(&mut flows, at, &data);
        };
        if step < 799 || step % 800 >= 400 || step % 2 == 0 {
            send(0, good);
        }
        send(1, bad);
    }
    let judged = |key| {
        let flow = flows.get(key).unwrap();
        let verdict = flow.verdict(&Sightings::default());
        let cents = verdict
            .evidence
            .change()
            .map(|change| (change * 100.0).round());
        (cents, verdict.measured, verdict.answer)
    };
    assert_eq!(judged(&good), (Some(-47.0), 19, Answer::Obeys));
    assert_eq!(judged(&bad), (None, 19, Answer::DoesNotObey));
}

#[test]
fn a_flow_is_small() {
    // With its key, two links, and the time it was touched.
    let all = size_of::<Flow>() + size_of::<FlowKey>() + 8 + 4 * 4;
    assert!(all <= 968, "{all}");
    // Beside it, of a flow that was notified about, 2.8 KB more.
}
