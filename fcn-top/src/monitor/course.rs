//! Traffic over a whole run, for charts: notifications by kind, all data, and the data of some
//! flows.
//!
//! Bounded: [`FLOWS`] flows of [`STEPS`] steps each take 2.5 MB. Samples are excluded: they do not
//! show at how many capture points the packets they stand for passed.

use super::series::{Series, Sum};
use crate::tables::{Course, FlowCourse, FlowStep, TrafficStep};
use fcn_observe::FlowKey;
use fcn_wire::Kind;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// Maximum number of flows counted separately.
pub const FLOWS: usize = 200;
/// Number of steps in a run; their length grows with the run.
const STEPS: usize = 512;
/// Length of the longest steps, as a power of two of nanoseconds: enough steps for any time.
const COARSEST: u8 = 55;

type Run<N> = Series<N, STEPS, COARSEST>;

/// A flow counted separately.
#[derive(Debug)]
struct TrackedFlow {
    /// Start of separate counting.
    since: u64,
    notified: u64,
    steps: Run<FlowStep>,
}

/// Traffic so far.
#[derive(Debug, Default)]
pub struct RunSeries {
    traffic: Run<TrafficStep>,
    flows: FxHashMap<FlowKey, TrackedFlow>,
}

impl RunSeries {
    /// Processes a data packet, or a `step` without packets for one first captured with a CE mark
    /// at another capture point.
    pub fn data(&mut self, at: u64, key: FlowKey, step: FlowStep) {
        // Counted over all flows, so that each flow lies within these steps and all share one axis.
        self.traffic.add(at, step.into());
        let is_room = self.flows.len() < FLOWS;
        if let Some(told) = self.flows.get_mut(&key) {
            told.steps.add(at, step);
        } else if is_room {
            self.tell(at, key).steps.add(at, step);
        }
    }

    /// Processes a notification, about a flow if it is known; `total` is the number of its row
    /// including this one.
    pub fn notified(&mut self, at: u64, kind: Kind, flow: Option<FlowKey>, total: u64) {
        let mut step = TrafficStep::default();
        if let Some(count) = step.notifications.get_mut(kind as usize) {
            *count = 1;
        }
        self.traffic.add(at, step);
        let Some(key) = flow else { return };
        // Checked rarely because it is slow; a flow that is notified often gets its slot all the
        // same.
        if !self.flows.contains_key(&key) && total.is_power_of_two() && !self.make_room(total) {
            return;
        }
        let is_room = self.flows.len() < FLOWS;
        let told = match self.flows.get_mut(&key) {
            Some(told) => told,
            None if is_room => self.tell(at, key),
            None => return,
        };
        told.notified += 1;
        let step = FlowStep {
            notifications: 1,
            ..FlowStep::default()
        };
        told.steps.add(at, step);
    }

    fn tell(&mut self, at: u64, key: FlowKey) -> &mut TrackedFlow {
        self.flows.entry(key).or_insert_with(|| TrackedFlow {
            since: at,
            notified: 0,
            steps: Run::default(),
        })
    }

    /// Makes room for a flow with that many notifications: evicts the one with the fewest if it has
    /// less than half as many. Returns true if there is room.
    fn make_room(&mut self, total: u64) -> bool {
        if self.flows.len() < FLOWS {
            return true;
        }
        // Among equals, evict the latest, independently of the table's order.
        let least = self
            .flows
            .iter()
            .min_by_key(|(key, told)| (told.notified, Reverse(told.since), **key));
        match least {
            Some((key, told)) if told.notified.saturating_mul(2) < total => {
                let key = *key;
                self.flows.remove(&key);
                true
            }
            _ => false,
        }
    }

    /// Returns the traffic until `now`, flows with the most notifications first.
    pub fn course(&self, now: u64) -> Course {
        let (start, step, traffic, _) = self.traffic.side_by_side(&Run::<FlowStep>::default(), now);
        let mut flows: Vec<FlowCourse> = (self.flows.iter())
            .map(|(key, told)| {
                let (_, _, _, steps) = self.traffic.side_by_side(&told.steps, now);
                FlowCourse {
                    key: *key,
                    since: told.since,
                    notified: told.notified,
                    steps,
                }
            })
            .collect();
        flows.sort_by_key(|flow| {
            let octets: u64 = flow.steps.iter().map(|step| step.octets).sum();
            (Reverse(flow.notified), Reverse(octets), flow.key)
        });
        Course {
            start,
            step,
            traffic,
            flows,
        }
    }
}

impl Sum for FlowStep {
    #[inline]
    fn and(self, other: Self) -> Self {
        Self {
            notifications: self.notifications.saturating_add(other.notifications),
            data: self.data.saturating_add(other.data),
            ce: self.ce.saturating_add(other.ce),
            octets: self.octets.saturating_add(other.octets),
        }
    }
}

/// Sum over all flows.
impl From<FlowStep> for TrafficStep {
    #[inline]
    fn from(step: FlowStep) -> Self {
        Self {
            data: step.data,
            ce: step.ce,
            octets: step.octets,
            ..Self::default()
        }
    }
}

/// The quantity used for rates.
impl From<FlowStep> for u64 {
    fn from(step: FlowStep) -> Self {
        step.octets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fcn_wire::Qp;
    use std::net::{IpAddr, Ipv4Addr};

    const MILLISECOND: u64 = 1_000_000;

    fn flow(number: u32) -> FlowKey {
        FlowKey {
            sender: IpAddr::V4(Ipv4Addr::from_bits(0x0A00_0000 + number)),
            receiver: IpAddr::V4(Ipv4Addr::new(10, 1, 0, 1)),
            receiver_qp: Qp::new(number).unwrap(),
        }
    }

    fn packet(ce: bool) -> FlowStep {
        FlowStep {
            data: 1,
            ce: ce.into(),
            octets: 1_000,
            ..FlowStep::default()
        }
    }

    #[test]
    fn all_series_share_an_axis_and_keep_their_sums() {
        let mut courses = RunSeries::default();
        // An hour, one packet of a flow each second; the other flow only at the end.
        let start = 1_767_225_600_000_000_123;
        for second in 0..3_600 {
            let at = start + second * 1_000 * MILLISECOND;
            courses.data(at, flow(1), packet(second % 10 == 0));
            if second >= 3_000 {
                courses.data(at + 5, flow(2), packet(false));
                courses.notified(at + 7, Kind::FastCnp1, Some(flow(2)), second - 2_999);
            }
        }
        // Late, and stamped before all others.
        let first = start - 100 * 1_000 * MILLISECOND;
        courses.data(first, flow(3), packet(true));
        let now = start + 3_600 * 1_000 * MILLISECOND;
        let course = courses.course(now);
        assert!(course.start <= first && course.start + course.step > first);
        assert!(course.traffic.len() <= STEPS);
        assert!(course.start + course.step * course.traffic.len() as u64 > now);
        assert!(course.traffic.len() > STEPS / 4, "{}", course.traffic.len());
        let keys: Vec<_> = course.flows.iter().map(|flow| flow.key).collect();
        assert_eq!(keys, [flow(2), flow(1), flow(3)]);
        for flow in &course.flows {
            assert_eq!(flow.steps.len(), course.traffic.len());
        }
        let sum = |number: usize, of: fn(&FlowStep) -> u64| -> u64 {
            course.flows[number].steps.iter().map(of).sum()
        };
        assert_eq!(sum(0, |step| step.octets), 600_000);
        assert_eq!(sum(0, |step| step.notifications.into()), 600);
        assert_eq!(sum(1, |step| step.ce.into()), 360);
        let late = &course.flows[2];
        assert_eq!((late.steps[0].data, late.since), (1, first));
        assert_eq!(course.flows[1].steps[0].data, 0);
        let octets: u64 = course.traffic.iter().map(|step| step.octets).sum();
        assert_eq!(octets, (3_600 + 600 + 1) * 1_000);
        // Each step has the traffic of every flow in it.
        for (place, step) in course.traffic.iter().enumerate() {
            let flows = course.flows.iter().map(|flow| flow.steps[place]);
            let flows = flows.fold(FlowStep::default(), Sum::and);
            assert_eq!(
                (flows.data, flows.ce, flows.octets),
                (step.data, step.ce, step.octets)
            );
            assert_eq!(
                flows.notifications,
                step.notifications[Kind::FastCnp1 as usize]
            );
        }
    }

    #[test]
    fn the_most_notified_flows_get_the_slots() {
        let mut courses = RunSeries::default();
        let mut at = 1_000 * MILLISECOND;
        for number in 0..FLOWS as u32 {
            courses.data(at, flow(number), packet(false));
        }
        // Data alone gets no slot; the rest is in the sum.
        courses.data(at, flow(1_000), packet(false));
        let course = courses.course(at);
        assert_eq!(course.flows.len(), FLOWS);
        assert!(
            course
                .flows
                .iter()
                .all(|flow| flow.key.receiver_qp.get() < 1_000)
        );
        assert_eq!(course.traffic[0].data, FLOWS as u32 + 1);
        for total in 1..=50 {
            at += MILLISECOND;
            courses.notified(at, Kind::Cnp, Some(flow(1_000)), total);
        }
        for number in 0..FLOWS as u32 {
            for total in 1..=40 {
                courses.notified(at, Kind::Cnp, Some(flow(number)), total);
            }
        }
        // With as many notifications as the others it comes too late; with twice as many it does
        // not.
        for total in 1..=40 {
            courses.notified(at, Kind::Cnp, Some(flow(2_000)), total);
        }
        at += MILLISECOND;
        for total in 1..=200 {
            courses.notified(at, Kind::Cnp, Some(flow(3_000)), total);
        }
        let course = courses.course(at);
        let place = |number| {
            course
                .flows
                .iter()
                .find(|course| course.key == flow(number))
        };
        assert_eq!(course.flows.len(), FLOWS);
        assert_eq!(place(1_000).map(|flow| flow.notified), Some(50));
        assert!(place(2_000).is_none());
        // It counts from the notification that got it a slot: its 128th.
        let late = place(3_000).unwrap();
        assert_eq!((late.notified, late.since), (73, at));
    }
}
