//! `fcn-gen emulate` on links: a sender, a bump in the wire and a receiver, each in its own network
//! namespace.

#[path = "../../crates/link/tests/common/netns.rs"]
mod netns;

use netns::{End, Options, Pair};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

/// Interfaces of the roles: the sender at `near` of the first pair, the switch at its `far` and the
/// second pair's `near`, the receiver at the second pair's `far`.
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

    /// Starts a role, and waits until it reports that it has begun.
    fn start(&self, role: &str, words: &str) -> Role {
        let (pair, end, links) = match role {
            "sender" => (&self.0, End::Near, "--iface near"),
            "receiver" => (&self.1, End::Far, "--iface far"),
            _ => (&self.0, End::Far, "--iface far --iface near"),
        };
        start(pair, end, role, &format!("{links} {words}"))
    }

    fn leaves_nothing(&self) {
        assert!(!self.0.has_xdp_program(End::Near));
        assert!(!self.0.has_xdp_program(End::Far));
        assert!(!self.1.has_xdp_program(End::Far));
    }
}

/// A sender, a translator in front of it, a switch and a receiver, each in its own namespace.
struct Chain([Pair; 3]);

impl Chain {
    fn new(name: &str) -> Option<Self> {
        let options = Options::default();
        let pair = || Pair::with(name, &options);
        let pairs = [pair()?, pair()?, pair()?];
        for [left, right] in [[&pairs[0], &pairs[1]], [&pairs[1], &pairs[2]]] {
            let middle = left.namespace(End::Far);
            right.ip(End::Near, &["link", "set", "dev", "near", "netns", middle]);
            left.ip(End::Far, &["link", "set", "dev", "near", "up"]);
            right.wait_for_carrier(End::Far);
        }
        Some(Self(pairs))
    }

    fn start(&self, role: &str, words: &str) -> Role {
        let (pair, end, links) = match role {
            "sender" => (&self.0[0], End::Near, "--iface near"),
            "translator" => (
                &self.0[0],
                End::Far,
                "--iface near=network --iface far=host",
            ),
            "receiver" => (&self.0[2], End::Far, "--iface far"),
            _ => (&self.0[1], End::Far, "--iface far --iface near"),
        };
        start(pair, end, role, &format!("{links} {words}"))
    }

    fn leaves_nothing(&self) {
        for pair in &self.0 {
            assert!(!pair.has_xdp_program(End::Far));
        }
        assert!(!self.0[0].has_xdp_program(End::Near));
    }
}

/// Starts a role, and waits until it reports that it has begun.
fn start(pair: &Pair, end: End, role: &str, words: &str) -> Role {
    let mut command = pair.command(end, env!("CARGO_BIN_EXE_fcn-gen"));
    command.args(["emulate", role]);
    // At a hundredth of the rates, any machine keeps up.
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
    // Standard error is read to its end, otherwise the program would block.
    let rest = thread::spawn(move || {
        let mut rest = Vec::new();
        let _ = err.read_to_end(&mut rest);
        rest
    });
    Role { child, said, rest }
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

    /// Returns its report, and its exit code.
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
fn congestion_at_a_bump_in_the_wire_slows_the_sender() {
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
        // Off by default: the switch marks, and the receiver answers.
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
        // All packets of the sender pass. It need not receive the last of those sent back to it.
        let link = |report: &Value, what: &str| report["links"][0][what].as_u64();
        assert_eq!(link(&sender, "sent"), link(&switch, "received"), "{what}");
        assert!(link(&sender, "received") <= link(&switch, "sent"), "{what}");
        line.leaves_nothing();
    }
}

#[test]
fn translated_fast_cnps_slow_a_sender_that_does_not_know_them() {
    let Some(chain) = Chain::new("translated_fast_cnps") else {
        return;
    };
    for (sets, enable, backend) in [
        ("", "--enable-fast-cnp", "auto"),
        (
            "--set flow.load.rdma_cm=false",
            "--enable-fast-cnp",
            "packet",
        ),
        ("", "", "auto"),
    ] {
        let what = format!("{sets} {enable} {backend}");
        let words = format!("{sets} --backend {backend}");
        let receiver = chain.start("receiver", &format!("{words} --forever"));
        let switch = format!("{words} --enable-fast-cnp --forever");
        let switch = chain.start("congestion-point", &switch);
        let translator = format!("{words} {enable} --forever");
        let translator = chain.start("translator", &translator);
        let sender = chain.start("sender", &format!("{words} --duration 3s"));
        let (sender, code) = sender.end();
        assert_eq!(code, Some(0), "{what}: {sender:#}");
        for role in [&translator, &switch, &receiver] {
            role.interrupt();
        }
        let (translator, switch) = (translator.end().0, switch.end().0);
        let counters = &translator["counters"]["translator"];
        let count = |name: &str| counters[name].as_u64().unwrap();
        let told = switch["notified"]["fast_cnp_1"].as_u64().unwrap_or(0);
        assert!(told > 0, "{what}: {switch:#}");
        let obeyed = slowed(&sender, "cnp");
        if enable.is_empty() {
            assert!(count("disabled") > 0 && count("dropped") == count("disabled"));
            assert_eq!((obeyed, count("translated")), (0, 0), "{what}");
        } else {
            assert!(
                obeyed > 0 && obeyed <= count("translated"),
                "{what}: {translator:#}"
            );
            assert!(count("translated") <= told, "{what}");
            assert_eq!(translator["notified"]["cnp"], count("translated"), "{what}");
            assert_eq!(
                count("inferred") > 0,
                !sets.is_empty(),
                "{what}: {translator:#}"
            );
        }
        assert_eq!(sender["passed_over"]["bad_icrc"], 0, "{what}");
        assert!(sum(&receiver.end().0, "octets_delivered") > 0, "{what}");
        chain.leaves_nothing();
    }
}

#[test]
fn faults_are_injected_and_reported() {
    let Some(line) = Line::new("faults_are_injected") else {
        return;
    };
    for backend in ["auto", "packet"] {
        let words = format!("--enable-fast-cnp --backend {backend}");
        let receiver = line.start("receiver", &format!("{words} --forever"));
        let faults = "--fault qp-wrong --fault loss=5 --fault no-rate-limit";
        let switch = line.start("congestion-point", &format!("{words} {faults} --forever"));
        assert!(String::from_utf8_lossy(&switch.said).contains("fault    loss=5: it loses"));
        let sender = line.start("sender", &format!("{words} --duration 2s"));
        let (sender, code) = sender.end();
        assert_eq!(code, Some(0), "{sender:#}");
        switch.interrupt();
        receiver.interrupt();
        let (switch, _) = switch.end();
        let faults = switch["faults"].as_array().unwrap();
        assert!(faults[0]["frames"].as_u64().unwrap() > 0, "{switch:#}");
        assert!(faults[1]["frames"].as_u64().unwrap() > 0, "{switch:#}");
        assert_eq!(faults[2]["frames"], Value::Null, "{switch:#}");
        // About QPs that the sender does not have; lost packets are sent again.
        assert_eq!(slowed(&sender, "fast_cnp_1"), 0, "{sender:#}");
        assert!(sum(&sender, "packets_again") > 0, "{sender:#}");
        assert!(sum(&receiver.end().0, "octets_delivered") > 0);
        line.leaves_nothing();
    }
}

#[test]
fn sender_without_receiver_fails_with_a_reason() {
    let Some(line) = Line::new("a_sender_without_a_receiver") else {
        return;
    };
    let sender = line.start("sender", "--duration 500ms");
    let (report, code) = sender.end();
    assert_eq!(code, Some(1), "{report:#}");
    assert_eq!(report["ended"], "the time was up");
    let receiver = line.start("receiver", "--duration 300ms");
    assert_eq!(receiver.end().1, Some(1), "no frame was received");
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

/// Time after which the next report of a link's state, written to standard error each second, is
/// available.
const A_WHILE: Duration = Duration::from_millis(1_500);

#[test]
fn links_and_restarted_roles_recover() {
    let Some(line) = Line::new("a_link_that_goes_down_and_up") else {
        return;
    };
    let words = "--enable-fast-cnp --set mechanism=fast-cnp";
    let receiver = line.start("receiver", &format!("{words} --forever"));
    let mut switch = line.start("congestion-point", &format!("{words} --forever"));
    let sender = line.start("sender", &format!("{words} --duration 20s"));
    thread::sleep(A_WHILE);
    // The sender's interface goes down, so the switch's loses its carrier.
    line.0.ip(End::Near, &["link", "set", "near", "down"]);
    thread::sleep(A_WHILE);
    line.0.ip(End::Near, &["link", "set", "near", "up"]);
    thread::sleep(A_WHILE);
    // A restarted receiver without state.
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
    // All of them participated again.
    assert!(sum(&receiver, "octets_delivered") > 0, "{receiver:#}");
    let told = switch["notified"]["fast_cnp_1"].as_u64().unwrap_or(0);
    assert!(told > 0, "{switch:#}");
    assert!(slowed(&sender, "fast_cnp_1") > 0, "{sender:#}");
    line.leaves_nothing();
}

/// Returns the metrics of a role in this namespace once they contain this line; polls a limited
/// number of times.
fn metrics_with(pair: &Pair, end: End, line: &str) -> String {
    pair.inside(end, || {
        let mut page = String::new();
        for _ in 0..200 {
            let mut server = TcpStream::connect("127.0.0.1:9464").unwrap();
            let request = b"GET /metrics HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
            server.write_all(request).unwrap();
            page.clear();
            server.read_to_string(&mut page).unwrap();
            assert!(page.starts_with("HTTP/1.1 200 "), "{page}");
            if page.lines().any(|l| l.starts_with(line)) {
                return page;
            }
            thread::sleep(Duration::from_millis(100));
        }
        panic!("no {line}: {page}")
    })
}

#[test]
fn metrics_are_served_while_a_role_runs() {
    let Some(line) = Line::new("metrics_are_served") else {
        return;
    };
    let words = "--enable-fast-cnp --forever";
    let receiver = line.start("receiver", words);
    let metrics = format!("{words} --prometheus 127.0.0.1:9464");
    let switch = line.start("congestion-point", &metrics);
    let sender = line.start("sender", words);
    let sent = "fcn_gen_notifications_total{kind=\"fast_cnp_1\"} ";
    let page = metrics_with(&line.0, End::Far, sent);
    sender.interrupt();
    switch.interrupt();
    receiver.interrupt();
    for role in [sender, receiver] {
        assert_eq!(role.end().1, Some(130));
    }
    let (switch, code) = switch.end();
    assert_eq!(code, Some(130));
    let value = |name: &str| -> u64 {
        let line = page.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name}: {page}"))
            .parse()
            .unwrap()
    };
    let told = value(sent);
    assert!(told > 0 && Some(told) <= switch["notified"]["fast_cnp_1"].as_u64());
    let came = value("fcn_gen_link_packets_total{interface=\"far\",direction=\"in\"} ");
    assert!(came > 0 && Some(came) <= switch["links"][0]["received"].as_u64());
    assert_eq!(value("fcn_gen_link_up{interface=\"near\"} "), 1);
    line.leaves_nothing();
}

#[test]
fn single_interface_switch_serves_hosts_on_one_link() {
    let Some(pair) = Pair::new("a_switch_on_one_interface") else {
        return;
    };
    let mac = pair
        .mac(End::Far)
        .map(|octet| format!("{octet:02x}"))
        .join(":");
    // Both hosts use the interface at the other end: each accepts frames to its own address.
    let host = format!("--iface near --backend packet --peer-mac {mac} --enable-fast-cnp");
    let receiver = start(&pair, End::Near, "receiver", &format!("{host} --forever"));
    let switch = "--iface far --enable-fast-cnp --forever";
    let switch = start(&pair, End::Far, "congestion-point", switch);
    let sender = start(&pair, End::Near, "sender", &format!("{host} --duration 3s"));
    let (sender, code) = sender.end();
    assert_eq!(code, Some(0), "{sender:#}");
    switch.interrupt();
    receiver.interrupt();
    let ((switch, code), (receiver, other)) = (switch.end(), receiver.end());
    assert_eq!((code, other), (Some(130), Some(130)));
    assert!(sum(&receiver, "octets_delivered") > 0, "{receiver:#}");
    let told = switch["notified"]["fast_cnp_1"].as_u64().unwrap_or(0);
    assert!(told > 0, "{switch:#}");
    let obeyed = slowed(&sender, "fast_cnp_1");
    assert!(obeyed > 0 && obeyed <= told, "{sender:#}");
    assert!(!pair.has_xdp_program(End::Far));
}
