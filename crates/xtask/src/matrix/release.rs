//! Debian's releases, each with its Wireshark, unpacked below the target folder and reused by later runs.
//! Nothing is installed and no script of a package is run: tshark and its headers work as they are unpacked.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::apt::{self, Apt};
use crate::cargo;
use crate::failure::{Failure, Outcome};
use crate::system::System;
use crate::wireshark::{self, Version};

/// A release of Debian and the Wireshark in it.
#[derive(Debug)]
pub(super) struct Release {
    /// What its archive calls it.
    pub suite: &'static str,
    /// What people call it.
    pub name: &'static str,
    /// The minor version of its Wireshark.
    pub wireshark: (u32, u32),
}

/// One for each Wireshark that the plugin is written for.
pub(super) const RELEASES: [Release; 3] = [
    Release {
        suite: "bookworm",
        name: "Debian 12",
        wireshark: (4, 0),
    },
    Release {
        suite: "trixie",
        name: "Debian 13",
        wireshark: (4, 4),
    },
    Release {
        suite: "sid",
        name: "Debian unstable",
        wireshark: (4, 6),
    },
];

/// tshark, and what the plugin is built with.
const PACKAGES: [&str; 3] = ["tshark", "libwireshark-dev", "libglib2.0-dev"];

/// Folders that are links into `usr` on an installed system.
const MERGED: [&str; 4] = ["bin", "sbin", "lib", "lib64"];

impl Release {
    /// The folder with the release, and its Wireshark's version. Unpacked now if it was not yet, unless nothing is to be
    /// fetched.
    ///
    /// # Errors
    /// It cannot be had, its programs do not run here, or it has another Wireshark by now.
    pub(super) fn ready(&self, no_install: bool) -> Outcome<(PathBuf, Version)> {
        if std::env::consts::ARCH != "x86_64" {
            return Err(Failure::new(format!(
                "packages are fetched for x86_64, and this machine is {}",
                std::env::consts::ARCH
            )));
        }
        let folder = cargo::target_folder(&format!("wireshark/{}", self.suite))?;
        let root = folder.join("root");
        {
            // Two runs at a time would unpack into the same folder.
            let lock = folder.join("lock");
            let _held = File::create(&lock)
                .and_then(|file| file.lock().map(|()| file))
                .map_err(|e| Failure::io("lock", &lock, &e))?;
            if !apt::is_complete(&root) {
                if no_install {
                    return Err(Failure::new("not unpacked, and nothing is to be fetched"));
                }
                let apt = Apt::new(&folder, self.suite)?;
                apt::unpack(&apt.with_dependencies(&PACKAGES)?, &root)?;
                apt.remove()?;
            }
            finish(&root)?;
        }
        let version = wireshark::version_on(&System::in_folder(&root)).map_err(|failure| {
            failure.todo(
                "run this as root, or where users may make namespaces; if it is the release that is broken: cargo clean",
            )
        })?;
        if (version.major, version.minor) != self.wireshark {
            return Err(Failure::new(format!(
                "{} has Wireshark {version} by now",
                self.name
            )));
        }
        Ok((root, version))
    }
}

/// What an installed system has and packages do not bring.
fn finish(root: &Path) -> Outcome {
    for name in MERGED {
        let (link, target) = (root.join(name), root.join("usr").join(name));
        if !link.exists() && target.is_dir() {
            std::os::unix::fs::symlink(Path::new("usr").join(name), &link)
                .map_err(|e| Failure::io("link", &link, &e))?;
        }
    }
    // Wireshark starts other programs with it as their input; one that is empty does as well, and takes no rights to make.
    let (dev, null) = (root.join("dev"), root.join("dev/null"));
    std::fs::create_dir_all(&dev).map_err(|e| Failure::io("make", &dev, &e))?;
    let tmp = root.join("tmp");
    std::fs::create_dir_all(&tmp).map_err(|e| Failure::io("make", &tmp, &e))?;
    if !null.exists() {
        std::fs::write(&null, []).map_err(|e| Failure::io("make", &null, &e))?;
    }
    for (path, mode) in [(null, 0o666), (tmp, 0o1777)] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))
            .map_err(|e| Failure::io("open to everybody", &path, &e))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_supported_wireshark_has_a_release() {
        let versions: Vec<_> = RELEASES.iter().map(|release| release.wireshark).collect();
        assert_eq!(versions, wireshark::SUPPORTED);
    }
}
