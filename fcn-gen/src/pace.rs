//! Paces a simulation's packets into a pipe: in real time, slower, or faster.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Maximum time that due packets stay in the writer's buffer.
const FLUSH_AFTER: Duration = Duration::from_millis(20);
/// Interval at which a waiting pacer checks if it was stopped.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Action required before a packet is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Write it immediately.
    Now,
    /// Flush the packets before it.
    Flush,
    /// Flush the packets before it, then wait until this time.
    FlushAndWait(Instant),
}

/// Holds packets back until they are due.
#[derive(Debug)]
pub struct Pacer<'a> {
    pipe: &'a File,
    stop: &'a AtomicBool,
    /// Speed relative to real time.
    speed: f64,
    /// Time at which the first packet was due.
    began: Option<Instant>,
    flushed: Instant,
}

impl<'a> Pacer<'a> {
    /// Creates a pacer for packets written to `pipe`, `speed` times as fast as real time, until
    /// `stop`.
    #[must_use]
    pub fn new(pipe: &'a File, speed: f64, stop: &'a AtomicBool) -> Self {
        Self {
            pipe,
            stop,
            speed,
            began: None,
            flushed: Instant::now(),
        }
    }

    /// Returns the action required before the packet at `since` nanoseconds after the beginning.
    pub fn before(&mut self, since: u64) -> Turn {
        let now = Instant::now();
        let began = *self.began.get_or_insert(now);
        // A time beyond the maximum duration is never reached.
        let after = Duration::try_from_secs_f64(since as f64 / 1e9 / self.speed);
        let due = began.checked_add(after.unwrap_or(Duration::MAX));
        match due {
            Some(due) if due <= now && now - self.flushed < FLUSH_AFTER => Turn::Now,
            Some(due) if due <= now => {
                self.flushed = now;
                Turn::Flush
            }
            due => {
                let far = || now + Duration::from_secs(365 * 86_400);
                Turn::FlushAndWait(due.unwrap_or_else(far))
            }
        }
    }

    /// Waits until `until`; returns false if it was stopped or the pipe's reader is gone.
    pub fn wait(&mut self, until: Instant) -> bool {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.flushed = until;
                return true;
            }
            if self.stop.load(Ordering::Relaxed) || unread(self.pipe, left.min(POLL_INTERVAL)) {
                return false;
            }
        }
    }
}

/// Returns true if the pipe has no reader any more; waits for that for at most `wait`.
#[must_use]
pub fn unread(pipe: &File, wait: Duration) -> bool {
    let mut polled = [PollFd::new(pipe, PollFlags::empty())];
    let wait = Timespec {
        tv_sec: wait.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: wait.subsec_nanos().into(),
    };
    // A signal ends the wait early, which is harmless.
    poll(&mut polled, Some(&wait)).is_ok_and(|heard| heard > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::OwnedFd;

    fn new_pipe() -> (std::io::PipeReader, File) {
        let (reader, writer) = std::io::pipe().unwrap();
        (reader, File::from(OwnedFd::from(writer)))
    }

    #[test]
    fn due_packets_are_written_and_others_wait() {
        let (mut reader, pipe) = new_pipe();
        let stop = AtomicBool::new(false);
        let mut pacer = Pacer::new(&pipe, 0.5, &stop);
        assert!(matches!(pacer.before(0), Turn::Now | Turn::Flush));
        let began = pacer.began.unwrap();
        // 10 ms of the simulation take 20 ms.
        let Turn::FlushAndWait(until) = pacer.before(10_000_000) else {
            panic!("due at once");
        };
        assert_eq!(until - began, Duration::from_millis(20));
        assert!(pacer.wait(until) && Instant::now() >= until);
        assert!(!matches!(pacer.before(10_000_000), Turn::FlushAndWait(_)));
        drop(pipe);
        assert_eq!(reader.read(&mut [0; 1]).unwrap(), 0);
    }

    #[test]
    fn packets_are_flushed_in_time() {
        let (_reader, pipe) = new_pipe();
        let stop = AtomicBool::new(false);
        let mut pacer = Pacer::new(&pipe, 1.0, &stop);
        pacer.before(0);
        std::thread::sleep(FLUSH_AFTER);
        assert_eq!(pacer.before(1), Turn::Flush);
    }

    #[test]
    fn waiting_ends_when_stopped_or_unread() {
        let (reader, pipe) = new_pipe();
        let stop = AtomicBool::new(false);
        let mut pacer = Pacer::new(&pipe, 1e-6, &stop);
        pacer.before(0);
        let Turn::FlushAndWait(until) = pacer.before(u64::MAX) else {
            panic!("due at once");
        };
        assert!(!unread(&pipe, Duration::ZERO));
        drop(reader);
        assert!(!pacer.wait(until));
        let (_reader, pipe) = new_pipe();
        stop.store(true, Ordering::Relaxed);
        assert!(!Pacer::new(&pipe, 1.0, &stop).wait(until));
    }
}
