//! Captures replayed to files: every frame, in order, as often as requested; and frames that are
//! omitted, with reasons.

mod common;

use common::{
    Frame, captures, octets, read, replay, sendable, traffic, udp, words, write, write_pcap,
};
use fcn_link::capture_file::{CaptureReader, ReadInterface};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

struct Files {
    folder: TempDir,
}

impl Files {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Replays `from` with `options` to a file, and returns its frames and the report.
    #[track_caller]
    fn through(&self, from: &Path, options: &str) -> (Vec<Vec<u8>>, serde_json::Value) {
        let to = self.path("out.pcapng");
        let mut args = vec![
            from.to_str().unwrap(),
            "-o",
            to.to_str().unwrap(),
            "--json",
            "-q",
            "--force",
        ];
        args.extend(words(options));
        let done = replay(args).well();
        (octets(&to), done.json())
    }
}

fn sample_captures() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(captures())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "pcapng"))
        .collect();
    files.sort();
    assert!(files.len() > 20);
    files
}

#[test]
fn sample_captures_are_unchanged_in_memory_and_streamed() {
    let files = Files::new();
    for capture in sample_captures() {
        let (all, whole) = (read(&capture), sendable(&capture));
        for options in ["--top", "--top --preload no --memory-limit 4KiB"] {
            let (sent, report) = files.through(&capture, options);
            assert!(sent == whole, "{}", capture.display());
            assert_eq!(report["sent"], whole.len());
            let capture = &report["capture"];
            assert_eq!(capture["read"], all.len());
            assert_eq!(capture["selected"], whole.len());
            let left_out = capture["left_out"].as_object().unwrap().values();
            let left_out: u64 = left_out.map(|count| count.as_u64().unwrap()).sum();
            assert_eq!(left_out as usize, all.len() - whole.len());
        }
    }
}

/// Returns the name and description of each interface of a capture.
fn interfaces(path: &Path) -> Vec<(String, String)> {
    let mut reader = CaptureReader::open(path).unwrap();
    while reader.next().unwrap().is_some() {}
    let texts = |interface: &ReadInterface| (interface.name.clone(), interface.description.clone());
    reader.interfaces().iter().map(texts).collect()
}

#[test]
fn a_copy_has_the_interfaces_and_times_of_the_original() {
    let files = Files::new();
    let mut several = 0;
    for capture in sample_captures() {
        let mut whole = read(&capture);
        let sendable = sendable(&capture);
        whole.retain(|(_, _, octets, _)| sendable.contains(octets));
        let original = interfaces(&capture);
        for options in ["", "--preload no --memory-limit 4KiB"] {
            files.through(&capture, options);
            let copy = files.path("out.pcapng");
            assert!(read(&copy) == whole, "{}", capture.display());
            let there = interfaces(&copy);
            assert_eq!(there, original[..there.len()], "{}", capture.display());
            several += usize::from(there.len() > 1);
        }
    }
    assert!(several > 20);
    // A single selected interface keeps its number and its name.
    let capture = captures().join("attack.pcapng");
    files.through(&capture, "--interface 2");
    let copy = files.path("out.pcapng");
    assert!(read(&copy).iter().all(|frame| frame.0 == 2));
    assert_eq!(interfaces(&copy), interfaces(&capture));
}

#[test]
fn real_captures_are_unchanged() {
    let Some(folder) = std::env::var_os("FCN_CAPTURES") else {
        fcn_skip::skipped!("real captures: FCN_CAPTURES names no folder");
        return;
    };
    let files = Files::new();
    let mut replayed = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_capture = path
            .extension()
            .is_some_and(|ext| ["pcap", "pcapng", "cap"].iter().any(|known| ext == *known));
        if !is_capture {
            continue;
        }
        let done = replay([path.as_os_str(), "--dry-run".as_ref(), "--json".as_ref()]);
        let plan = done.json();
        if plan["capture"]["selected"] == 0 {
            assert_eq!(done.code, 1, "{}", path.display());
            continue;
        }
        let (sent, report) = files.through(&path, "--top");
        assert_eq!(plan["capture"], report["capture"], "{}", path.display());
        assert_eq!(plan["capture"]["selected"], sent.len());
        replayed += 1;
    }
    assert!(replayed > 0);
}

#[test]
fn loops_and_counts_are_exact_in_memory_and_streamed() {
    let files = Files::new();
    let capture = files.path("in.pcapng");
    let frames = traffic(50, 1_000);
    write(&capture, &[""], &frames);
    let one: Vec<Vec<u8>> = frames.into_iter().map(|(_, _, octets, _)| octets).collect();
    for way in ["", "--preload no --memory-limit 8KiB"] {
        for (options, loops, more) in [
            ("--top --loops 7", 7, 0),
            ("--loops 3 --loop-gap 1ms", 3, 0),
            ("--top --loops 3 --count 123", 2, 23),
            ("--rate 1Mpps --loops 4 --count 199", 3, 49),
            ("--rate 1Gbps --loops 2", 2, 0),
            ("--top --loops 2 --count 9", 0, 9),
        ] {
            let mut expected: Vec<Vec<u8>> = Vec::new();
            for _ in 0..loops {
                expected.extend(one.iter().cloned());
            }
            expected.extend(one.iter().take(more).cloned());
            let (sent, report) = files.through(&capture, &format!("{options} {way}"));
            assert!(sent == expected, "{options} {way}");
            assert_eq!(report["sent"], expected.len(), "{options} {way}");
            assert_eq!(report["loops"], loops, "{options} {way}");
        }
    }
}

#[test]
fn loops_vary_alike_in_memory_and_streamed() {
    let files = Files::new();
    let capture = captures().join("fast-cnp.pcapng");
    let one = octets(&capture).len();
    for vary in ["psn=5", "qp", "flow=3,psn", "address=2001:db8::/32+7,qp=2"] {
        let options =
            format!("--top --loops 3 --vary {vary} --map-ip 2001:db8:1::/48=2001:db8:9::/48");
        let (loaded, _) = files.through(&capture, &options);
        let (streamed, _) = files.through(&capture, &format!("{options} --preload no"));
        assert!(loaded == streamed, "{vary}");
        assert_eq!(loaded.len(), 3 * one);
        assert_ne!(loaded[..one], loaded[one..2 * one], "{vary}");
        assert_ne!(loaded[one..2 * one], loaded[2 * one..], "{vary}");
        let lens = |frames: &[Vec<u8>]| frames.iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(lens(&loaded[..one]), lens(&loaded[2 * one..]));
    }
}

#[test]
fn rewriting_changes_what_it_names() {
    let files = Files::new();
    let capture = files.path("in.pcapng");
    write(&capture, &[""], &traffic(3, 1_000));
    let (sent, _) = files.through(
        &capture,
        "--top --dst-mac 02:00:00:00:00:77 --vlan push:9 --map-ip 10.0.0.0/24=192.168.7.0/24",
    );
    for frame in &sent {
        assert_eq!(frame[..6], [2, 0, 0, 0, 0, 0x77]);
        assert_eq!(frame[6..12], [2, 0, 0, 0, 0, 1]);
        assert_eq!(frame[12..18], [0x81, 0, 0, 9, 8, 0]);
        assert_eq!(frame[30..38], [192, 168, 7, 1, 192, 168, 7, 2]);
    }
    // There and back.
    let moved = files.path("moved.pcapng");
    fs::copy(files.path("out.pcapng"), &moved).unwrap();
    let (back, _) = files.through(
        &moved,
        "--top --dst-mac 02:00:00:00:00:02 --vlan none --map-ip 192.168.7.0/24=10.0.0.0/24",
    );
    assert_eq!(back, octets(&capture));
}

#[test]
fn frames_that_may_keep_their_addresses_are_counted() {
    let files = Files::new();
    let capture = files.path("in.pcapng");
    let known = udp(1, 2, (1_000, 9), 0, 100);
    let mut tcp = known.clone();
    tcp[23] = 6;
    tcp[46] = 0x50;
    let mut icmp = known.clone();
    (icmp[23], icmp[34]) = (1, 8);
    let mut arp = vec![
        2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1,
    ];
    arp.extend([2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2]);
    let opened = [known.clone(), tcp, icmp, arp];
    // PPPoE, EtherIP, MPLS in UDP, sFlow; a pseudowire without a control word.
    let pppoe = [
        &known[..12],
        &[0x88, 0x64, 0x11, 0, 0, 1, 0, 88, 0, 0x21],
        &known[14..],
    ]
    .concat();
    let mut ether_ip = known.clone();
    ether_ip[23] = 97;
    let pseudowire = [&known[..12], &[0x88, 0x47, 0, 1, 1, 64], &known[..]].concat();
    let [mpls, sflow] = [6_635, 6_343].map(|port| udp(3, 4, (1_000, port), 0, 100));
    let not_opened = [pppoe, ether_ip, pseudowire, mpls, sflow];
    let frame =
        |(i, octets): (usize, &Vec<u8>)| (0, 1_000 + i as u64, octets.clone(), octets.len() as u32);
    let all: Vec<_> = opened
        .iter()
        .chain(&not_opened)
        .enumerate()
        .map(frame)
        .collect();
    write(&capture, &[""], &all);
    let map = "--map-ip 10.0.0.0/24=192.168.7.0/24";
    for options in [map, "--preload no --map-ip 10.0.0.0/24=192.168.7.0/24"] {
        let (sent, report) = files.through(&capture, options);
        let has = |frame: &&Vec<u8>| frame.windows(3).any(|octets| octets == [10, 0, 0]);
        assert!(
            !sent[..opened.len()].iter().any(|frame| has(&frame)),
            "{sent:02x?}"
        );
        assert_eq!(report["capture"]["not_opened"], not_opened.len());
    }
    let (_, report) = files.through(&capture, "");
    assert_eq!(report["capture"]["not_opened"], serde_json::Value::Null);
    let fixed = [capture.to_str().unwrap(), "--dry-run"];
    let said = |options: &[&str]| replay([&fixed, options].concat()).well().out;
    let warning = "warning    5 frames may keep addresses: without an IP header, or with an option";
    assert!(said(&words(map)).contains(warning));
    assert!(!said(&[]).contains("warning"));
}

/// Builds an Ethernet frame from a mapped address, with an IPv4 header that has `options`.
fn ipv4(options: &[u8], protocol: u8, payload: &[u8]) -> Vec<u8> {
    let header = 20 + options.len();
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([0x40 + (header / 4) as u8, 0]);
    frame.extend(((header + payload.len()) as u16).to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, protocol, 0, 0, 10, 7, 7, 1, 192, 0, 2, 2]);
    [&frame, options, payload].concat()
}

/// Builds the same with an IPv6 header.
fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xDD, 0x60, 0, 0];
    frame.extend([0, 0, payload.len() as u8, next, 64]);
    [&frame, &MAPPED_6[..], &[0xFE; 16], payload].concat()
}

/// Builds a UDP datagram without a checksum.
fn datagram(ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let numbers = [ports.0, ports.1, 8 + payload.len() as u16, 0];
    [&numbers.map(u16::to_be_bytes).concat(), payload].concat()
}

/// Builds a RoCEv2 packet to QP 1 with a message of communication management.
fn cm(attribute: u8, message: &[&[u8]]) -> Vec<u8> {
    let mut roce = vec![0x64, 0, 0xFF, 0xFF, 0, 0, 0, 1, 0, 0, 0, 0];
    roce.extend([0x80, 1, 0, 0, 0, 0, 0, 1]);
    roce.extend([1, 7, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]);
    roce.extend([0, attribute, 0, 0, 0, 0, 0, 0]);
    roce.extend(message.concat());
    roce.resize(12 + 8 + 256 + 4, 0);
    ipv4(&[], 17, &datagram((50_000, 4_791), &roce))
}

const MAPPED_4: [u8; 4] = [10, 7, 7, 9];
const MAPPED_6: [u8; 16] = [0xFD, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];

#[test]
fn options_and_messages_that_may_keep_addresses_are_counted() {
    let (four, six) = (&MAPPED_4[..], &MAPPED_6[..]);
    let icmp6 = |kind, rest: &[&[u8]]| ipv6(58, &[&[kind, 0, 0, 0][..], &rest.concat()].concat());
    let advertisement = |option: &[u8]| icmp6(134, &[&[0; 12], option, six]);
    let sent_4 = |port, rest: &[&[u8]]| ipv4(&[], 17, &datagram((port, port), &rest.concat()));
    let in_options = |kind| [&[kind, 7, 8], four, &[0]].concat();
    let recorded = ipv4(&in_options(7), 17, &datagram((1, 2), &[]));
    let quoting = [&[11, 0, 0, 0, 0, 0, 0, 0], &recorded[14..]].concat();
    let gid = [&[0; 10], &[0xFF; 2][..], four].concat();
    let kept = [
        (
            "source route",
            ipv4(&in_options(131), 17, &datagram((1, 2), &[])),
        ),
        ("record route", recorded),
        (
            "home address",
            ipv6(60, &[&[59, 2, 1, 2, 0, 0, 201, 16], six].concat()),
        ),
        (
            "prefix",
            advertisement(&[3, 4, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        ),
        ("RDNSS", advertisement(&[25, 3, 0, 0, 0, 0, 0, 0])),
        ("route", advertisement(&[24, 3, 64, 0, 0, 0, 0, 0])),
        (
            "inverse discovery",
            icmp6(141, &[&[0; 4], &[9, 3, 0, 0, 0, 0, 0, 0], six]),
        ),
        ("alternate path", cm(0x19, &[&[0; 24], &gid])),
        (
            "service ID request",
            cm(
                0x17,
                &[&[0; 8], &[0, 0, 0, 0, 1, 6, 0, 1], &[0, 0x40, 0, 1], &gid],
            ),
        ),
        ("reject", cm(0x12, &[&[0; 8], &[0, 32, 0, 24], &gid])),
        (
            "MLDv2",
            icmp6(143, &[&[0, 0, 0, 1, 1, 0, 0, 1], &[0xFF; 16], six]),
        ),
        (
            "router advertisement",
            ipv4(&[], 1, &[&[9, 0, 0, 0, 1, 2, 7, 8], four].concat()),
        ),
        ("RIP", sent_4(520, &[&[2, 2, 0, 0, 0, 2, 0, 0], four])),
        ("RIPng", ipv6(17, &datagram((521, 521), six))),
        ("LDP", sent_4(646, &[&[0, 1, 0, 30], four])),
        ("HSRP", sent_4(1_985, &[&[0; 16], four])),
        ("ESP", sent_4(4_500, &[&[0, 0, 0, 1, 0, 0, 0, 1], four])),
        ("quoted record route", ipv4(&[], 1, &quoting)),
        (
            "redirected packet",
            icmp6(137, &[&[0; 4], six, six, &[4, 3, 0, 0, 0, 0, 0, 0], six]),
        ),
        (
            "answer of RIP",
            ipv4(&[], 17, &datagram((520, 50_000), four)),
        ),
        (
            "source route header",
            ipv6(43, &[&[59, 2, 3, 1, 0, 0, 0, 0], six].concat()),
        ),
    ];
    let known = [
        (
            "router alert",
            ipv4(&[148, 4, 0, 0, 1, 1, 1, 0], 17, &datagram((1, 2), &[])),
        ),
        ("router alert in IPv6", ipv6(0, &[59, 0, 5, 2, 0, 0, 1, 0])),
        ("echo", ipv4(&[], 1, &[8, 0, 0, 0, 0, 1, 0, 1])),
        ("echo in IPv6", icmp6(128, &[&[0; 4]])),
        (
            "neighbour",
            icmp6(135, &[&[0; 4], six, &[1, 1, 2, 0, 0, 0, 0, 1]]),
        ),
        (
            "quoted TCP",
            ipv4(
                &[],
                1,
                &[&[3, 0, 0, 0, 0, 0, 0, 0], &ipv4(&[], 6, &[0; 8])[14..]].concat(),
            ),
        ),
        ("reject", cm(0x12, &[&[0; 8], &[0, 0, 0, 28]])),
        ("ready to use", cm(0x14, &[])),
        ("request", cm(0x10, &[&[0; 56], &gid, &gid])),
    ];
    let files = Files::new();
    let capture = files.path("in.pcapng");
    let map = "--map-ip 10.7.7.0/24=192.168.9.0/24 --map-ip fd77::/64=fd88::/64";
    let cases = (kept.iter().map(|case| (case, 1))).chain(known.iter().map(|case| (case, 0)));
    for ((name, frame), count) in cases {
        write(
            &capture,
            &[""],
            &[(0, 0, frame.clone(), frame.len() as u32)],
        );
        let (sent, report) = files.through(&capture, map);
        let has = |octets: &[u8]| sent[0].windows(octets.len()).any(|window| window == octets);
        assert_eq!(
            has(&[10, 7, 7]) || has(&[0xFD, 0x77]),
            count == 1,
            "{name}: {sent:02x?}"
        );
        assert_eq!(report["capture"]["not_opened"], count, "{name}");
    }
}

#[test]
fn captures_without_ethernet_get_a_header_or_are_omitted() {
    let files = Files::new();
    let frames: Vec<Vec<u8>> = traffic(4, 1_000)
        .into_iter()
        .map(|(_, _, octets, _)| octets[14..].to_vec())
        .collect();
    let raw = files.path("raw.pcap");
    write_pcap(&raw, 101, &frames);
    let done = replay([
        raw.to_str().unwrap(),
        "-o",
        files.path("x").to_str().unwrap(),
    ]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(
        done.err
            .contains("4 without an Ethernet header (needs --dst-mac)"),
        "{done:?}"
    );
    assert!(!files.path("x").exists());

    let cooked = files.path("cooked.pcap");
    let with_header: Vec<Vec<u8>> = frames
        .iter()
        .map(|frame| {
            let mut cooked = vec![0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 9, 0, 0, 8, 0];
            cooked.extend(frame);
            cooked
        })
        .collect();
    write_pcap(&cooked, 113, &with_header);
    for capture in [raw, cooked] {
        let options = "--top --dst-mac 02:00:00:00:00:07 --src-mac 02:00:00:00:00:08";
        let (sent, report) = files.through(&capture, options);
        assert_eq!(report["capture"]["selected"], 4);
        for (sent, frame) in sent.iter().zip(&frames) {
            assert_eq!(sent[..12], [2, 0, 0, 0, 0, 7, 2, 0, 0, 0, 0, 8]);
            assert_eq!(sent[12..14], [8, 0]);
            assert_eq!(&sent[14..], &frame[..]);
        }
    }
}

#[test]
fn frames_are_selected_by_number_interface_and_filter() {
    let files = Files::new();
    let capture = files.path("in.pcapng");
    let frames: Vec<_> = (0..30u64)
        .map(|i| {
            let frame = udp(1, 2, (5, 100 + (i % 3) as u16), i, 60);
            ((i % 2) as u32, i * 10, frame, 60)
        })
        .collect();
    write(&capture, &["leaf", "spine"], &frames);
    let numbers = |options: &str| -> (Vec<u64>, serde_json::Value) {
        let (sent, report) = files.through(&capture, &format!("--top {options}"));
        let number = |frame: &Vec<u8>| u64::from_be_bytes(frame[42..50].try_into().unwrap());
        (sent.iter().map(number).collect(), report)
    };
    let (sent, report) = numbers("--frames 1-3,30,7");
    assert_eq!(sent, [0, 1, 2, 6, 29]);
    assert_eq!(report["capture"]["left_out"]["number"], 25);
    let (sent, report) = numbers("--interface spine --frames 1-6");
    assert_eq!(sent, [1, 3, 5]);
    // Nothing is read after the last number.
    assert_eq!(report["capture"]["read"], 6);
    assert_eq!(report["capture"]["left_out"]["interface"], 3);
    let (sent, _) = numbers("--interface 0 --interface spine --frames 1-3");
    assert_eq!(sent, [0, 1, 2]);
    let to = files.path("f.pcapng");
    let done = replay([
        capture.to_str().unwrap(),
        "-o",
        to.to_str().unwrap(),
        "--top",
        "--filter",
        "udp dst port 101",
    ])
    .well();
    assert!(done.out.contains("20 not matching the filter"), "{done:?}");
    assert!(
        done.out.contains("all 2 interfaces of the capture"),
        "{done:?}"
    );
    assert_eq!(octets(&to).len(), 10);
}

#[test]
fn errors_are_reported_with_their_position() {
    let files = Files::new();
    let capture = files.path("in.pcapng");
    write(&capture, &["leaf"], &traffic(5, 1_000));
    let with = |options: &[&str]| {
        let out = files.path("never.pcapng");
        let mut args = vec![
            capture.to_str().unwrap(),
            "-o",
            out.to_str().unwrap(),
            "--top",
        ];
        args.extend(options);
        let done = replay(args);
        assert!(!out.exists(), "{options:?}");
        (done.code, done.err)
    };
    let (code, err) = with(&["--filter", "udp prt 4791"]);
    assert_eq!(code, 2);
    assert!(err.contains("at column 5, `prt`"), "{err}");
    let (code, err) = with(&["--filter", "udp prt 4791", "--preload", "no"]);
    assert_eq!(code, 2);
    assert!(err.contains("at column 5, `prt`"), "{err}");
    let (code, err) = with(&["--interface", "spine"]);
    assert_eq!(code, 2);
    assert!(
        err.contains("no interface `spine`") && err.contains("0 leaf"),
        "{err}"
    );
    for preload in ["yes", "no"] {
        let (code, err) = with(&["--filter", "icmp", "--preload", preload]);
        assert_eq!(code, 1);
        assert!(
            err.contains("nothing to send") && err.contains("5 not matching"),
            "{err}"
        );
    }
    let (code, err) = with(&["--preload", "yes", "--memory-limit", "500"]);
    assert_eq!(code, 1);
    assert!(err.contains("--memory-limit"), "{err}");
    for (options, message) in [
        (&["--forever"][..], "fill the disk"),
        (&["--duration", "1s"], "due at once"),
        (&["--vary", "psn"], "sent only once"),
        (
            &["--split", "first-seen"],
            "a file receives both directions",
        ),
        (&["--send-pause"], "cannot be used with '--send-pause'"),
    ] {
        let (code, err) = with(options);
        assert_eq!(code, 2);
        assert!(err.contains(message), "{err}");
    }
    let (code, err) = with(&["--map-ip", "10.0.0.0/8=10.0.0.0/9"]);
    assert_eq!(code, 2);
    assert!(err.contains("--map-ip"), "{err}");
    let (one, out) = (files.path("one.pcapng"), files.path("endless.pcapng"));
    write(&one, &[""], &traffic(1, 1_000));
    for loops in [&["--forever"][..], &["--loops", "1000000000"]] {
        let fixed = [one.to_str().unwrap(), "-o", out.to_str().unwrap()];
        let done = replay([&fixed, loops, &["--duration", "3ms"]].concat());
        assert_eq!(done.code, 2);
        assert!(done.err.contains("a loop takes no time"), "{}", done.err);
    }
    for (file, code) in [("no/such/file", 2), ("Cargo.toml", 2)] {
        let done = replay([file, "--dry-run"]);
        assert_eq!(done.code, code, "{done:?}");
        assert!(
            done.err.starts_with(&format!("fcn-replay: {file}")),
            "{done:?}"
        );
    }
}

#[test]
fn complete_frames_of_a_truncated_file_are_sent() {
    let files = Files::new();
    let capture = files.path("in.pcapng");
    write(&capture, &[""], &traffic(5, 1_000));
    let mut file = fs::read(&capture).unwrap();
    file.truncate(file.len() - 10);
    fs::write(&capture, file).unwrap();
    for way in ["", "--preload no"] {
        let (sent, report) = files.through(&capture, &format!("--top {way}"));
        assert_eq!(sent.len(), 4);
        assert_eq!(report["capture"]["file_cut"], true);
    }
}

#[test]
fn times_that_go_back_are_held_and_counted() {
    let files = Files::new();
    let capture = files.path("in.pcapng");
    let mut frames = traffic(6, 1_000);
    frames[3].1 -= 2_500;
    write(&capture, &[""], &frames);
    let (sent, report) = files.through(&capture, "");
    assert_eq!(sent.len(), 6);
    assert_eq!(report["capture"]["times_went_back"], 1);
    let times: Vec<u64> = read(&files.path("out.pcapng"))
        .iter()
        .map(|f| f.1)
        .collect();
    let after = [0, 1_000, 2_000, 2_000, 4_000, 5_000];
    assert_eq!(times, after.map(|after| 1_000_000_000 + after));
}

#[test]
fn several_captures_are_sent_as_one_with_their_own_gaps() {
    let files = Files::new();
    let captures = ["a.pcapng", "b.pcapng", "c.pcapng"].map(|name| files.path(name));
    // The second is a minute older, the third follows the second after 3 ms.
    let mut older = traffic(4, 1_000_000);
    let mut last = traffic(3, 1_000_000);
    let begin = 7_200_000_000_000;
    let of = |frames: &mut Vec<Frame>, begin: u64| {
        let first = frames[0].1;
        frames.iter_mut().for_each(|frame| frame.1 += begin - first);
    };
    let mut first = traffic(2, 5_000_000);
    of(&mut first, begin);
    of(&mut older, begin - 60_000_000_000);
    of(&mut last, begin - 60_000_000_000 + 6_000_000);
    for (path, frames) in captures.iter().zip([&first, &older, &last]) {
        write(path, &["eth0"], frames);
    }
    let to = files.path("out.pcapng");
    let mut args: Vec<&str> = captures.iter().map(|path| path.to_str().unwrap()).collect();
    args.extend(["-o", to.to_str().unwrap(), "--json", "-q", "--force"]);
    let all: Vec<Vec<u8>> = [first, older, last]
        .concat()
        .into_iter()
        .map(|frame| frame.2)
        .collect();
    let due = [0, 5, 5, 6, 7, 8, 11, 12, 13].map(|due| begin + due * 1_000_000);
    for way in ["", "--preload no"] {
        let done = replay(args.iter().copied().chain(words(way))).well();
        let report = done.json();
        assert_eq!(report["capture"]["new_time_bases"], 1);
        assert_eq!(report["capture"]["times_far_off"], 0);
        assert_eq!(octets(&to), all);
        let times: Vec<u64> = read(&to).iter().map(|frame| frame.1).collect();
        assert_eq!(times, due, "{way}");
        // The captures are of the same interface.
        assert_eq!(interfaces(&to), [("eth0".to_owned(), String::new())]);
        let twice = args
            .iter()
            .copied()
            .chain(words(way))
            .chain(["--loops", "2"]);
        assert_eq!(replay(twice).well().json()["sent"], 18);
        assert_eq!(octets(&to), [all.clone(), all.clone()].concat());
    }
    args.push("--max-gap");
    args.push("2ms");
    let report = replay(args).well().json();
    assert_eq!(report["capture"]["gaps_shortened"], 2);
    let last = read(&to).last().unwrap().1;
    assert_eq!(last, begin + 9_000_000);
}

#[test]
fn captures_that_cannot_be_read_are_refused_before_anything_is_sent() {
    let files = Files::new();
    let capture = files.path("in.pcapng");
    write(&capture, &["eth0"], &traffic(3, 1_000));
    let text = files.path("text");
    fs::write(&text, "no capture").unwrap();
    let (good, bad) = (capture.to_str().unwrap(), text.to_str().unwrap());
    for (captures, why) in [
        ([good, bad], "not a capture file"),
        (["-", "-"], "only once"),
    ] {
        let to = files.path("out.pcapng");
        let done = replay(captures.into_iter().chain(["-o", to.to_str().unwrap()]));
        assert_eq!(done.code, 2);
        assert!(done.err.contains(why), "{}", done.err);
        assert!(!to.exists());
    }
}

/// Returns the due time of the frame with a number, in nanoseconds after the first.
type Due<'a> = &'a dyn Fn(u64) -> u64;

#[test]
fn frames_are_written_at_once_with_their_due_times() {
    let files = Files::new();
    let capture = files.path("in.pcapng");
    // Minutes, none of which is waited for.
    const GAP: u64 = 60_000_000_000;
    let frames = traffic(20, GAP);
    write(&capture, &[""], &frames);
    let begin = frames[0].1;
    let own = |i: u64| i * GAP;
    let octets_before = |i: u64| -> u64 {
        let lens = frames.iter().cycle().map(|frame| frame.2.len() as u64);
        lens.take(i as usize).map(|len| (len + 4).max(64)).sum()
    };
    let cases: [(&str, u64, Due<'_>); 9] = [
        ("", 20, &own),
        ("--speed 0.5", 20, &|i| 2 * own(i)),
        ("--max-gap 7s", 20, &|i| i * 7_000_000_000),
        ("--loops 2", 40, &own),
        ("--loops 2 --loop-gap 1s", 40, &|i| {
            own(i) - i / 20 * (GAP - 1_000_000_000)
        }),
        ("--rate 3pps --loops 5", 100, &|i| i * 1_000_000_000 / 3),
        ("--rate 1kbps", 20, &|i| octets_before(i) * 8 * 1_000_000),
        ("--duration 150s --forever", 3, &own),
        ("--top --loops 3", 60, &|_| 0),
    ];
    for (options, count, due) in cases {
        for way in ["", "--preload no --memory-limit 8KiB"] {
            let (_, report) = files.through(&capture, &format!("{options} {way}"));
            let to = files.path("out.pcapng");
            let times: Vec<u64> = read(&to).iter().map(|frame| frame.1).collect();
            let expected: Vec<u64> = (0..count).map(|i| begin + due(i)).collect();
            assert_eq!(times, expected, "{options} {way}");
            // Only the time of writing was measured.
            assert_eq!(report["sent"], count, "{options} {way}");
            for field in ["packets_per_second", "l2_bits_per_second", "timing"] {
                assert!(report[field].is_null(), "{options} {way}: {field}");
            }
            let lasting = report["due_seconds"].as_f64().unwrap();
            let last = times.last().unwrap() - begin;
            let ended = if options.contains("--duration") {
                150.0
            } else {
                last as f64 / 1e9
            };
            assert!((lasting - ended).abs() < 1e-6, "{options} {way}: {lasting}");
            let once = fs::read(&to).unwrap();
            let _ = files.through(&capture, &format!("{options} {way}"));
            assert!(fs::read(&to).unwrap() == once, "{options} {way}");
        }
    }
}

#[test]
fn standard_output_contains_only_the_capture() {
    let capture = captures().join("fast-cnp.pcapng");
    let output = Command::new(common::PROGRAM)
        .arg(&capture)
        .args(["-o", "-", "--top"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0));
    let files = Files::new();
    let to = files.path("out.pcapng");
    fs::write(&to, &output.stdout).unwrap();
    assert!(octets(&to) == sendable(&capture));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("everything was written"), "{message}");
}

#[test]
fn compressed_captures_are_read() {
    let files = Files::new();
    let capture = files.path("in.pcapng");
    write(&capture, &[""], &traffic(300, 1_000));
    for tool in ["gzip", "zstd"] {
        let output = Command::new(tool).args(["-c", "-q"]).arg(&capture).output();
        let Ok(output) = output else {
            fcn_skip::skipped!("compressed captures: no {tool} here");
            continue;
        };
        assert!(output.status.success());
        let packed = files.path(tool);
        fs::write(&packed, output.stdout).unwrap();
        // Larger uncompressed than the limit: loading is abandoned, and the file is streamed from
        // the start.
        for limit in ["", "--memory-limit 20KB"] {
            let (sent, report) = files.through(&packed, &format!("--top --loops 2 {limit}"));
            assert!(
                sent.len() == 600 && sent[..300] == octets(&capture),
                "{tool} {limit}"
            );
            assert_eq!(report["capture"]["streamed"], !limit.is_empty());
            assert_eq!(report["capture"]["read"], 300);
        }
    }
}

#[test]
fn standard_input_is_a_capture_too() {
    let files = Files::new();
    let capture = files.path("in.pcapng");
    write(&capture, &[""], &traffic(40, 1_000));
    for options in ["--top", "--top --loops 3"] {
        let to = files.path("out.pcapng");
        let output = Command::new(common::PROGRAM)
            .args(["-", "-q", "--force", "-o"])
            .arg(&to)
            .args(words(options))
            .stdin(fs::File::open(&capture).unwrap())
            .output()
            .unwrap();
        common::Done::from_output(&output).well();
        assert_eq!(
            octets(&to).len(),
            if options.contains("loops") { 120 } else { 40 }
        );
    }
    let output = Command::new(common::PROGRAM)
        .args(["-", "-o"])
        .arg(files.path("never"))
        .args(words("--top --loops 3 --preload no"))
        .stdin(fs::File::open(&capture).unwrap())
        .output()
        .unwrap();
    let done = common::Done::from_output(&output);
    assert_eq!(done.code, 1);
    assert!(done.err.contains("cannot be looped"), "{done:?}");
}

#[test]
fn a_dry_run_shows_what_would_be_sent() {
    let files = Files::new();
    let capture = captures().join("formats-cnp.pcapng");
    let done = replay([capture.as_os_str(), "--dry-run".as_ref()]).well();
    assert!(done.out.contains(" CNP from "), "{}", done.out);
    let json = replay([
        capture.to_str().unwrap(),
        "--dry-run",
        "--json",
        "--show",
        "2",
    ])
    .well()
    .json();
    assert_eq!(json["frames"].as_array().unwrap().len(), 2);
    assert_eq!(json["schema"], "fcn-replay/dry-run");
    let two = files.path("two.pcapng");
    let frames: Vec<_> = (0..8u64)
        .map(|i| {
            (
                0,
                i,
                udp((i % 2) as u8 + 1, 2 - (i % 2) as u8, (5, 6), i, 60),
                60,
            )
        })
        .collect();
    write(&two, &[""], &frames);
    // There is no interface of this name; a queue is enough to show the division of flows.
    let done = replay([
        two.to_str().unwrap(),
        "--dry-run",
        "--queues",
        "2",
        "--rate",
        "1kpps",
    ])
    .well();
    assert!(
        done.out.contains("sent on") && done.out.contains("queue 1"),
        "{}",
        done.out
    );
    assert!(
        done.out.contains("0.008000000 s per loop, 1,000 packet/s"),
        "{}",
        done.out
    );
}
