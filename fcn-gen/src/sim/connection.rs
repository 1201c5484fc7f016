//! A reliable connection (InfiniBand volume 1, section 9.7) as far as RDMA WRITE needs it: the next
//! packet, acknowledgements, retransmissions. The NIC (`host.rs`) decides when packets leave.
//!
//! Packets are counted from 0 over the connection's whole life; the PSN is that number plus the
//! first PSN, modulo 2²⁴.

use super::hash::mix;
use crate::scenario::model::Flow;
use crate::units::Ps;
use fcn_node::reaction_point::FlowId;
use fcn_wire::bth::MAX_24;
use fcn_wire::{Opcode, Qp};
use std::collections::{BTreeMap, VecDeque};

/// Stage of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// Not begun.
    #[default]
    Idle,
    /// ConnectRequest sent this many times.
    Connecting(u8),
    /// Open for data.
    Open,
    /// DisconnectRequest sent this many times.
    Disconnecting(u8),
    /// Closed.
    Closed,
}

/// The receiver's end as recorded by the sender: taken from the scenario, until a ConnectReply
/// differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Communication ID.
    pub id: u32,
    /// QP.
    pub qp: Qp,
    /// PSN of the first data packet.
    pub first_psn: u32,
    /// Memory region that may be written.
    pub region: Region,
}

/// A memory region of a receiver: messages fill it one after another, and then start over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Start address.
    pub address: u64,
    /// Remote key.
    pub rkey: u32,
    /// Length in octets.
    pub len: u32,
}

impl Peer {
    /// Returns the receiver's end as defined by the scenario.
    const fn new(flow: &Flow) -> Self {
        Self {
            id: 0,
            qp: flow.receiver_qp,
            first_psn: flow.first_psn,
            region: Region {
                address: 0x7F00_0000_0000,
                rkey: flow.receiver_qp.get() << 8 | 1,
                len: 1 << 30,
            },
        }
    }
}

/// Both ends of a connection.
#[derive(Debug, Default)]
pub struct Connection {
    /// The receiver's end, learnt from a ConnectReply.
    pub learnt: Option<Peer>,
    /// Current stage.
    pub stage: Stage,
    /// True if it was ever open.
    pub opened: bool,
    /// The flow's identifier in the sender's reaction point.
    pub control: Option<FlowId>,
    /// Packets per message.
    pub packets_a_message: u64,
    /// Total number of packets to send; `u64::MAX` if there is no end.
    pub total: u64,
    /// Index of the next packet to send.
    pub next: u64,
    /// Number of packets acknowledged.
    pub acknowledged: u64,
    /// Number of packets sent at least once.
    pub sent: u64,
    /// Times at which the packets from the first unacknowledged one on were sent last.
    pub sent_at: VecDeque<Ps>,
    /// Maximum number of packets in flight that the flow's controller allows.
    pub window: Option<u64>,
    /// Time at which pacing permits the next packet.
    pub due: Ps,
    /// Number of changes to the header fields used by switches for path selection, modulo 256.
    pub path: u8,
    /// True if the flow is in a list of the NIC or waits for an event.
    pub queued: bool,
    /// Time at which the sender stops waiting for an acknowledgement.
    pub deadline: Ps,
    /// True if a timeout is scheduled.
    pub timer: bool,
    /// Receiver: index of the expected packet.
    pub expected: u64,
    /// Receiver: true if a NAK for that packet has been sent.
    pub nak_sent: bool,
    /// Receiver on a link: true if the position in the flow is known, from its beginning or from
    /// the first packet received.
    pub joined: bool,
    /// Counts for the ground truth.
    pub counts: Counts,
}

/// Counters of a connection for the ground truth.
#[derive(Debug, Default)]
pub struct Counts {
    /// Data packets sent.
    pub packets: u64,
    /// Retransmissions among them.
    pub again: u64,
    /// Octets delivered in order.
    pub delivered: u64,
    /// Octets among them delivered during the warm-up.
    pub warm: u64,
    /// Time spent waiting since the warm-up, as far as a retransmission timeout ended the wait.
    pub waited: Ps,
    /// Data packets that arrived marked CE.
    pub ce: u64,
    /// Fast CNPs after which it changed its path.
    pub detours: u64,
    /// Notifications that slowed the flow, by kind.
    pub slowed: BTreeMap<&'static str, u64>,
    /// Time of the first rate reduction.
    pub first_slowed: Option<Ps>,
    /// Time of the acknowledgement that completed the flow.
    pub done_at: Option<Ps>,
    /// Samples of the flow's rate.
    pub rate: Vec<(u64, u64)>,
}

/// Packets that an acknowledgement or NAK acknowledges for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acked {
    /// Their payload, in octets.
    pub octets: u64,
    /// Time at which the last of them was sent; `None` if there are none.
    pub sent_at: Option<Ps>,
}

/// Response of a receiver to a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing.
    Nothing,
    /// Acknowledge everything up to this packet.
    Ack(u64),
    /// Request this packet.
    Nak(u64),
}

impl Connection {
    /// Creates a connection that has not begun.
    pub fn new(flow: &Flow) -> Self {
        let packets_a_message = u64::from(flow.message.div_ceil(u32::from(flow.mtu)).max(1));
        let total = flow
            .messages
            .map_or(u64::MAX, |n| n.saturating_mul(packets_a_message));
        Self {
            packets_a_message,
            total,
            ..Self::default()
        }
    }

    /// Returns the receiver's end.
    pub fn peer(&self, flow: &Flow) -> Peer {
        self.learnt.unwrap_or_else(|| Peer::new(flow))
    }

    /// Returns the PSN of packet `index`.
    pub fn psn(&self, flow: &Flow, index: u64) -> u32 {
        let first = self.peer(flow).first_psn;
        (u64::from(first).wrapping_add(index) & u64::from(MAX_24)) as u32
    }

    /// Returns the address that the message of packet `index` is written to.
    pub fn address(&self, flow: &Flow, index: u64) -> u64 {
        let Region { address, len, .. } = self.peer(flow).region;
        let fit = (len / flow.message.max(1)).max(1);
        let place = index / self.packets_a_message % u64::from(fit);
        address.wrapping_add(place * u64::from(flow.message))
    }

    /// Returns true if there is a packet to send within the window.
    pub fn may_send(&self, flow: &Flow) -> bool {
        self.stage == Stage::Open
            && self.next < self.total
            && self.next - self.acknowledged < self.most_in_flight(flow)
    }

    /// Returns the maximum number of packets in flight: by the scenario and the controller.
    fn most_in_flight(&self, flow: &Flow) -> u64 {
        let most = u64::from(flow.window);
        self.window.map_or(most, |window| window.min(most)).max(1)
    }

    /// Returns true if everything was sent and acknowledged.
    pub const fn is_done(&self) -> bool {
        self.acknowledged >= self.total
    }

    /// Returns true if it neither sends nor waits for anything.
    pub fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Idle | Stage::Closed)
    }

    /// Stops posting messages; the current one is completed.
    pub fn stop(&mut self) {
        let begun = self.sent.div_ceil(self.packets_a_message) * self.packets_a_message;
        self.total = self.total.min(begun);
    }

    /// Returns the index of the next packet, and whether it requests an acknowledgement.
    pub fn send(&mut self, flow: &Flow, now: Ps) -> (u64, bool) {
        let index = self.next;
        match self.sent_at.get_mut((index - self.acknowledged) as usize) {
            Some(at) => *at = now,
            None => self.sent_at.push_back(now),
        }
        self.next += 1;
        self.counts.again += u64::from(index < self.sent);
        self.sent = self.sent.max(self.next);
        self.counts.packets += 1;
        let last = self.next.is_multiple_of(self.packets_a_message);
        let at_window = self.next - self.acknowledged >= self.most_in_flight(flow);
        let every = self.next.is_multiple_of(u64::from(flow.ack_every.max(1)));
        (index, last || every || at_window)
    }

    /// Joins a flow at the first packet received on a link. If the packet cannot be among the
    /// flow's first, whose beginning may have been lost, this receiver was restarted: it continues
    /// at that packet, since otherwise both ends would wait for ever.
    pub fn join(&mut self, flow: &Flow, number: u32) {
        let index = u64::from(number.wrapping_sub(self.psn(flow, 0)) & MAX_24);
        if flow.rdma_cm || index >= u64::from(flow.window.max(1)) {
            self.expected = index;
        }
        self.joined = true;
    }

    /// Returns the receiver's response to packet `index` with `payload` octets.
    pub fn receive(&mut self, index: u64, payload: u32, ack_request: bool) -> Answer {
        if index > self.expected {
            // One negative acknowledgement per gap (section 9.7.5.2.3).
            let first = !std::mem::replace(&mut self.nak_sent, true);
            return if first {
                Answer::Nak(self.expected)
            } else {
                Answer::Nothing
            };
        }
        if index == self.expected {
            self.expected += 1;
            self.nak_sent = false;
            self.counts.delivered += u64::from(payload);
        }
        // Duplicates are acknowledged again, too.
        if ack_request {
            Answer::Ack(self.expected - 1)
        } else {
            Answer::Nothing
        }
    }

    /// Processes an acknowledgement of everything up to `index`; returns `None` if it is old, or for
    /// a packet that was not sent.
    pub fn acknowledge(&mut self, flow: &Flow, index: u64) -> Option<Acked> {
        let is_new = index >= self.acknowledged && index < self.sent;
        is_new.then(|| {
            let acked = self.acknowledged_before(flow, index + 1);
            self.next = self.next.max(self.acknowledged);
            acked
        })
    }

    /// Goes back to packet `index`, which the receiver asks for; returns `None` if that packet was
    /// acknowledged or not sent.
    pub fn go_back(&mut self, flow: &Flow, index: u64) -> Option<Acked> {
        let is_valid = index >= self.acknowledged && index < self.sent;
        is_valid.then(|| {
            self.next = index;
            self.acknowledged_before(flow, index)
        })
    }

    /// Returns the payload of all packets before `index`, in octets.
    fn octets_before(&self, flow: &Flow, index: u64) -> u64 {
        let messages = index / self.packets_a_message;
        let packets = index % self.packets_a_message;
        messages * u64::from(flow.message) + packets * u64::from(flow.mtu)
    }

    /// Marks all packets before `index` as acknowledged.
    fn acknowledged_before(&mut self, flow: &Flow, index: u64) -> Acked {
        let packets = index - self.acknowledged;
        let octets = self.octets_before(flow, index) - self.octets_before(flow, self.acknowledged);
        self.acknowledged = index;
        Acked {
            octets,
            sent_at: self.sent_at.drain(..packets as usize).next_back(),
        }
    }

    /// Returns the opcode of packet `index`.
    pub const fn opcode(&self, index: u64) -> Opcode {
        let place = index % self.packets_a_message;
        match (place == 0, place + 1 == self.packets_a_message) {
            (true, true) => Opcode::RC_WRITE_ONLY,
            (true, false) => Opcode::RC_WRITE_FIRST,
            (false, true) => Opcode::RC_WRITE_LAST,
            (false, false) => Opcode::RC_WRITE_MIDDLE,
        }
    }

    /// Returns the payload length of packet `index` in octets.
    pub fn payload(&self, flow: &Flow, index: u64) -> u32 {
        let mtu = u32::from(flow.mtu);
        if index % self.packets_a_message + 1 < self.packets_a_message {
            return mtu;
        }
        let before = (self.packets_a_message - 1) as u32;
        flow.message.saturating_sub(before.saturating_mul(mtu))
    }
}

/// Returns UDP source port and IPv6 flow label of a flow's data packets after `path` changes of
/// path: the fields that switches use to choose among equal-cost paths. The initial values are the
/// scenario's. Ports stay in the dynamic range (RFC 6335), and a label is never 0.
pub const fn entropy(flow: &Flow, path: u8) -> (u16, u32) {
    if path == 0 {
        return (flow.source_port, flow.flow_label);
    }
    let own = (flow.source_port as u64) << 28 | (flow.flow_label as u64) << 8 | path as u64;
    let drawn = mix(own);
    let label = (drawn >> 32) as u32 & 0x000F_FFFF;
    (
        0xC000 | (drawn as u16 & 0x3FFF),
        if label == 0 { 1 } else { label },
    )
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn flow() -> Flow {
        Flow {
            name: "f".into(),
            from: 0,
            to: 1,
            source: "2001:db8::1".parse().unwrap(),
            destination: "2001:db8::2".parse().unwrap(),
            sender_qp: Qp::truncate(1),
            receiver_qp: Qp::truncate(2),
            source_port: 49_152,
            flow_label: 0,
            first_psn: 0xFF_FFFE,
            start: Ps(0),
            stop: Ps::MAX,
            messages: Some(2),
            message: 2_500,
            mtu: 1_024,
            window: 4,
            ack_every: 16,
            retransmit_timeout: Ps::from_nanos(1_000_000),
            priority: 3,
            dscp: 26,
            ecn: true,
            ioam: None,
            proxy_option: None,
            rdma_cm: false,
            rate_limit: None,
        }
    }

    fn open() -> (Flow, Connection) {
        let flow = flow();
        let mut connection = Connection::new(&flow);
        connection.stage = Stage::Open;
        (flow, connection)
    }

    #[test]
    fn messages_are_segmented_by_mtu() {
        let (flow, connection) = open();
        let cut: Vec<_> = (0..6)
            .map(|i| {
                (
                    connection.opcode(i),
                    connection.payload(&flow, i),
                    connection.psn(&flow, i),
                )
            })
            .collect();
        let (first, middle, last) = (
            Opcode::RC_WRITE_FIRST,
            Opcode::RC_WRITE_MIDDLE,
            Opcode::RC_WRITE_LAST,
        );
        assert_eq!(
            cut,
            [
                (first, 1_024, 0xFF_FFFE),
                (middle, 1_024, 0xFF_FFFF),
                (last, 452, 0),
                (first, 1_024, 1),
                (middle, 1_024, 2),
                (last, 452, 3)
            ]
        );
        let small = Flow {
            message: 1_024,
            ..flow
        };
        let connection = Connection::new(&small);
        assert_eq!(connection.opcode(0), Opcode::RC_WRITE_ONLY);
        assert_eq!(connection.payload(&small, 0), 1_024);
        let empty = Flow {
            message: 0,
            ..small
        };
        assert_eq!(Connection::new(&empty).payload(&empty, 0), 0);
    }

    #[test]
    fn window_stops_the_sender_until_acknowledged() {
        let (flow, mut c) = open();
        let asks: Vec<_> =
            std::iter::from_fn(|| c.may_send(&flow).then(|| c.send(&flow, Ps(0)))).collect();
        assert_eq!(
            asks,
            [(0, false), (1, false), (2, true), (3, true)],
            "at a message's end and at the window"
        );
        assert_eq!(c.counts.again, 0);
        assert_eq!(
            c.acknowledge(&flow, 2).map(|acked| acked.octets),
            Some(2_500)
        );
        assert_eq!(c.acknowledge(&flow, 1), None, "old");
        assert_eq!(c.acknowledge(&flow, 9), None, "never sent");
        assert!(c.may_send(&flow));
    }

    #[test]
    fn gap_causes_one_nak_and_is_filled() {
        let (flow, mut c) = open();
        for _ in 0..4 {
            c.send(&flow, Ps(0));
        }
        assert_eq!(c.receive(0, 1_024, false), Answer::Nothing);
        assert_eq!(c.receive(2, 452, true), Answer::Nak(1));
        assert_eq!(c.receive(3, 1_024, true), Answer::Nothing);
        assert_eq!(c.go_back(&flow, 1).map(|acked| acked.octets), Some(1_024));
        assert_eq!(c.send(&flow, Ps(0)), (1, false));
        assert_eq!(c.counts.again, 1);
        assert_eq!(c.receive(1, 1_024, false), Answer::Nothing);
        assert_eq!(c.receive(1, 1_024, true), Answer::Ack(1), "a duplicate");
        assert_eq!(c.send(&flow, Ps(0)), (2, true));
        assert_eq!(c.counts.again, 2);
        assert_eq!(c.receive(2, 452, true), Answer::Ack(2));
        assert_eq!(
            (c.counts.packets, c.counts.again, c.counts.delivered),
            (6, 2, 2_500)
        );
        assert_eq!(c.go_back(&flow, 9), None, "never sent");
    }

    #[test]
    fn each_path_has_its_own_port_and_label() {
        let flow = flow();
        assert_eq!(entropy(&flow, 0), (flow.source_port, flow.flow_label));
        let mut ports: Vec<u16> = (1..=16).map(|path| entropy(&flow, path).0).collect();
        assert!(ports.iter().all(|port| *port >= 0xC000));
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 16);
    }

    #[test]
    fn stopping_completes_the_current_message() {
        let (flow, mut c) = open();
        c.total = u64::MAX;
        c.stop();
        assert_eq!(c.total, 0, "nothing begun");
        let (_, mut c) = open();
        c.send(&flow, Ps(0));
        c.stop();
        assert_eq!(c.total, 3);
        assert!(!c.is_done());
    }
}
