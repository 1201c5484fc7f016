//! Packets of other protocols are not claimed: other protocols at our ports, and the captures in
//! the folder named by `FCN_FOREIGN`.

mod common;
#[path = "../../crates/wire/tests/others_support/mod.rs"]
mod others_support;

use common::{top, write_pcap};
use serde_json::Value;
use std::path::Path;

/// Asserts that there is no notification, flow or broken rule. Undecodable packets may be reported
/// for any protocol.
#[track_caller]
fn claims_nothing(path: &Path) {
    let file = path.to_str().unwrap();
    let json = top(["-r", file, "--json"]).well().json();
    assert_eq!(json["rows"], Value::Array(Vec::new()), "{file}");
    assert_eq!(json["notifiers"], Value::Array(Vec::new()), "{file}");
    let audit = top(["-r", file, "--audit", "--json"]).json();
    for event in audit["events"].as_array().unwrap() {
        let what = event["what"].as_str().unwrap();
        assert!(
            what == "packet.malformed" || what.starts_with("capture."),
            "{file}: {event}"
        );
    }
}

#[test]
fn other_protocols_at_our_ports_are_not_claimed() {
    let frames: Vec<_> = (others_support::frames().into_iter())
        .map(|other| other.bytes)
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("others.pcap");
    write_pcap(&path, 1, &frames);
    claims_nothing(&path);
}

#[test]
fn foreign_captures_are_not_claimed() {
    let Some(folder) = std::env::var_os("FCN_FOREIGN") else {
        fcn_skip::skipped!("FCN_FOREIGN names no folder with captures that hold nothing of ours");
        return;
    };
    let captures: Vec<_> = (std::fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|e| e == "pcap" || e == "pcapng")
        })
        .collect();
    assert!(!captures.is_empty());
    for path in captures {
        claims_nothing(&path);
    }
}
