//! Defects of the FCN.

use super::BEHIND_V6;
use crate::gallery::cast::{FCN_V6, FLOW_LABEL};
use crate::gallery::messages::fcn;
use crate::gallery::scene::Scene;
use fcn_wire::compose::Part;
use fcn_wire::{Result, Rule};

pub fn compose(scene: &mut Scene) -> Result<()> {
    let good = fcn(FLOW_LABEL, 5, 0)?;
    let reserved = fcn(FLOW_LABEL, 5, 0x1FF)?;
    // With the label of the others its first two octets would be those of RTCP, which Wireshark 4.6 recognises.
    let long = [&fcn(FLOW_LABEL >> 4, 5, 0)?[..], &[0; 4]].concat();
    for (comment, bytes, breaks) in [
        ("A good one first", &good[..], &[][..]),
        (
            "Reserved bits are not 0",
            &reserved,
            &[Rule::WanFcnReserved],
        ),
        ("UDP length 16", &long, &[Rule::WanFcnLength]),
        ("UDP length 11", &good[..3], &[Rule::WanFcnMalformed]),
    ] {
        scene
            .say(comment, &[FCN_V6, scene.fcn_udp(), Part::Bytes(bytes)])?
            .breaks(breaks);
    }
    let parts = [FCN_V6, scene.fcn_udp(), Part::Bytes(&good)];
    for (comment, at, value, rule) in [
        (
            "UDP length 13, more than IPv6 carries",
            4,
            13,
            Rule::PacketLength,
        ),
        ("Another UDP checksum", 6, 0xBAD, Rule::WanFcnChecksum),
        ("No UDP checksum, over IPv6", 6, 0, Rule::WanFcnChecksum),
    ] {
        let field = BEHIND_V6 + at;
        scene
            .say(comment, &parts)?
            .spoil(|b| b[field..field + 2].copy_from_slice(&u16::to_be_bytes(value)))
            .breaks(&[rule]);
    }
    Ok(())
}
