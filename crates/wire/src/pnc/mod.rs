//! Proxy Node Capability (PNC) in routing: IS-IS, OSPFv2, OSPFv3 and BGP, parsed and written.
//!
//! Each protocol has a file, which walks a whole message (LSP, LS Update, TCP segment) as far as
//! needed to find every advertised prefix and its PNC. This file has the shared parts: the
//! [`Advertisement`], and [`walk`], which selects the protocol. Authentication and checksums are
//! not verified. No state is kept between messages: TCP reassembly, LSDBs and RIBs are out of
//! scope.
//!
//! The number of items in a message is bounded by its length: every step of every walk consumes
//! octets.
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
    /// Returns the layer name for errors.
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

/// The text is neither an address nor an address followed by `/` and a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a prefix: write 10.0.0.0/8, fd00::/16, or one address")]
pub struct NoPrefix;

impl FromStr for Prefix {
    type Err = NoPrefix;

    /// Parses `10.0.0.0/8`, `fd00::/16`, or an address alone. Bits after the length are cleared.
    fn from_str(text: &str) -> core::result::Result<Self, NoPrefix> {
        let read = || match text.split_once('/') {
            // Integer parsing accepts a sign, a length has none.
            Some((address, len)) if len.bytes().all(|b| b.is_ascii_digit()) => {
                Self::new(address.parse().ok()?, len.parse().ok()?)
            }
            Some(_) => None,
            None => Some(Self::host(text.parse().ok()?)),
        };
        read().ok_or(NoPrefix)
    }
}

/// An IP prefix: an address whose bits after the length are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    address: IpAddr,
    len: u8,
}

impl Prefix {
    /// Creates a prefix from the first `len` bits of `address`; the others are cleared. `None` if
    /// `len` exceeds 32 (IPv4) or 128 (IPv6).
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

    /// Creates the prefix of one host: /32 or /128.
    #[must_use]
    pub const fn host(address: IpAddr) -> Self {
        let len = if address.is_ipv4() { 32 } else { 128 };
        Self { address, len }
    }

    /// Returns the address; bits after the length are 0.
    #[must_use]
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns the length in bits: 0 to 32 (IPv4) or 128 (IPv6).
    #[must_use]
    pub const fn bits(&self) -> u8 {
        self.len
    }

    /// Returns true if the prefix is a single host: /32 or /128.
    #[must_use]
    pub const fn is_host(&self) -> bool {
        match self.address {
            IpAddr::V4(_) => self.len == 32,
            IpAddr::V6(_) => self.len == 128,
        }
    }

    /// Returns true if `address` is in the prefix; false for an address of the other family.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        Self::new(address, self.len) == Some(*self)
    }

    /// Returns the number of octets that hold `bits` bits.
    pub(crate) const fn octets(bits: u8) -> usize {
        (bits as usize).div_ceil(8)
    }

    /// Creates a prefix from the leading octets of an address, as the IGPs and BGP encode it;
    /// missing octets count as 0.
    pub(crate) fn from_octets(v6: bool, leading: &[u8], bits: u8) -> Option<Self> {
        let mut whole = [0; 16];
        put(&mut whole, 0, leading.get(..16).unwrap_or(leading));
        let address = match v6 {
            true => ipv6_at(&whole, 0).into(),
            false => ipv4_at(&whole, 0).into(),
        };
        Self::new(address, bits)
    }

    /// Returns the address's octets, an IPv4 address in the first four.
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

/// Flooding scope of an OSPF LSA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flooding {
    /// The link on which it was sent (OSPFv2 LS type 9; OSPFv3 S bits 00).
    Link,
    /// One area (type 10; S bits 01).
    Area,
    /// The routing domain (type 11; S bits 10).
    Domain,
    /// OSPFv3 S bits 11.
    Reserved,
}

/// Advertiser and scope of a prefix: the identity of the enclosing LSP, LSA or UPDATE.
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
        /// Multi-topology ID, 12 bits; 0 if the TLV has none.
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
        /// Route type of the TLV: 0 unspecified, 1 intra-area, 3 inter-area, 5 external, 7 NSSA
        /// external.
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
        /// The route's next hop; the global address if there are two. `None` if absent or not IP.
        next_hop: Option<IpAddr>,
    },
}

/// Octets that encode the capabilities of a prefix (or next hop).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carrier<'a> {
    /// Offset of the first of them from the start of the input, in octets.
    pub offset: usize,
    /// IGPs: the value of the flags sub-TLV, or the rest of the enclosing TLV if the value runs
    /// past its end. BGP: the characteristics of path attribute 39, if the PNC is among them.
    pub octets: &'a [u8],
}

/// One advertised prefix, with the information about its PNC.
///
/// Includes prefixes that are advertised without flags or without PNC in attribute 39: a route that
/// is re-advertised without its PNC has lost it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advertisement<'a> {
    /// Enclosing LSP, LSA or UPDATE.
    pub origin: Origin,
    /// The prefix. `None` for BGP routes of families other than IPv4 and IPv6 unicast.
    pub prefix: Option<Prefix>,
    /// Offset of the enclosing TLV (IS-IS), LSA or UPDATE from the start of the input, in octets.
    pub container: usize,
    /// Offset of the entry that holds the prefix (BGP without a prefix: of the UPDATE) from the
    /// start of the input, in octets.
    pub offset: usize,
    /// The flags or characteristics, if any.
    pub carrier: Option<Carrier<'a>>,
    /// Offset of the flags octet with the PNC bit, or of the PNC characteristic's code, from the
    /// start of the input, in octets. `None` with a carrier means that its PNC cannot be parsed.
    pub flag_offset: Option<usize>,
    /// The LSA is malformed and treated as if it had not been received (RFC 9792 section 2).
    pub ignored: bool,
    /// PNC is advertised and, for BGP, applies to the route.
    pub pnc: bool,
}

impl Advertisement<'_> {
    /// Returns the routing protocol.
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

/// Destination of the findings of a walk: a list, or none.
pub(crate) struct Report<'f>(Option<&'f mut Findings>);

impl<'f> Report<'f> {
    pub(crate) const fn discard() -> Self {
        Self(None)
    }

    pub(crate) fn push(&mut self, rule: Rule, offset: usize, len: usize) {
        if let Some(findings) = &mut self.0 {
            findings.push(rule, offset, len);
        }
    }

    /// Checks that PNC is advertised only for a host prefix (section 5.1).
    pub(crate) fn host_only(&mut self, found: &Advertisement<'_>) {
        if let (true, Some(prefix), Some(at)) = (found.pnc, found.prefix, found.flag_offset)
            && !prefix.is_host()
        {
            self.push(Rule::PncNotHost, at, 1);
        }
    }
}

/// Advertisements in a message of any of the four protocols.
#[derive(Clone, Debug)]
pub struct Walk<'a>(Inner<'a>);

#[derive(Clone, Debug)]
enum Inner<'a> {
    /// From an LSP.
    IsIs(isis::Advertisements<'a>),
    /// From an LS Update of either version.
    Ospf(ospf::Advertisements<'a>),
    /// From the BGP messages in a TCP segment.
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

    /// Returns the next advertisement; broken rules found before and in it are added to `findings`.
    pub fn next_checked(&mut self, findings: &mut Findings) -> Option<Advertisement<'a>> {
        self.step(&mut Report(Some(findings)))
    }

    /// Sets the state of the BGP session; no effect for other protocols.
    #[must_use]
    pub const fn in_session(mut self, session: bgp::Session) -> Self {
        if let Inner::Bgp(walk) = &mut self.0 {
            walk.session = session;
        }
        self
    }

    /// Walks to the end, and adds all broken rules to `findings`.
    pub fn check(mut self, findings: &mut Findings) {
        while self.next_checked(findings).is_some() {}
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Advertisement<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(&mut Report::discard())
    }
}

/// Walks `bytes`: an IS-IS PDU from its discriminator 0x83 on, an OSPF packet from its version
/// octet on, or the payload of a TCP segment of a BGP session. Octets after the message's own
/// length are ignored.
///
/// The message had `wire_len` octets on the wire. If the capture truncated it, the captured part is
/// walked, and the missing rest is not a finding; a message that claims more than `wire_len` is
/// still wrong. Returns `None` for a message of another kind, which advertises no prefixes.
///
/// # Errors
/// Fails if the message's header cannot be parsed, or the message is longer than `wire_len`.
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

/// Returns true if `bytes` contain flags of a prefix or a path attribute 39, as far as captured and
/// regardless of their lengths. Defects of messages without either are out of scope.
#[must_use]
pub fn has_capability_data(protocol: Protocol, bytes: &[u8]) -> bool {
    let walk = match protocol {
        Protocol::IsIs => isis::Lsp::all_of(bytes).map(|lsp| lsp.advertisements()),
        Protocol::Ospf2 => ospf2::LsUpdate::all_of(bytes).map(|update| update.advertisements()),
        Protocol::Ospf3 => ospf3::LsUpdate::all_of(bytes).map(|update| update.advertisements()),
        Protocol::Bgp => return bgp::has_attribute_39(bytes),
    };
    walk.is_some_and(|mut walk| walk.any(|found| found.carrier.is_some()))
}

/// Performs [`walk`] for a message for which [`has_capability_data`] is true; rules broken before
/// the first advertisement are added to `findings`. Also returns `None` if the header cannot be
/// parsed. A header that the capture truncated is not a finding.
pub fn walk_checked<'a>(
    protocol: Protocol,
    bytes: &'a [u8],
    wire_len: usize,
    profile: &Profile,
    findings: &mut Findings,
) -> Option<Walk<'a>> {
    if !has_capability_data(protocol, bytes) {
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
    fn common_prefix_notations_are_parsed() {
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
