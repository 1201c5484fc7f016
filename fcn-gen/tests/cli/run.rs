//! `fcn-gen run` into capture files: the frames sent, and the reports. `tests/link.rs` tests it on
//! a link.

use crate::common::{fcn_gen, interrupt, names};
use fcn_link::capture_file::CaptureReader;
use fcn_wire::{Findings, Frame, IcrcCheck, LinkType, Profile};
use pcap_file::pcapng::{Block, PcapNgReader};
use std::collections::HashSet;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

/// Returns the packets of a capture file.
fn packets(file: &Path) -> Vec<Vec<u8>> {
    let mut reader = PcapNgReader::new(File::open(file).unwrap()).unwrap();
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap().0 {
            packets.push(packet.data.to_vec());
        }
    }
    packets
}

/// Returns the due times of the packets: nanoseconds since 1970.
fn times(file: &Path) -> Vec<u64> {
    let mut reader = CaptureReader::open(file).unwrap();
    let mut times = Vec::new();
    while let Some(packet) = reader.next().unwrap() {
        times.push(packet.at);
    }
    times
}

/// Returns the name of each packet's interface.
fn seen_at(file: &Path) -> Vec<String> {
    let mut reader = CaptureReader::open(file).unwrap();
    let mut names = Vec::new();
    while let Some(packet) = reader.next().unwrap() {
        let interface = packet.interface as usize;
        names.push(reader.interfaces()[interface].name.clone());
    }
    names
}

/// Asserts that the packets break no rule.
fn flawless(packets: &[Vec<u8>]) {
    for (n, bytes) in packets.iter().enumerate() {
        let frame = Frame::parse(bytes, bytes.len(), LinkType::Ethernet, &Profile::DEFAULT);
        let mut findings = Findings::default();
        frame.check(IcrcCheck::On, &mut findings);
        assert!(
            findings.as_slice().is_empty(),
            "{n}: {:?}",
            findings.as_slice()
        );
    }
}

#[test]
fn stress_has_the_requested_length_and_mix() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stress.pcapng");
    let path = file.to_str().unwrap();
    let done = fcn_gen(["run", "stress-mix", "-o", path, "--count", "3200", "--json"]);
    assert_eq!(done.code, 0, "{}", done.err);
    let report = done.json();
    assert_eq!(report["schema"], "fcn-gen/run");
    assert_eq!(
        (&report["sent"], &report["qps"]),
        (&3_200.into(), &1_000_000.into())
    );
    assert_eq!(
        (&report["kinds"]["data"], &report["kinds"]["wan_fcn"]),
        (&1_800.into(), &100.into())
    );
    for word in [
        "mix ",
        "10,000, 1,000,000 QPs",
        "02:00:00:00:00:01 to 02:00:00:00:00:02",
        "3,200 packets",
    ] {
        assert!(done.err.contains(word), "{word}: {}", done.err);
    }
    let sent = packets(&file);
    assert_eq!(sent.len(), 3_200);
    flawless(&sent);
    assert_eq!(sent.iter().collect::<HashSet<_>>().len(), 3_200);
    // The same output again.
    let again = folder.path().join("again.pcapng");
    let macs = [
        "--peer-mac",
        "02:00:00:00:00:02",
        "--source-mac",
        "02:00:00:00:00:01",
    ];
    let mut args = vec![
        "run",
        "stress-mix",
        "-q",
        "--count",
        "3200",
        "-o",
        again.to_str().unwrap(),
    ];
    args.extend(macs);
    let done = fcn_gen(args);
    assert_eq!((done.code, done.text(), done.err.as_str()), (0, "", ""));
    assert!(std::fs::read(&again).unwrap() == std::fs::read(&file).unwrap());
}

#[test]
fn stress_keeps_its_rate_and_duration() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stress.pcapng");
    let args = [
        "run",
        "stress-cnp",
        "--rate",
        "10kpps",
        "--duration",
        "300ms",
        "--json",
        "--force",
        "-o",
    ];
    let done = fcn_gen(args.iter().copied().chain([file.to_str().unwrap()]));
    assert_eq!(done.code, 0, "{}", done.err);
    // Frames due at 0 to just below 300 ms.
    assert_eq!(done.json()["sent"], 3_000);
    assert_eq!(done.json()["ended"]["why"], "time-up");
    assert!(done.json()["timing"].is_null() && done.json()["packets_per_second"].is_null());
    assert_eq!(done.json()["due_seconds"], 0.3);
    let begin = 1_767_225_600_000_000_000;
    let expected: Vec<u64> = (0..3_000).map(|i| begin + i * 100_000).collect();
    assert_eq!(times(&file), expected);
    // An hour is written without waiting, and the output is reproducible.
    let octets = std::fs::read(&file).unwrap();
    let mut args = args.to_vec();
    args.push(file.to_str().unwrap());
    assert_eq!(fcn_gen(&args).code, 0);
    assert!(std::fs::read(&file).unwrap() == octets);
    (args[3], args[5]) = ("1pps", "1h");
    assert_eq!(fcn_gen(&args).json()["sent"], 3_600);
}

#[test]
fn simulation_is_sent_as_captured() {
    let folder = tempfile::tempdir().unwrap();
    let (live, written) = (
        folder.path().join("live.pcapng"),
        folder.path().join("written.pcapng"),
    );
    let (live_truth, truth) = (
        folder.path().join("live.json"),
        folder.path().join("written.json"),
    );
    let sets = ["--set", "vantage=[\"sw:s1\"]", "--seed", "9"];
    let mut args = vec![
        "write",
        "tiny.toml",
        "-q",
        "-o",
        written.to_str().unwrap(),
        "--truth",
        truth.to_str().unwrap(),
    ];
    args.extend(sets);
    assert_eq!(fcn_gen(&args).code, 0);
    let mut args = vec![
        "run",
        "tiny.toml",
        "-o",
        live.to_str().unwrap(),
        "--truth",
        live_truth.to_str().unwrap(),
        "--speed",
        "0.5",
    ];
    args.extend(sets);
    let done = fcn_gen(&args);
    assert_eq!(done.code, 0, "{}", done.err);
    let begin = 1_767_225_600_000_000_000;
    let slower = |at: &u64| begin + 2 * (at - begin);
    let expected: Vec<u64> = times(&written).iter().map(slower).collect();
    assert_eq!(times(&live), expected);
    for word in [
        "sw:s1",
        "0.5 times real time",
        "the simulation's end",
        "truth    of all vantage points, in the simulation's own time",
    ] {
        assert!(done.err.contains(word), "{word}: {}", done.err);
    }
    assert!(
        done.text().contains("by their time stamps"),
        "{}",
        done.text()
    );
    assert_eq!(packets(&live), packets(&written));
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    assert_eq!(read(&live_truth), read(&truth));
    // If the run is cut short, no truth is written.
    std::fs::remove_file(&live_truth).unwrap();
    args.extend([
        "--count",
        "3",
        "--json",
        "--force",
        "--peer-mac",
        "02:aa:00:00:00:01",
        "--source-mac",
        "02:bb:00:00:00:01",
    ]);
    let done = fcn_gen(&args);
    assert_eq!(done.code, 0, "{}", done.err);
    assert_eq!(done.json()["sent"], 3);
    assert!(done.json()["truth"].is_null() && !live_truth.exists());
    for (frame, before) in packets(&live).iter().zip(packets(&written)) {
        assert_eq!(frame[..12], [2, 0xaa, 0, 0, 0, 1, 2, 0xbb, 0, 0, 0, 1]);
        assert_eq!(frame[12..], before[12..]);
    }
}

#[test]
fn vantage_points_have_interfaces_as_in_a_capture() {
    let folder = tempfile::tempdir().unwrap();
    let [sent, written] = ["sent.pcapng", "written.pcapng"].map(|name| folder.path().join(name));
    let sets = ["--set", "vantage=[\"sw:s1\", \"sw:r\"]"];
    let args = ["write", "tiny.toml", "-q", "-o", written.to_str().unwrap()];
    assert_eq!(fcn_gen(args.into_iter().chain(sets)).code, 0);
    let run = |vantage: &str| {
        let args = ["run", "tiny.toml", "-q", "--json", "--keep-macs", "--force"];
        let output = ["--vantage", vantage, "-o", sent.to_str().unwrap()];
        let done = fcn_gen(args.into_iter().chain(output).chain(sets));
        assert_eq!(done.code, 0, "{}", done.err);
        done.json()
    };
    let report = run("all");
    assert_eq!(seen_at(&sent), seen_at(&written));
    let places: HashSet<_> = seen_at(&sent).into_iter().collect();
    assert_eq!(places.len(), 2);
    // The run lasts until its last frame, even if that is one of several handed over together.
    let last = times(&sent).last().unwrap() - 1_767_225_600_000_000_000;
    assert_eq!(report["due_seconds"], last as f64 / 1e9);
    run("sw:r");
    assert!(seen_at(&sent).iter().all(|name| name == "sw:r"));
}

#[test]
fn gallery_is_sent_at_a_rate() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gallery.pcapng");
    let args = [
        "run",
        "malformed",
        "--rate",
        "1Mpps",
        "--json",
        "-o",
        file.to_str().unwrap(),
    ];
    let done = fcn_gen(args);
    assert_eq!(done.code, 0, "{}", done.err);
    let sent = packets(&file);
    assert_eq!(done.json()["sent"], sent.len() as u64);
    assert!(sent.len() > 50, "{}", sent.len());
    // A frame each microsecond, several handed over together: the due time is that of the last one.
    assert_eq!(done.json()["due_seconds"], (sent.len() - 1) as f64 / 1e6);
}

#[test]
fn interrupted_run_prints_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.pcapng");
    let args = [
        "run",
        "stress-cnp",
        "--duration",
        "1000h",
        "--rate",
        "1Mpps",
        "-o",
        file.to_str().unwrap(),
    ];
    let began = Instant::now();
    let done = interrupt(args, folder.path(), 1);
    assert_eq!(done.code, 130, "{}", done.err);
    assert!(done.text().contains("interrupted"), "{}", done.text());
    assert!(began.elapsed() < Duration::from_secs(20), "it hung");
    // The frames sent until then are in the file.
    assert_eq!(names(folder.path()), ["a.pcapng"]);
}

#[test]
fn sending_nothing_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.pcapng");
    // No packet has reached the vantage point by then.
    let args = [
        "run",
        "tiny.toml",
        "--set",
        "duration=1ns",
        "--set",
        "flow.load.rdma_cm=false",
        "--set",
        "flow.load.start=0s",
        "-o",
        file.to_str().unwrap(),
    ];
    let done = fcn_gen(args);
    assert_eq!(done.code, 1, "{}", done.err);
    assert!(done.err.contains("nothing was sent"), "{}", done.err);
}
