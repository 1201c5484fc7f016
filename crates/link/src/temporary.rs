//! A file under a temporary name, in the folder of its final name, which it gets at the end: a
//! program that is stopped or fails leaves nothing under the final name. The file is removed when
//! dropped. A program that is killed cannot remove it; the next one that writes to the folder does.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tempfile::{Builder, NamedTempFile};

/// Prefix and suffix of temporary names: short, so that they fit in with any final name that is
/// allowed.
const PREFIX: &str = ".capture-";
const SUFFIX: &str = ".partial";

/// Minimum age of a file to be removed: a younger one may be about to be locked.
const YOUNG: Duration = Duration::from_secs(60);

/// A file being written. If dropped before it is [finished](Self::finish), it leaves nothing.
#[derive(Debug)]
pub struct TemporaryOutput {
    name: PathBuf,
    target: Target,
}

#[derive(Debug)]
enum Target {
    /// A file to be renamed.
    Temporary(NamedTempFile),
    /// A pipe or device that has the name already: renaming would replace it, and it cannot hold an
    /// incomplete file.
    Special(File),
}

impl TemporaryOutput {
    /// Creates a file with the future name `path`.
    ///
    /// # Errors
    /// The existing file decides: if it cannot be examined, it cannot be replaced either, and it is
    /// better to refuse now than after the work.
    pub fn create(path: &Path) -> io::Result<Self> {
        let name = match fs::metadata(path) {
            Ok(there) if there.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            // A link remains a link: its target is replaced.
            Ok(there) if there.is_file() => fs::canonicalize(path)?,
            Ok(_) => {
                let target = Target::Special(File::options().write(true).open(path)?);
                let name = path.to_owned();
                return Ok(Self { name, target });
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => path.to_owned(),
            Err(e) => return Err(e),
        };
        let target = Target::Temporary(temporary_in(folder_of(&name))?);
        Ok(Self { name, target })
    }

    /// Returns the current or future name of the file.
    #[must_use]
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// True if it is a pipe or device.
    #[must_use]
    pub const fn is_special(&self) -> bool {
        matches!(self.target, Target::Special(_))
    }

    /// Renames the file to its final name.
    ///
    /// # Errors
    /// Renaming fails; nothing is left.
    pub fn finish(self) -> io::Result<()> {
        match self.target {
            // The error contains the temporary file, and dropping it removes the file.
            Target::Temporary(file) => file.persist(&self.name).map(drop).map_err(|e| e.error),
            Target::Special(_) => Ok(()),
        }
    }
}

impl Write for TemporaryOutput {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        match &mut self.target {
            Target::Temporary(file) => file.as_file_mut().write(octets),
            Target::Special(file) => file.write(octets),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the folder of a path's last component.
#[must_use]
pub fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    folder.unwrap_or(Path::new("."))
}

/// Creates a file under a temporary name, after removing those of killed programs.
fn temporary_in(folder: &Path) -> io::Result<NamedTempFile> {
    let before = SystemTime::now().checked_sub(YOUNG);
    // If they can be neither found nor removed, the work continues.
    let _ = before.map(|before| remove_abandoned(folder, before));
    let mut builder = Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    // With the permissions of any new file, and an error that does not mention the temporary name;
    // tempfile's default differs in both.
    let file = builder.make_in(folder, |path| File::create_new(path))?;
    // Held until the file is closed, however its writer ends. On a file system without locks, no
    // file counts as abandoned.
    let _ = file.as_file().try_lock_shared();
    Ok(file)
}

/// Removes the temporary files in a folder that are not locked and were last written before
/// `before`.
fn remove_abandoned(folder: &Path, before: SystemTime) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !(name.starts_with(PREFIX) && name.ends_with(SUFFIX)) {
            continue;
        }
        let found = entry.metadata()?;
        if found.is_file()
            && found.modified()? < before
            && File::open(entry.path())?.try_lock().is_ok()
        {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_dead_writer_left_is_removed_and_a_living_ones_stays() {
        let folder = tempfile::tempdir().unwrap();
        let living = temporary_in(folder.path()).unwrap();
        let dead = folder.path().join(format!("{PREFIX}abc{SUFFIX}"));
        let another = folder.path().join("mine.partial");
        for path in [&dead, &another] {
            fs::write(path, "x").unwrap();
        }
        // They are too young.
        drop(temporary_in(folder.path()).unwrap());
        assert!(dead.exists());
        remove_abandoned(folder.path(), SystemTime::now() + YOUNG).unwrap();
        assert!(!dead.exists());
        assert!(living.path().exists() && another.exists());
        let path = living.path().to_owned();
        drop(living);
        assert!(!path.exists());
    }
}
