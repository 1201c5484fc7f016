//! Where the fields of the headers around our messages lie, in octets from each header's start, and how long the
//! headers are. Reading them is `frame.rs`'s business, writing them `compose.rs`'s.

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
    /// Octets of the header.
    pub const LEN: usize = 14;
    /// Octets of a VLAN tag.
    pub const TAG_LEN: usize = 4;
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
}

/// TCP.
pub mod tcp {
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
