//! A file that appears completely or not at all: written under a temporary name, and renamed at the
//! end.

use fcn_link::temporary::TemporaryOutput;
use fcn_tool::failure::{Failure, Result};
use std::io::Write;
use std::path::Path;

/// A file that does not exist yet. If dropped before [`finish`](Self::finish), it leaves nothing
/// behind.
#[derive(Debug)]
pub struct Pending(TemporaryOutput);

impl Pending {
    /// Checks that `path` can be written before the work that produces its content.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(path: &Path) -> Result<Self> {
        let file = TemporaryOutput::create(path).map(Self);
        file.map_err(|error| Failure::io("write", path, &error))
    }

    /// Writes the file.
    ///
    /// # Errors
    /// The file cannot be written; nothing of it remains.
    pub fn finish(self, text: &[u8]) -> Result {
        let Self(mut file) = self;
        let name = file.name().to_owned();
        let result = file.write_all(text).and_then(|()| file.finish());
        result.map_err(|error| Failure::io("write", &name, &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn names(folder: &Path) -> Vec<std::ffi::OsString> {
        fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect()
    }

    #[test]
    fn file_appears_only_when_finished() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        drop(Pending::create(&path).unwrap());
        assert!(names(folder.path()).is_empty());
        fs::write(&path, "old").unwrap();
        let pending = Pending::create(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        pending.finish(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["a.json"]);
    }

    #[test]
    fn unwritable_path_is_reported_on_creation() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("no/such/a.json");
        assert!(
            Pending::create(&missing)
                .unwrap_err()
                .to_string()
                .contains("check that its folder exists")
        );
        assert!(
            Pending::create(folder.path())
                .unwrap_err()
                .to_string()
                .contains("specify a file in it")
        );
        assert!(names(folder.path()).is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn symbolic_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        Pending::create(&link).unwrap().finish(b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&target).unwrap(), b"new");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn full_device_is_a_failure_and_stays_a_device() {
        let full = Path::new("/dev/full");
        let failure = Pending::create(full).unwrap().finish(b"x").unwrap_err();
        assert!(failure.to_string().contains("/dev/full"));
        assert!(!fs::metadata(full).unwrap().is_file());
    }
}
