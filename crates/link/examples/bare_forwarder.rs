//! A bare AF_XDP forwarder: frames received on one interface leave by the other unchanged, in both
//! directions. With one interface, frames are returned with their MAC addresses swapped. The
//! yardstick of `cargo xtask bench link`: a forwarder that also inspects frames cannot be faster.
//!
//!     bare_forwarder IF [IF] SECONDS

use fcn_link::backend::BackendChoice;
use fcn_link::interface::Interface;
use fcn_link::port::{Options, Port, wait};
use fcn_link::xdp::CopyMode;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const LONGEST: usize = 1_514;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (names, seconds) = match args.split_last() {
        Some((seconds, names)) if (1..=2).contains(&names.len()) => (names, seconds),
        _ => {
            eprintln!("bare_forwarder IF [IF] SECONDS");
            return ExitCode::from(2);
        }
    };
    let options = Options {
        backend: BackendChoice::Xdp(CopyMode::Best),
        slots: 2_048,
        max_frame_len: LONGEST,
    };
    let open = |name: &String| Port::open(&Interface::named(name).unwrap(), &options).unwrap();
    let mut ports: Vec<Port> = names.iter().map(open).collect();
    let until = Instant::now() + Duration::from_secs_f64(seconds.parse().unwrap());
    while Instant::now() < until {
        let count = match &mut ports[..] {
            [a, b] => pass(a, b) + pass(b, a),
            one => one.iter_mut().map(reflect).sum(),
        };
        if count == 0 {
            wait(&mut ports, Duration::from_millis(50)).unwrap();
        }
    }
    ExitCode::SUCCESS
}

fn pass(from: &mut Port, to: &mut Port) -> usize {
    let count = from.receive(|frame| {
        to.send(frame, &[]).unwrap();
    });
    to.flush().unwrap();
    count
}

fn reflect(port: &mut Port) -> usize {
    // A port cannot send while it lends a frame.
    let mut frames = Vec::new();
    let count = port.receive(|frame| frames.push(frame.to_vec()));
    for frame in frames {
        let macs = [&frame[6..12], &frame[..6]].concat();
        port.send(&macs, &frame[12..]).unwrap();
    }
    port.flush().unwrap();
    count
}
