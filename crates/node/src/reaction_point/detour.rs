//! Another path instead of a lower rate: what draft-xiao-rtgwg-rocev2-fast-cnp section 4 lets a sender do that knows how to
//! get past the congested switch. How often, and for how long one waits to see what it has helped, is ours \[choice\].

use core::time::Duration;
use fcn_observe::time::Time;

/// When a flow takes another path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detour {
    /// Paths that are tried in a row; the next Fast CNP slows the flow down. [`u32::MAX`]: none ever does. Default 3.
    pub tries: u32,
    /// For so long after a change, Fast CNPs may be about packets that are still on the old path: a round trip. Default
    /// 50 µs.
    pub hold: Duration,
    /// After so long without a Fast CNP, tries count from the beginning. Default 1 ms.
    pub rest: Duration,
}

impl Default for Detour {
    fn default() -> Self {
        Self {
            tries: 3,
            hold: Duration::from_micros(50),
            rest: Duration::from_millis(1),
        }
    }
}

/// What becomes of a switch's Fast CNP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The flow takes another path.
    Change,
    /// It has just done so.
    Wait,
    /// It has tried enough of them.
    Slow,
}

/// A flow's detours.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Detours {
    /// Since the flow was opened.
    path: u32,
    /// In a row.
    tried: u32,
    changed: Option<Time>,
    notified: Option<Time>,
}

impl Detours {
    pub(super) const fn path(&self) -> u32 {
        self.path
    }

    pub(super) fn on_fast_cnp(&mut self, now: Time, detour: &Detour) -> Answer {
        let passed =
            |since: Option<Time>, time| since.is_none_or(|since| now.saturating_sub(since) >= time);
        if passed(self.notified, detour.rest) {
            self.tried = 0;
        }
        self.notified = Some(now);
        if !passed(self.changed, detour.hold) {
            return Answer::Wait;
        }
        if self.tried >= detour.tries {
            return Answer::Slow;
        }
        self.tried += 1;
        self.path = self.path.wrapping_add(1);
        self.changed = Some(now);
        Answer::Change
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_tries_paths_waits_for_each_and_then_slows_down_until_it_was_quiet() {
        let detour = Detour {
            tries: 2,
            ..Detour::default()
        };
        let mut flow = Detours::default();
        for (micros, want, path) in [
            (0, Answer::Change, 1),
            (49, Answer::Wait, 1),
            (50, Answer::Change, 2),
            (99, Answer::Wait, 2),
            (100, Answer::Slow, 2),
            (1099, Answer::Slow, 2),
            (2099, Answer::Change, 3),
        ] {
            let now = Time::from_nanos(micros * 1000);
            assert_eq!(flow.on_fast_cnp(now, &detour), want, "{micros}");
            assert_eq!(flow.path(), path, "{micros}");
        }
    }

    #[test]
    fn without_end_it_never_slows_down() {
        let detour = Detour {
            tries: u32::MAX,
            hold: Duration::ZERO,
            ..Detour::default()
        };
        let mut flow = Detours::default();
        for _ in 0..1000 {
            assert_eq!(flow.on_fast_cnp(Time::default(), &detour), Answer::Change);
        }
    }
}
