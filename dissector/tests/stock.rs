//! Packets that are not ours look exactly as in Wireshark without the plugin: compares the lines of
//! `tshark -V` with and without it.

mod common;
#[path = "../../crates/wire/tests/others_support/mod.rs"]
mod others_support;

use common::{
    TempCapture, captures, decode, foreign_captures, matches, packets, stock, trees, with_plugin,
    without_ours_captures,
};
use fcn_observe::exchange::Incident;
use fcn_wire::Profile;
use fcn_wire::emit::{Encapsulation, MirroredFrame};
use fcn_wire::finding::Rule;
use std::path::{Path, PathBuf};
use xtask::tshark::Tshark;

/// Returns true for a line (with the lines indented below it) that the plugin adds to a RoCEv2
/// packet, or to options of ours.
fn is_ours(line: &str) -> bool {
    let text = line.trim_start();
    let top = text.len() == line.len();
    let flag = |name: &str| {
        text.strip_suffix(": True")
            .or(text.strip_suffix(": False"))
            .is_some_and(|rest| rest.ends_with(&format!(" = {name}")))
    };
    let start = |starts: &[&str]| starts.iter().any(|start| text.starts_with(start));
    flag("FECN")
        || flag("BECN")
        || text == "[Opcode: CNP (0x81)]"
        || start(&[
            "ICRC: 0x",
            "[ICRC Status: ",
            "[ICRC reading ",
            "[ICRC unchecked ",
            "[Retransmission of the packet ",
            "[Time since the first transmission: ",
            "[Acknowledges the packet ",
            "[Refuses the packet ",
            "[Round-trip time: ",
            "[Sign that a switch has trimmed it ",
        ])
        || start(&["A switch has trimmed the packet instead"])
        || start(&[Incident::STALLED, Incident::NOT_ECT, Incident::EXHAUSTED])
        || start(&["Fast CNP option", "Proxy Network Node Address option"])
        || start(&["Proxy Node Capability of ", "Proxy Node Capability: "])
        || text == "Next Hop Dependent Characteristics"
        || top && start(&["CNP", "Fast CNP", "Quoted CNP", "Quoted Fast CNP"])
        || top && text.starts_with("[Congestion notification: ")
        || top && text.starts_with("RoCEv2 Congestion Notification Packet")
        // Broken messages, beside the item that Wireshark calls data.
        || top && start(&["Congestion Notification to the Proxy Node", "Fast Congestion Notification in the WAN"])
        || Rule::ALL.iter().any(|rule| {
            // Followed by a section or a detail; a packet comment may begin with the same words.
            text.strip_prefix(rule.info().text)
                .is_some_and(|rest| rest.starts_with(" [") || rest.starts_with(": "))
        })
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns the lines of `before` without the option payloads that our items replace: those of each
/// readable Fast CNP option 2, in the order of `after`.
fn without_replaced<'a>(before: &[&'a str], after: &str) -> Vec<&'a str> {
    let is_option = |line: &str| line.trim_start().starts_with("Unknown IPv6 Option (");
    let mut replaced = Vec::new();
    let mut is_second = false;
    for text in after.lines().map(str::trim_start) {
        if is_option(text) {
            replaced.push(false);
        } else if text.starts_with("Fast CNP option ") {
            is_second = text == "Fast CNP option 2";
        } else if is_second
            && text.starts_with("Original destination: ")
            && let Some(last) = replaced.last_mut()
        {
            *last = true;
        }
    }
    let mut replaced = replaced.into_iter();
    let (mut drops, mut inside) = (false, None);
    let mut kept = Vec::new();
    for line in before {
        if is_option(line) {
            drops = replaced.next().unwrap_or_default();
        }
        if inside.is_some_and(|depth| indent(line) > depth) {
            continue;
        }
        inside = None;
        if drops && line.trim_start().starts_with("Unknown Option Payload") {
            inside = Some(indent(line));
        } else {
            kept.push(*line);
        }
    }
    kept
}

/// Returns the lines of `tree` without ours.
fn without_ours(tree: &str) -> Vec<&str> {
    let mut kept = Vec::new();
    let mut inside: Option<usize> = None;
    for line in tree.lines() {
        if let Some(depth) = inside {
            if !line.is_empty() && indent(line) > depth {
                continue;
            }
            inside = None;
        }
        if is_ours(line) {
            inside = Some(indent(line));
        } else {
            kept.push(line);
        }
    }
    while kept.last().is_some_and(|line| line.is_empty()) {
        kept.pop();
    }
    kept
}

fn protocols(tree: &str) -> &str {
    tree.lines()
        .find_map(|line| {
            line.trim()
                .strip_prefix("[Protocols in frame: ")?
                .strip_suffix(']')
        })
        .unwrap_or_default()
}

/// Returns true if stock Wireshark took a RoCEv2 packet for the protocol of its source port, and
/// the plugin did not.
fn is_reclaimed(stock: &str, ours: &str) -> bool {
    let to_udp = |tree: &str| -> String {
        tree.lines()
            .take_while(|line| !line.contains("UDP payload ("))
            .filter(|line| !line.contains("[Protocols in frame: "))
            .collect()
    };
    stock.contains(", Dst Port: 4791")
        && !protocols(stock).contains("infiniband")
        && protocols(ours).contains(":udp:infiniband")
        && to_udp(stock) == to_udp(ours)
}

#[derive(Default)]
struct Compared {
    same: usize,
    reclaimed: usize,
    ours: usize,
}

/// Compares every frame of `capture`. Frames with messages of ours on their own ports, or with our
/// EtherTypes, are decoded by us instead of as data, so they are only counted.
fn compare(capture: &Path, stock: &Tshark, ours: &Tshark) -> Compared {
    let before = trees(stock, capture, &[]);
    let after = trees(ours, capture, &[]);
    assert_eq!(before.len(), after.len(), "{}", capture.display());
    let mut compared = Compared::default();
    for (before, after) in before.iter().zip(&after) {
        let by_us = |name| protocols(after).split(':').any(|p| p == name);
        if ["proxycn", "wanfcn", "cnm", "cntag", "csig"]
            .into_iter()
            .any(by_us)
        {
            compared.ours += 1;
        } else if is_reclaimed(before, after) {
            compared.reclaimed += 1;
        } else {
            // Wireshark's UDP registers a flow when it is first quoted, as in an ICMP error: later
            // stream numbers shift, and times count from there.
            let of_flow = [
                "[Stream index: ",
                "[Time since first frame: ",
                "[Time since previous frame: ",
            ];
            let shifted = |line: &&str| {
                compared.ours == 0
                    || !of_flow
                        .iter()
                        .any(|start| line.trim_start().starts_with(start))
            };
            let mut before: Vec<&str> = before.lines().filter(shifted).collect();
            while before.last().is_some_and(|line| line.is_empty()) {
                before.pop();
            }
            let before = without_replaced(&before, after);
            let kept: Vec<&str> = without_ours(after).into_iter().filter(shifted).collect();
            let same = before.iter().zip(&kept).take_while(|(a, b)| a == b);
            let same = same.count();
            let differs = (before.get(same), kept.get(same));
            assert!(
                before == kept,
                "{}: {}\nfirst difference (stock, ours): {differs:?}",
                capture.display(),
                before.first().unwrap_or(&""),
            );
            compared.same += 1;
        }
    }
    compared
}

/// Checks that the columns, too, are as in stock Wireshark, except for the frames that were counted
/// as different.
fn compare_columns(capture: &Path, stock: &Tshark, ours: &Tshark, compared: &Compared) {
    let (before, after) = (decode(stock, capture, &[]), decode(ours, capture, &[]));
    let other = before
        .lines()
        .zip(after.lines())
        .filter(|(before, after)| before != after)
        .filter(|(_, after)| {
            ![" CNP ", " Fast CNP "]
                .iter()
                .any(|name| after.contains(name))
        })
        .count();
    assert_eq!(
        other,
        compared.ours + compared.reclaimed,
        "{}: columns changed",
        capture.display()
    );
}

fn both() -> Option<(Tshark, Tshark)> {
    Some((stock()?, with_plugin()?))
}

#[test]
fn our_captures_keep_all_stock_output() {
    let Some((stock, ours)) = both() else { return };
    // Captures with messages of ours on their own ports or with our EtherTypes, or with sessions
    // that occur in several captures.
    let apart = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        ["proxy", "wan", "pnc", "neighbours"]
            .iter()
            .any(|part| name.contains(part))
    };
    let (apart, together): (Vec<_>, Vec<_>) = captures().into_iter().partition(apart);
    for capture in apart {
        let compared = compare(&capture, &stock, &ours);
        assert_eq!(compared.reclaimed, 0, "{}", capture.display());
        let whole = packets(&capture).len();
        assert_eq!(compared.same + compared.ours, whole);
    }
    // The others as sections of one file: tshark takes longer to start than to show one of them.
    let sections = together.iter().map(|path| std::fs::read(path).unwrap());
    let file = TempCapture::whole(&sections.collect::<Vec<_>>().concat(), "sections");
    let compared = compare(file.path(), &stock, &ours);
    let whole: usize = together.iter().map(|path| packets(path).len()).sum();
    assert_eq!(
        [compared.same, compared.ours, compared.reclaimed],
        [whole, 0, 0]
    );
}

#[test]
fn third_party_captures_match_stock_wireshark() {
    let Some((stock, ours)) = both() else { return };
    for capture in foreign_captures() {
        let compared = compare(&capture, &stock, &ours);
        let name = capture.file_name().unwrap().to_string_lossy();
        assert_eq!(compared.ours, 0, "{name}: a message of ours in it?");
        // Source port 69 of these RoCEv2 packets belongs to TFTP.
        let expected = if name == "oferby_roce.pcap" { 37 } else { 0 };
        assert_eq!(compared.reclaimed, expected, "{name}");
        compare_columns(&capture, &stock, &ours, &compared);
    }
}

/// Checks that `-V` and the columns are the same as without the plugin.
fn is_untouched(capture: &Path, stock: &Tshark, ours: &Tshark) {
    let trees = [stock, ours].map(|tshark| trees(tshark, capture, &[]));
    for (before, after) in trees[0].iter().zip(&trees[1]) {
        assert_eq!(before, after, "{}", capture.display());
    }
    assert_eq!(trees[0].len(), trees[1].len());
    let [before, after] = [stock, ours].map(|tshark| decode(tshark, capture, &[]));
    assert_eq!(before, after, "{}", capture.display());
}

#[test]
fn other_protocols_at_our_ports_stay_what_they_are() {
    let Some((stock, ours)) = both() else { return };
    let frames = others_support::frames();
    let packets = frames.iter().map(|f| (f.bytes.as_slice(), f.bytes.len()));
    let file = TempCapture::new("others", packets);
    is_untouched(file.path(), &stock, &ours);
    // Wireshark decodes each as the intended protocol.
    for (other, tree) in frames.iter().zip(trees(&ours, file.path(), &[])) {
        let found = protocols(&tree)
            .split(':')
            .any(|name| name == other.protocol);
        assert!(found, "{}: {}", other.name, protocols(&tree));
    }
}

#[test]
fn captures_without_our_protocols_are_unchanged() {
    let Some((stock, ours)) = both() else { return };
    for capture in without_ours_captures() {
        is_untouched(&capture, &stock, &ours);
    }
}

/// Wireshark unpacks mirrored traffic, and the plugin finds the same in it as in the original.
#[test]
fn mirrored_packets_match_like_the_originals() {
    let Some(tshark) = with_plugin() else { return };
    let all = captures();
    let capture = all.iter().find(|path| path.ends_with("fast-cnp.pcapng"));
    let frames = packets(capture.expect("the capture"));
    let found = |name: &str, frames: &[(Vec<u8>, usize)]| {
        let frames = frames
            .iter()
            .map(|(bytes, wire_len)| (&bytes[..], *wire_len));
        let capture = TempCapture::new(&format!("mirror-{name}"), frames);
        matches(&tshark, capture.path(), "fastcnp")
    };
    let plain: Vec<_> = frames
        .iter()
        .map(|frame| (frame.bytes.clone(), frame.wire_len))
        .collect();
    let wanted = found("plain", &plain);
    assert!(wanted.len() > 3, "{wanted:?}");
    for encapsulation in Encapsulation::ALL {
        let name = encapsulation.id();
        let mirrored = MirroredFrame {
            encapsulation,
            source: [192, 0, 2, 1].into(),
            destination: [192, 0, 2, 2].into(),
            session: 17,
            port: 1,
            sequence: 1,
            at: 0,
        };
        let copies = plain.iter().map(|(bytes, wire_len)| {
            let mut copy = vec![0; bytes.len() + MirroredFrame::MAX_HEADERS];
            let result = mirrored.write(bytes, *wire_len, &Profile::DEFAULT, &mut copy);
            let (len, wire_len) = result.unwrap().expect("an IP packet");
            copy.truncate(len);
            (copy, wire_len)
        });
        assert_eq!(found(name, &copies.collect::<Vec<_>>()), wanted, "{name}");
    }
}

#[test]
fn only_our_lines_are_recognized() {
    let tree = "InfiniBand\n    Base Transport Header\n        Opcode: 4\n        .1.. .... = BECN: True\n    ICRC: 0x1 [incorrect]\n        [Expert Info]\n    Payload\nCNP from a\n    x\nData\n\n";
    assert_eq!(
        without_ours(tree),
        [
            "InfiniBand",
            "    Base Transport Header",
            "        Opcode: 4",
            "    Payload",
            "Data"
        ]
    );
}

/// docs/upstream.md documents this; update the page when a version of Wireshark has been fixed.
#[test]
fn stock_wireshark_behaves_as_reported() {
    let Some(stock) = stock() else { return };
    let all = captures();
    let capture = |name: &str| all.iter().find(|path| path.ends_with(name)).unwrap();
    let numbers = |path: &Path, filter: &str| matches(&stock, path, filter);
    let cnps = capture("formats-cnp.pcapng");
    let of_cnps = numbers(cnps, "infiniband.bth.opcode == 0x81");
    assert!(of_cnps.len() > 3, "{of_cnps:?}");
    for tree in trees(&stock, cnps, &["-Y", "infiniband.bth.opcode == 0x81"]) {
        for shown in [
            "Opcode: Unknown (129)",
            "Reserved: 40",
            "Unknown Header Sequence",
        ] {
            assert!(tree.contains(shown), "{shown}: {tree}");
        }
    }
    let with_icrc = "infiniband.bth.opcode == 0x81 && infiniband.invariant.crc";
    assert!(numbers(cnps, with_icrc).is_empty());
    let broken = capture("malformed-cnp.pcapng");
    let of_infiniband = trees(&stock, broken, &["-Y", "infiniband.bth.opcode == 0x80"]);
    assert!(
        of_infiniband[0].contains("Opcode: CNP (128)"),
        "{of_infiniband:?}"
    );
    let wrong = trees(&stock, broken, &["-Y", "frame.number == 19"]).concat();
    let shown = wrong.split("Invariant CRC: ").nth(1).expect("an ICRC");
    assert!(shown.starts_with("0xbf9bc217\n"), "{wrong}");
    // Destination port of Annex A17, source port of TFTP.
    let packets = packets(capture("receiver-cnp-ipv4.pcapng"));
    let moved: Vec<Vec<u8>> = packets
        .iter()
        .map(|packet| {
            let mut bytes = packet.bytes.clone();
            bytes[34..36].copy_from_slice(&69u16.to_be_bytes());
            bytes
        })
        .collect();
    let frames = moved.iter().map(|bytes| (bytes.as_slice(), bytes.len()));
    let moved = TempCapture::new("tftp", frames);
    assert_eq!(numbers(moved.path(), "tftp").len(), packets.len());
}
