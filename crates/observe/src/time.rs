//! The time that callers pass to the roles: nanoseconds of any clock.

use core::fmt;
use core::ops::Add;
use core::time::Duration;

/// Nanoseconds since a start that the caller chose. Roles only compare and subtract times; one that lies before the
/// last is taken as no time having passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// That many nanoseconds after the start.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the start.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero where it is not.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A duration in whole nanoseconds; more than 584 years count as that.
pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Add<Duration> for Time {
    type Output = Self;

    /// Stops at the greatest time there is.
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanos(duration)))
    }
}

impl fmt::Display for Time {
    /// In seconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}.{:09} s",
            self.0 / 1_000_000_000,
            self.0 % 1_000_000_000
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_saturate_at_both_ends() {
        let (early, late) = (Time::from_nanos(5), Time::from_nanos(1_000_000_007));
        assert_eq!(late.since(early), Duration::from_nanos(1_000_000_002));
        assert_eq!(early.since(late), Duration::ZERO);
        assert_eq!((early + Duration::from_micros(1)).as_nanos(), 1005);
        assert_eq!(late + Duration::MAX, Time::from_nanos(u64::MAX));
        assert_eq!(late.to_string(), "1.000000007 s");
    }
}
