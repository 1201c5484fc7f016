//! The system whose Wireshark is run: this machine, or a Debian release that was unpacked into a
//! folder, which its programs then use as the root of the file system.
//! Not here: unpacking it (`matrix.rs`), and tshark's arguments (`tshark.rs`).

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process;

/// Variable with the folder of the system whose Wireshark the tests run; this machine's if it is
/// not set.
pub const SYSTEM: &str = "FCN_WIRESHARK";

/// Variable with the plugin that was built for that Wireshark.
pub const PLUGIN: &str = "FCN_WIRESHARK_PLUGIN";

/// Variable with the folder of that Wireshark's own plugins, from a run in which it loaded the
/// plugin.
pub const PLUGINS: &str = "FCN_WIRESHARK_PLUGINS";

/// ID of the user and the group `nobody` on every Linux.
pub const NOBODY: u32 = 65534;

/// Search path for programs on every Debian.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// A system whose programs are run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct System {
    /// Folder of the system; `None` is this machine.
    folder: Option<PathBuf>,
}

impl System {
    /// This machine.
    pub const HERE: Self = Self { folder: None };

    /// Returns the system in a folder.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        Self {
            folder: Some(folder.to_path_buf()),
        }
    }

    /// Returns the one named by [`SYSTEM`], or this machine.
    #[must_use]
    pub fn of_tests() -> Self {
        Self {
            folder: std::env::var_os(SYSTEM).map(PathBuf::from),
        }
    }

    /// Returns true if it is this machine.
    #[must_use]
    pub fn is_here(&self) -> bool {
        self.folder.is_none()
    }

    /// Returns a command for one of its programs, run by this user; if `not_by_root`, `nobody`
    /// replaces root.
    #[must_use]
    pub fn command(&self, program: &str, not_by_root: bool) -> Command {
        let root = process::is_root();
        let Some(folder) = &self.folder else {
            let mut command = Command::new(program);
            if root && not_by_root {
                // Also drops the supplementary groups.
                std::os::unix::process::CommandExt::uid(&mut command, NOBODY);
                std::os::unix::process::CommandExt::gid(&mut command, NOBODY);
            }
            return command;
        };
        let mut command;
        if root {
            command = Command::new("chroot");
            if not_by_root {
                command.arg(format!("--userspec={NOBODY}:{NOBODY}"));
                command.arg("--groups=");
            }
            command.arg(folder);
        } else {
            // Changing the root of the file system needs root, or a user namespace.
            command = Command::new("unshare");
            command.args(["--user", "--map-current-user"]);
            command.arg(format!("--root={}", folder.display()));
        }
        command.arg(program);
        command
    }

    /// Returns the `PATH` for [`System::command`].
    #[must_use]
    pub fn path(&self) -> std::ffi::OsString {
        match &self.folder {
            None => std::env::var_os("PATH").unwrap_or_default(),
            Some(_) => PATH.into(),
        }
    }

    /// Returns this machine's path of a file that has the path `inside` within the system.
    #[must_use]
    pub fn outside(&self, inside: &Path) -> PathBuf {
        match &self.folder {
            None => inside.to_path_buf(),
            Some(folder) => folder.join(inside.strip_prefix("/").unwrap_or(inside)),
        }
    }

    /// Returns the path within the system of a file of this machine; files outside its folder are
    /// inaccessible to it.
    #[must_use]
    pub fn inside(&self, outside: &Path) -> PathBuf {
        let below = |folder: &PathBuf| outside.strip_prefix(folder).ok().map(Path::to_path_buf);
        match self.folder.as_ref().and_then(below) {
            None => outside.to_path_buf(),
            Some(path) => Path::new("/").join(path),
        }
    }
}

/// Returns the plugin that tests run instead of this build's, from [`PLUGIN`].
#[must_use]
pub fn plugin_of_tests() -> Option<PathBuf> {
    std::env::var_os(PLUGIN).map(PathBuf::from)
}

/// Returns the folder of its Wireshark's own plugins, from [`PLUGINS`]: a test need not query
/// tshark, nor check that it loads the plugin.
#[must_use]
pub fn plugins_of_tests() -> Option<PathBuf> {
    std::env::var_os(PLUGINS).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_go_in_and_out() {
        let other = System::in_folder(Path::new("/x/root"));
        for (outside, inside) in [("/x/root/tmp/a", "/tmp/a"), ("/x/root", "/")] {
            assert_eq!(other.inside(Path::new(outside)), Path::new(inside));
            assert_eq!(other.outside(Path::new(inside)), Path::new(outside));
        }
        let path = Path::new("/tmp/a");
        assert_eq!(other.inside(path), path);
        assert_eq!(System::HERE.inside(path), path);
        assert_eq!(System::HERE.outside(path), path);
    }

    #[test]
    fn another_system_is_entered_first() {
        let other = System::in_folder(Path::new("/x"));
        let line = process::command_line(&other.command("tshark", true));
        if process::is_root() {
            assert_eq!(line, "chroot --userspec=65534:65534 --groups= /x tshark");
        } else {
            assert_eq!(line, "unshare --user --map-current-user --root=/x tshark");
        }
        let line = process::command_line(&System::HERE.command("tshark", true));
        assert_eq!(line, "tshark");
    }
}
