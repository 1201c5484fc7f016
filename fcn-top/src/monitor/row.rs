//! One row: what one sender's QP or flow is told by one kind of notification.
//!
//! A row takes 768 octets, and a notification touches five or six cache lines of it. Where rows are kept is in
//! `rows.rs`.

use super::gaps::Gaps;
use super::series::{Burst, Series, Told};
use super::windows::{Step, Windows};
use crate::record::{QpRecord, QpSide, Resolved};
use fcn_observe::RowKey;
use fcn_observe::fetch::fetch;
pub use fcn_observe::rules::NOTIFIERS;
use fcn_observe::rules::{Duties, NotifierRate};
use fcn_wire::{Gist, Kind, Origin, Qp};
use std::net::IpAddr;

/// Who has notified, and how often.
#[derive(Clone, Debug)]
pub struct Notifier {
    rate: NotifierRate,
    /// Notifications.
    pub total: u64,
    /// Where the table of notifiers had it last.
    pub point: u32,
    /// Source of the notifications.
    pub address: IpAddr,
    /// Receiver or switch.
    pub origin: Origin,
}

impl Notifier {
    const fn of(notification: &Gist) -> Self {
        Self {
            address: notification.notifier,
            origin: notification.origin,
            point: u32::MAX,
            total: 0,
            rate: NotifierRate::NEW,
        }
    }

    #[inline]
    fn is(&self, notification: &Gist) -> bool {
        self.address == notification.notifier && self.origin == notification.origin
    }
}

/// How deep a queue was, where that is known. IOAM has no deepest one: all ones say that a node does not tell (RFC 9197
/// section 4.4.2), so that one more fits into 32 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Depth(u32);

impl Depth {
    const fn of(depth: Option<u32>) -> Self {
        match depth {
            Some(depth) => Self(depth.saturating_add(1)),
            None => Self(0),
        }
    }

    const fn get(self) -> Option<u32> {
        self.0.checked_sub(1)
    }
}

/// What a row has to say about a notification that it has counted.
#[derive(Debug)]
pub struct Counted<'a> {
    /// Who it came from; `None` where there are too many to tell apart.
    pub notifier: Option<&'a mut Notifier>,
    /// Whether that notifier notifies faster than the rate limit.
    pub too_fast: bool,
}

/// What one sender's QP or flow is told by one kind of notification.
///
/// The fields that every notification touches come first and lie in as few cache lines as they can: with many rows,
/// fetching those is what a notification costs.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Row {
    key: RowKey,
    total: u64,
    last_seen: u64,
    generation: u32,
    main: Notifier,
    burst: Burst,
    windows: Windows,
    first_seen: u64,
    gaps: Gaps,
    queue: Depth,
    queue_max: Depth,
    series: Series<Told>,
    rare: Option<Box<Rare>>,
}

/// What many rows never need.
#[derive(Clone, Debug, Default)]
struct Rare {
    level: Option<u8>,
    level_max: Option<u8>,
    icrc_bad: u64,
    findings: u64,
    /// Notifiers that came later than the row's first one, in their order; at most three.
    others: Vec<Notifier>,
    /// Notifications of those that are not told apart.
    beyond: u64,
    /// The interfaces that notifications were seen on, a bit each, where there are several; the last bit is for all from 63 on.
    seen_on: u64,
    /// Whom notifications were sent to, where that is not the sender.
    told: Option<IpAddr>,
}

impl Row {
    /// A row for `notification`, not counted yet; the `generation` of its place.
    #[must_use]
    pub fn new(key: RowKey, notification: &Gist, generation: u32) -> Self {
        Self {
            key,
            total: 0,
            last_seen: 0,
            generation,
            main: Notifier::of(notification),
            gaps: Gaps::default(),
            burst: Burst::default(),
            series: Series::new(),
            windows: Windows::default(),
            first_seen: u64::MAX,
            queue: Depth::default(),
            queue_max: Depth::default(),
            rare: None,
        }
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Counts a notification about this row at `at`, which is in `step`; the limit on one notifier's is `rate` a second, 0 for none.
    #[inline]
    pub fn count(
        &mut self,
        (at, step): (u64, Step),
        notification: &Gist,
        rate: u32,
    ) -> Counted<'_> {
        if self.total > 0 {
            self.gaps.add(at.abs_diff(self.last_seen));
        }
        self.total += 1;
        // Packets of several interfaces need not come in order.
        if at < self.last_seen || self.total == 1 {
            self.first_seen = self.first_seen.min(at);
        }
        self.last_seen = self.last_seen.max(at);
        self.windows.add(step);
        self.series.add(at, self.burst.tell(at));
        if notification.sender != Some(notification.told) {
            self.rare().told = Some(notification.told);
        }
        if notification.level.is_some() {
            let rare = self.rare();
            rare.level = notification.level;
            rare.level_max = rare.level_max.max(rare.level);
        }
        if notification.kind == Kind::FastCnp2 {
            self.queue = Depth::of(notification.deepest_queue);
            self.queue_max = self.queue_max.max(self.queue);
        }
        let limited = Duties::of(notification.kind).is_some();
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
        notifier.total += 1;
        let too_fast = limited && notifier.rate.exceeds(at, rate);
        Counted {
            notifier: Some(notifier),
            too_fast,
        }
    }

    /// Has the parts fetched from memory that [`count`](Self::count) is going to touch, whenever it is.
    #[inline]
    pub fn fetch(&self) {
        fetch(&self.total);
        fetch(&self.main);
        self.windows.fetch();
        fetch(&self.gaps);
    }

    /// Takes in that a notification was seen on that interface, be it counted or not.
    pub fn seen_on(&mut self, interface: u32) {
        self.rare().seen_on |= 1 << interface.min(u64::BITS - 1);
    }

    /// The interfaces that notifications were seen on, where there are several to be seen on.
    pub fn interfaces(&self) -> impl Iterator<Item = u32> {
        let seen = self.rare.as_ref().map_or(0, |rare| rare.seen_on);
        (0..u64::BITS).filter(move |number| seen >> number & 1 == 1)
    }

    /// Has the parts fetched that it touches at `at` only. Reads the row.
    #[inline]
    pub fn fetch_at(&self, at: u64) {
        self.gaps.fetch_counter(at.abs_diff(self.last_seen));
        self.series.fetch_step(at);
    }

    /// Counts findings about a notification of this row.
    pub fn blame(&mut self, findings: u64, icrc_bad: bool) {
        let rare = self.rare();
        rare.findings += findings;
        rare.icrc_bad += u64::from(icrc_bad);
    }

    /// What it is about.
    #[must_use]
    pub const fn key(&self) -> &RowKey {
        &self.key
    }

    /// Notifications.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Where the last one was sent.
    #[must_use]
    pub fn told(&self) -> IpAddr {
        let told = self.rare.as_ref().and_then(|rare| rare.told);
        told.unwrap_or_else(|| self.key.told_or_sender())
    }

    /// How often its place was given to another row before.
    #[must_use]
    pub const fn generation(&self) -> u32 {
        self.generation
    }

    /// Notifications over time.
    #[must_use]
    pub const fn series(&self) -> &Series<Told> {
        &self.series
    }

    /// The notifiers told apart, in the order that they came.
    pub fn notifiers(&self) -> impl Iterator<Item = &Notifier> {
        let others = self.rare.iter().flat_map(|rare| &rare.others);
        core::iter::once(&self.main).chain(others)
    }

    /// Notifications a second from the first to the last: so many gaps in that time.
    fn rate_mean(&self) -> Option<f64> {
        let span = self.last_seen.saturating_sub(self.first_seen);
        (span > 0).then(|| self.total.saturating_sub(1) as f64 * 1e9 / span as f64)
    }

    /// The row as it is shown at `now`, as far as it knows, where packets were watched `since`; the caller adds what others
    /// know.
    #[must_use]
    pub fn record(&self, now: u64, since: u64) -> QpRecord {
        // Of several with the same count, the one that came first.
        let main = self.notifiers().fold(&self.main, |most, other| {
            if other.total > most.total {
                other
            } else {
                most
            }
        });
        let none = Rare::default();
        let rare = self.rare.as_deref().unwrap_or(&none);
        let (qp, qp_side) = self.key.qp().unzip();
        let [gap_p50, gap_p90, gap_p99] = self.gaps.percentiles([50, 90, 99]);
        let number = |side| qp.filter(|_| qp_side == Some(side)).map(Qp::get);
        let sender_qp = number(QpSide::Sender);
        QpRecord {
            sender: self.key.sender(),
            qp: qp.map(Qp::get),
            qp_side,
            kind: self.key.kind(),
            origin: main.origin,
            notifier: main.address,
            notifiers: 1 + rare.others.len() as u32 + u32::from(rare.beyond > 0),
            told: self.told(),
            flow_label: self.key.flow_label(),
            sender_qp,
            sender_qp_from: sender_qp.map(|_| Resolved::Packet),
            receiver: self.key.receiver(),
            receiver_qp: number(QpSide::Receiver),
            interface: None,
            rate_now: self.windows.rate_now(now, since),
            rate_1s: self.windows.rate_1s(now, since),
            rate_10s: self.windows.rate_10s(now, since),
            rate_mean: self.rate_mean(),
            rate_peak: self.windows.peak(),
            total: self.total,
            gap_min: self.gaps.min(),
            gap_p50,
            gap_p90,
            gap_p99,
            level: rare.level,
            level_max: rare.level_max,
            queue: self.queue.get(),
            queue_max: self.queue_max.get(),
            ce_share: None,
            data_rate: None,
            data_packets: None,
            change_1ms: None,
            change_10ms: None,
            measured: 0,
            verdict: None,
            evidence: None,
            first_seen: self.first_seen,
            last_seen: self.last_seen,
            icrc_bad: rare.icrc_bad,
            findings: rare.findings,
        }
    }
}

impl Rare {
    /// The entry of who sent `notification`, new where there is room for it.
    #[cold]
    fn notifier(&mut self, notification: &Gist) -> Option<&mut Notifier> {
        let others = &mut self.others;
        let place = match others.iter().position(|other| other.is(notification)) {
            Some(place) => place,
            None if others.len() + 1 < NOTIFIERS => {
                others.push(Notifier::of(notification));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_small_and_what_is_touched_lies_together() {
        assert_eq!(size_of::<Row>(), 768);
        let lines = [
            core::mem::offset_of!(Row, main),
            core::mem::offset_of!(Row, windows),
            core::mem::offset_of!(Row, gaps),
        ];
        assert_eq!(lines, [64, 128, 256]);
    }

    #[test]
    fn a_queue_may_be_empty_or_unknown() {
        for depth in [None, Some(0), Some(1), Some(u32::MAX - 1)] {
            assert_eq!(Depth::of(depth).get(), depth);
        }
        assert!(Depth::of(Some(0)) > Depth::of(None));
    }
}
