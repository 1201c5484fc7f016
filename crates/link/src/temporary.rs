//! A file under a temporary name, in the folder of the name that it gets at the end: whoever is stopped or fails leaves
//! nothing under that name. Dropped, it is removed. Who is killed cannot remove it; the next one that writes into the
//! folder does.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};
use tempfile::{Builder, NamedTempFile};

/// What its name begins and ends with: short, so that any final name that is allowed leaves room for it.
const PREFIX: &str = ".capture-";
const SUFFIX: &str = ".partial";

/// A younger one may belong to someone who is about to lock it.
const YOUNG: Duration = Duration::from_secs(60);

/// Makes one, after removing what others left who were killed.
///
/// # Errors
/// The folder takes no files.
pub fn temporary_in(folder: &Path) -> io::Result<NamedTempFile> {
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
