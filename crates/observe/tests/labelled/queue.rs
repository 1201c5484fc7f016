//! Senders that share a queue: marks, CNPs and cuts result from the traffic itself, as behind a
//! switch.

use super::{GAPS, Labelled, Pacing, Random, Sender};
use fcn_node::reaction_point::dcqcn::{Dcqcn, Params};
use fcn_node::reaction_point::{Controller, Notice};
use fcn_observe::Time;
use fcn_observe::obedience::Obedience;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An event of a flow, with its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// It sends a packet.
    Sends(usize),
    /// A packet passes the capture point, already marked or not.
    Data(bool),
    /// A CNP passes the capture point.
    Notified,
    /// A CNP reaches its sender.
    Cuts(usize),
}

/// Returns flow 0 of several, captured before the queue or behind it.
pub fn flow(sender: Sender, r: &mut Random) -> Labelled {
    let line_rate = r.choose(&[10e9, 25e9, 100e9]);
    let size = r.choose(&[1086.0, 1086.0, 4158.0]);
    let senders = r.between(2.0, 9.0) as usize;
    let behind = r.chance(0.5);
    let delay = r.scale(1e3, 20e3);
    // Kmin, Kmax and Pmax as published for 40 Gbit/s, in time on the link: 5 kB, 200 kB, 1 %; and
    // marks at one depth.
    let (kmin, kmax, pmax) = r.choose(&[(1e3, 40e3, 0.01), (5e3, 40e3, 0.1), (10e3, 10e3, 1.0)]);
    let least_apart = r.choose(&[4e3, 50e3, 50e3]);
    let tick = r.choose(&[1.0, 1.0, 1e3]);
    let wanted = r.scale(1_200.0, 4_000.0) as u32;
    let fixed = line_rate * r.between(0.3, 1.0) / senders as f64 * 1.5;

    let mut control: Vec<_> = (0..senders)
        .map(|_| Dcqcn::new(Params::default(), line_rate))
        .collect();
    let mut cnps = vec![f64::NEG_INFINITY; senders];
    let mut judged = Obedience::default();
    let mut seen = (0, 0);
    let (mut free, mut now) = (0.0_f64, 0.0);
    let mut coming = BinaryHeap::new();
    let add = |coming: &mut BinaryHeap<_>, at: f64, event| coming.push(Reverse((at as u64, event)));
    for number in 0..senders {
        let start = if number == 0 {
            0.0
        } else {
            r.between(0.0, 200e3)
        };
        add(&mut coming, 1e9 + start, Event::Sends(number));
    }
    // Twice the time that its share of the link takes.
    let end = 1e9 + 2.0 * f64::from(wanted) * senders as f64 * size * 8e9 / line_rate;
    while seen.0 < wanted && now < end {
        let Some(Reverse((at, event))) = coming.pop() else {
            break;
        };
        now = at as f64;
        let stamp = (now / tick) as u64 * tick as u64;
        match event {
            Event::Sends(number) => {
                let one = &mut control[number];
                one.on_timer(Time::from_nanos(at));
                let rate = if number == 0 && sender == Sender::Pushes {
                    fixed
                } else {
                    one.rate()
                };
                one.on_sent(size as u32);
                let apart = size * 8e9 / rate * r.between(0.98, 1.02);
                add(&mut coming, now + apart, Event::Sends(number));
                let waits = (free - now).max(0.0);
                free = now + waits + size * 8e9 / line_rate;
                let marked = waits >= kmax
                    || waits > kmin && r.chance(pmax * (waits - kmin) / (kmax - kmin));
                if number == 0 {
                    let (at, marked) = if behind { (free, marked) } else { (now, false) };
                    add(&mut coming, at, Event::Data(marked));
                }
                if marked && free - cnps[number] >= least_apart {
                    cnps[number] = free;
                    let heard = free + 2.0 * delay;
                    add(&mut coming, heard + delay, Event::Cuts(number));
                    if number == 0 {
                        add(
                            &mut coming,
                            if behind { heard } else { heard + delay },
                            Event::Notified,
                        );
                    }
                }
            }
            Event::Data(marked) => {
                judged.data(stamp, size as u64, 0);
                if marked {
                    judged.marked();
                }
                seen.0 += 1;
            }
            Event::Notified => {
                judged.notified(stamp);
                seen.1 += 1;
            }
            Event::Cuts(number) => {
                let now = Time::from_nanos(at);
                control[number].on_timer(now);
                control[number].on_notification(now, &Notice::default());
            }
        }
    }
    let gap = (now - 1e9) / f64::from(seen.1.max(1));
    let nearest = |a: &f64, b: &f64| (a / gap).ln().abs().total_cmp(&(b / gap).ln().abs());
    Labelled {
        sender,
        small: false,
        gap: GAPS.into_iter().min_by(nearest).unwrap_or(gap),
        pacing: Pacing::Even,
        behind,
        verdict: judged.verdict(),
        seen,
    }
}
