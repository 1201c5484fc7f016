//! All built-in scenarios, in all variants: a decoder's results match the ground truth, and no
//! packet breaks a rule.

use fcn_gen::scenario::model::{Node, NodeKind, Simulation};
use fcn_gen::scenario::{self, Play, Source};
use fcn_gen::sim::outcome::Outcome;
use fcn_gen::sim::{Captured, Sink, play};
use fcn_gen::truth::NotificationTruth;
use fcn_gen::units::Ps;
use fcn_node::DataPacket;
use fcn_wire::finding::Findings;
use fcn_wire::frame::Upper;
use fcn_wire::ioam::Trace;
use fcn_wire::{End, Frame, IcrcCheck, Kind, LinkType, Message, Notification, Profile, Subject};
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::net::IpAddr;

/// Key of notifications.
type Counted = (usize, String, IpAddr, IpAddr, Option<u32>, Option<u32>, u64);

/// A flow at a vantage point: sender, receiver, receiver's QP.
type Flow = (usize, IpAddr, IpAddr, u32);

/// Counts of a decoder.
#[derive(Default)]
struct Decoder {
    last: u64,
    packets: BTreeMap<usize, (u64, u64)>,
    /// Packets, octets, CE.
    data: BTreeMap<Flow, (u64, u64, u64)>,
    /// Queue depths reported by the last node of Fast CNPs' traces.
    depths: Vec<u32>,
    notified: BTreeMap<Counted, u64>,
    levels: BTreeMap<(usize, u8), u64>,
    /// DSCPs of notifications.
    dscps: BTreeSet<u8>,
    /// UDP source ports of each flow, at all vantage points.
    ports: BTreeMap<(IpAddr, IpAddr, u32), BTreeSet<u16>>,
    routing: usize,
    pauses: usize,
    management: usize,
    broken: Vec<String>,
}

impl Sink for Decoder {
    fn take(&mut self, packet: Captured<'_>) -> Result<(), Box<dyn Error>> {
        let mut bytes = vec![0; packet.len];
        (packet.fill)(&mut bytes);
        self.read(packet.vantage_point, packet.at, &bytes);
        Ok(())
    }
}

impl Decoder {
    fn read(&mut self, point: usize, at: u64, bytes: &[u8]) {
        assert!(at >= self.last, "time goes back");
        self.last = at;
        let second = at / 1_000_000_000;
        let profile = Profile::DEFAULT;
        let frame = Frame::parse(bytes, bytes.len(), LinkType::Ethernet, &profile);
        assert_eq!(frame.end(), End::Complete, "{bytes:02x?}");
        let mut findings = Findings::new();
        frame.check(IcrcCheck::On, &mut findings);
        if matches!(
            frame.upper(),
            Upper::IsIs(..) | Upper::Ospf(..) | Upper::Bgp(..)
        ) {
            self.routing += 1;
        }
        self.broken
            .extend(findings.as_slice().iter().map(ToString::to_string));
        match frame.message() {
            Message::Pfc(_) => self.pauses += 1,
            Message::RdmaCm(..) => self.management += 1,
            _ => {}
        }
        let counts = self.packets.entry(point).or_default();
        counts.0 += 1;
        counts.1 += bytes.len() as u64;
        if let (Some(data), Some(ip)) = (DataPacket::from_frame(&frame), frame.ip()) {
            let key = (point, data.source, data.destination, data.dest_qp.get());
            let counts = self.data.entry(key).or_default();
            let ends = (data.source, data.destination, data.dest_qp.get());
            self.ports.entry(ends).or_default().insert(data.source_port);
            counts.0 += 1;
            counts.1 += bytes.len() as u64;
            counts.2 += u64::from(ip.ecn() == 3);
        }
        if let Some(trace) = told_trace(&frame) {
            let last = trace.nodes().next().and_then(Result::ok);
            self.depths.extend(last.and_then(|node| node.queue_depth()));
        }
        if let Some(notification) = Notification::from_frame(&frame) {
            let (qp, label) = match notification.subject {
                Subject::SenderQp(qp) | Subject::ReceiverQp { qp, .. } => (Some(qp.get()), None),
                Subject::FlowLabel(label) => (None, Some(label)),
                Subject::Flow { receiver_qp, .. } => (receiver_qp.map(fcn_wire::Qp::get), None),
            };
            let kind = notification.kind.id().to_owned();
            let key = (
                point,
                kind,
                notification.notifier,
                notification.destination,
                qp,
                label,
                second,
            );
            *self.notified.entry(key).or_default() += 1;
            self.dscps
                .extend(frame.ip().map(|ip| ip.traffic_class >> 2));
            if let Some(level) = notification.level {
                *self.levels.entry((point, level)).or_default() += 1;
            }
        }
    }

    fn agrees(&self, outcome: &Outcome, what: &str) {
        let truth = &outcome.truth;
        for (index, point) in truth.vantage_points.iter().enumerate() {
            let counted = self.packets.get(&index).copied().unwrap_or_default();
            assert_eq!(
                counted,
                (point.packets, point.octets),
                "{what}: {}",
                point.name
            );
        }
        let mut data = BTreeMap::new();
        for flow in &truth.flows {
            for seen in &flow.seen {
                let key = (
                    seen.vantage_point,
                    flow.sender,
                    flow.receiver,
                    flow.receiver_qp,
                );
                data.insert(key, (seen.packets, seen.octets, seen.ce));
                assert_eq!(seen.packets_by_second.values().sum::<u64>(), seen.packets);
            }
        }
        assert_eq!(self.data, data, "{what}: data packets");
        let mut notified: BTreeMap<Counted, u64> = BTreeMap::new();
        let mut levels = BTreeMap::new();
        for entry in &truth.notifications {
            for (key, n) in by_second(entry) {
                *notified.entry(key).or_default() += n;
            }
            for (level, n) in &entry.levels {
                *levels.entry((entry.vantage_point, *level)).or_default() += n;
            }
        }
        assert_eq!(self.notified, notified, "{what}: notifications");
        assert_eq!(self.levels, levels, "{what}: levels");
    }
}

/// Returns the trace in a Fast CNP with option 2.
fn told_trace<'a>(frame: &Frame<'a>) -> Option<Trace<'a>> {
    match frame.message() {
        Message::FastCnp(message) => message.parsed.ok()?.trace(),
        _ => None,
    }
}

fn by_second(entry: &NotificationTruth) -> impl Iterator<Item = (Counted, u64)> + '_ {
    assert_eq!(entry.by_second.values().sum::<u64>(), entry.total);
    entry.by_second.iter().map(|(second, n)| {
        let key = (
            entry.vantage_point,
            entry.kind.clone(),
            entry.notifier,
            entry.destination,
            entry.qp,
            entry.flow_label,
            *second,
        );
        (key, *n)
    })
}

fn simulation(name: &str, sets: &[&str]) -> Box<Simulation> {
    let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
    let loaded = scenario::load(&Source::Builtin(name.to_owned()), &sets);
    match loaded.map(|scenario| scenario.play) {
        Ok(Play::Simulation(simulation)) => simulation,
        Ok(Play::Gallery(_) | Play::Stress(_)) => panic!("{name} is not a simulation"),
        Err(error) => panic!("{name} {sets:?}: {error}"),
    }
}

/// Maximum duration of a scenario.
const LONGEST: Ps = Ps::from_nanos(4_000_000);

fn played(name: &str, sets: &[&str]) -> (Outcome, Decoder) {
    let what = format!("{name} {sets:?}");
    let mut simulation = simulation(name, sets);
    simulation.snap_len = 0;
    // All kinds of events have occurred by then.
    simulation.duration = simulation.duration.min(LONGEST);
    let mut decoder = Decoder::default();
    let outcome = play(&simulation, name, Some(&mut decoder), &mut |_| true)
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    decoder.agrees(&outcome, &what);
    assert!(decoder.broken.is_empty(), "{what}: {:#?}", decoder.broken);
    (outcome, decoder)
}

/// Returns the minimum Kmin of a congestion point.
fn least_kmin(simulation: &Simulation) -> u64 {
    let kmin = |node: &Node| match &node.kind {
        NodeKind::Switch(switch) => switch.ports.values().map(|port| port.marking.kmin).min(),
        NodeKind::Host(_) => None,
    };
    simulation.nodes.iter().filter_map(kmin).min().unwrap()
}

fn kinds(outcome: &Outcome) -> Vec<Kind> {
    outcome.metrics.notifications.keys().copied().collect()
}

#[test]
fn receiver_cnp() {
    for ip in ["ip=6", "ip=4"] {
        let (outcome, _) = played("receiver-cnp", &[ip]);
        assert_eq!(kinds(&outcome), [Kind::Cnp]);
        assert!(outcome.metrics.marked > 0);
    }
}

#[test]
fn fast_cnp_depends_on_the_configured_sender_ability() {
    let (outcome, _) = played("fast-cnp", &[]);
    assert_eq!(kinds(&outcome), [Kind::Cnp, Kind::FastCnp1]);
    let slowed: Vec<Vec<&str>> = outcome
        .truth
        .flows
        .iter()
        .map(|flow| flow.slowed_by.keys().map(String::as_str).collect())
        .collect();
    assert!(
        slowed.contains(&vec!["fast_cnp_1"]),
        "able, and known to be: {slowed:?}"
    );
    assert!(
        slowed.contains(&vec!["cnp", "fast_cnp_1"]),
        "able, not known to be: {slowed:?}"
    );
    assert!(slowed.contains(&vec!["cnp"]), "unable: {slowed:?}");
}

#[test]
fn fixed_rate_sender_is_notified_but_not_slowed() {
    for (control, stubborn_obeys) in [("stubborn=fixed", false), ("stubborn=dcqcn", true)] {
        let (outcome, _) = played("stubborn-sender", &[control, "duration=2ms"]);
        for flow in &outcome.truth.flows {
            let obeys = flow.name != "stubborn" || stubborn_obeys;
            assert_eq!(flow.obeys, obeys, "{control} {}", flow.name);
            assert_eq!(flow.slowed_by.contains_key("fast_cnp_1"), obeys);
            assert_eq!(flow.first_slowed_ns.is_some(), obeys);
            let told = |entry: &&NotificationTruth| entry.flow.as_ref() == Some(&flow.name);
            assert!(outcome.truth.notifications.iter().any(|entry| told(&entry)));
        }
    }
}

#[test]
fn fast_cnps_of_the_receiver() {
    for (trace, kind) in [
        ("trace=none", Kind::FastCnp1),
        ("trace=preallocated", Kind::FastCnp2),
        ("trace=incremental", Kind::FastCnp2),
    ] {
        let (outcome, _) = played("receiver-fast-cnp", &[trace]);
        assert_eq!(kinds(&outcome), [kind], "{trace}");
        for entry in &outcome.truth.notifications {
            let flow = &outcome.truth.flows[0];
            assert_eq!(entry.notifier, flow.receiver, "its own address");
            assert_eq!(entry.qp_side.as_deref(), Some("receiver"));
        }
        let slowed = |name: &str| {
            outcome
                .truth
                .flows
                .iter()
                .map(|f| f.slowed_by.get(name))
                .collect::<Vec<_>>()
        };
        assert!(slowed(kind.id()).iter().all(Option::is_some), "{trace}");
    }
    let (outcome, _) = played("receiver-fast-cnp", &["form=cnp"]);
    assert_eq!(kinds(&outcome), [Kind::Cnp]);
}

#[test]
fn detours_before_slowing_down() {
    let (with, decoder) = played("detour", &[]);
    assert_eq!(kinds(&with), [Kind::FastCnp1]);
    let detours: Vec<u64> = with.truth.flows.iter().map(|f| f.detours).collect();
    assert!(detours.iter().any(|n| *n > 0), "{detours:?}");
    let ports: usize = decoder.ports.values().map(BTreeSet::len).sum();
    let flows = decoder.ports.len();
    assert!(ports > flows, "{ports} ports of {flows} flows");
    let (without, decoder) = played("detour", &["detours=0"]);
    assert!(without.truth.flows.iter().all(|f| f.detours == 0));
    assert!(decoder.ports.values().all(|ports| ports.len() == 1));
    let delivered =
        |outcome: &Outcome| -> u64 { outcome.truth.flows.iter().map(|f| f.octets_delivered).sum() };
    assert!(
        delivered(&with) > delivered(&without),
        "the other spine has room"
    );
}

#[test]
fn qps_exchanged_out_of_band_are_inferred_or_configured() {
    for (name, kind, sets) in [
        (
            "proxy",
            Kind::ProxyCn,
            &["rdma_cm=false", "known_by=config"][..],
        ),
        (
            "proxy",
            Kind::ProxyCn,
            &["rdma_cm=false", "known_by=config", "qps=[\"load*\"]"],
        ),
        ("wan-fcn", Kind::WanFcn, &["rdma_cm=false"]),
        (
            "wan-fcn",
            Kind::WanFcn,
            &["rdma_cm=false", "switch.pe1.qps=[\"load1\"]"],
        ),
    ] {
        let (outcome, decoder) = played(name, sets);
        assert_eq!(decoder.management, 0, "{name} {sets:?}");
        assert_eq!(kinds(&outcome), [Kind::Cnp, kind], "{name} {sets:?}");
        let flows = &outcome.truth.flows;
        assert!(
            flows.iter().all(|f| f.slowed_by.contains_key("cnp")),
            "{name} {sets:?}"
        );
    }
}

#[test]
fn wan_fcn_without_level() {
    let simulation = simulation("wan-fcn", &["level=false"]);
    let outcome = play(&simulation, "wan-fcn", None, &mut |_| true).unwrap();
    assert!(kinds(&outcome).contains(&Kind::WanFcn));
    let entries = outcome.truth.notifications;
    assert!(entries.iter().all(|entry| entry.levels.is_empty()));
}

#[test]
fn other_transports_are_notified_to_the_proxy_only() {
    let base = scenario::builtin::text("proxy").unwrap();
    let text = format!(
        r#"{base}
[[inject]]
from = "s1"
what = "tcp"
flow = "load2"
start = "100us"
count = 200
interval = "5us"
"#
    );
    for ip in ["ip=6", "ip=4"] {
        let source = Source::Text {
            name: "t.toml".to_owned(),
            text: text.clone(),
        };
        let sets = ["known_by=config", "duration=2ms", "snap_len=0", ip].map(str::to_owned);
        let loaded = scenario::load(&source, &sets).unwrap_or_else(|error| panic!("{error}"));
        let Play::Simulation(simulation) = loaded.play else {
            panic!("no simulation");
        };
        let mut decoder = Decoder::default();
        let outcome = play(&simulation, "t", Some(&mut decoder), &mut |_| true).unwrap();
        decoder.agrees(&outcome, ip);
        assert!(decoder.broken.is_empty(), "{ip}: {:#?}", decoder.broken);
        let entries = &outcome.truth.notifications;
        let foreign: u64 = entries
            .iter()
            .filter(|entry| entry.kind == "proxy_cn" && entry.qp.is_none())
            .map(|entry| entry.total)
            .sum();
        assert!(foreign > 0, "{ip}: the proxy is notified");
        // Every CNP is about a QP of a flow: none is invented for traffic without QPs.
        let cnps = entries.iter().filter(|entry| entry.kind == "cnp");
        let flows = &outcome.truth.flows;
        assert!(
            cnps.clone().count() > 0
                && cnps
                    .clone()
                    .all(|entry| flows.iter().any(|f| entry.qp == Some(f.sender_qp)))
        );
    }
}

#[test]
fn notifications_have_the_dscp_of_the_scenario() {
    for (name, ip) in [
        ("receiver-cnp", "ip=4"),
        ("receiver-cnp", "ip=6"),
        ("fast-cnp-ioam", "ip=6"),
        ("proxy", "ip=4"),
        ("wan-fcn", "ip=6"),
    ] {
        for (sets, dscp) in [(&[ip, "cnp_dscp=46"][..], 46), (&[ip], 48)] {
            let (_, decoder) = played(name, sets);
            assert_eq!(decoder.dscps, [dscp].into(), "{name} {ip}");
        }
    }
}

#[test]
fn levels_of_proxy_notifications_begin_at_0() {
    let sets = ["known_by=config", "switch.leaf2.marking.pmax=1"];
    let (_, decoder) = played("proxy", &sets);
    let levels: BTreeSet<u8> = decoder.levels.keys().map(|(_, level)| *level).collect();
    assert!(levels.contains(&0) && levels.contains(&7), "{levels:?}");
}

/// Plays a congested switch outside the domain of proxy and ingress PE, behind a border.
fn across_the_border(mechanism: &str, more: &str) -> Outcome {
    let (near, far) = match mechanism {
        "wan-fcn" => ("edge = \"srv6\"", "edge = \"srv6\""),
        _ => ("proxy = true", ""),
    };
    let text = format!(
        r#"
about = "two domains"
mechanism = "{mechanism}"
duration = "2ms"
host = [
  {{ name = "s", count = 2, attach = "near", rate = "10G" }},
  {{ name = "r", attach = "far", rate = "10G", domain = "outside" }},
]
switch = [
  {{ name = "near", {near} }},
  {{ name = "border", {more} }},
  {{ name = "out", domain = "outside", border_filter = false }},
  {{ name = "far", domain = "outside", {far} }},
]
link = [
  {{ from = "near", to = "border", rate = "40G" }},
  {{ from = "border", to = "out", rate = "40G" }},
  {{ from = "out", to = "far", rate = "5G" }},
]
flow = [{{ from = "s*", to = "r" }}]
"#
    );
    let source = Source::Text {
        name: "t.toml".to_owned(),
        text,
    };
    let loaded = scenario::load(&source, &[]).unwrap_or_else(|error| panic!("{error}"));
    let Play::Simulation(simulation) = loaded.play else {
        panic!("no simulation");
    };
    play(&simulation, "t", None, &mut |_| true).unwrap()
}

#[test]
fn border_stops_all_kinds_and_access_lists_apply() {
    for (mechanism, kind) in [
        ("fast-cnp", Kind::FastCnp1),
        ("proxy", Kind::ProxyCn),
        ("wan-fcn", Kind::WanFcn),
    ] {
        let sent = |outcome: &Outcome| outcome.metrics.notifications.get(&kind).copied();
        let cnps = |outcome: &Outcome| outcome.metrics.notifications.get(&Kind::Cnp).copied();
        let stopped = |outcome: &Outcome| -> u64 {
            let switches = outcome.truth.switches.iter();
            switches.map(|s| s.stopped_at_border).sum()
        };
        let held = across_the_border(mechanism, "");
        assert!(sent(&held).is_some(), "{mechanism}");
        assert_eq!(Some(stopped(&held)), sent(&held), "{mechanism}");
        let open = across_the_border(mechanism, "border_filter = false");
        assert!(sent(&open).is_some() && stopped(&open) == 0, "{mechanism}");
        if kind != Kind::FastCnp1 {
            assert!(
                cnps(&open).is_some() && cnps(&held).is_none(),
                "{mechanism}"
            );
        }
    }
}

#[test]
fn access_lists_and_limits_apply_at_proxies_and_ingress_pes() {
    for (name, node, congested, kind) in [
        ("proxy", "leaf1", "leaf2", Kind::ProxyCn),
        ("wan-fcn", "pe1", "p1", Kind::WanFcn),
    ] {
        let count = |sets: &[String]| {
            let mut all = vec![if name == "proxy" {
                "known_by=config"
            } else {
                "tunnel=srv6"
            }];
            all.extend(sets.iter().map(String::as_str));
            let (outcome, _) = played(name, &all);
            let sent = |kind| outcome.metrics.notifications.get(&kind).copied();
            (sent(kind).unwrap_or(0), sent(Kind::Cnp).unwrap_or(0))
        };
        let (sent, cnps) = count(&[]);
        assert!(sent > 0 && cnps > 0, "{name}");
        let (sent, cnps) = count(&[format!("switch.{node}.access_list=[\"2001:db8:9::/48\"]")]);
        assert!(
            sent > 0 && cnps == 0,
            "{name}: a notifier not on the access list was accepted"
        );
        let (sent, cnps) = count(&[
            format!("switch.{node}.limits.burst=1"),
            format!("switch.{node}.limits.per_second=1"),
        ]);
        assert!(sent > 1 && cnps == 1, "{name}: {sent} sent, {cnps} CNPs");
        let (sent, _) = count(&[format!("switch.{congested}.tells=[\"2001:db8:9::/48\"]")]);
        assert_eq!(sent, 0, "{name}: a sender outside of `tells` was notified");
    }
}

#[test]
fn fast_cnp_with_both_traces() {
    for trace in ["trace=preallocated", "trace=incremental"] {
        let (outcome, decoder) = played("fast-cnp-ioam", &[trace]);
        assert_eq!(kinds(&outcome), [Kind::FastCnp2], "{trace}");
        assert!(
            outcome
                .truth
                .flows
                .iter()
                .any(|f| f.slowed_by.contains_key("fast_cnp_2"))
        );
        let kmin = least_kmin(&simulation("fast-cnp-ioam", &[trace]));
        assert!(!decoder.depths.is_empty());
        assert!(
            decoder.depths.iter().all(|depth| u64::from(*depth) > kmin),
            "the node passed last is the congested one: {:?}, Kmin {kmin}",
            decoder.depths
        );
    }
}

#[test]
fn proxies_announced_in_every_way() {
    let by = ["config", "option", "isis", "ospfv2", "ospfv3", "bgp"].map(|by| (by, "proxy"));
    let other = ["isis", "ospfv2", "ospfv3"].map(|by| (by, "sender"));
    for (known, at) in by.into_iter().chain(other) {
        let ip = if known == "ospfv2" { "ip=4" } else { "ip=6" };
        let sets = [&format!("known_by={known}"), ip, &format!("pnc_at={at}")];
        let (outcome, decoder) = played("proxy", &sets);
        assert_eq!(kinds(&outcome), [Kind::Cnp, Kind::ProxyCn], "{known}");
        assert!(
            outcome
                .truth
                .flows
                .iter()
                .any(|f| f.slowed_by.contains_key("cnp")),
            "{known}"
        );
        assert_eq!(
            decoder.routing > 0,
            !["config", "option"].contains(&known),
            "{known}"
        );
        assert!(
            decoder.management > 0,
            "{known}: the proxy learns from RDMA CM"
        );
    }
}

#[test]
fn wan_in_every_tunnel_and_with_both_families_inside() {
    for tunnel in ["tunnel=srv6", "tunnel=vxlan", "tunnel=sr-mpls"] {
        for ip in ["ip=6", "ip=4"] {
            let (outcome, decoder) = played("wan-fcn", &[tunnel, ip]);
            assert_eq!(kinds(&outcome), [Kind::Cnp, Kind::WanFcn], "{tunnel} {ip}");
            assert!(
                outcome
                    .truth
                    .flows
                    .iter()
                    .all(|f| f.slowed_by.contains_key("cnp"))
            );
            assert!(decoder.management > 0);
        }
    }
}

#[test]
fn pauses_propagate_upstream() {
    let (outcome, decoder) = played("pfc", &[]);
    assert!(outcome.metrics.notifications.is_empty());
    assert!(decoder.pauses > 0);
    let pausing = outcome.truth.switches.iter().filter(|s| s.pauses > 0);
    assert!(pausing.count() > 1, "one switch after the other");
    assert_eq!(outcome.metrics.lost, 0, "that is what it is for");
}

#[test]
fn every_mechanism_in_applicable_scenarios() {
    for name in ["incast", "victim-flow", "all-to-all"] {
        for mechanism in ["none", "pfc", "cnp", "fast-cnp", "fast-cnp-ioam", "proxy"] {
            let (outcome, _) = played(name, &[&format!("mechanism={mechanism}")]);
            let metrics = &outcome.metrics;
            assert_eq!(metrics.lost > 0, mechanism == "none", "{name} {mechanism}");
            let notifies = !["none", "pfc"].contains(&mechanism);
            assert_eq!(metrics.first_cut.is_some(), notifies, "{name} {mechanism}");
        }
    }
}

#[test]
fn attacks_end_at_a_filtering_border() {
    let (held, _) = played("attack", &[]);
    let stopped: u64 = held
        .truth
        .switches
        .iter()
        .map(|s| s.stopped_at_border)
        .sum();
    assert!(stopped > 0);
    let switches = &held.truth.switches;
    assert!(
        switches.iter().any(|s| s.held_back > 0),
        "the storm meets the rate limit"
    );
    let (open, _) = played("attack", &["border_filter=false"]);
    let fast = |outcome: &Outcome| -> u64 {
        let slowed = outcome
            .truth
            .flows
            .iter()
            .map(|f| f.slowed_by.get("fast_cnp_1"));
        slowed.map(|n| n.copied().unwrap_or(0)).sum()
    };
    assert!(
        fast(&open) > fast(&held),
        "those that claim to be a switch's are believed"
    );
}
