//! Cost of a node in the wire: number of frames that a congestion point with an idle queue
//! forwards, compared with a bare forwarder between the same two interfaces; and time of
//! notifications, compared with a bare reflector.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::arrivals::{Cpu, Link, RECEIVER_MAC};
use super::{LIMIT, Programs, load};
use crate::failure::Outcome;
use crate::figures::{self, Ratio, median};
use crate::process::{self, Running};

/// Duration of a flow of frames, in seconds.
const SECONDS: &str = "2";
/// Lifetime of a bare node in seconds, unless it is ended before.
const BARE_SECONDS: &str = "60";
/// Time limit for a node to accept frames, and time for the after-effects of its start to end.
const PATIENCE: Duration = Duration::from_secs(10);
const SETTLING: Duration = Duration::from_millis(200);
/// Share of the bare forwarder's rate at which no frame may be lost.
const LOSSLESS: f64 = 0.6;
/// Number of requests per run, one per millisecond.
const QUESTIONS: u64 = 2_000;
/// Options of a congestion point whose queue stays empty, and of one where every packet meets a
/// queue.
const IDLE: &str = "--enable-fast-cnp --set rate=100G --set host.sender.rate=100G";
const CONGESTED: &str =
    "--enable-fast-cnp --set rate=1M --set kmin=1B --set kmax=2B --set queue=1GB";
/// Options of a proxy that knows the QPs from the beginning.
const PROXY: &str = "--config proxy --enable-proxy --set qps=[\"load*\"]";

/// A node, and its figures of each round.
struct Node<'a> {
    name: &'static str,
    command: Box<dyn Fn() -> Command + 'a>,
    figures: Vec<[f64; 4]>,
}

impl Node<'_> {
    /// Runs it at the far end of `link` during `work`, which is given its PID.
    fn runs(&mut self, link: &Link, work: impl FnOnce(u32) -> Outcome<[f64; 4]>) -> Outcome {
        let complaints = tempfile::NamedTempFile::new()?;
        let mut command = (self.command)();
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut node = process::spawn(command.stderr(complaints.reopen()?))?;
        let figures = wait_until_ready(link, &mut node).and_then(|()| work(node.0.id()));
        let said = fs_err::read_to_string(complaints.path())?;
        let (name, said) = (self.name, process::tail(&said, 12));
        ensure!(node.0.try_wait()?.is_none(), "{name}: it ended{said}");
        self.figures.push(figures?);
        Ok(())
    }

    fn median(&self, at: usize) -> f64 {
        let values: Vec<f64> = self.figures.iter().map(|figures| figures[at]).collect();
        median(&values)
    }
}

/// Waits until a node accepts frames at the far end of `link`.
fn wait_until_ready(link: &Link, node: &mut Running) -> Outcome {
    let began = Instant::now();
    while !link.is_taken() && node.0.try_wait()?.is_none() {
        ensure!(began.elapsed() < PATIENCE, "a node accepts no frames");
        thread::sleep(SETTLING / 10);
    }
    thread::sleep(SETTLING);
    Ok(())
}

/// Prints a table of the nodes, the bare one first: two figures in these units, each with its ratio
/// to the bare one's, and counts.
fn print(heading: &str, nodes: &[Node<'_>], units: [f64; 2], counts: &[usize]) {
    let rows = nodes.iter().map(|node| {
        let mut row = vec![node.name.to_owned()];
        for (at, unit) in units.into_iter().enumerate() {
            let (figure, bare) = (node.median(at), nodes[0].median(at));
            row.push(format!("{:.1}", figure / unit));
            row.push(format!("{:.2}", figure / bare));
        }
        row.extend(counts.iter().map(|at| format!("{:.0}", node.median(*at))));
        row
    });
    figures::print(heading, &rows.collect::<Vec<_>>());
}

/// Returns the ratio of each node's first figure to that of the bare one, which is the first.
fn compared(nodes: &[Node<'_>], load: &str, unit: &str) -> impl Iterator<Item = Ratio> {
    let (bare, others) = nodes.split_at(1);
    others.iter().map(move |node| Ratio {
        what: format!("{}: {load}", node.name),
        against: bare[0].name.to_owned(),
        ratio: format!("{:.2} times {unit}", node.median(0) / bare[0].median(0)),
    })
}

/// Topology of the nodes: at the end of the first link, and between it and the second.
struct Place<'a> {
    programs: &'a Programs,
    link: Link,
    behind: Link,
}

/// Compares forwarding and notifying.
///
/// # Errors
/// Returns an error if a program of ours fails.
pub fn run(programs: &Programs, rounds: usize, ratios: &mut Vec<Ratio>) -> Outcome {
    let (link, behind) = (Link::new(1)?, Link::new(1)?);
    link.attach_next(&behind);
    let place = Place {
        programs,
        link,
        behind,
    };
    for len in load::LENS {
        place.forwarding(len, rounds, ratios)?;
    }
    place.notifying(rounds, ratios)
}

impl Place<'_> {
    /// Returns the interfaces of a node between the links: towards the sender, and away from it.
    fn between(&self) -> [&'static str; 2] {
        [self.link.receiving(), self.behind.sending()]
    }

    fn bare<'a>(&'a self, name: &'static str, interfaces: &'a [&str]) -> Node<'a> {
        let command = move || {
            let program = &self.programs.bare_forwarder;
            let mut command = self.link.receiver(None, program);
            command.args(interfaces).arg(BARE_SECONDS);
            command
        };
        Node {
            name,
            command: Box::new(command),
            figures: Vec::new(),
        }
    }

    fn role<'a>(
        &'a self,
        name: &'static str,
        role: &'a str,
        (interfaces, words): (&'a [&str], &'a str),
    ) -> Node<'a> {
        let command = move || {
            let mut command = self.link.receiver(None, &self.programs.generator);
            command.args(["emulate", role, "--forever", "--quiet"]);
            command.args(interfaces.iter().flat_map(|name| ["--iface", name]));
            command.args(words.split_whitespace());
            command
        };
        Node {
            name,
            command: Box::new(command),
            figures: Vec::new(),
        }
    }

    fn forwarding(&self, len: usize, rounds: usize, ratios: &mut Vec<Ratio>) -> Outcome {
        // Data only: of CNPs to a sender that the switch knows, one in 100 would be sent back.
        let scenario = load::data(&self.programs.scratch, len)?;
        let between = self.between();
        let mut nodes = [
            self.bare("bare AF_XDP forwarder", &between),
            self.role(
                "fcn-gen emulate congestion-point",
                "congestion-point",
                (&between, IDLE),
            ),
        ];
        for _ in 0..rounds {
            let mut top = None;
            for node in &mut nodes {
                node.runs(&self.link, |pid| {
                    let [pps, took, lost] = self.send(&scenario, None, pid)?;
                    let rate = *top.get_or_insert(pps) * LOSSLESS;
                    let [.., lost_below] = self.send(&scenario, Some(rate), pid)?;
                    Ok([pps, took, lost, lost_below])
                })?;
            }
        }
        println!(
            "\n{len} octets, {rounds} rounds in turn; lost at the top, and at {LOSSLESS} of what the bare one forwards"
        );
        let heading = "|kpps|of bare|processor ns|of bare|lost|lost below";
        print(heading, &nodes, [1e3, 1.0], &[2, 3]);
        let load = format!("{len} octets");
        ratios.extend(compared(&nodes, &load, "as many frames"));
        Ok(())
    }

    /// Sends past a node; returns the frames per second that arrive behind it, its processor time
    /// per frame in nanoseconds, and the number of frames lost.
    fn send(&self, scenario: &Path, rate: Option<f64>, node: u32) -> Outcome<[f64; 3]> {
        let (link, generator) = (&self.link, &self.programs.generator);
        let mut command = link.sender(None, generator);
        command.arg("run").arg(scenario).arg("--json");
        command.args(["--duration", SECONDS, "--iface", link.sending()]);
        if let Some(rate) = rate {
            command.args(["--rate", &format!("{rate:.0}pps")]);
        }
        let cpu = || Cpu::for_process(node).map_or(0.0, |(cpu, _)| cpu.both());
        let before = cpu();
        let run = self.behind.run(&mut command, LIMIT)?;
        let arrived = run.arrived as f64;
        let took = (cpu() - before) * 1e9 / arrived;
        let lost = run.reported("fcn-gen run", "/sent")? - arrived;
        Ok([run.steady_pps.unwrap_or(f64::NAN), took, lost])
    }

    fn notifying(&self, rounds: usize, ratios: &mut Vec<Ratio>) -> Outcome {
        let (generator, scratch) = (&self.programs.generator, &self.programs.scratch);
        let data = load::capture(generator, scratch, (load::LENS[1], 100, 1_000_000))?;
        let notification = notification(self.programs)?;
        let (between, end) = (self.between(), [self.link.receiving()]);
        let mut nodes = [
            self.bare("bare AF_XDP reflector", &end),
            self.role(
                "data to a Fast CNP",
                "congestion-point",
                (&between, CONGESTED),
            ),
            self.role("proxy notification to a CNP", "proxy", (&end, PROXY)),
        ];
        for _ in 0..rounds {
            for (node, asked) in nodes.iter_mut().zip([&data, &data, &notification]) {
                node.runs(&self.link, |_| {
                    let mut command = self.link.sender(None, &self.programs.round_trip);
                    command.arg(self.link.sending()).arg(asked);
                    let said = process::stdout(command.arg(QUESTIONS.to_string()))?;
                    let said: serde_json::Value = serde_json::from_str(&said)?;
                    let number = |name: &str| said[name].as_f64().context("a figure is missing");
                    let times = [number("p50_ns")?, number("p99_ns")?];
                    Ok([times[0], times[1], number("unanswered")?, 0.0])
                })?;
            }
        }
        println!(
            "\n{QUESTIONS} questions a round, one each millisecond, {rounds} rounds in turn: until the answer is there"
        );
        let heading = "|p50 µs|of bare|p99 µs|of bare|unanswered";
        print(heading, &nodes, [1e3, 1e3], &[2]);
        ratios.extend(compared(&nodes, "until it is there", "the time (p50)"));
        Ok(())
    }
}

/// Returns a capture of a notification for the proxy.
fn notification(programs: &Programs) -> Outcome<PathBuf> {
    let file = |name| programs.scratch.join(name);
    let (played, asked) = (file("proxy.pcapng"), file("notification.pcapng"));
    let mut play = Command::new(&programs.generator);
    play.args(["write", "proxy", "--quiet", "--force", "--output"]);
    process::stdout(play.arg(&played))?;
    let mut select = Command::new(&programs.replayer);
    let filter = ["--filter", "udp dst port 1021", "--count", "1"];
    select.arg(&played).args(filter);
    select.args(["--dst-mac", RECEIVER_MAC, "--quiet", "--force", "--output"]);
    process::stdout(select.arg(&asked))?;
    Ok(asked)
}
