//! What stands in front of the first IP header: MAC addresses and VLAN tags of the outermost Ethernet header, and an
//! Ethernet header where the capture has none.

use super::RewriteError;
use super::rules::{Base, VlanTag};
use crate::frame::{Frame, LinkType};
use crate::layer::Layer;
use crate::octets::{array, put, u16_at};
use crate::pfc::ETHERTYPE_MAC_CONTROL;
use etherparse::EtherType;

/// Octets of the two MAC addresses.
const MACS: usize = 12;
/// Octets of a VLAN tag.
const TAG: usize = 4;

/// Where the part behind the link header lies, before and after.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// Octets of the packet that were dealt with here.
    pub(super) before: usize,
    /// Octets of the output that they became.
    pub(super) after: usize,
    /// What the output begins with.
    pub(super) link: LinkType,
    /// Whether there are link rules that could not apply.
    pub(super) skipped: bool,
}

/// Writes `packet` to `out` by the link rules; what is behind the link header is copied.
pub(super) fn write(
    base: &Base,
    frame: &Frame<'_>,
    link: LinkType,
    out: &mut [u8],
) -> Result<Head, RewriteError> {
    let packet = frame.bytes();
    let mut head = [0; MACS + TAG + 2];
    let begins_with_ethernet = frame.spans().first().is_some_and(|span| {
        link == LinkType::Ethernet && span.layer == Layer::Ethernet && span.start == 0
    });
    let (head, result) = if begins_with_ethernet && base.has_link_rules() {
        return ethernet(base, frame, out);
    } else if let (false, Some(macs)) = (link == LinkType::Ethernet, base.to_ethernet) {
        let (strip, number) =
            ether_type(packet, frame.wire_len(), link).ok_or(RewriteError::NoEtherType { link })?;
        put(&mut head, 0, &macs.destination);
        put(&mut head, 6, &macs.source);
        let mut after = MACS;
        if let Some(tag) = base.push {
            put(&mut head, after, &tag.octets());
            after += TAG;
        }
        put(&mut head, after, &number.to_be_bytes());
        after += 2;
        let result = Head {
            before: strip,
            after,
            link: LinkType::Ethernet,
            skipped: false,
        };
        (head.get(..after).unwrap_or_default(), result)
    } else {
        let result = Head {
            before: 0,
            after: 0,
            link,
            skipped: base.has_link_rules(),
        };
        (&[][..], result)
    };
    let rest = packet.get(result.before..).unwrap_or_default();
    let room = room(out, head.len() + rest.len())?;
    put(room, 0, head);
    put(room, head.len(), rest);
    Ok(result)
}

/// The beginning of `out` that the packet needs.
fn room(out: &mut [u8], need: usize) -> Result<&mut [u8], RewriteError> {
    let have = out.len();
    out.get_mut(..need)
        .ok_or(RewriteError::Buffer { need, have })
}

fn ethernet(base: &Base, frame: &Frame<'_>, out: &mut [u8]) -> Result<Head, RewriteError> {
    let packet = frame.bytes();
    let tags = frame
        .spans()
        .iter()
        .skip(1)
        .take_while(|span| span.layer == Layer::Vlan)
        .count();
    let before = MACS + TAG * tags;
    let kept = if base.remove_tags { 0 } else { TAG * tags };
    // IEEE 802.1Q: MAC control frames have no tag, and with one they would not be what they are.
    let number = u16_at(packet, before);
    let push = base.push.filter(|_| number != ETHERTYPE_MAC_CONTROL);
    let pushed = push.map_or(0, |_| TAG);
    let after = MACS + pushed + kept;
    let rest = packet.get(before..).unwrap_or_default();
    let out = room(out, after + rest.len())?;
    let destination = base
        .destination_mac
        .unwrap_or_else(|| base.mac(array(packet, 0)));
    let source = base
        .source_mac
        .unwrap_or_else(|| base.mac(array(packet, 6)));
    put(out, 0, &destination);
    put(out, 6, &source);
    if let Some(tag) = push {
        put(out, MACS, &tag.octets());
    }
    for (i, at) in (MACS..MACS + kept).step_by(TAG).enumerate() {
        let [tpid_high, tpid_low, tci @ ..] = array::<TAG>(packet, at);
        let tci = base.tci(u16::from_be_bytes(tci), i == 0).to_be_bytes();
        let tag = [tpid_high, tpid_low, tci[0], tci[1]];
        put(out, at + pushed, &tag);
    }
    put(out, after, rest);
    Ok(Head {
        before,
        after,
        link: LinkType::Ethernet,
        skipped: false,
    })
}

impl VlanTag {
    /// Tag protocol identifier and tag control information.
    fn octets(self) -> [u8; TAG] {
        let tpid = if self.service {
            EtherType::PROVIDER_BRIDGING
        } else {
            EtherType::VLAN_TAGGED_FRAME
        };
        let [a, b] = tpid.0.to_be_bytes();
        let [c, d] = (u16::from(self.priority & 7) << 13 | self.id & 0x0FFF).to_be_bytes();
        [a, b, c, d]
    }
}

/// Octets of the link header of a packet that has no Ethernet header, and the EtherType (or IEEE 802.3 length) of what
/// is behind it.
fn ether_type(packet: &[u8], wire_len: usize, link: LinkType) -> Option<(usize, u16)> {
    let by_version = |strip: usize| match packet.get(strip)? >> 4 {
        4 => Some((strip, EtherType::IPV4.0)),
        6 => Some((strip, EtherType::IPV6.0)),
        _ => None,
    };
    let cooked = |strip: usize, protocol_at: usize| {
        packet.get(..strip)?;
        match u16_at(packet, protocol_at) {
            number @ 1536.. => Some((strip, number)),
            // What Linux says where LLC follows.
            4 => Some((strip, u16::try_from(wire_len - strip).ok()?)).filter(|p| p.1 <= 1500),
            _ => None,
        }
    };
    match link {
        LinkType::Ethernet => None,
        LinkType::RawIp => by_version(0),
        LinkType::Null => by_version(4),
        LinkType::LinuxCooked => cooked(16, 14),
        LinkType::LinuxCooked2 => cooked(20, 0),
    }
}

/// Where an ARP packet begins, if the frame is one.
pub(super) fn arp_at(frame: &Frame<'_>, link: LinkType) -> Option<usize> {
    const ARP: u16 = EtherType::ARP.0;
    let span = frame.spans().last()?;
    let number_at = match (span.layer, link) {
        (Layer::Vlan, _) => span.header_end - 2,
        // Shorter: the address family of BSD loopback.
        (Layer::Ethernet, _) if span.header_end - span.start == MACS + 2 => span.header_end - 2,
        (Layer::LinuxCooked, LinkType::LinuxCooked) => span.header_end - 2,
        (Layer::LinuxCooked, LinkType::LinuxCooked2) => span.start,
        _ => return None,
    };
    (u16_at(frame.bytes(), number_at) == ARP).then_some(span.header_end)
}
