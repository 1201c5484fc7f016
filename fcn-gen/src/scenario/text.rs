//! Quantities as text: "50us", "100km", "25Gbit/s", "64KiB". Exact: what the unit cannot hold is refused, not rounded.

use crate::units::{Ps, Rate};
use core::fmt;
use serde::de::{self, Deserialize, Deserializer, Visitor};

/// Time that light takes through fibre: 5 µs a kilometre (a refractive index of 1.5).
const PS_PER_METRE: u64 = 5_000;
/// Longest duration of anything: an hour.
const LONGEST: Ps = Ps(3_600 * Ps::SECOND.0);
/// Longest delay of a link: a second, that is 200,000 km of fibre.
const LONGEST_DELAY: Ps = Ps::SECOND;
/// Fastest link: 10 Tbit/s.
const FASTEST: u64 = 10_000_000_000_000;
/// Largest size: a tebibyte.
const LARGEST: u64 = 1 << 40;

type Units = &'static [(&'static str, u64)];

const DURATIONS: Units = &[
    ("ps", 1),
    ("ns", 1_000),
    ("us", 1_000_000),
    ("µs", 1_000_000),
    ("ms", 1_000_000_000),
    ("s", 1_000_000_000_000),
];
const DISTANCES: Units = &[("m", PS_PER_METRE), ("km", 1_000 * PS_PER_METRE)];
const RATES: Units = &[
    ("", 1),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
];
const SIZES: Units = &[
    ("", 1),
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// A span of time, such as "1.5ms": 0 to an hour.
///
/// # Errors
/// What is wrong with the text, and what would do.
pub fn duration(text: &str) -> Result<Ps, String> {
    let wanted = "a time such as \"500ns\", \"50us\", \"1.5ms\" or \"2s\"";
    let ps = quantity(text, &[DURATIONS], wanted)?;
    at_most(text, ps, LONGEST.0, "an hour").map(Ps)
}

/// A link's delay, as a time or as a length of fibre: 0 to a second (200,000 km).
///
/// # Errors
/// What is wrong with the text, and what would do.
pub fn delay(text: &str) -> Result<Ps, String> {
    let wanted = "a time such as \"1us\", or kilometres of fibre such as \"100km\" (5 µs each)";
    let ps = quantity(text, &[DURATIONS, DISTANCES], wanted)?;
    at_most(text, ps, LONGEST_DELAY.0, "a second (200,000 km of fibre)").map(Ps)
}

/// A rate in bits per second, such as "100G": 1 bit/s to 10 Tbit/s.
///
/// # Errors
/// What is wrong with the text, and what would do.
pub fn rate(text: &str) -> Result<Rate, String> {
    let wanted = "a rate such as \"100G\", \"25Gbit/s\" or \"10M\"";
    let digits = text.trim();
    let digits = ["bit/s", "bps", "b/s"]
        .iter()
        .find_map(|unit| digits.strip_suffix(unit))
        .unwrap_or(digits);
    let bits = quantity(digits, &[RATES], wanted)?;
    let bits = at_most(text, bits, FASTEST, "10 Tbit/s")?;
    Rate::new(bits)
        .ok_or_else(|| format!("\"{text}\" is no rate; 1 bit/s to 10 Tbit/s are allowed"))
}

/// A size in octets, such as "64KiB", "200kB" or "4096": 0 to 1 TiB.
///
/// # Errors
/// What is wrong with the text, and what would do.
pub fn size(text: &str) -> Result<u64, String> {
    let octets = quantity(
        text,
        &[SIZES],
        "a size such as \"4096\", \"200kB\" or \"64KiB\"",
    )?;
    at_most(text, octets, LARGEST, "1 TiB")
}

fn at_most(text: &str, value: u64, most: u64, shown: &str) -> Result<u64, String> {
    if value > most {
        return Err(format!(
            "\"{text}\" is too much; at most {shown} is allowed"
        ));
    }
    Ok(value)
}

/// A decimal number and a unit, in the smallest unit.
fn quantity(text: &str, units: &[Units], wanted: &str) -> Result<u64, String> {
    let text = text.trim();
    if text.starts_with('-') {
        return Err(format!("\"{text}\" is negative; wanted is {wanted}"));
    }
    let no = || format!("\"{text}\" is not understood; wanted is {wanted}");
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end).ok_or_else(no)?;
    let unit = unit.trim();
    let factor = units
        .iter()
        .copied()
        .flatten()
        .find(|(name, _)| *name == unit)
        .map(|(_, factor)| *factor)
        .ok_or_else(no)?;
    let number = number.replace('_', "");
    let (whole, part) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty()
        || whole.len() > 18
        || part.len() > 15
        || part.contains('.')
        || number.ends_with('.')
    {
        return Err(no());
    }
    let mantissa: u128 = format!("{whole}{part}").parse().map_err(|_| no())?;
    let scale = 10u128.pow(u32::try_from(part.len()).map_err(|_| no())?);
    let value = mantissa * u128::from(factor);
    if !value.is_multiple_of(scale) {
        return Err(format!(
            "\"{text}\" is finer than can be told apart; wanted is {wanted}"
        ));
    }
    u64::try_from(value / scale).map_err(|_| format!("\"{text}\" is too much; wanted is {wanted}"))
}

/// A quantity read from TOML text (or a plain integer, where its kind has a unit-less form).
macro_rules! text_value {
    ($(#[$doc:meta])* $name:ident($inner:ty), $read:path, $expects:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) struct $name(pub $inner);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $name;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expects)
                    }

                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$name, E> {
                        $read(text).map($name).map_err(E::custom)
                    }

                    fn visit_i64<E: de::Error>(self, number: i64) -> Result<$name, E> {
                        $read(&number.to_string()).map($name).map_err(E::custom)
                    }

                    fn visit_u64<E: de::Error>(self, number: u64) -> Result<$name, E> {
                        $read(&number.to_string()).map($name).map_err(E::custom)
                    }
                }
                deserializer.deserialize_any(Text)
            }
        }
    };
}

text_value!(
    /// A span of time.
    DurationText(Ps), duration, "a time such as \"50us\""
);
text_value!(
    /// A link's delay.
    DelayText(Ps), delay, "a time such as \"1us\", or a distance such as \"100km\""
);
text_value!(
    /// A rate.
    RateText(Rate), rate, "a rate such as \"100G\""
);
text_value!(
    /// A size.
    SizeText(u64), size, "a size such as \"64KiB\""
);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantities_as_people_write_them() {
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
    fn what_makes_no_sense_says_what_would() {
        for (got, part) in [
            (duration("50"), "not understood"),
            (duration("-5us"), "negative"),
            (duration("0.1ps"), "finer"),
            (duration("2h"), "wanted is a time"),
            (duration("5s.5"), "not understood"),
            (duration("1..5s"), "not understood"),
            (duration(".5s"), "not understood"),
            (duration("5.s"), "not understood"),
            (duration("3601s"), "an hour"),
            (duration("5km"), "not understood"),
            (delay("300000km"), "200,000 km"),
            (delay("999999999999999999999s"), "not understood"),
        ] {
            let message = got.unwrap_err();
            assert!(message.contains(part), "{message}");
        }
        assert!(rate("0").unwrap_err().contains("no rate"));
        assert!(rate("0G").unwrap_err().contains("no rate"));
        assert!(rate("11T").unwrap_err().contains("10 Tbit/s"));
        assert!(size("64 KB").unwrap_err().contains("64KiB"));
    }

    proptest! {
        #[test]
        fn whole_numbers_keep_their_value_in_every_unit(number in 0u64..1_000, unit in 0usize..DURATIONS.len()) {
            let (name, factor) = DURATIONS[unit];
            prop_assert_eq!(duration(&format!("{number}{name}")), Ok(Ps(number * factor)));
        }

        #[test]
        fn decimals_are_exact(thousandths in 0u64..1_000_000) {
            let text = format!("{}.{:03}us", thousandths / 1_000, thousandths % 1_000);
            prop_assert_eq!(duration(&text), Ok(Ps(thousandths * 1_000)));
        }

        #[test]
        fn a_kilometre_is_a_thousand_metres(km in 0u64..200_000) {
            prop_assert_eq!(delay(&format!("{km}km")), delay(&format!("{}m", km * 1_000)));
        }

        #[test]
        fn sizes_and_rates_keep_their_value(number in 1u64..1_000_000) {
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
