//! Top speed: who gets most frames across.

use std::path::Path;
use std::process::Command;

use super::arrivals::{self, Run};
use super::network::{End, Network, Plan};
use super::peers::{Load, Peer, Way};
use super::{LIMIT, Programs, load, median, reported, succeeded, table};
use crate::failure::Outcome;

/// Seconds of a run.
const SECONDS: &str = "2";
/// Frames of the capture that is replayed, and how often by peers, who know no time: about as long as ours run.
const FRAMES: u64 = 100_000;
const LOOPS: u64 = 14;
/// Frames of a capture that stays in the processor's cache, as the one frame of the bare loop does.
const FEW: usize = 1_000;

/// Who sends.
enum Sender<'a> {
    Bare,
    /// The bare loop through as many frames as the capture has: what reading them from memory costs anybody.
    BareThrough(u64),
    Generator,
    /// A capture, and how many frames it has.
    Replayer(&'a Path, usize),
    Peer(&'a Peer),
}

impl Sender<'_> {
    fn name(&self) -> String {
        match self {
            Self::Bare => "bare AF_XDP loop, one frame again and again".to_owned(),
            Self::BareThrough(frames) => {
                format!("bare AF_XDP loop through {frames} frames, none touched")
            }
            Self::Generator => "fcn-gen run, every frame different".to_owned(),
            Self::Replayer(_, frames) => {
                format!("fcn-replay --top, {frames} frames again and again")
            }
            Self::Peer(peer) => peer.to_string(),
        }
    }
}

#[derive(Default)]
struct Figures {
    pps: Vec<f64>,
    of_bare: Vec<f64>,
    lost: Vec<f64>,
    user: Vec<f64>,
    system: Vec<f64>,
}

/// Compares everybody; returns the rate of the generator.
///
/// # Errors
/// A program of ours fails.
pub fn run(
    programs: &Programs,
    scratch: &Path,
    (queues, len): (u16, usize),
    rounds: usize,
) -> Outcome<Option<f64>> {
    let network = Network::new(&Plan {
        queues,
        ..Plan::default()
    })?;
    let (capture, frame) =
        load::capture(&programs.generator, scratch, (len, FRAMES as usize, 1_000))?;
    let (few, _) = load::capture(&programs.generator, scratch, (len, FEW, 1_000))?;
    let scenario = load::scenario(scratch, len)?;
    let load = Load {
        capture: &capture,
        frames: FRAMES,
        loops: LOOPS * u64::from(queues),
        frame: &frame,
        workers: queues,
    };
    let mut senders = vec![
        Sender::Bare,
        Sender::Generator,
        Sender::Replayer(&few, FEW),
        Sender::Replayer(&capture, FRAMES as usize),
    ];
    // A slot is 2 KiB: short frames would be further apart in it than in a capture.
    if len > 1_024 {
        senders.insert(1, Sender::BareThrough(FRAMES / u64::from(queues)));
    }
    senders.extend(programs.peers.iter().map(Sender::Peer));
    let mut figures: Vec<Figures> = senders.iter().map(|_| Figures::default()).collect();
    let alone = super::senders();
    for _ in 0..rounds {
        let mut bare = f64::NAN;
        for (sender, figures) in senders.iter().zip(&mut figures) {
            let mut command = match sender {
                Sender::Peer(peer) => {
                    // trafgen places its processes itself.
                    let cpus = (queues == 1 && peer.way != Way::Trafgen).then_some(&*alone);
                    peer.top_speed(&network.sender, &load, scratch, cpus)?
                }
                ours => own(ours, programs, &network.sender, &load, &scenario),
            };
            let run = arrivals::run(&network, &mut command, LIMIT)?;
            let Some(pps) = run.steady_pps else {
                println!("  {}: too short to tell", sender.name());
                continue;
            };
            if matches!(sender, Sender::Bare) {
                bare = pps;
            }
            let arrived = run.arrived.rx_packets as f64;
            figures.pps.push(pps);
            figures.of_bare.push(pps / bare);
            figures.lost.push(sent(sender, &run, &load)? - arrived);
            figures.user.push(run.cpu.user.as_nanos() as f64 / arrived);
            figures
                .system
                .push(run.cpu.system.as_nanos() as f64 / arrived);
        }
    }
    println!(
        "\n{len} octets, {queues} queue{}, {rounds} rounds in turn",
        if queues == 1 { "" } else { "s" }
    );
    let rows: Vec<Vec<String>> = senders
        .iter()
        .zip(&figures)
        .map(|(sender, figures)| row(sender, figures))
        .collect();
    let heading = [
        "",
        "kpps",
        "least",
        "most",
        "of bare",
        "lost",
        "user ns",
        "kernel ns",
    ];
    table::print(&heading, &rows);
    let generator = senders
        .iter()
        .position(|sender| matches!(sender, Sender::Generator))
        .and_then(|at| figures.get(at));
    if let Some(user) = generator.map(|f| median(&f.user)) {
        let wire = (len + 24) as f64 * 8.0 / 100.0;
        println!(
            "  a frame of {len} octets takes {wire:.1} ns of a 100 Gbit/s link; {user:.0} ns of user space each are {:.1} cores for it, \
             where the driver takes frames without copying (to 10 ms a run: see `cargo bench -p fcn-gen` for less)",
            user / wire
        );
    }
    Ok(figures
        .get(1)
        .map(|f| median(&f.pps))
        .filter(|pps| pps.is_finite()))
}

fn own(
    sender: &Sender<'_>,
    programs: &Programs,
    from: &End,
    load: &Load<'_>,
    scenario: &Path,
) -> Command {
    let queues = load.workers.to_string();
    let mut command;
    match sender {
        Sender::Bare | Sender::BareThrough(_) | Sender::Peer(_) => {
            command = from.command(&programs.bare_loop);
            command.args([
                from.interface(),
                &queues,
                &load.frame.len().to_string(),
                SECONDS,
            ]);
            if let Sender::BareThrough(frames) = sender {
                command.arg(frames.to_string());
            }
        }
        Sender::Generator => {
            command = from.command(&programs.generator);
            command.arg("run").arg(scenario);
            command.args(["--duration", SECONDS, "--iface", from.interface()]);
            command.args(["--queues", &queues, "--json"]);
        }
        Sender::Replayer(capture, _) => {
            command = from.command(&programs.replayer);
            command
                .arg(capture)
                .args(["--top", "--iface", from.interface()]);
            // For a time, as the others of ours: two queues do not end their loops at the same moment.
            command.args(["--forever", "--duration", SECONDS]);
            command.args(["--queues", &queues, "--json"]);
        }
    }
    command
}

/// Frames that the sender says it sent, or was told to send.
fn sent(sender: &Sender<'_>, run: &Run, load: &Load<'_>) -> Outcome<f64> {
    let name = sender.name();
    match sender {
        Sender::Bare | Sender::BareThrough(_) => {
            succeeded(run, &name)?;
            Ok(run.stdout.trim().parse().unwrap_or(f64::NAN))
        }
        Sender::Generator | Sender::Replayer(..) => {
            succeeded(run, &name)?;
            reported(run, &name, "/sent")
        }
        Sender::Peer(_) => Ok((load.frames * load.loops) as f64),
    }
}

fn row(sender: &Sender<'_>, figures: &Figures) -> Vec<String> {
    let kpps = |pps: f64| format!("{:.0}", pps / 1e3);
    let least = figures.pps.iter().copied().fold(f64::INFINITY, f64::min);
    let most = figures.pps.iter().copied().fold(0.0, f64::max);
    vec![
        sender.name(),
        kpps(median(&figures.pps)),
        kpps(least),
        kpps(most),
        format!("{:.3}", median(&figures.of_bare)),
        format!("{}", figures.lost.iter().sum::<f64>()),
        format!("{:.0}", median(&figures.user)),
        format!("{:.0}", median(&figures.system)),
    ]
}
