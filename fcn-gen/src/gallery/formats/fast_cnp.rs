//! Fast CNPs with option 1, and the readings of their ICRC.

use crate::gallery::cast::{
    CE_CLASS, CNP_V6, DATA_V6, FAST_V6, OPTION1, RECEIVER, RECEIVER_QP, SENDER,
};
use crate::gallery::scene::Scene;
use fcn_wire::Result;
use fcn_wire::compose::{OptionPart, Part};
use fcn_wire::icrc::{Policy, Reading};

/// An experimental Hop-by-Hop option (RFC 4727) whose data may change on the way.
const HOP_BY_HOP: OptionPart<'static> = OptionPart::Raw(0x3E, (1, 0), &[1, 2, 3, 4]);

pub fn compose(scene: &mut Scene) -> Result<()> {
    scene.say(
        "RDMA WRITE to QP 0x12 meets congestion",
        &[&[DATA_V6], &scene.data(0x200)[..]].concat(),
    )?;
    scene.say(
        "Fast CNP from the switch: DestQP is the receiver's QP 0x12, option 1 says at which receiver",
        &scene.fast_cnp1(),
    )?;
    scene.say(
        "Fast CNP from the receiver itself: source and original destination are equal",
        &scene.fast_cnp(CNP_V6, &[OPTION1]),
    )?;
    let others = Reading::ALL
        .into_iter()
        .filter(|reading| *reading != Reading::default());
    let [udp, cnp, _] = scene.cnp(RECEIVER_QP);
    let options = Part::DestinationOptions(&[OPTION1]);
    for reading in others {
        let icrc = Part::Icrc(Policy::Compute(reading));
        scene.say(
            &format!("ICRC by reading {reading}: {}", reading.describe()),
            &[FAST_V6, options, udp, cnp, icrc],
        )?;
    }
    let hop_by_hop = Part::HopByHop(&[HOP_BY_HOP]);
    scene.say(
        "An experimental Hop-by-Hop option in front, whose data may change: the ICRC takes them as ones",
        &[FAST_V6, hop_by_hop, options, udp, cnp, scene.icrc()],
    )?;
    scene.say(
        "The sender's other flow still sends",
        &[
            &[Part::v6(SENDER, RECEIVER, CE_CLASS)],
            &scene.data(0x201)[..],
        ]
        .concat(),
    )?;
    Ok(())
}
