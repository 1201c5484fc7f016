//! Errors of reading a capture file, with messages for users.

use std::fmt;
use std::io;
use thiserror::Error;

/// Reason why a capture file could not be read, or not to its end: which file, the position in it,
/// what failed, and what to do about it.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct ReadError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    name: String,
    position: Position,
    kind: ReadErrorKind,
}

/// The position at which reading stopped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    /// Offset of the record in the uncompressed file, in octets.
    pub octet: u64,
    /// Number of packets before it.
    pub packets: u64,
}

impl Position {
    pub(super) const START: Self = Self {
        octet: 0,
        packets: 0,
    };
}

/// Compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// By gzip (RFC 1952).
    Gzip,
    /// By zstd (RFC 8878).
    Zstd,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        })
    }
}

/// The kind of failure.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadErrorKind {
    /// The file could not be opened.
    #[error("cannot open it: {0}{advice}", advice = advice(_0))]
    Open(io::Error),
    /// The file could not be read.
    #[error("cannot read it: {0}{advice}", advice = advice(_0))]
    Read(io::Error),
    /// The file could not be decompressed.
    #[error("cannot decompress it ({0}): {1}; copy or compress it again")]
    Unpack(Compression, io::Error),
    /// The file cannot be read again from the start.
    #[error("cannot read it again: {0}{advice}", advice = advice(_0))]
    Rewind(io::Error),
    /// The file is empty.
    #[error("it is empty: a capture has a header, even without packets")]
    Empty,
    /// The file begins with these octets, which no capture format does.
    #[error(
        "not a capture file: it begins with {}; supported are pcap and pcapng, also compressed with gzip or zstd \
         (Wireshark's editcap converts other formats)",
        _0.map(|octet| format!("{octet:02X}")).join(" ")
    )]
    NotACapture([u8; 4]),
    /// The file ends inside a record or inside compressed data.
    #[error(
        "the file ends in the middle of what starts here: the capture, or its copy, is incomplete"
    )]
    Cut,
    /// The file states something that is impossible or exceeds a limit.
    #[error("{0}")]
    Refused(String),
    /// The file violates its format otherwise.
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

    /// Returns the kind of failure.
    #[must_use]
    pub const fn kind(&self) -> &ReadErrorKind {
        &self.0.kind
    }

    /// Returns the offset of the record at which reading stopped, in octets of the uncompressed
    /// file.
    #[must_use]
    pub const fn octet(&self) -> u64 {
        self.0.position.octet
    }

    /// Returns the number of packets before it.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.0.position.packets
    }

    /// True if the file merely ends too early. The packets before that are complete, and a tool may
    /// warn and continue with them.
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
                _ => write!(f, "octet {octet}, after packet {packets}: ")?,
            }
        }
        kind.fmt(f)?;
        match packets {
            1.. if matches!(kind, ReadErrorKind::Cut) => {
                f.write_str("; everything before it is complete")
            }
            _ => Ok(()),
        }
    }
}

impl ReadErrorKind {
    #[cold]
    pub(super) fn refused(what: fmt::Arguments<'_>) -> Self {
        Self::Refused(what.to_string())
    }

    #[cold]
    pub(super) fn version(major: u16, minor: u16) -> Self {
        Self::refused(format_args!(
            "unsupported format version {major}.{minor}; Wireshark's editcap may convert it"
        ))
    }

    /// True if the error has a position in the file, as opposed to concerning the file as a whole.
    const fn has_place(&self) -> bool {
        !matches!(
            self,
            Self::Open(_) | Self::Rewind(_) | Self::Empty | Self::NotACapture(_)
        )
    }
}

/// Returns advice on what to do about the error.
fn advice(e: &io::Error) -> &'static str {
    match e.kind() {
        io::ErrorKind::NotFound => "; check the name",
        io::ErrorKind::PermissionDenied => "; you need read permission",
        io::ErrorKind::IsADirectory => "; specify a file in that folder",
        io::ErrorKind::NotSeekable => "; a pipe is read only once: save it to a file first",
        _ => "",
    }
}
