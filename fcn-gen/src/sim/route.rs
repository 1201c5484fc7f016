//! Routes: shortest paths between switches, with all paths of equal length for ECMP, and the
//! tunnels between provider edges.

use super::frames::Path;
use super::hash::mix;
use crate::scenario::model::{NodeKind, Simulation};
use std::collections::VecDeque;

/// Routes of every switch. Tables are indexed by a switch's number among the switches.
#[derive(Debug)]
pub struct Routes {
    /// By node: the switch that it is or is attached to, and that switch's port towards it.
    attached: Vec<(usize, Option<u32>)>,
    /// By switch and destination switch: the ports to choose from.
    next: Vec<Vec<Vec<u32>>>,
    /// By edge and destination switch: the tunnel to use.
    tunnels: Vec<Vec<Option<u32>>>,
}

impl Routes {
    /// Computes the routes of `simulation`, and the tunnels between its provider edges.
    pub fn new(simulation: &Simulation) -> (Self, Vec<Path>) {
        let is_switch = |node: usize| matches!(simulation.nodes[node].kind, NodeKind::Switch(_));
        let switches: Vec<usize> = (0..simulation.nodes.len())
            .filter(|node| is_switch(*node))
            .collect();
        let mut attached = vec![(usize::MAX, None); simulation.nodes.len()];
        for (place, node) in switches.iter().enumerate() {
            attached[*node].0 = place;
        }
        // By switch: its neighbours, and the ports towards them.
        let mut neighbours: Vec<Vec<(usize, u32)>> = vec![Vec::new(); switches.len()];
        for (link, port) in simulation.links.iter().zip((0..).step_by(2)) {
            for (here, there, port) in [(link.a, link.b, port), (link.b, link.a, port + 1)] {
                let place = attached[here].0;
                match (is_switch(here), is_switch(there)) {
                    (true, true) => neighbours[place].push((attached[there].0, port)),
                    (true, false) => attached[there] = (place, Some(port)),
                    (false, _) => {}
                }
            }
        }
        let next = next_ports(&neighbours);
        let edge = |place: usize| match &simulation.nodes[switches[place]].kind {
            NodeKind::Switch(switch) => switch.edge.as_ref().map(|edge| edge.tunnel),
            NodeKind::Host(_) => None,
        };
        // One tunnel for each pair of provider edges, used for all destinations behind the other
        // edge.
        let mut paths: Vec<Path> = Vec::new();
        let mut tunnels = vec![vec![None; switches.len()]; switches.len()];
        for (from, &ingress) in switches.iter().enumerate() {
            let Some(tunnel) = edge(from) else { continue };
            for to in 0..switches.len() {
                let (mut at, mut last_edge) = (from, None);
                while let Some(port) = next[at][to].first() {
                    let link = simulation.links[*port as usize / 2];
                    at = attached[if port % 2 == 0 { link.b } else { link.a }].0;
                    last_edge = edge(at).map(|_| switches[at]).or(last_edge);
                }
                let Some(egress) = last_edge else { continue };
                let path = Path {
                    ingress,
                    egress,
                    tunnel,
                };
                let known = paths.iter().position(|known| *known == path);
                let index = known.unwrap_or_else(|| {
                    paths.push(path);
                    paths.len() - 1
                });
                tunnels[from][to] = Some(index as u32);
            }
        }
        let routes = Self {
            attached,
            next,
            tunnels,
        };
        (routes, paths)
    }

    /// Returns the port by which `switch` sends to node `to`; if there are several, it is chosen by
    /// a hash of the packet's headers.
    pub fn port(&self, switch: usize, to: usize, hash: impl FnOnce() -> u64) -> Option<u32> {
        let ((here, _), (there, last)) = (self.attached[switch], self.attached[to]);
        if here == there {
            return last;
        }
        let ports = self.next.get(here)?.get(there)?;
        match ports.len() {
            0 | 1 => ports.first().copied(),
            // The switch's number is included, so that not all switches make the same choice.
            n => Some(ports[(mix(hash() ^ switch as u64) % n as u64) as usize]),
        }
    }

    /// Returns the tunnel that edge `switch` uses for packets to host `to`.
    pub fn tunnel(&self, switch: usize, to: usize) -> Option<u32> {
        let (there, last) = self.attached[to];
        last?;
        self.tunnels[self.attached[switch].0][there]
    }
}

/// Returns the ports on shortest paths, by switch and destination switch.
fn next_ports(neighbours: &[Vec<(usize, u32)>]) -> Vec<Vec<Vec<u32>>> {
    let mut next = vec![vec![Vec::new(); neighbours.len()]; neighbours.len()];
    for to in 0..neighbours.len() {
        let mut distances = vec![usize::MAX; neighbours.len()];
        distances[to] = 0;
        let mut queue = VecDeque::from([to]);
        while let Some(at) = queue.pop_front() {
            // All nearer switches have been visited by now, and no farther one.
            for &(neighbour, _) in &neighbours[at] {
                if distances[neighbour] == usize::MAX {
                    distances[neighbour] = distances[at] + 1;
                    queue.push_back(neighbour);
                }
            }
            let nearer = neighbours[at].iter();
            let nearer = nearer.filter(|(neighbour, _)| distances[*neighbour] < distances[at]);
            next[at][to] = nearer.map(|(_, port)| *port).collect();
        }
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Play, Source, load};

    fn simulation(name: &str, sets: &[&str]) -> Box<Simulation> {
        let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
        match load(&Source::Builtin(name.to_owned()), &sets).unwrap().play {
            Play::Simulation(simulation) => simulation,
            Play::Gallery(_) | Play::Stress(_) => panic!("{name} is not a simulation"),
        }
    }

    fn number(simulation: &Simulation, name: &str) -> usize {
        simulation
            .nodes
            .iter()
            .position(|n| n.name == name)
            .unwrap()
    }

    /// Returns the names of the nodes on the path from a switch to a node.
    fn way(
        simulation: &Simulation,
        routes: &Routes,
        from: &str,
        to: &str,
        hash: u64,
    ) -> Vec<String> {
        let to = number(simulation, to);
        let mut at = number(simulation, from);
        let mut names = Vec::new();
        while at != to {
            let port = routes.port(at, to, || hash).unwrap() as usize;
            let link = simulation.links[port / 2];
            assert_eq!([link.a, link.b][port % 2], at, "its own port");
            at = [link.b, link.a][port % 2];
            names.push(simulation.nodes[at].name.clone());
            assert!(names.len() < 10, "a loop: {names:?}");
        }
        names
    }

    #[test]
    fn equal_paths_share_flows_and_a_flow_keeps_its_path() {
        let simulation = simulation("all-to-all", &[]);
        let (routes, tunnels) = Routes::new(&simulation);
        assert!(tunnels.is_empty());
        let far = simulation
            .nodes
            .iter()
            .rev()
            .find(|n| n.name.starts_with('h'))
            .unwrap();
        let first = |hash| way(&simulation, &routes, "leaf1", &far.name, mix(hash))[0].clone();
        let taken: Vec<String> = (0..1_000).map(first).collect();
        for spine in ["spine1", "spine2"] {
            let share = taken.iter().filter(|name| *name == spine).count();
            assert!((400..=600).contains(&share), "{spine}: {share} of 1000");
        }
        assert!((0..1_000).map(first).eq(taken), "the same again");
    }

    #[test]
    fn tunnels_connect_edges_in_both_directions() {
        let simulation = simulation("wan-fcn", &[]);
        let (routes, tunnels) = Routes::new(&simulation);
        let node = |name| number(&simulation, name);
        let (west, east) = (node("pe1"), node("pe2"));
        let ends: Vec<_> = tunnels.iter().map(|t| (t.ingress, t.egress)).collect();
        assert_eq!(ends, [(west, east), (east, west)]);
        assert_eq!(routes.tunnel(west, node("r1")), Some(0));
        assert_eq!(routes.tunnel(east, node("s1")), Some(1));
        assert_eq!(routes.tunnel(west, node("s1")), None, "on its own side");
        assert_eq!(routes.tunnel(node("p1"), node("r1")), None, "no edge");
        assert_eq!(
            routes.tunnel(west, east),
            None,
            "not what is for the edge itself"
        );
        assert_eq!(
            way(&simulation, &routes, "leaf1", "r1", 1),
            ["pe1", "p1", "p2", "pe2", "leaf2", "r1"]
        );
    }
}
