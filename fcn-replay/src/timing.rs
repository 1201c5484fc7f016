//! Due times of frames: the capture's own timing, scaled or not, or a rate over all queues; within
//! a loop of the capture, and over all loops. fcn-link implements waiting.

use fcn_link::pacing::Rate;
use std::time::Duration;

/// Speed factor in trillionths: with a float, times computed from the start would drift from the
/// capture's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed(u64);

impl Speed {
    const WHOLE: u64 = 1_000_000_000_000;
    /// The speed of the capture.
    pub const CAPTURED: Self = Self(Self::WHOLE);

    /// Returns the nearest speed to this factor, 0.000001 to 1000000.
    #[must_use]
    pub const fn from_factor(factor: f64) -> Self {
        let trillionths = (factor * Self::WHOLE as f64).round() as u64;
        Self(if trillionths == 0 { 1 } else { trillionths })
    }

    /// Returns the duration of nanoseconds of the capture at this speed, rounded down.
    #[inline]
    fn last(self, captured: u128) -> u64 {
        let exact = match self {
            Self::CAPTURED => captured,
            Self(speed) => captured.saturating_mul(Self::WHOLE.into()) / u128::from(speed),
        };
        u64::try_from(exact).unwrap_or(u64::MAX)
    }

    /// Returns the nanoseconds of the capture that have this duration, rounded down.
    fn captured(self, lasting: u64) -> u64 {
        let exact = u128::from(lasting) * u128::from(self.0) / u128::from(Self::WHOLE);
        u64::try_from(exact).unwrap_or(u64::MAX)
    }
}

/// Time base of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeBase {
    /// The capture's time stamps.
    Stamps {
        /// Speed factor.
        speed: Speed,
        /// Maximum gap as sent, in nanoseconds; longer ones are shortened.
        max_gap: Option<u64>,
    },
    /// A rate, over all queues.
    Rate {
        /// The rate.
        rate: Rate,
        /// Number of frames that are due at once.
        burst: usize,
    },
    /// None: top speed.
    Nothing,
}

/// Largest step back, in nanoseconds, of frames that were merely captured out of order: a second.
const BACK: i128 = 1_000_000_000;
/// Largest step ahead, in nanoseconds, that is a gap of the capture: a day.
const AHEAD: i128 = 24 * 60 * 60 * 1_000_000_000;

/// Check of a time stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// Valid.
    Fine,
    /// After a gap that is shortened.
    Shortened,
    /// Before that of the previous frame, by at most a second.
    WentBack,
    /// More than a second before the others or more than a day after them.
    Outlier,
    /// As the outlier before it: both begin a new time base.
    NewTimeBase,
    /// Missing.
    None,
}

/// Clock of an interface of the capture. Clocks of interfaces may differ, and captures may be
/// appended to each other.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    /// Nanoseconds to add to its time stamps for the common time; `None` before the first frame.
    shift: Option<i128>,
    /// Time stamp of an outlier, and the common time at which it was placed.
    outlier: Option<(i128, i128)>,
}

/// True if a frame at `time` can follow one at `latest`.
const fn follows(time: i128, latest: i128) -> bool {
    time >= latest - BACK && time <= latest + AHEAD
}

/// Assigns places to the frames of one loop, in order. A place is a time in nanoseconds of the
/// capture, or at a rate the sum of the preceding frames, in the rate's units.
#[derive(Clone, Debug)]
pub struct Places {
    time_base: TimeBase,
    /// Number of frames placed.
    frames: u64,
    /// The first time stamp.
    first: Option<u64>,
    /// Latest common time: time stamps of the first time base, continued by all others.
    latest: i128,
    /// Shift of the previous frame, and the clock of each interface.
    shift: i128,
    clocks: Vec<Clock>,
    /// Nanoseconds of the capture, without the parts cut from gaps.
    elapsed: u64,
    /// Units of all frames, and of those before the current burst.
    units: (u64, u64),
}

impl Places {
    /// Creates places without any frame.
    #[must_use]
    pub const fn new(time_base: TimeBase) -> Self {
        Self {
            time_base,
            frames: 0,
            first: None,
            latest: 0,
            shift: 0,
            clocks: Vec::new(),
            elapsed: 0,
            units: (0, 0),
        }
    }

    /// Returns the place of the next frame, of `len` octets without FCS, with the time stamp `at`
    /// of that interface.
    #[inline]
    pub fn next(&mut self, interface: u32, at: Option<u64>, len: usize) -> (u64, Stamp) {
        let (mut gap, mut verdict) = match at {
            Some(at) => self.gap(interface, at),
            None => (0, Stamp::None),
        };
        let place = match self.time_base {
            TimeBase::Stamps { speed, max_gap } => {
                if let Some(most) = max_gap.map(|most| speed.captured(most))
                    && gap > most
                {
                    gap = most;
                    verdict = Stamp::Shortened;
                }
                self.elapsed = self.elapsed.saturating_add(gap);
                self.elapsed
            }
            TimeBase::Rate { rate, burst } => {
                if self.frames.is_multiple_of(burst.max(1) as u64) {
                    self.units.1 = self.units.0;
                }
                self.units.0 = self.units.0.saturating_add(rate.units(len));
                self.units.1
            }
            TimeBase::Nothing => 0,
        };
        self.frames += 1;
        (place, verdict)
    }

    /// Returns the time from the previous frame to the one stamped `at` by that interface.
    #[inline]
    fn gap(&mut self, interface: u32, at: u64) -> (u64, Stamp) {
        let interface = interface as usize;
        if interface >= self.clocks.len() {
            self.clocks.resize(interface + 1, Clock::default());
        }
        let clock = &mut self.clocks[interface];
        let stamp = i128::from(at);
        if self.first.is_none() {
            self.first = Some(at);
            self.latest = stamp;
        }
        let mut shift = clock.shift.unwrap_or(self.shift);
        if !follows(stamp + shift, self.latest) {
            // An interface may begin the time base that another one has begun.
            shift = self.shift;
        }
        let mut verdict = Stamp::Fine;
        if !follows(stamp + shift, self.latest) {
            match clock.outlier {
                Some((before, placed)) if follows(stamp, before) => {
                    shift = placed - before;
                    verdict = Stamp::NewTimeBase;
                }
                _ => {
                    clock.outlier = Some((stamp, self.latest));
                    return (0, Stamp::Outlier);
                }
            }
        }
        *clock = Clock {
            shift: Some(shift),
            outlier: None,
        };
        self.shift = shift;
        let gap = stamp + shift - self.latest;
        if gap < 0 && verdict == Stamp::Fine {
            verdict = Stamp::WentBack;
        }
        let gap = gap.max(0);
        self.latest += gap;
        // At most a day.
        (u64::try_from(gap).unwrap_or(u64::MAX), verdict)
    }

    /// Returns the first time stamp in nanoseconds since 1970; 0 if there is none.
    #[must_use]
    pub fn begins(&self) -> u64 {
        self.first.unwrap_or(0)
    }

    /// Returns the loop, after its last frame was placed. `gap` is the time between it and the next
    /// loop. By default it is the mean gap between frames, in whole nanoseconds of the capture.
    #[must_use]
    pub fn end(&self, gap: Option<Duration>) -> Loops {
        let given = gap.map(|gap| u64::try_from(gap.as_nanos()).unwrap_or(u64::MAX));
        match self.time_base {
            TimeBase::Stamps { .. } => {
                let mean = self.elapsed / self.frames.saturating_sub(1).max(1);
                let mean = if given.is_some() { 0 } else { mean };
                Loops {
                    time_base: self.time_base,
                    len: self.elapsed.saturating_add(mean),
                    gap: given.unwrap_or(0),
                }
            }
            TimeBase::Rate { .. } => Loops {
                time_base: self.time_base,
                len: self.units.0,
                gap: given.unwrap_or(0),
            },
            TimeBase::Nothing => Loops::first(TimeBase::Nothing),
        }
    }
}

/// Converts places in loops to times since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loops {
    time_base: TimeBase,
    /// Distance between the starts of consecutive loops, in the units of places.
    len: u64,
    /// Additional nanoseconds for each loop.
    gap: u64,
}

impl Loops {
    /// Creates loops before the end of the first one: valid only for loop 0.
    #[must_use]
    pub const fn first(time_base: TimeBase) -> Self {
        Self {
            time_base,
            len: 0,
            gap: 0,
        }
    }

    /// Returns the due time of the frame at `place` of loop `loop_` (counted from 0): nanoseconds
    /// since the start.
    #[inline]
    #[must_use]
    pub fn due(&self, loop_: u64, place: u64) -> u64 {
        // Both have 64 bits: the sum fits.
        let sum = u128::from(loop_) * u128::from(self.len) + u128::from(place);
        let due = match self.time_base {
            TimeBase::Stamps { speed, .. } => speed.last(sum),
            TimeBase::Rate { rate, .. } => rate.due(sum),
            TimeBase::Nothing => 0,
        };
        due.saturating_add(loop_.saturating_mul(self.gap))
    }

    /// Returns the time from the first frame to the end of `loops` loops.
    #[must_use]
    pub fn lasting(&self, loops: u64) -> Duration {
        Duration::from_nanos(self.due(loops, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fcn_link::pacing::RateClock;
    use proptest::prelude::*;

    const OWN: TimeBase = TimeBase::Stamps {
        speed: Speed::CAPTURED,
        max_gap: None,
    };

    /// Returns the due time of each frame of the first loop.
    fn places(time_base: TimeBase, stamps: &[u64]) -> Vec<u64> {
        let mut places = Places::new(time_base);
        stamps
            .iter()
            .map(|at| Loops::first(time_base).due(0, places.next(0, Some(*at), 100).0))
            .collect()
    }

    #[test]
    fn stamps_count_from_the_first() {
        let stamps = [1_000_000, 1_000_500, 1_000_500, 1_009_500];
        assert_eq!(places(OWN, &stamps), [0, 500, 500, 9_500]);
        let twice = TimeBase::Stamps {
            speed: Speed::from_factor(2.0),
            max_gap: None,
        };
        assert_eq!(places(twice, &stamps), [0, 250, 250, 4_750]);
        assert_eq!(places(TimeBase::Nothing, &stamps), [0; 4]);
    }

    #[test]
    fn long_gaps_are_cut_as_they_are_sent() {
        let time_base = TimeBase::Stamps {
            speed: Speed::from_factor(2.0),
            max_gap: Some(1_000),
        };
        assert_eq!(
            places(time_base, &[0, 1_000, 51_000, 52_000]),
            [0, 500, 1_500, 2_000]
        );
    }

    #[test]
    fn stamps_that_go_back_are_held_and_reported() {
        let mut places = Places::new(OWN);
        assert_eq!(places.next(0, Some(50), 1), (0, Stamp::Fine));
        assert_eq!(places.next(0, Some(90), 1), (40, Stamp::Fine));
        assert_eq!(places.next(0, Some(70), 1), (40, Stamp::WentBack));
        assert_eq!(places.next(0, None, 1), (40, Stamp::None));
        assert_eq!(places.next(0, Some(95), 1), (45, Stamp::Fine));
    }

    /// Returns the due times and checks of frames: interface and time stamp in seconds.
    fn stamped(frames: &[(u32, u64)]) -> Vec<(u64, Stamp)> {
        let mut places = Places::new(OWN);
        let second = 1_000_000_000;
        (frames.iter())
            .map(|(interface, at)| places.next(*interface, Some(at * second), 100))
            .map(|(due, stamp)| (due / second, stamp))
            .collect()
    }

    #[test]
    fn an_appended_capture_keeps_its_own_gaps() {
        use Stamp::{Fine, NewTimeBase, Outlier};
        let year = 365 * 24 * 60 * 60;
        // Older or newer, on the same interface or on another one.
        for (interface, begin) in [(0, 50), (0, year), (1, 50), (1, year)] {
            let appended = [0, 5, 7].map(|at| (interface, begin + at));
            let frames = [&[(0, 1_000), (0, 1_010)], &appended[..]].concat();
            assert_eq!(
                stamped(&frames),
                [
                    (0, Fine),
                    (10, Fine),
                    (10, Outlier),
                    (15, NewTimeBase),
                    (17, Fine)
                ]
            );
        }
    }

    #[test]
    fn interfaces_of_an_appended_capture_share_its_time_base() {
        use Stamp::{Fine, NewTimeBase, Outlier};
        let frames = [
            (0, 100),
            (1, 101),
            (0, 50),
            (0, 52),
            (1, 53),
            (0, 54),
            (1, 55),
        ];
        let [a, b, c, d, e, f, g] = stamped(&frames)[..] else {
            panic!()
        };
        assert_eq!([a, b, c], [(0, Fine), (1, Fine), (1, Outlier)]);
        assert_eq!(
            [d, e, f, g],
            [(3, NewTimeBase), (4, Fine), (5, Fine), (6, Fine)]
        );
    }

    #[test]
    fn a_single_outlier_does_not_move_the_others() {
        use Stamp::{Fine, Outlier};
        for outlier in [0, 18_000_000_000] {
            assert_eq!(
                stamped(&[(0, 1_000), (0, 1_001), (0, outlier), (0, 1_003)]),
                [(0, Fine), (1, Fine), (1, Outlier), (3, Fine)]
            );
        }
    }

    #[test]
    fn interfaces_may_have_clocks_that_differ() {
        let frames: Vec<_> = (0..20)
            .flat_map(|n| [(0, 1_000_000 + n), (0, 1_000_000 + n), (1, n), (1, n)])
            .collect();
        for (number, (due, _)) in stamped(&frames).into_iter().enumerate() {
            assert_eq!(due, number as u64 / 4);
        }
    }

    #[test]
    fn loops_are_separated_by_the_mean_or_the_given_gap() {
        let mut places = Places::new(OWN);
        for at in [0, 10, 40] {
            let _ = places.next(0, Some(at), 1);
        }
        let loops = places.end(None);
        assert_eq!(loops.due(0, 40), 40);
        assert_eq!(loops.due(1, 0), 60);
        assert_eq!(loops.due(3, 10), 190);
        let given = places.end(Some(Duration::from_nanos(5)));
        assert_eq!(given.due(2, 0), 90);
        assert_eq!(given.lasting(2), Duration::from_nanos(90));
    }

    #[test]
    fn bursts_are_due_at_once_at_the_mean_rate() {
        let rate = Rate::Packets(1_000);
        let time_base = TimeBase::Rate { rate, burst: 2 };
        let mut places = Places::new(time_base);
        let due: Vec<u64> = (0..5)
            .map(|_| Loops::first(time_base).due(0, places.next(0, None, 60).0))
            .collect();
        assert_eq!(due, [0, 0, 2_000_000, 2_000_000, 4_000_000]);
        let loops = places.end(Some(Duration::from_millis(1)));
        assert_eq!(loops.due(1, 0), 6_000_000);
        assert_eq!(loops.due(2, 0), 12_000_000);
    }

    proptest! {
        #[test]
        fn rates_equal_those_of_the_sender_over_any_loops(
            lens in proptest::collection::vec(14usize..2_000, 1..40),
            value in 1u64..200_000_000_000,
            loops in 1u64..50,
        ) {
            let rate = Rate::L2Bits(value);
            let time_base = TimeBase::Rate { rate, burst: 1 };
            let mut places = Places::new(time_base);
            let placed: Vec<u64> = lens.iter().map(|len| places.next(0, None, *len).0).collect();
            let end = places.end(None);
            let mut clock = RateClock::new(rate);
            for loop_ in 0..loops {
                for (place, len) in placed.iter().zip(&lens) {
                    prop_assert_eq!(end.due(loop_, *place), clock.due());
                    clock.count(*len);
                }
            }
        }

        #[test]
        fn loops_do_not_drift_at_any_speed(
            gaps in proptest::collection::vec(0u64..1_000_000_000, 1..20),
            (dividend, divisor) in prop_oneof![(1u64..1_000, Just(1u64)), (Just(1), prop_oneof![Just(2u64), Just(5), Just(1_000)])],
            loop_ in 0u64..1_000_000_000,
            gap in proptest::option::of(0u64..1_000_000),
        ) {
            let speed = Speed::from_factor(dividend as f64 / divisor as f64);
            let mut places = Places::new(TimeBase::Stamps { speed, max_gap: None });
            let mut elapsed = 0;
            let mut placed = vec![places.next(0, Some(7), 60).0];
            for more in &gaps {
                elapsed += more;
                placed.push(places.next(0, Some(7 + elapsed), 60).0);
            }
            let loops = places.end(gap.map(Duration::from_nanos));
            let mean = gap.map_or(elapsed / gaps.len() as u64, |_| 0);
            let mut since = 0;
            for (place, more) in placed.iter().zip(core::iter::once(&0).chain(&gaps)) {
                since += more;
                // Rounded once, over the whole time since the start.
                let captured = u128::from(loop_) * u128::from(elapsed + mean) + u128::from(since);
                let exact = captured * u128::from(divisor) / u128::from(dividend)
                    + u128::from(loop_) * u128::from(gap.unwrap_or(0));
                prop_assert_eq!(u128::from(loops.due(loop_, *place)), exact.min(u64::MAX.into()));
            }
        }

        #[test]
        fn no_frame_is_due_before_the_one_before(
            stamps in proptest::collection::vec(proptest::option::of(any::<u64>()), 1..50),
            speed in 0.001f64..1_000.0,
            max_gap in proptest::option::of(any::<u64>()),
        ) {
            let speed = Speed::from_factor(speed);
            let mut places = Places::new(TimeBase::Stamps { speed, max_gap });
            let placed: Vec<u64> = stamps.iter().map(|at| places.next(0, *at, 1).0).collect();
            let loops = places.end(None);
            let all = (0..3).flat_map(|l| placed.iter().map(move |place| (l, *place)));
            let due: Vec<u64> = all.map(|(l, place)| loops.due(l, place)).collect();
            prop_assert!(due.is_sorted());
        }
    }
}
