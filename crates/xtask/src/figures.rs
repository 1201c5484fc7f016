//! Figures for people: medians, ranges, and plain tables. Not here: measuring.

/// Returns the median of the values; for an even number, the mean of the middle two.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len() / 2, sorted.len() % 2) {
        (0, 0) => f64::NAN,
        (middle, 0) => f64::midpoint(sorted[middle - 1], sorted[middle]),
        (middle, _) => sorted[middle],
    }
}

/// Returns minimum and maximum of the values.
#[must_use]
pub fn range(values: &[f64]) -> (f64, f64) {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    (least, values.iter().copied().fold(0.0, f64::max))
}

/// Returns the value farthest from 0.
#[must_use]
pub fn worst(values: &[f64]) -> f64 {
    let farther = |a: &f64, b: &f64| a.abs().total_cmp(&b.abs());
    values.iter().copied().max_by(farther).unwrap_or(0.0)
}

/// Formats columns as wide as their widest cell, two spaces apart; the first is left-aligned, the
/// others are right-aligned.
#[must_use]
pub fn table(heading: &[&str], rows: &[Vec<String>]) -> String {
    let heading = heading.iter().map(|cell| (*cell).to_owned()).collect();
    let lines: Vec<&Vec<String>> = std::iter::once(&heading).chain(rows).collect();
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    let line = |cells: &&Vec<String>| {
        let first = format!("{:<1$}", cells[0], widths[0]);
        let others = cells.iter().zip(&widths).skip(1);
        let padded = others.map(|(cell, width)| format!("  {cell:>width$}"));
        let text: String = std::iter::once(first).chain(padded).collect();
        text.trim_end().to_owned()
    };
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Comparison of two programs, measured in the same run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// The program, and its task.
    pub what: String,
    /// Program that it is compared with, and its version.
    pub against: String,
    /// The ratio and its meaning, such as "3.1 times as fast".
    pub ratio: String,
}

/// Prints a table, indented; vertical bars separate the columns of the heading.
pub fn print(heading: &str, rows: &[Vec<String>]) {
    let heading: Vec<&str> = heading.split('|').collect();
    for line in table(&heading, rows).lines() {
        println!("  {line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        for (values, middle) in [
            (&[3.0, 1.0, 2.0][..], 2.0),
            (&[4.0, 1.0][..], 2.5),
            (&[7.0][..], 7.0),
        ] {
            assert!((median(values) - middle).abs() < 1e-9);
        }
        assert!(median(&[]).is_nan());
        assert_eq!(range(&[2.0, 1.0, 3.0]), (1.0, 3.0));
        assert_eq!(worst(&[2.0, -3.0, 1.0]), -3.0);
    }

    #[test]
    fn columns_align() {
        let rows = [["a", "1"], ["longer", "10 µs"]].map(|row| row.map(str::to_owned).to_vec());
        let text = table(&["", "took"], &rows);
        assert_eq!(text, "         took\na           1\nlonger  10 µs");
    }
}
