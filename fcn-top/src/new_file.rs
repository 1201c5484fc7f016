//! Creates files without ever overwriting an existing one.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Creates a new file.
///
/// # Errors
///
/// The file exists already, or cannot be created. The text says what failed, on what, and what to
/// do.
pub(crate) fn create(path: &Path) -> Result<File, String> {
    File::create_new(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => taken(path),
        _ => format!("{}: {error}", path.display()),
    })
}

/// Writes a new file.
///
/// # Errors
///
/// Same as [`create`], or it cannot be written.
pub(crate) fn write(path: &Path, octets: &[u8]) -> Result<(), String> {
    let written = create(path)?.write_all(octets);
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// Error text for a file name that is already taken.
pub(crate) fn taken(path: &Path) -> String {
    format!("{}: already exists; choose another name", path.display())
}
