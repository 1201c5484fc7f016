//! How a command fails: what failed, on what, what to do about it, and the exit code. Not here: who prints it.

use core::fmt;
use std::io;
use std::path::Path;

/// How the program ends where it does not end well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It could not be done.
    Failed,
    /// It was asked for wrongly: options, or a scenario that is none.
    Usage,
    /// It was done, but not with all that there was to take in.
    Incomplete,
    /// It was done, and what was tested broke a rule.
    Broken,
    /// Someone stopped it.
    Interrupted,
}

impl Exit {
    /// The program's exit code.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Incomplete => 3,
            Self::Broken => 4,
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

/// What a command, or a part of one, comes to.
pub type Result<T = ()> = core::result::Result<T, Failure>;

impl Failure {
    fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self {
            exit,
            parts: vec![what.into()],
        }
    }

    /// Something could not be done.
    pub fn failed(what: impl Into<String>) -> Self {
        Self::new(Exit::Failed, what)
    }

    /// Something was asked for wrongly.
    pub fn usage(what: impl Into<String>) -> Self {
        Self::new(Exit::Usage, what)
    }

    /// The scenario is none, or one that this command cannot take.
    #[must_use]
    pub fn bad_scenario(error: &impl fmt::Display) -> Self {
        Self::usage("bad scenario").and(error.to_string())
    }

    /// It was done, but something was missed: `what`.
    pub fn incomplete(what: impl Into<String>) -> Self {
        Self::new(Exit::Incomplete, what)
    }

    /// It was done, and what was tested broke a rule: `what`.
    pub fn broken(what: impl Into<String>) -> Self {
        Self::new(Exit::Broken, what)
    }

    /// Someone stopped the command; `left` says what is left of its work.
    pub fn interrupted(left: impl Into<String>) -> Self {
        Self::new(Exit::Interrupted, "interrupted").and(left)
    }

    /// A failed operation on a file or folder.
    #[must_use]
    pub fn io(doing: &str, path: &Path, error: &io::Error) -> Self {
        let failure = Self::failed(format!("cannot {doing}"))
            .and(path.display().to_string())
            .and(error.to_string());
        match error.kind() {
            io::ErrorKind::PermissionDenied => failure.and("check who may write there"),
            io::ErrorKind::NotFound => failure.and("check that its folder exists"),
            io::ErrorKind::StorageFull => failure.and("make room, or write elsewhere"),
            io::ErrorKind::IsADirectory => failure.and("name a file in it"),
            _ => failure,
        }
    }

    /// What is written went to a pipe that nobody reads any more. Nobody needs to be told.
    #[must_use]
    pub const fn closed_pipe() -> Self {
        Self {
            exit: Exit::Failed,
            parts: Vec::new(),
        }
    }

    /// Failed to write standard output.
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

    /// Adds on what it failed, or what to do.
    #[must_use]
    pub fn and(mut self, part: impl Into<String>) -> Self {
        self.parts.push(part.into());
        self
    }

    /// How the program ends.
    #[must_use]
    pub const fn exit(&self) -> Exit {
        self.exit
    }

    /// Whether there is nothing to say about it.
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
    fn says_what_on_what_and_what_to_do() {
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
