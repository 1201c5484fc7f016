//! Source of the frames of one queue that are in memory, sent as often as requested.

use crate::rewriting::Variation;
use crate::timing::Loops;
use fcn_link::sender::{Batch, Next, Source};

/// Returns a suitable number of slots for a queue with a capture of `frames` frames. If a whole
/// number of loops fills the slots exactly, each slot always holds the same frame, and nothing has
/// to be copied. `None` if no number is better than others.
#[must_use]
pub fn good_slots(frames: usize, longest: usize) -> Option<usize> {
    /// Maximum number of frames; more are copied.
    const MOST: usize = 16_384;
    /// Minimum number of slots, enough to keep every driver busy.
    const LEAST: usize = 256;
    /// Maximum memory for slots, in octets.
    const MEMORY: usize = 64 << 20;
    if !(1..=MOST).contains(&frames) {
        return None;
    }
    let slots = frames * LEAST.div_ceil(frames);
    // AF_XDP has chunks of 2 or 4 KiB.
    (slots * longest.next_multiple_of(4_096) <= MEMORY).then_some(slots)
}

/// The frames of one queue, in memory, sent loop after loop.
#[derive(Debug)]
pub struct Preloaded {
    batch: Batch,
    loops: Loops,
    variation: Variation,
    /// Index of the next frame, and its loop.
    next: usize,
    loop_: u64,
    /// Number of frames still to be sent.
    left: u64,
    /// Contents of slots: the number of a frame, from 1, and its loop (always 0 if loops do not
    /// differ).
    holds: Vec<(usize, u64)>,
}

impl Preloaded {
    /// Creates a source of the frames of `batch`, `total` of them over all loops.
    #[must_use]
    pub fn new(batch: Batch, loops: Loops, variation: Variation, total: u64) -> Self {
        Self {
            left: if batch.is_empty() { 0 } else { total },
            batch,
            loops,
            variation,
            next: 0,
            loop_: 0,
            holds: Vec::new(),
        }
    }
}

impl Source for Preloaded {
    #[inline]
    fn peek(&mut self) -> Next {
        match self.batch.frame_info(self.next) {
            Some((place, len)) if self.left > 0 => Next::Frame {
                at: self.loops.due(self.loop_, place),
                len,
            },
            _ => Next::End,
        }
    }

    #[inline]
    fn interface(&self) -> u32 {
        self.batch.interface(self.next)
    }

    #[inline]
    fn fill(&mut self, slot: usize, out: &mut [u8]) {
        let frame = self.batch.frame(self.next);
        let varied = self.variation.differs(self.loop_);
        let here = (self.next + 1, if varied { self.loop_ } else { 0 });
        if self.holds.len() <= slot {
            self.holds.resize(slot + 1, (0, 0));
        }
        if let Some(holds) = self.holds.get_mut(slot)
            && *holds != here
        {
            *holds = here;
            self.variation.write(frame, self.loop_, out);
        }
        self.skip();
    }

    #[inline]
    fn skip(&mut self) {
        self.left = self.left.saturating_sub(1);
        self.next += 1;
        if self.next >= self.batch.len() {
            self.next = 0;
            self.loop_ += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::{Places, Speed, TimeBase};
    use proptest::prelude::*;

    fn batch(frames: &[Vec<u8>]) -> (Batch, Loops) {
        let mut places = Places::new(TimeBase::Stamps {
            speed: Speed::CAPTURED,
            max_gap: None,
        });
        let mut batch = Batch::default();
        for (i, frame) in frames.iter().enumerate() {
            batch.push(
                places.next(0, Some(i as u64 * 100), frame.len()).0,
                0,
                frame,
            );
        }
        (batch, places.end(None))
    }

    /// Returns the output through `slots` slots that are used in turn, of which one is lost now and
    /// then.
    fn drain(source: &mut Preloaded, slots: usize, lose: usize) -> Vec<(u64, Vec<u8>)> {
        let mut memory = vec![vec![0xEE; 64]; slots];
        let (mut out, mut slot) = (Vec::new(), 0);
        while let Next::Frame { at, len } = source.peek() {
            assert_eq!(source.peek(), Next::Frame { at, len });
            if out.len() % lose == lose - 1 {
                slot = (slot + 1) % slots;
            }
            source.fill(slot, &mut memory[slot]);
            out.push((at, memory[slot][..len].to_vec()));
            slot = (slot + 1) % slots;
        }
        out
    }

    fn frames() -> impl Strategy<Value = Vec<Vec<u8>>> {
        proptest::collection::vec(proptest::collection::vec(any::<u8>(), 14..64), 1..40)
    }

    proptest! {
        #[test]
        fn every_loop_sends_all_frames_in_order(
            frames in frames(),
            loops in 1u64..6,
            more in 0u64..40,
            slots in 1usize..300,
            lose in 1usize..50,
            good in any::<bool>(),
        ) {
            let (batch, times) = batch(&frames);
            let more = more % frames.len() as u64;
            let total = frames.len() as u64 * loops + more;
            let slots = if good { good_slots(frames.len(), 64).unwrap() } else { slots };
            let mut source = Preloaded::new(batch, times, Variation::default(), total);
            let out = drain(&mut source, slots, lose);
            prop_assert_eq!(out.len() as u64, total);
            for (i, (at, frame)) in out.iter().enumerate() {
                prop_assert_eq!(frame, &frames[i % frames.len()]);
                let (loop_, place) = (i / frames.len(), i % frames.len());
                prop_assert_eq!(*at, times.due(loop_ as u64, place as u64 * 100));
            }
        }
    }

    #[test]
    fn slots_with_the_same_frame_are_not_written() {
        let frames: Vec<Vec<u8>> = (0..3u8).map(|i| vec![i; 20]).collect();
        let (batch, times) = batch(&frames);
        let slots = good_slots(3, 20).unwrap();
        assert_eq!(slots % 3, 0);
        let mut source = Preloaded::new(batch, times, Variation::default(), u64::MAX);
        let mut memory = vec![vec![0; 20]; slots];
        for (slot, octets) in memory.iter_mut().enumerate() {
            source.fill(slot, octets);
        }
        // If anything were written now, it would change this.
        memory[5] = vec![0xEE; 20];
        for (slot, octets) in memory.iter_mut().enumerate() {
            source.fill(slot, octets);
        }
        assert_eq!(memory[5], vec![0xEE; 20]);
        assert_eq!(memory[4], vec![1; 20]);
    }

    #[test]
    fn good_slots_depend_on_the_number_of_frames() {
        assert_eq!(good_slots(1, 100), Some(256));
        assert_eq!(good_slots(100, 100), Some(300));
        assert_eq!(good_slots(16_384, 1_514), Some(16_384));
        assert_eq!(good_slots(16_384, 9_014), None);
        assert_eq!(good_slots(16_385, 100), None);
        assert_eq!(good_slots(0, 100), None);
        let (empty, times) = batch(&[]);
        assert_eq!(
            Preloaded::new(empty, times, Variation::default(), 9).peek(),
            Next::End
        );
    }
}
