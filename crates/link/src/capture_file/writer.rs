//! `CaptureWriter`: packets into a capture file, through one buffer of fixed size.

use super::block::{self, HEADER_LEN, Head};
use super::error::{Error, ErrorKind};
use super::sink::Sink;
use super::{Interface, MAX_COMMENT, MAX_PACKET, Options};
use std::io::{self, Write};
use std::mem;
use std::path::Path;

/// Octets of the buffer. Any packet with any comment fits.
const BUFFER_LEN: usize = 1 << 20;
const _: () = assert!(block::most_octets(MAX_PACKET, MAX_COMMENT) <= BUFFER_LEN);

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Packets.
    pub packets: u64,
}

/// Writes packets into a pcapng file. Uses 1 MiB of memory whatever is written, and allocates nothing for a packet.
///
/// Packets stand in the file in the order in which they are given.
pub struct CaptureWriter<'w> {
    sink: Sink<'w>,
    /// `BUFFER_LEN` octets, of which the first `filled` are yet to be written.
    buffer: Box<[u8]>,
    filled: usize,
    /// Octets kept of a packet, for each interface.
    snap_lens: Vec<usize>,
    summary: Summary,
    /// Why octets were lost, where they were.
    broken: Option<io::Error>,
}

impl CaptureWriter<'static> {
    /// Starts the capture file `path`.
    ///
    /// Packets go to a temporary file in the same folder, which [`finish`](Self::finish) renames to `path`, replacing a
    /// file of that name. Without it the temporary file is removed, and `path` is left as it was. A process that is
    /// killed leaves the temporary file behind (`.capture-….partial`), never a half file under the name itself. A pipe
    /// or a device of that name is written to directly.
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
    /// Starts a capture that is written to `writer` (standard output, a `Vec`). No buffer is needed around it.
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

    /// Adds an interface behind those there are, for packets that follow.
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

    /// How many interfaces there are.
    #[must_use]
    pub const fn interfaces(&self) -> usize {
        self.snap_lens.len()
    }

    /// Adds the packet `bytes`, seen on `interface` (numbered from 0) at `at`, nanoseconds since the epoch.
    ///
    /// There were `wire_len` octets of it on the wire. The interface's snap length may cut it further.
    ///
    /// # Errors
    /// No such interface, more than [`MAX_PACKET`] octets, `wire_len` less than the octets given, or the file cannot be
    /// written (disk full): it cannot be finished then.
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

    /// Adds a packet with a comment, of at most [`MAX_COMMENT`] octets; an empty one is none.
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

    /// Adds a packet of `len` octets that `fill` writes straight into the output buffer.
    ///
    /// `fill` must write every octet: what it finds is left over from other packets.
    ///
    /// # Errors
    /// As for [`packet`](Self::packet); `fill` is not called then.
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

    /// Writes what is buffered and gives the file its name.
    ///
    /// # Errors
    /// The octets cannot be written, now or earlier, or the file not be renamed: there is no file of that name then, or
    /// the one that was there before.
    pub fn finish(mut self) -> Result<Summary, Error> {
        self.flush()?;
        self.sink.keep()?;
        Ok(self.summary)
    }

    /// Whether it writes into a pipe or a device, out of which somebody may read packets as they come.
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
        // There is always room: `check` bounds what `most_octets` can ask for.
        let Some(len) = len else {
            return Err(self.error(ErrorKind::TooLong { len: packet.len }));
        };
        self.filled += len;
        self.summary.packets += 1;
        Ok(())
    }

    /// The snap length of the packet's interface, if the packet can be written.
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

    /// Writes out what is buffered, for somebody who reads the file as it grows.
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
        // Broken until proven whole: a writer that panics has lost octets, too.
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

/// The same error, for whoever asks again: what is first said may be lost on the way.
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
