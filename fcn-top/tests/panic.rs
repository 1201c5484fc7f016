//! A bug while the screen is shown: wherever it occurs, the terminal is restored, the message is
//! readable, and the exit code reports a failure.
//!
//! The program does not panic on request. So this test runs itself in a terminal (tmux) in the same
//! way as the program (the same threads, the same screen), but with an input, tables or an export
//! that panic.
#![cfg(target_os = "linux")]

mod common;

use fcn_tool::console::{conclude, main_with};
use fcn_tool::failure::{Failure, Result};
use fcn_top::engine::file::{Choice, FileInput};
use fcn_top::engine::{Engine, Input, Limits};
use fcn_top::monitor::{Monitor, Settings};
use fcn_top::record::RowId;
use fcn_top::running::feed;
use fcn_top::tables::{Details, TableSource, Tables, Wanted, WantedDetails};
use fcn_top::text::Formatter;
use fcn_top::view::{Options, run};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Generous, because the machine may be busy.
const HANG: Duration = Duration::from_secs(30);
const STEP: Duration = Duration::from_millis(50);
/// Number of tables shown before the panic.
const SHOWN: u32 = 4;
/// Panic message.
const SAID: &str = "this bug was made for a test";

type Case = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
    &'static str,
);

/// Location of the bug; the keys that trigger it, each with the text shown before; and the
/// resulting exit code and message.
const CASES: [Case; 3] = [
    // The main thread of the program: Rust's own exit code.
    ("drawing", &[], "101", SAID),
    (
        "key",
        &[
            // The order of the rows is final.
            ("ended", "Enter"),
            ("row 1", "x"),
            ("fcn-top-qp-", "Enter"),
        ],
        "101",
        SAID,
    ),
    (
        "capture",
        &[],
        "1",
        "fcn-top: internal error: see the message above",
    ),
];

/// An input that panics after it has processed all packets and `SHOWN` pictures were drawn.
struct Breaking<'a>(FileInput, &'a AtomicU32);

impl Input for Breaking<'_> {
    fn run(&mut self, engine: &Engine, stop: &AtomicBool) -> core::result::Result<(), Failure> {
        self.0.run(engine, stop)?;
        while self.1.load(Ordering::Relaxed) < SHOWN {
            thread::sleep(STEP);
        }
        panic!("{SAID}");
    }
}

/// An engine that panics when it is accessed.
struct Fragile<'a> {
    engine: &'a Engine,
    what: &'a str,
    shown: &'a AtomicU32,
}

impl TableSource for Fragile<'_> {
    fn tables(&self, wanted: Wanted) -> Tables {
        let shown = self.shown.fetch_add(1, Ordering::Relaxed);
        assert!(shown < SHOWN || self.what != "drawing", "{SAID}");
        self.engine.tables(wanted)
    }

    fn details(&self, wanted: &WantedDetails) -> Details {
        self.engine.details(wanted)
    }

    fn export(&self, _: RowId, _: &Path) -> core::result::Result<(u64, u64), String> {
        panic!("{SAID}");
    }

    fn ended(&self) -> Option<String> {
        None
    }
}

/// The program run in the terminal.
fn broken(what: &str, capture: &Path) -> Result {
    let formatter = Formatter::default();
    let engine = Engine::new(
        Monitor::new(Settings::default()),
        None,
        Limits::default(),
        false,
    );
    let shown: &'static AtomicU32 = Box::leak(Box::new(AtomicU32::new(0)));
    let file = FileInput::open(capture, Choice::default(), &[])?;
    let input: Box<dyn Input> = if what == "capture" {
        Box::new(Breaking(file, shown))
    } else {
        Box::new(file)
    };
    let over = AtomicBool::new(false);
    let watched = Fragile {
        engine: &engine,
        what,
        shown,
    };
    let (left, ended) = feed(&engine, vec![input], (&over, None), || {
        run(&watched, &Options::default(), &formatter, &over)
    });
    left.and(ended)
}

/// A terminal; closed when dropped.
struct Terminal(TempDir);

impl Terminal {
    /// Starts a shell that runs `script`, and then waits.
    fn with(script: &str) -> Self {
        let terminal = Self(tempfile::tempdir().unwrap());
        let script = format!("{script}; sleep 1000");
        let size = ["-x", "120", "-y", "30"];
        let mut command = terminal.tmux();
        command
            .args(["-f", "/dev/null", "new-session", "-d"])
            .args(size);
        command.args([
            "env",
            "TERM=screen-256color",
            "RUST_BACKTRACE=0",
            "sh",
            "-c",
            &script,
        ]);
        assert!(command.status().unwrap().success());
        terminal
    }

    fn tmux(&self) -> Command {
        let mut command = Command::new("tmux");
        command
            .env_remove("TMUX")
            .arg("-S")
            .arg(self.0.path().join("tmux"));
        command
    }

    fn output(&self, words: &[&str]) -> String {
        let output = self.tmux().args(words).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Waits until the text is shown.
    #[track_caller]
    fn shows(&self, text: &str) -> String {
        let begun = Instant::now();
        loop {
            let shown = self.output(&["capture-pane", "-p"]);
            if shown.contains(text) {
                return shown;
            }
            assert!(begun.elapsed() < HANG, "it does not show {text}: {shown}");
            thread::sleep(STEP);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.tmux().arg("kill-server").output();
    }
}

fn breaks((what, keys, code, last): Case) {
    let this = std::env::current_exe().unwrap();
    let capture = common::captures().join("receiver-cnp-ipv4.pcapng");
    let run = format!(
        "'{}' --broken {what} '{}'",
        this.display(),
        capture.display()
    );
    // Terminal settings before and after.
    let terminal = Terminal::with(&format!(
        "b=$(stty -g); echo BEFORE; {run}; echo CODE $?; [ \"$b\" = \"$(stty -g)\" ] && echo SAME || echo CHANGED"
    ));
    if what == "key" {
        // Otherwise it panics as soon as it is shown, and may have done so already.
        terminal.shows("notified");
        assert_eq!(terminal.state("#{alternate_on} #{mouse_any_flag}"), "1 1");
    }
    for (shown, key) in keys {
        terminal.shows(shown);
        terminal.output(&["send-keys", key]);
    }
    let left = terminal.shows("CODE");
    terminal.shows("SAME");
    // The previous contents are restored, followed by the message, each line starting at the left.
    let lines: Vec<&str> = left.lines().collect();
    assert_eq!(lines[0], "BEFORE", "{left}");
    let panic = lines.iter().position(|line| line.starts_with("thread '"));
    let panic = panic.unwrap_or_else(|| panic!("{left}"));
    assert!(lines[panic].contains("panicked at"), "{left}");
    assert_eq!(lines[panic + 1], SAID, "{left}");
    assert_eq!(left.matches(SAID).count(), 1, "{left}");
    assert!(lines.iter().any(|line| line.starts_with(last)), "{left}");
    assert!(lines.contains(&&*format!("CODE {code}")), "{left}");
    let state = terminal.state("#{alternate_on} #{mouse_any_flag} #{cursor_flag}");
    assert_eq!(state, "0 0 1", "{left}");
}

impl Terminal {
    fn state(&self, process: &str) -> String {
        self.output(&["display-message", "-p", process])
            .trim()
            .to_owned()
    }
}

/// Name of the test in lists and counts.
const NAME: &str = "a_bug_leaves_the_terminal_as_it_was";

/// A custom harness, because this is two programs: the test, and the program it runs in the
/// terminal.
fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [first, what, capture] = &words[..]
        && first == "--broken"
    {
        return main_with(|_, console| {
            conclude("fcn-top", broken(what, Path::new(capture)), console)
        });
    }
    if words.iter().any(|word| word == "--list") {
        println!("{NAME}: test");
        return ExitCode::SUCCESS;
    }
    let mut names = words
        .iter()
        .filter(|word| !word.starts_with('-'))
        .peekable();
    if names.peek().is_some() && !names.any(|name| NAME.contains(name.as_str())) {
        return ExitCode::SUCCESS;
    }
    println!("\nrunning 1 test");
    let there = Command::new("tmux")
        .arg("-V")
        .stdout(Stdio::null())
        .status();
    if there.is_ok_and(|status| status.success()) {
        CASES.into_iter().for_each(breaks);
    } else {
        fcn_skip::skipped!("needs the program tmux");
    }
    println!("test {NAME} ... ok");
    println!("\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
    ExitCode::SUCCESS
}
