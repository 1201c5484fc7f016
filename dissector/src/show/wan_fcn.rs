//! Fast CNP in the WAN.

use super::{Ends, PayloadAt, Scene, Shown, checksum_remark, frame};
use crate::names::{F, P};
use crate::plan::{ColumnText, Mark, Plan, at};
use fcn_wire::finding::{Findings, Rule};
use fcn_wire::wan_fcn::{WAN_FCN_LEN, WanFcn};
use std::net::IpAddr;

/// A congestion level, if one is given.
struct Level(Option<u8>);

impl core::fmt::Display for Level {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.0 {
            Some(level) => write!(f, "{level}"),
            None => f.write_str("not given"),
        }
    }
}

/// Returns the Info text for a payload whose length is not that of an FCN, so that its label and
/// level are unreliable.
fn malformed(len: usize, addresses: Option<(IpAddr, IpAddr)>) -> ColumnText {
    let ends = Ends(addresses);
    ColumnText::new(format_args!(
        "[Malformed] WAN FCN{ends}, UDP length {}, not {}",
        8 + len,
        8 + WAN_FCN_LEN
    ))
}

/// Plans the items for the message in a UDP payload; offsets are relative to the payload.
pub fn wan_fcn(plan: &mut Plan, scene: &Scene<'_>, place: &PayloadAt) -> Shown {
    let (addresses, reported) = (place.addresses, place.reported);
    let payload = scene.payload(place);
    let whole = at(0, payload.len());
    plan.root();
    plan.protocol(P::WanFcn, whole, Mark::Plain);
    let message = match WanFcn::new_checked(payload) {
        Ok(message) => message,
        // A message that the capture truncated is not malformed.
        Err(_) if payload.len() < reported => {
            let info = ColumnText::new(format_args!("WAN FCN, cut short by the capture"));
            return Shown {
                missing: Some(WAN_FCN_LEN),
                ..Shown::new(info)
            };
        }
        Err(e) => {
            plan.expert_with(Rule::WanFcnMalformed, whole, format_args!("{e}"));
            return Shown::new(malformed(reported, addresses));
        }
    };
    let (label, level) = (message.flow_label(), message.level());
    let level_said = Level(message.given_level());
    plan.append(format_args!(
        ", flow label {label:#07x}, level {level_said}"
    ));
    let word = label << 12 | u32::from(level) << 9 | u32::from(message.reserved());
    let here = at(0, WAN_FCN_LEN);
    plan.add(F::WanFlowLabel, here, word);
    plan.add(F::WanLevel, here, word);
    if level == 0 {
        plan.append(format_args!(" (not given)"));
    }
    plan.add(F::WanReserved, here, word);
    if payload.len() > WAN_FCN_LEN {
        let extra = at(WAN_FCN_LEN, payload.len() - WAN_FCN_LEN);
        plan.octets(F::WanExtra, extra);
    }
    let mut findings = Findings::new();
    message.check(&mut findings);
    plan.experts(&findings, 0);
    if reported != WAN_FCN_LEN {
        return Shown::new(malformed(reported, addresses));
    }
    let remark = checksum_remark(frame(scene, place).as_ref());
    Shown::new(match addresses {
        Some((source, destination)) => ColumnText::new(format_args!(
            "WAN FCN from switch {source} → ingress PE {destination}, flow label {label:#07x}, level {level_said}{remark}"
        )),
        None => ColumnText::new(format_args!(
            "WAN FCN, flow label {label:#07x}, level {level_said}{remark}"
        )),
    })
}
