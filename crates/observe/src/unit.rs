//! Resolution of the time stamps of a capture point.

/// Number of time stamps of which a common divisor is unlikely to be chance.
const ENOUGH: u8 = 4;

/// Common divisor of the time stamps of a capture point, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unit {
    divisor: u64,
    /// Common divisor of the differences between the first time stamp and the others.
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
    /// The unit of time stamps with nanosecond resolution.
    #[cfg(test)]
    pub(crate) const NANOSECOND: Self = Self {
        divisor: 1,
        apart: 1,
        first: 0,
        stamps: u8::MAX,
    };

    /// Adds a time stamp, in nanoseconds.
    pub const fn add(&mut self, at: u64) {
        if self.stamps == 0 {
            self.first = at;
        }
        self.stamps = self.stamps.saturating_add(1);
        self.divisor = common_divisor(at, self.divisor);
        self.apart = common_divisor(at.abs_diff(self.first), self.apart);
    }

    /// Returns the unit; with fewer than four time stamps, only its largest power of ten.
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

    /// Returns the common divisor of the differences between time stamps, 1 if there are too few.
    /// It exceeds the unit if all time stamps are shifted, or if packets come at regular intervals.
    #[must_use]
    pub(crate) const fn apart(self) -> u64 {
        if self.stamps > ENOUGH { self.apart } else { 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_time_stamps_yield_powers_of_ten() {
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
