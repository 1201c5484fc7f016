//! InfiniBand's own link (volume 1, sections 7.7 and 8.3) and the record header of ERF, in which older captures of it are.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  Local Route Header
//! |  VL   | LVer  |  SL   |   |LNH|  Destination Local Identifier |   0
//! |  Resv   |   Packet Length     |  Source Local Identifier      |   4
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! Packet Length counts words of 4 octets from here to the end of the ICRC; behind that there may be a Variant CRC of 2 octets.
//! LNH 3 says that a Global Route Header follows, which is laid out as IPv6's, with 0x1B as its Next Header, and LNH 2 that the
//! Base Transport Header does.
//!
//! The ERF header has 16 octets: time stamp (8), type (1), flags (1), record length (2), loss counter (2), length on the wire (2),
//! then extension headers of 8 octets each, where the first bit of the type says so, and in front of Ethernet 2 octets of padding.

use crate::bth::{Bth, Opcode, Qp};
use crate::cnp::CNP_LEN;
use crate::ip::Ip;
use crate::octets::{u8_at, u16_at};
use std::net::{IpAddr, Ipv6Addr};

/// Where the fields lie in the Local Route Header.
pub(crate) mod lrh {
    /// Virtual lane, and version.
    pub const VERSION: usize = 0;
    /// Service level, and what follows.
    pub const NEXT: usize = 1;
    /// Whom it is sent to.
    pub const DESTINATION: usize = 2;
    /// Words up to the end of the ICRC, 11 bits.
    pub const LENGTH: usize = 4;
    /// Who sends it.
    pub const SOURCE: usize = 6;
    /// Octets of the header.
    pub const LEN: usize = 8;
    /// What follows: the transport header.
    pub const LOCAL: u8 = 2;
    /// What follows: the Global Route Header.
    pub const GLOBAL: u8 = 3;
}

/// Next Header of a Global Route Header in front of the transport header.
pub(crate) const TRANSPORT: u8 = 0x1B;

/// Octets of an ERF header without what extends it.
pub(crate) const ERF_LEN: usize = 16;
/// Octets of an extension header, and most of them that are read.
const ERF_EXTENSION: usize = 8;
const ERF_EXTENSIONS: usize = 16;
const ERF_TYPE: usize = 8;
const ERF_WIRE_LEN: usize = 14;
/// Says in a type, or in the first octet of an extension header, that another one follows.
const ERF_MORE: u8 = 0x80;

/// What an ERF record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// An Ethernet frame.
    Ethernet,
    /// An InfiniBand packet from its Local Route Header on.
    InfiniBand,
    /// Something else.
    Other,
}

/// An ERF header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Erf {
    /// Octets in front of what it holds.
    pub len: usize,
    /// What it holds.
    pub record: Record,
    /// Octets of that on the wire.
    pub wire_len: usize,
}

impl Erf {
    /// The header at the start of `bytes`; the octets that would be needed where they end before it does.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, usize> {
        let fixed: &[u8; ERF_LEN] = bytes.first_chunk().ok_or(ERF_LEN)?;
        let kind = u8_at(fixed, ERF_TYPE);
        let mut len = ERF_LEN;
        let mut more = kind & ERF_MORE != 0;
        while more && len < ERF_LEN + ERF_EXTENSIONS * ERF_EXTENSION {
            let first = *bytes.get(len).ok_or(len + ERF_EXTENSION)?;
            len += ERF_EXTENSION;
            more = first & ERF_MORE != 0;
        }
        let record = match kind & !ERF_MORE {
            // Plain, coloured, with a hash, and with both.
            2 | 11 | 16 | 20 => Record::Ethernet,
            21 => Record::InfiniBand,
            _ => Record::Other,
        };
        if record == Record::Ethernet {
            len += 2;
        }
        if bytes.len() < len {
            return Err(len);
        }
        Ok(Self {
            len,
            record,
            wire_len: u16_at(fixed, ERF_WIRE_LEN).into(),
        })
    }
}

/// Octets that a capture of link type ERF puts in front of what was on the wire; none where it ends before that.
#[must_use]
pub fn erf_header_len(bytes: &[u8]) -> usize {
    Erf::parse(bytes).map_or(0, |header| header.len)
}

/// How an end is written that has only a local identifier, 16 bits and valid in one subnet: as the link-local address fe80::
/// with that number behind it \[choice\].
#[must_use]
pub const fn address_of_lid(lid: u16) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, lid))
}

/// The local identifier that such an address [stands for](address_of_lid).
#[must_use]
pub const fn lid_of_address(address: IpAddr) -> Option<u16> {
    match address {
        IpAddr::V6(address) => match address.segments() {
            [0xFE80, 0, 0, 0, 0, 0, 0, lid] => Some(lid),
            _ => None,
        },
        IpAddr::V4(_) => None,
    }
}

/// A packet of InfiniBand's own link.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Its ends: GIDs where it has a Global Route Header, else what [stands for](address_of_lid) local identifiers. Of hop limit
    /// 0 where it has none.
    pub ip: Ip,
    /// From the Base Transport Header to the ICRC, as far as captured.
    pub payload: &'a [u8],
    /// Octets of that on the wire.
    pub payload_len: usize,
}

impl<'a> Packet<'a> {
    /// Whether all of it was captured.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.payload.len() == self.payload_len
    }

    /// The transport header.
    #[must_use]
    pub fn bth(&self) -> Option<Bth<'a>> {
        Bth::new_checked(self.payload).ok()
    }

    /// The QP at the sender that a CNP of InfiniBand (Annex A10: opcode 0x80) is about. An ICRC may be left out of captures.
    #[must_use]
    pub fn cnp(&self) -> Option<Qp> {
        let bth = self.bth().filter(|bth| bth.opcode() == Opcode::IB_CNP)?;
        let lens = CNP_LEN - crate::icrc::ICRC_LEN..=CNP_LEN;
        lens.contains(&self.payload_len).then(|| bth.dest_qp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_erf_header_has_its_extensions_and_padding() {
        let mut bytes = vec![0; 64];
        bytes[ERF_TYPE] = 21;
        bytes[ERF_WIRE_LEN + 1] = 46;
        let of = |bytes: &[u8]| Erf::parse(bytes).map(|erf| (erf.len, erf.record, erf.wire_len));
        assert_eq!(of(&bytes), Ok((16, Record::InfiniBand, 46)));
        bytes[ERF_TYPE] = 2;
        assert_eq!(of(&bytes), Ok((18, Record::Ethernet, 46)));
        bytes[ERF_TYPE] = 0x82;
        bytes[16] = 0x80;
        assert_eq!(of(&bytes), Ok((34, Record::Ethernet, 46)));
        assert_eq!(erf_header_len(&bytes), 34);
        for len in 0..34 {
            assert!(of(&bytes[..len]).is_err_and(|need| need > len && need <= 34));
        }
        bytes[ERF_TYPE] = 24;
        assert_eq!(of(&bytes), Ok((16, Record::Other, 46)));
        // Extensions without end.
        let endless = Erf::parse(&[0xFF; 1 << 12]).unwrap();
        assert_eq!(endless.len, ERF_LEN + ERF_EXTENSIONS * ERF_EXTENSION);
    }
}
