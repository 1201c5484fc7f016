//! What `emulate` and `check` share: the scenario around a device, the role of its node, the faults
//! that it may have, and the interfaces that are the node's links.

pub mod fault;
mod node;
mod role;
mod wire;

use crate::scenario::model::{NodeId, NodeKind, Simulation};
use crate::scenario::{self, Play, Scenario, Source};
use crate::sim::live::LiveNode;
use fcn_link::interface::{self, Interface};
use fcn_link::port::{Options, Port};
use fcn_tool::failure::{Failure, Result};
use fcn_tool::sending::{Backend, explain, longest_frame};

pub use node::{Faulty, LinkNode};
pub use role::{Enabled, Role, injects};
pub use wire::Wire;

/// The default scenario.
const LINK: &str = include_str!("link.toml");
/// Number of frames that can wait in each direction, on each queue.
const SLOTS: usize = 2_048;
/// Maximum length in octets of a data packet without payload and options: Ethernet, IPv6, UDP, BTH,
/// RETH, ICRC.
pub const DATA_HEADERS: usize = 14 + 40 + 8 + 12 + 16 + 4;

/// A link of the played node.
pub struct Played {
    /// The local interface.
    pub interface: Interface,
    /// Index of the scenario's link.
    pub link: usize,
    /// Name of the node at the other end.
    pub peer: String,
}

/// Returns the source of the scenario of that name or file, or of the default one.
pub fn source(config: Option<&str>) -> Source {
    match config {
        Some(name) => Source::named(name),
        None => Source::Text {
            name: "link.toml".to_owned(),
            text: LINK.to_owned(),
        },
    }
}

/// Loads the scenario of that name or file, or the default one.
///
/// # Errors
/// The scenario is invalid, or has no nodes.
pub fn load(config: Option<&str>, sets: &[String]) -> Result<(Scenario, Simulation)> {
    let scenario =
        scenario::load(&source(config), sets).map_err(|error| Failure::bad_scenario(&error))?;
    match &scenario.play {
        Play::Simulation(simulation) => {
            let simulation = (**simulation).clone();
            Ok((scenario, simulation))
        }
        Play::Gallery(_) | Play::Stress(_) => Err(Failure::usage("--config")
            .and(&scenario.name)
            .and("it has no nodes; choose a simulation (fcn-gen list)")),
    }
}

/// Returns true if a switch has all its links on one interface.
pub fn is_one(iface: &[String], simulation: &Simulation, node: NodeId) -> bool {
    matches!(simulation.nodes[node].kind, NodeKind::Switch(_))
        && iface.len() == 1
        && LiveNode::links(simulation, node).count() > 1
}

/// Returns the named interfaces, each with its link of the node. An interface with the default
/// route is accepted if allowed, and so is a single interface for all links of a switch.
///
/// # Errors
/// Their number differs from that of the links, or sending on one is not allowed.
pub fn interfaces(
    (iface, allow_default_route, may_be_one): (&[String], bool, bool),
    simulation: &Simulation,
    node: NodeId,
) -> Result<Vec<Played>> {
    let links: Vec<usize> = LiveNode::links(simulation, node).collect();
    let peer = |link: usize| {
        let peer = simulation.links[link].other_end(node);
        simulation.nodes[peer].name.as_str()
    };
    let peers: Vec<&str> = links.iter().map(|link| peer(*link)).collect();
    let is_one = may_be_one && is_one(iface, simulation, node);
    let owner = (simulation.nodes[node].name.as_str(), &peers[..]);
    let mut played = assign((iface, allow_default_route), owner, (may_be_one, is_one))?;
    for played in &mut played {
        played.link = links[played.link];
    }
    Ok(played)
}

/// Returns the named interfaces, in the order of the peers at the other ends of the owner's links;
/// `link` is the peer's index. One interface can be for all of them.
///
/// # Errors
/// As for [`interfaces`].
pub fn assign(
    (iface, allow_default_route): (&[String], bool),
    (owner, peers): (&str, &[&str]),
    (may_be_one, is_one): (bool, bool),
) -> Result<Vec<Played>> {
    if iface.len() != peers.len() && !is_one {
        return Err(Failure::usage("--iface").and(format!(
            "{owner} has {}, to {}: name an interface for each, in this order or as IF=NODE{}",
            fcn_tool::quantity::counted(peers.len() as u64, "link"),
            peers.join(", "),
            if may_be_one {
                " (a switch can also use one for all)"
            } else {
                ""
            }
        )));
    }
    let mut played: Vec<Option<Played>> = peers.iter().map(|_| None).collect();
    for (index, named) in iface.iter().enumerate() {
        let (name, place) = match named.split_once('=') {
            Some((name, wanted)) => {
                let place = peers.iter().position(|peer| *peer == wanted);
                let place = place.ok_or_else(|| {
                    Failure::usage("--iface").and(format!(
                        "`{wanted}` is not a neighbour of {owner}; neighbours: {}",
                        peers.join(", ")
                    ))
                })?;
                (name, place)
            }
            None => (named.as_str(), index),
        };
        let interface =
            Interface::named(name).map_err(|error| Failure::usage(error.to_string()))?;
        interface::check_may_send(&interface, allow_default_route)
            .map_err(|refusal| Failure::failed(refusal.to_string()))?;
        let twice = played.iter().flatten();
        let twice = twice
            .map(|p| p.interface.index())
            .any(|i| i == interface.index());
        if played[place].is_some() || twice {
            return Err(Failure::usage("--iface")
                .and(named)
                .and("it is named twice"));
        }
        played[place] = Some(Played {
            interface,
            link: place,
            peer: match is_one {
                true => peers.join(", "),
                false => peers[place].to_owned(),
            },
        });
    }
    Ok(played.into_iter().flatten().collect())
}

/// Refuses to send frames of up to `need` octets if an interface cannot carry them.
///
/// # Errors
/// The MTU of an interface is too small.
pub fn refuse_longer(played: &[Played], need: usize) -> Result {
    let takes = |played: &Played| 14 + played.interface.mtu() as usize;
    let Some(short) = played.iter().find(|played| takes(played) < need) else {
        return Ok(());
    };
    let (name, takes) = (short.interface.name(), takes(short));
    Err(Failure::usage("the frames are too long for the interface")
        .and(name)
        .and(format!("up to {need} octets, but it sends at most {takes}"))
        .and(format!(
            "set a smaller payload (--set mtu=1024), or a larger MTU (ip link set dev {name} mtu 9000)"
        )))
}

/// Opens the interfaces.
///
/// # Errors
/// Permissions are missing, or an interface cannot be opened with the backend.
pub fn open(backend: Backend, played: &[Played]) -> Result<Vec<Port>> {
    let open = |played: &Played| {
        let wanted = Options {
            backend: backend.into(),
            slots: SLOTS,
            max_frame_len: longest_frame(&played.interface),
        };
        Port::open(&played.interface, &wanted).map_err(|error| explain(&error, backend))
    };
    played.iter().map(open).collect()
}
