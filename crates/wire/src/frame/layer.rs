//! Names of the layers that errors, findings and [`Frame`](crate::frame::Frame) refer to.
//!
//! Only names live here. `frame.rs` finds the start and end of each layer in a packet.

use crate::identified;
use core::fmt;

identified! {
    /// A protocol layer, or a part of one that is parsed on its own, with its display name.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[non_exhaustive]
    Layer {
        /// Ethernet II or IEEE 802.3 header.
        Ethernet = "Ethernet",
        /// IEEE 802.2 LLC header (carries IS-IS and SNAP).
        Llc = "LLC",
        /// SNAP header after LLC (RFC 1042).
        Snap = "SNAP",
        /// Linux cooked capture header, version 1 or 2.
        LinuxCooked = "Linux cooked capture",
        /// ERF record header with its extensions.
        Erf = "ERF",
        /// InfiniBand Local Route Header.
        Lrh = "Local Route Header",
        /// InfiniBand Global Route Header.
        Grh = "Global Route Header",
        /// IEEE 802.1Q or 802.1ad tag.
        Vlan = "VLAN tag",
        /// VN-Tag of a fabric extender.
        VnTag = "VN-Tag",
        /// IEEE 802.1BR E-Tag.
        ETag = "E-Tag",
        /// Tag with which Arista's switches add time stamps.
        Arista = "Arista tag",
        /// Cisco metadata.
        CiscoMetadata = "Cisco metadata",
        /// IEEE 802.1ah service instance tag.
        ServiceInstance = "service instance tag",
        /// IEEE 802.1Q congestion notification tag.
        CnTag = "CN-TAG",
        /// Congestion signalling tag.
        Csig = "CSIG tag",
        /// One MPLS label stack entry (RFC 3032).
        Mpls = "MPLS label",
        /// IPv4 header with its options.
        Ipv4 = "IPv4",
        /// IPv6 base header.
        Ipv6 = "IPv6",
        /// IPv6 Hop-by-Hop Options header.
        HopByHop = "IPv6 Hop-by-Hop Options",
        /// IPv6 Destination Options header.
        DestinationOptions = "IPv6 Destination Options",
        /// IPv6 Routing header of any type.
        Routing = "IPv6 Routing header",
        /// IPv6 Fragment header.
        Fragment = "IPv6 Fragment header",
        /// Authentication header (RFC 4302).
        Authentication = "Authentication header",
        /// One IPv6 option (RFC 8200 section 4.2).
        Ipv6Option = "IPv6 option",
        /// UDP header.
        Udp = "UDP",
        /// TCP header.
        Tcp = "TCP",
        /// VXLAN header (RFC 7348).
        Vxlan = "VXLAN",
        /// VXLAN-GPE header (draft-ietf-nvo3-vxlan-gpe).
        VxlanGpe = "VXLAN-GPE",
        /// Geneve header with its options (RFC 8926).
        Geneve = "Geneve",
        /// GTP-U header with its extension headers (3GPP TS 29.281).
        GtpU = "GTP-U",
        /// GRE header with its optional fields (RFC 2784, RFC 2890; NVGRE in RFC 7637).
        Gre = "GRE",
        /// ERSPAN header, type II or III.
        Erspan = "ERSPAN",
        /// Header of a mirror on Spectrum ASICs, in GRE.
        Spectrum = "Spectrum mirror",
        /// TZSP header with its tagged fields.
        Tzsp = "TZSP",
        /// sFlow datagram, version 5.
        Sflow = "sFlow",
        /// InfiniBand Base Transport Header.
        Bth = "Base Transport Header",
        /// InfiniBand extended transport headers after the BTH.
        Eth = "extended transport header",
        /// Invariant CRC.
        Icrc = "ICRC",
        /// Congestion notification message of a bridge.
        Cnm = "CNM",
        /// Congestion Notification Packet.
        Cnp = "CNP",
        /// Fast CNP option 1 or 2.
        FastCnp = "Fast CNP option",
        /// IOAM trace option data (RFC 9197 section 4.4).
        Ioam = "IOAM trace",
        /// Congestion notification to the proxy node.
        ProxyCn = "proxy notification",
        /// Proxy Network Node Address option.
        ProxyAddress = "proxy address option",
        /// Fast CNP in the WAN.
        WanFcn = "WAN FCN",
        /// Priority-based flow control frame.
        Pfc = "PFC",
        /// InfiniBand management datagram.
        Mad = "MAD",
        /// RDMA communication management message.
        RdmaCm = "RDMA CM",
        /// IS-IS PDU.
        IsIs = "IS-IS",
        /// OSPFv2 packet.
        Ospf2 = "OSPFv2",
        /// OSPFv3 packet.
        Ospf3 = "OSPFv3",
        /// BGP message.
        Bgp = "BGP",
        /// Anything that this crate does not parse.
        Payload = "payload",
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}
