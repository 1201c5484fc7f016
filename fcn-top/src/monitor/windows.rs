//! How many in the last tenth of a second, second and ten seconds, and the most in any one second.
//!
//! Counts in steps of 100 ms and of 1 s, ten of each; the running step counts in full. Time is the packets'. Counts of
//! seconds that are over are exact up to 4096, and within 0.03 % beyond.

use super::sums::Compact;
use fcn_observe::fetch::fetch;

/// A step of the fine ring, in nanoseconds.
pub const TENTH: u64 = 100_000_000;
/// Steps in each ring.
const STEPS: usize = 10;

/// The step of 100 ms that `at` is in, counted from the epoch.
#[inline]
const fn step_of(at: u64) -> u64 {
    at / TENTH
}

/// A step of 100 ms. Worked out once for whatever counts a packet, as two divisions are in it.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Counted from the epoch.
    number: u64,
    /// In a ring.
    place: usize,
}

impl Step {
    /// The step that `at` is in.
    #[inline]
    #[must_use]
    pub const fn of(at: u64) -> Self {
        let number = step_of(at);
        Self {
            number,
            place: (number % STEPS as u64) as usize,
        }
    }
}

/// Counts by time. What is touched for every count comes first, and is no longer than a cache line.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Windows {
    /// The latest step that something was counted in.
    step: u64,
    /// Sum of `tenths`.
    sum: u32,
    peak: u32,
    /// What the latest step's second has.
    running: u32,
    /// Step s is at s mod 10.
    tenths: [u32; STEPS],
    /// Second s is at s mod 10; that of the latest step is in `running`.
    seconds: [Compact; STEPS],
}

impl Windows {
    /// Counts one in `step`. One from longer ago than the rings reach counts in none of them.
    #[inline]
    pub fn add(&mut self, step: Step) {
        if step.number != self.step {
            if step.number > self.step {
                self.roll(step.number);
            } else {
                self.add_late(step);
                return;
            }
        }
        self.bump(step);
        self.running = self.running.saturating_add(1);
        self.summed();
    }

    /// Has the parts fetched from memory that [`add`](Self::add) touches.
    #[inline]
    pub fn fetch(&self) {
        fetch(&self.step);
        fetch(&self.tenths[STEPS - 1]);
    }

    #[inline]
    fn bump(&mut self, step: Step) {
        if let Some(count) = self.tenths.get_mut(step.place) {
            *count = count.saturating_add(1);
        }
    }

    #[inline]
    fn summed(&mut self) {
        self.sum = self.sum.saturating_add(1);
        self.peak = self.peak.max(self.sum);
    }

    /// Packets of several interfaces need not come in order.
    #[cold]
    fn add_late(&mut self, step: Step) {
        if self.step - step.number < 10 {
            self.bump(step);
            self.summed();
        }
        match self.step / 10 - step.number / 10 {
            0 => self.running = self.running.saturating_add(1),
            1..10 => {
                if let Some(count) = place_of(&mut self.seconds, step.number / 10) {
                    *count = Compact::of(count.get() + 1);
                }
            }
            _ => {}
        }
    }

    /// Makes `step`, a later one, the running one.
    fn roll(&mut self, step: u64) {
        clear(&mut self.tenths, self.step, step);
        let (before, second) = (self.step / 10, step / 10);
        if second != before {
            if let Some(count) = place_of(&mut self.seconds, before) {
                *count = Compact::of(self.running.into());
            }
            clear(&mut self.seconds, before, second);
            self.running = 0;
        }
        self.sum = self.tenths.iter().fold(0, |sum, n| sum.saturating_add(*n));
        self.step = step;
    }

    /// Those a second over the last tenth of a second: what the running step has, and as much of the step before it as
    /// lies less than 100 ms back, supposing that it was evenly spread.
    #[must_use]
    pub fn rate_now(&self, now: u64) -> f64 {
        let step = step_of(now);
        let elapsed = (now % TENTH) as f64 / TENTH as f64;
        let running = f64::from(self.in_tenth(step));
        let before = step.checked_sub(1).map_or(0, |step| self.in_tenth(step));
        (running + f64::from(before) * (1.0 - elapsed)) * 10.0
    }

    /// Those in the last second: ten steps of 100 ms, the running one included.
    #[must_use]
    pub fn rate_1s(&self, now: u64) -> f64 {
        let step = step_of(now);
        let steps = step.saturating_sub(9)..=step;
        f64::from(steps.fold(0u32, |sum, step| sum.saturating_add(self.in_tenth(step))))
    }

    /// Those a second over the last ten seconds, the running one included.
    #[must_use]
    pub fn rate_10s(&self, now: u64) -> f64 {
        let second = step_of(now) / 10;
        let seconds = second.saturating_sub(9)..=second;
        seconds.map(|second| self.in_second(second)).sum::<u64>() as f64 / 10.0
    }

    /// The most in any one second, at steps of 100 ms.
    #[must_use]
    pub fn peak(&self) -> f64 {
        f64::from(self.peak)
    }

    fn in_tenth(&self, step: u64) -> u32 {
        kept(&self.tenths, self.step, step)
    }

    fn in_second(&self, second: u64) -> u64 {
        if second == self.step / 10 {
            return self.running.into();
        }
        kept(&self.seconds, self.step / 10, second).get()
    }
}

#[inline]
fn place_of<T>(ring: &mut [T; STEPS], step: u64) -> Option<&mut T> {
    ring.get_mut((step % STEPS as u64) as usize)
}

/// Clears the places of the steps behind `from` up to `to`.
fn clear<T: Copy + Default>(ring: &mut [T; STEPS], from: u64, to: u64) {
    if to - from >= STEPS as u64 {
        *ring = [T::default(); STEPS];
        return;
    }
    for step in from + 1..=to {
        if let Some(count) = place_of(ring, step) {
            *count = T::default();
        }
    }
}

/// The count of `step` where the ring, whose latest step is `latest`, still has it.
fn kept<T: Copy + Default>(ring: &[T; STEPS], latest: u64, step: u64) -> T {
    let has = step <= latest && latest - step < STEPS as u64;
    let place = (step % STEPS as u64) as usize;
    if has {
        ring.get(place).copied().unwrap_or_default()
    } else {
        T::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    fn counted(times: &[u64]) -> Windows {
        let mut windows = Windows::default();
        for at in times {
            windows.add(Step::of(*at));
        }
        windows
    }

    #[test]
    fn rates_of_a_hand_checked_second() {
        // 3 in the first tenth, 5 in the second, 2 in the tenth; a second on, 4.
        let start = 1_767_225_600 * SECOND;
        let mut times = vec![start, start + 1, start + 99_999_999];
        times.extend([start + TENTH; 5]);
        times.extend([start + 9 * TENTH; 2]);
        let windows = counted(&times);
        let now = start + SECOND - 1;
        assert_eq!((windows.rate_1s(now), windows.peak()), (10.0, 10.0));
        assert!((windows.rate_now(start + 9 * TENTH + TENTH / 2) - 20.0).abs() < 1e-9);
        // Half of the 5 lies within the last 100 ms of the middle of the third tenth.
        assert!((windows.rate_now(start + 2 * TENTH + TENTH / 2) - 25.0).abs() < 1e-9);
        // A tenth on, the first tenth has left the second; 2 s on, all have.
        assert_eq!(windows.rate_1s(now + TENTH), 7.0);
        assert_eq!(windows.rate_1s(now + 2 * SECOND), 0.0);
        assert_eq!(windows.rate_10s(now), 1.0);
        assert_eq!(windows.rate_10s(now + 9 * SECOND), 1.0);
        assert_eq!(windows.rate_10s(now + 10 * SECOND), 0.0);
        times.extend([start + SECOND; 4]);
        let windows = counted(&times);
        // From the second tenth to the one after the second: 5 + 2 + 4.
        assert_eq!(
            (windows.rate_1s(start + SECOND), windows.peak()),
            (11.0, 11.0)
        );
        assert_eq!(windows.rate_10s(start + SECOND), 1.4);
    }

    #[test]
    fn the_peak_stays_when_the_rate_falls() {
        let windows = counted(&[0, 1, 2, 3 * SECOND]);
        assert_eq!((windows.peak(), windows.rate_1s(3 * SECOND)), (3.0, 1.0));
    }

    #[test]
    fn a_second_that_is_over_is_rounded_a_little() {
        let mut windows = Windows::default();
        (0..1_000_001).for_each(|_| windows.add(Step::of(0)));
        assert_eq!(windows.rate_10s(SECOND - 1), 100_000.1);
        assert_eq!(windows.rate_1s(SECOND - 1), 1_000_001.0);
        windows.add(Step::of(SECOND));
        let error = windows.rate_10s(SECOND) / 100_000.2 - 1.0;
        assert!(error.abs() < 0.0003, "{error}");
    }

    #[test]
    fn one_that_comes_late_counts_in_its_own_step() {
        let mut windows = counted(&[5 * SECOND]);
        windows.add(Step::of(4 * SECOND + 5 * TENTH));
        windows.add(Step::of(0));
        assert_eq!(windows.rate_1s(5 * SECOND), 2.0);
        assert_eq!(windows.rate_1s(5 * SECOND + 5 * TENTH), 1.0);
        assert_eq!(windows.rate_10s(5 * SECOND), 0.3);
        windows.add(Step::of(u64::MAX));
        windows.add(Step::of(0));
        assert_eq!(windows.rate_1s(u64::MAX), 1.0);
    }

    proptest! {
        #[test]
        fn windows_are_what_counting_gives(mut times in proptest::collection::vec(0u64..30 * SECOND, 1..200)) {
            times.sort_unstable();
            let (mut windows, mut peak) = (Windows::default(), 0);
            for (i, at) in times.iter().enumerate() {
                windows.add(Step::of(*at));
                let step = step_of(*at);
                let within = |steps: u64, unit: u64| {
                    times[..=i].iter().filter(|t| step_of(**t) / unit + steps > step / unit).count()
                };
                peak = peak.max(within(10, 1));
                prop_assert_eq!(windows.rate_1s(*at), within(10, 1) as f64);
                prop_assert!((windows.rate_10s(*at) - within(10, 10) as f64 / 10.0).abs() < 1e-9);
                prop_assert_eq!(windows.peak(), peak as f64);
            }
        }
    }
}
