//! The ground truth of a capture, for monitors: the events of a simulation, or the packets of a
//! gallery. TRUTH.md describes the JSON.

use crate::gallery::{self, Capture, EPOCH};
use crate::json_lines;
use fcn_tool::failure::{Failure, Result};
use fcn_wire::notification::Side;
use fcn_wire::{Frame, Kind, LinkType, Notification, Profile, Subject};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Index that stands for no flow, no trace or no frame.
pub const NONE: u32 = u32::MAX;

/// Name of the ground truth's schema.
pub const TRUTH_SCHEMA: &str = "fcn-gen/truth";
/// Version of the ground truth's schema: raised when a field changes its meaning or is removed.
pub const TRUTH_VERSION: u32 = 2;
/// Packets sent, marked, notified and obeyed, recorded without decoding a packet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Truth {
    /// The schema's name, [`TRUTH_SCHEMA`].
    pub schema: String,
    /// The schema's version, [`TRUTH_VERSION`].
    pub version: u32,
    /// Name of the scenario.
    pub scenario: String,
    /// [`id`](crate::scenario::model::Mechanism::id) of the mechanism.
    pub mechanism: String,
    /// Seed.
    pub seed: u64,
    /// Length of the simulation in nanoseconds.
    pub duration_ns: u64,
    /// Start of the simulation in nanoseconds since 1970, added to all time stamps in the capture.
    pub epoch_ns: u64,
    /// Interfaces of the capture, in the file's order.
    pub vantage_points: Vec<VantageTruth>,
    /// The flows.
    pub flows: Vec<FlowTruth>,
    /// Notifications that passed a vantage point, one entry for each combination of fields.
    pub notifications: Vec<NotificationTruth>,
    /// Statistics of each switch.
    pub switches: Vec<SwitchTruth>,
    /// Packets that break a rule on purpose: frame number in the capture (from 1), and the
    /// identifiers of the rules.
    #[serde(default)]
    pub findings: BTreeMap<u64, Vec<String>>,
}

/// A vantage point.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VantageTruth {
    /// Name of the pcapng interface: `node:peer`.
    pub name: String,
    /// Number of packets captured.
    pub packets: u64,
    /// Octets of these packets on the wire.
    pub octets: u64,
}

/// A flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowTruth {
    /// Name of the flow in the scenario.
    pub name: String,
    /// Address of the sender.
    pub sender: IpAddr,
    /// Address of the receiver.
    pub receiver: IpAddr,
    /// QP at the sender, named by a CNP.
    pub sender_qp: u32,
    /// QP at the receiver, named by data packets and Fast CNPs.
    pub receiver_qp: u32,
    /// UDP source port of the data packets.
    pub source_port: u16,
    /// True if the sender responds to notifications with a lower rate or another path.
    pub obeys: bool,
    /// Data packets that the sender put on its link, including retransmissions.
    pub packets_sent: u64,
    /// Retransmissions among them.
    pub packets_again: u64,
    /// Octets of payload that the receiver accepted in order.
    pub octets_delivered: u64,
    /// Data packets that arrived at the receiver marked CE.
    pub ce_received: u64,
    /// Messages acknowledged.
    pub messages_done: u64,
    /// Notifications that reached the sender and slowed this flow, by kind.
    pub slowed_by: BTreeMap<String, u64>,
    /// Time of the first rate reduction by the sender, in nanoseconds from the start.
    pub first_slowed_ns: Option<u64>,
    /// Time of the acknowledgement that completed the flow, in nanoseconds from the start; `None`
    /// if it has no end or did not reach it.
    #[serde(default)]
    pub completed_ns: Option<u64>,
    /// Fast CNPs after which the sender used another path instead of slowing down.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub detours: u64,
    /// Data packets at each vantage point that captured any.
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
    /// Number of packets.
    pub packets: u64,
    /// Octets of these packets on the wire.
    pub octets: u64,
    /// Packets marked CE (in the innermost IP header).
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
    /// Source address of the notification.
    pub notifier: IpAddr,
    /// Destination address of the notification.
    pub destination: IpAddr,
    /// The data sender that should slow down, if the message names it.
    pub sender: Option<IpAddr>,
    /// QP named by the message.
    pub qp: Option<u32>,
    /// Owner of that QP: `sender` or `receiver`.
    pub qp_side: Option<String>,
    /// Outer flow label named by an FCN.
    pub flow_label: Option<u32>,
    /// Name of the flow concerned, if there is one (a spoofed notification may concern no flow).
    pub flow: Option<String>,
    /// [`id`](MadeBy::id) of the node that generated the notification, regardless of its source
    /// address; `None` in a gallery.
    #[serde(default)]
    pub made_by: Option<String>,
    /// Notifications by congestion level, if the format has one.
    pub levels: BTreeMap<u8, u64>,
    /// Number of notifications.
    pub total: u64,
    /// Notifications in each whole second since 1970.
    pub by_second: BTreeMap<u64, u64>,
}

/// Statistics of a switch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchTruth {
    /// Name of the switch.
    pub name: String,
    /// Packets forwarded.
    pub forwarded: u64,
    /// Packets dropped because their queue was full.
    pub dropped: u64,
    /// Packets marked CE.
    pub marked: u64,
    /// Notifications sent, by kind.
    pub notified: BTreeMap<String, u64>,
    /// Notifications suppressed by the rate limits.
    pub held_back: u64,
    /// Fast CNPs stopped at the domain's border.
    pub stopped_at_border: u64,
    /// PFC frames sent.
    pub pauses: u64,
    /// Maximum depth of the egress queues, in octets.
    pub peak_queue: u64,
}

impl Truth {
    /// Serialises the truth as a JSON document with human-readable lines.
    ///
    /// # Errors
    /// The truth contains a number that JSON cannot represent.
    pub fn document(&self) -> Result<Vec<u8>> {
        json_lines::to_vec(self).map_err(|error| {
            Failure::failed("cannot write the truth as JSON").and(error.to_string())
        })
    }
}

fcn_wire::identified! {
    /// Node that generated a notification, regardless of its source address.
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
        /// A host that injects it, according to the scenario.
        Injected = "injected",
    }
}

/// A notification as counted in the truth.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Note {
    /// Kind.
    pub kind: Kind,
    /// Source address of the packet.
    pub notifier: IpAddr,
    /// Destination address of the packet.
    pub destination: IpAddr,
    /// The sender concerned, if named.
    pub sender: Option<IpAddr>,
    /// The QP named, and its owner.
    pub qp: Option<(u32, Side)>,
    /// Flow label named.
    pub flow_label: Option<u32>,
    /// Congestion level.
    pub level: Option<u8>,
    /// Index of the flow concerned, or [`NONE`].
    pub flow: u32,
    /// The node that generated it, if known.
    pub made_by: Option<MadeBy>,
}

impl Note {
    /// Creates the entry for a decoded notification.
    #[must_use]
    pub fn from_notification(gist: &Notification, flow: u32, made_by: Option<MadeBy>) -> Self {
        Self {
            kind: gist.kind,
            notifier: gist.notifier,
            destination: gist.destination,
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

/// Notifications by vantage point and content; those that differ only in level and time share an
/// entry.
#[derive(Debug, Default)]
pub struct Notifications(BTreeMap<(usize, Note), NotificationTruth>);

impl Notifications {
    /// Counts a notification in a second since 1970; `flow` is the name of the flow concerned.
    pub fn count(&mut self, vantage_point: usize, second: u64, note: &Note, flow: Option<&str>) {
        let mut note = note.clone();
        let level = note.level.take();
        let entry = self.0.entry((vantage_point, note));
        let truth = entry.or_insert_with_key(|(_, note)| NotificationTruth {
            vantage_point,
            kind: note.kind.id().to_owned(),
            notifier: note.notifier,
            destination: note.destination,
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

    /// Returns the entries.
    #[must_use]
    pub fn into_entries(self) -> Vec<NotificationTruth> {
        self.0.into_values().collect()
    }
}

/// Mechanism in the truth of a gallery, which has none.
pub const GALLERY_MECHANISM: &str = "gallery";

/// Returns the truth about a gallery's packets with the code points of `profile`: the
/// notifications, and the rules broken on purpose.
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
        let capture = Selection::all_of(name).play();
        let truth = of_gallery(name, &capture, &Profile::DEFAULT);
        (capture, truth)
    }

    #[test]
    fn each_packet_has_a_vantage_point() {
        for gallery in gallery::all() {
            let (capture, truth) = truth_of(gallery.name);
            let packets: u64 = truth.vantage_points.iter().map(|point| point.packets).sum();
            assert_eq!(packets, capture.packets.len() as u64);
            assert_eq!(truth.mechanism, GALLERY_MECHANISM);
        }
    }

    #[test]
    fn formats_have_all_kinds_of_notification() {
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
    fn findings_are_keyed_by_frame_number() {
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
