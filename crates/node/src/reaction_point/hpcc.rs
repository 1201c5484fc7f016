//! HPCC as published: a window from the telemetry of every acknowledgement (Li et al., "HPCC: High
//! Precision Congestion Control", SIGCOMM 2019, algorithm 1). `telemetry.rs` is what remains of it
//! if only congestion is reported, by Fast CNPs with option 2.
//!
//! Each switch on the path writes its link's capacity B, the octets sent so far, the queue's depth
//! and the time into the data packet; the receiver returns them with the acknowledgement.
//! - MeasureInflight: a link's utilisation is u = min(qlen now, qlen before)/(B·T) + txRate/B. The
//!   greatest counts, averaged over T: U = (1 − τ/T)·U + (τ/T)·u, τ being the time between the two
//!   packets at that link.
//! - ComputeWind: W = W_C/(U/η) + W_AI if U ≥ η or incStage ≥ maxStage, else W = W_C + W_AI.
//! - Once per round trip, when the first packet sent after the last such time is acknowledged,
//!   W_C = W.
//! - The rate is W/T.

use super::controller::{Ack, Answer, Controller, Notice};
use core::time::Duration;
use fcn_observe::time::Time;
use fcn_wire::ioam::{Node, Trace, TraceType};

/// Maximum number of hops that a trace can have: as many as fit an IPv6 option.
const HOPS: usize = 12;
/// Number of bits for the octets sent.
const OCTETS: u32 = 48;

/// The parameters, under their published names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// η: target utilisation. Default 0.95.
    pub eta: f64,
    /// T: base round-trip time. Default 13 µs.
    pub t: Duration,
    /// W_AI: additive increase in octets. Default 80.
    pub w_ai: f64,
    /// maxStage: number of additive increases before the window follows the utilisation at once.
    /// Default 0: the authors' correction of the paper's 5, and what their simulations use.
    pub max_stage: u32,
    /// Minimum rate, bit/s. Default 40 Mbit/s \[choice\].
    pub r_min: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            eta: 0.95,
            t: Duration::from_micros(13),
            w_ai: 80.0,
            max_stage: 0,
            r_min: 40e6,
        }
    }
}

/// Data that a switch writes for HPCC, in IOAM fields \[choice: HPCC has a header of its own\]:
/// timestamp seconds and fraction (nanoseconds), queue depth, and as wide namespace data the link's
/// capacity and the octets sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HopCount {
    /// Capacity of the egress link in units of 100 Mbit/s.
    pub capacity_100mbps: u16,
    /// Octets sent on that link so far, modulo 2⁴⁸; with preamble, FCS and gap.
    pub octets: u64,
}

impl HopCount {
    /// IOAM trace type of the fields.
    pub const TYPE: TraceType = TraceType::from_bits(0).with(2).with(3).with(6).with(10);

    /// Encodes capacity and octets as wide namespace data.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        (self.capacity_100mbps as u64) << OCTETS | self.octets & ((1 << OCTETS) - 1)
    }

    /// Decodes capacity and octets.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self {
            capacity_100mbps: (bits >> OCTETS) as u16,
            octets: bits & ((1 << OCTETS) - 1),
        }
    }
}

/// A link at the time of one packet.
#[derive(Clone, Copy, Debug, Default)]
struct Hop {
    /// Time in nanoseconds.
    at: u64,
    count: HopCount,
    queue: u32,
}

impl Hop {
    fn new(node: &Node<'_>) -> Option<Self> {
        let nanos = u64::from(node.word(2)?) * 1_000_000_000 + u64::from(node.word(3)?);
        Some(Self {
            at: nanos,
            count: HopCount::from_bits(node.wide(10)?),
            queue: node.queue_depth()?,
        })
    }

    /// Returns the link's utilisation since `before`, and the time between both, in seconds.
    /// `None` if the clock went back, or the capacity is 0.
    fn utilisation(&self, before: &Self, t: f64) -> Option<(f64, f64)> {
        let nanos = self.at.checked_sub(before.at).filter(|nanos| *nanos > 0)?;
        let capacity = f64::from(self.count.capacity_100mbps) * 100e6;
        if capacity == 0.0 {
            return None;
        }
        let span = nanos as f64 / 1e9;
        let sent = self.count.octets.wrapping_sub(before.count.octets) & ((1 << OCTETS) - 1);
        let waiting = f64::from(self.queue.min(before.queue)) * 8.0 / (capacity * t);
        Some((waiting + sent as f64 * 8.0 / span / capacity, span))
    }
}

/// Congestion control of one flow.
#[derive(Clone, Debug)]
pub struct Hpcc {
    params: Params,
    line_rate: f64,
    /// W and W_C, in octets.
    window: f64,
    reference: f64,
    /// U.
    utilisation: f64,
    /// incStage.
    stage: u32,
    /// L: the links as of the last acknowledgement.
    links: [Hop; HOPS],
    count: usize,
    /// Octets acknowledged, and lastUpdateSeq.
    acked: u64,
    updated: u64,
}

impl Hpcc {
    /// Creates a flow whose window fills `line_rate` bit/s for T.
    #[must_use]
    pub fn new(params: Params, line_rate: f64) -> Self {
        let window = line_rate / 8.0 * seconds(&params);
        Self {
            params,
            line_rate,
            window,
            reference: window,
            utilisation: 1.0,
            stage: 0,
            links: [Hop::default(); HOPS],
            count: 0,
            acked: 0,
            updated: 0,
        }
    }

    /// Returns U after an acknowledgement with these links; `None` if they cannot be compared with
    /// those before.
    fn measure(&mut self, links: &[Hop]) -> Option<f64> {
        let t = seconds(&self.params);
        let before = self.links.get(..self.count)?;
        if before.len() != links.len() {
            return None;
        }
        let pairs = links.iter().zip(before);
        let measured = pairs.filter_map(|(now, before)| now.utilisation(before, t));
        let (most, span) = measured.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
        let share = span.min(t) / t;
        Some((1.0 - share) * self.utilisation + share * most)
    }

    fn set_window(&mut self, updates: bool) {
        let Params { eta, w_ai, .. } = self.params;
        let eta = eta.max(f64::MIN_POSITIVE);
        let multiplies = self.utilisation >= eta || self.stage >= self.params.max_stage;
        let wanted = match multiplies {
            true => self.reference / (self.utilisation / eta).max(1e-9) + w_ai,
            false => self.reference + w_ai,
        };
        let t = seconds(&self.params);
        let most = self.line_rate / 8.0 * t;
        let least = self.params.r_min.min(self.line_rate) / 8.0 * t;
        self.window = wanted.max(least).min(most);
        if updates {
            self.reference = self.window;
            self.stage = if multiplies {
                0
            } else {
                self.stage.saturating_add(1)
            };
        }
    }
}

/// Returns T in seconds.
fn seconds(params: &Params) -> f64 {
    params.t.max(Duration::from_nanos(1)).as_secs_f64()
}

impl Controller for Hpcc {
    fn on_notification(&mut self, _: Time, _: &Notice<'_>) -> Answer {
        Answer::Ignore
    }

    fn on_telemetry(&mut self, _: Time, ack: &Ack, in_flight: u64, trace: &Trace<'_>) {
        self.acked += ack.octets;
        let (mut links, mut count) = ([Hop::default(); HOPS], 0);
        for (node, place) in trace.nodes().zip(&mut links) {
            let Some(hop) = node.ok().and_then(|node| Hop::new(&node)) else {
                return;
            };
            *place = hop;
            count += 1;
        }
        let measured = self.measure(&links[..count]);
        (self.links, self.count) = (links, count);
        if let Some(utilisation) = measured {
            self.utilisation = utilisation;
            let updates = self.acked > self.updated;
            self.set_window(updates);
            if updates {
                self.updated = self.acked + in_flight;
            }
        }
    }

    fn rate(&self) -> f64 {
        (self.window * 8.0 / seconds(&self.params)).min(self.line_rate)
    }

    fn window(&self) -> Option<u64> {
        Some(self.window as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fcn_wire::ioam::{NodeValues, OptType, TraceRepr};
    use proptest::prelude::*;

    const LINE: f64 = 100e9;

    /// Builds a trace of hops: time in nanoseconds, octets sent, queue depth.
    fn trace(hops: &[(u64, u64, u32)]) -> Vec<u8> {
        let trace_type = HopCount::TYPE;
        let len = trace_type.node_len() * 4;
        let mut list = vec![0; hops.len() * len];
        for (place, (at, octets, queue_depth)) in list.chunks_mut(len).zip(hops) {
            let count = HopCount {
                capacity_100mbps: 1_000,
                octets: *octets,
            };
            let values = NodeValues {
                seconds: (at / 1_000_000_000) as u32,
                fraction: (at % 1_000_000_000) as u32,
                namespace_data: count.to_bits(),
                queue_depth: *queue_depth,
                ..NodeValues::default()
            };
            values.emit(trace_type, place).unwrap();
        }
        let header = TraceRepr {
            namespace_id: 1,
            node_len: trace_type.node_len() as u8,
            trace_type,
            ..TraceRepr::default()
        };
        [&header.to_bytes()[..], &list].concat()
    }

    fn acknowledge(flow: &mut Hpcc, in_flight: u64, hops: &[(u64, u64, u32)]) {
        let bytes = trace(hops);
        let trace = Trace::new_checked(OptType::Preallocated, &bytes).unwrap();
        let ack = Ack {
            rtt: Duration::from_micros(13),
            octets: 4_096,
        };
        flow.on_telemetry(Time::from_nanos(0), &ack, in_flight, &trace);
    }

    /// The windows were computed by this Python program, written from the paper's algorithm 1 for
    /// one link of 100 Gbit/s:
    ///
    /// ```python
    /// T, B, eta, ai, stage_max = 13e-6, 100e9, .95, 80, 0
    /// W = Wc = B/8*T; U = 1.0; L = None; acked = last = stage = 0
    /// for ts, tx, q, fl in [(1000,0,90000,100000), (1400,5000,90000,95904), (1800,10000,95000,91808),
    ///                       (9000,100000,60000,8000), (9400,104000,0,4000), (22000,180000,0,0)]:
    ///     acked += 4096
    ///     if L:
    ///         dt = (ts-L[0])*1e-9; u = min(q, L[2])*8/(B*T) + (tx-L[1])*8/dt/B; tau = min(dt, T)
    ///         U = (1-tau/T)*U + tau/T*u; new = acked > last
    ///         if U >= eta or stage >= stage_max: W = Wc/(U/eta) + ai; s = 0
    ///         else: W = Wc + ai; s = stage + 1
    ///         W = min(W, B/8*T)
    ///         if new: Wc, stage, last = W, s, acked + fl
    ///     L = (ts, tx, q); print(round(W, 3))
    /// ```
    #[test]
    fn windows_follow_the_published_algorithm() {
        let acks = [
            (1_000, 0, 90_000, 100_000),
            (1_400, 5_000, 90_000, 95_904),
            (1_800, 10_000, 95_000, 91_808),
            (9_000, 100_000, 60_000, 8_000),
            (9_400, 104_000, 0, 4_000),
            (22_000, 180_000, 0, 0),
        ];
        let mut flow = Hpcc::new(Params::default(), LINE);
        let windows = acks.map(|(at, octets, queue, in_flight)| {
            acknowledge(&mut flow, in_flight, &[(at, octets, queue)]);
            (flow.window * 1e3).round() / 1e3
        });
        let expected = [
            162500.0, 151868.312, 139670.451, 118389.577, 119655.149, 162500.0,
        ];
        assert_eq!(windows, expected);
    }

    #[test]
    fn the_most_loaded_link_counts_and_octets_may_wrap() {
        let both = |before: [(u64, u64, u32); 2], after: [(u64, u64, u32); 2]| {
            let mut flow = Hpcc::new(Params::default(), LINE);
            acknowledge(&mut flow, 0, &before);
            acknowledge(&mut flow, 0, &after);
            flow.window
        };
        let idle = [(0, 0, 0), (13_000, 81_250, 0)];
        let most = (1 << 48) - 100;
        let busy = [(0, most, 162_500), (13_000, 162_400, 162_500)];
        let window = both([idle[0], busy[0]], [idle[1], busy[1]]);
        // 162 500 octets are what the link sends in T: u = 1 + 1.
        assert!(
            (window - (162_500.0 / (2.0 / 0.95) + 80.0)).abs() < 1e-6,
            "{window}"
        );
        assert_eq!(window, both([busy[0], idle[0]], [busy[1], idle[1]]));
    }

    proptest! {
        #[test]
        fn any_trace_is_survived(bytes in proptest::collection::vec(any::<u8>(), 8..238)) {
            let mut flow = Hpcc::new(Params::default(), LINE);
            acknowledge(&mut flow, 0, &[(1, 1, 1)]);
            for opt_type in [OptType::Preallocated, OptType::Incremental] {
                let trace = Trace::new_checked(opt_type, &bytes).unwrap();
                let ack = Ack { rtt: Duration::ZERO, octets: 1 };
                flow.on_telemetry(Time::from_nanos(0), &ack, 0, &trace);
                prop_assert!((39.9e6..=LINE).contains(&flow.rate()), "{}", flow.rate());
            }
        }
    }
}
