//! One direction of a link: queues by class, the transmitter, and what is on the way to the other end.

use super::packet::{Packet, QUEUES, SHORTEST_FRAME, WIRE_OVERHEAD};
use crate::scenario::model::{FaultKind, Thresholds};
use crate::units::{Ps, Rate};
use std::collections::VecDeque;

/// How long a port's throughput is averaged for telemetry.
const LOAD_WINDOW: Ps = Ps(10_000_000);

/// What a port has sent lately.
#[derive(Clone, Copy, Debug, Default)]
pub struct Load {
    since: Ps,
    octets: u64,
    /// Bits per second of the last whole window.
    pub rate: f64,
}

impl Load {
    /// Counts a packet.
    pub fn sent(&mut self, now: Ps, octets: u32) {
        let span = now.since(self.since);
        if span >= LOAD_WINDOW {
            self.rate = self.octets as f64 * 8.0 / span.as_seconds_f64();
            self.since = now;
            self.octets = 0;
        }
        self.octets += u64::from(octets);
    }
}

/// What a port has done since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    /// How long its transmitter was busy.
    pub busy: Ps,
    /// Octets of data in its queues times the picoseconds that they were there.
    pub waited: u128,
}

/// A port: the egress of a node towards its peer.
#[derive(Debug)]
pub struct Port {
    /// The node whose port it is.
    pub node: u32,
    /// The node at the other end.
    pub peer: u32,
    /// The link's rate.
    pub rate: Rate,
    /// Picoseconds an octet takes, where that is a whole number.
    octet: Option<u64>,
    /// The link's propagation delay.
    pub delay: Ps,
    /// Its thresholds, where it is a switch's.
    pub thresholds: Thresholds,
    /// What it has done so far.
    pub work: Work,
    queued: u64,
    queued_since: Ps,
    /// When the transmitter is done with what it sends.
    pub busy_until: Ps,
    /// Whether [`Event::Free`](super::event::Event::Free) is planned.
    pub free_planned: bool,
    queues: [VecDeque<Packet>; QUEUES],
    depths: [u64; QUEUES],
    waiting: u16,
    paused: u16,
    /// Until when each class is paused.
    pub paused_until: [Ps; 8],
    /// On the wire, with the time of arrival, in that order.
    on_the_way: VecDeque<(Ps, Packet)>,
    /// What goes wrong on the way.
    pub faults: Vec<(Ps, Ps, FaultKind)>,
    /// The vantage point that watches it, and whether that is at this end.
    pub watched_here: Option<usize>,
    /// The vantage point at the other end.
    pub watched_there: Option<usize>,
    /// Octets that came in by the port's other direction and are still in the node, by class (for PFC).
    pub held: [u64; 8],
    /// Classes that the peer has to pause.
    pub pausing: u8,
    /// Whether a queue of data is above Kmax.
    pub above_kmax: bool,
    /// What it has sent lately.
    pub load: Load,
}

impl Port {
    /// An idle port.
    pub fn new(node: usize, peer: usize, rate: Rate, delay: Ps) -> Self {
        let bits = rate.bits_per_second();
        Self {
            node: node as u32,
            peer: peer as u32,
            rate,
            octet: 8_000_000_000_000_u64
                .is_multiple_of(bits)
                .then(|| 8_000_000_000_000 / bits),
            delay,
            thresholds: Thresholds::default(),
            work: Work::default(),
            queued: 0,
            queued_since: Ps(0),
            busy_until: Ps(0),
            free_planned: false,
            queues: Default::default(),
            depths: [0; QUEUES],
            waiting: 0,
            paused: 0,
            paused_until: [Ps(0); 8],
            on_the_way: VecDeque::new(),
            faults: Vec::new(),
            watched_here: None,
            watched_there: None,
            held: [0; 8],
            pausing: 0,
            above_kmax: false,
            load: Load::default(),
        }
    }

    /// How long a frame of `len` octets keeps the transmitter.
    pub fn sending(&self, len: u32) -> Ps {
        let octets = u64::from(len.max(SHORTEST_FRAME) + WIRE_OVERHEAD);
        match self.octet {
            Some(octet) => Ps(octets * octet),
            None => self.rate.time(octets),
        }
    }

    /// Data of so many octets join the port's queues, or leave them.
    pub fn queue_changes(&mut self, now: Ps, by: i64) {
        self.work = self.worked(now);
        self.queued_since = now;
        self.queued = self.queued.saturating_add_signed(by);
    }

    /// What it has done up to now.
    pub fn worked(&self, now: Ps) -> Work {
        let time = u128::from(now.since(self.queued_since).0);
        Work {
            waited: self.work.waited + u128::from(self.queued) * time,
            ..self.work
        }
    }

    /// How long a packet of `class` that comes now waits for those before it: the one that is being sent, and the queues of
    /// its own class and of those above. What pauses and what overtakes it later is not known yet.
    pub fn wait(&self, now: Ps, class: u8) -> Ps {
        let before = self.queues.iter().zip(self.depths).skip(usize::from(class));
        let octets: u64 = before
            .map(|(queue, depth)| depth + queue.len() as u64 * u64::from(WIRE_OVERHEAD))
            .sum();
        self.busy_until.since(now) + self.rate.time(octets)
    }

    /// Octets waiting in the queue of `class`.
    pub fn depth(&self, class: u8) -> u64 {
        self.depths.get(usize::from(class)).copied().unwrap_or(0)
    }

    /// Octets waiting in the deepest queue of data.
    pub fn deepest(&self) -> u64 {
        let data = self.depths.iter().take(usize::from(super::packet::CONTROL));
        data.copied().max().unwrap_or(0)
    }

    /// Puts `packet` at the end of its class's queue.
    pub fn enqueue(&mut self, packet: Packet) {
        let class = usize::from(packet.class);
        if let (Some(queue), Some(depth)) = (self.queues.get_mut(class), self.depths.get_mut(class))
        {
            queue.push_back(packet);
            *depth += u64::from(packet.len);
            self.waiting |= 1 << class;
        }
    }

    /// Takes the next packet that may be sent: the highest class that is not paused.
    pub fn dequeue(&mut self) -> Option<Packet> {
        let ready = self.waiting & !self.paused;
        let class = 15_u32.checked_sub(ready.leading_zeros())? as usize;
        let queue = self.queues.get_mut(class)?;
        let packet = queue.pop_front()?;
        if queue.is_empty() {
            self.waiting &= !(1 << class);
        }
        self.depths[class] -= u64::from(packet.len);
        Some(packet)
    }

    /// Whether a packet waits that may be sent.
    pub const fn has_ready(&self) -> bool {
        self.waiting & !self.paused != 0
    }

    /// Stops or lets go a class.
    pub const fn pause(&mut self, class: u8, stop: bool) {
        if stop {
            self.paused |= 1 << class;
        } else {
            self.paused &= !(1 << class);
        }
    }

    /// Whether a class is stopped.
    pub const fn is_paused(&self, class: u8) -> bool {
        self.paused >> class & 1 == 1
    }

    /// Puts a packet on the wire; says when the next arrival has to be planned, where this one is now the next.
    pub fn put_on_link(&mut self, arrival: Ps, packet: Packet) -> Option<Ps> {
        // Packets overtake one another on faulty links alone.
        if self.on_the_way.back().is_none_or(|(at, _)| *at <= arrival) {
            let first = self.on_the_way.is_empty();
            self.on_the_way.push_back((arrival, packet));
            return first.then_some(arrival);
        }
        let behind = self
            .on_the_way
            .iter()
            .rev()
            .take_while(|(at, _)| *at > arrival)
            .count();
        let place = self.on_the_way.len() - behind;
        self.on_the_way.insert(place, (arrival, packet));
        (place == 0).then_some(arrival)
    }

    /// Takes the packet that arrives `now`, and says when the next one will. Nothing where none arrives: one that was
    /// overtaken has left its event behind.
    pub fn take_arrived(&mut self, now: Ps) -> (Option<Packet>, Option<Ps>) {
        match self.on_the_way.front() {
            Some((at, _)) if *at <= now => {}
            _ => return (None, None),
        }
        let packet = self.on_the_way.pop_front().map(|(_, packet)| packet);
        (packet, self.on_the_way.front().map(|(at, _)| *at))
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::PacketKind;
    use super::*;

    fn packet(class: u8, index: u64) -> Packet {
        Packet {
            class,
            index,
            ..Packet::new(PacketKind::Data, 0, 100)
        }
    }

    fn port() -> Port {
        Port::new(0, 1, Rate::new(100_000_000_000).unwrap(), Ps(1_000))
    }

    #[test]
    fn the_highest_class_that_is_not_paused_goes_first() {
        let mut port = port();
        for (class, index) in [(3, 0), (8, 1), (3, 2), (5, 3)] {
            port.enqueue(packet(class, index));
        }
        assert_eq!(port.depth(3), 200);
        port.pause(5, true);
        port.pause(8, true); // MAC control has no such class on the wire, but a bit here.
        port.pause(8, false);
        let order: Vec<_> = std::iter::from_fn(|| port.dequeue().map(|p| p.index)).collect();
        assert_eq!(order, [1, 0, 2]);
        assert!(!port.has_ready());
        port.pause(5, false);
        assert_eq!(port.dequeue().map(|p| p.index), Some(3));
        assert_eq!(port.depth(5), 0);
    }

    #[test]
    fn serialisation_counts_what_the_wire_costs() {
        assert_eq!(port().sending(1_086), Ps((1_086 + 24) * 80));
        assert_eq!(port().sending(20), Ps((60 + 24) * 80), "padded");
        let mut port = port();
        port.busy_until = Ps(5_000);
        assert_eq!(port.wait(Ps(2_000), 3), Ps(3_000), "the one being sent");
        for class in [2, 3, 5] {
            port.enqueue(packet(class, 0));
        }
        assert_eq!(port.wait(Ps(2_000), 3), Ps(3_000 + 2 * 124 * 80));
        assert_eq!(port.wait(Ps(9_000), 7), Ps(0));
    }

    #[test]
    fn a_packet_held_back_is_overtaken() {
        let mut port = port();
        assert_eq!(port.put_on_link(Ps(50), packet(3, 0)), Some(Ps(50)));
        assert_eq!(port.put_on_link(Ps(20), packet(3, 1)), Some(Ps(20)));
        assert_eq!(port.put_on_link(Ps(30), packet(3, 2)), None);
        let (first, next) = port.take_arrived(Ps(20));
        assert_eq!((first.unwrap().index, next), (1, Some(Ps(30))));
        let (second, next) = port.take_arrived(Ps(30));
        assert_eq!((second.unwrap().index, next), (2, Some(Ps(50))));
        assert_eq!(port.take_arrived(Ps(50)).0.unwrap().index, 0);
        assert_eq!(
            port.take_arrived(Ps(50)).0.map(|p| p.index),
            None,
            "its event was planned twice"
        );
    }
}
