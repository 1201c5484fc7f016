//! Debian packages without installing them: fetched from the mirror that this machine's apt knows and unpacked into a
//! folder. apt works on a state of its own, in which nothing is installed, so it names every library too; this machine's
//! packages, sources and caches stay as they are, and no rights are needed.
//! Not here: packages that this machine itself is to have (`packages.rs`), and what is made of what was unpacked.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Outcome};
use crate::process;

/// The keys of Debian's archive, where Debian's packages put them.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Written last into an unpacked folder: without it the folder is half done.
const COMPLETE: &str = ".complete";

/// Whether packages were unpacked into a folder to the end.
#[must_use]
pub fn is_complete(folder: &Path) -> bool {
    folder.join(COMPLETE).is_file()
}

/// Unpacks packages into a folder, in place of what was there.
///
/// # Errors
/// A package or the folder is no good.
pub fn unpack(packages: &[PathBuf], folder: &Path) -> Outcome {
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(|e| Failure::io("remove", folder, &e))?;
    }
    std::fs::create_dir_all(folder).map_err(|e| Failure::io("make", folder, &e))?;
    for package in packages {
        process::stdout(
            Command::new("dpkg-deb")
                .arg("--extract")
                .arg(package)
                .arg(folder),
        )?;
    }
    let mark = folder.join(COMPLETE);
    std::fs::write(&mark, "").map_err(|e| Failure::io("write", &mark, &e))
}

/// apt with a state of its own, for one release.
pub struct Apt {
    state: PathBuf,
    options: Vec<OsString>,
}

impl Apt {
    /// Makes the state in a folder and reads the mirror's list of the packages of a release.
    ///
    /// # Errors
    /// There is no apt, it knows no Debian mirror, or that one does not answer.
    pub fn new(folder: &Path, release: &str) -> Outcome<Self> {
        for (program, package) in [("apt-get", "apt"), ("dpkg-deb", "dpkg")] {
            process::need(program, package)?;
        }
        let mirror = mirror()?;
        let state = folder.join("apt");
        if state.exists() {
            std::fs::remove_dir_all(&state).map_err(|e| Failure::io("remove", &state, &e))?;
        }
        for part in ["lists/partial", "archives/partial", "sources"] {
            let part = state.join(part);
            std::fs::create_dir_all(&part).map_err(|e| Failure::io("make", &part, &e))?;
        }
        for (name, text) in [
            ("status", String::new()),
            (
                "sources/one.list",
                source(&mirror, release, Path::new(KEYRING)),
            ),
        ] {
            let file = state.join(name);
            std::fs::write(&file, text).map_err(|e| Failure::io("write", &file, &e))?;
        }
        let apt = Self {
            options: options(&state),
            state,
        };
        process::stdout(apt.get().arg("update"))?;
        Ok(apt)
    }

    fn get(&self) -> Command {
        let mut command = Command::new("apt-get");
        command
            .args(["--quiet", "--yes"])
            .args(&self.options)
            .env("DEBIAN_FRONTEND", "noninteractive");
        command
    }

    /// Fetches these packages and all that they depend on.
    ///
    /// # Errors
    /// The mirror does not give them.
    pub fn with_dependencies(&self, packages: &[&str]) -> Outcome<Vec<PathBuf>> {
        let words = ["install", "--download-only", "--no-install-recommends"];
        process::stdout(self.get().args(words).args(packages))?;
        packages_in(&self.state.join("archives"))
    }

    /// Removes the state and the downloads; what was unpacked stays.
    ///
    /// # Errors
    /// They cannot be removed.
    pub fn remove(self) -> Outcome {
        std::fs::remove_dir_all(&self.state).map_err(|e| Failure::io("remove", &self.state, &e))
    }
}

/// What keeps apt off this machine's state.
fn options(state: &Path) -> Vec<OsString> {
    let at = |name: &str, path: &str| {
        let mut word = OsString::from(format!("{name}="));
        word.push(state.join(path));
        word
    };
    let plain = |word: &str| OsString::from(word);
    let mut words = vec![
        at("Dir::State", ""),
        at("Dir::State::lists", "lists"),
        at("Dir::State::status", "status"),
        at("Dir::Cache", ""),
        at("Dir::Cache::archives", "archives"),
        at("Dir::Etc::sourceparts", "sources"),
        plain("Dir::Etc::sourcelist=/dev/null"),
        plain("Dir::Etc::preferences=/dev/null"),
        plain("Dir::Etc::preferencesparts=/dev/null"),
        plain("APT::Architecture=amd64"),
        plain("APT::Architectures=amd64"),
        plain("APT::Default-Release="),
        // A mirror may be a snapshot.
        plain("Acquire::Check-Valid-Until=no"),
        plain("Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false"),
        plain("Acquire::Languages=none"),
        // A broken mirror must not keep anybody waiting for ever.
        plain("Acquire::http::Timeout=30"),
        plain("Acquire::Retries=2"),
    ];
    if process::is_root() {
        // The user that apt becomes for downloading may not look into the target folder.
        words.push(plain("APT::Sandbox::User=root"));
    }
    words
        .into_iter()
        .flat_map(|word| [plain("-o"), word])
        .collect()
}

/// The line that names the mirror to apt.
fn source(mirror: &str, release: &str, keyring: &Path) -> String {
    let keys = if keyring.is_file() {
        format!(" signed-by={}", keyring.display())
    } else {
        String::new()
    };
    format!("deb [arch=amd64{keys}] {mirror} {release} main\n")
}

/// The Debian mirror that this machine's apt is configured with.
fn mirror() -> Outcome<String> {
    let rows = process::stdout(Command::new("apt-get").args([
        "indextargets",
        "--format",
        "$(LABEL) $(REPO_URI)",
        "Created-By: Packages",
    ]))?;
    mirror_among(&rows).ok_or_else(|| {
        Failure::new("apt's sources name no Debian mirror, or its lists were never read")
            .todo("run `apt-get update`, on Debian")
    })
}

/// The first row of the archive itself; security updates have another label and no release of that name.
fn mirror_among(rows: &str) -> Option<String> {
    rows.lines()
        .find_map(|row| row.strip_prefix("Debian "))
        .map(|uri| uri.trim().to_owned())
        .filter(|uri| !uri.is_empty())
}

/// The packages in a folder.
fn packages_in(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let mut files: Vec<_> = folder
        .read_dir()
        .map_err(|e| Failure::io("read", folder, &e))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "deb"))
        .collect();
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_archive_not_its_security_updates() {
        let rows = "Debian-Security http://mirror.example/debian-security/\nGoogle https://other.example/\n\
                    Debian http://mirror.example/debian/\n";
        let mirror = mirror_among(rows);
        assert_eq!(mirror.as_deref(), Some("http://mirror.example/debian/"));
        assert_eq!(mirror_among("Ubuntu http://mirror.example/ubuntu/\n"), None);
    }

    #[test]
    fn names_the_keys_only_where_they_are() {
        let line = source(
            "http://mirror.example/debian/",
            "sid",
            Path::new("/no/such/keys"),
        );
        assert_eq!(
            line,
            "deb [arch=amd64] http://mirror.example/debian/ sid main\n"
        );
        assert!(
            source("http://m.example/", "sid", Path::new("/proc/self/status"))
                .contains("signed-by=/")
        );
    }

    #[test]
    fn every_folder_of_apt_is_its_own() {
        let words = options(Path::new("/own/apt"));
        for word in words.iter().map(|w| w.to_string_lossy()) {
            if word.starts_with("Dir::") {
                let (_, path) = word.split_once('=').unwrap();
                assert!(
                    path.starts_with("/own/apt") || path == "/dev/null",
                    "{word}"
                );
            }
        }
    }
}
