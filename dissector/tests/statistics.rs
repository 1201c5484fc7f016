//! Statistics in tshark compared with independent counts: the tree `fcn,tree`, and conversations
//! and endpoints by QP. Flows have the same names as in fcn-top.

mod common;

use common::{Packet, TempCapture, captures, decode, matches, packets, with_plugin};
use fcn_observe::malformed::Malformed;
use fcn_top::monitor::{Monitor, Settings};
use fcn_top::record::QpRecord;
use fcn_wire::frame::{End, Frame};
use fcn_wire::notification::{Kind, Notification, Origin, Subject};
use fcn_wire::{Findings, IcrcCheck, Profile};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use xtask::tshark::Tshark;

type Counts = BTreeMap<String, u64>;

const KIND: &str = "Notifications by kind";
const POINT: &str = "By congestion point";
const RECEIVER: &str = "By other notifier";
const SUBJECT: &str = "By QP or flow";
const LEVEL: &str = "By congestion level";
const MALFORMED: &str = "Malformed, by sender";
const DEEPEST: &str = "Deepest queue on the path";
const OTHERS: &str = "others (beyond the first 1000)";

fn capture(name: &str) -> PathBuf {
    let wanted = format!("{name}.pcapng");
    captures()
        .into_iter()
        .find(|path| path.file_name().is_some_and(|found| found == &*wanted))
        .unwrap_or_else(|| panic!("no capture {wanted}"))
}

/// A notification as fcn-wire parses it, and its row in fcn-top at that time.
type Known = (Notification, QpRecord);

/// Returns the notifications among `packets`, each at its first capture, and true if there are
/// fragments, which fcn-wire does not reassemble.
fn gists(packets: &[Packet]) -> (Vec<Known>, bool) {
    let mut has_fragments = false;
    let profile = Profile::DEFAULT;
    // Time, content, octets, and interfaces.
    let mut seen: Vec<(u64, Notification, Vec<u8>, BTreeSet<u32>)> = Vec::new();
    let mut monitor = Monitor::new(Settings::default());
    let gists = packets
        .iter()
        .zip(1..)
        .filter_map(|(packet, number)| {
            let observed = monitor.observe(&fcn_top::packet::Packet {
                at: packet.at,
                bytes: &packet.bytes,
                wire_len: packet.wire_len,
                link: packet.link,
                interface: packet.interface,
                number,
            });
            let frame = Frame::parse(&packet.bytes, packet.wire_len, packet.link, &profile);
            has_fragments |= matches!(frame.end(), End::Fragment { .. });
            let gist = Notification::from_frame(&frame)?;
            let payload = frame.datagram()?.payload.to_vec();
            let same = seen.iter_mut().find(|(at, other, content, places)| {
                packet.at.abs_diff(*at) <= 10_000_000
                    && *other == gist
                    && *content == payload
                    && !places.contains(&packet.interface)
            });
            if let Some((.., places)) = same {
                places.insert(packet.interface);
                return None;
            }
            let places = BTreeSet::from([packet.interface]);
            seen.push((packet.at, gist, payload, places));
            Some((gist, monitor.row(observed.row?)?))
        })
        .collect();
    (gists, has_fragments)
}

/// Returns the expected lines of the tree for `gists`, by heading. The count of a heading has the
/// heading as its name.
fn expected_tree(gists: &[Known]) -> BTreeMap<&'static str, Counts> {
    let mut tree: BTreeMap<&'static str, Counts> = BTreeMap::new();
    for heading in [KIND, POINT, RECEIVER, SUBJECT, LEVEL] {
        tree.insert(heading, Counts::from([(heading.to_owned(), 0)]));
    }
    let mut count = |heading: &'static str, line: String| {
        let lines = tree.get_mut(heading).unwrap();
        *lines.get_mut(heading).unwrap() += 1;
        *lines.entry(line).or_default() += 1;
    };
    for (gist, row) in gists {
        count(KIND, gist.kind.name().to_owned());
        let notifier = match gist.origin {
            Origin::Switch => POINT,
            _ => RECEIVER,
        };
        count(notifier, gist.notifier.to_string());
        let who = gist.sender.unwrap_or(gist.destination);
        let subject = match gist.subject {
            _ if row.sender_qp.is_some() => {
                let sender = row.sender.unwrap();
                format!("{sender} QP {:#x}", row.sender_qp.unwrap())
            }
            Subject::SenderQp(_) => unreachable!("names it"),
            Subject::ReceiverQp { receiver, qp } => format!("{who}, QP {qp} at {receiver}"),
            Subject::Flow { tuple, receiver_qp } => match receiver_qp {
                Some(qp) => format!("{who}, QP {qp} at {}", tuple.destination),
                None => format!("{who}, flow to {}", tuple.destination),
            },
            Subject::FlowLabel(label) => format!("{who}, flow label {label:#07x}"),
        };
        count(SUBJECT, subject);
        if let Some(level) = gist.level {
            count(LEVEL, format!("level {level}"));
        }
    }
    tree
}

/// Splits a line of a table into its name and its columns.
fn row(line: &str) -> Option<(String, Vec<&str>)> {
    let (name, rest) = line.trim_start().split_once("  ")?;
    Some((name.to_owned(), rest.split_whitespace().collect()))
}

/// Returns the integers among `columns`; depending on the Wireshark version, octets have a unit
/// beside them.
fn numbers(columns: &[&str]) -> Vec<u64> {
    columns
        .iter()
        .filter_map(|column| column.parse().ok())
        .collect()
}

/// Returns the part of tshark's output after the line that begins with `title`, without its head.
fn table<'a>(output: &'a str, title: &str) -> impl Iterator<Item = &'a str> {
    output
        .lines()
        .skip_while(move |line| !line.starts_with(title))
        .skip(1)
        .skip_while(|line| !line.starts_with("---") && !line.starts_with(' '))
        .take_while(|line| !line.starts_with("==="))
}

/// Parses the tree in tshark's output, without the average.
fn printed_tree(output: &str) -> BTreeMap<String, Counts> {
    let mut tree: BTreeMap<String, Counts> = BTreeMap::new();
    let mut heading = String::new();
    for line in table(output, "Congestion Notification:").filter(|line| !line.starts_with("---")) {
        let Some((name, columns)) = row(line) else {
            continue;
        };
        if !line.starts_with(' ') {
            heading.clone_from(&name);
        }
        let count = columns[0].parse().unwrap_or_else(|e| panic!("{line}: {e}"));
        if name != DEEPEST {
            let lines = tree.entry(heading.clone()).or_default();
            assert_eq!(lines.insert(name, count), None, "twice: {line}");
        }
    }
    tree
}

/// Returns the expected number of notifications for each row, by its ends (from, to).
fn expected_conversations(gists: &[Known]) -> BTreeMap<(String, String), u64> {
    let end = |address: IpAddr, qp: Option<u32>| match qp {
        Some(qp) => format!("{address} QP {qp:#x}"),
        None => address.to_string(),
    };
    let mut counts = BTreeMap::new();
    for (gist, row) in gists {
        let Some(sender) = row.sender else { continue };
        let receiver = row.receiver.unwrap_or(gist.notifier);
        let ends = (end(receiver, row.receiver_qp), end(sender, row.sender_qp));
        *counts.entry(ends).or_default() += 1;
    }
    counts
}

/// Parses the conversations in tshark's output, in both directions.
fn printed_conversations(output: &str) -> BTreeMap<(String, String), u64> {
    let mut counts = BTreeMap::new();
    for line in table(output, "FCN Conversations").filter(|line| line.contains(" <-> ")) {
        let (a, rest) = line.split_once(" <-> ").unwrap();
        let (b, rest) = rest.split_once("  ").unwrap();
        let (a, b) = (a.trim().to_owned(), b.to_owned());
        // Frames and octets: to the left, to the right, in total.
        let columns = numbers(&rest.split_whitespace().collect::<Vec<_>>());
        let frames = [columns[0], columns[2]];
        for (ends, count) in [((b.clone(), a.clone()), frames[0]), ((a, b), frames[1])] {
            if count > 0 {
                assert_eq!(counts.insert(ends, count), None, "twice: {line}");
            }
        }
    }
    counts
}

/// Parses the endpoints in tshark's output: sent and received.
fn printed_endpoints(output: &str) -> BTreeMap<String, (u64, u64)> {
    table(output, "FCN Endpoints")
        .filter(|line| !line.contains('|'))
        .filter_map(row)
        .map(|(name, columns)| {
            // Frames and octets: in total, sent, received.
            let columns = numbers(&columns);
            (name, (columns[2], columns[4]))
        })
        .collect()
}

const ALL: [&str; 7] = [
    "-q",
    "-z",
    "fcn,tree",
    "-z",
    "conv,fcn",
    "-z",
    "endpoints,fcn",
];

/// Counts unreadable packets that were meant as notifications, by sender.
fn malformed(packets: &[Packet]) -> Counts {
    let mut lines = Counts::from([(MALFORMED.to_owned(), 0)]);
    for packet in packets {
        let profile = Profile::DEFAULT;
        let frame = Frame::parse(&packet.bytes, packet.wire_len, packet.link, &profile);
        let mut findings = Findings::new();
        frame.check(IcrcCheck::Off, &mut findings);
        if let Some(malformed) = Malformed::from_frame(&frame, &findings) {
            *lines.get_mut(MALFORMED).unwrap() += 1;
            *lines.entry(malformed.notifier.to_string()).or_default() += 1;
        }
    }
    lines
}

fn assert_counts(output: &str, gists: &[Known], malformed: Counts, which: &str) {
    let mut printed = printed_tree(output);
    assert_eq!(
        printed.remove(MALFORMED),
        Some(malformed),
        "{which}\n{output}"
    );
    for (heading, lines) in expected_tree(gists) {
        let shown = printed.remove(heading);
        assert_eq!(shown, Some(lines), "{which}: {heading}\n{output}");
    }
    assert!(printed.is_empty(), "{which}: {printed:?}");
    let conversations = expected_conversations(gists);
    assert_eq!(
        printed_conversations(output),
        conversations,
        "{which}\n{output}"
    );
    let mut endpoints: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for ((from, to), count) in conversations {
        endpoints.entry(from).or_default().0 += count;
        endpoints.entry(to).or_default().1 += count;
    }
    assert_eq!(printed_endpoints(output), endpoints, "{which}\n{output}");
}

#[test]
fn counts_match_fcn_wire_and_the_ground_truth() {
    let Some(tshark) = with_plugin() else { return };
    let (mut total, mut broken) = (0, 0);
    let mut kinds = BTreeSet::new();
    for path in captures() {
        let packets = packets(&path);
        let (gists, has_fragments) = gists(&packets);
        // Wireshark reassembles these: tested below.
        if has_fragments {
            continue;
        }
        total += gists.len();
        let output = decode(&tshark, &path, &ALL);
        let malformed = malformed(&packets);
        broken += malformed[MALFORMED];
        let which = path.display().to_string();
        assert_counts(&output, &gists, malformed, &which);
        if let Ok(truth) = std::fs::read_to_string(path.with_extension("truth.json")) {
            let by_kind = by_kind(&serde_json::from_str(&truth).unwrap());
            assert_eq!(printed_tree(&output)[KIND], by_kind, "{which}\n{output}");
            kinds.extend(by_kind.into_keys());
        }
    }
    // Plus their heading.
    assert_eq!(kinds.len(), 5 + 1, "{kinds:?}");
    assert!(total > 200, "{total}");
    assert!(broken > 20, "{broken}");
}

/// Returns the notifications that the simulator reports as sent, by kind. One that passes several
/// vantage points counts once, by the point with the highest count.
fn by_kind(truth: &serde_json::Value) -> Counts {
    let mut by_kind = Counts::from([(KIND.to_owned(), 0)]);
    let mut most: BTreeMap<_, u64> = BTreeMap::new();
    for entry in truth["notifications"].as_array().unwrap() {
        let count = entry["total"].as_u64().unwrap();
        let kind = entry["kind"].as_str().unwrap().to_owned();
        let rest =
            ["destination", "notifier", "qp", "flow_label"].map(|name| entry[name].to_string());
        let most = most.entry((kind, rest)).or_default();
        *most = count.max(*most);
    }
    for ((kind, _), count) in most {
        let kind = Kind::ALL.iter().find(|known| known.id() == kind);
        let name = kind.expect("a kind").name();
        *by_kind.entry(name.to_owned()).or_default() += count;
        *by_kind.get_mut(KIND).unwrap() += count;
    }
    by_kind
}

fn tree_of(tshark: &Tshark, path: &Path, arguments: &[&str]) -> BTreeMap<String, Counts> {
    let output = decode(
        tshark,
        path,
        &[&["-q", "-z", "fcn,tree"], arguments].concat(),
    );
    printed_tree(&output)
}

#[test]
fn a_notification_counts_once_in_every_mode() {
    let Some(tshark) = with_plugin() else { return };
    for name in ["attack", "formats-proxy-cn", "formats-unaware-sender"] {
        let path = capture(name);
        let plain = tree_of(&tshark, &path, &[]);
        for arguments in [
            &["-2"][..],
            &["-2", "-Y", "fcn"],
            &["-Y", "fcn.kind == \"cnp\""],
            &["-z", "expert"],
        ] {
            let looked = tree_of(&tshark, &path, arguments);
            assert_eq!(looked, plain, "{name} {arguments:?}");
        }
        // With details, the statistics follow them.
        let shown = decode(&tshark, &path, &["-V", "-z", "fcn,tree"]);
        let tree = &shown[shown.rfind("Congestion Notification:").unwrap()..];
        assert_eq!(printed_tree(tree), plain, "{name} -V");
    }
}

#[test]
fn a_statistics_filter_selects_the_counted_notifications() {
    let Some(tshark) = with_plugin() else { return };
    let path = capture("attack");
    let (all, _) = gists(&packets(&path));
    for (filter, wanted) in [("fcn.kind == \"cnp\"", "cnp"), ("fastcnp", "fast_cnp_1")] {
        let chosen: Vec<Known> = all
            .iter()
            .filter(|(gist, _)| gist.kind.id() == wanted)
            .cloned()
            .collect();
        assert!(!chosen.is_empty() && chosen.len() < all.len());
        let named =
            ["fcn,tree", "conv,fcn", "endpoints,fcn"].map(|name| format!("{name},{filter}"));
        let mut arguments = vec!["-q"];
        for name in &named {
            arguments.extend(["-z", name]);
        }
        assert_counts(
            &decode(&tshark, &path, &arguments),
            &chosen,
            malformed(&[]),
            filter,
        );
    }
}

/// Wireshark makes such a filter of a row: it finds exactly the row's notifications.
#[test]
fn fields_of_the_ends_match_the_notifications_of_a_row() {
    let Some(tshark) = with_plugin() else { return };
    for name in ["attack", "formats-proxy-cn", "receiver-cnp-ipv4"] {
        let path = capture(name);
        let (gists, _) = gists(&packets(&path));
        let conversations = expected_conversations(&gists);
        assert!(!conversations.is_empty());
        for ((from, to), count) in conversations {
            // A notification captured at several points counts once.
            let found = |filter: String| {
                let once = format!("{filter} && !fcn.copy_of");
                matches(&tshark, &path, &once).len() as u64
            };
            let directed = format!("fcn.end.other == \"{from}\" && fcn.end.sender == \"{to}\"");
            assert_eq!(found(directed), count, "{name}: {from} {to}");
            let either = format!("fcn.end == \"{from}\" && fcn.end == \"{to}\"");
            assert_eq!(found(either), count, "{name}: {from} {to}");
        }
    }
}

#[test]
fn fragmented_and_truncated_messages_count_once() {
    let Some(tshark) = with_plugin() else { return };
    let path = capture("formats-cut");
    let (gists, has_fragments) = gists(&packets(&path));
    assert!(has_fragments);
    let reassembled = matches(&tshark, &path, "ipv6.fragments && fastcnp").len();
    assert!(reassembled > 0);
    for arguments in [&[][..], &["-2"]] {
        let tree = tree_of(&tshark, &path, arguments);
        assert_eq!(tree[KIND][KIND], (gists.len() + reassembled) as u64);
        assert_eq!(tree[SUBJECT]["2001:db8:1::1, QP 0x12 at 2001:db8:2::1"], 2);
    }
    let whole: Vec<Packet> = packets(&capture("formats-fast-cnp"))
        .into_iter()
        .chain(packets(&capture("formats-cnp")))
        .collect();
    let mut cut: Vec<(Vec<u8>, usize)> = Vec::new();
    for packet in &whole {
        for len in (0..=packet.bytes.len()).rev() {
            cut.push((packet.bytes[..len].to_vec(), packet.wire_len));
        }
    }
    let file = TempCapture::new("taps-cut", cut.iter().map(|(b, len)| (b.as_slice(), *len)));
    let as_packets: Vec<Packet> = cut
        .into_iter()
        .zip(0..)
        .map(|((bytes, wire_len), second)| Packet {
            link: fcn_wire::frame::LinkType::Ethernet,
            bytes,
            wire_len,
            at: second * 1_000_000_000,
            interface: 0,
        })
        .collect();
    let (gists, _) = self::gists(&as_packets);
    assert!(gists.len() > whole.len());
    let output = decode(&tshark, file.path(), &ALL);
    assert_counts(&output, &gists, malformed(&as_packets), "cut");
}

/// Flows in the attack scenario with notifications from receivers and switches alike have one line
/// each, and one row.
#[test]
fn a_flow_has_one_name_for_all_kinds() {
    let Some(tshark) = with_plugin() else { return };
    let path = capture("attack");
    let (gists, _) = gists(&packets(&path));
    let notified: BTreeSet<_> = (gists.iter())
        .map(|(gist, row)| ((row.sender, row.sender_qp), gist.kind.id()))
        .collect();
    let twice: Vec<_> = (notified.iter())
        .filter(|((_, qp), kind)| qp.is_some() && *kind == "cnp")
        .map(|(flow, _)| flow)
        .filter(|flow| notified.contains(&(**flow, "fast_cnp_1")))
        .collect();
    assert_eq!(twice.len(), 2, "{notified:?}");
    let output = decode(&tshark, &path, &ALL);
    for (sender, qp) in twice {
        let all = gists
            .iter()
            .filter(|(_, row)| (row.sender, row.sender_qp) == (*sender, *qp));
        let all = all.count() as u64;
        let (sender, qp) = (sender.unwrap(), qp.unwrap());
        let tree = &printed_tree(&output)[SUBJECT];
        let end = format!("{sender} QP {qp:#x}");
        assert_eq!(tree[&end], all, "{output}");
        assert_eq!(printed_endpoints(&output)[&end], (0, all), "{output}");
    }
}

/// Rates cover the time from the first to the last notification.
#[test]
fn rates_and_averages_match_the_notifications() {
    let Some(tshark) = with_plugin() else { return };
    let path = capture("fast-cnp-ioam-preallocated");
    let (gists, _) = gists(&packets(&path));
    let times = decode(
        &tshark,
        &path,
        &["-Y", "fcn", "-T", "fields", "-e", "frame.time_relative"],
    );
    let times: Vec<f64> = times.lines().map(|line| line.parse().unwrap()).collect();
    let span = (times[times.len() - 1] - times[0]) * 1000.0;
    let output = decode(&tshark, &path, &["-q", "-z", "fcn,tree"]);
    let column = |name: &str| -> Vec<f64> {
        let line = table(&output, "Congestion Notification:")
            .find_map(|line| row(line).filter(|(found, _)| found == name));
        let (_, columns) = line.unwrap_or_else(|| panic!("no {name} in\n{output}"));
        columns
            .iter()
            .map_while(|column| column.trim_end_matches('%').parse().ok())
            .collect()
    };
    // Count, rate, percent, burst rate.
    let kind = column(KIND);
    assert!((kind[1] - kind[0] / span).abs() < 0.01, "{output}");
    assert!(kind[3] > 0.0, "{output}");
    // Count, average, minimum, maximum.
    let depths: Vec<f64> = gists
        .iter()
        .filter_map(|(gist, _)| gist.deepest_queue.map(f64::from))
        .collect();
    assert!(depths.len() > 2);
    let deepest = column(DEEPEST);
    let average = depths.iter().sum::<f64>() / depths.len() as f64;
    assert_eq!(deepest[0], depths.len() as f64);
    assert!((deepest[1] - average).abs() < 0.01, "{output}");
    assert_eq!(deepest[2], depths.iter().copied().fold(f64::MAX, f64::min));
    assert_eq!(deepest[3], depths.iter().copied().fold(0.0, f64::max));
}

/// Forged addresses and QPs cannot grow the tree without limit.
#[test]
fn lines_of_the_tree_are_bounded() {
    let Some(tshark) = with_plugin() else { return };
    let (gists, _) = gists(&packets(&capture("formats-cnp")));
    assert_eq!(gists[0].0.notifier.to_string(), "198.51.100.1");
    let packet = &packets(&capture("formats-cnp"))[3];
    let bth = packet.bytes.len() - 32;
    let forged: Vec<Vec<u8>> = (0..1300u16)
        .map(|i| {
            let mut bytes = packet.bytes.clone();
            let [high, low] = i.to_be_bytes();
            // Last octets of the source address, and of the QP.
            bytes[14 + 14..14 + 16].copy_from_slice(&[high, low]);
            bytes[bth + 6..bth + 8].copy_from_slice(&[high, low]);
            bytes
        })
        .collect();
    let file = TempCapture::new("forged", forged.iter().map(|b| (b.as_slice(), b.len())));
    let tree = tree_of(&tshark, file.path(), &[]);
    assert_eq!(tree[KIND]["CNP"], 1300);
    for heading in [RECEIVER, SUBJECT] {
        let lines = &tree[heading];
        assert_eq!(lines[heading], 1300);
        assert_eq!(lines[OTHERS], 300);
        assert_eq!(lines.len(), 1 + 1000 + 1, "{heading}");
    }
}
