//! A packet as it comes in, whatever it comes from.

use fcn_wire::LinkType;

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
