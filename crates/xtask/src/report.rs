//! What chores show: steps announced and timed, colour on a terminal only.
//! Not here: the steps.

use std::fmt;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use crate::failure::Outcome;

/// A colour or weight of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    /// Headings.
    Bold,
    /// What went well.
    Green,
    /// What failed.
    Red,
    /// What was left out.
    Yellow,
    /// What matters less.
    Dim,
}

impl Ink {
    fn code(self) -> &'static str {
        match self {
            Self::Bold => "1",
            Self::Green => "32",
            Self::Red => "31",
            Self::Yellow => "33",
            Self::Dim => "2",
        }
    }
}

/// Whether standard output is a terminal that wants colour.
#[must_use]
pub fn colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// The text, coloured where standard output is a terminal.
#[must_use]
pub fn ink(ink: Ink, text: &str) -> String {
    if colour() {
        format!("\x1b[{}m{text}\x1b[0m", ink.code())
    } else {
        text.to_owned()
    }
}

/// Prints a line that stands above others.
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

/// How a step ended.
#[derive(Debug, Clone)]
pub struct Done {
    /// The step's title.
    pub title: &'static str,
    /// How long it took.
    pub took: Duration,
    /// What it returned.
    pub result: Outcome<String>,
}

/// Announces one step, does it, says how it ended; `number` counts from 1, and the work returns a line on what it found or did.
pub fn step(
    number: usize,
    of: usize,
    title: &'static str,
    work: impl FnOnce() -> Outcome<String>,
) -> Done {
    heading(&format!("[{number}/{of}] {title}"));
    let began = Instant::now();
    let result = work();
    let took = began.elapsed();
    let (word, text) = match &result {
        Ok(text) => (ink(Ink::Green, "ok"), text.clone()),
        Err(failure) => (ink(Ink::Red, "FAILED"), failure.to_string()),
    };
    let text = text.replace('\n', "\n      ");
    let colon = if text.is_empty() { "" } else { ": " };
    println!("      {word} in {}{colon}{text}", Took(took));
    Done {
        title,
        took,
        result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Failure;

    #[test]
    fn durations_read_well() {
        assert_eq!(Took(Duration::from_millis(1240)).to_string(), "1.2 s");
        assert_eq!(Took(Duration::from_secs(125)).to_string(), "2 min 05 s");
    }

    #[test]
    fn a_step_keeps_what_its_work_returned() {
        let done = step(1, 2, "one", || Ok("fine".to_owned()));
        assert_eq!((done.title, done.result), ("one", Ok("fine".to_owned())));
        let done = step(2, 2, "two", || Err(Failure::new("no")));
        assert_eq!(done.result, Err(Failure::new("no")));
    }
}
