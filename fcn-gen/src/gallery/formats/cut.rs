//! Packets that a snap length has cut, and fragments.

use crate::gallery::cast::{
    DATA_CLASS, DATA_V6, FAST_V6, OPTION1, PROXY, RECEIVER_QP, SENDER, SWITCH,
};
use crate::gallery::messages::proxy_cn;
use crate::gallery::scene::ETHERNET;
use crate::gallery::scene::Scene;
use fcn_wire::Result;
use fcn_wire::compose::Part;
use fcn_wire::ipv6_ext::next_header;

pub fn compose(scene: &mut Scene) -> Result<()> {
    for (comment, len) in [
        ("Fast CNP cut in its CNP: the option is all there", 96),
        ("Cut behind the UDP header", 86),
        ("Cut in the option", 64),
        ("Cut in the IPv6 header", 40),
    ] {
        scene.say(comment, &scene.fast_cnp1())?.cut(len);
    }
    let data = [
        &[Part::v6(SWITCH, SENDER, DATA_CLASS)],
        &scene.data(0x600)[..],
    ]
    .concat();
    scene.say("Data cut in its payload", &data)?.cut(100);
    let bytes = proxy_cn(scene.tuple6(), 5, &scene.invoking(DATA_V6)?)?;
    let notice = [
        Part::v6(SWITCH, PROXY, DATA_CLASS),
        scene.proxy_udp(),
        Part::Bytes(&bytes),
    ];
    let comment = "Proxy notification cut in the quoted packet";
    scene.say(comment, &notice)?.cut(140);
    fragments(scene)
}

/// A Fast CNP in two fragments: reassembled by Wireshark, said to be a fragment by tools that look at one packet.
fn fragments(scene: &mut Scene) -> Result<()> {
    let whole = scene.packet(&scene.fast_cnp1())?;
    let (first, last) = whole[40..].split_at(40);
    for (comment, offset, bytes) in [
        ("First fragment of a Fast CNP", 0, first),
        ("Last fragment of a Fast CNP", 40, last),
    ] {
        let fragment = Part::Fragment {
            offset,
            more: offset == 0,
            id: 0x00C0_FFEE,
        };
        let piece = Part::Payload {
            ether_type: 0,
            protocol: next_header::DESTINATION_OPTIONS,
            bytes,
        };
        scene.framed(comment, &[ETHERNET, FAST_V6, fragment, piece])?;
    }
    let atomic = Part::Fragment {
        offset: 0,
        more: false,
        id: 1,
    };
    let [udp, cnp, icrc] = scene.cnp(RECEIVER_QP);
    let options = Part::DestinationOptions(&[OPTION1]);
    scene.say(
        "An atomic fragment (RFC 6946) is a whole packet",
        &[FAST_V6, atomic, options, udp, cnp, icrc],
    )?;
    Ok(())
}
