//! The source of a gallery's frames, which are all built before the first is sent.

use fcn_link::sender::{Next, Source};
use std::collections::VecDeque;

/// A list of prebuilt frames, sent once or repeatedly.
pub struct FrameList {
    frames: VecDeque<Vec<u8>>,
    forever: bool,
}

impl FrameList {
    /// Creates a source that sends `frames` once, or repeatedly if `forever`.
    pub fn new(frames: Vec<Vec<u8>>, forever: bool) -> Self {
        let frames = frames.into();
        Self { frames, forever }
    }
}

impl Source for FrameList {
    fn peek(&mut self) -> Next {
        let next = self.frames.front().map(Vec::len);
        next.map_or(Next::End, |len| Next::Frame { at: 0, len })
    }

    fn fill(&mut self, _: usize, out: &mut [u8]) {
        if let Some(frame) = self.frames.front()
            && let Some(out) = out.get_mut(..frame.len())
        {
            out.copy_from_slice(frame);
        }
        self.skip();
    }

    fn skip(&mut self) {
        let frame = self.frames.pop_front();
        self.frames.extend(frame.filter(|_| self.forever));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_sent_once_or_repeatedly() {
        let frames = vec![vec![1; 3], vec![2; 5]];
        let mut out = [0; 9];
        let mut once = FrameList::new(frames.clone(), false);
        for len in [3, 5] {
            assert_eq!(once.peek(), Next::Frame { at: 0, len });
            once.fill(0, &mut out);
        }
        assert_eq!(once.peek(), Next::End);
        assert_eq!(out, [2, 2, 2, 2, 2, 0, 0, 0, 0]);
        let mut forever = FrameList::new(frames, true);
        for len in [3, 5, 3, 5, 3] {
            assert_eq!(forever.peek(), Next::Frame { at: 0, len });
            forever.skip();
        }
        assert_eq!(FrameList::new(Vec::new(), true).peek(), Next::End);
    }
}
