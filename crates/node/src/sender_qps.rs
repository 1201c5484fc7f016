//! The QP at the sender, which is needed to translate a notification into a CNP: configured, learnt
//! from RDMA CM, or inferred from UDP source ports and acknowledgements if the hosts exchanged QPs
//! by other means \[choice: the drafts do not say how\].

use fcn_observe::data::{DataPacket, FlowKey, Sequence, acknowledges, begins_answer};
use fcn_observe::time::{Time, nanos};
use fcn_observe::{FlowTable, Resolved, Resolver};
use fcn_wire::{Frame, Message, Qp};
use std::collections::HashMap;
use std::net::IpAddr;

/// Source of a sender's QP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KnownBy {
    /// Configuration, which outranks packets.
    Configuration,
    /// The RDMA CM exchange.
    Cm,
    /// Acknowledgements or the UDP source port: inferred.
    Packets,
}

/// QPs at senders.
#[derive(Debug)]
pub struct SenderQps {
    configured: HashMap<FlowKey, Qp>,
    resolver: Resolver,
    /// PSN of each flow's last packet.
    seen: FlowTable<u32>,
}

impl SenderQps {
    /// Starts with the QPs of `configured`, and learns those of at most `limit` connections.
    pub(crate) fn new(configured: &[(FlowKey, Qp)], limit: usize) -> Self {
        Self {
            configured: configured.iter().copied().collect(),
            resolver: Resolver::new(limit),
            seen: FlowTable::new(limit),
        }
    }

    /// Learns from a passing frame: RDMA CM, data, acknowledgements.
    pub fn learn(&mut self, now: Time, frame: &Frame<'_>) {
        match frame.message() {
            Message::RdmaCm(..) => self.resolver.learn(frame),
            Message::Roce(bth, _) if acknowledges(bth.opcode()) => {
                if let Some(ip) = frame.ip() {
                    let port = frame.datagram().map_or(0, |datagram| datagram.source_port);
                    let to = (ip.source, ip.destination, bth.dest_qp());
                    self.acknowledged(now, to, port, bth.psn());
                }
            }
            Message::Roce(bth, _) => {
                let Some(packet) = DataPacket::from_frame(frame) else {
                    return;
                };
                let port = packet.source_port;
                if begins_answer(bth.opcode()) {
                    let to = (packet.source, packet.destination, packet.dest_qp);
                    self.acknowledged(now, to, port, bth.psn());
                }
                if let Some(psn) = Sequence::of(&bth).of_connection() {
                    self.data(now, packet.flow(), port, psn);
                }
            }
            _ => {}
        }
    }

    /// Processes a passing data packet of `flow` from that UDP source port.
    pub fn data(&mut self, now: Time, flow: FlowKey, port: u16, psn: u32) {
        let exchanged = self.resolver.connections().sender_qp(&flow);
        // A known QP need not be inferred.
        if exchanged.is_none() && !self.configured.contains_key(&flow) {
            let (last, begins) = (self.seen).data(flow, nanos(now), (Some(psn), port), || psn);
            *last = psn;
            self.resolver.begins(&flow, begins, port);
        }
    }

    /// Processes a passing acknowledgement from a receiver to a QP at the sender, from that UDP
    /// source port.
    pub fn acknowledged(&mut self, now: Time, to: (IpAddr, IpAddr, Qp), port: u16, psn: u32) {
        let psn = (nanos(now), psn);
        self.resolver.acknowledged(to, port, psn, &self.seen);
    }

    /// Returns the QP at the sender of `flow`, and marks its connection as used.
    pub(crate) fn sender_qp(&mut self, flow: &FlowKey) -> Option<(Qp, KnownBy)> {
        if let Some(qp) = self.configured.get(flow) {
            return Some((*qp, KnownBy::Configuration));
        }
        let (qp, by) = self.resolver.use_sender_qp(flow)?;
        let by = match by {
            Resolved::Port | Resolved::Acks | Resolved::Only => KnownBy::Packets,
            Resolved::Cm | Resolved::Packet => KnownBy::Cm,
        };
        Some((qp, by))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ICRC, RECEIVER, SENDER, Setup, build, ip, udp, with_frame};
    use fcn_wire::Opcode;
    use fcn_wire::bth::BthRepr;
    use fcn_wire::compose::Part;

    fn flow(qp: u32) -> FlowKey {
        FlowKey {
            sender: SENDER.into(),
            receiver: RECEIVER.into(),
            receiver_qp: Qp::truncate(qp),
        }
    }

    /// Builds a packet between the two hosts: data to the receiver, or an acknowledgement to the
    /// sender.
    fn packet(opcode: Opcode, qp: u32, psn: u32) -> Vec<u8> {
        let (from, to) = match opcode {
            Opcode::RC_ACKNOWLEDGE => (RECEIVER, SENDER),
            _ => (SENDER, RECEIVER),
        };
        build(&[
            ip(from.into(), to.into()),
            udp(4791),
            Part::Bth(BthRepr::new(opcode, Qp::truncate(qp), psn)),
            Part::Bytes(&[0; 4]),
            ICRC,
        ])
    }

    fn pass(qps: &mut SenderQps, bytes: &[u8]) {
        with_frame(bytes, |frame| qps.learn(Time::default(), frame));
    }

    fn known(qp: u32, by: KnownBy) -> Option<(Qp, KnownBy)> {
        Some((Qp::truncate(qp), by))
    }

    #[test]
    fn acknowledgements_reveal_qps_exchanged_out_of_band() {
        let mut qps = SenderQps::new(&[], 16);
        for psn in [50_000, 50_001] {
            pass(&mut qps, &packet(Opcode::RC_SEND_ONLY, 0x222, psn));
            // Another flow between the same hosts, with distant PSNs.
            pass(
                &mut qps,
                &packet(Opcode::RC_SEND_ONLY, 0x333, psn + 100_000),
            );
            assert_eq!(qps.sender_qp(&flow(0x222)), None, "one vote is not enough");
            pass(&mut qps, &packet(Opcode::RC_ACKNOWLEDGE, 0x111, psn));
        }
        assert_eq!(qps.sender_qp(&flow(0x222)), known(0x111, KnownBy::Packets));
        assert_eq!(qps.sender_qp(&flow(0x333)), None);
    }

    #[test]
    fn configuration_outranks_rdma_cm_and_that_acknowledgements() {
        let mut qps = SenderQps::new(&[(flow(0x222), Qp::truncate(7))], 16);
        assert_eq!(
            qps.sender_qp(&flow(0x222)),
            known(7, KnownBy::Configuration)
        );
        let mut qps = SenderQps::new(&[], 16);
        for psn in [50_000, 50_001] {
            pass(&mut qps, &packet(Opcode::RC_SEND_ONLY, 0x222, psn));
            pass(&mut qps, &packet(Opcode::RC_ACKNOWLEDGE, 0x444, psn));
        }
        assert_eq!(qps.sender_qp(&flow(0x222)), known(0x444, KnownBy::Packets));
        for message in Setup::v6().messages() {
            pass(&mut qps, &message);
        }
        assert_eq!(qps.sender_qp(&flow(0x222)), known(0x111, KnownBy::Cm));
    }

    #[test]
    fn the_qp_of_a_closed_connection_is_unknown() {
        let mut qps = SenderQps::new(&[], 16);
        for message in Setup::v6().messages() {
            pass(&mut qps, &message);
        }
        assert_eq!(qps.sender_qp(&flow(0x222)), known(0x111, KnownBy::Cm));
        pass(&mut qps, &Setup::v6().disconnect());
        assert_eq!(qps.sender_qp(&flow(0x222)), None);
    }
}
