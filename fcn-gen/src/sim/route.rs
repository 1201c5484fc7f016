//! Which way: shortest paths between switches, all of equal length kept for ECMP, and the tunnels between provider edges.

use super::frames::Path;
use super::hash::mix;
use crate::scenario::model::{NodeKind, Simulation, Tunnel};
use std::collections::VecDeque;

/// Routes of every switch.
#[derive(Debug)]
pub struct Routes {
    /// By node: the switch that it is, or that it is attached to, and the port there towards it.
    attached: Vec<(usize, Option<u32>)>,
    /// By switch and destination switch (both as nodes): the ports to choose from.
    next: Vec<Vec<Vec<u32>>>,
    /// By node: its place in `next`, for switches.
    place: Vec<Option<usize>>,
    /// By edge (as place) and destination switch: the tunnel to take.
    tunnels: Vec<Vec<Option<u32>>>,
}

/// The port of `node` on link `link`.
fn port_of(simulation: &Simulation, node: usize, link: usize) -> u32 {
    (link * 2 + usize::from(simulation.links[link].b == node)) as u32
}

impl Routes {
    /// The routes of `simulation`, and the tunnels between its provider edges.
    pub fn new(simulation: &Simulation) -> (Self, Vec<Path>) {
        let switches: Vec<usize> = (0..simulation.nodes.len())
            .filter(|&n| matches!(simulation.nodes[n].kind, NodeKind::Switch(_)))
            .collect();
        let mut place = vec![None; simulation.nodes.len()];
        for (at, &node) in switches.iter().enumerate() {
            place[node] = Some(at);
        }
        let mut attached: Vec<(usize, Option<u32>)> =
            (0..simulation.nodes.len()).map(|n| (n, None)).collect();
        let mut neighbours: Vec<Vec<(usize, u32)>> = vec![Vec::new(); switches.len()];
        for (index, link) in simulation.links.iter().enumerate() {
            for (here, there) in [(link.a, link.b), (link.b, link.a)] {
                match (place[here], place[there]) {
                    (Some(at), Some(_)) => {
                        neighbours[at].push((there, port_of(simulation, here, index)));
                    }
                    (Some(_), None) => {
                        attached[there] = (here, Some(port_of(simulation, here, index)));
                    }
                    _ => {}
                }
            }
        }
        let next = (0..switches.len())
            .map(|_| vec![Vec::new(); switches.len()])
            .collect();
        let mut routes = Self {
            attached,
            next,
            place,
            tunnels: Vec::new(),
        };
        for (to, &destination) in switches.iter().enumerate() {
            routes.towards(to, destination, &switches, &neighbours);
        }
        let paths = routes.tunnels(simulation, &switches);
        (routes, paths)
    }

    /// Distances to one switch, breadth first, and the ports that come nearer to it.
    fn towards(
        &mut self,
        to: usize,
        destination: usize,
        switches: &[usize],
        neighbours: &[Vec<(usize, u32)>],
    ) {
        let mut distance = vec![usize::MAX; switches.len()];
        distance[to] = 0;
        let mut queue = VecDeque::from([destination]);
        while let Some(node) = queue.pop_front() {
            let Some(at) = self.place[node] else { continue };
            for &(neighbour, _) in &neighbours[at] {
                if let Some(n) = self.place[neighbour]
                    && distance[n] == usize::MAX
                {
                    distance[n] = distance[at] + 1;
                    queue.push_back(neighbour);
                }
            }
        }
        for (at, around) in neighbours.iter().enumerate() {
            self.next[at][to] = around
                .iter()
                .filter(|(neighbour, _)| {
                    distance[at] != usize::MAX
                        && self.place[*neighbour]
                            .is_some_and(|n| distance[n].checked_add(1) == Some(distance[at]))
                })
                .map(|&(_, port)| port)
                .collect();
        }
    }

    /// A tunnel for each pair of provider edges; an edge takes it to whatever lies behind the other.
    fn tunnels(&mut self, simulation: &Simulation, switches: &[usize]) -> Vec<Path> {
        let tunnel = |node: usize| -> Option<Tunnel> {
            match &simulation.nodes[node].kind {
                NodeKind::Switch(switch) => switch.edge.as_ref().map(|edge| edge.tunnel),
                NodeKind::Host(_) => None,
            }
        };
        let mut paths = Vec::new();
        let mut chosen = vec![vec![None; switches.len()]; switches.len()];
        for (from, &ingress) in switches.iter().enumerate() {
            let Some(how) = tunnel(ingress) else { continue };
            for (to, choice) in chosen[from].iter_mut().enumerate() {
                let mut at = from;
                let mut last = None;
                // No shortest path is longer than there are switches.
                for _ in 0..switches.len() {
                    let Some(&port) = self.next[at][to].first() else {
                        break;
                    };
                    let link = simulation.links[port as usize / 2];
                    let there = if port % 2 == 0 { link.b } else { link.a };
                    let Some(place) = self.place[there] else {
                        break;
                    };
                    at = place;
                    if tunnel(there).is_some() {
                        last = Some(there);
                    }
                }
                let Some(egress) = last else { continue };
                let known = paths
                    .iter()
                    .position(|p: &Path| p.ingress == ingress && p.egress == egress);
                let index = known.unwrap_or_else(|| {
                    paths.push(Path {
                        ingress,
                        egress,
                        tunnel: how,
                    });
                    paths.len() - 1
                });
                *choice = Some(index as u32);
            }
        }
        self.tunnels = chosen;
        paths
    }

    /// The port by which `switch` sends to node `to`, where there are several one by a hash of the packet's headers.
    pub fn port(&self, switch: usize, to: usize, hash: impl FnOnce() -> u64) -> Option<u32> {
        let &(at, last) = self.attached.get(to)?;
        if at == switch {
            return last;
        }
        let ports = self
            .next
            .get((*self.place.get(switch)?)?)?
            .get((*self.place.get(at)?)?)?;
        match ports.len() {
            0 => None,
            1 => ports.first().copied(),
            // The switch's number is in it, or all would choose alike.
            n => ports
                .get((mix(hash() ^ switch as u64) % n as u64) as usize)
                .copied(),
        }
    }

    /// The tunnel that edge `switch` puts packets to host `to` into.
    pub fn tunnel(&self, switch: usize, to: usize) -> Option<u32> {
        let &(at, last) = self.attached.get(to)?;
        last?;
        *self
            .tunnels
            .get((*self.place.get(switch)?)?)?
            .get((*self.place.get(at)?)?)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Play, Source, load};

    fn simulation(name: &str, sets: &[&str]) -> Box<Simulation> {
        let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
        match load(&Source::Builtin(name.to_owned()), &sets).unwrap().play {
            Play::Simulation(simulation) => simulation,
            Play::Gallery { .. } | Play::Stress(_) => panic!("{name} is no simulation"),
        }
    }

    fn number(simulation: &Simulation, name: &str) -> usize {
        simulation
            .nodes
            .iter()
            .position(|n| n.name == name)
            .unwrap()
    }

    /// Names of the nodes on the way from a switch to a node.
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
    fn equal_paths_share_flows_and_a_flow_keeps_its_own() {
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
    fn tunnels_go_from_edge_to_edge_in_both_directions() {
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
