//! Tables as JSON: one document, or a line for each interval. SCHEMAS.md documents the schemas;
//! their version increases when a member changes its meaning or is removed.

use super::Selection;
use crate::record::RowId;
use crate::record::{Cell, CounterRecord, EventRecord, HopRecord, InterfaceRecord, LocalQpRecord};
use crate::record::{
    FlowRecord, PauseRecord, PointRecord, QpRecord, ReceiverRecord, Record, TrimmedRecord,
    UnreadRecord,
};
use crate::tables::{Dropped, Nics, Tables};
use crate::text::Formatter;
use fcn_wire::{Kind, Severity};
use rustc_hash::FxHashMap;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};

/// Schema name of a document.
pub const SNAPSHOT: &str = "fcn-top/snapshot";
/// Schema name of a line.
pub const INTERVAL: &str = "fcn-top/interval";
/// Schema name of an audit.
pub const AUDIT: &str = "fcn-top/audit";
/// Schema name of counters without packets.
pub const COUNTERS: &str = "fcn-top/counters";
/// Version of the schemas.
pub const VERSION: u32 = 5;

/// Lines of a table, each converted when it is written: all of them at once would take ten times as
/// much memory as the tables.
pub struct Lines<'t, R> {
    /// Each with its count in the interval, if there is one.
    lines: Vec<(Option<u64>, &'t R)>,
    formatter: &'t Formatter,
}

impl<'t, R> Lines<'t, R> {
    /// Creates the lines of a table.
    pub fn new(lines: impl IntoIterator<Item = &'t R>, formatter: &'t Formatter) -> Self {
        let lines = lines.into_iter().map(|line| (None, line)).collect();
        Self { lines, formatter }
    }
}

impl<R: Record> Serialize for Lines<'_, R> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut columns: Vec<_> = (R::COLUMNS.iter().enumerate())
            .map(|(number, column)| (column.id, Some(number)))
            .collect();
        if self.lines.iter().any(|(count, _)| count.is_some()) {
            columns.push(("count", None));
        }
        columns.sort_unstable_by_key(|(id, _)| *id);
        to.collect_seq(self.lines.iter().map(|(count, record)| Line {
            record: *record,
            count: *count,
            columns: &columns,
            formatter: self.formatter,
        }))
    }
}

/// A line of a table: every column by its identifier, in alphabetical order.
struct Line<'t, R> {
    record: &'t R,
    count: Option<u64>,
    /// Identifier and index of each; no index for the count in the interval.
    columns: &'t [(&'static str, Option<usize>)],
    formatter: &'t Formatter,
}

impl<R: Record> Serialize for Line<'_, R> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut members = to.serialize_map(Some(self.columns.len()))?;
        for (id, number) in self.columns {
            let cell = match number {
                Some(number) => self.record.cell(*number),
                None => self.count.map_or(Cell::None, Cell::Count),
            };
            members.serialize_entry(id, &Exact(cell, self.formatter))?;
        }
        members.end()
    }
}

/// A cell for programs: full precision, base units.
struct Exact<'t>(Cell<'t>, &'t Formatter);

impl Serialize for Exact<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self(cell, formatter) = self;
        match cell {
            Cell::None => to.serialize_none(),
            Cell::Name(name) => to.serialize_str(name),
            // Cleaned as well: JSON need not escape every terminal control character.
            Cell::Text(text) => to.serialize_str(&formatter.text(text)),
            Cell::Evidence(evidence) => to.serialize_str(&formatter.text(&evidence.to_string())),
            Cell::Address(address) => to.serialize_str(&formatter.exact_address(*address)),
            Cell::Count(n) | Cell::Span(n) | Cell::Moment(n) => to.serialize_u64(*n),
            // Infinity and NaN become null.
            Cell::Rate(x) | Cell::Bits(x) | Cell::Share(x) | Cell::Change(x) => {
                to.serialize_f64(*x)
            }
        }
    }
}

/// Writes a document on one line, or pretty-printed.
///
/// # Errors
///
/// The output cannot be written.
pub fn write(document: &impl Serialize, out: &mut dyn Write, on_one_line: bool) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    if on_one_line {
        serde_json::to_writer(&mut out, document)?;
    } else {
        serde_json::to_writer_pretty(&mut out, document)?;
    }
    writeln!(out)?;
    out.flush()
}

/// The tables at one moment. Members in alphabetical order, as in all other objects.
#[derive(Serialize)]
pub struct Snapshot<'t> {
    at: Option<u64>,
    counters: Lines<'t, CounterRecord>,
    counters_missing: Option<String>,
    events: Lines<'t, EventRecord>,
    flows: Lines<'t, FlowRecord>,
    hops: Lines<'t, HopRecord>,
    interfaces: Lines<'t, InterfaceRecord>,
    local_qps: Lines<'t, LocalQpRecord>,
    matched: usize,
    notifiers: Lines<'t, PointRecord>,
    pauses: Lines<'t, PauseRecord>,
    receivers: Lines<'t, ReceiverRecord>,
    rows: Lines<'t, QpRecord>,
    rules: BTreeMap<&'static str, u64>,
    schema: &'static str,
    started: Option<u64>,
    totals: Value,
    trimmed: Lines<'t, TrimmedRecord>,
    unread: Lines<'t, UnreadRecord>,
    version: u32,
}

/// Data of an interval, with members in alphabetical order.
#[derive(Serialize)]
pub struct Interval<'t> {
    dropped: Value,
    from: u64,
    notifications: Map<String, Value>,
    rows: Lines<'t, QpRecord>,
    schema: &'static str,
    to: u64,
    totals: Value,
    version: u32,
}

/// Returns the tables at one moment: the selected rows or flows, and the complete other tables.
pub fn snapshot<'t>(
    tables: &'t Tables,
    selection: &Selection,
    formatter: &'t Formatter,
) -> Snapshot<'t> {
    let selected = selection.apply(tables, formatter);
    let (flows, flows_matched) = selection.flows(tables, formatter);
    Snapshot {
        at: moment(tables.now).or(tables.started),
        counters: Lines::new(&tables.nics.counters, formatter),
        counters_missing: missing(&tables.nics, formatter),
        events: Lines::new(&tables.events, formatter),
        flows: Lines::new(flows, formatter),
        hops: Lines::new(&tables.hops, formatter),
        interfaces: Lines::new(&tables.interfaces, formatter),
        local_qps: Lines::new(&tables.nics.local_qps, formatter),
        matched: match selection.of_flows {
            true => flows_matched,
            false => selected.matched,
        },
        notifiers: Lines::new(&tables.points, formatter),
        rows: Lines::new(selected.rows.into_iter().map(|(_, row)| row), formatter),
        rules: tables.rules.iter().copied().collect(),
        schema: SNAPSHOT,
        started: tables.started,
        totals: totals(tables),
        receivers: Lines::new(&tables.receivers, formatter),
        pauses: Lines::new(&tables.pauses, formatter),
        trimmed: Lines::new(&tables.trimmed, formatter),
        unread: Lines::new(&tables.unread, formatter),
        version: VERSION,
    }
}

/// Counters of this host's RDMA devices, without packets. Members in alphabetical order.
#[derive(Serialize)]
pub struct Counted<'t> {
    at: u64,
    counters: Lines<'t, CounterRecord>,
    counters_missing: Option<String>,
    local_qps: Lines<'t, LocalQpRecord>,
    schema: &'static str,
    version: u32,
}

/// Returns the counters of RDMA devices at that moment.
pub fn counted<'t>(at: u64, nics: &'t Nics, formatter: &'t Formatter) -> Counted<'t> {
    Counted {
        at,
        counters: Lines::new(&nics.counters, formatter),
        counters_missing: missing(nics, formatter),
        local_qps: Lines::new(&nics.local_qps, formatter),
        schema: COUNTERS,
        version: VERSION,
    }
}

/// Returns why counters or queue pairs are missing.
fn missing(nics: &Nics, formatter: &Formatter) -> Option<String> {
    let missing = nics.missing.as_deref();
    missing.map(|why| formatter.text(why).into_owned())
}

/// Totals already reported, row by row.
#[derive(Clone, Debug, Default)]
pub struct Intervals {
    /// By the row's slot: as many as were ever kept at a time.
    totals: Vec<(RowId, u64)>,
    notifications: [u64; Kind::ALL.len()],
    dropped: Dropped,
}

impl Intervals {
    /// Returns the notifications of each row since the last call, for the selected rows that had
    /// any. Rows without any may be missing from the tables.
    ///
    /// Counts of rows evicted since then are only in the sums by kind.
    pub(crate) fn counts<'t>(
        &mut self,
        tables: &'t Tables,
        selection: &Selection,
        formatter: &Formatter,
    ) -> Counts<'t> {
        let since: FxHashMap<RowId, u64> = (tables.qps.iter())
            .map(|(id, row)| (*id, self.since(*id, row.total)))
            .filter(|(_, count)| *count > 0)
            .collect();
        let unlimited = Selection {
            top: None,
            ..selection.clone()
        };
        let rows = unlimited.apply(tables, formatter).rows.into_iter();
        let mut rows: Vec<(u64, &QpRecord)> = rows
            .filter_map(|(id, row)| Some((*since.get(id)?, row)))
            .collect();
        if selection.order.is_none() {
            // Stable: equal rows keep the order of the totals.
            rows.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        }
        rows.truncate(selection.top.unwrap_or(usize::MAX));
        let mut by_kind = tables.totals.notifications;
        for (now, before) in by_kind.iter_mut().zip(self.notifications) {
            *now = now.saturating_sub(before);
        }
        self.notifications = tables.totals.notifications;
        let (dropped, before) = (tables.dropped(), self.dropped);
        let since = |now: Option<u64>, before: Option<u64>| {
            now.map(|now| now.saturating_sub(before.unwrap_or(0)))
        };
        self.dropped = dropped;
        Counts {
            rows,
            by_kind,
            dropped: (since(dropped.0, before.0), since(dropped.1, before.1)),
        }
    }

    /// Returns the increase of a row that has counted `total`, since it was reported last.
    fn since(&mut self, id: RowId, total: u64) -> u64 {
        let place = id.place() as usize;
        if self.totals.len() <= place {
            self.totals.resize(place + 1, (id, 0));
        }
        let Some(last) = self.totals.get_mut(place) else {
            return total;
        };
        let before = if last.0 == id { last.1 } else { 0 };
        *last = (id, total);
        total.saturating_sub(before)
    }

    /// Returns the line for the interval that has just ended: `from` to `to`, in nanoseconds since
    /// the epoch. Rows without a notification in it are omitted.
    pub fn line<'t>(
        &mut self,
        from: u64,
        to: u64,
        tables: &'t Tables,
        selection: &Selection,
        formatter: &'t Formatter,
    ) -> Interval<'t> {
        let counts = self.counts(tables, selection, formatter);
        let rows = counts.rows.into_iter();
        let lines = rows.map(|(count, row)| (Some(count), row)).collect();
        Interval {
            dropped: json!({ "kernel": counts.dropped.0, "interface": counts.dropped.1 }),
            from,
            notifications: by_kind(&counts.by_kind),
            rows: Lines { lines, formatter },
            schema: INTERVAL,
            to,
            totals: totals(tables),
            version: VERSION,
        }
    }
}

/// Notifications in an interval.
pub(crate) struct Counts<'t> {
    /// By row.
    pub rows: Vec<(u64, &'t QpRecord)>,
    /// All of them, by kind.
    by_kind: [u64; Kind::ALL.len()],
    /// Packets lost in the interval.
    pub dropped: Dropped,
}

/// Returns a time; 0 stands for an unknown one.
fn moment(at: u64) -> Option<u64> {
    (at > 0).then_some(at)
}

fn by_kind(counts: &[u64; Kind::ALL.len()]) -> Map<String, Value> {
    Kind::ALL
        .iter()
        .zip(counts)
        .map(|(kind, count)| (kind.id().to_owned(), json!(count)))
        .collect()
}

/// Returns the sums.
fn totals(tables: &Tables) -> Value {
    let totals = &tables.totals;
    let mut value = serde_json::to_value(totals).unwrap_or_default();
    if let Value::Object(members) = &mut value {
        let notifications = by_kind(&totals.notifications);
        members.insert("notifications".to_owned(), Value::Object(notifications));
        let (kernel, interface) = tables.dropped();
        members.insert("dropped_kernel".to_owned(), json!(kernel));
        members.insert("dropped_interface".to_owned(), json!(interface));
        let findings = Severity::ALL.iter().zip(totals.findings);
        let findings = findings.map(|(severity, count)| (severity.id().to_owned(), json!(count)));
        members.insert("findings".to_owned(), Value::Object(findings.collect()));
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::sample;
    use insta::assert_snapshot;

    fn json_of(document: &impl Serialize, on_one_line: bool) -> String {
        let mut text = Vec::new();
        write(document, &mut text, on_one_line).unwrap();
        String::from_utf8(text).unwrap()
    }

    fn parsed(document: &impl Serialize) -> Value {
        serde_json::from_str(&json_of(document, true)).unwrap()
    }

    #[test]
    fn documents_match_their_snapshots() {
        let (selection, words) = (Selection::default(), Formatter::default());
        for (tables, name) in [
            (sample::tables(), "snapshot"),
            (Tables::default(), "snapshot-empty"),
        ] {
            let document = snapshot(&tables, &selection, &words);
            assert_snapshot!(name, json_of(&document, false));
            // Formatted like all other objects.
            let value = parsed(&document);
            assert_eq!(json_of(&document, false), format!("{value:#}\n"));
            assert_eq!(json_of(&document, true), format!("{value}\n"));
        }
    }

    #[test]
    fn rows_have_every_column_and_sums_every_kind() {
        let tables = sample::tables();
        let formatter = Formatter::default();
        let value = parsed(&snapshot(&tables, &Selection::default(), &formatter));
        for row in value["rows"].as_array().unwrap() {
            let row = row.as_object().unwrap();
            assert_eq!(row.len(), QpRecord::COLUMNS.len());
        }
        let sum: u64 = Kind::ALL
            .iter()
            .map(|kind| {
                value["totals"]["notifications"][kind.id()]
                    .as_u64()
                    .unwrap()
            })
            .sum();
        assert_eq!(sum, tables.totals.notified());
        assert_eq!(value["totals"]["findings"]["warning"], 5);
        assert_eq!(value["rows"][0]["kind"], "fast_cnp_2");
        assert_eq!(value["rows"][0]["qp_side"], "sender");
    }

    #[test]
    fn non_finite_numbers_are_null() {
        let formatter = Formatter::default();
        let value = |cell| serde_json::to_value(Exact(cell, &formatter)).unwrap();
        for x in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(value(Cell::Rate(x)), Value::Null);
        }
        assert_eq!(value(Cell::Text("a\u{9b}2J\x1b")), "a\u{fffd}2J\u{fffd}");
        assert_eq!(value(Cell::Count(u64::MAX)), u64::MAX);
    }

    #[test]
    fn intervals_count_new_notifications() {
        let mut tables = sample::tables();
        let (words, selection) = (Formatter::default(), Selection::default());
        let mut intervals = Intervals::default();
        let line = parsed(&intervals.line(1, 2, &tables, &selection, &words));
        assert_snapshot!("interval", format!("{line:#}\n"));
        let counts = |line: &Value| -> Vec<u64> {
            let rows = line["rows"].as_array().unwrap();
            rows.iter()
                .map(|row| row["count"].as_u64().unwrap())
                .collect()
        };
        assert_eq!(counts(&line), [12_345, 240, 17, 5]);
        let line = parsed(&intervals.line(2, 3, &tables, &selection, &words));
        assert_eq!(counts(&line), [] as [u64; 0]);
        // Two more for one row; another was evicted, having counted one more; a new one appeared.
        tables.qps[0].1.total += 2;
        tables.totals.notifications[0] += 2;
        let (_, mut new) = tables.qps.pop().unwrap();
        new.total = 4;
        tables.totals.notifications[4] += 5;
        tables.qps.push((RowId(10), new));
        let line = parsed(&intervals.line(3, 4, &tables, &selection, &words));
        assert_eq!(counts(&line), [4, 2]);
        assert_eq!(line["notifications"]["wan_fcn"], 5);
        assert_eq!(line["notifications"]["cnp"], 2);
        assert_eq!((&line["from"], &line["to"]), (&json!(3), &json!(4)));
        assert_eq!(line["dropped"], json!({ "kernel": 0, "interface": 0 }));
        tables.interfaces[0].dropped_kernel = Some(1_000_000);
        let line = parsed(&intervals.line(4, 5, &tables, &selection, &words));
        let lost = |line: &Value| line["dropped"]["kernel"].as_u64().unwrap();
        assert!(lost(&line) > 900_000, "{line}");
        assert!(line["totals"]["dropped_kernel"].as_u64().unwrap() >= lost(&line));
        assert!(!line.to_string().contains('\n'));
    }
}
