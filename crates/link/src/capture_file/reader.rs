//! `CaptureReader`: reads packets from a capture file one at a time, borrowed from one buffer.
//!
//! The input is in `source.rs`, the buffer in `window.rs`, the two formats in `pcap.rs` and
//! `pcapng.rs`, interface descriptions in `interface.rs`, and time stamps in `stamp.rs`.
//!
//! pcap-file's readers are not used because they stop at resolutions finer than a nanosecond, at
//! text that is not UTF-8 and at blocks longer than their buffer of 8 MB, even blocks that no one
//! needs; they do not report the position of an error; and they parse every option of every packet,
//! each into a `Vec`.

mod error;
mod interface;
mod pcap;
mod pcapng;
mod source;
mod stamp;
mod window;

pub use error::{Compression, ReadError, ReadErrorKind};
pub use interface::ReadInterface;
pub use stamp::{Resolution, Stamp};

use super::MAX_PACKET;
use error::Position;
use fcn_wire::LinkType;
use pcap::Pcap;
use pcapng::Section;
use source::{Origin, Source};
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use window::Window;

/// Maximum length of a block of a pcapng file, in octets, as in Wireshark.
pub const MAX_BLOCK: usize = 16 << 20;
/// Maximum number of interfaces in a capture file, over all its sections.
pub const MAX_INTERFACES: usize = 65_536;

/// A packet of a capture file, borrowed until the next one is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Interface on which it was captured: index into [`CaptureReader::interfaces`], which counts
    /// over the whole file, not per section.
    pub interface: u32,
    /// Capture time in nanoseconds since the epoch, rounded down. Taken from the file unchanged,
    /// even if earlier than that of the previous packet; 0 unless the stamp is valid.
    pub at: u64,
    /// Validity of its time stamp.
    pub stamp: Stamp,
    /// Link type; `None` if fcn-wire does not support it.
    pub link: Option<LinkType>,
    /// Number of the link type in the file (`LINKTYPE_…` of tcpdump.org).
    pub link_number: u32,
    /// Length on the wire, in octets; never less than `bytes`, whatever the file states.
    pub wire_len: u32,
    /// Captured octets, at most [`MAX_PACKET`].
    pub bytes: &'a [u8],
}

impl Packet<'_> {
    /// Returns the capture time, if the packet has a valid time stamp.
    #[must_use]
    pub const fn time(&self) -> Option<u64> {
        match self.stamp {
            Stamp::Valid => Some(self.at),
            Stamp::Missing | Stamp::OutOfRange => None,
        }
    }

    /// True if the capture has only part of the packet.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.wire_len as usize > self.bytes.len()
    }
}

/// Packets of a capture file that are in its reader's buffer at the same time, borrowed until the
/// next ones are read.
#[derive(Clone, Copy)]
pub struct Packets<'a> {
    found: &'a [Found],
    buffer: &'a [u8],
    interfaces: &'a [ReadInterface],
}

impl<'a> Packets<'a> {
    /// Returns the interfaces that the file has described so far, as in
    /// [`CaptureReader::interfaces`].
    #[must_use]
    pub const fn interfaces(&self) -> &'a [ReadInterface] {
        self.interfaces
    }

    /// Returns the packets in file order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Packet<'a>> + use<'a> {
        let Self {
            found,
            buffer,
            interfaces,
        } = *self;
        // The interface of every packet found is in the list.
        found.iter().filter_map(move |found| {
            let interface = interfaces.get(found.interface)?;
            Some(found.packet(interface, buffer))
        })
    }
}

/// A packet found in the window.
struct Found {
    interface: usize,
    /// 0 unless the stamp is valid.
    at: u64,
    stamp: Stamp,
    wire_len: u32,
    /// Range of its octets in the window's buffer.
    range: Range<usize>,
}

impl Found {
    /// Rebases the range, which was relative to offset `start` of the buffer.
    #[inline]
    const fn shift(&mut self, start: usize) {
        self.range.start += start;
        self.range.end += start;
    }

    #[inline]
    fn packet<'a>(&self, interface: &ReadInterface, buffer: &'a [u8]) -> Packet<'a> {
        let bytes = buffer.get(self.range.clone()).unwrap_or_default();
        Packet {
            interface: self.interface as u32,
            at: self.at,
            stamp: self.stamp,
            link: interface.link,
            link_number: interface.link_number,
            wire_len: self.wire_len.max(bytes.len() as u32),
            bytes,
        }
    }
}

enum Format {
    Pcap(Pcap),
    PcapNg(Section),
}

/// Reads the packets of a capture file: pcap (micro- and nanoseconds) or pcapng, of either byte
/// order, uncompressed or compressed by gzip or zstd. The format is detected from the first octets,
/// not from the name.
///
/// Uses 512 KiB of memory, plus the memory for decompression (a window of at most 128 MiB for
/// zstd), and up to [`MAX_BLOCK`] if a file has packet blocks of that length. Allocates nothing per
/// packet.
///
/// ```no_run
/// # use fcn_link::capture_file::{CaptureReader, ReadError};
/// # use std::path::Path;
/// let mut reader = CaptureReader::open(Path::new("flows.pcapng.zst"))?;
/// while let Some(packet) = reader.next()? {
///     println!("{} {}", packet.at, packet.bytes.len());
/// }
/// # Ok::<(), ReadError>(())
/// ```
pub struct CaptureReader<'r> {
    name: String,
    origin: Origin,
    window: Window<'r>,
    format: Format,
    interfaces: Vec<ReadInterface>,
    /// Number of packets returned.
    packets: u64,
    /// The packets returned together.
    found: Vec<Found>,
    /// True after the last packet or an error: there are no more packets.
    ended: bool,
}

impl CaptureReader<'static> {
    /// Opens the capture file, pipe or device `path`.
    ///
    /// # Errors
    /// It cannot be opened or read, is not a capture file, or ends inside its first header.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let name = path.display().to_string();
        let (origin, source) = match Origin::open(path) {
            Ok(opened) => opened,
            Err(kind) => return Err(ReadError::new(&name, kind, Position::START)),
        };
        Self::start(name, origin, source)
    }
}

impl<'r> CaptureReader<'r> {
    /// Reads a capture from `reader` (standard input, a slice), which error messages call `name`.
    /// It needs no buffering.
    ///
    /// Packets are returned as soon as they arrive, without waiting for a buffer to fill.
    ///
    /// # Errors
    /// As for [`open`](CaptureReader::open).
    pub fn from<R: Read + Send + 'r>(reader: R, name: &str) -> Result<Self, ReadError> {
        match Source::unpack(reader) {
            Ok(source) => Self::start(name.to_owned(), Origin::Reader, source),
            Err(kind) => Err(ReadError::new(name, kind, Position::START)),
        }
    }

    fn start(name: String, origin: Origin, source: Source<'r>) -> Result<Self, ReadError> {
        let mut window = Window::new(source);
        let mut interfaces = Vec::new();
        match head(&mut window, &mut interfaces) {
            Ok(format) => Ok(Self {
                name,
                origin,
                window,
                format,
                interfaces,
                packets: 0,
                found: Vec::new(),
                ended: false,
            }),
            Err(kind) => Err(ReadError::new(&name, kind, Position::START)),
        }
    }

    /// Returns the next packet; `None` after the last one.
    ///
    /// # Errors
    /// The file ends inside a record ([`ReadError::is_cut`]: all packets before it were returned,
    /// and a tool may continue with them), cannot be read or decompressed, or violates its format.
    /// After an error there are no more packets.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator's items cannot be lent"
    )]
    #[inline]
    pub fn next(&mut self) -> Result<Option<Packet<'_>>, ReadError> {
        self.found.clear();
        self.find()?;
        Ok(self.lent().iter().next())
    }

    /// Returns the next packets, at most `most`, for callers that process several at a time; `None`
    /// after the last one. Returns what is in the buffer, and waits only for the first packet.
    ///
    /// # Errors
    /// As for [`next`](Self::next); the packets before the error are returned first.
    #[inline]
    pub fn next_batch(&mut self, most: usize) -> Result<Option<Packets<'_>>, ReadError> {
        self.found.clear();
        self.find()?;
        if self.found.is_empty() {
            return Ok(None);
        }
        // The packets after it, as long as their records are regular.
        let (window, found) = (&mut self.window, &mut self.found);
        match &self.format {
            Format::Pcap(pcap) => pcap.more(window, most, found),
            Format::PcapNg(section) => section.more(window, &self.interfaces, most, found),
        }
        self.packets += self.found.len() as u64 - 1;
        Ok(Some(self.lent()))
    }

    /// Returns the packets found.
    #[inline]
    fn lent(&self) -> Packets<'_> {
        Packets {
            found: &self.found,
            buffer: self.window.buffer(),
            interfaces: &self.interfaces,
        }
    }

    /// Finds the next packet, if there is one.
    #[inline]
    fn find(&mut self) -> Result<(), ReadError> {
        if self.ended {
            return Ok(());
        }
        let found = match &mut self.format {
            Format::Pcap(pcap) => pcap.next(&mut self.window),
            Format::PcapNg(section) => section.next(&mut self.window, &mut self.interfaces),
        };
        let found = match found {
            Ok(Some(found)) => found,
            Ok(None) => {
                self.ended = true;
                return Ok(());
            }
            Err(kind) => return Err(self.fail(kind)),
        };
        self.packets += 1;
        self.found.push(found);
        Ok(())
    }

    #[cold]
    fn fail(&mut self, kind: ReadErrorKind) -> ReadError {
        self.ended = true;
        let position = Position {
            octet: self.window.record(),
            packets: self.packets,
        };
        ReadError::new(&self.name, kind, position)
    }

    /// Returns the interfaces that the file has described so far. A pcapng file may describe an
    /// interface anywhere before its first packet, so that none may be available before the first
    /// packet; a pcap file has one from the start.
    #[must_use]
    pub fn interfaces(&self) -> &[ReadInterface] {
        &self.interfaces
    }

    /// True if the file may describe interfaces after packets of others (pcapng).
    #[must_use]
    pub const fn may_describe_later(&self) -> bool {
        matches!(self.format, Format::PcapNg(_))
    }

    /// Returns the number of packets returned since the start or the last [`rewind`](Self::rewind).
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the offset after the last packet returned, in octets of the uncompressed file.
    #[must_use]
    pub const fn octets(&self) -> u64 {
        self.window.offset()
    }

    /// Returns the name of the file in error messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Goes back to the first packet, also after an error. Interfaces are read again and get the
    /// same numbers.
    ///
    /// # Errors
    /// The source is a pipe or a reader, which cannot be rewound; or as for
    /// [`open`](CaptureReader::open), if the file has changed. There are no packets then.
    pub fn rewind(&mut self) -> Result<(), ReadError> {
        self.ended = true;
        let restarted = self.origin.rewind().and_then(|source| {
            self.window.restart(source);
            self.interfaces.clear();
            self.packets = 0;
            head(&mut self.window, &mut self.interfaces)
        });
        match restarted {
            Ok(format) => {
                self.format = format;
                self.ended = false;
                Ok(())
            }
            Err(kind) => Err(ReadError::new(&self.name, kind, Position::START)),
        }
    }
}

/// Reads the header of the file.
fn head(
    window: &mut Window<'_>,
    interfaces: &mut Vec<ReadInterface>,
) -> Result<Format, ReadErrorKind> {
    if window.is_at_end()? {
        return Err(ReadErrorKind::Empty);
    }
    let magic = *window.array::<4>()?;
    if Section::begins_with(magic) {
        return Section::start(window, 0).map(Format::PcapNg);
    }
    if Pcap::begins_with(magic) {
        let (pcap, interface) = Pcap::start(window)?;
        interfaces.push(interface);
        return Ok(Format::Pcap(pcap));
    }
    Err(ReadErrorKind::NotACapture(magic))
}

/// Byte order of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Little,
    Big,
}

impl Order {
    #[inline]
    const fn word(self, octets: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(octets),
            Self::Big => u32::from_be_bytes(octets),
        }
    }

    const fn half(self, octets: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(octets),
            Self::Big => u16::from_be_bytes(octets),
        }
    }

    #[inline]
    const fn long(self, octets: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(octets),
            Self::Big => u64::from_be_bytes(octets),
        }
    }

    /// Splits a word into its two halves, in the byte order of the file.
    #[inline]
    const fn halves(self, word: u32) -> (u16, u16) {
        let (high, low) = ((word >> 16) as u16, word as u16);
        match self {
            Self::Little => (low, high),
            Self::Big => (high, low),
        }
    }

    /// Returns the words at the start of `octets`; `None` if there are fewer than `N`.
    #[inline]
    fn words<const N: usize>(self, octets: &[u8]) -> Option<[u32; N]> {
        let (words, _) = octets.as_chunks::<4>();
        words
            .first_chunk::<N>()
            .map(|words| words.map(|word| self.word(word)))
    }
}

/// Returns the length of a packet, if it is within the limit.
#[inline]
fn packet_len(captured: u32) -> Result<usize, ReadErrorKind> {
    let len = captured as usize;
    if len > MAX_PACKET {
        return Err(ReadErrorKind::refused(format_args!(
            "a packet of {len} octets; at most {MAX_PACKET} are read"
        )));
    }
    Ok(len)
}
