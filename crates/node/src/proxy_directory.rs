//! Which proxy node serves which sender, learnt from routing (draft-xiao-rtgwg-proxy-congestion-notification section 5.1).
//!
//! The draft says that the flag is "set for the local host prefix of the originating node", and that the proxy is that of
//! "the sender associated with that prefix", and not how: [`Reading`] has both readings. In BGP the characteristic belongs
//! to the route's next hop, which serves the route's prefix, by either.
//!
//! A prefix that another router passes on (IS-IS down bit or re-advertisement flag, OSPF inter-area and external) no
//! longer tells who its proxy is, and so serves only itself.
//!
//! This is no LSDB and no RIB: what was advertised last counts, nothing ages, and withdrawals are not seen. Where that
//! matters, proxies are to be configured. Routing messages are not authenticated here: only the domain's own may come in.

use crate::prefix_map::PrefixMap;
use fcn_observe::Routing;
use fcn_wire::pnc::{self, Advertisement, Origin, Prefix};
use fcn_wire::{Frame, Profile};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

/// Route type that does not say.
const OSPF2_UNSPECIFIED: u8 = 0;

/// Which senders a node with PNC serves (draft-xiao-rtgwg-proxy-congestion-notification section 5.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Reading {
    /// The flag stands at the proxy's own host prefix: senders in any prefix that the same node advertises (the IS-IS
    /// system ID or OSPF advertising router is the same) are served at that address \[choice\]. A host prefix with PNC
    /// that is the sender's own also counts.
    #[default]
    ProxyPrefix,
    /// The flag stands at the sender's prefix: the node that advertises it with PNC serves the senders in it, and no
    /// others. It is told at a host prefix that it advertises without the flag, as those with it are senders'; at none
    /// where there is none \[choice\].
    SenderPrefix,
}

/// What the directory has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Advertised prefixes read.
    pub advertisements: u64,
    /// Of these, those with PNC.
    pub with_pnc: u64,
    /// Prefixes not remembered because the directory was full: what it knows stays.
    pub refused: u64,
    /// Messages that could not be read.
    pub malformed: u64,
}

/// Who advertises a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Advertiser {
    /// IS-IS system ID.
    IsIs([u8; 6]),
    /// OSPFv2 advertising router.
    Ospf2(Ipv4Addr),
    /// OSPFv3 advertising router.
    Ospf3(Ipv4Addr),
    /// The speaker at the other end of a BGP session.
    Bgp(IpAddr),
}

/// How an advertiser has a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Advertised {
    /// It is the advertiser's own, with PNC or without.
    Own { pnc: bool },
    /// It is somebody else's, with PNC or without.
    PassedOn { pnc: bool },
    /// A BGP route; its next hop where that has PNC.
    Route(Option<IpAddr>),
}

/// The directory.
#[derive(Debug)]
pub struct ProxyDirectory {
    prefixes: PrefixMap<BTreeMap<Advertiser, Advertised>>,
    /// Host prefixes at which each IGP router is told as a proxy.
    proxies: BTreeMap<Advertiser, BTreeSet<IpAddr>>,
    reading: Reading,
    /// The OPEN messages of BGP sessions.
    routing: Routing,
    /// Pairs of prefix and advertiser.
    len: usize,
    capacity: usize,
    profile: Profile,
    counters: Counters,
}

impl ProxyDirectory {
    /// An empty directory of at most `capacity` advertised prefixes. When it is full, new ones are refused and counted:
    /// a flood of them then cannot drive out what is known.
    #[must_use]
    pub fn new(capacity: usize, reading: Reading, profile: Profile) -> Self {
        Self {
            reading,
            routing: Routing::default(),
            prefixes: PrefixMap::new(),
            proxies: BTreeMap::new(),
            len: 0,
            capacity,
            profile,
            counters: Counters::default(),
        }
    }

    /// Learns from the IS-IS, OSPF or BGP message in `frame`; anything else is left alone.
    pub fn learn(&mut self, frame: &Frame<'_>) {
        let Some((protocol, _, bytes)) = frame.routing() else {
            return;
        };
        let ends = frame.ip().map(|ip| (ip.source, ip.destination));
        let session = (self.routing).hear(protocol, bytes, ends, &self.profile, |_| {});
        let speaker = ends.map(|(speaker, _)| speaker);
        match pnc::walk(protocol, bytes, bytes.len(), &self.profile) {
            Ok(Some(walk)) => {
                // A malformed LSA is as if it had never come.
                for advertisement in walk.in_session(session).filter(|found| !found.ignored) {
                    self.advertised(&advertisement, speaker);
                }
            }
            Ok(None) => {}
            Err(_) => self.counters.malformed += 1,
        }
    }

    fn advertised(&mut self, advertisement: &Advertisement<'_>, speaker: Option<IpAddr>) {
        self.counters.advertisements += 1;
        self.counters.with_pnc += u64::from(advertisement.pnc);
        let Some(prefix) = advertisement.prefix else {
            return;
        };
        if let Some((advertiser, advertised)) = reading(advertisement, speaker) {
            self.note(prefix, advertiser, advertised);
        }
    }

    fn note(&mut self, prefix: Prefix, advertiser: Advertiser, advertised: Advertised) {
        let known = self
            .prefixes
            .get_mut(prefix)
            .and_then(|advertisers| advertisers.get_mut(&advertiser));
        if let Some(known) = known {
            *known = advertised;
        } else {
            // A BGP route without PNC tells nothing that its absence would not.
            if advertised == Advertised::Route(None) {
                return;
            }
            if self.len >= self.capacity {
                self.counters.refused += 1;
                return;
            }
            self.len += 1;
            self.prefixes
                .get_or_insert(prefix, BTreeMap::new)
                .insert(advertiser, advertised);
        }
        if advertised == Advertised::Route(None) {
            self.forget(prefix, advertiser);
        }
        self.note_proxy(prefix, advertiser, advertised);
    }

    fn forget(&mut self, prefix: Prefix, advertiser: Advertiser) {
        let Some(advertisers) = self.prefixes.get_mut(prefix) else {
            return;
        };
        if advertisers.remove(&advertiser).is_some() {
            self.len -= 1;
        }
        if advertisers.is_empty() {
            self.prefixes.remove(prefix);
        }
    }

    /// Keeps the host prefixes at which each router can be told.
    fn note_proxy(&mut self, prefix: Prefix, advertiser: Advertiser, advertised: Advertised) {
        let address = prefix.address();
        let is_proxy = match self.reading {
            Reading::ProxyPrefix => advertised == (Advertised::Own { pnc: true }),
            Reading::SenderPrefix => advertised == (Advertised::Own { pnc: false }),
        };
        if is_proxy && prefix.is_host() {
            self.proxies.entry(advertiser).or_default().insert(address);
        } else if let Some(addresses) = self.proxies.get_mut(&advertiser) {
            if prefix.is_host() {
                addresses.remove(&address);
            }
            if addresses.is_empty() {
                self.proxies.remove(&advertiser);
            }
        }
    }

    /// The proxy to tell about the flows of `sender`: that of the longest prefix it is in. Where several nodes advertise
    /// that prefix, or a node has several addresses, one of the sender's family is preferred, then the lowest.
    #[must_use]
    pub fn proxy_for(&self, sender: IpAddr) -> Option<IpAddr> {
        let (prefix, advertisers) = self.prefixes.longest(sender)?;
        let candidates = advertisers.iter().filter_map(|(advertiser, advertised)| {
            self.proxy_of(sender, prefix, *advertiser, *advertised)
        });
        candidates.min_by_key(|proxy| (proxy.is_ipv4() != sender.is_ipv4(), *proxy))
    }

    fn proxy_of(
        &self,
        sender: IpAddr,
        prefix: Prefix,
        advertiser: Advertiser,
        advertised: Advertised,
    ) -> Option<IpAddr> {
        let serves = self.reading == Reading::ProxyPrefix;
        match advertised {
            Advertised::Own { pnc } if serves || pnc => {
                let addresses = self.proxies.get(&advertiser)?.iter().copied();
                addresses.min_by_key(|proxy| (proxy.is_ipv4() != sender.is_ipv4(), *proxy))
            }
            Advertised::Own { .. } => None,
            Advertised::PassedOn { pnc } => {
                (serves && pnc && prefix.is_host()).then(|| prefix.address())
            }
            Advertised::Route(next_hop) => next_hop,
        }
    }

    /// What was counted.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }
}

/// Who advertises, and what it says; `speaker` sent the message.
fn reading(
    advertisement: &Advertisement<'_>,
    speaker: Option<IpAddr>,
) -> Option<(Advertiser, Advertised)> {
    let pnc = advertisement.pnc;
    let igp = |own: bool| {
        if own {
            Advertised::Own { pnc }
        } else {
            Advertised::PassedOn { pnc }
        }
    };
    Some(match advertisement.origin {
        Origin::IsIs { lsp_id, down, .. } => {
            let flags = advertisement
                .carrier
                .and_then(|c| c.octets.first().copied());
            let readvertised = flags.is_some_and(|octet| octet & pnc::isis::FLAG_READVERTISED != 0);
            let system = Advertiser::IsIs(*lsp_id.first_chunk()?);
            (system, igp(!down && !readvertised))
        }
        Origin::Ospf2 {
            advertising_router,
            route_type,
            ..
        } => {
            let own = matches!(route_type, pnc::ospf2::INTRA_AREA | OSPF2_UNSPECIFIED);
            (Advertiser::Ospf2(advertising_router), igp(own))
        }
        Origin::Ospf3 {
            advertising_router,
            ls_type,
            ..
        } => {
            use pnc::ospf3::function::{INTRA_AREA_PREFIX, LINK};
            let own = matches!(ls_type & 0x1FFF, INTRA_AREA_PREFIX | LINK);
            (Advertiser::Ospf3(advertising_router), igp(own))
        }
        Origin::Bgp { next_hop, .. } => {
            let advertised = Advertised::Route(next_hop.filter(|_| pnc));
            (Advertiser::Bgp(speaker?), advertised)
        }
    })
}

#[cfg(test)]
mod tests;
