//! A switch on real links: it forwards octets as received, and takes the data for its roles from
//! them.

use super::links::RealLinks;
use super::{ETHERNET, destination_at, ecn_at, mac};
use crate::scenario::model::NodeKind;
use crate::sim::World;
use crate::sim::packet::{CE, CONTROL, DataInfo, HOPS, NONE, Octets, Packet, PacketKind, Pool};
use fcn_node::{DataPacket, Ecn};
use fcn_wire::header::ethernet;
use fcn_wire::proxy_cn::FiveTuple;
use fcn_wire::{Frame, Layer, Message, ip};

impl World<'_, RealLinks> {
    /// Processes a frame at a switch: learns from it, and forwards or consumes it.
    pub(super) fn switch_process(
        &mut self,
        node: u32,
        came_by: u32,
        frame: &Frame<'_>,
        ether_type: u16,
    ) {
        let now = self.now.into();
        let state = self.nodes[node as usize].switch();
        if frame.routing().is_some() {
            state.congestion.on_transit(now, frame);
        }
        state.learn(now, frame);
        let bytes = frame.bytes();
        let outermost = frame
            .inner_spans()
            .iter()
            .find(|span| matches!(span.layer, Layer::Ipv4 | Layer::Ipv6))
            .map(|span| span.start);
        let data = DataPacket::from_frame(frame);
        let inner = frame.ip().copied();
        let begin = match self.decapsulation_offset(node, frame, outermost) {
            Some(inner) => inner,
            None => ETHERNET,
        };
        let destination = match (begin, outermost) {
            (ETHERNET, Some(at)) => destination_at(bytes, at),
            (ETHERNET, None) => inner.map(|ip| ip.destination),
            _ => inner.map(|ip| ip.destination),
        };
        let to = destination.and_then(|address| self.addresses.get(&address).copied());
        let is_cm_or_notification = match frame.message() {
            Message::Roce(..) => false,
            Message::Other => outermost.is_none(),
            _ => true,
        };
        let class = match inner {
            Some(ip) if !is_cm_or_notification => {
                self.links.classes[usize::from(ip.traffic_class >> 2)]
            }
            _ => CONTROL,
        };
        let place = self.octets.take();
        let Some(octets) = self.octets.at_mut(place) else {
            return;
        };
        let mut kept = std::mem::take(&mut octets.bytes);
        kept.clear();
        kept.extend_from_slice(bytes.get(begin..).unwrap_or_default());
        *octets = Octets {
            bytes: kept,
            ether_type,
            macs: mac(bytes, 0).zip(mac(bytes, 6)),
            ..Octets::default()
        };
        let mut ecn = inner.map_or(0, |ip| ip.ecn());
        if begin != ETHERNET {
            // Decapsulated; congestion met in the tunnel stays marked (RFC 6040).
            let is_v4 = inner.is_some_and(|ip| ip.source.is_ipv4());
            octets.ether_type = if is_v4 {
                ethernet::IPV4
            } else {
                ethernet::IPV6
            };
            octets.macs = None;
            let end = inner.map_or(0, |ip| ip.end - ip.start);
            octets.bytes.truncate(end);
            let outer = outermost.and_then(|at| ecn_at(bytes, at));
            if outer == Some(CE) && ecn != 0 {
                ip::set_traffic_class(&mut octets.bytes, CE, CE);
                ecn = CE;
            }
        }
        let offset = |at: usize| at.saturating_sub(begin);
        if let Some(data) = data {
            let outer_at = if begin == ETHERNET {
                outermost
            } else {
                inner.map(|ip| ip.start)
            };
            let trace = frame.ioam_trace().map(|(at, trace)| {
                let at = offset(at);
                (trace.opt_type(), at..at + trace.bytes().len())
            });
            octets.data = Some(DataInfo {
                data: DataPacket {
                    source: data.source,
                    destination: data.destination,
                    source_port: data.source_port,
                    destination_port: data.destination_port,
                    dest_qp: data.dest_qp,
                    ecn: if begin == ETHERNET {
                        data.ecn
                    } else {
                        Ecn::from_bits(ecn)
                    },
                    outer: data.outer.filter(|_| begin == ETHERNET),
                    trace: None,
                    proxy_option: data.proxy_option,
                },
                trace,
                ecn_at: outer_at.map(offset),
                inner: inner.map_or(0..0, |ip| offset(ip.start)..offset(ip.end)),
            });
        } else if !is_cm_or_notification && matches!(frame.message(), Message::Other) {
            octets.other = FiveTuple::from_packet(&octets.bytes);
        }
        let len = (ETHERNET + octets.bytes.len()) as u32;
        let mut packet = Packet {
            class,
            ecn,
            hops: inner.map_or(HOPS, |ip| ip.hop_limit),
            came_by,
            extra: place,
            ..Packet::new(PacketKind::Frame, to.unwrap_or(NONE), len)
        };
        if packet.to != NONE && self.stops_at_border(node, came_by, &packet) {
            self.discard(&packet);
        } else if packet.to == node {
            self.consume(node, &packet);
            self.discard(&packet);
        } else {
            if packet.to != NONE && matches!(packet_type(&self.octets, place), Some(true)) {
                self.enter_tunnel(node, &mut packet);
            }
            self.forward(node, packet);
        }
    }

    /// Returns the offset of a frame's inner packet, if it leaves its tunnel here.
    fn decapsulation_offset(
        &self,
        node: u32,
        frame: &Frame<'_>,
        outermost: Option<usize>,
    ) -> Option<usize> {
        let NodeKind::Switch(switch) = &self.simulation.nodes[node as usize].kind else {
            return None;
        };
        switch.edge.as_ref()?;
        let inner = frame.ip()?;
        let is_mpls = frame
            .inner_spans()
            .iter()
            .any(|span| span.layer == Layer::Mpls);
        let host = self.addresses.get(&inner.destination).copied()?;
        let ours = match outermost {
            Some(outer) if outer < inner.start => {
                let own = self.simulation.nodes[node as usize].ipv6;
                destination_at(frame.bytes(), outer) == Some(own.into())
            }
            // No header names the tunnel's end: it is here if no tunnel continues.
            Some(_) => is_mpls && self.routes.tunnel(node as usize, host as usize).is_none(),
            None => false,
        };
        ours.then_some(inner.start)
    }

    /// Floods a switch's packet without a known route to all other ports, like a bridge.
    pub(super) fn flood_octets(&mut self, node: u32, packet: Packet) {
        // Rare, and with few ports; a bump in the wire has only one other port.
        let ports = &self.nodes[node as usize].switch().ports;
        let mut others = ports.iter().copied().filter(|port| *port != packet.came_by);
        let (Some(first), rest) = (others.next(), others.collect::<Vec<_>>()) else {
            return self.lose(&packet);
        };
        let is_one = self.links.is_one;
        for port in rest.into_iter().filter(|_| !is_one) {
            let copy = self.octets.at(packet.extra).cloned().unwrap_or_default();
            let extra = self.octets.put(copy);
            self.egress(node, port, Packet { extra, ..packet });
        }
        self.egress(node, first, packet);
    }
}

/// Returns true if pooled octets are an IP packet, and false for protocols that a tunnel of IP does
/// not carry.
fn packet_type(octets: &Pool<Octets>, place: u32) -> Option<bool> {
    let ether_type = octets.at(place)?.ether_type;
    Some(matches!(ether_type, ethernet::IPV4 | ethernet::IPV6))
}
