//! The plugin's package: for one minor version of Wireshark, from the Debian release that has it.

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::failure::Outcome;
use crate::matrix::release::RELEASES;
use crate::wireshark::PLUGIN_FILE;
use crate::{cargo, profile};

use super::deb::{Control, Package};
use super::origin::Origin;
use super::{binaries, elf, notices};

/// Returns the package's name for a Wireshark version.
pub(super) fn name((major, minor): (u32, u32)) -> String {
    format!("fcn-wireshark-{major}.{minor}")
}

const FIELDS: &str = "Provides: fcn-wireshark\nConflicts: fcn-wireshark\nReplaces: fcn-wireshark\nEnhances: wireshark, tshark\n";

const DESCRIPTION: &str = "RoCEv2 fast congestion notification in Wireshark
 Shows CNPs, Fast CNPs, notifications to proxy nodes and WAN FCNs in Wireshark
 and tshark: fields, expert infos, what each notification is about, statistics.
 It fits one minor version of Wireshark, and comes with a profile, fcn.";

/// Builds the plugin and packs it; returns the package's path.
pub(super) fn make(
    root: &Path,
    target: &Path,
    wireshark: (u32, u32),
    origin: &Origin,
    output: &Path,
) -> Outcome<PathBuf> {
    let (major, minor) = wireshark;
    let release = RELEASES
        .iter()
        .find(|release| release.wireshark == wireshark);
    let release = release.with_context(|| format!("no release of Debian has {major}.{minor}"))?;
    let (system, _) = release.ready(false)?;
    let target = target.join("wireshark").join(release.suite);
    fs_err::create_dir_all(&target)?;
    let library = binaries::plugin(root, &target, &system)?;

    let name = name(wireshark);
    let mut package = Package::new(&name, origin)?;
    let folder = format!("usr/lib/x86_64-linux-gnu/wireshark/plugins/{major}.{minor}/epan");
    package.add_file(&format!("{folder}/{PLUGIN_FILE}"), &library, 0o644)?;
    let files = fs_err::read_dir(root.join("dissector/profile").join(profile::NAME))?;
    for file in files.flatten() {
        let name = file.file_name();
        let path = format!(
            "usr/share/wireshark/profiles/{}/{}",
            profile::NAME,
            name.display()
        );
        package.add_file(&path, &file.path(), 0o644)?;
    }
    package.add(
        &format!("usr/share/doc/{name}/copyright"),
        include_bytes!("debian/copyright-plugin"),
        0o644,
    )?;
    let notices = notices::text(root, &[cargo::PLUGIN_PACKAGE])?;
    package.add_compressed(
        &format!("usr/share/doc/{name}/crates.gz"),
        notices.as_bytes(),
    )?;
    let control = Control {
        fields: FIELDS,
        depends: elf::depends(&library)?,
        description: DESCRIPTION,
    };
    package.finish(&control, output)
}
