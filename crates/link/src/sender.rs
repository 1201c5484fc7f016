//! Frames from a source onto the queues of a link: a thread for each queue, pinned; at top speed, at a rate or by the
//! source's own timing; until the source ends, a limit is reached, someone stops it, or the interface goes.
//!
//! The loop of one queue is in `sender/queue.rs`, the threads and their supervision in `sender/run.rs`, what is
//! reported in `sender/report.rs`. What the frames are is the source's business; `sender/stream.rs` is the one whose frames
//! another thread makes.

mod queue;
mod report;
mod run;
mod stats;
mod stream;
#[cfg(test)]
mod tests;

pub use queue::send;
pub use report::{Ended, QueueReport, Report, Timing, per_second};
pub use run::{Job, Stop, run};
pub use stats::{Live, Tick};
pub use stream::{Batch, Filling, Gone, Streamed, stream};

use crate::clock::Waiting;
use crate::pacing::{CatchUp, Rate};
use std::time::Duration;

/// What a source has next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A frame.
    Frame {
        /// When it is due by the source's own timing: nanoseconds since the run began.
        at: u64,
        /// Its octets, without FCS.
        len: usize,
    },
    /// None yet: whoever makes them is behind.
    Later,
    /// No more.
    End,
}

/// Where the frames of one queue come from.
pub trait Source: Send {
    /// Looks at the next frame; the same until it is filled in.
    fn peek(&mut self) -> Next;

    /// Writes the frame that [`peek`](Self::peek) told of to the start of `out`, and goes on to the next one. `slot` is
    /// the number of the buffer `out`, which still holds what was written there last.
    fn fill(&mut self, slot: usize, out: &mut [u8]);

    /// The interface that the frame which [`peek`](Self::peek) told of was seen at, where it is from a capture.
    #[inline]
    fn interface(&self) -> u32 {
        0
    }

    /// Goes on to the next one without it.
    fn skip(&mut self);
}

/// When frames leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As fast as the link takes them.
    Top,
    /// At a rate, for this queue.
    Rate(Rate),
    /// When the source says.
    Own,
}

/// How one queue sends.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// When frames leave.
    pub pace: Pace,
    /// Frames handed over at once, at most. At a rate: exactly so many, as a burst.
    pub burst: usize,
    /// What happens to late frames.
    pub catch_up: CatchUp,
    /// How to wait.
    pub waiting: Waiting,
    /// Ends the run after so many frames of this queue.
    pub count: Option<u64>,
    /// Ends the run after so long.
    pub duration: Option<Duration>,
    /// This queue's first frame is due so much later: queues at a rate take turns.
    pub offset: Duration,
    /// When the run begins by the time stamps of a capture file: nanoseconds since 1970.
    pub epoch: u64,
}

impl Settings {
    /// As fast as the link takes them, until the source ends.
    pub const TOP: Self = Self {
        pace: Pace::Top,
        burst: BURST,
        catch_up: CatchUp::ByGap,
        waiting: Waiting::Sleep,
        count: None,
        duration: None,
        offset: Duration::ZERO,
        epoch: 0,
    };
}

/// Frames handed over at once at top speed: with more, nothing is gained.
pub const BURST: usize = 64;
/// Frames of a source's own timing that are closer than this leave together: a system call takes about as long.
pub const TOGETHER: u64 = 2_000;
