//! The threads: inputs that feed the engine, the clock, and the output.

use crate::engine::{Engine, Input};
use fcn_tool::failure::{Failure, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often time is moved on where no packets come.
const TICK: Duration = Duration::from_millis(50);

/// Has `inputs` feed the engine while `front` shows what comes of it; once that returns, `over` is set, and what is on its
/// way is taken in. With `deadline`, inputs end by themselves after that time, where what they bring is captured now.
///
/// # Errors
/// First what `front` came to, second why an input broke off.
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
                // Cut short at the end, which need not wait for it.
                thread::park_timeout(TICK);
                engine.tick();
                let late = deadline.is_some_and(|deadline| begun.elapsed() >= deadline);
                if late && engine.is_fresh() {
                    over.store(true, Ordering::Release);
                }
            }
        });
        // Also where it panics: the threads would be waited for without end.
        let ends = Ends([over, &done]);
        let shown = front();
        over.store(true, Ordering::Release);
        let mut result = Ok(());
        for thread in threads {
            let ended = thread
                .join()
                .unwrap_or_else(|_| Err(Failure::failed("taking packets in broke off: a bug")));
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
