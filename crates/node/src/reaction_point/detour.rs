//! Another path instead of a lower rate: draft-xiao-rtgwg-rocev2-fast-cnp section 4 permits it to a
//! sender that can bypass the congested switch. The number of attempts, and the time to wait for
//! their effect, are ours \[choice\].

use super::controller::{Ack, Answer, Controller, Notice};
use core::time::Duration;
use fcn_observe::time::Time;
use fcn_wire::ioam::Trace;

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

/// A controller that tries other paths before another controller slows the flow down.
#[derive(Debug)]
pub(super) struct Detouring {
    detour: Detour,
    controller: Box<dyn Controller>,
    /// Number of changes since the flow was opened.
    path: u32,
    /// Number of consecutive changes.
    tried: u32,
    changed: Option<Time>,
    notified: Option<Time>,
}

impl Detouring {
    pub(super) const fn new(detour: Detour, controller: Box<dyn Controller>) -> Self {
        Self {
            detour,
            controller,
            path: 0,
            tried: 0,
            changed: None,
            notified: None,
        }
    }
}

impl Controller for Detouring {
    fn on_notification(&mut self, now: Time, notice: &Notice<'_>) -> Answer {
        // The receiver's own Fast CNP reports congestion, but no switch to bypass (section 4).
        if !notice.by_switch {
            return self.controller.on_notification(now, notice);
        }
        let passed =
            |since: Option<Time>, time| since.is_none_or(|since| now.saturating_sub(since) >= time);
        if passed(self.notified, self.detour.rest) {
            self.tried = 0;
        }
        self.notified = Some(now);
        if !passed(self.changed, self.detour.hold) {
            return Answer::Wait;
        }
        if self.tried >= self.detour.tries {
            return self.controller.on_notification(now, notice);
        }
        self.tried += 1;
        self.path = self.path.wrapping_add(1);
        self.changed = Some(now);
        Answer::Detour(self.path)
    }

    fn on_ack(&mut self, now: Time, ack: &Ack) {
        self.controller.on_ack(now, ack);
    }

    fn on_telemetry(&mut self, now: Time, ack: &Ack, in_flight: u64, trace: &Trace<'_>) {
        self.controller.on_telemetry(now, ack, in_flight, trace);
    }

    fn on_sent(&mut self, octets: u32) {
        self.controller.on_sent(octets);
    }

    fn on_timer(&mut self, now: Time) {
        self.controller.on_timer(now);
    }

    fn next_timer(&self) -> Option<Time> {
        self.controller.next_timer()
    }

    fn rate(&self) -> f64 {
        self.controller.rate()
    }

    fn window(&self) -> Option<u64> {
        self.controller.window()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reaction_point::Control;

    fn flow(detour: Detour) -> Box<dyn Controller> {
        Control::Fixed.controller(100e9, Some(detour))
    }

    fn fast_cnp(flow: &mut dyn Controller, micros: u64) -> Answer {
        let notice = Notice {
            by_switch: true,
            ..Notice::default()
        };
        flow.on_notification(Time::from_nanos(micros * 1000), &notice)
    }

    #[test]
    fn a_flow_slows_down_after_its_path_changes() {
        let detour = Detour {
            tries: 2,
            ..Detour::default()
        };
        let mut flow = flow(detour);
        for (micros, want) in [
            (0, Answer::Detour(1)),
            (49, Answer::Wait),
            (50, Answer::Detour(2)),
            (99, Answer::Wait),
            (100, Answer::Slow),
            (1099, Answer::Slow),
            (2099, Answer::Detour(3)),
        ] {
            assert_eq!(fast_cnp(&mut *flow, micros), want, "{micros}");
        }
    }

    #[test]
    fn with_unlimited_tries_it_never_slows_down() {
        let detour = Detour {
            tries: u32::MAX,
            hold: Duration::ZERO,
            ..Detour::default()
        };
        let mut flow = flow(detour);
        for path in 1..=1000 {
            assert_eq!(fast_cnp(&mut *flow, 0), Answer::Detour(path));
        }
    }
}
