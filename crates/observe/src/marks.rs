//! CE marks on a flow's data: which of them a CNP may answer, and beside a switch's Fast CNPs, whether the very packet that
//! caused one was marked as well, which a switch must not do where it knows that the sender handles Fast CNPs
//! (draft-xiao-rtgwg-rocev2-fast-cnp section 4).
//!
//! A Fast CNP does not say which packet caused it. A mark on another packet, or by another switch, breaks nothing. Before the
//! switch is where its Fast CNP is seen first: that of a switch further on comes by the other place before. What may have
//! caused it are the packets of the flow that were seen in the millisecond before it. A mark within a millisecond of it, sooner
//! or later, is
//!
//! - the switch's, where each packet that may have caused the Fast CNP was seen unmarked before the switch and marked behind
//!   it, at the next place that saw it: where no other switch stands between the two, which no capture tells;
//! - nobody's business, where the packet was marked before the switch already, or came by only after the Fast CNP;
//! - [unclear](Rule::FastCnpMarkUnclear) else: the packet was seen behind the switch alone, or others may have caused the
//!   Fast CNP; and where packets are seen at one place, each mark.

use crate::sightings::{Look, Place};
use fcn_wire::{Kind, Notification, Origin, Rule};
use std::collections::VecDeque;

/// How long before a Fast CNP the packet that caused it may have been seen, and how long after one marks are beside it, in
/// nanoseconds \[choice\].
pub const BESIDE: u64 = 1_000_000;
/// Packets that may have caused a Fast CNP: where there are more within [`BESIDE`], it cannot be told.
const SUSPECTS: usize = 32;
/// The time of what was never seen.
const NEVER: u64 = u64::MAX;

/// A packet that came by.
#[derive(Clone, Copy, Debug)]
struct Passed {
    /// When and in which frame it was seen first.
    first: u64,
    frame: u32,
    /// Where it was seen first, or last unmarked.
    place: Place,
    mark: Mark,
}

/// Where a packet was marked, as far as it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// Nowhere so far.
    No,
    /// Before it was seen first.
    Before,
    /// Before it was seen at that place, and after it was seen first.
    Between(Place),
}

/// Whether a switch has marked a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guilt {
    No,
    Unclear,
    Yes,
}

/// A flow's marks.
#[derive(Clone, Debug)]
pub struct Marks {
    /// The last mark that the receiver has not answered.
    unanswered: u64,
    /// A switch's last Fast CNP about the flow.
    fast: u64,
    /// Where the sender is able.
    watch: Option<Box<Watch>>,
}

/// Who may be to blame.
#[derive(Clone, Debug)]
struct Watch {
    /// The last mark.
    last: u64,
    /// Where the last Fast CNP was seen first.
    place: Place,
    /// Whether the packet that caused it is still looked for.
    open: bool,
    /// Packets by their first sightings, where they are looked for at other places.
    passed: VecDeque<Passed>,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            last: NEVER,
            place: Place::default(),
            open: false,
            passed: VecDeque::new(),
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
    /// Whether a notification is such that its flow must not be marked as well.
    #[inline]
    #[must_use]
    pub fn counts(gist: &Notification) -> bool {
        matches!(gist.kind, Kind::FastCnp1 | Kind::FastCnp2) && gist.origin == Origin::Switch
    }

    /// When the last mark was seen that the receiver has not answered.
    #[must_use]
    pub fn unanswered(&self) -> Option<u64> {
        (self.unanswered != NEVER).then_some(self.unanswered)
    }

    /// The receiver has answered the marks so far.
    pub fn answered(&mut self) {
        self.unanswered = NEVER;
    }

    /// A switch's Fast CNP about the flow, at a time that does not go back; `several` is whether packets are seen at several
    /// places. Returns the rule that it shows broken.
    pub fn notified(&mut self, at: u64, place: Place, several: bool) -> Option<Rule> {
        self.fast = at;
        let watch = self.watch.as_mut()?;
        (watch.place, watch.open) = (place, true);
        if several {
            return watch.judge(at);
        }
        let beside = watch.last != NEVER && at.saturating_sub(watch.last) <= BESIDE;
        beside.then_some(Rule::FastCnpMarkUnclear)
    }

    /// A data packet of the flow, of a sender that is `able` to obey Fast CNPs or not. `earlier` is its first sighting, where
    /// this is another: packets are `watched` for that, and `several` is whether they are seen at several places. Returns the
    /// rule that it shows broken.
    #[inline]
    pub fn data(
        &mut self,
        look: Look,
        able: bool,
        (watched, several): (bool, bool),
        earlier: Option<Look>,
    ) -> Option<Rule> {
        if look.ce && earlier.is_none_or(|earlier| !earlier.ce) {
            self.unanswered = later(self.unanswered, look.at);
        }
        if !able || !look.ce && !watched {
            return None;
        }
        self.judge(look, (watched, several), earlier)
    }

    fn judge(
        &mut self,
        look: Look,
        (watched, several): (bool, bool),
        earlier: Option<Look>,
    ) -> Option<Rule> {
        let watch = self.watch.get_or_insert_default();
        if watched {
            watch.see(look, earlier.as_ref());
        }
        if !look.ce {
            return None;
        }
        watch.last = later(watch.last, look.at);
        if self.fast == NEVER {
            return None;
        }
        let unclear = Some(Rule::FastCnpMarkUnclear);
        let beside = look.at.saturating_sub(self.fast) <= BESIDE;
        if !several {
            return unclear.filter(|_| beside);
        }
        let is_before = |place| place == watch.place;
        match earlier {
            // Seen behind the switch alone.
            None => unclear.filter(|_| beside && !is_before(look.place)),
            Some(earlier) if earlier.ce || is_before(look.place) => None,
            Some(earlier) if suspected(self.fast).contains(&earlier.at) => {
                if is_before(earlier.place) {
                    watch.judge(self.fast).or(unclear)
                } else {
                    unclear
                }
            }
            Some(_) => None,
        }
    }
}

/// The later one of two times, the first of which may be none.
const fn later(last: u64, at: u64) -> u64 {
    if last == NEVER || last < at { at } else { last }
}

/// When a packet was seen that may have caused a Fast CNP.
const fn suspected(fast: u64) -> core::ops::RangeInclusive<u64> {
    fast.saturating_sub(BESIDE)..=fast
}

impl Passed {
    /// Whether a switch has marked it whose Fast CNP was seen at `place` first.
    fn guilt(&self, place: Place) -> Guilt {
        match self.mark {
            Mark::No => Guilt::No,
            Mark::Before if self.place == place => Guilt::No,
            Mark::Between(marked) if marked == place => Guilt::No,
            Mark::Between(_) if self.place == place => Guilt::Yes,
            Mark::Before | Mark::Between(_) => Guilt::Unclear,
        }
    }
}

impl Watch {
    /// A data packet, and its first sighting where this is another.
    fn see(&mut self, look: Look, earlier: Option<&Look>) {
        let passed = &mut self.passed;
        let Some(earlier) = earlier else {
            if passed.len() == SUSPECTS {
                passed.pop_front();
            }
            passed.push_back(Passed {
                first: look.at,
                frame: look.frame,
                place: look.place,
                mark: if look.ce { Mark::Before } else { Mark::No },
            });
            return;
        };
        if !earlier.ce && look.at >= earlier.at {
            let mut passed = passed.iter_mut().rev();
            if let Some(packet) = passed.find(|packet| packet.frame == earlier.frame) {
                if look.ce {
                    packet.mark = Mark::Between(look.place);
                } else {
                    packet.place = look.place;
                }
            }
        }
    }

    /// Blames the Fast CNP at `fast`, once, where every packet that may have caused it is known, and was marked by its switch.
    fn judge(&mut self, fast: u64) -> Option<Rule> {
        let suspected = suspected(fast);
        let passed = &self.passed;
        let is_all =
            passed.len() < SUSPECTS || passed.front().is_some_and(|p| p.first < *suspected.start());
        let guilts = (passed.iter())
            .filter(|packet| suspected.contains(&packet.first))
            .map(|packet| packet.guilt(self.place));
        let (mut all, mut any) = (true, false);
        for guilt in guilts {
            all &= guilt == Guilt::Yes;
            any |= guilt != Guilt::No;
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
    const HERE: Place = Place::new(0);
    const BEHIND: Place = Place::new(1);
    const START: u64 = 1_000_000_000;

    fn look(frame: u32, after: u64, ce: bool) -> Look {
        Look {
            at: START + after,
            frame,
            place: HERE,
            ce,
        }
    }

    const SEVERAL: (bool, bool) = (true, true);

    /// The same, behind the switch.
    fn behind(frame: u32, after: u64, ce: bool) -> Look {
        Look {
            place: BEHIND,
            ..look(frame, after, ce)
        }
    }

    /// A packet seen unmarked in `frame`, and behind the switch.
    fn pass(marks: &mut Marks, frame: u32, after: u64, marked: bool) -> Option<Rule> {
        let first = look(frame, after, false);
        assert_eq!(marks.data(first, true, SEVERAL, None), None);
        let then = behind(frame + 1, after + 10, marked);
        marks.data(then, true, SEVERAL, Some(first))
    }

    /// What is said of one packet with a Fast CNP 5 ns after its first sighting, and of the Fast CNP, where they come in
    /// that order.
    fn reported(packet: &[Look], fast_first: bool) -> [Option<Rule>; 2] {
        let mut marks = Marks::default();
        let mut fast = fast_first.then(|| marks.notified(START + 5, HERE, true));
        let mut earlier: Option<Look> = None;
        let mut of_data = None;
        for look in packet {
            let look = Look {
                at: look.at + if fast_first { 1000 } else { 0 },
                ..*look
            };
            of_data = of_data.or(marks.data(look, true, SEVERAL, earlier));
            let first = earlier.get_or_insert(look);
            first.ce |= look.ce;
            if !fast_first && fast.is_none() {
                fast = Some(marks.notified(START + 5, HERE, true));
            }
        }
        [of_data, fast.flatten()]
    }

    #[test]
    fn what_can_be_told_is_told() {
        // The packet that may have caused it: seen before and behind, behind alone, before alone.
        assert_eq!(
            reported(&[look(1, 0, false), behind(2, 10, true)], false),
            [BLAMED, None]
        );
        assert_eq!(
            reported(&[look(1, 0, false), behind(2, 10, false)], false),
            [None, None]
        );
        assert_eq!(
            reported(&[look(1, 0, true), behind(2, 10, true)], false),
            [None, None]
        );
        assert_eq!(reported(&[behind(1, 4, true)], false), [None, UNCLEAR]);
        assert_eq!(reported(&[behind(1, 4, false)], false), [None, None]);
        assert_eq!(reported(&[look(1, 0, false)], false), [None, None]);
        // One that came by only after it; behind alone it may have been before.
        assert_eq!(
            reported(&[look(1, 0, false), behind(2, 10, true)], true),
            [None, None]
        );
        assert_eq!(
            reported(&[look(1, 0, true), behind(2, 10, true)], true),
            [None, None]
        );
        assert_eq!(reported(&[behind(1, 4, true)], true), [UNCLEAR, None]);
    }

    #[test]
    fn the_packet_that_caused_it_and_was_marked_is_blamed_once() {
        let mut marks = Marks::default();
        assert_eq!(pass(&mut marks, 1, 0, true), None);
        assert_eq!(marks.notified(START + 20, HERE, true), BLAMED);
        assert_eq!(
            marks.notified(START + 30, HERE, true),
            BLAMED,
            "another one"
        );
        // Marked after the Fast CNP was seen, and after more than a millisecond.
        let mut marks = Marks::default();
        let first = look(1, 0, false);
        assert_eq!(marks.data(first, true, SEVERAL, None), None);
        assert_eq!(marks.notified(START + 5, HERE, true), None);
        let then = behind(2, 2 * BESIDE, true);
        assert_eq!(marks.data(then, true, SEVERAL, Some(first)), BLAMED);
        let third = behind(3, 2 * BESIDE + 20, true);
        let marked = Look { ce: true, ..first };
        assert_eq!(marks.data(third, true, SEVERAL, Some(marked)), None);
    }

    #[test]
    fn where_another_packet_may_have_caused_it_nobody_is_blamed() {
        // One before it came out unmarked.
        let mut marks = Marks::default();
        assert_eq!(pass(&mut marks, 1, 0, false), None);
        assert_eq!(pass(&mut marks, 3, 100, true), None);
        assert_eq!(marks.notified(START + 200, HERE, true), UNCLEAR);
        // Marked before the first place.
        let mut marks = Marks::default();
        assert_eq!(marks.data(look(1, 0, true), true, SEVERAL, None), None);
        assert_eq!(marks.notified(START + 5, HERE, true), None);
        // More than are remembered.
        let mut marks = Marks::default();
        for n in 0..=SUSPECTS as u32 {
            assert_eq!(pass(&mut marks, n * 2, u64::from(n) * 20, true), None);
        }
        assert_eq!(marks.notified(START + 2000, HERE, true), UNCLEAR);
        // A switch further on, whose Fast CNP comes by the second place first.
        let mut marks = Marks::default();
        assert_eq!(pass(&mut marks, 1, 0, true), None);
        assert_eq!(marks.notified(START + 20, BEHIND, true), None);
        // Unmarked at a second place, and marked at a third: whose Fast CNP came by the first alone stands before the second.
        let mut marks = Marks::default();
        assert_eq!(pass(&mut marks, 1, 0, false), None);
        let third = Look {
            place: Place::new(2),
            ..look(3, 20, true)
        };
        let first = look(1, 0, false);
        assert_eq!(marks.data(third, true, SEVERAL, Some(first)), None);
        assert_eq!(marks.notified(START + 30, HERE, true), UNCLEAR);
        assert_eq!(marks.notified(START + 30, BEHIND, true), BLAMED);
        // Long ago.
        let mut marks = Marks::default();
        assert_eq!(pass(&mut marks, 1, 0, true), None);
        assert_eq!(marks.notified(START + BESIDE + 1, HERE, true), None);
    }

    #[test]
    fn seen_at_one_place_it_cannot_be_told() {
        for watched in [false, true] {
            let one = (watched, false);
            let mut marks = Marks::default();
            assert_eq!(marks.data(look(1, 0, true), true, one, None), None);
            assert_eq!(marks.notified(START + BESIDE, HERE, false), UNCLEAR);
            assert_eq!(marks.notified(START + BESIDE + 10, HERE, false), None);
            let mut mark = |after| marks.data(look(2, after, true), true, one, None);
            assert_eq!(mark(10 + 2 * BESIDE), UNCLEAR);
            assert_eq!(mark(11 + 2 * BESIDE), None);
            assert_eq!(marks.data(look(2, 11, true), false, one, None), None);
            assert_eq!(marks.data(look(2, 11, false), true, one, None), None);
        }
    }

    #[test]
    fn a_mark_is_unanswered_until_the_receiver_has_answered() {
        let mut marks = Marks::default();
        marks.data(look(1, 0, true), false, SEVERAL, None);
        assert_eq!(marks.unanswered(), Some(START));
        marks.answered();
        // The same packet, at another place.
        marks.data(behind(2, 10, true), false, SEVERAL, Some(look(1, 0, true)));
        assert_eq!(marks.unanswered(), None);
        marks.data(behind(3, 20, true), false, SEVERAL, Some(look(1, 0, false)));
        assert_eq!(marks.unanswered(), Some(START + 20));
    }
}
