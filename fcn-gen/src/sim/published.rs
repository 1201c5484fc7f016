//! DCQCN as simulated against DCQCN as published.
//!
//! - Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015: the fluid model (section 5.1), and
//!   what its parameters do (section 5.2).
//! - Zhu et al., "ECN or Delay: Lessons Learnt from Analysis of DCQCN and TIMELY", CoNEXT 2016: the model's fixed point
//!   (Theorem 1), and where it is not stable.
//!
//! [`Fluid`] is that model, [`watch`] plays the same network packet by packet. The tests compare the two, with the
//! parameters as published and links of 40 Gbit/s.

use super::event::Event;
use super::{State, World};
use crate::scenario::model::{
    Flow, Host, Link, Mechanism, Node, NodeKind, Simulation, Switch,
};
use crate::units::{Ps, Rate};
use fcn_node::congestion_point::{self, Marking};
use fcn_node::reaction_point::{self, Control, dcqcn};
use fcn_node::{Time, notification_point};
use fcn_wire::{Profile, Qp};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::collections::VecDeque;
use std::net::Ipv6Addr;

/// Links of the papers, bit/s.
const G40: u64 = 40_000_000_000;
/// tau: the time between two CNPs of a flow, in seconds.
const TAU: f64 = 50e-6;
/// Octets of a data packet beside its payload: in a queue, and those that only the link carries.
const HEADERS: u64 = 78;
const FRAMING: u64 = 24;

/// A bottleneck and the flows through it, all alike.
#[derive(Clone, Copy, Debug)]
struct Network {
    flows: usize,
    params: dcqcn::Params,
    marking: Marking,
    /// Octets of payload a packet.
    mtu: u16,
    /// Propagation from the mark to the slower packet: tau* of the papers without the wait in the queue.
    delay: Ps,
}

impl Network {
    fn published(flows: usize) -> Self {
        Self {
            flows,
            params: dcqcn::Params::default(),
            marking: Marking::default(),
            mtu: 1_024,
            delay: Ps::from_nanos(4_000),
        }
    }

    /// Marks by the published slope beyond Kmax too. Without that, p* is above Pmax for more than about 13 flows, and
    /// the queue has nowhere to rest (CoNEXT 2016 extends the slope for the same reason).
    fn with_long_slope(mut self) -> Self {
        self.marking.kmax = 1_955_000;
        self.marking.pmax = 0.1;
        self
    }

    fn in_queue(&self) -> f64 {
        (u64::from(self.mtu) + HEADERS) as f64
    }

    fn on_link(&self) -> f64 {
        self.in_queue() + FRAMING as f64
    }

    fn fluid(&self) -> Fluid {
        let per_packet = self.on_link() * 8.0;
        Fluid {
            flows: self.flows as f64,
            capacity: G40 as f64 / per_packet,
            g: self.params.g,
            k: self.params.k.as_secs_f64(),
            t: self.params.t.as_secs_f64(),
            b: self.params.b as f64 / self.on_link(),
            f: f64::from(self.params.f),
            r_ai: self.params.r_ai / per_packet,
            kmin: self.marking.kmin as f64 / self.in_queue(),
            kmax: self.marking.kmax as f64 / self.in_queue(),
            pmax: self.marking.pmax,
            in_queue: self.in_queue(),
            delay: self.delay.as_seconds_f64(),
        }
    }
}

/// The fluid model, in packets and seconds: `flows` flows of equal rate R_C, target R_T and alpha through one queue.
#[derive(Clone, Copy, Debug)]
struct Fluid {
    flows: f64,
    capacity: f64,
    g: f64,
    /// tau': time after which alpha decays.
    k: f64,
    t: f64,
    b: f64,
    f: f64,
    r_ai: f64,
    kmin: f64,
    kmax: f64,
    pmax: f64,
    /// Octets of a packet in the queue.
    in_queue: f64,
    delay: f64,
}

/// How often what happens to a flow of a given rate, of whose packets the share p is marked.
struct Events {
    /// Probability of a CNP within tau.
    cnp: f64,
    /// Steps up by octets and by the timer, per packet.
    steps: f64,
    /// Those beyond fast recovery, per packet.
    increases: f64,
}

/// Where the model rests.
#[derive(Clone, Copy, Debug)]
struct FixedPoint {
    /// p*: share of packets marked.
    marked: f64,
    /// alpha*.
    alpha: f64,
    /// q*, octets.
    queue: f64,
}

/// Standard deviation and mean.
#[derive(Clone, Copy, Debug)]
struct Spread {
    mean: f64,
    deviation: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let n = values.clone().count() as f64;
        let mean = values.clone().sum::<f64>() / n;
        let variance = values.map(|v| (v - mean).powi(2)).sum::<f64>() / n;
        Self {
            mean,
            deviation: variance.sqrt(),
        }
    }
}

impl Fluid {
    fn events(&self, p: f64, rate: f64) -> Events {
        // ln(1 - p); p / ((1-p)^-n - 1) is then p / (exp(-n·ln(1-p)) - 1), and 1/n as p goes to 0.
        let ln = (-p).ln_1p();
        let every = |n: f64| {
            if p < 1e-12 {
                1.0 / n
            } else {
                p / (-n * ln).exp_m1()
            }
        };
        let beyond = |n: f64| (self.f * n * ln).exp();
        let timer = self.t * rate;
        Events {
            cnp: -(TAU * rate * ln).exp_m1(),
            steps: every(self.b) + every(timer),
            increases: every(self.b) * beyond(self.b) + every(timer) * beyond(timer),
        }
    }

    /// Share of packets that a queue of `q` packets has marked.
    fn marking(&self, q: f64) -> f64 {
        if q > self.kmax {
            // The model needs a little less than 1.
            return 1.0 - 1e-9;
        }
        (q - self.kmin).max(0.0) / (self.kmax - self.kmin) * self.pmax
    }

    /// Change of R_C, R_T and alpha in a second. Rates and marks that CNPs and steps come from are those of a delay ago.
    fn change(&self, [rate, target, alpha]: [f64; 3], p: f64, then: f64) -> [f64; 3] {
        let Events { cnp, steps, increases } = self.events(p, then);
        let gap = target - rate;
        let marked_in_k = -(self.k * then * (-p).ln_1p()).exp_m1();
        [
            -rate * alpha / (2.0 * TAU) * cnp + gap / 2.0 * then * steps,
            -gap / TAU * cnp + self.r_ai * then * increases,
            self.g / self.k * (marked_in_k - alpha),
        ]
    }

    /// Where nothing changes and R_C = C/N. The second equation gives R_T, the third alpha; what is left of the first
    /// falls as p grows, so bisection finds the only p that makes it 0 (CoNEXT 2016, Theorem 1).
    fn fixed_point(&self) -> FixedPoint {
        let rate = self.capacity / self.flows;
        let at = |p: f64| {
            let Events { cnp, increases, .. } = self.events(p, rate);
            let target = rate + TAU * self.r_ai * rate * increases / cnp;
            let alpha = -(self.k * rate * (-p).ln_1p()).exp_m1();
            (self.change([rate, target, alpha], p, rate), alpha)
        };
        let (mut low, mut high) = (1e-9, 0.5);
        for _ in 0..100 {
            let middle = f64::midpoint(low, high);
            if at(middle).0[0] > 0.0 {
                low = middle;
            } else {
                high = middle;
            }
        }
        let queue = self.kmin + low / self.pmax * (self.kmax - self.kmin);
        FixedPoint {
            marked: low,
            alpha: at(low).1,
            queue: queue * self.in_queue,
        }
    }

    /// The queue over time, in octets, every microsecond, where all flows start at line rate.
    ///
    /// The papers' model has marks take effect `delay` after the queue that they tell of. With `wait` they wait in that
    /// queue first: so it is where packets are marked as they arrive, and not as they leave (CoNEXT 2016, section 5.2).
    fn queue(&self, duration: Ps, wait: bool) -> Vec<f64> {
        const STEP: f64 = 1e-6;
        let mut state = [self.capacity, self.capacity, 1.0];
        let (mut rates, mut queues) = (Vec::new(), vec![0.0]);
        let mut then = 0;
        for now in 0..(duration.as_seconds_f64() / STEP) as usize {
            rates.push(state[0]);
            let felt = |at: usize| {
                let waited = if wait { queues[at] / self.capacity } else { 0.0 };
                at as f64 * STEP + waited + self.delay
            };
            while then < now && felt(then + 1) <= now as f64 * STEP {
                then += 1;
            }
            let change = self.change(state, self.marking(queues[then]), rates[then]);
            for (value, change) in state.iter_mut().zip(change) {
                *value += change * STEP;
            }
            for rate in &mut state[..2] {
                *rate = rate.clamp(1.0, self.capacity);
            }
            let growth = self.flows * rates[now] - self.capacity;
            queues.push((queues[now] + growth * STEP).max(0.0));
        }
        queues.iter().map(|q| q * self.in_queue).collect()
    }
}

/// The algorithm itself (SIGCOMM 2015, section 3.1 and figure 7) through a queue of the fluid kind: chance and timers as
/// they are, which the model averages away. Written from the paper, apart from `fcn-node`; a flow is seen as it arrives
/// at the queue.
#[derive(Clone, Debug)]
struct Sender {
    /// R_C, R_T in bit/s, and alpha.
    rate: f64,
    target: f64,
    alpha: f64,
    /// Steps since the last CNP, by time and by octets; octets since the last step by octets.
    steps: [u32; 2],
    octets: f64,
    /// When the timer and the decay of alpha are due, and from when on a mark has a CNP sent, in seconds.
    timer: f64,
    decay: f64,
    loud: f64,
    /// CNPs on their way: when they are felt.
    cnps: VecDeque<f64>,
}

impl Sender {
    fn new() -> Self {
        let never = f64::INFINITY;
        Self {
            rate: G40 as f64,
            target: G40 as f64,
            alpha: 1.0,
            steps: [0; 2],
            octets: 0.0,
            timer: never,
            decay: never,
            loud: 0.0,
            cnps: VecDeque::new(),
        }
    }

    fn cut(&mut self, now: f64, params: &dcqcn::Params) {
        self.target = self.rate;
        self.rate = (self.rate * (1.0 - self.alpha / 2.0)).max(params.r_min);
        self.alpha = (1.0 - params.g) * self.alpha + params.g;
        (self.steps, self.octets) = ([0; 2], 0.0);
        self.timer = now + params.t.as_secs_f64();
        self.decay = now + params.k.as_secs_f64();
    }

    fn rise(&mut self, by: usize, params: &dcqcn::Params) {
        self.steps[by] += 1;
        let [time, octets] = self.steps.map(|n| n > params.f);
        if time && octets {
            self.target += params.r_hai;
        } else if time || octets {
            self.target += params.r_ai;
        }
        self.target = self.target.min(G40 as f64);
        self.rate = f64::midpoint(self.rate, self.target);
    }

    /// What is due at `now`.
    fn advance(&mut self, now: f64, params: &dcqcn::Params) {
        if self.cnps.front().is_some_and(|at| *at <= now) {
            self.cnps.pop_front();
            self.cut(now, params);
        }
        if self.timer <= now {
            self.timer += params.t.as_secs_f64();
            self.rise(0, params);
        }
        if self.decay <= now {
            self.decay += params.k.as_secs_f64();
            self.alpha *= 1.0 - params.g;
        }
        if self.octets >= params.b as f64 {
            self.octets -= params.b as f64;
            self.rise(1, params);
        }
    }
}

/// What [`senders`] did after their warm-up.
struct Played {
    marked: f64,
    queue: Spread,
    alpha: f64,
}

/// Plays [`Sender`]s in steps of a microsecond. Marks are set as packets arrive, so that they wait in the queue first.
fn senders(network: &Network, warm_up: Ps, duration: Ps) -> Played {
    const STEP: f64 = 1e-6;
    let (params, fluid) = (&network.params, network.fluid());
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut senders = vec![Sender::new(); network.flows];
    let (mut queue, mut queues, mut alphas) = (0.0, Vec::new(), Vec::new());
    let (mut marks, mut packets) = (0.0, 0.0);
    let warm = (warm_up.as_seconds_f64() / STEP) as usize;
    for step in 0..(duration.as_seconds_f64() / STEP) as usize {
        let now = step as f64 * STEP;
        let p = fluid.marking(queue);
        let felt = now + queue / fluid.capacity + fluid.delay;
        let mut arrived = 0.0;
        for sender in &mut senders {
            sender.advance(now, params);
            let sent = sender.rate / (network.on_link() * 8.0) * STEP;
            arrived += sent;
            sender.octets += sent * network.on_link();
            let dice = (chance.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
            if felt >= sender.loud && dice < -(sent * (-p).ln_1p()).exp_m1() {
                sender.loud = felt + TAU;
                sender.cnps.push_back(felt);
            }
        }
        queue = (queue + arrived - fluid.capacity * STEP).max(0.0);
        if step >= warm {
            marks += p * arrived;
            packets += arrived;
            queues.push(queue * network.in_queue());
            alphas.extend(senders.iter().map(|s| s.alpha));
        }
    }
    Played {
        marked: marks / packets,
        queue: Spread::of(queues.iter().copied()),
        alpha: Spread::of(alphas.iter().copied()).mean,
    }
}

fn node(name: String, number: u16, kind: NodeKind) -> Node {
    Node {
        name,
        ipv6: Ipv6Addr::new(0x2001, 0xDB8, 0, 0, 0, 0, 0, number),
        ipv4: None,
        domain: 0,
        kind,
    }
}

fn host(name: String, number: u16, params: dcqcn::Params) -> Node {
    let host = Host {
        reaction: reaction_point::Config {
            control: Control::Dcqcn(params),
            ..reaction_point::Config::default()
        },
        notification: Some(notification_point::Config::default()),
        answers_unknown_options: true,
        guid: number.into(),
    };
    node(name, number, NodeKind::Host(Box::new(host)))
}

/// Senders, a switch and a receiver; port 0 is the bottleneck, flow n's sender is node n + 2.
fn incast(network: &Network, duration: Ps) -> Simulation {
    let mut congestion = congestion_point::Config::new(Ipv6Addr::LOCALHOST);
    congestion.marking = network.marking;
    let switch = Switch {
        congestion,
        queue_limit: 64_000_000,
        pfc: None,
        ioam_node: None,
        proxy: None,
        edge: None,
        border_filter: true,
    };
    let mut nodes = vec![
        node("s".into(), 1, NodeKind::Switch(Box::new(switch))),
        host("r".into(), 2, network.params),
    ];
    // A mark travels to the receiver, comes back as a CNP, and what is then sent reaches the switch: four links.
    let (rate, delay) = (Rate::new(G40).unwrap(), Ps(network.delay.0 / 4));
    let link = |a| Link { a, b: 0, rate, delay };
    let mut links = vec![Link { a: 0, b: 1, rate, delay }];
    let mut flows = Vec::new();
    for n in 0..network.flows {
        let number = n as u16;
        nodes.push(host(format!("h{n}"), number + 3, network.params));
        links.push(link(n + 2));
        flows.push(Flow {
            name: format!("f{n}"),
            from: n + 2,
            source: nodes[n + 2].ipv6.into(),
            destination: nodes[1].ipv6.into(),
            sender_qp: Qp::truncate(0x100 + u32::from(number)),
            receiver_qp: Qp::truncate(0x200 + u32::from(number)),
            source_port: 49_152 + number,
            messages: None,
            message: 1 << 24,
            mtu: network.mtu,
            window: 1 << 15,
            ack_every: 64,
            retransmit_timeout: Ps::SECOND,
            ..super::connection::tests::flow()
        });
    }
    Simulation {
        seed: 7,
        duration,
        mechanism: Mechanism::Cnp,
        profile: Profile::DEFAULT,
        epoch: 0,
        snap_len: 0,
        nodes,
        links,
        flows,
        vantage_points: Vec::new(),
        faults: Vec::new(),
        injections: Vec::new(),
        advertise_interval: Ps::SECOND,
    }
}

/// What the simulation showed, from the end of the warm-up on.
#[derive(Debug)]
struct Watched {
    /// Share of data packets marked.
    marked: f64,
    /// Octets in the bottleneck's queue.
    queue: Spread,
    /// Mean of all flows' alpha over time.
    alpha: f64,
    /// Largest difference between a cut and equations 1 and 2.
    alpha_error: f64,
    /// Share of the bottleneck used, by the senders' rates.
    load: f64,
    /// Rates of the flows in bit/s, over time.
    rates: Vec<Vec<f64>>,
}

/// Alpha by equations 1 and 2, from the CNPs alone.
#[derive(Clone, Copy)]
struct Alpha {
    value: f64,
    since: Option<Ps>,
}

impl Alpha {
    fn at(&self, now: Ps, params: &dcqcn::Params) -> f64 {
        let Some(since) = self.since else {
            return self.value;
        };
        let nanos = Time::from(now).since(since.into()).as_nanos();
        let periods = nanos / params.k.as_nanos();
        self.value * (1.0 - params.g).powi(periods as i32)
    }
}

/// Time between two samples.
const SAMPLE: Ps = Ps(10_000_000);

/// Plays `simulation` and looks at it every [`SAMPLE`] after `warm_up`.
fn watch(simulation: &Simulation, params: &dcqcn::Params, warm_up: Ps) -> Watched {
    let flows = simulation.flows.len();
    let mut world = World::new(simulation, None);
    world.begin();
    let mut alphas = vec![Alpha { value: 1.0, since: None }; flows];
    let mut alpha_error: f64 = 0.0;
    let (mut queue, mut alpha, mut rates) = (Vec::new(), Vec::new(), vec![Vec::new(); flows]);
    let counts = |world: &World<'_>| {
        let sent: u64 = world.connections.iter().map(|c| c.counts.packets).sum();
        (world.ledger.switches[0].marked, sent)
    };
    let mut before = None;
    let mut next = warm_up;
    while let Some((at, event)) = world.events.next() {
        if at > simulation.duration {
            break;
        }
        while next <= at {
            before.get_or_insert_with(|| counts(&world));
            world.now = next;
            queue.push(world.ports[0].depth(simulation.flows[0].priority) as f64);
            for flow in 0..flows {
                rates[flow].push(world.rate_of(flow));
                alpha.push(alphas[flow].at(next, params));
            }
            next = next + SAMPLE;
        }
        world.now = at;
        let Some(flow) = flow_told(&world, event) else {
            world.happen(event);
            continue;
        };
        let cuts = |world: &World<'_>| world.connections[flow].counts.slowed.values().sum::<u64>();
        let (old, told) = (world.rate_of(flow), cuts(&world));
        world.happen(event);
        if cuts(&world) > told {
            let cut = 2.0 * (1.0 - world.rate_of(flow) / old);
            let expected = alphas[flow].at(at, params);
            if world.rate_of(flow) > params.r_min {
                alpha_error = alpha_error.max((cut - expected).abs());
            }
            alphas[flow] = Alpha {
                value: (1.0 - params.g) * expected + params.g,
                since: Some(at),
            };
        }
    }
    let (marks, packets) = counts(&world);
    let (marks_before, packets_before) = before.expect("longer than the warm-up");
    let load: f64 = rates.iter().map(|r| Spread::of(r.iter().copied()).mean).sum();
    Watched {
        marked: (marks - marks_before) as f64 / (packets - packets_before) as f64,
        queue: Spread::of(queue.iter().copied()),
        alpha: Spread::of(alpha.iter().copied()).mean,
        alpha_error,
        load: load / G40 as f64,
        rates,
    }
}

/// The flow whose sender this event may tell something.
fn flow_told(world: &World<'_>, event: Event) -> Option<usize> {
    let Event::Arrive(port) = event else {
        return None;
    };
    let peer = world.ports[port as usize].peer as usize;
    let flow = peer.checked_sub(2)?;
    matches!(world.nodes[peer], State::Host(_)).then_some(flow)
}

fn millis(n: u64) -> Ps {
    Ps::from_nanos(n * 1_000_000)
}

/// Jain's index.
fn fairness(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    sum * sum / (shares.len() as f64 * shares.iter().map(|s| s * s).sum::<f64>())
}

#[test]
fn explore() {
    let var = |name: &str, default: f64| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default);
    let (warm, end) = (var("WARM", 100.0) as u64, var("END", 300.0) as u64);
    for n in std::env::var("NS").unwrap_or("2,4,10,16".into()).split(',') {
        let mut network = Network::published(n.parse().unwrap());
        network.delay = Ps::from_nanos((var("DELAY", 4.0) * 1000.0) as u64);
        if var("LONG", 0.0) > 0.0 { network = network.with_long_slope(); }
        network.mtu = var("MTU", 1024.0) as u16;
        network.params.g = 1.0 / var("G", 256.0);
        network.params.r_ai = var("RAI", 40.0) * 1e6;
        network.params.r_hai = var("HAI", 400.0) * 1e6;
        let scale = var("SLOPE", 0.0); if scale > 0.0 { network.marking.kmax = 5000 + (scale * 195_000.0) as u64; network.marking.pmax = 0.01 * scale; }
        let fluid = network.fluid();
        let star = fluid.fixed_point();
        let lone = senders(&network, millis(warm), millis(end));
        let [wave, wait] = [false, true].map(|wait| { let wave = fluid.queue(millis(end), wait);
        Spread::of(wave[warm as usize * 1000..].iter().copied())});
        print!("wait: q {:.0} sd {:.0} ", wait.mean, wait.deviation);
        let seen = watch(&incast(&network, millis(end)), &network.params, millis(warm));
        let shares: Vec<f64> = seen.rates.iter().map(|r| Spread::of(r.iter().copied()).mean).collect();
        let jains: Vec<f64> = (0..seen.rates[0].len()).step_by(100).map(|i| fairness(&seen.rates.iter().map(|r| r[i]).collect::<Vec<_>>())).collect();
        println!("N {n}: p* {:.5} q* {:.0} a* {:.4} | fluid q {:.0} sd {:.0} | ens p {:.5} q {:.0} sd {:.0} a {:.4} | sim p {:.5} q {:.0} sd {:.0} a {:.4} load {:.4} aerr {:.1e} jain {:.4} inst {:.4}", star.marked, star.queue, star.alpha, wave.mean, wave.deviation, lone.marked, lone.queue.mean, lone.queue.deviation, lone.alpha, seen.marked, seen.queue.mean, seen.queue.deviation, seen.alpha, seen.load, seen.alpha_error, fairness(&shares), Spread::of(jains.iter().copied()).mean);
    }
}
