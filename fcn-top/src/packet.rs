//! A captured packet, independent of its source.

use fcn_wire::LinkType;
use fcn_wire::infiniband::erf_header_len;

/// A borrowed packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Capture time, in nanoseconds since the epoch.
    pub at: u64,
    /// Captured octets.
    pub bytes: &'a [u8],
    /// Length on the wire, in octets; at least the captured length.
    pub wire_len: usize,
    /// Link type of the first header.
    pub link: LinkType,
    /// Index of the interface it was captured on, across all sources, from 0 in the order of
    /// registration.
    pub interface: u32,
    /// Packet number in capture order, from 1: Wireshark's frame number if a single file is read.
    pub number: u64,
}

impl Packet<'_> {
    /// Number of octets on the network, as far as the capture shows: without the header that the
    /// capture puts in place of the link's (Linux cooked, BSD loopback) or before it (ERF).
    #[inline]
    pub fn octets(&self) -> u64 {
        let made_up = match self.link {
            LinkType::Ethernet | LinkType::RawIp | LinkType::InfiniBand => 0,
            LinkType::Erf => erf_header_len(self.bytes),
            LinkType::Null => 4,
            LinkType::LinuxCooked => 16,
            LinkType::LinuxCooked2 => 20,
        };
        self.wire_len.saturating_sub(made_up) as u64
    }
}
