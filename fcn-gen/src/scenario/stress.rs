//! A stress from its keys: ranges checked, defaults filled in; and its description as text.

use super::check;
use super::error::Refusal;
use super::schema::{DataOpcodeText, Maybe, MixText, StressFile, prefix};
use crate::stress::{
    DataOpcode, Hosts, Kind, LONGEST_PATTERN, MOST_CONNECTIONS, MOST_TRACE_NODES, Pattern, Stress,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use toml::Spanned;

/// Flows where nothing is said.
const FLOWS: u32 = 1_000;
/// Largest payload: with its headers it fits the largest frames in use, 9,600 octets.
const MOST_PAYLOAD: u64 = 9_216;
const MOST_LEVEL: u8 = 7;

/// The stress of a file.
pub(super) fn stress(file: &StressFile, place_of: check::PlaceOf<'_>) -> Result<Stress, Refusal> {
    let text = file.stress.get_ref();
    let mix = mix(text.mix.get_ref());
    if mix.is_empty() {
        let names = Kind::ALL.map(|kind| format!("`{}`", kind.id())).join(", ");
        let message = format!("the mix is empty; give a weight to some of {names}");
        return Err(Refusal::at(&text.mix, message));
    }
    used(&mix, place_of)?;
    let weights: Vec<u32> = mix.iter().map(|(_, weight)| *weight).collect();
    let pattern = Pattern::new(&weights).ok_or_else(|| {
        let message = format!(
            "the weights, divided by their common divisor, come to more than {LONGEST_PATTERN}; make them smaller"
        );
        Refusal::at(&text.mix, message)
    })?;
    let flows = check::within(&text.flows, FLOWS, 1..=MOST_CONNECTIONS, "number of flows")?;
    let qps = check::within(
        &text.qps,
        flows.max(1),
        1..=MOST_CONNECTIONS,
        "number of QPs",
    )?;
    if let Some(at) = text.qps.as_ref().filter(|_| qps < flows) {
        let message = format!("{qps} QPs are too few for {flows} flows: each has at least one");
        return Err(Refusal::at(at, message));
    }
    let hosts = Stress::hosts(flows);
    let payload = text.payload.as_ref().map_or(1_024, |size| size.get_ref().0);
    if let Some(at) = &text.payload
        && (payload > MOST_PAYLOAD || !payload.is_multiple_of(4))
    {
        let message = format!(
            "{payload} octets are no payload; multiples of 4 up to {MOST_PAYLOAD} are allowed"
        );
        return Err(Refusal::at(at, message));
    }
    Ok(Stress {
        seed: file.seed,
        profile: file.profile.clone(),
        pattern,
        mix,
        flows,
        connections: qps,
        senders: addresses(
            &text.senders,
            Hosts {
                ipv6: Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 0),
                ipv4: Ipv4Addr::new(198, 18, 0, 0),
            },
            hosts,
        )?,
        receivers: addresses(
            &text.receivers,
            Hosts {
                ipv6: Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 0),
                ipv4: Ipv4Addr::new(198, 19, 0, 0),
            },
            hosts,
        )?,
        opcode: match text.opcode.as_ref().map(Spanned::get_ref) {
            Some(DataOpcodeText::SendOnly) => DataOpcode::SendOnly,
            Some(DataOpcodeText::SendMiddle) => DataOpcode::SendMiddle,
            Some(DataOpcodeText::WriteOnly) => DataOpcode::WriteOnly,
            Some(DataOpcodeText::WriteMiddle) | None => DataOpcode::WriteMiddle,
        },
        payload: payload as usize,
        trace_nodes: check::within(
            &text.trace_nodes,
            4,
            0..=MOST_TRACE_NODES,
            "number of nodes",
        )?,
        levels: levels(&text.levels)?,
        ce: check::probability(&text.ce, 0.1)?,
    })
}

/// Refuses code points that no frame of this mix has.
fn used(mix: &[(Kind, u32)], place_of: check::PlaceOf<'_>) -> Result<(), Refusal> {
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
        let Some(span) = place_of(&format!("profile.{name}")) else {
            continue;
        };
        if mix.iter().any(|(kind, _)| kinds.contains(kind)) {
            continue;
        }
        let names: Vec<_> = kinds
            .iter()
            .map(|kind| format!("`stress.mix.{}`", kind.id()))
            .collect();
        let message = if names.is_empty() {
            format!("no frame of a stress has a {name}; leave it out")
        } else {
            format!(
                "no frame of this mix has a {name}; give a weight to {}, or leave it out",
                names.join(" or ")
            )
        };
        return Err(Refusal::span(span, message));
    }
    Ok(())
}

fn mix(text: &MixText) -> Vec<(Kind, u32)> {
    let weight = |kind: Kind| match kind {
        Kind::Cnp => &text.cnp,
        Kind::CnpIpv4 => &text.cnp_ipv4,
        Kind::FastCnp1 => &text.fast_cnp_1,
        Kind::FastCnp2 => &text.fast_cnp_2,
        Kind::ProxyCn => &text.proxy_cn,
        Kind::ProxyCnIpv4 => &text.proxy_cn_ipv4,
        Kind::WanFcn => &text.wan_fcn,
        Kind::Data => &text.data,
        Kind::DataIpv4 => &text.data_ipv4,
        Kind::Pfc => &text.pfc,
    };
    let all = Kind::ALL.map(|kind| (kind, weight(kind).as_ref().map_or(0, |w| *w.get_ref())));
    all.into_iter().filter(|(_, weight)| *weight > 0).collect()
}

/// The bases of the prefixes in `texts`, or those of `hosts`; each with room for `count` hosts.
fn addresses(texts: &[Spanned<String>], mut hosts: Hosts, count: u32) -> Result<Hosts, Refusal> {
    for at in texts {
        let text = at.get_ref();
        let Some(prefix) = prefix(text) else {
            let message = format!(
                "`{text}` is no prefix; wanted is one such as 2001:db8:1::/48 or 198.18.0.0/16"
            );
            return Err(Refusal::at(at, message));
        };
        let bits = if prefix.address().is_ipv4() { 32 } else { 128 };
        let room = 1_u64 << (bits - u32::from(prefix.bits())).min(40);
        // The first and the last are not hosts' in IPv4.
        if room < u64::from(count) + 2 {
            let message = format!("{text} has no room for {count} hosts, which so many flows need");
            return Err(Refusal::at(at, message));
        }
        match prefix.address() {
            IpAddr::V4(address) => hosts.ipv4 = address,
            IpAddr::V6(address) => hosts.ipv6 = address,
        }
    }
    Ok(hosts)
}

fn levels(levels: &Maybe<Vec<u8>>) -> Result<Vec<u8>, Refusal> {
    let Some(at) = levels else {
        return Ok((1..=MOST_LEVEL).collect());
    };
    let given = at.get_ref();
    if given.is_empty() || given.len() > 256 || given.iter().any(|level| *level > MOST_LEVEL) {
        let message =
            format!("levels are numbers from 0 to {MOST_LEVEL}, in a list of 1 to 256 of them");
        return Err(Refusal::at(at, message));
    }
    Ok(given.clone())
}

/// What is sent, a line each.
pub(super) fn draw(name: &str, stress: &Stress) -> Vec<String> {
    let hosts = Stress::hosts(stress.flows);
    let mut lines = vec![format!(
        "{name}: a stress: {} flows of {hosts} senders and receivers, {} QPs",
        stress.flows, stress.connections
    )];
    let whole: u64 = stress
        .mix
        .iter()
        .map(|(_, weight)| u64::from(*weight))
        .sum();
    for (kind, weight) in &stress.mix {
        let share = f64::from(*weight) * 100.0 / whole as f64;
        lines.push(format!("  {:<14} {share:>6.2} %", kind.id()));
    }
    let last = hosts - 1;
    let (senders, receivers) = (&stress.senders, &stress.receivers);
    let ends = |of: &Hosts| {
        format!(
            "{} … {}, {} … {}",
            of.v6(0),
            of.v6(last),
            of.v4(0),
            of.v4(last)
        )
    };
    lines.push(format!("  senders   {}", ends(senders)));
    lines.push(format!("  receivers {}", ends(receivers)));
    lines
}
