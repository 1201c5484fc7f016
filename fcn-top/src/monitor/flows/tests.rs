//! Volumes in hand-checked cases.

use super::flow::Effect;
use super::*;
use fcn_observe::correlator::{Data, Flow};
use fcn_observe::data::Sequence;
use fcn_observe::sightings::{CapturePoint, Sighting};
use fcn_observe::{Ecn, FlowKey, Order};
use fcn_wire::Qp;
use std::net::IpAddr;

const MS: u64 = 1_000_000;
const START: u64 = 1_767_225_600_000_000_000;

/// Returns a new data packet of 1,000 octets.
fn data(at: u64, ce: bool) -> Data {
    Data {
        key: FlowKey {
            sender: IpAddr::from([10, 0, 1, 1]),
            receiver: IpAddr::from([10, 0, 2, 1]),
            receiver_qp: Qp::truncate(2),
        },
        sighting: Sighting {
            at,
            frame: 1,
            point: CapturePoint::default(),
            ce,
        },
        earlier: None,
        octets: 1000,
        class: None,
        entropy: 0,
        ends_message: false,
        asks_for_ack: false,
        silent: false,
        ecn: Ecn::Ect0,
        sequence: Sequence::Connection(7),
        source_port: 0,
        able: false,
        order: Some(Order::New),
        new_mark: ce,
        rule: None,
        is_resent: false,
        is_copy: false,
        reconnects: None,
        incident: None,
    }
}

#[test]
fn a_volume_counts_the_data_of_a_flow() {
    let mut flow = Volume::default();
    for i in 0..40 {
        flow.data(&data(START + i * 50 * MS, i % 4 == 0));
    }
    assert_eq!((flow.packets, flow.octets), (40, 40_000));
    assert_eq!(flow.ce_share(), Some(0.25));
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

/// A QP that both sends and is read from has two sequences of PSNs on its path.
#[test]
fn read_responses_have_their_own_psns() {
    let mut flow = Volume::default();
    let mut back = |sequence| {
        let data = Data {
            sequence,
            ..data(0, false)
        };
        flow.data(&data).back
    };
    let (own, answer) = (Sequence::Connection, Sequence::Answer);
    let pairs = [100, 101, 102, 102].map(|psn| [back(own(psn)), back(answer(psn + 0x7F_0000))]);
    assert_eq!(pairs, [[false; 2], [false; 2], [false; 2], [true; 2]]);
    assert!(!back(own(103)));
}

#[test]
fn few_packets_in_a_short_time_have_no_rate() {
    let mut flow = Volume::default();
    for at in [5 * MS, 0, 3 * MS] {
        flow.data(&data(START + at, false));
    }
    assert_eq!(flow.packets, 3);
    // Three packets in a tenth of a second have no rate; in a second they do.
    assert_eq!(flow.data_rate(START + 100 * MS, START), None);
    let rate = flow.data_rate(START + 1_000 * MS, START);
    assert_eq!(rate, Some(24_000.0));
}

#[test]
fn only_the_mark_of_a_copy_counts() {
    let mut flow = Volume::default();
    flow.data(&data(START, false));
    for new_mark in [true, false] {
        let again = Data {
            order: None,
            new_mark,
            ..data(START + 1, true)
        };
        assert_eq!(flow.data(&again), Effect::default());
    }
    assert_eq!((flow.packets, flow.octets), (1, 1000));
    assert_eq!(flow.ce_share(), Some(1.0));
}

#[test]
fn a_flow_is_small() {
    // With its key, two links, and the time of its last use.
    let all = size_of::<Flow<Volume>>() + size_of::<FlowKey>() + 8 + 4 * 4;
    assert!(all <= 1_264, "{all}");
    // Beside it, 2.8 KB more for a flow with notifications.
}
