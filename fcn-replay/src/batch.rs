//! A batch of frames in one contiguous piece of memory.

/// A frame in a [`Batch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// When it is due: its place in the loop (preloaded), or nanoseconds since the beginning (streamed).
    pub at: u64,
    start: usize,
    len: u32,
    /// The capture's interface.
    interface: u32,
}

/// Octets of memory that a frame takes beside its own.
pub const OVERHEAD: usize = size_of::<Held>();

/// Frames one behind another.
#[derive(Debug, Default)]
pub struct Batch {
    octets: Vec<u8>,
    frames: Vec<Held>,
}

impl Batch {
    /// Adds a frame.
    #[inline]
    pub fn push(&mut self, at: u64, interface: u32, frame: &[u8]) {
        let held = Held {
            at,
            start: self.octets.len(),
            // No capture has longer ones than 2^18.
            len: frame.len() as u32,
            interface,
        };
        self.octets.extend_from_slice(frame);
        self.frames.push(held);
    }

    /// How many frames there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// When the frame at `index` is due, and its octets' number.
    #[inline]
    #[must_use]
    pub fn look(&self, index: usize) -> Option<(u64, usize)> {
        let held = self.frames.get(index)?;
        Some((held.at, held.len as usize))
    }

    /// The capture's interface that the frame at `index` was seen at.
    #[inline]
    #[must_use]
    pub fn interface(&self, index: usize) -> u32 {
        self.frames.get(index).map_or(0, |held| held.interface)
    }

    /// The octets of the frame at `index`; none behind the last.
    #[inline]
    #[must_use]
    pub fn frame(&self, index: usize) -> &[u8] {
        self.frames
            .get(index)
            .and_then(|held| self.octets.get(held.start..held.start + held.len as usize))
            .unwrap_or_default()
    }

    /// Octets of the longest frame.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.frames
            .iter()
            .map(|held| held.len as usize)
            .max()
            .unwrap_or(0)
    }

    /// Empties it, but keeps its memory.
    pub fn clear(&mut self) {
        self.octets.clear();
        self.frames.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_kept_as_they_are() {
        let mut batch = Batch::default();
        for (at, interface, frame) in [(5, 0, &b"abc"[..]), (7, 9, b"d"), (7, 0, b"efgh")] {
            batch.push(at, interface, frame);
        }
        assert_eq!((batch.len(), batch.longest()), (3, 4));
        assert_eq!(batch.look(1), Some((7, 1)));
        assert_eq!((batch.interface(0), batch.interface(1)), (0, 9));
        assert_eq!(batch.frame(2), b"efgh");
        assert_eq!((batch.look(3), batch.frame(3)), (None, &b""[..]));
        batch.clear();
        assert!(batch.is_empty());
    }
}
