//! Estimates of packet counts from samples, with confidence intervals.

use fcn_observe::float::Float;
use rustc_hash::FxHashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;

/// Sampling interval: one sample in this many packets, each equally likely.
pub type OneIn = NonZeroU32;

/// Samples, and the packets they stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Samples {
    /// Number of samples.
    pub count: u64,
    /// Number of packets they stand for: the estimate.
    pub sum: u64,
    /// Sum of the squares of the number each stands for.
    squares: f64,
}

impl Samples {
    /// Counts a sample.
    pub fn add(&mut self, one_in: OneIn) {
        let stands_for = u64::from(one_in.get());
        self.count += 1;
        self.sum = self.sum.saturating_add(stands_for);
        self.squares += (stands_for as f64).powi(2);
    }

    /// Returns the mean sampling interval, one in this many packets; 0 without samples.
    pub fn one_in(&self) -> f64 {
        self.sum as f64 / self.count.max(1) as f64
    }

    /// Returns the 95 % confidence interval of the number of packets, for random sampling.
    pub fn interval(&self) -> (u64, u64) {
        if self.sum == self.count {
            return (self.count, self.count);
        }
        // If samples have different weights, the uncertainty is that of a smaller number of samples
        // with equal weight.
        let alike = (self.sum as f64).powi(2) / self.squares;
        let alike = (alike + 1e-6).floor().clamp(1.0, self.count as f64);
        let each = self.sum as f64 / alike;
        let (low, high) = poisson(alike as u64);
        let low = (low * each).floor() as u64;
        (low.max(self.count), (high * each).ceil() as u64)
    }
}

/// Maximum number of agents whose datagrams are counted: packets may claim anything.
const AGENTS: usize = 1_000;
/// Maximum advance of a sequence number; a larger one means that the agent has restarted.
const AHEAD: u32 = 1 << 16;
/// Maximum lag of a late datagram's sequence number.
const BEHIND: u32 = 1_000;

/// Sequence numbers of sFlow datagrams, to detect missing ones.
#[derive(Debug, Default)]
pub struct Sequences(FxHashMap<(IpAddr, u32), u32>);

impl Sequences {
    /// Processes the next datagram of an agent's sub-agent; returns how many are missing before it,
    /// and true if it has the same number as the previous one.
    pub fn missing(&mut self, agent: (IpAddr, u32), sequence: u32) -> (u32, bool) {
        if self.0.len() >= AGENTS && !self.0.contains_key(&agent) {
            return (0, false);
        }
        let Some(last) = self.0.get_mut(&agent) else {
            self.0.insert(agent, sequence);
            return (0, false);
        };
        let (ahead, behind) = (sequence.wrapping_sub(*last), last.wrapping_sub(sequence));
        if (1..=BEHIND).contains(&behind) {
            return (0, false);
        }
        *last = sequence;
        match ahead {
            2..=AHEAD => (ahead - 1, false),
            _ => (0, ahead == 0),
        }
    }
}

/// Number of events from which the approximation is off by less than one in three thousand.
const MANY: u64 = 30;

/// Returns the means of Poisson distributions for which `count` is neither among the lowest nor
/// among the highest 2.5 % (Garwood's interval).
fn poisson(count: u64) -> (f64, f64) {
    if count < MANY {
        let low = mean_where(count, |below, _| below <= 0.975);
        let high = mean_where(count, |below, this| below + this <= 0.025);
        return (if count == 0 { 0.0 } else { low }, high);
    }
    // Wilson and Hilferty.
    let bound =
        |n: f64, deviation: f64| n * (1.0 - 1.0 / (9.0 * n) + deviation / (3.0 * n.sqrt())).powi(3);
    let n = count as f64;
    (bound(n, -1.959_964), bound(n + 1.0, 1.959_964))
}

/// Returns the mean from which `beyond` is true for the probabilities of fewer than `count` events,
/// and of exactly `count`.
fn mean_where(count: u64, beyond: impl Fn(f64, f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 2.0 * count as f64 + 10.0);
    for _ in 0..60 {
        let mean = f64::midpoint(low, high);
        let (mut below, mut this) = (0.0, (-mean).exponential());
        for n in 1..=count {
            below += this;
            this *= mean / n as f64;
        }
        if beyond(below, this) {
            high = mean;
        } else {
            low = mean;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn from_counts(counts: &[(u64, u32)]) -> Samples {
        let mut samples = Samples::default();
        for (times, one_in) in counts {
            for _ in 0..*times {
                samples.add(OneIn::new(*one_in).unwrap());
            }
        }
        samples
    }

    #[test]
    fn intervals_match_published_tables() {
        // From tables of Garwood's interval.
        for (count, low, high) in [
            (0, 0.0, 3.689),
            (1, 0.025, 5.572),
            (2, 0.242, 7.225),
            (5, 1.623, 11.668),
            (10, 4.795, 18.390),
            (29, 19.422, 41.649),
            (30, 20.241, 42.827),
            (100, 81.364, 121.627),
        ] {
            let found = poisson(count);
            let near = |a: f64, b: f64| (a - b).abs() <= 0.000_6 + b / 3_000.0;
            assert!(
                near(found.0, low) && near(found.1, high),
                "{count}: {found:?}"
            );
        }
        // For many events it is 1.96 times the root.
        let (low, high) = poisson(1_000_000);
        assert!((high - low - 2.0 * 1_960.0).abs() < 4.0, "{low} {high}");
    }

    #[test]
    fn equal_weights_are_scaled() {
        let samples = from_counts(&[(4, 1000)]);
        assert_eq!((samples.sum, samples.one_in()), (4_000, 1_000.0));
        assert_eq!(samples.interval(), (1_089, 10_242));
        assert_eq!(from_counts(&[(1, 1000)]).interval(), (25, 5_572));
        // All packets are captured: no uncertainty.
        assert_eq!(from_counts(&[(7, 1)]).interval(), (7, 7));
        // At least the number of samples.
        assert!(from_counts(&[(50, 2)]).interval().0 >= 50);
    }

    #[test]
    fn missing_datagrams_are_detected_by_sequence_number() {
        let mut sequences = Sequences::default();
        let agent = ([10, 0, 0, 1].into(), 0);
        // Starts, continues, misses two, one of them late, repeats, restarts, wraps.
        for (sequence, missing) in [
            (7, 0),
            (8, 0),
            (11, 2),
            (9, 0),
            (11, 0),
            (12, 0),
            (400_000, 0),
            (400_001, 0),
            (1, 0),
            (2, 0),
            (u32::MAX, 0),
        ] {
            assert_eq!(sequences.missing(agent, sequence).0, missing, "{sequence}");
        }
        assert_eq!(sequences.missing((agent.0, 1), 90), (0, false));
        assert_eq!(sequences.missing((agent.0, 1), 90), (0, true));
        for n in 0..3_000u32 {
            sequences.missing((IpAddr::from(n.to_be_bytes()), 0), 1);
        }
        assert!(sequences.0.len() <= AGENTS);
    }

    #[test]
    fn unequal_weights_widen_the_interval() {
        let width = |samples: Samples| {
            let (low, high) = samples.interval();
            assert!((low..=high).contains(&samples.sum));
            high - low
        };
        assert!(width(from_counts(&[(10, 100), (10, 1900)])) > width(from_counts(&[(20, 1000)])));
        assert!(width(from_counts(&[(1000, 1), (1, 1000)])) > 4_000);
    }

    proptest! {
        #[test]
        fn the_estimate_is_within(counts in prop::collection::vec((1..50u64, 1..100_000u32), 1..5)) {
            let samples = from_counts(&counts);
            let (low, high) = samples.interval();
            prop_assert!(low <= samples.sum && samples.sum <= high && samples.count <= low);
        }

        /// At least 95 % of the intervals of many randomly sampled rows contain the truth.
        #[test]
        fn intervals_cover_the_truth(seed: u64, truth in 20..3_000u64, one_in in 2..200u32) {
            let mut state = seed | 1;
            let mut covered = 0;
            for _ in 0..400 {
                let mut samples = Samples::default();
                for _ in 0..truth {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    if ((state >> 33) % u64::from(one_in)) == 0 {
                        samples.add(OneIn::new(one_in).unwrap());
                    }
                }
                // Without samples there is neither a row nor an interval.
                let (low, high) = samples.interval();
                covered += u32::from(samples.count == 0 || (low..=high).contains(&truth));
            }
            prop_assert!(covered >= 355, "{covered} of 400");
        }
    }
}
