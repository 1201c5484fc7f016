//! Summary of a frame in one line: its kind, source and destination, and QP.

use fcn_wire::{End, Frame, LinkType, Message, Notification, Profile};
use std::fmt::Write as _;

/// Returns the line for a frame that begins with an Ethernet header.
pub(crate) fn line(octets: &[u8], profile: &Profile) -> String {
    let frame = Frame::parse(octets, octets.len(), LinkType::Ethernet, profile);
    if let Some(notification) = Notification::from_frame(&frame) {
        return notification.to_string();
    }
    let ends = frame
        .ip()
        .map(|ip| format!("{} → {}", ip.source, ip.destination))
        .unwrap_or_default();
    match frame.message() {
        Message::Roce(bth, _) => format!(
            "RoCEv2 {} {ends}, QP {}, PSN {}",
            bth.opcode(),
            bth.dest_qp(),
            bth.psn()
        ),
        Message::RdmaCm(_, cm) => format!("RDMA CM {} {ends}", cm.kind()),
        Message::Pfc(pfc) => {
            let mut text = "PFC".to_owned();
            for (class, quanta) in pfc.enabled() {
                let _ = write!(text, ", class {class}: {quanta} quanta");
            }
            text
        }
        Message::Cnm(cnm) => format!(
            "CNM of congestion point {:#018x}, feedback {}",
            cnm.congestion_point(),
            cnm.feedback()
        ),
        Message::FastCnp(_) => format!("unreadable Fast CNP option {ends}"),
        _ => other(&frame, &ends),
    }
}

fn other(frame: &Frame<'_>, ends: &str) -> String {
    let Some(ip) = frame.ip() else {
        let ether_type = frame.bytes().get(12..14);
        return match ether_type {
            Some([a, b]) => format!("EtherType {:#06x}", u16::from_be_bytes([*a, *b])),
            _ => "no Ethernet".to_owned(),
        };
    };
    match frame.datagram() {
        Some(datagram) => format!(
            "UDP {ends}, ports {} → {}",
            datagram.source_port, datagram.destination_port
        ),
        None if matches!(frame.end(), End::Fragment { .. }) => format!("fragment {ends}"),
        None => {
            let name = match ip.protocol {
                1 => "ICMP",
                2 => "IGMP",
                6 => "TCP",
                17 => "UDP",
                58 => "ICMPv6",
                89 => "OSPF",
                number => return format!("IP protocol {number} {ends}"),
            };
            format!("{name} {ends}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn frames_are_summarized_in_one_line() {
        let mut frame = vec![0; 12];
        frame.extend([0x08, 0x06]);
        let profile = Profile::default();
        assert_eq!(line(&frame, &profile), "EtherType 0x0806");
        assert_eq!(line(&[], &profile), "no Ethernet");
        let mut frame = vec![0; 12];
        frame.extend([0x08, 0x00, 0x45, 0, 0, 28, 0, 0, 0x40, 0, 64, 17, 0, 0]);
        frame.extend([10, 0, 0, 1, 10, 0, 0, 2, 0, 7, 0, 53, 0, 8, 0, 0]);
        assert_eq!(
            line(&frame, &profile),
            "UDP 10.0.0.1 → 10.0.0.2, ports 7 → 53"
        );
        frame[23] = 6;
        assert_eq!(line(&frame, &profile), "TCP 10.0.0.1 → 10.0.0.2");
    }

    proptest! {
        #[test]
        fn any_octets_have_a_summary(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(!line(&octets, &Profile::default()).contains('\n'));
        }
    }
}
