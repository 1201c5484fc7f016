//! Octets in the last second, however many those are.

use fcn_observe::fetch::fetch;

/// A step, in nanoseconds.
const STEP: u64 = 100_000_000;
/// Steps in a second.
const STEPS: usize = 10;

/// Octets in ten steps of 100 ms, up to a last time that the owner knows and hands in. The newest step is summed exactly;
/// those that are over are rounded to an `f32`: by one part in 16 million, in half the room of a number that could hold
/// what a fast link carries in them.
#[derive(Clone, Debug, Default)]
pub struct Rate {
    running: u64,
    /// By the step's number modulo 10; the newest one is in `running`.
    steps: [f32; STEPS],
}

fn place(number: u64) -> usize {
    (number % STEPS as u64) as usize
}

impl Rate {
    /// Has the parts fetched from memory that [`add`](Self::add) touches.
    #[inline]
    pub fn fetch(&self) {
        fetch(&self.running);
        fetch(&self.steps[STEPS - 1]);
    }

    /// Adds `octets` at `at`, which is not before `last`, the time of the last addition.
    pub fn add(&mut self, last: u64, at: u64, octets: u64) {
        let (from, to) = (last / STEP, at / STEP);
        if from != to {
            self.steps[place(from)] = self.running as f32;
            let gone = (to - from).min(STEPS as u64);
            for number in to - gone + 1..=to {
                self.steps[place(number)] = 0.0;
            }
            self.running = 0;
        }
        self.running = self.running.saturating_add(octets);
    }

    /// Octets in the last ten steps at the time `now`, the running one included.
    #[must_use]
    pub fn sum(&self, last: u64, now: u64) -> f64 {
        let (latest, newest) = (last / STEP, now / STEP);
        let of = |number: u64| match latest.checked_sub(number) {
            Some(0) => self.running as f64,
            Some(1..10) => f64::from(self.steps[place(number)]),
            _ => 0.0,
        };
        (newest.saturating_sub(STEPS as u64 - 1)..=newest)
            .map(of)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_second_of_the_fastest_link_is_counted() {
        // 1.6 Tbit/s in packets of 40,000 octets, 200 ns apart.
        let mut rate = Rate::default();
        let mut last = 0;
        for n in 0..5_000_000 {
            rate.add(last, n * 200, 40_000);
            last = n * 200;
        }
        let error = rate.sum(last, last) / 2e11 - 1.0;
        assert!(error.abs() < 1e-6, "{error}");
        assert_eq!(rate.sum(last, last + 10 * STEP), 0.0);
    }

    proptest! {
        #[test]
        fn it_is_what_counting_gives(
            mut adds in proptest::collection::vec((0..40 * STEP, 0..10_000_u64), 1..100),
            later in 0..15 * STEP,
        ) {
            adds.sort_unstable();
            let mut rate = Rate::default();
            let mut last = 0;
            for (at, octets) in &adds {
                rate.add(last, *at, *octets);
                last = *at;
            }
            let now = last + later;
            let want: u64 = (adds.iter())
                .filter(|(at, _)| at / STEP + 10 > now / STEP)
                .map(|(_, octets)| octets)
                .sum();
            prop_assert_eq!(rate.sum(last, now), want as f64);
        }
    }
}
