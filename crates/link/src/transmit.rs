//! Frames out: what every backend offers. Backends are [`crate::xdp`], [`crate::packet_socket`] and capture files
//! ([`crate::file_transmit`]); when to send which frame is the business of [`crate::sender`].
//!
//! A backend owns a fixed number of *slots*, buffers of which each holds one frame. A slot is taken when it is free,
//! filled or patched in place, and pushed; the kernel reads the frame from there. A slot keeps its octets until it is
//! taken again, so that a sender who remembers what it holds need write only what differs. Slots come back in the
//! order in which they were pushed, as long as the driver keeps it.

use crate::xdp;
use serde::Serialize;
use std::fmt;
use std::io;
use std::time::Duration;
use thiserror::Error;

/// A slot that is free to be filled. It is given back by pushing it.
#[derive(Debug)]
#[must_use = "a slot that is not pushed is lost to the backend"]
pub struct Slot(pub(crate) u32);

impl Slot {
    /// Its number, below the count of slots.
    #[inline]
    #[must_use]
    pub const fn index(&self) -> usize {
        self.0 as usize
    }
}

/// What became of the frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Frames pushed.
    pub pushed: u64,
    /// Octets of them, without FCS.
    pub octets: u64,
    /// Frames that the kernel has finished with: on the wire, or dropped by it.
    pub completed: u64,
    /// Frames known to have been dropped by the kernel on their way out.
    pub dropped: u64,
    /// Descriptors that the kernel found invalid.
    pub invalid: u64,
    /// System calls that handed frames over.
    pub kicks: u64,
}

impl Counts {
    /// The sum of both.
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

/// One queue of an interface, or a capture file, that takes frames. Not shared: one thread, one queue.
pub trait Transmit {
    /// Octets of a slot: the longest frame, without FCS.
    #[inline]
    fn slot_len(&self) -> usize {
        self.mode().slots.1
    }

    /// A free slot. `None` where the kernel has them all: [`flush`](Self::flush) and [`wait`](Self::wait) then.
    fn take(&mut self) -> Option<Slot>;

    /// The octets of a slot, those of its last frame still in them.
    fn bytes(&mut self, slot: &Slot) -> &mut [u8];

    /// When the next frame pushed is due, in nanoseconds since 1970, and the number of the interface that it was seen at.
    /// Of use to a capture file alone.
    #[inline]
    fn stamp(&mut self, _at: u64, _interface: u32) {}

    /// Queues the first `len` octets of `slot` (at most [`slot_len`](Self::slot_len)) behind those pushed before. They
    /// leave with the next [`flush`](Self::flush).
    fn push(&mut self, slot: Slot, len: usize);

    /// Hands what was pushed to the kernel. What it does not take now ("busy") stays queued for the next flush.
    ///
    /// # Errors
    /// The interface is gone or down, or the file cannot be written. Nothing more can be sent.
    fn flush(&mut self) -> Result<(), TransmitError>;

    /// Waits until the kernel can take more or has finished with something, at most `for_`; returns sooner rather than
    /// later.
    ///
    /// # Errors
    /// As for [`flush`](Self::flush).
    fn wait(&mut self, for_: Duration) -> Result<(), TransmitError>;

    /// Slots pushed and not yet free again.
    #[inline]
    fn in_flight(&self) -> usize {
        let counts = self.quick_counts();
        (counts.pushed - counts.completed) as usize
    }

    /// What became of the frames so far, without asking the kernel.
    fn quick_counts(&self) -> Counts;

    /// What became of the frames so far.
    fn counts(&mut self) -> Counts {
        self.quick_counts()
    }

    /// How the frames leave.
    fn mode(&self) -> &Mode;
}

/// How frames leave by one queue, and why not in a better way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mode {
    /// The interface, or the file.
    pub target: String,
    /// The transmit queue; `None` where the kernel chooses.
    pub queue: Option<u32>,
    /// How.
    pub kind: ModeKind,
    /// Why not better, for each better way that was tried or ruled out.
    pub why_not_better: Vec<String>,
    /// Slots and octets of each.
    pub slots: (usize, usize),
}

/// The ways out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModeKind {
    /// AF_XDP, the driver reads our memory.
    XdpZeroCopy(xdp::ProgramMode),
    /// AF_XDP, the kernel copies each frame into a packet buffer of its own.
    XdpCopy,
    /// AF_PACKET: a system call for each frame.
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

/// Why nothing more can be sent.
#[derive(Debug, Error)]
pub enum TransmitError {
    /// The interface is not there any more, or was moved to another namespace.
    #[error("{interface}: the interface is gone; sending has stopped")]
    Gone {
        /// Its name.
        interface: String,
    },
    /// The interface is down.
    #[error(
        "{interface}: the interface is down; sending has stopped (ip link set dev {interface} up)"
    )]
    Down {
        /// Its name.
        interface: String,
    },
    /// The kernel refused for another reason.
    #[error("{interface}: the kernel does not take frames: {error}")]
    Kernel {
        /// The interface's name.
        interface: String,
        /// What it said.
        error: io::Error,
    },
    /// The capture file could not be written.
    #[error(transparent)]
    File(#[from] crate::capture_file::Error),
}

impl TransmitError {
    /// What an errno of a send call means; `None` for "later".
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
