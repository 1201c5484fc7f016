//! How a command fails: what failed and on what, and what the person at the keyboard can do about it.
//! Not here: what the commands do.

use std::fmt::Display;

/// What a command, or a part of one, comes to. Files are worked on with `fs_err`, whose errors name them.
pub type Outcome<T = ()> = anyhow::Result<T>;

/// Adds to a failure what to do about it.
pub trait Todo {
    /// Adds it.
    #[must_use]
    fn todo(self, todo: impl Display) -> Self;
}

impl Todo for anyhow::Error {
    fn todo(self, todo: impl Display) -> Self {
        anyhow::anyhow!("{self:#}\n  what to do: {todo}")
    }
}

impl<T> Todo for Outcome<T> {
    fn todo(self, todo: impl Display) -> Self {
        self.map_err(|failure| failure.todo(todo))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context, anyhow};

    #[test]
    fn says_what_and_what_to_do() {
        let failure = anyhow!("b is not there").context("a failed");
        let text = failure.todo("mend it").to_string();
        assert_eq!(text, "a failed: b is not there\n  what to do: mend it");
        let missing: Outcome = None.context("a failed");
        let text = missing.todo("mend it").unwrap_err().to_string();
        assert_eq!(text, "a failed\n  what to do: mend it");
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let text = anyhow::Error::from(fs_err::read("/no/such/file").unwrap_err());
        let text = format!("{text:#}");
        assert!(
            text.contains("/no/such/file") && text.contains("No such file"),
            "{text}"
        );
    }
}
