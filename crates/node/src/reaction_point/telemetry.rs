//! Rate control from the IOAM trace of a Fast CNP, after HPCC (Li et al., "HPCC: High Precision
//! Congestion Control", SIGCOMM 2019, algorithm 1; draft-miao-ccwg-hpcc).
//!
//! HPCC processes every acknowledgement and controls a window. Here only congestion is reported, so
//! the same formulas control a rate:
//! - The utilisation of a hop is U = qlen/(B·T) + txRate/B; the maximum over all hops counts
//!   (MeasureInflight).
//! - A notification with U ≥ η sets R = R_C/(U/η) + R_AI, one with less R = R_C + R_AI. R_C is the
//!   reference rate. It is set to R at most once per T, so that several notifications about one
//!   round trip do not add up (ComputeWind).
//! - For each T without a notification the rate rises by R_AI, maxStage times; then by R_AI,
//!   2·R_AI, 3·R_AI, … \[choice, after DCQCN's hyper increase: HPCC then raises the rate by the U
//!   that it measures, which is not reported here, and a step towards the line rate itself outruns
//!   the congestion points' interval between notifications\].
//! - A notification without telemetry (option 1, a plain CNP, a trace without [`HopLoad`]s)
//!   multiplies R_C by a fixed factor, likewise at most once per T \[choice\].

use super::controller::{Answer, Controller, Notice};
use core::time::Duration;
use fcn_observe::time::{Time, nanos};
use fcn_wire::ioam::{NOT_AVAILABLE, Node, Trace, Value};

/// Distance from the line rate, in bit/s, below which the line rate counts as reached.
const NEAR: f64 = 1.0;
/// Maximum number of increases that one [`Controller::on_timer`] applies; the others remain pending.
const MAX_STEPS: u32 = 4096;

/// The parameters, under their published names. The defaults are HPCC's, except those marked as a
/// choice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// η: target utilisation. Default 0.95.
    pub eta: f64,
    /// T: base round-trip time. Default 13 µs.
    pub t: Duration,
    /// W_AI: additive increase in octets per T; R_AI = W_AI/T. Default 80.
    pub w_ai: f64,
    /// maxStage: number of additive increases before the rate rises faster. Default 5.
    pub max_stage: u32,
    /// Factor for the rate if a notification has no telemetry. Default 0.5 \[choice\].
    pub fallback: f64,
    /// Minimum rate, bit/s. Default 40 Mbit/s \[choice\].
    pub r_min: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            eta: 0.95,
            t: Duration::from_micros(13),
            w_ai: 80.0,
            max_stage: 5,
            fallback: 0.5,
            r_min: 40e6,
        }
    }
}

impl Params {
    fn t_seconds(&self) -> f64 {
        self.t.max(Duration::from_nanos(1)).as_secs_f64()
    }

    /// Returns R_AI in bit/s.
    #[must_use]
    pub fn r_ai(&self) -> f64 {
        self.w_ai * 8.0 / self.t_seconds()
    }
}

/// Load of a hop's link, which our nodes write as namespace data (IOAM trace type bit 5) \[choice:
/// IOAM has no field for it, and leaves the format of this one to the namespace\]. The queue depth
/// (bit 6) accompanies it, in octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct HopLoad {
    /// Capacity of the egress link in units of 100 Mbit/s.
    pub capacity_100mbps: u16,
    /// Throughput of the node on that link in units of 100 Mbit/s.
    pub throughput_100mbps: u16,
}

impl HopLoad {
    /// Encodes the load in 32 bits: capacity in the upper half, throughput in the lower.
    #[must_use]
    pub const fn to_bits(self) -> u32 {
        (self.capacity_100mbps as u32) << 16 | self.throughput_100mbps as u32
    }

    /// Decodes the load from 32 bits.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self {
            capacity_100mbps: (bits >> 16) as u16,
            throughput_100mbps: bits as u16,
        }
    }

    /// Returns the utilisation of the hop with `queue` octets waiting, if T is `t` seconds: 1 is a
    /// full link without a queue. `None` if the capacity is 0.
    #[must_use]
    pub fn utilisation(self, queue: u32, t: f64) -> Option<f64> {
        if self.capacity_100mbps == 0 {
            return None;
        }
        let capacity = f64::from(self.capacity_100mbps);
        let bits_per_second = capacity * 100e6;
        let waiting = f64::from(queue) * 8.0 / (bits_per_second * t);
        Some(waiting + f64::from(self.throughput_100mbps) / capacity)
    }
}

/// Returns the utilisation of the most loaded hop in `trace`, if T is `t` seconds. `None` if no hop
/// reports its load, or the lengths in the trace are inconsistent, so that the boundaries of its
/// nodes are unknown.
#[must_use]
pub fn worst_hop(trace: &Trace<'_>, t: f64) -> Option<f64> {
    let mut worst: Option<f64> = None;
    for node in trace.nodes() {
        if let Some(utilisation) = utilisation(&node.ok()?, t) {
            worst = Some(worst.map_or(utilisation, |worst| worst.max(utilisation)));
        }
    }
    worst
}

fn utilisation(node: &Node<'_>, t: f64) -> Option<f64> {
    let load = node.fields().find_map(|field| match field.value {
        Value::NamespaceData(bits) if bits != NOT_AVAILABLE => Some(HopLoad::from_bits(bits)),
        _ => None,
    })?;
    load.utilisation(node.queue_depth().unwrap_or(0), t)
}

/// Rate control of one flow.
#[derive(Clone, Debug)]
pub struct Telemetry {
    params: Params,
    line_rate: f64,
    /// R.
    rate: f64,
    /// R_C.
    reference: f64,
    /// Time at which a notification last set the reference rate.
    reference_at: Option<Time>,
    /// Time of the last rate change or notification.
    changed_at: Time,
    /// incStage: number of additive increases since the last notification.
    stage: u32,
}

impl Telemetry {
    /// Creates a flow at line rate, in bit/s.
    #[must_use]
    pub const fn new(params: Params, line_rate: f64) -> Self {
        Self {
            params,
            line_rate,
            rate: line_rate,
            reference: line_rate,
            reference_at: None,
            changed_at: Time::from_nanos(0),
            stage: 0,
        }
    }

    #[cold]
    fn recover(&mut self, now: Time) {
        let period = nanos(self.params.t).max(1);
        for _ in 0..MAX_STEPS {
            if self.rate >= self.line_rate || nanos(now.saturating_sub(self.changed_at)) < period {
                return;
            }
            self.changed_at += Duration::from_nanos(period);
            self.stage = self.stage.saturating_add(1);
            let beyond = self.stage.saturating_sub(self.params.max_stage).max(1);
            self.set(self.rate + f64::from(beyond) * self.params.r_ai());
        }
    }

    fn set(&mut self, wanted: f64) {
        let floor = self.params.r_min.min(self.line_rate);
        let rate = wanted.max(floor).min(self.line_rate);
        let near = self.line_rate - rate < NEAR;
        self.rate = if near { self.line_rate } else { rate };
    }
}

impl Controller for Telemetry {
    fn on_notification(&mut self, now: Time, notice: &Notice<'_>) -> Answer {
        self.on_timer(now);
        let due = self
            .reference_at
            .is_none_or(|at| now.saturating_sub(at) >= self.params.t);
        if due {
            self.reference = self.rate;
            self.reference_at = Some(now);
        }
        let eta = self.params.eta.max(f64::MIN_POSITIVE);
        let wanted =
            match (notice.trace).and_then(|trace| worst_hop(trace, self.params.t_seconds())) {
                Some(worst) if worst >= eta => self.reference / (worst / eta) + self.params.r_ai(),
                Some(_) => self.reference + self.params.r_ai(),
                None => self.reference * self.params.fallback,
            };
        self.set(wanted);
        self.changed_at = self.changed_at.max(now);
        self.stage = 0;
        Answer::Slow
    }

    #[inline]
    fn on_timer(&mut self, now: Time) {
        if self.rate < self.line_rate && now.saturating_sub(self.changed_at) >= self.params.t {
            self.recover(now);
        }
    }

    fn next_timer(&self) -> Option<Time> {
        (self.rate < self.line_rate).then(|| self.changed_at.saturating_add(self.params.t))
    }

    #[inline]
    fn rate(&self) -> f64 {
        self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{hop, trace};
    use fcn_wire::ioam::OptType;
    use proptest::prelude::*;

    const LINE: f64 = 100e9;

    const fn with<'a>(trace: &'a Trace<'a>) -> Notice<'a> {
        Notice {
            trace: Some(trace),
            by_switch: true,
        }
    }

    /// 80 octets per 13 µs.
    const R_AI: f64 = 80.0 * 8.0 / 13e-6;

    fn after(periods: u64) -> Time {
        Time::from_nanos(periods * 13_000)
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
    }

    fn notify(flow: &mut Telemetry, now: Time, hops: &[(HopLoad, u32)]) {
        let bytes = trace(hops);
        let trace = Trace::new_checked(OptType::Preallocated, &bytes).unwrap();
        flow.on_notification(now, &with(&trace));
    }

    #[test]
    fn hop_load_has_a_fixed_format() {
        let load = hop(1000, 900).0;
        assert_eq!(load.to_bits(), 1000 << 16 | 900);
        assert_eq!(HopLoad::from_bits(load.to_bits()), load);
        // 100 Gbit/s for 13 µs are 162 500 octets.
        assert!(close(load.utilisation(162_500, 13e-6).unwrap(), 1.9));
        assert_eq!(hop(0, 900).0.utilisation(1, 13e-6), None);
    }

    #[test]
    fn the_most_loaded_hop_sets_the_rate() {
        let mut flow = Telemetry::new(Params::default(), LINE);
        let hops = [
            hop(1000, 500),
            (hop(1000, 1000).0, 162_500),
            hop(4000, 3000),
        ];
        notify(&mut flow, after(1), &hops);
        assert!(close(flow.rate(), LINE / (2.0 / 0.95) + R_AI));
        assert_eq!(flow.next_timer(), Some(after(2)));
    }

    #[test]
    fn notifications_about_one_round_trip_do_not_add_up() {
        let mut flow = Telemetry::new(Params::default(), LINE);
        let worst = [(hop(1000, 1000).0, 162_500)];
        let once = LINE / (2.0 / 0.95) + R_AI;
        for _ in 0..3 {
            notify(&mut flow, after(1), &worst);
            assert!(close(flow.rate(), once));
        }
        // A lower load within the same T is applied to the same reference.
        notify(&mut flow, Time::from_nanos(25_999), &[hop(1000, 1000)]);
        assert!(close(flow.rate(), LINE * 0.95 + R_AI));
        let rate = flow.rate();
        notify(&mut flow, after(2), &worst);
        assert!(close(flow.rate(), rate / (2.0 / 0.95) + R_AI));
    }

    #[test]
    fn without_notifications_the_rate_rises_by_stages() {
        let mut flow = Telemetry::new(Params::default(), LINE);
        flow.on_notification(after(0), &Notice::default());
        assert_eq!(flow.rate(), LINE / 2.0);
        for step in 1..=5u32 {
            flow.on_timer(after(step.into()));
            assert!(close(flow.rate(), LINE / 2.0 + f64::from(step) * R_AI));
        }
        let mut rate = flow.rate();
        for beyond in 1..=10u32 {
            rate += f64::from(beyond) * R_AI;
            flow.on_timer(after(u64::from(5 + beyond)));
            assert!(close(flow.rate(), rate));
        }
        // 50 Gbit/s are 1016 times R_AI: 45 steps of 1, 2, 3, … are enough, 44 are not.
        flow.on_timer(after(5 + 44));
        assert!(flow.rate() < LINE);
        flow.on_timer(after(5 + 45));
        assert_eq!((flow.rate(), flow.next_timer()), (LINE, None));
    }

    #[test]
    fn a_trace_without_loads_is_treated_as_absent() {
        let no_load = trace(&[
            (HopLoad::from_bits(NOT_AVAILABLE), 9),
            (HopLoad::default(), 9),
        ]);
        let mut ragged = trace(&[hop(1000, 999)]);
        ragged.pop();
        for bytes in [no_load, ragged] {
            let trace = Trace::new_checked(OptType::Preallocated, &bytes).unwrap();
            assert_eq!(worst_hop(&trace, 13e-6), None);
            let mut flow = Telemetry::new(Params::default(), LINE);
            flow.on_notification(after(0), &with(&trace));
            assert_eq!(flow.rate(), LINE / 2.0);
        }
    }

    #[test]
    fn no_parameters_make_it_hang_or_leave_its_range() {
        let zero = Params {
            eta: 0.0,
            t: Duration::ZERO,
            w_ai: 0.0,
            max_stage: 0,
            fallback: 0.0,
            r_min: 0.0,
        };
        for line_rate in [LINE, 1.0, 0.0] {
            let mut flow = Telemetry::new(zero, line_rate);
            for i in 0..5 {
                notify(&mut flow, after(i * 1000), &[hop(1000, 1000)]);
                flow.on_notification(after(i * 1000 + 1), &Notice::default());
                flow.on_timer(after(i * 1000 + 999));
                assert!((0.0..=line_rate).contains(&flow.rate()));
            }
        }
    }

    proptest! {
        #[test]
        fn the_rate_stays_in_its_range_and_rises_only_between_notifications(
            steps in proptest::collection::vec((0u64..200_000, proptest::option::of((any::<u16>(), any::<u16>(), any::<u32>()))), 0..60))
        {
            let params = Params::default();
            let mut flow = Telemetry::new(params, LINE);
            let mut now = 0;
            for (wait, load) in steps {
                now += wait;
                let before = flow.rate();
                flow.on_timer(Time::from_nanos(now));
                prop_assert!(flow.rate() >= before);
                if let Some((capacity, throughput, queue)) = load {
                    notify(&mut flow, Time::from_nanos(now), &[(hop(capacity, throughput).0, queue)]);
                }
                prop_assert!((params.r_min..=LINE).contains(&flow.rate()), "{}", flow.rate());
            }
        }

        #[test]
        fn any_trace_is_survived(bytes in proptest::collection::vec(any::<u8>(), 8..238)) {
            for opt_type in [OptType::Preallocated, OptType::Incremental] {
                let trace = Trace::new_checked(opt_type, &bytes).unwrap();
                let mut flow = Telemetry::new(Params::default(), LINE);
                flow.on_notification(after(0), &with(&trace));
                prop_assert!((40e6..=LINE).contains(&flow.rate()));
            }
        }
    }
}
