//! What is said when bytes cannot be read as a format, or a value cannot be written as one.
//!
//! A broken *rule* in bytes that can still be read is a [`Finding`](crate::finding::Finding), not an error.

use crate::layer::Layer;
use core::fmt;

/// Result of a parser or emitter of this crate.
pub type Result<T> = core::result::Result<T, Error>;

/// Why bytes could not be read (or a value not be written), in which layer, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// The layer that could not be read.
    pub layer: Layer,
    /// Octets from the start of what the caller passed in to the field at fault.
    pub offset: usize,
    /// What is wrong there.
    pub kind: ErrorKind,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The octets end before the format does.
    Short {
        /// Octets that the layer needs from its own start.
        need: usize,
        /// Octets that there are from its start.
        have: usize,
    },
    /// A length field contradicts its format or its surroundings.
    Length {
        /// Which length field, by its name in the standard.
        field: &'static str,
        /// Its value, in the field's own unit.
        value: usize,
        /// Least value that would do here.
        min: usize,
        /// Greatest value that would do here.
        max: usize,
    },
    /// A field holds a value this format does not have.
    Value {
        /// Which field, by its name in the standard.
        field: &'static str,
        /// What it holds.
        value: u64,
        /// What it may hold, in words.
        expected: &'static str,
    },
    /// A limit of this implementation was reached (hostile nesting, mostly).
    Limit {
        /// What there are too many of.
        what: &'static str,
        /// How many are allowed.
        max: usize,
    },
    /// The buffer given to an emitter is too small.
    Buffer {
        /// Octets needed.
        need: usize,
        /// Octets given.
        have: usize,
    },
}

impl Error {
    /// The octets end too early: the layer needs `need` from its start and has `have`.
    #[cold]
    #[must_use]
    pub const fn short(layer: Layer, need: usize, have: usize) -> Self {
        Self {
            layer,
            offset: 0,
            kind: ErrorKind::Short { need, have },
        }
    }

    /// The length field `field` at `offset` is `value`, outside `min..=max`.
    #[cold]
    #[must_use]
    pub const fn length(
        layer: Layer,
        offset: usize,
        field: &'static str,
        value: usize,
        min: usize,
        max: usize,
    ) -> Self {
        Self {
            layer,
            offset,
            kind: ErrorKind::Length {
                field,
                value,
                min,
                max,
            },
        }
    }

    /// The field `field` at `offset` holds `value`, which the format does not have.
    #[cold]
    #[must_use]
    pub const fn value(
        layer: Layer,
        offset: usize,
        field: &'static str,
        value: u64,
        expected: &'static str,
    ) -> Self {
        Self {
            layer,
            offset,
            kind: ErrorKind::Value {
                field,
                value,
                expected,
            },
        }
    }

    /// More than `max` of `what`, at `offset`.
    #[cold]
    #[must_use]
    pub const fn limit(layer: Layer, offset: usize, what: &'static str, max: usize) -> Self {
        Self {
            layer,
            offset,
            kind: ErrorKind::Limit { what, max },
        }
    }

    /// An emitter was given `have` octets and needs `need`.
    #[cold]
    #[must_use]
    pub const fn buffer(layer: Layer, need: usize, have: usize) -> Self {
        Self {
            layer,
            offset: 0,
            kind: ErrorKind::Buffer { need, have },
        }
    }

    /// The same error seen from a caller in whose bytes the parsed part starts at `base`.
    #[must_use]
    pub const fn at(mut self, base: usize) -> Self {
        self.offset = self.offset.saturating_add(base);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at octet {}: ", self.layer, self.offset)?;
        match self.kind {
            ErrorKind::Short { need, have } => {
                write!(f, "needs {need} octets, {have} are there")
            }
            ErrorKind::Length {
                field,
                value,
                min,
                max,
            } if min == max => {
                write!(f, "{field} is {value}, must be {min}")
            }
            ErrorKind::Length {
                field,
                value,
                min,
                max,
            } if min < max => {
                write!(f, "{field} is {value}, allowed here {min} to {max}")
            }
            ErrorKind::Length {
                field, value, max, ..
            } => {
                write!(f, "{field} is {value}, but only {max} would fit")
            }
            ErrorKind::Value {
                field,
                value,
                expected,
            } => {
                write!(f, "{field} is {value} ({value:#x}), expected {expected}")
            }
            ErrorKind::Limit { what, max } => write!(f, "more than {max} {what}"),
            ErrorKind::Buffer { need, have } => {
                write!(f, "writing needs {need} octets, the buffer has {have}")
            }
        }
    }
}

impl core::error::Error for Error {}
