//! The clock, and waiting for a point in time: by spinning, or by sleeping and spinning for the
//! rest. There is also a virtual clock, which advances by being waited for. The times to wait for
//! are computed in `pacing.rs`.

use crate::precedence::Precedence;
use rustix::thread::{ClockId, clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::{Timespec, clock_gettime};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// A clock in nanoseconds that can be waited for.
pub trait Clock {
    /// Returns the time in nanoseconds since some fixed moment.
    fn now(&mut self) -> u64;

    /// Waits until `at`, or until `stop` is true; returns the time.
    fn wait_until(&mut self, at: u64, stop: &AtomicBool) -> u64;

    /// Lets about `for_` nanoseconds pass because the source of frames is late; returns the time.
    fn idle(&mut self, for_: u64, stop: &AtomicBool) -> u64 {
        let until = self.now().saturating_add(for_);
        self.wait_until(until, stop)
    }

    /// Everything due until `at` is done. Advances a virtual clock; real time needs no change.
    fn catch_up_with(&mut self, _at: u64) {}

    /// Notes that the thread is going to wait for something other than this clock.
    fn release_precedence(&mut self) {}

    /// Notes that the thread waits repeatedly for something other than this clock: at `_now` it has
    /// waited for `_for` nanoseconds.
    fn note_external_wait(&mut self, _now: u64, _for: u64) {}
}

/// Waiting strategy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waiting {
    /// Sleeps most of the time and spins for the rest. Takes part of a core.
    #[default]
    Sleep,
    /// Spins. Takes a whole core, and is only as exact as that core is undisturbed.
    Spin,
}

/// Maximum duration of one sleep in nanoseconds, so that stopping is prompt.
const LONGEST_SLEEP: u64 = 50_000_000;
/// Minimum time spun after a sleep, in nanoseconds: a sleeping processor seldom takes longer to
/// wake up.
const LEAST_MARGIN: u64 = 80_000;
/// Maximum share of a wait that is spun, in percent: together with the calls, less than a third of
/// a core.
const MOST_SPUN: u64 = 30;
/// Minimum ratio of idle to busy time for a thread that waits for something else to have
/// precedence. A busier thread would keep the sender off its processor, each time for a few frames
/// (a bump in the wire then forwards half as many).
const MOSTLY: u64 = 4;
/// Minimum number of sleeps remembered; the maximum is twice as many. Outliers are one in hundreds.
const REMEMBERED: u32 = 512;

/// The clock CLOCK_MONOTONIC.
#[derive(Debug)]
pub struct Monotonic {
    waiting: Waiting,
    oversleep: OversleepWindow,
    /// Precedence of the thread, if requested.
    precedence: Option<Precedence>,
    /// End of the last wait for something other than this clock.
    woke: u64,
}

/// Maximum oversleep in this window of sleeps and in the previous one.
#[derive(Debug, Default)]
struct OversleepWindow {
    now: u64,
    before: u64,
    sleeps: u32,
}

/// Returns the maximum time to spin in a wait, in nanoseconds.
fn limit(left: u64) -> u64 {
    (left / 100 * MOST_SPUN).max(LEAST_MARGIN)
}

impl OversleepWindow {
    /// Records a sleep that took `over` too long, of which spinning can make up for at most
    /// `limit`. Longer ones are ignored: otherwise as much would be spun after each sleep, in vain.
    fn add(&mut self, over: u64, limit: u64) {
        if over <= limit {
            self.now = self.now.max(over);
        }
        self.sleeps += 1;
        if self.sleeps == REMEMBERED {
            (self.before, self.now, self.sleeps) = (self.now, 0, 0);
        }
    }

    /// Returns how long before the target time a sleep should end, at most `limit`.
    fn margin(&self, limit: u64) -> u64 {
        let most = self.now.max(self.before);
        (most + most / 8).clamp(LEAST_MARGIN, limit)
    }
}

impl Monotonic {
    /// Creates a clock for the current thread, and makes that thread's timers as exact as the
    /// kernel can.
    #[must_use]
    pub fn new(waiting: Waiting) -> Self {
        if waiting == Waiting::Sleep {
            // The default is 50 µs. If it cannot be changed, more time is spun.
            let _ = set_current_timer_slack(NonZeroU64::new(1));
        }
        Self {
            waiting,
            oversleep: OversleepWindow::default(),
            precedence: None,
            woke: 0,
        }
    }

    /// Creates a clock as by [`new`](Self::new) for a thread that does little but wait for it. If
    /// permitted, the thread has precedence over other programs, under a real-time policy, as long
    /// as it sleeps longer than it spins, or mostly waits for something else
    /// ([`note_external_wait`](Clock::note_external_wait)).
    #[must_use]
    pub fn with_precedence(waiting: Waiting) -> Self {
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
        // Interrupted or refused: the caller reads the clock in any case.
        let _ = clock_nanosleep_absolute(ClockId::Monotonic, &request);
        let now = self.now();
        self.oversleep.add(now.saturating_sub(until), limit);
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
            let margin = self.oversleep.margin(limit);
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

    fn release_precedence(&mut self) {
        if let Some(precedence) = &mut self.precedence {
            precedence.give_back();
        }
    }

    fn note_external_wait(&mut self, now: u64, for_: u64) {
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

/// A clock that advances only by being waited for, and then immediately: whatever is due later is
/// done now.
#[derive(Debug)]
pub struct Virtual {
    now: u64,
}

impl Virtual {
    /// Creates a clock that shows `now`.
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

    /// Frames yet to arrive already have their times, so this clock stands still.
    fn idle(&mut self, for_: u64, _: &AtomicBool) -> u64 {
        thread::sleep(Duration::from_nanos(for_));
        self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_does_not_end_early() {
        let clocks = [Waiting::Sleep, Waiting::Spin].map(Monotonic::new);
        for mut clock in clocks
            .into_iter()
            .chain([Monotonic::with_precedence(Waiting::Sleep)])
        {
            for wait in [0, 1_000, 300_000, 2_000_000] {
                let at = clock.now() + wait;
                assert!(clock.wait_until(at, &AtomicBool::new(false)) >= at);
            }
        }
    }

    #[test]
    fn spinning_follows_oversleep_within_bounds() {
        let most = limit(500_000);
        assert_eq!((most, limit(10_000)), (150_000, LEAST_MARGIN));
        let mut oversleep = OversleepWindow::default();
        assert_eq!(oversleep.margin(most), LEAST_MARGIN);
        // Spinning cannot make up for that.
        oversleep.add(4_000_000, most);
        assert_eq!(oversleep.margin(most), LEAST_MARGIN);
        oversleep.add(120_000, most);
        assert_eq!(oversleep.margin(most), 135_000);
        oversleep.add(150_000, most);
        assert_eq!(oversleep.margin(most), most);
        assert_eq!(oversleep.margin(limit(10_000)), LEAST_MARGIN);
        for _ in 0..2 * REMEMBERED {
            oversleep.add(10_000, most);
        }
        assert_eq!(oversleep.margin(most), LEAST_MARGIN);
    }

    #[test]
    fn virtual_time_advances_only_by_waiting() {
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
