//! What a simulation tells when it is over: the ground truth for monitors, and the figures by which mechanisms compare.
//!
//! Both are collected while packets pass and stay bounded: counts, and series of a fixed number of samples.

use crate::units::Ps;
use fcn_wire::Kind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Name of the ground truth's schema.
pub const TRUTH_SCHEMA: &str = "fcn-gen/truth";
/// Version of the ground truth's schema: raised when a field changes its meaning or goes away.
pub const TRUTH_VERSION: u32 = 1;
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

/// What was sent, marked, told and obeyed, known without decoding a packet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Truth {
    /// [`TRUTH_SCHEMA`].
    pub schema: String,
    /// [`TRUTH_VERSION`].
    pub version: u32,
    /// The scenario's name.
    pub scenario: String,
    /// Mechanism, by its [`id`](crate::scenario::model::Mechanism::id).
    pub mechanism: String,
    /// Seed.
    pub seed: u64,
    /// Length of the simulation in nanoseconds.
    pub duration_ns: u64,
    /// Nanoseconds since 1970 at which it begins: time stamps in the capture are this much later.
    pub epoch_ns: u64,
    /// The capture's interfaces, in the file's order.
    pub vantage_points: Vec<VantageTruth>,
    /// The flows.
    pub flows: Vec<FlowTruth>,
    /// Notifications that passed a vantage point, one entry for each combination of what is told.
    pub notifications: Vec<NotificationTruth>,
    /// What each switch did.
    pub switches: Vec<SwitchTruth>,
    /// Packets that break a rule on purpose: frame number in the capture (from 1) and the rules' identifiers.
    #[serde(default)]
    pub findings: BTreeMap<u64, Vec<String>>,
}

/// A vantage point.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VantageTruth {
    /// Name of the pcapng interface: `node:peer`.
    pub name: String,
    /// Packets captured.
    pub packets: u64,
    /// Their octets on the wire.
    pub octets: u64,
}

/// A flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowTruth {
    /// Its name in the scenario.
    pub name: String,
    /// Sender's address.
    pub sender: IpAddr,
    /// Receiver's address.
    pub receiver: IpAddr,
    /// QP at the sender: what a CNP names.
    pub sender_qp: u32,
    /// QP at the receiver: what data packets and Fast CNPs name.
    pub receiver_qp: u32,
    /// UDP source port of the data packets.
    pub source_port: u16,
    /// Data packets that the sender put on its link, those sent again included.
    pub packets_sent: u64,
    /// Those sent again.
    pub packets_again: u64,
    /// Octets of payload that the receiver took in order.
    pub octets_delivered: u64,
    /// Data packets that reached the receiver marked CE.
    pub ce_received: u64,
    /// Messages acknowledged.
    pub messages_done: u64,
    /// Notifications that reached the sender and slowed this flow, by kind.
    pub slowed_by: BTreeMap<String, u64>,
    /// When the sender first slowed down, in nanoseconds from the start.
    pub first_slowed_ns: Option<u64>,
    /// Fast CNPs that made it take another path instead.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub detours: u64,
    /// Data packets at each vantage point, where there were any.
    pub seen: Vec<SeenTruth>,
    /// The sender's rate in bit/s at evenly spaced times: `[nanoseconds, rate]`.
    pub rate: Vec<(u64, u64)>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A flow's data packets at one vantage point.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenTruth {
    /// Index in `vantage_points`.
    pub vantage_point: usize,
    /// Packets.
    pub packets: u64,
    /// Their octets on the wire.
    pub octets: u64,
    /// Those marked CE (in the innermost IP header).
    pub ce: u64,
    /// Packets by whole second since 1970.
    pub packets_by_second: BTreeMap<u64, u64>,
}

/// Notifications of one kind, from one notifier, about one QP or flow, at one vantage point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotificationTruth {
    /// Index in `vantage_points`.
    pub vantage_point: usize,
    /// `cnp`, `fast_cnp_1`, `fast_cnp_2`, `proxy_cn` or `wan_fcn`.
    pub kind: String,
    /// Source of the packet.
    pub notifier: IpAddr,
    /// Destination of the packet.
    pub told: IpAddr,
    /// The data sender that is to slow down, where the message names it.
    pub sender: Option<IpAddr>,
    /// The QP that the message names.
    pub qp: Option<u32>,
    /// Whose QP that is: `sender` or `receiver`.
    pub qp_side: Option<String>,
    /// The outer flow label that an FCN names.
    pub flow_label: Option<u32>,
    /// The flow that it is about, by name, where there is one (a spoofed notification may be about none).
    pub flow: Option<String>,
    /// Congestion level, where the format has one: how many of each.
    pub levels: BTreeMap<u8, u64>,
    /// How many.
    pub total: u64,
    /// How many in each whole second since 1970.
    pub by_second: BTreeMap<u64, u64>,
}

/// What a switch did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchTruth {
    /// Its name.
    pub name: String,
    /// Packets that it forwarded.
    pub forwarded: u64,
    /// Packets that found their queue full.
    pub dropped: u64,
    /// Packets that it marked CE.
    pub marked: u64,
    /// Notifications that it sent, by kind.
    pub notified: BTreeMap<String, u64>,
    /// Notifications that it was due to send and held back: the rate limits.
    pub held_back: u64,
    /// Fast CNPs that it stopped at the domain's border.
    pub stopped_at_border: u64,
    /// PFC frames that it sent.
    pub pauses: u64,
    /// Deepest egress queue, in octets.
    pub peak_queue: u64,
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
    /// Share of the time after the warm-up in which the busiest egress port of a switch sent, 0 to 1.
    pub utilisation: f64,
    /// Goodput of each flow, by name, in the scenario's order.
    pub by_flow: Vec<(String, f64)>,
    /// Notifications about a flow of which another node had told less than 50 µs before.
    pub told_twice: u64,
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
        let Some([before, after]) = self
            .halves
            .as_ref()
            .map(|halves| halves.each_ref().map(what))
        else {
            return 0.0;
        };
        match before.max(after) {
            0.0 => 0.0,
            greater => (after - before) / greater,
        }
    }
}
