//! Quantities in human notation, on command lines and in scenario files: rates, times, counts,
//! sizes, factors, MAC addresses, prefixes. Values that the smallest unit cannot represent are
//! refused, not rounded, except durations. Quantities are also formatted here.

use core::fmt;
use core::num::NonZeroU32;
use fcn_link::pacing::Rate;
use fcn_wire::pnc::Prefix;
use serde::de::{Deserializer, Error, Visitor};
use std::time::Duration;

/// Names of units, each with its value in the smallest unit.
pub type Units = &'static [(&'static str, u64)];

/// Units of time, in picoseconds.
pub const TIMES: Units = &[
    ("ps", 1),
    ("ns", 1_000),
    ("us", 1_000_000),
    ("µs", 1_000_000),
    ("ms", 1_000_000_000),
    ("s", 1_000_000_000_000),
];
/// Units of time that command lines accept in addition to [`TIMES`].
const LONG_TIMES: Units = &[
    ("", 1_000_000_000_000),
    ("m", 60_000_000_000_000),
    ("min", 60_000_000_000_000),
    ("h", 3_600_000_000_000_000),
];
/// Prefixes of decimal units.
pub const PREFIXES: Units = &[
    ("", 1),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
];
/// Units of size, in octets.
pub const SIZES: Units = &[
    ("", 1),
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// A kind of quantity.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Name, for error messages.
    what: &'static str,
    /// Examples of the notation, for error messages.
    write: &'static str,
    units: &'static [Units],
    /// True if units are case-insensitive: `KB` is also `kB`.
    any_case: bool,
}

impl Kind {
    /// Creates a kind with case-sensitive units.
    #[must_use]
    pub const fn new(what: &'static str, write: &'static str, units: &'static [Units]) -> Self {
        Self {
            what,
            write,
            units,
            any_case: false,
        }
    }

    const fn in_any_case(self) -> Self {
        Self {
            any_case: true,
            ..self
        }
    }

    /// Parses a decimal number with a unit; returns it in the smallest unit.
    ///
    /// # Errors
    /// The text is invalid; the message shows the notation.
    pub fn read(&self, text: &str) -> Result<u64, String> {
        let text = text.trim();
        let Self { what, write, .. } = self;
        let no = || format!("`{text}` is not a valid {what}: write {write}");
        if text.starts_with('-') {
            return Err(format!("`{text}` is negative: write {write}"));
        }
        let end = text
            .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
            .unwrap_or(text.len());
        let (number, unit) = text.split_at_checked(end).ok_or_else(no)?;
        let unit = unit.trim();
        let is = |name: &str| name == unit || (self.any_case && name.eq_ignore_ascii_case(unit));
        let mut units = self.units.iter().copied().flatten();
        let factor = units.find(|(name, _)| is(name)).ok_or_else(no)?.1;
        let number = number.replace('_', "");
        let (whole, part) = number.split_once('.').unwrap_or((&number, ""));
        let fits = (1..=18).contains(&whole.len()) && part.len() <= 15;
        if !fits || part.contains('.') || number.ends_with('.') {
            return Err(no());
        }
        let mantissa: u128 = format!("{whole}{part}").parse().map_err(|_| no())?;
        let scale = 10u128.pow(u32::try_from(part.len()).map_err(|_| no())?);
        let value = mantissa * u128::from(factor);
        if !value.is_multiple_of(scale) {
            return Err(format!("`{text}` is too fine: write {write}"));
        }
        u64::try_from(value / scale).map_err(|_| format!("`{text}` is too large: write {write}"))
    }
}

/// Deserializes a quantity from a file: text, or a whole number.
///
/// # Errors
/// The value is neither, or `read` refuses it.
pub fn deserialize<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    read: fn(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    struct Text<T>(fn(&str) -> Result<T, String>);
    impl<T> Visitor<'_> for Text<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number with its unit, in quotes")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
            self.0(text).map_err(E::custom)
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
            self.visit_str(&number.to_string())
        }

        fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
            self.visit_str(&number.to_string())
        }
    }
    deserializer.deserialize_any(Text(read))
}

/// Parses a rate: `100kpps`, `1.5Mpps`; `10Gbps` (bits of layer 2: frames with FCS), `10Gbps-l1`
/// (with preamble and gap, as in a link's speed).
///
/// # Errors
/// The text is invalid; the message shows the notation.
pub fn rate(text: &str) -> Result<Rate, String> {
    const KIND: Kind = Kind::new(
        "rate",
        "100kpps, 2.5Gbps (layer 2) or 10Gbps-l1",
        &[PREFIXES],
    )
    .in_any_case();
    type Unit = (&'static str, fn(u64) -> Rate);
    const UNITS: [Unit; 7] = [
        ("pps", Rate::Packets),
        ("bps-l1", Rate::L1Bits),
        ("bit/s-l1", Rate::L1Bits),
        ("bps-l2", Rate::L2Bits),
        ("bit/s-l2", Rate::L2Bits),
        ("bps", Rate::L2Bits),
        ("bit/s", Rate::L2Bits),
    ];
    let how = || format!("`{text}` is not a valid rate: write {}", KIND.write);
    let lower = text.trim().to_ascii_lowercase();
    let (number, make) = UNITS
        .iter()
        .find_map(|(unit, make)| Some((lower.strip_suffix(unit)?, make)))
        .ok_or_else(how)?;
    match KIND.read(number) {
        Ok(0) => Err(format!("`{text}`: a rate must be at least 1 per second")),
        Ok(value) => Ok(make(value)),
        Err(_) => Err(how()),
    }
}

/// Parses a count: `1000000`, `10k`, `1.5M`.
///
/// # Errors
/// The text is invalid, or 0.
pub fn count(text: &str) -> Result<u64, String> {
    const KIND: Kind = Kind::new("number", "1000, 10k or 1.5M", &[PREFIXES]).in_any_case();
    match KIND.read(text)? {
        0 => Err("it must be at least 1".to_owned()),
        value => Ok(value),
    }
}

/// Parses N of "one in N": as [`count`], up to 2³² − 1.
///
/// # Errors
/// The text is invalid.
pub fn one_in(text: &str) -> Result<NonZeroU32, String> {
    let value = u32::try_from(count(text)?).ok().and_then(NonZeroU32::new);
    value.ok_or_else(|| format!("it must be at most {}", u32::MAX))
}

/// Parses a duration, rounded down to nanoseconds: `500us`, `20ms`, `10s`, `5min`, `1h`; a number
/// alone is seconds.
///
/// # Errors
/// The text is invalid, or 0.
pub fn duration(text: &str) -> Result<Duration, String> {
    const KIND: Kind =
        Kind::new("time", "500us, 20ms, 10s, 5min or 1h", &[TIMES, LONG_TIMES]).in_any_case();
    match KIND.read(text)? / 1_000 {
        0 => Err(format!("`{text}`: it must be greater than 0")),
        nanoseconds => Ok(Duration::from_nanos(nanoseconds)),
    }
}

/// Parses a speed factor: `0.5`, `2`, `10x`; a millionth to a million.
///
/// # Errors
/// The text is invalid.
pub fn factor(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix(['x', 'X']).unwrap_or(text);
    let factor = number.parse().ok();
    factor
        .filter(|factor| (1e-6..=1e6).contains(factor))
        .ok_or_else(|| {
            format!("`{text}` is not a valid factor: write 2, 0.5 or 10x; 0.000001 to 1000000")
        })
}

/// Parses a share: `0.5`, `50%`; from 0 to 1.
///
/// # Errors
/// The text is invalid.
pub fn share(text: &str) -> Result<f64, String> {
    let share: Option<f64> = match text.strip_suffix('%') {
        Some(percent) => percent.trim_end().parse().ok().map(|of: f64| of / 100.0),
        None => text.parse().ok(),
    };
    share
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| format!("`{text}` is not a valid share: write 0.5 or 50%; 0 to 1"))
}

/// Parses a size in octets: `500MB`, `64MiB`, `1048576`.
///
/// # Errors
/// The text is invalid, or 0.
pub fn size(text: &str) -> Result<u64, String> {
    const KIND: Kind =
        Kind::new("size", "64MiB, 500MB or 1048576", &[SIZES, PREFIXES]).in_any_case();
    match KIND.read(text)? {
        0 => Err(format!(
            "`{text}` is not a valid size: write {}",
            KIND.write
        )),
        octets => Ok(octets),
    }
}

/// Parses a MAC address: `02:00:00:00:00:01`, also with hyphens.
///
/// # Errors
/// The text is invalid.
pub fn mac(text: &str) -> Result<[u8; 6], String> {
    let octets: Option<Vec<u8>> = text
        .split([':', '-'])
        .map(|octet| match octet.as_bytes() {
            [a, b] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => {
                u8::from_str_radix(octet, 16).ok()
            }
            _ => None,
        })
        .collect();
    octets
        .and_then(|octets| octets.try_into().ok())
        .ok_or_else(|| format!("`{text}` is not a valid MAC address: write 02:00:00:00:00:01"))
}

/// Parses an address prefix: `10.0.0.0/8`, `fd00::/16`, or an address alone. Bits after the prefix
/// are cleared.
///
/// # Errors
/// The text is invalid.
pub fn prefix(text: &str) -> Result<Prefix, String> {
    text.parse().map_err(|no| format!("`{text}` is {no}"))
}

/// Formats a number with a comma after every three digits.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number of things; `what` is the singular.
#[must_use]
pub fn counted(number: u64, what: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{} {what}{s}", grouped(number))
}

/// Formats bits per second, with a prefix.
#[must_use]
pub fn bits_per_second(bits: f64) -> String {
    let (value, unit) = match bits {
        b if b >= 1e9 => (b / 1e9, "Gbit/s"),
        b if b >= 1e6 => (b / 1e6, "Mbit/s"),
        b if b >= 1e3 => (b / 1e3, "kbit/s"),
        b => (b, "bit/s"),
    };
    format!("{value:.2} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_sizes_and_addresses_are_read() {
        for (text, value) in [("2", 2.0), ("0.5", 0.5), ("10x", 10.0), ("2.5X", 2.5)] {
            assert_eq!(factor(text), Ok(value));
        }
        for text in ["", "x", "0", "-1", "nan", "inf", "1e7", "fast", "2xx"] {
            assert!(factor(text).is_err(), "{text}");
        }
        for (text, octets) in [
            ("1.5MB", 1_500_000),
            ("2MiB", 2 << 20),
            ("1TiB", 1 << 40),
            ("4096", 4_096),
        ] {
            assert_eq!(size(text), Ok(octets));
        }
        for text in ["", "0", "MiB", "1MiBs", "99999999TiB", "lots"] {
            assert!(size(text).is_err(), "{text}");
        }
        let octets = [2, 0, 0x5e, 0, 0, 0xff];
        assert_eq!(mac("02-00-5e-00-00-Ff"), Ok(octets));
        assert_eq!(mac("02:00:5E:00:00:ff"), Ok(octets));
        for text in [
            "",
            "02:00:00:00:00",
            "02:00:00:00:00:+1",
            "02:00:00:00:00:01:02",
        ] {
            assert!(mac(text).is_err(), "{text}");
        }
    }

    #[test]
    fn one_thing_is_singular() {
        assert_eq!(counted(1, "packet"), "1 packet");
        assert_eq!(counted(0, "packet"), "0 packets");
        assert_eq!(counted(1_234, "packet"), "1,234 packets");
    }

    #[test]
    fn rates_are_read() {
        for (text, expected) in [
            ("100kpps", Rate::Packets(100_000)),
            ("1.5Mpps", Rate::Packets(1_500_000)),
            ("7pps", Rate::Packets(7)),
            ("10Gbps", Rate::L2Bits(10_000_000_000)),
            ("2.5 Gbit/s", Rate::L2Bits(2_500_000_000)),
            ("100Gbps-l1", Rate::L1Bits(100_000_000_000)),
        ] {
            assert_eq!(rate(text), Ok(expected), "{text}");
        }
        for text in [
            "",
            "10",
            "10G",
            "pps",
            "-1kpps",
            "0pps",
            "1e30pps",
            "NaNpps",
            "infbps",
            "10kpps-l1",
        ] {
            assert!(rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_and_counts_are_read() {
        assert_eq!(duration("500us"), Ok(Duration::from_micros(500)));
        assert_eq!(duration("2"), Ok(Duration::from_secs(2)));
        assert_eq!(duration("1.5min"), Ok(Duration::from_secs(90)));
        assert_eq!(count("1.5M"), Ok(1_500_000));
        for text in ["", "0s", "-1s", "1 fortnight", "1e300h", "nan"] {
            assert!(duration(text).is_err(), "{text}");
        }
        for text in ["", "0", "-5", "1e19", "x"] {
            assert!(count(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn prefixes_are_prefix() {
        let read = prefix("10.0.0.7/24").unwrap();
        assert_eq!((read.address(), read.bits()), ([10, 0, 0, 0].into(), 24));
        assert!(prefix("fd00::1").unwrap().is_host());
        for text in [
            "",
            "10.0.0.0/33",
            "::/129",
            "10.0.0/8",
            "a/8",
            "10.0.0.0/",
            "::/-1",
            "::/+1",
        ] {
            assert!(prefix(text).is_err(), "{text}");
        }
    }
}
