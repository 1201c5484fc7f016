//! A host on real links: data and acknowledgements of its flows, and connections that are not in the
//! scenario.

use super::IgnoredFrames;
use super::links::RealLinks;
use crate::scenario::model::Flow;
use crate::sim::World;
use crate::sim::connection::Connection;
use crate::sim::packet::{NONE, Octets, Packet, PacketKind, Trace};
use crate::truth::MadeBy;
use fcn_node::{DataPacket, Ecn};
use fcn_wire::bth::{MAX_24, Opcode, Roce};
use fcn_wire::icrc::Verdict;
use fcn_wire::rdma_cm::Cm;
use fcn_wire::{Frame, Message};
use std::net::IpAddr;

impl World<'_, RealLinks> {
    fn pass_over(&mut self, count: impl FnOnce(&mut IgnoredFrames) -> &mut u64) {
        *count(&mut self.links.passed_over) += 1;
    }

    /// Processes a frame at a host: data and acknowledgements of its flows, and self-contained
    /// messages.
    pub(super) fn host_process(&mut self, node: u32, frame: &Frame<'_>) {
        let simulation = self.simulation;
        let own = &simulation.nodes[node as usize];
        let Some(ip) = frame.ip() else { return };
        if ip.destination != own.ipv6 && ip.destination != own.ipv4 {
            return self.pass_over(|counts| &mut counts.not_for_us);
        }
        match frame.message() {
            Message::Roce(bth, Some(roce)) => {
                let key = (ip.destination, bth.dest_qp().get());
                let flow = self.qps.get(&key).copied();
                let values = flow.and_then(|flow| simulation.flows.get(flow as usize));
                let (Some(flow), Some(values)) = (flow, values) else {
                    return self.respond(node, frame, &roce);
                };
                let is_data = values.to == node as usize;
                let peer = if is_data {
                    values.source
                } else {
                    values.destination
                };
                if ip.source != peer || !is_data && roce.aeth().is_none() {
                    return self.respond(node, frame, &roce);
                }
                if !matches!(frame.verify_icrc(), Verdict::Good(_)) {
                    return self.pass_over(|counts| &mut counts.bad_icrc);
                }
                let connection = &mut self.connections[flow as usize];
                if is_data && is_write(bth.opcode()) && !connection.joined {
                    connection.join(values, bth.psn());
                }
                let near = if is_data {
                    connection.expected
                } else {
                    connection.acknowledged
                };
                let index = index_of((values, connection), near, bth.psn());
                let kind = match (is_data, roce.aeth()) {
                    (true, _) if is_write(bth.opcode()) => PacketKind::Data,
                    (false, Some(aeth)) => match aeth.syndrome >> 5 {
                        0 => PacketKind::Ack,
                        // PSN sequence error.
                        3 if aeth.syndrome & 31 == 0 => PacketKind::Nak,
                        3 => {
                            let syndrome = aeth.syndrome;
                            self.give_up(
                                flow,
                                &format!("refuses RDMA WRITEs: NAK, AETH syndrome {syndrome:#04x}"),
                            );
                            return;
                        }
                        _ => return self.pass_over(|counts| &mut counts.out_of_place),
                    },
                    _ => return self.pass_over(|counts| &mut counts.out_of_place),
                };
                let Some(index) = index else {
                    return self.pass_over(|counts| &mut counts.out_of_place);
                };
                if kind == PacketKind::Data {
                    let payload = connection.payload(values, index) as usize;
                    let len = roce.payload().len();
                    if len != payload && len != payload.next_multiple_of(4) {
                        return self.pass_over(|counts| &mut counts.out_of_place);
                    }
                }
                let extra = match frame.ioam_trace() {
                    Some((_, trace)) if kind == PacketKind::Data => self.traces.put(Trace {
                        opt_type: trace.opt_type(),
                        bytes: trace.bytes().to_vec(),
                    }),
                    _ => NONE,
                };
                let packet = Packet {
                    class: values.priority & 7,
                    ecn: ip.ecn(),
                    ack_request: bth.ack_request(),
                    hops: ip.hop_limit,
                    flow,
                    extra,
                    index,
                    ..Packet::new(kind, node, frame.wire_len() as u32)
                };
                self.host_receives(node, packet);
            }
            Message::RdmaCm(..) if !matches!(frame.verify_icrc(), Verdict::Good(_)) => {
                self.links.passed_over.bad_icrc += 1;
            }
            Message::Other => {}
            _ => {
                let bytes = frame.bytes();
                let packet = bytes.get(ip.start..ip.end.min(bytes.len()));
                let octets = Octets::ip(packet.unwrap_or_default().to_vec());
                self.read_frame(node, &octets, frame);
            }
        }
    }

    /// Answers connection management of a connection that is not in the scenario.
    pub(super) fn respond_to_management(
        &mut self,
        node: u32,
        frame: &Frame<'_>,
        message: (u64, &Cm<'_>),
    ) {
        let is_receiver = self
            .simulation
            .flows
            .iter()
            .any(|flow| flow.to == node as usize);
        let (Some(ip), true) = (frame.ip(), is_receiver) else {
            self.links.passed_over.unknown_qp += 1;
            return;
        };
        let (ends, profile) = ((ip.source, ip.destination), &self.simulation.profile);
        let answer = self
            .links
            .responder
            .on_management(self.now, ends, message, profile);
        self.answer(node, ip.source, answer);
    }

    /// Answers a packet to a QP that is not the scenario's, or not from that QP's peer.
    fn respond(&mut self, node: u32, frame: &Frame<'_>, roce: &Roce<'_>) {
        let responder = &mut self.links.responder;
        let known = frame.ip().and_then(|ip| {
            let peer_qp = responder.peer_qp(ip.source, roce.bth().dest_qp())?;
            Some((ip, peer_qp, DataPacket::from_frame(frame)?))
        });
        let Some((ip, peer_qp, data)) = known else {
            return self.pass_over(|counts| &mut counts.unknown_qp);
        };
        if !matches!(frame.verify_icrc(), Verdict::Good(_)) {
            return self.pass_over(|counts| &mut counts.bad_icrc);
        }
        let from = (ip, data.source_port);
        let profile = &self.simulation.profile;
        let answer = self
            .links
            .responder
            .on_packet(self.now, from, roce, profile);
        if data.ecn == Ecn::Ce {
            let now = self.now.into();
            if let Some(cnp) = self.host(node).answer_to_ce(now, &data, peer_qp) {
                self.notify((node, MadeBy::Receiver), &cnp, None, NONE);
            }
        }
        self.answer(node, ip.source, answer);
    }

    fn answer(&mut self, node: u32, to: IpAddr, packet: Option<Vec<u8>>) {
        let packet = packet.and_then(|packet| self.frame(to, Octets::ip(packet)));
        if let Some(packet) = packet {
            self.host_sends(node, packet);
        }
    }
}

/// Returns the index of the packet with this PSN that is nearest to packet `near`; `None` if it
/// would be before the first.
fn index_of((flow, connection): (&Flow, &Connection), near: u64, number: u32) -> Option<u64> {
    let ahead = number.wrapping_sub(connection.psn(flow, near)) & MAX_24;
    let half = 1 << 23;
    if ahead < half {
        near.checked_add(ahead.into())
    } else {
        near.checked_sub(u64::from(MAX_24 + 1 - ahead))
    }
}

/// Returns true if the opcode belongs to an RDMA WRITE without immediate data, which flows consist
/// of.
fn is_write(opcode: Opcode) -> bool {
    [
        Opcode::RC_WRITE_FIRST,
        Opcode::RC_WRITE_MIDDLE,
        Opcode::RC_WRITE_LAST,
        Opcode::RC_WRITE_ONLY,
    ]
    .contains(&opcode)
}
