//! The commit that packages are made from, which determines their version, date and maintainer.

use std::path::Path;
use std::process::Command;

use anyhow::Context;

use crate::failure::Outcome;
use crate::process;

/// The version of the workspace, which is that of this crate.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    /// Version in Debian's order: a commit before the release is older than the release.
    pub version: String,
    /// Time of the commit in seconds since 1970: SOURCE_DATE_EPOCH.
    pub epoch: u64,
    /// The same in the format of Debian's changelogs.
    pub date: String,
    /// Committer: "Name <address>".
    pub maintainer: String,
    /// True if files differ from the commit.
    pub dirty: bool,
}

impl Origin {
    /// Returns the last commit in a folder.
    pub(super) fn of(root: &Path) -> Outcome<Self> {
        let git = |words: &[&str]| {
            let mut command = Command::new("git");
            let text = process::stdout(command.arg("-C").arg(root).args(words))?;
            Ok::<_, anyhow::Error>(text.trim().to_owned())
        };
        let log = git(&[
            "log",
            "-1",
            "--date=raw",
            "--format=%ct%n%cN <%cE>%n%h",
            "--abbrev=12",
        ])?;
        let mut lines = log.lines();
        let mut next = || {
            lines
                .next()
                .context("`git log` does not report the last commit")
        };
        let (epoch, maintainer, hash) = (next()?.parse()?, next()?.to_owned(), next()?.to_owned());
        let date = |format: &str| {
            let mut command = Command::new("date");
            command
                .env("LC_ALL", "C")
                .args(["--utc", &format!("--date=@{epoch}"), format]);
            Ok::<_, anyhow::Error>(process::stdout(&mut command)?.trim().to_owned())
        };
        let dirty = !git(&["status", "--porcelain"])?.is_empty();
        let tags = git(&["tag", "--points-at", "HEAD"])?;
        let released = tags.lines().any(|tag| tag == format!("v{VERSION}"));
        Ok(Self {
            version: version(released, &date("+%Y%m%d")?, &hash, dirty),
            date: date("+%a, %d %b %Y %H:%M:%S +0000")?,
            epoch,
            maintainer,
            dirty,
        })
    }
}

fn version(released: bool, day: &str, hash: &str, dirty: bool) -> String {
    let base = match released {
        true => VERSION.to_owned(),
        false => format!("{VERSION}~git{day}.{hash}"),
    };
    base + if dirty { "+changed" } else { "" }
}

/// Returns a file's SHA-256, in hexadecimal.
pub(super) fn sha256(file: &Path) -> Outcome<String> {
    let text = process::stdout(Command::new("sha256sum").arg(file))?;
    let sum = text.split_whitespace().next();
    Ok(sum.context("sha256sum printed nothing")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_before_the_release_is_older_and_a_changed_one_newer() {
        let release = version(true, "20260102", "abc", false);
        assert_eq!(release, VERSION);
        let before = version(false, "20260102", "abc", false);
        assert_eq!(before, format!("{VERSION}~git20260102.abc"));
        let changed = version(false, "20260102", "abc", true);
        assert_eq!(changed, format!("{before}+changed"));
        for (older, newer) in [
            (&before, &release),
            (&before, &changed),
            (&changed, &release),
        ] {
            let mut dpkg = Command::new("dpkg");
            match dpkg
                .args(["--compare-versions", older, "lt", newer])
                .status()
            {
                Ok(status) => assert!(status.success(), "{older} {newer}"),
                Err(_) => fcn_skip::skipped!("dpkg is not installed"),
            }
        }
    }
}
