//! Value types shared by the command line and the configuration file: sizes, durations, prefixes.

use fcn_link::pacing::Rate;
use fcn_tool::quantity;
use fcn_wire::pnc::Prefix;
use serde::{Deserialize, Deserializer};
use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

macro_rules! values {
    ($($(#[$doc:meta])* $name:ident($inner:ty), $read:expr;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(pub $inner);

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let read: fn(&str) -> Result<$inner, String> = $read;
                read(text).map(Self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                quantity::deserialize(deserializer, str::parse)
            }
        }
    )+};
}

values! {
    /// A size in octets: `500MB`, `64MiB`, `1048576`.
    Size(u64), |text| quantity::size(text);
    /// A duration: `250ms`, `10s`.
    Span(Duration), |text| quantity::duration(text);
    /// A count: `1000`, `10k`, `1.5M`.
    Count(u64), |text| quantity::count(text);
    /// The speed of a link in bit/s: `25Gbps`.
    Speed(NonZeroU64), speed;
    /// An address prefix, or a single address.
    Net(Prefix), quantity::prefix;
}

/// Parses the speed of a link.
fn speed(text: &str) -> Result<NonZeroU64, String> {
    let bits = match quantity::rate(text)? {
        Rate::L1Bits(bits) | Rate::L2Bits(bits) => NonZeroU64::new(bits),
        Rate::Packets(_) => None,
    };
    bits.ok_or_else(|| format!("`{text}` is not a speed: write 25Gbps"))
}

/// Parses the pace of a replay: `real`, or a speed factor.
///
/// # Errors
///
/// The text is neither.
pub fn pace(text: &str) -> Result<f64, String> {
    match text {
        "real" => Ok(1.0),
        _ => quantity::factor(text).map_err(|how| how + "; or real"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Sample {
        size: Size,
        span: Span,
        net: Vec<Net>,
    }

    #[test]
    fn command_line_and_file_parse_alike() {
        let sample: Sample = toml::from_str(
            "size = \"64MiB\"\nspan = \"250ms\"\nnet = [\"10.0.0.7/8\", \"fd00::1\"]",
        )
        .unwrap();
        assert_eq!(sample.size, "64MiB".parse().unwrap());
        assert_eq!(sample.size, Size(64 << 20));
        assert_eq!(sample.span, Span(Duration::from_millis(250)));
        assert_eq!(sample.net[0], "10.0.0.0/8".parse().unwrap());
        let numbers: Sample = toml::from_str("size = 4096\nspan = 2\nnet = []").unwrap();
        assert_eq!((numbers.size, numbers.span.0.as_secs()), (Size(4_096), 2));
    }

    #[test]
    fn errors_explain_the_syntax() {
        for (message, how) in [
            ("1MiBs".parse::<Size>().unwrap_err(), "64MiB"),
            ("0".parse::<Size>().unwrap_err(), "64MiB"),
            ("99999999999GiB".parse::<Size>().unwrap_err(), "64MiB"),
            ("10.0.0.0/33".parse::<Net>().unwrap_err(), "10.0.0.0/8"),
            ("x".parse::<Net>().unwrap_err(), "fd00::/16"),
            ("1 day".parse::<Span>().unwrap_err(), "10s"),
            ("10Mpps".parse::<Speed>().unwrap_err(), "25Gbps"),
            (pace("fast").unwrap_err(), "real"),
            (pace("0").unwrap_err(), "real"),
            (pace("nan").unwrap_err(), "real"),
        ] {
            assert!(message.contains(how), "{message}");
        }
        assert_eq!((pace("real"), pace("2.5x")), (Ok(1.0), Ok(2.5)));
        let message = toml::from_str::<Sample>("size = \"much\"\nspan = 2\nnet = []").unwrap_err();
        assert!(
            message.to_string().contains("`much` is not a valid size"),
            "{message}"
        );
    }
}
