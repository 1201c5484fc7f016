//! The plugin in tshark: matches of filters, expert info, trees and columns, effects of
//! preferences, and that bad input harms neither tshark nor the packets after it.

mod common;

use common::{
    Packet, TempCapture, captures, decode, matches, packets, subtree, trees, with_plugin,
};
use fcn_observe::Routing;
use fcn_wire::finding::{Family, Findings, Rule};
use fcn_wire::frame::{End, Frame, LinkType};
use fcn_wire::message::{IcrcCheck, Message};
use fcn_wire::notification::{Notification, Origin};
use fcn_wire::{Claim, Profile};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

fn capture(name: &str) -> PathBuf {
    let wanted = format!("{name}.pcapng");
    captures()
        .into_iter()
        .find(|path| path.file_name().is_some_and(|found| found == &*wanted))
        .unwrap_or_else(|| panic!("no capture {wanted}"))
}

fn frame(packet: &Packet) -> Frame<'_> {
    Frame::parse(
        &packet.bytes,
        packet.wire_len,
        packet.link,
        &Profile::DEFAULT,
    )
}

/// Returns the one filter that a packet should match, according to fcn-wire.
fn filter_of(frame: &Frame<'_>) -> Option<&'static str> {
    let port = frame.datagram().map(|datagram| datagram.destination_port);
    // Includes a message that is dropped for its checksum, and so has no content.
    let broken = frame
        .datagram()
        .is_some_and(|datagram| datagram.claim(frame.profile()) != Claim::Others);
    match frame.message() {
        Message::Cnp(_) => Some("cnp"),
        Message::FastCnp(_) => Some("fastcnp"),
        // A malformed CNP is still a CNP; so are messages on their own ports that no other protocol
        // claims.
        Message::Roce(bth, _) if bth.opcode() == fcn_wire::bth::Opcode::CNP => Some("cnp"),
        Message::ProxyCn(_) => Some("proxycn"),
        Message::WanFcn(_) => Some("wanfcn"),
        Message::Other if broken && port == Some(1021) => Some("proxycn"),
        Message::Other if broken && port == Some(1022) => Some("wanfcn"),
        _ => None,
    }
}

const FILTERS: [&str; 4] = ["cnp", "fastcnp", "proxycn", "wanfcn"];

type Seen = BTreeMap<&'static str, usize>;

/// Checks that each filter matches exactly its messages.
fn compare_filters(frame: &Frame<'_>, values: &[&str], which: &str, seen: &mut Seen) {
    let expected = filter_of(frame);
    for (filter, value) in FILTERS.iter().zip(values) {
        let shown = !value.is_empty();
        assert_eq!(shown, expected == Some(filter), "{which}: filter {filter}");
        *seen.entry(filter).or_insert(0) += usize::from(shown);
    }
}

/// Returns the fields for notifications of any kind, with their values in `gist`.
fn summary_of(gist: Option<&Notification>) -> Vec<(&'static str, String)> {
    let family = |address: Option<IpAddr>, v4: bool| {
        address
            .filter(|address| address.is_ipv4() == v4)
            .map(|address| address.to_string())
    };
    let notifier = gist.map(|gist| gist.notifier);
    let sender = gist.and_then(|gist| gist.sender);
    let qp = gist.and_then(|gist| gist.subject.qp());
    [
        ("fcn.kind", gist.map(|gist| gist.kind.id().to_owned())),
        (
            "fcn.notifier_role",
            gist.map(|gist| gist.origin.id().to_owned()),
        ),
        ("fcn.notifier_ipv4", family(notifier, true)),
        ("fcn.notifier_ipv6", family(notifier, false)),
        ("fcn.sender_ipv4", family(sender, true)),
        ("fcn.sender_ipv6", family(sender, false)),
        ("fcn.qp", qp.map(|(_, qp)| format!("{:#08x}", qp.get()))),
        ("fcn.qp_side", qp.map(|(side, _)| side.id().to_owned())),
        (
            "fcn.level",
            gist.and_then(|gist| gist.level)
                .map(|level| level.to_string()),
        ),
        (
            "fcn.queue",
            gist.and_then(|gist| gist.deepest_queue)
                .map(|depth| depth.to_string()),
        ),
        (
            "fcn.hops",
            gist.and_then(|gist| gist.hops).map(|hops| hops.to_string()),
        ),
    ]
    .map(|(name, value)| (name, value.unwrap_or_default()))
    .into()
}

/// Checks that the summary of every notification matches fcn-wire.
fn compare_summary(frame: &Frame<'_>, values: &[&str], which: &str, seen: &mut Seen) {
    let gist = Notification::from_frame(frame);
    for ((name, expected), value) in summary_of(gist.as_ref()).iter().zip(values) {
        // If no sender is named, earlier frames may supply it: `correlation.rs`.
        let unnamed = gist.is_some_and(|gist| gist.sender.is_none());
        if unnamed && name.starts_with("fcn.sender_ip") {
            continue;
        }
        // A CNP may translate an earlier notification to its source: `correlation.rs`, too.
        let receiver = gist.is_some_and(|gist| gist.origin == Origin::Receiver);
        if receiver
            && *name == "fcn.notifier_role"
            && ["proxy", "ingress_pe", "ambiguous"].contains(value)
        {
            continue;
        }
        assert_eq!(value, expected, "{which}: {name}");
        *seen.entry(name).or_insert(0) += usize::from(!value.is_empty());
    }
}

#[test]
fn fragments_and_quotations_are_summarized_correctly() {
    let Some(tshark) = with_plugin() else { return };
    // Fragmented messages are read after Wireshark has reassembled them.
    let cut = capture("formats-cut");
    let whole = "ipv6.fragments && fcn.kind == \"fast_cnp_1\" && fcn.qp == 0x12 && fcn.sender_ipv6 == 2001:db8:1::1";
    assert_eq!(
        matches(&tshark, &cut, whole),
        matches(&tshark, &cut, "ipv6.fragments && fastcnp")
    );
    // A quotation is not a notification.
    let quoting = capture("formats-unaware-sender");
    assert_eq!(
        matches(&tshark, &quoting, "fcn"),
        matches(&tshark, &quoting, "fastcnp || cnp")
    );
    let line = "[Congestion notification: Fast CNP (option 1)]";
    let shown = trees(&tshark, &capture("formats-fast-cnp"), &[]);
    assert!(shown[1].contains(line), "{}", shown[1]);
}

/// The protocol hierarchy contains the layers of packets, regardless of other options.
#[test]
fn protocol_hierarchy_has_no_fields_and_no_summary() {
    let Some(tshark) = with_plugin() else { return };
    let hierarchy = |arguments: &[&str]| {
        let all = [&["-q", "-z", "io,phs"], arguments].concat();
        decode(&tshark, &capture("incast"), &all)
    };
    let plain = hierarchy(&[]);
    assert!(plain.contains("        fastcnp "), "{plain}");
    for filter in ["fcn.kind == \"cnp\"", "rocev2.becn", "fastcnp.option"] {
        assert_eq!(plain, hierarchy(&["-Y", filter]), "{filter}");
    }
}

/// Returns the name of the expert field of `rule`; the plugin's own naming is tested separately.
fn expert_field(rule: Rule) -> String {
    let info = rule.info();
    match info.family {
        Family::Ioam => format!("fastcnp.{}", info.id),
        Family::Pfc => format!("rocev2.{}", info.id),
        _ => info.id.to_owned(),
    }
}

/// Checks that expert info has exactly the findings of fcn-wire, and removes the rules found from
/// `never`.
fn compare_findings<'a>(
    frame: &Frame<'_>,
    rules: &'a [(Rule, String)],
    values: &[&str],
    which: &str,
    never: &mut BTreeSet<&'a str>,
) {
    let mut findings = Findings::new();
    frame.check(IcrcCheck::On, &mut findings);
    let empty = frame
        .datagram()
        .is_some_and(|datagram| datagram.payload_len == 0);
    let is_roce = frame.is_roce();
    for ((rule, name), value) in rules.iter().zip(values) {
        let mut expected = findings.has(*rule);
        // Wireshark's UDP calls no dissector for an empty payload, and ordinary IOAM is shown
        // elsewhere.
        if empty && rule.info().id.ends_with("malformed")
            || rule.info().family == Family::Ioam
                && !is_roce
                && !matches!(frame.message(), Message::FastCnp(_))
        {
            expected = false;
        }
        assert_eq!(!value.is_empty(), expected, "{which}: {name}");
        if expected {
            never.remove(name.as_str());
        }
    }
}

/// All samples, each decoded once.
#[test]
fn filters_summary_and_findings_match_fcn_wire() {
    let Some(tshark) = with_plugin() else { return };
    let rules: Vec<(Rule, String)> = Rule::ALL
        .iter()
        .filter(|rule| !Rule::MULTI_PACKET.contains(rule))
        .map(|rule| (*rule, expert_field(*rule)))
        .collect();
    let summary = summary_of(None);
    let mut arguments = vec!["-T", "fields", "-E", "separator=|"];
    let names = summary.iter().map(|(name, _)| *name);
    let experts = rules.iter().map(|(_, name)| name.as_str());
    let fields = FILTERS.into_iter().chain(names).chain(experts);
    arguments.extend(fields.flat_map(|field| ["-e", field]));
    let mut never: BTreeSet<&str> = rules.iter().map(|(_, name)| name.as_str()).collect();
    let (mut filtered, mut summed) = (Seen::new(), Seen::new());
    for path in captures() {
        let text = decode(&tshark, &path, &arguments);
        let packets = packets(&path);
        assert_eq!(text.lines().count(), packets.len());
        for (i, (packet, line)) in packets.iter().zip(text.lines()).enumerate() {
            let which = format!("{} frame {}", path.display(), i + 1);
            let frame = frame(packet);
            let values: Vec<&str> = line.split('|').collect();
            let (filters, rest) = values.split_at(FILTERS.len());
            let (columns, experts) = rest.split_at(summary.len());
            compare_findings(&frame, &rules, experts, &which, &mut never);
            // Wireshark reassembles fragments, fcn-wire does not: tested below.
            if !matches!(frame.end(), End::Fragment { .. }) {
                compare_filters(&frame, filters, &which, &mut filtered);
                compare_summary(&frame, columns, &which, &mut summed);
            }
        }
    }
    assert!(filtered.values().all(|count| *count >= 8), "{filtered:?}");
    assert_eq!(summed.len(), summary.len());
    assert!(summed.values().all(|count| *count >= 4), "{summed:?}");
    // These need an option type that profiles only allow when forced: below.
    let forced = [
        "fastcnp.type.action",
        "fastcnp.type.change",
        "proxycn.option.type",
    ];
    assert_eq!(never, BTreeSet::from(forced), "rules without a capture");
    // A field that is present also matches as a filter; one check suffices.
    let path = capture("formats-unaware-sender");
    assert_eq!(matches(&tshark, &path, "cnp"), BTreeSet::from([3]));
}

#[test]
fn option_1_is_shown_in_place_without_loss() {
    let Some(tshark) = with_plugin() else { return };
    let trees = trees(&tshark, &capture("formats-fast-cnp"), &[]);
    let header = subtree(&trees[1], "    Destination Options for IPv6").join("\n");
    for part in [
        "    Experimental (0x9E)\n        Type: Experimental (0x9E) (0x9e)\n",
        "        Fast CNP option 1\n            Original destination: 2001:db8:2::1\n    PadN\n",
        "        PadN: 0000",
    ] {
        assert!(header.contains(part), "no\n{part}\nin\n{header}");
    }
    let whole = subtree(&trees[1], "Fast CNP from switch").join("\n");
    for part in [
        "Fast CNP from switch 2001:db8:ffff::3 → sender 2001:db8:1::1, QP 0x12 at 2001:db8:2::1\n",
        "[Congested switch: 2001:db8:ffff::3]",
        "Destination QP (at the receiver): 0x000012",
    ] {
        assert!(whole.contains(part), "no `{part}` in\n{whole}");
    }
    // The BTH's content appears once, in the BTH.
    let roce = subtree(&trees[1], "InfiniBand").join("\n");
    for part in [
        "Opcode: Unknown (129)\n        [Opcode: CNP (0x81)]\n",
        ".1.. .... = BECN: True",
    ] {
        assert!(roce.contains(part), "no `{part}` in\n{roce}");
    }
    for part in ["Opcode", "BECN", "PSN"] {
        assert!(!whole.contains(part), "`{part}` again in\n{whole}");
    }
    assert!(trees[2].contains("Fast CNP from receiver 2001:db8:2::1"));
    assert!(trees[2].contains("[Sent by the receiver: True]"));
}

#[test]
fn option_2_shows_every_part_of_the_trace() {
    let Some(tshark) = with_plugin() else { return };
    let path = capture("formats-ioam");
    let profile = Profile::DEFAULT;
    let trees = trees(&tshark, &path, &[]);
    let mut nodes = 0;
    for (packet, tree) in packets(&path).iter().zip(&trees) {
        let Message::FastCnp(message) =
            Frame::parse(&packet.bytes, packet.wire_len, packet.link, &profile).message()
        else {
            continue;
        };
        let trace = message.parsed.unwrap().trace().unwrap();
        let option = subtree(tree, "Fast CNP option 2");
        assert!(option.iter().any(|line| line.contains("IOAM Opt-Type: ")));
        let shown = option
            .iter()
            .filter(|line| line.starts_with("        Node "))
            .count();
        let expected = trace.nodes().filter(Result::is_ok).count();
        assert_eq!(shown, expected, "{}", option.join("\n"));
        nodes += shown;
        // Every data field of a node has one or two lines of its own.
        let fields: usize = trace
            .nodes()
            .flatten()
            .map(|node| node.fields().count())
            .sum();
        let lines = option
            .iter()
            .filter(|line| line.starts_with("            ") && !line.contains(" = "))
            .count();
        assert!(lines >= fields, "{lines} lines for {fields} fields");
    }
    assert!(nodes > 10, "{nodes}");
}

#[test]
fn the_invoking_packet_is_dissected_as_a_quotation() {
    let Some(tshark) = with_plugin() else { return };
    let path = capture("formats-proxy-cn");
    let trees = trees(&tshark, &path, &[]);
    let invoking = subtree(&trees[1], "    Invoking packet, ").join("\n");
    assert!(
        invoking.contains(
            "\n    Internet Protocol Version 6, Src: 2001:db8:1::1, Dst: 2001:db8:2::1\n"
        )
    );
    assert!(invoking.contains("\n    User Datagram Protocol, "));
    // Conversations include only packets on the wire. (203.0.113.3 sends notifications; no packet
    // comes from 192.0.2.1.)
    let conversations = decode(&tshark, &path, &["-q", "-z", "conv,ip"]);
    assert!(conversations.contains("203.0.113.3"), "{conversations}");
    assert!(!conversations.contains("198.51.100.1"), "{conversations}");
    let columns = decode(&tshark, &path, &[]);
    assert!(columns.contains(
        "Proxy notification from switch 203.0.113.3 → proxy 192.0.2.15, sender 192.0.2.1, flow to 198.51.100.1 QP 0x12, level 7"
    ), "{columns}");
}

#[test]
fn messages_of_bridges_and_csig_tags_are_opened() {
    let Some(tshark) = with_plugin() else { return };
    let path = capture("formats-neighbours");
    let numbers = |filter: &str| matches(&tshark, &path, filter);
    assert_eq!(numbers("cntag.flow == 7 && cnm"), BTreeSet::from([2]));
    let about = "cnm.cpid == 0x0200000000070003 && cnm.feedback == 21 && cnm.qoffset == -16 \
        && cnm.qdelta == 8 && cnm.priority == 3 && cnm.destination == 02:00:00:00:00:02";
    assert_eq!(numbers(about), BTreeSet::from([2, 3]));
    // The frame that a message quotes is only a quotation: its flow has no conversation.
    assert_eq!(
        numbers("cnm.msdu && infiniband.bth.destqp == 0x12"),
        BTreeSet::from([2, 3])
    );
    let conversations = decode(&tshark, &path, &["-q", "-z", "conv,ip"]);
    assert!(!conversations.contains("192.0.2.1"), "{conversations}");
    // What is after the tag is shown as usual, its ICRC included.
    let tagged = "csig.type == 1 && csig.signal == 23 && csig.locator == 5 \
        && ipv6.dst == 2001:db8:2::1 && rocev2.icrc.status == 1";
    assert_eq!(numbers(tagged), BTreeSet::from([4]));
    let elsewhere = ["-o", "csig.ether_type:0x9901", "-Y", "csig"];
    assert_eq!(decode(&tshark, &path, &elsewhere), "");
    let tagged = &packets(&path)[3].bytes;
    let moved = |ether_type: u16| {
        let mut bytes = tagged.clone();
        bytes[12..14].copy_from_slice(&ether_type.to_be_bytes());
        // A short frame is padded, which is not part of the tag's payload.
        bytes.extend([0; 6]);
        bytes
    };
    let moved = [moved(0x9901), moved(0x9900)];
    let file = TempCapture::new("csig", moved.iter().map(|b| (b.as_slice(), b.len())));
    let shown = decode(&tshark, file.path(), &elsewhere);
    assert_eq!(shown.lines().count(), 1, "{shown}");
    let padded = decode(
        &tshark,
        file.path(),
        &["-Y", "csig && (eth.padding || eth.trailer)"],
    );
    assert_eq!(padded.lines().count(), 1, "{padded}");
}

#[test]
fn trimmed_packets_have_a_comment_and_break_no_rule() {
    let Some(tshark) = with_plugin() else { return };
    let path = capture("formats-trimmed");
    let numbers = |filter: &str| matches(&tshark, &path, filter);
    assert_eq!(numbers("rocev2.trimmed == \"lengths\""), [2, 4, 5].into());
    assert_eq!(numbers("rocev2.trimmed == \"reth\""), [3].into());
    assert_eq!(numbers("rocev2.trimmed.comment"), [2, 3, 4, 5].into());
    assert!(numbers("fcn.finding || rocev2.icrc.status == 0").is_empty());
    let by_dscp = [
        "-o",
        "rocev2.trimmed_dscp:5, 11",
        "-Y",
        "rocev2.trimmed == \"dscp\"",
    ];
    let shown = decode(&tshark, &path, &by_dscp);
    assert_eq!(shown.lines().count(), 1, "{shown}");
    let wrong = tshark.run(&path, &["-o", "rocev2.trimmed_dscp:64", "-c", "1"]);
    let said = String::from_utf8_lossy(&wrong.unwrap().stderr).into_owned();
    assert!(said.contains("\"64\" is not a list of DSCPs"), "{said}");
}

#[test]
fn nested_tags_are_harmless() {
    let mut bad = Vec::new();
    for tags in [2usize, 100, 2000, 16_000] {
        let mut bytes = vec![2; 12];
        for _ in 0..tags {
            bytes.extend([0x99, 0, 0, 0]);
        }
        bad.push((bytes.clone(), bytes.len()));
        bytes.extend([0x22, 0xE7]);
        bad.push((bytes.clone(), bytes.len()));
    }
    harmless("tags", &bad);
}

#[test]
fn reply_of_an_unaware_sender_names_the_quoted_fast_cnp() {
    let Some(tshark) = with_plugin() else { return };
    let path = capture("formats-unaware-sender");
    let columns = decode(&tshark, &path, &["-Y", "icmpv6"]);
    assert!(
        columns.contains("[quotes Fast CNP from switch 2001:db8:ffff::3 → sender 2001:db8:1::1"),
        "{columns}"
    );
    assert_eq!(matches(&tshark, &path, "fastcnp"), BTreeSet::from([1]));
    assert_eq!(
        matches(&tshark, &path, "fastcnp.option && fastcnp.quoted"),
        BTreeSet::from([2])
    );
}

#[test]
fn icrc_is_judged_by_the_matching_interpretation() {
    let Some(tshark) = with_plugin() else { return };
    let path = capture("formats-fast-cnp");
    let text = decode(
        &tshark,
        &path,
        &[
            "-Y",
            "fastcnp",
            "-T",
            "fields",
            "-e",
            "rocev2.icrc.status",
            "-e",
            "rocev2.icrc.matches",
        ],
    );
    let readings: BTreeSet<&str> = text.lines().filter_map(|l| l.strip_prefix("1\t")).collect();
    assert_eq!(readings, BTreeSet::from(["A", "A2", "B", "C"]), "{text}");

    let bad = matches(
        &tshark,
        &capture("malformed-cnp"),
        "rocev2.icrc.status == 0",
    );
    let named = matches(
        &tshark,
        &capture("malformed-cnp"),
        "rocev2.icrc.bad || rocev2.icrc.swapped || rocev2.icrc.missing",
    );
    assert!(!bad.is_empty());
    assert_eq!(bad, named);

    let off = [
        "-o",
        "rocev2.check_icrc:FALSE",
        "-Y",
        "rocev2.icrc.status != 2",
    ];
    assert_eq!(decode(&tshark, &path, &off), "");
    let cut = capture("formats-cut");
    assert!(matches(&tshark, &cut, "rocev2.icrc.unchecked").len() >= 2);
    assert!(matches(&tshark, &cut, "rocev2.icrc.bad").is_empty());
}

#[test]
fn reassembled_fast_cnps_are_recognized() {
    let Some(tshark) = with_plugin() else { return };
    let path = capture("formats-cut");
    let reassembled = matches(&tshark, &path, "ipv6.fragments && fastcnp");
    assert!(!reassembled.is_empty());
    assert!(matches(&tshark, &path, "ipv6.fragments && cnp").is_empty());
}

/// Returns the Ethernet frames of the captures with well-formed messages.
fn good_frames() -> Vec<Vec<u8>> {
    [
        "formats-cnp",
        "formats-fast-cnp",
        "formats-ioam",
        "formats-proxy-cn",
        "formats-wan-fcn",
        "formats-neighbours",
    ]
    .iter()
    .flat_map(|name| packets(&capture(name)))
    .filter(|packet| packet.link == LinkType::Ethernet && packet.bytes.len() == packet.wire_len)
    .map(|packet| packet.bytes)
    .collect()
}

/// Returns the first frame of each kind.
fn one_of_each() -> Vec<Vec<u8>> {
    let mut kinds = BTreeSet::new();
    let profile = Profile::DEFAULT;
    good_frames()
        .into_iter()
        .filter(|bytes| {
            let frame = Frame::parse(bytes, bytes.len(), LinkType::Ethernet, &profile);
            let number = match frame.message() {
                Message::FastCnp(message) => message.parsed.map_or(0, |option| option.number()),
                _ => 0,
            };
            filter_of(&frame).is_some_and(|filter| kinds.insert((filter, number)))
        })
        .collect()
}

/// Checks that each frame of `bad` harms neither tshark nor the good packet after it.
fn harmless(name: &str, bad: &[(Vec<u8>, usize)]) {
    let Some(tshark) = with_plugin() else { return };
    let good = packets(&capture("formats-fast-cnp"))[1].bytes.clone();
    let frames = bad.iter().flat_map(|(bytes, wire_len)| {
        [(bytes.as_slice(), *wire_len), (good.as_slice(), good.len())]
    });
    let file = TempCapture::new(name, frames);
    let columns = [
        "-T",
        "fields",
        "-e",
        "_ws.col.Protocol",
        "-e",
        "_ws.col.Info",
    ];
    let output = decode(&tshark, file.path(), &columns);
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines.len(), 2 * bad.len());
    for (i, line) in lines.iter().enumerate().skip(1).step_by(2) {
        assert_eq!(
            *line,
            "Fast CNP\tFast CNP from switch 2001:db8:ffff::3 → sender 2001:db8:1::1, QP 0x12 at 2001:db8:2::1",
            "behind bad packet {}",
            i / 2
        );
    }
    // Full trees, which exercise most code.
    let shown = trees(&tshark, file.path(), &[]);
    assert_eq!(shown.len(), 2 * bad.len());
}

#[test]
fn truncated_captures_are_not_reported_as_malformed() {
    let mut bad = Vec::new();
    for bytes in one_of_each() {
        for len in 0..bytes.len().min(200) {
            bad.push((bytes[..len].to_vec(), bytes.len()));
        }
    }
    assert!(bad.len() > 400);
    harmless("cut", &bad);
    let Some(tshark) = with_plugin() else { return };
    let file = TempCapture::new("cut2", bad.iter().map(|(b, len)| (b.as_slice(), *len)));
    let ours = "cnp.malformed || fastcnp.malformed || proxycn.malformed || wanfcn.malformed || rocev2.malformed || rocev2.icrc.bad || fastcnp.not_a_cnp";
    assert_eq!(matches(&tshark, file.path(), ours), BTreeSet::new());
}

#[test]
fn packets_that_end_at_any_octet_are_harmless() {
    let mut bad = Vec::new();
    for bytes in one_of_each() {
        for len in 14..bytes.len().min(200) {
            bad.push((bytes[..len].to_vec(), len));
        }
    }
    harmless("short", &bad);
}

#[test]
fn wrong_octets_are_harmless() {
    let mut bad = Vec::new();
    for bytes in one_of_each() {
        for at in 14..bytes.len().min(180) {
            for value in [
                0,
                0xFF,
                bytes[at].wrapping_add(1),
                bytes[at].wrapping_sub(1),
            ] {
                let mut wrong = bytes.clone();
                wrong[at] = value;
                bad.push((wrong, bytes.len()));
            }
        }
    }
    assert!(bad.len() > 2000);
    harmless("octets", &bad);
}

#[test]
fn ports_and_option_types_are_preferences_and_decode_as_works() {
    let Some(tshark) = with_plugin() else { return };
    let swap = |from: [u8; 2], to: [u8; 2], at: usize, mut bytes: Vec<u8>| {
        assert_eq!(bytes[at..at + 2], from);
        bytes[at..at + 2].copy_from_slice(&to);
        bytes
    };
    // UDP after Ethernet and IPv6.
    let port_at = 14 + 40 + 2;
    let wan = packets(&capture("formats-wan-fcn"))[1].bytes.clone();
    let proxy = packets(&capture("formats-proxy-cn"))[1].bytes.clone();
    let wan = swap(1022u16.to_be_bytes(), 7022u16.to_be_bytes(), port_at, wan);
    let proxy = swap(1021u16.to_be_bytes(), 7021u16.to_be_bytes(), port_at, proxy);
    let fast = packets(&capture("formats-fast-cnp"))[1].bytes.clone();
    let fast = swap([0x9E, 16], [0x88, 16], 14 + 40 + 2, fast);
    let frames = [&wan, &proxy, &fast];
    let file = TempCapture::new("ports", frames.iter().map(|b| (b.as_slice(), b.len())));
    let all = "wanfcn || proxycn || fastcnp";
    let with = |arguments: &[&str]| {
        let fields = ["-Y", all, "-T", "fields", "-e", "frame.number"];
        decode(&tshark, file.path(), &[arguments, &fields].concat())
    };
    assert_eq!(with(&[]), "");
    assert_eq!(with(&["-o", "wanfcn.udp.port:7022"]), "1\n");
    assert_eq!(with(&["-o", "proxycn.udp.port:7021"]), "2\n");
    assert_eq!(with(&["-o", "fastcnp.option1_type:0x88"]), "3\n");
    assert_eq!(with(&["-o", "fastcnp.option2_type:0x88"]), "3\n");
    assert_eq!(with(&["-d", "udp.port==7022,wanfcn"]), "1\n");
    assert_eq!(with(&["-d", "udp.port==7021,proxycn"]), "2\n");
    let option = [
        "-o",
        "rocev2.force:TRUE",
        "-o",
        "proxycn.option_type:0x88",
        "-Y",
        "proxycn.option",
    ];
    assert_eq!(decode(&tshark, file.path(), &option).lines().count(), 1);
}

#[test]
fn option_types_outside_the_drafts_are_reported() {
    let Some(tshark) = with_plugin() else { return };
    let mut fast = packets(&capture("formats-fast-cnp"))[1].bytes.clone();
    assert_eq!(fast[14 + 40 + 2], 0x9E);
    fast[14 + 40 + 2] = 0x3E;
    let file = TempCapture::new("types", [(fast.as_slice(), fast.len())].into_iter());
    let shown = |preference: &str, rule: &str| {
        let forced = ["-o", "rocev2.force:TRUE", "-o", preference, "-Y", rule];
        !decode(&tshark, file.path(), &forced).is_empty()
    };
    assert!(shown("fastcnp.option1_type:0x3e", "fastcnp.type.action"));
    assert!(shown("fastcnp.option1_type:0x3e", "fastcnp.type.change"));
    assert!(shown("proxycn.option_type:0x3e", "proxycn.option.type"));
    assert!(!shown("proxycn.option_type:0x3e", "fastcnp || proxycn"));
}

#[test]
fn preferences_out_of_range_are_refused_with_a_message() {
    let Some(tshark) = with_plugin() else { return };
    let path = capture("formats-fast-cnp");
    let run = |preference: &str| {
        let output = tshark.run(&path, &["-Y", "fastcnp", "-o", preference]);
        let output = output.unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    };
    let (usual, _) = run("fastcnp.option1_type:0x9e");
    assert!(!usual.is_empty());
    for (preference, name) in [
        (
            "fastcnp.option1_type:0x19e",
            "fastcnp.option1_type: fast_cnp_option1: `0x19e`",
        ),
        (
            "proxycn.option_type:0x100",
            "proxycn.option_type: proxy_address_option: `0x100`",
        ),
        (
            "pnc.bgp_characteristic:65536",
            "pnc.bgp_characteristic: bgp_pnc_characteristic: `0x10000`",
        ),
        (
            "csig.ether_type:0x86dd",
            "csig.ether_type: csig_ether_type = 0x86dd is refused",
        ),
        // Values that the draft forbids, values that are taken, and equal values.
        (
            "fastcnp.option1_type:0x1e",
            "fastcnp.option1_type: fast_cnp_option1 = 0x1e is refused",
        ),
        (
            "fastcnp.option2_type:0x9e",
            "fastcnp.option2_type: fast_cnp_option2 = 0x9e is refused",
        ),
        (
            "fastcnp.option1_type:0x9f",
            "fastcnp.option1_type: fast_cnp_option1 = 0x9f is refused: fast_cnp_option2 has",
        ),
        (
            "proxycn.option_type:0x12",
            "proxycn.option_type: proxy_address_option = 0x12 is refused: AltMark",
        ),
        (
            "pnc.bgp_characteristic:5",
            "pnc.bgp_characteristic: bgp_pnc_characteristic = 5 is refused",
        ),
        (
            "fcn.rate_window:0",
            "\"rate_window\": 0 is out of range: 1 to 1000000 microseconds",
        ),
        (
            "fcn.rate_window:1000001",
            "\"rate_window\": 1000001 is out of range",
        ),
    ] {
        let (shown, stderr) = run(preference);
        assert!(stderr.contains(name), "{stderr}");
        assert_eq!(shown, usual, "{preference}");
    }
}

#[test]
fn ports_of_other_protocols_are_refused_and_stay_theirs() {
    let Some(tshark) = with_plugin() else { return };
    let count = |name: &str, filter: &str, preferences: &[&str]| {
        let mut arguments = vec!["-Y", filter];
        for preference in preferences {
            arguments.extend(["-o", preference]);
        }
        let output = tshark.run(&capture(name), &arguments).unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout).lines().count(), text(&output.stderr))
    };
    let (wan, proxy, vxlan) = ("formats-wan-fcn", "formats-proxy-cn", "wan-fcn-vxlan");
    let usual = |name, filter| count(name, filter, &[]).0;
    for (preference, message, kept) in [
        (
            "wanfcn.udp.port:1021",
            "wanfcn.udp.port: wan_fcn_port = 1021 is refused: proxy_cn_port has",
            [(wan, "wanfcn"), (proxy, "proxycn")],
        ),
        (
            "proxycn.udp.port:4789",
            "proxycn.udp.port: proxy_cn_port = 4789 is refused: VXLAN uses",
            [(proxy, "proxycn"), (vxlan, "vxlan")],
        ),
        (
            "wanfcn.udp.port:0",
            "wanfcn.udp.port: wan_fcn_port = 0 is refused: 0 is not a port",
            [(wan, "wanfcn"), (proxy, "proxycn")],
        ),
        (
            "proxycn.udp.port:4791",
            "proxycn.udp.port: proxy_cn_port = 4791 is refused: rocev2_port has",
            [(proxy, "proxycn"), (vxlan, "rocev2")],
        ),
    ] {
        for (name, filter) in kept {
            let (found, errors) = count(name, filter, &[preference]);
            assert!(errors.contains(message), "{preference}: {errors}");
            assert!(found > 0, "{preference}");
            assert_eq!(found, usual(name, filter), "{preference}: {filter}");
        }
    }
    // They may be swapped, or forced.
    let swapped = ["wanfcn.udp.port:1021", "proxycn.udp.port:1022"];
    let forced = ["wanfcn.udp.port:1021", "rocev2.force:TRUE"];
    for preferences in [swapped, forced] {
        let (_, errors) = count(wan, "wanfcn", &preferences);
        assert!(!errors.contains("refused"), "{errors}");
    }
}

/// The notified node drops them: the Info column reports that, and the statistics count them
/// separately.
#[test]
fn messages_dropped_for_their_checksum_are_marked() {
    let Some(tshark) = with_plugin() else { return };
    for (name, which) in [
        ("formats-wan-fcn", "wanfcn"),
        ("formats-proxy-cn", "proxycn"),
    ] {
        let good = packets(&capture(name))[1].bytes.clone();
        let mut bad = good.clone();
        // After Ethernet, IPv6, and UDP's ports and length.
        bad[14 + 40 + 6] ^= 1;
        let file = TempCapture::new(
            &format!("checksum-{which}"),
            [&good, &bad].into_iter().map(|b| (b.as_slice(), b.len())),
        );
        let shown = decode(&tshark, file.path(), &[]);
        let says: Vec<bool> = (shown.lines())
            .map(|line| line.ends_with(" [UDP checksum incorrect]"))
            .collect();
        assert_eq!(says, [false, true], "{shown}");
        assert_eq!(matches(&tshark, file.path(), "fcn"), BTreeSet::from([1]));
        let tree = decode(&tshark, file.path(), &["-q", "-z", "fcn,tree"]);
        let malformed = tree.lines().find(|line| line.starts_with("Malformed"));
        let columns: Vec<&str> = malformed.unwrap().split_whitespace().collect();
        assert_eq!(columns[3], "1", "{tree}");
    }
}

#[test]
fn options_that_run_past_their_header_are_not_notifications() {
    let Some(tshark) = with_plugin() else { return };
    // A Fast CNP whose padding is too long, and one whose option is.
    let good = packets(&capture("formats-fast-cnp"))[1].bytes.clone();
    let option = 14 + 40 + 2;
    let with = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        bytes
    };
    assert_eq!((good[option], good[option + 18]), (0x9E, 1));
    let frames = [good.clone(), with(option + 19, 200), with(option + 1, 200)];
    let file = TempCapture::new("overrun", frames.iter().map(|b| (b.as_slice(), b.len())));
    let found = |filter| matches(&tshark, file.path(), filter);
    assert_eq!(found("fcn"), BTreeSet::from([1]));
    assert_eq!(found("fcn.packet.length"), BTreeSet::from([2]));
    assert_eq!(found("fastcnp.malformed"), BTreeSet::from([3]));
    assert_eq!(found("rocev2.icrc.bad"), BTreeSet::new());
    for (bytes, rule) in
        frames
            .iter()
            .zip([None, Some(Rule::PacketLength), Some(Rule::FastCnpMalformed)])
    {
        let frame = Frame::parse(bytes, bytes.len(), LinkType::Ethernet, &Profile::DEFAULT);
        let mut findings = Findings::new();
        frame.check(IcrcCheck::On, &mut findings);
        let broken: Vec<Rule> = findings.into_iter().map(|finding| finding.rule).collect();
        assert_eq!(broken, rule.into_iter().collect::<Vec<_>>());
        assert_eq!(Notification::from_frame(&frame).is_some(), rule.is_none());
    }
}

/// The RoCEv2 port is InfiniBand's own preference: the plugin follows it, and respects Decode As.
#[test]
fn the_rocev2_port_follows_infinibands_preference_and_decode_as() {
    let Some(tshark) = with_plugin() else { return };
    let path = capture("formats-cnp");
    let count = |arguments: &[&str]| {
        decode(&tshark, &path, &[arguments, &["-Y", "cnp"]].concat())
            .lines()
            .count()
    };
    let all = count(&[]);
    assert!(all > 2);
    assert_eq!(count(&["-o", "infiniband.rroce.port:4792"]), 0);
    assert_eq!(count(&["-o", "infiniband.identify_payload:FALSE"]), all);
    assert_eq!(count(&["-d", "udp.port==4791,dns"]), 0);
    // Only the headers have the new port, so the ICRCs no longer match.
    let mut moved: Vec<Vec<u8>> = packets(&path)
        .into_iter()
        .map(|packet| packet.bytes)
        .collect();
    for bytes in &mut moved {
        let at = (bytes
            .windows(2)
            .position(|two| two == 4791u16.to_be_bytes()))
        .unwrap();
        bytes[at..at + 2].copy_from_slice(&5000u16.to_be_bytes());
    }
    let file = TempCapture::new("moved", moved.iter().map(|b| (b.as_slice(), b.len())));
    assert!(matches(&tshark, file.path(), "cnp").is_empty());
    let chosen = |filter: &str| {
        let arguments = ["-d", "udp.port==5000,infiniband", "-Y", filter];
        decode(&tshark, file.path(), &arguments).lines().count()
    };
    assert_eq!(chosen("cnp"), all);
    assert_eq!(chosen("cnp && rocev2.icrc.status == \"Bad\""), all);
    assert_eq!(count(&["--disable-protocol", "infiniband"]), 0);
}

/// The protocol of a packet, and the subtree that all notifications share, follow the choice and
/// not the port.
#[test]
fn decode_as_overrides_the_port_completely() {
    let Some(tshark) = with_plugin() else { return };
    let kinds = |name: &str, port: u16, protocol: &str| -> BTreeSet<String> {
        let choice = format!("udp.port=={port},{protocol}");
        let filter = format!("udp.dstport == {port} && {protocol}");
        let arguments = [
            "-d", &choice, "-Y", &filter, "-T", "fields", "-e", "fcn.kind",
        ];
        decode(&tshark, &capture(name), &arguments)
            .lines()
            .map(str::to_owned)
            .collect()
    };
    let none = || BTreeSet::from([String::new()]);
    assert_eq!(kinds("formats-proxy-cn", 1021, "wanfcn"), none());
    assert_eq!(kinds("formats-cnp", 4791, "wanfcn"), none());
    assert_eq!(kinds("formats-cnp", 4791, "proxycn"), none());
    assert!(kinds("formats-wan-fcn", 1022, "wanfcn").contains("wan_fcn"));
}

#[test]
fn conflict_of_infinibands_port_is_reported() {
    let Some(tshark) = with_plugin() else { return };
    let stderr = |preference: &str| {
        let mut command = tshark.command();
        let path = tshark.readable(&capture("formats-wan-fcn")).unwrap();
        let output = command.args(["-o", preference, "-r"]).arg(path).output();
        String::from_utf8_lossy(&output.unwrap().stderr).into_owned()
    };
    let text = stderr("infiniband.rroce.port:1022");
    assert!(text.contains("1022 is also wanfcn.udp.port"), "{text}");
    assert!(!stderr("infiniband.rroce.port:4800").contains("is also"));
}

#[test]
fn fields_are_listed_and_none_hides_a_wireshark_field() {
    let Some(tshark) = with_plugin() else { return };
    let listed = |tshark: &xtask::tshark::Tshark| -> BTreeMap<String, usize> {
        let output = tshark.command().args(["-G", "fields"]).output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut names = BTreeMap::new();
        for line in text.lines() {
            *names
                .entry(line.split('\t').nth(2).unwrap_or_default().to_owned())
                .or_insert(0) += 1;
        }
        names
    };
    let stock = listed(&common::stock().unwrap());
    let ours: BTreeMap<String, usize> = listed(&tshark)
        .into_iter()
        .filter(|(name, count)| stock.get(name) != Some(count))
        .collect();
    assert!(ours.len() > 150, "{}", ours.len());
    // The command on the page lists exactly these fields.
    let page = include_str!("../../docs/wireshark.md");
    let listing = (page.split("tshark -G fields | grep -P '").nth(1))
        .and_then(|rest| rest.split('\'').next())
        .expect("a command in the page");
    let all = tshark
        .command()
        .args(["-G", "fields"])
        .output()
        .unwrap()
        .stdout;
    let file = std::env::temp_dir().join(format!("fcn-fields-{}", std::process::id()));
    std::fs::write(&file, &all).unwrap();
    let grep = std::process::Command::new("grep")
        .args(["-P", listing])
        .arg(&file)
        .output()
        .unwrap();
    let _ = std::fs::remove_file(&file);
    let listed: BTreeSet<String> = String::from_utf8_lossy(&grep.stdout)
        .lines()
        .map(|line| line.split('\t').nth(2).unwrap_or_default().to_owned())
        .collect();
    assert_eq!(listed, ours.keys().cloned().collect());
    for (name, count) in &ours {
        assert_eq!(*count, 1, "{name} is registered twice");
        let first = name.split('.').next().unwrap();
        assert!(
            [
                "rocev2", "cnp", "fastcnp", "proxycn", "wanfcn", "fcn", "pnc", "cnm", "cntag",
                "csig"
            ]
            .contains(&first),
            "{name}"
        );
    }
}

/// Two passes, a filter without display, and colour rules take different paths through the same
/// code.
#[test]
fn all_display_modes_agree() {
    let Some(tshark) = with_plugin() else { return };
    let path: &Path = &capture("formats-ioam");
    let one = decode(&tshark, path, &[]);
    assert_eq!(one, decode(&tshark, path, &["-2"]));
    let fields = ["-T", "fields", "-e", "fastcnp.node.queue_depth"];
    let faked = decode(&tshark, path, &fields);
    let mut visible = String::new();
    for tree in trees(&tshark, path, &[]) {
        let depths: Vec<&str> = tree
            .lines()
            .filter_map(|line| line.trim().strip_prefix("Queue depth: "))
            .collect();
        visible += &depths.join(",");
        visible.push('\n');
    }
    assert_eq!(faked, visible);
    assert!(faked.contains(','), "{faked}");
    // Only expert info is requested, in a tree that is not visible.
    let broken = capture("malformed-fast-cnp");
    let arguments = [
        "-T",
        "fields",
        "-e",
        "_ws.expert.message",
        "-Y",
        "frame.number == 7",
    ];
    assert!(decode(&tshark, &broken, &arguments).contains("More than one Fast CNP option"));
    let pdml = decode(&tshark, path, &["-T", "pdml", "-Y", "fastcnp"]);
    assert!(pdml.contains("<field name=\"fastcnp.option\""));
    let hierarchy = decode(&tshark, path, &["-q", "-z", "io,phs"]);
    assert!(hierarchy.contains("fastcnp"), "{hierarchy}");
    let experts = decode(
        &tshark,
        &capture("malformed-fast-cnp"),
        &["-q", "-z", "expert"],
    );
    assert!(
        experts.contains("More than one Fast CNP option"),
        "{experts}"
    );
}

/// Every finding of ours can be filtered under one name, by severity, for all protocols; so the
/// profile's filters are short.
#[test]
fn findings_have_a_common_name_and_their_own_protocol() {
    let Some(tshark) = with_plugin() else { return };
    let profile = include_str!("../profile/fcn/dfilter_buttons");
    let of = |severity| format!("fcn.finding.severity == \\x22{severity}\\x22");
    for filter in ["error", "warning", "note"].map(of) {
        assert!(profile.contains(&format!("\",\"{filter}\",\"")), "{filter}");
    }
    let wrong = format!("{} || {}", of("error"), of("warning")).replace("\\x22", "\"");
    for name in [
        "malformed-pnc",
        "malformed-ioam",
        "malformed-proxy-cn",
        "malformed-pfc",
    ] {
        let path = capture(name);
        let mut routing = Routing::default();
        let bad: BTreeSet<usize> = (packets(&path).iter().enumerate())
            .filter(|(_, packet)| {
                let mut findings = Findings::new();
                let frame = frame(packet);
                let session = routing.learn_frame(&frame, &mut findings);
                frame.check_in_session(IcrcCheck::On, session, &mut findings);
                let empty = (frame.datagram()).is_some_and(|d| d.payload_len == 0);
                findings.worst() > Some(fcn_wire::Severity::Note) && !empty
            })
            .map(|(i, _)| i + 1)
            .collect();
        assert!(bad.len() > 2);
        assert_eq!(matches(&tshark, &path, &wrong), bad, "{name}");
    }
    let experts = decode(&tshark, &capture("malformed-pnc"), &["-q", "-z", "expert"]);
    let line = experts
        .lines()
        .find(|line| line.contains("The flags are empty"));
    assert!(line.is_some_and(|line| line.contains(" PNC ")), "{experts}");
}
