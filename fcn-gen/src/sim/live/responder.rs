//! The responder's end of reliable connections that are not opened by the scenario's senders
//! (InfiniBand volume 1, sections 9.7 and 12). RDMA CM is answered, RDMA WRITEs are accepted and
//! acknowledged, other requests are refused. Written data are not stored, so any address and key is
//! valid. Requests from a target on a connection that a sender has opened are answered in the same
//! way. Octets in, octets out.

use crate::sim::rdma_cm::datagram;
use crate::units::Ps;
use fcn_wire::bth::{Aeth, BthRepr, MAX_24, Opcode, Qp, Roce};
use fcn_wire::compose::{self, Part};
use fcn_wire::emit::Carrier;
use fcn_wire::icrc::Policy;
use fcn_wire::rdma_cm::{
    Cm, CmRepr, ConnectRejectRepr, ConnectReplyRepr, DisconnectReplyRepr, MessageRepr,
    REP_PRIVATE_LEN, Transport,
};
use fcn_wire::{Profile, ip};
use rustc_hash::FxHashMap;
use std::net::IpAddr;

/// Maximum number of simultaneous connections; further ones are refused.
const CONNECTIONS: u32 = 1_024;
/// Idle time after which a connection may be replaced by another.
const FORGOTTEN_AFTER: Ps = Ps(60 * Ps::SECOND.0);
/// QP number of the first connection.
const FIRST_QP: u32 = 0x00F0_0000;
/// Communication ID of the first connection.
const FIRST_ID: u32 = 0x0C00_0000;
/// First PSN for initiators.
const FIRST_PSN: u32 = 0;
/// Reasons for refusing a ConnectRequest (section 12.6.7.2): no QP is left, or it is not for a
/// reliable connection.
const NO_QP: u16 = 1;
const INVALID_TRANSPORT: u16 = 9;
/// Syndromes of an AETH (section 9.7.5.2.1): acknowledged, without end-to-end flow control; PSN
/// sequence error; request not supported.
const ACK: u8 = 0x1F;
const NAK_SEQUENCE: u8 = 0x60;
const NAK_INVALID_REQUEST: u8 = 0x61;

/// A connection.
#[derive(Clone, Copy, Debug)]
struct Connection {
    peer: IpAddr,
    peer_id: u32,
    peer_qp: Qp,
    /// The next PSN expected.
    expected: u32,
    /// Messages completed, modulo 2²⁴.
    messages: u32,
    nak_sent: bool,
    heard: Ps,
}

impl Connection {
    const fn new(now: Ps, (peer, peer_id): (IpAddr, u32), peer_qp: Qp, expected: u32) -> Self {
        Self {
            peer,
            peer_id,
            peer_qp,
            expected,
            messages: 0,
            nak_sent: false,
            heard: now,
        }
    }
}

super::counted! {
    /// Counters of the responder.
    Counters {
        /// Connections accepted.
        accepted,
        /// ConnectRequests refused.
        rejected,
        /// Connections taken down by their initiators.
        disconnected,
        /// Packets of RDMA WRITEs accepted in order.
        writes,
        /// Octets of payload in these packets.
        octets,
        /// Requests that arrived after a gap.
        out_of_order,
        /// Duplicate requests.
        again,
        /// Requests refused because they are not RDMA WRITEs.
        refused,
    }
}

/// The responder.
#[derive(Debug, Default)]
pub struct Responder {
    /// Accepted connections, by number.
    connections: Vec<Option<Connection>>,
    /// Connections opened by our senders, by the QP here.
    opened: FxHashMap<Qp, Connection>,
    counters: Counters,
}

impl Responder {
    /// Returns its counters.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Answers a message of connection management between these addresses, in its transaction.
    pub fn on_management(
        &mut self,
        now: Ps,
        (peer, own): (IpAddr, IpAddr),
        (transaction, message): (u64, &Cm<'_>),
        profile: &Profile,
    ) -> Option<Vec<u8>> {
        let answer: MessageRepr = match message {
            Cm::ConnectRequest(request) => {
                let peer_id = request.local_comm_id();
                let refused = |reason| ConnectRejectRepr {
                    remote_comm_id: peer_id,
                    reason,
                    ..ConnectRejectRepr::default()
                };
                let place = match request.transport() {
                    Transport::Rc => self.place(now, (peer, peer_id)).ok_or(NO_QP),
                    _ => Err(INVALID_TRANSPORT),
                };
                match place {
                    Ok(place) => {
                        let there = &mut self.connections[place];
                        // A repeated request: the answer may have been lost.
                        if !there.is_some_and(|c| (c.peer, c.peer_id) == (peer, peer_id)) {
                            self.counters.accepted += 1;
                            let qp = Qp::truncate(request.local_qpn());
                            *there = Some(Connection::new(now, (peer, peer_id), qp, FIRST_PSN));
                        }
                        let number = place as u32;
                        let reply = ConnectReplyRepr {
                            local_comm_id: FIRST_ID + number,
                            remote_comm_id: peer_id,
                            local_qpn: FIRST_QP + number,
                            starting_psn: FIRST_PSN,
                            rnr_retry_count: request.rnr_retry_count(),
                            private_data: for_rsockets(),
                            ..ConnectReplyRepr::default()
                        };
                        reply.into()
                    }
                    Err(reason) => {
                        self.counters.rejected += 1;
                        refused(reason).into()
                    }
                }
            }
            Cm::DisconnectRequest(request) => {
                let (local, remote) = (request.remote_comm_id(), request.local_comm_id());
                let there = self.connections.iter_mut();
                let mut those =
                    there.filter(|c| c.is_some_and(|c| (c.peer, c.peer_id) == (peer, remote)));
                if let Some(there) = those.next() {
                    *there = None;
                    self.counters.disconnected += 1;
                }
                // Also if it is down already, since the answer may have been lost.
                let reply = DisconnectReplyRepr {
                    local_comm_id: local,
                    remote_comm_id: remote,
                    ..DisconnectReplyRepr::default()
                };
                reply.into()
            }
            _ => return None,
        };
        let answer = CmRepr::new(transaction, answer);
        datagram(Carrier::new(own, peer), 0, &answer, profile).ok()
    }

    /// Returns the number of a peer's connection with that ID, or a free one.
    fn place(&mut self, now: Ps, ends: (IpAddr, u32)) -> Option<usize> {
        let is = |c: &Option<Connection>| c.is_some_and(|c| (c.peer, c.peer_id) == ends);
        let is_free =
            |c: &Option<Connection>| c.is_none_or(|c| now.since(c.heard) > FORGOTTEN_AFTER);
        let known = self.connections.iter().position(is);
        let free = known.or_else(|| self.connections.iter().position(is_free));
        free.or_else(|| {
            let place = self.connections.len();
            (place < CONNECTIONS as usize).then(|| self.connections.push(None))?;
            Some(place)
        })
    }

    /// Registers a connection opened by a sender here, with this QP. The peer, with that address
    /// and ID, starts at that PSN.
    pub fn opened(&mut self, now: Ps, own: Qp, peer: (IpAddr, u32), peer_qp: Qp, psn: u32) {
        let connection = Connection::new(now, peer, peer_qp, psn);
        self.opened.insert(own, connection);
    }

    /// Returns the peer's QP of a connection between this address and this QP here.
    pub fn peer_qp(&self, peer: IpAddr, own: Qp) -> Option<Qp> {
        let accepted = || self.connections.get(place_of(own)?)?.as_ref();
        let connection = self.opened.get(&own).or_else(accepted)?;
        (connection.peer == peer).then_some(connection.peer_qp)
    }

    /// Processes a packet of a connection for which [`peer_qp`](Self::peer_qp) returns a QP, and
    /// answers it.
    pub fn on_packet(
        &mut self,
        now: Ps,
        (ip, source_port): (&ip::Ip, u16),
        roce: &Roce<'_>,
        profile: &Profile,
    ) -> Option<Vec<u8>> {
        let bth = roce.bth();
        let own = bth.dest_qp();
        let connection = match self.opened.get_mut(&own) {
            Some(opened) => opened,
            None => self.connections.get_mut(place_of(own)?)?.as_mut()?,
        };
        connection.heard = now;
        let ahead = bth.psn().wrapping_sub(connection.expected) & MAX_24;
        let before = connection.expected.wrapping_sub(1) & MAX_24;
        let (syndrome, psn) = if ahead > MAX_24 / 2 {
            self.counters.again += 1;
            (ACK, before)
        } else if ahead > 0 {
            self.counters.out_of_order += 1;
            if std::mem::replace(&mut connection.nak_sent, true) {
                return None;
            }
            (NAK_SEQUENCE, connection.expected)
        } else if WRITES.contains(&bth.opcode()) {
            connection.nak_sent = false;
            connection.expected = bth.psn().wrapping_add(1) & MAX_24;
            let ends = LAST.contains(&bth.opcode());
            connection.messages = connection.messages.wrapping_add(ends.into()) & MAX_24;
            self.counters.writes += 1;
            self.counters.octets += roce.payload().len() as u64;
            if !bth.ack_request() {
                return None;
            }
            (ACK, bth.psn())
        } else {
            self.counters.refused += 1;
            (NAK_INVALID_REQUEST, bth.psn())
        };
        let carrier = Carrier {
            traffic_class: ip.traffic_class & 0xFC,
            udp_source: source_port,
            ..Carrier::new(ip.destination, ip.source)
        };
        let bth = BthRepr::new(Opcode::RC_ACKNOWLEDGE, connection.peer_qp, psn);
        let aeth = Aeth {
            syndrome,
            msn: connection.messages,
        };
        let parts = [
            carrier.ip().ok()?,
            Part::udp(carrier.udp_source, profile.rocev2_port),
            Part::Bth(bth),
            Part::Aeth(aeth),
            Part::Icrc(Policy::Compute(profile.icrc_reading)),
        ];
        compose::packet(&parts, profile).ok()
    }
}

/// Opcodes of RDMA WRITEs, with and without immediate data.
const WRITES: [Opcode; 6] = [
    Opcode::RC_WRITE_FIRST,
    Opcode::RC_WRITE_MIDDLE,
    Opcode::RC_WRITE_LAST,
    Opcode::RC_WRITE_LAST_IMM,
    Opcode::RC_WRITE_ONLY,
    Opcode::RC_WRITE_ONLY_IMM,
];
/// Opcodes of a message's last packet among them.
const LAST: [Opcode; 4] = [
    Opcode::RC_WRITE_LAST,
    Opcode::RC_WRITE_LAST_IMM,
    Opcode::RC_WRITE_ONLY,
    Opcode::RC_WRITE_ONLY_IMM,
];

/// Returns private data for a reply that rsockets (librdmacm) parse, and other initiators ignore:
/// the version, the number of writes permitted (16 bits), an address and key that are unused for a
/// socket that sends nothing, and the address, key and length to write to.
fn for_rsockets() -> [u8; REP_PRIVATE_LEN] {
    const LENGTH_AT: usize = 4 + 4 + 16 + 12;
    let mut data = [0; REP_PRIVATE_LEN];
    data[..4].copy_from_slice(&[1, 0, 0xFF, 0xFF]);
    data[LENGTH_AT..][..4].copy_from_slice(&i32::MAX.to_be_bytes());
    data
}

/// Returns the connection's number.
fn place_of(own: Qp) -> Option<usize> {
    Some(own.get().checked_sub(FIRST_QP)? as usize)
}
