//! Who notifies: congestion points, and receivers, proxies and ingress PEs that send CNPs.

use super::windows::{Windows, step_of};
use crate::record::PointRecord;
use fcn_node::watch::hashing::Seeded;
use fcn_wire::{Gist, Kind, Origin};
use std::collections::HashMap;
use std::net::IpAddr;

/// What part of the notifiers leaves at a time.
const BATCH: usize = 16;

/// A notifier.
#[derive(Clone, Debug)]
pub struct Point {
    address: IpAddr,
    origin: Origin,
    trusted: Option<bool>,
    /// When it was last used, by the table's ticks; 0 for a free slot.
    used: u64,
    flows: u64,
    windows: Windows,
    kinds: [u64; Kind::ALL.len()],
    level_max: Option<u8>,
    queue_max: Option<u32>,
    findings: u64,
    first_seen: u64,
    last_seen: u64,
}

impl Point {
    fn new(notification: &Gist, trusted: Option<bool>) -> Self {
        Self {
            address: notification.notifier,
            origin: notification.origin,
            trusted,
            used: 0,
            flows: 0,
            windows: Windows::default(),
            kinds: [0; Kind::ALL.len()],
            level_max: None,
            queue_max: None,
            findings: 0,
            first_seen: u64::MAX,
            last_seen: 0,
        }
    }

    #[inline]
    fn is(&self, notification: &Gist) -> bool {
        self.is_that(notification.notifier, notification.origin)
    }

    #[inline]
    fn is_that(&self, address: IpAddr, origin: Origin) -> bool {
        self.used > 0 && self.address == address && self.origin == origin
    }

    /// Counts a notification of it.
    #[inline]
    pub fn count(&mut self, at: u64, notification: &Gist) {
        self.windows.add(step_of(at));
        if let Some(count) = self.kinds.get_mut(notification.kind as usize) {
            *count += 1;
        }
        self.level_max = self.level_max.max(notification.level);
        self.queue_max = self.queue_max.max(notification.deepest_queue);
        self.first_seen = self.first_seen.min(at);
        self.last_seen = self.last_seen.max(at);
    }

    /// Counts a flow that it tells to slow down.
    pub const fn suffers(&mut self) {
        self.flows += 1;
    }

    /// Counts findings about its notifications.
    pub const fn blame(&mut self, findings: u64) {
        self.findings += findings;
    }

    /// Whether the list of those who may notify has it; `None` where there is no list.
    #[must_use]
    pub const fn trusted(&self) -> Option<bool> {
        self.trusted
    }

    fn record(&self, now: u64) -> PointRecord {
        let of = |kind: Kind| self.kinds.get(kind as usize).copied().unwrap_or(0);
        PointRecord {
            notifier: self.address,
            origin: self.origin,
            trusted: self.trusted,
            flows: self.flows,
            rate_now: self.windows.rate_now(now),
            rate_1s: self.windows.rate_1s(now),
            rate_10s: self.windows.rate_10s(now),
            rate_peak: self.windows.peak(),
            total: self.kinds.iter().sum(),
            cnp: of(Kind::Cnp),
            fast_cnp_1: of(Kind::FastCnp1),
            fast_cnp_2: of(Kind::FastCnp2),
            proxy_cn: of(Kind::ProxyCn),
            wan_fcn: of(Kind::WanFcn),
            level_max: self.level_max,
            queue_max: self.queue_max,
            findings: self.findings,
            first_seen: self.first_seen,
            last_seen: self.last_seen,
        }
    }
}

/// Notifiers, by address and what they are. Past the limit those leave first that have notified longest ago.
#[derive(Debug)]
pub struct Points {
    places: HashMap<(IpAddr, bool), u32, Seeded>,
    slots: Vec<Point>,
    free: Vec<u32>,
    ticks: u64,
    limit: usize,
    evicted: u64,
}

fn key(address: IpAddr, origin: Origin) -> (IpAddr, bool) {
    (address, origin == Origin::Switch)
}

impl Points {
    /// At most `limit` notifiers; 0 counts as 1.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            places: HashMap::default(),
            slots: Vec::new(),
            free: Vec::new(),
            ticks: 0,
            limit: limit.clamp(1, u32::MAX as usize),
            evicted: 0,
        }
    }

    /// The entry of who sent `notification`, and its place. It may be where it was last, at `hint`, so that nobody need
    /// search. A new one asks `trusted` whether it may notify.
    #[inline]
    pub fn entry(
        &mut self,
        hint: u32,
        notification: &Gist,
        trusted: impl FnOnce() -> Option<bool>,
    ) -> (u32, &mut Point) {
        let place = match self.slots.get(hint as usize) {
            Some(point) if point.is(notification) => hint,
            _ => self.search(notification, trusted),
        };
        self.ticks += 1;
        let point = &mut self.slots[place as usize];
        point.used = self.ticks;
        (place, point)
    }

    #[cold]
    fn search(&mut self, notification: &Gist, trusted: impl FnOnce() -> Option<bool>) -> u32 {
        let key = key(notification.notifier, notification.origin);
        if let Some(place) = self.places.get(&key) {
            return *place;
        }
        if self.places.len() >= self.limit {
            self.evict();
        }
        let point = Point::new(notification, trusted());
        let place = match self.free.pop() {
            Some(place) => {
                self.slots[place as usize] = point;
                place
            }
            None => {
                self.slots.push(point);
                (self.slots.len() - 1) as u32
            }
        };
        self.places.insert(key, place);
        place
    }

    fn evict(&mut self) {
        let used = self.slots.iter().map(|point| point.used).zip(0..);
        let mut ages: Vec<(u64, u32)> = used.filter(|(used, _)| *used > 0).collect();
        let batch = ages.len().div_ceil(BATCH);
        if batch < ages.len() {
            ages.select_nth_unstable(batch);
        }
        for (_, place) in ages.into_iter().take(batch) {
            let point = &mut self.slots[place as usize];
            point.used = 0;
            self.places.remove(&key(point.address, point.origin));
            self.free.push(place);
            self.evicted += 1;
        }
    }

    /// Says that a row is gone that `address` had notified about; it may be where it was last, at `hint`.
    pub fn forget_flow(&mut self, hint: u32, address: IpAddr, origin: Origin) {
        let there =
            (self.slots.get(hint as usize)).is_some_and(|point| point.is_that(address, origin));
        let place = if there {
            Some(hint)
        } else {
            self.places.get(&key(address, origin)).copied()
        };
        if let Some(point) = place.and_then(|place| self.slots.get_mut(place as usize)) {
            // A notifier that had to go and has come back does not know the flows of before.
            point.flows = point.flows.saturating_sub(1);
        }
    }

    /// The notifiers kept, as they are shown at `now`.
    pub fn records(&self, now: u64) -> impl Iterator<Item = PointRecord> {
        let kept = self.slots.iter().filter(|point| point.used > 0);
        kept.map(move |point| point.record(now))
    }

    /// Notifiers kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Notifiers gone.
    #[must_use]
    pub const fn evicted(&self) -> u64 {
        self.evicted
    }
}
