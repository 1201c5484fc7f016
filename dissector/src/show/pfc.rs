//! Rules of PFC. Wireshark decodes the frame itself; a frame that violates no rule is shown
//! unchanged.

use super::{PayloadAt, Source};
use crate::names::Node;
use crate::plan::Plan;
use fcn_wire::finding::Findings;
use fcn_wire::pfc::inspect;

/// Plans the rules that a MAC control frame to `destination` violates.
pub fn mac_control(plan: &mut Plan, source: &Source<'_>, place: &PayloadAt, destination: [u8; 6]) {
    let mut findings = Findings::new();
    inspect(
        source.payload(place),
        !place.is_whole(),
        destination,
        &mut findings,
    );
    if !findings.is_empty() {
        plan.goto(Node::MacControl, place.start);
        plan.experts(&findings, place.start);
    }
}
