//! Judges when, how often and about which packets a congestion point notifies.

use super::super::bench::Record;
use super::super::judge::{DeviceFrame, Ledger};
use super::super::plan::{DataSent, Plan, Setup, Span};
use super::super::statements::{Statement, Test};
use super::super::traffic::{Passage, Queue, Traffic, completed};
use super::{EACH, ONE, TRACED};
use crate::units::Ps;
use fcn_observe::FlowKey;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;

/// A notification that names a data packet.
#[derive(Clone, Copy)]
pub struct Identified<'o, 'a, 'p> {
    /// The notification.
    pub frame: &'o DeviceFrame<'a>,
    /// The data packet, or the last one of a flow of many.
    pub sent: &'p DataSent,
}

/// Judges notifications about the plan's data, at a queue with these thresholds.
pub fn judge(
    setup: &Setup<'_>,
    (plan, record): (&Plan, &Record),
    traffic: &Traffic,
    (kmin, kmax): (u64, u64),
    told: &[Identified<'_, '_, '_>],
    ledger: &mut Ledger,
) {
    let queue = Queue::new(traffic);
    // Beyond Kmax the queue may be full.
    let is_deep = |index: usize| {
        let packet = traffic.packets.get(index);
        packet.is_none_or(|packet| queue.depth(packet.came).1 > kmax)
    };
    traffic.judge_loss(record, &completed(plan), is_deep, ledger);
    let all = [
        Statement::CongestionLatency,
        Statement::CongestionShare,
        Statement::CongestionAgain,
        Statement::CongestionQueue,
        Statement::CongestionOnce,
        Statement::TraceOwnNode,
    ];
    if told.is_empty() {
        let why = "no notification of the device names a data packet";
        return ledger.record_untestable_all(&all, why);
    }
    let answered = answers(setup, traffic, &queue, kmin, told, ledger);
    share(
        setup,
        (plan, record),
        traffic,
        (&queue, kmax),
        &answered,
        ledger,
    );
    again(setup, (plan, record), traffic, (&queue, kmax), told, ledger);
    if let Some(why) = setup.lateness(plan) {
        let by_time = [
            Statement::CongestionLatency,
            Statement::CongestionShare,
            Statement::CongestionAgain,
            Statement::CongestionQueue,
            Statement::ForwardedAll,
        ];
        ledger.excuse(&by_time, &why);
    }
}

/// Judges each notification that names a single packet; returns the packets.
fn answers(
    setup: &Setup<'_>,
    traffic: &Traffic,
    queue: &Queue,
    kmin: u64,
    told: &[Identified<'_, '_, '_>],
    ledger: &mut Ledger,
) -> HashSet<usize> {
    use Statement as S;
    let most = setup.limits.latency;
    let mut answered = HashSet::new();
    let mut by_notifier: HashMap<(usize, IpAddr), usize> = HashMap::new();
    for Identified { frame, sent } in told.iter().filter(|told| !told.sent.is_of_many) {
        let Some(index) = traffic.find(sent.flow, sent.number) else {
            continue;
        };
        let (Some(packet), Some(notification)) = (traffic.packets.get(index), &frame.notification)
        else {
            continue;
        };
        let shows = &[frame.index];
        let span = frame.captured.span();
        answered.insert(index);
        let before = by_notifier.insert((index, notification.notifier), frame.index);
        let why = || "several notifications are about the same packet".to_owned();
        let both = [before.unwrap_or(frame.index), frame.index];
        ledger.holds(S::CongestionOnce, before.is_none(), why, &both);
        if before.is_some() {
            continue;
        }
        let latency = span.shortest_since(packet.came);
        let why = || format!("it left {latency} after the packet had come; the limit is {most}");
        ledger.holds(S::CongestionLatency, latency <= most, why, shows);
        ledger.record_latency(
            "from a data packet to its notification",
            span.longest_since(packet.came),
        );
        let (_, depth) = queue.depth(packet.came);
        let why =
            || format!("its packet found at most {depth} octets in the queue (Kmin is {kmin})");
        ledger.holds(S::CongestionQueue, depth > kmin / 2, why, shows);
    }
    answered
}

/// Judges the share of packets above Kmax that are told about.
fn share(
    setup: &Setup<'_>,
    (plan, record): (&Plan, &Record),
    traffic: &Traffic,
    (queue, kmax): (&Queue, u64),
    answered: &HashSet<usize>,
    ledger: &mut Ledger,
) {
    let statement = Statement::CongestionShare;
    let steps = [EACH, TRACED].into_iter().filter_map(|id| plan.time(id));
    let steps: Vec<_> = steps.collect();
    let packets = traffic.packets.iter().enumerate();
    let deep = packets.filter(|(_, packet)| {
        // A full queue drops packets.
        let is_judged =
            !packet.left.is_empty() && steps.iter().any(|step| step.contains(&packet.came.at));
        is_judged && queue.depth(packet.came).0 > kmax
    });
    let (mut all, mut told) = (0, 0);
    for (index, _) in deep {
        all += 1;
        told += usize::from(answered.contains(&index));
    }
    if all == 0 {
        let why = "no packet found the queue above Kmax";
        return ledger.record_untestable_all(&[statement], why);
    }
    let is_enough = told as f64 >= all as f64 * setup.limits.share;
    if !is_enough && record.lost_here > 0 {
        return ledger.record_untestable_all(&[statement], &record.loss());
    }
    ledger.record_times(Test::Statement(statement), all);
    if !is_enough {
        let why = || {
            format!(
                "of {all} flows whose packet found more than {kmax} octets in the queue, {told} \
                 were told; the limit is {:.0} %",
                setup.limits.share * 100.0
            )
        };
        ledger.fails(statement, why, &[]);
    }
}

/// Judges that a flow is told again while it stays congested.
fn again(
    setup: &Setup<'_>,
    (plan, record): (&Plan, &Record),
    traffic: &Traffic,
    (queue, kmax): (&Queue, u64),
    told: &[Identified<'_, '_, '_>],
    ledger: &mut Ledger,
) {
    let (statement, most) = (Statement::CongestionAgain, setup.limits.latency);
    let Some(step) = plan.time(ONE) else { return };
    let mut deep: BTreeMap<FlowKey, (&Passage, &Passage)> = BTreeMap::new();
    let packets = traffic.packets.iter();
    for packet in packets.filter(|packet| step.contains(&packet.came.at)) {
        if queue.depth(packet.came).0 > kmax {
            deep.entry(packet.flow).or_insert((packet, packet)).1 = packet;
        }
    }
    for (flow, (first, last)) in deep {
        if last.came.shortest_since(first.came) <= most {
            continue;
        }
        let about = told.iter().filter(|told| told.sent.flow == flow);
        let times: Vec<Span> = about.map(|told| told.frame.captured.span()).collect();
        // If all notifications are late, the first one is so for a reason that is blamed already.
        let is_late = ledger.is_broken(Statement::CongestionLatency);
        let late = times.first().copied().filter(|_| is_late);
        let mut before = late.unwrap_or(first.came);
        let mut worst = Ps(0);
        for span in times.into_iter().chain([last.came]) {
            if span.at <= last.came.at {
                worst = worst.max(span.shortest_since(before));
                before = span;
            }
        }
        if worst > most && record.lost_here > 0 {
            ledger.record_untestable_all(&[statement], &record.loss());
            continue;
        }
        let why = || {
            format!(
                "about QP {} of {} there was none for {worst}, although its packets found more \
                 than {kmax} octets in the queue; the limit is {most}",
                flow.receiver_qp, flow.receiver
            )
        };
        ledger.holds(statement, worst <= most, why, &[]);
    }
    let why = "no flow's packets found the queue above Kmax for longer than the limit on latency";
    ledger.record_untestable_all(&[statement], why);
}
