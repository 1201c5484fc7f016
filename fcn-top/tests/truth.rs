//! Captures of the built-in scenarios compared with their generator's ground truth: counts by
//! vantage point, sender, QP, kind, notifier and second agree exactly.
#![allow(missing_docs, reason = "tests have no users")]

use fcn_link::capture_file::CaptureReader;
use fcn_top::monitor::{Monitor, Settings};
use fcn_top::packet::Packet;
use fcn_top::record::QpRecord;
use fcn_wire::{Kind, Rule};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

const SECOND: u64 = 1_000_000_000;

/// Vantage point (empty if merged), sender or notified host, QP or flow label, kind.
type Key = (String, String, u64, String);
/// By key and notifier, and by key and second.
type Counts = (BTreeMap<(Key, String), u64>, BTreeMap<(Key, u64), u64>);

fn captures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures")
}

fn scenarios() -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(captures()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if let Some(name) = name.strip_suffix(".truth.json") {
            let text = std::fs::read_to_string(&path).unwrap();
            found.push((name.to_owned(), serde_json::from_str(&text).unwrap()));
        }
    }
    assert!(found.len() >= 10, "{found:?}");
    found
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns the expected counts: at each vantage point, or the maximum over vantage points for
/// notifications that pass several.
fn expected(truth: &Value, per_interface: bool) -> Counts {
    let mut counts = Counts::default();
    // By second, for each notifier.
    let mut seconds = BTreeMap::new();
    for entry in truth["notifications"].as_array().unwrap() {
        let vantage = entry["vantage_point"].as_u64().unwrap() as usize;
        let vantage = if per_interface {
            text(&truth["vantage_points"][vantage]["name"])
        } else {
            String::new()
        };
        let sender = if entry["sender"].is_null() {
            &entry["destination"]
        } else {
            &entry["sender"]
        };
        let number = entry["qp"].as_u64().or(entry["flow_label"].as_u64());
        let key: Key = (
            vantage,
            text(sender),
            number.unwrap_or(0),
            text(&entry["kind"]),
        );
        let notifier = (key.clone(), text(&entry["notifier"]));
        for (second, count) in entry["by_second"].as_object().unwrap() {
            let second = (notifier.clone(), second.parse().unwrap());
            let most: &mut u64 = seconds.entry(second).or_default();
            *most = count.as_u64().unwrap().max(*most);
        }
        let most = counts.0.entry(notifier).or_default();
        *most = entry["total"].as_u64().unwrap().max(*most);
    }
    for (((key, _), second), count) in seconds {
        *counts.1.entry((key, second)).or_default() += count;
    }
    counts
}

fn key_of(row: &QpRecord, per_interface: bool) -> Key {
    let sender = match row.kind {
        Kind::WanFcn => row.destination,
        _ => row.sender.expect("a sender"),
    };
    let named = match row.kind {
        Kind::WanFcn => row.flow_label,
        Kind::Cnp => row.sender_qp,
        _ => row.receiver_qp,
    };
    (
        row.interface
            .as_deref()
            .filter(|_| per_interface)
            .unwrap_or_default()
            .to_owned(),
        sender.to_string(),
        named.unwrap_or(0).into(),
        row.kind.id().to_owned(),
    )
}

/// Adds the counts of the completed second.
fn add_second(monitor: &mut Monitor, second: u64, per_interface: bool, counts: &mut Counts) {
    monitor.advance((second + 1) * SECOND);
    for (_, row) in monitor.rows() {
        let rate = row.rate_1s.expect("watched from the beginning of time");
        if rate > 0.0 {
            let key = (key_of(&row, per_interface), second);
            *counts.1.entry(key).or_default() += rate as u64;
        }
    }
}

fn play(name: &str, monitor: &mut Monitor, per_interface: bool) -> Counts {
    let path = captures().join(format!("{name}.pcapng"));
    let mut reader = CaptureReader::open(&path).unwrap();
    // Whole seconds, so that a rate is a count.
    monitor.watch_from(0);
    let mut counts = Counts::default();
    let (mut number, mut running, mut known) = (0, None, 0);
    while let Some(packet) = reader.next().unwrap() {
        let second = packet.at / SECOND;
        if let Some(running) = running.filter(|running| *running < second) {
            add_second(monitor, running, per_interface, &mut counts);
        }
        running = Some(second);
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
            let name = &interface.name;
            monitor.know_interface(known as u32, name, "");
            known += 1;
        }
        monitor.observe(&packet);
    }
    add_second(monitor, running.unwrap(), per_interface, &mut counts);
    for (id, row) in monitor.rows() {
        let notifiers = monitor.detail(id).unwrap().notifiers;
        let total: u64 = notifiers.iter().map(|(_, count)| count).sum();
        assert_eq!(total, row.total);
        for (notifier, count) in notifiers {
            let key = (key_of(&row, per_interface), notifier.to_string());
            *counts.0.entry(key).or_default() += count;
        }
    }
    counts
}

#[test]
fn counts_are_the_ground_truth() {
    let mut told_any = 0;
    for (name, truth) in scenarios() {
        for per_interface in [false, true] {
            let settings = Settings {
                per_interface,
                ..Settings::default()
            };
            let mut monitor = Monitor::new(settings);
            let found = play(&name, &mut monitor, per_interface);
            let wanted = expected(&truth, per_interface);
            assert_eq!(found.0, wanted.0, "{name}, {per_interface}");
            assert_eq!(found.1, wanted.1, "{name}, {per_interface}, by second");
            told_any += wanted.0.len();

            let points: BTreeMap<_, u64> =
                monitor.points().fold(BTreeMap::new(), |mut totals, p| {
                    *totals.entry(p.notifier.to_string()).or_default() += p.total;
                    totals
                });
            let mut notifiers = BTreeMap::new();
            // Sums count packets once in any case.
            for ((_, notifier), count) in &expected(&truth, false).0 {
                *notifiers.entry(notifier.clone()).or_default() += count;
            }
            assert_eq!(points, notifiers, "{name}");

            let interfaces = monitor.interfaces();
            for (interface, vantage) in interfaces
                .iter()
                .zip(truth["vantage_points"].as_array().unwrap())
            {
                assert_eq!(*interface.name, *text(&vantage["name"]), "{name}");
                assert_eq!(Some(interface.received), vantage["packets"].as_u64());
                assert_eq!(Some(interface.octets), vantage["octets"].as_u64());
            }
        }
    }
    // Scenarios with only PFC have none.
    assert!(told_any > 50, "{told_any} sorts of notifications in all");
}

#[test]
fn data_packets_and_marks_are_the_ground_truth() {
    for (name, truth) in scenarios() {
        let mut monitor = Monitor::new(Settings::default());
        play(&name, &mut monitor, false);
        let (mut data, mut ce) = (0, 0);
        for flow in truth["flows"].as_array().unwrap() {
            let seen = flow["seen"].as_array().unwrap();
            let all = |what: &str| -> Vec<u64> {
                seen.iter().filter_map(|seen| seen[what].as_u64()).collect()
            };
            for (what, sum) in [("packets", &mut data), ("ce", &mut ce)] {
                // Packets that pass several vantage points count once, and marks remain. A detour
                // passes one of several.
                *sum += match name.as_str() {
                    "detour" => all(what).iter().sum(),
                    _ => all(what).into_iter().max().unwrap_or(0),
                };
            }
        }
        let totals = monitor.totals();
        assert_eq!((totals.data, totals.ce), (data, ce), "{name}");
        let sorts = totals.notified() + totals.data + totals.other;
        assert_eq!(
            sorts + totals.cut + totals.undecodable + totals.copies,
            totals.packets
        );
    }
}

#[test]
fn only_intended_violations_are_found() {
    let several: Vec<_> = Rule::MULTI_PACKET
        .iter()
        .map(|rule| rule.info().id)
        .collect();
    for (name, truth) in scenarios() {
        let mut wanted: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
        for (frame, rules) in truth["findings"].as_object().into_iter().flatten() {
            let rules = rules.as_array().unwrap().iter().map(text).collect();
            wanted.insert(frame.parse().unwrap(), rules);
        }
        let found = Arc::new(Mutex::new(BTreeMap::<u64, BTreeSet<String>>::new()));
        let mut monitor = Monitor::new(Settings::default());
        let (heard, several) = (Arc::clone(&found), several.clone());
        monitor.listen(Box::new(move |event| {
            // Of flows, not of packets that break a rule.
            let is_of_flow = event.what.starts_with("data.");
            if !several.contains(&event.what) && !is_of_flow {
                let mut heard = heard.lock().unwrap();
                let rules = heard.entry(event.frame.unwrap()).or_default();
                rules.insert(event.what.to_owned());
            }
        }));
        play(&name, &mut monitor, false);
        assert_eq!(*found.lock().unwrap(), wanted, "{name}");
    }
}

#[test]
fn captures_of_malformed_packets_break_rules() {
    let mut captures_found = 0;
    for entry in std::fs::read_dir(captures()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(name) = name.strip_suffix(".pcapng") else {
            continue;
        };
        if name.starts_with("malformed-") {
            let mut monitor = Monitor::new(Settings::default());
            play(name, &mut monitor, false);
            let rules = monitor.rules();
            assert!(!rules.is_empty(), "{name}");
            let sum: u64 = rules.iter().map(|(_, count)| count).sum();
            assert_eq!(sum, monitor.totals().findings.iter().sum::<u64>(), "{name}");
            captures_found += 1;
        }
    }
    assert!(captures_found >= 5, "{captures_found}");
}

#[test]
fn a_sender_without_support_for_the_option_is_reported() {
    let mut monitor = Monitor::new(Settings::default());
    play("formats-unaware-sender", &mut monitor, false);
    let events: Vec<_> = monitor.events().collect();
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(
        (events[0].what, events[0].frame),
        ("fastcnp.sender.unaware", Some(2))
    );
}
