//! Time stamps: conversion from the units of an interface to nanoseconds since the epoch.

use std::fmt;

/// Resolution of an interface's time stamps: the value of `if_tsresol` (draft-ietf-opsawg-pcapng,
/// section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Resolution(u8);

impl Resolution {
    /// Microseconds: the default.
    pub const MICROSECONDS: Self = Self(6);
    /// Nanoseconds.
    pub const NANOSECONDS: Self = Self(9);
    /// Set for a power of 2 instead of 10.
    const BINARY: u8 = 0x80;

    /// Creates a resolution from the octet in the file: the unit in seconds as a negated power of
    /// 10, or of 2 if the highest bit is set.
    #[must_use]
    pub const fn new(octet: u8) -> Self {
        Self(octet)
    }

    /// Returns the octet in the file.
    #[must_use]
    pub const fn octet(self) -> u8 {
        self.0
    }

    const fn is_binary(self) -> bool {
        self.0 & Self::BINARY != 0
    }

    const fn exponent(self) -> u32 {
        (self.0 & !Self::BINARY) as u32
    }
}

/// Writes the unit: `10^-9 s`.
impl fmt::Display for Resolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base = if self.is_binary() { 2 } else { 10 };
        write!(f, "{base}^-{} s", self.exponent())
    }
}

/// Validity of a packet's time stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// The file states a time.
    Valid,
    /// The file has none for the packet: a simple packet block of pcapng.
    Missing,
    /// The file states a time before 1970 or after the year 2554, which 64 bits of nanoseconds
    /// cannot hold.
    OutOfRange,
}

/// Converts an interface's time stamps to nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    unit: Unit,
    /// Offset to add, in nanoseconds.
    offset: i128,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// Nanoseconds per unit.
    Nanoseconds(u64),
    /// Units per nanosecond.
    Part(u128),
    /// Units of two to the power of minus this, in seconds.
    Binary(u32),
}

/// Nanoseconds per second.
const NANOSECONDS: u64 = 1_000_000_000;

impl Clock {
    /// Creates a clock; `offset` is in seconds.
    pub(super) fn new(resolution: Resolution, offset: i64) -> Self {
        let exponent = resolution.exponent();
        let unit = if resolution.is_binary() {
            Unit::Binary(exponent)
        } else if exponent <= 9 {
            Unit::Nanoseconds(10u64.pow(9 - exponent))
        } else {
            // A divisor that overflows exceeds any time stamp.
            Unit::Part(10u128.saturating_pow(exponent - 9))
        };
        Self {
            unit,
            offset: i128::from(offset) * i128::from(NANOSECONDS),
        }
    }

    /// Converts `stamp` to nanoseconds since the epoch, rounded down; `None` before the epoch, and
    /// after the 584 years that 64 bits hold.
    #[inline]
    pub(super) fn nanoseconds(&self, stamp: u64) -> Option<u64> {
        if let Unit::Nanoseconds(factor) = self.unit
            && self.offset == 0
        {
            return stamp.checked_mul(factor);
        }
        self.with_any(stamp)
    }

    fn with_any(&self, stamp: u64) -> Option<u64> {
        let stamp = u128::from(stamp);
        // 64 bits by at most 30 bits.
        let nanoseconds = match self.unit {
            Unit::Nanoseconds(factor) => stamp * u128::from(factor),
            Unit::Part(divisor) => stamp / divisor,
            Unit::Binary(exponent) => (stamp * u128::from(NANOSECONDS)) >> exponent,
        };
        u64::try_from(nanoseconds as i128 + self.offset).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn nanoseconds(octet: u8, offset: i64, stamp: u64) -> Option<u64> {
        Clock::new(Resolution::new(octet), offset).nanoseconds(stamp)
    }

    #[test]
    fn units_are_seconds_by_powers_of_ten_or_two() {
        for (octet, stamp, want) in [
            (0, 3, 3_000_000_000),
            (3, 3, 3_000_000),
            (6, 1_700_000_000_123_456, 1_700_000_000_123_456_000),
            (9, u64::MAX, u64::MAX),
            (10, 19, 1),
            (12, 1_999, 1),
            (28, u64::MAX, 1),
            (29, u64::MAX, 0),
            (127, u64::MAX, 0),
            (0x80, 3, 3_000_000_000),
            (0x80 + 1, 3, 1_500_000_000),
            (0x80 + 20, 1 << 20, 1_000_000_000),
            (0x80 + 32, (7 << 32) + (1 << 31), 7_500_000_000),
            (0x80 + 63, u64::MAX, 1_999_999_999),
            (0xFF, u64::MAX, 0),
        ] {
            assert_eq!(nanoseconds(octet, 0, stamp), Some(want), "{octet}");
        }
    }

    #[test]
    fn out_of_range_time_stamps_are_none() {
        assert_eq!(nanoseconds(6, 0, u64::MAX), None);
        assert_eq!(nanoseconds(0, 0, 18_446_744_074), None);
        assert_eq!(nanoseconds(0x80, 0, u64::MAX), None);
        assert_eq!(nanoseconds(9, -1, 999_999_999), None);
        assert_eq!(nanoseconds(9, -1, 1_000_000_000), Some(0));
        assert_eq!(nanoseconds(9, 1, u64::MAX), None);
        assert_eq!(nanoseconds(9, i64::MAX, 0), None);
        assert_eq!(nanoseconds(9, i64::MIN, u64::MAX), None);
        // A time stamp that is in range only with its offset.
        let (far, near) = (20_000_000_000, 10_000_000_000);
        assert_eq!(
            nanoseconds(0, -10_000_000_000, far),
            Some(near * NANOSECONDS)
        );
    }

    proptest! {
        #[test]
        fn no_stamp_panics_and_later_ones_are_not_earlier(
            octet in any::<u8>(),
            offset in prop_oneof![Just(0), any::<i64>(), -1000i64..1000],
            stamps in [any::<u64>(), any::<u64>()],
        ) {
            let [a, b] = stamps;
            let earlier = nanoseconds(octet, offset, a.min(b));
            let later = nanoseconds(octet, offset, a.max(b));
            if let (Some(earlier), Some(later)) = (earlier, later) {
                prop_assert!(earlier <= later);
            }
        }
    }
}
