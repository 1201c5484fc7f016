//! What fcn-top says of a scenario is the same whether its frames were captured as they are or as mirrors copy them, and so is
//! what tshark finds in them.

use fcn_link::capture_file::CaptureReader;
use fcn_top::monitor::{Monitor, Settings};
use fcn_top::packet::Packet;
use fcn_top::record::{Company, Ecn, InterfaceRecord, QpRecord};
use fcn_top::tables::{Tables, Wanted};
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

/// Switches on a tunnel's way queue by its own header, to which [`fcn_wire::emit::Copied`] gives traffic class 0 and no tag.
fn put_into_a_tunnel(row: &mut QpRecord) {
    (row.dscp, row.ecn, row.vlan_priority) = (Some(0), Some(Ecn::NotCapable), None);
    row.data_dscp = row.data_packets.map(|_| 0);
    row.data_vlan_priority = None;
    row.class = row.data_packets.map(|_| Company::WithData);
}

/// All that is said of a capture, but for where packets were seen and how long copies are; and whether places were told apart
/// as mirrors.
fn report(path: &Path) -> (Tables, bool) {
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
        events: true,
        ..Wanted::default()
    });
    let interfaces = tables.interfaces.iter();
    let mirrored = interfaces.filter(|interface| interface.name.contains("/erspan"));
    let mirrored = mirrored.map(|interface| interface.received).sum::<u64>() == number;
    tables.totals.octets = 0;
    for (_, row) in &mut tables.qps {
        row.interface = None;
        row.path =
            (row.path.take()).map(|path| path_without_mirrors(&path, &tables.interfaces).into());
    }
    (tables, mirrored)
}

/// A path with the names of what copies were captured on.
fn path_without_mirrors(path: &str, interfaces: &[InterfaceRecord]) -> String {
    let mut path = path.replace(", as copies came in", "");
    let mut names: Vec<&str> = interfaces
        .iter()
        .map(|interface| &*interface.name)
        .collect();
    // What begins like another comes first.
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    for name in names {
        if let Some((own, _)) = name.split_once("/erspan") {
            path = path.replace(name, own);
        }
    }
    path
}

/// The tables, to be compared.
fn lines(tables: &Tables) -> Vec<String> {
    let mut lines: Vec<String> = (tables.qps.iter())
        .map(|(_, row)| format!("{row:?}"))
        .collect();
    lines.extend(tables.points.iter().map(|point| format!("{point:?}")));
    lines.extend(tables.hops.iter().map(|hop| format!("{hop:?}")));
    lines.sort();
    lines.push(format!("{:?} {:?}", tables.totals, tables.rules));
    lines
}

/// Leaves out what cannot be the same in a tunnel: who made CNPs, as it does not show which way a packet came, and the notes about
/// classes, with what counts them.
fn without_signs(mut tables: Tables) -> Tables {
    for (_, row) in &mut tables.qps {
        (row.origin_inferred, row.origin_evidence) = (None, None);
        row.findings = 0;
    }
    for point in &mut tables.points {
        point.findings = 0;
    }
    tables.rules.retain(|(rule, times)| {
        let is_of_class = rule.starts_with("class.");
        if is_of_class {
            tables.totals.findings[0] -= times;
        }
        !is_of_class
    });
    tables
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
        let (plain, mirrored) = report(&write(folder.path(), words, None));
        let wanted = lines(&plain);
        assert!(!mirrored && wanted.len() > 2, "{words}: {wanted:?}");
        let mut tunnelled = without_signs(plain);
        for (_, row) in &mut tunnelled.qps {
            put_into_a_tunnel(row);
        }
        let tunnelled = lines(&tunnelled);
        for name in Encapsulation::ALL.map(Encapsulation::id) {
            let (copied, mirrored) = report(&write(folder.path(), words, Some(name)));
            let is_mirror = name.starts_with("erspan");
            if is_mirror {
                assert_eq!(lines(&copied), wanted, "{words} {name}");
            } else {
                let copied = without_signs(copied);
                assert_eq!(lines(&copied), tunnelled, "{words} {name}");
            }
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
