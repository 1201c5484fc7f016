//! Real frames over a veth pair between two namespaces: every octet arrives, in order, with every
//! backend.

mod common;

use common::check::{Exchange, Outcome, exchange};
use common::netns::{End, Options, Pair};
use fcn_link::backend::BackendChoice;
use fcn_link::transmit::ModeKind;
use fcn_link::xdp::CopyMode;

/// Returns lengths from the shortest to the longest frame of an MTU, including the boundaries of
/// chunks.
fn lens(mtu: usize) -> Vec<usize> {
    let longest = mtu + 14;
    let mut lens = vec![60, 61, 94, 118, 257, 1086, longest - 1, longest];
    lens.extend(
        [2047, 2048, 2049, 4095, 4096, 4097, 8192, 8193]
            .into_iter()
            .filter(|len| *len <= longest),
    );
    lens
}

fn across(pair: &Pair, plan: &Exchange) -> Outcome {
    let (near, far) = (pair.entry(End::Near), pair.entry(End::Far));
    let outcome = exchange(
        plan,
        (pair.interface(End::Near), || near.enter()),
        (pair.interface(End::Far), || far.enter()),
        pair.mac(End::Far),
    );
    assert_eq!(outcome.complaints, "", "{plan:?}");
    let total = plan.count * u64::from(plan.queues);
    assert_eq!(outcome.arrived, total, "{plan:?}");
    assert_eq!(outcome.report.sent(), total, "{plan:?}");
    assert_eq!(outcome.report.dropped(), 0, "{plan:?}");
    assert_eq!(outcome.report.unfinished(), 0, "{plan:?}");
    outcome
}

const COPY: BackendChoice = BackendChoice::Xdp(CopyMode::Best);

#[test]
fn every_octet_arrives() {
    for (mtu, gro, queues) in [
        (1500, false, 1),
        (1500, true, 1),
        (1500, false, 2),
        (1500, true, 2),
        (3000, false, 1),
        (9000, false, 1),
        (9000, true, 2),
    ] {
        let options = Options {
            queues,
            mtu,
            gro,
            ..Options::default()
        };
        let Some(pair) = Pair::with("exchange", &options) else {
            return;
        };
        for backend in [COPY, BackendChoice::PacketSocket] {
            let plan = Exchange {
                backend,
                queues,
                count: 6_000,
                lens: lens(mtu as usize),
                by: BackendChoice::PacketSocket,
                always_more: false,
            };
            let outcome = across(&pair, &plan);
            let expected = match backend {
                COPY => ModeKind::XdpCopy,
                _ => ModeKind::PacketSocket,
            };
            for queue in &outcome.report.queues {
                assert_eq!(queue.mode.kind, expected, "{}", queue.mode);
                println!("MTU {mtu}, GRO {gro}: {}", queue.mode);
            }
        }
    }
}

#[test]
fn nothing_is_lost_while_a_receiver_never_finds_its_ring_empty() {
    let Some(pair) = Pair::with("never-empty", &Options::default()) else {
        return;
    };
    across(
        &pair,
        &Exchange {
            backend: COPY,
            queues: 1,
            // Several times the capacity of the receiver's ring.
            count: 3_000,
            lens: vec![94],
            by: COPY,
            always_more: true,
        },
    );
}

#[test]
fn every_octet_arrives_when_af_xdp_receives() {
    for mtu in [1500, 3000] {
        let options = Options {
            mtu,
            ..Options::default()
        };
        let Some(pair) = Pair::with("xdp-receives", &options) else {
            return;
        };
        for backend in [COPY, BackendChoice::PacketSocket] {
            let outcome = across(
                &pair,
                &Exchange {
                    backend,
                    queues: 1,
                    count: 6_000,
                    lens: lens(mtu as usize),
                    by: COPY,
                    always_more: false,
                },
            );
            println!("MTU {mtu}: {}", outcome.received_by);
            assert!(outcome.received_by.contains("AF_XDP"));
        }
    }
}
