//! The monitor: consumes packets and clock ticks, produces tables. No sockets, files, threads or
//! screens.
//!
//! `observe.rs` classifies packets and `reporter.rs` reports problems in them; `rows.rs` has the
//! notifications to each QP, `notifiers.rs` their senders, `flows.rs` the data they are about,
//! `paths.rs` the IOAM traces, `events.rs` the log. Every table is bounded.

mod course;
pub(crate) mod events;
mod flow_records;
mod flows;
mod interfaces;
mod local;
mod mirror_clocks;
mod notifiers;
mod observe;
mod paths;
mod pauses;
mod reporter;
mod row;
mod rows;
pub(crate) mod samples;
mod series;
mod settings;
#[cfg(test)]
mod tests;
mod unread;
mod windows;

pub(crate) use windows::{ENOUGH, TENTH};

pub use local::LocalTraffic;
pub use observe::Observed;
pub use settings::{Limits, Settings};

use crate::packet::Packet;
use crate::record::RowId;
use crate::record::{
    Answer, EventRecord, Evidence, HopRecord, InterfaceRecord, Maker, PointRecord, QpRecord,
    QpSide, origin,
};
use crate::tables::{
    Course, Detail, Details, Dropped, FlowStep, Tables, Totals, Traffic, TrafficStep, Wanted,
    WantedDetails,
};
use course::RunSeries;
use events::Log;
use fcn_observe::trimmed::TrimmedTable;
use fcn_observe::{Class, Correlator, FlowKey, Routing, RowKey};
use fcn_tool::quantity::{counted, grouped};
use fcn_wire::{Findings, Kind, Rule, Severity};
use flows::Volume;
use interfaces::Interfaces;
use local::LocalInterfaces;
use mirror_clocks::MirrorClocks;
use notifiers::{ByNotifier, Notifiers};
use paths::Paths;
use reporter::Reporter;
use row::Row;
use rows::Rows;
use samples::Sequences;
use series::{Series, Sum};
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use unread::UnreadPackets;
use windows::{Least, Ring, Windows};

/// Number of data packets that repeat a PSN, each directly after one that does not, from which the
/// capture is doubted; and the minimum share of repeats among all data packets, one in this many.
const ENOUGH_REPEATED: u64 = 100;
const MOST_REPEATED: u64 = 4;

/// Tracks which senders are told to slow down, by whom, how often, and whether they obey.
///
/// Time comes from packets and [`advance`](Self::advance), in nanoseconds since the epoch; it never
/// goes back.
pub struct Monitor {
    settings: Settings,
    now: u64,
    started: Option<u64>,
    /// Start of the capture, if known.
    watched: Option<u64>,
    /// Notifications of all kinds.
    windows: Windows,
    traffic: Series<TrafficStep>,
    /// Data by tenths of a second.
    data_by_time: Ring<FlowStep>,
    /// Time series of the whole run, if requested.
    courses: Option<Box<RunSeries>>,
    totals: Totals,
    rows: Rows,
    notifiers: Notifiers,
    correlator: Correlator<Volume>,
    routing: Routing,
    paths: Paths,
    reporter: Reporter,
    interfaces: Interfaces,
    locals: LocalInterfaces,
    mirror_clocks: MirrorClocks,
    /// Capture time of the current packet, regardless of a mirror's clock.
    captured: u64,
    /// Data packets whose PSN the flow recently had, and those directly after a packet that does
    /// not repeat one.
    repeated: u64,
    repeated_singly: u64,
    /// True if the file may describe interfaces after packets that they captured as well.
    later_interfaces: bool,
    findings: Option<Box<Findings>>,
    /// Results for the samples in the last datagram that had any.
    of_samples: Vec<Observed>,
    sequences: Sequences,
    unread: UnreadPackets,
    trimmed: TrimmedTable,
}

impl Monitor {
    /// Creates a monitor without packets.
    pub fn new(settings: Settings) -> Self {
        let limits = settings.limits;
        let mut correlator = Correlator::new(limits.flows, limits.connections);
        correlator.set_link_speed(settings.link_speed);
        Self {
            settings,
            now: 0,
            started: None,
            watched: None,
            windows: Windows::default(),
            traffic: Series::default(),
            data_by_time: Ring::default(),
            courses: None,
            totals: Totals::default(),
            rows: Rows::new(limits.rows),
            notifiers: Notifiers::new(limits.points),
            correlator,
            routing: Routing::default(),
            paths: Paths::new(limits.paths.max(1)),
            reporter: Reporter::new(Log::new(limits.events.max(1))),
            interfaces: Interfaces::default(),
            locals: LocalInterfaces::default(),
            mirror_clocks: MirrorClocks::default(),
            captured: 0,
            repeated: 0,
            repeated_singly: 0,
            later_interfaces: false,
            findings: None,
            of_samples: Vec::new(),
            sequences: Sequences::default(),
            unread: UnreadPackets::default(),
            trimmed: TrimmedTable::default(),
        }
    }

    /// Advances time without a packet. A time before the current one has no effect.
    pub fn advance(&mut self, now: u64) {
        self.now = self.now.max(now);
    }

    /// Sets the start of the capture to `at`: rates cover the time since then, including that
    /// before the first packet.
    pub fn watch_from(&mut self, at: u64) {
        self.watched = Some(self.watched.map_or(at, |before| before.min(at)));
    }

    /// Returns the start of the capture.
    fn since(&self) -> u64 {
        let known = [self.watched, self.started].into_iter().flatten();
        known.min().unwrap_or(self.now)
    }

    /// Returns the latest time of a packet or of [`advance`](Self::advance).
    pub const fn now(&self) -> u64 {
        self.now
    }

    /// Returns sums over everything captured.
    pub fn totals(&self) -> Totals {
        Totals {
            rows: self.rows.table.len() as u64,
            rows_evicted: self.rows.table.evicted(),
            flows: self.correlator.flows().len() as u64,
            flows_evicted: self.correlator.flows().evicted(),
            notifiers: self.notifiers.table.len() as u64,
            notifiers_evicted: self.notifiers.table.evicted(),
            findings: self.reporter.findings,
            ..self.totals
        }
    }

    /// Returns the rows kept, in no particular order.
    pub fn rows(&self) -> impl Iterator<Item = (RowId, QpRecord)> {
        self.rows
            .iter()
            .map(|(id, key, row)| (id, self.record(key, row)))
    }

    /// Appends at most `most` rows to `rows`, starting at a slot; returns the slot to continue
    /// from, if there are more. Slots begin at 0, and a row keeps its slot for as long as it is
    /// kept.
    pub fn rows_from(
        &self,
        place: u32,
        most: usize,
        rows: &mut Vec<(RowId, QpRecord)>,
    ) -> Option<u32> {
        let mut behind = self.rows.from(place);
        rows.extend(
            behind
                .by_ref()
                .take(most)
                .map(|(id, key, row)| (id, self.record(key, row))),
        );
        behind.next().map(|(id, ..)| id.place())
    }

    /// Returns one row; `None` if it was evicted.
    pub fn row(&self, id: RowId) -> Option<QpRecord> {
        (self.rows.get(id)).map(|(key, row)| self.record(key, row))
    }

    /// Returns the data flow that a row is about, if known.
    pub fn flow_of_row(&self, id: RowId) -> Option<FlowKey> {
        let (key, row) = self.rows.get(id)?;
        self.flow_of(key, row.destination(key))
    }

    /// Returns the time series of one row; `None` if it was evicted.
    pub fn detail(&self, id: RowId) -> Option<Detail> {
        let (key, row) = self.rows.get(id)?;
        let flow = self.flow_of(key, row.destination(key));
        let flow = flow.and_then(|flow| self.correlator.flows().get(&flow));
        let none = Series::default();
        let data = flow.map_or(&none, |flow| &flow.extra.series);
        let (start, step, notifications, data) = row.series.side_by_side(data, self.now);
        let samples = row.samples();
        let each = samples.map_or(1.0, |samples| samples.one_in() as f32);
        let most = notifications.iter().map(|step| f32::from(step.most));
        // Steps shorter than a millisecond show bursts themselves, and samples do not show bursts.
        let most = match step >= 1 << series::Burst::SHIFT && samples.is_none() {
            true => most.collect(),
            false => Vec::new(),
        };
        let notifications = notifications.iter().map(|step| step.count as f32 * each);
        let notifications = notifications.collect();
        Some(Detail {
            until: self.now,
            start,
            step,
            most,
            notifications,
            data: data
                .iter()
                .map(|part| *part as f32 * flows::PART as f32)
                .collect(),
            notifiers: row.notifiers().map(|n| (n.address, n.total)).collect(),
            ..Detail::default()
        })
    }

    /// Starts to record the whole run, for [`course`](Self::course).
    pub fn keep_course(&mut self) {
        self.courses = Some(Box::new(RunSeries::default()));
    }

    /// Returns the time series of the whole run; `None` if it is not recorded.
    pub fn course(&self) -> Option<Course> {
        Some(self.courses.as_ref()?.course(self.now))
    }

    /// Returns the requested time series, without packets, which are kept elsewhere.
    #[must_use]
    pub fn details(&self, wanted: &WantedDetails) -> Details {
        let (start, step, steps, _) =
            (self.traffic).side_by_side(&Series::<u32>::default(), self.now);
        let rows = wanted.rows.iter();
        let points = wanted.points.iter();
        Details {
            traffic: Traffic {
                start,
                step,
                until: self.now,
                steps,
            },
            rows: rows
                .filter_map(|&row| Some((row, self.detail(row)?)))
                .collect(),
            points: points
                .filter_map(|&who| Some((who, self.notifiers.detail(who, self.now)?)))
                .collect(),
            ..Details::default()
        }
    }

    /// Returns the notifiers, in no particular order.
    pub fn points(&self) -> impl Iterator<Item = PointRecord> {
        // Counted now, because later packets may have shown that two rows are about one flow.
        let mut told = ByNotifier::default();
        for (_, key, row) in self.rows.iter() {
            let aim = key.aim(self.flow_of(key, row.destination(key)));
            let (made, _) = self.made_by(key, row).unzip();
            let several = row.notifiers().nth(1).is_some();
            for notifier in row.notifiers() {
                let its = told.entry(notifier.address).or_default();
                its.aims.insert(aim);
                its.total += notifier.total;
                // A row does not record which of several notifiers sent which notification.
                let made = made.map(|made| if several { Maker::Unknown } else { made });
                if let Some(count) = made.and_then(|made| its.makers.get_mut(made as usize)) {
                    *count = count.saturating_add(notifier.total.try_into().unwrap_or(u32::MAX));
                }
            }
        }
        self.notifiers.records(self.now, self.since(), told)
    }

    /// Returns the hops reported by IOAM traces, path by path.
    pub fn hops(&self) -> impl Iterator<Item = HopRecord> {
        self.paths.hops()
    }

    /// Returns the log, oldest first, followed by warnings about the whole capture until now.
    pub fn events(&self) -> impl Iterator<Item = EventRecord> {
        let repeats = self.repeats().map(|text| {
            EventRecord::of_capture(self.now, Severity::Warning, "capture.data.repeated", &text)
        });
        self.reporter.log.iter().cloned().chain(repeats)
    }

    /// Returns a warning if the data so far seems to be captured twice.
    pub fn repeats(&self) -> Option<String> {
        let Self { repeated, .. } = *self;
        let data = self.totals.data;
        // Nearly every copy follows a packet that is new. Of packets retransmitted by go-back-N in
        // one run, only the first does.
        let are_single = self.repeated_singly >= ENOUGH_REPEATED.max(repeated / 2);
        (are_single && repeated > data / MOST_REPEATED).then(|| {
            format!(
                "at least {} of {} repeat a PSN: if these are not retransmissions, the capture has packets twice (as from a mirror of both directions of several ports, or of a bridge), CNPs as well, and counts and rates are too high. Mirror one direction",
                grouped(repeated),
                counted(data, "data packet")
            )
        })
    }

    /// Returns the warnings so far that cast doubt on everything counted.
    pub fn doubts(&self) -> &[Arc<str>] {
        &self.reporter.doubts
    }

    /// Returns the number of violations of each rule, regardless of what the log has dropped; only
    /// rules that were violated.
    pub fn rules(&self) -> Vec<(&'static str, u64)> {
        self.reporter.rules()
    }

    /// Returns the interfaces, by number.
    pub fn interfaces(&self) -> Vec<InterfaceRecord> {
        self.interfaces.records(self.now, self.since())
    }

    /// Sets the name of an interface (empty to use its number) and its description.
    pub fn know_interface(&mut self, number: u32, name: &str, about: &str) {
        let (name, about) = match self.settings.hides_names {
            true => ("", ""),
            false => (name, about),
        };
        self.interfaces.know(number, name, about);
    }

    /// Sets the state of an interface, its description, and the packets dropped by the kernel and
    /// the interface; `None` leaves a value unchanged.
    pub fn interface_state(
        &mut self,
        number: u32,
        state: &'static str,
        about: Option<&str>,
        dropped: Dropped,
    ) {
        self.interfaces.set_state(number, state, about, dropped);
    }

    /// Watches traffic on the interface with that name to and from its own addresses. Returns the
    /// counts so far, and true if an address is new. `None` if nothing is captured there.
    pub fn watch_local(
        &mut self,
        interface: &str,
        addresses: &[IpAddr],
    ) -> Option<(LocalTraffic, bool)> {
        let place = self.interfaces.place_of(interface)?;
        Some(self.locals.watch(place, addresses))
    }

    /// Returns the number of notifications to each QP of a sender that `is_local`, of all kinds,
    /// over the rows kept.
    pub fn local_notifications(
        &self,
        is_local: impl Fn(IpAddr) -> bool,
    ) -> HashMap<(IpAddr, u32), u64> {
        let mut told = HashMap::new();
        for (_, key, row) in self.rows.iter() {
            // A notified proxy node or ingress PE is not local, but the sender may be: those rows
            // are few.
            let asked = matches!(key.kind(), Kind::ProxyCn | Kind::WanFcn);
            if !asked && !is_local(row.destination(key)) {
                continue;
            }
            let record = self.record(key, row);
            if let (Some(sender), Some(qp)) = (record.sender, record.sender_qp)
                && is_local(sender)
            {
                *told.entry((sender, qp)).or_default() += record.total;
            }
        }
        told
    }

    /// Returns true if mirrors' own clocks were requested, and none could be used.
    pub fn misses_mirror_clocks(&self) -> bool {
        self.settings.mirror_clock && !self.mirror_clocks.are_used()
    }

    /// Announces that the file may describe interfaces after packets that they captured as well:
    /// packets are remembered from the first one on, so that they count only once.
    pub const fn expect_interfaces(&mut self) {
        self.later_interfaces = true;
    }

    /// Returns a monitor that is to process the same packets again to remember their capture
    /// points.
    pub fn replay_monitor(&self) -> Self {
        Self {
            later_interfaces: true,
            ..Self::new(self.settings.clone())
        }
    }

    /// Adopts the capture points remembered by `replay`. This monitor processed those packets
    /// when there was no other capture point.
    pub fn adopt_sightings(&mut self, replay: Self) {
        self.correlator.adopt_sightings(replay.correlator);
    }

    /// Adds an event to the log that was detected elsewhere.
    pub fn note(&mut self, event: EventRecord) {
        self.reporter.report(event);
    }

    /// Reports a packet whose time stamp is out of range.
    #[cold]
    pub fn report_bad_stamp(&mut self, packet: &Packet<'_>) {
        let place = self.interfaces.place(packet.interface);
        let interface = self.interfaces.name(place);
        self.reporter
            .report_bad_stamp(packet.at, packet.number, interface);
    }

    /// Reports a packet stamped that far from those before, ahead or not; `is_first` on its
    /// interface.
    #[cold]
    pub fn report_outlier(
        &mut self,
        packet: &Packet<'_>,
        (by, ahead): (u64, bool),
        is_first: bool,
    ) {
        let place = self.interfaces.place(packet.interface);
        let interface = self.interfaces.name(place);
        self.reporter
            .report_outlier(packet.at, interface, (by, ahead), is_first);
    }

    /// Calls `listener` for every finding and event, before the log merges repetitions.
    pub fn listen(&mut self, listener: Box<dyn FnMut(&EventRecord) + Send>) {
        self.reporter.listener = Some(listener);
    }

    /// Returns the current tables that are wanted.
    pub fn tables(&self, wanted: Wanted) -> Tables {
        fn all<T, I: Iterator<Item = T>>(wanted: bool, items: impl FnOnce() -> I) -> Vec<T> {
            if wanted {
                items().collect()
            } else {
                Vec::new()
            }
        }
        let points = all(wanted.points, || self.points());
        // Where packets show that the network sent a receiver's CNPs, they are no answers of it.
        let networks: HashSet<IpAddr> = points
            .iter()
            .filter(|point| point.made_by == Some(Maker::Network))
            .map(|point| point.notifier)
            .collect();
        let mut receivers = pauses::receivers(self.correlator.receivers());
        receivers.retain(|record| record.marked > 0 || !networks.contains(&record.receiver));
        Tables {
            now: self.now,
            started: self.started,
            since: self.since(),
            qps: all(wanted.qps, || self.rows()),
            flows: all(wanted.flows, || self.flows()),
            points,
            hops: all(wanted.hops, || self.hops()),
            events: all(wanted.events, || self.events()),
            rules: self.rules(),
            interfaces: self.interfaces(),
            nics: Arc::default(),
            totals: self.totals(),
            rate_1s: self.windows.rate_1s(self.now, self.since()),
            data_rate: self.data_rate(),
            ce_1s: self.ce_1s(),
            unread: self.unread.records(),
            trimmed: pauses::trimmed(&self.trimmed, |place| self.interfaces.name(place)),
            receivers,
            pauses: pauses::pauses(
                self.correlator.pauses(),
                self.elapsed(),
                self.settings.hides_names,
                |place| self.interfaces.name(place),
            ),
        }
    }

    /// Returns the time of the latest packet, and that since the first one, in ns.
    fn elapsed(&self) -> (u64, u64) {
        let span = self.started.map_or(0, |started| self.now - started);
        (self.now, span)
    }

    /// Returns a mark between notifications, for [`tables_since`](Self::tables_since).
    pub const fn mark(&self) -> u64 {
        self.rows.ticks()
    }

    /// Returns the sums and the rows notified since `mark`: much cheaper than all rows if there are
    /// few.
    pub fn tables_since(&self, mark: u64) -> Tables {
        let rows = self.rows.used_since(mark);
        Tables {
            qps: rows
                .map(|(id, key, row)| (id, self.record(key, row)))
                .collect(),
            ..self.tables(Wanted::default())
        }
    }

    /// Returns the data flow that notifications of that key are about.
    fn flow_of(&self, key: &RowKey, destination: IpAddr) -> Option<FlowKey> {
        self.correlator.flow_of_key(key, destination)
    }

    /// Returns the data rate in the last complete second, in octets per second.
    fn data_rate(&self) -> Option<f64> {
        let all: f64 = self.totals.octets as f64 / self.totals.packets.max(1) as f64;
        let least = Least::in_part(ENOUGH * all);
        self.data_by_time.rate_1s(self.now, self.since(), least)
    }

    /// Returns the fraction of data packets in the last complete second that are marked.
    fn ce_1s(&self) -> Option<f64> {
        let FlowStep { data, ce, .. } = self.data_by_time.last_second(self.now);
        (data > 0).then(|| (f64::from(ce) / f64::from(data)).min(1.0))
    }

    /// Returns the origin of a row's CNPs, with the evidence.
    fn made_by(&self, key: &RowKey, row: &Row) -> Option<(Maker, origin::Evidence)> {
        if row.samples().is_some() && key.kind() == Kind::Cnp {
            return Some((Maker::Unknown, origin::Evidence::Sampled));
        }
        let made = row.makers.judge(self.correlator.origins())?;
        Some((made.maker, made.evidence))
    }

    /// Returns the row with everything known about it.
    fn record(&self, key: &RowKey, row: &Row) -> QpRecord {
        let mut record = row.record(key, self.now, self.since());
        let is_sampled = row.samples().is_some();
        if self.settings.per_interface || is_sampled && self.interfaces.are_several() {
            record.interface = self.interfaces.name(key.interface());
        } else if self.interfaces.are_several() {
            let names = row
                .interfaces()
                .filter_map(|number| self.interfaces.name(number));
            let names: Vec<_> = names.collect();
            record.interface = (!names.is_empty()).then(|| names.join(",").into());
            let unit = |point| self.correlator.sightings().unit(point);
            let order = row
                .path_order()
                .filter(|_| !self.correlator.sightings().clocks_differ());
            record.path = order.and_then(|order| self.interfaces.path(order, unit));
        }
        (record.made_by, record.made_by_evidence) = self.made_by(key, row).unzip();
        let Some(key) = self.flow_of(key, row.destination(key)) else {
            return record;
        };
        record.sender = record.sender.or(Some(key.sender));
        record.receiver = record.receiver.or(Some(key.receiver));
        let (qp, from) = self.correlator.sender_qp(&key).unzip();
        if record.receiver_qp.is_none() {
            record.receiver_qp = Some(key.receiver_qp.get());
            record.receiver_qp_from = from.filter(|_| record.sender_qp.is_some());
        }
        if record.sender_qp.is_none() {
            record.sender_qp = qp.map(fcn_wire::Qp::get);
            record.sender_qp_from = from;
        }
        // One QP per flow, although each kind names the QP of a different side, or none.
        (record.qp, record.qp_side) = match record.sender_qp {
            Some(qp) => (Some(qp), Some(QpSide::Sender)),
            None => (record.receiver_qp, Some(QpSide::Receiver)),
        };
        if let Some(flow) = self.correlator.flows().get(&key) {
            let volume = &flow.extra;
            let estimate = volume.estimate(self.now, self.since());
            record.ce_share = volume.ce_share();
            record.data_dscp = flow.class.map(Class::dscp);
            record.data_vlan_priority = flow.class.and_then(Class::priority);
            record.class = row.topic.class_relation(flow.class);
            record.data_rate = volume.data_rate(self.now, self.since());
            record.data_packets = Some(volume.packets);
            if let Some(estimate) = estimate {
                record.ce_share = Some(estimate.ce_share);
                record.data_rate = estimate.rate;
                record.data_packets = Some(estimate.packets);
                record.data_sampled = Some(estimate.sampled);
            }
            if is_sampled || estimate.is_some() {
                record.verdict = Some(Answer::Unclear);
                record.evidence = Some(Evidence::Sampled);
                return record;
            }
            let verdict = self.correlator.verdict(flow);
            record.change = verdict.evidence.change();
            record.measured = verdict.measured.into();
            record.verdict = Some(verdict.answer);
            record.evidence = Some(verdict.evidence);
            record.advice = verdict.advice;
        }
        record
    }
}

impl Sum for TrafficStep {
    #[inline]
    fn and(mut self, other: Self) -> Self {
        for (count, more) in self.notifications.iter_mut().zip(other.notifications) {
            *count = count.saturating_add(more);
        }
        self.data = self.data.saturating_add(other.data);
        self.ce = self.ce.saturating_add(other.ce);
        self.octets = self.octets.saturating_add(other.octets);
        self
    }
}

/// Number of violations of each rule.
type Broken = [u64; Rule::ALL.len()];
