//! A quantity over time, in steps whose length grows with the time covered.

/// Length of the first steps, as a power of two of nanoseconds: about a microsecond.
const FINEST: u8 = 10;

/// Contents of a step.
pub trait Sum: Copy + Default {
    /// Returns the contents of two steps merged.
    fn and(self, other: Self) -> Self;
}

impl Sum for u32 {
    #[inline]
    fn and(self, other: Self) -> Self {
        self.saturating_add(other)
    }
}

impl Sum for u64 {
    #[inline]
    fn and(self, other: Self) -> Self {
        self.saturating_add(other)
    }
}

/// Notifications in a step, and their maximum in any millisecond, so that a short burst is visible
/// in a step of any length. Packed: two more octets in each step would be 13 MB with 100,000 rows,
/// too much for a screen within 300 MB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, packed(2))]
pub struct Bursts {
    /// Number of notifications.
    pub count: u32,
    /// Maximum in a period of 2^20 ns (1.05 ms) that starts at a multiple of that length.
    pub most: u16,
}

impl Sum for Bursts {
    #[inline]
    fn and(self, other: Self) -> Self {
        let (count, most) = (self.count, self.most);
        Self {
            count: count.saturating_add(other.count),
            most: most.max(other.most),
        }
    }
}

/// Counts notifications in the current millisecond.
#[derive(Clone, Copy, Debug, Default)]
pub struct Burst {
    millisecond: u64,
    count: u16,
}

impl Burst {
    /// Length of a "millisecond", as a power of two of nanoseconds: a longer step of a series is a
    /// multiple of it.
    pub const SHIFT: u8 = 20;

    /// Counts one more, at `at` in nanoseconds; returns what to add to a series. Each late one is a
    /// burst of one.
    #[inline]
    pub fn count(&mut self, at: u64) -> Bursts {
        let millisecond = at >> Self::SHIFT;
        if millisecond > self.millisecond {
            (self.millisecond, self.count) = (millisecond, 0);
        }
        let is_running = millisecond == self.millisecond;
        self.count = self.count.saturating_add(u16::from(is_running));
        Bursts {
            count: 1,
            most: if is_running { self.count } else { 1 },
        }
    }
}

/// Sums over `STEPS` steps of time.
///
/// A step is 1.024 µs long (2^10 ns) at first. When a time lies after the last step, steps are
/// merged in pairs, until they are 2^`COARSEST` ns long; then the oldest steps are dropped. With 64
/// steps of 2.15 s the last two minutes are always covered, and a short burst is shown in
/// microseconds. A step of 2^n ns starts at a multiple of its length. For a time before the first
/// step, possible if clocks of interfaces differ, room is made at the front in the same way; times
/// out of reach are ignored.
#[derive(Clone, Debug, PartialEq)]
pub struct Series<N, const STEPS: usize = 64, const COARSEST: u8 = 31> {
    /// Number of the first step: its start divided by the length of a step.
    first: u64,
    /// Index of the last nonempty step.
    place: u16,
    /// Length of a step as a power of two.
    shift: u8,
    /// True if nothing was added yet.
    empty: bool,
    steps: [N; STEPS],
}

impl<N: Sum, const STEPS: usize, const COARSEST: u8> Default for Series<N, STEPS, COARSEST> {
    /// An empty series.
    fn default() -> Self {
        Self {
            first: 0,
            place: 0,
            shift: FINEST,
            empty: true,
            steps: [N::default(); STEPS],
        }
    }
}

impl<N: Sum, const STEPS: usize, const COARSEST: u8> Series<N, STEPS, COARSEST> {
    /// Adds `amount` at time `at`, in nanoseconds.
    #[inline]
    pub fn add(&mut self, at: u64, amount: N) {
        let mut place = (at >> self.shift).wrapping_sub(self.first);
        if self.empty || place >= STEPS as u64 {
            self.reach(at);
            place = (at >> self.shift).wrapping_sub(self.first);
            if place >= STEPS as u64 {
                return;
            }
        }
        self.place = self.place.max(place as u16);
        if let Some(step) = self.steps.get_mut(place as usize) {
            *step = step.and(amount);
        }
    }

    /// Returns the length of a step, in nanoseconds.
    pub const fn step(&self) -> u64 {
        1 << self.shift
    }

    /// Returns the start and contents of each step, from the first to the one that contains `until`
    /// (at most `STEPS`). Empty if nothing was added yet.
    ///
    /// Steps have the length set by the last addition. For a chart that extends to `until` even
    /// beyond all steps, call [`reaching`](Self::reaching) first.
    pub fn points(&self, until: u64) -> impl Iterator<Item = (u64, N)> {
        let last = (until >> self.shift)
            .saturating_sub(self.first)
            .max(u64::from(self.place));
        let count = if self.empty {
            0
        } else {
            usize::try_from(last).unwrap_or(STEPS).min(STEPS - 1) + 1
        };
        let steps = self.steps.into_iter().take(count).zip(self.first..);
        steps.map(|(amount, number)| (number << self.shift, amount))
    }

    /// Returns the same sums with steps long enough to include `until`.
    pub fn reaching(&self, until: u64) -> Self {
        let mut series = self.clone();
        if !series.empty {
            series.reach(until);
        }
        series
    }

    /// Aligns two series on one axis: returns the start of the first step, the length of a step,
    /// and the contents of each series in every step up to the one that contains `until`: equally
    /// many, at most `STEPS`, unless one series is empty.
    pub fn side_by_side<M: Sum>(
        &self,
        other: &Series<M, STEPS, COARSEST>,
        until: u64,
    ) -> (u64, u64, Vec<N>, Vec<M>) {
        let (mut a, mut b) = (self.reaching(until), other.reaching(until));
        if a.empty {
            return (b.start(), b.step(), Vec::new(), b.values(until));
        }
        if b.empty {
            return (a.start(), a.step(), a.values(until), Vec::new());
        }
        // Everything in either series must have a step.
        let from = a.start().min(b.start());
        a.begin(from);
        b.begin(from);
        a.reach(until);
        b.reach(until);
        let shift = a.shift.max(b.shift);
        a.merge(shift - a.shift);
        b.merge(shift - b.shift);
        let first = a.first.max(b.first);
        let last = (until >> shift)
            .max(a.first + u64::from(a.place))
            .max(b.first + u64::from(b.place));
        let count = usize::try_from(last.saturating_sub(first))
            .unwrap_or(STEPS)
            .min(STEPS - 1)
            + 1;
        let (a, b) = (a.values_from(first, count), b.values_from(first, count));
        (first << shift, 1 << shift, a, b)
    }

    fn values(&self, until: u64) -> Vec<N> {
        self.points(until).map(|(_, amount)| amount).collect()
    }

    /// Returns the contents of `count` steps starting at step number `first`, which is not before
    /// the first one.
    fn values_from(&self, first: u64, count: usize) -> Vec<N> {
        let skip = usize::try_from(first - self.first).unwrap_or(STEPS);
        let nothing = core::iter::repeat(N::default());
        let steps = self.steps.iter().copied().skip(skip).chain(nothing);
        steps.take(count).collect()
    }

    fn start(&self) -> u64 {
        self.first << self.shift
    }

    /// Makes room at the front, so that the first step contains `from`, which is not later than it,
    /// unless it is too far away for the longest steps.
    fn begin(&mut self, from: u64) {
        let last = self.first + u64::from(self.place);
        let end = last << self.shift;
        let mut shift = self.shift;
        while shift < COARSEST && (end >> shift) - (from >> shift) >= STEPS as u64 {
            shift += 1;
        }
        self.merge(shift - self.shift);
        let last = self.first + u64::from(self.place);
        let first = (from >> shift).max(last.saturating_sub(STEPS as u64 - 1));
        let by = usize::try_from(self.first.saturating_sub(first)).unwrap_or(0);
        if by < STEPS {
            self.steps.copy_within(..STEPS - by, by);
            self.steps[..by].fill(N::default());
            self.first -= by as u64;
            self.place += by as u16;
        }
    }

    /// Extends the steps to include `at`, as far as possible.
    #[cold]
    fn reach(&mut self, at: u64) {
        if self.empty {
            self.empty = false;
            self.first = at >> self.shift;
            return;
        }
        if at < self.start() {
            let end = (self.first + u64::from(self.place)) << self.shift;
            // Not if the longest steps do not reach back to it.
            if (end >> COARSEST) - (at >> COARSEST) < STEPS as u64 {
                self.begin(at);
            }
            return;
        }
        let (mut by, room) = (0, STEPS as u64);
        let beyond = |by: u8| {
            let first = self.first >> by;
            (at >> (self.shift + by)).saturating_sub(first) >= room
        };
        while beyond(by) && self.shift + by < COARSEST {
            by += 1;
        }
        self.merge(by);
        let place = (at >> self.shift).saturating_sub(self.first);
        if place >= room {
            self.scroll(place - (room - 1));
        }
    }

    /// Merges each 2^`by` steps into one.
    fn merge(&mut self, by: u8) {
        if by == 0 {
            return;
        }
        let first = self.first >> by;
        let place = |old: u16| ((self.first + u64::from(old)) >> by).saturating_sub(first) as u16;
        // Steps after the last index are empty.
        for old in 0..=self.place {
            let amount = core::mem::take(&mut self.steps[usize::from(old)]);
            // Never after its old index.
            let step = &mut self.steps[usize::from(place(old))];
            *step = step.and(amount);
        }
        self.place = place(self.place);
        self.first = first;
        self.shift += by;
    }

    /// Drops the oldest `by` steps.
    fn scroll(&mut self, by: u64) {
        self.first += by;
        let by = usize::try_from(by).unwrap_or(STEPS).min(STEPS);
        self.steps.copy_within(by.., 0);
        self.steps[STEPS - by..].fill(N::default());
        let place = usize::from(self.place).saturating_sub(by);
        self.place = place as u16;
    }
}

#[cfg(test)]
mod tests {
    use super::{Burst, Bursts};
    use proptest::prelude::*;

    type Series = super::Series<u64>;

    fn points(series: &Series, until: u64) -> Vec<(u64, u64)> {
        series.points(until).collect()
    }

    #[test]
    fn an_empty_series_has_no_points() {
        assert_eq!(points(&Series::default(), 1 << 40), []);
        assert_eq!(points(&Series::default().reaching(1 << 40), 1 << 40), []);
    }

    #[test]
    fn steps_are_a_microsecond_long_at_first_and_begin_at_multiples() {
        let mut series = Series::default();
        // 10,000,000 is in step 9765, which begins at 9,999,360.
        series.add(10_000_000, 1);
        series.add(10_000_383, 2);
        series.add(10_000_384, 4);
        series.add(10_003_456, 8);
        assert_eq!(series.step(), 1024);
        let want = [
            (9_999_360, 3),
            (10_000_384, 4),
            (10_001_408, 0),
            (10_002_432, 0),
            (10_003_456, 8),
        ];
        assert_eq!(points(&series, 0), want, "never fewer than hold something");
        let until = points(&series, 10_004_480);
        assert_eq!(until.len(), 6);
        assert_eq!(until.last(), Some(&(10_004_480, 0)));
        assert_eq!(points(&series, u64::MAX).len(), 64);
    }

    #[test]
    fn late_times_extend_the_front_within_reach() {
        let mut series = Series::default();
        series.add(100 << 10, 1);
        series.add(98 << 10, 2);
        assert_eq!(
            points(&series, 0),
            [(98 << 10, 2), (99 << 10, 0), (100 << 10, 1)]
        );
        // 100 steps back: merged in pairs.
        series.add(0, 4);
        let now = points(&series, 0);
        assert_eq!((series.step(), now.len()), (2048, 51));
        assert_eq!(
            (now[0], now[49], now[50]),
            ((0, 4), (49 << 11, 2), (50 << 11, 1))
        );
        // Before the reach of the longest steps, or already dropped.
        series.add(100 << 31, 8);
        series.add(1, 16);
        let now = points(&series, 0);
        assert_eq!((now.len(), now[0]), (64, (37 << 31, 0)));
        assert_eq!(now.iter().map(|(_, amount)| amount).sum::<u64>(), 8);
    }

    #[test]
    fn pairs_are_merged_when_the_span_is_full() {
        let mut series = Series::default();
        // Steps 1 to 64; the first is the second of its pair.
        for step in 1..=64 {
            series.add(step * 1024, step);
        }
        assert_eq!((series.step(), points(&series, 0).len()), (1024, 64));
        series.add(65 * 1024 + 1023, 65);
        assert_eq!(series.step(), 2048);
        let now = points(&series, 0);
        assert_eq!(now.len(), 33);
        assert_eq!((now[0], now[1]), ((0, 1), (2048, 2 + 3)));
        assert_eq!(now[32], (64 * 1024, 64 + 65));
        // Far away: 2^21 times the length of the first step, and 64 of those cover it.
        series.add(60 << 31, 7);
        assert_eq!(series.step(), 1 << 31);
        let now = points(&series, 0);
        assert_eq!((now[0], now[60]), ((0, 65 * 33), (60 << 31, 7)));
    }

    #[test]
    fn the_longest_steps_scroll_out() {
        let mut series = Series::default();
        for second in 0..100 {
            series.add(second << 31, 1 + second);
        }
        let now = points(&series, 99 << 31);
        assert_eq!(now.len(), 64);
        assert_eq!((now[0], now[63]), ((36 << 31, 37), (99 << 31, 100)));
        let later = series.reaching(130 << 31);
        let now = points(&later, 130 << 31);
        assert_eq!((now[0], now[63]), ((67 << 31, 68), (130 << 31, 0)));
        series.add(u64::MAX, 5);
        let now = points(&series, u64::MAX);
        assert_eq!((now[0].1, now[63].1, now.len()), (0, 5, 64));
    }

    #[test]
    fn a_millisecond_burst_is_visible_two_minutes_later() {
        let (mut burst, mut series) = (Burst::default(), super::Series::<Bursts>::default());
        let start = 1_767_225_600_000_000_000;
        let mut add = |at: u64| {
            series.add(start + at, burst.count(start + at));
        };
        // Ten a second, and once 500 within a millisecond.
        for tenth in 0..1_300 {
            add(tenth * 100_000_000);
            if tenth == 10 {
                (0..500).for_each(|n| add(1_010_000_000 + n * 2_000));
            }
        }
        let most: Vec<_> = series.points(0).map(|(_, bursts)| bursts.most).collect();
        // The burst may span two of the counted milliseconds.
        let greatest = *most.iter().max().unwrap();
        assert!((250..=501).contains(&greatest), "{most:?}");
        assert!(
            most.iter().filter(|most| **most > 1).count() <= 2,
            "{most:?}"
        );
        let all: u32 = series.points(0).map(|(_, bursts)| bursts.count).sum();
        assert_eq!((all, series.step()), (1_800, 1 << 31));
    }

    #[test]
    fn two_series_share_an_axis() {
        let (mut a, mut b) = (Series::default(), Series::default());
        a.add(3 << 10, 1);
        a.add(4 << 10, 2);
        b.add(1 << 10, 4);
        b.add(200 << 10, 8);
        // b has steps of 4, starting at 0; a is aligned with it.
        assert_eq!(b.step(), 4 << 10);
        let (start, step, left, right) = a.side_by_side(&b, 203 << 10);
        assert_eq!((start, step, left.len(), right.len()), (0, 4 << 10, 51, 51));
        assert_eq!((left[0], left[1], right[0], right[50]), (1, 2, 4, 8));
        assert_eq!(left.iter().sum::<u64>(), 3);
        let (start, step, left, right) = a.side_by_side(&Series::default(), 5 << 10);
        assert_eq!(
            (start, step, left, right),
            (3 << 10, 1 << 10, vec![1, 2, 0], vec![])
        );
    }

    proptest! {
        #[test]
        fn sums_remain_until_they_scroll_out(
            adds in proptest::collection::vec((0..64_u64 << 30, 0_u16..20), 1..200),
        ) {
            let start = adds.iter().map(|(at, _)| *at).min().unwrap();
            let mut series = Series::default();
            for (at, amount) in &adds {
                series.add(*at, u64::from(*amount));
            }
            let want: u64 = adds.iter().map(|(_, amount)| u64::from(*amount)).sum();
            let until = adds.iter().map(|(at, _)| *at).max().unwrap();
            let now = points(&series, until);
            prop_assert_eq!(now.iter().map(|(_, amount)| amount).sum::<u64>(), want);
            prop_assert!(now.iter().all(|(start, _)| start % series.step() == 0));
            prop_assert!(now[0].0 <= start && now.last().unwrap().0 + series.step() > until);
            for (i, (at, amount)) in now.iter().enumerate() {
                prop_assert_eq!(*at, now[0].0 + i as u64 * series.step());
                let within = adds.iter().filter(|(added, _)| (*at..*at + series.step()).contains(added));
                prop_assert_eq!(*amount, within.map(|(_, amount)| u64::from(*amount)).sum::<u64>());
            }
        }

        #[test]
        fn any_times_are_handled(adds in proptest::collection::vec((any::<u64>(), any::<u64>()), 1..50)) {
            let (mut a, mut b) = (super::Series::<Bursts>::default(), Series::default());
            for (at, other) in adds {
                a.add(at, Bursts { count: 1, most: 1 });
                b.add(other, 1);
                prop_assert!(a.points(other).count() <= 64);
                let (_, _, left, right) = a.side_by_side(&b, at);
                prop_assert!(left.len() <= 64 && left.len() == right.len());
            }
        }

        /// Until steps are dropped, two series on one axis keep their sums.
        #[test]
        fn side_by_side_keeps_the_sums(
            adds in proptest::collection::vec((0..60_u64 << 30, any::<bool>()), 1..60),
        ) {
            let (mut a, mut b) = (Series::default(), Series::default());
            for (at, which) in &adds {
                if *which { &mut a } else { &mut b }.add(*at, 1);
            }
            let until = adds.iter().map(|(at, _)| *at).max().unwrap();
            let (start, step, left, right) = a.side_by_side(&b, until);
            let sum = |values: &[u64]| values.iter().sum::<u64>();
            let ones = adds.iter().filter(|(_, which)| *which).count();
            prop_assert_eq!((sum(&left), sum(&right)), (ones as u64, (adds.len() - ones) as u64));
            prop_assert!(start <= adds.iter().map(|(at, _)| *at).max().unwrap());
            prop_assert_eq!(start % step, 0);
        }
    }
}
