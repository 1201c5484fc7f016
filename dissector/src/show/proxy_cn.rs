//! Congestion notification to the proxy node.

use super::{Endpoints, MessageResult, PayloadAt, Source, checksum_remark, frame, quoted_frame};
use crate::names::{F, P};
use crate::plan::{ColumnText, Mark, Plan, range};
use fcn_wire::claim::{Evidence, flow_port};
use fcn_wire::finding::{Findings, Rule};
use fcn_wire::notification::Notification;
use fcn_wire::proxy_cn::{Family, ProxyCn, TupleMatch};
use fcn_wire::{Claim, Profile};
use std::net::IpAddr;

/// Returns which protocol a datagram between these ports belongs to, from its payload as far as
/// captured and the payload's position.
pub fn claim(ports: (u16, u16), payload: &[u8], place: &PayloadAt, profile: &Profile) -> Claim {
    let outer = version(place.addresses);
    let evidence = Evidence {
        ports,
        payload,
        payload_len: place.reported,
        outer,
        outer_len: shortest(outer, place.reported),
    };
    evidence.claim(profile)
}

/// Returns the UDP ports that RoCEv2 may have in the message in a payload: the destination port of
/// the invoking packet, and the port in the five-tuple, read as either address family.
pub fn flow_ports(source: &Source<'_>, place: &PayloadAt) -> impl Iterator<Item = u16> + use<> {
    let payload = source.payload(place);
    let invoking = ProxyCn::new_checked(payload, version(place.addresses))
        .ok()
        .and_then(|message| {
            let frame = quoted_frame(message.invoking_packet(), source.profile);
            Some(frame.datagram()?.destination_port)
        });
    let [v4, v6] = [Family::V4, Family::V6].map(|family| flow_port(payload, family));
    [invoking, v4, v6].into_iter().flatten()
}

/// Version of the IP packet around the message; 6 if unknown.
fn version(addresses: Option<(IpAddr, IpAddr)>) -> Family {
    addresses.map_or(Family::V6, |(source, _)| Family::from_address(source))
}

/// Returns the length of an IP packet of this version around a UDP payload, without options, in
/// octets.
const fn shortest(outer: Family, payload: usize) -> usize {
    let header = match outer {
        Family::V4 => 20,
        Family::V6 => 40,
    };
    header + 8 + payload
}

/// Returns the Info text of a broken message, whose flow and level are unreliable.
fn malformed(addresses: Option<(IpAddr, IpAddr)>, why: &str) -> ColumnText {
    let endpoints = Endpoints(addresses);
    ColumnText::new(format_args!(
        "[Malformed] Proxy notification{endpoints}, {why}"
    ))
}

/// Plans the items for the message in a UDP payload; offsets are relative to the payload. The tree
/// stays open for the invoking packet.
pub fn proxy_cn(plan: &mut Plan, data_source: &Source<'_>, place: &PayloadAt) -> MessageResult {
    let (addresses, reported) = (place.addresses, place.reported);
    let payload = data_source.payload(place);
    let outer = version(addresses);
    let whole = range(0, payload.len());
    plan.root();
    plan.protocol(P::ProxyCn, whole, Mark::Plain);
    let message = match ProxyCn::new_checked(payload, outer) {
        Ok(message) => message,
        Err(_) if !place.is_whole() => {
            let info =
                ColumnText::new(format_args!("Proxy notification, truncated by the capture"));
            let missing = Some(reported.min(outer.header_len()));
            return MessageResult {
                missing,
                ..MessageResult::new(info)
            };
        }
        Err(e) => {
            plan.expert_with(Rule::ProxyCnMalformed, whole, format_args!("{e}"));
            let why = "too short for its five-tuple and level";
            return MessageResult::new(malformed(addresses, why));
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
    let source = (F::ProxySource4, F::ProxySource6);
    plan.address(source, range(0, address), tuple.source, Mark::Plain);
    let destination = (F::ProxyDestination4, F::ProxyDestination6);
    let second = range(address, address);
    plan.address(destination, second, tuple.destination, Mark::Plain);
    plan.add(F::ProxyProtocol, range(fixed, 1), tuple.protocol);
    plan.add(F::ProxySourcePort, range(fixed + 1, 2), tuple.source_port);
    let port = range(fixed + 3, 2);
    plan.add(F::ProxyDestinationPort, port, tuple.destination_port);
    let word = u32::from(message.level()) << 21 | message.reserved();
    plan.add(F::ProxyLevel, range(message.level_at(), 3), word);
    plan.add(F::ProxyReserved, range(message.level_at(), 3), word);

    let frame = frame(data_source, place);
    let ip = frame.as_ref().and_then(|frame| frame.ip());
    let outer_len = ip.map_or(shortest(outer, reported), |ip| ip.end - ip.start);
    let mut findings = Findings::new();
    if place.is_whole() {
        message.check(outer, outer_len, &mut findings);
    } else {
        message.check_header(outer, outer_len, &mut findings);
    }
    plan.experts(&findings, 0);
    let invoking = message.invoking_packet();
    if !invoking.is_empty() {
        let here = range(message.invoking_at(), invoking.len());
        plan.open(F::ProxyInvoking, here, Mark::Plain);
        plan.append(format_args!(", {} octets", invoking.len()));
    }
    let profile = data_source.profile;
    let datagram = frame.as_ref().and_then(|frame| frame.datagram());
    let ports = (0, profile.proxy_cn_port);
    let claim = datagram.map_or_else(
        || claim(ports, payload, place, profile),
        |datagram| datagram.claim(profile),
    );
    let notification = frame
        .as_ref()
        .and_then(|frame| Notification::from_frame(frame));
    let info = match notification {
        Some(notification) => ColumnText::new(format_args!("{notification}")),
        None if claim != Claim::Ours && place.is_whole() => malformed(
            addresses,
            match message.tuple_match() {
                _ if invoking.is_empty() => "without an invoking packet",
                TupleMatch::Version => "with too little of the invoking packet",
                TupleMatch::Addresses if outer_len > outer.max_packet() => "too long",
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
    let invoking = (version.filter(|version| [4, 6].contains(version)))
        .map(|version| (message.invoking_at(), version == 6));
    MessageResult {
        invoking,
        ..MessageResult::new(info)
    }
}
