//! What a sender answers that does not know the option of a Fast CNP (RFC 8200 section 4.2).

use crate::gallery::cast::{CNP_V6, SENDER, SENDER_QP, SWITCH};
use crate::gallery::scene::Scene;
use fcn_wire::Result;
use fcn_wire::compose::Part;
use fcn_wire::header::{icmp, ipv6};

pub fn compose(scene: &mut Scene) -> Result<()> {
    let fast = scene.packet(&scene.fast_cnp1())?;
    scene.say(
        "Fast CNP to a sender that does not know the option",
        &scene.fast_cnp1(),
    )?;
    let answer = [
        Part::v6(SENDER, SWITCH, 0),
        Part::Icmpv6 {
            kind: icmp::UNRECOGNISED_OPTION,
            // The option's type, behind the IPv6 header and two octets of options header.
            rest: ipv6::LEN as u32 + 2,
        },
        Part::Bytes(&fast),
    ];
    scene.say(
        "The answer quotes the Fast CNP and points at its option type",
        &answer,
    )?;
    scene.say(
        "What it does understand",
        &[&[CNP_V6], &scene.cnp(SENDER_QP)[..]].concat(),
    )?;
    Ok(())
}
