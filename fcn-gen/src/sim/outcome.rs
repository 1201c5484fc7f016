//! The result of a simulation: the ground truth for monitors, and the figures for comparing
//! mechanisms.
//!
//! Both are collected while packets pass, in bounded memory: counts, and series of a fixed number
//! of samples.

use crate::truth::Truth;
use crate::units::Ps;
use fcn_wire::Kind;
use std::collections::BTreeMap;

/// Number of samples in each series.
pub const SAMPLES: usize = 200;

/// A finished simulation.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Ground truth of the capture.
    pub truth: Truth,
    /// Figures for comparisons.
    pub metrics: Metrics,
}

/// Figures for comparing mechanisms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// Time at which a queue of a congestion point first exceeded Kmin.
    pub onset: Option<Ps>,
    /// Time of the first rate reduction after that.
    pub first_cut: Option<Ps>,
    /// Maximum depth of any switch's egress queues, in octets.
    pub peak_queue: u64,
    /// Total time in which the deepest queue was above its Kmax.
    pub above_kmax: Ps,
    /// Average of the data queued at a switch's port after the warm-up, in octets; at the port with
    /// the highest average.
    pub mean_queue: f64,
    /// Time at which all flows were complete; `None` if some never were. If present, figures for
    /// the time after the warm-up cover the whole time until completion.
    pub completion: Option<Ps>,
    /// Payload delivered in order after the warm-up, sum of all flows, in bit/s.
    pub goodput: f64,
    /// The two halves of the time after the warm-up; `None` if all flows were complete.
    pub halves: Option<[Half; 2]>,
    /// Retransmission timeouts of the flows in that time.
    pub timeouts: Timeouts,
    /// Share of the time after the warm-up in which the busiest egress port of a switch was
    /// sending, 0 to 1.
    pub utilisation: f64,
    /// Goodput of each flow, by name, in the scenario's order: after the warm-up, or from its start
    /// to its completion for a flow that is complete.
    pub by_flow: Vec<(String, f64)>,
    /// Time from the start of each flow to its completion, in the scenario's order; `None` if it
    /// was not complete.
    pub completion_by_flow: Vec<Option<Ps>>,
    /// Names of the flows that get all that they ask for: as much as their rate limit and the links
    /// of their hosts allow. Congestion control does not determine their share.
    pub satisfied: Vec<String>,
    /// The deepest queue above its own limit, in octets, and that limit: data that PFC protects are
    /// limited by ingress port only.
    pub beyond_queue: Option<(u64, u64)>,
    /// Notifications about a flow that another node had notified less than 50 µs before.
    pub repeated: u64,
    /// Jain's fairness index over the flows' goodput: 1 means equal shares.
    pub fairness: f64,
    /// Notifications sent, by kind.
    pub notifications: BTreeMap<Kind, u64>,
    /// Data packets marked CE.
    pub marked: u64,
    /// Packets lost because of full queues and faults.
    pub lost: u64,
    /// Data packets retransmitted.
    pub again: u64,
    /// PFC frames sent.
    pub pauses: u64,
    /// Packets put on links by all nodes.
    pub packets: u64,
    /// Depth of the deepest egress queue of any switch over time: the maximum in each interval, in
    /// octets.
    pub queue_over_time: Vec<(Ps, u64)>,
    /// Sum of all senders' rates over time, in bit/s.
    pub rate_over_time: Vec<(Ps, f64)>,
}

/// Figures of one half of the measured time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Half {
    /// Payload delivered in order, sum of all flows, in bit/s.
    pub goodput: f64,
    /// Average of the data queued at the port of [`Metrics::mean_queue`], in octets.
    pub queue: f64,
    /// Average sum of all senders' rates, in bit/s.
    pub rate: f64,
}

/// Retransmission timeouts of the incomplete flows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timeouts {
    /// Share of their time spent waiting, 0 to 1.
    pub share: f64,
    /// Number of the longest of these timeouts that fit the measured time consecutively.
    pub rounds: f64,
}

impl Timeouts {
    /// Returns the uncertainty that they add to a figure, as a share of it.
    ///
    /// Flows that lose packets together stall together, and each timeout decides anew which of them
    /// continue, if any: as a group they have no more random draws than a single flow. `share`
    /// times `rounds` is therefore the number of independent draws; the relative error of the share
    /// is one over its square root, or at most 1 if there is less than one draw.
    #[must_use]
    pub fn chance(&self) -> f64 {
        self.share.min((self.share / self.rounds).sqrt())
    }

    /// Returns the number of rounds after which the uncertainty is down to `chance`.
    #[must_use]
    pub fn rounds_for(&self, chance: f64) -> f64 {
        self.share / chance.powi(2)
    }
}

impl Metrics {
    /// Returns the time from the onset of congestion to the first rate reduction.
    #[must_use]
    pub fn reaction_time(&self) -> Option<Ps> {
        Some(self.first_cut?.since(self.onset?))
    }

    /// Returns the change of `what` within the measured time: the later half compared to the
    /// earlier, as a share of the greater; negative if it fell.
    #[must_use]
    pub fn drift(&self, what: fn(&Half) -> f64) -> f64 {
        let Some(halves) = &self.halves else {
            return 0.0;
        };
        let [before, after] = halves.each_ref().map(what);
        match before.max(after) {
            0.0 => 0.0,
            greater => (after - before) / greater,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_decreases_with_rounds_and_is_at_most_the_share() {
        let chance = |share, rounds| Timeouts { share, rounds }.chance();
        assert_eq!(Timeouts::default().chance(), 0.0);
        assert_eq!(chance(0.04, 0.5), 0.04);
        assert_eq!(chance(1.0, 0.5), 1.0);
        assert_eq!(chance(0.5, 50.0), 0.1);
        let timeouts = Timeouts {
            share: 0.5,
            rounds: 3.0,
        };
        assert!((chance(0.5, timeouts.rounds_for(0.05)) - 0.05).abs() < 1e-9);
    }
}
