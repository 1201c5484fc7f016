//! Reads the kernel's data on RDMA devices, once a second, while packets may be captured.

use super::{Process, Reading, Watch};
use crate::engine::{Engine, Input};
use fcn_link::rdma::{self, Port, QueuePair};
use fcn_tool::failure::Failure;
use std::collections::HashMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Interval at which counters are read.
const EVERY: Duration = Duration::from_secs(1);
/// Ports, addresses, queue pairs and processes are read only with one in this many readings: the
/// NIC is queried for each queue pair.
const SELDOM: u32 = 10;
/// Interval at which the end of the run is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Time in which all packets captured up to a moment have arrived.
const MAX_DELIVERY_DELAY: Duration = Duration::from_millis(60);
/// Maximum number of processes examined.
const PROCESSES: usize = 10_000;

/// Reader, with data that need not be read every time.
#[derive(Default)]
pub struct Reader {
    class: PathBuf,
    processes: PathBuf,
    private: bool,
    readings: u32,
    ports: Vec<Port>,
    pairs: Vec<QueuePair>,
    known: HashMap<u32, Process>,
    missing: Option<String>,
}

impl Reader {
    /// Creates a reader for this host. If `private`, names of processes and containers are not
    /// read, and names of interfaces are hidden.
    pub fn new(private: bool) -> Self {
        Self::at(rdma::CLASS, "/proc", private)
    }

    pub(super) fn at(
        class: impl Into<PathBuf>,
        processes: impl Into<PathBuf>,
        private: bool,
    ) -> Self {
        Self {
            class: class.into(),
            processes: processes.into(),
            private,
            ..Self::default()
        }
    }

    /// Reads the current data; if `all`, including data that seldom changes.
    pub fn read(&mut self, all: bool) -> Reading {
        let again = all || self.readings.is_multiple_of(SELDOM) || self.ports.is_empty();
        self.readings = self.readings.wrapping_add(1);
        if again {
            self.look();
        }
        let counters = |port: &Port| (port.clone(), port.counters(&self.class));
        Reading {
            ports: self.ports.iter().map(counters).collect(),
            sets: match &self.missing {
                None => rdma::counter_sets().unwrap_or_default(),
                Some(_) => Vec::new(),
            },
            queue_pairs: self.pairs.clone(),
            processes: self.known.clone(),
            missing: self.missing.clone(),
            private: self.private,
        }
    }

    /// Passes on the data once a second until the run is over, and at its end, then completely.
    pub fn each_second(&mut self, over: impl Fn() -> bool, mut take: impl FnMut(&Reading, bool)) {
        loop {
            let begun = Instant::now();
            wait(|| begun.elapsed() >= EVERY || over());
            let last = over();
            take(&self.read(last), last);
            if last {
                return;
            }
        }
    }

    fn look(&mut self) {
        let class = self.class.display();
        (self.ports, self.missing) = match rdma::ports(&self.class) {
            Ok(ports) if ports.is_empty() => {
                let why = format!("this host has no RDMA device in {class}");
                (ports, Some(why))
            }
            Ok(mut ports) => {
                rdma::keep_own_interfaces(&mut ports);
                (ports, None)
            }
            Err(error) => (Vec::new(), Some(format!("cannot read {class}: {error}"))),
        };
        self.pairs.clear();
        self.known.clear();
        if self.missing.is_some() {
            return;
        }
        match rdma::queue_pairs() {
            Ok(pairs) => self.pairs = pairs,
            Err(error) => self.missing = Some(refused(&error)),
        }
        let ids = self.pairs.iter().filter_map(|pair| pair.pid);
        for pid in ids.filter(|_| !self.private) {
            if self.known.len() < PROCESSES && !self.known.contains_key(&pid) {
                self.known
                    .insert(pid, process(&self.processes.join(pid.to_string())));
            }
        }
    }
}

/// Waits until the run is over.
pub fn wait(over: impl Fn() -> bool) {
    while !over() {
        thread::sleep(POLL_INTERVAL);
    }
}

/// Error text for unavailable queue pairs, with advice.
fn refused(error: &std::io::Error) -> String {
    let advice = match error.kind() {
        ErrorKind::PermissionDenied => "run as root, or see what confines this process (seccomp)",
        _ => "load the kernel module ib_core, which `rdma resource show qp` also needs",
    };
    format!("queue pairs and bound counters are unknown: RDMA netlink: {error}; {advice}")
}

/// Reads a process from its folder, as far as accessible.
fn process(folder: &Path) -> Process {
    let text = |name: &str| {
        let mut text = Vec::new();
        let file = File::open(folder.join(name)).ok()?;
        file.take(4_096).read_to_end(&mut text).ok()?;
        Some(String::from_utf8_lossy(&text).into_owned())
    };
    let name = text("comm").map(|name| name.trim_end_matches('\n').into());
    let container = text("cgroup").and_then(|text| container(&text).map(Arc::from));
    Process { name, container }
}

/// Returns the container of a process from the lines of its `cgroup` file: the first twelve of 64
/// hexadecimal digits, as used by Docker, containerd, CRI-O and Podman in the last part of the
/// path, or the name used by LXC.
fn container(cgroup: &str) -> Option<&str> {
    let paths = cgroup.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    let mut parts = paths.flat_map(|path| path.rsplit('/'));
    parts.find_map(|part| {
        if let Some(name) = part.strip_prefix("lxc.payload.") {
            return Some(name);
        }
        let number = part.strip_suffix(".scope").unwrap_or(part);
        let number = number.rsplit(['-', ':']).next()?;
        let is_number = number.len() == 64 && number.bytes().all(|b| b.is_ascii_hexdigit());
        number.get(..12).filter(|_| is_number)
    })
}

/// An input that reads counters while packets are captured on interfaces.
pub struct NicInput {
    reader: Reader,
    watch: Watch,
}

impl NicInput {
    /// Creates one for this host.
    pub fn new(private: bool) -> Self {
        Self {
            reader: Reader::new(private),
            watch: Watch::default(),
        }
    }
}

impl Input for NicInput {
    fn run(&mut self, engine: &Engine, stop: &AtomicBool) -> Result<(), Failure> {
        let Self { reader, watch } = self;
        let mut take = |reading: &Reading, last: bool| {
            if last {
                thread::sleep(MAX_DELIVERY_DELAY);
            }
            let nics = engine.with(|monitor| watch.take(reading, Some(monitor)));
            engine.set_nics(nics);
        };
        take(&reader.read(false), false);
        let over = || stop.load(Ordering::Relaxed) || engine.limit_reached();
        reader.each_second(over, take);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_device_is_reported() {
        let root = tempfile::tempdir().unwrap();
        let reading = Reader::at(root.path(), root.path(), false).read(false);
        assert!(reading.ports.is_empty());
        let missing = reading.missing.unwrap();
        assert!(
            missing.starts_with("this host has no RDMA device"),
            "{missing}"
        );
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let denied = refused(&ErrorKind::PermissionDenied.into());
        assert!(denied.contains("run as root"), "{denied}");
        let error = std::io::Error::from_raw_os_error(93);
        assert!(refused(&error).contains("ib_core"));
    }

    #[test]
    fn containers_by_their_cgroups() {
        let number = "0123456789abcdef".repeat(4);
        let short = Some("0123456789ab");
        for (text, found) in [
            (format!("0::/system.slice/docker-{number}.scope\n"), short),
            (format!("12:cpu:/docker/{number}\n0::/\n"), short),
            (
                format!("0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{number}.scope"),
                short,
            ),
            (
                format!("0::/kubepods/besteffort/pod1:cri-containerd:{number}"),
                short,
            ),
            (
                format!("0::/machine.slice/libpod-{number}.scope/container"),
                short,
            ),
            ("0::/lxc.payload.web/init.scope".to_owned(), Some("web")),
            (
                "0::/user.slice/user-0.slice/session-1.scope".to_owned(),
                None,
            ),
            (format!("0::/{}", "g".repeat(64)), None),
            (format!("0::/docker-{}é.scope", "a".repeat(63)), None),
            (number, None),
            (String::new(), None),
        ] {
            assert_eq!(container(&text), found, "{text}");
        }
    }

    #[test]
    fn processes_by_their_folders() {
        let root = tempfile::tempdir().unwrap();
        assert!(process(&root.path().join("7")).name.is_none());
        std::fs::write(root.path().join("comm"), b"a\xff\x1b[2J b\n").unwrap();
        std::fs::write(root.path().join("cgroup"), "0::/\n").unwrap();
        let found = process(root.path());
        assert_eq!(found.name.as_deref(), Some("a\u{fffd}\u{1b}[2J b"));
        assert!(found.container.is_none());
    }
}
