//! The rules of PFC. Wireshark decodes the frame itself; a frame that breaks no rule is shown as it shows it.

use crate::plan::{Anchor, Op, Plan, at};
use fcn_wire::finding::Findings;
use fcn_wire::pfc::inspect;

/// Plans the rules that the MAC control frame at `start` breaks, sent to `destination`; `cut` where the capture did
/// not keep all of it.
pub fn mac_control(
    plan: &mut Plan<'_>,
    frame: &[u8],
    cut: bool,
    destination: [u8; 6],
    start: usize,
) {
    let mut findings = Findings::new();
    inspect(frame, cut, destination, &mut findings);
    if findings.is_empty() {
        return;
    }
    plan.push(Op::Goto(Anchor::MacControl(
        u32::try_from(start).unwrap_or(u32::MAX),
    )));
    for finding in &findings {
        plan.expert(finding.rule, at(start + finding.offset, finding.len));
    }
}
