//! Which QP at the sender a flow comes from, and which flow a QP at the sender sends: data packets name only the QP at the
//! receiver, CNPs only the one at the sender.
//!
//! Told by the RDMA CM exchange that set the connection up, where it was seen; else by acknowledgements, which are
//! addressed to the sender's QP and carry the PSNs of the data that they acknowledge. What answers an RDMA READ acknowledges the
//! request, and is data of the flow the other way.

use crate::bounded::{Bounded, Slot};
use crate::connections::Connections;
use crate::data::FlowKey;
use crate::flow_table::{Begins, FlowTable, Sequenced};
use fcn_wire::bth::MAX_24;
use fcn_wire::rdma_cm::Cm;
use fcn_wire::{Frame, Message, Qp, identified};
use std::net::IpAddr;

/// How far an acknowledgement's PSN may be behind the data's highest: 1.3 ms at 100 Gbit/s in packets of 4 KB. Farther, and
/// flows of the same hosts would be taken for each other: of 64 three in a hundred have another one in reach.
const REACH: u32 = 4096;
/// So many votes in a row make a QP known.
const ENOUGH: u8 = 2;
/// One acknowledgement in so many may be of data that is yet to come: the capture has lost that, or is not quite in order.
const EARLY: u8 = 4;
/// So many votes in a row say that a QP has another connection than RDMA CM has told of, to the same host: that one's PSNs
/// may be behind what the capture has lost.
const CONTRADICT: u8 = 8;
/// PSNs below this one tell connections apart no more \[choice\]: there are libraries that start all of them at 0, and those go
/// in step. Of connections that start anywhere, one in 4,096 starts below it.
const FIRST_PSNS: u32 = 4096;
/// The PSN of no acknowledgement.
const NO_PSN: u32 = u32::MAX;

identified! {
    /// How a QP that the notification does not name has been found.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    Resolved {
        /// The notification names it.
        Packet = "packet",
        /// The RDMA CM exchange that set the connection up.
        Cm = "cm",
        /// Acknowledgements that go the other way fit the data's PSNs.
        Acks = "acks",
    }
}

/// What is thought to be the sender's QP of a flow.
#[derive(Clone, Copy, Debug)]
struct Guess {
    qp: Qp,
    /// PSN of the last vote: the same acknowledgement seen on two interfaces is one.
    psn: u32,
    votes: u8,
    /// Acknowledgements of packets that its data has not come to yet.
    early: u8,
    /// Whether another connection may have the same PSNs, and these acknowledgements be that one's.
    in_step: bool,
    from: Resolved,
}

impl Guess {
    const fn new(qp: Qp, psn: u32, votes: u8, from: Resolved) -> Self {
        Self {
            qp,
            psn,
            votes,
            early: 0,
            in_step: psn < FIRST_PSNS,
            from,
        }
    }

    /// Counts an acknowledgement, which its data has come to or not.
    const fn count(&mut self, psn: u32, is_early: bool) {
        if self.psn == psn {
            return;
        }
        self.psn = psn;
        let count = match is_early {
            true => &mut self.early,
            false => &mut self.votes,
        };
        *count += 1;
        if *count == u8::MAX {
            (self.votes, self.early) = (self.votes / 2, self.early / 2);
        }
    }

    const fn holds(&self) -> bool {
        !self.in_step && self.votes >= ENOUGH && self.votes / EARLY >= self.early
    }
}

/// Which flow comes from which QP at the sender.
///
/// An acknowledgement whose PSN is 0 to 4095 behind the highest one of exactly one flow that it may be about is a vote for
/// that flow's coming from the QP that the acknowledgement is addressed to. Two in a row that agree make it known; one that
/// disagrees starts anew.
///
/// Of a connection whose data passes elsewhere, as on the other member of a bundle of links, the acknowledgements are not to be
/// taken for those of another between the same hosts, whose PSNs go in step with its own. So votes tell nothing where PSNs began
/// small, where acknowledgements to two QPs fit the same flow, and where more than one in four
/// acknowledges what is yet to be sent.
///
/// Where RDMA CM has told, that holds until acknowledgements say otherwise, also of a connection that was taken down: those of
/// another host's, or eight votes for another flow to the same host, as a QP has one connection at a time.
///
/// Bounded: at most `limit` connections, and as many flows with votes; those used longest ago leave first.
#[derive(Debug)]
pub struct Resolver {
    connections: Connections,
    guesses: Bounded<FlowKey, Guess>,
    /// The flow that the last vote for a QP was for.
    flows: Bounded<(IpAddr, Qp), Slot>,
    /// Counts votes, instead of a clock.
    tick: u64,
}

impl Resolver {
    /// Remembers at most `limit` connections, and guesses about as many flows.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            connections: Connections::new(limit),
            guesses: Bounded::new(limit),
            flows: Bounded::new(limit),
            tick: 0,
        }
    }

    /// Learns from the RDMA CM message in `frame`; anything else is left alone.
    pub fn learn(&mut self, frame: &Frame<'_>) {
        if let (Message::RdmaCm(_, Cm::DisconnectRequest(request)), Some(ip)) =
            (frame.message(), frame.ip())
            && let Some(qp) = Qp::new(request.remote_qpn())
        {
            self.remember(ip.destination, qp, ip.source);
        }
        self.connections.learn(frame);
    }

    /// Remembers a connection of `qp` at `host` that is about to be taken down by `peer`.
    fn remember(&mut self, host: IpAddr, qp: Qp, peer: IpAddr) {
        let flow = self.connections.flow_of(host, qp);
        let Some(flow) = flow.filter(|flow| flow.receiver == peer) else {
            return;
        };
        let back = FlowKey {
            sender: peer,
            receiver: host,
            receiver_qp: qp,
        };
        self.tick += 1;
        for (key, sender_qp) in [(flow, qp), (back, flow.receiver_qp)] {
            self.set(key, Guess::new(sender_qp, NO_PSN, ENOUGH, Resolved::Cm));
        }
    }

    /// Takes in an acknowledgement from the receiver `from` to the QP `qp` at the sender `to`, of the packet with that PSN.
    pub fn acknowledged(
        &mut self,
        from: IpAddr,
        to: IpAddr,
        qp: Qp,
        psn: u32,
        flows: &FlowTable<impl Sequenced>,
    ) {
        let connected = self.connections.flow_of(to, qp);
        // What RDMA CM says needs no votes.
        let is_its = |flow: FlowKey| {
            let last = flows.get(&flow).and_then(Sequenced::highest_psn);
            flow.receiver == from && last.is_none_or(|last| fits(last, psn) || fits(psn, last))
        };
        if connected.is_some_and(is_its) {
            return;
        }
        self.count(from, to, qp, psn, flows);
        if let Some(flow) = connected
            && let Some((_, guess)) = self.guess_of(to, qp)
        {
            let is_over = match flow.receiver == from {
                true => guess.holds() && guess.votes >= CONTRADICT,
                // Whichever flow of that host it is.
                false => guess.votes >= ENOUGH,
            };
            if is_over {
                self.connections.forget(&flow);
            }
        }
    }

    /// Counts an acknowledgement for the flow that it may be about.
    fn count(
        &mut self,
        from: IpAddr,
        to: IpAddr,
        qp: Qp,
        psn: u32,
        flows: &FlowTable<impl Sequenced>,
    ) {
        self.tick += 1;
        if let Some((key, guess)) = self.guess_of(to, qp)
            && key.receiver == from
            && let Some(last) = flows.get(&key).and_then(Sequenced::highest_psn)
        {
            let is_early = psn != last && fits(psn, last);
            let is_settled = fits(last, psn) && (guess.in_step || guess.holds());
            if is_early || is_settled {
                if let Some(guess) = self.guesses.touch(&key, self.tick) {
                    guess.count(psn, is_early);
                }
                self.flows.touch(&(to, qp), self.tick);
            }
            if is_settled {
                return;
            }
        }
        let mut fitting = flows
            .between(to, from)
            .filter(|(_, flow)| flow.highest_psn().is_some_and(|last| fits(last, psn)))
            .map(|(key, _)| *key)
            .filter(|key| self.may_be_of(key, qp));
        if let (Some(key), None) = (fitting.next(), fitting.next()) {
            drop(fitting);
            self.vote(key, qp, psn);
        }
    }

    /// Takes in what begins the answer to an RDMA READ, from `from` to the QP `qp` at `to`, with that PSN: it acknowledges the
    /// request, and, once that is known to be of a flow, comes from the QP that was asked.
    pub fn answered(
        &mut self,
        from: IpAddr,
        to: IpAddr,
        qp: Qp,
        psn: u32,
        flows: &FlowTable<impl Sequenced>,
    ) {
        self.acknowledged(from, to, qp, psn, flows);
        let Some(asked) = self.guessed_flow(to, qp).filter(|key| key.receiver == from) else {
            return;
        };
        let key = FlowKey {
            sender: from,
            receiver: to,
            receiver_qp: qp,
        };
        if self
            .sender_qp(&key)
            .is_none_or(|(known, _)| known != asked.receiver_qp)
        {
            let guess = Guess::new(asked.receiver_qp, NO_PSN, ENOUGH, Resolved::Acks);
            self.set(key, guess);
        }
    }

    fn vote(&mut self, key: FlowKey, qp: Qp, psn: u32) {
        let slot = self.guesses.slot_of(&key);
        let voted = self.flows.get(&(key.sender, qp));
        let guess = self.guesses.touch(&key, self.tick);
        if let Some(guess) = guess {
            let is_beside = fits(guess.psn, psn) || fits(psn, guess.psn);
            if guess.qp == qp && voted.copied() == slot {
                guess.count(psn, false);
                self.flows.touch(&(key.sender, qp), self.tick);
                return;
            }
            if guess.qp != qp && guess.psn != NO_PSN && is_beside {
                (guess.in_step, guess.psn) = (true, psn);
                return;
            }
        }
        self.set(key, Guess::new(qp, psn, 1, Resolved::Acks));
    }

    fn set(&mut self, key: FlowKey, guess: Guess) {
        let (slot, kept) = self
            .guesses
            .get_or_insert_evicting(key, self.tick, || guess, |_| ());
        *kept = guess;
        let place = (key.sender, guess.qp);
        *self.flows.get_or_insert_with(place, self.tick, || slot) = slot;
    }

    /// Takes in whether a flow begins with the data that passes. Of one that begins anew what was known of the connection
    /// before is forgotten, as its QP at the receiver is another connection's now.
    #[inline]
    pub fn begins(&mut self, key: &FlowKey, begins: Begins) {
        if begins != Begins::Before {
            self.begins_now(key, begins == Begins::Anew);
        }
    }

    #[cold]
    fn begins_now(&mut self, key: &FlowKey, is_anew: bool) {
        self.connections.begins(key, is_anew);
        if is_anew && let Some(guess) = self.guesses.touch(key, self.tick) {
            *guess = Guess::new(guess.qp, NO_PSN, 0, Resolved::Acks);
        }
    }

    /// How many flows and how many QPs have votes.
    #[must_use]
    pub const fn votes_kept(&self) -> (usize, usize) {
        (self.guesses.len(), self.flows.len())
    }

    /// The flow from that QP by acknowledgements, or by a connection taken down.
    fn guessed_flow(&self, sender: IpAddr, qp: Qp) -> Option<FlowKey> {
        let (key, guess) = self.guess_of(sender, qp)?;
        guess.holds().then_some(key)
    }

    /// The flow that the last vote for that QP was for.
    fn guess_of(&self, sender: IpAddr, qp: Qp) -> Option<(FlowKey, Guess)> {
        if self.flows.is_empty() {
            return None;
        }
        let (key, guess) = self.guesses.at(*self.flows.get(&(sender, qp))?)?;
        // The place may have been given to another flow.
        (key.sender == sender && guess.qp == qp).then_some((*key, *guess))
    }

    /// The QP at the sender that `key`'s data comes from, and how that is known.
    #[must_use]
    pub fn sender_qp(&self, key: &FlowKey) -> Option<(Qp, Resolved)> {
        if let Some(qp) = self.connections.sender_qp(key) {
            return Some((qp, Resolved::Cm));
        }
        let guess = self.guesses.get(key)?;
        // Since then the QP may have been found to send another flow.
        let holds = self.guessed_flow(key.sender, guess.qp).as_ref() == Some(key);
        holds.then_some((guess.qp, guess.from))
    }

    /// The same for a node that is about to tell the sender, and the connection counts as used: a connection that was taken
    /// down is none, since its QP may have become another's.
    pub fn use_sender_qp(&mut self, key: &FlowKey) -> Option<(Qp, Resolved)> {
        match self.connections.use_sender_qp(key) {
            Some(qp) => Some((qp, Resolved::Cm)),
            None => self.sender_qp(key).filter(|(_, by)| *by == Resolved::Acks),
        }
    }

    /// The connections that RDMA CM has told of.
    #[must_use]
    pub const fn connections(&self) -> &Connections {
        &self.connections
    }

    /// The flow that the QP `qp` at `sender` sends.
    #[must_use]
    pub fn flow_of(&self, sender: IpAddr, qp: Qp) -> Option<FlowKey> {
        let connected = self.connections.flow_of(sender, qp);
        connected.or_else(|| {
            // The guess may be older than what RDMA CM tells about the flow.
            self.guessed_flow(sender, qp)
                .filter(|key| self.may_be_of(key, qp))
        })
    }

    /// Whether RDMA CM has told of no other QP that sends the flow.
    fn may_be_of(&self, key: &FlowKey, qp: Qp) -> bool {
        self.connections
            .sender_qp(key)
            .is_none_or(|known| known == qp)
    }
}

/// Whether an acknowledgement of `psn` may be about the flow whose last data packet had the PSN `last`.
const fn fits(last: u32, psn: u32) -> bool {
    last.wrapping_sub(psn) & MAX_24 < REACH
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

    /// The only flow, and its last PSN.
    fn only(last: u32) -> FlowTable<u32> {
        let mut flows = FlowTable::new(1);
        flows.data(FLOW, 0, None, || last);
        flows.indexed();
        flows
    }

    /// Data up to `last`, and then an acknowledgement to `qp` for each of these.
    fn acknowledge(resolver: &mut Resolver, qp: Qp, acks: impl IntoIterator<Item = (u32, u32)>) {
        for (last, psn) in acks {
            resolver.acknowledged(RECEIVER, SENDER, qp, psn, &only(last));
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
    fn acknowledgements_of_what_began_at_0_may_be_another_connections() {
        let from = |first: u32| {
            known(
                (first..first + 9000)
                    .step_by(16)
                    .map(|psn| (A, psn + 4, psn)),
            )
        };
        assert_eq!(from(0), None);
        assert_eq!(from(FIRST_PSNS - 1), None);
        assert_eq!(from(FIRST_PSNS), Some(A));
        // Those that wrap have not begun there.
        assert_eq!(from(MAX_24 - 100), Some(A));
    }

    #[test]
    fn acknowledgements_to_two_qps_that_fit_one_flow_are_in_step() {
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
    fn what_is_yet_to_be_sent_is_not_acknowledged() {
        // Of as many acknowledgements, so many are ahead of the data.
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
    fn acknowledgements_end_a_connection_that_was_not_seen_to_be_closed() {
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
        // The other flow that is acknowledged to its QP, by how many acknowledgements, and where its PSNs began.
        let known_after = |other: FlowKey, acks: u32, psn: u32| {
            let mut resolver = Resolver::new(8);
            for message in [setup.request(), setup.reply(), setup.ready()] {
                with_frame(&message, |frame| resolver.learn(frame));
            }
            let mut flows = FlowTable::new(8);
            flows.data(first, 0, None, || 700_000);
            flows.data(other, 0, None, || psn + acks);
            flows.indexed();
            for psn in (psn..psn + acks).chain([psn + acks - 1]) {
                resolver.acknowledged(other.receiver, sender, qp, psn, &flows);
            }
            let known = resolver.flow_of(sender, qp);
            assert_eq!(resolver.sender_qp(&first).is_some(), known == Some(first));
            known
        };
        for (receiver, enough) in [(elsewhere, ENOUGH), (receiver, CONTRADICT)] {
            let (other, enough) = (flow(receiver, 0x999), u32::from(enough));
            assert_eq!(known_after(other, enough - 1, 50_000), Some(first));
            assert_eq!(known_after(other, enough, 50_000), Some(other));
        }
        // It may be another flow of that host, but surely none of the first one.
        assert_eq!(known_after(flow(elsewhere, 0x999), 2, 100), None);
        assert_eq!(known_after(flow(receiver, 0x999), 50, 100), Some(first));
        // Its own acknowledgements.
        assert_eq!(known_after(first, 50, 700_100), Some(first));
    }
}
