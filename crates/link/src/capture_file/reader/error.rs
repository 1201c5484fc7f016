//! What can go wrong in reading a capture file, in words for people.

use super::stamp::Resolution;
use super::{MAX_BLOCK, MAX_INTERFACES, MAX_PACKET};
use std::fmt;
use std::io;

/// Why a capture file could not be read (on): which file, where in it, what failed, and what to do.
#[derive(Debug)]
pub struct ReadError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    name: String,
    position: Position,
    kind: ReadErrorKind,
}

/// Where reading stopped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    /// Octets of the uncompressed file in front of the record.
    pub octet: u64,
    /// Packets in front of it.
    pub packets: u64,
}

impl Position {
    pub(super) const START: Self = Self {
        octet: 0,
        packets: 0,
    };
}

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// By gzip (RFC 1952).
    Gzip,
    /// By zstd (RFC 8878).
    Zstd,
}

impl fmt::Display for Packing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        })
    }
}

/// What failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadErrorKind {
    /// The file could not be opened.
    Open(io::Error),
    /// Its octets could not be read.
    Read(io::Error),
    /// Its octets could not be decompressed.
    Unpack(Packing, io::Error),
    /// It cannot be read from the start again.
    Rewind(io::Error),
    /// There is not one octet.
    Empty,
    /// It begins with these octets, as no capture file does.
    NotACapture([u8; 4]),
    /// It has a version that we do not know.
    Version {
        /// The major version.
        major: u16,
        /// The minor version.
        minor: u16,
    },
    /// It ends inside a record, or inside compressed data.
    Cut,
    /// A packet of more than [`MAX_PACKET`] octets.
    TooLong {
        /// Octets of the packet, it is said.
        len: u32,
    },
    /// A block that has more than [`MAX_BLOCK`] octets.
    BlockTooLong {
        /// Octets of the block, it is said.
        len: u32,
    },
    /// A block that has fewer octets than its kind needs, or no multiple of 4.
    BlockLength {
        /// Octets of the block, it is said.
        len: u32,
    },
    /// A block whose length is another at its end than at its start.
    Lengths {
        /// Octets of the block, by its start.
        len: u32,
        /// What its end says.
        again: u32,
    },
    /// A packet that is longer than its block.
    Overlong {
        /// Octets of the packet.
        captured: u32,
        /// Octets of the block around it.
        block: usize,
    },
    /// A packet of an interface that was not described before.
    Interface {
        /// The interface, counted from 0 in its section.
        number: u32,
        /// How many there are so far.
        count: usize,
    },
    /// More than [`MAX_INTERFACES`] interfaces.
    Interfaces,
    /// A time before the epoch, or more than 584 years behind it.
    Stamp {
        /// The time stamp.
        stamp: u64,
        /// Its unit.
        resolution: Resolution,
        /// Seconds to add to it.
        offset: i64,
    },
    /// Something else is not as the format demands.
    Malformed(&'static str),
}

impl ReadError {
    #[cold]
    pub(super) fn new(name: &str, kind: ReadErrorKind, position: Position) -> Self {
        Self(Box::new(Inner {
            name: name.to_owned(),
            position,
            kind,
        }))
    }

    /// What failed.
    #[must_use]
    pub const fn kind(&self) -> &ReadErrorKind {
        &self.0.kind
    }

    /// The name of the file, or the one given for the reader.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Where the record begins at which reading stopped: octets of the uncompressed file in front of it.
    #[must_use]
    pub const fn octet(&self) -> u64 {
        self.0.position.octet
    }

    /// Packets in front of it.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.0.position.packets
    }

    /// Whether the file only ends too early. The packets in front are whole, and a tool may warn and go on with them.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        matches!(self.0.kind, ReadErrorKind::Cut)
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner {
            name,
            position: Position { octet, packets },
            kind,
        } = &*self.0;
        write!(f, "{name}: ")?;
        if kind.has_place() {
            match packets {
                0 => write!(f, "octet {octet}, before the first packet: ")?,
                _ => write!(f, "octet {octet}, behind packet {packets}: ")?,
            }
        }
        kind.fmt(f)?;
        match packets {
            1.. if matches!(kind, ReadErrorKind::Cut) => f.write_str("; what is in front is whole"),
            _ => Ok(()),
        }
    }
}

impl ReadErrorKind {
    /// Whether it happened somewhere in the file, not to the file as a whole.
    const fn has_place(&self) -> bool {
        !matches!(
            self,
            Self::Open(_) | Self::Rewind(_) | Self::Empty | Self::NotACapture(_)
        )
    }
}

impl fmt::Display for ReadErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(e) => write!(f, "cannot open it: {e}{}", advice(e)),
            Self::Read(e) => write!(f, "cannot read it: {e}{}", advice(e)),
            Self::Unpack(packing, e) => write!(
                f,
                "cannot decompress it ({packing}): {e}; copy or compress it again"
            ),
            Self::Rewind(e) => write!(f, "cannot read it again: {e}{}", advice(e)),
            Self::Empty => f.write_str("it is empty: a capture has a header, even without packets"),
            Self::NotACapture([a, b, c, d]) => write!(
                f,
                "not a capture file: it begins with {a:02X} {b:02X} {c:02X} {d:02X}; pcap and pcapng are read, also \
                 compressed by gzip or zstd (Wireshark's editcap makes them of other formats)"
            ),
            Self::Version { major, minor } => write!(
                f,
                "version {major}.{minor} of the format, which is not known; Wireshark's editcap may convert it"
            ),
            Self::Cut => f.write_str(
                "the file ends within what begins here: the capture, or its copy, was not finished",
            ),
            Self::TooLong { len } => {
                write!(f, "a packet of {len} octets; at most {MAX_PACKET} are read")
            }
            Self::BlockTooLong { len } => {
                write!(f, "a block of {len} octets; at most {MAX_BLOCK} are read")
            }
            Self::BlockLength { len } => write!(
                f,
                "a block of {len} octets, which is too short for its kind or no multiple of 4"
            ),
            Self::Lengths { len, again } => write!(
                f,
                "a block that has {len} octets by its start and {again} by its end"
            ),
            Self::Overlong { captured, block } => write!(
                f,
                "a packet of {captured} octets in a block of {block}, which has no room for it"
            ),
            Self::Interface { number, count } => write!(
                f,
                "a packet of interface {number}, but {count} are described before it (numbered from 0)"
            ),
            Self::Interfaces => {
                write!(f, "one more interface; at most {MAX_INTERFACES} are read")
            }
            Self::Stamp {
                stamp,
                resolution,
                offset,
            } => write!(
                f,
                "a time stamp of {stamp} times {resolution} plus {offset} s, which is not between 1970 and 2554"
            ),
            Self::Malformed(what) => write!(f, "malformed: {what}"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.kind {
            ReadErrorKind::Open(e)
            | ReadErrorKind::Read(e)
            | ReadErrorKind::Unpack(_, e)
            | ReadErrorKind::Rewind(e) => Some(e),
            _ => None,
        }
    }
}

/// What to do about it.
fn advice(e: &io::Error) -> &'static str {
    match e.kind() {
        io::ErrorKind::NotFound => "; check the name",
        io::ErrorKind::PermissionDenied => "; it must be readable for you",
        io::ErrorKind::IsADirectory => "; name a file in that folder",
        io::ErrorKind::NotSeekable => "; a pipe is read only once: save it to a file first",
        _ => "",
    }
}
