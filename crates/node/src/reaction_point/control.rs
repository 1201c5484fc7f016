//! The choice of an algorithm: each is one file that implements [`Controller`], and one arm of
//! [`Control::controller`].

use super::controller::{Controller, Fixed};
use super::detour::{Detour, Detouring};
use super::{dcqcn, hpcc, swift, telemetry, timely};

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
    /// HPCC, from the telemetry in every acknowledgement.
    Hpcc(hpcc::Params),
    /// Swift, from the round-trip time.
    Swift(swift::Params),
    /// TIMELY, from the round-trip time.
    Timely(timely::Params),
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
            Self::Hpcc(params) => Box::new(hpcc::Hpcc::new(params, line_rate)),
            Self::Swift(params) => Box::new(swift::Swift::new(params, line_rate)),
            Self::Timely(params) => Box::new(timely::Timely::new(params, line_rate)),
            Self::Fixed => Box::new(Fixed(line_rate)),
            Self::Custom(Custom(new)) => new(line_rate),
        };
        match detour {
            Some(detour) => Box::new(Detouring::new(detour, controller)),
            None => controller,
        }
    }
}
