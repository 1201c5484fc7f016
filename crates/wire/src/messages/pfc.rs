//! Priority-based flow control (IEEE 802.1Q clause 36.1, formerly 802.1Qbb): payload of the MAC
//! control frame.
//!
//! The Ethernet header around it is in `frame.rs`; plain PAUSE (opcode 1) is not parsed here.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |         Opcode 0x0101         |   Reserved    |7 6 5 4 3 2 1 0|   0  class-enable vector
//! |     Pause Time of class 0     |     Pause Time of class 1     |   4  in quanta of 512 bit times
//! |                  ... and so on, up to class 7                 |   8
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! ```
//! use fcn_wire::pfc::{Pfc, PfcRepr};
//!
//! let pause = PfcRepr::for_class(3, 0xFFFF).unwrap();
//! let bytes = pause.to_bytes();
//! let view = Pfc::new_checked(&bytes)?;
//! assert!(view.enabled().eq([(3, 0xFFFF)]));
//! # Ok::<(), fcn_wire::Error>(())
//! ```

use crate::error::{Error, Result};
use crate::finding::{Findings, Rule};
use crate::header::ethernet;
use crate::layer::Layer;
use crate::octets::{put, u16_at};
use core::num::NonZeroU64;

/// EtherType of MAC control frames.
pub const ETHERTYPE_MAC_CONTROL: u16 = ethernet::MAC_CONTROL;
/// MAC control opcode of PAUSE (IEEE 802.3 annex 31B), which stops all classes.
pub const OPCODE_PAUSE: u16 = 0x0001;
/// MAC control opcode of PFC.
pub const OPCODE_PFC: u16 = 0x0101;
/// Destination of PFC frames: a reserved group address, never forwarded by a bridge.
pub const PFC_DESTINATION: [u8; 6] = [0x01, 0x80, 0xC2, 0x00, 0x00, 0x01];
/// Octets from the opcode to the last pause time; the frame's padding follows.
pub const PFC_LEN: usize = 20;
/// Number of traffic classes.
pub const CLASSES: usize = 8;
/// Bit times in one quantum of a pause time.
pub const QUANTUM_BITS: u64 = 512;

mod field {
    pub(super) const OPCODE: usize = 0;
    pub(super) const VECTOR: usize = 2;
    pub(super) const TIMES: usize = 4;
}

/// View of a PFC frame's payload, from the opcode after EtherType 0x8808.
///
/// Accessors never panic: [`new_checked`](Self::new_checked) has verified that every field is
/// present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pfc<'a> {
    bytes: &'a [u8],
}

impl<'a> Pfc<'a> {
    /// Returns a view of `bytes`, which begin with the MAC control opcode; trailing padding is
    /// ignored.
    ///
    /// # Errors
    /// Fails if the opcode is not that of PFC, or the pause times are incomplete.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self> {
        if bytes.len() >= 2 {
            let opcode = u16_at(bytes, field::OPCODE);
            if opcode != OPCODE_PFC {
                return Err(Error::value(
                    Layer::Pfc,
                    field::OPCODE,
                    "opcode",
                    opcode.into(),
                    "0x0101",
                ));
            }
        }
        match bytes.get(..PFC_LEN) {
            Some(bytes) => Ok(Self { bytes }),
            None => Err(Error::short(Layer::Pfc, PFC_LEN, bytes.len())),
        }
    }

    /// Returns the class-enable vector: bit n makes the pause time of class n valid. The upper
    /// octet is reserved.
    #[must_use]
    pub fn vector(&self) -> u16 {
        u16_at(self.bytes, field::VECTOR)
    }

    /// Returns true if `class` (0 to 7) is enabled, so that its pause time is valid; false for
    /// other numbers.
    #[must_use]
    pub fn is_enabled(&self, class: usize) -> bool {
        class < CLASSES && self.vector() >> class & 1 != 0
    }

    /// Returns the pause time of `class` (0 to 7) in quanta, as written: 0 lets the class resume.
    /// `None` if there is no such class.
    #[must_use]
    pub fn time(&self, class: usize) -> Option<u16> {
        (class < CLASSES).then(|| u16_at(self.bytes, field::TIMES + 2 * class))
    }

    /// Returns the enabled classes and their pause times in quanta.
    pub fn enabled(&self) -> impl Iterator<Item = (usize, u16)> + use<'a> {
        let view = *self;
        (0..CLASSES)
            .filter(move |class| view.is_enabled(*class))
            .filter_map(move |class| Some((class, view.time(class)?)))
    }

    /// Adds the rules of clause 36.1 that the frame breaks; `destination` is the frame's. Offsets
    /// are from the opcode.
    ///
    /// [`Rule::PfcDestination`] has no octets here: its offset is 0 and its length 0.
    pub fn check(&self, destination: [u8; 6], findings: &mut Findings) {
        if destination != PFC_DESTINATION {
            findings.push(Rule::PfcDestination, 0, 0);
        }
        if self.vector() >> CLASSES != 0 {
            findings.push(Rule::PfcVector, field::VECTOR, 1);
        }
    }
}

/// Parses a PFC frame's payload and adds the rules it breaks, including [`Rule::PfcMalformed`].
///
/// Returns `None`, without a finding, for a MAC control frame that is not PFC. `cut` means that the
/// capture truncated the frame: then it is not reported as malformed.
pub fn inspect<'a>(
    bytes: &'a [u8],
    cut: bool,
    destination: [u8; 6],
    findings: &mut Findings,
) -> Option<Pfc<'a>> {
    if let Ok(view) = Pfc::new_checked(bytes) {
        view.check(destination, findings);
        return Some(view);
    }
    if !cut && bytes.first_chunk() == Some(&OPCODE_PFC.to_be_bytes()) {
        findings.push(Rule::PfcMalformed, 0, bytes.len());
    }
    None
}

/// Values of a PFC frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct PfcRepr {
    /// Class-enable vector, including the reserved upper octet (0 except for tests that violate
    /// it).
    pub vector: u16,
    /// Pause times of classes 0 to 7 in quanta of 512 bit times.
    pub times: [u16; CLASSES],
}

impl PfcRepr {
    /// Creates a frame that pauses `class` (0 to 7) for `quanta`, or resumes it with 0; other
    /// classes are unaffected.
    ///
    /// Returns `None` if there is no such class.
    #[must_use]
    pub fn for_class(class: usize, quanta: u16) -> Option<Self> {
        let mut pfc = Self {
            vector: 1u16.checked_shl(u32::try_from(class).ok()?)?,
            ..Self::default()
        };
        *pfc.times.get_mut(class)? = quanta;
        Some(pfc)
    }

    /// Returns the values of `pfc`.
    #[must_use]
    pub fn parse(pfc: &Pfc<'_>) -> Self {
        Self {
            vector: pfc.vector(),
            times: core::array::from_fn(|class| pfc.time(class).unwrap_or(0)),
        }
    }

    /// Returns its octets after the EtherType.
    #[must_use]
    pub fn to_bytes(self) -> [u8; PFC_LEN] {
        let mut out = [0; PFC_LEN];
        put(&mut out, field::OPCODE, &OPCODE_PFC.to_be_bytes());
        put(&mut out, field::VECTOR, &self.vector.to_be_bytes());
        for (class, time) in self.times.iter().enumerate() {
            put(&mut out, field::TIMES + 2 * class, &time.to_be_bytes());
        }
        out
    }
}

/// Returns the duration of `quanta` on a link of `bits_per_second`, in nanoseconds, rounded down.
#[must_use]
pub fn pause_nanoseconds(quanta: u16, bits_per_second: NonZeroU64) -> u64 {
    // At most 65535 · 512 · 10⁹ < 2⁵⁵ at 1 bit/s.
    u64::from(quanta) * QUANTUM_BITS * 1_000_000_000 / bits_per_second
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_the_standard_draws_them() {
        let pfc = PfcRepr {
            vector: 0b1000_0001,
            times: [1, 2, 3, 4, 5, 6, 7, 0xFFFF],
        };
        let out = pfc.to_bytes();
        assert_eq!(
            out,
            [
                1, 1, 0, 0x81, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0xFF, 0xFF
            ]
        );
        let view = Pfc::new_checked(&out).unwrap();
        assert_eq!(
            view.enabled().collect::<Vec<_>>(),
            [(0, 1), (7, u16::MAX)],
            "only enabled classes count"
        );
        assert_eq!(
            Pfc::new_checked(&out).map(|view| PfcRepr::parse(&view)),
            Ok(pfc)
        );
        assert_eq!((view.time(8), view.is_enabled(8)), (None, false));
        assert!(!view.is_enabled(usize::MAX));
    }

    #[test]
    fn one_class_is_paused_and_resumed() {
        let pause = PfcRepr::for_class(3, 500).unwrap();
        assert_eq!((pause.vector, pause.times[3]), (8, 500));
        let out = PfcRepr::for_class(7, 0).unwrap().to_bytes();
        assert!(Pfc::new_checked(&out).unwrap().enabled().eq([(7, 0)]));
        for class in [8, 15, 16, 1 << 40] {
            assert_eq!(PfcRepr::for_class(class, 1), None);
        }
    }

    #[test]
    fn quanta_are_512_bit_times() {
        let speed = |gigabit: u64| NonZeroU64::new(gigabit * 1_000_000_000).unwrap();
        assert_eq!(pause_nanoseconds(1, speed(1)), 512);
        assert_eq!(pause_nanoseconds(u16::MAX, speed(100)), 335_539);
        assert_eq!(pause_nanoseconds(0, speed(400)), 0);
        assert_eq!(
            pause_nanoseconds(u16::MAX, NonZeroU64::MIN),
            33_553_920_000_000_000
        );
        assert_eq!(pause_nanoseconds(u16::MAX, NonZeroU64::MAX), 0);
    }

    #[test]
    fn broken_rules_are_reported_at_their_offsets() {
        let wide = PfcRepr {
            vector: 0x0100,
            ..PfcRepr::default()
        };
        let mut out = wide.to_bytes();
        let mut findings = Findings::new();
        Pfc::new_checked(&out)
            .unwrap()
            .check([0xFF; 6], &mut findings);
        let found: Vec<_> = findings.into_iter().map(|f| (f.rule, f.offset)).collect();
        assert_eq!(found, [(Rule::PfcDestination, 0), (Rule::PfcVector, 2)]);

        out[2] = 0;
        let mut findings = Findings::new();
        assert!(inspect(&out, false, PFC_DESTINATION, &mut findings).is_some());
        assert!(findings.is_empty(), "{findings:?}");
    }

    #[test]
    fn truncation_is_reported_and_other_opcodes_are_ignored() {
        let out = PfcRepr::for_class(0, 1).unwrap().to_bytes();
        for len in 0..PFC_LEN {
            let bytes = &out[..len];
            assert_eq!(
                Pfc::new_checked(bytes),
                Err(Error::short(Layer::Pfc, PFC_LEN, len))
            );
            let mut findings = Findings::new();
            assert_eq!(inspect(bytes, false, PFC_DESTINATION, &mut findings), None);
            assert_eq!(findings.has(Rule::PfcMalformed), len >= 2);
            let mut findings = Findings::new();
            assert_eq!(inspect(bytes, true, PFC_DESTINATION, &mut findings), None);
            assert!(findings.is_empty());
        }
        // Plain PAUSE.
        let pause = [0, 1, 0xFF, 0xFF];
        assert_eq!(
            Pfc::new_checked(&pause),
            Err(Error::value(Layer::Pfc, 0, "opcode", 1, "0x0101"))
        );
        let mut findings = Findings::new();
        assert_eq!(inspect(&pause, false, PFC_DESTINATION, &mut findings), None);
        assert!(findings.is_empty());
    }
}
