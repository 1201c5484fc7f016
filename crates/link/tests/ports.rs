//! An interface both ways: what one end sends, the other reflects, by AF_XDP and by AF_PACKET.

#[path = "common/netns.rs"]
mod netns;

use fcn_link::backend::Wanted;
use fcn_link::interface::Interface;
use fcn_link::port::{Options, Port, wait};
use fcn_link::xdp::Copying;
use netns::{End, Pair};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const COUNT: usize = 3_000;
/// A frame waits no longer than that for its answer, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(20);

fn open(name: &str, wanted: Wanted) -> Port {
    let interface = Interface::named(name).unwrap();
    let options = Options {
        wanted,
        slots: 256,
        longest: 9_014,
    };
    Port::open(&interface, &options).unwrap()
}

/// Frame number `n` from `from` to `to`: lengths from the shortest to those of several chunks.
fn frame(n: usize, from: [u8; 6], to: [u8; 6]) -> Vec<u8> {
    let len = [60, 61, 1_514, 2_048, 5_000, 9_014][n % 6];
    let mut frame = vec![n as u8; len];
    frame[..6].copy_from_slice(&to);
    frame[6..12].copy_from_slice(&from);
    frame[12..14].copy_from_slice(&[0x88, 0xB5]);
    frame[14..18].copy_from_slice(&(n as u32).to_be_bytes());
    frame
}

/// Sends back what comes, with the addresses exchanged, until `over`.
fn reflect(port: Port, over: &AtomicBool) {
    let mut ports = [port];
    let mut frames = Vec::new();
    while !over.load(Ordering::Relaxed) {
        ports[0]
            .receive(|frame| frames.push(frame.to_vec()))
            .unwrap();
        for mut frame in frames.drain(..) {
            let (to, rest) = frame.split_at_mut(6);
            to.swap_with_slice(&mut rest[..6]);
            assert!(ports[0].send(&frame).unwrap());
        }
        ports[0].flush().unwrap();
        wait(&ports, Duration::from_millis(5)).unwrap();
    }
}

fn exchange(pair: &Pair, near: Wanted, far: Wanted) {
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
            while got.len() < COUNT && heard.elapsed() < PATIENCE {
                // Few at a time: a veth's queue holds 256.
                while sent < COUNT && sent < got.len() + 32 {
                    assert!(ports[0].send(&frame(sent, macs[0], macs[1])).unwrap());
                    sent += 1;
                }
                ports[0].flush().unwrap();
                let count = ports[0].receive(|frame| got.push(frame.to_vec())).unwrap();
                if count > 0 {
                    heard = Instant::now();
                }
                wait(&ports, Duration::from_millis(5)).unwrap();
            }
            assert_eq!(ports[0].refused(), 0);
            assert_eq!(ports[0].counts().pushed, COUNT as u64);
            got
        });
        over.store(true, Ordering::Relaxed);
        assert_eq!(got.len(), COUNT, "{near:?}, {far:?}");
        for (n, got) in got.iter().enumerate() {
            // In order; and none of the frames that this end has sent itself.
            assert_eq!(*got, frame(n, macs[1], macs[0]), "{near:?}, {far:?}: {n}");
        }
    });
}

#[test]
fn what_is_sent_comes_back_whole_and_in_order() {
    let options = netns::Options {
        mtu: 9_000,
        ..netns::Options::default()
    };
    let Some(pair) = Pair::with("what_is_sent_comes_back", &options) else {
        return;
    };
    let xdp = Wanted::Xdp(Copying::Always);
    for (near, far) in [
        (xdp, xdp),
        (Wanted::PacketSocket, xdp),
        (xdp, Wanted::PacketSocket),
        (Wanted::PacketSocket, Wanted::PacketSocket),
    ] {
        exchange(&pair, near, far);
    }
    for end in End::BOTH {
        assert!(!pair.has_xdp_program(end));
    }
}

#[test]
fn a_port_leaves_nothing_behind_and_says_when_its_interface_is_gone() {
    let Some(pair) = Pair::new("a_port_leaves_nothing_behind") else {
        return;
    };
    let flags = || {
        pair.inside(End::Near, || {
            std::fs::read_to_string("/sys/class/net/near/flags").unwrap()
        })
    };
    let before = flags();
    for wanted in [Wanted::Best, Wanted::PacketSocket] {
        pair.inside(End::Near, || {
            let port = open("near", wanted);
            assert!(port.mode().starts_with(match wanted {
                Wanted::Best => "AF_XDP, copy, driver mode",
                _ => "AF_PACKET",
            }));
        });
        assert_eq!(flags(), before);
        assert!(!pair.has_xdp_program(End::Near));
    }
    for wanted in [Wanted::Best, Wanted::PacketSocket] {
        pair.inside(End::Near, || {
            let mut ports = [open("near", wanted)];
            pair.ip(End::Near, &["link", "set", "near", "down"]);
            let since = Instant::now();
            let failed = loop {
                let received = ports[0].receive(|_| ()).is_err();
                let sent = ports[0].send(&[0; 60]).and_then(|_| ports[0].flush());
                if received || sent.is_err() || wait(&ports, Duration::from_millis(5)).is_err() {
                    break true;
                }
                if since.elapsed() > PATIENCE {
                    break false;
                }
            };
            assert!(failed, "{wanted:?}");
        });
        pair.ip(End::Near, &["link", "set", "near", "up"]);
        pair.wait_for_carrier(End::Near);
    }
}
