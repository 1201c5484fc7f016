//! The common interface of transmit backends: [`crate::xdp`], [`crate::packet_socket`] and capture
//! files ([`crate::file_transmit`]). [`crate::sender`] decides when to send which frame.
//!
//! A backend owns a fixed number of *slots*, buffers that each hold one frame. A slot is taken when
//! it is free, filled or patched in place, and pushed; the kernel reads the frame from there. A
//! slot keeps its octets until it is taken again, so that a sender that remembers them need write
//! only the differences. Slots are freed in the order in which they were pushed, as long as the
//! driver keeps it.

use crate::xdp;
use serde::Serialize;
use std::fmt;
use std::io;
use std::time::Duration;
use thiserror::Error;

/// A slot that is free to be filled. It is returned by pushing it.
#[derive(Debug)]
#[must_use = "a slot that is not pushed is lost to the backend"]
pub struct Slot(pub(crate) u32);

impl Slot {
    /// Returns its number, below the number of slots.
    #[inline]
    #[must_use]
    pub const fn index(&self) -> usize {
        self.0 as usize
    }
}

/// Counters of transmitted frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Frames pushed.
    pub pushed: u64,
    /// Total length of frames pushed, without FCS, in octets.
    pub octets: u64,
    /// Frames that the kernel has completed: on the wire, or dropped by it.
    pub completed: u64,
    /// Frames known to have been dropped by the kernel before sending.
    pub dropped: u64,
    /// Descriptors that the kernel found invalid.
    pub invalid: u64,
    /// System calls that handed over frames.
    pub kicks: u64,
}

impl Counts {
    /// Returns the sum of both.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            pushed: self.pushed + other.pushed,
            octets: self.octets + other.octets,
            completed: self.completed + other.completed,
            dropped: self.dropped + other.dropped,
            invalid: self.invalid + other.invalid,
            kicks: self.kicks + other.kicks,
        }
    }
}

/// One queue of an interface, or a capture file, that takes frames. Used by a single thread.
pub trait Transmit {
    /// Returns the length of a slot in octets: the maximum length of a frame without FCS.
    #[inline]
    fn slot_len(&self) -> usize {
        self.mode().slots.1
    }

    /// Takes a free slot. `None` if the kernel has all of them: [`flush`](Self::flush) and
    /// [`wait`](Self::wait) then.
    fn take(&mut self) -> Option<Slot>;

    /// Returns the octets of a slot, which still contain its last frame.
    fn bytes(&mut self, slot: &Slot) -> &mut [u8];

    /// Sets the due time of the next frame pushed, in nanoseconds since 1970, and the number of the
    /// interface on which it was captured. Only used by capture files.
    #[inline]
    fn stamp(&mut self, _at: u64, _interface: u32) {}

    /// Queues the first `len` octets of `slot` (at most [`slot_len`](Self::slot_len)) behind those
    /// pushed before. They leave with the next [`flush`](Self::flush).
    fn push(&mut self, slot: Slot, len: usize);

    /// Hands pushed frames to the kernel. Frames that it refuses for now ("busy") stay queued for
    /// the next flush.
    ///
    /// # Errors
    /// The interface is gone or down, or the file cannot be written. Nothing more can be sent.
    fn flush(&mut self) -> Result<(), TransmitError>;

    /// Waits until the kernel can take more or has completed a frame, at most for `for_`; may
    /// return early.
    ///
    /// # Errors
    /// As for [`flush`](Self::flush).
    fn wait(&mut self, for_: Duration) -> Result<(), TransmitError>;

    /// Returns the number of slots that are pushed and not yet free again.
    #[inline]
    fn in_flight(&self) -> usize {
        let counts = self.quick_counts();
        (counts.pushed - counts.completed) as usize
    }

    /// Returns the counters so far, without querying the kernel.
    fn quick_counts(&self) -> Counts;

    /// Returns the counters so far.
    fn counts(&mut self) -> Counts {
        self.quick_counts()
    }

    /// Returns the transmit mode.
    fn mode(&self) -> &Mode;
}

/// Transmit mode of one queue, and reasons against better modes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mode {
    /// Interface or file.
    pub target: String,
    /// Transmit queue; `None` if the kernel chooses.
    pub queue: Option<u32>,
    /// Kind of transmit mode.
    pub kind: ModeKind,
    /// Reasons against each better mode that was tried or ruled out.
    pub why_not_better: Vec<String>,
    /// Number of slots, and length of each in octets.
    pub slots: (usize, usize),
}

/// Kinds of transmit modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModeKind {
    /// AF_XDP, with the driver reading our memory.
    XdpZeroCopy(xdp::ProgramMode),
    /// AF_XDP, with the kernel copying each frame to its own packet buffer.
    XdpCopy,
    /// AF_PACKET, with a system call for each frame.
    PacketSocket,
    /// A capture file.
    CaptureFile,
}

impl fmt::Display for ModeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::XdpZeroCopy(program) => write!(f, "AF_XDP, zero copy, {program} mode"),
            // Copies are sent by the kernel's generic transmit function, whatever the driver.
            Self::XdpCopy => f.write_str("AF_XDP, copy, generic mode"),
            Self::PacketSocket => f.write_str("AF_PACKET"),
            Self::CaptureFile => f.write_str("capture file"),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.target)?;
        if let Some(queue) = self.queue {
            write!(f, " queue {queue}")?;
        }
        write!(f, ": {}", self.kind)?;
        for (i, why) in self.why_not_better.iter().enumerate() {
            f.write_str(if i == 0 { " (" } else { "; " })?;
            f.write_str(why)?;
        }
        if !self.why_not_better.is_empty() {
            f.write_str(")")?;
        }
        Ok(())
    }
}

/// Reason why nothing more can be sent.
#[derive(Debug, Error)]
pub enum TransmitError {
    /// The interface no longer exists, or was moved to another namespace.
    #[error("{interface}: the interface is gone; sending has stopped")]
    Gone {
        /// Name of the interface.
        interface: String,
    },
    /// The interface is down.
    #[error(
        "{interface}: the interface is down; sending has stopped (ip link set dev {interface} up)"
    )]
    Down {
        /// Name of the interface.
        interface: String,
    },
    /// The kernel refused for another reason.
    #[error("{interface}: the kernel does not accept frames: {error}")]
    Kernel {
        /// Name of the interface.
        interface: String,
        /// The kernel's error.
        error: io::Error,
    },
    /// The capture file could not be written.
    #[error(transparent)]
    File(#[from] crate::capture_file::Error),
}

impl TransmitError {
    /// Converts the errno of a send call; `None` for "later".
    #[cold]
    pub(crate) fn from_io(interface: &str, error: io::Error) -> Option<Self> {
        let interface = interface.to_owned();
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::EINTR) => None,
            Some(libc::ENXIO | libc::ENODEV) => Some(Self::Gone { interface }),
            Some(libc::ENETDOWN) => Some(Self::Down { interface }),
            _ => Some(Self::Kernel { interface, error }),
        }
    }
}
