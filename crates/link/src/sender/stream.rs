//! Frames on their way from one thread, which makes them, to another, which sends them: in batches, of which there are a fixed
//! number, filled, emptied, and filled again.

use super::{Next, Source};
// Nobody takes frames any more.
pub use std::sync::mpsc::RecvError as Gone;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};

/// A frame in a [`Batch`].
#[derive(Clone, Copy, Debug)]
struct Held {
    at: u64,
    start: usize,
    len: u32,
    interface: u32,
}

/// Frames one behind another, in one contiguous piece of memory.
#[derive(Debug, Default)]
pub struct Batch {
    octets: Vec<u8>,
    frames: Vec<Held>,
}

impl Batch {
    /// Octets of memory that a frame takes beside its own.
    pub const OVERHEAD: usize = size_of::<Held>();

    /// Adds a frame that is due `at`, in whatever sense, and was seen at the capture's `interface`.
    #[inline]
    pub fn push(&mut self, at: u64, interface: u32, frame: &[u8]) {
        self.octets.extend_from_slice(frame);
        self.hold(at, interface, frame.len());
    }

    /// As [`push`](Self::push), with a frame of `len` octets written by `fill`, which says whether it is wanted.
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
        self.frames.push(Held {
            at,
            start: self.octets.len() - len,
            // No capture has longer ones than 2^18.
            len: len as u32,
            interface,
        });
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

    /// Octets of all frames.
    #[must_use]
    pub const fn octets(&self) -> usize {
        self.octets.len()
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
        let lengths = self.frames.iter().map(|held| held.len as usize);
        lengths.max().unwrap_or(0)
    }

    fn clear(&mut self) {
        self.octets.clear();
        self.frames.clear();
    }
}

/// The makers' side and the sender's side of a stream that has so many `batches`.
#[must_use]
pub fn stream(batches: usize) -> (Filling, Streamed) {
    let (full, arriving) = sync_channel(batches);
    let (back, returned) = channel();
    let filling = Filling {
        batch: Batch::default(),
        full,
        returned,
        left: batches.saturating_sub(1),
    };
    let streamed = Streamed {
        arriving,
        back,
        batch: Batch::default(),
        next: 0,
    };
    (filling, streamed)
}

/// The side of who makes frames.
#[derive(Debug)]
pub struct Filling {
    /// The batch that is being filled.
    pub batch: Batch,
    full: SyncSender<Batch>,
    returned: Receiver<Batch>,
    /// Batches that were not needed yet.
    left: usize,
}

impl Filling {
    /// Hands the batch over, if there is anything in it, for an empty one. Where none is empty, this waits for the sender, which
    /// is what keeps us from running away.
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

/// The side of who sends them.
#[derive(Debug)]
pub struct Streamed {
    arriving: Receiver<Batch>,
    /// Empty ones go back.
    back: Sender<Batch>,
    batch: Batch,
    next: usize,
}

impl Source for Streamed {
    #[inline]
    fn peek(&mut self) -> Next {
        loop {
            if let Some((at, len)) = self.batch.look(self.next) {
                return Next::Frame { at, len };
            }
            match self.arriving.try_recv() {
                Ok(batch) => {
                    let mut old = std::mem::replace(&mut self.batch, batch);
                    self.next = 0;
                    old.clear();
                    // At the end nobody takes it any more.
                    let _ = self.back.send(old);
                }
                Err(TryRecvError::Empty) => return Next::Later,
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
    fn frames_are_kept_as_they_are() {
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
        assert_eq!(batch.look(1), Some((7, 1)));
        assert_eq!((batch.interface(0), batch.interface(1)), (0, 9));
        assert_eq!((batch.frame(2), batch.frame(3)), (&b"efgh"[..], &b"ij"[..]));
        assert_eq!((batch.look(4), batch.frame(4)), (None, &b""[..]));
        batch.clear();
        assert!(batch.is_empty());
    }

    #[test]
    fn batches_come_in_order_and_go_round() {
        let (mut filling, mut source) = stream(3);
        let mut out = [0; 4];
        for round in 0..9_u8 {
            assert_eq!(source.peek(), Next::Later);
            filling.hand_over().unwrap();
            for pair in 0..2 {
                filling.batch.push(u64::from(round), 0, &[round, pair]);
                filling.batch.push(0, 5, &[pair; 3]);
                filling.hand_over().unwrap();
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
        drop(filling);
        assert_eq!(source.peek(), Next::End);
        let (mut filling, source) = stream(2);
        drop(source);
        filling.batch.push(0, 0, &[1]);
        assert_eq!(filling.hand_over(), Err(Gone));
    }
}
