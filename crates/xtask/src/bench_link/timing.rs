//! Accuracy of frame times: arrivals compared with a schedule. Pure arithmetic, no clock. Recording
//! arrivals is in `arrivals.rs`.

use anyhow::ensure;

use crate::failure::Outcome;

/// Timing of a sender, derived from a run's arrivals. Times are in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Timing {
    /// Errors |gap − scheduled gap|: the maximum for half of the gaps, for 99 of 100, for 999 of
    /// 1000, and for all.
    pub errors: [u64; 4],
    /// Amount by which the sender's clock ran slower (positive) or faster: the slope of the least
    /// squares line through arrival times over scheduled times, minus 1, in parts per million.
    /// Single late frames hardly change it.
    pub drift_ppm: f64,
    /// Catch-up bursts: runs of gaps of less than half of the scheduled one that follow a gap late
    /// by more than half of its scheduled length. A sender that merely keeps to its schedule after
    /// one late frame makes runs of one.
    pub bursts: usize,
    /// Maximum number of frames in one catch-up burst.
    pub longest_burst: usize,
}

/// Returns times `gap` nanoseconds apart, from 0.
#[must_use]
pub fn evenly(gap: u64, frames: u64) -> Vec<u64> {
    (0..frames).map(|i| i.saturating_mul(gap)).collect()
}

/// Compares arrivals with their scheduled times, both in order and in nanoseconds, each relative to
/// its own zero.
///
/// # Errors
/// Returns an error if the two cannot be compared: frames were lost or duplicated, so that the
/// assignment to times is unknown; or there are no gaps.
pub fn timing(arrived: &[u64], scheduled: &[u64]) -> Outcome<Timing> {
    let (recorded, planned) = (arrived.len(), scheduled.len());
    ensure!(
        recorded == planned,
        "{recorded} frames recorded of {planned} scheduled"
    );
    ensure!(
        scheduled.first() != scheduled.last(),
        "a schedule with a single time has no gaps"
    );
    let gaps: Vec<(i64, i64)> = arrived
        .windows(2)
        .zip(scheduled.windows(2))
        .map(|(a, s)| (between(a[0], a[1]), between(s[0], s[1])))
        .collect();
    let mut errors: Vec<u64> = gaps.iter().map(|(a, s)| a.abs_diff(*s)).collect();
    errors.sort_unstable();
    let mut timing = Timing {
        errors: [500, 990, 999, 1000].map(|per_mille| at(&errors, per_mille)),
        drift_ppm: (slope(scheduled, arrived) - 1.0) * 1e6,
        bursts: 0,
        longest_burst: 0,
    };
    // Frames of the current burst; `None` unless a late gap opened one.
    let mut burst: Option<usize> = None;
    for (gap, planned) in gaps {
        if gap.saturating_mul(2) < planned {
            if let Some(frames) = &mut burst {
                *frames += 1;
                timing.bursts += usize::from(*frames == 1);
                timing.longest_burst = timing.longest_burst.max(*frames);
            }
        } else {
            let late = gap.saturating_sub(planned).saturating_mul(2) > planned;
            burst = late.then_some(0);
        }
    }
    Ok(timing)
}

/// Returns a signed difference, as a capture's time stamps may go back.
fn between(from: u64, to: u64) -> i64 {
    to.wrapping_sub(from).cast_signed()
}

/// Returns the smallest value that `per_mille` of the sorted values do not exceed (nearest rank).
fn at(sorted: &[u64], per_mille: usize) -> u64 {
    let rank = (sorted.len() * per_mille).div_ceil(1000);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

/// Returns the slope of the least squares line.
fn slope(x: &[u64], y: &[u64]) -> f64 {
    // Relative to the first point, as stamps of 60 bits would cost the sums their precision.
    let from_first = |v: &[u64]| -> Vec<f64> {
        let moved = v.iter().map(|t| between(v[0], *t) as f64);
        let mean = moved.clone().sum::<f64>() / v.len() as f64;
        moved.map(|t| t - mean).collect()
    };
    let (x, y) = (from_first(x), from_first(y));
    let product = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    product(&x, &y) / product(&x, &x)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A time in 2026, to test precision.
    const NOW: u64 = 1_795_000_000_000_000_000;

    fn arrivals(gap: u64, frames: u64) -> Vec<u64> {
        evenly(gap, frames).iter().map(|t| NOW + t).collect()
    }

    #[test]
    fn a_perfect_sender_is_perfect() {
        let timing = timing(&arrivals(10_000, 1000), &evenly(10_000, 1000)).unwrap();
        assert_eq!(timing.errors, [0; 4]);
        assert_eq!((timing.bursts, timing.longest_burst), (0, 0));
        assert!(timing.drift_ppm.abs() < 1e-3, "{timing:?}");
    }

    #[test]
    fn a_slow_clock_shows_as_drift() {
        // 500.005 µs instead of 500: 10 ppm.
        let timing = timing(&arrivals(500_005, 10_000), &evenly(500_000, 10_000)).unwrap();
        assert_eq!(timing.errors, [5; 4]);
        assert!((timing.drift_ppm - 10.0).abs() < 1e-3, "{timing:?}");
        assert_eq!(timing.bursts, 0);
    }

    #[test]
    fn a_late_last_frame_is_no_drift() {
        let mut arrived = arrivals(10_000, 100_001);
        *arrived.last_mut().unwrap() += 100_000;
        let timing = timing(&arrived, &evenly(10_000, 100_001)).unwrap();
        assert!(timing.drift_ppm.abs() < 0.01, "{timing:?}");
        assert_eq!(timing.errors, [0, 0, 0, 100_000]);
    }

    #[test]
    fn percentiles_are_nearest_rank() {
        let errors: Vec<u64> = (1..=1000).collect();
        assert_eq!(
            [500, 990, 999, 1000].map(|p| at(&errors, p)),
            [500, 990, 999, 1000]
        );
        assert_eq!(at(&[7], 500), 7);
        assert_eq!(at(&[1, 2], 500), 1);
        assert_eq!(at(&[1, 2], 990), 2);
    }

    #[test]
    fn catching_up_after_a_pause_is_a_burst() {
        let scheduled = evenly(10_000, 100);
        // Frames 50 to 54 leave at once, when frame 54 is due.
        let mut arrived = arrivals(10_000, 100);
        arrived[50..55].fill(NOW + 540_000);
        let caught_up = timing(&arrived, &scheduled).unwrap();
        assert_eq!((caught_up.bursts, caught_up.longest_burst), (1, 4));
        assert_eq!(caught_up.errors[3], 40_000);
        // The same pause, with the gaps kept after it: the run is longer, and there is no burst.
        let mut arrived = arrivals(10_000, 100);
        for t in &mut arrived[50..] {
            *t += 40_000;
        }
        let shifted = timing(&arrived, &scheduled).unwrap();
        assert_eq!((shifted.bursts, shifted.errors[3]), (0, 40_000));
    }

    #[test]
    fn frames_too_early_are_no_burst() {
        let scheduled = evenly(10_000, 10);
        let timing = timing(&arrivals(1_000, 10), &scheduled).unwrap();
        assert_eq!((timing.bursts, timing.errors[0]), (0, 9_000));
    }

    #[test]
    fn bursts_are_counted_separately() {
        // late, 2 short, on time, short, late, short
        let gaps = [20, 1, 2, 10, 1, 16, 4];
        let mut arrived = vec![NOW];
        for gap in gaps {
            arrived.push(arrived.last().unwrap() + gap);
        }
        let timing = timing(&arrived, &evenly(10, 8)).unwrap();
        assert_eq!((timing.bursts, timing.longest_burst), (2, 2));
    }

    #[test]
    fn time_stamps_that_go_back_are_gap_errors() {
        let timing = timing(&[NOW, NOW - 5, NOW + 20], &[0, 10, 20]).unwrap();
        assert_eq!(timing.errors[3], 15);
    }

    #[test]
    fn incomparable_arrivals_are_errors() {
        let lost = timing(&arrivals(10, 9), &evenly(10, 10)).unwrap_err();
        assert_eq!(lost.to_string(), "9 frames recorded of 10 scheduled");
        for frames in 0..2 {
            assert!(timing(&arrivals(10, frames), &evenly(10, frames)).is_err());
        }
        assert!(timing(&[1, 2], &[3, 3]).is_err());
    }
}
