//! Which time stamps are believed. One packet with a stamp from far ahead must not move the clock there: it never goes back, so
//! that nothing would have happened lately from then on. Nor must one from long ago stretch charts over years.

/// How much later or earlier than all before a packet may be stamped without a doubt: a day, in nanoseconds.
const FAR: u64 = 24 * 60 * 60 * 1_000_000_000;
/// So many packets in a row that are stamped so far away show that time is there.
const ENOUGH: u8 = 3;

/// The latest and the earliest time that are believed.
///
/// A packet that is stamped more than a day after all others, or before them, counts with the latest time, unless it is the
/// third such packet in a row (each of them not more than a day before the one in front of it): then that is believed. So
/// is the first packet of all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stamps {
    latest: u64,
    earliest: u64,
    doubted: u64,
    times: u8,
}

impl Stamps {
    /// The time that a packet stamped `at` counts with; both in nanoseconds since the epoch.
    #[inline]
    pub fn believed(&mut self, at: u64) -> u64 {
        if self.latest == 0 {
            self.earliest = at;
        } else if at > self.latest.saturating_add(FAR) || at.saturating_add(FAR) < self.earliest {
            return self.doubt(at);
        }
        self.latest = self.latest.max(at);
        self.earliest = self.earliest.min(at);
        self.times = 0;
        at
    }

    #[cold]
    fn doubt(&mut self, at: u64) -> u64 {
        let is_ahead = at > self.latest;
        let follows =
            at >= self.doubted.saturating_sub(FAR) && is_ahead == (self.doubted > self.latest);
        self.times = if follows { self.times + 1 } else { 1 };
        self.doubted = at;
        if self.times < ENOUGH {
            return self.latest;
        }
        self.times = 0;
        self.latest = self.latest.max(at);
        self.earliest = self.earliest.min(at);
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: u64 = 1_767_225_600_000_000_000;

    fn all(stamps: &[u64]) -> Vec<u64> {
        let mut believed = Stamps::default();
        stamps.iter().map(|at| believed.believed(*at)).collect()
    }

    #[test]
    fn one_or_two_from_far_ahead_move_nothing() {
        let far = NOW + 2 * FAR;
        assert_eq!(
            all(&[NOW, far, NOW + 1, u64::MAX, far, NOW + 2]),
            [NOW, NOW, NOW + 1, NOW + 1, NOW + 1, NOW + 2]
        );
        assert_eq!(all(&[0, 5, NOW]), [0, 5, 5]);
    }

    #[test]
    fn one_or_two_from_long_ago_move_nothing_either() {
        let ago = NOW - 2 * FAR;
        assert_eq!(
            all(&[
                NOW,
                NOW + 1,
                ago,
                NOW + 2,
                0,
                ago,
                NOW + 3 * FAR,
                NOW - FAR,
                ago
            ]),
            [
                NOW,
                NOW + 1,
                NOW + 1,
                NOW + 2,
                NOW + 2,
                NOW + 2,
                NOW + 2,
                NOW - FAR,
                ago
            ]
        );
        assert_eq!(
            all(&[NOW, ago, ago + 1, ago + 2, ago, NOW]),
            [NOW, NOW, NOW, ago + 2, ago, NOW]
        );
    }

    #[test]
    fn three_in_a_row_do() {
        let far = NOW + 2 * FAR;
        assert_eq!(
            all(&[NOW, far, far + 1, far - 1, far + 3, NOW]),
            [NOW, NOW, NOW, far - 1, far + 3, NOW]
        );
        // Also where each is days after the one before.
        assert_eq!(
            all(&[NOW, NOW + 2 * FAR, NOW + 4 * FAR, NOW + 6 * FAR]),
            [NOW, NOW, NOW, NOW + 6 * FAR]
        );
    }

    proptest! {
        #[test]
        fn what_is_believed_is_a_stamp_and_no_step_is_long_without_reason(
            stamps in proptest::collection::vec(0..10_u64, 1..100),
        ) {
            let stamps: Vec<u64> = stamps.iter().map(|n| NOW + n * FAR * 3 / 4).collect();
            let mut latest = 0;
            for (number, believed) in all(&stamps).into_iter().enumerate() {
                prop_assert!(stamps[..=number].contains(&believed));
                if number > 0 && believed > latest + FAR {
                    prop_assert!(number >= 3);
                    prop_assert!(stamps[number - 2..=number].iter().all(|at| *at > latest + FAR));
                }
                latest = latest.max(believed);
            }
        }
    }
}
