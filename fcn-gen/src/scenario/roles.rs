//! What each node does: the mechanism gives every role its configuration, the file's own keys override.

use super::addresses::Addresses;
use super::check;
use super::error::Refusal;
use super::flows::Pair;
use super::model::{
    Edge, Host, LinkId, Mechanism, Node, NodeId, NodeKind, ProxyKnownBy, Proxying, Switch,
    Thresholds, Tunnel,
};
use super::role_settings::{
    dcqcn_params, detour, limits, notification_delay, positive, telemetry_params, thresholds,
};
use super::schema::{
    AbilityText, CnpFormText, ControlText, File, HostText, KnownByText, Maybe, Patterns, PncAtText,
    SwitchText, TunnelText, prefix,
};
use super::topology::{Entry, Topology};
use crate::units::Ps;
use core::cell::Cell;
use core::ops::Range;
use fcn_node::congestion_point::{self, Ability};
use fcn_node::proxy_directory::Reading;
use fcn_node::reaction_point::{self, Control};
use fcn_node::{ingress_pe, notification_point, proxy};
use fcn_wire::pnc::Prefix;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;
use toml::Spanned;

/// Everything that decides about roles.
pub(super) struct Roles<'t, 'a> {
    topology: &'t Topology<'a>,
    addresses: &'t [Addresses],
    mechanism: Mechanism,
    domains: Vec<u16>,
    edges: Vec<NodeId>,
    wan: HashSet<NodeId>,
    ingress: Option<NodeId>,
    /// Whether a receiver sends Fast CNPs.
    fast_receivers: bool,
    proxies: Vec<ProxyNode>,
    /// By switch, where receivers tell: the longest round trip of a flow through it.
    rounds: HashMap<NodeId, Ps>,
    reading: Reading,
    /// Prefixes in lists so far.
    listed: Cell<usize>,
}

struct ProxyNode {
    id: NodeId,
    known_by: ProxyKnownBy,
    serves: Vec<Prefix>,
    /// The same, for looking up: single addresses, and wider prefixes.
    hosts: HashSet<IpAddr>,
    wider: Vec<Prefix>,
}

impl ProxyNode {
    fn new(id: NodeId, known_by: ProxyKnownBy, serves: Vec<Prefix>) -> Self {
        let (hosts, wider): (Vec<_>, Vec<_>) = serves.iter().partition(|prefix| prefix.is_host());
        Self {
            id,
            known_by,
            hosts: hosts.iter().map(Prefix::address).collect(),
            wider,
            serves,
        }
    }

    fn serves(&self, host: IpAddr) -> bool {
        self.hosts.contains(&host) || self.wider.iter().any(|prefix| prefix.contains(host))
    }
}

impl<'t, 'a> Roles<'t, 'a> {
    pub fn new(
        file: &File,
        topology: &'t Topology<'a>,
        addresses: &'t [Addresses],
        mechanism: Mechanism,
        pairs: &[Pair<'_>],
    ) -> Result<Self, Refusal> {
        let edges: Vec<NodeId> = switches(topology)
            .filter(|(_, switch)| switch.edge.is_some())
            .map(|(id, _)| id)
            .collect();
        let wan: HashSet<NodeId> = if edges.is_empty() {
            HashSet::new()
        } else {
            topology.behind(&edges).into_iter().collect()
        };
        if mechanism == Mechanism::WanFcn && (edges.len() < 2 || wan.is_empty()) {
            let message = "wan-fcn needs provider edges and switches between them: give two switches edge = \"srv6\" (or \"vxlan\", \
                           \"sr-mpls\"), or choose another mechanism";
            return Err(Refusal::at(&file.mechanism, message));
        }
        let ingress = pairs
            .iter()
            .find_map(|pair| pair.path.iter().find(|id| edges.contains(id)))
            .copied();
        let mut roles = Self {
            topology,
            addresses,
            mechanism,
            domains: domains(topology),
            edges,
            wan,
            ingress,
            fast_receivers: file.host.iter().any(|host| answers_fast(host.get_ref())),
            proxies: Vec::new(),
            rounds: rounds(topology, mechanism, pairs),
            reading: match file.pnc_at {
                None | Some(PncAtText::Proxy) => Reading::ProxyPrefix,
                Some(PncAtText::Sender) => Reading::SenderPrefix,
            },
            listed: Cell::new(0),
        };
        for host in file.host.iter().map(Spanned::get_ref) {
            if let Some(texts) = &host.access_list {
                let copies = host.count.as_ref().map_or(1, |count| *count.get_ref());
                roles.access(texts, copies)?;
            }
        }
        if mechanism == Mechanism::Proxy {
            let senders: HashSet<NodeId> = pairs.iter().map(|pair| pair.from).collect();
            roles.proxies = roles.find_proxies(&senders)?;
            if roles.proxies.is_empty() {
                return Err(Refusal::at(
                    &file.mechanism,
                    "no switch is a proxy; give the senders' switch proxy = true",
                ));
            }
        }
        Ok(roles)
    }

    fn fast(&self) -> bool {
        matches!(self.mechanism, Mechanism::FastCnp | Mechanism::FastCnpIoam)
    }

    /// Whether anybody sends Fast CNPs: hosts that handle them have the feature on.
    fn fast_to_hosts(&self) -> bool {
        self.fast() || self.fast_receivers
    }

    fn domain(&self, id: NodeId) -> u16 {
        self.domains.get(id).copied().unwrap_or(0)
    }

    fn address(&self, id: NodeId) -> Result<Addresses, Refusal> {
        self.addresses
            .get(id)
            .copied()
            .ok_or_else(|| Refusal::whole("a node without addresses"))
    }

    /// The addresses of a node as prefixes of one host each.
    fn prefixes(&self, id: NodeId) -> impl Iterator<Item = Prefix> {
        let own = self.addresses.get(id).copied();
        let ipv6 = own.map(|own| IpAddr::V6(own.ipv6));
        let ipv4 = own.and_then(|own| own.ipv4).map(IpAddr::V4);
        ipv6.into_iter().chain(ipv4).map(Prefix::host)
    }

    /// The proxy that serves a host: its address and how it is known.
    pub fn proxy_of(&self, host: NodeId) -> Option<(Addresses, ProxyKnownBy)> {
        let own = IpAddr::V6(self.addresses.get(host)?.ipv6);
        let proxy = self.proxies.iter().find(|proxy| proxy.serves(own))?;
        Some((*self.addresses.get(proxy.id)?, proxy.known_by))
    }

    fn find_proxies(&self, senders: &HashSet<NodeId>) -> Result<Vec<ProxyNode>, Refusal> {
        let mut proxies = Vec::new();
        for (id, switch) in switches(self.topology) {
            let has_sender = self
                .topology
                .neighbours(id)
                .any(|next| senders.contains(&next));
            if !switch
                .proxy
                .as_ref()
                .map_or(has_sender, |proxy| *proxy.get_ref())
            {
                continue;
            }
            let known_by = switch
                .known_by
                .as_ref()
                .map_or(ProxyKnownBy::Configuration, |by| known_by(*by.get_ref()));
            let serves = match &switch.serves {
                Some(texts) => self.access(texts, 1)?,
                None => {
                    let hosts = self
                        .topology
                        .neighbours(id)
                        .filter(|next| self.topology.is_host(*next));
                    hosts.flat_map(|host| self.prefixes(host)).collect()
                }
            };
            if serves.is_empty() {
                let message = format!(
                    "the proxy `{}` has no hosts at it; say whom it serves, as in serves = [\"2001:db8:1::/48\"]",
                    switch.name.get_ref()
                );
                return Err(Refusal::at(&switch.name, message));
            }
            // Every congestion point may come to know them.
            let everywhere = serves.len().saturating_mul(switches(self.topology).count());
            self.count_listed(everywhere, switch.name.span())?;
            proxies.push(ProxyNode::new(id, known_by, serves));
        }
        Ok(proxies)
    }

    /// Prefixes, addresses and names of nodes as prefixes. Counts so many copies of them.
    fn access(&self, texts: &[Spanned<String>], copies: u32) -> Result<Vec<Prefix>, Refusal> {
        let mut all = Vec::new();
        for text in texts {
            let before = all.len();
            match prefix(text.get_ref()) {
                Some(prefix) => all.push(prefix),
                None if text.get_ref().contains(['/', ':', '.']) => {
                    let message = format!(
                        "`{}` is no prefix; allowed are 2001:db8:1::/48, 198.18.1.1 or a node's name",
                        text.get_ref()
                    );
                    return Err(Refusal::at(text, message));
                }
                None => {
                    let names = Patterns(vec![text.get_ref().clone()]);
                    let ids = self.topology.find(&names, &text.span(), None)?;
                    all.extend(ids.into_iter().flat_map(|id| self.prefixes(id)));
                }
            }
            // One list may be that of many hosts.
            let more = (all.len() - before).saturating_mul(copies as usize);
            self.count_listed(more, text.span())?;
        }
        Ok(all)
    }

    fn count_listed(&self, more: usize, at: Range<usize>) -> Result<(), Refusal> {
        let listed = self.listed.get().saturating_add(more);
        self.listed.set(listed);
        check::count(listed, check::LISTED, "prefixes in all lists together", at)
    }

    /// Every node, complete.
    pub fn nodes(&self) -> Result<Vec<Node>, Refusal> {
        let trusted = self.trusted();
        let senders = self.senders();
        let mut node_ids = HashSet::new();
        let mut nodes = Vec::with_capacity(self.topology.nodes.len());
        for (id, named) in self.topology.nodes.iter().enumerate() {
            let own = self.address(id)?;
            let kind = match named.entry {
                Entry::Host(host) => NodeKind::Host(Box::new(self.host(id, host, &trusted)?)),
                Entry::Switch(switch) => NodeKind::Switch(Box::new(self.switch(
                    id,
                    switch,
                    &senders,
                    &mut node_ids,
                )?)),
            };
            nodes.push(Node {
                name: named.name.clone(),
                ipv6: own.ipv6,
                ipv4: own.ipv4,
                domain: self.domain(id),
                kind,
            });
        }
        Ok(nodes)
    }

    /// Whom hosts of each domain believe: its congestion points, and its hosts that send Fast CNPs.
    fn trusted(&self) -> HashMap<u16, Vec<Prefix>> {
        let mut trusted: HashMap<u16, Vec<Prefix>> = HashMap::new();
        for (id, named) in self.topology.nodes.iter().enumerate() {
            if let (Entry::Host(host), Some(own)) = (named.entry, self.addresses.get(id))
                && answers_fast(host)
            {
                let list = trusted.entry(self.domain(id)).or_default();
                list.push(Prefix::host(IpAddr::V6(own.ipv6)));
            }
        }
        if self.fast() {
            for (id, _) in
                switches(self.topology).filter(|(_, switch)| switch.congestion_point != Some(false))
            {
                if let Some(own) = self.addresses.get(id) {
                    trusted
                        .entry(self.domain(id))
                        .or_default()
                        .push(Prefix::host(IpAddr::V6(own.ipv6)));
                }
            }
        }
        trusted
    }

    /// What congestion points of each domain know about its senders.
    fn senders(&self) -> HashMap<u16, Vec<(Prefix, Ability)>> {
        let mut senders: HashMap<u16, Vec<(Prefix, Ability)>> = HashMap::new();
        if self.fast() {
            for (id, named) in self.topology.nodes.iter().enumerate() {
                let Entry::Host(host) = named.entry else {
                    continue;
                };
                let ability = match host.fast_cnp.unwrap_or(AbilityText::Able) {
                    AbilityText::Able => Ability::Able,
                    AbilityText::AbleUnknown | AbilityText::UnableUnknown => Ability::Unknown,
                    AbilityText::Unable => Ability::Unable,
                };
                if let Some(own) = self.addresses.get(id) {
                    senders
                        .entry(self.domain(id))
                        .or_default()
                        .push((Prefix::host(IpAddr::V6(own.ipv6)), ability));
                }
            }
        }
        senders
    }

    fn host(
        &self,
        id: NodeId,
        host: &HostText,
        trusted: &HashMap<u16, Vec<Prefix>>,
    ) -> Result<Host, Refusal> {
        let able = !matches!(
            host.fast_cnp,
            Some(AbilityText::Unable | AbilityText::UnableUnknown)
        );
        let access_list = match &host.access_list {
            // Counted in `new`.
            Some(texts) => self.access(texts, 0)?,
            None => trusted.get(&self.domain(id)).cloned().unwrap_or_default(),
        };
        let by_mechanism = if self.mechanism == Mechanism::FastCnpIoam {
            ControlText::Telemetry
        } else {
            ControlText::Dcqcn
        };
        let control = match host.control.unwrap_or(by_mechanism) {
            ControlText::Dcqcn => Control::Dcqcn(dcqcn_params(&host.dcqcn)?),
            ControlText::Telemetry => Control::Telemetry(telemetry_params(&host.telemetry)?),
            ControlText::Fixed => Control::Fixed,
        };
        let defaults = reaction_point::Config::default();
        let verify_icrc = host.verify_icrc.unwrap_or(defaults.verify_icrc);
        let reaction = reaction_point::Config {
            control,
            fast_cnp: able && self.fast_to_hosts(),
            access_list,
            verify_icrc,
            detour: detour(host),
            ..defaults
        };
        let answers_ce = host
            .cnp
            .unwrap_or(!matches!(self.mechanism, Mechanism::None | Mechanism::Pfc));
        let interval = positive(&host.cnp_interval, "interval")?;
        let notification = answers_ce.then(|| {
            let defaults = notification_point::Config::default();
            notification_point::Config {
                interval: interval.unwrap_or(defaults.interval),
                fast_cnp: answers_fast(host),
                ..defaults
            }
        });
        Ok(Host {
            reaction,
            notification,
            answers_unknown_options: host.answers_unknown_options.unwrap_or(!able),
            notification_delay: notification_delay(&host.notification_delay),
            // Locally administered, so nobody's.
            guid: 0x0200_0000_0000_0000 | (id as u64 + 1),
        })
    }

    fn switch(
        &self,
        id: NodeId,
        switch: &SwitchText,
        senders: &HashMap<u16, Vec<(Prefix, Ability)>>,
        node_ids: &mut HashSet<u32>,
    ) -> Result<Switch, Refusal> {
        let crosses = self
            .topology
            .neighbours(id)
            .any(|next| self.domain(next) != self.domain(id));
        // `none` is the network in which nobody does anything, whatever a file says for the other mechanisms.
        let lossless = self.mechanism != Mechanism::None
            && switch.pfc.unwrap_or(self.mechanism == Mechanism::Pfc);
        Ok(Switch {
            congestion: self.congestion(id, switch, senders)?,
            ports: self.ports(id, switch, lossless)?,
            notification_delay: notification_delay(&switch.notification_delay),
            ioam_node: self.ioam_node(id, switch, node_ids)?,
            proxy: self.proxying(id, switch)?,
            edge: self.edge(id, switch)?,
            border_filter: switch.border_filter.unwrap_or(crosses),
        })
    }

    fn ports(
        &self,
        id: NodeId,
        switch: &SwitchText,
        lossless: bool,
    ) -> Result<BTreeMap<LinkId, Thresholds>, Refusal> {
        let round = self.rounds.get(&id).copied().unwrap_or(Ps(0));
        let links = self
            .topology
            .nodes
            .get(id)
            .map_or(&[][..], |node| &node.links);
        links
            .iter()
            .filter_map(|link| Some((*link, self.topology.links.get(*link)?.rate)))
            .map(|(link, rate)| Ok((link, thresholds(switch, rate, round, lossless)?)))
            .collect()
    }

    fn congestion(
        &self,
        id: NodeId,
        switch: &SwitchText,
        senders: &HashMap<u16, Vec<(Prefix, Ability)>>,
    ) -> Result<congestion_point::Config, Refusal> {
        let own = self.address(id)?;
        let active = switch.congestion_point.unwrap_or(true);
        let in_wan = self.mechanism == Mechanism::WanFcn && self.wan.contains(&id);
        let marks = match self.mechanism {
            Mechanism::None | Mechanism::Pfc | Mechanism::Proxy => false,
            Mechanism::Cnp | Mechanism::FastCnp | Mechanism::FastCnpIoam => true,
            Mechanism::WanFcn => !in_wan,
        };
        let mut config = congestion_point::Config::new(own.ipv6);
        config.address4 = own.ipv4;
        config.limits = limits(switch);
        config.ecn = active && switch.ecn.unwrap_or(marks);
        config.fast_cnp = active && self.fast();
        config.proxy = active && self.mechanism == Mechanism::Proxy;
        config.wan_fcn = active && in_wan;
        config.mark_unknown = switch.mark_unknown.unwrap_or(config.mark_unknown);
        config.pnc_reading = self.reading;
        config.copy_flow_label = switch.copy_flow_label.unwrap_or(config.copy_flow_label);
        config.wan_level = switch.level.unwrap_or(config.wan_level);
        config.tells = self.list(&switch.tells)?.unwrap_or_default();
        config.allowed_proxies = self.list(&switch.allowed_proxies)?.unwrap_or_default();
        if config.fast_cnp {
            config.senders = senders.get(&self.domain(id)).cloned().unwrap_or_default();
        }
        if config.proxy {
            config.proxies = self.configured_proxies();
        }
        if config.wan_fcn {
            config.ingress = self
                .ingress
                .and_then(|edge| self.addresses.get(edge))
                .map(|edge| edge.ipv6);
        }
        Ok(config)
    }

    /// A switch's own list, where it has one.
    fn list(&self, texts: &Option<Vec<Spanned<String>>>) -> Result<Option<Vec<Prefix>>, Refusal> {
        texts
            .as_deref()
            .map(|texts| self.access(texts, 1))
            .transpose()
    }

    fn configured_proxies(&self) -> Vec<(Prefix, IpAddr)> {
        let mut all = Vec::new();
        for proxy in self
            .proxies
            .iter()
            .filter(|proxy| proxy.known_by == ProxyKnownBy::Configuration)
        {
            let Some(own) = self.addresses.get(proxy.id) else {
                continue;
            };
            for prefix in &proxy.serves {
                let address = if prefix.address().is_ipv4() {
                    own.ipv4.map(IpAddr::V4)
                } else {
                    Some(IpAddr::V6(own.ipv6))
                };
                all.extend(address.map(|address| (*prefix, address)));
            }
        }
        all
    }

    fn ioam_node(
        &self,
        id: NodeId,
        switch: &SwitchText,
        taken: &mut HashSet<u32>,
    ) -> Result<Option<u32>, Refusal> {
        if !self.writes_ioam(id) {
            return Ok(None);
        }
        let number = 1 + switches(self.topology)
            .take_while(|(other, _)| *other < id)
            .count();
        let number = check::within(
            &switch.ioam_node,
            u32::try_from(number).unwrap_or(0),
            0..=0x00FF_FFFF,
            "IOAM node identifier (24 bits)",
        )?;
        if !taken.insert(number) {
            let at = switch
                .ioam_node
                .as_ref()
                .map_or_else(|| switch.name.span(), Spanned::span);
            return Err(Refusal::span(
                at,
                format!("two switches have the IOAM node identifier {number}; they must differ"),
            ));
        }
        Ok(Some(number))
    }

    /// Whether a node writes into IOAM traces.
    pub fn writes_ioam(&self, id: NodeId) -> bool {
        match self.topology.nodes.get(id).map(|node| node.entry) {
            Some(Entry::Switch(switch)) => switch
                .ioam
                .unwrap_or(self.mechanism == Mechanism::FastCnpIoam),
            _ => false,
        }
    }

    fn proxying(&self, id: NodeId, switch: &SwitchText) -> Result<Option<Proxying>, Refusal> {
        let Some(found) = self.proxies.iter().find(|proxy| proxy.id == id) else {
            return Ok(None);
        };
        let own = self.address(id)?;
        let mut config = proxy::Config::new(own.ipv6);
        config.address4 = own.ipv4;
        config.enabled = true;
        config.limits = limits(switch);
        config.congestion_points = self.list(&switch.access_list)?.unwrap_or_else(|| {
            switches(self.topology)
                .flat_map(|(id, _)| self.prefixes(id))
                .collect()
        });
        Ok(Some(Proxying {
            config,
            known_by: found.known_by,
            serves: found.serves.clone(),
            reading: self.reading,
        }))
    }

    fn edge(&self, id: NodeId, switch: &SwitchText) -> Result<Option<Edge>, Refusal> {
        let Some(edge) = &switch.edge else {
            return Ok(None);
        };
        let own = self.address(id)?;
        let mut config = ingress_pe::Config::new(own.ipv6);
        config.enabled = self.mechanism == Mechanism::WanFcn;
        config.limits = limits(switch);
        config.congestion_points = self.list(&switch.access_list)?.unwrap_or_else(|| {
            (0..self.topology.nodes.len())
                .filter(|id| self.wan.contains(id))
                .flat_map(|id| self.prefixes(id))
                .collect()
        });
        let ordinal = self.edges.iter().position(|edge| *edge == id).unwrap_or(0) as u32 + 1;
        let label = |own: &Maybe<u32>, base: u32| {
            check::within(
                own,
                base + ordinal,
                16..=0x000F_FFFF,
                "MPLS label (0 to 15 are special)",
            )
        };
        let tunnel = match edge.get_ref() {
            TunnelText::Srv6 => Tunnel::Srv6,
            TunnelText::Vxlan => Tunnel::Vxlan {
                vni: check::within(
                    &switch.vni,
                    5_000,
                    0..=0x00FF_FFFF,
                    "VXLAN network identifier",
                )?,
            },
            TunnelText::SrMpls => Tunnel::SrMpls {
                transport: label(&switch.transport_label, 16_000)?,
                service: label(&switch.service_label, 24_000)?,
            },
        };
        Ok(Some(Edge { config, tunnel }))
    }
}

fn switches<'t, 'a>(
    topology: &'t Topology<'a>,
) -> impl Iterator<Item = (NodeId, &'a SwitchText)> + use<'t, 'a> {
    topology
        .nodes
        .iter()
        .enumerate()
        .filter_map(|(id, node)| match node.entry {
            Entry::Switch(switch) => Some((id, switch)),
            Entry::Host(_) => None,
        })
}

/// Whether a host answers CE with Fast CNPs.
fn answers_fast(host: &HostText) -> bool {
    host.cnp_form == Some(CnpFormText::FastCnp)
}

/// By switch: the longest round trip, without queues, of a flow through it, where it is receivers that tell senders.
fn rounds(
    topology: &Topology<'_>,
    mechanism: Mechanism,
    pairs: &[Pair<'_>],
) -> HashMap<NodeId, Ps> {
    let mut rounds = HashMap::new();
    if mechanism != Mechanism::Cnp {
        return rounds;
    }
    for pair in pairs {
        let delay =
            |(a, b): (&NodeId, &NodeId)| Some(topology.links.get(topology.between(*a, *b)?)?.delay);
        let way = pair
            .path
            .iter()
            .zip(pair.path.iter().skip(1))
            .filter_map(delay);
        let round = Ps(way.map(|delay| delay.0).sum::<u64>().saturating_mul(2));
        for id in pair.path.iter().filter(|id| !topology.is_host(**id)) {
            let longest: &mut Ps = rounds.entry(*id).or_insert(round);
            *longest = round.max(*longest);
        }
    }
    rounds
}

/// Domains by number, in the order in which nodes name them; nodes that name none are in the first, `inside`.
fn domains(topology: &Topology<'_>) -> Vec<u16> {
    let mut names = HashMap::from([("inside", 0)]);
    let mut number = |name| {
        let next = names.len();
        *names.entry(name).or_insert(next)
    };
    let numbers: Vec<usize> = topology
        .nodes
        .iter()
        .map(|node| number(node.domain().unwrap_or("inside")))
        .collect();
    numbers
        .into_iter()
        .map(|number| u16::try_from(number).unwrap_or(u16::MAX))
        .collect()
}

const fn known_by(text: KnownByText) -> ProxyKnownBy {
    match text {
        KnownByText::Config => ProxyKnownBy::Configuration,
        KnownByText::Option => ProxyKnownBy::Option,
        KnownByText::IsIs => ProxyKnownBy::IsIs,
        KnownByText::Ospf2 => ProxyKnownBy::Ospf2,
        KnownByText::Ospf3 => ProxyKnownBy::Ospf3,
        KnownByText::Bgp => ProxyKnownBy::Bgp,
    }
}
