//! The latest few frames of a flow, ordered by time, which may differ from their order in the
//! capture.

/// A frame and its time, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameTime {
    /// Time.
    pub at: u64,
    /// Frame number.
    pub frame: u32,
}

/// The up to `N` frames with the latest times, in order of time; frames with equal times in file
/// order.
#[derive(Clone, Copy, Debug)]
pub struct Recent<const N: usize> {
    frames: [FrameTime; N],
    len: usize,
}

impl<const N: usize> Default for Recent<N> {
    /// Returns an empty list.
    fn default() -> Self {
        Self {
            frames: [FrameTime { at: 0, frame: 0 }; N],
            len: 0,
        }
    }
}

impl<const N: usize> Recent<N> {
    fn all(&self) -> &[FrameTime] {
        self.frames.get(..self.len).unwrap_or_default()
    }

    /// Adds a frame.
    #[inline]
    pub fn push(&mut self, moment: FrameTime) {
        let earlier = self.all().iter().rposition(|known| known.at <= moment.at);
        let mut place = earlier.map_or(0, |earlier| earlier + 1);
        if self.len < N {
            self.frames.copy_within(place..self.len, place + 1);
            self.len += 1;
        } else if let Some(before) = place.checked_sub(1) {
            place = before;
            self.frames.copy_within(1..=place, 0);
        } else {
            return;
        }
        self.frames[place] = moment;
    }

    /// Returns the last frame that is not later than `at`.
    pub fn before(&self, at: u64) -> Option<FrameTime> {
        let known = self.all().iter();
        known.rev().find(|moment| moment.at <= at).copied()
    }

    /// Returns the last frame.
    pub fn latest(&self) -> Option<FrameTime> {
        self.all().last().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares it with a sorted list that forgets nothing.
        #[test]
        fn the_latest_frames_are_kept(times in proptest::collection::vec(0u64..40, 0..60), at in 0u64..45) {
            let mut recent = Recent::<5>::default();
            let mut all: Vec<(u64, u32)> = Vec::new();
            for (time, frame) in times.into_iter().zip(1..) {
                recent.push(FrameTime { at: time, frame });
                all.push((time, frame));
                all.sort_unstable();
                // Evicted frames are not found; of equal times, the later frames stay.
                let kept = &all[all.len().saturating_sub(5)..];
                let want = kept.iter().rev().find(|(time, _)| *time <= at);
                let got = recent.before(at).map(|moment| (moment.at, moment.frame));
                prop_assert_eq!(got, want.copied());
            }
        }
    }
}
