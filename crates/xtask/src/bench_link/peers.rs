//! The programs that ours are measured against: which are at hand, of what version, and how each is run at its best.
//! Not here: building the newest tcpreplay (`tcpreplay_build.rs`), and measuring (`arrivals.rs`).

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bench_link::network::End;
use crate::bench_link::tcpreplay_build;
use crate::failure::{Failure, Outcome};
use crate::process;

/// Names a tcpreplay built with `--xdp`, where the one in `PATH` is an older one.
pub const TCPREPLAY_VARIABLE: &str = "FCN_TCPREPLAY";
/// Frames handed over at a time: more gains nothing over veth, and 8 lose some 3 %.
pub const XDP_BATCH: u32 = 32;

/// How a peer sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// tcpreplay through a packet socket: a system call a frame.
    Tcpreplay,
    /// tcpreplay through AF_XDP, on queue 0.
    TcpreplayXdp,
    /// trafgen through a packet socket's transmit ring. It repeats one frame; it replays nothing.
    Trafgen,
}

/// A program to compare with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// How it sends.
    pub way: Way,
    /// What it says its version is.
    pub version: String,
    /// Where it stands.
    pub program: PathBuf,
}

/// A peer that is not at hand, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The peer.
    pub name: &'static str,
    /// Why it is not at hand, and what would help.
    pub reason: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One line, for whoever looks for such lines.
        let reason = self.reason.replace('\n', " ");
        write!(f, "SKIPPED: {}: {reason}", self.name)
    }
}

/// What to send at top speed.
#[derive(Debug, Clone, Copy)]
pub struct Load<'a> {
    /// A capture of many frames: with one of a thousand, tcpreplay's `--xdp` loses three of four when it loops.
    pub capture: &'a Path,
    /// Frames in the capture.
    pub frames: u64,
    /// How often it is sent.
    pub loops: u64,
    /// One of its frames, for a peer that repeats one.
    pub frame: &'a [u8],
    /// Processes, for a peer that can share the work.
    pub workers: u16,
}

/// Every peer, at hand or not. `cache` is where the newest tcpreplay is built, or was built before, if no other
/// has `--xdp`.
#[must_use]
pub fn peers(cache: &Path) -> Vec<Result<Peer, Missing>> {
    let installed = process::which("tcpreplay")
        .ok_or_else(|| Failure::new("not in PATH").todo("apt-get install tcpreplay"))
        .and_then(|program| Tcpreplay::ask(&program));
    let trafgen = process::which("trafgen")
        .or_else(|| sbin("trafgen"))
        .ok_or_else(|| Failure::new("not in PATH").todo("apt-get install netsniff-ng"))
        .and_then(|program| {
            // Its status is 1 even so.
            let output = process::output(Command::new(&program).arg("--version"))?;
            let said = String::from_utf8_lossy(&output.stdout);
            let version = trafgen_version(&said).ok_or_else(|| unknown_version(&program))?;
            Ok((program, version))
        });
    let newest = newest_tcpreplay(installed.as_ref().ok(), cache);
    // One program through a packet socket twice would be one measurement too many.
    let replaying = match (installed, &newest) {
        (Ok(one), Ok(other)) if one.program == other.program => vec![Ok(one)],
        (one, Ok(other)) => vec![one, Ok(other.clone())],
        (one, Err(_)) => vec![one],
    };
    let missing = |name| {
        move |failure: Failure| Missing {
            name,
            reason: failure.to_string(),
        }
    };
    let mut peers: Vec<_> = replaying
        .into_iter()
        .map(|found| {
            found
                .map(|t| t.peer(Way::Tcpreplay))
                .map_err(missing("tcpreplay"))
        })
        .collect();
    peers.push(
        newest
            .map(|t| t.peer(Way::TcpreplayXdp))
            .map_err(missing("tcpreplay --xdp")),
    );
    peers.push(
        trafgen
            .map(|(program, version)| Peer {
                way: Way::Trafgen,
                version,
                program,
            })
            .map_err(missing("trafgen")),
    );
    peers
}

/// A tcpreplay with `--xdp`: the one named, the one installed, the one built before, or one built now.
fn newest_tcpreplay(installed: Option<&Tcpreplay>, cache: &Path) -> Outcome<Tcpreplay> {
    if let Some(named) = std::env::var_os(TCPREPLAY_VARIABLE).filter(|v| !v.is_empty()) {
        let named = Tcpreplay::ask(Path::new(&named))?;
        if !named.xdp {
            return Err(Failure::new(format!(
                "{} (tcpreplay {}) was built without --xdp",
                named.program.display(),
                named.version
            ))
            .todo(format!("name another in {TCPREPLAY_VARIABLE}")));
        }
        return Ok(named);
    }
    if let Some(installed) = installed.filter(|t| t.xdp) {
        return Ok(installed.clone());
    }
    Tcpreplay::ask(&tcpreplay_build::build_tcpreplay(cache)?)
}

/// What a tcpreplay says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Tcpreplay {
    program: PathBuf,
    version: String,
    xdp: bool,
}

impl Tcpreplay {
    fn ask(program: &Path) -> Outcome<Self> {
        let mut command = Command::new(program);
        tcpreplay_build::environment(&mut command, program);
        // It describes itself on standard error.
        let output = process::output(command.arg("--version"))?;
        let mut said = String::from_utf8_lossy(&output.stderr).into_owned();
        said += &String::from_utf8_lossy(&output.stdout);
        let (version, xdp) = tcpreplay_version(&said).ok_or_else(|| {
            if output.status.success() {
                unknown_version(program)
            } else {
                process::failed(&command, &output)
            }
        })?;
        Ok(Self {
            program: program.to_path_buf(),
            version,
            xdp,
        })
    }

    fn peer(self, way: Way) -> Peer {
        Peer {
            way,
            version: self.version,
            program: self.program,
        }
    }
}

fn unknown_version(program: &Path) -> Failure {
    Failure::new(format!("{} does not say its version", program.display()))
}

/// Version, and whether AF_XDP was built in.
fn tcpreplay_version(said: &str) -> Option<(String, bool)> {
    let line = said
        .lines()
        .find_map(|l| l.strip_prefix("tcpreplay version:"))?;
    let version = line.split_whitespace().next()?;
    let xdp = said
        .lines()
        .any(|l| l.to_ascii_lowercase().contains("injection method") && l.contains("AF_XDP"));
    Some((version.to_owned(), xdp))
}

fn trafgen_version(said: &str) -> Option<String> {
    let rest = said.lines().find_map(|l| l.strip_prefix("trafgen "))?;
    let version = rest.split([' ', ',']).next()?;
    version
        .starts_with(|c: char| c.is_ascii_digit())
        .then(|| version.to_owned())
}

/// Programs for administrators, which a user's `PATH` leaves out.
fn sbin(program: &str) -> Option<PathBuf> {
    ["/usr/local/sbin", "/usr/sbin", "/sbin"]
        .iter()
        .map(|folder| Path::new(folder).join(program))
        .find(|path| path.is_file())
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, option) = match self.way {
            Way::Tcpreplay => ("tcpreplay", ""),
            Way::TcpreplayXdp => ("tcpreplay", " --xdp"),
            Way::Trafgen => ("trafgen", ""),
        };
        write!(f, "{name} {}{option}", self.version)
    }
}

impl Peer {
    /// Sends a load as fast as it can. `scratch` is a folder for a file that the peer reads; it must stay until the end
    /// of the run. `cpus` pins it, as `taskset -c` writes them.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn top_speed(
        &self,
        from: &End,
        load: &Load<'_>,
        scratch: &Path,
        cpus: Option<&str>,
    ) -> Outcome<Command> {
        let mut command = self.started(from, cpus);
        if self.way == Way::Trafgen {
            let file = scratch.join(format!("trafgen-{}.cfg", load.frame.len()));
            std::fs::write(&file, trafgen_config(load.frame))
                .map_err(|e| Failure::io("write", &file, &e))?;
            command.arg("--conf").arg(&file);
            command.args(["--dev", from.interface(), "--no-sock-mem"]);
            command.args(["--num", &load.frames.saturating_mul(load.loops).to_string()]);
            command.args(["--cpus", &load.workers.max(1).to_string()]);
            return Ok(command);
        }
        command.args(["--quiet", "--preload-pcap", "--no-flow-stats", "--topspeed"]);
        command.args(["--loop", &load.loops.to_string()]);
        if self.way == Way::TcpreplayXdp {
            command.args(["--xdp", "--xdp-batch-size", &XDP_BATCH.to_string()]);
        }
        command
            .args(["--intf1", from.interface()])
            .arg(load.capture);
        Ok(command)
    }

    /// Sends a capture once, at its own times, as exactly as it can; `None` if it cannot replay. Of tcpreplay's
    /// timers `gtod`, which spins, is by far the best; with `nano`, which sleeps, p99 is hundreds of microseconds.
    #[must_use]
    pub fn real_time(&self, from: &End, capture: &Path, cpus: Option<&str>) -> Option<Command> {
        let mut command = match self.way {
            Way::Trafgen => return None,
            Way::Tcpreplay | Way::TcpreplayXdp => self.started(from, cpus),
        };
        command.args([
            "--quiet",
            "--preload-pcap",
            "--no-flow-stats",
            "--timer=gtod",
        ]);
        if self.way == Way::TcpreplayXdp {
            // A larger batch is for top speed only.
            command.arg("--xdp");
        }
        command.args(["--intf1", from.interface()]).arg(capture);
        Some(command)
    }

    fn started(&self, from: &End, cpus: Option<&str>) -> Command {
        let mut command = match cpus {
            Some(cpus) => from.pinned(cpus, &self.program),
            None => from.command(&self.program),
        };
        tcpreplay_build::environment(&mut command, &self.program);
        command
    }
}

/// A trafgen configuration of one frame.
fn trafgen_config(frame: &[u8]) -> String {
    let octets: Vec<String> = frame.iter().map(|octet| format!("0x{octet:02x}")).collect();
    let lines: Vec<String> = octets.chunks(16).map(|line| line.join(", ")).collect();
    format!("{{\n  {}\n}}\n", lines.join(",\n  "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench_link::arrivals;
    use crate::bench_link::network::{Network, Plan};
    use std::time::Duration;

    #[test]
    fn reads_versions() {
        let old = "tcpreplay version: 4.4.3 (build git:v4.4.3)\nCopyright\nInjection method: PF_PACKET send()\n";
        assert_eq!(tcpreplay_version(old), Some(("4.4.3".to_owned(), false)));
        let new = "tcpreplay version: 4.5.5 (build git:)\nOptional injection method: AF_XDP\n";
        assert_eq!(tcpreplay_version(new), Some(("4.5.5".to_owned(), true)));
        assert_eq!(tcpreplay_version("usage"), None);
        let trafgen = "trafgen 0.6.8 (Flutternozzle), Git id: (none)\nmultithreaded\n";
        assert_eq!(trafgen_version(trafgen).as_deref(), Some("0.6.8"));
        assert_eq!(trafgen_version("trafgen what"), None);
    }

    #[test]
    fn a_missing_peer_is_one_line() {
        let failure = Failure::new("not in PATH").todo("apt-get install x");
        let missing = Missing {
            name: "x",
            reason: failure.to_string(),
        };
        let text = missing.to_string();
        assert!(text.starts_with("SKIPPED: x: not in PATH"), "{text}");
        assert!(
            text.ends_with("apt-get install x") && !text.contains('\n'),
            "{text}"
        );
    }

    #[test]
    fn writes_a_frame_for_trafgen() {
        assert_eq!(trafgen_config(&[0, 1, 0xfe]), "{\n  0x00, 0x01, 0xfe\n}\n");
        let long = trafgen_config(&[7; 17]);
        assert_eq!(long.matches("0x07").count(), 17);
        assert_eq!(long.matches(',').count(), 16);
    }

    /// A thousand frames of 94 octets, 10 µs apart.
    fn capture(file: &Path) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd];
        frame.resize(94, 0);
        let header = pcap_file::pcap::PcapHeader {
            ts_resolution: pcap_file::pcap::PcapTsResolution::NanoSecond,
            ..Default::default()
        };
        let out = std::fs::File::create(file).unwrap();
        let mut writer = pcap_file::pcap::PcapWriter::with_header(out, header).unwrap();
        for i in 0..1000 {
            let at = Duration::new(1_700_000_000, i * 10_000);
            let packet = pcap_file::pcap::PcapPacket::new(at, 94, &frame).unwrap();
            writer.write_packet(&packet).unwrap();
        }
        frame
    }

    #[test]
    fn every_peer_at_hand_sends_a_capture() {
        if let Some(reason) = Network::unavailable() {
            fcn_skip::skipped!("{reason}");
            return;
        }
        let network = Network::new(&Plan::default()).unwrap();
        let folder = std::env::temp_dir().join(format!("fcn-peers-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("thousand.pcap");
        let frame = capture(&file);
        let load = Load {
            capture: &file,
            frames: 1000,
            loops: 1,
            frame: &frame,
            workers: 1,
        };
        // A test builds nothing: a folder where no folder can be.
        for peer in peers(Path::new("/dev/null/none")) {
            let peer = match peer {
                Ok(peer) => peer,
                Err(missing) => {
                    fcn_skip::skipped!("{}: {}", missing.name, missing.reason);
                    continue;
                }
            };
            let mut commands = vec![
                peer.top_speed(&network.sender, &load, &folder, None)
                    .unwrap(),
            ];
            commands.extend(peer.real_time(&network.sender, &file, Some("0")));
            for mut command in commands {
                let line = process::command_line(&command);
                let run = arrivals::run(&network, &mut command, Duration::from_secs(20)).unwrap();
                assert!(run.status.success(), "{peer}: {line}: {run:?}");
                assert_eq!(run.arrived.rx_packets, 1000, "{peer}: {line}");
                assert_eq!(run.arrived.rx_bytes, 94_000, "{peer}: {line}");
            }
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
