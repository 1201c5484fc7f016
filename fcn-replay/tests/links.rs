//! Captures replayed over veth pairs: what arrives, with every backend, queue and interface; and
//! conditions that end a run.
#![cfg(target_os = "linux")]

mod common;
#[path = "../../crates/link/tests/common/netns.rs"]
mod netns;

use common::{Done, Frame, PROGRAM, traffic, udp, write};
use netns::{End, Options, Pair};
use pcap::Capture;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Generous, as the machine may be busy. A run that hangs would never end.
const HANG: Duration = Duration::from_secs(30);
const BACKENDS: [&str; 2] = ["xdp", "packet"];

fn capture(frames: &[Frame]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.pcapng");
    write(&path, &["a", "b"], frames);
    (folder, path)
}

fn octets(frames: &[Frame]) -> Vec<Vec<u8>> {
    frames
        .iter()
        .map(|(_, _, octets, _)| octets.clone())
        .collect()
}

/// Returns a command for the program at the near end.
fn program(pair: &Pair, capture: &Path, options: &str) -> Command {
    let mut command = pair.command(End::Near, PROGRAM);
    command.arg(capture).args(["--iface", "near"]);
    command.args(options.split_whitespace());
    command.stdin(Stdio::null());
    command
}

fn replay(pair: &Pair, capture: &Path, options: &str) -> Done {
    Done::from_output(&program(pair, capture, options).output().unwrap())
}

/// Runs `send`, and returns the frames that arrive at the far end meanwhile, at most `count`.
fn arriving<T>(pair: &Pair, count: usize, send: impl FnOnce() -> T) -> (Vec<Vec<u8>>, T) {
    let (far, name) = (pair.entry(End::Far), pair.interface(End::Far));
    let (ready, is_ready) = channel();
    let sent = AtomicBool::new(false);
    thread::scope(|scope| {
        let arrivals = scope.spawn(|| {
            far.enter();
            // With room for all of them, so that nothing is lost even if this thread runs late.
            let mut socket = Capture::from_device(name)
                .unwrap()
                .promisc(true)
                .immediate_mode(true)
                .snaplen(2_000)
                .buffer_size(32 << 20)
                .open()
                .unwrap()
                // Otherwise libpcap waits for ever if nothing arrives.
                .setnonblock()
                .unwrap();
            ready.send(()).unwrap();
            let mut frames = Vec::new();
            let mut receive = |frames: &mut Vec<Vec<u8>>| match socket.next_packet() {
                Ok(packet) => {
                    frames.push(packet.data.to_vec());
                    true
                }
                Err(pcap::Error::TimeoutExpired) => {
                    thread::sleep(Duration::from_millis(1));
                    false
                }
                Err(error) => panic!("{error}"),
            };
            let mut since = Instant::now();
            while frames.len() < count && since.elapsed() < Duration::from_secs(2) {
                receive(&mut frames);
                if !sent.load(Ordering::Relaxed) {
                    since = Instant::now();
                }
            }
            // An excess frame would arrive now.
            thread::sleep(Duration::from_millis(100));
            while receive(&mut frames) {}
            frames
        });
        is_ready.recv().unwrap();
        let done = send();
        sent.store(true, Ordering::Relaxed);
        (arrivals.join().unwrap(), done)
    })
}

/// Returns the number of frames that the kernel has received at that end.
fn received(pair: &Pair, end: End) -> u64 {
    let name = pair.interface(end);
    pair.inside(end, || {
        let file = format!("/sys/class/net/{name}/statistics/rx_packets");
        fs::read_to_string(file).unwrap().trim().parse().unwrap()
    })
}

#[test]
fn every_octet_arrives_in_order() {
    let Some(pair) = Pair::new("contents") else {
        return;
    };
    let frames = traffic(300, 20_000);
    let (_folder, path) = capture(&frames);
    for backend in BACKENDS {
        for way in [
            "--rate 20kpps",
            "",
            "--rate 20kpps --preload no --memory-limit 64KiB",
        ] {
            let (arrived, done) = arriving(&pair, 600, || {
                replay(
                    &pair,
                    &path,
                    &format!("--backend {backend} --loops 2 --json -q {way}"),
                )
                .sent()
            });
            assert_eq!(arrived.len(), 600, "{backend} {way}");
            let expected = octets(&frames);
            assert!(
                arrived[..300] == expected && arrived[300..] == expected,
                "{backend} {way}"
            );
            let report = done.json();
            assert_eq!(report["sent"], 600);
            assert_eq!(report["loops"], 2);
            let mode = report["queues"][0]["mode"]["kind"].to_string();
            assert_eq!(mode.contains("xdp"), backend == "xdp", "{mode}");
        }
    }
}

#[test]
fn loops_at_top_speed_lose_and_duplicate_nothing() {
    let options = Options {
        queues: 2,
        ..Options::default()
    };
    let Some(pair) = Pair::with("loops", &options) else {
        return;
    };
    let (_folder, path) = capture(&traffic(257, 1_000));
    for backend in BACKENDS {
        for queues in [1, 2] {
            for way in ["", "--vary psn,flow", "--preload no"] {
                let before = received(&pair, End::Far);
                let done = replay(
                    &pair,
                    &path,
                    &format!(
                        "--top --loops 40 --backend {backend} --queues {queues} --json -q {way}"
                    ),
                )
                .well();
                let arrived = received(&pair, End::Far) - before;
                assert_eq!(arrived, 257 * 40, "{backend} {queues} {way}");
                assert_eq!(done.json()["sent"], arrived);
            }
        }
    }
}

#[test]
fn flows_stay_in_order_on_two_queues() {
    let options = Options {
        queues: 2,
        ..Options::default()
    };
    let Some(pair) = Pair::with("flows", &options) else {
        return;
    };
    let frames = traffic(350, 50_000);
    let (_folder, path) = capture(&frames);
    for way in ["", "--rate 10kpps"] {
        let (arrived, _) = arriving(&pair, 350, || {
            replay(&pair, &path, &format!("--queues 2 {way}")).sent()
        });
        let sorted = |mut frames: Vec<Vec<u8>>| {
            frames.sort();
            frames
        };
        assert!(sorted(arrived.clone()) == sorted(octets(&frames)), "{way}");
        for port in 1_000..1_007u16 {
            let with_port = |frames: &[Vec<u8>]| -> Vec<Vec<u8>> {
                let port = port.to_be_bytes();
                frames
                    .iter()
                    .filter(|frame| frame[34..36] == port)
                    .cloned()
                    .collect()
            };
            assert!(
                with_port(&arrived) == with_port(&octets(&frames)),
                "port {port}"
            );
        }
    }
}

#[test]
fn two_interfaces_send_a_direction_each() {
    let Some(pair) = Pair::new("directions") else {
        return;
    };
    // A second pair inside the near namespace.
    pair.ip(
        End::Near,
        &["link", "add", "one", "type", "veth", "peer", "name", "two"],
    );
    for name in ["one", "two"] {
        pair.ip(End::Near, &["link", "set", name, "up"]);
    }
    let frames: Vec<Frame> = (0..60u64)
        .map(|i| {
            let back = i % 3 == 2;
            let (from, to) = if back { (2, 1) } else { (1, 2) };
            (
                u32::from(back),
                i * 100_000,
                udp(from, to, (7, 8), i, 100),
                100,
            )
        })
        .collect();
    let (_folder, path) = capture(&frames);
    let there: Vec<Vec<u8>> = octets(&frames)
        .into_iter()
        .filter(|frame| frame[29] == 1)
        .collect();
    let count = |name: &str| -> u64 {
        pair.inside(End::Near, || {
            let file = format!("/sys/class/net/{name}/statistics/tx_packets");
            fs::read_to_string(file).unwrap().trim().parse().unwrap()
        })
    };
    for split in ["first-seen", "10.0.0.1", "interface"] {
        for backend in BACKENDS {
            let before = count("one");
            let (arrived, done) = arriving(&pair, there.len(), || {
                let options = format!("--iface2 one --split {split} --backend {backend} --json -q");
                replay(&pair, &path, &options).sent()
            });
            assert!(arrived == there, "{split} {backend}");
            assert_eq!(count("one") - before, 20, "{split} {backend}");
            assert_eq!(done.json()["sent"], 60);
        }
    }
    let done = replay(&pair, &path, "--iface2 near --split interface");
    assert_eq!(done.code, 2, "{done:?}");
}

#[test]
fn unsendable_frames_are_omitted_and_reported() {
    let Some(pair) = Pair::new("left out") else {
        return;
    };
    let mut frames = traffic(4, 1_000);
    let with = |octets: Vec<u8>, wire_len: usize| (0, 1_000_100_000, octets, wire_len as u32);
    frames.push(with(udp(1, 2, (1, 2), 9, 1_600), 1_600));
    frames.push(with(udp(1, 2, (1, 2), 9, 1_514), 1_514));
    frames.push(with(udp(1, 2, (1, 2), 9, 100), 200));
    let mut pause = vec![0; 60];
    pause[12..14].copy_from_slice(&[0x88, 0x08]);
    frames.push(with(pause, 60));
    frames.push(with(vec![1; 10], 10));
    let (_folder, path) = capture(&frames);
    let done = replay(&pair, &path, "--top --json -q").well();
    let report = done.json();
    assert_eq!(report["sent"], 5);
    assert_eq!(report["capture"]["read"], 9);
    assert_eq!(
        report["capture"]["left_out"],
        serde_json::json!({ "cut": 1, "long": 1, "pause": 1, "short": 1 })
    );
    let dry = replay(&pair, &path, "--dry-run --json").well().json();
    assert_eq!(dry["capture"], report["capture"]);
    let done = replay(&pair, &path, "--top --frames 5,7-9");
    assert_eq!(done.code, 1);
    assert!(done.err.contains("nothing to send"), "{done:?}");
    let with_pause = replay(&pair, &path, "--top --send-pause --json -q").well();
    assert_eq!(with_pause.json()["sent"], 6);
}

/// Starts an endless run of the program, applies `what` to it, and returns its result and the time
/// it took to end.
fn interrupted(command: &mut Command, what: impl FnOnce(u32)) -> (Done, Duration) {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let id = child.id();
    thread::sleep(Duration::from_millis(800));
    what(id);
    let since = Instant::now();
    let (over, is_over) = channel();
    let waiting = thread::spawn(move || {
        let output = child.wait_with_output().unwrap();
        let _ = over.send(());
        output
    });
    if is_over.recv_timeout(HANG).is_err() {
        kill_process(Pid::from_raw(id as i32).unwrap(), Signal::KILL).unwrap();
        panic!("it hangs");
    }
    let took = since.elapsed();
    (Done::from_output(&waiting.join().unwrap()), took)
}

#[test]
fn ctrl_c_ends_with_a_report_and_130() {
    let Some(pair) = Pair::new("Ctrl-C") else {
        return;
    };
    let (_folder, path) = capture(&traffic(100, 1_000_000));
    for way in [
        "--top",
        "",
        "--speed 0.0001",
        "--top --preload no",
        "--rate 1kpps --preload no",
    ] {
        // `ip netns exec` becomes the program.
        let mut command = program(&pair, &path, &format!("--forever --json {way}"));
        let (done, took) = interrupted(&mut command, |id| {
            kill_process(Pid::from_raw(id as i32).unwrap(), Signal::INT).unwrap();
        });
        assert_eq!(done.code, 130, "{way}: {done:?}");
        let report = done.json();
        assert_eq!(report["ended"]["why"], "interrupted");
        assert!(report["sent"].as_u64().unwrap() > 0, "{way}");
        println!("{way}: ended after {took:?}");
    }
}

#[test]
fn a_link_that_goes_away_ends_with_a_report_and_1() {
    for way in [
        "--top",
        "--rate 1kpps",
        "--top --preload no",
        "--top --backend packet",
    ] {
        let Some(pair) = Pair::new("a link that goes away") else {
            return;
        };
        let (_folder, path) = capture(&traffic(100, 1_000_000));
        let mut command = program(&pair, &path, &format!("--forever --json {way}"));
        let (done, _) = interrupted(&mut command, |_| {
            pair.ip(End::Near, &["link", "del", "near"]);
        });
        assert_eq!(done.code, 1, "{way}: {done:?}");
        let report = done.json();
        assert_eq!(report["ended"]["why"], "link-failed", "{way}");
        assert!(report["sent"].as_u64().unwrap() > 0, "{way}");
        println!("{way}: {}", done.err.lines().last().unwrap_or_default());
    }
}

#[test]
fn a_time_limit_ends_well() {
    let Some(pair) = Pair::new("time limit") else {
        return;
    };
    let (_folder, path) = capture(&traffic(100, 1_000_000));
    for way in ["--top", "--rate 1kpps", "--preload no"] {
        let options = format!("--forever --duration 300ms --json -q {way}");
        let report = replay(&pair, &path, &options).sent().json();
        assert_eq!(report["ended"]["why"], "time-up", "{way}");
        assert!(report["sent"].as_u64().unwrap() > 0, "{way}");
    }
}

#[test]
fn a_run_that_ends_late_says_so_and_ends_with_5() {
    let Some(pair) = Pair::new("late") else {
        return;
    };
    let (_folder, path) = capture(&traffic(100, 1_000));
    // Due within 30 µs, which no machine can do.
    let options = "--loops 3000 --rate 10000Mpps --backend packet";
    let done = replay(&pair, &path, options);
    assert_eq!(done.code, 5, "{done:?}");
    let last = done.out.lines().last().unwrap_or_default();
    assert!(
        last.starts_with("behind ") && last.ends_with(" s behind schedule"),
        "{last}"
    );
    assert!(done.err.contains("behind schedule: "), "{}", done.err);
    let done = replay(&pair, &path, &format!("{options} --json -q"));
    assert_eq!(done.code, 5, "{done:?}");
    let behind = done.json()["timing"]["behind_ns"].as_u64().unwrap();
    assert!(behind > 100_000_000, "{behind}");
    // Without times, nothing can be late.
    replay(&pair, &path, "--loops 3000 --top -q").well();
}

#[test]
fn a_missing_interface_is_a_usage_error() {
    let (_folder, path) = capture(&traffic(2, 1));
    let path = path.to_str().unwrap();
    let done = common::replay([path, "--iface", "no-such-if0"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.err.contains("no-such-if0"), "{done:?}");
}
