//! A scenario's topology as text, at most 100 columns wide.

use super::file::{Play, Scenario};
use super::model::{
    Flow, Host, Link, LinkId, NodeId, NodeKind, ProxyKnownBy, Simulation, Switch, Tunnel,
};
use super::stress;
use core::fmt::Write;
use fcn_node::reaction_point::Control;
use std::collections::{BTreeMap, BTreeSet};

/// Widest line, in characters.
const COLUMNS: usize = 100;
/// Flow lines shown.
const FLOW_LINES: usize = 12;

/// The topology: switches with their roles, hosts in groups, links with rate and delay, vantage points, flows.
#[must_use]
pub fn draw(scenario: &Scenario) -> String {
    let mut out = String::new();
    match &scenario.play {
        Play::Gallery { name, family, .. } => {
            line(
                &mut out,
                &format!(
                    "{}: gallery `{name}`, family `{family}`: packets made one by one, no topology",
                    scenario.name
                ),
            );
        }
        Play::Stress(stress) => {
            for text in stress::draw(&scenario.name, stress) {
                line(&mut out, &text);
            }
        }
        Play::Simulation(simulation) => Drawing::new(simulation).write(&scenario.name, &mut out),
    }
    out
}

/// Adds a line, cut where it would be too wide.
fn line(out: &mut String, text: &str) {
    let text = text.trim_end();
    if text.chars().count() > COLUMNS {
        out.extend(text.chars().take(COLUMNS - 1));
        out.push('…');
    } else {
        out.push_str(text);
    }
    out.push('\n');
}

struct Drawing<'a> {
    simulation: &'a Simulation,
    links_of: BTreeMap<NodeId, Vec<LinkId>>,
    domains: bool,
}

/// What a line about a link says.
struct Row {
    name: String,
    link: Link,
    notes: String,
    to_switch: bool,
}

impl<'a> Drawing<'a> {
    fn new(simulation: &'a Simulation) -> Self {
        let mut links_of: BTreeMap<NodeId, Vec<LinkId>> = BTreeMap::new();
        for (id, link) in simulation.links.iter().enumerate() {
            links_of.entry(link.a).or_default().push(id);
            links_of.entry(link.b).or_default().push(id);
        }
        let first = simulation.nodes.first().map_or(0, |node| node.domain);
        let domains = simulation.nodes.iter().any(|node| node.domain != first);
        Self {
            simulation,
            links_of,
            domains,
        }
    }

    fn write(&self, name: &str, out: &mut String) {
        let (mechanism, duration) = (self.simulation.mechanism.id(), self.simulation.duration);
        line(
            out,
            &format!(
                "{name}: mechanism {mechanism}, {duration}, seed {}",
                self.simulation.seed
            ),
        );
        for (id, node) in self.simulation.nodes.iter().enumerate() {
            match &node.kind {
                NodeKind::Switch(switch) => {
                    line(out, "");
                    let roles = self.switch_roles(switch, node.domain);
                    line(out, &format!("{}  {}  [{roles}]", node.name, node.ipv6));
                    self.write_rows(&self.rows(id), out);
                }
                NodeKind::Host(_) => {}
            }
        }
        self.write_flows(out);
        self.write_vantage_points(out);
    }

    fn name(&self, id: NodeId) -> &str {
        self.simulation
            .nodes
            .get(id)
            .map_or("?", |node| node.name.as_str())
    }

    fn host(&self, id: NodeId) -> Option<&Host> {
        match &self.simulation.nodes.get(id)?.kind {
            NodeKind::Host(host) => Some(host),
            NodeKind::Switch(_) => None,
        }
    }

    fn links(&self, id: NodeId) -> impl Iterator<Item = (NodeId, LinkId, Link)> + '_ {
        let links = self.links_of.get(&id).map_or(&[][..], Vec::as_slice);
        links.iter().filter_map(move |link| {
            let found = *self.simulation.links.get(*link)?;
            Some((if found.a == id { found.b } else { found.a }, *link, found))
        })
    }

    fn switch_roles(&self, switch: &Switch, domain: u16) -> String {
        let mut roles = Vec::new();
        let tells: Vec<_> = [
            (switch.congestion.ecn, "ECN"),
            (switch.congestion.fast_cnp, "Fast CNP"),
            (switch.congestion.proxy, "to proxy"),
            (switch.congestion.wan_fcn, "FCN to ingress PE"),
        ]
        .into_iter()
        .filter_map(|(does, what)| does.then_some(what))
        .collect();
        if !tells.is_empty() {
            roles.push(format!("congestion point: {}", tells.join(", ")));
        }
        if switch.ports.values().any(|port| port.pfc.is_some()) {
            roles.push("PFC".to_owned());
        }
        if let Some(proxy) = &switch.proxy {
            roles.push(format!("proxy, known by {}", known_by(proxy.known_by)));
        }
        if let Some(edge) = &switch.edge {
            let what = if edge.config.enabled {
                "ingress PE"
            } else {
                "PE"
            };
            roles.push(format!("{what}, {}", tunnel(edge.tunnel)));
        }
        if let Some(node) = switch.ioam_node {
            roles.push(format!("IOAM node {node}"));
        }
        if switch.border_filter {
            roles.push("border".to_owned());
        }
        if self.domains {
            roles.push(format!("domain {domain}"));
        }
        if roles.is_empty() {
            "switch".to_owned()
        } else {
            roles.join("; ")
        }
    }

    fn host_notes(&self, id: NodeId) -> String {
        let (Some(host), Some(node)) = (self.host(id), self.simulation.nodes.get(id)) else {
            return String::new();
        };
        let mut notes = Vec::new();
        if host.reaction.fast_cnp {
            notes.push("Fast CNP");
        }
        if host.answers_unknown_options {
            notes.push("no Fast CNP");
        }
        if host.reaction.detour.is_some() {
            notes.push("detours");
        }
        if host.notification.is_some_and(|point| point.fast_cnp) {
            notes.push("answers CE by Fast CNP");
        }
        match host.reaction.control {
            Control::Dcqcn(_) => {}
            Control::Telemetry(_) => notes.push("telemetry"),
            Control::Fixed => notes.push("fixed rate"),
        }
        if self
            .simulation
            .injections
            .iter()
            .any(|injection| injection.node == id)
        {
            notes.push("injects");
        }
        let mut notes = notes.join(", ");
        if self.domains {
            let _ = write!(
                notes,
                "{}domain {}",
                if notes.is_empty() { "" } else { ", " },
                node.domain
            );
        }
        notes
    }

    /// The vantage points and faults of a link.
    fn marks(&self, link: LinkId) -> String {
        let mut marks = String::new();
        for (index, point) in self.simulation.vantage_points.iter().enumerate() {
            if point.link == link {
                let _ = write!(marks, " ◉{index}");
            }
        }
        if self
            .simulation
            .faults
            .iter()
            .any(|fault| fault.link == link)
        {
            marks.push_str(" ⚡");
        }
        marks
    }

    /// The links of a node, hosts that are alike as one; links between switches stand at the end that comes first.
    fn rows(&self, id: NodeId) -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::new();
        let mut group: Vec<NodeId> = Vec::new();
        for (other, link_id, link) in self.links(id) {
            let is_host = self.host(other).is_some();
            if other < id && !is_host {
                continue;
            }
            let notes = format!("{}{}", self.host_notes(other), self.marks(link_id));
            let alike = |row: &Row| {
                is_host
                    && !row.to_switch
                    && row.notes == notes
                    && row.link.rate == link.rate
                    && row.link.delay == link.delay
            };
            let stem = |id: NodeId| self.name(id).trim_end_matches(|c: char| c.is_ascii_digit());
            let follows = group.last().is_some_and(|last| stem(*last) == stem(other));
            match rows.last_mut() {
                Some(row) if follows && alike(row) => {
                    group.push(other);
                    let (first, last) = (group.first().copied().unwrap_or(other), other);
                    let dots = if group.len() == 2 { ", " } else { " … " };
                    row.name = format!(
                        "{}{dots}{} ({})",
                        self.name(first),
                        self.name(last),
                        group.len()
                    );
                }
                _ => {
                    group = vec![other];
                    rows.push(Row {
                        name: self.name(other).to_owned(),
                        link,
                        notes,
                        to_switch: !is_host,
                    });
                }
            }
        }
        rows
    }

    fn write_rows(&self, rows: &[Row], out: &mut String) {
        for (index, row) in rows.iter().enumerate() {
            let last = index + 1 == rows.len();
            let branch = match (row.to_switch, last) {
                (true, false) => "╞══",
                (true, true) => "╘══",
                (false, false) => "├──",
                (false, true) => "└──",
            };
            let (rate, delay) = (row.link.rate.to_string(), row.link.delay.to_string());
            line(
                out,
                &format!(
                    "  {branch} {:<24} {rate:>12} {delay:>10}   {}",
                    row.name,
                    row.notes.trim_start()
                ),
            );
        }
    }

    fn write_flows(&self, out: &mut String) {
        let mut groups: Vec<FlowGroup> = Vec::new();
        for flow in &self.simulation.flows {
            let what = about(flow);
            let stem = flow.name.trim_end_matches(|c: char| c.is_ascii_digit());
            match groups.last_mut() {
                Some(group) if group.what == what && group.stem == stem => group.flows.push(flow),
                _ => groups.push(FlowGroup {
                    stem,
                    what,
                    flows: vec![flow],
                }),
            }
        }
        line(out, "");
        line(out, &format!("flows: {}", self.simulation.flows.len()));
        for group in groups.iter().take(FLOW_LINES) {
            let names = span(group.flows.iter().map(|flow| flow.name.as_str()));
            let from: BTreeSet<NodeId> = group.flows.iter().map(|flow| flow.from).collect();
            let to: BTreeSet<NodeId> = group.flows.iter().map(|flow| flow.to).collect();
            let from = span(from.iter().map(|id| self.name(*id)));
            let to = span(to.iter().map(|id| self.name(*id)));
            line(out, &format!("  {names}: {from} → {to}: {}", group.what));
        }
        if groups.len() > FLOW_LINES {
            line(
                out,
                &format!("  … and {} lines more", groups.len() - FLOW_LINES),
            );
        }
    }

    fn write_vantage_points(&self, out: &mut String) {
        let points = self
            .simulation
            .vantage_points
            .iter()
            .enumerate()
            .map(|(index, point)| {
                let link = self.simulation.links.get(point.link);
                let peer = link.map_or(point.node, |link| {
                    if link.a == point.node { link.b } else { link.a }
                });
                format!("◉{index} {}:{}", self.name(point.node), self.name(peer))
            });
        let points: Vec<_> = points.collect();
        if !points.is_empty() {
            line(out, &format!("captured: {}", points.join("  ")));
        }
    }
}

/// Flows that follow each other and differ in their ends alone.
struct FlowGroup<'a> {
    stem: &'a str,
    what: String,
    flows: Vec<&'a Flow>,
}

fn about(flow: &Flow) -> String {
    let ip = if flow.source.is_ipv4() {
        "IPv4"
    } else {
        "IPv6"
    };
    let mut what = format!("{ip}, {} octets in packets of {}", flow.message, flow.mtu);
    if let Some(trace) = flow.ioam {
        let kind = if trace.incremental {
            "incremental"
        } else {
            "pre-allocated"
        };
        let _ = write!(what, ", {kind} trace for {}", trace.nodes);
    }
    if flow.rdma_cm {
        what.push_str(", RDMA CM");
    }
    what
}

/// The first and the last of several names.
fn span<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.collect();
    match names.as_slice() {
        [] => "?".to_owned(),
        [one] => (*one).to_owned(),
        [one, two] => format!("{one}, {two}"),
        [first, .., last] => format!("{first} … {last}"),
    }
}

const fn known_by(by: ProxyKnownBy) -> &'static str {
    match by {
        ProxyKnownBy::Configuration => "configuration",
        ProxyKnownBy::Option => "IPv6 option",
        ProxyKnownBy::IsIs => "IS-IS",
        ProxyKnownBy::Ospf2 => "OSPFv2",
        ProxyKnownBy::Ospf3 => "OSPFv3",
        ProxyKnownBy::Bgp => "BGP",
    }
}

fn tunnel(tunnel: Tunnel) -> String {
    match tunnel {
        Tunnel::Srv6 => "SRv6".to_owned(),
        Tunnel::Vxlan { vni } => format!("VXLAN {vni}"),
        Tunnel::SrMpls { transport, service } => format!("SR-MPLS {transport}/{service}"),
    }
}
