//! The system whose Wireshark is run: this machine, or a Debian release that was unpacked into a folder, which its
//! programs then take for the root of all files.
//! Not here: unpacking it (`matrix.rs`), and what tshark is told (`tshark.rs`).

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process;

/// Names the folder of the system whose Wireshark tests run; without it, this machine's.
pub const SYSTEM: &str = "FCN_WIRESHARK";

/// Names the plugin that was built for that Wireshark.
pub const PLUGIN: &str = "FCN_WIRESHARK_PLUGIN";

/// Names the folder of that Wireshark's own plugins, where it was seen to load the plugin.
pub const PLUGINS: &str = "FCN_WIRESHARK_PLUGINS";

/// User and group `nobody` on every Linux.
pub const NOBODY: u32 = 65534;

/// Where programs are looked for on every Debian.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// A system to run programs of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct System {
    /// Its folder; `None` is this machine.
    folder: Option<PathBuf>,
}

impl System {
    /// This machine.
    pub const HERE: Self = Self { folder: None };

    /// The system in a folder.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        Self {
            folder: Some(folder.to_path_buf()),
        }
    }

    /// The one that [`SYSTEM`] names, or this machine.
    #[must_use]
    pub fn of_tests() -> Self {
        Self {
            folder: std::env::var_os(SYSTEM).map(PathBuf::from),
        }
    }

    /// Whether it is this machine.
    #[must_use]
    pub fn is_here(&self) -> bool {
        self.folder.is_none()
    }

    /// One of its programs, run by this user; in place of root by `nobody`, if so wanted.
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
            // Another root of all files is for those who are root, or are in a namespace of users of their own.
            command = Command::new("unshare");
            command.args(["--user", "--map-current-user"]);
            command.arg(format!("--root={}", folder.display()));
        }
        command.arg(program);
        command
    }

    /// What `PATH` is to be for [`System::command`].
    #[must_use]
    pub fn path(&self) -> std::ffi::OsString {
        match &self.folder {
            None => std::env::var_os("PATH").unwrap_or_default(),
            Some(_) => PATH.into(),
        }
    }

    /// Where this machine finds a file that the system calls `inside`.
    #[must_use]
    pub fn outside(&self, inside: &Path) -> PathBuf {
        match &self.folder {
            None => inside.to_path_buf(),
            Some(folder) => folder.join(inside.strip_prefix("/").unwrap_or(inside)),
        }
    }

    /// What the system calls a file of this machine; a file that is not below its folder it cannot see.
    #[must_use]
    pub fn inside(&self, outside: &Path) -> PathBuf {
        let below = |folder: &PathBuf| outside.strip_prefix(folder).ok().map(Path::to_path_buf);
        match self.folder.as_ref().and_then(below) {
            None => outside.to_path_buf(),
            Some(path) => Path::new("/").join(path),
        }
    }
}

/// The plugin that tests are to run instead of this build's, by [`PLUGIN`].
#[must_use]
pub fn plugin_of_tests() -> Option<PathBuf> {
    std::env::var_os(PLUGIN).map(PathBuf::from)
}

/// The folder of its Wireshark's own plugins, by [`PLUGINS`]: a test need not ask tshark, nor try whether it loads the plugin.
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
