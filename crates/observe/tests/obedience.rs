//! Verdicts on flows whose senders are known to obey or not.

mod labelled;

use fcn_observe::obedience::{Answer, Evidence, Obedience, Verdict};
use labelled::{Labelled, Random, Sender};

/// Returns the flows that count: at least 1,000 data packets and 20 notifications.
fn flows(numbers: impl Iterator<Item = u64>) -> Vec<Labelled> {
    numbers
        .map(labelled::flow)
        .filter(|flow| flow.seen.0 >= 1_000 && flow.seen.1 >= 20)
        .collect()
}

fn part(flows: &[&Labelled], holds: impl Fn(&Labelled) -> bool) -> f64 {
    flows.iter().filter(|flow| holds(flow)).count() as f64 / flows.len() as f64
}

fn is_unclear(flow: &Labelled) -> bool {
    flow.verdict.answer == Answer::Unclear
}

#[test]
fn verdicts_are_rarely_wrong_and_rarely_missing() {
    let flows = flows(50_000..50_780);
    let all: Vec<_> = flows.iter().collect();
    assert!(
        part(&all, Labelled::is_wrong) <= 0.02,
        "{}",
        part(&all, Labelled::is_wrong)
    );
    // Behind a shared queue, and for senders that speed up, more remains unclear: see the
    // benchmark.
    let alone: Vec<_> = flows
        .iter()
        .filter(|flow| Sender::TOGETHER[..Sender::ALONE].contains(&flow.sender))
        .collect();
    assert!(alone.len() > 500, "{}", alone.len());
    assert!(
        part(&alone, Labelled::is_wrong) <= 0.01,
        "{}",
        part(&alone, Labelled::is_wrong)
    );
    // With a fifth unclear, 7 % of the verdicts on flows of an independent simulator were wrong:
    // see `HINTS_ERRORS`.
    let unclear = part(&alone, is_unclear);
    assert!(unclear < 0.26, "{unclear}");
}

#[test]
fn senders_made_separately_are_rarely_judged_wrongly() {
    let flows: Vec<_> = (50_000..50_600)
        .map(labelled::apart)
        .filter(|flow| flow.seen.0 >= 1_000 && flow.seen.1 >= 20)
        .collect();
    for sender in Sender::APART {
        let one: Vec<_> = flows.iter().filter(|flow| flow.sender == sender).collect();
        if sender == Sender::Held {
            // Its packets do not differ from those of one that never slows down: the evidence says
            // so.
            for flow in one.iter().filter(|flow| flow.is_wrong()) {
                let evidence = flow.verdict.evidence;
                let explained = matches!(
                    evidence,
                    Evidence::Steady { alone: false, .. }
                        | Evidence::SteadyPace { alone: false, .. }
                );
                assert!(explained, "{evidence}");
            }
            continue;
        }
        assert!(one.len() > 30, "{sender:?}: {}", one.len());
        let most = match sender {
            Sender::Crosses => 0.15,
            // It slows down up to three notifications later, which looks like a swing of its own.
            Sender::TooLate => 0.2,
            _ => 0.02,
        };
        let wrong = part(&one, Labelled::is_wrong);
        assert!(wrong <= most, "{sender:?}: {wrong}");
    }
}

#[test]
fn a_sender_that_swings_by_itself_rarely_counts_as_obeying() {
    let flows: Vec<_> = (50_000..50_200)
        .map(labelled::swings)
        .filter(|flow| flow.seen.0 >= 1_000 && flow.seen.1 >= 20)
        .collect();
    let swings: Vec<_> = flows.iter().collect();
    assert!(swings.len() > 150, "{}", swings.len());
    // The benchmark reports 4 % of more flows; before a steady rate without notifications was
    // required, it was 39 %.
    let wrong = part(&swings, Labelled::is_wrong);
    assert!(wrong <= 0.1, "{wrong}");
}

#[test]
fn small_cuts_behind_a_queue_do_not_count_as_not_obeying() {
    let kinds = Sender::TOGETHER.len();
    let place = Sender::TOGETHER
        .iter()
        .position(|sender| *sender == Sender::Shares);
    let flows = flows((60_000..61_300).filter(|n| Some(*n as usize % kinds) == place));
    let shares: Vec<_> = flows.iter().collect();
    assert!(shares.len() > 30, "{}", shares.len());
    assert_eq!(part(&shares, Labelled::is_wrong), 0.0);
    assert!(part(&shares, is_unclear) < 0.5);
}

#[test]
fn a_sender_that_speeds_up_when_notified_does_not_obey() {
    for (rise, every, lasts) in [(1.1, 2 * MS, MS), (2.0, 2 * MS, MS), (4.0, 2 * MS, 20 * US)] {
        let verdict = run(200 * MS, every, |_, since| {
            let risen = since.is_some_and(|since| (10 * US..lasts + 10 * US).contains(&since));
            (2_000.0 / if risen { rise } else { 1.0 }) as u64
        });
        assert_ne!(verdict.answer, Answer::Obeys, "{rise} {lasts}: {verdict:?}");
    }
}

/// Returns the verdict on a flow of `length` nanoseconds: `gap` returns the time from a packet to
/// the next, given its time and the time since the last notification. Notified every `every`, for
/// the first time after one and a half of them.
fn run(length: u64, every: u64, gap: impl Fn(u64, Option<u64>) -> u64) -> Verdict {
    let mut judged = Obedience::default();
    let (mut at, mut notified, mut last) = (0, every * 3 / 2, None);
    while at < length {
        judged.data(1_000_000_000 + at, 1_000, 7);
        let next = at + gap(at, last.map(|last| at - last)).max(1);
        while notified <= next {
            judged.notified(1_000_000_000 + notified);
            last = Some(notified);
            notified += every;
        }
        at = next;
        if let Some(notified) = last {
            at = at.max(notified);
        }
    }
    judged.verdict()
}

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

#[test]
fn a_sender_that_never_slows_down_does_not_obey() {
    for (packet, every, length) in [
        (20 * MS, 500 * MS, 60 * S),
        (20 * MS, 480 * MS, 60 * S),
        (US, 50 * US, 20 * MS),
        (10 * US, MS, 200 * MS),
        (100 * US, 5 * MS, S),
        (100, 20 * US, 10 * MS),
        (MS, 100 * MS, 20 * S),
    ] {
        let verdict = run(length, every, |_, _| packet);
        assert_eq!(
            verdict.answer,
            Answer::DoesNotObey,
            "{packet} {every}: {verdict:?}"
        );
        assert!(verdict.measured >= 20);
    }
}

#[test]
fn halving_and_recovering_before_the_next_notification_obeys() {
    for (packet, every, length) in [
        (US, 50 * US, 20 * MS),
        (10 * US, 10 * MS, S),
        (10 * US, 200 * US, 200 * MS),
        (10 * US, MS, 200 * MS),
        (100, 20 * US, 10 * MS),
        (20 * MS, 500 * MS, 60 * S),
        (MS, 100 * MS, 20 * S),
    ] {
        for part in [0.3, 0.6, 0.95] {
            let recovery = every as f64 * part;
            let linear = run(length, every, |_, since| {
                let done = since.map_or(1.0, |since| (since as f64 / recovery).min(1.0));
                (packet as f64 / (0.5 + 0.5 * done)) as u64
            });
            let exponential = run(length, every, |_, since| {
                let left = since.map_or(0.0, |since| (-(since as f64) * 3.0 / recovery).exp());
                (packet as f64 / (1.0 - 0.5 * left)) as u64
            });
            for verdict in [linear, exponential] {
                assert_eq!(
                    verdict.answer,
                    Answer::Obeys,
                    "{packet} {every} {part}: {verdict:?}"
                );
            }
        }
    }
}

#[test]
fn bursts_are_no_obedience() {
    // 10 ms of packets every 10 µs, then nothing for 10 ms; notified every 3, 7 or 33 ms,
    // independently of that.
    for every in [3 * MS, 7 * MS, 33 * MS] {
        let verdict = run(2 * S, every, |at, _| {
            if at % (20 * MS) < 10 * MS {
                10 * US
            } else {
                20 * MS - at % (20 * MS)
            }
        });
        assert_ne!(verdict.answer, Answer::Obeys, "{every}: {verdict:?}");
    }
    // A full window at once every 50 µs; notified when one begins, like the data that was in the
    // queue.
    for every in [MS, 10 * MS] {
        let verdict = run(100 * every, every, |at, _| {
            if at % (50 * US) < 4_500 {
                300
            } else {
                50 * US - at % (50 * US)
            }
        });
        assert_ne!(verdict.answer, Answer::Obeys, "{every}: {verdict:?}");
    }
}

#[test]
fn the_end_of_a_flow_is_no_obedience() {
    let mut judged = Obedience::default();
    for packet in 0..1_000 {
        judged.data(packet * 10 * US, 1_000, 7);
    }
    judged.notified(10 * MS);
    judged.notified(11 * MS);
    assert_eq!(judged.verdict().answer, Answer::Unclear);
}

#[test]
fn notifications_in_step_with_packets_are_no_evidence() {
    // Packets at regular intervals, with as much jitter, and notifications at regular intervals, or
    // a fixed time after each packet.
    for (apart, every, behind) in [
        (100 * MS, 100 * MS, None),
        (MS, MS, None),
        (MS, 2 * MS, None),
        (10 * US, 20 * US, None),
        (10 * US, 50 * US, None),
        (MS, MS, Some(12 * US)),
        (10 * US, 10 * US, Some(2 * US)),
    ] {
        let mut obeys = 0;
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let mut judged = Obedience::default();
            let phase = random.between(0.0, every as f64) as u64;
            let mut next = phase;
            for packet in 1..3_000 {
                let at = packet * apart + (random.between(0.0, 0.6 * apart as f64) as u64);
                while behind.is_none() && next <= at {
                    judged.notified(next);
                    next += every;
                }
                judged.data(at, 1_000, 7);
                if let Some(behind) = behind {
                    judged.notified(at + behind);
                }
            }
            obeys += u32::from(judged.verdict().answer == Answer::Obeys);
        }
        assert!(obeys <= 1, "{apart} {every} {behind:?}: {obeys}");
    }
}

#[test]
fn a_receivers_cnps_do_not_make_random_packets_seem_slower() {
    // A CNP right after the first packet that comes `holds_off` mean gaps after the last CNP or
    // later.
    for holds_off in [0.3, 0.7, 1.0, 1.4, 2.0, 3.0, 5.0, 10.0] {
        let mut obeys = 0;
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let mut judged = Obedience::default();
            let (mut at, mut notified) = (0.0, 0.0);
            for _ in 0..3_000 {
                at += 1e5 * random.exponential();
                judged.data(at as u64, 1_000, 7);
                if at - notified >= holds_off * 1e5 {
                    notified = at;
                    judged.notified(at as u64 + 1_000);
                }
            }
            obeys += u32::from(judged.verdict().answer == Answer::Obeys);
        }
        assert!(obeys <= 1, "{holds_off}: {obeys}");
    }
}

#[test]
fn a_flow_captured_only_while_held_down_is_unclear() {
    // Two packets between notifications, from before the first captured packet.
    let mut judged = Obedience::default();
    for packet in 0..4_000 {
        judged.notified(packet * 100 * US);
        judged.data(packet * 100 * US + 30 * US, 1_000, 7);
        judged.data(packet * 100 * US + 80 * US, 1_000, 7);
    }
    assert_eq!(judged.verdict().answer, Answer::Unclear);
}

#[test]
fn the_reported_reduction_is_not_exaggerated() {
    // Paced, at half the rate for the time of 20 packets after each notification, at any phase.
    for packet in [10 * US, 50 * US, MS] {
        for phase in 0..10 {
            let every = 100 * packet + phase * packet / 10;
            let verdict = run(100 * every, every, |_, since| {
                let slow = since.is_some_and(|since| since < 20 * packet);
                if slow { 2 * packet } else { packet }
            });
            assert_eq!(verdict.answer, Answer::Obeys, "{packet} {phase}");
            let change = verdict.evidence.change().unwrap();
            assert!((-0.505..0.0).contains(&change), "{packet} {phase} {change}");
        }
    }
}

#[test]
fn slowing_down_before_the_first_notification_is_not_obeying() {
    for before in [2, 10, 50] {
        let every = 2 * MS;
        let change = every * 3 / 2 + 20 * MS - before * 100 * US;
        let mut judged = Obedience::default();
        let (mut at, mut notified) = (0, every * 3 / 2 + 20 * MS);
        while at < 200 * MS {
            judged.data(at, 1_000, 7);
            at += if at < change { 6_500 } else { 10_000 };
            while notified <= at && notified < 150 * MS {
                judged.notified(notified);
                notified += every;
            }
        }
        let verdict = judged.verdict();
        assert_ne!(verdict.answer, Answer::Obeys, "{before}: {verdict:?}");
    }
}

#[test]
fn a_path_that_changes_by_its_own_clock_is_no_answer() {
    for (clock, notifications) in [(0.8, 54), (0.8, 500), (4.0 / 3.0, 500)] {
        for phase in 0..20 {
            let mut judged = Obedience::default();
            let start = MS * phase / 20;
            let mut next = start + 3 * MS;
            for packet in 0..notifications * 100 {
                let at = packet * 10 * US;
                let entropy = (at as f64 / (clock * MS as f64)) as u32;
                judged.data(at, 1_000, entropy);
                if at >= next {
                    judged.notified(at + US);
                    next += MS;
                }
            }
            let verdict = judged.verdict();
            assert_ne!(
                verdict.answer,
                Answer::Obeys,
                "{clock} {phase}: {verdict:?}"
            );
        }
    }
}
