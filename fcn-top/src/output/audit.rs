//! The audit: which rules packets break, frame by frame, then rule by rule, and the verdict. A conformance check for a
//! device that sends notifications.

use super::json::{AUDIT, VERSION, record};
use crate::record::EventRecord;
use crate::text::Words;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use fcn_tool::quantity::{counted, grouped};
use fcn_wire::{Rule, Severity};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Lines told one by one; what comes after them is counted alone.
pub const MOST_LINES: u64 = 10_000;

/// What was given that some rules need to be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    /// A list of who may notify.
    pub trust: bool,
    /// A list of senders that handle Fast CNPs.
    pub able: bool,
    /// Which addresses are in the domain.
    pub domain: bool,
    /// A limit on the rate of one notifier about one flow.
    pub rate: bool,
    /// Whether ICRCs are verified.
    pub icrc: bool,
}

impl Checked {
    /// The rules that are not checked, and why, or what would have them checked.
    fn left_out(self) -> impl Iterator<Item = (Rule, &'static str)> {
        let wanting = [
            (Rule::RoceIcrcBad, "ICRCs are not verified", self.icrc),
            (Rule::FastCnpMarked, "give --able", self.able),
            (Rule::FastCnpMarkUnclear, "give --able", self.able),
            (Rule::FastCnpRate, "--flow-rate is 0", self.rate),
            (Rule::ProxyCnRate, "--flow-rate is 0", self.rate),
            (Rule::WanFcnRate, "--flow-rate is 0", self.rate),
            (Rule::FastCnpUntrusted, "give --trust", self.trust),
            (Rule::ProxyCnUntrusted, "give --trust", self.trust),
            (Rule::WanFcnUntrusted, "give --trust", self.trust),
            (Rule::FastCnpBorder, "give --domain", self.domain),
            (Rule::ProxyCnBorder, "give --domain", self.domain),
            (Rule::WanFcnBorder, "give --domain", self.domain),
        ];
        wanting
            .into_iter()
            .filter(|(_, _, given)| !given)
            .map(|(rule, why, _)| (rule, why))
    }
}

/// What has been heard of one rule, or of what else is called so and as bad.
#[derive(Clone, Debug)]
struct Broken {
    times: u64,
    first_frame: Option<u64>,
    /// Whether packets show it, as opposed to what befell the capture.
    of_packets: bool,
}

/// The audit so far.
#[derive(Clone, Debug)]
pub struct Audit {
    words: Words,
    told: u64,
    heard: u64,
    /// Findings about packets: notes, warnings, errors.
    findings: [u64; 3],
    /// Bounded: identifiers are written in the program.
    rules: BTreeMap<(&'static str, Severity), Broken>,
    kept: Vec<EventRecord>,
    keep: bool,
}

impl Audit {
    /// Nothing has been heard yet.
    #[must_use]
    pub const fn new(words: Words) -> Self {
        Self {
            words,
            told: 0,
            heard: 0,
            findings: [0; 3],
            rules: BTreeMap::new(),
            kept: Vec::new(),
            keep: false,
        }
    }

    /// With the lines kept for [`json`](Self::json) instead of being told.
    #[must_use]
    pub const fn keeping(mut self) -> Self {
        self.keep = true;
        self
    }

    /// Takes an event, as the monitor tells it; returns the line to print for it, with its end, where there is one. Of the
    /// first [`MOST_LINES`] there is.
    pub fn hear(&mut self, event: &EventRecord) -> Option<String> {
        self.heard = self.heard.saturating_add(1);
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
        if self.told >= MOST_LINES {
            return None;
        }
        self.told += 1;
        if self.keep {
            self.kept.push(event.clone());
            return None;
        }
        Some(self.line(event))
    }

    fn line(&self, event: &EventRecord) -> String {
        let frame = match event.frame {
            Some(number) => format!("frame {number}"),
            None => self.words.clock(event.at, 6),
        };
        let severity = event.severity.name();
        let text = self.words.text(&event.text);
        let mut line = format!("{frame}  {severity:7}  {}  {text}", event.what);
        if !event.section.is_empty() {
            let _ = write!(line, " [{}]", event.section);
        }
        if let (Some(from), Some(to)) = (event.from, event.to) {
            let (from, to) = (self.words.address(from), self.words.address(to));
            let _ = write!(line, "  {from} → {to}");
        }
        line.push('\n');
        line
    }

    /// Whether packets break rules: warnings and errors, and notes too where they are `strict`ly seen.
    #[must_use]
    pub fn failed(&self, strict: bool) -> bool {
        let [notes, warnings, errors] = self.findings;
        warnings > 0 || errors > 0 || (strict && notes > 0)
    }

    /// Rule by rule, what was checked, and the verdict on `packets` packets.
    #[must_use]
    pub fn summary(&self, checked: Checked, packets: u64) -> String {
        let mut text = String::new();
        if self.heard > self.told {
            let more = grouped(self.heard - self.told);
            let _ = writeln!(text, "… and {more} more, which are counted below");
        }
        if !self.rules.is_empty() {
            if self.heard > 0 {
                text.push('\n');
            }
            text.push_str(&self.table());
        }
        text.push('\n');
        let left_out: Vec<_> = checked.left_out().collect();
        let _ = writeln!(
            text,
            "checked: {} of {} rules",
            Rule::ALL.len() - left_out.len(),
            Rule::ALL.len()
        );
        for (rule, why) in left_out {
            let _ = writeln!(text, "not checked: {rule} ({why})");
        }
        let _ = writeln!(text, "{}", self.verdict(packets));
        text
    }

    fn verdict(&self, packets: u64) -> String {
        let [notes, warnings, errors] = self.findings;
        let packets = counted(packets, "packet");
        let by_severity = format!(
            "errors {}, warnings {}, notes {}",
            grouped(errors),
            grouped(warnings),
            grouped(notes)
        );
        match (errors.saturating_add(warnings), notes) {
            (0, 0) => format!("verdict: no rule is broken in {packets}"),
            (0, notes) => format!(
                "verdict: no rule is broken in {packets} (notes: {})",
                grouped(notes)
            ),
            (bad, _) => format!(
                "verdict: {} in {packets} ({by_severity})",
                counted(bad, "violation")
            ),
        }
    }

    fn table(&self) -> String {
        let mut table = Table::new();
        table
            .load_style(presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header(["rule", "severity", "times", "first frame"]);
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
        for number in [2, 3] {
            if let Some(column) = table.column_mut(number) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        if let Some(column) = table.column_mut(0) {
            column.set_padding((0, 1));
        }
        table.trim_fmt() + "\n"
    }

    /// The audit as JSON, with the lines that were kept.
    #[must_use]
    pub fn json(&self, checked: Checked, packets: u64) -> Value {
        let rules: Vec<Value> = self
            .rules
            .iter()
            .map(|((id, severity), broken)| {
                json!({
                    "id": id,
                    "severity": severity.name(),
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
            "packets": packets,
            "passed": !self.failed(false),
            "errors": errors,
            "warnings": warnings,
            "notes": notes,
            "not_checked": checked.left_out().map(|(rule, _)| rule.info().id).collect::<Vec<_>>(),
            "rules": rules,
            "events": self.kept.iter().map(|event| record(event, &self.words)).collect::<Vec<_>>(),
            "events_left_out": self.heard - self.told,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::sample;
    use insta::assert_snapshot;

    const ALL: Checked = Checked {
        trust: true,
        able: true,
        domain: true,
        rate: true,
        icrc: true,
    };
    const NONE: Checked = Checked {
        trust: false,
        able: false,
        domain: false,
        rate: true,
        icrc: false,
    };

    fn told(events: &[EventRecord], checked: Checked) -> (Audit, String) {
        let mut audit = Audit::new(Words::default());
        let mut text: String = events
            .iter()
            .filter_map(|event| audit.hear(event))
            .collect();
        text += &audit.summary(checked, 1_234);
        (audit, text)
    }

    #[test]
    fn an_audit_is_as_committed() {
        let events = sample::tables().events;
        let (audit, text) = told(&events, NONE);
        assert_snapshot!("text", text);
        assert!(audit.failed(false) && audit.failed(true));
        let mut audit = Audit::new(Words::default()).keeping();
        assert!(events.iter().all(|event| audit.hear(event).is_none()));
        assert_snapshot!("json", format!("{:#}\n", audit.json(ALL, 1_234)));
    }

    #[test]
    fn only_warnings_and_errors_of_packets_fail() {
        let (audit, text) = told(&[], ALL);
        assert!(!audit.failed(true));
        assert!(
            text.ends_with("verdict: no rule is broken in 1,234 packets\n"),
            "{text}"
        );
        let mut events = sample::tables().events;
        events.retain(|event| event.severity == Severity::Note);
        let (audit, text) = told(&events, ALL);
        assert!(!audit.failed(false) && audit.failed(true));
        assert!(
            text.contains("no rule is broken in 1,234 packets (notes: 1)"),
            "{text}"
        );
        // What befell the capture is no fault of the packets.
        let mut event = events[0].clone();
        (event.severity, event.frame, event.what) = (Severity::Warning, None, "interface.down");
        let (audit, _) = told(&[event], ALL);
        assert!(!audit.failed(true));
    }

    #[test]
    fn lines_are_bounded_and_all_is_counted() {
        let event = sample::tables().events[1].clone();
        let mut audit = Audit::new(Words::default());
        let lines = (0..MOST_LINES + 5)
            .filter_map(|_| audit.hear(&event))
            .count();
        assert_eq!(lines as u64, MOST_LINES);
        let text = audit.summary(ALL, 20_000);
        assert!(text.starts_with("… and 5 more"), "{text}");
        assert!(text.contains("10,005"), "{text}");
    }

    #[test]
    fn what_is_not_checked_is_told() {
        let (_, text) = told(&[], NONE);
        for line in [
            "not checked: rocev2.icrc.bad (ICRCs are not verified)",
            "not checked: fastcnp.source.untrusted (give --trust)",
            "not checked: fastcnp.ce.also_marked (give --able)",
        ] {
            assert!(text.contains(line), "{text}");
        }
        assert!(!told(&[], ALL).1.contains("not checked"));
    }
}
