//! A table of the screen into a file.

use crate::new_file;
use crate::output::csv;
use crate::output::json::{self, Lines};
use crate::record::Record;
use crate::text::Words;
use crate::view::{Format, Records, Writing};
use serde::Serialize;
use std::io::{self, BufWriter, Write};

/// A table as JSON, with members by the alphabet.
#[derive(Serialize)]
#[serde(bound = "R: Record")]
struct Document<'t, R> {
    at: u64,
    rows: Lines<'t, R>,
    schema: &'static str,
    table: &'static str,
    version: u32,
}

/// Writes a table into a new file; returns how many lines it had.
///
/// # Errors
/// There is a file of that name already, or it cannot be written: what failed, on what, and what to do.
pub fn write(writing: &Writing, words: &Words) -> Result<u64, String> {
    let path = writing.to.display();
    let mut out = BufWriter::new(new_file::create(&writing.to)?);
    match &writing.records {
        Records::Qps(records) => table(&mut out, records, writing, words),
        Records::Points(records) => table(&mut out, records, writing, words),
        Records::Hops(records) => table(&mut out, records, writing, words),
        Records::Events(records) => table(&mut out, records, writing, words),
        Records::Interfaces(records) => table(&mut out, records, writing, words),
        Records::Counters(records) => table(&mut out, records, writing, words),
        Records::LocalQps(records) => table(&mut out, records, writing, words),
    }
    .and_then(|lines| out.flush().map(|()| lines))
    .map_err(|error| format!("{path}: {error}"))
}

fn table<R: Record>(
    out: &mut impl Write,
    records: &[R],
    writing: &Writing,
    words: &Words,
) -> io::Result<u64> {
    match writing.format {
        Format::Json => {
            let document = Document {
                at: writing.at,
                rows: Lines::new(records, words),
                schema: "fcn-top/table",
                table: R::TABLE,
                version: 1,
            };
            json::write(&document, out, false)?;
        }
        Format::Csv => csv::table(out, records, words)?,
    }
    Ok(records.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::sample;
    use crate::view::Tab;

    #[test]
    fn every_table_is_written_as_json_and_csv() {
        let folder = tempfile::tempdir().unwrap();
        let tables = sample::tables();
        let qps: Vec<_> = tables.qps.iter().map(|(_, row)| row.clone()).collect();
        for (number, (records, all)) in [
            (Records::Qps(qps), tables.qps.len()),
            (Records::Points(tables.points.clone()), tables.points.len()),
            (Records::Hops(tables.hops.clone()), tables.hops.len()),
            (Records::Events(tables.events.clone()), tables.events.len()),
            (
                Records::Interfaces(tables.interfaces.clone()),
                tables.interfaces.len(),
            ),
            (
                Records::Counters(tables.nics.counters.clone()),
                tables.nics.counters.len(),
            ),
            (
                Records::LocalQps(tables.nics.local_qps.clone()),
                tables.nics.local_qps.len(),
            ),
        ]
        .into_iter()
        .enumerate()
        {
            for format in [Format::Json, Format::Csv] {
                let writing = Writing {
                    format,
                    view: Tab::Qps,
                    to: folder.path().join(format!("{number}.{format:?}")),
                    at: 7,
                    records: records.clone(),
                };
                let lines = write(&writing, &Words::masked()).unwrap();
                assert_eq!(lines, all as u64);
                let text = std::fs::read_to_string(&writing.to).unwrap();
                assert!(!text.contains("2001:db8"), "{text}");
                match format {
                    Format::Json => {
                        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
                        assert_eq!(json["rows"].as_array().unwrap().len() as u64, lines);
                    }
                    Format::Csv => {
                        let mut reader = ::csv::Reader::from_reader(text.as_bytes());
                        assert_eq!(reader.records().count() as u64, lines);
                    }
                }
                let again = write(&writing, &Words::default()).unwrap_err();
                assert!(again.contains("choose another name"), "{again}");
            }
        }
    }
}
