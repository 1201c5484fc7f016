//! `Notification`: the node that notifies a sender of congestion and the QP or flow concerned, for
//! every message format.
//!
//! One type for all mechanisms, created from a [`Frame`]. The dissector displays it, the monitor
//! counts it, and the roles act on it. The formats are in their own modules.

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
    /// Congestion notification mechanism.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    Kind {
        /// Plain CNP, from the receiver (or from a proxy or ingress PE on its behalf).
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
    /// Returns the display name, with the option of a Fast CNP.
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

/// Subject of a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// The QP at the sender (a plain CNP).
    SenderQp(Qp),
    /// The QP at the receiver, from which the sender finds its own QP (a Fast CNP).
    ReceiverQp {
        /// The data packet's destination address.
        receiver: IpAddr,
        /// The data packet's DestQP.
        qp: Qp,
    },
    /// A five-tuple (proxy notification), and the QP at the receiver if the quoted packet contains
    /// it.
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
    /// Returns the named QP and the side it belongs to.
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

    /// Returns the receiver of the data, if the notification names it.
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
    /// Side of a connection to which a QP belongs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    Side {
        /// The data sender's.
        Sender = "sender",
        /// The data receiver's.
        Receiver = "receiver",
    }
}

identified! {
    /// Type of node that sent a notification.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    Origin {
        /// The receiver: a plain CNP, or a Fast CNP whose source is the original destination.
        Receiver = "receiver",
        /// A congestion point on the path.
        Switch = "switch",
        /// A proxy node that translates a notification. Never inferred from a packet alone, because
        /// its CNPs look like the receiver's.
        Proxy = "proxy",
        /// An ingress PE that translates an FCN. Not inferred from a packet alone either.
        IngressPe = "ingress_pe",
        /// The receiver, or a proxy node or ingress PE on its behalf: each had cause to send it,
        /// and timing does not distinguish them.
        Ambiguous = "ambiguous",
        /// A node whose address is not that of the receiver of the flow that its CNP is about; the
        /// type of node is unknown.
        Unknown = "unknown",
    }
}

/// A congestion notification: small, for consumers that read millions of them per second.
/// [`Frame::check`] reports the rules that it breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Mechanism.
    pub kind: Kind,
    /// Receiver or switch.
    pub origin: Origin,
    /// Notifying node: source of the IP packet.
    pub notifier: IpAddr,
    /// Destination of the IP packet: the sender, the proxy node or the ingress PE.
    pub destination: IpAddr,
    /// Data sender that has to slow down, if the notification names it.
    pub sender: Option<IpAddr>,
    /// QP or flow that has to slow down.
    pub subject: Subject,
    /// Congestion level, if one is given: 0 (proxy notification) or 1 (WAN FCN) lowest to 7
    /// highest.
    pub level: Option<u8>,
    /// Deepest queue in the IOAM trace, in the unit of its namespace.
    pub deepest_queue: Option<u32>,
    /// Number of nodes that wrote into the IOAM trace; `None` without a trace that can be read.
    pub hops: Option<u8>,
}

impl Notification {
    /// Extracts the notification from `frame`, if it contains one that can be parsed.
    #[must_use]
    pub fn from_frame(frame: &Frame<'_>) -> Option<Self> {
        // Most packets are data or acknowledgements, and need no further look.
        let is_cnp = |bth: Bth<'_>| [Opcode::CNP, Opcode::IB_CNP].contains(&bth.opcode());
        if frame.bth().is_some_and(|bth| !is_cnp(bth)) {
            return None;
        }
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
            hops: None,
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
                    hops: trace.and_then(|trace| {
                        // An option has room for 60 nodes.
                        let hops = trace.nodes().flatten().count() as u8;
                        (hops > 0 || trace.nodes().next().is_none()).then_some(hops)
                    }),
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
            Message::RdmaCm(..) | Message::Pfc(_) | Message::Cnm(_) | Message::Other => {
                return None;
            }
        })
    }
}

/// Returns the DestQP of a CNP whose end was cut off by the capture: its BTH and its length on the
/// wire are sufficient. Also handles native InfiniBand CNPs.
fn cut_cnp(frame: &Frame<'_>) -> Option<Qp> {
    if let Upper::InfiniBand(packet) = frame.upper() {
        return packet.cnp();
    }
    let datagram = frame.datagram().filter(|_| frame.is_roce())?;
    let bth = Bth::new_checked(datagram.payload).ok()?;
    let is_cnp = bth.opcode() == Opcode::CNP && datagram.payload_len == CNP_LEN;
    (is_cnp && !frame.has_overrunning_option() && !datagram.is_whole()).then(|| bth.dest_qp())
}

/// Maximum length of an IPv6 packet without a jumbo payload, in octets.
const MAX_PACKET_LEN: usize = 40 + u16::MAX as usize;

/// Returns the DestQP of the RoCEv2 packet that a proxy notification quotes.
fn quoted_qp(message: &ProxyCn<'_>, frame: &Frame<'_>) -> Option<Qp> {
    let quoted = message.invoking_packet();
    // The quoted packet is truncated by design: its own length fields state the original length.
    let quoted = Frame::parse(quoted, MAX_PACKET_LEN, LinkType::RawIp, frame.profile());
    if !quoted.is_roce() {
        return None;
    }
    Bth::new_checked(quoted.datagram()?.payload)
        .ok()
        .map(|bth| bth.dest_qp())
}

impl fmt::Display for Notification {
    /// Formats on one line who notifies whom about what.
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
