//! The last few steps of time, each with a sum: a window that slides.

/// The sums of the last `N` steps of `STEP` nanoseconds, up to a last time that the owner knows and hands in.
#[derive(Clone, Copy, Debug)]
pub struct Steps<const N: usize, const STEP: u64> {
    /// By the step's number modulo `N`.
    sums: [u32; N],
}

impl<const N: usize, const STEP: u64> Steps<N, STEP> {
    /// All zero.
    pub fn new() -> Self {
        Self { sums: [0; N] }
    }

    /// Adds `amount` at `at`, which is not before `last`, the time of the last addition.
    pub fn add(&mut self, last: u64, at: u64, amount: u64) {
        let (from, to) = (last / STEP, at / STEP);
        if from != to {
            let gone = (to - from).min(N as u64);
            for number in to - gone + 1..=to {
                self.sums[(number % N as u64) as usize] = 0;
            }
        }
        let sum = &mut self.sums[(to % N as u64) as usize];
        *sum = sum.saturating_add(u32::try_from(amount).unwrap_or(u32::MAX));
    }

    /// The sum of step `number`, where `last` is the time of the last addition.
    fn get(&self, last: u64, number: u64) -> u64 {
        let newest = last / STEP;
        if number <= newest && newest - number < N as u64 {
            self.sums[(number % N as u64) as usize].into()
        } else {
            0
        }
    }

    /// The sum of the last `N` steps at the time `now`, the running one included.
    pub fn sum(&self, last: u64, now: u64) -> u64 {
        let newest = now / STEP;
        (newest.saturating_sub(N as u64 - 1)..=newest)
            .map(|number| self.get(last, number))
            .sum()
    }

    /// An estimate of the sum of the `N` − 1 times `STEP` nanoseconds before `now`: of the oldest step counts the part
    /// that reaches into them, as if its sum were spread evenly.
    pub fn before(&self, last: u64, now: u64) -> f64 {
        let newest = now / STEP;
        let Some(oldest) = newest.checked_sub(N as u64 - 1) else {
            return self.sum(last, now) as f64;
        };
        let whole: u64 = (oldest + 1..=newest)
            .map(|number| self.get(last, number))
            .sum();
        let part = (STEP - now % STEP) as f64 / STEP as f64;
        self.get(last, oldest) as f64 * part + whole as f64
    }
}
