//! How often the verdict about a flow is right, wrong or unclear, by sender and by the time between notifications.

#[path = "../tests/labelled/mod.rs"]
mod labelled;

use fcn_observe::obedience::Answer;
use labelled::{GAPS, Labelled, Sender};

/// None that anything was tried on.
const FLOWS: core::ops::Range<u64> = 23_000_000..23_030_000;
/// Of those made apart.
const APART: core::ops::Range<u64> = 23_000_000..23_008_000;
/// Of those whose rate swings by itself.
const SWINGS: core::ops::Range<u64> = 23_000_000..23_001_000;

#[derive(Clone, Copy, Default)]
struct Count {
    right: u32,
    wrong: u32,
    unclear: u32,
}

impl Count {
    fn add(&mut self, flow: &Labelled) {
        match flow.verdict.answer {
            Answer::Unclear => self.unclear += 1,
            _ if flow.is_wrong() => self.wrong += 1,
            _ => self.right += 1,
        }
    }

    fn print(self, name: &str) {
        let all = f64::from(self.right + self.wrong + self.unclear).max(1.0);
        let part = |n: u32| f64::from(n) / all * 100.0;
        println!(
            "{name:34} {:6.0} {:8.1} {:8.1} {:8.1}",
            all,
            part(self.right),
            part(self.wrong),
            part(self.unclear)
        );
    }
}

fn main() {
    let (mut senders, mut gaps) = (
        [Count::default(); Sender::TOGETHER.len()],
        [Count::default(); GAPS.len()],
    );
    let (mut alone, mut all) = (Count::default(), Count::default());
    let counts = |flow: &Labelled| flow.seen.0 >= 1_000 && flow.seen.1 >= 20;
    for flow in FLOWS.map(labelled::flow).filter(counts) {
        let place = Sender::TOGETHER.iter().position(|s| *s == flow.sender);
        senders[place.unwrap_or(0)].add(&flow);
        if place < Some(Sender::ALONE) {
            alone.add(&flow);
        }
        let place = GAPS.iter().position(|gap| *gap == flow.gap);
        gaps[place.unwrap_or(0)].add(&flow);
        all.add(&flow);
    }
    println!(
        "{:34} {:>6} {:>8} {:>8} {:>8}",
        "", "flows", "right %", "wrong %", "unclear %"
    );
    for (sender, count) in Sender::TOGETHER.iter().zip(senders) {
        count.print(sender.about());
    }
    for (gap, count) in GAPS.iter().zip(gaps) {
        count.print(&format!("notified every {} µs", gap / 1e3));
    }
    alone.print("the first ten kinds of senders");
    all.print("all");
    println!("made apart:");
    let mut apart = [Count::default(); Sender::APART.len()];
    for flow in APART.map(labelled::apart).filter(counts) {
        let place = Sender::APART.iter().position(|s| *s == flow.sender);
        apart[place.unwrap_or(0)].add(&flow);
    }
    for (sender, count) in Sender::APART.iter().zip(apart) {
        count.print(sender.about());
    }
    let mut swings = Count::default();
    for flow in SWINGS.map(labelled::swings).filter(counts) {
        swings.add(&flow);
    }
    swings.print(Sender::Swings.about());
}
