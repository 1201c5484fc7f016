//! Cargo, called from a command that cargo itself started: the workspace's root, its metadata, the
//! results of builds.
//! Not here: the plugin's location (`install_plugin.rs`).

use std::ffi::OsString;
use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use serde_json::Value;

use crate::failure::{Advice, Outcome};
use crate::process;

/// Package that builds the Wireshark plugin.
pub const PLUGIN_PACKAGE: &str = "fcn-dissector";

/// Package, and program, that generates captures.
pub const GENERATOR: &str = "fcn-gen";
/// Package, and program, that replays captures onto a link.
pub const REPLAYER: &str = "fcn-replay";
/// Package, and program, that shows which senders are notified to slow down.
pub const MONITOR: &str = "fcn-top";
/// Tools, and the environment variable that names the program of each, so that a test need not
/// build it: a build of a single package selects other features of its dependencies, and so builds
/// them again.
pub const BUILT: [(&str, &str); 3] = [
    (GENERATOR, "FCN_GENERATOR"),
    (REPLAYER, "FCN_REPLAYER"),
    (MONITOR, "FCN_MONITOR"),
];
/// Package, and program, that writes their man pages and completions.
pub const MANUAL: &str = "fcn-manual";

/// Returns the workspace's root folder.
///
/// # Errors
/// Neither cargo's environment nor the current folder leads to it.
pub fn root() -> Outcome<PathBuf> {
    // Determined at run time: a binary in a target folder shared by two clones must serve both.
    let start = match std::env::var_os("CARGO_MANIFEST_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => std::env::current_dir().context("cannot determine the current folder")?,
    };
    let is_root = |folder: &&Path| folder.join("crates/xtask/Cargo.toml").is_file();
    let root = start.ancestors().find(is_root).map(Path::to_path_buf);
    root.with_context(|| format!("{} is not inside the project", start.display()))
        .advise("run `cargo xtask` from the project's folder")
}

/// Returns the cargo that started this program, or the first in `PATH`.
#[must_use]
pub fn program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Returns a cargo command in the workspace's root.
///
/// # Errors
/// The root was not found.
pub fn command(arguments: &[&str]) -> Outcome<Command> {
    let mut command = Command::new(program());
    command.args(arguments).current_dir(root()?);
    without_its_variables(&mut command);
    Ok(command)
}

/// Removes the variables that `cargo run` set only for this program; they would make build scripts
/// run again.
pub fn without_its_variables(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let name_text = name.to_string_lossy();
        if name_text.starts_with("CARGO_PKG_") || name_text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
}

/// Returns a command's folder below the target folder, created if necessary.
///
/// # Errors
/// Cargo's metadata is not available, or the folder cannot be created.
pub fn target_folder(name: &str) -> Outcome<PathBuf> {
    let words = ["metadata", "--format-version", "1", "--no-deps"];
    let text = process::stdout(&mut command(&words)?)?;
    let metadata: Value = serde_json::from_str(&text)?;
    let target = metadata["target_directory"].as_str();
    let target = target.context("`cargo metadata` names no target folder")?;
    let folder = Path::new(target).join(name);
    fs_err::create_dir_all(&folder)?;
    Ok(folder)
}

/// Builds the plugin for the Wireshark of a system in a folder, into a target folder of its own,
/// and returns the path of the shared library; `adapt` may add options to cargo's.
///
/// # Errors
/// The build failed; cargo has reported the reason on standard error.
pub fn build_plugin_for(
    system: &Path,
    target: &Path,
    adapt: impl FnOnce(&mut Command) -> Outcome,
) -> Outcome<PathBuf> {
    let mut build = command(&["rustc", "--package", PLUGIN_PACKAGE, "--lib"])?;
    let pkg_config = ["usr/lib/x86_64-linux-gnu/pkgconfig", "usr/share/pkgconfig"];
    let pkg_config = std::env::join_paths(pkg_config.map(|folder| system.join(folder)))?;
    let system = system.display().to_string();
    build
        .env_remove("PKG_CONFIG_PATH")
        .env("PKG_CONFIG_LIBDIR", pkg_config)
        .env("PKG_CONFIG_SYSROOT_DIR", &system)
        .env("BINDGEN_EXTRA_CLANG_ARGS", format!("--sysroot='{system}'"))
        .arg("--target-dir")
        .arg(target)
        .arg(MESSAGES);
    adapt(&mut build)?;
    // Applies only to the library: build scripts are linked for this machine, and run here.
    build.args(["--", "-C", &format!("link-arg=--sysroot={system}")]);
    shared_library(&messages(&mut build)?)
}

/// Builds the plugin and returns the path of the shared library, wherever the target folder is.
///
/// # Errors
/// The build failed; cargo has reported the reason on standard error.
pub fn build_plugin(release: bool) -> Outcome<PathBuf> {
    let messages = build(PLUGIN_PACKAGE, &[], release);
    shared_library(
        &messages.advise("`cargo xtask install-plugin` installs the headers the build needs")?,
    )
}

/// Builds the program of a package and returns its path, wherever the target folder is.
///
/// # Errors
/// The build failed; cargo has reported the reason on standard error.
pub fn build_tool(package: &str, release: bool) -> Outcome<PathBuf> {
    let known = BUILT.iter().find(|(tool, _)| *tool == package && !release);
    if let Some(built) = known.and_then(|(_, variable)| std::env::var_os(variable)) {
        return Ok(built.into());
    }
    executable(&build(package, &["--bins"], release)?, package)
}

/// Builds an example program of a package and returns its path, wherever the target folder is.
///
/// # Errors
/// The build failed; cargo has reported the reason on standard error.
pub fn build_example(package: &str, example: &str, release: bool) -> Outcome<PathBuf> {
    executable(&build(package, &["--example", example], release)?, example)
}

/// Option that makes cargo report its artifacts in machine-readable form.
pub const MESSAGES: &str = "--message-format=json-render-diagnostics";

/// Builds a package and returns cargo's messages about it, one JSON object per line.
fn build(package: &str, arguments: &[&str], release: bool) -> Outcome<String> {
    let mut command = command(&["build", MESSAGES, "--package", package])?;
    command.args(arguments).args(release.then_some("--release"));
    messages(&mut command)
}

/// Returns the standard output of a build. Meanwhile, cargo's progress is shown on one line of a
/// terminal, each message over the last; if the build fails, all of it is printed.
///
/// # Errors
/// The build failed.
pub fn messages(command: &mut Command) -> Outcome<String> {
    let mut running = process::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    let (out, err) = (running.0.stdout.take(), running.0.stderr.take());
    let out = std::thread::spawn(move || {
        let mut text = String::new();
        out.map_or(Ok(0), |mut out| out.read_to_string(&mut text))?;
        Ok::<_, std::io::Error>(text)
    });
    let (mut said, mut progress) = (Vec::new(), Progress::new());
    for line in BufReader::new(err.context("no standard error")?).split(b'\n') {
        let line = line?;
        progress.on(&String::from_utf8_lossy(&line));
        said.extend_from_slice(&line);
        said.push(b'\n');
    }
    progress.clear();
    let status = running.0.wait()?;
    let out = out
        .join()
        .map_err(|_| anyhow!("reading cargo's output failed"))??;
    if status.success() {
        return Ok(out);
    }
    std::io::stderr().write_all(&said)?;
    let line = process::command_line(command);
    Err(anyhow!("`{line}` failed: see cargo's message above"))
}

/// Progress of a build, in one line.
struct Progress {
    is_terminal: bool,
    /// Time of the next message, if standard error is not a terminal.
    next: Instant,
    compiled: usize,
}

/// Time between two lines if standard error is not a terminal.
const SELDOM: Duration = Duration::from_secs(30);

impl Progress {
    fn new() -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self {
            is_terminal,
            next: Instant::now() + SELDOM,
            compiled: 0,
        }
    }

    fn on(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let what = match (words.next(), words.next()) {
            (Some("Compiling"), Some(package)) => {
                self.compiled += 1;
                format!("building: {} packages so far, {package}", self.compiled)
            }
            (Some("Blocking"), _) => "building: waiting for another cargo process".into(),
            _ => return,
        };
        if self.is_terminal {
            eprint!("\r\x1b[K      {what}");
        } else if Instant::now() >= self.next {
            self.next = Instant::now() + SELDOM;
            eprintln!("      {what}");
        }
    }

    fn clear(&self) {
        if self.is_terminal && self.compiled > 0 {
            eprint!("\r\x1b[K");
        }
    }
}

/// Returns the artifacts of the target `name` in cargo's messages.
fn artifacts(messages: &str, name: &str) -> impl Iterator<Item = Value> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(move |m| m["reason"] == "compiler-artifact" && m["target"]["name"] == name)
        .filter(|m| m["profile"]["test"] == false)
}

/// Finds the program with this name.
///
/// # Errors
/// It is not among the artifacts.
pub fn executable(messages: &str, name: &str) -> Outcome<PathBuf> {
    artifacts(messages, name)
        .find_map(|m| m["executable"].as_str().map(PathBuf::from))
        .with_context(|| format!("cargo built no program {name}"))
}

/// Finds a package's WebAssembly module.
///
/// # Errors
/// It is not among the artifacts.
pub fn wasm_module(messages: &str, package: &str) -> Outcome<PathBuf> {
    library(messages, package, "wasm")
        .with_context(|| format!("cargo built no WebAssembly module for {package}"))
}

/// Finds the library of a package in the file with that extension.
fn library(messages: &str, package: &str, extension: &str) -> Option<PathBuf> {
    artifacts(messages, &package.replace('-', "_"))
        .flat_map(|m| m["filenames"].as_array().cloned().unwrap_or_default())
        .filter_map(|file| file.as_str().map(PathBuf::from))
        .find(|file| file.extension().is_some_and(|e| e == extension))
}

/// Finds the plugin's shared library.
///
/// # Errors
/// It is not among the artifacts.
pub fn shared_library(messages: &str) -> Outcome<PathBuf> {
    library(messages, PLUGIN_PACKAGE, "so")
        .with_context(|| format!("cargo built no shared library for {PLUGIN_PACKAGE}"))
}
