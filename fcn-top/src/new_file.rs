//! Files that are written: never one that was there before.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// A new file.
///
/// # Errors
/// There is a file of that name already, or it cannot be made: what failed, on what, and what to do.
pub(crate) fn create(path: &Path) -> Result<File, String> {
    File::create_new(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => taken(path),
        _ => format!("{}: {error}", path.display()),
    })
}

/// Writes a new file.
///
/// # Errors
/// As [`create`], or it cannot be written.
pub(crate) fn write(path: &Path, octets: &[u8]) -> Result<(), String> {
    let written = create(path)?.write_all(octets);
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// What is said of a name that a file has already.
pub(crate) fn taken(path: &Path) -> String {
    format!(
        "{}: there is one already; choose another name",
        path.display()
    )
}
