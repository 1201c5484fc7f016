//! Replaying a capture at its own times: how close the gaps between arrivals come to those of the capture.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::arrivals::{Link, Recorder};
use super::load;
use super::peers::Peer;
use super::programs::{LIMIT, Programs, WATCHERS};
use super::timing::{Timing, evenly, timing};
use crate::failure::Outcome;
use crate::figures::{self, median, worst};

/// How long a replay takes.
const SPAN: Duration = Duration::from_secs(3);

/// Who sends: ours, sleeping and spinning; who has nothing to do but to keep time, which tells what the machine allows;
/// and the others.
enum Sender<'a> {
    Ours { spin: bool },
    Bare,
    Peer(&'a Peer),
}

impl Sender<'_> {
    fn name(&self) -> String {
        match self {
            Self::Ours { spin: false } => "fcn-replay".to_owned(),
            Self::Ours { spin: true } => "fcn-replay --spin".to_owned(),
            Self::Bare => "a bare timer, spinning".to_owned(),
            Self::Peer(peer) => format!("{peer}, spinning"),
        }
    }

    fn command(
        &self,
        (programs, link): (&Programs, &Link),
        capture: &Path,
        (count, gap): (u64, u64),
    ) -> Option<Command> {
        match self {
            Self::Peer(peer) => peer.real_time(link, capture, &programs.senders),
            Self::Bare => {
                let mut command = link.sender(None, &programs.bare_timer);
                let numbers = [load::LENS[0] as u64, count, gap];
                command.arg(link.sending());
                command.args(numbers.map(|number| number.to_string()));
                Some(command)
            }
            Self::Ours { spin } => {
                let mut command = link.sender(None, &programs.replayer);
                command.arg(capture);
                command.args(["--iface", link.sending(), "--quiet"]);
                command.args(spin.then_some("--spin"));
                Some(command)
            }
        }
    }
}

/// Compares everybody at gaps of `gap` nanoseconds.
///
/// # Errors
/// A program of ours fails, or arrivals cannot be recorded.
pub fn run(programs: &Programs, gap: u64, rounds: usize) -> Outcome {
    let link = Link::new(1)?;
    let count = SPAN.as_nanos() as u64 / gap;
    let wanted = (load::LENS[0], count, gap);
    let capture = load::capture(&programs.generator, &programs.scratch, wanted)?;
    let schedule = evenly(gap, count);
    let ours = [false, true].map(|spin| Sender::Ours { spin });
    let mut senders = Vec::from(ours);
    senders.push(Sender::Bare);
    senders.extend(programs.peers.iter().map(Sender::Peer));
    let mut all: Vec<Vec<(Timing, f64)>> = senders.iter().map(|_| Vec::new()).collect();
    let record = programs.scratch.join("arrivals.pcap");
    for _ in 0..rounds {
        for (sender, figures) in senders.iter().zip(&mut all) {
            let command = sender.command((programs, &link), &capture, (count, gap));
            let Some(mut command) = command else {
                continue;
            };
            let recorder = Recorder::start(&link, &record, WATCHERS)?;
            let run = link.run(&mut command, LIMIT)?;
            let arrivals = recorder.finish()?;
            if !matches!(sender, Sender::Peer(_)) {
                run.succeeded(&sender.name())?;
            }
            match timing(&arrivals, &schedule) {
                Ok(timing) => figures.push((timing, run.cpu.both() / SPAN.as_secs_f64())),
                Err(why) => println!("  {}: {why}", sender.name()),
            }
        }
    }
    let every = gap / 1_000;
    println!("\n{count} frames, one every {every} µs, {rounds} rounds in turn, medians");
    let measured = senders.iter().zip(&all).filter(|(_, all)| !all.is_empty());
    let rows: Vec<_> = measured
        .map(|(sender, figures)| row(sender, figures))
        .collect();
    let heading = "|p50 µs|p99 µs|p99.9 µs|max µs|drift ppm|worst ppm|bursts|longest|cores";
    figures::print(heading, &rows);
    Ok(())
}

fn row(sender: &Sender<'_>, figures: &[(Timing, f64)]) -> Vec<String> {
    let all = |of: &dyn Fn(&Timing) -> f64| -> Vec<f64> {
        figures.iter().map(|(timing, _)| of(timing)).collect()
    };
    let drift = all(&|t| t.drift_ppm);
    let cores: Vec<f64> = figures.iter().map(|(_, cores)| *cores).collect();
    let errors =
        [0, 1, 2, 3].map(|at| format!("{:.2}", median(&all(&|t| t.errors[at] as f64 / 1e3))));
    let others = [
        format!("{:+.2}", median(&drift)),
        format!("{:+.2}", worst(&drift)),
        median(&all(&|t| t.bursts as f64)).to_string(),
        median(&all(&|t| t.longest_burst as f64)).to_string(),
        format!("{:.2}", median(&cores)),
    ];
    [&[sender.name()][..], &errors, &others].concat()
}
