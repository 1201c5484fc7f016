//! Check of a sender: it writes to the scenario's receivers and gets valid and invalid
//! notifications, while its rates are measured.

use super::flows::LearntFlow;
use super::judge::{ClassifiedFrames, Ledger, data};
use super::plan::{
    FrameContent, PUNCTUAL, Plan, Planned, Setup, UNTRUSTED_SOURCE, emit_packet, framed,
};
use super::statements::Statement;
use crate::ioam::IoamTrace;
use crate::scenario::model::Flow;
use crate::units::Ps;
use fcn_observe::FlowKey;
use fcn_tool::failure::{Failure, Result};
use fcn_wire::Profile;
use fcn_wire::cnp::CnpRepr;
use fcn_wire::emit::{self, Carrier};
use fcn_wire::fast_cnp::FastCnpRepr;
use fcn_wire::ioam::{IoamOption, NodeValues, OptType, filled_trace};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};
use std::ops::Range;

/// Another address, to which nothing is sent.
const ELSEWHERE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xbad, 0, 0, 0, 0, 2);
/// Time that data flow before the first step.
const BEFORE: Ps = Ps::from_nanos(8_000_000);
/// Length of a step.
const LASTS: Ps = Ps::from_nanos(4_000_000);
/// Time within a step that the sender may take to react.
const REACTION: Ps = Ps::from_nanos(1_000_000);
/// Length of a rate measurement.
const WINDOW: Ps = Ps::from_nanos(3_000_000);
/// Step after the last notification, and its length.
const RECOVERY: &str = "recovery";
const RECOVERS: Ps = Ps::from_nanos(12_000_000);
/// A rate above this multiple of the one while notified counts as higher.
const HIGHER: f64 = 1.25;
/// Length of the periods by which the time of a reaction is measured, and their distance.
const PERIOD: Ps = Ps::from_nanos(500_000);
const SLIDE: Ps = Ps::from_nanos(50_000);
/// Time between notifications, which are sent during the whole step, so that a sender that recovers
/// quickly still has a lower rate.
const GAP: Ps = Ps::from_nanos(25_000);
/// A rate below this fraction of the previous one counts as lower.
const LOWER: f64 = 0.8;
/// Minimum number of packets before a message for a comparison with those after it.
const FEWEST: usize = 8;

/// Returns the flows that begin at the device.
fn flows<'s>(setup: &Setup<'s>) -> Vec<&'s Flow> {
    let flows = setup.simulation.flows.iter();
    flows.filter(|flow| flow.from == setup.device).collect()
}

/// Message sent to the sender in a step.
#[derive(Clone, Copy)]
enum Message {
    Cnp,
    Fast {
        from: Ipv6Addr,
        original: Option<Ipv6Addr>,
        traced: bool,
    },
}

/// A step: its identifier, the index of its flow, its message, its description, and the statements
/// tested.
struct Step {
    id: &'static str,
    flow: usize,
    message: Message,
    what: &'static str,
    obeyed: Option<Statement>,
    ignored: Option<Statement>,
    others: Option<Statement>,
}

/// Returns the steps.
fn steps(setup: &Setup<'_>) -> Vec<Step> {
    use Statement as S;
    let listed = setup.listed();
    let fast = |from, original, traced| Message::Fast {
        from,
        original,
        traced,
    };
    let mut all = Vec::new();
    if let Some(from) = listed
        && flows(setup)
            .first()
            .is_some_and(|flow| flow.source.is_ipv6())
    {
        if setup.off {
            return vec![Step {
                id: "fast-cnp",
                flow: 0,
                message: fast(from, None, false),
                what: "Fast CNPs of a switch",
                obeyed: None,
                ignored: Some(S::FastCnpOff),
                others: None,
            }];
        }
        all.extend([
            Step {
                id: "stranger",
                flow: 0,
                message: fast(UNTRUSTED_SOURCE, None, false),
                what: "Fast CNPs from a source that is not on the access list",
                obeyed: None,
                ignored: Some(S::FastCnpAccessList),
                others: None,
            },
            Step {
                id: "elsewhere",
                flow: 0,
                message: fast(from, Some(ELSEWHERE), false),
                what: "Fast CNPs with the right Destination QP and another original destination",
                obeyed: None,
                ignored: Some(S::FastCnpPairCounts),
                others: None,
            },
            Step {
                id: "fast-cnp",
                flow: 0,
                message: fast(from, None, false),
                what: "Fast CNPs of a switch (option 1)",
                obeyed: Some(S::FastCnpObeyed),
                ignored: None,
                others: Some(S::FastCnpOthersLeft),
            },
            Step {
                id: "fast-cnp-2",
                flow: 1,
                message: fast(from, None, true),
                what: "Fast CNPs of a switch (option 2)",
                obeyed: Some(S::FastCnpTraceObeyed),
                ignored: None,
                others: None,
            },
        ]);
    }
    if !setup.off {
        all.push(Step {
            id: "cnp",
            flow: if all.is_empty() { 0 } else { 2 },
            message: Message::Cnp,
            what: "CNPs from the receiver",
            obeyed: Some(S::CnpObeyed),
            ignored: None,
            others: Some(S::CnpOthersLeft),
        });
    }
    all
}

/// Plans the check.
///
/// # Errors
/// No flow begins at the device.
pub fn plan(setup: &Setup<'_>) -> Result<Plan> {
    let mut plan = Plan::new(setup.device);
    let flows = flows(setup);
    let mut receivers: Vec<usize> = flows.iter().map(|flow| flow.to).collect();
    receivers.sort_unstable();
    receivers.dedup();
    if receivers.is_empty() {
        return Err(Failure::usage("no flow starts at the device"));
    }
    plan.peers = receivers;
    plan.waits = true;
    plan.learns_flows = true;
    plan.punctual = Some(PUNCTUAL);
    let start = flows
        .iter()
        .map(|flow| flow.start)
        .max()
        .unwrap_or_default();
    plan.step(
        "before",
        "acknowledgements only".to_owned(),
        start + BEFORE,
        Vec::new(),
    );
    for step in steps(setup) {
        let recovers = step.obeyed.map(|_| Statement::SenderRecovers);
        let wanted = [step.obeyed, step.ignored, step.others, recovers];
        let wanted: Vec<Statement> = wanted.into_iter().flatten().collect();
        if step.flow >= flows.len() || !setup.wants(&wanted) {
            continue;
        }
        let (index, message) = (step.flow, step.message);
        let make = |_| {
            let profile = setup.simulation.profile.clone();
            let device = setup.device;
            FrameContent::Learnt {
                flow: index,
                make: Box::new(move |flow| {
                    let packet = notification(&profile, flow, message)?;
                    Some(framed((device, device), &packet))
                }),
            }
        };
        let frames = (0..LASTS.0 / GAP.0).map(|n| Planned {
            at: plan.end + Ps(GAP.0 * n),
            link: 0,
            content: make(n),
        });
        let frames: Vec<_> = frames.collect();
        let number = step.flow + 1;
        let what = format!("{} {} about flow {number}", frames.len(), step.what);
        plan.step(step.id, what, LASTS, frames);
    }
    if !setup.off && setup.wants(&[Statement::SenderRecovers]) {
        let what = "acknowledgements only, as before".to_owned();
        plan.step(RECOVERY, what, RECOVERS, Vec::new());
    }
    Ok(plan)
}

/// Builds a message about a flow; none if the QP that it has to name is unknown.
fn notification(profile: &Profile, flow: &LearntFlow, message: Message) -> Option<Vec<u8>> {
    let FlowKey {
        sender,
        receiver,
        receiver_qp,
    } = flow.key;
    let Message::Fast {
        from,
        original,
        traced,
    } = message
    else {
        let (carrier, cnp) = (
            Carrier::new(receiver, sender),
            CnpRepr::new(flow.sender_qp?),
        );
        return Some(emit_packet(|out| emit::cnp(&carrier, &cnp, profile, out)));
    };
    let original_destination = match (original, receiver) {
        (Some(other), _) => other,
        (None, IpAddr::V6(own)) => own,
        (None, IpAddr::V4(_)) => ELSEWHERE,
    };
    let deep = NodeValues {
        hop_limit: 63,
        node_id: 1,
        // A full link with a queue.
        namespace_data: 0x0064_0064,
        transit_delay: 50_000,
        queue_depth: 200_000,
        ..NodeValues::default()
    };
    let trace = filled_trace(IoamTrace::TYPE, 0, [deep].iter()).unwrap_or_default();
    let option = match traced {
        false => FastCnpRepr::Option1 {
            original_destination,
        },
        true => FastCnpRepr::Option2 {
            ioam: IoamOption {
                reserved: 0,
                opt_type: OptType::Preallocated,
                body: &trace,
            },
            original_destination,
        },
    };
    let carrier = Carrier::new(from.into(), sender);
    let cnp = CnpRepr::new(receiver_qp);
    Some(emit_packet(|out| {
        emit::fast_cnp(&carrier, &option, &cnp, profile, out)
    }))
}

/// A flow's data in two windows.
#[derive(Debug, Default)]
struct Change {
    packets_before: usize,
    before: u64,
    after: u64,
    paths_before: BTreeSet<u32>,
    paths_after: BTreeSet<u32>,
    frames: Vec<usize>,
}

impl Change {
    fn is_lower(&self) -> bool {
        (self.after as f64) < self.before as f64 * LOWER
    }

    fn detoured(&self) -> bool {
        !self.paths_after.is_empty() && self.paths_after != self.paths_before
    }

    fn text(&self) -> String {
        format!(
            "{} octets in 3 ms before, {} after",
            self.before, self.after
        )
    }
}

fn change(classified: &ClassifiedFrames<'_>, flow: FlowKey, step: &Range<Ps>) -> Change {
    let begin = step.start;
    let before = Ps(begin.0.saturating_sub(WINDOW.0))..begin;
    let after = begin + REACTION..begin + REACTION + WINDOW;
    let mut change = Change::default();
    for (frame, data) in data(&classified.generated).filter(|(_, data)| data.flow() == flow) {
        let octets = frame.parsed.wire_len() as u64;
        let label = frame.parsed.ip().map_or(0, |ip| ip.flow_label);
        if before.contains(&frame.captured.at) {
            change.packets_before += 1;
            change.before += octets;
            change.paths_before.insert(data.entropy(label));
        } else if after.contains(&frame.captured.at) {
            change.after += octets;
            change.paths_after.insert(data.entropy(label));
            if change.frames.len() < 4 {
                change.frames.push(frame.index);
            }
        }
    }
    change
}

/// Returns the octets that a flow sent within a time.
fn octets(classified: &ClassifiedFrames<'_>, flow: FlowKey, time: &Range<Ps>) -> u64 {
    let data = data(&classified.generated).filter(|(_, data)| data.flow() == flow);
    let within = data.filter(|(frame, _)| time.contains(&frame.captured.at));
    within
        .map(|(frame, _)| frame.parsed.wire_len() as u64)
        .sum()
}

/// Returns the time from the beginning of a step to the first period with a lower rate, if the flow
/// sent `before` octets in the window before.
fn delay(
    classified: &ClassifiedFrames<'_>,
    flow: FlowKey,
    step: &Range<Ps>,
    before: u64,
) -> Option<Ps> {
    let lower = before as f64 * (PERIOD.0 as f64 / WINDOW.0 as f64) * LOWER;
    let starts = (0..(LASTS.0 - PERIOD.0) / SLIDE.0).map(|n| step.start + Ps(SLIDE.0 * n));
    let mut lowered = starts
        .filter(|start| (octets(classified, flow, &(*start..*start + PERIOD)) as f64) < lower);
    Some(lowered.next()?.since(step.start))
}

/// Judges a sender.
pub fn judge(
    setup: &Setup<'_>,
    plan: &Plan,
    classified: &ClassifiedFrames<'_>,
    ledger: &mut Ledger,
) {
    let flows = &plan.flows;
    let mut slowed = BTreeSet::new();
    let mut lowered = Vec::new();
    for step in steps(setup) {
        let all = [step.obeyed, step.ignored, step.others];
        let all: Vec<Statement> = all.into_iter().flatten().collect();
        let Some(flow) = flows.get(step.flow) else {
            let why = match flows.is_empty() {
                true => "the device sent no data",
                false => "the test needs another flow: give the sender three (--set flows=3)",
            };
            ledger.record_untestable_all(&all, why);
            continue;
        };
        if matches!(step.message, Message::Cnp) && flow.sender_qp.is_none() {
            let why = "the QP at the sender is unknown, as it set up no connection by RDMA CM";
            ledger.record_untestable_all(&all, why);
            continue;
        }
        let Some(time) = plan.time(step.id) else {
            continue;
        };
        let seen = change(classified, flow.key, &time);
        if seen.packets_before < FEWEST {
            ledger.record_untestable_all(
                &all,
                "the sender sent too little of the flow before the step; it may still be slow \
                 from an earlier one",
            );
            continue;
        }
        let is_fast = matches!(step.message, Message::Fast { .. });
        let reacted = seen.is_lower() || is_fast && seen.detoured();
        if let Some(statement) = step.obeyed {
            if seen.is_lower() {
                lowered.push((flow, seen.after));
                if let Some(delay) = delay(classified, flow.key, &time, seen.before) {
                    let what = "from the first notification to a rate a fifth lower";
                    ledger.record_latency(what, delay);
                }
            }
            slowed.insert(step.flow);
            ledger.holds(
                statement,
                reacted,
                || format!("{flow}: {}", seen.text()),
                &seen.frames,
            );
        }
        if let Some(statement) = step.ignored {
            ledger.holds(
                statement,
                !reacted,
                || format!("{flow}: {}", seen.text()),
                &seen.frames,
            );
        }
        let Some(statement) = step.others else {
            continue;
        };
        let rest = flows
            .iter()
            .enumerate()
            .filter(|(index, _)| !slowed.contains(index));
        let rest: Vec<_> = rest
            .map(|(_, flow)| (flow, change(classified, flow.key, &time)))
            .collect();
        let rest: Vec<_> = rest
            .into_iter()
            .filter(|(_, seen)| seen.packets_before >= FEWEST)
            .collect();
        if rest.is_empty() {
            ledger.record_untestable_all(
                &[statement],
                "the sender has no other flow that was not notified about (--set flows=4)",
            );
        }
        for (flow, seen) in rest {
            ledger.holds(
                statement,
                !seen.is_lower(),
                || format!("{flow}: {}", seen.text()),
                &seen.frames,
            );
        }
    }
    let Some(time) = plan.time(RECOVERY) else {
        return;
    };
    let last = Ps(time.end.0 - WINDOW.0)..time.end;
    for (flow, notified) in lowered {
        let recovered = octets(classified, flow.key, &last);
        let why = || format!("{flow}: {notified} octets in 3 ms while notified, {recovered} later");
        let is_higher = recovered as f64 > notified as f64 * HIGHER;
        ledger.holds(Statement::SenderRecovers, is_higher, why, &[]);
    }
    let why = "no notification lowered a rate";
    ledger.record_untestable_all(&[Statement::SenderRecovers], why);
}
