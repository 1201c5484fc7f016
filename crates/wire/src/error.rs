//! Errors of parsing bytes as a format, or of writing a value in one.
//!
//! A broken *rule* in bytes that can still be read is a [`Finding`](crate::finding::Finding), not
//! an error.

use crate::layer::Layer;
use core::cmp::Ordering;

/// Result of a parser or emitter of this crate.
pub type Result<T> = core::result::Result<T, Error>;

/// Reason why bytes could not be read or a value not be written, with the layer and the offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{layer} at octet {offset}: {kind}")]
pub struct Error {
    /// The layer that could not be read.
    pub layer: Layer,
    /// Offset of the faulty field, in octets from the start of the caller's slice.
    pub offset: usize,
    /// Kind of error.
    pub kind: ErrorKind,
}

/// Kind of error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ErrorKind {
    /// The input ends before the format does.
    #[error("needs {need} octets, but has {have}")]
    Short {
        /// Octets that the layer needs, from its own start.
        need: usize,
        /// Octets available from its start.
        have: usize,
    },
    /// A length field contradicts its format or its surroundings.
    #[error("{field} is {value}, {}", allowed(*min, *max))]
    Length {
        /// Name of the length field in the standard.
        field: &'static str,
        /// Value of the field, in the field's own unit.
        value: usize,
        /// Smallest value allowed here.
        min: usize,
        /// Largest value allowed here.
        max: usize,
    },
    /// A field holds a value that the format does not define.
    #[error("{field} is {value} ({value:#x}), expected {expected}")]
    Value {
        /// Name of the field in the standard.
        field: &'static str,
        /// Value of the field.
        value: u64,
        /// Description of the allowed values.
        expected: &'static str,
    },
    /// A limit of this implementation was reached (mostly by hostile nesting).
    #[error("more than {max} {what}")]
    Limit {
        /// Kind of item that is too numerous.
        what: &'static str,
        /// Maximum number of items.
        max: usize,
    },
    /// The buffer given to an emitter is too small.
    #[error("writing needs {need} octets, but the buffer has {have}")]
    Buffer {
        /// Octets needed.
        need: usize,
        /// Octets available.
        have: usize,
    },
}

/// Describes the allowed lengths from `min` to `max`; if `min` exceeds `max`, the length that would
/// fit.
fn allowed(min: usize, max: usize) -> String {
    match min.cmp(&max) {
        Ordering::Equal => format!("must be {min}"),
        Ordering::Less => format!("must be {min} to {max}"),
        Ordering::Greater => format!("but at most {max} fits"),
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

    /// Creates an error for input that is too short: the layer needs `need` octets from its start
    /// and has `have`.
    #[cold]
    #[must_use]
    pub const fn short(layer: Layer, need: usize, have: usize) -> Self {
        Self::new(layer, 0, ErrorKind::Short { need, have })
    }

    /// Creates an error for the length field `field` at `offset`: its `value` is outside
    /// `min..=max`.
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

    /// Creates an error for the field `field` at `offset`: the format does not define `value`.
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

    /// Creates an error for more than `max` of `what`, at `offset`.
    #[cold]
    #[must_use]
    pub const fn limit(layer: Layer, offset: usize, what: &'static str, max: usize) -> Self {
        Self::new(layer, offset, ErrorKind::Limit { what, max })
    }

    /// Creates an error for an emitter that needs `need` octets and was given `have`.
    #[cold]
    #[must_use]
    pub const fn buffer(layer: Layer, need: usize, have: usize) -> Self {
        Self::new(layer, 0, ErrorKind::Buffer { need, have })
    }

    /// Returns the same error for a caller whose bytes contain the parsed part at `base`.
    #[must_use]
    pub const fn at(mut self, base: usize) -> Self {
        self.offset = self.offset.saturating_add(base);
        self
    }
}
