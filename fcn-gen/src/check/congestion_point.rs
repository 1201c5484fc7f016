//! Check of a congestion point: sends data that meet congestion at the device. In the main step
//! each packet has its own QP, so that a notification identifies the packet that caused it.

mod data;
mod timing;
mod verdict;

pub use verdict::judge;

use super::notification;
use super::plan::{
    FlowPath, FrameContent, Plan, Planned, Setup, UNTRUSTED_SOURCE, emit_packet, framed, kinds,
};
use super::statements::Statement;
use crate::scenario::model::{Flow, NodeKind, Switch};
use crate::sim::live::LiveNode;
use crate::units::Ps;
use data::{DataBuilder, PacketOptions, burst};
use fcn_tool::failure::{Failure, Result};
use fcn_tool::quantity::bits_per_second;
use fcn_wire::emit::{self, Carrier};
use fcn_wire::fast_cnp::FastCnpRepr;
use fcn_wire::finding::Family;
use fcn_wire::ioam::TraceType;
use fcn_wire::proxy_cn::ProxyCnRepr;
use fcn_wire::wan_fcn::WanFcnRepr;
use fcn_wire::{Kind, Rule};
use std::net::IpAddr;

/// First outer flow label of the data packets.
const FIRST_LABEL: u32 = 0x1_0000;
/// Packets of a step after those that fill the queue.
const PACKETS: u64 = 200;
/// Maximum number of packets in a step.
const MOST_PACKETS: u64 = 20_000;
/// Minimum payload of a data packet in octets that a notification to a proxy cannot quote as a
/// whole; with all headers it fits an interface MTU of 1500 octets.
const QUOTED: u16 = 1_368;
/// Number of foreign notifications sent across the border.
const LEAKS: u64 = 20;
/// Data that the played node writes into traces.
const TRACE: TraceType = TraceType::from_bits(0).with(0).with(1).with(6);
/// Step in which every packet has its own QP.
const EACH: &str = "each";
/// Step in which every packet has its own QP and an IOAM trace.
const TRACED: &str = "traced";
/// Step with a single flow.
const ONE: &str = "one-flow";
/// Step with packets between the data that are none.
const MIXED: &str = "mixed";
/// Step with data whose outer ECN field is 00.
const INCAPABLE: &str = "not-capable";
/// Step with data from outside of the domain.
const FOREIGN: &str = "foreign";
/// Step with notifications that cross the border.
const LEAKING: &str = "leaking";

fn switch<'s>(setup: &Setup<'s>) -> Option<&'s Switch> {
    match &setup.simulation.nodes[setup.device].kind {
        NodeKind::Switch(switch) => Some(switch),
        NodeKind::Host(_) => None,
    }
}

/// Returns Kmin and Kmax, in octets, of the queue that the data meet.
fn thresholds(setup: &Setup<'_>) -> (u64, u64) {
    let default = fcn_node::congestion_point::Marking::default();
    let to = setup.flow_paths().first().map_or(0, |path| path.to);
    let egress = LiveNode::links(setup.simulation, setup.device).nth(to);
    let port = switch(setup).and_then(|switch| switch.ports.get(&egress?));
    let marking = port.map_or(default, |port| port.marking);
    (marking.kmin, marking.kmax)
}

/// Plans the check.
///
/// # Errors
/// No flow passes the device, or no data would meet congestion there.
pub fn plan(setup: &Setup<'_>) -> Result<Plan> {
    let mut plan = Plan::new(setup.device);
    let name = &setup.simulation.nodes[setup.device].name;
    let mut all = setup.flow_paths();
    if let Some(to) = all.first().map(|way| way.to) {
        all.retain(|way| way.to == to);
    }
    let (inside, outside): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|way| setup.is_inside(setup.neighbour(way.from)));
    let Some(first) = inside.first() else {
        return Err(Failure::usage("no flow passes through the device")
            .and(name)
            .and("choose another scenario with --config"));
    };
    let kinds = kinds(setup);
    if kinds.is_empty() {
        return Err(Failure::usage(
            "in the scenario the device sends none of the drafts' notifications",
        )
        .and(name)
        .and("choose a mechanism (--set mechanism=fast-cnp)"));
    }
    // The routers around the device advertise proxies.
    let nodes = setup.simulation.nodes.iter().enumerate();
    let routers = nodes.filter(|(node, values)| {
        *node != setup.device && matches!(values.kind, NodeKind::Switch(_))
    });
    plan.peers = routers.map(|(node, _)| node).collect();
    plan.step(
        "settling",
        "only routing, if any".to_owned(),
        settling(setup),
        Vec::new(),
    );

    let mut links: Vec<usize> = inside.iter().map(|way| way.from).collect();
    links.sort_unstable();
    links.dedup();
    let bits = |link: usize| setup.rate(link).bits_per_second();
    let (comes, goes) = (
        links.iter().map(|link| bits(*link)).sum::<u64>(),
        bits(first.to),
    );
    if comes <= goes {
        return Err(Failure::usage("no data would meet congestion")
            .and(name)
            .and(format!(
                "{} arrive and {} can leave: use more senders or a slower link, in the scenario \
                 and in reality",
                bits_per_second(comes as f64),
                bits_per_second(goes as f64)
            )));
    }
    let (_, kmax) = thresholds(setup);
    // Octets that have to arrive until this many are queued.
    let until_full = |octets: u64| (octets as f64 / (1.0 - goes as f64 / comes as f64)) as u64;
    // Longer than a notification to a proxy may quote.
    let payload = match kinds.contains(&Kind::ProxyCn) {
        true => first.flow.mtu.max(QUOTED),
        false => first.flow.mtu,
    };
    // A flow of many packets has to stay congested for longer than a notification may take.
    let lasting = u128::from(comes) * u128::from(setup.limits.latency.0) / u128::from(Ps::SECOND.0);
    let lasting = u64::try_from(lasting * 2 / 8).unwrap_or(u64::MAX);
    let count = |payload: u16, is_of_many: bool| {
        let payload = u64::from(payload);
        let deep = match is_of_many {
            true => PACKETS.max(lasting / payload),
            false => PACKETS,
        };
        (until_full(kmax) / payload + deep).min(MOST_PACKETS)
    };
    // Time that the queue takes to drain, with some margin.
    let drain = setup.rate(first.to).time(2 * kmax + 100_000) + Ps::from_nanos(1_000_000);
    let mut builder = DataBuilder {
        setup,
        sent: Vec::new(),
        others: Vec::new(),
    };
    let mut add = |plan: &mut Plan,
                   id: &'static str,
                   (ways, options): (&[FlowPath<'_>], PacketOptions),
                   payload: u16| {
        let frames = burst(
            &mut builder,
            plan.end,
            ways,
            options,
            (count(payload, options.same_qp), payload),
        );
        let last = frames
            .iter()
            .map(|planned| planned.at)
            .max()
            .unwrap_or(plan.end);
        let what = format!(
            "{} data packets at {}{}{}",
            frames.len(),
            bits_per_second(comes as f64),
            if options.same_qp {
                " of one flow"
            } else {
                ", each with its own QP"
            },
            match (options.traced, options.incapable) {
                (true, _) => ", with an IOAM trace",
                (_, true) => ", not ECN-capable",
                _ if options.mixed => ", and others between them",
                _ => "",
            }
        );
        plan.step(id, what, last.since(plan.end) + drain, frames);
    };
    use Statement as S;
    let per_packet = [
        S::FastCnpSent,
        S::FastCnpFromLoopback,
        S::FastCnpToSender,
        S::FastCnpQpCopied,
        S::FastCnpOriginalCopied,
        S::FastCnpOptionByTrace,
        S::ProxyCnSent,
        S::ProxyCnToProxy,
        S::ProxyCnTupleCopied,
        S::ProxyCnQuote,
        S::WanFcnSent,
        S::WanFcnToIngress,
        S::WanFcnLabel,
        S::WanFcnCapable,
        S::FastCnpOff,
        S::ProxyCnOff,
        S::WanFcnOff,
        S::CongestionLatency,
        S::CongestionShare,
        S::CongestionQueue,
        S::CongestionOnce,
        S::ForwardedAll,
        S::ForwardedOnce,
        S::ForwardedEcn,
    ];
    let families = [
        Family::Packet,
        Family::Roce,
        Family::Cnp,
        Family::FastCnp,
        Family::ProxyCn,
        Family::WanFcn,
    ];
    if setup.wants(&per_packet)
        || setup.wants(&notification::STATEMENTS)
        || setup.wants_family(&families)
        || setup.wants_rule(&[Rule::FastCnpMarked])
    {
        add(
            &mut plan,
            EACH,
            (&inside, PacketOptions::default()),
            payload,
        );
    }
    if !setup.off {
        let of_traces = [
            S::FastCnpTraceCopied,
            S::FastCnpOptionByTrace,
            S::TraceOwnNode,
        ];
        let traces = setup.wants(&of_traces) || setup.wants_family(&[Family::Ioam]);
        if traces && kinds.contains(&Kind::FastCnp1) && first.flow.source.is_ipv6() {
            let options = PacketOptions {
                traced: true,
                ..PacketOptions::default()
            };
            add(&mut plan, TRACED, (&inside, options), payload);
        }
        let of_many = [S::CongestionAgain, S::ForwardedOrder];
        if setup.wants(&of_many)
            || setup.wants_rule(&[Rule::FastCnpRate, Rule::ProxyCnRate, Rule::WanFcnRate])
        {
            let options = PacketOptions {
                same_qp: true,
                ..PacketOptions::default()
            };
            let one: Vec<_> = links
                .iter()
                .filter_map(|link| inside.iter().find(|way| way.from == *link))
                .copied()
                .collect();
            // The payload is limited, so that enough packets are sent to exceed the rate limit.
            let least = u64::from(setup.limits.flow_rate) * 8 * 4;
            let largest = (comes / least.max(1)).saturating_sub(200);
            let payload = payload
                .min(u16::try_from(largest & !3).unwrap_or(u16::MAX))
                .max(4);
            add(&mut plan, ONE, (&one, options), payload);
        }
        if !kinds.contains(&Kind::WanFcn) && setup.wants(&[S::CongestionData]) {
            let options = PacketOptions {
                mixed: true,
                ..PacketOptions::default()
            };
            add(&mut plan, MIXED, (&inside, options), payload);
        }
        if kinds.contains(&Kind::WanFcn) && setup.wants(&[S::WanFcnCapable]) {
            let options = PacketOptions {
                incapable: true,
                ..PacketOptions::default()
            };
            add(&mut plan, INCAPABLE, (&inside, options), payload);
        }
        if !outside.is_empty()
            && setup.wants_rule(&[Rule::FastCnpBorder, Rule::ProxyCnBorder, Rule::WanFcnBorder])
        {
            let both = [&outside[..], &inside[..]].concat();
            add(
                &mut plan,
                FOREIGN,
                (&both, PacketOptions::default()),
                payload,
            );
            let frames = leaks(setup, &kinds, (plan.end, &outside[0]), first);
            let what = format!(
                "{} notifications into the domain and out of it",
                frames.len()
            );
            plan.step(LEAKING, what, Ps::from_nanos(2_000_000), frames);
        }
    }
    (plan.sent, plan.others) = (builder.sent, builder.others);
    Ok(plan)
}

/// Returns the time that routers around the device may take to advertise proxies.
fn settling(setup: &Setup<'_>) -> Ps {
    if !kinds(setup).contains(&Kind::ProxyCn) {
        return Ps::from_nanos(100_000);
    }
    Ps(setup.simulation.advertise_interval.0 * 3) + Ps::from_nanos(100_000)
}

/// Builds notifications of each kind from outside to inside the domain, and from inside to outside.
fn leaks(
    setup: &Setup<'_>,
    kinds: &[Kind],
    (begin, outside): (Ps, &FlowPath<'_>),
    inside: &FlowPath<'_>,
) -> Vec<Planned> {
    let (stranger, own) = (outside.flow.source, inside.flow.destination);
    let mut frames = Vec::new();
    for n in 0..LEAKS {
        for kind in kinds {
            for (link, nodes, (from, to)) in [
                (
                    outside.from,
                    (outside.flow.from, inside.flow.to),
                    (stranger, own),
                ),
                (
                    inside.to,
                    (inside.flow.to, outside.flow.from),
                    (own, stranger),
                ),
            ] {
                let carrier = Carrier::new(from, to);
                let packet = notification(setup, *kind, &carrier, outside.flow);
                frames.push(Planned {
                    at: begin + Ps::from_nanos(n * 50_000),
                    link,
                    content: FrameContent::Octets(framed(nodes, &packet)),
                });
            }
        }
    }
    frames
}

/// Builds a notification of that kind about a flow.
fn notification(setup: &Setup<'_>, kind: Kind, carrier: &Carrier, flow: &Flow) -> Vec<u8> {
    let profile = &setup.simulation.profile;
    emit_packet(|out| match kind {
        Kind::ProxyCn => {
            let message = super::translator::proxy_message(flow, profile);
            emit::proxy_cn(
                carrier,
                &ProxyCnRepr {
                    invoking: &message.1,
                    ..message.0
                },
                profile,
                out,
            )
        }
        Kind::WanFcn => {
            let message = WanFcnRepr {
                flow_label: FIRST_LABEL,
                level: 7,
                reserved: 0,
            };
            emit::wan_fcn(carrier, &message, profile, out)
        }
        _ => {
            let original_destination = match flow.destination {
                IpAddr::V6(address) => address,
                IpAddr::V4(_) => UNTRUSTED_SOURCE,
            };
            let option = FastCnpRepr::Option1 {
                original_destination,
            };
            let cnp = fcn_wire::cnp::CnpRepr::new(flow.receiver_qp);
            emit::fast_cnp(carrier, &option, &cnp, profile, out)
        }
    })
}
