//! Readings of recorded trees and synthetic queue pairs, compared with packets captured by a real
//! monitor.

use super::read::Reader;
use super::*;
use crate::monitor::Settings;
use crate::output::prometheus::Exposition;
use crate::packet::Packet;
use crate::text::Formatter;
use fcn_link::capture_file::CaptureReader;
use fcn_link::rdma;
use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::symlink;
use std::path::Path;

const TREES: [&str; 4] = [
    include_str!("fixtures/mlx5.txt"),
    include_str!("fixtures/bnxt_re.txt"),
    include_str!("fixtures/irdma.txt"),
    include_str!("fixtures/rxe.txt"),
];

/// Writes a tree: lines of `file = text` and `link -> target`.
fn plant(root: &Path, tree: &str) {
    for line in tree.lines().filter(|line| !line.starts_with('#')) {
        let (file, rest) = line.split_once(' ').unwrap();
        let file = root.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        match rest.split_once(' ').unwrap() {
            ("=", text) => fs::write(&file, format!("{text}\n")).unwrap(),
            (_, target) => symlink(Path::new("/bus/drivers").join(target), &file).unwrap(),
        }
    }
}

fn planted(trees: &[&str]) -> (tempfile::TempDir, Reading) {
    let root = tempfile::tempdir().unwrap();
    trees.iter().for_each(|tree| plant(root.path(), tree));
    let reading = read(root.path());
    (root, reading)
}

/// Reads ports and counters of a tree only: RDMA netlink is about the machine that runs the test.
fn read(root: &Path) -> Reading {
    let ports = rdma::ports(root).unwrap().into_iter();
    Reading {
        ports: ports
            .map(|port| (port.clone(), port.counters(root)))
            .collect(),
        ..Reading::default()
    }
}

fn growths(nics: &Nics) -> Vec<(&str, Option<u64>, Option<u64>)> {
    let known = nics
        .counters
        .iter()
        .filter(|counter| counter.quantity.is_some());
    known
        .map(|counter| (&*counter.counter, counter.growth, counter.seen))
        .collect()
}

#[test]
fn recorded_trees_match_their_snapshot() {
    let (_root, reading) = planted(&TREES);
    let nics = Watch::default().take(&reading, None);
    let mut text = String::new();
    crate::output::report::nics(&mut text, &nics, &Formatter::default());
    insta::assert_snapshot!("trees", text);
    assert!(
        nics.counters
            .iter()
            .all(|counter| counter.growth.is_none() && counter.seen.is_none())
    );
}

#[test]
fn growth_starts_at_the_first_reading_or_the_last_reset() {
    let (root, reading) = planted(&TREES[..1]);
    let mut watch = Watch::default();
    watch.take(&reading, None);
    let counter = root
        .path()
        .join("mlx5_0/ports/1/hw_counters/rp_cnp_handled");
    let mut then = |value: &str| {
        fs::write(&counter, value).unwrap();
        let nics = watch.take(&read(root.path()), None);
        let of = nics
            .counters
            .iter()
            .find(|one| &*one.counter == "rp_cnp_handled" && !one.vanished);
        of.map(|one| (one.growth, one.resets))
    };
    assert_eq!(then("70400"), Some((Some(400), 0)));
    // Set to 0, or wrapped at 32 bits: the growth since then is known, before that it is not.
    assert_eq!(then("7"), Some((None, 1)));
    assert_eq!(then("9"), Some((Some(2), 1)));
    assert_eq!(then("not supported"), None);
    assert_eq!(then("18446744073709551615"), Some((None, 2)));
}

#[test]
fn a_reset_followed_by_growth_is_detected() {
    let (root, _) = planted(&TREES[..1]);
    let counter = root
        .path()
        .join("mlx5_0/ports/1/hw_counters/rp_cnp_handled");
    let mut reader = Reader::at(root.path(), root.path(), false);
    let mut watch = Watch::default();
    watch.take(&reader.read(true), None);
    let values = std::cell::RefCell::new(vec!["90000", "10"]);
    fs::write(&counter, "5").unwrap();
    let mut nics = Nics::default();
    reader.each_second(
        || values.borrow().is_empty(),
        |reading, _| {
            nics = watch.take(reading, None);
            fs::write(&counter, values.borrow_mut().pop().unwrap_or("90007")).unwrap();
        },
    );
    let handled = nics
        .counters
        .iter()
        .find(|one| &*one.counter == "rp_cnp_handled")
        .unwrap();
    assert_eq!((handled.growth, handled.resets), (Some(89_995), 1));
}

#[test]
fn vanished_counters_keep_their_last_values() {
    let (root, reading) = planted(&TREES[..2]);
    let mut watch = Watch::default();
    watch.take(&reading, None);
    let port = root.path().join("mlx5_0/ports/1");
    let ignored = port.join("hw_counters/rp_cnp_ignored");
    fs::write(&ignored, "12").unwrap();
    let all = watch.take(&read(root.path()), None);
    let formatter = Formatter::default();
    command::complete(&all, &formatter).unwrap();
    fs::remove_file(&ignored).unwrap();
    let nics = watch.take(&read(root.path()), None);
    let of = |nics: &Nics| {
        let mut counters = nics.counters.iter();
        let one = counters
            .find(|one| &*one.counter == "rp_cnp_ignored")
            .unwrap();
        (one.value, one.growth, one.resets, one.vanished)
    };
    assert_eq!(of(&nics), (12, of(&all).1, 0, true));
    assert_eq!(
        nics.sentences[1].1,
        "the NIC handled 0, ignored 12; 1 counter vanished, with the last values"
    );
    let failure = command::complete(&nics, &formatter).unwrap_err();
    assert_eq!(failure.exit().code(), 3);
    let said = "1 counter vanished meanwhile: mlx5_0 port 1: their last values are shown";
    assert_eq!(failure.to_string(), said);
    // Metrics cover existing counters only.
    let page = Exposition::new(0, Formatter::default()).counters(&nics);
    assert!(page.contains("rp_cnp_handled") && !page.contains("rp_cnp_ignored"));

    // Vanished with its device; reported for as long as it is gone.
    let gone = Reading {
        ports: reading.ports[..1].to_vec(),
        ..Reading::default()
    };
    watch.take(&gone, None);
    let nics = watch.take(&gone, None);
    assert_eq!(nics.counters.len(), all.counters.len());
    assert_eq!(
        (&*nics.sentences[1].0, &*nics.sentences[1].1),
        (
            "mlx5_0 port 1 (eth1)",
            "vanished; its last values are shown"
        )
    );
    let mut text = String::new();
    crate::output::report::nics(&mut text, &nics, &formatter);
    assert!(text.contains(" Vanished\n"), "{text}");
    let lost = all.counters.iter().filter(|one| &*one.device == "mlx5_0");
    let lost = lost.count();
    let json = serde_json::to_value(crate::output::json::counted(0, &nics, &formatter)).unwrap();
    let count = |vanished| {
        let counters = json["counters"].as_array().unwrap().iter();
        counters.filter(|one| one["vanished"] == vanished).count()
    };
    assert_eq!(
        (count("yes"), count("no")),
        (lost, all.counters.len() - lost)
    );

    // After its return, it is watched from the start.
    let nics = watch.take(&reading, None);
    assert_eq!(of(&nics), (0, None, 1, false));
    command::complete(&nics, &formatter).unwrap();
}

#[test]
fn what_vanished_is_bounded() {
    let counters = (0..2 * VANISHED).map(|n| (n.to_string(), 1)).collect();
    let mut watch = Watch::default();
    let reading = Reading {
        ports: vec![(Port::default(), counters)],
        ..Reading::default()
    };
    watch.take(&reading, None);
    let nics = watch.take(&Reading::default(), None);
    assert_eq!(nics.counters.len(), VANISHED);
}

/// Returns a monitor that has captured the CNPs of a sample on `eth1`, with their number and
/// destinations.
fn monitor(taken: impl Fn(&mut Monitor)) -> (Monitor, u64, Vec<IpAddr>) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/receiver-cnp-ipv4.pcapng");
    let mut monitor = Monitor::new(Settings::default());
    monitor.know_interface(0, "eth1", "");
    taken(&mut monitor);
    let mut reader = CaptureReader::open(&file).unwrap();
    let mut number = 0;
    while let Some(packet) = reader.next().unwrap() {
        number += 1;
        // One of the several capture points in the sample.
        if packet.interface != 0 {
            continue;
        }
        monitor.observe(&Packet {
            at: packet.at,
            bytes: packet.bytes,
            wire_len: packet.bytes.len(),
            link: packet.link.unwrap(),
            interface: 0,
            number,
        });
    }
    let told: Vec<_> = monitor.rows().map(|(_, row)| row.destination).collect();
    let cnps = monitor.totals().notified();
    assert!(cnps > 0);
    (monitor, cnps, told)
}

#[test]
fn captured_packets_are_compared_with_nic_counters() {
    let (root, mut reading) = planted(&TREES[..1]);
    let (_, cnps, told) = monitor(|_| ());
    reading.ports[0].0.addresses.clone_from(&told);
    let watch = std::cell::RefCell::new(Watch::default());
    // Watched before the packets arrive, as in a live capture: twice, because new addresses restart
    // the counts.
    let (mut monitor, ..) = monitor(|monitor| {
        for _ in 0..2 {
            watch.borrow_mut().take(&reading, Some(monitor));
        }
    });
    fs::write(
        root.path()
            .join("mlx5_0/ports/1/hw_counters/rp_cnp_handled"),
        "70001",
    )
    .unwrap();
    let mut later = read(root.path());
    later.ports[0].0.addresses.clone_from(&told);
    let row = monitor.rows().next().unwrap().1;
    let mut pair = QueuePair {
        device: "mlx5_0".into(),
        number: row.sender_qp.unwrap(),
        pid: Some(7),
        kind: Some(2),
        state: Some(77),
        ..QueuePair::default()
    };
    later.queue_pairs.push(pair.clone());
    pair.device = "mlx5_1".into();
    later.queue_pairs.push(pair);
    let nics = watch.borrow_mut().take(&later, Some(&mut monitor));
    let growths = growths(&nics);
    assert!(
        growths.contains(&("rp_cnp_handled", Some(1), Some(cnps))),
        "{growths:?}"
    );
    assert!(
        growths.contains(&("out_of_sequence", Some(0), None)),
        "{growths:?}"
    );
    let sentence = format!("notified by {cnps} CNPs; the NIC handled 1, ignored 0");
    assert_eq!(nics.sentences[0].1, sentence);
    let [own, other] = &nics.local_qps[..] else {
        panic!("{:?}", nics.local_qps)
    };
    assert_eq!(
        (own.notified, own.kind, own.state),
        (Some(row.total), Some("rc"), None)
    );
    // That device's interface is not captured on.
    assert_eq!(other.notified, None);
    // A private reading compares nothing, and does not give a reason.
    let private = Reading {
        private: true,
        ..later.clone()
    };
    let nics = Watch::default().take(&private, Some(&mut monitor));
    assert!(
        nics.counters
            .iter()
            .all(|counter| counter.interface.is_none())
    );
    assert_eq!(nics.sentences[0].0, "mlx5_0 port 1");
    let sentence = &nics.sentences[0].1;
    assert!(!sentence.contains("captured"), "{sentence}");
    // A second device of the same interface: its packets cannot be assigned to one of them.
    let mut twice = later.clone();
    let mut port = twice.ports[0].clone();
    port.0.device = "mlx5_9".to_owned();
    twice.ports.push(port);
    let nics = watch.borrow_mut().take(&twice, Some(&mut monitor));
    assert!(nics.counters.iter().all(|counter| counter.seen.is_none()));
    assert!(nics.sentences[0].1.contains("several RDMA devices"));
}

#[test]
fn quantities_without_a_counter_are_unknown() {
    let port = Port {
        interface: Some("eth1".to_owned()),
        ..Port::default()
    };
    let counter = |quantity, growth, seen| CounterRecord {
        device: "d".into(),
        port: 1,
        interface: None,
        driver: None,
        counter: "c".into(),
        quantity: Some(quantity),
        qps: None,
        value: 1_000,
        growth,
        seen,
        resets: 0,
        vanished: false,
    };
    let traffic = LocalTraffic {
        cnps_to: 1_000,
        fast_cnps_to: 20,
        ..LocalTraffic::default()
    };
    let handled = counter(Quantity::CnpHandled, Some(400), Some(1_000));
    let ignored = counter(Quantity::CnpIgnored, Some(590), Some(1_000));
    let received = counter(Quantity::CnpReceived, Some(990), Some(0));
    let once = counter(Quantity::CnpReceived, None, None);
    let reset = CounterRecord {
        resets: 1,
        ..handled.clone()
    };
    for (counters, at_port, text) in [
        (
            vec![handled, ignored],
            Some(traffic),
            "notified by 1,000 CNPs and 20 Fast CNPs; the NIC handled 400, ignored 590",
        ),
        (
            vec![received],
            Some(LocalTraffic::default()),
            "notified by 0 CNPs; the NIC received 990; its driver does not report how many it handled; the capture \
             does not show what the NIC receives",
        ),
        (
            vec![once],
            None,
            "not captured; the NIC has received 1,000 since it was set up; its driver does not report how many it \
             handled",
        ),
        (
            vec![],
            Some(traffic),
            "notified by 1,000 CNPs and 20 Fast CNPs; no counter of CNPs was found",
        ),
        (
            vec![reset],
            None,
            "notified by 1,000 CNPs; the NIC handled 400; all since the last reset",
        ),
    ] {
        assert_eq!(sentence(&counters, &port, at_port, true), text);
    }
}

#[test]
fn counters_of_queue_pairs_are_separate_from_the_ports() {
    let (_root, mut reading) = planted(&TREES[..1]);
    let set = |id, bound: &[u32], counters: &[(&str, u64)]| CounterSet {
        device: "mlx5_0".into(),
        port: Some(1),
        id,
        bound: bound.to_vec(),
        counters: counters
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect(),
    };
    reading.sets = vec![
        set(Some(3), &[0x11, 0x12], &[("rp_cnp_handled", 9)]),
        set(
            Some(4),
            &(0..40).collect::<Vec<_>>(),
            &[("rp_cnp_handled", 1)],
        ),
        set(Some(5), &[], &[("rp_cnp_handled", 2)]),
        // Of the port: an optional counter, and one that is in sysfs as well.
        set(
            None,
            &[],
            &[("cc_rx_cnp_pkts", 70_100), ("rp_cnp_handled", 70_000)],
        ),
    ];
    let nics = Watch::default().take(&reading, None);
    let found: Vec<_> = nics
        .counters
        .iter()
        .filter(|one| ["rp_cnp_handled", "cc_rx_cnp_pkts"].contains(&&*one.counter))
        .map(|one| (&*one.counter, one.qps.as_deref(), one.value))
        .collect();
    let many = "0x0 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8 0x9 0xa 0xb 0xc 0xd 0xe 0xf and 24 more";
    let expected = [
        ("cc_rx_cnp_pkts", None, 70_100),
        ("rp_cnp_handled", None, 70_000),
        ("rp_cnp_handled", Some("0x11 0x12"), 9),
        ("rp_cnp_handled", Some(many), 1),
        ("rp_cnp_handled", Some("gone"), 2),
    ];
    assert_eq!(found, expected);
}
