//! Why a scenario is refused, and where in its file: lines, columns and keys found from places in the text.

use core::fmt;
use core::ops::Range;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

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

/// A refusal before it is known where in which file it is: a range of octets of the text, where there is one.
#[derive(Debug)]
pub(super) struct Refusal {
    pub span: Option<Range<usize>>,
    pub message: String,
}

impl Refusal {
    pub fn at<T>(what: &Spanned<T>, message: impl Into<String>) -> Self {
        Self::span(what.span(), message)
    }

    pub fn span(span: Range<usize>, message: impl Into<String>) -> Self {
        Self {
            span: Some(span),
            message: message.into(),
        }
    }

    pub fn whole(message: impl Into<String>) -> Self {
        Self {
            span: None,
            message: message.into(),
        }
    }
}

impl From<toml::de::Error> for Refusal {
    fn from(error: toml::de::Error) -> Self {
        Self {
            span: error.span(),
            message: plain(error.message()),
        }
    }
}

/// Serde's wording in ours.
fn plain(message: &str) -> String {
    let message = message.trim();
    for (serde, ours) in [
        ("unknown field ", "unknown key "),
        ("unknown variant ", "unknown value "),
    ] {
        if let Some(rest) = message.strip_prefix(serde) {
            let rest = rest.replacen(", expected one of ", "; allowed are ", 1);
            let one_or_two = if rest.contains("` or `") {
                "; allowed are "
            } else {
                "; allowed is "
            };
            let rest = rest.replacen(", expected ", one_or_two, 1);
            return format!("{ours}{rest}");
        }
    }
    match message.strip_prefix("missing field ") {
        Some(key) => format!("the key {key} is missing"),
        None => message.to_owned(),
    }
}

/// Finds lines, columns and keys for places in a scenario's text.
///
/// Settings count as text behind the file's, each at a place of its own, so that a place alone says where a value came from.
pub(super) struct Locator {
    file: String,
    text: String,
    settings: Vec<(Range<usize>, String)>,
    keys: Vec<(Range<usize>, String)>,
}

impl Locator {
    pub fn new(file: &str, text: &str) -> Self {
        Self {
            file: file.to_owned(),
            text: text.to_owned(),
            settings: Vec::new(),
            keys: Vec::new(),
        }
    }

    /// Makes known the place of a setting.
    pub fn setting(&mut self, span: Range<usize>, shown: &str) {
        self.settings.push((span, shown.to_owned()));
    }

    /// Makes known the places of a document's keys, in place of those known before.
    pub fn keys_of(&mut self, table: &DeTable<'_>) {
        self.keys.clear();
        self.walk_table(table, "");
    }

    fn walk_table(&mut self, table: &DeTable<'_>, path: &str) {
        for (key, value) in table {
            let name = key.get_ref();
            let path = if path.is_empty() {
                name.to_string()
            } else {
                format!("{path}.{name}")
            };
            match value.get_ref() {
                DeValue::Table(table) => self.walk_table(table, &path),
                DeValue::Array(array) if holds_tables(array) => {
                    for (index, entry) in array.iter().enumerate() {
                        if let DeValue::Table(table) = entry.get_ref() {
                            let path = format!("{path}.{}", entry_name(table, index));
                            self.keys.push((entry.span(), path.clone()));
                            self.walk_table(table, &path);
                        }
                    }
                    continue;
                }
                _ => {}
            }
            self.keys.push((key.span(), path.clone()));
            self.keys.push((value.span(), path));
        }
    }

    /// The place of `key`'s value.
    pub fn place_of(&self, key: &str) -> Option<Range<usize>> {
        self.keys
            .iter()
            .rev()
            .find(|(_, path)| path == key)
            .map(|(span, _)| span.clone())
    }

    fn key_at(&self, span: &Range<usize>) -> Option<String> {
        self.keys
            .iter()
            .filter(|(range, _)| range.start <= span.start && span.end <= range.end)
            .min_by_key(|(range, _)| range.len())
            .map(|(_, path)| path.clone())
    }

    /// The error that `refusal` is.
    pub fn error(&self, refusal: Refusal) -> Error {
        let Refusal { span, message } = refusal;
        let file = self.file.clone();
        let Some(span) = span else {
            return Error {
                file,
                place: Place::Whole,
                key: None,
                message,
            };
        };
        let setting = self
            .settings
            .iter()
            .find(|(range, _)| range.contains(&span.start));
        let place = match setting {
            Some((_, shown)) => Place::Set(shown.clone()),
            None => self.line(span.start),
        };
        Error {
            file,
            place,
            key: self.key_at(&span),
            message,
        }
    }

    fn line(&self, at: usize) -> Place {
        let mut at = at.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        let before = self.text.get(..at).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .chars()
            .count()
            + 1;
        Place::Text { line, column }
    }
}

/// Whether `[[…]]` made this array (or could have).
pub(super) fn holds_tables(array: &DeArray<'_>) -> bool {
    !array.is_empty() && array.iter().all(|entry| entry.get_ref().is_table())
}

/// How `--set` names an entry of an array: by its `name`, else by its number from 1.
pub(super) fn entry_name(table: &DeTable<'_>, index: usize) -> String {
    let name = table
        .iter()
        .find(|(key, _)| key.get_ref() == "name")
        .and_then(|(_, value)| value.get_ref().as_str());
    name.map_or_else(|| (index + 1).to_string(), str::to_owned)
}
