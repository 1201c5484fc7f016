//! Path attribute 39 of BGP UPDATEs, and the prefixes whose PNC it describes.

use super::{
    MAX_ATTRIBUTES, MAX_CHARACTERISTICS, Prefixes, Progress, Routing, address_of, is_of_prefix,
    open, verdict,
};
use crate::names::{F, Node, P};
use crate::plan::{Mark, Plan};
use fcn_wire::finding::Findings;
use fcn_wire::pnc::Prefix;
use fcn_wire::pnc::bgp::{self, Attribute, Messages, Nhc, Update, attribute};

/// Returns the attributes with next hop characteristics, each with the offset of its UPDATE.
fn attributes<'a>(bytes: &'a [u8]) -> impl Iterator<Item = (usize, Attribute<'a>)> {
    Messages::new(bytes)
        .filter_map(|message| Update::new_checked(&message).ok())
        .flat_map(|update| {
            update
                .attributes()
                .map_while(Result::ok)
                .filter(|found| found.kind == attribute::NHC)
                .map(move |found| (update.offset, found))
        })
}

/// Returns offset and length of the BGP message around `offset`; `offset` itself and 1 if there is
/// none.
pub fn around(message: &Routing<'_>, offset: usize) -> (usize, usize) {
    Messages::new(message.bytes)
        .map(|found| (found.offset, found.bytes.len()))
        .take_while(|(start, _)| *start <= offset)
        .find(|(start, len)| offset < start + len)
        .unwrap_or((offset, 1))
}

/// Plans the attributes, and every prefix whose UPDATE has one.
pub fn show(
    plan: &mut Plan,
    message: &Routing<'_>,
    findings: &mut Findings,
    progress: &mut Progress,
) {
    let Routing { bytes, profile, .. } = *message;
    // Attributes precede the prefixes that they describe, so all findings must be known first.
    if let Some(prefixes) = Prefixes::in_message(message, &mut Findings::new()) {
        prefixes.walk.check(findings);
    }
    let mut characteristics = 0;
    for (i, (update, attribute)) in attributes(bytes).enumerate() {
        if i >= MAX_ATTRIBUTES {
            progress.left_out.attributes += 1;
            continue;
        }
        plan.goto(Node::BgpAttribute, message.start + attribute.offset);
        plan.or_goto(Node::Bgp, message.start + update);
        let end = attribute.value_offset + attribute.value.len();
        let whole = message.place(attribute.offset, end - attribute.offset);
        plan.protocol(P::Pnc, whole, Mark::Plain);
        let read_as = Nhc::new_checked(&attribute);
        let code = profile.bgp_pnc_characteristic;
        let name = P::Pnc.def().name;
        match &read_as {
            Ok(nhc) if nhc.has(code) => {
                plan.label(format_args!("{name}: Next Hop Dependent Characteristics"));
            }
            _ => plan.label(format_args!("Next Hop Dependent Characteristics")),
        }
        match read_as {
            Ok(nhc) => read(plan, message, &nhc, &mut characteristics, progress),
            Err(_) if attribute.value.is_empty() => {}
            Err(_) => {
                let here = message.place(attribute.value_offset, attribute.value.len());
                plan.octets(F::PncNhcUnread, here);
            }
        }
        progress.experts(plan, message, (findings, 0), |finding| {
            !is_of_prefix(finding) && (attribute.offset..end).contains(&finding.offset)
        });
    }

    let mut again = Findings::new();
    let Some(mut prefixes) = Prefixes::in_message(message, &mut again) else {
        return;
    };
    loop {
        let before = again.as_slice().len();
        let Some(found) = prefixes.next(&mut again) else {
            return;
        };
        if found.carrier.is_none() || !progress.reserve_prefix() {
            continue;
        }
        let len = found.prefix.map_or(1, |prefix: Prefix| {
            1 + usize::from(prefix.bits()).div_ceil(8)
        });
        let here = message.place(found.offset, len);
        plan.goto(Node::BgpPrefix, message.start + found.offset);
        plan.or_goto(Node::Bgp, message.start + found.container);
        open(plan, here, &found);
        verdict(plan, here, &found);
        // The same walk yields the same findings with the same indices.
        progress.experts(plan, message, (&again, before), is_of_prefix);
    }
}

/// Plans the content of a readable attribute.
fn read(
    plan: &mut Plan,
    message: &Routing<'_>,
    nhc: &Nhc<'_>,
    shown: &mut usize,
    progress: &mut Progress,
) {
    let start = nhc.offset;
    plan.add(F::PncNhcAfi, message.place(start, 2), nhc.afi);
    plan.add(F::PncNhcSafi, message.place(start + 2, 1), nhc.safi);
    let hop = nhc.next_hop;
    let len = u32::try_from(hop.len()).unwrap_or(u32::MAX);
    plan.add(F::PncNhcHopLength, message.place(start + 3, 1), len);
    let here = message.place(start + 4, hop.len());
    match address_of(hop) {
        Some(address) => {
            let fields = (F::PncNhcHop4, F::PncNhcHop6);
            plan.address(fields, here, address, Mark::Plain);
        }
        None if hop.is_empty() => {}
        None => plan.octets(F::PncNhcHop, here),
    }
    for one in nhc.characteristics().filter_map(Result::ok) {
        if *shown >= MAX_CHARACTERISTICS {
            progress.left_out.characteristics += 1;
            continue;
        }
        *shown += 1;
        let at = one.offset;
        let len = one.value.len();
        plan.open(
            F::PncCharacteristic,
            message.place(at, 4 + len),
            Mark::Plain,
        );
        if one.code == message.profile.bgp_pnc_characteristic {
            plan.append(format_args!(": {} ({})", P::Pnc.def().name, one.code));
        } else if let Some(name) = bgp::characteristic_name(one.code) {
            plan.append(format_args!(": {name} ({})", one.code));
        } else {
            plan.append(format_args!(": code {}", one.code));
        }
        plan.add(F::PncCharacteristicCode, message.place(at, 2), one.code);
        let value_len = u32::try_from(len).unwrap_or(u32::MAX);
        plan.add(
            F::PncCharacteristicLength,
            message.place(at + 2, 2),
            value_len,
        );
        if len > 0 {
            plan.octets(F::PncCharacteristicValue, message.place(at + 4, len));
        }
        plan.close();
    }
}
