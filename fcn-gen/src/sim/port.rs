//! One direction of a link: queues by class, the transmitter, and the packets in transit to the
//! other end.

use super::packet::{Packet, QUEUES, SHORTEST_FRAME, WIRE_OVERHEAD};
use crate::scenario::model::{FaultKind, Thresholds};
use crate::units::{Ps, Rate};
use std::collections::VecDeque;

/// Window over which a port's throughput is averaged for telemetry.
const LOAD_WINDOW: Ps = Ps(10_000_000);

/// Recent throughput of a port.
#[derive(Clone, Copy, Debug, Default)]
pub struct Load {
    since: Ps,
    octets: u64,
    /// Bits per second in the last complete window.
    pub rate: f64,
    /// Octets sent since the start, with preamble, FCS and gap.
    pub total: u64,
}

impl Load {
    /// Counts a sent packet.
    pub fn sent(&mut self, now: Ps, octets: u32) {
        let span = now.since(self.since);
        if span >= LOAD_WINDOW {
            self.rate = self.octets as f64 * 8.0 / span.as_seconds_f64();
            self.since = now;
            self.octets = 0;
        }
        self.octets += u64::from(octets);
        self.total += u64::from(octets.max(SHORTEST_FRAME) + WIRE_OVERHEAD);
    }
}

/// Work of a port since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    /// Time in which its transmitter was busy.
    pub busy: Ps,
    /// Integral of the data in its queues over time, in octets times picoseconds.
    pub waited: u128,
}

/// A port: a node's egress towards its peer.
#[derive(Debug)]
pub struct Port {
    /// The port's node.
    pub node: u32,
    /// The node at the other end.
    pub peer: u32,
    /// The link's rate.
    pub rate: Rate,
    /// Picoseconds per octet, if that is a whole number.
    octet: Option<u64>,
    /// The link's propagation delay.
    pub delay: Ps,
    /// Its thresholds, for a switch's port.
    pub thresholds: Thresholds,
    /// Its work so far.
    pub work: Work,
    queued: u64,
    queued_since: Ps,
    /// Time at which the transmitter becomes free.
    pub busy_until: Ps,
    /// True if [`Event::Free`](super::event::Event::Free) is scheduled.
    pub free_planned: bool,
    queues: [VecDeque<Packet>; QUEUES],
    depths: [u64; QUEUES],
    waiting: u16,
    paused: u16,
    /// End of the pause of each class.
    pub paused_until: [Ps; 8],
    /// Packets in transit with their times of arrival, in that order.
    in_transit: VecDeque<(Ps, Packet)>,
    /// Faults of the link, with start and end.
    pub faults: Vec<(Ps, Ps, FaultKind)>,
    /// The vantage point at this end, if any.
    pub watched_here: Option<usize>,
    /// The vantage point at the other end, if any.
    pub watched_there: Option<usize>,
    /// Octets that arrived on the port's other direction and are still in the node, by class (for
    /// PFC).
    pub held: [u64; 8],
    /// Bitmap of classes that the peer has to pause.
    pub pausing: u8,
    /// True if a queue of data is above Kmax.
    pub above_kmax: bool,
    /// Its recent throughput.
    pub load: Load,
}

impl Port {
    /// Creates an idle port.
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
            in_transit: VecDeque::new(),
            faults: Vec::new(),
            watched_here: None,
            watched_there: None,
            held: [0; 8],
            pausing: 0,
            above_kmax: false,
            load: Load::default(),
        }
    }

    /// Returns the transmission time of a frame of `len` octets.
    pub fn sending(&self, len: u32) -> Ps {
        let octets = u64::from(len.max(SHORTEST_FRAME) + WIRE_OVERHEAD);
        match self.octet {
            Some(octet) => Ps(octets * octet),
            None => self.rate.time(octets),
        }
    }

    /// Records that `by` octets of data join the port's queues, or leave them if negative.
    pub fn queue_changes(&mut self, now: Ps, by: i64) {
        self.work = self.worked(now);
        self.queued_since = now;
        self.queued = self.queued.saturating_add_signed(by);
    }

    /// Returns its work up to now.
    pub fn worked(&self, now: Ps) -> Work {
        let time = u128::from(now.since(self.queued_since).0);
        Work {
            waited: self.work.waited + u128::from(self.queued) * time,
            ..self.work
        }
    }

    /// Returns the time that a packet of `class` arriving now waits for those before it: the one
    /// being sent, and the queues of its own class and of higher ones. Later pauses and packets
    /// that overtake it are unknown.
    pub fn wait(&self, now: Ps, class: u8) -> Ps {
        let before = self.queues.iter().zip(self.depths).skip(usize::from(class));
        let octets: u64 = before
            .map(|(queue, depth)| depth + queue.len() as u64 * u64::from(WIRE_OVERHEAD))
            .sum();
        self.busy_until.since(now) + self.rate.time(octets)
    }

    /// Returns the octets waiting in the queue of `class`.
    pub fn depth(&self, class: u8) -> u64 {
        self.depths.get(usize::from(class)).copied().unwrap_or(0)
    }

    /// Returns the octets waiting in the deepest queue of data.
    pub fn deepest(&self) -> u64 {
        let data = self.depths.iter().take(usize::from(super::packet::CONTROL));
        data.copied().max().unwrap_or(0)
    }

    /// Appends `packet` to its class's queue.
    pub fn enqueue(&mut self, packet: Packet) {
        let class = usize::from(packet.class);
        if let (Some(queue), Some(depth)) = (self.queues.get_mut(class), self.depths.get_mut(class))
        {
            queue.push_back(packet);
            *depth += u64::from(packet.len);
            self.waiting |= 1 << class;
        }
    }

    /// Removes the next packet that may be sent: from the highest class that is not paused.
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

    /// Returns true if a packet is waiting that may be sent.
    pub const fn has_ready(&self) -> bool {
        self.waiting & !self.paused != 0
    }

    /// Pauses or resumes a class.
    pub const fn pause(&mut self, class: u8, stop: bool) {
        if stop {
            self.paused |= 1 << class;
        } else {
            self.paused &= !(1 << class);
        }
    }

    /// Returns true if a class is paused.
    pub const fn is_paused(&self, class: u8) -> bool {
        self.paused >> class & 1 == 1
    }

    /// Puts a packet on the wire; returns the time of the next arrival to schedule, if this packet
    /// is now the next one.
    pub fn put_on_link(&mut self, arrival: Ps, packet: Packet) -> Option<Ps> {
        // Packets overtake one another only on faulty links.
        if self.in_transit.back().is_none_or(|(at, _)| *at <= arrival) {
            let first = self.in_transit.is_empty();
            self.in_transit.push_back((arrival, packet));
            return first.then_some(arrival);
        }
        let behind = self
            .in_transit
            .iter()
            .rev()
            .take_while(|(at, _)| *at > arrival)
            .count();
        let place = self.in_transit.len() - behind;
        self.in_transit.insert(place, (arrival, packet));
        (place == 0).then_some(arrival)
    }

    /// Returns the packet that arrives `now`, and the time of the next arrival. Returns no packet
    /// if none arrives: an overtaken packet has left its event behind.
    pub fn take_arrived(&mut self, now: Ps) -> (Option<Packet>, Option<Ps>) {
        match self.in_transit.front() {
            Some((at, _)) if *at <= now => {}
            _ => return (None, None),
        }
        let packet = self.in_transit.pop_front().map(|(_, packet)| packet);
        (packet, self.in_transit.front().map(|(at, _)| *at))
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
    fn highest_unpaused_class_goes_first() {
        let mut port = port();
        for (class, index) in [(3, 0), (8, 1), (3, 2), (5, 3)] {
            port.enqueue(packet(class, index));
        }
        assert_eq!(port.depth(3), 200);
        port.pause(5, true);
        port.pause(8, true); // MAC control has no such class on the wire, but has a bit here.
        port.pause(8, false);
        let order: Vec<_> = std::iter::from_fn(|| port.dequeue().map(|p| p.index)).collect();
        assert_eq!(order, [1, 0, 2]);
        assert!(!port.has_ready());
        port.pause(5, false);
        assert_eq!(port.dequeue().map(|p| p.index), Some(3));
        assert_eq!(port.depth(5), 0);
    }

    #[test]
    fn serialisation_includes_wire_overhead() {
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
    fn delayed_packet_is_overtaken() {
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
