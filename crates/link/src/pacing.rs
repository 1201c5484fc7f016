//! Departure times of frames: rates, the schedule, and the treatment of late frames. No clock and
//! no sockets: times are passed in as nanoseconds. Waiting is in `clock.rs`.

use std::fmt;

/// Length of the frame check sequence that Ethernet appends to a frame, in octets.
pub const FCS_LEN: u64 = 4;
/// Overhead of a frame on the wire, in octets: preamble, start delimiter, gap between frames.
pub const WIRE_OVERHEAD: u64 = 8 + 12;
/// Minimum length of an Ethernet frame with its check sequence, in octets; shorter ones are padded.
pub const SHORTEST_FRAME: u64 = 64;
const NANOS: u128 = 1_000_000_000;

/// Rate at which frames leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Frames per second.
    Packets(u64),
    /// Bits per second of layer 2: frames with their check sequence, at least 64 octets each.
    L2Bits(u64),
    /// Bits per second of layer 1: with preamble and gap between frames, 20 octets more per frame.
    L1Bits(u64),
}

impl Rate {
    /// Returns the number of the rate.
    #[must_use]
    pub const fn value(self) -> u64 {
        match self {
            Self::Packets(n) | Self::L2Bits(n) | Self::L1Bits(n) => n,
        }
    }

    /// Returns the units for which a frame of `len` octets, without FCS, counts.
    #[inline]
    #[must_use]
    pub const fn units(self, len: usize) -> u64 {
        match self {
            Self::Packets(_) => 1,
            Self::L2Bits(_) => l2_octets(len) * 8,
            Self::L1Bits(_) => (l2_octets(len) + WIRE_OVERHEAD) * 8,
        }
    }

    /// Returns the due time of a frame that is preceded by `units`: nanoseconds since the first,
    /// rounded down.
    #[inline]
    #[must_use]
    pub fn due(self, units: u128) -> u64 {
        let value = self.value().max(1);
        match u64::try_from(units) {
            // This case is exact as well, and much faster.
            Ok(units) if units <= u64::MAX / NANOS as u64 => units * NANOS as u64 / value,
            _ => {
                let due = units.saturating_mul(NANOS) / u128::from(value);
                u64::try_from(due).unwrap_or(u64::MAX)
            }
        }
    }

    /// Returns the time of a frame of `len` octets at this rate, in nanoseconds, rounded down.
    #[must_use]
    pub fn gap(self, len: usize) -> u64 {
        self.due(self.units(len).into())
    }
}

/// Returns the length of a frame with its check sequence, after padding, in octets.
#[must_use]
pub const fn l2_octets(len: usize) -> u64 {
    let octets = len as u64 + FCS_LEN;
    if octets < SHORTEST_FRAME {
        SHORTEST_FRAME
    } else {
        octets
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match self {
            Self::Packets(n) => (*n, "packet/s"),
            Self::L2Bits(n) => (*n, "bit/s (layer 2)"),
            Self::L1Bits(n) => (*n, "bit/s (layer 1)"),
        };
        let (scaled, prefix) = match value {
            0..1_000 => (value as f64, ""),
            1_000..1_000_000 => (value as f64 / 1e3, "k"),
            1_000_000..1_000_000_000 => (value as f64 / 1e6, "M"),
            _ => (value as f64 / 1e9, "G"),
        };
        write!(f, "{scaled} {prefix}{unit}")
    }
}

/// Due times of frames at a rate, exact for any number of frames.
#[derive(Clone, Copy, Debug)]
pub struct RateClock {
    rate: Rate,
    units: u128,
}

impl RateClock {
    /// Creates a clock whose first frame is due at 0.
    #[must_use]
    pub const fn new(rate: Rate) -> Self {
        Self { rate, units: 0 }
    }

    /// Returns the due time of the next frame: nanoseconds since the first.
    #[inline]
    #[must_use]
    pub fn due(&self) -> u64 {
        self.rate.due(self.units)
    }

    /// Counts a frame of `len` octets, without FCS, that has been given its time.
    #[inline]
    pub fn count(&mut self, len: usize) {
        self.units += u128::from(self.rate.units(len));
    }
}

/// Treatment of frames that are late because something kept the sender from running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CatchUp {
    /// Shortens gaps by a twentieth until the schedule is met again: no bursts, and no large
    /// errors. A sender that is more than 20 ms late catches up as in [`Quickly`](Self::Quickly).
    Gently,
    /// Shortens gaps by two fifths until the schedule is met again: no bursts, and few errors.
    Quickly,
    /// Quickly if gaps are long, so that few are wrong; gently if they are short ([`SHORT_GAP`]),
    /// so that none is wrong by much.
    #[default]
    ByGap,
    /// Sends all late frames at once.
    Burst,
}

/// Reduction of a gap, in percent.
const GENTLE_PERCENT: u64 = 5;
const QUICK_PERCENT: u64 = 40;
// Less than half a gap would be a burst.
const _: () = assert!(QUICK_PERCENT < 50);
/// Delay above which catching up gently would take too long, in nanoseconds.
const VERY_LATE: u64 = 20_000_000;

/// Gaps below this, in nanoseconds, are short: the error of shortening many of them by a twentieth
/// is less than those of the clock and the scheduler; the error of shortening a few by two fifths
/// is not.
pub const SHORT_GAP: u64 = 100_000;

/// Decides when frames leave, from their due times. All times are nanoseconds of one clock.
#[derive(Clone, Copy, Debug)]
pub struct Release {
    catch_up: CatchUp,
    /// Due time and departure time of the last frame.
    last: Option<(u64, u64)>,
}

impl Release {
    /// Creates a release in which no frame has left yet.
    #[must_use]
    pub const fn new(catch_up: CatchUp) -> Self {
        Self {
            catch_up,
            last: None,
        }
    }

    /// Returns the earliest departure of a frame due at `due`: not before it is due, and not much
    /// closer to the previous frame than scheduled.
    #[inline]
    #[must_use]
    pub fn at(&self, due: u64) -> u64 {
        match (self.catch_up, self.last) {
            (CatchUp::Burst, _) | (_, None) => due,
            (_, Some((last_due, left))) => {
                let gap = due.saturating_sub(last_due);
                let late = left.saturating_sub(last_due);
                let gently = match self.catch_up {
                    CatchUp::Gently => true,
                    CatchUp::ByGap => gap < SHORT_GAP,
                    CatchUp::Quickly | CatchUp::Burst => false,
                };
                let percent = if gently && late <= VERY_LATE {
                    GENTLE_PERCENT
                } else {
                    QUICK_PERCENT
                };
                due.max(left.saturating_add(gap - gap / 100 * percent))
            }
        }
    }

    /// Records that a frame due at `due` leaves at `at`.
    #[inline]
    pub fn left(&mut self, due: u64, at: u64) {
        self.last = Some((due, at));
    }
}

/// Returns the default number of frames of about `len` octets that leave at once at a rate: the
/// fewest that leave time for a system call between bursts.
#[must_use]
pub fn burst_for(rate: Rate, len: usize) -> usize {
    /// Minimum time for a system call and its frames, in nanoseconds.
    const CALL: u64 = 20_000;
    /// Maximum burst: a larger one gains nothing.
    const MOST: u64 = 32;
    (CALL / rate.gap(len).max(1)).clamp(1, MOST) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn frames_count_with_ethernet_overhead() {
        assert_eq!(Rate::Packets(5).units(1514), 1);
        assert_eq!(Rate::L2Bits(5).units(1514), 1518 * 8);
        assert_eq!(Rate::L1Bits(5).units(1514), 1538 * 8);
        assert_eq!(Rate::L1Bits(5).units(42), 84 * 8);
        // 14.88 million minimum-length frames per second on 10 Gbit/s.
        assert_eq!(Rate::L1Bits(10_000_000_000).gap(60), 67);
        assert_eq!(Rate::Packets(0).gap(60), 1_000_000_000);
    }

    #[test]
    fn rates_are_displayed_with_their_unit() {
        assert_eq!(Rate::Packets(999).to_string(), "999 packet/s");
        assert_eq!(Rate::L2Bits(1_500_000).to_string(), "1.5 Mbit/s (layer 2)");
        assert_eq!(
            Rate::L1Bits(100_000_000_000).to_string(),
            "100 Gbit/s (layer 1)"
        );
    }

    proptest! {
        #[test]
        fn no_frame_is_early_and_none_drifts(rate in 1u64..200_000_000, count in 1u64..5_000_000) {
            let mut clock = RateClock { rate: Rate::Packets(rate), units: u128::from(count) };
            let due = u128::from(clock.due());
            prop_assert!(due * u128::from(rate) <= u128::from(count) * NANOS);
            prop_assert!((due + 1) * u128::from(rate) > u128::from(count) * NANOS);
            clock.count(100);
            prop_assert!(u128::from(clock.due()) >= due);
        }

        #[test]
        fn late_frames_keep_six_tenths_of_their_gaps(
            gaps in proptest::collection::vec(0u64..100_000, 2..200),
            stall_at in 0usize..200,
            stall in 0u64..10_000_000,
        ) {
            let mut release = Release::new(CatchUp::Quickly);
            let (mut due, mut now, mut before) = (0u64, 0u64, None::<(u64, u64)>);
            for (i, gap) in gaps.iter().enumerate() {
                due += gap;
                if i == stall_at {
                    now += stall;
                }
                let at = release.at(due).max(now);
                prop_assert!(at >= due);
                if let Some((due_before, left_before)) = before {
                    prop_assert!((at - left_before) * 10 >= (due - due_before) * 6);
                }
                release.left(due, at);
                before = Some((due, at));
                now = at;
            }
        }
    }

    #[test]
    fn schedule_is_met_again_after_a_stall() {
        let cases = [
            (CatchUp::Gently, 5_000, 101),
            (CatchUp::Quickly, 5_000, 13),
            (CatchUp::ByGap, 5_000, 101),
            (CatchUp::Gently, 100_000_000, 620_000),
        ];
        for (catch_up, stall, gaps_later) in cases {
            let mut release = Release::new(catch_up);
            let (mut now, mut late) = (0, Vec::new());
            for i in 0..=50 + gaps_later {
                let due = i * 1_000;
                if i == 50 {
                    now += stall;
                }
                now = release.at(due).max(now);
                release.left(due, now);
                late.push(now - due);
            }
            assert!(late[50] >= stall - 1_000);
            assert!(late.windows(2).skip(51).all(|pair| pair[1] <= pair[0]));
            assert_eq!(late.last(), Some(&0), "{catch_up:?}, a stall of {stall}");
            assert!(
                late[late.len() - late.len() / 5] > 0,
                "{catch_up:?} is as slow as it says"
            );
        }
        let mut burst = Release::new(CatchUp::Burst);
        burst.left(0, 1_000_000);
        assert_eq!(burst.at(500), 500);
    }

    #[test]
    fn bursts_leave_time_for_a_call() {
        for (rate, burst) in [
            (1_000, 1),
            (50_000, 1),
            (100_000, 2),
            (500_000, 10),
            (10_000_000, 32),
            (2_000_000_000, 32),
        ] {
            assert_eq!(burst_for(Rate::Packets(rate), 500), burst);
        }
    }
}
