//! A link between two network namespaces, and the arrivals at its far end: their number and rate by
//! the interface's counters, and their times by the kernel's stamps. The senders' own reports are
//! ignored. The senders are in `peers.rs`.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use super::netns::{self, End, Options, Pair};
use crate::failure::Outcome;
use crate::packets;
use crate::process::{self, Running};

/// Interval between readings of the counters.
const SAMPLING: Duration = Duration::from_millis(10);
/// Time for which the counters must rest before frames on their way count as lost.
const SETTLING: Duration = Duration::from_millis(100);
/// Inverse of the share of arrivals at each end that the steady rate leaves out: warming up, and
/// the last work of a child process.
const TRIMMED: u64 = 20;
/// Octets of a frame that the recorder keeps: addresses and ports, to investigate a strange run.
const RECORDED_OCTETS: &str = "64";
/// The recorder's ring in KiB: one second of frames every 5 µs.
const RECORDER_RING: &str = "65536";
/// Clock ticks per second in `/proc/PID/stat`; fixed by Linux for user space on the machines that
/// we build for.
const TICKS: f64 = 100.0;
/// MAC address of the receiving interface, as in `fcn-gen`'s frames. The kernel drops frames to any
/// other one earlier, so that they arrive at less cost.
pub const RECEIVER_MAC: &str = "02:00:00:00:00:02";

/// Two namespaces joined by a veth pair, isolated from every other network; removed when this is
/// dropped.
#[derive(Debug)]
pub struct Link(Pair);

impl Link {
    /// Returns the reason if no link can be made here.
    #[must_use]
    pub fn unavailable() -> Option<String> {
        netns::missing()
    }

    /// Makes a link with `queues` queues. Arriving frames are dropped: IPv6 is off, there are no
    /// IPv4 addresses, and no ARP.
    ///
    /// # Errors
    /// Returns an error if it cannot be made here.
    pub fn new(queues: u16) -> Outcome<Self> {
        let options = Options {
            queues: queues.max(1).into(),
            ..Options::default()
        };
        let pair = Pair::with("a benchmark", &options);
        let pair = pair.context("network namespaces cannot be created")?;
        let far = pair.interface(End::Far);
        pair.ip(End::Far, &["link", "set", far, "address", RECEIVER_MAC]);
        let link = Self(pair);
        for end in End::BOTH {
            link.quiet(end, end);
        }
        Ok(link)
    }

    /// Sets the interface of one end, in the namespace `at`, up, and keeps it from sending anything
    /// by itself.
    fn quiet(&self, end: End, at: End) {
        let interface = self.0.interface(end);
        let words = "up arp off multicast off".split(' ');
        let words = ["link", "set", interface].into_iter().chain(words);
        self.0.ip(at, &words.collect::<Vec<_>>());
    }

    /// Moves the sending interface of `next` to the namespace where this link's frames arrive: a
    /// node there has both interfaces.
    pub fn attach_next(&self, next: &Self) {
        let near = next.sending();
        let here = self.0.namespace(End::Far);
        next.0.ip(End::Near, &["link", "set", near, "netns", here]);
        self.quiet(End::Near, End::Far);
        next.0.wait_for_carrier(End::Far);
    }

    /// Returns true if an XDP program receives the arriving frames.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.0.has_xdp_program(End::Far)
    }

    /// Returns the interface to send on.
    #[must_use]
    pub fn sending(&self) -> &'static str {
        self.0.interface(End::Near)
    }

    /// Returns the interface to receive on.
    #[must_use]
    pub fn receiving(&self) -> &'static str {
        self.0.interface(End::Far)
    }

    /// Returns a command that runs a program at the sending end; only on these processors, in the
    /// format of `taskset -c`.
    pub fn sender(&self, cpus: Option<&str>, program: impl AsRef<OsStr>) -> Command {
        self.command(End::Near, cpus, program)
    }

    /// Returns a command that runs a program at the receiving end.
    pub fn receiver(&self, cpus: Option<&str>, program: impl AsRef<OsStr>) -> Command {
        self.command(End::Far, cpus, program)
    }

    // `ip` and `taskset` exec the program: the process keeps its PID.
    fn command(&self, end: End, cpus: Option<&str>, program: impl AsRef<OsStr>) -> Command {
        let Some(cpus) = cpus else {
            return self.0.command(end, program);
        };
        let mut command = self.0.command(end, "taskset");
        command.args(["-c", cpus]).arg(program);
        command
    }

    /// Runs a sender to its end, and counts the arrivals. It is killed after `limit`.
    ///
    /// # Errors
    /// Returns an error if the command cannot be started or the counters cannot be read; it does
    /// not keep running then.
    pub fn run(&self, command: &mut Command, limit: Duration) -> Outcome<Run> {
        let counters = Counters {
            folder: Path::new("/sys/class/net").join(self.receiving()),
        };
        self.0.inside(End::Far, || run(&counters, command, limit))
    }
}

/// Counters of the receiving interface, read by a thread in its namespace.
struct Counters {
    folder: PathBuf,
}

impl Counters {
    fn read(&self, name: &str) -> Outcome<u64> {
        let file = self.folder.join("statistics").join(name);
        let text = fs_err::read_to_string(&file)?;
        (text.trim().parse()).with_context(|| file.display().to_string())
    }

    fn frames(&self) -> Outcome<u64> {
        self.read("rx_packets")
    }

    /// Returns the number of frames once it rests; waits for a limited time, as another sender may
    /// still be active.
    fn settled(&self) -> Outcome<u64> {
        let mut seen = self.frames()?;
        for _ in 0..10 {
            thread::sleep(SETTLING);
            let now = self.frames()?;
            if now == seen {
                break;
            }
            seen = now;
        }
        Ok(seen)
    }
}

/// A sender's run, observed at the receiving end.
#[derive(Debug)]
pub struct Run {
    /// Its exit status.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// Number of frames that arrived.
    pub arrived: u64,
    /// Octets of these frames, from the Ethernet header, without the frame check sequence.
    pub octets: u64,
    /// Arrivals per second while frames flowed, without the first and last twentieth; `None` if the
    /// run was too short. Preloading and start-up are excluded.
    pub steady_pps: Option<f64>,
    /// Time from the sender's start to its end.
    pub wall: Duration,
    /// Processor time of the sender and of the children that it waited for.
    pub cpu: Cpu,
    /// True if it was killed at the time limit.
    pub cut_off: bool,
}

impl Run {
    /// Requires success: a program of ours that fails has no figures.
    ///
    /// # Errors
    /// Returns an error if it failed, or did not end.
    pub fn succeeded(&self, what: &str) -> Outcome {
        let complaint = process::tail(&self.stderr, 12);
        ensure!(!self.cut_off, "{what}: did not end{complaint}");
        let status = self.status;
        // A run that ends behind its schedule (5) has figures.
        let ended = status.success() || status.code() == Some(5);
        ensure!(ended, "{what}: {status}{complaint}");
        Ok(())
    }

    /// Returns a number from a tool's JSON report.
    ///
    /// # Errors
    /// Returns an error if the tool failed, or reported no such number.
    pub fn reported(&self, what: &str, name: &str) -> Outcome<f64> {
        self.succeeded(what)?;
        let report: serde_json::Value = serde_json::from_str(&self.stdout)
            .with_context(|| format!("{what}: its report cannot be read"))?;
        let number = report.pointer(name).and_then(serde_json::Value::as_f64);
        number.with_context(|| format!("{what}: its report lacks the number {name}"))
    }
}

fn run(counters: &Counters, command: &mut Command, limit: Duration) -> Outcome<Run> {
    let (before, octets) = (counters.frames()?, counters.read("rx_bytes")?);
    // Files instead of pipes: a sender that fills a pipe would wait for us.
    let (stdout, stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
    command.stdin(Stdio::null());
    command.stdout(stdout.try_clone()?);
    command.stderr(stderr.try_clone()?);
    let began = Instant::now();
    let mut child = process::spawn(command)?;
    let mut samples = Vec::new();
    let mut cut_off = false;
    // `try_wait` would reap the ended child, and lose its processor time.
    let cpu = loop {
        samples.push((began.elapsed(), counters.frames()? - before));
        match Cpu::for_process(child.0.id()) {
            Some((cpu, true)) => break cpu,
            Some(_) => {}
            None => break Cpu::default(),
        }
        if began.elapsed() > limit && !cut_off {
            cut_off = true;
            let _ = child.0.kill();
        }
        thread::sleep(SAMPLING);
    };
    let wall = began.elapsed();
    let status = child.0.wait()?;
    Ok(Run {
        status,
        stdout: content(stdout)?,
        stderr: content(stderr)?,
        arrived: counters.settled()? - before,
        octets: counters.read("rx_bytes")? - octets,
        steady_pps: steady_pps(&samples),
        wall,
        cpu,
        cut_off,
    })
}

fn content(mut file: File) -> Outcome<String> {
    let mut octets = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut octets)?;
    Ok(String::from_utf8_lossy(&octets).into_owned())
}

/// Processor time in seconds, to hundredths.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cpu {
    /// User space.
    pub user: f64,
    /// Kernel.
    pub system: f64,
}

impl Cpu {
    /// Returns the sum of both.
    #[must_use]
    pub fn both(&self) -> f64 {
        self.user + self.system
    }

    /// Returns the processor time of a process and the children that it reaped; true if it has
    /// ended and waits to be reaped.
    #[must_use]
    pub fn for_process(pid: u32) -> Option<(Self, bool)> {
        Self::read(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    fn read(stat: &str) -> Option<(Self, bool)> {
        // The name in parentheses may itself contain spaces and parentheses.
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // Fields 14 to 17 of proc(5): utime, stime, cutime, cstime; `rest` begins with field 3, the
        // state.
        let ticks = |field: usize| fields.get(field)?.parse::<f64>().ok();
        let this = Self {
            user: (ticks(11)? + ticks(13)?) / TICKS,
            system: (ticks(12)? + ticks(14)?) / TICKS,
        };
        Some((this, ["Z", "X"].contains(fields.first()?)))
    }
}

/// Returns the rate between the sample where a twentieth had arrived and the one where all but a
/// twentieth had.
fn steady_pps(samples: &[(Duration, u64)]) -> Option<f64> {
    let all = samples.last()?.1;
    let trimmed = all / TRIMMED;
    let from = samples.iter().find(|(_, n)| *n > trimmed)?;
    let to = samples.iter().rfind(|(_, n)| *n < all - trimmed)?;
    let took = to.0.checked_sub(from.0)?;
    // Less than ten samples are too few: sampling would dominate.
    (took >= 10 * SAMPLING).then(|| (to.1 - from.1) as f64 / took.as_secs_f64())
}

/// Records the arrival time of each frame: tcpdump on the receiving interface, stamped by the
/// kernel in nanoseconds. It is woken once per block of many frames, not once per frame, so it
/// hardly disturbs. The packet socket itself costs each frame a clone of its buffer: fine for gaps
/// of at least 10 µs, wrong for top speed.
#[derive(Debug)]
pub struct Recorder {
    tcpdump: Running,
    complaints: BufReader<std::process::ChildStderr>,
    file: PathBuf,
}

impl Recorder {
    /// Starts recording into `file`, on other processors than the sender's.
    ///
    /// # Errors
    /// Returns an error if tcpdump is missing or fails.
    pub fn start(link: &Link, file: &Path, cpus: &str) -> Outcome<Self> {
        let mut command = link.receiver(Some(cpus), "tcpdump");
        // Without -Z root tcpdump opens the file as another user, who may lack permission to write
        // there.
        command.args("-Z root -n -Q in -j host --time-stamp-precision=nano".split(' '));
        command.args(["-s", RECORDED_OCTETS, "-B", RECORDER_RING]);
        command.args(["-i", link.receiving(), "-w"]).arg(file);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut tcpdump = process::spawn(command.stderr(Stdio::piped()))?;
        let stderr = tcpdump.0.stderr.take().context("no standard error")?;
        let mut complaints = BufReader::new(stderr);
        let mut text = String::new();
        while !text.contains("listening on") {
            if complaints.read_line(&mut text)? == 0 {
                let (line, text) = (process::command_line(&command), process::tail(&text, 12));
                bail!("`{line}` does not record{text}");
            }
        }
        Ok(Self {
            tcpdump,
            complaints,
            file: file.to_path_buf(),
        })
    }

    /// Stops once all arrivals are in the file, and returns the arrival time of each frame, in
    /// nanoseconds since 1970.
    ///
    /// # Errors
    /// Returns an error if tcpdump failed. Frames that it was too slow for are missing, and
    /// indistinguishable from lost ones.
    pub fn finish(mut self) -> Outcome<Vec<u64>> {
        // tcpdump takes up to a second to notice a block that is not full.
        thread::sleep(Duration::from_millis(1200));
        let pid = self.tcpdump.0.id().to_string();
        process::stdout(Command::new("kill").args(["-INT", &pid]))?;
        let mut text = String::new();
        self.complaints.read_to_string(&mut text)?;
        let status = self.tcpdump.0.wait()?;
        let text = process::tail(&text, 12);
        ensure!(status.success(), "tcpdump failed ({status}){text}");
        let stamp = |packet: &packets::Packet| packet.time.as_nanos() as u64;
        Ok(packets::read(&self.file)?
            .packets
            .iter()
            .map(stamp)
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_time_of_a_process_with_an_odd_name() {
        let stat = "7 (a) Z (b)) S 1 7 7 0 -1 4194560 100 0 0 0 250 130 20 5 20 0 1 0 300 0 0";
        let (cpu, ended) = Cpu::read(stat).unwrap();
        assert!((cpu.both() - 4.05).abs() < 1e-9 && !ended);
        assert!(Cpu::read(&stat.replace(" S 1", " Z 1")).unwrap().1);
        assert_eq!(Cpu::read("7 (sh) Z 1"), None);
        assert_eq!(Cpu::read(""), None);
    }

    #[test]
    fn the_steady_rate_excludes_start_and_end() {
        // One second of preloading, one second of 1000 frames every 10 ms, one second of nothing.
        let samples: Vec<(Duration, u64)> = (0..300)
            .map(|i: u64| (i as u32 * SAMPLING, i.clamp(100, 200) * 1000 - 100_000))
            .collect();
        let rate = steady_pps(&samples).unwrap();
        assert!((rate - 100_000.0).abs() < 1.0, "{rate}");
        assert_eq!(steady_pps(&[]), None);
        assert_eq!(steady_pps(&[(SAMPLING, 0), (2 * SAMPLING, 0)]), None);
        assert_eq!(steady_pps(&[(SAMPLING, 0), (2 * SAMPLING, 1000)]), None);
    }

    #[test]
    fn counts_times_and_records_what_python_sends() {
        let absent = |program| process::which(program).is_none();
        let lacking = ["tcpdump", "python3"].into_iter().find(|p| absent(p));
        let reason = Link::unavailable().or(lacking.map(|program| format!("needs {program}")));
        if let Some(reason) = reason {
            fcn_skip::skipped!("{reason}");
            return;
        }
        let link = Link::new(1).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let recorder = Recorder::start(&link, &folder.path().join("a.pcap"), "0").unwrap();
        let script = "import socket, sys\ns = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\ns.bind((sys.argv[1], 0))\n\
            f = bytes.fromhex('020000000002020000000001') + b'\\x86\\xdd' + bytes(80)\n\
            for _ in range(500): s.send(f)\nprint('done')";
        let mut command = link.sender(None, "python3");
        command.args(["-c", script, link.sending()]);
        let run = link.run(&mut command, Duration::from_secs(20)).unwrap();
        let arrivals = recorder.finish().unwrap();
        run.succeeded("python3").unwrap();
        assert_eq!((run.arrived, run.octets), (500, 500 * 94), "{run:?}");
        assert_eq!(run.stdout, "done\n");
        assert_eq!(arrivals.len(), 500);
        assert!(arrivals.is_sorted());
    }

    #[test]
    fn a_sender_is_cut_off_at_its_limit() {
        if let Some(reason) = Link::unavailable() {
            fcn_skip::skipped!("{reason}");
            return;
        }
        let link = Link::new(1).unwrap();
        // Uses processor time before it is killed, which must be measured.
        let mut command = link.sender(Some("0"), "sh");
        command.args(["-c", "while :; do :; done"]);
        let run = link.run(&mut command, Duration::from_millis(300)).unwrap();
        assert!(run.cut_off && run.succeeded("sh").is_err());
        assert!(run.cpu.both() > 0.0, "{run:?}");
        assert_eq!((run.arrived, run.steady_pps), (0, None));
    }
}
