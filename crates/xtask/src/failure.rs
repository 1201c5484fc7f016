//! Failures of commands: what failed and on what, and what the user can do about it.
//! Not here: the commands themselves.

use std::fmt::Display;

/// Result of a command, or of a part of one. Files are accessed with `fs_err`, whose errors name
/// them.
pub type Outcome<T = ()> = anyhow::Result<T>;

/// Adds advice to a failure.
pub trait Advice {
    /// Adds the advice.
    #[must_use]
    fn advise(self, todo: impl Display) -> Self;
}

impl Advice for anyhow::Error {
    fn advise(self, todo: impl Display) -> Self {
        anyhow::anyhow!("{self:#}\n  what to do: {todo}")
    }
}

impl<T> Advice for Outcome<T> {
    fn advise(self, todo: impl Display) -> Self {
        self.map_err(|failure| failure.advise(todo))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context, anyhow};

    #[test]
    fn failures_contain_cause_and_advice() {
        let failure = anyhow!("b is not there").context("a failed");
        let text = failure.advise("mend it").to_string();
        assert_eq!(text, "a failed: b is not there\n  what to do: mend it");
        let missing: Outcome = None.context("a failed");
        let text = missing.advise("mend it").unwrap_err().to_string();
        assert_eq!(text, "a failed\n  what to do: mend it");
    }

    #[test]
    fn missing_files_are_named() {
        let text = anyhow::Error::from(fs_err::read("/no/such/file").unwrap_err());
        let text = format!("{text:#}");
        assert!(
            text.contains("/no/such/file") && text.contains("No such file"),
            "{text}"
        );
    }
}
