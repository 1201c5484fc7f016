//! What a guest needs and this machine lacks, fetched and unpacked: emulator, busybox, ethtool, kernel.
//! Not here: how packages are fetched (`crate::apt`), and which of it is used (`lab.rs`).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::apt::{Apt, is_complete, unpack};
use crate::failure::{Failure, Outcome};

/// The release fetched from: zero copy on virtio-net and igb is newer than the kernels of stable releases.
const SUITE: &str = "sid";

/// The package that depends on the newest kernel.
const KERNEL: &str = "linux-image-amd64";

/// What makes a kernel up, as package names begin; newer ones come in several.
const KERNEL_PARTS: &[&str] = &["linux-image-", "linux-binary-", "linux-modules-"];

/// Packages for the guest.
const TOOLS: &[&str] = &["busybox-static", "ethtool"];

/// The package with the emulator.
const EMULATOR: &str = "qemu-system-x86";

/// Which of it is wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    /// qemu, with all its libraries.
    pub emulator: bool,
    /// The newest kernel.
    pub kernel: bool,
    /// Whether or not it is there from earlier.
    pub refresh: bool,
}

/// What was asked for, unpacked.
pub(super) struct Fetched {
    /// Tools for the guest, and the emulator if wanted.
    pub tools: Root,
    /// The kernel's packages; nothing is there unless wanted.
    pub kernel: PathBuf,
}

/// A folder into which packages were unpacked with all that they depend on.
#[derive(Debug, Clone)]
pub(super) struct Root(PathBuf);

impl Root {
    /// A file of it, given as installed.
    pub(super) fn file(&self, path: &str) -> Outcome<PathBuf> {
        let file = self.0.join(path.trim_start_matches('/'));
        if file.exists() {
            return Ok(file);
        }
        Err(Failure::new(format!("{} is not there", file.display()))
            .todo("--refresh fetches the packages anew"))
    }

    /// A folder of it, given as installed, whether or not it is there.
    pub(super) fn folder(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    /// The words that start one of its programs with its own loader and libraries; this machine's may be older.
    pub(super) fn start(&self, program: &str) -> Outcome<Vec<OsString>> {
        Ok(vec![
            self.loader()?.into(),
            "--library-path".into(),
            self.folder("usr/lib/x86_64-linux-gnu").into(),
            self.file(program)?.into(),
        ])
    }

    /// Its dynamic loader.
    pub(super) fn loader(&self) -> Outcome<PathBuf> {
        self.file("usr/lib64/ld-linux-x86-64.so.2")
    }
}

/// Sees to it that what is wanted is unpacked in folders of `folder`.
pub(super) fn ready(folder: &Path, wanted: Wanted) -> Outcome<Fetched> {
    let tools = folder.join(if wanted.emulator { "emulator" } else { "tools" });
    let kernel = folder.join("kernel");
    let there = |path: &Path| !wanted.refresh && is_complete(path);
    let fetch_tools = !there(&tools);
    let fetch_kernel = wanted.kernel && !there(&kernel);
    if fetch_tools || fetch_kernel {
        let apt = Apt::new(folder, SUITE).map_err(|failure| {
            failure.todo("on another distribution than Debian install qemu-system-x86_64 and name a --kernel")
        })?;
        if fetch_tools {
            let emulator = wanted.emulator.then_some(EMULATOR);
            let names: Vec<_> = TOOLS.iter().copied().chain(emulator).collect();
            let files = apt.with_dependencies(&names)?;
            unpack(&files, &tools)?;
        }
        if fetch_kernel {
            let files = fetch_newest_kernel(&apt)?;
            unpack(&files, &kernel)?;
        }
        apt.remove()?;
    }
    Ok(Fetched {
        tools: Root(tools),
        kernel,
    })
}

/// Fetches the packages that make the newest kernel up, without what installing them would need.
fn fetch_newest_kernel(apt: &Apt) -> Outcome<Vec<PathBuf>> {
    let plan = apt.plan(KERNEL)?;
    let parts = kernel_parts(&plan);
    if parts.is_empty() {
        return Err(Failure::new(format!("{KERNEL} of {SUITE} names no kernel"))
            .todo("name one with --kernel"));
    }
    apt.without_dependencies(&parts)
}

/// The packages of a plan (`Inst name (version …)`) that make a kernel up; the one that only depends on them is none.
fn kernel_parts(plan: &str) -> Vec<&str> {
    plan.lines()
        .filter_map(|line| line.strip_prefix("Inst ")?.split_whitespace().next())
        .filter(|name| *name != KERNEL && KERNEL_PARTS.iter().any(|part| name.starts_with(part)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_makes_a_kernel_up() {
        let plan = "Reading package lists...\nInst udev (261-1 Debian:unstable [amd64])\n\
                    Inst linux-base (4.12 Debian:unstable [all])\n\
                    Inst linux-modules-7.2.13+deb14-amd64 (7.2.13-1 Debian:unstable [amd64])\n\
                    Inst linux-image-7.2.13+deb14-amd64 (7.2.13-1 Debian:unstable [amd64]) []\n\
                    Inst linux-image-amd64 (7.2.13-1 Debian:unstable [amd64])\nConf linux-image-amd64 (7.2.13-1)\n";
        assert_eq!(
            kernel_parts(plan),
            [
                "linux-modules-7.2.13+deb14-amd64",
                "linux-image-7.2.13+deb14-amd64"
            ]
        );
    }
}
