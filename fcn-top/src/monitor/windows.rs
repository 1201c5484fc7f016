//! Rates per second: over the last tenth of a second, second and ten seconds, and the maximum over
//! ten consecutive tenths of a second of the clock, including the current one (the peak). A burst
//! may be split at the edge of a tenth, so a second that starts inside one may have more; never
//! less.
//!
//! Rates cover completed steps: the current step does not have all its packets yet. So an even
//! stream has its exact rate at every moment, a tenth of a second late. Over ten seconds the steps
//! are whole seconds, so the rate is up to a second late: a hundred tenths would take half as much
//! memory again as the rest of a row. Time is that of the packets.

use super::series::Sum;

/// A step of the fine ring, in nanoseconds.
pub const TENTH: u64 = 100_000_000;
const SECOND: u64 = 1_000_000_000;
/// Packets needed for a rate over less than its full period: one more or less, by chance at the
/// edges of the period, is a tenth of them.
pub const ENOUGH: f64 = 10.0;
/// Minimum sum for a rate.
#[derive(Clone, Copy, Debug)]
pub struct Least {
    sum: f64,
    /// True if it applies even when the full period was captured.
    always: bool,
}

impl Least {
    /// Requires `sum` if less than the full period was captured.
    pub const fn in_part(sum: f64) -> Self {
        let always = false;
        Self { sum, always }
    }

    /// Requires enough samples, each of which stands for `each`: with fewer, a rate is little more
    /// than chance.
    pub const fn of_samples(each: f64) -> Self {
        let (sum, always) = (ENOUGH * each, true);
        Self { sum, always }
    }
}

/// Steps covered by a rate.
const OVER: u64 = 10;
/// Steps in a ring: the current one, and the completed ones.
const STEPS: usize = OVER as usize + 1;

/// Returns the index in a ring of a step counted from the epoch.
const fn place(step: u64) -> usize {
    (step % STEPS as u64) as usize
}

/// Sums over the latest steps of one length.
#[derive(Clone, Debug, Default)]
pub struct Ring<N> {
    /// Latest step with a count.
    latest: u64,
    /// Step s is at index s modulo their number.
    counts: [N; STEPS],
}

impl<N: Sum + Into<u64>> Ring<N> {
    /// Adds `amount` to the tenth of a second that contains `at`.
    #[inline]
    pub fn add_at(&mut self, at: u64, amount: N) {
        self.add(at / TENTH, amount);
    }

    /// Returns the rate per second over the last ten completed tenths, or over those since `since`
    /// if they have at least `least`.
    pub fn rate_1s(&self, now: u64, since: u64, least: Least) -> Option<f64> {
        self.rate(TENTH, OVER, (now, since), least)
    }

    /// Returns the sum over the last ten completed tenths.
    pub fn last_second(&self, now: u64) -> N {
        let running = now / TENTH;
        self.sum(running.saturating_sub(OVER)..running)
    }

    /// Adds `amount`; returns how many steps before the latest one. Steps out of the ring's reach
    /// are ignored.
    #[inline]
    fn add(&mut self, step: u64, amount: N) -> u64 {
        if step > self.latest {
            self.roll(step);
        }
        let ago = self.latest - step;
        if ago <= OVER
            && let Some(count) = self.counts.get_mut(place(step))
        {
            *count = count.and(amount);
        }
        ago
    }

    /// Makes `step`, a later one, the latest.
    #[cold]
    fn roll(&mut self, step: u64) {
        if step - self.latest > OVER {
            self.counts = [N::default(); STEPS];
        } else {
            for number in self.latest + 1..=step {
                if let Some(count) = self.counts.get_mut(place(number)) {
                    *count = N::default();
                }
            }
        }
        self.latest = step;
    }

    fn count(&self, step: u64) -> N {
        let has = step <= self.latest && self.latest - step <= OVER;
        let count = self.counts.get(place(step)).filter(|_| has);
        count.copied().unwrap_or_default()
    }

    /// Returns the sum over `steps`.
    fn sum(&self, steps: impl Iterator<Item = u64>) -> N {
        steps.fold(N::default(), |sum, step| sum.and(self.count(step)))
    }

    /// Returns the rate per second over the last `steps` steps of `unit` nanoseconds completed at
    /// `now`, limited to those captured completely, with packets captured since `since`. `None` if
    /// there are none, or if fewer steps than requested have less than `least`: one packet in two
    /// tenths of a second is not five per second, and none in two tenths is not zero.
    fn rate(&self, unit: u64, steps: u64, (now, since): (u64, u64), least: Least) -> Option<f64> {
        let running = now / unit;
        let first = running.saturating_sub(steps).max(since.div_ceil(unit));
        let watched = running.checked_sub(first).filter(|steps| *steps > 0)?;
        let sum = self.sum(first..running).into() as f64;
        let bears = sum >= least.sum || !least.always && watched == steps;
        bears.then(|| sum * SECOND as f64 / (watched * unit) as f64)
    }
}

/// Counts by time. Packets of several interfaces need not arrive in order.
#[derive(Clone, Debug, Default)]
pub struct Windows {
    tenths: Ring<u32>,
    /// Sum of the latest ten tenths, including the current one.
    sum: u32,
    peak: u32,
    /// Counts of the tenths before the latest one, by seconds.
    seconds: Ring<u32>,
}

impl Windows {
    /// Counts one at `at`, in nanoseconds since the epoch. Times out of the rings' reach are
    /// ignored.
    #[inline]
    pub fn add(&mut self, at: u64) {
        self.add_some(at, 1);
    }

    /// Counts `count` at `at`.
    #[inline]
    pub fn add_some(&mut self, at: u64, count: u32) {
        let step = at / TENTH;
        if step > self.tenths.latest {
            self.begin(step);
        }
        let ago = self.tenths.add(step, count);
        if ago < OVER {
            self.sum = self.sum.saturating_add(count);
        }
        self.peak = self.peak.max(self.sum);
        if ago > 0 {
            self.settle(step, count);
        }
    }

    /// Starts another tenth, and adds the previous one to its second.
    #[cold]
    fn begin(&mut self, step: u64) {
        let latest = self.tenths.latest;
        self.settle(latest, self.tenths.count(latest));
        self.tenths.roll(step);
        self.sum = self.tenths.sum((step + 1).saturating_sub(OVER)..step);
    }

    /// Adds the count of a tenth to its second.
    #[cold]
    fn settle(&mut self, step: u64, count: u32) {
        self.seconds.add(step / OVER, count);
    }

    /// Returns the rate per second in the last completed tenth; `None` before there is one since
    /// `since`.
    pub fn rate_now(&self, now: u64, since: u64) -> Option<f64> {
        self.tenths
            .rate(TENTH, 1, (now, since), Least::in_part(0.0))
    }

    /// Returns the rate per second over the last ten completed tenths, or over those since `since`
    /// if they have enough.
    pub fn rate_1s(&self, now: u64, since: u64) -> Option<f64> {
        self.tenths.rate_1s(now, since, Least::in_part(ENOUGH))
    }

    /// Returns the rate per second over the last ten completed whole seconds of the clock, or over
    /// those since `since` if they have enough.
    pub fn rate_10s(&self, now: u64, since: u64) -> Option<f64> {
        self.rate_10s_of(now, since, Least::in_part(ENOUGH))
    }

    fn rate_10s_of(&self, now: u64, since: u64, least: Least) -> Option<f64> {
        let mut all = self.clone();
        let latest = all.tenths.latest;
        all.settle(latest, all.tenths.count(latest));
        all.seconds.rate(SECOND, OVER, (now, since), least)
    }

    /// Returns the three rates, shortest period first, for samples each of which stands for `each`.
    pub fn rates_of_samples(&self, now: u64, since: u64, each: f64) -> [Option<f64>; 3] {
        let (times, least) = ((now, since), Least::of_samples(each));
        [
            self.tenths.rate(TENTH, 1, times, least),
            self.tenths.rate(TENTH, OVER, times, least),
            self.rate_10s_of(now, since, least),
        ]
    }

    /// Returns the maximum over any ten consecutive tenths of a second of the clock.
    pub fn peak(&self) -> f64 {
        f64::from(self.peak)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const START: u64 = 1_767_225_600 * SECOND;
    const MILLISECOND: u64 = 1_000_000;

    fn counted(times: impl IntoIterator<Item = u64>) -> Windows {
        let mut windows = Windows::default();
        for at in times {
            windows.add(at);
        }
        windows
    }

    #[test]
    fn an_even_stream_has_its_rate_at_every_moment() {
        for (each, rate) in [(MILLISECOND, 1_000.0), (SECOND / 50_000, 50_000.0)] {
            for begin in [START, START + 337_123_456] {
                let mut windows = Windows::default();
                let mut at = begin;
                while at < begin + 3 * SECOND {
                    windows.add(at);
                    let known = |after| (at >= begin + after).then_some(rate);
                    let is = |found: Option<f64>, after| {
                        (found.is_none() || (found.unwrap() - rate).abs() < 1e-6)
                            && (known(after).is_none() || found.is_some())
                    };
                    assert!(is(windows.rate_now(at, begin), 2 * TENTH), "{at}");
                    assert!(is(windows.rate_1s(at, begin), 2 * TENTH), "{at}");
                    assert!(is(windows.rate_10s(at, begin), 2 * SECOND), "{at}");
                    at += each;
                }
                assert_eq!(windows.peak(), rate);
            }
        }
    }

    #[test]
    fn one_per_second_has_a_rate_of_one() {
        let mut windows = Windows::default();
        for second in 0..30 {
            let at = START + 137 * MILLISECOND + second * SECOND;
            windows.add(at);
            if second > 0 {
                for later in [0, TENTH, SECOND - 1] {
                    assert_eq!(windows.rate_1s(at + later, START), Some(1.0), "{second}");
                    let known = (at + later >= START + 10 * SECOND).then_some(1.0);
                    assert_eq!(windows.rate_10s(at + later, START), known, "{second}");
                }
            }
        }
    }

    #[test]
    fn short_periods_with_few_packets_have_no_rate() {
        let since = START - 3 * SECOND;
        let mut windows = Windows::default();
        for second in 0..12 {
            let at = START + second * SECOND + TENTH / 2;
            windows.add(at);
            for now in [at + TENTH, at + 2 * TENTH, at + SECOND - 1] {
                let known = [None, Some(1.0)];
                assert!(known.contains(&windows.rate_1s(now, START)), "{second}");
                assert!(known.contains(&windows.rate_10s(now, START)), "{second}");
            }
            // If the second before was captured, its contents are known.
            assert_eq!(windows.rate_1s(at + TENTH, since), Some(1.0));
        }
        assert_eq!(windows.rate_1s(START + 12 * SECOND, START), Some(1.0));
        assert_eq!(windows.rate_10s(START + 12 * SECOND, START), Some(1.0));
        // None in two tenths is not none in a second.
        let silent = Windows::default();
        assert_eq!(silent.rate_1s(START + 2 * TENTH, START), None);
        assert_eq!(silent.rate_1s(START + SECOND, START), Some(0.0));
    }

    #[test]
    fn the_peak_is_the_maximum_over_ten_consecutive_tenths() {
        let evenly = |rate: u64, seconds: u64| (0..rate * seconds).map(move |n| n * SECOND / rate);
        for rate in [1, 1_000, 1_000_000] {
            let times = evenly(rate, 3).map(|at| START + at);
            assert_eq!(counted(times).peak(), rate as f64);
        }
        // Bursts of a thousand, 0.9 s apart, and further.
        let burst = |at: u64| (0..1_000).map(move |n| START + at + n * 1_000);
        let peak = |apart: u64| counted(burst(0).chain(burst(apart))).peak();
        assert_eq!(peak(9 * TENTH), 2_000.0);
        assert_eq!(peak(SECOND), 1_000.0);
        // Equally in the current tenths, at the end of a file.
        assert_eq!(counted(burst(0)).peak(), 1_000.0);
    }

    #[test]
    fn a_partial_second_has_its_own_rate() {
        let since = START + TENTH / 2;
        let windows = counted((0..250).map(|n| since + n * MILLISECOND));
        let now = START + 3 * TENTH;
        assert_eq!(windows.rate_1s(START + TENTH, since), None);
        assert_eq!(windows.rate_now(START + TENTH, since), None);
        assert_eq!(windows.rate_now(now, since), Some(1_000.0));
        assert_eq!(windows.rate_1s(now, since), Some(1_000.0));
        assert_eq!(windows.rate_10s(now, since), None);
        assert_eq!(windows.peak(), 250.0);
    }

    #[test]
    fn rates_of_a_hand_checked_second() {
        // 3 in the first tenth, 5 in the second, 2 in the tenth; 4 a second later.
        let mut times = vec![START, START + 1, START + TENTH - 1];
        times.extend([START + TENTH; 5]);
        times.extend([START + 9 * TENTH; 2]);
        let windows = counted(times.clone());
        let since = START - 20 * SECOND;
        let rate_1s = |at| windows.rate_1s(at, since);
        assert_eq!(windows.rate_now(START + 2 * TENTH, since), Some(50.0));
        assert_eq!(
            (rate_1s(START + 9 * TENTH), windows.peak()),
            (Some(8.0), 10.0)
        );
        assert_eq!(rate_1s(START + SECOND), Some(10.0));
        // A tenth later, the first tenth is out of the second; 2 s later, all are.
        assert_eq!(rate_1s(START + SECOND + TENTH), Some(7.0));
        assert_eq!(rate_1s(START + 3 * SECOND), Some(0.0));
        let rate_10s = |at| windows.rate_10s(at, since);
        assert_eq!(rate_10s(START + SECOND - 1), Some(0.0));
        assert_eq!(rate_10s(START + SECOND), Some(1.0));
        assert_eq!(rate_10s(START + 11 * SECOND - 1), Some(1.0));
        assert_eq!(rate_10s(START + 11 * SECOND), Some(0.0));
        times.extend([START + SECOND; 4]);
        // From the second tenth to the one after the second: 5 + 2 + 4.
        assert_eq!(counted(times).peak(), 11.0);
    }

    #[test]
    fn late_packets_count_in_their_own_step() {
        let mut windows = counted([5 * SECOND]);
        windows.add(4 * SECOND + 5 * TENTH);
        windows.add(0);
        assert_eq!(windows.rate_1s(5 * SECOND + TENTH, 0), Some(2.0));
        assert_eq!(windows.rate_1s(5 * SECOND + 6 * TENTH, 0), Some(1.0));
        assert_eq!(windows.rate_10s(10 * SECOND, 0), Some(0.3));
        assert_eq!(windows.peak(), 2.0);
        windows.add(u64::MAX);
        windows.add(0);
        assert_eq!(windows.rate_now(u64::MAX, 0), Some(0.0));
    }

    proptest! {
        #[test]
        fn windows_agree_with_a_plain_count(mut times in proptest::collection::vec(0u64..30 * SECOND, 1..200)) {
            times.sort_unstable();
            let (mut windows, mut peak) = (Windows::default(), 0);
            for (i, at) in times.iter().enumerate() {
                windows.add(*at);
                let within = |unit: u64, steps: std::ops::Range<u64>| {
                    let ago = |t: &u64| at / unit - t / unit;
                    times[..=i].iter().filter(|t| steps.contains(&ago(t))).count()
                };
                peak = peak.max(within(TENTH, 0..10));
                let (tenths, seconds) = (at / TENTH, at / SECOND);
                let enough = |count: usize, watched: u64| watched >= 10 || count as f64 >= ENOUGH && watched > 0;
                let count = within(TENTH, 1..11);
                let want = enough(count, tenths).then(|| count as f64 * 10.0 / tenths.min(10) as f64);
                let near = |a: Option<f64>, b: Option<f64>| match (a, b) {
                    (Some(a), Some(b)) => (a - b).abs() < 1e-9,
                    (a, b) => a == b,
                };
                prop_assert!(near(windows.rate_1s(*at, 0), want));
                let count = within(SECOND, 1..11);
                let want = enough(count, seconds).then(|| count as f64 / seconds.min(10) as f64);
                prop_assert!(near(windows.rate_10s(*at, 0), want));
                prop_assert_eq!(windows.peak(), peak as f64);
            }
        }
    }
}
