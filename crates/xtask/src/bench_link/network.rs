//! Two network namespaces joined by a veth pair: where senders are measured, apart from every other network.
//! Not here: what runs in them (`peers.rs`), and what counts what arrives (`arrivals.rs`).

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::failure::{Failure, Outcome};
use crate::process;

/// What a name of ours begins with; the number of the process that made it follows.
const PREFIX: &str = "fcn-bench-";
/// The interface of each end; they live in different namespaces.
const INTERFACE: &str = "veth0";
/// The MAC address of the sending interface, as in `fcn-gen`'s frames.
pub const SENDER_MAC: &str = "02:00:00:00:00:01";
/// The MAC address of the receiving interface. Frames to any other die earlier in the kernel, and so arrive cheaper.
pub const RECEIVER_MAC: &str = "02:00:00:00:00:02";

/// What the veth pair is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Queues in each direction, from 1.
    pub queues: u16,
    /// Octets of the largest IP packet.
    pub mtu: u16,
    /// Whether the receiving end has GRO, and with it NAPI: its work then moves from the sender's core to a soft
    /// interrupt's. Off, the kernel's default, is faster for plain frames.
    pub gro: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            queues: 1,
            mtu: 1500,
            gro: false,
        }
    }
}

/// The two namespaces; they and the veth pair go when this is dropped.
#[derive(Debug)]
pub struct Network {
    /// Where a sender runs.
    pub sender: End,
    /// Where frames arrive, and die: IPv6 is off, there are no IPv4 addresses, and no ARP.
    pub receiver: End,
}

/// One namespace and its interface.
#[derive(Debug)]
pub struct End {
    namespace: String,
    /// Lives in the namespace, so that `/proc` shows it to us; ends when its standard input closes.
    holder: Child,
    stdin: Option<ChildStdin>,
}

impl Network {
    /// Why no network can be made here, if so: as a reason to skip.
    #[must_use]
    pub fn unavailable() -> Option<String> {
        if process::which("ip").is_none() {
            return Some("needs the program ip: apt-get install iproute2".to_owned());
        }
        if !process::is_root() {
            return Some("needs root, to make network namespaces: run it with sudo -E".to_owned());
        }
        let probe = unique("probe");
        let made = process::stdout(ip().args(["netns", "add", &probe]));
        let _ = process::output(ip().args(["netns", "del", &probe]));
        made.err().map(|e| e.to_string())
    }

    /// Makes the namespaces and the pair, and waits until both ends are up.
    ///
    /// # Errors
    /// A step failed; what was made until then is gone again.
    pub fn new(plan: &Plan) -> Outcome<Self> {
        sweep();
        let network = Self {
            sender: End::new(unique("tx"))?,
            receiver: End::new(unique("rx"))?,
        };
        let (queues, mtu) = (plan.queues.max(1).to_string(), plan.mtu.to_string());
        let half = |end: &End, mac: &str| {
            let words = [
                "name",
                INTERFACE,
                "netns",
                &end.namespace,
                "address",
                mac,
                "mtu",
                &mtu,
            ];
            let queues = ["numtxqueues", &queues, "numrxqueues", &queues];
            words
                .iter()
                .chain(&queues)
                .map(|w| (*w).to_owned())
                .collect()
        };
        let one: Vec<String> = half(&network.sender, SENDER_MAC);
        let other: Vec<String> = half(&network.receiver, RECEIVER_MAC);
        process::stdout(
            ip().args(["link", "add"])
                .args(one)
                .args(["type", "veth", "peer"])
                .args(other),
        )?;
        for end in [&network.sender, &network.receiver] {
            end.quiet_ipv6()?;
        }
        if plan.gro {
            let mut command = network.receiver.command("ethtool");
            process::stdout(command.args(["-K", INTERFACE, "gro", "on"]))?;
        }
        for end in [&network.sender, &network.receiver] {
            process::stdout(
                ip().args(["-n", &end.namespace, "link", "set", INTERFACE])
                    .args(["arp", "off", "multicast", "off", "up"]),
            )?;
        }
        Ok(network)
    }
}

impl End {
    fn new(namespace: String) -> Outcome<Self> {
        process::stdout(ip().args(["netns", "add", &namespace]))?;
        let held = hold(&namespace);
        let (holder, stdin) = match held {
            Ok(held) => held,
            Err(failure) => {
                let _ = process::output(ip().args(["netns", "del", &namespace]));
                return Err(failure);
            }
        };
        Ok(Self {
            namespace,
            holder,
            stdin,
        })
    }

    /// The namespace's name, for `ip -n` and `ip netns exec`.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The interface's name in its namespace.
    #[must_use]
    pub const fn interface(&self) -> &'static str {
        INTERFACE
    }

    /// A command that runs in the namespace, with its `/sys`, in the present folder. The process keeps its number:
    /// `ip` becomes the program.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = ip();
        command
            .args(["netns", "exec", &self.namespace])
            .arg(program);
        command
    }

    /// A command that runs in the namespace on these CPUs only, as `taskset -c` writes them (`0`, `0-1`).
    pub fn pinned(&self, cpus: &str, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.command("taskset");
        command.args(["-c", cpus]).arg(program);
        command
    }

    /// The table of interfaces and their counters, which any process may read without entering the namespace.
    #[must_use]
    pub fn counters_file(&self) -> std::path::PathBuf {
        Path::new("/proc")
            .join(self.holder.id().to_string())
            .join("net/dev")
    }

    /// Without IPv6 an interface that comes up says nothing, and frames that arrive die early.
    fn quiet_ipv6(&self) -> Outcome {
        let folder = "/proc/sys/net/ipv6/conf";
        let script = format!(
            "[ -d {folder} ] || exit 0; for i in all default {INTERFACE}; do echo 1 > {folder}/$i/disable_ipv6; done"
        );
        process::stdout(self.command("sh").args(["-e", "-c", &script])).map(drop)
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.holder.wait();
        let _ = process::output(ip().args(["netns", "del", &self.namespace]));
    }
}

/// A namespace's name that no other has.
fn unique(what: &str) -> String {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    format!("{PREFIX}{}-{number}-{what}", std::process::id())
}

fn ip() -> Command {
    Command::new("ip")
}

/// Starts the process that shows the namespace to us, and waits until it is inside.
fn hold(namespace: &str) -> Outcome<(Child, Option<ChildStdin>)> {
    let mut command = ip();
    command
        .args(["netns", "exec", namespace])
        .args(["sh", "-c", "echo; exec cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let line = process::command_line(&command);
    let mut holder = command
        .spawn()
        .map_err(|e| Failure::new(format!("cannot start `{line}`: {e}")))?;
    let mut said = String::new();
    let read = holder
        .stdout
        .take()
        .map_or(Ok(0), |out| BufReader::new(out).read_line(&mut said));
    if matches!(read, Ok(1..)) {
        let stdin = holder.stdin.take();
        return Ok((holder, stdin));
    }
    let _ = holder.kill();
    let _ = holder.wait();
    Err(Failure::new(format!("`{line}` ended at once")))
}

/// Deletes the namespaces of runs that were killed: those whose process is gone.
fn sweep() {
    let Ok(list) = process::stdout(ip().args(["netns", "list"])) else {
        return;
    };
    for name in list.lines().filter_map(|l| l.split_whitespace().next()) {
        if maker(name).is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            let _ = process::output(ip().args(["netns", "del", name]));
        }
    }
}

/// The process that made a namespace of ours.
fn maker(namespace: &str) -> Option<u32> {
    let (pid, _) = namespace.strip_prefix(PREFIX)?.split_once('-')?;
    pid.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_its_own_namespaces() {
        assert_eq!(maker("fcn-bench-12-0-tx"), Some(12));
        for other in [
            "fcn-bench-",
            "fcn-bench-x-0-tx",
            "lab-12-0-tx",
            "fcn-bench-12",
        ] {
            assert_eq!(maker(other), None, "{other}");
        }
    }

    #[test]
    fn makes_a_silent_network_and_leaves_nothing() {
        if let Some(reason) = Network::unavailable() {
            fcn_skip::skipped!("{reason}");
            return;
        }
        let plan = Plan {
            queues: 2,
            mtu: 9000,
            gro: false,
        };
        let network = Network::new(&plan).unwrap();
        for (end, mac) in [
            (&network.sender, SENDER_MAC),
            (&network.receiver, RECEIVER_MAC),
        ] {
            let text =
                process::stdout(
                    end.command("ip")
                        .args(["-d", "link", "show", end.interface()]),
                )
                .unwrap();
            for part in [mac, "mtu 9000", "numtxqueues 2", "LOWER_UP", "NOARP"] {
                assert!(text.contains(part), "{part}: {text}");
            }
            let addresses = process::stdout(end.command("ip").args(["-6", "addr"])).unwrap();
            assert_eq!(addresses, "");
            // /sys is the namespace's own.
            let seen = process::stdout(end.command("ls").arg("/sys/class/net")).unwrap();
            assert_eq!(
                seen.split_whitespace().collect::<Vec<_>>(),
                ["lo", INTERFACE]
            );
        }
        let pinned = process::stdout(
            network
                .sender
                .pinned("0", "grep")
                .args(["Cpus_allowed_list", "/proc/self/status"]),
        );
        assert!(pinned.unwrap().trim_end().ends_with("\t0"));
        let names = [
            network.sender.namespace().to_owned(),
            network.receiver.namespace().to_owned(),
        ];
        let counters = network.receiver.counters_file();
        assert!(counters.exists());
        drop(network);
        let left = process::stdout(ip().args(["netns", "list"])).unwrap();
        assert!(names.iter().all(|n| !left.contains(n.as_str())), "{left}");
        assert!(!counters.exists());
    }
}
