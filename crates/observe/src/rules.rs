//! Rules that a single packet cannot be shown to break
//! ([`Rule::MULTI_PACKET`](fcn_wire::Rule::MULTI_PACKET)): checking them takes several packets, or
//! lists of prefixes.

use crate::access;
use fcn_wire::pnc::Prefix;
use fcn_wire::{Kind, Notification, Rule, Subject};

/// Maximum number of notifiers per topic whose rates are checked; later ones are not judged.
pub const NOTIFIERS: usize = 4;
/// Default limit of the notifications per second that one notifier may send about one flow (the
/// drafts ask for a limit and leave its value open: see [`Duties::for_kind`]).
pub const FLOW_RATE: u32 = 20_000;
/// Time that a notification may come before it is due, in nanoseconds: congestion is notified in
/// bursts, and packets and their time stamps are delayed on the way.
pub const TOLERANCE: u64 = 1_000_000;
/// One second, in nanoseconds.
const SECOND: u32 = 1_000_000_000;

/// Requirements of the drafts on senders of one kind of notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duties {
    /// The rate of notifications about one flow is limited.
    pub rate: Rule,
    /// The source is on the list of permitted notifiers.
    pub source: Rule,
    /// The border of the domain passes no notification, neither in nor out.
    pub border: Rule,
}

impl Duties {
    /// Returns the rules for notifications of that kind; none for CNPs, which receivers send, from
    /// anywhere (draft-xiao-rtgwg-rocev2-fast-cnp section 5,
    /// draft-xiao-rtgwg-proxy-congestion-notification section 6, draft-he-rtgwg-wan-fcn section 6).
    #[inline]
    #[must_use]
    pub const fn for_kind(kind: Kind) -> Option<Self> {
        Some(match kind {
            Kind::Cnp => return None,
            Kind::FastCnp1 | Kind::FastCnp2 => Self {
                rate: Rule::FastCnpRate,
                source: Rule::FastCnpUntrusted,
                border: Rule::FastCnpBorder,
            },
            Kind::ProxyCn => Self {
                rate: Rule::ProxyCnRate,
                source: Rule::ProxyCnUntrusted,
                border: Rule::ProxyCnBorder,
            },
            Kind::WanFcn => Self {
                rate: Rule::WanFcnRate,
                source: Rule::WanFcnUntrusted,
                border: Rule::WanFcnBorder,
            },
        })
    }
}

impl Duties {
    /// Returns the rule about the rate. `None` if the subject names the flow's hosts but no QP, as
    /// for a flow that is not RoCE: several flows would count as one.
    #[must_use]
    pub const fn rate_about(&self, subject: &Subject) -> Option<Rule> {
        match subject {
            Subject::Flow {
                receiver_qp: None, ..
            } => None,
            _ => Some(self.rate),
        }
    }
}

/// Returns the rule that `notification` breaks if its source is not in `list`; an empty list
/// permits every source.
#[must_use]
pub fn untrusted(list: &[Prefix], notification: &Notification) -> Option<Rule> {
    let suspected = !list.is_empty() && !access::list_contains(list, notification.notifier);
    Some(
        Duties::for_kind(notification.kind)
            .filter(|_| suspected)?
            .source,
    )
}

/// Returns the rule that `notification` breaks if it enters or leaves the domain: exactly one of
/// its two addresses is in `domain`. Without a domain there is no border.
#[inline]
#[must_use]
pub fn crosses(domain: &[Prefix], notification: &Notification) -> Option<Rule> {
    let inside = |address| access::list_contains(domain, address);
    let crosses =
        !domain.is_empty() && inside(notification.notifier) != inside(notification.destination);
    Some(
        Duties::for_kind(notification.kind)
            .filter(|_| crosses)?
            .border,
    )
}

/// Checks the notifications of one notifier about one flow against a rate limit, each counted at
/// its first sighting.
///
/// Uses the generic cell rate algorithm (ITU-T I.371 Annex A): at a limit of r per second, each
/// notification is due 1/r after the due time of the one before, or after its arrival, whichever is
/// later. One that comes more than [`TOLERANCE`] early exceeds the limit and does not advance the
/// due time. So a burst may have as many as are due within that time, and one more.
#[derive(Clone, Copy, Debug)]
pub struct NotifierRate {
    /// Due time of the next one, in nanoseconds since the epoch.
    due: u64,
    /// The latest time stamp.
    latest: u64,
}

impl NotifierRate {
    /// The state before any notification.
    pub const NEW: Self = Self { due: 0, latest: 0 };

    /// Counts a notification; returns true if it exceeds a limit of `rate` per second (0: no
    /// limit). A time stamp more than [`TOLERANCE`] before the latest one means that the order is
    /// unknown: counting starts over.
    #[inline]
    #[must_use]
    pub const fn exceeds(&mut self, at: u64, rate: u32) -> bool {
        let Some(interval) = SECOND.checked_div(rate) else {
            return false;
        };
        if at.saturating_add(TOLERANCE) < self.latest {
            *self = Self::NEW;
        }
        if at > self.latest {
            self.latest = at;
        }
        let now = self.latest;
        if self.due > now.saturating_add(TOLERANCE) {
            return true;
        }
        let due = if self.due > now { self.due } else { now };
        self.due = due.saturating_add(interval as u64);
        false
    }
}

/// Inverse of the least part of a window that a flow must have lasted for the window's content to
/// be estimated.
const YOUNG: u64 = 8;

/// Returns the octets that a window before a notification would hold, given that it held `octets`
/// of a flow of that age. Those of a flow younger than the window are scaled up to it: a flow that
/// is notified soon after its start has not grown just because it did not exist before.
#[must_use]
pub fn scaled_to_window(octets: f64, age: u64, window: u64) -> Option<f64> {
    if age >= window {
        Some(octets)
    } else if age > 0 && age >= window / YOUNG {
        Some(octets * (window as f64 / age as f64))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fcn_wire::proxy_cn::FiveTuple;
    use fcn_wire::{Origin, Qp};

    /// Returns how many of `times`, in nanoseconds, exceed a limit of `rate` per second.
    fn exceeding(rate: u32, times: impl IntoIterator<Item = u64>) -> usize {
        let mut counted = NotifierRate::NEW;
        let times = times.into_iter();
        times
            .filter(|at| counted.exceeds(1_767_225_600_000_000_000 + at, rate))
            .count()
    }

    fn evenly(rate: u64, seconds: u64) -> impl Iterator<Item = u64> {
        (0..rate * seconds).map(move |n| n * 1_000_000_000 / rate)
    }

    #[test]
    fn a_limit_is_kept_or_exceeded_at_any_rate() {
        for limit in [1, 50, 999, 1_000, 20_000, 1_000_000] {
            let rate = u64::from(limit);
            let seconds = if limit < 1_000 { 10 } else { 1 };
            assert_eq!(exceeding(limit, evenly(rate, seconds)), 0, "{limit}");
            // Up to the tolerance early or late.
            let early = |(n, at): (usize, u64)| at + [TOLERANCE, 0, TOLERANCE / 2][n % 3];
            let shaken = evenly(rate, seconds).enumerate().map(early);
            assert_eq!(exceeding(limit, shaken), 0, "{limit}");
            let many = exceeding(limit, evenly(rate * 6 / 5 + 1, seconds));
            assert!(many > 0, "{limit}");
            // Notifications over the limit do not displace others: the rest keeps the limit.
            let double = exceeding(limit, evenly(rate * 2, seconds));
            let kept = rate * seconds * 2 - double as u64;
            assert!(
                kept.abs_diff(rate * seconds) <= rate / 1_000 + 1,
                "{limit}: {kept}"
            );
        }
        assert_eq!(exceeding(0, [0; 1_000]), 0, "no limit");
    }

    #[test]
    fn the_tolerance_bounds_a_burst() {
        for (limit, fits) in [
            (1, 1),
            (50, 1),
            (999, 1),
            (1_000, 2),
            (20_000, 21),
            (1_000_000, 1_001),
        ] {
            let burst = [0].into_iter().cycle();
            assert_eq!(exceeding(limit, burst.clone().take(fits)), 0, "{limit}");
            assert_eq!(exceeding(limit, burst.take(fits + 4)), 4, "{limit}");
        }
        // Ten seconds of silence earn no further burst.
        let later = [0, 10_000_000_000, 10_000_000_000, 10_000_000_000];
        assert_eq!(exceeding(50, later), 2);
    }

    #[test]
    fn time_stamps_out_of_order_exceed_no_limit() {
        let swapped = |rate: u64| (0..rate).map(move |n| (n ^ 1) * 1_000_000_000 / rate);
        for rate in [50, 60, 1_000, 20_000, 1_000_000] {
            assert_eq!(exceeding(rate, swapped(rate.into())), 0, "{rate}");
        }
        // Within the tolerance, order does not matter.
        assert!(exceeding(1_000, swapped(1_200)) > 100);
        assert_eq!(exceeding(50, [9, 3, 7, 1, 5].map(|n| n * 100_000)), 4);
        // Notifications read after later ones, or after a stamp from the future, count separately.
        let again = evenly(50, 1)
            .map(|at| at + 5_000_000_000)
            .chain(evenly(50, 1));
        assert_eq!(exceeding(50, again), 0);
        let again = core::iter::once(1 << 60).chain(evenly(60, 1));
        assert!(exceeding(50, again) > 20);
    }

    #[test]
    fn a_young_flow_counts_by_its_rate() {
        assert_eq!(scaled_to_window(5.0, 100, 100), Some(5.0));
        assert_eq!(scaled_to_window(5.0, 50, 100), Some(10.0));
        assert_eq!(scaled_to_window(5.0, 11, 100), None);
        assert_eq!(scaled_to_window(5.0, 0, 7), None);
    }

    #[test]
    fn flows_without_a_qp_exceed_no_rate() {
        let tuple = FiveTuple {
            source: [10, 1, 0, 1].into(),
            destination: [10, 2, 0, 1].into(),
            protocol: 6,
            source_port: 1,
            destination_port: 2,
        };
        let flow = |receiver_qp| Subject::Flow { tuple, receiver_qp };
        let duties = Duties::for_kind(Kind::ProxyCn).unwrap();
        assert_eq!(duties.rate_about(&flow(None)), None);
        let qp = Some(Qp::truncate(7));
        assert_eq!(duties.rate_about(&flow(qp)), Some(Rule::ProxyCnRate));
    }

    #[test]
    fn a_border_is_crossed_inwards_or_outwards() {
        let domain = ["10.1.0.0/16", "10.2.0.0/16"].map(|text| text.parse().unwrap());
        let crossed = |kind, notifier: &str, destination: &str| {
            let destination = destination.parse().unwrap();
            let gist = Notification {
                kind,
                origin: Origin::Switch,
                notifier: notifier.parse().unwrap(),
                destination,
                sender: Some(destination),
                subject: Subject::FlowLabel(1),
                level: None,
                deepest_queue: None,
                hops: None,
            };
            assert_eq!(crosses(&[], &gist), None);
            (crosses(&domain, &gist), untrusted(&domain, &gist))
        };
        for kind in Kind::ALL {
            let duties = Duties::for_kind(kind);
            let (border, source) = (duties.map(|d| d.border), duties.map(|d| d.source));
            assert_eq!(crossed(kind, "10.1.0.1", "10.2.0.1"), (None, None));
            assert_eq!(crossed(kind, "10.3.0.1", "10.2.0.1"), (border, source));
            assert_eq!(crossed(kind, "10.1.0.1", "10.3.0.1"), (border, None));
            assert_eq!(crossed(kind, "10.3.0.1", "10.3.0.1"), (None, source));
        }
        assert_eq!(Duties::for_kind(Kind::Cnp), None);
    }
}
