//! Where there is no libzstd.

use std::io::{self, BufRead};

/// Decodes nothing.
///
/// # Errors
/// Always.
pub(crate) fn decoder<R: BufRead>(_: R) -> io::Result<io::Empty> {
    Err(io::Error::other(
        "not supported here, unpack it first: zstd -d",
    ))
}
