//! Fast CNP in the WAN.

use super::{Ends, Scene, checksum_remark};
use crate::names::{F, P};
use crate::plan::{Anchor, ColumnText, Mark, Op, Plan, at};
use fcn_wire::finding::{Findings, Rule};
use fcn_wire::wan_fcn::{WAN_FCN_LEN, WanFcn};
use std::net::IpAddr;

/// A level, or that none is given.
struct Level(Option<u8>);

impl core::fmt::Display for Level {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.0 {
            Some(level) => write!(f, "{level}"),
            None => f.write_str("not given"),
        }
    }
}

/// The Info column's text of what has another length than an FCN, so that its label and level are anybody's guess.
fn malformed(len: usize, addresses: Option<(IpAddr, IpAddr)>) -> ColumnText {
    let ends = Ends(addresses);
    ColumnText::new(format_args!(
        "[Malformed] WAN FCN{ends}, UDP length {}, not {}",
        8 + len,
        8 + WAN_FCN_LEN
    ))
}

/// Plans the message whose UDP payload begins at `start` of the data source, `captured` octets of `reported`; gives the Info
/// column's text.
///
/// The plan's offsets are counted from the start of the payload.
pub fn wan_fcn(
    plan: &mut Plan<'_>,
    scene: &Scene<'_>,
    start: usize,
    (captured, reported): (usize, usize),
    addresses: Option<(IpAddr, IpAddr)>,
) -> ColumnText {
    let payload = scene.slice(start, captured);
    plan.push(Op::Goto(Anchor::Root));
    plan.push(Op::Protocol(P::WanFcn, at(0, payload.len()), Mark::Plain));
    let message = match WanFcn::new_checked(payload) {
        Ok(message) => message,
        Err(e) => {
            // A message that the capture cut off is not malformed.
            let cut = payload.len() < reported;
            if !cut {
                plan.expert_with(
                    Rule::WanFcnMalformed,
                    at(0, payload.len()),
                    format_args!("{e}"),
                );
            }
            return if cut {
                ColumnText::new(format_args!("WAN FCN, cut short by the capture"))
            } else {
                malformed(reported, addresses)
            };
        }
    };
    let (label, level) = (message.flow_label(), message.level());
    let level_said = Level(message.given_level());
    plan.append(format_args!(
        ", flow label {label:#07x}, level {level_said}"
    ));
    let word = label << 12 | u32::from(level) << 9 | u32::from(message.reserved());
    let here = at(0, WAN_FCN_LEN);
    plan.uint(F::WanFlowLabel, here, word);
    plan.uint(F::WanLevel, here, word);
    if level == 0 {
        plan.append(format_args!(" (not given)"));
    }
    plan.uint(F::WanReserved, here, word);
    if payload.len() > WAN_FCN_LEN {
        plan.push(Op::Bytes(
            F::WanExtra,
            at(WAN_FCN_LEN, payload.len() - WAN_FCN_LEN),
        ));
    }
    let mut findings = Findings::new();
    message.check(&mut findings);
    for finding in &findings {
        plan.expert(finding.rule, at(finding.offset, finding.len));
    }
    if reported != WAN_FCN_LEN {
        return malformed(reported, addresses);
    }
    let frame = scene.frame_of_payload(start, addresses.map(|(source, _)| source));
    let remark = checksum_remark(frame.as_ref().map(|(_, frame)| frame));
    match addresses {
        Some((source, destination)) => ColumnText::new(format_args!(
            "WAN FCN from switch {source} → ingress PE {destination}, flow label {label:#07x}, level {level_said}{remark}"
        )),
        None => ColumnText::new(format_args!(
            "WAN FCN, flow label {label:#07x}, level {level_said}{remark}"
        )),
    }
}
