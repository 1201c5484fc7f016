//! Link types of captures.

/// Link type of a capture: the header with which its packets begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkType {
    /// Ethernet.
    Ethernet,
    /// IPv4 or IPv6, distinguished by the version nibble.
    RawIp,
    /// Linux cooked capture, version 1.
    LinuxCooked,
    /// Linux cooked capture, version 2.
    LinuxCooked2,
    /// BSD loopback: an address family of 4 octets in either byte order.
    Null,
    /// InfiniBand, starting with the Local Route Header.
    InfiniBand,
    /// ERF record holding an Ethernet or InfiniBand frame.
    Erf,
}

impl LinkType {
    /// Returns the link type for a number from a pcap or pcapng file, or `None` if this crate does
    /// not support it.
    #[must_use]
    pub const fn from_pcap(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::Ethernet),
            12 | 14 | 101 | 228 | 229 => Some(Self::RawIp),
            113 => Some(Self::LinuxCooked),
            276 => Some(Self::LinuxCooked2),
            0 | 108 => Some(Self::Null),
            247 => Some(Self::InfiniBand),
            197 => Some(Self::Erf),
            _ => None,
        }
    }
}
