//! Two network namespaces joined by a veth pair, and code to run inside them.
//!
//! Nothing here touches an interface or a namespace that it did not create.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Output};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Folder in which iproute2 keeps the names of namespaces.
const NAMES: &str = "/run/netns";
/// Prefix of our namespaces, which identifies those of a killed run.
const PREFIX: &str = "fcntest";
/// Maximum time for a link to come up; it normally takes milliseconds.
const TIMEOUT: Duration = Duration::from_secs(10);

/// One of the two namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The sending end.
    Near,
    /// The receiving end.
    Far,
}

impl End {
    /// Both ends.
    pub const BOTH: [Self; 2] = [Self::Near, Self::Far];

    const fn name(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Far => "far",
        }
    }
}

/// Properties of a pair.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Number of transmit queues and of receive queues of each end.
    pub queues: u32,
    /// MTU of both ends, in octets.
    pub mtu: u32,
    /// Enables generic receive offload at both ends.
    pub gro: bool,
    /// Enables IPv6: the kernel then sends its own frames.
    pub ipv6: bool,
    /// Sets both ends up, and waits for them.
    pub up: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            queues: 1,
            mtu: 1500,
            gro: false,
            ipv6: false,
            up: true,
        }
    }
}

/// Two namespaces joined by a veth pair, removed when dropped.
#[derive(Debug)]
pub struct Pair {
    near: Namespace,
    far: Namespace,
}

impl Pair {
    /// Creates a pair with [`Options::default`]. Returns `None`, after reporting a skipped test, if
    /// this machine does not support it. `name` is that of the test, for messages.
    pub fn new(name: &str) -> Option<Self> {
        Self::with(name, &Options::default())
    }

    /// Creates a pair. Returns `None`, after reporting a skipped test, if this machine does not
    /// support it.
    ///
    /// # Panics
    ///
    /// Namespaces can be created, but not joined as requested.
    pub fn with(name: &str, options: &Options) -> Option<Self> {
        sweep();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let namespace = |end: End| Namespace::new(name, end, number);
        let pair = Self {
            near: namespace(End::Near)?,
            far: namespace(End::Far)?,
        };
        let queues = options.queues.to_string();
        let mtu = options.mtu.to_string();
        let shape = ["mtu", &mtu, "numtxqueues", &queues, "numrxqueues", &queues];
        let mut add = vec!["link", "add", End::Near.name()];
        add.extend(shape);
        add.extend(["type", "veth", "peer", "name", End::Far.name()]);
        add.extend(shape);
        add.extend(["netns", &pair.far.name]);
        if !options.ipv6 {
            for end in End::BOTH {
                pair.inside(end, || {
                    for which in ["all", "default"] {
                        let switch = format!("/proc/sys/net/ipv6/conf/{which}/disable_ipv6");
                        // Without the file there is no IPv6 to disable.
                        if Path::new(&switch).exists() {
                            fs::write(&switch, "1").expect("IPv6 off");
                        }
                    }
                });
            }
        }
        pair.ip(End::Near, &add);
        for end in End::BOTH {
            let gro = if options.gro { "on" } else { "off" };
            let mut ethtool = pair.command(end, "ethtool");
            ethtool.args(["-K", end.name(), "gro", gro]);
            let done = ethtool.output();
            // It is off by default, which suffices for a machine without ethtool.
            if options.gro || done.as_ref().is_ok_and(|o| o.status.success()) {
                succeed(&format!("{ethtool:?}"), done);
            }
            if options.up {
                pair.ip(end, &["link", "set", "lo", "up"]);
                pair.ip(end, &["link", "set", end.name(), "up"]);
            }
        }
        if options.up {
            for end in End::BOTH {
                pair.wait_for_carrier(end);
            }
        }
        Some(pair)
    }

    /// Returns the name of the interface at that end, inside its namespace.
    pub const fn interface(&self, end: End) -> &'static str {
        end.name()
    }

    /// Returns the name of the namespace, for `ip -n`.
    pub fn namespace(&self, end: End) -> &str {
        &self.at(end).name
    }

    /// Returns the hardware address of the interface at that end.
    pub fn mac(&self, end: End) -> [u8; 6] {
        let text = self.inside(end, || {
            fs::read_to_string(format!("/sys/class/net/{}/address", end.name())).expect("address")
        });
        let mut mac = [0; 6];
        let mut parts = text.trim().split(':');
        for octet in &mut mac {
            *octet = parts
                .next()
                .and_then(|part| u8::from_str_radix(part, 16).ok())
                .expect("six octets");
        }
        mac
    }

    /// Runs `ip` in that namespace.
    ///
    /// # Panics
    ///
    /// It fails.
    pub fn ip(&self, end: End, args: &[&str]) {
        assert!(self.try_ip(end, args), "ip {args:?} at the {end:?} end");
    }

    /// Runs `ip` in that namespace; returns true on success, for kinds of interface that a kernel
    /// may lack.
    pub fn try_ip(&self, end: End, args: &[&str]) -> bool {
        let mut ip = Command::new("ip");
        ip.args(["-n", &self.at(end).name]).args(args);
        let output = ip.output().expect("ip runs");
        if !output.status.success() {
            eprintln!("{ip:?}: {}", text(&output));
        }
        output.status.success()
    }

    /// True if an XDP program is attached to the interface at that end.
    pub fn has_xdp_program(&self, end: End) -> bool {
        let mut ip = self.command(end, "ip");
        let output = ip.args(["link", "show", "dev", end.name()]).output();
        let output = output.expect("ip runs").stdout;
        String::from_utf8_lossy(&output).contains("prog/xdp")
    }

    /// Returns a command that will run in that namespace, with its `/sys`.
    pub fn command(&self, end: End, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.at(end).name]);
        command.arg(program);
        command
    }

    /// Runs `f` on a thread inside that namespace, with its `/sys`. Sockets that it opens stay in
    /// the namespace, even if they are moved to other threads.
    ///
    /// # Panics
    ///
    /// `f` panics, or the namespace cannot be entered.
    pub fn inside<T: Send>(&self, end: End, f: impl FnOnce() -> T + Send) -> T {
        let namespace = self.at(end);
        thread::scope(|scope| {
            let run = || {
                namespace.enter();
                f()
            };
            match scope.spawn(run).join() {
                Ok(value) => value,
                Err(panic) => resume_unwind(panic),
            }
        })
    }

    /// Returns an entry to that namespace for threads started by the test.
    pub fn entry(&self, end: End) -> Entry {
        let handle = &self.at(end).handle;
        Entry(handle.try_clone().expect("one more descriptor"))
    }

    /// Waits until the interface at that end can send.
    ///
    /// # Panics
    ///
    /// It takes too long.
    pub fn wait_for_carrier(&self, end: End) {
        let file = format!("/sys/class/net/{}/operstate", end.name());
        self.inside(end, || {
            let begin = Instant::now();
            while fs::read_to_string(&file).expect("operstate").trim() != "up" {
                assert!(begin.elapsed() < TIMEOUT, "the {end:?} end stays down");
                thread::sleep(Duration::from_millis(2));
            }
        });
    }

    const fn at(&self, end: End) -> &Namespace {
        match end {
            End::Near => &self.near,
            End::Far => &self.far,
        }
    }
}

/// A namespace to be entered.
#[derive(Debug)]
pub struct Entry(File);

impl Entry {
    /// Moves the calling thread into the namespace permanently, with its `/sys`.
    ///
    /// # Panics
    ///
    /// The namespace cannot be entered.
    pub fn enter(&self) {
        enter(&self.0);
    }

    /// Moves the calling thread into the namespace permanently, but keeps the thread's `/sys`,
    /// which is that of another namespace.
    ///
    /// # Panics
    ///
    /// The namespace cannot be entered.
    pub fn enter_network_only(&self) {
        enter_network(&self.0);
    }
}

/// Returns the reason why no namespace can be created here, if any.
pub fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("network namespaces need root".to_owned());
    }
    match Command::new("ip").arg("-V").output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(format!("ip -V: {}", text(&output))),
        Err(e) => Some(format!("ip (iproute2) does not run: {e}")),
    }
}

static NUMBER: AtomicU32 = AtomicU32::new(0);

#[derive(Debug)]
struct Namespace {
    name: String,
    handle: File,
}

impl Namespace {
    fn new(test: &str, end: End, number: u32) -> Option<Self> {
        let name = format!("{PREFIX}-{}-{number}-{}", process::id(), end.name());
        let skipped = |reason: &str| fcn_skip::skipped!("{test}: {reason}");
        if let Some(reason) = missing() {
            skipped(&reason);
            return None;
        }
        let add = Command::new("ip").args(["netns", "add", &name]).output();
        match add {
            Ok(output) if output.status.success() => {}
            Ok(output) => {
                skipped(&format!("ip netns add: {}", text(&output)));
                return None;
            }
            Err(e) => {
                skipped(&format!("ip netns add: {e}"));
                return None;
            }
        }
        let handle = File::open(path(&name));
        let handle = handle.unwrap_or_else(|e| panic!("{}: {e}", path(&name).display()));
        Some(Self { name, handle })
    }

    fn enter(&self) {
        enter(&self.handle);
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        delete(&self.name);
    }
}

fn path(name: &str) -> PathBuf {
    Path::new(NAMES).join(name)
}

fn enter_network(handle: &File) {
    move_into_link_name_space(handle.as_fd(), Some(LinkNameSpaceType::Network))
        .expect("into the namespace");
}

fn enter(handle: &File) {
    enter_network(handle);
    // A mounted sysfs shows the interfaces of the namespace in which it was mounted. As `ip netns
    // exec` does, this thread gets its own.
    #[allow(
        deprecated,
        reason = "what makes it unsafe is UnshareFlags::FILES, which is not used"
    )]
    rustix::thread::unshare(UnshareFlags::NEWNS).expect("mounts of its own");
    let mounts = "mount --make-rslave / && umount -l /sys && mount -t sysfs sysfs /sys";
    // A child starts in the namespaces of the thread that starts it.
    succeed(mounts, Command::new("sh").args(["-c", mounts]).output());
}

fn delete(name: &str) {
    let done = Command::new("ip").args(["netns", "del", name]).output();
    match done {
        Ok(output) if output.status.success() => {}
        Ok(output) => eprintln!("ip netns del {name}: {}", text(&output)),
        Err(e) => eprintln!("ip netns del {name}: {e}"),
    }
}

/// Deletes namespaces left by killed test processes.
fn sweep() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let Ok(names) = fs::read_dir(NAMES) else {
            return;
        };
        for name in names.flatten() {
            let name = name.file_name();
            let Some(name) = name.to_str() else { continue };
            let mut parts = name.split('-');
            let ours = parts.next() == Some(PREFIX);
            let process = parts.next().and_then(|pid| pid.parse::<u32>().ok());
            if let (true, Some(process)) = (ours, process)
                && !Path::new(&format!("/proc/{process}")).exists()
            {
                delete(name);
            }
        }
    });
}

fn succeed(what: &str, output: std::io::Result<Output>) {
    match output {
        Ok(output) if output.status.success() => {}
        Ok(output) => panic!("{what}: {}", text(&output)),
        Err(e) => panic!("{what}: {e}"),
    }
}

fn text(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    format!("{}: {}", output.status, text.trim())
}
