//! Messages and tags of Ethernet that Wireshark does not decode: the congestion notification
//! message of a bridge and the CN-TAG (IEEE 802.1Q clause 33), and the CSIG tag.

use super::MessageResult;
use crate::names::{F, P};
use crate::plan::{ColumnText, Mark, Plan, range};
use fcn_wire::cnm::{CNM_LEN, Cnm};
use fcn_wire::csig::{CSIG_LEN, Csig};
use fcn_wire::header::ethernet::{IPV4, IPV6};

/// Length of either tag after its EtherType, with the EtherType of the payload, in octets.
pub const TAG_LEN: usize = CSIG_LEN + ETHER_TYPE_LEN;
const ETHER_TYPE_LEN: usize = 2;

/// Plans the items for the message of a bridge, from the octet after its EtherType; the frame that
/// it quotes belongs in the tree that is left open.
pub fn cnm(plan: &mut Plan, bytes: &[u8]) -> MessageResult {
    plan.root();
    let Ok(message) = Cnm::new_checked(bytes) else {
        plan.protocol(P::Cnm, range(0, bytes.len()), Mark::Plain);
        return MessageResult {
            missing: Some(CNM_LEN),
            ..MessageResult::new(ColumnText::new(format_args!("CNM, truncated")))
        };
    };
    let msdu = message.msdu();
    plan.protocol(P::Cnm, range(0, CNM_LEN + msdu.len()), Mark::Plain);
    let (feedback, cpid) = (message.feedback(), message.congestion_point());
    plan.append(format_args!(", CPID {cpid:#018x}, feedback {feedback}"));
    for (field, start, len) in [
        (F::CnmVersion, 0, 2),
        (F::CnmReserved, 0, 2),
        (F::CnmFeedback, 0, 2),
        (F::CnmCpid, 2, 8),
        (F::CnmQueueOffset, 10, 2),
        (F::CnmQueueDelta, 12, 2),
        (F::CnmPriority, 14, 2),
        (F::CnmPriorityReserved, 14, 2),
        (F::CnmDestination, 16, 6),
        (F::CnmMsduLength, 22, 2),
    ] {
        plan.octets(field, range(start, len));
    }
    let info = ColumnText::new(format_args!(
        "CNM from congestion point {cpid:#018x}, feedback {feedback}, queue offset {}, delta {}, priority {}",
        message.queue_offset(),
        message.queue_delta(),
        message.priority()
    ));
    let mut shown = MessageResult::new(info);
    if msdu.is_empty() {
        return shown;
    }
    plan.open(F::CnmMsdu, range(CNM_LEN, msdu.len()), Mark::Plain);
    if let Some(ether_type) = msdu.first_chunk() {
        plan.octets(F::CnmMsduType, range(CNM_LEN, ETHER_TYPE_LEN));
        let is_v6 = match u16::from_be_bytes(*ether_type) {
            IPV4 => Some(false),
            IPV6 => Some(true),
            _ => None,
        };
        shown.invoking = is_v6.map(|is_v6| (CNM_LEN + ETHER_TYPE_LEN, is_v6));
    }
    shown
}

/// Plans the items for a CN-TAG, from the octet after its EtherType, and returns the EtherType of
/// its payload; `None` if the tag is not whole.
pub fn cn_tag(plan: &mut Plan, bytes: &[u8]) -> Option<u16> {
    let [flow, payload] = tag(plan, P::CnTag, bytes)?;
    plan.append(format_args!(", flow {flow}"));
    plan.octets(F::CnTagFlow, range(0, 2));
    plan.octets(F::CnTagType, range(2, ETHER_TYPE_LEN));
    Some(payload)
}

/// Plans the items for a compact CSIG tag, as [`cn_tag`] does for that tag.
pub fn csig(plan: &mut Plan, bytes: &[u8]) -> Option<u16> {
    let [bits, payload] = tag(plan, P::Csig, bytes)?;
    let Csig {
        signal, locator, ..
    } = Csig::from_bits(bits);
    plan.append(format_args!(
        ", type {}, signal {signal}, locator {locator}",
        bits >> 13
    ));
    for field in F::CsigType.run::<4>() {
        plan.octets(field, range(0, CSIG_LEN));
    }
    plan.octets(F::CsigPayloadType, range(CSIG_LEN, ETHER_TYPE_LEN));
    Some(payload)
}

/// Plans the item of a tag, and returns its two words; `None` if it is not whole.
fn tag(plan: &mut Plan, protocol: P, bytes: &[u8]) -> Option<[u16; 2]> {
    plan.root();
    plan.protocol(protocol, range(0, TAG_LEN.min(bytes.len())), Mark::Plain);
    let &[a, b, c, d] = bytes.first_chunk()?;
    Some([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_shown_as_far_as_it_goes_and_its_quotation_is_found() {
        let mut message = [0; CNM_LEN + 2 + 20];
        message[23] = 22;
        for (ether_type, quoted) in [
            ([0x08, 0x00], Some((26, false))),
            ([0x86, 0xDD], Some((26, true))),
            ([0x08, 0x06], None),
        ] {
            message[CNM_LEN..CNM_LEN + 2].copy_from_slice(&ether_type);
            for len in 0..=message.len() {
                let shown = cnm(&mut Plan::default(), &message[..len]);
                assert_eq!(shown.missing.is_some(), len < CNM_LEN, "{len}");
                let quoted = quoted.filter(|_| len >= CNM_LEN + 2);
                assert_eq!(shown.invoking, quoted, "{len}");
            }
        }
    }

    #[test]
    fn a_tag_names_the_type_of_its_payload_unless_it_is_cut() {
        let tag = [0x2B, 0x85, 0x86, 0xDD];
        for len in 0..=tag.len() {
            let whole = (len == tag.len()).then_some(0x86DD);
            assert_eq!(csig(&mut Plan::default(), &tag[..len]), whole);
            assert_eq!(cn_tag(&mut Plan::default(), &tag[..len]), whole);
        }
    }
}
