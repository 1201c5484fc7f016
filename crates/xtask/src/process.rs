//! Other programs: finding them, running them, and telling well why one failed.
//! Not here: cargo (`cargo.rs`) and tshark (`wireshark.rs`, `tshark.rs`).

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};

use crate::failure::{Failure, Outcome};

/// The lines of a program's complaints that a failure repeats.
const COMPLAINT_LINES: usize = 12;

/// Where a program stands in `PATH`, if it does.
#[must_use]
pub fn which(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(program))
        .find(|path| {
            path.metadata()
                .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
        })
}

/// A program that a chore calls; the failure says what lacks and in which package of Debian it is.
///
/// # Errors
/// It is not installed.
pub fn need(program: &str, package: &str) -> Outcome<PathBuf> {
    which(program).ok_or_else(|| {
        Failure::new(format!("{program} is not installed"))
            .todo(format!("install it (in Debian: package {package})"))
    })
}

/// Whether this process runs as root.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A command as one would type it: the program without its folder.
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

/// Runs a command to its end and returns what it wrote, whatever its exit status.
///
/// # Errors
/// The command could not be started.
pub fn output(command: &mut Command) -> Outcome<Output> {
    command.output().map_err(|error| cannot(command, &error))
}

/// A started program that ends with its owner, if not before.
#[derive(Debug)]
pub struct Running(Child);

impl std::ops::Deref for Running {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl std::ops::DerefMut for Running {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended long ago.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a command.
///
/// # Errors
/// It could not be started.
pub fn spawn(command: &mut Command) -> Outcome<Running> {
    let child = command.spawn().map_err(|error| cannot(command, &error))?;
    Ok(Running(child))
}

fn cannot(command: &Command, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot start `{}`: {error}", command_line(command)))
}

/// Runs a command that has to succeed, and that shows what it has to say.
///
/// # Errors
/// It could not be started, or failed.
pub fn run(command: &mut Command) -> Outcome {
    let status = spawn(command)?.wait()?;
    if status.success() {
        return Ok(());
    }
    let line = command_line(command);
    Err(Failure::new(format!("`{line}` failed ({status})")))
}

/// Runs a command that has to succeed, and returns its standard output.
///
/// # Errors
/// The command could not be started, or failed; the failure ends with what it said.
pub fn stdout(command: &mut Command) -> Outcome<String> {
    let output = output(command)?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(failed(command, &output))
    }
}

/// The failure of a command that ended badly.
#[must_use]
pub fn failed(command: &Command, output: &Output) -> Failure {
    let said = if output.stderr.is_empty() {
        &output.stdout
    } else {
        &output.stderr
    };
    let said = tail(&String::from_utf8_lossy(said), COMPLAINT_LINES);
    let (line, status) = (command_line(command), output.status);
    Failure::new(format!("`{line}` failed ({status}){said}"))
}

/// The last `lines` lines, each indented on a line of its own.
#[must_use]
pub fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let from = all.len().saturating_sub(lines);
    all[from..]
        .iter()
        .map(|line| format!("\n    {line}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_what_a_shell_would_split() {
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
    fn a_failure_repeats_the_complaint() {
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
