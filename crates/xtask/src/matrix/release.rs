//! Debian's releases, each with its Wireshark, unpacked below the target folder and reused by later
//! runs.
//! Nothing is installed and no package script is run: tshark and its headers work as unpacked.

use std::path::PathBuf;

use anyhow::ensure;

use crate::failure::{Advice, Outcome};
use crate::system::System;
use crate::wireshark::{self, Version};
use crate::{apt, cargo};

/// A release of Debian and the Wireshark in it.
#[derive(Debug)]
pub(crate) struct Release {
    /// Name in the archive.
    pub suite: &'static str,
    /// Common name.
    pub name: &'static str,
    /// Minor version of its Wireshark.
    pub wireshark: (u32, u32),
}

const fn release(suite: &'static str, name: &'static str, wireshark: (u32, u32)) -> Release {
    Release {
        suite,
        name,
        wireshark,
    }
}

/// One release for each Wireshark that the plugin is tested with.
pub(crate) const RELEASES: [Release; 3] = [
    release("bookworm", "Debian 12", (4, 0)),
    release("trixie", "Debian 13", (4, 4)),
    release("sid", "Debian unstable", (4, 6)),
];

/// tshark, and the packages needed to build the plugin.
const PACKAGES: [&str; 3] = ["tshark", "libwireshark-dev", "libglib2.0-dev"];

impl Release {
    /// Returns the folder with the release, and its Wireshark's version. It is unpacked first if
    /// necessary, unless `no_install` forbids fetching.
    ///
    /// # Errors
    /// It is not available, its programs do not run here, or it has a different Wireshark by now.
    pub(crate) fn ready(&self, no_install: bool) -> Outcome<(PathBuf, Version)> {
        ensure!(
            std::env::consts::ARCH == "x86_64",
            "packages are fetched for x86_64, which this machine is not"
        );
        let folder = cargo::target_folder(&format!("wireshark/{}", self.suite))?;
        ensure!(
            !no_install || apt::is_complete(&folder),
            "not unpacked, and fetching is disabled"
        );
        let root = apt::unpacked(&folder, self.suite, &PACKAGES)?;
        let version = wireshark::version(&System::in_folder(&root)).advise(
            "run this as root, or where users may create namespaces; if the release is broken: cargo clean",
        )?;
        let name = self.name;
        ensure!(
            version.minor() == self.wireshark,
            "{name} now has Wireshark {version}"
        );
        Ok((root, version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tested_wireshark_has_a_release() {
        let versions: Vec<_> = RELEASES.iter().map(|release| release.wireshark).collect();
        assert_eq!(versions, wireshark::TESTED);
    }
}
