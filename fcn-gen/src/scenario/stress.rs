//! Builds a stress from its keys, with checked ranges and defaults, and describes it as text.

use super::document::Document;
use super::error::{Refusal, refuse};
use super::schema::{StressFile, list};
use crate::stress::{DataOpcode, Hosts, Kind, LONGEST_PATTERN, Pattern, Stress};
use fcn_wire::pnc::Prefix;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Default number of flows.
const FLOWS: u32 = 1_000;

/// Builds the stress of a file.
pub(super) fn stress(file: &StressFile, document: &Document<'_>) -> Result<Stress, Refusal> {
    let keys = &file.stress;
    let mix = keys.mix.iter().map(|(kind, weight)| (*kind, *weight));
    let mix: Vec<_> = mix.filter(|(_, weight)| *weight > 0).collect();
    if mix.is_empty() {
        let names = list(Kind::ALL.map(|kind| format!("`{}`", kind.id())));
        refuse!(
            "stress.mix",
            "the mix is empty; give a weight to some of {names}"
        );
    }
    refuse_unused(&mix, document)?;
    let weights: Vec<u32> = mix.iter().map(|(_, weight)| *weight).collect();
    let Some(pattern) = Pattern::new(&weights) else {
        refuse!(
            "stress.mix",
            "the weights, divided by their common divisor, add up to more than {LONGEST_PATTERN}; \
             make them smaller"
        );
    };
    let flows = keys.flows.map_or(FLOWS, |flows| flows.0);
    let qps = keys.qps.map_or(flows, |qps| qps.0);
    if qps < flows {
        refuse!(
            "stress.qps",
            "{qps} QPs are too few for {flows} flows: each has at least one"
        );
    }
    let levels: Vec<u8> = match &keys.levels {
        Some(levels) => levels.iter().map(|level| level.0).collect(),
        None => (1..=7).collect(),
    };
    if !(1..=256).contains(&levels.len()) {
        refuse!("stress.levels", "a list of 1 to 256 levels is allowed");
    }
    let hosts = |texts: &[String], key: &str, side: u16| {
        let usual = Hosts {
            ipv6: Ipv6Addr::new(0x2001, 0xdb8, side, 0, 0, 0, 0, 0),
            ipv4: Ipv4Addr::new(198, 17 + side as u8, 0, 0),
        };
        addresses(texts, usual, Stress::hosts(flows), |item| {
            format!("stress.{key}.{item}")
        })
    };
    Ok(Stress {
        seed: file.seed,
        profile: file.profile.clone(),
        pattern,
        mix,
        flows,
        connections: qps,
        senders: hosts(&keys.senders, "senders", 1)?,
        receivers: hosts(&keys.receivers, "receivers", 2)?,
        opcode: keys.opcode.unwrap_or(DataOpcode::WriteMiddle),
        payload: keys.payload.map_or(1_024, |payload| payload.0.0 as usize),
        trace_nodes: keys.trace_nodes.map_or(4, |nodes| nodes.0),
        levels,
        ce: keys.ce.map_or(0.1, |ce| ce.0),
    })
}

/// Refuses code points that are not used in any frame of this mix.
fn refuse_unused(mix: &[(Kind, u32)], document: &Document<'_>) -> Result<(), Refusal> {
    let carriers: [(&str, &[Kind]); 7] = [
        ("fast_cnp_option1", &[Kind::FastCnp1]),
        ("fast_cnp_option2", &[Kind::FastCnp2]),
        ("proxy_cn_port", &[Kind::ProxyCn, Kind::ProxyCnIpv4]),
        ("wan_fcn_port", &[Kind::WanFcn]),
        ("proxy_address_option", &[]),
        ("ioam_option", &[]),
        ("bgp_pnc_characteristic", &[]),
    ];
    for (name, kinds) in carriers {
        let path = format!("profile.{name}");
        if !document.has(&path) || mix.iter().any(|(kind, _)| kinds.contains(kind)) {
            continue;
        }
        let names = kinds
            .iter()
            .map(|kind| format!("`stress.mix.{}`", kind.id()));
        let names = names.collect::<Vec<_>>().join(" or ");
        if names.is_empty() {
            refuse!(
                path,
                "no frame of a stress scenario has a {name}; remove it"
            );
        }
        refuse!(
            path,
            "no frame of this mix has a {name}; give a weight to {names}, or remove it"
        );
    }
    Ok(())
}

/// Returns the bases of the prefixes in `texts`, or by default those of `hosts`; each must have
/// room for `count` hosts.
fn addresses(
    texts: &[String],
    mut hosts: Hosts,
    count: u32,
    path: impl Fn(usize) -> String,
) -> Result<Hosts, Refusal> {
    for (index, text) in texts.iter().enumerate() {
        let Ok(prefix) = text.parse::<Prefix>() else {
            refuse!(
                path(index),
                "`{text}` is not a valid prefix; expected one such as 2001:db8:1::/48 or 198.18.0.0/16"
            );
        };
        let bits = if prefix.address().is_ipv4() { 32 } else { 128 };
        let room = 1_u64 << (bits - u32::from(prefix.bits())).min(40);
        // The first and the last address are reserved in IPv4.
        if room < u64::from(count) + 2 {
            refuse!(
                path(index),
                "{text} has no room for the {count} hosts that the flows need"
            );
        }
        match prefix.address() {
            IpAddr::V4(address) => hosts.ipv4 = address,
            IpAddr::V6(address) => hosts.ipv6 = address,
        }
    }
    Ok(hosts)
}

/// Describes the frames sent, one line per fact.
pub(super) fn draw(name: &str, stress: &Stress) -> Vec<String> {
    let hosts = Stress::hosts(stress.flows);
    let mut lines = vec![format!(
        "{name}: a stress: {} flows of {hosts} senders and receivers, {} QPs",
        stress.flows, stress.connections
    )];
    let line = |(kind, share): (Kind, f64)| format!("  {:<14} {share:>6.2} %", kind.id());
    lines.extend(stress.shares().map(line));
    let last = hosts - 1;
    let (senders, receivers) = (&stress.senders, &stress.receivers);
    let ends = |hosts: &Hosts| {
        format!(
            "{} … {}, {} … {}",
            hosts.v6(0),
            hosts.v6(last),
            hosts.v4(0),
            hosts.v4(last)
        )
    };
    lines.push(format!("  senders   {}", ends(senders)));
    lines.push(format!("  receivers {}", ends(receivers)));
    lines
}
