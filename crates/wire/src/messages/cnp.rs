//! The Congestion Notification Packet (InfiniBand volume 1, Annex A17.9.3): BTH, 16 reserved
//! octets, ICRC.
//!
//! A Fast CNP is a CNP preceded by an IPv6 destination option, which is in `fast_cnp.rs`.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |  Base Transport Header: opcode 0x81, B 1, PSN 0 (96)          |   0
//! |  Reserved (128)                                               |  12
//! |  Invariant CRC                                                |  28
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! ```
//! use fcn_wire::Qp;
//! use fcn_wire::cnp::{CNP_BODY_LEN, CNP_LEN, Cnp, CnpRepr};
//!
//! let mut bytes = [0; CNP_LEN];
//! bytes[..CNP_BODY_LEN].copy_from_slice(&CnpRepr::new(Qp::truncate(0x11)).to_bytes());
//! let cnp = Cnp::new_checked(&bytes)?;
//! assert!(cnp.dest_qp() == Qp::truncate(0x11) && cnp.bth().becn());
//! # Ok::<(), fcn_wire::Error>(())
//! ```

use crate::bth::{BTH_LEN, Bth, BthRepr, Opcode, Qp, field};
use crate::error::{Error, Result};
use crate::finding::{Findings, Rule};
use crate::icrc::ICRC_LEN;
use crate::layer::Layer;
use crate::octets::{array, put, u32_at};

/// Number of reserved octets between BTH and ICRC.
pub const RESERVED_LEN: usize = 16;
/// Length of a CNP as carried in UDP, in octets.
pub const CNP_LEN: usize = BTH_LEN + RESERVED_LEN + ICRC_LEN;
/// Length of a CNP without its ICRC, in octets.
pub const CNP_BODY_LEN: usize = CNP_LEN - ICRC_LEN;
/// Default UDP source port of a CNP: the one that a ConnectX-4 Lx uses.
pub const DEFAULT_UDP_SOURCE: u16 = 0;
/// Default DSCP and ECN of a CNP, as one octet: DSCP 48, ECT(0), as sent by a ConnectX-4 Lx.
pub const DEFAULT_TRAFFIC_CLASS: u8 = 48 << 2 | 0b10;

/// View of a CNP.
#[derive(Clone, Copy, Debug)]
pub struct Cnp<'a> {
    bth: Bth<'a>,
    bytes: &'a [u8],
}

impl<'a> Cnp<'a> {
    /// Returns a view of the CNP in `bytes`, the whole UDP payload.
    ///
    /// # Errors
    /// Fails if the opcode is not 0x81 or the length is not exactly that of a CNP.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self> {
        let bth = Bth::new_checked(bytes)?;
        if bth.opcode() != Opcode::CNP {
            let found = bth.opcode().0.into();
            return Err(Error::value(Layer::Cnp, 0, "OpCode", found, "0x81"));
        }
        let len = bytes.len();
        if len < CNP_LEN {
            return Err(Error::short(Layer::Cnp, CNP_LEN, len));
        }
        if len > CNP_LEN {
            let field = "UDP payload length";
            return Err(Error::length(Layer::Cnp, 0, field, len, CNP_LEN, CNP_LEN));
        }
        Ok(Self { bth, bytes })
    }

    /// Returns the Base Transport Header.
    #[must_use]
    pub const fn bth(&self) -> Bth<'a> {
        self.bth
    }

    /// Returns the QP that the notification is about: the sender's own in a plain CNP, the
    /// receiver's in a Fast CNP.
    #[must_use]
    pub fn dest_qp(&self) -> Qp {
        self.bth.dest_qp()
    }

    /// Returns the reserved octets.
    #[must_use]
    pub fn reserved(&self) -> [u8; RESERVED_LEN] {
        array(self.bytes, BTH_LEN)
    }

    /// Returns the ICRC field as a number.
    #[must_use]
    pub fn icrc(&self) -> u32 {
        u32_at(self.bytes, CNP_BODY_LEN).swap_bytes()
    }

    /// Adds the rules that the packet breaks, with offsets from the BTH.
    pub fn check(&self, findings: &mut Findings) {
        if self.bth.version() != 0 {
            findings.push(Rule::RoceTver, field::FLAGS, 1);
        }
        if !self.bth.becn() {
            findings.push(Rule::CnpBecn, field::ECN, 1);
        }
        if self.bth.psn() != 0 {
            findings.push(Rule::CnpPsn, field::PSN, 3);
        }
        if self.reserved() != [0; RESERVED_LEN] {
            findings.push(Rule::CnpReserved, BTH_LEN, RESERVED_LEN);
        }
    }
}

/// Values of a CNP, without its ICRC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CnpRepr {
    /// Base Transport Header.
    pub bth: BthRepr,
    /// Reserved octets, zero in a well-formed CNP.
    pub reserved: [u8; RESERVED_LEN],
}

impl CnpRepr {
    /// Creates a well-formed CNP about `qp`.
    #[must_use]
    pub const fn new(qp: Qp) -> Self {
        let mut bth = BthRepr::new(Opcode::CNP, qp, 0);
        bth.becn = true;
        Self {
            bth,
            reserved: [0; RESERVED_LEN],
        }
    }

    /// Returns the values of `cnp`.
    #[must_use]
    pub fn parse(cnp: &Cnp<'_>) -> Self {
        Self {
            bth: BthRepr::parse(&cnp.bth()),
            reserved: cnp.reserved(),
        }
    }

    /// Returns its octets, without the ICRC.
    #[must_use]
    pub fn to_bytes(self) -> [u8; CNP_BODY_LEN] {
        let mut out = [0; CNP_BODY_LEN];
        put(&mut out, 0, &self.bth.to_bytes());
        put(&mut out, BTH_LEN, &self.reserved);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn new() -> [u8; CNP_LEN] {
        let mut bytes = [0; CNP_LEN];
        put(&mut bytes, 0, &CnpRepr::new(Qp::truncate(0x12)).to_bytes());
        bytes
    }

    #[test]
    fn a_new_cnp_breaks_no_rule() {
        let bytes = new();
        let mut findings = Findings::new();
        Cnp::new_checked(&bytes).unwrap().check(&mut findings);
        assert!(findings.is_empty(), "{findings:?}");
        assert_eq!(
            bytes[..12],
            [0x81, 0, 0xFF, 0xFF, 0x40, 0, 0, 0x12, 0, 0, 0, 0]
        );
    }

    #[test]
    fn each_broken_rule_is_reported_at_its_offset() {
        for (at, value, rule, offset) in [
            (1, 0x01, Rule::RoceTver, 1),
            (4, 0x00, Rule::CnpBecn, 4),
            (11, 0x01, Rule::CnpPsn, 9),
            (27, 0x01, Rule::CnpReserved, 12),
        ] {
            let mut bytes = new();
            bytes[at] = value;
            let mut findings = Findings::new();
            Cnp::new_checked(&bytes).unwrap().check(&mut findings);
            assert_eq!(findings.as_slice().len(), 1);
            assert_eq!(
                (findings.as_slice()[0].rule, findings.as_slice()[0].offset),
                (rule, offset)
            );
        }
    }

    proptest! {
        #[test]
        fn parse_and_emit_are_inverse(mut bytes: [u8; CNP_LEN]) {
            bytes[0] = 0x81;
            let repr = CnpRepr::parse(&Cnp::new_checked(&bytes).unwrap());
            prop_assert!(repr.to_bytes() == bytes[..CNP_BODY_LEN]);
        }

        #[test]
        fn only_32_octets_with_the_opcode_are_a_cnp(bytes in proptest::collection::vec(any::<u8>(), 0..70)) {
            let is = Cnp::new_checked(&bytes).is_ok();
            prop_assert_eq!(is, bytes.len() == CNP_LEN && bytes[0] == 0x81);
        }
    }
}
