//! The rules that one packet's bytes cannot show broken ([`Rule::SEVERAL`](fcn_wire::Rule::SEVERAL)): it takes several
//! packets, or a list of who is who.

use crate::access;
use fcn_wire::pnc::Prefix;
use fcn_wire::{Gist, Kind, Rule};

/// Notifiers of one topic whose rates are told apart; those that come later are not judged.
pub const NOTIFIERS: usize = 4;
/// Notifications a second that one notifier may send about one flow, where nothing else is said (the drafts ask for a limit
/// and leave its value open: see [`Duties::of`]).
pub const FLOW_RATE: u32 = 20_000;
const MILLISECOND: u64 = 1_000_000;
/// What the drafts ask of who sends notifications of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duties {
    /// The rate about one flow is limited.
    pub rate: Rule,
    /// The source is on a list of those who may notify.
    pub source: Rule,
    /// The border of the domain lets none through, neither in nor out.
    pub border: Rule,
}

impl Duties {
    /// The rules for notifications of that kind; none for CNPs, which receivers send, wherever they are
    /// (draft-xiao-rtgwg-rocev2-fast-cnp section 5, draft-xiao-rtgwg-proxy-congestion-notification section 6,
    /// draft-he-rtgwg-wan-fcn section 6).
    #[inline]
    #[must_use]
    pub const fn of(kind: Kind) -> Option<Self> {
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

/// The rule that `notification` breaks where its source is not in `list`; without a list, nobody is suspected.
#[must_use]
pub fn untrusted(list: &[Prefix], notification: &Gist) -> Option<Rule> {
    let suspected = !list.is_empty() && !access::lists(list, notification.notifier);
    Some(Duties::of(notification.kind).filter(|_| suspected)?.source)
}

/// The rule that `notification` breaks where it comes into the domain from outside, or goes out of it: one of its two
/// addresses is in `domain`, the other is not. Without a domain, there is no border.
#[inline]
#[must_use]
pub fn crosses(domain: &[Prefix], notification: &Gist) -> Option<Rule> {
    let inside = |address| access::lists(domain, address);
    let crosses = !domain.is_empty() && inside(notification.notifier) != inside(notification.told);
    Some(Duties::of(notification.kind).filter(|_| crosses)?.border)
}

/// Notifications of one notifier about one flow in the running millisecond, each counted where it was seen first.
#[derive(Clone, Copy, Debug)]
pub struct NotifierRate {
    /// Its number, without the bits that tell 50 days from the next.
    millisecond: u32,
    count: u32,
}

impl NotifierRate {
    /// None yet.
    pub const NEW: Self = Self {
        millisecond: 0,
        count: 0,
    };

    /// Counts one; returns whether there are more than `most` in its millisecond.
    #[inline]
    #[must_use]
    pub fn exceeds(&mut self, at: u64, most: u32) -> bool {
        let millisecond = (at / MILLISECOND) as u32;
        if millisecond != self.millisecond {
            *self = Self {
                millisecond,
                count: 0,
            };
        }
        self.count = self.count.saturating_add(1);
        self.count > most
    }
}

/// Notifications that may come in one millisecond at a limit of `rate` a second: one more than fit, as windows are not those
/// of the notifier.
#[must_use]
pub const fn most_in_a_millisecond(rate: u32) -> u32 {
    rate.div_ceil(1000).saturating_add(1)
}

/// Of a flow that is younger than this part of a window, too little is known to say what the window held.
const YOUNG: u64 = 8;

/// What a window before a notification would hold of a flow of that age, where it held `octets`. Those of a flow that is
/// younger than the window are scaled up to it: a flow that is told to slow down soon has not grown because it was not there
/// before.
#[must_use]
pub fn of_window(octets: f64, age: u64, window: u64) -> Option<f64> {
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
    use fcn_wire::{Origin, Subject};

    #[test]
    fn a_millisecond_has_room_for_one_more_than_the_rate() {
        assert_eq!(most_in_a_millisecond(20_000), 21);
        assert_eq!(most_in_a_millisecond(1), 2);
        let mut rate = NotifierRate::NEW;
        let exceeds: Vec<bool> = (0..4)
            .map(|n| rate.exceeds(5 * MILLISECOND + n, 2))
            .collect();
        assert_eq!(exceeds, [false, false, true, true]);
        assert!(!rate.exceeds(6 * MILLISECOND, 2), "the next one");
    }

    #[test]
    fn a_young_flow_counts_by_its_rate() {
        assert_eq!(of_window(5.0, 100, 100), Some(5.0));
        assert_eq!(of_window(5.0, 50, 100), Some(10.0));
        assert_eq!(of_window(5.0, 11, 100), None);
        assert_eq!(of_window(5.0, 0, 7), None);
    }

    #[test]
    fn a_border_is_crossed_inwards_or_outwards() {
        let prefix = |text| access::prefix(text).unwrap();
        let domain = [prefix("10.1.0.0/16"), prefix("10.2.0.0/16")];
        let crossed = |kind, notifier: &str, told: &str| {
            let told = told.parse().unwrap();
            let gist = Gist {
                kind,
                origin: Origin::Switch,
                notifier: notifier.parse().unwrap(),
                told,
                sender: Some(told),
                subject: Subject::FlowLabel(1),
                level: None,
                deepest_queue: None,
                hops: 0,
            };
            assert_eq!(crosses(&[], &gist), None);
            (crosses(&domain, &gist), untrusted(&domain, &gist))
        };
        for kind in Kind::ALL {
            let duties = Duties::of(kind);
            let (border, source) = (duties.map(|d| d.border), duties.map(|d| d.source));
            assert_eq!(crossed(kind, "10.1.0.1", "10.2.0.1"), (None, None));
            assert_eq!(crossed(kind, "10.3.0.1", "10.2.0.1"), (border, source));
            assert_eq!(crossed(kind, "10.1.0.1", "10.3.0.1"), (border, None));
            assert_eq!(crossed(kind, "10.3.0.1", "10.3.0.1"), (None, source));
        }
        assert_eq!(Duties::of(Kind::Cnp), None);
    }
}
