//! How often the verdict about a flow is right, wrong or unclear, by sender and by the time between notifications.

#[path = "../tests/labelled/mod.rs"]
mod labelled;

use fcn_observe::obedience::Answer;
use labelled::{GAPS, Labelled, Sender};

/// None that anything was tried on.
const FLOWS: core::ops::Range<u64> = 7_000_000..7_010_000;

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
            answer if answer == flow.sender.truth() => self.right += 1,
            _ => self.wrong += 1,
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
        [Count::default(); Sender::ALL.len()],
        [Count::default(); GAPS.len()],
    );
    let (mut alone, mut all) = (Count::default(), Count::default());
    for number in FLOWS {
        let flow = labelled::flow(number);
        if flow.seen.0 < 1_000 || flow.seen.1 < 20 {
            continue;
        }
        let place = Sender::ALL.iter().position(|s| *s == flow.sender);
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
    for (sender, count) in Sender::ALL.iter().zip(senders) {
        count.print(sender.about());
    }
    for (gap, count) in GAPS.iter().zip(gaps) {
        count.print(&format!("notified every {} µs", gap / 1e3));
    }
    alone.print("the first ten kinds of senders");
    all.print("all");
}
