//! The output of a capture: a file that is renamed to its final name at the end, or a writer.

use super::error::{Error, ErrorKind};
use crate::temporary::TemporaryOutput;
use std::io::{self, Write};
use std::path::Path;

/// The output.
pub(super) enum Sink<'w> {
    /// A file.
    File(TemporaryOutput),
    /// A writer supplied by the caller.
    Writer(Box<dyn Write + Send + 'w>),
}

impl Sink<'_> {
    pub(super) fn create(path: &Path) -> Result<Self, Error> {
        if path.file_name().is_none() {
            return Err(Error::new(Some(path), ErrorKind::NoFileName));
        }
        let file = TemporaryOutput::create(path);
        file.map(Self::File)
            .map_err(|e| Error::new(Some(path), ErrorKind::Create(e)))
    }

    /// Returns the current or future name of the file.
    pub(super) fn name(&self) -> Option<&Path> {
        match self {
            Self::File(file) => Some(file.name()),
            Self::Writer(_) => None,
        }
    }

    pub(super) fn write_all(&mut self, octets: &[u8]) -> io::Result<()> {
        match self {
            Self::File(file) => file.write_all(octets),
            Self::Writer(writer) => writer.write_all(octets),
        }
    }

    /// Completes the output: renames a file to its final name, flushes a writer.
    pub(super) fn keep(self) -> Result<(), Error> {
        match self {
            Self::File(file) => {
                let name = file.name().to_owned();
                file.finish()
                    .map_err(|e| Error::new(Some(&name), ErrorKind::Rename(e)))
            }
            Self::Writer(mut writer) => writer
                .flush()
                .map_err(|e| Error::new(None, ErrorKind::Write(e))),
        }
    }
}
