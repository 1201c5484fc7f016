//! Failures of a command: what failed, on what, what to do about it, and the exit code. They are
//! printed elsewhere.

use core::fmt;
use std::io;
use std::path::Path;

/// Exit status of a program that does not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The command failed.
    Failed,
    /// The usage was wrong: options, or an invalid scenario.
    Usage,
    /// The command succeeded, but not all of its input was processed.
    Incomplete,
    /// The command succeeded, and what was tested violated a rule.
    Broken,
    /// The command succeeded, but behind its schedule.
    Late,
    /// The command was interrupted.
    Interrupted,
}

impl Exit {
    /// Returns the program's exit code.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Incomplete => 3,
            Self::Broken => 4,
            Self::Late => 5,
            Self::Interrupted => 130,
        }
    }
}

/// A failed command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    exit: Exit,
    parts: Vec<String>,
}

/// Result of a command or a part of one.
pub type Result<T = ()> = core::result::Result<T, Failure>;

impl Failure {
    fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self {
            exit,
            parts: vec![what.into()],
        }
    }

    /// Creates a failure of an operation.
    pub fn failed(what: impl Into<String>) -> Self {
        Self::new(Exit::Failed, what)
    }

    /// Creates a failure for wrong usage.
    pub fn usage(what: impl Into<String>) -> Self {
        Self::new(Exit::Usage, what)
    }

    /// Creates a failure for a scenario that is invalid or unsuitable for this command.
    #[must_use]
    pub fn bad_scenario(error: &impl fmt::Display) -> Self {
        Self::usage("bad scenario").and(error.to_string())
    }

    /// Creates a failure for a command that succeeded but missed something: `what`.
    pub fn incomplete(what: impl Into<String>) -> Self {
        Self::new(Exit::Incomplete, what)
    }

    /// Creates a failure for a command that succeeded and found a violated rule: `what`.
    pub fn broken(what: impl Into<String>) -> Self {
        Self::new(Exit::Broken, what)
    }

    /// Creates a failure for a command that succeeded `behind` its schedule.
    pub fn late(behind: impl Into<String>) -> Self {
        Self::new(Exit::Late, behind)
    }

    /// Creates a failure for an interrupted command; `left` describes its partial result.
    pub fn interrupted(left: impl Into<String>) -> Self {
        Self::new(Exit::Interrupted, "interrupted").and(left)
    }

    /// Creates a failure of an operation on a file or folder.
    #[must_use]
    pub fn io(doing: &str, path: &Path, error: &io::Error) -> Self {
        let failure = Self::failed(format!("cannot {doing}"))
            .and(path.display().to_string())
            .and(error.to_string());
        match error.kind() {
            io::ErrorKind::PermissionDenied => failure.and("check the permissions there"),
            io::ErrorKind::NotFound => failure.and("check that its folder exists"),
            io::ErrorKind::StorageFull => failure.and("free some space, or write elsewhere"),
            io::ErrorKind::IsADirectory => failure.and("specify a file in it"),
            _ => failure,
        }
    }

    /// Creates a silent failure for output to a pipe that its reader has closed.
    #[must_use]
    pub const fn closed_pipe() -> Self {
        Self {
            exit: Exit::Failed,
            parts: Vec::new(),
        }
    }

    /// Creates a failure to write standard output.
    #[must_use]
    pub fn stdout(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::closed_pipe()
        } else {
            Self::failed("cannot write")
                .and("standard output")
                .and(error.to_string())
        }
    }

    /// Appends the object of the failure, or advice.
    #[must_use]
    pub fn and(mut self, part: impl Into<String>) -> Self {
        self.parts.push(part.into());
        self
    }

    /// Returns the exit status.
    #[must_use]
    pub const fn exit(&self) -> Exit {
        self.exit
    }

    /// True if there is nothing to print.
    #[must_use]
    pub const fn is_silent(&self) -> bool {
        self.parts.is_empty()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.parts.join(": "))
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_names_operation_object_and_advice() {
        let failure = Failure::io(
            "write",
            Path::new("/a/b"),
            &io::Error::from(io::ErrorKind::NotFound),
        );
        assert_eq!(
            failure.to_string(),
            "cannot write: /a/b: entity not found: check that its folder exists"
        );
        assert_eq!(failure.exit().code(), 1);
        assert_eq!(
            Failure::interrupted("nothing was written").to_string(),
            "interrupted: nothing was written"
        );
    }

    #[test]
    fn a_closed_pipe_is_silent_and_a_full_device_is_not() {
        let closed = Failure::stdout(&io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(closed.is_silent());
        let full = Failure::stdout(&io::Error::from(io::ErrorKind::StorageFull));
        assert!(!full.is_silent());
        assert_eq!(full.exit(), Exit::Failed);
    }
}
