//! The lab's network: a namespace for each node, and one for the cables. A cable is two veth pairs
//! with tc redirecting between them, which provides a point for capturing: AF_XDP takes frames from
//! an interface before any other socket receives them. A bridge in that place would keep pauses: it
//! never forwards 01-80-C2-00-00-01 (IEEE 802.1Q section 8.6.3).

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::failure::Outcome;
use crate::process;

/// Prefix of namespace names, followed by the ID of the process that owns them.
const PREFIX: &str = "fcnlab";
/// Folder where iproute2 keeps their names.
const NAMES: &str = "/run/netns";
/// Maximum length of an interface name.
const LONGEST: usize = 15;
/// MTU of every link: enough for the largest RoCEv2 packets, even in tunnels.
const MTU: &str = "9000";

/// A node.
#[derive(Debug)]
pub struct Node {
    /// Name of the node.
    pub name: String,
    /// Role that it plays.
    pub role: String,
    /// True if flows begin there.
    pub begins: bool,
    /// True if it injects packets at times of the scenario.
    pub injects: bool,
    /// Its interfaces, each with the neighbour at the other end.
    pub interfaces: Vec<(String, String)>,
    /// Addresses of the node.
    addresses: Vec<IpAddr>,
    /// Source MAC address of all frames that it makes.
    mac: [u8; 6],
    namespace: String,
}

/// A link, as a capture point.
#[derive(Clone, Debug)]
pub struct Cable {
    /// Interface that carries all of its traffic.
    pub name: String,
    /// Delay in the scenario, in nanoseconds.
    pub delay_ns: u64,
    /// Indices of the nodes at its ends.
    pub ends: [usize; 2],
}

/// Nodes and cables, by index. The network is a tree.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    nodes: Vec<(String, [u8; 6], Vec<IpAddr>)>,
    cables: Vec<Cable>,
}

impl Topology {
    /// Creates a topology of these nodes, each with name, MAC address and IP addresses.
    pub fn new(nodes: Vec<(String, [u8; 6], Vec<IpAddr>)>, cables: Vec<Cable>) -> Self {
        Self { nodes, cables }
    }

    /// Returns the cables.
    pub fn cables(&self) -> &[Cable] {
        &self.cables
    }

    /// Returns the name of a node.
    pub fn name(&self, node: usize) -> &str {
        self.nodes.get(node).map_or("", |(name, ..)| name)
    }

    /// Returns the node with this IP address.
    pub fn at_address(&self, address: IpAddr) -> Option<usize> {
        let mut nodes = self.nodes.iter();
        nodes.position(|(.., addresses)| addresses.contains(&address))
    }

    /// Returns the node whose frames have this source MAC address.
    pub fn at_mac(&self, mac: [u8; 6]) -> Option<usize> {
        self.nodes.iter().position(|(_, own, _)| *own == mac)
    }

    /// Returns the cables from one node to another, in this order; none if they are the same, or
    /// not connected.
    pub fn path(&self, from: usize, to: usize) -> Vec<usize> {
        // The cable by which each node was reached, searching from `to`.
        let mut by: Vec<Option<(usize, usize)>> = vec![None; self.nodes.len()];
        let mut next = vec![to];
        while let Some(node) = next.pop() {
            for (cable, Cable { ends: [a, b], .. }) in self.cables.iter().enumerate() {
                let other = match node {
                    node if node == *a => *b,
                    node if node == *b => *a,
                    _ => continue,
                };
                if other != to && by.get(other).is_some_and(Option::is_none) {
                    by[other] = Some((cable, node));
                    next.push(other);
                }
            }
        }
        let step = |node: usize| by.get(node).copied().flatten();
        let steps = std::iter::successors(step(from), |(_, node)| step(*node));
        steps.map(|(cable, _)| cable).collect()
    }
}

/// The whole network. Dropping it removes it, with everything that runs in it.
#[derive(Debug)]
pub struct Network {
    nodes: Vec<Node>,
    topology: Topology,
    /// Indices of the cables that carry senders' data, and the notifications to them.
    watched: Vec<usize>,
    namespaces: Namespaces,
}

/// Namespaces that were created.
#[derive(Debug, Default)]
struct Namespaces(Vec<String>);

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.0 {
            remove(name);
        }
    }
}

impl Namespaces {
    fn add(&mut self, name: &str) -> Outcome<String> {
        let name = format!("{PREFIX}-{}-{name}", std::process::id());
        ip(&["netns", "add", &name])?;
        self.0.push(name.clone());
        // The kernel must not send anything on its own.
        for which in ["all", "default"] {
            let key = format!("net.ipv6.conf.{which}.disable_ipv6=1");
            let mut command = inside(&name, "sysctl");
            // Without IPv6 there is nothing to disable.
            let _ = process::output(command.args(["-q", "-w", &key]));
        }
        Ok(name)
    }
}

impl Network {
    /// Builds the network that fcn-gen describes.
    pub fn new(described: &Value) -> Outcome<Self> {
        let list = |key: &str| described[key].as_array().cloned().unwrap_or_default();
        let (described_nodes, links) = (list("nodes"), list("links"));
        ensure!(
            links.len() < described_nodes.len(),
            "there is more than one path between nodes, so frames to unknown addresses would loop forever\n  \
             what to do: choose a scenario whose network is a tree"
        );
        let mut namespaces = Namespaces::default();
        let cables = namespaces.add("cables")?;
        let mut nodes = Vec::new();
        for node in &described_nodes {
            let text = |key: &str| Some(node[key].as_str()?.to_owned());
            let name = text("name").context("a node without a name")?;
            let roles = node["roles"].as_array().into_iter().flatten();
            let roles: Vec<&str> = roles.filter_map(Value::as_str).collect();
            let addresses = ["ipv6", "ipv4"]
                .into_iter()
                .filter_map(|key| text(key)?.parse().ok());
            nodes.push(Node {
                namespace: namespaces.add(&name)?,
                mac: text("mac")
                    .and_then(|text| mac(&text))
                    .context("a node without a MAC address")?,
                addresses: addresses.collect(),
                role: role(&roles).to_owned(),
                begins: roles.contains(&"sender"),
                injects: node["injects"] == true,
                interfaces: Vec::new(),
                name,
            });
        }
        let mut network = Self {
            nodes,
            topology: Topology::default(),
            watched: Vec::new(),
            namespaces,
        };
        let (mut taken, mut all) = (BTreeSet::new(), Vec::new());
        for (number, link) in links.iter().enumerate() {
            let place = |end: usize| {
                let name = link["ends"][end].as_str()?;
                network.nodes.iter().position(|node| node.name == name)
            };
            let (a, b) = place(0).zip(place(1)).context("a link without ends")?;
            let [name_a, name_b] = [a, b].map(|end| network.nodes[end].name.clone());
            let shown = format!("{name_a}-{name_b}");
            let fits = shown.len() <= LONGEST && taken.insert(shown.clone());
            let here = if fits { shown } else { format!("link{number}") };
            let there = format!("end{number}");
            let peers = [(a, &here, &name_b), (b, &there, &name_a)];
            for (end, cable, peer) in peers {
                let interface = format!("link{number}");
                let node = &mut network.nodes[end];
                let shape = ["mtu", MTU, "numtxqueues", "1", "numrxqueues", "1"];
                let add = [
                    "link", "add", cable, "mtu", MTU, "type", "veth", "peer", "name",
                ];
                let address = node.mac.map(|octet| format!("{octet:02x}")).join(":");
                let mut words = add.to_vec();
                words.extend([interface.as_str(), "address", &address]);
                words.extend(shape);
                words.extend(["netns", &node.namespace]);
                on(&cables, &words)?;
                on(&node.namespace, &["link", "set", "dev", &interface, "up"])?;
                node.interfaces.push((interface, peer.clone()));
            }
            connect(&cables, &here, &there)?;
            connect(&cables, &there, &here)?;
            all.push(Cable {
                name: here,
                delay_ns: link["delay_ns"].as_u64().unwrap_or(0),
                ends: [a, b],
            });
        }
        network.watched = watched(&network.nodes, &all);
        let nodes = network.nodes.iter();
        let nodes = nodes.map(|node| (node.name.clone(), node.mac, node.addresses.clone()));
        network.topology = Topology::new(nodes.collect(), all);
        Ok(network)
    }

    /// Returns the nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns the nodes and links.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Returns the interfaces that carry senders' data, and the notifications to them.
    pub fn watched(&self) -> impl Iterator<Item = &str> {
        let cables = self.watched.iter();
        cables.filter_map(|cable| Some(self.topology.cables.get(*cable)?.name.as_str()))
    }

    /// Returns a command that runs a program at a node.
    pub fn at(&self, node: &Node, program: impl AsRef<OsStr>) -> Command {
        inside(&node.namespace, program)
    }

    /// Returns a command that runs a program at the cables. Nodes have precedence over other
    /// programs, and a program loses what it does not capture in time.
    pub fn at_cables(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = inside(self.namespaces.0.first().map_or("", String::as_str), "nice");
        command.args(["-n", "-15"]).arg(program);
        command
    }
}

/// Returns the most specific of the roles that a node can play.
fn role<'a>(roles: &[&'a str]) -> &'a str {
    const ORDER: [&str; 5] = [
        "ingress-pe",
        "proxy",
        "congestion-point",
        "sender",
        "receiver",
    ];
    let place = |role: &&&str| ORDER.iter().position(|known| known == *role);
    roles.iter().min_by_key(place).copied().unwrap_or_default()
}

/// Returns the link from a switch with senders to another switch: it carries the notifications to
/// the senders, and everything that they send. Without one, returns all links of senders.
fn watched(nodes: &[Node], links: &[Cable]) -> Vec<usize> {
    let begins = |node: usize| nodes.get(node).is_some_and(|node| node.begins);
    let is_host = |node: usize| {
        links
            .iter()
            .filter(|link| link.ends.contains(&node))
            .count()
            < 2
    };
    let mut ends = links.iter().map(|link| link.ends);
    let near = ends.find(|[a, b]| begins(*a) || begins(*b));
    let Some([a, b]) = near else {
        return Vec::new();
    };
    let switch = if begins(a) { b } else { a };
    let onward = links
        .iter()
        .position(|link| link.ends.contains(&switch) && !link.ends.iter().any(|end| is_host(*end)));
    let of_senders = |link: &Cable| link.ends.iter().any(|end| begins(*end));
    match onward {
        Some(onward) => vec![onward],
        None => (0..links.len())
            .filter(|link| of_senders(&links[*link]))
            .collect(),
    }
}

/// Makes `there` send everything that arrives at `here`, both in the namespace of the cables.
fn connect(cables: &str, here: &str, there: &str) -> Outcome {
    on(cables, &["link", "set", "dev", here, "up"])?;
    let tc = |words: &[&str]| process::stdout(inside(cables, "tc").args(words)).map(drop);
    tc(&["qdisc", "add", "dev", here, "ingress"])?;
    let redirect = ["filter", "add", "dev", here, "parent", "ffff:", "protocol"];
    let everything = ["all", "u32", "match", "u32", "0", "0"];
    let action = ["action", "mirred", "egress", "redirect", "dev", there];
    tc(&[&redirect[..], &everything, &action].concat())
        .context("tc cannot redirect (it needs the kernel's cls_u32 and act_mirred)")
}

/// Reads a MAC address written in hexadecimal with colons.
fn mac(text: &str) -> Option<[u8; 6]> {
    let octets = text.split(':').map(|octet| u8::from_str_radix(octet, 16));
    let octets = octets.collect::<Result<Vec<u8>, _>>().ok()?;
    octets.try_into().ok()
}

fn inside(namespace: &str, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace]).arg(program);
    command
}

fn on(namespace: &str, words: &[&str]) -> Outcome {
    ip(&[&["-n", namespace], words].concat())
}

fn ip(words: &[&str]) -> Outcome {
    process::stdout(Command::new("ip").args(words)).map(drop)
}

/// Kills the processes in a namespace, and removes it.
fn remove(name: &str) {
    let mut pids = Command::new("ip");
    let pids = process::stdout(pids.args(["netns", "pids", name]));
    for pid in pids.unwrap_or_default().lines() {
        let pid = pid.trim().parse().ok();
        if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
    if let Err(failure) = ip(&["netns", "del", name]) {
        println!("{failure:#}");
    }
}

/// Removes the namespaces left by a killed lab; returns their number.
pub fn sweep() -> usize {
    let Ok(names) = std::fs::read_dir(NAMES) else {
        return 0;
    };
    let names = names
        .flatten()
        .filter_map(|name| name.file_name().into_string().ok());
    let left: Vec<String> = names.filter(|name| is_left(name, is_running)).collect();
    left.iter().for_each(|name| remove(name));
    left.len()
}

/// Returns true if a namespace belongs to a lab whose process no longer exists.
fn is_left(name: &str, is_running: impl Fn(u32) -> bool) -> bool {
    let mut parts = name.split('-');
    let ours = parts.next() == Some(PREFIX);
    let process = parts.next().and_then(|pid| pid.parse().ok());
    ours && parts.next().is_some() && process.is_some_and(|process| !is_running(process))
}

/// Returns true if the process exists, and is an xtask.
fn is_running(process: u32) -> bool {
    let name = Path::new("/proc").join(process.to_string()).join("comm");
    std::fs::read_to_string(name).is_ok_and(|name| name.trim() == "xtask")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_a_dead_labs_is_cleared_up() {
        for (name, left) in [
            ("fcnlab-17-leaf1", true),
            ("fcnlab-17-a-b", true),
            ("fcnlab-18-leaf1", false),
            ("fcnlab-17", false),
            ("fcnlab-x-leaf1", false),
            ("fcntest-17-near", false),
            ("other", false),
        ] {
            assert_eq!(is_left(name, |process| process == 18), left, "{name}");
        }
        assert!(!is_running(1) && !is_running(u32::MAX));
    }

    #[test]
    fn a_node_plays_its_most_specific_role() {
        assert_eq!(role(&["congestion-point", "proxy"]), "proxy");
        assert_eq!(
            role(&["congestion-point", "proxy", "ingress-pe"]),
            "ingress-pe"
        );
        assert_eq!(role(&["receiver", "sender"]), "sender");
        assert_eq!(role(&[]), "");
    }

    #[test]
    fn the_uplink_of_the_senders_is_watched() {
        let node = |name: &str, begins| Node {
            name: name.to_owned(),
            role: String::new(),
            begins,
            injects: false,
            interfaces: Vec::new(),
            addresses: Vec::new(),
            mac: [0; 6],
            namespace: String::new(),
        };
        let nodes = [
            node("s1", true),
            node("s2", true),
            node("r1", false),
            node("leaf1", false),
            node("leaf2", false),
        ];
        let links = [[3, 0], [1, 3], [4, 2], [3, 4]].map(cable);
        assert_eq!(watched(&nodes, &links), [3]);
        assert_eq!(watched(&nodes[..0], &links), [0; 0]);
        let links = [[3, 0], [1, 3], [3, 2]].map(cable);
        assert_eq!(watched(&nodes[..4], &links), [0, 1], "links of the senders");
    }

    fn cable(ends: [usize; 2]) -> Cable {
        Cable {
            name: String::new(),
            delay_ns: 0,
            ends,
        }
    }

    #[test]
    fn a_path_lists_the_cables_in_order() {
        let node = |name: &str| (name.to_owned(), [0; 6], Vec::new());
        let nodes = ["s1", "s2", "r1", "leaf1", "leaf2", "alone"].map(node);
        let cables = [[3, 0], [1, 3], [4, 2], [3, 4]].map(cable);
        let topology = Topology::new(nodes.to_vec(), cables.to_vec());
        assert_eq!(topology.path(0, 2), [0, 3, 2]);
        assert_eq!(topology.path(2, 1), [2, 3, 1]);
        assert_eq!(topology.path(0, 0), [0_usize; 0]);
        assert_eq!(topology.path(0, 5), [0_usize; 0]);
        assert_eq!(mac("02:fc:00:00:00:0a"), Some([2, 252, 0, 0, 0, 10]));
        assert_eq!(mac("02:fc"), None);
    }
}
