//! The order of kinds: each is spread as evenly as its weight permits, in a repeated pattern.

/// Maximum length of a pattern in frames.
pub const LONGEST_PATTERN: usize = 4096;

/// A sequence of kinds' indices, repeated endlessly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    order: Vec<u8>,
    kinds: usize,
}

impl Pattern {
    /// Creates the pattern of kinds with these weights. Returns `None` if all weights are 0, there
    /// are more than 255, or their sum, divided by their common divisor, exceeds
    /// [`LONGEST_PATTERN`].
    #[must_use]
    pub fn new(weights: &[u32]) -> Option<Self> {
        let divisor = weights.iter().copied().fold(0, gcd);
        if divisor == 0 || weights.len() > usize::from(u8::MAX) {
            return None;
        }
        let weights = weights.iter().map(|weight| i64::from(weight / divisor));
        let weights: Vec<i64> = weights.collect();
        let sum: i64 = weights.iter().sum();
        if sum > LONGEST_PATTERN as i64 {
            return None;
        }
        // Each step credits every kind with its share; the kind with the highest credit is next.
        let mut owed = vec![0_i64; weights.len()];
        let mut order = Vec::with_capacity(sum as usize);
        for _ in 0..sum {
            let mut next = 0;
            for (kind, weight) in weights.iter().enumerate() {
                owed[kind] += weight;
                if owed[kind] > owed[next] {
                    next = kind;
                }
            }
            owed[next] -= sum;
            order.push(next as u8);
        }
        Some(Self {
            order,
            kinds: weights.len(),
        })
    }

    /// Returns the kinds, in order.
    #[must_use]
    pub fn order(&self) -> &[u8] {
        &self.order
    }

    /// Returns the number of frames of each kind among the first `frames` frames.
    #[must_use]
    pub fn counts(&self, frames: u64) -> Vec<u64> {
        let len = self.order.len() as u64;
        let (rounds, rest) = (frames / len, frames % len);
        let mut counts = vec![0; self.kinds];
        for (at, kind) in self.order.iter().enumerate() {
            counts[usize::from(*kind)] += rounds + u64::from((at as u64) < rest);
        }
        counts
    }

    /// Returns a number of slots, about `wanted`, for which a slot always holds the same kind when
    /// reused.
    #[must_use]
    pub fn slots(&self, wanted: usize) -> usize {
        let len = self.order.len();
        len * wanted.div_ceil(len).max(1)
    }
}

/// Returns the greatest common divisor.
pub(super) const fn gcd(mut a: u32, mut b: u32) -> u32 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn kinds_are_spread_evenly() {
        let order = |weights: &[u32]| Pattern::new(weights).unwrap().order().to_vec();
        assert_eq!(order(&[7]), [0]);
        assert_eq!(order(&[2, 2]), [0, 1]);
        assert_eq!(order(&[3, 1]), [0, 0, 1, 0]);
        assert_eq!(order(&[0, 5]), [1]);
        for refused in [&[][..], &[0, 0], &[4096, 1]] {
            assert_eq!(Pattern::new(refused), None);
        }
        assert_eq!(Pattern::new(&[4096, 4096]).unwrap().order().len(), 2);
        assert_eq!(Pattern::new(&[3, 2]).unwrap().slots(1024), 1025);
        assert_eq!(Pattern::new(&[4095, 1]).unwrap().slots(1024), 4096);
    }

    proptest! {
        #[test]
        fn counts_follow_the_weights(weights in proptest::collection::vec(0u32..300, 1..10), frames in 0u64..20_000) {
            let Some(pattern) = Pattern::new(&weights) else {
                prop_assert!(weights.iter().all(|weight| *weight == 0));
                return Ok(());
            };
            let counts = pattern.counts(frames);
            prop_assert_eq!(counts.iter().sum::<u64>(), frames);
            let sum = f64::from(weights.iter().sum::<u32>());
            let mut seen = vec![0_u64; weights.len()];
            for n in 0..frames as usize {
                seen[usize::from(pattern.order()[n % pattern.order().len()])] += 1;
            }
            prop_assert_eq!(&seen, &counts);
            for (weight, count) in weights.iter().zip(counts) {
                // The difference from its share is at most the number of kinds.
                let share = frames as f64 * f64::from(*weight) / sum;
                prop_assert!((count as f64 - share).abs() <= weights.len() as f64);
            }
        }
    }
}
