//! Notifiers: congestion points, and receivers, proxies and ingress PEs that send CNPs.

use super::series::{Series, Sum};
use super::windows::Windows;
use crate::record::{Maker, PointRecord};
use crate::tables::Detail;
use fcn_observe::Target;
use fcn_observe::bounded::{Bounded, Slot};
use fcn_wire::{Kind, Notification, Origin};
use foldhash::fast::RandomState;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

/// Notifications of a notifier in one step of time.
#[derive(Clone, Copy, Debug, Default)]
struct NotifierStep {
    /// Number of notifications.
    count: u32,
    /// Deepest queue reported by them.
    queue: u32,
    /// Highest congestion level.
    level: u8,
}

impl Sum for NotifierStep {
    #[inline]
    fn and(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_add(other.count),
            queue: self.queue.max(other.queue),
            level: self.level.max(other.level),
        }
    }
}

/// Roles of a notifier according to each of its notifications, because evidence comes and goes.
///
/// [`Unknown`](Origin::Unknown) means that it is not the flow's receiver, so it is consistent with
/// every role except receiver.
#[derive(Clone, Copy, Debug, Default)]
pub struct Roles([u32; Origin::ALL.len()]);

impl Roles {
    #[inline]
    pub fn add(&mut self, origin: Origin) {
        if let Some(count) = self.0.get_mut(origin as usize) {
            *count = count.saturating_add(1);
        }
    }

    /// Returns its role according to most of them.
    pub fn most(&self) -> Origin {
        let mut counts = self.0;
        let count = |origin: &Origin| self.0[*origin as usize];
        let others = [Origin::IngressPe, Origin::Proxy, Origin::Switch];
        if let Some(other) = others.into_iter().max_by_key(count)
            && count(&other) > 0
        {
            let unknown = std::mem::take(&mut counts[Origin::Unknown as usize]);
            counts[other as usize] = count(&other).saturating_add(unknown);
        }
        let most = Origin::ALL.into_iter().zip(counts).rev();
        let most = most.max_by_key(|(_, count)| *count);
        most.map_or(Origin::Unknown, |(origin, _)| origin)
    }
}

/// A notifier.
#[derive(Clone, Debug)]
pub struct Notifier {
    address: IpAddr,
    roles: Roles,
    /// True if it is on the list of trusted notifiers; `None` without a list.
    pub trusted: Option<bool>,
    windows: Windows,
    series: Series<NotifierStep>,
    kinds: [u64; Kind::ALL.len()],
    level_max: Option<u8>,
    queue_max: Option<u32>,
    findings: u64,
    malformed: u64,
    /// Notifications that are samples, each counted as one.
    samples: u64,
    first_seen: u64,
    last_seen: u64,
}

impl Notifier {
    fn new(address: IpAddr, trusted: Option<bool>) -> Self {
        Self {
            address,
            roles: Roles::default(),
            trusted,
            windows: Windows::default(),
            series: Series::default(),
            kinds: [0; Kind::ALL.len()],
            level_max: None,
            queue_max: None,
            findings: 0,
            malformed: 0,
            samples: 0,
            first_seen: u64::MAX,
            last_seen: 0,
        }
    }

    /// Counts a notification from it at `at`, or a sample of one.
    #[inline]
    pub fn count(&mut self, at: u64, notification: &Notification, is_sample: bool) {
        self.roles.add(notification.origin);
        self.samples += u64::from(is_sample);
        self.windows.add(at);
        let step = NotifierStep {
            count: 1,
            queue: notification.deepest_queue.unwrap_or(0),
            level: notification.level.unwrap_or(0),
        };
        self.series.add(at, step);
        if let Some(count) = self.kinds.get_mut(notification.kind as usize) {
            *count += 1;
        }
        if notification.level.is_some() {
            self.level_max = self.level_max.max(notification.level);
        }
        if notification.deepest_queue.is_some() {
            self.queue_max = self.queue_max.max(notification.deepest_queue);
        }
        self.seen(at);
    }

    /// Counts a notification from it at `at` that cannot be decoded.
    pub fn count_malformed(&mut self, at: u64, origin: Origin) {
        self.roles.add(origin);
        self.malformed += 1;
        self.seen(at);
    }

    fn seen(&mut self, at: u64) {
        self.first_seen = self.first_seen.min(at);
        self.last_seen = self.last_seen.max(at);
    }

    /// Counts findings about its notifications.
    pub const fn count_findings(&mut self, findings: u64) {
        self.findings += findings;
    }

    fn record(&self, now: u64, since: u64, summary: Option<&RowSummary>) -> PointRecord {
        let total = |kind: Kind| self.kinds.get(kind as usize).copied().unwrap_or(0);
        // Samples from several capture points must not be added up, and each point may have had all
        // packets.
        let all_seen = |rate: Option<f64>| rate.filter(|_| self.samples == 0);
        PointRecord {
            notifier: self.address,
            notifier_role: self.roles.most(),
            made_by: (total(Kind::Cnp) > 0)
                .then(|| summary.map_or(Maker::Unknown, |told| Maker::of(&told.makers, 0))),
            trusted: self.trusted,
            flows: summary.map_or(0, |told| told.aims.len() as u64),
            flows_at_least: summary.map_or(0, |told| told.total) < self.kinds.iter().sum(),
            rate_now: all_seen(self.windows.rate_now(now, since)),
            rate_1s: all_seen(self.windows.rate_1s(now, since)),
            rate_10s: all_seen(self.windows.rate_10s(now, since)),
            rate_peak: all_seen(Some(self.windows.peak())),
            total: self.kinds.iter().sum(),
            samples: self.samples,
            cnp: total(Kind::Cnp),
            fast_cnp_1: total(Kind::FastCnp1),
            fast_cnp_2: total(Kind::FastCnp2),
            proxy_cn: total(Kind::ProxyCn),
            wan_fcn: total(Kind::WanFcn),
            level_max: self.level_max,
            queue_max: self.queue_max,
            malformed: self.malformed,
            findings: self.findings,
            first_seen: self.first_seen,
            last_seen: self.last_seen,
        }
    }
}

/// Data about a notifier from its rows.
#[derive(Debug, Default)]
pub struct RowSummary {
    /// Targets that it told to slow down.
    pub aims: HashSet<Target, RandomState>,
    /// Number of notifications in its rows.
    pub total: u64,
    /// Origins of its CNPs, by index in [`Maker::ALL`].
    pub makers: [u32; Maker::ALL.len()],
}

/// Data from the rows, by notifier.
pub type ByNotifier = HashMap<IpAddr, RowSummary, RandomState>;

/// Notifiers by address. Beyond the limit, those that have not notified for the longest time are
/// evicted.
#[derive(Debug)]
pub struct Notifiers {
    pub table: Bounded<IpAddr, Notifier>,
    /// Counts notifications, in place of a clock.
    tick: u64,
}

impl Notifiers {
    /// Keeps at most `limit` notifiers; 0 counts as 1.
    pub fn new(limit: usize) -> Self {
        Self {
            table: Bounded::new(limit),
            tick: 0,
        }
    }

    /// Returns the entry of the notifier with that address, and its slot. Looks at slot `hint`
    /// first to save a search. For a new entry, `trusted` tells whether it may notify.
    #[inline]
    pub fn entry(
        &mut self,
        hint: u32,
        address: IpAddr,
        trusted: impl FnOnce() -> Option<bool>,
    ) -> (u32, &mut Notifier) {
        self.tick += 1;
        let (slot, notifier) =
            self.table
                .get_or_insert_near(Slot::new(hint), address, self.tick, || {
                    Notifier::new(address, trusted())
                });
        (slot.get(), notifier)
    }

    /// Returns the notifiers as of `now`, with packets captured since `since`.
    pub fn records(
        &self,
        now: u64,
        since: u64,
        told: ByNotifier,
    ) -> impl Iterator<Item = PointRecord> {
        let notifiers = self.table.iter();
        notifiers.map(move |(_, notifier)| notifier.record(now, since, told.get(&notifier.address)))
    }

    /// Returns the time series of one notifier.
    pub fn detail(&self, address: IpAddr, now: u64) -> Option<Detail> {
        let notifier = self.table.get(&address)?;
        let none = Series::<u32>::default();
        let (start, step, sent, _) = notifier.series.side_by_side(&none, now);
        let course = |part: fn(&NotifierStep) -> f32| sent.iter().map(part).collect();
        Some(Detail {
            until: now,
            start,
            step,
            notifications: course(|sent| sent.count as f32),
            queue: course(|sent| sent.queue as f32),
            level: course(|sent| sent.level.into()),
            ..Detail::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_role_is_that_of_most_notifications() {
        use Origin::{Ambiguous, IngressPe, Proxy, Receiver, Switch, Unknown};
        let mut roles = Roles::default();
        roles.add(Ambiguous);
        roles.add(Receiver);
        assert_eq!(roles.most(), Receiver, "as many of both");
        roles.add(Ambiguous);
        assert_eq!(roles.most(), Ambiguous);
        let most = |counts: &[(Origin, u32)]| {
            let mut roles = Roles::default();
            for (origin, count) in counts {
                roles.0[*origin as usize] = *count;
            }
            roles.most()
        };
        // A node that translated once is not the receiver of flows whose notifications the capture
        // lacks.
        for other in [Switch, Proxy, IngressPe] {
            assert_eq!(most(&[(other, 1), (Unknown, 99)]), other);
            assert_eq!(most(&[(other, 1), (Unknown, 99), (Receiver, 60)]), other);
            assert_eq!(most(&[(other, 1), (Unknown, 9), (Receiver, 60)]), Receiver);
        }
        assert_eq!(most(&[(Proxy, 2), (IngressPe, 1), (Unknown, 9)]), Proxy);
        // It also counts as a receiver if the flow is unknown: that is not evidence.
        assert_eq!(most(&[(Receiver, 1), (Unknown, 2)]), Unknown);
    }
}
