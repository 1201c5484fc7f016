//! Passes frames from a thread that generates them to a thread that sends them, in a fixed number
//! of batches that are filled, emptied, and filled again.

use super::{Next, Source};
// The sender no longer takes frames.
pub use std::sync::mpsc::RecvError as Gone;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};

/// A frame in a [`Batch`].
#[derive(Clone, Copy, Debug)]
struct FrameEntry {
    at: u64,
    start: usize,
    len: u32,
    interface: u32,
}

/// Frames stored one after another in contiguous memory.
#[derive(Debug, Default)]
pub struct Batch {
    octets: Vec<u8>,
    frames: Vec<FrameEntry>,
}

impl Batch {
    /// Memory overhead per frame, in octets.
    pub const OVERHEAD: usize = size_of::<FrameEntry>();

    /// Adds a frame that was captured at the capture's `interface` and is due `at`, in any time
    /// base.
    #[inline]
    pub fn push(&mut self, at: u64, interface: u32, frame: &[u8]) {
        self.octets.extend_from_slice(frame);
        self.hold(at, interface, frame.len());
    }

    /// Adds a frame of `len` octets written by `fill`, as by [`push`](Self::push). If `fill`
    /// returns false, the frame is discarded.
    #[inline]
    pub fn push_with(
        &mut self,
        (at, interface): (u64, u32),
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> bool,
    ) -> bool {
        let start = self.octets.len();
        self.octets.resize(start + len, 0);
        let wanted = fill(self.octets.get_mut(start..).unwrap_or_default());
        if wanted {
            self.hold(at, interface, len);
        } else {
            self.octets.truncate(start);
        }
        wanted
    }

    #[inline]
    fn hold(&mut self, at: u64, interface: u32, len: usize) {
        self.frames.push(FrameEntry {
            at,
            start: self.octets.len() - len,
            // Frames of captures have at most 2^18 octets.
            len: len as u32,
            interface,
        });
    }

    /// Returns the number of frames.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.frames.len()
    }

    /// True if there are no frames.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Returns the total length of all frames, in octets.
    #[must_use]
    pub const fn octets(&self) -> usize {
        self.octets.len()
    }

    /// Returns the due time and the length in octets of the frame at `index`.
    #[inline]
    #[must_use]
    pub fn frame_info(&self, index: usize) -> Option<(u64, usize)> {
        let held = self.frames.get(index)?;
        Some((held.at, held.len as usize))
    }

    /// Returns the capture's interface on which the frame at `index` was captured.
    #[inline]
    #[must_use]
    pub fn interface(&self, index: usize) -> u32 {
        self.frames.get(index).map_or(0, |held| held.interface)
    }

    /// Returns the octets of the frame at `index`; empty after the last one.
    #[inline]
    #[must_use]
    pub fn frame(&self, index: usize) -> &[u8] {
        self.frames
            .get(index)
            .and_then(|held| self.octets.get(held.start..held.start + held.len as usize))
            .unwrap_or_default()
    }

    /// Returns the length of the longest frame, in octets.
    #[must_use]
    pub fn longest(&self) -> usize {
        let lengths = self.frames.iter().map(|held| held.len as usize);
        lengths.max().unwrap_or(0)
    }

    fn clear(&mut self) {
        self.octets.clear();
        self.frames.clear();
    }
}

/// Creates the generator's side and the sender's side of a stream with this number of `batches`.
#[must_use]
pub fn stream(batches: usize) -> (BatchSender, BatchReceiver) {
    let (full, arriving) = sync_channel(batches);
    let (back, returned) = channel();
    let sender = BatchSender {
        batch: Batch::default(),
        full,
        returned,
        left: batches.saturating_sub(1),
    };
    let receiver = BatchReceiver {
        arriving,
        back,
        batch: Batch::default(),
        next: 0,
    };
    (sender, receiver)
}

/// The generator's side of a stream.
#[derive(Debug)]
pub struct BatchSender {
    /// The batch being filled.
    pub batch: Batch,
    full: SyncSender<Batch>,
    returned: Receiver<Batch>,
    /// Number of batches that were not needed yet.
    left: usize,
}

impl BatchSender {
    /// Hands the batch over, if it is not empty, in exchange for an empty one. If none is
    /// available, this waits for the sender, which limits how far the generator runs ahead.
    ///
    /// # Errors
    /// The sender has gone.
    pub fn hand_over(&mut self) -> Result<(), Gone> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let empty = match self.returned.try_recv() {
            Ok(empty) => empty,
            Err(_) if self.left > 0 => {
                self.left -= 1;
                Batch::default()
            }
            Err(_) => self.returned.recv()?,
        };
        let full = std::mem::replace(&mut self.batch, empty);
        self.full.send(full).map_err(|_| Gone)
    }
}

/// The sender's side of a stream.
#[derive(Debug)]
pub struct BatchReceiver {
    arriving: Receiver<Batch>,
    /// Returns empty batches.
    back: Sender<Batch>,
    batch: Batch,
    next: usize,
}

impl Source for BatchReceiver {
    #[inline]
    fn peek(&mut self) -> Next {
        loop {
            if let Some((at, len)) = self.batch.frame_info(self.next) {
                return Next::Frame { at, len };
            }
            match self.arriving.try_recv() {
                Ok(batch) => {
                    let mut old = std::mem::replace(&mut self.batch, batch);
                    self.next = 0;
                    old.clear();
                    // At the end, no one takes it any more.
                    let _ = self.back.send(old);
                }
                Err(TryRecvError::Empty) => return Next::NotYet,
                Err(TryRecvError::Disconnected) => return Next::End,
            }
        }
    }

    #[inline]
    fn fill(&mut self, _: usize, out: &mut [u8]) {
        let frame = self.batch.frame(self.next);
        if let Some(out) = out.get_mut(..frame.len()) {
            out.copy_from_slice(frame);
        }
        self.next += 1;
    }

    #[inline]
    fn interface(&self) -> u32 {
        self.batch.interface(self.next)
    }

    #[inline]
    fn skip(&mut self) {
        self.next += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_stored_unchanged() {
        let mut batch = Batch::default();
        for (at, interface, frame) in [(5, 0, &b"abc"[..]), (7, 9, b"d"), (7, 0, b"efgh")] {
            batch.push(at, interface, frame);
        }
        assert!(!batch.push_with((8, 0), 2, |frame| frame != [0; 2]));
        assert!(batch.push_with((8, 3), 2, |frame| {
            frame.copy_from_slice(b"ij");
            true
        }));
        assert_eq!((batch.len(), batch.longest(), batch.octets()), (4, 4, 10));
        assert_eq!(batch.frame_info(1), Some((7, 1)));
        assert_eq!((batch.interface(0), batch.interface(1)), (0, 9));
        assert_eq!((batch.frame(2), batch.frame(3)), (&b"efgh"[..], &b"ij"[..]));
        assert_eq!((batch.frame_info(4), batch.frame(4)), (None, &b""[..]));
        batch.clear();
        assert!(batch.is_empty());
    }

    #[test]
    fn batches_keep_their_order_and_are_reused() {
        let (mut sender, mut source) = stream(3);
        let mut out = [0; 4];
        for round in 0..9_u8 {
            assert_eq!(source.peek(), Next::NotYet);
            sender.hand_over().unwrap();
            for pair in 0..2 {
                sender.batch.push(u64::from(round), 0, &[round, pair]);
                sender.batch.push(0, 5, &[pair; 3]);
                sender.hand_over().unwrap();
            }
            for pair in 0..2 {
                let at = u64::from(round);
                assert_eq!(source.peek(), Next::Frame { at, len: 2 });
                source.fill(0, &mut out);
                assert_eq!(out[..2], [round, pair]);
                assert_eq!(source.peek(), Next::Frame { at: 0, len: 3 });
                assert_eq!(source.interface(), 5);
                source.skip();
            }
        }
        drop(sender);
        assert_eq!(source.peek(), Next::End);
        let (mut sender, source) = stream(2);
        drop(source);
        sender.batch.push(0, 0, &[1]);
        assert_eq!(sender.hand_over(), Err(Gone));
    }
}
