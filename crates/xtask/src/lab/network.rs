//! The lab's network: a namespace for each node, and one for the cables. A cable is a bridge of two
//! ports, which provides a point for capturing: AF_XDP takes frames from an interface before any
//! other socket receives them.

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
    /// Its interfaces, each with the neighbour at the other end.
    pub interfaces: Vec<(String, String)>,
    /// Addresses of the node.
    pub addresses: Vec<IpAddr>,
    namespace: String,
}

/// A link, as a capture point.
#[derive(Clone, Debug)]
pub struct Cable {
    /// Interface that carries all of its traffic.
    pub name: String,
    /// Delay in the scenario, in nanoseconds.
    pub delay_ns: u64,
    /// Addresses of the nodes at its ends.
    ends: Vec<IpAddr>,
}

impl Cable {
    /// Creates a cable between the nodes with these addresses.
    pub fn new(name: &str, delay_ns: u64, ends: Vec<IpAddr>) -> Self {
        Self {
            name: name.to_owned(),
            delay_ns,
            ends,
        }
    }

    /// Returns true if the node with this address is at one of its ends.
    pub fn leads_to(&self, address: IpAddr) -> bool {
        self.ends.contains(&address)
    }
}

/// The whole network. Dropping it removes it, with everything that runs in it.
#[derive(Debug)]
pub struct Network {
    nodes: Vec<Node>,
    /// Cables, by link.
    cables: Vec<Cable>,
    /// Index of the cable that carries the notifications to the first flow's sender.
    watched: usize,
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
        let mut macs = Vec::new();
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
                addresses: addresses.collect(),
                role: role(&roles).to_owned(),
                begins: roles.contains(&"sender"),
                interfaces: Vec::new(),
                name,
            });
            macs.push(text("mac").context("a node without a MAC address")?);
        }
        let mut network = Self {
            nodes,
            cables: Vec::new(),
            watched: 0,
            namespaces,
        };
        let mut taken = BTreeSet::new();
        let mut ends = Vec::new();
        for (number, link) in links.iter().enumerate() {
            let place = |end: usize| {
                let name = link["ends"][end].as_str()?;
                network.nodes.iter().position(|node| node.name == name)
            };
            let (a, b) = place(0).zip(place(1)).context("a link without ends")?;
            ends.push((a, b));
            let [name_a, name_b] = [a, b].map(|end| network.nodes[end].name.clone());
            let shown = format!("{name_a}-{name_b}");
            let fits = shown.len() <= LONGEST && taken.insert(shown.clone());
            let here = if fits { shown } else { format!("link{number}") };
            let (there, bridge) = (format!("end{number}"), format!("bridge{number}"));
            on(
                &cables,
                &[
                    "link",
                    "add",
                    &bridge,
                    "type",
                    "bridge",
                    "mcast_snooping",
                    "0",
                ],
            )?;
            on(&cables, &["link", "set", "dev", &bridge, "mtu", MTU, "up"])?;
            let peers = [(a, &here, &name_b), (b, &there, &name_a)];
            for (end, cable, peer) in peers {
                let interface = format!("link{number}");
                let node = &mut network.nodes[end];
                let shape = ["mtu", MTU, "numtxqueues", "1", "numrxqueues", "1"];
                let add = [
                    "link", "add", cable, "mtu", MTU, "type", "veth", "peer", "name",
                ];
                let mut words = add.to_vec();
                words.extend([interface.as_str(), "address", &macs[end]]);
                words.extend(shape);
                words.extend(["netns", &node.namespace]);
                on(&cables, &words)?;
                on(
                    &cables,
                    &["link", "set", "dev", cable, "master", &bridge, "up"],
                )?;
                on(&node.namespace, &["link", "set", "dev", &interface, "up"])?;
                node.interfaces.push((interface, peer.clone()));
            }
            let ends = [a, b].map(|end| network.nodes[end].addresses.clone());
            let delay = link["delay_ns"].as_u64().unwrap_or(0);
            let cable = Cable::new(&here, delay, ends.concat());
            network.cables.push(cable);
        }
        network.watched = watched(&network.nodes, &ends);
        Ok(network)
    }

    /// Returns the nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns the links.
    pub fn cables(&self) -> &[Cable] {
        &self.cables
    }

    /// Returns the interface that carries the notifications to senders.
    pub fn watched(&self) -> &str {
        self.cables
            .get(self.watched)
            .map_or("", |cable| &cable.name)
    }

    /// Returns the name of the node with this address, or the address itself if no node has it.
    pub fn name(&self, address: IpAddr) -> String {
        let mut nodes = self.nodes.iter();
        let node = nodes.find(|node| node.addresses.contains(&address));
        node.map_or_else(|| address.to_string(), |node| node.name.clone())
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

/// Returns the link next to a switch with senders, towards other switches or the receiver: it
/// carries the notifications to the senders, and everything that they send.
fn watched(nodes: &[Node], links: &[(usize, usize)]) -> usize {
    let begins = |node: usize| nodes.get(node).is_some_and(|node| node.begins);
    let other = |(a, b): (usize, usize), end| if a == end { b } else { a };
    let near = links.iter().find(|(a, b)| begins(*a) || begins(*b));
    let Some(&(a, b)) = near else { return 0 };
    let switch = if begins(a) { b } else { a };
    let mut onward = links.iter().enumerate().filter(|(_, link)| {
        (link.0 == switch || link.1 == switch) && !begins(other(**link, switch))
    });
    onward.next().map_or(0, |(number, _)| number)
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
            interfaces: Vec::new(),
            addresses: Vec::new(),
            namespace: String::new(),
        };
        let nodes = [
            node("s1", true),
            node("s2", true),
            node("r1", false),
            node("leaf1", false),
            node("leaf2", false),
        ];
        let links = [(3, 0), (1, 3), (4, 2), (3, 4)];
        assert_eq!(watched(&nodes, &links), 3);
        assert_eq!(watched(&nodes[..0], &links), 0);
    }
}
