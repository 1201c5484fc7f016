//! What a sender answers that does not know the option of a Fast CNP (RFC 8200 section 4.2).

use crate::gallery::cast::{CNP_V6, SENDER, SENDER_QP, SWITCH, v6};
use crate::gallery::scene::Scene;
use fcn_wire::Result;
use fcn_wire::compose::Part;

/// Protocol number of ICMPv6.
const ICMPV6: u8 = 58;
/// ICMPv6 Parameter Problem, code 2 (unrecognised option), checksum 0, pointer: the option's type, behind the IPv6
/// header and two octets of options header (RFC 4443 section 3.4).
const UNRECOGNISED_OPTION: [u8; 8] = [4, 2, 0, 0, 0, 0, 0, 42];

pub fn compose(scene: &mut Scene) -> Result<()> {
    let fast = scene.packet(&scene.fast_cnp1())?;
    scene.say(
        "Fast CNP to a sender that does not know the option",
        &scene.fast_cnp1(),
    )?;
    let mut message = [&UNRECOGNISED_OPTION[..], &fast].concat();
    let checksum = icmpv6_checksum(&message);
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    let answer = Part::Payload {
        ether_type: 0,
        protocol: ICMPV6,
        bytes: &message,
    };
    scene.say(
        "The answer quotes the Fast CNP and points at its option type",
        &[v6(SENDER, SWITCH, 0), answer],
    )?;
    scene.say(
        "What it does understand",
        &[&[CNP_V6], &scene.cnp(SENDER_QP)[..]].concat(),
    )?;
    Ok(())
}

/// The checksum of `message` from the sender to the switch (RFC 4443 section 2.3), its own field zero.
fn icmpv6_checksum(message: &[u8]) -> u16 {
    let pseudo = [
        &SENDER.octets()[..],
        &SWITCH.octets(),
        &(message.len() as u32).to_be_bytes(),
        &[0, 0, 0, ICMPV6],
        message,
    ]
    .concat();
    let sum: u32 = pseudo
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0)))
        .sum();
    let folded = (sum & 0xFFFF) + (sum >> 16);
    !((folded & 0xFFFF) + (folded >> 16)) as u16
}
