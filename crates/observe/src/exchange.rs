//! Exchange of data and acknowledgements of one flow: acknowledgements by kind, retransmissions,
//! silences and their causes, round-trip time.
//!
//! A packet whose PSN was captured before is a retransmission or a copy by the capture. It counts
//! as a retransmission if a NAK refused it, if it follows a silence longer than any capture holds a
//! packet back, if it continues a run of retransmissions, or if the flow's order says so.

use crate::class::Class;
use crate::data::{Ecn, Sequence};
use crate::obedience::Order;
use fcn_wire::bth::{AckKind, MAX_24};
use fcn_wire::identified;

/// Minimum length of a silence, in ns: a sender that goes back after a NAK needs a few microseconds
/// \[choice\].
pub const SILENCE: u64 = 100_000;
/// Maximum time from a packet to its copy by the same capture, in ns \[choice\].
pub(crate) const COPIED_WITHIN: u64 = 1_000_000;
/// Maximum time from a NAK to the last data before the sender receives it, in ns \[choice\].
const IN_FLIGHT: u64 = 1_000_000;
/// Number of transmissions that most senders' largest retry counter allows: 7 retries (InfiniBand
/// volume 1, section 9.9.2.1.1).
pub const MOST_TRIES: u8 = 8;
/// Minimum number of transmissions of one packet from which retries may be exhausted.
const FEWEST_TRIES: u8 = 3;

identified! {
    /// Cause of a silence.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    Cause {
        /// An RNR NAK: the receiver asked the sender to wait.
        RnrNak = "rnr_nak",
        /// A NAK for a missing PSN.
        Nak = "nak",
        /// No answer: the sender waited for its retransmission timer.
        Unanswered = "unanswered",
    }
}

/// Silences of one cause: from a NAK, or from the last data, to the retransmission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Silences {
    /// Sum of their lengths, in ns.
    pub total: u64,
    /// Length of the longest, in ns.
    pub longest: u64,
    /// Number.
    pub count: u32,
}

/// A data packet of the flow.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Time in ns.
    pub at: u64,
    /// Its PSN.
    pub sequence: Sequence,
    /// Its order among the flow's packets.
    pub order: Order,
    /// True if it asks for an acknowledgement.
    pub asks_for_ack: bool,
    /// ECN field of its innermost IP header, if it has one.
    pub ecn: Option<Ecn>,
}

/// An acknowledgement of the flow's data, or the response to its RDMA READ.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    /// Time in ns.
    pub at: u64,
    /// Its PSN.
    pub psn: u32,
    /// Meaning of its syndrome.
    pub kind: AckKind,
    /// True if it is a copy of one captured elsewhere before.
    pub is_copy: bool,
    /// True if it is captured where the flow's data is captured first.
    pub beside_data: bool,
}

/// Something wrong with a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incident {
    /// Its data is Not-ECT; reported once.
    NotEct,
    /// It was silent.
    Silence {
        /// Cause.
        cause: Cause,
        /// Length in ns.
        length: u64,
        /// True for the flow's first silence.
        is_first: bool,
    },
    /// One packet was sent [`MOST_TRIES`] times, and not acknowledged.
    Tries,
}

impl Incident {
    /// Description of data that is Not-ECT.
    pub const NOT_ECT: &str = "The flow's data is Not-ECT: a congested switch cannot mark it, only drop it or pause its sender, so no CNP asks that to slow down";
    /// Description of a silence, without its cause and length.
    pub const STALLED: &str = "The flow stalled";
    /// Description of exhausted retries.
    pub const EXHAUSTED: &str = "A packet was sent 8 times and not acknowledged until then: most senders give up now, which ends the connection";
}

impl Cause {
    /// Returns what came before the silence, in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::RnrNak => "RNR NAK",
            Self::Nak => "NAK",
            Self::Unanswered => "no acknowledgement",
        }
    }
}

/// A NAK whose flow was not known when it came.
#[derive(Clone, Copy, Debug)]
pub struct EarlyNak {
    /// Time in ns.
    pub at: u64,
    /// Cause of the silence after it.
    pub cause: Cause,
}

/// Returns what silence an acknowledgement of that kind causes.
#[must_use]
pub const fn cause_of(kind: AckKind) -> Option<Cause> {
    match kind {
        AckKind::RnrNak => Some(Cause::RnrNak),
        AckKind::SequenceError => Some(Cause::Nak),
        _ => None,
    }
}

/// A data packet that a NAK refused.
#[derive(Clone, Copy, Debug)]
struct Refused {
    at: u64,
    psn: u32,
    cause: Cause,
    /// True if the sender has gone back to it.
    resumed: bool,
}

/// A packet sent several times without an acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Tried {
    /// Time from the last transmission but one to the last, in ns.
    wait: u64,
    at: u64,
    psn: u32,
    count: u8,
    /// True if newer data followed.
    passed: bool,
}

/// The last data packet.
#[derive(Clone, Copy, Debug)]
struct Last {
    at: u64,
    psn: u32,
    was_resent: bool,
}

/// A data packet whose acknowledgement is awaited.
#[derive(Clone, Copy, Debug, Default)]
struct Timed {
    at: u64,
    psn: u32,
}

/// Numbers of acknowledgements by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acks([u32; AckKind::ALL.len()]);

impl Acks {
    /// Counts one.
    pub fn add(&mut self, kind: AckKind) {
        if let Some(count) = self.0.get_mut(kind as usize) {
            *count = count.saturating_add(1);
        }
    }

    /// Returns the number of that kind.
    #[must_use]
    pub fn of(&self, kind: AckKind) -> u32 {
        self.0.get(kind as usize).copied().unwrap_or(0)
    }
}

/// Exchange of data and acknowledgements of one flow. Times are nanoseconds of any clock.
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    last: Option<Last>,
    /// Meaningless unless `is_timed`.
    timed: Timed,
    refused: Option<Refused>,
    tried: Option<Tried>,
    /// The highest PSN acknowledged.
    answered: Option<u32>,
    /// Shortest and latest time from a data packet to its acknowledgement, in ns; 0 for none.
    round_trip: (u64, u64),
    acks: Acks,
    silences: [Silences; Cause::ALL.len()],
    /// Data packets retransmitted.
    pub resent: u32,
    /// Data packets out of order.
    pub late: u32,
    /// Data packets that are Not-ECT.
    pub not_ect: u32,
    ecn: Option<Ecn>,
    ack_class: Option<Class>,
    is_timed: bool,
    /// True after the first acknowledgement of the connection.
    has_acks: bool,
}

/// Returns true if `psn` is `other` or after it.
const fn reaches(psn: u32, other: u32) -> bool {
    psn.wrapping_sub(other) & MAX_24 < 1 << 23
}

impl Exchange {
    /// Returns the exchange of the next connection of the same QPs, which counts on.
    #[must_use]
    pub fn succeeded(&self) -> Self {
        Self {
            last: None,
            refused: None,
            tried: None,
            answered: None,
            is_timed: false,
            has_acks: false,
            ..self.clone()
        }
    }

    /// Processes a data packet captured for the first time. `early` returns the NAK of a PSN that
    /// came before the flow of its QP was known, if one did.
    #[inline]
    pub fn data(
        &mut self,
        sent: &Sent,
        early: impl FnOnce(u32) -> Option<EarlyNak>,
    ) -> Option<Incident> {
        if sent.order == Order::Overtaken {
            return None;
        }
        let Some(psn) = sent.sequence.of_connection() else {
            return self.ecn(sent);
        };
        let is_resent = match sent.order {
            Order::New => false,
            Order::Request => self.has_answered(psn),
            _ => {
                self.refused_early(psn, early);
                self.is_resent(sent.at, psn, sent.order)
            }
        };
        if sent.order == Order::Copied && !is_resent {
            return None;
        }
        let incident = self.ecn(sent);
        let incident = match (is_resent, sent.order) {
            (true, _) => self.resent(sent.at, psn).or(incident),
            (false, Order::Late) => {
                self.late = self.late.saturating_add(1);
                incident
            }
            _ => {
                self.advanced(sent, psn);
                incident
            }
        };
        self.last = Some(Last {
            at: sent.at,
            psn,
            was_resent: is_resent,
        });
        incident
    }

    /// Records the ECN field; returns whether it is worth a report.
    #[inline]
    fn ecn(&mut self, sent: &Sent) -> Option<Incident> {
        let ecn = sent.ecn?;
        // A mark tells nothing about the codepoint before it.
        if ecn != Ecn::Ce || self.ecn.is_none() {
            self.ecn = Some(ecn);
        }
        if ecn != Ecn::NotCapable {
            return None;
        }
        self.not_ect = self.not_ect.saturating_add(1);
        // NICs control the rate of connections only.
        (self.not_ect == 1 && sent.sequence != Sequence::Datagram).then_some(Incident::NotEct)
    }

    /// Records new data.
    #[inline]
    fn advanced(&mut self, sent: &Sent, psn: u32) {
        if let Some(tried) = &mut self.tried {
            tried.passed = true;
        }
        if sent.asks_for_ack && !self.is_timed {
            self.timed = Timed { at: sent.at, psn };
            self.is_timed = true;
        }
    }

    /// Records the NAK that refused a packet whose PSN is not new, if it came early.
    #[cold]
    fn refused_early(&mut self, psn: u32, early: impl FnOnce(u32) -> Option<EarlyNak>) {
        if self.has_acks {
            return;
        }
        let last = self.last.map_or(0, |last| last.at);
        // One long before the last data is of another connection with the same PSNs.
        let is_its = |early: &EarlyNak| early.at.saturating_add(IN_FLIGHT) >= last;
        if let Some(EarlyNak { at, cause }) = early(psn).filter(is_its) {
            self.refused = Some(Refused {
                at,
                psn,
                cause,
                resumed: false,
            });
            if cause == Cause::RnrNak {
                self.tried = None;
            }
        }
    }

    /// Returns true if a packet whose PSN is not new was sent again.
    fn is_resent(&self, at: u64, psn: u32, order: Order) -> bool {
        let is_refused = (self.refused).is_some_and(|refused| reaches(psn, refused.psn));
        let runs_on = self.runs_on(psn);
        let since = self.last.map_or(0, |last| at.saturating_sub(last.at));
        match order {
            Order::Resent => true,
            Order::Late => is_refused || runs_on,
            Order::Copied => is_refused || runs_on || since >= COPIED_WITHIN,
            Order::New | Order::Overtaken | Order::Request => false,
        }
    }

    /// Returns true if a packet follows a retransmission in the order of PSNs.
    fn runs_on(&self, psn: u32) -> bool {
        (self.last).is_some_and(|last| last.was_resent && psn == last.psn.wrapping_add(1) & MAX_24)
    }

    /// Records a retransmission.
    #[cold]
    fn resent(&mut self, at: u64, psn: u32) -> Option<Incident> {
        self.resent = self.resent.saturating_add(1);
        // It is unknown which transmission an acknowledgement is for (Karn's rule).
        self.is_timed = false;
        let last = self.last.map_or(at, |last| last.at);
        let runs_on = self.runs_on(psn);
        let silence = match &mut self.refused {
            Some(refused) if !refused.resumed => {
                refused.resumed = true;
                Some((refused.cause, refused.at.max(last)))
            }
            _ if runs_on => None,
            _ => Some((Cause::Unanswered, last)),
        };
        let silence = silence.and_then(|(cause, from)| {
            let length = at.saturating_sub(from);
            (length >= SILENCE).then(|| self.silent(cause, length))?
        });
        self.tries(at, psn).or(silence)
    }

    fn silent(&mut self, cause: Cause, length: u64) -> Option<Incident> {
        let is_first = self.silences.iter().all(|silences| silences.count == 0);
        let silences = self.silences.get_mut(cause as usize)?;
        silences.count = silences.count.saturating_add(1);
        silences.total = silences.total.saturating_add(length);
        silences.longest = silences.longest.max(length);
        Some(Incident::Silence {
            cause,
            length,
            is_first,
        })
    }

    /// Counts the transmissions of the packet that a sender goes back to.
    fn tries(&mut self, at: u64, psn: u32) -> Option<Incident> {
        match &mut self.tried {
            Some(tried) if tried.psn == psn => {
                tried.count = tried.count.saturating_add(1);
                (tried.wait, tried.at) = (at.saturating_sub(tried.at), at);
                tried.passed = false;
                return (tried.count == MOST_TRIES).then_some(Incident::Tries);
            }
            // The packets after it are sent again as well.
            Some(tried) if !tried.passed && reaches(psn, tried.psn) => return None,
            _ => {}
        }
        self.tried = (!self.has_answered(psn)).then_some(Tried {
            wait: self.last.map_or(0, |last| at.saturating_sub(last.at)),
            at,
            psn,
            count: 2,
            passed: false,
        });
        None
    }

    /// Returns true if the packet with that PSN was acknowledged.
    #[must_use]
    pub fn has_answered(&self, psn: u32) -> bool {
        self.answered.is_some_and(|answered| reaches(answered, psn))
    }

    /// Returns true if an acknowledgement repeats an earlier one, as do copies by a capture.
    #[must_use]
    pub fn repeats(&self, psn: u32, kind: AckKind) -> bool {
        match cause_of(kind) {
            Some(cause) => (self.refused)
                .is_some_and(|known| (known.psn, known.cause) == (psn, cause) && !known.resumed),
            None if kind == AckKind::Ack => self.has_answered(psn),
            None => self.acks(kind) > 0,
        }
    }

    /// Processes an acknowledgement of `class`. Returns the round-trip time in ns, if it shows one.
    pub fn acknowledged(&mut self, reply: &Reply, class: Option<Class>) -> Option<u64> {
        self.has_acks = true;
        if !reply.is_copy {
            self.acks.add(reply.kind);
            self.ack_class = class;
        }
        self.answered(reply)
    }

    /// Processes an acknowledgement, without counting it: the response to an RDMA READ. Returns the
    /// round-trip time in ns, if it shows one.
    pub fn answered(&mut self, reply: &Reply) -> Option<u64> {
        let (at, psn) = (reply.at, reply.psn);
        let cause = cause_of(reply.kind);
        let is_ack = reply.kind == AckKind::Ack;
        if cause.is_none() && !is_ack {
            // The others end the connection.
            self.is_timed = false;
            return None;
        }
        let round_trip = (reply.beside_data).then(|| self.time(at, psn, is_ack));
        if let Some(cause) = cause {
            let is_known = self.repeats(psn, reply.kind);
            // Where the data is captured, the sender has not yet received it.
            if !reply.is_copy || is_known && reply.beside_data {
                self.refused = Some(Refused {
                    at,
                    psn,
                    cause,
                    resumed: false,
                });
            }
        }
        // A NAK acknowledges the packets before the one that it refuses.
        let psn = match cause {
            None => psn,
            Some(_) => psn.wrapping_sub(1) & MAX_24,
        };
        if self.answered.is_none_or(|answered| reaches(psn, answered)) {
            self.answered = Some(psn);
        }
        self.refused.take_if(|refused| reaches(psn, refused.psn));
        // After an RNR NAK the sender may try as often as it likes.
        let waits = cause == Some(Cause::RnrNak);
        self.tried
            .take_if(|tried| reaches(psn, tried.psn) || waits && tried.psn == reply.psn);
        round_trip.flatten()
    }

    /// Measures the round-trip time by a reply captured where the flow's data is captured first;
    /// `is_ack` is true unless it is a NAK.
    pub fn time(&mut self, at: u64, psn: u32, is_ack: bool) -> Option<u64> {
        if !self.is_timed {
            return None;
        }
        let timed = self.timed;
        if reaches(psn, timed.psn) || !is_ack {
            self.is_timed = false;
        }
        // An acknowledgement of a later packet may have waited for that.
        if psn != timed.psn || !is_ack {
            return None;
        }
        let time = at.checked_sub(timed.at)?.max(1);
        let shortest = match self.round_trip {
            (0, _) => time,
            (shortest, _) => shortest.min(time),
        };
        self.round_trip = (shortest, time);
        Some(time)
    }

    /// Returns the number of acknowledgements of that kind.
    #[must_use]
    pub fn acks(&self, kind: AckKind) -> u32 {
        self.acks.of(kind)
    }

    /// Returns true before the first acknowledgement of the connection: earlier ones may have been
    /// counted elsewhere.
    #[must_use]
    pub const fn lacks_acks(&self) -> bool {
        !self.has_acks
    }

    /// Adopts the acknowledgements captured before the sender's QP was known.
    pub fn adopt(&mut self, earlier: Acks) {
        for (count, earlier) in self.acks.0.iter_mut().zip(earlier.0) {
            *count = count.saturating_add(earlier);
        }
    }

    /// Returns the class of the last acknowledgement, if there was one.
    #[must_use]
    pub const fn ack_class(&self) -> Option<Class> {
        self.ack_class
    }

    /// Returns the ECN field of the last packet that was not marked CE, or CE if all were.
    #[must_use]
    pub const fn data_ecn(&self) -> Option<Ecn> {
        self.ecn
    }

    /// Returns the silences of at least [`SILENCE`] with that cause.
    #[must_use]
    pub fn silences(&self, cause: Cause) -> Silences {
        self.silences
            .get(cause as usize)
            .copied()
            .unwrap_or_default()
    }

    /// Returns the cause with the longest silence, and its length in ns.
    #[must_use]
    pub fn longest_silence(&self) -> Option<(Cause, u64)> {
        let all = Cause::ALL.into_iter().zip(&self.silences);
        let all = all.filter(|(_, silences)| silences.count > 0);
        all.map(|(cause, silences)| (cause, silences.longest))
            .max_by_key(|(_, longest)| *longest)
    }

    /// Returns the shortest time from a data packet to its acknowledgement, and the latest one, in
    /// ns: measured where the data is captured, of packets sent once.
    #[must_use]
    pub const fn round_trip(&self) -> Option<(u64, u64)> {
        match self.round_trip {
            (0, _) => None,
            times => Some(times),
        }
    }

    /// Returns the number of transmissions of the packet sent most recently several times, if it is
    /// not acknowledged and no newer data followed.
    #[must_use]
    pub fn unanswered_tries(&self) -> Option<u8> {
        let tried = self.tried.filter(|tried| !tried.passed)?;
        Some(tried.count)
    }

    /// Returns true if the sender has probably exhausted its retries by `now`: it sent one packet as
    /// often as possible, or at least three times and then kept silent for twice as long as before
    /// the last time.
    #[must_use]
    pub fn has_exhausted_retries(&self, now: u64) -> bool {
        self.tried.is_some_and(|tried| {
            let silent = self.last.map_or(0, |last| now.saturating_sub(last.at));
            !tried.passed
                && (tried.count >= MOST_TRIES
                    || tried.count >= FEWEST_TRIES && silent >= tried.wait.saturating_mul(2))
        })
    }
}

#[cfg(test)]
mod tests;
