//! The clock, and waiting for it: by spinning, or by sleeping and spinning the rest; and a virtual one, which goes on by
//! being waited for. What to wait for is in `pacing.rs`.

use crate::precedence::Precedence;
use rustix::thread::{ClockId, clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::{Timespec, clock_gettime};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Nanoseconds, and waiting for them.
pub trait Clock {
    /// Nanoseconds since some moment.
    fn now(&mut self) -> u64;

    /// Waits until `at`, or until `stop` is true; returns the time.
    fn wait_until(&mut self, at: u64, stop: &AtomicBool) -> u64;

    /// Lets about `for_` nanoseconds pass because whoever makes the frames is behind; returns the time.
    fn idle(&mut self, for_: u64, stop: &AtomicBool) -> u64 {
        let until = self.now().saturating_add(for_);
        self.wait_until(until, stop)
    }

    /// What was due until `at` is done: no time has to pass for it any more, but virtual time has passed.
    fn catch_up_with(&mut self, _at: u64) {}

    /// Something else than this clock is going to be waited for.
    fn set_aside(&mut self) {}

    /// The thread waits for something else than this clock, again and again; at `now` it has waited for so long, in nanoseconds.
    fn rested(&mut self, _now: u64, _for: u64) {}
}

/// How to wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waiting {
    /// Sleep while there is time, spin the rest. Costs a part of a core.
    #[default]
    Sleep,
    /// Spin. Costs a whole core, and is no more exact than that core is undisturbed.
    Spin,
}

/// Nothing sleeps longer at a time, so that stopping is never late.
const LONGEST_SLEEP: u64 = 50_000_000;
/// The least time that is spun after a sleep: what a sleeping processor takes to wake up is seldom more.
const LEAST_MARGIN: u64 = 80_000;
/// The most of a wait that is spun, in percent: together with the calls, less than a third of a core.
const MOST_SPUN: u64 = 30;
/// Who waits for something else is idle for so many times as long as it works, or has no precedence: it would keep whoever sends to it
/// off their processor, each time for a few frames (a bump in the wire then forwards half as many).
const MOSTLY: u64 = 4;
/// Sleeps that are remembered at least, and twice as many at most: those late by more than most are one in hundreds.
const REMEMBERED: u32 = 512;

/// CLOCK_MONOTONIC.
#[derive(Debug)]
pub struct Monotonic {
    waiting: Waiting,
    overslept: Overslept,
    /// If it is to be had.
    precedence: Option<Precedence>,
    /// When something else than this clock had been waited for last.
    woke: u64,
}

/// By how much sleeps took too long lately: the most, in this window of them and in the one before.
#[derive(Debug, Default)]
struct Overslept {
    now: u64,
    before: u64,
    sleeps: u32,
}

/// The most that is spun of a wait.
fn limit(left: u64) -> u64 {
    (left / 100 * MOST_SPUN).max(LEAST_MARGIN)
}

impl Overslept {
    /// A sleep took `over` longer, of which at most `limit` can be made up for by spinning. What took longer is left out: as
    /// much would be spun after each sleep, and in vain.
    fn add(&mut self, over: u64, limit: u64) {
        if over <= limit {
            self.now = self.now.max(over);
        }
        self.sleeps += 1;
        if self.sleeps == REMEMBERED {
            (self.before, self.now, self.sleeps) = (self.now, 0, 0);
        }
    }

    /// How long before its time a sleep is to end, at most `limit`.
    fn margin(&self, limit: u64) -> u64 {
        let most = self.now.max(self.before);
        (most + most / 8).clamp(LEAST_MARGIN, limit)
    }
}

impl Monotonic {
    /// A clock for the present thread, whose timers it makes as exact as the kernel can.
    #[must_use]
    pub fn new(waiting: Waiting) -> Self {
        if waiting == Waiting::Sleep {
            // The default is 50 µs. Where it cannot be set, more is spun.
            let _ = set_current_timer_slack(NonZeroU64::new(1));
        }
        Self {
            waiting,
            overslept: Overslept::default(),
            precedence: None,
            woke: 0,
        }
    }

    /// A clock as by [`new`](Self::new) for a thread that does little but to wait for it. Where that is permitted, the thread
    /// has precedence over other programs, under a real-time policy, as long as it sleeps longer than it spins, or waits for something
    /// else ([`rested`](Clock::rested)) most of the time.
    #[must_use]
    pub fn preceding(waiting: Waiting) -> Self {
        Self {
            precedence: (waiting == Waiting::Sleep).then(Precedence::default),
            ..Self::new(waiting)
        }
    }

    fn sleep(&mut self, until: u64, limit: u64) -> u64 {
        let request = Timespec {
            tv_sec: (until / 1_000_000_000) as i64,
            tv_nsec: (until % 1_000_000_000) as i64,
        };
        // Interrupted or refused: the caller looks at the clock anyway.
        let _ = clock_nanosleep_absolute(ClockId::Monotonic, &request);
        let now = self.now();
        self.overslept.add(now.saturating_sub(until), limit);
        now
    }
}

impl Clock for Monotonic {
    #[inline]
    fn now(&mut self) -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }

    fn wait_until(&mut self, at: u64, stop: &AtomicBool) -> u64 {
        let mut now = self.now();
        if self.waiting == Waiting::Sleep {
            let left = at.saturating_sub(now);
            let limit = limit(left);
            let margin = self.overslept.margin(limit);
            if let Some(precedence) = &mut self.precedence {
                if left > 2 * margin {
                    precedence.take(now);
                } else {
                    precedence.keep(now);
                }
            }
            while now.saturating_add(margin) < at && !stop.load(Ordering::Relaxed) {
                let until = (at - margin).min(now + LONGEST_SLEEP);
                now = self.sleep(until, limit);
            }
        }
        while now < at && !stop.load(Ordering::Relaxed) {
            std::hint::spin_loop();
            now = self.now();
        }
        now
    }

    fn set_aside(&mut self) {
        if let Some(precedence) = &mut self.precedence {
            precedence.give_back();
        }
    }

    fn rested(&mut self, now: u64, for_: u64) {
        if let Some(precedence) = &mut self.precedence {
            let busy = now.saturating_sub(for_).saturating_sub(self.woke);
            match for_ > MOSTLY * busy {
                true => precedence.take(now),
                false => precedence.keep(now),
            }
            if for_ > 0 {
                self.woke = now;
            }
        }
    }
}

/// Time that passes only by being waited for, and then at once: what is due later is done now.
#[derive(Debug)]
pub struct Virtual {
    now: u64,
}

impl Virtual {
    /// It is `now`.
    #[must_use]
    pub const fn new(now: u64) -> Self {
        Self { now }
    }
}

impl Clock for Virtual {
    #[inline]
    fn now(&mut self) -> u64 {
        self.now
    }

    #[inline]
    fn wait_until(&mut self, at: u64, stop: &AtomicBool) -> u64 {
        if !stop.load(Ordering::Relaxed) {
            self.now = self.now.max(at);
        }
        self.now
    }

    #[inline]
    fn catch_up_with(&mut self, at: u64) {
        self.now = self.now.max(at);
    }

    /// The frames that are not there yet have their times already: this one stands still.
    fn idle(&mut self, for_: u64, _: &AtomicBool) -> u64 {
        thread::sleep(Duration::from_nanos(for_));
        self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_not_before_its_time() {
        let clocks = [Waiting::Sleep, Waiting::Spin].map(Monotonic::new);
        for mut clock in clocks
            .into_iter()
            .chain([Monotonic::preceding(Waiting::Sleep)])
        {
            for wait in [0, 1_000, 300_000, 2_000_000] {
                let at = clock.now() + wait;
                assert!(clock.wait_until(at, &AtomicBool::new(false)) >= at);
            }
        }
    }

    #[test]
    fn what_is_spun_follows_what_sleeps_took_within_bounds() {
        let most = limit(500_000);
        assert_eq!((most, limit(10_000)), (150_000, LEAST_MARGIN));
        let mut overslept = Overslept::default();
        assert_eq!(overslept.margin(most), LEAST_MARGIN);
        // No spinning makes up for that.
        overslept.add(4_000_000, most);
        assert_eq!(overslept.margin(most), LEAST_MARGIN);
        overslept.add(120_000, most);
        assert_eq!(overslept.margin(most), 135_000);
        overslept.add(150_000, most);
        assert_eq!(overslept.margin(most), most);
        assert_eq!(overslept.margin(limit(10_000)), LEAST_MARGIN);
        for _ in 0..2 * REMEMBERED {
            overslept.add(10_000, most);
        }
        assert_eq!(overslept.margin(most), LEAST_MARGIN);
    }

    #[test]
    fn virtual_time_passes_by_waiting_for_it_alone() {
        let (stop, mut clock) = (AtomicBool::new(false), Virtual::new(5));
        assert_eq!(
            clock.wait_until(3_600_000_000_000, &stop),
            3_600_000_000_000
        );
        assert_eq!(clock.wait_until(7, &stop), 3_600_000_000_000);
        assert_eq!(clock.idle(1_000, &stop), 3_600_000_000_000);
        assert_eq!(clock.now(), 3_600_000_000_000);
        stop.store(true, Ordering::Relaxed);
        assert_eq!(clock.wait_until(u64::MAX, &stop), 3_600_000_000_000);
    }

    #[test]
    fn waiting_ends_when_stopped() {
        for waiting in [Waiting::Sleep, Waiting::Spin] {
            let mut clock = Monotonic::new(waiting);
            let far = clock.now() + 3_600_000_000_000;
            assert!(clock.wait_until(far, &AtomicBool::new(true)) < far);
        }
    }
}
