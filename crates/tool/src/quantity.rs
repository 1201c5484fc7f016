//! What people write on a command line: rates, times, counts, sizes, factors, MAC addresses. Showing quantities, too.

use fcn_link::pacing::Rate;
use std::time::Duration;

/// Reads a rate: `100kpps`, `1.5Mpps`; `10Gbps` (bits of layer 2: frames with FCS), `10Gbps-l1` (with preamble and gap, as
/// a link's speed is counted).
///
/// # Errors
/// It is none; the text says how rates are written.
pub fn rate(text: &str) -> Result<Rate, String> {
    let how = || format!("`{text}` is no rate: write 100kpps, 2.5Gbps (layer 2) or 10Gbps-l1");
    let lower = text.trim().to_ascii_lowercase();
    let (number, make): (&str, fn(u64) -> Rate) = if let Some(number) = lower.strip_suffix("pps") {
        (number, Rate::Packets)
    } else if let Some(number) = lower
        .strip_suffix("bps-l1")
        .or_else(|| lower.strip_suffix("bit/s-l1"))
    {
        (number, Rate::L1Bits)
    } else if let Some(number) = ["bps-l2", "bit/s-l2", "bps", "bit/s"]
        .iter()
        .find_map(|suffix| lower.strip_suffix(suffix))
    {
        (number, Rate::L2Bits)
    } else {
        return Err(how());
    };
    match scaled(number) {
        Some(value) if value >= 1 => Ok(make(value)),
        Some(_) => Err(format!("`{text}`: a rate is 1 a second or more")),
        None => Err(how()),
    }
}

/// A number with k, M, G or T behind it.
fn scaled(text: &str) -> Option<u64> {
    let text = text.trim();
    let (number, factor) = match text.bytes().last()? {
        b'k' => (&text[..text.len() - 1], 1e3),
        b'm' => (&text[..text.len() - 1], 1e6),
        b'g' => (&text[..text.len() - 1], 1e9),
        b't' => (&text[..text.len() - 1], 1e12),
        _ => (text, 1.0),
    };
    let value: f64 = number.trim().parse().ok()?;
    let value = (value * factor).round();
    // Above this a float does not hold every integer, and no link is so fast.
    (0.0..=9e15).contains(&value).then_some(value as u64)
}

/// Reads a count: `1000000`, `10k`, `1.5M`.
///
/// # Errors
/// It is none, or 0.
pub fn count(text: &str) -> Result<u64, String> {
    match scaled(&text.to_ascii_lowercase()) {
        Some(0) => Err("it must be 1 or more".to_owned()),
        Some(value) => Ok(value),
        None => Err(format!("`{text}` is no number: write 1000, 10k or 1.5M")),
    }
}

/// Reads a span of time: `500us`, `20ms`, `10s`, `5min`, `1h`; a number alone is seconds.
///
/// # Errors
/// It is none, or 0.
pub fn duration(text: &str) -> Result<Duration, String> {
    let how = || format!("`{text}` is no time: write 500us, 20ms, 10s, 5min or 1h");
    let lower = text.trim().to_lowercase();
    let units = [
        ("ns", 1e-9),
        ("us", 1e-6),
        ("µs", 1e-6),
        ("ms", 1e-3),
        ("min", 60.0),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
        ("", 1.0),
    ];
    let (number, unit) = units
        .iter()
        .find_map(|(suffix, unit)| Some((lower.strip_suffix(suffix)?, unit)))
        .ok_or_else(how)?;
    let value: f64 = number.trim().parse().map_err(|_| how())?;
    let duration = Duration::try_from_secs_f64(value * unit).map_err(|_| how())?;
    if duration.is_zero() {
        return Err(format!("`{text}`: it must be more than nothing"));
    }
    Ok(duration)
}

/// Reads how many times as fast something is: `0.5`, `2`, `10x`; a millionth to a million.
///
/// # Errors
/// It is none.
pub fn factor(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix(['x', 'X']).unwrap_or(text);
    let factor = number.parse().ok();
    factor
        .filter(|factor| (1e-6..=1e6).contains(factor))
        .ok_or_else(|| format!("`{text}` is no factor: write 2, 0.5 or 10x; 0.000001 to 1000000"))
}

/// Reads a size in octets: `500MB`, `64MiB`, `1048576`.
///
/// # Errors
/// It is none, or 0.
pub fn size(text: &str) -> Result<u64, String> {
    let how = || format!("`{text}` is no size: write 64MiB, 500MB or 1048576");
    let lower = text.trim().to_ascii_lowercase();
    let binary = [("kib", 10), ("mib", 20), ("gib", 30), ("tib", 40)];
    if let Some((number, shift)) = binary
        .iter()
        .find_map(|(unit, shift)| Some((lower.strip_suffix(unit)?, shift)))
    {
        let number: u64 = number.trim().parse().map_err(|_| how())?;
        return number
            .checked_mul(1 << shift)
            .filter(|n| *n > 0)
            .ok_or_else(how);
    }
    let number = lower.strip_suffix('b').unwrap_or(&lower);
    count(number).map_err(|_| how())
}

/// Reads a MAC address: `02:00:00:00:00:01`, also with hyphens.
///
/// # Errors
/// It is none.
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
        .ok_or_else(|| format!("`{text}` is no MAC address: write 02:00:00:00:00:01"))
}

/// A number with a comma after every three digits.
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

/// So many things: `what` is one of them.
#[must_use]
pub fn counted(number: u64, what: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{} {what}{s}", grouped(number))
}

/// Bits a second, with a prefix.
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
    fn one_thing_is_no_plural() {
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
}
