//! Notification to the proxy node over IPv4 and IPv6, and the option that says where the proxy is.

use crate::gallery::cast::{
    CONTROL_CLASS, DATA_V4, DATA_V6, EGRESS, INGRESS, PROXY, PROXY4, SENDER, SENDER_QP, SWITCH,
    SWITCH4, outer, tag,
};
use crate::gallery::messages::proxy_cn;
use crate::gallery::scene::Scene;
use fcn_wire::cnp::DEFAULT_TRAFFIC_CLASS;
use fcn_wire::compose::{OptionPart, Part};
use fcn_wire::proxy_address::ProxyAddress;
use fcn_wire::proxy_cn::{Family, invoking_room};
use fcn_wire::{Result, Rule};

const TO_PROXY6: Part<'static> = Part::v6(SWITCH, PROXY, DEFAULT_TRAFFIC_CLASS);
const TO_PROXY4: Part<'static> = Part::v4(SWITCH4, PROXY4, DEFAULT_TRAFFIC_CLASS);

pub fn compose(scene: &mut Scene) -> Result<()> {
    translated(scene)?;
    let quoted = scene.invoking(DATA_V4)?;
    let bytes = proxy_cn(scene.tuple4(), 7, &quoted)?;
    tell(scene, "Over IPv4, level 7 (highest)", &[TO_PROXY4], &bytes)?;
    let comment = "An IPv4 flow told over IPv6: the family is read from the quoted packet";
    tell(scene, comment, &[TO_PROXY6], &bytes)?;
    let quoted = scene.invoking(DATA_V6)?;
    let bytes = proxy_cn(scene.tuple6(), 2, &quoted)?;
    let comment = "An IPv6 flow told over IPv4";
    tell(scene, comment, &[TO_PROXY4], &bytes)?;
    long(scene)?;

    let bytes = proxy_cn(scene.tuple6(), 3, &quoted[..60])?;
    let comment = "Less of the packet than would fit: allowed, worth a note";
    tell(scene, comment, &[TO_PROXY6], &bytes)?.breaks(&[Rule::ProxyCnInvokingShort]);
    let bytes = proxy_cn(scene.tuple6(), 3, &quoted)?;
    let around = [
        tag(30, false),
        outer(EGRESS, INGRESS, CONTROL_CLASS),
        TO_PROXY6,
    ];
    tell(scene, "In a VLAN tag and SRv6", &around, &bytes)?;
    Ok(())
}

/// A notification behind `around`.
fn tell<'a>(
    scene: &'a mut Scene,
    comment: &str,
    around: &[Part<'_>],
    bytes: &[u8],
) -> Result<&'a mut Scene> {
    scene.say(
        comment,
        &[around, &[scene.proxy_udp(), Part::Bytes(bytes)]].concat(),
    )
}

/// Data that names its proxy, the notification, and what the proxy makes of it.
fn translated(scene: &mut Scene) -> Result<()> {
    let option = [OptionPart::ProxyAddress(ProxyAddress(PROXY))];
    let data = [
        &[DATA_V6, Part::DestinationOptions(&option)],
        &scene.data(0x400)[..],
    ]
    .concat();
    let comment = "Data that says where its proxy node is (not a notification)";
    scene.say(comment, &data)?;
    let bytes = proxy_cn(scene.tuple6(), 5, &scene.packet(&data)?)?;
    tell(
        scene,
        "The congested switch tells that proxy: five-tuple, level 5, the packet that met congestion",
        &[TO_PROXY6],
        &bytes,
    )?;
    let ip = Part::v6(PROXY, SENDER, DEFAULT_TRAFFIC_CLASS);
    scene.say(
        "The proxy tells the sender what it understands: a CNP about its own QP 0x11",
        &[&[ip], &scene.cnp(SENDER_QP)[..]].concat(),
    )?;
    Ok(())
}

/// Packets of which only the beginning fits.
fn long(scene: &mut Scene) -> Result<()> {
    let [udp, bth, _, icrc] = scene.data(0x401);
    let payload = Part::Bytes(&[0x5A; 1400]);
    let quoted = scene.packet(&[DATA_V6, udp, bth, payload, icrc])?;
    let room = invoking_room(Family::V6, 48, Family::V6);
    let bytes = proxy_cn(scene.tuple6(), 0, &quoted[..room])?;
    let comment = "A long packet: as much of it as fits into 1280 octets, level 0 (lowest)";
    tell(scene, comment, &[TO_PROXY6], &bytes)?;
    let quoted = scene.packet(&[DATA_V4, udp, bth, payload, icrc])?;
    let room = invoking_room(Family::V4, 28, Family::V4);
    let bytes = proxy_cn(scene.tuple4(), 1, &quoted[..room])?;
    tell(scene, "And into 576 octets over IPv4", &[TO_PROXY4], &bytes)?;
    Ok(())
}
