//! Errors of writing a capture file, with messages for users.

use super::{MAX_COMMENT, MAX_PACKET};
use std::io;
use std::path::{Path, PathBuf};

/// Reason why a capture file could not be written: what failed, on which file, and what to do about
/// it.
#[derive(Debug, thiserror::Error)]
#[error("{}: {kind}", file.as_ref().map_or("capture".into(), |file| file.to_string_lossy()))]
pub struct Error {
    file: Option<PathBuf>,
    kind: ErrorKind,
}

/// The kind of failure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file could not be created.
    #[error("cannot create it: {0}{advice}", advice = advice(_0))]
    Create(io::Error),
    /// The octets could not be written, now or earlier; the file does not exist.
    #[error("cannot write it: {0}{advice}", advice = advice(_0))]
    Write(io::Error),
    /// The finished file could not be renamed to its final name; it does not exist.
    #[error("cannot rename the finished file: {0}{advice}", advice = advice(_0))]
    Rename(io::Error),
    /// The path does not name a file.
    #[error("not a file name; specify a file in an existing folder")]
    NoFileName,
    /// A text of the file or of an interface cannot be written, for this reason.
    #[error("cannot describe the file or an interface: {0}")]
    Text(String),
    /// A packet refers to an interface that the file does not have.
    #[error(
        "a packet of interface {number}, but the file has {count} interfaces (numbered from 0)"
    )]
    Interface {
        /// Number of the interface requested.
        number: u32,
        /// Number of interfaces in the file, numbered from 0.
        count: usize,
    },
    /// A packet is longer than readers accept.
    #[error("a packet of {len} octets; at most {MAX_PACKET} can be read again")]
    TooLong {
        /// Length of the packet, in octets.
        len: usize,
    },
    /// A packet is longer than its stated length on the wire.
    #[error(
        "a packet of {len} octets with a length of {wire_len} on the wire; that must be at least {len}"
    )]
    WireLen {
        /// Length of the packet, in octets.
        len: usize,
        /// Stated length on the wire, in octets.
        wire_len: u32,
    },
    /// A comment is longer than its length field can express.
    #[error("a comment of {len} octets; at most {MAX_COMMENT} fit")]
    Comment {
        /// Length of the comment, in octets.
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

    /// Returns the kind of failure.
    #[must_use]
    pub const fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// Returns the path of the capture file; `None` for a writer supplied by the caller.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// True if the reader of a pipe has closed it, which many tools do not treat as a failure.
    #[must_use]
    pub fn is_broken_pipe(&self) -> bool {
        matches!(&self.kind, ErrorKind::Write(e) if e.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// Returns advice on what to do about the error.
fn advice(e: &io::Error) -> &'static str {
    match e.kind() {
        io::ErrorKind::StorageFull => {
            "; free some space, write to another file system, or write fewer packets or fewer octets of each"
        }
        io::ErrorKind::QuotaExceeded => {
            "; your quota is used up: free some space or write elsewhere"
        }
        io::ErrorKind::FileTooLarge => "; raise the limit (ulimit -f), or write fewer packets",
        io::ErrorKind::NotFound => "; create its folder first",
        io::ErrorKind::NotADirectory => "; part of the path is a file, not a folder",
        io::ErrorKind::PermissionDenied => {
            "; you need write permission for the folder: use another one, or change its permissions"
        }
        io::ErrorKind::ReadOnlyFilesystem => "; write to another file system",
        io::ErrorKind::IsADirectory => "; specify a file in that folder",
        io::ErrorKind::InvalidFilename => "; choose a shorter name",
        io::ErrorKind::BrokenPipe => "; the program reading it has ended",
        _ => "",
    }
}
