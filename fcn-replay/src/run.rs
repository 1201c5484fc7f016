//! From the command line to the exit code: parses the arguments, loads the capture, opens the link,
//! and sends the frames.

use crate::cli::Cli;
use crate::dry_run;
use crate::loading::{Loaded, load};
use crate::outcome::Outcome;
use crate::pipeline::Pipeline;
use crate::plan::{self, Target};
use crate::source::{Preloaded, good_slots};
use crate::streaming::{Extent, streams};
use clap::Parser;
use fcn_link::backend::{Queue, SlotCount};
use fcn_link::file_transmit::CapturePoints;
use fcn_link::sender::{Batch, Settings, Source};
use fcn_tool::console::{Console, conclude, usage};
use fcn_tool::failure::{Failure, Result};
use fcn_tool::quantity::grouped;
use fcn_tool::sending::{self, Opened};
use std::ffi::OsString;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

const PROGRAM: &str = "fcn-replay";

/// Executes the command in `args` (the first is the program's name); returns the exit code.
pub fn run(args: impl IntoIterator<Item = OsString>, console: &mut Console<'_>) -> u8 {
    let done = match Cli::try_parse_from(args) {
        Ok(cli) => plan::check(&cli).and_then(|()| match cli.printing.dry_run {
            true => dry_run::show(&cli, console),
            false => replay(&cli, console),
        }),
        Err(error) => usage(&error, console),
    };
    conclude(PROGRAM, done, console)
}

fn replay(cli: &Cli, console: &mut Console<'_>) -> Result {
    let stop = (console.catch_interrupt)()?;
    let targets = plan::targets(cli)?;
    let mut pipeline = plan::pipeline(cli, &targets)?;
    let limit = plan::memory_limit(cli);
    let (may_load, may_stream) = plan::loading_modes(cli, limit);
    if may_load {
        match load(&mut pipeline, limit, &stop)? {
            Some(loaded) => {
                return from_memory(cli, &targets, (&pipeline, loaded), &stop, console);
            }
            None if may_stream => pipeline.restart()?,
            None => {
                return Err(Failure::failed("the capture does not fit into memory")
                    .and(format!("at most {} octets are allowed", grouped(limit)))
                    .and("raise --memory-limit, or stream the file with --preload no"));
            }
        }
    }
    streamed(cli, &targets, &mut pipeline, limit, (&stop, console))
}

fn from_memory(
    cli: &Cli,
    targets: &[Target],
    (pipeline, loaded): (&Pipeline, Loaded),
    stop: &AtomicBool,
    console: &mut Console<'_>,
) -> Result {
    let outcome = Outcome::new(pipeline, false);
    outcome.require_frames()?;
    let variation = pipeline.rewriting.variation()?;
    let loops = pipeline.loops(cli.loops.loop_gap);
    let several = plan::loops(cli) != Some(1);
    if several && cli.link.output.is_some() && loops.lasting(1).is_zero() {
        plan::refuse_duration(cli, "a loop takes no time: all its frames are due at once")?;
    }
    let totals = loaded.totals(plan::loops(cli), cli.limits.count);
    let longest = loaded.longest();
    let queues = cli.link.queues as usize;
    let slots: Vec<Option<SlotCount>> = loaded
        .batches
        .chunks(queues)
        .map(|batches| slots_for(batches, longest).map(SlotCount::all))
        .collect();
    let opened = open(targets, &pipeline.capture_points, |side| {
        (slots.get(side).copied().flatten(), Some(longest))
    })?;
    let mean = outcome.tally().octets / loaded.frames.max(1);
    let sources = loaded
        .batches
        .into_iter()
        .zip(totals)
        .map(|(batch, total)| Preloaded::new(batch, loops, variation.clone(), total))
        .collect();
    let what = format!("{}, in memory", outcome.in_short());
    announce(cli, &opened, what, outcome.lines(), console)?;
    let jobs = queues * targets.len();
    let settings = settings(cli, jobs, Some(mean as usize), pipeline.begins());
    send(cli, opened, (sources, settings), (stop, console), || {
        Ok(outcome)
    })
}

/// Returns a suitable number of slots for the frames of `batches`, each of one queue.
fn slots_for(batches: &[Batch], longest: usize) -> Option<usize> {
    let all = batches
        .iter()
        .filter(|batch| !batch.is_empty())
        .try_fold(1, |all, batch| {
            let common = common_multiple(all, batch.len());
            good_slots(common, longest).map(|_| common)
        })?;
    good_slots(all, longest)
}

fn common_multiple(a: usize, b: usize) -> usize {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    (a / x.max(1)).saturating_mul(b)
}

/// Number of slots for a capture file that is written while another is read: each has room for the
/// longest frame.
const STREAMED: usize = 256;

fn streamed(
    cli: &Cli,
    targets: &[Target],
    pipeline: &mut Pipeline,
    limit: u64,
    (stop, console): (&AtomicBool, &mut Console<'_>),
) -> Result {
    if targets.iter().any(|target| target.interface.is_none()) {
        pipeline.room.longest = plan::LONGEST_STREAMED;
    }
    let extent = Extent {
        loops: plan::loops(cli),
        count: cli.limits.count,
        loop_gap: cli.loops.loop_gap,
        memory: limit,
    };
    let (sources, feeder, begun) = streams(pipeline.splitting.jobs(), extent);
    let jobs = sources.len();
    let seen_at = pipeline.capture_points.clone();
    thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let result = feeder.feed(pipeline, stop);
            (Outcome::new(pipeline, true), result)
        });
        let read = || {
            let (outcome, result) = reading
                .join()
                .map_err(|_| Failure::failed("reading the capture").and("its thread panicked"))?;
            result.map(|()| outcome)
        };
        let Ok(begins) = begun.recv() else {
            // Everything was read without a frame to send, or reading failed.
            drop(sources);
            return read()?.require_frames();
        };
        let opened = open(targets, &seen_at, |_| {
            let to_file = targets.iter().any(|target| target.interface.is_none());
            if to_file {
                (Some(SlotCount::all(STREAMED)), Some(plan::LONGEST_STREAMED))
            } else {
                (None, None)
            }
        })?;
        let what = format!("{}, read while it is sent", plan::say_files(cli));
        announce(cli, &opened, what, Vec::new(), console)?;
        let settings = settings(cli, jobs, None, begins);
        send(cli, opened, (sources, settings), (stop, console), read)
    })
}

/// Opens the targets; `room` returns for each the number of slots and the maximum length of a
/// frame.
fn open(
    targets: &[Target],
    capture_points: &CapturePoints,
    room: impl Fn(usize) -> (Option<SlotCount>, Option<usize>),
) -> Result<Vec<Opened>> {
    targets
        .iter()
        .enumerate()
        .map(|(side, target)| {
            let (slots, longest) = room(side);
            let mut opened = sending::open(&target.options, slots, longest, PROGRAM)?;
            for queue in &mut opened.queues {
                if let Queue::File(file) = queue {
                    file.describe(capture_points.clone());
                }
            }
            Ok(opened)
        })
        .collect()
}

fn announce(
    cli: &Cli,
    opened: &[Opened],
    what: String,
    lines: Vec<(&'static str, String)>,
    console: &mut Console<'_>,
) -> Result {
    let mut details = vec![("sending", what)];
    details.extend(lines.into_iter().skip(1));
    details.push(("timing", plan::say_timing(cli)));
    details.push(("loops", plan::say_extent(cli)));
    for (i, opened_one) in opened.iter().enumerate() {
        let details: &[_] = if i + 1 == opened.len() { &details } else { &[] };
        sending::announce(opened_one, details, cli.printing.quiet, console)?;
    }
    Ok(())
}

fn settings(cli: &Cli, jobs: usize, mean: Option<usize>, epoch: u64) -> Settings {
    let (pace, burst) = plan::pace(cli, jobs, mean);
    Settings {
        pace,
        burst,
        catch_up: cli.manner.catch_up(),
        waiting: cli.manner.waiting(),
        // Sources apply the limit themselves, over all queues.
        count: None,
        duration: cli.limits.duration,
        offset: Duration::ZERO,
        epoch,
    }
}

/// Sends the frames; then `read` returns the result of processing the capture.
fn send<S: Source>(
    cli: &Cli,
    opened: Vec<Opened>,
    (sources, settings): (Vec<S>, Settings),
    (stop, console): (&AtomicBool, &mut Console<'_>),
    read: impl FnOnce() -> Result<Outcome>,
) -> Result {
    let quiet = cli.printing.quiet;
    let settings = vec![settings; sources.len()];
    // The reader of the file stops when its frames are no longer taken.
    let (report, queues) = sending::send((opened, sources, settings), stop, quiet, console);
    let (outcome, failed) = match read() {
        Ok(outcome) => (Some(outcome), None),
        Err(failure) => (None, Some(failure)),
    };
    let mut lines = Vec::new();
    let mut json = vec![serde_json::json!({ "schema": "fcn-replay/report" })];
    if let Some(outcome) = &outcome {
        let pushed = report.total.pushed;
        lines = outcome.lines();
        lines.push(("loops", format!("{} whole", grouped(outcome.loops(pushed)))));
        json.push(outcome.json(pushed));
    }
    let done = sending::conclude(
        &report,
        queues,
        (&lines, json),
        (quiet, cli.printing.json),
        console,
    );
    match failed {
        Some(failure) => done.and(Err(failure)),
        None => done,
    }
}
