//! A bare timer: sends one frame, from the same slot, at equal gaps; it only reads the clock and
//! makes the call. The yardstick of `cargo xtask bench link`: a sender with more work cannot keep
//! time better on the same machine.
//!
//!     bare_timer IF OCTETS COUNT GAP_NS

use fcn_link::backend::{self, BackendChoice, Options, Queue, SlotCount};
use fcn_link::clock::{Clock, Monotonic, Waiting};
use fcn_link::interface::Interface;
use fcn_link::transmit::Transmit;
use fcn_link::xdp::CopyMode;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::thread;

/// Time until the first frame, in nanoseconds: remaining work of the socket setup is done by then.
const START_DELAY: u64 = 50_000_000;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, len, count, gap] = &args[..] else {
        eprintln!("bare_timer IF OCTETS COUNT GAP_NS");
        return ExitCode::from(2);
    };
    let interface = Interface::named(name).unwrap();
    let (len, count, gap) = (
        len.parse().unwrap(),
        count.parse().unwrap(),
        gap.parse().unwrap(),
    );
    let options = Options {
        backend: BackendChoice::Xdp(CopyMode::Best),
        queues: 1,
        slots: SlotCount::all(2),
        max_frame_len: len,
    };
    let mut queues = backend::open(&interface, &options).unwrap();
    let Some(Queue::Xdp(link)) = queues.pop() else {
        unreachable!("AF_XDP was asked for")
    };
    let mut set = CpuSet::new();
    set.set(thread::available_parallelism().unwrap().get() - 1);
    sched_setaffinity(None, &set).unwrap();
    println!("{}", tick(*link, len, count, gap));
    ExitCode::SUCCESS
}

fn tick(mut link: impl Transmit, len: usize, count: u64, gap: u64) -> u64 {
    let never = AtomicBool::new(false);
    let mut clock = Monotonic::new(Waiting::Spin);
    let start = clock.now() + START_DELAY;
    for number in 0..count {
        let slot = loop {
            if let Some(slot) = link.take() {
                break slot;
            }
        };
        let frame = &mut link.bytes(&slot)[..len];
        frame.fill(0);
        frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xDD]);
        frame[14] = 0x60;
        clock.wait_until(start + number * gap, &never);
        link.push(slot, len);
        link.flush().unwrap();
    }
    link.counts().completed
}
