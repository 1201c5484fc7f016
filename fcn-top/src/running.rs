//! Threads: inputs that feed the engine, the clock, and the output.

use crate::engine::{Engine, Input};
use fcn_tool::failure::{Failure, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Interval at which time advances while no packets arrive.
const TICK: Duration = Duration::from_millis(50);

/// Runs `inputs`, which feed the engine, while `front` shows the results. When `front` returns,
/// sets `over` and processes the packets still in transit. With `deadline`, live inputs are ended
/// after that time.
///
/// # Errors
///
/// First the result of `front`, second the reason why an input failed.
pub fn feed<T>(
    engine: &Engine,
    inputs: Vec<Box<dyn Input>>,
    (over, deadline): (&AtomicBool, Option<Duration>),
    front: impl FnOnce() -> T,
) -> (T, Result) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let threads: Vec<_> = inputs
            .into_iter()
            .map(|mut input| {
                let running = engine.begin();
                scope.spawn(move || {
                    let result = input.run(engine, over);
                    drop(running);
                    result
                })
            })
            .collect();
        let clock = scope.spawn(|| {
            let begun = Instant::now();
            while !done.load(Ordering::Acquire) {
                // Unparked at the end, which need not wait for the tick.
                thread::park_timeout(TICK);
                engine.tick();
                let late = deadline.is_some_and(|deadline| begun.elapsed() >= deadline);
                if late && engine.is_fresh() {
                    over.store(true, Ordering::Release);
                }
            }
        });
        // Set even if `front` panics; otherwise joining the threads would never end.
        let ends = Ends([over, &done]);
        let shown = front();
        over.store(true, Ordering::Release);
        let mut result = Ok(());
        for thread in threads {
            let ended = thread.join().unwrap_or_else(|_| {
                Err(Failure::failed("internal error: packet processing ended"))
            });
            result = result.and(ended);
        }
        drop(ends);
        clock.thread().unpark();
        (shown, result)
    })
}

/// Sets flags when dropped.
struct Ends<'a>([&'a AtomicBool; 2]);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        for flag in self.0 {
            flag.store(true, Ordering::Release);
        }
    }
}
