//! Priority-based flow control.

use crate::gallery::messages::{mac_control, pfc};
use crate::gallery::scene::Scene;
use fcn_wire::pfc::{PFC_DESTINATION, PfcRepr};
use fcn_wire::{LinkType, Result};

pub fn compose(scene: &mut Scene) -> Result<()> {
    for (comment, vector, times) in [
        (
            "Class 3 stops for the longest time",
            0x08,
            [0, 0, 0, 0xFFFF, 0, 0, 0, 0],
        ),
        ("Class 3 may send again", 0x08, [0; 8]),
        ("Classes 3 and 4", 0x18, [0, 0, 0, 100, 200, 0, 0, 0]),
        ("Every class", 0xFF, [0xFFFF; 8]),
    ] {
        let frame = mac_control(PFC_DESTINATION, &pfc(&PfcRepr { vector, times })?);
        scene.octets(comment, frame, LinkType::Ethernet);
    }
    Ok(())
}
