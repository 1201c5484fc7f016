//! Many frames, many sockets, and a killed sender: nothing leaks, nothing stays behind.

mod common;

use common::check::blast;
use common::netns::{End, Options, Pair};
use fcn_link::backend::{self, BackendChoice, SlotCount};
use fcn_link::interface::Interface;
use fcn_link::transmit::{ModeKind, Transmit};
use fcn_link::xdp::CopyMode;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const XDP: BackendChoice = BackendChoice::Xdp(CopyMode::Best);

fn received(pair: &Pair) -> u64 {
    pair.inside(End::Far, || {
        let interface = Interface::named(pair.interface(End::Far)).unwrap();
        interface.counters().unwrap().rx_packets
    })
}

#[test]
fn two_million_packets_arrive_and_no_slot_is_lost() {
    const EACH: u64 = 1_000_000;
    let options = Options {
        queues: 2,
        ..Options::default()
    };
    let Some(pair) = Pair::with("two-million", &options) else {
        return;
    };
    let before = received(&pair);
    let report = pair.inside(End::Near, || {
        blast(pair.interface(End::Near), XDP, 2, EACH, 94)
    });
    println!("{} packets in {:.1} s", report.sent(), report.seconds);
    assert_eq!(report.queues.len(), 2);
    for queue in &report.queues {
        assert_eq!((queue.counts.pushed, queue.counts.completed), (EACH, EACH));
    }
    assert_eq!(report.unfinished(), 0);
    // A kernel that is short of time may drop some, but then it reports that: no frame is lost
    // without a trace.
    assert_eq!(report.sent() + report.dropped(), 2 * EACH);
    assert!(
        report.dropped() < EACH / 100,
        "{} dropped",
        report.dropped()
    );
    assert_eq!(received(&pair) - before, report.sent());
}

#[test]
fn a_queue_can_be_opened_and_closed_two_hundred_times() {
    let Some(pair) = Pair::new("open-close") else {
        return;
    };
    let before = received(&pair);
    pair.inside(End::Near, || {
        for round in 0..200 {
            let report = blast(pair.interface(End::Near), XDP, 1, 10, 94);
            assert_eq!(report.sent(), 10, "round {round}");
            assert_eq!(
                report.queues[0].mode.kind,
                ModeKind::XdpCopy,
                "round {round}"
            );
        }
    });
    assert_eq!(received(&pair) - before, 2_000);
}

#[test]
fn slots_are_returned_whatever_was_pushed() {
    let Some(pair) = Pair::new("slots") else {
        return;
    };
    pair.inside(End::Near, || {
        let interface = Interface::named(pair.interface(End::Near)).unwrap();
        for (wanted, max_frame_len) in [
            (XDP, 1514),
            (XDP, 9014),
            (BackendChoice::PacketSocket, 1514),
        ] {
            let options = backend::Options {
                backend: wanted,
                queues: 1,
                slots: SlotCount::all(100),
                max_frame_len,
            };
            let mut queue = backend::open(&interface, &options).unwrap().remove(0);
            let link: &mut dyn Transmit = match &mut queue {
                backend::Queue::Xdp(link) => &mut **link,
                backend::Queue::Packet(link) => &mut **link,
                backend::Queue::File(link) => &mut **link,
            };
            for round in 0..50 {
                let mut taken = 0;
                while let Some(slot) = link.take() {
                    link.bytes(&slot)[..60].fill(0xFF);
                    // Some are longer than the MTU: the interface refuses those, and their slots
                    // are returned as well.
                    link.push(
                        slot,
                        if round % 5 == 4 {
                            60
                        } else {
                            1000.min(max_frame_len)
                        },
                    );
                    taken += 1;
                }
                assert_eq!(taken, 100, "{wanted:?}, round {round}");
                assert_eq!(link.in_flight(), 100);
                link.flush().unwrap();
                link.wait(Duration::from_millis(1)).unwrap();
                assert_eq!(link.in_flight(), 0, "{wanted:?}, round {round}");
            }
            let counts = link.counts();
            assert_eq!(
                (counts.pushed, counts.completed, counts.invalid),
                (5_000, 5_000, 0)
            );
        }
    });
}

/// Returns the path of the program that `cargo test` builds from `examples/link_check.rs`; it is
/// not built if a single test file is run.
fn link_check() -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.push("examples/link_check");
    if !path.exists() {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--package", "fcn-link", "--example", "link_check"]);
        assert!(cargo.status().unwrap().success(), "{cargo:?}");
    }
    path
}

#[test]
fn a_killed_sender_leaves_nothing_behind() {
    let Some(pair) = Pair::new("killed") else {
        return;
    };
    for round in 0..5 {
        let mut command = pair.command(End::Near, link_check());
        command.args(["send", pair.interface(End::Near), "program"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert!(line.starts_with("sending"), "{line}");
        let attached = |pair: &Pair| pair.has_xdp_program(End::Near);
        assert!(
            attached(&pair),
            "round {round}: the program is there while it sends"
        );
        child.kill().unwrap();
        child.wait().unwrap();
        let report = pair.inside(End::Near, || {
            blast(pair.interface(End::Near), XDP, 1, 1_000, 94)
        });
        assert_eq!(report.sent(), 1_000, "round {round}");
        let since = Instant::now();
        while attached(&pair) {
            assert!(
                since.elapsed() < Duration::from_secs(5),
                "the XDP program stays"
            );
        }
    }
}
