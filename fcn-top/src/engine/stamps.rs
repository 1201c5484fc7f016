//! Plausibility check of time stamps. A single stamp far in the future must not move the clock
//! there: the clock never goes back, so recent activity would seem long past. A stamp far in the
//! past must not stretch charts over years.

/// Plausible distance of a packet's stamp from all earlier ones: a day, in nanoseconds.
const FAR: u64 = 24 * 60 * 60 * 1_000_000_000;
/// Number of consecutive packets stamped that far away that are taken as proof.
const ENOUGH: u8 = 3;

/// The latest and the earliest plausible time. Clocks of interfaces may differ.
///
/// A packet stamped more than a day after all others, or before those of its interface, counts with
/// the latest time, unless it is the third such packet in a row on its interface, each at most a
/// day before the previous one: then its stamp is accepted. The first packet of each interface is
/// accepted as well.
#[derive(Clone, Debug, Default)]
pub struct Stamps {
    clocks: Vec<Clock>,
    /// Over all clocks.
    latest: u64,
    earliest: Option<u64>,
}

/// Clock of one interface.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    /// Earliest accepted time; `None` before the first packet.
    earliest: Option<u64>,
    doubted: u64,
    times: u8,
    /// True if a packet was stamped far from those before.
    far: bool,
}

/// A step of the time stamps by more than a day: its first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outlier {
    /// Distance in nanoseconds.
    pub by: u64,
    /// True if it is later than those before.
    pub ahead: bool,
    /// True if it is the first such packet of its interface.
    pub first: bool,
}

impl Stamps {
    /// Returns the time that counts for a packet stamped `at` by that interface, and its distance
    /// if it is the first implausible one of its step; `now` is the current time. Times are nanoseconds since the epoch.
    #[inline]
    pub fn plausible_time(&mut self, interface: u32, at: u64, now: u64) -> (u64, Option<Outlier>) {
        let place = interface as usize;
        if place >= self.clocks.len() {
            self.clocks.resize(place + 1, Clock::default());
        }
        let clock = &mut self.clocks[place];
        // Time also advances while no packets arrive for days.
        self.latest = self.latest.max(now);
        let mut outlier = None;
        if let Some(earliest) = clock.earliest.or(self.earliest)
            && (at > self.latest.saturating_add(FAR) || at.saturating_add(FAR) < earliest)
        {
            let in_row = clock.count(at, self.latest);
            outlier = (in_row == 1).then(|| Outlier {
                by: at.abs_diff(if at > earliest { self.latest } else { earliest }),
                ahead: at > earliest,
                first: !std::mem::replace(&mut clock.far, true),
            });
            if clock.earliest.is_some() && in_row < ENOUGH {
                return (self.latest, outlier);
            }
        }
        clock.times = 0;
        clock.earliest = Some(at.min(clock.earliest.unwrap_or(at)));
        self.latest = self.latest.max(at);
        self.earliest = Some(at.min(self.earliest.unwrap_or(at)));
        (at, outlier)
    }
}

impl Clock {
    /// Counts a packet with an implausible stamp; returns how many in a row there are.
    #[cold]
    fn count(&mut self, at: u64, latest: u64) -> u8 {
        let follows =
            at >= self.doubted.saturating_sub(FAR) && (at > latest) == (self.doubted > latest);
        self.times = if follows { self.times + 1 } else { 1 };
        self.doubted = at;
        self.times
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: u64 = 1_767_225_600_000_000_000;

    fn all(stamps: &[u64]) -> Vec<u64> {
        let mut believed = Stamps::default();
        (stamps.iter())
            .map(|at| believed.plausible_time(0, *at, 0).0)
            .collect()
    }

    #[test]
    fn one_or_two_future_stamps_are_ignored() {
        let far = NOW + 2 * FAR;
        assert_eq!(
            all(&[NOW, far, NOW + 1, u64::MAX, far, NOW + 2]),
            [NOW, NOW, NOW + 1, NOW + 1, NOW + 1, NOW + 2]
        );
        assert_eq!(all(&[0, 5, NOW]), [0, 5, 5]);
    }

    #[test]
    fn one_or_two_past_stamps_are_ignored() {
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
    fn three_outliers_in_a_row_are_accepted() {
        let far = NOW + 2 * FAR;
        assert_eq!(
            all(&[NOW, far, far + 1, far - 1, far + 3, NOW]),
            [NOW, NOW, NOW, far - 1, far + 3, NOW]
        );
        // Also if each is days after the previous one.
        assert_eq!(
            all(&[NOW, NOW + 2 * FAR, NOW + 4 * FAR, NOW + 6 * FAR]),
            [NOW, NOW, NOW, NOW + 6 * FAR]
        );
    }

    #[test]
    fn a_step_is_reported_at_its_first_packet() {
        let (far, ago) = (NOW + 2 * FAR, NOW - 2 * FAR);
        for (packets, reported) in [
            (&[NOW, ago, ago + 1, ago + 2, ago + 3][..], &[1][..]),
            (&[NOW, far, far + 1, NOW, far, far, far, far], &[1, 4]),
            (&[NOW, far, ago, far, ago], &[1, 2, 3, 4]),
        ] {
            let mut stamps = Stamps::default();
            let outliers = packets
                .iter()
                .map(|at| stamps.plausible_time(0, *at, 0).1.is_some());
            let numbers: Vec<usize> = (outliers.enumerate())
                .filter_map(|(number, outlier)| outlier.then_some(number))
                .collect();
            assert_eq!(numbers, reported);
        }
    }

    #[test]
    fn each_interface_has_its_own_clock() {
        let (mut stamps, ago) = (Stamps::default(), NOW - 2 * FAR);
        for n in 0..9 {
            assert_eq!(stamps.plausible_time(0, NOW + n, 0), (NOW + n, None));
            let outlier = (n == 0).then_some(Outlier {
                by: 2 * FAR,
                ahead: false,
                first: true,
            });
            assert_eq!(stamps.plausible_time(1, ago + n, 0), (ago + n, outlier));
        }
        // An accepted time of the other interface does not apply to this one.
        let (at, far) = stamps.plausible_time(0, ago, 0);
        assert_eq!((at, far.map(|far| far.first)), (NOW + 8, Some(true)));
        // A packet after a long pause is plausible.
        assert_eq!(stamps.plausible_time(1, NOW, 0).1, None);
        let (at, far) = stamps.plausible_time(2, NOW + 3 * FAR, 0);
        assert_eq!(at, NOW + 3 * FAR);
        assert!(far.is_some_and(|far| far.ahead && far.by == 3 * FAR - 8));
        // No packets for days.
        let (later, now) = (NOW + 9 * FAR, NOW + 9 * FAR - 1);
        assert_eq!(stamps.plausible_time(0, later, now), (later, None));
    }

    proptest! {
        #[test]
        fn accepted_times_are_stamps_without_unexplained_steps(
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
