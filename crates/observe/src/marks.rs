//! CE marks on a flow's data beside a switch's Fast CNPs: whether the very packet that caused one was marked as well, which
//! a switch must not do where it knows that the sender handles Fast CNPs (draft-xiao-rtgwg-rocev2-fast-cnp section 4).
//!
//! A Fast CNP does not say which packet caused it. A mark on another packet, or by another switch, breaks nothing. So a
//! switch is blamed only where each packet that may have caused its Fast CNP (those of the flow in the millisecond before
//! it) was seen unmarked before the switch and marked behind it. Before the switch is where its Fast CNP is seen first: that
//! of a switch further on comes by the other place before. Marks soon after a Fast CNP that are not so clear are
//! [unclear](Rule::FastCnpMarkUnclear).

use crate::sightings::{Look, Place};
use fcn_wire::{Gist, Kind, Origin, Rule};
use std::collections::VecDeque;

/// How long before a Fast CNP the packet that caused it may have been seen, and how long after one marks are beside it, in
/// nanoseconds \[choice\].
pub const BESIDE: u64 = 1_000_000;
/// Packets that may have caused a Fast CNP: where there are more within [`BESIDE`], it cannot be told.
const SUSPECTS: usize = 32;
/// The time of what was never seen.
const NEVER: u64 = u64::MAX;

/// A packet that was seen unmarked, or marked already.
#[derive(Clone, Copy, Debug)]
struct Passed {
    first: u64,
    frame: u32,
    place: Place,
    /// Seen unmarked first, and marked later.
    marked_here: bool,
}

/// A flow's marks.
#[derive(Clone, Debug)]
pub struct Marks {
    /// The last mark.
    last: u64,
    /// A switch's last Fast CNP about the flow.
    fast: u64,
    /// Of a flow that is seen at several places.
    watch: Option<Box<Watch>>,
}

/// Who may be to blame.
#[derive(Clone, Debug, Default)]
struct Watch {
    /// Where the last Fast CNP was seen first.
    place: Place,
    /// Whether the packet that caused it is still looked for.
    open: bool,
    /// Packets by their first sightings.
    passed: VecDeque<Passed>,
}

impl Default for Marks {
    fn default() -> Self {
        Self {
            last: NEVER,
            fast: NEVER,
            watch: None,
        }
    }
}

impl Marks {
    /// Whether a notification is such that its flow must not be marked as well.
    #[inline]
    #[must_use]
    pub fn counts(gist: &Gist) -> bool {
        matches!(gist.kind, Kind::FastCnp1 | Kind::FastCnp2) && gist.origin == Origin::Switch
    }

    /// When the last mark was seen.
    #[must_use]
    pub fn last(&self) -> Option<u64> {
        (self.last != NEVER).then_some(self.last)
    }

    /// A switch's Fast CNP about the flow, at a time that does not go back. Returns the rule that it shows broken.
    pub fn notified(&mut self, at: u64, place: Place) -> Option<Rule> {
        self.fast = at;
        let watch = self.watch.as_mut()?;
        (watch.place, watch.open) = (place, true);
        watch.judge(at)
    }

    /// A data packet of the flow, of a sender that is `able` to obey Fast CNPs or not; `earlier` is its first sighting,
    /// where `several` places are told apart and it was seen at another. Returns the rule that it shows broken.
    #[inline]
    pub fn data(
        &mut self,
        look: Look,
        able: bool,
        several: bool,
        earlier: Option<Look>,
    ) -> Option<Rule> {
        if look.ce {
            self.last = if self.last == NEVER {
                look.at
            } else {
                self.last.max(look.at)
            };
        }
        if !able || !look.ce && !several {
            return None;
        }
        self.judge(look, several, earlier)
    }

    fn judge(&mut self, look: Look, several: bool, earlier: Option<Look>) -> Option<Rule> {
        if several {
            let watch = self.watch.get_or_insert_default();
            let passed = &mut watch.passed;
            match earlier {
                None => {
                    if passed.len() == SUSPECTS {
                        passed.pop_front();
                    }
                    passed.push_back(Passed {
                        first: look.at,
                        frame: look.frame,
                        place: look.place,
                        marked_here: false,
                    });
                }
                Some(earlier) if look.ce && !earlier.ce && look.at >= earlier.at => {
                    let packet = passed
                        .iter_mut()
                        .rev()
                        .find(|packet| packet.frame == earlier.frame);
                    if let Some(packet) = packet {
                        packet.marked_here = true;
                    }
                    if let broken @ Some(_) = watch.judge(self.fast) {
                        return broken;
                    }
                }
                // Seen marked before.
                Some(earlier) if earlier.ce => return None,
                Some(_) => {}
            }
        }
        let beside = self.fast != NEVER && look.at.saturating_sub(self.fast) <= BESIDE;
        (look.ce && beside).then_some(Rule::FastCnpMarkUnclear)
    }
}

impl Watch {
    /// Blames the Fast CNP at `fast`, once, where every packet that may have caused it is known, and was marked between two
    /// places.
    fn judge(&mut self, fast: u64) -> Option<Rule> {
        let from = fast.saturating_sub(BESIDE);
        let passed = &self.passed;
        let is_all = passed.len() < SUSPECTS || passed.front().is_some_and(|p| p.first < from);
        let mut suspects = (passed.iter())
            .filter(|packet| (from..=fast).contains(&packet.first))
            .peekable();
        let is_clear = self.open
            && is_all
            && suspects.peek().is_some()
            && suspects.all(|packet| packet.marked_here && packet.place == self.place);
        self.open &= !is_clear;
        is_clear.then_some(Rule::FastCnpMarked)
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

    /// A packet seen unmarked in `frame`, and behind the switch.
    fn pass(marks: &mut Marks, frame: u32, after: u64, marked: bool) -> Option<Rule> {
        let first = look(frame, after, false);
        assert_eq!(marks.data(first, true, true, None), None);
        marks.data(look(frame + 1, after + 10, marked), true, true, Some(first))
    }

    #[test]
    fn the_packet_that_caused_it_and_was_marked_is_blamed_once() {
        let mut marks = Marks::default();
        assert_eq!(pass(&mut marks, 1, 0, true), None);
        assert_eq!(marks.notified(START + 20, HERE), BLAMED);
        assert_eq!(marks.notified(START + 30, HERE), BLAMED, "another one");
        // Marked after the Fast CNP was seen.
        let mut marks = Marks::default();
        let first = look(1, 0, false);
        assert_eq!(marks.data(first, true, true, None), None);
        assert_eq!(marks.notified(START + 5, HERE), None);
        let behind = look(2, 10, true);
        assert_eq!(marks.data(behind, true, true, Some(first)), BLAMED);
        let third = look(3, 20, true);
        let marked = Look { ce: true, ..first };
        assert_eq!(marks.data(third, true, true, Some(marked)), None);
        assert_eq!(marks.last(), Some(START + 20));
    }

    #[test]
    fn where_another_packet_may_have_caused_it_nobody_is_blamed() {
        // One before it came out unmarked.
        let mut marks = Marks::default();
        assert_eq!(pass(&mut marks, 1, 0, false), None);
        assert_eq!(pass(&mut marks, 3, 100, true), None);
        assert_eq!(marks.notified(START + 200, HERE), None);
        // A later one is another: its mark is beside the Fast CNP.
        assert_eq!(pass(&mut marks, 5, 300, true), UNCLEAR);
        // Marked before the first place.
        let mut marks = Marks::default();
        assert_eq!(marks.data(look(1, 0, true), true, true, None), None);
        assert_eq!(marks.notified(START + 5, HERE), None);
        // More than are remembered.
        let mut marks = Marks::default();
        for n in 0..=SUSPECTS as u32 {
            assert_eq!(pass(&mut marks, n * 2, u64::from(n) * 20, true), None);
        }
        assert_eq!(marks.notified(START + 2000, HERE), None);
        // A switch further on, whose Fast CNP comes by the second place first.
        let mut marks = Marks::default();
        assert_eq!(pass(&mut marks, 1, 0, true), None);
        assert_eq!(marks.notified(START + 20, BEHIND), None);
        // Long ago.
        let mut marks = Marks::default();
        assert_eq!(pass(&mut marks, 1, 0, true), None);
        assert_eq!(marks.notified(START + BESIDE + 1, HERE), None);
    }

    #[test]
    fn seen_at_one_place_it_cannot_be_told() {
        let mut marks = Marks::default();
        assert_eq!(marks.data(look(1, 0, true), true, false, None), None);
        assert_eq!(marks.notified(START + 10, HERE), None);
        assert_eq!(
            marks.data(look(2, 10 + BESIDE, true), true, false, None),
            UNCLEAR
        );
        assert_eq!(
            marks.data(look(2, 11 + BESIDE, true), true, false, None),
            None
        );
        assert_eq!(marks.data(look(2, 11, true), false, false, None), None);
        assert_eq!(marks.data(look(2, 11, false), true, false, None), None);
    }
}
