//! Packets that do not come from this project's emitter, but from Linux's soft RoCE, in tshark with
//! this build of the plugin.

use xtask::captures::{self, Scene};
use xtask::packages;
use xtask::tshark::Tshark;

/// Returns the values of fields in each frame with RoCEv2, by capture; `None`, with a conspicuous
/// message, without tshark.
fn recorded(fields: &[&str]) -> Option<Vec<(String, Vec<Vec<String>>)>> {
    let lacking = packages::missing(packages::PLUGIN);
    if !lacking.is_empty() {
        fcn_skip::skipped!("decoding needs {}", packages::describe(&lacking));
        return None;
    }
    let tshark = Tshark::with_this_plugin(false).unwrap();
    let mut arguments = vec!["-Y", "rocev2", "-T", "fields", "-E", "separator=|"];
    arguments.extend(fields.iter().flat_map(|field| ["-e", field]));
    let folder = captures::folder().unwrap();
    let samples = captures::all().into_iter();
    let samples = samples.filter(|sample| sample.scene == Scene::Recorded);
    let frames = |sample: &captures::Sample| {
        let text = tshark.decode(&folder.join(sample.file_name()), &arguments);
        let text = text.unwrap_or_else(|e| panic!("{e}"));
        let values = |line: &str| line.split('|').map(str::to_owned).collect();
        text.lines().map(values).collect::<Vec<_>>()
    };
    Some(samples.map(|s| (s.name.clone(), frames(&s))).collect())
}

#[test]
fn every_icrc_is_correct_and_no_rule_is_violated() {
    let fields = [
        "frame.cap_len",
        "frame.len",
        "rocev2.icrc.status",
        "fcn.finding",
    ];
    let Some(recorded) = recorded(&fields) else {
        return;
    };
    assert_eq!(recorded.len(), captures::CASES.len());
    for (name, frames) in recorded {
        // The receiver's capture has one connection of 20,016 octets.
        let least = if name == "soft-roce-receiver" { 40 } else { 80 };
        assert!(frames.len() > least, "{name}: {}", frames.len());
        for frame in frames {
            // 1 means good, 2 means not verified.
            let status = if frame[0] == frame[1] { "1" } else { "2" };
            assert_eq!(frame[2..], [status, ""], "{name}");
        }
    }
}

#[test]
fn notifications_find_the_qp_that_perftest_exchanged() {
    let fields = ["fcn.kind", "fcn.qp", "fcn.sender_qp", "fcn.sender_qp_from"];
    let Some(recorded) = recorded(&fields) else {
        return;
    };
    for (name, frames) in recorded {
        let notifications: Vec<_> = frames.iter().filter(|frame| !frame[0].is_empty()).collect();
        let fast = ["fast_cnp_1", "0x000021", "0x00001f", "port"];
        let expected = match name.as_str() {
            "soft-roce-notified" => {
                [&[["cnp", "0x00001f", "0x00001f", "packet"]][..], &[fast; 5]].concat()
            }
            "soft-roce-switch-fast-cnp" => {
                // The first precedes the packet of the other direction that reveals the sender's
                // QP.
                vec![
                    ["fast_cnp_1", "0x000014", "", ""],
                    ["fast_cnp_1", "0x000014", "0x000012", "port"],
                ]
            }
            "soft-roce-switch-cnp" => vec![["cnp", "0x000014", "0x000014", "packet"]; 2],
            "soft-roce-receiver" => vec![["cnp", "0x000012", "0x000012", "packet"]; 10],
            "soft-roce-sender" => vec![["fast_cnp_1", "0x000013", "0x58f24f", "cm"]; 9],
            _ => Vec::new(),
        };
        assert_eq!(notifications, expected.iter().collect::<Vec<_>>(), "{name}");
    }
}
