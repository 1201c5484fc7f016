//! What samples tell of how many packets there were: an estimate, and how far that may be off.

use rustc_hash::FxHashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;

/// Of how many packets a sample is one; each was as likely to be it.
pub type OneIn = NonZeroU32;

/// Samples, and what they stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Samples {
    /// How many.
    pub count: u64,
    /// How many packets they stand for: the estimate.
    pub sum: u64,
    /// Sum of the squares of what each stands for.
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

    /// Of how many packets one was sampled, on average; 0 where none was.
    pub fn one_in(&self) -> f64 {
        self.sum as f64 / self.count.max(1) as f64
    }

    /// Between which numbers that of the packets is, to 95 %, where what is sampled is left to chance.
    pub fn interval(&self) -> (u64, u64) {
        if self.sum == self.count {
            return (self.count, self.count);
        }
        // Where some stand for more than others, it is as far off as that of fewer that stand for as many each.
        let alike = (self.sum as f64).powi(2) / self.squares;
        let alike = (alike + 1e-6).floor().clamp(1.0, self.count as f64);
        let each = self.sum as f64 / alike;
        let (low, high) = poisson(alike as u64);
        let low = (low * each).floor() as u64;
        (low.max(self.count), (high * each).ceil() as u64)
    }
}

/// Agents whose datagrams are counted: packets may say anything.
const AGENTS: usize = 1_000;
/// What is no more ahead than that is: of what is further, the agent has begun anew.
const AHEAD: u32 = 1 << 16;
/// What is no more behind than that comes late.
const BEHIND: u32 = 1_000;

/// The numbers of the datagrams with samples, by which those that are missing are known.
#[derive(Debug, Default)]
pub struct Sequences(FxHashMap<(IpAddr, u32), u32>);

impl Sequences {
    /// Takes in the next datagram of an agent's part; returns how many are missing in front of it, and whether it has the
    /// number of the one before.
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

/// From how many events on an approximation is off by less than one in three thousand.
const MANY: u64 = 30;

/// The means of Poisson distributions of which `count` is neither among the lowest nor among the highest 2.5 % (Garwood's
/// interval).
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

/// The mean from which on `beyond` says so of the probabilities of fewer than `count` events, and of so many.
fn mean_where(count: u64, beyond: impl Fn(f64, f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 2.0 * count as f64 + 10.0);
    for _ in 0..60 {
        let mean = f64::midpoint(low, high);
        let (mut below, mut this) = (0.0, f64::exp(-mean));
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
    fn intervals_are_those_of_the_tables() {
        // As tables of Garwood's interval have them.
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
        // For many it is 1.96 times the root.
        let (low, high) = poisson(1_000_000);
        assert!((high - low - 2.0 * 1_960.0).abs() < 4.0, "{low} {high}");
    }

    #[test]
    fn what_is_alike_is_scaled() {
        let samples = from_counts(&[(4, 1000)]);
        assert_eq!((samples.sum, samples.one_in()), (4_000, 1_000.0));
        assert_eq!(samples.interval(), (1_089, 10_242));
        assert_eq!(from_counts(&[(1, 1000)]).interval(), (25, 5_572));
        // All of them: nothing is left to chance.
        assert_eq!(from_counts(&[(7, 1)]).interval(), (7, 7));
        // So many were seen.
        assert!(from_counts(&[(50, 2)]).interval().0 >= 50);
    }

    #[test]
    fn missing_datagrams_are_known_by_their_numbers() {
        let mut sequences = Sequences::default();
        let agent = ([10, 0, 0, 1].into(), 0);
        // Begins, goes on, misses two, one of them late, twice the same, begins anew, wraps.
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
    fn what_differs_is_less_sure() {
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

        /// Of many rows sampled at random, 95 in a hundred intervals have the truth, or more.
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
                // Of what was never sampled there is no row, nor an interval.
                let (low, high) = samples.interval();
                covered += u32::from(samples.count == 0 || (low..=high).contains(&truth));
            }
            prop_assert!(covered >= 355, "{covered} of 400");
        }
    }
}
