//! Numbers with units, in three significant digits.

use super::NOTHING;
use fcn_tool::quantity::grouped;

/// Formats a value below 1,000 in three digits.
fn three(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.digits$}")
}

/// Formats a value of at least 1,000 in three digits, and returns its prefix.
fn with_prefix(value: f64) -> (String, &'static str) {
    let steps = [
        (1e3, "k"),
        (1e6, "M"),
        (1e9, "G"),
        (1e12, "T"),
        (1e15, "P"),
        (1e18, "E"),
    ];
    // 999.5 k rounds up to 1 M.
    let step = steps.iter().find(|(step, _)| value < step * 999.5);
    let (step, prefix) = step.copied().unwrap_or((1e18, "E"));
    (three(value / step), prefix)
}

/// A quantity: with commas, or rounded from ten million.
pub fn count(number: u64) -> String {
    if number < 10_000_000 {
        return grouped(number);
    }
    let (text, prefix) = with_prefix(number as f64);
    text + prefix
}

/// A rate per second: `0.30`, `12.5`, `999`, `1,200`, `12.3k`.
pub fn rate(value: f64) -> String {
    match value {
        v if !v.is_finite() => NOTHING.to_owned(),
        v if v >= 9_999.5 => {
            let (text, prefix) = with_prefix(v);
            text + prefix
        }
        v if v >= 999.5 => grouped(v.round() as u64),
        // Most rates are counts within a second, hence integers.
        v if v.fract() == 0.0 => format!("{v}"),
        // Not zero.
        v if v < 0.005 => "<0.01".to_owned(),
        v => three(v),
    }
}

/// Bits per second: `9.87 Gbit/s`.
pub fn bits(value: f64) -> String {
    match value {
        v if !v.is_finite() => NOTHING.to_owned(),
        v if v >= 999.5 => {
            let (text, prefix) = with_prefix(v);
            format!("{text} {prefix}bit/s")
        }
        v => format!("{v:.0} bit/s"),
    }
}

/// A percentage: `12 %`; one more digit below ten.
pub fn share(value: f64) -> String {
    let percent = value * 100.0;
    match percent {
        p if !p.is_finite() => NOTHING.to_owned(),
        0.0 => "0 %".to_owned(),
        p if p < 0.1 => "<0.1 %".to_owned(),
        p if p < 9.95 => format!("{p:.1} %"),
        // Less than 100 % must not round to 100 %.
        p if p < 100.0 => format!("{:.0} %", p.min(99.0)),
        p => format!("{p:.0} %"),
    }
}

/// A relative change: `−42 %`, `+7 %`.
pub fn change(value: f64) -> String {
    let percent = (value * 100.0).round();
    match percent {
        p if !p.is_finite() => NOTHING.to_owned(),
        0.0 => "0 %".to_owned(),
        p if p < 0.0 => format!("−{:.0} %", -p),
        p if p > 9_999.0 => ">9999 %".to_owned(),
        p => format!("+{p:.0} %"),
    }
}

/// A duration: `812 ns`, `45.3 µs`, `1.20 ms`, `12.3 s`, `16.7 min`, `2.50 h`.
pub fn span(nanoseconds: u64) -> String {
    let value = nanoseconds as f64;
    match value {
        v if v < 1e3 => format!("{v} ns"),
        v if v < 999.5e3 => format!("{} µs", three(v / 1e3)),
        v if v < 999.5e6 => format!("{} ms", three(v / 1e6)),
        v if v < 999.5e9 => format!("{} s", three(v / 1e9)),
        v if v < 3.6e12 => format!("{} min", three(v / 6e10)),
        v if v < 3.6e15 => format!("{} h", three(v / 3.6e12)),
        v => format!("{:.0} d", v / 8.64e13),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        for (value, text) in [
            (0.0, "0"),
            (0.3, "0.30"),
            (12.0, "12"),
            (12.5, "12.5"),
            (150.0, "150"),
            (999.0, "999"),
            (999.6, "1,000"),
            (1_234.0, "1,234"),
            (9_999.4, "9,999"),
            (9_999.6, "10.0k"),
            (12_345.0, "12.3k"),
            (123_456.0, "123k"),
            (999_600.0, "1.00M"),
            (5e6, "5.00M"),
            (1e30, "1000000000000E"),
            (f64::NAN, NOTHING),
            (f64::INFINITY, NOTHING),
        ] {
            assert_eq!(rate(value), text);
        }
        for (value, text) in [
            (0.0, "0 bit/s"),
            (9.87e9, "9.87 Gbit/s"),
            (987_654.0, "988 kbit/s"),
            (4e11, "400 Gbit/s"),
        ] {
            assert_eq!(bits(value), text);
        }
        for (value, text) in [
            (0, "0 ns"),
            (812, "812 ns"),
            (45_300, "45.3 µs"),
            (1_200_000, "1.20 ms"),
            (999_900, "1.00 ms"),
            (12_300_000_000, "12.3 s"),
            (1_002_000_000_000, "16.7 min"),
            (9_000_000_000_000, "2.50 h"),
            (u64::MAX, "213504 d"),
        ] {
            assert_eq!(span(value), text);
        }
        for (value, text) in [
            (0.0, "0 %"),
            (0.0004, "<0.1 %"),
            (0.012, "1.2 %"),
            (0.12, "12 %"),
            (0.999, "99 %"),
            (1.0, "100 %"),
        ] {
            assert_eq!(share(value), text);
        }
        for (value, text) in [
            (-0.42, "−42 %"),
            (0.07, "+7 %"),
            (0.001, "0 %"),
            (-0.001, "0 %"),
            (-1.0, "−100 %"),
            (1e9, ">9999 %"),
        ] {
            assert_eq!(change(value), text);
        }
        for (value, text) in [
            (0, "0"),
            (1_234, "1,234"),
            (9_999_999, "9,999,999"),
            (12_345_678, "12.3M"),
            (u64::MAX, "18.4E"),
        ] {
            assert_eq!(count(value), text);
        }
    }

    proptest! {
        #[test]
        fn numbers_stay_short(number in any::<u64>(), value in 0.0..1e18f64, small in -1.0..1e3f64) {
            let wide = |text: String| text.chars().count();
            prop_assert!(wide(count(number)) <= 9);
            prop_assert!(wide(rate(value)) <= 5);
            prop_assert!(wide(bits(value)) <= 11);
            prop_assert!(wide(span(number)) <= 9);
            prop_assert!(wide(share(small.abs().min(1.0))) <= 6);
            prop_assert!(wide(change(small)) <= 8);
        }
    }
}
