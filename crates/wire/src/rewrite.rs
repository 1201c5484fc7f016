//! Packets rewritten: other addresses, tags, ports, QPs and PSNs in a captured packet, with every checksum and the ICRC
//! kept as it was, right or wrong.
//!
//! [`Rules`] say what changes, [`Rules::apply`] writes the changed packet into a buffer that the caller gives (one
//! copy, no allocation), [`LoopVariation`] makes rules for each loop of a replay. What is found and changed:
//!
//! - MAC addresses and VLAN tags of the outermost Ethernet header; MAC addresses (mapped ones only) in ARP;
//! - IPv4 and IPv6 addresses in every IP header of every tunnel, in ARP, in segment lists (and in routing headers of
//!   type 0 and 2), in the Fast CNP and proxy address options, in the five-tuple of a proxy notification, in neighbour
//!   discovery's targets and in redirects, in the GIDs and the RDMA IP CM header of a ConnectRequest;
//! - the UDP source port of RoCEv2 and tunnels, also in a five-tuple;
//! - QPs: DestQP of the BTH, source QP of the DETH, the QPNs in RDMA CM messages;
//! - PSNs: of the BTH but for CNPs, the starting PSNs in RDMA CM messages;
//! - flow labels: in IPv6 headers, and that which a WAN FCN names;
//! - all of these in packets quoted by proxy notifications and ICMP errors.
//!
//! Not changed: what routing protocols say (IS-IS, OSPF, BGP), addresses in IPv4 options, in other IPv6 options, in other
//! messages of ICMP and RDMA CM and in neighbour discovery's options, what is behind headers that [`Frame`] does not locate
//! ([`Outcome::unopened`] tells of all these); node numbers of IOAM, payload, anything but addresses in fragments. An
//! Authentication header's check value is not repaired.
//!
//! Checksums follow by difference: what was wrong stays wrong by as much, and rewriting back gives the first octets
//! again. The one exception is a checksum of 0xFFFF in IPv4, TCP or ICMP, which no sender computes: it may become 0,
//! which says the same.

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
use checksums::Canvas;

/// What the ICRC of a packet was before it was rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IcrcWas {
    /// There is none: no RoCEv2 packet, or one that cannot be read that far.
    Absent,
    /// Left as it is: not all of the packet was captured, or its length fields contradict each other.
    Unrepaired,
    /// As right or as wrong as it was; which of the two was neither needed nor asked for.
    Kept,
    /// Right, and right again. `Some` names the reading where extension headers make a difference.
    Good(Option<Reading>),
    /// Wrong by every reading, and still wrong unless repair was asked for; zero is still zero.
    Bad,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Outcome {
    /// Octets written.
    pub len: usize,
    /// Octets the packet would have on the wire; more than `len` where the capture had cut it.
    pub wire_len: usize,
    /// What the written packet begins with.
    pub link: LinkType,
    /// The ICRC of the innermost packet.
    pub icrc: IcrcWas,
    /// Whether addresses were to be mapped, and more of them than were found may be in the packet or in one that it quotes: no
    /// IP header was found, or there is an IP option, a routing header, a message of ICMP or to QP 1 that is neither changed nor
    /// known to hold no address, or the innermost packet carries what is encrypted, a routing protocol's, or of a tunnel that
    /// is not opened. Payload of TCP, of UDP of any other port, of RoCEv2 and of echoes, private data, and what is in a fragment
    /// do not count.
    pub unopened: bool,
}

impl Outcome {
    /// Whether the capture had cut the packet: what is not there was not rewritten, and checksums over it may be wrong.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.wire_len > self.len
    }
}

impl Rules {
    /// Writes `packet`, rewritten, to the start of `out`. It had `wire_len` octets on the wire and begins with a `link`
    /// header.
    ///
    /// A VLAN tag or an Ethernet header more needs up to 18 octets of room.
    ///
    /// # Errors
    /// `out` is too small, or nothing says which EtherType an Ethernet header asked for should have.
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
        let (mut icrc, mut unopened) = (IcrcWas::Absent, false);
        if let (true, Some(new)) = (self.looks_inside(), out.get_mut(..len)) {
            let places = (head.before, head.after);
            let mut canvas = Canvas::new(packet, new, places, self.base().repair);
            (icrc, unopened) = packet::rewrite(self, &frame, link, &mut canvas);
        }
        Ok(Outcome {
            len,
            wire_len: frame.wire_len() - head.before + head.after,
            link: head.link,
            icrc,
            unopened: unopened && self.maps_addresses(),
        })
    }
}
