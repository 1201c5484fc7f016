//! A file under a temporary name, in the folder of the name that it gets at the end: whoever is stopped or fails leaves
//! nothing under that name. Dropped, it is removed. Who is killed cannot remove it; the next one that writes into the
//! folder does.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tempfile::{Builder, NamedTempFile};

/// What its name begins and ends with: short, so that any final name that is allowed leaves room for it.
const PREFIX: &str = ".capture-";
const SUFFIX: &str = ".partial";

/// A younger one may belong to someone who is about to lock it.
const YOUNG: Duration = Duration::from_secs(60);

/// A file that is written: dropped before it is [kept](Self::keep), it leaves nothing.
#[derive(Debug)]
pub struct Unfinished {
    name: PathBuf,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// To be renamed.
    Temporary(NamedTempFile),
    /// A pipe or device that has the name already: renaming over it would take it away, and it keeps nothing to be halved.
    Special(File),
}

impl Unfinished {
    /// One that is to have the name `path`.
    ///
    /// # Errors
    /// What is there decides: a name that cannot be asked about cannot be given either, and is better refused now than after the
    /// work.
    pub fn create(path: &Path) -> io::Result<Self> {
        let name = match fs::metadata(path) {
            Ok(there) if there.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            // A link stays a link: the file behind it is replaced.
            Ok(there) if there.is_file() => fs::canonicalize(path)?,
            Ok(_) => {
                let place = Place::Special(File::options().write(true).open(path)?);
                let name = path.to_owned();
                return Ok(Self { name, place });
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => path.to_owned(),
            Err(e) => return Err(e),
        };
        let place = Place::Temporary(temporary_in(folder_of(&name))?);
        Ok(Self { name, place })
    }

    /// The name that the file has or will have.
    #[must_use]
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Whether it is a pipe or device.
    #[must_use]
    pub const fn is_special(&self) -> bool {
        matches!(self.place, Place::Special(_))
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// It cannot have it; nothing is left.
    pub fn keep(self) -> io::Result<()> {
        match self.place {
            // The temporary file comes back in the error, and is removed with it.
            Place::Temporary(file) => file.persist(&self.name).map(drop).map_err(|e| e.error),
            Place::Special(_) => Ok(()),
        }
    }
}

impl Write for Unfinished {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        match &mut self.place {
            Place::Temporary(file) => file.as_file_mut().write(octets),
            Place::Special(file) => file.write(octets),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The folder that a path's last name is in.
#[must_use]
pub fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    folder.unwrap_or(Path::new("."))
}

/// Makes a file under a temporary name, after removing what others left who were killed.
fn temporary_in(folder: &Path) -> io::Result<NamedTempFile> {
    let before = SystemTime::now().checked_sub(YOUNG);
    // That they can be neither found nor removed keeps nobody from work.
    let _ = before.map(|before| remove_abandoned(folder, before));
    let mut builder = Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    // With the permissions of any new file, and an error that does not name this one: tempfile would have it otherwise.
    let file = builder.make_in(folder, |path| File::create_new(path))?;
    // Held until the file is closed, however its writer ends. Where a file system knows no locks, none are taken for dead.
    let _ = file.as_file().try_lock_shared();
    Ok(file)
}

/// Removes the temporary files in a folder that nobody holds and nobody wrote to since a moment.
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
        // They are young.
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
