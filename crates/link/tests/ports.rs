//! An interface in both directions: frames sent by one end are reflected by the other, by AF_XDP
//! and by AF_PACKET.

#[path = "common/netns.rs"]
mod netns;

use fcn_link::backend::BackendChoice;
use fcn_link::interface::Interface;
use fcn_link::port::{Options, Port, wait};
use fcn_link::xdp::CopyMode;
use netns::{End, Pair};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const COUNT: usize = 3_000;
/// Maximum time that a frame waits for its answer, however busy the machine is.
const TIMEOUT: Duration = Duration::from_secs(20);

fn open(name: &str, backend: BackendChoice) -> Port {
    let interface = Interface::named(name).unwrap();
    let options = Options {
        backend,
        slots: 256,
        max_frame_len: 9_014,
    };
    Port::open(&interface, &options).unwrap()
}

/// Builds frame number `n` from `from` to `to`: lengths from the shortest to those of several
/// chunks, and no, one or two VLAN tags.
fn frame(n: usize, from: [u8; 6], to: [u8; 6]) -> Vec<u8> {
    let len = [60, 61, 1_514, 2_048, 5_000, 9_014][n % 6];
    let mut frame = vec![n as u8; len];
    frame[..6].copy_from_slice(&to);
    frame[6..12].copy_from_slice(&from);
    let tags = [
        &[][..],
        &[0x81, 0, 0x60, 5],
        &[0x88, 0xA8, 0, 5, 0x81, 0, 0, 7],
    ][n / 6 % 3];
    let behind = [tags, &[0x88, 0xB5], &(n as u32).to_be_bytes()].concat();
    frame[12..12 + behind.len()].copy_from_slice(&behind);
    frame
}

/// Returns received frames with swapped addresses until `over`.
fn reflect(port: Port, over: &AtomicBool) {
    let mut ports = [port];
    let mut frames = Vec::new();
    while !over.load(Ordering::Relaxed) {
        ports[0].receive(|frame| frames.push(frame.to_vec()));
        for mut frame in frames.drain(..) {
            let (to, rest) = frame.split_at_mut(6);
            to.swap_with_slice(&mut rest[..6]);
            assert!(ports[0].send(&frame, &[]).unwrap());
        }
        ports[0].flush().unwrap();
        wait(&mut ports, Duration::from_millis(5)).unwrap();
    }
}

fn exchange(pair: &Pair, near: BackendChoice, far: BackendChoice) {
    let (over, ready) = (AtomicBool::new(false), AtomicBool::new(false));
    let macs = End::BOTH.map(|end| pair.mac(end));
    thread::scope(|scope| {
        scope.spawn(|| {
            pair.inside(End::Far, || {
                let port = open(pair.interface(End::Far), far);
                ready.store(true, Ordering::Release);
                reflect(port, &over);
            });
        });
        while !ready.load(Ordering::Acquire) {
            thread::sleep(Duration::from_millis(1));
        }
        let got = pair.inside(End::Near, || {
            let mut ports = [open(pair.interface(End::Near), near)];
            println!("{}", ports[0].mode());
            let (mut sent, mut got) = (0, Vec::new());
            let mut heard = Instant::now();
            while got.len() < COUNT && heard.elapsed() < TIMEOUT {
                // Only a few at a time: a veth's queue holds 256.
                while sent < COUNT && sent < got.len() + 32 {
                    assert!(ports[0].send(&[], &frame(sent, macs[0], macs[1])).unwrap());
                    sent += 1;
                }
                ports[0].flush().unwrap();
                let count = ports[0].receive(|frame| got.push(frame.to_vec()));
                if count > 0 {
                    heard = Instant::now();
                }
                wait(&mut ports, Duration::from_millis(5)).unwrap();
            }
            assert_eq!(ports[0].refused(), 0);
            assert_eq!(ports[0].counts().pushed, COUNT as u64);
            got
        });
        over.store(true, Ordering::Relaxed);
        assert_eq!(got.len(), COUNT, "{near:?}, {far:?}");
        for (n, got) in got.iter().enumerate() {
            // In order, and without the frames that this end has sent itself.
            assert_eq!(*got, frame(n, macs[1], macs[0]), "{near:?}, {far:?}: {n}");
        }
    });
}

#[test]
fn frames_come_back_complete_and_in_order() {
    let options = netns::Options {
        mtu: 9_000,
        ..netns::Options::default()
    };
    let Some(pair) = Pair::with("what_is_sent_comes_back", &options) else {
        return;
    };
    let xdp = BackendChoice::Xdp(CopyMode::Always);
    for (near, far) in [
        (xdp, xdp),
        (BackendChoice::PacketSocket, xdp),
        (xdp, BackendChoice::PacketSocket),
        (BackendChoice::PacketSocket, BackendChoice::PacketSocket),
    ] {
        exchange(&pair, near, far);
    }
    for end in End::BOTH {
        assert!(!pair.has_xdp_program(end));
    }
}

#[test]
fn a_port_leaves_nothing_behind() {
    let Some(pair) = Pair::new("a_port_leaves_nothing_behind") else {
        return;
    };
    let flags = || {
        pair.inside(End::Near, || {
            std::fs::read_to_string("/sys/class/net/near/flags").unwrap()
        })
    };
    let before = flags();
    for wanted in [BackendChoice::Best, BackendChoice::PacketSocket] {
        pair.inside(End::Near, || {
            let port = open("near", wanted);
            assert!(port.mode().starts_with(match wanted {
                BackendChoice::Best => "AF_XDP, copy, driver mode",
                _ => "AF_PACKET",
            }));
        });
        assert_eq!(flags(), before);
        assert!(!pair.has_xdp_program(End::Near));
    }
}

/// Uses a port until it has reported this number of messages, and returns them; sends a frame each
/// time.
fn told(ports: &mut [Port; 1], count: usize) -> Vec<String> {
    let (since, mut told) = (Instant::now(), Vec::new());
    while told.len() < count {
        assert!(since.elapsed() < TIMEOUT, "{told:?}");
        ports[0].send(&[], &frame(0, [2; 6], [4; 6])).unwrap();
        ports[0].flush().unwrap();
        ports[0].receive(|_| ());
        told.extend(ports[0].poll_link());
        wait(ports, Duration::from_millis(5)).unwrap();
    }
    told
}

/// Returns true if a frame that is now sent repeatedly arrives at the other end.
fn arrives(pair: &Pair, ports: &mut [Port; 1]) -> bool {
    let ready = AtomicBool::new(false);
    thread::scope(|scope| {
        let far = scope.spawn(|| {
            pair.inside(End::Far, || {
                let mut ports = [open(pair.interface(End::Far), BackendChoice::PacketSocket)];
                ready.store(true, Ordering::Release);
                let (since, mut got) = (Instant::now(), 0);
                while got == 0 && since.elapsed() < TIMEOUT {
                    got += ports[0].receive(|_| ());
                    wait(&mut ports, Duration::from_millis(5)).unwrap();
                }
                got > 0
            })
        });
        while !far.is_finished() {
            if ready.load(Ordering::Acquire) {
                ports[0].send(&[], &frame(0, [2; 6], [4; 6])).unwrap();
                ports[0].flush().unwrap();
            }
            thread::sleep(Duration::from_millis(5));
        }
        far.join().unwrap()
    })
}

#[test]
fn a_port_recovers_after_an_outage() {
    let Some(pair) = Pair::new("a_port_that_was_down") else {
        return;
    };
    for wanted in [BackendChoice::Best, BackendChoice::PacketSocket] {
        pair.inside(End::Near, || {
            let mut ports = [open("near", wanted)];
            assert!(arrives(&pair, &mut ports), "{wanted:?}");
            for (count, end) in [(1, End::Near), (2, End::Far)] {
                let name = pair.interface(end);
                pair.ip(end, &["link", "set", name, "down"]);
                let text = told(&mut ports, 1).concat();
                assert!(text.contains("down") || text.contains("carrier"), "{text}");
                assert!(ports[0].outage_reason().is_some());
                let lost = ports[0].outages().lost;
                assert!(!ports[0].send(&[], &frame(0, [2; 6], [4; 6])).unwrap());
                assert_eq!(ports[0].outages().lost, lost + 1);
                pair.ip(end, &["link", "set", name, "up"]);
                let text = told(&mut ports, 1).concat();
                assert!(text.contains("is back"), "{text}");
                assert_eq!(ports[0].outage_reason(), None);
                let outages = ports[0].outages();
                assert_eq!(outages.count, count);
                assert!(outages.time > Duration::ZERO);
                pair.wait_for_carrier(End::Near);
                assert!(arrives(&pair, &mut ports), "{wanted:?}");
            }
            let pushed = ports[0].counts().pushed;
            // Another interface with the same name.
            pair.ip(End::Near, &["link", "set", "near", "name", "gone"]);
            assert_eq!(told(&mut ports, 1).len(), 1);
            pair.ip(End::Near, &["link", "set", "gone", "name", "near"]);
            assert!(told(&mut ports, 1).concat().contains("is back"));
            assert!(arrives(&pair, &mut ports), "{wanted:?}");
            assert!(ports[0].counts().pushed > pushed, "what was before counts");
        });
        assert!(!pair.has_xdp_program(End::Near));
    }
}
