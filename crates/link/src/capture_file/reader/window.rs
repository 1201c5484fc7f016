//! The buffer between a source and the formats: a window over the octets of the file that only moves forward.

use super::error::ReadErrorKind;
use super::source::Source;
use std::io::ErrorKind;
use std::ops::Range;

/// Octets of the buffer, until a block needs more. Small enough for a processor's cache, and room for any packet.
const BUFFER_LEN: usize = 512 << 10;
const _: () = assert!(super::MAX_PACKET + 1024 <= BUFFER_LEN);

/// The octets of the file from `offset` on, as far as they are buffered.
pub(super) struct Window<'r> {
    source: Source<'r>,
    buffer: Vec<u8>,
    /// The part of the buffer that is read, but not taken.
    ready: Range<usize>,
    /// Octets of the file, uncompressed, in front of the window.
    offset: u64,
    /// The offset of the record that is looked at.
    record: u64,
    /// Whether the source has ended.
    ended: bool,
    /// Whether it ended where its compression says that it should not.
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

    /// Starts again with another source.
    pub(super) fn restart(&mut self, source: Source<'r>) {
        let buffer = std::mem::take(&mut self.buffer);
        *self = Self::with_buffer(source, buffer);
    }

    /// Octets of the file in front of the window.
    pub(super) const fn offset(&self) -> u64 {
        self.offset
    }

    /// Where the record that is looked at begins.
    pub(super) const fn record(&self) -> u64 {
        self.record
    }

    /// Begins a record; `true` where there is none.
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

    /// The next `len` octets, which stay.
    #[inline]
    pub(super) fn need(&mut self, len: usize) -> Result<&[u8], ReadErrorKind> {
        if self.ready.len() < len && !self.fill(len)? {
            return Err(ReadErrorKind::Cut);
        }
        let end = self.ready.start + len;
        Ok(self.buffer.get(self.ready.start..end).unwrap_or_default())
    }

    /// The next `N` octets, which stay.
    #[inline]
    pub(super) fn array<const N: usize>(&mut self) -> Result<&[u8; N], ReadErrorKind> {
        self.need(N)?.first_chunk().ok_or(ReadErrorKind::Cut)
    }

    /// What stands in the buffer and is not taken.
    #[inline]
    pub(super) fn ready(&self) -> &[u8] {
        self.buffer.get(self.ready.clone()).unwrap_or_default()
    }

    /// Where in [`buffer`](Self::buffer) that begins.
    #[inline]
    pub(super) const fn start(&self) -> usize {
        self.ready.start
    }

    /// Moves behind `len` octets of those that [`need`](Self::need) has shown; returns their place in
    /// [`buffer`](Self::buffer).
    #[inline]
    pub(super) fn take(&mut self, len: usize) -> Range<usize> {
        let start = self.ready.start;
        let end = (start + len).min(self.ready.end);
        self.ready.start = end;
        self.offset += (end - start) as u64;
        start..end
    }

    /// Has what was taken where it was, until octets are asked for that are not ready.
    #[inline]
    pub(super) fn buffer(&self) -> &[u8] {
        &self.buffer
    }

    /// Moves behind `len` octets, without keeping them.
    pub(super) fn skip(&mut self, mut len: usize) -> Result<(), ReadErrorKind> {
        while len > 0 {
            if self.ready.is_empty() && !self.fill(1)? {
                return Err(ReadErrorKind::Cut);
            }
            len -= self.take(len).len();
        }
        Ok(())
    }

    /// Reads until `len` octets are ready; `false` where the source ends before.
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
