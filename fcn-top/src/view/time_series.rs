//! Time series, resampled to as many equal parts as there are columns to show them in.

/// So many nanoseconds are a second.
pub(super) const SECOND: u64 = 1_000_000_000;

/// Sums in steps of one length, of which the first may have begun before there was anything, and the last may not be over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steps {
    /// Start of the first step, in nanoseconds since the epoch.
    pub start: u64,
    /// Length of a step.
    pub step: u64,
    /// Nothing was counted before this moment.
    pub since: u64,
    /// Nothing was counted behind this moment.
    pub until: u64,
    /// The moment shown. What came later is no part of it, nor can it be told from what came before in the same step.
    pub shown: u64,
}

impl Steps {
    /// From when on steps are kept, where those of the beginning may have left, as of the last two minutes none has.
    pub(super) fn kept_since(self) -> Option<u64> {
        let is_old = self.until.saturating_sub(self.start) >= 120 * SECOND;
        is_old.then_some(self.start)
    }

    /// That time up to where what came in it is known: at most a step less.
    pub(super) fn known(self, (from, to): (u64, u64)) -> (u64, u64) {
        let whole = self.shown.saturating_sub(self.start) / self.step.max(1);
        let end = (self.start).saturating_add(whole.saturating_mul(self.step));
        let is_later = self.until > self.shown;
        (from, if is_later { to.min(end).max(from) } else { to })
    }

    /// What lies in each of `parts` equal parts of the time `from`, `to`; of a step across an edge its share by time.
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

    /// What is drawn of each of those parts: where steps are longer, their shares as if each were even, also of the first and the
    /// last one, of which a part lies outside: a single packet in what is left of it would look like a burst.
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

    /// Start of a step, where nothing in it came behind the moment shown.
    fn start(&self, number: u64) -> Option<u64> {
        let start = (self.start).saturating_add(number.saturating_mul(self.step));
        let is_later = start.saturating_add(self.step) > self.shown && self.until > self.shown;
        (!is_later).then_some(start)
    }

    /// The steps that some of that time lies in.
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

    /// The most in any step that lies in each of those parts, or in a part of it.
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

    /// Takes each step into the parts that it lies in, with how many parts long it is in that one, and in all.
    fn fold(
        self,
        values: impl IntoIterator<Item = f64>,
        (from, to): (u64, u64),
        parts: u16,
        take: impl Fn(f64, f64, [f64; 2]) -> f64,
    ) -> Vec<f64> {
        let mut values_by_part = vec![0.0; parts.into()];
        let width = to.saturating_sub(from) as f64 / f64::from(parts);
        // Whole numbers are subtracted: a float has no room for nanoseconds since the epoch.
        let place = |at: u64| (i128::from(at) - i128::from(from)) as f64 / width;
        if width <= 0.0 || self.step == 0 {
            return values_by_part;
        }
        for (value, number) in values.into_iter().zip(0u64..) {
            // What is not a number would spoil all.
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
    fn steps_are_shared_out_by_time() {
        assert_eq!(
            STEPS.parts([4.0, 8.0], (1_000, 1_200), 4),
            [2.0, 2.0, 4.0, 4.0]
        );
        assert_eq!(STEPS.parts([4.0, 8.0], (900, 1_300), 2), [4.0, 8.0]);
        assert_eq!(STEPS.parts([4.0], (1_050, 1_150), 2), [2.0, 0.0]);
        // What came at the last moment is in the last part.
        let moment = Steps {
            start: 1_000,
            since: 1_000,
            until: 1_001,
            ..STEPS
        };
        assert_eq!(moment.parts([1.0], (1_000, 1_001), 3), [1.0 / 3.0; 3]);
        // At a moment before the last packets, what is known of that step is nothing.
        let shown = Steps {
            shown: 1_150,
            ..STEPS
        };
        assert_eq!(shown.parts([4.0, 8.0], (1_000, 1_150), 1), [4.0]);
        assert_eq!(shown.within([4.0, 8.0], (1_000, 1_150)), [4.0]);
        // The last step is half over: all of it was in that half.
        let last = [0.0; 9].into_iter().chain([6.0]);
        assert_eq!(STEPS.parts(last, (1_900, 2_000), 2), [6.0, 0.0]);
        // Nothing came before 1,080: all of the first step was behind it.
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
    fn what_is_drawn_of_an_earlier_moment_ends_with_the_last_step_before_it() {
        let shown = Steps {
            shown: 1_350,
            ..STEPS
        };
        assert_eq!(shown.known((1_100, 1_350)), (1_100, 1_300));
        assert_eq!(shown.known((1_320, 1_350)), (1_320, 1_320));
        assert_eq!(STEPS.known((1_100, 1_350)), (1_100, 1_350));
    }

    #[test]
    fn what_comes_evenly_has_columns_of_one_height() {
        // One in each step, the first of which began before there was anything, and the last of which is not over.
        let steps = Steps {
            since: 1_090,
            until: 1_310,
            ..STEPS
        };
        let window = (1_090, 1_310);
        let columns = steps.columns([1.0; 4], window, 22);
        assert!(columns.iter().all(|column| *column == 0.1), "{columns:?}");
        // Columns longer than steps hold what is in them.
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
        fn nothing_is_lost_or_made_up(
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
        fn odd_values_do_no_harm(
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
