//! Requests of Wireshark to a program in its extcap folder. `crates/xtask/tests/extcap.rs` tests
//! with Wireshark itself.

use crate::common::{Done, fcn_gen, program};
use fcn_gen::scenario::builtin;
use insta::assert_snapshot;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

fn config(name: &str) -> Done {
    let interface = format!("fcn-gen-{name}");
    fcn_gen(["--extcap-config", "--extcap-interface", &interface])
}

/// Returns the arguments that Wireshark passes for an unchanged dialog: every control with its
/// default.
fn untouched(name: &str) -> Vec<String> {
    let done = config(name);
    let lines: Vec<_> = done.text().lines().collect();
    let value_of = |line: &str, key: &str| {
        let (_, rest) = line.split_once(&format!("{{{key}="))?;
        Some(rest.split_once('}')?.0.to_owned())
    };
    let mut args = Vec::new();
    for line in lines.iter().filter(|line| line.starts_with("arg ")) {
        let number = value_of(line, "number").unwrap();
        let values = lines
            .iter()
            .filter(|value| value.starts_with(&format!("value {{arg={number}}}")))
            .filter(|value| value.contains("{default=true}"))
            .map(|value| value_of(value, "value").unwrap());
        let values: Vec<_> = values.collect();
        let value = value_of(line, "default").unwrap_or_else(|| values.join(","));
        args.extend([value_of(line, "call").unwrap(), value]);
    }
    args
}

fn capture(name: &str, args: &[&str], fifo: &Path) -> Done {
    let interface = format!("fcn-gen-{name}");
    let beginning = ["--capture", "--extcap-interface", &interface, "--fifo"];
    let beginning = beginning.map(str::to_owned).into_iter();
    let rest = args.iter().map(|arg| (*arg).to_owned());
    fcn_gen(beginning.chain([fifo.display().to_string()]).chain(rest))
}

#[test]
fn texts_match_snapshots() {
    let done = fcn_gen(["--extcap-interfaces", "--extcap-version=4.0"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    assert_snapshot!("interfaces", done.text());
    for name in ["incast", "formats", "stress-mix"] {
        let done = config(name);
        assert_eq!((done.code, done.err.as_str()), (0, ""));
        assert_snapshot!(format!("config-{name}"), done.text());
    }
    let done = fcn_gen(["--extcap-dlts", "--extcap-interface", "fcn-gen-incast"]);
    assert_eq!(
        done.text(),
        "dlt {number=1}{name=EN10MB}{display=Ethernet}\n"
    );
}

#[test]
fn capture_equals_output_of_write() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (folder.path().join("one"), folder.path().join("other"));
    for (name, capture_args, write_args) in [
        (
            "incast",
            &[
                "--mechanism",
                "cnp",
                "--senders",
                "3",
                "--seed",
                "12",
                "--pace",
                "at-once",
            ][..],
            &[
                "--set",
                "mechanism=cnp",
                "--set",
                "senders=3",
                "--seed",
                "12",
            ][..],
        ),
        (
            "incast",
            &["--vantage", "leaf1:s2,spine1:leaf1", "--pace", "1"],
            &["--set", "vantage=[\"leaf1:s2\", \"spine1:leaf1\"]"],
        ),
        ("incast", &["--vantage", "", "--pace", "at-once"], &[]),
        ("malformed", &["--family", "cnp"], &["--set", "family=cnp"]),
    ] {
        let done = capture(name, capture_args, &one);
        assert_eq!((done.code, done.err.as_str()), (0, ""), "{name}");
        assert!(done.out.is_empty());
        let other_name = other.display().to_string();
        let written = fcn_gen(
            [
                &["write", name, "-q", "--force", "-o", &other_name],
                write_args,
            ]
            .concat(),
        );
        assert_eq!(written.code, 0, "{}", written.err);
        assert!(
            fs::read(&one).unwrap() == fs::read(&other).unwrap(),
            "{name}"
        );
    }
}

#[test]
fn unchanged_dialog_uses_defaults() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (folder.path().join("one"), folder.path().join("other"));
    for (name, _) in builtin::list().filter(|(name, _)| builtin::kind(name) != "stress") {
        let args = untouched(name);
        let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
        if let Some(pace) = args.iter().position(|arg| *arg == "--pace") {
            args[pace + 1] = "at-once";
        }
        let done = capture(name, &args, &one);
        assert_eq!((done.code, done.err.as_str()), (0, ""), "{name}");
        let other_name = other.display().to_string();
        assert_eq!(
            fcn_gen(["write", name, "-q", "--force", "-o", &other_name]).code,
            0
        );
        assert!(
            fs::read(&one).unwrap() == fs::read(&other).unwrap(),
            "{name}"
        );
    }
}

#[test]
fn stress_ends_or_runs_until_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let args = [
        "--count", "1k", "--rate", "1Mpps", "--flows", "10", "--qps", "20",
    ];
    let done = capture("stress-mix", &args, &file);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    let packets = packets(&fs::read(&file).unwrap());
    assert_eq!(packets, 1_000);
}

/// Counts the packets of a capture that may be incomplete.
fn packets(octets: &[u8]) -> usize {
    let mut rest = octets;
    let mut packets = 0;
    while let Some((head, _)) = rest.split_first_chunk::<8>() {
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap());
        // An enhanced packet block.
        packets += usize::from(word(0) == 6 && rest.len() >= word(4) as usize);
        rest = rest.get(word(4) as usize..).unwrap_or_default();
    }
    packets
}

/// Creates a named pipe like Wireshark, and starts a capture into it.
fn start(name: &str, args: &[&str], folder: &Path) -> (Child, File) {
    let fifo = folder.join("fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let child = program()
        .args([
            "--capture",
            "--extcap-interface",
            &format!("fcn-gen-{name}"),
        ])
        .arg("--fifo")
        .arg(&fifo)
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    (child, File::open(&fifo).unwrap())
}

/// Reads until a packet has arrived, which is long before the end.
fn first_packet(pipe: &mut File) {
    let (mut octets, mut some) = (Vec::new(), [0; 4_096]);
    while packets(&octets) == 0 {
        let read = pipe.read(&mut some).unwrap();
        assert!(read > 0, "no packet has come");
        octets.extend(&some[..read]);
    }
}

fn ended_well(child: Child) {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), text.as_str()), (Some(0), ""));
    assert!(output.stdout.is_empty());
}

/// A thousand seconds for a simulation; an endless stress.
const LONG: [(&str, &[&str]); 2] = [
    ("incast", &["--pace", "0.000001"]),
    ("stress-cnp", &["--count", "until-stopped"]),
];

#[test]
fn packets_arrive_immediately_and_closing_the_pipe_ends_it() {
    for (name, args) in LONG {
        let folder = tempfile::tempdir().unwrap();
        let (child, mut pipe) = start(name, args, folder.path());
        first_packet(&mut pipe);
        drop(pipe);
        ended_well(child);
    }
}

#[test]
fn stopped_capture_ends_silently() {
    for (name, args) in LONG {
        let folder = tempfile::tempdir().unwrap();
        let (child, mut pipe) = start(name, args, folder.path());
        first_packet(&mut pipe);
        let id = child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &id])
                .status()
                .unwrap()
                .success()
        );
        // The remaining packets have to be read.
        std::io::copy(&mut pipe, &mut std::io::sink()).unwrap();
        ended_well(child);
    }
}

#[test]
fn errors_are_reported_on_standard_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    for (name, args, text) in [
        (
            "incast",
            &["--senders", "many"][..],
            "bad scenario: incast.toml: --set senders=many: ",
        ),
        (
            "incast",
            &["--senders", "-1"],
            "bad scenario: incast.toml: --set senders=-1: ",
        ),
        (
            "incast",
            &["--pace", "fast"],
            "pace: `fast` is not a valid factor",
        ),
        (
            "incast",
            &["--seed", "-1"],
            "seed: `-1` is not a valid seed",
        ),
        ("incast", &["--vantage", "a\"]"], "bad scenario: "),
        (
            "incast",
            &["--extcap-capture-filter", "udp"],
            "scenarios take no capture filter",
        ),
        (
            "incast",
            &["--spines", "2"],
            "unexpected argument '--spines'",
        ),
        (
            "stress-cnp",
            &["--rate", "5"],
            "invalid value '5' for '--rate <RATE>'",
        ),
        (
            "stress-cnp",
            &["--count", "0"],
            "invalid value '0' for '--count <N>'",
        ),
        (
            "no-such",
            &[],
            "no such interface: fcn-gen-no-such: expected one of fcn-gen-",
        ),
    ] {
        let done = capture(name, args, &file);
        assert_eq!(done.code, 2, "{args:?}");
        assert!(
            done.err.starts_with(&format!("fcn-gen: {text}")),
            "{}",
            done.err
        );
    }
    let done = capture("incast", &[], &folder.path().join("no/fifo"));
    assert_eq!(done.code, 1);
    assert!(
        done.err.starts_with("fcn-gen: cannot write: "),
        "{}",
        done.err
    );
    for args in [
        &["--extcap-config"][..],
        &["--extcap-version=4.0"],
        &["--extcap-interfaces", "--capture"],
        &["--capture", "--extcap-interface", "fcn-gen-incast"],
        &["--extcap-reload-option", "x"],
    ] {
        let done = fcn_gen(args);
        assert_eq!((done.code, done.text()), (2, ""), "{args:?}");
        assert!(done.err.starts_with("fcn-gen: "), "{}", done.err);
    }
}

/// Wireshark asks while the user types; an empty answer means that the filter is valid.
#[test]
fn capture_filters_are_refused_on_check() {
    let check = |filter| {
        let args = [
            "--extcap-capture-filter",
            filter,
            "--extcap-interface",
            "fcn-gen-incast",
        ];
        let done = fcn_gen(args);
        assert_eq!((done.code, done.err.as_str()), (0, ""));
        done.text().to_owned()
    };
    assert_eq!(check(""), "");
    assert_eq!(
        check("udp"),
        "scenarios take no capture filter: use a display filter\n"
    );
}
