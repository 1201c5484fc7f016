//! Metrics for Prometheus: the page, with a bounded number of series, and where it is served.
//!
//! Counters are only what never goes back. Sums over everything are such. So are the notifications of a notifier that has a
//! series of its own, and of all the others together, `notifier="other"`. Each notification is counted by one series, the one
//! that its notifier has at the time: were "other" the difference between all and those shown, it would fall whenever a
//! notifier comes to be shown, and Prometheus would take that for a restart and count everything again. So a notifier that
//! comes to be shown begins with 0 if others were counted in its place before, and one that comes back goes on from where it
//! was.
//!
//! QPs come and go, by the thousand, so what a QP has counted cannot be kept for good: their series are gauges, of those
//! that are told most at the moment.

#[cfg(test)]
mod tests;

use super::metrics as m;
use super::{Selection, most_of};
use crate::order::Order;
use crate::record::{CounterRecord, InterfaceRecord, PASSED, PointRecord, QpRecord, QpSide};
use crate::tables::{Nics, Tables};
use crate::text::Words;
use fcn_tool::failure::Result;
pub use fcn_tool::metrics::http::Server;
use fcn_tool::metrics::{Family, Page};
pub use fcn_tool::metrics::{listen, read_address};
use fcn_wire::{Kind, Rule};
use rustc_hash::{FxHashMap, FxHashSet};
use std::net::{IpAddr, TcpListener};

/// Notifiers with a series of their own.
pub const NOTIFIERS: usize = 100;

/// QPs with series of their own, where no number is given.
pub const QPS: usize = 100;

/// Interfaces with series of their own: the first ones.
pub const INTERFACES: usize = 64;

/// Notifiers remembered that had a series of their own.
const REMEMBERED: usize = 1_000;

/// Makes pages. It remembers what the last one said.
#[derive(Debug)]
pub struct Exposition {
    words: Words,
    qps: usize,
    /// Whether rows are told apart by their interfaces. Without, as one that has a single row may be seen on further ones any
    /// time, and a series keeps its labels.
    pub by_interface: bool,
    /// Of the notifiers on the last page, what their records and their series said.
    shown: FxHashMap<IpAddr, (u64, u64)>,
    /// What the series of others said when they were last shown.
    gone: FxHashMap<IpAddr, u64>,
    /// Notifications on the last page, and its moment, where there was one.
    last: Option<(u64, u64)>,
    other: u64,
}

impl Exposition {
    /// Pages with series for so many QPs.
    pub fn new(qps: usize, words: Words) -> Self {
        Self {
            words,
            qps,
            by_interface: true,
            shown: FxHashMap::default(),
            gone: FxHashMap::default(),
            last: None,
            other: 0,
        }
    }

    /// The page for the tables as they are now.
    pub fn page(&mut self, tables: &Tables) -> String {
        let mut page = Page::default();
        page.family(&m::BUILD).add(&[env!("CARGO_PKG_VERSION")], 1);
        page.single(&m::CLOCK, seconds(tables.now));
        totals(&mut page, tables);
        self.interfaces(&mut page, &tables.interfaces);
        self.nics(&mut page, &tables.nics);
        self.notifiers(&mut page, tables);
        self.rows(&mut page, tables);
        page.finish()
    }

    fn interfaces(&self, page: &mut Page, all: &[InterfaceRecord]) {
        let mut used = FxHashSet::default();
        let named: Vec<(String, &InterfaceRecord)> = all
            .iter()
            .take(INTERFACES)
            .enumerate()
            .map(|(number, interface)| {
                let mut name = self.words.text(&interface.name).into_owned();
                // A capture may have two of one name; a series is there once.
                if name.is_empty() || !used.insert(name.clone()) {
                    name = format!("{name}#{number}");
                    used.insert(name.clone());
                }
                (name, interface)
            })
            .collect();
        let mut up = page.family(&m::INTERFACE_UP);
        for (name, interface) in named.iter().filter(|(_, one)| one.state != PASSED) {
            let is_up = ["up", "file"].contains(&interface.state);
            up.add(&[name], u8::from(is_up));
        }
        let mut packets = page.family(&m::INTERFACE_PACKETS);
        for (name, interface) in &named {
            packets.add(&[name], interface.received);
        }
        let mut dropped = page.family(&m::INTERFACE_DROPPED);
        for (name, interface) in &named {
            if let Some(count) = interface.dropped_kernel {
                dropped.add(&[name.as_str(), "kernel"], count);
            }
            if let Some(count) = interface.dropped_interface {
                dropped.add(&[name.as_str(), "interface"], count);
            }
        }
    }

    /// The page of what RDMA devices count alone, where nothing is captured.
    pub fn counters(&self, nics: &Nics) -> String {
        let mut page = Page::default();
        page.family(&m::BUILD).add(&[env!("CARGO_PKG_VERSION")], 1);
        self.nics(&mut page, nics);
        page.finish()
    }

    /// Of whole ports: queue pairs come and go.
    fn nics(&self, page: &mut Page, nics: &Nics) {
        let is_told = |counter: &&CounterRecord| counter.qps.is_none() && !counter.vanished;
        let whole = nics.counters.iter().filter(is_told);
        let counters: Vec<(&CounterRecord, [String; 3])> = whole
            .map(|counter| {
                let interface = counter.interface.as_deref().unwrap_or_default();
                let port = counter.port.to_string();
                let text = |text| self.words.text(text).into_owned();
                (counter, [text(&counter.device), port, text(interface)])
            })
            .collect();
        let id = |counter: &CounterRecord| counter.quantity.map_or("", |quantity| quantity.id());
        let mut values = page.family(&m::NIC_COUNTER);
        for (counter, [device, port, interface]) in &counters {
            let name = self.words.text(&counter.counter);
            values.add(
                &[device, port, interface, &*name, id(counter)],
                counter.value,
            );
        }
        let mut seen = page.family(&m::NIC_SEEN);
        let mut used = FxHashSet::default();
        for (counter, [device, port, interface]) in &counters {
            if let Some(count) = counter
                .seen
                .filter(|_| used.insert((device, port, id(counter))))
            {
                seen.add(&[device, port, interface, id(counter)], count);
            }
        }
    }

    fn notifiers(&mut self, page: &mut Page, tables: &Tables) {
        let mut points: Vec<&PointRecord> = tables.points.iter().collect();
        points.sort_unstable_by(|a, b| b.total.cmp(&a.total).then(a.notifier.cmp(&b.notifier)));
        points.truncate(NOTIFIERS);
        self.count(&points, tables);
        let mut used = FxHashSet::default();
        let named: Vec<(String, &PointRecord)> = (points.iter())
            .map(|point| (self.words.exact_address(point.notifier), *point))
            .filter(|(name, _)| used.insert(name.clone()))
            .collect();
        let mut notifications = page.family(&m::NOTIFIER);
        for (name, point) in &named {
            let shown = self.shown.get(&point.notifier);
            notifications.add(&[name], shown.map_or(0, |(_, value)| *value));
        }
        notifications.add(&["other"], self.other);
        let mut flows = page.family(&m::NOTIFIER_FLOWS);
        for (name, point) in named.iter().filter(|(_, point)| point.flows > 0) {
            flows.add(&[name], point.flows);
        }
    }

    /// Adds what is new since the last page to the series of those shown, and what remains to that of the others.
    fn count(&mut self, points: &[&PointRecord], tables: &Tables) {
        let all = tables.totals.notified();
        let (notified, moment) = self.last.unwrap_or_default();
        let mut before = std::mem::take(&mut self.shown);
        let mut counted = 0u64;
        for point in points {
            let (grown, value) = match before.remove(&point.notifier) {
                // A record that was dropped and begun anew starts from 0.
                Some((total, value)) => {
                    (point.total.checked_sub(total).unwrap_or(point.total), value)
                }
                None => {
                    // What others sent before they are shown has been counted elsewhere.
                    let is_new = self.last.is_none() || point.first_seen > moment;
                    let value = self.gone.remove(&point.notifier).unwrap_or_default();
                    (if is_new { point.total } else { 0 }, value)
                }
            };
            counted = counted.saturating_add(grown);
            let value = value.saturating_add(grown);
            self.shown.insert(point.notifier, (point.total, value));
        }
        if self.gone.len() + before.len() > REMEMBERED {
            // They would begin with 0 again, which is a restart to Prometheus, and right.
            self.gone.clear();
        }
        self.gone.extend(
            before
                .into_iter()
                .map(|(notifier, (_, value))| (notifier, value)),
        );
        let rest = all.saturating_sub(notified).saturating_sub(counted);
        self.other = self.other.saturating_add(rest);
        self.last = Some((all, tables.now));
    }

    fn rows(&self, page: &mut Page, tables: &Tables) {
        let selection = Selection {
            order: order(),
            top: Some(self.qps),
            ..Selection::default()
        };
        let selected = selection.apply(tables, &self.words);
        let mut used = FxHashSet::default();
        let rows: Vec<(Vec<String>, &QpRecord)> = (selected.rows.iter())
            .map(|(_, row)| (self.row_labels(row), row))
            // A series is there once, however alike two rows may look.
            .filter(|(labels, _)| used.insert(labels.clone()))
            .collect();
        let families: [(&'static Family, Value); 8] = [
            (&m::QP, |row| Some(row.total as f64)),
            (&m::QP_RATE, |row| row.rate_10s),
            (&m::QP_GAP, |row| row.gap_p50.map(seconds)),
            (&m::QP_LAST, |row| Some(seconds(row.last_seen))),
            (&m::QP_DATA, |row| row.data_rate.map(|bits| bits / 8.0)),
            (&m::QP_CE, |row| row.ce_share),
            (&m::QP_CHANGE, |row| row.change),
            (&m::QP_SAMPLED, |row| {
                row.sampled.map(|one_in| one_in as f64)
            }),
        ];
        for (family, value) in families {
            let mut samples = page.family(family);
            for (labels, row) in &rows {
                // What is no number is left out.
                if let Some(value) = value(row).filter(|value| value.is_finite()) {
                    samples.add(labels, value);
                }
            }
        }
        // The notifications that each verdict rests on, under its name.
        let mut verdicts = page.family(&m::QP_VERDICT);
        for (mut labels, row) in rows {
            if let Some(verdict) = row.verdict {
                labels.push(verdict.id().to_owned());
                verdicts.add(&labels, row.measured);
            }
        }
    }

    /// What a row is known by: only what never changes while the row is kept, else its series would change its name.
    fn row_labels(&self, row: &QpRecord) -> Vec<String> {
        let address = |address: Option<IpAddr>| {
            address.map_or_else(String::new, |address| self.words.exact_address(address))
        };
        // Whom a flow label belongs to may come to be known later.
        let sender = row.sender.filter(|_| row.flow_label.is_none());
        let destination = Some(row.told).filter(|_| sender.is_none());
        let (qp, side) = match row.kind {
            Kind::Cnp => (row.sender_qp, QpSide::Sender),
            Kind::WanFcn => (None, QpSide::Receiver),
            _ => (row.receiver_qp, QpSide::Receiver),
        };
        let receiver = row
            .receiver
            .filter(|_| !matches!(row.kind, Kind::Cnp | Kind::WanFcn));
        let hex = |number: Option<u32>| number.map_or_else(String::new, |n| format!("{n:#x}"));
        // What was sampled at one place stays apart from what was at another.
        let by_interface = self.by_interface || row.sampled.is_some();
        let interface = row.interface.as_deref().filter(|_| by_interface);
        let interface = interface.unwrap_or_default();
        vec![
            address(sender),
            address(destination),
            hex(qp),
            qp.map_or("", |_| side.id()).to_owned(),
            address(receiver),
            hex(row.flow_label),
            row.kind.id().to_owned(),
            self.words.text(interface).into_owned(),
        ]
    }
}

/// The order in which rows come onto a page: not all of them may.
pub fn order() -> Option<Order> {
    most_of("rate_10s")
}

/// The value of a row's sample, where it has one.
type Value = fn(&QpRecord) -> Option<f64>;

/// Nanoseconds as seconds.
fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

fn totals(page: &mut Page, tables: &Tables) {
    let totals = &tables.totals;
    page.single(&m::PACKETS, totals.packets);
    page.single(&m::OCTETS, totals.octets);
    let mut notifications = page.family(&m::NOTIFICATIONS);
    for (kind, count) in Kind::ALL.iter().zip(totals.notifications) {
        notifications.add(&[kind.id()], count);
    }
    page.single(&m::SAMPLES, totals.samples);
    page.single(&m::STAMPS_BACK, totals.stamps_back);
    page.single(&m::DATA, totals.data);
    page.single(&m::CE, totals.ce);
    let mut unreadable = page.family(&m::UNREADABLE);
    unreadable.add(&["cut"], totals.cut);
    unreadable.add(&["undecodable"], totals.undecodable);
    page.single(&m::ICRC, totals.icrc_bad);
    let mut findings = page.family(&m::FINDINGS);
    for (id, count) in &tables.rules {
        let rule = Rule::ALL.iter().find(|rule| rule.info().id == *id);
        let severity = rule.map_or("", |rule| rule.info().severity.id());
        findings.add(&[*id, severity], count);
    }
    let tables = [
        ("rows", totals.rows, totals.rows_evicted),
        ("flows", totals.flows, totals.flows_evicted),
        ("notifiers", totals.points, totals.points_evicted),
    ];
    let mut kept = page.family(&m::KEPT);
    for (table, count, _) in tables {
        kept.add(&[table], count);
    }
    let mut evicted = page.family(&m::EVICTED);
    for (table, _, count) in tables {
        evicted.add(&[table], count);
    }
}

/// Serves the page at `/metrics`, in a thread of its own.
///
/// # Errors
/// The system has no thread for it.
pub fn serve(
    listener: TcpListener,
    mut exposition: Exposition,
    tables: impl Fn() -> Tables + Send + 'static,
) -> Result<Server> {
    serve_page(listener, move || exposition.page(&tables()))
}

/// The same with a page that is made otherwise.
///
/// # Errors
/// The system has no thread for it.
pub fn serve_page(
    listener: TcpListener,
    make: impl FnMut() -> String + Send + 'static,
) -> Result<Server> {
    fcn_tool::metrics::serve(listener, "fcn-top", make)
}
