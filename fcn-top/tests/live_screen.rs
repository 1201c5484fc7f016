//! The screen during a live capture over a veth pair: real keys on a real terminal (tmux), its
//! contents, exports, and the terminal afterwards.
#![cfg(target_os = "linux")]

mod common;
#[path = "../../crates/link/tests/common/netns.rs"]
mod netns;

use common::{Key, PROGRAM, alone, capture, captures, read, top, top_words, totals, truths};
use fcn_tool::quantity::grouped;
use netns::{End, Options, Pair};
use pcap::Capture;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Maximum time for anything; the machine may be busy.
const DEADLINE: Duration = Duration::from_secs(20);
const STEP: Duration = Duration::from_millis(30);
/// Traffic to send: several senders, kinds and notifiers.
const SCENARIO: &str = "attack";
/// Number of repetitions.
const TIMES: u64 = 8;
/// Commands run in sequence, so that the terminal before and after can be compared.
const SCRIPT: &str = "stty -a >before; echo BEFORE; (sh -c 'echo $$ >pid; exec \"$0\" \"$@\"' \"$@\"; echo $? >code); \
    stty -a >after; echo BEHIND; exec sleep 600";

/// A terminal in the receiving namespace that runs the program; closed when dropped.
struct Terminal<'p> {
    pair: &'p Pair,
    home: TempDir,
}

impl<'p> Terminal<'p> {
    /// Returns `None` without tmux.
    fn open(pair: &'p Pair, options: &str) -> Option<Self> {
        let there = Command::new("tmux")
            .arg("-V")
            .stdout(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        if !there {
            fcn_skip::skipped!("keys on a terminal: needs the program tmux");
            return None;
        }
        let home = tempfile::tempdir().unwrap();
        let terminal = Self { pair, home };
        let mut command = terminal.tmux();
        command.args(["-f", "/dev/null", "new-session", "-d", "-x", "120"]);
        command.args(["-y", "40", "-c"]).arg(terminal.home.path());
        command.args(["sh", "-c", SCRIPT, "sh", PROGRAM, "-i", "far"]);
        command.arg("--no-config").args(options.split_whitespace());
        let done = command.output().unwrap();
        assert!(done.status.success(), "{done:?}");
        Some(terminal)
    }

    fn tmux(&self) -> Command {
        let mut command = self.pair.command(End::Far, "tmux");
        alone(&mut command);
        // The screen is ASCII if the locale is not UTF-8.
        command.env("LC_ALL", "C.UTF-8");
        command.env_remove("TMUX").arg("-S");
        command.arg(self.home.path().join("tmux"));
        command
    }

    fn output(&self, words: &[&str]) -> String {
        let output = self.tmux().args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn text(&self) -> String {
        self.output(&["capture-pane", "-p"])
    }

    /// Queries tmux for a property of the terminal.
    fn state(&self, what: &str) -> String {
        let format = format!("#{{{what}}}");
        let size = self.output(&["display-message", "-p", &format]);
        size.trim_end().to_owned()
    }

    /// Presses keys by their tmux names.
    fn press(&self, keys: &[&str]) {
        self.output(&[&["send-keys"], keys].concat());
    }

    fn type_in(&self, text: &str) {
        self.output(&["send-keys", "-l", text]);
    }

    #[track_caller]
    fn until(&self, what: &str, is: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let text = self.text();
            if is(&text) {
                return text;
            }
            assert!(begun.elapsed() < DEADLINE, "{what} is not there:\n{text}");
            thread::sleep(STEP);
        }
    }

    /// Waits until all of these are shown; returns the whole picture.
    #[track_caller]
    fn shows(&self, parts: &[&str]) -> String {
        self.until(&format!("{parts:?}"), |text| {
            parts.iter().all(|part| text.contains(part))
        })
    }

    /// Presses a key and waits until all of these are shown.
    #[track_caller]
    fn press_for(&self, key: &str, parts: &[&str]) -> String {
        self.press(&[key]);
        self.shows(parts)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    #[track_caller]
    fn content(&self, name: &str) -> String {
        let content = fs::read_to_string(self.file(name)).unwrap();
        content.trim().to_owned()
    }

    /// Waits for the end of the program; checks that the terminal is restored. Returns the exit
    /// code.
    #[track_caller]
    fn ended(&self) -> String {
        let text = self.shows(&["BEHIND"]);
        assert!(text.starts_with("BEFORE"), "{text}");
        for (what, off) in [
            ("alternate_on", "0"),
            ("mouse_any_flag", "0"),
            ("cursor_flag", "1"),
        ] {
            assert_eq!(self.state(what), off, "{what}");
        }
        assert_eq!(self.content("before"), self.content("after"));
        self.content("code")
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let _ = self.tmux().arg("kill-server").output();
    }
}

fn pair(name: &str) -> Option<Pair> {
    let options = Options {
        mtu: 9_000,
        ..Options::default()
    };
    Pair::with(name, &options)
}

/// Sends the scenario repeatedly from the near end.
fn send(pair: &Pair) {
    let frames = read(&captures().join(format!("{SCENARIO}.pcapng")));
    pair.inside(End::Near, || {
        let mut socket = Capture::from_device("near").unwrap().open().unwrap();
        for _ in 0..TIMES {
            for (_, _, octets) in &frames {
                socket.sendpacket(octets.as_slice()).unwrap();
            }
        }
    });
}

/// Returns the generator's ground truth about the scenario.
fn truth() -> BTreeMap<Key, u64> {
    let all = truths();
    let truth = all.iter().find(|truth| truth.name == SCENARIO).unwrap();
    totals(&truth.notifications, "total")
}

/// Returns the row with the most notifications, and their number.
fn told_most() -> (Key, u64) {
    let truth = truth();
    let most = truth.into_iter().max_by_key(|(_, total)| *total);
    most.unwrap()
}

/// Returns the QP shown for a row: the sender's, if the scenario's traffic reveals it.
fn shown(key: &Key) -> String {
    let file = captures().join(format!("{SCENARIO}.pcapng"));
    let file = file.display().to_string();
    let printed = top(["-r", &file, "--json"]).well().json();
    let rows = printed["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| common::key(row) == *key).unwrap();
    format!("{:#x}", row["qp"].as_u64().unwrap())
}

#[test]
fn keys_work_during_capture() {
    let Some(pair) = pair("keys") else { return };
    let Some(screen) = Terminal::open(&pair, "") else {
        return;
    };
    screen.shows(&["LIVE", "drops 0", "? help"]);
    assert_eq!(screen.state("alternate_on"), "1");
    let truth = truth();
    let rows = truth.len();
    let sum: u64 = truth.values().sum();
    let (told_most, most) = told_most();
    // One flow has a row of Fast CNPs and one of CNPs.
    let (kind, name) = (&told_most.0, shown(&told_most));
    let filter = format!("qp={name} kind={kind}");

    // Everything sent is counted, and nothing is lost.
    send(&pair);
    let once = format!("{} notifications in all", grouped(sum * TIMES));
    let counted = ["drops 0", &once];
    screen.shows(&counted);
    screen.shows(&["LIVE", &format!("{rows} rows  by")]);
    let text = screen.text();
    for (key, total) in &truth {
        let (qp, total) = (shown(key), grouped(total * TIMES));
        // The count has a column as long as there is no rate; then it moves below, because few rows
        // have two lines each.
        let lines: Vec<&str> = text.lines().collect();
        let is_there = lines.windows(2).any(|lines| {
            let mut qps = lines[0].split_whitespace();
            qps.any(|word| word.trim_start_matches(['~', '→']) == qp)
                && (lines.iter().flat_map(|line| line.split_whitespace())).any(|word| word == total)
        });
        assert!(is_there, "{qp} {total}:\n{text}");
    }

    // Sorted by another column, then reversed: the QP with the most notifications comes first.
    screen.press_for("s", &["Sort by"]);
    screen.press(&["g"]);
    screen.press(&["Down"]);
    screen.press_for("Enter", &["by total"]);
    let up = screen.text().contains("by total ▲");
    let (sign, other) = if up { ("▲", "▼") } else { ("▼", "▲") };
    screen.press_for("r", &[&format!("by total {other}")]);
    if sign == "▼" {
        screen.press_for("r", &["by total ▼"]);
    }
    screen.until("the greatest total first", |text| {
        let mut lines = text.lines().skip_while(|line| !line.contains("sender →"));
        lines.nth(1).is_some_and(|line| line.contains(&name))
    });

    // A filter applies while it is typed, and its error is shown.
    screen.press_for("/", &["Filter:"]);
    screen.type_in("qp=");
    screen.shows(&["at character 4", "Filter: qp="]);
    screen.type_in(filter.trim_start_matches("qp="));
    let one = format!("1 of {rows} rows");
    screen.shows(&[&one, &format!("Filter: {filter}"), "Enter keeps"]);
    screen.press_for("Enter", &[&one, &format!("filter {filter}"), "? help"]);

    // The flow in detail.
    let total = grouped(most * TIMES);
    let text = screen.press_for(
        "Enter",
        &["Notified by", &format!("QP {name} at the sender")],
    );
    let line = text
        .lines()
        .find(|line| line.starts_with("Notifications  "));
    assert!(line.is_some_and(|line| line.contains(&total)), "{text}");

    // Its packets are exported, and another run reads them.
    screen.press_for("x", &["Packets to pcapng file: fcn-top-qp-"]);
    let text = screen.press_for("Enter", &["written to fcn-top-qp-"]);
    let message = text
        .lines()
        .find(|line| line.contains("written to"))
        .unwrap();
    let exported = screen.file(&format!("fcn-top-qp-{name}.pcapng"));
    let packets = read(&exported).len() as u64;
    assert!(
        message.starts_with(&format!("{} packets written", grouped(packets))),
        "{packets}: {message}"
    );
    let again = top_words(&format!("-r {} --json", exported.display())).well();
    let json = again.json();
    let of_row: u64 = totals(json["rows"].as_array().unwrap(), "total")
        .iter()
        .filter(|(key, _)| **key == told_most)
        .map(|(_, total)| total)
        .sum();
    assert_eq!(of_row, most * TIMES);

    // A pause freezes the screen, but capturing continues.
    screen.press_for("Escape", &["sender →", &one]);
    screen.press_for("p", &["PAUSED", &once]);
    send(&pair);
    let twice = format!("{} notifications in all", grouped(2 * sum * TIMES));
    screen.until("a second of the pause", |text| {
        text.contains("PAUSED") && !text.contains("PAUSED 0 s")
    });
    screen.shows(&counted);
    screen.press_for("p", &["LIVE", "drops 0", &twice]);

    // Help, and every view.
    screen.press_for("?", &["Help: QPs", "Esc closes"]);
    screen.press(&["Escape"]);
    screen.until("no help", |text| !text.contains("Help: QPs"));
    screen.press_for("2", &["notifiers  by", "flows notified"]);
    screen.press_for("3", &["Notified by", &format!("QP {name} at the sender")]);
    screen.press_for("4", &["No IOAM trace"]);
    screen.press_for("5", &["by severity"]);
    let text = screen.press_for("6", &["1 interface", "QP rows"]);
    // The state at the top begins with its name as well.
    let line = text.lines().rfind(|line| line.starts_with("far "));
    let words: Vec<&str> = line.unwrap_or_default().split_whitespace().collect();
    // Name, state, drops by the kernel and the interface.
    assert_eq!(words.get(..4), Some(&["far", "up", "0", "0"][..]), "{text}");
    assert!(words.contains(&grouped(2 * sum * TIMES).as_str()), "{text}");

    // Other sizes.
    screen.press_for("1", &["sender →"]);
    for (width, height, parts) in [
        ("80", "24", ["drops 0", "? help  q quit"]),
        ("60", "15", ["drops 0", "? help  q quit"]),
    ] {
        screen.output(&["resize-window", "-x", width, "-y", height]);
        screen.until("that size", |text| {
            let lines: Vec<&str> = text.lines().collect();
            // The keys are on the lowest line.
            lines.len().to_string() == height
                && lines[lines.len() - 1].starts_with(parts[1])
                && text.contains(parts[0])
                && text.contains(&name)
        });
    }
    screen.output(&["resize-window", "-x", "120", "-y", "40"]);
    // The lowest line of the narrow screen has no room for the last of the keys.
    screen.shows(&["drops 0", &twice, "P picture"]);

    screen.press(&["q"]);
    assert_eq!(screen.ended(), "0");
}

#[test]
fn losses_are_events_and_the_exit_code() {
    let Some(pair) = pair("losses") else { return };
    let Some(screen) = Terminal::open(&pair, "--buffer 1MiB") else {
        return;
    };
    screen.shows(&["LIVE", "drops 0"]);
    // The ring is not drained.
    let pid = screen.content("pid");
    let signal = |name: &str| {
        let kill = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(kill.unwrap().success());
    };
    signal("STOP");
    send(&pair);
    signal("CONT");
    screen.until("drops", |text| {
        text.contains("drops: kernel") && !text.contains("drops: kernel 0,")
    });
    screen.press_for("5", &["capture.lost.kernel", "warning"]);
    screen.press(&["q"]);
    assert_eq!(screen.ended(), "3");
    screen.shows(&["packets were lost: dropped by the kernel"]);
}

#[test]
fn a_signal_leaves_the_terminal_as_it_was() {
    let Some(pair) = pair("signal") else { return };
    for signal in ["TERM", "HUP", "INT"] {
        let Some(screen) = Terminal::open(&pair, "") else {
            return;
        };
        screen.shows(&["LIVE", "? help"]);
        assert_eq!(screen.state("alternate_on"), "1");
        // Also while something is typed.
        screen.press_for("/", &["Filter:"]);
        let pid = screen.content("pid");
        let kill = Command::new("kill").args(["-s", signal, &pid]).status();
        assert!(kill.unwrap().success());
        assert_eq!(screen.ended(), "0", "{signal}");
    }
}

#[test]
fn invalid_view_options_are_reported_before_the_screen() {
    let Some(pair) = pair("wrong view") else {
        return;
    };
    for (options, message) in [
        ("--view notifiers --sort qp", "fcn-top: --sort: "),
        ("--view events --where hop=1", "fcn-top: --where: "),
    ] {
        let Some(screen) = Terminal::open(&pair, options) else {
            return;
        };
        assert_eq!(screen.ended(), "2", "{options}");
        screen.shows(&[message]);
    }
    // Without a screen, output is about the QPs, and there is no other view.
    let file = capture(&format!("{SCENARIO}.pcapng"));
    let done = top_words(&format!("-r {file} --json --view notifiers --sort qp")).with(2);
    assert!(done.err.starts_with("fcn-top: --view: "), "{}", done.err);
    top_words(&format!("-r {file} --json --sort qp")).well();
}
