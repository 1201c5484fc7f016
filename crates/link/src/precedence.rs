//! Precedence over other work of a processor, for a thread that sleeps most of the time. `clock.rs`
//! decides when to use it.
//!
//! The processor of a sleeping thread is idle, and the kernel gives work to idle processors. When
//! the thread wakes up, it has to wait for the end of a time slice, which takes milliseconds. Under
//! a real-time policy it need not, except for kernel code that cannot be interrupted.

use rustix::process::{getpriority_process, setpriority_process};
use thread_priority::{
    NormalThreadSchedulePolicy, RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue,
    ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id, thread_schedule_policy,
};

/// Time for which a thread keeps precedence without sleeping, in nanoseconds: the maximum delay of
/// other threads.
const KEPT: u64 = 5_000_000;
/// The value of thread-priority that corresponds to a nice value of 0.
const NICE_0: u8 = 48;
const USUAL: ThreadSchedulePolicy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Other);
const REAL_TIME: ThreadSchedulePolicy =
    ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);

/// Precedence of the current thread.
#[derive(Debug, Default)]
pub struct Precedence {
    state: State,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Without,
    With {
        /// Time of the last sleep.
        slept: u64,
        /// Nice value under the usual policy.
        nice: i32,
    },
    /// Precedence is not permitted, or another policy was chosen already.
    Never,
}

impl Precedence {
    /// Takes precedence: the thread is about to sleep for longer than it spins.
    #[inline]
    pub fn take(&mut self, now: u64) {
        match &mut self.state {
            State::With { slept, .. } => *slept = now,
            State::Without => self.state = raise(now),
            State::Never => {}
        }
    }

    /// Keeps precedence for a limited time: the thread continues without sleeping, or sleeps for a
    /// shorter time than it spins.
    #[inline]
    pub fn keep(&mut self, now: u64) {
        if let State::With { slept, .. } = self.state
            && now.saturating_sub(slept) > KEPT
        {
            self.give_back();
        }
    }

    /// Gives up precedence: the thread is going to be busy.
    pub fn give_back(&mut self) {
        if let State::With { nice, .. } = self.state {
            lower(nice);
            self.state = State::Without;
        }
    }
}

impl Drop for Precedence {
    fn drop(&mut self) {
        self.give_back();
    }
}

fn raise(now: u64) -> State {
    let thread = thread_native_id();
    match (thread_schedule_policy(), getpriority_process(None)) {
        (Ok(USUAL), Ok(nice))
            if set_thread_priority_and_policy(thread, ThreadPriority::Min, REAL_TIME).is_ok() =>
        {
            State::With { slept: now, nice }
        }
        _ => State::Never,
    }
}

fn lower(nice: i32) {
    let middle = ThreadPriorityValue::try_from(NICE_0)
        .map_or(ThreadPriority::Min, ThreadPriority::Crossplatform);
    // Lowering the policy is always permitted; the nice value is set along with it, if that is
    // permitted.
    let _ = set_thread_priority_and_policy(thread_native_id(), middle, USUAL);
    let _ = setpriority_process(None, nice);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `test` in a separate thread, so that it leaves no trace.
    fn alone(test: impl FnOnce() + Send) {
        std::thread::scope(|scope| scope.spawn(test).join().unwrap());
    }

    fn policy() -> ThreadSchedulePolicy {
        thread_schedule_policy().unwrap()
    }

    /// Returns false, and reports a skipped test, if precedence is not permitted.
    fn had(precedence: &Precedence) -> bool {
        let had = matches!(precedence.state, State::With { .. });
        if !had {
            fcn_skip::skipped!("precedence needs root, or CAP_SYS_NICE");
        }
        had
    }

    #[test]
    fn sleeping_takes_precedence_and_giving_back_restores_the_nice_value() {
        for nice in [0, 7, 19] {
            alone(move || {
                setpriority_process(None, nice).unwrap();
                let mut precedence = Precedence::default();
                precedence.take(100);
                if !had(&precedence) {
                    return;
                }
                for slept in [200, 1_000_000_000] {
                    precedence.take(slept);
                    precedence.keep(slept + KEPT);
                    assert_eq!(policy(), REAL_TIME);
                }
                precedence.keep(1_000_000_000 + KEPT + 1);
                assert_eq!(policy(), USUAL);
                assert_eq!(getpriority_process(None).unwrap(), nice);
                precedence.take(3_000_000_000);
                assert_eq!(policy(), REAL_TIME);
                drop(precedence);
                assert_eq!(policy(), USUAL);
                assert_eq!(getpriority_process(None).unwrap(), nice);
            });
        }
    }

    #[test]
    fn a_chosen_policy_is_kept() {
        alone(|| {
            let batch = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Batch);
            let nice = ThreadPriority::Min;
            set_thread_priority_and_policy(thread_native_id(), nice, batch).unwrap();
            let mut precedence = Precedence::default();
            precedence.take(100);
            assert_eq!(policy(), batch);
            precedence.keep(1_000_000_000);
            precedence.give_back();
            assert_eq!(policy(), batch);
        });
    }
}
