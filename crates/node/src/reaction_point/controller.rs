//! Congestion control of one flow at its sender, as a trait.
//!
//! An algorithm is one file that implements [`Controller`] and one arm of [`Control::controller`].

use super::detour::{Detour, Detouring};
use super::{dcqcn, telemetry};
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
}

/// An acknowledgement of packets that were not acknowledged before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Time from sending the packet that it names to its arrival.
    pub rtt: Duration,
    /// Payload that it acknowledges, in octets.
    pub octets: u64,
}

/// Congestion control of one flow. Between calls nothing runs: timers are applied late, by
/// [`on_timer`](Self::on_timer).
pub trait Controller: Debug + Send {
    /// Reacts to a notification.
    fn on_notification(&mut self, now: Time, notice: &Notice<'_>) -> Answer;

    /// Processes an acknowledgement.
    fn on_ack(&mut self, _now: Time, _ack: &Ack) {}

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

    /// Maximum payload in flight, in octets; `None` if the algorithm does not limit it.
    fn window(&self) -> Option<u64> {
        None
    }
}

/// Constructor of a controller for a flow with this line rate, in bit/s.
#[derive(Clone, Copy, Debug)]
pub struct Custom(pub fn(f64) -> Box<dyn Controller>);

impl PartialEq for Custom {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::fn_addr_eq(self.0, other.0)
    }
}

/// Congestion control of a host's flows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Control {
    /// DCQCN.
    Dcqcn(dcqcn::Params),
    /// From the telemetry in option 2, like HPCC.
    Telemetry(telemetry::Params),
    /// None: the rate stays the line rate.
    Fixed,
    /// An algorithm from outside this crate.
    Custom(Custom),
}

impl Control {
    /// Returns a controller for a flow that starts at `line_rate` bit/s, which tries other paths
    /// first if `detour` is given.
    pub(super) fn controller(self, line_rate: f64, detour: Option<Detour>) -> Box<dyn Controller> {
        let controller: Box<dyn Controller> = match self {
            Self::Dcqcn(params) => Box::new(dcqcn::Dcqcn::new(params, line_rate)),
            Self::Telemetry(params) => Box::new(telemetry::Telemetry::new(params, line_rate)),
            Self::Fixed => Box::new(Fixed(line_rate)),
            Self::Custom(Custom(new)) => new(line_rate),
        };
        match detour {
            Some(detour) => Box::new(Detouring::new(detour, controller)),
            None => controller,
        }
    }
}

/// A constant rate, in bit/s.
#[derive(Debug)]
struct Fixed(f64);

impl Controller for Fixed {
    fn on_notification(&mut self, _: Time, _: &Notice<'_>) -> Answer {
        Answer::Slow
    }

    fn rate(&self) -> f64 {
        self.0
    }
}
