//! Report of a run: what was sent, how fast, how close to its time, and why the run ended.

use crate::pacing::{FCS_LEN, WIRE_OVERHEAD};
use crate::transmit::{Counts, Mode};
use hdrhistogram::Histogram;
use serde::{Serialize, Serializer, ser::SerializeStruct};
use std::fmt;
use std::time::Duration;

/// Largest timing error that is distinguished from larger ones, in nanoseconds: 100 s.
const LARGEST: u64 = 100_000_000_000;

/// Distance of each frame's hand-over from its due time.
#[derive(Clone, Debug)]
pub struct Timing {
    /// |handed over − due|, in nanoseconds.
    error: Histogram<u64>,
    /// |gap to the previous hand-over − gap that was due|, in nanoseconds.
    gap_error: Histogram<u64>,
    last: Option<(u64, u64)>,
    /// Hand-over of the last frame after its due time, in nanoseconds; the most over all queues.
    behind: u64,
    /// Number of hand-overs of more than one frame.
    batches: u64,
    /// Number of frames of the largest hand-over.
    largest_batch: usize,
}

impl Default for Timing {
    fn default() -> Self {
        let new = || {
            // Three digits suffice for human readers. These bounds are always accepted.
            Histogram::new_with_bounds(1, LARGEST, 3).unwrap_or_else(|e| unreachable!("{e}"))
        };
        Self {
            error: new(),
            gap_error: new(),
            last: None,
            behind: 0,
            batches: 0,
            largest_batch: 0,
        }
    }
}

impl Timing {
    /// Records that frames due at `dues` were handed over at `handed`.
    #[inline]
    pub(super) fn record(&mut self, dues: &[u64], handed: u64) {
        for due in dues {
            self.error.saturating_record(handed.abs_diff(*due));
        }
        if let (Some(first), Some(last)) = (dues.first(), dues.last()) {
            if let Some((due_before, before)) = self.last {
                let (gap, meant) = (handed.abs_diff(before), first.abs_diff(due_before));
                self.gap_error.saturating_record(gap.abs_diff(meant));
            }
            self.last = Some((*last, handed));
            self.behind = handed.saturating_sub(*last);
        }
        if dues.len() > 1 {
            self.batches += 1;
        }
        self.largest_batch = self.largest_batch.max(dues.len());
    }

    /// Adds the records of another queue.
    pub fn add(&mut self, other: &Self) {
        // Both have the same bounds.
        let _ = self.error.add(&other.error);
        let _ = self.gap_error.add(&other.gap_error);
        self.behind = self.behind.max(other.behind);
        self.batches += other.batches;
        self.largest_batch = self.largest_batch.max(other.largest_batch);
    }

    /// Returns the time of the last hand-over.
    pub(super) fn last_handed(&self) -> Option<u64> {
        self.last.map(|(_, handed)| handed)
    }

    /// Returns how late the last frame was handed over, of the queue where this was latest.
    #[must_use]
    pub const fn behind(&self) -> Duration {
        Duration::from_nanos(self.behind)
    }

    /// Returns the number of frames recorded.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.error.len()
    }

    /// Returns quantiles of the timing error.
    #[must_use]
    pub fn error(&self) -> Quantiles {
        Quantiles::from_histogram(&self.error)
    }

    /// Returns quantiles of the error of the gaps between hand-overs.
    #[must_use]
    pub fn gap_error(&self) -> Quantiles {
        Quantiles::from_histogram(&self.gap_error)
    }

    /// Returns the maximum number of frames that were handed over together.
    #[must_use]
    pub const fn largest_batch(&self) -> usize {
        self.largest_batch
    }
}

/// Quantiles in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Quantiles {
    /// Median.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    #[serde(rename = "p99.9")]
    pub p99_9: u64,
    /// Maximum.
    pub max: u64,
}

impl Quantiles {
    fn from_histogram(histogram: &Histogram<u64>) -> Self {
        Self {
            p50: histogram.value_at_quantile(0.5),
            p99: histogram.value_at_quantile(0.99),
            p99_9: histogram.value_at_quantile(0.999),
            max: histogram.max(),
        }
    }
}

impl fmt::Display for Quantiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |nanos: u64| format!("{:.1}", nanos as f64 / 1e3);
        let (p50, p99, p99_9, max) = (us(self.p50), us(self.p99), us(self.p99_9), us(self.max));
        write!(
            f,
            "p50 {p50} µs, p99 {p99} µs, p99.9 {p99_9} µs, max {max} µs"
        )
    }
}

impl Serialize for Timing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Timing", 6)?;
        out.serialize_field("frames", &self.frames())?;
        out.serialize_field("error_ns", &self.error())?;
        out.serialize_field("gap_error_ns", &self.gap_error())?;
        out.serialize_field("behind_ns", &self.behind)?;
        out.serialize_field("batches", &self.batches)?;
        out.serialize_field("largest_batch", &self.largest_batch)?;
        out.end()
    }
}

/// Reason why a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "why", content = "detail")]
pub enum Ended {
    /// Everything was sent.
    Done,
    /// The time was up.
    TimeUp,
    /// The run was stopped.
    Interrupted,
    /// The link failed, or was about to.
    LinkFailed(String),
}

/// Report of one queue.
#[derive(Clone, Debug, Serialize)]
pub struct QueueReport {
    /// Transmit mode of the queue.
    pub mode: Mode,
    /// Processor to which its thread was pinned.
    pub pinned_to: Option<usize>,
    /// Counters of its frames.
    pub counts: Counts,
    /// Number of times its source had nothing in time.
    pub starved: u64,
    /// Number of frames that did not fit.
    pub misfits: u64,
}

/// Report of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Reason why it ended.
    pub ended: Ended,
    /// Report of each queue.
    pub queues: Vec<QueueReport>,
    /// Sum over all queues.
    pub total: Counts,
    /// Frames that the interface's counters report as dropped on sending during the run, including
    /// those of other senders.
    pub interface_dropped: Option<u64>,
    /// Reasons why interfaces could not be watched, one text each: only the kernel's errors would
    /// have shown that they went away.
    pub unwatched: Vec<String>,
    /// Seconds from the first frame's time to the end of the run; if frames were written
    /// immediately, the time that this took.
    pub seconds: f64,
    /// Seconds from the first frame's time to the last hand-over; at top speed to the end. Rates
    /// refer to this time.
    #[serde(skip)]
    pub sending_seconds: f64,
    /// If frames were written to a capture file immediately: duration of the run by their times, in
    /// seconds. Neither rate nor timing was measured then.
    pub due_seconds: Option<f64>,
    /// Timing of hand-overs; empty at top speed, and if frames were written immediately.
    pub timing: Timing,
}

impl Report {
    /// Returns the number of frames sent, as far as known: completed frames without dropped ones.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.total.completed.saturating_sub(self.dropped())
    }

    /// Returns the number of frames dropped by the kernel, by the higher of the two counts.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        let known = self.total.dropped + self.total.invalid;
        match self.interface_dropped {
            Some(counted) if counted > known => counted,
            _ => known,
        }
    }

    /// Returns the number of frames that the kernel had not completed when the run ended.
    #[must_use]
    pub const fn unfinished(&self) -> u64 {
        self.total.pushed.saturating_sub(self.total.completed)
    }

    /// Returns the rate in frames per second; `None` if unknown. See [`per_second`].
    #[must_use]
    pub fn packets_per_second(&self) -> Option<f64> {
        let frames = self.total.completed;
        per_second(frames as f64, frames, self.sending_seconds)
    }

    /// Returns the rate in bits per second of layer 2: frames with FCS.
    #[must_use]
    pub fn l2_bits_per_second(&self) -> Option<f64> {
        self.bits_per_second(FCS_LEN)
    }

    /// Returns the rate in bits per second of layer 1: frames with FCS, preamble and gap.
    #[must_use]
    pub fn l1_bits_per_second(&self) -> Option<f64> {
        self.bits_per_second(FCS_LEN + WIRE_OVERHEAD)
    }

    fn bits_per_second(&self, overhead: u64) -> Option<f64> {
        let frames = self.total.pushed;
        let octets = self.total.octets + frames * overhead;
        per_second(octets as f64 * 8.0, frames, self.sending_seconds)
    }
}

/// Returns the rate per second of `what`, the sum over `frames`, the first and the last of which
/// are `seconds` apart. The last frame ends that time and is not part of it; its share is assumed
/// to be the mean. `None` with fewer than two frames.
#[must_use]
pub fn per_second(what: f64, frames: u64, seconds: f64) -> Option<f64> {
    (frames > 1 && seconds > 0.0).then(|| what * ((frames - 1) as f64 / frames as f64) / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_computed_from_gaps_between_frames() {
        assert_eq!(per_second(2.0, 2, 1.0), Some(1.0));
        assert_eq!(per_second(3.0, 3, 2.0), Some(1.0));
        assert_eq!(per_second(1.0, 1, 1.0), None);
        assert_eq!(per_second(2.0, 2, 0.0), None);
    }
}
