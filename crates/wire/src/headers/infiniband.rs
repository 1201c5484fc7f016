//! Native InfiniBand link (volume 1, sections 7.7 and 8.3), and the ERF record header used by older
//! captures of it.
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
//! Packet Length counts words of 4 octets from the start of this header to the end of the ICRC; a
//! Variant CRC of 2 octets may follow. LNH 3 means that a Global Route Header follows, which has
//! the layout of an IPv6 header with Next Header 0x1B. LNH 2 means that the Base Transport Header
//! follows.
//!
//! The ERF header has 16 octets: time stamp (8), type (1), flags (1), record length (2), loss
//! counter (2), length on the wire (2). Extension headers of 8 octets each follow if the first bit
//! of the type is set, and 2 octets of padding come before an Ethernet frame.

use crate::bth::{Bth, Opcode, Qp};
use crate::cnp::CNP_LEN;
use crate::ip::Ip;
use crate::octets::{u8_at, u16_at};
use std::net::{IpAddr, Ipv6Addr};

/// Field offsets in the Local Route Header.
pub(crate) mod lrh {
    /// Virtual lane and version.
    pub const VERSION: usize = 0;
    /// Service level and LNH (type of the next header).
    pub const NEXT: usize = 1;
    /// Destination local identifier.
    pub const DESTINATION: usize = 2;
    /// Length in words up to the end of the ICRC, 11 bits.
    pub const LENGTH: usize = 4;
    /// Source local identifier.
    pub const SOURCE: usize = 6;
    /// Header length in octets.
    pub const LEN: usize = 8;
    /// LNH value: the transport header follows.
    pub const LOCAL: u8 = 2;
    /// LNH value: the Global Route Header follows.
    pub const GLOBAL: u8 = 3;
}

/// Next Header of a Global Route Header followed by the transport header.
pub(crate) const TRANSPORT: u8 = 0x1B;

/// Length of an ERF header without extensions, in octets.
pub(crate) const ERF_LEN: usize = 16;
/// Length of an extension header, in octets, and the maximum number of them that is read.
const ERF_EXTENSION: usize = 8;
const ERF_EXTENSIONS: usize = 16;
const ERF_TYPE: usize = 8;
const ERF_WIRE_LEN: usize = 14;
/// Flag in the type, or in the first octet of an extension header: another extension header
/// follows.
const ERF_EXTENSION_FLAG: u8 = 0x80;

/// Content of an ERF record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// An Ethernet frame.
    Ethernet,
    /// An InfiniBand packet, starting with its Local Route Header.
    InfiniBand,
    /// Something else.
    Other,
}

/// An ERF header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Erf {
    /// Octets before the content.
    pub len: usize,
    /// Content of the record.
    pub record: Record,
    /// Length of the content on the wire, in octets.
    pub wire_len: usize,
}

impl Erf {
    /// Parses the header at the start of `bytes`. If they are too short, the error is the number of
    /// octets needed.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, usize> {
        let fixed: &[u8; ERF_LEN] = bytes.first_chunk().ok_or(ERF_LEN)?;
        let kind = u8_at(fixed, ERF_TYPE);
        let mut len = ERF_LEN;
        let mut more = kind & ERF_EXTENSION_FLAG != 0;
        while more && len < ERF_LEN + ERF_EXTENSIONS * ERF_EXTENSION {
            let first = *bytes.get(len).ok_or(len + ERF_EXTENSION)?;
            len += ERF_EXTENSION;
            more = first & ERF_EXTENSION_FLAG != 0;
        }
        let record = match kind & !ERF_EXTENSION_FLAG {
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

/// Returns the number of octets that a capture of link type ERF has before the original frame, or 0
/// if it is too short.
#[must_use]
pub fn erf_header_len(bytes: &[u8]) -> usize {
    Erf::parse(bytes).map_or(0, |header| header.len)
}

/// Returns the address used for an endpoint that has only a local identifier (16 bits, valid in one
/// subnet): the link-local address `fe80::` followed by that number \[choice\].
#[must_use]
pub const fn address_of_lid(lid: u16) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(0xFE80, 0, 0, 0, 0, 0, 0, lid))
}

/// Returns the local identifier that such an address [stands for](address_of_lid).
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

/// A native InfiniBand packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Its endpoints: GIDs if it has a Global Route Header, otherwise [addresses
    /// for](address_of_lid) local identifiers, with hop limit 0.
    pub ip: Ip,
    /// The packet from the Base Transport Header to the ICRC, as far as captured.
    pub payload: &'a [u8],
    /// Length of that part on the wire, in octets.
    pub payload_len: usize,
}

impl<'a> Packet<'a> {
    /// Returns true if the whole packet was captured.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.payload.len() == self.payload_len
    }

    /// Returns the transport header.
    #[must_use]
    pub fn bth(&self) -> Option<Bth<'a>> {
        Bth::new_checked(self.payload).ok()
    }

    /// Returns the sender's QP that an InfiniBand CNP (Annex A10: opcode 0x80) refers to. The ICRC
    /// may be missing from captures.
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
        // Endless extensions.
        let endless = Erf::parse(&[0xFF; 1 << 12]).unwrap();
        assert_eq!(endless.len, ERF_LEN + ERF_EXTENSIONS * ERF_EXTENSION);
    }
}
