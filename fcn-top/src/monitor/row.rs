//! One row: notifications of one kind to one sender's QP or flow. `rows.rs` keeps the rows.

use super::notifiers::Roles;
use super::samples::{OneIn, Samples};
use super::series::{Burst, Bursts, Series};
use super::windows::{ENOUGH, Windows};
use crate::record::{QpRecord, QpSide, Resolved};
use fcn_observe::correlator::Topic;
use fcn_observe::gaps::Gaps;
use fcn_observe::origin::Tally;
use fcn_observe::path_order::PathOrder;
use fcn_observe::rules::NOTIFIERS;
use fcn_observe::rules::{Duties, NotifierRate};
use fcn_observe::{Class, RowKey};
use fcn_wire::{Kind, Notification, Qp};
use std::net::IpAddr;

/// Gaps are shown if at most one in this many notifications is out of order.
const MAX_LATE_RATIO: u64 = 100;
/// Maximum number of interfaces recorded for a row; further ones are omitted.
const MOST_SEEN_ON: usize = 64;

/// A notifier of a row, and its number of notifications.
#[derive(Clone, Debug)]
pub struct Notifier {
    rate: NotifierRate,
    /// Notifications.
    pub total: u64,
    /// Last known slot in the table of notifiers.
    pub point: u32,
    /// Source of the notifications.
    pub address: IpAddr,
    /// Its roles.
    roles: Roles,
}

impl Notifier {
    fn from_notification(notification: &Notification) -> Self {
        Self {
            address: notification.notifier,
            roles: Roles::default(),
            point: u32::MAX,
            total: 0,
            rate: NotifierRate::NEW,
        }
    }

    #[inline]
    fn is(&self, notification: &Notification) -> bool {
        self.address == notification.notifier
    }
}

/// Result of counting a notification.
#[derive(Debug)]
pub struct Counted<'a> {
    /// Its notifier; `None` if there are too many to distinguish.
    pub notifier: Option<&'a mut Notifier>,
    /// True if that notifier exceeds the rate limit.
    pub too_fast: bool,
}

/// Notifications of one kind to one sender's QP or flow.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Row {
    /// Notifications; samples count as the number they stand for.
    pub total: u64,
    last_seen: u64,
    /// Number of rows created before it, kept or not.
    pub serial: u32,
    main: Notifier,
    burst: Burst,
    windows: Windows,
    first_seen: u64,
    gaps: Gaps,
    queue: Option<u32>,
    queue_max: Option<u32>,
    /// Origin of the CNPs.
    pub makers: Tally,
    /// Data on their traffic classes and their flow.
    pub topic: Topic,
    /// Notifications over time.
    pub series: Series<Bursts>,
    rare: Option<Box<Rare>>,
}

/// Parts that many rows never need.
#[derive(Clone, Debug, Default)]
struct Rare {
    level: Option<u8>,
    level_max: Option<u8>,
    icrc_bad: u64,
    findings: u64,
    /// Notifications out of order: their distance from the previous ones is unknown.
    late: u64,
    /// Notifiers after the row's first one, in order of appearance; at most three.
    others: Vec<Notifier>,
    /// Notifications of further notifiers.
    beyond: u64,
    /// Interfaces that captured notifications, up to a limit. Empty as long as there is only the
    /// first one.
    seen_on: Vec<u32>,
    /// Sequence of capture points.
    order: PathOrder,
    /// Destination of notifications, if that is not the sender.
    destination: Option<IpAddr>,
    /// Notifications that are samples.
    samples: Samples,
}

impl Row {
    /// Creates a row for `notification`, not yet counted; the `serial`th of all.
    pub fn new(notification: &Notification, serial: u32) -> Self {
        Self {
            total: 0,
            last_seen: 0,
            serial,
            main: Notifier::from_notification(notification),
            gaps: Gaps::default(),
            burst: Burst::default(),
            series: Series::default(),
            windows: Windows::default(),
            first_seen: u64::MAX,
            queue: None,
            queue_max: None,
            makers: Tally::NEW,
            topic: Topic::default(),
            rare: None,
        }
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Counts a notification of this row at `at`, or a sample of one in that many; the limit on a
    /// single notifier is `rate` per second, 0 for none.
    #[inline]
    pub fn count(
        &mut self,
        at: u64,
        notification: &Notification,
        one_in: Option<OneIn>,
        rate: u32,
    ) -> Counted<'_> {
        let stands_for = one_in.map_or(1, OneIn::get);
        if let Some(one_in) = one_in {
            self.rare().samples.add(one_in);
        } else if self.total > 0 {
            match at.checked_sub(self.last_seen) {
                Some(gap) => self.gaps.add(gap),
                None => self.rare().late += 1,
            }
        }
        let is_first = self.total == 0;
        self.total = self.total.saturating_add(stands_for.into());
        // Packets of several interfaces need not arrive in order.
        if at < self.last_seen || is_first {
            self.first_seen = self.first_seen.min(at);
        }
        self.last_seen = self.last_seen.max(at);
        self.windows.add_some(at, stands_for);
        self.series.add(at, self.burst.count(at));
        if notification.sender != Some(notification.destination) {
            self.rare().destination = Some(notification.destination);
        }
        if notification.level.is_some() {
            let rare = self.rare();
            rare.level = notification.level;
            rare.level_max = rare.level_max.max(rare.level);
        }
        if notification.kind == Kind::FastCnp2 {
            self.queue = notification.deepest_queue;
            self.queue_max = self.queue_max.max(self.queue);
        }
        let limited = Duties::for_kind(notification.kind).is_some();
        let notifier = if self.main.is(notification) {
            Some(&mut self.main)
        } else {
            self.rare.get_or_insert_default().notifier(notification)
        };
        let Some(notifier) = notifier else {
            return Counted {
                notifier: None,
                too_fast: false,
            };
        };
        notifier.roles.add(notification.origin);
        notifier.total = notifier.total.saturating_add(stands_for.into());
        // Samples do not show the true rate.
        let too_fast = limited && one_in.is_none() && notifier.rate.exceeds(at, rate);
        Counted {
            notifier: Some(notifier),
            too_fast,
        }
    }

    /// Records that a notification was captured on that interface at `at`, whether counted or a
    /// copy.
    pub fn seen_on(&mut self, interface: u32, at: u64, is_copy: bool) {
        // Notifications counted without an interface were captured when there was only the first
        // one.
        let before = (self.total > 0).then_some(0);
        let rare = self.rare();
        let before = before.filter(|_| rare.seen_on.is_empty());
        for number in before.into_iter().chain([interface]) {
            if let Err(at) = rare.seen_on.binary_search(&number)
                && rare.seen_on.len() < MOST_SEEN_ON
            {
                rare.seen_on.insert(at, number);
            }
        }
        rare.order.see(interface, at, is_copy);
    }

    /// Returns the interfaces that captured notifications, if there are several interfaces.
    pub fn interfaces(&self) -> impl Iterator<Item = u32> {
        // If only the first interface captured any, nothing is recorded.
        let seen = self.rare.as_ref().map_or(&[][..], |rare| &rare.seen_on);
        let first = seen.is_empty().then_some(0);
        first.into_iter().chain(seen.iter().copied())
    }

    /// Returns the sequence of capture points, if there are several.
    pub fn path_order(&self) -> Option<&PathOrder> {
        self.rare.as_ref().map(|rare| &rare.order)
    }

    /// Counts findings about a notification of this row.
    pub fn count_findings(&mut self, findings: u64, icrc_bad: bool) {
        let rare = self.rare();
        rare.findings += findings;
        rare.icrc_bad += u64::from(icrc_bad);
    }

    /// Returns the destination of the last notification, in the row of that key.
    pub fn destination(&self, key: &RowKey) -> IpAddr {
        let destination = self.rare.as_ref().and_then(|rare| rare.destination);
        destination.unwrap_or_else(|| key.destination_or_sender())
    }

    /// Returns the distinguished notifiers, in order of appearance.
    pub fn notifiers(&self) -> impl Iterator<Item = &Notifier> {
        let others = self.rare.iter().flat_map(|rare| &rare.others);
        core::iter::once(&self.main).chain(others)
    }

    /// Returns the notifications that are samples.
    pub fn samples(&self) -> Option<&Samples> {
        let samples = self.rare.as_ref().map(|rare| &rare.samples);
        samples.filter(|samples| samples.count > 0)
    }

    /// Returns the mean rate per second from the first to the last notification: the number of gaps
    /// in that time.
    fn rate_mean(&self) -> Option<f64> {
        let span = self.last_seen.saturating_sub(self.first_seen);
        let first = match self.samples() {
            Some(samples) if samples.count < ENOUGH as u64 => return None,
            Some(samples) => samples.one_in(),
            None => 1.0,
        };
        (span > 0).then(|| (self.total as f64 - first) * 1e9 / span as f64)
    }

    /// Returns the row of that key as of `now`, from its own data, with packets captured since
    /// `since`; the caller adds the rest.
    pub fn record(&self, key: &RowKey, now: u64, since: u64) -> QpRecord {
        // Of several with the same count, the first to appear.
        let main = self.notifiers().fold(&self.main, |most, other| {
            if other.total > most.total {
                other
            } else {
                most
            }
        });
        let none = Rare::default();
        let rare = self.rare.as_deref().unwrap_or(&none);
        let (qp, qp_side) = key.qp().unzip();
        let samples = self.samples();
        // Each late one makes two gaps wrong: the one that it falls into, and its own. Between
        // samples there may be other packets.
        let in_order = samples.is_none() && rare.late.saturating_mul(MAX_LATE_RATIO) <= self.total;
        let [gap_p50, gap_p90, gap_p99] = if in_order {
            self.gaps.percentiles([50, 90, 99])
        } else {
            [None; 3]
        };
        let number = |side| qp.filter(|_| qp_side == Some(side)).map(Qp::get);
        let sender_qp = number(QpSide::Sender);
        let class = self.topic.last_class();
        let [rate_now, rate_1s, rate_10s] = match samples {
            Some(samples) => (self.windows).rates_of_samples(now, since, samples.one_in()),
            None => [
                self.windows.rate_now(now, since),
                self.windows.rate_1s(now, since),
                self.windows.rate_10s(now, since),
            ],
        };
        let all_seen = samples.map_or(0, |samples| self.total.saturating_sub(samples.sum));
        let interval = samples.map(Samples::interval);
        QpRecord {
            sender: key.sender(),
            qp: qp.map(Qp::get),
            qp_side,
            kind: key.kind(),
            notifier_role: main.roles.most(),
            notifier: main.address,
            notifiers: 1 + rare.others.len() as u32 + u32::from(rare.beyond > 0),
            destination: self.destination(key),
            flow_label: key.flow_label(),
            sender_qp,
            sender_qp_from: sender_qp.map(|_| Resolved::Packet),
            receiver: key.receiver(),
            receiver_qp: number(QpSide::Receiver),
            receiver_qp_from: number(QpSide::Receiver).map(|_| Resolved::Packet),
            interface: None,
            path: None,
            rate_now,
            rate_1s,
            rate_10s,
            rate_mean: self.rate_mean(),
            // The maximum of random samples overestimates the true maximum.
            rate_peak: samples.is_none().then(|| self.windows.peak()),
            total: self.total,
            total_low: interval.map(|(low, _)| low.saturating_add(all_seen)),
            total_high: interval.map(|(_, high)| high.saturating_add(all_seen)),
            sampled: samples.map(|samples| samples.one_in().round() as u64),
            gap_min: self.gaps.min().filter(|_| in_order),
            gap_p50,
            gap_p90,
            gap_p99,
            level: rare.level,
            level_max: rare.level_max,
            queue: self.queue,
            queue_max: self.queue_max,
            ce_share: None,
            dscp: class.map(Class::dscp),
            ecn: class.map(Class::ecn),
            vlan_priority: class.and_then(Class::priority),
            data_dscp: None,
            data_vlan_priority: None,
            class: self.topic.class_relation(None),
            data_rate: None,
            data_packets: None,
            data_sampled: None,
            change: None,
            measured: 0,
            verdict: None,
            evidence: None,
            advice: None,
            made_by: None,
            made_by_evidence: None,
            first_seen: self.first_seen,
            last_seen: self.last_seen,
            icrc_bad: rare.icrc_bad,
            findings: rare.findings,
        }
    }
}

impl Rare {
    /// Returns the entry of the notifier of `notification`, adding it if there is room.
    #[cold]
    fn notifier(&mut self, notification: &Notification) -> Option<&mut Notifier> {
        let others = &mut self.others;
        let place = match others.iter().position(|other| other.is(notification)) {
            Some(place) => place,
            None if others.len() + 1 < NOTIFIERS => {
                others.push(Notifier::from_notification(notification));
                others.len() - 1
            }
            None => {
                self.beyond += 1;
                return None;
            }
        };
        others.get_mut(place)
    }
}
