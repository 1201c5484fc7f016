//! Numbers that look random and are the same each time. Not here: what is done with them.

/// SplitMix64.
#[derive(Clone, Copy, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 where `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        if end == 0 {
            return 0;
        }
        (self.number() % end as u64) as usize
    }

    /// One of a list that is not empty.
    pub fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_below_their_end_and_differ() {
        let mut random = Random(1);
        let drawn: Vec<_> = (0..100).map(|_| random.below(10)).collect();
        assert!(drawn.iter().all(|n| *n < 10));
        assert!((0..10).all(|n| drawn.contains(&n)));
        assert_eq!(random.below(0), 0);
        assert_eq!(Random(7).number(), Random(7).number());
    }
}
