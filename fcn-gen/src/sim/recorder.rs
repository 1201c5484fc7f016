//! Counts packets as they pass, for the ground truth and the comparison's figures. Memory is
//! bounded, regardless of the length.

use super::connection::Connection;
use super::frames::Frames;
use super::outcome::{Half, Metrics, Outcome, SAMPLES, Timeouts};
use super::packet::{CE, Packet, PacketKind, WIRE_OVERHEAD};
use super::port::{Port, Work};
use crate::ioam::IoamTrace;
use crate::scenario::model::{Flow, NodeKind, Simulation, Thresholds};
use crate::truth::{
    FlowTruth, Note, Notifications, SeenTruth, SwitchTruth, TRUTH_SCHEMA, TRUTH_VERSION, Truth,
    VantageTruth,
};
use crate::units::{Ps, Rate};
use fcn_wire::{Kind, Opcode};
use std::collections::BTreeMap;

/// Maximum time between notifications of several switches about a flow that belong to one episode:
/// the usual minimum interval between two notifications of one congestion point.
const EPISODE: Ps = Ps::from_nanos(50_000);

/// Share of what a flow asks for from which it counts as satisfied: a window's or a message's end
/// costs a flow some per cent of its time.
const SATISFIED: f64 = 0.95;

/// Returns the payload in bit/s that a flow asks for: what its rate limit and the links of its
/// hosts, of `host_rates` bit/s by node, allow.
fn demand(flow: &Flow, host_rates: &[u64]) -> f64 {
    let ends = [flow.from, flow.to].map(|host| host_rates[host]);
    let limit = flow.rate_limit.map(Rate::bits_per_second);
    let rate = ends.into_iter().chain(limit).min().unwrap_or(0);
    let trace = flow.ioam.map_or(0, IoamTrace::full_len);
    let payload = u32::from(flow.mtu);
    let frame = Frames::len(flow, Opcode::RC_WRITE_MIDDLE, payload, trace) + WIRE_OVERHEAD;
    rate as f64 * f64::from(payload) / f64::from(frame)
}

/// Returns the mean of the rates sampled from `from` until before `to`; 0 if there are none.
fn mean(samples: &[(Ps, f64)], from: Ps, to: Ps) -> f64 {
    let within = samples.iter().filter(|(at, _)| (from..to).contains(at));
    let (sum, count) = within.fold((0.0, 0), |(sum, count), (_, rate)| (sum + rate, count + 1));
    sum / f64::from(count.max(1))
}

/// Totals up to a point in time.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    at: Ps,
    /// Work of each port.
    ports: Vec<Work>,
    /// Octets of payload delivered, of all flows.
    delivered: u64,
}

impl Totals {
    /// Returns the totals of connections and ports up to `at`.
    pub fn at(at: Ps, connections: &[Connection], ports: &[Port]) -> Self {
        Self {
            at,
            ports: ports.iter().map(|port| port.worked(at)).collect(),
            delivered: connections.iter().map(|c| c.counts.delivered).sum(),
        }
    }

    fn work(&self, port: usize) -> Work {
        self.ports.get(port).copied().unwrap_or_default()
    }
}

/// Collects the counts of a simulation.
pub struct Recorder<'s> {
    simulation: &'s Simulation,
    vantage_points: Vec<VantageTruth>,
    /// By flow and vantage point.
    seen: Vec<Vec<SeenTruth>>,
    notifications: Notifications,
    /// Statistics by node; only those of switches are filled in.
    pub switches: Vec<SwitchTruth>,
    /// Figures that are computed while packets pass.
    pub metrics: Metrics,
    /// Sampling interval.
    pub interval: Ps,
    /// Number of queues above their Kmax, and the time since which there has been one.
    above: usize,
    above_since: Ps,
    /// Totals at the end of the warm-up, and at half of the remaining time.
    pub warm: Totals,
    pub half: Totals,
    /// By flow: the last node that notified, and the time.
    notified_by: Vec<Option<(u32, Ps)>>,
    /// Time of the last acknowledgement that completed a flow.
    pub last_finished: Ps,
}

impl<'s> Recorder<'s> {
    /// Creates a recorder without counts.
    pub fn new(simulation: &'s Simulation) -> Self {
        let vantage_points = simulation.vantage_names().into_iter();
        let vantage_points: Vec<_> = vantage_points
            .map(|name| VantageTruth {
                name,
                ..VantageTruth::default()
            })
            .collect();
        let at_points = (0..vantage_points.len()).map(|vantage_point| SeenTruth {
            vantage_point,
            ..SeenTruth::default()
        });
        let switches = simulation.nodes.iter().map(|node| SwitchTruth {
            name: node.name.clone(),
            ..SwitchTruth::default()
        });
        let interval = Ps((simulation.duration.0 / SAMPLES as u64).max(1));
        Self {
            seen: vec![at_points.collect(); simulation.flows.len()],
            vantage_points,
            notifications: Notifications::default(),
            switches: switches.collect(),
            metrics: Metrics {
                queue_over_time: (0..SAMPLES as u64)
                    .map(|sample| (Ps(sample * interval.0), 0))
                    .collect(),
                ..Metrics::default()
            },
            interval,
            above: 0,
            above_since: Ps(0),
            warm: Totals::default(),
            half: Totals::default(),
            notified_by: vec![None; simulation.flows.len()],
            last_finished: Ps(0),
            simulation,
        }
    }

    /// Records a packet at a vantage point; `note` is present if it is a notification.
    pub fn captured(
        &mut self,
        vantage_point: usize,
        now: Ps,
        packet: &Packet,
        note: Option<&Note>,
    ) {
        let point = &mut self.vantage_points[vantage_point];
        point.packets += 1;
        point.octets += u64::from(packet.len);
        let second = (self.simulation.epoch + now.as_nanos()) / 1_000_000_000;
        if packet.kind == PacketKind::Data {
            let seen = &mut self.seen[packet.flow as usize][vantage_point];
            seen.packets += 1;
            seen.octets += u64::from(packet.len);
            seen.ce += u64::from(packet.ecn == CE);
            *seen.packets_by_second.entry(second).or_default() += 1;
        }
        if let Some(note) = note {
            let flow = self.simulation.flows.get(note.flow as usize);
            let flow = flow.map(|flow| &*flow.name);
            self.notifications.count(vantage_point, second, note, flow);
        }
    }

    /// Records that a node sends a notification about a flow.
    pub fn notified(&mut self, node: u32, kind: Kind, flow: u32, now: Ps) {
        *self.metrics.notifications.entry(kind).or_default() += 1;
        let sent = &mut self.switches[node as usize].notified;
        *sent.entry(kind.id().to_owned()).or_default() += 1;
        // CNPs come from the receiver, or translate a switch's notification.
        if kind != Kind::Cnp
            && let Some(last) = self.notified_by.get_mut(flow as usize)
        {
            let (by, at) = last.replace((node, now)).unwrap_or((node, now));
            self.metrics.repeated += u64::from(by != node && now.since(at) < EPISODE);
        }
    }

    /// Records that a switch marks a packet.
    pub fn marked(&mut self, node: u32) {
        self.metrics.marked += 1;
        self.switches[node as usize].marked += 1;
    }

    /// Records that a switch sends a PFC frame.
    pub fn paused(&mut self, node: u32) {
        self.metrics.pauses += 1;
        self.switches[node as usize].pauses += 1;
    }

    /// Records that a queue of a switch with these thresholds has grown to `depth` octets.
    pub fn queued(&mut self, node: u32, now: Ps, depth: u64, thresholds: &Thresholds) {
        if depth > thresholds.marking.kmin {
            self.metrics.onset.get_or_insert(now);
        }
        let limit = thresholds.queue;
        if depth > limit && (self.metrics.beyond_queue).is_none_or(|(most, _)| depth > most) {
            self.metrics.beyond_queue = Some((depth, limit));
        }
        for peak in [
            &mut self.metrics.peak_queue,
            &mut self.switches[node as usize].peak_queue,
        ] {
            *peak = depth.max(*peak);
        }
        self.still_queued(now, depth);
    }

    /// Records that a queue of a switch holds `depth` octets.
    pub fn still_queued(&mut self, now: Ps, depth: u64) {
        let sample = (now.0 / self.interval.0) as usize;
        if let Some((_, most)) = self.metrics.queue_over_time.get_mut(sample) {
            *most = depth.max(*most);
        }
    }

    /// Records that a queue rises above its Kmax, or falls below it again.
    pub fn crossed_kmax(&mut self, now: Ps, above: bool) {
        if above {
            if self.above == 0 {
                self.above_since = now;
            }
            self.above += 1;
        } else {
            self.above = self.above.saturating_sub(1);
            if self.above == 0 {
                self.metrics.above_kmax = self.metrics.above_kmax + now.since(self.above_since);
            }
        }
    }

    /// Records that a sender slows down.
    pub fn slowed(&mut self, now: Ps) {
        if self.metrics.onset.is_some() {
            self.metrics.first_cut.get_or_insert(now);
        }
    }

    /// Returns the ground truth and the figures at the end.
    pub fn close(mut self, name: &str, connections: Vec<Connection>, ports: &[Port]) -> Outcome {
        let simulation = self.simulation;
        if self.above > 0 {
            self.above = 1;
            self.crossed_kmax(simulation.duration, false);
        }
        self.conclude(&connections, ports);
        let flows = simulation.flows.iter().zip(connections).zip(self.seen);
        let flows = flows.map(|((flow, connection), mut seen)| {
            seen.retain(|seen| seen.packets > 0);
            let receiver_qp = connection.peer(flow).qp.get();
            let counts = connection.counts;
            let slowed_by = counts.slowed.into_iter();
            FlowTruth {
                name: flow.name.clone(),
                sender: flow.source,
                receiver: flow.destination,
                sender_qp: flow.sender_qp.get(),
                receiver_qp,
                source_port: flow.source_port,
                obeys: matches!(&simulation.nodes[flow.from].kind, NodeKind::Host(host) if host.reaction.obeys()),
                packets_sent: counts.packets,
                packets_again: counts.again,
                octets_delivered: counts.delivered,
                ce_received: counts.ce,
                messages_done: connection.acknowledged / connection.packets_a_message,
                slowed_by: slowed_by.map(|(kind, n)| (kind.to_owned(), n)).collect(),
                first_slowed_ns: counts.first_slowed.map(Ps::as_nanos),
                completed_ns: counts.done_at.map(Ps::as_nanos),
                detours: counts.detours,
                seen,
                rate: counts.rate,
            }
        });
        let switches = self.switches.into_iter().zip(&simulation.nodes);
        let switches = switches.filter(|(_, node)| matches!(node.kind, NodeKind::Switch(_)));
        let truth = Truth {
            schema: TRUTH_SCHEMA.to_owned(),
            version: TRUTH_VERSION,
            scenario: name.to_owned(),
            mechanism: simulation.mechanism.id().to_owned(),
            seed: simulation.seed,
            duration_ns: simulation.duration.as_nanos(),
            epoch_ns: simulation.epoch,
            vantage_points: self.vantage_points,
            flows: flows.collect(),
            notifications: self.notifications.into_entries(),
            switches: switches.map(|(switch, _)| switch).collect(),
            findings: BTreeMap::new(),
        };
        Outcome {
            truth,
            metrics: self.metrics,
        }
    }

    /// Computes the figures over the whole measured time: after the warm-up, or until completion if
    /// all flows were complete.
    fn conclude(&mut self, connections: &[Connection], ports: &[Port]) {
        let simulation = self.simulation;
        // Nothing is sent, and so nothing is counted, after the end of the last flow.
        let all_done = connections.iter().all(Connection::is_done);
        let (warm, from, to) = if all_done {
            let first = simulation.flows.iter().map(|flow| flow.start).min();
            (
                &Totals::default(),
                first.unwrap_or_default(),
                self.last_finished,
            )
        } else {
            (&self.warm, simulation.warm_up, simulation.duration)
        };
        let end = Totals::at(simulation.duration, connections, ports);
        let span = to.since(from).max(Ps(1));

        let (mut busy, mut waited, mut fullest) = (0, 0, 0);
        for (index, port) in ports.iter().enumerate() {
            let node = &simulation.nodes[port.node as usize];
            if let NodeKind::Switch(_) = node.kind {
                let (before, after) = (warm.work(index), end.work(index));
                busy = busy.max(after.busy.since(before.busy).0);
                if after.waited - before.waited > waited {
                    (waited, fullest) = (after.waited - before.waited, index);
                }
            }
        }
        let half = |from: &Totals, to: &Totals| {
            let time = to.at.since(from.at).max(Ps(1));
            // A run stopped before its half has no such figure.
            let waited = (to.work(fullest).waited).saturating_sub(from.work(fullest).waited);
            Half {
                goodput: to.delivered.saturating_sub(from.delivered) as f64 * 8.0
                    / time.as_seconds_f64(),
                queue: waited as f64 / time.0 as f64,
                rate: mean(&self.metrics.rate_over_time, from.at, to.at),
            }
        };
        let halves = (!all_done).then(|| [half(warm, &self.half), half(&self.half, &end)]);

        let open = connections.iter().zip(&simulation.flows);
        let open = open.filter(|(connection, _)| !connection.is_done());
        let (mut flows, mut longest, mut stood_still) = (0_u32, Ps(0), 0.0);
        for (connection, flow) in open {
            let timeout = flow.retransmit_timeout;
            // A flow that has sent its whole window waits for a timeout in the future, if packets
            // are lost at all.
            let waits = self.metrics.lost > 0
                && connection.sent > connection.acknowledged
                && !connection.may_send(flow);
            let last = connection.deadline.since(timeout);
            let pending = if waits {
                to.since(last.max(from))
            } else {
                Ps(0)
            };
            let waited = connection.counts.waited + pending;
            if waited > Ps(0) {
                longest = longest.max(timeout);
            }
            flows += 1;
            stood_still += waited.0 as f64;
        }
        let timeouts = Timeouts {
            share: (stood_still / (f64::from(flows.max(1)) * span.0 as f64)).min(1.0),
            rounds: span.0 as f64 / longest.0.max(1) as f64,
        };

        let delivered = end.delivered - warm.delivered;
        let goodput = |connection: &Connection, flow: &Flow| {
            let counts = &connection.counts;
            let (octets, span) = match counts.done_at {
                Some(done) => (counts.delivered, done.since(flow.start).max(Ps(1))),
                None => (counts.delivered - counts.warm, span),
            };
            octets as f64 * 8.0 / span.as_seconds_f64()
        };
        let mut host_rates = vec![u64::MAX; simulation.nodes.len()];
        for port in ports {
            let rate = &mut host_rates[port.node as usize];
            *rate = port.rate.bits_per_second().min(*rate);
        }
        let flows = connections.iter().zip(&simulation.flows);
        let by_flow = flows.map(|(connection, flow)| {
            let share = goodput(connection, flow);
            (flow, share, share >= SATISFIED * demand(flow, &host_rates))
        });
        let by_flow: Vec<_> = by_flow.collect();
        let sum: f64 = by_flow.iter().map(|(_, share, _)| share).sum();
        let squares: f64 = by_flow.iter().map(|(_, share, _)| share * share).sum();

        let metrics = &mut self.metrics;
        metrics.halves = halves;
        metrics.timeouts = timeouts;
        metrics.completion = all_done.then_some(self.last_finished);
        // A packet being sent at the end is counted in full.
        metrics.utilisation = (busy as f64 / span.0 as f64).min(1.0);
        metrics.mean_queue = waited as f64 / span.0 as f64;
        metrics.goodput = delivered as f64 * 8.0 / span.as_seconds_f64();
        if squares > 0.0 {
            metrics.fairness = sum * sum / (by_flow.len() as f64 * squares);
        }
        let flows = connections.iter().zip(&simulation.flows);
        let completions = flows.map(|(connection, flow)| {
            let done = connection.counts.done_at?;
            Some(done.since(flow.start))
        });
        metrics.completion_by_flow = completions.collect();
        let satisfied = by_flow.iter().filter(|(_, _, satisfied)| *satisfied);
        metrics.satisfied = satisfied.map(|(flow, ..)| flow.name.clone()).collect();
        let by_flow = by_flow.into_iter();
        metrics.by_flow = by_flow
            .map(|(flow, share, _)| (flow.name.clone(), share))
            .collect();
        metrics.again = connections.iter().map(|c| c.counts.again).sum();
    }
}
