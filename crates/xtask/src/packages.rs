//! System packages: what each is for, how to see that it is there, how to install it.
//! Not here: Rust's own dependencies, which cargo fetches.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Outcome};
use crate::process;

/// What a package is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Showing captures, and telling which Wireshark is installed.
    Run,
    /// Building the plugin.
    Build,
    /// Building the plugin where its build script runs bindgen.
    Bindgen,
    /// Building tools that filter captures.
    Filter,
    /// Tests that compare with an independent implementation.
    Test,
    /// Traffic between network namespaces.
    Network,
    /// Programs that the benchmark of the link compares with, and what it records arrivals with.
    Peer,
}

/// How to see that something is there, whoever installed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detect {
    /// A program in `PATH`.
    Program(&'static str),
    /// A module that pkg-config finds. The file is looked for, not the module asked about: pkg-config denies a
    /// module whose own requirements are missing.
    PkgConfigFile(&'static str),
    /// A command that succeeds.
    Succeeds(&'static [&'static str]),
    /// Of each group of paths one exists; `*` stands for any text within a path's component.
    Files(&'static [&'static [&'static str]]),
}

/// A row of the table.
#[derive(Debug, PartialEq, Eq)]
pub struct Package {
    /// What it is needed for.
    pub used_for: Use,
    /// Why, in words for the person asked to install it.
    pub purpose: &'static str,
    /// Its packages in Debian and Ubuntu.
    pub apt: &'static [&'static str],
    /// How to see that it is there.
    pub detect: Detect,
}

/// Every system package a chore may need.
pub const TABLE: &[Package] = &[
    Package {
        used_for: Use::Run,
        purpose: "shows captures",
        apt: &["tshark"],
        detect: Detect::Program("tshark"),
    },
    Package {
        used_for: Use::Build,
        purpose: "finds Wireshark's headers",
        apt: &["pkg-config"],
        detect: Detect::Program("pkg-config"),
    },
    Package {
        used_for: Use::Build,
        purpose: "Wireshark's headers",
        apt: &["libwireshark-dev"],
        detect: Detect::PkgConfigFile("wireshark"),
    },
    Package {
        used_for: Use::Build,
        // Debian's wireshark.pc requires it, its libwireshark-dev does not depend on it.
        purpose: "GLib's headers, which Wireshark's include",
        apt: &["libglib2.0-dev"],
        detect: Detect::PkgConfigFile("glib-2.0"),
    },
    Package {
        used_for: Use::Bindgen,
        purpose: "reads Wireshark's headers (bindgen)",
        apt: &["libclang-dev"],
        detect: Detect::Files(&[
            &[
                "/usr/lib/llvm-*/lib/libclang*.so*",
                "/usr/lib/*-linux-gnu*/libclang*.so*",
                "/usr/lib64/libclang*.so*",
                "/usr/lib/libclang*.so*",
                "/usr/local/lib/libclang*.so*",
            ],
            // The library alone does not do: Wireshark's headers include the compiler's own.
            &[
                "/usr/lib/llvm-*/lib/clang/*/include/stddef.h",
                "/usr/lib/clang/*/include/stddef.h",
                "/usr/lib64/clang/*/include/stddef.h",
                "/usr/local/lib/clang/*/include/stddef.h",
            ],
        ]),
    },
    Package {
        used_for: Use::Filter,
        purpose: "filters captures (libpcap)",
        apt: &["libpcap-dev"],
        detect: Detect::Files(&[&["/usr/include/pcap.h", "/usr/local/include/pcap.h"]]),
    },
    Package {
        used_for: Use::Network,
        purpose: "makes network namespaces",
        apt: &["iproute2"],
        detect: Detect::Program("ip"),
    },
    Package {
        used_for: Use::Network,
        purpose: "sets offloads of test interfaces",
        apt: &["ethtool"],
        detect: Detect::Program("ethtool"),
    },
    Package {
        used_for: Use::Peer,
        purpose: "a peer of fcn-replay",
        apt: &["tcpreplay"],
        detect: Detect::Program("tcpreplay"),
    },
    Package {
        used_for: Use::Peer,
        purpose: "trafgen, a peer of fcn-gen run",
        apt: &["netsniff-ng"],
        detect: Detect::Files(&[&[
            "/usr/sbin/trafgen",
            "/usr/bin/trafgen",
            "/usr/local/sbin/trafgen",
        ]]),
    },
    Package {
        used_for: Use::Peer,
        purpose: "records when frames arrive",
        apt: &["tcpdump"],
        detect: Detect::Program("tcpdump"),
    },
    Package {
        used_for: Use::Test,
        purpose: "gives fcn-top a terminal with keys",
        apt: &["tmux"],
        detect: Detect::Program("tmux"),
    },
    Package {
        used_for: Use::Test,
        purpose: "computes ICRCs independently (Scapy)",
        apt: &["python3-scapy"],
        detect: Detect::Succeeds(&["/usr/bin/python3", "-c", "import scapy"]),
    },
];

impl Detect {
    fn present(self) -> bool {
        match self {
            Self::Program(name) => process::which(name).is_some(),
            Self::PkgConfigFile(module) => pkg_config_folders()
                .iter()
                .any(|folder| folder.join(format!("{module}.pc")).is_file()),
            Self::Succeeds(words) => process::output(Command::new(words[0]).args(&words[1..]))
                .is_ok_and(|o| o.status.success()),
            Self::Files(groups) => groups
                .iter()
                .all(|group| group.iter().any(|pattern| exists(pattern))),
        }
    }
}

/// The folders where pkg-config looks; none where it is not installed.
fn pkg_config_folders() -> Vec<PathBuf> {
    let variable =
        |name| std::env::var_os(name).map(|v| std::env::split_paths(&v).collect::<Vec<_>>());
    let mut folders = variable("PKG_CONFIG_PATH").unwrap_or_default();
    match variable("PKG_CONFIG_LIBDIR") {
        Some(instead) => folders.extend(instead),
        None => {
            let built_in = process::stdout(Command::new("pkg-config").args([
                "--variable",
                "pc_path",
                "pkg-config",
            ]));
            folders.extend(std::env::split_paths(built_in.unwrap_or_default().trim()));
        }
    }
    folders
}

/// Whether a path with `*` in its components names anything.
fn exists(pattern: &str) -> bool {
    let mut found = vec![PathBuf::from("/")];
    for component in pattern.split('/').filter(|c| !c.is_empty()) {
        found = found
            .iter()
            .flat_map(|folder| entries(folder, component))
            .collect();
    }
    !found.is_empty()
}

fn entries(folder: &Path, component: &str) -> Vec<PathBuf> {
    if !component.contains('*') {
        let path = folder.join(component);
        return if path.exists() {
            vec![path]
        } else {
            Vec::new()
        };
    }
    let Ok(listing) = folder.read_dir() else {
        return Vec::new();
    };
    listing
        .flatten()
        .filter(|entry| matches(&entry.file_name().to_string_lossy(), component))
        .map(|entry| entry.path())
        .collect()
}

/// Whether a name fits a pattern in which `*` stands for any text.
fn matches(name: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => name == pattern,
        Some((head, rest)) => name.strip_prefix(head).is_some_and(|tail| {
            (0..=tail.len()).any(|at| tail.is_char_boundary(at) && matches(&tail[at..], rest))
        }),
    }
}

/// The rows for these uses that are not there.
#[must_use]
pub fn missing(uses: &[Use]) -> Vec<&'static Package> {
    TABLE
        .iter()
        .filter(|p| uses.contains(&p.used_for) && !p.detect.present())
        .collect()
}

/// "tshark (shows captures), …"
#[must_use]
pub fn describe(packages: &[&Package]) -> String {
    packages
        .iter()
        .map(|p| format!("{} ({})", p.apt.join(", "), p.purpose))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Sees to it that everything for these uses is there, and says what it did.
///
/// # Errors
/// Something is missing and could not be installed; the failure has the command to type.
pub fn ensure(uses: &[Use]) -> Outcome<String> {
    let lacking = missing(uses);
    if lacking.is_empty() {
        return Ok("nothing missing".to_owned());
    }
    install(&lacking)?;
    let still = missing(uses);
    if still.is_empty() {
        return Ok(format!("installed {}", describe(&lacking)));
    }
    Err(Failure::new(format!(
        "apt-get installed these, and yet they are not found: {}",
        describe(&still)
    ))
    .todo("look whether another version stands in PATH, or PKG_CONFIG_LIBDIR hides them"))
}

/// The words of the apt command, without the program that gets the rights.
fn apt_words(packages: &[&Package]) -> Vec<&'static str> {
    let mut words = vec!["apt-get", "install", "--yes", "--no-install-recommends"];
    words.extend(packages.iter().flat_map(|p| p.apt));
    words
}

/// What a person would type.
#[must_use]
pub fn apt_command(packages: &[&Package], root: bool) -> String {
    let sudo = if root { "" } else { "sudo " };
    format!(
        "{sudo}apt-get update && {sudo}{}",
        apt_words(packages).join(" ")
    )
}

/// What a person is told to type; who has sudo may not be allowed to use it.
fn by_whom(packages: &[&Package], root: bool) -> String {
    let as_root = apt_command(packages, true);
    if root {
        format!("run: {as_root}")
    } else {
        format!("run as root, then this again: {as_root}")
    }
}

/// How apt-get exits when it fails.
const APT_FAILED: i32 = 100;

fn install(packages: &[&Package]) -> Outcome {
    let root = process::is_root();
    let by_hand = apt_command(packages, root);
    let missing = format!("missing: {}", describe(packages));
    if process::which("apt-get").is_none() {
        let names = packages
            .iter()
            .flat_map(|p| p.apt)
            .copied()
            .collect::<Vec<_>>()
            .join(" ");
        return Err(
            Failure::new(format!("{missing}; and this machine has no apt-get")).todo(format!(
                "install what your distribution calls (in Debian's names) {names}"
            )),
        );
    }
    if !root && process::which("sudo").is_none() {
        return Err(Failure::new(format!(
            "{missing}; installing needs root, and there is no sudo"
        ))
        .todo(by_whom(packages, root)));
    }
    println!("      {missing}\n      running: {by_hand}");
    for words in [vec!["apt-get", "update"], apt_words(packages)] {
        let mut command = apt(&words, root);
        let output = process::output(&mut command)?;
        // A stale mirror among several fails the update, not the installation; where sudo fails, which exits otherwise, it
        // would only ask again.
        let stale = words[1] == "update" && output.status.code() == Some(APT_FAILED);
        if !output.status.success() && !stale {
            return Err(process::failed(&command, &output).todo(by_whom(packages, root)));
        }
    }
    Ok(())
}

fn apt(words: &[&str], root: bool) -> Command {
    // Through `env`, because sudo drops the variable; it keeps tshark from asking about dumpcap's rights.
    let mut all = vec!["env", "DEBIAN_FRONTEND=noninteractive"];
    all.extend(words);
    all.extend(["--quiet", "-o", "DPkg::Lock::Timeout=120"]);
    if !root {
        all.insert(0, "sudo");
    }
    let mut command = Command::new(all[0]);
    command.args(&all[1..]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_names_packages_and_a_purpose_once() {
        let mut seen = std::collections::HashSet::new();
        for package in TABLE {
            assert!(!package.apt.is_empty() && !package.purpose.is_empty());
            for name in package.apt {
                assert!(seen.insert(name), "{name} stands in the table twice");
                let fits =
                    |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c);
                assert!(
                    name.chars().all(fits),
                    "{name} is no name of a Debian package"
                );
            }
            if let Detect::Files(groups) = package.detect {
                assert!(
                    groups
                        .iter()
                        .flat_map(|g| g.iter())
                        .all(|p| p.starts_with('/'))
                );
            }
        }
    }

    #[test]
    fn prints_the_exact_command() {
        let rows: Vec<&Package> = TABLE.iter().filter(|p| p.used_for == Use::Build).collect();
        assert_eq!(
            apt_command(&rows, false),
            "sudo apt-get update && sudo apt-get install --yes --no-install-recommends \
             pkg-config libwireshark-dev libglib2.0-dev"
        );
        assert!(apt_command(&rows, true).starts_with("apt-get update && apt-get install"));
        assert!(
            by_whom(&rows, false).starts_with("run as root, then this again: apt-get update &&")
        );
        assert!(by_whom(&rows, true).starts_with("run: apt-get update &&"));
    }

    #[test]
    fn apt_never_asks() {
        let line = process::command_line(&apt(&["apt-get", "install"], false));
        assert_eq!(
            line,
            "sudo env DEBIAN_FRONTEND=noninteractive apt-get install --quiet -o DPkg::Lock::Timeout=120"
        );
        assert!(
            process::command_line(&apt(&["apt-get", "update"], true))
                .starts_with("env DEBIAN_FRONTEND")
        );
    }

    #[test]
    fn patterns() {
        assert!(matches("libclang-14.so.1", "libclang*.so*"));
        assert!(matches("libclang.so", "libclang*.so*"));
        assert!(!matches("libclangd.a", "libclang*.so*"));
        assert!(!matches("xlibclang.so", "libclang*.so*"));
        assert!(exists("/proc/sel*/status") && exists("/proc/self/stat*"));
        assert!(!exists("/proc/self/no-such-*"));
    }

    #[test]
    fn detects_programs_commands_and_files() {
        assert!(Detect::Program("sh").present());
        assert!(!Detect::Program("no-such-program-here").present());
        assert!(Detect::Succeeds(&["sh", "-c", "exit 0"]).present());
        assert!(!Detect::Succeeds(&["sh", "-c", "exit 1"]).present());
        assert!(!Detect::Succeeds(&["no-such-program-here"]).present());
        assert!(Detect::Files(&[&["/nowhere", "/proc"], &["/proc/self"]]).present());
        assert!(!Detect::Files(&[&["/proc"], &["/nowhere"]]).present());
        assert!(!Detect::PkgConfigFile("no-such-module-here").present());
    }
}
