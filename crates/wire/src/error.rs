//! Errors of reading bytes as a format, or writing a value as one.
//!
//! A broken *rule* in bytes that can still be read is a [`Finding`](crate::finding::Finding), not an error.

use crate::layer::Layer;
use core::cmp::Ordering;

/// Result of a parser or emitter of this crate.
pub type Result<T> = core::result::Result<T, Error>;

/// Why bytes could not be read (or a value not be written), in which layer, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{layer} at octet {offset}: {kind}")]
pub struct Error {
    /// The layer that could not be read.
    pub layer: Layer,
    /// Octets from the start of what the caller passed in to the field at fault.
    pub offset: usize,
    /// What is wrong there.
    pub kind: ErrorKind,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ErrorKind {
    /// The octets end before the format does.
    #[error("needs {need} octets, {have} are there")]
    Short {
        /// Octets that the layer needs from its own start.
        need: usize,
        /// Octets that there are from its start.
        have: usize,
    },
    /// A length field contradicts its format or its surroundings.
    #[error("{field} is {value}, {}", allowed(*min, *max))]
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
    #[error("{field} is {value} ({value:#x}), expected {expected}")]
    Value {
        /// Which field, by its name in the standard.
        field: &'static str,
        /// What it holds.
        value: u64,
        /// What it may hold, in words.
        expected: &'static str,
    },
    /// A limit of this implementation was reached (hostile nesting, mostly).
    #[error("more than {max} {what}")]
    Limit {
        /// What there are too many of.
        what: &'static str,
        /// How many are allowed.
        max: usize,
    },
    /// The buffer given to an emitter is too small.
    #[error("writing needs {need} octets, the buffer has {have}")]
    Buffer {
        /// Octets needed.
        need: usize,
        /// Octets given.
        have: usize,
    },
}

/// What a length may be between `min` and `max`; where they contradict each other, what there is room for.
fn allowed(min: usize, max: usize) -> String {
    match min.cmp(&max) {
        Ordering::Equal => format!("must be {min}"),
        Ordering::Less => format!("allowed here {min} to {max}"),
        Ordering::Greater => format!("but only {max} would fit"),
    }
}

impl Error {
    #[cold]
    const fn new(layer: Layer, offset: usize, kind: ErrorKind) -> Self {
        Self {
            layer,
            offset,
            kind,
        }
    }

    /// The octets end too early: the layer needs `need` from its start and has `have`.
    #[cold]
    #[must_use]
    pub const fn short(layer: Layer, need: usize, have: usize) -> Self {
        Self::new(layer, 0, ErrorKind::Short { need, have })
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
        let kind = ErrorKind::Length {
            field,
            value,
            min,
            max,
        };
        Self::new(layer, offset, kind)
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
        let kind = ErrorKind::Value {
            field,
            value,
            expected,
        };
        Self::new(layer, offset, kind)
    }

    /// More than `max` of `what`, at `offset`.
    #[cold]
    #[must_use]
    pub const fn limit(layer: Layer, offset: usize, what: &'static str, max: usize) -> Self {
        Self::new(layer, offset, ErrorKind::Limit { what, max })
    }

    /// An emitter was given `have` octets and needs `need`.
    #[cold]
    #[must_use]
    pub const fn buffer(layer: Layer, need: usize, have: usize) -> Self {
        Self::new(layer, 0, ErrorKind::Buffer { need, have })
    }

    /// The same error seen from a caller in whose bytes the parsed part starts at `base`.
    #[must_use]
    pub const fn at(mut self, base: usize) -> Self {
        self.offset = self.offset.saturating_add(base);
        self
    }
}
