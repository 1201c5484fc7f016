//! Installed files: replacing them atomically, and removing them. Not here: which files, and where.

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::failure::Outcome;

/// Copies a file into place atomically: a Wireshark that starts meanwhile loads the old one or the
/// new one.
///
/// # Errors
/// It cannot be written; the old file is still in place.
pub fn replace(file: &Path, target: &Path, mode: u32) -> Outcome {
    let folder = target.parent().unwrap_or(Path::new("."));
    fs_err::create_dir_all(folder)?;
    // The name does not end in .so, which Wireshark would load, and is not one that it would
    // execute.
    let fresh = tempfile::Builder::new()
        .prefix(".fcn-")
        .tempfile_in(folder)?;
    fs_err::copy(file, fresh.path())?;
    fs_err::set_permissions(fresh.path(), PermissionsExt::from_mode(mode))?;
    fresh.persist(target).map_err(|e| e.error)?;
    Ok(())
}

/// Removes a file, and returns true if there was one.
///
/// # Errors
/// It could not be removed.
pub fn remove(file: &Path) -> Outcome<bool> {
    match fs_err::remove_file(file) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacing_leaves_no_other_files() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("lib.so");
        let target = folder.path().join("deep/epan/fcn.so");
        for content in ["one", "two"] {
            fs_err::write(&library, content).unwrap();
            replace(&library, &target, 0o644).unwrap();
            assert_eq!(fs_err::read_to_string(&target).unwrap(), content);
        }
        let mode = target.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644);
        assert_eq!(target.parent().unwrap().read_dir().unwrap().count(), 1);
        assert!(replace(&folder.path().join("none"), &target, 0o644).is_err());
        assert_eq!(fs_err::read_to_string(&target).unwrap(), "two");
        assert_eq!(target.parent().unwrap().read_dir().unwrap().count(), 1);
        assert!(remove(&target).unwrap());
        assert!(!remove(&target).unwrap());
    }
}
