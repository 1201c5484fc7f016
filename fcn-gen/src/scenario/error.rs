//! Why a scenario is refused, and where.

use core::fmt;
use core::ops::Range;
use fcn_tool::failure::Failure;

/// Why a scenario is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The file's name, or that of the built-in scenario.
    pub file: String,
    /// Where in it, where known.
    pub place: Place,
    /// The key, as `--set` would name it, where known.
    pub key: Option<String>,
    /// What is wrong and what is allowed.
    pub message: String,
}

/// Where something stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nowhere in particular.
    Whole,
    /// Line and column, both from 1; columns count characters.
    Text {
        /// Line.
        line: usize,
        /// Column.
        column: usize,
    },
    /// In this `key=value`, given beside the file.
    Set(String),
}

impl Place {
    /// The place behind `at` octets of `text`.
    pub(super) fn behind(text: &str, at: usize) -> Self {
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
        match &self.place {
            Place::Whole => {}
            Place::Text { line, column } => write!(f, ":{line}:{column}")?,
            Place::Set(set) => write!(f, ": --set {set}")?,
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
    /// What is wrong at a place, where no key is to blame.
    pub(super) fn new(file: &str, place: Place, message: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            place,
            key: None,
            message: message.into(),
        }
    }
}

/// A refusal before it is known where that is in which file.
#[derive(Debug)]
pub(super) struct Refusal {
    /// The key's path; entries go by their index. Empty: the whole document.
    pub path: Vec<String>,
    /// Octets of the text, where the parser says so.
    pub span: Option<Range<usize>>,
    pub message: String,
}

impl Refusal {
    /// A refusal of the value at a path with dots, as in `flow.0.mtu`.
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
            message: error.inner().message().trim().to_owned(),
        }
    }
}

/// Returns the refusal of the value at a path, with a message.
macro_rules! refuse {
    ($path:expr, $($message:tt)+) => {
        return Err($crate::scenario::error::Refusal::at(&$path, format!($($message)+)))
    };
}
pub(super) use refuse;
