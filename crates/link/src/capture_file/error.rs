//! Errors of writing a capture file, with readable messages.

use super::{MAX_COMMENT, MAX_PACKET};
use std::io;
use std::path::{Path, PathBuf};

/// Why a capture file could not be written: what failed, on which file, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{}: {kind}", file.as_ref().map_or("capture".into(), |file| file.to_string_lossy()))]
pub struct Error {
    file: Option<PathBuf>,
    kind: ErrorKind,
}

/// What failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file could not be created.
    #[error("cannot create it: {0}{advice}", advice = advice(_0))]
    Create(io::Error),
    /// The octets could not be written, now or earlier; the file is not there.
    #[error("cannot write it: {0}{advice}", advice = advice(_0))]
    Write(io::Error),
    /// The finished file could not be given its name; it is not there.
    #[error("cannot give the finished file its name: {0}{advice}", advice = advice(_0))]
    Rename(io::Error),
    /// The path does not name a file.
    #[error("this names no file; name one, in a folder that exists")]
    NoFileName,
    /// A text of the file or of an interface cannot be written, for this reason.
    #[error("cannot describe the file or an interface: {0}")]
    Text(String),
    /// A packet of an interface that the file does not have.
    #[error("a packet of interface {number}, but the file has {count} (numbered from 0)")]
    Interface {
        /// The interface asked for.
        number: u32,
        /// How many there are, numbered from 0.
        count: usize,
    },
    /// A packet with more octets than can be read again.
    #[error("a packet of {len} octets; at most {MAX_PACKET} can be read again")]
    TooLong {
        /// Octets of the packet.
        len: usize,
    },
    /// A packet that was shorter on the wire than it is.
    #[error(
        "a packet of {len} octets that is said to have had {wire_len} on the wire; it must be {len} or more"
    )]
    WireLen {
        /// Octets of the packet.
        len: usize,
        /// Octets that were on the wire, it is said.
        wire_len: u32,
    },
    /// A comment with more octets than its length field can say.
    #[error("a comment of {len} octets; at most {MAX_COMMENT} fit")]
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
