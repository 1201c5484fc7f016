//! Permissions of a process: the capabilities and the memory limit that sockets for frames need,
//! and advice on obtaining those that are missing.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A Linux capability (capabilities(7)) for sending and receiving frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// `CAP_NET_RAW`: open AF_PACKET and AF_XDP sockets.
    NetRaw,
    /// `CAP_NET_ADMIN`: attach an XDP program to an interface.
    NetAdmin,
    /// `CAP_BPF` (Linux 5.8): load an XDP program. Implied by `CAP_SYS_ADMIN`.
    Bpf,
    /// `CAP_IPC_LOCK`: pin memory beyond the limit (`RLIMIT_MEMLOCK`).
    IpcLock,
}

impl Capability {
    /// Capabilities for an AF_PACKET socket.
    pub const AF_PACKET: &'static [Self] = &[Self::NetRaw];
    /// Capabilities for an AF_XDP socket with its XDP program, apart from memory
    /// ([`raise_memlock`]).
    pub const AF_XDP: &'static [Self] = &[Self::NetRaw, Self::NetAdmin, Self::Bpf];

    /// Returns its name for setcap(8), in lower case, and its purpose.
    const fn describe(self) -> (&'static str, &'static str) {
        match self {
            Self::NetRaw => ("cap_net_raw", "opens sockets for frames"),
            Self::NetAdmin => ("cap_net_admin", "attaches the XDP program"),
            Self::Bpf => ("cap_bpf", "loads the XDP program"),
            Self::IpcLock => ("cap_ipc_lock", "pins memory beyond the limit"),
        }
    }

    const fn within(self, set: CapabilitySet) -> bool {
        match self {
            Self::NetRaw => set.contains(CapabilitySet::NET_RAW),
            Self::NetAdmin => set.contains(CapabilitySet::NET_ADMIN),
            Self::Bpf => set.intersects(CapabilitySet::BPF.union(CapabilitySet::SYS_ADMIN)),
            Self::IpcLock => set.contains(CapabilitySet::IPC_LOCK),
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe().0.to_ascii_uppercase())
    }
}

/// True if the calling thread has that capability in effect.
fn has(capability: Capability) -> bool {
    // A process may always query its own capabilities. If not, the operation that needs them fails
    // with its own reason.
    capabilities(None).is_ok_and(|sets| capability.within(sets.effective))
}

/// Checks that the calling thread has all of `needed`. `program` is the path by which the program
/// was started, for the advice.
///
/// # Errors
///
/// Names the missing capabilities, and the command that grants them.
pub fn require(needed: &[Capability], program: &Path) -> Result<(), MissingCapability> {
    let missing: Vec<_> = needed.iter().copied().filter(|&c| !has(c)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(MissingCapability {
        missing,
        needed: needed.to_vec(),
        program: absolute(program),
    })
}

/// Missing capabilities of a program.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "not permitted: this process lacks {}; either\n  \
     1. run it as root:\n     sudo {} …\n  \
     2. or grant them to this program, for everyone who can run it (again after each build or update):\n     {}{}",
    purposes(missing),
    quoted(program),
    setcap(needed, program),
    permitted(program)
)]
pub struct MissingCapability {
    missing: Vec<Capability>,
    needed: Vec<Capability>,
    program: PathBuf,
}

/// Lists capabilities with their purposes.
fn purposes(capabilities: &[Capability]) -> String {
    let text = |it: &Capability| format!("{it} ({})", it.describe().1);
    capabilities.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Raises the limit of memory that this process may pin (`RLIMIT_MEMLOCK`) to `octets`, if it has a
/// limit and may raise it. AF_XDP frame memory counts towards this limit, together with that of the
/// user's other processes; before Linux 5.11, BPF programs and maps did as well.
///
/// If the limit is still too low, the kernel refuses the memory, and that error says what to do.
pub fn raise_memlock(octets: u64) {
    let limit = getrlimit(Resource::Memlock);
    if !has(Capability::IpcLock) && limit.current.is_some_and(|limit| limit < octets) {
        let raised = Rlimit {
            current: Some(octets),
            ..limit
        };
        let _ = setrlimit(Resource::Memlock, raised);
    }
}

/// Returns the setcap(8) command. It replaces previous capabilities, so all that are needed are in
/// one command.
fn setcap(needed: &[Capability], program: &Path) -> String {
    let names: Vec<_> = needed.iter().map(|it| it.describe().0).collect();
    format!("sudo setcap {}+ep {}", names.join(","), quoted(program))
}

/// Describes the copy of the program that has the capabilities for a group, as packages install it.
fn permitted(program: &Path) -> String {
    let mut name = program.as_os_str().to_owned();
    name.push("-capture");
    let copy = PathBuf::from(name);
    match copy.exists() {
        true => format!(
            "\n     or the copy that its group may run: {}",
            quoted(&copy)
        ),
        false => String::new(),
    }
}

/// Resolves links, which setcap(8) does not follow.
fn absolute(program: &Path) -> PathBuf {
    fs::canonicalize(program).unwrap_or_else(|_| program.to_path_buf())
}

/// Quotes a path for a shell.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "/._-+".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(program: &str) -> MissingCapability {
        MissingCapability {
            missing: vec![Capability::NetAdmin, Capability::Bpf],
            needed: Capability::AF_XDP.to_vec(),
            program: program.into(),
        }
    }

    #[test]
    fn message_names_capabilities_and_commands() {
        assert_eq!(
            missing("/opt/fcn/fcn-gen").to_string(),
            "not permitted: this process lacks CAP_NET_ADMIN (attaches the XDP program), \
             CAP_BPF (loads the XDP program); either\n  \
             1. run it as root:\n     \
             sudo /opt/fcn/fcn-gen …\n  \
             2. or grant them to this program, for everyone who can run it (again after each build or update):\n     \
             sudo setcap cap_net_raw,cap_net_admin,cap_bpf+ep /opt/fcn/fcn-gen"
        );
        // Packages install a copy for a group.
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("fcn-top-capture"), "").unwrap();
        let text = missing(&folder.path().join("fcn-top").to_string_lossy()).to_string();
        assert!(text.ends_with("/fcn-top-capture"), "{text}");
    }

    #[test]
    fn paths_for_a_shell() {
        let text = missing("/opt/it's here/fcn-gen").to_string();
        assert!(text.ends_with("+ep '/opt/it'\\''s here/fcn-gen'"), "{text}");
    }

    #[test]
    fn sys_admin_holds_bpf() {
        assert!(Capability::Bpf.within(CapabilitySet::SYS_ADMIN));
        assert!(Capability::Bpf.within(CapabilitySet::BPF));
        assert!(!Capability::Bpf.within(CapabilitySet::NET_ADMIN));
        assert!(!Capability::NetRaw.within(CapabilitySet::SYS_ADMIN));
    }

    #[test]
    fn missing_capabilities_are_refused() {
        let all = [
            Capability::NetRaw,
            Capability::NetAdmin,
            Capability::Bpf,
            Capability::IpcLock,
        ];
        let lacking: Vec<_> = all.into_iter().filter(|&c| !has(c)).collect();
        match require(&all, Path::new("fcn-gen")) {
            Ok(()) => assert_eq!(lacking, []),
            Err(e) => assert_eq!(e.missing, lacking),
        }
        assert_eq!(require(&[], Path::new("")), Ok(()));
    }
}
