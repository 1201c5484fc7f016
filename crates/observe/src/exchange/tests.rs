use super::*;
use fcn_wire::bth::AckKind as K;
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn sent(at: u64, psn: u32, order: Order) -> Sent {
    Sent {
        at,
        sequence: Sequence::Connection(psn),
        order,
        asks_for_ack: true,
        ecn: Some(Ecn::Ect0),
    }
}

const fn reply(at: u64, psn: u32, kind: K) -> Reply {
    Reply {
        at,
        psn,
        kind,
        is_copy: false,
        beside_data: true,
    }
}

/// Processes data and acknowledgements in this order; returns the incidents, of the silences the
/// first.
fn run(exchange: &mut Exchange, steps: &[(u64, u32, Result<Order, K>)]) -> Vec<Incident> {
    let mut incidents = Vec::new();
    for &(at, psn, step) in steps {
        match step {
            Ok(order) => incidents.extend(exchange.data(&sent(at, psn, order), |_| None)),
            Err(kind) => {
                exchange.acknowledged(&reply(at, psn, kind), None);
            }
        }
    }
    let is_later = |incident: &Incident| {
        matches!(
            incident,
            Incident::Silence {
                is_first: false,
                ..
            }
        )
    };
    incidents.retain(|incident| !is_later(incident));
    incidents
}

const fn silent_for(cause: Cause, length: u64) -> Incident {
    Incident::Silence {
        cause,
        length,
        is_first: true,
    }
}

#[test]
fn a_nak_before_the_flow_was_known_causes_the_silence() {
    let mut flow = Exchange::default();
    let early = |psn| {
        (psn == 0).then_some(EarlyNak {
            at: 2_000,
            cause: Cause::RnrNak,
        })
    };
    let silent = |flow: &mut Exchange, at, psn| flow.data(&sent(at, psn, Order::Copied), early);
    assert_eq!(flow.data(&sent(0, 0, Order::New), early), None);
    let cause = silent_for(Cause::RnrNak, 10 * MS - 2_000);
    assert_eq!(silent(&mut flow, 10 * MS, 0), Some(cause));
    assert_eq!(flow.silences(Cause::Unanswered).count, 0);
    // Another connection's, long before.
    let mut flow = Exchange::default();
    flow.data(&sent(60_000 * MS, 0, Order::New), early);
    let cause = silent_for(Cause::Unanswered, 10 * MS);
    assert_eq!(silent(&mut flow, 60_010 * MS, 0), Some(cause));
}

#[test]
fn the_next_connection_counts_on() {
    let mut flow = Exchange::default();
    let steps = [
        (0, 7, Ok(Order::New)),
        (2_000, 7, Err(K::RnrNak)),
        (50 * MS, 7, Ok(Order::Copied)),
        (51 * MS, 7, Err(K::Ack)),
    ];
    run(&mut flow, &steps);
    let mut next = flow.succeeded();
    assert!(!next.has_answered(7) && next.lacks_acks());
    run(&mut next, &steps);
    assert_eq!((next.acks(K::RnrNak), next.acks(K::Ack)), (2, 2));
    assert_eq!((next.resent, next.silences(Cause::RnrNak).count), (2, 2));
}

#[test]
fn a_receiver_that_is_not_ready_causes_silences() {
    let mut flow = Exchange::default();
    let wait = 655 * MS;
    let incidents = run(
        &mut flow,
        &[
            (0, 7, Ok(Order::New)),
            (2_000, 7, Err(K::RnrNak)),
            (2_000 + wait, 7, Ok(Order::Copied)),
            (4_000 + wait, 7, Err(K::RnrNak)),
            (4_000 + 2 * wait, 7, Ok(Order::Copied)),
            (5_000 + 2 * wait, 7, Err(K::Ack)),
            (6_000 + 2 * wait, 8, Ok(Order::New)),
        ],
    );
    assert_eq!(incidents, [silent_for(Cause::RnrNak, wait)]);
    assert_eq!((flow.acks(K::RnrNak), flow.acks(K::Ack)), (2, 1));
    let silences = Silences {
        total: 2 * wait,
        longest: wait,
        count: 2,
    };
    assert_eq!(flow.silences(Cause::RnrNak), silences);
    assert_eq!(flow.longest_silence(), Some((Cause::RnrNak, wait)));
    assert_eq!((flow.resent, flow.late), (2, 0));
    assert_eq!(flow.unanswered_tries(), None);
}

#[test]
fn a_packet_sent_eight_times_has_exhausted_retries() {
    let mut flow = Exchange::default();
    let timer = 268 * MS;
    let mut incidents = run(&mut flow, &[(0, 77, Ok(Order::New))]);
    for again in 1..8 {
        assert!(!flow.has_exhausted_retries(again * timer));
        incidents.extend(run(&mut flow, &[(again * timer, 77, Ok(Order::Copied))]));
        // After three transmissions, only silence shows that none follows.
        let later = flow.has_exhausted_retries((again + 2) * timer);
        assert_eq!(later, again >= 2, "{again}");
    }
    let expected = [silent_for(Cause::Unanswered, timer), Incident::Tries];
    assert_eq!(incidents, expected);
    assert_eq!(flow.unanswered_tries(), Some(8));
    assert!(flow.has_exhausted_retries(7 * timer));
    assert_eq!(flow.resent, 7);
    assert_eq!(flow.silences(Cause::Unanswered).count, 7);
    flow.acknowledged(&reply(8 * timer, 77, K::Ack), None);
    assert_eq!(flow.unanswered_tries(), None);
    assert!(!flow.has_exhausted_retries(u64::MAX));
}

#[test]
fn a_receiver_that_is_not_ready_exhausts_no_retries() {
    let mut flow = Exchange::default();
    let mut incidents = run(&mut flow, &[(0, 77, Ok(Order::New))]);
    for again in 1..20 {
        let at = again * 10 * MS;
        let steps = [(at, 77, Err(K::RnrNak)), (at + MS, 77, Ok(Order::Copied))];
        incidents.extend(run(&mut flow, &steps));
    }
    assert_eq!(incidents, [silent_for(Cause::RnrNak, MS)]);
    assert!(!flow.has_exhausted_retries(200 * MS));
}

#[test]
fn newer_data_after_retries_shows_that_they_succeeded() {
    let mut flow = Exchange::default();
    run(
        &mut flow,
        &[
            (0, 5, Ok(Order::New)),
            (10 * MS, 5, Ok(Order::Copied)),
            (20 * MS, 5, Ok(Order::Copied)),
            (20 * MS + 1, 6, Ok(Order::New)),
        ],
    );
    assert_eq!(flow.unanswered_tries(), None);
    assert!(!flow.has_exhausted_retries(u64::MAX));
    // The next loss is counted anew.
    run(&mut flow, &[(40 * MS, 6, Ok(Order::Copied))]);
    assert_eq!(flow.unanswered_tries(), Some(2));
}

#[test]
fn a_nak_tells_retransmissions_from_copies_and_late_packets() {
    let mut flow = Exchange::default();
    let steps = [
        (0, 1, Ok(Order::New)),
        (1_000, 3, Ok(Order::New)),
        (1_500, 3, Ok(Order::Copied)),
        (2_000, 2, Err(K::SequenceError)),
        // In flight when the NAK was sent.
        (2_500, 4, Ok(Order::New)),
        (3_000, 2, Ok(Order::Late)),
        (3_100, 3, Ok(Order::Copied)),
        (3_200, 4, Ok(Order::Copied)),
        (9_000, 4, Err(K::Ack)),
        (10_000, 6, Ok(Order::New)),
        (10_100, 5, Ok(Order::Late)),
        (10_200, 6, Ok(Order::Copied)),
    ];
    assert_eq!(run(&mut flow, &steps), []);
    assert_eq!((flow.resent, flow.late), (3, 1));
    assert_eq!(flow.longest_silence(), None);
    assert_eq!(flow.acks(K::SequenceError), 1);
}

#[test]
fn the_wait_after_a_nak_counts_where_the_data_is_captured() {
    let mut flow = Exchange::default();
    run(&mut flow, &[(0, 1, Ok(Order::New))]);
    let elsewhere = Reply {
        beside_data: false,
        ..reply(MS, 1, K::SequenceError)
    };
    flow.acknowledged(&elsewhere, None);
    let copy = Reply {
        is_copy: true,
        ..reply(3 * MS, 1, K::SequenceError)
    };
    flow.acknowledged(&copy, None);
    run(&mut flow, &[(4 * MS, 1, Ok(Order::Copied))]);
    assert_eq!(flow.longest_silence(), Some((Cause::Nak, MS)));
    assert_eq!(flow.acks(K::SequenceError), 1);
}

#[test]
fn the_round_trip_is_of_packets_sent_once() {
    let mut flow = Exchange::default();
    run(
        &mut flow,
        &[
            (0, 1, Ok(Order::New)),
            (2_000, 1, Err(K::Ack)),
            (10_000, 2, Ok(Order::New)),
            (15_000, 2, Err(K::Ack)),
        ],
    );
    assert_eq!(flow.round_trip(), Some((2_000, 5_000)));
    run(
        &mut flow,
        &[
            (20_000, 3, Ok(Order::New)),
            (21_000, 3, Err(K::RnrNak)),
            (30_000, 3, Ok(Order::Copied)),
            (31_000, 3, Err(K::Ack)),
            // One for two packets may have waited for the second.
            (40_000, 4, Ok(Order::New)),
            (41_000, 5, Ok(Order::New)),
            (42_000, 5, Err(K::Ack)),
        ],
    );
    assert_eq!(flow.round_trip(), Some((2_000, 5_000)));
    let elsewhere = Reply {
        beside_data: false,
        ..reply(50_001, 6, K::Ack)
    };
    run(&mut flow, &[(50_000, 6, Ok(Order::New))]);
    flow.acknowledged(&elsewhere, None);
    assert_eq!(flow.round_trip(), Some((2_000, 5_000)));
}

#[test]
fn a_read_asked_for_again_is_a_retransmission() {
    let mut flow = Exchange::default();
    let request = |at, psn| Sent {
        sequence: Sequence::Request(psn),
        ..sent(at, psn, Order::Request)
    };
    flow.data(&request(0, 100), |_| None);
    assert_eq!(flow.answered(&reply(5_000, 100, K::Ack)), Some(5_000));
    flow.answered(&reply(7_000, 103, K::Ack));
    assert_eq!(flow.acks(K::Ack), 0, "responses are data");
    assert_eq!(flow.round_trip(), Some((5_000, 5_000)));
    flow.data(&request(8_000, 104), |_| None);
    assert_eq!(flow.resent, 0);
    let incident = flow.data(&request(65 * MS, 101), |_| None);
    assert_eq!(flow.resent, 1);
    let silence = 65 * MS - 8_000;
    let expected = silent_for(Cause::Unanswered, silence);
    assert_eq!(incident, Some(expected));
}

#[test]
fn data_without_ecn_is_reported_once_and_only_of_connections() {
    let mut flow = Exchange::default();
    let datagram = Sent {
        sequence: Sequence::Datagram,
        ecn: Some(Ecn::NotCapable),
        ..sent(0, 0, Order::New)
    };
    assert_eq!(flow.data(&datagram, |_| None), None);
    assert_eq!((flow.not_ect, flow.data_ecn()), (1, Some(Ecn::NotCapable)));
    let mut flow = Exchange::default();
    let packet = |psn, ecn| Sent {
        ecn: Some(ecn),
        ..sent(u64::from(psn), psn, Order::New)
    };
    assert_eq!(flow.data(&packet(1, Ecn::Ce), |_| None), None);
    assert_eq!(flow.data_ecn(), Some(Ecn::Ce));
    assert_eq!(flow.data(&packet(2, Ecn::Ect0), |_| None), None);
    assert_eq!(flow.data(&packet(3, Ecn::Ce), |_| None), None);
    assert_eq!(flow.data_ecn(), Some(Ecn::Ect0));
    let not_ect = flow.data(&packet(4, Ecn::NotCapable), |_| None);
    assert_eq!(not_ect, Some(Incident::NotEct));
    assert_eq!(flow.data(&packet(5, Ecn::NotCapable), |_| None), None);
    assert_eq!(flow.not_ect, 2);
}

#[test]
fn the_state_of_an_exchange_is_small() {
    assert!(size_of::<Exchange>() <= 256, "{}", size_of::<Exchange>());
}

proptest! {
    #[test]
    fn any_psns_and_times_are_counted_once(
        packets in proptest::collection::vec(any::<(u8, u64, u32, bool)>(), 0..200),
    ) {
        let mut flow = Exchange::default();
        let (mut data, mut naks) = (0, 0);
        for &(kind, at, psn, flag) in &packets {
            let psn = if flag { psn & 7 } else { psn & MAX_24 };
            let orders = [Order::New, Order::Resent, Order::Copied, Order::Late, Order::Overtaken, Order::Request];
            match (orders.get(usize::from(kind % 12)), K::ALL.get(usize::from(kind % 12 % 6))) {
                (Some(order), _) => {
                    data += 1;
                    let ecn = Some(Ecn::from_bits(kind >> 4));
                    flow.data(&Sent { asks_for_ack: flag, ecn, ..sent(at, psn, *order) }, |_| None);
                }
                (None, Some(kind)) => {
                    naks += 1;
                    let reply = Reply { is_copy: flag, beside_data: psn & 1 == 0, ..reply(at, psn, *kind) };
                    flow.acknowledged(&reply, None);
                }
                (None, None) => {}
            }
            let _ = flow.has_exhausted_retries(at);
        }
        let silences: u32 = Cause::ALL.iter().map(|cause| flow.silences(*cause).count).sum();
        let acks: u32 = K::ALL.iter().map(|kind| flow.acks(*kind)).sum();
        prop_assert!(flow.resent + flow.late <= data);
        prop_assert!(silences <= flow.resent);
        prop_assert!(acks <= naks);
        prop_assert!(flow.not_ect <= data);
        if let Some((shortest, latest)) = flow.round_trip() {
            prop_assert!(shortest <= latest);
        }
    }
}
