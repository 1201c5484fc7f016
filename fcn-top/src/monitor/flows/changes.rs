//! How a flow changes with notifications: octets before and after, over 1 ms and 10 ms. Whether it obeys is another question:
//! [`fcn_observe::obedience`].

use super::steps::Steps;
use fcn_observe::rules::of_window;

/// A millisecond.
const MS: u64 = 1_000_000;
/// How long before and after a notification is looked at.
const WINDOWS: [u64; 2] = [MS, 10 * MS];
/// Packets that a window before a notification holds on average where changes are shown. A notification follows a packet,
/// so that of a flow that sends evenly the window before it has up to one more than that behind it: a twentieth of these.
const ENOUGH: f64 = 20.0;

/// A notification whose 10 ms are not over; or none, where there was nothing before it.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    at: u64,
    /// Octets in each window before it.
    before: [f32; 2],
    /// Octets so far in each window after it.
    after: [u32; 2],
}

impl Pending {
    /// Whether there is one.
    fn is_some(&self) -> bool {
        self.before.iter().any(|octets| *octets > 0.0)
    }
}

/// Sums over notifications.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    before: [f64; 2],
    after: [f64; 2],
    measured: [u32; 2],
}

impl Sums {
    /// Adds what `pending` shows by the time `now`.
    fn add(&mut self, pending: &Pending, now: u64) {
        for (i, window) in WINDOWS.into_iter().enumerate() {
            if now.saturating_sub(pending.at) < window || pending.before[i] <= 0.0 {
                continue;
            }
            let (before, after) = (f64::from(pending.before[i]), f64::from(pending.after[i]));
            self.before[i] += before;
            self.after[i] += after;
            self.measured[i] = self.measured[i].saturating_add(1);
        }
    }
}

/// What a flow carries around the notifications about it.
///
/// One notification is measured at a time: those that come within the 10 ms after it are what it is followed by, and start
/// nothing. The octets before it are an estimate from four steps and a part of a fifth. Where the flow is younger than
/// the window they are scaled up to it, from an eighth of the window on: a flow that is told to slow down in its first
/// millisecond has not grown because it was not there before.
#[derive(Clone, Copy, Debug)]
pub struct Changes {
    fine: Steps<5, { MS / 4 }>,
    coarse: Steps<5, { 10 * MS / 4 }>,
    /// Octets at the time of the last data. They are behind a notification of that time, wherever it stands in the file:
    /// so either window has its first moment and not its last.
    latest: u32,
    pending: Pending,
    sums: Sums,
}

impl Changes {
    pub fn new() -> Self {
        Self {
            fine: Steps::new(),
            coarse: Steps::new(),
            latest: 0,
            pending: Pending::default(),
            sums: Sums::default(),
        }
    }

    /// Data of so many octets at `at`; `last` is when there was some before. Neither goes back.
    pub fn data(&mut self, last: u64, at: u64, octets: u64) {
        self.fine.add(last, at, octets);
        self.coarse.add(last, at, octets);
        let octets = u32::try_from(octets).unwrap_or(u32::MAX);
        self.latest = if at == last { self.latest } else { 0 }.saturating_add(octets);
        if !self.pending.is_some() {
            return;
        }
        self.close(at);
        if self.pending.is_some() {
            let pending = &mut self.pending;
            for (after, window) in pending.after.iter_mut().zip(WINDOWS) {
                if at.saturating_sub(pending.at) < window {
                    *after = after.saturating_add(octets);
                }
            }
        }
    }

    /// A notification at `at` about a flow whose data was seen from `first` to `last`.
    pub fn notified(&mut self, first: u64, last: u64, at: u64) {
        self.close(at);
        if self.pending.is_some() {
            return;
        }
        let age = at.saturating_sub(first);
        let latest = if at == last { self.latest } else { 0 };
        let octets = [self.fine.before(last, at), self.coarse.before(last, at)];
        let mut before = [0.0; 2];
        for ((before, octets), window) in before.iter_mut().zip(octets).zip(WINDOWS) {
            let octets = (octets - f64::from(latest)).max(0.0);
            *before = of_window(octets, age, window).unwrap_or(0.0) as f32;
        }
        self.pending = Pending {
            at,
            before,
            after: [latest; 2],
        };
    }

    /// Counts the pending notification where its 10 ms are over.
    fn close(&mut self, now: u64) {
        let pending = self.pending;
        if pending.is_some() && now.saturating_sub(pending.at) >= WINDOWS[1] {
            self.sums.add(&pending, now);
            self.pending = Pending::default();
        }
    }

    fn sums(&self, now: u64) -> Sums {
        let mut sums = self.sums;
        // Where there is none, nothing was before it, and nothing is added.
        sums.add(&self.pending, now);
        sums
    }

    /// How the octets of 1 ms (window 0) or 10 ms (1) changed over all notifications measured by `now`, in a flow whose
    /// packets have so many octets on average. `None` where windows hold too few of them.
    pub fn change(&self, window: usize, packet: f64, now: u64) -> Option<f64> {
        let sums = self.sums(now);
        let (before, after) = (*sums.before.get(window)?, *sums.after.get(window)?);
        let measured = f64::from(*sums.measured.get(window)?);
        (before > 0.0 && before >= ENOUGH * packet * measured).then(|| after / before - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Data every 100 µs: `octets` in each from `from` to `to` (exclusive), both in units of 100 µs.
    struct Line {
        it: Changes,
        last: u64,
    }

    const FIRST: u64 = 1_000_000_000;

    impl Line {
        fn new() -> Self {
            Self {
                it: Changes::new(),
                last: FIRST,
            }
        }

        fn data(&mut self, from: u64, to: u64, octets: u64) {
            for step in from..to {
                let at = FIRST + step * MS / 10;
                self.it.data(self.last, at, octets);
                self.last = at;
            }
        }

        fn notified(&mut self, step: u64) {
            self.it.notified(FIRST, self.last, FIRST + step * MS / 10);
        }

        fn change(&self, window: usize, step: u64) -> Option<f64> {
            let change = self.it.change(window, 1.0, FIRST + step * MS / 10)?;
            Some((change * 1e3).round() / 1e3)
        }

        fn measured(&self, step: u64) -> u32 {
            self.it.sums(FIRST + step * MS / 10).measured[1]
        }
    }

    #[test]
    fn a_flow_that_halves_is_seen_to() {
        let mut line = Line::new();
        line.data(0, 200, 1000);
        line.notified(200);
        assert_eq!(
            line.change(0, 209),
            None,
            "not before a millisecond is over"
        );
        line.data(200, 300, 500);
        assert_eq!(
            (line.change(0, 210), line.change(1, 299)),
            (Some(-0.5), None)
        );
        assert_eq!(line.measured(299), 0);
        assert_eq!((line.change(1, 300), line.measured(300)), (Some(-0.5), 1));
        line.data(300, 301, 500);
        assert_eq!(
            (line.change(0, 301), line.change(1, 301)),
            (Some(-0.5), Some(-0.5))
        );
        assert_eq!(line.measured(301), 1);
    }

    #[test]
    fn several_add_up_and_those_in_between_start_nothing() {
        let mut line = Line::new();
        line.data(0, 200, 1000);
        line.notified(200);
        line.data(200, 250, 1000);
        // Within the first one's 10 ms.
        line.notified(250);
        line.data(250, 300, 1000);
        line.notified(300);
        assert_eq!((line.change(1, 300), line.measured(300)), (Some(0.0), 1));
        line.data(300, 400, 500);
        // 100,000 then 100,000; 100,000 then 50,000.
        assert_eq!((line.change(1, 400), line.measured(400)), (Some(-0.25), 2));
        // 10,000 then 10,000; 10,000 then 5,000.
        assert_eq!(line.change(0, 400), Some(-0.25));
    }

    #[test]
    fn windows_of_few_packets_say_nothing() {
        let mut line = Line::new();
        line.data(0, 200, 1000);
        line.notified(200);
        line.data(200, 400, 1000);
        let now = FIRST + 400 * MS / 10;
        // Were they smaller, twenty packets in the millisecond before; of larger ones, two, and twenty in ten.
        assert_eq!(line.it.change(0, 500.0, now), Some(0.0));
        assert_eq!(line.it.change(0, 1000.0, now), None);
        assert_eq!(line.it.change(0, 5000.0, now), None);
        assert_eq!(line.it.change(1, 5000.0, now), Some(0.0));
    }

    /// Whatever the distance between its packets, one that never changes is not said to by more than chance explains; where
    /// notifications have the time of a packet, before or behind it, not at all.
    #[test]
    fn who_sends_evenly_does_not_change() {
        let gaps = (50..4_000).step_by(37).chain([100, 250, 400, 500]);
        for (gap, behind) in gaps.flat_map(|gap| [(gap * 1_000, 1_000), (gap * 1_000, 0)]) {
            for first in [false, true] {
                let (mut it, mut last) = (Changes::new(), FIRST);
                for n in 0..2_000 {
                    let at = FIRST + n * gap;
                    let notified = at / (50 * MS) != (at + gap) / (50 * MS);
                    if notified && first {
                        it.notified(FIRST, last, at);
                    }
                    it.data(last, at, 1_000);
                    last = at;
                    if notified && !first {
                        it.notified(FIRST, last, at + behind);
                    }
                }
                for window in 0..2 {
                    let change = it.change(window, 1_000.0, last);
                    let even = (behind == 0 || first) && MS.is_multiple_of(gap);
                    let most = if even { 0.0 } else { 0.07 };
                    assert!(change.is_none_or(|c| c.abs() <= most), "{gap} {change:?}");
                }
            }
        }
    }

    #[test]
    fn without_data_before_there_is_nothing_to_measure() {
        let mut line = Line::new();
        line.data(0, 1, 1000);
        line.notified(200);
        line.data(200, 400, 1000);
        assert_eq!((line.change(0, 400), line.change(1, 400)), (None, None));
        // Idle for more than a millisecond, but not for ten.
        line.notified(440);
        line.data(440, 441, 30_000);
        assert_eq!(
            (line.change(0, 600), line.change(1, 600)),
            (None, Some(-0.5))
        );
    }

    #[test]
    fn a_young_flow_counts_by_its_rate() {
        let mut line = Line::new();
        // 5 of 10 steps of the first millisecond.
        line.data(0, 5, 1000);
        line.notified(5);
        line.data(5, 105, 500);
        // 0.5 ms is too little of 10 ms, but not of 1 ms.
        assert_eq!(
            (line.change(0, 105), line.change(1, 105)),
            (Some(-0.5), None)
        );
        let mut line = Line::new();
        line.data(0, 20, 1000);
        line.notified(20);
        line.data(20, 120, 500);
        assert_eq!(
            (line.change(0, 120), line.change(1, 120)),
            (Some(-0.5), Some(-0.5))
        );
    }

    #[test]
    fn what_comes_long_after_is_no_answer() {
        let mut line = Line::new();
        line.data(0, 200, 1000);
        line.notified(200);
        line.data(1000, 1001, 1000);
        assert_eq!(
            (line.change(0, 1001), line.change(1, 1001)),
            (Some(-1.0), Some(-1.0))
        );
        assert_eq!(line.measured(1001), 1);
    }

    proptest! {
        /// Whatever comes when: no more is counted before or after than was there.
        #[test]
        fn sums_stay_within_what_was_added(
            acts in proptest::collection::vec((0..3 * MS, proptest::option::weighted(0.8, 0..10_000_u64)), 1..300),
        ) {
            let mut it = Changes::new();
            let (mut now, mut last, mut added) = (FIRST, FIRST, 0);
            let first = FIRST - 10 * MS;
            for (gap, act) in acts {
                now += gap;
                match act {
                    Some(octets) => {
                        it.data(last, now, octets);
                        (last, added) = (now, added + octets);
                    }
                    None => it.notified(first, last, now),
                }
                let sums = it.sums(now);
                for window in 0..2 {
                    // The windows before two notifications measured do not overlap, save by a part of a step.
                    prop_assert!(sums.after[window] <= added as f64);
                    prop_assert!(sums.before[window] <= added as f64 * 1.251 + 1.0);
                }
            }
        }
    }
}
