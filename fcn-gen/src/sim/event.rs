//! The queue of events in virtual time. The nodes implement the events.

use crate::units::Ps;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A scheduled event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// The first packet in transit from this port arrives at the other end.
    Arrive(u32),
    /// This port can send its next packet.
    Free(u32),
    /// A pause of this port's class may have expired.
    PauseEnds(u32, u8),
    /// This switch's port repeats a pause that is still needed.
    PauseAgain(u32, u8),
    /// A flow begins.
    Start(u32),
    /// A flow stops posting messages.
    Stop(u32),
    /// A flow's pacing permits its next packet.
    Due(u32),
    /// A flow's wait for an acknowledgement, or for an answer of RDMA CM, times out.
    Timeout(u32),
    /// The next packet of an injection is due.
    Inject(u32),
    /// A proxy node advertises itself.
    Advertise(u32),
    /// A notification is complete, and leaves: its index in the pool of pending notifications.
    Notify(u32),
    /// A host's NIC applies a notification that has arrived: its index in the pool of received
    /// ones.
    React(u32),
    /// The warm-up ends.
    WarmedUp,
    /// Half of the time after the warm-up has passed.
    HalfCounted,
    /// The time series are sampled.
    Sample,
}

/// An event in the queue: time, sequence number, event. Reversed order, since the heap returns the
/// greatest first.
type Planned = Reverse<(Ps, u64, Event)>;

/// Duration of a slot in picoseconds, as a power of two: 8.2 ns, so that a slot seldom holds more
/// than a few events.
const SLOT_BITS: u32 = 13;
/// Number of slots in the wheel: 67 µs, longer than most packets' next step.
const SLOTS: usize = 8_192;
/// Number of slots per word of the map of used slots.
const WORD: usize = 64;

/// Events in the order of time; events at the same time come in the order in which they were
/// scheduled.
///
/// A timing wheel for events in the near future, a heap for later ones: most events are a packet's
/// next step, and a heap of all of them would take most of a simulation's run time.
#[derive(Debug)]
pub struct Events {
    slots: Vec<Vec<Planned>>,
    used: [u64; SLOTS / WORD],
    /// Number of the slot, counted from the start of time, whose events are in `present`.
    at: u64,
    /// The events of that slot, the next one last.
    present: Vec<Planned>,
    later: BinaryHeap<Planned>,
    planned: u64,
}

impl Default for Events {
    fn default() -> Self {
        Self {
            slots: (0..SLOTS).map(|_| Vec::new()).collect(),
            used: [0; SLOTS / WORD],
            at: 0,
            present: Vec::new(),
            later: BinaryHeap::new(),
            planned: 0,
        }
    }
}

impl Events {
    /// Schedules `event` for `at`, now or later.
    pub fn plan(&mut self, at: Ps, event: Event) {
        self.planned += 1;
        let planned = Reverse((at, self.planned, event));
        let slot = at.0 >> SLOT_BITS;
        if slot <= self.at {
            let place = self.present.partition_point(|other| *other < planned);
            self.present.insert(place, planned);
        } else if slot - self.at < SLOTS as u64 {
            let index = slot as usize % SLOTS;
            self.slots[index].push(planned);
            self.used[index / WORD] |= 1 << (index % WORD);
        } else {
            self.later.push(planned);
        }
    }

    /// Returns the next event.
    pub fn next(&mut self) -> Option<(Ps, Event)> {
        loop {
            if let Some(Reverse((at, _, event))) = self.present.pop() {
                return Some((at, event));
            }
            self.advance()?;
        }
    }

    /// Advances to the next slot that holds an event, in the wheel or in the heap.
    fn advance(&mut self) -> Option<()> {
        let soon = self.next_used();
        let late = self.later.peek();
        let late = late.map(|Reverse((at, ..))| at.0 >> SLOT_BITS);
        self.at = match (soon, late) {
            (Some(soon), Some(late)) => soon.min(late),
            (soon, late) => soon.or(late)?,
        };
        let index = self.at as usize % SLOTS;
        if soon == Some(self.at) {
            std::mem::swap(&mut self.present, &mut self.slots[index]);
            self.used[index / WORD] &= !(1 << (index % WORD));
        }
        while let Some(Reverse((at, ..))) = self.later.peek()
            && at.0 >> SLOT_BITS <= self.at
        {
            self.present.extend(self.later.pop());
        }
        // Sequence numbers are unique, so the order is deterministic.
        self.present.sort_unstable();
        Some(())
    }

    /// Returns the first used slot after the present one.
    fn next_used(&self) -> Option<u64> {
        let start = (self.at as usize + 1) % SLOTS;
        let first = start / WORD;
        for step in 0..=SLOTS / WORD {
            let word = (first + step) % (SLOTS / WORD);
            let mut bits = self.used[word];
            if step == 0 {
                bits &= u64::MAX << (start % WORD);
            } else if step == SLOTS / WORD {
                bits &= !(u64::MAX << (start % WORD));
            }
            if bits != 0 {
                let index = word * WORD + bits.trailing_zeros() as usize;
                let ahead = (index + SLOTS - start) % SLOTS;
                return Some(self.at + 1 + ahead as u64);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn events_come_by_time_then_in_scheduling_order() {
        let mut events = Events::default();
        events.plan(Ps(5), Event::Start(1));
        events.plan(Ps(3), Event::Start(2));
        events.plan(Ps(5), Event::Start(0));
        let order: Vec<_> = std::iter::from_fn(|| events.next()).collect();
        assert_eq!(
            order,
            [
                (Ps(3), Event::Start(2)),
                (Ps(5), Event::Start(1)),
                (Ps(5), Event::Start(0))
            ]
        );
    }

    proptest! {
        #[test]
        fn wheel_agrees_with_sorted_list(
            steps in proptest::collection::vec((0_u64..300_000_000, 0_u8..4), 1..300)
        ) {
            let mut events = Events::default();
            let mut list: Vec<(u64, u32)> = Vec::new();
            let mut now = 0;
            for (number, (ahead, take)) in steps.into_iter().enumerate() {
                // Mostly soon, sometimes beyond one turn of the wheel.
                let at = now + if number % 3 == 0 { ahead } else { ahead % 20_000 };
                events.plan(Ps(at), Event::Start(number as u32));
                list.push((at, number as u32));
                list.sort_unstable();
                for _ in 0..take.min(2) {
                    let expected = (!list.is_empty()).then(|| list.remove(0));
                    let found = events.next();
                    prop_assert_eq!(found, expected.map(|(at, n)| (Ps(at), Event::Start(n))));
                    now = found.map_or(now, |(at, _)| at.0);
                }
            }
            for (at, n) in list {
                prop_assert_eq!(events.next(), Some((Ps(at), Event::Start(n))));
            }
            prop_assert_eq!(events.next(), None);
        }
    }
}
