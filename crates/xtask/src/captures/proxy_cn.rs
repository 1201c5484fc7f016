//! Notification to the proxy node over IPv4 and IPv6, and the option that says where the proxy is.

use super::scene::{
    Capture, DATA_CLASS, EGRESS, ENTROPY, INGRESS, PROXY, PROXY4, RECEIVER, RECEIVER4, SENDER,
    SENDER_QP, SENDER4, SWITCH, SWITCH4, Scene, cnp, data, v4, v6,
};
use fcn_wire::cnp::DEFAULT_TRAFFIC_CLASS;
use fcn_wire::compose::{OptionPart, Part, UdpChecksum, packet};
use fcn_wire::profile::ROCEV2_PORT;
use fcn_wire::proxy_address::ProxyAddress;
use fcn_wire::proxy_cn::{Family, FiveTuple, ProxyCnRepr, invoking_room};
use fcn_wire::{Profile, Result};
use std::net::IpAddr;

/// UDP of the notification.
pub const PROXY_UDP: Part<'static> = Part::Udp {
    source: 61_000,
    destination: Profile::DEFAULT.proxy_cn_port,
    checksum: UdpChecksum::Compute,
};

/// The flow's five-tuple.
pub const fn tuple(source: IpAddr, destination: IpAddr) -> FiveTuple {
    FiveTuple {
        source,
        destination,
        protocol: 17,
        source_port: ENTROPY,
        destination_port: ROCEV2_PORT,
    }
}

/// The flow over IPv6.
pub const TUPLE6: FiveTuple = tuple(IpAddr::V6(SENDER), IpAddr::V6(RECEIVER));
/// The flow over IPv4.
pub const TUPLE4: FiveTuple = tuple(IpAddr::V4(SENDER4), IpAddr::V4(RECEIVER4));

/// The message about `five_tuple`, quoting `invoking`.
pub fn message(five_tuple: FiveTuple, level: u8, invoking: &[u8]) -> Result<Vec<u8>> {
    let repr = ProxyCnRepr {
        five_tuple,
        level,
        reserved: 0,
        invoking,
    };
    let mut out = vec![0; repr.buffer_len()];
    repr.emit(&mut out)?;
    Ok(out)
}

/// A data packet of the flow, from its IP header on.
pub fn invoking(ip: Part<'_>) -> Result<Vec<u8>> {
    packet(&[&[ip], &data(0x400)[..]].concat(), &Profile::DEFAULT)
}

pub fn captures() -> Result<Vec<Capture>> {
    let mut scene = Scene::new(
        "proxy-cn",
        "Notification to the proxy node, over and about IPv4 and IPv6; the proxy address option; the translated CNP",
    );
    let to_proxy6 = v6(SWITCH, PROXY, DEFAULT_TRAFFIC_CLASS);
    let to_proxy4 = v4(SWITCH4, PROXY4, DEFAULT_TRAFFIC_CLASS);
    let option = [OptionPart::ProxyAddress(ProxyAddress(PROXY))];
    let with_option = [
        v6(SENDER, RECEIVER, DATA_CLASS),
        Part::DestinationOptions(&option),
    ];
    scene.say(
        "Data that says where its proxy node is (not a notification)",
        &[&with_option, &data(0x400)[..]].concat(),
    )?;
    let quoted = packet(
        &[&with_option, &data(0x400)[..]].concat(),
        &Profile::DEFAULT,
    )?;
    let bytes = message(TUPLE6, 5, &quoted)?;
    scene.say("The congested switch tells that proxy: five-tuple, level 5, the packet that met congestion", &[to_proxy6, PROXY_UDP, Part::Bytes(&bytes)])?;
    scene.say(
        "The proxy tells the sender what it understands: a CNP about its own QP 0x11",
        &[
            &[v6(PROXY, SENDER, DEFAULT_TRAFFIC_CLASS)],
            &cnp(SENDER_QP)[..],
        ]
        .concat(),
    )?;

    let quoted = invoking(v4(SENDER4, RECEIVER4, DATA_CLASS))?;
    let bytes = message(TUPLE4, 7, &quoted)?;
    scene.say(
        "Over IPv4, level 7 (highest)",
        &[to_proxy4, PROXY_UDP, Part::Bytes(&bytes)],
    )?;
    scene.say(
        "An IPv4 flow told over IPv6: the family is read from the quoted packet",
        &[to_proxy6, PROXY_UDP, Part::Bytes(&bytes)],
    )?;

    let long = [0x5A; 1400];
    let [udp, bth, _, icrc] = data(0x401);
    let parts = [
        v6(SENDER, RECEIVER, DATA_CLASS),
        udp,
        bth,
        Part::Bytes(&long),
        icrc,
    ];
    let quoted = packet(&parts, &Profile::DEFAULT)?;
    let room = invoking_room(Family::V6, 48, Family::V6);
    let bytes = message(TUPLE6, 0, &quoted[..room])?;
    scene.say(
        "A long packet: as much of it as fits into 1280 octets, level 0 (lowest)",
        &[to_proxy6, PROXY_UDP, Part::Bytes(&bytes)],
    )?;
    let parts = [
        v4(SENDER4, RECEIVER4, DATA_CLASS),
        udp,
        bth,
        Part::Bytes(&long),
        icrc,
    ];
    let quoted = packet(&parts, &Profile::DEFAULT)?;
    let room = invoking_room(Family::V4, 28, Family::V4);
    let bytes = message(TUPLE4, 1, &quoted[..room])?;
    scene.say(
        "And into 576 octets over IPv4",
        &[to_proxy4, PROXY_UDP, Part::Bytes(&bytes)],
    )?;

    let quoted = invoking(v6(SENDER, RECEIVER, DATA_CLASS))?;
    let bytes = message(TUPLE6, 3, &quoted[..60])?;
    scene.say(
        "Less of the packet than would fit: allowed, worth a note",
        &[to_proxy6, PROXY_UDP, Part::Bytes(&bytes)],
    )?;
    let bytes = message(TUPLE6, 3, &quoted)?;
    let tag = Part::Vlan {
        id: 30,
        priority: 6,
        service: false,
    };
    let outer = v6(EGRESS, INGRESS, 0xC0);
    scene.say(
        "In a VLAN tag and SRv6",
        &[tag, outer, to_proxy6, PROXY_UDP, Part::Bytes(&bytes)],
    )?;
    Ok(vec![scene.done()])
}
