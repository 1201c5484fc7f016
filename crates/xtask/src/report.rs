//! Output of the commands: steps announced and timed, with colour only on a terminal.
//! Not here: the steps.

use std::fmt;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use crate::failure::Outcome;

/// A colour or weight of text, with its terminal code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    /// Heading.
    Bold = 1,
    /// Less important text.
    Dim = 2,
    /// Failure.
    Red = 31,
    /// Success.
    Green = 32,
    /// Something left out.
    Yellow = 33,
}

/// Returns the text, coloured if standard output is a terminal and `NO_COLOR` is not set.
#[must_use]
pub fn ink(ink: Ink, text: &str) -> String {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    match std::io::stdout().is_terminal() && !plain {
        true => format!("\x1b[{}m{text}\x1b[0m", ink as u8),
        false => text.to_owned(),
    }
}

/// Prints a heading.
pub fn heading(text: &str) {
    println!("{}", ink(Ink::Bold, text));
}

/// A duration for people.
#[derive(Debug, Clone, Copy)]
pub struct Took(pub Duration);

impl fmt::Display for Took {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        if seconds >= 60 {
            write!(f, "{} min {:02} s", seconds / 60, seconds % 60)
        } else {
            write!(f, "{:.1} s", self.0.as_secs_f64())
        }
    }
}

/// Result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// Title of the step.
    pub title: &'static str,
    /// Run time.
    pub took: Duration,
    /// True if it succeeded.
    pub good: bool,
}

/// Announces one step, runs it, and prints its result; `number` counts from 1, and `work` returns a
/// line about its result.
pub fn step(
    number: usize,
    total: usize,
    title: &'static str,
    work: impl FnOnce() -> Outcome<String>,
) -> Done {
    heading(&format!("[{number}/{total}] {title}"));
    let began = Instant::now();
    let result = work();
    let (took, good) = (began.elapsed(), result.is_ok());
    let (word, text) = match result {
        Ok(text) => (ink(Ink::Green, "ok"), text),
        Err(failure) => (ink(Ink::Red, "FAILED"), format!("{failure:#}")),
    };
    let text = text.replace('\n', "\n      ");
    let colon = if text.is_empty() { "" } else { ": " };
    println!("      {word} in {}{colon}{text}", Took(took));
    Done { title, took, good }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_well() {
        assert_eq!(Took(Duration::from_millis(1240)).to_string(), "1.2 s");
        assert_eq!(Took(Duration::from_secs(125)).to_string(), "2 min 05 s");
    }

    #[test]
    fn a_step_reports_the_result_of_its_work() {
        let done = step(1, 2, "one", || Ok("fine".to_owned()));
        assert_eq!((done.title, done.good), ("one", true));
        assert!(!step(2, 2, "two", || Err(anyhow::anyhow!("no"))).good);
    }
}
