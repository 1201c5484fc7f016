//! The clock, and waiting for it: by spinning, or by sleeping and spinning the rest. What to wait for is
//! `pacing.rs`'s business.

use rustix::thread::{ClockId, clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::{Timespec, clock_gettime};
use serde::Serialize;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};

/// Nanoseconds, and waiting for them. A trait for the sake of tests, which have a clock of their own.
pub trait Clock {
    /// Nanoseconds since some moment.
    fn now(&mut self) -> u64;

    /// Waits until `at`, or until `stop` is true; returns the time.
    fn wait_until(&mut self, at: u64, stop: &AtomicBool) -> u64;
}

/// How to wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
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
/// Sleeps that are remembered at least, and twice as many at most: those late by more than most are one in hundreds.
const REMEMBERED: u32 = 512;

/// CLOCK_MONOTONIC.
#[derive(Debug)]
pub struct Monotonic {
    waiting: Waiting,
    overslept: Overslept,
}

/// By how much sleeps took too long lately: the most, in this window of them and in the one before.
#[derive(Debug, Default)]
struct Overslept {
    now: u64,
    before: u64,
    sleeps: u32,
}

impl Overslept {
    fn add(&mut self, over: u64) {
        self.now = self.now.max(over);
        self.sleeps += 1;
        if self.sleeps == REMEMBERED {
            (self.before, self.now, self.sleeps) = (self.now, 0, 0);
        }
    }

    /// How long before its time a sleep is to end that begins `left` before it.
    fn margin(&self, left: u64) -> u64 {
        let most = self.now.max(self.before);
        let limit = (left / 100 * MOST_SPUN).max(LEAST_MARGIN);
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
        }
    }

    fn sleep(&mut self, until: u64) -> u64 {
        let request = Timespec {
            tv_sec: (until / 1_000_000_000) as i64,
            tv_nsec: (until % 1_000_000_000) as i64,
        };
        // Interrupted or refused: the caller looks at the clock anyway.
        let _ = clock_nanosleep_absolute(ClockId::Monotonic, &request);
        let now = self.now();
        self.overslept.add(now.saturating_sub(until));
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
            let margin = self.overslept.margin(at.saturating_sub(now));
            while now.saturating_add(margin) < at && !stop.load(Ordering::Relaxed) {
                let until = (at - margin).min(now + LONGEST_SLEEP);
                now = self.sleep(until);
            }
        }
        while now < at && !stop.load(Ordering::Relaxed) {
            std::hint::spin_loop();
            now = self.now();
        }
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_not_before_its_time() {
        for waiting in [Waiting::Sleep, Waiting::Spin] {
            let mut clock = Monotonic::new(waiting);
            for wait in [0, 1_000, 300_000, 2_000_000] {
                let at = clock.now() + wait;
                assert!(clock.wait_until(at, &AtomicBool::new(false)) >= at);
            }
        }
    }

    #[test]
    fn what_is_spun_follows_what_sleeps_took_within_bounds() {
        let mut overslept = Overslept::default();
        assert_eq!(overslept.margin(500_000), LEAST_MARGIN);
        overslept.add(120_000);
        assert_eq!(overslept.margin(500_000), 135_000);
        overslept.add(4_000_000);
        assert_eq!(overslept.margin(500_000), 150_000);
        assert_eq!(overslept.margin(10_000), LEAST_MARGIN);
        for _ in 0..2 * REMEMBERED {
            overslept.add(10_000);
        }
        assert_eq!(overslept.margin(500_000), LEAST_MARGIN);
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
