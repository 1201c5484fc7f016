//! Nodes by name, links between them, and the shortest paths through switches.

use super::check;
use super::error::Refusal;
use super::model::{Link, LinkId, NodeId};
use super::schema::{File, HostText, LinkText, Patterns, SwitchText, fits};
use crate::units::{Ps, Rate};
use core::cell::Cell;
use core::ops::Range;
use std::collections::{HashMap, HashSet, VecDeque};
use toml::Spanned;

/// Rate of a link that says none.
const RATE: u64 = 100_000_000_000;
/// Delay of a link that says none: 100 m of fibre.
const DELAY: Ps = Ps::from_nanos(500);

/// A node before its roles are known.
pub(super) struct Named<'a> {
    pub name: String,
    pub entry: Entry<'a>,
    /// Links at it.
    pub links: Vec<LinkId>,
}

/// The entry of the file that a node comes from.
#[derive(Clone, Copy)]
pub(super) enum Entry<'a> {
    Host(&'a HostText),
    Switch(&'a SwitchText),
}

impl Named<'_> {
    pub const fn is_host(&self) -> bool {
        matches!(self.entry, Entry::Host(_))
    }

    /// Where the node's name stands.
    pub fn span(&self) -> Range<usize> {
        match self.entry {
            Entry::Host(host) => host.name.span(),
            Entry::Switch(switch) => switch.name.span(),
        }
    }

    pub fn domain(&self) -> Option<&str> {
        match self.entry {
            Entry::Host(host) => host.domain.as_deref(),
            Entry::Switch(switch) => switch.domain.as_deref(),
        }
    }
}

/// Nodes and links. Switches come behind hosts, both in the file's order.
pub(super) struct Topology<'a> {
    pub nodes: Vec<Named<'a>>,
    pub links: Vec<Link>,
    by_name: HashMap<String, NodeId>,
    between: HashMap<(NodeId, NodeId), LinkId>,
    /// Entries that make no node: their names and counts of 0.
    empty: Vec<(&'a str, &'a Spanned<u32>)>,
    /// Names compared with patterns so far.
    compared: Cell<usize>,
}

impl<'a> Topology<'a> {
    pub fn of(file: &'a File) -> Result<Self, Refusal> {
        let mut topology = Self {
            nodes: Vec::new(),
            links: Vec::new(),
            by_name: HashMap::new(),
            between: HashMap::new(),
            empty: Vec::new(),
            compared: Cell::new(0),
        };
        for host in &file.host {
            let host = host.get_ref();
            topology.add(
                &host.name,
                host.count.as_ref(),
                Entry::Host(host),
                check::HOSTS,
                "hosts",
            )?;
        }
        let hosts = topology.nodes.len();
        for switch in &file.switch {
            let switch = switch.get_ref();
            topology.add(
                &switch.name,
                switch.count.as_ref(),
                Entry::Switch(switch),
                hosts + check::SWITCHES,
                "nodes",
            )?;
        }
        let pairs = hosts * (topology.nodes.len() - hosts);
        if pairs > check::HOSTS_TIMES_SWITCHES {
            let most = check::HOSTS_TIMES_SWITCHES;
            let last = topology.nodes.last().map_or(0..0, Named::span);
            return Err(Refusal::span(
                last,
                format!("hosts times switches are {pairs}; at most {most} are allowed"),
            ));
        }
        topology.attach_hosts(file)?;
        for link in &file.link {
            topology.link_patterns(link.get_ref())?;
        }
        topology.check_hosts()?;
        Ok(topology)
    }

    fn add(
        &mut self,
        name: &'a Spanned<String>,
        number: Option<&'a Spanned<u32>>,
        entry: Entry<'a>,
        most: usize,
        what: &str,
    ) -> Result<(), Refusal> {
        check::name(name)?;
        let Some(number) = number else {
            check::count(self.nodes.len() + 1, most, what, name.span())?;
            return self.add_one(name.get_ref().clone(), name, entry);
        };
        let total = self.nodes.len().saturating_add(*number.get_ref() as usize);
        check::count(total, most, what, number.span())?;
        if *number.get_ref() == 0 {
            self.empty.push((name.get_ref(), number));
        }
        for index in 1..=*number.get_ref() {
            self.add_one(format!("{}{index}", name.get_ref()), name, entry)?;
        }
        Ok(())
    }

    fn add_one(
        &mut self,
        name: String,
        place: &Spanned<String>,
        entry: Entry<'a>,
    ) -> Result<(), Refusal> {
        if self
            .by_name
            .insert(name.clone(), self.nodes.len())
            .is_some()
        {
            return Err(Refusal::at(
                place,
                format!("there are two nodes `{name}`; names must differ"),
            ));
        }
        self.nodes.push(Named {
            name,
            entry,
            links: Vec::new(),
        });
        Ok(())
    }

    /// Links hosts to where they attach; hosts of one entry take turns among several switches.
    fn attach_hosts(&mut self, file: &'a File) -> Result<(), Refusal> {
        let mut id = 0;
        for host in &file.host {
            let host = host.get_ref();
            let number = host
                .count
                .as_ref()
                .map_or(1, |count| *count.get_ref() as usize);
            let hosts = id..id + number;
            id += number;
            let Some(attach) = &host.attach else { continue };
            let switches = self.find(attach.get_ref(), &attach.span(), Some(false))?;
            let rate = host.rate.as_ref().map(|rate| rate.get_ref().0);
            let delay = host.delay.as_ref().map(|delay| delay.get_ref().0);
            for (turn, host) in hosts.enumerate() {
                if let Some(switch) = switches.get(turn % switches.len().max(1)) {
                    self.link(host, *switch, rate, delay, &attach.span())?;
                }
            }
        }
        Ok(())
    }

    fn link_patterns(&mut self, link: &LinkText) -> Result<(), Refusal> {
        let from = self.find(link.from.get_ref(), &link.from.span(), None)?;
        let to = self.find(link.to.get_ref(), &link.to.span(), None)?;
        let rate = link.rate.as_ref().map(|rate| rate.get_ref().0);
        let delay = link.delay.as_ref().map(|delay| delay.get_ref().0);
        for a in &from {
            for b in &to {
                self.link(*a, *b, rate, delay, &link.to.span())?;
            }
        }
        Ok(())
    }

    fn link(
        &mut self,
        a: NodeId,
        b: NodeId,
        rate: Option<Rate>,
        delay: Option<Ps>,
        at: &Range<usize>,
    ) -> Result<(), Refusal> {
        if a == b {
            return Err(Refusal::span(
                at.clone(),
                format!(
                    "`{}` would be linked to itself; a link has two ends",
                    self.name(a)
                ),
            ));
        }
        let id = self.links.len();
        check::count(id + 1, check::LINKS, "links", at.clone())?;
        if self.between.insert((a.min(b), a.max(b)), id).is_some() {
            let (a, b) = (self.name(a), self.name(b));
            return Err(Refusal::span(
                at.clone(),
                format!("`{a}` and `{b}` are linked twice; one link between two nodes is allowed"),
            ));
        }
        let rate = rate
            .or(Rate::new(RATE))
            .ok_or_else(|| Refusal::whole("no rate"))?;
        self.links.push(Link {
            a,
            b,
            rate,
            delay: delay.unwrap_or(DELAY),
        });
        for end in [a, b] {
            if let Some(node) = self.nodes.get_mut(end) {
                node.links.push(id);
            }
        }
        Ok(())
    }

    /// A host has one NIC: it forwards nothing.
    fn check_hosts(&self) -> Result<(), Refusal> {
        if self.nodes.is_empty() {
            return Err(Refusal::whole(
                "there are no hosts; a scenario needs [[host]] entries",
            ));
        }
        for (id, node) in self
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| node.is_host())
        {
            let message = match node.links.len() {
                0 => format!(
                    "the host `{}` has no link; give it attach = \"<switch>\", or a [[link]]",
                    node.name
                ),
                1 => match self.neighbours(id).find(|next| self.is_host(*next)) {
                    None => continue,
                    Some(next) => {
                        let (host, next) = (&node.name, self.name(next));
                        format!(
                            "the host `{host}` is linked to the host `{next}`; hosts are linked to switches"
                        )
                    }
                },
                many => format!(
                    "the host `{}` has {many} links; one is allowed, since hosts do not forward",
                    node.name
                ),
            };
            return Err(Refusal::span(node.span(), message));
        }
        Ok(())
    }

    pub fn name(&self, id: NodeId) -> &str {
        self.nodes.get(id).map_or("?", |node| node.name.as_str())
    }

    pub fn is_host(&self, id: NodeId) -> bool {
        self.nodes.get(id).is_some_and(Named::is_host)
    }

    pub fn node(&self, name: &str) -> Option<NodeId> {
        self.by_name.get(name).copied()
    }

    /// Nodes whose names fit, each once, in the nodes' order for each pattern. `hosts`: only hosts, or only switches.
    pub fn find(
        &self,
        patterns: &Patterns,
        at: &Range<usize>,
        hosts: Option<bool>,
    ) -> Result<Vec<NodeId>, Refusal> {
        self.compare(patterns, at)?;
        let mut found = Vec::new();
        let mut seen = HashSet::new();
        for pattern in &patterns.0 {
            let mut fitting = false;
            let wanted = |id: NodeId| hosts.is_none_or(|hosts| hosts == self.is_host(id));
            if pattern.contains('*') {
                for id in (0..self.nodes.len()).filter(|id| wanted(*id)) {
                    if fits(pattern, self.name(id)) {
                        fitting = true;
                        found.extend(seen.insert(id).then_some(id));
                    }
                }
            } else if let Some(id) = self.node(pattern).filter(|id| wanted(*id)) {
                fitting = true;
                found.extend(seen.insert(id).then_some(id));
            }
            if !fitting {
                let what = match hosts {
                    Some(true) => "host",
                    Some(false) => "switch",
                    None => "node",
                };
                let would = |(name, _): &&(&str, _)| fits(pattern, &format!("{name}1"));
                if let Some((_, number)) = self.empty.iter().find(would) {
                    let message = format!("0 leaves no {what} `{pattern}`, which others name");
                    return Err(Refusal::at(number, message));
                }
                return Err(Refusal::span(
                    at.clone(),
                    format!(
                        "there is no {what} `{pattern}`; there are {}",
                        self.some(hosts)
                    ),
                ));
            }
        }
        if found.is_empty() {
            return Err(Refusal::span(
                at.clone(),
                format!("names nothing; there are {}", self.some(hosts)),
            ));
        }
        Ok(found)
    }

    /// Counts that every name is going to be compared with each pattern.
    fn compare(&self, patterns: &Patterns, at: &Range<usize>) -> Result<(), Refusal> {
        let patterns = patterns.0.iter().filter(|name| name.contains('*')).count();
        let compared = patterns.saturating_mul(self.nodes.len());
        let compared = self.compared.get().saturating_add(compared);
        self.compared.set(compared);
        check::count(
            compared,
            check::COMPARED,
            "names compared with patterns",
            at.clone(),
        )
    }

    /// Some names, for refusals.
    fn some(&self, hosts: Option<bool>) -> String {
        let fitting = self
            .nodes
            .iter()
            .filter(|node| hosts.is_none_or(|hosts| hosts == node.is_host()));
        let mut names: Vec<&str> = fitting.map(|node| node.name.as_str()).take(13).collect();
        if names.len() == 13 {
            names.pop();
            names.push("…");
        }
        if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        }
    }

    /// The link between two nodes.
    pub fn between(&self, a: NodeId, b: NodeId) -> Option<LinkId> {
        self.between.get(&(a.min(b), a.max(b))).copied()
    }

    /// The nodes next to `id`.
    pub fn neighbours(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let links = self
            .nodes
            .get(id)
            .map_or(&[][..], |node| node.links.as_slice());
        links
            .iter()
            .filter_map(|link| self.links.get(*link))
            .map(move |link| if link.a == id { link.b } else { link.a })
    }

    /// The names of the nodes next to `id`, for refusals.
    pub fn neighbour_names(&self, id: NodeId) -> String {
        let names: Vec<_> = self
            .neighbours(id)
            .take(12)
            .map(|next| self.name(next).to_owned())
            .collect();
        names.join(", ")
    }

    /// Switches from which every way to a host leads over one of `edges`: the WAN between them.
    pub fn behind(&self, edges: &[NodeId]) -> Vec<NodeId> {
        let mut outside: HashSet<NodeId> = (0..self.nodes.len())
            .filter(|id| self.is_host(*id))
            .collect();
        let mut open: Vec<NodeId> = outside.iter().copied().collect();
        while let Some(id) = open.pop() {
            if edges.contains(&id) {
                continue;
            }
            for next in self.neighbours(id) {
                if outside.insert(next) {
                    open.push(next);
                }
            }
        }
        (0..self.nodes.len())
            .filter(|id| !outside.contains(id))
            .collect()
    }
}

/// Shortest paths, found once for each node at the far end.
pub(super) struct Paths<'t, 'a> {
    topology: &'t Topology<'a>,
    towards: HashMap<NodeId, HashMap<NodeId, NodeId>>,
}

impl<'t, 'a> Paths<'t, 'a> {
    pub fn new(topology: &'t Topology<'a>) -> Self {
        Self {
            topology,
            towards: HashMap::new(),
        }
    }

    /// The nodes from `from` to `to`, both included; `None` where there is no way.
    pub fn path(&mut self, from: NodeId, to: NodeId) -> Option<Vec<NodeId>> {
        let topology = self.topology;
        let first = topology.neighbours(from).next()?;
        let last = topology.neighbours(to).next()?;
        let next = self
            .towards
            .entry(last)
            .or_insert_with(|| search(topology, last));
        let mut path = vec![from, first];
        let mut at = first;
        while at != last {
            at = *next.get(&at)?;
            path.push(at);
        }
        path.push(to);
        Some(path)
    }
}

/// For every switch from which `goal` can be reached through switches, the next node on a shortest way.
fn search(topology: &Topology<'_>, goal: NodeId) -> HashMap<NodeId, NodeId> {
    let mut next = HashMap::new();
    let mut open = VecDeque::from([goal]);
    while let Some(id) = open.pop_front() {
        for before in topology.neighbours(id) {
            if before != goal && !topology.is_host(before) && !next.contains_key(&before) {
                next.insert(before, id);
                open.push_back(before);
            }
        }
    }
    next
}
