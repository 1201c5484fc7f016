//! Output without a screen: JSON, CSV, reports, audits, and metrics for Prometheus. All of it works
//! on the tables only; the caller provides them and decides where the text goes.

pub mod audit;
#[cfg(feature = "program")]
pub mod csv;
pub mod flows;
pub mod html;
pub mod json;
pub mod lines;
#[cfg(feature = "program")]
pub(crate) mod metrics;
pub mod part;
#[cfg(feature = "program")]
pub mod prometheus;
pub mod report;
#[cfg(feature = "program")]
pub mod table;

use crate::filter::Filter;
use crate::order::Order;
use crate::record::RowId;
use crate::record::{FlowRecord, QpRecord, Record, column_named};
use crate::tables::Tables;
use crate::text::{self, Formatter};
use comfy_table::{CellAlignment, Table, presets};
use std::cmp::Ordering;
use std::time::Duration;

/// Filter, order and number of the rows to write.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Order; most notifications first if `None`.
    pub order: Option<Order>,
    /// Maximum number of rows.
    pub top: Option<usize>,
    /// Filter that rows must pass.
    pub filter: Filter,
    /// True if it applies to flows rather than to the notifications to each QP.
    pub of_flows: bool,
}

/// The selected rows.
#[derive(Clone, Debug)]
pub struct Selected<'t> {
    /// Rows in their order.
    pub rows: Vec<&'t (RowId, QpRecord)>,
    /// Number of rows that passed the filter.
    pub matched: usize,
}

/// Maximum wait for names before output that contains names.
const NAMES: Duration = Duration::from_secs(5);

impl Selection {
    /// Returns the same selection, limited to `usual` rows if it has no limit.
    pub fn or_top(&self, usual: usize) -> Self {
        Self {
            top: Some(self.top.unwrap_or(usual)),
            ..self.clone()
        }
    }

    /// Waits for the names that the filter may depend on, if names are resolved; returns a
    /// description of missing ones.
    pub fn wait_to_filter(&self, tables: &Tables, formatter: &Formatter) -> Option<String> {
        let rows = tables.qps.iter().filter(|_| !self.of_flows);
        let rows = rows.flat_map(|(_, row)| row.addresses());
        let flows = tables.flows.iter().filter(|_| self.of_flows);
        let flows = flows.flat_map(|flow| [flow.sender, flow.receiver]);
        let seeks = self.filter.seeks_names();
        seeks.then(|| formatter.wait(rows.chain(flows), NAMES))?
    }

    /// Same, and waits for the names of the addresses to be written.
    pub fn wait_for_names(&self, tables: &Tables, formatter: &Formatter) -> Option<String> {
        let missing = self.wait_to_filter(tables, formatter);
        let rows = self.apply(tables, formatter).rows;
        let shown = tables.addresses(rows.iter().map(|(_, row)| row));
        let flows = self.flows(tables, formatter).0.into_iter();
        let flows = flows.filter(|flow| self.of_flows || text::flow_trouble(flow).is_some());
        let flows = flows.flat_map(|flow| [flow.sender, flow.receiver]);
        missing.or_else(|| formatter.wait(shown.chain(flows), NAMES))
    }

    /// Returns the flows to write, and the number that passed the filter: all of them, unless it
    /// applies to flows.
    pub fn flows<'t>(
        &self,
        tables: &'t Tables,
        formatter: &Formatter,
    ) -> (Vec<&'t FlowRecord>, usize) {
        let order = self.order.filter(|_| self.of_flows);
        let order = order.or_else(|| most_of::<FlowRecord>("data_octets"));
        let is_chosen =
            |flow: &&FlowRecord| !self.of_flows || self.filter.matches_shown(*flow, formatter);
        let mut flows: Vec<_> = tables.flows.iter().filter(is_chosen).collect();
        let matched = flows.len();
        let key = |flow: &FlowRecord| (flow.sender, flow.receiver, flow.receiver_qp);
        let compare = |a: &&FlowRecord, b: &&FlowRecord| {
            let compared = order.map_or(Ordering::Equal, |order| order.compare(*a, *b));
            compared.then_with(|| key(a).cmp(&key(b)))
        };
        flows.sort_unstable_by(compare);
        let top = self.top.filter(|_| self.of_flows);
        flows.truncate(top.unwrap_or(usize::MAX));
        (flows, matched)
    }

    /// Returns the rows to write: all of them if the selection applies to flows.
    pub fn apply<'t>(&self, tables: &'t Tables, formatter: &Formatter) -> Selected<'t> {
        if self.of_flows {
            return Self::default().apply(tables, formatter);
        }
        let order = self.order.or_else(|| most_of::<QpRecord>("total"));
        let all = tables.qps.iter();
        let mut rows: Vec<_> = all
            .filter(|(_, row)| self.filter.matches_shown(row, formatter))
            .collect();
        let matched = rows.len();
        // Ties are broken by the row's number, so that the same input gives the same output.
        let compare = |(a, row): &&(RowId, QpRecord), (b, other): &&(RowId, QpRecord)| {
            let equal = Ordering::Equal;
            (order.map_or(equal, |order| order.compare(row, other))).then(a.cmp(b))
        };
        rows.sort_unstable_by(compare);
        rows.truncate(self.top.unwrap_or(usize::MAX));
        Selected { rows, matched }
    }
}

/// Returns a table without borders, with the columns at these indices aligned to the right.
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

/// Returns the descending order by `column`, if there is such a column.
pub(crate) fn most_of<R: Record>(column: &str) -> Option<Order> {
    column_named::<R>(column).map(|column| Order {
        column,
        descending: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::Settings;
    use crate::names::Names;
    use crate::tests::sample;
    use std::sync::Arc;

    /// Returns tables that are empty, except for the input.
    pub(crate) fn nothing() -> Tables {
        let mut tables = Tables {
            interfaces: sample::tables().interfaces,
            ..Tables::default()
        };
        tables.interfaces.truncate(1);
        tables.totals.packets = 1_234;
        tables.totals.other = 1_234;
        tables.now = sample::after(2_000);
        tables.started = Some(sample::START);
        tables
    }

    #[test]
    fn rows_are_chosen_and_in_order() {
        let tables = sample::tables();
        let formatter = Formatter::default();
        let ids = |selection: &Selection| -> (Vec<u64>, usize) {
            let selected = selection.apply(&tables, &formatter);
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

    #[test]
    fn flows_are_chosen_and_in_order() {
        let tables = sample::tables();
        let formatter = Formatter::default();
        let qps = |selection: &Selection| -> (Vec<u32>, usize) {
            let (flows, matched) = selection.flows(&tables, &formatter);
            let qps = flows.iter().map(|flow| flow.receiver_qp);
            (qps.collect(), matched)
        };
        let of_rows = Selection {
            filter: Filter::parse::<QpRecord>("total>1M").unwrap(),
            order: Order::parse::<QpRecord>("total").ok(),
            top: Some(1),
            of_flows: false,
        };
        assert_eq!(qps(&of_rows), (vec![0x22, 0x77], 2));
        let of_flows = Selection {
            order: Order::parse::<FlowRecord>("-rnr_naks").ok(),
            top: Some(1),
            of_flows: true,
            ..Selection::default()
        };
        assert_eq!(qps(&of_flows), (vec![0x77], 2));
        assert_eq!(of_flows.apply(&tables, &formatter).rows.len(), 4);
        let none = Selection {
            filter: Filter::parse::<FlowRecord>("verdict=none resent=0").unwrap(),
            ..of_flows
        };
        assert_eq!(qps(&none), (vec![], 0));
    }

    #[test]
    fn output_for_people_waits_for_names() {
        let tables = sample::tables();
        let names = Names::from_lookup(|address| {
            (address.to_string() == "198.18.1.3").then(|| "sender.example".to_owned())
        });
        let formatter = Formatter::default().with_names(Arc::new(names));
        let selection = Selection::default();
        assert_eq!(selection.wait_for_names(&tables, &formatter), None);
        let text = report::report(&report::Header::default(), &tables, &selection, &formatter);
        assert!(text.contains("sender.example"), "{text}");
        assert_eq!(
            selection.wait_for_names(&tables, &Formatter::default()),
            None
        );
    }

    #[test]
    fn filters_wait_for_late_names() {
        let mut tables = sample::tables();
        // More addresses than the queue holds, and after them the one with the name.
        let last = tables.qps[0].clone();
        let told = |number: u32| std::net::Ipv4Addr::from_bits(0x0a00_0000 + number).into();
        let more = |number| QpRecord {
            destination: told(number),
            ..last.1.clone()
        };
        tables.qps = (0..1_000).map(|n| (RowId(n.into()), more(n))).collect();
        let names = Names::from_lookup(move |address| {
            std::thread::sleep(Duration::from_micros(100));
            (*address == told(999)).then(|| "last.example".to_owned())
        });
        let formatter = Formatter::default().with_names(Arc::new(names));
        let filter = Filter::parse::<QpRecord>("destination~example").unwrap();
        assert!(filter.seeks_names());
        assert!(
            !Filter::parse::<QpRecord>("total>1 10.0.0.0/8")
                .unwrap()
                .seeks_names()
        );
        let selection = Selection {
            filter,
            ..Selection::default()
        };
        assert_eq!(selection.wait_to_filter(&tables, &formatter), None);
        assert_eq!(selection.apply(&tables, &formatter).matched, 1);
    }

    /// No output contains an address of the tables in any spelling.
    #[test]
    fn privacy_covers_every_output() {
        let tables = sample::tables();
        let formatter = Formatter::masked();
        let selection = Selection::default();
        let mut all =
            serde_json::to_string(&json::snapshot(&tables, &selection, &formatter)).unwrap();
        let (from, to) = (sample::START, tables.now);
        let mut intervals = json::Intervals::default();
        let line = intervals.line(from, to, &tables, &selection, &formatter);
        all += &serde_json::to_string(&line).unwrap();
        let mut octets = Vec::new();
        let mut csv = csv::Csv::new(&mut octets, true).unwrap();
        csv.interval(from, to, &tables, &selection, &formatter)
            .unwrap();
        drop(csv);
        all += &String::from_utf8(octets).unwrap();
        let header = report::Header {
            read: vec!["/captures/of-192.0.2.77.pcapng".to_owned()],
            part: part::Part {
                filter: Some("host 198.18.1.3".to_owned()),
                ..part::Part::default()
            },
            ended: Some("198.18.1.3 went away".to_owned()),
        };
        all += &report::report(&header, &tables, &selection, &formatter);
        let course = sample::course();
        let story = html::Story {
            header: &header,
            tables: &tables,
            unchecked: &[],
            notifiers: html::notifiers(&tables),
            left_out: &["198.18.1.3 is left out".to_owned()],
            course: &course,
            is_file: true,
            by_interface: false,
        };
        let mut page = Vec::new();
        let document = html::document(&story, &selection, &formatter);
        html::PAGE.write(&document, &mut page).unwrap();
        all += &String::from_utf8(page).unwrap();
        let mut audit = audit::Audit::new(formatter.clone());
        for event in &tables.events {
            all.extend(audit.take(event));
        }
        let unchecked = audit::unchecked(&Settings::default());
        let audited = audit::Audited {
            packets: 10,
            incomplete: 1,
            unread: 0,
        };
        all += &audit.summary(&unchecked, audited, None);
        all += &audit.json(&unchecked, audited).to_string();
        all += &prometheus::Exposition::new(100, formatter).page(&tables);
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
