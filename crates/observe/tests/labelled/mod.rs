//! The labelled set that verdicts are measured against: flows whose senders are known to obey or
//! not.
//!
//! Each flow is drawn from its number alone: a sender, its response, its notifications, and the
//! properties of the capture.

mod apart;
mod queue;

use fcn_node::reaction_point::dcqcn::{Dcqcn, Params};
use fcn_node::reaction_point::{Controller, Notice};
use fcn_observe::Time;
use fcn_observe::obedience::{Answer, Obedience, Verdict};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

/// Random numbers of the distributions that are needed here.
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Uniform from 0 to 1.
    fn part(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn between(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least) * self.part()
    }

    /// Log-uniform.
    fn scale(&mut self, least: f64, most: f64) -> f64 {
        self.between(least.ln(), most.ln()).exp()
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.part()).ln()
    }

    fn choose<T: Copy>(&mut self, items: &[T]) -> T {
        items[(self.0.next_u64() % items.len() as u64) as usize]
    }

    fn chance(&mut self, chance: f64) -> bool {
        self.part() < chance
    }
}

/// A sender's response to notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sender {
    /// DCQCN with the published parameters.
    Dcqcn,
    /// Halves, and recovers within the interval to the next notification.
    Halves,
    /// Halves, and recovers more slowly than notifications come.
    Sinks,
    /// Slows down to 60 to 90 %.
    Partly,
    /// Halves after 1 to 5 ms.
    Late,
    /// Takes another path.
    Detours,
    /// Never slows down: evenly paced.
    Constant,
    /// Never slows down: random packets.
    Poisson,
    /// Never slows down: bursts of 8 to 64 packets, or alternating times with and without data to
    /// send.
    Bursts,
    /// Never slows down: its rate changes now and then by itself.
    Varies,
    /// DCQCN with the published parameters, one of several senders that share a queue.
    Shares,
    /// Never slows down: shares a queue with others that do, by DCQCN.
    Pushes,
    /// Never slows down: it speeds up when notified, and falls back.
    Rises,
    /// Never slows down: messages with think times, notified of congestion that it causes itself.
    Thinks,
    /// The same, but halves.
    ThinksHalves,
    /// Halves by longer pauses between bursts, as a rate limiter does.
    Limits,
    /// Slows down to 60 to 90 % for part of the time; random packets.
    Slightly,
    /// Halves after 30 to 300 ms, with packets that sparse: as over a WAN.
    TooLate,
    /// DCQCN of many parameters, behind a queue with cross traffic.
    Crosses,
    /// Halves for part of the time; random packets and notifications.
    AtRandom,
    /// Held at half its rate since before the capture.
    Held,
    /// Never slows down: its rate swings by itself with a steady period, and it is notified when it
    /// is fast.
    Swings,
}

impl Sender {
    /// The senders that [`flow`] draws from.
    pub const TOGETHER: [Self; 13] = [
        Self::Dcqcn,
        Self::Halves,
        Self::Sinks,
        Self::Partly,
        Self::Late,
        Self::Detours,
        Self::Constant,
        Self::Poisson,
        Self::Bursts,
        Self::Varies,
        Self::Shares,
        Self::Pushes,
        Self::Rises,
    ];

    /// The senders that [`apart`] draws from.
    pub const APART: [Self; 8] = [
        Self::Thinks,
        Self::ThinksHalves,
        Self::Limits,
        Self::Slightly,
        Self::TooLate,
        Self::Crosses,
        Self::AtRandom,
        Self::Held,
    ];

    /// Number of those that send on their own, and never faster because of notifications; the
    /// others are cases where verdicts were found wrong.
    pub const ALONE: usize = 10;

    /// Returns the correct verdict.
    pub const fn truth(self) -> Answer {
        match self {
            Self::Dcqcn
            | Self::Halves
            | Self::Sinks
            | Self::Partly
            | Self::Late
            | Self::Shares
            | Self::Detours
            | Self::ThinksHalves
            | Self::TooLate
            | Self::Limits
            | Self::Slightly
            | Self::Crosses
            | Self::AtRandom
            | Self::Held => Answer::Obeys,
            _ => Answer::DoesNotObey,
        }
    }

    /// Returns a description.
    #[allow(dead_code, reason = "for the benchmark's table")]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Dcqcn => "DCQCN",
            Self::Halves => "halves, recovers before the next",
            Self::Sinks => "halves, recovers slowly",
            Self::Partly => "slows down to 60 to 90 %",
            Self::Late => "halves after 1 to 5 ms",
            Self::Shares => "DCQCN, shares a queue",
            Self::Detours => "takes another path",
            Self::Constant => "never slows down, paced",
            Self::Poisson => "never, packets at random",
            Self::Bursts => "never, bursts and pauses",
            Self::Varies => "never, rate varies by itself",
            Self::Pushes => "never, shares a queue with DCQCN",
            Self::Rises => "speeds up, and falls back",
            Self::Thinks => "never, messages and think times",
            Self::ThinksHalves => "halves, messages and think times",
            Self::Limits => "halves, bursts of a rate limiter",
            Self::Slightly => "60 to 90 % in part, at random",
            Self::TooLate => "halves after 30 to 300 ms",
            Self::Crosses => "DCQCN, behind a shared queue",
            Self::AtRandom => "halves in part, notified at random",
            Self::Held => "only seen held at half its rate",
            Self::Swings => "never, swings with a steady period",
        }
    }
}

/// Times of a flow's notifications.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Notified {
    /// One per gap, varied by this part of it.
    Every(f64),
    /// Random.
    Random,
    /// A number in a row, then none for a number of gaps.
    Episodes(u32, f64),
}

/// Texture of a flow's packets, apart from responses to notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// By a steady rate.
    Even,
    /// At random times.
    Random,
    /// Sent back to back, with pauses.
    Bursts,
    /// The application's writes.
    Messages,
    /// By a rate that varies by itself.
    Varies,
}

impl Pacing {
    /// All of them, with descriptions.
    #[allow(dead_code, reason = "for the benchmark's table")]
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Even, "evenly paced"),
        (Self::Random, "packets at random times"),
        (Self::Bursts, "bursts and pauses"),
        (Self::Messages, "messages and think times"),
        (Self::Varies, "a rate that varies by itself"),
    ];
}

/// One flow of the set.
#[derive(Clone, Debug)]
pub struct Labelled {
    /// Its sender's kind of response.
    pub sender: Sender,
    /// True if it slows down by less than a fifth, so that a verdict of not obeying is not wrong.
    pub small: bool,
    /// Time between notifications, in nanoseconds.
    #[allow(dead_code, reason = "for the benchmark's table")]
    pub gap: f64,
    /// Texture of its packets.
    #[allow(dead_code, reason = "for the benchmark's table")]
    pub pacing: Pacing,
    /// True if it was captured after the queue that it is notified for.
    #[allow(dead_code, reason = "for the benchmark's table")]
    pub behind: bool,
    /// The verdict on it.
    pub verdict: Verdict,
    /// Number of data packets and notifications captured.
    pub seen: (u32, u32),
}

/// Intervals between notifications that are drawn from, in nanoseconds.
pub const GAPS: [f64; 12] = [
    20e3, 50e3, 100e3, 200e3, 500e3, 1e6, 2e6, 5e6, 10e6, 20e6, 50e6, 100e6,
];

impl Labelled {
    /// Returns true if there is an answer, and it is wrong.
    pub fn is_wrong(&self) -> bool {
        match self.verdict.answer {
            Answer::Unclear => false,
            Answer::DoesNotObey if self.small => false,
            answer => answer != self.sender.truth(),
        }
    }
}

/// Returns the flow of that number, of senders made separately.
pub fn apart(number: u64) -> Labelled {
    let r = &mut Random::new(number);
    let sender = Sender::APART[(number % Sender::APART.len() as u64) as usize];
    apart::flow(sender, r)
}

/// Returns the flow of that number, of a sender whose rate swings by itself.
pub fn swings(number: u64) -> Labelled {
    let r = &mut Random::new(number);
    apart::flow(Sender::Swings, r)
}

/// Returns the flow of that number.
pub fn flow(number: u64) -> Labelled {
    let mut random = Random::new(number);
    let r = &mut random;
    let sender = Sender::TOGETHER[(number % Sender::TOGETHER.len() as u64) as usize];
    if let Sender::Shares | Sender::Pushes = sender {
        return queue::flow(sender, r);
    }
    let gap = r.choose(&GAPS);
    // Published DCQCN hardly cuts if it is notified seldom: by 3 % for 55 µs each millisecond. NICs
    // start again with a halving once they are back at the line rate.
    let anew = gap > 500e3 || r.chance(0.5);
    // 4 to 500 packets per gap, within 10 to 10 million per second.
    let least = (4e9 / gap).max(10.0);
    let rate = r.scale(least, (500e9 / gap).min(1e7).max(least * 1.01));
    let size = r.choose(&[300.0, 1086.0, 1500.0, 4158.0]);
    let mixed = r.chance(0.3);
    let jitter = r.choose(&[0.0, 0.02, 0.2]);
    let notified = match r.0.next_u64() % 5 {
        0..2 => Notified::Every(r.choose(&[0.0, 0.0, 0.1, 0.4])),
        2..3 => Notified::Random,
        _ => Notified::Episodes(r.between(4.0, 40.0) as u32, r.between(10.0, 60.0)),
    };
    let delay = match sender {
        Sender::Late => r.between(1e6, 5e6),
        _ => r.choose(&[0.0, 2e3, 10e3, 30e3f64]).min(gap / 2.0),
    };
    let cut = match sender {
        Sender::Partly => r.between(0.6, 0.85),
        Sender::Constant | Sender::Poisson | Sender::Bursts | Sender::Varies | Sender::Detours => {
            1.0
        }
        Sender::Rises => r.scale(1.05, 4.0),
        _ => 0.5,
    };
    let recovery = match sender {
        Sender::Sinks => gap * r.scale(3.0, 300.0),
        Sender::Late => (gap * r.between(0.2, 0.8)).max(3e6),
        Sender::Partly => gap * r.between(0.3, 1.0),
        Sender::Rises => gap * r.between(0.1, 0.9),
        _ => gap * r.between(0.15, 1.0),
    };
    // A sender that recovers within few packets shows nothing to any observer.
    let (dip, visible) = match sender {
        Sender::Dcqcn => (100e3, 20.0),
        Sender::Partly => (recovery, 20.0),
        Sender::Halves | Sender::Late => (recovery, 10.0),
        _ => (gap, 0.0),
    };
    let rate = rate.max(visible * 1e9 / dip).min(1.5e7);
    let linear = r.chance(0.5);
    let floor = r.choose(&[0.001, 0.01, 0.05]);
    let lead = r.choose(&[0.0, 0.5, 1.0, 3.0, 10.0, 30.0]) * gap * r.between(0.7, 1.0);
    let texture = match sender {
        Sender::Poisson => Texture::Poisson,
        Sender::Bursts if r.chance(0.4) => Texture::Bursts(r.between(8.0, 64.0) as u32),
        Sender::Bursts => {
            let on = r.scale(200.0, 5000.0) / rate * 1e9;
            Texture::OnOff(on, on * r.scale(0.3, 3.0), r.chance(0.5))
        }
        Sender::Varies => {
            let mean = gap * r.scale(0.3, 30.0);
            Texture::Levels(r.between(0.2, 0.8), mean.max(64e9 / rate))
        }
        Sender::Constant => Texture::Paced(jitter),
        _ if r.chance(0.15) && rate * dip > 40e9 => Texture::Poisson,
        _ if r.chance(0.15) && rate * dip > 100e9 => Texture::Bursts(r.between(4.0, 16.0) as u32),
        _ => Texture::Paced(jitter),
    };
    // Congestion needs data to send.
    let when_fast = matches!(texture, Texture::OnOff(..)) || r.chance(0.3);
    let loss = r.choose(&[0.0, 0.0, 0.0, 0.001, 0.02]);
    let tick = r.choose(&[1.0, 1.0, 1.0, 1e3, 1e3, 1e6]);
    let tick = if tick > gap { 1e3 } else { tick };
    let late_start = r.chance(0.1);
    let wanted = (
        r.scale(1_000.0, 20_000.0),
        r.between(20.0, 100.0).max(5.0 * delay / gap),
    );

    let line_rate = rate * size * 8.0;
    let mut dcqcn = Dcqcn::new(Params::default(), line_rate);
    let mut judged = Obedience::default();
    let mut it = Running {
        share: 1.0,
        ..Running::default()
    };
    let (mut now, mut next_told) = (1e9, 1e9 + lead + gap * r.part());
    let start = now + if late_start { 8.0 * gap } else { 0.0 };
    let mut coming: std::collections::VecDeque<f64> = std::collections::VecDeque::new();
    let (mut seen, mut sent_then) = ((0, 0), u32::MAX);
    let mut entropy = 0xC000;
    let (mut progress, mut need) = (0.0, 1.0);
    let mut size_now = size;
    let (mut on, mut switch) = (true, now);
    let mut in_episode = 0;
    let stamp = |now: f64| ((now / tick).floor() * tick) as u64;
    // Sparse flows of slow senders end by time.
    let most = now + (wanted.0 / rate * 1e9).max(wanted.1 * gap) * 40.0;
    while (f64::from(seen.0) < wanted.0 || f64::from(seen.1) < wanted.1)
        && now < most
        && seen.0 < 60_000
    {
        let level = match texture {
            Texture::OnOff(..) if !on => 0.0,
            Texture::Levels(low, _) if !on => low,
            _ => 1.0,
        };
        dcqcn.on_timer(Time::from_nanos(now as u64));
        let answers = match sender {
            Sender::Dcqcn => dcqcn.rate() / line_rate,
            _ => it.share,
        };
        let speed = rate * answers * level / 1e9;
        // To the next packet, notification, response, change of level, or step of recovery.
        let mut to = now + recovery.min(gap) / 20.0;
        if sender == Sender::Dcqcn {
            to = to.min(now + 20e3);
        }
        if answers == 1.0 {
            to = f64::INFINITY;
        }
        if speed > 0.0 {
            to = to.min(now + (need - progress) / speed);
        }
        to = to.min(next_told);
        if let Some(first) = coming.front() {
            to = to.min(*first);
        }
        let switches = matches!(texture, Texture::OnOff(..) | Texture::Levels(..));
        if switches {
            to = to.min(switch);
        }
        let step = (to - now).max(0.0);
        progress += step * speed;
        now = to;
        if it.share > 1.0 {
            it.risen -= step;
            if it.risen <= 0.0 {
                it.share = 1.0;
            }
        } else if it.share < 1.0 {
            it.share = if linear {
                it.share + step / recovery * 0.5
            } else {
                1.0 - (1.0 - it.share) * (-3.0 * step / recovery).exp()
            }
            .min(1.0);
            if it.share > 0.999 {
                it.share = 1.0;
            }
        }
        if progress >= need - 1e-6 {
            progress = 0.0;
            if !r.chance(loss) && now >= start {
                judged.data(stamp(now), size_now as u64, entropy);
                seen.0 += 1;
            }
            dcqcn.on_sent(size_now as u32);
            size_now = if mixed && r.chance(0.2) {
                size / 4.0
            } else {
                size
            };
            need = match texture {
                Texture::Paced(jitter) => 1.0 + jitter * r.between(-1.0, 1.0),
                Texture::Poisson => r.exponential(),
                Texture::Bursts(n) => {
                    it.burst = (it.burst + 1) % n;
                    if it.burst == 0 {
                        f64::from(n) * 0.9
                    } else {
                        0.1
                    }
                }
                _ => 1.0 + 0.02 * r.between(-1.0, 1.0),
            } * size_now
                / size;
        }
        if switches && now >= switch {
            on = !on;
            switch = now
                + match texture {
                    Texture::OnOff(up, down, fixed) => {
                        (if on { up } else { down })
                            * if fixed {
                                1.0
                            } else {
                                0.3 + 0.7 * r.exponential()
                            }
                    }
                    Texture::Levels(_, mean) => mean * (0.2 + 0.8 * r.exponential()),
                    _ => 0.0,
                };
        }
        if now >= next_told {
            next_told = now
                + match notified {
                    Notified::Every(jitter) => gap * (1.0 + jitter * r.between(-1.0, 1.0)),
                    Notified::Random => gap * (0.1 + 0.9 * r.exponential()),
                    Notified::Episodes(many, quiet) => {
                        in_episode += 1;
                        if in_episode % many == 0 {
                            gap * quiet * r.between(0.7, 1.3)
                        } else {
                            gap * r.between(0.9, 1.1)
                        }
                    }
                };
            if seen.0 == sent_then && now >= start {
                // A notification needs a data packet as its cause.
            } else if when_fast && level < 1.0 {
                next_told = next_told.min(switch + gap * r.between(0.1, 1.0));
            } else {
                if now >= start {
                    judged.notified(stamp(now));
                    seen.1 += 1;
                    sent_then = seen.0;
                }
                coming.push_back(now + delay);
            }
        }
        if coming.front().is_some_and(|at| now >= *at) {
            coming.pop_front();
            match sender {
                Sender::Dcqcn => {
                    let now = Time::from_nanos(now as u64);
                    if anew && dcqcn.rate() >= 0.999 * line_rate {
                        dcqcn = Dcqcn::new(Params::default(), line_rate);
                        dcqcn.on_timer(now);
                    }
                    dcqcn.on_notification(now, &Notice::default());
                }
                Sender::Rises => (it.share, it.risen) = (cut, recovery),
                Sender::Detours if r.chance(0.7) => entropy = r.between(0.0, 65_000.0) as u32,
                _ => it.share = (it.share * cut).max(floor),
            }
        }
    }
    Labelled {
        sender,
        small: false,
        gap,
        pacing: texture.pacing(),
        behind: false,
        verdict: judged.verdict(),
        seen,
    }
}

/// Texture of packets without slowdowns.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Texture {
    Paced(f64),
    Poisson,
    Bursts(u32),
    OnOff(f64, f64, bool),
    Levels(f64, f64),
}

impl Texture {
    const fn pacing(self) -> Pacing {
        match self {
            Self::Paced(_) => Pacing::Even,
            Self::Poisson => Pacing::Random,
            Self::Bursts(_) | Self::OnOff(..) => Pacing::Bursts,
            Self::Levels(..) => Pacing::Varies,
        }
    }
}

#[derive(Debug, Default)]
struct Running {
    share: f64,
    /// Time for which it remains faster.
    risen: f64,
    burst: u32,
}
