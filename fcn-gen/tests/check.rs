//! `fcn-gen check` on links: `fcn-gen emulate` in one namespace is the device, the check runs in
//! another.

#[path = "../../crates/link/tests/common/netns.rs"]
mod netns;

use netns::{End, Options, Pair};
use serde_json::Value;
use std::io::Read;
use std::process::{Child, Command, Output, Stdio};

/// Slow enough for any machine to keep up.
const SPEED: [&str; 2] = ["--speed", "0.05"];
/// Slower still, for tests in which notifications have to be sent on time.
const SLOW: [&str; 2] = ["--speed", "0.005"];

/// The device's interfaces, in the order of its links.
const BOTH_LINKS: &str = "--iface far --iface near";

/// Two links between two namespaces: the check has `near` and `far`, the device `far` and `near`.
struct Bench(
    Pair,
    #[allow(
        dead_code,
        reason = "its namespaces have the second link until it is dropped"
    )]
    Pair,
);

impl Bench {
    fn new(name: &str) -> Option<Self> {
        let options = Options::default();
        let (first, second) = (Pair::with(name, &options)?, Pair::with(name, &options)?);
        let device = first.namespace(End::Far);
        second.ip(End::Near, &["link", "set", "dev", "near", "netns", device]);
        let check = first.namespace(End::Near);
        second.ip(End::Far, &["link", "set", "dev", "far", "netns", check]);
        first.ip(End::Far, &["link", "set", "dev", "near", "up"]);
        first.ip(End::Near, &["link", "set", "dev", "far", "up"]);
        for (end, link) in [(End::Near, "far"), (End::Far, "near")] {
            let file = format!("/sys/class/net/{link}/operstate");
            let up = || std::fs::read_to_string(&file).is_ok_and(|state| state.trim() == "up");
            first.inside(end, || while !up() {});
        }
        Some(Self(first, second))
    }

    /// Starts a congestion point, and waits until it runs.
    fn device(&self, words: &str) -> Child {
        self.plays(&format!("congestion-point {BOTH_LINKS} {words}"), SPEED)
    }

    /// Starts a role, and waits until it runs.
    fn plays(&self, words: &str, speed: [&str; 2]) -> Child {
        let mut command = self.0.command(End::Far, env!("CARGO_BIN_EXE_fcn-gen"));
        command.args(["emulate", "--forever"]);
        command.args(speed).args(words.split_whitespace());
        command.stdout(Stdio::null());
        once_ready(&mut command)
    }

    fn command(&self, words: &str) -> Command {
        self.checks(&format!(
            "congestion-point --iface near --iface far {words}"
        ))
    }

    fn checks(&self, words: &str) -> Command {
        let mut command = self.0.command(End::Near, env!("CARGO_BIN_EXE_fcn-gen"));
        command.args(["check", "--json"]);
        command.args(words.split_whitespace());
        command
    }

    /// Returns the report of a check, and its exit code.
    fn check(&self, words: &str) -> (Value, Option<i32>) {
        report(self.command(words).args(SPEED).output().unwrap())
    }
}

/// Starts a command, and waits until it runs.
fn once_ready(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let err = child.stderr.as_mut().unwrap();
    let (mut said, mut octet) = (Vec::new(), [0]);
    while !said.ends_with(b"Ctrl-C\n") && err.read(&mut octet).unwrap() == 1 {
        said.push(octet[0]);
    }
    child
}

fn report(done: Output) -> (Value, Option<i32>) {
    let said = String::from_utf8_lossy(&done.stderr);
    let report = serde_json::from_slice(&done.stdout);
    (
        report.unwrap_or_else(|error| panic!("{error}: {said}")),
        done.status.code(),
    )
}

fn interrupt(child: &Child) {
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &id])
            .status()
            .unwrap()
            .success()
    );
}

fn end(mut device: Child) {
    interrupt(&device);
    device.wait().unwrap();
}

fn with(report: &Value, result: &str) -> Vec<String> {
    let tests = report["tests"].as_array().unwrap().iter();
    let those = tests.filter(|test| test["result"] == result);
    those
        .map(|test| test["id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn congestion_point_passes_and_a_broken_one_fails() {
    let Some(bench) = Bench::new("a_congestion_point_is_passed") else {
        return;
    };
    let device = bench.device("--enable-fast-cnp");
    let (report, code) = bench.check("");
    assert_eq!(with(&report, "failed"), [""; 0], "{report:#}");
    let tests = report["tests"].as_array().unwrap().iter();
    for test in tests.filter(|test| test["result"] == "not_tested") {
        let why = test["why"].as_str().unwrap_or_default();
        assert!(why.contains("this machine was late"), "{test:#}");
    }
    assert_eq!(code, Some(0));
    assert_eq!(report["verdict"], "passed");
    assert!(report["passed"].as_u64().unwrap() > 40, "{report:#}");
    let latency = &report["latency"][0];
    assert!(
        latency["count"].as_u64() > Some(100) && latency["p50_ns"].as_u64() > Some(0),
        "{latency:#}"
    );
    let (report, code) = bench.check("--off");
    assert_eq!(
        (with(&report, "failed"), code),
        (vec!["fastcnp.off_by_default".to_owned()], Some(4))
    );
    end(device);

    let device = bench.device("--enable-fast-cnp --set switch.switch.limits.interval=0ns");
    let folder = tempfile::tempdir().unwrap();
    let (report, code) = bench.check(&format!("-o {}", folder.path().display()));
    assert_eq!(
        (with(&report, "failed"), code),
        (vec!["fastcnp.rate.exceeded".to_owned()], Some(4)),
        "{report:#}"
    );
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert_eq!(
        serde_json::from_slice::<Value>(&read("report.json")).unwrap(),
        report
    );
    let page = String::from_utf8(read("report.html")).unwrap();
    let (_, block) = page.split_once("id=\"data\">").unwrap();
    let data = block.split_once("</script>").unwrap().0;
    assert_eq!(serde_json::from_str::<Value>(data).unwrap(), report);
    let junit = String::from_utf8(read("junit.xml")).unwrap();
    assert!(
        junit.contains("failures=\"1\"")
            && junit.contains("name=\"fastcnp.rate.exceeded\"><failure"),
        "{junit}"
    );
    let packets = read("packets.pcapng");
    let comment = b"fastcnp.rate.exceeded failed: ";
    assert!(
        packets
            .windows(comment.len())
            .any(|octets| octets == comment)
    );
    end(device);

    let device = bench.device("");
    let (report, code) = bench.check("--off");
    assert_eq!(
        (with(&report, "passed").len(), code),
        (1, Some(0)),
        "{report:#}"
    );
    end(device);
}

#[test]
fn missing_device_and_interrupt_are_reported() {
    let Some(bench) = Bench::new("without_a_device") else {
        return;
    };
    let (report, code) = bench.check("--only fastcnp --strict");
    assert_eq!(
        (report["passed"].as_u64(), report["failed"].as_u64(), code),
        (Some(0), Some(0), Some(3))
    );
    assert_eq!(report["verdict"], "inconclusive");
    let child = begun(&bench);
    interrupt(&child);
    let (report, code) = report_of(child);
    assert_eq!(
        (report["ended"].as_str(), code),
        (Some("interrupted"), Some(130)),
        "{report:#}"
    );
}

/// Starts a check, and waits until it is in its main step.
fn begun(bench: &Bench) -> Child {
    let mut command = bench.command("--speed 0.001");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (mut said, mut octet) = (Vec::new(), [0]);
    let err = child.stderr.as_mut().unwrap();
    while !said.ends_with(b"\neach") && err.read(&mut octet).unwrap() == 1 {
        said.push(octet[0]);
    }
    child
}

#[test]
fn link_down_ends_a_check() {
    let Some(bench) = Bench::new("a_link_that_goes_down_ends") else {
        return;
    };
    let device = bench.device("--enable-fast-cnp");
    let child = begun(&bench);
    bench
        .0
        .ip(End::Near, &["link", "set", "dev", "far", "down"]);
    let (report, code) = report_of(child);
    let ended = report["ended"].as_str().unwrap();
    assert!(ended.starts_with("far: it was set down: "), "{ended}");
    assert_eq!(code, Some(1));
    end(device);
}

fn report_of(child: Child) -> (Value, Option<i32>) {
    report(child.wait_with_output().unwrap())
}

#[test]
fn other_roles_pass_on_links() {
    let Some(bench) = Bench::new("every_other_role_is_passed") else {
        return;
    };
    for (role, links, enable, sets) in [
        ("receiver", 1, "", "--set mechanism=cnp"),
        (
            "proxy",
            2,
            "--enable-proxy",
            "--config proxy --set host.s.count=1 --set mtu=1024",
        ),
        (
            "ingress-pe",
            2,
            "--enable-wan-fcn",
            "--config wan-fcn --node pe1 --set senders=1 --set mtu=1024",
        ),
    ] {
        let [device, check] = match links {
            1 => ["--iface far", "--iface near"],
            _ => [BOTH_LINKS, "--iface near --iface far"],
        };
        let device = bench.plays(&format!("{role} {device} {enable} {sets}"), SLOW);
        let mut command = bench.checks(&format!("{role} {check} {sets}"));
        let (report, code) = report(command.args(SLOW).output().unwrap());
        end(device);
        assert_eq!(with(&report, "failed"), [""; 0], "{role}: {report:#}");
        assert!(passed_or_late(&report, code), "{role}: {report:#}");
    }
    // A sender begins by itself, so its peer has to be started first.
    let sets = "--set flows=4 --set mechanism=fast-cnp";
    let mut command = bench.checks(&format!("sender --iface near {sets}"));
    let check = once_ready(command.args(SLOW).stdout(Stdio::piped()));
    let device = bench.plays(
        &format!("sender --iface far --enable-fast-cnp {sets}"),
        SLOW,
    );
    let (report, code) = report_of(check);
    end(device);
    assert_eq!(with(&report, "failed"), [""; 0], "{report:#}");
    assert!(passed_or_late(&report, code), "{report:#}");
}

/// Returns true if a device passed, or if this machine was too slow to judge its core tests.
fn passed_or_late(report: &Value, code: Option<i32>) -> bool {
    let mut tests = report["tests"].as_array().unwrap().iter();
    let why = |test: &Value| test["why"].as_str().unwrap_or_default().to_owned();
    match code {
        Some(0) => report["passed"].as_u64() > Some(5),
        Some(3) => tests.any(|test| test["core"] == true && why(test).contains("machine was late")),
        _ => false,
    }
}
