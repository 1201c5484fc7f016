//! Proxy Node Capability (PNC) in routing: IS-IS, OSPFv2, OSPFv3 and BGP, read and written.
//!
//! Each protocol has its file, which walks a whole message (LSP, LS Update, TCP segment) as far as it takes to find
//! every advertised prefix and what is said about its PNC. This file holds what they share: the [`Advertisement`],
//! and [`walk`], which picks the right one. Authentication and checksums are not verified; nothing here keeps state
//! between messages, so TCP reassembly, LSDBs and RIBs are somebody else's business.
//!
//! The number of items in a message is bounded by its length: every step of every walk consumes octets.
//!
//! draft-xiao-rtgwg-proxy-congestion-notification section 5.1.

pub mod bgp;
mod bgp_update;
pub mod isis;
mod ospf;
mod tlv;

pub use bgp_update::bgp_update;
pub use ospf::{ospf2, ospf3};

use crate::error::{ErrorKind, Result};
use crate::finding::{Findings, Rule};
use crate::layer::Layer;
use crate::octets::{ipv4_at, ipv6_at, put};
use crate::profile::Profile;
use core::fmt;
use core::str::FromStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A routing protocol that can carry the PNC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// IS-IS: LSPs of level 1 and 2.
    IsIs,
    /// OSPFv2: Extended Prefix Opaque LSAs.
    Ospf2,
    /// OSPFv3: extended LSAs.
    Ospf3,
    /// BGP-4: UPDATE messages.
    Bgp,
}

impl Protocol {
    /// The layer's name for errors.
    #[must_use]
    pub const fn layer(self) -> Layer {
        match self {
            Self::IsIs => Layer::IsIs,
            Self::Ospf2 => Layer::Ospf2,
            Self::Ospf3 => Layer::Ospf3,
            Self::Bgp => Layer::Bgp,
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.layer().id())
    }
}

/// The text is neither an address nor an address, `/` and a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no prefix: write 10.0.0.0/8, fd00::/16, or one address")]
pub struct NoPrefix;

impl FromStr for Prefix {
    type Err = NoPrefix;

    /// Reads `10.0.0.0/8`, `fd00::/16`, or an address alone. What stands behind the length is cleared.
    fn from_str(text: &str) -> core::result::Result<Self, NoPrefix> {
        let read = || match text.split_once('/') {
            // A number may have a sign, a length has none.
            Some((address, len)) if len.bytes().all(|b| b.is_ascii_digit()) => {
                Self::new(address.parse().ok()?, len.parse().ok()?)
            }
            Some(_) => None,
            None => Some(Self::host(text.parse().ok()?)),
        };
        read().ok_or(NoPrefix)
    }
}

/// An IP prefix: an address whose bits behind the length are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    address: IpAddr,
    len: u8,
}

impl Prefix {
    /// The first `len` bits of `address`, the others cleared. `None`: `len` exceeds 32 (IPv4) or 128 (IPv6).
    #[must_use]
    pub fn new(address: IpAddr, len: u8) -> Option<Self> {
        let address = match address {
            IpAddr::V4(v4) => {
                let behind = 32u32.checked_sub(u32::from(len))?;
                let mask = u32::MAX.checked_shl(behind).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & mask))
            }
            IpAddr::V6(v6) => {
                let behind = 128u32.checked_sub(u32::from(len))?;
                let mask = u128::MAX.checked_shl(behind).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & mask))
            }
        };
        Some(Self { address, len })
    }

    /// The prefix of one host: /32 or /128.
    #[must_use]
    pub const fn host(address: IpAddr) -> Self {
        let len = if address.is_ipv4() { 32 } else { 128 };
        Self { address, len }
    }

    /// The address; bits behind the length are 0.
    #[must_use]
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// Length in bits: 0 to 32 (IPv4) or 128 (IPv6).
    #[must_use]
    pub const fn bits(&self) -> u8 {
        self.len
    }

    /// Whether it names one host: /32 or /128.
    #[must_use]
    pub const fn is_host(&self) -> bool {
        match self.address {
            IpAddr::V4(_) => self.len == 32,
            IpAddr::V6(_) => self.len == 128,
        }
    }

    /// Whether `address` is in the prefix; an address of the other family never is.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        Self::new(address, self.len) == Some(*self)
    }

    /// As many octets as `bits` bits need.
    pub(crate) const fn octets(bits: u8) -> usize {
        (bits as usize).div_ceil(8)
    }

    /// From the leading octets of an address, as the IGPs and BGP write it; octets that are missing count as 0.
    pub(crate) fn from_octets(v6: bool, leading: &[u8], bits: u8) -> Option<Self> {
        let mut whole = [0; 16];
        put(&mut whole, 0, leading.get(..16).unwrap_or(leading));
        let address = match v6 {
            true => ipv6_at(&whole, 0).into(),
            false => ipv4_at(&whole, 0).into(),
        };
        Self::new(address, bits)
    }

    /// The address's octets, an IPv4 address in the first four.
    pub(crate) fn padded(&self) -> [u8; 16] {
        let mut octets = [0; 16];
        match self.address {
            IpAddr::V4(v4) => put(&mut octets, 0, &v4.octets()),
            IpAddr::V6(v6) => octets = v6.octets(),
        }
        octets
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.len)
    }
}

/// IS-IS level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Within an area.
    L1,
    /// Between areas.
    L2,
}

/// How far an OSPF LSA is flooded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flooding {
    /// The link it was sent on (OSPFv2 LS type 9; OSPFv3 S bits 00).
    Link,
    /// One area (type 10; S bits 01).
    Area,
    /// The routing domain (type 11; S bits 10).
    Domain,
    /// OSPFv3 S bits 11.
    Reserved,
}

/// Who advertises a prefix, and how far: the identity of the enclosing LSP, LSA or UPDATE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// An IS-IS LSP.
    IsIs {
        /// Level of the LSP.
        level: Level,
        /// System ID (6 octets), pseudonode number, LSP number.
        lsp_id: [u8; 8],
        /// TLV type: 135, 235, 236, 237 or 27.
        tlv: u8,
        /// Multi-topology ID, 12 bits; 0 where the TLV has none.
        topology: u16,
        /// Up/down bit (D): the prefix was leaked down from level 2.
        down: bool,
    },
    /// An OSPFv2 Extended Prefix Opaque LSA.
    Ospf2 {
        /// Area ID of the packet.
        area: Ipv4Addr,
        /// Advertising router of the LSA.
        advertising_router: Ipv4Addr,
        /// Opaque ID, 24 bits.
        opaque_id: u32,
        /// Flooding scope, from the LS type.
        flooding: Flooding,
        /// Route type of the TLV: 0 unspecified, 1 intra-area, 3 inter-area, 5 external, 7 NSSA external.
        route_type: u8,
    },
    /// An OSPFv3 extended LSA.
    Ospf3 {
        /// Area ID of the packet.
        area: Ipv4Addr,
        /// Advertising router of the LSA.
        advertising_router: Ipv4Addr,
        /// LS type with its U and S bits.
        ls_type: u16,
        /// Link State ID.
        link_state_id: u32,
        /// Flooding scope, from the LS type.
        flooding: Flooding,
    },
    /// A BGP UPDATE.
    Bgp {
        /// Address family of the route.
        afi: u16,
        /// Subsequent address family of the route.
        safi: u8,
        /// The route's next hop; the global address where there are two. `None`: absent or not IP.
        next_hop: Option<IpAddr>,
    },
}

/// The octets that say which capabilities a prefix (or next hop) has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carrier<'a> {
    /// Octets from the start of the input to the first of them.
    pub offset: usize,
    /// IGPs: the value of the flags sub-TLV, or what is left of it where it runs past its end. BGP: the characteristics of
    /// path attribute 39, where the PNC is among them.
    pub octets: &'a [u8],
}

/// One advertised prefix, and what is said about its PNC.
///
/// Prefixes that are advertised without flags or without PNC in attribute 39 appear too: a route that comes again
/// without its PNC has lost it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advertisement<'a> {
    /// The enclosing LSP, LSA or UPDATE.
    pub origin: Origin,
    /// The prefix. `None`: BGP routes of families other than IPv4 and IPv6 unicast.
    pub prefix: Option<Prefix>,
    /// Octets from the start of the input to the TLV (IS-IS), LSA or UPDATE around the entry.
    pub container: usize,
    /// Octets from the start of the input to the entry that holds the prefix (BGP without a prefix: to the UPDATE).
    pub offset: usize,
    /// The flags or characteristics, where there are any.
    pub carrier: Option<Carrier<'a>>,
    /// Octets from the start of the input to the flags octet that holds the PNC bit, or to the PNC characteristic's code.
    /// `None` with a carrier: its PNC cannot be read.
    pub flag_offset: Option<usize>,
    /// The LSA is malformed and counts as if it had never come (RFC 9792 section 2).
    pub ignored: bool,
    /// Whether PNC is advertised and, for BGP, applies to the route.
    pub pnc: bool,
}

impl Advertisement<'_> {
    /// The routing protocol.
    #[must_use]
    pub const fn protocol(&self) -> Protocol {
        match self.origin {
            Origin::IsIs { .. } => Protocol::IsIs,
            Origin::Ospf2 { .. } => Protocol::Ospf2,
            Origin::Ospf3 { .. } => Protocol::Ospf3,
            Origin::Bgp { .. } => Protocol::Bgp,
        }
    }
}

/// Where a walk puts what it finds broken: a list, or nowhere.
pub(crate) struct Report<'f>(Option<&'f mut Findings>);

impl<'f> Report<'f> {
    pub(crate) const fn nowhere() -> Self {
        Self(None)
    }

    pub(crate) fn push(&mut self, rule: Rule, offset: usize, len: usize) {
        if let Some(findings) = &mut self.0 {
            findings.push(rule, offset, len);
        }
    }

    /// PNC belongs to the local host prefix (section 5.1).
    pub(crate) fn host_only(&mut self, found: &Advertisement<'_>) {
        if let (true, Some(prefix), Some(at)) = (found.pnc, found.prefix, found.flag_offset)
            && !prefix.is_host()
        {
            self.push(Rule::PncNotHost, at, 1);
        }
    }
}

/// The advertisements of a message of any of the four protocols.
#[derive(Clone, Debug)]
pub struct Walk<'a>(Inner<'a>);

#[derive(Clone, Debug)]
enum Inner<'a> {
    /// Of an LSP.
    IsIs(isis::Advertisements<'a>),
    /// Of an LS Update of either version.
    Ospf(ospf::Advertisements<'a>),
    /// Of the BGP messages in a TCP segment.
    Bgp(bgp::Advertisements<'a>),
}

impl<'a> Walk<'a> {
    fn step(&mut self, report: &mut Report<'_>) -> Option<Advertisement<'a>> {
        match &mut self.0 {
            Inner::IsIs(walk) => walk.step(report),
            Inner::Ospf(walk) => walk.step(report),
            Inner::Bgp(walk) => walk.step(report),
        }
    }

    /// The next advertisement; rules found broken on the way to it, and in it, go to `findings`.
    pub fn next_checked(&mut self, findings: &mut Findings) -> Option<Advertisement<'a>> {
        self.step(&mut Report(Some(findings)))
    }

    /// With what is known of the BGP session; other protocols need nothing.
    #[must_use]
    pub const fn in_session(mut self, session: bgp::Session) -> Self {
        if let Inner::Bgp(walk) = &mut self.0 {
            walk.session = session;
        }
        self
    }

    /// Walks to the end, and puts all rules found broken into `findings`.
    pub fn check(mut self, findings: &mut Findings) {
        while self.next_checked(findings).is_some() {}
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Advertisement<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(&mut Report::nowhere())
    }
}

/// Walks `bytes`: an IS-IS PDU from its discriminator 0x83 on, an OSPF packet from its version octet on, or the
/// payload of a TCP segment of a BGP session. Octets behind the message's own length are left alone.
///
/// There were `wire_len` octets on the wire: where the capture has cut some off, what is there is walked, and the missing rest
/// is no finding; a message that claims more is no less wrong. `None`: a message of another kind, which advertises no
/// prefixes.
///
/// # Errors
/// The message's header cannot be read, or the message is longer than `wire_len`.
pub fn walk<'a>(
    protocol: Protocol,
    bytes: &'a [u8],
    wire_len: usize,
    profile: &Profile,
) -> Result<Option<Walk<'a>>> {
    use ospf2::LsUpdate as V2;
    use ospf3::LsUpdate as V3;
    let walk = match protocol {
        Protocol::IsIs if isis::is_lsp(bytes) => {
            isis::Lsp::new_checked(bytes, wire_len)?.advertisements()
        }
        Protocol::Ospf2 if V2::is_at(bytes) => V2::new_checked(bytes, wire_len)?.advertisements(),
        Protocol::Ospf3 if V3::is_at(bytes) => V3::new_checked(bytes, wire_len)?.advertisements(),
        Protocol::Bgp => bgp::advertisements(bytes, profile.bgp_pnc_characteristic),
        _ => return Ok(None),
    };
    Ok(Some(walk))
}

/// Whether `bytes` hold flags of a prefix or a path attribute 39, as far as they go and whatever their lengths say: what
/// is broken in a message without either is other people's business.
#[must_use]
pub fn is_met(protocol: Protocol, bytes: &[u8]) -> bool {
    let walk = match protocol {
        Protocol::IsIs => isis::Lsp::all_of(bytes).map(|lsp| lsp.advertisements()),
        Protocol::Ospf2 => ospf2::LsUpdate::all_of(bytes).map(|update| update.advertisements()),
        Protocol::Ospf3 => ospf3::LsUpdate::all_of(bytes).map(|update| update.advertisements()),
        Protocol::Bgp => return bgp::has_attribute_39(bytes),
    };
    walk.is_some_and(|mut walk| walk.any(|found| found.carrier.is_some()))
}

/// The same as [`walk`] for a message that [`is_met`]; what breaks a rule before the first advertisement goes to
/// `findings`: `None` also where the header cannot be read. One that the capture has cut off is nobody's fault.
pub fn walk_checked<'a>(
    protocol: Protocol,
    bytes: &'a [u8],
    wire_len: usize,
    profile: &Profile,
    findings: &mut Findings,
) -> Option<Walk<'a>> {
    if !is_met(protocol, bytes) {
        return None;
    }
    match walk(protocol, bytes, wire_len, profile) {
        Ok(walk) => walk,
        Err(e) if bytes.len() < wire_len && matches!(e.kind, ErrorKind::Short { .. }) => None,
        Err(e) => {
            let len = bytes.len().saturating_sub(e.offset).min(1);
            findings.push(Rule::PncMalformed, e.offset, len);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_keep_only_their_own_bits() {
        let p = Prefix::new(IpAddr::from([10, 1, 2, 255]), 17).unwrap();
        assert_eq!(
            (p.to_string().as_str(), p.is_host()),
            ("10.1.0.0/17", false)
        );
        assert_eq!(
            Prefix::new(IpAddr::from([10, 1, 2, 3]), 0)
                .unwrap()
                .address(),
            IpAddr::from([0, 0, 0, 0])
        );
        assert_eq!(Prefix::new(IpAddr::from([0; 4]), 33), None);
        let v6 = IpAddr::from([0xFFFF; 8]);
        assert_eq!(Prefix::new(v6, 128), Some(Prefix::host(v6)));
        assert_eq!(Prefix::new(v6, 129), None);
        assert_eq!(
            Prefix::from_octets(true, &[0xFD, 0xFF, 0xFF], 9)
                .unwrap()
                .to_string(),
            "fd80::/9"
        );
    }

    #[test]
    fn prefixes_are_read_as_people_write_them() {
        let prefix = |text: &str| text.parse::<Prefix>().ok();
        let network = |address: [u8; 4], bits| Prefix::new(IpAddr::from(address), bits);
        assert_eq!(prefix("10.0.0.7/8"), network([10, 0, 0, 0], 8));
        assert_eq!(prefix("10.0.0.7"), network([10, 0, 0, 7], 32));
        assert!(prefix("fd00::/16").is_some() && prefix("fd00::1").is_some());
        for text in ["", "x", "10.0.0.0/33", "10.0.0.0/", "fd00::/129", "/8"] {
            assert_eq!(prefix(text), None, "{text}");
        }
    }

    #[test]
    fn prefixes_contain_the_addresses_that_share_their_bits() {
        let contains = |prefix: (IpAddr, u8), address: IpAddr| {
            Prefix::new(prefix.0, prefix.1).unwrap().contains(address)
        };
        let (v4, v6) = (IpAddr::from([10, 1, 2, 3]), IpAddr::from([0x2001; 8]));
        assert!(contains((v4, 24), IpAddr::from([10, 1, 2, 255])));
        assert!(!contains((v4, 24), IpAddr::from([10, 1, 3, 3])));
        assert!(contains((v4, 32), v4) && contains((v6, 128), v6));
        assert!(contains((v4, 0), IpAddr::from([255; 4])) && !contains((v4, 0), v6));
        assert!(!contains((v6, 0), v4) && !contains((v6, 64), v4));
    }

    #[test]
    fn other_messages_advertise_nothing() {
        let hello = [0x83, 27, 1, 0, 17, 1, 0, 0];
        for (protocol, bytes) in [
            (Protocol::IsIs, &hello[..]),
            (Protocol::Ospf2, &[2, 1, 0, 44]),
            (Protocol::Ospf3, &[3, 1, 0, 36]),
        ] {
            assert!(
                walk(protocol, bytes, bytes.len(), &Profile::DEFAULT)
                    .unwrap()
                    .is_none()
            );
        }
        assert!(walk(Protocol::Ospf2, &[2, 4, 0, 44], 4, &Profile::DEFAULT).is_err());
    }
}
