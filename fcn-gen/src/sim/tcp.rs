//! Traffic that is not RoCEv2: TCP segments that share queues with the flows. Congestion points
//! also notify its sender's proxy (draft-xiao-rtgwg-proxy-congestion-notification section 1). It is
//! neither answered nor paced: only the packets matter here.

use super::World;
use super::links::Links;
use super::packet::{CE, ECT0, NONE, Octets, Packet};
use crate::truth::MadeBy;
use fcn_node::Ecn;
use fcn_node::congestion_point::{Marking, OtherPacket};
use fcn_wire::compose::{self, Part, UdpChecksum};
use fcn_wire::ip;
use fcn_wire::proxy_cn::FiveTuple;
use rand_xoshiro::rand_core::Rng;
use std::net::IpAddr;

/// Source port of the segments.
const SOURCE_PORT: u16 = 49_152;
/// Destination port of the segments: HTTPS.
const DESTINATION_PORT: u16 = 443;
/// A receive window that limits nothing.
const WINDOW: u16 = u16::MAX;

impl<L: Links> World<'_, L> {
    /// Sends the `number`th TCP segment, from 1, of `node` to the receiver of `flow`.
    pub(super) fn inject_tcp(&mut self, node: u32, flow: usize, number: u64) {
        let simulation = self.simulation;
        let (values, own) = (&simulation.flows[flow], &simulation.nodes[node as usize]);
        let payload = vec![0; values.mtu.into()];
        let sequence = number.wrapping_mul(u64::from(values.mtu)) as u32;
        let class = values.dscp << 2 | ECT0;
        let ip = match values.destination {
            IpAddr::V6(destination) => Part::v6(own.ipv6, destination, class),
            IpAddr::V4(destination) => Part::v4(own.ipv4, destination, class),
        };
        let tcp = Part::Tcp {
            source: SOURCE_PORT,
            destination: DESTINATION_PORT,
            sequence,
            acknowledgement: 0,
            push: false,
            window: WINDOW,
            checksum: UdpChecksum::Compute,
        };
        let parts = [ip, tcp, Part::Bytes(&payload)];
        let built = compose::packet(&parts, &simulation.profile);
        let Some(bytes) = self.built("a TCP segment", built) else {
            return;
        };
        let octets = Octets {
            other: FiveTuple::from_packet(&bytes),
            ..Octets::ip(bytes)
        };
        if let Some(mut packet) = self.frame(values.destination, octets) {
            packet.class = values.priority & 7;
            packet.ecn = ECT0;
            self.host_sends(node, packet);
        }
    }

    /// Asks the role about a packet of such traffic that meets a deep queue, and applies its
    /// decision.
    pub(super) fn tcp_congested(
        &mut self,
        node: u32,
        packet: &Packet,
        depth: u64,
        marking: &Marking,
    ) {
        let Some(tuple) = self.octets.at(packet.extra).and_then(|octets| octets.other) else {
            return;
        };
        let random = self.rng.next_u32();
        let view = OtherPacket {
            tuple,
            ecn: Ecn::from_bits(packet.ecn),
            proxy_option: None,
        };
        let congestion = &mut self.nodes[node as usize].switch().congestion;
        let verdict = congestion.on_other_packet(self.now.into(), &view, (depth, marking), random);
        if verdict.mark_ce
            && let Some(octets) = self.octets.at_mut(packet.extra)
        {
            ip::set_traffic_class(&mut octets.bytes, CE, CE);
            self.recorder.marked(node);
        }
        if let Some(outgoing) = verdict.notify {
            self.notify((node, MadeBy::Switch), &outgoing, Some(packet), NONE);
        }
    }
}
