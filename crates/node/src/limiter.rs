//! Limits on notifications that a node sends or processes: a minimum interval for each flow, and a
//! rate with bursts for all flows together.

use core::hash::Hash;
use core::time::Duration;
use fcn_observe::data::FlowKey;
use fcn_observe::table::Table;
use fcn_observe::time::{Time, nanos};

/// Limits on notifications (draft-xiao-rtgwg-rocev2-fast-cnp section 5,
/// draft-xiao-rtgwg-proxy-congestion-notification section 6 and draft-he-rtgwg-wan-fcn section 6
/// recommend limits; the numbers are ours).
///
/// A congestion point counts the notifications that it sends. A proxy node or an ingress PE counts
/// those that it processes, and the interval is that between its CNPs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Minimum time between two notifications about one flow. Default 50 µs, DCQCN's interval
    /// between CNPs.
    pub interval: Duration,
    /// Notifications per second about all flows together. Default 1 000 000.
    pub per_second: u32,
    /// Maximum burst of notifications after a pause. Default 1000.
    pub burst: u32,
    /// Maximum number of flows remembered; beyond that, the flow notified about longest ago is
    /// forgotten. Default 65 536.
    pub flows: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            interval: Duration::from_micros(50),
            per_second: 1_000_000,
            burst: 1000,
            flows: 65_536,
        }
    }
}

/// Reason why a notification may not be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suppressed {
    /// The last notification about this flow was too recent.
    Flow,
    /// All flows together have used up the rate.
    Total,
}

/// Credit for one notification: at a rate of one per second, a nanosecond earns 1.
const ONE: u64 = 1_000_000_000;

/// Token bucket for notifications about all flows together.
#[derive(Debug)]
pub(crate) struct Bucket {
    per_second: u64,
    capacity: u64,
    credit: u64,
    at: Time,
}

impl Bucket {
    pub(crate) fn new(limits: &Limits) -> Self {
        let capacity = u64::from(limits.burst).saturating_mul(ONE);
        Self {
            per_second: limits.per_second.into(),
            capacity,
            credit: capacity,
            at: Time::default(),
        }
    }

    /// Returns true if one more is allowed now; it is then counted.
    pub(crate) fn admit(&mut self, now: Time) -> bool {
        let earned = nanos(now.saturating_sub(self.at)).saturating_mul(self.per_second);
        self.credit = self.credit.saturating_add(earned).min(self.capacity);
        self.at = self.at.max(now);
        let left = self.credit.checked_sub(ONE);
        self.credit = left.unwrap_or(self.credit);
        left.is_some()
    }
}

/// Minimum time between two notifications about one flow.
///
/// Remembers a limited number of flows. Beyond that, the flow notified about longest ago is
/// forgotten, and may be notified about too early; then only the total limit applies.
#[derive(Debug)]
pub struct Interval<K: Hash + Eq + Copy = FlowKey> {
    interval: Duration,
    last: Table<K, Time>,
    evicted: u64,
}

impl<K: Hash + Eq + Copy> Interval<K> {
    /// Creates an interval without flows.
    #[must_use]
    pub fn new(interval: Duration, flows: usize) -> Self {
        Self {
            interval,
            last: Table::new(flows),
            evicted: 0,
        }
    }

    /// True if the interval since the last notification about `flow` has passed.
    #[must_use]
    pub fn is_due(&self, now: Time, flow: K) -> bool {
        self.last
            .peek(&flow)
            .is_none_or(|last| now.saturating_sub(*last) >= self.interval)
    }

    /// Records that a notification is sent now.
    pub fn sent(&mut self, now: Time, flow: K) {
        if self.last.put(flow, now).is_some() {
            self.evicted += 1;
        }
    }

    /// Returns true if a notification about `flow` may be sent now; it is then recorded as sent.
    pub fn admit(&mut self, now: Time, flow: K) -> bool {
        let due = self.is_due(now, flow);
        if due {
            self.sent(now, flow);
        }
        due
    }

    /// Returns the number of flows that were forgotten because the table was full.
    #[must_use]
    pub const fn evicted(&self) -> u64 {
        self.evicted
    }
}

/// Applies the limits to notifications to be sent.
#[derive(Debug)]
pub struct Limiter<K: Hash + Eq + Copy = FlowKey> {
    flows: Interval<K>,
    total: Bucket,
}

impl<K: Hash + Eq + Copy> Limiter<K> {
    /// Creates a limiter that starts with a full burst.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            flows: Interval::new(limits.interval, limits.flows),
            total: Bucket::new(&limits),
        }
    }

    /// Checks if a notification about `flow` may be sent now; if so, it is recorded as sent.
    ///
    /// # Errors
    /// The limit that forbids it. A notification that is not sent uses up nothing.
    pub fn admit(&mut self, now: Time, flow: K) -> Result<(), Suppressed> {
        if !self.flows.is_due(now, flow) {
            return Err(Suppressed::Flow);
        }
        if !self.total.admit(now) {
            return Err(Suppressed::Total);
        }
        self.flows.sent(now, flow);
        Ok(())
    }

    /// Returns the number of flows that were forgotten because the table was full.
    #[must_use]
    pub const fn evicted(&self) -> u64 {
        self.flows.evicted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fcn_wire::Qp;
    use proptest::prelude::*;
    use std::net::IpAddr;

    fn flow(n: u32) -> FlowKey {
        FlowKey {
            sender: IpAddr::from([10, 0, 0, 1]),
            receiver: IpAddr::from([10, 0, 0, 2]),
            receiver_qp: Qp::truncate(n),
        }
    }

    fn micros(n: u64) -> Time {
        Time::from_nanos(n * 1000)
    }

    #[test]
    fn a_flow_waits_for_its_interval_to_the_nanosecond() {
        let mut limiter = Limiter::new(Limits::default());
        let t = |nanos| Time::from_nanos(nanos);
        let steps = [
            (t(7), flow(1), Ok(())),
            (t(7), flow(2), Ok(())),
            (t(50_006), flow(1), Err(Suppressed::Flow)),
            (t(3), flow(1), Err(Suppressed::Flow)),
            (t(50_007), flow(1), Ok(())),
            (t(50_008), flow(1), Err(Suppressed::Flow)),
        ];
        for (now, flow, want) in steps {
            assert_eq!(limiter.admit(now, flow), want, "{now:?}");
        }
    }

    #[test]
    fn a_burst_is_admitted_at_once_and_then_the_rate_applies() {
        let limits = Limits {
            per_second: 1_000_000,
            burst: 3,
            interval: Duration::ZERO,
            ..Limits::default()
        };
        let mut limiter = Limiter::new(limits);
        let mut admit = |now| limiter.admit(now, flow(1)).is_ok();
        assert_eq!([0; 4].map(|_| admit(micros(5))), [true, true, true, false]);
        assert_eq!(
            [0; 2].map(|_| admit(Time::from_nanos(5_999))),
            [false, false]
        );
        assert_eq!([0; 2].map(|_| admit(micros(6))), [true, false]);
        // A long pause earns only one burst.
        assert_eq!(
            [0; 4].map(|_| admit(micros(1_000_000))),
            [true, true, true, false]
        );
    }

    #[test]
    fn total_limit_does_not_start_a_flows_interval() {
        let limits = Limits {
            per_second: 1_000_000,
            burst: 1,
            ..Limits::default()
        };
        let mut limiter = Limiter::new(limits);
        assert_eq!(limiter.admit(micros(0), flow(1)), Ok(()));
        assert_eq!(limiter.admit(micros(0), flow(2)), Err(Suppressed::Total));
        assert_eq!(limiter.admit(micros(1), flow(2)), Ok(()));
    }

    #[test]
    fn nothing_is_sent_without_a_burst() {
        let mut limiter = Limiter::new(Limits {
            burst: 0,
            ..Limits::default()
        });
        assert_eq!(limiter.admit(micros(9), flow(1)), Err(Suppressed::Total));
    }

    #[test]
    fn a_full_table_forgets_the_flow_notified_about_longest_ago() {
        let mut limiter = Limiter::new(Limits {
            flows: 2,
            ..Limits::default()
        });
        assert!(limiter.admit(micros(0), flow(1)).is_ok());
        assert!(limiter.admit(micros(1), flow(2)).is_ok());
        // A query about flow 1 does not refresh it.
        assert_eq!(limiter.admit(micros(2), flow(1)), Err(Suppressed::Flow));
        assert_eq!(limiter.evicted(), 0);
        assert!(limiter.admit(micros(3), flow(3)).is_ok());
        assert_eq!(limiter.evicted(), 1);
        assert_eq!(limiter.admit(micros(4), flow(2)), Err(Suppressed::Flow));
        assert!(limiter.admit(micros(4), flow(1)).is_ok());
        assert_eq!(limiter.evicted(), 2);
    }

    proptest! {
        #[test]
        fn neither_limit_is_ever_exceeded(steps in proptest::collection::vec((0u64..30_000, 0u32..4), 1..200)) {
            let limits = Limits { per_second: 50_000, burst: 5, ..Limits::default() };
            let mut limiter = Limiter::new(limits);
            let (mut now, mut sent) = (0, Vec::<(u64, u32)>::new());
            for (step, qp) in steps {
                now += step;
                if limiter.admit(Time::from_nanos(now), flow(qp)).is_ok() {
                    sent.push((now, qp));
                }
            }
            for (i, (from, qp)) in sent.iter().enumerate() {
                for (n, (to, other)) in sent[i..].iter().enumerate().skip(1) {
                    prop_assert!(qp != other || to - from >= 50_000);
                    // n + 1 of them in this time.
                    prop_assert!((n as u64 + 1) * ONE <= (to - from) * 50_000 + 5 * ONE);
                }
            }
        }
    }
}
