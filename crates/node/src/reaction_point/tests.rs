//! Tests of the reaction point: lists of frames, and the exact reaction to each.

use super::*;
use crate::outgoing::{DataPacketContext, OutgoingNotification};
use crate::testing::{
    ICRC, RECEIVER, RECEIVER4, SENDER, SENDER4, SWITCH, build, data, hop, ip, mutated, trace, udp,
    with_frame,
};
use fcn_wire::Profile;
use fcn_wire::cnp::CnpRepr;
use fcn_wire::compose::{OptionPart, Part};
use fcn_wire::fast_cnp::FastCnpRepr;
use fcn_wire::icrc::Policy;
use fcn_wire::ioam::OptType;
use proptest::prelude::*;
use std::net::Ipv6Addr;

const LINE: f64 = 100e9;
const OWN: Qp = Qp::truncate(0x111);
const PEER: Qp = Qp::truncate(0x222);

fn at(micros: u64) -> Time {
    Time::from_nanos(micros * 1000)
}

fn host(set: impl FnOnce(&mut Config)) -> (ReactionPoint, FlowId) {
    let mut config = Config {
        fast_cnp: true,
        access_list: vec![Prefix::new(SWITCH.into(), 48).unwrap()],
        ..Config::default()
    };
    set(&mut config);
    let mut host = ReactionPoint::new(config);
    let flow = host.open(OWN, RECEIVER.into(), PEER, LINE).unwrap();
    (host, flow)
}

fn emit(outgoing: OutgoingNotification, context: &DataPacketContext<'_>) -> Vec<u8> {
    let mut out = [0; OutgoingNotification::MAX_LEN];
    let (len, _) = outgoing.emit(context, &Profile::DEFAULT, &mut out).unwrap();
    out[..len].to_vec()
}

fn cnp(qp: Qp) -> Vec<u8> {
    let outgoing = OutgoingNotification::Cnp {
        source: RECEIVER.into(),
        destination: SENDER.into(),
        qp,
    };
    emit(outgoing, &DataPacketContext::default())
}

fn fast_cnp_from(source: Ipv6Addr, context: &DataPacketContext<'_>) -> Vec<u8> {
    let outgoing = OutgoingNotification::FastCnp {
        source,
        destination: SENDER,
        original_destination: RECEIVER,
        qp: PEER,
    };
    emit(outgoing, context)
}

fn fast_cnp() -> Vec<u8> {
    fast_cnp_from(SWITCH, &DataPacketContext::default())
}

fn react(host: &mut ReactionPoint, now: Time, bytes: &[u8]) -> Reaction {
    with_frame(bytes, |frame| host.on_frame(now, frame))
}

fn ignored(ignored: Ignored) -> Reaction {
    Reaction::Ignored(ignored)
}

#[test]
fn only_a_switchs_fast_cnp_detours_a_flow() {
    let (mut host, flow) = host(|config| {
        config.access_list.push(Prefix::host(RECEIVER.into()));
        config.detour = Some(Detour {
            tries: 1,
            ..Detour::default()
        });
    });
    let slowed = |from, to| Reaction::Slowed { flow, from, to };
    let by_receiver = fast_cnp_from(RECEIVER, &DataPacketContext::default());
    let steps = [
        (0, &fast_cnp(), Reaction::Detoured { flow, path: 1 }),
        (1, &fast_cnp(), ignored(Ignored::JustDetoured)),
        // The receiver's Fast CNP, and a plain CNP: no switch to bypass.
        (1, &by_receiver, slowed(LINE, LINE / 2.0)),
        (1, &cnp(OWN), slowed(LINE / 2.0, LINE / 4.0)),
        (50, &fast_cnp(), slowed(LINE / 4.0, LINE / 8.0)),
    ];
    for (micros, bytes, want) in steps {
        assert_eq!(react(&mut host, at(micros), bytes), want, "{micros}");
    }
    let counters = host.counters();
    assert_eq!((counters.detours, counters.just_detoured), (1, 1));
    assert_eq!((counters.fast_cnps, counters.cnps), (3, 1));
}

#[test]
fn notifications_of_one_congestion_are_merged_whoever_sends_them() {
    let (mut host, flow) = host(|config| {
        config.merge = Duration::from_micros(50);
        config.access_list.push(Prefix::host(RECEIVER.into()));
    });
    let slowed = |from, to| Reaction::Slowed { flow, from, to };
    let by_receiver = fast_cnp_from(RECEIVER, &DataPacketContext::default());
    let steps = [
        (10, &fast_cnp(), slowed(LINE, LINE / 2.0)),
        (11, &cnp(OWN), ignored(Ignored::Merged)),
        (59, &by_receiver, ignored(Ignored::Merged)),
        (60, &cnp(OWN), slowed(LINE / 2.0, LINE / 4.0)),
        (109, &fast_cnp(), ignored(Ignored::Merged)),
    ];
    for (micros, bytes, want) in steps {
        assert_eq!(react(&mut host, at(micros), bytes), want, "{micros}");
    }
    assert_eq!(host.counters().merged, 3);
}

#[test]
fn controls_that_go_by_acknowledgements_ignore_notifications() {
    for control in [
        Control::Hpcc(hpcc::Params::default()),
        Control::Swift(swift::Params::default()),
        Control::Timely(timely::Params::default()),
    ] {
        let (mut host, flow) = host(|config| config.control = control);
        for bytes in [cnp(OWN), fast_cnp()] {
            assert_eq!(
                react(&mut host, at(1), &bytes),
                ignored(Ignored::Unused),
                "{control:?}"
            );
        }
        assert_eq!(host.rate(at(2), flow), LINE);
        assert!(host.goes_by_acks());
    }
}

#[test]
fn both_kinds_of_cnp_find_the_flow_and_slow_it() {
    let (mut host, flow) = host(|_| {});
    let other = host
        .open(Qp::truncate(0x112), RECEIVER4.into(), PEER, LINE)
        .unwrap();
    let slowed = |flow, from, to| Reaction::Slowed { flow, from, to };
    assert_eq!(
        react(&mut host, at(1), &cnp(OWN)),
        slowed(flow, LINE, LINE / 2.0)
    );
    assert_eq!(
        react(&mut host, at(1), &fast_cnp()),
        slowed(flow, LINE / 2.0, LINE / 4.0)
    );
    // Option 2 as well, and a plain CNP over IPv4.
    let bytes = trace(&[hop(1000, 900)]);
    let context = DataPacketContext {
        trace: Some((OptType::Preallocated, &bytes)),
        ..DataPacketContext::default()
    };
    let with_trace = fast_cnp_from(SWITCH, &context);
    assert_eq!(
        react(&mut host, at(1), &with_trace),
        slowed(flow, LINE / 4.0, LINE / 8.0)
    );
    let v4 = OutgoingNotification::Cnp {
        source: RECEIVER4.into(),
        destination: SENDER4.into(),
        qp: Qp::truncate(0x112),
    };
    let v4 = emit(v4, &DataPacketContext::default());
    assert_eq!(
        react(&mut host, at(1), &v4),
        slowed(other, LINE, LINE / 2.0)
    );
    let want = Counters {
        opened: 2,
        cnps: 2,
        fast_cnps: 2,
        ..Counters::default()
    };
    assert_eq!(host.counters(), &want);
}

#[test]
fn by_default_fast_cnps_are_ignored() {
    let (mut host, flow) = host(|config| config.fast_cnp = Config::default().fast_cnp);
    assert_eq!(
        react(&mut host, at(1), &fast_cnp()),
        ignored(Ignored::FeatureOff)
    );
    assert_eq!(host.rate(at(1), flow), LINE);
    assert_eq!(host.counters().feature_off, 1);
}

#[test]
fn only_listed_sources_may_send_fast_cnps() {
    let from_receiver = fast_cnp_from(RECEIVER, &DataPacketContext::default());
    // No node is listed by default, not even the receiver.
    let (mut host_without, _) = host(|config| config.access_list = Config::default().access_list);
    for bytes in [fast_cnp(), from_receiver.clone()] {
        assert_eq!(
            react(&mut host_without, at(1), &bytes),
            ignored(Ignored::NotOnAccessList)
        );
    }
    let (mut host, flow) = host(|config| config.access_list.push(Prefix::host(RECEIVER.into())));
    let reaction = react(&mut host, at(1), &from_receiver);
    assert_eq!(
        reaction,
        Reaction::Slowed {
            flow,
            from: LINE,
            to: LINE / 2.0
        }
    );
}

fn in_destination_options(options: &[OptionPart<'_>]) -> Vec<u8> {
    let repr = CnpRepr::new(PEER);
    build(&[
        ip(SWITCH.into(), SENDER.into()),
        Part::DestinationOptions(options),
        udp(4791),
        Part::Cnp(repr),
        ICRC,
    ])
}

fn in_hop_by_hop(options: &[OptionPart<'_>]) -> Vec<u8> {
    let repr = CnpRepr::new(PEER);
    build(&[
        ip(SWITCH.into(), SENDER.into()),
        Part::HopByHop(options),
        udp(4791),
        Part::Cnp(repr),
        ICRC,
    ])
}

#[test]
fn fast_cnps_that_violate_a_rule_are_malformed() {
    let option = OptionPart::FastCnp(FastCnpRepr::Option1 {
        original_destination: RECEIVER,
    });
    let to_receiver = OptionPart::FastCnp(FastCnpRepr::Option1 {
        original_destination: SENDER,
    });
    let short = OptionPart::Raw(0x9E, (4, 2), &[0; 15]);
    let (mut host, _) = host(|_| {});
    let fine = in_destination_options(&[option]);
    assert!(matches!(
        react(&mut host, at(1), &fine),
        Reaction::Slowed { .. }
    ));
    for bytes in [
        in_hop_by_hop(&[option]),
        in_destination_options(&[option, option]),
        in_destination_options(&[to_receiver]),
        in_destination_options(&[short]),
        build(&[
            ip(SWITCH.into(), SENDER.into()),
            Part::DestinationOptions(&[option]),
            udp(4791),
            Part::Bytes(&[0x81; 40]),
            ICRC,
        ]),
        // Not a CNP: truncated, and longer than one.
        fine[..fine.len() - 1].to_vec(),
        build(&[
            ip(RECEIVER.into(), SENDER.into()),
            udp(4791),
            Part::Cnp(CnpRepr::new(OWN)),
            Part::Bytes(&[0; 4]),
            ICRC,
        ]),
    ] {
        assert_eq!(react(&mut host, at(1), &bytes), ignored(Ignored::Malformed));
    }
    assert_eq!(host.counters().malformed, 7);
}

#[test]
fn unknown_options_that_demand_discarding_are_obeyed() {
    let (mut host, _) = host(|_| {});
    let known = OptionPart::FastCnp(FastCnpRepr::Option1 {
        original_destination: RECEIVER,
    });
    let unknown = |kind| OptionPart::Raw(kind, (4, 2), &[0; 18]);
    let cnp = |kind| {
        build(&[
            ip(RECEIVER.into(), SENDER.into()),
            Part::DestinationOptions(&[unknown(kind)]),
            udp(4791),
            Part::Cnp(CnpRepr::new(OWN)),
            ICRC,
        ])
    };
    // An unknown option that is to be skipped.
    let skipped = react(&mut host, at(1), &cnp(0x1F));
    assert!(matches!(skipped, Reaction::Slowed { .. }));
    let unlike = in_destination_options(&[known, unknown(0x4B)]);
    for bytes in [cnp(0x5E), cnp(0x8B), cnp(0xDE), unlike] {
        let reaction = react(&mut host, at(1), &bytes);
        assert_eq!(reaction, ignored(Ignored::UnknownOption));
    }
    assert_eq!(host.counters().unknown_option, 4);
}

#[test]
fn other_frames_are_not_notifications() {
    let (mut host, _) = host(|_| {});
    let data = data(RECEIVER.into(), SENDER.into(), Opcode::RC_SEND_ONLY, OWN);
    for bytes in [&data[..], &[]] {
        assert_eq!(
            react(&mut host, at(1), bytes),
            ignored(Ignored::NotANotification)
        );
    }
    assert_eq!(host.counters().not_a_notification, 2);
}

#[test]
fn qps_without_a_flow_are_unknown() {
    let (mut host, _) = host(|_| {});
    // A plain CNP names the sender's QP, a Fast CNP the receiver's; they must not be confused.
    let steps = [
        cnp(PEER),
        {
            let outgoing = OutgoingNotification::FastCnp {
                source: SWITCH,
                destination: SENDER,
                original_destination: RECEIVER,
                qp: OWN,
            };
            emit(outgoing, &DataPacketContext::default())
        },
        {
            let original_destination = Ipv6Addr::new(0x2001, 0xdb8, 7, 0, 0, 0, 0, 7);
            let outgoing = OutgoingNotification::FastCnp {
                source: SWITCH,
                destination: SENDER,
                original_destination,
                qp: PEER,
            };
            emit(outgoing, &DataPacketContext::default())
        },
    ];
    for bytes in steps {
        assert_eq!(react(&mut host, at(1), &bytes), ignored(Ignored::UnknownQp));
    }
    assert_eq!(host.counters().unknown_qp, 3);
}

#[test]
fn a_wrong_icrc_is_rejected_if_it_is_verified() {
    for verify in [true, false] {
        let (mut host, _) = host(|config| config.verify_icrc = verify);
        for mut bytes in [cnp(OWN), fast_cnp()] {
            *bytes.last_mut().unwrap() ^= 1;
            let reaction = react(&mut host, at(1), &bytes);
            assert_eq!(
                reaction == ignored(Ignored::BadIcrc),
                verify,
                "{reaction:?}"
            );
        }
        assert_eq!(host.counters().bad_icrc, if verify { 2 } else { 0 });
    }
    // In every reading of the ICRC.
    let (mut host, _) = host(|_| {});
    for reading in fcn_wire::icrc::Reading::ALL {
        let option = OptionPart::FastCnp(FastCnpRepr::Option1 {
            original_destination: RECEIVER,
        });
        let bytes = build(&[
            ip(SWITCH.into(), SENDER.into()),
            Part::DestinationOptions(&[option]),
            udp(4791),
            Part::Cnp(CnpRepr::new(PEER)),
            Part::Icrc(Policy::Compute(reading)),
        ]);
        assert!(matches!(
            react(&mut host, at(1), &bytes),
            Reaction::Slowed { .. }
        ));
    }
}

#[test]
fn a_full_table_refuses_and_keeps_what_is_open() {
    let (mut host, flow) = host(|config| config.flows = 2);
    let receiver = IpAddr::from(RECEIVER);
    let mut open = |own, peer| host.open(Qp::truncate(own), receiver, Qp::truncate(peer), LINE);
    assert_eq!(open(0x111, 0x333), None, "own QP in use");
    assert_eq!(open(0x333, 0x222), None, "receiver's QP in use");
    let second = open(2, 3).unwrap();
    assert_eq!(open(4, 5), None, "full");
    let want = Counters {
        opened: 2,
        duplicates: 2,
        table_full: 1,
        ..Counters::default()
    };
    assert_eq!(host.counters(), &want);
    host.close(second);
    let third = host
        .open(Qp::truncate(4), receiver, Qp::truncate(5), LINE / 2.0)
        .unwrap();
    assert_ne!(third, second, "the ID of a closed flow finds nothing");
    assert_eq!(
        (
            host.rate(at(0), second),
            host.rate(at(0), third),
            host.rate(at(0), flow)
        ),
        (0.0, LINE / 2.0, LINE)
    );
    host.close(second);
    assert_eq!(host.rate(at(0), third), LINE / 2.0);
    assert_eq!(
        react(&mut host, at(0), &cnp(Qp::truncate(2))),
        ignored(Ignored::UnknownQp)
    );
    // The QPs of a closed flow can be used again.
    host.close(third);
    assert!(
        host.open(Qp::truncate(2), receiver, Qp::truncate(3), LINE)
            .is_some()
    );
}

#[test]
fn rates_recover_by_time_and_octets() {
    let (mut host, flow) = host(|_| {});
    assert_eq!(host.next_timer(flow), None);
    react(&mut host, at(0), &cnp(OWN));
    assert_eq!(host.next_timer(flow), Some(at(55)));
    assert_eq!(host.rate(at(54), flow), LINE / 2.0);
    assert_eq!(host.rate(at(55), flow), LINE * 0.75);
    host.on_sent(flow, 10_000_000);
    assert_eq!(host.rate(at(55), flow), LINE * 0.875);
    host.close(flow);
    host.on_sent(flow, 10_000_000);
    assert_eq!(
        (host.rate(at(99), flow), host.next_timer(flow)),
        (0.0, None)
    );
}

#[test]
fn only_option_2_carries_telemetry() {
    let bytes = trace(&[hop(1000, 1000)]);
    let context = DataPacketContext {
        trace: Some((OptType::Preallocated, &bytes)),
        ..DataPacketContext::default()
    };
    let params = telemetry::Params::default();
    for (bytes, want) in [
        (fast_cnp_from(SWITCH, &context), LINE * 0.95 + params.r_ai()),
        (fast_cnp(), LINE / 2.0),
        (cnp(OWN), LINE / 2.0),
    ] {
        let (mut host, flow) = host(|config| config.control = Control::Telemetry(params));
        let Reaction::Slowed {
            flow: slowed,
            from,
            to,
        } = react(&mut host, at(1), &bytes)
        else {
            panic!("ignored")
        };
        assert_eq!((slowed, from), (flow, LINE));
        assert!((to - want).abs() < 1.0, "{to} {want}");
        assert_eq!(host.next_timer(flow), Some(at(14)));
    }
}

#[test]
fn a_fixed_rate_does_not_change() {
    let (mut host, flow) = host(|config| config.control = Control::Fixed);
    let reaction = react(&mut host, at(1), &cnp(OWN));
    assert_eq!(
        reaction,
        Reaction::Slowed {
            flow,
            from: LINE,
            to: LINE
        }
    );
    assert!(host.is_fixed());
    host.on_sent(flow, u32::MAX);
    assert_eq!(
        (host.rate(at(9), flow), host.next_timer(flow)),
        (LINE, None)
    );
}

proptest! {
    #[test]
    fn hostile_frames_are_survived_and_slow_only_the_open_flow(
        frames in proptest::collection::vec(mutated(vec![cnp(OWN), fast_cnp()]), 1..20), verify: bool)
    {
        let (mut host, flow) = host(|config| config.verify_icrc = verify);
        let mut seen = 0;
        for bytes in &frames {
            match react(&mut host, at(1), bytes) {
                Reaction::Slowed { flow: slowed, from, to } => prop_assert!(slowed == flow && to <= from && to >= 40e6),
                Reaction::Detoured { .. } => prop_assert!(false, "detours are off"),
                Reaction::Ignored(_) => seen += 1,
            }
        }
        let c = *host.counters();
        prop_assert_eq!(seen, c.not_a_notification + c.feature_off + c.not_on_access_list + c.unknown_qp + c.bad_icrc + c.malformed + c.unknown_option);
        prop_assert_eq!(seen + c.cnps + c.fast_cnps, frames.len() as u64);
    }

    #[test]
    fn arbitrary_octets_are_ignored(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let (mut host, _) = host(|_| {});
        prop_assert!(matches!(react(&mut host, at(1), &bytes), Reaction::Ignored(_)));
    }
}
