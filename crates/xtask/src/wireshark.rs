//! The Wireshark of a system, usually the installed one: its version, that of its headers, the
//! folders where it looks for plugins, and the plugins that it loaded.
//! Not here: running it on captures (`tshark.rs`).

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::failure::Outcome;
use crate::process;
use crate::system::System;

/// Minor versions that the plugin is tested with.
pub const TESTED: &[(u32, u32)] = &include!("../../../dissector/versions.rs");

/// Parses a minor version that the plugin is tested with, such as "4.4".
///
/// # Errors
/// It is not such a version.
pub fn tested_minor(text: &str) -> Result<(u32, u32), String> {
    let read = || {
        let (major, minor) = text.split_once('.')?;
        let version = (major.parse().ok()?, minor.parse().ok()?);
        TESTED.contains(&version).then_some(version)
    };
    read().ok_or_else(|| format!("the plugin is tested with {}", tested_names()))
}

fn tested_names() -> String {
    let name = |(major, minor): &(u32, u32)| format!("{major}.{minor}");
    TESTED.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// File name of the plugin in Wireshark's plugin folder.
pub const PLUGIN_FILE: &str = "fcn.so";

/// A version of Wireshark. Plugins fit one minor version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    /// 4 in 4.0.17.
    pub major: u32,
    /// 0 in 4.0.17.
    pub minor: u32,
    /// 17 in 4.0.17.
    pub micro: u32,
}

impl Version {
    /// Finds the first version number in a text: "TShark (Wireshark) 4.0.17 (Git v4.0.17 …).",
    /// "4.6.0rc1".
    #[must_use]
    pub fn find(text: &str) -> Option<Self> {
        let number = |part: &str| {
            // The rest after the digits marks a pre-release, or ends a sentence.
            let digits = part.split(|c: char| !c.is_ascii_digit()).next()?;
            digits.parse().ok()
        };
        text.split_whitespace().find_map(|word| {
            let mut parts = word.splitn(3, '.');
            Some(Self {
                major: parts.next()?.parse().ok()?,
                minor: parts.next()?.parse().ok()?,
                micro: number(parts.next()?)?,
            })
        })
    }

    /// (4, 0) in 4.0.17: plugins that are built for one version load into all others with the same
    /// value.
    #[must_use]
    pub const fn minor(self) -> (u32, u32) {
        (self.major, self.minor)
    }

    /// Returns a warning if the plugin was never tested with this version.
    #[must_use]
    pub fn untested(self) -> Option<String> {
        (!TESTED.contains(&self.minor())).then(|| {
            let tested = tested_names();
            format!("Wireshark {self} is installed; the plugin was tested only with {tested}")
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.micro)
    }
}

/// Returns the version of a Wireshark program, or `None` if it is not installed.
///
/// # Errors
/// It is installed, but does not report its version.
pub fn program_version(program: &str) -> Outcome<Option<Version>> {
    let found = process::which(program);
    found
        .map(|_| version_of(&mut Command::new(program)))
        .transpose()
}

fn version_of(program: &mut Command) -> Outcome<Version> {
    let text = process::stdout(program.arg("--version"))?;
    Version::find(&text).with_context(|| {
        let (line, first) = (process::command_line(program), text.lines().next());
        let first = first.unwrap_or_default();
        format!("`{line}` names no version: {first:?}; check which is first in PATH")
    })
}

/// Returns the version of a system's tshark.
///
/// # Errors
/// There is none, or it does not report its version.
pub fn version(system: &System) -> Outcome<Version> {
    if system.is_here() {
        process::need("tshark", "tshark")?;
    }
    version_of(system.command("tshark", false).env("PATH", system.path()))
}

/// Returns the version of the installed headers.
///
/// # Errors
/// pkg-config does not find them.
pub fn headers_version() -> Outcome<Version> {
    let text = process::stdout(Command::new("pkg-config").args(["--modversion", "wireshark"]))?;
    Version::find(&text).with_context(|| format!("`pkg-config --modversion wireshark`: {text:?}"))
}

/// Refuses headers with a different minor version than the program: the plugin would not load.
///
/// # Errors
/// They differ.
pub fn agree(program: Version, headers: Version) -> Outcome {
    let ((major, minor), (other_major, other_minor)) = (program.minor(), headers.minor());
    ensure!(
        program.minor() == headers.minor(),
        "tshark is {program}, but the headers that pkg-config finds are of {headers}\n  what to do: set PKG_CONFIG_PATH \
         to the folder with wireshark.pc of {major}.{minor}, or PATH to the tshark of {other_major}.{other_minor}"
    );
    Ok(())
}

/// Returns a `tshark -G …` command, without the environment variables that change its plugin
/// folders.
fn report(system: &System, name: &str) -> Command {
    let mut command = system.command("tshark", false);
    command
        .args(["-G", name])
        .env("PATH", system.path())
        .env_remove("WIRESHARK_PLUGIN_DIR")
        .env_remove("WIRESHARK_EXTCAP_DIR")
        .env_remove("WIRESHARK_RUN_FROM_BUILD_DIRECTORY");
    command
}

/// Returns the folder that the installed `tshark -G folders` lists under the first of these names
/// that it has.
///
/// # Errors
/// tshark failed.
pub fn folder(names: &[&str]) -> Outcome<Option<PathBuf>> {
    let text = process::stdout(&mut report(&System::HERE, "folders"))?;
    Ok(names.iter().find_map(|name| named(&text, name)))
}

fn named(text: &str, name: &str) -> Option<PathBuf> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| *key == name)
        .map(|(_, path)| PathBuf::from(path.trim()))
}

/// Folders where this Wireshark looks for plugins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginFolders {
    /// For everyone.
    pub global: PathBuf,
    /// For this user; never read for root.
    pub personal: PathBuf,
}

impl PluginFolders {
    /// Asks a system's tshark; the paths are those within that system.
    ///
    /// # Errors
    /// tshark failed, or did not name the folders.
    pub fn for_system(system: &System) -> Outcome<Self> {
        if system.is_here() {
            process::need("tshark", "tshark")?;
        }
        let text = process::stdout(&mut report(system, "folders"))?;
        Self::read(&text).context("`tshark -G folders` names no plugin folders")
    }

    fn read(text: &str) -> Option<Self> {
        Some(Self {
            global: named(text, "Global Plugins")?,
            personal: named(text, "Personal Plugins")?,
        })
    }

    /// Returns the folder where dissectors must be for this user, and the other one.
    #[must_use]
    pub fn for_user(&self, root: bool) -> (PathBuf, PathBuf) {
        let (global, personal) = (self.global.join("epan"), self.personal.join("epan"));
        match root {
            true => (global, personal),
            false => (personal, global),
        }
    }
}

/// A plugin that Wireshark loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plugin {
    /// File name.
    pub file: String,
    /// Version of the plugin itself.
    pub version: String,
    /// Path that it was loaded from.
    pub path: PathBuf,
}

/// Checks that the installed Wireshark loads the file at `target` for this user, and returns the
/// plugin.
///
/// # Errors
/// It loads another, or none; `todo` is the advice for that.
pub fn check_loaded(file: &str, target: &Path, todo: &str) -> Outcome<Plugin> {
    let path = target.display();
    match listed(&mut report(&System::HERE, "plugins"), file)? {
        (Some(plugin), _) if same_file(&plugin.path, target) => Ok(plugin),
        (Some(plugin), _) => {
            let other = plugin.path.display();
            bail!("wrote {path}, but Wireshark loads {other} instead\n  what to do: remove {other}")
        }
        (None, complaint) => {
            let complaint = process::tail(&complaint, 8);
            bail!(
                "wrote {path}, but `tshark -G plugins` does not list it{complaint}\n  what to do: {todo}"
            )
        }
    }
}

/// Returns the plugin, or capture program, with this file name from the list printed by this
/// `tshark -G plugins` command, and the command's error output.
///
/// # Errors
/// tshark failed.
pub fn listed(command: &mut Command, file: &str) -> Outcome<(Option<Plugin>, String)> {
    let output = process::output(command)?;
    if !output.status.success() {
        return Err(process::failed(command, &output));
    }
    let listed = read_plugins(&String::from_utf8_lossy(&output.stdout));
    let complaints = String::from_utf8_lossy(&output.stderr);
    let complaints = complaints.lines();
    let complaints = complaints.filter(|line| !line.starts_with("Running as user"));
    let complaints = complaints.collect::<Vec<_>>().join("\n");
    Ok((listed.into_iter().find(|p| p.file == file), complaints))
}

/// Parses `tshark -G plugins`: name, version, kind, path, separated by tabs.
fn read_plugins(text: &str) -> Vec<Plugin> {
    let row = |line: &str| {
        let mut columns = line.split('\t').map(str::trim);
        Some(Plugin {
            file: columns.next()?.to_owned(),
            version: columns.next()?.to_owned(),
            path: columns.nth(1)?.into(),
        })
    };
    text.lines().filter_map(row).collect()
}

/// Returns true if two paths lead to the same file.
#[must_use]
pub fn same_file(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V4_0_17: Version = Version {
        major: 4,
        minor: 0,
        micro: 17,
    };

    #[test]
    fn reads_versions() {
        let version = |text| Version::find(text).map(|v| v.to_string());
        assert_eq!(
            version("TShark (Wireshark) 4.0.17 (Git v4.0.17 packaged as 4.0.17-0+deb12u3).")
                .as_deref(),
            Some("4.0.17")
        );
        assert_eq!(
            version("TShark (Wireshark) 4.6.0.").as_deref(),
            Some("4.6.0")
        );
        assert_eq!(
            version("Wireshark 4.4.2 (Git commit 0123).").as_deref(),
            Some("4.4.2")
        );
        assert_eq!(
            version("TShark (Wireshark) 4.6.0rc1 (v4.6.0rc1).").as_deref(),
            Some("4.6.0")
        );
        assert_eq!(version("4.0.17\n").as_deref(), Some("4.0.17"));
        assert_eq!(version("TShark, no number"), None);
        assert_eq!(version("4.0"), None);
        assert_eq!(version(""), None);
    }

    #[test]
    fn untested_versions_cause_a_warning() {
        assert_eq!(V4_0_17.untested(), None);
        let other = Version {
            minor: 2,
            ..V4_0_17
        };
        let text = "Wireshark 4.2.17 is installed; the plugin was tested only with 4.0, 4.4, 4.6";
        assert_eq!(other.untested().as_deref(), Some(text));
    }

    #[test]
    fn headers_must_be_of_the_same_minor_version() {
        assert!(
            agree(
                V4_0_17,
                Version {
                    micro: 3,
                    ..V4_0_17
                }
            )
            .is_ok()
        );
        let text = agree(
            V4_0_17,
            Version {
                minor: 4,
                ..V4_0_17
            },
        )
        .unwrap_err()
        .to_string();
        assert!(
            text.contains("tshark is 4.0.17") && text.contains("of 4.4.17"),
            "{text}"
        );
        assert!(
            agree(
                V4_0_17,
                Version {
                    major: 3,
                    ..V4_0_17
                }
            )
            .is_err()
        );
    }

    #[test]
    fn reads_folders() {
        let text = "Temp:                \t/tmp\nPersonal Plugins:    \t/home/a b/.local/lib/wireshark/plugins/4.0\n\
                    Global Plugins:      \t/usr/lib/wireshark/plugins/4.0\n\
                    Global Lua Plugins:  \t/usr/lib/wireshark/plugins\n";
        let folders = PluginFolders::read(text).unwrap();
        assert_eq!(
            folders.for_user(true).0,
            Path::new("/usr/lib/wireshark/plugins/4.0/epan")
        );
        assert_eq!(
            folders.for_user(false).0,
            Path::new("/home/a b/.local/lib/wireshark/plugins/4.0/epan")
        );
        assert_eq!(folders.for_user(false).1, folders.for_user(true).0);
        assert_eq!(PluginFolders::read("Temp: /tmp\n"), None);
    }

    #[test]
    fn reads_the_list_of_plugins() {
        let text = "fcn.so          \t0.1.0\tdissector\t/p/4.0/epan/fcn.so\nciscodump\t1.0.0\textcap\t/x\nbroken\n";
        let plugins = read_plugins(text);
        assert_eq!(plugins.len(), 2);
        assert_eq!(
            plugins[0],
            Plugin {
                file: "fcn.so".to_owned(),
                version: "0.1.0".to_owned(),
                path: "/p/4.0/epan/fcn.so".into()
            }
        );
    }
}
