//! Check of a receiver: the scenario's senders write to it, and in one step all their data are
//! marked CE on the way.

use super::bench::{Record, parse};
use super::flows::{FlowLearner, LearntFlow};
use super::judge::{ClassifiedFrames, DeviceFrame, Ledger, over_rate};
use super::plan::{Plan, Setup, Span, WIRE_OVERHEAD, kinds};
use super::statements::{Statement, Test};
use crate::scenario::model::{Flow, Simulation};
use crate::units::{Ps, Rate};
use fcn_observe::{DataPacket, Ecn, FlowKey};
use fcn_tool::failure::{Failure, Result};
use fcn_wire::finding::Family;
use fcn_wire::{Kind, Qp, Subject};
use std::collections::HashMap;
use std::net::IpAddr;

/// Step in which no data are marked.
const UNMARKED: &str = "unmarked";
/// Step in which all data are marked.
const MARKED: &str = "marked";
/// Step in which data are marked now and then.
const ANSWERED: &str = "bursts";
/// Number of periods in which data are marked there, and their length.
const BURSTS: u64 = 8;
const BURST: Ps = Ps::from_nanos(200_000);
/// Time between these periods, and by how much each one is longer than the one before it: a device
/// that is always late does not answer one burst during the next.
const PAUSE: Ps = Ps::from_nanos(800_000);
const LONGER: Ps = Ps::from_nanos(100_000);
/// Length of the other steps.
const LASTS: Ps = Ps::from_nanos(4_000_000);
/// Octets of a data packet without its payload.
const HEADERS: u64 = 14 + 40 + 8 + 12 + 16 + 4;

/// Times of the marked data of each flow.
type Marks = HashMap<FlowKey, Vec<Span>>;
/// Times of the notifications about each flow, and the frames that show them.
type Answers = HashMap<FlowKey, Vec<(Span, usize)>>;

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
    plan.marks.push(begin..plan.end);
    let mut at = plan.end + PAUSE;
    for number in 0..BURSTS {
        plan.marks.push(at..at + BURST);
        at = at + BURST + PAUSE + Ps(LONGER.0 * number);
    }
    let what = format!("their data, {BURSTS} times marked CE for {BURST}");
    plan.step(ANSWERED, what, at.since(plan.end), Vec::new());
    plan.step(
        "rest",
        "their data, no longer marked".to_owned(),
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
    let mut marked = Marks::new();
    let mut learner = FlowLearner::new(setup.simulation);
    let mut unmarked = false;
    let begin = plan.marks.first().map_or(Ps::MAX, |marks| marks.start);
    for (_, passed, bytes) in record.iter() {
        let frame = parse(bytes, &setup.simulation.profile);
        learner.learn(&frame);
        if passed.by_device {
            continue;
        }
        let Some(data) = DataPacket::from_frame(&frame) else {
            continue;
        };
        if data.ecn == Ecn::Ce {
            marked.entry(data.flow()).or_default().push(passed.span());
        }
        unmarked |= passed.at < begin;
    }
    // Data of the device itself are not a flow to it.
    let is_here = |flow: &LearntFlow| flows(setup).any(|own| own.destination == flow.key.receiver);
    let known: Vec<LearntFlow> = learner.flows.into_iter().filter(is_here).collect();
    let mut answers = Answers::new();
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
                let mut flows = known.iter();
                let named = (to, Some(qp));
                let flow = flows.find(|flow| (flow.key.sender, flow.sender_qp) == named);
                let why = || format!("no flow has QP {qp} at {to}");
                ledger.holds(S::CnpQp, flow.is_some(), why, &[own.index]);
                if let Some(flow) = flow {
                    let answers = answers.entry(flow.key).or_default();
                    answers.push((own.captured.span(), own.index));
                }
            }
            Some((Subject::ReceiverQp { receiver, qp }, to, from)) => {
                let flow = fast_cnp(&known, own, (receiver, from, to), qp, ledger);
                if let Some(flow) = flow {
                    let answers = answers.entry(flow).or_default();
                    answers.push((own.captured.span(), own.index));
                }
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

    time_and_amount(setup, plan, record, (&marked, &answers), ledger);
    if let Some(why) = setup.lateness(plan) {
        ledger.excuse(&[S::CnpLatency, S::CnpShare, S::CnpEachFlow], &why);
    }

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
    if marked
        .values()
        .any(|marks| marks.len() as u64 > allowed + 1)
        && !told.is_empty()
    {
        ledger.record_times(Test::Statement(S::CnpInterval), told.len());
    } else {
        ledger.record_untestable_all(
            &[S::CnpInterval],
            "too few data were marked to exceed the limit",
        );
    }
}

/// Judges when, how often and about which flows the device answers marks.
fn time_and_amount(
    setup: &Setup<'_>,
    plan: &Plan,
    record: &Record,
    (marked, answers): (&Marks, &Answers),
    ledger: &mut Ledger,
) {
    use Statement as S;
    let all = [S::CnpLatency, S::CnpShare, S::CnpEachFlow];
    if answers.is_empty() {
        return ledger.record_untestable_all(&all, "no notification of the device names a flow");
    }
    if plan.time(ANSWERED).is_none() {
        return;
    }
    let most = setup.limits.latency;
    // Notifications without a cause are blamed already.
    let caused = answers
        .iter()
        .filter(|_| !ledger.is_broken(S::CnpWithCause));
    let caused: Vec<_> = caused.collect();
    ledger.record_untestable_all(&[S::CnpLatency], "notifications do not need a mark");
    for (flow, answers) in caused {
        let marks = marked.get(flow).map_or(&[][..], Vec::as_slice);
        for (answer, index) in answers {
            let before = marks.iter().rev().find(|mark| mark.since <= answer.at);
            let Some(cause) = before else {
                continue;
            };
            let since = answer.shortest_since(*cause);
            let why =
                || format!("it was sent {since} after the flow's last mark; the limit is {most}");
            ledger.holds(S::CnpLatency, since <= most, why, &[*index]);
        }
    }
    let is_late = ledger.is_broken(S::CnpLatency);
    let (mut asked, mut answered) = (0_u32, 0_u32);
    for (flow, marks) in marked {
        let told = answers.get(flow).map_or(&[][..], Vec::as_slice);
        let why = || format!("no notification is about QP {}", flow.receiver_qp);
        ledger.holds(S::CnpEachFlow, !told.is_empty(), why, &[]);
        if told.is_empty() {
            continue;
        }
        for burst in &plan.marks {
            let mut marks = marks.iter().filter(|mark| burst.contains(&mark.at));
            let Some(first) = marks.next() else { continue };
            asked += 1;
            let answer = told.iter().find(|(answer, _)| answer.at >= first.since);
            let Some((answer, _)) = answer.filter(|(at, _)| at.shortest_since(*first) <= most)
            else {
                continue;
            };
            answered += 1;
            let what = "from the first mark of a burst to the notification";
            ledger.record_latency(what, answer.longest_since(*first));
        }
    }
    let is_enough = f64::from(answered) >= f64::from(asked) * setup.limits.share;
    if asked == 0 || !is_enough && (is_late || record.lost_here > 0) {
        let why = match (asked, is_late) {
            (0, _) => "no data were marked".to_owned(),
            (_, true) => "notifications are late: see cnp.latency".to_owned(),
            _ => record.loss(),
        };
        return ledger.record_untestable_all(&[S::CnpShare], &why);
    }
    let why = || {
        format!(
            "of {asked} bursts of marks on a flow, {answered} were answered within {most}; the \
             limit is {:.0} %",
            setup.limits.share * 100.0
        )
    };
    ledger.holds(S::CnpShare, is_enough, why, &[]);
    ledger.record_times(
        Test::Statement(S::CnpShare),
        asked.saturating_sub(1) as usize,
    );
}

/// Judges a Fast CNP of the device; returns the flow that it names.
fn fast_cnp(
    known: &[LearntFlow],
    frame: &DeviceFrame<'_>,
    (receiver, from, to): (IpAddr, IpAddr, IpAddr),
    receiver_qp: Qp,
    ledger: &mut Ledger,
) -> Option<FlowKey> {
    use Statement as S;
    let shows = &[frame.index];
    let mut flows = known.iter().filter(|flow| flow.key.sender == to);
    let holds = flows.any(|flow| flow.key.receiver == receiver);
    let why = || format!("{to} has sent nothing to {receiver}");
    ledger.holds(S::FastCnpOriginalCopied, holds, why, shows);
    if !holds {
        return None;
    }
    let why = || format!("the source is {from}, but the original destination is {receiver}");
    ledger.holds(S::FastCnpByReceiver, from == receiver, why, shows);
    let key = FlowKey {
        sender: to,
        receiver,
        receiver_qp,
    };
    let holds = known.iter().any(|flow| flow.key == key);
    let why = || format!("{to} has sent nothing to QP {receiver_qp}");
    ledger.holds(S::FastCnpQpCopied, holds, why, shows);
    holds.then_some(key)
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
