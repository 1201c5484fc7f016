//! The names of the layers that errors, findings and [`Frame`](crate::frame::Frame) speak of.
//!
//! Only names live here; where a layer begins and ends in a packet is `frame.rs`'s business.

use core::fmt;

/// A protocol layer or a part of one that is parsed on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layer {
    /// Ethernet II or IEEE 802.3 header.
    Ethernet,
    /// IEEE 802.2 LLC header (IS-IS rides on it).
    Llc,
    /// Linux cooked capture header, version 1 or 2.
    LinuxCooked,
    /// IEEE 802.1Q or 802.1ad tag.
    Vlan,
    /// One MPLS label stack entry (RFC 3032).
    Mpls,
    /// IPv4 header with its options.
    Ipv4,
    /// IPv6 base header.
    Ipv6,
    /// IPv6 Hop-by-Hop Options header.
    HopByHop,
    /// IPv6 Destination Options header.
    DestinationOptions,
    /// IPv6 Routing header of any type.
    Routing,
    /// IPv6 Fragment header.
    Fragment,
    /// Authentication header (RFC 4302).
    Authentication,
    /// One IPv6 option (RFC 8200 section 4.2).
    Ipv6Option,
    /// UDP header.
    Udp,
    /// TCP header.
    Tcp,
    /// VXLAN header (RFC 7348).
    Vxlan,
    /// InfiniBand Base Transport Header.
    Bth,
    /// InfiniBand extended transport headers behind the BTH.
    Eth,
    /// Invariant CRC.
    Icrc,
    /// Congestion Notification Packet.
    Cnp,
    /// Fast CNP option 1 or 2.
    FastCnp,
    /// IOAM trace option data (RFC 9197 section 4.4).
    Ioam,
    /// Congestion notification to the proxy node.
    ProxyCn,
    /// Proxy Network Node Address option.
    ProxyAddress,
    /// Fast CNP in the WAN.
    WanFcn,
    /// Priority-based flow control frame.
    Pfc,
    /// InfiniBand management datagram.
    Mad,
    /// RDMA communication management message.
    RdmaCm,
    /// IS-IS PDU.
    IsIs,
    /// OSPFv2 packet.
    Ospf2,
    /// OSPFv3 packet.
    Ospf3,
    /// BGP message.
    Bgp,
    /// Anything this crate does not look into.
    Payload,
}

impl Layer {
    /// The layer's name as people write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ethernet => "Ethernet",
            Self::Llc => "LLC",
            Self::LinuxCooked => "Linux cooked capture",
            Self::Vlan => "VLAN tag",
            Self::Mpls => "MPLS label",
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
            Self::HopByHop => "IPv6 Hop-by-Hop Options",
            Self::DestinationOptions => "IPv6 Destination Options",
            Self::Routing => "IPv6 Routing header",
            Self::Fragment => "IPv6 Fragment header",
            Self::Authentication => "Authentication header",
            Self::Ipv6Option => "IPv6 option",
            Self::Udp => "UDP",
            Self::Tcp => "TCP",
            Self::Vxlan => "VXLAN",
            Self::Bth => "Base Transport Header",
            Self::Eth => "extended transport header",
            Self::Icrc => "ICRC",
            Self::Cnp => "CNP",
            Self::FastCnp => "Fast CNP option",
            Self::Ioam => "IOAM trace",
            Self::ProxyCn => "proxy notification",
            Self::ProxyAddress => "proxy address option",
            Self::WanFcn => "WAN FCN",
            Self::Pfc => "PFC",
            Self::Mad => "MAD",
            Self::RdmaCm => "RDMA CM",
            Self::IsIs => "IS-IS",
            Self::Ospf2 => "OSPFv2",
            Self::Ospf3 => "OSPFv3",
            Self::Bgp => "BGP",
            Self::Payload => "payload",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
