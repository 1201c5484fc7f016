//! How often the verdict about a flow is right, wrong or unclear, by sender and by the time between notifications.

#[path = "../tests/labelled/mod.rs"]
mod labelled;

use fcn_observe::obedience::Answer;
use labelled::{GAPS, Labelled, Sender};

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
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse().ok());
    let first: u64 = number("FIRST").unwrap_or(1_000_000);
    let many: u64 = number("FLOWS").unwrap_or(5_000);
    let show = std::env::var("SHOW").unwrap_or_default();
    let (mut senders, mut gaps) = ([Count::default(); 10], [Count::default(); 12]);
    let mut all = Count::default();
    for number in first..first + many {
        let flow = labelled::flow(number);
        if flow.seen.0 < 1_000 || flow.seen.1 < 20 {
            continue;
        }
        let place = Sender::ALL.iter().position(|s| *s == flow.sender);
        senders[place.unwrap_or(0)].add(&flow);
        let place = GAPS.iter().position(|gap| *gap == flow.gap);
        gaps[place.unwrap_or(0)].add(&flow);
        all.add(&flow);
        let answer = flow.verdict.answer;
        let kind = if answer == Answer::Unclear {
            "unclear"
        } else if answer == flow.sender.truth() {
            "right"
        } else {
            "wrong"
        };
        if show.contains(kind) && (!show.contains('-') || show.contains(&format!("{:?}", flow.sender))) {
            println!(
                "{number} {kind} {:?} gap {:.0} us rate {:.0} seen {:?} {} | {:?} {}",
                flow.sender, flow.gap / 1e3, flow.rate, flow.seen, flow.about, answer, flow.verdict.evidence
            );
        }
    }
    println!("{:34} {:>6} {:>8} {:>8} {:>8}", "", "flows", "right %", "wrong %", "unclear %");
    for (sender, count) in Sender::ALL.iter().zip(senders) {
        count.print(sender.about());
    }
    for (gap, count) in GAPS.iter().zip(gaps) {
        count.print(&format!("notified every {} µs", gap / 1e3));
    }
    all.print("all");
}
