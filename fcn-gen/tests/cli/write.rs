//! `write`: output is complete, agrees with the report, and does not exist after a failure.

#[cfg(unix)]
use crate::common::interrupt;
use crate::common::{Done, fcn_gen, names, program};
use fcn_gen::report::Report;
use fcn_gen::truth::{TRUTH_SCHEMA, TRUTH_VERSION, Truth};
use fcn_wire::{Frame, LinkType, Notification, Profile};
use pcap_file::pcapng::{Block, PcapNgReader};
use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::path::Path;
use std::process::Stdio;

/// Returns packets and octets on the wire for each interface of a capture, and its notifications by
/// kind.
fn read(capture: &[u8]) -> (Vec<(u64, u64)>, BTreeMap<String, u64>) {
    let mut reader = PcapNgReader::new(Cursor::new(capture)).unwrap();
    let (mut interfaces, mut links, mut kinds) = (Vec::new(), Vec::new(), BTreeMap::new());
    while let Some(block) = reader.next_block() {
        match block.unwrap().0 {
            Block::InterfaceDescription(block) => {
                interfaces.push((0, 0));
                links.push(LinkType::from_pcap(u32::from(block.linktype)).unwrap());
            }
            Block::EnhancedPacket(packet) => {
                let interface = packet.interface_id as usize;
                interfaces[interface].0 += 1;
                interfaces[interface].1 += u64::from(packet.original_len);
                let wire_len = packet.original_len as usize;
                let frame =
                    Frame::parse(&packet.data, wire_len, links[interface], &Profile::DEFAULT);
                if let Some(notification) = Notification::from_frame(&frame) {
                    *kinds.entry(notification.kind.id().to_owned()).or_default() += 1;
                }
            }
            _ => {}
        }
    }
    (interfaces, kinds)
}

fn write(folder: &Path, args: &[&str]) -> (Done, Vec<u8>, Truth) {
    let (capture, truth) = (folder.join("a.pcapng"), folder.join("a.json"));
    let files = [
        "--force",
        "-o",
        capture.to_str().unwrap(),
        "--truth",
        truth.to_str().unwrap(),
    ];
    let done = fcn_gen(["write"].iter().chain(args).chain(&files));
    assert_eq!(done.code, 0, "{args:?}: {}", done.err);
    let truth = serde_json::from_slice(&std::fs::read(truth).unwrap()).unwrap();
    (done, std::fs::read(capture).unwrap(), truth)
}

#[test]
fn capture_truth_and_report_agree() {
    for args in [
        &["tiny.toml", "--json"][..],
        &[
            "tiny.toml",
            "--json",
            "--set",
            "mechanism=fast-cnp",
            "--seed",
            "9",
        ],
        &["tiny.toml", "--json", "--snap-len", "128"],
        &["formats", "--json"],
        &["malformed", "--json", "--snap-len", "2000"],
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (done, capture, truth) = write(folder.path(), args);
        assert_eq!(names(folder.path()), ["a.json", "a.pcapng"]);
        let report: Report = serde_json::from_slice(&done.out).unwrap();
        let (interfaces, kinds) = read(&capture);
        assert_eq!(
            (truth.schema.as_str(), truth.version),
            (TRUTH_SCHEMA, TRUTH_VERSION)
        );
        let names: Vec<_> = truth
            .vantage_points
            .iter()
            .map(|v| (v.packets, v.octets))
            .collect();
        assert_eq!(names, interfaces, "{args:?}");
        assert_eq!(report.packets, interfaces.iter().map(|i| i.0).sum::<u64>());
        assert_eq!(report.octets, interfaces.iter().map(|i| i.1).sum::<u64>());
        assert_eq!(report.notifications, kinds, "{args:?}");
        assert!(!kinds.is_empty(), "{args:?}");
        assert!(report.took_ns > 0 && report.packets_per_second > 0.0);
    }
}

#[test]
fn truth_of_a_gallery_names_broken_rules() {
    let folder = tempfile::tempdir().unwrap();
    let (_, _, truth) = write(folder.path(), &["malformed"]);
    assert!(
        truth
            .findings
            .values()
            .flatten()
            .any(|rule| rule == "cnp.becn.clear")
    );
}

#[test]
fn equal_seeds_give_equal_octets() {
    let folder = tempfile::tempdir().unwrap();
    let capture = |args: &[&str]| write(folder.path(), &[&["tiny.toml"], args].concat()).1;
    assert_eq!(capture(&[]), capture(&["--seed", "3"]));
    assert_eq!(capture(&["--seed", "4"]), capture(&["--set", "seed=4"]));
    assert_ne!(capture(&["--seed", "4"]), capture(&["--seed", "5"]));
}

#[test]
fn standard_output_gets_only_the_capture() {
    let folder = tempfile::tempdir().unwrap();
    let (_, capture, _) = write(folder.path(), &["tiny.toml"]);
    let done = fcn_gen(["write", "tiny.toml", "-o", "-"]);
    assert_eq!(done.code, 0);
    assert_eq!(done.out, capture);
    assert!(done.err.contains("\nfile           -\n"), "{}", done.err);
    assert!(
        !done.err.contains('\x1b'),
        "a bar where there is no terminal"
    );
    let done = fcn_gen(["write", "tiny.toml", "-o", "-", "--json"]);
    assert_eq!(serde_json::from_str::<Report>(&done.err).unwrap().file, "-");
    let done = fcn_gen(["write", "tiny.toml", "-o", "-", "--quiet"]);
    assert_eq!((done.out == capture, done.err.as_str()), (true, ""));
}

#[test]
fn closed_pipe_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let truth = folder.path().join("a.json");
    let mut child = program()
        .args([
            "write",
            "tiny.toml",
            "-o",
            "-",
            "--set",
            "duration=20ms",
            "--truth",
        ])
        .arg(&truth)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut err = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .unwrap();
    assert_eq!((child.wait().unwrap().code(), err.as_str()), (Some(1), ""));
    assert!(
        names(folder.path()).is_empty(),
        "no truth about a capture that nobody has"
    );
}

#[test]
fn what_cannot_be_written_leaves_nothing_of_either() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let here = folder.path().to_str().unwrap().to_owned();
    for (capture, truth) in [
        (at("missing/a.pcapng"), at("a.json")),
        (at("a.pcapng"), at("missing/a.json")),
        (here.clone(), at("a.json")),
        (at("a.pcapng"), here.clone()),
    ] {
        let done = fcn_gen(["write", "tiny.toml", "-o", &capture, "--truth", &truth]);
        assert_eq!((done.code, done.out.len()), (1, 0), "{capture} {truth}");
        assert!(
            done.err.starts_with("fcn-gen: cannot write") && done.err.contains(&here),
            "{}",
            done.err
        );
        assert!(
            names(folder.path()).is_empty(),
            "{capture} {truth}: {:?}",
            names(folder.path())
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn full_device_fails_for_capture_and_truth() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let done = fcn_gen([
        "write",
        "tiny.toml",
        "-o",
        "/dev/full",
        "--truth",
        &at("a.json"),
    ]);
    assert_eq!(done.code, 1, "{}", done.err);
    assert!(done.err.contains("/dev/full"), "{}", done.err);
    let done = fcn_gen([
        "write",
        "tiny.toml",
        "-o",
        &at("a.pcapng"),
        "--truth",
        "/dev/full",
    ]);
    assert_eq!(done.code, 1, "{}", done.err);
    assert!(names(folder.path()).is_empty());
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let status = program()
        .arg("list")
        .stdout(full)
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(1));
}

#[test]
fn capture_without_packets_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.pcapng");
    let done = fcn_gen([
        "write",
        "tiny.toml",
        "--set",
        "duration=20us",
        "--set",
        "flow.load.start=15us",
        "--set",
        "flow.load.rdma_cm=false",
        "--set",
        "defaults.delay=100us",
        "--set",
        "vantage=[\"sw:r\"]",
        "-o",
        file.to_str().unwrap(),
    ]);
    assert_eq!(done.code, 1, "{}", done.err);
    assert!(
        done.err.contains("no packet was captured: tiny"),
        "{}",
        done.err
    );
    assert!(names(folder.path()).is_empty());
}

#[test]
fn existing_files_are_kept_unless_forced() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (capture, truth, drawing) = (at("a.pcapng"), at("a.json"), at("a.svg"));
    std::fs::write(&truth, "old").unwrap();
    std::fs::write(&drawing, "old").unwrap();
    let write = [
        "write",
        "tiny.toml",
        "-q",
        "-o",
        &capture,
        "--truth",
        &truth,
    ];
    let compare = [
        "compare",
        "tiny.toml",
        "-q",
        "--seeds",
        "1",
        "--svg",
        &drawing,
    ];
    for (words, file) in [(&write, &truth), (&compare, &drawing)] {
        let done = fcn_gen(words);
        let expected = format!(
            "fcn-gen: cannot write: {file}: the file exists: choose another name, or use --force to replace it\n"
        );
        assert_eq!((done.code, done.err.as_str()), (2, expected.as_str()));
        assert_eq!(std::fs::read(file).unwrap(), b"old");
    }
    assert!(!Path::new(&capture).exists());
    let done = fcn_gen(write.iter().chain(&["--force"]));
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    assert_ne!(std::fs::read(&truth).unwrap(), b"old");
}

#[cfg(unix)]
#[test]
fn an_interrupt_leaves_what_was_there_before() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.pcapng");
    std::fs::write(&file, "old").unwrap();
    let truth = folder.path().join("a.json");
    let args = [
        "write",
        "tiny.toml",
        "--set",
        "duration=100s",
        "--snap-len",
        "64",
    ];
    let files = [
        "--force",
        "-o",
        file.to_str().unwrap(),
        "--truth",
        truth.to_str().unwrap(),
    ];
    let done = interrupt(args.iter().chain(&files), folder.path(), 2);
    assert_eq!(done.code, 130, "{}", done.err);
    assert_eq!(
        (done.out.len(), done.err.as_str()),
        (0, "fcn-gen: interrupted: nothing was written\n")
    );
    assert_eq!(names(folder.path()), ["a.pcapng"]);
    assert_eq!(std::fs::read(&file).unwrap(), b"old");
}
