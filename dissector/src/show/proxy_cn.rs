//! Congestion notification to the proxy node.

use super::{Ends, Scene, checksum_remark};
use crate::names::{F, P};
use crate::plan::{Anchor, ColumnText, Mark, Op, Plan, at};
use fcn_wire::claim::Evidence;
use fcn_wire::finding::{Findings, Rule};
use fcn_wire::notification::Notification;
use fcn_wire::proxy_cn::{Agreement, Family, ProxyCn};
use fcn_wire::{Claim, Profile};
use std::net::IpAddr;

/// What the caller does once the plan is carried out.
#[derive(Clone, Copy, Debug)]
pub struct ProxyShown {
    /// For the Info column.
    pub info: ColumnText,
    /// Where the invoking packet begins in the payload, and whether it is IPv6; `None` where there is none.
    pub invoking: Option<(usize, bool)>,
    /// Octets of the payload that were needed but not captured.
    pub missing: Option<usize>,
}

/// Whose the datagram between these ports is: its payload as far as captured, of `reported` octets on the wire.
pub fn claim(
    ports: (u16, u16),
    payload: &[u8],
    reported: usize,
    addresses: Option<(IpAddr, IpAddr)>,
    profile: &Profile,
) -> Claim {
    let outer = version(addresses);
    let seen = Evidence {
        ports,
        payload,
        payload_len: reported,
        outer,
        outer_len: shortest(outer, reported),
    };
    seen.claim(profile)
}

/// Version of the IP packet around the message; 6 where it is not known.
fn version(addresses: Option<(IpAddr, IpAddr)>) -> Family {
    addresses.map_or(Family::V6, |(source, _)| Family::of(source))
}

/// Octets of an IP packet of that version around a UDP payload, without options.
const fn shortest(outer: Family, payload: usize) -> usize {
    let header = match outer {
        Family::V4 => 20,
        Family::V6 => 40,
    };
    header + 8 + payload
}

/// What the Info column says where the capture does not show enough to tell whether it is one.
const CUT: &str = "cut short by the capture";

/// The Info column's text of a broken message, whose flow and level are anybody's guess.
fn malformed(addresses: Option<(IpAddr, IpAddr)>, why: &str) -> ColumnText {
    let ends = Ends(addresses);
    ColumnText::new(format_args!("[Malformed] Proxy notification{ends}, {why}"))
}

/// Plans the message whose UDP payload begins at `start` of the data source, `captured` octets of `reported`.
///
/// The plan's offsets are counted from the start of the payload. The tree stays open for the invoking packet.
pub fn proxy_cn(
    plan: &mut Plan<'_>,
    scene: &Scene<'_>,
    start: usize,
    (captured, reported): (usize, usize),
    addresses: Option<(IpAddr, IpAddr)>,
) -> ProxyShown {
    let payload = scene.slice(start, captured);
    let outer = version(addresses);
    plan.push(Op::Goto(Anchor::Root));
    plan.push(Op::Protocol(P::ProxyCn, at(0, payload.len()), Mark::Plain));
    let message = match ProxyCn::new_checked(payload, outer) {
        Ok(message) => message,
        Err(e) => {
            let cut = captured < reported;
            if !cut {
                plan.expert_with(
                    Rule::ProxyCnMalformed,
                    at(0, payload.len()),
                    format_args!("{e}"),
                );
            }
            return ProxyShown {
                info: if cut {
                    ColumnText::new(format_args!("Proxy notification, {CUT}"))
                } else {
                    malformed(addresses, "too short for its five-tuple and level")
                },
                invoking: None,
                missing: cut.then(|| reported.min(outer.header_len())),
            };
        }
    };
    let tuple = message.five_tuple();
    plan.append(format_args!(
        ", flow {} → {}, level {}",
        tuple.source,
        tuple.destination,
        message.level()
    ));
    let address = message.family().address_len();
    let fixed = 2 * address;
    plan.address(
        (F::ProxySource4, F::ProxySource6),
        at(0, address),
        tuple.source,
        Mark::Plain,
    );
    plan.address(
        (F::ProxyDestination4, F::ProxyDestination6),
        at(address, address),
        tuple.destination,
        Mark::Plain,
    );
    plan.uint(F::ProxyProtocol, at(fixed, 1), tuple.protocol);
    plan.uint(F::ProxySourcePort, at(fixed + 1, 2), tuple.source_port);
    plan.uint(
        F::ProxyDestinationPort,
        at(fixed + 3, 2),
        tuple.destination_port,
    );
    let word = u32::from(message.level()) << 21 | message.reserved();
    plan.uint(F::ProxyLevel, at(message.level_at(), 3), word);
    plan.uint(F::ProxyReserved, at(message.level_at(), 3), word);

    let frame = scene
        .frame_of_payload(start, addresses.map(|(source, _)| source))
        .map(|(_, frame)| frame);
    let ip = frame.as_ref().and_then(|frame| frame.ip());
    let outer_len = ip.map_or(shortest(outer, reported), |ip| ip.end - ip.start);
    let mut findings = Findings::new();
    if captured == reported {
        message.check(outer, outer_len, &mut findings);
    } else {
        message.check_front(outer, outer_len, &mut findings);
    }
    for finding in &findings {
        plan.expert(finding.rule, at(finding.offset, finding.len));
    }
    let invoking = message.invoking_packet();
    if !invoking.is_empty() {
        plan.push(Op::Open(
            F::ProxyInvoking,
            at(message.invoking_at(), invoking.len()),
        ));
        plan.append(format_args!(", {} octets", invoking.len()));
    }
    let profile = scene.profile;
    let datagram = frame.as_ref().and_then(|frame| frame.datagram());
    let claim = datagram.map_or_else(
        || {
            claim(
                (0, profile.proxy_cn_port),
                payload,
                reported,
                addresses,
                profile,
            )
        },
        |datagram| datagram.claim(profile),
    );
    let notification = frame.as_ref().and_then(|frame| Notification::read(frame));
    let info = match notification {
        Some(notification) => ColumnText::new(format_args!("{notification}")),
        None if claim != Claim::Ours && captured == reported => malformed(
            addresses,
            match message.agreement() {
                _ if invoking.is_empty() => "without an invoking packet",
                Agreement::Version => "with too little of the invoking packet",
                Agreement::Addresses if outer_len > outer.max_packet() => "too long",
                _ => "which the invoking packet contradicts",
            },
        ),
        None => ColumnText::new(format_args!(
            "Proxy notification, sender {}, flow to {}, level {}{}",
            tuple.source,
            tuple.destination,
            message.level(),
            checksum_remark(frame.as_ref())
        )),
    };
    let version = invoking.first().map(|octet| octet >> 4);
    ProxyShown {
        info,
        invoking: match version {
            Some(4) => Some((message.invoking_at(), false)),
            Some(6) => Some((message.invoking_at(), true)),
            _ => None,
        },
        missing: None,
    }
}
