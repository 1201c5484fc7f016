//! The buffer between a source and the formats: a window over the octets of the file that only
//! moves forward.

use super::error::ReadErrorKind;
use super::source::Source;
use std::io::ErrorKind;
use std::ops::Range;

/// Initial size of the buffer in octets; it grows if a block needs more. Small enough for a
/// processor's cache, with room for any packet.
const BUFFER_LEN: usize = 512 << 10;
const _: () = assert!(super::MAX_PACKET + 1024 <= BUFFER_LEN);

/// The octets of the file from `offset` on, as far as they are buffered.
pub(super) struct Window<'r> {
    source: Source<'r>,
    buffer: Vec<u8>,
    /// Range of the buffer that was read but not consumed.
    ready: Range<usize>,
    /// Offset of the window in the uncompressed file, in octets.
    offset: u64,
    /// Offset of the current record.
    record: u64,
    /// True if the source has ended.
    ended: bool,
    /// True if compressed data ended prematurely.
    cut: bool,
}

impl<'r> Window<'r> {
    pub(super) fn new(source: Source<'r>) -> Self {
        Self::with_buffer(source, vec![0; BUFFER_LEN])
    }

    fn with_buffer(source: Source<'r>, buffer: Vec<u8>) -> Self {
        Self {
            source,
            buffer,
            ready: 0..0,
            offset: 0,
            record: 0,
            ended: false,
            cut: false,
        }
    }

    /// Restarts with another source.
    pub(super) fn restart(&mut self, source: Source<'r>) {
        let buffer = std::mem::take(&mut self.buffer);
        *self = Self::with_buffer(source, buffer);
    }

    /// Returns the offset of the window in the file, in octets.
    pub(super) const fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the offset of the current record.
    pub(super) const fn record(&self) -> u64 {
        self.record
    }

    /// Begins a record; returns true if there is none.
    #[inline]
    pub(super) fn is_at_end(&mut self) -> Result<bool, ReadErrorKind> {
        self.record = self.offset;
        if !self.ready.is_empty() || self.fill(1)? {
            return Ok(false);
        }
        if self.cut {
            return Err(ReadErrorKind::Cut);
        }
        Ok(true)
    }

    /// Returns the next `len` octets without consuming them.
    #[inline]
    pub(super) fn need(&mut self, len: usize) -> Result<&[u8], ReadErrorKind> {
        if self.ready.len() < len && !self.fill(len)? {
            return Err(ReadErrorKind::Cut);
        }
        let end = self.ready.start + len;
        Ok(self.buffer.get(self.ready.start..end).unwrap_or_default())
    }

    /// Returns the next `N` octets without consuming them.
    #[inline]
    pub(super) fn array<const N: usize>(&mut self) -> Result<&[u8; N], ReadErrorKind> {
        self.need(N)?.first_chunk().ok_or(ReadErrorKind::Cut)
    }

    /// Returns the octets that are buffered and not consumed.
    #[inline]
    pub(super) fn ready(&self) -> &[u8] {
        self.buffer.get(self.ready.clone()).unwrap_or_default()
    }

    /// Returns the offset of [`ready`](Self::ready) in [`buffer`](Self::buffer).
    #[inline]
    pub(super) const fn start(&self) -> usize {
        self.ready.start
    }

    /// Consumes `len` octets of those that [`need`](Self::need) has returned; returns their range
    /// in [`buffer`](Self::buffer).
    #[inline]
    pub(super) fn take(&mut self, len: usize) -> Range<usize> {
        let start = self.ready.start;
        let end = (start + len).min(self.ready.end);
        self.ready.start = end;
        self.offset += (end - start) as u64;
        start..end
    }

    /// Returns the buffer. Consumed octets keep their position until octets are requested that are
    /// not ready.
    #[inline]
    pub(super) fn buffer(&self) -> &[u8] {
        &self.buffer
    }

    /// Skips `len` octets without keeping them.
    pub(super) fn skip(&mut self, mut len: usize) -> Result<(), ReadErrorKind> {
        while len > 0 {
            if self.ready.is_empty() && !self.fill(1)? {
                return Err(ReadErrorKind::Cut);
            }
            len -= self.take(len).len();
        }
        Ok(())
    }

    /// Reads until `len` octets are ready; returns false if the source ends before.
    #[cold]
    #[inline(never)]
    fn fill(&mut self, len: usize) -> Result<bool, ReadErrorKind> {
        if self.ready.start > 0 {
            self.buffer.copy_within(self.ready.clone(), 0);
            self.ready = 0..self.ready.len();
        }
        if self.buffer.len() < len {
            self.buffer.resize(len, 0);
        }
        while self.ready.len() < len && !self.ended {
            let room = self.buffer.get_mut(self.ready.end..).unwrap_or_default();
            match self.source.read(room) {
                Ok(0) => self.ended = true,
                Ok(read) => self.ready.end = (self.ready.end + read).min(self.buffer.len()),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::UnexpectedEof => {
                    (self.ended, self.cut) = (true, true);
                }
                Err(e) => return Err(self.source.explain(e)),
            }
        }
        Ok(self.ready.len() >= len)
    }
}
