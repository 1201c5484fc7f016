//! `cargo xtask lab NAME`: a scenario on links: each node runs in a network namespace of its own,
//! played by `fcn-gen emulate`. fcn-top watches, every link is captured, and the result is compared
//! with the same scenario in virtual time.
//! Not here: the behaviour of nodes (fcn-gen), and the namespaces (`network.rs`).

mod network;
mod outcome;
mod wire;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::Args;
use serde_json::Value;

use self::network::Network;
use self::outcome::Outcomes;
pub use self::outcome::indented;
use self::wire::{Flow, Wire};
use crate::failure::Outcome;
use crate::report::{Ink, heading, ink};
use crate::senders::{self, Judged};
use crate::{captures, cargo, packets, process};

/// Options of `cargo xtask lab`.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Scenario: a built-in one, or a file
    #[arg(value_name = "NAME|FILE", default_value = SCENARIO)]
    pub scenario: String,
    /// Do not show fcn-top's screen; --verbose prints its report
    #[arg(long)]
    pub headless: bool,
    /// Seconds that senders send
    #[arg(long, value_name = "SECONDS", default_value_t = DURATION, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub duration: u32,
    /// Multiply the scenario's rates by X, and divide its times by X
    #[arg(long, value_name = "X", default_value_t = SPEED)]
    pub speed: f64,
    /// Change a parameter of the scenario; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Run it again with this mechanism, and compare the times of notifications on the wire
    /// (fcn-gen show NAME lists the mechanisms)
    #[arg(long, value_name = "MECHANISM")]
    pub against: Option<String>,
    /// Folder for captures and reports [default: lab/NAME in the target folder]
    #[arg(long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    /// Build with optimisation
    #[arg(long)]
    pub release: bool,
    /// Print all tables: topology, every node and flow, fcn-top's report and verdicts, decoded
    /// notifications
    #[arg(long)]
    pub verbose: bool,
}

/// Default scenario.
const SCENARIO: &str = "fast-cnp";
/// Default duration of sending, in seconds.
const DURATION: u32 = 10;
/// Default speed.
const SPEED: f64 = 0.01;
/// Time limit for a role to start.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time limit for roles to end after they were requested to.
const ENDING: Duration = Duration::from_secs(10);
/// Seconds that roles outlast the senders if nothing ends them, because this process was killed.
const LONGER: u32 = 60;
/// Polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Options that enable the draft mechanisms, which are off by default.
const ENABLE: [&str; 3] = ["--enable-fast-cnp", "--enable-proxy", "--enable-wan-fcn"];
/// Octets captured of each frame: notifications and connection set-ups are whole, of data the
/// headers are.
const SNAP_LEN: &str = "448";
/// Filter for notifications, in tshark.
const NOTIFICATIONS: &str = "fastcnp || cnp || proxycn || wanfcn";
/// Exit code if links and virtual time differ.
const DIFFER: u8 = 4;
/// Number of decoded notifications shown.
const SHOWN: usize = 4;

/// Resources shared by all runs of the lab.
struct Tools {
    generator: PathBuf,
    monitor: PathBuf,
    stop: Arc<AtomicBool>,
}

/// Results of a run.
struct Record {
    outcomes: Outcomes,
    wire: Wire,
    /// fcn-top's report, if there is one.
    watched: Option<String>,
    capture: PathBuf,
}

/// A node that is being played.
struct Played {
    node: String,
    begins: bool,
    child: Child,
    log: PathBuf,
    report: PathBuf,
}

/// Runs the lab. The exit code is [`DIFFER`] if a run differs from the same in virtual time.
///
/// # Errors
/// Namespaces are not available, a node cannot be played, or it was interrupted. Nothing is left
/// behind.
pub fn run(options: &Options) -> Outcome<ExitCode> {
    ensure_possible()?;
    let tools = Tools {
        generator: cargo::build_tool(cargo::GENERATOR, options.release)?,
        monitor: cargo::build_tool(cargo::MONITOR, options.release)?,
        stop: catch_interrupt()?,
    };
    let mut reactions = Vec::new();
    let mut agree = true;
    let (first, second) = (options.clone(), options.against());
    for options in std::iter::once(first).chain(second) {
        let lab = Lab::new(&options, &tools)?;
        heading(&format!(
            "{} on links, at {} times its speed, for {} s",
            lab.name, options.speed, options.duration
        ));
        if reactions.is_empty() && options.verbose {
            println!("{}", lab.topology);
        }
        let record = lab.play()?;
        agree &= lab.report(&record, reactions.is_empty())?;
        if lab.is_stopped() {
            return Ok(ExitCode::from(130));
        }
        reactions.push((lab.name.clone(), record.wire.reactions()));
    }
    if reactions.iter().any(|(_, all)| !all.is_empty()) {
        heading("Reaction, from the packet that met congestion to its sender's cable");
        println!("{}", indented(&wire::table(&reactions, options.speed)));
    }
    Ok(match agree {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(DIFFER),
    })
}

/// Plays a scenario with these programs, prints a short account, and returns a one-line summary.
///
/// # Errors
/// Those of [`run`].
pub fn brief(scenario: &str, generator: &Path, monitor: &Path) -> Outcome<String> {
    let tools = Tools {
        generator: generator.to_owned(),
        monitor: monitor.to_owned(),
        stop: catch_interrupt()?,
    };
    let options = Options {
        scenario: scenario.to_owned(),
        headless: true,
        ..Options::default()
    };
    let lab = Lab::new(&options, &tools)?;
    let record = lab.play()?;
    ensure!(!lab.is_stopped(), "interrupted");
    println!("{}", record.wire.first().trim_end());
    if let Some(late) = record.outcomes.lateness(options.speed) {
        println!("    {}", ink(Ink::Yellow, &late));
    }
    let watched = lab.watched();
    println!("    tshark on {watched}:");
    for cable in lab.network.watched().take(1) {
        for line in decode(&record.capture, cable)?.0.iter().take(SHOWN / 2) {
            println!("    {line}");
        }
    }
    println!(
        "    fcn-top infers from {watched}: {}",
        senders::summary(&lab.judge(&record)?)
    );
    let (nodes, seconds) = (lab.network.nodes().len(), options.duration);
    Ok(format!(
        "{nodes} nodes, each in a network namespace, sent for {seconds} s; for more: cargo xtask lab"
    ))
}

/// Makes Ctrl-C request an orderly end instead of killing the process.
fn catch_interrupt() -> Outcome<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let wish = Arc::clone(&stop);
    ctrlc::set_handler(move || wish.store(true, Ordering::Relaxed))?;
    Ok(stop)
}

impl Options {
    /// Returns the same options with the other mechanism, if there is one.
    fn against(&self) -> Option<Self> {
        let mechanism = self.against.as_ref()?;
        let mut other = self.clone();
        other.sets.push(format!("mechanism={mechanism}"));
        Some(other)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            scenario: SCENARIO.to_owned(),
            headless: false,
            duration: DURATION,
            speed: SPEED,
            sets: Vec::new(),
            against: None,
            output: None,
            release: false,
            verbose: false,
        }
    }
}

/// Checks for missing requirements early.
///
/// # Errors
/// Something is missing.
pub fn ensure_possible() -> Outcome {
    ensure!(
        process::is_root(),
        "network namespaces need root\n  what to do: run it as root (sudo cargo xtask lab)"
    );
    process::need("ip", "iproute2")?;
    process::need("dumpcap", "wireshark-common")?;
    Ok(())
}

/// Returns fcn-gen's description of the scenario.
fn describe(generator: &Path, options: &Options) -> Outcome<Value> {
    let mut command = Command::new(generator);
    command.args(["show", "--json", &options.scenario]);
    for set in &options.sets {
        command.args(["--set", set]);
    }
    let scenario: Value = serde_json::from_str(&process::stdout(&mut command)?)?;
    ensure!(
        scenario["play"]["kind"] == "simulation",
        "{} has no nodes\n  what to do: name a simulation (fcn-gen list)",
        options.scenario
    );
    Ok(scenario)
}

/// State of a run.
struct Lab<'a> {
    options: &'a Options,
    tools: &'a Tools,
    folder: PathBuf,
    name: String,
    topology: String,
    network: Network,
}

impl<'a> Lab<'a> {
    fn new(options: &'a Options, tools: &'a Tools) -> Outcome<Self> {
        let scenario = describe(&tools.generator, options)?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut name = text(&scenario["name"]);
        let mechanism = text(&scenario["play"]["mechanism"]);
        if name != mechanism {
            name = format!("{name} ({mechanism})");
        }
        let folder = match &options.output {
            Some(folder) => folder.join(&mechanism),
            None => cargo::target_folder("lab")?
                .join(format!("{}-{mechanism}", text(&scenario["name"]))),
        };
        fs_err::create_dir_all(&folder)?;
        let left = network::sweep();
        if left > 0 {
            println!("removed {left} namespaces left by an earlier lab");
        }
        Ok(Self {
            options,
            tools,
            folder,
            name,
            topology: text(&scenario["topology"]),
            network: Network::new(&scenario["play"]["network"])?,
        })
    }

    /// Plays the scenario to its end, or until it is stopped.
    fn play(&self) -> Outcome<Record> {
        let capture = self.folder.join("links.pcapng");
        let mut dumpcap = self.capture(&capture)?;
        let mut played = Vec::new();
        let result = self.play_nodes(&mut played);
        self.end(&mut played);
        terminate(&dumpcap.0);
        wait_for(&mut dumpcap.0, ENDING);
        let watched = result?;
        let outcomes = Outcomes::read(&played, |node| &node.report)?;
        let flows = Flow::all(&outcomes.flows());
        let topology = self.network.topology();
        let missed = wire::missed(&fs_err::read_to_string(self.folder.join("dumpcap.log"))?);
        let speed = self.options.speed;
        let wire = Wire::read(&packets::read(&capture)?, missed, topology, flows, speed);
        Ok(Record {
            outcomes,
            wire,
            watched,
            capture,
        })
    }

    /// Prints the results, of the `first` run or another. Returns true if links and virtual time
    /// agree.
    fn report(&self, record: &Record, first: bool) -> Outcome<bool> {
        let all = self.options.verbose;
        heading("What happened first");
        println!("{}", record.wire.first().trim_end());
        heading("What each node did");
        println!("{}", record.outcomes.nodes(all));
        let cut = record.outcomes.cut();
        if !cut.is_empty() {
            let cut = cut.iter().map(|(link, frames)| format!("{link} {frames}"));
            let cut = cut.collect::<Vec<_>>().join(", ");
            let what = format!("Frames lost on links, or sent as the other end ended: {cut}");
            println!("  {}", ink(Ink::Yellow, &what));
        }
        for (switch, stopped) in record.outcomes.borders() {
            println!("  {switch} stopped {stopped} notifications at the border of the domain");
        }
        let [stop, go] = record.wire.pauses();
        if stop > 0 {
            println!("  PFC frames on the links: {stop} pauses, {go} that end one");
        }
        let late = record.outcomes.lateness(self.options.speed);
        if let Some(late) = &late {
            println!("  {}", ink(Ink::Yellow, late));
        }
        if self.is_stopped() {
            println!(
                "interrupted; reports and capture so far are in {}",
                self.folder.display()
            );
            return Ok(false);
        }
        heading("On links, and in virtual time");
        let compared = record.outcomes.compared(&self.simulate()?);
        println!("{}", compared.text(all));
        let watched = self.watched();
        if let Some(report) = record.watched.as_ref().filter(|_| first && all) {
            heading(&format!("fcn-top on {watched}"));
            println!("{report}");
        }
        let judged = self.judge(record)?;
        if all {
            heading(&format!(
                "Who slows down when notified, as fcn-top infers from {watched}"
            ));
            println!("{}", indented(&senders::list(&judged)));
            if late.is_some() {
                let why = "Nodes that forward frames late send in bursts, which verdicts may mistake for responses.";
                println!("  {}", ink(Ink::Yellow, why));
            }
            heading("What was captured");
            for cable in self.network.watched() {
                match decode(&record.capture, cable) {
                    Ok((lines, count)) => {
                        lines.iter().for_each(|line| println!("{line}"));
                        let rest = count.saturating_sub(lines.len());
                        println!("  … and {rest} more at {cable}");
                    }
                    Err(failure) => println!("  {failure}"),
                }
            }
        } else if !judged.is_empty() {
            let summary = senders::summary(&judged);
            println!("  Senders, as fcn-top infers from {watched}: {summary}.");
        }
        let folder = self.folder.display();
        let more = if all { "" } else { "; all tables: --verbose" };
        println!("  Capture of every link, reports and logs: {folder}{more}");
        Ok(compared.agrees())
    }

    /// Returns the names of the watched links, of many only the first.
    fn watched(&self) -> String {
        let names: Vec<&str> = self.network.watched().collect();
        match names.as_slice() {
            [first, _, .., _] => format!("{first} and {} more", names.len() - 1),
            few => few.join(", "),
        }
    }

    /// Returns fcn-top's verdicts, from each watched link.
    fn judge(&self, record: &Record) -> Outcome<Vec<Judged>> {
        let flows = record.outcomes.flows();
        let judge =
            |cable| senders::judge(&self.tools.monitor, &record.capture, Some(cable), &flows);
        let all: Vec<_> = self.network.watched().map(judge).collect::<Outcome<_>>()?;
        Ok(all.concat())
    }

    fn is_stopped(&self) -> bool {
        self.tools.stop.load(Ordering::Relaxed)
    }

    /// Starts a capture on every link.
    fn capture(&self, file: &Path) -> Outcome<process::Running> {
        // A file left by an earlier lab would be mistaken for this one's.
        if file.exists() {
            fs_err::remove_file(file)?;
        }
        let mut command = self.network.at_cables("dumpcap");
        // Before the interfaces, it holds for all of them.
        command.args(["-s", SNAP_LEN]);
        for cable in self.network.topology().cables() {
            command.args(["-i", &cable.name]);
        }
        // Buffers for when it is late: MiB in the kernel, and octets and packets of its own, whose
        // default is a thousand packets.
        command.args(["-B", "64", "-C", "67108864", "-N", "1000000"]);
        command.args(["-q", "-w"]).arg(file);
        command.stdin(Stdio::null());
        let log = fs_err::File::create(self.folder.join("dumpcap.log"))?;
        command.stderr(log.into_file()).stdout(Stdio::null());
        let mut running = process::spawn(&mut command)?;
        let since = Instant::now();
        // It writes the file's header as soon as it captures.
        while !file.metadata().is_ok_and(|file| file.len() > 0) {
            if running.0.try_wait()?.is_some() || since.elapsed() > PATIENCE {
                let said = fs_err::read_to_string(self.folder.join("dumpcap.log"))?;
                bail!("dumpcap does not capture:{}", process::tail(&said, 4));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(running)
    }

    /// Starts the nodes, the flows' sources last; waits until these have ended, or until the run is
    /// stopped. Returns fcn-top's report, if there is one.
    fn play_nodes(&self, played: &mut Vec<Played>) -> Outcome<Option<String>> {
        let mut order: Vec<_> = self.network.nodes().iter().collect();
        order.sort_by_key(|node| (node.begins, node.injects));
        let mut watching = None;
        for node in order {
            if self.is_stopped() {
                return Ok(None);
            }
            if node.begins && watching.is_none() {
                watching = Some(self.watch()?);
            }
            played.push(self.start(node)?);
            // Those that send by themselves begin together, after the others.
            if let (false, Some(started)) = (node.begins || node.injects, played.last_mut()) {
                self.has_begun(started)?;
            }
        }
        for started in &mut *played {
            self.has_begun(started)?;
        }
        let since = Instant::now();
        let most = Duration::from_secs((self.options.duration + LONGER).into());
        while !self.is_stopped() && since.elapsed() < most {
            let mut over = true;
            for node in played.iter_mut() {
                let ended = node.child.try_wait()?;
                over &= !node.begins || ended.is_some();
                if let (Some(status), false) = (ended, node.begins) {
                    bail!("{} ended early ({status}){}", node.node, log_end(&node.log));
                }
            }
            // Leaving the screen ends the run: there, Ctrl-C is a key, and not a signal.
            if let (false, Some(screen)) = (self.options.headless, &mut watching)
                && !over
                && screen.0.try_wait()?.is_some()
            {
                self.tools.stop.store(true, Ordering::Relaxed);
            }
            if over {
                break;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        let Some(mut watching) = watching else {
            bail!("no flow begins anywhere in {}", self.name);
        };
        if !self.options.headless {
            interrupt(&watching.0);
            wait_for(&mut watching.0, ENDING);
        }
        if self.is_stopped() {
            return Ok(None);
        }
        let mut text = String::new();
        if let Some(mut out) = watching.0.stdout.take() {
            out.read_to_string(&mut text)?;
        }
        watching.0.wait()?;
        Ok(self.options.headless.then_some(text))
    }

    /// Starts fcn-top on the senders' side: its screen, or its report.
    fn watch(&self) -> Outcome<process::Running> {
        let mut command = self.network.at_cables(&self.tools.monitor);
        command.arg("--no-config");
        for cable in self.network.watched() {
            command.args(["-i", cable]);
        }
        // The screen is closed after the senders have ended.
        let longer = if self.options.headless { 1 } else { LONGER };
        let seconds = self.options.duration + longer;
        command.args(["--duration", &format!("{seconds}s")]);
        // Buffer for arrivals while everything else runs on the same processors.
        command.args(["--buffer", "64MiB"]);
        if self.options.headless {
            command.args(["--report", "--quiet"]);
            command.stdin(Stdio::null()).stdout(Stdio::piped());
        }
        process::spawn(&mut command)
    }

    fn start(&self, node: &network::Node) -> Outcome<Played> {
        let file = |ending: &str| self.folder.join(format!("{}.{ending}", node.name));
        let (log, report) = (file("log"), file("json"));
        let mut command = self.network.at(node, &self.tools.generator);
        command.args(["emulate", &node.role, "--node", &node.name]);
        command.args(["--config", &self.options.scenario, "--json"]);
        command.args(["--speed", &self.options.speed.to_string()]);
        command.args(ENABLE);
        for (interface, peer) in &node.interfaces {
            command.arg("--iface").arg(format!("{interface}={peer}"));
        }
        for set in &self.options.sets {
            command.args(["--set", set]);
        }
        let seconds = match node.begins {
            true => self.options.duration,
            false => self.options.duration + LONGER,
        };
        command.args(["--duration", &format!("{seconds}s")]);
        command.stdin(Stdio::null());
        command.stdout(fs_err::File::create(&report)?.into_file());
        command.stderr(fs_err::File::create(&log)?.into_file());
        Ok(Played {
            node: node.name.clone(),
            begins: node.begins,
            child: command.spawn().context("fcn-gen does not start")?,
            log,
            report,
        })
    }

    /// Waits until a role has reported that it has started.
    fn has_begun(&self, node: &mut Played) -> Outcome {
        let since = Instant::now();
        loop {
            let said_all = fs_err::read_to_string(&node.log)?
                .lines()
                .any(|line| line.starts_with("until "));
            if said_all || self.is_stopped() {
                return Ok(());
            }
            if node.child.try_wait()?.is_some() || since.elapsed() > PATIENCE {
                bail!("{} cannot be played{}", node.node, log_end(&node.log));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Requests all running nodes to end, and waits for them.
    fn end(&self, played: &mut [Played]) {
        for node in played.iter() {
            interrupt(&node.child);
        }
        for node in played {
            wait_for(&mut node.child, ENDING);
        }
    }

    /// Runs the same scenario in virtual time, for the same duration, and returns its ground truth.
    fn simulate(&self) -> Outcome<Value> {
        let file = |ending: &str| self.folder.join(format!("simulated.{ending}"));
        let mut command = Command::new(&self.tools.generator);
        command.args([
            "write",
            &self.options.scenario,
            "--quiet",
            "--force",
            "--snap-len",
            SNAP_LEN,
        ]);
        for set in &self.options.sets {
            command.args(["--set", set]);
        }
        let nanoseconds = f64::from(self.options.duration) * self.options.speed * 1e9;
        command.args(["--set", &format!("duration={}ns", nanoseconds.round())]);
        command.arg("-o").arg(file("pcapng"));
        command.arg("--truth").arg(file("json"));
        process::stdout(&mut command)?;
        Ok(serde_json::from_str(&fs_err::read_to_string(file(
            "json",
        ))?)?)
    }
}

/// Returns the first notifications at a cable as tshark decodes them, and their total number.
fn decode(capture: &Path, cable: &str) -> Outcome<(Vec<String>, usize)> {
    ensure!(
        process::which("tshark").is_some(),
        "tshark is not installed (in Debian: package tshark)"
    );
    let mut command = Command::new("tshark");
    command.args(["-n", "-T", "tabs", "-o", captures::COLUMNS, "-r"]);
    let filter = format!("({NOTIFICATIONS}) && frame.interface_name == \"{cable}\"");
    command.arg(capture).args(["-Y", &filter]);
    let text = process::stdout(&mut command)
        .context("tshark lacks the plugin (cargo xtask install-plugin)")?;
    let rows: Vec<_> = text.lines().filter_map(captures::tabs).collect();
    let lines = rows.iter().take(SHOWN);
    let lines =
        lines.map(|[number, protocol, info]| format!("  {number:>6}  {protocol:<8}  {info}"));
    Ok((lines.collect(), rows.len()))
}

/// Returns the end of a role's log, for a failure.
fn log_end(log: &Path) -> String {
    let text = fs_err::read_to_string(log).unwrap_or_default();
    process::tail(&text, 4)
}

fn interrupt(child: &Child) {
    signal(child, rustix::process::Signal::INT);
}

fn terminate(child: &Child) {
    signal(child, rustix::process::Signal::TERM);
}

fn signal(child: &Child, signal: rustix::process::Signal) {
    if let Some(id) = rustix::process::Pid::from_raw(child.id() as i32) {
        // It may have ended.
        let _ = rustix::process::kill_process(id, signal);
    }
}

/// Waits for a process, and kills it if that takes too long.
fn wait_for(child: &mut Child, most: Duration) {
    let since = Instant::now();
    while since.elapsed() < most {
        match child.try_wait() {
            Ok(None) => std::thread::sleep(POLL_INTERVAL),
            _ => return,
        }
    }
    println!(
        "{}",
        ink(Ink::Yellow, "a process did not end, and was killed")
    );
    let _ = child.kill();
    let _ = child.wait();
}

impl Drop for Played {
    fn drop(&mut self) {
        // It may already have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
