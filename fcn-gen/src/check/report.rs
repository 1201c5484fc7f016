//! The output of a check: the announcement before it, and the report as text, JSON, page, JUnit XML,
//! and packets.

use super::bench::{LinkReport, Record};
use super::judge::{Grade, Judgement, Latency, Outcome, Verdict};
use super::page;
use super::plan::{Plan, Setup};
use super::statements::Test;
use crate::pending::Pending;
use crate::scenario::model::Simulation;
use fcn_link::capture_file::{CaptureWriter, Interface, Options};
use fcn_tool::clean::clean;
use fcn_tool::console::to_json;
use fcn_tool::failure::{Failure, Result};
use fcn_tool::quantity::counted;
use fcn_wire::{LinkType, Profile};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

/// Name of the schema.
pub const CHECK_SCHEMA: &str = "fcn-gen/check";
/// Version of the schema: raised when a field changes its meaning or is removed.
pub const CHECK_VERSION: u32 = 1;

/// Names of the files in the output folder.
const REPORT: &str = "report.json";
const PAGE: &str = "report.html";
const JUNIT: &str = "junit.xml";
const PACKETS: &str = "packets.pcapng";

/// Reason for the end of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// The plan was completed.
    Done,
    /// It was interrupted.
    Interrupted,
    /// A link failed, or a packet could not be built.
    Failed(String),
}

/// Result of running a plan.
pub struct CheckRun {
    /// Reason for the end.
    pub end: RunEnd,
    /// The plan, with its completed steps.
    pub plan: Plan,
    /// The recorded frames.
    pub record: Record,
    /// Duration in nanoseconds.
    pub nanoseconds: u64,
}

/// Names of the report's files.
pub const FILES: [&str; 4] = [REPORT, PAGE, JUNIT, PACKETS];

/// Description of the check.
pub struct CheckInfo<'a> {
    /// Role of the device.
    pub role: &'static str,
    /// Name of the device's node.
    pub device: &'a str,
    /// Name of the scenario.
    pub scenario: &'a str,
    /// True if the device is in its default configuration.
    pub off: bool,
    /// Speed relative to the scenario's time.
    pub speed: f64,
    /// Name that the user gives the device.
    pub dut: Option<&'a str>,
    /// Date and time of the start (RFC 3339).
    pub date: String,
    /// Command line.
    pub command: String,
    /// Settings by name.
    pub settings: Vec<(&'static str, String)>,
    /// Code points.
    pub profile: &'a Profile,
}

/// Counts the outcomes by grade: passed, noted, failed, untested.
pub fn counts(outcomes: &[Outcome]) -> [usize; 4] {
    [Grade::Passed, Grade::Noted, Grade::Failed, Grade::Untested].map(|grade| {
        outcomes
            .iter()
            .filter(|outcome| outcome.grade == grade)
            .count()
    })
}

fn heading(info: &CheckInfo<'_>) -> String {
    let CheckInfo {
        role,
        device,
        scenario,
        off,
        speed,
        dut,
        ..
    } = info;
    let mut text = format!("device   {role}: {device} of {scenario}");
    if let Some(dut) = dut {
        let _ = write!(text, ", {}", clean(dut));
    }
    if *off {
        text.push_str(", in its default configuration");
    }
    text.push('\n');
    if *speed != 1.0 {
        let _ = writeln!(
            text,
            "speed    {speed}: rates are multiplied by it, times divided"
        );
    }
    text
}

fn steps_text(plan: &Plan) -> String {
    let mut text = String::new();
    for step in &plan.steps {
        let lasts = Duration::from(step.time.end.since(step.time.start));
        let _ = writeln!(
            text,
            "  {:<12} {:>10}  {}",
            step.id,
            format!("{lasts:.1?}"),
            step.description
        );
    }
    text
}

/// Describes the plan before it is run.
pub fn announcement<'p>(
    info: &CheckInfo<'_>,
    plan: &Plan,
    links: impl Iterator<Item = (&'p str, &'p str, &'p str)>,
) -> String {
    let mut text = heading(info);
    for (interface, peer, mode) in links {
        let _ = writeln!(text, "link     {interface}, acting as {peer}: {mode}");
    }
    if plan.waits {
        text.push_str("waits    for the device's first RoCEv2 packet: start it now\n");
    }
    let lasts = Duration::from(plan.end).div_f64(info.speed);
    let _ = writeln!(text, "until    {lasts:.1?} have passed, or Ctrl-C");
    text
}

/// Describes the tests and the packets that would be sent.
pub fn dry_text(info: &CheckInfo<'_>, setup: &Setup<'_>, plan: &Plan) -> String {
    let mut text = heading(info);
    let tests: Vec<_> = setup
        .wanted
        .iter()
        .filter(|test| setup.applies(**test))
        .collect();
    let ids = tests.iter().map(|test| test.id().len()).max().unwrap_or(0);
    let _ = writeln!(text, "tests    {}", tests.len());
    for test in tests {
        let _ = writeln!(text, "  {:<ids$}  {}", test.id(), test.section());
    }
    text.push_str("steps, at the scenario's speed\n");
    text.push_str(&steps_text(plan));
    let count = plan.frames.len() as u64;
    let _ = writeln!(
        text,
        "frames   {count} of the plan, and those of the nodes played: {}",
        peers(setup, plan)
    );
    text.push_str("nothing was sent\n");
    text
}

fn peers(setup: &Setup<'_>, plan: &Plan) -> String {
    let names: Vec<&str> = plan
        .peers
        .iter()
        .map(|node| setup.simulation.nodes[*node].name.as_str())
        .collect();
    match names.as_slice() {
        [] => "none".to_owned(),
        names => names.join(", "),
    }
}

fn steps_json(plan: &Plan) -> Vec<Value> {
    let step = |step: &super::plan::Step| {
        json!({
            "id": step.id,
            "what": step.description,
            "begin_ns": step.time.start.as_nanos(),
            "end_ns": step.time.end.as_nanos(),
            "frames": step.frames,
        })
    };
    plan.steps.iter().map(step).collect()
}

/// Returns the same as [`dry_text`] as JSON.
pub fn dry_json(info: &CheckInfo<'_>, setup: &Setup<'_>, plan: &Plan) -> Value {
    let tests = setup.wanted.iter().filter(|test| setup.applies(**test));
    let tests = tests
        .map(|test| json!({ "id": test.id(), "section": test.section(), "text": test.text() }));
    json!({
        "schema": CHECK_SCHEMA,
        "version": CHECK_VERSION,
        "dry_run": true,
        "role": info.role,
        "device": info.device,
        "scenario": info.scenario,
        "off": info.off,
        "speed": info.speed,
        "steps": steps_json(plan),
        "tests": tests.collect::<Vec<_>>(),
    })
}

/// Frame numbers as Wireshark counts them, from 1.
fn numbers(outcome: &Outcome) -> Vec<usize> {
    outcome.frames.iter().map(|frame| frame + 1).collect()
}

/// Returns the report as JSON.
///
/// # Errors
/// The report cannot be represented in JSON.
pub fn json(
    info: &CheckInfo<'_>,
    run: &CheckRun,
    links: &[LinkReport],
    Judgement {
        outcomes,
        latencies,
    }: &Judgement,
) -> Result<Value> {
    let [passed, noted, failed, untested] = counts(outcomes);
    let (links_played, links) = (links, to_json(&links)?);
    let tests = outcomes.iter().map(|outcome| {
        json!({
            "id": outcome.test.id(),
            "section": outcome.test.section(),
            "text": outcome.test.text(),
            "forbidden": matches!(outcome.test, Test::Rule(_)),
            "core": outcome.test.is_core(),
            "result": outcome.grade.id(),
            "why": (!outcome.why.is_empty()).then_some(&outcome.why),
            "frames": numbers(outcome),
            "times": outcome.times,
            "judged": outcome.judged,
        })
    });
    let latencies = latencies.iter().map(|latency| {
        json!({
            "what": latency.what,
            "count": latency.count,
            "p50_ns": latency.p50.as_nanos(),
            "p99_ns": latency.p99.as_nanos(),
            "longest_ns": latency.longest.as_nanos(),
        })
    });
    Ok(json!({
        "schema": CHECK_SCHEMA,
        "version": CHECK_VERSION,
        "dry_run": false,
        "role": info.role,
        "device": info.device,
        "scenario": info.scenario,
        "off": info.off,
        "speed": info.speed,
        "made_by": concat!("fcn-gen ", env!("CARGO_PKG_VERSION")),
        "date": info.date,
        "command": info.command,
        "dut": info.dut,
        "settings": info.settings,
        "code_points": info.profile.values().collect::<Vec<_>>(),
        "icrc": page::icrc(&run.record, info.profile),
        "decoded": page::decoded(&run.record, outcomes, links_played, info.profile),
        "seconds": run.nanoseconds as f64 / 1e9,
        "ended": ended(&run.end),
        "verdict": verdict(&run.end, outcomes).id(),
        "links": links,
        "frames": run.record.frames.len(),
        "frames_left_out": run.record.unrecorded,
        "passed": passed,
        "noted": noted,
        "failed": failed,
        "not_tested": untested,
        "latency": latencies.collect::<Vec<_>>(),
        "steps": steps_json(&run.plan),
        "tests": tests.collect::<Vec<_>>(),
    }))
}

/// Returns the result of the check: no run that ended early has passed.
fn verdict(end: &RunEnd, outcomes: &[Outcome]) -> Verdict {
    match (Verdict::new(outcomes), end) {
        (Verdict::Passed, RunEnd::Interrupted | RunEnd::Failed(_)) => Verdict::Inconclusive,
        (verdict, _) => verdict,
    }
}

fn ended(end: &RunEnd) -> &str {
    match end {
        RunEnd::Done => "completed",
        RunEnd::Interrupted => "interrupted",
        RunEnd::Failed(why) => why,
    }
}

/// Returns the report as text: failed and noted tests first, with reasons and frames.
pub fn text(
    run: &CheckRun,
    links: &[LinkReport],
    Judgement {
        outcomes,
        latencies,
    }: &Judgement,
    folder: Option<&Path>,
) -> String {
    let mut text = String::new();
    let ids = outcomes
        .iter()
        .map(|outcome| outcome.test.id().len())
        .max()
        .unwrap_or(0);
    let mut sorted: Vec<&Outcome> = outcomes.iter().collect();
    let place = |grade| match grade {
        Grade::Failed => 0,
        Grade::Noted => 1,
        Grade::Passed => 2,
        Grade::Untested => 3,
    };
    // Tests not run for the same reason are grouped.
    sorted.sort_by_key(|outcome| match outcome.grade {
        Grade::Untested => (3, outcome.why.as_str()),
        grade => (place(grade), ""),
    });
    for (index, outcome) in sorted.iter().enumerate() {
        let result = outcome.grade.id().replace('_', " ");
        let id = outcome.test.id();
        let judged = match outcome.judged {
            0 => String::new(),
            judged => judged.to_string(),
        };
        let section = outcome.test.section();
        let _ = writeln!(text, "{result:<10}  {id:<ids$}  {judged:>7}  {section}");
        let same = |next: &&Outcome| {
            (next.grade, next.why.as_str()) == (Grade::Untested, outcome.why.as_str())
        };
        if outcome.why.is_empty() || sorted.get(index + 1).is_some_and(same) {
            continue;
        }
        let _ = write!(text, "            {}", outcome.why);
        if folder.is_some() && !outcome.frames.is_empty() {
            let frames: Vec<String> = numbers(outcome).iter().map(ToString::to_string).collect();
            let _ = write!(text, " (frame {}", frames.join(", "));
            if outcome.times > 1 {
                let _ = write!(text, "; {}", counted(outcome.times as u64, "time"));
            }
            text.push(')');
        }
        text.push('\n');
    }
    text.push('\n');
    for latency in latencies {
        let Latency {
            what,
            count,
            p50,
            p99,
            longest,
        } = latency;
        let _ = writeln!(
            text,
            "latency     {what}: p50 {p50}, p99 {p99}, longest {longest} ({count} of them)"
        );
    }
    let [passed, noted, failed, untested] = counts(outcomes);
    let seconds = run.nanoseconds as f64 / 1e9;
    let _ = writeln!(
        text,
        "verdict     {}: {passed} passed, {failed} failed, {noted} noted, {untested} not tested; {}, after {seconds:.3} s",
        verdict(&run.end, outcomes).id(),
        ended(&run.end)
    );
    for link in links {
        if link.refused > 0 || link.lost.is_some_and(|lost| lost > 0) {
            let lost = link
                .lost
                .map_or_else(|| "unknown".to_owned(), |lost| lost.to_string());
            let _ = writeln!(
                text,
                "{:<11} {} refused by the link; lost before being read: {lost}",
                link.interface, link.refused
            );
        }
    }
    if run.record.unrecorded > 0 {
        let _ = writeln!(
            text,
            "left out    {} for lack of room",
            counted(run.record.unrecorded, "frame")
        );
    }
    if let Some(folder) = folder {
        let _ = writeln!(
            text,
            "written     {}: {}",
            folder.display(),
            FILES.join(", ")
        );
    }
    text
}

/// Writes the files of a report.
///
/// # Errors
/// A file cannot be written.
pub fn write(
    folder: &Path,
    whole: &Value,
    info: &CheckInfo<'_>,
    (links, simulation): (&[LinkReport], &Simulation),
    (record, outcomes): (&Record, &[Outcome]),
) -> Result {
    Pending::create(&folder.join(REPORT))?.finish(format!("{whole:#}\n").as_bytes())?;
    let mut html = Vec::new();
    page::PAGE
        .write(whole, &mut html)
        .map_err(|error| Failure::io("write", folder, &error))?;
    Pending::create(&folder.join(PAGE))?.finish(&html)?;
    Pending::create(&folder.join(JUNIT))?.finish(junit(info, outcomes).as_bytes())?;
    packets(&folder.join(PACKETS), links, simulation, (record, outcomes))
        .map_err(|error| Failure::failed(error.to_string()))
}

/// Writes all recorded frames to a capture file, with comments on the frames that show failures.
fn packets(
    path: &Path,
    links: &[LinkReport],
    simulation: &Simulation,
    (record, outcomes): (&Record, &[Outcome]),
) -> core::result::Result<(), fcn_link::capture_file::Error> {
    let names = links.iter().flat_map(|link| {
        [
            ("to the device", &link.interface, &link.peer),
            ("from the device", &link.interface, &link.peer),
        ]
    });
    let names: Vec<(String, String)> = names
        .map(|(way, interface, peer)| {
            (
                format!("{interface}, {way}"),
                format!("acting as {peer}, {way}"),
            )
        })
        .collect();
    let interfaces: Vec<Interface<'_>> = names
        .iter()
        .map(|(name, description)| Interface {
            name,
            description,
            link: LinkType::Ethernet,
            snap_len: 0,
        })
        .collect();
    let mut comments: BTreeMap<usize, String> = BTreeMap::new();
    for outcome in outcomes
        .iter()
        .filter(|outcome| outcome.grade != Grade::Passed)
    {
        for frame in &outcome.frames {
            let comment = comments.entry(*frame).or_default();
            if !comment.is_empty() {
                comment.push('\n');
            }
            let _ = write!(
                comment,
                "{} {}: {}",
                outcome.test.id(),
                outcome.grade.id(),
                outcome.why
            );
        }
    }
    let options = Options {
        application: "fcn-gen check",
        ..Options::default()
    };
    let mut writer = CaptureWriter::create(path, &options, &interfaces)?;
    for (index, passed, bytes) in record.iter() {
        let interface = (passed.link * 2 + usize::from(passed.by_device)) as u32;
        let at = simulation.epoch + passed.at.as_nanos();
        let comment = comments.get(&index).map_or("", String::as_str);
        writer.packet_commented(interface, at, bytes, bytes.len() as u32, comment)?;
    }
    writer.finish()?;
    Ok(())
}

/// Returns the report as JUnit XML.
pub fn junit(info: &CheckInfo<'_>, outcomes: &[Outcome]) -> String {
    let [_, _, failed, untested] = counts(outcomes);
    let suite = escaped(&format!("fcn-gen check {}", info.role));
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"{suite}\" tests=\"{}\" failures=\"{failed}\" skipped=\"{untested}\">\n",
        outcomes.len()
    );
    for outcome in outcomes {
        let (name, section) = (escaped(outcome.test.id()), escaped(&outcome.test.section()));
        let _ = write!(
            text,
            "    <testcase classname=\"{section}\" name=\"{name}\""
        );
        let why = escaped(&outcome.why);
        let inside = match outcome.grade {
            Grade::Passed => {
                text.push_str("/>\n");
                continue;
            }
            Grade::Failed => {
                let frames: Vec<String> =
                    numbers(outcome).iter().map(ToString::to_string).collect();
                let text_of = escaped(outcome.test.text());
                format!(
                    "<failure message=\"{why}\">{text_of}; {PACKETS}, frame {}</failure>",
                    frames.join(", ")
                )
            }
            Grade::Noted => format!("<system-out>{why}</system-out>"),
            Grade::Untested => format!("<skipped message=\"{why}\"/>"),
        };
        let _ = writeln!(text, ">{inside}</testcase>");
    }
    text.push_str("  </testsuite>\n</testsuites>\n");
    text
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    out
}
