//! Prefixes of an LSP or LS Update.

use super::{Prefixes, Progress, Routing, is_of_prefix, open, verdict};
use crate::names::{F, Node};
use crate::plan::{Mark, Plan};
use fcn_wire::Rule;
use fcn_wire::finding::{Finding, Findings};
use fcn_wire::pnc::{Advertisement, Carrier, Protocol, ospf2, ospf3};

/// Offset of Wireshark's LSP item in an LSP: behind the header common to all PDUs.
pub const LSP_ITEM: usize = 8;
/// Offset of the LS type in an LSA.
const LS_TYPE: usize = 2;
/// Length of a sub-TLV's type and length, in octets.
const SUB_TLV_HEAD: usize = 4;

/// Plans every prefix that has flags or errors, or that has lost its PNC.
pub fn show(
    plan: &mut Plan,
    message: &Routing<'_>,
    findings: &mut Findings,
    progress: &mut Progress,
) {
    let Some(mut prefixes) = Prefixes::in_message(message, findings) else {
        return;
    };
    loop {
        let before = findings.as_slice().len();
        let Some(found) = prefixes.next(findings) else {
            return;
        };
        let belongs = |finding: &Finding| finding.offset >= found.offset || is_of_prefix(finding);
        let broken = findings.as_slice().iter().skip(before).any(belongs);
        let lacks = message.lacks_pnc(&found);
        if (found.carrier.is_some() || broken || lacks) && progress.reserve_prefix() {
            prefix(plan, message, &found);
            if lacks {
                plan.expert(Rule::PncNotKept, message.place(found.offset, 1));
            }
            progress.experts(plan, message, (findings, before), belongs);
        }
    }
}

/// Plans a prefix, and leaves its item open.
fn prefix(plan: &mut Plan, message: &Routing<'_>, found: &Advertisement<'_>) {
    let entry = message.start + found.offset;
    match message.protocol {
        Protocol::IsIs => {
            plan.goto(Node::IsisPrefix, entry);
            plan.or_goto(Node::IsisLsp, message.start + LSP_ITEM);
        }
        Protocol::Ospf3 => {
            plan.goto(Node::Ospf3Prefix, entry);
            let lsa = message.start + found.container + LS_TYPE;
            plan.or_goto(Node::Ospf3Lsa, lsa);
            plan.or_goto(Node::Ospf, message.start);
        }
        Protocol::Ospf2 | Protocol::Bgp => {
            plan.goto(Node::Ospf2Prefix, entry);
            plan.or_goto(Node::Ospf, message.start);
        }
    }
    let end = found.carrier.map_or(found.offset + 1, |carrier| {
        carrier.offset + carrier.octets.len()
    });
    let whole = message.place(found.offset, end.saturating_sub(found.offset));
    open(plan, whole, found);
    match (message.protocol, &found.carrier) {
        (Protocol::IsIs, Some(carrier)) => {
            if let Some(first) = carrier.octets.first()
                && found.flag_offset.is_some()
            {
                let here = message.place(carrier.offset, 1);
                plan.open_word(F::PncIsisFlags, here, u32::from(*first), Mark::Plain);
                plan.add(F::PncIsisFlag, here, *first);
                plan.close();
            }
        }
        (Protocol::Ospf3, carrier) => {
            prefix_tlv(plan, message, found.offset);
            if let Some(carrier) = carrier {
                flags(plan, message, ospf3::FLAGS_SUB_TLV, carrier);
            }
        }
        (_, Some(carrier)) => flags(plan, message, ospf2::FLAGS_SUB_TLV, carrier),
        (_, None) => {}
    }
    verdict(plan, whole, found);
}

/// Plans the head of an OSPFv3 prefix TLV, which Wireshark decodes in some LSAs, and in more with
/// each version.
fn prefix_tlv(plan: &mut Plan, message: &Routing<'_>, offset: usize) {
    let bytes = message.bytes.get(offset..).unwrap_or_default();
    let Ok(tlv) = ospf3::PrefixTlv::new_checked(bytes) else {
        return;
    };
    let head = message.place(offset, ospf3::PrefixTlv::HEAD);
    plan.open(F::PncTlv, head, Mark::Plain);
    plan.add(F::PncTlvType, message.place(offset, 2), tlv.kind());
    plan.add(
        F::PncTlvLength,
        message.place(offset + 2, 2),
        tlv.value_len(),
    );
    let word = message.place(offset + 4, 4);
    if tlv.kind() == ospf3::tlv_type::EXTERNAL_PREFIX {
        plan.add(F::PncTlvFlags, word, tlv.flags_and_metric());
    }
    plan.add(F::PncTlvMetric, word, tlv.flags_and_metric());
    plan.add(
        F::PncTlvBits,
        message.place(offset + 8, 1),
        tlv.prefix_bits(),
    );
    plan.add(
        F::PncTlvOptions,
        message.place(offset + 9, 1),
        tlv.prefix_options(),
    );
    plan.close();
}

/// Plans OSPF's flags sub-TLV.
fn flags(plan: &mut Plan, message: &Routing<'_>, kind: u16, carrier: &Carrier<'_>) {
    let Carrier { offset, octets } = *carrier;
    let head = offset.saturating_sub(SUB_TLV_HEAD);
    let whole = message.place(head, SUB_TLV_HEAD + octets.len());
    plan.open(F::PncSub, whole, Mark::Plain);
    plan.add(F::PncSubType, message.place(head, 2), kind);
    let len = message.bytes.get(head + 2..).and_then(<[u8]>::first_chunk);
    let len = len.map_or(0, |len| u16::from_be_bytes(*len));
    plan.add(F::PncSubLength, message.place(head + 2, 2), len);
    let rest = match octets.first_chunk::<4>() {
        // The position of flags that run past their end is unknown.
        Some(first) if usize::from(len) == octets.len() => {
            let word = u32::from_be_bytes(*first);
            let here = message.place(offset, 4);
            plan.open_word(F::PncOspfFlags, here, word, Mark::Plain);
            plan.add(F::PncOspfFlag, here, word);
            plan.close();
            4
        }
        _ => 0,
    };
    if octets.len() > rest {
        let here = message.place(offset + rest, octets.len() - rest);
        plan.octets(F::PncOspfRest, here);
    }
    plan.close();
}
