//! Quantities of a simulation as integers (picoseconds, bits per second, octets), with parsing and
//! formatting.

use core::fmt;
use core::ops::Add;
use core::time::Duration;
use fcn_observe::time::nanos;
use fcn_tool::quantity::{self, Kind, PREFIXES, SIZES, TIMES, Units};
use serde::{Deserialize, Deserializer};

/// A point in virtual time or a duration: picoseconds since the simulation's start.
///
/// In picoseconds, the time of an octet at 800 Gbit/s (10 ps) is exact; 64 bits last for 213 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ps(pub u64);

impl Ps {
    /// The maximum time.
    pub const MAX: Self = Self(u64::MAX);
    /// One second.
    pub const SECOND: Self = Self(1_000_000_000_000);

    /// Converts nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanoseconds: u64) -> Self {
        Self(nanoseconds.saturating_mul(1_000))
    }

    /// Returns whole nanoseconds, rounded down.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0 / 1_000
    }

    /// Returns seconds.
    #[must_use]
    pub fn as_seconds_f64(self) -> f64 {
        self.0 as f64 / 1e12
    }

    /// Returns the time from `earlier` to `self`, or zero if `earlier` is later.
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
        Self::from_nanos(nanos(duration))
    }
}

impl From<Ps> for Duration {
    fn from(span: Ps) -> Self {
        Self::from_nanos(span.as_nanos())
    }
}

impl fmt::Display for Ps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match TIMES.iter().rev().find(|(_, size)| self.0 >= *size) {
            Some((unit, size)) => write!(f, "{} {unit}", rounded(self.0, *size)),
            None => f.write_str("0"),
        }
    }
}

/// Returns `value` in units of `size`, rounded to three decimals.
fn rounded(value: u64, size: u64) -> f64 {
    (value as f64 / size as f64 * 1e3).round() / 1e3
}

/// A link's rate in bits per second, not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(core::num::NonZeroU64);

impl Rate {
    /// Creates a rate; `None` for 0.
    #[must_use]
    pub const fn new(bits_per_second: u64) -> Option<Self> {
        match core::num::NonZeroU64::new(bits_per_second) {
            Some(rate) => Some(Self(rate)),
            None => None,
        }
    }

    /// Returns bits per second.
    #[must_use]
    pub const fn bits_per_second(self) -> u64 {
        self.0.get()
    }

    /// Returns bits per second as a non-zero integer.
    #[must_use]
    pub const fn non_zero(self) -> core::num::NonZeroU64 {
        self.0
    }

    /// Returns the transmission time of `octets`, rounded up.
    #[must_use]
    pub fn time(self, octets: u64) -> Ps {
        let bits = u128::from(octets) * 8 * 1_000_000_000_000;
        let ps = bits.div_ceil(u128::from(self.0.get()));
        Ps(u64::try_from(ps).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.0.get();
        let (unit, size) = match bits {
            0..1_000 => ("bit/s", 1),
            1_000..1_000_000 => ("kbit/s", 1_000),
            1_000_000..1_000_000_000 => ("Mbit/s", 1_000_000),
            _ => ("Gbit/s", 1_000_000_000),
        };
        write!(f, "{} {unit}", rounded(bits, size))
    }
}

/// Units of fibre length, as the propagation delay of light: 5 µs a kilometre (a refractive index
/// of 1.5).
const DISTANCES: Units = &[("m", 5_000), ("km", 5_000_000)];
/// Maximum duration: an hour.
const LONGEST: Ps = Ps(3_600 * Ps::SECOND.0);
/// Maximum delay of a link: a second, that is 200,000 km of fibre.
const LONGEST_DELAY: Ps = Ps::SECOND;
/// Maximum link rate: 10 Tbit/s.
const FASTEST: u64 = 10_000_000_000_000;
/// Maximum size: a tebibyte.
pub(crate) const LARGEST: u64 = 1 << 40;

fn duration(text: &str) -> Result<Ps, String> {
    const KIND: Kind = Kind::new("time", "500ns, 50us, 1.5ms or 2s", &[TIMES]);
    at_most(text, KIND.read(text)?, LONGEST.0, "an hour").map(Ps)
}

fn delay(text: &str) -> Result<Ps, String> {
    const KIND: Kind = Kind::new(
        "delay",
        "a time such as 1us, or kilometres of fibre such as 100km (5 µs each)",
        &[TIMES, DISTANCES],
    );
    let most = "a second (200,000 km of fibre)";
    at_most(text, KIND.read(text)?, LONGEST_DELAY.0, most).map(Ps)
}

fn rate(text: &str) -> Result<Rate, String> {
    const KIND: Kind = Kind::new("rate", "100G, 25Gbit/s or 10M", &[PREFIXES]);
    let trimmed = text.trim();
    let mut units = ["bit/s", "bps", "b/s"].iter();
    let digits = units.find_map(|unit| trimmed.strip_suffix(unit));
    let bits = KIND.read(digits.unwrap_or(trimmed))?;
    let bits = at_most(text, bits, FASTEST, "10 Tbit/s")?;
    Rate::new(bits)
        .ok_or_else(|| format!("`{text}` is not a valid rate; 1 bit/s to 10 Tbit/s are allowed"))
}

fn size(text: &str) -> Result<u64, String> {
    const KIND: Kind = Kind::new("size", "4096, 200kB or 64KiB", &[SIZES]);
    at_most(text, KIND.read(text)?, LARGEST, "1 TiB")
}

fn at_most(text: &str, value: u64, most: u64, shown: &str) -> Result<u64, String> {
    if value > most {
        return Err(format!("`{text}` is too much; at most {shown} is allowed"));
    }
    Ok(value)
}

/// A link's delay, given as a time or as a length of fibre.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delay(pub Ps);

/// A size in octets, from `FROM` to `TO`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size<const FROM: u64 = 0, const TO: u64 = LARGEST>(pub u64);

impl<'de> Deserialize<'de> for Ps {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        quantity::deserialize(deserializer, duration)
    }
}

impl<'de> Deserialize<'de> for Delay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        quantity::deserialize(deserializer, |text| delay(text).map(Self))
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        quantity::deserialize(deserializer, rate)
    }
}

impl<'de, const FROM: u64, const TO: u64> Deserialize<'de> for Size<FROM, TO> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        quantity::deserialize(deserializer, |text| match size(text)? {
            octets if (FROM..=TO).contains(&octets) => Ok(Self(octets)),
            _ => Err(format!(
                "`{text}` is out of range; {FROM} to {TO} octets are allowed"
            )),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn serialisation_time_is_exact_or_rounded_up() {
        let rate = Rate::new(100_000_000_000).unwrap();
        assert_eq!(rate.time(1), Ps(80));
        assert_eq!(rate.time(1_086), Ps(86_880));
        assert_eq!(Rate::new(3).unwrap().time(1), Ps(2_666_666_666_667));
        assert_eq!(Rate::new(1).unwrap().time(u64::MAX), Ps::MAX);
        assert_eq!(Rate::new(0), None);
    }

    #[test]
    fn quantities_are_shown_in_a_fitting_unit() {
        assert_eq!(Ps(999).to_string(), "999 ps");
        assert_eq!(Ps::from_nanos(1_500).to_string(), "1.5 µs");
        assert_eq!(Ps(2_000_000_000_000).to_string(), "2 s");
        assert_eq!(
            Rate::new(100_000_000_000).unwrap().to_string(),
            "100 Gbit/s"
        );
        assert_eq!(Rate::new(2_500_000).unwrap().to_string(), "2.5 Mbit/s");
    }

    #[test]
    fn quantities_are_parsed() {
        assert_eq!(duration("50us"), Ok(Ps::from_nanos(50_000)));
        assert_eq!(duration("1.5 ms"), Ok(Ps::from_nanos(1_500_000)));
        assert_eq!(duration("2s"), Ok(Ps(2 * Ps::SECOND.0)));
        assert_eq!(delay("100km"), Ok(Ps::from_nanos(500_000)));
        assert_eq!(delay("3m"), Ok(Ps::from_nanos(15)));
        assert_eq!(rate("25Gbit/s"), rate("25G"));
        assert_eq!(
            rate("2.5Gbps").map(Rate::bits_per_second),
            Ok(2_500_000_000)
        );
        assert_eq!(size("64KiB"), Ok(65_536));
        assert_eq!(size("200kB"), Ok(200_000));
        assert_eq!(size("4_096"), Ok(4_096));
    }

    #[test]
    fn errors_name_the_expected_format() {
        for (got, part) in [
            (duration("50"), "is not a valid time"),
            (duration("-5us"), "negative"),
            (duration("0.1ps"), "too fine"),
            (duration("2h"), "is not a valid time: write 500ns"),
            (duration("5s.5"), "is not a valid "),
            (duration("1..5s"), "is not a valid "),
            (duration(".5s"), "is not a valid "),
            (duration("5.s"), "is not a valid "),
            (duration("3601s"), "an hour"),
            (duration("5km"), "is not a valid "),
            (delay("300000km"), "200,000 km"),
            (delay("999999999999999999999s"), "is not a valid "),
        ] {
            let message = got.unwrap_err();
            assert!(message.contains(part), "{message}");
        }
        assert!(rate("0").unwrap_err().contains("not a valid rate"));
        assert!(rate("0G").unwrap_err().contains("not a valid rate"));
        assert!(rate("11T").unwrap_err().contains("10 Tbit/s"));
        assert!(size("64 KB").unwrap_err().contains("64KiB"));
    }

    proptest! {
        #[test]
        fn whole_numbers_are_exact_in_all_units(number in 0u64..1_000, unit in 0usize..TIMES.len()) {
            let (name, factor) = TIMES[unit];
            prop_assert_eq!(duration(&format!("{number}{name}")), Ok(Ps(number * factor)));
        }

        #[test]
        fn decimals_are_exact(thousandths in 0u64..1_000_000) {
            let text = format!("{}.{:03}us", thousandths / 1_000, thousandths % 1_000);
            prop_assert_eq!(duration(&text), Ok(Ps(thousandths * 1_000)));
        }

        #[test]
        fn kilometre_equals_1000_metres(km in 0u64..200_000) {
            prop_assert_eq!(delay(&format!("{km}km")), delay(&format!("{}m", km * 1_000)));
        }

        #[test]
        fn sizes_and_rates_are_exact(number in 1u64..1_000_000) {
            prop_assert_eq!(size(&number.to_string()), Ok(number));
            prop_assert_eq!(size(&format!("{number}KiB")), Ok(number << 10));
            prop_assert_eq!(rate(&format!("{number}Mbit/s")).map(Rate::bits_per_second), Ok(number * 1_000_000));
        }

        #[test]
        fn no_text_panics(text in ".{0,24}") {
            let _ = (duration(&text), delay(&text), rate(&text), size(&text));
        }
    }
}
