//! Precedence over what else is to run on a processor, for a thread that sleeps most of the time. When it is due is in
//! `clock.rs`.
//!
//! The processor of a thread that sleeps is idle, and the kernel gives work to idle processors. Who wakes up there has to wait
//! until a time slice has ended, milliseconds; under a real-time policy it need not, but for what the kernel does not let
//! itself be interrupted in.

use rustix::process::{getpriority_process, setpriority_process};
use thread_priority::{
    NormalThreadSchedulePolicy, RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue,
    ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id, thread_schedule_policy,
};

/// Who does not sleep keeps it for so long, in nanoseconds: others wait no longer.
const KEPT: u64 = 5_000_000;
/// What thread-priority takes for a nice value of 0.
const NICE_0: u8 = 48;
const USUAL: ThreadSchedulePolicy = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Other);
const REAL_TIME: ThreadSchedulePolicy =
    ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);

/// Whether the present thread has precedence.
#[derive(Debug, Default)]
pub struct Precedence {
    state: State,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Without,
    With {
        /// When it last went to sleep.
        slept: u64,
        /// Its nice value under the usual policy.
        nice: i32,
    },
    /// It is not permitted, or somebody has chosen a policy.
    Never,
}

impl Precedence {
    /// The thread is about to sleep, for longer than it spins.
    #[inline]
    pub fn take(&mut self, now: u64) {
        match &mut self.state {
            State::With { slept, .. } => *slept = now,
            State::Without => self.state = raise(now),
            State::Never => {}
        }
    }

    /// The thread goes on without sleeping, or sleeps for less.
    #[inline]
    pub fn keep(&mut self, now: u64) {
        if let State::With { slept, .. } = self.state
            && now.saturating_sub(slept) > KEPT
        {
            self.give_back();
        }
    }

    /// The thread is going to be busy.
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
    // The policy may always be lowered; the nice value is set along with it, if that is permitted.
    let _ = set_thread_priority_and_policy(thread_native_id(), middle, USUAL);
    let _ = setpriority_process(None, nice);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a thread of its own, of which nothing is left.
    fn alone(test: impl FnOnce() + Send) {
        std::thread::scope(|scope| scope.spawn(test).join().unwrap());
    }

    fn policy() -> ThreadSchedulePolicy {
        thread_schedule_policy().unwrap()
    }

    /// False, and said so, where it is not permitted.
    fn had(precedence: &Precedence) -> bool {
        let had = matches!(precedence.state, State::With { .. });
        if !had {
            fcn_skip::skipped!("precedence needs root, or CAP_SYS_NICE");
        }
        had
    }

    #[test]
    fn it_is_had_while_sleeping_and_given_back_with_the_nice_value_as_it_was() {
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
    fn a_policy_that_somebody_chose_stays() {
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
