//! `fcn-gen emulate` on links: a sender, a bump in the wire and a receiver, each in a namespace of its own.

#[path = "../../crates/link/tests/common/netns.rs"]
mod netns;

use netns::{End, Options, Pair};
use serde_json::Value;
use std::io::Read;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

/// Where the roles are: the sender at `near` of the first pair, the switch at `far` of it, with the second pair's `near`, the
/// receiver at the second pair's `far`.
struct Line(Pair, Pair);

impl Line {
    fn new(name: &str) -> Option<Self> {
        let options = Options::default();
        let (first, second) = (Pair::with(name, &options)?, Pair::with(name, &options)?);
        let switch = first.namespace(End::Far);
        second.ip(End::Near, &["link", "set", "dev", "near", "netns", switch]);
        first.ip(End::Far, &["link", "set", "dev", "near", "up"]);
        second.wait_for_carrier(End::Far);
        Some(Self(first, second))
    }

    /// Starts a role, and waits until it says that it has begun.
    fn start(&self, role: &str, words: &str) -> Role {
        let (pair, end, links) = match role {
            "sender" => (&self.0, End::Near, "--iface near"),
            "receiver" => (&self.1, End::Far, "--iface far"),
            _ => (&self.0, End::Far, "--iface far --iface near"),
        };
        let mut command = pair.command(end, env!("CARGO_BIN_EXE_fcn-gen"));
        command.args(["emulate", role]).args(links.split(' '));
        // A hundredth of the rates: any machine keeps up.
        command.args(["--json", "--speed", "0.01"]);
        command.args(words.split_whitespace());
        command.stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut err = child.stderr.take().unwrap();
        let mut said = Vec::new();
        let mut octet = [0];
        while !said.ends_with(b"or Ctrl-C\n") && !said.ends_with(b"until    Ctrl-C\n") {
            match err.read(&mut octet).unwrap() {
                0 => break,
                _ => said.push(octet[0]),
            }
        }
        // Read on, or it would wait for somebody who does.
        let rest = thread::spawn(move || {
            let mut rest = Vec::new();
            let _ = err.read_to_end(&mut rest);
            rest
        });
        Role { child, said, rest }
    }

    fn leaves_nothing(&self) {
        assert!(!self.0.has_xdp_program(End::Near));
        assert!(!self.0.has_xdp_program(End::Far));
        assert!(!self.1.has_xdp_program(End::Far));
    }
}

struct Role {
    child: Child,
    said: Vec<u8>,
    rest: thread::JoinHandle<Vec<u8>>,
}

impl Role {
    fn interrupt(&self) {
        let id = self.child.id().to_string();
        let killed = Command::new("kill").args(["-INT", &id]).status();
        assert!(killed.unwrap().success());
    }

    /// Its report, and its exit code.
    fn end(self) -> (Value, Option<i32>) {
        let Output { status, stdout, .. } = self.child.wait_with_output().unwrap();
        let said = [self.said, self.rest.join().unwrap()].concat();
        let said = String::from_utf8_lossy(&said);
        let report = serde_json::from_slice(&stdout);
        let report = report.unwrap_or_else(|error| panic!("{error}: {said}"));
        (report, status.code())
    }
}

fn sum(report: &Value, flows: &str) -> u64 {
    let of = |flow: &Value| flow[flows].as_u64().unwrap();
    report["flows"].as_array().unwrap().iter().map(of).sum()
}

fn slowed(report: &Value, kind: &str) -> u64 {
    let of = |flow: &Value| flow["slowed_by"][kind].as_u64().unwrap_or(0);
    report["flows"].as_array().unwrap().iter().map(of).sum()
}

#[test]
fn congestion_at_a_bump_in_the_wire_slows_the_sender_by_each_mechanism_and_both_ways() {
    let Some(line) = Line::new("congestion_at_a_bump_in_the_wire") else {
        return;
    };
    for (mechanism, enable, kind, by_switch, backend) in [
        ("fast-cnp", "--enable-fast-cnp", "fast_cnp_1", true, "auto"),
        (
            "fast-cnp",
            "--enable-fast-cnp",
            "fast_cnp_1",
            true,
            "packet",
        ),
        (
            "fast-cnp-ioam",
            "--enable-fast-cnp",
            "fast_cnp_2",
            true,
            "auto",
        ),
        ("switch-cnp", "", "cnp", true, "auto"),
        ("cnp", "", "cnp", false, "auto"),
        // Off unless it is switched on: the switch marks, and the receiver answers.
        ("fast-cnp", "", "cnp", false, "auto"),
    ] {
        let what = format!("{mechanism} {enable} {backend}");
        let words = format!("--set mechanism={mechanism} {enable} --backend {backend}");
        let receiver = line.start("receiver", &format!("{words} --forever"));
        let switch = line.start("congestion-point", &format!("{words} --forever"));
        let sender = line.start("sender", &format!("{words} --duration 3s"));
        let (sender, code) = sender.end();
        assert_eq!(code, Some(0), "{what}: {sender:#}");
        switch.interrupt();
        receiver.interrupt();
        let ((switch, code), (receiver, other)) = (switch.end(), receiver.end());
        assert_eq!((code, other), (Some(130), Some(130)), "{what}");
        let by = if by_switch { &switch } else { &receiver };
        let told = by["notified"][kind].as_u64().unwrap_or(0);
        assert!(told > 0, "{what}: {switch:#} {receiver:#}");
        assert!(slowed(&sender, kind) > 0, "{what}: {sender:#}");
        assert!(slowed(&sender, kind) <= told, "{what}");
        assert_eq!(by["reactions"][kind]["count"], told, "{what}");
        assert!(sum(&receiver, "octets_delivered") > 0, "{what}");
        let marked = sum(&receiver, "ce_received");
        assert_eq!(marked > 0, !by_switch, "{what}");
        // What the sender sent is what passed. Of what comes back to it, it need not hear the last.
        let link = |report: &Value, what: &str| report["links"][0][what].as_u64();
        assert_eq!(link(&sender, "sent"), link(&switch, "received"), "{what}");
        assert!(link(&sender, "received") <= link(&switch, "sent"), "{what}");
        line.leaves_nothing();
    }
}

#[test]
fn a_sender_without_a_receiver_fails_and_says_so() {
    let Some(line) = Line::new("a_sender_without_a_receiver") else {
        return;
    };
    let sender = line.start("sender", "--duration 500ms");
    let (report, code) = sender.end();
    assert_eq!(code, Some(1), "{report:#}");
    assert_eq!(report["ended"], "the time was up");
    let receiver = line.start("receiver", "--duration 300ms");
    assert_eq!(receiver.end().1, Some(1), "no frame came in");
    line.leaves_nothing();
}

#[test]
fn a_receiver_that_is_killed_and_started_again_serves_the_next_sender() {
    let Some(line) = Line::new("a_receiver_that_is_killed") else {
        return;
    };
    let switch = line.start("congestion-point", "--forever");
    let mut receiver = line.start("receiver", "--forever");
    let sender = line.start("sender", "--duration 1s");
    thread::sleep(Duration::from_millis(500));
    receiver.child.kill().unwrap();
    receiver.child.wait().unwrap();
    assert_eq!(sender.end().1, Some(0));
    let receiver = line.start("receiver", "--forever");
    let sender = line.start("sender", "--duration 1s");
    assert_eq!(sender.end().1, Some(0));
    receiver.interrupt();
    assert!(sum(&receiver.end().0, "octets_delivered") > 0);
    switch.interrupt();
    assert_eq!(switch.end().1, Some(130));
    line.leaves_nothing();
}

/// Waits until the report of a link's state, which a role writes to standard error each second, would have been written.
const A_WHILE: Duration = Duration::from_millis(1_500);

#[test]
fn a_link_that_goes_down_and_up_and_roles_that_are_killed_and_started_again_take_part_again() {
    let Some(line) = Line::new("a_link_that_goes_down_and_up") else {
        return;
    };
    let words = "--enable-fast-cnp --set mechanism=fast-cnp";
    let receiver = line.start("receiver", &format!("{words} --forever"));
    let mut switch = line.start("congestion-point", &format!("{words} --forever"));
    let sender = line.start("sender", &format!("{words} --duration 20s"));
    thread::sleep(A_WHILE);
    // The sender's interface, and so the switch's: it is without carrier.
    line.0.ip(End::Near, &["link", "set", "near", "down"]);
    thread::sleep(A_WHILE);
    line.0.ip(End::Near, &["link", "set", "near", "up"]);
    thread::sleep(A_WHILE);
    // A receiver that knows nothing of what was before.
    let mut receiver = receiver;
    receiver.child.kill().unwrap();
    receiver.child.wait().unwrap();
    let receiver = line.start("receiver", &format!("{words} --forever"));
    thread::sleep(A_WHILE);
    switch.child.kill().unwrap();
    switch.child.wait().unwrap();
    let switch = line.start("congestion-point", &format!("{words} --forever"));
    let (sender, code) = sender.end();
    assert_eq!(code, Some(0), "{sender:#}");
    switch.interrupt();
    receiver.interrupt();
    let (switch, receiver) = (switch.end().0, receiver.end().0);
    let link = &sender["links"][0]["outages"];
    assert_eq!(link["count"], 1, "{sender:#}");
    assert!(link["seconds"].as_f64().unwrap() > 1.0, "{sender:#}");
    assert_eq!(link["now"], Value::Null, "{sender:#}");
    // All of them took part again.
    assert!(sum(&receiver, "octets_delivered") > 0, "{receiver:#}");
    let told = switch["notified"]["fast_cnp_1"].as_u64().unwrap_or(0);
    assert!(told > 0, "{switch:#}");
    assert!(slowed(&sender, "fast_cnp_1") > 0, "{sender:#}");
    line.leaves_nothing();
}
