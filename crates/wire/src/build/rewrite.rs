//! Packet rewriting: replaces addresses, tags, ports, QPs and PSNs in a captured packet. Every
//! checksum and the ICRC stay as they were, right or wrong.
//!
//! [`Rules`] specify the changes, [`Rules::apply`] writes the changed packet into a buffer given by
//! the caller (one copy, no allocation), and [`LoopVariation`] creates rules for each loop of a
//! replay. These items are found and changed:
//!
//! - MAC addresses and VLAN tags of the outermost Ethernet header; MAC addresses (mapped ones only)
//!   in ARP;
//! - IPv4 and IPv6 addresses in every IP header of every tunnel, in ARP, in segment lists (and in
//!   routing headers of type 0 and 2), in the Fast CNP and proxy address options, in the five-tuple
//!   of a proxy notification, in neighbour discovery's targets and in redirects, in the GIDs and
//!   the RDMA IP CM header of a ConnectRequest;
//! - the UDP source port of RoCEv2 and tunnels, also in a five-tuple;
//! - QPs: DestQP of the BTH, source QP of the DETH, the QPNs in RDMA CM messages;
//! - PSNs: of the BTH except in CNPs, and the starting PSNs in RDMA CM messages;
//! - flow labels: in IPv6 headers, and the one that a WAN FCN names;
//! - all of these in packets quoted by proxy notifications and ICMP errors.
//!
//! Not changed: routing protocol messages (IS-IS, OSPF, BGP), addresses in IPv4 options, in other
//! IPv6 options, in other messages of ICMP and RDMA CM and in neighbour discovery's options,
//! anything after headers that [`Frame`] does not locate ([`Outcome::may_contain_unmapped`] reports
//! all of these); node numbers of IOAM, payload, anything but addresses in fragments. An
//! Authentication header's check value is not repaired.
//!
//! Checksums are updated by difference: a wrong one stays wrong by the same amount, and rewriting
//! back restores the original octets. The one exception is a checksum of 0xFFFF in IPv4, TCP or
//! ICMP, which no sender computes: it may become 0, which is equivalent.

mod address;
mod builder;
mod checksums;
mod cm;
mod error;
mod icmp;
mod link;
mod packet;
mod rules;
mod variation;
mod walk;

pub use error::{RewriteError, RulesError};
pub use rules::{Rules, VlanTag};
pub use variation::LoopVariation;

use crate::frame::{Frame, LinkType};
use crate::icrc::Reading;
use crate::profile::Profile;
use checksums::PacketPatcher;

/// State of a packet's ICRC before it was rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorIcrc {
    /// There is no ICRC: not a RoCEv2 packet, or one that cannot be parsed that far.
    Absent,
    /// Left unchanged: the packet was not fully captured, or its length fields contradict each
    /// other.
    Unrepaired,
    /// Kept as right or as wrong as before; which of the two was neither needed nor requested.
    Kept,
    /// Right, and right again. `Some` names the reading if extension headers make a difference.
    Good(Option<Reading>),
    /// Wrong by every reading, and still wrong unless repair was requested; zero is still zero.
    Bad,
}

/// Result of rewriting a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Outcome {
    /// Octets written.
    pub len: usize,
    /// Length of the packet on the wire, in octets; more than `len` if the capture truncated it.
    pub wire_len: usize,
    /// Link type of the written packet.
    pub link: LinkType,
    /// ICRC of the innermost packet.
    pub icrc: PriorIcrc,
    /// True if addresses are mapped, and the packet or one that it quotes may contain addresses
    /// that were not found. This is the case if no IP header was found; if there is an IP option, a
    /// routing header, or a message of ICMP or to QP 1 that is neither changed nor known to hold no
    /// address; or if the innermost packet carries encrypted data, a routing protocol, or a tunnel
    /// that is not opened. Payload of TCP, of UDP of any other port, of RoCEv2 and of echoes,
    /// private data, and the content of fragments do not count.
    pub may_contain_unmapped: bool,
}

impl Outcome {
    /// Returns true if the capture truncated the packet: the missing part was not rewritten, and
    /// checksums over it may be wrong.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.wire_len > self.len
    }
}

impl Rules {
    /// Rewrites `packet` and writes it to the start of `out`. The packet had `wire_len` octets on
    /// the wire and begins with a `link` header.
    ///
    /// An additional VLAN tag or Ethernet header needs up to 18 octets of space.
    ///
    /// # Errors
    /// Fails if `out` is too small, or if the EtherType of a requested Ethernet header cannot be
    /// determined.
    pub fn apply(
        &self,
        packet: &[u8],
        wire_len: usize,
        link: LinkType,
        profile: &Profile,
        out: &mut [u8],
    ) -> Result<Outcome, RewriteError> {
        let frame = Frame::parse(packet, wire_len, link, profile);
        let head = link::write(self.base(), &frame, link, out)?;
        let len = packet.len() - head.before + head.after;
        let (mut icrc, mut may_contain_unmapped) = (PriorIcrc::Absent, false);
        if let (true, Some(new)) = (self.affects_payload(), out.get_mut(..len)) {
            let places = (head.before, head.after);
            let mut patcher = PacketPatcher::new(packet, new, places, self.base().repair);
            (icrc, may_contain_unmapped) = packet::rewrite(self, &frame, link, &mut patcher);
        }
        Ok(Outcome {
            len,
            wire_len: frame.wire_len() - head.before + head.after,
            link: head.link,
            icrc,
            may_contain_unmapped: may_contain_unmapped && self.maps_addresses(),
        })
    }
}
