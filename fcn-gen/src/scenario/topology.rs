//! Nodes by name, links between them, and the shortest paths through switches.

use super::error::{Refusal, refuse};
use super::limits;
use super::model::{Link, LinkId, NodeId};
use super::schema::{File, HostKeys, Patterns, SwitchKeys, fits};
use crate::units::{Delay, Ps, Rate};
use core::cell::Cell;
use std::collections::{HashMap, HashSet, VecDeque};

/// Default rate of a link.
const RATE: Rate = Rate::new(100_000_000_000).unwrap();
/// Default delay of a link: 100 m of fibre.
const DELAY: Ps = Ps::from_nanos(500);

/// A node before its roles are determined.
pub(super) struct TopologyNode<'a> {
    pub name: String,
    pub entry: Entry<'a>,
    /// Index of the entry in its array.
    index: usize,
    /// Links of the node.
    pub links: Vec<LinkId>,
}

/// The file's entry that defines a node.
#[derive(Clone, Copy)]
pub(super) enum Entry<'a> {
    Host(&'a HostKeys),
    Switch(&'a SwitchKeys),
}

impl<'a> Entry<'a> {
    fn name_and_count(self) -> (&'a str, Option<u32>) {
        match self {
            Self::Host(host) => (&host.name, host.count),
            Self::Switch(switch) => (&switch.name, switch.count),
        }
    }
}

impl TopologyNode<'_> {
    pub const fn is_host(&self) -> bool {
        matches!(self.entry, Entry::Host(_))
    }

    /// Returns the path of a key of the node's entry.
    pub fn path(&self, key: &str) -> String {
        let array = if self.is_host() { "host" } else { "switch" };
        format!("{array}.{}.{key}", self.index)
    }

    pub fn domain(&self) -> Option<&str> {
        match self.entry {
            Entry::Host(host) => host.domain.as_deref(),
            Entry::Switch(switch) => switch.domain.as_deref(),
        }
    }
}

/// Nodes and links. Switches come after hosts, both in the file's order.
pub(super) struct Topology<'a> {
    pub nodes: Vec<TopologyNode<'a>>,
    pub links: Vec<Link>,
    by_name: HashMap<String, NodeId>,
    between: HashMap<(NodeId, NodeId), LinkId>,
    /// Entries that define no node: their names, and the paths of their counts of 0.
    empty: Vec<(&'a str, String)>,
    /// Number of comparisons between names and patterns so far.
    compared: Cell<usize>,
}

impl<'a> Topology<'a> {
    pub fn new(file: &'a File) -> Result<Self, Refusal> {
        let mut topology = Self {
            nodes: Vec::new(),
            links: Vec::new(),
            by_name: HashMap::new(),
            between: HashMap::new(),
            empty: Vec::new(),
            compared: Cell::new(0),
        };
        for (index, host) in file.host.iter().enumerate() {
            topology.add(Entry::Host(host), index, limits::HOSTS, "hosts")?;
        }
        let hosts = topology.nodes.len();
        let most = hosts + limits::SWITCHES;
        for (index, switch) in file.switch.iter().enumerate() {
            topology.add(Entry::Switch(switch), index, most, "nodes")?;
        }
        let Some(last) = topology.nodes.last() else {
            return Err(Refusal::whole(
                "there are no hosts; a scenario needs [[host]] entries",
            ));
        };
        let pairs = hosts * (topology.nodes.len() - hosts);
        let what = "pairs of a host and a switch";
        let path = || last.path("name");
        limits::at_most(pairs, limits::HOSTS_TIMES_SWITCHES, what, path)?;
        topology.attach_hosts(file)?;
        for (index, link) in file.link.iter().enumerate() {
            let path = |key: &str| format!("link.{index}.{key}");
            let from = topology.find(&link.from, &path("from"), None)?;
            let to = topology.find(&link.to, &path("to"), None)?;
            for a in &from {
                for b in &to {
                    topology.link(*a, *b, link.rate, link.delay, &path("to"))?;
                }
            }
        }
        topology.check_hosts()?;
        Ok(topology)
    }

    fn add(
        &mut self,
        entry: Entry<'a>,
        index: usize,
        most: usize,
        what: &str,
    ) -> Result<(), Refusal> {
        let (name, count) = entry.name_and_count();
        let node = |name: String| TopologyNode {
            name,
            entry,
            index,
            links: Vec::new(),
        };
        let path = |key: &str| node(String::new()).path(key);
        limits::name(name, || path("name"))?;
        let first = self.nodes.len();
        let total = first.saturating_add(count.unwrap_or(1) as usize);
        let counted = if count.is_some() { "count" } else { "name" };
        limits::at_most(total, most, what, || path(counted))?;
        if count == Some(0) {
            self.empty.push((name, path("count")));
        }
        for number in 1..=count.unwrap_or(1) {
            let name = match count {
                Some(_) => format!("{name}{number}"),
                None => name.to_owned(),
            };
            let before = self.by_name.insert(name.clone(), self.nodes.len());
            if before.is_some() {
                let path = path("name");
                refuse!(path, "two nodes are named `{name}`; names must differ");
            }
            self.nodes.push(node(name));
        }
        Ok(())
    }

    /// Links hosts to the switches to which they attach; hosts of one entry are distributed over
    /// several switches in turn.
    fn attach_hosts(&mut self, file: &'a File) -> Result<(), Refusal> {
        let mut first = 0;
        for (index, host) in file.host.iter().enumerate() {
            let hosts = first..first + host.count.unwrap_or(1) as usize;
            first = hosts.end;
            let Some(attach) = &host.attach else { continue };
            let path = format!("host.{index}.attach");
            let switches = self.find(attach, &path, Some(false))?;
            for (host_id, switch) in hosts.zip(switches.iter().cycle()) {
                self.link(host_id, *switch, host.rate, host.delay, &path)?;
            }
        }
        Ok(())
    }

    fn link(
        &mut self,
        a: NodeId,
        b: NodeId,
        rate: Option<Rate>,
        delay: Option<Delay>,
        path: &str,
    ) -> Result<(), Refusal> {
        let (first, second) = (self.name(a), self.name(b));
        if a == b {
            refuse!(
                path,
                "`{first}` would be linked to itself; a link needs two nodes"
            );
        }
        let id = self.links.len();
        limits::at_most(id + 1, limits::LINKS, "links", || path.to_owned())?;
        if self.between(a, b).is_some() {
            refuse!(
                path,
                "`{first}` and `{second}` are linked twice; one link between two nodes is allowed"
            );
        }
        self.between.insert((a.min(b), a.max(b)), id);
        self.links.push(Link {
            a,
            b,
            rate: rate.unwrap_or(RATE),
            delay: delay.map_or(DELAY, |delay| delay.0),
        });
        for end in [a, b] {
            self.nodes[end].links.push(id);
        }
        Ok(())
    }

    /// Checks that hosts have a single NIC and do not forward.
    fn check_hosts(&self) -> Result<(), Refusal> {
        let nodes = self.nodes.iter().enumerate();
        for (id, node) in nodes.filter(|(_, node)| node.is_host()) {
            let name = &node.name;
            let other_host = self.neighbours(id).find(|next| self.is_host(*next));
            let message = match (node.links.len(), other_host) {
                (0, _) => "has no link; add attach = \"<switch>\", or a [[link]]".to_owned(),
                (1, None) => continue,
                (1, Some(next)) => {
                    let next = self.name(next);
                    format!("is linked to the host `{next}`; hosts are linked to switches")
                }
                (many, _) => {
                    format!("has {many} links; one is allowed, since hosts do not forward")
                }
            };
            refuse!(node.path("name"), "the host `{name}` {message}");
        }
        Ok(())
    }

    pub fn name(&self, id: NodeId) -> &str {
        &self.nodes[id].name
    }

    /// Returns the path of a key of a node's entry.
    pub fn path(&self, id: NodeId, key: &str) -> String {
        self.nodes[id].path(key)
    }

    pub fn is_host(&self, id: NodeId) -> bool {
        self.nodes[id].is_host()
    }

    pub fn node(&self, name: &str) -> Option<NodeId> {
        self.by_name.get(name).copied()
    }

    /// Returns the nodes whose names match, each once, in the nodes' order for each pattern.
    /// `hosts` restricts them to hosts or to switches.
    pub fn find(
        &self,
        patterns: &Patterns,
        path: &str,
        hosts: Option<bool>,
    ) -> Result<Vec<NodeId>, Refusal> {
        let patterns = patterns.as_slice();
        self.count_compared(patterns, path)?;
        let what = match hosts {
            Some(true) => "host",
            Some(false) => "switch",
            None => "node",
        };
        let wanted = |id: &NodeId| self.is_meant(*id, hosts);
        let mut found = Vec::new();
        let mut seen = HashSet::new();
        for pattern in patterns {
            let fitting: Vec<NodeId> = if pattern.contains('*') {
                let all = (0..self.nodes.len()).filter(wanted);
                all.filter(|id| fits(pattern, self.name(*id))).collect()
            } else {
                self.node(pattern).filter(wanted).into_iter().collect()
            };
            if fitting.is_empty() {
                let would = |(name, _): &&(&str, _)| fits(pattern, &format!("{name}1"));
                if let Some((_, path)) = self.empty.iter().find(would) {
                    refuse!(
                        path,
                        "0 leaves no {what} `{pattern}`, which other entries name"
                    );
                }
                refuse!(
                    path,
                    "there is no {what} `{pattern}`; expected one of {}",
                    self.some(hosts)
                );
            }
            found.extend(fitting.into_iter().filter(|id| seen.insert(*id)));
        }
        if found.is_empty() {
            refuse!(path, "names nothing; expected one of {}", self.some(hosts));
        }
        Ok(found)
    }

    /// Counts the comparisons of every name with each pattern.
    fn count_compared(&self, patterns: &[String], path: &str) -> Result<(), Refusal> {
        let patterns = patterns.iter().filter(|name| name.contains('*')).count();
        let compared = patterns.saturating_mul(self.nodes.len());
        let compared = self.compared.get().saturating_add(compared);
        self.compared.set(compared);
        let what = "names compared with patterns";
        limits::at_most(compared, limits::COMPARED, what, || path.to_owned())
    }

    fn is_meant(&self, id: NodeId, hosts: Option<bool>) -> bool {
        hosts.is_none_or(|hosts| hosts == self.is_host(id))
    }

    /// Returns some names, for error messages.
    fn some(&self, hosts: Option<bool>) -> String {
        let text = self.some_of((0..self.nodes.len()).filter(|id| self.is_meant(*id, hosts)));
        if text.is_empty() {
            "none".to_owned()
        } else {
            text
        }
    }

    /// Returns the names of the first few of these nodes, for error messages.
    pub fn some_of(&self, ids: impl Iterator<Item = NodeId>) -> String {
        let mut names: Vec<&str> = ids.take(13).map(|id| self.name(id)).collect();
        if let Some(last) = names.get_mut(12) {
            *last = "…";
        }
        names.join(", ")
    }

    /// Returns the link between two nodes.
    pub fn between(&self, a: NodeId, b: NodeId) -> Option<LinkId> {
        self.between.get(&(a.min(b), a.max(b))).copied()
    }

    /// Returns the links of a path through these nodes.
    pub fn links_on<'p>(&'p self, path: &'p [NodeId]) -> impl Iterator<Item = &'p Link> {
        let steps = path.iter().zip(path.iter().skip(1));
        steps.filter_map(|(a, b)| Some(&self.links[self.between(*a, *b)?]))
    }

    /// Returns the links of a node.
    pub fn links_at(&self, id: NodeId) -> impl Iterator<Item = (LinkId, &Link)> {
        let links = self.nodes[id].links.iter();
        links.map(|link| (*link, &self.links[*link]))
    }

    /// Returns the neighbours of `id`.
    pub fn neighbours(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        self.links_at(id).map(move |(_, link)| link.other_end(id))
    }

    /// Returns the switches from which all paths to hosts lead over one of `edges`: the WAN between
    /// them.
    pub fn behind(&self, edges: &[NodeId]) -> HashSet<NodeId> {
        let all = 0..self.nodes.len();
        let mut open: Vec<NodeId> = all.clone().filter(|id| self.is_host(*id)).collect();
        let mut outside: HashSet<NodeId> = open.iter().copied().collect();
        while let Some(id) = open.pop() {
            if !edges.contains(&id) {
                open.extend(self.neighbours(id).filter(|next| outside.insert(*next)));
            }
        }
        all.filter(|id| !edges.is_empty() && !outside.contains(id))
            .collect()
    }
}

/// Shortest paths, computed once for each destination.
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

    /// Returns the nodes from `from` to `to`, including both; `None` if there is no path.
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

/// Returns, for every switch from which `goal` can be reached through switches, the next node on a
/// shortest path.
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
