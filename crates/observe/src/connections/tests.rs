//! Connections after each of a list of messages.

use super::*;
use crate::testing::{Setup, data, mutated, with_frame};
use fcn_wire::Opcode;
use proptest::prelude::*;

fn learn(connections: &mut Connections, bytes: &[u8]) {
    with_frame(bytes, |frame| connections.learn(frame));
}

fn flow(sender: IpAddr, receiver: IpAddr, receiver_qp: u32) -> FlowKey {
    FlowKey {
        sender,
        receiver,
        receiver_qp: Qp::truncate(receiver_qp),
    }
}

/// Returns the known QPs of `setup`: of the active side as its peer sees it, and the reverse.
fn known(connections: &Connections, setup: &Setup) -> (Option<u32>, Option<u32>) {
    let qp = |sender, receiver, qp| {
        let flow = flow(sender, receiver, qp);
        connections.sender_qp(&flow).map(Qp::get)
    };
    (
        qp(setup.active, setup.passive, setup.passive_end.1),
        qp(setup.passive, setup.active, setup.active_end.1),
    )
}

const BOTH: (Option<u32>, Option<u32>) = (Some(0x111), Some(0x222));
const NONE: (Option<u32>, Option<u32>) = (None, None);

#[test]
fn both_directions_are_known_from_reply_to_disconnect() {
    for setup in [Setup::v6(), Setup::v4()] {
        for end in [
            setup.disconnect(),
            setup.disconnect_by_passive(),
            setup.disconnected(),
        ] {
            let mut connections = Connections::new(8);
            let steps = [
                (setup.request(), NONE),
                (setup.request(), NONE),
                (setup.reply(), BOTH),
                (setup.ready(), BOTH),
                (setup.reply(), BOTH),
                (setup.ready(), BOTH),
                (end, NONE),
                (setup.disconnected(), NONE),
            ];
            for (i, (message, want)) in steps.iter().enumerate() {
                learn(&mut connections, message);
                assert_eq!(known(&connections, &setup), *want, "step {i}");
            }
        }
    }
}

#[test]
fn a_reject_ends_what_a_request_began() {
    for setup in [Setup::v6(), Setup::v4()] {
        let (own, other) = (setup.passive_end.0, setup.active_end.0);
        // Number of setup messages before it, the refusal, and whether it ends the connection.
        for (seen, refusal, ends) in [
            (1, setup.reject_by_passive(0), true),
            (1, setup.reject_by_passive(own), true),
            (1, setup.reject(0), true),
            (2, setup.reject(own), true),
            (2, setup.reject(0), true),
            (2, setup.reject_by_passive(own), true),
            (2, setup.reject(other), false),
            (3, setup.reject_by_passive(own), true),
            (3, setup.reject_by_passive(0), false),
            (3, setup.reject(other), false),
        ] {
            let mut connections = Connections::new(8);
            for message in &setup.messages()[..seen] {
                learn(&mut connections, message);
            }
            let before = known(&connections, &setup);
            assert_eq!(before, if seen > 1 { BOTH } else { NONE });
            learn(&mut connections, &refusal);
            assert_eq!(
                known(&connections, &setup),
                if ends { NONE } else { before }
            );
            // A late reply begins nothing.
            if ends {
                learn(&mut connections, &setup.reply());
                assert_eq!(known(&connections, &setup), NONE);
                assert!(connections.ends.is_empty() && connections.senders.is_empty());
            }
        }
    }
}

#[test]
fn a_reject_of_a_new_request_leaves_the_open_connection() {
    let setup = Setup::v6();
    let mut connections = Connections::new(8);
    for message in setup.messages() {
        learn(&mut connections, &message);
    }
    learn(&mut connections, &setup.request());
    learn(&mut connections, &setup.reject_by_passive(0));
    assert_eq!(known(&connections, &setup), BOTH);
}

#[test]
fn the_destination_of_a_qp_is_known_from_either_side() {
    for setup in [Setup::v6(), Setup::v4()] {
        let (active, passive) = (
            (setup.active, Qp::truncate(setup.active_end.1)),
            (setup.passive, Qp::truncate(setup.passive_end.1)),
        );
        let mut connections = Connections::new(8);
        let flow_end = |connections: &Connections, (host, qp)| {
            let flow = connections.flow_of(host, qp)?;
            Some((flow.receiver, flow.receiver_qp))
        };
        learn(&mut connections, &setup.request());
        assert_eq!(flow_end(&connections, active), None);
        for message in [setup.reply(), setup.ready()] {
            learn(&mut connections, &message);
            assert_eq!(flow_end(&connections, active), Some(passive));
            assert_eq!(flow_end(&connections, passive), Some(active));
            assert_eq!(flow_end(&connections, (active.0, passive.1)), None);
        }
        learn(&mut connections, &setup.disconnect());
        assert_eq!(flow_end(&connections, active), None);
        assert_eq!(flow_end(&connections, passive), None);
        assert!(connections.senders.is_empty());
    }
}

#[test]
fn a_qp_belongs_to_its_last_confirmed_connection() {
    let setup = Setup::v6();
    // The same QP at the active side, to another host.
    let later = Setup {
        passive: "2001:db8:2::5".parse().unwrap(),
        active_end: (0x1A, 0x111),
        passive_end: (0x1B, 0x555),
        ..setup
    };
    let mut connections = Connections::new(8);
    let to = |connections: &Connections| {
        let qp = connections
            .flow_of(setup.active, Qp::truncate(0x111))?
            .receiver_qp;
        Some(qp.get())
    };
    for message in &setup.messages() {
        learn(&mut connections, message);
    }
    for message in [later.request(), later.reply()] {
        learn(&mut connections, &message);
        assert_eq!(to(&connections), Some(0x222));
    }
    learn(&mut connections, &later.ready());
    assert_eq!(to(&connections), Some(0x555));
    learn(&mut connections, &setup.disconnect());
    assert_eq!(to(&connections), Some(0x555));
    learn(&mut connections, &later.disconnect());
    assert_eq!(to(&connections), None);
    assert!(connections.senders.is_empty() && connections.ends.is_empty());
}

#[test]
fn a_reply_counts_only_from_the_passive_side() {
    let setup = Setup::v6();
    let other = Setup {
        passive: "2001:db8:bad::1".parse().unwrap(),
        ..setup
    };
    let wrong_id = Setup {
        active_end: (0xF, 0x111),
        ..setup
    };
    let swapped = Setup {
        active: setup.passive,
        passive: setup.active,
        ..setup
    };
    let mut connections = Connections::new(8);
    learn(&mut connections, &setup.reply());
    learn(&mut connections, &setup.request());
    for stranger in [other, wrong_id, swapped] {
        learn(&mut connections, &stranger.reply());
        assert_eq!(known(&connections, &stranger), NONE);
    }
    assert_eq!(known(&connections, &setup), NONE);
}

#[test]
fn ready_to_use_confirms_only_answered_requests() {
    let setup = Setup::v6();
    let mut connections = Connections::new(8);
    learn(&mut connections, &setup.request());
    learn(&mut connections, &setup.ready());
    let wrong = Setup {
        passive_end: (0xC, 0x222),
        ..setup
    };
    learn(&mut connections, &setup.reply());
    learn(&mut connections, &wrong.ready());
    assert!(connections.ends.values().all(|found| !found.confirmed));
    learn(&mut connections, &setup.ready());
    assert!(connections.ends.values().all(|found| found.confirmed));
}

#[test]
fn a_disconnect_must_name_the_connection() {
    let setup = Setup::v6();
    let mut connections = Connections::new(8);
    setup
        .messages()
        .iter()
        .for_each(|message| learn(&mut connections, message));
    for wrong in [
        Setup {
            active_end: (0xF, 0x111),
            ..setup
        },
        Setup {
            passive_end: (0xF, 0x222),
            ..setup
        },
        Setup {
            passive_end: (0xB, 0x223),
            ..setup
        },
        Setup {
            active: "2001:db8:bad::1".parse().unwrap(),
            ..setup
        },
    ] {
        learn(&mut connections, &wrong.disconnect());
        assert_eq!(known(&connections, &setup), BOTH);
    }
}

#[test]
fn management_qps_are_no_connection() {
    let mut connections = Connections::new(8);
    let setup = Setup {
        active_end: (1, 1),
        ..Setup::v6()
    };
    learn(&mut connections, &setup.request());
    let setup = Setup {
        passive_end: (2, 0),
        ..Setup::v6()
    };
    learn(&mut connections, &setup.request());
    learn(&mut connections, &setup.reply());
    assert_eq!(known(&connections, &setup), NONE);
    assert_eq!(
        (connections.half_open.len(), connections.ends.len()),
        (1, 0)
    );
}

#[test]
fn a_request_does_not_take_over_the_qp_of_a_confirmed_connection() {
    let setup = Setup::v6();
    let later = Setup {
        active_end: (0x1A, 0x333),
        passive_end: (0x1B, 0x222),
        ..setup
    };
    let mut connections = Connections::new(8);
    setup
        .messages()
        .iter()
        .for_each(|message| learn(&mut connections, message));
    learn(&mut connections, &later.request());
    learn(&mut connections, &later.reply());
    assert_eq!(known(&connections, &setup), BOTH);
    // Once it is confirmed, the host has reused the QP; closing the old connection does not affect
    // the new one.
    learn(&mut connections, &later.ready());
    assert_eq!(known(&connections, &later), (Some(0x333), Some(0x222)));
    learn(&mut connections, &setup.disconnect());
    assert_eq!(known(&connections, &later), (Some(0x333), Some(0x222)));
    assert_eq!(known(&connections, &setup).1, None);
}

fn numbered(n: u32) -> Setup {
    Setup {
        active_end: (n, 0x1000 + n),
        passive_end: (n, 0x2000 + n),
        ..Setup::v6()
    }
}

#[test]
fn when_full_the_connection_used_longest_ago_leaves() {
    let mut connections = Connections::new(2);
    for n in 1..=2 {
        numbered(n)
            .messages()
            .iter()
            .for_each(|message| learn(&mut connections, message));
    }
    let setup = numbered(1);
    let used = connections.use_sender_qp(&flow(setup.active, setup.passive, 0x2001));
    assert_eq!(used, Qp::new(0x1001));
    numbered(3)
        .messages()
        .iter()
        .for_each(|message| learn(&mut connections, message));
    assert_eq!(
        known(&connections, &numbered(1)),
        (Some(0x1001), Some(0x2001))
    );
    assert_eq!(known(&connections, &numbered(2)), NONE);
    assert_eq!(connections.ends.len(), 4);
}

#[test]
fn a_flood_of_requests_evicts_no_confirmed_connection() {
    let mut connections = Connections::new(2);
    numbered(1)
        .messages()
        .iter()
        .for_each(|message| learn(&mut connections, message));
    for n in 2..100 {
        learn(&mut connections, &numbered(n).request());
        learn(&mut connections, &numbered(n).reply());
    }
    assert_eq!(
        known(&connections, &numbered(1)),
        (Some(0x1001), Some(0x2001))
    );
    assert_eq!(known(&connections, &numbered(2)), NONE);
    assert_eq!(
        known(&connections, &numbered(99)),
        (Some(0x1063), Some(0x2063))
    );
    assert_eq!(connections.ends.len(), 2 + 2 * 16);
}

#[test]
fn an_evicted_repeated_setup_keeps_the_open_connection() {
    let mut connections = Connections::new(2);
    let setup = Setup::v6();
    for message in setup.messages().iter().chain(&setup.messages()[..2]) {
        learn(&mut connections, message);
    }
    for n in 100..200 {
        learn(&mut connections, &numbered(n).request());
    }
    assert!(connections.half_open.len() == 16 && known(&connections, &setup) == BOTH);
}

#[test]
fn other_frames_are_ignored() {
    let mut connections = Connections::new(2);
    let setup = Setup::v6();
    learn(
        &mut connections,
        &data(
            setup.active,
            setup.passive,
            Opcode::RC_SEND_ONLY,
            Qp::truncate(5),
        ),
    );
    learn(&mut connections, &[]);
    assert_eq!(
        (connections.half_open.len(), connections.ends.len()),
        (0, 0)
    );
}

fn messages() -> Vec<Vec<u8>> {
    let setups = [Setup::v6(), Setup::v4(), numbered(1), numbered(2)];
    let every_message = |setup: &Setup| {
        let mut all = setup.messages().to_vec();
        all.extend([
            setup.disconnect(),
            setup.disconnect_by_passive(),
            setup.disconnected(),
        ]);
        all
    };
    setups.iter().flat_map(every_message).collect()
}

proptest! {
    #[test]
    fn tables_and_index_agree(order in proptest::collection::vec(proptest::sample::select(messages()), 0..60)) {
        let mut connections = Connections::new(2);
        for message in &order {
            learn(&mut connections, message);
            prop_assert!(connections.open.len() <= 2 && connections.half_open.len() <= 16);
            for (end, found) in &connections.ends {
                let key = found.key(end);
                let confirmed = connections.open.peek(&key).map(|open| (open.active_qp, open.passive_qp));
                let answered = connections.half_open.peek(&key)
                    .and_then(|half| Some((half.active_qp, half.answer?.1)));
                let (active, passive) = if found.confirmed { confirmed } else { answered }.unwrap();
                prop_assert!(ends(key, active, passive).contains(&(*end, found.sender_qp)));
            }
            for ((host, qp), sender) in &connections.senders {
                let sent = connections.flow_of(*host, *qp).unwrap();
                prop_assert_eq!(sent.receiver, *sender);
                let back = flow(sent.receiver, *host, qp.get());
                prop_assert_eq!(connections.sender_qp(&back), Some(sent.receiver_qp));
            }
        }
    }

    #[test]
    fn hostile_messages_are_survived(frames in proptest::collection::vec(mutated(messages()), 0..30)) {
        let mut connections = Connections::new(2);
        for frame in &frames {
            learn(&mut connections, frame);
        }
        prop_assert!(connections.ends.len() <= 2 * (2 + 16));
        prop_assert!(connections.senders.len() <= connections.ends.len());
    }
}
