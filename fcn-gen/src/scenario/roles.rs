//! The roles of each node: the mechanism determines every role's configuration, the file's own keys
//! override it.

use super::addresses::Addresses;
use super::error::{Refusal, refuse};
use super::limits;
use super::model::{
    Edge, Host, Mechanism, Node, NodeId, NodeKind, ProxyKnownBy, ProxyNode, Switch, Tunnel,
};
use super::pairs::Pair;
use super::schema::{
    Ability, CnpAs, CnpForm, ControlKind, File, HostKeys, Label, Nic, Patterns, Span, SwitchKeys,
    TunnelKind,
};
use super::thresholds::thresholds;
use super::topology::{Entry, Topology};
use crate::units::Ps;
use core::cell::Cell;
use core::time::Duration;
use fcn_node::congestion_point::{self, Ability as Known, CnpName};
use fcn_node::proxy_directory::Reading;
use fcn_node::reaction_point::detour::Detour;
use fcn_node::reaction_point::{self, Control, dcqcn};
use fcn_node::{ingress_pe, notification_point, proxy};
use fcn_wire::pnc::Prefix;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

/// Default time to generate or translate a notification: about what a pipeline and a NIC need
/// \[choice\]. It is the same everywhere, so that it favours no mechanism.
const NOTIFICATION_DELAY: Ps = Ps::from_nanos(1_000);

/// The inputs for all roles.
pub(super) struct Roles<'t, 'a> {
    pub topology: &'t Topology<'a>,
    pub addresses: &'t [Addresses],
    mechanism: Mechanism,
    domains: Vec<u16>,
    edges: Vec<NodeId>,
    wan: HashSet<NodeId>,
    ingress: Option<NodeId>,
    /// True if a receiver sends Fast CNPs.
    fast_receivers: bool,
    /// True if a host controls its rate by HPCC, for which switches write counts.
    hpcc: bool,
    /// By sender: the longest round trip of its flows, without queues.
    rounds: HashMap<NodeId, Ps>,
    proxies: Vec<ServedPrefixes>,
    reading: Reading,
    /// Number of prefixes in lists so far.
    listed: Cell<usize>,
}

struct ServedPrefixes {
    id: NodeId,
    known_by: ProxyKnownBy,
    serves: Vec<Prefix>,
    /// The same prefixes for lookups: single addresses, and wider prefixes.
    hosts: HashSet<IpAddr>,
    wider: Vec<Prefix>,
}

impl ServedPrefixes {
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
        pairs: &[Pair<'_>],
    ) -> Result<Self, Refusal> {
        let mechanism = file.mechanism;
        let edges = switches(topology).filter(|(_, switch)| switch.edge.is_some());
        let edges: Vec<NodeId> = edges.map(|(id, _)| id).collect();
        let wan = topology.behind(&edges);
        if mechanism == Mechanism::WanFcn && (edges.len() < 2 || wan.is_empty()) {
            refuse!(
                "mechanism",
                "wan-fcn needs provider edges and switches between them: set two switches' edge = \
                 \"srv6\" (or \"vxlan\", \
                 \"sr-mpls\"), or choose another mechanism"
            );
        }
        let on_the_way = pairs.iter().flat_map(|pair| &pair.path);
        let mut roles = Self {
            topology,
            addresses,
            mechanism,
            domains: domains(topology),
            ingress: on_the_way.copied().find(|id| edges.contains(id)),
            edges,
            wan,
            fast_receivers: file.host.iter().any(answers_fast),
            rounds: rounds(topology, pairs),
            hpcc: (file.host.iter()).any(|host| host.control == Some(ControlKind::Hpcc)),
            proxies: Vec::new(),
            reading: file.pnc_at,
            listed: Cell::new(0),
        };
        for (index, host) in file.host.iter().enumerate() {
            if let Some(list) = &host.access_list {
                let copies = host.count.unwrap_or(1) as usize;
                roles.access(list, copies, |item| {
                    format!("host.{index}.access_list.{item}")
                })?;
            }
        }
        if mechanism == Mechanism::Proxy {
            let senders: HashSet<NodeId> = pairs.iter().map(|pair| pair.from).collect();
            roles.proxies = roles.find_proxies(&senders)?;
            if roles.proxies.is_empty() {
                refuse!(
                    "mechanism",
                    "no switch is a proxy; set proxy = true for the senders' switch"
                );
            }
        }
        Ok(roles)
    }

    fn fast(&self) -> bool {
        matches!(self.mechanism, Mechanism::FastCnp | Mechanism::FastCnpIoam)
    }

    /// Returns true if any node sends Fast CNPs; hosts that handle them then have the feature
    /// enabled.
    fn fast_to_hosts(&self) -> bool {
        self.fast() || self.fast_receivers
    }

    /// Returns the addresses of a node as prefixes of one host each.
    fn prefixes(&self, id: NodeId) -> [Prefix; 2] {
        [6, 4].map(|ip| Prefix::host(self.addresses[id].for_family(ip)))
    }

    /// Returns the IPv6 address of a node as a prefix of one host.
    fn prefix6(&self, id: NodeId) -> Prefix {
        Prefix::host(self.addresses[id].ipv6.into())
    }

    /// Returns the proxy that serves a host: its address, and how congestion points learn of it.
    pub fn proxy_of(&self, host: NodeId) -> Option<(Addresses, ProxyKnownBy)> {
        let own = IpAddr::V6(self.addresses[host].ipv6);
        let proxy = self.proxies.iter().find(|proxy| proxy.serves(own))?;
        Some((self.addresses[proxy.id], proxy.known_by))
    }

    fn find_proxies(&self, senders: &HashSet<NodeId>) -> Result<Vec<ServedPrefixes>, Refusal> {
        let mut proxies = Vec::new();
        for (id, switch) in switches(self.topology) {
            let mut neighbours = self.topology.neighbours(id);
            let has_sender = neighbours.any(|next| senders.contains(&next));
            if !switch.proxy.unwrap_or(has_sender) {
                continue;
            }
            let serves = match self.list(id, &switch.serves, "serves")? {
                Some(prefixes) => prefixes,
                None => {
                    let hosts = self.topology.neighbours(id);
                    let hosts = hosts.filter(|next| self.topology.is_host(*next));
                    hosts.flat_map(|host| self.prefixes(host)).collect()
                }
            };
            let path = || self.topology.path(id, "name");
            if serves.is_empty() {
                let name = &switch.name;
                refuse!(
                    path(),
                    "the proxy `{name}` has no hosts attached; specify the senders it serves, for \
                     example serves = [\"2001:db8:1::/48\"]"
                );
            }
            // Every congestion point may learn of them.
            let everywhere = serves.len().saturating_mul(switches(self.topology).count());
            self.count_listed(everywhere, path)?;
            let known_by = switch.known_by.unwrap_or(ProxyKnownBy::Configuration);
            proxies.push(ServedPrefixes::new(id, known_by, serves));
        }
        Ok(proxies)
    }

    /// Converts prefixes, addresses and names of nodes to prefixes. Counts them `copies` times;
    /// `path` returns the path of an item.
    fn access(
        &self,
        list: &[String],
        copies: usize,
        path: impl Fn(usize) -> String,
    ) -> Result<Vec<Prefix>, Refusal> {
        let mut all = Vec::new();
        for (index, text) in list.iter().enumerate() {
            let before = all.len();
            match text.parse() {
                Ok(prefix) => all.push(prefix),
                Err(_) if text.contains(['/', ':', '.']) => refuse!(
                    path(index),
                    "`{text}` is not a valid prefix; allowed are 2001:db8:1::/48, 198.18.1.1 or a node's name"
                ),
                Err(_) => {
                    let names = Patterns::One(text.clone());
                    let ids = self.topology.find(&names, &path(index), None)?;
                    all.extend(ids.into_iter().flat_map(|id| self.prefixes(id)));
                }
            }
            // Several hosts may share one list.
            let more = (all.len() - before).saturating_mul(copies);
            self.count_listed(more, || path(index))?;
        }
        Ok(all)
    }

    fn count_listed(&self, more: usize, path: impl FnOnce() -> String) -> Result<(), Refusal> {
        let listed = self.listed.get().saturating_add(more);
        self.listed.set(listed);
        let what = "prefixes in all lists together";
        limits::at_most(listed, limits::LISTED, what, path)
    }

    /// Returns a switch's own list, if it has one.
    fn list(
        &self,
        id: NodeId,
        list: &Option<Vec<String>>,
        key: &str,
    ) -> Result<Option<Vec<Prefix>>, Refusal> {
        let path = |item: usize| self.topology.path(id, &format!("{key}.{item}"));
        list.as_ref()
            .map(|list| self.access(list, 1, path))
            .transpose()
    }

    /// Builds every node.
    pub fn nodes(&self) -> Result<Vec<Node>, Refusal> {
        let trusted = self.trusted();
        let senders = self.senders();
        let mut node_ids = HashSet::new();
        let mut nodes = Vec::with_capacity(self.topology.nodes.len());
        for ((id, named), own) in self.topology.nodes.iter().enumerate().zip(self.addresses) {
            let kind = match named.entry {
                Entry::Host(host) => NodeKind::Host(Box::new(self.host(id, host, &trusted)?)),
                Entry::Switch(switch) => {
                    let switch = self.switch(id, switch, &senders, &mut node_ids)?;
                    NodeKind::Switch(Box::new(switch))
                }
            };
            nodes.push(Node {
                name: named.name.clone(),
                ipv6: own.ipv6,
                ipv4: own.ipv4,
                domain: self.domains[id],
                kind,
            });
        }
        Ok(nodes)
    }

    /// Returns the trusted notifiers for the hosts of each domain: its congestion points, and its
    /// hosts that send Fast CNPs.
    fn trusted(&self) -> ByDomain<Prefix> {
        let fast = |entry: Entry<'_>| match entry {
            Entry::Host(host) => answers_fast(host),
            Entry::Switch(switch) => self.fast() && switch.congestion_point != Some(false),
        };
        let nodes = self.topology.nodes.iter().enumerate();
        let fast = nodes.filter(|(_, node)| fast(node.entry));
        self.by_domain(fast.map(|(id, _)| (id, self.prefix6(id))))
    }

    /// Returns the abilities of the senders in each domain, as configured at its congestion points.
    fn senders(&self) -> ByDomain<(Prefix, Known)> {
        let known = |host: &HostKeys| match host.fast_cnp.unwrap_or(Ability::Able) {
            Ability::Able => Known::Able,
            Ability::AbleUnknown | Ability::UnableUnknown => Known::Unknown,
            Ability::Unable => Known::Unable,
        };
        let nodes = self.topology.nodes.iter().enumerate();
        self.by_domain(nodes.filter_map(|(id, node)| match node.entry {
            Entry::Host(host) if self.fast() => Some((id, (self.prefix6(id), known(host)))),
            _ => None,
        }))
    }

    fn by_domain<T>(&self, nodes: impl Iterator<Item = (NodeId, T)>) -> ByDomain<T> {
        let mut all = ByDomain::new();
        for (id, about) in nodes {
            all.entry(self.domains[id]).or_default().push(about);
        }
        all
    }

    fn host(
        &self,
        id: NodeId,
        host: &HostKeys,
        trusted: &ByDomain<Prefix>,
    ) -> Result<Host, Refusal> {
        let able = !matches!(
            host.fast_cnp,
            Some(Ability::Unable | Ability::UnableUnknown)
        );
        let access_list = match &host.access_list {
            // Counted, and refused if necessary, in `new`.
            Some(list) => self.access(list, 0, |_| String::new())?,
            None => trusted.get(&self.domains[id]).cloned().unwrap_or_default(),
        };
        let line_rate = self.topology.links_at(id).map(|(_, link)| link.rate).min();
        let line_rate = line_rate.map_or(0.0, |rate| rate.bits_per_second() as f64);
        let (nic, cnp_interval) = match host.nic {
            None | Some(Nic::Sigcomm15) => (dcqcn::Params::default(), None),
            Some(Nic::HpccNs3) => (
                dcqcn::Params::hpcc_ns3(line_rate),
                Some(Duration::from_nanos(1)),
            ),
            Some(Nic::Connectx) => (dcqcn::Params::connectx(), Some(Duration::from_micros(4))),
        };
        let swift = host.swift;
        for (key, [less, more]) in [
            ("swift.fs_min", [swift.fs_min, swift.fs_max]),
            (
                "swift.least_window",
                [swift.least_window, swift.most_window],
            ),
        ] {
            if less >= more {
                let limit = key.replace("min", "max").replace("least", "most");
                refuse!(
                    self.topology.path(id, key),
                    "{less} packets must be fewer than {limit}, {more}"
                );
            }
        }
        let (low, high) = (host.timely.t_low, host.timely.t_high);
        if low >= high {
            refuse!(
                self.topology.path(id, "timely.T_low"),
                "T_low ({low:?}) must be below T_high ({high:?})"
            );
        }
        let by_ioam = self.mechanism == Mechanism::FastCnpIoam;
        let control = match host.control {
            Some(ControlKind::Fixed) => Control::Fixed,
            Some(ControlKind::Hpcc) => {
                let round = self.rounds.get(&id).copied().unwrap_or_default();
                Control::Hpcc(host.hpcc.params(round))
            }
            Some(ControlKind::Swift) => Control::Swift(host.swift),
            Some(ControlKind::Timely) => Control::Timely(host.timely),
            Some(ControlKind::Telemetry) => Control::Telemetry(host.telemetry),
            None if by_ioam => Control::Telemetry(host.telemetry),
            None | Some(ControlKind::Dcqcn) => Control::Dcqcn(host.dcqcn.over(nic)),
        };
        let defaults = Detour::default();
        let detour = (host.detours > 0).then(|| Detour {
            tries: host.detours,
            hold: host.detour_hold.map_or(defaults.hold, Ps::into),
            rest: host.detour_rest.map_or(defaults.rest, Ps::into),
        });
        let defaults = reaction_point::Config::default();
        let reaction = reaction_point::Config {
            control,
            fast_cnp: able && self.fast_to_hosts(),
            access_list,
            verify_icrc: host.verify_icrc.unwrap_or(defaults.verify_icrc),
            detour,
            merge: host.merge_interval.map_or(defaults.merge, Ps::into),
            ..defaults
        };
        let answers_ce = host
            .cnp
            .unwrap_or(!matches!(self.mechanism, Mechanism::None | Mechanism::Pfc));
        let notification = answers_ce.then(|| {
            let defaults = notification_point::Config::default();
            notification_point::Config {
                interval: (host.cnp_interval.map(Span::duration))
                    .or(cnp_interval)
                    .unwrap_or(defaults.interval),
                fast_cnp: answers_fast(host),
                ..defaults
            }
        });
        Ok(Host {
            reaction,
            notification,
            answers_unknown_options: host.answers_unknown_options.unwrap_or(!able),
            notification_delay: host.notification_delay.unwrap_or(NOTIFICATION_DELAY),
            reaction_delay: host.reaction_delay.unwrap_or_default(),
        })
    }

    fn switch(
        &self,
        id: NodeId,
        switch: &SwitchKeys,
        senders: &ByDomain<(Prefix, Known)>,
        node_ids: &mut HashSet<u32>,
    ) -> Result<Switch, Refusal> {
        let mut neighbours = self.topology.neighbours(id);
        let crosses = neighbours.any(|next| self.domains[next] != self.domains[id]);
        // With `none` no node acts on congestion, regardless of the file's settings for other
        // mechanisms.
        let lossless = self.mechanism != Mechanism::None
            && switch.pfc.unwrap_or(self.mechanism == Mechanism::Pfc);
        let path = |key: &str| self.topology.path(id, key);
        let links = self.topology.links_at(id);
        let ports: Result<_, Refusal> = links
            .map(|(id, link)| Ok((id, thresholds(switch, link.rate, lossless, path)?)))
            .collect();
        Ok(Switch {
            congestion: self.congestion(id, switch, senders)?,
            imitates: switch.cnp_hop_limit == Some(CnpAs::Receiver),
            ports: ports?,
            notification_delay: switch.notification_delay.unwrap_or(NOTIFICATION_DELAY),
            ioam_node: self.ioam_node(id, switch, node_ids)?,
            proxy: self.proxying(id, switch)?,
            edge: self.edge(id, switch)?,
            border_filter: switch.border_filter.unwrap_or(crosses),
        })
    }

    fn congestion(
        &self,
        id: NodeId,
        switch: &SwitchKeys,
        senders: &ByDomain<(Prefix, Known)>,
    ) -> Result<congestion_point::Config, Refusal> {
        let own = self.addresses[id];
        let active = switch.congestion_point.unwrap_or(true);
        let in_wan = self.mechanism == Mechanism::WanFcn && self.wan.contains(&id);
        let marks = match self.mechanism {
            Mechanism::None | Mechanism::Pfc | Mechanism::Proxy => false,
            Mechanism::Cnp | Mechanism::SwitchCnp | Mechanism::FastCnp | Mechanism::FastCnpIoam => {
                true
            }
            Mechanism::WanFcn => !in_wan,
        };
        let mut config = congestion_point::Config::new(own.ipv6);
        config.address4 = Some(own.ipv4);
        config.limits = switch.limits;
        config.ecn = active && switch.ecn.unwrap_or(marks);
        config.fast_cnp = active && self.fast();
        config.cnp =
            (active && self.mechanism == Mechanism::SwitchCnp).then_some(match switch.cnp_source {
                Some(CnpAs::Own) => CnpName::Own,
                None | Some(CnpAs::Receiver) => CnpName::Receiver,
            });
        config.proxy = active && self.mechanism == Mechanism::Proxy;
        config.wan_fcn = active && in_wan;
        config.mark_unknown = switch.mark_unknown.unwrap_or(config.mark_unknown);
        config.pnc_reading = self.reading;
        config.copy_flow_label = switch.copy_flow_label.unwrap_or(config.copy_flow_label);
        config.wan_level = switch.level.unwrap_or(config.wan_level);
        config.allowed_targets = self.list(id, &switch.tells, "tells")?.unwrap_or_default();
        let proxies = self.list(id, &switch.allowed_proxies, "allowed_proxies")?;
        config.allowed_proxies = proxies.unwrap_or_default();
        if config.fast_cnp {
            config.senders = senders.get(&self.domains[id]).cloned().unwrap_or_default();
        }
        if config.proxy {
            config.proxies = self.configured_proxies();
        }
        if config.wan_fcn {
            config.ingress = self.ingress.map(|edge| self.addresses[edge].ipv6);
        }
        Ok(config)
    }

    fn configured_proxies(&self) -> Vec<(Prefix, IpAddr)> {
        let mut all = Vec::new();
        let proxies = self.proxies.iter();
        for proxy in proxies.filter(|proxy| proxy.known_by == ProxyKnownBy::Configuration) {
            let ip = |prefix: &Prefix| if prefix.address().is_ipv4() { 4 } else { 6 };
            let own = |prefix| self.addresses[proxy.id].for_family(ip(prefix));
            all.extend(proxy.serves.iter().map(|prefix| (*prefix, own(prefix))));
        }
        all
    }

    fn ioam_node(
        &self,
        id: NodeId,
        switch: &SwitchKeys,
        taken: &mut HashSet<u32>,
    ) -> Result<Option<u32>, Refusal> {
        if !self.writes_ioam(id) {
            return Ok(None);
        }
        let before = switches(self.topology).take_while(|(other, _)| *other < id);
        let number = switch
            .ioam_node
            .map_or(1 + before.count() as u32, |node| node.0);
        if !taken.insert(number) {
            let key = switch.ioam_node.map_or("name", |_| "ioam_node");
            refuse!(
                self.topology.path(id, key),
                "two switches have the IOAM node identifier {number}; they must differ"
            );
        }
        Ok(Some(number))
    }

    /// Returns true if a host controls its rate by HPCC.
    pub fn uses_hpcc(&self, id: NodeId) -> bool {
        match self.topology.nodes[id].entry {
            Entry::Host(host) => host.control == Some(ControlKind::Hpcc),
            Entry::Switch(_) => false,
        }
    }

    /// Returns true if a node writes into IOAM traces.
    pub fn writes_ioam(&self, id: NodeId) -> bool {
        let by_default = self.mechanism == Mechanism::FastCnpIoam || self.hpcc;
        match self.topology.nodes[id].entry {
            Entry::Switch(switch) => switch.ioam.unwrap_or(by_default),
            Entry::Host(_) => false,
        }
    }

    fn proxying(&self, id: NodeId, switch: &SwitchKeys) -> Result<Option<ProxyNode>, Refusal> {
        let Some(found) = self.proxies.iter().find(|proxy| proxy.id == id) else {
            return Ok(None);
        };
        let all = switches(self.topology).map(|(id, _)| id);
        let own = self.addresses[id];
        let mut config = proxy::Config::new(own.ipv6);
        config.address4 = Some(own.ipv4);
        config.enabled = true;
        config.limits = switch.limits;
        config.congestion_points = self.believed(id, switch, all)?;
        Ok(Some(ProxyNode {
            config,
            known_by: found.known_by,
            serves: found.serves.clone(),
            reading: self.reading,
        }))
    }

    /// Returns the nodes trusted by a proxy or a provider edge: its access list, or the nodes that
    /// may notify it.
    fn believed(
        &self,
        id: NodeId,
        switch: &SwitchKeys,
        nodes: impl Iterator<Item = NodeId>,
    ) -> Result<Vec<Prefix>, Refusal> {
        let own = self.list(id, &switch.access_list, "access_list")?;
        Ok(own.unwrap_or_else(|| nodes.flat_map(|id| self.prefixes(id)).collect()))
    }

    fn edge(&self, id: NodeId, switch: &SwitchKeys) -> Result<Option<Edge>, Refusal> {
        let Some(edge) = switch.edge else {
            return Ok(None);
        };
        let wan = (0..self.topology.nodes.len()).filter(|id| self.wan.contains(id));
        let mut config = ingress_pe::Config::new(self.addresses[id].ipv6);
        config.enabled = self.mechanism == Mechanism::WanFcn;
        config.limits = switch.limits;
        config.congestion_points = self.believed(id, switch, wan)?;
        let ordinal = self.edges.iter().position(|edge| *edge == id).unwrap_or(0) as u32 + 1;
        let label = |own: Option<Label>, base| own.map_or(base + ordinal, |label| label.0);
        let tunnel = match edge {
            TunnelKind::Srv6 => Tunnel::Srv6,
            TunnelKind::Vxlan => Tunnel::Vxlan {
                vni: switch.vni.map_or(5_000, |vni| vni.0),
            },
            TunnelKind::SrMpls => Tunnel::SrMpls {
                transport: label(switch.transport_label, 16_000),
                service: label(switch.service_label, 24_000),
            },
        };
        Ok(Some(Edge { config, tunnel }))
    }
}

type ByDomain<T> = HashMap<u16, Vec<T>>;

fn switches<'t, 'a>(
    topology: &'t Topology<'a>,
) -> impl Iterator<Item = (NodeId, &'a SwitchKeys)> + use<'t, 'a> {
    topology
        .nodes
        .iter()
        .enumerate()
        .filter_map(|(id, node)| match node.entry {
            Entry::Switch(switch) => Some((id, switch)),
            Entry::Host(_) => None,
        })
}

/// Returns true if a host answers CE with Fast CNPs.
fn answers_fast(host: &HostKeys) -> bool {
    host.cnp_form == Some(CnpForm::FastCnp)
}

/// Returns, for each sender, the longest round trip of its flows without queues.
fn rounds(topology: &Topology<'_>, pairs: &[Pair<'_>]) -> HashMap<NodeId, Ps> {
    let mut rounds = HashMap::new();
    for pair in pairs {
        let longest: &mut Ps = rounds.entry(pair.from).or_default();
        *longest = pair.round(topology).max(*longest);
    }
    rounds
}

/// Numbers the domains in the order in which nodes name them; nodes without a domain are in the
/// first, `inside`.
fn domains(topology: &Topology<'_>) -> Vec<u16> {
    let mut names = HashMap::from([("inside", 0)]);
    let mut number = |name| {
        let next = names.len();
        *names.entry(name).or_insert(next)
    };
    let nodes = topology.nodes.iter();
    let numbers = nodes.map(|node| number(node.domain().unwrap_or("inside")));
    numbers
        .map(|number| u16::try_from(number).unwrap_or(u16::MAX))
        .collect()
}
