//! When mirrors say that they have copied frames (ERSPAN type III), by clocks of their own: brought near the capture's, at the
//! first copy, so that times of one clock stay as far apart as it says.
//!
//! IEEE 1588 is one clock for all switches. Else each hardware engine of a switch has its own, which nothing relates to others.

use fcn_wire::Mirror;
use fcn_wire::erspan::{Erspan, Granularity, Stamp};
use rustc_hash::FxHashMap;
use std::net::IpAddr;

/// Clocks told apart. What further ones say is not used: packets may say anything.
const MOST: usize = 1_000;
/// How far a clock may run away from the capture's, in nanoseconds, before it has been set \[choice\].
const APART: u64 = SECOND;
const SECOND: u64 = 1_000_000_000;
/// Values of a time stamp's 32 bits.
const WRAP: u64 = 1 << 32;

/// Whose clock it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Clock {
    /// That of all switches, by IEEE 1588.
    Synchronised,
    /// A switch's own.
    Switch {
        /// The switch, by its address.
        exporter: IpAddr,
        /// Its hardware engine.
        hardware: u8,
        /// Whether its unit is 100 ns, and not 100 µs.
        fine: bool,
    },
}

/// Why a time stamp cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is none.
    Missing,
    /// It is 0, as where a switch does not fill it in.
    Empty,
    /// Its unit is one that the switch was configured to.
    Unit,
    /// It is no number of nanoseconds within a second, as IEEE 1588 has them, or too large.
    Invalid,
    /// There are too many clocks.
    TooMany,
}

impl Refusal {
    /// What is to be said of it.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Missing => {
                "--mirror-clock: copies of ERSPAN types I and II have no time stamp; their time is when they came in"
            }
            Self::Empty => {
                "--mirror-clock: copies have time stamp 0, as where a switch does not fill it in; their time is when they came in"
            }
            Self::Unit => {
                "--mirror-clock: copies have time stamps of a unit that only their switch's configuration tells; their time is when they came in"
            }
            Self::Invalid => {
                "--mirror-clock: copies have time stamps that are none of their unit; their time is when they came in"
            }
            Self::TooMany => {
                "--mirror-clock: there are more than 1,000 clocks of mirrors; the time of further copies is when they came in"
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Anchor {
    /// Nanoseconds by the clock.
    stamp: u64,
    /// Whether that is all of the time, or only what is left of it by the wrap.
    whole: bool,
    /// Nanoseconds by the capture.
    at: u64,
}

/// A copy's time by its mirror's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Nanoseconds since the epoch, by the mirror's clock as it is related to the capture's.
    pub at: u64,
    /// Whose clock that is.
    pub clock: Clock,
    /// Whether the clock was set, so that times before cannot be compared.
    pub jumped: bool,
}

/// The clocks.
#[derive(Debug, Default)]
pub struct MirrorClocks {
    anchors: FxHashMap<Clock, Anchor>,
}

impl MirrorClocks {
    /// Whether any time stamp was used.
    pub fn are_used(&self) -> bool {
        !self.anchors.is_empty()
    }

    /// Whether there are several that nothing relates.
    pub fn are_unrelated(&self) -> bool {
        self.anchors.len() > 1
    }

    /// When a frame was copied whose copy came in at `at`.
    ///
    /// # Errors
    /// The mirror does not say so, or in a way that cannot be used.
    pub fn copied_at(&mut self, mirror: &Mirror, at: u64) -> Result<Copied, Refusal> {
        let stamp = mirror.header.stamp().ok_or(Refusal::Missing)?;
        let clock = clock_of(mirror, &stamp)?;
        let (nanoseconds, wrap) = read(&stamp)?;
        if !self.anchors.contains_key(&clock) && self.anchors.len() >= MOST {
            return Err(Refusal::TooMany);
        }
        let new = Anchor {
            stamp: nanoseconds,
            whole: stamp.whole,
            at,
        };
        let anchor = self.anchors.entry(clock).or_insert(new);
        // By how much the clock is ahead of where it should be.
        let gone = i128::from(at) - i128::from(anchor.at);
        let ahead = i128::from(nanoseconds) - i128::from(anchor.stamp) - gone;
        let ahead = if stamp.whole && anchor.whole {
            ahead
        } else {
            let wrap = i128::from(wrap);
            let rest = ahead.rem_euclid(wrap);
            if rest > wrap / 2 { rest - wrap } else { rest }
        };
        let near = i64::try_from(ahead).ok();
        let near = near.filter(|ahead| ahead.unsigned_abs() <= APART);
        if near.is_none() {
            *anchor = new;
        }
        Ok(Copied {
            at: at.saturating_add_signed(near.unwrap_or(0)),
            clock,
            jumped: near.is_none(),
        })
    }
}

fn clock_of(mirror: &Mirror, stamp: &Stamp) -> Result<Clock, Refusal> {
    let hardware = match &mirror.header {
        Erspan::III(header) => header.hardware,
        _ => 0,
    };
    let of_switch = |fine| Clock::Switch {
        exporter: mirror.exporter,
        hardware,
        fine,
    };
    match stamp.granularity {
        _ if stamp.ticks == 0 => Err(Refusal::Empty),
        Granularity::Ieee1588 => Ok(Clock::Synchronised),
        Granularity::Nanos100 => Ok(of_switch(true)),
        Granularity::Micros100 => Ok(of_switch(false)),
        Granularity::Custom => Err(Refusal::Unit),
    }
}

/// The time stamp in nanoseconds, and after how many of them it begins again where it is not whole.
fn read(stamp: &Stamp) -> Result<(u64, u64), Refusal> {
    let nanoseconds = stamp.nanoseconds().ok_or(Refusal::Invalid)?;
    Ok(match stamp.granularity {
        Granularity::Ieee1588 if !stamp.whole && nanoseconds >= SECOND => {
            return Err(Refusal::Invalid);
        }
        Granularity::Ieee1588 => (nanoseconds, SECOND),
        Granularity::Micros100 => (nanoseconds, WRAP * 100_000),
        _ => (nanoseconds, WRAP * 100),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fcn_wire::erspan::{Erspan2, Erspan3};
    use proptest::prelude::*;

    const START: u64 = 1_767_225_600_000_000_000;
    const MILLISECOND: u64 = 1_000_000;

    fn mirror(switch: u8, header: Erspan) -> Mirror {
        Mirror {
            exporter: [192, 0, 2, switch].into(),
            start: 50,
            header,
        }
    }

    fn header(granularity: Granularity, timestamp: u32, platform: Option<[u8; 8]>) -> Erspan {
        Erspan::III(Erspan3 {
            timestamp,
            granularity,
            platform,
            ..Erspan3::default()
        })
    }

    fn at(clocks: &mut MirrorClocks, switch: u8, header: Erspan, at: u64) -> Result<u64, Refusal> {
        Ok(clocks.copied_at(&mirror(switch, header), at)?.at)
    }

    #[test]
    fn times_are_as_far_apart_as_the_switch_says_also_past_the_wrap() {
        for (granularity, unit) in [
            (Granularity::Nanos100, 100),
            (Granularity::Micros100, 100_000),
        ] {
            let mut clocks = MirrorClocks::default();
            // Copies come in late, by more or less, while the number begins again.
            for n in 0..4_u64 {
                let ticks = (u64::from(u32::MAX) - 1 + n) as u32;
                let gone = n * unit;
                let late = [0, 7_000, 3_000, 90_000][n as usize];
                let found = at(
                    &mut clocks,
                    1,
                    header(granularity, ticks, None),
                    START + gone + late,
                );
                if ticks == 0 {
                    assert_eq!(found, Err(Refusal::Empty));
                } else {
                    assert_eq!(found, Ok(START + gone), "{granularity:?} {n}");
                }
            }
            assert!(clocks.are_used() && !clocks.are_unrelated());
            // Of another switch, the clock is another.
            let other = header(granularity, 77, None);
            assert_eq!(at(&mut clocks, 2, other, START), Ok(START));
            assert!(clocks.are_unrelated());
        }
    }

    #[test]
    fn ieee_1588_is_one_clock_with_its_seconds_and_without() {
        let seconds = |seconds: u32| {
            let mut octets = [0; 8];
            octets[0] = 5 << 2;
            octets[4..].copy_from_slice(&seconds.to_be_bytes());
            Some(octets)
        };
        let stamped = |nanoseconds, platform| header(Granularity::Ieee1588, nanoseconds, platform);
        let mut clocks = MirrorClocks::default();
        // 37 s ahead, as TAI is, and the second switch's copy is 5 ms late.
        let first = stamped(999_999_000, seconds(36));
        assert_eq!(at(&mut clocks, 1, first, START), Ok(START));
        let second = stamped(200, seconds(37));
        assert_eq!(
            at(&mut clocks, 2, second, START + 5 * MILLISECOND),
            Ok(START + 1_200)
        );
        let third = stamped(1_200, None);
        assert_eq!(
            at(&mut clocks, 3, third, START + 9 * MILLISECOND),
            Ok(START + 2_200)
        );
        assert!(!clocks.are_unrelated());
        // A second too late is another time, and no jump back behind the wrap.
        let set = clocks.copied_at(&mirror(1, stamped(5, seconds(99))), START + 6 * MILLISECOND);
        let set = set.unwrap();
        assert!(set.jumped && set.at == START + 6 * MILLISECOND);
        assert_eq!(
            at(&mut clocks, 1, stamped(SECOND as u32, None), START),
            Err(Refusal::Invalid)
        );
    }

    #[test]
    fn what_cannot_be_used_is_refused() {
        let mut clocks = MirrorClocks::default();
        let two = Erspan::II(Erspan2::default());
        assert_eq!(at(&mut clocks, 1, Erspan::I, 1), Err(Refusal::Missing));
        assert_eq!(at(&mut clocks, 1, two, 1), Err(Refusal::Missing));
        let custom = header(Granularity::Custom, 7, None);
        assert_eq!(at(&mut clocks, 1, custom, 1), Err(Refusal::Unit));
        let high = Some([3 << 2, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF]);
        let huge = header(Granularity::Nanos100, 7, high);
        assert_eq!(at(&mut clocks, 1, huge, 1), Err(Refusal::Invalid));
        assert!(!clocks.are_used());
        for hardware in 0..64 {
            for switch in 0..20 {
                let one = Erspan::III(Erspan3 {
                    timestamp: 1,
                    hardware,
                    ..Erspan3::default()
                });
                let found = at(&mut clocks, switch, one, START);
                let known = usize::from(hardware) * 20 + usize::from(switch);
                let wanted = if known < MOST {
                    Ok(START)
                } else {
                    Err(Refusal::TooMany)
                };
                assert_eq!(found, wanted);
            }
        }
    }

    proptest! {
        #[test]
        fn no_time_is_far_from_the_captures(
            stamps in prop::collection::vec((any::<u32>(), 0..4_u8, any::<Option<[u8; 8]>>(), any::<u64>()), 1..50),
        ) {
            let mut clocks = MirrorClocks::default();
            for (timestamp, unit, platform, came) in stamps {
                let unit = [
                    Granularity::Micros100,
                    Granularity::Nanos100,
                    Granularity::Ieee1588,
                    Granularity::Custom,
                ][usize::from(unit)];
                if let Ok(found) = at(&mut clocks, 1, header(unit, timestamp, platform), came) {
                    prop_assert!(found.abs_diff(came) <= APART);
                }
            }
        }
    }
}
