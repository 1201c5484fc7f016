//! The hash of the tables that packets from anybody fill: fast, and seeded, so that nobody can choose keys that collide.
//!
//! Why not rustc-hash's, which other tables use: keys that collide in it are easily made, whatever its seed.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Makes hashers of one random seed.
#[derive(Clone, Copy, Debug)]
pub struct Seeded {
    start: u64,
    factor: u64,
}

impl Default for Seeded {
    fn default() -> Self {
        let random = |of: u8| RandomState::new().hash_one(of);
        Self {
            start: random(0),
            factor: random(1) | 1,
        }
    }
}

impl Seeded {
    /// The hash of a key of five words: what a hasher does, with fewer products one behind the other.
    #[inline]
    #[must_use]
    pub fn of_words(&self, [a, b, c, d, e]: [u64; 5]) -> u64 {
        let (start, factor) = (self.start, self.factor);
        let pairs = fold(a ^ start, b ^ factor) ^ fold(c ^ factor, d ^ start).rotate_left(32);
        fold(pairs ^ e, factor)
    }
}

/// The halves of the product, put together.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

impl BuildHasher for Seeded {
    type Hasher = Folding;

    #[inline]
    fn build_hasher(&self) -> Folding {
        Folding {
            state: self.start,
            factor: self.factor,
        }
    }
}

/// Folds the halves of a 128-bit product at each word.
#[derive(Clone, Copy, Debug)]
pub struct Folding {
    state: u64,
    factor: u64,
}

impl Hasher for Folding {
    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.state = fold(self.state ^ word, self.factor).wrapping_add(self.factor);
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        for octet in rest {
            self.write_u64(u64::from(*octet));
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn hashes_spread_and_differ_between_seeds() {
        let seeded = Seeded::default();
        let spread = |part: fn(u64) -> u64| {
            let hashes = (0..10_000u64).map(|key| part(seeded.hash_one([0, key << 40, 7])));
            hashes.collect::<BTreeSet<_>>().len()
        };
        assert_eq!(spread(|hash| hash), 10_000);
        // 128 values of the top bits, which the table compares first, and of 65,536 places most.
        assert_eq!(spread(|hash| hash >> 57), 128);
        assert!(spread(|hash| hash & 0xFFFF) > 8_500);
        let words = (0..10_000u64).map(|key| seeded.of_words([7, key << 40, 0, key, 1]));
        assert_eq!(words.collect::<BTreeSet<_>>().len(), 10_000);
        assert_ne!(seeded.hash_one(5u64), Seeded::default().hash_one(5u64));
    }
}
