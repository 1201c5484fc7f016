//! Quantities of a simulation as integers: picoseconds, bits per second. Reading them from text is `scenario/`'s business.

use core::fmt;
use core::ops::Add;
use core::time::Duration;

/// A point in virtual time, or a span of it: picoseconds since the simulation's start.
///
/// Picoseconds, so that an octet at 800 Gbit/s (10 ps) is exact; 64 bits of them last 213 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ps(pub u64);

impl Ps {
    /// The end of time.
    pub const MAX: Self = Self(u64::MAX);
    /// A second.
    pub const SECOND: Self = Self(1_000_000_000_000);

    /// From nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanoseconds: u64) -> Self {
        Self(nanoseconds.saturating_mul(1_000))
    }

    /// Whole nanoseconds, rounded down.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0 / 1_000
    }

    /// Seconds.
    #[must_use]
    pub fn as_seconds_f64(self) -> f64 {
        self.0 as f64 / 1e12
    }

    /// What is left of `self` behind `earlier`; nothing where that is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Ps {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl From<Duration> for Ps {
    fn from(duration: Duration) -> Self {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self::from_nanos(nanoseconds)
    }
}

impl From<Ps> for fcn_node::Time {
    fn from(at: Ps) -> Self {
        Self::from_nanos(at.as_nanos())
    }
}

impl fmt::Display for Ps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ps = self.0 as f64;
        match self.0 {
            0 => f.write_str("0"),
            1..1_000 => write!(f, "{ps} ps"),
            1_000..1_000_000 => write!(f, "{} ns", rounded(ps / 1e3)),
            1_000_000..1_000_000_000 => write!(f, "{} µs", rounded(ps / 1e6)),
            1_000_000_000..1_000_000_000_000 => write!(f, "{} ms", rounded(ps / 1e9)),
            _ => write!(f, "{} s", rounded(ps / 1e12)),
        }
    }
}

/// Three decimals at most.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// A link's rate: bits per second, not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(core::num::NonZeroU64);

impl Rate {
    /// `None` for 0.
    #[must_use]
    pub const fn new(bits_per_second: u64) -> Option<Self> {
        match core::num::NonZeroU64::new(bits_per_second) {
            Some(rate) => Some(Self(rate)),
            None => None,
        }
    }

    /// Bits per second.
    #[must_use]
    pub const fn bits_per_second(self) -> u64 {
        self.0.get()
    }

    /// Bits per second, for those who need them so.
    #[must_use]
    pub const fn non_zero(self) -> core::num::NonZeroU64 {
        self.0
    }

    /// How long `octets` take, rounded up.
    #[must_use]
    pub fn time(self, octets: u64) -> Ps {
        let bits = u128::from(octets) * 8 * 1_000_000_000_000;
        let ps = bits.div_ceil(u128::from(self.0.get()));
        Ps(u64::try_from(ps).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.0.get() as f64;
        match self.0.get() {
            0..1_000 => write!(f, "{bits} bit/s"),
            1_000..1_000_000 => write!(f, "{} kbit/s", rounded(bits / 1e3)),
            1_000_000..1_000_000_000 => write!(f, "{} Mbit/s", rounded(bits / 1e6)),
            _ => write!(f, "{} Gbit/s", rounded(bits / 1e9)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serialisation_time_is_exact_where_it_can_be_and_never_short() {
        let rate = Rate::new(100_000_000_000).unwrap();
        assert_eq!(rate.time(1), Ps(80));
        assert_eq!(rate.time(1_086), Ps(86_880));
        assert_eq!(Rate::new(3).unwrap().time(1), Ps(2_666_666_666_667));
        assert_eq!(Rate::new(1).unwrap().time(u64::MAX), Ps::MAX);
        assert_eq!(Rate::new(0), None);
    }

    #[test]
    fn quantities_are_shown_in_the_unit_that_fits() {
        assert_eq!(Ps(999).to_string(), "999 ps");
        assert_eq!(Ps::from_nanos(1_500).to_string(), "1.5 µs");
        assert_eq!(Ps(2_000_000_000_000).to_string(), "2 s");
        assert_eq!(
            Rate::new(100_000_000_000).unwrap().to_string(),
            "100 Gbit/s"
        );
        assert_eq!(Rate::new(2_500_000).unwrap().to_string(), "2.5 Mbit/s");
    }
}
