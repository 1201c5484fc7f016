//! Live capture over veth pairs: counts, interfaces that go away, and the remaining privileges of
//! the process.
#![cfg(target_os = "linux")]

mod common;
#[path = "../../crates/link/tests/common/netns.rs"]
mod netns;

use common::{Done, PROGRAM, alone, read, top, totals, truths};
use fcn_wire::Profile;
use fcn_wire::emit::{Encapsulation, MirroredFrame};
use netns::{End, Options, Pair};
use pcap::Capture;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Generous, because the machine may be busy. A hang would last forever.
const HANG: Duration = Duration::from_secs(30);
/// An unprivileged user.
const NOBODY: &str = "65534";

/// The running program.
struct Running {
    child: Child,
    err: BufReader<ChildStderr>,
    stderr: String,
}

impl Running {
    /// Starts a command and waits until it captures.
    fn start(mut command: Command) -> Self {
        let mut running = Self::spawn(&mut command);
        while !running.stderr.contains("capturing on") {
            let read = running.err.read_line(&mut running.stderr).unwrap();
            assert!(read > 0, "it ended: {}", running.stderr);
        }
        running
    }

    /// Starts a command.
    fn spawn(command: &mut Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let err = BufReader::new(child.stderr.take().unwrap());
        let stderr = String::new();
        Self { child, err, stderr }
    }

    fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end.
    fn end(mut self) -> Done {
        let begun = Instant::now();
        let id = self.id();
        let watching = thread::spawn(move || {
            while begun.elapsed() < HANG {
                thread::sleep(Duration::from_millis(50));
                if !fs::exists(format!("/proc/{id}")).unwrap_or(false) {
                    return;
                }
            }
            let _ = kill_process(Pid::from_raw(id as i32).unwrap(), Signal::KILL);
        });
        self.err.read_to_string(&mut self.stderr).unwrap();
        let output = self.child.wait_with_output().unwrap();
        watching.join().unwrap();
        let mut done = Done::from_output(&output);
        done.err = self.stderr;
        done
    }

    /// Presses Ctrl-C once everything sent has had time to arrive.
    fn interrupt(self) -> Done {
        thread::sleep(Duration::from_millis(300));
        self.signal(Signal::INT)
    }

    fn signal(self, signal: Signal) -> Done {
        kill_process(Pid::from_raw(self.id() as i32).unwrap(), signal).unwrap();
        self.end()
    }
}

/// Returns a command that runs the program at the far end.
fn far(pair: &Pair, options: &str) -> Command {
    let mut command = pair.command(End::Far, PROGRAM);
    command.args(options.split_whitespace());
    alone(&mut command);
    command
}

fn watch(pair: &Pair, options: &str) -> Running {
    Running::start(far(pair, &format!("-i far {options}")))
}

/// Sends frames from the near end.
fn send<'a>(pair: &Pair, frames: impl IntoIterator<Item = &'a [u8]> + Send) {
    pair.inside(End::Near, || {
        let mut socket = Capture::from_device(pair.interface(End::Near))
            .unwrap()
            .open()
            .unwrap();
        for frame in frames {
            socket.sendpacket(frame).unwrap();
        }
    });
}

fn pair(name: &str) -> Option<Pair> {
    let options = Options {
        mtu: 9_000,
        ..Options::default()
    };
    Pair::with(name, &options)
}

/// Returns the frames of a sample capture.
fn frames(name: &str) -> Vec<Vec<u8>> {
    read(&common::captures().join(name))
        .into_iter()
        .map(|(_, _, octets)| octets)
        .collect()
}

/// Returns copies of a CNP of a sample, as an arbitrary notification.
fn cnps(count: usize) -> Vec<Vec<u8>> {
    let all = frames("receiver-cnp-ipv4.pcapng");
    // BTH opcode 0x81, after Ethernet, IPv4 and UDP.
    let cnp = all
        .iter()
        .find(|frame| frame.get(42) == Some(&0x81))
        .expect("a CNP");
    vec![cnp.clone(); count]
}

fn slices(frames: &[Vec<u8>]) -> impl Iterator<Item = &[u8]> + Send {
    frames.iter().map(Vec::as_slice)
}

fn notified(done: &Done) -> u64 {
    totals(done.json()["rows"].as_array().unwrap(), "total")
        .values()
        .sum()
}

/// Returns the names of the events.
fn events(done: &Done) -> Vec<String> {
    done.json()["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["what"].as_str().unwrap().to_owned())
        .collect()
}

fn wait_for(what: &str, is: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < HANG, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn every_scenario_is_counted_as_the_generator_says() {
    let Some(pair) = pair("scenarios") else {
        return;
    };
    for truth in truths() {
        let frames: Vec<Vec<u8>> = read(&truth.capture)
            .into_iter()
            .map(|(_, _, octets)| octets)
            .collect();
        let running = watch(&pair, "--json");
        send(&pair, slices(&frames));
        let done = running.interrupt().with(130);
        let json = done.json();
        let interface = &json["interfaces"][0];
        assert_eq!(interface["dropped_kernel"], 0, "{}", truth.name);
        assert_eq!(interface["dropped_interface"], 0, "{}", truth.name);
        assert_eq!(
            totals(json["rows"].as_array().unwrap(), "total"),
            totals(&truth.notifications, "total"),
            "{}",
            truth.name
        );
        println!(
            "{}: {} of {} packets, {} notifications",
            truth.name,
            interface["received"],
            frames.len(),
            interface["notifications"]
        );
    }
}

/// Through the kernel's filter, from a real interface.
#[test]
fn mirrored_packets_count_like_the_originals() {
    let Some(pair) = pair("mirrors") else {
        return;
    };
    let truth = truths().into_iter().find(|truth| truth.name == "fast-cnp");
    let truth = truth.expect("the scenario's truth");
    let frames = read(&truth.capture);
    for encapsulation in Encapsulation::ALL {
        let name = encapsulation.id();
        let copies: Vec<Vec<u8>> = (frames.iter())
            .map(|(place, at, frame)| {
                let exporter = Ipv4Addr::new(192, 0, 2, *place as u8 + 1);
                let copied = MirroredFrame {
                    encapsulation,
                    source: exporter.into(),
                    destination: Ipv4Addr::new(192, 0, 2, 254).into(),
                    session: 17,
                    port: 1,
                    sequence: 1,
                    at: *at,
                };
                let mut copy = vec![0; frame.len() + MirroredFrame::MAX_HEADERS];
                let result = copied.write(frame, frame.len(), &Profile::DEFAULT, &mut copy);
                let (len, _) = result.unwrap().expect("an IP packet");
                copy.truncate(len);
                copy
            })
            .collect();
        let running = watch(&pair, "--json --per-interface");
        send(&pair, slices(&copies));
        let json = running.interrupt().with(130).json();
        let rows = json["rows"].as_array().unwrap();
        assert_eq!(
            totals(rows, "total"),
            totals(&truth.notifications, "total"),
            "{name}"
        );
        let mirrored = name.starts_with("erspan");
        for row in rows {
            let seen_on = row["interface"].as_str().unwrap();
            assert_eq!(seen_on.starts_with("far/erspan"), mirrored, "{seen_on}");
        }
    }
}

#[test]
fn tagged_packets_pass_and_irrelevant_ones_do_not() {
    let Some(pair) = pair("tags") else { return };
    let plain = cnps(1).remove(0);
    let tagged = |tags: &[u16]| {
        let mut frame = plain[..12].to_vec();
        for (i, kind) in tags.iter().enumerate() {
            frame.extend(kind.to_be_bytes());
            frame.extend([0, 7 + i as u8]);
        }
        frame.extend(&plain[12..]);
        frame
    };
    let mut http = plain.clone();
    http[23] = 6;
    let mut dns = plain.clone();
    dns[36..38].copy_from_slice(&53u16.to_be_bytes());
    let frames = [
        plain.clone(),
        tagged(&[0x8100]),
        tagged(&[0x88A8, 0x8100]),
        tagged(&[0x8100, 0x8100]),
        http,
        dns,
    ];
    let running = watch(&pair, "--json");
    send(&pair, slices(&frames));
    let done = running.interrupt().with(130);
    assert_eq!(notified(&done), 4, "{done:?}");
    assert_eq!(done.json()["interfaces"][0]["received"], 4);
    let running = watch(&pair, "--json --no-kernel-filter");
    send(&pair, slices(&frames));
    let done = running.interrupt().with(130);
    assert_eq!(notified(&done), 4);
    assert_eq!(done.json()["interfaces"][0]["received"], 6);
    // A user's expression combined in the kernel, and one that has to be evaluated here.
    for (filter, expected) in [
        ("ip proto 17 and not udp port 53", 2),
        ("vlan", 3),
        ("vlan and vlan", 2),
        ("tcp", 0),
    ] {
        let mut command = far(&pair, "-i far --json --filter");
        command.arg(filter);
        let running = Running::start(command);
        send(&pair, slices(&frames));
        let done = running.interrupt().with(130);
        assert_eq!(notified(&done), expected, "{filter}");
    }
}

#[test]
fn capture_resumes_after_an_interface_was_down() {
    let Some(pair) = pair("down") else { return };
    let running = watch(&pair, "--json");
    let frames = cnps(5);
    send(&pair, slices(&frames));
    thread::sleep(Duration::from_millis(200));
    pair.ip(End::Far, &["link", "set", "far", "down"]);
    thread::sleep(Duration::from_millis(500));
    pair.ip(End::Far, &["link", "set", "far", "up"]);
    pair.wait_for_carrier(End::Far);
    pair.wait_for_carrier(End::Near);
    thread::sleep(Duration::from_millis(300));
    send(&pair, slices(&frames));
    let done = running.interrupt().with(130);
    assert_eq!(notified(&done), 10, "{done:?}");
    assert_eq!(done.json()["interfaces"][0]["state"], "up");
    let events = events(&done);
    assert!(events.contains(&"interface.down".to_owned()), "{events:?}");
    assert!(events.contains(&"interface.up".to_owned()), "{events:?}");
    for message in ["warning: far: it was set down", "note: far: it is back"] {
        assert!(done.err.contains(message), "{message}: {done:?}");
    }
}

#[test]
fn an_interface_down_at_first_is_awaited_and_privileges_are_dropped() {
    let Some(pair) = pair("down at first") else {
        return;
    };
    pair.ip(End::Far, &["link", "set", "far", "down"]);
    let done = watch(&pair, "--json --duration 500ms").end().with(1);
    assert!(done.err.contains("far is down"), "{done:?}");
    let running = watch(&pair, "--json");
    assert!(running.stderr.contains("CAP_NET_RAW"), "{}", running.stderr);
    assert!(effective(running.id()).iter().any(|set| *set != 0));
    pair.ip(End::Far, &["link", "set", "far", "up"]);
    pair.wait_for_carrier(End::Far);
    pair.wait_for_carrier(End::Near);
    let id = running.id();
    wait_for("rights are given up", || {
        effective(id).iter().all(|set| *set == 0)
    });
    send(&pair, slices(&cnps(3)));
    let done = running.interrupt().with(130);
    assert_eq!(notified(&done), 3, "{done:?}");
    for (message, is) in [
        ("it is down: waiting", true),
        ("it is up, and captured from", true),
        ("was set down", false),
        ("is back", false),
    ] {
        assert_eq!(done.err.contains(message), is, "{message}: {done:?}");
    }
}

/// Creates the pair's interfaces again, after one was deleted.
fn join_again(pair: &Pair) {
    pair.ip(
        End::Near,
        &[
            "link",
            "add",
            "near",
            "type",
            "veth",
            "peer",
            "name",
            "far",
            "netns",
            pair.namespace(End::Far),
        ],
    );
    for (end, name) in [(End::Near, "near"), (End::Far, "far")] {
        pair.ip(end, &["link", "set", name, "up"]);
    }
    for end in End::BOTH {
        pair.wait_for_carrier(end);
    }
}

#[test]
fn a_deleted_interface_is_gone_and_opened_again_where_rights_allow() {
    for (options, expected) in [("--json --keep-privileges", 7), ("--json", 3)] {
        let Some(pair) = pair("deleted") else { return };
        let running = watch(&pair, options);
        send(&pair, slices(&cnps(3)));
        thread::sleep(Duration::from_millis(200));
        pair.ip(End::Far, &["link", "del", "far"]);
        thread::sleep(Duration::from_millis(300));
        join_again(&pair);
        thread::sleep(Duration::from_millis(800));
        send(&pair, slices(&cnps(4)));
        let done = running.interrupt().with(130);
        assert_eq!(notified(&done), expected, "{options}: {done:?}");
        let events = events(&done);
        assert!(events.contains(&"interface.gone".to_owned()), "{events:?}");
        // The wording depends on which check comes first.
        let words = ["it is gone", "The interface disappeared"];
        let found = words.map(|words| done.err.contains(&format!("warning: far: {words}")));
        assert!(found.contains(&true), "{done:?}");
        let json = done.json();
        let interface = &json["interfaces"][0];
        if expected == 7 {
            // Gone for good: not even a requested end is a success.
            let running = watch(&pair, "--json --duration 1s");
            pair.ip(End::Far, &["link", "del", "far"]);
            let done = running.end().with(1);
            assert!(done.err.contains("far is gone"), "{done:?}");
            assert_eq!(interface["state"], "up");
            assert!(events.contains(&"interface.up".to_owned()), "{events:?}");
        } else {
            assert_eq!(interface["state"], "gone");
            let about = interface["about"].as_str().unwrap();
            assert!(about.contains("--keep-privileges"), "{about}");
        }
    }
}

/// Returns the capability sets of all threads of the process.
fn effective(process: u32) -> Vec<u64> {
    let mut sets = Vec::new();
    for task in fs::read_dir(format!("/proc/{process}/task")).unwrap() {
        let status = fs::read_to_string(task.unwrap().path().join("status")).unwrap_or_default();
        for line in status.lines() {
            let set = ["CapEff:", "CapPrm:", "CapInh:", "CapAmb:"]
                .iter()
                .find_map(|name| line.strip_prefix(name));
            sets.extend(set.map(|set| u64::from_str_radix(set.trim(), 16).unwrap()));
        }
    }
    assert!(!sets.is_empty());
    sets
}

fn status(process: u32, name: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.expect("a line").trim().to_owned()
}

#[test]
fn privileges_are_dropped_once_the_handles_are_open() {
    let Some(pair) = pair("privileges") else {
        return;
    };
    let running = watch(&pair, "--json");
    let id = running.id();
    assert!(effective(id).iter().all(|set| *set == 0));
    assert_eq!(status(id, "NoNewPrivs:"), "1");
    assert_eq!(u64::from_str_radix(&status(id, "CapBnd:"), 16), Ok(0));
    send(&pair, slices(&cnps(3)));
    let done = running.interrupt().with(130);
    assert_eq!(notified(&done), 3);
    let about = done.json()["interfaces"][0]["about"].to_string();
    assert!(about.contains("privileges dropped"), "{about}");

    // Under sudo it continues as the calling user.
    let mut command = far(&pair, "-i far --json");
    command.env("SUDO_UID", NOBODY).env("SUDO_GID", NOBODY);
    let running = Running::start(command);
    let id = running.id();
    assert!(effective(id).iter().all(|set| *set == 0));
    let ids = [NOBODY; 4].join("\t");
    assert_eq!(status(id, "Uid:"), ids);
    assert_eq!(status(id, "Gid:"), ids);
    assert_eq!(status(id, "Groups:"), NOBODY);
    send(&pair, slices(&cnps(2)));
    let done = running.interrupt().with(130);
    assert_eq!(notified(&done), 2);
    assert_eq!(done.json()["interfaces"][0]["dropped_kernel"], 0);

    let running = watch(&pair, "--json --keep-privileges");
    assert!(effective(running.id()).iter().any(|set| *set != 0));
    running.interrupt().with(130);

    // A privileged port is bound before privileges are dropped.
    let mut command = far(&pair, "-i far --json --prometheus 0.0.0.0:80");
    command.env("SUDO_UID", NOBODY).env("SUDO_GID", NOBODY);
    let running = Running::start(command);
    assert!(effective(running.id()).iter().all(|set| *set == 0));
    let done = running.interrupt().with(130);
    assert!(
        done.err.contains("metrics at http://0.0.0.0:80/"),
        "{done:?}"
    );
}

/// Replaces a file atomically, so that no reader gets half of one.
fn replace(file: &Path, text: &str) {
    let new = file.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(&new, file).unwrap();
}

/// A NIC from a recorded sysfs tree, with more CNPs sent to it than it reports as handled.
#[test]
fn nic_counters_are_compared_with_captured_cnps() {
    let Some(pair) = pair("nic") else {
        return;
    };
    let cnps = cnps(100);
    let told: [u8; 4] = cnps[0][30..34].try_into().unwrap();
    let gid = Ipv4Addr::from(told).to_ipv6_mapped().segments();
    let gid = gid.map(|group| format!("{group:04x}")).join(":");
    let class = tempfile::tempdir().unwrap();
    let port = class.path().join("infiniband/mlx5_0/ports/1");
    for (file, text) in [
        ("gid_attrs/types/0", "RoCE v2"),
        ("gid_attrs/ndevs/0", pair.interface(End::Far)),
        ("gids/0", &gid),
        ("hw_counters/rp_cnp_handled", "70000"),
        ("hw_counters/rp_cnp_ignored", "3"),
    ] {
        let file = port.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let device = class.path().join("infiniband/mlx5_0/device");
    fs::create_dir_all(&device).unwrap();
    std::os::unix::fs::symlink("/bus/drivers/mlx5_core", device.join("driver")).unwrap();

    // Without RDMA netlink, an address of the port identifies the interface as the port's.
    let mut ip = pair.command(End::Far, "ip");
    let told = Ipv4Addr::from(told);
    ip.args(["addr", "add", &format!("{told}/32"), "dev", "far"]);
    assert!(ip.status().unwrap().success());
    // The mount is private to this command.
    let mut command = pair.command(End::Far, "sh");
    command.args(["-c", "mount --bind \"$0\" /sys/class && exec \"$@\""]);
    command.arg(class.path()).arg(PROGRAM);
    command.args(["-i", "far", "--json", "--prometheus", "127.0.0.1:9464"]);
    alone(&mut command);
    let running = Running::start(command);
    // Captured packets are reported once there is a second reading to compare with.
    wait_for("a second reading", || {
        let page = pair.inside(End::Far, || {
            let mut stream = TcpStream::connect("127.0.0.1:9464").ok()?;
            write!(
                stream,
                "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
            )
            .ok()?;
            let mut page = String::new();
            stream.read_to_string(&mut page).ok().map(|_| page)
        });
        page.is_some_and(|page| page.contains("\nfcn_top_infiniband_seen_total{"))
    });
    send(&pair, slices(&cnps));
    replace(&port.join("hw_counters/rp_cnp_handled"), "70040");
    let done = running.interrupt().with(130);
    let json = done.json();
    let counters: Vec<_> = json["counters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            (
                one["counter"].as_str(),
                one["growth"].as_u64(),
                one["seen"].as_u64(),
            )
        })
        .collect();
    let expected = [
        (Some("rp_cnp_handled"), Some(40), Some(100)),
        (Some("rp_cnp_ignored"), Some(0), Some(100)),
    ];
    assert_eq!(counters, expected);
    assert_eq!(notified(&done), 100);
}

#[test]
fn missing_privileges_are_reported_with_advice() {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]);
    command.args([PROGRAM, "-i", "lo", "--json"]);
    alone(&mut command);
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            fcn_skip::skipped!("rights: setpriv does not run: {error}");
            return;
        }
    };
    let done = Done::from_output(&output);
    if done.err.starts_with("setpriv:") {
        fcn_skip::skipped!("rights: {}", done.err.trim());
        return;
    }
    let done = done.with(1);
    for part in [
        "cannot capture: lo: not permitted: this process lacks CAP_NET_RAW",
        "\n  1. run it as root",
        "sudo setcap cap_net_raw+ep /",
        "\n  2. or grant them",
        "\n  3. or read from a permitted program",
        "tcpdump -i lo -U -w - | ",
    ] {
        assert!(done.err.contains(part), "{part}: {}", done.err);
    }
    assert_eq!(done.out, "");
}

#[test]
fn a_private_run_does_not_name_interfaces() {
    let Some(pair) = pair("private") else { return };
    let (name, address) = ("v192.0.2.77", "192.0.2.77");
    let add = ["link", "add", name, "type", "veth", "peer", "name", "peer"];
    pair.ip(End::Far, &add);
    pair.ip(End::Far, &["link", "set", name, "up"]);
    let start = |ifaces: &str| far(&pair, &format!("{ifaces} --json --privacy"));
    // Only requested interfaces are named if they do not exist.
    let done = Running::spawn(&mut start("-i v192.0.2.78")).end().with(2);
    let wrong = "cannot capture: v192.0.2.78: no such interface\n";
    assert!(done.err.ends_with(wrong), "{}", done.err);
    let running = Running::start(start(&format!("-i far -i {name}")));
    pair.ip(End::Far, &["link", "set", name, "down"]);
    thread::sleep(Duration::from_millis(500));
    pair.ip(End::Far, &["link", "delete", name]);
    thread::sleep(Duration::from_millis(500));
    let done = running.interrupt().with(130);
    assert!(!done.err.contains(address), "{}", done.err);
    assert!(!done.out.contains(address), "{}", done.out);
    for message in [
        "capturing on 2 interfaces; ",
        "warning: #1: it was set down",
    ] {
        assert!(done.err.contains(message), "{message}: {}", done.err);
    }
    let interfaces = done.json()["events"].to_string();
    assert!(interfaces.contains("\"interface\":\"#1\""), "{interfaces}");
}

#[test]
fn an_interface_that_is_not_there_is_a_wrong_option() {
    let done = top(["-i", "no-such-if0", "--json"]).with(2);
    assert!(
        done.err.contains("no-such-if0: no such interface"),
        "{done:?}"
    );
    let done = top(["-i", "la", "--json"]).with(2);
    assert!(done.err.contains("did you mean lo?"), "{done:?}");
}

#[test]
fn intervals_end_by_the_clock_without_packets() {
    let Some(pair) = pair("intervals") else {
        return;
    };
    let running = watch(&pair, "--jsonl --interval 200ms");
    send(&pair, slices(&cnps(6)));
    thread::sleep(Duration::from_millis(1_500));
    send(&pair, slices(&cnps(4)));
    let done = running.interrupt().with(130);
    let lines = done.lines();
    assert!(lines.len() >= 5, "{done:?}");
    let mut counts = 0;
    let mut last = 0;
    for line in &lines {
        let (from, to) = (line["from"].as_u64().unwrap(), line["to"].as_u64().unwrap());
        assert_eq!((from % 200_000_000, to - from), (0, 200_000_000));
        assert!(from >= last, "{from} {last}");
        last = to;
        counts += totals(line["rows"].as_array().unwrap(), "count")
            .values()
            .sum::<u64>();
    }
    assert_eq!(counts, 10);
    assert!(
        lines
            .iter()
            .any(|line| line["rows"].as_array().unwrap().is_empty())
    );
}

#[test]
fn limits_and_signals_end_a_run_as_they_should() {
    let Some(pair) = pair("limits") else { return };
    // By time, without packets. Also if only metrics are served.
    let done = watch(&pair, "--prometheus 0.0.0.0:0 --duration 300ms")
        .end()
        .well();
    assert_eq!(done.out, "");
    let done = watch(&pair, "--report --duration 300ms").end().well();
    assert!(done.out.contains("No packet was captured"), "{done:?}");
    // By number, exactly.
    let running = watch(&pair, "--json --count 5");
    send(&pair, slices(&cnps(20)));
    let done = running.end().well();
    assert_eq!(notified(&done), 5);
    for (signal, options) in [
        (Signal::INT, "--report"),
        (Signal::TERM, "--csv"),
        (Signal::INT, "--audit"),
    ] {
        let done = watch(&pair, options).signal(signal).with(130);
        assert!(
            !done.out.is_empty() && done.err.contains("interrupted"),
            "{done:?}"
        );
    }
}

#[test]
fn several_interfaces_are_counted_separately_on_request() {
    let Some(pair) = pair("several") else { return };
    pair.ip(
        End::Far,
        &["link", "add", "one", "type", "veth", "peer", "name", "two"],
    );
    for name in ["one", "two"] {
        pair.ip(End::Far, &["link", "set", name, "up"]);
    }
    let frames = cnps(4);
    for (options, rows) in [("", 1), ("--per-interface", 2)] {
        let running = watch(&pair, &format!("-i two --json {options}"));
        send(&pair, slices(&frames));
        pair.inside(End::Far, || {
            let mut socket = Capture::from_device("one").unwrap().open().unwrap();
            for frame in &frames[..3] {
                socket.sendpacket(&frame[..]).unwrap();
            }
        });
        let done = running.interrupt().with(130);
        assert_eq!(notified(&done), 7, "{done:?}");
        let json = done.json();
        assert_eq!(json["rows"].as_array().unwrap().len(), rows);
        let received: Vec<_> = json["interfaces"]
            .as_array()
            .unwrap()
            .iter()
            .map(|i| i["received"].as_u64())
            .collect();
        assert_eq!(received, [Some(4), Some(3)]);
    }
}

#[test]
fn capture_on_all_interfaces_counts_each_of_them() {
    let Some(pair) = pair("any") else { return };
    for options in ["", "--per-interface"] {
        pair.ip(
            End::Far,
            &["link", "add", "one", "type", "veth", "peer", "name", "two"],
        );
        for name in ["one", "two"] {
            pair.ip(End::Far, &["link", "set", name, "up"]);
        }
        let running = Running::start(far(&pair, &format!("-i any --json {options}")));
        let frames = cnps(4);
        send(&pair, slices(&frames));
        thread::sleep(Duration::from_millis(50));
        // Captured on both interfaces of their path: copies, unless interfaces are counted
        // separately.
        pair.inside(End::Far, || {
            let mut socket = Capture::from_device("one").unwrap().open().unwrap();
            for frame in &frames[..3] {
                socket.sendpacket(&frame[..]).unwrap();
            }
        });
        let done = running.interrupt().with(130);
        // Only now: on a busy machine it would be gone before its name is looked up.
        pair.ip(End::Far, &["link", "del", "one"]);
        let json = done.json();
        let received = |name: &str| {
            let all = json["interfaces"].as_array().unwrap();
            let found = all.iter().find(|interface| interface["name"] == name);
            found.map(|interface| interface["received"].as_u64().unwrap())
        };
        let all = ["any", "far", "one", "two"].map(received);
        assert_eq!(all, [Some(0), Some(4), Some(3), Some(3)], "{done:?}");
        let rows = json["rows"].as_array().unwrap();
        let mut seen: Vec<(String, u64)> = (rows.iter())
            .map(|row| {
                (
                    row["interface"].as_str().unwrap().to_owned(),
                    row["total"].as_u64().unwrap(),
                )
            })
            .collect();
        seen.sort();
        if options.is_empty() {
            assert_eq!(seen, [("far,one,two".to_owned(), 7)]);
        } else {
            let expected = [("far", 4), ("one", 3), ("two", 3)];
            assert_eq!(seen, expected.map(|(name, total)| (name.to_owned(), total)));
        }
        assert_eq!(json["totals"]["notifications"]["cnp"], 7, "{done:?}");
    }
    let done = top(["-i", "any", "-i", "lo", "--json"]).with(2);
    assert!(done.err.contains("specify it alone"), "{done:?}");
}

#[test]
fn what_the_kernel_had_no_room_for_is_told_everywhere() {
    const SENT: u64 = 40_000;
    let Some(pair) = pair("lost") else { return };
    let running = watch(&pair, "--json --buffer 1MiB --duration 4s");
    // The ring is not drained.
    let id = Pid::from_raw(running.id() as i32).unwrap();
    kill_process(id, Signal::STOP).unwrap();
    send(&pair, slices(&cnps(SENT as usize)));
    kill_process(id, Signal::CONT).unwrap();
    let done = running.end().with(3);
    let json = done.json();
    let interface = &json["interfaces"][0];
    let lost = interface["dropped_kernel"].as_u64().unwrap();
    assert_eq!(
        interface["received"].as_u64().unwrap() + lost,
        SENT,
        "{done:?}"
    );
    let events = json["events"].as_array().unwrap();
    let counts = events
        .iter()
        .filter(|event| event["what"] == "capture.lost.kernel");
    let counts: u64 = counts.map(|event| event["times"].as_u64().unwrap()).sum();
    assert!(lost > 0 && counts == lost, "{done:?}");
    for part in [
        "warning: packets are being lost: dropped by the kernel",
        "--buffer",
        "packets were lost",
    ] {
        assert!(done.err.contains(part), "{part}: {done:?}");
    }
}

#[test]
fn a_pipe_without_a_writer_can_be_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let read = || {
        let mut command = common::command();
        Running::spawn(command.arg("-r").arg(&pipe).arg("--json"))
    };
    let done = read().interrupt().with(130);
    assert!(done.err.contains("nothing was read"), "{done:?}");
    // The writer may come later, and write in pieces.
    let running = read();
    thread::sleep(Duration::from_millis(200));
    let capture = fs::read(common::captures().join("incast.pcapng")).unwrap();
    let mut writer = fs::File::options().write(true).open(&pipe).unwrap();
    for part in capture.chunks(capture.len() / 3) {
        writer.write_all(part).unwrap();
        thread::sleep(Duration::from_millis(100));
    }
    drop(writer);
    assert_eq!(notified(&running.end().well()), 22);
}
