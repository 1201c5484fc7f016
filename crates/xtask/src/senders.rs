//! Senders that obey, by name: fcn-top's verdict on each notified flow of a scenario, compared with
//! the ground truth. Not here: the derivation of verdicts (`fcn-observe`).

use std::path::Path;
use std::process::Command;

use anyhow::Context;
use serde_json::Value;

use crate::failure::Outcome;
use crate::process;
use crate::report::{Ink, ink};

/// Width of the screen that a list fits into, in columns.
const WIDTH: usize = 80;
/// Maximum number of senders listed; of more, only the number is given.
const LISTED: usize = 12;
/// Verdicts: as written by fcn-top, as shown to people, and their colour.
const VERDICTS: [(&str, &str, Ink); 3] = [
    ("obeys", "obeys", Ink::Green),
    ("does_not_obey", "does not obey", Ink::Red),
    ("unclear", "unclear", Ink::Dim),
];

/// A notified flow, and the verdict on its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// Name of the flow in the scenario.
    flow: String,
    /// True if the sender obeys, by the ground truth.
    obeys: bool,
    /// Index in [`VERDICTS`]; `None` if no data of the flow was captured.
    verdict: Option<usize>,
    /// Evidence for the verdict, in a sentence.
    evidence: String,
    /// Advice on how to reach a verdict.
    advice: Option<String>,
    /// Number of notifications measured.
    measured: u64,
}

impl Judged {
    /// Returns true if fcn-top's verdict is that it obeys, or that it does not.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        self.verdict
            .is_some_and(|number| VERDICTS[number].0 != "unclear")
    }

    /// Returns true if fcn-top's verdict contradicts the ground truth.
    #[must_use]
    pub fn is_wrong(&self) -> bool {
        let says = self.verdict.map(|number| VERDICTS[number].0);
        says == Some(if self.obeys { "does_not_obey" } else { "obeys" })
    }

    /// Returns a few lines for people, with `name` characters for the flow's name.
    fn lines(&self, name: usize) -> String {
        let (_, says, colour) = self
            .verdict
            .map_or(("", "no data", Ink::Dim), |number| VERDICTS[number]);
        let widest = VERDICTS.iter().map(|(_, says, _)| says.len()).max();
        let verdict = widest.unwrap_or(0);
        let indent = name + verdict + 4;
        let evidence = match self.verdict {
            Some(_) => {
                let help = self.advice.as_ref();
                let help = help.map_or_else(String::new, |advice| format!("; {advice} would help"));
                format!("{}{help} ({} measured)", self.evidence, self.measured)
            }
            None => String::new(),
        };
        let evidence = wrapped(&evidence, WIDTH - 4 - indent);
        let evidence = evidence.join(&format!("\n{:indent$}", ""));
        let says = ink(colour, &format!("{says:<verdict$}"));
        format!("{:<name$}  {says}  {evidence}", self.flow)
            .trim_end()
            .to_owned()
    }
}

/// Returns fcn-top's verdicts on the flows of a capture, which `truth` (a ground truth, or
/// equivalent) describes. If an interface is named, only its packets count: packets captured live
/// on several interfaces are not in order.
///
/// # Errors
/// fcn-top cannot read the capture.
pub fn judge(
    monitor: &Path,
    capture: &Path,
    interface: Option<&str>,
    truth: &Value,
) -> Outcome<Vec<Judged>> {
    let mut command = Command::new(monitor);
    command.args(["--no-config", "--json", "-r"]).arg(capture);
    if let Some(name) = interface {
        command.args(["--interface", name]);
    }
    let text = process::stdout(&mut command)?;
    let seen: Value = serde_json::from_str(&text).context("fcn-top wrote no JSON")?;
    Ok(matched(&seen["rows"], &truth["flows"]))
}

/// Returns the verdicts from the rows about flows; a flow without notifications has none.
fn matched(rows: &Value, flows: &Value) -> Vec<Judged> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let rows = list(rows);
    let is_same = |row: &Value, flow: &Value, key| !row[key].is_null() && row[key] == flow[key];
    let judged = list(flows).into_iter().filter_map(|flow| {
        // All rows of a flow have the same verdict, for every kind of notification.
        let row = rows.iter().find(|row| {
            is_same(row, &flow, "sender")
                && (is_same(row, &flow, "sender_qp") || is_same(row, &flow, "receiver_qp"))
        })?;
        Some(Judged {
            flow: flow["name"].as_str()?.to_owned(),
            obeys: flow["obeys"].as_bool()?,
            verdict: (VERDICTS.iter()).position(|(id, ..)| row["verdict"] == *id),
            evidence: row["evidence"].as_str().unwrap_or_default().to_owned(),
            advice: row["advice"].as_str().map(str::to_owned),
            measured: row["measured"].as_u64().unwrap_or(0),
        })
    });
    judged.collect()
}

/// Returns the list for people, followed by the number of correct verdicts.
#[must_use]
pub fn list(judged: &[Judged]) -> String {
    let name = judged.iter().map(|one| one.flow.len()).max().unwrap_or(0);
    let listed = judged.iter().take(LISTED).map(|one| one.lines(name));
    let mut lines: Vec<String> = listed.collect();
    if let Some(more) = judged.len().checked_sub(LISTED).filter(|more| *more > 0) {
        lines.push(format!("… and {more} more"));
    }
    lines.push(summary(judged));
    lines.join("\n")
}

/// Returns the numbers of senders that obey and that do not according to fcn-top, checked against
/// the ground truth.
#[must_use]
pub fn summary(judged: &[Judged]) -> String {
    let said = |id: &str| {
        let is = |one: &&Judged| one.verdict.is_some_and(|number| VERDICTS[number].0 == id);
        judged.iter().filter(is).count()
    };
    let (obey, not) = (said("obeys"), said("does_not_obey"));
    let unclear = judged.len() - obey - not;
    let wrong: Vec<&str> = (judged.iter().filter(|one| one.is_wrong()))
        .map(|one| one.flow.as_str())
        .collect();
    let check = match wrong.as_slice() {
        [] if obey + not == 0 => String::new(),
        [] if unclear > 0 => "; those decided are as in the scenario".to_owned(),
        [] => ", as in the scenario".to_owned(),
        some => format!("; the scenario differs for {}", some.join(", ")),
    };
    let verb = |count: usize, one, many| format!("{count} {}", if count == 1 { one } else { many });
    let (obey, not) = (verb(obey, "obeys", "obey"), verb(not, "does not", "do not"));
    let unclear = match unclear {
        0 => String::new(),
        some => format!(", {}", verb(some, "is unclear", "are unclear")),
    };
    format!("{obey}, {not}{unclear}{check}")
}

/// Breaks a text into lines of at most `width` characters, between words.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        let room = width.saturating_sub(line.chars().count());
        if line.is_empty() || word.chars().count() < room {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn judged(verdict: &str) -> Vec<Judged> {
        let row = json!({
            "sender": "2001:db8::1", "sender_qp": null, "receiver_qp": 5, "verdict": verdict, "measured": 40,
            "evidence": "at least 31 % less data 16 µs to 65 µs after notifications than around that window",
        });
        let flow = |name: &str, qp: u32, obeys: bool| json!({"name": name, "sender": "2001:db8::1", "sender_qp": 9, "receiver_qp": qp, "obeys": obeys});
        matched(
            &json!([row]),
            &json!([flow("load1", 5, true), flow("quiet", 6, true)]),
        )
    }

    #[test]
    fn notified_flows_are_named_with_their_verdict() {
        let text = list(&judged("obeys"));
        let expected = "load1  obeys          at least 31 % less data 16 µs to 65 µs after\n                      notifications than around that window (40 measured)\n1 obeys, 0 do not, as in the scenario";
        assert_eq!(text, expected);
    }

    #[test]
    fn contradicting_verdicts_are_reported() {
        let text = summary(&judged("does_not_obey"));
        assert!(text.ends_with("differs for load1"), "{text}");
        assert_eq!(
            summary(&judged("unclear")),
            "0 obey, 0 do not, 1 is unclear"
        );
        assert_eq!(judged("none yet")[0].verdict, None);
    }
}
