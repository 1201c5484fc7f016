//! Output of the commands: steps announced and timed, colour on a terminal only.
//! Not here: the steps.

use std::fmt;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use crate::failure::Outcome;

/// A colour or weight of text, by its number among the codes of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    /// Headings.
    Bold = 1,
    /// What matters less.
    Dim = 2,
    /// What failed.
    Red = 31,
    /// What went well.
    Green = 32,
    /// What was left out.
    Yellow = 33,
}

/// The text, coloured where standard output is a terminal that wants colour.
#[must_use]
pub fn ink(ink: Ink, text: &str) -> String {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    match std::io::stdout().is_terminal() && !plain {
        true => format!("\x1b[{}m{text}\x1b[0m", ink as u8),
        false => text.to_owned(),
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// The step's title.
    pub title: &'static str,
    /// How long it took.
    pub took: Duration,
    /// Whether it did what it should.
    pub good: bool,
}

/// Announces one step, does it, says how it ended; `number` counts from 1, and the work returns a line on what it found or did.
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
    fn a_step_tells_how_its_work_ended() {
        let done = step(1, 2, "one", || Ok("fine".to_owned()));
        assert_eq!((done.title, done.good), ("one", true));
        assert!(!step(2, 2, "two", || Err(anyhow::anyhow!("no"))).good);
    }
}
