//! How much a flow carried in the window before a moment: an estimate by steps, since single packets are not kept.

/// Steps that a window is made of. One more is kept: the oldest one lies in the window by a part.
const STEPS: u64 = 16;
const KEPT: usize = STEPS as usize + 1;

/// Octets in the last steps of a window. Times do not go back; the owner hands in the last one.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    octets: [u32; KEPT],
}

/// Length of a step, so that a window is a whole number of them.
pub const fn step_of(window: u64) -> u64 {
    let step = window / STEPS;
    if step == 0 { 1 } else { step }
}

impl Window {
    /// Nothing yet.
    pub const NEW: Self = Self { octets: [0; KEPT] };

    /// Adds `octets` at `at`, which is not before `last`, the time of the last addition.
    #[inline]
    pub fn add(&mut self, step: u64, last: u64, at: u64, octets: u64) {
        let (from, to) = (last / step, at / step);
        if from != to {
            let gone = (to - from).min(KEPT as u64);
            for number in to - gone + 1..=to {
                self.octets[(number % KEPT as u64) as usize] = 0;
            }
        }
        let sum = &mut self.octets[(to % KEPT as u64) as usize];
        *sum = sum.saturating_add(u32::try_from(octets).unwrap_or(u32::MAX));
    }

    /// Octets in the window before `now`. Of the oldest step counts the part that lies in it, as if its octets were
    /// spread evenly.
    pub fn before(&self, step: u64, last: u64, now: u64) -> f64 {
        let (latest, newest) = (last / step, now / step);
        let of = |number: u64| match latest.checked_sub(number) {
            Some(back) if back < KEPT as u64 => {
                f64::from(self.octets[(number % KEPT as u64) as usize])
            }
            _ => 0.0,
        };
        let Some(oldest) = newest.checked_sub(STEPS) else {
            return (0..=newest).map(of).sum();
        };
        let part = (step - now % step) as f64 / step as f64;
        of(oldest) * part + (oldest + 1..=newest).map(of).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The estimate lies between what the window held without its oldest step and with the whole of it.
        #[test]
        fn it_is_near_what_counting_gives(
            gaps in proptest::collection::vec((0u64..3000, 0u64..10_000), 1..200),
            window in 16u64..20_000, later in 0u64..30_000, start in 0u64..1_000_000,
        ) {
            let step = step_of(window);
            let mut it = Window::NEW;
            let (mut at, mut last, mut all) = (start, start, Vec::new());
            for (gap, octets) in gaps {
                at += gap;
                it.add(step, last, at, octets);
                last = at;
                all.push((at, octets));
            }
            let now = last + later;
            let since = |from: u64| all.iter().filter(|(at, _)| *at >= from).map(|(_, n)| *n as f64).sum::<f64>();
            let length = step * STEPS;
            let least = since((now.saturating_sub(length) / step + 1) * step);
            let most = since(now.saturating_sub(length) / step * step);
            let got = it.before(step, last, now);
            prop_assert!(least - 1e-6 <= got && got <= most + 1e-6, "{} {} {}", least, got, most);
        }
    }
}
