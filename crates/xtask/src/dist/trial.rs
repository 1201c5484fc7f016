//! Trial of the packages from a user's point of view: installed with apt in a fresh system, run,
//! and removed without leftovers.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use tempfile::TempDir;

use crate::failure::{Advice, Outcome};
use crate::matrix::release::RELEASES;
use crate::report::heading;
use crate::{apt, process};

/// Folder of the packages, as named inside the system.
const INSIDE: &str = "fcn-trial";

/// Tries the packages in fresh systems of Debian, one after another.
pub(super) fn in_fresh_systems(made: &[PathBuf]) -> Outcome {
    for release in RELEASES {
        heading(&format!("Try in a fresh {}", release.name));
        let system = fresh(release.suite)?;
        run(system.path(), made)?;
    }
    Ok(())
}

/// Returns a new system of a release, with only essential packages.
fn fresh(suite: &str) -> Outcome<TempDir> {
    let folder = tempfile::Builder::new().prefix("fcn-dist-").tempdir()?;
    let mut debootstrap = Command::new("debootstrap");
    debootstrap
        .arg("--variant=minbase")
        .arg(format!("--keyring={}", apt::KEYRING));
    debootstrap
        .arg(suite)
        .arg(folder.path())
        .arg(apt::mirror()?);
    process::stdout(&mut debootstrap).advise("run this as root")?;
    Ok(folder)
}

/// Installs, runs and removes the packages in the system in a folder.
pub(super) fn run(system: &Path, made: &[PathBuf]) -> Outcome {
    ensure!(
        process::is_root(),
        "installing packages needs root\n  what to do: run this as root"
    );
    let inside = system.join(INSIDE);
    fs_err::create_dir_all(&inside)?;
    for file in made {
        let name = file.file_name().context("a package has a name")?;
        fs_err::copy(file, inside.join(name))?;
    }
    fs_err::write(inside.join("trial.sh"), include_str!("trial.sh"))?;
    let mut command = Command::new("unshare");
    // Its mounts and processes end with it.
    command.args(["--mount", "--pid", "--fork", "--kill-child"]);
    command.arg(format!("--mount-proc={}", system.join("proc").display()));
    command
        .arg("chroot")
        .arg(system)
        .args(["/bin/sh", &format!("/{INSIDE}/trial.sh")]);
    command
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("LC_ALL", "C.UTF-8");
    let result = process::stdout(&mut command);
    fs_err::remove_dir_all(inside)?;
    for line in result?
        .lines()
        .filter_map(|line| line.strip_prefix("trial: "))
    {
        println!("  {line}");
    }
    Ok(())
}
