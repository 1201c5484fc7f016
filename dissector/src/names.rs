//! Protocols and fields as Wireshark shows and filters them: names, types, masks and value strings.
//! Data only: `show` decides what is displayed of a packet, and `register.rs` registers the lists.
#![forbid(unsafe_code)]

use core::ffi::CStr;
use fcn_observe::exchange::Incident;
use fcn_wire::Severity;
use fcn_wire::finding::{Family, Rule};

/// Names of values: value, name.
pub type Values = &'static [(u32, &'static str)];

/// Type of a field, which determines how Wireshark stores and prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Has no value; opens a subtree.
    Node,
    /// Unsigned number of this many bits (8, 16, 24, 32, 56 or 64), decimal.
    Dec(u8),
    /// Unsigned number of this many bits, shown only by the name of its value.
    Named(u8),
    /// Unsigned number of this many bits, hexadecimal.
    Hex(u8),
    /// Signed number of 16 bits, decimal.
    Signed,
    /// Flag in a word of this many bits.
    Flag(u8),
    /// MAC address.
    Mac,
    /// IPv4 address.
    Ipv4,
    /// IPv6 address.
    Ipv6,
    /// Octets of the packet.
    Bytes,
    /// Text.
    Text,
    /// Number of another frame; a double click goes to it.
    Frame(Link),
    /// Duration.
    Span,
}

/// Relation of a frame to the one that a [`Kind::Frame`] names. Wireshark draws it beside the
/// packet list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// The other frame requested or caused this one.
    Cause,
    /// The other frame is the response to this one, or its effect.
    Effect,
}

/// A protocol of this plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// Full name.
    pub name: &'static str,
    /// Name in the protocol column and in preferences.
    pub short: &'static str,
    /// Name in display filters.
    pub filter: &'static str,
}

macro_rules! protocols {
    ($( $id:ident = $filter:literal, $short:literal, $name:literal; )+) => {
        /// Index of a protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum P { $( $id, )+ }

        impl P {
            /// All protocols, in the order of the list.
            pub const ALL: &'static [Self] = &[ $( Self::$id, )+ ];

            /// Returns its definition in the list.
            pub const fn def(self) -> &'static Protocol {
                const DEFS: &[Protocol] = &[ $( Protocol { name: $name, short: $short, filter: $filter }, )+ ];
                &DEFS[self as usize]
            }
        }
    };
}

protocols! {
    Roce = "rocev2", "RoCEv2", "RoCEv2 congestion marks and ICRC";
    Cnp = "cnp", "CNP", "RoCEv2 Congestion Notification Packet";
    FastCnp = "fastcnp", "Fast CNP", "RoCEv2 Fast Congestion Notification Packet";
    ProxyOption = "proxycn.option", "Proxy address option", "Proxy Network Node Address option";
    ProxyCn = "proxycn", "Proxy CN", "Congestion Notification to the Proxy Node";
    WanFcn = "wanfcn", "WAN FCN", "Fast Congestion Notification in the WAN";
    Fcn = "fcn", "FCN", "Congestion notification of any kind, and its context";
    Pnc = "pnc", "PNC", "Proxy Node Capability";
    Cnm = "cnm", "CNM", "Congestion Notification Message of a bridge (IEEE 802.1Qau)";
    CnTag = "cntag", "CN-TAG", "Congestion Notification Tag (IEEE 802.1Qau)";
    Csig = "csig", "CSIG", "Congestion Signalling Tag";
}

/// Definition of a field, as registered with Wireshark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Protocol that it belongs to.
    pub protocol: P,
    /// Name in display filters.
    pub filter: &'static str,
    /// Name in the tree.
    pub name: &'static str,
    /// Type.
    pub kind: Kind,
    /// Bits of the word that hold it; 0 if it is the whole word.
    pub mask: u64,
    /// Names of its values.
    pub values: Values,
}

macro_rules! fields {
    ($( $id:ident = $protocol:ident, $filter:literal, $name:literal, $kind:expr $(, mask $mask:literal)? $(, values $values:expr)?; )+) => {
        /// Index of a field.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum F { $( $id, )+ }

        impl F {
            /// All fields, in the order of the list.
            pub const ALL: &'static [Self] = &[ $( Self::$id, )+ ];

            /// Returns its definition in the list.
            pub const fn def(self) -> &'static Field {
                const DEFS: &[Field] = &[ $( Field {
                    protocol: P::$protocol,
                    filter: $filter,
                    name: $name,
                    kind: $kind,
                    mask: 0 $( | $mask )?,
                    values: fields!(@values $($values)?),
                }, )+ ];
                &DEFS[self as usize]
            }
        }
    };
    (@values) => { &[] };
    (@values $values:expr) => { $values };
}

/// Actions of a node that does not recognise an option (RFC 8200 section 4.2).
pub const ACTIONS: Values = &[
    (0, "Skip and continue"),
    (1, "Discard"),
    (2, "Discard and send ICMPv6 Parameter Problem, code 2"),
    (
        3,
        "Discard and send ICMPv6 Parameter Problem, code 2, unless multicast",
    ),
];
/// Wireshark's own names for the status of a checksum.
pub const CHECKSUM: Values = &[(0, "Bad"), (1, "Good"), (2, "Unverified")];
/// Status of a checksum that was not verified.
pub const UNVERIFIED: u32 = 2;
/// IOAM option types (RFC 9197 section 7.1, RFC 9326).
pub const IOAM_TYPES: Values = &[
    (0, "Pre-allocated Trace"),
    (1, "Incremental Trace"),
    (2, "Proof of Transit"),
    (3, "Edge to Edge"),
    (4, "Direct Export"),
];
const OPCODES: Values = &[(0x81, "CNP")];
const PREFIX_TLVS: Values = &[
    (3, "Inter-Area-Prefix"),
    (5, "External-Prefix"),
    (6, "Intra-Area-Prefix"),
];
const CSIG_TYPES: Values = &[
    (0, "Minimum available bandwidth"),
    (1, "Minimum available bandwidth as a share of capacity"),
    (2, "Maximum delay of a hop"),
    (3, "Maximum queue depth"),
];
const AFIS: Values = &[(1, "IPv4"), (2, "IPv6")];
const SAFIS: Values = &[(1, "Unicast"), (4, "Labeled unicast"), (128, "Labeled VPN")];

fields! {
    RoceFecn = Roce, "rocev2.fecn", "FECN", Kind::Flag(8), mask 0x80;
    RoceBecn = Roce, "rocev2.becn", "BECN", Kind::Flag(8), mask 0x40;
    RoceIcrc = Roce, "rocev2.icrc", "ICRC", Kind::Hex(32);
    RoceIcrcStatus = Roce, "rocev2.icrc.status", "ICRC Status", Kind::Named(8), values CHECKSUM;
    RoceIcrcMatches = Roce, "rocev2.icrc.matches", "ICRC reading that matches", Kind::Text;
    RoceIcrcUnchecked = Roce, "rocev2.icrc.unchecked", "ICRC unchecked because", Kind::Text;
    RoceRetransmission = Roce, "rocev2.retransmission_of", "Retransmission of the packet in frame", Kind::Frame(Link::Cause);
    RoceRetransmitted = Roce, "rocev2.retransmitted_after", "Time since the first transmission", Kind::Span;
    RoceAcknowledges = Roce, "rocev2.acknowledges", "Acknowledges the packet in frame", Kind::Frame(Link::Cause);
    RoceRefuses = Roce, "rocev2.refuses", "Refuses the packet in frame (NAK)", Kind::Frame(Link::Cause);
    RoceRoundTrip = Roce, "rocev2.round_trip", "Round-trip time", Kind::Span;

    RoceTrimmed = Roce, "rocev2.trimmed", "Sign that a switch has trimmed it (lengths, dscp or reth)", Kind::Text;

    CnpQuoted = Cnp, "cnp.quoted", "Quoted Congestion Notification Packet", Kind::Node;
    CnpSender4 = Cnp, "cnp.sender_ipv4", "Notified sender", Kind::Ipv4;
    CnpSender6 = Cnp, "cnp.sender_ipv6", "Notified sender", Kind::Ipv6;
    CnpOpcode = Cnp, "cnp.opcode", "Opcode", Kind::Hex(8), values OPCODES;
    CnpPkey = Cnp, "cnp.p_key", "Partition Key", Kind::Hex(16);
    CnpFecn = Cnp, "cnp.fecn", "FECN", Kind::Flag(8), mask 0x80;
    CnpBecn = Cnp, "cnp.becn", "BECN", Kind::Flag(8), mask 0x40;
    CnpDestQp = Cnp, "cnp.dest_qp", "Destination QP (at the sender)", Kind::Hex(24);
    CnpPsn = Cnp, "cnp.psn", "PSN", Kind::Dec(24);
    CnpReserved = Cnp, "cnp.reserved", "Reserved", Kind::Bytes;

    FastQuoted = FastCnp, "fastcnp.quoted", "Quoted Fast Congestion Notification Packet", Kind::Node;
    FastSwitch = FastCnp, "fastcnp.switch", "Congested switch", Kind::Ipv6;
    FastFromReceiver = FastCnp, "fastcnp.from_receiver", "Sent by the receiver", Kind::Flag(0);
    FastSender = FastCnp, "fastcnp.sender", "Notified sender", Kind::Ipv6;
    FastReceiver = FastCnp, "fastcnp.receiver", "Receiver of the flow", Kind::Ipv6;
    FastOpcode = FastCnp, "fastcnp.cnp.opcode", "Opcode", Kind::Hex(8), values OPCODES;
    FastPkey = FastCnp, "fastcnp.cnp.p_key", "Partition Key", Kind::Hex(16);
    FastFecn = FastCnp, "fastcnp.cnp.fecn", "FECN", Kind::Flag(8), mask 0x80;
    FastBecn = FastCnp, "fastcnp.cnp.becn", "BECN", Kind::Flag(8), mask 0x40;
    FastDestQp = FastCnp, "fastcnp.cnp.dest_qp", "Destination QP (at the receiver)", Kind::Hex(24);
    FastPsn = FastCnp, "fastcnp.cnp.psn", "PSN", Kind::Dec(24);
    FastReserved = FastCnp, "fastcnp.cnp.reserved", "Reserved", Kind::Bytes;

    FastOption = FastCnp, "fastcnp.option", "Fast CNP option", Kind::Node;
    FastOptionNumber = FastCnp, "fastcnp.option.number", "Fast CNP option number", Kind::Dec(8);
    FastOptionType = FastCnp, "fastcnp.option.type", "Option Type", Kind::Hex(8);
    FastOptionAction = FastCnp, "fastcnp.option.type.action", "Action", Kind::Dec(8), mask 0xC0, values ACTIONS;
    FastOptionChange = FastCnp, "fastcnp.option.type.change", "May Change", Kind::Flag(8), mask 0x20;
    FastOptionRest = FastCnp, "fastcnp.option.type.rest", "Rest", Kind::Hex(8), mask 0x1F;
    FastOptionLength = FastCnp, "fastcnp.option.length", "Opt Data Len", Kind::Dec(8);
    FastOptionReserved = FastCnp, "fastcnp.option.reserved", "Reserved", Kind::Hex(8);
    FastOptionIoamType = FastCnp, "fastcnp.option.ioam_opt_type", "IOAM Opt-Type", Kind::Dec(8), values IOAM_TYPES;
    FastOptionIoamBody = FastCnp, "fastcnp.option.ioam_data", "IOAM data", Kind::Bytes;
    FastOptionDestination = FastCnp, "fastcnp.option.original_destination", "Original destination", Kind::Ipv6;

    Trace = FastCnp, "fastcnp.trace", "IOAM trace", Kind::Node;
    TraceNamespace = FastCnp, "fastcnp.trace.namespace", "Namespace-ID", Kind::Dec(16);
    TraceNodeLen = FastCnp, "fastcnp.trace.node_len", "NodeLen (4-octet units)", Kind::Dec(16), mask 0xF800;
    TraceFlags = FastCnp, "fastcnp.trace.flags", "Flags", Kind::Hex(16), mask 0x0780;
    TraceOverflow = FastCnp, "fastcnp.trace.flags.overflow", "Overflow", Kind::Flag(16), mask 0x0400;
    TraceLoopback = FastCnp, "fastcnp.trace.flags.loopback", "Loopback", Kind::Flag(16), mask 0x0200;
    TraceActive = FastCnp, "fastcnp.trace.flags.active", "Active", Kind::Flag(16), mask 0x0100;
    TraceFlagUndefined = FastCnp, "fastcnp.trace.flags.undefined", "Undefined", Kind::Flag(16), mask 0x0080;
    TraceRemainingLen = FastCnp, "fastcnp.trace.remaining_len", "RemainingLen (4-octet units)", Kind::Dec(16), mask 0x007F;
    TraceType = FastCnp, "fastcnp.trace.type", "IOAM-Trace-Type", Kind::Hex(24);
    TraceBit0 = FastCnp, "fastcnp.trace.type.bit0", "Bit 0: Hop Limit and node identifier", Kind::Flag(24), mask 0x80_0000;
    TraceBit1 = FastCnp, "fastcnp.trace.type.bit1", "Bit 1: interface identifiers", Kind::Flag(24), mask 0x40_0000;
    TraceBit2 = FastCnp, "fastcnp.trace.type.bit2", "Bit 2: timestamp seconds", Kind::Flag(24), mask 0x20_0000;
    TraceBit3 = FastCnp, "fastcnp.trace.type.bit3", "Bit 3: timestamp fraction", Kind::Flag(24), mask 0x10_0000;
    TraceBit4 = FastCnp, "fastcnp.trace.type.bit4", "Bit 4: transit delay", Kind::Flag(24), mask 0x08_0000;
    TraceBit5 = FastCnp, "fastcnp.trace.type.bit5", "Bit 5: namespace data", Kind::Flag(24), mask 0x04_0000;
    TraceBit6 = FastCnp, "fastcnp.trace.type.bit6", "Bit 6: queue depth", Kind::Flag(24), mask 0x02_0000;
    TraceBit7 = FastCnp, "fastcnp.trace.type.bit7", "Bit 7: checksum complement", Kind::Flag(24), mask 0x01_0000;
    TraceBit8 = FastCnp, "fastcnp.trace.type.bit8", "Bit 8: Hop Limit and wide node identifier", Kind::Flag(24), mask 0x8000;
    TraceBit9 = FastCnp, "fastcnp.trace.type.bit9", "Bit 9: wide interface identifiers", Kind::Flag(24), mask 0x4000;
    TraceBit10 = FastCnp, "fastcnp.trace.type.bit10", "Bit 10: wide namespace data", Kind::Flag(24), mask 0x2000;
    TraceBit11 = FastCnp, "fastcnp.trace.type.bit11", "Bit 11: buffer occupancy", Kind::Flag(24), mask 0x1000;
    TraceUndefined = FastCnp, "fastcnp.trace.type.undefined", "Bits 12 to 21: undefined", Kind::Hex(24), mask 0x0FFC;
    TraceBit22 = FastCnp, "fastcnp.trace.type.bit22", "Bit 22: opaque state snapshot", Kind::Flag(24), mask 0x02;
    TraceBit23 = FastCnp, "fastcnp.trace.type.bit23", "Bit 23: reserved", Kind::Flag(24), mask 0x01;
    TraceReserved = FastCnp, "fastcnp.trace.reserved", "Reserved", Kind::Hex(8);
    TraceFree = FastCnp, "fastcnp.trace.free", "Free space", Kind::Bytes;
    TraceUnread = FastCnp, "fastcnp.trace.unread", "Node data that cannot be read", Kind::Bytes;
    Node = FastCnp, "fastcnp.node", "Node data", Kind::Node;
    NodeHopLimit = FastCnp, "fastcnp.node.hop_limit", "Hop Limit", Kind::Dec(8);
    NodeId = FastCnp, "fastcnp.node.id", "Node identifier", Kind::Hex(24);
    NodeIngress = FastCnp, "fastcnp.node.ingress_if", "Ingress interface", Kind::Dec(16);
    NodeEgress = FastCnp, "fastcnp.node.egress_if", "Egress interface", Kind::Dec(16);
    NodeSeconds = FastCnp, "fastcnp.node.timestamp_seconds", "Timestamp seconds", Kind::Dec(32);
    NodeFraction = FastCnp, "fastcnp.node.timestamp_fraction", "Timestamp fraction", Kind::Dec(32);
    NodeDelay = FastCnp, "fastcnp.node.transit_delay", "Transit delay (nanoseconds; top bit: overflow)", Kind::Dec(32);
    NodeData = FastCnp, "fastcnp.node.namespace_data", "Namespace data", Kind::Hex(32);
    NodeQueue = FastCnp, "fastcnp.node.queue_depth", "Queue depth", Kind::Dec(32);
    NodeComplement = FastCnp, "fastcnp.node.checksum_complement", "Checksum complement", Kind::Hex(32);
    NodeIdWide = FastCnp, "fastcnp.node.id_wide", "Wide node identifier", Kind::Hex(56);
    NodeIngressWide = FastCnp, "fastcnp.node.ingress_if_wide", "Wide ingress interface", Kind::Dec(32);
    NodeEgressWide = FastCnp, "fastcnp.node.egress_if_wide", "Wide egress interface", Kind::Dec(32);
    NodeDataWide = FastCnp, "fastcnp.node.namespace_data_wide", "Wide namespace data", Kind::Hex(64);
    NodeBuffer = FastCnp, "fastcnp.node.buffer_occupancy", "Buffer occupancy", Kind::Dec(32);
    NodeUndefined = FastCnp, "fastcnp.node.undefined", "Data of an undefined bit", Kind::Hex(32);
    NodeOpaque = FastCnp, "fastcnp.node.opaque", "Opaque state snapshot", Kind::Node;
    NodeOpaqueLength = FastCnp, "fastcnp.node.opaque.length", "Length (4-octet units)", Kind::Dec(8);
    NodeOpaqueSchema = FastCnp, "fastcnp.node.opaque.schema", "Schema identifier", Kind::Hex(24);
    NodeOpaqueData = FastCnp, "fastcnp.node.opaque.data", "Opaque data", Kind::Bytes;

    ProxyOptionType = ProxyOption, "proxycn.option.opt_type", "Option Type", Kind::Hex(8);
    ProxyOptionAction = ProxyOption, "proxycn.option.opt_type.action", "Action", Kind::Dec(8), mask 0xC0, values ACTIONS;
    ProxyOptionChange = ProxyOption, "proxycn.option.opt_type.change", "May Change", Kind::Flag(8), mask 0x20;
    ProxyOptionRest = ProxyOption, "proxycn.option.opt_type.rest", "Rest", Kind::Hex(8), mask 0x1F;
    ProxyOptionLength = ProxyOption, "proxycn.option.opt_len", "Opt Data Len", Kind::Dec(8);
    ProxyOptionAddress = ProxyOption, "proxycn.option.proxy_address", "Proxy node", Kind::Ipv6;

    ProxySource4 = ProxyCn, "proxycn.source_ipv4", "Source of the flow (the sender)", Kind::Ipv4;
    ProxySource6 = ProxyCn, "proxycn.source_ipv6", "Source of the flow (the sender)", Kind::Ipv6;
    ProxyDestination4 = ProxyCn, "proxycn.destination_ipv4", "Destination of the flow (the receiver)", Kind::Ipv4;
    ProxyDestination6 = ProxyCn, "proxycn.destination_ipv6", "Destination of the flow (the receiver)", Kind::Ipv6;
    ProxyProtocol = ProxyCn, "proxycn.protocol", "Protocol", Kind::Dec(8);
    ProxySourcePort = ProxyCn, "proxycn.source_port", "Source port", Kind::Dec(16);
    ProxyDestinationPort = ProxyCn, "proxycn.destination_port", "Destination port", Kind::Dec(16);
    ProxyLevel = ProxyCn, "proxycn.level", "Congestion level (0 lowest, 7 highest)", Kind::Dec(24), mask 0xE0_0000;
    ProxyReserved = ProxyCn, "proxycn.reserved", "Reserved", Kind::Hex(24), mask 0x1F_FFFF;
    ProxyInvoking = ProxyCn, "proxycn.invoking_packet", "Invoking packet", Kind::Node;

    WanFlowLabel = WanFcn, "wanfcn.flow_label", "Flow label of the outer IPv6 header", Kind::Hex(32), mask 0xFFFF_F000;
    WanLevel = WanFcn, "wanfcn.level", "Congestion level (1 lowest, 7 highest)", Kind::Dec(32), mask 0x0E00;
    WanReserved = WanFcn, "wanfcn.reserved", "Reserved", Kind::Hex(32), mask 0x01FF;
    WanExtra = WanFcn, "wanfcn.extra", "Octets after the message", Kind::Bytes;

    FcnKind = Fcn, "fcn.kind", "Kind", Kind::Text;
    FcnKindName = Fcn, "fcn.kind.name", "Kind (name)", Kind::Text;
    FcnNotifierRole = Fcn, "fcn.notifier_role", "Role of the notifier's address", Kind::Text;
    FcnMadeBy = Fcn, "fcn.made_by", "Sent by (inferred)", Kind::Text;
    FcnMadeByEvidence = Fcn, "fcn.made_by_evidence", "Evidence for who sent it", Kind::Text;
    FcnNotifier4 = Fcn, "fcn.notifier_ipv4", "Notifier", Kind::Ipv4;
    FcnNotifier6 = Fcn, "fcn.notifier_ipv6", "Notifier", Kind::Ipv6;
    FcnSender4 = Fcn, "fcn.sender_ipv4", "Sender", Kind::Ipv4;
    FcnSender6 = Fcn, "fcn.sender_ipv6", "Sender", Kind::Ipv6;
    FcnQp = Fcn, "fcn.qp", "QP in the notification", Kind::Hex(24);
    FcnQpSide = Fcn, "fcn.qp_side", "Owner of the QP (sender or receiver)", Kind::Text;
    FcnEnd = Fcn, "fcn.end", "Connection endpoint (address and QP)", Kind::Text;
    FcnEndSender = Fcn, "fcn.end.sender", "Sender (address and QP)", Kind::Text;
    FcnEndOther = Fcn, "fcn.end.other", "Receiver or notifier (address and QP)", Kind::Text;
    FcnLevel = Fcn, "fcn.level", "Congestion level", Kind::Dec(8);
    FcnQueue = Fcn, "fcn.queue", "Deepest queue on the path", Kind::Dec(32);
    FcnHops = Fcn, "fcn.hops", "Nodes in the trace", Kind::Dec(8);
    FcnDscp = Fcn, "fcn.dscp", "DSCP", Kind::Dec(8);
    FcnEcn = Fcn, "fcn.ecn", "ECN", Kind::Text;
    FcnVlanPriority = Fcn, "fcn.vlan_priority", "VLAN priority", Kind::Dec(8);
    FcnDataDscp = Fcn, "fcn.data_dscp", "DSCP of the flow's data", Kind::Dec(8);
    FcnDataVlanPriority = Fcn, "fcn.data_vlan_priority", "VLAN priority of the flow's data", Kind::Dec(8);
    FcnClass = Fcn, "fcn.class", "Traffic class relative to the data's", Kind::Text;
    FcnSenderQp = Fcn, "fcn.sender_qp", "QP at the sender", Kind::Hex(24);
    FcnSenderQpFrom = Fcn, "fcn.sender_qp_from", "QP at the sender known from", Kind::Text;
    FcnReceiverQp = Fcn, "fcn.receiver_qp", "QP at the receiver", Kind::Hex(24);
    FcnReceiverQpFrom = Fcn, "fcn.receiver_qp_from", "QP at the receiver known from", Kind::Text;
    FcnGap = Fcn, "fcn.gap", "Time since the previous notification (same kind, same QP)", Kind::Span;
    FcnData = Fcn, "fcn.data_frame", "Data frame", Kind::Frame(Link::Cause);
    FcnDataDelay = Fcn, "fcn.data_delay", "Time since the data frame", Kind::Span;
    FcnMarked = Fcn, "fcn.marked_frame", "Last CE mark before it in frame", Kind::Frame(Link::Cause);
    FcnMarkedDelay = Fcn, "fcn.marked_delay", "Time since the CE mark", Kind::Span;
    FcnTranslates = Fcn, "fcn.translates", "Translates the notification in frame", Kind::Frame(Link::Cause);
    FcnMayTranslate = Fcn, "fcn.may_translate", "May translate the notification in frame", Kind::Frame(Link::Cause);
    FcnTranslationDelay = Fcn, "fcn.translation_delay", "Translation delay", Kind::Span;
    FcnTranslatedBy = Fcn, "fcn.translated_by", "Translated to a CNP in frame", Kind::Frame(Link::Effect);
    FcnCopyOf = Fcn, "fcn.copy_of", "Copy of frame", Kind::Frame(Link::Cause);
    FcnDataNode = Fcn, "fcn.data", "Data of a notified flow", Kind::Node;
    FcnNotifiedBy = Fcn, "fcn.notified_by", "Notification in frame", Kind::Frame(Link::Effect);
    FcnRateBefore = Fcn, "fcn.rate_before", "Data rate before (bit/s)", Kind::Dec(64);
    FcnRateAfter = Fcn, "fcn.rate_after", "Data rate after (bit/s)", Kind::Dec(64);
    FcnVerdict = Fcn, "fcn.verdict", "Verdict on the sender", Kind::Text;
    FcnEvidence = Fcn, "fcn.evidence", "Evidence for the verdict", Kind::Text;
    FcnAdvice = Fcn, "fcn.advice", "Advice for a clear verdict", Kind::Text;
    FcnMeasured = Fcn, "fcn.measured", "Notifications measured for the verdict", Kind::Dec(32);

    PncCapable = Pnc, "pnc.capable", "Proxy node capable", Kind::Flag(0);
    PncPrefix = Pnc, "pnc.prefix", "Prefix", Kind::Text;
    PncPrefix4 = Pnc, "pnc.prefix_ipv4", "Address of the prefix", Kind::Ipv4;
    PncPrefix6 = Pnc, "pnc.prefix_ipv6", "Address of the prefix", Kind::Ipv6;
    PncIsisFlags = Pnc, "pnc.isis.flags", "Prefix Attribute Flags (first octet)", Kind::Hex(8);
    PncIsisFlag = Pnc, "pnc.isis.flags.pnc", "Proxy Node Capability", Kind::Flag(8), mask 0x01;
    PncTlv = Pnc, "pnc.ospfv3.tlv", "Prefix TLV", Kind::Node;
    PncTlvType = Pnc, "pnc.ospfv3.tlv.type", "TLV Type", Kind::Dec(16), values PREFIX_TLVS;
    PncTlvLength = Pnc, "pnc.ospfv3.tlv.length", "TLV Length", Kind::Dec(16);
    PncTlvFlags = Pnc, "pnc.ospfv3.tlv.flags", "Flags (External-Prefix)", Kind::Hex(32), mask 0xFF00_0000;
    PncTlvMetric = Pnc, "pnc.ospfv3.tlv.metric", "Metric", Kind::Dec(32), mask 0x00FF_FFFF;
    PncTlvBits = Pnc, "pnc.ospfv3.tlv.prefix_length", "Prefix Length", Kind::Dec(8);
    PncTlvOptions = Pnc, "pnc.ospfv3.tlv.prefix_options", "Prefix Options", Kind::Hex(8);
    PncSub = Pnc, "pnc.ospf.sub_tlv", "Prefix Extended Flags sub-TLV", Kind::Node;
    PncSubType = Pnc, "pnc.ospf.sub_tlv.type", "Sub-TLV Type", Kind::Dec(16);
    PncSubLength = Pnc, "pnc.ospf.sub_tlv.length", "Sub-TLV Length", Kind::Dec(16);
    PncOspfFlags = Pnc, "pnc.ospf.flags", "Prefix Extended Flags (first word)", Kind::Hex(32);
    PncOspfFlag = Pnc, "pnc.ospf.flags.pnc", "Proxy Node Capability", Kind::Flag(32), mask 0x2000_0000;
    PncOspfRest = Pnc, "pnc.ospf.flags.more", "Other octets of the flags", Kind::Bytes;
    PncNhcAfi = Pnc, "pnc.nhc.afi", "Address family (AFI)", Kind::Dec(16), values AFIS;
    PncNhcSafi = Pnc, "pnc.nhc.safi", "Subsequent address family (SAFI)", Kind::Dec(8), values SAFIS;
    PncNhcHopLength = Pnc, "pnc.nhc.next_hop_length", "Next Hop Length", Kind::Dec(8);
    PncNhcHop4 = Pnc, "pnc.nhc.next_hop_ipv4", "Next Hop", Kind::Ipv4;
    PncNhcHop6 = Pnc, "pnc.nhc.next_hop_ipv6", "Next Hop", Kind::Ipv6;
    PncNhcHop = Pnc, "pnc.nhc.next_hop", "Next Hop (octets)", Kind::Bytes;
    PncCharacteristic = Pnc, "pnc.nhc.characteristic", "Characteristic", Kind::Node;
    PncCharacteristicCode = Pnc, "pnc.nhc.characteristic.code", "Characteristic Code", Kind::Dec(16);
    PncCharacteristicLength = Pnc, "pnc.nhc.characteristic.length", "Characteristic Length", Kind::Dec(16);
    PncCharacteristicValue = Pnc, "pnc.nhc.characteristic.value", "Characteristic Value", Kind::Bytes;
    PncNhcUnread = Pnc, "pnc.nhc.unread", "Octets that cannot be read", Kind::Bytes;
    PncLeftOut = Pnc, "pnc.left_out.prefixes", "Prefixes not listed", Kind::Dec(32);
    PncLeftOutAttributes = Pnc, "pnc.left_out.attributes", "Attributes not listed", Kind::Dec(32);
    PncLeftOutCharacteristics = Pnc, "pnc.left_out.characteristics", "Characteristics not listed", Kind::Dec(32);
    PncLeftOutFindings = Pnc, "pnc.left_out.findings", "Findings not listed", Kind::Dec(32);
    PncLeftOutMessages = Pnc, "pnc.left_out.messages", "Routing messages not listed", Kind::Dec(32);
    CnmVersion = Cnm, "cnm.version", "Version", Kind::Dec(16), mask 0xF000;
    CnmReserved = Cnm, "cnm.reserved", "Reserved", Kind::Hex(16), mask 0x0FC0;
    CnmFeedback = Cnm, "cnm.feedback", "Quantised feedback", Kind::Dec(16), mask 0x003F;
    CnmCpid = Cnm, "cnm.cpid", "Congestion point identifier (CPID)", Kind::Hex(64);
    CnmQueueOffset = Cnm, "cnm.qoffset", "Queue offset (units of 64 octets; negative: above the set point)", Kind::Signed;
    CnmQueueDelta = Cnm, "cnm.qdelta", "Queue delta (units of 64 octets)", Kind::Signed;
    CnmPriority = Cnm, "cnm.priority", "Priority of the frame", Kind::Dec(16), mask 0xE000;
    CnmPriorityReserved = Cnm, "cnm.priority.reserved", "Reserved", Kind::Hex(16), mask 0x1FFF;
    CnmDestination = Cnm, "cnm.destination", "Destination MAC address of the frame", Kind::Mac;
    CnmMsduLength = Cnm, "cnm.msdu_length", "MSDU length", Kind::Dec(16);
    CnmMsdu = Cnm, "cnm.msdu", "First octets of the frame's MSDU", Kind::Bytes;
    CnmMsduType = Cnm, "cnm.msdu.ether_type", "EtherType of the frame", Kind::Hex(16);
    CnTagFlow = CnTag, "cntag.flow", "Flow identifier of the source", Kind::Dec(16);
    CnTagType = CnTag, "cntag.ether_type", "EtherType of the payload", Kind::Hex(16);
    CsigType = Csig, "csig.type", "Type", Kind::Dec(16), mask 0xE000, values CSIG_TYPES;
    CsigReserved = Csig, "csig.reserved", "Reserved", Kind::Flag(16), mask 0x1000;
    CsigSignal = Csig, "csig.signal", "Signal", Kind::Dec(16), mask 0x0F80;
    CsigLocator = Csig, "csig.locator", "Locator of the bottleneck", Kind::Dec(16), mask 0x007F;
    CsigPayloadType = Csig, "csig.ether_type", "EtherType of the payload", Kind::Hex(16);
    FcnForgotten = Fcn, "fcn.forgotten", "Forgotten", Kind::Text;
    FcnFinding = Fcn, "fcn.finding", "Broken rule", Kind::Text;
    FcnFindingLeftOut = Fcn, "fcn.finding.left_out", "Broken rules not listed", Kind::Dec(32);
    FcnFindingSeverity = Fcn, "fcn.finding.severity", "Severity (error, warning or note)", Kind::Text;
}

impl F {
    /// Returns the `N` fields of the list that begin with this one: formats with the same parts
    /// list them in the same order.
    pub const fn run<const N: usize>(self) -> [Self; N] {
        let mut run = [self; N];
        let mut i = 0;
        while i < N {
            run[i] = Self::ALL[self as usize + i];
            i += 1;
        }
        run
    }
}

macro_rules! nodes {
    ($( $(#[$doc:meta])* $id:ident = $place:ident [ $($filter:literal),+ ]; )+) => {
        /// A field of Wireshark's own that ours are placed in or beside.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Node { $( $(#[$doc])* $id, )+ }

        impl Node {
            /// All nodes with their filter names, in the order of the list.
            pub const ALL: &'static [(Self, &'static [&'static CStr])] = &[ $( (Self::$id, &[ $($filter),+ ]), )+ ];

            /// True if our items are placed beside it rather than in it.
            pub const fn is_sibling(self) -> bool {
                const WITHIN: bool = false;
                const BESIDE: bool = true;
                match self { $( Self::$id => $place, )+ }
            }
        }
    };
}

nodes! {
    /// IPv6 option.
    Ipv6Option = WITHIN [c"ipv6.opt"];
    /// Type of an IPv6 option.
    OptionType = WITHIN [c"ipv6.opt.type"];
    /// Length of an IPv6 option.
    OptionLength = WITHIN [c"ipv6.opt.length"];
    /// Data of an option that Wireshark does not recognise.
    OptionUnknown = WITHIN [c"ipv6.opt.unknown"];
    /// Our Fast CNP.
    FastCnp = WITHIN [c"fastcnp"];
    /// InfiniBand Base Transport Header (BTH).
    Bth = WITHIN [c"infiniband.bth"];
    /// Opcode of the BTH.
    BthOpcode = WITHIN [c"infiniband.bth.opcode"];
    /// Partition key of the BTH.
    BthPkey = WITHIN [c"infiniband.bth.p_key"];
    /// PSN of the BTH.
    BthPsn = WITHIN [c"infiniband.bth.psn"];
    /// InfiniBand packet.
    InfiniBand = WITHIN [c"infiniband"];
    /// MAC control frame.
    MacControl = WITHIN [c"macc"];
    /// LSP, by its PDU length.
    IsisLsp = WITHIN [c"isis.lsp"];
    /// First field of an IS-IS prefix: its metric.
    IsisPrefix = BESIDE [c"isis.lsp.ext_ip_reachability.metric", c"isis.lsp.ipv6_reachability.metric", c"isis.lsp.srv6_locator.metric"];
    /// OSPF packet.
    Ospf = WITHIN [c"ospf"];
    /// First field of an OSPFv2 Extended Prefix TLV.
    Ospf2Prefix = BESIDE [c"ospf.tlv.extpfx.tlv_type"];
    /// First field of a TLV in an extended LSA; not every Wireshark has it.
    Ospf3Prefix = BESIDE [c"ospf.v3.elsa.tlv_type"];
    /// LS type of an OSPFv3 LSA.
    Ospf3Lsa = BESIDE [c"ospf.v3.lsa"];
    /// BGP message.
    Bgp = WITHIN [c"bgp"];
    /// BGP path attribute.
    BgpAttribute = WITHIN [c"bgp.update.path_attribute"];
    /// First field of a BGP prefix: its length.
    BgpPrefix = BESIDE [c"bgp.prefix_length"];
}

fcn_wire::identified! {
    /// Expert infos of `rocev2` that no rule is behind, by their names in display filters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    Remark {
        /// A switch has trimmed the packet.
        Trimmed = "rocev2.trimmed.comment",
        /// The flow stalled before the packet.
        Stalled = "rocev2.stalled",
        /// The flow's data is Not-ECT.
        NotEct = "rocev2.not_ect",
        /// The sender has probably exhausted its retries.
        Exhausted = "rocev2.retries_exhausted",
    }
}

impl Remark {
    /// Returns the text.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Trimmed => "A switch has trimmed the packet instead of dropping it",
            Self::Stalled => Incident::STALLED,
            Self::NotEct => Incident::NOT_ECT,
            Self::Exhausted => Incident::EXHAUSTED,
        }
    }

    /// Returns the severity; `None` for a comment.
    pub const fn severity(self) -> Option<Severity> {
        match self {
            Self::Trimmed => None,
            Self::Stalled | Self::NotEct => Some(Severity::Note),
            Self::Exhausted => Some(Severity::Warning),
        }
    }
}

/// Returns the protocol that the expert info of `rule` belongs to. Rules of formats that are not a
/// protocol here belong to the protocol that shows them.
pub const fn expert_protocol(rule: Rule) -> P {
    match rule.info().family {
        Family::Cnp => P::Cnp,
        Family::FastCnp | Family::Ioam => P::FastCnp,
        Family::ProxyCn => P::ProxyCn,
        Family::ProxyAddress => P::ProxyOption,
        Family::WanFcn => P::WanFcn,
        Family::Packet | Family::Class => P::Fcn,
        Family::Roce | Family::Pfc => P::Roce,
        Family::Pnc => P::Pnc,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Reserved words of Wireshark's filter language; no protocol may have one of these names.
    const RESERVED: &[&str] = &[
        "eq",
        "ne",
        "all_eq",
        "any_eq",
        "all_ne",
        "any_ne",
        "gt",
        "ge",
        "lt",
        "le",
        "bitwise_and",
        "contains",
        "matches",
        "not",
        "and",
        "or",
        "xor",
        "in",
        "any",
        "all",
        "true",
        "false",
        "nan",
        "inf",
    ];

    fn is_filter_name(name: &str) -> bool {
        !name.is_empty()
            && !name.contains("..")
            && name.split('.').all(|part| {
                !part.is_empty()
                    && part
                        .bytes()
                        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
            })
            && name.as_bytes()[0].is_ascii_lowercase()
    }

    #[test]
    fn protocol_names_satisfy_wireshark() {
        let mut names = HashSet::new();
        for protocol in P::ALL {
            let def = protocol.def();
            assert!(is_filter_name(def.filter), "{}", def.filter);
            assert!(!RESERVED.contains(&def.filter), "{}", def.filter);
            for name in [def.name, def.short, def.filter] {
                assert_eq!(name, name.trim());
            }
            assert!(names.insert(def.filter), "{} twice", def.filter);
            assert!(names.insert(def.name), "{} twice", def.name);
            assert!(
                def.short == def.name || names.insert(def.short),
                "{} twice",
                def.short
            );
        }
    }

    #[test]
    fn field_names_are_lower_case_unique_and_prefixed_by_protocol() {
        let mut names: HashSet<String> = P::ALL.iter().map(|p| p.def().filter.to_owned()).collect();
        for field in F::ALL {
            let def = field.def();
            let prefix = format!("{}.", def.protocol.def().filter);
            assert!(def.filter.starts_with(&prefix), "{}", def.filter);
            assert!(is_filter_name(def.filter), "{}", def.filter);
            assert!(!def.name.trim().is_empty(), "{} has no name", def.filter);
            assert_eq!(def.name, def.name.trim(), "{}", def.filter);
            assert!(names.insert(def.filter.to_owned()), "{} twice", def.filter);
        }
        for rule in Rule::ALL {
            let (protocol, name) = (expert_protocol(*rule), rule.filter_name());
            assert!(
                name.starts_with(&format!("{}.", protocol.def().filter)),
                "{name}"
            );
            assert!(is_filter_name(&name), "{name}");
            assert!(names.insert(name.clone()), "{name} twice");
        }
    }

    /// Describes a field's type, as needed to compare it in a filter.
    fn type_of(field: &Field) -> String {
        match field.kind {
            Kind::Node => "subtree".to_owned(),
            Kind::Dec(bits) | Kind::Named(bits) => format!("number, {} bits", width(field, bits)),
            Kind::Hex(bits) => format!("number (hexadecimal), {} bits", width(field, bits)),
            Kind::Signed => "signed number, 16 bits".to_owned(),
            Kind::Flag(_) => "Boolean".to_owned(),
            Kind::Mac => "MAC address".to_owned(),
            Kind::Ipv4 => "IPv4 address".to_owned(),
            Kind::Ipv6 => "IPv6 address".to_owned(),
            Kind::Bytes => "octets".to_owned(),
            Kind::Text => "text".to_owned(),
            Kind::Frame(_) => "frame number".to_owned(),
            Kind::Span => "time, seconds".to_owned(),
        }
    }

    fn width(field: &Field, bits: u8) -> u32 {
        match field.mask {
            0 => bits.into(),
            mask => mask.count_ones(),
        }
    }

    /// Generates the page about fields from the lists.
    fn page() -> String {
        let mut text = String::from(
            "# Fields for display filters\n\n\
             Made from the plugin's lists (`dissector/src/names.rs`, `crates/wire/src/rules/finding.rs`); a test holds it to them, and \
             `cargo xtask docs` writes it anew. What the fields of `fcn` rest on is in [wireshark.md](wireshark.md).\n",
        );
        for protocol in P::ALL {
            let def = protocol.def();
            text += &format!("\n## `{}`\n\n{}\n\n", def.filter, def.name);
            let fields = F::ALL.iter().map(|field| field.def());
            let fields: Vec<_> = fields.filter(|field| field.protocol == *protocol).collect();
            if !fields.is_empty() {
                text += "| field | type | what |\n|---|---|---|\n";
            }
            for field in fields {
                let values = field.values.iter();
                let values: Vec<_> = values
                    .map(|(value, name)| format!("{value} {name}"))
                    .collect();
                let values = match values.is_empty() {
                    true => String::new(),
                    false => format!(": {}", values.join("; ")),
                };
                text += &format!(
                    "| `{}` | {} | {}{values} |\n",
                    field.filter,
                    type_of(field),
                    field.name
                );
            }
            let rules = Rule::ALL
                .iter()
                .filter(|rule| expert_protocol(**rule) == *protocol);
            let rules: Vec<_> = rules.collect();
            if *protocol == P::Roce {
                text += "\n| expert info | severity | text |\n|---|---|---|\n";
                for remark in Remark::ALL {
                    let severity = remark
                        .severity()
                        .map_or_else(|| "comment".to_owned(), |severity| severity.to_string());
                    text += &format!("| `{}` | {severity} | {} |\n", remark.id(), remark.text());
                }
            }
            if !rules.is_empty() {
                text += "\n| rule | severity | broken | source |\n|---|---|---|---|\n";
            }
            for rule in rules {
                let info = rule.info();
                text += &format!(
                    "| `{}` | {} | {} | {} |\n",
                    rule.filter_name(),
                    info.severity,
                    info.text,
                    info.section
                );
            }
        }
        text
    }

    #[test]
    fn the_page_about_fields_is_made_from_the_lists() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/fields.md");
        if std::env::var_os("INSTA_UPDATE").is_some_and(|value| value == "always") {
            std::fs::write(path, page()).unwrap();
        }
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            written == page(),
            "docs/fields.md: cargo xtask docs writes it"
        );
    }

    #[test]
    fn equal_formats_list_their_fields_in_the_same_order() {
        fn same<const N: usize>(one: F, other: F) {
            let parts = |first: F| first.run::<N>().map(|f| f.def().filter.rsplit_once('.'));
            let last = |first| parts(first).map(|name| name.unwrap().1.trim_start_matches("opt_"));
            let shorter = |name: &'static str| if name == "len" { "length" } else { name };
            assert_eq!(last(one).map(shorter), last(other).map(shorter));
        }
        same::<7>(F::CnpOpcode, F::FastOpcode);
        same::<5>(F::FastOptionType, F::ProxyOptionType);
    }

    #[test]
    fn every_name_is_under_a_known_prefix() {
        for name in F::ALL
            .iter()
            .map(|f| f.def().filter.to_owned())
            .chain(Rule::ALL.iter().map(|r| r.filter_name()))
        {
            assert!(
                [
                    "fastcnp.", "cnp.", "proxycn.", "wanfcn.", "rocev2.", "fcn.", "pnc.", "cnm.",
                    "cntag.", "csig."
                ]
                .iter()
                .any(|prefix| name.starts_with(prefix)),
                "{name}"
            );
        }
    }

    #[test]
    fn masks_fit_their_words_and_values_have_one_name_each() {
        for field in F::ALL {
            let def = field.def();
            let width = match def.kind {
                Kind::Dec(bits) | Kind::Hex(bits) | Kind::Flag(bits) => u32::from(bits),
                _ => {
                    assert_eq!(def.mask, 0, "{}", def.filter);
                    continue;
                }
            };
            assert!(
                [0, 8, 16, 24, 32, 56, 64].contains(&width),
                "{}",
                def.filter
            );
            assert!(
                width == 64 || def.mask >> width == 0,
                "{} is wider than its word",
                def.filter
            );
            if def.mask != 0 {
                let ones = def.mask >> def.mask.trailing_zeros();
                assert_eq!(ones & (ones + 1), 0, "{}: the mask has a hole", def.filter);
            }
            if let Kind::Flag(bits) = def.kind {
                assert_eq!(bits == 0, def.mask == 0, "{}", def.filter);
            }
            let mut seen = HashSet::new();
            for (value, text) in def.values {
                assert!(seen.insert(value), "{}: {value} twice", def.filter);
                assert!(!text.is_empty());
            }
        }
    }
}
