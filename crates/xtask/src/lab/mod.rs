//! `cargo xtask lab NAME`: a scenario on links: each node in a network namespace of its own, played by `fcn-gen emulate`, watched by
//! fcn-top, captured on every link, and compared with the same scenario in virtual time.
//! Not here: what a node does (fcn-gen's), and the namespaces (`network.rs`).

mod network;
mod outcome;

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
use crate::failure::Outcome;
use crate::report::{Ink, heading, ink};
use crate::{captures, cargo, process};

/// What `cargo xtask lab` can be told.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// The scenario: a built-in one, or a file
    #[arg(value_name = "NAME|FILE", default_value = "fast-cnp")]
    pub scenario: String,
    /// Print fcn-top's report in place of its screen
    #[arg(long)]
    pub headless: bool,
    /// Seconds that senders send
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub duration: u32,
    /// The network's rates are X times the scenario's, its times as many times as long
    #[arg(long, value_name = "X", default_value_t = 0.01)]
    pub speed: f64,
    /// Change a parameter of the scenario; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Where captures and reports go [default: lab/NAME in the target folder]
    #[arg(long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    /// Build with optimisation
    #[arg(long)]
    pub release: bool,
}

/// How long a role may take to begin.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long roles may take to end when they are told to.
const ENDING: Duration = Duration::from_secs(10);
/// Seconds that roles last longer than the senders, if nobody ends them: when this process is killed.
const LONGER: u32 = 60;
/// How often one looks whether something has happened.
const LOOK: Duration = Duration::from_millis(20);
/// What of the drafts is off unless it is switched on.
const ENABLE: [&str; 3] = ["--enable-fast-cnp", "--enable-proxy", "--enable-wan-fcn"];
/// Notifications, for tshark.
const NOTIFICATIONS: &str = "fastcnp || cnp || proxycn || wanfcn";
/// Decoded notifications shown.
const SHOWN: usize = 4;

/// A node that is being played.
struct Played {
    node: String,
    begins: bool,
    child: Child,
    log: PathBuf,
    report: PathBuf,
}

/// Runs the lab.
///
/// # Errors
/// Namespaces cannot be had, a node cannot be played, or it was interrupted. Nothing is left behind.
pub fn run(options: &Options) -> Outcome<ExitCode> {
    ensure_possible()?;
    let stop = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&stop);
    ctrlc::set_handler(move || told.store(true, Ordering::Relaxed))?;
    let generator = cargo::build_tool(cargo::GENERATOR, options.release)?;
    let monitor = cargo::build_tool(cargo::MONITOR, options.release)?;
    let scenario = describe(&generator, options)?;
    let name = scenario["name"].as_str().unwrap_or("lab").to_owned();
    let folder = match &options.output {
        Some(folder) => {
            fs_err::create_dir_all(folder)?;
            folder.clone()
        }
        None => cargo::target_folder(&format!("lab/{name}"))?,
    };
    let left = network::sweep();
    if left > 0 {
        println!("cleared up {left} namespaces that a lab before had left");
    }
    heading(&format!(
        "{name} on links, at {} times its speed, for {} s",
        options.speed, options.duration
    ));
    println!("{}", scenario["topology"].as_str().unwrap_or_default());
    // Dropped at the end, whatever that is: processes first, then namespaces.
    let network = Network::new(&scenario["play"]["network"])?;
    let lab = Lab {
        options,
        generator,
        monitor,
        folder,
        name,
        network,
        stop,
    };
    lab.play()
}

/// Says at once what is missing.
fn ensure_possible() -> Outcome {
    ensure!(
        process::is_root(),
        "network namespaces take root\n  what to do: run it as root (sudo cargo xtask lab)"
    );
    process::need("ip", "iproute2")?;
    process::need("dumpcap", "wireshark-common")?;
    Ok(())
}

/// What fcn-gen says of the scenario.
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

/// Everything there is while it is played.
struct Lab<'a> {
    options: &'a Options,
    generator: PathBuf,
    monitor: PathBuf,
    folder: PathBuf,
    name: String,
    network: Network,
    stop: Arc<AtomicBool>,
}

impl Lab<'_> {
    fn play(&self) -> Outcome<ExitCode> {
        let capture = self.folder.join(format!("{}.pcapng", self.name));
        let mut dumpcap = self.capture(&capture)?;
        let mut played = Vec::new();
        let result = self.play_nodes(&mut played);
        self.end(&mut played);
        terminate(&dumpcap.0);
        wait_for(&mut dumpcap.0, ENDING);
        let watched = result?;
        let outcomes = Outcomes::read(&played, |node| &node.report)?;
        println!();
        heading("What each node did");
        println!("{}", outcomes.nodes());
        if self.is_stopped() {
            println!(
                "interrupted; reports and capture until then are in {}",
                self.folder.display()
            );
            return Ok(ExitCode::from(130));
        }
        heading("On links, and in virtual time");
        println!("{}", outcomes.compared(&self.simulate()?)?);
        if let Some(report) = watched {
            heading(&format!("fcn-top on {}", self.network.watched()));
            println!("{report}");
        }
        heading("What was captured");
        self.decode(&capture)?;
        let folder = self.folder.display();
        println!("\nCapture of every link, and each node's report and log: {folder}");
        Ok(ExitCode::SUCCESS)
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Captures on every link.
    fn capture(&self, file: &Path) -> Outcome<process::Running> {
        // Left by a lab before, it would be taken for this one's.
        if file.exists() {
            fs_err::remove_file(file)?;
        }
        let mut command = self.network.at_cables("dumpcap");
        for cable in self.network.cables() {
            command.args(["-i", cable]);
        }
        command.args(["-q", "-s", "256", "-w"]).arg(file);
        command.stdin(Stdio::null());
        let log = fs_err::File::create(self.folder.join("dumpcap.log"))?;
        command.stderr(log.into_file()).stdout(Stdio::null());
        let mut running = process::spawn(&mut command)?;
        let since = Instant::now();
        // It writes the file's header once it captures.
        while !file.metadata().is_ok_and(|file| file.len() > 0) {
            if running.0.try_wait()?.is_some() || since.elapsed() > PATIENCE {
                let said = fs_err::read_to_string(self.folder.join("dumpcap.log"))?;
                bail!("dumpcap does not capture:{}", process::tail(&said, 4));
            }
            std::thread::sleep(LOOK);
        }
        Ok(running)
    }

    /// Starts the nodes, those that flows begin at last; waits until these have ended, or somebody has stopped it. Returns
    /// fcn-top's report, where there is one.
    fn play_nodes(&self, played: &mut Vec<Played>) -> Outcome<Option<String>> {
        let mut order: Vec<_> = self.network.nodes().iter().collect();
        order.sort_by_key(|node| node.begins);
        let mut watching = None;
        for node in order {
            if self.is_stopped() {
                return Ok(None);
            }
            if node.begins && watching.is_none() {
                watching = Some(self.watch()?);
            }
            let mut started = self.start(node)?;
            let begun = self.has_begun(&mut started);
            played.push(started);
            begun?;
        }
        let since = Instant::now();
        let most = Duration::from_secs((self.options.duration + LONGER).into());
        while !self.is_stopped() && since.elapsed() < most {
            let mut over = true;
            for node in played.iter_mut() {
                let ended = node.child.try_wait()?;
                over &= !node.begins || ended.is_some();
                if let (Some(status), false) = (ended, node.begins) {
                    bail!("{} ended early ({status}){}", node.node, said(&node.log));
                }
            }
            if over {
                break;
            }
            std::thread::sleep(LOOK);
        }
        let Some(mut watching) = watching else {
            bail!("no flow begins anywhere in {}", self.name);
        };
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

    /// fcn-top on the senders' side: its screen, or its report.
    fn watch(&self) -> Outcome<process::Running> {
        let mut command = self.network.at_cables(&self.monitor);
        command.args(["--no-config", "-i", self.network.watched()]);
        command.args(["--duration", &format!("{}s", self.options.duration + 1)]);
        if self.options.headless {
            command.args(["--report", "--quiet"]);
            command.stdin(Stdio::null()).stdout(Stdio::piped());
        }
        process::spawn(&mut command)
    }

    fn start(&self, node: &network::Node) -> Outcome<Played> {
        let file = |ending: &str| self.folder.join(format!("{}.{ending}", node.name));
        let (log, report) = (file("log"), file("json"));
        let mut command = self.network.at(node, &self.generator);
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

    /// Waits until a role has said what it does.
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
                bail!("{} cannot be played{}", node.node, said(&node.log));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Tells all that still go on to end, and waits for them.
    fn end(&self, played: &mut [Played]) {
        for node in played.iter() {
            interrupt(&node.child);
        }
        for node in played {
            wait_for(&mut node.child, ENDING);
        }
    }

    /// The same scenario in virtual time, as long: its ground truth.
    fn simulate(&self) -> Outcome<Value> {
        let file = |ending: &str| self.folder.join(format!("simulated.{ending}"));
        let mut command = Command::new(&self.generator);
        command.args([
            "write",
            &self.options.scenario,
            "--quiet",
            "--force",
            "--snap-len",
            "256",
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

    /// Shows the first notifications as tshark decodes them, where it is there and has the plugin.
    fn decode(&self, capture: &Path) -> Outcome {
        if process::which("tshark").is_none() {
            println!("  tshark is not installed (in Debian: package tshark)");
            return Ok(());
        }
        let mut command = Command::new("tshark");
        command.args(["-n", "-T", "tabs", "-o", captures::COLUMNS, "-r"]);
        command.arg(capture).args(["-Y", NOTIFICATIONS]);
        match process::stdout(&mut command) {
            Ok(text) => {
                let rows: Vec<_> = text.lines().filter_map(captures::tabs).collect();
                for [number, protocol, info] in rows.iter().take(SHOWN) {
                    println!("  {number:>6}  {protocol:<8}  {info}");
                }
                let (rest, count) = (rows.len().saturating_sub(SHOWN), rows.len());
                if rest > 0 {
                    println!("  … and {rest} more");
                }
                ensure!(count > 0, "no notification was captured");
                Ok(())
            }
            Err(_) => {
                println!("  tshark has no plugin for them (cargo xtask install-plugin)");
                Ok(())
            }
        }
    }
}

/// The end of what a role said, for a failure.
fn said(log: &Path) -> String {
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

/// Waits for a process, and ends it where that takes too long.
fn wait_for(child: &mut Child, most: Duration) {
    let since = Instant::now();
    while since.elapsed() < most {
        match child.try_wait() {
            Ok(None) => std::thread::sleep(LOOK),
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
        // It may have ended long ago.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
