//! The connection of each frame: a walk over all connections of a queue, in which consecutive
//! frames belong to different flows, and no connection is repeated before all others have been
//! used.

use super::model::Stress;
use super::pattern::gcd;

/// The connections of one of several queues. A flow belongs to a single queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The queue, from 0.
    pub queue: u32,
    /// Number of queues: at most the number of flows.
    pub queues: u32,
}

/// A connection in one of the walk's laps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The flow, from 0.
    pub flow: u32,
    /// The connection, from 0.
    pub connection: u32,
    /// Number of completed passes over all connections.
    pub lap: u32,
}

/// The flows of a round, in an order that places neighbours far from each other.
#[derive(Clone, Copy, Debug)]
struct Round {
    flows: u32,
    stride: u32,
}

impl Round {
    const fn new(flows: u32) -> Self {
        // Close to the golden ratio, so that a few steps never return near to the start.
        let mut stride = ((flows as u64 * 1_265) >> 11) as u32;
        if stride == 0 {
            stride = 1;
        }
        while gcd(stride, flows) > 1 {
            stride += 1;
        }
        Self { flows, stride }
    }
}

/// A walk over connections.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    share: Share,
    all_flows: u32,
    /// A round covers one connection of each flow; the last one may not have all flows.
    whole: Round,
    last: Round,
    rounds: u32,
    at: Step,
    round: u32,
    /// Flows left in this round, including this one.
    left: u32,
    /// Number of this flow among the queue's flows.
    flow: u32,
}

impl Walk {
    /// Creates the walk over the connections of `share`; `start` shifts its beginning.
    pub fn new(stress: &Stress, share: Share, start: u32) -> Self {
        let (flows, connections) = (stress.flows, stress.connections);
        let rounds = connections.div_ceil(flows);
        let in_last = connections - (rounds - 1) * flows;
        let ours = |flows: u32| flows.saturating_sub(share.queue).div_ceil(share.queues);
        let (whole, last) = (Round::new(ours(flows)), ours(in_last));
        // A queue may have no flow in the last round.
        let rounds = if last == 0 { rounds - 1 } else { rounds };
        let mut walk = Self {
            share,
            all_flows: flows,
            whole,
            last: Round::new(if last == 0 { whole.flows } else { last }),
            rounds,
            at: Step::default(),
            round: 0,
            left: 0,
            flow: 0,
        };
        walk.begin(0, start);
        walk
    }

    const fn current(&self) -> &Round {
        if self.round + 1 == self.rounds {
            &self.last
        } else {
            &self.whole
        }
    }

    fn begin(&mut self, round: u32, flow: u32) {
        self.round = round;
        let flows = self.current().flows;
        self.left = flows;
        self.flow = flow % flows.max(1);
        self.place();
    }

    #[inline]
    const fn place(&mut self) {
        self.at.flow = self.share.queue + self.flow * self.share.queues;
        self.at.connection = self.at.flow + self.round * self.all_flows;
    }

    /// Returns the present connection of the walk, and advances to the next.
    #[inline]
    pub fn step(&mut self) -> Step {
        let step = self.at;
        self.left -= 1;
        if self.left == 0 {
            let next = self.round + 1;
            if next == self.rounds {
                self.at.lap = self.at.lap.wrapping_add(1);
                self.begin(0, self.flow);
            } else {
                self.begin(next, self.flow);
            }
            return step;
        }
        let Round { flows, stride } = *self.current();
        // Both are less than `flows`.
        let next = u64::from(self.flow) + u64::from(stride);
        let flows = u64::from(flows);
        self.flow = (if next >= flows { next - flows } else { next }) as u32;
        self.place();
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stress::tests::stress;
    use proptest::prelude::*;
    use std::collections::HashSet;

    proptest! {
        #[test]
        fn each_connection_is_used_once_per_lap_by_one_queue(
            flows in 1u32..300, more in 0u32..900, queues in 1u32..9, start: u32,
        ) {
            let queues = queues.min(flows);
            let mut stress = stress(&[]);
            (stress.flows, stress.connections) = (flows, flows + more);
            let mut all = HashSet::new();
            let mut queue_of = vec![None; flows as usize];
            for queue in 0..queues {
                let mut walk = Walk::new(&stress, Share { queue, queues }, start);
                let mut first = HashSet::new();
                loop {
                    let step = walk.step();
                    if step.lap > 0 {
                        prop_assert_eq!(step.lap, 1);
                        break;
                    }
                    prop_assert!(step.flow < flows && step.connection < stress.connections);
                    prop_assert_eq!(step.connection % flows, step.flow);
                    prop_assert!(first.insert(step.connection));
                    prop_assert!(all.insert(step.connection));
                    let owner = queue_of[step.flow as usize].get_or_insert(queue);
                    prop_assert_eq!(*owner, queue);
                }
                let second: HashSet<u32> = (1..first.len()).map(|_| walk.step().connection).collect();
                prop_assert!(second.is_subset(&first) && second.len() + 1 >= first.len() - 1);
            }
            prop_assert_eq!(all.len(), stress.connections as usize);
        }
    }

    #[test]
    fn consecutive_steps_have_different_flows() {
        let mut stress = stress(&[]);
        for (flows, connections) in [(2, 2), (3, 10), (10, 35), (1_000, 7_500), (65_536, 100_000)] {
            (stress.flows, stress.connections) = (flows, connections);
            let mut walk = Walk::new(
                &stress,
                Share {
                    queue: 0,
                    queues: 1,
                },
                0,
            );
            let (mut same, mut last) = (0, None);
            for _ in 0..3 * connections {
                let flow = Some(walk.step().flow);
                same += u32::from(flow == last);
                last = flow;
            }
            // It may happen between two rounds.
            assert!(same <= 3 * connections.div_ceil(flows), "{flows}: {same}");
        }
    }
}
