//! The Proxy Node Capability in tshark: shown as fcn-wire parses it, at its prefix, however TCP
//! segments a message; decoded at a chosen port, disabled, truncated and broken in many ways
//! without harm.

mod common;

use common::{
    Packet, TempCapture, captures, decode, matches, packets, stock, subtree, trees, with_plugin,
};
use fcn_wire::Profile;
use fcn_wire::frame::{Frame, LinkType, Upper};
use fcn_wire::pnc::{Flooding, Prefix, Protocol, bgp, bgp_update, ospf2, walk};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use xtask::captures::COLUMNS;
use xtask::tshark::Tshark;

fn capture(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../captures/{name}.pcapng"));
    assert!(path.exists(), "no capture {name}");
    path
}

/// Returns the protocol, and each prefix whose PNC state is known, according to fcn-wire.
fn expected(packet: &Packet) -> Option<(Protocol, Vec<String>)> {
    let profile = Profile::DEFAULT;
    let frame = Frame::parse(&packet.bytes, packet.wire_len, packet.link, &profile);
    let (protocol, at, bytes) = match frame.upper() {
        Upper::IsIs(at, bytes) => (Protocol::IsIs, *at, *bytes),
        Upper::Bgp(at, bytes) => (Protocol::Bgp, *at, *bytes),
        Upper::Ospf(ip, bytes) if ip.source.is_ipv4() => (Protocol::Ospf2, ip.payload, *bytes),
        Upper::Ospf(ip, bytes) => (Protocol::Ospf3, ip.payload, *bytes),
        _ => return None,
    };
    let wire_len = frame.spans().last()?.end - at;
    let walk = walk(protocol, bytes, wire_len, &profile).ok()??;
    let prefixes = walk
        .filter(|found| match protocol {
            Protocol::Bgp => found.carrier.is_some(),
            _ => found.flag_offset.is_some(),
        })
        .filter_map(|found| Some(format!("{}={}", found.prefix?, u8::from(found.pnc))))
        .collect();
    Some((protocol, prefixes))
}

/// Converts a Boolean to the form that 4.0 prints in fields.
fn flag(text: &str) -> &str {
    match text {
        "True" => "1",
        "False" => "0",
        other => other,
    }
}

/// Returns `prefix=capable` for every frame, from tshark's fields; prefixes whose PNC cannot be
/// read are left out.
fn shown(tshark: &Tshark, capture: &Path, arguments: &[&str]) -> Vec<Vec<String>> {
    let fields = [
        "-T",
        "fields",
        "-E",
        "separator=|",
        "-e",
        "pnc.prefix",
        "-e",
        "pnc.capable",
    ];
    let text = decode(tshark, capture, &[arguments, &fields].concat());
    let lines = text.lines().map(|line| {
        let (prefixes, flags) = line.split_once('|').unwrap();
        let both = prefixes.split(',').zip(flags.split(','));
        both.filter(|(prefix, capable)| !prefix.is_empty() && !capable.is_empty())
            .map(|(prefix, capable)| format!("{prefix}={}", flag(capable)))
            .collect()
    });
    lines.collect()
}

#[test]
fn every_prefix_matches_fcn_wire() {
    let Some(tshark) = with_plugin() else { return };
    let mut seen = BTreeMap::new();
    for path in captures() {
        let packets = packets(&path);
        if packets.iter().all(|packet| expected(packet).is_none()) {
            continue;
        }
        let shown = shown(&tshark, &path, &[]);
        for (i, (packet, shown)) in packets.iter().zip(&shown).enumerate() {
            let (protocol, prefixes) = expected(packet).unzip();
            let prefixes: Vec<String> = prefixes.unwrap_or_default();
            assert_eq!(&prefixes, shown, "{} frame {}", path.display(), i + 1);
            if let Some(protocol) = protocol {
                *seen.entry(protocol).or_insert(0) += prefixes.len();
            }
        }
    }
    assert_eq!(seen.len(), 4, "{seen:?}");
    assert!(seen.values().all(|count| *count > 3), "{seen:?}");
}

#[test]
fn one_set_of_filters_finds_all_four_protocols() {
    let Some(tshark) = with_plugin() else { return };
    let path = capture("formats-pnc");
    let all = BTreeSet::from([1, 2, 3, 4, 5, 6]);
    for (filter, frames) in [
        ("pnc", &all),
        ("pnc.capable == 1", &all),
        ("pnc.capable == 0", &BTreeSet::from([1])),
        (
            "pnc.prefix == \"192.0.2.15/32\"",
            &BTreeSet::from([1, 2, 6]),
        ),
        (
            "pnc.prefix_ipv4 == 192.0.2.0/24",
            &BTreeSet::from([1, 2, 6]),
        ),
        (
            "pnc.prefix_ipv6 == 2001:db8:1::/48",
            &BTreeSet::from([1, 3, 4, 5, 6]),
        ),
        ("pnc.isis.flags.pnc == 1", &BTreeSet::from([1])),
        ("pnc.ospf.flags.pnc == 1", &BTreeSet::from([2, 3, 4, 5])),
        ("pnc.ospfv3.tlv.metric == 10", &BTreeSet::from([3, 4, 5])),
        ("pnc.nhc.characteristic.code == 65280", &BTreeSet::from([6])),
        (
            "pnc.nhc.next_hop_ipv6 == 2001:db8:1::f",
            &BTreeSet::from([6]),
        ),
        (
            "pnc.left_out.prefixes || pnc.left_out.findings",
            &BTreeSet::new(),
        ),
    ] {
        assert_eq!(&matches(&tshark, &path, filter), frames, "{filter}");
        // In a visible tree, our items are in a different position.
        let shown = decode(&tshark, &path, &["-V", "-Y", filter]);
        assert_eq!(shown.matches("\nFrame ").count(), frames.len(), "{filter}");
    }
}

#[test]
fn items_are_placed_at_their_prefix() {
    let Some(tshark) = with_plugin() else { return };
    let trees = trees(&tshark, &capture("formats-pnc"), &[]);
    let advertised = |prefix: &str| format!("Proxy Node Capability of {prefix}: advertised");
    let isis = |from: &str, prefix: &str, state: &str| {
        let part = subtree(&trees[0], from).join("\n");
        let wanted = format!("    Proxy Node Capability of {prefix}: {state}");
        assert!(part.contains(&wanted), "no `{wanted}` in\n{part}");
        assert_eq!(
            part.matches("Proxy Node Capability of ").count(),
            1,
            "{part}"
        );
    };
    isis(
        "Ext. IP Reachability: 192.0.2.15/32",
        "192.0.2.15/32",
        "advertised",
    );
    isis(
        "Ext. IP Reachability: 192.0.2.0/24",
        "192.0.2.0/24",
        "not advertised",
    );
    isis(
        "Multi Topology Reachable IPv4",
        "192.0.2.15/32",
        "advertised",
    );
    for from in [
        "IPv6 reachability",
        "Multi Topology Reachable IPv6",
        "SRv6 Locator (t=",
    ] {
        isis(from, "2001:db8:1::f/128", "advertised");
    }
    let flags = "Prefix Attribute Flags (first octet): 0x01\n        .... ...1 = Proxy Node Capability: True";
    let own = subtree(&trees[0], &advertised("192.0.2.15/32")).join("\n");
    assert!(own.contains(flags), "{own}");

    let sub_tlv = |kind: u16| {
        format!(
            "    Prefix Extended Flags sub-TLV\n        Sub-TLV Type: {kind}\n        Sub-TLV Length: 4\n        Prefix Extended Flags (first word): 0x20000000\n            ..1. .... .... .... .... .... .... .... = Proxy Node Capability: True\n"
        )
    };
    let part = subtree(&trees[1], "OSPFv2 Extended Prefix TLV ").join("\n");
    let own = subtree(&part, &advertised("192.0.2.15/32")).join("\n");
    assert!(own.contains(&sub_tlv(11)), "{own}");
    for (tree, kind) in [(2, 41), (3, 35), (4, 37)] {
        let part = subtree(&trees[tree], &format!("LSA-type {kind} ")).join("\n");
        let own = subtree(&part, &advertised("2001:db8:1::f/128")).join("\n");
        assert!(own.contains(&sub_tlv(37)), "{own}");
        assert!(
            own.contains("Metric: 10\n        Prefix Length: 128\n"),
            "{own}"
        );
    }

    let lines: Vec<&str> = trees[5].lines().map(str::trim_start).collect();
    let attributes: Vec<usize> = (0..lines.len())
        .filter(|i| lines[*i] == "Proxy Node Capability: Next Hop Dependent Characteristics")
        .collect();
    assert_eq!(attributes.len(), 2);
    for at in attributes {
        assert!(lines[at - 3].starts_with("Type Code: ") && lines[at - 3].ends_with(" (39)"));
    }
    for prefix in ["192.0.2.15/32", "2001:db8:1::f/128"] {
        let part = subtree(&trees[5], &format!(" {prefix}\n").replace('\n', "")).join("\n");
        assert!(part.contains(&advertised(prefix)), "{part}");
    }
}

#[test]
fn all_display_modes_agree_about_prefixes() {
    let Some(tshark) = with_plugin() else { return };
    for name in ["formats-pnc", "malformed-pnc", "proxy-bgp", "proxy-ospfv3"] {
        let path = capture(name);
        let one = shown(&tshark, &path, &[]);
        assert_eq!(one, shown(&tshark, &path, &["-2"]), "{name}");
        let count: usize = one.iter().map(Vec::len).sum();
        let named = |text: String, name: &str| text.matches(name).count();
        let pdml = decode(&tshark, &path, &["-T", "pdml"]);
        assert_eq!(named(pdml, "<field name=\"pnc.capable\""), count, "{name}");
        let json = decode(&tshark, &path, &["-T", "json", "--no-duplicate-keys"]);
        assert!(named(json, "\"pnc.capable\"") > 0, "{name}");
        let tree = decode(&tshark, &path, &["-V"]);
        assert_eq!(named(tree, "[Proxy node capable: "), count, "{name}");
        let experts = decode(&tshark, &path, &["-q", "-z", "expert"]);
        let broken = experts.contains("PNC is set on a prefix that is not a host prefix");
        assert_eq!(broken, name == "malformed-pnc", "{experts}");
    }
}

/// Returns an Ethernet frame with IPv4 and `payload`.
fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0xC0];
    frame.extend((20 + payload.len() as u16).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
    frame.extend([192, 0, 2, 1, 198, 51, 100, 1]);
    frame.extend(payload);
    frame
}

fn tcp(ports: (u16, u16), at: usize, data: &[u8]) -> Vec<u8> {
    let mut segment = Vec::new();
    segment.extend(ports.0.to_be_bytes());
    segment.extend(ports.1.to_be_bytes());
    segment.extend((1 + at as u32).to_be_bytes());
    segment.extend([0, 0, 0, 1, 0x50, 0x18, 0x40, 0, 0, 0, 0, 0]);
    segment.extend(data);
    ipv4(6, &segment)
}

/// Returns the stream in segments that end at `cuts`.
fn segments(ports: (u16, u16), stream: &[u8], cuts: &[usize]) -> Vec<Vec<u8>> {
    let mut at = 0;
    let ends = cuts.iter().copied().chain([stream.len()]);
    ends.map(|end| {
        let frame = tcp(ports, at, &stream[at..end]);
        at = end;
        frame
    })
    .collect()
}

fn file(name: &str, frames: &[Vec<u8>]) -> TempCapture {
    TempCapture::new(name, frames.iter().map(|f| (f.as_slice(), f.len())))
}

fn host(i: u32) -> Prefix {
    Prefix::host(Ipv4Addr::from_bits(0x0A00_0000 + i).into())
}

/// Returns an UPDATE about `count` hosts, with or without attribute 39.
fn update(count: u32, with_nhc: bool) -> Vec<u8> {
    let prefixes: Vec<Prefix> = (1..=count).map(host).collect();
    let next_hop = Ipv4Addr::new(192, 0, 2, 15).into();
    let characteristics = [bgp::CharacteristicRepr {
        code: Profile::DEFAULT.bgp_pnc_characteristic,
        value: &[],
    }];
    let nhc = bgp::NhcRepr {
        afi: bgp::AFI_IPV4,
        safi: bgp::SAFI_UNICAST,
        next_hop,
        characteristics: &characteristics,
    };
    bgp_update(next_hop, &prefixes, with_nhc.then_some(nhc)).unwrap()
}

/// Fields that show the state of TCP and BGP.
const OF_BGP: [&str; 12] = [
    "-o",
    COLUMNS,
    "-e",
    "_ws.col.info",
    "-e",
    "bgp.type",
    "-e",
    "bgp.update.path_attribute.type_code",
    "-e",
    "tcp.segment.count",
    "-e",
    "frame.protocols",
];

/// Checks that tshark shows the sessions in `file` the same with the plugin as without; returns for
/// each frame the number of attributes 39 that Wireshark found, and the number that the plugin
/// found.
fn attributes(file: &TempCapture, options: &[&str]) -> Option<Vec<(usize, usize)>> {
    let (stock, ours) = (stock()?, with_plugin()?);
    let fields = [options, &["-T", "fields", "-E", "separator=|"], &OF_BGP].concat();
    let before = decode(&stock, file.path(), &fields);
    let after = decode(&ours, file.path(), &fields);
    assert_eq!(before, after, "{options:?}");
    let fields = [&fields[..], &["-e", "pnc.nhc.afi"]].concat();
    let text = decode(&ours, file.path(), &fields);
    let both = text.lines().map(|line| {
        let parts: Vec<&str> = line.split('|').collect();
        let seen = parts[2].split(',').filter(|kind| *kind == "39").count();
        (
            seen,
            parts[5].split(',').filter(|afi| !afi.is_empty()).count(),
        )
    });
    Some(both.collect())
}

#[test]
fn bgp_reassembly_is_unchanged_wherever_messages_are_split() {
    let mut stream = update(3, true);
    stream.extend(update(1, false));
    stream.extend(update(2, true));
    let flow = |i: usize, cuts: &[usize]| {
        // From the client, and from the server.
        let port = 20_000 + i as u16;
        let ports = if i.is_multiple_of(2) {
            (port, 179)
        } else {
            (179, port)
        };
        segments(ports, &stream, cuts)
    };
    let last = stream.len();
    let mut frames: Vec<Vec<u8>> = Vec::new();
    for cut in 1..last {
        frames.extend(flow(cut, &[cut]));
    }
    for cut in (20..last - 40).step_by(7) {
        frames.extend(flow(1000 + cut, &[cut, cut + 11, cut + 35]));
    }
    let file = file("split", &frames);
    let Some(seen) = attributes(&file, &[]) else {
        return;
    };
    for (i, (wireshark, ours)) in seen.iter().enumerate() {
        assert_eq!(wireshark, ours, "frame {}", i + 1);
    }
    // Not every version of Wireshark waits for the rest of a first segment without a whole header.
    for cut in bgp::HEADER..last {
        let both = &seen[2 * (cut - 1)..2 * cut];
        assert_eq!(both[0].1 + both[1].1, 2, "split at {cut}");
    }
    // Nor if the header of a later message is split, so not every flow is complete.
    let flows = seen[2 * (last - 1)..].chunks(4);
    let count = flows.len();
    let whole = flows.filter(|flow| flow.iter().map(|(_, ours)| ours).sum::<usize>() == 2);
    assert!(whole.count() > count / 2, "of {count}");
    // Without reassembly, Wireshark's output must still be the same.
    for option in ["tcp.desegment_tcp_streams:FALSE", "bgp.desegment:FALSE"] {
        attributes(&file, &["-o", option]);
        attributes(&file, &["-2", "-o", option]);
    }
    attributes(&file, &["-2"]);
}

#[test]
fn bgp_is_found_only_at_the_chosen_ports() {
    let Some(tshark) = with_plugin() else { return };
    let stream = [update(1, true), update(2, true)].concat();
    let mut frames = segments((20_000, 179), &stream, &[30]);
    frames.extend(segments((20_001, 1790), &stream, &[30]));
    let file = file("ports", &frames);
    let found = |options: &[&str]| {
        let fields = ["-Y", "pnc", "-T", "fields", "-e", "frame.number"];
        decode(&tshark, file.path(), &[options, &fields].concat())
    };
    assert_eq!(found(&[]), "2\n");
    assert_eq!(found(&["-d", "tcp.port==1790,bgp"]), "2\n4\n");
    assert_eq!(found(&["-d", "tcp.port==179,bgp"]), "2\n");
    assert_eq!(found(&["-o", "bgp.tcp.port:179,1790"]), "2\n4\n");
    assert_eq!(found(&["-d", "tcp.port==179,http"]), "");
    assert_eq!(found(&["--disable-protocol", "bgp"]), "");
    assert_eq!(found(&["--disable-protocol", "pnc"]), "");
    for options in [
        &["-d", "tcp.port==1790,bgp"],
        &["-d", "tcp.port==179,bgp"],
        &["-d", "tcp.port==20000,http"],
        &["-o", "bgp.tcp.port:1790"],
        &["--disable-protocol", "bgp"],
    ] {
        attributes(&file, options);
    }
    let path = capture("formats-pnc");
    let count = |options: &[&str]| {
        let fields = ["-Y", "pnc", "-T", "fields", "-e", "frame.number"];
        decode(&tshark, &path, &[options, &fields].concat())
            .lines()
            .count()
    };
    assert_eq!(count(&["-d", "ip.proto==89,data"]), 2);
    assert_eq!(count(&["--disable-protocol", "ospf"]), 2);
    assert_eq!(count(&["--disable-protocol", "isis.lsp"]), 5);
    assert_eq!(count(&["--disable-protocol", "pnc"]), 0);
}

#[test]
fn the_characteristics_code_is_a_preference() {
    let Some(tshark) = with_plugin() else { return };
    let path = capture("formats-pnc");
    let with = |options: &[&str]| shown(&tshark, &path, &[&["-Y", "bgp"], options].concat());
    let default = with(&[]);
    let other = with(&["-o", "pnc.bgp_characteristic:65281"]);
    let one = with(&["-o", "rocev2.force:TRUE", "-o", "pnc.bgp_characteristic:1"]);
    assert_eq!(default, [["192.0.2.15/32=1", "2001:db8:1::f/128=1"]]);
    // Without PNC the attribute has no information about prefixes.
    assert_eq!(other, [[""; 0]]);
    // Code of the other characteristic in the first UPDATE.
    assert_eq!(one, [["192.0.2.15/32=1"]]);
}

fn frames_of(name: &str) -> Vec<Vec<u8>> {
    let packets = packets(&capture(name)).into_iter();
    packets
        .filter(|packet| packet.link == LinkType::Ethernet)
        .map(|packet| packet.bytes)
        .collect()
}

/// Decodes everything, with trees and expert infos: `decode` fails if tshark does.
fn harmless(file: &TempCapture, count: usize) {
    let Some(tshark) = with_plugin() else { return };
    assert_eq!(trees(&tshark, file.path(), &[]).len(), count);
    decode(&tshark, file.path(), &["-q", "-z", "expert"]);
    decode(&tshark, file.path(), &["-Y", "pnc.capable == 1"]);
}

#[test]
fn truncated_messages_are_not_malformed_and_wrong_lengths_are_harmless() {
    let whole = frames_of("formats-pnc");
    let mut cut = Vec::new();
    let mut short = Vec::new();
    let mut wrong = Vec::new();
    for frame in &whole {
        for len in 14..frame.len() {
            cut.push((frame[..len].to_vec(), frame.len()));
            short.push((frame[..len].to_vec(), len));
            for value in [0, 1, 0xFF, frame[len] ^ 0x40] {
                let mut other = frame.clone();
                other[len] = value;
                wrong.push((other, frame.len()));
            }
        }
    }
    for (name, frames) in [("cut", &cut), ("short", &short), ("wrong", &wrong)] {
        assert!(frames.len() > 500);
        let frames = frames.iter().map(|(bytes, len)| (bytes.as_slice(), *len));
        let count = frames.len();
        let file = TempCapture::new(&format!("pnc-{name}"), frames);
        harmless(&file, count);
        let Some(tshark) = with_plugin() else { return };
        let broken = "pnc.malformed || pnc.flags.length || pnc.bgp.malformed || pnc.bgp.length || pnc.several || pnc.bgp.next_hop";
        let found = matches(&tshark, file.path(), broken);
        assert_eq!(found.is_empty(), name == "cut", "{name}: {found:?}");
    }
}

#[test]
fn large_messages_are_shown_up_to_the_limit_and_the_rest_is_counted() {
    let Some(tshark) = with_plugin() else { return };
    let flags = Some(&ospf2::FLAGS_PNC_ONLY[..]);
    let prefixes: Vec<_> = (0..2500)
        .map(|i| ospf2::ExtendedPrefixRepr {
            route_type: 1,
            prefix: host(i),
            tlv_flags: 0x40,
            flags,
        })
        .collect();
    let lsas: Vec<_> = prefixes
        .chunks(70)
        .zip(0..)
        .map(|(prefixes, opaque_id)| ospf2::LsaRepr {
            age: 1,
            flooding: Flooding::Area,
            opaque_id,
            advertising_router: Ipv4Addr::new(10, 0, 0, 1),
            sequence: 0x8000_0001,
            prefixes,
        })
        .collect();
    let repr = ospf2::LsUpdateRepr {
        router_id: Ipv4Addr::new(10, 0, 0, 1),
        area: Ipv4Addr::UNSPECIFIED,
        lsas: &lsas,
    };
    let packet = repr.to_bytes().unwrap();
    let mut frames = vec![ipv4(89, &packet)];
    let stream = update(800, true);
    assert!(stream.len() < 4096);
    frames.extend(segments((20_000, 179), &stream, &[1400, 2800]));
    let file = file("large", &frames);
    let count = |tree: &str| tree.matches("[Proxy node capable: True]").count();
    let trees = trees(&tshark, file.path(), &[]);
    assert_eq!(
        trees.iter().map(|tree| count(tree)).collect::<Vec<_>>(),
        [1024, 0, 0, 800]
    );
    assert!(trees[0].contains("[Prefixes not listed: 1476]"), "missing");
    // Each at its own prefix, up to the last.
    for i in [0, 1, 511, 1023] {
        let prefix = host(i);
        let part = subtree(&trees[0], &format!("Prefix: {prefix})")).join("\n");
        assert!(
            part.contains(&format!("Capability of {prefix}: advertised")),
            "{part}"
        );
        assert_eq!(count(&part), 1);
    }
    for i in [1, 2, 800] {
        let part = subtree(&trees[3], &format!("        {}", host(i))).join("\n");
        assert_eq!(count(&part), 1, "{part}");
    }
    let left_out = matches(&tshark, file.path(), "pnc.left_out.prefixes == 1476");
    assert_eq!(left_out, BTreeSet::from([1]));
}

#[test]
fn quotations_in_errors_are_not_advertisements() {
    let Some(tshark) = with_plugin() else { return };
    let ospf = frames_of("formats-pnc").swap_remove(1);
    let mut icmp = vec![3, 1, 0, 0, 0, 0, 0, 0];
    icmp.extend(&ospf[14..]);
    let frames = [ospf, ipv4(1, &icmp)];
    let file = file("quoted", &frames);
    assert_eq!(
        matches(&tshark, file.path(), "ospf"),
        BTreeSet::from([1, 2])
    );
    assert_eq!(matches(&tshark, file.path(), "pnc"), BTreeSet::from([1]));
}
