//! RDMA CM between hosts: connections are requested, accepted, used and taken down. Also the ICMPv6
//! answer to an option that a host does not recognise. The wire crate implements the formats.

use super::World;
use super::connection::{Peer, Region, Stage};
use super::links::Links;
use super::packet::Octets;
use crate::scenario::model::Flow;
use crate::units::Ps;
use fcn_wire::bth::{BthRepr, Deth, Opcode, Qp};
use fcn_wire::compose::{self, Part};
use fcn_wire::emit::Carrier;
use fcn_wire::header::{icmp, ipv6};
use fcn_wire::icrc::Policy;
use fcn_wire::mad::{GSI_Q_KEY, Mad};
use fcn_wire::rdma_cm::{
    Cm, CmRepr, ConnectReply, ConnectReplyRepr, ConnectRequestRepr, DisconnectReplyRepr,
    DisconnectRequestRepr, IP_CM_LEN, MessageRepr, PathMtu, ReadyToUseRepr,
};
use fcn_wire::{Frame, Message, Profile};
use std::net::Ipv6Addr;

/// Communication ID of a flow's sender, to which the flow's index is added.
const SENDER_ID: u32 = 0x0A00_0000;
/// Communication ID of a flow's receiver, to which the flow's index is added.
const RECEIVER_ID: u32 = 0x0B00_0000;
/// Mask of the flow's index in a communication ID.
const INDEX: u32 = 0x00FF_FFFF;
/// Port of the RDMA IP CM service on which receivers listen.
const SERVICE_PORT: u16 = 18_515;
/// Time until a request without an answer is repeated. On real links it grows fourfold with each
/// try, because programs answer.
const RESPONSE_TIMEOUT: Ps = Ps(4_000_000_000);
/// Maximum number of tries of a request.
const TRIES: u8 = 5;
/// Time that a live receiver waits for an acknowledgement of its own, 4.096 µs · 2ⁿ: half a second,
/// as in Linux's requests.
const ACK_TIMEOUT: u8 = 17;
/// First octet of the private data of librdmacm's rsockets: the version.
const RSOCKET_VERSION: u8 = 1;
/// IPv6's minimum MTU in octets, which limits ICMPv6's quotation (RFC 4443 section 2.4).
const MINIMUM_MTU: usize = 1_280;

impl<L: Links> World<'_, L> {
    /// Starts a flow: with a ConnectRequest, or by opening it immediately.
    pub(super) fn start(&mut self, flow: u32) {
        if self.simulation.flows[flow as usize].rdma_cm {
            self.connections[flow as usize].stage = Stage::Connecting(0);
            self.send_request(flow);
        } else {
            self.open(flow);
        }
    }

    /// Stops a flow from posting messages.
    pub(super) fn stop(&mut self, flow: u32) {
        let connection = &mut self.connections[flow as usize];
        connection.stop();
        if connection.stage == Stage::Open && connection.is_done() {
            connection.counts.done_at = Some(self.now);
            self.finish(flow);
        }
    }

    /// Opens a flow for data.
    fn open(&mut self, flow: u32) {
        let values = &self.simulation.flows[flow as usize];
        let host = self.nodes[values.from].host();
        let line = self.ports[host.port as usize].rate;
        let line = values.rate_limit.map_or(line, |limit| line.min(limit));
        let connection = &mut self.connections[flow as usize];
        let (own, peer) = (values.sender_qp, connection.peer(values).qp);
        let line = line.bits_per_second() as f64;
        let id = host.reaction.open(own, values.destination, peer, line);
        host.flows.extend(id.map(|id| (id, flow)));
        connection.control = id;
        connection.stage = Stage::Open;
        connection.opened = true;
        let is_done = connection.is_done();
        self.apply_window(flow);
        if is_done {
            self.finish(flow);
        } else {
            self.make_ready(flow);
        }
    }

    /// Finishes a flow whose data were all acknowledged.
    pub(super) fn finish(&mut self, flow: u32) {
        let values = &self.simulation.flows[flow as usize];
        let connection = &mut self.connections[flow as usize];
        if let Some(id) = connection.control.take() {
            let host = self.nodes[values.from].host();
            host.reaction.close(id);
            host.flows.remove(&id);
        }
        if values.rdma_cm {
            connection.stage = Stage::Disconnecting(0);
            self.send_request(flow);
        } else {
            connection.stage = Stage::Closed;
        }
    }

    /// Sends the request that a connection waits to have answered, with a limited number of tries.
    pub(super) fn send_request(&mut self, flow: u32) {
        let values = &self.simulation.flows[flow as usize];
        let connection = &mut self.connections[flow as usize];
        let peer = connection.peer(values);
        let mut patience = RESPONSE_TIMEOUT;
        let message: Option<MessageRepr> = match &mut connection.stage {
            Stage::Connecting(tries) if *tries < TRIES => {
                let mut request = request(flow, values);
                if let (true, Some(request)) = (L::REAL, &mut request) {
                    patience = Ps(patience.0 << (2 * *tries));
                    // An rsocket of librdmacm expects its version, and writes nothing if it gets no
                    // credits.
                    request.private_data[IP_CM_LEN] = RSOCKET_VERSION;
                    request.primary.local_ack_timeout = ACK_TIMEOUT;
                }
                *tries += 1;
                request.map(MessageRepr::from)
            }
            Stage::Disconnecting(tries) if *tries < TRIES => {
                *tries += 1;
                let request = DisconnectRequestRepr {
                    local_comm_id: SENDER_ID | flow,
                    remote_comm_id: peer.id,
                    remote_qpn: peer.qp.get(),
                    ..DisconnectRequestRepr::default()
                };
                Some(request.into())
            }
            stage => {
                *stage = Stage::Closed;
                None
            }
        };
        let Some(message) = message else { return };
        self.plan_timeout(flow, self.now + patience);
        // A transaction ID of its own, shared by all its messages.
        self.send_mad(flow, true, (u64::from(flow) + 1, message));
    }

    /// Processes connection management; returns true if the frame was that.
    pub(super) fn manage(&mut self, node: u32, frame: &Frame<'_>) -> bool {
        let Message::RdmaCm(roce, message) = frame.message() else {
            return false;
        };
        let transaction = Mad::new_checked(roce.payload()).map_or(0, |mad| mad.transaction_id());
        let id = match message {
            Cm::ConnectRequest(_) => message.local_comm_id(),
            _ => message.remote_comm_id(),
        };
        let id = id.unwrap_or(0);
        let flow = id & INDEX;
        let values = self.simulation.flows.get(flow as usize);
        let values = values.filter(|values| is_about(values, flow, id, frame, &message));
        let Some(values) = values else {
            L::answer_management(self, node, frame, (transaction, &message));
            return true;
        };
        match message {
            Cm::ConnectRequest(_) if values.to as u32 == node => {
                if L::REAL {
                    // The sender may have been restarted.
                    let connection = &mut self.connections[flow as usize];
                    (connection.expected, connection.nak_sent) = (0, false);
                    connection.joined = true;
                }
                let reply = ConnectReplyRepr {
                    local_comm_id: RECEIVER_ID | flow,
                    remote_comm_id: SENDER_ID | flow,
                    local_qpn: values.receiver_qp.get(),
                    local_ca_guid: guid(values.to),
                    starting_psn: values.first_psn,
                    ..ConnectReplyRepr::default()
                };
                self.send_mad(flow, false, (transaction, reply.into()));
            }
            Cm::ConnectReply(reply) if values.from as u32 == node => {
                let connection = &mut self.connections[flow as usize];
                let begins = matches!(connection.stage, Stage::Connecting(_));
                if begins {
                    let peer = learn(connection.peer(values), &reply);
                    connection.learnt = Some(peer);
                    self.links.connection_opened(self.now, values, &peer);
                    let (len, room) = (values.message, peer.region.len);
                    if len > room {
                        return self.give_up(flow, &format!("accepts writes of {room} octets, too few for a message of {len} (--set message=SIZE)"));
                    }
                }
                let ready = ReadyToUseRepr {
                    local_comm_id: SENDER_ID | flow,
                    remote_comm_id: reply.local_comm_id(),
                    ..ReadyToUseRepr::default()
                };
                self.send_mad(flow, true, (transaction, ready.into()));
                if begins {
                    self.open(flow);
                }
            }
            Cm::ConnectReject(reject) if values.from as u32 == node => {
                let reason = reject.reason();
                return self.give_up(
                    flow,
                    &format!("refuses the connection: ConnectReject, reason {reason}"),
                );
            }
            // Also if it is down already, since the answer may have been lost.
            Cm::DisconnectRequest(request) if values.from as u32 == node => {
                let reply = DisconnectReplyRepr {
                    local_comm_id: SENDER_ID | flow,
                    remote_comm_id: request.local_comm_id(),
                    ..DisconnectReplyRepr::default()
                };
                self.send_mad(flow, true, (transaction, reply.into()));
                return self.give_up(flow, "has closed the connection");
            }
            Cm::DisconnectRequest(_) if values.to as u32 == node => {
                let reply = DisconnectReplyRepr {
                    local_comm_id: RECEIVER_ID | flow,
                    remote_comm_id: SENDER_ID | flow,
                    ..DisconnectReplyRepr::default()
                };
                self.send_mad(flow, false, (transaction, reply.into()));
            }
            Cm::DisconnectReply(_) if values.from as u32 == node => {
                self.connections[flow as usize].stage = Stage::Closed;
            }
            _ => {}
        }
        true
    }

    /// Ends the run because the receiver of an incomplete flow does not do its part.
    pub(super) fn give_up(&mut self, flow: u32, why: &str) -> bool {
        let values = &self.simulation.flows[flow as usize];
        let stage = self.connections[flow as usize].stage;
        if !matches!(stage, Stage::Connecting(_) | Stage::Open) {
            return true;
        }
        let failure = format!("{}: the receiver {} {why}", values.name, values.destination);
        self.failed.get_or_insert(failure.into());
        true
    }

    /// Sends a management datagram from a flow's sender to its receiver, or vice versa.
    fn send_mad(&mut self, flow: u32, by_sender: bool, (transaction, message): (u64, MessageRepr)) {
        let values = &self.simulation.flows[flow as usize];
        let (from, source, destination) = if by_sender {
            (values.from, values.source, values.destination)
        } else {
            (values.to, values.destination, values.source)
        };
        let carrier = Carrier {
            udp_source: values.source_port,
            ..Carrier::new(source, destination)
        };
        let message = CmRepr::new(transaction, message);
        let profile = &self.simulation.profile;
        let built = datagram(carrier, flow & 0xFF_FFFF, &message, profile);
        let Some(bytes) = self.built("an RDMA CM message", built) else {
            return;
        };
        if let Some(packet) = self.frame(destination, Octets::ip(bytes)) {
            self.host_sends(from as u32, packet);
        }
    }
}

/// Builds a datagram of connection management, with best-effort traffic class.
pub(super) fn datagram(
    carrier: Carrier,
    psn: u32,
    message: &CmRepr,
    profile: &Profile,
) -> fcn_wire::Result<Vec<u8>> {
    let carrier = Carrier {
        traffic_class: 0,
        ..carrier
    };
    let mad = message.to_bytes()?;
    let parts = [
        carrier.ip()?,
        Part::udp(carrier.udp_source, profile.rocev2_port),
        Part::Bth(BthRepr::new(Opcode::UD_SEND_ONLY, Qp::GSI, psn)),
        Part::Deth(Deth {
            qkey: GSI_Q_KEY,
            source_qp: Qp::GSI,
        }),
        Part::Bytes(&mad),
        Part::Icrc(Policy::Compute(profile.icrc_reading)),
    ];
    compose::packet(&parts, profile)
}

/// Returns true if a message with this ID is between the ends of a flow, and a request names its
/// QP: on real links other connections may use the same numbers.
fn is_about(values: &Flow, flow: u32, id: u32, frame: &Frame<'_>, message: &Cm<'_>) -> bool {
    let Some(ip) = frame.ip() else { return false };
    let way = (ip.source, ip.destination);
    match message {
        Cm::ConnectRequest(request) => {
            let (own, qp) = (SENDER_ID | flow, values.sender_qp.get());
            (id, request.local_qpn()) == (own, qp) && way == (values.source, values.destination)
        }
        _ => match id & !INDEX {
            SENDER_ID => way == (values.destination, values.source),
            RECEIVER_ID => way == (values.source, values.destination),
            _ => false,
        },
    }
}

/// Returns the receiver's end after its ConnectReply. If the private data are those of an rsocket
/// of librdmacm, they contain the buffer to write to: after the version and fields for its own
/// peers, address, key and length.
fn learn(known: Peer, reply: &ConnectReply<'_>) -> Peer {
    const BUFFER: usize = 8 + 16;
    let data = reply.private_data();
    let number = |at: usize| {
        let octets = data.get(BUFFER + at..)?.first_chunk()?;
        Some(u32::from_be_bytes(*octets))
    };
    let region = || {
        let (high, low, rkey, len) = (number(0)?, number(4)?, number(8)?, number(12)?);
        let address = u64::from(high) << 32 | u64::from(low);
        (data.first() == Some(&RSOCKET_VERSION)).then_some(Region { address, rkey, len })
    };
    Peer {
        id: reply.local_comm_id(),
        qp: Qp::truncate(reply.local_qpn()),
        first_psn: reply.starting_psn(),
        region: region().unwrap_or(known.region),
    }
}

fn request(flow: u32, values: &Flow) -> Option<ConnectRequestRepr> {
    Some(ConnectRequestRepr {
        local_comm_id: SENDER_ID | flow,
        local_qpn: values.sender_qp.get(),
        local_ca_guid: guid(values.from),
        // First PSN expected from the receiver's send queue.
        starting_psn: values.first_psn,
        path_mtu: path_mtu(values.mtu),
        ..ConnectRequestRepr::roce(
            (values.source, values.source_port),
            (values.destination, SERVICE_PORT),
        )
        .ok()?
    })
}

/// Returns the GUID of a host's channel adapter: locally administered, so not assigned to any
/// device.
const fn guid(node: usize) -> u64 {
    0x0200_0000_0000_0000 | (node as u64 + 1)
}

/// Returns the path MTU's code.
const fn path_mtu(octets: u16) -> PathMtu {
    PathMtu(match octets {
        256 => 1,
        512 => 2,
        1_024 => 3,
        2_048 => 4,
        _ => 5,
    })
}

/// Builds ICMPv6 Parameter Problem, code 2, about the first Destination Options option of `octets`,
/// an IPv6 packet.
pub fn parameter_problem(
    source: Ipv6Addr,
    destination: Ipv6Addr,
    octets: &Octets,
) -> Option<Vec<u8>> {
    /// Offset of the option's type: after the IPv6 header and the first two octets of the options
    /// header.
    const POINTER: u32 = ipv6::LEN as u32 + 2;
    let room = MINIMUM_MTU - ipv6::LEN - icmp::LEN;
    let quoted = octets.bytes.get(..octets.bytes.len().min(room))?;
    let parts = [
        Part::v6(source, destination, 0),
        Part::Icmpv6 {
            kind: icmp::UNRECOGNISED_OPTION,
            rest: POINTER,
        },
        Part::Bytes(quoted),
    ];
    compose::packet(&parts, &Profile::DEFAULT).ok()
}
