//! Senders and receivers of flows, and their paths.

use super::error::{Refusal, refuse};
use super::limits;
use super::model::NodeId;
use super::schema::{File, FlowKeys, Pairs, Patterns};
use super::topology::{Paths, Topology};
use crate::units::Ps;
use std::collections::HashSet;

/// A flow before its numbers are determined.
pub(super) struct Pair<'a> {
    pub keys: &'a FlowKeys,
    /// Index of the entry in its array.
    pub entry: usize,
    pub name: String,
    pub from: NodeId,
    pub to: NodeId,
    /// Nodes on the path, including both hosts.
    pub path: Vec<NodeId>,
    /// True if its entry defines only this flow.
    pub alone: bool,
    /// Number within its entry, from 0.
    pub index: u64,
}

impl Pair<'_> {
    /// Returns the path of a key of its entry.
    pub fn key(&self, key: &str) -> String {
        format!("flow.{}.{key}", self.entry)
    }

    /// Returns the octets of payload of its packets.
    pub fn mtu(&self) -> u16 {
        self.keys.mtu.map_or(1024, |mtu| mtu.0)
    }

    /// Returns the round-trip time of its packets without queues.
    pub fn round(&self, topology: &Topology<'_>) -> Ps {
        let octets = u64::from(self.mtu()) + 100;
        topology.links_on(&self.path).fold(Ps(0), |round, link| {
            round + link.delay + link.delay + link.rate.time(octets)
        })
    }
}

/// Determines the ends and paths of all flows.
pub(super) fn pairs<'a>(file: &'a File, topology: &Topology<'_>) -> Result<Vec<Pair<'a>>, Refusal> {
    let mut paths = Paths::new(topology);
    let mut names = HashSet::new();
    let mut all = Vec::new();
    let mut on_the_way = 0;
    for (entry, keys) in file.flow.iter().enumerate() {
        let at = |key: &str| format!("flow.{entry}.{key}");
        if let Some(name) = &keys.name {
            limits::name(name, || at("name"))?;
        }
        let alone = single(&keys.from) && single(&keys.to) && keys.count.is_none();
        let ends = ends(keys, topology, at)?;
        let copies = keys.count.map_or(1, |count| count.0);
        let flows = all.len() + ends.len().saturating_mul(copies as usize);
        limits::at_most(flows, limits::FLOWS, "flows", || at("to"))?;
        let mut index = 0;
        for (from, to) in ends {
            let (sender, receiver) = (topology.name(from), topology.name(to));
            let Some(path) = paths.path(from, to) else {
                refuse!(
                    at("to"),
                    "there is no path from `{sender}` to `{receiver}`; link their switches"
                );
            };
            on_the_way += path.len() * copies as usize;
            let what = "nodes on the paths of all flows";
            limits::at_most(on_the_way, limits::ON_THE_WAY, what, || at("to"))?;
            for copy in 1..=copies {
                let name = match &keys.name {
                    Some(name) if alone => name.clone(),
                    Some(name) => format!("{name}{}", index + 1),
                    None if keys.count.is_none() => format!("{sender}-{receiver}"),
                    None => format!("{sender}-{receiver}-{copy}"),
                };
                if !names.insert(name.clone()) {
                    let path = at(if keys.name.is_some() { "name" } else { "from" });
                    refuse!(path, "two flows are named `{name}`; names must differ");
                }
                all.push(Pair {
                    keys,
                    entry,
                    name,
                    from,
                    to,
                    path: path.clone(),
                    alone,
                    index,
                });
                index += 1;
            }
        }
    }
    Ok(all)
}

fn single(patterns: &Patterns) -> bool {
    matches!(patterns.as_slice(), [one] if !one.contains('*'))
}

fn ends(
    keys: &FlowKeys,
    topology: &Topology<'_>,
    at: impl Fn(&str) -> String,
) -> Result<Vec<(NodeId, NodeId)>, Refusal> {
    let from = topology.find(&keys.from, &at("from"), Some(true))?;
    let to = topology.find(&keys.to, &at("to"), Some(true))?;
    let mut ends: Vec<_> = match keys.pairs.unwrap_or(Pairs::All) {
        Pairs::Each if from.len() != to.len() => {
            let (from, to) = (from.len(), to.len());
            refuse!(
                at("to"),
                "pairs = \"each\" needs as many receivers as senders, not {to} and {from}"
            );
        }
        Pairs::Each => from.into_iter().zip(to).collect(),
        Pairs::All => {
            let pairs = from.len().saturating_mul(to.len());
            limits::at_most(pairs, limits::FLOWS + limits::HOSTS, "flows", || at("to"))?;
            let pairs_of = |from: &NodeId| to.iter().map(|to| (*from, *to)).collect::<Vec<_>>();
            from.iter().flat_map(pairs_of).collect()
        }
    };
    ends.retain(|(from, to)| from != to);
    if ends.is_empty() {
        refuse!(
            at("to"),
            "sender and receiver are the same host; a flow needs two"
        );
    }
    Ok(ends)
}
