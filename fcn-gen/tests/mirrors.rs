//! What fcn-top says of a scenario is the same whether its frames were captured as they are or as mirrors copy them, and so is
//! what tshark finds in them.

use fcn_link::capture_file::CaptureReader;
use fcn_top::monitor::{Monitor, Settings};
use fcn_top::packet::Packet;
use fcn_top::tables::Wanted;
use fcn_wire::emit::Encapsulation;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Writes a capture by these words; those about mirrors come last.
fn write(folder: &Path, words: &str, mirror: Option<&str>) -> PathBuf {
    let path = folder.join(mirror.unwrap_or("plain"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_fcn-gen"));
    command
        .args(words.split(' '))
        .arg("-q")
        .arg("-o")
        .arg(&path);
    if let Some(mirror) = mirror {
        command.args(["--mirror", mirror]);
    }
    let output = command.stdin(Stdio::null()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words} {mirror:?}: {stderr}");
    path
}

/// All that is said of a capture, but for where packets were seen and how long copies are; and whether places were told apart
/// as mirrors. `origins` is whether who made CNPs is said, too.
fn report(path: &Path, origins: bool) -> (Vec<String>, bool) {
    let mut monitor = Monitor::new(Settings::default());
    let mut reader = CaptureReader::open(path).unwrap();
    let (mut number, mut known) = (0, 0);
    while let Some(packet) = reader.next().unwrap() {
        number += 1;
        let bytes = packet.bytes.to_vec();
        let packet = Packet {
            at: packet.at,
            bytes: &bytes,
            wire_len: packet.wire_len as usize,
            link: packet.link.unwrap(),
            interface: packet.interface,
            number,
        };
        for interface in reader.interfaces().iter().skip(known) {
            monitor.know_interface(known as u32, &interface.name, "");
            known += 1;
        }
        monitor.observe(&packet);
    }
    let mut tables = monitor.tables(Wanted {
        qps: true,
        points: true,
        hops: true,
        ..Wanted::default()
    });
    let interfaces = tables.interfaces.iter();
    let mirrored = interfaces.filter(|interface| interface.name.contains("/erspan"));
    let mirrored = mirrored.map(|interface| interface.received).sum::<u64>() == number;
    tables.totals.octets = 0;
    let mut rows: Vec<String> = (tables.qps.iter_mut())
        .map(|(_, row)| {
            row.interface = None;
            if !origins {
                (row.origin_inferred, row.origin_evidence) = (None, None);
            }
            format!("{row:?}")
        })
        .collect();
    rows.extend(tables.points.iter().map(|point| format!("{point:?}")));
    rows.extend(tables.hops.iter().map(|hop| format!("{hop:?}")));
    rows.sort();
    rows.push(format!("{:?} {:?}", tables.totals, tables.rules));
    (rows, mirrored)
}

#[test]
fn copies_are_reported_as_what_they_are_copies_of() {
    let folder = tempfile::tempdir().unwrap();
    for words in [
        "write fast-cnp",
        "write receiver-cnp --set ip=4 --set duration=1ms",
        "write proxy --set duration=2ms",
        "write fast-cnp --snap-len 200",
        "run stress-mix --count 300",
        "run fast-cnp --vantage all",
    ] {
        let path = write(folder.path(), words, None);
        let [plain, without_origins] = [true, false].map(|origins| {
            let (plain, mirrored) = report(&path, origins);
            assert!(!mirrored && plain.len() > 2, "{words}: {plain:?}");
            plain
        });
        for name in Encapsulation::ALL.map(Encapsulation::id) {
            // What looks like a tunnel does not show which way a packet came.
            let is_mirror = name.starts_with("erspan");
            let path = write(folder.path(), words, Some(name));
            let (copied, mirrored) = report(&path, is_mirror);
            let wanted = if is_mirror { &plain } else { &without_origins };
            assert_eq!(copied, *wanted, "{words} {name}");
            assert_eq!(mirrored, is_mirror, "{words} {name}");
        }
    }
}

#[test]
fn tshark_opens_the_same() {
    let tshark = Command::new("tshark").arg("--version").output();
    if !tshark.is_ok_and(|output| output.status.success()) {
        fcn_skip::skipped!("tshark is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let found = |path: &Path| {
        let mut command = Command::new("tshark");
        command.arg("-r").arg(path).args(["-Y", "infiniband"]);
        // The innermost of each.
        command.args(["-T", "fields", "-E", "occurrence=l"]);
        for field in [
            "frame.number",
            "ipv6.src",
            "ipv6.dst",
            "infiniband.bth.destqp",
        ] {
            command.args(["-e", field]);
        }
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let plain = found(&write(folder.path(), "write fast-cnp", None));
    assert!(plain.lines().count() > 100);
    for name in Encapsulation::ALL.map(Encapsulation::id) {
        let copied = found(&write(folder.path(), "write fast-cnp", Some(name)));
        assert_eq!(copied, plain, "{name}");
    }
}
