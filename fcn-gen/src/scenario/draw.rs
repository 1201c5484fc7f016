//! Draws a scenario's topology as text, at most 100 columns wide.

use super::file::{Play, Scenario};
use super::model::{
    Flow, Host, Link, LinkId, NodeId, NodeKind, ProxyKnownBy, Simulation, Switch, Tunnel, stem,
};
use super::stress;
use fcn_node::reaction_point::Control;
use std::borrow::Borrow;
use std::collections::BTreeSet;

/// Maximum width of a line, in characters.
const COLUMNS: usize = 100;
/// Maximum number of flow lines.
const FLOW_LINES: usize = 12;

/// Draws the topology: switches with their roles, hosts in groups, links with rate and delay,
/// vantage points, flows.
#[must_use]
pub fn draw(scenario: &Scenario) -> String {
    let name = &scenario.name;
    let lines = match &scenario.play {
        Play::Gallery(selection) => {
            let what = "individually built packets, no topology";
            let (gallery, family) = (selection.gallery.name, selection.family_name());
            vec![format!(
                "{name}: gallery `{gallery}`, family `{family}`: {what}"
            )]
        }
        Play::Stress(stress) => stress::draw(name, stress),
        Play::Simulation(simulation) => Drawing::new(simulation).lines(name),
    };
    lines
        .iter()
        .map(|line| cut(line.trim_end()) + "\n")
        .collect()
}

/// Truncates a line that is too wide.
fn cut(line: &str) -> String {
    match line.char_indices().nth(COLUMNS - 1) {
        Some((at, last)) if at + last.len_utf8() < line.len() => format!("{}…", &line[..at]),
        _ => line.to_owned(),
    }
}

struct Drawing<'a> {
    simulation: &'a Simulation,
    domains: bool,
}

/// Content of a line about a link.
struct Row {
    name: String,
    link: Link,
    notes: String,
    to_switch: bool,
}

/// The node at the other end of a link, the link, and notes on both.
type End = (NodeId, Link, String);

impl<'a> Drawing<'a> {
    fn new(simulation: &'a Simulation) -> Self {
        let first = simulation.nodes.first().map_or(0, |node| node.domain);
        let domains = simulation.nodes.iter().any(|node| node.domain != first);
        Self {
            simulation,
            domains,
        }
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let Simulation {
            mechanism,
            duration,
            seed,
            ..
        } = self.simulation;
        let mut lines = vec![format!(
            "{name}: mechanism {}, {duration}, seed {seed}",
            mechanism.id()
        )];
        for (id, node) in self.simulation.nodes.iter().enumerate() {
            if let NodeKind::Switch(switch) = &node.kind {
                let roles = self.switch_roles(switch, node.domain);
                lines.push(String::new());
                lines.push(format!("{}  {}  [{roles}]", node.name, node.ipv6));
                lines.extend(lines_of(&self.rows(id)));
            }
        }
        lines.extend(self.flows());
        lines.extend(self.vantage_points());
        lines
    }

    fn name(&self, id: NodeId) -> &str {
        &self.simulation.nodes[id].name
    }

    fn host(&self, id: NodeId) -> Option<&Host> {
        match &self.simulation.nodes[id].kind {
            NodeKind::Host(host) => Some(host),
            NodeKind::Switch(_) => None,
        }
    }

    fn links(&self, id: NodeId) -> impl Iterator<Item = (NodeId, LinkId, Link)> + '_ {
        let links = self.simulation.links.iter().enumerate();
        links
            .filter(move |(_, link)| [link.a, link.b].contains(&id))
            .map(move |(link_id, link)| (link.other_end(id), link_id, *link))
    }

    fn switch_roles(&self, switch: &Switch, domain: u16) -> String {
        let point = &switch.congestion;
        let notifies = [
            point.ecn.then_some("ECN"),
            point.fast_cnp.then_some("Fast CNP"),
            point.proxy.then_some("to proxy"),
            point.wan_fcn.then_some("FCN to ingress PE"),
        ];
        let notifies = joined(", ", notifies);
        let pauses = switch.ports.values().any(|port| port.pfc.is_some());
        let edge = switch.edge.as_ref().map(|edge| {
            let ingress = if edge.config.enabled { "ingress " } else { "" };
            format!("{ingress}PE, {}", tunnel(edge.tunnel))
        });
        let proxy = switch.proxy.as_ref().map(|proxy| proxy.known_by);
        let roles = [
            (!notifies.is_empty()).then(|| format!("congestion point: {notifies}")),
            pauses.then(|| "PFC".to_owned()),
            proxy.map(|by| format!("proxy, known by {}", known_by(by))),
            edge,
            switch.ioam_node.map(|number| format!("IOAM node {number}")),
            switch.border_filter.then(|| "border".to_owned()),
            self.domains.then(|| format!("domain {domain}")),
        ];
        let roles = Some(joined("; ", roles)).filter(|roles| !roles.is_empty());
        roles.unwrap_or_else(|| "switch".to_owned())
    }

    fn host_notes(&self, id: NodeId) -> String {
        let Some(host) = self.host(id) else {
            return String::new();
        };
        let domain = format!("domain {}", self.simulation.nodes[id].domain);
        let mut injections = self.simulation.injections.iter();
        let answers_fast = host.notification.is_some_and(|point| point.fast_cnp);
        let control = &host.reaction.control;
        let notes = [
            (host.reaction.fast_cnp, "Fast CNP"),
            (host.answers_unknown_options, "no Fast CNP"),
            (host.reaction.detour.is_some(), "detours"),
            (answers_fast, "answers CE by Fast CNP"),
            (matches!(control, Control::Telemetry(_)), "telemetry"),
            (matches!(control, Control::Hpcc(_)), "HPCC"),
            (matches!(control, Control::Swift(_)), "Swift"),
            (matches!(control, Control::Timely(_)), "TIMELY"),
            (matches!(control, Control::Fixed), "fixed rate"),
            (injections.any(|injection| injection.node == id), "injects"),
            (self.domains, &domain),
        ];
        let notes = notes.map(|(applies, note)| applies.then_some(note));
        joined(", ", notes)
    }

    /// Returns the marks for a link's vantage points and faults.
    fn marks(&self, link: LinkId) -> String {
        let points = self.simulation.vantage_points.iter().enumerate();
        let here = points.filter(|(_, point)| point.link == link);
        let mut marks: String = here.map(|(index, _)| format!(" ◉{index}")).collect();
        let mut faults = self.simulation.faults.iter();
        if faults.any(|fault| fault.link == link) {
            marks.push_str(" ⚡");
        }
        marks
    }

    /// Returns rows for the links of a node. Similar hosts share a row; a link between switches is
    /// shown at the node that comes first.
    fn rows(&self, id: NodeId) -> Vec<Row> {
        let is_host = |id: NodeId| self.host(id).is_some();
        let links = self.links(id);
        let links = links.filter(|(other, ..)| *other >= id || is_host(*other));
        let ends: Vec<End> = links
            .map(|(other, link_id, link)| {
                let notes = format!("{}{}", self.host_notes(other), self.marks(link_id));
                (other, link, notes)
            })
            .collect();
        let alike = |a: &End, b: &End| {
            is_host(a.0)
                && is_host(b.0)
                && stem(self.name(a.0)) == stem(self.name(b.0))
                && (a.1.rate, a.1.delay, &a.2) == (b.1.rate, b.1.delay, &b.2)
        };
        let row = |group: &[End]| {
            let (first, link, notes) = group.first().cloned()?;
            let mut name = span(group.iter().map(|(id, ..)| self.name(*id)));
            if group.len() > 1 {
                name += &format!(" ({})", group.len());
            }
            let to_switch = !is_host(first);
            Some(Row {
                name,
                link,
                notes,
                to_switch,
            })
        };
        ends.chunk_by(alike).filter_map(row).collect()
    }

    fn flows(&self) -> Vec<String> {
        let flows = &self.simulation.flows;
        let mut lines = vec![String::new(), format!("flows: {}", flows.len())];
        // Groups consecutive flows that differ only in their ends.
        let groups: Vec<_> = flows
            .chunk_by(|a, b| stem(&a.name) == stem(&b.name) && about(a) == about(b))
            .collect();
        for group in groups.iter().take(FLOW_LINES) {
            let ends = |end: fn(&Flow) -> NodeId| {
                let ids: BTreeSet<NodeId> = group.iter().map(end).collect();
                span(ids.iter().map(|id| self.name(*id)))
            };
            let names = span(group.iter().map(|flow| flow.name.as_str()));
            let (from, to) = (ends(|flow| flow.from), ends(|flow| flow.to));
            let what = group.first().map(about).unwrap_or_default();
            lines.push(format!("  {names}: {from} → {to}: {what}"));
        }
        if groups.len() > FLOW_LINES {
            lines.push(format!("  … and {} lines more", groups.len() - FLOW_LINES));
        }
        lines
    }

    fn vantage_points(&self) -> Option<String> {
        let names = self.simulation.vantage_names().into_iter().enumerate();
        let points: Vec<_> = names
            .map(|(index, name)| format!("◉{index} {name}"))
            .collect();
        (!points.is_empty()).then(|| format!("captured: {}", points.join("  ")))
    }
}

/// Joins the texts that are present.
fn joined<T: Borrow<str>>(by: &str, texts: impl IntoIterator<Item = Option<T>>) -> String {
    texts.into_iter().flatten().collect::<Vec<_>>().join(by)
}

fn lines_of(rows: &[Row]) -> impl Iterator<Item = String> {
    rows.iter().enumerate().map(|(index, row)| {
        let branch = match (row.to_switch, index + 1 == rows.len()) {
            (true, false) => "╞══",
            (true, true) => "╘══",
            (false, false) => "├──",
            (false, true) => "└──",
        };
        let (rate, delay) = (row.link.rate.to_string(), row.link.delay.to_string());
        let (name, notes) = (&row.name, row.notes.trim_start());
        format!("  {branch} {name:<24} {rate:>12} {delay:>10}   {notes}")
    })
}

fn about(flow: &Flow) -> String {
    let ip = if flow.source.is_ipv4() { 4 } else { 6 };
    let mut what = format!(
        "IPv{ip}, {} octets in packets of {}",
        flow.message, flow.mtu
    );
    if let Some(trace) = flow.ioam {
        let kind = if trace.incremental {
            "incremental"
        } else {
            "pre-allocated"
        };
        what += &format!(", {kind} trace for {}", trace.nodes);
    }
    if flow.rdma_cm {
        what += ", RDMA CM";
    }
    what
}

/// Abbreviates a list of names to the first and the last.
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
