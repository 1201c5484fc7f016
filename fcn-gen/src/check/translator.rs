//! Check of a proxy node or an ingress PE: flows are set up through it, then it gets valid and
//! invalid notifications of congestion.

use super::bench::Record;
use super::judge::{ClassifiedFrames, DeviceFrame, Ledger, data, over_rate};
use super::plan::{
    FlowPath, FrameContent, PUNCTUAL, Plan, Planned, Setup, UNTRUSTED_SOURCE, emit_packet, framed,
};
use super::statements::Statement;
use super::traffic::{Traffic, completed};
use crate::device::Role;
use crate::scenario::model::{Flow, NodeId, NodeKind};
use crate::units::Ps;
use fcn_tool::failure::{Failure, Result};
use fcn_wire::bth::BthRepr;
use fcn_wire::compose::{self, Part};
use fcn_wire::emit::{self, Carrier};
use fcn_wire::icrc::Policy;
use fcn_wire::ip::Ip;
use fcn_wire::pnc::Prefix;
use fcn_wire::proxy_cn::{FiveTuple, ProxyCnRepr};
use fcn_wire::wan_fcn::WanFcnRepr;
use fcn_wire::{Kind, Opcode, Profile, Subject};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

/// Number of notifications about one flow in a burst, and the time between them.
const BURST: u64 = 300;
const GAP: Ps = Ps::from_nanos(10_000);
/// Number of notifications in the other steps, and the time between them.
const FEW: u64 = 10;
const PAUSE: Ps = Ps::from_nanos(100_000);
/// Time that a device may take to answer.
const ANSWER: Ps = Ps::from_nanos(2_000_000);

/// Names and statements of a role.
struct Names {
    called: &'static str,
    sent: Statement,
    destination: Statement,
    qp: Statement,
    limited: Statement,
    access_list: Statement,
    off: Statement,
}

const fn names(role: Role) -> Names {
    use Statement as S;
    match role {
        Role::IngressPe => Names {
            called: "FCNs",
            sent: S::IngressTranslates,
            destination: S::IngressToSender,
            qp: S::IngressQp,
            limited: S::IngressLimited,
            access_list: S::IngressAccessList,
            off: S::WanFcnOff,
        },
        _ => Names {
            called: "proxy notifications",
            sent: S::ProxyTranslates,
            destination: S::ProxyToSender,
            qp: S::ProxyQp,
            limited: S::ProxyLimited,
            access_list: S::ProxyAccessList,
            off: S::ProxyCnOff,
        },
    }
}

/// Returns the access list of the device.
fn access_list<'s>(setup: &Setup<'s>) -> &'s [Prefix] {
    let NodeKind::Switch(switch) = &setup.simulation.nodes[setup.device].kind else {
        return &[];
    };
    match (setup.role, &switch.proxy, &switch.edge) {
        (Role::Proxy, Some(proxy), _) => &proxy.config.congestion_points,
        (_, _, Some(edge)) => &edge.config.congestion_points,
        _ => &[],
    }
}

/// Returns a congestion point on the egress side that is on the device's access list; any if the
/// list is empty.
fn notifier(setup: &Setup<'_>, link: usize) -> Option<NodeId> {
    let nodes = setup.simulation.nodes.iter().enumerate();
    let list = access_list(setup);
    let mut able = nodes.filter(|(node, values)| {
        *node != setup.device
            && matches!(values.kind, NodeKind::Switch(_))
            && setup.towards(*node) == Some(link)
            && (list.is_empty() || fcn_observe::access::list_contains(list, values.ipv6.into()))
    });
    able.next().map(|(node, _)| node)
}

/// Returns a message to a proxy about a flow, and the packet to quote in it.
#[must_use]
pub fn proxy_message(flow: &Flow, profile: &Profile) -> (ProxyCnRepr<'static>, Vec<u8>) {
    let five_tuple = FiveTuple {
        source: flow.source,
        destination: flow.destination,
        protocol: 17,
        source_port: flow.source_port,
        destination_port: profile.rocev2_port,
    };
    let class = flow.dscp << 2 | 2;
    let ip = match (flow.source, flow.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => Part::v4(source, destination, class),
        (IpAddr::V6(source), IpAddr::V6(destination)) => Part::v6(source, destination, class),
        _ => Part::v6(UNTRUSTED_SOURCE, UNTRUSTED_SOURCE, class),
    };
    let payload = [0x5A; 1_024];
    let parts = [
        ip,
        Part::udp(flow.source_port, profile.rocev2_port),
        Part::Bth(BthRepr::new(Opcode::RC_SEND_ONLY, flow.receiver_qp, 0)),
        Part::Bytes(&payload),
        Part::Icrc(Policy::Compute(profile.icrc_reading)),
    ];
    let message = ProxyCnRepr {
        five_tuple,
        level: 7,
        reserved: 0,
        invoking: &[],
    };
    (
        message,
        compose::packet(&parts, profile).unwrap_or_default(),
    )
}

/// Plans the check.
///
/// # Errors
/// No flow passes the device, or no node could notify it.
pub fn plan(setup: &Setup<'_>) -> Result<Plan> {
    let simulation = setup.simulation;
    let mut plan = Plan::new(setup.device);
    let paths = setup.flow_paths();
    let name = &simulation.nodes[setup.device].name;
    let Some(FlowPath {
        flow: first,
        to: link,
        ..
    }) = paths.first().copied()
    else {
        return Err(Failure::usage("no flow passes through the device").and(name));
    };
    let Some(by) = notifier(setup, link) else {
        return Err(Failure::usage("no trusted switch is on the flows' path").and(name));
    };
    plan.peers = (0..simulation.nodes.len())
        .filter(|node| *node != setup.device)
        .collect();
    plan.learns_labels = setup.role == Role::IngressPe;
    plan.punctual = Some(PUNCTUAL);
    let delays: u64 = simulation.links.iter().map(|link| link.delay.0).sum();
    let start = paths
        .iter()
        .map(|way| way.flow.start)
        .max()
        .unwrap_or_default();
    let lasts = start + Ps(delays * 8) + Ps::from_nanos(3_000_000);
    plan.step(
        "connecting",
        "connections and data of the flows through the device".to_owned(),
        lasts,
        Vec::new(),
    );

    let names = names(setup.role);
    let own = simulation.nodes[by].ipv6;
    let add = |plan: &mut Plan,
               id,
               (flow, from, reserved): (&Flow, Ipv6Addr, bool),
               (count, gap): (u64, Ps),
               what: &str| {
        let begin = plan.end;
        let frames = (0..count).map(|n| Planned {
            at: begin + Ps(gap.0 * n),
            link,
            content: notification(setup, by, from, flow, reserved),
        });
        let frames: Vec<_> = frames.collect();
        let what = format!(
            "{} {} about {}{what}",
            frames.len(),
            names.called,
            flow.name
        );
        plan.step(id, what, Ps(gap.0 * count) + ANSWER, frames);
    };
    let other = |n: usize| paths.get(n).or(paths.last()).map_or(first, |way| way.flow);
    use Statement as S;
    // This step comes first, because answers to earlier notifications may be late.
    if !setup.off && setup.wants(&[names.access_list]) {
        let what = " from a source that is not on the access list";
        add(
            &mut plan,
            "stranger",
            (other(1), UNTRUSTED_SOURCE, false),
            (FEW, PAUSE),
            what,
        );
    }
    add(
        &mut plan,
        "notified",
        (first, own, false),
        (BURST, GAP),
        " at once",
    );
    if !setup.off && setup.role == Role::IngressPe && setup.wants(&[S::IngressReserved]) {
        let what = ", with reserved bits set";
        add(
            &mut plan,
            "reserved",
            (other(1), own, true),
            (FEW, PAUSE),
            what,
        );
    }
    Ok(plan)
}

/// Builds a notification to the device.
fn notification(
    setup: &Setup<'_>,
    by: NodeId,
    from: Ipv6Addr,
    flow: &Flow,
    reserved: bool,
) -> FrameContent {
    let to = setup.simulation.nodes[setup.device].ipv6;
    let nodes = (by, setup.device);
    let carrier = Carrier::new(from.into(), to.into());
    let profile = setup.simulation.profile.clone();
    if setup.role == Role::IngressPe {
        let make = move |flow_label| {
            let message = WanFcnRepr {
                flow_label,
                level: 7,
                reserved: if reserved { 0x1FF } else { 0 },
            };
            let packet = emit_packet(|out| emit::wan_fcn(&carrier, &message, &profile, out));
            Some(framed(nodes, &packet))
        };
        return FrameContent::Labelled {
            flow: flow.key(),
            make: Box::new(make),
        };
    }
    let (message, quoted) = proxy_message(flow, &profile);
    let message = ProxyCnRepr {
        invoking: &quoted,
        ..message
    };
    let packet = emit_packet(|out| emit::proxy_cn(&carrier, &message, &profile, out));
    FrameContent::Octets(framed(nodes, &packet))
}

/// Judges a proxy node or an ingress PE.
pub fn judge(
    setup: &Setup<'_>,
    plan: &Plan,
    record: &Record,
    classified: &ClassifiedFrames<'_>,
    ledger: &mut Ledger,
) {
    if !setup.off {
        let traffic = Traffic::new(setup, record, classified, ledger);
        let mut time = completed(plan);
        // Packets that came last may still be on their way through the device.
        time.end = Ps(time.end.0.saturating_sub(ANSWER.0));
        traffic.judge_loss(record, &time, |_| false, ledger);
        if let Some(why) = setup.lateness(plan) {
            ledger.excuse(&[Statement::ForwardedAll], &why);
        }
    }
    let names = names(setup.role);
    let paths = setup.flow_paths();
    let Some(FlowPath { flow: first, .. }) = paths.first() else {
        return;
    };
    let cnps: Vec<&DeviceFrame<'_>> = classified
        .generated
        .iter()
        .filter(|own| own.is_of(Kind::Cnp))
        .collect();
    // Includes all frames that may have arrived in time: a busy machine reads them late.
    let within = |id: &str| {
        let time = plan.time(id)?;
        let overlaps = |frame: &&&DeviceFrame<'_>| {
            frame.captured.at >= time.start && frame.captured.since < time.end
        };
        let within = cnps.iter().filter(overlaps);
        Some(within.copied().collect::<Vec<_>>())
    };
    let passed = data(&classified.forwarded).count();
    let all = [
        names.sent,
        names.destination,
        names.qp,
        names.limited,
        names.access_list,
        names.off,
    ];
    if passed == 0 {
        let why = "the device forwarded no data";
        ledger.record_untestable_all(&all, why);
        ledger.record_untestable_all(
            &[
                Statement::IngressReserved,
                Statement::IngressLabels,
                Statement::IngressEcn,
            ],
            why,
        );
        return;
    }
    let Some(answers) = within("notified") else {
        return;
    };
    if setup.off {
        let shows: Vec<usize> = answers.iter().map(|own| own.index).take(4).collect();
        let why = || "the device translated although translation was not enabled".to_owned();
        return ledger.holds(names.off, answers.is_empty(), why, &shows);
    }
    let why = || {
        format!(
            "it was sent {BURST} notifications about {}, but sent no CNP",
            first.name
        )
    };
    ledger.holds(names.sent, !answers.is_empty(), why, &[]);
    for own in &answers {
        let Some(notification) = &own.notification else {
            continue;
        };
        let to = notification.destination;
        let is_sender = to == first.source;
        let why = || format!("it was sent to {to}, but the sender is {}", first.source);
        ledger.holds(names.destination, is_sender, why, &[own.index]);
        if let (true, Subject::SenderQp(qp)) = (is_sender, notification.subject) {
            let why = || {
                format!(
                    "it names QP {qp}, but the QP of {} is {}",
                    first.name, first.sender_qp
                )
            };
            ledger.holds(names.qp, qp == first.sender_qp, why, &[own.index]);
        }
    }
    if let Some(beyond) = over_rate(&answers, setup.limits.flow_rate) {
        let why = || {
            format!(
                "{} of {} CNPs exceeded {} per second about one flow",
                beyond.len(),
                answers.len(),
                setup.limits.flow_rate
            )
        };
        ledger.fails(names.limited, why, &beyond);
    }
    let none = "the device sent no CNP";
    if answers.is_empty() {
        ledger.record_untestable_all(&all, none);
    } else {
        ledger.record_judgeable_all(&[names.limited]);
    }
    if let (Some(mut obeyed), Some(time)) = (within("stranger"), plan.time("stranger")) {
        // Frames read later may answer the next step.
        obeyed.retain(|own| own.captured.at < time.end);
        // Only about the flow named in this step, if no other step names it.
        if let Some(FlowPath { flow, .. }) = paths.get(1) {
            let named = (Subject::SenderQp(flow.sender_qp), flow.source);
            let told = |own: &DeviceFrame<'_>| own.notification.map(|n| (n.subject, n.destination));
            obeyed.retain(|own| told(own) == Some(named));
        }
        let shows: Vec<usize> = obeyed.iter().map(|own| own.index).take(4).collect();
        let why = || {
            format!(
                "it sent {} CNPs for notifications from {UNTRUSTED_SOURCE}",
                obeyed.len()
            )
        };
        if access_list(setup).is_empty() {
            ledger.record_untestable_all(
                &[names.access_list],
                "in the scenario the device trusts every source",
            );
        } else if !answers.is_empty() {
            ledger.holds(names.access_list, obeyed.is_empty(), why, &shows);
        }
    }
    if setup.role == Role::IngressPe {
        ingress(
            setup,
            within("reserved"),
            classified,
            ledger,
            !answers.is_empty(),
        );
    }
}

/// Judges the behaviour of an ingress PE besides translation.
fn ingress(
    setup: &Setup<'_>,
    reserved: Option<Vec<&DeviceFrame<'_>>>,
    classified: &ClassifiedFrames<'_>,
    ledger: &mut Ledger,
    answers: bool,
) {
    use Statement as S;
    match reserved {
        Some(cnps) if answers => {
            let why = || "the device sent no CNP for FCNs with reserved bits set".to_owned();
            ledger.holds(S::IngressReserved, !cnps.is_empty(), why, &[]);
        }
        _ => ledger.record_untestable_all(&[S::IngressReserved], "the device sent no CNP"),
    }
    let mut labels: BTreeMap<_, BTreeSet<u32>> = BTreeMap::new();
    let mut flows: BTreeMap<u32, BTreeSet<_>> = BTreeMap::new();
    let flow_of = |key| setup.simulation.flows.iter().any(|flow| flow.key() == key);
    for (frame, data) in data(&classified.forwarded) {
        let (Some(outer), true) = (data.outer, flow_of(data.flow())) else {
            continue;
        };
        let inner = frame.parsed.ip().map_or(0, Ip::ecn);
        // The device may meet congestion itself, and mark the outer header.
        let marked = data.ecn == fcn_observe::Ecn::Ce && inner != 0;
        let copied = marked || data.ecn.bits() == inner;
        let why = || {
            format!(
                "the outer ECN field is {:02b}, but the inner is {inner:02b}",
                data.ecn.bits()
            )
        };
        ledger.holds(S::IngressEcn, copied, why, &[frame.index]);
        let label = outer.flow_label;
        labels.entry(data.flow()).or_default().insert(label);
        flows.entry(label).or_default().insert(data.flow());
        let alone = label != 0
            && labels
                .get(&data.flow())
                .is_none_or(|labels| labels.len() == 1)
            && flows.get(&label).is_none_or(|flows| flows.len() == 1);
        let why = || format!("label {label:#x} is 0, shared by flows, or not its flow's only one");
        ledger.holds(S::IngressLabels, alone, why, &[frame.index]);
    }
    ledger.record_untestable_all(
        &[S::IngressEcn, S::IngressLabels],
        "the device encapsulated no data",
    );
}
