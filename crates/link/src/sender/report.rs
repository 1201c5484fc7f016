//! What is said of a run: what left, how fast, how close to its time, and why it ended.

use crate::pacing::{FCS_LEN, WIRE_OVERHEAD};
use crate::transmit::{Counts, Mode};
use hdrhistogram::Histogram;
use serde::{Serialize, Serializer, ser::SerializeStruct};
use std::fmt;

/// The largest timing error that is told from larger ones, in nanoseconds: 100 s.
const LARGEST: u64 = 100_000_000_000;

/// How far from its time each frame was handed over.
#[derive(Clone, Debug)]
pub struct Timing {
    /// |handed over − due|, nanoseconds.
    error: Histogram<u64>,
    /// |gap to the hand-over before − gap that was due|, nanoseconds.
    gap_error: Histogram<u64>,
    last: Option<(u64, u64)>,
    /// Hand-overs of more than one frame.
    batches: u64,
    /// Frames of the largest one.
    largest_batch: usize,
}

impl Default for Timing {
    fn default() -> Self {
        let new = || {
            // Three digits are what a person reads. These bounds are always accepted.
            Histogram::new_with_bounds(1, LARGEST, 3).unwrap_or_else(|e| unreachable!("{e}"))
        };
        Self {
            error: new(),
            gap_error: new(),
            last: None,
            batches: 0,
            largest_batch: 0,
        }
    }
}

impl Timing {
    /// Frames that were due at `dues` were handed over at `handed`.
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
        }
        if dues.len() > 1 {
            self.batches += 1;
        }
        self.largest_batch = self.largest_batch.max(dues.len());
    }

    /// Adds what another queue recorded.
    pub fn add(&mut self, other: &Self) {
        // Both have the same bounds.
        let _ = self.error.add(&other.error);
        let _ = self.gap_error.add(&other.gap_error);
        self.batches += other.batches;
        self.largest_batch = self.largest_batch.max(other.largest_batch);
    }

    /// When the last frames were handed over.
    pub(super) fn last_handed(&self) -> Option<u64> {
        self.last.map(|(_, handed)| handed)
    }

    /// Frames recorded.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.error.len()
    }

    /// Quantiles of the timing error.
    #[must_use]
    pub fn error(&self) -> Quantiles {
        Quantiles::from_histogram(&self.error)
    }

    /// Quantiles of the error of the gaps between hand-overs.
    #[must_use]
    pub fn gap_error(&self) -> Quantiles {
        Quantiles::from_histogram(&self.gap_error)
    }

    /// Frames that were handed over together, at most.
    #[must_use]
    pub const fn largest_batch(&self) -> usize {
        self.largest_batch
    }
}

/// Quantiles, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Quantiles {
    /// Half are not larger.
    pub p50: u64,
    /// 99 of 100 are not larger.
    pub p99: u64,
    /// 999 of 1,000 are not larger.
    #[serde(rename = "p99.9")]
    pub p99_9: u64,
    /// None is larger.
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
        let mut out = serializer.serialize_struct("Timing", 5)?;
        out.serialize_field("frames", &self.frames())?;
        out.serialize_field("error_ns", &self.error())?;
        out.serialize_field("gap_error_ns", &self.gap_error())?;
        out.serialize_field("batches", &self.batches)?;
        out.serialize_field("largest_batch", &self.largest_batch)?;
        out.end()
    }
}

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "why", content = "detail")]
pub enum Ended {
    /// Everything was sent that was to be.
    Done,
    /// The time was up.
    TimeUp,
    /// Someone stopped it.
    Interrupted,
    /// The link failed, or was about to.
    LinkFailed(String),
}

/// What one queue did.
#[derive(Clone, Debug, Serialize)]
pub struct QueueReport {
    /// How its frames left.
    pub mode: Mode,
    /// The processor that its thread was bound to.
    pub pinned_to: Option<usize>,
    /// What became of them.
    pub counts: Counts,
    /// How often its source had nothing in time.
    pub starved: u64,
    /// Frames that did not fit.
    pub misfits: u64,
}

/// What a run did.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Why it ended.
    pub ended: Ended,
    /// Each queue.
    pub queues: Vec<QueueReport>,
    /// All queues together.
    pub total: Counts,
    /// Frames that the interface's own counters say it dropped on sending during the run; also those of others.
    pub interface_dropped: Option<u64>,
    /// Why an interface could not be watched, one text each: its end would have shown in the kernel's errors alone.
    pub unwatched: Vec<String>,
    /// Seconds from the first frame's time to the last frame's hand-over; where frames were written at once, what that took.
    pub seconds: f64,
    /// Seconds from the first frame's time to the last hand-over; at top speed to the end. Rates are over this time.
    #[serde(skip)]
    pub sending_seconds: f64,
    /// Where frames were written at once, into a capture file: seconds that the run lasts by their times. No rate and no
    /// timing was measured then.
    pub due_seconds: Option<f64>,
    /// How close to their times frames were handed over; empty at top speed, and where they were written at once.
    pub timing: Timing,
}

impl Report {
    /// Frames that left, as far as is known: those finished with, without those dropped.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.total.completed.saturating_sub(self.dropped())
    }

    /// Frames that the kernel dropped, by whichever count knows of more.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        let known = self.total.dropped + self.total.invalid;
        match self.interface_dropped {
            Some(counted) if counted > known => counted,
            _ => known,
        }
    }

    /// Frames that the kernel had not finished with when the run ended.
    #[must_use]
    pub const fn unfinished(&self) -> u64 {
        self.total.pushed.saturating_sub(self.total.completed)
    }

    /// Frames a second; `None` where it is not known. See [`per_second`].
    #[must_use]
    pub fn packets_per_second(&self) -> Option<f64> {
        let frames = self.total.completed;
        per_second(frames as f64, frames, self.sending_seconds)
    }

    /// Bits a second of layer 2: frames with FCS.
    #[must_use]
    pub fn l2_bits_per_second(&self) -> Option<f64> {
        self.bits_per_second(FCS_LEN)
    }

    /// Bits a second of layer 1: frames with FCS, preamble and gap.
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

/// What a second has of `what`, the sum over `frames`, the first and the last of which are `seconds` apart: the last frame
/// ends that time and is not part of it. Its share is taken to be the mean one. `None` with fewer than two frames.
#[must_use]
pub fn per_second(what: f64, frames: u64, seconds: f64) -> Option<f64> {
    (frames > 1 && seconds > 0.0).then(|| what * ((frames - 1) as f64 / frames as f64) / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_of_gaps_between_frames() {
        assert_eq!(per_second(2.0, 2, 1.0), Some(1.0));
        assert_eq!(per_second(3.0, 3, 2.0), Some(1.0));
        assert_eq!(per_second(1.0, 1, 1.0), None);
        assert_eq!(per_second(2.0, 2, 0.0), None);
    }
}
