//! Frames that a receiver can check: numbered, of any length, with every octet known. Also their
//! exchange between two interfaces, which is used by the tests in namespaces and the check in an
//! emulated guest.
#![allow(dead_code, reason = "each program uses a part of it")]

use fcn_link::backend::{self, BackendChoice, Options, SlotCount};
use fcn_link::interface::Interface;
use fcn_link::port::{self, Port};
use fcn_link::sender::{self, Job, Next, Report, Settings, Source};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A local experimental EtherType that nothing else on the link uses.
const ETHER_TYPE: [u8; 2] = [0x88, 0xB5];
/// Minimum length of a frame in octets: addresses, EtherType, queue, number.
pub const SHORTEST: usize = 14 + 4 + 8;
/// Maximum number of frames, and of their octets, that are sent and not yet received: the default
/// capacity of a socket.
const WINDOW: (u64, u64) = (128, 60_000);
/// A receiver that should always find more waits for this many frames, at most this long: frames
/// handed to a sender have not arrived yet.
const MORE: u64 = 96;
const MORE_WITHIN: Duration = Duration::from_millis(5);
/// Maximum time for the last frames.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Fills `body` with a cheap stream of octets, different for every frame.
fn fill_body(body: &mut [u8], queue: u32, number: u64) {
    let mut state = number
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .wrapping_add(u64::from(queue) + 1);
    for place in body.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        place.copy_from_slice(&state.to_le_bytes()[..place.len()]);
    }
}

/// Fills `frame` with frame `number` of `queue`.
pub fn write(frame: &mut [u8], destination: [u8; 6], queue: u32, number: u64) {
    frame[..6].copy_from_slice(&destination);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    frame[12..14].copy_from_slice(&ETHER_TYPE);
    frame[14..18].copy_from_slice(&queue.to_be_bytes());
    frame[18..26].copy_from_slice(&number.to_be_bytes());
    fill_body(&mut frame[26..], queue, number);
}

/// Returns queue and number of a frame of ours, after checking its octets.
pub fn read(frame: &[u8]) -> Option<Result<(u32, u64), String>> {
    if frame.get(12..14) != Some(&ETHER_TYPE[..]) || frame.len() < SHORTEST {
        return None;
    }
    let queue = u32::from_be_bytes(frame[14..18].try_into().unwrap());
    let number = u64::from_be_bytes(frame[18..26].try_into().unwrap());
    let mut expected = vec![0; frame.len()];
    write(&mut expected, frame[..6].try_into().unwrap(), queue, number);
    Some(if expected == frame {
        Ok((queue, number))
    } else {
        Err(format!(
            "frame {number} of queue {queue} arrived with other octets"
        ))
    })
}

/// A source of numbered frames of several lengths, in turn.
pub struct Numbered {
    pub destination: [u8; 6],
    pub queue: u32,
    pub next: u64,
    pub count: u64,
    pub lens: Vec<usize>,
    /// Maximum number of frames sent ahead of those that arrived.
    pub window: u64,
    /// Counts of frames that all queues have sent and of those that arrived; `None` if they are not
    /// counted.
    pub flow: Option<(Arc<AtomicU64>, Arc<AtomicU64>)>,
}

impl Numbered {
    fn len(&self) -> usize {
        self.lens[(self.next % self.lens.len() as u64) as usize]
    }
}

impl Source for Numbered {
    fn peek(&mut self) -> Next {
        if self.next == self.count {
            return Next::End;
        }
        if let Some((sent, arrived)) = &self.flow
            && sent.load(Ordering::Relaxed) >= arrived.load(Ordering::Relaxed) + self.window
        {
            return Next::NotYet;
        }
        Next::Frame {
            at: 0,
            len: self.len(),
        }
    }

    fn fill(&mut self, _: usize, out: &mut [u8]) {
        let len = self.len();
        write(&mut out[..len], self.destination, self.queue, self.next);
        self.skip();
    }

    fn skip(&mut self) {
        self.next += 1;
        if let Some((sent, _)) = &self.flow {
            sent.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Numbered {
    /// Creates a source of frames of one length, without flow control.
    pub fn free(queue: u32, count: u64, len: usize) -> Self {
        Self {
            destination: [0xFF; 6],
            queue,
            next: 0,
            count,
            lens: vec![len],
            window: 0,
            flow: None,
        }
    }
}

/// Sends `count` frames of `len` octets by each of `queues` queues of `interface`, as fast as
/// possible.
pub fn blast(
    interface: &str,
    backend: BackendChoice,
    queues: u32,
    count: u64,
    len: usize,
) -> Report {
    let interface = Interface::named(interface).unwrap();
    let options = Options {
        backend,
        queues,
        slots: SlotCount::default(),
        max_frame_len: len,
    };
    let jobs = backend::open(&interface, &options)
        .unwrap()
        .into_iter()
        .zip(0..)
        .map(|(queue, number)| Job {
            queue,
            source: Numbered::free(number, count, len),
            settings: Settings::TOP,
        })
        .collect();
    sender::run(jobs, &[&interface], &AtomicBool::new(false), &mut |_| {}).0
}

/// Parameters of an exchange.
#[derive(Clone, Debug)]
pub struct Exchange {
    pub backend: BackendChoice,
    pub queues: u32,
    /// Number of frames of each queue.
    pub count: u64,
    pub lens: Vec<usize>,
    /// Backend of the receiver.
    pub by: BackendChoice,
    /// True if the receiver is slow enough to always find another frame after taking one.
    pub always_more: bool,
}

/// Result of an exchange.
pub struct Outcome {
    pub report: Report,
    pub arrived: u64,
    /// Mode of the receiver.
    pub received_by: String,
    /// Errors, if any.
    pub complaints: String,
}

/// Checks the frames that arrive.
struct Arrivals {
    next: Vec<u64>,
    arrived: Arc<AtomicU64>,
    /// Count of frames sent, if the receiver is to wait for more.
    wait_for: Option<Arc<AtomicU64>>,
    complaints: String,
}

impl Arrivals {
    fn take(&mut self, frame: &[u8]) {
        if let Some(sent) = &self.wait_for {
            let since = Instant::now();
            while sent.load(Ordering::Relaxed) < self.arrived.load(Ordering::Relaxed) + MORE
                && since.elapsed() < MORE_WITHIN
            {
                std::hint::spin_loop();
            }
        }
        self.read(frame);
    }

    fn read(&mut self, frame: &[u8]) {
        match read(frame) {
            None => {}
            Some(Err(complaint)) => self.complain(&complaint),
            Some(Ok((queue, number))) => {
                match self.next.get(queue as usize).copied() {
                    Some(next) if next == number => {}
                    next => {
                        self.complain(&format!("queue {queue}: {number} came, {next:?} was next"));
                    }
                }
                if let Some(next) = self.next.get_mut(queue as usize) {
                    *next = number + 1;
                }
                self.arrived.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn complain(&mut self, what: &str) {
        if self.complaints.len() < 2_000 {
            let _ = writeln!(self.complaints, "{what}");
        }
    }
}

/// Sends from `near` to `far`, interfaces of the namespaces that the `enter` functions enter, and
/// checks what arrives.
pub fn exchange(
    plan: &Exchange,
    (near, enter_near): (&str, impl FnOnce() + Send),
    (far, enter_far): (&str, impl FnOnce() + Send),
    destination: [u8; 6],
) -> Outcome {
    let arrived = Arc::new(AtomicU64::new(0));
    let sent = Arc::new(AtomicU64::new(0));
    let done = AtomicBool::new(false);
    let ready = AtomicBool::new(false);
    let max_frame_len = plan.lens.iter().copied().max().unwrap();
    let total = plan.count * u64::from(plan.queues);
    thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            enter_far();
            let mut arrivals = Arrivals {
                next: vec![0; plan.queues as usize],
                arrived: Arc::clone(&arrived),
                wait_for: plan.always_more.then(|| Arc::clone(&sent)),
                complaints: String::new(),
            };
            let how = receive(plan.by, far, max_frame_len, (&ready, &done), &mut arrivals);
            (how, arrivals.complaints)
        });
        let sender = scope.spawn(|| {
            enter_near();
            let since = Instant::now();
            while !ready.load(Ordering::Relaxed) {
                assert!(since.elapsed() < TIMEOUT, "the receiver could not begin");
                thread::sleep(Duration::from_millis(1));
            }
            let interface = Interface::named(near).unwrap();
            let options = Options {
                backend: plan.backend,
                queues: plan.queues,
                slots: SlotCount::all(256),
                max_frame_len,
            };
            let queues = backend::open(&interface, &options).unwrap();
            let jobs = queues
                .into_iter()
                .zip(0..)
                .map(|(queue, number)| Job::<Numbered> {
                    queue,
                    source: Numbered {
                        destination,
                        queue: number,
                        next: 0,
                        count: plan.count,
                        lens: plan.lens.clone(),
                        window: WINDOW.0.min(WINDOW.1 / max_frame_len as u64),
                        flow: Some((Arc::clone(&sent), Arc::clone(&arrived))),
                    },
                    settings: Settings::TOP,
                })
                .collect();
            sender::run(jobs, &[&interface], &AtomicBool::new(false), &mut |_| {}).0
        });
        let report = sender.join().unwrap();
        let since = Instant::now();
        while arrived.load(Ordering::Relaxed) < total && since.elapsed() < TIMEOUT {
            thread::sleep(Duration::from_millis(1));
        }
        done.store(true, Ordering::Relaxed);
        let (received_by, complaints) = receiver.join().unwrap();
        Outcome {
            report,
            arrived: arrived.load(Ordering::Relaxed),
            received_by,
            complaints,
        }
    })
}

fn receive(
    by: BackendChoice,
    far: &str,
    longest: usize,
    (ready, done): (&AtomicBool, &AtomicBool),
    arrivals: &mut Arrivals,
) -> String {
    let interface = Interface::named(far).unwrap();
    let options = port::Options {
        backend: by,
        slots: 512,
        max_frame_len: longest + 64,
    };
    let mut ports = [Port::open(&interface, &options).unwrap()];
    // Attaching a program may have taken the carrier down briefly.
    let since = Instant::now();
    while !Interface::named(far).unwrap().has_carrier() && since.elapsed() < TIMEOUT {
        thread::sleep(Duration::from_millis(5));
    }
    ready.store(true, Ordering::Relaxed);
    while !done.load(Ordering::Relaxed) {
        port::wait(&mut ports, Duration::from_millis(50)).unwrap();
        ports[0].receive(|frame| arrivals.take(frame));
    }
    ports[0].mode().to_owned()
}
