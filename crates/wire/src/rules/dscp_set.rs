//! Sets of DSCPs.

use core::str::FromStr;
use serde::Deserialize;

/// Greatest DSCP (6 bits).
const MAX_DSCP: u8 = 63;

/// A set of DSCPs; empty by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Vec<u8>")]
pub struct DscpSet(u64);

impl DscpSet {
    /// The set without a DSCP.
    pub const EMPTY: Self = Self(0);

    /// Returns the set with these DSCPs.
    ///
    /// # Errors
    /// Returns the first one that is greater than 63.
    pub fn new(dscps: impl IntoIterator<Item = u8>) -> Result<Self, u8> {
        let mut bits = 0;
        for dscp in dscps {
            if dscp > MAX_DSCP {
                return Err(dscp);
            }
            bits |= 1 << dscp;
        }
        Ok(Self(bits))
    }

    /// Returns true if `dscp` is in the set.
    #[inline]
    #[must_use]
    pub const fn contains(self, dscp: u8) -> bool {
        dscp <= MAX_DSCP && self.0 >> dscp & 1 != 0
    }

    /// Returns the set of the DSCPs in either.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the set as a number whose bit n stands for DSCP n.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Returns the set of a number as of [`bits`](Self::bits).
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

impl TryFrom<Vec<u8>> for DscpSet {
    type Error = String;

    fn try_from(dscps: Vec<u8>) -> Result<Self, String> {
        Self::new(dscps).map_err(|dscp| format!("{dscp} is not a DSCP (0 to {MAX_DSCP})"))
    }
}

impl FromStr for DscpSet {
    type Err = ();

    /// Parses decimal DSCPs separated by commas; nothing stands for the empty set.
    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty());
        let dscps: Option<Vec<u8>> = parts.by_ref().map(|part| part.parse().ok()).collect();
        Self::new(dscps.ok_or(())?).map_err(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_dscps_are_read_and_others_refused() {
        let set: DscpSet = "11, 63,0".parse().unwrap();
        let all: Vec<u8> = (0..=u8::MAX).filter(|dscp| set.contains(*dscp)).collect();
        assert_eq!(all, [0, 11, 63]);
        assert_eq!(" ".parse(), Ok(DscpSet::EMPTY));
        assert_eq!(DscpSet::from_bits(set.bits()), set);
        for wrong in ["64", "-1", "AF11", "11 12", "300"] {
            assert_eq!(wrong.parse::<DscpSet>(), Err(()), "{wrong}");
        }
    }
}
