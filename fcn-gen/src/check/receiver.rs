//! Check of a receiver: the scenario's senders write to it, and in one step all their data are
//! marked CE on the way.

use super::bench::{Record, parse};
use super::judge::{ClassifiedFrames, DeviceFrame, Ledger, over_rate};
use super::plan::{Plan, Setup, WIRE_OVERHEAD, kinds};
use super::statements::{Statement, Test};
use crate::scenario::model::{Flow, Simulation};
use crate::units::{Ps, Rate};
use fcn_observe::{DataPacket, Ecn, FlowKey};
use fcn_tool::failure::{Failure, Result};
use fcn_wire::finding::Family;
use fcn_wire::{Kind, Subject};
use std::collections::HashMap;
use std::net::IpAddr;

/// Step in which no data are marked.
const UNMARKED: &str = "unmarked";
/// Step in which all data are marked.
const MARKED: &str = "marked";
/// Length of each step.
const LASTS: Ps = Ps::from_nanos(4_000_000);
/// Octets of a data packet without its payload.
const HEADERS: u64 = 14 + 40 + 8 + 12 + 16 + 4;

/// Returns the flows that end at the device.
fn flows<'s>(setup: &Setup<'s>) -> impl Iterator<Item = &'s Flow> + use<'s> {
    let (flows, device) = (&setup.simulation.flows, setup.device);
    flows.iter().filter(move |flow| flow.to == device)
}

/// Raises the rates of the flows to the device enough to show if its CNPs are rate-limited, as far
/// as the links permit.
pub fn raise_rates(simulation: &mut Simulation, device: usize, flow_rate: u32) {
    for index in 0..simulation.flows.len() {
        let flow = &simulation.flows[index];
        if flow.to != device {
            continue;
        }
        let beside = simulation
            .flows
            .iter()
            .filter(|other| other.from == flow.from);
        let share = beside.count().max(1) as u64;
        let link = simulation
            .links
            .iter()
            .find(|link| link.a == flow.from || link.b == flow.from);
        let Some(link) = link else { continue };
        let len = (u64::from(flow.mtu) + HEADERS + WIRE_OVERHEAD as u64) * 8;
        let wanted = u64::from(flow_rate) * 5 / 2 * len;
        let most = link.rate.bits_per_second() / share;
        simulation.flows[index].rate_limit = Rate::new(wanted.min(most).max(1));
        simulation.flows[index].window = simulation.flows[index].window.max(4_096);
    }
}

/// Plans the check.
///
/// # Errors
/// No flow ends at the device.
pub fn plan(setup: &Setup<'_>) -> Result<Plan> {
    let mut plan = Plan::new(setup.device);
    let mut senders: Vec<usize> = flows(setup).map(|flow| flow.from).collect();
    senders.sort_unstable();
    senders.dedup();
    if senders.is_empty() {
        return Err(Failure::usage("no flow ends at the device"));
    }
    let start = flows(setup)
        .map(|flow| flow.start)
        .max()
        .unwrap_or_default();
    plan.peers = senders;
    let names = || {
        let names = plan
            .peers
            .iter()
            .map(|node| setup.simulation.nodes[*node].name.clone());
        names.collect::<Vec<_>>().join(", ")
    };
    let what = format!("connections and data of {}", names());
    plan.step(UNMARKED, what, start + LASTS, Vec::new());
    let begin = plan.end;
    plan.step(
        MARKED,
        "their data, all marked CE".to_owned(),
        LASTS,
        Vec::new(),
    );
    plan.marks = Some(begin..plan.end);
    plan.step(
        "rest",
        "waiting for late frames".to_owned(),
        Ps::from_nanos(1_000_000),
        Vec::new(),
    );
    Ok(plan)
}

/// Judges a receiver.
pub fn judge(
    setup: &Setup<'_>,
    plan: &Plan,
    record: &Record,
    classified: &ClassifiedFrames<'_>,
    ledger: &mut Ledger,
) {
    use Statement as S;
    let fast = kinds(setup) == [Kind::FastCnp1];
    let mut marked: HashMap<FlowKey, u32> = HashMap::new();
    let mut unmarked = false;
    let begin = plan.marks.as_ref().map_or(Ps::MAX, |marks| marks.start);
    for (_, passed, bytes) in record.iter().filter(|(_, passed, _)| !passed.by_device) {
        let frame = parse(bytes, &setup.simulation.profile);
        let Some(data) = DataPacket::from_frame(&frame) else {
            continue;
        };
        if data.ecn == Ecn::Ce {
            *marked.entry(data.flow()).or_default() += 1;
        }
        unmarked |= passed.at < begin;
    }
    let told: Vec<&DeviceFrame<'_>> = classified
        .generated
        .iter()
        .filter(|own| own.is_of(Kind::Cnp) || own.is_of(Kind::FastCnp1))
        .collect();
    if plan.time(MARKED).is_none() {
        return;
    }
    let nothing = match classified.generated.is_empty() {
        true => "the device did not answer connection setup",
        false => {
            "no data were sent while marking was on: connections were not set up, or too late (a \
             lower --speed helps)"
        }
    };
    if setup.off {
        return off((!marked.is_empty(), nothing), &told, ledger);
    }
    if marked.is_empty() {
        ledger.record_untestable_all(&[S::CnpSent], nothing);
    } else if !told.is_empty()
        || !ledger.blames_format(S::CnpSent, &[Family::Roce, Family::Cnp, Family::FastCnp])
    {
        let why = || "data were marked CE, but the device sent no notification".to_owned();
        ledger.holds(S::CnpSent, !told.is_empty(), why, &[]);
        let more = told.len().saturating_sub(1);
        ledger.record_times(Test::Statement(S::CnpSent), more);
    }
    let early: Vec<usize> = told
        .iter()
        .filter(|own| own.captured.at < begin)
        .map(|own| own.index)
        .collect();
    if unmarked {
        let why = || format!("{} were sent before any data were marked", early.len());
        ledger.holds(
            S::CnpWithCause,
            early.is_empty(),
            why,
            early.get(..early.len().min(4)).unwrap_or_default(),
        );
    } else {
        ledger.record_untestable_all(&[S::CnpWithCause], nothing);
    }
    let others = "the device sent no such message";
    let plain = "in the scenario the device sends plain CNPs (host.receiver.cnp_form)";
    for own in &told {
        match own
            .notification
            .as_ref()
            .map(|n| (n.subject, n.destination, n.notifier))
        {
            Some((Subject::SenderQp(qp), to, _)) => {
                let holds = flows(setup).any(|flow| (flow.source, flow.sender_qp) == (to, qp));
                let why = || format!("no flow has QP {qp} at {to}");
                ledger.holds(S::CnpQp, holds, why, &[own.index]);
            }
            Some((Subject::ReceiverQp { receiver, qp }, to, from)) => {
                fast_cnp(setup, own, (receiver, from, to), qp, ledger);
            }
            _ => {}
        }
    }
    ledger.record_untestable_all(
        &[S::CnpQp],
        if fast {
            "the device sends Fast CNPs"
        } else {
            others
        },
    );
    let of_fast = [
        S::FastCnpByReceiver,
        S::FastCnpOriginalCopied,
        S::FastCnpQpCopied,
    ];
    ledger.record_untestable_all(&of_fast, if fast { others } else { plain });

    let allowed = (LASTS.as_nanos() + fcn_observe::rules::TOLERANCE)
        * u64::from(setup.limits.flow_rate)
        / 1_000_000_000;
    if let Some(beyond) = over_rate(&told, setup.limits.flow_rate) {
        let (times, many, rate) = (beyond.len(), told.len(), setup.limits.flow_rate);
        let why = || format!("{times} of {many} exceeded {rate} per second about one flow");
        for frame in beyond {
            ledger.fails(S::CnpInterval, why, &[frame]);
        }
    }
    if marked.values().any(|count| u64::from(*count) > allowed + 1) && !told.is_empty() {
        ledger.record_judgeable_all(&[S::CnpInterval]);
    } else {
        ledger.record_untestable_all(
            &[S::CnpInterval],
            "too few data were marked to exceed the limit",
        );
    }
}

fn fast_cnp(
    setup: &Setup<'_>,
    frame: &DeviceFrame<'_>,
    (receiver, from, to): (IpAddr, IpAddr, IpAddr),
    qp: fcn_wire::Qp,
    ledger: &mut Ledger,
) {
    use Statement as S;
    let shows = &[frame.index];
    let of_sender = || flows(setup).filter(move |flow| flow.source == to);
    let holds = of_sender().any(|flow| flow.destination == receiver);
    let why = || format!("{to} has sent nothing to {receiver}");
    ledger.holds(S::FastCnpOriginalCopied, holds, why, shows);
    if !holds {
        return;
    }
    let why = || format!("the source is {from}, but the original destination is {receiver}");
    ledger.holds(S::FastCnpByReceiver, from == receiver, why, shows);
    let holds = of_sender().any(|flow| flow.receiver_qp == qp);
    ledger.holds(
        S::FastCnpQpCopied,
        holds,
        || format!("{to} has sent nothing to QP {qp}"),
        shows,
    );
}

fn off((marked, nothing): (bool, &str), told: &[&DeviceFrame<'_>], ledger: &mut Ledger) {
    let off = Statement::FastCnpOff;
    if !marked {
        return ledger.record_untestable_all(&[off], nothing);
    }
    ledger.record_judgeable_all(&[off]);
    for frame in told.iter().filter(|own| own.is_of(Kind::FastCnp1)) {
        let why = || "the device sent a Fast CNP although the feature was not enabled".to_owned();
        ledger.fails(off, why, &[frame.index]);
    }
}
