//! External ends of a run: a stop request, and an interface that goes away. A run never hangs, and
//! always returns a report.

mod common;

use common::check::Numbered;
use common::netns::{End, Options, Pair};
use fcn_link::backend::{self, BackendChoice, SlotCount};
use fcn_link::clock::Waiting;
use fcn_link::interface::Interface;
use fcn_link::pacing::Rate;
use fcn_link::sender::{self, Ended, Job, Pace, Report, Settings};
use fcn_link::xdp::CopyMode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Generous, as the machine may be busy. A run that hangs would never end.
const HANG: Duration = Duration::from_secs(20);

/// Returns the number of frames sent so far.
fn sent(pair: &Pair) -> u64 {
    pair.inside(End::Near, || {
        let interface = Interface::named(pair.interface(End::Near)).unwrap();
        interface.counters().unwrap().tx_packets
    })
}

/// Starts an endless run, calls `interrupt` a moment later, and returns the report.
fn interrupted(
    pair: &Pair,
    backend: BackendChoice,
    pace: Pace,
    interrupt: impl FnOnce(&AtomicBool),
) -> Report {
    let stop = AtomicBool::new(false);
    let near = pair.entry(End::Near);
    let name = pair.interface(End::Near);
    thread::scope(|scope| {
        let run = scope.spawn(|| {
            near.enter();
            let interface = Interface::named(name).unwrap();
            let options = backend::Options {
                backend,
                queues: 2,
                slots: SlotCount::all(256),
                max_frame_len: 94,
            };
            let jobs = backend::open(&interface, &options)
                .unwrap()
                .into_iter()
                .zip(0..)
                .map(|(queue, number)| Job {
                    queue,
                    source: Numbered::free(number, u64::MAX, 94),
                    settings: Settings {
                        pace,
                        waiting: Waiting::Sleep,
                        ..Settings::TOP
                    },
                })
                .collect();
            sender::run(jobs, &[&interface], &stop, &mut |_| {}).0
        });
        let since = Instant::now();
        while sent(pair) == 0 {
            assert!(since.elapsed() < HANG, "it does not begin");
            thread::sleep(Duration::from_millis(5));
        }
        thread::sleep(Duration::from_millis(50));
        interrupt(&stop);
        let since = Instant::now();
        while !run.is_finished() {
            assert!(since.elapsed() < HANG, "it hangs");
            thread::sleep(Duration::from_millis(5));
        }
        run.join().unwrap()
    })
}

#[test]
fn every_interruption_ends_every_kind_of_run_with_a_report() {
    type Interrupt = (&'static str, fn(&Pair, &AtomicBool), &'static str);
    let interrupts: [Interrupt; 5] = [
        ("stop", |_, stop| stop.store(true, Ordering::Relaxed), ""),
        (
            "down",
            |pair, _| pair.ip(End::Near, &["link", "set", "near", "down"]),
            "down",
        ),
        (
            "delete",
            |pair, _| pair.ip(End::Near, &["link", "del", "near"]),
            "gone",
        ),
        (
            "peer deleted",
            |pair, _| pair.ip(End::Far, &["link", "del", "far"]),
            "gone",
        ),
        (
            "peer down",
            |pair, _| pair.ip(End::Far, &["link", "set", "far", "down"]),
            "carrier",
        ),
    ];
    for wanted in [
        BackendChoice::Xdp(CopyMode::Best),
        BackendChoice::PacketSocket,
    ] {
        for pace in [
            Pace::Top,
            Pace::Rate(Rate::Packets(1)),
            Pace::Rate(Rate::Packets(20_000)),
        ] {
            for (what, interrupt, expected) in interrupts {
                let options = Options {
                    queues: 2,
                    ..Options::default()
                };
                let Some(pair) = Pair::with("interruption", &options) else {
                    return;
                };
                let report = interrupted(&pair, wanted, pace, |stop| interrupt(&pair, stop));
                let context = format!("{what}, {wanted:?}, {pace:?}: {:?}", report.ended);
                println!(
                    "{context}, {} sent in {:.3} s",
                    report.sent(),
                    report.seconds
                );
                match &report.ended {
                    Ended::Interrupted => assert_eq!(what, "stop", "{context}"),
                    Ended::LinkFailed(why) => {
                        assert!(!expected.is_empty() && why.contains(expected), "{context}");
                    }
                    Ended::Done | Ended::TimeUp => panic!("{context}"),
                }
                assert!(report.total.pushed > 0, "{context}");
            }
        }
    }
}
