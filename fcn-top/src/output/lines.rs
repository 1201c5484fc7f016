//! Tables in reports for people, in lines of limited width.

use super::bare_table;
use crate::record::{Cell, Column, Record, column_named};
use crate::text::Formatter;
use comfy_table::{ContentArrangement, Table};
use std::fmt::Write as _;

/// Characters per line.
pub(super) const WIDTH: u16 = 100;

/// Default number of rows of each table.
pub const ROWS: usize = 20;

/// Maximum number of rules, paths and interfaces shown.
pub(super) const LIST: usize = 60;

/// Appends a table with a heading, if it has any lines.
pub(super) fn section<R: Record>(
    out: &mut String,
    title: &str,
    records: &[R],
    columns: &str,
    formatter: &Formatter,
) {
    if records.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{title}");
    let records: Vec<_> = records.iter().take(LIST).collect();
    table(out, &records, columns, formatter, |_, _| None);
}

/// Appends a table of those columns, with some cells replaced.
pub(super) fn table<R: Record>(
    out: &mut String,
    records: &[&R],
    columns: &str,
    formatter: &Formatter,
    otherwise: impl Fn(&R, &str) -> Option<String>,
) {
    let numbers = columns.split_whitespace().filter_map(column_named::<R>);
    let columns: Vec<(usize, &Column)> = numbers
        .filter_map(|number| Some((number, R::COLUMNS.get(number)?)))
        .collect();
    let numbers: Vec<_> = (0..)
        .zip(&columns)
        .filter(|(_, (_, column))| column.holds.is_number())
        .map(|(place, _)| place)
        .collect();
    let mut table = bare_table(columns.iter().map(|(_, column)| column.title), &numbers);
    for record in records {
        table.add_row(columns.iter().map(|(number, column)| {
            otherwise(record, column.id).unwrap_or_else(|| match record.cell(*number) {
                // A borderless table is easier to read without placeholders.
                Cell::None => String::new(),
                cell => formatter.in_column(column, cell),
            })
        }));
    }
    push_close(out, table);
}

/// Same, with columns one cell apart.
pub(super) fn push_close(out: &mut String, mut table: Table) {
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    push(out, table);
}

/// Appends the lines of a table, without trailing spaces.
pub(super) fn push(out: &mut String, mut table: Table) {
    table
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH);
    for line in table.lines() {
        out.push_str(line.trim_end());
        out.push('\n');
    }
}
