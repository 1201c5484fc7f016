//! Errors of reading a capture file, with readable messages.

use super::stamp::Resolution;
use super::{MAX_BLOCK, MAX_INTERFACES, MAX_PACKET};
use std::fmt;
use std::io;
use thiserror::Error;

/// Why a capture file could not be read (on): which file, where in it, what failed, and what to do.
#[derive(Debug, Error)]
#[error("{0}")]
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
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadErrorKind {
    /// The file could not be opened.
    #[error("cannot open it: {0}{advice}", advice = advice(_0))]
    Open(io::Error),
    /// Its octets could not be read.
    #[error("cannot read it: {0}{advice}", advice = advice(_0))]
    Read(io::Error),
    /// Its octets could not be decompressed.
    #[error("cannot decompress it ({0}): {1}; copy or compress it again")]
    Unpack(Packing, io::Error),
    /// It cannot be read from the start again.
    #[error("cannot read it again: {0}{advice}", advice = advice(_0))]
    Rewind(io::Error),
    /// There is not one octet.
    #[error("it is empty: a capture has a header, even without packets")]
    Empty,
    /// It begins with these octets, as no capture file does.
    #[error(
        "not a capture file: it begins with {}; pcap and pcapng are read, also compressed by gzip or zstd \
         (Wireshark's editcap makes them of other formats)",
        _0.map(|octet| format!("{octet:02X}")).join(" ")
    )]
    NotACapture([u8; 4]),
    /// It has a version that we do not know.
    #[error(
        "version {major}.{minor} of the format, which is not known; Wireshark's editcap may convert it"
    )]
    Version {
        /// The major version.
        major: u16,
        /// The minor version.
        minor: u16,
    },
    /// It ends inside a record, or inside compressed data.
    #[error("the file ends within what begins here: the capture, or its copy, was not finished")]
    Cut,
    /// A packet of more than [`MAX_PACKET`] octets.
    #[error("a packet of {len} octets; at most {MAX_PACKET} are read")]
    TooLong {
        /// Octets of the packet, it is said.
        len: u32,
    },
    /// A block that has more than [`MAX_BLOCK`] octets.
    #[error("a block of {len} octets; at most {MAX_BLOCK} are read")]
    BlockTooLong {
        /// Octets of the block, it is said.
        len: u32,
    },
    /// A block that has fewer octets than its kind needs, or no multiple of 4.
    #[error("a block of {len} octets, which is too short for its kind or no multiple of 4")]
    BlockLength {
        /// Octets of the block, it is said.
        len: u32,
    },
    /// A block whose length is another at its end than at its start.
    #[error("a block that has {len} octets by its start and {again} by its end")]
    Lengths {
        /// Octets of the block, by its start.
        len: u32,
        /// What its end says.
        again: u32,
    },
    /// A packet that is longer than its block.
    #[error("a packet of {captured} octets in a block of {block}, which has no room for it")]
    Overlong {
        /// Octets of the packet.
        captured: u32,
        /// Octets of the block around it.
        block: usize,
    },
    /// A packet of an interface that was not described before.
    #[error(
        "a packet of interface {number}, but {count} are described before it (numbered from 0)"
    )]
    Interface {
        /// The interface, counted from 0 in its section.
        number: u32,
        /// How many there are so far.
        count: usize,
    },
    /// More than [`MAX_INTERFACES`] interfaces.
    #[error("one more interface; at most {MAX_INTERFACES} are read")]
    Interfaces,
    /// A time before the epoch, or more than 584 years behind it.
    #[error(
        "a time stamp of {stamp} times {resolution} plus {offset} s, which is not between 1970 and 2554"
    )]
    Stamp {
        /// The time stamp.
        stamp: u64,
        /// Its unit.
        resolution: Resolution,
        /// Seconds to add to it.
        offset: i64,
    },
    /// Something else is not as the format demands.
    #[error("malformed: {0}")]
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

impl fmt::Display for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            position: Position { octet, packets },
            kind,
        } = self;
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
