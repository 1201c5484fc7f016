//! `cargo xtask install-plugin`: builds the plugin for the installed Wireshark, and installs it
//! where Wireshark loads it for this user.
//! Not here: the build with cargo (`cargo.rs`).

use std::path::{Path, PathBuf};

use anyhow::bail;

use crate::failure::{Advice, Outcome};
use crate::system::System;
use crate::tshark::Tshark;
use crate::wireshark::{self, PLUGIN_FILE, PluginFolders, Version};
use crate::{captures, cargo, extcap, files, packages, process, profile};

/// Options of `cargo xtask install-plugin`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Also install the Wireshark profile `fcn`: columns, colours, filter buttons, I/O graphs
    #[arg(long)]
    pub profile: bool,
    /// Also install fcn-gen where Wireshark runs it: its scenarios then appear as interfaces
    #[arg(long)]
    pub extcap: bool,
    /// Remove it instead, and also the profile and fcn-gen from where they were installed
    #[arg(long, conflicts_with_all = ["profile", "extcap"])]
    pub uninstall: bool,
    /// Folder to install the plugin in, or to remove only the plugin from, instead of where
    /// Wireshark looks
    #[arg(long)]
    pub dir: Option<PathBuf>,
}

/// Installs or removes, and returns a message with the files and their locations.
///
/// # Errors
/// Installing or removing failed.
pub fn run(options: &Options) -> Outcome<String> {
    let folder = options.dir.as_deref();
    let lines = match (options.uninstall, folder) {
        (true, Some(_)) => vec![uninstall(folder)?],
        (true, None) => {
            let others = [profile::uninstall()?, extcap::uninstall()?];
            let others: Vec<String> = others.into_iter().flatten().collect();
            match uninstall(None) {
                Ok(plugin) => [vec![plugin], others].concat(),
                // If only the others are installed, the plugin was removed earlier.
                Err(_) if !others.is_empty() => others,
                Err(failure) => return Err(failure),
            }
        }
        (false, _) => {
            let mut lines = vec![install(folder)?];
            lines.extend(options.profile.then(profile::install).transpose()?);
            lines.extend(options.extcap.then(extcap::install).transpose()?);
            lines
        }
    };
    Ok(lines.join("\n"))
}

/// Checks that the plugin can be built for the installed Wireshark, and returns its version.
///
/// # Errors
/// Its headers have a different version.
fn check_version() -> Outcome<Version> {
    let version = wireshark::version(&System::HERE)?;
    wireshark::agree(version, wireshark::headers_version()?)?;
    if let Some(gui) = wireshark::program_version("wireshark")?
        && gui.minor() != version.minor()
    {
        println!(
            "      note: wireshark is {gui}, tshark {version}: the plugin will load into tshark only"
        );
    }
    Ok(version)
}

/// Builds and installs the plugin, in `folder` or where Wireshark looks, and returns a message with
/// its location.
///
/// # Errors
/// Anything missing, unsupported, not built, not written or not loaded.
pub fn install(folder: Option<&Path>) -> Outcome<String> {
    packages::ensure(packages::PLUGIN)?;
    let version = check_version()?;
    let untested = version.untested();
    if let Some(warning) = &untested {
        println!("      {warning}: it must build, and decode the samples as with these versions");
    }
    let library = cargo::build_plugin(true)?;
    // Tried before it replaces one that works.
    let tshark = Tshark::with_plugin(&library)?;
    if untested.is_some() {
        let count = captures::check_fields(&tshark)
            .advise("the plugin is not installed: with this Wireshark it would decode wrongly; use a tested version")?;
        println!("      {count} samples are decoded as committed");
    }
    drop(tshark);

    let root = process::is_root();
    let (own, other) = PluginFolders::for_system(&System::HERE)?.for_user(root);
    let folder = folder.map_or_else(|| own.clone(), Path::to_path_buf);
    let target = folder.join(PLUGIN_FILE);
    files::replace(&library, &target, 0o644)?;
    let todo = format!(
        "see tshark's message; this user must be able to read {}, and no plugin of that name may be in {}",
        target.display(),
        other.display()
    );
    let is = |other: &PathBuf| wireshark::same_file(&folder, other);
    match wireshark::check_loaded(PLUGIN_FILE, &target, &todo) {
        Ok(plugin) => Ok(format!(
            "Wireshark {version} loads {} {} from {}",
            plugin.file,
            plugin.version,
            plugin.path.display()
        )),
        Err(_) if ![&own, &other].into_iter().any(is) => Ok(format!(
            "wrote {}, which loads into Wireshark {version}; Wireshark does not search that folder",
            target.display()
        )),
        Err(failure) => Err(failure),
    }
}

/// Removes the plugin, from `folder` or from where Wireshark looks, and returns a message with its
/// location.
///
/// # Errors
/// There was none, or it could not be removed.
pub fn uninstall(folder: Option<&Path>) -> Outcome<String> {
    let root = process::is_root();
    let (own, other) = match folder {
        Some(folder) => (folder.to_path_buf(), None),
        None => {
            let (own, other) = PluginFolders::for_system(&System::HERE)?.for_user(root);
            (own, Some(other.join(PLUGIN_FILE)))
        }
    };
    let target = own.join(PLUGIN_FILE);
    if files::remove(&target)? {
        return Ok(format!("removed {}", target.display()));
    }
    let todo = match other.filter(|path| path.exists()) {
        Some(path) if root => format!(
            "nothing; root never loads {}: run this as its owner to remove it",
            path.display()
        ),
        Some(path) => format!("run this as root to remove {}", path.display()),
        None => "nothing, or name its folder with --dir".to_owned(),
    };
    let target = target.display();
    bail!("no plugin is installed: there is no {target}\n  what to do: {todo}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uninstalls_once() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs_err::write(folder.join(PLUGIN_FILE), "x").unwrap();
        assert!(uninstall(Some(folder)).unwrap().starts_with("removed "));
        let text = uninstall(Some(folder)).unwrap_err().to_string();
        assert!(
            text.starts_with("no plugin is installed: there is no "),
            "{text}"
        );
    }
}
