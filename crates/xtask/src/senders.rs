//! Which senders obey, by name: fcn-top's verdict about each flow of a scenario that was notified, beside what the ground truth
//! says of it. Not here: how a verdict is reached, which is `fcn-observe`'s.

use std::path::Path;
use std::process::Command;

use anyhow::Context;
use serde_json::Value;

use crate::failure::Outcome;
use crate::process;
use crate::report::{Ink, ink};

/// Columns of the screen that a list fits into.
const WIDTH: usize = 80;
/// Senders listed one by one; of more only the numbers are told.
const LISTED: usize = 12;
/// The verdicts: as fcn-top writes them, in words as wide as the widest, and the colour.
const VERDICTS: [(&str, &str, Ink); 3] = [
    ("obeys", "obeys", Ink::Green),
    ("does_not_obey", "does not obey", Ink::Red),
    ("unclear", "unclear", Ink::Dim),
];

/// A flow that was notified, and what is known of its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The flow's name in the scenario.
    flow: String,
    /// True if the sender obeys, by the ground truth.
    obeys: bool,
    /// Index in [`VERDICTS`]; `None` where no data is known to be the flow's.
    verdict: Option<usize>,
    /// Evidence for the verdict, in a sentence.
    evidence: String,
    /// Advice on how to tell.
    advice: Option<String>,
    /// Notifications measured.
    measured: u64,
}

impl Judged {
    /// Returns whether fcn-top says that it obeys, or that it does not.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        self.verdict
            .is_some_and(|number| VERDICTS[number].0 != "unclear")
    }

    /// Returns whether fcn-top says the contrary of the ground truth.
    #[must_use]
    pub fn is_wrong(&self) -> bool {
        let says = self.verdict.map(|number| VERDICTS[number].0);
        says == Some(if self.obeys { "does_not_obey" } else { "obeys" })
    }

    /// A few lines for people, `name` characters for the flow's name.
    fn lines(&self, name: usize) -> String {
        let (_, says, colour) = self
            .verdict
            .map_or(("", "no data seen", Ink::Dim), |number| VERDICTS[number]);
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

/// Verdicts of fcn-top on the flows of a capture, which `truth` (a ground truth, or its like) describes; of several interfaces,
/// by what one has seen, where it is named: packets of several that were captured live are not in order.
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

/// The rows about flows; a flow that was not notified has none.
fn matched(rows: &Value, flows: &Value) -> Vec<Judged> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let rows = list(rows);
    let is_same = |row: &Value, flow: &Value, key| !row[key].is_null() && row[key] == flow[key];
    let judged = list(flows).into_iter().filter_map(|flow| {
        // Rows of a flow have one verdict, whatever kinds of notification they are of.
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

/// The list for people, and below it how many are right.
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

/// Numbers of senders that obey and do not by fcn-top, checked against the truth.
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
        [] => ", as the scenario has it".to_owned(),
        some => format!("; the scenario has it otherwise of {}", some.join(", ")),
    };
    let verb = |count: usize, one, many| format!("{count} {}", if count == 1 { one } else { many });
    let (obey, not) = (verb(obey, "obeys", "obey"), verb(not, "does not", "do not"));
    let unclear = match unclear {
        0 => String::new(),
        some => format!(", {}", verb(some, "is unclear", "are unclear")),
    };
    format!("{obey}, {not}{unclear}{check}")
}

/// Lines of at most so many characters, broken between words.
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
            "evidence": "at least 31 % less data 16 µs to 65 µs after notifications than around that",
        });
        let flow = |name: &str, qp: u32, obeys: bool| json!({"name": name, "sender": "2001:db8::1", "sender_qp": 9, "receiver_qp": qp, "obeys": obeys});
        matched(
            &json!([row]),
            &json!([flow("load1", 5, true), flow("quiet", 6, true)]),
        )
    }

    #[test]
    fn flows_that_were_notified_are_named_with_their_verdict() {
        let text = list(&judged("obeys"));
        let expected = "load1  obeys          at least 31 % less data 16 µs to 65 µs after\n                      notifications than around that (40 measured)\n1 obeys, 0 do not, as the scenario has it";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_contrary_verdict_is_told() {
        let text = summary(&judged("does_not_obey"));
        assert!(text.ends_with("otherwise of load1"), "{text}");
        assert_eq!(
            summary(&judged("unclear")),
            "0 obey, 0 do not, 1 is unclear"
        );
        assert_eq!(judged("none yet")[0].verdict, None);
    }
}
