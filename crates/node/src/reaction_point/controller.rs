//! Congestion control of one flow at its sender, as a trait.

use core::fmt::Debug;
use core::time::Duration;
use fcn_observe::time::Time;
use fcn_wire::ioam::Trace;

/// A notification about a flow, as far as its controller needs it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Notice<'a> {
    /// Trace of the data packet (Fast CNP option 2).
    pub trace: Option<&'a Trace<'a>>,
    /// True if a switch sent it: a Fast CNP from another address than the receiver's.
    pub by_switch: bool,
}

/// Outcome of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The rate or window was set.
    Slow,
    /// The flow is to take another path, its n-th change. Rate and window stay.
    Detour(u32),
    /// Nothing: the flow has just left the path that the notification may be about.
    Wait,
    /// Nothing: the algorithm does not use notifications.
    Ignore,
}

/// An acknowledgement of packets that were not acknowledged before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Time since the packet that it names was last sent.
    pub rtt: Duration,
    /// Payload that it acknowledges for the first time, in octets.
    pub octets: u64,
}

/// Congestion control of one flow. Between calls nothing runs: timers are applied late, by
/// [`on_timer`](Self::on_timer).
pub trait Controller: Debug + Send {
    /// Reacts to a notification.
    fn on_notification(&mut self, now: Time, notice: &Notice<'_>) -> Answer;

    /// Processes an acknowledgement.
    fn on_ack(&mut self, _now: Time, _ack: &Ack) {}

    /// Processes an acknowledgement that returns the data packet's trace; `in_flight` octets of
    /// payload have been sent and are not acknowledged.
    fn on_telemetry(&mut self, now: Time, ack: &Ack, _in_flight: u64, _trace: &Trace<'_>) {
        self.on_ack(now, ack);
    }

    /// Processes that `octets` octets were sent, headers included.
    fn on_sent(&mut self, _octets: u32) {}

    /// Applies what has come due by `now`; a time before the latest is taken as that one.
    fn on_timer(&mut self, _now: Time) {}

    /// Time of the next change without further input; `None` if there is none.
    fn next_timer(&self) -> Option<Time> {
        None
    }

    /// Rate in bit/s, as of the last call.
    fn rate(&self) -> f64;

    /// Maximum payload in flight, in octets; `None` if the algorithm does not limit it. Read when
    /// the flow opens and after each notification and acknowledgement.
    fn window(&self) -> Option<u64> {
        None
    }
}

/// A constant rate, in bit/s.
#[derive(Debug)]
pub(super) struct Fixed(pub(super) f64);

impl Controller for Fixed {
    fn on_notification(&mut self, _: Time, _: &Notice<'_>) -> Answer {
        Answer::Slow
    }

    fn rate(&self) -> f64 {
        self.0
    }
}
