//! Where the fields of the headers around our messages lie, in octets from each header's start, how long the headers are,
//! and the numbers by which one names the next. `frame.rs` reads them, `compose.rs` writes them.

/// Linux cooked capture, which stands in Ethernet's place.
pub(crate) mod linux_cooked {
    /// EtherType in version 1.
    pub const TYPE: usize = 14;
    /// EtherType in version 2.
    pub const TYPE_2: usize = 0;
    /// What stands there where LLC follows.
    pub const LLC: u16 = 4;
    /// Octets of the header of version 1.
    pub const LEN: usize = 16;
    /// Octets of the header of version 2.
    pub const LEN_2: usize = 20;
}

/// Ethernet II.
pub mod ethernet {
    /// Destination address.
    pub const DESTINATION: usize = 0;
    /// Source address.
    pub const SOURCE: usize = 6;
    /// EtherType, or an IEEE 802.3 length: behind the addresses and the tags.
    pub const TYPE: usize = 12;
    /// The EtherType of IPv4.
    pub const IPV4: u16 = 0x0800;
    /// The EtherType of IPv6.
    pub const IPV6: u16 = 0x86DD;
    /// The EtherType of ARP.
    pub const ARP: u16 = 0x0806;
    /// The EtherType of an IEEE 802.1Q customer tag.
    pub const TAG: u16 = 0x8100;
    /// The EtherType of an IEEE 802.1ad service tag.
    pub const SERVICE_TAG: u16 = 0x88A8;
    /// The EtherType of the outer of two tags before IEEE 802.1ad.
    pub const OUTER_TAG: u16 = 0x9100;
    /// The EtherType of MPLS with a unicast label.
    pub const MPLS: u16 = 0x8847;
    /// The EtherType of MPLS with an upstream-assigned label.
    pub const MPLS_UPSTREAM: u16 = 0x8848;
    /// The least EtherType: what is less is an IEEE 802.3 length.
    pub const LEAST_TYPE: u16 = 0x0600;
    /// The greatest IEEE 802.3 length.
    pub const MAX_LENGTH: u16 = 1500;
    /// Octets of the header.
    pub const LEN: usize = 14;
    /// Octets of a VLAN tag.
    pub const TAG_LEN: usize = 4;
    /// In a VLAN tag, the EtherType of what it is in front of.
    pub const TAG_TYPE: usize = 2;
    /// Octets of an MPLS label stack entry.
    pub const LABEL_LEN: usize = 4;
}

/// IPv4.
pub mod ipv4 {
    /// DSCP and ECN.
    pub const TOS: usize = 1;
    /// Total length.
    pub const LENGTH: usize = 2;
    /// Identification.
    pub const IDENTIFICATION: usize = 4;
    /// Flags and fragment offset.
    pub const FRAGMENT: usize = 6;
    /// Time to live; the protocol is next to it.
    pub const TTL: usize = 8;
    /// Protocol.
    pub const PROTOCOL: usize = 9;
    /// Header checksum.
    pub const CHECKSUM: usize = 10;
    /// Source address.
    pub const SOURCE: usize = 12;
    /// Destination address.
    pub const DESTINATION: usize = 16;
    /// Octets of a header without options.
    pub const LEN: usize = 20;
    /// Octets of the longest header.
    pub const MAX_LEN: usize = 60;
}

/// IPv6; the first four octets hold version, traffic class and flow label.
pub mod ipv6 {
    /// Payload length.
    pub const LENGTH: usize = 4;
    /// Next header.
    pub const NEXT: usize = 6;
    /// Hop limit.
    pub const HOP_LIMIT: usize = 7;
    /// Source address.
    pub const SOURCE: usize = 8;
    /// Destination address.
    pub const DESTINATION: usize = 24;
    /// Octets of the header.
    pub const LEN: usize = 40;
}

/// IPv6 Routing header.
pub mod routing {
    /// Routing type.
    pub const TYPE: usize = 2;
    /// Segments left.
    pub const LEFT: usize = 3;
    /// Number of the last segment in the list, from 0 (RFC 8754).
    pub const LAST_ENTRY: usize = 4;
    /// The segments, or addresses.
    pub const SEGMENTS: usize = 8;
    /// Type of a segment routing header.
    pub const SEGMENT_ROUTING: u8 = 4;
}

/// IPv6 Fragment header.
pub(crate) mod fragment {
    /// Offset (13 bits), reserved, more fragments.
    pub const OFFSET: usize = 2;
    /// Identification.
    pub const IDENTIFICATION: usize = 4;
    /// Octets of the header.
    pub const LEN: usize = 8;
}

/// UDP.
pub mod udp {
    /// Source port.
    pub const SOURCE: usize = 0;
    /// Destination port.
    pub const DESTINATION: usize = 2;
    /// Length.
    pub const LENGTH: usize = 4;
    /// Checksum.
    pub const CHECKSUM: usize = 6;
    /// Octets of the header.
    pub const LEN: usize = 8;
    /// Octets of a VXLAN header behind it.
    pub const VXLAN_LEN: usize = 8;
    /// The flag of a VXLAN header, in its first octet, that says that there is a network identifier.
    pub const VXLAN_FLAG: u8 = 0x08;
}

/// VXLAN-GPE (draft-ietf-nvo3-vxlan-gpe).
pub(crate) mod vxlan_gpe {
    /// Flags.
    pub const FLAGS: usize = 0;
    /// What the payload is.
    pub const NEXT: usize = 3;
    /// Network identifier (24 bits).
    pub const VNI: usize = 4;
    /// Octets of the header.
    pub const LEN: usize = 8;
    /// Of the flags, those that tell whether it is one: version (2 bits), I, P, O.
    pub const TELLING: u8 = 0x3D;
    /// Those set in one that carries data: I (there is a network identifier), P (there is a next protocol).
    pub const DATA: u8 = 0x0C;
    /// The next protocol of IPv4.
    pub const IPV4: u8 = 1;
    /// The next protocol of IPv6.
    pub const IPV6: u8 = 2;
    /// The next protocol of Ethernet.
    pub const ETHERNET: u8 = 3;
    /// The next protocol of MPLS.
    pub const MPLS: u8 = 5;
}

/// Geneve (RFC 8926).
pub(crate) mod geneve {
    /// Version (2 bits), octets of options in units of 4 (6 bits).
    pub const OPTIONS_LEN: usize = 0;
    /// Flags.
    pub const FLAGS: usize = 1;
    /// EtherType of the payload.
    pub const TYPE: usize = 2;
    /// Network identifier (24 bits).
    pub const VNI: usize = 4;
    /// Octets of the header without options.
    pub const LEN: usize = 8;
    /// Octets of the most options.
    pub const MAX_OPTIONS: usize = 63 * 4;
    /// The flag of a control message.
    pub const CONTROL: u8 = 0x80;
}

/// GTP-U (3GPP TS 29.281).
pub(crate) mod gtp_u {
    /// Version (3 bits), protocol type, a spare bit, and which optional fields there are.
    pub const FLAGS: usize = 0;
    /// Message type.
    pub const TYPE: usize = 1;
    /// Octets behind the mandatory header.
    pub const LENGTH: usize = 2;
    /// Tunnel endpoint identifier.
    pub const TEID: usize = 4;
    /// Sequence number, where there are optional fields.
    pub const SEQUENCE: usize = 8;
    /// Type of the next extension header, where there are optional fields.
    pub const NEXT: usize = 11;
    /// Octets of the mandatory header.
    pub const LEN: usize = 8;
    /// Octets of the optional fields, of which there are all or none.
    pub const OPTIONAL_LEN: usize = 4;
    /// Of the flags, version and protocol type.
    pub const TELLING: u8 = 0xF0;
    /// What they are: version 1, GTP.
    pub const VERSION_1: u8 = 0x30;
    /// The flags of optional fields: extension header, sequence number, N-PDU number.
    pub const OPTIONAL: u8 = 7;
    /// The flag that there is an extension header.
    pub const EXTENSION: u8 = 4;
    /// The flag that there is a sequence number.
    pub const SEQUENCE_PRESENT: u8 = 2;
    /// The message type that carries a user's packet.
    pub const G_PDU: u8 = 255;
}

/// GRE (RFC 2784, RFC 2890).
pub(crate) mod gre {
    /// Flags and version.
    pub const FLAGS: usize = 0;
    /// EtherType of the payload.
    pub const TYPE: usize = 2;
    /// The first optional field; the checksum, where there is one.
    pub const CHECKSUM: usize = 4;
    /// Octets of the header without optional fields.
    pub const LEN: usize = 4;
    /// Octets of an optional field: checksum, key and sequence number, in this order.
    pub const FIELD_LEN: usize = 4;
    /// The flag that there is a checksum.
    pub const CHECKSUM_PRESENT: u16 = 0x8000;
    /// The flag that there is a key.
    pub const KEY_PRESENT: u16 = 0x2000;
    /// The flag that there is a sequence number.
    pub const SEQUENCE_PRESENT: u16 = 0x1000;
    /// Bits for which a receiver drops it that knows nothing of RFC 1701, and the version, which is 0.
    pub const REFUSED: u16 = 0x4C07;
    /// The EtherType of an Ethernet frame.
    pub const ETHERNET: u16 = 0x6558;
    /// The EtherType of ERSPAN types I and II.
    pub const ERSPAN: u16 = 0x88BE;
    /// The EtherType of ERSPAN type III.
    pub const ERSPAN_3: u16 = 0x22EB;
}

/// ERSPAN types II and III (draft-foschiano-erspan).
pub(crate) mod erspan {
    /// Type III: P, frame type (5 bits), hardware (6 bits), direction, granularity (2 bits), O.
    pub const FLAGS: usize = 10;
    /// Octets of type II.
    pub const LEN_2: usize = 8;
    /// Octets of type III without the platform's.
    pub const LEN_3: usize = 12;
    /// The platform's octets.
    pub const PLATFORM_LEN: usize = 8;
}

/// TCP.
pub mod tcp {
    /// Source port.
    pub const SOURCE: usize = 0;
    /// Destination port.
    pub const DESTINATION: usize = 2;
    /// Sequence number.
    pub const SEQUENCE: usize = 4;
    /// Acknowledgement number.
    pub const ACKNOWLEDGEMENT: usize = 8;
    /// Octets of the header in units of 4 (4 bits).
    pub const DATA_OFFSET: usize = 12;
    /// Receive window.
    pub const WINDOW: usize = 14;
    /// Checksum.
    pub const CHECKSUM: usize = 16;
    /// Octets of a header without options.
    pub const LEN: usize = 20;
}

/// ICMP for IPv4 and IPv6.
pub mod icmp {
    /// Checksum.
    pub const CHECKSUM: usize = 2;
    /// Octets in front of what a message quotes or names.
    pub const LEN: usize = 8;
    /// Type and code of ICMPv6's Parameter Problem about an option that is not known (RFC 4443 section 3.4).
    pub const UNRECOGNISED_OPTION: [u8; 2] = [4, 2];
}

/// Octets of the ICRC.
pub const ICRC_LEN: usize = 4;
