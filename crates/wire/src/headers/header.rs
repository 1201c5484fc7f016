//! Offsets of the fields in the headers around our messages (in octets from the start of each
//! header), header lengths, and the numbers by which one header announces the next. `frame.rs`
//! reads these headers, `compose.rs` writes them.

pub use crate::fields::Field;

/// Linux cooked capture header, which replaces the Ethernet header.
pub(crate) mod linux_cooked {
    /// EtherType in version 1.
    pub const TYPE: usize = 14;
    /// EtherType in version 2.
    pub const TYPE_2: usize = 0;
    /// Value of the type field if LLC follows.
    pub const LLC: u16 = 4;
    /// Length of the version 1 header, in octets.
    pub const LEN: usize = 16;
    /// Length of the version 2 header, in octets.
    pub const LEN_2: usize = 20;
}

/// Ethernet II.
pub mod ethernet {
    /// Destination address.
    pub const DESTINATION: usize = 0;
    /// Source address.
    pub const SOURCE: usize = 6;
    /// EtherType, or an IEEE 802.3 length: after the addresses and the tags.
    pub const TYPE: usize = 12;
    /// EtherType of IPv4.
    pub const IPV4: u16 = 0x0800;
    /// EtherType of IPv6.
    pub const IPV6: u16 = 0x86DD;
    /// EtherType of ARP.
    pub const ARP: u16 = 0x0806;
    /// EtherType of an IEEE 802.1Q customer tag.
    pub const TAG: u16 = 0x8100;
    /// EtherType of an IEEE 802.1ad service tag.
    pub const SERVICE_TAG: u16 = 0x88A8;
    /// EtherType of the outer of two tags, as used before IEEE 802.1ad.
    pub const OUTER_TAG: u16 = 0x9100;
    /// EtherType of MPLS with a unicast label.
    pub const MPLS: u16 = 0x8847;
    /// EtherType of MPLS with an upstream-assigned label.
    pub const MPLS_UPSTREAM: u16 = 0x8848;
    /// EtherType of RoCE v1.
    pub const ROCE_V1: u16 = 0x8915;
    /// EtherType of an IEEE 802.1ah service instance tag (PBB).
    pub const SERVICE_INSTANCE: u16 = 0x88E7;
    /// EtherType of a VN-Tag.
    pub const VN_TAG: u16 = 0x8926;
    /// EtherType of an IEEE 802.1BR E-Tag.
    pub const E_TAG: u16 = 0x893F;
    /// EtherType of the tag with which Arista's switches add time stamps.
    pub const ARISTA: u16 = 0xD28B;
    /// EtherType of Cisco metadata.
    pub const CISCO_METADATA: u16 = 0x8909;
    /// EtherType of MAC control frames.
    pub const MAC_CONTROL: u16 = 0x8808;
    /// EtherType of congestion notification messages of bridges (IEEE 802.1Q clause 33.4).
    pub const CNM: u16 = 0x22E7;
    /// EtherType of the tag with a flow's number for these.
    pub const CN_TAG: u16 = 0x22E9;
    /// EtherTypes that are opened.
    pub const OPENED: [u16; 16] = [
        IPV4,
        IPV6,
        TAG,
        SERVICE_TAG,
        OUTER_TAG,
        MPLS,
        MPLS_UPSTREAM,
        ROCE_V1,
        SERVICE_INSTANCE,
        VN_TAG,
        E_TAG,
        ARISTA,
        CISCO_METADATA,
        MAC_CONTROL,
        CNM,
        CN_TAG,
    ];
    /// EtherTypes of protocols that carry no packets of others: ARP, RARP, Wake-on-LAN, SRP, MVRP,
    /// MMRP, LLDP, EAPOL, slow protocols, ECP, CFM, PTP, HSR, MRP, FCoE, FIP, loopback, PROFINET,
    /// EtherCAT, audio and video transport, AppleTalk, IPX, DECnet, ATA over Ethernet, TIPC, load
    /// balancing, GeoNetworking, PPPoE discovery.
    pub const PLAIN: [u16; 29] = [
        ARP, 0x8035, 0x0842, 0x22EA, 0x88F5, 0x88F6, 0x88CC, 0x888E, 0x8809, 0x8940, 0x8902,
        0x88F7, 0x892F, 0x88E3, 0x8906, 0x8914, 0x9000, 0x8892, 0x88A4, 0x22F0, 0x809B, 0x80F3,
        0x8137, 0x6003, 0x88A2, 0x88CA, 0x886F, 0x8947, 0x8863,
    ];
    /// Smallest EtherType: anything smaller is an IEEE 802.3 length.
    pub const LEAST_TYPE: u16 = 0x0600;
    /// Largest IEEE 802.3 length.
    pub const MAX_LENGTH: u16 = 1500;
    /// Header length in octets.
    pub const LEN: usize = 14;
    /// Length of a VLAN tag, in octets.
    pub const TAG_LEN: usize = 4;
    /// Offset in a VLAN tag of the EtherType of the tagged payload.
    pub const TAG_TYPE: usize = 2;
    /// Length of an MPLS label stack entry, in octets.
    pub const LABEL_LEN: usize = 4;
    /// Length of a service instance tag in front of the customer's addresses, in octets.
    pub const SERVICE_INSTANCE_LEN: usize = 4;
    /// Length of a VN-Tag with the EtherType of the tagged payload, in octets.
    pub const VN_TAG_LEN: usize = 6;
    /// Length of an E-Tag with the EtherType of the tagged payload, in octets.
    pub const E_TAG_LEN: usize = 8;

    /// Its fields, without options.
    pub const FIELDS: &[super::Field] = &[
        super::Field::new("destination", &[(DESTINATION, 0, 48)]),
        super::Field::new("source", &[(SOURCE, 0, 48)]),
        super::Field::new("ether_type", &[(TYPE, 0, 16)]),
    ];
}

/// Arista's tag, after its EtherType.
pub(crate) mod arista {
    /// Subtype.
    pub const SUBTYPE: usize = 0;
    /// Version: the low octet is the format of the time stamp.
    pub const VERSION: usize = 2;
    /// Subtype of time stamps.
    pub const TIMESTAMP: u16 = 1;
    /// Format of a time stamp of 64 bits.
    pub const BITS_64: u8 = 0x10;
    /// Format of a time stamp of 48 bits.
    pub const BITS_48: u8 = 0x20;
    /// Length up to the time stamp, in octets.
    pub const LEN: usize = 4;
}

/// Cisco metadata, after its EtherType.
pub(crate) mod cisco_metadata {
    /// Number of options.
    pub const OPTIONS: usize = 1;
    /// Length up to the options, in octets.
    pub const LEN: usize = 2;
    /// Length of an option, in octets.
    pub const OPTION_LEN: usize = 4;
}

/// IEEE 802.2 LLC and SNAP.
pub(crate) mod llc {
    /// Destination and source SAP and control field of IS-IS.
    pub const ISIS: [u8; 3] = [0xFE, 0xFE, 0x03];
    /// Destination and source SAP and control field of SNAP.
    pub const SNAP: [u8; 3] = [0xAA, 0xAA, 0x03];
    /// Length of the SNAP header after LLC, in octets.
    pub const SNAP_LEN: usize = 5;
    /// EtherType in the SNAP header, after the organisation.
    pub const SNAP_TYPE: usize = 3;
    /// Organisations by which an EtherType follows: RFC 1042 and IEEE 802.1H.
    pub const ETHERTYPES: [[u8; 3]; 2] = [[0, 0, 0], [0, 0, 0xF8]];
}

/// TZSP.
pub(crate) mod tzsp {
    /// Length of the header in front of the tagged fields, in octets.
    pub const LEN: usize = 4;
    /// Version, type (received packet, or packet to transmit) and protocol (Ethernet) of a packet
    /// that is opened.
    pub const ETHERNET: [[u8; 4]; 2] = [[1, 0, 0, 1], [1, 1, 0, 1]];
    /// Tagged field of one octet: padding.
    pub const PADDING: u8 = 0;
    /// Tagged field of one octet: the packet follows.
    pub const END: u8 = 1;
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
    /// Time to live; the protocol is the next octet.
    pub const TTL: usize = 8;
    /// Protocol.
    pub const PROTOCOL: usize = 9;
    /// Header checksum.
    pub const CHECKSUM: usize = 10;
    /// Source address.
    pub const SOURCE: usize = 12;
    /// Destination address.
    pub const DESTINATION: usize = 16;
    /// Length of a header without options, in octets.
    pub const LEN: usize = 20;
    /// Length of the longest header, in octets.
    pub const MAX_LEN: usize = 60;

    /// Its fields, without options.
    pub const FIELDS: &[super::Field] = &[
        super::Field::new("version", &[(0, 0, 4)]),
        super::Field::new("header_length", &[(0, 4, 4)]),
        super::Field::new("dscp", &[(TOS, 0, 6)]),
        super::Field::new("ecn", &[(TOS, 6, 2)]),
        super::Field::new("total_length", &[(LENGTH, 0, 16)]),
        super::Field::new("identification", &[(IDENTIFICATION, 0, 16)]),
        super::Field::new("flags", &[(FRAGMENT, 0, 3)]),
        super::Field::new("fragment_offset", &[(FRAGMENT, 3, 13)]),
        super::Field::new("ttl", &[(TTL, 0, 8)]),
        super::Field::new("protocol", &[(PROTOCOL, 0, 8)]),
        super::Field::new("checksum", &[(CHECKSUM, 0, 16)]),
        super::Field::new("source", &[(SOURCE, 0, 32)]),
        super::Field::new("destination", &[(DESTINATION, 0, 32)]),
    ];
}

/// IPv6. The first four octets hold version, traffic class and flow label.
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
    /// Header length in octets.
    pub const LEN: usize = 40;

    /// Its fields, without options.
    pub const FIELDS: &[super::Field] = &[
        super::Field::new("version", &[(0, 0, 4)]),
        super::Field::new("dscp", &[(0, 4, 6)]),
        super::Field::new("ecn", &[(1, 2, 2)]),
        super::Field::new("flow_label", &[(1, 4, 20)]),
        super::Field::new("payload_length", &[(LENGTH, 0, 16)]),
        super::Field::new("next_header", &[(NEXT, 0, 8)]),
        super::Field::new("hop_limit", &[(HOP_LIMIT, 0, 8)]),
        super::Field::new("source", &[(SOURCE, 0, 128)]),
        super::Field::new("destination", &[(DESTINATION, 0, 128)]),
    ];
}

/// IPv6 Routing header.
pub mod routing {
    /// Routing type.
    pub const TYPE: usize = 2;
    /// Segments left.
    pub const LEFT: usize = 3;
    /// Index of the last segment in the list, from 0 (RFC 8754).
    pub const LAST_ENTRY: usize = 4;
    /// Segments or addresses.
    pub const SEGMENTS: usize = 8;
    /// Routing type of a segment routing header.
    pub const SEGMENT_ROUTING: u8 = 4;
}

/// IPv6 Fragment header.
pub(crate) mod fragment {
    /// Offset (13 bits), reserved, more fragments.
    pub const OFFSET: usize = 2;
    /// Identification.
    pub const IDENTIFICATION: usize = 4;
    /// Header length in octets.
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
    /// Header length in octets.
    pub const LEN: usize = 8;

    /// Its fields, without options.
    pub const FIELDS: &[super::Field] = &[
        super::Field::new("source_port", &[(SOURCE, 0, 16)]),
        super::Field::new("destination_port", &[(DESTINATION, 0, 16)]),
        super::Field::new("length", &[(LENGTH, 0, 16)]),
        super::Field::new("checksum", &[(CHECKSUM, 0, 16)]),
    ];
    /// Length of the VXLAN header that follows, in octets.
    pub const VXLAN_LEN: usize = 8;
    /// Flag in the first octet of a VXLAN header: the network identifier is present.
    pub const VXLAN_FLAG: u8 = 0x08;
}

/// VXLAN-GPE (draft-ietf-nvo3-vxlan-gpe).
pub(crate) mod vxlan_gpe {
    /// Flags.
    pub const FLAGS: usize = 0;
    /// Protocol of the payload.
    pub const NEXT: usize = 3;
    /// Network identifier (24 bits).
    pub const VNI: usize = 4;
    /// Header length in octets.
    pub const LEN: usize = 8;
    /// Flags that identify the header as VXLAN-GPE: version (2 bits), I, P, O.
    pub const IDENTIFYING_MASK: u8 = 0x3D;
    /// Flags set in a header that carries data: I (network identifier present), P (next protocol
    /// present).
    pub const DATA: u8 = 0x0C;
    /// Next protocol: IPv4.
    pub const IPV4: u8 = 1;
    /// Next protocol: IPv6.
    pub const IPV6: u8 = 2;
    /// Next protocol: Ethernet.
    pub const ETHERNET: u8 = 3;
    /// Next protocol: MPLS.
    pub const MPLS: u8 = 5;
}

/// Geneve (RFC 8926).
pub(crate) mod geneve {
    /// Version (2 bits), length of the options in units of 4 octets (6 bits).
    pub const OPTIONS_LEN: usize = 0;
    /// Flags.
    pub const FLAGS: usize = 1;
    /// EtherType of the payload.
    pub const TYPE: usize = 2;
    /// Network identifier (24 bits).
    pub const VNI: usize = 4;
    /// Length of the header without options, in octets.
    pub const LEN: usize = 8;
    /// Maximum length of the options, in octets.
    pub const MAX_OPTIONS: usize = 63 * 4;
    /// Flag of a control message.
    pub const CONTROL: u8 = 0x80;
}

/// GTP-U (3GPP TS 29.281).
pub(crate) mod gtp_u {
    /// Version (3 bits), protocol type, a spare bit, and flags for the optional fields present.
    pub const FLAGS: usize = 0;
    /// Message type.
    pub const TYPE: usize = 1;
    /// Number of octets after the mandatory header.
    pub const LENGTH: usize = 2;
    /// Tunnel endpoint identifier.
    pub const TEID: usize = 4;
    /// Sequence number, if the optional fields are present.
    pub const SEQUENCE: usize = 8;
    /// Type of the next extension header, if the optional fields are present.
    pub const NEXT: usize = 11;
    /// Length of the mandatory header, in octets.
    pub const LEN: usize = 8;
    /// Length of the optional fields, in octets; either all or none are present.
    pub const OPTIONAL_LEN: usize = 4;
    /// Mask of version and protocol type in the flags.
    pub const IDENTIFYING_MASK: u8 = 0xF0;
    /// Expected value under that mask: version 1, GTP.
    pub const VERSION_1: u8 = 0x30;
    /// Flags of the optional fields: extension header, sequence number, N-PDU number.
    pub const OPTIONAL: u8 = 7;
    /// Flag: an extension header is present.
    pub const EXTENSION: u8 = 4;
    /// Flag: the sequence number is present.
    pub const SEQUENCE_PRESENT: u8 = 2;
    /// Message type that carries a user's packet.
    pub const G_PDU: u8 = 255;
}

/// GRE (RFC 2784, RFC 2890).
pub(crate) mod gre {
    /// Flags and version.
    pub const FLAGS: usize = 0;
    /// EtherType of the payload.
    pub const TYPE: usize = 2;
    /// First optional field: the checksum, if present.
    pub const CHECKSUM: usize = 4;
    /// Length of the header without optional fields, in octets.
    pub const LEN: usize = 4;
    /// Length of an optional field, in octets. The order is checksum, key, sequence number.
    pub const FIELD_LEN: usize = 4;
    /// Flag: the checksum is present.
    pub const CHECKSUM_PRESENT: u16 = 0x8000;
    /// Flag: the key is present.
    pub const KEY_PRESENT: u16 = 0x2000;
    /// Flag: the sequence number is present.
    pub const SEQUENCE_PRESENT: u16 = 0x1000;
    /// Bits for which a receiver without support for RFC 1701 drops the packet, and the version,
    /// which is 0.
    pub const UNSUPPORTED_BITS: u16 = 0x4C07;
    /// EtherType of an Ethernet frame.
    pub const ETHERNET: u16 = 0x6558;
    /// EtherType of ERSPAN types I and II.
    pub const ERSPAN: u16 = 0x88BE;
    /// EtherType of ERSPAN type III.
    pub const ERSPAN_3: u16 = 0x22EB;
    /// EtherTypes that carry no packets of others: keep-alives, CDP, NHRP.
    pub const PLAIN: [u16; 3] = [0, 0x2000, 0x2001];
    /// EtherType of a mirror on Spectrum ASICs.
    pub const SPECTRUM: u16 = 0x8949;
    /// Length of that mirror's header, in octets.
    pub const SPECTRUM_LEN: usize = 22;
}

/// ERSPAN types II and III (draft-foschiano-erspan).
pub(crate) mod erspan {
    /// Type III: P, frame type (5 bits), hardware (6 bits), direction, granularity (2 bits), O.
    pub const FLAGS: usize = 10;
    /// Length of a type II header, in octets.
    pub const LEN_2: usize = 8;
    /// Length of a type III header without the platform-specific subheader, in octets.
    pub const LEN_3: usize = 12;
    /// Length of the platform-specific subheader, in octets.
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
    /// Header length in units of 4 octets (4 bits).
    pub const DATA_OFFSET: usize = 12;
    /// Receive window.
    pub const WINDOW: usize = 14;
    /// Checksum.
    pub const CHECKSUM: usize = 16;
    /// Length of a header without options, in octets.
    pub const LEN: usize = 20;
}

/// ICMP for IPv4 and IPv6.
pub mod icmp {
    /// Checksum.
    pub const CHECKSUM: usize = 2;
    /// Number of octets before the packet that a message quotes, or the address that it names.
    pub const LEN: usize = 8;
    /// Type and code of ICMPv6 Parameter Problem, unrecognised IPv6 option (RFC 4443 section 3.4).
    pub const UNRECOGNISED_OPTION: [u8; 2] = [4, 2];
}

/// Length of the ICRC, in octets.
pub const ICRC_LEN: usize = 4;
