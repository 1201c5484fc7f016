//! Tests of the proxy node: lists of messages, and the exact answer to each.

use super::*;
use crate::outgoing::DataPacketContext;
use crate::testing::{
    RECEIVER, RECEIVER4, SENDER, SENDER4, SWITCH, Setup, build, data, ip, mutated, udp, with_frame,
};
use fcn_wire::compose::Part;
use fcn_wire::proxy_cn::{FiveTuple, ProxyCnRepr};
use fcn_wire::{Opcode, Profile, Qp};
use proptest::prelude::*;

const PROXY: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xf, 0, 0, 0, 0, 1);
const PROXY4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 7);

fn proxy(set: impl FnOnce(&mut Config)) -> Proxy {
    let mut config = Config::new(PROXY);
    config.address4 = Some(PROXY4);
    config.enabled = true;
    set(&mut config);
    let mut proxy = Proxy::new(config);
    for setup in [Setup::v6(), Setup::v4()] {
        for message in setup.messages() {
            with_frame(&message, |frame| proxy.qps.learn(Time::default(), frame));
        }
    }
    proxy
}

/// Builds a proxy notification about a data packet between these addresses to QP `qp`.
fn notification(
    to: IpAddr,
    (sender, receiver): (IpAddr, IpAddr),
    qp: u32,
    change: impl FnOnce(&mut FiveTuple),
) -> Vec<u8> {
    let packet = data(sender, receiver, Opcode::RC_SEND_ONLY, Qp::truncate(qp));
    let mut tuple = FiveTuple {
        source: sender,
        destination: receiver,
        protocol: 17,
        source_port: 49152,
        destination_port: 4791,
    };
    change(&mut tuple);
    let source = match to {
        IpAddr::V6(_) => SWITCH.into(),
        IpAddr::V4(_) => Ipv4Addr::new(10, 0, 9, 9).into(),
    };
    let outgoing = OutgoingNotification::ProxyCn {
        source,
        proxy: to,
        tuple,
        level: 3,
    };
    emit(outgoing, &packet)
}

fn emit(outgoing: OutgoingNotification, invoking: &[u8]) -> Vec<u8> {
    let mut out = [0; OutgoingNotification::MAX_LEN];
    let context = DataPacketContext {
        trace: None,
        invoking,
    };
    let (len, _) = outgoing
        .emit(&context, &Profile::DEFAULT, &mut out)
        .unwrap();
    out[..len].to_vec()
}

fn ends6() -> (IpAddr, IpAddr) {
    (SENDER.into(), RECEIVER.into())
}

fn ends4() -> (IpAddr, IpAddr) {
    (SENDER4.into(), RECEIVER4.into())
}

fn good() -> Vec<u8> {
    notification(PROXY.into(), ends6(), 0x222, |_| {})
}

fn ask(proxy: &mut Proxy, micros: u64, bytes: &[u8]) -> Result<OutgoingNotification, Refused> {
    let now = Time::from_nanos(micros * 1000);
    with_frame(bytes, |frame| proxy.on_message(now, frame))
}

fn cnp(source: IpAddr, destination: IpAddr, qp: u32) -> Result<OutgoingNotification, Refused> {
    Ok(OutgoingNotification::Cnp {
        source,
        destination,
        qp: Qp::truncate(qp),
    })
}

#[test]
fn a_notification_becomes_a_cnp_about_the_senders_qp() {
    let mut proxy = proxy(|_| {});
    let back = (RECEIVER.into(), SENDER.into());
    let steps = [
        (good(), cnp(PROXY.into(), SENDER.into(), 0x111)),
        (
            notification(PROXY.into(), back, 0x111, |_| {}),
            cnp(PROXY.into(), RECEIVER.into(), 0x222),
        ),
        (
            notification(PROXY4.into(), ends4(), 0x222, |_| {}),
            cnp(PROXY4.into(), SENDER4.into(), 0x111),
        ),
        // Over IPv6 about an IPv4 flow.
        (
            notification(PROXY.into(), ends4(), 0x222, |_| {}),
            cnp(PROXY4.into(), SENDER4.into(), 0x111),
        ),
    ];
    for (i, (message, want)) in (0u64..).zip(steps) {
        assert_eq!(ask(&mut proxy, i * 50, &message), want, "step {i}");
    }
    assert_eq!(
        proxy.counters(),
        &Counters {
            cnps: 4,
            ..Counters::default()
        }
    );
}

#[test]
fn by_default_it_is_off() {
    let mut proxy = proxy(|config| config.enabled = Config::new(PROXY).enabled);
    assert_eq!(ask(&mut proxy, 0, &good()), Err(Refused::Disabled));
    assert_eq!(proxy.counters().disabled, 1);
}

#[test]
fn refusals_are_counted_by_reason() {
    let mut proxy = proxy(|config| {
        config.congestion_points = vec![Prefix::new(SWITCH.into(), 64).unwrap()];
    });
    let to = IpAddr::from(PROXY);
    let swap = |tuple: &mut FiveTuple| tuple.source_port = 1;
    let outgoing = OutgoingNotification::ProxyCn {
        source: SWITCH.into(),
        proxy: to,
        tuple: tuple6(),
        level: 0,
    };
    let packet = data(
        SENDER.into(),
        RECEIVER.into(),
        Opcode::RC_SEND_ONLY,
        Qp::truncate(0x222),
    );
    let quote_less = emit(outgoing, &packet[..48]);
    let mut too_short = good();
    too_short.truncate(40 + 8 + 39);
    too_short[5] = 8 + 39;
    too_short[45] = 8 + 39;
    let steps = [
        (
            data(
                SWITCH.into(),
                PROXY.into(),
                Opcode::RC_SEND_ONLY,
                Qp::truncate(5),
            ),
            Refused::NotANotification,
        ),
        (
            notification(SENDER.into(), ends6(), 0x222, |_| {}),
            Refused::NotForUs,
        ),
        (
            notification(PROXY4.into(), ends4(), 0x222, |_| {}),
            Refused::NotAllowed,
        ),
        (notification(to, ends6(), 0x222, swap), Refused::Malformed),
        (too_short, Refused::Malformed),
        (quote_less, Refused::NoQp),
        (
            notification(to, ends6(), 0x223, |_| {}),
            Refused::UnknownConnection,
        ),
    ];
    for (message, want) in steps {
        assert_eq!(ask(&mut proxy, 0, &message), Err(want));
    }
    assert!(ask(&mut proxy, 0, &good()).is_ok());
    assert_eq!(ask(&mut proxy, 49, &good()), Err(Refused::TooSoon));
    assert!(ask(&mut proxy, 50, &good()).is_ok());
    let want = Counters {
        cnps: 2,
        inferred: 0,
        disabled: 0,
        not_a_notification: 1,
        not_for_us: 1,
        not_allowed: 1,
        too_many: 0,
        malformed: 2,
        not_roce: 0,
        no_qp: 1,
        unknown_connection: 1,
        no_address: 0,
        too_soon: 1,
    };
    assert_eq!(proxy.counters(), &want);
}

#[test]
fn a_message_longer_than_allowed_is_malformed() {
    for (invoking, want) in [
        (1192, cnp(PROXY.into(), SENDER.into(), 0x111)),
        (1193, Err(Refused::Malformed)),
    ] {
        let mut quoted = data(
            SENDER.into(),
            RECEIVER.into(),
            Opcode::RC_SEND_ONLY,
            Qp::truncate(0x222),
        );
        quoted.resize(invoking, 0);
        let repr = ProxyCnRepr {
            five_tuple: tuple6(),
            level: 0,
            reserved: 0,
            invoking: &quoted,
        };
        let mut message = vec![0; repr.buffer_len()];
        repr.emit(&mut message).unwrap();
        let bytes = build(&[
            ip(SWITCH.into(), PROXY.into()),
            udp(1021),
            Part::Bytes(&message),
        ]);
        assert_eq!(ask(&mut proxy(|_| {}), 0, &bytes), want, "{}", bytes.len());
    }
}

fn tuple6() -> FiveTuple {
    FiveTuple {
        source: SENDER.into(),
        destination: RECEIVER.into(),
        protocol: 17,
        source_port: 49152,
        destination_port: 4791,
    }
}

#[test]
fn without_an_ipv4_address_ipv4_senders_are_not_notified() {
    let mut proxy = proxy(|config| config.address4 = None);
    let message = notification(PROXY.into(), ends4(), 0x222, |_| {});
    assert_eq!(ask(&mut proxy, 0, &message), Err(Refused::NoAddress));
    assert_eq!(proxy.counters().no_address, 1);
}

#[test]
fn no_more_notifications_are_read_than_the_limit_lets_in() {
    let mut proxy = proxy(|config| {
        config.limits.per_second = 1000;
        config.limits.burst = 2;
        config.limits.interval = Default::default();
        config.congestion_points = vec![Prefix::host(SWITCH.into())];
    });
    let mut stranger = good();
    stranger[8] ^= 1;
    // A node that may not notify does not use up the limit.
    for (micros, message, want) in [
        (0, &stranger, Some(Refused::NotAllowed)),
        (0, &good(), None),
        (0, &good(), None),
        (999, &good(), Some(Refused::TooMany)),
        (1000, &good(), None),
    ] {
        assert_eq!(ask(&mut proxy, micros, message).err(), want);
    }
    assert_eq!((proxy.counters().cnps, proxy.counters().too_many), (3, 1));
}

#[test]
fn flows_of_other_transports_are_counted() {
    let mut proxy = proxy(|_| {});
    // TCP, and UDP to another port.
    for (protocol, port) in [(6, 443), (17, 443), (6, 4791)] {
        let mut packet = build(&[
            ip(SENDER.into(), RECEIVER.into()),
            udp(port),
            Part::Bytes(&[0; 32]),
        ]);
        packet[6] = protocol;
        let tuple = FiveTuple::from_packet(&packet).unwrap();
        assert_eq!((tuple.protocol, tuple.destination_port), (protocol, port));
        let outgoing = OutgoingNotification::ProxyCn {
            source: SWITCH.into(),
            proxy: PROXY.into(),
            tuple,
            level: 0,
        };
        let message = emit(outgoing, &packet);
        assert_eq!(ask(&mut proxy, 0, &message), Err(Refused::NotRoce));
    }
    assert_eq!(proxy.counters().not_roce, 3);
}

#[test]
fn a_configured_qp_needs_no_connection_set_up() {
    let flow = FlowKey {
        sender: SENDER.into(),
        receiver: RECEIVER.into(),
        receiver_qp: Qp::truncate(0x777),
    };
    let mut proxy = proxy(|config| config.qps = vec![(flow, Qp::truncate(0x666))]);
    let message = notification(PROXY.into(), ends6(), 0x777, |_| {});
    let want = cnp(PROXY.into(), SENDER.into(), 0x666);
    assert_eq!(ask(&mut proxy, 0, &message), want);
    assert_eq!(proxy.counters().inferred, 0);
}

proptest! {
    #[test]
    fn hostile_messages_only_notify_connected_senders(bytes in mutated(vec![good(),
        notification(PROXY.into(), ends4(), 0x222, |_| {}), notification(PROXY4.into(), ends4(), 0x222, |_| {})]))
    {
        let mut proxy = proxy(|_| {});
        if let Ok(outgoing) = ask(&mut proxy, 0, &bytes) {
            let v6 = cnp(PROXY.into(), SENDER.into(), 0x111);
            let v4 = cnp(PROXY4.into(), SENDER4.into(), 0x111);
            prop_assert!(Ok(outgoing) == v6 || Ok(outgoing) == v4);
        }
    }

    #[test]
    fn arbitrary_octets_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut proxy = proxy(|_| {});
        prop_assert!(ask(&mut proxy, 0, &bytes).is_err());
    }
}
