//! The input of a capture: a file or a reader, decompressed if its first octets indicate
//! compression.

use super::error::{Compression, ReadErrorKind};
use crate::zstd;
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek};
use std::path::Path;
use std::sync::Arc;

/// Compressed input read at once, in octets.
const PACKED_LEN: usize = 64 << 10;
/// Number of octets that identify gzip and zstd.
const MAGIC_LEN: usize = 4;

/// The input to rewind.
pub(super) enum Origin {
    File(Arc<File>),
    /// A reader supplied by the caller.
    Reader,
}

impl Origin {
    pub(super) fn open(path: &Path) -> Result<(Self, Source<'static>), ReadErrorKind> {
        let file = Arc::new(File::open(path).map_err(ReadErrorKind::Open)?);
        let source = Source::unpack(Arc::clone(&file))?;
        Ok((Self::File(file), source))
    }

    /// Returns the octets from the start again.
    pub(super) fn rewind(&self) -> Result<Source<'static>, ReadErrorKind> {
        let Self::File(file) = self else {
            return Err(ReadErrorKind::Rewind(io::ErrorKind::NotSeekable.into()));
        };
        file.as_ref().rewind().map_err(ReadErrorKind::Rewind)?;
        Source::unpack(Arc::clone(file))
    }
}

/// The octets of a capture, uncompressed.
pub(super) struct Source<'r> {
    octets: Box<dyn Read + Send + 'r>,
    compression: Option<Compression>,
}

impl<'r> Source<'r> {
    /// Reads the first octets, and decompresses if they indicate compression.
    pub(super) fn unpack<R: Read + Send + 'r>(mut raw: R) -> Result<Self, ReadErrorKind> {
        let mut magic = Vec::with_capacity(MAGIC_LEN);
        raw.by_ref()
            .take(MAGIC_LEN as u64)
            .read_to_end(&mut magic)
            .map_err(ReadErrorKind::Read)?;
        let packing = packing(&magic);
        let raw = Cursor::new(magic).chain(raw);
        let octets: Box<dyn Read + Send + 'r> = match packing {
            None => Box::new(raw),
            Some(Compression::Gzip) => {
                let packed = BufReader::with_capacity(PACKED_LEN, raw);
                Box::new(MultiGzDecoder::new(packed))
            }
            Some(Compression::Zstd) => {
                let packed = BufReader::with_capacity(PACKED_LEN, raw);
                Box::new(
                    zstd::decoder(packed)
                        .map_err(|e| ReadErrorKind::Unpack(Compression::Zstd, e))?,
                )
            }
        };
        Ok(Self {
            octets,
            compression: packing,
        })
    }

    pub(super) fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.octets.read(room)
    }

    /// Distinguishes octets that cannot be read from octets that cannot be decompressed.
    pub(super) fn explain(&self, e: io::Error) -> ReadErrorKind {
        match self.compression {
            Some(packing) if e.raw_os_error().is_none() => ReadErrorKind::Unpack(packing, e),
            _ => ReadErrorKind::Read(e),
        }
    }
}

/// Returns the compression of a file that begins with `magic`.
fn packing(magic: &[u8]) -> Option<Compression> {
    match *magic {
        // RFC 1952, section 2.3.1; 8 is deflate, the only method defined.
        [0x1F, 0x8B, 8, _] => Some(Compression::Gzip),
        // RFC 8878, sections 3.1.1 and 3.1.2: a frame, or a skippable frame before it.
        [0x28, 0xB5, 0x2F, 0xFD] | [0x50..=0x5F, 0x2A, 0x4D, 0x18] => Some(Compression::Zstd),
        _ => None,
    }
}
