//! Octets that a flow carried in the window before a given time: an estimate by steps, because
//! single packets are not kept.

/// Number of steps in a window.
const STEPS: u64 = 16;
const KEPT: usize = STEPS as usize;

/// Returns the length of a step: a window divided by `STEPS`, at least 1.
pub const fn step_of(window: u64) -> u64 {
    let step = window / STEPS;
    if step == 0 { 1 } else { step }
}

/// Octets in the completed steps. Together with those of the current step, which the owner keeps,
/// they cover the window; the oldest step lies only partly in it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Steps {
    octets: [u32; KEPT],
    /// Number of the last completed step.
    newest: u64,
}

impl Steps {
    /// Returns true if the octets of `step` are still needed after the step `to` has begun.
    #[inline]
    pub const fn is_within_window(step: u64, to: u64) -> bool {
        to - step <= STEPS
    }

    /// Stores the octets of a completed step. Step numbers do not decrease.
    pub fn close(&mut self, number: u64, octets: u32) {
        let gone = (number - self.newest).min(STEPS);
        for empty in number - gone + 1..number {
            self.octets[(empty % STEPS) as usize] = 0;
        }
        self.octets[(number % STEPS) as usize] = octets;
        self.newest = number;
    }

    fn octets(&self, number: u64) -> u32 {
        match self.newest.checked_sub(number) {
            Some(back) if back < STEPS => self.octets[(number % STEPS) as usize],
            _ => 0,
        }
    }
}

/// Returns the octets in the window before `now`, for a flow whose last octets, `current` of them,
/// were counted in the step of `last`. The oldest step counts in proportion to its part in the
/// window, as if its octets were spread evenly.
pub fn before(steps: &Steps, current: u32, step: u64, last: u64, now: u64) -> f64 {
    let (latest, newest) = (last / step, now / step);
    let count = |number: u64| {
        f64::from(match number.cmp(&latest) {
            core::cmp::Ordering::Less => steps.octets(number),
            core::cmp::Ordering::Equal => current,
            core::cmp::Ordering::Greater => 0,
        })
    };
    let Some(oldest) = newest.checked_sub(STEPS) else {
        return (0..=newest).map(count).sum();
    };
    let part = (step - now % step) as f64 / step as f64;
    count(oldest) * part + (oldest + 1..=newest).map(count).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The estimate lies between the octets in the window without and with its whole oldest
        /// step.
        #[test]
        fn estimate_is_near_the_exact_count(
            gaps in proptest::collection::vec((0u64..3000, 0u64..10_000), 1..200),
            window in 16u64..20_000, later in 0u64..30_000, start in 0u64..1_000_000,
        ) {
            let step = step_of(window);
            let (mut steps, mut current) = (Steps::default(), 0);
            let (mut at, mut last, mut all) = (start, start, Vec::new());
            for (gap, octets) in gaps {
                at += gap;
                let (from, to) = (last / step, at / step);
                if from != to {
                    if Steps::is_within_window(from, to) {
                        steps.close(from, current);
                    }
                    current = 0;
                }
                current += octets as u32;
                last = at;
                all.push((at, octets));
            }
            let now = last + later;
            let since = |from: u64| all.iter().filter(|(at, _)| *at >= from).map(|(_, n)| *n as f64).sum::<f64>();
            let length = step * STEPS;
            let least = since((now.saturating_sub(length) / step + 1) * step);
            let most = since(now.saturating_sub(length) / step * step);
            let got = before(&steps, current, step, last, now);
            prop_assert!(least - 1e-6 <= got && got <= most + 1e-6, "{} {} {}", least, got, most);
        }
    }
}
