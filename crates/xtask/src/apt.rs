//! Debian packages without installation: fetched from the mirror in this machine's apt
//! configuration, and unpacked into a folder. apt works on a separate state, in which nothing is
//! installed, so it fetches every library as well; this machine's packages, sources and caches are
//! unchanged, and no privileges are needed.
//! Not here: packages to be installed on this machine (`packages.rs`), and the use of unpacked
//! packages.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::failure::{Advice, Outcome};
use crate::process;

/// Keys of Debian's archive, where Debian's packages install them.
pub(crate) const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// File that is written last into an unpacked folder: without it the folder is incomplete.
const COMPLETE: &str = ".complete";

/// Folders that are links into `usr` on an installed system.
const MERGED: [&str; 4] = ["bin", "sbin", "lib", "lib64"];

/// Returns the root of the unpacked packages in a folder.
#[must_use]
pub fn root(folder: &Path) -> PathBuf {
    folder.join("root")
}

/// Returns true if packages were unpacked there completely.
#[must_use]
pub fn is_complete(folder: &Path) -> bool {
    root(folder).join(COMPLETE).is_file()
}

/// Unpacks packages of a release and all their dependencies below a folder, unless an earlier run
/// has done so; returns the root of the unpacked packages.
///
/// # Errors
/// There is no apt, it has no Debian mirror, the mirror does not have the packages, or the folder
/// is unusable.
pub fn unpacked(folder: &Path, release: &str, packages: &[&str]) -> Outcome<PathBuf> {
    let root = root(folder);
    // Two concurrent runs would unpack into the same folder.
    let lock = fs_err::File::create(folder.join("lock"))?;
    lock.file().lock()?;
    if is_complete(folder) {
        return Ok(root);
    }
    if root.exists() {
        fs_err::remove_dir_all(&root)?;
    }
    fs_err::create_dir_all(&root)?;
    let state = folder.join("apt");
    for file in fetch(&state, release, packages)? {
        let mut extract = Command::new("dpkg-deb");
        process::stdout(extract.arg("--extract").arg(file).arg(&root))?;
    }
    finish(&root)?;
    fs_err::write(root.join(COMPLETE), "")?;
    fs_err::remove_dir_all(state)?;
    Ok(root)
}

/// Adds the parts of an installed system that packages do not contain.
fn finish(root: &Path) -> Outcome {
    for name in MERGED {
        if !root.join(name).exists() && root.join("usr").join(name).is_dir() {
            fs_err::os::unix::fs::symlink(Path::new("usr").join(name), root.join(name))?;
        }
    }
    // Wireshark starts other programs with it as their input; an empty file works as well, and
    // needs no privileges.
    let (null, tmp) = (root.join("dev/null"), root.join("tmp"));
    fs_err::create_dir_all(root.join("dev"))?;
    fs_err::create_dir_all(&tmp)?;
    fs_err::write(&null, [])?;
    fs_err::set_permissions(null, PermissionsExt::from_mode(0o666))?;
    fs_err::set_permissions(tmp, PermissionsExt::from_mode(0o1777))?;
    Ok(())
}

/// Fetches the packages of one release with a separate apt state, and returns their files.
fn fetch(state: &Path, release: &str, packages: &[&str]) -> Outcome<Vec<PathBuf>> {
    let binary = source_line("deb", &mirror()?, release, Path::new(KEYRING));
    let get = ready(state, &binary)?;
    let install = ["install", "--download-only", "--no-install-recommends"];
    get(&[&install, packages].concat())?;
    let archives = fs_err::read_dir(state.join("archives"))?.flatten();
    let mut files: Vec<PathBuf> = archives.map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "deb"));
    files.sort();
    Ok(files)
}

/// Fetches the archive of a package's original source into a folder; apt has verified it against
/// the release's signature.
///
/// # Errors
/// As of [`unpacked`].
pub fn source(folder: &Path, release: &str, package: &str) -> Outcome<PathBuf> {
    let sources = source_line("deb-src", &mirror()?, release, Path::new(KEYRING));
    let state = folder.join("apt");
    let get = ready(&state, &sources)?;
    get(&["source", "--download-only", package])?;
    let archives = fs_err::read_dir(state)?.flatten().map(|entry| entry.path());
    let original = archives.filter(|path| path.display().to_string().contains(".orig.tar."));
    let original = original.filter(|path| path.extension().is_none_or(|e| e != "asc"));
    original
        .last()
        .with_context(|| format!("apt fetched no source of {package}"))
}

/// Returns a function that runs apt-get with a separate state in a folder, with the lists of this
/// source already read. It writes into that folder.
fn ready(state: &Path, source: &str) -> Outcome<impl Fn(&[&str]) -> Outcome<String> + use<>> {
    for (program, package) in [("apt-get", "apt"), ("dpkg-deb", "dpkg")] {
        process::need(program, package)?;
    }
    if state.exists() {
        fs_err::remove_dir_all(state)?;
    }
    for part in ["lists/partial", "archives/partial", "sources"] {
        fs_err::create_dir_all(state.join(part))?;
    }
    fs_err::write(state.join("status"), "")?;
    fs_err::write(state.join("sources/one.list"), source)?;
    let state = state.to_owned();
    let get = move |words: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(["--quiet", "--yes"]).args(options(&state));
        command
            .env("DEBIAN_FRONTEND", "noninteractive")
            .current_dir(&state);
        process::stdout(command.args(words))
    };
    get(&["update"])?;
    Ok(get)
}

/// Options that isolate apt from this machine's state.
const OPTIONS: &str = "Dir::State=STATE Dir::State::lists=STATE/lists Dir::State::status=STATE/status Dir::Cache=STATE \
    Dir::Cache::archives=STATE/archives Dir::Etc::sourceparts=STATE/sources Dir::Etc::sourcelist=/dev/null \
    Dir::Etc::preferences=/dev/null Dir::Etc::preferencesparts=/dev/null APT::Architecture=amd64 \
    APT::Architectures=amd64 APT::Default-Release= Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false \
    Acquire::Languages=none";
/// Options for mirrors: one may be a snapshot, and a broken one must not block forever.
const PATIENT: &str = "Acquire::Check-Valid-Until=no Acquire::http::Timeout=30 Acquire::Retries=2";
/// The user that apt becomes for downloading may not have access to the target folder.
const AS_ROOT: &str = "APT::Sandbox::User=root";

fn options(state: &Path) -> Vec<String> {
    let as_root = process::is_root().then_some(AS_ROOT);
    let words = OPTIONS.split_whitespace().chain(PATIENT.split(' '));
    let words = words.chain(as_root);
    let state = state.to_string_lossy();
    words
        .flat_map(|word| ["-o".to_owned(), word.replace("STATE", &state)])
        .collect()
}

/// Returns the line that tells apt the mirror, for packages (`deb`) or their sources (`deb-src`).
fn source_line(kind: &str, mirror: &str, release: &str, keyring: &Path) -> String {
    let keys = match keyring.is_file() {
        true => format!(" signed-by={}", keyring.display()),
        false => String::new(),
    };
    format!("{kind} [arch=amd64{keys}] {mirror} {release} main\n")
}

/// Returns the Debian mirror in this machine's apt configuration.
pub(crate) fn mirror() -> Outcome<String> {
    let mut command = Command::new("apt-get");
    command.args(["indextargets", "--format", "$(LABEL) $(REPO_URI)"]);
    let rows = process::stdout(command.arg("Created-By: Packages"))?;
    mirror_among(&rows)
        .context("apt's sources contain no Debian mirror, or its lists were never fetched")
        .advise("run `apt-get update`, on Debian")
}

/// Returns the URI in the first row of the archive itself; security updates have another label and
/// no release with that name.
fn mirror_among(rows: &str) -> Option<String> {
    let uri = rows.lines().find_map(|row| row.strip_prefix("Debian "))?;
    (!uri.trim().is_empty()).then(|| uri.trim().to_owned())
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
    fn names_the_keys_only_if_present() {
        let line = source_line(
            "deb",
            "http://mirror.example/debian/",
            "sid",
            Path::new("/no/such/keys"),
        );
        assert_eq!(
            line,
            "deb [arch=amd64] http://mirror.example/debian/ sid main\n"
        );
        assert!(
            source_line(
                "deb",
                "http://m.example/",
                "sid",
                Path::new("/proc/self/status")
            )
            .contains("signed-by=/")
        );
    }

    #[test]
    fn apt_uses_only_its_own_folders() {
        let words = options(Path::new("/own/apt"));
        for word in words {
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
