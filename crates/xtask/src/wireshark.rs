//! The Wireshark of a system, mostly the one installed here: its version, that of its headers, where it looks for plugins, what it loaded.
//! Not here: running it on captures (`tshark.rs`).

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Outcome};
use crate::process;
use crate::system::System;

/// The minor versions the plugin builds for and was tried with.
pub const SUPPORTED: &[(u32, u32)] = &include!("../../../dissector/versions.rs");

/// Reads a minor version that the plugin builds for, "4.4".
///
/// # Errors
/// It is no such version.
pub fn supported_minor(text: &str) -> Result<(u32, u32), String> {
    let read = || {
        let (major, minor) = text.split_once('.')?;
        let version = (major.parse().ok()?, minor.parse().ok()?);
        SUPPORTED.contains(&version).then_some(version)
    };
    read().ok_or_else(|| format!("the plugin supports {}", supported_names()))
}

fn supported_names() -> String {
    let name = |(major, minor): &(u32, u32)| format!("{major}.{minor}");
    SUPPORTED.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// The plugin's file name in Wireshark's plugin folder.
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
    /// Reads the first version number of a text: "TShark (Wireshark) 4.0.17 (Git v4.0.17 …).", "4.6.0rc1".
    #[must_use]
    pub fn find(text: &str) -> Option<Self> {
        let number = |part: &str| {
            // What follows the digits marks a release before the release, or ends a sentence.
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

    /// Whether a plugin built for one loads into the other.
    #[must_use]
    pub fn same_minor(self, other: Self) -> bool {
        (self.major, self.minor) == (other.major, other.minor)
    }

    /// Refuses a version that the plugin does not build for.
    ///
    /// # Errors
    /// It is not in [`SUPPORTED`].
    pub fn supported(self) -> Outcome {
        if SUPPORTED.contains(&(self.major, self.minor)) {
            return Ok(());
        }
        Err(Failure::new(format!(
            "Wireshark {self} is installed; the plugin supports {}",
            supported_names()
        ))
        .todo(
            "install one of these with its headers (Debian 12 and 13: apt-get install tshark libwireshark-dev), \
             first in PATH and in PKG_CONFIG_PATH",
        ))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.micro)
    }
}

/// The version of a program of Wireshark's, `None` where it is not installed.
///
/// # Errors
/// It is there, and does not tell its version.
pub fn program_version(program: &str) -> Outcome<Option<Version>> {
    if process::which(program).is_none() {
        return Ok(None);
    }
    version_said(program, &mut Command::new(program)).map(Some)
}

fn version_said(program: &str, command: &mut Command) -> Outcome<Version> {
    let text = process::stdout(command.arg("--version"))?;
    Version::find(&text).ok_or_else(|| {
        let first = text.lines().next().unwrap_or_default();
        Failure::new(format!("`{program} --version` names no version: {first:?}"))
            .todo(format!("see which {program} stands first in PATH"))
    })
}

/// The version of a system's tshark.
///
/// # Errors
/// There is none, or it does not tell its version.
pub fn version_on(system: &System) -> Outcome<Version> {
    if system.is_here() {
        return version();
    }
    let mut command = system.command("tshark", false);
    version_said("tshark", command.env("PATH", system.path()))
}

/// The installed version of tshark.
///
/// # Errors
/// There is none.
pub fn version() -> Outcome<Version> {
    program_version("tshark")?.ok_or_else(|| {
        Failure::new("tshark is not installed")
            .todo("run `cargo xtask install-plugin`, or install tshark")
    })
}

/// The version of the installed headers.
///
/// # Errors
/// pkg-config does not find them.
pub fn headers_version() -> Outcome<Version> {
    let text = process::stdout(Command::new("pkg-config").args(["--modversion", "wireshark"]))?;
    let text = text.trim();
    Version::find(text)
        .ok_or_else(|| Failure::new(format!("`pkg-config --modversion wireshark` says {text:?}")))
}

/// Refuses headers of another minor version than the program: the plugin would not load.
///
/// # Errors
/// They differ.
pub fn agree(program: Version, headers: Version) -> Outcome {
    if program.same_minor(headers) {
        return Ok(());
    }
    Err(Failure::new(format!("tshark is {program}, but the headers that pkg-config finds are of {headers}")).todo(
        format!(
            "set PKG_CONFIG_PATH to the folder with wireshark.pc of {}.{}, or PATH to the tshark of {}.{}",
            program.major, program.minor, headers.major, headers.minor
        ),
    ))
}

/// `tshark -G …`, with nothing in the environment that moves its plugin folders.
fn ask(system: &System, report: &str) -> Command {
    let mut command = system.command("tshark", false);
    command
        .args(["-G", report])
        .env("PATH", system.path())
        .env_remove("WIRESHARK_PLUGIN_DIR")
        .env_remove("WIRESHARK_EXTCAP_DIR")
        .env_remove("WIRESHARK_RUN_FROM_BUILD_DIRECTORY");
    command
}

/// The folder that `tshark -G folders` names so, by the first of these names that it has.
///
/// # Errors
/// tshark failed.
pub fn folder(names: &[&str]) -> Outcome<Option<PathBuf>> {
    let text = process::stdout(&mut ask(&System::HERE, "folders"))?;
    Ok(names.iter().find_map(|name| named(&text, name)))
}

fn named(text: &str, name: &str) -> Option<PathBuf> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| *key == name)
        .map(|(_, path)| PathBuf::from(path.trim()))
}

/// Where this Wireshark looks for plugins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginFolders {
    /// For everyone.
    pub global: PathBuf,
    /// For this user; root's is never read.
    pub personal: PathBuf,
}

impl PluginFolders {
    /// Asks tshark.
    ///
    /// # Errors
    /// tshark failed, or did not name them.
    pub fn ask() -> Outcome<Self> {
        Self::ask_on(&System::HERE)
    }

    /// Asks a system's tshark; the folders are named as it names them.
    ///
    /// # Errors
    /// As [`PluginFolders::ask`].
    pub fn ask_on(system: &System) -> Outcome<Self> {
        let text = process::stdout(&mut ask(system, "folders"))?;
        Self::read(&text).ok_or_else(|| {
            Failure::new("`tshark -G folders` names no plugin folders")
                .todo("look at what it prints")
        })
    }

    fn read(text: &str) -> Option<Self> {
        Some(Self {
            global: named(text, "Global Plugins")?,
            personal: named(text, "Personal Plugins")?,
        })
    }

    /// Where dissectors must be for this user, and the other place.
    #[must_use]
    pub fn for_user(&self, root: bool) -> (PathBuf, PathBuf) {
        let (global, personal) = (self.global.join("epan"), self.personal.join("epan"));
        if root {
            (global, personal)
        } else {
            (personal, global)
        }
    }
}

/// A plugin that Wireshark loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plugin {
    /// The file's name.
    pub file: String,
    /// The plugin's own version.
    pub version: String,
    /// Where it was loaded from.
    pub path: PathBuf,
}

/// The plugin of that file name, or the program that captures, among those the installed Wireshark loads for this user, and
/// what tshark said on standard error.
///
/// # Errors
/// tshark failed.
fn loaded(file: &str) -> Outcome<(Option<Plugin>, String)> {
    listed(&mut ask(&System::HERE, "plugins"), file)
}

/// Checks that what was put at `target` is what the installed Wireshark loads for this user, and returns it.
///
/// # Errors
/// It loads another, or none; `todo` says what to do about that.
pub fn check_loaded(file: &str, target: &Path, todo: &str) -> Outcome<Plugin> {
    let written = format!("wrote {}, but", target.display());
    match loaded(file)? {
        (Some(plugin), _) if same_file(&plugin.path, target) => Ok(plugin),
        (Some(plugin), _) => {
            let other = plugin.path.display();
            let failure = Failure::new(format!("{written} Wireshark loads {other} instead"));
            Err(failure.todo(format!("remove {other}")))
        }
        (None, said) => {
            let said = process::tail(&said, 8);
            let failure = format!("{written} `tshark -G plugins` does not list it{said}");
            Err(Failure::new(failure).todo(todo))
        }
    }
}

/// The one of that file name in the list that this `tshark -G plugins` writes, and what it said on standard error.
///
/// # Errors
/// tshark failed.
pub fn listed(command: &mut Command, file: &str) -> Outcome<(Option<Plugin>, String)> {
    let output = process::output(command)?;
    if !output.status.success() {
        return Err(process::failed(command, &output));
    }
    let listed = read_plugins(&String::from_utf8_lossy(&output.stdout));
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said
        .lines()
        .filter(|line| !line.starts_with("Running as user"));
    let said = said.collect::<Vec<_>>().join("\n");
    Ok((listed.into_iter().find(|p| p.file == file), said))
}

/// Reads `tshark -G plugins`: name, version, kind, path, with tabs between.
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

/// Whether two paths lead to the same file.
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
        let of = |text| Version::find(text).map(|v| v.to_string());
        assert_eq!(
            of("TShark (Wireshark) 4.0.17 (Git v4.0.17 packaged as 4.0.17-0+deb12u3).").as_deref(),
            Some("4.0.17")
        );
        assert_eq!(of("TShark (Wireshark) 4.6.0.").as_deref(), Some("4.6.0"));
        assert_eq!(
            of("Wireshark 4.4.2 (Git commit 0123).").as_deref(),
            Some("4.4.2")
        );
        assert_eq!(
            of("TShark (Wireshark) 4.6.0rc1 (v4.6.0rc1).").as_deref(),
            Some("4.6.0")
        );
        assert_eq!(of("4.0.17\n").as_deref(), Some("4.0.17"));
        assert_eq!(of("TShark, no number"), None);
        assert_eq!(of("4.0"), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn says_what_is_supported() {
        assert_eq!(V4_0_17.supported(), Ok(()));
        let text = Version {
            major: 4,
            minor: 2,
            micro: 2,
        }
        .supported()
        .unwrap_err()
        .to_string();
        assert!(
            text.contains(
                "4.2.2 is installed; the plugin supports 4.0, 4.4, 4.6\n  what to do: install"
            ),
            "{text}"
        );
    }

    #[test]
    fn headers_must_be_of_the_same_minor_version() {
        assert_eq!(
            agree(
                V4_0_17,
                Version {
                    micro: 3,
                    ..V4_0_17
                }
            ),
            Ok(())
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
