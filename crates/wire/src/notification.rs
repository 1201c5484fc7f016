//! The `Notification`: who notifies which sender of congestion on which QP or flow, whatever the message format.
//!
//! One type for every mechanism, made from a [`Frame`]; the dissector shows it, the monitor counts it, the roles act on
//! it. The formats themselves are in their own modules.

use crate::bth::{Bth, Opcode, Qp};
use crate::cnp::CNP_LEN;
use crate::fast_cnp::FastCnpRepr;
use crate::frame::{Frame, LinkType, Upper};
use crate::identified;
use crate::message::Message;
use crate::proxy_cn::{FiveTuple, ProxyCn};
use core::fmt;
use std::net::IpAddr;

identified! {
    /// How congestion is notified.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    Kind {
        /// Plain CNP, from the receiver (or a proxy or ingress PE in its place).
        Cnp = "cnp",
        /// Fast CNP with option 1.
        FastCnp1 = "fast_cnp_1",
        /// Fast CNP with option 2, the one that carries an IOAM trace.
        FastCnp2 = "fast_cnp_2",
        /// Notification to the proxy node.
        ProxyCn = "proxy_cn",
        /// Fast CNP in the WAN, to the ingress PE.
        WanFcn = "wan_fcn",
    }
}

impl Kind {
    /// What people call it, with the option of a Fast CNP.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cnp => "CNP",
            Self::FastCnp1 => "Fast CNP (option 1)",
            Self::FastCnp2 => "Fast CNP (option 2)",
            Self::ProxyCn => "Proxy notification",
            Self::WanFcn => "WAN FCN",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FastCnp1 | Self::FastCnp2 => "Fast CNP",
            kind => kind.name(),
        })
    }
}

/// What a notification is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// The QP at the sender (a plain CNP).
    SenderQp(Qp),
    /// The QP at the receiver, from which the sender finds its own (a Fast CNP).
    ReceiverQp {
        /// The data packet's destination address.
        receiver: IpAddr,
        /// The data packet's DestQP.
        qp: Qp,
    },
    /// A five-tuple (proxy notification), and the QP at the receiver where the quoted packet shows it.
    Flow {
        /// The data packet's five-tuple.
        tuple: FiveTuple,
        /// The data packet's DestQP.
        receiver_qp: Option<Qp>,
    },
    /// The flow label of the outer header (WAN FCN), 20 bits.
    FlowLabel(u32),
}

impl Subject {
    /// The QP that is named, and whose it is.
    #[must_use]
    pub const fn qp(&self) -> Option<(Side, Qp)> {
        match *self {
            Self::SenderQp(qp) => Some((Side::Sender, qp)),
            Self::ReceiverQp { qp, .. }
            | Self::Flow {
                receiver_qp: Some(qp),
                ..
            } => Some((Side::Receiver, qp)),
            Self::Flow { .. } | Self::FlowLabel(_) => None,
        }
    }

    /// The receiver of the data, where the notification names it.
    #[must_use]
    pub const fn receiver(&self) -> Option<IpAddr> {
        match *self {
            Self::ReceiverQp { receiver, .. } => Some(receiver),
            Self::Flow { tuple, .. } => Some(tuple.destination),
            Self::SenderQp(_) | Self::FlowLabel(_) => None,
        }
    }
}

identified! {
    /// Which side of a connection a QP belongs to.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    Side {
        /// The data sender's.
        Sender = "sender",
        /// The data receiver's.
        Receiver = "receiver",
    }
}

identified! {
    /// Who a notification comes from.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    Origin {
        /// The receiver: a plain CNP, or a Fast CNP whose source is the original destination.
        Receiver = "receiver",
        /// A congestion point on the way.
        Switch = "switch",
        /// A proxy node that translates a notification: never by a packet's own bytes, which look like the receiver's.
        Proxy = "proxy",
        /// An ingress PE that translates an FCN: likewise.
        IngressPe = "ingress_pe",
        /// The receiver, or a proxy node or ingress PE in its name: either had cause to, and time does not tell which it was.
        Ambiguous = "ambiguous",
        /// Who has another address than the receiver of the flow that its CNP is about: which node it is, nothing tells.
        Unknown = "unknown",
    }
}

/// A congestion notification: small, for who reads millions of them a second. The rules that it breaks tells
/// [`Frame::check`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// How it is said.
    pub kind: Kind,
    /// Receiver or switch.
    pub origin: Origin,
    /// Who says it: source of the IP packet.
    pub notifier: IpAddr,
    /// Whom it is sent to: destination of the IP packet (the sender, the proxy node or the ingress PE).
    pub destination: IpAddr,
    /// The data sender that is to slow down, where the notification names it.
    pub sender: Option<IpAddr>,
    /// The QP or flow that is to slow down.
    pub subject: Subject,
    /// Congestion level, where one is given: 0 (proxy notification) or 1 (WAN FCN) lowest to 7 highest.
    pub level: Option<u8>,
    /// Deepest queue of the IOAM trace, in the unit of its namespace.
    pub deepest_queue: Option<u32>,
    /// Nodes that wrote into the IOAM trace.
    pub hops: usize,
}

impl Notification {
    /// What the notification in `frame` says, if it is one that can be read.
    #[must_use]
    pub fn from_frame(frame: &Frame<'_>) -> Option<Self> {
        let message = frame.message();
        let ip = frame.ip()?;
        let (notifier, destination) = (ip.source, ip.destination);
        let plain = |kind, origin, sender, subject| Self {
            kind,
            origin,
            notifier,
            destination,
            sender,
            subject,
            level: None,
            deepest_queue: None,
            hops: 0,
        };
        Some(match message {
            Message::Cnp(cnp) => plain(
                Kind::Cnp,
                Origin::Receiver,
                Some(destination),
                Subject::SenderQp(cnp.dest_qp()),
            ),
            Message::FastCnp(message) => {
                let option = message.parsed.ok()?;
                let qp = message
                    .cnp
                    .map(|cnp| cnp.dest_qp())
                    .or_else(|| cut_cnp(frame))?;
                let receiver = IpAddr::V6(option.original_destination());
                let subject = Subject::ReceiverQp { receiver, qp };
                let origin = if notifier == receiver {
                    Origin::Receiver
                } else {
                    Origin::Switch
                };
                let kind = match option {
                    FastCnpRepr::Option1 { .. } => Kind::FastCnp1,
                    FastCnpRepr::Option2 { .. } => Kind::FastCnp2,
                };
                let trace = option.trace();
                Self {
                    deepest_queue: trace.and_then(|trace| trace.deepest_queue()),
                    hops: trace.map_or(0, |trace| trace.nodes().flatten().count()),
                    ..plain(kind, origin, Some(destination), subject)
                }
            }
            Message::ProxyCn(message) => {
                let tuple = message.five_tuple();
                let subject = Subject::Flow {
                    tuple,
                    receiver_qp: quoted_qp(&message, frame),
                };
                Self {
                    level: Some(message.level()),
                    ..plain(Kind::ProxyCn, Origin::Switch, Some(tuple.source), subject)
                }
            }
            Message::WanFcn(message) => Self {
                level: message.given_level(),
                ..plain(
                    Kind::WanFcn,
                    Origin::Switch,
                    None,
                    Subject::FlowLabel(message.flow_label()),
                )
            },
            Message::Roce(..) => {
                let subject = Subject::SenderQp(cut_cnp(frame)?);
                plain(Kind::Cnp, Origin::Receiver, Some(destination), subject)
            }
            Message::RdmaCm(..) | Message::Pfc(_) | Message::Other => return None,
        })
    }
}

/// The DestQP of a CNP whose end the capture has cut off: its BTH and its length on the wire are enough to know it. Or of one of
/// InfiniBand's own.
fn cut_cnp(frame: &Frame<'_>) -> Option<Qp> {
    if let Upper::InfiniBand(packet) = frame.upper() {
        return packet.cnp();
    }
    let datagram = frame.datagram().filter(|_| frame.is_roce())?;
    let bth = Bth::new_checked(datagram.payload).ok()?;
    let is_cnp = bth.opcode() == Opcode::CNP && datagram.payload_len == CNP_LEN;
    (is_cnp && !frame.has_overrunning_option() && !datagram.is_whole()).then(|| bth.dest_qp())
}

/// Octets that an IP packet can have without a jumbo payload.
const LONGEST_PACKET: usize = 40 + u16::MAX as usize;

/// The DestQP of the RoCEv2 packet that a proxy notification quotes.
fn quoted_qp(message: &ProxyCn<'_>, frame: &Frame<'_>) -> Option<Qp> {
    let quoted = message.invoking_packet();
    // The quoted packet is cut by design: its own length fields tell what was there.
    let quoted = Frame::parse(quoted, LONGEST_PACKET, LinkType::RawIp, frame.profile());
    if !quoted.is_roce() {
        return None;
    }
    Bth::new_checked(quoted.datagram()?.payload)
        .ok()
        .map(|bth| bth.dest_qp())
}

impl fmt::Display for Notification {
    /// One line: who notifies whom about what.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let notifier = self.notifier;
        match (self.kind, self.origin) {
            (Kind::Cnp, _) => write!(f, "CNP from {notifier}")?,
            (kind, Origin::Switch) => write!(f, "{kind} from switch {notifier}")?,
            (kind, _) => write!(f, "{kind} from receiver {notifier}")?,
        }
        match self.kind {
            Kind::ProxyCn => write!(f, " → proxy {}", self.destination)?,
            Kind::WanFcn => write!(f, " → ingress PE {}", self.destination)?,
            _ => write!(f, " → sender {}", self.destination)?,
        }
        match self.subject {
            Subject::SenderQp(qp) => write!(f, ", QP {qp}")?,
            Subject::ReceiverQp { receiver, qp } => write!(f, ", QP {qp} at {receiver}")?,
            Subject::Flow { tuple, receiver_qp } => {
                write!(
                    f,
                    ", sender {}, flow to {}",
                    tuple.source, tuple.destination
                )?;
                if let Some(qp) = receiver_qp {
                    write!(f, " QP {qp}")?;
                }
            }
            Subject::FlowLabel(label) => write!(f, ", flow label {label:#07x}")?,
        }
        match (self.level, self.kind) {
            (Some(level), _) => write!(f, ", level {level}")?,
            (None, Kind::WanFcn) => f.write_str(", level not given")?,
            (None, _) => {}
        }
        if let Some(depth) = self.deepest_queue {
            write!(f, ", deepest queue {depth}")?;
        }
        Ok(())
    }
}
