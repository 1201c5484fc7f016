//! Programs and plugin for packages: optimised, without debug information, and without paths of
//! this machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::failure::Outcome;
use crate::page::{self, Compiler};
use crate::{cargo, process};

/// The profile in Cargo.toml.
const PROFILE: [&str; 2] = ["--profile", "dist"];

/// The target that does not use the system's C library.
pub(super) const MUSL: &str = "x86_64-unknown-linux-musl";

/// The tools, by the names of their packages and programs.
pub(super) const TOOLS: [&str; 3] = [cargo::GENERATOR, cargo::REPLAYER, cargo::MONITOR];

/// Systems that programs are built for.
pub(super) enum Target {
    /// This machine's Debian and later ones, with their C library and libpcap.
    Debian,
    /// Any Linux, with a static libpcap from this folder, of this version.
    Static((PathBuf, String)),
}

/// Builds the three programs, in the order of [`TOOLS`].
pub(super) fn tools(root: &Path, target: &Path, of: &Target) -> Outcome<[PathBuf; 3]> {
    let mut command = build(root, target)?;
    for tool in TOOLS {
        command.args(["--package", tool]);
    }
    if let Target::Static((libpcap, version)) = of {
        command.args(["--target", MUSL]);
        command
            .env("LIBPCAP_LIBDIR", libpcap)
            .env("LIBPCAP_VER", version);
        command.env("CC_x86_64_unknown_linux_musl", "musl-gcc");
    }
    let messages = cargo::messages(&mut command)?;
    let [generator, replayer, monitor] = TOOLS.map(|tool| cargo::executable(&messages, tool));
    Ok([generator?, replayer?, monitor?])
}

/// Builds the folder with man pages and completions, laid out as below `/usr/share`.
pub(super) fn manual(root: &Path, target: &Path) -> Outcome<PathBuf> {
    let mut command = build(root, target)?;
    let messages = cargo::messages(command.args(["--package", cargo::MANUAL]))?;
    let folder = target.join("share");
    if folder.exists() {
        fs_err::remove_dir_all(&folder)?;
    }
    process::stdout(Command::new(cargo::executable(&messages, cargo::MANUAL)?).arg(&folder))?;
    Ok(folder)
}

/// Builds `fcn.html` into the folder of the manual, also laid out as below `/usr/share`.
pub(super) fn page(root: &Path, target: &Path, shared: &Path, compiler: &Compiler) -> Outcome {
    let flags = flags(root, target)?;
    let page = page::build(compiler, |build| {
        build.args(["--locked", "--target-dir"]).arg(target);
        build.current_dir(root).env(FLAGS, &flags);
    })?;
    let folder = shared.join("fcn-tools");
    fs_err::create_dir_all(&folder)?;
    fs_err::write(folder.join(page::NAME), page)?;
    Ok(())
}

/// Builds the plugin for the Wireshark of a system in a folder.
pub(super) fn plugin(root: &Path, target: &Path, system: &Path) -> Outcome<PathBuf> {
    cargo::build_plugin_for(system, target, |build| {
        build.args(PROFILE).current_dir(root);
        build.env(FLAGS, flags(root, target)?);
        Ok(())
    })
}

/// Flags for rustc, separated so that they may contain any character.
const FLAGS: &str = "CARGO_ENCODED_RUSTFLAGS";

fn build(root: &Path, target: &Path) -> Outcome<Command> {
    let mut command = cargo::command(&["build", "--locked", cargo::MESSAGES])?;
    command.args(PROFILE).arg("--target-dir").arg(target);
    command.current_dir(root).env(FLAGS, flags(root, target)?);
    Ok(command)
}

/// Returns flags that replace folders that differ between machines by fixed names, as panics name
/// their source file.
fn flags(root: &Path, target: &Path) -> Outcome<OsString> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let home = home.context("neither CARGO_HOME nor a home folder exists")?;
    let mut flags = OsString::new();
    let folders = [
        (root, "/build/fcn-tools"),
        (home.as_path(), "/build/cargo"),
        // Mostly inside the first.
        (target, "/build/fcn-tools/target/dist"),
    ];
    for (from, to) in folders
        .into_iter()
        .take(if target.starts_with(root) { 2 } else { 3 })
    {
        if !flags.is_empty() {
            flags.push("\x1f");
        }
        flags.push("--remap-path-prefix=");
        flags.push(from);
        flags.push(format!("={to}"));
    }
    Ok(flags)
}
