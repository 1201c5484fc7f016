//! What can go wrong with a capture file, in words for people.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a capture file could not be written: what failed, on which file, and what to do.
#[derive(Debug)]
pub struct Error {
    file: Option<PathBuf>,
    kind: ErrorKind,
}

/// What failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file could not be created.
    Create(io::Error),
    /// The octets could not be written, now or earlier; the file is not there.
    Write(io::Error),
    /// The finished file could not be given its name; it is not there.
    Rename(io::Error),
    /// The path does not name a file.
    NoFileName,
    /// A text of the file or of an interface cannot be written, for this reason.
    Text(String),
    /// A packet of an interface that the file does not have.
    Interface {
        /// The interface asked for.
        number: u32,
        /// How many there are, numbered from 0.
        count: usize,
    },
    /// A packet with more octets than can be read again.
    TooLong {
        /// Octets of the packet.
        len: usize,
    },
    /// A packet that was shorter on the wire than it is.
    WireLen {
        /// Octets of the packet.
        len: usize,
        /// Octets that were on the wire, it is said.
        wire_len: u32,
    },
    /// A comment with more octets than its length field can say.
    Comment {
        /// Octets of the comment.
        len: usize,
    },
}

impl Error {
    #[cold]
    pub(super) fn new(file: Option<&Path>, kind: ErrorKind) -> Self {
        Self {
            file: file.map(Path::to_path_buf),
            kind,
        }
    }

    /// What failed.
    #[must_use]
    pub const fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// The capture file; `None` for a writer that the caller gave.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Whether the reader of a pipe went away: for many tools no failure at all.
    #[must_use]
    pub fn is_broken_pipe(&self) -> bool {
        matches!(&self.kind, ErrorKind::Write(e) if e.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{}: ", file.display())?,
            None => f.write_str("capture: ")?,
        }
        match &self.kind {
            ErrorKind::Create(e) => write!(f, "cannot create it: {e}{}", advice(e)),
            ErrorKind::Write(e) => write!(f, "cannot write it: {e}{}", advice(e)),
            ErrorKind::Rename(e) => write!(
                f,
                "cannot give the finished file its name: {e}{}",
                advice(e)
            ),
            ErrorKind::NoFileName => {
                f.write_str("this names no file; name one, in a folder that exists")
            }
            ErrorKind::Text(reason) => {
                write!(f, "cannot describe the file or an interface: {reason}")
            }
            ErrorKind::Interface { number, count } => write!(
                f,
                "a packet of interface {number}, but the file has {count} (numbered from 0)"
            ),
            ErrorKind::TooLong { len } => write!(
                f,
                "a packet of {len} octets; at most {} can be read again",
                super::MAX_PACKET
            ),
            ErrorKind::WireLen { len, wire_len } => write!(
                f,
                "a packet of {len} octets that is said to have had {wire_len} on the wire; it must be {len} or more"
            ),
            ErrorKind::Comment { len } => write!(
                f,
                "a comment of {len} octets; at most {} fit",
                super::MAX_COMMENT
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            ErrorKind::Create(e) | ErrorKind::Write(e) | ErrorKind::Rename(e) => Some(e),
            _ => None,
        }
    }
}

/// What to do about it.
fn advice(e: &io::Error) -> &'static str {
    match e.kind() {
        io::ErrorKind::StorageFull => {
            "; free some space, or write to another file system, or fewer packets or octets of each"
        }
        io::ErrorKind::QuotaExceeded => {
            "; your quota is used up: free some space or write elsewhere"
        }
        io::ErrorKind::FileTooLarge => "; raise the limit (ulimit -f), or write fewer packets",
        io::ErrorKind::NotFound => "; create its folder first",
        io::ErrorKind::NotADirectory => "; a part of the path is a file, not a folder",
        io::ErrorKind::PermissionDenied => {
            "; the folder must be writable for you: write to another one, or change its permissions"
        }
        io::ErrorKind::ReadOnlyFilesystem => "; write to another file system",
        io::ErrorKind::IsADirectory => "; name a file in that folder",
        io::ErrorKind::InvalidFilename => "; choose a shorter name",
        io::ErrorKind::BrokenPipe => "; the program that reads it has ended",
        _ => "",
    }
}
