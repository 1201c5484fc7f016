//! The QP at the sender that a flow comes from, and the flow that such a QP sends: data packets
//! name only the QP at the receiver, CNPs only the one at the sender.
//!
//! Taken from the RDMA CM exchange that set the connection up, if captured; otherwise inferred by
//! [`Pairing`].

use crate::connections::Connections;
use crate::data::FlowKey;
use crate::flow_table::{FlowStart, FlowTable, Sequenced};
use crate::pairing::{Pairing, is_beside};
use crate::resolved::Resolved;
use fcn_wire::rdma_cm::Cm;
use fcn_wire::{Frame, Message, Qp};
use std::net::IpAddr;

/// Acknowledgements in a row that show a QP to have another connection to the same host than RDMA
/// CM has reported: the PSNs of the new connection may come after a part of it that the capture has
/// lost.
const CONTRADICT: u8 = 8;
/// Acknowledgements in a row from another host that show the same.
const ANOTHER_HOSTS: u8 = 2;

/// Resolver of the QP at the sender of each flow.
///
/// A connection reported by RDMA CM holds until acknowledgements contradict it, even after it was
/// closed: two from another host, or eight for another flow to the same host, as a QP has one
/// connection at a time.
///
/// Bounded: at most `limit` connections by RDMA CM, and the QPs of as many others.
#[derive(Debug)]
pub struct Resolver {
    connections: Connections,
    pairing: Pairing,
}

impl Resolver {
    /// Returns a resolver that remembers at most `limit` connections by RDMA CM, and infers as
    /// many.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            connections: Connections::new(limit),
            pairing: Pairing::new(limit),
        }
    }

    /// Learns from the RDMA CM message in `frame`; ignores anything else.
    pub fn learn(&mut self, frame: &Frame<'_>) {
        if let (Message::RdmaCm(_, Cm::DisconnectRequest(request)), Some(ip)) =
            (frame.message(), frame.ip())
            && let Some(qp) = Qp::new(request.remote_qpn())
        {
            self.remember(ip.destination, qp, ip.source);
        }
        self.connections.learn(frame);
    }

    /// Remembers a connection of `qp` at `host` that `peer` is about to close.
    fn remember(&mut self, host: IpAddr, qp: Qp, peer: IpAddr) {
        let flow = self.connections.flow_of(host, qp);
        if let Some(flow) = flow.filter(|flow| flow.receiver == peer) {
            self.pairing.set(&flow, qp, Resolved::Cm);
        }
    }

    /// Processes a packet from `from` to the QP `qp` at `to`, from UDP source port `port`, that
    /// acknowledges the packet with the PSN `psn`: an acknowledgement, or the beginning of the
    /// response to an RDMA READ. `time` is in ns, by the same clock as in `flows`.
    pub fn acknowledged(
        &mut self,
        (from, to, qp): (IpAddr, IpAddr, Qp),
        port: u16,
        (time, psn): (u64, u32),
        flows: &FlowTable<impl Sequenced>,
    ) {
        let connected = self.connections.flow_of(to, qp);
        // A connection reported by RDMA CM needs no inference.
        let is_its = |flow: FlowKey| {
            let last = flows.get(&flow).and_then(Sequenced::highest_psn);
            flow.receiver == from && last.is_none_or(|last| is_beside(last, psn))
        };
        if connected.is_some_and(is_its) {
            return;
        }
        let packet = (from, to, qp);
        (self.pairing).acknowledged(packet, port, (time, psn), flows);
        if let Some(flow) = connected {
            let back = FlowKey {
                sender: from,
                receiver: to,
                receiver_qp: qp,
            };
            let enough = match flow.receiver == from {
                true => CONTRADICT,
                false => ANOTHER_HOSTS,
            };
            if (self.pairing.acknowledgements(&back)).is_some_and(|acks| acks >= enough) {
                self.connections.forget(&flow);
            }
        }
    }

    /// Processes a CNP from `from` to the QP `qp` at `to`.
    pub fn notified(&mut self, from: IpAddr, to: IpAddr, qp: Qp) {
        self.pairing.notified(from, to, qp);
    }

    /// Records whether a flow begins with a data packet from that UDP source port. If it begins
    /// anew, the previous connection is forgotten, as the QP at the receiver now has another one.
    #[inline]
    pub fn begins(&mut self, key: &FlowKey, start: FlowStart, port: u16) {
        if start != FlowStart::Before {
            self.begins_now(key, start, port);
        }
    }

    #[cold]
    fn begins_now(&mut self, key: &FlowKey, start: FlowStart, port: u16) {
        if start == FlowStart::Spread {
            return self.pairing.spreads(key);
        }
        let is_anew = start == FlowStart::Anew;
        self.connections.begins(key, is_anew);
        self.pairing.begins(key, is_anew, port);
    }

    /// Returns the number of QPs remembered for inference.
    #[must_use]
    pub const fn qps_kept(&self) -> usize {
        self.pairing.len()
    }

    /// Returns the QP at the sender that `key`'s data comes from, and the evidence for it.
    #[must_use]
    pub fn sender_qp(&self, key: &FlowKey) -> Option<(Qp, Resolved)> {
        match self.connections.sender_qp(key) {
            Some(qp) => Some((qp, Resolved::Cm)),
            None => self.pairing.sender_qp(key),
        }
    }

    /// Like [`sender_qp`](Self::sender_qp), for a node about to notify the sender; the connection
    /// counts as used. Closed connections are excluded, since their QP may have been reused, as is
    /// the weak evidence that no other QP was captured.
    pub fn use_sender_qp(&mut self, key: &FlowKey) -> Option<(Qp, Resolved)> {
        match self.connections.use_sender_qp(key) {
            Some(qp) => Some((qp, Resolved::Cm)),
            None => (self.sender_qp(key))
                .filter(|(_, by)| matches!(by, Resolved::Port | Resolved::Acks)),
        }
    }

    /// Returns the connections reported by RDMA CM.
    #[must_use]
    pub const fn connections(&self) -> &Connections {
        &self.connections
    }

    /// Returns the flow that the QP `qp` at `sender` sends.
    #[must_use]
    pub fn flow_of(&self, sender: IpAddr, qp: Qp) -> Option<FlowKey> {
        let connected = self.connections.flow_of(sender, qp);
        connected.or_else(|| {
            // The inference may be older than RDMA CM's report about the flow.
            self.pairing
                .flow_of(sender, qp)
                .filter(|key| self.may_be_of(key, qp))
        })
    }

    /// Returns true unless RDMA CM has reported another QP as the flow's sender.
    fn may_be_of(&self, key: &FlowKey, qp: Qp) -> bool {
        self.connections
            .sender_qp(key)
            .is_none_or(|known| known == qp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Setup, with_frame};
    use std::net::Ipv4Addr;

    const SENDER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 1, 1));
    const RECEIVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 2, 9));
    const FLOW: FlowKey = FlowKey {
        sender: SENDER,
        receiver: RECEIVER,
        receiver_qp: Qp::truncate(0x222),
    };
    const A: Qp = Qp::truncate(0x111);
    const B: Qp = Qp::truncate(0x112);

    /// Returns a table of the only flow, with its last PSN.
    fn only(last: u32) -> FlowTable<u32> {
        let mut flows = FlowTable::new(1);
        flows.data(FLOW, 0, (None, 0), || last);
        flows
    }

    /// Sends data up to `last`, then an acknowledgement of `psn` to `qp`, for each pair.
    fn acknowledge(resolver: &mut Resolver, qp: Qp, acks: impl IntoIterator<Item = (u32, u32)>) {
        for (last, psn) in acks {
            resolver.begins(&FLOW, FlowStart::First, 0);
            resolver.acknowledged((RECEIVER, SENDER, qp), 0, (0, psn), &only(last));
        }
    }

    fn known(acks: impl IntoIterator<Item = (Qp, u32, u32)>) -> Option<Qp> {
        let mut resolver = Resolver::new(8);
        for (qp, last, psn) in acks {
            acknowledge(&mut resolver, qp, [(last, psn)]);
        }
        let known = resolver.sender_qp(&FLOW).map(|(qp, _)| qp);
        assert_eq!(
            known.and_then(|qp| resolver.flow_of(SENDER, qp)),
            known.map(|_| FLOW)
        );
        known
    }

    #[test]
    fn flows_from_psn_0_take_more_acknowledgements() {
        let from = |first: u32, acks: u32| {
            let psns = (first..).step_by(16).take(acks as usize);
            known(psns.map(|psn| (A, psn + 4, psn)))
        };
        assert_eq!((from(0, 7), from(0, 8)), (None, Some(A)));
        assert_eq!((from(5_000, 1), from(5_000, 2)), (None, Some(A)));
    }

    #[test]
    fn acknowledgements_in_step_to_two_qps_are_ambiguous() {
        let both = |apart: u32| {
            known((50_000..60_000).step_by(16).flat_map(|psn| {
                [A, A, B, B]
                    .into_iter()
                    .zip(0..)
                    .map(move |(qp, n)| match qp {
                        A => (qp, psn + n, psn + n),
                        _ => (qp, psn + n + apart, psn + n + apart),
                    })
            }))
        };
        assert_eq!(both(0), None);
        assert_eq!(both(600), None);
        // Another connection of the receiver's QP, later.
        let later = [
            (A, 50_000, 50_000),
            (A, 50_001, 50_001),
            (B, 9_000_000, 9_000_000),
        ];
        assert_eq!(known(later), None);
        assert_eq!(
            known(later.into_iter().chain([(B, 9_000_001, 9_000_001)])),
            Some(B)
        );
    }

    #[test]
    fn acknowledgements_ahead_of_the_data_do_not_match() {
        // Share of the acknowledgements that are ahead of the data: `early` in `of`.
        let ahead = |early: u32, of: u32| {
            known((0..of * 20).map(|n| {
                let psn = 50_000 + 16 * n;
                let last = if n % of < early { psn - 1 } else { psn + 4 };
                (A, last, psn)
            }))
        };
        assert_eq!(ahead(0, 10), Some(A));
        assert_eq!(ahead(1, 10), Some(A));
        assert_eq!(ahead(5, 10), None);
        assert_eq!(ahead(8, 10), None);
    }

    #[test]
    fn acknowledgements_replace_a_connection_whose_close_was_missed() {
        let setup = Setup::v4();
        let (sender, receiver) = (setup.active, setup.passive);
        let elsewhere: IpAddr = "10.9.9.9".parse().unwrap();
        let qp = Qp::truncate(setup.active_end.1);
        let flow = |receiver: IpAddr, receiver_qp: u32| FlowKey {
            sender,
            receiver,
            receiver_qp: Qp::truncate(receiver_qp),
        };
        let first = flow(receiver, setup.passive_end.1);
        // The other flow that is acknowledged to its QP, the number of acknowledgements, and the
        // first PSN.
        let known_after = |other: FlowKey, acks: u32, psn: u32| {
            let mut resolver = Resolver::new(8);
            for message in [setup.request(), setup.reply(), setup.ready()] {
                with_frame(&message, |frame| resolver.learn(frame));
            }
            let mut flows = FlowTable::new(8);
            flows.data(first, 0, (None, 0), || 700_000);
            flows.data(other, 0, (None, 0), || psn + acks);
            for key in [&first, &other] {
                resolver.begins(key, FlowStart::First, 0);
            }
            for psn in (psn..psn + acks).chain([psn + acks - 1]) {
                resolver.acknowledged((other.receiver, sender, qp), 0, (0, psn), &flows);
            }
            let known = resolver.flow_of(sender, qp);
            assert_eq!(resolver.sender_qp(&first).is_some(), known == Some(first));
            known
        };
        for (receiver, enough) in [(elsewhere, ANOTHER_HOSTS), (receiver, CONTRADICT)] {
            let (other, enough) = (flow(receiver, 0x999), u32::from(enough));
            assert_eq!(known_after(other, enough - 1, 50_000), Some(first));
            assert_eq!(known_after(other, enough, 50_000), Some(other));
        }
        // Its own acknowledgements.
        assert_eq!(known_after(first, 50, 700_100), Some(first));
    }
}
