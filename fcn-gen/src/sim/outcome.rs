//! The result of a simulation: the ground truth for monitors, and the figures by which mechanisms are compared.
//!
//! Both are collected while packets pass and stay bounded: counts, and series of a fixed number of samples.

use crate::truth::Truth;
use crate::units::Ps;
use fcn_wire::Kind;
use std::collections::BTreeMap;

/// Samples of each series over a simulation.
pub const SAMPLES: usize = 200;

/// A finished simulation.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What the capture must show.
    pub truth: Truth,
    /// Figures to compare by.
    pub metrics: Metrics,
}

/// Figures by which mechanisms compare.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// When a queue of a congestion point first went above Kmin.
    pub onset: Option<Ps>,
    /// When a sender first slowed down after that.
    pub first_cut: Option<Ps>,
    /// Deepest egress queue of any switch, in octets.
    pub peak_queue: u64,
    /// How long the deepest queue was above its Kmax, in all.
    pub above_kmax: Ps,
    /// Data that waited at the port of a switch where most did, on average over the time after the warm-up, in octets.
    pub mean_queue: f64,
    /// When all flows were done; `None` where some never were. Where it is known, figures of the time after the warm-up are
    /// those of the whole time until then.
    pub completion: Option<Ps>,
    /// Payload delivered in order after the warm-up, all flows, in bit/s.
    pub goodput: f64,
    /// The time after the warm-up, halved; `None` where all flows were done.
    pub halves: Option<[Half; 2]>,
    /// What flows waited for retransmission timeouts in that time.
    pub timeouts: Timeouts,
    /// Share of the time after the warm-up in which the busiest egress port of a switch sent, 0 to 1.
    pub utilisation: f64,
    /// Goodput of each flow, by name, in the scenario's order.
    pub by_flow: Vec<(String, f64)>,
    /// Notifications about a flow of which another node had notified less than 50 µs before.
    pub repeated: u64,
    /// Jain's index over the flows' goodput: 1 is equal shares.
    pub fairness: f64,
    /// Notifications sent, by kind.
    pub notifications: BTreeMap<Kind, u64>,
    /// Data packets marked CE.
    pub marked: u64,
    /// Packets lost to full queues and faults.
    pub lost: u64,
    /// Data packets sent again.
    pub again: u64,
    /// PFC frames sent.
    pub pauses: u64,
    /// Packets that all nodes put on links.
    pub packets: u64,
    /// Deepest egress queue of any switch over time: the largest in each interval, octets.
    pub queue_over_time: Vec<(Ps, u64)>,
    /// Sum of all senders' rates over time, bit/s.
    pub rate_over_time: Vec<(Ps, f64)>,
}

/// What a half of the time counted came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Half {
    /// Payload delivered in order, all flows, in bit/s.
    pub goodput: f64,
    /// Data that waited at the port that [`Metrics::mean_queue`] is of, on average, in octets.
    pub queue: f64,
    /// Sum of all senders' rates, on average, in bit/s.
    pub rate: f64,
}

/// How long the flows that are not done waited for retransmission timeouts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timeouts {
    /// Share of their time, 0 to 1.
    pub share: f64,
    /// How many of the longest of these timeouts fit into the time counted, one after the other.
    pub rounds: f64,
}

impl Timeouts {
    /// The share of a figure that they leave to chance.
    ///
    /// Flows that lose packets together stand still together, and each timeout decides anew which of them go on, if any: all
    /// of them draw no more often than one flow. So `share` times `rounds` are the independent draws; the share is known to
    /// its value over their square root, or to its value where they are less than one.
    #[must_use]
    pub fn chance(&self) -> f64 {
        self.share.min((self.share / self.rounds).sqrt())
    }

    /// How many rounds it takes until chance is down to this.
    #[must_use]
    pub fn rounds_for(&self, chance: f64) -> f64 {
        self.share / chance.powi(2)
    }
}

impl Metrics {
    /// From the onset of congestion to the first cut.
    #[must_use]
    pub fn reaction_time(&self) -> Option<Ps> {
        Some(self.first_cut?.since(self.onset?))
    }

    /// By how much `what` still changed within the time counted: that of the later half against that of the earlier, as a
    /// share of the greater; below 0 where it fell.
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
    fn chance_wears_off_with_the_rounds_and_never_exceeds_what_was_waited() {
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
