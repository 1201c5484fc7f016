//! The last few frames of a flow, in the order of time: a capture may have them in another.

/// At most `N` frames, those with the latest times. Frames of one time are in the order of their numbers.
#[derive(Clone, Copy, Debug)]
pub struct Recent<const N: usize> {
    times: [u64; N],
    frames: [u32; N],
    /// Place of the newest one.
    newest: u8,
    len: u8,
}

/// A frame and its time, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Its time.
    pub at: u64,
    /// Its number.
    pub frame: u32,
}

impl<const N: usize> Recent<N> {
    /// None yet.
    pub const NEW: Self = {
        assert!(N > 0 && N <= u8::MAX as usize);
        Self {
            times: [0; N],
            frames: [0; N],
            newest: 0,
            len: 0,
        }
    };

    fn get(&self, place: usize) -> Moment {
        Moment {
            at: self.times[place],
            frame: self.frames[place],
        }
    }

    fn set(&mut self, place: usize, moment: Moment) {
        self.times[place] = moment.at;
        self.frames[place] = moment.frame;
    }

    /// The place `back` before the newest one.
    fn place(&self, back: usize) -> usize {
        (usize::from(self.newest) + N - back) % N
    }

    /// Takes in a frame.
    #[inline]
    pub fn push(&mut self, moment: Moment) {
        let full = usize::from(self.len) == N;
        if full && moment.at < self.get(self.place(N - 1)).at {
            return;
        }
        self.newest = ((usize::from(self.newest) + 1) % N) as u8;
        self.set(self.place(0), moment);
        if !full {
            self.len += 1;
        }
        // Mostly nothing to do: frames come in the order of time.
        for back in 1..usize::from(self.len) {
            let (later, earlier) = (self.place(back - 1), self.place(back));
            let before = self.get(earlier);
            if before.at <= moment.at {
                break;
            }
            self.set(later, before);
            self.set(earlier, moment);
        }
    }

    /// The last one that is not later than `at`.
    pub fn before(&self, at: u64) -> Option<Moment> {
        (0..usize::from(self.len))
            .map(|back| self.get(self.place(back)))
            .find(|moment| moment.at <= at)
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
            let mut recent = Recent::<5>::NEW;
            let mut all: Vec<(u64, u32)> = Vec::new();
            for (time, frame) in times.into_iter().zip(1..) {
                recent.push(Moment { at: time, frame });
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
