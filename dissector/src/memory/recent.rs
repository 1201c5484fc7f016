//! The last few frames of a flow, in the order of time: a capture may have them in another.

/// A frame and its time, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameTime {
    /// Its time.
    pub at: u64,
    /// Its number.
    pub frame: u32,
}

/// At most `N` frames, those with the latest times, in their order; frames of one time in that of the file.
#[derive(Clone, Copy, Debug)]
pub struct Recent<const N: usize> {
    frames: [FrameTime; N],
    len: usize,
}

impl<const N: usize> Default for Recent<N> {
    /// None yet.
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

    /// Takes in a frame.
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

    /// The last one that is not later than `at`.
    pub fn before(&self, at: u64) -> Option<FrameTime> {
        let known = self.all().iter();
        known.rev().find(|moment| moment.at <= at).copied()
    }

    /// The last one.
    pub fn latest(&self) -> Option<FrameTime> {
        self.all().last().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a list that forgets nothing and is sorted.
        #[test]
        fn it_has_the_latest(times in proptest::collection::vec(0u64..40, 0..60), at in 0u64..45) {
            let mut recent = Recent::<5>::default();
            let mut all: Vec<(u64, u32)> = Vec::new();
            for (time, frame) in times.into_iter().zip(1..) {
                recent.push(FrameTime { at: time, frame });
                all.push((time, frame));
                all.sort_unstable();
                // What was pushed out is not found; of equal times the later ones stay.
                let kept = &all[all.len().saturating_sub(5)..];
                let want = kept.iter().rev().find(|(time, _)| *time <= at);
                let got = recent.before(at).map(|moment| (moment.at, moment.frame));
                prop_assert_eq!(got, want.copied());
            }
        }
    }
}
