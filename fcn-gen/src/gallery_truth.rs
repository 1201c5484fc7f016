//! The ground truth of a gallery: what its packets notify, and which rules they break on purpose.

use crate::gallery::{Capture, EPOCH_SECONDS, Packet};
use crate::sim::outcome::{NotificationTruth, TRUTH_SCHEMA, TRUTH_VERSION, Truth, VantageTruth};
use fcn_wire::{Frame, LinkType, Notification, Profile, Subject};
use std::collections::BTreeMap;

/// What stands for the mechanism in the truth of a gallery, where none is at work.
pub const GALLERY_MECHANISM: &str = "gallery";
/// Nanoseconds between 1970 and a gallery's first packet.
pub const EPOCH: u64 = EPOCH_SECONDS as u64 * 1_000_000_000;

/// Nanoseconds since 1970 of a packet.
#[must_use]
pub const fn stamp(packet: &Packet) -> u64 {
    EPOCH + packet.at
}

/// The link types in a capture, an interface each, in the order in which they appear.
#[must_use]
pub fn interfaces(capture: &Capture) -> Vec<LinkType> {
    let mut links = Vec::new();
    for packet in &capture.packets {
        if !links.contains(&packet.link) {
            links.push(packet.link);
        }
    }
    links
}

/// The name of the interface for packets of this link type.
#[must_use]
pub const fn interface_name(link: LinkType) -> &'static str {
    match link {
        LinkType::Ethernet => "eth0",
        LinkType::RawIp => "raw0",
        LinkType::LinuxCooked => "any0",
        LinkType::LinuxCooked2 => "any1",
        LinkType::Null => "lo0",
    }
}

/// The truth about `capture`, whose interfaces are `links` and whose code points `profile`'s.
#[must_use]
pub fn truth(scenario: &str, capture: &Capture, links: &[LinkType], profile: &Profile) -> Truth {
    Truth {
        schema: TRUTH_SCHEMA.to_owned(),
        version: TRUTH_VERSION,
        scenario: scenario.to_owned(),
        mechanism: GALLERY_MECHANISM.to_owned(),
        seed: 0,
        duration_ns: capture.packets.last().map_or(0, |packet| packet.at),
        epoch_ns: EPOCH,
        vantage_points: links.iter().map(|link| vantage(capture, *link)).collect(),
        flows: Vec::new(),
        notifications: notifications(capture, links, profile),
        switches: Vec::new(),
        findings: findings(capture),
    }
}

fn vantage(capture: &Capture, link: LinkType) -> VantageTruth {
    let packets = || capture.packets.iter().filter(|packet| packet.link == link);
    VantageTruth {
        name: interface_name(link).to_owned(),
        packets: packets().count() as u64,
        octets: packets().map(|packet| packet.wire_len as u64).sum(),
    }
}

fn findings(capture: &Capture) -> BTreeMap<u64, Vec<String>> {
    (1..)
        .zip(&capture.packets)
        .filter(|(_, packet)| !packet.breaks.is_empty())
        .map(|(frame, packet)| {
            let rules = packet.breaks.iter().map(|rule| rule.info().id.to_owned());
            (frame, rules.collect())
        })
        .collect()
}

/// What is notified, an entry for all packets that say the same but for level and time.
fn notifications(
    capture: &Capture,
    links: &[LinkType],
    profile: &Profile,
) -> Vec<NotificationTruth> {
    let mut found = BTreeMap::new();
    for packet in &capture.packets {
        let frame = Frame::parse(&packet.bytes, packet.wire_len, packet.link, profile);
        let Some(notification) = Notification::read(&frame) else {
            continue;
        };
        let vantage_point = links.iter().position(|link| *link == packet.link);
        let new = entry(vantage_point.unwrap_or(0), &notification);
        let key = (
            new.vantage_point,
            new.kind.clone(),
            (new.notifier, new.told, new.sender),
            (new.qp, new.qp_side.clone(), new.flow_label),
        );
        let entry: &mut NotificationTruth = found.entry(key).or_insert(new);
        entry.total += 1;
        let second = stamp(packet) / 1_000_000_000;
        *entry.by_second.entry(second).or_default() += 1;
        if let Some(level) = notification.level {
            *entry.levels.entry(level).or_default() += 1;
        }
    }
    found.into_values().collect()
}

fn entry(vantage_point: usize, notification: &Notification) -> NotificationTruth {
    let qp = notification.subject.qp();
    NotificationTruth {
        vantage_point,
        kind: notification.kind.id().to_owned(),
        notifier: notification.notifier,
        told: notification.told,
        sender: notification.sender,
        qp: qp.map(|(_, qp)| qp.get()),
        qp_side: qp.map(|(side, _)| side.id().to_owned()),
        flow_label: match notification.subject {
            Subject::FlowLabel(label) => Some(label),
            _ => None,
        },
        flow: None,
        levels: BTreeMap::new(),
        total: 0,
        by_second: BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gallery::{self, ALL_FAMILIES};

    fn truth_of(name: &str) -> (Capture, Truth) {
        let capture = gallery::play(name, ALL_FAMILIES, &Profile::DEFAULT).unwrap();
        let truth = truth(name, &capture, &interfaces(&capture), &Profile::DEFAULT);
        (capture, truth)
    }

    #[test]
    fn every_packet_is_at_a_vantage_point() {
        for gallery in gallery::all() {
            let (capture, truth) = truth_of(&gallery.name);
            let packets: u64 = truth.vantage_points.iter().map(|point| point.packets).sum();
            assert_eq!(packets, capture.packets.len() as u64);
            assert_eq!(truth.mechanism, GALLERY_MECHANISM);
        }
    }

    #[test]
    fn formats_notify_in_every_way() {
        let (_, truth) = truth_of("formats");
        for kind in fcn_wire::Kind::ALL {
            let entries: Vec<_> = truth
                .notifications
                .iter()
                .filter(|n| n.kind == kind.id())
                .collect();
            assert!(!entries.is_empty(), "{kind:?}");
            for entry in entries {
                assert_eq!(entry.by_second.values().sum::<u64>(), entry.total);
                assert_eq!(entry.qp.is_some(), entry.qp_side.is_some());
            }
        }
        let levels = truth
            .notifications
            .iter()
            .filter(|n| n.kind == "wan_fcn")
            .flat_map(|n| &n.levels);
        assert!(levels.map(|(_, count)| count).sum::<u64>() > 0);
    }

    #[test]
    fn findings_stand_under_their_frame_number() {
        let (capture, truth) = truth_of("malformed");
        assert!(!truth.findings.is_empty());
        for (frame, rules) in &truth.findings {
            let packet = &capture.packets[*frame as usize - 1];
            let breaks: Vec<_> = packet.breaks.iter().map(|rule| rule.info().id).collect();
            assert_eq!(rules, &breaks);
        }
        let text = serde_json::to_string(&truth).unwrap();
        assert_eq!(serde_json::from_str::<Truth>(&text).unwrap(), truth);
    }
}
