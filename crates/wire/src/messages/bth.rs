//! InfiniBand transport headers of RoCEv2: Base Transport Header, opcodes, extended headers.
//!
//! The CNP (opcode 0x81) is in `cnp.rs`, management datagrams in `mad.rs`, the ICRC in `icrc.rs`.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  Base Transport Header (section 9.2)
//! |    OpCode     |S|M|Pad| TVer  |             P_Key             |   0
//! |F|B|   Resv6   |                    DestQP                     |   4
//! |A|    Resv7    |                      PSN                      |   8
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  RETH (section 9.3.3)
//! |                     Virtual Address (64)                      |   0
//! |                             R_Key                             |   8
//! |                          DMA Length                           |  12
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  AETH (section 9.3.5)
//! |   Syndrome    |                      MSN                      |   0
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  DETH (section 9.3.2)
//! |                             Q_Key                             |   0
//! |   Reserved    |                   Source QP                   |   4
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! ```
//! use fcn_wire::bth::{Bth, BthRepr};
//! use fcn_wire::{Opcode, Qp};
//!
//! let header = BthRepr::new(Opcode::RC_SEND_ONLY, Qp::truncate(0x12), 7);
//! let bytes = header.to_bytes();
//! assert_eq!(bytes, [0x04, 0, 0xFF, 0xFF, 0, 0, 0, 0x12, 0, 0, 0, 7]);
//! assert_eq!(BthRepr::parse(&Bth::new_checked(&bytes)?), header);
//! # Ok::<(), fcn_wire::Error>(())
//! ```

use crate::error::{Error, Result};
use crate::fields::{Bits, Values, bits, values, view_fields};
use crate::finding::{Findings, Rule};
use crate::header::ICRC_LEN;
use crate::identified;
use crate::layer::Layer;
use crate::octets::u32_at;
use core::fmt;

/// Length of the Base Transport Header, in octets.
pub const BTH_LEN: usize = 12;
/// Largest value of a QP number or PSN (24 bits).
pub const MAX_24: u32 = 0x00FF_FFFF;

/// Field offsets in the Base Transport Header.
pub(crate) mod field {
    pub const OPCODE: usize = 0;
    /// Solicited event, migration state, pad count, transport version.
    pub const FLAGS: usize = 1;
    pub const PKEY: usize = 2;
    /// FECN, BECN and six reserved bits: the octet that the ICRC covers as ones.
    pub const ECN: usize = 4;
    pub const DEST_QP: usize = 5;
    pub const ACK: usize = 8;
    pub const PSN: usize = 9;
}

/// A queue pair number, 24 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Qp(u32);

impl Qp {
    /// General services queue pair, the destination of RDMA CM messages.
    pub const GSI: Self = Self(1);

    /// Returns `None` if the number needs more than 24 bits.
    #[must_use]
    pub const fn new(number: u32) -> Option<Self> {
        if number <= MAX_24 {
            Some(Self(number))
        } else {
            None
        }
    }

    /// Keeps the low 24 bits of `number`.
    #[must_use]
    pub const fn truncate(number: u32) -> Self {
        Self(number & MAX_24)
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Qp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// An extended transport header (InfiniBand volume 1, section 9.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtendedHeader {
    /// Datagram: Q_Key and source QP.
    Deth,
    /// RDMA: virtual address, R_Key, DMA length.
    Reth,
    /// Atomic: virtual address, R_Key, swap or add data, compare data.
    AtomicEth,
    /// Acknowledge: syndrome and message sequence number.
    Aeth,
    /// Atomic acknowledge: original remote data.
    AtomicAckEth,
    /// Immediate data.
    ImmDt,
    /// Invalidate: R_Key.
    Ieth,
}

impl ExtendedHeader {
    /// Returns the length of the header in octets.
    #[must_use]
    pub const fn octets(self) -> usize {
        match self {
            Self::Deth => Deth::LEN,
            Self::Reth => Reth::LEN,
            Self::Aeth => Aeth::LEN,
            Self::AtomicAckEth => 8,
            Self::AtomicEth => 28,
            Self::ImmDt | Self::Ieth => 4,
        }
    }
}

/// Transport service of an opcode (its top three bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Reliable connection.
    Rc,
    /// Unreliable connection.
    Uc,
    /// Reliable datagram.
    Rd,
    /// Unreliable datagram.
    Ud,
    /// Congestion notification.
    Cnp,
    /// Extended reliable connection.
    Xrc,
    /// Unassigned or manufacturer-specific.
    Other(u8),
}

/// A BTH opcode; every value is valid, including unknown ones.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Opcode(pub u8);

macro_rules! opcodes {
    ($( $konst:ident = $code:literal, $name:literal, [$($ext:ident),*]; )+) => {
        impl Opcode {
            $( #[doc = $name] pub const $konst: Self = Self($code); )+

            /// Opcodes that this crate knows.
            pub const KNOWN: &'static [Self] = &[ $( Self::$konst, )+ ];

            /// Returns the name and extended headers, if the opcode is known.
            const fn entry(self) -> Option<(&'static str, &'static [ExtendedHeader])> {
                match self.0 {
                    $( $code => Some(($name, &[ $( ExtendedHeader::$ext, )* ])), )+
                    _ => None,
                }
            }
        }
    };
}

opcodes! {
    RC_SEND_FIRST = 0x00, "RC SEND First", [];
    RC_SEND_MIDDLE = 0x01, "RC SEND Middle", [];
    RC_SEND_LAST = 0x02, "RC SEND Last", [];
    RC_SEND_LAST_IMM = 0x03, "RC SEND Last with Immediate", [ImmDt];
    RC_SEND_ONLY = 0x04, "RC SEND Only", [];
    RC_SEND_ONLY_IMM = 0x05, "RC SEND Only with Immediate", [ImmDt];
    RC_WRITE_FIRST = 0x06, "RC RDMA WRITE First", [Reth];
    RC_WRITE_MIDDLE = 0x07, "RC RDMA WRITE Middle", [];
    RC_WRITE_LAST = 0x08, "RC RDMA WRITE Last", [];
    RC_WRITE_LAST_IMM = 0x09, "RC RDMA WRITE Last with Immediate", [ImmDt];
    RC_WRITE_ONLY = 0x0A, "RC RDMA WRITE Only", [Reth];
    RC_WRITE_ONLY_IMM = 0x0B, "RC RDMA WRITE Only with Immediate", [Reth, ImmDt];
    RC_READ_REQUEST = 0x0C, "RC RDMA READ Request", [Reth];
    RC_READ_RESPONSE_FIRST = 0x0D, "RC RDMA READ Response First", [Aeth];
    RC_READ_RESPONSE_MIDDLE = 0x0E, "RC RDMA READ Response Middle", [];
    RC_READ_RESPONSE_LAST = 0x0F, "RC RDMA READ Response Last", [Aeth];
    RC_READ_RESPONSE_ONLY = 0x10, "RC RDMA READ Response Only", [Aeth];
    RC_ACKNOWLEDGE = 0x11, "RC Acknowledge", [Aeth];
    RC_ATOMIC_ACKNOWLEDGE = 0x12, "RC ATOMIC Acknowledge", [Aeth, AtomicAckEth];
    RC_COMPARE_SWAP = 0x13, "RC CmpSwap", [AtomicEth];
    RC_FETCH_ADD = 0x14, "RC FetchAdd", [AtomicEth];
    RC_SEND_LAST_INVALIDATE = 0x16, "RC SEND Last with Invalidate", [Ieth];
    RC_SEND_ONLY_INVALIDATE = 0x17, "RC SEND Only with Invalidate", [Ieth];
    UC_SEND_FIRST = 0x20, "UC SEND First", [];
    UC_SEND_MIDDLE = 0x21, "UC SEND Middle", [];
    UC_SEND_LAST = 0x22, "UC SEND Last", [];
    UC_SEND_LAST_IMM = 0x23, "UC SEND Last with Immediate", [ImmDt];
    UC_SEND_ONLY = 0x24, "UC SEND Only", [];
    UC_SEND_ONLY_IMM = 0x25, "UC SEND Only with Immediate", [ImmDt];
    UC_WRITE_FIRST = 0x26, "UC RDMA WRITE First", [Reth];
    UC_WRITE_MIDDLE = 0x27, "UC RDMA WRITE Middle", [];
    UC_WRITE_LAST = 0x28, "UC RDMA WRITE Last", [];
    UC_WRITE_LAST_IMM = 0x29, "UC RDMA WRITE Last with Immediate", [ImmDt];
    UC_WRITE_ONLY = 0x2A, "UC RDMA WRITE Only", [Reth];
    UC_WRITE_ONLY_IMM = 0x2B, "UC RDMA WRITE Only with Immediate", [Reth, ImmDt];
    UD_SEND_ONLY = 0x64, "UD SEND Only", [Deth];
    UD_SEND_ONLY_IMM = 0x65, "UD SEND Only with Immediate", [Deth, ImmDt];
    IB_CNP = 0x80, "InfiniBand Congestion Notification Packet", [];
    CNP = 0x81, "Congestion Notification Packet", [];
}

impl Opcode {
    /// Returns the opcode's name, or `None` if this crate does not know it.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self.entry() {
            Some((name, _)) => Some(name),
            None => None,
        }
    }

    /// Returns the extended headers that follow the BTH, in order, or `None` if the opcode is
    /// unknown.
    #[must_use]
    pub const fn extended_headers(self) -> Option<&'static [ExtendedHeader]> {
        match self.entry() {
            Some((_, headers)) => Some(headers),
            None => None,
        }
    }

    /// Returns the total length of the extended headers in octets, or `None` if the opcode is
    /// unknown.
    #[must_use]
    pub fn extended_len(self) -> Option<usize> {
        let headers = self.extended_headers()?.iter();
        Some(headers.map(|header| header.octets()).sum())
    }

    /// Returns the transport service, from the top three bits.
    #[must_use]
    pub const fn transport(self) -> Transport {
        match self.0 >> 5 {
            0 => Transport::Rc,
            1 => Transport::Uc,
            2 => Transport::Rd,
            3 => Transport::Ud,
            4 => Transport::Cnp,
            5 => Transport::Xrc,
            other => Transport::Other(other),
        }
    }
}

impl fmt::Debug for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Opcode({self})")
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "unknown opcode {:#04x}", self.0),
        }
    }
}

/// View of a Base Transport Header (InfiniBand volume 1, section 9.2).
#[derive(Clone, Copy, Debug)]
pub struct Bth<'a>(&'a [u8; BTH_LEN]);

impl<'a> Bth<'a> {
    /// Returns a view of the header at the start of `bytes`.
    ///
    /// # Errors
    /// Fails on fewer than 12 octets.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self> {
        match bytes.first_chunk() {
            Some(header) => Ok(Self(header)),
            None => Err(Error::short(Layer::Bth, BTH_LEN, bytes.len())),
        }
    }

    const fn octets(&self) -> &[u8] {
        self.0
    }
}

bits! {
    Opcode: |bits| Self(bits as u8), |opcode: Self| opcode.0.into();
    Qp: |bits| Self(bits as u32), |qp: Self| qp.0.into();
}

view_fields! {
    Bth by octets,
    /// The values of a Base Transport Header.
    BthRepr [BTH_LEN] {
        /// OpCode.
        opcode: Opcode = "OpCode", [(field::OPCODE, 0, 8)];
        /// Solicited event.
        solicited: bool = "SE", [(field::FLAGS, 0, 1)];
        /// Migration state.
        migrated: bool = "M", [(field::FLAGS, 1, 1)];
        /// Number of pad octets after the payload, 0 to 3.
        pad: u8 = "PadCnt", [(field::FLAGS, 2, 2)];
        /// Transport header version, 0 to 15; 0 is the only one defined.
        version: u8 = "TVer", [(field::FLAGS, 4, 4)];
        /// Partition key; 0xFFFF is the default partition.
        pkey: u16 = "P_Key", [(field::PKEY, 0, 16)];
        /// Forward explicit congestion notification.
        fecn: bool = "F", [(field::ECN, 0, 1)];
        /// Backward explicit congestion notification.
        becn: bool = "B", [(field::ECN, 1, 1)];
        /// Six reserved bits after BECN.
        reserved6: u8 = "Resv6", [(field::ECN, 2, 6)];
        /// Destination QP.
        dest_qp: Qp = "DestQP", [(field::DEST_QP, 0, 24)];
        /// Acknowledge request.
        ack_request: bool = "A", [(field::ACK, 0, 1)];
        /// Seven reserved bits after the acknowledge request.
        reserved7: u8 = "Resv7", [(field::ACK, 1, 7)];
        /// Packet sequence number, 24 bits.
        psn: u32 = "PSN", [(field::PSN, 0, 24)];
    } and {}
}

impl BthRepr {
    /// Creates a header with `opcode`, `dest_qp` and `psn` in the default partition; everything
    /// else is 0.
    #[must_use]
    pub const fn new(opcode: Opcode, dest_qp: Qp, psn: u32) -> Self {
        Self {
            opcode,
            solicited: false,
            migrated: false,
            pad: 0,
            version: 0,
            pkey: 0xFFFF,
            fecn: false,
            becn: false,
            reserved6: 0,
            dest_qp,
            ack_request: false,
            reserved7: 0,
            psn,
        }
    }
}

values! {
    /// RDMA extended transport header.
    Reth [16] {
        /// Virtual address.
        address: u64 = "Virtual Address", [(0, 0, 64)];
        /// Remote key.
        rkey: u32 = "R_Key", [(8, 0, 32)];
        /// DMA length in octets.
        length: u32 = "DMA Length", [(12, 0, 32)];
    }
}

values! {
    /// Acknowledge extended transport header.
    Aeth [4] {
        /// Syndrome: 0x00 to 0x1F acknowledge with credits, 0x20 to 0x3F receiver not ready, 0x60
        /// to 0x7F negative.
        syndrome: u8 = "Syndrome", [(0, 0, 8)];
        /// Message sequence number, 24 bits.
        msn: u32 = "MSN", [(1, 0, 24)];
    }
}

values! {
    /// Datagram extended transport header.
    Deth [8] {
        /// Queue key.
        qkey: u32 = "Q_Key", [(0, 0, 32)];
        /// QP that sent the datagram.
        source_qp: Qp = "Source QP", [(Self::SOURCE_QP, 0, 24)];
    }
}

identified! {
    /// Meaning of an AETH's syndrome (InfiniBand volume 1, section 9.7.5.2.1).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    AckKind {
        /// 0x00 to 0x1F: positive, with credits.
        Ack = "ack",
        /// 0x20 to 0x3F: receiver not ready, with the time to wait.
        RnrNak = "rnr_nak",
        /// 0x60: a PSN is missing.
        SequenceError = "nak_sequence",
        /// 0x61: the request is invalid.
        InvalidRequest = "nak_invalid_request",
        /// 0x62: access to the receiver's memory is denied.
        RemoteAccess = "nak_remote_access",
        /// 0x63: the receiver could not complete the request.
        RemoteOperation = "nak_remote_operation",
    }
}

impl Aeth {
    /// Returns the meaning of the syndrome; `None` for a reserved one.
    #[must_use]
    pub const fn kind(self) -> Option<AckKind> {
        Some(match self.syndrome {
            0x00..=0x1F => AckKind::Ack,
            0x20..=0x3F => AckKind::RnrNak,
            0x60 => AckKind::SequenceError,
            0x61 => AckKind::InvalidRequest,
            0x62 => AckKind::RemoteAccess,
            0x63 => AckKind::RemoteOperation,
            _ => return None,
        })
    }
}

impl Deth {
    /// Offset of the source QP.
    pub(crate) const SOURCE_QP: usize = 5;
}

/// View of a RoCEv2 packet: the UDP payload, from the BTH to the ICRC.
#[derive(Clone, Copy, Debug)]
pub struct Roce<'a> {
    bth: Bth<'a>,
    bytes: &'a [u8],
    extended: usize,
}

impl<'a> Roce<'a> {
    /// Returns a view of the packet in `bytes`, the whole UDP payload.
    ///
    /// An unknown opcode is assumed to have no extended headers.
    ///
    /// # Errors
    /// Fails if `bytes` is too short for the headers of the opcode, the pad and the ICRC.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self> {
        let bth = Bth::new_checked(bytes)?;
        let extended = bth.opcode().extended_len().unwrap_or(0);
        let need = BTH_LEN + extended + usize::from(bth.pad()) + ICRC_LEN;
        if bytes.len() < need {
            return Err(Error::short(Layer::Bth, need, bytes.len()));
        }
        Ok(Self {
            bth,
            bytes,
            extended,
        })
    }

    /// Returns the Base Transport Header.
    #[must_use]
    pub const fn bth(&self) -> Bth<'a> {
        self.bth
    }

    /// Returns the octets of the packet.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the payload, without extended headers, pad and ICRC.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        let end = self.bytes.len() - ICRC_LEN - usize::from(self.bth.pad());
        self.bytes
            .get(BTH_LEN + self.extended..end)
            .unwrap_or_default()
    }

    /// Returns the ICRC field as a number.
    #[must_use]
    pub fn icrc(&self) -> u32 {
        let at = self.bytes.len() - ICRC_LEN;
        u32_at(self.bytes, at).swap_bytes()
    }

    /// Returns the offset of the extended header `which`, if the opcode has it.
    pub(crate) fn extended_at(&self, which: ExtendedHeader) -> Option<usize> {
        let mut at = BTH_LEN;
        for header in self.bth.opcode().extended_headers()? {
            if *header == which {
                return Some(at);
            }
            at += header.octets();
        }
        None
    }

    /// Returns the values of the extended header `which`, if the opcode has it.
    fn extended<T: Values>(&self, which: ExtendedHeader) -> Option<T> {
        let at = self.extended_at(which)?;
        Some(T::read_from(self.bytes.get(at..)?))
    }

    /// Returns the RETH, if the opcode has one.
    #[must_use]
    pub fn reth(&self) -> Option<Reth> {
        self.extended(ExtendedHeader::Reth)
    }

    /// Returns the AETH, if the opcode has one.
    #[must_use]
    pub fn aeth(&self) -> Option<Aeth> {
        self.extended(ExtendedHeader::Aeth)
    }

    /// Returns the DETH, if the opcode has one.
    #[must_use]
    pub fn deth(&self) -> Option<Deth> {
        self.extended(ExtendedHeader::Deth)
    }

    /// Returns the immediate data, if the opcode has it.
    #[must_use]
    pub fn immediate(&self) -> Option<u32> {
        Some(u32_at(self.bytes, self.extended_at(ExtendedHeader::ImmDt)?))
    }

    /// Adds the rules that the headers break, with offsets from the BTH.
    pub fn check(&self, findings: &mut Findings) {
        if self.bth.version() != 0 {
            findings.push(Rule::RoceTver, field::FLAGS, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_bth() -> impl Strategy<Value = BthRepr> {
        any::<[u8; BTH_LEN]>().prop_map(|bytes| BthRepr::parse(&Bth::new_checked(&bytes).unwrap()))
    }

    proptest! {
        #[test]
        fn emit_after_parse_restores_the_bytes(bytes: [u8; BTH_LEN]) {
            let repr = BthRepr::parse(&Bth::new_checked(&bytes).unwrap());
            prop_assert_eq!(repr.to_bytes(), bytes);
        }

        #[test]
        fn parse_after_emit_gives_back_the_value(repr in any_bth()) {
            prop_assert_eq!(BthRepr::parse(&Bth::new_checked(&repr.to_bytes()).unwrap()), repr);
        }

        #[test]
        fn parsing_any_payload_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(roce) = Roce::new_checked(&bytes) {
                let _ = (roce.payload(), roce.icrc(), roce.reth(), roce.aeth(), roce.deth(), roce.immediate());
                let used = BTH_LEN + roce.extended + roce.payload().len() + usize::from(roce.bth().pad()) + ICRC_LEN;
                prop_assert_eq!(used, bytes.len());
            }
        }
    }

    #[test]
    fn extended_header_lengths_match_their_opcodes() {
        for (opcode, len) in [
            (Opcode::RC_WRITE_ONLY_IMM, 20),
            (Opcode::RC_ATOMIC_ACKNOWLEDGE, 12),
            (Opcode::RC_FETCH_ADD, 28),
            (Opcode::RC_SEND_ONLY_INVALIDATE, 4),
            (Opcode::UC_WRITE_FIRST, 16),
            (Opcode::UD_SEND_ONLY_IMM, 12),
            (Opcode::CNP, 0),
        ] {
            assert_eq!(opcode.extended_len(), Some(len), "{opcode}");
        }
        assert_eq!(Opcode(0x15).extended_len(), None);
        assert_eq!(Opcode::KNOWN.len(), 23 + 12 + 2 + 2);
    }

    #[test]
    fn syndromes_have_their_meaning() {
        let kind = |syndrome| Aeth { syndrome, msn: 0 }.kind();
        for (syndromes, meaning) in [
            (0x00..=0x1F, Some(AckKind::Ack)),
            (0x20..=0x3F, Some(AckKind::RnrNak)),
            (0x40..=0x5F, None),
            (0x60..=0x60, Some(AckKind::SequenceError)),
            (0x61..=0x61, Some(AckKind::InvalidRequest)),
            (0x62..=0x62, Some(AckKind::RemoteAccess)),
            (0x63..=0x63, Some(AckKind::RemoteOperation)),
            (0x64..=0xFF, None),
        ] {
            for syndrome in syndromes {
                assert_eq!(kind(syndrome), meaning, "{syndrome:#x}");
            }
        }
    }

    #[test]
    fn consecutive_extended_headers_are_found() {
        let mut packet = [0u8; BTH_LEN + 20 + 4];
        let bth = BthRepr::new(Opcode::RC_WRITE_ONLY_IMM, Qp::truncate(0x12), 7);
        packet[..BTH_LEN].copy_from_slice(&bth.to_bytes());
        let reth = Reth {
            address: 0x1122_3344_5566_7788,
            rkey: 9,
            length: 0,
        };
        packet[12..28].copy_from_slice(&reth.to_bytes());
        packet[28..32].copy_from_slice(&[1, 2, 3, 4]);
        let roce = Roce::new_checked(&packet).unwrap();
        assert_eq!(
            (roce.reth(), roce.immediate()),
            (Some(reth), Some(0x0102_0304))
        );
        assert_eq!((roce.aeth(), roce.payload().len()), (None, 0));
        assert_eq!(
            Roce::new_checked(&packet[..35]).unwrap_err(),
            Error::short(Layer::Bth, 36, 35)
        );
    }
}
