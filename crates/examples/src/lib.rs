//! Runs the examples that stand in a tool's help, each in a shell, as a user would: in a folder with the captures that they
//! name, and in a network namespace with the interfaces that they name.
#![forbid(unsafe_code)]

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Interfaces that examples name, each with the far end of its cable.
const CABLES: [(&str, &str); 7] = [
    ("eth1", "far1"),
    ("eth2", "far2"),
    ("veth0", "veth1"),
    ("in", "far-in"),
    ("out", "far-out"),
    ("a", "b"),
    ("up", "far-up"),
];

/// When an example that does not end by itself gets a Ctrl-C, and when it is given up.
const LONG_ENOUGH: Duration = Duration::from_millis(1500);
const TOO_LONG: Duration = Duration::from_secs(60);

/// Lines of help that are examples.
pub fn of<'h>(help: &'h str, tool: &str) -> Vec<&'h str> {
    let (_, examples) = help.split_once("\nExamples:\n").unwrap_or_default();
    let lines = examples.lines().take_while(|line| line.starts_with("  "));
    let named = |line: &&str| line.split_whitespace().any(|word| word == tool);
    lines.map(str::trim).filter(named).collect()
}

/// Runs each in a folder of its own with these files. An example ends well if it ends with 0, or with 130
/// behind Ctrl-C.
///
/// # Panics
/// There is none, or one fails; with what it complained of.
pub fn run(examples: &[&str], program: &Path, files: &[(&str, &Path)]) {
    assert!(!examples.is_empty(), "no examples");
    let bin = program.parent().expect("a folder");
    let namespaces = Command::new("unshare").args(["--net", "true"]).output();
    let namespaces = namespaces.is_ok_and(|output| output.status.success());
    for example in examples {
        let mut programs = example
            .split("| ")
            .filter_map(|part| part.split_whitespace().next());
        if let Some(lacking) = programs.find(|p| !is_there(p, bin)) {
            fcn_skip::skipped!("{lacking} is not installed: {example}");
            continue;
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, from) in files {
            let to = folder.path().join(name);
            fs::copy(from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
        }
        let on_links = [" --iface ", " -i "].iter().any(|o| example.contains(o));
        if on_links && !namespaces {
            fcn_skip::skipped!("needs a network namespace of its own: {example}");
            continue;
        }
        let mut setup = String::from("set -e\nexec 2>&1\n");
        for (near, far) in CABLES.iter().filter(|_| on_links) {
            setup += &format!(
                "ip link add name {near} type veth peer name {far}\nip link set dev {near} up\nip link set dev {far} up\n"
            );
        }
        // A terminal, for what shows a screen.
        setup += "exec script --quiet --return --flush --command \"stty rows 40 cols 120; $EXAMPLE\" /dev/null";
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("unshare");
        command
            .args(on_links.then_some("--net"))
            .args(["sh", "-c", &setup])
            .current_dir(folder.path())
            .env("PATH", format!("{}:{path}", bin.display()))
            .env("SHELL", "/bin/sh")
            .env("EXAMPLE", example);
        let (code, shown) = to_the_end(&mut command);
        // A check finds no device.
        let may_fail = example.starts_with("fcn-gen check") && code == Some(1);
        assert!(
            may_fail || matches!(code, Some(0 | 130)),
            "{example}: {code:?}\n{shown}"
        );
    }
}

/// Whether a shell finds a program, in this folder or elsewhere.
fn is_there(program: &str, bin: &Path) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path).chain([bin.to_owned()]);
    folders.any(|folder| folder.join(program).is_file())
}

/// Runs a command, with a Ctrl-C after a while, and returns its exit code and what it showed.
fn to_the_end(command: &mut Command) -> (Option<i32>, String) {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command
        .stderr(Stdio::inherit())
        .spawn()
        .expect("unshare runs");
    let mut keys = child.stdin.take().expect("a pipe");
    let mut screen = child.stdout.take().expect("a pipe");
    let reader = thread::spawn(move || {
        let mut shown = Vec::new();
        // What was shown until then is all that is needed of it.
        let _ = screen.read_to_end(&mut shown);
        String::from_utf8_lossy(&shown).into_owned()
    });
    let begun = Instant::now();
    let mut asked = false;
    let code = loop {
        if let Some(status) = child.try_wait().expect("it is ours") {
            break status.code();
        }
        if !asked && begun.elapsed() > LONG_ENOUGH {
            asked = true;
            // It may end at this moment.
            let _ = keys.write_all(b"\x03");
        }
        if begun.elapsed() > TOO_LONG {
            let _ = child.kill();
        }
        thread::sleep(Duration::from_millis(20));
    };
    (code, reader.join().expect("no panic"))
}
