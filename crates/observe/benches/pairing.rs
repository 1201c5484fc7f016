//! Shares of QPs of two hosts that are paired correctly, wrongly or not at all, by the available
//! evidence.

#[path = "../tests/pairs/mod.rs"]
mod pairs;

use pairs::{Captured, Case, Count, Paired, Ports, Psns};

/// Numbers of the captures of each kind. The rules were developed with these.
const CAPTURES: core::ops::Range<u64> = 70_000..70_100;
/// Variants of a case.
type Change = fn(&mut Case);

const QPS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];

fn part(count: u32, of: Count) -> f64 {
    f64::from(count) / f64::from(of.all()).max(1.0) * 100.0
}

fn play(case: &Case) -> Paired {
    let mut paired = Paired::default();
    for number in CAPTURES {
        paired += pairs::play(case, number);
    }
    paired
}

fn main() {
    let case = |qps, psns, ports| Case {
        qps,
        psns,
        ports,
        captured: Captured::All,
        coalesced: 1,
        by_clock: None,
    };
    println!("Flows found, wrong, in %, by the number of QPs of two hosts:\n");
    println!("| ports, PSNs | 1 | 2 | 4 | 8 | 16 | 32 | 64 |");
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    for (name, psns, ports) in [
        ("by the rule, from 0", Psns::Zero, Ports::Rule),
        ("by the rule, in step", Psns::InStep, Ports::Rule),
        ("by the rule, random", Psns::Random, Ports::Rule),
        ("random, from 0", Psns::Zero, Ports::Random),
        ("random, in step", Psns::InStep, Ports::Random),
        ("random, random", Psns::Random, Ports::Random),
        ("one for all, from 0", Psns::Zero, Ports::Same),
        ("four for a QP, from 0", Psns::Zero, Ports::Several),
    ] {
        print!("| {name} ");
        for qps in QPS {
            let flows = play(&case(qps, psns, ports)).flows;
            let (right, wrong) = (part(flows.right, flows), part(flows.wrong, flows));
            print!("| {right:.1}, {wrong:.2} ");
        }
        println!("|");
    }
    println!("\nOf 1 to 64 QPs, with each kind of PSNs:\n");
    println!(
        "| ports | captures | flows | right % | wrong % | with 20 acknowledgements: right % | wrong % | CNPs: right % | wrong % |"
    );
    println!("|---|---|---:|---:|---:|---:|---:|---:|---:|");
    let by_rule = [Psns::Zero, Psns::InStep, Psns::Random].map(|psns| (psns, Ports::Rule));
    let without = [
        (Psns::Zero, Ports::Random),
        (Psns::InStep, Ports::Same),
        (Psns::Random, Ports::Several),
    ];
    let changes: [(&str, Change); 7] = [
        ("whole", |_| ()),
        ("1 % lost by the capture", |case| {
            case.captured = Captured::Lossy;
        }),
        ("joined in the middle", |case| {
            case.captured = Captured::Middle;
        }),
        ("one acknowledgement for two messages", |case| {
            case.coalesced = 2;
        }),
        ("one of two links", |case| case.captured = Captured::OneLink),
        ("only the data", |case| case.captured = Captured::Data),
        ("only what comes back", |case| {
            case.captured = Captured::Answers;
        }),
    ];
    for (ports, kinds) in [("by the rule", by_rule), ("others", without)] {
        for (name, change) in changes {
            let mut paired = Paired::default();
            for ((psns, ports), qps) in kinds.iter().flat_map(|kind| QPS.map(|qps| (*kind, qps))) {
                let mut case = case(qps, psns, ports);
                change(&mut case);
                paired += play(&case);
            }
            let Paired {
                flows,
                acknowledged,
                cnps,
            } = paired;
            println!(
                "| {ports} | {name} | {} | {:.1} | {:.2} | {:.1} | {:.2} | {:.1} | {:.2} |",
                flows.all(),
                part(flows.right, flows),
                part(flows.wrong, flows),
                part(acknowledged.right, acknowledged),
                part(acknowledged.wrong, acknowledged),
                part(cnps.right, cnps),
                part(cnps.wrong, cnps),
            );
        }
    }
    println!("\nOf senders in step by a clock, with random ports: flows found, wrong, in %:\n");
    println!("| acknowledgements later by up to | 2 QPs | 4 QPs | 16 QPs |");
    println!("|---|---:|---:|---:|");
    for jitter in [0, 1, 4, 16] {
        print!("| {jitter} µs ");
        for qps in [2, 4, 16] {
            let mut flows = Count::default();
            for (psns, coalesced) in [(Psns::Zero, 1), (Psns::InStep, 2)] {
                flows += play(&Case {
                    coalesced,
                    by_clock: Some(jitter),
                    ..case(qps, psns, Ports::Random)
                })
                .flows;
            }
            let (right, wrong) = (part(flows.right, flows), part(flows.wrong, flows));
            print!("| {right:.1}, {wrong:.2} ");
        }
        println!("|");
    }
}
