//! Rows as CSV (RFC 4180): a line of column identifiers, then a line for each row; with intervals,
//! three additional columns. Every line has the losses of its period.

use super::Selection;
use super::json::Intervals;
use crate::record::{Cell, QpRecord, Record};
use crate::tables::{Dropped, Tables};
use crate::text::Formatter;
use ::csv::{Error, ErrorKind, Writer};
use fcn_tool::failure::{Failure, Result};
use std::io::{self, Write};

/// Columns before those of the rows, if rows are written by interval.
pub const INTERVAL_COLUMNS: [&str; 3] = ["from", "to", "count"];

/// Columns after those of the rows: losses, in the interval or in total.
pub const DROPPED_COLUMNS: [&str; 2] = ["dropped_kernel", "dropped_interface"];

/// A CSV writer for rows.
pub struct Csv<W: Write> {
    writer: Writer<W>,
    intervals: Intervals,
}

impl<W: Write> Csv<W> {
    /// Writes the heading. `by_interval`: rows are written by interval.
    ///
    /// # Errors
    ///
    /// The output cannot be written.
    pub fn new(to: W, by_interval: bool) -> Result<Self> {
        let mut writer = Writer::from_writer(to);
        let before = INTERVAL_COLUMNS.iter().filter(|_| by_interval);
        let ids = QpRecord::COLUMNS.iter().map(|column| column.id);
        writer
            .write_record(before.copied().chain(ids).chain(DROPPED_COLUMNS))
            .map_err(|error| failure(&error))?;
        Ok(Self {
            writer,
            intervals: Intervals::default(),
        })
    }

    /// Writes the selected rows with their current values.
    ///
    /// # Errors
    ///
    /// The output cannot be written.
    pub fn rows(
        &mut self,
        tables: &Tables,
        selection: &Selection,
        formatter: &Formatter,
    ) -> Result {
        for (_, row) in selection.apply(tables, formatter).rows {
            self.line([], Some(row), tables.dropped(), formatter)?;
        }
        self.flush()
    }

    /// Writes the selected rows that had notifications in the interval that has just ended.
    ///
    /// # Errors
    ///
    /// The output cannot be written.
    pub fn interval(
        &mut self,
        from: u64,
        to: u64,
        tables: &Tables,
        selection: &Selection,
        formatter: &Formatter,
    ) -> Result {
        let counts = self.intervals.counts(tables, selection, formatter);
        let dropped = counts.dropped;
        if counts.rows.is_empty() && dropped != (None, None) && dropped != (Some(0), Some(0)) {
            // If all packets were lost, the losses still get a line.
            self.line([from, to, 0], None, dropped, formatter)?;
        }
        for (count, row) in counts.rows {
            self.line([from, to, count], Some(row), dropped, formatter)?;
        }
        self.flush()
    }

    /// Flushes the output.
    ///
    /// # Errors
    ///
    /// The output cannot be written.
    pub fn finish(mut self) -> Result {
        self.flush()
    }

    fn line<const N: usize>(
        &mut self,
        before: [u64; N],
        row: Option<&QpRecord>,
        dropped: Dropped,
        formatter: &Formatter,
    ) -> Result {
        let nothing = || vec![String::new(); QpRecord::COLUMNS.len()];
        let cells = row.map_or_else(nothing, |row| fields(row, formatter).collect());
        let lost =
            [dropped.0, dropped.1].map(|count| count.map_or_else(String::new, |n| n.to_string()));
        self.writer
            .write_record(before.iter().map(u64::to_string).chain(cells).chain(lost))
            .map_err(|error| failure(&error))
    }

    fn flush(&mut self) -> Result {
        self.writer.flush().map_err(|error| Failure::stdout(&error))
    }
}

fn failure(error: &Error) -> Failure {
    match error.kind() {
        ErrorKind::Io(error) => Failure::stdout(error),
        _ => Failure::failed("cannot write")
            .and("CSV")
            .and(error.to_string()),
    }
}

/// Writes a whole table, with its heading.
///
/// # Errors
///
/// The output cannot be written.
pub(crate) fn table<'r, R: Record + 'r>(
    to: impl Write,
    lines: impl IntoIterator<Item = &'r R>,
    formatter: &Formatter,
) -> io::Result<()> {
    let mut writer = Writer::from_writer(to);
    writer.write_record(R::COLUMNS.iter().map(|column| column.id))?;
    for line in lines {
        writer.write_record(fields(line, formatter))?;
    }
    writer.flush()
}

/// Returns the cells of a line.
fn fields<R: Record>(line: &R, formatter: &Formatter) -> impl Iterator<Item = String> {
    (0..R::COLUMNS.len()).map(|number| field(line.cell(number), formatter))
}

/// Formats a cell: full precision, base units; empty if there is no value.
fn field(cell: Cell<'_>, formatter: &Formatter) -> String {
    match cell {
        Cell::None => String::new(),
        Cell::Name(name) => name.to_owned(),
        Cell::Text(text) => harmless(&formatter.text(text)),
        Cell::Evidence(evidence) => formatter.text(&evidence.to_string()).into_owned(),
        Cell::Address(address) => formatter.exact_address(address),
        Cell::Count(n) | Cell::Span(n) | Cell::Moment(n) => n.to_string(),
        Cell::Rate(x) | Cell::Bits(x) | Cell::Share(x) | Cell::Change(x) => {
            if x.is_finite() {
                x.to_string()
            } else {
                String::new()
            }
        }
    }
}

/// Returns a text from files or the network in a form that no spreadsheet takes for a formula.
fn harmless(text: &str) -> String {
    if text.trim_start().starts_with(['=', '+', '-', '@']) {
        format!("'{text}")
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::sample;
    use insta::assert_snapshot;

    fn csv_of(intervals: bool, tables: &Tables) -> String {
        let mut octets = Vec::new();
        let mut csv = Csv::new(&mut octets, intervals).unwrap();
        let (selection, words) = (Selection::default(), Formatter::default());
        if intervals {
            csv.interval(1, 2, tables, &selection, &words).unwrap();
            let mut later = tables.clone();
            later.qps[0].1.total += 2;
            csv.interval(2, 3, &later, &selection, &words).unwrap();
        } else {
            csv.rows(tables, &selection, &words).unwrap();
        }
        csv.finish().unwrap();
        String::from_utf8(octets).unwrap()
    }

    #[test]
    fn rows_match_their_snapshot() {
        assert_snapshot!("rows", csv_of(false, &sample::tables()));
        assert_snapshot!("intervals", csv_of(true, &sample::tables()));
        assert_eq!(csv_of(false, &Tables::default()).lines().count(), 1);
    }

    #[test]
    fn every_line_reads_back_as_the_row() {
        let tables = sample::tables();
        let text = csv_of(false, &tables);
        let mut reader = ::csv::Reader::from_reader(text.as_bytes());
        let ids = QpRecord::COLUMNS.iter().map(|column| column.id);
        let ids: Vec<_> = ids.chain(DROPPED_COLUMNS).collect();
        assert_eq!(reader.headers().unwrap(), ids);
        let lines: Vec<_> = reader.records().map(|line| line.unwrap()).collect();
        assert_eq!(lines.len(), tables.qps.len());
        let total = ids.iter().position(|id| *id == "total").unwrap();
        assert_eq!(&lines[0][total], "12345");
    }

    #[test]
    fn an_interval_with_total_loss_has_a_line() {
        let mut tables = Tables {
            interfaces: sample::tables().interfaces,
            ..Tables::default()
        };
        tables.interfaces[0].dropped_kernel = Some(77);
        let (mut octets, selection, words) =
            (Vec::new(), Selection::default(), Formatter::default());
        let mut csv = Csv::new(&mut octets, true).unwrap();
        for _ in 0..2 {
            csv.interval(1, 2, &tables, &selection, &words).unwrap();
        }
        csv.finish().unwrap();
        let mut reader = ::csv::Reader::from_reader(&octets[..]);
        let lines: Vec<_> = reader.records().map(|line| line.unwrap()).collect();
        let lost: u64 = lines[0].iter().rev().nth(1).unwrap().parse().unwrap();
        assert!(lost >= 77, "{lines:?}");
        assert_eq!((&lines[0][0], &lines[0][2], lines.len()), ("1", "0", 1));
    }

    #[test]
    fn texts_are_not_formulas() {
        let formatter = Formatter::default();
        for text in ["=1+1", "+1", "-1", "@SUM(A1)", " =1"] {
            assert_eq!(field(Cell::Text(text), &formatter), format!("'{text}"));
        }
        assert_eq!(field(Cell::Text("\t=1"), &formatter), "\u{fffd}=1");
        assert_eq!(field(Cell::Text("a=1"), &formatter), "a=1");
        assert_eq!(field(Cell::Change(-0.5), &formatter), "-0.5");
        assert_eq!(field(Cell::Rate(f64::NAN), &formatter), "");
    }
}
