//! Where a capture's octets go: into a temporary file that gets its name at the end, or into a writer.

use super::error::{Error, ErrorKind};
use crate::temporary::temporary_in;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Where octets go.
pub(super) enum Sink<'w> {
    /// A file in the folder of `name`, removed when dropped, renamed to `name` when kept.
    Temporary { file: NamedTempFile, name: PathBuf },
    /// A pipe or device that has the name already: renaming over it would take it away.
    Special { file: File, name: PathBuf },
    /// A writer that the caller gave.
    Writer(Box<dyn Write + Send + 'w>),
}

impl Sink<'_> {
    pub(super) fn create(path: &Path) -> Result<Self, Error> {
        let fail = |e| Error::new(Some(path), ErrorKind::Create(e));
        if path.file_name().is_none() {
            return Err(Error::new(Some(path), ErrorKind::NoFileName));
        }
        // What is there decides; a name that cannot be asked about cannot be given either, and is better refused now
        // than after the last packet.
        let name = match fs::metadata(path) {
            Ok(there) if there.is_dir() => return Err(fail(io::ErrorKind::IsADirectory.into())),
            // A link stays a link: the file behind it is replaced.
            Ok(there) if there.is_file() => fs::canonicalize(path).map_err(fail)?,
            Ok(_) => {
                let file = File::options().write(true).open(path).map_err(fail)?;
                let name = path.to_path_buf();
                return Ok(Self::Special { file, name });
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => path.to_path_buf(),
            Err(e) => return Err(fail(e)),
        };
        let folder = match name.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let file = temporary_in(folder).map_err(fail)?;
        Ok(Self::Temporary { file, name })
    }

    /// The name that the file has or will have.
    pub(super) fn name(&self) -> Option<&Path> {
        match self {
            Self::Temporary { name, .. } | Self::Special { name, .. } => Some(name),
            Self::Writer(_) => None,
        }
    }

    pub(super) fn write_all(&mut self, octets: &[u8]) -> io::Result<()> {
        match self {
            Self::Temporary { file, .. } => file.as_file_mut().write_all(octets),
            Self::Special { file, .. } => file.write_all(octets),
            Self::Writer(writer) => writer.write_all(octets),
        }
    }

    /// Hands over what was written: a file gets its name, a writer is flushed.
    pub(super) fn keep(self) -> Result<(), Error> {
        match self {
            Self::Temporary { file, name } => match file.persist(&name) {
                Ok(_) => Ok(()),
                // The temporary file comes back in the error, and is removed with it.
                Err(e) => Err(Error::new(Some(&name), ErrorKind::Rename(e.error))),
            },
            Self::Special { .. } => Ok(()),
            Self::Writer(mut writer) => writer
                .flush()
                .map_err(|e| Error::new(None, ErrorKind::Write(e))),
        }
    }
}
