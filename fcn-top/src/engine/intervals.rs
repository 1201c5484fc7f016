//! Intervals that start at multiples of their length, by packet time stamps.

/// Called when an interval is over, with its start and end. The last argument is true if time has
/// reached its end, false if packets ended before that.
pub type AtEnd<T> = Box<dyn FnMut(&mut T, u64, u64, bool) + Send>;

/// Detects the end of intervals. All times are nanoseconds since the epoch.
pub struct IntervalTimer<T> {
    every: u64,
    /// Current interval; empty before the first packet.
    from: u64,
    to: u64,
    at_end: AtEnd<T>,
}

impl<T> IntervalTimer<T> {
    /// Creates intervals of `every` nanoseconds, at least one.
    pub fn new(every: u64, at_end: AtEnd<T>) -> Self {
        Self {
            every: every.max(1),
            from: 0,
            to: 0,
            at_end,
        }
    }

    /// Must be called before the packet captured at `at` is processed. A packet of an earlier
    /// interval counts in the current one. Intervals without packets are skipped.
    #[inline]
    pub fn before(&mut self, at: u64, with: &mut T) {
        if at >= self.to {
            self.step(at, with);
        }
    }

    #[cold]
    fn step(&mut self, at: u64, with: &mut T) {
        if self.to > self.from {
            (self.at_end)(with, self.from, self.to, true);
        }
        self.from = at - at % self.every;
        self.to = self.from.saturating_add(self.every);
    }

    /// No packet captured before `at` will arrive any more: ends the current interval if it is
    /// over, and starts the first one. 0 has no effect.
    pub fn quiet_until(&mut self, at: u64, with: &mut T) {
        if self.to == 0 && at > 0 {
            self.step(at, with);
        } else if at >= self.to && self.to > self.from {
            (self.at_end)(with, self.from, self.to, true);
            let passed = (at - self.to) / self.every;
            self.from = self.to + passed * self.every;
            self.to = self.from.saturating_add(self.every);
        }
    }

    /// Returns the end of the current interval; `u64::MAX` before the first.
    pub const fn end(&self) -> u64 {
        if self.to == 0 { u64::MAX } else { self.to }
    }

    /// Ends the current interval after the last packet.
    pub fn finish(&mut self, with: &mut T) {
        if self.to > self.from {
            (self.at_end)(with, self.from, self.to, false);
            self.from = self.to;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Ended = Vec<(u64, u64, u32)>;

    /// Counts packets, and records the count of each interval.
    struct Count {
        now: u32,
        ended: Ended,
    }

    fn timer(every: u64) -> (IntervalTimer<Count>, Count) {
        let at_end = Box::new(|count: &mut Count, from, to, _| {
            count.ended.push((from, to, count.now));
            count.now = 0;
        });
        let count = Count {
            now: 0,
            ended: Vec::new(),
        };
        (IntervalTimer::new(every, at_end), count)
    }

    fn intervals(every: u64, times: &[u64]) -> Ended {
        let (mut timer, mut count) = timer(every);
        for at in times {
            timer.before(*at, &mut count);
            count.now += 1;
        }
        timer.finish(&mut count);
        timer.finish(&mut count);
        count.ended
    }

    #[test]
    fn boundaries_are_whole_multiples() {
        assert_eq!(
            intervals(10, &[7, 9, 10, 19, 20, 55, 12, 60]),
            [
                (0, 10, 2),
                (10, 20, 2),
                (20, 30, 1),
                (50, 60, 2),
                (60, 70, 1)
            ]
        );
        assert_eq!(intervals(10, &[]), []);
    }

    #[test]
    fn silence_ends_an_interval_and_starts_an_empty_one() {
        let (mut timer, mut count) = timer(10);
        timer.quiet_until(0, &mut count);
        timer.before(5, &mut count);
        count.now += 1;
        timer.quiet_until(9, &mut count);
        timer.quiet_until(10, &mut count);
        timer.quiet_until(35, &mut count);
        timer.before(36, &mut count);
        count.now += 1;
        timer.finish(&mut count);
        assert_eq!(count.ended, [(0, 10, 1), (10, 20, 0), (30, 40, 1)]);
    }

    #[test]
    fn the_first_interval_starts_without_a_packet_if_time_is_known() {
        let (mut timer, mut count) = timer(10);
        for at in [0, 23, 29, 30, 45] {
            timer.quiet_until(at, &mut count);
        }
        assert_eq!(count.ended, [(20, 30, 0), (30, 40, 0)]);
    }

    proptest! {
        #[test]
        fn packets_count_once_in_their_interval(
            mut times in proptest::collection::vec(any::<u64>(), 1..100),
            every in 1u64..1_000_000,
        ) {
            let total = times.len();
            let unordered: u32 = intervals(every, &times).iter().map(|(_, _, n)| n).sum();
            prop_assert_eq!(unordered as usize, total);
            times.sort_unstable();
            for (from, to, n) in intervals(every, &times) {
                prop_assert_eq!(from % every, 0);
                let within = times.iter().filter(|at| (from..to).contains(at) || to == u64::MAX && **at >= from);
                prop_assert_eq!(within.count(), n as usize);
            }
        }
    }
}
