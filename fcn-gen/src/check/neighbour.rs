//! Answers to a device that resolves the addresses of the nodes played around it: ARP (RFC 826),
//! Neighbour Discovery (RFC 4861). VLAN tags are kept.

use fcn_wire::Profile;
use fcn_wire::compose::{self, Part};
use fcn_wire::header::{ethernet, ipv6};
use fcn_wire::ipv6_ext::next_header;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// ARP for Ethernet and IPv4, and its operations.
const ARP_FORMAT: [u8; 6] = [0, 1, 8, 0, 6, 4];
const ARP_REQUEST: [u8; 2] = [0, 1];
const ARP_REPLY: [u8; 2] = [0, 2];
/// Length of an ARP packet in octets.
const ARP_LEN: usize = 28;
/// ICMPv6 types (RFC 4861 section 4.3, section 4.4).
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
/// Solicited, and override: the flags of an advertisement.
const FLAGS: u32 = 0x6000_0000;
/// Target link-layer address option, in units of 8 octets.
const TARGET_MAC: [u8; 2] = [2, 1];
/// Hop limit of Neighbour Discovery.
const HOPS: u8 = 255;

/// A question for the link-layer address of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// The address.
    pub target: IpAddr,
    /// The MAC address of the node that asks.
    pub asker: [u8; 6],
    from: IpAddr,
}

/// Returns the length of the Ethernet header and VLAN tags, and the EtherType after these.
fn link_header(bytes: &[u8]) -> Option<(usize, u16)> {
    let mut at = ethernet::LEN;
    loop {
        let ether_type = bytes.get(at.checked_sub(2)?..)?.first_chunk()?;
        match u16::from_be_bytes(*ether_type) {
            ethernet::TAG | ethernet::SERVICE_TAG => at += ethernet::TAG_LEN,
            other => return Some((at, other)),
        }
    }
}

fn chunk<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

impl Question {
    /// Reads an ARP request or a neighbour solicitation; `None` for anything else.
    #[must_use]
    pub fn from_frame(bytes: &[u8]) -> Option<Self> {
        let (at, ether_type) = link_header(bytes)?;
        let packet = bytes.get(at..)?;
        match ether_type {
            ethernet::ARP => {
                let is_request =
                    packet.starts_with(&ARP_FORMAT) && chunk(packet, 6)? == ARP_REQUEST;
                is_request.then_some(Self {
                    asker: chunk(packet, 8)?,
                    from: Ipv4Addr::from(chunk(packet, 14)?).into(),
                    target: Ipv4Addr::from(chunk(packet, 24)?).into(),
                })
            }
            ethernet::IPV6 => {
                let message = packet.get(ipv6::LEN..)?;
                let is_solicitation = packet.get(6..8)? == [next_header::ICMPV6, HOPS]
                    && message.first() == Some(&SOLICITATION);
                let from = Ipv6Addr::from(chunk(packet, 8)?);
                // From no address: the device looks for another node with its own.
                (is_solicitation && !from.is_unspecified()).then_some(Self {
                    asker: chunk(bytes, 6)?,
                    from: from.into(),
                    target: Ipv6Addr::from(chunk(message, 8)?).into(),
                })
            }
            _ => None,
        }
    }

    /// Returns the answer to the question in the frame `bytes`: the target is at `mac`.
    #[must_use]
    pub fn answer(&self, bytes: &[u8], mac: [u8; 6]) -> Option<Vec<u8>> {
        let tags = bytes.get(ethernet::LEN - 2..link_header(bytes)?.0)?;
        let link = Part::Ethernet {
            source: mac,
            destination: self.asker,
        };
        let packet = match (self.target, self.from) {
            (IpAddr::V4(target), IpAddr::V4(from)) => {
                let mut reply = Vec::with_capacity(ARP_LEN);
                reply.extend(ARP_FORMAT);
                reply.extend(ARP_REPLY);
                reply.extend(mac);
                reply.extend(target.octets());
                reply.extend(self.asker);
                reply.extend(from.octets());
                reply
            }
            (IpAddr::V6(target), IpAddr::V6(from)) => {
                let body = [&target.octets()[..], &TARGET_MAC, &mac].concat();
                let ip = Part::Ipv6 {
                    source: target,
                    destination: from,
                    traffic_class: 0,
                    flow_label: 0,
                    hop_limit: HOPS,
                };
                let icmp = Part::Icmpv6 {
                    kind: [ADVERTISEMENT, 0],
                    rest: FLAGS,
                };
                compose::packet(&[ip, icmp, Part::Bytes(&body)], &Profile::DEFAULT).ok()?
            }
            _ => return None,
        };
        let mut frame = compose::packet(&[link], &Profile::DEFAULT).ok()?;
        frame.truncate(ethernet::LEN - 2);
        frame.extend_from_slice(tags);
        frame.extend(packet);
        Some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fcn_wire::{Frame, LinkType};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_octets_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            if let Some(question) = Question::from_frame(&bytes) {
                let answer = question.answer(&bytes, OWN);
                prop_assert!(answer.is_none_or(|answer| answer.starts_with(&question.asker)));
            }
        }
    }

    const DEVICE: [u8; 6] = [2, 1, 1, 1, 1, 1];
    const OWN: [u8; 6] = [2, 2, 2, 2, 2, 2];

    #[test]
    fn arp_request_is_answered_with_its_tag() {
        let mut request = vec![0xFF; 6];
        request.extend(DEVICE);
        request.extend([0x81, 0, 0x60, 7, 8, 6]);
        request.extend(ARP_FORMAT);
        request.extend(ARP_REQUEST);
        request.extend(DEVICE);
        request.extend([10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2]);
        let question = Question::from_frame(&request).unwrap();
        assert_eq!(question.target, IpAddr::from([10, 0, 0, 2]));
        let answer = question.answer(&request, OWN).unwrap();
        assert_eq!(
            answer[..18],
            [&DEVICE[..], &OWN, &[0x81, 0, 0x60, 7, 8, 6]].concat()
        );
        assert_eq!(answer[24..26], ARP_REPLY);
        assert_eq!(answer[26..36], [&OWN[..], &[10, 0, 0, 2]].concat());
        assert_eq!(answer[36..46], [&DEVICE[..], &[10, 0, 0, 1]].concat());
        for len in 0..request.len() {
            assert_eq!(Question::from_frame(&request[..len]), None);
        }
        assert_eq!(Question::from_frame(&answer), None);
    }

    #[test]
    fn solicitation_is_answered() {
        let [from, target] = ["2001:db8::1", "2001:db8::2"].map(|a| a.parse().unwrap());
        let solicited = |from: Ipv6Addr| {
            let parts = [
                Part::Ethernet {
                    source: DEVICE,
                    destination: [0x33, 0x33, 0xFF, 0, 0, 2],
                },
                Part::Ipv6 {
                    source: from,
                    destination: "ff02::1:ff00:2".parse().unwrap(),
                    traffic_class: 0,
                    flow_label: 0,
                    hop_limit: HOPS,
                },
                Part::Icmpv6 {
                    kind: [SOLICITATION, 0],
                    rest: 0,
                },
                Part::Bytes(&Ipv6Addr::octets(&target)),
            ];
            compose::packet(&parts, &Profile::DEFAULT).unwrap()
        };
        let request = solicited(from);
        let question = Question::from_frame(&request).unwrap();
        assert_eq!((question.target, question.asker), (target.into(), DEVICE));
        let answer = question.answer(&request, OWN).unwrap();
        let frame = Frame::parse(&answer, answer.len(), LinkType::Ethernet, &Profile::DEFAULT);
        let ip = frame.ip().unwrap();
        assert_eq!((ip.source, ip.destination), (target.into(), from.into()));
        assert_eq!((answer[54], &answer[80..86]), (ADVERTISEMENT, &OWN[..]));
        assert_eq!(
            Question::from_frame(&solicited(Ipv6Addr::UNSPECIFIED)),
            None
        );
        for len in 0..request.len() {
            assert_eq!(Question::from_frame(&request[..len]), None);
        }
    }
}
