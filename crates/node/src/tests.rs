//! Tests of the roles together: a data packet meets congestion, and its sender slows down, with
//! each of the mechanisms.

use crate::congestion_point::{self, Ability, CongestionPoint, Marking};
use crate::ingress_pe::{self, IngressPe};
use crate::notification_point::{self, NotificationPoint};
use crate::outgoing::{DataPacketContext, OutgoingNotification};
use crate::proxy::{self, Proxy};
use crate::reaction_point::{self, Reaction, ReactionPoint};
use crate::testing::{
    ICRC, RECEIVER, SENDER, SWITCH, Setup, build, data, hop, trace, udp, with_frame,
};
use fcn_observe::data::{DataPacket, Ecn, Outer};
use fcn_observe::time::Time;
use fcn_wire::bth::BthRepr;
use fcn_wire::compose::{OptionPart, Part};
use fcn_wire::ioam::{IoamOption, OptType};
use fcn_wire::pnc::Prefix;
use fcn_wire::{Kind, Opcode, Profile, Qp};
use std::net::Ipv6Addr;

const PROXY: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xf, 0, 0, 0, 0, 1);
const PE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xee, 0, 0, 0, 0, 1);
const NOW: Time = Time::from_nanos(1_000_000);
const LINE: f64 = 100e9;

fn own_qp() -> Qp {
    Qp::truncate(Setup::v6().active_end.1)
}

fn receiver_qp() -> Qp {
    Qp::truncate(Setup::v6().passive_end.1)
}

fn packet() -> Vec<u8> {
    data(
        SENDER.into(),
        RECEIVER.into(),
        Opcode::RC_SEND_ONLY,
        receiver_qp(),
    )
}

/// Returns the verdict of a congestion point with a full queue on the data packet in `bytes`, and
/// its notification.
fn congest(
    set: impl FnOnce(&mut congestion_point::Config),
    bytes: &[u8],
) -> (bool, Option<(Vec<u8>, Kind)>) {
    let mut config = congestion_point::Config::new(SWITCH);
    set(&mut config);
    let mut node = CongestionPoint::new(config, Profile::DEFAULT);
    with_frame(bytes, |frame| {
        let packet = DataPacket::from_frame(frame).unwrap();
        let verdict = node.on_packet(NOW, &packet, (u64::MAX, &Marking::default()), 0);
        let context = DataPacketContext::new(&packet, frame);
        (
            verdict.mark_ce,
            verdict.notify.map(|outgoing| emit(outgoing, &context)),
        )
    })
}

fn emit(outgoing: OutgoingNotification, context: &DataPacketContext<'_>) -> (Vec<u8>, Kind) {
    let mut out = [0; OutgoingNotification::MAX_LEN];
    let (len, kind) = outgoing.emit(context, &Profile::DEFAULT, &mut out).unwrap();
    (out[..len].to_vec(), kind)
}

/// Asserts that the frame in `bytes` halves the rate of the sender's flow.
fn assert_slows(bytes: &[u8]) {
    let mut host = ReactionPoint::new(reaction_point::Config {
        fast_cnp: true,
        access_list: vec![Prefix::host(SWITCH.into())],
        ..reaction_point::Config::default()
    });
    let flow = host
        .open(own_qp(), RECEIVER.into(), receiver_qp(), LINE)
        .unwrap();
    let want = Reaction::Slowed {
        flow,
        from: LINE,
        to: LINE / 2.0,
    };
    assert_eq!(with_frame(bytes, |frame| host.on_frame(NOW, frame)), want);
}

#[test]
fn by_a_fast_cnp() {
    let (marked, sent) = congest(|config| config.fast_cnp = true, &packet());
    let (bytes, kind) = sent.unwrap();
    assert_eq!((marked, kind), (true, Kind::FastCnp1));
    assert_slows(&bytes);
}

#[test]
fn by_a_fast_cnp_with_the_packets_trace() {
    let trace = trace(&[hop(1000, 1000)]);
    let ioam = IoamOption {
        reserved: 0,
        opt_type: OptType::Preallocated,
        body: &trace,
    };
    let packet = build(&[
        crate::testing::ip(SENDER.into(), RECEIVER.into()),
        Part::HopByHop(&[OptionPart::Ioam(ioam)]),
        udp(4791),
        Part::Bth(BthRepr::new(Opcode::RC_SEND_ONLY, receiver_qp(), 1)),
        Part::Bytes(&[0; 64]),
        ICRC,
    ]);
    let set = |config: &mut congestion_point::Config| {
        config.fast_cnp = true;
        config.senders = vec![(Prefix::host(SENDER.into()), Ability::Able)];
    };
    let (marked, sent) = congest(set, &packet);
    let (bytes, kind) = sent.unwrap();
    assert_eq!((marked, kind), (false, Kind::FastCnp2));
    assert_slows(&bytes);
}

#[test]
fn by_a_mark_and_the_receivers_cnp() {
    let (marked, sent) = congest(|_| {}, &packet());
    assert!(marked && sent.is_none());
    let mut receiver = NotificationPoint::new(notification_point::Config::default());
    let cnp = with_frame(&packet(), |frame| {
        let packet = DataPacket {
            ecn: Ecn::Ce,
            ..DataPacket::from_frame(frame).unwrap()
        };
        receiver.on_data(NOW, &packet, own_qp()).unwrap()
    });
    assert_slows(&emit(cnp, &DataPacketContext::default()).0);
}

#[test]
fn by_way_of_the_proxy_node() {
    let set = |config: &mut congestion_point::Config| {
        config.proxy = true;
        config.proxies = vec![(Prefix::new(SENDER.into(), 64).unwrap(), PROXY.into())];
    };
    let (marked, sent) = congest(set, &packet());
    let (bytes, kind) = sent.unwrap();
    assert_eq!((marked, kind), (false, Kind::ProxyCn));
    let mut proxy = Proxy::new(proxy::Config {
        enabled: true,
        ..proxy::Config::new(PROXY)
    });
    for message in Setup::v6().messages() {
        with_frame(&message, |frame| proxy.qps.learn(NOW, frame));
    }
    let cnp = with_frame(&bytes, |frame| proxy.on_message(NOW, frame)).unwrap();
    assert_slows(&emit(cnp, &DataPacketContext::default()).0);
}

#[test]
fn by_way_of_the_ingress_pe() {
    let mut pe = IngressPe::new(ingress_pe::Config {
        enabled: true,
        ..ingress_pe::Config::new(PE)
    });
    for message in Setup::v6().messages() {
        with_frame(&message, |frame| pe.qps.learn(NOW, frame));
    }
    let flow_label = pe.label(SENDER.into(), RECEIVER.into(), receiver_qp());
    let outer = Part::Ipv6 {
        source: PE,
        destination: Ipv6Addr::new(0x2001, 0xdb8, 0xee, 0, 0, 0, 0, 2),
        traffic_class: 2,
        flow_label,
        hop_limit: 64,
    };
    let inner = packet();
    let tunnelled = build(&[
        outer,
        Part::Payload {
            ether_type: 0,
            protocol: 41,
            bytes: &inner,
        },
    ]);
    with_frame(&tunnelled, |frame| {
        let ingress = Some(PE);
        let want = Some(Outer {
            ingress,
            flow_label,
        });
        assert_eq!(DataPacket::from_frame(frame).unwrap().outer, want);
    });
    let (marked, sent) = congest(|config| config.wan_fcn = true, &tunnelled);
    let (bytes, kind) = sent.unwrap();
    assert_eq!((marked, kind), (false, Kind::WanFcn));
    let cnp = with_frame(&bytes, |frame| pe.on_message(NOW, frame)).unwrap();
    assert_slows(&emit(cnp, &DataPacketContext::default()).0);
}
