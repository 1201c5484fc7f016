//! Other programs: finding them, running them, and reporting the cause of a failure.
//! Not here: cargo (`cargo.rs`) and tshark (`wireshark.rs`, `tshark.rs`).

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, anyhow, ensure};
use wait4::{ResourceUsage, Wait4};

use crate::failure::{Advice, Outcome};

/// Number of lines of a program's error output that a failure repeats.
const COMPLAINT_LINES: usize = 12;

/// Returns the location of a program in `PATH`, if it is there.
#[must_use]
pub fn which(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(program))
        .find(|path| {
            path.metadata()
                .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
        })
}

/// Returns the location of a required program; the failure names the program and its Debian
/// package.
///
/// # Errors
/// It is not installed.
pub fn need(program: &str, package: &str) -> Outcome<PathBuf> {
    let found = which(program).with_context(|| format!("{program} is not installed"));
    found.advise(format_args!("install it (in Debian: package {package})"))
}

/// Returns true if this process runs as root.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns a command as a user would type it: the program without its folder.
#[must_use]
pub fn command_line(command: &Command) -> String {
    let program = command.get_program();
    std::iter::once(Path::new(program).file_name().unwrap_or(program))
        .chain(command.get_args())
        .map(quoted)
        .collect::<Vec<_>>()
        .join(" ")
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Runs a command to completion and returns its output, for any exit status.
///
/// # Errors
/// The command could not be started.
pub fn output(command: &mut Command) -> Outcome<Output> {
    let output = command.output();
    output.map_err(|error| cannot(command, &error))
}

/// A started program that is killed when dropped, if it is still running.
#[derive(Debug)]
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may already have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a command.
///
/// # Errors
/// It could not be started.
pub fn spawn(command: &mut Command) -> Outcome<Running> {
    let child = command.spawn();
    Ok(Running(child.map_err(|error| cannot(command, &error))?))
}

fn cannot(command: &Command, error: &std::io::Error) -> anyhow::Error {
    anyhow!("cannot start `{}`: {error}", command_line(command))
}

/// Runs a command that must succeed, with its output shown; returns the processor time and memory
/// that it used, including the children that it waited for.
///
/// # Errors
/// It could not be started, or failed.
pub fn run(command: &mut Command) -> Outcome<ResourceUsage> {
    let child = command.spawn();
    let mut child = child.map_err(|error| cannot(command, &error))?;
    let ended = child.wait4()?;
    let (line, status) = (command_line(command), ended.status);
    ensure!(status.success(), "`{line}` failed ({status})");
    Ok(ended.rusage)
}

/// Runs a command that must succeed, and returns its standard output.
///
/// # Errors
/// The command could not be started, or failed; the failure ends with its error output.
pub fn stdout(command: &mut Command) -> Outcome<String> {
    let output = output(command)?;
    if !output.status.success() {
        return Err(failed(command, &output));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the failure of a command that exited unsuccessfully.
#[must_use]
pub fn failed(command: &Command, output: &Output) -> anyhow::Error {
    let streams = [&output.stderr, &output.stdout];
    let complaint = streams.into_iter().find(|stream| !stream.is_empty());
    let complaint = String::from_utf8_lossy(complaint.map_or(&[], Vec::as_slice));
    let (line, status) = (command_line(command), output.status);
    anyhow!(
        "`{line}` failed ({status}){}",
        tail(&complaint, COMPLAINT_LINES)
    )
}

/// Returns the last `lines` lines, each indented on a line of its own.
#[must_use]
pub fn tail(text: &str, lines: usize) -> String {
    let all = text.lines().filter(|line| !line.trim().is_empty());
    let all: Vec<String> = all.map(|line| format!("\n    {line}")).collect();
    all[all.len().saturating_sub(lines)..].concat()
}

/// Processes the items on `jobs` threads. A thread ends when there are no items left, or when
/// `work` returns false.
pub fn in_parallel<T>(
    jobs: usize,
    items: impl Iterator<Item = T> + Send,
    work: impl Fn(T) -> bool + Sync,
) {
    let open = Mutex::new(items);
    // A panic in another thread leaves the iterator usable, and the scope propagates it.
    let next = || open.lock().unwrap_or_else(PoisonError::into_inner).next();
    let each = || while next().is_some_and(&work) {};
    std::thread::scope(|scope| (0..jobs.max(1)).for_each(|_| drop(scope.spawn(each))));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_a_shell_would_split_are_quoted() {
        let mut command = Command::new("/opt/bin/tshark");
        command.args(["-r", "a b.pcapng", "-o", "x:\"it's\"", "-n", ""]);
        assert_eq!(
            command_line(&command),
            r#"tshark -r 'a b.pcapng' -o 'x:"it'\''s"' -n ''"#
        );
    }

    #[test]
    fn keeps_the_last_lines() {
        assert_eq!(tail("a\n\nb\nc\n", 2), "\n    b\n    c");
        assert_eq!(tail("", 2), "");
    }

    #[test]
    fn a_failure_repeats_the_error_output() {
        let error =
            stdout(Command::new("sh").args(["-c", "echo so what >&2; exit 3"])).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("exit status: 3") && text.ends_with("\n    so what"),
            "{text}"
        );
        let error = stdout(&mut Command::new("no-such-program-here"))
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("cannot start `no-such-program-here`"),
            "{error}"
        );
    }

    #[test]
    fn finds_programs() {
        assert!(which("sh").is_some());
        assert!(which("no-such-program-here").is_none());
        let text = need("no-such-program-here", "no-package").unwrap_err();
        assert!(text.to_string().contains("package no-package"));
    }
}
