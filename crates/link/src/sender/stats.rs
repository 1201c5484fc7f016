//! What is going on while frames are sent: counters that the sending threads write and one other reads.

use crate::transmit::{Counts, Transmit};
use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of one queue. Its thread alone writes them.
#[derive(Debug, Default)]
// A cache line of its own, so that threads do not wait for one another's counters.
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
    /// Takes over what `link` has counted.
    #[inline]
    pub(super) fn update(&self, link: &mut impl Transmit) {
        let counts = link.quick_counts();
        self.pushed.store(counts.pushed, Ordering::Relaxed);
        self.octets.store(counts.octets, Ordering::Relaxed);
        self.completed.store(counts.completed, Ordering::Relaxed);
        self.dropped.store(counts.dropped, Ordering::Relaxed);
        self.kicks.store(counts.kicks, Ordering::Relaxed);
    }

    /// The source had nothing when there was a place for it.
    #[cold]
    pub(super) fn starved(&self) {
        self.starved.fetch_add(1, Ordering::Relaxed);
    }

    /// The source offered a frame that does not fit.
    #[cold]
    pub(super) fn misfit(&self) {
        self.misfits.fetch_add(1, Ordering::Relaxed);
    }

    /// The counters now.
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

    /// How often the source had nothing in time.
    #[must_use]
    pub fn starvations(&self) -> u64 {
        self.starved.load(Ordering::Relaxed)
    }

    /// Frames left out because they did not fit.
    #[must_use]
    pub fn misfits(&self) -> u64 {
        self.misfits.load(Ordering::Relaxed)
    }
}

/// A second of a run, all queues together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tick {
    /// Seconds since the run began.
    pub at: f64,
    /// Frames sent, in all.
    pub sent: u64,
    /// Frames a second since the last tick.
    pub packets_per_second: f64,
    /// Bits a second of layer 2 (with FCS) since the last tick.
    pub l2_bits_per_second: f64,
    /// Frames that the kernel is known to have dropped, in all.
    pub dropped: u64,
    /// How often a source had nothing in time, in all.
    pub starved: u64,
    /// Whether frames are written at once: the rates are then those of writing.
    pub at_once: bool,
}
