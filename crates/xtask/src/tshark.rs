//! Runs tshark on captures with the plugin of a build, or with none, independently of what is
//! installed and of the user's settings.
//! Not here: the installed plugin (`install_plugin.rs`).
//!
//! As root, Wireshark silently ignores `WIRESHARK_PLUGIN_DIR` and the personal folder. So root runs
//! it as another user, from a folder which that user can read. The Wireshark may belong to another
//! system (`system.rs`), which has access only to its own files: then the folder is one of those.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, bail};
use fs_err::os::unix::fs::symlink;

use crate::failure::Outcome;
use crate::system::{self, PLUGIN, PLUGINS, SYSTEM, System};
use crate::wireshark::{self, PLUGIN_FILE, Plugin, PluginFolders, Version};
use crate::{cargo, process};

/// An isolated tshark: plugins, settings, locale and time zone do not depend on the user.
#[derive(Debug)]
pub struct Tshark {
    system: System,
    /// Folder of its Wireshark's own plugins.
    global: PathBuf,
    folder: TempDir,
    /// True if files have to be copied for it to read them.
    copies: bool,
}

impl Tshark {
    /// Returns stock tshark with the plugins that came with it, and without ours, installed or not:
    /// this machine's, or that of the system that tests use.
    ///
    /// # Errors
    /// tshark is not installed, or a temporary folder could not be created.
    pub fn stock() -> Outcome<Self> {
        Self::new(System::of_tests())
    }

    fn new(system: System) -> Outcome<Self> {
        let global = match system::plugins_of_tests() {
            Some(folder) => folder,
            None => PluginFolders::for_system(&system)?.global,
        };
        let root = process::is_root();
        let folder = match system.is_here() {
            true => TempDir::new(root)?,
            false => TempDir::within(&system.outside(Path::new("/tmp")))?,
        };
        let this = Self {
            copies: root || !system.is_here(),
            system,
            global,
            folder,
        };
        for kind in ["epan", "codecs", "wiretap"] {
            let to = this.plugins(kind)?;
            let Ok(entries) = this.system.outside(&this.global.join(kind)).read_dir() else {
                continue;
            };
            let others = entries.flatten().filter(|e| e.file_name() != PLUGIN_FILE);
            for entry in others {
                symlink(
                    this.system.inside(&entry.path()),
                    to.join(entry.file_name()),
                )?;
            }
        }
        this.folder.subfolder(Path::new("home"))?;
        Ok(this)
    }

    /// Returns tshark with this build of our plugin.
    ///
    /// # Errors
    /// As [`Tshark::stock`]; or tshark does not load the library, with its error output.
    pub fn with_plugin(library: &Path) -> Outcome<Self> {
        let was_tried = system::plugins_of_tests().is_some()
            && system::plugin_of_tests().is_some_and(|tried| tried == library);
        Self::loading(System::of_tests(), library, !was_tried)
    }

    /// Checks that this machine's tshark, or that of the system in a folder, loads the plugin;
    /// returns the environment that tells tests about both. Tests start tshark many times, and so
    /// need not repeat this check.
    ///
    /// # Errors
    /// As [`Tshark::with_plugin`].
    pub fn tried(folder: Option<&Path>, library: &Path) -> Outcome<Vec<(&'static str, PathBuf)>> {
        let system = folder.map_or(System::HERE, System::in_folder);
        let global = Self::loading(system, library, true)?.global;
        let plugin = [(PLUGIN, library.to_owned()), (PLUGINS, global)];
        let system = folder.map(|folder| (SYSTEM, folder.to_owned()));
        Ok(system.into_iter().chain(plugin).collect())
    }

    fn loading(system: System, library: &Path, try_it: bool) -> Outcome<Self> {
        let this = Self::new(system)?;
        let to = this.plugins("epan")?.join(PLUGIN_FILE);
        copy_readable(library, &to)?;
        if !try_it {
            return Ok(this);
        }
        let (listed, complaints) = this.plugin()?;
        let is_it = |p: &Plugin| wireshark::same_file(&this.system.outside(&p.path), &to);
        if !listed.is_some_and(|plugin| is_it(&plugin)) {
            bail!(
                "tshark does not load {}{}\n  what to do: see its message; an undefined symbol means a build for another \
                 version, \"failed to map\" a temporary folder mounted noexec (set TMPDIR)",
                library.display(),
                process::tail(&complaints, 8)
            );
        }
        Ok(this)
    }

    /// Returns tshark with the plugin to be tested: the one that tests were given, or this
    /// source's, built now, as for a release if `release`.
    ///
    /// # Errors
    /// As [`Tshark::with_plugin`]; or the plugin was not built.
    pub fn with_this_plugin(release: bool) -> Outcome<Self> {
        match system::plugin_of_tests() {
            Some(library) => Self::with_plugin(&library),
            None => Self::with_plugin(&cargo::build_plugin(release)?),
        }
    }

    /// Returns our plugin as this tshark lists it, and tshark's error output.
    ///
    /// # Errors
    /// tshark failed.
    pub fn plugin(&self) -> Outcome<(Option<Plugin>, String)> {
        wireshark::listed(self.command().args(["-G", "plugins"]), PLUGIN_FILE)
    }

    /// Returns the lines that this tshark prints for these arguments and `stock` does not.
    ///
    /// # Errors
    /// tshark could not be started.
    pub fn adds(&self, stock: &Self, arguments: &[&str]) -> Outcome<Vec<String>> {
        let answer = |tshark: &Self| {
            let output = process::output(tshark.command().args(arguments))?;
            // Some lists are printed on standard error.
            let text = [output.stdout, output.stderr].concat();
            Outcome::Ok(String::from_utf8_lossy(&text).into_owned())
        };
        let (own, stock) = (answer(self)?, answer(stock)?);
        let stock: BTreeSet<&str> = stock.lines().collect();
        let own = own.lines().filter(|line| !stock.contains(line));
        Ok(own.map(str::to_owned).collect())
    }

    /// Returns the folder of its plugins of this kind: Wireshark appends its version, so the folder
    /// has the same name as the global one.
    fn plugins(&self, kind: &str) -> Outcome<PathBuf> {
        let version = self.global.file_name().unwrap_or_default();
        self.folder
            .subfolder(&Path::new("plugins").join(version).join(kind))
    }

    /// Adds a profile to its settings.
    ///
    /// # Errors
    /// The profile's files could not be copied.
    pub fn add_profile(&self, source: &Path, name: &str) -> Outcome {
        let profiles = Path::new("home/.config/wireshark/profiles");
        let to = self.folder.subfolder(&profiles.join(name))?;
        for entry in fs_err::read_dir(source)?.flatten() {
            copy_readable(&entry.path(), &to.join(entry.file_name()))?;
        }
        Ok(())
    }

    /// Creates a folder with only this program, and returns its path for this tshark: for
    /// `WIRESHARK_EXTCAP_DIR`.
    ///
    /// # Errors
    /// The program could not be copied.
    pub fn extcap_folder(&self, program: &Path) -> Outcome<PathBuf> {
        let folder = self.folder.subfolder(Path::new("extcap"))?;
        let copy = folder.join(program.file_name().unwrap_or_default());
        copy_readable(program, &copy)?;
        permit(&copy, 0o755)?;
        Ok(self.system.inside(&folder))
    }

    /// Returns a tshark command in its own environment. Files to read go through
    /// [`Tshark::readable`].
    #[must_use]
    pub fn command(&self) -> Command {
        self.program("tshark")
    }

    /// Returns a command for another program of the same Wireshark (sharkd), in the same
    /// environment.
    #[must_use]
    pub fn program(&self, name: &str) -> Command {
        self.in_its_environment(self.system.command(name, true))
    }

    /// Returns a tshark command that runs under another program of its system, which gets tshark as
    /// its last argument.
    #[must_use]
    pub fn command_under(&self, program: &[&str]) -> Command {
        let name = program.first().unwrap_or(&"env");
        let mut command = self.system.command(name, true);
        command.args(program.iter().skip(1)).arg("tshark");
        self.in_its_environment(command)
    }

    /// Returns a folder that is deleted with this tshark. tshark can read files in it, by the path
    /// that [`Tshark::inside`] returns.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn scratch(&self) -> Outcome<PathBuf> {
        self.folder.subfolder(Path::new("scratch"))
    }

    /// Returns the path of a file of this machine within its system.
    #[must_use]
    pub fn inside(&self, path: &Path) -> PathBuf {
        self.system.inside(path)
    }

    fn in_its_environment(&self, mut command: Command) -> Command {
        let folder = self.system.inside(self.folder.path());
        command
            .env_clear()
            .env("PATH", self.system.path())
            .env("HOME", folder.join("home"))
            .env("LC_ALL", "C.UTF-8")
            .env("TZ", "UTC")
            .env("WIRESHARK_PLUGIN_DIR", folder.join("plugins"))
            .current_dir(self.folder.path());
        command
    }

    /// Returns the version of this tshark.
    ///
    /// # Errors
    /// tshark does not report it.
    pub fn version(&self) -> Outcome<Version> {
        wireshark::version(&self.system)
    }

    /// Returns a path under which this tshark can read a file: the file's own, or that of a copy
    /// that exists as long as `self`.
    ///
    /// # Errors
    /// The file does not exist, or could not be copied.
    pub fn readable(&self, file: &Path) -> Outcome<PathBuf> {
        self.placed(file).map(|file| self.system.inside(&file))
    }

    /// Returns this machine's path of the file itself, or of its copy.
    fn placed(&self, file: &Path) -> Outcome<PathBuf> {
        let file = fs_err::canonicalize(file)?;
        if !self.copies {
            return Ok(file);
        }
        let folder = self.folder.subfolder(Path::new("read"))?;
        // Numbered, because two folders may have files with the same name.
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let copy = folder.join(format!("{number}-{name}"));
        copy_readable(&file, &copy)?;
        Ok(copy)
    }

    /// Runs tshark on a capture, with further arguments.
    ///
    /// # Errors
    /// tshark could not be started, or the capture could not be read. A bad exit status is in the
    /// returned value: tshark has one for a truncated capture, after decoding what is there.
    pub fn run(&self, capture: &Path, arguments: &[&str]) -> Outcome<Output> {
        let copy = self.placed(capture)?;
        let named = self.system.inside(&copy);
        let output = process::output(self.command().arg("-r").arg(named).args(arguments));
        if self.copies {
            // Large captures would accumulate; a leftover one is harmless.
            let _ = std::fs::remove_file(&copy);
        }
        output
    }

    /// Decodes a capture, and returns tshark's standard output.
    ///
    /// # Errors
    /// As [`Tshark::run`]; or tshark exited unsuccessfully, or reported a bug in a dissector.
    pub fn decode(&self, capture: &Path, arguments: &[&str]) -> Outcome<String> {
        let output = self.run(capture, arguments)?;
        let complaints = String::from_utf8_lossy(&output.stderr);
        let in_dissector = ["issector bug", "** ("]
            .iter()
            .any(|it| complaints.contains(it));
        if !output.status.success() || in_dissector {
            let (arguments, capture) = (arguments.join(" "), capture.display());
            let (status, complaints) = (output.status, process::tail(&complaints, 8));
            bail!("tshark {arguments} on {capture}: {status}{complaints}");
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

fn copy_readable(from: &Path, to: &Path) -> Outcome {
    fs_err::copy(from, to)?;
    permit(to, 0o644)
}

fn permit(path: &Path, mode: u32) -> Outcome {
    Ok(fs_err::set_permissions(
        path,
        PermissionsExt::from_mode(mode),
    )?)
}

/// A folder that is deleted when dropped, and that every user can read.
#[derive(Debug)]
pub struct TempDir(tempfile::TempDir);

impl TempDir {
    /// Creates a folder; with `root`, where other users can reach it.
    ///
    /// # Errors
    /// There is no suitable parent folder.
    pub fn new(root: bool) -> Outcome<Self> {
        let open = |f: &Path| f.metadata().is_ok_and(|m| m.permissions().mode() & 1 != 0);
        let reachable = |folder: &Path| folder.ancestors().all(open);
        let mut candidates = vec![std::env::temp_dir(), "/tmp".into(), "/var/tmp".into()];
        candidates.retain(|folder| folder.is_absolute() && (!root || reachable(folder)));
        let parent = candidates.first();
        Self::within(
            parent
                .context("no temporary folder is accessible to other users: set TMPDIR to one")?,
        )
    }

    /// Creates a folder in `parent`, accessible to the users who can reach `parent`.
    fn within(parent: &Path) -> Outcome<Self> {
        let made = tempfile::Builder::new()
            .prefix("fcn-xtask-")
            .tempdir_in(parent)?;
        permit(made.path(), 0o755)?;
        Ok(Self(made))
    }

    /// Returns its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns a subfolder, created if necessary, that every user can read, regardless of the
    /// umask.
    fn subfolder(&self, relative: &Path) -> Outcome<PathBuf> {
        let mut path = self.path().to_path_buf();
        for component in relative.components() {
            path.push(component);
            if !path.is_dir() {
                fs_err::create_dir(&path)?;
                permit(&path, 0o755)?;
            }
        }
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_temporary_folder_is_deleted() {
        let folder = TempDir::new(process::is_root()).unwrap();
        let path = folder.path().to_path_buf();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o755);
        let sub = folder.subfolder(Path::new("a/b")).unwrap();
        assert_eq!(folder.subfolder(Path::new("a/b")).unwrap(), sub);
        assert_eq!(sub, path.join("a/b"));
        assert_eq!(sub.metadata().unwrap().permissions().mode() & 0o777, 0o755);
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn stock_has_its_own_plugins_and_not_ours() {
        if process::which("tshark").is_none() {
            fcn_skip::skipped!("tshark is not installed");
            return;
        }
        let tshark = Tshark::stock().unwrap();
        let (ours, message) = tshark.plugin().unwrap();
        assert_eq!(ours, None, "{message}");
        let listed = process::stdout(tshark.command().args(["-G", "plugins"])).unwrap();
        let mut theirs: Vec<_> = PluginFolders::for_system(&System::HERE)
            .unwrap()
            .global
            .join("epan")
            .read_dir()
            .map(|entries| {
                entries
                    .flatten()
                    .map(|e| e.file_name().into_string().unwrap())
                    .collect()
            })
            .unwrap_or_default();
        theirs.retain(|name| name != PLUGIN_FILE && name.ends_with(".so"));
        for name in theirs {
            assert!(
                listed.contains(&format!("/epan/{name}\n")),
                "{name} is not in\n{listed}"
            );
        }
    }

    #[test]
    fn reads_a_capture_that_only_its_owner_can_read() {
        if process::which("tshark").is_none() {
            fcn_skip::skipped!("tshark is not installed");
            return;
        }
        let folder = TempDir::new(process::is_root()).unwrap();
        permit(folder.path(), 0o700).unwrap();
        let capture = folder.path().join("one.pcap");
        // A capture of Ethernet frames, nanosecond stamps, with one frame of 14 octets.
        let mut bytes = vec![
            0x4D, 0x3C, 0xB2, 0xA1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0, 1, 0, 0,
            0,
        ];
        bytes.extend([0, 0, 0, 0, 0, 0, 0, 0, 14, 0, 0, 0, 14, 0, 0, 0]);
        bytes.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xB5]);
        std::fs::write(&capture, bytes).unwrap();
        permit(&capture, 0o600).unwrap();

        let tshark = Tshark::stock().unwrap();
        let fields = [
            "-T",
            "fields",
            "-e",
            "frame.number",
            "-e",
            "frame.time_relative",
            "-e",
            "eth.src",
        ];
        let text = tshark.decode(&capture, &fields).unwrap();
        assert_eq!(text, "1\t0.000000000\t02:00:00:00:00:02\n");
        assert!(tshark.decode(&capture, &["-Y", "no.such.field"]).is_err());
        assert!(
            tshark
                .decode(&folder.path().join("none.pcap"), &[])
                .is_err()
        );
    }

    #[test]
    fn files_that_are_not_plugins_are_refused() {
        if process::which("tshark").is_none() {
            fcn_skip::skipped!("tshark is not installed");
            return;
        }
        let folder = TempDir::new(process::is_root()).unwrap();
        let library = folder.path().join("x.so");
        std::fs::write(&library, "no library").unwrap();
        let text = Tshark::with_plugin(&library).unwrap_err().to_string();
        assert!(
            text.contains("tshark does not load") && text.contains("what to do"),
            "{text}"
        );
    }
}
