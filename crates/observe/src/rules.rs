//! The rules that one packet's bytes cannot show broken ([`Rule::SEVERAL`](fcn_wire::Rule::SEVERAL)): it takes several
//! packets, or a list of who is who.

use crate::access;
use fcn_wire::pnc::Prefix;
use fcn_wire::{Gist, Kind, Origin};

/// Notifiers of one topic whose rates are told apart; those that come later are not judged.
pub const NOTIFIERS: usize = 4;
/// Fast CNPs a second that one notifier may send about one flow, where nothing else is said
/// (draft-xiao-rtgwg-rocev2-fast-cnp section 5 asks for a limit and leaves its value open).
pub const FLOW_RATE: u32 = 20_000;
const MILLISECOND: u64 = 1_000_000;
/// How long after a switch's Fast CNP a packet marked CE breaks a rule, in nanoseconds.
const BESIDE: u64 = MILLISECOND;
/// The time of what was never seen.
const NEVER: u64 = u64::MAX;

/// Whether the rate of such notifications is limited (draft-xiao-rtgwg-rocev2-fast-cnp section 5).
#[inline]
#[must_use]
pub const fn is_limited(kind: Kind) -> bool {
    matches!(kind, Kind::FastCnp1 | Kind::FastCnp2)
}

/// Whether the source of such notifications is checked against a list
/// (draft-xiao-rtgwg-rocev2-fast-cnp section 5): not that of CNPs, which receivers send.
#[inline]
#[must_use]
pub fn is_checked(kind: Kind) -> bool {
    kind != Kind::Cnp
}

/// Whether `notification` comes from somebody who is not in `list`; without a list, nobody is suspected.
#[must_use]
pub fn is_untrusted(list: &[Prefix], notification: &Gist) -> bool {
    is_checked(notification.kind) && !list.is_empty() && !access::lists(list, notification.notifier)
}

/// Fast CNPs in the running millisecond, on the interface that saw the first of them: on others they are the same ones.
#[derive(Clone, Copy, Debug)]
pub struct NotifierRate {
    /// Its number, without the bits that tell 50 days from the next.
    millisecond: u32,
    interface: u32,
    count: u32,
}

impl NotifierRate {
    /// None yet.
    pub const NEW: Self = Self {
        millisecond: 0,
        interface: 0,
        count: 0,
    };

    /// Counts one; returns whether there are more than `most` in its millisecond.
    #[inline]
    #[must_use]
    pub fn exceeds(&mut self, at: u64, interface: u32, most: u32) -> bool {
        let millisecond = (at / MILLISECOND) as u32;
        if millisecond != self.millisecond {
            *self = Self {
                millisecond,
                interface,
                count: 0,
            };
        } else if interface != self.interface {
            return false;
        }
        self.count = self.count.saturating_add(1);
        self.count > most
    }
}

/// Fast CNPs that may come in one millisecond at a limit of `rate` a second: one more than fit, as windows are not those
/// of the notifier.
#[must_use]
pub const fn most_in_a_millisecond(rate: u32) -> u32 {
    rate.div_ceil(1000).saturating_add(1)
}

/// CE marks on data of a sender that is able to obey Fast CNPs, beside a Fast CNP of a switch
/// (draft-xiao-rtgwg-rocev2-fast-cnp section 4).
///
/// That of a Fast CNP which follows the marked packet is not seen.
#[derive(Clone, Copy, Debug)]
pub struct Beside {
    /// A switch's last Fast CNP about the flow.
    fast: u64,
}

impl Default for Beside {
    fn default() -> Self {
        Self { fast: NEVER }
    }
}

impl Beside {
    /// Whether a notification is such that its flow must not be marked as well.
    #[inline]
    #[must_use]
    pub fn counts(kind: Kind, origin: Origin) -> bool {
        is_limited(kind) && origin == Origin::Switch
    }

    /// A switch's Fast CNP about the flow, at a time that does not go back.
    #[inline]
    pub const fn notified(&mut self, at: u64) {
        self.fast = at;
    }

    /// Whether a data packet of the flow at `at`, marked CE or not, of a sender that is `able` or not, breaks the rule.
    #[inline]
    #[must_use]
    pub const fn is_broken(&self, at: u64, ce: bool, able: bool) -> bool {
        able && ce && self.fast != NEVER && at.saturating_sub(self.fast) <= BESIDE
    }
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

    #[test]
    fn a_millisecond_has_room_for_one_more_than_the_rate() {
        assert_eq!(most_in_a_millisecond(20_000), 21);
        assert_eq!(most_in_a_millisecond(1), 2);
        let mut rate = NotifierRate::NEW;
        let exceeds: Vec<bool> = (0..4)
            .map(|n| rate.exceeds(5 * MILLISECOND + n, 0, 2))
            .collect();
        assert_eq!(exceeds, [false, false, true, true]);
        // The same ones on another interface, and the next millisecond.
        assert!(!rate.exceeds(5 * MILLISECOND + 9, 1, 2));
        assert!(!rate.exceeds(6 * MILLISECOND, 1, 2));
    }

    #[test]
    fn a_young_flow_counts_by_its_rate() {
        assert_eq!(of_window(5.0, 100, 100), Some(5.0));
        assert_eq!(of_window(5.0, 50, 100), Some(10.0));
        assert_eq!(of_window(5.0, 11, 100), None);
        assert_eq!(of_window(5.0, 0, 7), None);
    }

    #[test]
    fn a_mark_breaks_the_rule_for_a_millisecond() {
        let mut beside = Beside::default();
        assert!(!beside.is_broken(5, true, true));
        beside.notified(10);
        assert!(beside.is_broken(10 + BESIDE, true, true));
        assert!(!beside.is_broken(11 + BESIDE, true, true));
        assert!(!beside.is_broken(11, false, true) && !beside.is_broken(11, true, false));
    }
}
