//! RDMA communication management: the MADs to QP 1 that set a connection up and take it down, and the RDMA IP CM
//! header in their private data (InfiniBand volume 1 section 12.6, Annex A11).
//!
//! Of each message everything is read and written; which QP belongs to which flow is learnt elsewhere. The common MAD
//! header lives in `mad.rs`, the BTH and DETH that carry it in `bth.rs`. Messages that only negotiate
//! (MRA, LAP, APR, SIDR) are named and left unread.

use crate::error::{Error, Result};
use crate::layer::Layer;
use crate::mad::{
    BASE_VERSION, MAD_DATA_LEN, MAD_HEADER_LEN, MAD_LEN, Mad, MadRepr, class, method,
};
use crate::octets::{ipv4_at, ipv6_at, put, put_u24, u8_at, u16_at, u24_at, u32_at, u64_at};
use core::fmt;
use core::ops::Deref;
use std::net::{IpAddr, Ipv6Addr};

/// Version of the communication management class that this module reads and writes.
pub const CM_CLASS_VERSION: u8 = 2;
/// Greatest queue pair number, end-to-end context number, PSN or vendor ID: 24 bits.
pub const MAX_24: u32 = 0xFF_FFFF;

/// Which message a communication management MAD is (section 12.6, attribute IDs of section 16.7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// REQ, 0x10: the active side asks for a connection.
    ConnectRequest,
    /// MRA, 0x11: the answer will take longer.
    MessageReceiptAcknowledgement,
    /// REJ, 0x12: no.
    ConnectReject,
    /// REP, 0x13: the passive side agrees.
    ConnectReply,
    /// RTU, 0x14: the active side is ready.
    ReadyToUse,
    /// DREQ, 0x15: one side takes the connection down.
    DisconnectRequest,
    /// DREP, 0x16: the other agrees.
    DisconnectReply,
    /// Any other attribute.
    Other(u16),
}

impl Kind {
    /// The message with that attribute ID.
    #[must_use]
    pub const fn from_attribute(id: u16) -> Self {
        match id {
            0x10 => Self::ConnectRequest,
            0x11 => Self::MessageReceiptAcknowledgement,
            0x12 => Self::ConnectReject,
            0x13 => Self::ConnectReply,
            0x14 => Self::ReadyToUse,
            0x15 => Self::DisconnectRequest,
            0x16 => Self::DisconnectReply,
            other => Self::Other(other),
        }
    }

    /// The message's attribute ID.
    #[must_use]
    pub const fn attribute(self) -> u16 {
        match self {
            Self::ConnectRequest => 0x10,
            Self::MessageReceiptAcknowledgement => 0x11,
            Self::ConnectReject => 0x12,
            Self::ConnectReply => 0x13,
            Self::ReadyToUse => 0x14,
            Self::DisconnectRequest => 0x15,
            Self::DisconnectReply => 0x16,
            Self::Other(id) => id,
        }
    }

    /// The message's name as the standard writes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ConnectRequest => "ConnectRequest",
            Self::MessageReceiptAcknowledgement => "MsgRcptAck",
            Self::ConnectReject => "ConnectReject",
            Self::ConnectReply => "ConnectReply",
            Self::ReadyToUse => "ReadyToUse",
            Self::DisconnectRequest => "DisconnectRequest",
            Self::DisconnectReply => "DisconnectReply",
            Self::Other(_) => "other CM message",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other(id) => write!(f, "CM attribute {id:#06x}"),
            known => f.write_str(known.name()),
        }
    }
}

/// Transport service of the connection (section 12.6.7, two bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Transport {
    /// Reliable connection.
    #[default]
    Rc,
    /// Unreliable connection.
    Uc,
    /// Reliable datagram.
    Rd,
    /// Named by the extended transport type (1 is XRC).
    Extended,
}

impl Transport {
    const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::Rc,
            1 => Self::Uc,
            2 => Self::Rd,
            _ => Self::Extended,
        }
    }
}

/// Path MTU as its four-bit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathMtu {
    /// 256 octets, code 1.
    Mtu256,
    /// 512 octets, code 2.
    Mtu512,
    /// 1024 octets, code 3.
    Mtu1024,
    /// 2048 octets, code 4.
    Mtu2048,
    /// 4096 octets, code 5.
    Mtu4096,
    /// A code without a meaning (0, 6 to 15).
    Unknown(u8),
}

impl PathMtu {
    /// The MTU of a code.
    #[must_use]
    pub const fn from_code(code: u8) -> Self {
        match code {
            1 => Self::Mtu256,
            2 => Self::Mtu512,
            3 => Self::Mtu1024,
            4 => Self::Mtu2048,
            5 => Self::Mtu4096,
            other => Self::Unknown(other),
        }
    }

    /// The code on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Mtu256 => 1,
            Self::Mtu512 => 2,
            Self::Mtu1024 => 3,
            Self::Mtu2048 => 4,
            Self::Mtu4096 => 5,
            Self::Unknown(code) => code,
        }
    }

    /// Octets of payload a packet may have.
    #[must_use]
    pub const fn octets(self) -> Option<u16> {
        match self {
            Self::Mtu256 => Some(256),
            Self::Mtu512 => Some(512),
            Self::Mtu1024 => Some(1024),
            Self::Mtu2048 => Some(2048),
            Self::Mtu4096 => Some(4096),
            Self::Unknown(_) => None,
        }
    }
}

/// Service ID; those of the RDMA IP CM service hold an IP protocol and port (Annex A11.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct ServiceId(pub u64);

impl ServiceId {
    const IP_PREFIX: u64 = 0x00_0000_0001;

    /// The service ID of the RDMA IP CM service for `protocol` (6 TCP, 17 UDP) and destination `port`.
    #[must_use]
    pub const fn ip(protocol: u8, port: u16) -> Self {
        Self(Self::IP_PREFIX << 24 | (protocol as u64) << 16 | port as u64)
    }

    /// Protocol and destination port, where it is one of the RDMA IP CM service.
    #[must_use]
    pub const fn ip_protocol_port(self) -> Option<(u8, u16)> {
        if self.0 >> 24 == Self::IP_PREFIX {
            Some(((self.0 >> 16) as u8, self.0 as u16))
        } else {
            None
        }
    }

    /// Destination port, where it is one of the RDMA IP CM service.
    #[must_use]
    pub const fn port(self) -> Option<u16> {
        match self.ip_protocol_port() {
            Some((_, port)) => Some(port),
            None => None,
        }
    }
}

impl fmt::Display for ServiceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ip_protocol_port() {
            Some((protocol, port)) => write!(f, "RDMA IP CM protocol {protocol} port {port}"),
            None => write!(f, "{:#018x}", self.0),
        }
    }
}

/// The IP address that a RoCEv2 GID stands for: IPv4 where it is ::ffff:a.b.c.d (Annex A17.4.1).
#[must_use]
pub fn gid_to_ip(gid: Ipv6Addr) -> IpAddr {
    match gid.to_ipv4_mapped() {
        Some(v4) => IpAddr::V4(v4),
        None => IpAddr::V6(gid),
    }
}

/// The RoCEv2 GID of an IP address.
#[must_use]
pub fn gid_from_ip(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}

/// Offsets in the data behind the MAD header, as the standard's tables count them.
pub(crate) mod field {
    pub(super) const LOCAL_COMM_ID: usize = 0;
    pub(super) const REMOTE_COMM_ID: usize = 4;

    pub(crate) mod req {
        pub(crate) const RESERVED_4: usize = 4;
        pub(crate) const VENDOR_ID: usize = 5;
        pub(crate) const SERVICE_ID: usize = 8;
        pub(crate) const LOCAL_CA_GUID: usize = 16;
        pub(crate) const RESERVED_24: usize = 24;
        pub(crate) const LOCAL_Q_KEY: usize = 28;
        pub(crate) const LOCAL_QPN: usize = 32;
        pub(crate) const RESPONDER_RESOURCES: usize = 35;
        pub(crate) const LOCAL_EECN: usize = 36;
        pub(crate) const INITIATOR_DEPTH: usize = 39;
        pub(crate) const REMOTE_EECN: usize = 40;
        /// Remote CM response timeout (5), transport service type (2), end-to-end flow control (1).
        pub(crate) const REMOTE_TIMEOUT: usize = 43;
        pub(crate) const STARTING_PSN: usize = 44;
        /// Local CM response timeout (5), retry count (3).
        pub(crate) const LOCAL_TIMEOUT: usize = 47;
        pub(crate) const PARTITION_KEY: usize = 48;
        /// Path packet payload MTU (4), RDC exists (1), RNR retry count (3).
        pub(crate) const MTU: usize = 50;
        /// Max CM retries (4), SRQ (1), extended transport type (3).
        pub(crate) const RETRIES: usize = 51;
        pub(crate) const PRIMARY: usize = 52;
        pub(crate) const ALTERNATE: usize = PRIMARY + super::path::LEN;
        pub(crate) const PRIVATE: usize = ALTERNATE + super::path::LEN;
    }

    /// From the start of a path of a ConnectRequest.
    pub(crate) mod path {
        pub(crate) const LOCAL_LID: usize = 0;
        pub(crate) const REMOTE_LID: usize = 2;
        pub(crate) const LOCAL_GID: usize = 4;
        pub(crate) const REMOTE_GID: usize = 20;
        /// Flow label (20), reserved (6), packet rate (6).
        pub(crate) const FLOW_LABEL: usize = 36;
        pub(crate) const TRAFFIC_CLASS: usize = 40;
        pub(crate) const HOP_LIMIT: usize = 41;
        /// SL (4), subnet local (1), reserved (3).
        pub(crate) const SL: usize = 42;
        /// Local ACK timeout (5), reserved (3).
        pub(crate) const ACK_TIMEOUT: usize = 43;
        pub(crate) const LEN: usize = 44;
    }

    pub(crate) mod rep {
        pub(crate) const LOCAL_Q_KEY: usize = 8;
        pub(crate) const LOCAL_QPN: usize = 12;
        pub(crate) const VENDOR_ID_HIGH: usize = 15;
        pub(crate) const LOCAL_EECN: usize = 16;
        pub(crate) const VENDOR_ID_MIDDLE: usize = 19;
        pub(crate) const STARTING_PSN: usize = 20;
        pub(crate) const VENDOR_ID_LOW: usize = 23;
        pub(crate) const RESPONDER_RESOURCES: usize = 24;
        pub(crate) const INITIATOR_DEPTH: usize = 25;
        /// Target ACK delay (5), failover accepted (2), end-to-end flow control (1).
        pub(crate) const ACK_DELAY: usize = 26;
        /// RNR retry count (3), SRQ (1), reserved (4).
        pub(crate) const RNR_RETRY: usize = 27;
        pub(crate) const LOCAL_CA_GUID: usize = 28;
        pub(crate) const PRIVATE: usize = 36;
    }

    pub(crate) mod dreq {
        pub(crate) const REMOTE_QPN: usize = 8;
        pub(crate) const RESERVED_11: usize = 11;
        pub(crate) const PRIVATE: usize = 12;
    }

    pub(crate) mod rej {
        /// Message rejected (2), reserved (6).
        pub(crate) const MESSAGE: usize = 8;
        /// Length of the additional information (7), reserved (1).
        pub(crate) const INFORMATION_LEN: usize = 9;
        pub(crate) const REASON: usize = 10;
        pub(crate) const INFORMATION: usize = 12;
        pub(crate) const PRIVATE: usize = 84;
    }

    /// Private data of RTU and DREP, which have only the two IDs before it.
    pub(super) const IDS_PRIVATE: usize = 8;

    /// From the start of the private data (Annex A11.2.2).
    pub(crate) mod ip_cm {
        /// Major version (4), minor version (4).
        pub(crate) const VERSION: usize = 0;
        /// IP version (4), reserved (4).
        pub(crate) const IP_VERSION: usize = 1;
        pub(crate) const SOURCE_PORT: usize = 2;
        pub(crate) const SOURCE: usize = 4;
        pub(crate) const DESTINATION: usize = 20;
        pub(crate) const LEN: usize = 36;
        /// An IPv4 address is in the last four of sixteen octets.
        pub(crate) const IPV4_IN_ADDRESS: usize = 12;
    }
}

/// Octets of private data in a ConnectRequest.
pub const REQ_PRIVATE_LEN: usize = MAD_DATA_LEN - field::req::PRIVATE;
/// Octets of private data in a ConnectReply.
pub const REP_PRIVATE_LEN: usize = MAD_DATA_LEN - field::rep::PRIVATE;
/// Octets of private data in a ConnectReject.
pub const REJ_PRIVATE_LEN: usize = MAD_DATA_LEN - field::rej::PRIVATE;
/// Octets of additional information in a ConnectReject.
pub const REJ_INFORMATION_LEN: usize = field::rej::PRIVATE - field::rej::INFORMATION;
/// Octets of private data in a ReadyToUse or DisconnectReply.
pub const IDS_PRIVATE_LEN: usize = MAD_DATA_LEN - field::IDS_PRIVATE;
/// Octets of private data in a DisconnectRequest.
pub const DREQ_PRIVATE_LEN: usize = MAD_DATA_LEN - field::dreq::PRIVATE;
/// Octets of the RDMA IP CM header at the beginning of a ConnectRequest's private data.
pub const IP_CM_LEN: usize = field::ip_cm::LEN;

/// The consumer's private data of a message: always as long as the message has room for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PrivateData<const N: usize>([u8; N]);

impl<const N: usize> PrivateData<N> {
    /// `data`, filled up with zeros; `None` where it is longer than the message has room for.
    #[must_use]
    pub fn new(data: &[u8]) -> Option<Self> {
        let mut octets = [0; N];
        octets.get_mut(..data.len())?.copy_from_slice(data);
        Some(Self(octets))
    }
}

impl<const N: usize> Default for PrivateData<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> From<[u8; N]> for PrivateData<N> {
    fn from(octets: [u8; N]) -> Self {
        Self(octets)
    }
}

impl<const N: usize> Deref for PrivateData<N> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl<const N: usize> fmt::Debug for PrivateData<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for octet in self.iter() {
            write!(f, "{octet:02x}")?;
        }
        Ok(())
    }
}

/// One communication management message, of whichever kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cm<'a> {
    /// REQ.
    ConnectRequest(ConnectRequest<'a>),
    /// REP.
    ConnectReply(ConnectReply<'a>),
    /// REJ.
    ConnectReject(ConnectReject<'a>),
    /// RTU.
    ReadyToUse(ReadyToUse<'a>),
    /// DREQ.
    DisconnectRequest(DisconnectRequest<'a>),
    /// DREP.
    DisconnectReply(DisconnectReply<'a>),
    /// A MAD of the class that this module does not read.
    Other(Mad<'a>),
}

impl<'a> Cm<'a> {
    /// Views a whole MAD of 256 octets, from its header on.
    ///
    /// # Errors
    /// The MAD is not whole, or not one of communication management as this module knows it.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self> {
        if bytes.len() < MAD_LEN {
            return Err(Error::short(Layer::Mad, MAD_LEN, bytes.len()));
        }
        Self::new_lax(bytes)
    }

    /// As [`new_checked`](Self::new_checked), for a capture that may have cut the MAD short: its private data may be incomplete, every
    /// other field must be there.
    ///
    /// # Errors
    /// The MAD ends before the message's private data, or is not one of communication management.
    pub fn new_lax(bytes: &'a [u8]) -> Result<Self> {
        let mad = Mad::new_checked(bytes)?;
        for (offset, name, value, expected, text) in [
            (0, "Base Version", mad.base_version(), BASE_VERSION, "1"),
            (
                1,
                "Management Class",
                mad.class(),
                class::COMMUNICATION,
                "7 (communication management)",
            ),
            (
                2,
                "Class Version",
                mad.class_version(),
                CM_CLASS_VERSION,
                "2",
            ),
        ] {
            if value != expected {
                return Err(Error::value(
                    Layer::RdmaCm,
                    offset,
                    name,
                    value.into(),
                    text,
                ));
            }
        }
        if mad.method() != method::SEND {
            return Ok(Self::Other(mad));
        }
        let fixed = |len: usize| {
            if mad.data().len() < len {
                return Err(Error::short(
                    Layer::RdmaCm,
                    MAD_HEADER_LEN + len,
                    mad.as_bytes().len(),
                ));
            }
            Ok(mad)
        };
        Ok(match Kind::from_attribute(mad.attribute_id()) {
            Kind::ConnectRequest => Self::ConnectRequest(ConnectRequest {
                mad: fixed(field::req::PRIVATE)?,
            }),
            Kind::ConnectReply => Self::ConnectReply(ConnectReply {
                mad: fixed(field::rep::PRIVATE)?,
            }),
            Kind::ConnectReject => Self::ConnectReject(ConnectReject {
                mad: fixed(field::rej::PRIVATE)?,
            }),
            Kind::ReadyToUse => Self::ReadyToUse(ReadyToUse {
                mad: fixed(field::IDS_PRIVATE)?,
            }),
            Kind::DisconnectRequest => Self::DisconnectRequest(DisconnectRequest {
                mad: fixed(field::dreq::PRIVATE)?,
            }),
            Kind::DisconnectReply => Self::DisconnectReply(DisconnectReply {
                mad: fixed(field::IDS_PRIVATE)?,
            }),
            Kind::MessageReceiptAcknowledgement | Kind::Other(_) => Self::Other(mad),
        })
    }

    /// The MAD it is in.
    #[must_use]
    pub const fn mad(&self) -> Mad<'a> {
        match self {
            Self::ConnectRequest(view) => view.mad,
            Self::ConnectReply(view) => view.mad,
            Self::ConnectReject(view) => view.mad,
            Self::ReadyToUse(view) => view.mad,
            Self::DisconnectRequest(view) => view.mad,
            Self::DisconnectReply(view) => view.mad,
            Self::Other(mad) => *mad,
        }
    }

    /// Which message it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        Kind::from_attribute(self.mad().attribute_id())
    }

    /// The sender's communication ID; `None` for messages that this module does not read.
    #[must_use]
    pub fn local_comm_id(&self) -> Option<u32> {
        match self {
            Self::Other(_) => None,
            _ => Some(u32_at(self.mad().data(), field::LOCAL_COMM_ID)),
        }
    }

    /// The receiver's communication ID; a ConnectRequest does not know it yet.
    #[must_use]
    pub fn remote_comm_id(&self) -> Option<u32> {
        match self {
            Self::ConnectRequest(_) | Self::Other(_) => None,
            _ => Some(u32_at(self.mad().data(), field::REMOTE_COMM_ID)),
        }
    }

    /// The sender's QP number, which a ConnectRequest and a ConnectReply give.
    #[must_use]
    pub fn local_qpn(&self) -> Option<u32> {
        match self {
            Self::ConnectRequest(view) => Some(view.local_qpn()),
            Self::ConnectReply(view) => Some(view.local_qpn()),
            _ => None,
        }
    }
}

macro_rules! view {
    ($(#[$doc:meta])* $name:ident, private $private:expr) => {
        $(#[$doc])*
        ///
        /// Made by [`Cm`], which has checked that every field before the private data is there.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name<'a> {
            mad: Mad<'a>,
        }

        impl<'a> $name<'a> {
            /// The MAD it is in.
            #[must_use]
            pub const fn mad(&self) -> Mad<'a> {
                self.mad
            }

            /// The sender's communication ID.
            #[must_use]
            pub fn local_comm_id(&self) -> u32 {
                u32_at(self.mad.data(), field::LOCAL_COMM_ID)
            }

            /// The consumer's private data, as much of it as was captured.
            #[must_use]
            pub fn private_data(&self) -> &'a [u8] {
                self.mad.data().get($private..).unwrap_or_default()
            }
        }
    };
}

macro_rules! view_remote_id {
    ($name:ident) => {
        impl $name<'_> {
            /// The receiver's communication ID.
            #[must_use]
            pub fn remote_comm_id(&self) -> u32 {
                u32_at(self.mad.data(), field::REMOTE_COMM_ID)
            }
        }
    };
}

view!(
    /// View of a ConnectRequest (section 12.6.5).
    ConnectRequest, private field::req::PRIVATE
);
view!(
    /// View of a ConnectReply (section 12.6.8).
    ConnectReply, private field::rep::PRIVATE
);
view!(
    /// View of a ConnectReject (section 12.6.7): of a request, of a reply, or of either in good time.
    ConnectReject, private field::rej::PRIVATE
);
view!(
    /// View of a ReadyToUse (section 12.6.9).
    ReadyToUse, private field::IDS_PRIVATE
);
view!(
    /// View of a DisconnectRequest (section 12.6.10).
    DisconnectRequest, private field::dreq::PRIVATE
);
view!(
    /// View of a DisconnectReply (section 12.6.11).
    DisconnectReply, private field::IDS_PRIVATE
);
view_remote_id!(ConnectReply);
view_remote_id!(ConnectReject);
view_remote_id!(ReadyToUse);
view_remote_id!(DisconnectRequest);
view_remote_id!(DisconnectReply);

impl ConnectRequest<'_> {
    fn u8(&self, at: usize) -> u8 {
        u8_at(self.mad.data(), at)
    }

    /// The sender's vendor ID (OUI, 24 bits), 0 where it does not say.
    #[must_use]
    pub fn vendor_id(&self) -> u32 {
        u24_at(self.mad.data(), field::req::VENDOR_ID)
    }

    /// Service ID.
    #[must_use]
    pub fn service_id(&self) -> ServiceId {
        ServiceId(u64_at(self.mad.data(), field::req::SERVICE_ID))
    }

    /// GUID of the sender's channel adapter.
    #[must_use]
    pub fn local_ca_guid(&self) -> u64 {
        u64_at(self.mad.data(), field::req::LOCAL_CA_GUID)
    }

    /// Q_Key, for reliable datagram.
    #[must_use]
    pub fn local_q_key(&self) -> u32 {
        u32_at(self.mad.data(), field::req::LOCAL_Q_KEY)
    }

    /// The sender's QP number (24 bits): what packets *to* the sender carry as DestQP.
    #[must_use]
    pub fn local_qpn(&self) -> u32 {
        u24_at(self.mad.data(), field::req::LOCAL_QPN)
    }

    /// RDMA reads and atomics the sender takes at once.
    #[must_use]
    pub fn responder_resources(&self) -> u8 {
        self.u8(field::req::RESPONDER_RESOURCES)
    }

    /// The sender's end-to-end context number (24 bits), for reliable datagram.
    #[must_use]
    pub fn local_eecn(&self) -> u32 {
        u24_at(self.mad.data(), field::req::LOCAL_EECN)
    }

    /// RDMA reads and atomics the sender will have open at once.
    #[must_use]
    pub fn initiator_depth(&self) -> u8 {
        self.u8(field::req::INITIATOR_DEPTH)
    }

    /// The receiver's end-to-end context number (24 bits), for reliable datagram.
    #[must_use]
    pub fn remote_eecn(&self) -> u32 {
        u24_at(self.mad.data(), field::req::REMOTE_EECN)
    }

    /// How long the receiver may take to answer: 4.096 µs · 2ⁿ, n of 5 bits.
    #[must_use]
    pub fn remote_cm_response_timeout(&self) -> u8 {
        self.u8(field::req::REMOTE_TIMEOUT) >> 3
    }

    /// Transport service.
    #[must_use]
    pub fn transport(&self) -> Transport {
        Transport::from_bits(self.u8(field::req::REMOTE_TIMEOUT) >> 1)
    }

    /// Whether the sender's receive queue does end-to-end flow control.
    #[must_use]
    pub fn end_to_end_flow_control(&self) -> bool {
        self.u8(field::req::REMOTE_TIMEOUT) & 1 != 0
    }

    /// The PSN (24 bits) that the *receiver's* send queue is to start with.
    #[must_use]
    pub fn starting_psn(&self) -> u32 {
        u24_at(self.mad.data(), field::req::STARTING_PSN)
    }

    /// How long the sender may take to answer: 4.096 µs · 2ⁿ, n of 5 bits.
    #[must_use]
    pub fn local_cm_response_timeout(&self) -> u8 {
        self.u8(field::req::LOCAL_TIMEOUT) >> 3
    }

    /// Retries of a lost packet (3 bits).
    #[must_use]
    pub fn retry_count(&self) -> u8 {
        self.u8(field::req::LOCAL_TIMEOUT) & 7
    }

    /// P_Key of the connection.
    #[must_use]
    pub fn partition_key(&self) -> u16 {
        u16_at(self.mad.data(), field::req::PARTITION_KEY)
    }

    /// Path MTU.
    #[must_use]
    pub fn path_mtu(&self) -> PathMtu {
        PathMtu::from_code(self.u8(field::req::MTU) >> 4)
    }

    /// Whether a reliable datagram channel to the receiver exists already.
    #[must_use]
    pub fn rdc_exists(&self) -> bool {
        self.u8(field::req::MTU) & 8 != 0
    }

    /// Retries after receiver not ready (3 bits); 7 is for ever.
    #[must_use]
    pub fn rnr_retry_count(&self) -> u8 {
        self.u8(field::req::MTU) & 7
    }

    /// How often a CM message is sent again (4 bits).
    #[must_use]
    pub fn max_cm_retries(&self) -> u8 {
        self.u8(field::req::RETRIES) >> 4
    }

    /// Whether the sender's QP uses a shared receive queue.
    #[must_use]
    pub fn srq(&self) -> bool {
        self.u8(field::req::RETRIES) & 8 != 0
    }

    /// Extended transport type (3 bits); 1 is XRC.
    #[must_use]
    pub fn extended_transport(&self) -> u8 {
        self.u8(field::req::RETRIES) & 7
    }

    /// The path to use.
    #[must_use]
    pub fn primary(&self) -> Path {
        self.path(field::req::PRIMARY)
    }

    /// The path to change to when the primary one fails.
    #[must_use]
    pub fn alternate(&self) -> Path {
        self.path(field::req::ALTERNATE)
    }

    fn path(&self, at: usize) -> Path {
        let bytes = self.mad.data().get(at..).unwrap_or_default();
        let flow = u32_at(bytes, field::path::FLOW_LABEL);
        let sl = u8_at(bytes, field::path::SL);
        Path {
            local_lid: u16_at(bytes, field::path::LOCAL_LID),
            remote_lid: u16_at(bytes, field::path::REMOTE_LID),
            local_gid: ipv6_at(bytes, field::path::LOCAL_GID),
            remote_gid: ipv6_at(bytes, field::path::REMOTE_GID),
            flow_label: flow >> 12,
            packet_rate: (flow & 0x3F) as u8,
            traffic_class: u8_at(bytes, field::path::TRAFFIC_CLASS),
            hop_limit: u8_at(bytes, field::path::HOP_LIMIT),
            sl: sl >> 4,
            subnet_local: sl & 8 != 0,
            local_ack_timeout: u8_at(bytes, field::path::ACK_TIMEOUT) >> 3,
        }
    }

    /// The RDMA IP CM header in the private data, where the service ID says that there is one.
    ///
    /// # Errors
    /// The capture has cut it, or its IP version is neither 4 nor 6. Offsets count from the MAD's start.
    pub fn ip_cm(&self) -> Option<Result<IpCm>> {
        self.service_id().ip_protocol_port()?;
        let at = MAD_HEADER_LEN + field::req::PRIVATE;
        Some(IpCm::parse(self.private_data()).map_err(|e| e.at(at)))
    }
}

impl ConnectReply<'_> {
    fn u8(&self, at: usize) -> u8 {
        u8_at(self.mad.data(), at)
    }

    /// The sender's vendor ID (OUI, 24 bits, in three octets that older editions reserve), 0 where it does not say.
    #[must_use]
    pub fn vendor_id(&self) -> u32 {
        u32::from_be_bytes([
            0,
            self.u8(field::rep::VENDOR_ID_HIGH),
            self.u8(field::rep::VENDOR_ID_MIDDLE),
            self.u8(field::rep::VENDOR_ID_LOW),
        ])
    }

    /// Q_Key, for reliable datagram.
    #[must_use]
    pub fn local_q_key(&self) -> u32 {
        u32_at(self.mad.data(), field::rep::LOCAL_Q_KEY)
    }

    /// The sender's QP number (24 bits): what packets *to* the sender carry as DestQP.
    #[must_use]
    pub fn local_qpn(&self) -> u32 {
        u24_at(self.mad.data(), field::rep::LOCAL_QPN)
    }

    /// The sender's end-to-end context number (24 bits), for reliable datagram; with XRC Linux gives its QP number here.
    #[must_use]
    pub fn local_eecn(&self) -> u32 {
        u24_at(self.mad.data(), field::rep::LOCAL_EECN)
    }

    /// The PSN (24 bits) that the *receiver's* send queue is to start with.
    #[must_use]
    pub fn starting_psn(&self) -> u32 {
        u24_at(self.mad.data(), field::rep::STARTING_PSN)
    }

    /// RDMA reads and atomics the sender takes at once.
    #[must_use]
    pub fn responder_resources(&self) -> u8 {
        self.u8(field::rep::RESPONDER_RESOURCES)
    }

    /// RDMA reads and atomics the sender will have open at once.
    #[must_use]
    pub fn initiator_depth(&self) -> u8 {
        self.u8(field::rep::INITIATOR_DEPTH)
    }

    /// How long the sender may take to acknowledge: 4.096 µs · 2ⁿ, n of 5 bits.
    #[must_use]
    pub fn target_ack_delay(&self) -> u8 {
        self.u8(field::rep::ACK_DELAY) >> 3
    }

    /// What became of the alternate path (2 bits): 0 accepted, 1 not supported, 2 refused.
    #[must_use]
    pub fn failover_accepted(&self) -> u8 {
        self.u8(field::rep::ACK_DELAY) >> 1 & 3
    }

    /// Whether the sender's receive queue does end-to-end flow control.
    #[must_use]
    pub fn end_to_end_flow_control(&self) -> bool {
        self.u8(field::rep::ACK_DELAY) & 1 != 0
    }

    /// Retries after receiver not ready (3 bits); 7 is for ever.
    #[must_use]
    pub fn rnr_retry_count(&self) -> u8 {
        self.u8(field::rep::RNR_RETRY) >> 5
    }

    /// Whether the sender's QP uses a shared receive queue.
    #[must_use]
    pub fn srq(&self) -> bool {
        self.u8(field::rep::RNR_RETRY) & 0x10 != 0
    }

    /// GUID of the sender's channel adapter.
    #[must_use]
    pub fn local_ca_guid(&self) -> u64 {
        u64_at(self.mad.data(), field::rep::LOCAL_CA_GUID)
    }
}

impl ConnectReject<'_> {
    /// Which message is refused: 0 the ConnectRequest, 1 the ConnectReply, 2 none of them.
    #[must_use]
    pub fn message_rejected(&self) -> u8 {
        u8_at(self.mad.data(), field::rej::MESSAGE) >> 6
    }

    /// Why, by the numbers of section 12.6.7.2: 4 is a timeout, 28 the consumer's own reason.
    #[must_use]
    pub fn reason(&self) -> u16 {
        u16_at(self.mad.data(), field::rej::REASON)
    }
}

impl DisconnectRequest<'_> {
    /// The *receiver's* QP number or end-to-end context number (24 bits).
    #[must_use]
    pub fn remote_qpn(&self) -> u32 {
        u24_at(self.mad.data(), field::dreq::REMOTE_QPN)
    }
}

/// A path of a ConnectRequest (section 12.6.5). On RoCEv2 the LIDs mean nothing and the GIDs are IP addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Path {
    /// LID of the sender's port.
    pub local_lid: u16,
    /// LID of the receiver's port.
    pub remote_lid: u16,
    /// GID of the sender's port.
    pub local_gid: Ipv6Addr,
    /// GID of the receiver's port.
    pub remote_gid: Ipv6Addr,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Packet rate as its code, 6 bits.
    pub packet_rate: u8,
    /// Traffic class.
    pub traffic_class: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Service level, 4 bits.
    pub sl: u8,
    /// Whether both ports are on one subnet.
    pub subnet_local: bool,
    /// Local ACK timeout: 4.096 µs · 2ⁿ, n of 5 bits.
    pub local_ack_timeout: u8,
}

impl Path {
    /// All zeros: how a ConnectRequest says that there is no alternate path.
    pub const NONE: Self = Self {
        local_lid: 0,
        remote_lid: 0,
        local_gid: Ipv6Addr::UNSPECIFIED,
        remote_gid: Ipv6Addr::UNSPECIFIED,
        flow_label: 0,
        packet_rate: 0,
        traffic_class: 0,
        hop_limit: 0,
        sl: 0,
        subnet_local: false,
        local_ack_timeout: 0,
    };

    /// A RoCEv2 path between two addresses, with the permissive LIDs and hop limit that Linux sends.
    #[must_use]
    pub fn roce(local: IpAddr, remote: IpAddr) -> Self {
        Self {
            local_lid: 0xFFFF,
            remote_lid: 0xFFFF,
            local_gid: gid_from_ip(local),
            remote_gid: gid_from_ip(remote),
            hop_limit: 64,
            ..Self::NONE
        }
    }

    /// Whether it names a remote port at all.
    #[must_use]
    pub const fn is_present(&self) -> bool {
        self.remote_lid != 0 || !self.remote_gid.is_unspecified()
    }

    /// The sender's IP address on RoCEv2.
    #[must_use]
    pub fn local_ip(&self) -> IpAddr {
        gid_to_ip(self.local_gid)
    }

    /// The receiver's IP address on RoCEv2.
    #[must_use]
    pub fn remote_ip(&self) -> IpAddr {
        gid_to_ip(self.remote_gid)
    }

    fn emit(&self, out: &mut Out<'_>, at: usize) -> Result<()> {
        let flow = out.fits(
            at + field::path::FLOW_LABEL,
            "Flow Label",
            self.flow_label,
            20,
        )? << 12
            | out.fits(
                at + field::path::FLOW_LABEL + 3,
                "Packet Rate",
                self.packet_rate.into(),
                6,
            )?;
        out.put(at + field::path::LOCAL_LID, &self.local_lid.to_be_bytes());
        out.put(at + field::path::REMOTE_LID, &self.remote_lid.to_be_bytes());
        out.put(at + field::path::LOCAL_GID, &self.local_gid.octets());
        out.put(at + field::path::REMOTE_GID, &self.remote_gid.octets());
        out.put(at + field::path::FLOW_LABEL, &flow.to_be_bytes());
        out.put(
            at + field::path::TRAFFIC_CLASS,
            &[self.traffic_class, self.hop_limit],
        );
        out.bits(
            at + field::path::SL,
            &[
                ("SL", self.sl, 4),
                ("Subnet Local", self.subnet_local.into(), 1),
                ("reserved", 0, 3),
            ],
        )?;
        out.bits(
            at + field::path::ACK_TIMEOUT,
            &[
                ("Local ACK Timeout", self.local_ack_timeout, 5),
                ("reserved", 0, 3),
            ],
        )
    }
}

/// The RDMA IP CM header: which IP addresses and source port the consumer asked for (Annex A11.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IpCm {
    /// Major version, 4 bits: 0.
    pub major: u8,
    /// Minor version, 4 bits: 0.
    pub minor: u8,
    /// Source port.
    pub source_port: u16,
    /// Source address.
    pub source: IpAddr,
    /// Destination address, of the same family.
    pub destination: IpAddr,
}

impl IpCm {
    /// Reads the header from the beginning of a ConnectRequest's private data.
    ///
    /// # Errors
    /// It is not whole, or its IP version is neither 4 nor 6.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let Some(bytes) = bytes.get(..IP_CM_LEN) else {
            return Err(Error::short(Layer::RdmaCm, IP_CM_LEN, bytes.len()));
        };
        let address: fn(&[u8], usize) -> IpAddr = match u8_at(bytes, field::ip_cm::IP_VERSION) >> 4
        {
            4 => |bytes, at| ipv4_at(bytes, at + field::ip_cm::IPV4_IN_ADDRESS).into(),
            6 => |bytes, at| ipv6_at(bytes, at).into(),
            other => {
                return Err(Error::value(
                    Layer::RdmaCm,
                    field::ip_cm::IP_VERSION,
                    "IP version",
                    other.into(),
                    "4 or 6",
                ));
            }
        };
        let version = u8_at(bytes, field::ip_cm::VERSION);
        Ok(Self {
            major: version >> 4,
            minor: version & 15,
            source_port: u16_at(bytes, field::ip_cm::SOURCE_PORT),
            source: address(bytes, field::ip_cm::SOURCE),
            destination: address(bytes, field::ip_cm::DESTINATION),
        })
    }

    /// Writes the header to the beginning of `out` and returns its length of 36 octets.
    ///
    /// # Errors
    /// `out` is too small, a version exceeds 4 bits, or the addresses are of two families.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize> {
        let have = out.len();
        let Some(bytes) = out.get_mut(..IP_CM_LEN) else {
            return Err(Error::buffer(Layer::RdmaCm, IP_CM_LEN, have));
        };
        bytes.fill(0);
        let mut out = Out { data: bytes };
        let version = match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let within = field::ip_cm::IPV4_IN_ADDRESS;
                out.put(field::ip_cm::SOURCE + within, &source.octets());
                out.put(field::ip_cm::DESTINATION + within, &destination.octets());
                4
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                out.put(field::ip_cm::SOURCE, &source.octets());
                out.put(field::ip_cm::DESTINATION, &destination.octets());
                6
            }
            (source, _) => {
                return Err(Error::value(
                    Layer::RdmaCm,
                    field::ip_cm::DESTINATION,
                    "Destination IP's version",
                    if source.is_ipv4() { 6 } else { 4 },
                    "that of the source IP",
                ));
            }
        };
        out.bits(
            field::ip_cm::VERSION,
            &[
                ("Major Version", self.major, 4),
                ("Minor Version", self.minor, 4),
            ],
        )?;
        out.put(field::ip_cm::IP_VERSION, &[version << 4]);
        out.put(field::ip_cm::SOURCE_PORT, &self.source_port.to_be_bytes());
        Ok(IP_CM_LEN)
    }
}

/// Values of a ConnectRequest; the view's accessors say what each means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectRequestRepr {
    /// The sender's communication ID.
    pub local_comm_id: u32,
    /// Vendor ID, 24 bits.
    pub vendor_id: u32,
    /// Service ID.
    pub service_id: ServiceId,
    /// GUID of the sender's channel adapter.
    pub local_ca_guid: u64,
    /// Q_Key, for reliable datagram.
    pub local_q_key: u32,
    /// The sender's QP number, 24 bits.
    pub local_qpn: u32,
    /// RDMA reads and atomics the sender takes at once.
    pub responder_resources: u8,
    /// The sender's end-to-end context number, 24 bits.
    pub local_eecn: u32,
    /// RDMA reads and atomics the sender will have open at once.
    pub initiator_depth: u8,
    /// The receiver's end-to-end context number, 24 bits.
    pub remote_eecn: u32,
    /// 4.096 µs · 2ⁿ, n of 5 bits.
    pub remote_cm_response_timeout: u8,
    /// Transport service.
    pub transport: Transport,
    /// End-to-end flow control.
    pub end_to_end_flow_control: bool,
    /// Starting PSN, 24 bits.
    pub starting_psn: u32,
    /// 4.096 µs · 2ⁿ, n of 5 bits.
    pub local_cm_response_timeout: u8,
    /// Retries of a lost packet, 3 bits.
    pub retry_count: u8,
    /// P_Key.
    pub partition_key: u16,
    /// Path MTU.
    pub path_mtu: PathMtu,
    /// Whether a reliable datagram channel exists already.
    pub rdc_exists: bool,
    /// Retries after receiver not ready, 3 bits.
    pub rnr_retry_count: u8,
    /// Repetitions of a CM message, 4 bits.
    pub max_cm_retries: u8,
    /// Whether a shared receive queue is used.
    pub srq: bool,
    /// Extended transport type, 3 bits.
    pub extended_transport: u8,
    /// The path to use.
    pub primary: Path,
    /// The path to change to; [`Path::NONE`] for none.
    pub alternate: Path,
    /// Private data; begins with the RDMA IP CM header where the service ID is one of that service.
    pub private_data: PrivateData<REQ_PRIVATE_LEN>,
}

impl ConnectRequestRepr {
    /// A request for a reliable connection between RoCEv2 addresses, for the consumer listening on TCP `port`, with
    /// the time-outs, retries and default P_Key that Linux's RDMA CM sends.
    ///
    /// # Errors
    /// The addresses are of two families.
    pub fn roce(
        (source, source_port): (IpAddr, u16),
        (destination, port): (IpAddr, u16),
    ) -> Result<Self> {
        let mut private_data = PrivateData::default();
        IpCm {
            major: 0,
            minor: 0,
            source_port,
            source,
            destination,
        }
        .emit(&mut private_data.0)?;
        Ok(Self {
            local_comm_id: 0,
            vendor_id: 0,
            service_id: ServiceId::ip(6, port),
            local_ca_guid: 0,
            local_q_key: 0,
            local_qpn: 0,
            responder_resources: 1,
            local_eecn: 0,
            initiator_depth: 1,
            remote_eecn: 0,
            remote_cm_response_timeout: 20,
            transport: Transport::Rc,
            end_to_end_flow_control: false,
            starting_psn: 0,
            local_cm_response_timeout: 20,
            retry_count: 7,
            partition_key: 0xFFFF,
            path_mtu: PathMtu::Mtu1024,
            rdc_exists: false,
            rnr_retry_count: 7,
            max_cm_retries: 15,
            srq: false,
            extended_transport: 0,
            primary: Path::roce(source, destination),
            alternate: Path::NONE,
            private_data,
        })
    }

    fn emit(&self, out: &mut Out<'_>) -> Result<()> {
        use field::req;
        out.put(field::LOCAL_COMM_ID, &self.local_comm_id.to_be_bytes());
        out.put(req::RESERVED_4, &[0]);
        out.u24(req::VENDOR_ID, "Vendor ID", self.vendor_id)?;
        out.put(req::SERVICE_ID, &self.service_id.0.to_be_bytes());
        out.put(req::LOCAL_CA_GUID, &self.local_ca_guid.to_be_bytes());
        out.put(req::RESERVED_24, &[0; 4]);
        out.put(req::LOCAL_Q_KEY, &self.local_q_key.to_be_bytes());
        out.u24(req::LOCAL_QPN, "Local QPN", self.local_qpn)?;
        out.put(req::RESPONDER_RESOURCES, &[self.responder_resources]);
        out.u24(req::LOCAL_EECN, "Local EECN", self.local_eecn)?;
        out.put(req::INITIATOR_DEPTH, &[self.initiator_depth]);
        out.u24(req::REMOTE_EECN, "Remote EECN", self.remote_eecn)?;
        out.bits(
            req::REMOTE_TIMEOUT,
            &[
                (
                    "Remote CM Response Timeout",
                    self.remote_cm_response_timeout,
                    5,
                ),
                ("Transport Service Type", self.transport as u8, 2),
                (
                    "End-to-End Flow Control",
                    self.end_to_end_flow_control.into(),
                    1,
                ),
            ],
        )?;
        out.u24(req::STARTING_PSN, "Starting PSN", self.starting_psn)?;
        out.bits(
            req::LOCAL_TIMEOUT,
            &[
                (
                    "Local CM Response Timeout",
                    self.local_cm_response_timeout,
                    5,
                ),
                ("Retry Count", self.retry_count, 3),
            ],
        )?;
        out.put(req::PARTITION_KEY, &self.partition_key.to_be_bytes());
        out.bits(
            req::MTU,
            &[
                ("Path Packet Payload MTU", self.path_mtu.code(), 4),
                ("RDC Exists", self.rdc_exists.into(), 1),
                ("RNR Retry Count", self.rnr_retry_count, 3),
            ],
        )?;
        out.bits(
            req::RETRIES,
            &[
                ("Max CM Retries", self.max_cm_retries, 4),
                ("SRQ", self.srq.into(), 1),
                ("Extended Transport Type", self.extended_transport, 3),
            ],
        )?;
        self.primary.emit(out, req::PRIMARY)?;
        self.alternate.emit(out, req::ALTERNATE)?;
        out.put(req::PRIVATE, &self.private_data);
        Ok(())
    }
}

/// Values of a ConnectReply; the view's accessors say what each means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct ConnectReplyRepr {
    /// The sender's communication ID.
    pub local_comm_id: u32,
    /// The receiver's communication ID.
    pub remote_comm_id: u32,
    /// Vendor ID, 24 bits.
    pub vendor_id: u32,
    /// Q_Key, for reliable datagram.
    pub local_q_key: u32,
    /// The sender's QP number, 24 bits.
    pub local_qpn: u32,
    /// The sender's end-to-end context number, 24 bits.
    pub local_eecn: u32,
    /// Starting PSN, 24 bits.
    pub starting_psn: u32,
    /// RDMA reads and atomics the sender takes at once.
    pub responder_resources: u8,
    /// RDMA reads and atomics the sender will have open at once.
    pub initiator_depth: u8,
    /// 4.096 µs · 2ⁿ, n of 5 bits.
    pub target_ack_delay: u8,
    /// 0 accepted, 1 not supported, 2 refused; 2 bits.
    pub failover_accepted: u8,
    /// End-to-end flow control.
    pub end_to_end_flow_control: bool,
    /// Retries after receiver not ready, 3 bits.
    pub rnr_retry_count: u8,
    /// Whether a shared receive queue is used.
    pub srq: bool,
    /// GUID of the sender's channel adapter.
    pub local_ca_guid: u64,
    /// Private data.
    pub private_data: PrivateData<REP_PRIVATE_LEN>,
}

impl ConnectReplyRepr {
    fn emit(&self, out: &mut Out<'_>) -> Result<()> {
        use field::rep;
        out.put(field::LOCAL_COMM_ID, &self.local_comm_id.to_be_bytes());
        out.put(field::REMOTE_COMM_ID, &self.remote_comm_id.to_be_bytes());
        out.put(rep::LOCAL_Q_KEY, &self.local_q_key.to_be_bytes());
        out.u24(rep::LOCAL_QPN, "Local QPN", self.local_qpn)?;
        out.u24(rep::LOCAL_EECN, "Local EECN", self.local_eecn)?;
        out.u24(rep::STARTING_PSN, "Starting PSN", self.starting_psn)?;
        let vendor = out.fits(rep::VENDOR_ID_HIGH, "Vendor ID", self.vendor_id, 24)?;
        let [_, high, middle, low] = vendor.to_be_bytes();
        out.put(rep::VENDOR_ID_HIGH, &[high]);
        out.put(rep::VENDOR_ID_MIDDLE, &[middle]);
        out.put(rep::VENDOR_ID_LOW, &[low]);
        out.put(rep::RESPONDER_RESOURCES, &[self.responder_resources]);
        out.put(rep::INITIATOR_DEPTH, &[self.initiator_depth]);
        out.bits(
            rep::ACK_DELAY,
            &[
                ("Target ACK Delay", self.target_ack_delay, 5),
                ("Failover Accepted", self.failover_accepted, 2),
                (
                    "End-To-End Flow Control",
                    self.end_to_end_flow_control.into(),
                    1,
                ),
            ],
        )?;
        out.bits(
            rep::RNR_RETRY,
            &[
                ("RNR Retry Count", self.rnr_retry_count, 3),
                ("SRQ", self.srq.into(), 1),
                ("reserved", 0, 4),
            ],
        )?;
        out.put(rep::LOCAL_CA_GUID, &self.local_ca_guid.to_be_bytes());
        out.put(rep::PRIVATE, &self.private_data);
        Ok(())
    }
}

/// Values of a ConnectReject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct ConnectRejectRepr {
    /// The sender's communication ID; 0 where it refuses a request that it gave none.
    pub local_comm_id: u32,
    /// The receiver's communication ID; 0 where it is not known.
    pub remote_comm_id: u32,
    /// Which message is refused: 0 the ConnectRequest, 1 the ConnectReply, 2 none of them; two bits.
    pub message_rejected: u8,
    /// Why, by the numbers of section 12.6.7.2.
    pub reason: u16,
    /// Octets of `information` that count, seven bits.
    pub information_len: u8,
    /// Additional information, by the reason.
    pub information: PrivateData<REJ_INFORMATION_LEN>,
    /// Private data.
    pub private_data: PrivateData<REJ_PRIVATE_LEN>,
}

/// Values of a ReadyToUse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct ReadyToUseRepr {
    /// The sender's communication ID.
    pub local_comm_id: u32,
    /// The receiver's communication ID.
    pub remote_comm_id: u32,
    /// Private data.
    pub private_data: PrivateData<IDS_PRIVATE_LEN>,
}

/// Values of a DisconnectRequest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct DisconnectRequestRepr {
    /// The sender's communication ID.
    pub local_comm_id: u32,
    /// The receiver's communication ID.
    pub remote_comm_id: u32,
    /// The receiver's QP number or end-to-end context number, 24 bits.
    pub remote_qpn: u32,
    /// Private data.
    pub private_data: PrivateData<DREQ_PRIVATE_LEN>,
}

/// Values of a DisconnectReply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct DisconnectReplyRepr {
    /// The sender's communication ID.
    pub local_comm_id: u32,
    /// The receiver's communication ID.
    pub remote_comm_id: u32,
    /// Private data.
    pub private_data: PrivateData<IDS_PRIVATE_LEN>,
}

/// The values of one of the six messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(
    clippy::large_enum_variant,
    reason = "every variant is the content of one MAD; boxing would allocate"
)]
pub enum MessageRepr {
    /// REQ.
    ConnectRequest(ConnectRequestRepr),
    /// REP.
    ConnectReply(ConnectReplyRepr),
    /// REJ.
    ConnectReject(ConnectRejectRepr),
    /// RTU.
    ReadyToUse(ReadyToUseRepr),
    /// DREQ.
    DisconnectRequest(DisconnectRequestRepr),
    /// DREP.
    DisconnectReply(DisconnectReplyRepr),
}

impl MessageRepr {
    /// Which message it is.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::ConnectRequest(_) => Kind::ConnectRequest,
            Self::ConnectReply(_) => Kind::ConnectReply,
            Self::ConnectReject(_) => Kind::ConnectReject,
            Self::ReadyToUse(_) => Kind::ReadyToUse,
            Self::DisconnectRequest(_) => Kind::DisconnectRequest,
            Self::DisconnectReply(_) => Kind::DisconnectReply,
        }
    }
}

macro_rules! into_message {
    ($($name:ident($repr:ident)),+ $(,)?) => {$(
        impl From<$repr> for MessageRepr {
            fn from(message: $repr) -> Self {
                Self::$name(message)
            }
        }
    )+};
}

into_message!(
    ConnectRequest(ConnectRequestRepr),
    ConnectReply(ConnectReplyRepr),
    ConnectReject(ConnectRejectRepr),
    ReadyToUse(ReadyToUseRepr),
    DisconnectRequest(DisconnectRequestRepr),
    DisconnectReply(DisconnectReplyRepr),
);

/// A communication management MAD: what its header may vary in, and its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CmRepr {
    /// Transaction ID: the same in a request and its answers.
    pub transaction_id: u64,
    /// Attribute modifier: 0, unless vendors negotiate enhancements there.
    pub attribute_modifier: u32,
    /// The message.
    pub message: MessageRepr,
}

impl CmRepr {
    /// Octets that [`emit`](Self::emit) writes: the whole MAD, private data filled up with zeros.
    pub const LEN: usize = MAD_LEN;

    /// `message` in a transaction, with attribute modifier 0.
    #[must_use]
    pub fn new(transaction_id: u64, message: impl Into<MessageRepr>) -> Self {
        Self {
            transaction_id,
            attribute_modifier: 0,
            message: message.into(),
        }
    }

    /// Reads a whole MAD of 256 octets.
    ///
    /// # Errors
    /// As [`Cm::new_checked`], and where the message is none of the six.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let view = Cm::new_checked(bytes)?;
        let mad = view.mad();
        Ok(Self {
            transaction_id: mad.transaction_id(),
            attribute_modifier: mad.attribute_modifier(),
            message: match &view {
                Cm::ConnectRequest(view) => MessageRepr::ConnectRequest(ConnectRequestRepr {
                    local_comm_id: view.local_comm_id(),
                    vendor_id: view.vendor_id(),
                    service_id: view.service_id(),
                    local_ca_guid: view.local_ca_guid(),
                    local_q_key: view.local_q_key(),
                    local_qpn: view.local_qpn(),
                    responder_resources: view.responder_resources(),
                    local_eecn: view.local_eecn(),
                    initiator_depth: view.initiator_depth(),
                    remote_eecn: view.remote_eecn(),
                    remote_cm_response_timeout: view.remote_cm_response_timeout(),
                    transport: view.transport(),
                    end_to_end_flow_control: view.end_to_end_flow_control(),
                    starting_psn: view.starting_psn(),
                    local_cm_response_timeout: view.local_cm_response_timeout(),
                    retry_count: view.retry_count(),
                    partition_key: view.partition_key(),
                    path_mtu: view.path_mtu(),
                    rdc_exists: view.rdc_exists(),
                    rnr_retry_count: view.rnr_retry_count(),
                    max_cm_retries: view.max_cm_retries(),
                    srq: view.srq(),
                    extended_transport: view.extended_transport(),
                    primary: view.primary(),
                    alternate: view.alternate(),
                    private_data: private(view.private_data()),
                }),
                Cm::ConnectReply(view) => MessageRepr::ConnectReply(ConnectReplyRepr {
                    local_comm_id: view.local_comm_id(),
                    remote_comm_id: view.remote_comm_id(),
                    vendor_id: view.vendor_id(),
                    local_q_key: view.local_q_key(),
                    local_qpn: view.local_qpn(),
                    local_eecn: view.local_eecn(),
                    starting_psn: view.starting_psn(),
                    responder_resources: view.responder_resources(),
                    initiator_depth: view.initiator_depth(),
                    target_ack_delay: view.target_ack_delay(),
                    failover_accepted: view.failover_accepted(),
                    end_to_end_flow_control: view.end_to_end_flow_control(),
                    rnr_retry_count: view.rnr_retry_count(),
                    srq: view.srq(),
                    local_ca_guid: view.local_ca_guid(),
                    private_data: private(view.private_data()),
                }),
                Cm::ConnectReject(view) => MessageRepr::ConnectReject(ConnectRejectRepr {
                    local_comm_id: view.local_comm_id(),
                    remote_comm_id: view.remote_comm_id(),
                    message_rejected: view.message_rejected(),
                    reason: view.reason(),
                    information_len: u8_at(mad.data(), field::rej::INFORMATION_LEN) >> 1,
                    information: private(
                        (mad.data().get(field::rej::INFORMATION..field::rej::PRIVATE))
                            .unwrap_or_default(),
                    ),
                    private_data: private(view.private_data()),
                }),
                Cm::ReadyToUse(view) => MessageRepr::ReadyToUse(ReadyToUseRepr {
                    local_comm_id: view.local_comm_id(),
                    remote_comm_id: view.remote_comm_id(),
                    private_data: private(view.private_data()),
                }),
                Cm::DisconnectRequest(view) => {
                    MessageRepr::DisconnectRequest(DisconnectRequestRepr {
                        local_comm_id: view.local_comm_id(),
                        remote_comm_id: view.remote_comm_id(),
                        remote_qpn: view.remote_qpn(),
                        private_data: private(view.private_data()),
                    })
                }
                Cm::DisconnectReply(view) => MessageRepr::DisconnectReply(DisconnectReplyRepr {
                    local_comm_id: view.local_comm_id(),
                    remote_comm_id: view.remote_comm_id(),
                    private_data: private(view.private_data()),
                }),
                Cm::Other(mad) => {
                    return Err(if mad.method() == method::SEND {
                        Error::value(
                            Layer::RdmaCm,
                            16,
                            "Attribute ID",
                            mad.attribute_id().into(),
                            "0x10 or 0x12 to 0x16",
                        )
                    } else {
                        Error::value(Layer::RdmaCm, 3, "Method", mad.method().into(), "3 (Send)")
                    });
                }
            },
        })
    }

    /// Writes the whole MAD to the beginning of `out` and returns its 256 octets. It is the payload of a UD SEND-ONLY
    /// to [`GSI_QP`](crate::mad::GSI_QP) with [`GSI_Q_KEY`](crate::mad::GSI_Q_KEY).
    ///
    /// # Errors
    /// `out` is too small, or a value exceeds its field (then `out` may be partly written).
    pub fn emit(&self, out: &mut [u8]) -> Result<usize> {
        let have = out.len();
        let Some(out) = out.get_mut(..MAD_LEN) else {
            return Err(Error::buffer(Layer::Mad, MAD_LEN, have));
        };
        MadRepr {
            base_version: BASE_VERSION,
            class: class::COMMUNICATION,
            class_version: CM_CLASS_VERSION,
            method: method::SEND,
            status: 0,
            class_specific: 0,
            transaction_id: self.transaction_id,
            attribute_id: self.message.kind().attribute(),
            attribute_modifier: self.attribute_modifier,
        }
        .emit(out)?;
        let mut out = Out {
            data: out.get_mut(MAD_HEADER_LEN..).unwrap_or_default(),
        };
        let ids = |out: &mut Out<'_>, local: u32, remote: u32| {
            out.put(field::LOCAL_COMM_ID, &local.to_be_bytes());
            out.put(field::REMOTE_COMM_ID, &remote.to_be_bytes());
        };
        match &self.message {
            MessageRepr::ConnectRequest(m) => m.emit(&mut out),
            MessageRepr::ConnectReply(m) => m.emit(&mut out),
            MessageRepr::ConnectReject(m) => {
                ids(&mut out, m.local_comm_id, m.remote_comm_id);
                out.put(field::rej::REASON, &m.reason.to_be_bytes());
                out.put(field::rej::INFORMATION, &m.information);
                out.put(field::rej::PRIVATE, &m.private_data);
                let len = [
                    ("Reject Info Length", m.information_len, 7),
                    ("reserved", 0, 1),
                ];
                let refused = [
                    ("Message REJected", m.message_rejected, 2),
                    ("reserved", 0, 6),
                ];
                out.bits(field::rej::INFORMATION_LEN, &len)
                    .and_then(|()| out.bits(field::rej::MESSAGE, &refused))
            }
            MessageRepr::ReadyToUse(m) => {
                ids(&mut out, m.local_comm_id, m.remote_comm_id);
                out.put(field::IDS_PRIVATE, &m.private_data);
                Ok(())
            }
            MessageRepr::DisconnectRequest(m) => {
                ids(&mut out, m.local_comm_id, m.remote_comm_id);
                out.put(field::dreq::RESERVED_11, &[0]);
                out.put(field::dreq::PRIVATE, &m.private_data);
                out.u24(field::dreq::REMOTE_QPN, "Remote QPN", m.remote_qpn)
            }
            MessageRepr::DisconnectReply(m) => {
                ids(&mut out, m.local_comm_id, m.remote_comm_id);
                out.put(field::IDS_PRIVATE, &m.private_data);
                Ok(())
            }
        }
        .map_err(|e| e.at(MAD_HEADER_LEN))?;
        Ok(MAD_LEN)
    }
}

/// Private data of a whole MAD, which is exactly as long as its field.
fn private<const N: usize>(bytes: &[u8]) -> PrivateData<N> {
    PrivateData::new(bytes).unwrap_or_default()
}

/// The octets an emitter writes, with checks for fields narrower than the type of their values.
struct Out<'a> {
    data: &'a mut [u8],
}

impl Out<'_> {
    fn put(&mut self, at: usize, value: &[u8]) {
        put(self.data, at, value);
    }

    fn fits(&self, at: usize, field: &'static str, value: u32, bits: u32) -> Result<u32> {
        if value >> bits == 0 {
            return Ok(value);
        }
        let expected = match bits {
            1 => "1 bit",
            2 => "2 bits",
            3 => "3 bits",
            4 => "4 bits",
            5 => "5 bits",
            6 => "6 bits",
            7 => "7 bits",
            20 => "20 bits",
            _ => "24 bits",
        };
        Err(Error::value(
            Layer::RdmaCm,
            at,
            field,
            value.into(),
            expected,
        ))
    }

    fn u24(&mut self, at: usize, field: &'static str, value: u32) -> Result<()> {
        let value = self.fits(at, field, value, 24)?;
        put_u24(self.data, at, value);
        Ok(())
    }

    /// Writes the octet made of these fields, most significant first.
    fn bits(&mut self, at: usize, fields: &[(&'static str, u8, u32)]) -> Result<()> {
        let mut octet = 0u32;
        for (field, value, bits) in fields {
            octet = octet << bits | self.fits(at, field, (*value).into(), *bits)?;
        }
        self.put(at, &[octet as u8]);
        Ok(())
    }
}
