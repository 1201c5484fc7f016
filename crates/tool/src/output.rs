//! Files that a command writes: an existing file is only replaced on request. One rule for
//! captures, ground truths, pages, drawings and tables.

use crate::failure::{Failure, Result};
use clap::Args;
use std::path::Path;

/// Permission to replace existing files.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Replacing {
    /// Replace existing files
    #[arg(long)]
    pub force: bool,
}

impl Replacing {
    /// Checks, before any work is done, that none of these is an existing file that must be kept.
    /// Devices, pipes and `-`, which is standard output, contain nothing that could be lost.
    ///
    /// # Errors
    /// One exists.
    pub fn check<'p>(self, paths: impl IntoIterator<Item = Option<&'p Path>>) -> Result {
        let mut paths = paths.into_iter().flatten();
        let there = paths.find(|path| *path != "-" && path.is_file());
        match there.filter(|_| !self.force) {
            Some(path) => Err(Failure::usage("cannot write")
                .and(path.display().to_string())
                .and("the file exists")
                .and("choose another name, or use --force to replace it")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_there_stays_unless_forced() {
        // Cargo runs tests in the package's folder.
        let (there, new) = (Path::new("Cargo.toml"), Path::new("no-such-file"));
        let [gentle, forced] = [false, true].map(|force| Replacing { force });
        let failure = gentle.check([Some(new), Some(there)]).unwrap_err();
        assert_eq!(
            failure.to_string(),
            "cannot write: Cargo.toml: the file exists: choose another name, or use --force to replace it"
        );
        assert_eq!(failure.exit().code(), 2);
        forced.check([Some(there)]).unwrap();
        for harmless in [
            None,
            Some(new),
            Some(Path::new("-")),
            Some(Path::new("/dev/null")),
        ] {
            gentle.check([harmless]).unwrap();
        }
    }
}
