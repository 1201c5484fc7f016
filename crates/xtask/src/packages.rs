//! System packages: their purposes, the checks for their presence, and their installation.
//! Not here: Rust's own dependencies, which cargo fetches.

use std::process::Command;

use anyhow::bail;

use crate::failure::{Advice, Outcome};
use crate::process;

/// Purpose of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Showing captures, and determining the installed Wireshark.
    Run,
    /// Building the plugin.
    Build,
    /// Building tools that filter captures.
    Filter,
    /// Tests that compare with an independent implementation.
    Test,
    /// Tests of pages, which are reported as skipped without it: not every distribution has a
    /// package.
    Browser,
    /// Traffic between network namespaces.
    Network,
    /// Programs that the link benchmark compares with, and the one that records arrivals.
    Peer,
}

/// Uses needed to build and load the plugin.
pub const PLUGIN: &[Use] = &[Use::Run, Use::Build];

/// A row of the table.
#[derive(Debug, PartialEq, Eq)]
pub struct Package {
    /// Purpose of the package.
    pub used_for: Use,
    /// Reason, for the person asked to install it.
    pub purpose: &'static str,
    /// Name in Debian and Ubuntu.
    pub apt: &'static str,
    /// Script for `sh` that succeeds if it is present, from any source; empty if it is a program
    /// with that name.
    present: &'static str,
}

/// Returns a package with a program of the same name.
const fn package(used_for: Use, apt: &'static str, purpose: &'static str) -> Package {
    Package {
        used_for,
        purpose,
        apt,
        present: "",
    }
}

/// The library alone is not sufficient: Wireshark's headers include the compiler's own.
const CLANG: &str = "any() { for file; do [ -e \"$file\" ] && return; done; return 1; }
    any /usr/lib/llvm-*/lib/libclang*.so* /usr/lib/*-linux-gnu*/libclang*.so* \\
        /usr/lib64/libclang*.so* /usr/lib/libclang*.so* /usr/local/lib/libclang*.so* &&
    any /usr/lib/llvm-*/lib/clang/*/include/stddef.h /usr/lib/clang/*/include/stddef.h \\
        /usr/lib64/clang/*/include/stddef.h /usr/local/lib/clang/*/include/stddef.h";

/// All system packages that a command may need.
pub const TABLE: &[Package] = &[
    package(Use::Run, "tshark", "shows captures"),
    package(Use::Build, "pkg-config", "finds Wireshark's headers"),
    package(Use::Build, "libwireshark-dev", "Wireshark's headers")
        .by("pkg-config --exists wireshark"),
    // Debian's wireshark.pc requires it, but its libwireshark-dev does not depend on it.
    package(Use::Build, "libglib2.0-dev", "GLib's headers").by("pkg-config --exists glib-2.0"),
    package(Use::Build, "libclang-dev", "reads headers (bindgen)").by(CLANG),
    package(Use::Filter, "libpcap-dev", "filters captures (libpcap)")
        .by("[ -e /usr/include/pcap.h ] || [ -e /usr/local/include/pcap.h ]"),
    package(Use::Network, "iproute2", "creates network namespaces").by("command -v ip"),
    package(Use::Network, "ethtool", "sets offloads of interfaces"),
    package(Use::Peer, "tcpreplay", "a peer of fcn-replay"),
    // A user's PATH does not contain administration programs.
    package(Use::Peer, "netsniff-ng", "a peer of fcn-gen run (trafgen)")
        .by("PATH=$PATH:/usr/sbin:/usr/local/sbin; command -v trafgen"),
    package(Use::Peer, "tcpdump", "records when frames arrive"),
    package(Use::Test, "tmux", "provides fcn-top with a terminal and keys"),
    package(Use::Test, "zsh", "reads its completions"),
    package(Use::Test, "fish", "reads its completions"),
    package(Use::Test, "python3-scapy", "computes ICRCs independently")
        .by("/usr/bin/python3 -c 'import scapy'"),
    // The smallest that renders pages: 96 MB with chromium-common, and some libraries.
    package(Use::Browser, "chromium-headless-shell", "draws pages, and clicks in them").by(
        "command -v chromium || command -v chromium-headless-shell || command -v chromium-browser || command -v google-chrome",
    ),
];

impl Package {
    /// Returns the same package with a script that checks for its presence.
    const fn by(self, present: &'static str) -> Self {
        Self { present, ..self }
    }

    fn is_there(&self) -> bool {
        if self.present.is_empty() {
            return process::which(self.apt).is_some();
        }
        process::output(Command::new("sh").args(["-c", self.present]))
            .is_ok_and(|output| output.status.success())
    }
}

/// Returns the rows for these uses that are not present.
#[must_use]
pub fn missing(uses: &[Use]) -> Vec<&'static Package> {
    let wanted = TABLE.iter().filter(|p| uses.contains(&p.used_for));
    wanted.filter(|p| !p.is_there()).collect()
}

/// Describes packages: "tshark (shows captures), …"
#[must_use]
pub fn describe(packages: &[&Package]) -> String {
    let one = |p: &&Package| format!("{} ({})", p.apt, p.purpose);
    packages.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Installs everything missing for these uses, and returns a message.
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
    if !still.is_empty() {
        bail!(
            "apt-get installed these, but they are still not found (see PATH and PKG_CONFIG_LIBDIR): {}",
            describe(&still)
        );
    }
    Ok(format!("installed {}", describe(&lacking)))
}

/// Returns the command that a user, or root, would type.
#[must_use]
pub fn apt_command(packages: &[&Package], root: bool) -> String {
    let sudo = if root { "" } else { "sudo " };
    let names: Vec<&str> = packages.iter().map(|p| p.apt).collect();
    let install = "apt-get install --yes --no-install-recommends";
    let names = names.join(" ");
    format!("{sudo}apt-get update && {sudo}{install} {names}")
}

/// Exit status of apt-get when it fails.
const APT_FAILED: i32 = 100;

fn install(packages: &[&Package]) -> Outcome {
    let root = process::is_root();
    let as_root = apt_command(packages, true);
    // A user with sudo may not be allowed to use it.
    let todo = match root {
        true => format!("run: {as_root}"),
        false => format!("run as root, then this again: {as_root}"),
    };
    let missing = format!("missing: {}", describe(packages));
    let needed = ["apt-get", if root { "apt-get" } else { "sudo" }];
    if let Some(lacking) = needed.iter().find(|name| process::which(name).is_none()) {
        bail!(
            "{missing}; and this machine lacks {lacking}\n  what to do: {todo}; \
             without apt-get, install what your distribution calls these"
        );
    }
    println!(
        "      {missing}\n      running: {}",
        apt_command(packages, root)
    );
    for step in as_root.split(" && ") {
        let mut command = apt(step, root);
        let output = process::output(&mut command)?;
        // One stale mirror among several fails the update, but not the installation. If sudo fails,
        // its exit status is different, and a retry would only ask again.
        let stale = step.ends_with("update") && output.status.code() == Some(APT_FAILED);
        if !output.status.success() && !stale {
            return Err(process::failed(&command, &output).advise(todo));
        }
    }
    Ok(())
}

/// Returns an apt-get command, as root.
fn apt(line: &str, root: bool) -> Command {
    // Through `env`, because sudo drops the variable; it keeps tshark from asking about dumpcap's
    // rights.
    let mut command = Command::new(if root { "env" } else { "sudo" });
    command.args((!root).then_some("env"));
    command.arg("DEBIAN_FRONTEND=noninteractive");
    command.args(line.split(' '));
    command.args(["--quiet", "-o", "DPkg::Lock::Timeout=120"]);
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
            let name = package.apt;
            assert!(seen.insert(name), "{name} stands in the table twice");
            let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c);
            assert!(name.chars().all(fits), "{name} is not a Debian package");
        }
    }

    #[test]
    fn prints_the_exact_command() {
        let rows: Vec<&Package> = TABLE.iter().filter(|p| p.used_for == Use::Build).collect();
        assert_eq!(
            apt_command(&rows, false),
            "sudo apt-get update && sudo apt-get install --yes --no-install-recommends \
             pkg-config libwireshark-dev libglib2.0-dev libclang-dev"
        );
        assert!(apt_command(&rows, true).starts_with("apt-get update && apt-get install"));
    }

    #[test]
    fn apt_never_asks() {
        let line = process::command_line(&apt("apt-get install", false));
        assert_eq!(
            line,
            "sudo env DEBIAN_FRONTEND=noninteractive apt-get install --quiet -o DPkg::Lock::Timeout=120"
        );
        assert!(
            process::command_line(&apt("apt-get update", true)).starts_with("env DEBIAN_FRONTEND")
        );
    }

    #[test]
    fn present_packages_are_detected() {
        let detected = |present| package(Use::Run, "a", "b").by(present).is_there();
        assert!(detected("command -v sh") && detected("exit 0"));
        assert!(!detected("command -v no-such-program-here") && !detected("exit 1"));
        assert!(!detected("pkg-config --exists no-such-module-here"));
        for package in TABLE {
            let checked = process::output(Command::new("sh").args(["-n", "-c", package.present]));
            assert!(checked.unwrap().status.success(), "{}", package.present);
        }
    }
}
