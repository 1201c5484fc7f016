//! Time series, resampled to as many equal parts as there are columns.

/// Nanoseconds per second.
pub(super) const SECOND: u64 = 1_000_000_000;

/// Sums in steps of equal length. The first may begin before there was any data, and the last may
/// be incomplete.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steps {
    /// Start of the first step, in nanoseconds since the epoch.
    pub start: u64,
    /// Length of a step.
    pub step: u64,
    /// Start of counting.
    pub since: u64,
    /// End of counting.
    pub until: u64,
    /// The moment shown. Later data is excluded, and cannot be separated from earlier data in the
    /// same step.
    pub shown: u64,
}

impl Steps {
    /// Returns the start of the kept steps if earlier ones may have been dropped; those of the last
    /// two minutes are never dropped.
    pub(super) fn kept_since(self) -> Option<u64> {
        let is_old = self.until.saturating_sub(self.start) >= 120 * SECOND;
        is_old.then_some(self.start)
    }

    /// Returns that time up to the last complete step: at most a step less.
    pub(super) fn known(self, (from, to): (u64, u64)) -> (u64, u64) {
        let whole = self.shown.saturating_sub(self.start) / self.step.max(1);
        let end = (self.start).saturating_add(whole.saturating_mul(self.step));
        let is_later = self.until > self.shown;
        (from, if is_later { to.min(end).max(from) } else { to })
    }

    /// Distributes the values over `parts` equal parts of the time `from`, `to`; a step across an
    /// edge is divided in proportion to time.
    pub(super) fn parts(
        self,
        values: impl IntoIterator<Item = f64>,
        time: (u64, u64),
        parts: u16,
    ) -> Vec<f64> {
        self.fold(values, time, parts, |sum, value, [within, all]| {
            sum + value * (within / all)
        })
    }

    /// Returns the columns to draw for those parts. If steps are longer than parts, each is spread
    /// evenly, including the first and last one, which lie partly outside: a single packet in their
    /// remainder would look like a burst.
    pub(super) fn columns(
        self,
        values: impl IntoIterator<Item = f64>,
        time: (u64, u64),
        parts: u16,
    ) -> Vec<f64> {
        let width = time.1.saturating_sub(time.0) as f64 / f64::from(parts.max(1));
        if width >= self.step as f64 {
            return self.parts(values, time, parts);
        }
        let part = width / self.step as f64;
        self.fold(values, time, parts, |sum, value, [within, _]| {
            sum + value * within * part
        })
    }

    /// Returns the start of a step, if it does not extend beyond the moment shown.
    fn start(&self, number: u64) -> Option<u64> {
        let start = (self.start).saturating_add(number.saturating_mul(self.step));
        let is_later = start.saturating_add(self.step) > self.shown && self.until > self.shown;
        (!is_later).then_some(start)
    }

    /// Returns the steps that overlap that time.
    pub(super) fn within(
        self,
        values: impl IntoIterator<Item = f64>,
        (from, to): (u64, u64),
    ) -> Vec<f64> {
        let is_in = |number: u64| {
            let start = self.start(number);
            start.is_some_and(|start| start <= to && start.saturating_add(self.step) > from)
        };
        let values = values.into_iter().zip(0u64..);
        let values = values.filter(|(_, number)| is_in(*number));
        values.map(|(value, _)| value).collect()
    }

    /// Returns the maximum of the steps that overlap each of those parts.
    pub(super) fn most(
        self,
        values: impl IntoIterator<Item = f64>,
        time: (u64, u64),
        parts: u16,
    ) -> Vec<f64> {
        self.fold(values, time, parts, |most, value, [within, _]| {
            if within > 0.0 { most.max(value) } else { most }
        })
    }

    /// Adds each step to the parts that it overlaps, with its length in that part and in total, in
    /// parts.
    fn fold(
        self,
        values: impl IntoIterator<Item = f64>,
        (from, to): (u64, u64),
        parts: u16,
        take: impl Fn(f64, f64, [f64; 2]) -> f64,
    ) -> Vec<f64> {
        let mut values_by_part = vec![0.0; parts.into()];
        let width = to.saturating_sub(from) as f64 / f64::from(parts);
        // Integers are subtracted first: a float lacks the precision for nanoseconds since the
        // epoch.
        let place = |at: u64| (i128::from(at) - i128::from(from)) as f64 / width;
        if width <= 0.0 || self.step == 0 {
            return values_by_part;
        }
        for (value, number) in values.into_iter().zip(0u64..) {
            // NaN would spoil all sums.
            if !value.is_finite() || value <= 0.0 {
                continue;
            }
            let Some(start) = self.start(number) else {
                continue;
            };
            let end = start
                .saturating_add(self.step)
                .min(self.until.max(start.saturating_add(1)));
            let start = start.max(self.since.min(end - 1));
            let (start, end) = (place(start), place(end));
            let first = start.max(0.0) as usize;
            let last = end.min(f64::from(parts)).ceil().max(0.0) as usize;
            for (part, at) in values_by_part.iter_mut().zip(0u32..).take(last).skip(first) {
                let at = f64::from(at);
                let within = end.min(at + 1.0) - start.max(at);
                let all = (end - start).max(f64::MIN_POSITIVE);
                *part = take(*part, value, [within.clamp(0.0, all), all]);
            }
        }
        values_by_part
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STEPS: Steps = Steps {
        start: 1_000,
        step: 100,
        since: 0,
        until: 1_950,
        shown: u64::MAX,
    };

    #[test]
    fn steps_are_divided_in_proportion_to_time() {
        assert_eq!(
            STEPS.parts([4.0, 8.0], (1_000, 1_200), 4),
            [2.0, 2.0, 4.0, 4.0]
        );
        assert_eq!(STEPS.parts([4.0, 8.0], (900, 1_300), 2), [4.0, 8.0]);
        assert_eq!(STEPS.parts([4.0], (1_050, 1_150), 2), [2.0, 0.0]);
        // Data at the last moment is in the last part.
        let moment = Steps {
            start: 1_000,
            since: 1_000,
            until: 1_001,
            ..STEPS
        };
        assert_eq!(moment.parts([1.0], (1_000, 1_001), 3), [1.0 / 3.0; 3]);
        // At a moment before the last packets, the contents of that step are unknown.
        let shown = Steps {
            shown: 1_150,
            ..STEPS
        };
        assert_eq!(shown.parts([4.0, 8.0], (1_000, 1_150), 1), [4.0]);
        assert_eq!(shown.within([4.0, 8.0], (1_000, 1_150)), [4.0]);
        // The last step is half complete: all of it was in that half.
        let last = [0.0; 9].into_iter().chain([6.0]);
        assert_eq!(STEPS.parts(last, (1_900, 2_000), 2), [6.0, 0.0]);
        // Nothing arrived before 1,080: all of the first step was after it.
        let since = Steps {
            since: 1_080,
            ..STEPS
        };
        assert_eq!(
            since.parts([6.0, 8.0], (1_080, 1_200), 2),
            [6.0 + 8.0 * 0.4, 8.0 * 0.6]
        );
        assert_eq!(
            STEPS.most([4.0, 8.0, 2.0], (1_000, 1_300), 2),
            [8.0, 8.0],
            "the middle step lies in both"
        );
    }

    #[test]
    fn an_earlier_moment_ends_with_its_last_complete_step() {
        let shown = Steps {
            shown: 1_350,
            ..STEPS
        };
        assert_eq!(shown.known((1_100, 1_350)), (1_100, 1_300));
        assert_eq!(shown.known((1_320, 1_350)), (1_320, 1_320));
        assert_eq!(STEPS.known((1_100, 1_350)), (1_100, 1_350));
    }

    #[test]
    fn an_even_stream_has_columns_of_equal_height() {
        // One in each step; the first begins before any data, and the last is incomplete.
        let steps = Steps {
            since: 1_090,
            until: 1_310,
            ..STEPS
        };
        let window = (1_090, 1_310);
        let columns = steps.columns([1.0; 4], window, 22);
        assert!(columns.iter().all(|column| *column == 0.1), "{columns:?}");
        // Columns longer than steps have their sums.
        assert_eq!(steps.columns([1.0; 4], window, 1), [4.0]);
        assert_eq!(
            steps.within([1.0, 2.0, 3.0, 4.0], (1_100, 1_250)),
            [2.0, 3.0]
        );
        assert_eq!(steps.within([1.0, 2.0, 3.0, 4.0], window).len(), 4);
        assert_eq!(steps.within([1.0, 2.0], (1_050, 1_050)), [1.0], "a moment");
    }

    proptest! {
        #[test]
        fn sums_are_preserved(
            values in prop::collection::vec(0.0..1e6f64, 0..64), start in 0u64..1 << 60, step in 1u64..1 << 40, parts in 1u16..300,
        ) {
            let end = start + step * 64;
            let steps = Steps { start, step, since: 0, until: end, shown: end };
            let sum: f64 = steps.parts(values.iter().copied(), (start, end), parts).iter().sum();
            let drawn: f64 = steps.columns(values.iter().copied(), (start, end), parts).iter().sum();
            let all: f64 = values.iter().sum();
            prop_assert!((drawn - all).abs() <= all * 1e-3 + 1e-9, "{drawn} {all}");
            prop_assert!((sum - all).abs() <= all * 1e-3 + 1e-9, "{sum} {all}");
        }

        #[test]
        fn unusual_values_are_handled(
            values in prop::collection::vec(any::<f64>(), 0..70), start in any::<u64>(), step in any::<u64>(), since in any::<u64>(), until in any::<u64>(),
            from in any::<u64>(), to in any::<u64>(), parts in 0u16..300,
        ) {
            let steps = Steps { start, step, since, until, shown: until };
            let values_by_part = steps.parts(values, (from, to), parts);
            prop_assert_eq!(values_by_part.len(), usize::from(parts));
            prop_assert!(values_by_part.iter().all(|value| value.is_finite()));
        }
    }
}
