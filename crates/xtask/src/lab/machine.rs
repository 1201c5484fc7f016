//! The emulated machine: its emulator, the wire between its two interfaces, its run and its end.
//! Not here: what it boots (`kernel.rs`, `image.rs`).
//!
//! Two serial lines leave it: the kernel's console into a file, and the program's output, which is passed on, with the
//! lines of the first process (`init.sh`) that begin with [`MARK`].

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::Nic;
use super::apt::Root;
use crate::failure::{Failure, Outcome};
use crate::process;

/// What begins a line of the guest's first process.
const MARK: &str = "fcn-lab: ";

/// Added to the limit of the program for booting and going down.
const GRACE: Duration = Duration::from_secs(120);

/// The lines of the kernel's messages that a failure repeats.
const CONSOLE_LINES: usize = 12;

/// Makes two taps of several queues, joined by a bridge, in the network namespace it is started in, and turns into
/// the emulator, so that all of it goes when the emulator does. A bridge that learned addresses would keep frames
/// back whose destination it saw on the side that they come from.
const TAPS: &str = r#"set -e
ip link add wire type bridge mcast_snooping 0
ip link set wire up
for tap in tap0 tap1; do
    ip tuntap add dev $tap mode tap multi_queue vnet_hdr
    if [ -e /proc/sys/net/ipv6/conf/$tap ]; then echo 1 >/proc/sys/net/ipv6/conf/$tap/disable_ipv6; fi
    ip link set $tap mtu 9000 txqueuelen 20000 master wire up
    ip link set $tap type bridge_slave learning off
done
if [ -e /proc/sys/net/ipv6/conf/wire ]; then echo 1 >/proc/sys/net/ipv6/conf/wire/disable_ipv6; fi
exec "$@""#;

/// qemu for x86_64.
#[derive(Debug, Clone)]
pub(super) struct Emulator {
    /// The program, behind a loader where its libraries are not this machine's.
    words: Vec<OsString>,
    version: String,
}

impl Emulator {
    /// The one in `PATH`, if it has these devices.
    pub(super) fn installed(devices: &[&str]) -> Option<Self> {
        let words = vec![process::which("qemu-system-x86_64")?.into()];
        let help = process::stdout(command(&words).args(["-device", "help"])).ok()?;
        if !devices
            .iter()
            .all(|name| help.contains(&format!("name \"{name}\"")))
        {
            return None;
        }
        Self::of(words).ok()
    }

    /// The one unpacked in a folder.
    pub(super) fn unpacked(root: &Root) -> Outcome<Self> {
        let mut words = root.start("usr/bin/qemu-system-x86_64")?;
        for folder in ["usr/share/qemu", "usr/share/seabios"] {
            words.extend(["-L".into(), root.folder(folder).into_os_string()]);
        }
        Self::of(words)
    }

    fn of(words: Vec<OsString>) -> Outcome<Self> {
        let said = process::stdout(command(&words).arg("--version"))?;
        let version = said
            .split_whitespace()
            .nth(3)
            .unwrap_or("of unknown version");
        Ok(Self {
            version: version.to_owned(),
            words,
        })
    }

    /// "qemu 11.1.3"
    pub(super) fn describe(&self) -> String {
        format!("qemu {}", self.version)
    }
}

/// A command of several words.
fn command(words: &[OsString]) -> Command {
    let mut words = words.iter();
    let mut command = Command::new(words.next().map_or("false".as_ref(), OsString::as_os_str));
    command.args(words);
    command
}

/// How the two interfaces are joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wire {
    /// Inside the emulator. It has one queue a side as qemu sees it; igb spreads over its own.
    Hub {
        /// Why not by taps, where they were wanted.
        instead: Option<String>,
    },
    /// Taps of several queues in a network namespace of the emulator's own.
    Taps,
}

impl Wire {
    /// The wire for interfaces of that kind with that many queues, as far as this machine lets us.
    pub(super) fn of(nic: Nic, queues: u8) -> Self {
        if nic == Nic::Igb || queues == 1 {
            return Self::Hub { instead: None };
        }
        // The script is long: the failure tells what was said, not the command.
        let instead = match process::output(in_namespace().arg("true").stdin(Stdio::null())) {
            Ok(output) if output.status.success() => return Self::Taps,
            Ok(output) => format!(
                "taps in a network namespace cannot be made ({}){}",
                output.status,
                process::tail(&String::from_utf8_lossy(&output.stderr), 1)
            ),
            Err(failure) => failure.to_string(),
        };
        Self::Hub {
            instead: Some(instead),
        }
    }

    /// The queues that an interface then has.
    pub(super) const fn queues(&self, nic: Nic, wanted: u8) -> u8 {
        match (self, nic) {
            (Self::Hub { .. }, Nic::Virtio) => 1,
            _ => wanted,
        }
    }

    /// qemu's words for the wire and the interfaces on it.
    fn words(&self, nic: Nic, queues: u8) -> Vec<String> {
        let mut words = Vec::new();
        for side in 0..2 {
            let netdev = match self {
                Self::Hub { .. } => format!("hubport,id=side{side},hubid=0"),
                Self::Taps => {
                    format!(
                        "tap,id=side{side},ifname=tap{side},script=no,downscript=no,queues={queues}"
                    )
                }
            };
            words.extend(["-netdev".to_owned(), netdev]);
            // igb's virtual functions take slots of the bus that they are on.
            let port = format!("pcie-root-port,id=port{side},chassis={side},slot={side}");
            let mut device = format!("{},netdev=side{side},bus=port{side},romfile=", nic.device());
            if nic == Nic::Virtio {
                // The driver refuses zero copy unless it may map memory itself.
                device += ",disable-legacy=on,iommu_platform=on,rx_queue_size=1024";
                if queues > 1 {
                    device += &format!(",mq=on,vectors={}", 2 * u16::from(queues) + 2);
                }
            }
            words.extend(["-device".to_owned(), port, "-device".to_owned(), device]);
        }
        words
    }
}

/// Runs what follows in a network namespace with the taps.
fn in_namespace() -> Command {
    let mut command = Command::new("unshare");
    if !process::is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--net", "--", "sh", "-c", TAPS, "sh"]);
    command
}

/// A guest to be run.
pub(super) struct Machine<'a> {
    pub emulator: &'a Emulator,
    pub kernel: &'a Path,
    pub initramfs: &'a Path,
    /// Where the kernel's messages go.
    pub console: &'a PathBuf,
    pub nic: Nic,
    pub queues: u8,
    pub wire: &'a Wire,
    /// For the program in the guest.
    pub limit: Duration,
}

impl Machine<'_> {
    /// Boots it, passes on what the program prints, and waits for its end, which comes at the latest a little after
    /// the limit.
    ///
    /// Returns what guest it was.
    pub(super) fn run(&self) -> Outcome<String> {
        let mut command = self.command();
        let line = process::command_line(&command);
        let complaints = self.console.with_extension("qemu");
        let file = File::create(&complaints).map_err(|e| Failure::io("write", &complaints, &e))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(file)
            .spawn()
            .map_err(|e| Failure::new(format!("cannot start `{line}`: {e}")))?;
        let mut child = Ended(child);
        let mut guest = Guest::default();
        let in_time = self.listen(&mut child.0, &mut guest);
        drop(child);
        let told = end_of(&complaints) + &end_of(self.console);
        if !in_time {
            let seconds = (self.limit + GRACE).as_secs();
            return Err(Failure::new(format!(
                "the guest did not end within {seconds} s; it was killed{told}"
            )));
        }
        guest.conclude(&told)
    }

    /// The whole line: killed with this process, in a namespace with taps or without.
    fn command(&self) -> Command {
        let mut command = match self.wire {
            Wire::Taps => in_namespace(),
            Wire::Hub { .. } => Command::new("env"),
        };
        let processors = self.queues.max(2);
        command
            .args(["setpriv", "--pdeathsig", "KILL", "--"])
            .args(&self.emulator.words)
            .args(["-no-user-config", "-nodefaults", "-display", "none"])
            .args(["-machine", "q35", "-accel", "tcg,thread=multi"])
            .args(["-cpu", "max", "-m", "1G", "-no-reboot"])
            .args(["-smp", &processors.to_string()])
            .arg("-serial")
            .arg(with_path("file:", self.console))
            .args(["-serial", "stdio"])
            .arg("-kernel")
            .arg(self.kernel)
            .arg("-initrd")
            .arg(self.initramfs)
            .args(["-append", "console=ttyS0 panic=-1"])
            .args(self.wire.words(self.nic, self.queues));
        command
    }

    /// Passes on what comes, until the emulator closes its output; whether it did so in time.
    fn listen(&self, child: &mut Child, guest: &mut Guest) -> bool {
        let Some(output) = child.stdout.take() else {
            return true;
        };
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).split(b'\n') {
                let Ok(line) = line else { break };
                let text = String::from_utf8_lossy(&line)
                    .trim_end_matches('\r')
                    .to_owned();
                if sender.send(text).is_err() {
                    break;
                }
            }
        });
        let end = Instant::now() + self.limit + GRACE;
        loop {
            match receiver.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(text) => {
                    if !guest.heard(&text) {
                        println!("{text}");
                    }
                }
                Err(RecvTimeoutError::Timeout) => return false,
                Err(RecvTimeoutError::Disconnected) => return true,
            }
        }
    }
}

/// The last lines of a file, for a failure; none where it cannot be read.
fn end_of(file: &Path) -> String {
    let text = std::fs::read(file).unwrap_or_default();
    process::tail(&String::from_utf8_lossy(&text), CONSOLE_LINES)
}

fn with_path(prefix: &str, path: &Path) -> OsString {
    let mut word = OsString::from(prefix);
    word.push(path);
    word
}

/// A child that is killed and reaped when it goes out of scope, whether or not it ended before.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It has ended already where these fail.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the guest's first process said.
#[derive(Debug, Default)]
struct Guest {
    ready: Option<String>,
    broken: Option<String>,
    exit: Option<i32>,
}

impl Guest {
    /// Takes a line of the first process; whether it was one.
    fn heard(&mut self, line: &str) -> bool {
        let Some(said) = line.strip_prefix(MARK) else {
            return false;
        };
        if let Some(what) = said.strip_prefix("ready: ") {
            self.ready = Some(what.to_owned());
        } else if let Some(what) = said.strip_prefix("broken: ") {
            self.broken = Some(what.to_owned());
        } else if let Some(code) = said.strip_prefix("exit ") {
            self.exit = code.trim().parse().ok();
        }
        true
    }

    /// What it came to; `told` is the end of what emulator and kernel said.
    fn conclude(self, told: &str) -> Outcome<String> {
        let ready = self.ready.unwrap_or_default();
        match (self.broken, self.exit) {
            (Some(what), _) => Err(Failure::new(format!("the guest is broken: {what}{told}"))),
            (None, None) => Err(Failure::new(format!(
                "the guest ended before the program did{told}"
            ))),
            (None, Some(0)) => Ok(ready),
            (None, Some(code)) => Err(Failure::new(format!(
                "the program ended with exit code {code}{} ({ready})",
                match code {
                    137 => ", killed: the time limit?",
                    _ => "",
                }
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_queue_needs_no_taps() {
        let none = Wire::Hub { instead: None };
        assert_eq!(Wire::of(Nic::Virtio, 1), none);
        assert_eq!(Wire::of(Nic::Igb, 4), none);
        assert_eq!(none.queues(Nic::Igb, 4), 4);
        assert_eq!(none.queues(Nic::Virtio, 4), 1);
        assert_eq!(Wire::Taps.queues(Nic::Virtio, 4), 4);
    }

    #[test]
    fn interfaces_are_made_for_zero_copy() {
        let words = Wire::Taps.words(Nic::Virtio, 4).join(" ");
        assert!(words.contains("ifname=tap1,script=no,downscript=no,queues=4"));
        assert!(words.contains("iommu_platform=on,rx_queue_size=1024,mq=on,vectors=10"));
        let hub = Wire::Hub { instead: None };
        assert!(!hub.words(Nic::Igb, 2).join(" ").contains("iommu"));
        assert!(!hub.words(Nic::Virtio, 1).join(" ").contains("mq=on"));
    }

    #[test]
    fn a_guest_ends_well_only_with_a_program_that_did() {
        let guest = |lines: &[&str]| {
            let mut guest = Guest::default();
            for line in lines {
                assert!(guest.heard(line), "{line}");
            }
            guest.conclude("\n    oops").map_err(|f| f.to_string())
        };
        let ready = "fcn-lab: ready: Linux 7.2";
        assert_eq!(
            guest(&[ready, "fcn-lab: exit 0"]),
            Ok("Linux 7.2".to_owned())
        );
        let failed = guest(&[ready, "fcn-lab: exit 3"]).unwrap_err();
        assert_eq!(failed, "the program ended with exit code 3 (Linux 7.2)");
        let killed = guest(&[ready, "fcn-lab: exit 137"]).unwrap_err();
        assert!(killed.contains("time limit"));
        assert!(guest(&[ready]).unwrap_err().contains("oops"));
        assert!(guest(&[ready, "fcn-lab: exit x"]).is_err());
        let broken = guest(&["fcn-lab: broken: no eth1"]).unwrap_err();
        assert!(broken.starts_with("the guest is broken: no eth1"));
        assert!(!Guest::default().heard("exit 0"));
    }

    #[test]
    fn what_is_left_running_is_killed() {
        let child = Command::new("sleep").arg("1000").spawn().unwrap();
        let id = child.id();
        drop(Ended(child));
        assert!(!Path::new(&format!("/proc/{id}")).exists());
    }
}
