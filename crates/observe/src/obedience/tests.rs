//! Tests of a flow's state, and of the answers derived from it.

use super::*;
use crate::sightings::{Identity, Sighting, Sightings};
use proptest::prelude::*;

const START: u64 = 1_700_000_000_123_456_789;

#[test]
fn missed_notifications_are_reported_once_the_flow_is_known() {
    let mut missed = UnattributedNotification::default();
    let known = [true, false, false, true, true, false, true];
    let mut at = 0;
    let told = known.map(|known| {
        at += 1;
        missed.another(at, known)
    });
    assert_eq!(told, [None, None, None, Some(3), None, None, Some(6)]);
}

#[test]
fn notifications_before_the_first_data_do_not_reset_the_state() {
    let measured = |missed: u64| {
        let mut flow = Obedience::default();
        for at in (1_000..100_000).step_by(100) {
            flow.data(at, 1_000, 0);
            if at % 10_000 == 0 {
                flow.notified(at + 50);
            }
        }
        assert!(missed < 1_000 || flow.verdict().measured == 8);
        flow.missed(missed);
        let has_heard = flow.verdict().evidence != Evidence::KnownLate;
        assert_eq!(has_heard, missed < 1_000);
        flow.notified(100_050);
        (
            flow.verdict().measured,
            flow.verdict().evidence == Evidence::KnownLate,
        )
    };
    assert_eq!([measured(900), measured(1_100)], [(9, false), (0, true)]);
}

#[test]
fn coarse_time_stamps_elsewhere_leave_the_answer_open() {
    let (near, far) = (CapturePoint::new(0), CapturePoint::new(1));
    let evidence = |unit: u64, data_at: CapturePoint| {
        let mut sightings = Sightings::default();
        let mut flow = Obedience::default();
        let mut psn = 0;
        for n in 0..100_000_u64 {
            // Halves for a while after each notification; one packet per 3 or 6 µs.
            let at = START + n * 3_127 + n * n % 977;
            let since = n % 1_000;
            if since == 0 {
                let at = at / unit * unit;
                let sighting = Sighting {
                    at,
                    point: far,
                    ..Sighting::default()
                };
                sightings.see(Identity::new(n), sighting);
                flow.notified_at(at, far, false);
            }
            if since > 300 || n % 2 == 0 {
                let sighting = Sighting {
                    at,
                    point: data_at,
                    ..Sighting::default()
                };
                sightings.see(Identity::new(n | 1 << 40), sighting);
                flow.sequenced(Sequence::Connection(psn), data_at);
                flow.data(at, 1_000, 0);
                psn += 1;
            }
        }
        assert_eq!(flow.verdict().answer, Answer::Obeys);
        flow.verdict_among(&sightings).evidence
    };
    let is_answer = |evidence| {
        matches!(
            evidence,
            Evidence::Slower(_) | Evidence::SlowerThanPredicted(_)
        )
    };
    assert!(is_answer(evidence(1, near)));
    assert!(is_answer(evidence(1_000, near)));
    assert_eq!(
        evidence(100_000, near),
        Evidence::CoarseAt { unit: 100_000 }
    );
    // At one capture point, all stamps are of the same clock.
    assert!(is_answer(evidence(100_000, far)));
}

#[test]
fn notifications_count_at_the_capture_point_of_the_data() {
    // Halved 10 µs after a notification, and at the full rate again 200 µs later; notifications are
    // captured 5 ms sooner at the receiver, every 500 µs.
    let [near, far] = [0, 1].map(CapturePoint::new);
    let answer = |both: bool| {
        let mut flow = Obedience::default();
        let mut events = Vec::new();
        let mut psn = 0;
        for n in 0..40_000u64 {
            let at = n * 1_000;
            let told = at % 500_000;
            if told == 0 && n > 5_000 {
                events.push((at - 5_000_000, 1, 0));
                if both {
                    events.push((at, 2, 0));
                }
            }
            if !(10_000..210_000).contains(&told) || n <= 5_000 || n % 2 == 0 {
                events.push((at + 500, 0, psn));
                psn += 1;
            }
        }
        events.sort_unstable();
        for (at, what, psn) in events {
            match what {
                0 => {
                    flow.sequenced(Sequence::Connection(psn), near);
                    flow.data(at, 1_000, 0);
                }
                1 => flow.notified_at(at, far, false),
                _ => flow.notified_at(at, near, true),
            }
        }
        flow.verdict()
    };
    assert_eq!(
        answer(true).answer,
        Answer::Obeys,
        "{:?}",
        answer(true).evidence
    );
    assert_ne!(answer(false).evidence, answer(true).evidence);
}

#[test]
fn packets_on_their_way_when_the_capture_began_do_not_count() {
    // One packet per 3 µs, 1 ms from one capture point to the other, both captured from the same
    // moment on.
    let [near, far] = [0, 1].map(CapturePoint::new);
    let evidence = |places: &[CapturePoint]| {
        let mut flow = Obedience::default();
        let mut repeated = 0;
        for n in 0..6_000_u32 {
            let at = u64::from(n) * 3_000;
            for place in places {
                // After the first 333, those at the far capture point are copies.
                let psn = if *place == near { n + 333 } else { n };
                if *place == far && places.len() > 1 && n >= 333 {
                    continue;
                }
                match flow.sequenced(Sequence::Connection(psn), *place) {
                    order if order.counts() => flow.data(at, 1_000, 0),
                    order => repeated += u32::from(order.repeats()),
                }
            }
            if n > 300 && n % 100 == 0 {
                flow.notified(at + 10);
            }
        }
        assert_eq!(repeated, 0);
        flow.verdict().evidence
    };
    assert_eq!(evidence(&[near, far]), evidence(&[near]));
    let first = evidence(&[far, near]);
    assert!(matches!(first, Evidence::SteadyPace { .. }), "{first:?}");
}

#[test]
fn notifications_with_data_between_are_measured_without_later_data() {
    let mut flow = Obedience::default();
    for at in [100, 200, 300, 400] {
        flow.data(at, 1_000, 0);
        if at == 100 {
            flow.notified(150);
        }
    }
    assert_eq!(flow.verdict().measured, 0);
    flow.notified(450);
    assert_eq!(flow.verdict().measured, 1);
    assert_eq!(flow.verdict().evidence, Evidence::TooFew);
    // A single packet in between.
    let mut flow = Obedience::default();
    let mut measured = Vec::new();
    for at in [100, 200, 300, 400] {
        flow.data(at, 1_000, 0);
        flow.notified(at + 50);
        measured.push(flow.verdict().measured);
    }
    assert_eq!(measured, [0, 1, 2, 3]);
}

#[test]
fn evidence_is_displayed_as_a_sentence() {
    let less = |at_least, window, than| {
        let less = Less {
            at_least,
            window,
            than,
            pauses: than == Some(window),
        };
        Evidence::Slower(less).to_string()
    };
    let (early, middle, late) = (Window::new(0), Window::new(3), Window::new(BINS));
    for (evidence, text) in [
        (
            less(0.415, middle, None),
            "at least 42 % less data 16 µs to 66 µs after notifications than around that window",
        ),
        (
            less(0.031, early, Some(late)),
            "at least 3.1 % less data within 1 µs after notifications than from 268 ms on",
        ),
        (
            less(0.5, late, Some(middle)),
            "at least 50 % less data from 268 ms on after notifications than 16 µs to 66 µs after",
        ),
        (
            less(0.5, late, Some(late)),
            "at least 50 % less data from 268 ms on after notifications than from 268 ms on, leaving out pauses",
        ),
        (
            less(0.5, middle, Some(early)),
            "at least 50 % less data 16 µs to 66 µs after notifications than within 1 µs",
        ),
    ] {
        assert_eq!(evidence, text);
    }
}

#[test]
fn time_stamps_that_go_back_prevent_a_verdict() {
    let verdict = |back: u64| {
        let mut flow = Obedience::default();
        for n in 0..2_000 {
            let at = 1_000_000_000 + n * 10_000;
            flow.data(at - back * u64::from(n >= 1_000), 1_000, 1);
            if n % 50 == 0 {
                flow.notified(at + 1_000);
            }
        }
        let verdict = flow.verdict();
        (verdict.answer, verdict.evidence)
    };
    assert_eq!(verdict(0).0, Answer::DoesNotObey);
    let out_of_order = (Answer::Unclear, Evidence::OutOfOrder);
    assert_eq!(verdict(5_000_000), out_of_order);
    // A few packets are captured out of order on many a link.
    assert_eq!(verdict(50_000).0, Answer::DoesNotObey);
}

#[test]
fn bins_are_contiguous() {
    for number in 0..BINS {
        let (from, to) = bounds(number);
        assert_eq!((bin(from), bin(to - 1)), (number, number));
        if number + 1 < BINS {
            assert_eq!(bounds(number + 1).0, to);
        }
    }
}

/// A flow that stops altogether responds, or has nothing more to send: it must never count as not
/// obeying.
#[test]
fn a_sender_that_stops_after_notifications_does_not_count_as_not_obeying() {
    const MS: u64 = 1_000_000;
    for (gap, stop) in [
        (100_u64, 1),
        (100, 2),
        (100, 5),
        (100, 20),
        (100, 30),
        (10, 2),
        (1_000, 20),
    ] {
        for behind in [0, 30] {
            let mut judged = Obedience::default();
            let mut rests = 0;
            for at in (0..3_000 * MS).step_by(gap as usize * 1_000) {
                if at >= rests {
                    judged.data(at, 1_000, 0);
                    if at >= 50 * MS && at % (50 * MS) < gap * 1_000 {
                        judged.notified(at + behind * gap * 10);
                        rests = at + stop * MS;
                    }
                }
            }
            let verdict = judged.verdict();
            let case = format!("{gap} µs, {stop} ms: {}", verdict.evidence);
            assert_ne!(verdict.answer, Answer::DoesNotObey, "{case}");
        }
    }
}

/// Returns the verdict on paced data, one packet per `gap` nanoseconds up to `end`, at the times
/// for which `sends` returns one; notified every `every`.
fn paced(
    (gap, end, every): (u64, u64, u64),
    first: u64,
    mut sends: impl FnMut(u64, u64) -> Option<u32>,
) -> Verdict {
    let mut judged = Obedience::default();
    let mut next = first;
    let mut last = None;
    for at in (0..end).step_by(gap as usize) {
        if at >= next {
            judged.notified(next);
            last = Some(next);
            next += every;
        }
        let since = last.map_or(u64::MAX, |last| at - last);
        if let Some(entropy) = sends(at, since) {
            judged.data(at, 1_000, entropy);
        }
    }
    judged.verdict()
}

#[test]
fn a_sender_that_stops_late_does_not_count_as_not_obeying() {
    for (every, gap) in [(40_000_u64, 600), (1_000_000, 10_000), (10_000_000, 40_000)] {
        for percent in [25, 40, 50] {
            let stops = every * percent / 100..every * (percent + 40) / 100;
            let verdict = paced((gap, 100 * every, every), 5 * every, |_, since| {
                (!stops.contains(&since)).then_some(0)
            });
            let case = format!("{every} ns, {percent} %: {}", verdict.evidence);
            assert_ne!(verdict.answer, Answer::DoesNotObey, "{case}");
        }
    }
}

#[test]
fn a_fall_after_many_unanswered_notifications_is_no_answer() {
    const US: u64 = 1_000;
    // 100 packets between notifications; after `unanswered` of them the rate falls to 40 % for
    // good.
    for (unanswered, answers) in [(0, true), (12, false), (22, false)] {
        let falls = 5_000 * US + unanswered * 500 * US;
        let mut due = 0;
        let verdict = paced((5 * US, 23_000 * US, 500 * US), 5_000 * US, |at, _| {
            due += if at < falls { 10 } else { 4 };
            (due >= 10).then(|| due -= 10).map(|()| 0)
        });
        let case = format!("{unanswered}: {verdict:?}");
        assert_eq!(verdict.answer == Answer::Obeys, answers, "{case}");
    }
}

#[test]
fn another_path_nearer_to_the_next_notification_is_no_answer() {
    const MS: u64 = 1_000_000;
    for (after, gap, answers) in [
        (2 * MS, 4 * MS, true),
        (10 * MS, 4 * MS, true),
        (80 * MS, 4 * MS, true),
        (340 * MS, 4 * MS, false),
        // The next packet but one.
        (80 * MS, 50 * MS, true),
    ] {
        let mut path = 0;
        let mut turned = false;
        let verdict = paced((gap, 20_000 * MS, 400 * MS), 500 * MS, |_, since| {
            if since < gap {
                turned = false;
            }
            if since != u64::MAX && since >= after && !turned {
                (path, turned) = (path + 1, true);
            }
            Some(path)
        });
        let case = format!("{after} ns, a packet each {gap} ns: {verdict:?}");
        assert_eq!(verdict.answer == Answer::Obeys, answers, "{case}");
    }
}

#[test]
fn copies_count_once_and_datagrams_prevent_a_verdict() {
    let evidence = |sequence: fn(u32) -> Sequence| {
        let mut judged = Obedience::default();
        for n in 0..4_000 {
            if judged
                .sequenced(sequence(n), CapturePoint::default())
                .counts()
            {
                judged.data(u64::from(n) * 1_000, 1_000, 0);
            }
            if n % 100 == 50 {
                judged.notified(u64::from(n) * 1_000 + 1);
            }
        }
        judged.verdict().evidence
    };
    for copies in [Sequence::Connection, |n| Sequence::Connection(n / 2)] {
        let evidence = evidence(copies);
        assert!(
            matches!(
                evidence,
                Evidence::Steady { .. } | Evidence::SteadyPace { .. }
            ),
            "{evidence:?}"
        );
    }
    assert_eq!(evidence(|_| Sequence::Datagram), Evidence::Datagrams);
}

/// Returns the verdict on a flow of one packet per microsecond; `packet` returns the PSN of the
/// n-th if it is captured, given n and the number of packets since the last notification. Notified
/// about every 100 packets.
fn by_psn(mut packet: impl FnMut(u32, u32) -> Option<u32>) -> Verdict {
    let mut flow = Obedience::default();
    let (mut since, mut random) = (0, 1_u32);
    for n in 0..20_000_u32 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let at = u64::from(n) * 1_000 + u64::from(random >> 24);
        since += 1;
        if n > 2_000 && since > 40 + (random >> 8) % 128 {
            flow.notified(at - 300);
            since = 0;
        }
        let Some(psn) = packet(n, since) else {
            continue;
        };
        if (flow.sequenced(Sequence::Connection(psn & MAX_24), CapturePoint::default())).counts() {
            flow.data(at, 1_000, 0);
        }
    }
    flow.verdict()
}

#[test]
fn retransmissions_count_as_sent() {
    let mut next = 0xFF_F000_u32;
    let verdict = by_psn(|_, since| {
        // Go-back-N, a round trip after the notification.
        next = if since == 5 { next - 17 } else { next + 1 };
        Some(next)
    });
    assert_eq!(verdict.answer, Answer::DoesNotObey, "{verdict:?}");
}

#[test]
fn retransmissions_among_copies_are_unclear() {
    // Each packet is captured `times` times, in batches of more than `between`, and the sender goes
    // back by `back` after notifications.
    let verdict = |times: usize, between: u32, back: u32| {
        let mut flow = Obedience::default();
        let mut next = 1_000_000_u32;
        let mut recent = Vec::new();
        for n in 0..20_000_u64 {
            let at = n * 1_000;
            if n > 2_000 && n % 97 == 0 {
                flow.notified(at - 300);
                next -= back;
            }
            recent.push(next);
            next += 1;
            if recent.len() as u32 > between {
                for psn in std::iter::repeat_n(&recent, times).flatten() {
                    if (flow.sequenced(Sequence::Connection(*psn), CapturePoint::default()))
                        .counts()
                    {
                        flow.data(at, 1_000, 0);
                    }
                }
                recent.clear();
            }
        }
        flow.verdict()
    };
    for (times, between) in [(2, 0), (2, 3), (3, 0), (3, 3), (2, 40)] {
        let steady = verdict(times, between, 0);
        assert_ne!(
            steady.answer,
            Answer::Obeys,
            "{times} {between}: {steady:?}"
        );
        assert_ne!(steady.evidence, Evidence::ResentCopies, "{times} {between}");
        let sent_again = verdict(times, between, 21);
        assert_eq!(
            sent_again.evidence,
            Evidence::ResentCopies,
            "{times} {between}"
        );
    }
    assert_eq!(verdict(2, 0, 0).answer, Answer::DoesNotObey);
}

#[test]
fn packets_missing_in_the_capture_count_as_sent() {
    // Half of the packets are lost soon after notifications, or come later by a longer path.
    let lost = by_psn(|n, since| (since > 15 || n % 2 == 0).then_some(n));
    let late = by_psn(|n, since| Some(if since < 15 { n ^ 4 } else { n }));
    assert_eq!(lost.answer, Answer::DoesNotObey, "{lost:?}");
    assert_ne!(late.answer, Answer::Obeys, "{late:?}");
    // A sender that slows down skips no PSNs.
    let mut next = 0;
    let slower = by_psn(|n, since| {
        (since > 15 || n % 2 == 0).then(|| {
            next += 1;
            next
        })
    });
    assert_eq!(slower.answer, Answer::Obeys, "{slower:?}");
}

#[test]
fn psns_of_a_read_response_do_not_count_as_sent() {
    let octets = |sequence: fn(u32) -> Sequence| {
        let mut flow = Obedience::default();
        for (n, psn) in [0, 16, 17].into_iter().enumerate() {
            flow.sequenced(sequence(psn), CapturePoint::default());
            flow.data(1_000 * (n as u64 + 1), 100, 0);
        }
        flow.skipped
    };
    assert_eq!(octets(Sequence::Request), 0);
    let mut flow = Obedience::default();
    for (at, psn) in [(1, 0), (2, 16)] {
        flow.sequenced(Sequence::Connection(psn), CapturePoint::default());
        flow.data(at, 100, 0);
    }
    assert_eq!((flow.skipped, flow.octets), (15, 1_600));
    // Another connection's PSNs.
    flow.sequenced(Sequence::Connection(0x10_0000), CapturePoint::default());
    flow.data(3, 100, 0);
    assert_eq!((flow.skipped, flow.octets), (0, 100));
}

#[test]
fn a_stop_right_after_each_notification_is_not_steady() {
    let evidence = |stop: u64| {
        let mut flow = Obedience::default();
        let (mut at, mut random) = (0, 1_u32);
        for n in 0..10_000_u32 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            at += 900 + u64::from(random >> 24);
            if n > 2_000 && random.wrapping_mul(0x9E37_79B1) >> 16 < 650 {
                flow.notified(at - 500);
                at += stop;
            }
            flow.data(at, 1_000, 0);
        }
        flow.verdict()
    };
    assert_eq!(evidence(0).answer, Answer::DoesNotObey);
    assert_ne!(evidence(3_000).answer, Answer::DoesNotObey);
}

#[test]
fn marks_after_the_last_notification_show_no_earlier_queue() {
    let evidence = |marked: core::ops::Range<u64>| {
        let mut judged = Obedience::default();
        for n in 0..4_000_u64 {
            judged.data(n * 1_000, 1_000, 0);
            if marked.contains(&n) {
                judged.marked();
            }
            if n < 2_000 && n % 20 == 10 {
                judged.notified(n * 1_000 + 1);
            }
        }
        judged.verdict().evidence
    };
    assert_eq!(evidence(0..4_000), Evidence::BehindQueue);
    let since = evidence(2_000..4_000);
    assert!(matches!(since, Evidence::SteadyPace { .. }), "{since:?}");
}

#[test]
fn the_state_of_a_flow_is_small() {
    let flow = size_of::<Obedience>();
    let when_notified = size_of::<[Bin; BINS]>() + size_of::<FullWindow>() + ByGap::WHEN_NOTIFIED;
    let notified = flow + when_notified;
    assert!(flow <= 440, "{flow}");
    assert!(notified <= 3_100, "{notified}");
}

#[test]
fn evidence_by_gaps_is_displayed_as_a_sentence() {
    let slower = |at_least, errors, unit| {
        Evidence::SlowerThanPredicted(Slower {
            at_least,
            errors,
            window: 8,
            unit,
        })
        .to_string()
    };
    assert_eq!(
        slower(0.415, 5.23, Unit::Packets),
        "at least 42 % less data in the first 8 packets after notifications (5.2 σ)"
    );
    assert_eq!(
        slower(0.031, 12.0, Unit::Bursts),
        "at least 3.1 % less data in the first 8 bursts after notifications (12.0 σ)"
    );
}

/// Random gaps, a tenth longer for ten packets after every 50th.
#[test]
fn advised_notifications_suffice() {
    let verdict = |notifications: u64| {
        let mut flow = Obedience::default();
        let (mut at, mut seed) = (0, 1_u64);
        for n in 0..(notifications + 2) * 50 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Gaps of one to seven times the minimum, and a tenth longer after notifications.
            let gap = 100 + (seed >> 33) % 600;
            at += if n >= 100 && n % 50 < 10 {
                gap * 11 / 10
            } else {
                gap
            };
            flow.data(at, 1_000, 0);
            if n >= 100 && n % 50 == 0 {
                flow.notified(at + 1);
            }
        }
        flow.verdict()
    };
    let early = verdict(10);
    assert_eq!(early.answer, Answer::Unclear, "{early:?}");
    let Some(Advice::Notifications(more)) = early.advice else {
        panic!("{early:?}");
    };
    assert!((2..2_000).contains(&more), "{more}");
    assert_eq!(verdict(10 + 3 * u64::from(more)).answer, Answer::Obeys);
}

/// Any time scale: one packet per 10 ns to 10 ms, halved for 20 of 100 packets.
#[test]
fn verdicts_do_not_depend_on_the_time_scale() {
    for gap in [10, 1_000, 100_000, 10_000_000] {
        let answer = |halves: u64| {
            let (mut judged, mut at) = (Obedience::default(), 0);
            for n in 0..4_000_u64 {
                judged.data(at, 1_000, 0);
                if n >= 100 && n % 100 == 0 {
                    judged.notified(at + 1);
                }
                at += if n >= 100 && (1..halves).contains(&(n % 100)) {
                    2 * gap
                } else {
                    gap
                };
            }
            let verdict = judged.verdict();
            verdict.answer
        };
        assert_eq!(answer(20), Answer::Obeys, "{gap}");
        assert_eq!(answer(0), Answer::DoesNotObey, "{gap}");
    }
}

proptest! {
    /// Any input in any order: no panic, and parts are within 0 to 1.
    #[test]
    fn anything_is_survived(
        acts in proptest::collection::vec((any::<u64>(), 0..64_u32, proptest::option::weighted(0.7, any::<u64>())), 1..400),
        forward in any::<bool>(),
    ) {
        let mut judged = Obedience::default();
        let mut at: u64 = 0;
        for (time, shift, data) in acts {
            at = if forward { at.saturating_add(time >> shift) } else { time >> shift };
            match data {
                Some(octets) => judged.data(at, octets, (octets % 3) as u32),
                None => judged.notified(at),
            }
            let verdict = judged.verdict();
            prop_assert!(!verdict.evidence.to_string().is_empty());
            if verdict.measured == 0 {
                prop_assert_eq!(verdict.answer, Answer::Unclear);
            }
        }
    }
}

#[test]
fn gaps_while_the_path_is_paused_do_not_count() {
    let verdict = |is_known: bool| {
        let mut flow = Obedience::default();
        let (mut at, mut random) = (0, 1_u32);
        for n in 0..20_000_u32 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            at += 900 + u64::from(random >> 24);
            // A switch notifies, and pauses the link soon after, when its queue is long.
            if n > 4_000 && n % 40 == 7 {
                flow.notified(at - 500);
            }
            if n > 4_000 && n % 40 == 9 {
                at += 12_000;
                if is_known {
                    flow.path_paused();
                }
            }
            flow.data(at, 1_000, 0);
        }
        flow.verdict()
    };
    assert_ne!(verdict(false).answer, Answer::DoesNotObey);
    let known = verdict(true);
    assert_eq!(known.answer, Answer::DoesNotObey, "{}", known.evidence);
}
