//! Another path instead of a lower rate: draft-xiao-rtgwg-rocev2-fast-cnp section 4 permits it to a
//! sender that can bypass the congested switch. The number of attempts, and the time to wait for
//! their effect, are ours \[choice\].

use core::time::Duration;
use fcn_observe::time::Time;

/// Conditions for changing the path of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detour {
    /// Maximum number of consecutive path changes; the next Fast CNP slows the flow down.
    /// [`u32::MAX`]: no Fast CNP ever does. Default 3.
    pub tries: u32,
    /// Time after a change in which Fast CNPs may be about packets that are still on the old path:
    /// a round trip. Default 50 µs.
    pub hold: Duration,
    /// Time without a Fast CNP after which attempts are counted from zero. Default 1 ms.
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

/// Response to a switch's Fast CNP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The flow changes its path.
    Change,
    /// The flow has just changed its path.
    Wait,
    /// The flow has used up its attempts.
    Slow,
}

/// Path changes of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Detours {
    /// Number of changes since the flow was opened.
    path: u32,
    /// Number of consecutive changes.
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
    fn a_flow_slows_down_after_its_path_changes() {
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
    fn with_unlimited_tries_it_never_slows_down() {
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
