//! Connections between QPs, learnt from captured RDMA CM messages (draft-he-rtgwg-wan-fcn section
//! 4.1; InfiniBand volume 1, section 12.6).
//!
//! A ConnectRequest gives the QP of the active side. A ConnectReply from the other side with the
//! request's communication ID gives the QP of the passive side; from then on both are known. A
//! ReadyToUse confirms them. A DisconnectRequest or DisconnectReply takes them down, as does a
//! ConnectReject at any time. Addresses are those of the IP packets that carry the messages
//! \[choice: paths with other addresses are not followed\].
//!
//! Unconfirmed connections are kept separately, in a smaller table, so that a flood of requests
//! cannot evict connections in use. Nor can one take over their QPs before its own ReadyToUse.
//! Nothing is authenticated: a host that can send all three messages from both addresses is
//! believed, as the two hosts believe it.

use crate::data::FlowKey;
use crate::table::Table;
use fcn_wire::rdma_cm::{Cm, ConnectReject, ConnectReply, ConnectRequest};
use fcn_wire::{Frame, Message, Qp};
use std::collections::HashMap;
use std::net::IpAddr;

/// Confirmed connections per half-open one remembered; at least [`MIN_HALF_OPEN`] half-open ones
/// are.
const HALF_OPEN_SHARE: usize = 4;
/// Minimum capacity for half-open connections.
const MIN_HALF_OPEN: usize = 16;

/// A requested connection: both hosts, and the active side's communication ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ConnectionKey {
    active: IpAddr,
    passive: IpAddr,
    active_id: u32,
}

impl ConnectionKey {
    const fn new(active: IpAddr, passive: IpAddr, active_id: u32) -> Self {
        Self {
            active,
            passive,
            active_id,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct HalfOpen {
    active_qp: Qp,
    /// Communication ID and QP of the passive side, once it has answered.
    answer: Option<(u32, Qp)>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    active_qp: Qp,
    passive_id: u32,
    passive_qp: Qp,
}

/// The QP that sends a flow over its connection, and the connection, as identified by
/// [`Found::key`].
#[derive(Clone, Copy, Debug)]
struct Found {
    sender_qp: Qp,
    active_id: u32,
    /// True if the sender is the active side.
    by_sender: bool,
    confirmed: bool,
    /// True if data of it was captured.
    has_data: bool,
}

impl Found {
    /// Returns the connection that `end` belongs to.
    const fn key(&self, end: &FlowKey) -> ConnectionKey {
        if self.by_sender {
            ConnectionKey::new(end.sender, end.receiver, self.active_id)
        } else {
            ConnectionKey::new(end.receiver, end.sender, self.active_id)
        }
    }
}

/// The connections learnt.
#[derive(Debug)]
pub struct Connections {
    half_open: Table<ConnectionKey, HalfOpen>,
    open: Table<ConnectionKey, Open>,
    /// Both directions of every connection whose two QPs are known.
    ends: HashMap<FlowKey, Found>,
    /// Sender of each receiver and QP: the receiver, its QP, and the host that sends to it.
    senders: HashMap<(IpAddr, Qp), IpAddr>,
}

impl Connections {
    /// Returns a table of at most `capacity` confirmed connections, and a quarter as many
    /// unconfirmed ones.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            half_open: Table::new((capacity / HALF_OPEN_SHARE).max(MIN_HALF_OPEN)),
            open: Table::new(capacity),
            ends: HashMap::new(),
            senders: HashMap::new(),
        }
    }

    /// Learns from the RDMA CM message in `frame`; ignores anything else.
    pub fn learn(&mut self, frame: &Frame<'_>) {
        let (Message::RdmaCm(_, cm), Some(ip)) = (frame.message(), frame.ip()) else {
            return;
        };
        let (from, to) = (ip.source, ip.destination);
        match cm {
            Cm::ConnectRequest(request) => self.request(from, to, &request),
            Cm::ConnectReply(reply) => self.reply(from, to, &reply),
            Cm::ReadyToUse(ready) => {
                let key = ConnectionKey::new(from, to, ready.local_comm_id());
                self.ready(key, ready.remote_comm_id());
            }
            Cm::ConnectReject(reject) => self.reject(from, to, &reject),
            Cm::DisconnectRequest(request) => {
                let ids = (request.local_comm_id(), request.remote_comm_id());
                self.close(from, to, ids, Qp::new(request.remote_qpn()));
            }
            Cm::DisconnectReply(reply) => {
                let ids = (reply.local_comm_id(), reply.remote_comm_id());
                self.close(from, to, ids, None);
            }
            _ => {}
        }
    }

    fn request(&mut self, active: IpAddr, passive: IpAddr, request: &ConnectRequest<'_>) {
        let Some(active_qp) = usable(request.local_qpn()) else {
            return;
        };
        let key = ConnectionKey::new(active, passive, request.local_comm_id());
        // A repetition changes nothing.
        if let Some(known) = self.half_open.get(&key)
            && known.active_qp == active_qp
        {
            return;
        }
        self.drop_half_open(key);
        let half_open = HalfOpen {
            active_qp,
            answer: None,
        };
        if let Some((oldest, half_open)) = self.half_open.put(key, half_open) {
            self.remove_half_open_ends(oldest, half_open);
        }
    }

    fn reply(&mut self, passive: IpAddr, active: IpAddr, reply: &ConnectReply<'_>) {
        let Some(passive_qp) = usable(reply.local_qpn()) else {
            return;
        };
        let key = ConnectionKey::new(active, passive, reply.remote_comm_id());
        let answer = (reply.local_comm_id(), passive_qp);
        let Some(half_open) = self.half_open.get(&key) else {
            return;
        };
        let before = *half_open;
        half_open.answer = Some(answer);
        self.remove_half_open_ends(key, before);
        self.add_ends(key, before.active_qp, passive_qp, false);
    }

    fn ready(&mut self, key: ConnectionKey, passive_id: u32) {
        let answered = self.half_open.peek(&key).and_then(|half_open| {
            let (id, qp) = half_open.answer.filter(|(id, _)| *id == passive_id)?;
            Some((half_open.active_qp, id, qp))
        });
        let Some((active_qp, passive_id, passive_qp)) = answered else {
            // It may repeat the message that confirmed the connection, which counts as used.
            _ = self.open.get(&key);
            return;
        };
        self.drop_half_open(key);
        self.drop_open(key);
        let open = Open {
            active_qp,
            passive_id,
            passive_qp,
        };
        if let Some((oldest, open)) = self.open.put(key, open) {
            self.remove_ends(oldest, open.active_qp, open.passive_qp);
        }
        self.add_ends(key, active_qp, passive_qp, true);
    }

    /// Processes a ConnectReject. Each side gives its own ID and the other's, or 0 if unknown: a
    /// side that refuses a request need not have an ID, and one that waits in vain for a reply does
    /// not know the other's.
    fn reject(&mut self, from: IpAddr, to: IpAddr, reject: &ConnectReject<'_>) {
        let (own, other) = (reject.local_comm_id(), reject.remote_comm_id());
        let by_passive = ConnectionKey::new(to, from, other);
        let by_active = ConnectionKey::new(from, to, own);
        for (key, passive_id) in [(by_passive, own), (by_active, other)] {
            let begun = self.half_open.peek(&key).is_some_and(|half_open| {
                (half_open.answer).is_none_or(|(id, _)| passive_id == 0 || id == passive_id)
            });
            let open = (self.open.peek(&key)).is_some_and(|open| open.passive_id == passive_id);
            if begun {
                self.drop_half_open(key);
            } else if open {
                self.drop_open(key);
            } else {
                continue;
            }
            return;
        }
    }

    /// Takes down the connection between `from` and `to` with their communication IDs. If `to`'s QP
    /// is given, it must be the connection's.
    fn close(&mut self, from: IpAddr, to: IpAddr, (own, other): (u32, u32), to_qp: Option<Qp>) {
        let by_active = ConnectionKey::new(from, to, own);
        let by_passive = ConnectionKey::new(to, from, other);
        for (key, passive_id, active_closes) in [(by_active, other, true), (by_passive, own, false)]
        {
            let Some((active_qp, passive_qp)) = self.qps(key, passive_id) else {
                continue;
            };
            let peer = if active_closes { passive_qp } else { active_qp };
            if to_qp.is_none_or(|qp| qp == peer) {
                self.drop_half_open(key);
                self.drop_open(key);
                return;
            }
        }
    }

    /// Returns both QPs of a connection, confirmed or answered, with this communication ID of the
    /// passive side.
    fn qps(&self, key: ConnectionKey, passive_id: u32) -> Option<(Qp, Qp)> {
        let open = self
            .open
            .peek(&key)
            .filter(|open| open.passive_id == passive_id)
            .map(|open| (open.active_qp, open.passive_qp));
        open.or_else(|| {
            let half_open = self.half_open.peek(&key)?;
            let (_, qp) = half_open.answer.filter(|(id, _)| *id == passive_id)?;
            Some((half_open.active_qp, qp))
        })
    }

    fn drop_half_open(&mut self, key: ConnectionKey) {
        if let Some(half_open) = self.half_open.remove(&key) {
            self.remove_half_open_ends(key, half_open);
        }
    }

    fn drop_open(&mut self, key: ConnectionKey) {
        if let Some(open) = self.open.remove(&key) {
            self.remove_ends(key, open.active_qp, open.passive_qp);
        }
    }

    fn add_ends(&mut self, key: ConnectionKey, active_qp: Qp, passive_qp: Qp, confirmed: bool) {
        for (end, sender_qp) in ends(key, active_qp, passive_qp) {
            let found = Found {
                sender_qp,
                active_id: key.active_id,
                by_sender: end.sender == key.active,
                confirmed,
                has_data: false,
            };
            // Only a confirmed connection replaces a confirmed one.
            let held = |end: &FlowKey| self.ends.get(end).is_some_and(|found| found.confirmed);
            if !confirmed && held(&end) {
                continue;
            }
            let target = (end.receiver, end.receiver_qp);
            let other = self.end_at(target);
            let takes = confirmed || !other.is_some_and(|other| held(&other));
            self.ends.insert(end, found);
            if takes {
                self.senders.insert(target, end.sender);
            }
        }
    }

    /// Forgets the ends of `key` for which `gone` returns true.
    fn drop_ends(
        &mut self,
        key: ConnectionKey,
        (active_qp, passive_qp): (Qp, Qp),
        gone: impl Fn(&Found) -> bool,
    ) {
        for (end, _) in ends(key, active_qp, passive_qp) {
            let known = self.ends.get(&end);
            if known.is_some_and(|found| found.key(&end) == key && gone(found)) {
                self.ends.remove(&end);
                let target = (end.receiver, end.receiver_qp);
                if self.senders.get(&target) == Some(&end.sender) {
                    self.senders.remove(&target);
                }
            }
        }
    }

    /// Records that data of the flow begins, for the first time remembered or anew. If a connection
    /// that has had data begins anew, the QP was reused, and the connection is forgotten.
    pub(crate) fn begins(&mut self, flow: &FlowKey, is_anew: bool) {
        let Some(found) = self.ends.get_mut(flow) else {
            return;
        };
        if std::mem::replace(&mut found.has_data, true) && is_anew {
            self.forget(flow);
        }
    }

    /// Forgets the connection of a flow, though no message has closed it.
    pub(crate) fn forget(&mut self, flow: &FlowKey) {
        if let Some(found) = self.ends.get(flow) {
            let key = found.key(flow);
            self.drop_half_open(key);
            self.drop_open(key);
        }
    }

    fn remove_half_open_ends(&mut self, key: ConnectionKey, half_open: HalfOpen) {
        if let Some((_, passive_qp)) = half_open.answer {
            // A connection with the same addresses and ID may be open.
            self.drop_ends(key, (half_open.active_qp, passive_qp), |found| {
                !found.confirmed
            });
        }
    }

    fn remove_ends(&mut self, key: ConnectionKey, active_qp: Qp, passive_qp: Qp) {
        // A later connection may have taken over the QP.
        self.drop_ends(key, (active_qp, passive_qp), |_| true);
    }

    /// Returns the end whose packets are addressed to that host and QP.
    fn end_at(&self, (receiver, receiver_qp): (IpAddr, Qp)) -> Option<FlowKey> {
        let sender = *self.senders.get(&(receiver, receiver_qp))?;
        Some(FlowKey {
            sender,
            receiver,
            receiver_qp,
        })
    }

    /// Returns the flow that the QP `sender_qp` at `sender` sends, whichever host requested the
    /// connection. A QP has one connection at a time; of several known, the last one set up.
    #[must_use]
    pub fn flow_of(&self, sender: IpAddr, sender_qp: Qp) -> Option<FlowKey> {
        // At the other end the receiver is the sender.
        let end = self.end_at((sender, sender_qp))?;
        let flow = FlowKey {
            sender,
            receiver: end.sender,
            receiver_qp: self.ends.get(&end)?.sender_qp,
        };
        // A later connection may have taken over the QP at the receiver.
        (self.sender_qp(&flow) == Some(sender_qp)).then_some(flow)
    }

    /// Returns the QP at the sender that is connected to the one at the receiver, whichever host
    /// requested the connection.
    #[must_use]
    pub fn sender_qp(&self, flow: &FlowKey) -> Option<Qp> {
        self.ends.get(flow).map(|found| found.sender_qp)
    }

    /// Like [`sender_qp`](Self::sender_qp), and the connection counts as used, so that it is
    /// evicted later.
    pub fn use_sender_qp(&mut self, flow: &FlowKey) -> Option<Qp> {
        let found = *self.ends.get(flow)?;
        let key = found.key(flow);
        if found.confirmed {
            self.open.get(&key);
        } else {
            self.half_open.get(&key);
        }
        Some(found.sender_qp)
    }
}

/// Returns the two directions of a connection: the flow that packets are addressed to, and the QP
/// that sends them.
fn ends(key: ConnectionKey, active_qp: Qp, passive_qp: Qp) -> [(FlowKey, Qp); 2] {
    let (active, passive) = (key.active, key.passive);
    [
        (active, passive, passive_qp, active_qp),
        (passive, active, active_qp, passive_qp),
    ]
    .map(|(sender, receiver, receiver_qp, sender_qp)| {
        let flow = FlowKey {
            sender,
            receiver,
            receiver_qp,
        };
        (flow, sender_qp)
    })
}

/// Returns a QP that data can be sent to: not a management QP.
fn usable(number: u32) -> Option<Qp> {
    Qp::new(number).filter(|qp| *qp > Qp::GSI)
}

#[cfg(test)]
mod tests;
