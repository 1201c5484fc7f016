//! The simulation as a whole: equal seeds give equal bytes; no packet is lost without being
//! counted; every packet is well-formed.

mod dcqcn_model;

use super::outcome::{Half, Outcome};
use super::{Captured, Sink, play};
use crate::scenario::model::{
    Flow, Host, Link, MarkingPoint, Mechanism, Node, NodeKind, Simulation, Switch, Thresholds,
    VantagePoint,
};
use crate::units::{Ps, Rate};
use fcn_node::Time;
use fcn_node::reaction_point::{self, Ack, Control, Controller, Custom, Notice, dcqcn};
use fcn_node::{congestion_point, notification_point};
use fcn_wire::finding::Findings;
use fcn_wire::icrc::Verdict;
use fcn_wire::{End, Frame, IcrcCheck, Kind, LinkType, Notification, Profile, Qp};
use std::collections::BTreeMap;
use std::error::Error;
use std::net::Ipv6Addr;

/// The captured packets.
#[derive(Default)]
struct Recording(Vec<(usize, u64, Vec<u8>)>);

impl Sink for Recording {
    fn take(&mut self, packet: Captured<'_>) -> Result<(), Box<dyn Error>> {
        let mut bytes = vec![0xEE; packet.len];
        (packet.fill)(&mut bytes);
        assert_eq!(packet.len, packet.wire_len as usize, "nothing is cut here");
        self.0.push((packet.vantage_point, packet.at, bytes));
        Ok(())
    }
}

const G100: u64 = 100_000_000_000;

fn host(name: &str, number: u16) -> Node {
    Node {
        name: name.into(),
        ipv6: Ipv6Addr::new(0x2001, 0xDB8, 1, 0, 0, 0, 0, number),
        ipv4: [198, 18, 0, number as u8].into(),
        domain: 0,
        kind: NodeKind::Host(Box::new(Host {
            reaction: reaction_point::Config {
                control: Control::Dcqcn(dcqcn::Params::default()),
                ..reaction_point::Config::default()
            },
            notification: Some(notification_point::Config::default()),
            answers_unknown_options: true,
            notification_delay: Ps::from_nanos(1_000),
            reaction_delay: Ps(0),
        })),
    }
}

fn switch(name: &str, number: u16) -> Node {
    let ipv6 = Ipv6Addr::new(0x2001, 0xDB8, 0xFFFF, 0, 0, 0, 0, number);
    Node {
        name: name.into(),
        ipv6,
        ipv4: [198, 19, 0, 1].into(),
        domain: 0,
        kind: NodeKind::Switch(Box::new(Switch {
            congestion: congestion_point::Config::new(ipv6),
            ports: BTreeMap::new(),
            notification_delay: Ps::from_nanos(1_000),
            imitates: false,
            ioam_node: None,
            proxy: None,
            edge: None,
            border_filter: true,
        })),
    }
}

/// Builds a network of `senders` hosts and a receiver at one switch.
fn star(senders: usize, mechanism: Mechanism) -> Simulation {
    let mut nodes = vec![switch("s", 1), host("r", 1)];
    let rate = Rate::new(G100).unwrap();
    let delay = Ps::from_nanos(500);
    let mut links = vec![Link {
        a: 0,
        b: 1,
        rate,
        delay,
    }];
    let mut flows = Vec::new();
    for n in 0..senders {
        nodes.push(host(&format!("h{n}"), n as u16 + 2));
        let node = nodes.len() - 1;
        links.push(Link {
            a: node,
            b: 0,
            rate,
            delay,
        });
        flows.push(Flow {
            name: format!("f{n}"),
            from: node,
            source: nodes[node].ipv6.into(),
            destination: nodes[1].ipv6.into(),
            sender_qp: Qp::truncate(0x100 + n as u32),
            receiver_qp: Qp::truncate(0x200 + n as u32),
            source_port: 49_152 + n as u16,
            messages: None,
            message: 1 << 16,
            window: 512,
            ..super::connection::tests::flow()
        });
    }
    let mut simulation = Simulation {
        seed: 7,
        duration: Ps::from_nanos(1_000_000),
        warm_up: Ps(0),
        compare_for: None,
        mechanism,
        profile: Profile::DEFAULT,
        epoch: 1_767_225_600_000_000_000,
        snap_len: 0,
        cnp_dscp: 48,
        nodes,
        links,
        flows,
        vantage_points: vec![
            VantagePoint { node: 0, link: 0 },
            VantagePoint { node: 2, link: 1 },
        ],
        faults: Vec::new(),
        injections: Vec::new(),
        advertise_interval: Ps::SECOND,
    };
    configure(&mut simulation);
    simulation
}

fn configure(simulation: &mut Simulation) {
    let mechanism = simulation.mechanism;
    let fast = matches!(mechanism, Mechanism::FastCnp | Mechanism::FastCnpIoam);
    let all = fcn_wire::pnc::Prefix::new(Ipv6Addr::UNSPECIFIED.into(), 0).unwrap();
    for node in &mut simulation.nodes {
        match &mut node.kind {
            NodeKind::Host(host) => {
                host.reaction.fast_cnp = fast;
                host.reaction.access_list = vec![all];
            }
            NodeKind::Switch(switch) => {
                switch.congestion.fast_cnp = fast;
                switch.congestion.ecn = mechanism != Mechanism::None;
                if fast {
                    switch.congestion.senders = vec![(all, congestion_point::Ability::Able)];
                }
            }
        }
    }
}

/// Sets the point at which the switch of [`star`] marks packets to the receiver.
fn mark_at(simulation: &mut Simulation, marks_at: MarkingPoint) {
    if let NodeKind::Switch(switch) = &mut simulation.nodes[0].kind {
        let thresholds = Thresholds {
            marks_at,
            ..Thresholds::default()
        };
        switch.ports.insert(0, thresholds);
    }
}

fn run(simulation: &Simulation) -> (Outcome, Recording) {
    let mut recording = Recording::default();
    let outcome = play(simulation, "test", Some(&mut recording), &mut |_| true).unwrap();
    (outcome, recording)
}

#[test]
fn equal_seeds_give_equal_bytes() {
    let simulation = star(4, Mechanism::Cnp);
    let (one, recording) = run(&simulation);
    let (again, copy) = run(&simulation);
    assert_eq!(one.truth, again.truth);
    assert!(recording.0 == copy.0);
    assert!(recording.0.len() > 1_000);
    let other = Simulation {
        seed: 8,
        ..simulation
    };
    assert!(run(&other).1.0 != recording.0);
}

#[test]
fn vantage_points_do_not_affect_the_result() {
    let simulation = star(4, Mechanism::FastCnp);
    let (both, recording) = run(&simulation);
    let mut one = simulation.clone();
    one.vantage_points.remove(0);
    let (single, narrow) = run(&one);
    assert_eq!(both.metrics, single.metrics);
    let second: Vec<_> = recording
        .0
        .iter()
        .filter(|p| p.0 == 1)
        .map(|p| (p.1, &p.2))
        .collect();
    let alone: Vec<_> = narrow.0.iter().map(|p| (p.1, &p.2)).collect();
    assert!(second == alone);
    let blind = play(&simulation, "test", None, &mut |_| true).unwrap();
    assert_eq!(
        blind.truth, both.truth,
        "not even whether anybody writes it down"
    );
}

/// Checks that every packet is complete, breaks no rule and has the right ICRC, that time never
/// goes back, and that the truth agrees.
fn well_formed(outcome: &Outcome, recording: &Recording) {
    let profile = Profile::DEFAULT;
    let mut last = 0;
    let mut notified: BTreeMap<(usize, String), u64> = BTreeMap::new();
    let mut seen = vec![(0, 0); outcome.truth.vantage_points.len()];
    for (point, at, bytes) in &recording.0 {
        assert!(*at >= last, "time goes back");
        last = *at;
        let frame = Frame::parse(bytes, bytes.len(), LinkType::Ethernet, &profile);
        assert_eq!(frame.end(), End::Complete, "{bytes:02x?}");
        let mut findings = Findings::new();
        frame.check(IcrcCheck::On, &mut findings);
        assert!(
            findings.is_empty(),
            "{:?} {bytes:02x?}",
            findings.as_slice()
        );
        if frame.is_roce() {
            assert!(
                matches!(frame.verify_icrc(), Verdict::Good(_)),
                "{bytes:02x?}"
            );
        }
        if let Some(notification) = Notification::from_frame(&frame) {
            *notified
                .entry((*point, notification.kind.id().to_owned()))
                .or_default() += 1;
        }
        seen[*point].0 += 1;
        seen[*point].1 += bytes.len() as u64;
    }
    let mut truth: BTreeMap<(usize, String), u64> = BTreeMap::new();
    for n in &outcome.truth.notifications {
        *truth.entry((n.vantage_point, n.kind.clone())).or_default() += n.total;
        assert_eq!(n.by_second.values().sum::<u64>(), n.total);
    }
    assert_eq!(notified, truth);
    let counted: Vec<_> = outcome
        .truth
        .vantage_points
        .iter()
        .map(|v| (v.packets, v.octets))
        .collect();
    assert_eq!(seen, counted);
}

#[test]
fn receiver_cnps_slow_senders_down() {
    for ipv4 in [false, true] {
        let mut simulation = star(4, Mechanism::Cnp);
        if ipv4 {
            for flow in &mut simulation.flows {
                flow.source = simulation.nodes[flow.from].ipv4.into();
                flow.destination = simulation.nodes[flow.to].ipv4.into();
            }
        }
        let (outcome, recording) = run(&simulation);
        well_formed(&outcome, &recording);
        let metrics = &outcome.metrics;
        assert!(metrics.marked > 0 && metrics.notifications[&Kind::Cnp] > 0);
        assert_eq!(metrics.notifications.len(), 1);
        assert!(metrics.reaction_time().unwrap() > Ps::from_nanos(1_000));
        assert_eq!(metrics.lost, 0);
        // A burst at line rate is cut deeply, and R_AI takes many milliseconds to restore it.
        assert!(
            metrics.goodput > 2e10 && metrics.goodput < 1e11,
            "{}",
            metrics.goodput
        );
        assert!(metrics.fairness > 0.9);
        for flow in &outcome.truth.flows {
            assert!(flow.slowed_by["cnp"] > 0);
            assert!(flow.rate.last().unwrap().1 < G100);
        }
    }
}

#[test]
fn fast_cnps_replace_marks_for_capable_senders() {
    let (outcome, recording) = run(&star(4, Mechanism::FastCnp));
    well_formed(&outcome, &recording);
    assert_eq!(
        outcome.metrics.marked, 0,
        "MUST NOT mark for an able sender"
    );
    assert!(outcome.metrics.notifications[&Kind::FastCnp1] > 0);
    assert_eq!(outcome.metrics.notifications.len(), 1);
    let classic = run(&star(4, Mechanism::Cnp)).0;
    assert!(outcome.metrics.reaction_time() < classic.metrics.reaction_time());
}

#[test]
fn queue_grows_without_congestion_control() {
    let (outcome, recording) = run(&star(4, Mechanism::None));
    well_formed(&outcome, &recording);
    assert!(outcome.metrics.notifications.is_empty());
    let controlled = run(&star(4, Mechanism::Cnp)).0;
    assert!(outcome.metrics.peak_queue > controlled.metrics.peak_queue);
}

#[test]
fn what_is_sent_arrives_or_is_counted_as_lost() {
    let mut simulation = star(3, Mechanism::None);
    for flow in &mut simulation.flows {
        flow.messages = Some(3);
        flow.rdma_cm = true;
        flow.retransmit_timeout = Ps::from_nanos(50_000);
    }
    simulation.duration = Ps::from_nanos(100_000_000);
    let (outcome, recording) = run(&simulation);
    well_formed(&outcome, &recording);
    for flow in &outcome.truth.flows {
        assert_eq!(flow.octets_delivered, 3 << 16);
        assert_eq!((flow.messages_done, flow.packets_again), (3, 0));
    }
    // The same over a link that loses and reorders packets.
    use crate::scenario::model::{Fault, FaultKind};
    for kind in [
        FaultKind::Loss(0.05),
        FaultKind::Reorder {
            probability: 0.1,
            by: Ps::from_nanos(3_000),
        },
    ] {
        simulation.faults = vec![Fault {
            link: 0,
            towards: None,
            start: Ps(0),
            stop: Ps::MAX,
            kind,
        }];
        let (outcome, recording) = run(&simulation);
        well_formed(&outcome, &recording);
        assert!(outcome.metrics.again > 0);
        for flow in &outcome.truth.flows {
            assert_eq!(flow.octets_delivered, 3 << 16, "{kind:?}");
        }
    }
}

#[test]
fn simulation_without_connection_fails() {
    use crate::scenario::model::{Fault, FaultKind};
    let mut simulation = star(2, Mechanism::Cnp);
    for flow in &mut simulation.flows {
        flow.rdma_cm = true;
    }
    simulation.faults = vec![Fault {
        link: 0,
        towards: None,
        start: Ps(0),
        stop: Ps::MAX,
        kind: FaultKind::Down,
    }];
    let failure = play(&simulation, "test", None, &mut |_| true).unwrap_err();
    assert!(
        failure
            .to_string()
            .starts_with("no connection opened within 1 ms"),
        "{failure}"
    );
    simulation.faults.clear();
    play(&simulation, "test", None, &mut |_| true).unwrap();
}

#[test]
fn code_points_apply_in_every_scenario() {
    use crate::scenario::{Play, Source, builtin, load};
    let moved = [
        "fast_cnp_option1=0x8D",
        "fast_cnp_option2=0x8E",
        "proxy_address_option=0x1D",
        "ioam_option=0x30",
        "rocev2_port=4799",
        "proxy_cn_port=1019",
        "wan_fcn_port=1018",
        "bgp_pnc_characteristic=65281",
    ]
    .map(|set| format!("profile.{set}"));
    let cases = builtin::list().map(|(name, _)| (name, None));
    let known_by = ["option", "isis", "ospfv2", "ospfv3", "bgp"];
    let cases = cases.chain(known_by.map(|by| ("proxy", Some(format!("known_by={by}")))));
    for (name, own) in cases {
        let play_with = |sets: &[String]| {
            let sets: Vec<String> = sets.iter().cloned().chain(own.clone()).collect();
            match load(&Source::Builtin(name.to_owned()), &sets).unwrap().play {
                Play::Simulation(mut simulation) => {
                    // All kinds of events have occurred by then.
                    simulation.duration = simulation.duration.min(Ps::from_nanos(4_000_000));
                    simulation.snap_len = 0;
                    Some((simulation.profile.clone(), run(&simulation)))
                }
                Play::Gallery(_) | Play::Stress(_) => None,
            }
        };
        let Some((_, usual)) = play_with(&[]) else {
            continue;
        };
        let (profile, other) = play_with(&moved).unwrap();
        let kinds = |outcome: &Outcome| -> Vec<Kind> {
            outcome.metrics.notifications.keys().copied().collect()
        };
        assert_eq!(kinds(&other.0), kinds(&usual.0), "{name} {own:?}");
        let read = |profile: &Profile| {
            let frames =
                other.1.0.iter().map(|(_, _, bytes)| {
                    Frame::parse(bytes, bytes.len(), LinkType::Ethernet, profile)
                });
            frames
                .filter_map(|frame| Notification::from_frame(&frame))
                .count() as u64
        };
        let notified: u64 = other.0.truth.notifications.iter().map(|n| n.total).sum();
        assert_eq!(read(&profile), notified, "{name} {own:?}");
        assert_eq!(read(&Profile::DEFAULT), 0, "{name} {own:?}");
    }
}

#[test]
fn figures_of_completed_flows_end_at_completion() {
    let mut simulation = star(2, Mechanism::Pfc);
    for flow in &mut simulation.flows {
        flow.messages = Some(4);
    }
    simulation.warm_up = Ps(simulation.duration.0 / 2);
    let metrics = run(&simulation).0.metrics;
    let end = metrics.completion.unwrap();
    assert!(end < simulation.warm_up, "{end}");
    let bits = 2.0 * 4.0 * 65_536.0 * 8.0;
    assert!((metrics.goodput - bits / end.as_seconds_f64()).abs() < 1.0);
    assert_eq!(metrics.halves, None);
    // Two senders at 100 Gbit/s, one receiver: its link is the bottleneck, and seldom idle.
    assert!(
        metrics.utilisation > 0.9 && metrics.utilisation <= 1.0,
        "{}",
        metrics.utilisation
    );
}

#[test]
fn goodput_excludes_warm_up_and_drift_shows_unsettled_runs() {
    let mut simulation = star(4, Mechanism::Cnp);
    mark_at(&mut simulation, MarkingPoint::Arrival);
    simulation.warm_up = Ps(simulation.duration.0 / 2);
    let metrics = run(&simulation).0.metrics;
    assert_eq!(metrics.completion, None);
    // A millisecond is not enough: after the deep cut at the start, the senders are still
    // recovering.
    let drift = metrics.drift(|half| half.goodput);
    assert!(drift > 0.05, "{drift}");
    // For two halves of one run, the mean equals the overall figure.
    let mean = |what: fn(&Half) -> f64| {
        metrics
            .halves
            .unwrap()
            .map(|half| what(&half))
            .iter()
            .sum::<f64>()
            / 2.0
    };
    assert!((mean(|half| half.goodput) / metrics.goodput - 1.0).abs() < 1e-6);
    assert!((mean(|half| half.queue) / metrics.mean_queue - 1.0).abs() < 1e-6);
    simulation.warm_up = Ps(0);
    let whole = run(&simulation).0.metrics;
    assert!((whole.goodput - metrics.goodput).abs() > 1e9);
    let sum: f64 = metrics.by_flow.iter().map(|(_, goodput)| goodput).sum();
    assert!((sum - metrics.goodput).abs() < 1.0);
}

/// Two flows of different sizes share a link: Jain's index is not that of their sizes, 0.6.
#[test]
fn flows_that_end_are_compared_by_their_own_completion() {
    let mut simulation = star(2, Mechanism::None);
    for (flow, messages) in simulation.flows.iter_mut().zip([1, 10]) {
        flow.messages = Some(messages);
    }
    let metrics = run(&simulation).0.metrics;
    let last = metrics.completion.unwrap();
    let [short, long] = [0, 1].map(|flow| metrics.by_flow[flow].1);
    assert!((30e9..65e9).contains(&short), "{short}");
    let all = 10.0 * 65_536.0 * 8.0 / last.as_seconds_f64();
    assert!((long / all - 1.0).abs() < 1e-6, "{long} {all}");
    assert!(metrics.fairness > 0.85, "{}", metrics.fairness);
}

/// On departure, a mark does not wait in the queue: senders slow down earlier.
#[test]
fn marks_on_departure_arrive_earlier() {
    let reaction = |marks_at| {
        let mut simulation = star(4, Mechanism::Cnp);
        mark_at(&mut simulation, marks_at);
        let (outcome, recording) = run(&simulation);
        well_formed(&outcome, &recording);
        assert!(outcome.metrics.marked > 0);
        outcome.metrics.reaction_time().unwrap()
    };
    let [arrival, departure] = MarkingPoint::ALL.map(reaction);
    assert!(departure < arrival, "{departure} {arrival}");
}

/// A NIC that needs 20 µs to apply a notification reacts that much later.
#[test]
fn reaction_delay_is_added_to_the_reaction_time() {
    let reaction = |delay| {
        let mut simulation = star(4, Mechanism::Cnp);
        for node in &mut simulation.nodes {
            if let NodeKind::Host(host) = &mut node.kind {
                host.reaction_delay = delay;
            }
        }
        run(&simulation).0.metrics.reaction_time().unwrap()
    };
    let delay = Ps::from_nanos(20_000);
    assert_eq!(reaction(delay), reaction(Ps(0)) + delay);
}

/// A controller that keeps one packet in flight.
#[derive(Debug)]
struct StopAndWait {
    line_rate: f64,
}

/// One packet of 1,024 octets and its acknowledgement over four cables of 500 ns and a switch.
const IDLE_RTT: std::ops::Range<u128> = 2_000..2_300;

impl Controller for StopAndWait {
    fn on_notification(&mut self, _: Time, _: &Notice<'_>) -> reaction_point::Answer {
        reaction_point::Answer::Slow
    }

    fn on_ack(&mut self, _: Time, ack: &Ack) {
        assert_eq!(ack.octets, 1_024);
        assert!(IDLE_RTT.contains(&ack.rtt.as_nanos()), "{:?}", ack.rtt);
    }

    fn rate(&self) -> f64 {
        self.line_rate
    }

    fn window(&self) -> Option<u64> {
        Some(1_024)
    }
}

#[test]
fn acknowledgements_reach_the_controller_whose_window_is_kept() {
    let mut simulation = star(1, Mechanism::None);
    for node in &mut simulation.nodes {
        if let NodeKind::Host(host) = &mut node.kind {
            host.reaction.control =
                Control::Custom(Custom(|line_rate| Box::new(StopAndWait { line_rate })));
        }
    }
    let (outcome, _) = run(&simulation);
    let sent = outcome.truth.flows[0].packets_sent;
    // One packet a round trip for a millisecond.
    let [most, least] = [IDLE_RTT.start, IDLE_RTT.end].map(|rtt| (1_000_000 / rtt) as u64);
    assert!((least..=most).contains(&sent), "{sent}");
}
