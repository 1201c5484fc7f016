//! The reference for the simulation: the fluid model of the papers, and the papers' algorithm
//! without packets. Nothing here runs the code under test.

use crate::units::Ps;
use fcn_node::congestion_point::Marking;
use fcn_node::reaction_point::dcqcn;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::collections::VecDeque;

/// Link rate in the papers, in bit/s.
pub(super) const G40: u64 = 40_000_000_000;
/// tau: the time between two CNPs of a flow, in seconds.
const TAU: f64 = 50e-6;
/// Octets of a data packet besides its payload: those in a queue, and those only on the link.
const HEADERS: u64 = 78;
const FRAMING: u64 = 24;

/// A bottleneck and the identical flows through it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Network {
    pub(super) flows: usize,
    pub(super) params: dcqcn::Params,
    pub(super) marking: Marking,
    /// Octets of payload per packet.
    pub(super) mtu: u16,
    /// Time from a mark to the first slower packet at the queue, without queueing there: tau* of
    /// the papers.
    pub(super) delay: Ps,
}

impl Network {
    pub(super) fn of_the_papers(flows: usize) -> Self {
        Self {
            flows,
            params: dcqcn::Params::default(),
            marking: Marking::default(),
            mtu: 1_024,
            delay: Ps::from_nanos(4_000),
        }
    }

    /// Continues the published slope of marking beyond Kmax. Without that, p* is above Pmax for
    /// more than about 13 flows, and the queue has no point of rest.
    pub(super) fn with_long_slope(mut self) -> Self {
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

    pub(super) fn fluid(&self) -> Fluid {
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

/// The fluid model, in packets and seconds: `flows` flows of equal rate R_C, target R_T and alpha
/// through one queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fluid {
    pub(super) flows: f64,
    pub(super) capacity: f64,
    pub(super) g: f64,
    /// tau': time after which alpha decays.
    pub(super) k: f64,
    pub(super) t: f64,
    pub(super) b: f64,
    pub(super) f: f64,
    pub(super) r_ai: f64,
    pub(super) kmin: f64,
    pub(super) kmax: f64,
    pub(super) pmax: f64,
    /// Octets of a packet in the queue.
    pub(super) in_queue: f64,
    pub(super) delay: f64,
}

/// Rates of the events of a flow of a given rate, if the share p of its packets is marked.
struct Events {
    /// Probability of a CNP within tau.
    cnp: f64,
    /// Steps up by octets and by the timer, per packet.
    steps: f64,
    /// Steps beyond fast recovery, per packet.
    increases: f64,
}

/// Fixed point of the model.
#[derive(Clone, Copy, Debug)]
pub(super) struct FixedPoint {
    /// p*: share of packets marked.
    pub(super) marked: f64,
    /// alpha*.
    pub(super) alpha: f64,
    /// q*, in octets.
    pub(super) queue: f64,
}

/// Standard deviation and mean.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    pub(super) mean: f64,
    pub(super) deviation: f64,
}

impl Spread {
    pub(super) fn from_values(values: impl Iterator<Item = f64> + Clone) -> Self {
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
        // ln(1 - p); p / ((1-p)^-n - 1) is then p / (exp(-n·ln(1-p)) - 1), and 1/n as p approaches
        // 0.
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

    /// Returns the share of packets marked by a queue of `q` packets.
    fn marking(&self, q: f64) -> f64 {
        if q > self.kmax {
            // The model needs a value slightly below 1.
            return 1.0 - 1e-9;
        }
        (q - self.kmin).max(0.0) / (self.kmax - self.kmin) * self.pmax
    }

    /// Returns the change of R_C, R_T and alpha per second. CNPs and steps depend on rates and
    /// marks one delay earlier.
    fn change(&self, [rate, target, alpha]: [f64; 3], p: f64, then: f64) -> [f64; 3] {
        let Events {
            cnp,
            steps,
            increases,
        } = self.events(p, then);
        let gap = target - rate;
        let marked_in_k = -(self.k * then * (-p).ln_1p()).exp_m1();
        [
            -rate * alpha / (2.0 * TAU) * cnp + gap / 2.0 * then * steps,
            -gap / TAU * cnp + self.r_ai * then * increases,
            self.g / self.k * (marked_in_k - alpha),
        ]
    }

    /// Returns the state in which nothing changes and R_C = C/N. The second equation gives R_T, the
    /// third alpha; the remaining first equation falls as p grows, so bisection finds its only zero
    /// (CoNEXT 2016, Theorem 1).
    pub(super) fn fixed_point(&self) -> FixedPoint {
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

    /// Returns the queue over time in octets, every microsecond, if all flows start at line rate.
    ///
    /// In the papers' model, marks take effect `delay` after the queue state that caused them. With
    /// `wait` they first wait in that queue, as they do if packets are marked on arrival instead of
    /// departure (CoNEXT 2016 compares both).
    pub(super) fn queue(&self, duration: Ps, wait: bool) -> Vec<f64> {
        const STEP: f64 = 1e-6;
        let mut state = [self.capacity, self.capacity, 1.0];
        let (mut rates, mut queues) = (Vec::new(), vec![0.0]);
        let mut then = 0;
        for now in 0..(duration.as_seconds_f64() / STEP) as usize {
            rates.push(state[0]);
            let felt = |at: usize| {
                let waited = if wait {
                    queues[at] / self.capacity
                } else {
                    0.0
                };
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

/// The algorithm itself (SIGCOMM 2015, section 3.1) through a fluid queue, with the randomness and
/// timers that the model averages away. Written from the paper, independently of `fcn-node`; a flow
/// is observed on its arrival at the queue.
#[derive(Clone, Debug)]
struct Sender {
    /// R_C and R_T in bit/s, and alpha.
    rate: f64,
    target: f64,
    alpha: f64,
    /// Steps since the last CNP, by time and by octets; octets since the last step by octets.
    steps: [u32; 2],
    octets: f64,
    /// Times at which the timer and the decay of alpha are due, and from which a mark causes a CNP,
    /// in seconds.
    timer: f64,
    decay: f64,
    loud: f64,
    /// Times at which CNPs in transit take effect.
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

    /// Processes all events due at `now`.
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

/// Measurements of [`senders`] after the warm-up.
pub(super) struct Played {
    pub(super) marked: f64,
    pub(super) queue: Spread,
    pub(super) alpha: f64,
}

/// Plays [`Sender`]s in steps of a microsecond. Packets are marked on arrival, so that marks wait
/// in the queue first.
pub(super) fn senders(network: &Network, warm_up: Ps, duration: Ps) -> Played {
    const STEP: f64 = 1e-6;
    let (params, fluid) = (&network.params, network.fluid());
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
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
            let random = (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
            if felt >= sender.loud && random < -(sent * (-p).ln_1p()).exp_m1() {
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
        queue: Spread::from_values(queues.iter().copied()),
        alpha: Spread::from_values(alphas.iter().copied()).mean,
    }
}
