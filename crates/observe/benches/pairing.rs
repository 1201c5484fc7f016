//! How often the QPs of two hosts are paired rightly, wrongly or not at all, by what tells them.

#[path = "../tests/pairs/mod.rs"]
mod pairs;

use pairs::{Captured, Case, Count, Paired, Ports, Psns};

/// Numbers of the captures of each kind: none that anything was tried on.
const CAPTURES: core::ops::Range<u64> = 70_000..70_100;
const QPS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];

fn part(count: u32, of: Count) -> f64 {
    f64::from(count) / f64::from(of.all()).max(1.0) * 100.0
}

fn row(name: &str, cases: impl IntoIterator<Item = Case>) {
    let mut paired = Paired::default();
    for case in cases {
        for number in CAPTURES {
            paired += pairs::play(&case, number);
        }
    }
    let Paired {
        flows,
        acknowledged,
        cnps,
    } = paired;
    println!(
        "| {name} | {} | {:.1} | {:.2} | {:.1} | {:.1} | {:.2} | {:.1} | {:.2} |",
        flows.all(),
        part(flows.right, flows),
        part(flows.wrong, flows),
        part(flows.unknown, flows),
        part(acknowledged.right, acknowledged),
        part(acknowledged.wrong, acknowledged),
        part(cnps.right, cnps),
        part(cnps.wrong, cnps),
    );
}

fn main() {
    println!(
        "| captures | flows | right % | wrong % | unknown % | with 20 acknowledgements: right % | wrong % | CNPs: right % | wrong % |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    let case = |qps, psns, ports| Case {
        qps,
        psns,
        ports,
        captured: Captured::All,
        coalesced: 1,
    };
    let every = |change: fn(&mut Case), kinds: &[(Psns, Ports)]| -> Vec<Case> {
        let cases = kinds.iter().flat_map(|(psns, ports)| {
            QPS.map(|qps| {
                let mut case = case(qps, *psns, *ports);
                change(&mut case);
                case
            })
        });
        cases.collect()
    };
    let by_rule = [Psns::Zero, Psns::InStep, Psns::Random].map(|psns| (psns, Ports::Rule));
    let without = [
        (Psns::Zero, Ports::Random),
        (Psns::InStep, Ports::Same),
        (Psns::Random, Ports::Several),
    ];
    for (name, psns, ports) in [
        ("ports by the rule", Psns::Zero, Ports::Rule),
        ("random ports, PSNs from 0", Psns::Zero, Ports::Random),
        ("random ports, PSNs in step", Psns::InStep, Ports::Random),
        ("random ports, random PSNs", Psns::Random, Ports::Random),
        ("one port for all, PSNs from 0", Psns::Zero, Ports::Same),
        (
            "four ports for a QP, PSNs from 0",
            Psns::Zero,
            Ports::Several,
        ),
    ] {
        for qps in QPS {
            row(&format!("{name}, {qps} QPs"), [case(qps, psns, ports)]);
        }
    }
    let changes: [(&str, fn(&mut Case)); 6] = [
        ("1 % lost by the capture", |case| {
            case.captured = Captured::Lossy
        }),
        ("joined in the middle", |case| {
            case.captured = Captured::Middle
        }),
        ("one acknowledgement for two messages", |case| {
            case.coalesced = 2
        }),
        ("one of two links captured", |case| {
            case.captured = Captured::OneLink
        }),
        ("only the data captured", |case| {
            case.captured = Captured::Data
        }),
        ("only what comes back captured", |case| {
            case.captured = Captured::Answers
        }),
    ];
    for (name, change) in changes {
        row(&format!("by the rule, {name}"), every(change, &by_rule));
        row(&format!("not by the rule, {name}"), every(change, &without));
    }
}
