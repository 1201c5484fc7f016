//! Vantage points, faults on links, and packets that hosts inject besides their flows.

use super::addresses::Addresses;
use super::error::{Refusal, refuse};
use super::limits;
use super::model::{Fault, FaultKind, Flow, Injected, Injection, LinkId, NodeId, VantagePoint};
use super::schema::{FaultKeys, FaultWord, File, InjectionKeys, InjectionKind, Patterns, list};
use super::topology::Topology;
use crate::units::Ps;
use std::collections::HashMap;
use std::net::Ipv6Addr;

/// Default delay of a reordered packet, and default time between injected ones.
const DEFAULT_INTERVAL: Ps = Ps::from_nanos(10_000);

/// Returns the vantage points; if the file names none, the last switch port before the first flow's
/// receiver.
pub(super) fn vantage_points(
    file: &File,
    topology: &Topology<'_>,
    flows: &[Flow],
) -> Result<Vec<VantagePoint>, Refusal> {
    let mut points: Vec<VantagePoint> = Vec::new();
    for (index, port) in file.vantage.iter().enumerate() {
        let path = || format!("vantage.{index}");
        for (node, link) in ports(port, topology, &path())? {
            let point = VantagePoint { node, link };
            if points.contains(&point) {
                refuse!(path(), "`{port}` is listed twice");
            }
            points.push(point);
            limits::at_most(points.len(), limits::VANTAGE_POINTS, "vantage points", path)?;
        }
    }
    if points.is_empty()
        && let Some(flow) = flows.first()
        && let Some(node) = topology.neighbours(flow.to).next()
        && let Some(link) = topology.between(node, flow.to)
    {
        points.push(VantagePoint { node, link });
    }
    Ok(points)
}

/// Returns the ports named by `node:peer`; both names may contain `*`.
fn ports(
    port: &str,
    topology: &Topology<'_>,
    path: &str,
) -> Result<Vec<(NodeId, LinkId)>, Refusal> {
    let Some((node, peer)) = port.split_once(':') else {
        refuse!(
            path,
            "`{port}` is not a valid port; write node:peer, as in leaf1:r1"
        );
    };
    let find = |name: &str| topology.find(&Patterns::One(name.trim().to_owned()), path, None);
    let (nodes, peers) = (find(node)?, find(peer)?);
    let mut found = Vec::new();
    // Iterates over neighbours, since two patterns may match all pairs of nodes.
    let wanted: HashMap<NodeId, usize> = peers.iter().copied().zip(0..).collect();
    for node in &nodes {
        let next = topology.neighbours(*node);
        let mut here: Vec<NodeId> = next.filter(|next| wanted.contains_key(next)).collect();
        here.sort_by_key(|next| wanted.get(next));
        let links = here
            .iter()
            .filter_map(|peer| topology.between(*node, *peer));
        found.extend(links.map(|link| (*node, link)));
    }
    if let (true, Some(node)) = (found.is_empty(), nodes.first()) {
        let next = topology.some_of(topology.neighbours(*node));
        let (node, peer) = (topology.name(*node), peer.trim());
        refuse!(
            path,
            "there is no link {node}:{peer}; `{node}` is linked to {next}"
        );
    }
    Ok(found)
}

/// Returns the faults.
pub(super) fn faults(file: &File, topology: &Topology<'_>) -> Result<Vec<Fault>, Refusal> {
    let (mut all, end) = (Vec::new(), file.duration.0);
    for (index, keys) in file.fault.iter().enumerate() {
        let path = |key: &str| format!("fault.{index}.{key}");
        let start = keys.start.unwrap_or_default();
        let stop = limits::stop((start, keys.stop), end, "the fault", || path("stop"))?;
        let kind = fault_kind(keys, path)?;
        for (_, link) in ports(&keys.link, topology, &path("link"))? {
            let ends = [topology.links[link].a, topology.links[link].b];
            let towards = keys.towards.as_ref().map(|name| topology.node(name));
            if let (Some(name), Some(end)) = (&keys.towards, towards)
                && end.is_none_or(|end| !ends.contains(&end))
            {
                let [a, b] = ends.map(|end| topology.name(end));
                refuse!(
                    path("towards"),
                    "`{name}` is not an end of that link; {a} and {b} are"
                );
            }
            all.push(Fault {
                link,
                towards: towards.flatten(),
                start,
                stop,
                kind,
            });
            limits::at_most(all.len(), limits::LINKS, "faults", || path("link"))?;
        }
    }
    Ok(all)
}

fn fault_kind(keys: &FaultKeys, path: impl Fn(&str) -> String) -> Result<FaultKind, Refusal> {
    Ok(match (keys.kind, keys.probability) {
        (FaultWord::Down, None) => FaultKind::Down,
        (FaultWord::Down, Some(_)) => refuse!(
            path("probability"),
            "down has no probability; only loss and reorder do"
        ),
        (_, None) => refuse!(
            path("kind"),
            "the probability is missing; for example probability = 0.01"
        ),
        (FaultWord::Loss, Some(probability)) => FaultKind::Loss(probability.0),
        (FaultWord::Reorder, Some(probability)) => FaultKind::Reorder {
            probability: probability.0,
            by: keys.by.map_or(DEFAULT_INTERVAL, |by| by.0),
        },
    })
}

/// Returns the injections.
pub(super) fn injections(
    file: &File,
    topology: &Topology<'_>,
    addresses: &[Addresses],
    flows: &[Flow],
) -> Result<Vec<Injection>, Refusal> {
    let mut all = Vec::new();
    let numbered = flows.iter().enumerate();
    let by_name: HashMap<&str, usize> = numbered
        .map(|(id, flow)| (flow.name.as_str(), id))
        .collect();
    for (index, keys) in file.inject.iter().enumerate() {
        let path = |key: &str| format!("inject.{index}.{key}");
        for node in topology.find(&keys.from, &path("from"), Some(true))? {
            let source = match &keys.source {
                Some(name) => source(name, topology, addresses, path)?,
                None => addresses[node].ipv6,
            };
            all.push(Injection {
                node,
                start: keys.start.unwrap_or_default(),
                count: keys.count.map_or(1, |count| count.0),
                interval: keys
                    .interval
                    .map_or(DEFAULT_INTERVAL, |interval| interval.0),
                what: injected(keys, (flows, &by_name), source, path)?,
            });
            limits::at_most(all.len(), limits::HOSTS, "injections", || path("from"))?;
        }
    }
    Ok(all)
}

fn injected(
    keys: &InjectionKeys,
    (flows, by_name): (&[Flow], &HashMap<&str, usize>),
    source: Ipv6Addr,
    path: impl Fn(&str) -> String,
) -> Result<Injected, Refusal> {
    let names = || list(flows.iter().take(12).map(|flow| &flow.name));
    let flow = |of_fast_cnp: bool| {
        let Some(name) = &keys.flow else {
            let names = names();
            refuse!(
                path("what"),
                "the key `flow` is missing; expected one of {names}"
            );
        };
        let Some(&flow) = by_name.get(name.as_str()) else {
            let names = names();
            refuse!(
                path("flow"),
                "there is no flow `{name}`; expected one of {names}"
            );
        };
        if of_fast_cnp && flows[flow].source.is_ipv4() {
            refuse!(path("flow"), "`{name}` is IPv4; Fast CNPs are IPv6 only");
        }
        Ok(flow)
    };
    Ok(match keys.what {
        InjectionKind::SpoofedFastCnp => Injected::SpoofedFastCnp {
            flow: flow(true)?,
            source,
        },
        InjectionKind::ReplayedFastCnp => Injected::ReplayedFastCnp { flow: flow(true)? },
        InjectionKind::SpoofedCnp => Injected::SpoofedCnp { flow: flow(false)? },
        InjectionKind::Tcp => Injected::Tcp { flow: flow(false)? },
        InjectionKind::Pause => Injected::Pause {
            class: keys.class.map_or(3, |class| class.0),
            quanta: keys.quanta.unwrap_or(u16::MAX),
        },
    })
}

fn source(
    name: &str,
    topology: &Topology<'_>,
    addresses: &[Addresses],
    path: impl Fn(&str) -> String,
) -> Result<Ipv6Addr, Refusal> {
    let node = || Some(addresses[topology.node(name)?].ipv6);
    let Some(address) = name.parse().ok().or_else(node) else {
        refuse!(
            path("source"),
            "`{name}` is neither an IPv6 address nor a node"
        );
    };
    Ok(address)
}
