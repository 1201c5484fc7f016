//! Senders made separately from the others: messages with think times, bursts of a rate limiter,
//! small cuts, responses that come too late, a queue with cross traffic, senders captured only
//! while they are held down, random notifications, and rates that swing by themselves.

use super::{GAPS, Labelled, Pacing, Random, Sender};
use core::time::Duration;
use fcn_node::reaction_point::dcqcn::{Dcqcn, Params};
use fcn_node::reaction_point::{Controller, Notice};
use fcn_observe::Time;
use fcn_observe::obedience::Obedience;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A capture of a flow, with its defects.
struct Capture {
    judged: Obedience,
    seen: (u32, u32),
    loss: f64,
    start: f64,
    tick: f64,
    first: f64,
    last: f64,
}

impl Capture {
    /// Returns one of a flow that is notified once per `gap`.
    fn new(r: &mut Random, gap: f64) -> Self {
        let tick = r.choose(&[1.0, 1.0, 1e3, 1e6]);
        Self {
            judged: Obedience::default(),
            seen: (0, 0),
            loss: r.choose(&[0.0, 0.0, 0.001, 0.02]),
            start: 1e9 + if r.chance(0.2) { 5.5 * gap } else { 0.0 },
            tick: if tick * 50.0 > gap { 1.0 } else { tick },
            first: f64::INFINITY,
            last: 0.0,
        }
    }

    fn stamp(&self, at: f64) -> u64 {
        ((at / self.tick).floor() * self.tick) as u64
    }

    fn data(&mut self, r: &mut Random, at: f64) {
        if at >= self.start && !r.chance(self.loss) {
            self.judged.data(self.stamp(at), 1_086, 0);
            self.seen.0 += 1;
        }
    }

    fn notified(&mut self, at: f64) {
        if at >= self.start {
            self.judged.notified(self.stamp(at));
            self.seen.1 += 1;
            self.first = self.first.min(at);
            self.last = at;
        }
    }

    fn label(self, sender: Sender, small: bool, pacing: Pacing) -> Labelled {
        let gap = (self.last - self.first) / f64::from(self.seen.1.max(2) - 1);
        let nearest = |a: &f64, b: &f64| (a / gap).ln().abs().total_cmp(&(b / gap).ln().abs());
        Labelled {
            sender,
            small,
            gap: GAPS.into_iter().min_by(nearest).unwrap_or(gap),
            pacing,
            behind: sender == Sender::Crosses,
            verdict: self.judged.verdict(),
            seen: self.seen,
        }
    }
}

/// Returns a flow of that kind.
pub fn flow(sender: Sender, r: &mut Random) -> Labelled {
    match sender {
        Sender::Thinks | Sender::ThinksHalves => messages(sender, r),
        Sender::Crosses => crosses(r),
        Sender::Swings => swings(r),
        _ => slows(sender, r),
    }
}

/// Messages that cause their own notifications, at a fixed position in every message or every
/// second or third.
fn messages(sender: Sender, r: &mut Random) -> Labelled {
    let halves = sender == Sender::ThinksHalves;
    let packets = r.scale(if halves { 20.0 } else { 4.0 }, 500.0).floor();
    let apart = r.scale(100.0, 1e8 / packets);
    let think = (packets * r.scale(0.1, 30.0)).max(2.0) * apart;
    let place = if halves {
        r.between(0.1, 0.6)
    } else {
        r.between(0.5, 1.0)
    };
    let place = (packets * place).floor();
    let each = r.choose(&[1, 1, 2, 3]);
    let (pace, sizes, thinks) = (
        r.choose(&[0.0, 0.05]),
        r.choose(&[0.0, 0.0, 0.3]),
        r.choose(&[0.0, 0.05, 0.5]),
    );
    let recovery = packets * apart * r.scale(0.5, 3.0);
    let gap = (packets * apart + think) * f64::from(each);
    let mut seen = Capture::new(r, gap);
    let many = (r.scale(1_000.0, 20_000.0) / packets).max(r.between(26.0, 100.0) * f64::from(each));
    let (mut now, mut cut) = (1e9, f64::NEG_INFINITY);
    for message in 0..many as u32 {
        let packets = (packets * (1.0 + sizes * r.between(-1.0, 1.0))).max(2.0) as u32;
        for packet in 0..packets {
            seen.data(r, now);
            if packet + 1 == packets {
                seen.judged.message_ends();
            }
            let share = if halves && now > cut {
                1.0 - 0.5 * (-2.0 * (now - cut) / recovery).exp()
            } else {
                1.0
            };
            let next = now + apart / share * (1.0 + pace * r.between(-1.0, 1.0));
            if f64::from(packet) == place && message % each == each - 1 {
                let notified = now + (next - now) * r.between(0.1, 0.9);
                seen.notified(notified);
                cut = notified;
            }
            now = next;
        }
        now += think * (1.0 + thinks * r.between(-1.0, 1.0));
    }
    seen.label(sender, false, Pacing::Messages)
}

/// A sender that sends all the time, and slows down for part of the interval to the next
/// notification.
fn slows(sender: Sender, r: &mut Random) -> Labelled {
    let mut gap = r.choose(&GAPS);
    let (cut, delay, lasts, apart, burst, random);
    let mut heeds = 1.0;
    match sender {
        Sender::Slightly => {
            (cut, random, burst) = (r.between(0.6, 0.9), true, 1);
            delay = r.choose(&[0.0, 2e3, 10e3f64]).min(gap / 10.0);
            lasts = gap * r.between(0.15, 0.7);
            heeds = r.choose(&[1.0, 1.0, 0.7, 0.4]);
            // 5 packets while it is slow.
            apart = (lasts / r.scale(5.0, 500.0)).max(100.0);
        }
        Sender::TooLate => {
            (cut, random, burst) = (0.5, r.chance(0.5), 1);
            delay = r.scale(30e6, 300e6);
            gap = delay * r.between(1.5, 5.0);
            lasts = (gap - delay) * r.between(0.3, 1.0);
            apart = 1e9 / r.scale(10.0, 300.0);
        }
        Sender::AtRandom => {
            (cut, random, burst, delay) =
                (0.5, true, 1, r.choose(&[0.0, 2e3, 10e3f64]).min(gap / 10.0));
            lasts = gap * r.between(0.15, 1.0);
            apart = gap / r.scale(4.0, 500.0);
        }
        Sender::Held => {
            (cut, random, burst, delay) = (0.5, r.chance(0.3), 1, 0.0);
            lasts = f64::INFINITY;
            apart = gap / r.scale(4.0, 200.0);
        }
        _ => {
            (cut, random, burst) = (0.5, false, r.between(8.0, 32.0) as u32);
            delay = r.choose(&[0.0, 2e3, 10e3f64]).min(gap / 10.0);
            lasts = gap * r.between(0.3, 1.0);
            apart = (gap / f64::from(burst) / r.scale(10.0, 50.0)).max(100.0);
        }
    }
    let jitter = r.choose(&[0.0, 0.1, 0.5]);
    let line = if burst > 1 { r.between(0.1, 0.5) } else { 1.0 };
    let packets = r
        .scale(1_100.0, 20_000.0)
        .max(r.between(26.0, 100.0) * gap / apart)
        .min(60_000.0);
    let mut seen = Capture::new(r, gap);
    let mut now = 1e9;
    let (mut notified, mut slow_from) = (now + gap * r.between(0.5, 5.0), VecDeque::new());
    if sender == Sender::Held {
        (notified, seen.start) = (now + gap * r.part(), now);
        slow_from.push_back(now);
    }
    for packet in 0..packets as u32 {
        // Data to be sent, in packets at full rate, and in bursts at once.
        let last = packet % burst == burst - 1;
        let mut need = match (burst, last) {
            (1, _) if random => r.exponential(),
            (1, _) => 1.0 + 0.02 * r.between(-1.0, 1.0),
            (_, false) => line,
            (_, true) => f64::from(burst) - line * f64::from(burst - 1),
        };
        seen.data(r, now);
        loop {
            let slow = slow_from.front().is_some_and(|from| now >= *from);
            // A rate limiter delays the next burst, not packets within one.
            let share = if slow && (burst == 1 || last) {
                cut
            } else {
                1.0
            };
            let mut to = now + need * apart / share;
            let change = slow_from
                .front()
                .map(|from| from + if slow { lasts } else { 0.0 });
            let next = notified.min(change.unwrap_or(f64::INFINITY));
            to = to.min(next.max(now));
            need -= (to - now) * share / apart;
            now = to;
            if change.is_some_and(|change| now >= change) && slow {
                slow_from.pop_front();
            }
            if now >= notified {
                seen.notified(notified);
                if r.chance(heeds) {
                    // Restarts a slowdown that has begun.
                    if slow_from.back().is_some_and(|from| now >= *from) {
                        slow_from.pop_back();
                    }
                    slow_from.push_back(notified + delay);
                }
                notified = now
                    + gap
                        * match sender {
                            Sender::AtRandom => r.exponential(),
                            _ => 1.0 + jitter * r.between(-1.0, 1.0),
                        };
            }
            if need <= 1e-6 {
                break;
            }
        }
    }
    let pacing = match (burst, random) {
        (1, true) => Pacing::Random,
        (1, false) => Pacing::Even,
        _ => Pacing::Bursts,
    };
    seen.label(sender, (1.0 - cut) * heeds < 0.2, pacing)
}

/// A sender whose rate swings by itself, by a sine or between two levels, and that is notified in
/// every busy half, or in most of them.
fn swings(r: &mut Random) -> Labelled {
    let period = r.scale(3e5, 2e7);
    let depth = r.between(0.05, 0.3);
    let levels = r.chance(0.5);
    let apart = period / r.scale(20.0, 500.0);
    let each = r.choose(&[1.0, 1.0, 0.9, 0.5]);
    let (place, jitter) = (r.between(0.05, 0.45), r.choose(&[0.0, 0.05, 1.0]));
    let lead = r.choose(&[0.0, 0.0, 1.0, 3.0, 10.0, 30.0]);
    let periods = (r.scale(1_100.0, 20_000.0) * apart / period).max(r.between(26.0, 100.0) / each);
    let mut seen = Capture::new(r, period);
    let (mut now, end) = (1e9, 1e9 + (lead + periods) * period);
    let (mut number, mut notified) = (lead, f64::NEG_INFINITY);
    while now < end {
        while notified <= now {
            if notified.is_finite() && r.chance(each) {
                seen.notified(notified);
            }
            let place = place + jitter * (r.between(0.0, 0.5) - place);
            notified = 1e9 + (number + place) * period;
            number += 1.0;
        }
        seen.data(r, now);
        let swing = ((now - 1e9) / period * core::f64::consts::TAU).sin();
        let swing = if levels { swing.signum() } else { swing };
        now += apart / (1.0 + depth * swing) * (1.0 + 0.02 * r.between(-1.0, 1.0));
    }
    seen.label(Sender::Swings, false, Pacing::Varies)
}

/// Flow 0 of several DCQCN flows that share a queue with each other and with random packets,
/// captured behind it once they have settled; or it begins then.
fn crosses(r: &mut Random) -> Labelled {
    let line_rate = r.choose(&[10e9, 25e9, 100e9]);
    let size = r.choose(&[1086.0, 4158.0]);
    let senders = r.scale(2.0, 25.0) as usize;
    let wire = size * 8e9 / line_rate;
    let cross = r.choose(&[0.0, 0.2, 0.5]);
    let delay = r.scale(2e3, 30e3);
    let params = Params {
        g: r.choose(&[1.0 / 256.0, 1.0 / 256.0, 1.0 / 16.0]),
        t: Duration::from_micros(r.choose(&[55, 55, 300, 1_500])),
        r_ai: r.choose(&[5e6, 40e6, 40e6]),
        ..Params::default()
    };
    let (kmin, kmax, pmax) = r.choose(&[(5.0, 200.0, 0.01), (20.0, 100.0, 0.2), (40.0, 40.0, 1.0)]);
    let settled = 1e9 + 5e6;
    let mut next = BinaryHeap::new();
    for one in 0..senders {
        let start = if one == 0 && r.chance(0.5) {
            settled
        } else {
            1e9 + r.between(0.0, 50e3)
        };
        next.push(Reverse((start as u64, one)));
    }
    if cross > 0.0 {
        next.push(Reverse((1_000_000_000, senders)));
    }
    let mut seen = Capture::new(r, 200e3);
    seen.start = settled;
    let wanted = r.scale(1_200.0, 6_000.0) as u32;
    let mut control = vec![Dcqcn::new(params, line_rate); senders];
    let mut cnps = vec![(f64::NEG_INFINITY, f64::INFINITY); senders];
    let mut free: f64 = 0.0;
    let mut notified = VecDeque::new();
    let (mut cuts, mut depth, mut events) = (0.0, 0.0, 0);
    while let Some(Reverse((at, one))) = next.pop()
        && seen.seen.0 < wanted
        && events < 3_000_000
    {
        events += 1;
        let now = at as f64;
        let queued = (free - now).max(0.0) / wire;
        if queued > 500.0 {
            // Held back hop by hop, so that nothing is lost.
            next.push(Reverse(((now + wire * 20.0) as u64, one)));
            continue;
        }
        free = free.max(now) + wire;
        let Some(control) = control.get_mut(one) else {
            let apart = wire / cross * r.exponential();
            next.push(Reverse(((now + apart) as u64 + 1, one)));
            continue;
        };
        let (cnp, cut) = &mut cnps[one];
        let at = Time::from_nanos(at);
        control.on_timer(at);
        if now >= *cut {
            let before = control.rate();
            control.on_notification(at, &Notice::default());
            *cut = f64::INFINITY;
            if one == 0 && now > settled {
                cuts += 1.0;
                depth += 1.0 - control.rate() / before;
            }
        }
        control.on_sent(size as u32);
        let apart = size * 8e9 / control.rate() * r.between(0.95, 1.05);
        next.push(Reverse(((now + apart) as u64, one)));
        if one == 0 {
            while notified.front().is_some_and(|at| *at <= free) {
                seen.notified(notified.pop_front().unwrap_or_default());
            }
        }
        let marked =
            queued >= kmax || queued > kmin && r.chance(pmax * (queued - kmin) / (kmax - kmin));
        if one == 0 {
            seen.data(r, free);
            if marked {
                seen.judged.marked();
            }
        }
        if marked && free - *cnp >= 50e3 {
            *cnp = free;
            *cut = cut.min(free + 2.0 * delay);
            if one == 0 {
                notified.push_back(free + delay);
            }
        }
    }
    seen.label(Sender::Crosses, depth < 0.2 * cuts, Pacing::Even)
}
