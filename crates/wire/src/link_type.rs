//! What captures say that their packets begin with.

/// What a capture says its packets begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkType {
    /// Ethernet.
    Ethernet,
    /// IPv4 or IPv6, told apart by the version nibble.
    RawIp,
    /// Linux cooked capture, version 1.
    LinuxCooked,
    /// Linux cooked capture, version 2.
    LinuxCooked2,
    /// BSD loopback: an address family of 4 octets in either order.
    Null,
    /// InfiniBand, from its Local Route Header on.
    InfiniBand,
    /// An ERF record, with a frame of Ethernet or InfiniBand.
    Erf,
}

impl LinkType {
    /// The link type of a pcap or pcapng file's number; `None` where this crate does not open it.
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
