//! A capture that is larger than the memory it may have: read while it is sent, in batches that go round.

use crate::pipeline::Pipeline;
use crate::timing::Loops;
use fcn_link::sender::{Batch, Filling, Gone, Streamed, stream};
use fcn_tool::failure::Result;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Batches of a queue: one is filled, one sent, the others wait between.
const BATCHES: usize = 8;
/// Octets of the batches of one queue, together; more gives no better look ahead.
const MOST: u64 = 64 << 20;
/// How often someone's wish to stop is looked for, in frames of the file.
const LOOK: u32 = 4_096;

/// How much is read.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Loops; `None`: without end.
    pub loops: Option<u64>,
    /// Frames, over all loops and queues.
    pub count: Option<u64>,
    /// Between loops; see [`crate::timing::Places::end`].
    pub loop_gap: Option<Duration>,
    /// Octets of memory.
    pub memory: u64,
}

/// Reads the file and hands out what it has.
pub struct Feeder {
    queues: Vec<Filling>,
    extent: Extent,
    /// Octets of a batch of all queues together.
    chunk: usize,
    /// Octets of what is being filled.
    filling: usize,
    begun: Sender<u64>,
}

/// The sources of all queues, who feeds them, and what tells the capture's first time when there is something to send (or
/// that there never will be).
#[must_use]
pub fn streams(jobs: usize, extent: Extent) -> (Vec<Streamed>, Feeder, Receiver<u64>) {
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
    /// Reads the file through `pipeline`, as often as asked for, until all is handed out or nobody takes it any more, or
    /// `stop` is true.
    ///
    /// # Errors
    /// The file cannot be read on.
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
            // A loop without frames would go on for ever.
            let last = self.extent.loops.is_some_and(|loops| loop_ >= loops);
            if last || left == 0 || left == before {
                break;
            }
            if loop_ == 1 {
                loops = pipeline.loops(self.extent.loop_gap);
            }
            pipeline.again().map_err(|failure| {
                failure.and("a capture that can be read only once cannot be looped")
            })?;
        }
        let _ = self.hand_over(pipeline.begins());
        Ok(())
    }

    /// Once through the file.
    fn pass(
        &mut self,
        pipeline: &mut Pipeline,
        (left, loop_, loops): (&mut u64, u64, Loops),
        stop: &AtomicBool,
    ) -> Result<std::result::Result<(), Gone>> {
        for look in (0..LOOK).cycle() {
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
            // All queues at once: none is to wait for frames that lie here because another has enough.
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
            // Nobody listens behind the first time.
            let _ = self.begun.send(begins);
        }
        self.filling = 0;
        Ok(())
    }
}
