//! Progress of sending: counters that the sending threads write and one other thread reads.

use crate::transmit::{Counts, Transmit};
use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of one queue, written only by its thread.
#[derive(Debug, Default)]
// A separate cache line, so that threads do not wait for one another's counters.
#[repr(align(128))]
pub struct Live {
    pushed: AtomicU64,
    octets: AtomicU64,
    completed: AtomicU64,
    dropped: AtomicU64,
    kicks: AtomicU64,
    starved: AtomicU64,
    misfits: AtomicU64,
}

impl Live {
    /// Copies the counters of `link`.
    #[inline]
    pub(super) fn update(&self, link: &mut impl Transmit) {
        let counts = link.quick_counts();
        self.pushed.store(counts.pushed, Ordering::Relaxed);
        self.octets.store(counts.octets, Ordering::Relaxed);
        self.completed.store(counts.completed, Ordering::Relaxed);
        self.dropped.store(counts.dropped, Ordering::Relaxed);
        self.kicks.store(counts.kicks, Ordering::Relaxed);
    }

    /// Counts that the source had nothing when there was a slot for it.
    #[cold]
    pub(super) fn starved(&self) {
        self.starved.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts that the source offered a frame that does not fit.
    #[cold]
    pub(super) fn misfit(&self) {
        self.misfits.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the current counters.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            pushed: get(&self.pushed),
            octets: get(&self.octets),
            completed: get(&self.completed),
            dropped: get(&self.dropped),
            invalid: 0,
            kicks: get(&self.kicks),
        }
    }

    /// Returns how often the source had nothing in time.
    #[must_use]
    pub fn starvations(&self) -> u64 {
        self.starved.load(Ordering::Relaxed)
    }

    /// Returns the number of frames omitted because they did not fit.
    #[must_use]
    pub fn misfits(&self) -> u64 {
        self.misfits.load(Ordering::Relaxed)
    }
}

/// Progress of a run after each second, for all queues together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tick {
    /// Seconds since the run began.
    pub at: f64,
    /// Total number of frames sent.
    pub sent: u64,
    /// Frames per second since the last tick.
    pub packets_per_second: f64,
    /// Bits per second of layer 2 (with FCS) since the last tick.
    pub l2_bits_per_second: f64,
    /// Total number of frames known to have been dropped by the kernel.
    pub dropped: u64,
    /// Total number of times a source had nothing in time.
    pub starved: u64,
    /// True if frames are written immediately: rates are then those of writing.
    pub unpaced: bool,
}
