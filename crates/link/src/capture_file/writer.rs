//! `CaptureWriter`: writes packets to a capture file, through one buffer of fixed size.

use super::block::{self, HEADER_LEN, Head};
use super::error::{Error, ErrorKind};
use super::sink::Sink;
use super::{Interface, MAX_COMMENT, MAX_PACKET, Options};
use std::io::{self, Write};
use std::mem;
use std::path::Path;

/// Size of the buffer in octets, with room for any packet with any comment.
const BUFFER_LEN: usize = 1 << 20;
const _: () = assert!(block::most_octets(MAX_PACKET, MAX_COMMENT) <= BUFFER_LEN);

/// Summary of what was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of packets.
    pub packets: u64,
}

/// Writes packets to a pcapng file. Always uses 1 MiB of memory, and allocates nothing per packet.
///
/// Packets are written in the order in which they are given.
pub struct CaptureWriter<'w> {
    sink: Sink<'w>,
    /// Buffer of `BUFFER_LEN` octets, of which the first `filled` are yet to be written.
    buffer: Box<[u8]>,
    filled: usize,
    /// Maximum number of octets kept of a packet, for each interface.
    snap_lens: Vec<usize>,
    summary: Summary,
    /// The error that lost octets, if any.
    broken: Option<io::Error>,
}

impl CaptureWriter<'static> {
    /// Creates the capture file `path`.
    ///
    /// Packets go to a temporary file in the same folder, which [`finish`](Self::finish) renames to
    /// `path`, replacing a file of that name. Otherwise the temporary file is removed, and `path`
    /// is left unchanged. A process that is killed leaves the temporary file behind
    /// (`.capture-….partial`), never an incomplete file under the final name. If `path` is a pipe
    /// or a device, it is written to directly.
    ///
    /// # Errors
    /// No file can be created there, or a text is longer than 65535 octets.
    pub fn create(
        path: &Path,
        options: &Options<'_>,
        interfaces: &[Interface<'_>],
    ) -> Result<Self, Error> {
        Self::start(Sink::create(path)?, options, interfaces)
    }
}

impl<'w> CaptureWriter<'w> {
    /// Starts a capture that is written to `writer` (standard output, a `Vec`). It needs no
    /// buffering.
    ///
    /// # Errors
    /// `writer` fails, or a text is longer than 65535 octets.
    pub fn to<W: Write + Send + 'w>(
        writer: W,
        options: &Options<'_>,
        interfaces: &[Interface<'_>],
    ) -> Result<Self, Error> {
        Self::start(Sink::Writer(Box::new(writer)), options, interfaces)
    }

    fn start(
        sink: Sink<'w>,
        options: &Options<'_>,
        interfaces: &[Interface<'_>],
    ) -> Result<Self, Error> {
        let head = block::head(options, interfaces)
            .map_err(|reason| Error::new(sink.name(), ErrorKind::Text(reason)))?;
        let mut writer = Self {
            sink,
            buffer: vec![0; BUFFER_LEN].into_boxed_slice(),
            filled: 0,
            snap_lens: interfaces.iter().map(snap_len).collect(),
            summary: Summary::default(),
            broken: None,
        };
        writer.write(&head)?;
        Ok(writer)
    }

    /// Appends an interface, for packets that follow.
    ///
    /// # Errors
    /// As for [`to`](Self::to).
    pub fn interface(&mut self, interface: &Interface<'_>) -> Result<(), Error> {
        let block =
            block::another(interface).map_err(|reason| self.error(ErrorKind::Text(reason)))?;
        self.flush()?;
        self.snap_lens.push(snap_len(interface));
        self.write(&block)
    }

    /// Returns the number of interfaces.
    #[must_use]
    pub const fn interfaces(&self) -> usize {
        self.snap_lens.len()
    }

    /// Adds the packet `bytes`, captured on `interface` (numbered from 0) at `at`, in nanoseconds
    /// since the epoch.
    ///
    /// Its length on the wire was `wire_len` octets. The interface's snap length may shorten it
    /// further.
    ///
    /// # Errors
    /// There is no such interface, the packet is longer than [`MAX_PACKET`] or than `wire_len`, or
    /// the file cannot be written (disk full) and so cannot be finished.
    #[inline]
    pub fn packet(
        &mut self,
        interface: u32,
        at: u64,
        bytes: &[u8],
        wire_len: u32,
    ) -> Result<(), Error> {
        self.packet_commented(interface, at, bytes, wire_len, "")
    }

    /// Adds a packet with a comment of at most [`MAX_COMMENT`] octets; an empty comment is omitted.
    ///
    /// # Errors
    /// As for [`packet`](Self::packet), or the comment is too long.
    #[inline]
    pub fn packet_commented(
        &mut self,
        interface: u32,
        at: u64,
        bytes: &[u8],
        wire_len: u32,
        comment: &str,
    ) -> Result<(), Error> {
        let packet = Packet {
            interface,
            at,
            len: bytes.len(),
            wire_len,
            comment,
        };
        self.add(packet, |place| place.copy_from_slice(bytes))
    }

    /// Adds a packet of `len` octets that `fill` writes directly into the output buffer.
    ///
    /// `fill` must write every octet: the slice it gets contains remains of other packets.
    ///
    /// # Errors
    /// As for [`packet`](Self::packet); `fill` is then not called.
    #[inline]
    pub fn packet_with(
        &mut self,
        interface: u32,
        at: u64,
        len: usize,
        wire_len: u32,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), Error> {
        let packet = Packet {
            interface,
            at,
            len,
            wire_len,
            comment: "",
        };
        self.add(packet, fill)
    }

    /// Writes what is buffered and renames the file to its final name.
    ///
    /// # Errors
    /// The octets cannot be written, now or earlier, or the file cannot be renamed. The final name
    /// then does not exist, or is still the earlier file.
    pub fn finish(mut self) -> Result<Summary, Error> {
        self.flush()?;
        self.sink.keep()?;
        Ok(self.summary)
    }

    /// True if the output is a pipe or a device, whose reader may want packets as they arrive.
    #[must_use]
    pub const fn is_read_at_once(&self) -> bool {
        matches!(&self.sink, Sink::File(file) if file.is_special())
    }

    #[inline]
    fn add(&mut self, packet: Packet<'_>, fill: impl FnOnce(&mut [u8])) -> Result<(), Error> {
        let snap_len = self.check(&packet)?;
        let most = block::most_octets(packet.len, packet.comment.len());
        if self.buffer.len() - self.filled < most {
            self.flush()?;
        }
        let head = Head {
            interface: packet.interface,
            at: packet.at,
            captured: packet.len.min(snap_len) as u32,
            wire_len: packet.wire_len,
        };
        let room = self.buffer.get_mut(self.filled..).unwrap_or_default();
        let len = room
            .get_mut(HEADER_LEN..HEADER_LEN + packet.len)
            .map(fill)
            .and_then(|()| block::finish(room, head, packet.comment));
        // There is always room: `check` limits the length to what `most_octets` allows for.
        let Some(len) = len else {
            return Err(self.error(ErrorKind::TooLong { len: packet.len }));
        };
        self.filled += len;
        self.summary.packets += 1;
        Ok(())
    }

    /// Returns the snap length of the packet's interface, if the packet can be written.
    #[inline]
    fn check(&self, packet: &Packet<'_>) -> Result<usize, Error> {
        let Packet { len, wire_len, .. } = *packet;
        let Some(snap_len) = self.snap_lens.get(packet.interface as usize) else {
            return Err(self.error(ErrorKind::Interface {
                number: packet.interface,
                count: self.snap_lens.len(),
            }));
        };
        if len > MAX_PACKET {
            return Err(self.error(ErrorKind::TooLong { len }));
        }
        if len > wire_len as usize {
            return Err(self.error(ErrorKind::WireLen { len, wire_len }));
        }
        if packet.comment.len() > MAX_COMMENT {
            let len = packet.comment.len();
            return Err(self.error(ErrorKind::Comment { len }));
        }
        Ok(*snap_len)
    }

    #[cold]
    fn error(&self, kind: ErrorKind) -> Error {
        Error::new(self.sink.name(), kind)
    }

    /// Writes what is buffered, for a reader that follows the file as it grows.
    ///
    /// # Errors
    /// The octets cannot be written, now or earlier.
    #[inline(never)]
    pub fn flush(&mut self) -> Result<(), Error> {
        let (buffer, filled) = (mem::take(&mut self.buffer), mem::take(&mut self.filled));
        let result = self.write(buffer.get(..filled).unwrap_or_default());
        self.buffer = buffer;
        result
    }

    fn write(&mut self, octets: &[u8]) -> Result<(), Error> {
        if let Some(first) = &self.broken {
            return Err(self.error(ErrorKind::Write(again(first))));
        }
        // Marked broken until the write succeeds: a writer that panics has lost octets as well.
        self.broken = Some(io::ErrorKind::Other.into());
        if let Err(e) = self.sink.write_all(octets) {
            self.broken = Some(again(&e));
            return Err(self.error(ErrorKind::Write(e)));
        }
        self.broken = None;
        Ok(())
    }
}

const fn snap_len(interface: &Interface<'_>) -> usize {
    match interface.snap_len {
        0 => usize::MAX,
        octets => octets as usize,
    }
}

/// Copies the error for later callers, as the first report of it may get lost.
#[cold]
fn again(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(number) => io::Error::from_raw_os_error(number),
        None => error.kind().into(),
    }
}

/// A packet to add, without its octets.
#[derive(Clone, Copy)]
struct Packet<'a> {
    interface: u32,
    at: u64,
    len: usize,
    wire_len: u32,
    comment: &'a str,
}
