//! The screen on a real terminal (tmux): drawing and redrawing, and the end of the terminal.
#![cfg(target_os = "linux")]

mod common;

use common::{PROGRAM, capture};
use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Generous, because the machine may be busy.
const HANG: Duration = Duration::from_secs(30);
const STEP: Duration = Duration::from_millis(50);

/// A terminal that runs the program; closed when dropped.
struct Screen {
    home: TempDir,
    pid: u32,
}

impl Screen {
    /// Returns `None` without tmux.
    fn open(input: &[&str]) -> Option<Self> {
        let program = ["env", "TERM=screen-256color", PROGRAM, "--no-config"];
        Self::start(&[&program, input].concat())
    }

    /// Same, with any command.
    fn start(words: &[&str]) -> Option<Self> {
        let there = Command::new("tmux")
            .arg("-V")
            .stdout(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        if !there {
            fcn_skip::skipped!("needs the program tmux");
            return None;
        }
        let mut screen = Self {
            home: tempfile::tempdir().unwrap(),
            pid: 0,
        };
        let mut command = screen.tmux();
        command.args(["-f", "/dev/null", "new-session", "-d", "-x", "120", "-y"]);
        command.arg("30").args(words);
        assert!(command.status().unwrap().success());
        let pid = screen.output(&["list-panes", "-F", "#{pane_pid}"]);
        screen.pid = pid.trim().parse().unwrap();
        Some(screen)
    }

    fn tmux(&self) -> Command {
        let mut command = Command::new("tmux");
        command.env_remove("TMUX").arg("-S");
        command.arg(self.home.path().join("tmux"));
        command
    }

    fn output(&self, words: &[&str]) -> String {
        let output = self.tmux().args(words).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    fn text(&self) -> String {
        self.output(&["capture-pane", "-p"])
    }

    /// Waits until the text is shown.
    #[track_caller]
    fn shows(&self, text: &str) {
        let begun = Instant::now();
        while !self.text().contains(text) {
            assert!(
                begun.elapsed() < HANG,
                "it does not show {text}: {}",
                self.text()
            );
            thread::sleep(STEP);
        }
    }

    fn runs(&self) -> bool {
        // A zombie process has an empty command line.
        fs::read(format!("/proc/{}/cmdline", self.pid)).is_ok_and(|line| !line.is_empty())
    }

    #[track_caller]
    fn ends(&self) {
        let begun = Instant::now();
        while self.runs() {
            assert!(begun.elapsed() < HANG, "it still runs");
            thread::sleep(STEP);
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.tmux().arg("kill-server").output();
        if self.runs() {
            let _ = Command::new("kill")
                .args(["-9", &self.pid.to_string()])
                .status();
        }
    }
}

#[test]
fn it_is_redrawn_and_left() {
    let Some(screen) = Screen::open(&["-r", &capture("receiver-cnp-ipv4.pcapng")]) else {
        return;
    };
    screen.shows("QPs");
    screen.output(&["send-keys", "C-l"]);
    // A query to the terminal may take 2 s to answer; keys would hide that one was sent.
    thread::sleep(Duration::from_millis(2_500));
    assert!(screen.runs());
    screen.output(&["send-keys", "4"]);
    screen.shows("No IOAM trace");
    screen.output(&["resize-window", "-x", "90", "-y", "25"]);
    screen.output(&["send-keys", "1"]);
    screen.shows("notified by");
    screen.output(&["send-keys", "q"]);
    screen.ends();
}

#[test]
fn a_terminal_may_claim_any_size() {
    let Some(screen) = Screen::open(&["-r", &capture("receiver-cnp-ipv4.pcapng")]) else {
        return;
    };
    screen.shows("notified by");
    let terminal = screen.output(&["list-panes", "-F", "#{pane_tty}"]);
    let claim = |columns, lines| {
        let words = ["-F", terminal.trim(), "cols", columns, "rows", lines];
        assert!(Command::new("stty").args(words).status().unwrap().success());
    };
    for (columns, lines) in [
        ("60000", "60000"),
        ("0", "0"),
        ("1", "60000"),
        ("120", "30"),
    ] {
        let before = screen.text();
        claim(columns, lines);
        screen.output(&["send-keys", "C-l"]);
        if columns == "60000" {
            // Keeping so many cells is up to the terminal.
            screen.output(&["send-keys", "2"]);
            let begun = Instant::now();
            while screen.text() == before {
                assert!(begun.elapsed() < HANG, "it draws nothing");
                thread::sleep(STEP);
            }
        }
    }
    screen.shows("flows notified");
    screen.output(&["send-keys", "4"]);
    screen.shows("No IOAM trace");
    screen.output(&["send-keys", "q"]);
    screen.ends();
}

#[test]
fn it_ends_with_its_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let code = folder.path().join("code");
    let input = capture("receiver-cnp-ipv4.pcapng");
    // A shell that outlives the terminal records the exit code: standard error is gone with the
    // terminal, too.
    let shell = format!(
        "trap : HUP; {PROGRAM} --no-config -r {input}; echo $? > {}",
        code.display()
    );
    let Some(screen) = Screen::start(&["env", "TERM=screen-256color", "sh", "-c", &shell]) else {
        return;
    };
    screen.shows("QPs");
    assert!(screen.tmux().arg("kill-server").status().unwrap().success());
    screen.ends();
    let code = fs::read_to_string(code).unwrap();
    assert!(["0", "1"].contains(&code.trim()), "{code}");
}

#[test]
fn the_demo_is_marked_and_left() {
    for keys in ["q", "C-c"] {
        let Some(screen) = Screen::open(&["--demo", "--privacy"]) else {
            return;
        };
        screen.shows("demo: made-up traffic");
        screen.shows("does not");
        screen.output(&["send-keys", keys]);
        screen.ends();
    }
}

#[test]
fn a_dumb_terminal_is_refused() {
    let read = capture("incast.pcapng");
    let command = format!("TERM=dumb '{PROGRAM}' --no-config -r '{read}'; echo \"exit $?\"; cat");
    let Some(screen) = Screen::start(&["sh", "-c", &command]) else {
        return;
    };
    screen.shows("exit 2");
    let text = screen.text().replace('\n', "");
    assert!(
        text.contains("TERM=dumb") && text.contains("--report"),
        "{text}"
    );
}
