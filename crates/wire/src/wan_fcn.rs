//! Fast CNP in the WAN (draft-he-rtgwg-wan-fcn section 4.2): a UDP message that names a flow by its outer flow label.
//!
//! What the ingress PE does with it is not here.

use crate::error::{Error, Result};
use crate::finding::{Findings, Rule};
use crate::layer::Layer;
use crate::octets::{put, u32_at};

/// Octets of the message behind the UDP header.
pub const WAN_FCN_LEN: usize = 4;
/// Largest flow label (20 bits).
pub const MAX_FLOW_LABEL: u32 = 0x000F_FFFF;
/// Largest congestion level (3 bits).
pub const MAX_LEVEL: u8 = 7;

/// View of the message.
#[derive(Clone, Copy, Debug)]
pub struct WanFcn<'a>(&'a [u8]);

impl<'a> WanFcn<'a> {
    /// The message in `bytes`, which is the whole UDP payload.
    ///
    /// # Errors
    /// Fewer than 4 octets. A longer message is read, and named by [`check`](Self::check).
    pub const fn new_checked(bytes: &'a [u8]) -> Result<Self> {
        if bytes.len() < WAN_FCN_LEN {
            return Err(Error::short(Layer::WanFcn, WAN_FCN_LEN, bytes.len()));
        }
        Ok(Self(bytes))
    }

    fn word(&self) -> u32 {
        u32_at(self.0, 0)
    }

    /// Flow label of the outer IPv6 header of the packet that met congestion; 20 bits.
    #[must_use]
    pub fn flow_label(&self) -> u32 {
        self.word() >> 12
    }

    /// Congestion level: 1 lowest to 7 highest, 0 not used.
    #[must_use]
    pub fn level(&self) -> u8 {
        (self.word() >> 9 & 7) as u8
    }

    /// The level, if one is given: 1 lowest to 7 highest.
    #[must_use]
    pub fn given_level(&self) -> Option<u8> {
        Some(self.level()).filter(|level| *level != 0)
    }

    /// The nine reserved bits.
    #[must_use]
    pub fn reserved(&self) -> u16 {
        (self.word() & 0x1FF) as u16
    }

    /// Adds the rules that the message breaks; offsets from its start.
    pub fn check(&self, findings: &mut Findings) {
        if self.0.len() != WAN_FCN_LEN {
            findings.push(Rule::WanFcnLength, WAN_FCN_LEN, self.0.len() - WAN_FCN_LEN);
        }
        if self.reserved() != 0 {
            findings.push(Rule::WanFcnReserved, 2, 2);
        }
    }
}

/// The values of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WanFcnRepr {
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Congestion level, 0 to 7.
    pub level: u8,
    /// Nine reserved bits, 0 in a well-formed message.
    pub reserved: u16,
}

impl WanFcnRepr {
    /// The values of `message`.
    #[must_use]
    pub fn parse(message: &WanFcn<'_>) -> Self {
        Self {
            flow_label: message.flow_label(),
            level: message.level(),
            reserved: message.reserved(),
        }
    }

    /// Octets written by [`emit`](Self::emit).
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        WAN_FCN_LEN
    }

    /// Writes the message; values wider than their field are cut to it.
    ///
    /// # Errors
    /// `out` is shorter than 4 octets.
    pub fn emit(&self, out: &mut [u8]) -> Result<()> {
        if out.len() < WAN_FCN_LEN {
            return Err(Error::buffer(Layer::WanFcn, WAN_FCN_LEN, out.len()));
        }
        let word = (self.flow_label & MAX_FLOW_LABEL) << 12
            | u32::from(self.level & MAX_LEVEL) << 9
            | u32::from(self.reserved & 0x1FF);
        put(out, 0, &word.to_be_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_lie_where_the_figure_draws_them() {
        let mut out = [0; 4];
        WanFcnRepr {
            flow_label: 0xABCDE,
            level: 5,
            reserved: 0,
        }
        .emit(&mut out)
        .unwrap();
        assert_eq!(out, [0xAB, 0xCD, 0xEA, 0x00]);
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
            let mut out = [0; 4];
            repr.emit(&mut out).unwrap();
            prop_assert_eq!(out, bytes);
            prop_assert_eq!(WanFcnRepr::parse(&WanFcn::new_checked(&out).unwrap()), repr);
        }
    }
}
