//! Effect of files and settings on nodes and flows.

use super::{FINE, built_in, simulation, source, with};
use crate::ioam::IoamTrace;
use crate::scenario::model::{Mechanism, NodeKind, ProxyKnownBy, Tunnel};
use crate::scenario::{Source, load};
use fcn_node::congestion_point::Ability;
use fcn_node::reaction_point::Control;

#[test]
fn settings_apply_to_their_key_and_the_last_one_wins() {
    let simulation = simulation(
        &source(FINE),
        &[
            "host.s.count=5",
            "defaults.dcqcn.g=0.5",
            "flow.f.message=2kB",
            "mechanism=cnp",
            "host.s.count=3",
            "seed=9",
        ],
    );
    assert_eq!(
        (
            simulation.flows.len(),
            simulation.seed,
            simulation.mechanism
        ),
        (3, 9, Mechanism::Cnp)
    );
    assert!(simulation.flows.iter().all(|flow| flow.message == 2_000));
    for node in &simulation.nodes {
        if let NodeKind::Host(host) = &node.kind {
            assert!(matches!(host.reaction.control, Control::Dcqcn(params) if params.g == 0.5));
        }
    }
}

#[test]
fn numbers_depend_on_the_seed_and_not_on_other_flows() {
    let few = simulation(&source(FINE), &[]);
    let again = simulation(&source(FINE), &[]);
    assert_eq!(format!("{few:?}"), format!("{again:?}"));
    let more = simulation(&source(FINE), &["host.s.count=4"]);
    for (a, b) in few.flows.iter().zip(&more.flows) {
        assert_eq!(
            (a.sender_qp, a.receiver_qp, a.first_psn, a.source_port),
            (b.sender_qp, b.receiver_qp, b.first_psn, b.source_port)
        );
    }
    let other = simulation(&source(FINE), &["seed=1"]);
    assert_ne!(few.flows[0].sender_qp, other.flows[0].sender_qp);
}

#[test]
fn fast_cnp_switches_are_configured_with_sender_abilities() {
    let simulation = built_in("fast-cnp", &[]);
    let NodeKind::Switch(switch) = &simulation.nodes.last().unwrap().kind else {
        panic!()
    };
    assert!(switch.congestion.fast_cnp && switch.congestion.ecn);
    let ability = |name: &str| {
        let node = simulation
            .nodes
            .iter()
            .find(|node| node.name == name)
            .unwrap();
        let NodeKind::Host(host) = &node.kind else {
            panic!()
        };
        let known = switch
            .congestion
            .senders
            .iter()
            .find(|(prefix, _)| prefix.contains(node.ipv6.into()))
            .unwrap()
            .1;
        (known, host.reaction.fast_cnp, host.answers_unknown_options)
    };
    assert_eq!(ability("able1"), (Ability::Able, true, false));
    assert_eq!(ability("maybe1"), (Ability::Unknown, true, false));
    assert_eq!(ability("plain1"), (Ability::Unable, false, true));
    let NodeKind::Host(host) = &simulation.nodes[0].kind else {
        panic!()
    };
    assert_eq!(host.reaction.access_list.len(), 3);
}

#[test]
fn mechanisms_enable_only_their_roles() {
    for mechanism in Mechanism::ALL {
        let simulation = built_in("wan-fcn", &[&format!("mechanism={}", mechanism.id())]);
        assert_eq!(simulation.mechanism, mechanism);
        for node in &simulation.nodes {
            match &node.kind {
                NodeKind::Host(host) => {
                    assert_eq!(
                        host.notification.is_none(),
                        matches!(mechanism, Mechanism::None | Mechanism::Pfc)
                    );
                    let telemetry = matches!(host.reaction.control, Control::Telemetry(_));
                    assert_eq!(telemetry, mechanism == Mechanism::FastCnpIoam);
                }
                NodeKind::Switch(switch) => {
                    let fast = matches!(mechanism, Mechanism::FastCnp | Mechanism::FastCnpIoam);
                    assert_eq!(switch.congestion.fast_cnp, fast);
                    let pauses = switch.ports.values().all(|port| port.pfc.is_some());
                    assert_eq!(pauses, mechanism == Mechanism::Pfc);
                    assert_eq!(
                        switch.proxy.is_some(),
                        mechanism == Mechanism::Proxy && node.name == "leaf1"
                    );
                    let in_wan = node.name == "p1" || node.name == "p2";
                    assert_eq!(
                        switch.congestion.wan_fcn,
                        mechanism == Mechanism::WanFcn && in_wan,
                        "{}",
                        node.name
                    );
                    assert_eq!(
                        switch.edge.as_ref().is_some_and(|edge| edge.config.enabled),
                        mechanism == Mechanism::WanFcn && node.name.starts_with("pe")
                    );
                }
            }
        }
    }
}

#[test]
fn wan_congestion_points_are_configured_with_the_ingress_pe() {
    let simulation = built_in("wan-fcn", &["tunnel=sr-mpls"]);
    let node = |name: &str| {
        simulation
            .nodes
            .iter()
            .find(|node| node.name == name)
            .unwrap()
    };
    let (NodeKind::Switch(p1), NodeKind::Switch(pe2)) = (&node("p1").kind, &node("pe2").kind)
    else {
        panic!()
    };
    assert_eq!(p1.congestion.ingress, Some(node("pe1").ipv6));
    assert_eq!(
        pe2.edge.as_ref().unwrap().tunnel,
        Tunnel::SrMpls {
            transport: 16_002,
            service: 24_002
        }
    );
    assert!(simulation.flows.iter().all(|flow| flow.rdma_cm));
}

#[test]
fn proxy_is_announced_as_configured() {
    for (word, by, ip) in [
        ("config", ProxyKnownBy::Configuration, 6),
        ("option", ProxyKnownBy::Option, 6),
        ("ospfv2", ProxyKnownBy::Ospf2, 4),
        ("bgp", ProxyKnownBy::Bgp, 6),
    ] {
        let simulation = built_in("proxy", &[&format!("known_by={word}")]);
        let proxies: Vec<_> = simulation
            .nodes
            .iter()
            .filter_map(|node| match &node.kind {
                NodeKind::Switch(switch) => switch.proxy.as_ref().map(|proxy| (node, proxy)),
                NodeKind::Host(_) => None,
            })
            .collect();
        let [(node, proxy)] = proxies.as_slice() else {
            panic!("{}", proxies.len())
        };
        assert_eq!((node.name.as_str(), proxy.known_by), ("leaf1", by));
        assert!(
            simulation
                .flows
                .iter()
                .all(|flow| flow.source.is_ipv6() == (ip == 6))
        );
        let option = (by == ProxyKnownBy::Option).then_some(node.ipv6);
        assert!(
            simulation
                .flows
                .iter()
                .all(|flow| flow.proxy_option == option)
        );
        for node in &simulation.nodes {
            if let NodeKind::Switch(switch) = &node.kind {
                assert_eq!(
                    switch.congestion.proxies.is_empty(),
                    by != ProxyKnownBy::Configuration
                );
            }
        }
    }
    let error = load(
        &Source::Builtin("proxy".to_owned()),
        &["known_by=option".to_owned(), "ip=4".to_owned()],
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "proxy.toml: --set ip=4: ip: `load1` is IPv4, but known_by = \"option\" announces IPv6 senders only; set ip = 6"
    );
}

#[test]
fn traces_have_room_for_the_path_by_default() {
    let text = with("\"fast-cnp\"", "\"fast-cnp-ioam\"", "");
    let flows = simulation(&source(&text), &[]).flows;
    assert_eq!(
        flows[0].ioam,
        Some(IoamTrace {
            incremental: false,
            nodes: 1,
            namespace: 0,
            counts: false,
        })
    );
    assert_eq!(simulation(&source(&text), &["ip=4"]).flows[0].ioam, None);
    assert_eq!(IoamTrace::option_len(12), 250);
    let explicit = built_in("fast-cnp-ioam", &["trace=incremental", "nodes=12"]);
    assert_eq!(
        explicit.flows[0].ioam,
        Some(IoamTrace {
            incremental: true,
            nodes: 12,
            namespace: 0,
            counts: false,
        })
    );
}

#[test]
fn borders_are_between_domains() {
    let text = FINE.replace("[[host]]\nname = \"r1\"\nattach = \"leaf1\"", "[[switch]]\nname = \"out1\"\ndomain = \"outside\"\n[[link]]\nfrom = \"leaf1\"\nto = \"out1\"\n[[host]]\nname = \"r1\"\nattach = \"out1\"\ndomain = \"outside\"");
    let simulation = simulation(&source(&text), &[]);
    for node in &simulation.nodes {
        if let NodeKind::Switch(switch) = &node.kind {
            assert!(switch.border_filter);
            assert_eq!(node.domain, u16::from(node.name == "out1"));
            assert_eq!(
                switch.congestion.senders.len(),
                if node.domain == 0 { 2 } else { 1 }
            );
        }
    }
    let leak = built_in("attack", &["border_filter=false"]);
    assert!(
        leak.nodes
            .iter()
            .all(|node| !matches!(&node.kind, NodeKind::Switch(switch) if switch.border_filter))
    );
}

#[test]
fn rings_of_switches_have_shortest_paths() {
    let text = r#"
about = "ring"
mechanism = "cnp"
duration = "1ms"
[[switch]]
name = "w"
count = 4
[[link]]
from = "w1"
to = ["w2", "w4"]
[[link]]
from = "w3"
to = ["w2", "w4"]
[[host]]
name = "a"
attach = "w1"
[[host]]
name = "b"
attach = "w2"
[[flow]]
from = "a"
to = "b"
"#;
    let simulation = simulation(&source(text), &[]);
    assert_eq!(simulation.flows[0].name, "a-b");
    assert_eq!(simulation.links.len(), 6);
    assert_eq!(simulation.vantage_points.len(), 1);
}

#[test]
fn overlapping_patterns_count_each_port_once() {
    let text = with("from = \"s*\"", "from = [\"s*\", \"s1*\", \"s2\"]", "");
    let text = format!("vantage = [\"*:*\"]\n{text}");
    let played = simulation(&source(&text), &[]);
    let senders: Vec<_> = played.flows.iter().map(|flow| flow.from).collect();
    assert_eq!(senders, [0, 1]);
    // Both ends of three links, in the order of nodes, then of peers.
    let ports: Vec<_> = played
        .vantage_points
        .iter()
        .map(|point| (point.node, point.link))
        .collect();
    assert_eq!(ports, [(0, 0), (1, 1), (2, 2), (3, 0), (3, 1), (3, 2)]);
}

#[test]
fn thresholds_scale_with_rate_and_do_not_depend_on_the_mechanism() {
    let kmins = |name: &str, sets: &[&str], switch: &str| -> Vec<u64> {
        let simulation = built_in(name, sets);
        let node = simulation.nodes.iter().find(|node| node.name == switch);
        let NodeKind::Switch(switch) = &node.unwrap().kind else {
            panic!()
        };
        switch
            .ports
            .values()
            .map(|port| port.marking.kmin)
            .collect()
    };
    // 8 hosts at 25 Gbit/s and the uplink at 100 Gbit/s: 8 us of each.
    let mut incast = kmins("incast", &[], "leaf1");
    incast.sort_unstable();
    assert_eq!(incast, [[25_000; 8].as_slice(), &[100_000]].concat());
    assert_eq!(
        kmins("incast", &["defaults.marking.kmin=7kB"], "leaf1"),
        [7_000; 9]
    );
    // Access links at 25 Gbit/s, the long-haul link at 5 Gbit/s: the same under every mechanism.
    for mechanism in ["wan-fcn", "cnp", "fast-cnp", "none"] {
        let set = format!("mechanism={mechanism}");
        assert_eq!(kmins("wan-fcn", &[&set], "p1"), [25_000, 5_000]);
    }
}
