//! The audit: violations of rules, frame by frame, then rule by rule, and the verdict. A
//! conformance check for devices that send notifications.

use super::bare_table;
use super::json::{AUDIT, Lines, VERSION};
use crate::monitor::Settings;
use crate::record::EventRecord;
use crate::text::Formatter;
use fcn_tool::quantity::{counted, grouped};
use fcn_wire::{Rule, Severity};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Maximum number of lines printed; further ones are only counted.
pub const MOST_LINES: u64 = 10_000;

/// A rule that is not checked, with the reason, or what would enable the check.
pub type Unchecked = (Rule, &'static str);

/// Returns the rules that are not checked with these settings.
pub fn unchecked(settings: &Settings) -> Vec<Unchecked> {
    let (no_able, no_trust) = (settings.able.is_empty(), settings.trust.is_empty());
    let (no_domain, no_rate) = (settings.domain.is_empty(), settings.flow_rate == 0);
    let no_icrc = !settings.verify_icrc;
    let sampled = settings.sampled.is_some();
    let of_samples = "undecidable from samples";
    let wanting = [
        (Rule::RoceIcrcBad, "ICRCs are not verified", no_icrc),
        (Rule::RoceIcrcSwapped, "ICRCs are not verified", no_icrc),
        (Rule::RoceIcrcMissing, "ICRCs are not verified", no_icrc),
        (Rule::FastCnpMarked, of_samples, sampled),
        (Rule::FastCnpMarkUnclear, of_samples, sampled),
        (Rule::FastCnpRate, of_samples, sampled),
        (Rule::ProxyCnRate, of_samples, sampled),
        (Rule::WanFcnRate, of_samples, sampled),
        (Rule::FastCnpMarked, "set --able", no_able && !sampled),
        (Rule::FastCnpMarkUnclear, "set --able", no_able && !sampled),
        (Rule::FastCnpRate, "--flow-rate is 0", no_rate && !sampled),
        (Rule::ProxyCnRate, "--flow-rate is 0", no_rate && !sampled),
        (Rule::WanFcnRate, "--flow-rate is 0", no_rate && !sampled),
        (Rule::FastCnpUntrusted, "set --trust", no_trust),
        (Rule::ProxyCnUntrusted, "set --trust", no_trust),
        (Rule::WanFcnUntrusted, "set --trust", no_trust),
        (Rule::FastCnpBorder, "set --domain", no_domain),
        (Rule::ProxyCnBorder, "set --domain", no_domain),
        (Rule::WanFcnBorder, "set --domain", no_domain),
    ];
    let missing = wanting.into_iter().filter(|(.., missing)| *missing);
    missing.map(|(rule, why, _)| (rule, why)).collect()
}

/// Packets of an audit.
#[derive(Clone, Copy, Debug)]
pub struct Audited {
    /// All packets.
    pub packets: u64,
    /// RoCEv2 packets that the capture truncated.
    pub incomplete: u64,
    /// Packets that were not read although they may be RoCE.
    pub unread: u64,
}

impl Audited {
    /// Describes the audited packets.
    fn what(self) -> String {
        let packets = counted(self.packets, "packet");
        match self.incomplete {
            0 => packets,
            _ => format!("the captured part of {packets}"),
        }
    }

    /// Text for an audit without violations.
    pub fn unbroken(self) -> String {
        let what = self.what();
        match self.unread {
            0 => format!("no rule is broken in {what}"),
            unread => {
                let read = grouped(self.packets.saturating_sub(unread));
                format!("no rule is broken in what was read, {read} of {what}")
            }
        }
    }

    /// Number of truncated packets, if any, and the consequence.
    pub fn cut(self) -> Option<String> {
        let cut = counted(self.incomplete, "packet");
        (self.incomplete > 0)
            .then(|| format!("not complete: {cut}, whose ICRC and missing parts are not checked"))
    }
}

/// Text with the number of checked rules.
pub fn checked(unchecked: &[Unchecked]) -> String {
    let all = Rule::ALL.len();
    format!("checked: {} of {all} rules", all - unchecked.len())
}

/// Same, with the reasons why the others were not checked.
pub fn checked_and_why(unchecked: &[Unchecked]) -> String {
    let mut whys: Vec<_> = unchecked.iter().map(|(_, why)| *why).collect();
    whys.dedup();
    match whys.as_slice() {
        [] => checked(unchecked),
        whys => format!("{}; not all: {}", checked(unchecked), whys.join(", ")),
    }
}

/// Occurrences of a rule, or of another event with the same identifier and severity.
#[derive(Clone, Debug)]
struct Broken {
    times: u64,
    first_frame: Option<u64>,
    /// True if packets show it, false for an event of the capture.
    of_packets: bool,
}

/// An audit in progress.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    formatter: Formatter,
    printed: u64,
    events: u64,
    /// Findings about packets: notes, warnings, errors.
    findings: [u64; 3],
    /// Bounded: identifiers are constants of the program.
    rules: BTreeMap<(&'static str, Severity), Broken>,
    kept: Vec<EventRecord>,
    keep: bool,
}

impl Audit {
    /// Creates an audit without events.
    pub fn new(formatter: Formatter) -> Self {
        Self {
            formatter,
            ..Self::default()
        }
    }

    /// Keeps the lines for [`json`](Self::json) instead of returning them for printing.
    pub const fn keeping(mut self) -> Self {
        self.keep = true;
        self
    }

    /// Processes an event of the monitor; returns the line to print for it, with a newline, for the
    /// first [`MOST_LINES`] events.
    pub fn take(&mut self, event: &EventRecord) -> Option<String> {
        self.events = self.events.saturating_add(1);
        let kind = (event.what, event.severity);
        let broken = self.rules.entry(kind).or_insert_with(|| Broken {
            times: 0,
            first_frame: event.frame,
            of_packets: false,
        });
        broken.times = broken.times.saturating_add(event.times);
        broken.of_packets |= event.is_finding();
        if event.is_finding()
            && let Some(count) = self.findings.get_mut(event.severity as usize)
        {
            *count = count.saturating_add(event.times);
        }
        if self.printed >= MOST_LINES {
            return None;
        }
        self.printed += 1;
        if self.keep {
            self.kept.push(event.clone());
            return None;
        }
        Some(self.line(event))
    }

    fn line(&self, event: &EventRecord) -> String {
        let frame = match event.frame {
            Some(number) => format!("frame {number}"),
            None => self.formatter.clock(event.at, 6),
        };
        let severity = event.severity.id();
        let text = self.formatter.text(&event.text);
        let mut line = format!("{frame}  {severity:7}  {}  {text}", event.what);
        if !event.section.is_empty() {
            let _ = write!(line, " [{}]", event.section);
        }
        if let (Some(from), Some(to)) = (event.from, event.to) {
            let (from, to) = (self.formatter.address(from), self.formatter.address(to));
            let _ = write!(line, "  {from} → {to}");
        }
        line.push('\n');
        line
    }

    /// Returns true if packets break rules: warnings and errors, and also notes if `strict`.
    pub fn failed(&self, strict: bool) -> bool {
        let [notes, warnings, errors] = self.findings;
        warnings > 0 || errors > 0 || (strict && notes > 0)
    }

    /// Returns the results by rule, the number of checked rules, and the verdict on the packets.
    ///
    /// `unread` describes the packets that were not read.
    pub fn summary(
        &self,
        unchecked: &[Unchecked],
        audited: Audited,
        unread: Option<&str>,
    ) -> String {
        let mut text = String::new();
        if self.events > self.printed {
            let more = grouped(self.events - self.printed);
            let _ = writeln!(text, "… and {more} more, counted below");
        }
        if !self.rules.is_empty() {
            if self.events > 0 {
                text.push('\n');
            }
            text.push_str(&self.table());
        }
        text.push('\n');
        let _ = writeln!(text, "{}", checked(unchecked));
        for (rule, why) in unchecked {
            let _ = writeln!(text, "not checked: {rule} ({why})");
        }
        if let Some(cut) = audited.cut() {
            let _ = writeln!(text, "{cut}");
        }
        if let Some(unread) = unread {
            let _ = writeln!(text, "not read: {unread}");
        }
        let _ = writeln!(text, "{}", self.verdict(audited));
        text
    }

    fn verdict(&self, audited: Audited) -> String {
        let [notes, warnings, errors] = self.findings;
        let packets = audited.what();
        let by_severity = format!(
            "errors {}, warnings {}, notes {}",
            grouped(errors),
            grouped(warnings),
            grouped(notes)
        );
        match (errors.saturating_add(warnings), notes) {
            (0, 0) => format!("verdict: {}", audited.unbroken()),
            (0, notes) => format!(
                "verdict: {} (notes: {})",
                audited.unbroken(),
                grouped(notes)
            ),
            (bad, _) => format!(
                "verdict: {} in {packets} ({by_severity})",
                counted(bad, "violation")
            ),
        }
    }

    fn table(&self) -> String {
        let mut table = bare_table(["rule", "severity", "times", "first frame"], &[2, 3]);
        let mut rules: Vec<_> = self.rules.iter().collect();
        rules.sort_by_key(|((_, severity), broken)| std::cmp::Reverse((*severity, broken.times)));
        for ((id, severity), broken) in rules {
            table.add_row([
                (*id).to_owned(),
                severity.to_string(),
                grouped(broken.times),
                broken
                    .first_frame
                    .map(|frame| frame.to_string())
                    .unwrap_or_default(),
            ]);
        }
        if let Some(column) = table.column_mut(0) {
            column.set_padding((0, 1));
        }
        table.trim_fmt() + "\n"
    }

    /// Returns the audit as JSON, with the kept lines.
    pub fn json(&self, unchecked: &[Unchecked], audited: Audited) -> Value {
        let rules: Vec<Value> = self
            .rules
            .iter()
            .map(|((id, severity), broken)| {
                json!({
                    "id": id,
                    "severity": severity.id(),
                    "times": broken.times,
                    "first_frame": broken.first_frame,
                    "of_packets": broken.of_packets,
                })
            })
            .collect();
        let [notes, warnings, errors] = self.findings;
        json!({
            "schema": AUDIT,
            "version": VERSION,
            "packets": audited.packets,
            "cut_packets": audited.incomplete,
            "unread_packets": audited.unread,
            "passed": !self.failed(false),
            "errors": errors,
            "warnings": warnings,
            "notes": notes,
            "not_checked": unchecked.iter().map(|(rule, _)| rule.info().id).collect::<Vec<_>>(),
            "rules": rules,
            "events": Lines::new(&self.kept, &self.formatter),
            "events_left_out": self.events - self.printed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::sample;
    use insta::assert_snapshot;

    /// Returns the rules not checked without any list and without ICRC verification.
    fn bare() -> Vec<Unchecked> {
        unchecked(&Settings {
            verify_icrc: false,
            ..Settings::default()
        })
    }

    const PACKETS: Audited = Audited {
        packets: 1_234,
        incomplete: 0,
        unread: 0,
    };

    fn audited(events: &[EventRecord], unchecked: &[Unchecked]) -> (Audit, String) {
        let mut audit = Audit::new(Formatter::default());
        let mut text: String = events
            .iter()
            .filter_map(|event| audit.take(event))
            .collect();
        text += &audit.summary(unchecked, PACKETS, None);
        (audit, text)
    }

    #[test]
    fn an_audit_matches_its_snapshot() {
        let events = sample::tables().events;
        let (audit, text) = audited(&events, &bare());
        assert_snapshot!("text", text);
        assert!(audit.failed(false) && audit.failed(true));
        let mut audit = Audit::new(Formatter::default()).keeping();
        assert!(events.iter().all(|event| audit.take(event).is_none()));
        assert_snapshot!("json", format!("{:#}\n", audit.json(&[], PACKETS)));
    }

    #[test]
    fn only_warnings_and_errors_about_packets_fail() {
        let (audit, text) = audited(&[], &[]);
        assert!(!audit.failed(true));
        assert!(
            text.ends_with("verdict: no rule is broken in 1,234 packets\n"),
            "{text}"
        );
        let cut = Audited {
            incomplete: 30,
            ..PACKETS
        };
        let text = audit.summary(&[], cut, None);
        let verdict = "no rule is broken in the captured part of 1,234 packets";
        assert!(
            text.contains("not complete: 30 packets, whose ICRC"),
            "{text}"
        );
        assert!(text.contains(verdict), "{text}");
        let unread = Audited {
            unread: 34,
            ..PACKETS
        };
        let text = audit.summary(&[], unread, Some("34 fragments were not read"));
        assert!(text.contains("not read: 34 fragments"), "{text}");
        let verdict = "no rule is broken in what was read, 1,200 of 1,234 packets";
        assert!(text.contains(verdict), "{text}");
        let mut events = sample::tables().events;
        events.retain(|event| event.severity == Severity::Note);
        let (audit, text) = audited(&events, &[]);
        assert!(!audit.failed(false) && audit.failed(true));
        assert!(
            text.contains("no rule is broken in 1,234 packets (notes: 1)"),
            "{text}"
        );
        // Events of the capture are no fault of the packets.
        let mut event = events[0].clone();
        (event.severity, event.frame, event.what) = (Severity::Warning, None, "interface.down");
        let (audit, _) = audited(&[event], &[]);
        assert!(!audit.failed(true));
    }

    #[test]
    fn lines_are_bounded_and_all_is_counted() {
        let event = sample::tables().events[1].clone();
        let mut audit = Audit::new(Formatter::default());
        let lines = (0..MOST_LINES + 5)
            .filter_map(|_| audit.take(&event))
            .count();
        assert_eq!(lines as u64, MOST_LINES);
        let text = audit.summary(&[], PACKETS, None);
        assert!(text.starts_with("… and 5 more"), "{text}");
        assert!(text.contains("10,005"), "{text}");
    }

    #[test]
    fn unchecked_rules_are_reported() {
        let (_, text) = audited(&[], &bare());
        for line in [
            "not checked: rocev2.icrc.bad (ICRCs are not verified)",
            "not checked: fastcnp.source.untrusted (set --trust)",
            "not checked: fastcnp.ce.also_marked (set --able)",
        ] {
            assert!(text.contains(line), "{text}");
        }
        assert!(!audited(&[], &[]).1.contains("not checked"));
        let settings = Settings {
            trust: vec!["::/0".parse().unwrap()],
            flow_rate: 0,
            ..Settings::default()
        };
        let rules = unchecked(&settings);
        assert!(rules.contains(&(Rule::WanFcnRate, "--flow-rate is 0")));
        assert!(
            !rules
                .iter()
                .any(|(rule, _)| *rule == Rule::FastCnpUntrusted)
        );
        assert!(!rules.iter().any(|(rule, _)| *rule == Rule::RoceIcrcBad));
        assert_eq!(
            checked_and_why(&rules),
            "checked: 73 of 81 rules; not all: set --able, --flow-rate is 0, set --domain"
        );
        assert_eq!(checked_and_why(&[]), "checked: 81 of 81 rules");
    }
}
