//! Reports on single packets: broken rules, and reasons why a packet could not be decoded. Each
//! goes to the listener and into the log.

use super::Broken;
use super::events::Log;
use crate::packet::Packet;
use crate::record::EventRecord;
use crate::text::span;
use fcn_observe::exchange::Incident;
use fcn_observe::pauses::PauseFinding;
use fcn_wire::{End, Finding, Findings, Frame, Rule, Severity};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Maximum number of cached texts.
const TEXTS: usize = 1024;
/// Identifier of a packet that contradicts itself.
pub const MALFORMED: &str = "packet.malformed";
/// Identifier of a packet that the capture truncated too much to decode.
pub const CUT: &str = "capture.cut";
/// Identifier of a packet that breaks more rules than are listed.
pub const LEFT_OUT: &str = "findings.left_out";
/// A doubt about everything counted: identifier and text.
pub type Doubt = (&'static str, &'static str);
/// Warning that packets may be captured on several interfaces without recording on which.
pub const PLACES_UNCLEAR: Doubt = (
    "capture.places.unclear",
    "The capture of all interfaces does not record which of them a packet passed: a packet that passes several may count several times. Specify the interfaces, or capture with link type LINUX_SLL2",
);
/// Warning that packets of several interfaces arrived so far apart that they may count several
/// times.
pub const PLACES_FORGOTTEN: Doubt = (
    "capture.places.forgotten",
    "Packets of one interface came long after equally old packets of another: those captured on both may count twice. Sort the file by time (reordercap)",
);
/// Warning that packets are captured at several interfaces with so much delay that each counts.
pub const PLACES_APART: Doubt = (
    "capture.places.apart",
    "The same data was captured on several interfaces more than 10 ms apart: their clocks differ, or they are far from each other. Data captured on several counts on each, as do some of the notifications that look alike. Correct the clocks (editcap -t)",
);
/// Warning that it is unclear which notifications were on their way to a capture point when it
/// began.
pub const PLACES_LATE: Doubt = (
    "capture.places.late",
    "An interface starts later than others, while notifications that look alike were on their way to it, or passed it first: they count as new, so some may count twice. Start captures together, or cut off the beginning (editcap -A)",
);
/// Warning that there are more capture points than are distinguished.
pub const PLACES_MANY: Doubt = (
    "capture.places.many",
    "There are more than 1,024 interfaces and mirrors: packets captured on further ones may count again on each. Exclude some (--interface, --filter)",
);
/// Identifier of warnings that clocks of mirrors are unusable, or need care.
pub const MIRROR_CLOCK: &str = "capture.mirror_clock";
/// Warning that samples are missing because the capture truncated them.
pub const SAMPLES_CUT: Doubt = (
    "capture.samples.cut",
    "sFlow datagrams were captured too short: samples are missing, and estimates are too low. Capture them whole (--snap-length 1500)",
);
/// Warning that datagrams with samples may have been captured twice.
pub const SAMPLES_AGAIN: Doubt = (
    "capture.samples.repeated",
    "sFlow datagrams have the number of the previous one: if they are the same, captured twice, their samples count twice. Capture them at one point",
);
/// Identifier of the warning that datagrams with samples are missing.
pub const SAMPLES_LOST: &str = "capture.samples.lost";
/// Identifier of the warning that packets are stamped more than a day from those before.
pub const STAMPS_FAR: &str = "capture.stamps.far";
/// Identifier of a packet whose time stamp is out of range.
pub const STAMPS_RANGE: &str = "capture.stamps.range";
/// Identifier of the warning that a pause lasts very long.
pub const PAUSE_STORM: &str = "pause.storm";
/// Identifier of the warning that two senders pause each other.
pub const PAUSE_MUTUAL: &str = "pause.mutual";
/// Identifier of the warning that a receiver sends no CNP.
pub const SILENT: &str = "receiver.silent";
/// Identifier of the note that a sender does not support the Fast CNP option.
pub const UNAWARE: &str = "fastcnp.sender.unaware";

/// Identifier of the warning that CNPs are not in the class expected.
pub const CNP_CLASS: &str = "cnp.class.unexpected";
/// Identifier of the note that a flow's data is Not-ECT.
pub const NOT_ECT: &str = "data.not_ect";
/// Identifier of the note that a flow stalled.
pub const STALLED: &str = "data.stalled";
/// Identifier of the warning that a sender has probably exhausted its retries.
pub const EXHAUSTED: &str = "data.retries_exhausted";

/// Receives every event.
type Listener = Box<dyn FnMut(&EventRecord) + Send>;

/// The log, the listener, and counts by rule.
pub struct Reporter {
    /// The log.
    pub log: Log,
    /// Receives all events from the time it is set.
    pub listener: Option<Listener>,
    broken: Broken,
    /// Findings of severity note, warning, error.
    pub findings: [u64; 3],
    /// Texts of findings by rule and offset; there are few.
    texts: FxHashMap<(Rule, usize), Arc<str>>,
    /// Doubts about everything counted, each reported once.
    pub doubts: Vec<Arc<str>>,
}

impl Reporter {
    /// Creates a reporter without events.
    pub fn new(log: Log) -> Self {
        Self {
            log,
            listener: None,
            broken: [0; Rule::ALL.len()],
            findings: [0; 3],
            texts: FxHashMap::default(),
            doubts: Vec::new(),
        }
    }

    /// Returns the broken rules by identifier, with the number of violations.
    pub fn rules(&self) -> Vec<(&'static str, u64)> {
        let counts = Rule::ALL.iter().zip(self.broken);
        let found = counts.filter(|(_, count)| *count > 0);
        found.map(|(rule, count)| (rule.info().id, count)).collect()
    }

    /// Reports an event.
    pub fn report(&mut self, event: EventRecord) {
        if event.is_finding()
            && let Some(count) = self.findings.get_mut(event.severity as usize)
        {
            *count += event.times;
        }
        if let Some(listener) = &mut self.listener {
            listener(&event);
        }
        self.log.push(event);
    }

    /// Reports that a packet breaks a rule.
    pub fn finding(&mut self, context: &PacketContext<'_>, finding: &Finding) {
        if let Some(count) = self.broken.get_mut(finding.rule as usize) {
            *count += 1;
        }
        let info = finding.rule.info();
        let text = self.text(finding);
        self.report(context.event(info.severity, info.id, text, info.section));
    }

    /// Reports how many broken rules of a packet are not listed, with the severity of the worst
    /// that is.
    pub fn left_out(&mut self, context: &PacketContext<'_>, findings: &Findings) {
        if let (count @ 1.., Some(worst)) = (findings.dropped() as u64, findings.worst()) {
            let text = format!("The packet breaks {count} more rules, which are not listed");
            let mut event = context.event(worst, LEFT_OUT, text.into(), "");
            event.times = count;
            self.report(event);
        }
    }

    fn text(&mut self, finding: &Finding) -> Arc<str> {
        if self.texts.len() >= TEXTS {
            self.texts.clear();
        }
        let key = (finding.rule, finding.offset);
        let text = self.texts.entry(key).or_insert_with(|| {
            let text = finding.rule.info().text;
            format!("{text} (octet {})", finding.offset).into()
        });
        Arc::clone(text)
    }

    /// Reports why a packet could not be decoded to its end.
    pub fn end(&mut self, context: &PacketContext<'_>, end: &End) {
        let (severity, what, text) = match end {
            // Packets of other protocols break no rule of ours.
            End::Malformed(e) if !context.frame.is_checked() => {
                (Severity::Note, MALFORMED, e.to_string())
            }
            End::Malformed(e) => (Severity::Error, MALFORMED, e.to_string()),
            End::Cut { layer, need, have } => {
                let text = format!(
                    "The capture has {have} octets of the packet; {layer} ends at octet {need}"
                );
                (Severity::Note, CUT, text)
            }
            End::Complete | End::Fragment { .. } => return,
        };
        self.report(context.event(severity, what, text.into(), ""));
    }

    /// Reports that datagrams with samples are missing.
    pub fn samples_lost(&mut self, context: &PacketContext<'_>, datagrams: u32) {
        let text = "sFlow datagrams are missing by their numbers, or out of order: if they are missing, estimates are too low";
        let event = EventRecord {
            times: datagrams.into(),
            frame: None,
            ..context.event(Severity::Warning, SAMPLES_LOST, text.into(), "")
        };
        self.report(event);
    }

    /// Reports, once, a doubt about everything counted.
    pub fn doubt(&mut self, at: u64, (what, text): Doubt) {
        if self.doubts.iter().any(|said| &**said == text) {
            return;
        }
        self.doubts.push(text.into());
        self.report(EventRecord::of_capture(at, Severity::Warning, what, text));
    }

    /// Reports that a packet is stamped that far from those before, ahead or not, and that this
    /// casts doubt on what is counted: once for each interface.
    pub fn report_outlier(
        &mut self,
        at: u64,
        interface: Option<Arc<str>>,
        (by, ahead): (u64, bool),
        is_first: bool,
    ) {
        let (way, quiet) = match ahead {
            true => ("ahead of", ", or nothing arrived for that long"),
            false => ("behind", ""),
        };
        let by = span(by);
        let name = interface.as_deref().unwrap_or("an interface");
        let text = format!(
            "Time stamps of {name} are {by} {way} the previous ones: clocks differ, or parts are out of order{quiet}. Times, rates and gaps that span both are unreliable. Packets count at their time stamps, except one or two so far off among others of their interface, which count at the latest time"
        );
        let event = EventRecord::of_capture(at, Severity::Warning, STAMPS_FAR, &text);
        if is_first {
            self.doubts.push(Arc::clone(&event.text));
        }
        self.report(EventRecord { interface, ..event });
    }

    /// Reports that the time stamp of a packet, which counts at `at`, is out of range.
    pub fn report_bad_stamp(&mut self, at: u64, number: u64, interface: Option<Arc<str>>) {
        let text = "Time stamp before 1970 or after 2554: the packet counts at the time of the packet before";
        self.report(EventRecord {
            frame: Some(number),
            interface,
            ..EventRecord::of_capture(at, Severity::Warning, STAMPS_RANGE, text)
        });
    }

    /// Reports a storm of pauses, or two senders that pause each other.
    pub fn pause(&mut self, context: &PacketContext<'_>, finding: PauseFinding) {
        let (what, text) = match finding {
            PauseFinding::Storm => (
                PAUSE_STORM,
                "Pauses have been renewed for 200 ms without a resumption: a storm, which PFC watchdogs of switches stop",
            ),
            PauseFinding::Mutual { .. } => (
                PAUSE_MUTUAL,
                "Two senders pause the same traffic at once: if they are the two ends of a link, neither can send",
            ),
        };
        let section = "IEEE 802.1Q clause 36.1, IEEE 802.3 annex 31B";
        self.report(context.event(Severity::Warning, what, text.into(), section));
    }

    /// Reports that a receiver answers no CE mark.
    pub fn silent(&mut self, context: &PacketContext<'_>) {
        let text = "The receiver answers no CE mark: at least 32 packets to it were marked, 8 CNPs were expected, and none came, although other packets from it were captured";
        let section = "DCQCN section 3.1";
        self.report(context.event(Severity::Warning, SILENT, text.into(), section));
    }

    /// Reports that a CNP has another DSCP than those expected.
    pub fn unexpected_class(&mut self, context: &PacketContext<'_>, dscp: u8) {
        let text = format!(
            "The CNP has DSCP {dscp}, which --cnp-dscp does not name: switches may queue it with other traffic, or drop it"
        );
        self.report(context.event(Severity::Warning, CNP_CLASS, text.into(), "RFC 2474"));
    }

    /// Reports, for a flow, what was noticed at a data packet.
    pub fn incident(&mut self, context: &PacketContext<'_>, incident: Incident) {
        let (severity, what, text, section) = match incident {
            Incident::NotEct => (
                Severity::Note,
                NOT_ECT,
                Incident::NOT_ECT.to_owned(),
                "RFC 3168 section 5",
            ),
            Incident::Silence {
                is_first: false, ..
            } => return,
            Incident::Silence { cause, length, .. } => {
                let (what, after) = (Incident::STALLED, cause.words());
                let text = format!("{what}: {after}, then {} without data", span(length));
                (Severity::Note, STALLED, text, "")
            }
            Incident::Tries => {
                let text = Incident::EXHAUSTED.to_owned();
                (Severity::Warning, EXHAUSTED, text, "")
            }
        };
        self.report(context.event(severity, what, text.into(), section));
    }

    /// Reports that a sender has answered a Fast CNP with an ICMPv6 Parameter Problem.
    pub fn unaware(&mut self, context: &PacketContext<'_>) {
        let text = "The sender does not support the Fast CNP option: it answers with an ICMPv6 Parameter Problem";
        let section = "draft-xiao-rtgwg-rocev2-fast-cnp section 4, RFC 8200 section 4.2";
        self.report(context.event(Severity::Note, UNAWARE, text.into(), section));
    }
}

/// Context of a report: the packet.
pub struct PacketContext<'a> {
    /// The packet as captured.
    pub packet: &'a Packet<'a>,
    /// Its layers.
    pub frame: &'a Frame<'a>,
    /// Name of the interface.
    pub interface: Option<Arc<str>>,
}

impl PacketContext<'_> {
    fn event(
        &self,
        severity: Severity,
        what: &'static str,
        text: Arc<str>,
        section: &'static str,
    ) -> EventRecord {
        let ip = self.frame.sender();
        EventRecord {
            at: self.packet.at,
            last: self.packet.at,
            severity,
            what,
            times: 1,
            frame: Some(self.packet.number),
            interface: self.interface.clone(),
            from: ip.map(|ip| ip.source),
            to: ip.map(|ip| ip.destination),
            text,
            section,
        }
    }
}
