//! The data packets of a record, before and after a device that forwards them: what was lost,
//! repeated, reordered or changed, and the queue that each packet found.

use super::bench::{Record, parse};
use super::judge::{ClassifiedFrames, Ledger, data};
use super::plan::{Plan, Setup, Span};
use super::statements::{Statement, Test};
use crate::device::Role;
use crate::units::Ps;
use fcn_observe::{DataPacket, Ecn, FlowKey};
use fcn_wire::ip::Ip;
use fcn_wire::{Frame, Message};
use std::collections::HashMap;
use std::ops::Range;

/// Data packets that any link may lose.
const FEW_LOST: usize = 2;
/// Lost packets are a fault from one in this many on.
const LOST_ONE_IN: usize = 100;

/// Identity of a data packet on both sides of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PacketKey {
    flow: FlowKey,
    opcode: u8,
    psn: u32,
}

/// A data packet sent to the device.
#[derive(Clone, Debug)]
pub struct Passage {
    /// Its flow.
    pub flow: FlowKey,
    /// Time of its first arrival at the device.
    pub came: Span,
    /// Number of its arrivals: its sender may repeat it.
    sendings: usize,
    /// Length of its frame in octets.
    pub octets: u64,
    /// The ECN field that the device has to keep.
    ecn: Ecn,
    /// Times at which the device sent it on.
    pub left: Vec<Span>,
    /// The frames that show these.
    shown: Vec<usize>,
}

/// The data packets sent to the device, in order.
pub struct Traffic {
    /// The packets.
    pub packets: Vec<Passage>,
    by_key: HashMap<PacketKey, usize>,
}

fn key(data: &DataPacket<'_>, message: &Message<'_>) -> Option<PacketKey> {
    let Message::Roce(bth, _) = message else {
        return None;
    };
    Some(PacketKey {
        flow: data.flow(),
        opcode: bth.opcode().0,
        psn: bth.psn(),
    })
}

/// Returns the ECN field of data that a device has to keep: the outermost, unless a tunnel begins
/// at the device.
fn ecn(setup: &Setup<'_>, frame: &Frame<'_>, data: &DataPacket<'_>) -> Ecn {
    match setup.role {
        Role::CongestionPoint => data.ecn,
        _ => Ecn::from_bits(frame.ip().map_or(0, Ip::ecn)),
    }
}

impl Traffic {
    /// Reads the data packets of a record, and records in `ledger` how the device forwarded them.
    pub fn new(
        setup: &Setup<'_>,
        record: &Record,
        classified: &ClassifiedFrames<'_>,
        ledger: &mut Ledger,
    ) -> Self {
        let mut traffic = Self {
            packets: Vec::new(),
            by_key: HashMap::new(),
        };
        for (_, sent, bytes) in record.iter().filter(|(_, frame, _)| !frame.by_device) {
            let frame = parse(bytes, &setup.simulation.profile);
            let Some(data) = DataPacket::from_frame(&frame) else {
                continue;
            };
            // Multicast leaves on any number of links.
            let key = key(&data, &frame.message());
            let Some(key) = key.filter(|_| !data.destination.is_multicast()) else {
                continue;
            };
            let known = traffic.by_key.get(&key);
            if let Some(packet) = known.and_then(|index| traffic.packets.get_mut(*index)) {
                packet.sendings += 1;
                continue;
            }
            traffic.by_key.insert(key, traffic.packets.len());
            traffic.packets.push(Passage {
                flow: key.flow,
                came: sent.span(),
                sendings: 1,
                octets: bytes.len() as u64,
                ecn: ecn(setup, &frame, &data),
                left: Vec::new(),
                shown: Vec::new(),
            });
        }
        traffic.forwarded(setup, classified, ledger);
        traffic.judge_repetition_and_order(ledger);
        traffic
    }

    /// Records when the packets left, and judges their ECN fields.
    fn forwarded(
        &mut self,
        setup: &Setup<'_>,
        classified: &ClassifiedFrames<'_>,
        ledger: &mut Ledger,
    ) {
        for (frame, data) in data(&classified.forwarded) {
            let index = key(&data, &frame.parsed.message()).and_then(|key| self.by_key.get(&key));
            let Some(packet) = index.and_then(|index| self.packets.get_mut(*index)) else {
                continue;
            };
            packet.left.push(frame.captured.span());
            packet.shown.push(frame.index);
            let before = packet.ecn;
            let after = ecn(setup, &frame.parsed, &data);
            let kept = before == after || before.is_ect() && after == Ecn::Ce;
            let why = || {
                let (before, after) = (before.bits(), after.bits());
                format!("the ECN field was {before:02b}, and is {after:02b}")
            };
            ledger.holds(Statement::ForwardedEcn, kept, why, &[frame.index]);
        }
    }

    fn judge_repetition_and_order(&self, ledger: &mut Ledger) {
        use Statement as S;
        // The frame with the packet that came last, of each flow.
        let mut latest: HashMap<FlowKey, usize> = HashMap::new();
        for packet in &self.packets {
            let Some(shown) = packet.shown.first().copied() else {
                continue;
            };
            let (qp, times) = (packet.flow.receiver_qp, packet.left.len());
            let why = || {
                format!(
                    "a packet to QP {qp} left {times} times, and came {}",
                    packet.sendings
                )
            };
            let is_once = times <= packet.sendings;
            ledger.holds(S::ForwardedOnce, is_once, why, &packet.shown);
            // If some were lost, it is unknown which of a sender's attempts left.
            if times != packet.sendings {
                continue;
            }
            let Some(before) = latest.insert(packet.flow, shown) else {
                continue;
            };
            let why = || format!("a packet to QP {qp} left before one that had come before it");
            ledger.holds(S::ForwardedOrder, before < shown, why, &[shown, before]);
        }
    }

    /// Returns the index of a packet of the plan's data.
    #[must_use]
    pub fn find(&self, flow: FlowKey, psn: u32) -> Option<usize> {
        let opcode = fcn_wire::Opcode::RC_SEND_ONLY.0;
        self.by_key.get(&PacketKey { flow, opcode, psn }).copied()
    }

    /// Judges that packets sent within `time` left the device, except those that `may_be_lost`.
    pub fn judge_loss(
        &self,
        record: &Record,
        time: &Range<Ps>,
        may_be_lost: impl Fn(usize) -> bool,
        ledger: &mut Ledger,
    ) {
        let packets = self.packets.iter().enumerate();
        let judged = packets
            .filter(|(index, packet)| time.contains(&packet.came.at) && !may_be_lost(*index));
        let (mut all, mut lost) = (0, 0);
        for (_, packet) in judged {
            all += packet.sendings;
            lost += packet.sendings.saturating_sub(packet.left.len());
        }
        let left = self.packets.iter().any(|packet| !packet.left.is_empty());
        if all == 0 || !left {
            return;
        }
        let forwarded = Statement::ForwardedAll;
        let is_lossy = lost > FEW_LOST && lost * LOST_ONE_IN > all;
        if is_lossy && record.lost_here > 0 {
            return ledger.record_untestable_all(&[forwarded], &record.loss());
        }
        ledger.record_times(Test::Statement(forwarded), all);
        if is_lossy {
            ledger.fails(
                forwarded,
                || format!("{lost} of {all} data packets did not leave"),
                &[],
            );
        }
    }
}

/// Bounds on the depth of the device's egress queue over time, from the packets that came and
/// left.
pub struct Queue {
    /// Octets that may have come by then, and that surely have.
    came: [Vec<(Ps, u64)>; 2],
    /// Octets that may have left by then, and that surely have.
    left: [Vec<(Ps, u64)>; 2],
}

/// Returns the running sums of octets by time.
fn sums(events: impl Iterator<Item = (Ps, u64)>) -> Vec<(Ps, u64)> {
    let mut events: Vec<_> = events.collect();
    events.sort_unstable();
    let mut sum = 0;
    for (_, octets) in &mut events {
        sum += *octets;
        *octets = sum;
    }
    events
}

fn until(sums: &[(Ps, u64)], time: Ps) -> u64 {
    let after = sums.partition_point(|(at, _)| *at <= time);
    let last = after.checked_sub(1).and_then(|last| sums.get(last));
    last.map_or(0, |(_, sum)| *sum)
}

impl Queue {
    /// Creates the bounds from the packets of a record.
    #[must_use]
    pub fn new(traffic: &Traffic) -> Self {
        let packets = || traffic.packets.iter();
        let left = || packets().filter_map(|packet| Some((packet.left.first()?, packet.octets)));
        // Of packets that never left, it is unknown when they were dropped.
        let sure = packets().filter(|packet| !packet.left.is_empty());
        Self {
            came: [
                sums(packets().map(|packet| (packet.came.since, packet.octets))),
                sums(sure.map(|packet| (packet.came.at, packet.octets))),
            ],
            left: [
                sums(left().map(|(span, octets)| (span.since, octets))),
                sums(left().map(|(span, octets)| (span.at, octets))),
            ],
        }
    }

    /// Returns the minimum and maximum of octets that a packet found in the queue.
    #[must_use]
    pub fn depth(&self, came: Span) -> (u64, u64) {
        let before = Ps(came.since.0.saturating_sub(1));
        let least = until(&self.came[1], before).saturating_sub(until(&self.left[0], came.at));
        let most = until(&self.came[0], came.at).saturating_sub(until(&self.left[1], before));
        (least, most)
    }
}

/// Returns the time of completed steps whose packets may be judged by their time.
#[must_use]
pub fn completed(plan: &Plan) -> Range<Ps> {
    let ends = plan.steps.iter().map(|step| step.time.end);
    Ps(0)..ends.max().unwrap_or_default()
}
