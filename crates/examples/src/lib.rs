//! Runs the examples in a tool's help and the commands in pages, each in a shell, as a user would:
//! in a folder with the captures that they name, and in a network namespace with the interfaces
//! that they name.
#![forbid(unsafe_code)]

pub mod page;

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Interfaces named by examples, each with the far end of its cable.
const CABLES: [(&str, &str); 10] = [
    ("eth0", "far0"),
    ("eth1", "far1"),
    ("eth2", "far2"),
    ("eth3", "far3"),
    ("veth0", "veth1"),
    ("in", "far-in"),
    ("out", "far-out"),
    ("a", "b"),
    ("up", "far-up"),
    ("s1", "s2"),
];

/// Number of queues that examples use.
const QUEUES: &str = "numtxqueues 4 numrxqueues 4";

/// Time after which an example that does not end by itself gets a Ctrl-C, time to a second one, and
/// time after which it is killed.
const LONG_ENOUGH: Duration = Duration::from_millis(1500);
const AGAIN: Duration = Duration::from_secs(10);
const TOO_LONG: Duration = Duration::from_secs(60);

/// Returns the lines of help that are examples.
pub fn of<'h>(help: &'h str, tool: &str) -> Vec<&'h str> {
    let (_, examples) = help.split_once("\nExamples:\n").unwrap_or_default();
    let lines = examples.lines().take_while(|line| line.starts_with("  "));
    let named = |line: &&str| line.split_whitespace().any(|word| word == tool);
    lines.map(str::trim).filter(named).collect()
}

/// Runs each example in a separate folder with these files. An example succeeds if it exits with 0,
/// or with 130 after Ctrl-C.
///
/// # Panics
/// There are no examples, or one fails; the message contains its output.
pub fn run(examples: &[&str], program: &Path, files: &[(&str, &Path)]) {
    assert!(!examples.is_empty(), "no examples");
    let shell = Shell::new(vec![program.parent().expect("a folder").to_owned()]);
    for example in examples {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, from) in files {
            let to = folder.path().join(name);
            fs::copy(from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
        }
        shell.run(example, folder.path(), Some(LONG_ENOUGH));
    }
}

/// Folders with programs, and permission of this process to create network namespaces.
#[derive(Debug)]
pub struct Shell {
    /// Folders searched before `PATH`.
    bin: Vec<PathBuf>,
    namespaces: bool,
}

impl Shell {
    /// Creates a shell that searches these folders first.
    #[must_use]
    pub fn new(bin: Vec<PathBuf>) -> Self {
        let namespaces = Command::new("unshare").args(["--net", "true"]).output();
        Self {
            bin,
            namespaces: namespaces.is_ok_and(|output| output.status.success()),
        }
    }

    /// Returns the reason why a command cannot run here, if any.
    fn lacks(&self, example: &str) -> Option<String> {
        // A bar in quotes is not a pipe.
        let unquoted: String = example.split('\'').step_by(2).collect();
        let mut programs = unquoted
            .split("| ")
            .filter_map(|part| part.split_whitespace().next());
        if let Some(lacking) = programs.find(|program| !self.has(program)) {
            return Some(format!("{lacking} is not installed"));
        }
        let refused = on_links(example) && !self.namespaces;
        refused.then(|| "needs a network namespace of its own".to_owned())
    }

    /// Runs a command in a folder, on a terminal, with a Ctrl-C after a while if it may not end by
    /// itself. Reports a skipped test if it cannot run here.
    ///
    /// # Panics
    /// The command fails; the message contains its output.
    pub fn run(&self, example: &str, folder: &Path, interrupted: Option<Duration>) {
        if let Some(why) = self.lacks(example) {
            fcn_skip::skipped!("{why}: {example}");
            return;
        }
        // A terminal, for programs with a full-screen display.
        let shown = "exec script --quiet --return --flush --command \"stty rows 40 cols 120; $EXAMPLE\" /dev/null";
        let (code, shown) = to_the_end(&mut self.command(example, folder, shown), interrupted);
        assert!(ended_well(example, code), "{example}: {code:?}\n{shown}");
    }

    /// Returns what a command prints to a pipe, both outputs combined. If it cannot run here,
    /// reports a skipped test and returns `None`.
    ///
    /// # Panics
    /// The command fails; the message contains its output.
    #[must_use]
    pub fn output(&self, example: &str, folder: &Path) -> Option<String> {
        if let Some(why) = self.lacks(example) {
            fcn_skip::skipped!("{why}: {example}");
            return None;
        }
        let mut command = self.command(example, folder, "eval \"$EXAMPLE\"");
        let (code, shown) = to_the_end(&mut command, None);
        assert!(ended_well(example, code), "{example}: {code:?}\n{shown}");
        Some(shown)
    }

    fn command(&self, example: &str, folder: &Path, last: &str) -> Command {
        let on_links = on_links(example);
        let mut script = String::from("set -e\nexec 2>&1\n");
        for (near, far) in CABLES.iter().filter(|_| on_links) {
            script += &format!(
                "ip link add name {near} {QUEUES} type veth peer name {far} {QUEUES}\nip link set dev {near} up\nip link set dev {far} up\n"
            );
        }
        script += last;
        let mut command = Command::new("unshare");
        command
            .args(on_links.then_some("--net"))
            .args(["sh", "-c", &script])
            .current_dir(folder)
            .env("PATH", std::env::join_paths(self.path()).expect("folders"))
            .env("SHELL", "/bin/sh")
            .env("EXAMPLE", example);
        command
    }

    /// True if a shell finds a program.
    fn has(&self, program: &str) -> bool {
        self.path().any(|folder| folder.join(program).is_file())
    }

    fn path(&self) -> impl Iterator<Item = PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let others: Vec<PathBuf> = std::env::split_paths(&path).collect();
        self.bin.clone().into_iter().chain(others)
    }
}

/// True if a command names an interface, and so needs a separate network namespace.
#[must_use]
pub fn on_links(example: &str) -> bool {
    [" --iface ", " -i "].iter().any(|o| example.contains(o))
}

fn ended_well(example: &str, code: Option<i32>) -> bool {
    // A check finds no device; an audit of a capture with violations reports them.
    let inconclusive = example.starts_with("fcn-gen check") && code == Some(3);
    let violated = example.contains(" --audit") && code == Some(1);
    // A busy machine may send late.
    let may_be_late = on_links(example) && code == Some(5);
    matches!(code, Some(0 | 130)) || inconclusive || violated || may_be_late
}

/// Runs a command, with a Ctrl-C after that time, and returns its exit code and output.
fn to_the_end(command: &mut Command, interrupted: Option<Duration>) -> (Option<i32>, String) {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command
        .stderr(Stdio::inherit())
        .spawn()
        .expect("unshare runs");
    let mut keys = child.stdin.take().expect("a pipe");
    let mut screen = child.stdout.take().expect("a pipe");
    let reader = thread::spawn(move || {
        let mut shown = Vec::new();
        // The output up to an error is all that is needed.
        let _ = screen.read_to_end(&mut shown);
        String::from_utf8_lossy(&shown).into_owned()
    });
    let begun = Instant::now();
    let mut interrupted = interrupted;
    let code = loop {
        if let Some(status) = child.try_wait().expect("it is ours") {
            break status.code();
        }
        if let Some(after) = interrupted.filter(|after| begun.elapsed() > *after) {
            // On a busy machine the first one may arrive before a program can receive it.
            interrupted = Some(after + AGAIN);
            // The command may end at this moment.
            let _ = keys.write_all(b"\x03");
        }
        if begun.elapsed() > TOO_LONG {
            let _ = child.kill();
        }
        thread::sleep(Duration::from_millis(20));
    };
    (code, reader.join().expect("no panic"))
}
