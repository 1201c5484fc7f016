//! The memory compared with manual counts, with packets made here. `tests/correlation.rs` tests
//! what Wireshark shows of it.

use super::*;
use fcn_observe::testing::Setup;
use fcn_wire::{LinkType, Profile};
use proptest::prelude::*;

const SENDER: [u8; 4] = [10, 0, 0, 1];
const RECEIVER: [u8; 4] = [10, 0, 0, 2];
const SWITCH: [u8; 4] = [10, 9, 9, 9];
const MS: u64 = 1_000_000;

/// Returns an IPv4 packet of RoCEv2 data from SENDER to RECEIVER, 1000 octets long, of which the
/// first 40 were captured.
fn data(qp: u8, ce: bool) -> Vec<u8> {
    let mut packet = vec![0x45, 2 | u8::from(ce), 3, 0xE8, 0, 0, 0, 0, 64, 17, 0, 0];
    packet.extend(SENDER);
    packet.extend(RECEIVER);
    packet.extend([0xC0, 0, 0x12, 0xB7, 3, 0xD4, 0, 0]);
    packet.extend([4, 0, 0xFF, 0xFF, 0, 0, 0, qp, 0, 0, 0, 7]);
    packet
}

/// Returns data to QP 5 with this PSN.
fn with_psn(psn: u32) -> Vec<u8> {
    let mut packet = data(5, false);
    packet.truncate(37);
    packet.extend(&psn.to_be_bytes()[1..]);
    packet
}

/// Has RECEIVER acknowledge data up to this PSN, to QP 9.
fn acknowledge(memory: &mut Memory, info: FrameInfo, psn: u32) {
    let mut answer = with_psn(psn);
    (answer[28], answer[35]) = (17, 9);
    answer[12..16].copy_from_slice(&RECEIVER);
    answer[16..20].copy_from_slice(&SENDER);
    let frame = Frame::parse(&answer, 1000, LinkType::RawIp, &Profile::DEFAULT);
    memory.packet(info, &frame);
}

/// Returns a notification by SWITCH about the flow to `qp`.
fn gist(kind: Kind, qp: u8) -> Notification {
    Notification {
        kind,
        origin: Origin::Switch,
        notifier: IpAddr::from(SWITCH),
        destination: IpAddr::from(SENDER),
        sender: Some(IpAddr::from(SENDER)),
        subject: Subject::ReceiverQp {
            receiver: IpAddr::from(RECEIVER),
            qp: Qp::truncate(qp.into()),
        },
        level: None,
        deepest_queue: None,
        hops: None,
    }
}

fn seen(frame: u32, at: u64) -> FrameInfo {
    FrameInfo {
        frame,
        at: Some(at),
        capture_point: CapturePoint::new(0),
    }
}

fn pass(memory: &mut Memory, info: FrameInfo, packet: &[u8]) {
    let frame = Frame::parse(packet, 1000, LinkType::RawIp, &Profile::DEFAULT);
    assert!(DataPacket::from_frame(&frame).is_some());
    memory.packet(info, &frame);
}

/// Passes a notification with this payload and class.
fn notify_with(
    memory: &mut Memory,
    info: FrameInfo,
    notification: &Notification,
    (payload, class): (&[u8], Option<Class>),
) {
    let notice = correlator::NotificationPacket {
        notification,
        port: 0,
        payload,
        class,
        marks: None,
    };
    memory.notification(info, &notice);
}

/// Passes a notification that cannot be distinguished from others.
fn notify(memory: &mut Memory, info: FrameInfo, gist: &Notification) {
    notify_with(memory, info, gist, (&[], None));
}

fn memory(settings: Settings) -> Memory {
    Memory::new(settings, Limits::DEFAULT)
}

fn notice(memory: &Memory, frame: u32) -> Notice {
    match memory.context(frame) {
        Some(Context::Notice(notice, _)) => notice,
        other => panic!("{frame}: {other:?}"),
    }
}

#[test]
fn a_notification_links_to_preceding_data_and_rates_are_measured_around_it() {
    let mut memory = memory(Settings::default());
    // 1000 octets each 10 µs: 800 Mbit/s; half of that after the notification.
    for i in 0..200 {
        pass(
            &mut memory,
            seen(1 + i, u64::from(i) * 10_000),
            &data(5, false),
        );
    }
    notify(&mut memory, seen(201, 2 * MS), &gist(Kind::FastCnp1, 5));
    let first = notice(&memory, 201);
    assert_eq!(
        first.data.map(|data| (data.frame, first.delay(data))),
        Some((200, 10_000))
    );
    assert_eq!((first.rate_after, first.interval), (None, None));
    let before = first.rate_before.unwrap();
    assert!(before.abs_diff(800_000_000) <= 8_000_000, "{before}");
    for i in 1..=60 {
        pass(
            &mut memory,
            seen(201 + i, 2 * MS + u64::from(i) * 20_000),
            &data(5, false),
        );
    }
    notify(
        &mut memory,
        seen(300, 2 * MS + 60_000),
        &gist(Kind::FastCnp1, 5),
    );
    let later = notice(&memory, 201);
    assert_eq!(later.rate_after, Some(400_000_000));
    assert_eq!(notice(&memory, 300).interval, Some(60_000));
    match memory.context(200) {
        Some(Context::Data(context)) => {
            assert_eq!((context.frames[0], context.count), (201, 1));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(memory.context(199), None);
}

#[test]
fn data_that_is_late_in_the_file_takes_over_the_link() {
    let mut memory = memory(Settings::default());
    pass(&mut memory, seen(1, 100), &data(5, false));
    notify(&mut memory, seen(2, 400), &gist(Kind::FastCnp2, 5));
    pass(&mut memory, seen(3, 300), &data(5, false));
    pass(&mut memory, seen(4, 200), &data(5, false));
    // Same time, but later in the file.
    pass(&mut memory, seen(5, 400), &data(5, false));
    assert_eq!(
        notice(&memory, 2).data,
        Some(FrameTime { frame: 3, at: 300 })
    );
    let led = |frame| match memory.context(frame) {
        Some(Context::Data(context)) => context.count,
        _ => 0,
    };
    assert_eq!([led(1), led(3), led(4), led(5)], [0, 1, 0, 0]);
}

#[test]
fn rules_violated_by_several_frames_are_found() {
    let prefix = |text: &str| vec![text.parse().unwrap()];
    let settings = Settings::new(prefix("10.8.0.0/16"), prefix("10.0.0.0/24"), 1000, MS);
    let mut memory = memory(settings);
    pass(&mut memory, seen(1, 0), &data(5, false));
    for frame in 2..5 {
        notify(
            &mut memory,
            seen(frame, u64::from(frame)),
            &gist(Kind::FastCnp1, 5),
        );
    }
    let fast: Vec<bool> = (2..5)
        .map(|frame| notice(&memory, frame).broken[0].is_some())
        .collect();
    assert_eq!(fast, [false, false, true]);
    assert!(notice(&memory, 2).broken[1].is_some());
    let marked = |memory: &Memory, frame| matches!(memory.context(frame), Some(Context::Data(context)) if context.rule.is_some());
    pass(&mut memory, seen(5, MS), &data(5, true));
    pass(&mut memory, seen(6, MS), &data(5, false));
    pass(&mut memory, seen(7, 2 * MS), &data(5, true));
    let found: Vec<bool> = (5..8).map(|frame| marked(&memory, frame)).collect();
    assert_eq!(found, [true, false, false]);
}

#[test]
fn packets_captured_at_several_points_count_once() {
    let mut memory = memory(Settings::default());
    let at = |frame, at, interface| FrameInfo {
        capture_point: CapturePoint::new(interface),
        ..seen(frame, at)
    };
    let places = [(1, 0, 0), (2, 10, 1), (3, 20, 0), (4, 30, 1), (5, 40, 1)];
    for (frame, time, interface) in places {
        notify(&mut memory, at(frame, time, interface), &gist(Kind::Cnp, 5));
    }
    let copies = (1..6).map(|frame| notice(&memory, frame).copy_of);
    assert!(copies.eq([None, Some(1), None, Some(3), None]));
    // Data that both capture points capture: 1000 octets each 10 µs are 800 Mbit/s.
    for i in 0..200 {
        let time = u64::from(i) * 10_000;
        pass(&mut memory, at(10 + 2 * i, time, 0), &data(5, false));
        pass(&mut memory, at(11 + 2 * i, time + 10, 1), &data(5, false));
    }
    notify(&mut memory, at(500, 2 * MS, 0), &gist(Kind::FastCnp1, 5));
    let before = notice(&memory, 500).rate_before.unwrap();
    assert!(before.abs_diff(800_000_000) <= 8_000_000, "{before}");
}

#[test]
fn copies_of_rdma_cm_are_ignored() {
    let mut memory = memory(Settings::default());
    // The receiver's QP is connected to another one of the sender while copies of the first
    // exchange are still to come.
    let first = Setup::v4();
    let second = Setup {
        active_end: (0xC, 0x333),
        passive_end: (0xD, 0x222),
        ..first
    };
    let messages = [first.messages(), second.messages()].concat();
    let looks = messages.iter().map(|message| (message, 0));
    let copies = first.messages();
    let looks = looks.chain(copies.iter().map(|message| (message, 1)));
    for (number, (message, place)) in (1..).zip(looks) {
        let info = FrameInfo {
            capture_point: CapturePoint::new(place),
            ..seen(number, number.into())
        };
        let link = LinkType::RawIp;
        let frame = Frame::parse(message, message.len(), link, &Profile::DEFAULT);
        memory.packet(info, &frame);
    }
    let flow = FlowKey {
        sender: first.active,
        receiver: first.passive,
        receiver_qp: Qp::truncate(0x222),
    };
    let known = (Qp::truncate(0x333), Resolved::Cm);
    assert_eq!(memory.correlator.sender_qp(&flow), Some(known));
}

#[test]
fn a_capture_point_with_a_fast_clock_yields_copies() {
    // A clock that is 9 ms ahead, and one CNP a millisecond.
    let mut memory = memory(Settings::default());
    let mut events = Vec::new();
    for n in 0..400u32 {
        let at = u64::from(n) * MS / 10;
        for (place, late) in [(0, 0), (1, 9 * MS)] {
            events.push((at + late, place, n, false));
            if n % 10 == 5 {
                events.push((at + late + 50, place, n, true));
            }
        }
    }
    events.sort_unstable();
    let mut new = 0;
    for (frame, (at, place, n, is_cnp)) in (1..).zip(events) {
        let info = FrameInfo {
            capture_point: CapturePoint::new(place),
            ..seen(frame, at)
        };
        if is_cnp {
            notify(&mut memory, info, &gist(Kind::Cnp, 5));
            new += u32::from(notice(&memory, frame).copy_of.is_none());
        } else {
            let mut packet = data(5, false);
            packet.truncate(37);
            packet.extend(&n.to_be_bytes()[1..]);
            pass(&mut memory, info, &packet);
        }
    }
    assert_eq!(new, 40);
}

#[test]
fn acknowledgements_resolve_qps_when_another_capture_point_lags() {
    let mut memory = memory(Settings::default());
    let with_psn = |psn| with_psn(100_000 + psn);
    for n in 0..400 {
        let at = u64::from(n) * 10_000;
        pass(&mut memory, seen(4 * n + 1, at), &with_psn(n));
        if n >= 50 {
            let elsewhere = FrameInfo {
                capture_point: CapturePoint::new(1),
                ..seen(4 * n + 2, at + 10)
            };
            pass(&mut memory, elsewhere, &with_psn(n - 50));
        }
        acknowledge(&mut memory, seen(4 * n + 3, at + 20), 100_000 + n);
        if n > 200 {
            let gist = Notification {
                subject: Subject::SenderQp(Qp::truncate(9)),
                ..gist(Kind::Cnp, 5)
            };
            notify(&mut memory, seen(4 * n + 4, at + 30), &gist);
            assert!(notice(&memory, 4 * n + 4).data.is_some(), "{n}");
        }
    }
}

#[test]
fn acknowledgements_continue_during_single_retransmissions() {
    let mut memory = memory(Settings::default());
    let mut number = 0;
    let mut next = || {
        number += 1;
        seen(number, u64::from(number) * 10_000)
    };
    for psn in 0..200 {
        pass(&mut memory, next(), &with_psn(100_000 + psn));
        if psn >= 100 {
            acknowledge(&mut memory, next(), 100_000 + psn - 100);
        }
    }
    // All was sent, and some is retransmitted while acknowledgements of what followed it arrive.
    for psn in 0..100 {
        if psn % 10 == 0 {
            pass(&mut memory, next(), &with_psn(100_050 + psn / 10));
        }
        acknowledge(&mut memory, next(), 100_100 + psn);
    }
    let last = next();
    notify(&mut memory, last, &gist(Kind::FastCnp1, 5));
    let qp = Some((Qp::truncate(9), Resolved::Acks));
    assert_eq!(notice(&memory, last.frame).sender_qp, qp);
}

#[test]
fn acknowledgements_of_a_later_connection_do_not_apply_to_an_earlier_one() {
    let mut memory = memory(Settings::default());
    let mut frame = 0;
    let mut at = 0;
    let mut next = || {
        frame += 1;
        at += 10_000;
        seen(frame, at)
    };
    // The first connection is not acknowledged.
    let mut told = [0; 2];
    for (told, first) in told.iter_mut().zip([100_000, 8_000_000_u32]) {
        let is_answered = first > 100_000;
        for psn in first..first + 100 {
            pass(&mut memory, next(), &with_psn(psn));
            if psn == first + 50 {
                let at = next();
                notify(&mut memory, at, &gist(Kind::FastCnp1, 5));
                *told = at.frame;
            }
            if is_answered && psn > first + 60 {
                acknowledge(&mut memory, next(), psn);
            }
        }
    }
    let qps = told.map(|frame| notice(&memory, frame).sender_qp);
    let later = Some((Qp::truncate(9), Resolved::Acks));
    assert_eq!(qps, [None, later]);
}

#[test]
fn a_translating_node_is_not_a_receiver_for_a_while() {
    let mut memory = memory(Settings::default());
    let notification = Notification {
        destination: IpAddr::from(SWITCH),
        ..gist(Kind::ProxyCn, 5)
    };
    notify(&mut memory, seen(1, 0), &notification);
    let cnp = Notification {
        origin: Origin::Receiver,
        ..gist(Kind::Cnp, 5)
    };
    for (frame, at, by) in [(2, 1, Origin::Proxy), (3, 100 * MS, Origin::Unknown)] {
        notify(&mut memory, seen(frame, at), &cnp);
        assert_eq!(notice(&memory, frame).origin, by);
    }
}

#[test]
fn crossing_the_domain_border_is_found() {
    let settings = Settings {
        domain: vec!["10.0.0.0/24".parse().unwrap()],
        ..Settings::default()
    };
    let mut memory = memory(settings);
    notify(&mut memory, seen(1, 0), &gist(Kind::ProxyCn, 5));
    notify(&mut memory, seen(2, 0), &gist(Kind::Cnp, 5));
    let broken = |frame| notice(&memory, frame).broken[2];
    assert_eq!((broken(1), broken(2)), (Some(Rule::ProxyCnBorder), None));
}

#[test]
fn tables_keep_their_limits_and_say_what_they_forgot() {
    let limits = Limits {
        flows: 4,
        connections: 4,
        notices: 8,
        packets: 8,
    };
    let mut memory = Memory::new(Settings::default(), limits);
    for i in 0..200u32 {
        let qp = (i % 100) as u8 + 2;
        pass(
            &mut memory,
            seen(2 * i + 1, u64::from(i) * 100),
            &data(qp, false),
        );
        notify(
            &mut memory,
            seen(2 * i + 2, u64::from(i) * 100 + 50),
            &gist(Kind::FastCnp1, qp),
        );
    }
    assert!(
        memory.correlator.flows().len() <= 4
            && memory.notices.len() <= 8
            && memory.effects.len() <= 8
    );
    assert!(memory.topics.len() <= 4 && memory.last.len() <= 4);
    assert_eq!(notice(&memory, 400).data.unwrap().frame, 399);
    assert_eq!(memory.context(2), Some(Context::Forgotten));
    // Data of a flow that was evicted is unknown, and that is reported.
    notify(&mut memory, seen(500, 30_000), &gist(Kind::FastCnp1, 2));
    let Some(Context::Notice(lost, outcome)) = memory.context(500) else {
        panic!("no notification");
    };
    assert_eq!((lost.data, outcome.flows_forgotten > 0), (None, true));
}

#[test]
fn notifications_beyond_those_shown_are_counted() {
    let mut context = DataContext::default();
    for frame in 1..=10 {
        context.add(frame);
    }
    assert_eq!((context.frames, context.count), ([1, 2, 3, 4, 5, 6, 7], 10));
    context.remove(9);
    context.remove(3);
    assert_eq!((context.frames, context.count), ([1, 2, 4, 5, 6, 7, 0], 8));
}

#[test]
fn entries_are_as_small_as_the_limits_say() {
    let flow = size_of::<correlator::Flow<History>>();
    assert!(flow <= 1_272, "{flow}");
    assert!(size_of::<Notice>() <= 304, "{}", size_of::<Notice>());
    assert!(
        size_of::<DataContext>() <= 36,
        "{}",
        size_of::<DataContext>()
    );
}

proptest! {
    /// In any order of packets within the limits, the links are those found by a scan of all
    /// packets.
    #[test]
    fn links_match_a_scan_of_all_packets(
        acts in proptest::collection::vec((2u8..4, 0u8..4, 0u64..35), 1..120),
    ) {
        let mut memory = memory(Settings::default());
        let mut all = Vec::new();
        for (i, (qp, what, jitter)) in acts.iter().enumerate() {
            let (frame, at) = (i as u32 + 1, i as u64 * 10 + jitter);
            all.push((frame, at, *qp, *what == 0));
            if *what == 0 {
                notify(&mut memory, seen(frame, at), &gist(Kind::FastCnp1, *qp));
            } else {
                pass(&mut memory, seen(frame, at), &data(*qp, *what == 1));
            }
        }
        let mut led = std::collections::BTreeMap::new();
        for (frame, at, qp, _) in all.iter().filter(|(.., notice)| *notice) {
            let want = all
                .iter()
                .filter(|(f, a, q, notice)| !notice && q == qp && (a < at || a == at && f < frame))
                .max_by_key(|(f, a, ..)| (*a, *f));
            // Nothing is kept for a flow without data so far.
            let known = all.iter().any(|(f, _, q, notice)| !notice && q == qp && f < frame);
            let want = want.filter(|_| known);
            let got = notice(&memory, *frame).data;
            prop_assert_eq!(got.map(|data| data.frame), want.map(|(f, ..)| *f), "{}", frame);
            if let Some((f, ..)) = want {
                *led.entry(*f).or_insert(0) += 1;
            }
        }
        for (frame, .., is_notice) in &all {
            if !is_notice {
                let got = match memory.context(*frame) {
                    Some(Context::Data(context)) => context.count,
                    _ => 0,
                };
                prop_assert_eq!(got, led.get(frame).copied().unwrap_or(0), "{}", frame);
            }
        }
    }

    /// No times or numbers cause a panic.
    #[test]
    fn anything_is_survived(
        acts in proptest::collection::vec((any::<u32>(), any::<Option<u64>>(), any::<u8>(), 0u8..8), 0..80),
        window: u32, rate: u32,
    ) {
        let settings = Settings::new(Vec::new(), Vec::new(), rate, u64::from(window) * 1000);
        let mut memory = Memory::new(settings, Limits { flows: 3, connections: 2, notices: 5, packets: 4 });
        for (frame, at, qp, what) in acts {
            let capture_point = CapturePoint::new(u32::from(what % 2));
            let info = FrameInfo { frame, at, capture_point };
            match what {
                0 => notify(&mut memory, info, &gist(Kind::FastCnp1, qp)),
                1 => notify(&mut memory, info, &Notification {
                    subject: Subject::SenderQp(Qp::truncate(qp.into())),
                    ..gist(Kind::Cnp, qp)
                }),
                2 => notify(&mut memory, info, &Notification {
                    subject: Subject::FlowLabel(qp.into()),
                    sender: None,
                    ..gist(Kind::WanFcn, qp)
                }),
                _ => {
                    let packet = data(qp, what == 3);
                    let frame = Frame::parse(&packet, 1000, LinkType::RawIp, &Profile::DEFAULT);
                    memory.packet(info, &frame);
                }
            }
            let _ = memory.context(frame);
        }
    }
}

#[test]
fn classes_of_notifications_are_compared_with_those_of_data() {
    let class = |tos: u8| {
        let mut packet = data(5, false);
        packet[1] = tos;
        let frame = Frame::parse(&packet, 1000, LinkType::RawIp, &Profile::DEFAULT);
        Class::from_frame(&frame)
    };
    let (of_data, own) = (class(2), class(48 << 2));
    let mut memory = memory(Settings::default());
    pass(&mut memory, seen(1, 100), &data(5, false));
    let mut told = Vec::new();
    for (frame, class) in (2..).zip([own, own, of_data, of_data, None]) {
        let seen = seen(frame, 100 * u64::from(frame));
        let gist = gist(Kind::FastCnp1, 5);
        // Each with a payload of its own, so that none is a copy of another.
        notify_with(&mut memory, seen, &gist, (&[frame as u8], class));
        let notice = notice(&memory, frame);
        assert_eq!((notice.class, notice.data_class), (class, of_data));
        told.push((notice.class_relation, notice.broken[4]));
    }
    let several = Some(ClassRelation::Several);
    assert_eq!(
        told,
        [
            (Some(ClassRelation::Apart), None),
            (Some(ClassRelation::Apart), None),
            (several, Some(Rule::ClassSeveral)),
            (several, None),
            (several, None),
        ]
    );
    let mut memory = self::memory(Settings::default());
    pass(&mut memory, seen(1, 100), &data(5, false));
    let way = (&[][..], of_data);
    // For a flow without captured data, only the class is known.
    notify_with(&mut memory, seen(2, 200), &gist(Kind::Cnp, 6), way);
    assert_eq!(notice(&memory, 2).class_relation, None);
    notify_with(&mut memory, seen(3, 300), &gist(Kind::FastCnp1, 5), way);
    let with_data = notice(&memory, 3);
    assert_eq!(with_data.class_relation, Some(ClassRelation::WithData));
    assert_eq!(with_data.broken[4], Some(Rule::ClassWithData));
}

/// Has RECEIVER answer data up to this PSN, to QP 9, with this syndrome.
fn answer(memory: &mut Memory, info: FrameInfo, psn: u32, syndrome: u8) {
    let mut answer = with_psn(psn);
    (answer[28], answer[35]) = (17, 9);
    answer[2..4].copy_from_slice(&48u16.to_be_bytes());
    answer[12..16].copy_from_slice(&RECEIVER);
    answer[16..20].copy_from_slice(&SENDER);
    answer[24..26].copy_from_slice(&28u16.to_be_bytes());
    answer.extend([syndrome, 0, 0, 1, 0, 0, 0, 0]);
    let frame = Frame::parse(&answer, answer.len(), LinkType::RawIp, &Profile::DEFAULT);
    memory.packet(info, &frame);
}

#[test]
fn retransmissions_and_acknowledgements_link_to_the_packet() {
    let mut memory = memory(Settings::default());
    // Acknowledgements pair the QPs.
    for psn in 0..20 {
        let at = u64::from(psn) * 10_000;
        pass(&mut memory, seen(2 * psn + 1, at), &with_psn(psn));
        answer(&mut memory, seen(2 * psn + 2, at + 4_000), psn, 0);
    }
    let time = |frame, at| FrameTime { at, frame };
    assert_eq!(memory.links(39), None);
    let acknowledged = Links::Acknowledgement(39, Some(4_000));
    assert_eq!(memory.links(40), Some(acknowledged));
    pass(&mut memory, seen(50, MS), &with_psn(20));
    answer(&mut memory, seen(51, MS + 2_000), 20, 0x2A);
    pass(&mut memory, seen(52, 5 * MS), &with_psn(20));
    answer(&mut memory, seen(53, 5 * MS + 2_000), 20, 0);
    assert_eq!(memory.links(51), Some(Links::Refusal(50)));
    let again = Links::Retransmission(time(50, MS), 4 * MS);
    assert_eq!(memory.links(52), Some(again));
    // It is unknown which of the two it is for.
    assert_eq!(memory.links(53), Some(Links::Acknowledgement(50, None)));
}
