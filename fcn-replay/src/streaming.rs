//! Streams a capture that is larger than its memory limit: it is read while it is sent, in batches
//! that are reused.

use crate::pipeline::Pipeline;
use crate::timing::Loops;
use fcn_link::sender::{Batch, BatchReceiver, BatchSender, Gone, stream};
use fcn_tool::failure::Result;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Batches of a queue: one is filled, one is sent, the others wait in between.
const BATCHES: usize = 8;
/// Maximum total size of the batches of one queue, in octets; more does not improve the read-ahead.
const MOST: u64 = 64 << 20;
/// Number of frames of the file between checks of `stop`.
const STOP_CHECK_INTERVAL: u32 = 4_096;

/// Amount to read.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Number of loops; `None`: without end.
    pub loops: Option<u64>,
    /// Number of frames, over all loops and queues.
    pub count: Option<u64>,
    /// Gap between loops; see [`crate::timing::Places::end`].
    pub loop_gap: Option<Duration>,
    /// Memory limit in octets.
    pub memory: u64,
}

/// Reads the file and distributes its frames.
pub struct Feeder {
    queues: Vec<BatchSender>,
    extent: Extent,
    /// Size of a batch of all queues together, in octets.
    chunk: usize,
    /// Octets in the batches being filled.
    filling: usize,
    begun: Sender<u64>,
}

/// Creates the sources of all queues, their feeder, and a receiver of the capture's first time. The
/// receiver gets the time when there is something to send, and is disconnected if there never will
/// be.
#[must_use]
pub fn streams(jobs: usize, extent: Extent) -> (Vec<BatchReceiver>, Feeder, Receiver<u64>) {
    let (queues, sources) = (0..jobs).map(|_| stream(BATCHES)).unzip();
    let (begun, has_begun) = channel();
    let chunk = extent.memory.min(MOST) as usize / BATCHES;
    let feeder = Feeder {
        queues,
        extent,
        chunk,
        filling: 0,
        begun,
    };
    (sources, feeder, has_begun)
}

impl Feeder {
    /// Reads the file through `pipeline`, as often as requested, until all frames are passed on,
    /// they are no longer taken, or `stop` is true.
    ///
    /// # Errors
    /// The file cannot be read further.
    pub fn feed(mut self, pipeline: &mut Pipeline, stop: &AtomicBool) -> Result {
        let (mut left, mut loops) = (
            self.extent.count.unwrap_or(u64::MAX),
            Loops::first(pipeline.by()),
        );
        let mut loop_ = 0;
        loop {
            pipeline.rewriting.begin(loop_);
            let before = left;
            if self
                .pass(pipeline, (&mut left, loop_, loops), stop)?
                .is_err()
            {
                return Ok(());
            }
            loop_ += 1;
            // A loop without frames would repeat for ever.
            let last = self.extent.loops.is_some_and(|loops| loop_ >= loops);
            if last || left == 0 || left == before {
                break;
            }
            if loop_ == 1 {
                loops = pipeline.loops(self.extent.loop_gap);
            }
            pipeline.rewind().map_err(|failure| {
                failure.and("a capture that can be read only once cannot be looped")
            })?;
        }
        let _ = self.hand_over(pipeline.begins());
        Ok(())
    }

    /// Makes one pass through the file.
    fn pass(
        &mut self,
        pipeline: &mut Pipeline,
        (left, loop_, loops): (&mut u64, u64, Loops),
        stop: &AtomicBool,
    ) -> Result<std::result::Result<(), Gone>> {
        for look in (0..STOP_CHECK_INTERVAL).cycle() {
            if look == 0 && stop.load(Ordering::Relaxed) {
                return Ok(Err(Gone));
            }
            if *left == 0 {
                break;
            }
            let more = pipeline.step(|frame| {
                *left -= 1;
                let due = loops.due(loop_, frame.place);
                if let Some(queue) = self.queues.get_mut(frame.job) {
                    queue.batch.push(due, frame.interface, frame.octets);
                    self.filling += frame.octets.len() + Batch::OVERHEAD;
                }
            })?;
            if !more {
                break;
            }
            // All queues at once: none should wait for frames that are held here because another
            // has enough.
            if self.filling >= self.chunk && self.hand_over(pipeline.begins()).is_err() {
                return Ok(Err(Gone));
            }
        }
        Ok(Ok(()))
    }

    fn hand_over(&mut self, begins: u64) -> std::result::Result<(), Gone> {
        for queue in &mut self.queues {
            if queue.batch.is_empty() {
                continue;
            }
            queue.hand_over()?;
            // Only the first time is received.
            let _ = self.begun.send(begins);
        }
        self.filling = 0;
        Ok(())
    }
}
