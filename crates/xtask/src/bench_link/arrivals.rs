//! What arrives at the receiving end: how much and how fast, by the interface's counters, and when, by the kernel's stamps.
//! What a sender says of itself is not looked at. Not here: the senders (`peers.rs`).

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use pcap_file::pcap::PcapReader;

use crate::bench_link::network::{End, Network};
use crate::failure::{Failure, Outcome};
use crate::process;

/// How often the counters are read.
const SAMPLING: Duration = Duration::from_millis(10);
/// How long counters may rest until what was on its way counts as lost.
const SETTLING: Duration = Duration::from_millis(100);
/// The part of the arrivals at each end that the steady rate leaves out: warming up, and a child's last work.
const TRIMMED: u64 = 20;
/// Octets of a frame that the recorder keeps: addresses and ports, for looking into a strange run.
const RECORDED_OCTETS: &str = "64";
/// The recorder's ring in KiB: a second of frames every 5 µs.
const RECORDER_RING: &str = "65536";
/// Clock ticks a second in `/proc/PID/stat`; Linux fixes it for user space on the machines we build for.
const TICKS: u64 = 100;

/// An interface's counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames received.
    pub rx_packets: u64,
    /// Octets received, from the Ethernet header, without the frame check sequence.
    pub rx_bytes: u64,
    /// Frames that the receiving interface dropped before any protocol saw them.
    pub rx_dropped: u64,
    /// Frames sent.
    pub tx_packets: u64,
    /// Frames that the sending interface dropped.
    pub tx_dropped: u64,
}

impl Counters {
    /// The counters of an end's interface now.
    ///
    /// # Errors
    /// The namespace is gone, or the interface is.
    pub fn of(end: &End) -> Outcome<Self> {
        let path = end.counters_file();
        let text = std::fs::read_to_string(&path).map_err(|e| Failure::io("read", &path, &e))?;
        Self::read(&text, end.interface()).ok_or_else(|| {
            Failure::new(format!(
                "{} does not count interface {}",
                path.display(),
                end.interface()
            ))
        })
    }

    /// Reads the line of an interface in `/proc/net/dev`.
    fn read(text: &str, interface: &str) -> Option<Self> {
        let (_, numbers) = text
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.trim() == interface)?;
        let numbers: Vec<u64> = numbers
            .split_whitespace()
            .map_while(|word| word.parse().ok())
            .collect();
        // Eight numbers received, eight sent: octets, frames, errors, drops, ...
        Some(Self {
            rx_bytes: *numbers.first()?,
            rx_packets: *numbers.get(1)?,
            rx_dropped: *numbers.get(3)?,
            tx_packets: *numbers.get(9)?,
            tx_dropped: *numbers.get(11)?,
        })
    }

    /// What was counted since `earlier`.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            rx_packets: self.rx_packets.saturating_sub(earlier.rx_packets),
            rx_bytes: self.rx_bytes.saturating_sub(earlier.rx_bytes),
            rx_dropped: self.rx_dropped.saturating_sub(earlier.rx_dropped),
            tx_packets: self.tx_packets.saturating_sub(earlier.tx_packets),
            tx_dropped: self.tx_dropped.saturating_sub(earlier.tx_dropped),
        }
    }
}

/// Time in the processor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cpu {
    /// In user space.
    pub user: Duration,
    /// In the kernel.
    pub system: Duration,
}

impl Cpu {
    /// Both.
    #[must_use]
    pub const fn both(&self) -> Duration {
        self.user.saturating_add(self.system)
    }
}

/// A sender's run, seen from the receiving end.
#[derive(Debug)]
pub struct Run {
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
    /// The receiving interface's counters over the run.
    pub arrived: Counters,
    /// The sending interface's counters over the run.
    pub sent: Counters,
    /// Arrivals a second while frames flowed, without the first and last twentieth; `None` where the run was too short
    /// to tell. Preloading and start-up are not part of it.
    pub steady_pps: Option<f64>,
    /// From the sender's start to its end.
    pub wall: Duration,
    /// Time in the processor of the sender and of the children it waited for, to 10 ms.
    pub cpu: Cpu,
    /// Whether it was killed at the time limit.
    pub cut_off: bool,
}

/// Runs a sender to its end, and counts what arrives. `limit` is the longest it may take.
///
/// # Errors
/// The command could not be started, or the counters could not be read; it does not run on then.
pub fn run(network: &Network, command: &mut Command, limit: Duration) -> Outcome<Run> {
    let line = process::command_line(command);
    let before = Counters::of(&network.receiver)?;
    let sent_before = Counters::of(&network.sender)?;
    let began = Instant::now();
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| Failure::new(format!("cannot start `{line}`: {e}")))?;
    let mut child = KilledOnDrop(child);
    // Read beside it: a sender that fills a pipe would wait for us.
    let stdout = child
        .0
        .stdout
        .take()
        .map(|pipe| thread::spawn(|| all_of(pipe)));
    let stderr = child
        .0
        .stderr
        .take()
        .map(|pipe| thread::spawn(|| all_of(pipe)));
    let stat = Path::new("/proc")
        .join(child.0.id().to_string())
        .join("stat");

    let mut samples = Vec::new();
    let mut cut_off = false;
    // Not `try_wait`: that would take the ended child away, and its CPU time with it.
    let cpu = loop {
        let arrived = Counters::of(&network.receiver)?.since(&before).rx_packets;
        samples.push((began.elapsed(), arrived));
        let text = std::fs::read_to_string(&stat).unwrap_or_default();
        match CpuTime::read(&text) {
            Some(CpuTime { ended: false, .. }) => {}
            Some(CpuTime { used, .. }) => break used,
            None => break Cpu::default(),
        }
        if began.elapsed() > limit && !cut_off {
            cut_off = true;
            let _ = child.0.kill();
        }
        thread::sleep(SAMPLING);
    };
    let wall = began.elapsed();
    let status = child
        .0
        .wait()
        .map_err(|e| Failure::new(format!("cannot wait for `{line}`: {e}")))?;
    let arrived = settled(network, &before)?;
    let text = |reader: Option<thread::JoinHandle<String>>| {
        reader.and_then(|r| r.join().ok()).unwrap_or_default()
    };
    Ok(Run {
        status,
        stdout: text(stdout),
        stderr: text(stderr),
        arrived,
        sent: Counters::of(&network.sender)?.since(&sent_before),
        steady_pps: steady_pps(&samples),
        wall,
        cpu,
        cut_off,
    })
}

/// The counters once they rest; bounded, for another sender may still be at it.
fn settled(network: &Network, before: &Counters) -> Outcome<Counters> {
    let mut seen = Counters::of(&network.receiver)?;
    for _ in 0..10 {
        thread::sleep(SETTLING);
        let now = Counters::of(&network.receiver)?;
        if now == seen {
            break;
        }
        seen = now;
    }
    Ok(seen.since(before))
}

fn all_of(mut pipe: impl Read) -> String {
    let mut octets = Vec::new();
    // What was read until an error is still worth showing.
    let _ = pipe.read_to_end(&mut octets);
    String::from_utf8_lossy(&octets).into_owned()
}

/// A sender must not go on when its measurement has failed.
struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A process's use of the CPU, from `/proc/PID/stat`.
#[derive(Debug, PartialEq, Eq)]
struct CpuTime {
    /// It has ended and waits to be reaped.
    ended: bool,
    /// Its own time and that of the children it reaped.
    used: Cpu,
}

impl CpuTime {
    fn read(stat: &str) -> Option<Self> {
        // The name in parentheses may itself hold spaces and parentheses.
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // Fields 14 to 17 of proc(5): utime, stime, cutime, cstime; `rest` begins with field 3, the state.
        let ticks = |field: usize| fields.get(field)?.parse::<u64>().ok();
        let time = |own: usize, children: usize| {
            let ticks = ticks(own)?.saturating_add(ticks(children)?);
            Some(Duration::from_millis(ticks.saturating_mul(1000 / TICKS)))
        };
        let used = Cpu {
            user: time(11, 13)?,
            system: time(12, 14)?,
        };
        Some(Self {
            ended: matches!(*fields.first()?, "Z" | "X"),
            used,
        })
    }
}

/// The rate between the sample where a twentieth had arrived and the one where all but a twentieth had.
fn steady_pps(samples: &[(Duration, u64)]) -> Option<f64> {
    let all = samples.last()?.1;
    let trimmed = all / TRIMMED;
    let from = samples.iter().find(|(_, n)| *n > trimmed)?;
    let to = samples.iter().rfind(|(_, n)| *n < all - trimmed)?;
    let took = to.0.checked_sub(from.0)?;
    // Less than ten samples say more about the sampling than about the sender.
    (took >= 10 * SAMPLING).then(|| (to.1 - from.1) as f64 / took.as_secs_f64())
}

/// Records when each frame arrives: tcpdump on the receiving interface, stamped by the kernel in nanoseconds. It is
/// woken once a block of many frames, not once a frame, so it hardly disturbs; the packet socket itself costs each frame a
/// clone of its buffer: right for gaps from 10 µs up, wrong for top speed.
#[derive(Debug)]
pub struct Recorder {
    tcpdump: Child,
    complaints: BufReader<std::process::ChildStderr>,
    file: PathBuf,
}

/// What a recorder saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// When each frame arrived, in nanoseconds since 1970, in order of arrival.
    pub arrivals: Vec<u64>,
    /// Frames that arrived but that the recorder was too slow for: a recording with any is not worth analysing.
    pub missed: u64,
}

impl Recorder {
    /// Why nothing can be recorded here, if so: as a reason to skip.
    #[must_use]
    pub fn unavailable() -> Option<String> {
        process::which("tcpdump")
            .is_none()
            .then(|| "needs the program tcpdump: apt-get install tcpdump".to_owned())
    }

    /// Starts recording into `file`, on the CPUs given (as `taskset -c` writes them) if any: those the sender is not on.
    ///
    /// # Errors
    /// tcpdump is missing or refuses.
    pub fn start(end: &End, file: &Path, cpus: Option<&str>) -> Outcome<Self> {
        let mut command = match cpus {
            Some(cpus) => end.pinned(cpus, "tcpdump"),
            None => end.command("tcpdump"),
        };
        command
            // Without -Z root tcpdump opens the file as another user, who may not write there.
            .args(["-Z", "root", "-n", "-i", end.interface(), "-Q", "in"])
            .args(["-j", "host", "--time-stamp-precision=nano"])
            .args(["-s", RECORDED_OCTETS, "-B", RECORDER_RING, "-w"])
            .arg(file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let line = process::command_line(&command);
        let mut tcpdump = command
            .spawn()
            .map_err(|e| Failure::new(format!("cannot start `{line}`: {e}")))?;
        let Some(stderr) = tcpdump.stderr.take() else {
            return Err(Failure::new(format!("`{line}` has no standard error")));
        };
        let mut recorder = Self {
            tcpdump,
            complaints: BufReader::new(stderr),
            file: file.to_path_buf(),
        };
        let mut said = String::new();
        loop {
            let from = said.len();
            let read = recorder.complaints.read_line(&mut said);
            if said.get(from..).is_some_and(|l| l.contains("listening on")) {
                return Ok(recorder);
            }
            if !matches!(read, Ok(1..)) {
                let said = process::tail(&said, 12);
                return Err(Failure::new(format!("`{line}` does not record{said}")));
            }
        }
    }

    /// Stops once everything that arrived is in the file, and reads it.
    ///
    /// # Errors
    /// tcpdump failed, or its file cannot be read.
    pub fn finish(mut self) -> Outcome<Recording> {
        // tcpdump takes up to a second to notice a block that is not full.
        thread::sleep(Duration::from_millis(1200));
        let pid = self.tcpdump.id().to_string();
        process::stdout(Command::new("kill").args(["-INT", &pid]))?;
        let mut said = String::new();
        let _ = self.complaints.read_to_string(&mut said);
        let status = self
            .tcpdump
            .wait()
            .map_err(|e| Failure::new(format!("cannot wait for tcpdump: {e}")))?;
        if !status.success() {
            let said = process::tail(&said, 12);
            return Err(Failure::new(format!("tcpdump failed ({status}){said}")));
        }
        Ok(Recording {
            arrivals: stamps(&self.file)?,
            missed: missed(&said).unwrap_or(0),
        })
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.tcpdump.kill();
        let _ = self.tcpdump.wait();
    }
}

/// What tcpdump says it lost: `7 packets dropped by kernel`, at the interface likewise.
fn missed(said: &str) -> Option<u64> {
    said.lines()
        .filter(|line| line.contains("dropped by"))
        .map(|line| line.split_whitespace().next()?.parse::<u64>().ok())
        .sum()
}

/// The time stamps of a capture file, in nanoseconds since 1970.
///
/// # Errors
/// It cannot be read.
pub fn stamps(file: &Path) -> Outcome<Vec<u64>> {
    let open = File::open(file).map_err(|e| Failure::io("read", file, &e))?;
    let bad = |e: pcap_file::pcap::PcapReadError| {
        Failure::new(format!("cannot read {}: {e}", file.display()))
    };
    let mut reader = PcapReader::new(open).map_err(bad)?;
    let mut stamps = Vec::new();
    while let Some(packet) = reader.next_packet() {
        let stamp = packet.map_err(bad)?.timestamp().as_nanos();
        stamps.push(u64::try_from(stamp).unwrap_or(u64::MAX));
    }
    Ok(stamps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench_link::network::Plan;

    const TABLE: &str = "Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0
 veth0:94000000 1000000    0    3    0     0          0         0      188       2    0    1    0     0       0          0
";

    #[test]
    fn reads_the_counters_of_one_interface() {
        let counters = Counters::read(TABLE, "veth0").unwrap();
        assert_eq!(
            counters,
            Counters {
                rx_packets: 1_000_000,
                rx_bytes: 94_000_000,
                rx_dropped: 3,
                tx_packets: 2,
                tx_dropped: 1,
            }
        );
        assert_eq!(Counters::read(TABLE, "veth"), None);
        assert_eq!(Counters::read("veth0: 1 2 3", "veth0"), None);
    }

    #[test]
    fn reads_the_time_of_a_process_with_an_odd_name() {
        let stat = "7 (a) Z (b)) S 1 7 7 0 -1 4194560 100 0 0 0 250 130 20 5 20 0 1 0 300 0 0";
        let time = CpuTime::read(stat).unwrap();
        assert_eq!(
            (time.ended, time.used.both()),
            (false, Duration::from_millis(4050))
        );
        assert!(CpuTime::read(&stat.replace(" S 1", " Z 1")).unwrap().ended);
        assert_eq!(CpuTime::read("7 (sh) Z 1"), None);
        assert_eq!(CpuTime::read(""), None);
    }

    #[test]
    fn the_steady_rate_leaves_out_starting_and_ending() {
        // A second of preloading, a second of 1000 frames each 10 ms, a second of nothing.
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
    fn reads_what_tcpdump_lost() {
        let said = "10000 packets captured\n10010 packets received by filter\n7 packets dropped by kernel\n3 packets dropped by interface\n";
        assert_eq!(missed(said), Some(10));
        assert_eq!(missed("x dropped by kernel\n"), None);
        assert_eq!(missed(""), Some(0));
    }

    #[test]
    fn counts_times_and_records_what_ping_sends() {
        let reason = Network::unavailable()
            .or_else(Recorder::unavailable)
            .or_else(|| {
                (!Path::new("/usr/bin/python3").exists()).then(|| "needs python3".to_owned())
            });
        if let Some(reason) = reason {
            fcn_skip::skipped!("{reason}");
            return;
        }
        let network = Network::new(&Plan::default()).unwrap();
        let folder = std::env::temp_dir().join(format!("fcn-arrivals-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let recorder =
            Recorder::start(&network.receiver, &folder.join("arrivals.pcap"), None).unwrap();
        let script = "import socket, sys\ns = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\ns.bind(('veth0', 0))\n\
            f = bytes.fromhex('020000000002020000000001') + b'\\x86\\xdd' + bytes(80)\n\
            for _ in range(500): s.send(f)\nprint('done')";
        let mut command = network.sender.command("/usr/bin/python3");
        let run = run(
            &network,
            command.args(["-c", script]),
            Duration::from_secs(20),
        )
        .unwrap();
        let recording = recorder.finish().unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(run.status.success() && !run.cut_off, "{run:?}");
        assert_eq!(
            (run.arrived.rx_packets, run.arrived.rx_bytes),
            (500, 500 * 94),
            "{run:?}"
        );
        assert_eq!((run.sent.tx_packets, run.stdout.as_str()), (500, "done\n"));
        assert_eq!((recording.arrivals.len(), recording.missed), (500, 0));
        assert!(recording.arrivals.is_sorted());
    }

    #[test]
    fn a_sender_is_cut_off_at_its_limit() {
        if let Some(reason) = Network::unavailable() {
            fcn_skip::skipped!("{reason}");
            return;
        }
        let network = Network::new(&Plan::default()).unwrap();
        // Burns time before it is killed, which has to be seen.
        let mut command = network.sender.command("sh");
        command.args(["-c", "while :; do :; done"]);
        let run = run(&network, &mut command, Duration::from_millis(300)).unwrap();
        assert!(run.cut_off && !run.status.success());
        assert!(run.cpu.both() > Duration::ZERO, "{run:?}");
        assert_eq!((run.arrived.rx_packets, run.steady_pps), (0, None));
    }
}
