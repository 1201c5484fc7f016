//! One quantity over time in 64 steps, whose length grows with the time told of.

/// Steps kept.
pub const STEPS: usize = 64;
/// Length of the first steps, as a power of two of nanoseconds: about a microsecond.
const FINEST: u8 = 10;
/// Length of the longest steps, as a power of two of nanoseconds: about a second.
const COARSEST: u8 = 30;

/// Sums over 64 steps of time.
///
/// A step begins at 1.024 µs (2^10 ns). Whenever a time lies beyond the last step, steps are merged in pairs, until they
/// are 1.07 s long (2^30 ns); then the oldest steps leave. So the last minute is always there, and a short burst is shown
/// in microseconds. A step of 2^n ns begins at a multiple of its length. A time before the first step counts as in it.
///
/// What is added to the newest step is summed exactly (as far as an `f64` can); sums of older ones are rounded to an
/// `f32`.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Number of the first step: its start, divided by the step.
    first: u64,
    /// What the newest step with something in it holds.
    newest: f64,
    /// That step's place.
    place: u8,
    /// Power of two of a step.
    shift: u8,
    /// Whether nothing was added yet.
    empty: bool,
    steps: [f32; STEPS],
}

impl Default for Series {
    fn default() -> Self {
        Self::new()
    }
}

impl Series {
    /// Nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            first: 0,
            newest: 0.0,
            place: 0,
            shift: FINEST,
            empty: true,
            steps: [0.0; STEPS],
        }
    }

    /// Whether nothing was added yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.empty
    }

    /// Adds `amount` at the time `at`, in nanoseconds.
    #[inline]
    pub fn add(&mut self, at: u64, amount: f32) {
        let mut place = (at >> self.shift).wrapping_sub(self.first);
        if self.empty || place >= STEPS as u64 {
            self.reach(at);
            place = (at >> self.shift)
                .saturating_sub(self.first)
                .min(STEPS as u64 - 1);
        }
        let place = place as usize;
        if place > usize::from(self.place) {
            self.place = place as u8;
            self.newest = 0.0;
        }
        let Some(step) = self.steps.get_mut(place) else {
            return;
        };
        if place == usize::from(self.place) {
            self.newest += f64::from(amount);
            *step = self.newest as f32;
        } else {
            *step += amount;
        }
    }

    /// Length of a step, in nanoseconds.
    #[must_use]
    pub const fn step(&self) -> u64 {
        1 << self.shift
    }

    /// Start of each step, from the first to the one that `until` is in (64 at most), and what was added in it. None
    /// where nothing was added yet.
    ///
    /// Steps are as long as the last addition left them: [`reaching`](Self::reaching) first, to have a chart that goes on
    /// to `until` where that is farther away than 64 steps.
    pub fn points(&self, until: u64) -> impl Iterator<Item = (u64, f32)> {
        let last = (until >> self.shift)
            .saturating_sub(self.first)
            .max(u64::from(self.place));
        let count = if self.empty {
            0
        } else {
            usize::try_from(last).unwrap_or(STEPS).min(STEPS - 1) + 1
        };
        let steps = self.steps.iter().take(count).zip(self.first..);
        steps.map(|(amount, number)| (number << self.shift, *amount))
    }

    /// The same sums with steps long enough for `until` to be in one of them.
    #[must_use]
    pub fn reaching(&self, until: u64) -> Self {
        let mut series = self.clone();
        if !series.empty {
            series.reach(until);
        }
        series
    }

    /// Two series on one axis: the start of the first step, the length of a step, and what each has in every step up to
    /// the one that `until` is in: as many of both, 64 at most, unless one of them is empty.
    #[must_use]
    pub fn side_by_side(&self, other: &Self, until: u64) -> (u64, u64, Vec<f32>, Vec<f32>) {
        let (mut a, mut b) = (self.reaching(until), other.reaching(until));
        if a.empty || b.empty {
            let some = if a.empty { &b } else { &a };
            let start = some.points(until).next().map_or(0, |(start, _)| start);
            let values = |series: &Self| series.points(until).map(|(_, amount)| amount).collect();
            return (start, some.step(), values(&a), values(&b));
        }
        // Whatever lies in either of them is to have a place.
        let from = a.start().min(b.start());
        a.begin(from);
        b.begin(from);
        for series in [&mut a, &mut b] {
            series.reach(until);
        }
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
        let values = |series: &Self| -> Vec<f32> {
            let skip = usize::try_from(first - series.first).unwrap_or(STEPS);
            let nothing = core::iter::repeat(&0.0);
            let steps = series.steps.iter().skip(skip).chain(nothing);
            steps.take(count).copied().collect()
        };
        (first << shift, 1 << shift, values(&a), values(&b))
    }

    fn start(&self) -> u64 {
        self.first << self.shift
    }

    /// Makes room in front, so that the first step is the one that `from`, not later than it, is in; unless that is so far
    /// away that 64 of the longest steps do not reach back to it.
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
            self.steps[..by].fill(0.0);
            self.first -= by as u64;
            self.place += by as u8;
        }
    }

    /// Sees to it that `at` is not beyond the last step.
    #[cold]
    fn reach(&mut self, at: u64) {
        if self.empty {
            self.empty = false;
            self.first = at >> self.shift;
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

    /// Merges 2^`by` steps into one.
    fn merge(&mut self, by: u8) {
        if by == 0 {
            return;
        }
        let first = self.first >> by;
        let place = |old: usize| ((self.first + old as u64) >> by).saturating_sub(first) as usize;
        let mut steps = [0.0_f64; STEPS];
        let newest = usize::from(self.place);
        for (old, amount) in self.steps.iter().enumerate().take(newest + 1) {
            let amount = if old == newest {
                self.newest
            } else {
                f64::from(*amount)
            };
            // Never beyond its old place.
            if let Some(sum) = steps.get_mut(place(old)) {
                *sum += amount;
            }
        }
        let place = place(newest);
        self.newest = steps.get(place).copied().unwrap_or_default();
        self.place = place as u8;
        self.first = first;
        self.shift += by;
        self.steps = steps.map(|sum| sum as f32);
    }

    /// Lets the oldest `by` steps go.
    fn scroll(&mut self, by: u64) {
        self.first += by;
        let by = usize::try_from(by).unwrap_or(STEPS).min(STEPS);
        self.steps.copy_within(by.., 0);
        self.steps[STEPS - by..].fill(0.0);
        match usize::from(self.place).checked_sub(by) {
            Some(place) => self.place = place as u8,
            None => (self.place, self.newest) = (0, 0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn points(series: &Series, until: u64) -> Vec<(u64, f32)> {
        series.points(until).collect()
    }

    #[test]
    fn nothing_has_no_points() {
        assert_eq!(points(&Series::new(), 1 << 40), []);
        assert_eq!(points(&Series::new().reaching(1 << 40), 1 << 40), []);
    }

    #[test]
    fn steps_are_a_microsecond_long_at_first_and_begin_at_multiples() {
        let mut series = Series::new();
        // 10,000,000 is in step 9765, which begins at 9,999,360.
        series.add(10_000_000, 1.0);
        series.add(10_000_383, 2.0);
        series.add(10_000_384, 4.0);
        series.add(10_003_456, 8.0);
        assert_eq!(series.step(), 1024);
        let want = [
            (9_999_360, 3.0),
            (10_000_384, 4.0),
            (10_001_408, 0.0),
            (10_002_432, 0.0),
            (10_003_456, 8.0),
        ];
        assert_eq!(points(&series, 0), want, "never fewer than hold something");
        let until = points(&series, 10_004_480);
        assert_eq!(until.len(), 6);
        assert_eq!(until.last(), Some(&(10_004_480, 0.0)));
        assert_eq!(points(&series, u64::MAX).len(), 64);
        series.add(5, 16.0);
        assert_eq!(points(&series, 0)[0], (9_999_360, 19.0), "early ones too");
    }

    #[test]
    fn pairs_are_merged_when_the_span_is_full() {
        let mut series = Series::new();
        // Steps 1 to 64, the first one the second of its pair.
        for step in 1..=64 {
            series.add(step * 1024, step as f32);
        }
        assert_eq!((series.step(), points(&series, 0).len()), (1024, 64));
        series.add(65 * 1024 + 1023, 65.0);
        assert_eq!(series.step(), 2048);
        let now = points(&series, 0);
        assert_eq!(now.len(), 33);
        assert_eq!((now[0], now[1]), ((0, 1.0), (2048, 2.0 + 3.0)));
        assert_eq!(now[32], (64 * 1024, 64.0 + 65.0));
        // Far away: 2^20 times as long as the first step, and 64 of those reach.
        series.add(60 << 30, 7.0);
        assert_eq!(series.step(), 1 << 30);
        let now = points(&series, 0);
        assert_eq!((now[0], now[60]), ((0, 65.0 * 33.0), (60 << 30, 7.0)));
    }

    #[test]
    fn the_longest_steps_scroll_out() {
        let mut series = Series::new();
        for second in 0..100 {
            series.add(second << 30, 1.0 + second as f32);
        }
        let now = points(&series, 99 << 30);
        assert_eq!(now.len(), 64);
        assert_eq!((now[0], now[63]), ((36 << 30, 37.0), (99 << 30, 100.0)));
        let later = series.reaching(130 << 30);
        let now = points(&later, 130 << 30);
        assert_eq!((now[0], now[63]), ((67 << 30, 68.0), (130 << 30, 0.0)));
        series.add(u64::MAX, 5.0);
        let now = points(&series, u64::MAX);
        assert_eq!((now[0].1, now[63].1, now.len()), (0.0, 5.0, 64));
    }

    #[test]
    fn many_small_amounts_in_a_long_step_are_not_lost() {
        // 400 Gbit/s for a second, in frames of 1500 octets: an `f32` alone cannot count that.
        let mut series = Series::new();
        series.add(0, 0.0);
        series.add(63 << 30, 0.0);
        for _ in 0..33_000_000 {
            series.add(63 << 30, 1500.0);
        }
        let (_, sum) = series.points(63 << 30).last().unwrap();
        assert!(
            (f64::from(sum) / (33e6 * 1500.0) - 1.0).abs() < 1e-6,
            "{sum}"
        );
    }

    #[test]
    fn two_share_an_axis() {
        let (mut a, mut b) = (Series::new(), Series::new());
        a.add(3 << 10, 1.0);
        a.add(4 << 10, 2.0);
        b.add(1 << 10, 4.0);
        b.add(200 << 10, 8.0);
        // b is in steps of 4, from 0; a follows.
        assert_eq!(b.step(), 4 << 10);
        let (start, step, left, right) = a.side_by_side(&b, 203 << 10);
        assert_eq!((start, step, left.len(), right.len()), (0, 4 << 10, 51, 51));
        assert_eq!(
            (left[0], left[1], right[0], right[50]),
            (1.0, 2.0, 4.0, 8.0)
        );
        assert_eq!(left.iter().sum::<f32>(), 3.0);
        let (start, step, left, right) = a.side_by_side(&Series::new(), 5 << 10);
        assert_eq!(
            (start, step, left, right),
            (3 << 10, 1 << 10, vec![1.0, 2.0, 0.0], vec![])
        );
    }

    #[test]
    fn it_is_small() {
        assert!(size_of::<Series>() <= 280);
    }

    proptest! {
        #[test]
        fn what_was_added_stays_until_it_scrolls_out(
            adds in proptest::collection::vec((0..64_u64 << 30, 0_u16..100), 1..200),
            early in any::<bool>(),
        ) {
            let mut adds = adds;
            if early {
                adds.sort_unstable();
            }
            let start = adds[0].0;
            let mut series = Series::new();
            for (at, amount) in &adds {
                series.add(*at, f32::from(*amount));
            }
            let want: f32 = adds.iter().map(|(_, amount)| f32::from(*amount)).sum();
            let until = adds.iter().map(|(at, _)| *at).max().unwrap();
            let now = points(&series, until);
            prop_assert_eq!(now.iter().map(|(_, amount)| amount).sum::<f32>(), want);
            prop_assert!(now.iter().all(|(start, _)| start % series.step() == 0));
            prop_assert!(now[0].0 <= start && now.last().unwrap().0 + series.step() > until);
            for (i, (at, _)) in now.iter().enumerate() {
                prop_assert_eq!(*at, now[0].0 + i as u64 * series.step());
            }
        }

        #[test]
        fn any_times_are_survived(adds in proptest::collection::vec((any::<u64>(), any::<u64>()), 1..50)) {
            let (mut a, mut b) = (Series::new(), Series::new());
            for (at, other) in adds {
                a.add(at, 1.0);
                b.add(other, 1.0);
                prop_assert!(a.points(other).count() <= 64);
                let (_, _, left, right) = a.side_by_side(&b, at);
                prop_assert!(left.len() <= 64 && left.len() == right.len());
            }
        }

        /// As long as nothing has scrolled out, two on one axis keep what they hold.
        #[test]
        fn side_by_side_keeps_the_sums(
            adds in proptest::collection::vec((0..60_u64 << 30, any::<bool>()), 1..60),
        ) {
            let (mut a, mut b) = (Series::new(), Series::new());
            for (at, which) in &adds {
                if *which { &mut a } else { &mut b }.add(*at, 1.0);
            }
            let until = adds.iter().map(|(at, _)| *at).max().unwrap();
            let (start, step, left, right) = a.side_by_side(&b, until);
            let sum = |values: &[f32]| values.iter().sum::<f32>();
            let ones = adds.iter().filter(|(_, which)| *which).count();
            prop_assert_eq!((sum(&left), sum(&right)), (ones as f32, (adds.len() - ones) as f32));
            prop_assert!(start <= adds.iter().map(|(at, _)| *at).max().unwrap());
            prop_assert_eq!(start % step, 0);
        }
    }
}
