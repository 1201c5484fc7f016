//! Shows what would be sent: the first frames in a table, and totals. Needs no interface and no
//! permissions.

use crate::cli::Cli;
use crate::outcome::Outcome;
use crate::pipeline::Pipeline;
use crate::timing::{Loops, TimeBase};
use crate::{plan, summary};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use fcn_link::pacing::FCS_LEN;
use fcn_link::sender::per_second;
use fcn_tool::console::{Console, print, print_json};
use fcn_tool::failure::Result;
use fcn_tool::quantity::{bits_per_second, grouped};
use fcn_wire::Profile;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// A row of the table.
struct Row {
    number: u64,
    /// Seconds since the first frame; `None` at top speed.
    at: Option<f64>,
    /// Interface of the capture, and the queue by which the frame leaves.
    interface: u32,
    job: usize,
    octets: usize,
    summary: String,
}

/// Reads the capture and shows what would be sent.
pub(crate) fn show(cli: &Cli, console: &mut Console<'_>) -> Result {
    let targets = plan::targets(cli)?;
    let mut pipeline = plan::pipeline(cli, &targets)?;
    let first = Loops::first(pipeline.by());
    let timed = pipeline.by() != TimeBase::Nothing;
    let profile = Profile::default();
    let mut rows = Vec::new();
    while pipeline.step(|frame| {
        if rows.len() < cli.printing.show {
            rows.push(Row {
                number: frame.number,
                at: timed.then(|| first.due(0, frame.place) as f64 / 1e9),
                interface: frame.interface,
                job: frame.job,
                octets: frame.octets.len(),
                summary: summary::line(frame.octets, &profile),
            });
        }
    })? {}
    let outcome = Outcome::new(&pipeline, false);
    if cli.printing.json {
        print_json(console.out, &as_json(cli, &pipeline, &rows, &outcome))?;
    } else {
        print(console.out, &as_text(cli, &pipeline, &rows, &outcome))?;
    }
    outcome.require_frames()
}

/// Returns the duration of a loop in seconds, without the gap to the next one; `None` at top speed.
fn seconds(pipeline: &Pipeline) -> Option<f64> {
    let nothing = std::time::Duration::ZERO;
    (pipeline.by() != TimeBase::Nothing)
        .then(|| pipeline.loops(Some(nothing)).lasting(1).as_secs_f64())
}

fn as_text(cli: &Cli, pipeline: &Pipeline, rows: &[Row], outcome: &Outcome) -> String {
    let tally = outcome.tally();
    let several = pipeline.selection.interfaces().0 > 1;
    let jobs = pipeline.splitting.jobs() > 1;
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    let mut head = vec!["frame", "time (s)", "octets"];
    if several {
        head.push("seen at");
    }
    if jobs {
        head.push("sent on");
    }
    head.push("what");
    table.set_header(head);
    for row in rows {
        let mut cells = vec![
            row.number.to_string(),
            row.at
                .map_or_else(|| "-".to_owned(), |at| format!("{at:.9}")),
            row.octets.to_string(),
        ];
        if several {
            cells.push(pipeline.interface_name(row.interface));
        }
        if jobs {
            cells.push(output_label(cli, pipeline, row.job));
        }
        cells.push(row.summary.clone());
        table.add_row(cells);
    }
    for column in 0..3 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut text = String::new();
    if !rows.is_empty() {
        for line in table.lines() {
            let _ = writeln!(text, "{}", line.trim_end());
        }
        let more = tally.selected.saturating_sub(rows.len() as u64);
        if more > 0 {
            let _ = writeln!(text, "… and {} more", grouped(more));
        }
        text.push('\n');
    }
    let mut lines = outcome.lines();
    lines.push(("to send", outcome.in_short()));
    lines.push(("timing", plan::say_timing(cli)));
    if let Some(seconds) = seconds(pipeline) {
        let mut what = format!("{seconds:.9} s per loop");
        // At a rate, a loop lasts to the end of the last frame's share of time; otherwise to its
        // last frame.
        let frames = match pipeline.by() {
            TimeBase::Rate { .. } => tally.selected + 1,
            _ => tally.selected,
        };
        let octets = tally.octets + tally.selected * FCS_LEN;
        let share = frames as f64 / tally.selected as f64;
        let rate = |what: f64| per_second(what * share, frames, seconds);
        if let (Some(packets), Some(bits)) =
            (rate(tally.selected as f64), rate(octets as f64 * 8.0))
        {
            let _ = write!(
                what,
                ", {} packet/s, {} (layer 2)",
                grouped(packets.round() as u64),
                bits_per_second(bits)
            );
        }
        lines.push(("lasting", what));
    }
    lines.push(("loops", plan::say_extent(cli)));
    if cli.link.iface.is_none() {
        lines.push((
            "length",
            "not checked against an MTU (needs --iface)".to_owned(),
        ));
    }
    for (name, what) in lines {
        let _ = writeln!(text, "{name:<10} {what}");
    }
    text
}

/// Returns the interface and queue of a job.
fn output_label(cli: &Cli, pipeline: &Pipeline, job: usize) -> String {
    let side = pipeline.splitting.side(job);
    let name = match side {
        0 => cli.link.iface.as_deref(),
        _ => cli.second.iface2.as_deref(),
    };
    let queue = job - side * cli.link.queues as usize;
    match (name, cli.link.queues) {
        (Some(name), 1) => name.to_owned(),
        (Some(name), _) => format!("{name} queue {queue}"),
        (None, _) => format!("queue {queue}"),
    }
}

fn as_json(cli: &Cli, pipeline: &Pipeline, rows: &[Row], outcome: &Outcome) -> Value {
    let frames: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "number": row.number,
                "seconds": row.at,
                "interface": pipeline.interface_name(row.interface),
                "leaves_by": output_label(cli, pipeline, row.job),
                "octets": row.octets,
                "summary": row.summary,
            })
        })
        .collect();
    let mut value = outcome.json(0);
    if let Value::Object(fields) = &mut value {
        fields.remove("loops");
        fields.insert("schema".to_owned(), "fcn-replay/dry-run".into());
        fields.insert("frames".to_owned(), frames.into());
        fields.insert("loop_seconds".to_owned(), seconds(pipeline).into());
    }
    value
}
