//! A capture that is larger than the memory it may have: read while it is sent, in batches that go round.

use crate::batch::{Batch, OVERHEAD};
use crate::pipeline::Pipeline;
use crate::source::Streamed;
use crate::timing::Loops;
use fcn_tool::failure::{Failure, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
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

/// The batches of one queue.
struct Batches {
    batches: SyncSender<Batch>,
    back: Receiver<Batch>,
    filling: Batch,
    /// How many batches there are.
    made: usize,
}

/// Reads the file and hands out what it has.
pub struct Feeder {
    queues: Vec<Batches>,
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
    let (mut sources, mut queues) = (Vec::new(), Vec::new());
    for _ in 0..jobs {
        let (batches, receiver) = sync_channel(BATCHES - 2);
        let (back, returned) = channel();
        sources.push(Streamed::new(receiver, back));
        queues.push(Batches {
            batches,
            back: returned,
            filling: Batch::default(),
            made: 1,
        });
    }
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

/// Nobody takes frames any more.
struct Over;

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
    ) -> Result<std::result::Result<(), Over>> {
        for look in (0..LOOK).cycle() {
            if look == 0 && stop.load(Ordering::Relaxed) {
                return Ok(Err(Over));
            }
            if *left == 0 {
                break;
            }
            let more = pipeline.step(|frame| {
                *left -= 1;
                let due = loops.due(loop_, frame.place);
                if let Some(queue) = self.queues.get_mut(frame.job) {
                    queue.filling.push(due, frame.interface, frame.octets);
                    self.filling += frame.octets.len() + OVERHEAD;
                }
            })?;
            if !more {
                break;
            }
            // All queues at once: none is to wait for frames that lie here because another has enough.
            if self.filling >= self.chunk && self.hand_over(pipeline.begins()).is_err() {
                return Ok(Err(Over));
            }
        }
        Ok(Ok(()))
    }

    fn hand_over(&mut self, begins: u64) -> std::result::Result<(), Over> {
        for queue in &mut self.queues {
            if queue.filling.is_empty() {
                continue;
            }
            let empty = match queue.back.try_recv() {
                Ok(empty) => empty,
                Err(_) if queue.made < BATCHES => {
                    queue.made += 1;
                    Batch::default()
                }
                Err(_) => queue.back.recv().map_err(|_| Over)?,
            };
            let full = std::mem::replace(&mut queue.filling, empty);
            queue.batches.send(full).map_err(|_| Over)?;
            // Nobody listens behind the first time.
            let _ = self.begun.send(begins);
        }
        self.filling = 0;
        Ok(())
    }
}

/// The failure of a thread that read a file.
#[must_use]
pub fn panicked() -> Failure {
    Failure::failed("reading the capture").and("its thread panicked")
}
