//! Times at which mirrors copied frames (ERSPAN type III), by their own clocks. Each clock is
//! aligned with the capture's at its first copy; differences between times of one clock are
//! preserved.
//!
//! IEEE 1588 is one clock for all switches. Otherwise each hardware engine of a switch has its own,
//! unrelated to others.

use fcn_wire::Mirror;
use fcn_wire::erspan::{Erspan, Granularity, Stamp};
use rustc_hash::FxHashMap;
use std::net::IpAddr;

/// Maximum number of clocks distinguished. Time stamps of further ones are ignored: packets may
/// claim anything.
const MAX_CLOCKS: usize = 1_000;
/// Maximum drift of a clock from the capture's, in nanoseconds; beyond it, the clock is taken to
/// have been set \[choice\].
const APART: u64 = SECOND;
const SECOND: u64 = 1_000_000_000;
/// Range of a time stamp's 32 bits.
const WRAP: u64 = 1 << 32;

/// Identity of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Clock {
    /// Shared by all switches, through IEEE 1588.
    Synchronised,
    /// A switch's own clock.
    Switch {
        /// Address of the switch.
        exporter: IpAddr,
        /// Hardware engine of the switch.
        hardware: u8,
        /// True if its unit is 100 ns, false if it is 100 µs.
        fine: bool,
    },
}

/// Reason why a time stamp cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no time stamp.
    Missing,
    /// It is 0, because the switch does not fill it in.
    Empty,
    /// Its unit depends on the switch's configuration.
    Unit,
    /// Not a valid number of nanoseconds within a second, as in IEEE 1588, or too large.
    Invalid,
    /// There are too many clocks.
    TooMany,
}

impl Refusal {
    /// Returns the explanation shown to the user.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Missing => {
                "--mirror-clock: copies of ERSPAN types I and II have no time stamp; their arrival time is used"
            }
            Self::Empty => {
                "--mirror-clock: copies have time stamp 0, as from a switch that does not set it; their arrival time is used"
            }
            Self::Unit => {
                "--mirror-clock: copies have time stamps in a unit known only from their switch's configuration; their arrival time is used"
            }
            Self::Invalid => {
                "--mirror-clock: copies have time stamps that are invalid in their unit; their arrival time is used"
            }
            Self::TooMany => {
                "--mirror-clock: there are more than 1,000 mirror clocks; further copies use their arrival time"
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Anchor {
    /// Nanoseconds by the clock.
    stamp: u64,
    /// True if that is the full time, false if it wraps around.
    whole: bool,
    /// Nanoseconds by the capture.
    at: u64,
}

/// Time of a copy by its mirror's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Nanoseconds since the epoch, by the mirror's clock after alignment with the capture's.
    pub at: u64,
    /// The clock.
    pub clock: Clock,
    /// True if the clock was set, so that earlier times are not comparable.
    pub jumped: bool,
}

/// The known clocks.
#[derive(Debug, Default)]
pub struct MirrorClocks {
    anchors: FxHashMap<Clock, Anchor>,
}

impl MirrorClocks {
    /// Returns true if any time stamp was used.
    pub fn are_used(&self) -> bool {
        !self.anchors.is_empty()
    }

    /// Returns true if there are several unrelated clocks.
    pub fn are_unrelated(&self) -> bool {
        self.anchors.len() > 1
    }

    /// Returns the time at which a frame was copied, for a copy captured at `at`.
    ///
    /// # Errors
    ///
    /// The mirror has no usable time stamp.
    pub fn copied_at(&mut self, mirror: &Mirror, at: u64) -> Result<Copied, Refusal> {
        let stamp = mirror.header.stamp().ok_or(Refusal::Missing)?;
        let clock = clock_of(mirror, &stamp)?;
        let (nanoseconds, wrap) = read(&stamp)?;
        if !self.anchors.contains_key(&clock) && self.anchors.len() >= MAX_CLOCKS {
            return Err(Refusal::TooMany);
        }
        let new = Anchor {
            stamp: nanoseconds,
            whole: stamp.whole,
            at,
        };
        let anchor = self.anchors.entry(clock).or_insert(new);
        // Offset of the clock from its expected time.
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

/// Returns the time stamp in nanoseconds, and its period in nanoseconds if it wraps around.
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
    use fcn_wire::Layer;
    use fcn_wire::erspan::{Erspan2, Erspan3};
    use proptest::prelude::*;

    const START: u64 = 1_767_225_600_000_000_000;
    const MILLISECOND: u64 = 1_000_000;

    fn mirror(switch: u8, header: Erspan) -> Mirror {
        Mirror {
            format: Layer::Erspan,
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
    fn differences_are_preserved_across_the_wrap() {
        for (granularity, unit) in [
            (Granularity::Nanos100, 100),
            (Granularity::Micros100, 100_000),
        ] {
            let mut clocks = MirrorClocks::default();
            // Copies arrive with varying delays while the number wraps around.
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
            // Another switch has another clock.
            let other = header(granularity, 77, None);
            assert_eq!(at(&mut clocks, 2, other, START), Ok(START));
            assert!(clocks.are_unrelated());
        }
    }

    #[test]
    fn ieee_1588_is_one_clock_with_and_without_seconds() {
        let seconds = |seconds: u32| {
            let mut octets = [0; 8];
            octets[0] = 5 << 2;
            octets[4..].copy_from_slice(&seconds.to_be_bytes());
            Some(octets)
        };
        let stamped = |nanoseconds, platform| header(Granularity::Ieee1588, nanoseconds, platform);
        let mut clocks = MirrorClocks::default();
        // 37 s ahead, like TAI; the second switch's copy is 5 ms late.
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
        // A jump of a second too many is a new time, not a step back across the wrap.
        let set = clocks.copied_at(&mirror(1, stamped(5, seconds(99))), START + 6 * MILLISECOND);
        let set = set.unwrap();
        assert!(set.jumped && set.at == START + 6 * MILLISECOND);
        assert_eq!(
            at(&mut clocks, 1, stamped(SECOND as u32, None), START),
            Err(Refusal::Invalid)
        );
    }

    #[test]
    fn unusable_time_stamps_are_refused() {
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
                let wanted = if known < MAX_CLOCKS {
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
        fn times_stay_close_to_the_captures_clock(
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
