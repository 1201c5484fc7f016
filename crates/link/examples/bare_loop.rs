//! A bare AF_XDP loop: sends one frame repeatedly, from the same slots, as fast as the link takes
//! it. The yardstick of `cargo xtask bench link`: a sender that changes every frame cannot be
//! faster than one that changes none.
//!
//!     bare_loop IF QUEUES OCTETS SECONDS [SLOTS]
//!
//! With as many slots as a capture has frames, it uses as much memory as a replay of that capture.

use fcn_link::backend::{self, BackendChoice, Options, Queue, SlotCount};
use fcn_link::interface::Interface;
use fcn_link::transmit::Transmit;
use fcn_link::xdp::CopyMode;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::collections::VecDeque;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

const BURST: usize = 32;
/// A number of slots that fit in the cache, as one frame would.
const FEW: usize = 64;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (name, queues, len, seconds, slots) = match &args[..] {
        [name, queues, len, seconds] => (name, queues, len, seconds, FEW),
        [name, queues, len, seconds, slots] => (name, queues, len, seconds, slots.parse().unwrap()),
        _ => {
            eprintln!("bare_loop IF QUEUES OCTETS SECONDS [SLOTS]");
            return ExitCode::from(2);
        }
    };
    let interface = Interface::named(name).unwrap();
    let options = Options {
        backend: BackendChoice::Xdp(CopyMode::Best),
        queues: queues.parse().unwrap(),
        slots: SlotCount {
            copying: slots,
            ..SlotCount::default()
        },
        max_frame_len: len.parse().unwrap(),
    };
    let for_ = Duration::from_secs_f64(seconds.parse().unwrap());
    let queues = backend::open(&interface, &options).unwrap();
    let processors = thread::available_parallelism().unwrap().get();
    let sent: u64 = thread::scope(|scope| {
        let threads: Vec<_> = queues
            .into_iter()
            .enumerate()
            .map(|(i, queue)| {
                scope.spawn(move || {
                    let mut set = CpuSet::new();
                    set.set(processors - 1 - i % processors);
                    sched_setaffinity(None, &set).unwrap();
                    let Queue::Xdp(link) = queue else {
                        unreachable!("AF_XDP was asked for")
                    };
                    resend(*link, options.max_frame_len, for_)
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).sum()
    });
    println!("{sent}");
    ExitCode::SUCCESS
}

fn resend(mut link: impl Transmit, len: usize, for_: Duration) -> u64 {
    // Slots are used in turn; otherwise the few that are returned first would always be reused.
    let mut all = VecDeque::new();
    while let Some(slot) = link.take() {
        let frame = &mut link.bytes(&slot)[..len];
        frame.fill(0);
        frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xDD]);
        frame[14] = 0x60;
        all.push_back(slot);
    }
    let until = Instant::now() + for_;
    while Instant::now() < until {
        for slot in all.drain(..BURST.min(all.len())) {
            link.push(slot, len);
        }
        link.flush().unwrap();
        while let Some(slot) = link.take() {
            all.push_back(slot);
        }
    }
    link.flush().unwrap();
    link.counts().completed
}
