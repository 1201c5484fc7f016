//! Errors of scenarios, with their positions.

use core::fmt;
use core::ops::Range;
use fcn_tool::failure::Failure;

/// Reason for refusing a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Name of the file or the built-in scenario.
    pub file: String,
    /// Position in it, if known.
    pub position: Position,
    /// The key as named by `--set`, if known.
    pub key: Option<String>,
    /// Description of the error, and of the valid values.
    pub message: String,
}

/// Position of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Position {
    /// No particular position.
    Whole,
    /// Line and column, both from 1; columns count characters.
    Text {
        /// Line.
        line: usize,
        /// Column.
        column: usize,
    },
    /// In this `key=value`, given on the command line.
    Set(String),
}

impl Position {
    /// Returns the position after `at` octets of `text`.
    pub(crate) fn behind(text: &str, at: usize) -> Self {
        let before = text.get(..at).unwrap_or(text);
        let last = before.rsplit('\n').next().unwrap_or_default();
        Self::Text {
            line: before.matches('\n').count() + 1,
            column: last.chars().count() + 1,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        match &self.position {
            Position::Whole => {}
            Position::Text { line, column } => write!(f, ":{line}:{column}")?,
            Position::Set(set) => write!(f, ": --set {set}")?,
        }
        if let Some(key) = &self.key {
            write!(f, ": {key}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for Error {}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::bad_scenario(&error)
    }
}

impl Error {
    /// Creates an error at a position, without a key.
    pub(crate) fn new(file: &str, position: Position, message: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            position,
            key: None,
            message: message.into(),
        }
    }
}

/// An error whose position and file are not determined yet.
#[derive(Debug)]
pub(super) struct Refusal {
    /// Path of the key; entries are given by their index. Empty for the whole document.
    pub path: Vec<String>,
    /// Range of octets in the text, if the parser reported one.
    pub span: Option<Range<usize>>,
    pub message: String,
}

impl Refusal {
    /// Refuses the value at a dotted path, such as `flow.0.mtu`.
    pub fn at(path: &str, message: impl Into<String>) -> Self {
        Self {
            path: path.split('.').map(str::to_owned).collect(),
            span: None,
            message: message.into(),
        }
    }

    pub fn whole(message: impl Into<String>) -> Self {
        Self {
            path: Vec::new(),
            span: None,
            message: message.into(),
        }
    }
}

impl From<serde_path_to_error::Error<toml_edit::de::Error>> for Refusal {
    fn from(error: serde_path_to_error::Error<toml_edit::de::Error>) -> Self {
        use serde_path_to_error::Segment;
        let step = |segment: &Segment| match segment {
            Segment::Seq { index } => index.to_string(),
            Segment::Map { key } => key.clone(),
            Segment::Enum { variant } => variant.clone(),
            Segment::Unknown => "?".to_owned(),
        };
        Self {
            path: error.path().iter().map(step).collect(),
            span: error.inner().span(),
            message: in_words(error.inner().message().trim()),
        }
    }
}

/// Replaces the name of a type at the end of serde's message by the values that are allowed.
fn in_words(message: &str) -> String {
    let types = [
        (" expected u8", "a whole number from 0 to 255"),
        (" expected u16", "a whole number from 0 to 65535"),
        (" expected u32", "a whole number from 0 to 4294967295"),
        (" expected u64", "a whole number from 0"),
        (" expected f64", "a number"),
    ];
    let found = types.iter().find_map(|(name, words)| {
        let before = message.strip_suffix(name)?;
        Some(format!("{before} expected {words}"))
    });
    found.unwrap_or_else(|| message.to_owned())
}

/// Returns the refusal of the value at a path, with a message.
macro_rules! refuse {
    ($path:expr, $($message:tt)+) => {
        return Err($crate::scenario::error::Refusal::at(&$path, format!($($message)+)))
    };
}
pub(super) use refuse;
