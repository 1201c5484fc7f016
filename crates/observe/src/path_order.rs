//! Order of the capture points that packets about the same subject pass, as at the switches on
//! their path, and the time from each one to the next. This relies on time stamps, and is only as
//! good as their clocks.
//!
//! Such packets mostly look the same, so a sighting is matched with the latest packet at another
//! capture point only if it is much nearer in time to that one than to any other. If others that
//! look the same come within [`WITHIN`], the match is a guess, and marked as one: if a capture
//! point has missed a packet, or the path takes as long as the interval between packets, it may be
//! a neighbour. If a step takes less than the [unit](Unit) of a capture point's time stamps, the
//! order is unknown.

use crate::sightings::WITHIN;
use crate::unit::Unit;

/// Maximum number of capture points tracked; further ones are ignored.
const PLACES: usize = 8;
/// Minimum ratio between the distances in time to other packets and to the one that is matched.
const APART: u64 = 3;
/// Maximum number of pairs of capture points tracked; further ones are ignored.
const LEGS: usize = 12;
/// Number of times kept per pair: the last ones.
const KEPT: usize = 15;
/// One time in this many may be negative before the order of the capture points counts as unknown.
const BACKWARDS: u32 = 10;
/// Interquartile range of times, in nanoseconds, that is attributed to the resolution of clocks.
const CLOSE: i32 = 1_000;

/// Time from one capture point to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransitTime {
    /// About this long, in nanoseconds: the median.
    About(u32),
    /// Between these, in nanoseconds: half of the times lie in this range, which is wider than
    /// their median.
    Between(u32, u32),
    /// Unknown order: the times of some packets are positive, and those of others negative.
    Unclear,
    /// Unknown order: the time is less than the resolution of time stamps, which are multiples of
    /// this many nanoseconds.
    Below(u64),
}

/// A step from one capture point to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The capture point passed first.
    pub from: u32,
    /// The capture point passed next.
    pub to: u32,
    /// Time that it takes, from the last packets.
    pub transit: TransitTime,
    /// Number of packets captured at both.
    pub packets: u32,
    /// True if some of them came close to others that look the same, and were matched by the
    /// nearest time.
    pub guessed: bool,
}

impl Step {
    /// Returns true if the order of the capture points is known.
    #[must_use]
    pub const fn has_order(&self) -> bool {
        matches!(
            self.transit,
            TransitTime::About(_) | TransitTime::Between(..)
        )
    }
}

#[derive(Clone, Copy, Debug)]
struct Leg {
    from: u32,
    to: u32,
    packets: u32,
    /// Number of those captured at `to` first.
    backwards: u32,
    guessed: bool,
    last: [i32; KEPT],
}

impl Leg {
    fn add(&mut self, nanoseconds: i32, guessed: bool) {
        self.guessed |= guessed;
        if let Some(place) = self.last.get_mut(self.packets as usize % KEPT) {
            *place = nanoseconds;
        }
        self.packets = self.packets.saturating_add(1);
        self.backwards += u32::from(nanoseconds < 0);
    }

    /// Returns the step, given the units of the capture points' time stamps.
    fn step(&self, unit: impl Fn(u32) -> Unit) -> Step {
        let Self {
            from,
            to,
            packets,
            backwards,
            guessed,
            ..
        } = *self;
        let is_reversed = backwards > packets / 2;
        let (from, to) = if is_reversed { (to, from) } else { (from, to) };
        let least = backwards.min(packets - backwards);
        let units = [unit(from), unit(to)];
        let transit = if least > packets / BACKWARDS {
            TransitTime::Unclear
        } else {
            let mut times = self.last.map(|time| {
                if is_reversed {
                    time.saturating_neg()
                } else {
                    time
                }
            });
            let kept = (packets as usize).min(KEPT);
            let times = times.get_mut(..kept).unwrap_or_default();
            times.sort_unstable();
            let at = |quarter: usize| times.get((kept - 1) * quarter / 4).copied().unwrap_or(0);
            let [low, median, high] = [1, 2, 3].map(|quarter| at(quarter).max(0));
            let [between, time] = [high - low, median].map(|time| u64::from(time.unsigned_abs()));
            // Packets at regular intervals all have the same time, except those truncated to a
            // unit.
            let below = units.into_iter().fold(1, |below, unit| {
                let is_cut = time == 0 || between > unit.apart() / 4;
                let apart = if is_cut { unit.apart() } else { 1 };
                below.max(unit.get()).max(apart)
            });
            if time < below {
                // With stamps of nanoseconds, a coarser unit does not explain it.
                if below > 1 {
                    TransitTime::Below(below)
                } else {
                    TransitTime::Unclear
                }
            } else if high - low > median.max(CLOSE) {
                TransitTime::Between(low.unsigned_abs(), high.unsigned_abs())
            } else {
                TransitTime::About(median.unsigned_abs())
            }
        };
        Step {
            from,
            to,
            transit,
            packets,
            guessed,
        }
    }
}

/// Times of the sightings at a capture point.
#[derive(Clone, Copy, Debug)]
struct LastSightings {
    place: u32,
    last: u64,
    /// The previous time.
    before: Option<u64>,
}

/// Order of the capture points that packets pass.
#[derive(Clone, Debug, Default)]
pub struct PathOrder {
    sightings: Vec<LastSightings>,
    legs: Vec<Leg>,
}

impl PathOrder {
    /// Records a sighting of a packet, at `at` in nanoseconds; `again` is true if it is known to
    /// have been captured at another capture point before.
    pub fn see(&mut self, place: u32, at: u64, again: bool) {
        let others = self
            .sightings
            .iter()
            .filter(|seen| again && seen.place != place);
        let own = self.sightings.iter().find(|seen| seen.place == place);
        if let Some(nearest) = others.min_by_key(|seen| seen.last.abs_diff(at)) {
            let far = nearest.last.abs_diff(at).max(1).saturating_mul(APART);
            let rivals = [nearest.before, own.map(|own| own.last)];
            let rival = rivals
                .into_iter()
                .flatten()
                .map(|rival| rival.abs_diff(at))
                .min();
            if far <= WITHIN * APART && rival.is_none_or(|rival| rival >= far) {
                let guessed = rival.is_some_and(|rival| rival < WITHIN);
                // It fits, being less than that.
                let time = at.wrapping_sub(nearest.last) as i64;
                self.add((nearest.place, place), time, guessed);
            }
        }
        let known = self.sightings.iter_mut().find(|seen| seen.place == place);
        if let Some(seen) = known {
            seen.before = Some(core::mem::replace(&mut seen.last, at));
        } else if self.sightings.len() < PLACES {
            self.sightings.push(LastSightings {
                place,
                last: at,
                before: None,
            });
        }
    }

    /// Records that a packet was captured at `to` `nanoseconds` after it was captured at `from`; a
    /// negative value means before. Times of more than two seconds are ignored.
    fn add(&mut self, (from, to): (u32, u32), nanoseconds: i64, guessed: bool) {
        let Ok(time) = i32::try_from(nanoseconds) else {
            return;
        };
        if from == to {
            return;
        }
        let same = |leg: &&mut Leg| (leg.from, leg.to) == (from, to);
        let reverse = |leg: &&mut Leg| (leg.from, leg.to) == (to, from);
        if let Some(leg) = self.legs.iter_mut().find(same) {
            leg.add(time, guessed);
        } else if let Some(leg) = self.legs.iter_mut().find(reverse) {
            leg.add(time.saturating_neg(), guessed);
        } else if self.legs.len() < LEGS {
            let mut leg = Leg {
                from,
                to,
                packets: 0,
                backwards: 0,
                guessed: false,
                last: [0; KEPT],
            };
            leg.add(time, guessed);
            self.legs.push(leg);
        }
    }

    /// Returns the paths that packets took, that of most packets first: each step begins where the
    /// previous one ends. A step that only skips capture points of a path, as these have missed
    /// packets, is not listed separately; a step without a known order is a path of its own, after
    /// the others. `unit` returns the unit of a capture point's time stamps.
    #[must_use]
    pub fn paths(&self, unit: impl Fn(u32) -> Unit) -> Vec<Vec<Step>> {
        let mut steps: Vec<Step> = self.legs.iter().map(|leg| leg.step(&unit)).collect();
        // The only packet of several is a guess: it was not distinguished from the others.
        let several = |place| {
            (self.sightings.iter()).any(|seen| seen.place == place && seen.before.is_some())
        };
        for step in &mut steps {
            step.guessed |= step.packets == 1 && several(step.to);
        }
        // Steps of more packets come first, then earlier ones: the sort is stable.
        steps.sort_by_key(|step| (!step.has_order(), core::cmp::Reverse(step.packets)));
        let mut ways = Vec::new();
        while !steps.is_empty() {
            let first = steps.remove(0);
            let mut way = vec![first];
            if first.has_order() {
                extend(&mut way, &mut steps);
                let place_of = |place: u32| {
                    let from = way.iter().position(|step| step.from == place);
                    from.or_else(|| (way.last()?.to == place).then_some(way.len()))
                };
                steps.retain(|step| {
                    let ends = place_of(step.from).zip(place_of(step.to));
                    !step.has_order() || ends.is_none_or(|(from, to)| from >= to)
                });
            }
            ways.push(way);
        }
        ways
    }
}

/// Moves steps from `steps` to `way`, those of most packets first, that continue from its end or
/// lead to its beginning, and reach capture points that it does not contain.
fn extend(way: &mut Vec<Step>, steps: &mut Vec<Step>) {
    let is_on = |way: &[Step], place: u32| {
        way.iter()
            .any(|step| step.from == place || step.to == place)
    };
    while let Some(at) = steps.iter().position(|step| {
        let ends = way
            .first()
            .map(|first| first.from)
            .zip(way.last().map(|last| last.to));
        step.has_order()
            && ends.is_some_and(|(start, end)| {
                step.from == end && !is_on(way, step.to)
                    || step.to == start && !is_on(way, step.from)
            })
    }) {
        let step = steps.remove(at);
        if way.last().is_some_and(|last| last.to == step.from) {
            way.push(step);
        } else {
            way.insert(0, step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Time stamps of nanoseconds.
    const FINE: fn(u32) -> Unit = |_| Unit::NANOSECOND;

    fn way(order: &PathOrder, number: usize) -> Vec<(u32, u32, u32)> {
        let way = &order.paths(FINE)[number];
        way.iter()
            .map(|step| (step.from, step.to, step.packets))
            .collect()
    }

    #[test]
    fn capture_points_are_in_the_order_of_the_path() {
        let mut order = PathOrder::default();
        assert!(order.paths(FINE).is_empty());
        for n in 0..20 {
            // The third is read before the second, and the last one misses some.
            order.add((7, 5), 3_000 + n, false);
            order.add((3, 5), -2_000, false);
            if n % 4 != 0 {
                order.add((3, 9), 1_000, false);
            }
        }
        order.add((7, 9), 6_000, false);
        order.add((3, 3), 6_000, false);
        order.add((3, 4), 1 << 40, false);
        assert_eq!(order.paths(FINE).len(), 1, "{:?}", order.paths(FINE));
        assert_eq!(way(&order, 0), [(7, 5, 20), (5, 3, 20), (3, 9, 15)]);
    }

    #[test]
    fn missed_packets_yield_no_time() {
        // Captured at three capture points within 5 µs, every 50 µs; the second one misses some
        // packets, and the first one all of a short period.
        let steps = |interval: u64, first_again: bool| {
            let mut order = PathOrder::default();
            for n in 0..1000_u64 {
                for (place, after) in [(0, 0), (1, 3_000), (2, 5_000)] {
                    let is_missed =
                        place == 1 && n % 10 == 9 || place == 0 && (500..520).contains(&n);
                    if !is_missed {
                        let at = 1_000_000_000 + interval * n + after;
                        order.see(place, at, place > 0 || first_again);
                    }
                }
            }
            order.paths(FINE)
        };
        let step = |from, to, time, packets| Step {
            from,
            to,
            transit: TransitTime::About(time),
            packets,
            guessed: true,
        };
        let true_ways = [[step(0, 1, 3_000, 882), step(1, 2, 2_000, 900)]];
        assert_eq!(steps(50_000, false), true_ways);
        // The same with wrong matches, to which a missing packet may lead.
        assert_eq!(steps(50_000, true), true_ways);
        let fast = steps(8_000, false);
        // Only packets after a missing one are isolated enough.
        assert_eq!(fast, [[step(0, 1, 3_000, 98), step(1, 2, 2_000, 900)]]);
        // Of packets that come at once, only the first ones match.
        let first = [[step(0, 1, 3_000, 1), step(1, 2, 2_000, 1)]];
        assert_eq!(steps(0, false), first);
    }

    #[test]
    fn several_paths_are_distinguished() {
        let mut order = PathOrder::default();
        for _ in 0..10 {
            order.add((1, 2), 3_000, false);
            order.add((2, 4), 1_000, false);
        }
        for _ in 0..5 {
            order.add((1, 3), 4_000, false);
            order.add((3, 4), 1_000, false);
        }
        assert_eq!(way(&order, 0), [(1, 2, 10), (2, 4, 10)]);
        assert_eq!(way(&order, 1), [(1, 3, 5), (3, 4, 5)]);
        // A circle.
        let mut order = PathOrder::default();
        for (from, to) in [(1, 2), (2, 3), (3, 1)] {
            order.add((from, to), 10, false);
        }
        let steps: usize = order.paths(FINE).iter().map(Vec::len).sum();
        assert_eq!(steps, 3);
    }

    #[test]
    fn a_time_is_the_median_or_a_range() {
        let takes = |times: &[i64]| {
            let mut order = PathOrder::default();
            times
                .iter()
                .for_each(|time| order.add((1, 2), *time, false));
            let step = order.paths(FINE)[0][0];
            (step.from, step.to, step.transit)
        };
        assert_eq!(takes(&[3_000]), (1, 2, TransitTime::About(3_000)));
        assert_eq!(takes(&[-3_000]), (2, 1, TransitTime::About(3_000)));
        assert_eq!(takes(&[0]), (1, 2, TransitTime::Unclear));
        assert_eq!(takes(&[0, 900, 400]), (1, 2, TransitTime::About(400)));
        assert_eq!(
            takes(&[3_000, 90_000, 3_100]),
            (1, 2, TransitTime::About(3_100))
        );
        assert_eq!(
            takes(&[2_000, 3_000, 4_000, 9_000, 50_000]),
            (1, 2, TransitTime::Between(3_000, 9_000))
        );
        assert_eq!(takes(&[5_000, -5_000]).2, TransitTime::Unclear);
        // A wrong time among many is outvoted, and the last times count.
        let mut times = vec![-50_000];
        times.extend([7_000; 30]);
        times.extend([8_000; 15]);
        assert_eq!(takes(&times), (1, 2, TransitTime::About(8_000)));
        assert_eq!(
            takes(&[i64::from(i32::MIN), -7, -7]).2,
            TransitTime::About(7)
        );
    }

    #[test]
    fn steps_below_the_unit_of_time_stamps_have_no_order() {
        // The last capture point is passed last, and its time stamps are truncated to milliseconds;
        // perhaps shifted afterwards.
        for (shift, unit) in [(0, 1_000_000), (3_001, 1)] {
            let mut order = PathOrder::default();
            let mut units = [Unit::default(); 3];
            for n in 0..20_u64 {
                let at = 1_700_000_000_123_456_789 + n * 7_654_321;
                let cut = (at + 2_003_000) / 1_000_000 * 1_000_000 - shift;
                for (place, at) in (0..).zip([at, at + 2_000_000, cut]) {
                    order.see(place, at, place > 0);
                    units[place as usize].add(at);
                }
            }
            assert_eq!(units.map(Unit::get), [1, 1, unit]);
            let paths = order.paths(|place| units[place as usize]);
            let transit: Vec<_> = paths.iter().map(|way| way[0].transit).collect();
            assert_eq!(
                transit,
                [TransitTime::About(2_000_000), TransitTime::Below(1_000_000)]
            );
            // With exact time stamps, it would come before the previous one.
            assert_eq!(way(&order, 0), [(0, 1, 20)]);
            assert_eq!(order.paths(FINE)[0].last().map(|step| step.to), Some(1));
        }
    }

    #[test]
    fn the_number_of_capture_points_is_limited() {
        let mut order = PathOrder::default();
        (0..1_000).for_each(|place| order.add((place, place + 1), 10, false));
        assert_eq!(order.legs.len(), LEGS);
        assert_eq!(order.paths(FINE)[0].len(), LEGS);
        (0..1_000).for_each(|place| order.see(place, u64::from(place) << 32, true));
        assert_eq!(order.sightings.len(), PLACES);
        for at in [0, u64::MAX, 7, u64::MAX] {
            order.see(5, at, true);
        }
    }
}
