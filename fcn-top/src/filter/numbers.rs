//! Parses numbers, durations and times in a filter.

/// Splits off a suffix k, M, G or T and returns its factor. In lower case.
fn prefixed(text: &str) -> (&str, u64) {
    for (suffix, factor) in [
        ('k', 1_000),
        ('m', 1_000_000),
        ('g', 1_000_000_000),
        ('t', 1_000_000_000_000),
    ] {
        if let Some(number) = text.strip_suffix(suffix) {
            return (number, factor);
        }
    }
    (text, 1)
}

/// Parses a plain number: digits, a point, an exponent; no `inf`, no `nan`.
fn decimal(text: &str) -> Option<f64> {
    let begins = text.trim_start_matches(['-', '+']);
    if !begins.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

/// Parses a whole number: `1000`, `10k`, `0x1234`. In lower case.
pub(super) fn whole(text: &str) -> Result<u64, ()> {
    if let Some(hex) = text.strip_prefix("0x") {
        // `from_str_radix` accepts a sign.
        return match hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            true => u64::from_str_radix(hex, 16).map_err(drop),
            false => Err(()),
        };
    }
    let (number, factor) = prefixed(text);
    if number.bytes().all(|b| b.is_ascii_digit()) {
        let number: u64 = number.parse().map_err(drop)?;
        return number.checked_mul(factor).ok_or(());
    }
    whole_of(decimal(number).ok_or(())? * factor as f64).ok_or(())
}

/// Returns a number as an integer, if it is close enough to one.
fn whole_of(value: f64) -> Option<u64> {
    let rounded = value.round();
    let near = (value - rounded).abs() < 1e-6;
    (near && (0.0..9e18).contains(&rounded)).then_some(rounded as u64)
}

/// Parses a number: `100`, `2.5k`, `10g`. In lower case.
pub(super) fn scaled(text: &str) -> Option<f64> {
    let (number, factor) = prefixed(text);
    let value = decimal(number)? * factor as f64;
    value.is_finite().then_some(value)
}

/// Parses a fraction or a change: `10%`, `0.1`, `-50%`.
pub(super) fn part(text: &str) -> Option<f64> {
    let text = text.replacen('−', "-", 1);
    match text.strip_suffix('%') {
        Some(number) => Some(decimal(number.trim_end())? / 100.0),
        None => decimal(&text),
    }
}

/// Parses a duration; returns nanoseconds.
pub(super) fn span(text: &str) -> Option<u64> {
    let units = [
        ("ns", 1.0),
        ("us", 1e3),
        ("µs", 1e3),
        ("μs", 1e3),
        ("ms", 1e6),
        ("min", 6e10),
        ("s", 1e9),
        ("h", 3.6e12),
    ];
    if let Ok(number) = text.parse::<u64>() {
        return Some(number);
    }
    let (number, unit) = units
        .iter()
        .find_map(|(suffix, unit)| Some((text.strip_suffix(suffix)?, *unit)))?;
    let value = (decimal(number)? * unit).round();
    (0.0..9e18).contains(&value).then_some(value as u64)
}

/// Parses a time; returns nanoseconds since the epoch.
pub(super) fn moment(text: &str) -> Option<u64> {
    if let Ok(number) = text.parse::<u64>() {
        return Some(number);
    }
    let moment: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(moment.as_nanosecond()).ok()
}
