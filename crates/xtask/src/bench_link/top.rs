//! Top speed: who gets most frames across.

use std::path::Path;
use std::process::Command;

use super::arrivals::{Link, Run};
use super::load;
use super::peers::{Load, Peer};
use super::programs::{LIMIT, Programs};
use crate::failure::Outcome;
use crate::figures::{self, median, range};

/// Seconds of a run.
const SECONDS: &str = "2";
/// Frames of the capture that is replayed, and how often by peers, who know no time: about as long as ours run.
const FRAMES: u64 = 100_000;
const LOOPS: u64 = 14;
/// Frames of a capture that stays in the processor's cache, as the one frame of the bare loop does.
const FEW: u64 = 1_000;

/// Who sends.
enum Sender<'a> {
    /// The bare loop; through as many frames as the capture has it tells what reading them from memory costs anybody.
    Bare(Option<u64>),
    Generator,
    /// A capture, and how many frames it has.
    Replayer(&'a Path, u64),
    Peer(&'a Peer),
}

/// What everybody has to send, and over what.
struct Task<'a> {
    programs: &'a Programs,
    link: Link,
    load: Load<'a>,
    scenario: &'a Path,
}

impl Sender<'_> {
    fn name(&self) -> String {
        match self {
            Self::Bare(None) => "bare AF_XDP loop, one frame again and again".to_owned(),
            Self::Bare(Some(frames)) => {
                format!("bare AF_XDP loop through {frames} frames, none touched")
            }
            Self::Generator => "fcn-gen run, every frame different".to_owned(),
            Self::Replayer(_, frames) => {
                format!("fcn-replay --top, {frames} frames again and again")
            }
            Self::Peer(peer) => peer.to_string(),
        }
    }

    fn command(&self, task: &Task<'_>) -> Outcome<Command> {
        let (programs, link, load) = (task.programs, &task.link, &task.load);
        let queues = load.workers.to_string();
        let ours = |program: &Path| link.sender(None, program);
        let mut command;
        match self {
            Self::Peer(peer) => {
                let alone = (load.workers == 1).then_some(&*programs.senders);
                return peer.top_speed(link, load, &programs.scratch, alone);
            }
            Self::Bare(frames) => {
                command = ours(&programs.bare_loop);
                let len = load.frame.len().to_string();
                command.args([link.sending(), &queues, &len, SECONDS]);
                command.args(frames.map(|frames| frames.to_string()));
                return Ok(command);
            }
            Self::Generator => {
                command = ours(&programs.generator);
                command.arg("run").arg(task.scenario);
            }
            Self::Replayer(capture, _) => {
                command = ours(&programs.replayer);
                // For a time, as the others of ours: two queues do not end their loops at the same moment.
                command.arg(capture).args(["--top", "--forever"]);
            }
        }
        command.args(["--duration", SECONDS, "--iface", link.sending()]);
        command.args(["--queues", &queues, "--json"]);
        Ok(command)
    }

    /// Frames that the sender says it sent, or was told to send.
    fn sent(&self, run: &Run, load: &Load<'_>) -> Outcome<f64> {
        match self {
            Self::Bare(_) => {
                run.succeeded(&self.name())?;
                Ok(run.stdout.trim().parse().unwrap_or(f64::NAN))
            }
            Self::Generator | Self::Replayer(..) => run.reported(&self.name(), "/sent"),
            Self::Peer(_) => Ok((load.frames * load.loops) as f64),
        }
    }
}

#[derive(Default)]
struct Figures {
    pps: Vec<f64>,
    of_bare: Vec<f64>,
    lost: f64,
    user: Vec<f64>,
    system: Vec<f64>,
}

/// Compares everybody; returns the rate of the generator.
///
/// # Errors
/// A program of ours fails.
pub fn run(
    programs: &Programs,
    (queues, len): (u16, usize),
    rounds: usize,
) -> Outcome<Option<f64>> {
    let (generator, scratch) = (&programs.generator, &programs.scratch);
    let capture = load::capture(generator, scratch, (len, FRAMES, 1_000))?;
    let few = load::capture(generator, scratch, (len, FEW, 1_000))?;
    let task = Task {
        programs,
        link: Link::new(queues)?,
        load: Load {
            capture: &capture,
            frames: FRAMES,
            loops: LOOPS * u64::from(queues),
            frame: &load::first_frame(&capture)?,
            workers: queues,
        },
        scenario: &load::scenario(scratch, len)?,
    };
    let mut senders = vec![
        Sender::Bare(None),
        Sender::Generator,
        Sender::Replayer(&few, FEW),
        Sender::Replayer(&capture, FRAMES),
    ];
    // A slot is 2 KiB: short frames would be further apart in it than in a capture.
    if len > 1_024 {
        senders.push(Sender::Bare(Some(FRAMES / u64::from(queues))));
    }
    senders.extend(programs.peers.iter().map(Sender::Peer));
    let mut figures: Vec<Figures> = senders.iter().map(|_| Figures::default()).collect();
    for _ in 0..rounds {
        let mut bare = f64::NAN;
        for (sender, figures) in senders.iter().zip(&mut figures) {
            let run = task.link.run(&mut sender.command(&task)?, LIMIT)?;
            let Some(pps) = run.steady_pps else {
                println!("  {}: too short to tell", sender.name());
                continue;
            };
            if matches!(sender, Sender::Bare(None)) {
                bare = pps;
            }
            let arrived = run.arrived as f64;
            figures.pps.push(pps);
            figures.of_bare.push(pps / bare);
            figures.lost += sender.sent(&run, &task.load)? - arrived;
            figures.user.push(run.cpu.user * 1e9 / arrived);
            figures.system.push(run.cpu.system * 1e9 / arrived);
        }
    }
    let plural = if queues == 1 { "" } else { "s" };
    println!("\n{len} octets, {queues} queue{plural}, {rounds} rounds in turn");
    let rows: Vec<_> = senders
        .iter()
        .zip(&figures)
        .map(|(sender, figures)| row(sender, figures))
        .collect();
    let heading = "|kpps|least|most|of bare|lost|user ns|kernel ns";
    figures::print(heading, &rows);
    // The generator comes second.
    let (user, wire) = (median(&figures[1].user), (len + 24) as f64 * 8.0 / 100.0);
    println!(
        "  a frame of {len} octets takes {wire:.1} ns of a 100 Gbit/s link; {user:.0} ns of user space each are {:.1} cores for it, \
         where the driver takes frames without copying (to 10 ms a run: see `cargo bench -p fcn-gen` for less)",
        user / wire
    );
    Ok(Some(median(&figures[1].pps)).filter(|pps| pps.is_finite()))
}

fn row(sender: &Sender<'_>, figures: &Figures) -> Vec<String> {
    let (least, most) = range(&figures.pps);
    let kpps = [median(&figures.pps), least, most].map(|pps| format!("{:.0}", pps / 1e3));
    let others = [
        format!("{:.3}", median(&figures.of_bare)),
        figures.lost.to_string(),
        format!("{:.0}", median(&figures.user)),
        format!("{:.0}", median(&figures.system)),
    ];
    [&[sender.name()][..], &kpps, &others].concat()
}
