//! Figures of published simulations and algorithms: eight senders at 25 Gbit/s, one receiver.

use super::{simulation, source};
use crate::scenario::model::{NodeKind, Simulation};
use crate::sim::outcome::Metrics;
use crate::sim::play;
use fcn_node::reaction_point::Control;

/// The network of HPCC's `run.py --bw 25`: Kmin 100 kB, Kmax 400 kB, Pmax 0.2, marks on departure,
/// packets of about 1,000 octets, each acknowledged.
const EIGHT_TO_ONE: &str = r#"about = "8:1"
mechanism = "cnp"
duration = "30ms"
[defaults]
rate = "25G"
delay = "1us"
[defaults.host]
notification_delay = "0s"
[defaults.marking]
kmin = "100kB"
kmax = "400kB"
at = "departure"
[[switch]]
name = "sw"
queue = "8MB"
pfc = true
[[host]]
name = "s"
count = 8
attach = "sw"
[[host]]
name = "r"
attach = "sw"
[[flow]]
name = "load"
from = "s*"
to = "r"
message = "1MiB"
mtu = 1024
window = 8000
ack_every = 1
"#;

fn eight_to_one(sets: &[&str]) -> (Simulation, Metrics) {
    let simulation = simulation(&source(EIGHT_TO_ONE), sets);
    let metrics = play(&simulation, "8:1", None, &mut |_| true)
        .unwrap()
        .metrics;
    (simulation, metrics)
}

/// HPCC's simulator (`run.py --cc dcqcn`) has a mean queue of 117 kB.
#[test]
fn hpcc_ns3_has_the_queue_of_the_published_simulator() {
    let (_, metrics) = eight_to_one(&["defaults.host.nic=hpcc-ns3"]);
    let off = metrics.mean_queue / 117_000.0 - 1.0;
    assert!(off.abs() < 0.08, "{}", metrics.mean_queue);
    assert!(metrics.utilisation > 0.99 && metrics.fairness > 0.99);
}

/// HPCC keeps the link at η and the queue empty. Where window and utilisation no longer change,
/// W = W/(U/η) + W_AI, so U = η/(1 − W_AI/W); N windows carry N·W = U·B·T: U = η + W_AI·N/(B·T). A
/// queue of a packet or two is part of U.
#[test]
fn hpcc_keeps_its_target_utilisation_without_a_queue() {
    for (senders, tolerance) in [(2, 0.005), (8, 0.02)] {
        let count = format!("host.s.count={senders}");
        let control = "defaults.host.control=hpcc";
        let sets = [control, "duration=10ms", "defaults.delay=3us", &count];
        let (simulation, metrics) = eight_to_one(&sets);
        let sender = &simulation.nodes[simulation.flows[0].from];
        let NodeKind::Host(host) = &sender.kind else {
            panic!()
        };
        let Control::Hpcc(params) = host.reaction.control else {
            panic!()
        };
        let round = params.t.as_secs_f64();
        assert!((12e-6..14e-6).contains(&round), "{round}");
        let target = 0.95 + 80.0 * f64::from(senders) / (25e9 / 8.0 * round);
        let off = metrics.utilisation / target - 1.0;
        assert!(off.abs() < tolerance, "{} {target}", metrics.utilisation);
        assert!(metrics.mean_queue < 2_500.0, "{}", metrics.mean_queue);
        assert!(metrics.fairness > 0.98, "{}", metrics.fairness);
    }
}

/// Swift's round-trip time is its target: w packets of 4,096 octets per round trip carry a flow's
/// eighth of the link, and the target for w is 28 µs + 32.65 µs·(1/√w − 1/10). Iterated by hand:
/// w = 3.6, 42 µs, of which 5 µs are without queue.
#[test]
fn swift_keeps_its_target_delay() {
    let (_, metrics) = eight_to_one(&["defaults.host.control=swift", "mechanism=none"]);
    let waiting = metrics.mean_queue * 8.0 / 25e9;
    assert!((waiting / 37e-6 - 1.0).abs() < 0.1, "{waiting}");
    assert!(metrics.utilisation > 0.99 && metrics.fairness > 0.99);
    assert_eq!((metrics.lost, metrics.marked), (0, 0));
    assert!(metrics.first_cut.is_some());
}
