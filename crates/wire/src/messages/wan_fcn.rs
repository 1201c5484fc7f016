//! Fast CNP in the WAN (draft-he-rtgwg-wan-fcn section 4.2): a UDP message that identifies a flow
//! by its outer flow label.
//!
//! The behaviour of the ingress PE is implemented elsewhere.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |              Flow Label               |Level|    Reserved     |   level: 1 lowest to 7 highest, 0 not used
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! ```
//! use fcn_wire::wan_fcn::{WanFcn, WanFcnRepr};
//!
//! let message = WanFcnRepr { flow_label: 0xABCDE, level: 5, reserved: 0 };
//! let bytes = message.to_bytes();
//! assert_eq!(bytes, [0xAB, 0xCD, 0xEA, 0x00]);
//! assert_eq!(WanFcnRepr::parse(&WanFcn::new_checked(&bytes)?), message);
//! # Ok::<(), fcn_wire::Error>(())
//! ```

use crate::error::{Error, Result};
use crate::fields::{Values, values, view_fields};
use crate::finding::{Findings, Rule};
use crate::layer::Layer;

/// Length of the message after the UDP header, in octets.
pub const WAN_FCN_LEN: usize = 4;
/// Largest flow label (20 bits).
pub const MAX_FLOW_LABEL: u32 = 0x000F_FFFF;
/// Largest congestion level (3 bits).
pub const MAX_LEVEL: u8 = 7;

/// View of the message.
#[derive(Clone, Copy, Debug)]
pub struct WanFcn<'a>(&'a [u8]);

impl<'a> WanFcn<'a> {
    /// Returns a view of the message in `bytes`, the whole UDP payload.
    ///
    /// # Errors
    /// Fails on fewer than 4 octets. A longer message is accepted and reported by
    /// [`check`](Self::check).
    pub const fn new_checked(bytes: &'a [u8]) -> Result<Self> {
        if bytes.len() < WAN_FCN_LEN {
            return Err(Error::short(Layer::WanFcn, WAN_FCN_LEN, bytes.len()));
        }
        Ok(Self(bytes))
    }

    const fn octets(&self) -> &[u8] {
        self.0
    }

    /// Returns the level, if one is given: 1 lowest to 7 highest.
    #[must_use]
    pub fn given_level(&self) -> Option<u8> {
        Some(self.level()).filter(|level| *level != 0)
    }

    /// Adds the rules that the message breaks, with offsets from its start.
    pub fn check(&self, findings: &mut Findings) {
        if self.0.len() != WAN_FCN_LEN {
            findings.push(Rule::WanFcnLength, WAN_FCN_LEN, self.0.len() - WAN_FCN_LEN);
        }
        if self.reserved() != 0 {
            findings.push(Rule::WanFcnReserved, 2, 2);
        }
    }
}

view_fields! {
    WanFcn by octets,
    /// The values of the message.
    WanFcnRepr [WAN_FCN_LEN] {
        /// Flow label of the outer IPv6 header of the packet that met congestion; 20 bits.
        flow_label: u32 = "Flow Label", [(0, 0, 20)];
        /// Congestion level, 3 bits: 1 lowest to 7 highest, 0 not used.
        level: u8 = "Congestion Level", [(2, 4, 3)];
        /// Nine reserved bits, 0 in a well-formed message.
        reserved: u16 = "Reserved", [(2, 7, 9)];
    } and {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_match_the_figure() {
        let message = WanFcnRepr {
            flow_label: 0xABCDE,
            level: 5,
            reserved: 0,
        };
        assert_eq!(message.to_bytes(), [0xAB, 0xCD, 0xEA, 0x00]);
    }

    #[test]
    fn the_rules_are_found() {
        let rules = |bytes: &[u8]| {
            let mut findings = Findings::new();
            WanFcn::new_checked(bytes).unwrap().check(&mut findings);
            findings.into_iter().map(|f| f.rule).collect::<Vec<_>>()
        };
        assert_eq!(rules(&[0xAB, 0xCD, 0xEE, 0]), []);
        assert_eq!(rules(&[0, 0, 1, 0]), [Rule::WanFcnReserved]);
        assert_eq!(rules(&[0; 6]), [Rule::WanFcnLength]);
        assert!(WanFcn::new_checked(&[0; 3]).is_err());
    }

    proptest! {
        #[test]
        fn parse_and_emit_are_inverse(bytes: [u8; 4]) {
            let repr = WanFcnRepr::parse(&WanFcn::new_checked(&bytes).unwrap());
            prop_assert_eq!(repr.to_bytes(), bytes);
        }
    }
}
