//! What the time stamps of a place are multiples of: how exact they are.

/// Time stamps that what divides all of them is unlikely to divide by chance.
const ENOUGH: u8 = 4;

/// What the time stamps of a place are multiples of, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unit {
    divisor: u64,
    /// The same of the times from the first one to the others.
    apart: u64,
    first: u64,
    stamps: u8,
}

const fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Unit {
    /// That of time stamps of nanoseconds.
    #[cfg(test)]
    pub(crate) const NANOSECOND: Self = Self {
        divisor: 1,
        apart: 1,
        first: 0,
        stamps: u8::MAX,
    };

    /// Takes in a time stamp, in nanoseconds.
    pub const fn add(&mut self, at: u64) {
        if self.stamps == 0 {
            self.first = at;
        }
        self.stamps = self.stamps.saturating_add(1);
        self.divisor = common_divisor(at, self.divisor);
        self.apart = common_divisor(at.abs_diff(self.first), self.apart);
    }

    /// The unit; where there are few time stamps, only the power of ten in it.
    #[must_use]
    pub const fn get(self) -> u64 {
        if self.stamps >= ENOUGH {
            return self.divisor;
        }
        let mut unit = 1;
        while unit < u64::MAX / 10 && self.divisor > 0 && self.divisor.is_multiple_of(unit * 10) {
            unit *= 10;
        }
        unit
    }

    /// What the times between time stamps are multiples of: more than the unit where all were shifted, or where packets come
    /// like clockwork.
    #[must_use]
    pub(crate) const fn apart(self) -> u64 {
        if self.stamps > ENOUGH { self.apart } else { 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_time_stamps_tell_powers_of_ten() {
        let unit = |stamps: &[u64]| {
            let mut unit = Unit::default();
            stamps.iter().for_each(|at| unit.add(*at));
            unit.get()
        };
        assert_eq!(unit(&[]), 1);
        assert_eq!(unit(&[0]), 1);
        assert_eq!(unit(&[1_700_000_000_123_456_789]), 1);
        assert_eq!(unit(&[1_700_000_000_124_000_000]), 1_000_000);
        assert_eq!(unit(&[4_000_000, 8_000_000]), 1_000_000);
        let jiffies: Vec<_> = (1..20).map(|n| n * n * 4_000_000).collect();
        assert_eq!(unit(&jiffies), 4_000_000);
        assert_eq!(unit(&[u64::MAX; 2]), 1);
        assert_eq!(
            unit(&[10_000_000_000_000_000_000; 2]),
            10_000_000_000_000_000_000
        );
    }
}
