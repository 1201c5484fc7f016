//! The loop of one queue, from a source to a backend. Threads are in `run.rs`.

use super::report::Timing;
use super::stats::Live;
use super::{Next, Pace, Settings, Source, TOGETHER};
use crate::clock::Clock;
use crate::pacing::{Rate, RateClock, Release};
use crate::transmit::{Slot, Transmit, TransmitError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time of one wait for a slot or for the kernel.
const PAUSE: Duration = Duration::from_millis(1);
/// Time before a source that had nothing is polled again, in nanoseconds.
const SOURCE_PAUSE: u64 = 20_000;
/// Maximum time for the kernel to complete the last frames.
const LAST_FRAMES: Duration = Duration::from_millis(900);

/// Sends the frames of `source` through `link` according to `settings`, until there are no more or
/// `stop` is true. `start` is the start of the run by `clock`.
///
/// # Errors
/// The link is gone. `live` and `timing` then describe what was sent until then.
pub fn send<T: Transmit, S: Source, C: Clock>(
    link: &mut T,
    source: &mut S,
    clock: &mut C,
    start: u64,
    settings: &Settings,
    (stop, live, timing): (&AtomicBool, &Live, &mut Timing),
) -> Result<(), TransmitError> {
    let run = Run {
        until: settings
            .duration
            .map_or(u64::MAX, |d| start.saturating_add(d.as_nanos() as u64)),
        left: settings.count.unwrap_or(u64::MAX),
        link,
        source,
        clock,
        settings,
        stop,
        live,
    };
    match settings.pace {
        Pace::Top => run.top(start),
        Pace::Own => run.timed(start, timing, Schedule::Own),
        Pace::Rate(rate) => {
            let schedule = Schedule::AtRate(RateClock::new(rate), rate);
            run.timed(start, timing, schedule)
        }
    }
}

struct Run<'a, T, S, C> {
    link: &'a mut T,
    source: &'a mut S,
    clock: &'a mut C,
    settings: &'a Settings,
    stop: &'a AtomicBool,
    live: &'a Live,
    until: u64,
    left: u64,
}

/// Due times of frames.
enum Schedule {
    /// By the source's own timing.
    Own,
    /// At a rate.
    AtRate(RateClock, Rate),
}

impl Schedule {
    /// Returns the due time in nanoseconds since the start of the run.
    #[inline]
    fn due(&self, at: u64) -> u64 {
        match self {
            Self::Own => at,
            Self::AtRate(clock, _) => clock.due(),
        }
    }

    #[inline]
    fn count(&mut self, len: usize) {
        if let Self::AtRate(clock, _) = self {
            clock.count(len);
        }
    }

    /// Returns how much sooner than due a frame may leave, together with a previous one.
    #[inline]
    fn together(&self, len: usize, burst: usize) -> u64 {
        match self {
            Self::Own => TOGETHER,
            // Gaps are not whole nanoseconds, so one is added for each. The size of the burst
            // excludes the frames of the next one.
            Self::AtRate(_, rate) => (rate.gap(len) + 1).saturating_mul(burst as u64 - 1),
        }
    }
}

/// The next item of the source, for the loops.
enum Peeked {
    Frame(u64, usize),
    NotYet,
    End,
}

impl<T: Transmit, S: Source, C: Clock> Run<'_, T, S, C> {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    #[inline]
    fn peek(&mut self) -> Peeked {
        if self.left == 0 {
            return Peeked::End;
        }
        loop {
            match self.source.peek() {
                Next::Frame { at, len } if len >= 1 && len <= self.link.slot_len() => {
                    return Peeked::Frame(at, len);
                }
                Next::Frame { .. } => {
                    // Sources omit frames that do not fit, and report them; this limits the effect
                    // of a mistake.
                    self.live.misfit();
                    self.source.skip();
                }
                Next::NotYet => return Peeked::NotYet,
                Next::End => return Peeked::End,
            }
        }
    }

    #[inline]
    fn put(&mut self, slot: Slot, len: usize, stamp: u64) {
        self.link.stamp(stamp, self.source.interface());
        let octets = self.link.bytes(&slot);
        self.source.fill(slot.index(), octets);
        self.link.push(slot, len);
        self.left -= 1;
    }

    fn top(mut self, start: u64) -> Result<(), TransmitError> {
        let mut now = self.clock.wait_until(start, self.stop);
        'run: while !self.stopped() && now < self.until {
            let mut filled = 0;
            let mut later = false;
            while filled < self.settings.burst {
                let len = match self.peek() {
                    Peeked::Frame(_, len) => len,
                    Peeked::NotYet => {
                        later = true;
                        break;
                    }
                    Peeked::End => break 'run,
                };
                let Some(slot) = self.link.take() else { break };
                self.put(slot, len, self.settings.epoch);
                filled += 1;
            }
            if filled > 0 {
                self.link.flush()?;
            } else if later {
                self.live.starved();
                self.clock.idle(SOURCE_PAUSE, self.stop);
            } else {
                self.link.wait(PAUSE)?;
            }
            self.live.update(self.link);
            now = self.clock.now();
        }
        self.drain()
    }

    fn timed(
        mut self,
        start: u64,
        timing: &mut Timing,
        mut schedule: Schedule,
    ) -> Result<(), TransmitError> {
        let start = start.saturating_add(self.settings.offset.as_nanos() as u64);
        let epoch = self.settings.epoch;
        let mut release = Release::new(self.settings.catch_up);
        let mut dues = Vec::with_capacity(self.settings.burst);
        while !self.stopped() {
            let (at, len) = match self.peek() {
                Peeked::Frame(at, len) => (at, len),
                Peeked::End => break,
                Peeked::NotYet => {
                    self.live.starved();
                    self.clock.release_precedence();
                    if self.clock.idle(SOURCE_PAUSE, self.stop) >= self.until {
                        break;
                    }
                    continue;
                }
            };
            let due = start.saturating_add(schedule.due(at));
            if due >= self.until {
                self.clock.wait_until(self.until, self.stop);
                break;
            }
            let Some(slot) = self.link.take() else {
                self.clock.release_precedence();
                self.link.wait(PAUSE)?;
                self.live.update(self.link);
                if self.clock.now() >= self.until {
                    break;
                }
                continue;
            };
            let stamp = epoch.saturating_add(due - start);
            self.link.stamp(stamp, self.source.interface());
            // Filled before its time, so that only the system call remains.
            let octets = self.link.bytes(&slot);
            self.source.fill(slot.index(), octets);
            schedule.count(len);
            let leaves = release.at(due);
            let now = self.clock.wait_until(leaves, self.stop);
            // Stopped, or so late that the time is up. The frame is not sent.
            if now < leaves || now >= self.until {
                break;
            }
            self.link.push(slot, len);
            self.left -= 1;
            release.left(due, now);
            dues.clear();
            dues.push(due);
            let horizon = now.saturating_add(schedule.together(len, self.settings.burst));
            while dues.len() < self.settings.burst {
                let Peeked::Frame(at, len) = self.peek() else {
                    break;
                };
                let due = start.saturating_add(schedule.due(at));
                let leaves = release.at(due);
                if leaves > horizon || due >= self.until {
                    break;
                }
                let Some(slot) = self.link.take() else { break };
                self.put(slot, len, epoch.saturating_add(due - start));
                schedule.count(len);
                release.left(due, leaves.max(now));
                dues.push(due);
            }
            // The time of the loop above is part of the error of the frames that waited for it.
            let handed = if dues.len() > 1 {
                self.clock.now()
            } else {
                now
            };
            self.link.flush()?;
            timing.record(&dues, handed);
            self.clock
                .catch_up_with(dues.last().copied().unwrap_or(due));
            self.live.update(self.link);
        }
        self.drain()
    }

    /// Waits until the kernel has completed its frames.
    fn drain(self) -> Result<(), TransmitError> {
        self.clock.release_precedence();
        let until = self.clock.now() + LAST_FRAMES.as_nanos() as u64;
        self.link.flush()?;
        while self.link.in_flight() > 0 && self.clock.now() < until {
            let before = self.link.in_flight();
            self.link.wait(PAUSE)?;
            if self.link.in_flight() == before {
                self.clock.idle(SOURCE_PAUSE, &AtomicBool::new(false));
            }
        }
        self.live.update(self.link);
        Ok(())
    }
}
