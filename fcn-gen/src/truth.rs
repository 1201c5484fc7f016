//! The ground truth of a capture, for monitors: what a simulation did, or which packets a gallery has. TRUTH.md describes the JSON.

use crate::gallery::{self, Capture, EPOCH};
use crate::json_lines;
use fcn_tool::failure::{Failure, Result};
use fcn_wire::notification::Side;
use fcn_wire::{Frame, Kind, LinkType, Notification, Profile, Subject};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// No flow, no trace, no frame, where one is told by its number.
pub const NONE: u32 = u32::MAX;

/// Name of the ground truth's schema.
pub const TRUTH_SCHEMA: &str = "fcn-gen/truth";
/// Version of the ground truth's schema: raised when a field changes its meaning or goes away.
pub const TRUTH_VERSION: u32 = 1;
/// What was sent, marked, notified and obeyed, known without decoding a packet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Truth {
    /// [`TRUTH_SCHEMA`].
    pub schema: String,
    /// [`TRUTH_VERSION`].
    pub version: u32,
    /// The scenario's name.
    pub scenario: String,
    /// Mechanism, by its [`id`](crate::scenario::model::Mechanism::id).
    pub mechanism: String,
    /// Seed.
    pub seed: u64,
    /// Length of the simulation in nanoseconds.
    pub duration_ns: u64,
    /// Nanoseconds since 1970 at which it begins: time stamps in the capture are this much later.
    pub epoch_ns: u64,
    /// The capture's interfaces, in the file's order.
    pub vantage_points: Vec<VantageTruth>,
    /// The flows.
    pub flows: Vec<FlowTruth>,
    /// Notifications that passed a vantage point, one entry for each combination of what they say.
    pub notifications: Vec<NotificationTruth>,
    /// What each switch did.
    pub switches: Vec<SwitchTruth>,
    /// Packets that break a rule on purpose: frame number in the capture (from 1) and the rules' identifiers.
    #[serde(default)]
    pub findings: BTreeMap<u64, Vec<String>>,
}

/// A vantage point.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VantageTruth {
    /// Name of the pcapng interface: `node:peer`.
    pub name: String,
    /// Packets captured.
    pub packets: u64,
    /// Their octets on the wire.
    pub octets: u64,
}

/// A flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowTruth {
    /// Its name in the scenario.
    pub name: String,
    /// Sender's address.
    pub sender: IpAddr,
    /// Receiver's address.
    pub receiver: IpAddr,
    /// QP at the sender: what a CNP names.
    pub sender_qp: u32,
    /// QP at the receiver: what data packets and Fast CNPs name.
    pub receiver_qp: u32,
    /// UDP source port of the data packets.
    pub source_port: u16,
    /// Whether the sender answers notifications with a lower rate or another path.
    pub obeys: bool,
    /// Data packets that the sender put on its link, those sent again included.
    pub packets_sent: u64,
    /// Those sent again.
    pub packets_again: u64,
    /// Octets of payload that the receiver took in order.
    pub octets_delivered: u64,
    /// Data packets that reached the receiver marked CE.
    pub ce_received: u64,
    /// Messages acknowledged.
    pub messages_done: u64,
    /// Notifications that reached the sender and slowed this flow, by kind.
    pub slowed_by: BTreeMap<String, u64>,
    /// When the sender first slowed down, in nanoseconds from the start.
    pub first_slowed_ns: Option<u64>,
    /// Fast CNPs that made it take another path instead.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub detours: u64,
    /// Data packets at each vantage point, where there were any.
    pub seen: Vec<SeenTruth>,
    /// The sender's rate in bit/s at evenly spaced times: `[nanoseconds, rate]`.
    pub rate: Vec<(u64, u64)>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A flow's data packets at one vantage point.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenTruth {
    /// Index in `vantage_points`.
    pub vantage_point: usize,
    /// Packets.
    pub packets: u64,
    /// Their octets on the wire.
    pub octets: u64,
    /// Those marked CE (in the innermost IP header).
    pub ce: u64,
    /// Packets by whole second since 1970.
    pub packets_by_second: BTreeMap<u64, u64>,
}

/// Notifications of one kind, from one notifier, about one QP or flow, at one vantage point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotificationTruth {
    /// Index in `vantage_points`.
    pub vantage_point: usize,
    /// `cnp`, `fast_cnp_1`, `fast_cnp_2`, `proxy_cn` or `wan_fcn`.
    pub kind: String,
    /// Source of the packet.
    pub notifier: IpAddr,
    /// Destination of the packet.
    pub told: IpAddr,
    /// The data sender that is to slow down, where the message names it.
    pub sender: Option<IpAddr>,
    /// The QP that the message names.
    pub qp: Option<u32>,
    /// Whose QP that is: `sender` or `receiver`.
    pub qp_side: Option<String>,
    /// The outer flow label that an FCN names.
    pub flow_label: Option<u32>,
    /// The flow that it is about, by name, where there is one (a spoofed notification may be about none).
    pub flow: Option<String>,
    /// Who made it, whatever it says of itself, by its [`id`](MadeBy::id); nothing in a gallery.
    #[serde(default)]
    pub made_by: Option<String>,
    /// Congestion level, where the format has one: how many of each.
    pub levels: BTreeMap<u8, u64>,
    /// How many.
    pub total: u64,
    /// How many in each whole second since 1970.
    pub by_second: BTreeMap<u64, u64>,
}

/// What a switch did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchTruth {
    /// Its name.
    pub name: String,
    /// Packets that it forwarded.
    pub forwarded: u64,
    /// Packets that found their queue full.
    pub dropped: u64,
    /// Packets that it marked CE.
    pub marked: u64,
    /// Notifications that it sent, by kind.
    pub notified: BTreeMap<String, u64>,
    /// Notifications that it was due to send and held back: the rate limits.
    pub held_back: u64,
    /// Fast CNPs that it stopped at the domain's border.
    pub stopped_at_border: u64,
    /// PFC frames that it sent.
    pub pauses: u64,
    /// Deepest egress queue, in octets.
    pub peak_queue: u64,
}

impl Truth {
    /// The JSON document, of lines that people can read.
    ///
    /// # Errors
    /// It has a number that JSON does not.
    pub fn document(&self) -> Result<Vec<u8>> {
        json_lines::to_vec(self).map_err(|error| {
            Failure::failed("cannot write the truth as JSON").and(error.to_string())
        })
    }
}

fcn_wire::identified! {
    /// Who made a notification, whatever it says of itself.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    MadeBy {
        /// The receiver of the flow.
        Receiver = "receiver",
        /// A congested switch.
        Switch = "switch",
        /// A proxy node.
        Proxy = "proxy",
        /// An ingress PE.
        IngressPe = "ingress_pe",
        /// A host that the scenario has inject it.
        Injected = "injected",
    }
}

/// A notification as the truth counts it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Note {
    /// Kind.
    pub kind: Kind,
    /// Source of the packet.
    pub notifier: IpAddr,
    /// Destination of the packet.
    pub told: IpAddr,
    /// The sender meant, where it is named.
    pub sender: Option<IpAddr>,
    /// The QP named, and whose it is.
    pub qp: Option<(u32, Side)>,
    /// Flow label named.
    pub flow_label: Option<u32>,
    /// Congestion level.
    pub level: Option<u8>,
    /// Index of the flow that it is about, or [`NONE`].
    pub flow: u32,
    /// Who made it, where that is known.
    pub made_by: Option<MadeBy>,
}

impl Note {
    /// Of a notification that was read.
    #[must_use]
    pub fn from_notification(gist: &Notification, flow: u32, made_by: Option<MadeBy>) -> Self {
        Self {
            kind: gist.kind,
            notifier: gist.notifier,
            told: gist.destination,
            sender: gist.sender,
            qp: gist.subject.qp().map(|(side, qp)| (qp.get(), side)),
            flow_label: match gist.subject {
                Subject::FlowLabel(label) => Some(label),
                _ => None,
            },
            level: gist.level,
            flow,
            made_by,
        }
    }
}

/// Notifications by vantage point and what they say, an entry for all that differ in level and time alone.
#[derive(Debug, Default)]
pub struct Notifications(BTreeMap<(usize, Note), NotificationTruth>);

impl Notifications {
    /// Counts one, in a second since 1970; `flow` is the name of the flow that it is about.
    pub fn count(&mut self, vantage_point: usize, second: u64, note: &Note, flow: Option<&str>) {
        let mut note = note.clone();
        let level = note.level.take();
        let entry = self.0.entry((vantage_point, note));
        let truth = entry.or_insert_with_key(|(_, note)| NotificationTruth {
            vantage_point,
            kind: note.kind.id().to_owned(),
            notifier: note.notifier,
            told: note.told,
            sender: note.sender,
            qp: note.qp.map(|(qp, _)| qp),
            qp_side: note.qp.map(|(_, side)| side.id().to_owned()),
            flow_label: note.flow_label,
            flow: flow.map(str::to_owned),
            made_by: note.made_by.map(|by| by.id().to_owned()),
            levels: BTreeMap::new(),
            total: 0,
            by_second: BTreeMap::new(),
        });
        truth.total += 1;
        *truth.by_second.entry(second).or_default() += 1;
        if let Some(level) = level {
            *truth.levels.entry(level).or_default() += 1;
        }
    }

    /// The entries.
    #[must_use]
    pub fn into_entries(self) -> Vec<NotificationTruth> {
        self.0.into_values().collect()
    }
}

/// What stands for the mechanism in the truth of a gallery, where none is at work.
pub const GALLERY_MECHANISM: &str = "gallery";

/// The truth about a gallery's packets, whose code points are `profile`'s: what they notify, and which rules they break on
/// purpose.
#[must_use]
pub fn of_gallery(scenario: &str, capture: &Capture, profile: &Profile) -> Truth {
    let links = capture.links();
    let vantage = |link: &LinkType| {
        let packets = || capture.packets.iter().filter(|packet| packet.link == *link);
        VantageTruth {
            name: gallery::interface_name(*link).to_owned(),
            packets: packets().count() as u64,
            octets: packets().map(|packet| packet.wire_len as u64).sum(),
        }
    };
    let mut notifications = Notifications::default();
    let mut findings = BTreeMap::new();
    for (number, packet) in (1..).zip(&capture.packets) {
        let frame = Frame::parse(&packet.bytes, packet.wire_len, packet.link, profile);
        if let Some(notification) = Notification::from_frame(&frame) {
            let vantage_point = capture.interface_of(packet);
            let second = (EPOCH + packet.at) / 1_000_000_000;
            let note = Note::from_notification(&notification, NONE, None);
            notifications.count(vantage_point, second, &note, None);
        }
        if !packet.breaks.is_empty() {
            let rules = packet.breaks.iter().map(|rule| rule.info().id.to_owned());
            findings.insert(number, rules.collect());
        }
    }
    Truth {
        schema: TRUTH_SCHEMA.to_owned(),
        version: TRUTH_VERSION,
        scenario: scenario.to_owned(),
        mechanism: GALLERY_MECHANISM.to_owned(),
        seed: 0,
        duration_ns: capture.packets.last().map_or(0, |packet| packet.at),
        epoch_ns: EPOCH,
        vantage_points: links.iter().map(vantage).collect(),
        flows: Vec::new(),
        notifications: notifications.into_entries(),
        switches: Vec::new(),
        findings,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gallery::Selection;

    fn truth_of(name: &str) -> (Capture, Truth) {
        let capture = Selection::all_of(name).play().unwrap();
        let truth = of_gallery(name, &capture, &Profile::DEFAULT);
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
        for kind in Kind::ALL {
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
