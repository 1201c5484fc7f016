//! Link header: MAC addresses and VLAN tags of the outermost Ethernet header, and an Ethernet
//! header if the capture has none.

use super::RewriteError;
use super::rules::{Base, MAX_VLAN, VlanTag};
use crate::compose::tag_type;
use crate::frame::{Frame, LinkType, MAX_LAYERS};
use crate::header::{ethernet, linux_cooked};
use crate::layer::Layer;
use crate::octets::{array, u16_at};
use crate::pfc::ETHERTYPE_MAC_CONTROL;
use arrayvec::ArrayVec;

/// Length of the two MAC addresses, in octets.
const MACS: usize = ethernet::TYPE;
/// Maximum number of octets written before the first EtherType that is copied.
const MAX_HEAD: usize = ethernet::LEN + ethernet::TAG_LEN * MAX_LAYERS;

/// Offsets of the part after the link header, before and after rewriting.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// Octets of the packet that were processed here.
    pub(super) before: usize,
    /// Octets of the output that replace them.
    pub(super) after: usize,
    /// Link type of the output.
    pub(super) link: LinkType,
}

/// Writes `packet` to `out` by the link rules; octets after the link header are copied.
pub(super) fn write(
    base: &Base,
    frame: &Frame<'_>,
    link: LinkType,
    out: &mut [u8],
) -> Result<Head, RewriteError> {
    let packet = frame.bytes();
    let begins_with_ethernet = frame.spans().first().is_some_and(|span| {
        link == LinkType::Ethernet && span.layer == Layer::Ethernet && span.start == 0
    });
    let mut head = ArrayVec::<u8, MAX_HEAD>::new();
    // A frame has no more tags than layers, one of which is Ethernet itself.
    let mut add = |octets: &[u8]| head.try_extend_from_slice(octets).unwrap_or_default();
    let mut result = Head {
        before: 0,
        after: 0,
        link,
    };
    if begins_with_ethernet && base.has_link_rules() {
        let tags = frame.spans().iter().skip(1);
        let tags = tags.take_while(|span| span.layer == Layer::Vlan).count();
        result.before = MACS + ethernet::TAG_LEN * tags;
        let destination = (base.destination_mac)
            .unwrap_or_else(|| base.mac(array(packet, ethernet::DESTINATION)));
        let source = (base.source_mac).unwrap_or_else(|| base.mac(array(packet, ethernet::SOURCE)));
        add(&destination);
        add(&source);
        // IEEE 802.1Q: MAC control frames have no tag, and would cease to be MAC control frames
        // with one.
        let is_mac_control = u16_at(packet, result.before) == ETHERTYPE_MAC_CONTROL;
        if let Some(tag) = base.push.filter(|_| !is_mac_control) {
            add(&tag.octets());
        }
        let kept = if base.remove_tags { 0 } else { tags };
        for i in 0..kept {
            let [tpid @ .., high, low] = array::<4>(packet, MACS + ethernet::TAG_LEN * i);
            add(&tpid);
            add(&base
                .tci(u16::from_be_bytes([high, low]), i == 0)
                .to_be_bytes());
        }
    } else if let (false, Some(macs)) = (link == LinkType::Ethernet, base.to_ethernet) {
        let (strip, number) =
            ether_type(packet, frame.wire_len(), link).ok_or(RewriteError::NoEtherType { link })?;
        (result.before, result.link) = (strip, LinkType::Ethernet);
        add(&macs.destination);
        add(&macs.source);
        if let Some(tag) = base.push {
            add(&tag.octets());
        }
        add(&number.to_be_bytes());
    }
    result.after = head.len();
    let rest = packet.get(result.before..).unwrap_or_default();
    let (need, have) = (head.len() + rest.len(), out.len());
    let error = RewriteError::Buffer { need, have };
    let (place, behind) = (out.get_mut(..need).ok_or(error)?).split_at_mut(head.len());
    place.copy_from_slice(&head);
    behind.copy_from_slice(rest);
    Ok(result)
}

impl VlanTag {
    /// Returns tag protocol identifier and tag control information.
    fn octets(self) -> [u8; ethernet::TAG_LEN] {
        let [a, b] = tag_type(self.service).to_be_bytes();
        let [c, d] = (u16::from(self.priority & 7) << 13 | self.id & MAX_VLAN).to_be_bytes();
        [a, b, c, d]
    }
}

/// Returns the length of the link header of a packet that has no Ethernet header, and the EtherType
/// (or IEEE 802.3 length) of its payload.
fn ether_type(packet: &[u8], wire_len: usize, link: LinkType) -> Option<(usize, u16)> {
    let by_version = |strip: usize| match packet.get(strip)? >> 4 {
        4 => Some((strip, ethernet::IPV4)),
        6 => Some((strip, ethernet::IPV6)),
        _ => None,
    };
    let cooked = |strip: usize, protocol_at: usize| {
        packet.get(..strip)?;
        match u16_at(packet, protocol_at) {
            number @ ethernet::LEAST_TYPE.. => Some((strip, number)),
            linux_cooked::LLC => Some((strip, u16::try_from(wire_len - strip).ok()?))
                .filter(|(_, length)| *length <= ethernet::MAX_LENGTH),
            _ => None,
        }
    };
    match link {
        LinkType::Ethernet | LinkType::InfiniBand | LinkType::Erf => None,
        LinkType::RawIp => by_version(0),
        LinkType::Null => by_version(4),
        LinkType::LinuxCooked => cooked(linux_cooked::LEN, linux_cooked::TYPE),
        LinkType::LinuxCooked2 => cooked(linux_cooked::LEN_2, linux_cooked::TYPE_2),
    }
}

/// Returns the offset of the ARP packet, if the frame is one.
pub(super) fn arp_at(frame: &Frame<'_>, link: LinkType) -> Option<usize> {
    let span = frame.spans().last()?;
    let number_at = match (span.layer, link) {
        (Layer::Vlan, _) => span.start + ethernet::TAG_TYPE,
        // A shorter header is the address family of BSD loopback.
        (Layer::Ethernet, _) if span.header_end - span.start == ethernet::LEN => {
            span.start + ethernet::TYPE
        }
        (Layer::LinuxCooked, LinkType::LinuxCooked) => span.start + linux_cooked::TYPE,
        (Layer::LinuxCooked, LinkType::LinuxCooked2) => span.start + linux_cooked::TYPE_2,
        _ => return None,
    };
    (u16_at(frame.bytes(), number_at) == ethernet::ARP).then_some(span.header_end)
}
