//! Pauses of traffic by Ethernet flow control: PFC (IEEE 802.1Q clause 36.1), which pauses classes,
//! and PAUSE (IEEE 802.3 annex 31B), which pauses all traffic.
//!
//! A pause time is counted in quanta of 512 bit times, so how long it lasts depends on the link's
//! speed. Frames that renew a pause belong to its *episode*. An episode ends with a pause time of 0
//! (XON), or times out: no frame renews it within twice its pause time.

use crate::bounded::Bounded;
use crate::sightings::CapturePoint;
use core::num::NonZeroU64;
use fcn_wire::pfc::QUANTUM_BITS;

/// Usual speed of a link in bit/s \[choice\].
pub const LINK_SPEED: NonZeroU64 = NonZeroU64::new(100_000_000_000).unwrap();
/// Shortest episode that is a storm, in ns \[choice\]: PFC watchdogs of switches detect a storm
/// after 100 to 400 ms.
pub const STORM: u64 = 200_000_000;
/// Maximum number of senders of pauses that are remembered, one for each class.
const KEPT: usize = 1024;
/// An episode times out if it is not renewed within this many of its pause times.
const RENEWED_WITHIN: u64 = 2;

/// Traffic that is paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// A class of traffic, 0 to 7.
    Class(u8),
    /// All traffic of the link.
    Link,
}

impl Scope {
    /// Returns the class, if it is one.
    #[must_use]
    pub const fn class(self) -> Option<u8> {
        match self {
            Self::Class(class) => Some(class),
            Self::Link => None,
        }
    }

    /// Returns what includes some of the same traffic.
    fn overlapping(self) -> impl Iterator<Item = Self> {
        let classes = match self {
            Self::Class(class) => class..class + 1,
            Self::Link => 0..8,
        };
        classes.map(Self::Class).chain([Self::Link])
    }
}

/// Sender of pauses, and what it pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pauser {
    /// Capture point.
    pub point: CapturePoint,
    /// Source address of the frames: its neighbour on the link is what pauses.
    pub mac: [u8; 6],
    /// Traffic that it pauses.
    pub scope: Scope,
}

/// An episode that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Open {
    start: u64,
    renewed: u64,
    /// Pause time of the last frame.
    time: u64,
}

impl Open {
    const fn until(&self) -> u64 {
        self.renewed.saturating_add(self.time)
    }

    const fn has_timed_out(&self, at: u64) -> bool {
        at.saturating_sub(self.renewed) > RENEWED_WITHIN.saturating_mul(self.time)
    }
}

/// Pauses from one sender. Times are in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pauses {
    /// Frames that pause.
    pub frames: u64,
    /// Episodes that a pause time of 0 ended before their time.
    pub resumed: u64,
    /// Sum of the pause times in quanta.
    pub quanta: u64,
    /// Episodes, the open one included.
    pub episodes: u64,
    /// Episodes that timed out before a later frame.
    timed_out: u64,
    /// Time paused in episodes that have ended.
    paused: u64,
    /// Longest episode that has ended.
    longest: u64,
    /// First and last frame.
    pub first: u64,
    /// Time of the last frame.
    pub last: u64,
    open: Option<Open>,
    /// True if that was reported for the open episode.
    is_storm: bool,
    is_mutual: bool,
}

impl Pauses {
    /// Returns the time paused up to `now`.
    #[must_use]
    pub fn paused(&self, now: u64) -> u64 {
        let open = self.open.map_or(0, |open| {
            now.clamp(open.renewed, open.until()) - open.renewed
        });
        self.paused.saturating_add(open)
    }

    /// Returns the number of episodes that have timed out by `now`.
    #[must_use]
    pub fn timed_out(&self, now: u64) -> u64 {
        let is_over = self.open.is_some_and(|open| open.has_timed_out(now));
        self.timed_out + u64::from(is_over)
    }

    /// Returns the length of the longest episode up to `now`.
    #[must_use]
    pub fn longest(&self, now: u64) -> u64 {
        let open = self
            .open
            .map_or(0, |open| now.clamp(open.renewed, open.until()) - open.start);
        self.longest.max(open)
    }

    /// Processes a frame with the pause time `time` in ns; returns true if its episode becomes a
    /// storm.
    fn frame(&mut self, at: u64, quanta: u16, time: u64) -> bool {
        // Time stamps that go back count as the latest one.
        let at = at.max(self.last);
        if self.first == 0 {
            self.first = at;
        }
        self.last = at;
        if let Some(open) = &mut self.open {
            let renewed = at.min(open.until());
            self.paused += renewed - open.renewed;
            if open.has_timed_out(at) {
                self.longest = self.longest.max(renewed - open.start);
                self.timed_out += 1;
                self.open = None;
            }
        }
        if quanta == 0 {
            if let Some(open) = self.open.take() {
                self.longest = self.longest.max(at.min(open.until()) - open.start);
                match at < open.until() {
                    true => self.resumed += 1,
                    false => self.timed_out += 1,
                }
            }
            return false;
        }
        self.frames += 1;
        self.quanta += u64::from(quanta);
        let open = self.open.get_or_insert_with(|| {
            self.episodes += 1;
            (self.is_storm, self.is_mutual) = (false, false);
            Open {
                start: at,
                renewed: at,
                time,
            }
        });
        (open.renewed, open.time) = (at, time);
        let is_storm = at - open.start >= STORM;
        is_storm && !core::mem::replace(&mut self.is_storm, is_storm)
    }
}

/// Something remarkable about pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseFinding {
    /// The episode has lasted for [`STORM`].
    Storm,
    /// Another sender at the same capture point pauses the same traffic now, be it by PFC or all of
    /// it by PAUSE. If these are the two ends of a link, neither can send what would let the other
    /// resume.
    Mutual {
        /// The other sender.
        other: [u8; 6],
    },
}

/// The latest pause of some traffic at a capture point.
#[derive(Clone, Copy, Debug)]
struct Latest {
    mac: [u8; 6],
    until: u64,
}

/// Pauses by sender and class.
///
/// Bounded: senders whose latest frame is oldest are forgotten first.
#[derive(Debug)]
pub struct PauseTable {
    pausers: Bounded<Pauser, Pauses>,
    latest: Bounded<(CapturePoint, Scope), Latest>,
    speed: NonZeroU64,
}

impl PauseTable {
    /// Returns an empty table for links of `speed` bits per second.
    #[must_use]
    pub fn new(speed: NonZeroU64) -> Self {
        Self {
            pausers: Bounded::new(KEPT),
            latest: Bounded::new(KEPT),
            speed,
        }
    }

    /// Processes a pause of `quanta` at `at`, in ns; 0 lets the traffic resume. Reports each finding
    /// once an episode.
    pub fn frame(&mut self, at: u64, pauser: Pauser, quanta: u16) -> Option<PauseFinding> {
        let time = u64::from(quanta) * QUANTUM_BITS * 1_000_000_000 / self.speed;
        let pauses = (self.pausers).get_or_insert_with(pauser, at, Pauses::default);
        let becomes_storm = pauses.frame(at, quanta, time);
        let known = (pauser.point, pauser.scope);
        if quanta == 0 {
            if let Some(latest) = self.latest.get_mut(&known)
                && latest.mac == pauser.mac
            {
                latest.until = latest.until.min(at);
            }
            return None;
        }
        let latest = Latest {
            mac: pauser.mac,
            until: at.saturating_add(time),
        };
        let others = &self.latest;
        let other = (pauser.scope.overlapping())
            .filter_map(|scope| others.get(&(pauser.point, scope)))
            .find(|other| other.mac != pauser.mac && other.until > at)
            .map(|other| other.mac);
        *(self.latest).get_or_insert_with(known, at, || latest) = latest;
        if becomes_storm {
            return Some(PauseFinding::Storm);
        }
        other
            .filter(|_| !core::mem::replace(&mut pauses.is_mutual, true))
            .map(|other| PauseFinding::Mutual { other })
    }

    /// Returns true if no pause was captured.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.pausers.is_empty()
    }

    /// Returns true if traffic of `priority` from `source` was paused at a time after `since`; with
    /// an unknown priority, if all traffic was. A pause applies to all that its sender does not send
    /// itself.
    #[must_use]
    pub fn paused_since(
        &self,
        point: CapturePoint,
        source: [u8; 6],
        priority: Option<u8>,
        since: u64,
    ) -> bool {
        let scopes = [Some(Scope::Link), priority.map(Scope::Class)];
        scopes.into_iter().flatten().any(|scope| {
            let latest = self.latest.get(&(point, scope));
            latest.is_some_and(|latest| latest.mac != source && latest.until > since)
        })
    }

    /// Returns the senders of pauses, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&Pauser, &Pauses)> {
        self.pausers.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const OTHER: [u8; 6] = [2, 0, 0, 0, 0, 2];
    /// 100 Gbit/s: a quantum lasts 5.12 ns, and the longest pause 335.5 µs.
    const SPEED: NonZeroU64 = LINK_SPEED;
    const LONGEST: u64 = 335_539;

    fn pauser(mac: [u8; 6]) -> Pauser {
        Pauser {
            point: CapturePoint::default(),
            mac,
            scope: Scope::Class(3),
        }
    }

    fn only(table: &PauseTable) -> Pauses {
        *table.iter().next().unwrap().1
    }

    #[test]
    fn a_pause_lasts_until_the_next_frame_or_its_time() {
        let mut table = PauseTable::new(SPEED);
        table.frame(1_000, pauser(MAC), u16::MAX);
        table.frame(11_000, pauser(MAC), 0);
        let pauses = only(&table);
        assert_eq!(
            (pauses.paused(u64::MAX), pauses.longest(u64::MAX)),
            (10_000, 10_000)
        );
        assert_eq!(
            (pauses.episodes, pauses.resumed, pauses.timed_out(0)),
            (1, 1, 0)
        );
        table.frame(20_000, pauser(MAC), u16::MAX);
        let pauses = only(&table);
        assert_eq!(pauses.paused(25_000), 15_000, "up to now");
        assert_eq!(pauses.paused(u64::MAX), 10_000 + LONGEST);
        table.frame(20_000 + 3 * LONGEST, pauser(MAC), 1_000);
        let pauses = only(&table);
        assert_eq!(
            (pauses.episodes, pauses.resumed, pauses.timed_out(0)),
            (3, 1, 1)
        );
        assert_eq!(pauses.paused(u64::MAX), 10_000 + LONGEST + 5_120);
        assert_eq!((pauses.frames, pauses.quanta), (3, 2 * 65_535 + 1_000));
    }

    #[test]
    fn a_pause_that_is_renewed_for_long_is_a_storm_once() {
        let mut table = PauseTable::new(SPEED);
        let mut findings = (0..=2_500_u64)
            .filter_map(|number| table.frame(1 + number * 400_000, pauser(MAC), u16::MAX));
        assert_eq!(findings.next(), Some(PauseFinding::Storm));
        assert_eq!(findings.next(), None);
        drop(findings);
        let pauses = only(&table);
        assert_eq!((pauses.episodes, pauses.timed_out(0)), (1, 0));
        assert_eq!(pauses.paused(u64::MAX), 2_501 * LONGEST);
        assert_eq!(pauses.longest(u64::MAX), 2_500 * 400_000 + LONGEST);
    }

    #[test]
    fn traffic_is_paused_until_the_end_of_a_pause() {
        let mut table = PauseTable::new(SPEED);
        table.frame(1_000, pauser(MAC), u16::MAX);
        let paused = |table: &PauseTable, mac, priority, since| {
            table.paused_since(CapturePoint::default(), mac, priority, since)
        };
        assert!(paused(&table, OTHER, Some(3), 1_000 + LONGEST - 1));
        assert!(!paused(&table, OTHER, Some(3), 1_000 + LONGEST));
        table.frame(5_000, pauser(MAC), 0);
        assert!(paused(&table, OTHER, Some(3), 4_999));
        assert!(!paused(&table, OTHER, Some(3), 5_000));
        for (mac, priority) in [(MAC, Some(3)), (OTHER, Some(4)), (OTHER, None)] {
            assert!(!paused(&table, mac, priority, 0));
        }
    }

    #[test]
    fn two_senders_that_pause_each_other_are_reported_once() {
        let mut table = PauseTable::new(SPEED);
        assert_eq!(table.frame(1_000, pauser(MAC), u16::MAX), None);
        let mutual = Some(PauseFinding::Mutual { other: MAC });
        assert_eq!(table.frame(2_000, pauser(OTHER), u16::MAX), mutual);
        let back = Some(PauseFinding::Mutual { other: OTHER });
        assert_eq!(table.frame(3_000, pauser(MAC), u16::MAX), back);
        assert_eq!(table.frame(4_000, pauser(OTHER), u16::MAX), None);
        let another_class = Pauser {
            scope: Scope::Class(4),
            ..pauser(MAC)
        };
        assert_eq!(table.frame(5_000, another_class, u16::MAX), None);
    }

    #[test]
    fn a_pause_of_a_class_and_one_of_all_traffic_are_mutual() {
        let all = |mac| Pauser {
            scope: Scope::Link,
            ..pauser(mac)
        };
        for [first, second] in [[pauser(MAC), all(OTHER)], [all(MAC), pauser(OTHER)]] {
            let mut table = PauseTable::new(SPEED);
            assert_eq!(table.frame(1_000, first, u16::MAX), None);
            let mutual = Some(PauseFinding::Mutual { other: MAC });
            assert_eq!(table.frame(2_000, second, u16::MAX), mutual);
        }
    }

    #[test]
    fn an_xon_after_the_pause_time_resumes_nothing() {
        let mut table = PauseTable::new(SPEED);
        table.frame(1_000, pauser(MAC), u16::MAX);
        table.frame(1_000 + LONGEST + 1, pauser(MAC), 0);
        let pauses = only(&table);
        assert_eq!((pauses.resumed, pauses.timed_out(u64::MAX)), (0, 1));
        assert_eq!(pauses.paused(u64::MAX), LONGEST);
    }

    proptest! {
        #[test]
        fn time_paused_is_no_longer_than_the_time_passed(
            frames in proptest::collection::vec((0..1_000_000_u64, any::<u16>(), 0..2_u8), 1..200),
        ) {
            let mut table = PauseTable::new(SPEED);
            for (at, quanta, mac) in &frames {
                table.frame(1 + at, pauser([*mac; 6]), *quanta);
            }
            for (_, pauses) in table.iter() {
                let passed = pauses.last - pauses.first;
                prop_assert!(pauses.paused(pauses.last) <= passed);
                prop_assert!(pauses.longest(pauses.last) <= passed);
                prop_assert!(pauses.resumed + pauses.timed_out(u64::MAX) <= pauses.episodes);
            }
        }
    }
}
