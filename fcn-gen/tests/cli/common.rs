//! Runs the program as a user does, and helps to check its output.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Result of a finished program.
pub struct Done {
    /// Exit code.
    pub code: i32,
    /// Standard output.
    pub out: Vec<u8>,
    /// Standard error.
    pub err: String,
}

impl Done {
    /// Returns standard output as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.out).unwrap()
    }

    /// Returns standard output as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.out).unwrap()
    }
}

/// Returns the program, without arguments.
pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fcn-gen"));
    command
        .stdin(Stdio::null())
        .current_dir(here())
        .env_remove("NO_COLOR");
    command
}

/// Runs the program.
pub fn fcn_gen<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Done {
    let output = program().args(args).output().unwrap();
    Done {
        code: output.status.code().unwrap(),
        out: output.stdout,
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Returns the folder of these tests, in which the program runs.
pub fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// Returns the sorted names in a folder.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Starts the program, interrupts it as soon as `folder` contains `temporaries` hidden files, and
/// waits for its end.
#[cfg(unix)]
pub fn interrupt<S: AsRef<OsStr>>(
    args: impl IntoIterator<Item = S>,
    folder: &Path,
    temporaries: usize,
) -> Done {
    let mut child = program()
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Temporary files exist only after the interrupt handler is installed.
    let hidden = || {
        names(folder)
            .iter()
            .filter(|name| name.starts_with('.'))
            .count()
    };
    while hidden() < temporaries {
        let over = child.try_wait().unwrap();
        assert!(over.is_none(), "over before it could be interrupted");
        std::thread::yield_now();
    }
    let id = child.id().to_string();
    let kill = Command::new("kill").args(["-INT", &id]).status().unwrap();
    assert!(kill.success());
    let output = child.wait_with_output().unwrap();
    Done {
        code: output.status.code().unwrap(),
        out: output.stdout,
        err: String::from_utf8(output.stderr).unwrap(),
    }
}
