//! Replaying a capture at its own times: how close the gaps between arrivals come to those of the capture.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::arrivals::{self, Recorder};
use super::network::{Network, Plan};
use super::peers::Peer;
use super::timing::{Timing, evenly, timing};
use super::{LIMIT, OTHERS, Programs, load, median, senders, succeeded, table};
use crate::failure::Outcome;

/// How long a replay takes.
const SPAN: Duration = Duration::from_secs(3);

enum Sender<'a> {
    Sleeping,
    Spinning,
    /// Who has nothing to do but to keep time: what the machine allows.
    Bare,
    Peer(&'a Peer),
}

impl Sender<'_> {
    fn name(&self) -> String {
        match self {
            Self::Sleeping => "fcn-replay".to_owned(),
            Self::Spinning => "fcn-replay --spin".to_owned(),
            Self::Bare => "a bare timer, spinning".to_owned(),
            Self::Peer(peer) => format!("{peer}, spinning"),
        }
    }
}

/// Compares everybody at gaps of `gap` nanoseconds.
///
/// # Errors
/// A program of ours fails, or arrivals cannot be recorded.
pub fn run(programs: &Programs, scratch: &Path, gap: u64, rounds: usize) -> Outcome {
    let network = Network::new(&Plan::default())?;
    let count = (SPAN.as_nanos() / u128::from(gap)) as usize;
    let (capture, _) = load::capture(&programs.generator, scratch, (load::LENS[0], count, gap))?;
    let schedule = evenly(gap, count);
    let mut senders = vec![Sender::Sleeping, Sender::Spinning, Sender::Bare];
    senders.extend(programs.peers.iter().map(Sender::Peer));
    let mut all: Vec<Vec<(Timing, f64)>> = senders.iter().map(|_| Vec::new()).collect();
    let record = scratch.join("arrivals.pcap");
    for _ in 0..rounds {
        for (sender, figures) in senders.iter().zip(&mut all) {
            let Some(mut command) = command(sender, programs, &network, &capture, (count, gap))
            else {
                continue;
            };
            let recorder = Recorder::start(&network.receiver, &record, Some(OTHERS))?;
            let run = arrivals::run(&network, &mut command, LIMIT)?;
            let recording = recorder.finish()?;
            if !matches!(sender, Sender::Peer(_)) {
                succeeded(&run, &sender.name())?;
            }
            match timing(&recording.arrivals, &schedule) {
                Ok(timing) => {
                    let cores = run.cpu.both().as_secs_f64() / SPAN.as_secs_f64();
                    figures.push((timing, cores));
                }
                Err(why) => println!("  {}: {why}", sender.name()),
            }
        }
    }
    println!(
        "\n{count} frames, one every {} µs, {rounds} rounds in turn, medians",
        gap / 1_000
    );
    let rows: Vec<Vec<String>> = senders
        .iter()
        .zip(&all)
        .filter(|(_, figures)| !figures.is_empty())
        .map(|(sender, figures)| row(sender, figures))
        .collect();
    let heading = [
        "",
        "p50 µs",
        "p99 µs",
        "p99.9 µs",
        "max µs",
        "drift ppm",
        "worst ppm",
        "bursts",
        "longest",
        "cores",
    ];
    table::print(&heading, &rows);
    Ok(())
}

fn command(
    sender: &Sender<'_>,
    programs: &Programs,
    network: &Network,
    capture: &Path,
    (count, gap): (usize, u64),
) -> Option<Command> {
    let mut command = match sender {
        Sender::Peer(peer) => return peer.real_time(&network.sender, capture, Some(&senders())),
        Sender::Bare => {
            let mut command = network.sender.command(&programs.bare_timer);
            command.arg(network.sender.interface());
            command.args([
                load::LENS[0].to_string(),
                count.to_string(),
                gap.to_string(),
            ]);
            return Some(command);
        }
        _ => network.sender.command(&programs.replayer),
    };
    command.arg(capture);
    command.args(["--iface", network.sender.interface(), "--quiet"]);
    if matches!(sender, Sender::Spinning) {
        command.arg("--spin");
    }
    Some(command)
}

fn row(sender: &Sender<'_>, figures: &[(Timing, f64)]) -> Vec<String> {
    let middle = |of: &dyn Fn(&Timing) -> f64| {
        median(
            &figures
                .iter()
                .map(|(timing, _)| of(timing))
                .collect::<Vec<_>>(),
        )
    };
    let us = |of: &dyn Fn(&Timing) -> u64| format!("{:.2}", middle(&|t| of(t) as f64 / 1e3));
    let worst = figures
        .iter()
        .map(|(t, _)| t.drift_ppm)
        .fold(
            0.0,
            |worst: f64, ppm| {
                if ppm.abs() > worst.abs() { ppm } else { worst }
            },
        );
    let cores: Vec<f64> = figures.iter().map(|(_, cores)| *cores).collect();
    vec![
        sender.name(),
        us(&|t| t.p50),
        us(&|t| t.p99),
        us(&|t| t.p99_9),
        us(&|t| t.max),
        format!("{:+.2}", middle(&|t| t.drift_ppm)),
        format!("{worst:+.2}"),
        format!("{}", middle(&|t| t.bursts as f64)),
        format!("{}", middle(&|t| t.longest_burst as f64)),
        format!("{:.2}", median(&cores)),
    ]
}
