//! Top speed: frames that each sender gets across.

use std::path::Path;
use std::process::Command;

use super::arrivals::{Link, Run};
use super::load;
use super::peers::Load;
use super::{LIMIT, Programs};
use crate::failure::Outcome;
use crate::figures::{self, Ratio, median, range};

/// Duration of a run, in seconds.
const SECONDS: &str = "2";
/// Number of frames in the replayed capture, and of its repetitions by peers, which have no time
/// limit: about as long as ours run.
const FRAMES: u64 = 100_000;
const LOOPS: u64 = 14;
/// Number of frames of a capture that stays in the processor's cache, as the one frame of the bare
/// loop does.
const FEW: u64 = 1_000;

/// Source of the number of frames that a sender sent.
#[derive(Clone, Copy)]
enum Sent {
    /// It prints the number.
    Printed,
    /// Its report has the number.
    Reported,
    /// The number was given to it.
    Given(u64),
}

/// A sender, and its figures of each round.
struct Sender<'a> {
    name: String,
    sent: Sent,
    command: Box<dyn Fn() -> Outcome<Command> + 'a>,
    pps: Vec<f64>,
    of_bare: Vec<f64>,
    lost: f64,
    user: Vec<f64>,
    system: Vec<f64>,
}

impl<'a> Sender<'a> {
    fn new(name: String, sent: Sent, command: impl Fn() -> Outcome<Command> + 'a) -> Self {
        Self {
            name,
            sent,
            command: Box::new(command),
            pps: Vec::new(),
            of_bare: Vec::new(),
            lost: 0.0,
            user: Vec::new(),
            system: Vec::new(),
        }
    }

    /// Adds a run; `bare` is the rate of the bare loop in the same round.
    fn add(&mut self, run: &Run, pps: f64, bare: f64) -> Outcome {
        let (arrived, name) = (run.arrived as f64, &self.name);
        let sent = match self.sent {
            Sent::Printed => {
                run.succeeded(name)?;
                run.stdout.trim().parse().unwrap_or(f64::NAN)
            }
            Sent::Reported => run.reported(name, "/sent")?,
            Sent::Given(sent) => sent as f64,
        };
        self.pps.push(pps);
        self.of_bare.push(pps / bare);
        self.lost += sent - arrived;
        self.user.push(run.cpu.user * 1e9 / arrived);
        self.system.push(run.cpu.system * 1e9 / arrived);
        Ok(())
    }

    fn row(&self) -> Vec<String> {
        let (least, most) = range(&self.pps);
        let kpps = [median(&self.pps), least, most].map(|pps| format!("{:.0}", pps / 1e3));
        let others = [
            format!("{:.3}", median(&self.of_bare)),
            self.lost.to_string(),
            format!("{:.0}", median(&self.user)),
            format!("{:.0}", median(&self.system)),
        ];
        [&[self.name.clone()][..], &kpps, &others].concat()
    }
}

/// Compares all senders; returns the rate of the generator.
///
/// # Errors
/// Returns an error if a program of ours fails.
pub fn run(
    programs: &Programs,
    (queues, len): (u16, usize),
    rounds: usize,
    ratios: &mut Vec<Ratio>,
) -> Outcome<Option<f64>> {
    let (generator, scratch) = (&programs.generator, &programs.scratch);
    let capture = &load::capture(generator, scratch, (len, FRAMES, 1_000))?;
    let few = &load::capture(generator, scratch, (len, FEW, 1_000))?;
    let scenario = &load::frames(scratch, len)?;
    let link = &Link::new(queues)?;
    let load = &Load {
        capture,
        frames: FRAMES,
        loops: LOOPS * u64::from(queues),
        frame: &load::first_frame(few)?,
        workers: queues,
    };
    // The bare loop; with as many frames as the capture has, it shows the cost of reading them from
    // memory for any sender.
    let bare = |frames: Option<u64>| {
        move || {
            let mut command = link.sender(None, &programs.bare_loop);
            let [queues, len] = [usize::from(queues), len].map(|number| number.to_string());
            command.args([link.sending(), &queues, &len, SECONDS]);
            command.args(frames.map(|frames| frames.to_string()));
            Ok(command)
        }
    };
    let own = |program: &Path, what: &Path, before: &[&str], behind: &[&str]| {
        let mut command = link.sender(None, program);
        command.args(before).arg(what).args(behind);
        command.args(["--duration", SECONDS, "--iface", link.sending()]);
        command.args(["--queues", &queues.to_string(), "--json"]);
        Ok(command)
    };
    let replay = |capture, frames: u64| {
        let name = format!("fcn-replay --top, {frames} frames again and again");
        // For a duration, as our other senders: two queues do not end their loops at the same
        // moment.
        let words = &["--top", "--forever"];
        Sender::new(name, Sent::Reported, move || {
            own(&programs.replayer, capture, &[], words)
        })
    };
    let name = "bare AF_XDP loop, one frame again and again".to_owned();
    let mut senders = vec![Sender::new(name, Sent::Printed, bare(None))];
    let name = "fcn-gen run, every frame different".to_owned();
    let run = || own(generator, scenario, &["run"], &[]);
    senders.push(Sender::new(name, Sent::Reported, run));
    senders.extend([replay(few, FEW), replay(capture, FRAMES)]);
    // A slot is 2 KiB: short frames would be further apart in it than in a capture.
    if len > 1_024 {
        let frames = FRAMES / u64::from(queues);
        let name = format!("bare AF_XDP loop through {frames} frames, none touched");
        senders.push(Sender::new(name, Sent::Printed, bare(Some(frames))));
    }
    for peer in &programs.peers {
        let alone = (queues == 1).then_some(&*programs.senders);
        let sent = Sent::Given(load.frames * load.loops);
        let command = move || peer.top_speed(link, load, scratch, alone);
        senders.push(Sender::new(peer.to_string(), sent, command));
    }
    for _ in 0..rounds {
        let mut bare = f64::NAN;
        for (index, sender) in senders.iter_mut().enumerate() {
            let run = link.run(&mut (sender.command)()?, LIMIT)?;
            let Some(pps) = run.steady_pps else {
                println!("  {}: too short to measure", sender.name);
                continue;
            };
            // The bare loop comes first.
            if index == 0 {
                bare = pps;
            }
            sender.add(&run, pps, bare)?;
        }
    }
    let plural = if queues == 1 { "" } else { "s" };
    println!("\n{len} octets, {queues} queue{plural}, {rounds} rounds in turn");
    let rows: Vec<_> = senders.iter().map(Sender::row).collect();
    let heading = "|kpps|least|most|of bare|lost|user ns|kernel ns";
    figures::print(heading, &rows);
    ratios.extend(compared(
        &senders,
        &format!("{len} octets, {queues} queue{plural}"),
    ));
    // The generator comes second.
    let (user, wire) = (median(&senders[1].user), (len + 24) as f64 * 8.0 / 100.0);
    println!(
        "  a frame of {len} octets takes {wire:.1} ns at 100 Gbit/s; {user:.0} ns of user time each need {:.1} \
         cores, if the driver does zero copy (accurate to 10 ms per run: see `cargo bench -p fcn-gen` for less)",
        user / wire
    );
    Ok(Some(median(&senders[1].pps)).filter(|pps| pps.is_finite()))
}

/// Returns the ratios of our senders to the bare loop, which comes first, and to the peers.
fn compared(senders: &[Sender<'_>], load: &str) -> Vec<Ratio> {
    let Some((bare, others)) = senders.split_first() else {
        return Vec::new();
    };
    let ours = |sender: &&Sender<'_>| matches!(sender.sent, Sent::Reported);
    let peers = |sender: &&Sender<'_>| matches!(sender.sent, Sent::Given(_));
    let against = std::iter::once(bare).chain(others.iter().filter(peers));
    let pairs = against.flat_map(|other| others.iter().filter(ours).map(move |own| (own, other)));
    let pairs = pairs.filter(|(own, other)| !own.pps.is_empty() && !other.pps.is_empty());
    let ratio = |(own, other): (&Sender<'_>, &Sender<'_>)| Ratio {
        what: format!("{}: {load}", own.name),
        against: other.name.clone(),
        ratio: format!(
            "{:.2} times as many frames",
            median(&own.pps) / median(&other.pps)
        ),
    };
    pairs.map(ratio).collect()
}
