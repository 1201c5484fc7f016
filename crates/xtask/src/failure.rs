//! How a chore fails: what failed and on what, and what the person at the keyboard can do about it.
//! Not here: what the chores do.

use std::fmt;
use std::io;

/// A failed chore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    what: String,
    todo: Option<String>,
}

/// What a chore, or a part of one, comes to.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// Something failed; `what` names it and the thing it failed on.
    pub fn new(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            todo: None,
        }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn todo(mut self, todo: impl Into<String>) -> Self {
        self.todo = Some(todo.into());
        self
    }
}

/// Files are worked on with `fs_err`, whose errors name them.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let failure = Self::new(error.to_string());
        match error.kind() {
            io::ErrorKind::PermissionDenied => failure.todo("check who may read and write there"),
            _ => failure,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if let Some(todo) = &self.todo {
            write!(f, "\n  what to do: {todo}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_and_what_to_do() {
        assert_eq!(Failure::new("a failed").to_string(), "a failed");
        assert_eq!(
            Failure::new("a failed").todo("mend it").to_string(),
            "a failed\n  what to do: mend it"
        );
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let text = Failure::from(fs_err::read("/no/such/file").unwrap_err()).to_string();
        assert!(
            text.contains("/no/such/file") && text.contains("No such file"),
            "{text}"
        );
    }
}
