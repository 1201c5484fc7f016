//! What is counted while packets pass: the ground truth and the figures of comparison. Bounded, whatever the length.

use super::connection::{Connection, Counts};
use super::outcome::{
    FlowTruth, Half, Metrics, NotificationTruth, SAMPLES, SeenTruth, SwitchTruth, TRUTH_SCHEMA,
    TRUTH_VERSION, Truth, VantageTruth,
};
use super::packet::{Note, Packet, What};
use super::port::{Port, Work};
use crate::scenario::model::{NodeKind, Simulation};
use crate::units::Ps;
use fcn_wire::Kind;
use std::collections::{BTreeMap, HashMap};

/// How close together notifications of several switches about a flow are of one episode: the congestion points' usual least
/// time between two of one.
const EPISODE: Ps = Ps::from_nanos(50_000);

/// The mean of the rates sampled from `from` on, before `to`; 0 where none was.
fn mean(samples: &[(Ps, f64)], from: Ps, to: Ps) -> f64 {
    let within = samples.iter().filter(|(at, _)| (from..to).contains(at));
    let (sum, count) = within.fold((0.0, 0), |(sum, count), (_, rate)| (sum + rate, count + 1));
    sum / f64::from(count.max(1))
}

/// What had been done by some moment.
#[derive(Clone, Debug, Default)]
struct Done {
    at: Ps,
    /// By port.
    ports: Vec<Work>,
    /// Octets of payload, of all flows.
    delivered: u64,
}

/// Counts by whole second, in order; nearly always one entry, so the last is looked at first.
#[derive(Clone, Debug, Default)]
struct BySecond(Vec<(u64, u64)>);

impl BySecond {
    fn count(&mut self, second: u64) {
        match self.0.last_mut() {
            Some((last, n)) if *last == second => *n += 1,
            _ => self.0.push((second, 1)),
        }
    }

    fn into_map(self) -> BTreeMap<u64, u64> {
        self.0.into_iter().collect()
    }
}

/// A flow's data at a vantage point.
#[derive(Clone, Debug, Default)]
struct Seen {
    packets: u64,
    octets: u64,
    ce: u64,
    by_second: BySecond,
}

/// Notifications alike at a vantage point.
#[derive(Clone, Debug, Default)]
struct Told {
    total: u64,
    levels: BTreeMap<u8, u64>,
    by_second: BySecond,
}

/// The counts.
pub struct Ledger {
    vantage_points: Vec<VantageTruth>,
    seen: Vec<Vec<Seen>>,
    told: HashMap<(usize, Note), Told>,
    epoch: u64,
    interval: u64,
    onset: Option<Ps>,
    first_cut: Option<Ps>,
    above: usize,
    above_since: Ps,
    above_kmax: Ps,
    peak: u64,
    notifications: BTreeMap<Kind, u64>,
    notified: Vec<BTreeMap<Kind, u64>>,
    marked: u64,
    lost: u64,
    pauses: u64,
    packets: u64,
    queue: Vec<u64>,
    rate: Vec<(Ps, f64)>,
    /// When the warm-up was over, and when half of the rest was.
    warm: Done,
    half: Done,
    /// By flow: who told of it last, and when.
    told_by: Vec<Option<(u32, Ps)>>,
    told_twice: u64,
    /// When a flow last got its last acknowledgement.
    last_finished: Ps,
    /// What each node did, switches only filled in.
    pub switches: Vec<SwitchTruth>,
}

/// The load of a run while it counted.
pub struct Load {
    /// Share of the time that the busiest port of a switch sent, 0 to 1.
    utilisation: f64,
    /// Octets of data that waited at the port of a switch where most did, on average over time.
    mean_queue: f64,
    /// Of the time counted, unless all flows were done.
    halves: Option<[Half; 2]>,
}

impl Done {
    fn by(at: Ps, connections: &[Connection], ports: &[Port]) -> Self {
        Self {
            at,
            ports: ports.iter().map(|port| port.worked(at)).collect(),
            delivered: connections.iter().map(|c| c.counts.delivered).sum(),
        }
    }
}

impl Ledger {
    /// Nothing counted yet.
    pub fn new(simulation: &Simulation) -> Self {
        let name = |n: usize| simulation.nodes[n].name.clone();
        let vantage_points: Vec<VantageTruth> = simulation
            .vantage_points
            .iter()
            .map(|v| {
                let link = simulation.links[v.link];
                let peer = if link.a == v.node { link.b } else { link.a };
                VantageTruth {
                    name: format!("{}:{}", name(v.node), name(peer)),
                    ..VantageTruth::default()
                }
            })
            .collect();
        let switches = simulation
            .nodes
            .iter()
            .map(|node| SwitchTruth {
                name: node.name.clone(),
                ..SwitchTruth::default()
            })
            .collect();
        Self {
            seen: vec![vec![Seen::default(); simulation.flows.len()]; vantage_points.len()],
            vantage_points,
            told: HashMap::new(),
            epoch: simulation.epoch,
            interval: (simulation.duration.0 / SAMPLES as u64).max(1),
            onset: None,
            first_cut: None,
            above: 0,
            above_since: Ps(0),
            above_kmax: Ps(0),
            peak: 0,
            notifications: BTreeMap::new(),
            notified: vec![BTreeMap::new(); simulation.nodes.len()],
            marked: 0,
            lost: 0,
            pauses: 0,
            packets: 0,
            queue: vec![0; SAMPLES + 1],
            rate: Vec::with_capacity(SAMPLES),
            warm: Done::default(),
            half: Done::default(),
            told_by: vec![None; simulation.flows.len()],
            told_twice: 0,
            last_finished: Ps(0),
            switches,
        }
    }

    /// Time between samples.
    pub const fn interval(&self) -> Ps {
        Ps(self.interval)
    }

    /// A packet passes a vantage point; `note` where it is a notification.
    pub fn captured(
        &mut self,
        vantage_point: usize,
        now: Ps,
        packet: &Packet,
        note: Option<&Note>,
    ) {
        if let Some(v) = self.vantage_points.get_mut(vantage_point) {
            v.packets += 1;
            v.octets += u64::from(packet.len);
        }
        let second = (self.epoch + now.as_nanos()) / 1_000_000_000;
        if packet.what == What::Data
            && let Some(seen) = self
                .seen
                .get_mut(vantage_point)
                .and_then(|flows| flows.get_mut(packet.flow as usize))
        {
            seen.packets += 1;
            seen.octets += u64::from(packet.len);
            seen.ce += u64::from(packet.ecn == super::packet::CE);
            seen.by_second.count(second);
        }
        if let Some(note) = note {
            let mut key = note.clone();
            let level = key.level.take();
            let told = self.told.entry((vantage_point, key)).or_default();
            told.total += 1;
            told.by_second.count(second);
            if let Some(level) = level {
                *told.levels.entry(level).or_default() += 1;
            }
        }
    }

    /// A node puts a packet on a link.
    pub const fn sent(&mut self) {
        self.packets += 1;
    }

    /// A node sends a notification about a flow.
    pub fn notified(&mut self, node: u32, kind: Kind, flow: u32, now: Ps) {
        *self.notifications.entry(kind).or_default() += 1;
        if let Some(sent) = self.notified.get_mut(node as usize) {
            *sent.entry(kind).or_default() += 1;
        }
        // CNPs come from the receiver, or translate what a switch has told.
        if kind != Kind::Cnp
            && let Some(last) = self.told_by.get_mut(flow as usize)
        {
            let (by, at) = last.replace((node, now)).unwrap_or((node, now));
            self.told_twice += u64::from(by != node && now.since(at) < EPISODE);
        }
    }

    /// Everything that a flow had to send was acknowledged.
    pub const fn finished(&mut self, now: Ps) {
        self.last_finished = now;
    }

    /// When the last flow was done, where all of them were; nothing is sent behind that, so nothing is counted.
    fn completion(&self, connections: &[Connection]) -> Option<Ps> {
        connections
            .iter()
            .all(Connection::is_done)
            .then_some(self.last_finished)
    }

    /// The time that goodput and the like are counted in: behind the warm-up, or what it took where all flows were done.
    fn counted(&self, simulation: &Simulation, connections: &[Connection]) -> (Ps, Ps) {
        let first = simulation.flows.iter().map(|flow| flow.start).min();
        match self.completion(connections) {
            Some(end) => (first.unwrap_or(Ps(0)), end),
            None => (simulation.warm_up, simulation.duration),
        }
    }

    /// The warm-up is over: what ports have sent before does not count.
    pub fn warmed_up(&mut self, now: Ps, connections: &[Connection], ports: &[Port]) {
        self.warm = Done::by(now, connections, ports);
    }

    /// Half of the time behind the warm-up is over: what changes from now on is drift.
    pub fn half_counted(&mut self, now: Ps, connections: &[Connection], ports: &[Port]) {
        self.half = Done::by(now, connections, ports);
    }

    /// What ports of switches did while it counted.
    pub fn load(
        &self,
        simulation: &Simulation,
        connections: &[Connection],
        ports: &[Port],
    ) -> Load {
        let (from, to) = self.counted(simulation, connections);
        let span = to.since(from).0.max(1) as f64;
        let (warm, middle) = match self.completion(connections) {
            Some(_) => (&Done::default(), None),
            None => (&self.warm, Some(&self.half)),
        };
        let end = Done::by(simulation.duration, connections, ports);
        let work = |done: &Done, port: usize| done.ports.get(port).copied().unwrap_or_default();
        let of_switch = |port: &Port| {
            matches!(
                simulation.nodes[port.node as usize].kind,
                NodeKind::Switch(_)
            )
        };
        let (mut busy, mut waited, mut fullest) = (0, 0, 0);
        for (index, _) in ports.iter().enumerate().filter(|(_, port)| of_switch(port)) {
            let (before, after) = (work(warm, index), work(&end, index));
            busy = busy.max(after.busy.since(before.busy).0);
            if after.waited - before.waited > waited {
                (waited, fullest) = (after.waited - before.waited, index);
            }
        }
        let half = |from: &Done, to: &Done| {
            let time = to.at.since(from.at).max(Ps(1));
            let waited = work(to, fullest).waited - work(from, fullest).waited;
            Half {
                goodput: (to.delivered - from.delivered) as f64 * 8.0 / time.as_seconds_f64(),
                queue: waited as f64 / time.0 as f64,
                rate: mean(&self.rate, from.at, to.at),
            }
        };
        Load {
            // A packet that is being sent at the end counts whole.
            utilisation: (busy as f64 / span).min(1.0),
            mean_queue: waited as f64 / span,
            halves: middle.map(|middle| [half(warm, middle), half(middle, &end)]),
        }
    }

    /// A switch marks a packet.
    pub fn marked(&mut self, node: usize) {
        self.marked += 1;
        if let Some(switch) = self.switches.get_mut(node) {
            switch.marked += 1;
        }
    }

    /// A packet is lost.
    pub const fn lost(&mut self) {
        self.lost += 1;
    }

    /// A switch sends a PFC frame.
    pub fn paused(&mut self, node: usize) {
        self.pauses += 1;
        if let Some(switch) = self.switches.get_mut(node) {
            switch.pauses += 1;
        }
    }

    /// A queue of a switch has grown to `depth` octets; `above_kmin` says whether that is congestion.
    pub fn queued(&mut self, node: usize, now: Ps, depth: u64, above_kmin: bool) {
        if above_kmin && self.onset.is_none() {
            self.onset = Some(now);
        }
        self.peak = self.peak.max(depth);
        if let Some(switch) = self.switches.get_mut(node) {
            switch.peak_queue = switch.peak_queue.max(depth);
        }
        self.still_queued(now, depth);
    }

    /// A queue of a switch holds `depth` octets.
    pub fn still_queued(&mut self, now: Ps, depth: u64) {
        let bucket = ((now.0 / self.interval) as usize).min(SAMPLES);
        if let Some(most) = self.queue.get_mut(bucket) {
            *most = (*most).max(depth);
        }
    }

    /// A queue rises above its Kmax, or falls below it again.
    pub fn crossed_kmax(&mut self, now: Ps, above: bool) {
        if above {
            if self.above == 0 {
                self.above_since = now;
            }
            self.above += 1;
        } else {
            self.above = self.above.saturating_sub(1);
            if self.above == 0 {
                self.above_kmax = self.above_kmax + now.since(self.above_since);
            }
        }
    }

    /// A sender slows down.
    pub fn slowed(&mut self, now: Ps) {
        if self.onset.is_some() && self.first_cut.is_none() {
            self.first_cut = Some(now);
        }
    }

    /// The sum of all senders' rates now.
    pub fn sample(&mut self, now: Ps, rate: f64) {
        self.rate.push((now, rate));
    }

    /// The ground truth and the figures, at the end.
    pub fn close(
        mut self,
        simulation: &Simulation,
        name: &str,
        connections: Vec<Connection>,
        load: Load,
    ) -> (Truth, Metrics) {
        if self.above > 0 {
            self.above = 1;
            self.crossed_kmax(simulation.duration, false);
        }
        let metrics = self.metrics(simulation, &connections, load);
        let mut seen: Vec<_> = self.seen.into_iter().map(Vec::into_iter).collect();
        let flows = simulation
            .flows
            .iter()
            .zip(connections)
            .map(|(flow, connection)| {
                let at_points = seen
                    .iter_mut()
                    .map(|flows| flows.next().unwrap_or_default())
                    .enumerate()
                    .filter(|(_, seen)| seen.packets > 0)
                    .map(|(vantage_point, seen)| SeenTruth {
                        vantage_point,
                        packets: seen.packets,
                        octets: seen.octets,
                        ce: seen.ce,
                        packets_by_second: seen.by_second.into_map(),
                    })
                    .collect();
                let counts = connection.counts;
                FlowTruth {
                    name: flow.name.clone(),
                    sender: flow.source,
                    receiver: flow.destination,
                    sender_qp: flow.sender_qp.get(),
                    receiver_qp: flow.receiver_qp.get(),
                    source_port: flow.source_port,
                    packets_sent: counts.packets,
                    packets_again: counts.again,
                    octets_delivered: counts.delivered,
                    ce_received: counts.ce,
                    messages_done: connection.acknowledged / connection.packets_a_message,
                    slowed_by: counts
                        .slowed
                        .into_iter()
                        .map(|(kind, n)| (kind.to_owned(), n))
                        .collect(),
                    first_slowed_ns: counts.first_slowed.map(Ps::as_nanos),
                    detours: counts.detours,
                    seen: at_points,
                    rate: counts.rate,
                }
            })
            .collect();
        let flow_name = |index: u32| {
            simulation
                .flows
                .get(index as usize)
                .map(|flow| flow.name.clone())
        };
        // By what they say: not in the order of a hash table.
        let mut told: Vec<_> = self.told.into_iter().collect();
        told.sort_by(|(a, _), (b, _)| a.cmp(b));
        let notifications = told
            .into_iter()
            .map(|((vantage_point, note), told)| NotificationTruth {
                vantage_point,
                kind: note.kind.id().to_owned(),
                notifier: note.notifier,
                told: note.told,
                sender: note.sender,
                qp: note.qp.map(|(qp, _)| qp),
                qp_side: note
                    .qp
                    .map(|(_, receiver)| if receiver { "receiver" } else { "sender" }.to_owned()),
                flow_label: note.flow_label,
                flow: flow_name(note.flow),
                levels: told.levels,
                total: told.total,
                by_second: told.by_second.into_map(),
            })
            .collect();
        let is_switch = |n: usize| matches!(simulation.nodes[n].kind, NodeKind::Switch(_));
        let truth = Truth {
            schema: TRUTH_SCHEMA.to_owned(),
            version: TRUTH_VERSION,
            scenario: name.to_owned(),
            mechanism: simulation.mechanism.id().to_owned(),
            seed: simulation.seed,
            duration_ns: simulation.duration.as_nanos(),
            epoch_ns: simulation.epoch,
            vantage_points: self.vantage_points,
            flows,
            notifications,
            switches: self
                .switches
                .into_iter()
                .zip(self.notified)
                .enumerate()
                .filter(|(n, _)| is_switch(*n))
                .map(|(_, (switch, sent))| SwitchTruth {
                    notified: sent
                        .into_iter()
                        .map(|(kind, n)| (kind.id().to_owned(), n))
                        .collect(),
                    ..switch
                })
                .collect(),
            findings: BTreeMap::new(),
        };
        (truth, metrics)
    }

    fn metrics(&self, simulation: &Simulation, connections: &[Connection], load: Load) -> Metrics {
        let (from, to) = self.counted(simulation, connections);
        let completion = self.completion(connections);
        let seconds = to.since(from).max(Ps(1)).as_seconds_f64();
        let delivered = |counts: &Counts| match completion {
            Some(_) => counts.delivered,
            None => counts.delivered - counts.warm,
        };
        let shares: Vec<f64> = connections
            .iter()
            .map(|c| delivered(&c.counts) as f64 * 8.0 / seconds)
            .collect();
        let sum: f64 = shares.iter().sum();
        let squares: f64 = shares.iter().map(|s| s * s).sum();
        Metrics {
            onset: self.onset,
            first_cut: self.first_cut,
            peak_queue: self.peak,
            above_kmax: self.above_kmax,
            goodput: sum,
            completion,
            halves: load.halves,
            utilisation: load.utilisation,
            by_flow: simulation
                .flows
                .iter()
                .zip(&shares)
                .map(|(flow, share)| (flow.name.clone(), *share))
                .collect(),
            told_twice: self.told_twice,
            mean_queue: load.mean_queue,
            fairness: if squares > 0.0 {
                sum * sum / (shares.len() as f64 * squares)
            } else {
                0.0
            },
            notifications: self.notifications.clone(),
            marked: self.marked,
            lost: self.lost,
            again: connections.iter().map(|c| c.counts.again).sum(),
            pauses: self.pauses,
            packets: self.packets,
            queue_over_time: self
                .queue
                .iter()
                .take(SAMPLES)
                .enumerate()
                .map(|(i, depth)| (Ps(i as u64 * self.interval), *depth))
                .collect(),
            rate_over_time: self.rate.clone(),
        }
    }
}
