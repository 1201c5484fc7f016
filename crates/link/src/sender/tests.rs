//! Tests of the loop of a queue, with a simulated link and clock.

use super::{Live, Next, Pace, Settings, Source, TOGETHER, Timing, send};
use crate::clock::Clock;
use crate::pacing::{CatchUp, Rate};
use crate::transmit::{Counts, Mode, ModeKind, Slot, Transmit, TransmitError};
use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A clock that advances when read, and jumps when a test says so.
struct Virtual {
    now: Rc<Cell<u64>>,
    /// Time that a reading takes.
    step: u64,
    /// Start and duration of a stall of the thread.
    stall: Option<(u64, u64)>,
    /// Time at which the run is stopped.
    stop_at: u64,
}

impl Clock for Virtual {
    fn now(&mut self) -> u64 {
        self.now.set(self.now.get() + self.step);
        if let Some((at, for_)) = self.stall
            && self.now.get() >= at
        {
            self.now.set(self.now.get() + for_);
            self.stall = None;
        }
        self.now.get()
    }

    fn wait_until(&mut self, at: u64, stop: &AtomicBool) -> u64 {
        let now = self.now();
        if now < at {
            let end = at.min(self.stop_at.max(now));
            self.now.set(end);
            if end >= self.stop_at {
                stop.store(true, Ordering::Relaxed);
            }
            // A stall may also begin during a wait.
            return self.now.get().max(self.stalled());
        }
        now
    }
}

impl Virtual {
    fn stalled(&mut self) -> u64 {
        if let Some((at, for_)) = self.stall
            && self.now.get() >= at
        {
            self.now.set(self.now.get() + for_);
            self.stall = None;
        }
        self.now.get()
    }
}

/// A link that records what it gets, with the time.
struct Tape {
    now: Rc<Cell<u64>>,
    slots: Vec<[u8; 64]>,
    free: VecDeque<u32>,
    waiting: VecDeque<(u32, usize)>,
    /// Maximum number of frames taken by a flush.
    takes: usize,
    /// Time that a flush takes.
    costs: u64,
    /// Number of frames after which the link fails.
    fails_after: usize,
    sent: Vec<(u64, u64)>,
    flushes: Vec<usize>,
    counts: Counts,
    mode: Mode,
}

impl Tape {
    fn new(now: &Rc<Cell<u64>>) -> Self {
        Self {
            now: Rc::clone(now),
            slots: vec![[0; 64]; 100],
            free: (0..100).collect(),
            waiting: VecDeque::new(),
            takes: usize::MAX,
            costs: 0,
            fails_after: usize::MAX,
            sent: Vec::new(),
            flushes: Vec::new(),
            counts: Counts::default(),
            mode: Mode {
                target: "tape".to_owned(),
                queue: None,
                kind: ModeKind::CaptureFile,
                why_not_better: Vec::new(),
                slots: (100, 64),
            },
        }
    }

    fn numbers(&self) -> Vec<u64> {
        self.sent.iter().map(|(_, number)| *number).collect()
    }
}

impl Transmit for Tape {
    fn take(&mut self) -> Option<Slot> {
        self.free.pop_front().map(Slot)
    }
    fn bytes(&mut self, slot: &Slot) -> &mut [u8] {
        &mut self.slots[slot.index()]
    }
    fn push(&mut self, slot: Slot, len: usize) {
        self.waiting.push_back((slot.0, len));
        self.counts.pushed += 1;
        self.counts.octets += len as u64;
    }
    fn flush(&mut self) -> Result<(), TransmitError> {
        let mut taken = 0;
        while taken < self.takes
            && let Some((slot, _)) = self.waiting.pop_front()
        {
            if self.sent.len() == self.fails_after {
                let interface = "tape".to_owned();
                return Err(TransmitError::Gone { interface });
            }
            let octets = &self.slots[slot as usize][..8];
            let number = u64::from_be_bytes(octets.try_into().unwrap());
            self.sent.push((self.now.get(), number));
            self.free.push_back(slot);
            self.counts.completed += 1;
            taken += 1;
        }
        self.flushes.push(taken);
        self.now.set(self.now.get() + self.costs);
        Ok(())
    }
    fn wait(&mut self, _: Duration) -> Result<(), TransmitError> {
        self.flush()
    }
    fn in_flight(&self) -> usize {
        self.waiting.len()
    }
    fn quick_counts(&self) -> Counts {
        self.counts
    }
    fn counts(&mut self) -> Counts {
        self.counts
    }
    fn mode(&self) -> &Mode {
        &self.mode
    }
}

/// Numbered frames, due every `gap`; sometimes there is none yet, or one that does not fit.
struct Numbers {
    next: u64,
    count: u64,
    gap: u64,
    later_every: u64,
    too_long: Option<u64>,
    peeks: u64,
}

impl Numbers {
    const fn new(count: u64, gap: u64) -> Self {
        Self {
            next: 0,
            count,
            gap,
            later_every: u64::MAX,
            too_long: None,
            peeks: 0,
        }
    }
}

impl Source for Numbers {
    fn peek(&mut self) -> Next {
        self.peeks += 1;
        if self.next == self.count {
            return Next::End;
        }
        if self.peeks % self.later_every < 2 && self.peeks >= self.later_every {
            return Next::NotYet;
        }
        let len = if self.too_long == Some(self.next) {
            65
        } else {
            60
        };
        Next::Frame {
            at: self.next * self.gap,
            len,
        }
    }
    fn fill(&mut self, _: usize, out: &mut [u8]) {
        out[..8].copy_from_slice(&self.next.to_be_bytes());
        self.next += 1;
    }
    fn skip(&mut self) {
        self.next += 1;
    }
}

struct Played {
    tape: Tape,
    timing: Timing,
    live: Live,
    result: Result<(), TransmitError>,
}

/// Time from which `play` sends a source.
const START: u64 = 1_000_000;

fn play(
    mut source: Numbers,
    settings: &Settings,
    change: impl FnOnce(&mut Tape, &mut Virtual),
) -> Played {
    let now = Rc::new(Cell::new(0));
    let mut clock = Virtual {
        now: Rc::clone(&now),
        step: 1,
        stall: None,
        stop_at: u64::MAX,
    };
    let mut tape = Tape::new(&now);
    change(&mut tape, &mut clock);
    let (stop, live) = (AtomicBool::new(false), Live::default());
    let mut timing = Timing::default();
    let outputs = (&stop, &live, &mut timing);
    let result = send(&mut tape, &mut source, &mut clock, START, settings, outputs);
    Played {
        tape,
        timing,
        live,
        result,
    }
}

fn all(count: u64) -> Vec<u64> {
    (0..count).collect()
}

const OWN: Settings = Settings {
    pace: Pace::Own,
    ..Settings::TOP
};

fn at(rate: u64, burst: usize) -> Settings {
    Settings {
        pace: Pace::Rate(Rate::Packets(rate)),
        burst,
        ..Settings::TOP
    }
}

#[test]
fn every_frame_leaves_once_and_in_order_whatever_the_link_takes() {
    for takes in [1, 3, 32, 1000] {
        for settings in [Settings::TOP, OWN, at(1_000_000, 7)] {
            let played = play(Numbers::new(1_000, 500), &settings, |tape, _| {
                tape.takes = takes;
            });
            played.result.unwrap();
            assert_eq!(
                played.tape.numbers(),
                all(1_000),
                "{takes}, {:?}",
                settings.pace
            );
            assert_eq!(played.live.counts(), played.tape.counts);
        }
    }
}

#[test]
fn top_speed_bursts_have_the_requested_size() {
    let settings = Settings {
        burst: 8,
        ..Settings::TOP
    };
    let played = play(Numbers::new(100, 0), &settings, |_, _| ());
    assert!(played.tape.flushes.iter().all(|taken| *taken <= 8));
    assert_eq!(played.timing.frames(), 0, "no frame has a time");
}

#[test]
fn bursts_at_a_rate_leave_when_their_first_frame_is_due() {
    for (rate, burst) in [(1_000, 1), (100_000, 2), (500_000, 10), (3_000_000, 32)] {
        let played = play(Numbers::new(960, 0), &at(rate, burst), |_, _| ());
        assert_eq!(played.tape.numbers(), all(960));
        for (time, number) in &played.tape.sent {
            let first = number - number % burst as u64;
            let due = START + first * 1_000_000_000 / rate;
            assert!(
                time.abs_diff(due) < 50,
                "{rate}: frame {number} at {time}, due {due}"
            );
        }
        assert_eq!(played.timing.largest_batch(), burst);
    }
}

#[test]
fn a_stall_is_made_up_for_without_bursts() {
    for settings in [OWN, at(100_000, 1)] {
        let played = play(Numbers::new(3_000, 10_000), &settings, |_, clock| {
            clock.stall = Some((START + 5_000_000, 300_000));
        });
        assert_eq!(played.tape.numbers(), all(3_000));
        let times: Vec<u64> = played.tape.sent.iter().map(|(time, _)| *time).collect();
        for pair in times.windows(2) {
            assert!(pair[1] - pair[0] >= 9_400, "{pair:?}");
        }
        let late = |i: usize| times[i] - (START + i as u64 * 10_000);
        assert!(
            times.windows(2).any(|pair| pair[1] - pair[0] > 250_000),
            "it did stall"
        );
        assert!(
            late(2_999) < 100,
            "and is on time at the end: {}",
            late(2_999)
        );
    }
}

#[test]
fn catching_up_at_once_is_optional() {
    let settings = Settings {
        catch_up: CatchUp::Burst,
        ..OWN
    };
    let played = play(Numbers::new(2_000, 10_000), &settings, |_, clock| {
        clock.stall = Some((START + 5_000_000, 300_000));
    });
    assert!(played.timing.largest_batch() > 20);
}

#[test]
fn frames_closer_than_a_system_call_leave_together() {
    let played = play(Numbers::new(1_000, 100), &OWN, |tape, _| tape.costs = 3_000);
    assert_eq!(played.tape.numbers(), all(1_000));
    assert!(played.tape.flushes.len() < 100, "{:?}", played.tape.flushes);
    let apart = play(Numbers::new(100, TOGETHER + 500), &OWN, |_, _| ());
    assert_eq!(apart.timing.largest_batch(), 1);
}

#[test]
fn limits_end_a_run() {
    for pace in [Settings::TOP, OWN, at(1_000_000, 4)] {
        let counted = Settings {
            count: Some(37),
            ..pace
        };
        let played = play(Numbers::new(u64::MAX, 1_000), &counted, |_, _| ());
        assert_eq!(played.tape.numbers(), all(37), "{pace:?}");
        let timed = Settings {
            duration: Some(Duration::from_millis(1)),
            ..pace
        };
        let played = play(Numbers::new(u64::MAX, 1_000), &timed, |tape, _| {
            tape.costs = 100;
        });
        let last = played.tape.sent.last().unwrap().0;
        assert!(last < START + 1_000_000, "{pace:?}: {last}");
        assert!(last > START + 900_000, "{pace:?}: {last}");
        let none = Settings {
            duration: Some(Duration::from_millis(1)),
            offset: Duration::from_millis(2),
            ..at(1_000, 1)
        };
        assert!(
            play(Numbers::new(5, 0), &none, |_, _| ())
                .tape
                .sent
                .is_empty()
        );
    }
}

#[test]
fn queues_at_a_rate_take_turns() {
    let settings = Settings {
        offset: Duration::from_micros(500),
        ..at(1_000, 1)
    };
    let played = play(Numbers::new(3, 0), &settings, |_, _| ());
    let times: Vec<u64> = played
        .tape
        .sent
        .iter()
        .map(|(time, _)| *time - START)
        .collect();
    for (time, due) in times.iter().zip([500_000, 1_500_000, 2_500_000]) {
        assert!(time.abs_diff(due) < 50, "{times:?}");
    }
}

#[test]
fn a_late_source_is_waited_for_and_reported() {
    for settings in [Settings::TOP, OWN, at(1_000_000, 4)] {
        let source = Numbers {
            later_every: 5,
            ..Numbers::new(200, 1_000)
        };
        let played = play(source, &settings, |_, _| ());
        assert_eq!(played.tape.numbers(), all(200));
        assert!(played.live.starvations() > 0, "{:?}", settings.pace);
    }
}

#[test]
fn a_frame_that_does_not_fit_is_omitted_and_counted() {
    for settings in [Settings::TOP, OWN, at(1_000_000, 4)] {
        let source = Numbers {
            too_long: Some(2),
            ..Numbers::new(5, 1_000)
        };
        let played = play(source, &settings, |_, _| ());
        assert_eq!(played.tape.numbers(), [0, 1, 3, 4]);
        assert_eq!(played.live.misfits(), 1);
    }
}

#[test]
fn a_failing_link_ends_the_run_and_keeps_the_counts() {
    for settings in [Settings::TOP, OWN, at(1_000_000, 4)] {
        let played = play(Numbers::new(u64::MAX, 1_000), &settings, |tape, _| {
            tape.fails_after = 10;
        });
        assert!(matches!(played.result, Err(TransmitError::Gone { .. })));
        assert_eq!(played.tape.numbers(), all(10));
    }
}

#[test]
fn stopping_does_not_wait_for_the_next_frame() {
    let hour = 3_600_000_000_000;
    let played = play(Numbers::new(3, hour), &OWN, |_, clock| {
        clock.stop_at = START + 5_000_000;
    });
    assert_eq!(played.tape.numbers(), [0]);
}
