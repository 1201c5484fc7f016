//! Exports a table of the screen as text.

use crate::output::csv;
use crate::output::json::{self, Lines};
use crate::record::Record;
use crate::text::Formatter;
use serde::Serialize;
use std::io;

/// File format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One JSON document.
    Json,
    /// Comma-separated values with a heading.
    Csv,
}

/// A table as JSON, with members in alphabetical order.
#[derive(Serialize)]
#[serde(bound = "R: Record")]
struct Document<'t, R> {
    at: u64,
    rows: Lines<'t, R>,
    schema: &'static str,
    table: &'static str,
    version: u32,
}

/// An exported table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableText {
    /// Contents of the file.
    pub octets: Vec<u8>,
    /// Number of lines of the table.
    pub lines: u64,
}

impl TableText {
    /// Exports lines of a table `at` a time, in nanoseconds since the epoch.
    pub(crate) fn new<'r, R: Record + 'r>(
        lines: impl IntoIterator<Item = &'r R>,
        format: Format,
        at: u64,
        formatter: &Formatter,
    ) -> io::Result<Self> {
        let lines: Vec<&R> = lines.into_iter().collect();
        let count = lines.len() as u64;
        let mut octets = Vec::new();
        match format {
            Format::Json => {
                let document = Document {
                    at,
                    rows: Lines::new(lines, formatter),
                    schema: "fcn-top/table",
                    table: R::TABLE,
                    version: json::VERSION,
                };
                json::write(&document, &mut octets, false)?;
            }
            Format::Csv => csv::table(&mut octets, lines, formatter)?,
        }
        Ok(Self {
            octets,
            lines: count,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::sample;

    fn written<R: Record>(lines: &[R]) {
        for format in [Format::Json, Format::Csv] {
            let table = TableText::new(lines, format, 7, &Formatter::masked()).unwrap();
            assert_eq!(table.lines, lines.len() as u64);
            let text = String::from_utf8(table.octets).unwrap();
            assert!(!text.contains("2001:db8"), "{text}");
            let count = match format {
                Format::Json => {
                    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
                    json["rows"].as_array().unwrap().len()
                }
                Format::Csv => ::csv::Reader::from_reader(text.as_bytes())
                    .records()
                    .count(),
            };
            assert_eq!(count, lines.len());
        }
    }

    #[test]
    fn every_table_is_exported_as_json_and_csv() {
        let tables = sample::tables();
        let qps: Vec<_> = tables.qps.iter().map(|(_, row)| row.clone()).collect();
        written(&qps);
        written(&tables.points);
        written(&tables.hops);
        written(&tables.events);
        written(&tables.interfaces);
        written(&tables.unread);
        written(&tables.receivers);
        written(&tables.pauses);
        written(&tables.trimmed);
        written(&tables.nics.counters);
        written(&tables.nics.local_qps);
    }
}
