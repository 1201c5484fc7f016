//! Messages about sending: before the first frame, each second, and at the end; also the exit code.

use super::open::Opened;
use crate::console::{Console, print, print_json, to_json};
use crate::failure::{Failure, Result};
use crate::quantity::{bits_per_second, counted, grouped};
use fcn_link::backend::Queue;
use fcn_link::file_transmit::STDOUT;
use fcn_link::sender::{Ended, Job, Report, Settings, Source, Tick, run};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A run is late if its last frame leaves more than this after its time.
const LATE: Duration = Duration::from_millis(100);

/// Sends the frames of each source by its queue in `opened`, according to its settings, and reports
/// progress unless `quiet`. Returns the report, and the queues in their final state; the sources
/// are dropped.
pub fn send<S: Source>(
    (opened, sources, settings): (Vec<Opened>, Vec<S>, Vec<Settings>),
    stop: &AtomicBool,
    quiet: bool,
    console: &mut Console<'_>,
) -> (Report, Vec<Queue>) {
    let (mut interfaces, mut queues) = (Vec::new(), Vec::new());
    for opened in opened {
        interfaces.extend(opened.interface);
        queues.extend(opened.queues);
    }
    let jobs = queues.into_iter().zip(sources).zip(settings);
    let jobs = jobs.map(|((queue, source), settings)| Job {
        queue,
        source,
        settings,
    });
    let interfaces: Vec<_> = interfaces.iter().collect();
    let (report, rest) = run(jobs.collect(), &interfaces, stop, &mut |now| {
        if !quiet {
            tick(now, console);
        }
    });
    (report, rest.into_iter().map(|(queue, _)| queue).collect())
}

/// Prints what will be sent, where, how fast and until when, to standard error, unless `quiet`:
/// `details` are names and texts.
///
/// # Errors
/// Standard error cannot be written.
pub fn announce(
    opened: &Opened,
    details: &[(&str, String)],
    quiet: bool,
    console: &mut Console<'_>,
) -> Result {
    if quiet {
        return Ok(());
    }
    let mut text = format!("to       {}\n", opened.describe());
    for queue in &opened.queues {
        let _ = writeln!(text, "queue    {}", queue.mode());
    }
    for (name, detail) in details {
        let _ = writeln!(text, "{name:<8} {detail}");
    }
    print(console.err, &text)
}

/// Prints progress to standard error.
fn tick(tick: &Tick, console: &mut Console<'_>) {
    if tick.unpaced {
        // The speed of writing on this machine is of no interest.
        let _ = writeln!(
            console.err,
            "{:>7.1} s  {} written",
            tick.at,
            grouped(tick.sent)
        );
        return;
    }
    let mut text = format!(
        "{:>7.1} s  {:>11} packet/s  {:>14}  {} sent",
        tick.at,
        grouped(tick.packets_per_second.round() as u64),
        bits_per_second(tick.l2_bits_per_second),
        grouped(tick.sent),
    );
    if tick.dropped > 0 {
        let _ = write!(text, ", {} dropped", grouped(tick.dropped));
    }
    if tick.starved > 0 {
        let _ = write!(text, ", source late {}", counted(tick.starved, "time"));
    }
    text.push('\n');
    // An unread message is no reason to stop.
    let _ = console.err.write_all(text.as_bytes());
}

/// Finishes a capture file, prints the report, as text or JSON on standard output, and determines
/// the result of the tool: success only if something was sent, and all of it was, on time. `more`
/// is added to the JSON, `lines` to the text.
///
/// # Errors
/// Nothing was sent, the link failed, the run was interrupted or late, or the file cannot be
/// finished.
pub fn conclude(
    report: &Report,
    queues: Vec<Queue>,
    (lines, more): (&[(&str, String)], Vec<Value>),
    (quiet, as_json): (bool, bool),
    console: &mut Console<'_>,
) -> Result {
    // If the capture goes to standard output, nothing else does.
    let to_stdout = queues.iter().any(|queue| queue.mode().target == STDOUT);
    let mut written = None;
    for queue in queues {
        if let Queue::File(file) = queue {
            let summary = file
                .finish()
                .map_err(|error| Failure::failed(error.to_string()))?;
            *written.get_or_insert(0) += summary.packets;
        }
    }
    let out = if to_stdout {
        &mut *console.err
    } else {
        &mut *console.out
    };
    if as_json {
        print_json(out, &as_value(report, more)?)?;
    } else if !quiet {
        print(out, &as_text(report, lines))?;
    }
    match &report.ended {
        Ended::LinkFailed(why) => Err(Failure::failed(why.clone())),
        Ended::Interrupted => Err(Failure::interrupted(format!(
            "sent so far: {}",
            counted(report.sent(), "packet")
        ))),
        Ended::Done | Ended::TimeUp if report.sent() == 0 => {
            Err(Failure::failed("nothing was sent"))
        }
        // The sampler may have selected none of the packets.
        Ended::Done | Ended::TimeUp if written == Some(0) => Err(nothing_sampled()),
        Ended::Done | Ended::TimeUp => match behind_schedule(report) {
            Some(behind) => Err(Failure::late(behind).and(
                "the link, or this machine, is slower than the frames' times: lower the rate or speed, or add --queues",
            )),
            None => Ok(()),
        },
    }
}

/// Creates a failure because the sampler selected none of the packets.
#[must_use]
pub fn nothing_sampled() -> Failure {
    Failure::failed("no packet was sampled")
        .and("--mirror sflow")
        .and("sample more often, or play for longer")
}

fn as_value(report: &Report, more: Vec<Value>) -> Result<Value> {
    let mut value = json!({
        "sent": report.sent(),
        "dropped": report.dropped(),
        "unfinished": report.unfinished(),
        "seconds": report.seconds,
        "packets_per_second": report.packets_per_second(),
        "l2_bits_per_second": report.l2_bits_per_second(),
        "l1_bits_per_second": report.l1_bits_per_second(),
    });
    if let Value::Object(fields) = &mut value {
        for other in [to_json(report)?].into_iter().chain(more) {
            if let Value::Object(other) = other {
                fields.extend(other);
            }
        }
        if report.due_seconds.is_some() {
            for not_measured in [
                "packets_per_second",
                "l2_bits_per_second",
                "l1_bits_per_second",
                "timing",
            ] {
                fields.insert(not_measured.to_owned(), Value::Null);
            }
        }
    }
    Ok(value)
}

/// Formats the report for human readers.
fn as_text(report: &Report, lines: &[(&str, String)]) -> String {
    let mut text = String::new();
    let mut line = |name: &str, what: String| {
        let _ = writeln!(text, "{name:<10} {what}");
    };
    let ended = match &report.ended {
        Ended::Done if report.due_seconds.is_some() => "everything was written".to_owned(),
        Ended::Done => "everything was sent".to_owned(),
        Ended::TimeUp => "the time was up".to_owned(),
        Ended::Interrupted => "interrupted".to_owned(),
        Ended::LinkFailed(why) => why.clone(),
    };
    line("ended", ended);
    let packets = counted(report.sent(), "packet");
    let octets = counted(report.total.octets, "octet");
    let seconds = report.seconds;
    if let Some(due) = report.due_seconds {
        line("written", format!("{packets}, {octets}, in {seconds:.3} s"));
        line("lasting", format!("{due:.9} s by their time stamps"));
    } else {
        line("sent", format!("{packets}, {octets}, in {seconds:.3} s"));
        if let (Some(packets), Some(l2), Some(l1)) = (
            report.packets_per_second(),
            report.l2_bits_per_second(),
            report.l1_bits_per_second(),
        ) {
            line(
                "rate",
                format!(
                    "{} packet/s, {} (layer 2), {} (layer 1)",
                    grouped(packets.round() as u64),
                    bits_per_second(l2),
                    bits_per_second(l1)
                ),
            );
        }
        line("dropped", dropped(report));
    }
    if report.queues.len() > 1 {
        for queue in &report.queues {
            let place = queue
                .pinned_to
                .map_or_else(|| "unpinned".to_owned(), |cpu| format!("processor {cpu}"));
            let sent = counted(queue.counts.completed, "packet");
            line("queue", format!("{}: {sent}, {place}", queue.mode.kind));
        }
    }
    let timing = &report.timing;
    if timing.frames() > 0 {
        line(
            "timing",
            format!("{} (handed over vs. due)", timing.error()),
        );
        line("gaps", format!("{} (gap vs. gap due)", timing.gap_error()));
        if timing.largest_batch() > 1 {
            line(
                "bursts",
                format!("at most {} packets", timing.largest_batch()),
            );
        }
    }
    let starved: u64 = report.queues.iter().map(|queue| queue.starved).sum();
    if starved > 0 {
        line(
            "late",
            format!("the source was late {}", counted(starved, "time")),
        );
    }
    for why in &report.unwatched {
        line("unwatched", why.clone());
    }
    for (name, what) in lines {
        line(name, what.clone());
    }
    if let Some(behind) = behind_schedule(report) {
        line("behind", behind);
    }
    text
}

/// Returns how late a late run ended; `None` if it was on time.
fn behind_schedule(report: &Report) -> Option<String> {
    let behind = report.timing.behind();
    // Frames that are written immediately have no time.
    (report.due_seconds.is_none() && behind > LATE).then(|| {
        format!(
            "the last frame left {:.2} s behind schedule",
            behind.as_secs_f64()
        )
    })
}

fn dropped(report: &Report) -> String {
    let mut text = match report.dropped() {
        0 => "none reported by the kernel".to_owned(),
        n => format!("{} by the kernel", grouped(n)),
    };
    if report.total.invalid > 0 {
        let _ = write!(
            text,
            ", {} of them as invalid",
            grouped(report.total.invalid)
        );
    }
    if report.unfinished() > 0 {
        let _ = write!(
            text,
            "; {} were still in flight",
            grouped(report.unfinished())
        );
    }
    text
}
