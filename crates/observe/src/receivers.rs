//! Receivers of data: how they answer CE marks with CNPs, and how their NICs pace these.
//!
//! A notification point sends at most one CNP for a flow and interval (DCQCN section 3.1). So one
//! is *expected* for the first mark of a flow, and for the first one an interval or more after the
//! previous expected one.
//!
//! NICs limit CNPs by QP, by pair of addresses, or for all of a port. Which one shows in the gaps:
//! many are just as long as the limit, and none is shorter. Gaps between CNPs that no common limit
//! holds apart have all lengths.

use crate::bounded::Bounded;
use crate::gaps::Gaps;
use fcn_wire::{Qp, identified};
use std::net::IpAddr;

/// Interval between expected CNPs of a flow, in ns \[choice\]: the usual one of DCQCN.
pub const INTERVAL: u64 = 50_000;
/// Number of marks, and of expected CNPs, without any CNP after which a receiver is silent
/// \[choice\].
const SILENT: (u64, u64) = (32, 8);
/// Maximum number of receivers that are remembered.
const KEPT: usize = 1024;
/// Maximum number of pairs of addresses, and of QPs.
const KEPT_PAIRS: usize = 16 * KEPT;
/// Minimum number of gaps of each kind from which the pacing is inferred.
const ENOUGH: u32 = 32;
/// Percentile of the gaps that counts as the least one: a network may bring single CNPs closer
/// together.
const LEAST: u8 = 2;
/// A quarter of the gaps between CNPs under one limit are at most this many times as long as the
/// least one, while there are marks enough.
const CLOSE: f64 = 1.5;
/// Share of marks with a CNP above which nothing limits CNPs.
const ALL: f64 = 0.9;
/// Shortest gap in ns that is a limit: an unlimited NIC sends CNPs back to back.
const SHORTEST: u64 = 1_000;
/// Maximum time in ns between a CNP and a negative acknowledgement of the same flow that accompany
/// each other.
const TOGETHER: u64 = 10_000;

identified! {
    /// Unit by which a NIC limits the rate of its CNPs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    Pacing {
        /// By QP.
        Qp = "qp",
        /// By pair of addresses.
        Addresses = "addresses",
        /// All CNPs of the port together.
        Port = "port",
        /// Not at all: CNPs about the same QP follow each other within a microsecond.
        None = "none",
    }
}

/// Marks of one flow that a CNP may answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowMarks {
    /// Time of the first mark since the last CNP; 0 for none.
    unanswered: u64,
    /// Time of the last mark; 0 for none.
    last: u64,
    /// Time from which the next CNP is expected.
    next: u64,
    /// Time of the last CNP; 0 for none.
    answered: u64,
    /// Time of the last CNP and of the last negative acknowledgement, until one accompanies the
    /// other; 0 for none.
    notified: u64,
    refused: u64,
}

impl FlowMarks {
    /// Returns true if the last CNP was sent at most `time` ns before `at`.
    pub(crate) const fn is_within(&self, at: u64, time: u64) -> bool {
        self.answered > 0 && at.saturating_sub(self.answered) <= time
    }
}

/// A receiver.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    /// Data packets to it marked CE.
    pub marked: u64,
    /// CNPs expected for them.
    pub expected: u64,
    /// CNPs that it sent.
    pub cnps: u64,
    /// CNPs that answer a mark, or whose flow was not known when they came.
    pub answers: u64,
    /// CNPs with a negative acknowledgement of the same flow within 10 µs (`TOGETHER`).
    pub with_naks: u64,
    /// Time from a mark to its CNP, if the mark came an interval or more after the flow's previous
    /// CNP: earlier marks wait for the interval.
    pub delays: Gaps,
    /// True if any packet from it was captured: CNPs would have been captured as well.
    pub is_captured: bool,
    /// Gaps between consecutive CNPs about one QP, about different QPs at one address, and to
    /// different addresses; and their numbers.
    gaps: [(u32, Gaps); 3],
    /// The last CNP, and its destination.
    last: Option<(u64, IpAddr)>,
    /// True after it has been reported to be silent.
    is_reported: bool,
}

/// Least gaps between CNPs in ns, as far as there are enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeastGaps {
    /// About the same QP.
    pub qp: Option<u64>,
    /// About different QPs at one address.
    pub addresses: Option<u64>,
    /// To different addresses.
    pub port: Option<u64>,
}

/// Returns true if a limit keeps CNPs with these gaps apart; `None` if there are too few.
fn is_limited((count, gaps): &(u32, Gaps)) -> Option<bool> {
    let [Some(least), Some(quarter)] = gaps.percentiles([LEAST, 25]) else {
        return None;
    };
    let is_close = quarter as f64 <= CLOSE * least as f64;
    (*count >= ENOUGH).then_some(least >= SHORTEST && is_close)
}

impl Receiver {
    /// Returns the least gaps between its CNPs.
    #[must_use]
    pub fn least_gaps(&self) -> LeastGaps {
        let [qp, addresses, port] = (self.gaps.each_ref()).map(|(count, gaps)| {
            let [least] = gaps.percentiles([LEAST]);
            least.filter(|_| *count >= ENOUGH)
        });
        LeastGaps {
            qp,
            addresses,
            port,
        }
    }

    /// Returns the unit by which its CNPs are limited. `None` if there are too few, or the QPs that
    /// are notified at the same time do not distinguish the units.
    #[must_use]
    pub fn pacing(&self) -> Option<Pacing> {
        // With a CNP for every mark, gaps are those between marks.
        if self.marked > 0 && self.cnps as f64 > ALL * self.marked as f64 {
            return None;
        }
        let [qp, addresses, port] = self.gaps.each_ref().map(is_limited);
        match (addresses, port) {
            _ if self.least_gaps().qp? < SHORTEST => Some(Pacing::None),
            (Some(false), _) if qp == Some(true) => Some(Pacing::Qp),
            (Some(true) | None, Some(true)) => Some(Pacing::Port),
            (Some(true), Some(false)) => Some(Pacing::Addresses),
            _ => None,
        }
    }

    /// Returns true if it has sent no CNP though marks asked for some, and other packets from it
    /// were captured.
    #[must_use]
    pub const fn is_silent(&self) -> bool {
        let (marked, expected) = SILENT;
        self.cnps == 0 && self.marked >= marked && self.expected >= expected && self.is_captured
    }

    /// Returns the share of the expected CNPs that it sent, 0 to 1; `None` if none was expected.
    #[must_use]
    pub fn share_answered(&self) -> Option<f64> {
        let share = self.answers as f64 / self.expected as f64;
        (self.expected > 0).then(|| share.min(1.0))
    }

    /// Returns the number of CNPs that follow no mark: somebody else may generate them.
    #[must_use]
    pub const fn unprompted(&self) -> u64 {
        self.cnps - self.answers
    }
}

/// Receivers, by address.
///
/// Bounded: those with the oldest marks and CNPs are forgotten first.
#[derive(Debug)]
pub struct Receivers {
    receivers: Bounded<IpAddr, Receiver>,
    /// The last CNP by receiver and destination, and its QP.
    pairs: Bounded<(IpAddr, IpAddr), (u64, Qp)>,
    /// Time of the last CNP about a QP.
    qps: Bounded<(IpAddr, IpAddr, Qp), u64>,
    /// Number of receivers from which no packet was captured.
    unheard: usize,
    /// True after the first mark.
    has_marks: bool,
}

impl Default for Receivers {
    fn default() -> Self {
        Self {
            receivers: Bounded::new(KEPT),
            pairs: Bounded::new(KEPT_PAIRS),
            qps: Bounded::new(KEPT_PAIRS),
            unheard: 0,
            has_marks: false,
        }
    }
}

impl Receivers {
    /// Processes a data packet to `receiver`, marked CE. Returns true if the receiver is
    /// [silent](Receiver::is_silent) from now on.
    pub fn marked(&mut self, at: u64, receiver: IpAddr, flow: &mut FlowMarks) -> bool {
        let unheard = &mut self.unheard;
        let entry = (self.receivers).get_or_insert_with(receiver, at, || {
            *unheard += 1;
            Receiver::default()
        });
        self.has_marks = true;
        entry.marked += 1;
        flow.last = at.max(1);
        if flow.unanswered == 0 {
            flow.unanswered = flow.last;
        }
        if at >= flow.next {
            entry.expected += 1;
            flow.next = at.saturating_add(INTERVAL);
        }
        let is_silent = entry.is_silent();
        is_silent && !core::mem::replace(&mut entry.is_reported, is_silent)
    }

    /// Processes a negative acknowledgement from `receiver` for a flow.
    pub fn refused(&mut self, at: u64, receiver: IpAddr, flow: &mut FlowMarks) {
        flow.refused = at.max(1);
        self.accompanied(at, receiver, flow);
    }

    /// Counts a CNP and a negative acknowledgement that came together, once.
    fn accompanied(&mut self, at: u64, receiver: IpAddr, flow: &mut FlowMarks) {
        let earlier = flow.refused.min(flow.notified);
        if earlier > 0
            && at.saturating_sub(earlier) <= TOGETHER
            && let Some(receiver) = self.receivers.get_mut(&receiver)
        {
            receiver.with_naks += 1;
            (flow.refused, flow.notified) = (0, 0);
        }
    }

    /// Processes a packet from `host` that is no data, as evidence that CNPs from it would be
    /// captured.
    #[inline]
    pub fn heard(&mut self, host: IpAddr) {
        if self.unheard > 0 {
            self.heard_now(host);
        }
    }

    #[cold]
    fn heard_now(&mut self, host: IpAddr) {
        if let Some(receiver) = self.receivers.get_mut(&host)
            && !core::mem::replace(&mut receiver.is_captured, true)
        {
            self.unheard -= 1;
        }
    }

    /// Processes a CNP from `receiver` to the QP `qp` at `sender`; `flow` is the flow that it is
    /// about, if known.
    pub fn notified(
        &mut self,
        at: u64,
        (receiver, sender, qp): (IpAddr, IpAddr, Qp),
        flow: Option<&mut FlowMarks>,
    ) {
        if flow.is_none() && self.has_marks && self.receivers.get(&receiver).is_none() {
            // A switch or proxy that sends CNPs.
            return;
        }
        let unheard = &mut self.unheard;
        let entry = (self.receivers).get_or_insert_with(receiver, at, || {
            *unheard += 1;
            Receiver::default()
        });
        entry.cnps += 1;
        entry.answers += u64::from(flow.is_none());
        if !core::mem::replace(&mut entry.is_captured, true) {
            *unheard -= 1;
        }
        let gap = |earlier: u64| at.saturating_sub(earlier);
        let mut gaps = [None; 3];
        let mut is_new = false;
        let last = (self.qps).get_or_insert_with((receiver, sender, qp), at, || {
            is_new = true;
            at
        });
        let earlier = core::mem::replace(last, at);
        gaps[0] = (!is_new).then(|| gap(earlier));
        let last = (self.pairs).get_or_insert_with((receiver, sender), at, || (at, qp));
        let (earlier, other) = core::mem::replace(last, (at, qp));
        gaps[1] = (other != qp).then(|| gap(earlier));
        if let Some((earlier, other)) = entry.last.replace((at, sender)) {
            gaps[2] = (other != sender).then(|| gap(earlier));
        }
        for (gap, (count, gaps)) in gaps.into_iter().zip(&mut entry.gaps) {
            if let Some(gap) = gap {
                gaps.add(gap);
                *count = count.saturating_add(1);
            }
        }
        if let Some(flow) = flow {
            let marked = core::mem::take(&mut flow.unanswered);
            let last = core::mem::replace(&mut flow.answered, at.max(1));
            let is_recent = flow.last > 0 && at <= flow.last.saturating_add(INTERVAL);
            entry.answers += u64::from(marked > 0 || is_recent);
            if marked > 0 && (last == 0 || marked >= last.saturating_add(INTERVAL)) {
                entry.delays.add(gap(marked));
            }
            flow.notified = at.max(1);
            self.accompanied(at, receiver, flow);
        }
    }

    /// Returns the receivers, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&IpAddr, &Receiver)> {
        self.receivers.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RECEIVER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 2, 1));

    fn sender(number: u8) -> IpAddr {
        IpAddr::from([10, 0, 1, number])
    }

    fn only(receivers: &Receivers) -> &Receiver {
        receivers.iter().next().unwrap().1
    }

    #[test]
    fn one_cnp_is_expected_for_a_flow_and_interval() {
        let (mut receivers, mut flow) = (Receivers::default(), FlowMarks::default());
        for at in [1_000, 2_000, 50_999, 51_000, 60_000, 101_000] {
            receivers.marked(at, RECEIVER, &mut flow);
        }
        let receiver = only(&receivers);
        assert_eq!((receiver.marked, receiver.expected), (6, 3));
        let qp = Qp::truncate(5);
        for at in [103_000, 104_000, 200_000] {
            receivers.notified(at, (RECEIVER, sender(1), qp), Some(&mut flow));
        }
        let receiver = only(&receivers);
        assert_eq!(
            (receiver.cnps, receiver.answers, receiver.unprompted()),
            (3, 2, 1)
        );
        assert_eq!(receiver.share_answered(), Some(2.0 / 3.0));
        assert_eq!(receiver.delays.min(), Some(102_000));
    }

    #[test]
    fn a_receiver_is_silent_only_if_others_of_its_packets_are_captured() {
        let (mut receivers, mut flow) = (Receivers::default(), FlowMarks::default());
        let mut mark = |receivers: &mut Receivers, at| receivers.marked(at, RECEIVER, &mut flow);
        for number in 0..100 {
            assert!(!mark(&mut receivers, 1 + number * 20_000));
        }
        receivers.heard(sender(1));
        assert!(!mark(&mut receivers, 3_000_000));
        receivers.heard(RECEIVER);
        assert!(mark(&mut receivers, 3_000_001));
        assert!(!mark(&mut receivers, 3_000_002), "once");
        assert!(only(&receivers).is_silent());
        let about = (RECEIVER, sender(1), Qp::truncate(5));
        receivers.notified(4_000_000, about, Some(&mut flow));
        assert!(!only(&receivers).is_silent());
    }

    #[test]
    fn cnps_and_negative_acknowledgements_that_come_together_count_once() {
        let (mut receivers, mut flow) = (Receivers::default(), FlowMarks::default());
        let about = (RECEIVER, sender(1), Qp::truncate(5));
        receivers.notified(1_000, about, Some(&mut flow));
        receivers.refused(2_000, RECEIVER, &mut flow);
        receivers.refused(3_000, RECEIVER, &mut flow);
        receivers.notified(100_000, about, Some(&mut flow));
        assert_eq!(only(&receivers).with_naks, 1);
        receivers.refused(109_000, RECEIVER, &mut flow);
        assert_eq!(only(&receivers).with_naks, 2);
    }

    /// Sends a CNP about one of three QPs at one of two senders for each mark, at random, but not
    /// within `limit` after the last one of the same `unit`.
    fn paced(unit: impl Fn(u8, u32) -> u32, limit: u64) -> Option<Pacing> {
        let mut receivers = Receivers::default();
        let mut free = std::collections::HashMap::new();
        let mut random = 1_u64;
        for number in 0..20_000_u64 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let at = 1 + number * 3_300 + (random >> 40) % 3_000;
            let (to, qp) = ((random >> 60) as u8 % 2, (random >> 50) as u32 % 3);
            let free = free.entry(unit(to, qp)).or_insert(0);
            if at >= *free {
                *free = at + limit;
                let about = (RECEIVER, sender(to), Qp::truncate(5 + qp));
                receivers.notified(at, about, None);
            }
        }
        only(&receivers).pacing()
    }

    #[test]
    fn the_unit_of_pacing_shows_in_the_least_gaps() {
        assert_eq!(
            paced(|to, qp| u32::from(to) << 8 | qp, 50_000),
            Some(Pacing::Qp)
        );
        assert_eq!(paced(|to, _| to.into(), 50_000), Some(Pacing::Addresses));
        assert_eq!(paced(|_, _| 0, 50_000), Some(Pacing::Port));
    }

    #[test]
    fn units_that_the_traffic_does_not_distinguish_are_unknown() {
        let mut receivers = Receivers::default();
        // One QP after another.
        for number in 0..400_u64 {
            let qp = Qp::truncate(5 + (number / 100) as u32);
            receivers.notified(1 + number * 50_000, (RECEIVER, sender(1), qp), None);
        }
        let receiver = only(&receivers);
        assert_eq!(receiver.pacing(), None);
        let gap = receiver.least_gaps().qp.unwrap();
        assert!((49_500..=50_500).contains(&gap), "{gap}");
    }

    #[test]
    fn back_to_back_cnps_about_one_qp_are_not_paced() {
        let mut receivers = Receivers::default();
        for number in 0..100_u64 {
            receivers.notified(
                1 + number * 200,
                (RECEIVER, sender(1), Qp::truncate(5)),
                None,
            );
        }
        assert_eq!(only(&receivers).pacing(), Some(Pacing::None));
    }

    proptest! {
        #[test]
        fn any_order_of_packets_is_counted(
            packets in proptest::collection::vec((0..4_u8, any::<u64>(), 0..3_u8), 0..200),
        ) {
            let (mut receivers, mut flow) = (Receivers::default(), FlowMarks::default());
            for (kind, at, host) in packets {
                match kind {
                    0 => drop(receivers.marked(at, RECEIVER, &mut flow)),
                    1 => receivers.refused(at, RECEIVER, &mut flow),
                    2 => receivers.heard(sender(host)),
                    _ => receivers.notified(at, (RECEIVER, sender(host), Qp::truncate(5)), Some(&mut flow)),
                }
            }
            for (_, receiver) in receivers.iter() {
                prop_assert!(receiver.answers <= receiver.cnps);
                prop_assert!(receiver.expected <= receiver.marked);
                let _ = receiver.pacing();
            }
        }
    }
}
