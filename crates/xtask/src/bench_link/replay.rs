//! Replaying a capture at its own times: errors of the gaps between arrivals, compared with those
//! of the capture.

use std::process::Command;
use std::time::Duration;

use super::arrivals::{Link, Recorder};
use super::load;
use super::timing::{Timing, evenly, timing};
use super::{LIMIT, Programs, WATCHERS};
use crate::failure::Outcome;
use crate::figures::{self, Ratio, median, worst};

/// Duration of a replay.
const SPAN: Duration = Duration::from_secs(3);

/// A sender: its name, whether it is ours, the command, and the figures of each round with the
/// share of a processor that it took.
struct Sender<'a> {
    name: String,
    own: bool,
    command: Box<dyn Fn() -> Command + 'a>,
    figures: Vec<(Timing, f64)>,
}

impl<'a> Sender<'a> {
    fn new(name: &str, own: bool, command: impl Fn() -> Command + 'a) -> Self {
        Self {
            name: name.to_owned(),
            own,
            command: Box::new(command),
            figures: Vec::new(),
        }
    }
}

/// Compares all senders at gaps of `gap` nanoseconds.
///
/// # Errors
/// Returns an error if a program of ours fails, or arrivals cannot be recorded.
pub fn run(programs: &Programs, gap: u64, rounds: usize, ratios: &mut Vec<Ratio>) -> Outcome {
    let link = &Link::new(1)?;
    let count = SPAN.as_nanos() as u64 / gap;
    let load = (load::LENS[0], count, gap);
    let capture = &load::capture(&programs.generator, &programs.scratch, load)?;
    let schedule = evenly(gap, count);
    let replayer = |more: &'static [&str]| {
        move || {
            let mut command = link.sender(None, &programs.replayer);
            command.arg(capture).args(["--iface", link.sending()]);
            command.arg("--quiet").args(more);
            command
        }
    };
    // It does nothing but keep time, which shows the limit of the machine.
    let bare = || {
        let mut command = link.sender(None, &programs.bare_timer);
        let numbers = [load::LENS[0] as u64, count, gap];
        command.arg(link.sending());
        command.args(numbers.map(|number| number.to_string()));
        command
    };
    let mut senders = vec![
        Sender::new("fcn-replay", true, replayer(&[])),
        Sender::new("fcn-replay --spin", true, replayer(&["--spin"])),
        Sender::new("a bare timer, spinning", true, bare),
    ];
    for peer in programs.peers.iter().filter(|peer| peer.replays()) {
        let command = || peer.real_time(link, capture, &programs.senders);
        let name = format!("{peer}, spinning");
        senders.push(Sender::new(&name, false, command));
    }
    let record = programs.scratch.join("arrivals.pcap");
    for _ in 0..rounds {
        for sender in &mut senders {
            let recorder = Recorder::start(link, &record, WATCHERS)?;
            let run = link.run(&mut (sender.command)(), LIMIT)?;
            let arrivals = recorder.finish()?;
            if sender.own {
                run.succeeded(&sender.name)?;
            }
            match timing(&arrivals, &schedule) {
                Ok(timing) => {
                    let cores = run.cpu.both() / SPAN.as_secs_f64();
                    sender.figures.push((timing, cores));
                }
                Err(why) => println!("  {}: {why}", sender.name),
            }
        }
    }
    let every = gap / 1_000;
    println!("\n{count} frames, one every {every} µs, {rounds} rounds in turn, medians");
    senders.retain(|sender| !sender.figures.is_empty());
    let rows: Vec<_> = senders.iter().map(row).collect();
    let heading = "|p50 µs|p99 µs|p99.9 µs|max µs|drift ppm|worst ppm|bursts|longest|cores";
    figures::print(heading, &rows);
    let p99 = |sender: &Sender<'_>| {
        let errors = sender
            .figures
            .iter()
            .map(|(timing, _)| timing.errors[1] as f64);
        median(&errors.collect::<Vec<_>>())
    };
    if let Some((own, others)) = senders.split_first().filter(|(own, _)| own.own) {
        ratios.extend(others.iter().map(|other| Ratio {
            what: format!("{}: a frame every {every} µs", own.name),
            against: other.name.clone(),
            ratio: format!("{:.3} times the gaps' error (p99)", p99(own) / p99(other)),
        }));
    }
    Ok(())
}

fn row(sender: &Sender<'_>) -> Vec<String> {
    let all = |figure: &dyn Fn(&(Timing, f64)) -> f64| -> Vec<f64> {
        sender.figures.iter().map(figure).collect()
    };
    let drift = all(&|(t, _)| t.drift_ppm);
    let error = |at: usize| median(&all(&|(t, _)| t.errors[at] as f64 / 1e3));
    let others = [
        format!("{:+.2}", median(&drift)),
        format!("{:+.2}", worst(&drift)),
        median(&all(&|(t, _)| t.bursts as f64)).to_string(),
        median(&all(&|(t, _)| t.longest_burst as f64)).to_string(),
        format!("{:.2}", median(&all(&|(_, cores)| *cores))),
    ];
    let errors = [0, 1, 2, 3].map(|at| format!("{:.2}", error(at)));
    [&[sender.name.clone()][..], &errors, &others].concat()
}
