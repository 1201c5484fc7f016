//! Where packets are captured, and what happens beside the flows: faults on links, injected packets.

use super::addresses::Addresses;
use super::check;
use super::error::Refusal;
use super::model::{Fault, FaultKind, Flow, Injected, Injection, LinkId, NodeId, VantagePoint};
use super::schema::{FaultKindText, FaultText, File, InjectKindText, InjectText, Maybe, Patterns};
use super::text::DurationText;
use super::topology::Topology;
use crate::units::Ps;
use core::ops::Range;
use std::collections::HashMap;
use std::net::Ipv6Addr;
use toml::Spanned;

/// The vantage points; where the file names none, the last switch port before the first flow's receiver.
pub(super) fn vantage_points(
    file: &File,
    topology: &Topology<'_>,
    flows: &[Flow],
) -> Result<Vec<VantagePoint>, Refusal> {
    let mut points: Vec<VantagePoint> = Vec::new();
    for text in &file.vantage {
        for (node, link) in ports(text, topology)? {
            let point = VantagePoint { node, link };
            if points.contains(&point) {
                return Err(Refusal::at(
                    text,
                    format!("`{}` is there twice; each port once", text.get_ref()),
                ));
            }
            points.push(point);
            check::count(
                points.len(),
                check::VANTAGE_POINTS,
                "vantage points",
                text.span(),
            )?;
        }
    }
    if points.is_empty()
        && let Some(flow) = flows.first()
        && let Some(last) = topology.neighbours(flow.to).next()
        && let Some(link) = topology.between(last, flow.to)
    {
        points.push(VantagePoint { node: last, link });
    }
    Ok(points)
}

/// The ports that `node:peer` names; either may have `*` in it.
fn ports(
    text: &Spanned<String>,
    topology: &Topology<'_>,
) -> Result<Vec<(NodeId, LinkId)>, Refusal> {
    let Some((node, peer)) = text.get_ref().split_once(':') else {
        return Err(Refusal::at(
            text,
            format!(
                "`{}` is no port; write node:peer, as in leaf1:r1",
                text.get_ref()
            ),
        ));
    };
    let find =
        |name: &str| topology.find(&Patterns(vec![name.trim().to_owned()]), &text.span(), None);
    let (nodes, peers) = (find(node)?, find(peer)?);
    let mut found = Vec::new();
    // By way of the neighbours: two patterns may name every node twice.
    let wanted: HashMap<NodeId, usize> = peers.iter().copied().zip(0..).collect();
    for node in &nodes {
        let mut here: Vec<NodeId> = topology
            .neighbours(*node)
            .filter(|next| wanted.contains_key(next))
            .collect();
        here.sort_by_key(|next| wanted.get(next));
        found.extend(here.iter().filter_map(|peer| {
            let link = topology.between(*node, *peer)?;
            Some((*node, link))
        }));
    }
    if let (true, Some(node)) = (found.is_empty(), nodes.first()) {
        let message = format!(
            "there is no link {node_name}:{peer}; `{node_name}` is linked to {next}",
            node_name = topology.name(*node),
            peer = peer.trim(),
            next = topology.neighbour_names(*node)
        );
        return Err(Refusal::at(text, message));
    }
    Ok(found)
}

/// The faults.
pub(super) fn faults(
    file: &File,
    topology: &Topology<'_>,
    duration: Ps,
) -> Result<Vec<Fault>, Refusal> {
    let mut all = Vec::new();
    for text in &file.fault {
        let text = text.get_ref();
        let start = text.start.as_ref().map_or(Ps(0), |start| start.get_ref().0);
        let stop = text
            .stop
            .as_ref()
            .map_or(start.max(duration), |stop| stop.get_ref().0);
        if let Some(at) = text.stop.as_ref().filter(|_| stop <= start) {
            return Err(Refusal::at(
                at,
                format!("the fault would stop at {stop} and start at {start}"),
            ));
        }
        let kind = fault_kind(text)?;
        for (node, link) in ports(&text.link, topology)? {
            let towards = towards(text, topology, node, link)?;
            all.push(Fault {
                link,
                towards,
                start,
                stop,
                kind,
            });
            check::count(all.len(), check::LINKS, "faults", text.link.span())?;
        }
    }
    Ok(all)
}

fn towards(
    text: &FaultText,
    topology: &Topology<'_>,
    node: NodeId,
    link: LinkId,
) -> Result<Option<NodeId>, Refusal> {
    let Some(name) = &text.towards else {
        return Ok(None);
    };
    let ends = topology
        .links
        .get(link)
        .map_or([node, node], |link| [link.a, link.b]);
    match topology.node(name.get_ref()).filter(|id| ends.contains(id)) {
        Some(id) => Ok(Some(id)),
        None => {
            let [a, b] = ends.map(|end| topology.name(end));
            Err(Refusal::at(
                name,
                format!(
                    "`{}` is no end of that link; {a} and {b} are",
                    name.get_ref()
                ),
            ))
        }
    }
}

fn fault_kind(text: &FaultText) -> Result<FaultKind, Refusal> {
    let probability = |default| match (&text.probability, default) {
        (None, None) => Err(Refusal::at(
            &text.kind,
            "a probability is missing, as in probability = 0.01",
        )),
        (value, default) => check::probability(value, default.unwrap_or(1.0)),
    };
    match text.kind.get_ref() {
        FaultKindText::Loss => Ok(FaultKind::Loss(probability(None)?)),
        FaultKindText::Reorder => {
            let by = positive(&text.by, Ps::from_nanos(10_000))?;
            Ok(FaultKind::Reorder {
                probability: probability(None)?,
                by,
            })
        }
        FaultKindText::Down => match &text.probability {
            Some(at) => Err(Refusal::at(
                at,
                "a link is down or not; probability is for loss and reorder",
            )),
            None => Ok(FaultKind::Down),
        },
    }
}

fn positive(text: &Maybe<DurationText>, default: Ps) -> Result<Ps, Refusal> {
    match text {
        Some(value) if value.get_ref().0.as_nanos() == 0 => Err(Refusal::at(
            value,
            "that is no time at all; at least \"1ns\" is allowed",
        )),
        Some(value) => Ok(value.get_ref().0),
        None => Ok(default),
    }
}

/// The injected packets.
pub(super) fn injections(
    file: &File,
    topology: &Topology<'_>,
    addresses: &[Addresses],
    flows: &[Flow],
) -> Result<Vec<Injection>, Refusal> {
    let mut all = Vec::new();
    let by_name: HashMap<&str, usize> = flows
        .iter()
        .enumerate()
        .map(|(index, flow)| (flow.name.as_str(), index))
        .collect();
    for text in &file.inject {
        let text = text.get_ref();
        let count = check::within(&text.count, 1, 1..=check::INJECTED, "count of packets")?;
        let interval = positive(&text.interval, Ps::from_nanos(10_000))?;
        let start = text.start.map_or(Ps(0), |start| start.0);
        for node in topology.find(text.from.get_ref(), &text.from.span(), Some(true))? {
            let what = injected(text, topology, addresses, (flows, &by_name), node)?;
            all.push(Injection {
                node,
                start,
                count,
                interval,
                what,
            });
            check::count(all.len(), check::HOSTS, "injections", text.from.span())?;
        }
    }
    Ok(all)
}

fn injected(
    text: &InjectText,
    topology: &Topology<'_>,
    addresses: &[Addresses],
    (flows, by_name): (&[Flow], &HashMap<&str, usize>),
    node: NodeId,
) -> Result<Injected, Refusal> {
    let flow = || {
        let names = || {
            flows
                .iter()
                .take(12)
                .map(|flow| flow.name.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        };
        let Some(name) = &text.flow else {
            return Err(Refusal::at(
                &text.what,
                format!("the key `flow` is missing; there are {}", names()),
            ));
        };
        by_name
            .get(name.get_ref().as_str())
            .copied()
            .ok_or_else(|| {
                Refusal::at(
                    name,
                    format!(
                        "there is no flow `{}`; there are {}",
                        name.get_ref(),
                        names()
                    ),
                )
            })
    };
    let six = |flow: usize| match (flows.get(flow), &text.flow) {
        (Some(found), Some(at)) if found.source.is_ipv4() => Err(Refusal::at(
            at,
            format!("`{}` is IPv4; a Fast CNP is IPv6 only", found.name),
        )),
        _ => Ok(flow),
    };
    match text.what.get_ref() {
        InjectKindText::SpoofedFastCnp => {
            let own = addresses
                .get(node)
                .map_or(Ipv6Addr::UNSPECIFIED, |own| own.ipv6);
            let source = match &text.source {
                Some(name) => source(name, topology, addresses, &name.span())?,
                None => own,
            };
            Ok(Injected::SpoofedFastCnp {
                flow: six(flow()?)?,
                source,
            })
        }
        InjectKindText::ReplayedFastCnp => Ok(Injected::ReplayedFastCnp {
            flow: six(flow()?)?,
        }),
        InjectKindText::SpoofedCnp => Ok(Injected::SpoofedCnp { flow: flow()? }),
        InjectKindText::Tcp => Ok(Injected::Tcp { flow: flow()? }),
        InjectKindText::Pause => {
            let class = check::within(&text.class, 3, 0..=7, "class")?;
            Ok(Injected::Pause {
                class,
                quanta: text.quanta.unwrap_or(u16::MAX),
            })
        }
    }
}

fn source(
    name: &Spanned<String>,
    topology: &Topology<'_>,
    addresses: &[Addresses],
    at: &Range<usize>,
) -> Result<Ipv6Addr, Refusal> {
    if let Ok(address) = name.get_ref().parse() {
        return Ok(address);
    }
    let node = topology
        .node(name.get_ref())
        .and_then(|id| addresses.get(id));
    node.map(|own| own.ipv6).ok_or_else(|| {
        Refusal::span(
            at.clone(),
            format!("`{}` is neither an IPv6 address nor a node", name.get_ref()),
        )
    })
}
