//! CE marks on a flow's data: those that a CNP may answer, and, next to a switch's Fast CNPs,
//! whether the very packet that caused one was marked as well, which a switch must not do if it
//! knows that the sender handles Fast CNPs (draft-xiao-rtgwg-rocev2-fast-cnp section 4).
//!
//! A Fast CNP does not identify the packet that caused it. A mark on another packet, or by another
//! switch, breaks no rule. The capture point that sees a Fast CNP first is taken to be upstream of
//! its switch: the Fast CNP of a switch further on passes the other capture point first. The
//! packets that may have caused it are those of the flow captured in the millisecond before it. A
//! mark within a millisecond of it, before or after, is
//!
//! - the switch's, if each packet that may have caused the Fast CNP was captured unmarked before
//!   the switch and marked behind it, at the next capture point. This assumes that no other switch
//!   stands between the two, which no capture can tell;
//! - ignored, if the packet was already marked before the switch, or came only after the Fast CNP;
//! - [unclear](Rule::FastCnpMarkUnclear) otherwise: the packet was captured after the switch only,
//!   or others may have caused the Fast CNP; and with a single capture point, each mark.

use crate::sightings::{CapturePoint, Sighting};
use fcn_wire::{Kind, Notification, Origin, Rule};
use std::collections::VecDeque;

/// Maximum time from the packet that caused a Fast CNP to the Fast CNP, and from a Fast CNP to a
/// mark attributed to it, in nanoseconds \[choice\].
pub const CAUSE_WINDOW: u64 = 1_000_000;
/// Maximum number of packets that may have caused a Fast CNP: with more within [`CAUSE_WINDOW`],
/// the cause is unknown.
const MAX_CANDIDATES: usize = 32;
/// Time of an event that has not occurred.
const NEVER: u64 = u64::MAX;

/// A captured packet.
#[derive(Clone, Copy, Debug)]
struct RecentPacket {
    /// Time and frame of its first sighting.
    first: u64,
    frame: u32,
    /// Capture point of its first sighting, or of its last sighting unmarked.
    point: CapturePoint,
    mark: Mark,
}

/// Part of the path on which a packet was marked, as far as captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// Not marked so far.
    No,
    /// Before its first sighting.
    Before,
    /// After its first sighting, and before that capture point.
    Between(CapturePoint),
}

/// Answer to whether a switch has marked a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MarkedBySwitch {
    No,
    Unclear,
    Yes,
}

/// The CE marks of a flow.
#[derive(Clone, Debug)]
pub struct Marks {
    /// Time of the last mark that the receiver has not answered.
    unanswered: u64,
    /// Time of a switch's last Fast CNP about the flow.
    fast: u64,
    /// Present if the sender handles Fast CNPs.
    watch: Option<Box<Watch>>,
}

/// Packets and marks near a Fast CNP.
#[derive(Clone, Debug)]
struct Watch {
    /// Time of the last mark.
    last: u64,
    /// Capture point of the first sighting of the last Fast CNP.
    point: CapturePoint,
    /// True while the packet that caused it is being searched.
    open: bool,
    /// Packets by their first sightings, if they are looked for at other capture points.
    recent: VecDeque<RecentPacket>,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            last: NEVER,
            point: CapturePoint::default(),
            open: false,
            recent: VecDeque::new(),
        }
    }
}

impl Default for Marks {
    fn default() -> Self {
        Self {
            unanswered: NEVER,
            fast: NEVER,
            watch: None,
        }
    }
}

impl Marks {
    /// Returns true for a notification whose flow must not be marked as well.
    #[inline]
    #[must_use]
    pub fn counts(gist: &Notification) -> bool {
        matches!(gist.kind, Kind::FastCnp1 | Kind::FastCnp2) && gist.origin == Origin::Switch
    }

    /// Returns the time of the last mark that the receiver has not answered.
    #[must_use]
    pub fn unanswered(&self) -> Option<u64> {
        (self.unanswered != NEVER).then_some(self.unanswered)
    }

    /// Records that the receiver has answered the marks so far.
    pub fn answered(&mut self) {
        self.unanswered = NEVER;
    }

    /// Records a switch's Fast CNP about the flow; `at` must not go back. `several` is true with
    /// several capture points. Returns the rule that it shows broken.
    pub fn notified(&mut self, at: u64, point: CapturePoint, several: bool) -> Option<Rule> {
        self.fast = at;
        let watch = self.watch.as_mut()?;
        (watch.point, watch.open) = (point, true);
        if several {
            return watch.judge(at);
        }
        let beside = watch.last != NEVER && at.saturating_sub(watch.last) <= CAUSE_WINDOW;
        beside.then_some(Rule::FastCnpMarkUnclear)
    }

    /// Records a data packet of the flow; `able` is true if its sender handles Fast CNPs. `earlier`
    /// is its first sighting if this is a copy, `watched` is true if packets are remembered to find
    /// copies, and `several` with several capture points. Returns the rule that it shows broken.
    #[inline]
    pub fn data(
        &mut self,
        sighting: Sighting,
        able: bool,
        (watched, several): (bool, bool),
        earlier: Option<Sighting>,
    ) -> Option<Rule> {
        if sighting.ce && earlier.is_none_or(|earlier| !earlier.ce) {
            self.unanswered = later(self.unanswered, sighting.at);
        }
        if !able || !sighting.ce && !watched {
            return None;
        }
        self.judge(sighting, (watched, several), earlier)
    }

    fn judge(
        &mut self,
        sighting: Sighting,
        (watched, several): (bool, bool),
        earlier: Option<Sighting>,
    ) -> Option<Rule> {
        let watch = self.watch.get_or_insert_default();
        if watched {
            watch.see(sighting, earlier.as_ref());
        }
        if !sighting.ce {
            return None;
        }
        watch.last = later(watch.last, sighting.at);
        if self.fast == NEVER {
            return None;
        }
        let unclear = Some(Rule::FastCnpMarkUnclear);
        let beside = sighting.at.saturating_sub(self.fast) <= CAUSE_WINDOW;
        if !several {
            return unclear.filter(|_| beside);
        }
        let is_before = |place| place == watch.point;
        match earlier {
            // Captured behind the switch only.
            None => unclear.filter(|_| beside && !is_before(sighting.point)),
            Some(earlier) if earlier.ce || is_before(sighting.point) => None,
            Some(earlier) if candidate_times(self.fast).contains(&earlier.at) => {
                if is_before(earlier.point) {
                    watch.judge(self.fast).or(unclear)
                } else {
                    unclear
                }
            }
            Some(_) => None,
        }
    }
}

/// Returns the later of two times, the first of which may be [`NEVER`].
const fn later(last: u64, at: u64) -> u64 {
    if last == NEVER || last < at { at } else { last }
}

/// Returns the time range of the packets that may have caused a Fast CNP.
const fn candidate_times(fast: u64) -> core::ops::RangeInclusive<u64> {
    fast.saturating_sub(CAUSE_WINDOW)..=fast
}

impl RecentPacket {
    /// Determines whether the switch whose Fast CNP was first captured at `point` has marked the
    /// packet.
    fn guilt(&self, point: CapturePoint) -> MarkedBySwitch {
        match self.mark {
            Mark::No => MarkedBySwitch::No,
            Mark::Before if self.point == point => MarkedBySwitch::No,
            Mark::Between(marked) if marked == point => MarkedBySwitch::No,
            Mark::Between(_) if self.point == point => MarkedBySwitch::Yes,
            Mark::Before | Mark::Between(_) => MarkedBySwitch::Unclear,
        }
    }
}

impl Watch {
    /// Records a data packet; `earlier` is its first sighting if this is a copy.
    fn see(&mut self, sighting: Sighting, earlier: Option<&Sighting>) {
        let passed = &mut self.recent;
        let Some(earlier) = earlier else {
            if passed.len() == MAX_CANDIDATES {
                passed.pop_front();
            }
            passed.push_back(RecentPacket {
                first: sighting.at,
                frame: sighting.frame,
                point: sighting.point,
                mark: if sighting.ce { Mark::Before } else { Mark::No },
            });
            return;
        };
        if !earlier.ce && sighting.at >= earlier.at {
            let mut passed = passed.iter_mut().rev();
            if let Some(packet) = passed.find(|packet| packet.frame == earlier.frame) {
                if sighting.ce {
                    packet.mark = Mark::Between(sighting.point);
                } else {
                    packet.point = sighting.point;
                }
            }
        }
    }

    /// Returns the rule broken by the Fast CNP at `fast`, once: if every packet that may have
    /// caused it is recorded and was marked by its switch.
    fn judge(&mut self, fast: u64) -> Option<Rule> {
        let candidates = candidate_times(fast);
        let passed = &self.recent;
        let is_all = passed.len() < MAX_CANDIDATES
            || passed
                .front()
                .is_some_and(|p| p.first < *candidates.start());
        let guilts = (passed.iter())
            .filter(|packet| candidates.contains(&packet.first))
            .map(|packet| packet.guilt(self.point));
        let (mut all, mut any) = (true, false);
        for marked in guilts {
            all &= marked == MarkedBySwitch::Yes;
            any |= marked != MarkedBySwitch::No;
        }
        if !self.open || !any {
            return None;
        }
        if !all || !is_all {
            return Some(Rule::FastCnpMarkUnclear);
        }
        self.open = false;
        Some(Rule::FastCnpMarked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLAMED: Option<Rule> = Some(Rule::FastCnpMarked);
    const UNCLEAR: Option<Rule> = Some(Rule::FastCnpMarkUnclear);
    const HERE: CapturePoint = CapturePoint::new(0);
    const BEHIND: CapturePoint = CapturePoint::new(1);
    const START: u64 = 1_000_000_000;

    fn sighting(frame: u32, after: u64, ce: bool) -> Sighting {
        Sighting {
            at: START + after,
            frame,
            point: HERE,
            ce,
        }
    }

    const SEVERAL: (bool, bool) = (true, true);

    /// The same, behind the switch.
    fn behind(frame: u32, after: u64, ce: bool) -> Sighting {
        Sighting {
            point: BEHIND,
            ..sighting(frame, after, ce)
        }
    }

    /// A packet captured unmarked in `frame`, and then behind the switch.
    fn pass(marks: &mut Marks, frame: u32, after: u64, marked: bool) -> Option<Rule> {
        let first = sighting(frame, after, false);
        assert_eq!(marks.data(first, true, SEVERAL, None), None);
        let then = behind(frame + 1, after + 10, marked);
        marks.data(then, true, SEVERAL, Some(first))
    }

    /// Rules reported for one packet and for a Fast CNP 5 ns after its first sighting; with
    /// `fast_first`, the packet comes after the Fast CNP.
    fn reported(packet: &[Sighting], fast_first: bool) -> [Option<Rule>; 2] {
        let mut marks = Marks::default();
        let mut fast = fast_first.then(|| marks.notified(START + 5, HERE, true));
        let mut earlier: Option<Sighting> = None;
        let mut of_data = None;
        for sighting in packet {
            let sighting = Sighting {
                at: sighting.at + if fast_first { 1000 } else { 0 },
                ..*sighting
            };
            of_data = of_data.or(marks.data(sighting, true, SEVERAL, earlier));
            let first = earlier.get_or_insert(sighting);
            first.ce |= sighting.ce;
            if !fast_first && fast.is_none() {
                fast = Some(marks.notified(START + 5, HERE, true));
            }
        }
        [of_data, fast.flatten()]
    }

    #[test]
    fn marks_near_a_fast_cnp_are_reported() {
        // The packet that may have caused it: captured before and behind the switch, behind only,
        // before only.
        assert_eq!(
            reported(&[sighting(1, 0, false), behind(2, 10, true)], false),
            [BLAMED, None]
        );
        assert_eq!(
            reported(&[sighting(1, 0, false), behind(2, 10, false)], false),
            [None, None]
        );
        assert_eq!(
            reported(&[sighting(1, 0, true), behind(2, 10, true)], false),
            [None, None]
        );
        assert_eq!(reported(&[behind(1, 4, true)], false), [None, UNCLEAR]);
        assert_eq!(reported(&[behind(1, 4, false)], false), [None, None]);
        assert_eq!(reported(&[sighting(1, 0, false)], false), [None, None]);
        // A packet that came only after it; captured behind only, it may have passed before.
        assert_eq!(
            reported(&[sighting(1, 0, false), behind(2, 10, true)], true),
            [None, None]
        );
        assert_eq!(
            reported(&[sighting(1, 0, true), behind(2, 10, true)], true),
            [None, None]
        );
        assert_eq!(reported(&[behind(1, 4, true)], true), [UNCLEAR, None]);
    }

    #[test]
    fn a_marked_packet_that_caused_a_fast_cnp_is_reported_once() {
        let mut marks = Marks::default();
        assert_eq!(pass(&mut marks, 1, 0, true), None);
        assert_eq!(marks.notified(START + 20, HERE, true), BLAMED);
        assert_eq!(
            marks.notified(START + 30, HERE, true),
            BLAMED,
            "another one"
        );
        // Marked after the Fast CNP was captured, and after more than a millisecond.
        let mut marks = Marks::default();
        let first = sighting(1, 0, false);
        assert_eq!(marks.data(first, true, SEVERAL, None), None);
        assert_eq!(marks.notified(START + 5, HERE, true), None);
        let then = behind(2, 2 * CAUSE_WINDOW, true);
        assert_eq!(marks.data(then, true, SEVERAL, Some(first)), BLAMED);
        let third = behind(3, 2 * CAUSE_WINDOW + 20, true);
        let marked = Sighting { ce: true, ..first };
        assert_eq!(marks.data(third, true, SEVERAL, Some(marked)), None);
    }

    #[test]
    fn marks_are_unclear_if_another_packet_may_be_the_cause() {
        // An earlier packet was not marked.
        let mut marks = Marks::default();
        assert_eq!(pass(&mut marks, 1, 0, false), None);
        assert_eq!(pass(&mut marks, 3, 100, true), None);
        assert_eq!(marks.notified(START + 200, HERE, true), UNCLEAR);
        // Marked before the first capture point.
        let mut marks = Marks::default();
        assert_eq!(marks.data(sighting(1, 0, true), true, SEVERAL, None), None);
        assert_eq!(marks.notified(START + 5, HERE, true), None);
        // More packets than are remembered.
        let mut marks = Marks::default();
        for n in 0..=MAX_CANDIDATES as u32 {
            assert_eq!(pass(&mut marks, n * 2, u64::from(n) * 20, true), None);
        }
        assert_eq!(marks.notified(START + 2000, HERE, true), UNCLEAR);
        // A switch further on, whose Fast CNP passes the second capture point first.
        let mut marks = Marks::default();
        assert_eq!(pass(&mut marks, 1, 0, true), None);
        assert_eq!(marks.notified(START + 20, BEHIND, true), None);
        // Unmarked at a second capture point and marked at a third: a switch whose Fast CNP passes
        // only the first stands before the second.
        let mut marks = Marks::default();
        assert_eq!(pass(&mut marks, 1, 0, false), None);
        let third = Sighting {
            point: CapturePoint::new(2),
            ..sighting(3, 20, true)
        };
        let first = sighting(1, 0, false);
        assert_eq!(marks.data(third, true, SEVERAL, Some(first)), None);
        assert_eq!(marks.notified(START + 30, HERE, true), UNCLEAR);
        assert_eq!(marks.notified(START + 30, BEHIND, true), BLAMED);
        // Too long ago.
        let mut marks = Marks::default();
        assert_eq!(pass(&mut marks, 1, 0, true), None);
        assert_eq!(marks.notified(START + CAUSE_WINDOW + 1, HERE, true), None);
    }

    #[test]
    fn marks_are_unclear_with_one_capture_point() {
        for watched in [false, true] {
            let one = (watched, false);
            let mut marks = Marks::default();
            assert_eq!(marks.data(sighting(1, 0, true), true, one, None), None);
            assert_eq!(marks.notified(START + CAUSE_WINDOW, HERE, false), UNCLEAR);
            assert_eq!(marks.notified(START + CAUSE_WINDOW + 10, HERE, false), None);
            let mut mark = |after| marks.data(sighting(2, after, true), true, one, None);
            assert_eq!(mark(10 + 2 * CAUSE_WINDOW), UNCLEAR);
            assert_eq!(mark(11 + 2 * CAUSE_WINDOW), None);
            assert_eq!(marks.data(sighting(2, 11, true), false, one, None), None);
            assert_eq!(marks.data(sighting(2, 11, false), true, one, None), None);
        }
    }

    #[test]
    fn a_mark_is_unanswered_until_the_receiver_has_answered() {
        let mut marks = Marks::default();
        marks.data(sighting(1, 0, true), false, SEVERAL, None);
        assert_eq!(marks.unanswered(), Some(START));
        marks.answered();
        // The same packet, at another capture point.
        marks.data(
            behind(2, 10, true),
            false,
            SEVERAL,
            Some(sighting(1, 0, true)),
        );
        assert_eq!(marks.unanswered(), None);
        marks.data(
            behind(3, 20, true),
            false,
            SEVERAL,
            Some(sighting(1, 0, false)),
        );
        assert_eq!(marks.unanswered(), Some(START + 20));
    }
}
