//! Metrics for Prometheus: the page, with a bounded number of series, and its server.
//!
//! Only values that never decrease are counters. Sums over everything qualify. So do the
//! notifications of a notifier with a series of its own, and those of all the others together,
//! `notifier="other"`. Each notification is counted by one series, the one that its notifier has at
//! the time: if "other" were the difference between all and those shown, it would decrease whenever
//! a notifier gets its own series, and Prometheus would take that for a restart and count
//! everything again. So a notifier that gets a series starts at 0 if it was counted in "other"
//! before, and one that returns continues from its last value.
//!
//! QPs come and go by the thousand, so their counts cannot be kept forever: their series are
//! gauges, of those notified most at the moment.

#[cfg(test)]
mod tests;

use super::metrics as m;
use super::{Selection, most_of};
use crate::order::Order;
use crate::record::{CounterRecord, FlowRecord, INDIRECT, InterfaceRecord, PointRecord};
use crate::record::{PauseRecord, QpRecord, QpSide, ReceiverRecord};
use crate::tables::{Nics, Tables};
use crate::text::Formatter;
use fcn_tool::failure::Result;
pub use fcn_tool::metrics::http::Server;
use fcn_tool::metrics::{Family, Page};
pub use fcn_tool::metrics::{listen, read_address};
use fcn_wire::bth::AckKind;
use fcn_wire::{Kind, Rule};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::net::{IpAddr, TcpListener};

/// Maximum number of notifiers with a series of their own.
pub const NOTIFIERS: usize = 100;

/// Default number of QPs with series of their own.
pub const QPS: usize = 100;

/// Maximum number of flows with series of their own: half of them those that stalled longest, the
/// others those with the most data.
pub const FLOWS: usize = 100;

/// Maximum number of receivers with series of their own: those with the most marks.
pub const RECEIVERS: usize = 100;

/// Maximum number of senders of pauses, and classes, with series of their own: those that paused
/// longest.
pub const PAUSERS: usize = 64;

/// Maximum number of interfaces with series of their own: the first ones.
pub const INTERFACES: usize = 64;

/// Maximum number of remembered notifiers that had a series of their own.
const REMEMBERED: usize = 1_000;

/// Generates pages, and remembers the values of the last one.
#[derive(Debug)]
pub struct Exposition {
    formatter: Formatter,
    qps: usize,
    /// True if rows are distinguished by interface. Otherwise there is no interface label, because
    /// a row with a single interface may get further ones at any time, and a series keeps its
    /// labels.
    pub by_interface: bool,
    /// Values of the records and of the series of the notifiers on the last page.
    shown: FxHashMap<IpAddr, (u64, u64)>,
    /// Last values of series no longer shown.
    gone: FxHashMap<IpAddr, u64>,
    /// Number of notifications on the last page, and its time, if there was one.
    last: Option<(u64, u64)>,
    other: u64,
}

impl Exposition {
    /// Creates pages with series for at most `qps` QPs.
    pub fn new(qps: usize, formatter: Formatter) -> Self {
        Self {
            formatter,
            qps,
            by_interface: true,
            shown: FxHashMap::default(),
            gone: FxHashMap::default(),
            last: None,
            other: 0,
        }
    }

    /// Returns the page for the current tables.
    pub fn page(&mut self, tables: &Tables) -> String {
        let mut page = Page::default();
        page.family(&m::BUILD).add(&[env!("CARGO_PKG_VERSION")], 1);
        page.single(&m::CLOCK, seconds(tables.now));
        totals(&mut page, tables);
        self.interfaces(&mut page, &tables.interfaces);
        self.nics(&mut page, &tables.nics);
        self.notifiers(&mut page, tables);
        self.rows(&mut page, tables);
        self.flows(&mut page, &tables.flows);
        self.receivers(&mut page, &tables.receivers);
        pauses(&mut page, &tables.pauses);
        page.finish()
    }

    fn receivers(&self, page: &mut Page, all: &[ReceiverRecord]) {
        let mut used = FxHashSet::default();
        let shown: Vec<(String, &ReceiverRecord)> = all
            .iter()
            .take(RECEIVERS)
            .map(|one| (self.formatter.exact_address(one.receiver), one))
            .filter(|(address, _)| used.insert(address.clone()))
            .collect();
        let families: [(&'static Family, ReceiverValue); 4] = [
            (&m::RECEIVER_MARKED, |one| one.marked),
            (&m::RECEIVER_EXPECTED, |one| one.expected),
            (&m::RECEIVER_CNPS, |one| one.cnps),
            (&m::RECEIVER_SILENT, |one| one.silent.into()),
        ];
        for (family, value) in families {
            let mut family = page.family(family);
            for (address, receiver) in &shown {
                family.add(&[address], value(receiver));
            }
        }
    }

    fn flows(&self, page: &mut Page, all: &[FlowRecord]) {
        let mut flows: Vec<&FlowRecord> = all.iter().collect();
        let key = |flow: &FlowRecord| (flow.sender, flow.receiver, flow.receiver_qp);
        flows.sort_unstable_by_key(|flow| (Reverse(flow.stalled), key(flow)));
        let stalled = flows
            .iter()
            .take(FLOWS / 2)
            .take_while(|flow| flow.stalled > 0);
        let stalled = stalled.count();
        let rest = flows.get_mut(stalled..).unwrap_or_default();
        rest.sort_unstable_by(|a, b| {
            let rate = |flow: &FlowRecord| flow.data_rate.unwrap_or(0.0);
            rate(b)
                .total_cmp(&rate(a))
                .then_with(|| key(a).cmp(&key(b)))
        });
        flows.truncate(FLOWS);
        let mut used = FxHashSet::default();
        let flows: Vec<([String; 3], &FlowRecord)> = (flows.into_iter())
            .map(|flow| {
                let address = |address| self.formatter.exact_address(address);
                let qp = format!("{:#x}", flow.receiver_qp);
                ([address(flow.sender), address(flow.receiver), qp], flow)
            })
            .filter(|(labels, _)| used.insert(labels.clone()))
            .collect();
        let families: [(&'static Family, FlowValue); 6] = [
            (&m::FLOW_DATA, |flow| flow.data_rate.map(|bits| bits / 8.0)),
            (&m::FLOW_CE, |flow| flow.ce_share),
            (&m::FLOW_RESENT, |flow| Some(flow.resent as f64)),
            (&m::FLOW_STALLED, |flow| Some(seconds(flow.stalled))),
            (&m::FLOW_EXHAUSTED, |flow| {
                Some(u8::from(flow.exhausted).into())
            }),
            (&m::FLOW_ROUND_TRIP, |flow| flow.rtt_min.map(seconds)),
        ];
        for (family, value) in families {
            let mut samples = page.family(family);
            for (labels, flow) in &flows {
                if let Some(value) = value(flow).filter(|value| value.is_finite()) {
                    samples.add(labels, value);
                }
            }
        }
        let mut naks = page.family(&m::FLOW_NAKS);
        for ([sender, receiver, qp], flow) in &flows {
            for (kind, count) in [
                (AckKind::RnrNak, flow.rnr_naks),
                (AckKind::SequenceError, flow.nak_sequence),
                (AckKind::InvalidRequest, flow.nak_invalid_request),
                (AckKind::RemoteAccess, flow.nak_remote_access),
                (AckKind::RemoteOperation, flow.nak_remote_operation),
            ] {
                if count > 0 {
                    naks.add(&[sender, receiver, qp, kind.id()], count);
                }
            }
        }
    }

    fn interfaces(&self, page: &mut Page, all: &[InterfaceRecord]) {
        let mut used = FxHashSet::default();
        let named: Vec<(String, &InterfaceRecord)> = all
            .iter()
            .take(INTERFACES)
            .enumerate()
            .map(|(number, interface)| {
                let mut name = self.formatter.text(&interface.name).into_owned();
                // A capture may have two interfaces of one name; series must be unique.
                if name.is_empty() || !used.insert(name.clone()) {
                    name = format!("{name}#{number}");
                    used.insert(name.clone());
                }
                (name, interface)
            })
            .collect();
        let mut up = page.family(&m::INTERFACE_UP);
        for (name, interface) in named.iter().filter(|(_, one)| one.state != INDIRECT) {
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

    /// Returns the page with only the counters of RDMA devices, if nothing is captured.
    pub fn counters(&self, nics: &Nics) -> String {
        let mut page = Page::default();
        page.family(&m::BUILD).add(&[env!("CARGO_PKG_VERSION")], 1);
        self.nics(&mut page, nics);
        page.finish()
    }

    /// Only whole ports: queue pairs come and go.
    fn nics(&self, page: &mut Page, nics: &Nics) {
        let is_told = |counter: &&CounterRecord| counter.qps.is_none() && !counter.vanished;
        let whole = nics.counters.iter().filter(is_told);
        let counters: Vec<(&CounterRecord, [String; 3])> = whole
            .map(|counter| {
                let interface = counter.interface.as_deref().unwrap_or_default();
                let port = counter.port.to_string();
                let text = |text| self.formatter.text(text).into_owned();
                (counter, [text(&counter.device), port, text(interface)])
            })
            .collect();
        let id = |counter: &CounterRecord| counter.quantity.map_or("", |quantity| quantity.id());
        let mut values = page.family(&m::NIC_COUNTER);
        for (counter, [device, port, interface]) in &counters {
            let name = self.formatter.text(&counter.counter);
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
            .map(|point| (self.formatter.exact_address(point.notifier), *point))
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

    /// Adds the increase since the last page to the series of the notifiers shown, and the
    /// remainder to that of the others.
    fn count(&mut self, points: &[&PointRecord], tables: &Tables) {
        let all = tables.totals.notified();
        let (notified, moment) = self.last.unwrap_or_default();
        let mut before = std::mem::take(&mut self.shown);
        let mut counted = 0u64;
        for point in points {
            let (grown, value) = match before.remove(&point.notifier) {
                // A record that was evicted and created again starts at 0.
                Some((total, value)) => {
                    (point.total.checked_sub(total).unwrap_or(point.total), value)
                }
                None => {
                    // Notifications before it was shown were counted elsewhere.
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
            // They would start at 0 again, which Prometheus correctly takes for a restart.
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
        let selected = selection.apply(tables, &self.formatter);
        let mut used = FxHashSet::default();
        let rows: Vec<(Vec<String>, &QpRecord)> = (selected.rows.iter())
            .map(|(_, row)| (self.row_labels(row), row))
            // Series must be unique, even if two rows have the same labels.
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
                // Infinity and NaN are omitted.
                if let Some(value) = value(row).filter(|value| value.is_finite()) {
                    samples.add(labels, value);
                }
            }
        }
        // Number of notifications behind each verdict, with the verdict as a label.
        let mut verdicts = page.family(&m::QP_VERDICT);
        for (mut labels, row) in rows {
            if let Some(verdict) = row.verdict {
                labels.push(verdict.id().to_owned());
                verdicts.add(&labels, row.measured);
            }
        }
    }

    /// Returns the labels of a row: only those that never change while the row is kept, otherwise
    /// its series would change its name.
    fn row_labels(&self, row: &QpRecord) -> Vec<String> {
        let address = |address: Option<IpAddr>| {
            address.map_or_else(String::new, |address| self.formatter.exact_address(address))
        };
        // The owner of a flow label may become known later.
        let sender = row.sender.filter(|_| row.flow_label.is_none());
        let destination = Some(row.destination).filter(|_| sender.is_none());
        let (qp, side) = match row.kind {
            Kind::Cnp => (row.sender_qp, QpSide::Sender),
            Kind::WanFcn => (None, QpSide::Receiver),
            _ => (row.receiver_qp, QpSide::Receiver),
        };
        let receiver = row
            .receiver
            .filter(|_| !matches!(row.kind, Kind::Cnp | Kind::WanFcn));
        let hex = |number: Option<u32>| number.map_or_else(String::new, |n| format!("{n:#x}"));
        // Samples of different capture points stay separate.
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
            self.formatter.text(interface).into_owned(),
        ]
    }
}

/// Returns the order of rows for a page, which may not have room for all.
pub fn order() -> Option<Order> {
    most_of::<QpRecord>("rate_10s")
}

/// Returns the value of a row's sample, if there is one.
type Value = fn(&QpRecord) -> Option<f64>;

/// Returns the value of a receiver's sample.
type ReceiverValue = fn(&ReceiverRecord) -> u64;

/// Returns the value of a flow's sample, if there is one.
type FlowValue = fn(&FlowRecord) -> Option<f64>;

/// Converts nanoseconds to seconds.
fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

fn pauses(page: &mut Page, all: &[PauseRecord]) {
    let mut used = FxHashSet::default();
    let shown: Vec<([String; 3], &PauseRecord)> = all
        .iter()
        .take(PAUSERS)
        .map(|pauses| {
            let class = pauses
                .class
                .map_or_else(|| "all".to_owned(), |class| class.to_string());
            let interface = pauses.interface.as_deref().unwrap_or_default().to_owned();
            ([interface, pauses.mac.to_string(), class], pauses)
        })
        .filter(|(labels, _)| used.insert(labels.clone()))
        .collect();
    let mut family = page.family(&m::PAUSED);
    for (labels, pauses) in &shown {
        family.add(labels, seconds(pauses.paused));
    }
    let mut family = page.family(&m::PAUSE_STORM);
    for (labels, pauses) in &shown {
        family.add(labels, u64::from(pauses.storm));
    }
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
    let mut unread = page.family(&m::UNREAD);
    for reason in ["roce_unproven", "ether_type", "gre_protocol", "fragment"] {
        let those = tables.unread.iter().filter(|record| record.kind == reason);
        unread.add(&[reason], those.map(|record| record.packets).sum::<u64>());
    }
    page.single(&m::ROCE_V1, totals.roce_v1);
    page.single(&m::GLOBAL_PAUSES, totals.global_pauses);
    page.single(&m::CNMS, totals.cnms);
    page.single(&m::TRIMMED, totals.trimmed);
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
        ("notifiers", totals.notifiers, totals.notifiers_evicted),
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

/// Serves the page at `/metrics`, in a separate thread.
///
/// # Errors
///
/// The thread cannot be created.
pub fn serve(
    listener: TcpListener,
    mut exposition: Exposition,
    tables: impl Fn() -> Tables + Send + 'static,
) -> Result<Server> {
    serve_page(listener, move || exposition.page(&tables()))
}

/// Same, with another generator of pages.
///
/// # Errors
///
/// The thread cannot be created.
pub fn serve_page(
    listener: TcpListener,
    make: impl FnMut() -> String + Send + 'static,
) -> Result<Server> {
    fcn_tool::metrics::serve(listener, "fcn-top", make)
}
