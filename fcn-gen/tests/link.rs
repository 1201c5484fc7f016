//! `fcn-gen run` on a link: the frames received at the other end of a veth pair, and the end of a
//! run.

#[path = "../../crates/link/tests/common/netns.rs"]
mod netns;

use fcn_link::backend::BackendChoice;
use fcn_link::interface::Interface;
use fcn_link::port::{self, Port};
use fcn_wire::{Findings, Frame, IcrcCheck, LinkType, Profile};
use netns::{End, Options, Pair};
use serde_json::Value;
use std::collections::HashSet;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Returns the program in the near namespace.
fn program(pair: &Pair, words: &str) -> Command {
    let mut command = pair.command(End::Near, env!("CARGO_BIN_EXE_fcn-gen"));
    command
        .args(words.split_whitespace())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs it, and collects the frames received at the far end in the meantime.
fn sent(pair: &Pair, words: &str) -> (Output, Vec<Vec<u8>>) {
    let over = AtomicBool::new(false);
    let ready = AtomicBool::new(false);
    thread::scope(|scope| {
        let gathering = scope.spawn(|| {
            pair.inside(End::Far, || {
                let interface = Interface::named(pair.interface(End::Far)).unwrap();
                let options = port::Options {
                    backend: BackendChoice::PacketSocket,
                    slots: 1,
                    max_frame_len: 16_384,
                };
                let mut ports = [Port::open(&interface, &options).unwrap()];
                ready.store(true, Ordering::Relaxed);
                let mut frames = Vec::new();
                loop {
                    let last = over.load(Ordering::Relaxed);
                    port::wait(&mut ports, Duration::from_millis(100)).unwrap();
                    let count = ports[0].receive(|frame| frames.push(frame.to_vec()));
                    if count == 0 && last {
                        return frames;
                    }
                }
            })
        });
        while !ready.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
        let output = program(pair, words).output().unwrap();
        over.store(true, Ordering::Relaxed);
        (output, gathering.join().unwrap())
    })
}

fn report(output: &Output) -> Value {
    let err = String::from_utf8_lossy(&output.stderr);
    // All frames leave even if a busy machine is late (5).
    assert!(matches!(output.status.code(), Some(0 | 5)), "{err}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn flawless(frames: &[Vec<u8>]) {
    for bytes in frames {
        let frame = Frame::parse(bytes, bytes.len(), LinkType::Ethernet, &Profile::DEFAULT);
        let mut findings = Findings::default();
        frame.check(IcrcCheck::On, &mut findings);
        assert!(findings.as_slice().is_empty(), "{:?}", findings.as_slice());
    }
}

#[test]
fn all_frames_of_a_stress_arrive_with_each_backend() {
    let options = Options {
        queues: 2,
        ..Options::default()
    };
    let Some(pair) = Pair::with("every_frame_of_a_stress_arrives", &options) else {
        return;
    };
    let mac = pair.mac(End::Near);
    for (backend, queues) in [("xdp-copy", 1), ("packet", 1), ("xdp-copy", 2)] {
        // Slow enough for the receiving socket's buffer of about 90 frames, even on a busy machine.
        let words = format!(
            "run stress-mix --iface near --backend {backend} --queues {queues} --rate 1kpps --count 3200 --json"
        );
        let (output, frames) = sent(&pair, &words);
        let report = report(&output);
        assert_eq!(
            (&report["sent"], &report["dropped"]),
            (&3_200.into(), &0.into())
        );
        assert_eq!(frames.len(), 3_200, "{words}");
        assert_eq!(frames.iter().collect::<HashSet<_>>().len(), 3_200);
        assert!(frames.iter().all(|frame| frame[6..12] == mac));
        flawless(&frames);
        assert_eq!(report["kinds"]["data"], 1_800, "{words}");
    }
}

#[test]
fn simulation_arrives_unchanged() {
    let options = Options {
        mtu: 9_000,
        ..Options::default()
    };
    let Some(pair) = Pair::with("a_simulation_arrives", &options) else {
        return;
    };
    let words = "run incast --iface near --speed 0.001 --keep-macs --set senders=2 --set duration=200us --json";
    let (output, frames) = sent(&pair, words);
    let report = report(&output);
    assert_eq!(report["sent"], frames.len() as u64);
    assert_eq!(report["left_out"], 0);
    assert!(frames.len() > 20);
    flawless(&frames);
    // Frames that do not fit are announced before, and counted.
    pair.ip(End::Near, &["link", "set", "near", "mtu", "1100"]);
    let words =
        "run incast --iface near --speed 0.001 --set senders=2 --set mtu=4096 --set duration=200us";
    let output = program(&pair, words).output().unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(err.contains("too long") && err.contains("1114"), "{err}");
    assert!(out.contains("left out"), "{out}");
    let output = program(&pair, "run stress-mix --iface near --count 5")
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(2) && err.contains("too long for the interface"),
        "{err}"
    );
}

#[test]
fn interrupt_and_lost_link_end_the_run() {
    let Some(pair) = Pair::new("an_interrupt_and_a_lost_link") else {
        return;
    };
    for (words, lost) in [
        ("run stress-cnp --iface near --forever", false),
        (
            "run stress-cnp --iface near --forever --rate 1pps --backend packet",
            false,
        ),
        (
            "run incast --iface near --speed 0.0001 --forever --set mtu=1024",
            false,
        ),
        ("run stress-cnp --iface near --forever --rate 100pps", true),
    ] {
        let mut command = program(&pair, words);
        let child = command.spawn().unwrap();
        thread::sleep(Duration::from_millis(700));
        let stopped = Instant::now();
        if lost {
            pair.ip(End::Near, &["link", "del", "near"]);
        } else {
            // `ip netns exec` becomes the program.
            let id = child.id().to_string();
            assert!(
                Command::new("kill")
                    .args(["-INT", &id])
                    .status()
                    .unwrap()
                    .success()
            );
        }
        let output = child.wait_with_output().unwrap();
        let (out, err) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        // Not a measurement, but a bound that distinguishes an end from a hang.
        assert!(stopped.elapsed() < Duration::from_secs(10), "{words} hung");
        let code = if lost { 1 } else { 130 };
        assert_eq!(output.status.code(), Some(code), "{words}: {err}");
        assert!(out.contains("sent"), "{words}: {out}");
    }
}
