//! Directory of the proxy nodes of senders, learnt from routing
//! (draft-xiao-rtgwg-proxy-congestion-notification section 5.1).
//!
//! The draft says that the flag is "set for the local host prefix of the originating node", and
//! that the proxy is that of "the sender associated with that prefix", but not how they are
//! associated: [`Reading`] has both readings. In BGP, the characteristic belongs to the route's
//! next hop, which serves the route's prefix in either reading.
//!
//! A prefix that is passed on by another router (IS-IS down bit or re-advertisement flag, OSPF
//! inter-area and external) no longer identifies its proxy, and so serves only itself.
//!
//! An LSP or LSA replaces older versions of itself, and is valid until it is purged or its lifetime
//! ends. A BGP route is valid until it is withdrawn, or its session ends by a NOTIFICATION or
//! restarts. A session that just breaks off (end of TCP, hold time) is not noticed before that.
//! Routing messages are not authenticated here: only those of the domain may be passed in.

use crate::prefix_map::PrefixMap;
use fcn_observe::routing::{self, Edition, each_edition};
use fcn_observe::{Routing, Time};
use fcn_wire::pnc::bgp::{self, Messages, Session, Update};
use fcn_wire::pnc::{self, Advertisement, Origin, Prefix, Protocol};
use fcn_wire::{Frame, Profile};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// Route type "unspecified".
const OSPF2_UNSPECIFIED: u8 = 0;

/// Senders that a node with PNC serves (draft-xiao-rtgwg-proxy-congestion-notification section
/// 5.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Reading {
    /// The flag is set for the proxy's own host prefix. Senders in any prefix that the same node
    /// advertises (with the same IS-IS system ID or OSPF advertising router) are served at that
    /// address \[choice\]. A host prefix with PNC that is the sender's own also counts.
    #[default]
    ProxyPrefix,
    /// The flag is set for the sender's prefix. The node that advertises it with PNC serves the
    /// senders in it, and no others. The node is notified at a host prefix that it advertises
    /// without the flag, as those with it belong to senders; if it has none, it is not notified
    /// \[choice\].
    SenderPrefix,
}

/// Counters of the directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Advertised prefixes read.
    pub advertisements: u64,
    /// Advertised prefixes with PNC.
    pub with_pnc: u64,
    /// Prefixes not stored because the directory was full; existing ones are kept.
    pub refused: u64,
    /// Messages that could not be parsed.
    pub malformed: u64,
}

/// The advertiser of a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Advertiser {
    /// IS-IS system ID.
    IsIs([u8; 6]),
    /// OSPFv2 advertising router.
    Ospf2(Ipv4Addr),
    /// OSPFv3 advertising router.
    Ospf3(Ipv4Addr),
    /// Address of the BGP speaker at the remote end of a session.
    Bgp(IpAddr),
}

/// Unit of routing information that is withdrawn as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    /// An LSP or LSA.
    Igp(routing::Source),
    /// A BGP session: speaker and listener.
    Session(IpAddr, IpAddr),
}

/// Information from a source.
#[derive(Debug)]
struct SourceState {
    advertiser: Advertiser,
    /// Sequence number of the LSP or LSA.
    sequence: u32,
    /// End of its lifetime.
    until: Option<Time>,
    prefixes: BTreeSet<Prefix>,
}

/// Advertiser and source of an advertisement.
type AdvertisementKey = (Advertiser, Source);

/// The kind of an advertisement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Advertised {
    /// The prefix belongs to the advertiser; with or without PNC.
    Own { pnc: bool },
    /// The prefix belongs to another node; with or without PNC.
    PassedOn { pnc: bool },
    /// A BGP route; its next hop if that has PNC.
    Route(Option<IpAddr>),
}

/// The directory.
#[derive(Debug, Default)]
pub struct ProxyDirectory {
    prefixes: PrefixMap<BTreeMap<AdvertisementKey, Advertised>>,
    /// Host prefixes at which each IGP router is notified as a proxy.
    proxies: BTreeMap<Advertiser, BTreeSet<(IpAddr, Source)>>,
    /// Sources that have prefixes.
    sources: BTreeMap<Source, SourceState>,
    /// Sources with a lifetime, by its end.
    ends: BTreeSet<(Time, Source)>,
    reading: Reading,
    /// State of BGP sessions from their OPEN messages.
    routing: Routing,
    /// Number of pairs of prefix and place.
    len: usize,
    capacity: usize,
    profile: Profile,
    counters: Counters,
}

impl ProxyDirectory {
    /// Creates an empty directory of at most `capacity` advertised prefixes. When it is full, new
    /// ones are refused and counted, so that a flood of them cannot displace existing ones.
    #[must_use]
    pub fn new(capacity: usize, reading: Reading, profile: Profile) -> Self {
        Self {
            reading,
            capacity,
            profile,
            ..Self::default()
        }
    }

    /// Learns from the IS-IS, OSPF or BGP message in `frame`; other frames are ignored.
    pub fn learn(&mut self, now: Time, frame: &Frame<'_>) {
        self.expire(now);
        let Some((protocol, _, bytes)) = frame.routing() else {
            return;
        };
        if protocol == Protocol::Bgp {
            if let Some(ip) = frame.ip() {
                self.learn_bgp(bytes, (ip.source, ip.destination));
            }
            return;
        }
        let read = each_edition(protocol, bytes, bytes.len(), |edition, found| {
            if self.supersede(&edition) {
                let source = Source::Igp(edition.source);
                found.for_each(|advertisement| self.advertised(&advertisement, source, None));
                self.age(now, &edition);
            }
        });
        self.counters.malformed += u64::from(!read);
    }

    fn learn_bgp(&mut self, bytes: &[u8], ends: (IpAddr, IpAddr)) {
        let protocol = Protocol::Bgp;
        let session: Session = (self.routing).learn(protocol, bytes, Some(ends), |_| {});
        let Ok(Some(walk)) = pnc::walk(protocol, bytes, bytes.len(), &self.profile) else {
            self.counters.malformed += 1;
            return;
        };
        let mut walk = walk.in_session(session).peekable();
        let (speaker, listener) = ends;
        let source = Source::Session(speaker, listener);
        for message in Messages::new(bytes) {
            if matches!(message.kind, bgp::OPEN | bgp::NOTIFICATION) {
                self.take_back(source);
            }
            if message.kind == bgp::NOTIFICATION {
                self.take_back(Source::Session(listener, speaker));
            }
            if let Ok(update) = Update::new_checked(&message) {
                for prefix in update.withdrawn(session) {
                    self.forget(prefix, (Advertiser::Bgp(speaker), source));
                }
            }
            while let Some(found) = walk.next_if(|found| found.container == message.offset) {
                self.advertised(&found, source, Some(speaker));
            }
        }
    }

    /// Removes sources whose lifetime is over.
    pub fn expire(&mut self, now: Time) {
        while let Some((until, source)) = self.ends.first().copied()
            && until <= now
        {
            self.take_back(source);
        }
    }

    /// Removes the information of an older edition, unless this one is not newer. Returns true if
    /// this edition is newer and not a purge.
    fn supersede(&mut self, edition: &Edition) -> bool {
        let source = Source::Igp(edition.source);
        let purges = edition.lifetime == Some(0);
        if let Some(said) = self.sources.get(&source) {
            if edition.sequence < said.sequence || (edition.sequence == said.sequence && !purges) {
                return false;
            }
            self.take_back(source);
        }
        !purges
    }

    /// Records the lifetime of an edition.
    fn age(&mut self, now: Time, edition: &Edition) {
        let source = Source::Igp(edition.source);
        if let Some(said) = self.sources.get_mut(&source) {
            said.sequence = edition.sequence;
            let lifetime = edition
                .lifetime
                .map(|seconds| Duration::from_secs(seconds.into()));
            said.until = lifetime.map(|lifetime| now + lifetime);
            self.ends.extend(said.until.map(|until| (until, source)));
        }
    }

    /// Removes all information from a source.
    fn take_back(&mut self, source: Source) {
        let Some(said) = self.sources.remove(&source) else {
            return;
        };
        if let Some(until) = said.until {
            self.ends.remove(&(until, source));
        }
        for prefix in said.prefixes {
            self.forget(prefix, (said.advertiser, source));
        }
    }

    fn advertised(
        &mut self,
        advertisement: &Advertisement<'_>,
        source: Source,
        speaker: Option<IpAddr>,
    ) {
        self.counters.advertisements += 1;
        self.counters.with_pnc += u64::from(advertisement.pnc);
        let Some(prefix) = advertisement.prefix else {
            return;
        };
        if let Some((advertiser, advertised)) = reading(advertisement, speaker) {
            self.note(prefix, (advertiser, source), advertised);
        }
    }

    fn note(&mut self, prefix: Prefix, key: AdvertisementKey, advertised: Advertised) {
        let known = self
            .prefixes
            .get_mut(prefix)
            .and_then(|places| places.get_mut(&key));
        // A BGP route without PNC is equivalent to its absence.
        if advertised == Advertised::Route(None) {
            self.forget(prefix, key);
            return;
        }
        if let Some(known) = known {
            *known = advertised;
        } else {
            if self.len >= self.capacity {
                self.counters.refused += 1;
                return;
            }
            self.len += 1;
            self.prefixes
                .get_or_insert(prefix, BTreeMap::new)
                .insert(key, advertised);
            let (advertiser, source) = key;
            let state = self.sources.entry(source).or_insert_with(|| SourceState {
                advertiser,
                sequence: 0,
                until: None,
                prefixes: BTreeSet::new(),
            });
            state.prefixes.insert(prefix);
        }
        self.note_proxy(prefix, key, advertised);
    }

    fn forget(&mut self, prefix: Prefix, key: AdvertisementKey) {
        let (advertiser, source) = key;
        let Some(places) = self.prefixes.get_mut(prefix) else {
            return;
        };
        if places.remove(&key).is_none() {
            return;
        }
        self.len -= 1;
        if places.is_empty() {
            self.prefixes.remove(prefix);
        }
        if prefix.is_host() {
            self.forget_proxy(advertiser, (prefix.address(), source));
        }
        if let Some(said) = self.sources.get_mut(&source) {
            said.prefixes.remove(&prefix);
            if said.prefixes.is_empty() {
                self.take_back(source);
            }
        }
    }

    /// Updates the host prefixes at which each router can be notified.
    fn note_proxy(
        &mut self,
        prefix: Prefix,
        (advertiser, source): AdvertisementKey,
        advertised: Advertised,
    ) {
        let is_proxy = match self.reading {
            Reading::ProxyPrefix => advertised == (Advertised::Own { pnc: true }),
            Reading::SenderPrefix => advertised == (Advertised::Own { pnc: false }),
        };
        if !prefix.is_host() {
            return;
        }
        let proxy = (prefix.address(), source);
        match is_proxy {
            true => drop(self.proxies.entry(advertiser).or_default().insert(proxy)),
            false => self.forget_proxy(advertiser, proxy),
        }
    }

    fn forget_proxy(&mut self, advertiser: Advertiser, proxy: (IpAddr, Source)) {
        if let Some(proxies) = self.proxies.get_mut(&advertiser) {
            proxies.remove(&proxy);
            if proxies.is_empty() {
                self.proxies.remove(&advertiser);
            }
        }
    }

    /// Returns the proxy to notify about the flows of `sender`: that of the longest matching
    /// prefix. If several nodes advertise that prefix, or a node has several addresses, one of the
    /// sender's family is preferred, then the lowest.
    #[must_use]
    pub fn proxy_for(&self, sender: IpAddr) -> Option<IpAddr> {
        let (prefix, places) = self.prefixes.longest(sender)?;
        let candidates = places.iter().filter_map(|((advertiser, _), advertised)| {
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
                let addresses = self
                    .proxies
                    .get(&advertiser)?
                    .iter()
                    .map(|(address, _)| *address);
                addresses.min_by_key(|proxy| (proxy.is_ipv4() != sender.is_ipv4(), *proxy))
            }
            Advertised::Own { .. } => None,
            Advertised::PassedOn { pnc } => {
                (serves && pnc && prefix.is_host()).then(|| prefix.address())
            }
            Advertised::Route(next_hop) => next_hop,
        }
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }
}

/// Returns the advertiser and the kind of an advertisement; `speaker` sent the message.
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
