//! fcn-top reports the same for a scenario whether its frames were captured directly or as copies
//! of a mirror, and tshark finds the same in them.

use fcn_link::capture_file::CaptureReader;
use fcn_top::monitor::{Monitor, Settings};
use fcn_top::packet::Packet;
use fcn_top::record::{Answer, ClassRelation, Ecn, Evidence, InterfaceRecord, QpRecord};
use fcn_top::tables::{Tables, Wanted};
use fcn_wire::Kind;
use fcn_wire::emit::Encapsulation;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Writes a capture with these arguments, plus those for the mirror.
fn write(folder: &Path, words: &str, mirror: Option<&str>) -> PathBuf {
    let path = folder.join(mirror.unwrap_or("plain"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_fcn-gen"));
    command
        .args(words.split(' '))
        .args(["-q", "--force", "-o"])
        .arg(&path);
    if let Some(mirror) = mirror {
        command.args(["--mirror", mirror]);
    }
    let output = command.stdin(Stdio::null()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words} {mirror:?}: {stderr}");
    path
}

/// Switches on a tunnel's path queue by its outer header, to which
/// [`fcn_wire::emit::MirroredFrame`] gives traffic class 0 and no tag.
fn put_into_a_tunnel(row: &mut QpRecord) {
    (row.dscp, row.ecn, row.vlan_priority) = (Some(0), Some(Ecn::NotCapable), None);
    row.data_dscp = row.data_packets.map(|_| 0);
    row.data_vlan_priority = None;
    row.class = row.data_packets.map(|_| ClassRelation::WithData);
}

/// Returns the report of a capture, except for capture points and the lengths of copies; and
/// whether capture points were distinguished as mirrors.
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

/// Returns a path with the names of the interfaces whose frames were copied.
fn path_without_mirrors(path: &str, interfaces: &[InterfaceRecord]) -> String {
    let mut path = path.replace(", as copies came in", "");
    let mut names: Vec<&str> = interfaces
        .iter()
        .map(|interface| &*interface.name)
        .collect();
    // Longer names first, since one may be a prefix of another.
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    for name in names {
        if let Some((own, _)) = name.split_once("/erspan") {
            path = path.replace(name, own);
        }
    }
    path
}

/// Returns the tables as lines, for comparison.
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

/// Removes data that differ in a tunnel: the origin of CNPs, since the path of a packet is hidden,
/// and the notes about classes, with their counters.
fn without_signs(mut tables: Tables) -> Tables {
    for (_, row) in &mut tables.qps {
        (row.made_by, row.made_by_evidence) = (None, None);
        row.findings = 0;
    }
    for point in &mut tables.points {
        (point.made_by, point.findings) = (None, 0);
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
fn copies_are_reported_like_their_originals() {
    let folder = tempfile::tempdir().unwrap();
    for words in [
        "write fast-cnp --set duration=2ms --snap-len 0",
        "write receiver-cnp --set ip=4 --set duration=1ms --snap-len 0",
        "write proxy --set duration=2ms --snap-len 0",
        "write fast-cnp --set duration=2ms --snap-len 200",
        "run stress-mix --count 300",
        "run fast-cnp --set duration=2ms --vantage all",
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

/// Returns the monitor after reading a capture, with all rows.
fn watched(path: &Path, settings: Settings) -> (Monitor, Vec<QpRecord>) {
    let mut monitor = Monitor::new(settings);
    let mut reader = CaptureReader::open(path).unwrap();
    let mut number = 0;
    while let Some(packet) = reader.next().unwrap() {
        number += 1;
        let bytes = packet.bytes.to_vec();
        monitor.observe(&Packet {
            at: packet.at,
            bytes: &bytes,
            wire_len: packet.wire_len as usize,
            link: packet.link.unwrap(),
            interface: packet.interface,
            number,
        });
    }
    let rows = monitor.rows().map(|(_, row)| row).collect();
    (monitor, rows)
}

/// Returns the part of a row that samples of every packet show: Fast CNPs name their flow, other
/// kinds need more than the first 128 octets of packets. Times are never shown.
fn shown_by_samples(row: &QpRecord) -> String {
    let names = (row.kind, row.destination, row.notifier, row.notifiers);
    let classes = (row.dscp, row.ecn, row.vlan_priority);
    let depths = (row.level, row.level_max, row.queue, row.queue_max);
    let counts = (row.total, row.findings, row.icrc_bad);
    let flow = matches!(row.kind, Kind::FastCnp1 | Kind::FastCnp2).then(|| {
        let names = (row.sender, row.receiver, row.receiver_qp);
        (names, row.data_packets, row.ce_share, row.data_dscp)
    });
    format!("{names:?} {classes:?} {depths:?} {counts:?} {flow:?}")
}

#[test]
fn samples_of_every_packet_give_exact_counts() {
    let folder = tempfile::tempdir().unwrap();
    let one = "--set vantage=[\"leaf1:s1\"]";
    for words in [
        &format!("write incast --set mechanism=fast-cnp --set duration=2ms {one}"),
        &format!("write incast --set mechanism=fast-cnp --set duration=2ms --snap-len 100 {one}"),
        &format!("write incast --set mechanism=cnp --set ip=4 --set duration=2ms {one}"),
        &format!("write incast --set mechanism=proxy {one}"),
        "run stress-cnp --count 3000 --set qps=50 --set flows=50",
    ] {
        let (plain, rows) = watched(&write(folder.path(), words, None), Settings::default());
        let path = write(folder.path(), words, Some("sflow"));
        let (sampled, sampled_rows) = watched(&path, Settings::default());
        assert!(!rows.is_empty(), "{words}");
        let sorted = |rows: &[QpRecord]| {
            let mut rows: Vec<_> = rows.iter().map(shown_by_samples).collect();
            rows.sort();
            rows
        };
        assert_eq!(sorted(&sampled_rows), sorted(&rows), "{words}");
        let [plain, sampled] = [plain, sampled].map(|monitor| {
            let totals = monitor.totals();
            let all = (totals.packets, totals.notifications, totals.data, totals.ce);
            (all, totals.samples)
        });
        assert_eq!(sampled, (plain.0, plain.0.0), "{words}");
        for row in sampled_rows {
            let total = Some(row.total);
            let interval = (row.total_low, row.total_high, row.sampled);
            assert_eq!(interval, (total, total, Some(1)), "{words}");
            // Datagrams do not have the time of each packet.
            let timing = (row.gap_p50, row.rate_peak, row.measured);
            assert_eq!(timing, (None, None, 0), "{words}");
            let unclear = row.verdict.map(|_| (Answer::Unclear, Evidence::Sampled));
            assert_eq!(row.verdict.zip(row.evidence), unclear, "{words}");
            let place = row.interface.unwrap();
            assert!(place.ends_with("/sflow 198.51.100.1 port 1"), "{place}");
        }
    }
}

#[test]
fn estimates_contain_the_truth() {
    let folder = tempfile::tempdir().unwrap();
    let (mut known, mut within, mut ratios) = (0, 0, Vec::new());
    for seed in 1..=8 {
        let words =
            format!("run stress-cnp --count 60000 --set flows=20 --set qps=20 --seed {seed}");
        let (_, rows) = watched(&write(folder.path(), &words, None), Settings::default());
        let path = write(folder.path(), &words, Some("sflow:100"));
        let (monitor, sampled_rows) = watched(&path, Settings::default());
        for row in &sampled_rows {
            let is_it = |other: &&QpRecord| (other.sender, other.qp) == (row.sender, row.qp);
            let truth = rows.iter().find(is_it).unwrap().total;
            let interval = row.total_low.unwrap()..=row.total_high.unwrap();
            assert!(interval.contains(&row.total));
            assert_eq!(row.sampled, Some(100));
            known += 1;
            within += u32::from(interval.contains(&truth));
            ratios.push(row.total as f64 / truth as f64);
        }
        let all: u64 = sampled_rows.iter().map(|row| row.total).sum();
        assert_eq!(monitor.totals().samples * 100, all);
    }
    assert!(known > 250, "{known}");
    assert!(within * 100 >= known * 93, "{within} of {known}");
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    assert!((mean - 1.0).abs() < 0.05, "{mean}");
}

#[test]
fn data_is_estimated() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 1..=6 {
        let words = format!(
            "write incast --set duration=10ms --set message=8MiB --seed {seed} --set vantage=[\"leaf1:s1\"]"
        );
        let (_, rows) = watched(&write(folder.path(), &words, None), Settings::default());
        let path = write(folder.path(), &words, Some("sflow:5"));
        let (_, sampled) = watched(&path, Settings::default());
        let [row] = &rows[..] else { panic!("{rows:?}") };
        let [sampled] = &sampled[..] else {
            panic!("{sampled:?}")
        };
        let (truth, estimate) = (row.data_packets.unwrap(), sampled.data_packets.unwrap());
        // Four standard deviations.
        let most = 4.0 * (5.0 * truth as f64).sqrt();
        assert!(
            (estimate as f64 - truth as f64).abs() < most,
            "{estimate} for {truth}"
        );
        assert!(truth > 100 && estimate % 5 == 0);
        assert_eq!((sampled.data_sampled, sampled.sampled), (Some(5), Some(5)));
    }
}

#[test]
fn known_sampling_is_estimated() {
    let folder = tempfile::tempdir().unwrap();
    let words = "write fast-cnp --set vantage=[\"leaf2:r1\"]";
    let path = write(folder.path(), words, Some("erspan2"));
    let (_, rows) = watched(&path, Settings::default());
    let settings = Settings {
        sampled: NonZeroU32::new(50),
        ..Settings::default()
    };
    let (monitor, estimated) = watched(&path, settings);
    assert!(!rows.is_empty() && rows.len() == estimated.len());
    assert_eq!(monitor.totals().samples, monitor.totals().packets);
    for row in &estimated {
        let is_it = |seen: &&QpRecord| (seen.sender, seen.kind) == (row.sender, row.kind);
        let seen = rows.iter().find(is_it).unwrap();
        assert_eq!(row.total, seen.total * 50);
        assert_eq!(row.sampled, Some(50));
        assert_eq!((row.gap_p50, row.rate_peak), (None, None));
        let unclear = row.verdict.map(|_| (Answer::Unclear, Evidence::Sampled));
        assert_eq!(row.verdict.zip(row.evidence), unclear);
    }
}

#[test]
fn tshark_finds_the_same() {
    let tshark = Command::new("tshark").arg("--version").output();
    if !tshark.is_ok_and(|output| output.status.success()) {
        fcn_skip::skipped!("tshark is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let found = |path: &Path| {
        let mut command = Command::new("tshark");
        command.arg("-r").arg(path).args(["-Y", "infiniband"]);
        // The innermost occurrence of each field.
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
    // A datagram has several samples, whose order depends on the times that they wait for others.
    let qps = |path: &Path| {
        let mut command = Command::new("tshark");
        command.arg("-r").arg(path).args(["-T", "fields"]);
        command.args(["-e", "infiniband.bth.destqp"]);
        let output = command.stdin(Stdio::null()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let all = text.split([',', '\n']).filter(|qp| !qp.is_empty());
        let mut all: Vec<_> = all.map(str::to_owned).collect();
        all.sort();
        all
    };
    let plain = qps(&folder.path().join("plain"));
    assert!(plain.len() > 100);
    let sampled = write(folder.path(), "write fast-cnp", Some("sflow"));
    assert_eq!(qps(&sampled), plain);
}
