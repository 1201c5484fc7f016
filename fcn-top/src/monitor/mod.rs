//! The monitor: packets and the clock go in, tables come out. No sockets, files, threads or screens.
//!
//! `observe.rs` sorts packets and `reporter.rs` says what is wrong with them; `rows.rs` has what each QP is told,
//! `notifiers.rs` who tells it, `flows.rs` the data it is about and whether it obeyed, `paths.rs` what IOAM traces say, `events.rs` the log. Every table is
//! bounded.

mod course;
pub(crate) mod events;
mod flows;
mod gaps;
mod interfaces;
mod local;
mod mirror_clocks;
mod notifiers;
mod observe;
mod paths;
mod reporter;
mod row;
mod rows;
pub(crate) mod samples;
mod series;
mod settings;
#[cfg(test)]
mod tests;
mod windows;

pub(crate) use windows::{ENOUGH, TENTH};

pub use local::Seen;
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
use course::Courses;
use events::Log;
use fcn_observe::{Class, Correlator, FlowKey, Routing, RowKey};
use fcn_tool::quantity::{counted, grouped};
use fcn_wire::{Findings, Kind, Rule, Severity};
use flows::Volume;
use interfaces::Interfaces;
use local::Locals;
use mirror_clocks::MirrorClocks;
use notifiers::{ByNotifier, Notifiers};
use paths::Paths;
use reporter::Reporter;
use row::Row;
use rows::Rows;
use samples::Sequences;
use series::{Series, Sum};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use windows::{Least, Ring, Windows};

/// Data packets that repeat a PSN, each right behind a new one, before that casts doubt on the capture; and one in how many of
/// all repeats one then, at least.
const ENOUGH_REPEATED: u64 = 100;
const MOST_REPEATED: u64 = 4;

/// Who is told to slow down, by whom, how often, and whether it obeys.
///
/// Time is what packets and [`advance`](Self::advance) say, in nanoseconds since the epoch; it never goes back.
pub struct Monitor {
    settings: Settings,
    now: u64,
    started: Option<u64>,
    /// From when on packets were watched for, where that is known.
    watched: Option<u64>,
    /// Notifications of all kinds.
    windows: Windows,
    traffic: Series<TrafficStep>,
    /// Octets of data.
    data_by_time: Ring<FlowStep>,
    /// The whole run over time, where that is wanted.
    courses: Option<Box<Courses>>,
    totals: Totals,
    rows: Rows,
    notifiers: Notifiers,
    correlator: Correlator<Volume>,
    routing: Routing,
    paths: Paths,
    reporter: Reporter,
    interfaces: Interfaces,
    locals: Locals,
    mirror_clocks: MirrorClocks,
    /// When the packet that is being taken in was captured, whatever a mirror's clock says.
    captured: u64,
    /// Data packets whose PSN its flow has had just before, and those of them right behind one of which that is not so.
    repeated: u64,
    repeated_singly: u64,
    /// Whether interfaces may become known behind packets that they have seen, too.
    later_interfaces: bool,
    findings: Option<Box<Findings>>,
    /// What the samples of the last datagram were about that had some.
    of_samples: Vec<Observed>,
    sequences: Sequences,
}

impl Monitor {
    /// A monitor that has seen nothing.
    pub fn new(settings: Settings) -> Self {
        let limits = settings.limits;
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
            correlator: Correlator::new(limits.flows, limits.connections),
            routing: Routing::default(),
            paths: Paths::new(limits.paths.max(1)),
            reporter: Reporter::new(Log::new(limits.events.max(1))),
            interfaces: Interfaces::default(),
            locals: Locals::default(),
            mirror_clocks: MirrorClocks::default(),
            captured: 0,
            repeated: 0,
            repeated_singly: 0,
            later_interfaces: false,
            findings: None,
            of_samples: Vec::new(),
            sequences: Sequences::default(),
        }
    }

    /// Says what time it is, where no packet says it. A time before the last is taken as that one.
    pub fn advance(&mut self, now: u64) {
        self.now = self.now.max(now);
    }

    /// Says that packets are watched for from `at` on: rates are of that time, also before the first packet.
    pub fn watch_from(&mut self, at: u64) {
        self.watched = Some(self.watched.map_or(at, |before| before.min(at)));
    }

    /// From when on packets were watched.
    fn since(&self) -> u64 {
        let known = [self.watched, self.started].into_iter().flatten();
        known.min().unwrap_or(self.now)
    }

    /// The latest time that a packet or [`advance`](Self::advance) has told.
    pub const fn now(&self) -> u64 {
        self.now
    }

    /// Sums over everything seen.
    pub fn totals(&self) -> Totals {
        Totals {
            rows: self.rows.table.len() as u64,
            rows_evicted: self.rows.table.evicted(),
            flows: self.correlator.flows().len() as u64,
            flows_evicted: self.correlator.flows().evicted(),
            points: self.notifiers.table.len() as u64,
            points_evicted: self.notifiers.table.evicted(),
            findings: self.reporter.findings,
            ..self.totals
        }
    }

    /// The rows kept, in no particular order.
    pub fn rows(&self) -> impl Iterator<Item = (RowId, QpRecord)> {
        self.rows
            .iter()
            .map(|(id, key, row)| (id, self.record(key, row)))
    }

    /// Adds rows to `rows`, at most so many, from a place on; returns the place from which on there are more. Places begin
    /// with 0, and a row keeps its own for as long as it is kept.
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

    /// One row; `None` where it has had to go.
    pub fn row(&self, id: RowId) -> Option<QpRecord> {
        (self.rows.get(id)).map(|(key, row)| self.record(key, row))
    }

    /// The data flow that a row is about, where it is known.
    pub fn flow_of_row(&self, id: RowId) -> Option<FlowKey> {
        let (key, row) = self.rows.get(id)?;
        self.flow_of(key, row.destination(key))
    }

    /// One row over time; `None` where it has had to go.
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
        // Steps shorter than a millisecond tell more themselves, and samples nothing of bursts.
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

    /// Keeps the whole run over time from now on, for [`course`](Self::course).
    pub fn keep_course(&mut self) {
        self.courses = Some(Box::new(Courses::default()));
    }

    /// The whole run over time; `None` where it is not kept.
    pub fn course(&self) -> Option<Course> {
        Some(self.courses.as_ref()?.course(self.now))
    }

    /// Courses over time, but for the packets, which are kept elsewhere.
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

    /// Who notifies, in no particular order.
    pub fn points(&self) -> impl Iterator<Item = PointRecord> {
        // Counted now, as what has been learnt since may have shown two rows to be about one flow.
        let mut told = ByNotifier::default();
        for (_, key, row) in self.rows.iter() {
            let aim = key.aim(self.flow_of(key, row.destination(key)));
            let (made, _) = self.made_by(key, row).unzip();
            let several = row.notifiers().nth(1).is_some();
            for notifier in row.notifiers() {
                let its = told.entry(notifier.address).or_default();
                its.aims.insert(aim);
                its.total += notifier.total;
                // Which of several made what, the row does not tell.
                let made = made.map(|made| if several { Maker::Unknown } else { made });
                if let Some(count) = made.and_then(|made| its.makers.get_mut(made as usize)) {
                    *count = count.saturating_add(notifier.total.try_into().unwrap_or(u32::MAX));
                }
            }
        }
        self.notifiers.records(self.now, self.since(), told)
    }

    /// The hops that IOAM traces tell of, path by path.
    pub fn hops(&self) -> impl Iterator<Item = HopRecord> {
        self.paths.hops()
    }

    /// The log, oldest first; behind it what is so of all that was seen until now.
    pub fn events(&self) -> impl Iterator<Item = EventRecord> {
        let repeats = self.repeats().map(|text| {
            EventRecord::of_capture(self.now, Severity::Warning, "capture.data.repeated", &text)
        });
        self.reporter.log.iter().cloned().chain(repeats)
    }

    /// That data seems to be captured twice, if it does so of all that was seen until now.
    pub fn repeats(&self) -> Option<String> {
        let Self { repeated, .. } = *self;
        let data = self.totals.data;
        // Each copy follows a packet that is new, or nearly each. Of what go-back-N sends again in one piece, only the first does.
        let are_single = self.repeated_singly >= ENOUGH_REPEATED.max(repeated / 2);
        (are_single && repeated > data / MOST_REPEATED).then(|| {
            format!(
                "at least {} of {} repeat a PSN: if these are not retransmissions, the capture has packets twice (as from a mirror of both directions of several ports, or of a bridge), CNPs as well, and counts and rates are too high. Mirror one direction",
                grouped(repeated),
                counted(data, "data packet")
            )
        })
    }

    /// What was warned of that casts doubt on all that is counted.
    pub fn doubts(&self) -> &[Arc<str>] {
        &self.reporter.doubts
    }

    /// How often each rule was found broken, whatever the log has forgotten; rules that were not are left out.
    pub fn rules(&self) -> Vec<(&'static str, u64)> {
        self.reporter.rules()
    }

    /// Where packets come from, by number.
    pub fn interfaces(&self) -> Vec<InterfaceRecord> {
        self.interfaces.records(self.now, self.since())
    }

    /// Says what an interface is called (nothing: its number serves), and what else there is to say about it.
    pub fn know_interface(&mut self, number: u32, name: &str, about: &str) {
        let (name, about) = match self.settings.hides_names {
            true => ("", ""),
            false => (name, about),
        };
        self.interfaces.know(number, name, about);
    }

    /// Says how an interface is, why, and how many packets the kernel and the interface have dropped; what is `None` stays
    /// as it was.
    pub fn interface_state(
        &mut self,
        number: u32,
        state: &'static str,
        about: Option<&str>,
        dropped: Dropped,
    ) {
        self.interfaces.set_state(number, state, about, dropped);
    }

    /// Watches what passes the interface of that name to and from these addresses, which are its own; returns what was seen
    /// so far, and whether an address is new. `None`: nothing is captured there.
    pub fn watch_local(&mut self, interface: &str, addresses: &[IpAddr]) -> Option<(Seen, bool)> {
        let place = self.interfaces.place_of(interface)?;
        Some(self.locals.watch(place, addresses))
    }

    /// How often each QP of a sender that `is_local` was told to slow down, by all kinds, as far as rows are kept.
    pub fn told_local(&self, is_local: impl Fn(IpAddr) -> bool) -> HashMap<(IpAddr, u32), u64> {
        let mut told = HashMap::new();
        for (_, key, row) in self.rows.iter() {
            // Whom a proxy node or ingress PE is asked about is not local there, but may be elsewhere: those rows are few.
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

    /// Whether times of mirrors' own clocks were asked for, and none could be used.
    pub fn misses_mirror_clocks(&self) -> bool {
        self.settings.mirror_clock && !self.mirror_clocks.are_used()
    }

    /// Says that further interfaces may become known behind packets which they have seen as well: packets are remembered
    /// from the first one on, so that they count once then, too.
    pub const fn expect_interfaces(&mut self) {
        self.later_interfaces = true;
    }

    /// A monitor that is to see again what this one saw, so that it remembers where that was seen.
    pub fn rehearsal(&self) -> Self {
        Self {
            later_interfaces: true,
            ..Self::new(self.settings.clone())
        }
    }

    /// Remembers where packets were seen as `rehearsal` does. Here they were taken in when there was no other place to see
    /// them again.
    pub fn remember(&mut self, rehearsal: Self) {
        self.correlator.adopt_sightings(rehearsal.correlator);
    }

    /// Adds to the log what others have noticed.
    pub fn note(&mut self, event: EventRecord) {
        self.reporter.report(event);
    }

    /// Says that a packet is stamped so far from those before, ahead or not; `is_first` of its interface.
    #[cold]
    pub fn stamped_far(&mut self, packet: &Packet<'_>, (by, ahead): (u64, bool), is_first: bool) {
        let place = self.interfaces.place(packet.interface);
        let interface = self.interfaces.name(place);
        self.reporter
            .stamped_far(packet.at, interface, (by, ahead), is_first);
    }

    /// Has `listener` told every finding and event, before the log puts those together that repeat.
    pub fn listen(&mut self, listener: Box<dyn FnMut(&EventRecord) + Send>) {
        self.reporter.listener = Some(listener);
    }

    /// The tables that are wanted, as they are now.
    pub fn tables(&self, wanted: Wanted) -> Tables {
        fn all<T, I: Iterator<Item = T>>(wanted: bool, items: impl FnOnce() -> I) -> Vec<T> {
            if wanted {
                items().collect()
            } else {
                Vec::new()
            }
        }
        Tables {
            now: self.now,
            started: self.started,
            since: self.since(),
            qps: all(wanted.qps, || self.rows()),
            points: all(wanted.points, || self.points()),
            hops: all(wanted.hops, || self.hops()),
            events: all(wanted.events, || self.events()),
            rules: self.rules(),
            interfaces: self.interfaces(),
            nics: Arc::default(),
            totals: self.totals(),
            rate_1s: self.windows.rate_1s(self.now, self.since()),
            data_rate: self.data_rate(),
            ce_1s: self.ce_1s(),
        }
    }

    /// A mark between notifications, for [`tables_since`](Self::tables_since).
    pub const fn mark(&self) -> u64 {
        self.rows.ticks()
    }

    /// The sums, and those rows that were notified since `mark`: much cheaper than all rows where few were.
    pub fn tables_since(&self, mark: u64) -> Tables {
        let rows = self.rows.used_since(mark);
        Tables {
            qps: rows
                .map(|(id, key, row)| (id, self.record(key, row)))
                .collect(),
            ..self.tables(Wanted::default())
        }
    }

    /// The data flow that notifications of that key are about.
    fn flow_of(&self, key: &RowKey, destination: IpAddr) -> Option<FlowKey> {
        self.correlator.flow_of_key(key, destination)
    }

    /// Data in the last second that is over, in octets a second.
    fn data_rate(&self) -> Option<f64> {
        let all: f64 = self.totals.octets as f64 / self.totals.packets.max(1) as f64;
        let least = Least::in_part(ENOUGH * all);
        self.data_by_time.rate_1s(self.now, self.since(), least)
    }

    /// Part of the packets of data in the last second that is over that are marked.
    fn ce_1s(&self) -> Option<f64> {
        let FlowStep { data, ce, .. } = self.data_by_time.last_second(self.now);
        (data > 0).then(|| (f64::from(ce) / f64::from(data)).min(1.0))
    }

    /// Who made a row's CNPs, and what that rests on.
    fn made_by(&self, key: &RowKey, row: &Row) -> Option<(Maker, origin::Evidence)> {
        if row.samples().is_some() && key.kind() == Kind::Cnp {
            return Some((Maker::Unknown, origin::Evidence::Sampled));
        }
        let made = row.makers.judge(self.correlator.origins())?;
        Some((made.maker, made.evidence))
    }

    /// The row with all that is known of it.
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
            let unit = |place| self.correlator.sightings().unit(place);
            let trail = row
                .trail()
                .filter(|_| !self.correlator.sightings().are_apart());
            record.path = trail.and_then(|trail| self.interfaces.path(trail, unit));
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
        // One flow, one number: each kind names the QP of another side, or none.
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
            record.class = row.topic.company(flow.class);
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

/// The rules, and how often each was found broken.
type Broken = [u64; Rule::ALL.len()];
