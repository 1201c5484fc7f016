//! Gaps between events, such as notifications: the minimum, and percentiles accurate to 1 %.
//!
//! A histogram of 38 buckets per octave. Few rows have gaps in more than a few octaves, so only
//! octaves that occur have counters: `hdrhistogram` would take 6 KB for each row whose gaps reach a
//! second, a hundred thousand times.

/// Buckets per octave: enough for their middle to be within 1 % of their contents.
const BUCKETS: u64 = 38;
/// The value 1 as a gap's mantissa.
const ONE: u64 = 1 << 16;

/// Counters of an octave.
type Octave = [u16; BUCKETS as usize];

/// Gaps between events. At most 5 KB including spare capacity, with gaps of all lengths.
#[derive(Clone, Debug)]
pub struct Gaps {
    min: u64,
    max: u64,
    /// Bit set of the octaves with counters.
    has: u64,
    octaves: Vec<Octave>,
}

impl Default for Gaps {
    fn default() -> Self {
        Self {
            min: u64::MAX,
            max: 0,
            has: 0,
            octaves: Vec::new(),
        }
    }
}

/// Returns the octave and bucket of a gap. The first octave contains only 1, preceded by 0.
///
/// With m from 0 to 1, the fraction after the leading one, buckets have equal length in m (4 - m) /
/// 3, which is close enough to the logarithm of 1 + m: its slope is at least 4/3 of the
/// logarithm's, so a bucket is at most 3/4 of 1/38 wide.
#[inline]
const fn place(gap: u64) -> (u32, usize) {
    if gap <= 1 {
        return (0, gap as usize);
    }
    let octave = gap.ilog2();
    // The first 16 bits after the leading one.
    let m = (gap << (63 - octave) << 1) >> 48;
    (
        octave,
        (m * (4 * ONE - m) * BUCKETS / (3 * ONE * ONE)) as usize,
    )
}

/// Returns the middle of a bucket, in nanoseconds.
fn middle(octave: u32, bucket: usize) -> u64 {
    if octave == 0 {
        return bucket as u64;
    }
    let part = (bucket as f64 + 0.5) / BUCKETS as f64;
    let m = 2.0 - (4.0 - 3.0 * part).sqrt();
    ((1.0 + m) * (1_u64 << octave) as f64).round() as u64
}

impl Gaps {
    /// Counts a gap, in nanoseconds.
    #[inline]
    pub fn add(&mut self, gap: u64) {
        self.min = self.min.min(gap);
        self.max = self.max.max(gap);
        let (octave, bucket) = place(gap);
        let bit = 1 << octave;
        let at = (self.has & (bit - 1)).count_ones() as usize;
        if self.has & bit == 0 {
            self.begin(bit, at);
        }
        let counts = self.octaves.get_mut(at);
        let Some(count) = counts.and_then(|counts| counts.get_mut(bucket)) else {
            return;
        };
        *count += 1;
        if *count == u16::MAX {
            self.halve();
        }
    }

    #[cold]
    fn begin(&mut self, bit: u64, at: usize) {
        self.octaves.reserve_exact(1);
        self.octaves.insert(at, [0; BUCKETS as usize]);
        self.has |= bit;
    }

    /// Halves all counters to avoid overflow; older gaps weigh half from now on.
    #[cold]
    fn halve(&mut self) {
        for count in self.octaves.as_flattened_mut() {
            *count /= 2;
        }
    }

    /// Returns the shortest gap, in nanoseconds.
    #[must_use]
    pub fn min(&self) -> Option<u64> {
        (self.min != u64::MAX).then_some(self.min)
    }

    /// Returns percentiles of the gaps, in nanoseconds to 1 %, between the shortest and the longest
    /// gap; `None` without gaps.
    #[must_use]
    pub fn percentiles<const N: usize>(&self, percents: [u8; N]) -> [Option<u64>; N] {
        let count_of = |counts: &Octave| counts.iter().map(|count| u32::from(*count)).sum::<u32>();
        let total: u64 = (self.octaves.iter().map(count_of).map(u64::from)).sum();
        percents.map(|percent| {
            let mut rank = (total * u64::from(percent)).div_ceil(100).max(1);
            let mut octaves = (0..u64::BITS)
                .filter(|octave| self.has >> octave & 1 == 1)
                .zip(&self.octaves);
            let (octave, counts) = octaves.find(|(_, counts)| {
                let here = u64::from(count_of(counts));
                let found = here >= rank;
                rank -= if found { 0 } else { here };
                found
            })?;
            let mut counted = 0;
            let bucket = counts.iter().position(|count| {
                counted += u64::from(*count);
                counted >= rank
            })?;
            Some(middle(octave, bucket).max(self.min).min(self.max))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(found: Option<u64>, exact: u64) -> bool {
        found.is_some_and(|found| (found as f64 - exact as f64).abs() <= 0.01 * exact as f64 + 0.5)
    }

    #[test]
    fn percentiles_of_hand_checked_gaps() {
        assert_eq!(Gaps::default().percentiles([50]), [None]);
        assert_eq!(Gaps::default().min(), None);
        // 50 µs ninety times, 2 ms nine times, 1 s once.
        let mut gaps = Gaps::default();
        for (gap, times) in [(1_000_000_000, 1), (50_000, 90), (2_000_000, 9)] {
            (0..times).for_each(|_| gaps.add(gap));
        }
        assert_eq!(gaps.min(), Some(50_000));
        let [p50, p90, p91, p99, p100] = gaps.percentiles([50, 90, 91, 99, 100]);
        assert!(near(p50, 50_000) && near(p90, 50_000), "{p50:?} {p90:?}");
        assert!(
            near(p91, 2_000_000) && near(p99, 2_000_000),
            "{p91:?} {p99:?}"
        );
        assert!(near(p100, 1_000_000_000), "{p100:?}");
    }

    #[test]
    fn every_gap_is_within_1_percent_of_the_middle_of_its_bucket() {
        for octave in 7..64 {
            for part in 0..4_096_u64 {
                let gap = (1 << octave) + ((part << octave) >> 12);
                let (in_octave, bucket) = place(gap);
                assert_eq!(in_octave, octave);
                let found = middle(octave, bucket);
                assert!(
                    (found as f64 / gap as f64 - 1.0).abs() <= 0.01 + 0.5 / gap as f64,
                    "{gap} {found}"
                );
            }
        }
    }

    #[test]
    fn a_full_counter_changes_no_percentile() {
        let mut gaps = Gaps::default();
        for _ in 0..10_000 {
            (0..98).for_each(|_| gaps.add(1_000));
            (0..2).for_each(|_| gaps.add(1_000_000));
        }
        let [p50, p99] = gaps.percentiles([50, 99]);
        assert!(near(p50, 1_000) && near(p99, 1_000_000), "{p50:?} {p99:?}");
    }

    #[test]
    fn the_ends_of_the_scale_have_buckets() {
        let mut gaps = Gaps::default();
        (0..64).rev().for_each(|octave| gaps.add(1 << octave));
        gaps.add(0);
        gaps.add(u64::MAX);
        assert_eq!(gaps.min(), Some(0));
        assert!(near(gaps.percentiles([100])[0], u64::MAX));
        assert_eq!((gaps.octaves.len(), gaps.octaves.capacity()), (64, 64));
    }

    #[test]
    fn percentiles_lie_between_minimum_and_maximum() {
        for all in [
            &[0, 0, 0][..],
            &[0, 0, 0, 5],
            &[1, 1, 2],
            &[1_000, 1_001],
            &[57_001],
        ] {
            let mut gaps = Gaps::default();
            all.iter().for_each(|gap| gaps.add(*gap));
            let [p50, p99] = gaps.percentiles([50, 99]).map(Option::unwrap);
            assert!(near(Some(p50), all[(all.len() - 1) / 2]), "{all:?}: {p50}");
            assert!(p99 >= p50 && p99 <= all[all.len() - 1], "{all:?}: {p99}");
        }
        let mut gaps = Gaps::default();
        (0..3).for_each(|_| gaps.add(0));
        assert_eq!(gaps.percentiles([50, 100]), [Some(0), Some(0)]);
    }

    proptest! {
        #[test]
        fn percentiles_are_within_1_percent(mut all in proptest::collection::vec((0u32..40, 0u64..1 << 40), 1..300), percent in 1u8..=100) {
            let mut gaps = Gaps::default();
            let mut all: Vec<u64> = all.drain(..).map(|(shift, gap)| (gap >> shift).max(64)).collect();
            all.iter().for_each(|gap| gaps.add(*gap));
            all.sort_unstable();
            let rank = (all.len() * usize::from(percent)).div_ceil(100).max(1);
            let [found] = gaps.percentiles([percent]);
            prop_assert!(near(found, all[rank - 1]), "{found:?} {}", all[rank - 1]);
            prop_assert!((all.first()..=all.last()).contains(&found.as_ref()));
        }
    }
}
