//! Shares of right, wrong and unclear verdicts: by sender, notifications, packets, capture point
//! and pacing.

#[path = "../tests/labelled/mod.rs"]
mod labelled;

use fcn_observe::obedience::Answer;
use labelled::{GAPS, Labelled, Pacing, Sender};

/// Numbers of flows that were not used in development.
const FLOWS: core::ops::Range<u64> = 23_000_000..23_030_000;
/// Numbers of flows made separately.
const APART: core::ops::Range<u64> = 23_000_000..23_008_000;
/// Numbers of flows whose rate swings by itself.
const SWINGS: core::ops::Range<u64> = 23_000_000..23_001_000;

/// Prints a line of the table about the flows for which `fits` returns true.
fn print(name: &str, flows: &[Labelled], fits: impl Fn(&Labelled) -> bool) {
    let (mut right, mut wrong, mut all) = (0.0, 0.0, 0.0);
    for flow in flows.iter().filter(|flow| fits(flow)) {
        all += 1.0;
        match flow.verdict.answer {
            Answer::Unclear => {}
            _ if flow.is_wrong() => wrong += 1.0,
            _ => right += 1.0,
        }
    }
    let part = |n: f64| n / f64::max(all, 1.0) * 100.0;
    let unclear = part(all - right - wrong);
    println!(
        "| {name} | {all} | {:.1} % | {:.1} % | {unclear:.1} % |",
        part(right),
        part(wrong)
    );
}

/// Formats a range without its end.
fn range(from: u32, to: u32) -> String {
    match to {
        u32::MAX => format!("{from} and more"),
        _ => format!("{from} to {}", to - 1),
    }
}

fn main() {
    let counts = |flow: &Labelled| flow.seen.0 >= 1_000 && flow.seen.1 >= 20;
    let flows: Vec<_> = FLOWS.map(labelled::flow).filter(counts).collect();
    let apart = APART.map(labelled::apart);
    let apart: Vec<_> = (apart.chain(SWINGS.map(labelled::swings)))
        .filter(counts)
        .collect();
    println!("| | flows | right | wrong | unclear |\n|---|---:|---:|---:|---:|");
    for sender in Sender::TOGETHER {
        print(sender.about(), &flows, |flow| flow.sender == sender);
    }
    for gap in GAPS {
        let name = format!("notified every {} µs", gap / 1e3);
        print(&name, &flows, |flow| flow.gap == gap);
    }
    let alone = &Sender::TOGETHER[..Sender::ALONE];
    print("the first ten kinds of senders", &flows, |flow| {
        alone.contains(&flow.sender)
    });
    print("all", &flows, |_| true);
    println!("\nmade apart:");
    for sender in Sender::APART.into_iter().chain([Sender::Swings]) {
        print(sender.about(), &apart, |flow| flow.sender == sender);
    }
    println!("\nall of both, by notifications, packets, place and pacing:");
    let both = [flows, apart].concat();
    for (from, to) in [(20, 50), (50, 100), (100, 300), (300, u32::MAX)] {
        let name = format!("{} notifications", range(from, to));
        print(&name, &both, |flow| (from..to).contains(&flow.seen.1));
    }
    for (from, to) in [
        (1_000, 2_000),
        (2_000, 5_000),
        (5_000, 10_000),
        (10_000, u32::MAX),
    ] {
        let name = format!("{} packets", range(from, to));
        print(&name, &both, |flow| (from..to).contains(&flow.seen.0));
    }
    print("seen before the queue", &both, |flow| !flow.behind);
    print("seen after the queue", &both, |flow| flow.behind);
    for (pacing, name) in Pacing::ALL {
        print(name, &both, |flow| flow.pacing == pacing);
    }
}
