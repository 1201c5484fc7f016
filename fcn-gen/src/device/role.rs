//! Selects the node of a scenario for a role, and the enabled features of the drafts.

use crate::scenario::model::{Node, NodeId, NodeKind, Simulation};
use clap::ValueEnum;
use fcn_tool::failure::{Failure, Result};

fcn_wire::identified! {
    /// A role to play, by its name on the command line.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
    Role {
        /// A switch: forwards through queues, marks ECN, sends notifications
        CongestionPoint = "congestion-point",
        /// A host at which flows end: acknowledges, answers CE with CNPs
        Receiver = "receiver",
        /// A host at which flows begin (RDMA WRITE under DCQCN or telemetry control), or that
        /// injects packets
        Sender = "sender",
        /// A switch that turns notifications to a proxy into CNPs
        Proxy = "proxy",
        /// A provider edge: labels and encapsulates, turns WAN FCNs into CNPs
        IngressPe = "ingress-pe",
    }
}

impl Role {
    /// Returns the roles that `node` of the simulation can play.
    pub fn all_of(simulation: &Simulation, node: NodeId) -> impl Iterator<Item = Self> {
        let roles = Self::value_variants().iter().copied();
        roles.filter(move |role| role.can_play(simulation, node))
    }

    /// Returns true if `node` of the simulation can play the role.
    fn can_play(self, simulation: &Simulation, node: NodeId) -> bool {
        let flows = &simulation.flows;
        match (self, &simulation.nodes[node].kind) {
            (Self::CongestionPoint, NodeKind::Switch(_)) => true,
            (Self::Proxy, NodeKind::Switch(switch)) => switch.proxy.is_some(),
            (Self::IngressPe, NodeKind::Switch(switch)) => switch.edge.is_some(),
            (Self::Sender, NodeKind::Host(_)) => {
                let ends_here = flows.iter().any(|flow| flow.to == node);
                flows.iter().any(|flow| flow.from == node)
                    || injects(simulation, node) && !ends_here
            }
            (Self::Receiver, NodeKind::Host(_)) => flows.iter().any(|flow| flow.to == node),
            _ => false,
        }
    }

    /// Returns the node to play: the one named `name`, or the only one that can play the role.
    ///
    /// # Errors
    /// There is none, or there are several.
    pub fn node(self, simulation: &Simulation, name: Option<&str>) -> Result<NodeId> {
        let able = (0..simulation.nodes.len()).filter(|node| self.can_play(simulation, *node));
        let able: Vec<NodeId> = able.collect();
        let name_of = |node: &NodeId| simulation.nodes[*node].name.as_str();
        let names = able.iter().map(name_of).collect::<Vec<_>>().join(", ");
        if able.is_empty() {
            return Err(Failure::usage(self.id())
                .and("no node of the scenario can play this role")
                .and("choose another scenario with --config, or set its mechanism"));
        }
        match name {
            Some(wanted) => able
                .into_iter()
                .find(|node| name_of(node) == wanted)
                .ok_or_else(|| {
                    Failure::usage("--node").and(format!(
                        "`{wanted}` cannot be a {}; nodes that can: {names}",
                        self.id()
                    ))
                }),
            None => match able.as_slice() {
                [only] => Ok(*only),
                _ => Err(Failure::usage(self.id())
                    .and(format!("several nodes can play this role: {names}"))
                    .and("choose one with --node")),
            },
        }
    }
}

/// True if `node` sends packets that belong to no flow of its own.
pub fn injects(simulation: &Simulation, node: NodeId) -> bool {
    simulation.injections.iter().any(|one| one.node == node)
}

/// Enabled features of the drafts. All are off by default, as the drafts require.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Enabled {
    /// Fast CNPs are sent and obeyed.
    pub fast_cnp: bool,
    /// Proxy nodes are notified, and translate.
    pub proxy: bool,
    /// Ingress PEs are notified, and translate.
    pub wan_fcn: bool,
}

impl Enabled {
    /// Disables features of `node` that are not enabled; returns the features that the scenario had
    /// enabled, each with its option.
    pub fn restrict(self, node: &mut Node) -> Vec<(&'static str, &'static str)> {
        let mut off = Vec::new();
        let mut keep = |on: &mut bool, enabled: bool, what| {
            if *on && !enabled {
                *on = false;
                off.push(what);
            }
        };
        let fast_cnp = ("Fast CNP", "--enable-fast-cnp");
        let proxy = ("notification to a proxy", "--enable-proxy");
        let wan_fcn = ("FCN in the WAN", "--enable-wan-fcn");
        match &mut node.kind {
            NodeKind::Host(host) => {
                keep(&mut host.reaction.fast_cnp, self.fast_cnp, fast_cnp);
                if let Some(point) = &mut host.notification {
                    keep(&mut point.fast_cnp, self.fast_cnp, fast_cnp);
                }
            }
            NodeKind::Switch(switch) => {
                keep(&mut switch.congestion.fast_cnp, self.fast_cnp, fast_cnp);
                keep(&mut switch.congestion.proxy, self.proxy, proxy);
                keep(&mut switch.congestion.wan_fcn, self.wan_fcn, wan_fcn);
                if let Some(proxying) = &mut switch.proxy {
                    keep(&mut proxying.config.enabled, self.proxy, proxy);
                }
                if let Some(edge) = &mut switch.edge {
                    keep(&mut edge.config.enabled, self.wan_fcn, wan_fcn);
                }
            }
        }
        off.dedup();
        off
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Play, Source, load};

    fn simulation_of(name: &str) -> Simulation {
        match load(&Source::Builtin(name.to_owned()), &[]).unwrap().play {
            Play::Simulation(simulation) => *simulation,
            Play::Gallery(_) | Play::Stress(_) => panic!("{name} is not a simulation"),
        }
    }

    #[test]
    fn role_finds_its_node_or_lists_candidates() {
        let simulation = simulation_of("proxy");
        let find = |role: Role, name| role.node(&simulation, name);
        let name = |role, name| simulation.nodes[find(role, name).unwrap()].name.clone();
        assert_eq!(name(Role::Proxy, None), "leaf1");
        assert_eq!(name(Role::Receiver, None), "r1");
        assert_eq!(name(Role::CongestionPoint, Some("leaf2")), "leaf2");
        let error = |role, name| find(role, name).unwrap_err().to_string();
        let several = error(Role::Sender, None);
        assert!(several.contains("s1, s2") && several.contains("--node"));
        assert!(error(Role::Sender, Some("r1")).contains("`r1` cannot be a sender"));
        assert!(error(Role::IngressPe, None).contains("no node"));
        let attack = simulation_of("attack");
        let attacker = Role::Sender.node(&attack, Some("x1")).unwrap();
        assert!(injects(&attack, attacker));
    }

    #[test]
    fn features_off_by_default_are_disabled() {
        for (scenario, role, node, option) in [
            (
                "fast-cnp",
                Role::CongestionPoint,
                "spine1",
                "--enable-fast-cnp",
            ),
            ("fast-cnp", Role::Sender, "able1", "--enable-fast-cnp"),
            (
                "receiver-fast-cnp",
                Role::Receiver,
                "r1",
                "--enable-fast-cnp",
            ),
            ("proxy", Role::CongestionPoint, "leaf2", "--enable-proxy"),
            ("proxy", Role::Proxy, "leaf1", "--enable-proxy"),
            ("wan-fcn", Role::CongestionPoint, "p1", "--enable-wan-fcn"),
            ("wan-fcn", Role::IngressPe, "pe1", "--enable-wan-fcn"),
        ] {
            let simulation = simulation_of(scenario);
            let node = &simulation.nodes[role.node(&simulation, Some(node)).unwrap()];
            let off = Enabled::default().restrict(&mut node.clone());
            assert_eq!(off.len(), 1, "{scenario} {}: {off:?}", node.name);
            assert_eq!(off[0].1, option);
            let all = Enabled {
                fast_cnp: true,
                proxy: true,
                wan_fcn: true,
            };
            assert_eq!(all.restrict(&mut node.clone()), []);
        }
        let simulation = simulation_of("switch-cnp");
        for node in &simulation.nodes {
            assert_eq!(Enabled::default().restrict(&mut node.clone()), []);
        }
    }
}
