//! How long between two notifications: the shortest, and percentiles to 5 %.
//!
//! A histogram of eight buckets an octave, each 9 % wide. Few rows see more than a few octaves, so only those that occur
//! have counters: four of them in place, others apart.

use fcn_observe::fetch::fetch;

/// Buckets in an octave.
const BUCKETS: usize = 8;
/// Octaves with a place of their own.
const IN_PLACE: usize = 4;
/// Octaves whose counters are kept together elsewhere.
const TOGETHER: usize = 3;
/// No octave.
const NONE: u8 = u8::MAX;
/// What mantissas (from 0 to 1, in 65,536ths) the buckets of an octave begin with: 2^(i/8) - 1.
const BEGINS: [u16; BUCKETS] = [0, 5932, 12_400, 19_454, 27_146, 35_534, 44_682, 54_658];

/// The counters of some octaves, and where those are that came later still: a list, as a row without any should spend no
/// more than a pointer on them.
#[derive(Clone, Debug)]
struct Apart {
    octaves: [u8; TOGETHER],
    counts: [[u16; BUCKETS]; TOGETHER],
    rest: Option<Box<Self>>,
}

/// Gaps between notifications.
///
/// The order of the fields is that of cache lines: the counters in place fill one.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Gaps {
    min: u64,
    octaves: [u8; IN_PLACE],
    counts: [[u16; BUCKETS]; IN_PLACE],
    /// The octaves that came later.
    rest: Option<Box<Apart>>,
}

impl Default for Gaps {
    fn default() -> Self {
        Self {
            min: u64::MAX,
            octaves: [NONE; IN_PLACE],
            counts: [[0; BUCKETS]; IN_PLACE],
            rest: None,
        }
    }
}

/// Octave and bucket of a gap; 0 counts as 1.
#[inline]
fn place(gap: u64) -> (u8, usize) {
    let gap = gap.max(1);
    let octave = gap.ilog2();
    // The first 16 bits behind the leading one.
    let mantissa = ((gap << (63 - octave) << 1) >> 48) as u16;
    let bucket = BEGINS.iter().filter(|begin| mantissa >= **begin).count();
    (octave as u8, bucket.saturating_sub(1))
}

/// The middle of a bucket, in nanoseconds.
fn middle(octave: u8, bucket: usize) -> u64 {
    (f64::from(octave) + (bucket as f64 + 0.5) / BUCKETS as f64)
        .exp2()
        .round() as u64
}

impl Gaps {
    /// Counts a gap, in nanoseconds.
    #[inline]
    pub fn add(&mut self, gap: u64) {
        self.min = self.min.min(gap);
        let (octave, bucket) = place(gap);
        let full = match self.page(octave).get_mut(bucket) {
            Some(count) => {
                *count += 1;
                *count == u16::MAX
            }
            None => false,
        };
        if full {
            self.halve();
        }
    }

    /// Has the parts fetched from memory that [`add`](Self::add) touches.
    #[inline]
    pub fn fetch(&self) {
        fetch(&self.min);
        fetch(&self.counts[1]);
    }

    #[inline]
    fn page(&mut self, octave: u8) -> &mut [u16; BUCKETS] {
        match find(&mut self.octaves, octave) {
            Some(place) => &mut self.counts[place],
            None => apart(&mut self.rest, octave),
        }
    }

    /// What is kept elsewhere, in pieces; at most 20 of them.
    fn apart(&self) -> impl Iterator<Item = &Apart> {
        core::iter::successors(self.rest.as_deref(), |apart| apart.rest.as_deref())
    }

    /// Makes room for counting on: from here on older gaps weigh half.
    #[cold]
    fn halve(&mut self) {
        let halve = |counts: &mut [[u16; BUCKETS]]| {
            for count in counts.iter_mut().flatten() {
                *count /= 2;
            }
        };
        halve(&mut self.counts);
        let mut rest = self.rest.as_deref_mut();
        while let Some(apart) = rest {
            halve(&mut apart.counts);
            rest = apart.rest.as_deref_mut();
        }
    }

    /// The shortest gap, in nanoseconds.
    #[must_use]
    pub fn min(&self) -> Option<u64> {
        (self.min != u64::MAX).then_some(self.min)
    }

    /// The gaps, in nanoseconds to 5 %, that so many in a hundred are not longer than; `None` without any.
    #[must_use]
    pub fn percentiles<const N: usize>(&self, percents: [u8; N]) -> [Option<u64>; N] {
        let mut pages: Vec<_> = (self.octaves.iter().zip(&self.counts))
            .chain(
                self.apart()
                    .flat_map(|apart| apart.octaves.iter().zip(&apart.counts)),
            )
            .filter(|(octave, _)| **octave != NONE)
            .map(|(octave, counts)| (*octave, counts))
            .collect();
        pages.sort_unstable_by_key(|(octave, _)| *octave);
        let buckets = || {
            let pages = pages.iter();
            pages.flat_map(|(octave, counts)| {
                let counts = counts.iter().enumerate();
                counts.map(|(bucket, count)| (*octave, bucket, u64::from(*count)))
            })
        };
        let total: u64 = buckets().map(|(_, _, count)| count).sum();
        percents.map(|percent| {
            let wanted = (total * u64::from(percent)).div_ceil(100).max(1);
            let mut counted = 0;
            let (octave, bucket, _) = buckets().find(|(_, _, count)| {
                counted += count;
                counted >= wanted
            })?;
            Some(middle(octave, bucket).max(self.min))
        })
    }
}

/// The place of an octave among those, where there is one or room for one.
#[inline]
fn find(octaves: &mut [u8], octave: u8) -> Option<usize> {
    let place = (octaves.iter()).position(|known| *known == octave || *known == NONE)?;
    if let Some(known) = octaves.get_mut(place) {
        *known = octave;
    }
    Some(place)
}

#[cold]
fn apart(mut rest: &mut Option<Box<Apart>>, octave: u8) -> &mut [u16; BUCKETS] {
    loop {
        let apart = rest.get_or_insert_with(|| {
            Box::new(Apart {
                octaves: [NONE; TOGETHER],
                counts: [[0; BUCKETS]; TOGETHER],
                rest: None,
            })
        });
        match find(&mut apart.octaves, octave) {
            Some(place) => return &mut apart.counts[place],
            None => rest = &mut apart.rest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(found: Option<u64>, exact: u64) -> bool {
        found.is_some_and(|found| (found as f64 - exact as f64).abs() <= 0.05 * exact as f64 + 0.5)
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
        (0..64).for_each(|octave| gaps.add(1 << octave));
        gaps.add(0);
        gaps.add(u64::MAX);
        assert_eq!(gaps.min(), Some(0));
        assert!(near(gaps.percentiles([100])[0], u64::MAX));
        assert_eq!(gaps.apart().count(), 20);
    }

    proptest! {
        #[test]
        fn percentiles_are_within_5_percent(mut all in proptest::collection::vec((0u32..40, 0u64..1 << 40), 1..300), percent in 1u8..=100) {
            let mut gaps = Gaps::default();
            let mut all: Vec<u64> = all.drain(..).map(|(shift, gap)| (gap >> shift).max(12)).collect();
            all.iter().for_each(|gap| gaps.add(*gap));
            all.sort_unstable();
            let rank = (all.len() * usize::from(percent)).div_ceil(100).max(1);
            let [found] = gaps.percentiles([percent]);
            prop_assert!(near(found, all[rank - 1]), "{found:?} {}", all[rank - 1]);
        }
    }
}
