//! Tests of the congestion point: lists of packets, and the exact verdict on each.

use super::*;
use crate::limiter::Limits;
use core::time::Duration;
use fcn_observe::data::Outer;
use fcn_wire::Qp;
use fcn_wire::fast_cnp::MAX_TRACE_LEN;
use fcn_wire::ioam::OptType;
use fcn_wire::pnc::Prefix;
use proptest::prelude::*;
use std::net::{Ipv4Addr, Ipv6Addr};

const SWITCH: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 3);
const SENDER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
const RECEIVER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 9);
const PE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xee, 0, 0, 0, 0, 1);
const PROXY: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xf, 0, 0, 0, 0, 1);
const FULL: u64 = 200_001;

fn data() -> DataPacket<'static> {
    DataPacket {
        source: SENDER.into(),
        destination: RECEIVER.into(),
        source_port: 49152,
        destination_port: 4791,
        dest_qp: Qp::truncate(0x12),
        ecn: Ecn::Ect0,
        outer: None,
        trace: None,
        proxy_option: None,
    }
}

fn data4() -> DataPacket<'static> {
    DataPacket {
        source: Ipv4Addr::new(10, 0, 0, 1).into(),
        destination: Ipv4Addr::new(10, 0, 0, 2).into(),
        ..data()
    }
}

fn tunnelled(ecn: Ecn) -> DataPacket<'static> {
    DataPacket {
        ecn,
        outer: Some(Outer {
            ingress: Some(PE),
            flow_label: 0xABCDE,
        }),
        ..data()
    }
}

fn fast_cnp() -> OutgoingNotification {
    OutgoingNotification::FastCnp {
        source: SWITCH,
        destination: SENDER,
        original_destination: RECEIVER,
        qp: Qp::truncate(0x12),
    }
}

fn wan_fcn(level: u8) -> OutgoingNotification {
    OutgoingNotification::WanFcn {
        source: SWITCH,
        ingress: PE,
        flow_label: 0xABCDE,
        level,
        copy_flow_label: false,
    }
}

fn proxy_cn(proxy: IpAddr, source: IpAddr, packet: &DataPacket<'_>) -> OutgoingNotification {
    OutgoingNotification::ProxyCn {
        source,
        proxy,
        tuple: FiveTuple {
            source: packet.source,
            destination: packet.destination,
            protocol: 17,
            source_port: 49152,
            destination_port: 4791,
        },
        level: 7,
    }
}

fn node(set: impl FnOnce(&mut Config)) -> CongestionPoint {
    let mut config = Config::new(SWITCH);
    set(&mut config);
    CongestionPoint::new(config, Profile::DEFAULT)
}

fn able(ability: Ability) -> Vec<(Prefix, Ability)> {
    vec![(Prefix::new(SENDER.into(), 48).unwrap(), ability)]
}

/// Returns the verdict on a packet that meets a full queue one second after the previous packet;
/// the dice do not matter.
fn verdict(
    node: &mut CongestionPoint,
    packet: &DataPacket<'_>,
) -> (bool, Option<OutgoingNotification>) {
    let now = Time::from_nanos(node.counters().packets * 1_000_000_000);
    let verdict = node.on_packet(now, packet, (FULL, &Marking::default()), u32::MAX);
    assert!(verdict.congested);
    (verdict.mark_ce, verdict.notify)
}

#[test]
fn by_default_packets_are_marked_and_nothing_is_sent() {
    let mut node = node(|_| {});
    for (packet, mark) in [
        (data(), true),
        (data4(), true),
        (tunnelled(Ecn::Ect1), true),
        (tunnelled(Ecn::NotCapable), false),
        (tunnelled(Ecn::Ce), false),
        (
            DataPacket {
                proxy_option: Some(PROXY),
                ..data()
            },
            true,
        ),
    ] {
        assert_eq!(verdict(&mut node, &packet), (mark, None));
    }
    let want = Counters {
        packets: 6,
        congested: 6,
        marked: 4,
        unmarked_not_capable: 1,
        ..Counters::default()
    };
    assert_eq!(node.counters(), &want);
}

#[test]
fn nothing_happens_unless_the_dice_fall_under_the_probability() {
    let mut node = node(|config| config.fast_cnp = true);
    // Half way from Kmin to Kmax: 0.5 %.
    let (half, edge) = (102_500, (0.005 * DICE) as u32);
    let steps = [
        (5_000, 0, false),
        (5_001, 0, true),
        (half, edge - 1, true),
        (half, edge + 1, false),
        (200_000, (0.01 * DICE) as u32, true),
        (200_000, (0.01 * DICE) as u32 + 1, false),
        (200_001, u32::MAX, true),
    ];
    for (i, (depth, dice, congested)) in (0u64..).zip(steps) {
        let verdict = node.on_packet(
            Time::from_nanos(i * 1_000_000),
            &data(),
            (depth, &Marking::default()),
            dice,
        );
        assert_eq!(verdict.congested, congested, "{depth} {dice}");
        assert_eq!(
            (verdict.mark_ce, verdict.notify.is_some()),
            (congested, congested)
        );
    }
    assert_eq!((node.counters().packets, node.counters().congested), (7, 4));
}

#[test]
fn levels_rise_from_kmin_to_kmax_from_1_in_the_wan_and_from_0_at_a_proxy() {
    let marking = Marking {
        kmin: 1000,
        kmax: 8000,
        pmax: 0.1,
    };
    let depths = [0, 1000, 1999, 2000, 4500, 7000, 7999, 8000, u64::MAX];
    let levels = depths.map(|depth| marking.wan_level(depth));
    assert_eq!(levels, [1, 1, 1, 2, 4, 7, 7, 7, 7]);
    let marking = Marking {
        kmax: 9000,
        ..marking
    };
    let depths = [0, 1999, 2000, 4500, 7999, 8000, 8999, 9000, u64::MAX];
    let levels = depths.map(|depth| marking.proxy_level(depth));
    assert_eq!(levels, [0, 0, 1, 3, 6, 7, 7, 7, 7]);
    let step = Marking {
        kmin: 10,
        kmax: 10,
        pmax: 0.5,
    };
    assert_eq!([10, 11].map(|depth| step.probability(depth)), [0.0, 1.0]);
    assert_eq!([0, 10, 11].map(|depth| step.wan_level(depth)), [1, 1, 7]);
    assert_eq!([0, 10, 11].map(|depth| step.proxy_level(depth)), [0, 0, 7]);
}

#[test]
fn a_sender_that_handles_fast_cnps_is_never_marked_too() {
    let mut node = node(|config| {
        config.fast_cnp = true;
        config.senders = able(Ability::Able);
    });
    let at = |nanos| Time::from_nanos(nanos);
    // Not even if it was notified recently.
    for (now, notify) in [
        (at(0), Some(fast_cnp())),
        (at(49_999), None),
        (at(50_000), Some(fast_cnp())),
    ] {
        let verdict = node.on_packet(now, &data(), (FULL, &Marking::default()), 0);
        assert_eq!(
            verdict,
            Verdict {
                congested: true,
                mark_ce: false,
                notify
            }
        );
    }
    let want = Counters {
        packets: 3,
        congested: 3,
        fast_cnps: 2,
        flow_limited: 1,
        able: 3,
        ..Counters::default()
    };
    assert_eq!(node.counters(), &want);
}

#[test]
fn an_unknown_sender_is_notified_and_may_be_marked() {
    for mark_unknown in [true, false] {
        let mut node = node(|config| {
            config.fast_cnp = true;
            config.mark_unknown = mark_unknown;
        });
        assert_eq!(
            verdict(&mut node, &data()),
            (mark_unknown, Some(fast_cnp()))
        );
        let not_capable = DataPacket {
            ecn: Ecn::NotCapable,
            ..data()
        };
        assert_eq!(verdict(&mut node, &not_capable), (false, Some(fast_cnp())));
    }
}

#[test]
fn a_sender_that_does_not_handle_fast_cnps_is_only_marked() {
    let mut node = node(|config| {
        config.fast_cnp = true;
        config.senders = able(Ability::Unable);
        // The longer prefix counts, whatever its position.
        config
            .senders
            .insert(0, (Prefix::host(RECEIVER.into()), Ability::Able));
        config
            .senders
            .push((Prefix::new(SENDER.into(), 16).unwrap(), Ability::Able));
    });
    assert_eq!(verdict(&mut node, &data()), (true, None));
    let reply = DataPacket {
        source: RECEIVER.into(),
        destination: SENDER.into(),
        ..data()
    };
    let (mark, notify) = verdict(&mut node, &reply);
    assert!(!mark && notify.is_some());
    assert_eq!(node.counters().sender_unable, 1);
}

#[test]
fn ipv4_packets_are_marked_since_fast_cnps_are_ipv6() {
    let mut node = node(|config| config.fast_cnp = true);
    assert_eq!(verdict(&mut node, &data4()), (true, None));
    assert_eq!(node.counters().not_ipv6, 1);
}

#[test]
fn without_ecn_nothing_is_marked() {
    let mut node = node(|config| config.ecn = false);
    assert_eq!(verdict(&mut node, &data()), (false, None));
    assert_eq!(node.counters().marked, 0);
}

#[test]
fn packets_from_or_to_no_node_are_not_notified_about() {
    let mut node = node(|config| {
        config.fast_cnp = true;
        config.proxy = true;
        config.wan_fcn = true;
    });
    for source in ["::", "ff02::1", "::1", "0.0.0.0", "224.0.0.1"] {
        let packet = DataPacket {
            source: source.parse().unwrap(),
            proxy_option: Some(PROXY),
            ..tunnelled(Ecn::Ect0)
        };
        assert_eq!(verdict(&mut node, &packet), (true, None), "{source}");
    }
    assert_eq!(node.counters().sender_invalid, 5);
    let multicast = DataPacket {
        destination: "ff05::1".parse().unwrap(),
        proxy_option: Some(PROXY),
        ..tunnelled(Ecn::Ect0)
    };
    assert_eq!(verdict(&mut node, &multicast), (true, None));
    assert_eq!(node.counters().receiver_invalid, 1);
}

#[test]
fn a_trace_that_does_not_fit_is_counted() {
    let mut node = node(|config| config.fast_cnp = true);
    let trace = [0; MAX_TRACE_LEN + 4];
    for (len, counted) in [(MAX_TRACE_LEN, 0), (MAX_TRACE_LEN + 4, 1)] {
        let packet = DataPacket {
            trace: Some((OptType::Preallocated, &trace[..len])),
            ..data()
        };
        assert_eq!(verdict(&mut node, &packet).1, Some(fast_cnp()));
        assert_eq!(node.counters().trace_left_out, counted);
    }
}

#[test]
fn wan_fcn_is_only_sent_for_tunnelled_ect_packets() {
    let mut node = node(|config| config.wan_fcn = true);
    assert_eq!(
        verdict(&mut node, &tunnelled(Ecn::Ect0)),
        (false, Some(wan_fcn(7)))
    );
    assert_eq!(
        verdict(&mut node, &tunnelled(Ecn::Ect1)),
        (false, Some(wan_fcn(7)))
    );
    assert_eq!(
        verdict(&mut node, &tunnelled(Ecn::NotCapable)),
        (false, None)
    );
    assert_eq!(verdict(&mut node, &tunnelled(Ecn::Ce)), (false, None));
    assert_eq!(verdict(&mut node, &data()), (true, None));
    let mut unlabelled = tunnelled(Ecn::Ect0);
    unlabelled.outer = Some(Outer {
        ingress: Some(PE),
        flow_label: 0,
    });
    assert_eq!(verdict(&mut node, &unlabelled), (true, None));
    let counters = node.counters();
    assert_eq!(
        (
            counters.wan_fcns,
            counters.wan_not_capable,
            counters.wan_no_label
        ),
        (2, 2, 1)
    );
    // The level is that of the queue.
    let now = Time::from_nanos(1 << 60);
    assert_eq!(
        node.on_packet(now, &tunnelled(Ecn::Ect0), (5_001, &Marking::default()), 0)
            .notify,
        Some(wan_fcn(1))
    );
}

#[test]
fn without_ingress_in_the_packet_the_configured_one_is_notified() {
    let mut packet = tunnelled(Ecn::Ect0);
    packet.outer = Some(Outer {
        ingress: None,
        flow_label: 0xABCDE,
    });
    let mut without = node(|config| config.wan_fcn = true);
    assert_eq!(verdict(&mut without, &packet), (true, None));
    assert_eq!(without.counters().wan_no_ingress, 1);
    let mut with = node(|config| {
        config.wan_fcn = true;
        config.ingress = Some(PE);
    });
    assert_eq!(verdict(&mut with, &packet), (false, Some(wan_fcn(7))));
}

#[test]
fn a_wan_fcn_without_a_level_has_level_0() {
    let mut node = node(|config| {
        config.wan_fcn = true;
        config.wan_level = false;
    });
    let packet = tunnelled(Ecn::Ect0);
    assert_eq!(verdict(&mut node, &packet), (false, Some(wan_fcn(0))));
}

#[test]
fn only_listed_nodes_are_notified() {
    let list = |address: Ipv6Addr| vec![Prefix::host(address.into())];
    let all = |config: &mut Config| {
        config.wan_fcn = true;
        config.proxy = true;
        config.fast_cnp = true;
        config.senders = able(Ability::Able);
    };
    let packet = DataPacket {
        proxy_option: Some(PROXY),
        ..tunnelled(Ecn::Ect0)
    };
    let proxied = proxy_cn(PROXY.into(), SWITCH.into(), &packet);
    for (prefixes, want, counted) in [
        (PE, Some(wan_fcn(7)), 0),
        (PROXY, Some(proxied), 1),
        (SENDER, Some(fast_cnp()), 2),
        (RECEIVER, None, 3),
    ] {
        let mut node = node(|config| {
            all(config);
            config.allowed_targets = list(prefixes);
        });
        assert_eq!(verdict(&mut node, &packet), (want.is_none(), want));
        assert_eq!(node.counters().not_to_be_told, counted);
    }
}

#[test]
fn proxies_named_by_a_packet_can_be_restricted() {
    let named = DataPacket {
        proxy_option: Some(PROXY),
        ..data()
    };
    for (allowed, want, passed_over) in [
        (PROXY, (false, true), 0),
        // Anyone can write an option: the packet is marked instead.
        (PE, (true, false), 1),
    ] {
        let mut node = node(|config| {
            config.proxy = true;
            config.allowed_proxies = vec![Prefix::host(allowed.into())];
        });
        let (mark, notify) = verdict(&mut node, &named);
        assert_eq!((mark, notify.is_some()), want);
        assert_eq!(node.counters().proxy_not_allowed, passed_over);
    }
}

#[test]
fn a_flow_of_another_transport_is_notified_to_its_proxy_or_marked() {
    let tuple = FiveTuple {
        source: SENDER.into(),
        destination: RECEIVER.into(),
        protocol: 6,
        source_port: 40_000,
        destination_port: 443,
    };
    let packet = OtherPacket {
        tuple,
        ecn: Ecn::Ect0,
        proxy_option: None,
    };
    let mut node = node(|config| {
        config.proxy = true;
        config.fast_cnp = true;
        config.proxies = vec![(Prefix::host(SENDER.into()), PROXY.into())];
    });
    let marking = Marking::default();
    let mut step = |micros: u64, tuple, depth| {
        let packet = OtherPacket { tuple, ..packet };
        let now = Time::from_nanos(micros * 1000);
        node.on_other_packet(now, &packet, (depth, &marking), u32::MAX)
    };
    let expected = OutgoingNotification::ProxyCn {
        source: SWITCH.into(),
        proxy: PROXY.into(),
        tuple,
        level: 7,
    };
    assert_eq!(step(0, tuple, 0), Verdict::default());
    assert_eq!(step(0, tuple, FULL).notify, Some(expected));
    assert_eq!(step(49, tuple, FULL).notify, None, "the same flow");
    let other = FiveTuple {
        source_port: 40_001,
        ..tuple
    };
    assert!(step(49, other, FULL).notify.is_some(), "another flow");
    // Without a proxy there is no node to notify: Fast CNPs are for RoCEv2.
    let unserved = FiveTuple {
        source: RECEIVER.into(),
        ..tuple
    };
    let verdict = step(50, unserved, FULL);
    assert_eq!((verdict.mark_ce, verdict.notify), (true, None));
    let counters = node.counters();
    assert_eq!((counters.proxy_cns, counters.proxy_cns_other), (2, 2));
    assert_eq!((counters.flow_limited, counters.proxy_unknown), (1, 1));
}

#[test]
fn the_configured_proxy_outranks_the_packets() {
    let (configured, wide) = (Ipv6Addr::LOCALHOST.into(), IpAddr::from(PE));
    let mut node = node(|config| {
        config.proxy = true;
        config.proxies = vec![
            (Prefix::new(SENDER.into(), 64).unwrap(), configured),
            (Prefix::new(SENDER.into(), 32).unwrap(), wide),
        ];
    });
    let named = DataPacket {
        proxy_option: Some(PROXY),
        ..data()
    };
    // Anyone can write the option: it does not outrank the operator.
    assert_eq!(
        verdict(&mut node, &named),
        (false, Some(proxy_cn(configured, SWITCH.into(), &named)))
    );
    let elsewhere = DataPacket {
        source: Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 1).into(),
        ..named
    };
    let want = proxy_cn(PROXY.into(), SWITCH.into(), &elsewhere);
    assert_eq!(verdict(&mut node, &elsewhere), (false, Some(want)));
    assert_eq!(
        verdict(&mut node, &data()),
        (false, Some(proxy_cn(configured, SWITCH.into(), &data())))
    );
    // An option that does not name a node is ignored.
    let nobody = DataPacket {
        proxy_option: Some(Ipv6Addr::UNSPECIFIED),
        ..elsewhere
    };
    assert_eq!(verdict(&mut node, &nobody), (true, None));
    // No proxy for IPv4 senders: marked.
    assert_eq!(verdict(&mut node, &data4()), (true, None));
    let counters = node.counters();
    assert_eq!((counters.proxy_cns, counters.proxy_unknown), (3, 2));
}

#[test]
fn an_ipv4_proxy_needs_an_ipv4_source() {
    let (proxy, own) = (IpAddr::from([10, 0, 0, 9]), Ipv4Addr::new(10, 0, 0, 3));
    for address4 in [None, Some(own)] {
        let mut node = node(|config| {
            config.proxy = true;
            config.address4 = address4;
            config.proxies = vec![(Prefix::new(IpAddr::from([10, 0, 0, 0]), 8).unwrap(), proxy)];
        });
        let (want, missing) = match address4 {
            None => ((true, None), 1),
            Some(own) => ((false, Some(proxy_cn(proxy, own.into(), &data4()))), 0),
        };
        assert_eq!(verdict(&mut node, &data4()), want);
        assert_eq!(node.counters().proxy_no_source, missing);
    }
}

#[test]
fn wan_fcn_comes_before_proxy_and_proxy_before_fast_cnp() {
    let mut node = node(|config| {
        config.wan_fcn = true;
        config.proxy = true;
        config.fast_cnp = true;
    });
    let all = DataPacket {
        proxy_option: Some(PROXY),
        ..tunnelled(Ecn::Ect0)
    };
    let no_label = DataPacket { outer: None, ..all };
    let kinds = [all, no_label, data()].map(|packet| verdict(&mut node, &packet).1.unwrap().kind());
    use fcn_wire::Kind;
    assert_eq!(kinds, [Kind::WanFcn, Kind::ProxyCn, Kind::FastCnp1]);
}

#[test]
fn plain_cnps_need_a_known_qp_and_have_the_configured_source() {
    let qp = Qp::truncate(0x77);
    let v4 = Ipv4Addr::new(10, 0, 0, 9);
    for (packet, name, address4, source) in [
        (data(), CnpName::Receiver, None, Some(RECEIVER.into())),
        (data(), CnpName::Own, None, Some(IpAddr::from(SWITCH))),
        (data4(), CnpName::Receiver, None, Some(data4().destination)),
        (data4(), CnpName::Own, Some(v4), Some(v4.into())),
        (data4(), CnpName::Own, None, None),
    ] {
        let mut node = node(|config| {
            config.cnp = Some(name);
            config.address4 = address4;
        });
        assert_eq!(verdict(&mut node, &packet), (true, None), "unknown QP");
        // Two acknowledgements reveal the QP.
        for psn in [50_000, 50_001] {
            let (flow, now) = (packet.flow(), Time::from_nanos(psn.into()));
            node.qps.data(now, flow, 0, psn);
            (node.qps).acknowledged(now, (flow.receiver, flow.sender, qp), 0, psn);
        }
        let cnp = source.map(|source| OutgoingNotification::Cnp {
            source,
            destination: packet.source,
            qp,
        });
        assert_eq!(verdict(&mut node, &packet), (cnp.is_none(), cnp));
        let counters = node.counters();
        let sent = u64::from(cnp.is_some());
        assert_eq!((counters.cnps, counters.cnp_no_source), (sent, 1 - sent));
        assert_eq!(counters.cnp_unknown, 1);
        let elsewhere = Prefix::host(PE.into());
        node.config.allowed_targets = vec![elsewhere];
        assert_eq!(verdict(&mut node, &packet), (true, None), "not permitted");
    }
    let mut configured = node(|config| {
        config.cnp = Some(CnpName::Receiver);
        config.qps = vec![(data().flow(), qp)];
    });
    assert!(matches!(
        verdict(&mut configured, &data()),
        (false, Some(OutgoingNotification::Cnp { .. }))
    ));
}

#[test]
fn the_limits_hold_for_all_flows_together() {
    let mut node = node(|config| {
        config.fast_cnp = true;
        config.limits = Limits {
            per_second: 1000,
            burst: 2,
            flows: 2,
            interval: Duration::from_micros(50),
        };
    });
    let mut sent = |micros: u64, qp| {
        let packet = DataPacket {
            dest_qp: Qp::truncate(qp),
            ..data()
        };
        node.on_packet(
            Time::from_nanos(micros * 1000),
            &packet,
            (FULL, &Marking::default()),
            0,
        )
        .notify
        .is_some()
    };
    assert_eq!([sent(0, 1), sent(0, 2), sent(0, 3)], [true, true, false]);
    assert_eq!(
        [sent(999, 3), sent(1000, 3), sent(1000, 4)],
        [false, true, false]
    );
    let counters = node.counters();
    assert_eq!(
        (
            counters.total_limited,
            counters.flow_limited,
            counters.flows_evicted
        ),
        (3, 0, 1)
    );
    // The sender's ability is unknown, so all were marked.
    assert_eq!(counters.marked, 6);
}

#[test]
fn packets_are_marked_when_the_total_limit_is_reached() {
    let mut node = node(|config| {
        config.fast_cnp = true;
        config.senders = able(Ability::Able);
        config.limits = Limits {
            per_second: 1,
            burst: 1,
            ..Limits::default()
        };
    });
    let first = node.on_packet(Time::from_nanos(0), &data(), (FULL, &Marking::default()), 0);
    assert_eq!((first.mark_ce, first.notify), (false, Some(fast_cnp())));
    let later = node.on_packet(
        Time::from_nanos(60_000),
        &data(),
        (FULL, &Marking::default()),
        0,
    );
    assert_eq!((later.mark_ce, later.notify), (true, None));
    assert_eq!(node.counters().total_limited, 1);
}

proptest! {
    #[test]
    fn the_probability_never_falls_with_the_depth(kmin in 0u64..1000, range in 0u64..1000, pmax in 0.0..=1.0, a in 0u64..3000, b in 0u64..3000) {
        let marking = Marking { kmin, kmax: kmin + range, pmax };
        let (low, high) = (a.min(b), a.max(b));
        prop_assert!(marking.probability(low) <= marking.probability(high));
        prop_assert!(marking.wan_level(low) <= marking.wan_level(high));
        prop_assert!(marking.proxy_level(low) <= marking.proxy_level(high));
        prop_assert!((0.0..=1.0).contains(&marking.probability(a)));
        prop_assert!((1..=7).contains(&marking.wan_level(a)) && marking.proxy_level(a) <= 7);
    }
}
