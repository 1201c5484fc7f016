//! What fcn-top writes without a screen: JSON, CSV, reports, audits, and metrics for Prometheus. All of it works on the
//! tables alone; where they come from and where the text goes is the caller's business.

pub mod audit;
pub mod csv;
pub mod html;
mod http;
pub mod json;
pub(crate) mod metrics;
pub mod prometheus;
pub mod report;
pub mod table;

use crate::filter::Filter;
use crate::order::Order;
use crate::record::RowId;
use crate::record::{QpRecord, column_named};
use crate::tables::Tables;
use crate::text::Words;
use comfy_table::{CellAlignment, Table, presets};
use std::cmp::Ordering;
use std::fs::File;
use std::io;
use std::path::Path;

/// Which of the rows are written, and in which order.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// In this order; without one, the most notifications first.
    pub order: Option<Order>,
    /// So many at most.
    pub top: Option<usize>,
    /// Those that it passes.
    pub filter: Filter,
}

/// Rows to be written.
#[derive(Clone, Debug)]
pub struct Selected<'t> {
    /// In their order.
    pub rows: Vec<&'t (RowId, QpRecord)>,
    /// How many passed the filter.
    pub matched: usize,
}

impl Selection {
    /// The rows of the tables that are to be written.
    pub fn apply<'t>(&self, tables: &'t Tables, words: &Words) -> Selected<'t> {
        let order = self.order.or_else(|| most_of("total"));
        let all = tables.qps.iter();
        let mut rows: Vec<_> = all
            .filter(|(_, row)| self.filter.matches_shown(row, words))
            .collect();
        let matched = rows.len();
        // The row's number makes one order of what is equal, so that the same input gives the same output.
        let compare = |(a, row): &&(RowId, QpRecord), (b, other): &&(RowId, QpRecord)| {
            let equal = Ordering::Equal;
            (order.map_or(equal, |order| order.compare(row, other))).then(a.cmp(b))
        };
        rows.sort_unstable_by(compare);
        rows.truncate(self.top.unwrap_or(usize::MAX));
        Selected { rows, matched }
    }
}

/// A new file: what was there before stays.
///
/// # Errors
/// There is a file of that name already, or it cannot be made: what failed, on what, and what to do.
pub(crate) fn create_new(path: &Path) -> Result<File, String> {
    File::create_new(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => taken(path),
        _ => format!("{}: {error}", path.display()),
    })
}

/// What is said of a name that a file has already.
pub(crate) fn taken(path: &Path) -> String {
    format!(
        "{}: there is one already; choose another name",
        path.display()
    )
}

/// A table without lines, with numbers at the right edge of the columns at these places.
pub(crate) fn bare_table<'t>(
    header: impl IntoIterator<Item = &'t str>,
    numbers: &[usize],
) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_header(header.into_iter().collect::<Vec<_>>());
    for number in numbers {
        if let Some(column) = table.column_mut(*number) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// The most of `column` first, where the column is one.
pub(crate) fn most_of(column: &str) -> Option<Order> {
    column_named::<QpRecord>(column).map(|column| Order {
        column,
        descending: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::Settings;
    use crate::tests::sample;

    /// Tables that are empty, but for what was read.
    pub(crate) fn nothing() -> Tables {
        let mut tables = Tables {
            interfaces: sample::tables().interfaces,
            ..Tables::default()
        };
        tables.interfaces.truncate(1);
        tables.totals.packets = 1_234;
        tables.totals.other = 1_234;
        tables.now = sample::after(2_000);
        tables.started = sample::START;
        tables
    }

    #[test]
    fn rows_are_chosen_and_in_order() {
        let tables = sample::tables();
        let words = Words::default();
        let ids = |selection: &Selection| -> (Vec<u64>, usize) {
            let selected = selection.apply(&tables, &words);
            (
                selected.rows.iter().map(|(id, _)| id.0).collect(),
                selected.matched,
            )
        };
        let mut selection = Selection::default();
        assert_eq!(ids(&selection), (vec![2, 1, 5, 9], 4));
        selection.top = Some(2);
        assert_eq!(ids(&selection), (vec![2, 1], 4));
        selection.order = Order::parse::<QpRecord>("total").ok();
        assert_eq!(ids(&selection), (vec![9, 5], 4));
        selection.filter = Filter::parse::<QpRecord>("total>100").unwrap();
        assert_eq!(ids(&selection), (vec![1, 2], 2));
        selection.top = Some(0);
        assert_eq!(ids(&selection), (vec![], 2));
    }

    /// No address of the tables, however it is written, is in any output.
    #[test]
    fn privacy_covers_every_output() {
        let tables = sample::tables();
        let words = Words::masked();
        let selection = Selection::default();
        let mut all = serde_json::to_string(&json::snapshot(&tables, &selection, &words)).unwrap();
        let (from, to) = (tables.started, tables.now);
        let mut intervals = json::Intervals::default();
        let line = intervals.line(from, to, &tables, &selection, &words);
        all += &serde_json::to_string(&line).unwrap();
        let mut octets = Vec::new();
        let mut csv = csv::Csv::new(&mut octets, true).unwrap();
        csv.interval(from, to, &tables, &selection, &words).unwrap();
        drop(csv);
        all += &String::from_utf8(octets).unwrap();
        let header = report::Header {
            read: vec!["/captures/of-192.0.2.77.pcapng".to_owned()],
            ended: Some("198.18.1.3 went away".to_owned()),
        };
        all += &report::report(&header, &tables, &selection, &words);
        let course = sample::course();
        let story = html::Story {
            header: &header,
            tables: &tables,
            left_out: &["198.18.1.3 is left out".to_owned()],
            course: &course,
            is_file: true,
            by_interface: false,
        };
        let mut page = Vec::new();
        let document = html::document(&story, &selection, &words);
        html::PAGE.write(&document, &mut page).unwrap();
        all += &String::from_utf8(page).unwrap();
        let mut audit = audit::Audit::new(words.clone());
        for event in &tables.events {
            all.extend(audit.hear(event));
        }
        let unchecked = audit::unchecked(&Settings::default());
        let audited = audit::Audited {
            packets: 10,
            incomplete: 1,
        };
        all += &audit.summary(&unchecked, audited);
        all += &audit.json(&unchecked, audited).to_string();
        all += &prometheus::Exposition::new(100, words).page(&tables);
        for text in [
            "192.0.2.77",
            "2001:db8",
            "198.18",
            "0:1::10",
            "0:2::20",
            "ffff::1",
        ] {
            let at = all.find(text);
            assert!(
                at.is_none(),
                "{text}: {:?}",
                at.map(|at| &all[at.saturating_sub(60)..at + 20])
            );
        }
        assert!(all.matches("host-").count() > 50);
    }
}
