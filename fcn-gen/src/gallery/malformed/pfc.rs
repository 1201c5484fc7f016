//! Defects of PFC frames.

use crate::gallery::messages::{mac_control, pfc};
use crate::gallery::scene::Scene;
use fcn_wire::pfc::{PFC_DESTINATION, PfcRepr};
use fcn_wire::{LinkType, Result, Rule};

pub fn compose(scene: &mut Scene) -> Result<()> {
    let pause = PfcRepr {
        vector: 0x08,
        times: [0xFFFF; 8],
    };
    let good = pfc(&pause)?;
    let wide = pfc(&PfcRepr {
        vector: 0x0108,
        ..pause
    })?;
    let mut ends = mac_control(PFC_DESTINATION, &good);
    ends.truncate(14 + 12);
    for (comment, frame, rule) in [
        (
            "Not to 01-80-C2-00-00-01",
            mac_control([2, 0, 0, 0, 0, 4], &good),
            Rule::PfcDestination,
        ),
        (
            "The upper octet of the class-enable vector is not 0",
            mac_control(PFC_DESTINATION, &wide),
            Rule::PfcVector,
        ),
        ("Ends in the pause times", ends, Rule::PfcMalformed),
    ] {
        scene
            .octets(comment, frame, LinkType::Ethernet)
            .breaks(&[rule]);
    }
    Ok(())
}
