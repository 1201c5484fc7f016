//! `CaptureReader`: packets out of a capture file, one at a time, lent from one buffer.
//!
//! Where the octets come from is in `source.rs`, the buffer in `window.rs`, how the two formats are laid out in
//! `pcap.rs` and `pcapng.rs`, what they say about interfaces in `interface.rs`, and time stamps in `stamp.rs`.
//!
//! Why not pcap-file's readers: they stop at resolutions finer than a nanosecond, at text that is not UTF-8 and at
//! blocks longer than their buffer of 8 MB, even those nobody asked for; they do not say where; and they take apart every
//! option of every packet, into a `Vec` each.

mod error;
mod interface;
mod pcap;
mod pcapng;
mod source;
mod stamp;
mod window;

pub use error::{Packing, ReadError, ReadErrorKind};
pub use interface::ReadInterface;
pub use stamp::Resolution;

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

/// Most octets of one block of a pcapng file, as in Wireshark.
pub const MAX_BLOCK: usize = 16 << 20;
/// Most interfaces of one capture file, over all its sections.
pub const MAX_INTERFACES: usize = 65_536;

/// A packet of a capture file, lent until the next one is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Where it was seen: the place in [`CaptureReader::interfaces`]. Counted over the whole file, not per section.
    pub interface: u32,
    /// When: nanoseconds since the epoch, rounded down. As the file has it, even if earlier than the packet before.
    pub at: u64,
    /// Whether there is a time: a simple packet block of a pcapng file has none, and `at` is 0.
    pub stamped: bool,
    /// What it begins with; `None` where fcn-wire does not know.
    pub link: Option<LinkType>,
    /// The number of the link type in the file (`LINKTYPE_…` of tcpdump.org).
    pub link_number: u32,
    /// Octets on the wire; never fewer than `bytes`, whatever the file says.
    pub wire_len: u32,
    /// The octets captured, [`MAX_PACKET`] at most.
    pub bytes: &'a [u8],
}

impl Packet<'_> {
    /// Whether octets that were on the wire are missing.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.wire_len as usize > self.bytes.len()
    }
}

/// Packets of a capture file that stand in its reader's buffer at the same time, lent until the next are asked for.
#[derive(Clone, Copy)]
pub struct Packets<'a> {
    found: &'a [Found],
    buffer: &'a [u8],
    interfaces: &'a [ReadInterface],
}

impl<'a> Packets<'a> {
    /// The interfaces that the file has described so far, as [`CaptureReader::interfaces`] has them.
    #[must_use]
    pub const fn interfaces(&self) -> &'a [ReadInterface] {
        self.interfaces
    }

    /// The packets in their order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Packet<'a>> + use<'a> {
        let Self {
            found,
            buffer,
            interfaces,
        } = *self;
        // Of every packet found its interface is known.
        found.iter().filter_map(move |found| {
            let interface = interfaces.get(found.interface)?;
            Some(found.packet(interface, buffer))
        })
    }
}

/// A packet found in the window.
struct Found {
    interface: usize,
    /// `None` where the file does not say.
    at: Option<u64>,
    wire_len: u32,
    /// Where its octets stand in the window's buffer.
    place: Range<usize>,
}

impl Found {
    /// What it was counted from stands at `start` of the buffer.
    #[inline]
    const fn shift(&mut self, start: usize) {
        self.place.start += start;
        self.place.end += start;
    }

    #[inline]
    fn packet<'a>(&self, interface: &ReadInterface, buffer: &'a [u8]) -> Packet<'a> {
        let bytes = buffer.get(self.place.clone()).unwrap_or_default();
        Packet {
            interface: self.interface as u32,
            at: self.at.unwrap_or_default(),
            stamped: self.at.is_some(),
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

/// Reads the packets of a capture file: pcap (micro- and nanoseconds) or pcapng, of either byte order, as it is or
/// compressed by gzip or zstd. What it is is seen from its first octets, not from its name.
///
/// Uses 512 KiB of memory, what decompression takes (for zstd a window of 128 MiB at most), and up to [`MAX_BLOCK`]
/// where a file has packet blocks of that length. Allocates nothing for a packet.
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
    /// Packets lent.
    packets: u64,
    /// Those that are lent together.
    found: Vec<Found>,
    /// Whether there are no more, at the end or behind an error.
    ended: bool,
}

impl CaptureReader<'static> {
    /// Opens the capture file, pipe or device `path`.
    ///
    /// # Errors
    /// It cannot be opened or read, or is no capture file, or ends inside its first header.
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
    /// Reads a capture from `reader` (standard input, a slice), which errors call `name`. No buffer is needed around it.
    ///
    /// Packets are lent as soon as they are there; nothing waits for a buffer to fill.
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

    /// The next packet; `None` behind the last one.
    ///
    /// # Errors
    /// The file ends inside a record ([`ReadError::is_cut`]: all packets before it were lent, and a tool may go on with
    /// them), cannot be read or decompressed, or breaks its format. Behind an error there are no more packets.
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

    /// The next packets, so many at most, for who looks at several at a time; `None` behind the last one. As many as the
    /// buffer has: nothing is waited for but the first of them.
    ///
    /// # Errors
    /// As for [`next`](Self::next); in front of what is wrong, the packets are lent first.
    #[inline]
    pub fn next_some(&mut self, most: usize) -> Result<Option<Packets<'_>>, ReadError> {
        self.found.clear();
        self.find()?;
        if self.found.is_empty() {
            return Ok(None);
        }
        // Those behind it, as long as they are of the usual kind.
        let (window, found) = (&mut self.window, &mut self.found);
        match &self.format {
            Format::Pcap(pcap) => pcap.more(window, most, found),
            Format::PcapNg(section) => section.more(window, &self.interfaces, most, found),
        }
        self.packets += self.found.len() as u64 - 1;
        Ok(Some(self.lent()))
    }

    /// What was found.
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

    /// The interfaces that the file has described so far. In a pcapng file they may stand anywhere in front of their
    /// first packet, so that none is known before the first packet; a pcap file has one, from the start.
    #[must_use]
    pub fn interfaces(&self) -> &[ReadInterface] {
        &self.interfaces
    }

    /// Whether the file may describe interfaces behind packets of others: pcapng.
    #[must_use]
    pub const fn may_describe_later(&self) -> bool {
        matches!(self.format, Format::PcapNg(_))
    }

    /// Packets lent so far, since the start or the last [`rewind`](Self::rewind).
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Octets of the file, uncompressed, behind the last packet lent.
    #[must_use]
    pub const fn octets(&self) -> u64 {
        self.window.offset()
    }

    /// What errors call the file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Goes back to the first packet, also behind an error. Interfaces are learnt anew, with the same numbers.
    ///
    /// # Errors
    /// Not a file, but a pipe or a reader, which cannot go back; or as for [`open`](CaptureReader::open), where the file
    /// has changed. There are no packets then.
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

/// Reads what stands in front of everything else.
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

/// The order of the octets of a number.
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

    /// The two half words of a word, in the order of the file.
    #[inline]
    const fn halves(self, word: u32) -> (u16, u16) {
        let (high, low) = ((word >> 16) as u16, word as u16);
        match self {
            Self::Little => (low, high),
            Self::Big => (high, low),
        }
    }

    /// The words in front of `octets`; `None` where there are fewer.
    #[inline]
    fn words<const N: usize>(self, octets: &[u8]) -> Option<[u32; N]> {
        let (words, _) = octets.as_chunks::<4>();
        words
            .first_chunk::<N>()
            .map(|words| words.map(|word| self.word(word)))
    }
}

/// The length of a packet, if it is one that we read.
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
