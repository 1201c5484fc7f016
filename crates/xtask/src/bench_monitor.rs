//! `cargo xtask bench monitor`: the load that fcn-top can handle. Measured on a file of
//! notifications, against tshark, which only counts them; and on a link at the highest rate of
//! fcn-gen, while a screen is drawn.
//! Not here: the cost of the monitor per packet, and of drawing a screen (the benches of
//! `fcn-top`).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::bail;

use crate::bench_link::arrivals::{Cpu, Link};
use crate::bench_link::load::{self, stress};
use crate::failure::Outcome;
use crate::figures::{self, Ratio, median, range};
use crate::packages::{self, Use};
use crate::report::heading;
use crate::tally::SKIP_MARK;
use crate::{cargo, process, wireshark};

/// Number of notifications in the file.
const PACKETS: u64 = 4_000_000;
/// Numbers of QPs that they are about; each QP has a row for each kind. The last number needs twice
/// as many rows as are kept by default, and the QPs come in turn, so every notification finds its
/// row evicted.
const QPS: [u32; 3] = [1_000, 10_000, 100_000];
/// Number of rows kept by default, and the number needed for the most QPs.
const ROWS: [u32; 2] = [100_000, 200_000];
/// Traffic mix of a file or a link: its name, and the weights of the stress.
const PLAIN: (&str, &str) = (
    "CNPs and Fast CNPs with option 1",
    "cnp = 1\nfast_cnp_1 = 1\n",
);
const TRACED: (&str, &str) = (
    "CNPs and Fast CNPs, a quarter with traces of 4 nodes",
    "cnp = 2\nfast_cnp_1 = 1\nfast_cnp_2 = 1\n",
);
/// Number of rounds for tshark, which is slow.
const TSHARK_ROUNDS: usize = 2;
/// Processor reserved for the program under test; a sender has the other.
const ONE: &str = "0";
const OTHER: &str = "1";
/// Duration of sending, in seconds.
const SECONDS: u64 = 5;
/// Address of the monitor's counters, in the network namespace that it watches.
const METRICS: &str = "127.0.0.1:9464";
/// Size of the terminal that it draws on.
const SCREEN: [&str; 4] = ["-x", "200", "-y", "50"];

/// Runs the benchmark with `rounds` rounds of each comparison, and returns the ratios.
///
/// # Errors
/// Something cannot be built, or a program under test fails.
pub fn run(rounds: usize) -> Outcome<Vec<Ratio>> {
    packages::ensure(&[Use::Run, Use::Filter, Use::Network, Use::Test])?;
    let generator = cargo::build_tool(cargo::GENERATOR, true)?;
    let monitor = cargo::build_tool(cargo::MONITOR, true)?;
    let scratch = cargo::target_folder("bench-monitor")?;
    heading("A file of CNPs and Fast CNPs, on one processor");
    let files = QPS
        .map(|qps| (qps, PLAIN))
        .into_iter()
        .chain([(QPS[1], TRACED)]);
    let mut ratios = Vec::new();
    for (qps, (what, mix)) in files {
        let file = scratch.join("notifications.pcapng");
        let scenario = scenario(&scratch, qps, mix)?;
        stress(&generator, &scenario, PACKETS, 1_000, &file)?;
        println!("\n{PACKETS} {what}, {qps} QPs, {rounds} rounds in turn");
        let rows = qps * mix.lines().count() as u32;
        let times = offline(&monitor, &file, rows, rounds)?;
        if let (Some(times), Some(version)) = (times, wireshark::program_version("tshark")?) {
            ratios.push(Ratio {
                what: format!("fcn-top -r FILE --json: {what}, {qps} QPs"),
                against: format!("tshark {version} -q -z io,stat,1"),
                ratio: format!("{times:.1} times as fast"),
            });
        }
        // Half a gigabyte each.
        fs_err::remove_file(&file)?;
    }
    heading("\nA link at top speed, while a screen of 200×50 is drawn");
    if let Some(reason) = Link::unavailable() {
        println!("{SKIP_MARK} watching a link: {reason}");
        return Ok(ratios);
    }
    live(&generator, &monitor, &scratch, rounds)?;
    Ok(ratios)
}

fn scenario(scratch: &Path, qps: u32, mix: &str) -> Outcome<PathBuf> {
    let stress = format!("flows = {qps}\nqps = {qps}\ntrace_nodes = 4\n[stress.mix]\n{mix}");
    load::scenario(scratch, &format!("notifications-{qps}"), &stress)
}

/// Measures the readers of the file in turn; returns the speed of fcn-top relative to tshark, with
/// the default number of rows.
fn offline(monitor: &Path, file: &Path, rows: u32, rounds: usize) -> Outcome<Option<f64>> {
    let tshark = process::which("tshark");
    // With space for all rows as well, if the default is too small.
    let rooms = ROWS
        .into_iter()
        .filter(|room| *room == ROWS[0] || rows > ROWS[0]);
    let mut own: Vec<(u32, Vec<f64>)> = rooms.map(|room| (room, Vec::new())).collect();
    let mut peer = Vec::new();
    for round in 0..rounds {
        for (room, times) in &mut own {
            let mut command = Command::new("taskset");
            command.args(["-c", ONE]).arg(monitor).arg("--no-config");
            command.arg("-r").arg(file).args(["--json", "--top", "10"]);
            command.args(["--max-rows", &room.to_string()]);
            times.push(timed(&mut command)?);
        }
        if let Some(tshark) = tshark.as_ref().filter(|_| round < TSHARK_ROUNDS) {
            let mut command = Command::new("taskset");
            command.args(["-c", ONE]).arg(tshark);
            command.args(["-q", "-z", "io,stat,1", "-r"]).arg(file);
            peer.push(timed(&mut command)?);
        }
    }
    let row = |name: String, times: &[f64]| {
        let middle = median(times);
        let least = range(times).0;
        let (rate, ratio) = (PACKETS as f64 / middle / 1e6, median(&peer) / middle);
        let figures = [format!("{middle:.3}"), format!("{least:.3}")];
        let ratios = [format!("{rate:.2}"), format!("{ratio:.1}")];
        [&[name][..], &figures, &ratios].concat()
    };
    let name = |room: u32| match rows.saturating_sub(room) {
        0 => "fcn-top -r FILE --json".to_owned(),
        more => format!("the same, with {more} rows too many"),
    };
    let mut lines: Vec<_> = own
        .iter()
        .map(|(room, times)| row(name(*room), times))
        .collect();
    match tshark {
        Some(_) => lines.push(row("tshark -q -z io,stat,1 -r FILE".to_owned(), &peer)),
        None => println!("{SKIP_MARK} tshark is not installed"),
    }
    let heading = "|s|least|million packet/s|times as fast";
    figures::print(heading, &lines);
    let usual = own.first().map_or(f64::NAN, |(_, times)| median(times));
    Ok((!peer.is_empty()).then(|| median(&peer) / usual))
}

/// Returns the run time of a command in seconds.
fn timed(command: &mut Command) -> Outcome<f64> {
    let began = Instant::now();
    command.stdin(Stdio::null()).stdout(Stdio::null());
    process::run(command.stderr(Stdio::null()))?;
    Ok(began.elapsed().as_secs_f64())
}

/// A terminal that runs the monitor in the receiving namespace; closed when dropped.
struct Screen {
    socket: String,
}

impl Screen {
    fn open(link: &Link, monitor: &Path) -> Outcome<Self> {
        let socket = format!("fcn-bench-{}", std::process::id());
        let screen = Self { socket };
        let mut command = link.receiver(Some(ONE), "tmux");
        command.args(["-L", &screen.socket, "-f", "/dev/null", "new-session", "-d"]);
        command.args(SCREEN).args(["env", "TERM=screen-256color"]);
        command.arg(monitor).args(["--no-config", "-i"]);
        command.args([link.receiving(), "--prometheus", METRICS]);
        process::stdout(&mut command)?;
        Ok(screen)
    }

    fn tmux(&self, words: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.args(["-L", &self.socket]).args(words);
        process::stdout(&mut command).unwrap_or_default()
    }

    /// Returns the process ID of the monitor.
    fn pid(&self) -> Option<u32> {
        let pid = self.tmux(&["list-panes", "-F", "#{pane_pid}"]);
        pid.trim().parse().ok()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let pid = self.pid();
        self.tmux(&["kill-server"]);
        // A monitor that survives its terminal would take the processor from the next.
        let until = Instant::now() + Duration::from_secs(5);
        while pid.is_some_and(|pid| matches!(Cpu::for_process(pid), Some((_, false)))) {
            if Instant::now() > until {
                println!("fcn-top runs on without its terminal");
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Fetches the counters that the monitor exports.
fn metrics(link: &Link) -> Outcome<String> {
    let (host, port) = METRICS.split_once(':').unwrap_or((METRICS, ""));
    let script = format!(
        "exec 3<>/dev/tcp/{host}/{port}; printf 'GET /metrics HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3"
    );
    process::stdout(link.receiver(None, "bash").args(["-c", &script]))
}

/// Returns the sum of a metric over its labels.
fn sum(page: &str, metric: &str) -> f64 {
    page.lines()
        .filter(|line| line.split(['{', ' ']).next() == Some(metric))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum()
}

fn live(generator: &Path, monitor: &Path, scratch: &Path, rounds: usize) -> Outcome {
    let mut rows = Vec::new();
    for qps in QPS {
        let scenario = scenario(scratch, qps, TRACED.1)?;
        for round in 1..=rounds.min(3) {
            let link = Link::new(1)?;
            let screen = Screen::open(&link, monitor)?;
            let ready = Instant::now() + Duration::from_secs(20);
            while metrics(&link).is_err() {
                if Instant::now() > ready {
                    let text = screen.tmux(&["capture-pane", "-p"]);
                    bail!("fcn-top does not start: {text}");
                }
                std::thread::sleep(Duration::from_millis(200));
            }
            let cpu = || Cpu::for_process(screen.pid()?);
            let used = || cpu().map_or(f64::NAN, |(cpu, _)| cpu.both());
            let before = used();
            let mut command = link.sender(Some(OTHER), generator);
            command.arg("run").arg(&scenario);
            command.args(["--iface", link.sending(), "--json"]);
            command.args(["--duration", &SECONDS.to_string()]);
            let run = link.run(&mut command, Duration::from_secs(60))?;
            let used = used() - before;
            run.succeeded("fcn-gen run")?;
            // The screen and the counters are updated within a second.
            std::thread::sleep(Duration::from_millis(1_500));
            let page = metrics(&link)?;
            rows.push(vec![
                format!("{qps} QPs, round {round}"),
                format!("{:.0}", run.steady_pps.unwrap_or(f64::NAN) / 1e3),
                run.arrived.to_string(),
                sum(&page, "fcn_top_notifications_total").to_string(),
                sum(&page, "fcn_top_interface_dropped_total").to_string(),
                format!("{:.2}", used / run.wall.as_secs_f64()),
            ]);
        }
    }
    let heading = "|kpps|arrived|counted|dropped|cores of fcn-top";
    figures::print(heading, &rows);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_summed_over_labels() {
        let page = "# HELP a_total x\na_total{kind=\"cnp\"} 3\na_total{kind=\"b c\"} 4\na_total_more 9\nb 1\n";
        assert_eq!(sum(page, "a_total"), 7.0);
        assert_eq!(sum(page, "b"), 1.0);
        assert_eq!(sum(page, "none"), 0.0);
    }
}
