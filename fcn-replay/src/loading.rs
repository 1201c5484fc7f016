//! Loads the whole capture into memory, selected and rewritten, with a separate buffer for each
//! queue.

use crate::pipeline::Pipeline;
use fcn_link::sender::Batch;
use fcn_tool::failure::{Failure, Result};
use std::sync::atomic::{AtomicBool, Ordering};

/// A capture in memory.
#[derive(Debug)]
pub struct Loaded {
    /// The frames of each queue.
    pub batches: Vec<Batch>,
    /// Queue of each frame, in the order of the capture, if there are several queues.
    order: Vec<u16>,
    /// Number of frames of all queues.
    pub frames: u64,
}

/// Reads the capture into at most `limit` octets of memory; `None` if it needs more.
///
/// # Errors
/// The capture cannot be read, or reading was interrupted.
pub fn load(pipeline: &mut Pipeline, limit: u64, stop: &AtomicBool) -> Result<Option<Loaded>> {
    /// Number of frames between checks of `stop`.
    const STOP_CHECK_INTERVAL: u32 = 4_096;
    let jobs = pipeline.splitting.jobs();
    let mut batches: Vec<Batch> = (0..jobs).map(|_| Batch::default()).collect();
    let mut order = Vec::new();
    let mut memory = 0u64;
    let mut frames = 0;
    for step in (0..STOP_CHECK_INTERVAL).cycle() {
        if step == 0 && stop.load(Ordering::Relaxed) {
            return Err(Failure::interrupted("nothing was sent"));
        }
        let more = pipeline.step(|frame| {
            memory += (frame.octets.len() + Batch::OVERHEAD) as u64;
            if memory > limit {
                return;
            }
            if let Some(batch) = batches.get_mut(frame.job) {
                batch.push(frame.place, frame.interface, frame.octets);
                frames += 1;
            }
            if jobs > 1 {
                // At most 2 times 256 queues.
                order.push(frame.job as u16);
            }
        })?;
        if memory > limit {
            return Ok(None);
        }
        if !more {
            break;
        }
    }
    Ok(Some(Loaded {
        batches,
        order,
        frames,
    }))
}

impl Loaded {
    /// Returns the number of frames that each queue sends in `loops` loops (`None`: without end),
    /// limited to the first `count` of all queues together, in the capture's order.
    #[must_use]
    pub fn totals(&self, loops: Option<u64>, count: Option<u64>) -> Vec<u64> {
        let frames = self.frames.max(1);
        let most = loops.map_or(u64::MAX, |loops| loops.saturating_mul(self.frames));
        let total = count.map_or(most, |count| count.min(most));
        if total == u64::MAX {
            return vec![total; self.batches.len()];
        }
        let (whole, rest) = (total / frames, total % frames);
        let mut totals: Vec<u64> = self
            .batches
            .iter()
            .map(|batch| whole * batch.len() as u64)
            .collect();
        if let [only] = &mut totals[..] {
            *only += rest;
        } else {
            for job in self.order.iter().take(rest as usize) {
                if let Some(total) = totals.get_mut(usize::from(*job)) {
                    *total += 1;
                }
            }
        }
        totals
    }

    /// Returns the length of the longest frame, in octets.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.batches.iter().map(Batch::longest).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn queues_send_up_to_the_limits(
            order in proptest::collection::vec(0u16..3, 1..60),
            loops in 1u64..5,
            count in 1u64..400,
        ) {
            let mut batches: Vec<Batch> = (0..3).map(|_| Batch::default()).collect();
            for job in &order {
                batches[usize::from(*job)].push(0, 0, &[0; 14]);
            }
            let frames = order.len() as u64;
            let loaded = Loaded { batches, order: order.clone(), frames };
            let all: Vec<u16> = (0..loops).flat_map(|_| order.iter().copied()).collect();
            let sent = &all[..all.len().min(count as usize)];
            let expected: Vec<u64> = (0..3)
                .map(|job| sent.iter().filter(|j| **j == job).count() as u64)
                .collect();
            prop_assert_eq!(loaded.totals(Some(loops), Some(count)), expected);
            prop_assert_eq!(loaded.totals(None, None), [u64::MAX; 3]);
            let whole: u64 = loaded.totals(Some(loops), None).iter().sum();
            prop_assert_eq!(whole, loops * frames);
        }
    }
}
