//! Fast CNP in the WAN.

use super::{Endpoints, MessageResult, PayloadAt, Source, checksum_remark, frame};
use crate::names::{F, P};
use crate::plan::{ColumnText, Mark, Plan, range};
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
    let endpoints = Endpoints(addresses);
    ColumnText::new(format_args!(
        "[Malformed] WAN FCN{endpoints}, UDP length {}, not {}",
        8 + len,
        8 + WAN_FCN_LEN
    ))
}

/// Plans the items for the message in a UDP payload; offsets are relative to the payload.
pub fn wan_fcn(plan: &mut Plan, data_source: &Source<'_>, place: &PayloadAt) -> MessageResult {
    let (addresses, reported) = (place.addresses, place.reported);
    let payload = data_source.payload(place);
    let whole = range(0, payload.len());
    plan.root();
    plan.protocol(P::WanFcn, whole, Mark::Plain);
    let message = match WanFcn::new_checked(payload) {
        Ok(message) => message,
        // A message that the capture truncated is not malformed.
        Err(_) if payload.len() < reported => {
            let info = ColumnText::new(format_args!("WAN FCN, truncated by the capture"));
            return MessageResult {
                missing: Some(WAN_FCN_LEN),
                ..MessageResult::new(info)
            };
        }
        Err(e) => {
            plan.expert_with(Rule::WanFcnMalformed, whole, format_args!("{e}"));
            return MessageResult::new(malformed(reported, addresses));
        }
    };
    let (label, level) = (message.flow_label(), message.level());
    let level_said = Level(message.given_level());
    plan.append(format_args!(
        ", flow label {label:#07x}, level {level_said}"
    ));
    let word = label << 12 | u32::from(level) << 9 | u32::from(message.reserved());
    let here = range(0, WAN_FCN_LEN);
    plan.add(F::WanFlowLabel, here, word);
    plan.add(F::WanLevel, here, word);
    if level == 0 {
        plan.append(format_args!(" (not given)"));
    }
    plan.add(F::WanReserved, here, word);
    if payload.len() > WAN_FCN_LEN {
        let extra = range(WAN_FCN_LEN, payload.len() - WAN_FCN_LEN);
        plan.octets(F::WanExtra, extra);
    }
    let mut findings = Findings::new();
    message.check(&mut findings);
    plan.experts(&findings, 0);
    if reported != WAN_FCN_LEN {
        return MessageResult::new(malformed(reported, addresses));
    }
    let remark = checksum_remark(frame(data_source, place).as_ref());
    MessageResult::new(match addresses {
        Some((source, destination)) => ColumnText::new(format_args!(
            "WAN FCN from switch {source} → ingress PE {destination}, flow label {label:#07x}, level {level_said}{remark}"
        )),
        None => ColumnText::new(format_args!(
            "WAN FCN, flow label {label:#07x}, level {level_said}{remark}"
        )),
    })
}
