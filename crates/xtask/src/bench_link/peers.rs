//! The programs that ours are compared with: their availability, version, and best options.
//! Measuring is in `arrivals.rs`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::arrivals::Link;
use anyhow::{Context, ensure};

use crate::failure::Outcome;
use crate::process;

/// Names a tcpreplay built with `--xdp`, if the one in `PATH` is older.
pub const TCPREPLAY_VARIABLE: &str = "FCN_TCPREPLAY";
/// Frames handed over at a time: more gains nothing over veth, and 8 lose some 3 %.
pub const XDP_BATCH: &str = "32";

/// Method by which a peer sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// tcpreplay through a packet socket: one system call per frame.
    Tcpreplay,
    /// tcpreplay through AF_XDP, on queue 0.
    TcpreplayXdp,
    /// trafgen through a packet socket's transmit ring. It repeats one frame and cannot replay.
    Trafgen,
}

/// A program to compare with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Its sending method.
    pub method: Method,
    /// The version that it reports.
    pub version: String,
    /// Path of the program.
    pub program: PathBuf,
}

/// Frames to send at top speed.
#[derive(Debug, Clone, Copy)]
pub struct Load<'a> {
    /// A capture of many frames: with one of a thousand, tcpreplay's `--xdp` loses three of four
    /// when it loops.
    pub capture: &'a Path,
    /// Number of frames in the capture.
    pub frames: u64,
    /// Number of times that it is sent.
    pub loops: u64,
    /// One of its frames, for a peer that repeats one.
    pub frame: &'a [u8],
    /// Number of processes, for a peer that can share the work.
    pub workers: u16,
}

/// Returns every peer; for one that is not available, the reason in one line.
#[must_use]
pub fn peers() -> Vec<Result<Peer, String>> {
    let named = std::env::var_os(TCPREPLAY_VARIABLE).filter(|name| !name.is_empty());
    let program = named.map_or_else(|| find("tcpreplay", "tcpreplay"), |name| Ok(name.into()));
    let found = program.and_then(|program| tcpreplay(&program));
    // Through a packet socket, even if it supports AF_XDP, and through AF_XDP.
    let plain = found.as_ref().ok().map(|peer| Peer {
        method: Method::Tcpreplay,
        ..peer.clone()
    });
    let by_xdp = found.and_then(|peer| {
        ensure!(
            peer.method == Method::TcpreplayXdp,
            "{peer} was built without AF_XDP\n  what to do: build 4.5 or newer with libxdp-dev and libbpf-dev, and name it \
             in {TCPREPLAY_VARIABLE}"
        );
        Ok(peer)
    });
    let trafgen = find("trafgen", "netsniff-ng").and_then(trafgen);
    let line = |failure: anyhow::Error| format!("{failure:#}").replace('\n', " ");
    let all = plain.map(Ok).into_iter().chain([by_xdp, trafgen]);
    all.map(|peer| peer.map_err(line)).collect()
}

/// Returns a program in `PATH`, or in the folders for administrators, which a user's `PATH` leaves
/// out.
fn find(program: &str, package: &str) -> Outcome<PathBuf> {
    let sbin = ["/usr/local/sbin", "/usr/sbin"].map(|folder| Path::new(folder).join(program));
    let sbin = sbin.into_iter().find(|path| path.is_file());
    sbin.map_or_else(|| process::need(program, package), Ok)
}

/// Returns a tcpreplay, with AF_XDP if its version output says that it was built in.
fn tcpreplay(program: &Path) -> Outcome<Peer> {
    let mut command = Command::new(program);
    beside(&mut command, program);
    let (text, version) = version(&mut command, "tcpreplay version: ")?;
    let with_xdp = text.to_lowercase().contains("injection method: af_xdp");
    Ok(Peer {
        method: match with_xdp {
            true => Method::TcpreplayXdp,
            false => Method::Tcpreplay,
        },
        version,
        program: program.to_path_buf(),
    })
}

fn trafgen(program: PathBuf) -> Outcome<Peer> {
    let (_, version) = version(&mut Command::new(&program), "trafgen ")?;
    Ok(Peer {
        method: Method::Trafgen,
        version,
        program,
    })
}

/// Returns the version output of a program, from either stream and with any status, and the version
/// after the beginning of a line.
fn version(command: &mut Command, beginning: &str) -> Outcome<(String, String)> {
    let output = process::output(command.arg("--version"))?;
    let text = [&output.stderr[..], &output.stdout].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    let rest = text.lines().find_map(|line| line.strip_prefix(beginning));
    let word = rest.and_then(|rest| rest.split([' ', ',']).next());
    let version = word.filter(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    let version = version.with_context(|| process::failed(command, &output).to_string())?;
    Ok((text.clone(), version.to_owned()))
}

/// Lets a tcpreplay find the libraries and BPF objects next to it, if there are any. Any other
/// program finds its own.
fn beside(command: &mut Command, program: &Path) {
    let libraries = program.with_file_name("lib");
    let objects = libraries.join("bpf");
    if objects.is_dir() {
        command.env("LD_LIBRARY_PATH", &libraries);
        command.env("LIBXDP_OBJECT_PATH", &objects);
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = &self.version;
        match self.method {
            Method::Tcpreplay => write!(f, "tcpreplay {version}"),
            Method::TcpreplayXdp => write!(f, "tcpreplay {version} --xdp"),
            Method::Trafgen => write!(f, "trafgen {version}"),
        }
    }
}

impl Peer {
    /// Returns a command that sends a load as fast as possible. `scratch` is a folder for a file
    /// that the peer reads; it must stay until the end of the run. `cpus` pins it, in the format of
    /// `taskset -c`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn top_speed(
        &self,
        link: &Link,
        load: &Load<'_>,
        scratch: &Path,
        cpus: Option<&str>,
    ) -> Outcome<Command> {
        if self.method == Method::Trafgen {
            let file = scratch.join(format!("trafgen-{}.cfg", load.frame.len()));
            fs_err::write(&file, trafgen_config(load.frame))?;
            // It pins its processes itself.
            let mut command = link.sender(None, &self.program);
            command.arg("--conf").arg(&file);
            command.args(["--dev", link.sending(), "--no-sock-mem"]);
            command.args(["--num", &(load.frames * load.loops).to_string()]);
            command.args(["--cpus", &load.workers.max(1).to_string()]);
            return Ok(command);
        }
        let mut command = self.replaying(link, cpus);
        command.args(["--topspeed", "--loop", &load.loops.to_string()]);
        if self.method == Method::TcpreplayXdp {
            // A larger batch is only for top speed.
            command.args(["--xdp-batch-size", XDP_BATCH]);
        }
        command.arg(load.capture);
        Ok(command)
    }

    /// Returns true if it can replay a capture.
    #[must_use]
    pub fn replays(&self) -> bool {
        self.method != Method::Trafgen
    }

    /// Returns a command that sends a capture once, at its own times, as exactly as possible. Of
    /// tcpreplay's timers `gtod`, which spins, is by far the best; with `nano`, which sleeps, p99
    /// is hundreds of microseconds.
    #[must_use]
    pub fn real_time(&self, link: &Link, capture: &Path, cpus: &str) -> Command {
        let mut command = self.replaying(link, Some(cpus));
        command.arg("--timer=gtod").arg(capture);
        command
    }

    fn replaying(&self, link: &Link, cpus: Option<&str>) -> Command {
        let mut command = link.sender(cpus, &self.program);
        beside(&mut command, &self.program);
        command.args(["--quiet", "--preload-pcap", "--no-flow-stats"]);
        if self.method == Method::TcpreplayXdp {
            command.arg("--xdp");
        }
        command.args(["--intf1", link.sending()]);
        command
    }
}

/// Returns a trafgen configuration of one frame.
fn trafgen_config(frame: &[u8]) -> String {
    let octets: Vec<String> = frame.iter().map(|octet| format!("0x{octet:02x}")).collect();
    let lines: Vec<String> = octets.chunks(16).map(|line| line.join(", ")).collect();
    format!("{{\n  {}\n}}\n", lines.join(",\n  "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    /// Writes a program that prints `text`.
    fn saying(folder: &Path, text: &str) -> PathBuf {
        let program = folder.join("program");
        fs_err::write(&program, format!("#!/bin/sh\ncat <<END\n{text}END\n")).unwrap();
        fs_err::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        program
    }

    #[test]
    fn reads_versions() {
        let folder = tempfile::tempdir().unwrap();
        let peer = |text: &str| {
            let found = tcpreplay(&saying(folder.path(), text));
            found.map(|p| p.to_string()).ok()
        };
        let old = "tcpreplay version: 4.4.3 (build git:v4.4.3)\nCopyright\nInjection method: PF_PACKET send()\n";
        assert_eq!(peer(old), Some("tcpreplay 4.4.3".to_owned()));
        let new = "tcpreplay version: 4.5.5 (build git:)\nOptional injection method: AF_XDP\n";
        assert_eq!(peer(new), Some("tcpreplay 4.5.5 --xdp".to_owned()));
        assert_eq!(peer("usage\n"), None);
        let text = "trafgen 0.6.8 (Flutternozzle), Git id: (none)\nmultithreaded\n";
        let found = trafgen(saying(folder.path(), text)).map(|p| p.to_string());
        assert_eq!(found.unwrap(), "trafgen 0.6.8");
        assert!(trafgen(saying(folder.path(), "trafgen what\n")).is_err());
    }

    #[test]
    fn only_a_program_next_to_its_libraries_gets_them() {
        let mut command = Command::new("x");
        beside(&mut command, Path::new("/usr/bin/tcpreplay"));
        assert_eq!(command.get_envs().count(), 0);
        let folder = tempfile::tempdir().unwrap();
        fs_err::create_dir_all(folder.path().join("lib/bpf")).unwrap();
        beside(&mut command, &folder.path().join("tcpreplay"));
        assert_eq!(command.get_envs().count(), 2);
    }

    #[test]
    fn writes_a_frame_for_trafgen() {
        assert_eq!(trafgen_config(&[0, 1, 0xfe]), "{\n  0x00, 0x01, 0xfe\n}\n");
        let long = trafgen_config(&[7; 17]);
        assert_eq!(long.matches("0x07").count(), 17);
        assert_eq!(long.matches(',').count(), 16);
    }

    /// Writes a thousand frames of 94 octets, 10 µs apart.
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
    fn every_available_peer_sends_a_capture() {
        if let Some(reason) = Link::unavailable() {
            fcn_skip::skipped!("{reason}");
            return;
        }
        let link = Link::new(1).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("thousand.pcap");
        let frame = capture(&file);
        let load = Load {
            capture: &file,
            frames: 1000,
            loops: 1,
            frame: &frame,
            workers: 1,
        };
        for peer in peers() {
            let peer = match peer {
                Ok(peer) => peer,
                Err(missing) => {
                    assert!(!missing.contains('\n'));
                    fcn_skip::skipped!("{missing}");
                    continue;
                }
            };
            let mut commands = vec![peer.top_speed(&link, &load, folder.path(), None).unwrap()];
            commands.extend(peer.replays().then(|| peer.real_time(&link, &file, "0")));
            for mut command in commands {
                let line = process::command_line(&command);
                let run = link.run(&mut command, Duration::from_secs(20)).unwrap();
                assert!(run.status.success(), "{peer}: {line}: {run:?}");
                assert_eq!((run.arrived, run.octets), (1000, 94_000), "{peer}: {line}");
            }
        }
    }
}
