//! What a guest needs and this machine lacks, fetched from the Debian mirror that its apt knows and unpacked into a
//! folder: emulator, busybox, ethtool, kernel. apt works on a state of its own, in which nothing is installed, so it
//! names every library too; this machine's packages, sources and caches stay as they are, and no rights are needed.
//! Not here: which of it is used (`lab.rs`).

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::need;
use crate::failure::{Failure, Outcome};
use crate::process;

/// The release fetched from: zero copy on virtio-net and igb is newer than the kernels of stable releases.
const SUITE: &str = "sid";

/// The keys of Debian's archive, where Debian's packages put them.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// The package that depends on the newest kernel.
const KERNEL: &str = "linux-image-amd64";

/// What makes a kernel up, as package names begin; newer ones come in several.
const KERNEL_PARTS: &[&str] = &["linux-image-", "linux-binary-", "linux-modules-"];

/// Packages for the guest.
const TOOLS: &[&str] = &["busybox-static", "ethtool"];

/// The package with the emulator.
const EMULATOR: &str = "qemu-system-x86";

/// Written last into an unpacked folder: without it the folder is half done.
const COMPLETE: &str = ".complete";

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
    let there = |path: &Path| !wanted.refresh && path.join(COMPLETE).is_file();
    let fetch_tools = !there(&tools);
    let fetch_kernel = wanted.kernel && !there(&kernel);
    if fetch_tools || fetch_kernel {
        need("dpkg-deb", "dpkg")?;
        let apt = Apt::new(folder)?;
        if fetch_tools {
            let emulator = wanted.emulator.then_some(EMULATOR);
            let names: Vec<_> = TOOLS.iter().copied().chain(emulator).collect();
            let files = apt.with_dependencies(&names)?;
            unpack(&files, &tools)?;
        }
        if fetch_kernel {
            let files = apt.kernel()?;
            unpack(&files, &kernel)?;
        }
        apt.remove()?;
    }
    Ok(Fetched {
        tools: Root(tools),
        kernel,
    })
}

/// Unpacks packages into a folder, in place of what was there.
pub(super) fn unpack(packages: &[PathBuf], folder: &Path) -> Outcome {
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(|e| Failure::io("remove", folder, &e))?;
    }
    std::fs::create_dir_all(folder).map_err(|e| Failure::io("make", folder, &e))?;
    for package in packages {
        process::stdout(
            Command::new("dpkg-deb")
                .arg("--extract")
                .arg(package)
                .arg(folder),
        )?;
    }
    let mark = folder.join(COMPLETE);
    std::fs::write(&mark, "").map_err(|e| Failure::io("write", &mark, &e))
}

/// apt with a state of its own.
struct Apt {
    state: PathBuf,
    options: Vec<OsString>,
}

impl Apt {
    /// Makes the state and reads the mirror's list of packages.
    fn new(folder: &Path) -> Outcome<Self> {
        need("apt-get", "apt")?;
        let mirror = mirror()?;
        let state = folder.join("apt");
        if state.exists() {
            std::fs::remove_dir_all(&state).map_err(|e| Failure::io("remove", &state, &e))?;
        }
        for part in ["lists/partial", "archives/partial", "sources", "files"] {
            let part = state.join(part);
            std::fs::create_dir_all(&part).map_err(|e| Failure::io("make", &part, &e))?;
        }
        for (name, text) in [
            ("status", String::new()),
            ("sources/lab.list", source(&mirror, Path::new(KEYRING))),
        ] {
            let file = state.join(name);
            std::fs::write(&file, text).map_err(|e| Failure::io("write", &file, &e))?;
        }
        let apt = Self {
            options: options(&state),
            state,
        };
        process::stdout(apt.get().arg("update"))?;
        Ok(apt)
    }

    fn get(&self) -> Command {
        let mut command = Command::new("apt-get");
        command
            .args(["--quiet", "--yes"])
            .args(&self.options)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .current_dir(self.state.join("files"));
        command
    }

    /// Fetches these packages and all that they depend on.
    fn with_dependencies(&self, packages: &[&str]) -> Outcome<Vec<PathBuf>> {
        let words = ["install", "--download-only", "--no-install-recommends"];
        process::stdout(self.get().args(words).args(packages))?;
        packages_in(&self.state.join("archives"))
    }

    /// Fetches the packages that make the newest kernel up, without what installing them would need.
    fn kernel(&self) -> Outcome<Vec<PathBuf>> {
        let words = ["install", "--simulate", "--no-install-recommends", KERNEL];
        let plan = process::stdout(self.get().args(words))?;
        let parts = kernel_parts(&plan);
        if parts.is_empty() {
            return Err(Failure::new(format!("{KERNEL} of {SUITE} names no kernel"))
                .todo("name one with --kernel"));
        }
        process::stdout(self.get().arg("download").args(parts))?;
        packages_in(&self.state.join("files"))
    }

    /// Removes the state and the downloads; what was unpacked stays.
    fn remove(self) -> Outcome {
        std::fs::remove_dir_all(&self.state).map_err(|e| Failure::io("remove", &self.state, &e))
    }
}

/// What keeps apt off this machine's state.
fn options(state: &Path) -> Vec<OsString> {
    let at = |name: &str, path: &str| {
        let mut word = OsString::from(format!("{name}="));
        word.push(state.join(path));
        word
    };
    let plain = |word: &str| OsString::from(word);
    let mut words = vec![
        at("Dir::State", ""),
        at("Dir::State::lists", "lists"),
        at("Dir::State::status", "status"),
        at("Dir::Cache", ""),
        at("Dir::Cache::archives", "archives"),
        at("Dir::Etc::sourceparts", "sources"),
        plain("Dir::Etc::sourcelist=/dev/null"),
        plain("Dir::Etc::preferences=/dev/null"),
        plain("Dir::Etc::preferencesparts=/dev/null"),
        plain("APT::Architecture=amd64"),
        plain("APT::Architectures=amd64"),
        plain("APT::Default-Release="),
        // A mirror may be a snapshot.
        plain("Acquire::Check-Valid-Until=no"),
        plain("Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false"),
        plain("Acquire::Languages=none"),
        // A broken mirror must not keep the lab waiting for ever.
        plain("Acquire::http::Timeout=30"),
        plain("Acquire::Retries=2"),
    ];
    if process::is_root() {
        // The user that apt becomes for downloading may not look into the target folder.
        words.push(plain("APT::Sandbox::User=root"));
    }
    words
        .into_iter()
        .flat_map(|word| [plain("-o"), word])
        .collect()
}

/// The line that names the mirror to apt.
fn source(mirror: &str, keyring: &Path) -> String {
    let keys = if keyring.is_file() {
        format!(" signed-by={}", keyring.display())
    } else {
        String::new()
    };
    format!("deb [arch=amd64{keys}] {mirror} {SUITE} main\n")
}

/// The Debian mirror that this machine's apt is configured with.
fn mirror() -> Outcome<String> {
    let rows = process::stdout(Command::new("apt-get").args([
        "indextargets",
        "--format",
        "$(LABEL) $(REPO_URI)",
        "Created-By: Packages",
    ]))?;
    mirror_among(&rows).ok_or_else(|| {
        Failure::new("apt's sources name no Debian mirror, or its lists were never read")
            .todo("run `apt-get update`; on another distribution install qemu-system-x86_64 and name a --kernel")
    })
}

/// The first row of the archive itself; security updates have another label and no release of that name.
fn mirror_among(rows: &str) -> Option<String> {
    rows.lines()
        .find_map(|row| row.strip_prefix("Debian "))
        .map(|uri| uri.trim().to_owned())
        .filter(|uri| !uri.is_empty())
}

/// The packages of a plan (`Inst name (version …)`) that make a kernel up; the one that only depends on them is none.
fn kernel_parts(plan: &str) -> Vec<&str> {
    plan.lines()
        .filter_map(|line| line.strip_prefix("Inst ")?.split_whitespace().next())
        .filter(|name| *name != KERNEL && KERNEL_PARTS.iter().any(|part| name.starts_with(part)))
        .collect()
}

/// The packages in a folder.
fn packages_in(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let mut files: Vec<_> = folder
        .read_dir()
        .map_err(|e| Failure::io("read", folder, &e))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "deb"))
        .collect();
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_archive_not_its_security_updates() {
        let rows = "Debian-Security http://mirror.example/debian-security/\nGoogle https://other.example/\n\
                    Debian http://mirror.example/debian/\n";
        let mirror = mirror_among(rows);
        assert_eq!(mirror.as_deref(), Some("http://mirror.example/debian/"));
        assert_eq!(mirror_among("Ubuntu http://mirror.example/ubuntu/\n"), None);
    }

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

    #[test]
    fn names_the_keys_only_where_they_are() {
        let line = source("http://mirror.example/debian/", Path::new("/no/such/keys"));
        assert_eq!(
            line,
            "deb [arch=amd64] http://mirror.example/debian/ sid main\n"
        );
        assert!(
            source("http://m.example/", Path::new("/proc/self/status")).contains("signed-by=/")
        );
    }

    #[test]
    fn every_folder_of_apt_is_inside_the_lab() {
        let words = options(Path::new("/lab/apt"));
        for word in words.iter().map(|w| w.to_string_lossy()) {
            if word.starts_with("Dir::") {
                let (_, path) = word.split_once('=').unwrap();
                assert!(
                    path.starts_with("/lab/apt") || path == "/dev/null",
                    "{word}"
                );
            }
        }
    }
}
