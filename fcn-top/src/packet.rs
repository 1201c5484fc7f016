//! A packet as it comes in, whatever it comes from.

use fcn_wire::LinkType;
use fcn_wire::infiniband::erf_header_len;

/// A packet, lent.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// When it was captured, in nanoseconds since the epoch.
    pub at: u64,
    /// The octets captured.
    pub bytes: &'a [u8],
    /// Octets that it had on the wire; never fewer than were captured.
    pub wire_len: usize,
    /// What it begins with.
    pub link: LinkType,
    /// Which of the sources' interfaces it was seen on, from 0 in the order that they became known.
    pub interface: u32,
    /// Its number in the order of capture, from 1: Wireshark's frame number where one file is read.
    pub number: u64,
}

impl Packet<'_> {
    /// Octets that were on the network, as far as the capture tells: without the header that it puts in the place of the
    /// link's (Linux cooked, BSD loopback) or in front of it (ERF).
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
