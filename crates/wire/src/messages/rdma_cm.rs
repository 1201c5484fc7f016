//! RDMA communication management: the MADs to QP 1 that establish and release connections, and the
//! RDMA IP CM header in their private data (InfiniBand volume 1 section 12.6, Annex A11).
//!
//! Every field of each message is parsed and written; the mapping from QPs to flows is learnt
//! elsewhere. The common MAD header is in `mad.rs`, the BTH and DETH that carry it in `bth.rs`.
//! Messages that only negotiate (MRA, LAP, APR, SIDR) are named but not parsed.
//!
//! Layout after the MAD header, with octets counted as in the standard's tables (`RDC`: RDC exists,
//! `S`: SRQ, `F`: end-to-end flow control, `N`: subnet local, `-`: reserved):
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  ConnectRequest
//! |                    Local Communication ID                     |   0
//! |       -       |                   Vendor ID                   |   4
//! |                          Service ID (64)                      |   8
//! |                        Local CA GUID (64)                     |  16
//! |                               -                               |  24
//! |                          Local Q_Key                          |  28
//! |                  Local QPN                    | Resp. Resour. |  32
//! |                  Local EECN                   | Init. Depth   |  36
//! |                  Remote EECN                  |RemTimeout |Tr|F|  40
//! |                 Starting PSN                  |LocTimeout|Retr|  44
//! |         Partition Key         |  MTU  |RDC|RNR|CM Retr|S|ExtTr|  48
//! |          Primary Path (352), then Alternate Path (352)        |  52
//! |                      Private Data (736)                       | 140
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  a path of it
//! |           Local LID           |          Remote LID           |   0
//! |              Local GID (128), then Remote GID (128)           |   4
//! |              Flow Label               |     -     |Packet Rate|  36
//! | Traffic Class |   Hop Limit   |  SL   |N|  -  |AckTimeout|  -  |  40
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  ConnectReply
//! |        Local Communication ID, then Remote (32 each)          |   0
//! |                          Local Q_Key                          |   8
//! |                  Local QPN                    |Vendor ID 23:16|  12
//! |                  Local EECN                   |Vendor ID 15:8 |  16
//! |                 Starting PSN                  |Vendor ID 7:0  |  20
//! | Resp. Resour. |  Init. Depth  |AckDelay |Fo.|F| RNR |S|   -   |  24
//! |                        Local CA GUID (64)                     |  28
//! |                      Private Data (1568)                      |  36
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  ConnectReject
//! |        Local Communication ID, then Remote (32 each)          |   0
//! |Msg|     -     | Info Length |-|            Reason             |   8
//! |              Additional Reject Information (576)              |  12
//! |                      Private Data (1184)                      |  84
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  DisconnectRequest; ReadyToUse and
//! |        Local Communication ID, then Remote (32 each)          |   0  DisconnectReply without the QPN
//! |                  Remote QPN                   |       -       |   8
//! |                      Private Data (1760)                      |  12
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  RDMA IP CM header
//! | Major | Minor | IP Ver|   -   |          Source Port          |   0
//! |        Source IP (128; an IPv4 address is its last 32 bits)   |   4
//! |        Destination IP (likewise)                              |  20
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! ```
//! use fcn_wire::rdma_cm::{Cm, CmRepr, ConnectRequestRepr};
//! use std::net::IpAddr;
//!
//! let (client, server) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
//! let request = ConnectRequestRepr {
//!     local_qpn: 0x11,
//!     ..ConnectRequestRepr::roce((client, 40_000), (server, 18_515))?
//! };
//! let mad = CmRepr::new(1, request).to_bytes()?;
//!
//! let Cm::ConnectRequest(view) = Cm::new_checked(&mad)? else {
//!     panic!("expected a ConnectRequest");
//! };
//! assert_eq!((view.local_qpn(), view.service_id().port()), (0x11, Some(18_515)));
//! assert_eq!(view.ip_cm().unwrap()?.destination, server);
//! # Ok::<(), fcn_wire::Error>(())
//! ```

use crate::error::{Error, Result};
use crate::fields::{Bits, FieldPosition, Value, Values, bits, values, view_fields};
use crate::layer::Layer;
use crate::mad::{
    BASE_VERSION, CLASS_COMMUNICATION, MAD_DATA_LEN, MAD_HEADER_LEN, MAD_LEN, METHOD_SEND, Mad,
    MadRepr,
};
use crate::octets::{ipv4_at, ipv6_at, put, u8_at, u16_at, u32_at};
use core::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// Version of the communication management class that this module parses and writes.
const CM_CLASS_VERSION: u8 = 2;

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // MRA: the response will take longer.
            Self::Other(0x11) => f.write_str("MsgRcptAck"),
            Self::Other(id) => write!(f, "CM attribute {id:#06x}"),
            known => write!(f, "{known:?}"),
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
    /// Specified by the extended transport type (1 is XRC).
    Extended,
}

/// Path MTU as its four-bit code: 1 is 256 octets, each increment doubles it, up to 5.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PathMtu(pub u8);

impl PathMtu {
    /// Returns the maximum payload of a packet in octets.
    #[must_use]
    pub const fn octets(self) -> Option<u16> {
        match self.0 {
            code @ 1..=5 => Some(128 << code),
            _ => None,
        }
    }
}

/// Service ID; those of the RDMA IP CM service contain an IP protocol and port (Annex A11.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct ServiceId(pub u64);

impl ServiceId {
    const IP_PREFIX: u64 = 0x00_0000_0001;

    /// Returns the service ID of the RDMA IP CM service for `protocol` (6 TCP, 17 UDP) and
    /// destination `port`.
    #[must_use]
    pub const fn ip(protocol: u8, port: u16) -> Self {
        Self(Self::IP_PREFIX << 24 | (protocol as u64) << 16 | port as u64)
    }

    /// Returns protocol and destination port, if the ID belongs to the RDMA IP CM service.
    #[must_use]
    pub const fn ip_protocol_port(self) -> Option<(u8, u16)> {
        if self.0 >> 24 == Self::IP_PREFIX {
            Some(((self.0 >> 16) as u8, self.0 as u16))
        } else {
            None
        }
    }

    /// Returns the destination port, if the ID belongs to the RDMA IP CM service.
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

/// Returns the IP address for a RoCEv2 GID: IPv4 if it is `::ffff:a.b.c.d` (Annex A17.4.1).
#[must_use]
pub fn gid_to_ip(gid: Ipv6Addr) -> IpAddr {
    match gid.to_ipv4_mapped() {
        Some(v4) => IpAddr::V4(v4),
        None => IpAddr::V6(gid),
    }
}

/// Returns the RoCEv2 GID of an IP address.
#[must_use]
pub fn gid_from_ip(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}

/// Offsets in the data after the MAD header that are used outside the tables below.
pub(crate) mod field {
    pub(crate) mod req {
        pub(crate) const LOCAL_QPN: usize = 32;
        pub(crate) const STARTING_PSN: usize = 44;
        pub(crate) const PRIMARY: usize = 52;
        pub(crate) const ALTERNATE: usize = 96;
        pub(crate) const PRIVATE: usize = 140;
    }

    /// From the start of a path of a ConnectRequest.
    pub(crate) mod path {
        pub(crate) const LOCAL_GID: usize = 4;
        pub(crate) const REMOTE_GID: usize = 20;
    }

    pub(crate) mod rep {
        pub(crate) const LOCAL_QPN: usize = 12;
        pub(crate) const STARTING_PSN: usize = 20;
        pub(crate) const PRIVATE: usize = 36;
    }

    pub(crate) mod dreq {
        pub(crate) const REMOTE_QPN: usize = 8;
        pub(crate) const PRIVATE: usize = 12;
    }

    pub(super) mod rej {
        pub(crate) const INFORMATION: usize = 12;
        pub(crate) const PRIVATE: usize = 84;
    }

    /// Private data of RTU and DREP, preceded only by the two IDs.
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

/// Length of the private data in a ConnectRequest, in octets.
pub const REQ_PRIVATE_LEN: usize = MAD_DATA_LEN - field::req::PRIVATE;
/// Length of the private data in a ConnectReply, in octets.
pub const REP_PRIVATE_LEN: usize = MAD_DATA_LEN - field::rep::PRIVATE;
/// Length of the private data in a ConnectReject, in octets.
pub const REJ_PRIVATE_LEN: usize = MAD_DATA_LEN - field::rej::PRIVATE;
/// Length of the additional information in a ConnectReject, in octets.
pub const REJ_INFORMATION_LEN: usize = field::rej::PRIVATE - field::rej::INFORMATION;
/// Length of the private data in a ReadyToUse or DisconnectReply, in octets.
pub const IDS_PRIVATE_LEN: usize = MAD_DATA_LEN - field::IDS_PRIVATE;
/// Length of the private data in a DisconnectRequest, in octets.
pub const DREQ_PRIVATE_LEN: usize = MAD_DATA_LEN - field::dreq::PRIVATE;
/// Length of the RDMA IP CM header at the beginning of a ConnectRequest's private data, in octets.
pub const IP_CM_LEN: usize = field::ip_cm::LEN;

/// Returns the error for the octet `field` at `at`, which has the wrong `value`.
#[cold]
fn wrong(at: usize, field: &'static str, value: u8, expected: &'static str) -> Error {
    Error::value(Layer::RdmaCm, at, field, value.into(), expected)
}

bits! {
    ServiceId: |bits| Self(bits as u64), |id: Self| id.0.into();
    PathMtu: |bits| Self(bits as u8), |mtu: Self| mtu.0.into();
    Transport: |bits| match bits {
        0 => Self::Rc,
        1 => Self::Uc,
        2 => Self::Rd,
        _ => Self::Extended,
    }, |transport: Self| transport as u128;
}

/// Private data and other octet strings.
impl<const N: usize> Value for [u8; N] {
    fn read(data: &[u8], places: &[FieldPosition]) -> Self {
        let mut rest = places.iter().flat_map(|(at, ..)| data.iter().skip(*at));
        core::array::from_fn(|_| rest.next().copied().unwrap_or(0))
    }

    fn write(&self, data: &mut [u8], places: &[FieldPosition]) {
        places.iter().for_each(|(at, ..)| put(data, *at, self));
    }

    fn check(&self, _: Layer, _: &'static str, _: &[FieldPosition]) -> Result<()> {
        Ok(())
    }
}

impl Value for Path {
    fn read(data: &[u8], places: &[FieldPosition]) -> Self {
        Self::read_from(data.get(start(places)..).unwrap_or_default())
    }

    fn write(&self, data: &mut [u8], places: &[FieldPosition]) {
        self.write_to(data.get_mut(start(places)..).unwrap_or_default());
    }

    fn check(&self, layer: Layer, _: &'static str, places: &[FieldPosition]) -> Result<()> {
        self.check_widths(layer).map_err(|e| e.at(start(places)))
    }
}

/// Returns the offset of a field.
fn start(places: &[FieldPosition]) -> usize {
    places.first().map_or(0, |(at, ..)| *at)
}

/// Defines a message: its view and its values.
macro_rules! message {
    ($(#[$about:meta])* $view:ident, $repr:ident {
        $($(#[$doc:meta])* $field:ident: $type:ty = $name:literal, $places:expr;)+
    } private data of $len:ident at $private:expr) => {
        $(#[$about])*
        ///
        /// Created by [`Cm`], which has verified that every field before the private data is
        /// present.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $view<'a> {
            mad: Mad<'a>,
        }

        impl<'a> $view<'a> {
            fn new(mad: Mad<'a>) -> Result<Self> {
                if mad.data().len() < $private {
                    let need = MAD_HEADER_LEN + $private;
                    return Err(Error::short(Layer::RdmaCm, need, mad.as_bytes().len()));
                }
                Ok(Self { mad })
            }

            fn data(&self) -> &'a [u8] {
                self.mad.data()
            }

            /// Returns the consumer's private data, as far as captured.
            #[must_use]
            pub fn private_data(&self) -> &'a [u8] {
                self.data().get($private..).unwrap_or_default()
            }
        }

        view_fields! {
            $view by data,
            #[doc = concat!("Values of a ", stringify!($view), ".")]
            $repr {
                $($(#[$doc])* $field: $type = $name, $places;)+
            } and {
                /// Consumer's private data.
                private_data: [u8; $len] = "Private Data", [($private, 0, 0)];
            }
        }
    };
}

message! {
    /// View of a ConnectRequest (section 12.6.5).
    ConnectRequest,
    ConnectRequestRepr {
        /// Sender's communication ID.
        local_comm_id: u32 = "Local Communication ID", [(0, 0, 32)];
        /// Sender's vendor ID (OUI, 24 bits), 0 if not given.
        vendor_id: u32 = "Vendor ID", [(5, 0, 24)];
        /// Service ID.
        service_id: ServiceId = "Service ID", [(8, 0, 64)];
        /// GUID of the sender's channel adapter.
        local_ca_guid: u64 = "Local CA GUID", [(16, 0, 64)];
        /// Q_Key, for reliable datagram.
        local_q_key: u32 = "Local Q_Key", [(28, 0, 32)];
        /// Sender's QP number (24 bits): the DestQP of packets *to* the sender.
        local_qpn: u32 = "Local QPN", [(field::req::LOCAL_QPN, 0, 24)];
        /// Number of RDMA reads and atomics that the sender accepts at once.
        responder_resources: u8 = "Responder Resources", [(35, 0, 8)];
        /// Sender's end-to-end context number (24 bits), for reliable datagram.
        local_eecn: u32 = "Local EECN", [(36, 0, 24)];
        /// Number of RDMA reads and atomics that the sender will have outstanding at once.
        initiator_depth: u8 = "Initiator Depth", [(39, 0, 8)];
        /// Receiver's end-to-end context number (24 bits), for reliable datagram.
        remote_eecn: u32 = "Remote EECN", [(40, 0, 24)];
        /// Time within which the receiver may respond: 4.096 µs · 2ⁿ, n of 5 bits.
        remote_cm_response_timeout: u8 = "Remote CM Response Timeout", [(43, 0, 5)];
        /// Transport service.
        transport: Transport = "Transport Service Type", [(43, 5, 2)];
        /// True if the sender's receive queue does end-to-end flow control.
        end_to_end_flow_control: bool = "End-to-End Flow Control", [(43, 7, 1)];
        /// PSN (24 bits) with which the *receiver's* send queue has to start.
        starting_psn: u32 = "Starting PSN", [(field::req::STARTING_PSN, 0, 24)];
        /// Time within which the sender may respond: 4.096 µs · 2ⁿ, n of 5 bits.
        local_cm_response_timeout: u8 = "Local CM Response Timeout", [(47, 0, 5)];
        /// Retries of a lost packet (3 bits).
        retry_count: u8 = "Retry Count", [(47, 5, 3)];
        /// P_Key of the connection.
        partition_key: u16 = "Partition Key", [(48, 0, 16)];
        /// Path MTU.
        path_mtu: PathMtu = "Path Packet Payload MTU", [(50, 0, 4)];
        /// True if a reliable datagram channel to the receiver exists already.
        rdc_exists: bool = "RDC Exists", [(50, 4, 1)];
        /// Retries after receiver not ready (3 bits); 7 means unlimited.
        rnr_retry_count: u8 = "RNR Retry Count", [(50, 5, 3)];
        /// Number of retransmissions of a CM message (4 bits).
        max_cm_retries: u8 = "Max CM Retries", [(51, 0, 4)];
        /// True if the sender's QP uses a shared receive queue.
        srq: bool = "SRQ", [(51, 4, 1)];
        /// Extended transport type (3 bits); 1 is XRC.
        extended_transport: u8 = "Extended Transport Type", [(51, 5, 3)];
        /// Primary path.
        primary: Path = "Primary Path", [(field::req::PRIMARY, 0, 352)];
        /// Alternate path, used if the primary one fails; all zeros ([`Path::default`]) for none.
        alternate: Path = "Alternate Path", [(field::req::ALTERNATE, 0, 352)];
    } private data of REQ_PRIVATE_LEN at field::req::PRIVATE
}

message! {
    /// View of a ConnectReply (section 12.6.8).
    ConnectReply,
    ConnectReplyRepr {
        /// Sender's communication ID.
        local_comm_id: u32 = "Local Communication ID", [(0, 0, 32)];
        /// Receiver's communication ID.
        remote_comm_id: u32 = "Remote Communication ID", [(4, 0, 32)];
        /// Sender's vendor ID (OUI, 24 bits, in three octets that older editions reserve), 0 if not
        /// given.
        vendor_id: u32 = "Vendor ID", [(15, 0, 8), (19, 0, 8), (23, 0, 8)];
        /// Q_Key, for reliable datagram.
        local_q_key: u32 = "Local Q_Key", [(8, 0, 32)];
        /// Sender's QP number (24 bits): the DestQP of packets *to* the sender.
        local_qpn: u32 = "Local QPN", [(field::rep::LOCAL_QPN, 0, 24)];
        /// Sender's end-to-end context number (24 bits), for reliable datagram; with XRC, Linux
        /// puts its QP number here.
        local_eecn: u32 = "Local EECN", [(16, 0, 24)];
        /// PSN (24 bits) with which the *receiver's* send queue has to start.
        starting_psn: u32 = "Starting PSN", [(field::rep::STARTING_PSN, 0, 24)];
        /// Number of RDMA reads and atomics that the sender accepts at once.
        responder_resources: u8 = "Responder Resources", [(24, 0, 8)];
        /// Number of RDMA reads and atomics that the sender will have outstanding at once.
        initiator_depth: u8 = "Initiator Depth", [(25, 0, 8)];
        /// Time within which the sender may acknowledge: 4.096 µs · 2ⁿ, n of 5 bits.
        target_ack_delay: u8 = "Target ACK Delay", [(26, 0, 5)];
        /// Result for the alternate path (2 bits): 0 accepted, 1 not supported, 2 refused.
        failover_accepted: u8 = "Failover Accepted", [(26, 5, 2)];
        /// True if the sender's receive queue does end-to-end flow control.
        end_to_end_flow_control: bool = "End-To-End Flow Control", [(26, 7, 1)];
        /// Retries after receiver not ready (3 bits); 7 means unlimited.
        rnr_retry_count: u8 = "RNR Retry Count", [(27, 0, 3)];
        /// True if the sender's QP uses a shared receive queue.
        srq: bool = "SRQ", [(27, 3, 1)];
        /// GUID of the sender's channel adapter.
        local_ca_guid: u64 = "Local CA GUID", [(28, 0, 64)];
    } private data of REP_PRIVATE_LEN at field::rep::PRIVATE
}

message! {
    /// View of a ConnectReject (section 12.6.7): rejects a request or a reply, or reports that
    /// neither arrived in time.
    ConnectReject,
    ConnectRejectRepr {
        /// Sender's communication ID; 0 if it refuses a request without having assigned one.
        local_comm_id: u32 = "Local Communication ID", [(0, 0, 32)];
        /// Receiver's communication ID; 0 if unknown.
        remote_comm_id: u32 = "Remote Communication ID", [(4, 0, 32)];
        /// Rejected message (2 bits): 0 the ConnectRequest, 1 the ConnectReply, 2 neither.
        message_rejected: u8 = "Message REJected", [(8, 0, 2)];
        /// Reason by the numbers of section 12.6.7.2: 4 is a timeout, 28 the consumer's own reason.
        reason: u16 = "Reason", [(10, 0, 16)];
        /// Number of valid octets in `information` (7 bits).
        information_len: u8 = "Reject Info Length", [(9, 0, 7)];
        /// Additional information; its meaning depends on the reason.
        information: [u8; REJ_INFORMATION_LEN] = "Information", [(field::rej::INFORMATION, 0, 0)];
    } private data of REJ_PRIVATE_LEN at field::rej::PRIVATE
}

message! {
    /// View of a ReadyToUse (section 12.6.9).
    ReadyToUse,
    ReadyToUseRepr {
        /// Sender's communication ID.
        local_comm_id: u32 = "Local Communication ID", [(0, 0, 32)];
        /// Receiver's communication ID.
        remote_comm_id: u32 = "Remote Communication ID", [(4, 0, 32)];
    } private data of IDS_PRIVATE_LEN at field::IDS_PRIVATE
}

message! {
    /// View of a DisconnectRequest (section 12.6.10).
    DisconnectRequest,
    DisconnectRequestRepr {
        /// Sender's communication ID.
        local_comm_id: u32 = "Local Communication ID", [(0, 0, 32)];
        /// Receiver's communication ID.
        remote_comm_id: u32 = "Remote Communication ID", [(4, 0, 32)];
        /// The *receiver's* QP number or end-to-end context number (24 bits).
        remote_qpn: u32 = "Remote QPN", [(field::dreq::REMOTE_QPN, 0, 24)];
    } private data of DREQ_PRIVATE_LEN at field::dreq::PRIVATE
}

message! {
    /// View of a DisconnectReply (section 12.6.11).
    DisconnectReply,
    DisconnectReplyRepr {
        /// Sender's communication ID.
        local_comm_id: u32 = "Local Communication ID", [(0, 0, 32)];
        /// Receiver's communication ID.
        remote_comm_id: u32 = "Remote Communication ID", [(4, 0, 32)];
    } private data of IDS_PRIVATE_LEN at field::IDS_PRIVATE
}

macro_rules! messages {
    ($($(#[$about:meta])* $name:ident $repr:ident = $id:literal,)+) => {
        /// Type of a communication management MAD (section 12.6, attribute IDs of section 16.7.2).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind {
            $($(#[$about])* $name,)+
            /// Any other attribute.
            Other(u16),
        }

        impl Kind {
            /// Returns the message with that attribute ID.
            #[must_use]
            pub const fn from_attribute(id: u16) -> Self {
                match id {
                    $($id => Self::$name,)+
                    other => Self::Other(other),
                }
            }

            /// Returns the message's attribute ID.
            #[must_use]
            pub const fn attribute(self) -> u16 {
                match self {
                    $(Self::$name => $id,)+
                    Self::Other(id) => id,
                }
            }
        }

        /// A communication management message of any kind.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Cm<'a> {
            $($(#[$about])* $name($name<'a>),)+
            /// A MAD of the class that this module does not parse.
            Other(Mad<'a>),
        }

        impl<'a> Cm<'a> {
            fn from_mad(mad: Mad<'a>) -> Result<Self> {
                match Kind::from_attribute(mad.attribute_id()) {
                    $(Kind::$name => $name::new(mad).map(Self::$name),)+
                    Kind::Other(_) => Ok(Self::Other(mad)),
                }
            }

            const fn mad(&self) -> Mad<'a> {
                match self {
                    $(Self::$name(view) => view.mad,)+
                    Self::Other(mad) => *mad,
                }
            }
        }

        /// Values of one of the six messages.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(
            clippy::large_enum_variant,
            reason = "every variant is the content of one MAD; boxing would allocate"
        )]
        pub enum MessageRepr {
            $($(#[$about])* $name($repr),)+
        }

        impl MessageRepr {
            /// Returns the message type.
            #[must_use]
            pub const fn kind(&self) -> Kind {
                match self {
                    $(Self::$name(_) => Kind::$name,)+
                }
            }

            /// Returns the values of one of the six messages, or `None` for any other.
            fn read(view: &Cm<'_>) -> Option<Self> {
                Some(match view {
                    $(Cm::$name(view) => Self::$name($repr::parse(view)),)+
                    Cm::Other(_) => return None,
                })
            }

            /// Writes the message to `data`, if every value fits into its field.
            fn write(&self, data: &mut [u8]) -> Result<()> {
                match self {
                    $(Self::$name(message) => {
                        message.check_widths(Layer::RdmaCm)?;
                        message.write_to(data);
                    })+
                }
                Ok(())
            }
        }

        $(
            impl From<$repr> for MessageRepr {
                fn from(message: $repr) -> Self {
                    Self::$name(message)
                }
            }
        )+
    };
}

messages! {
    /// REQ: the active side requests a connection.
    ConnectRequest ConnectRequestRepr = 0x10,
    /// REJ: the connection is rejected.
    ConnectReject ConnectRejectRepr = 0x12,
    /// REP: the passive side accepts.
    ConnectReply ConnectReplyRepr = 0x13,
    /// RTU: the active side is ready.
    ReadyToUse ReadyToUseRepr = 0x14,
    /// DREQ: one side releases the connection.
    DisconnectRequest DisconnectRequestRepr = 0x15,
    /// DREP: the other side confirms the release.
    DisconnectReply DisconnectReplyRepr = 0x16,
}

impl<'a> Cm<'a> {
    /// Returns a view of a complete MAD of 256 octets, from its header on.
    ///
    /// # Errors
    /// Fails if the MAD is incomplete, or not communication management in the supported version.
    pub fn new_checked(bytes: &'a [u8]) -> Result<Self> {
        if bytes.len() < MAD_LEN {
            return Err(Error::short(Layer::Mad, MAD_LEN, bytes.len()));
        }
        Self::new_lax(bytes)
    }

    /// Like [`new_checked`](Self::new_checked), but for captures that may have truncated the MAD:
    /// its private data may be incomplete, all other fields must be present.
    ///
    /// # Errors
    /// Fails if the MAD ends before the message's private data, or is not communication management.
    pub fn new_lax(bytes: &'a [u8]) -> Result<Self> {
        let mad = Mad::new_checked(bytes)?;
        let class = (mad.class(), CLASS_COMMUNICATION);
        for (offset, name, (value, known), text) in [
            (0, "Base Version", (mad.base_version(), BASE_VERSION), "1"),
            (1, "Management Class", class, "7 (communication management)"),
            (
                2,
                "Class Version",
                (mad.class_version(), CM_CLASS_VERSION),
                "2",
            ),
        ] {
            if value != known {
                return Err(wrong(offset, name, value, text));
            }
        }
        if mad.method() != METHOD_SEND {
            return Ok(Self::Other(mad));
        }
        Self::from_mad(mad)
    }

    /// Returns the message type.
    #[must_use]
    pub fn kind(&self) -> Kind {
        Kind::from_attribute(self.mad().attribute_id())
    }

    /// Returns the sender's communication ID; `None` for messages that this module does not parse.
    #[must_use]
    pub fn local_comm_id(&self) -> Option<u32> {
        match self {
            Self::Other(_) => None,
            _ => Some(u32_at(self.mad().data(), 0)),
        }
    }

    /// Returns the receiver's communication ID; not yet known in a ConnectRequest.
    #[must_use]
    pub fn remote_comm_id(&self) -> Option<u32> {
        match self {
            Self::ConnectRequest(_) | Self::Other(_) => None,
            _ => Some(u32_at(self.mad().data(), 4)),
        }
    }

    /// Returns the sender's QP number, which is present in ConnectRequest and ConnectReply.
    #[must_use]
    pub fn local_qpn(&self) -> Option<u32> {
        match self {
            Self::ConnectRequest(view) => Some(view.local_qpn()),
            Self::ConnectReply(view) => Some(view.local_qpn()),
            _ => None,
        }
    }
}

impl ConnectRequest<'_> {
    /// Returns the RDMA IP CM header in the private data, if the service ID indicates that there is
    /// one.
    ///
    /// # Errors
    /// Fails if the capture truncated it, or its IP version is neither 4 nor 6. Offsets are from
    /// the MAD's start.
    pub fn ip_cm(&self) -> Option<Result<IpCm>> {
        self.service_id().ip_protocol_port()?;
        let at = MAD_HEADER_LEN + field::req::PRIVATE;
        Some(IpCm::parse(self.private_data()).map_err(|e| e.at(at)))
    }
}

values! {
    /// A path of a ConnectRequest (section 12.6.5). On RoCEv2 the LIDs have no meaning and the GIDs
    /// are IP addresses.
    Path {
        /// LID of the sender's port.
        local_lid: u16 = "Local LID", [(0, 0, 16)];
        /// LID of the receiver's port.
        remote_lid: u16 = "Remote LID", [(2, 0, 16)];
        /// GID of the sender's port.
        local_gid: Ipv6Addr = "Local GID", [(field::path::LOCAL_GID, 0, 128)];
        /// GID of the receiver's port.
        remote_gid: Ipv6Addr = "Remote GID", [(field::path::REMOTE_GID, 0, 128)];
        /// Flow label, 20 bits.
        flow_label: u32 = "Flow Label", [(36, 0, 20)];
        /// Packet rate as its code, 6 bits.
        packet_rate: u8 = "Packet Rate", [(39, 2, 6)];
        /// Traffic class.
        traffic_class: u8 = "Traffic Class", [(40, 0, 8)];
        /// Hop limit.
        hop_limit: u8 = "Hop Limit", [(41, 0, 8)];
        /// Service level, 4 bits.
        sl: u8 = "SL", [(42, 0, 4)];
        /// True if both ports are on one subnet.
        subnet_local: bool = "Subnet Local", [(42, 4, 1)];
        /// Local ACK timeout: 4.096 µs · 2ⁿ, n of 5 bits.
        local_ack_timeout: u8 = "Local ACK Timeout", [(43, 0, 5)];
    }
}

impl Path {
    /// Creates a RoCEv2 path between two addresses, with the permissive LIDs and hop limit that
    /// Linux sends.
    #[must_use]
    pub fn roce(local: IpAddr, remote: IpAddr) -> Self {
        Self {
            local_lid: 0xFFFF,
            remote_lid: 0xFFFF,
            local_gid: gid_from_ip(local),
            remote_gid: gid_from_ip(remote),
            hop_limit: 64,
            ..Self::default()
        }
    }
}

/// RDMA IP CM header: the IP addresses and source port requested by the consumer (Annex A11.2.2).
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
    /// Parses the header at the beginning of a ConnectRequest's private data.
    ///
    /// # Errors
    /// Fails if it is incomplete, or its IP version is neither 4 nor 6.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        use field::ip_cm::{
            DESTINATION, IP_VERSION, IPV4_IN_ADDRESS, SOURCE, SOURCE_PORT, VERSION,
        };
        let Some(bytes) = bytes.get(..IP_CM_LEN) else {
            return Err(Error::short(Layer::RdmaCm, IP_CM_LEN, bytes.len()));
        };
        let family = u8_at(bytes, IP_VERSION) >> 4;
        if !matches!(family, 4 | 6) {
            return Err(wrong(IP_VERSION, "IP version", family, "4 or 6"));
        }
        let address = |at: usize| match family {
            4 => IpAddr::V4(ipv4_at(bytes, at + IPV4_IN_ADDRESS)),
            _ => IpAddr::V6(ipv6_at(bytes, at)),
        };
        Ok(Self {
            major: u8_at(bytes, VERSION) >> 4,
            minor: u8_at(bytes, VERSION) & 15,
            source_port: u16_at(bytes, SOURCE_PORT),
            source: address(SOURCE),
            destination: address(DESTINATION),
        })
    }

    /// Returns its octets.
    ///
    /// # Errors
    /// Fails if the addresses are of different families, or a version needs more than 4 bits.
    pub fn to_bytes(self) -> Result<[u8; IP_CM_LEN]> {
        use field::ip_cm::{
            DESTINATION, IP_VERSION, IPV4_IN_ADDRESS, SOURCE, SOURCE_PORT, VERSION,
        };
        let family = if self.source.is_ipv4() { 4 } else { 6 };
        if self.source.is_ipv4() != self.destination.is_ipv4() {
            let (name, other) = ("Destination IP's version", 10 - family);
            return Err(wrong(DESTINATION, name, other, "that of the source IP"));
        }
        let mut out = [0; IP_CM_LEN];
        let (major, minor) = ([(VERSION, 0, 4)], [(VERSION, 4, 4)]);
        self.major.check(Layer::RdmaCm, "Major Version", &major)?;
        self.minor.check(Layer::RdmaCm, "Minor Version", &minor)?;
        self.major.write(&mut out, &major);
        self.minor.write(&mut out, &minor);
        put(&mut out, IP_VERSION, &[family << 4]);
        put(&mut out, SOURCE_PORT, &self.source_port.to_be_bytes());
        for (at, address) in [(SOURCE, self.source), (DESTINATION, self.destination)] {
            match address {
                IpAddr::V4(v4) => put(&mut out, at + IPV4_IN_ADDRESS, &v4.octets()),
                IpAddr::V6(v6) => put(&mut out, at, &v6.octets()),
            }
        }
        Ok(out)
    }
}

impl ConnectRequestRepr {
    /// Creates a request for a reliable connection between RoCEv2 addresses, to the consumer
    /// listening on TCP `port`, with the timeouts, retries and default P_Key that Linux's RDMA CM
    /// sends.
    ///
    /// # Errors
    /// Fails if the addresses are of different families.
    pub fn roce(
        (source, source_port): (IpAddr, u16),
        (destination, port): (IpAddr, u16),
    ) -> Result<Self> {
        let mut request = Self {
            service_id: ServiceId::ip(6, port),
            responder_resources: 1,
            initiator_depth: 1,
            remote_cm_response_timeout: 20,
            local_cm_response_timeout: 20,
            retry_count: 7,
            partition_key: 0xFFFF,
            path_mtu: PathMtu(3),
            rnr_retry_count: 7,
            max_cm_retries: 15,
            primary: Path::roce(source, destination),
            ..Self::default()
        };
        let ip_cm = IpCm {
            major: 0,
            minor: 0,
            source_port,
            source,
            destination,
        };
        put(&mut request.private_data, 0, &ip_cm.to_bytes()?);
        Ok(request)
    }
}

/// A communication management MAD: the variable fields of its header, and its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CmRepr {
    /// Transaction ID: the same in a request and its responses.
    pub transaction_id: u64,
    /// Attribute modifier: 0, unless vendors use it to negotiate enhancements.
    pub attribute_modifier: u32,
    /// The message.
    pub message: MessageRepr,
}

impl CmRepr {
    /// Number of octets written by [`to_bytes`](Self::to_bytes): the whole MAD, with private data
    /// zero-padded.
    pub const LEN: usize = MAD_LEN;

    /// Creates `message` in a transaction, with attribute modifier 0.
    #[must_use]
    pub fn new(transaction_id: u64, message: impl Into<MessageRepr>) -> Self {
        Self {
            transaction_id,
            attribute_modifier: 0,
            message: message.into(),
        }
    }

    /// Returns the values of one of the six messages, or `None` for any other.
    #[must_use]
    pub fn parse(view: &Cm<'_>) -> Option<Self> {
        let mad = view.mad();
        Some(Self {
            transaction_id: mad.transaction_id(),
            attribute_modifier: mad.attribute_modifier(),
            message: MessageRepr::read(view)?,
        })
    }

    /// Returns the octets of the MAD.
    ///
    /// # Errors
    /// Fails if a value is wider than its field.
    pub fn to_bytes(&self) -> Result<[u8; MAD_LEN]> {
        let header = MadRepr {
            base_version: BASE_VERSION,
            class: CLASS_COMMUNICATION,
            class_version: CM_CLASS_VERSION,
            method: METHOD_SEND,
            status: 0,
            class_specific: 0,
            transaction_id: self.transaction_id,
            attribute_id: self.message.kind().attribute(),
            attribute_modifier: self.attribute_modifier,
        };
        let mut out = [0; MAD_LEN];
        let (head, data) = out.split_at_mut(MAD_HEADER_LEN);
        head.copy_from_slice(&header.to_bytes());
        self.message.write(data).map_err(|e| e.at(MAD_HEADER_LEN))?;
        Ok(out)
    }
}
