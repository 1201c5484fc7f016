//! Reading capture files: of our writer and of others, in every format, and with unusual contents.
#![cfg(unix)]

use fcn_link::capture_file::{
    CaptureReader, CaptureWriter, Compression, Interface, MAX_BLOCK, MAX_INTERFACES, MAX_PACKET,
    Options, Packet, ReadError, ReadErrorKind, Resolution, Stamp,
};
use fcn_wire::LinkType;
use flate2::write::GzEncoder;
use proptest::collection::vec;
use proptest::prelude::*;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A copy of a packet that outlives the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kept {
    interface: u32,
    at: u64,
    stamp: Stamp,
    link_number: u32,
    wire_len: u32,
    bytes: Vec<u8>,
}

impl Kept {
    fn new(packet: Packet<'_>) -> Self {
        Self {
            interface: packet.interface,
            at: packet.at,
            stamp: packet.stamp,
            link_number: packet.link_number,
            wire_len: packet.wire_len,
            bytes: packet.bytes.to_vec(),
        }
    }

    /// Creates a complete packet of an Ethernet interface, with a time.
    fn whole(interface: u32, at: u64, bytes: &[u8]) -> Self {
        Self {
            interface,
            at,
            stamp: Stamp::Valid,
            link_number: 1,
            wire_len: bytes.len() as u32,
            bytes: bytes.to_vec(),
        }
    }
}

/// Returns the remaining packets of `reader`, and its final error.
fn rest(reader: &mut CaptureReader<'_>) -> (Vec<Kept>, Option<ReadError>) {
    let mut packets = Vec::new();
    loop {
        match reader.next() {
            Ok(Some(packet)) => packets.push(Kept::new(packet)),
            Ok(None) => return (packets, None),
            Err(e) => {
                assert!(reader.next().unwrap().is_none(), "a packet after an error");
                return (packets, Some(e));
            }
        }
    }
}

fn read(octets: &[u8]) -> (Vec<Kept>, Option<ReadError>) {
    let one_by_one = match CaptureReader::from(octets, "test") {
        Ok(mut reader) => rest(&mut reader),
        Err(e) => return (Vec::new(), Some(e)),
    };
    for most in [1, 3, 16] {
        let mut reader = CaptureReader::from(octets, "test").unwrap();
        let (packets, e) = rest_together(&mut reader, most);
        assert_eq!(packets, one_by_one.0, "{most} at a time");
        let say = |e: &Option<ReadError>| e.as_ref().map(ToString::to_string);
        assert_eq!(say(&e), say(&one_by_one.1), "{most} at a time");
    }
    one_by_one
}

/// Returns the remaining packets of `reader`, and its final error, reading `most` at a time.
fn rest_together(reader: &mut CaptureReader<'_>, most: usize) -> (Vec<Kept>, Option<ReadError>) {
    let mut packets = Vec::new();
    loop {
        match reader.next_batch(most) {
            Ok(Some(some)) => {
                let before = packets.len();
                packets.extend(some.iter().map(Kept::new));
                assert!((1..=most).contains(&(packets.len() - before)));
                let known = some.interfaces().len() as u32;
                assert!(packets.iter().all(|packet| packet.interface < known));
            }
            Ok(None) => return (packets, None),
            Err(e) => {
                assert!(reader.next().unwrap().is_none(), "a packet after an error");
                return (packets, Some(e));
            }
        }
    }
}

fn read_whole(octets: &[u8]) -> Vec<Kept> {
    let (packets, e) = read(octets);
    assert!(e.is_none(), "{e:?}");
    packets
}

/// Returns the error message of reading `octets`.
fn failure(octets: &[u8]) -> String {
    read(octets).1.expect("an error").to_string()
}

fn gzip(octets: &[u8]) -> Vec<u8> {
    let mut writer = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writer.write_all(octets).unwrap();
    writer.finish().unwrap()
}

fn zstd(octets: &[u8]) -> Vec<u8> {
    zstd::encode_all(octets, 1).unwrap()
}

/// Compresses in two members or frames, the second beginning at `at`.
fn in_two(octets: &[u8], at: usize, pack: fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let (front, back) = octets.split_at(at);
    [pack(front), pack(back)].concat()
}

#[derive(Clone, Copy)]
enum Order {
    Little,
    Big,
}

const BOTH: [Order; 2] = [Order::Little, Order::Big];

impl Order {
    fn half(self, half: u16) -> [u8; 2] {
        match self {
            Self::Little => half.to_le_bytes(),
            Self::Big => half.to_be_bytes(),
        }
    }

    fn words(self, words: &[u32]) -> Vec<u8> {
        let octets = words.iter().flat_map(|word| match self {
            Self::Little => word.to_le_bytes(),
            Self::Big => word.to_be_bytes(),
        });
        octets.collect()
    }

    /// Builds a pcap file with these records: seconds, fraction, length on the wire, octets.
    fn pcap(self, magic: u32, link: u32, records: &[(u32, u32, u32, &[u8])]) -> Vec<u8> {
        let mut file = self.words(&[magic]);
        file.extend([self.half(2), self.half(4)].concat());
        file.extend(self.words(&[0, 0, 65_535, link]));
        for (seconds, parts, wire_len, octets) in records {
            file.extend(self.words(&[*seconds, *parts, octets.len() as u32, *wire_len]));
            file.extend(*octets);
        }
        file
    }

    fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let padded = body.len().next_multiple_of(4);
        let len = padded as u32 + 12;
        let mut block = self.words(&[kind, len]);
        block.extend(body);
        block.resize(8 + padded, 0);
        block.extend(self.words(&[len]));
        block
    }

    fn section(self) -> Vec<u8> {
        let mut body = self.words(&[0x1A2B_3C4D]);
        body.extend([self.half(1), self.half(0)].concat());
        body.extend([0xFF; 8]);
        self.block(0x0A0D_0D0A, &body)
    }

    fn options(self, options: &[(u16, &[u8])]) -> Vec<u8> {
        let mut octets = Vec::new();
        for (code, value) in options {
            octets.extend([self.half(*code), self.half(value.len() as u16)].concat());
            octets.extend(*value);
            octets.resize(octets.len().next_multiple_of(4), 0);
        }
        octets.extend([0; 4]);
        octets
    }

    fn interface(self, link: u16, snap_len: u32, options: &[(u16, &[u8])]) -> Vec<u8> {
        let mut body = self.half(link).to_vec();
        body.extend([0; 2]);
        body.extend(self.words(&[snap_len]));
        body.extend(self.options(options));
        self.block(1, &body)
    }

    fn enhanced(self, interface: u32, stamp: u64, octets: &[u8]) -> Vec<u8> {
        let len = octets.len() as u32;
        let words = [interface, (stamp >> 32) as u32, stamp as u32, len, len];
        let mut body = self.words(&words);
        body.extend(octets);
        self.block(6, &body)
    }

    /// Builds a section with one interface that uses nanoseconds.
    fn start(self) -> Vec<u8> {
        let interface = self.interface(1, 0, &[(9, &[9])]);
        [self.section(), interface].concat()
    }
}

#[test]
fn pcap_of_micro_and_nanoseconds_in_both_orders() {
    for order in BOTH {
        for (magic, part, resolution) in [
            (0xA1B2_C3D4, 1000, Resolution::MICROSECONDS),
            (0xA1B2_3C4D, 1, Resolution::NANOSECONDS),
        ] {
            // The second one is earlier, the third truncated, the fourth empty, and one states a
            // length on the wire below its own.
            let file = order.pcap(
                magic,
                1,
                &[
                    (1_700_000_000, 999_999, 3, b"one"),
                    (u32::MAX, 7, 4, b"four"),
                    (5, 6, 1500, b"cut"),
                    (5, 6, 0, b""),
                    (5, 1_000_001, 1, b"more"),
                ],
            );
            let second = 1_000_000_000;
            let mut want = [
                Kept::whole(0, 1_700_000_000 * second + 999_999 * part, b"one"),
                Kept::whole(0, u64::from(u32::MAX) * second + 7 * part, b"four"),
                Kept::whole(0, 5 * second + 6 * part, b"cut"),
                Kept::whole(0, 5 * second + 6 * part, b""),
                Kept::whole(0, 5 * second + 1_000_001 * part, b"more"),
            ];
            want[2].wire_len = 1500;
            assert_eq!(read_whole(&file), want);
            let mut reader = CaptureReader::from(&*file, "test").unwrap();
            let interface = reader.interfaces()[0].clone();
            assert_eq!(interface.resolution, resolution);
            assert_eq!(interface.link, Some(LinkType::Ethernet));
            assert_eq!((interface.link_number, interface.snap_len), (1, 65_535));
            let cut: Vec<_> =
                std::iter::from_fn(|| reader.next().unwrap().map(|p| p.is_cut())).collect();
            assert_eq!(cut, [false, false, true, false, false]);
            assert_eq!((reader.packets(), reader.octets()), (5, file.len() as u64));
        }
    }
}

#[test]
fn buffered_packets_are_returned_together() {
    let packets = [
        (0, 0, 3, &b"one"[..]),
        (0, 1, 3, b"two"),
        (0, 2, 5, b"three"),
    ];
    let file = Order::Little.pcap(0xA1B2_C3D4, 1, &packets);
    let mut reader = CaptureReader::from(&*file, "test").unwrap();
    // A packet that was read alone is not returned again.
    assert_eq!(reader.next().unwrap().unwrap().bytes, b"one");
    let some = reader.next_batch(9).unwrap().unwrap();
    let bytes: Vec<_> = some.iter().map(|packet| packet.bytes).collect();
    assert_eq!(bytes, [&b"two"[..], b"three"]);
    assert_eq!(reader.packets(), 3);
    assert!(reader.next_batch(9).unwrap().is_none());
    // An error after them is returned by the next call.
    let cut = &file[..file.len() - 1];
    let mut reader = CaptureReader::from(cut, "test").unwrap();
    assert_eq!(reader.next_batch(9).unwrap().unwrap().iter().count(), 2);
    assert!(reader.next_batch(9).err().unwrap().is_cut());
    assert!(reader.next_batch(9).unwrap().is_none());
}

#[test]
fn the_link_type_is_separated_from_flags_and_may_be_unknown() {
    for (number, link, known) in [
        (276, 276, Some(LinkType::LinuxCooked2)),
        (0x2400_0001, 1, Some(LinkType::Ethernet)),
        (147, 147, None),
    ] {
        let file = Order::Little.pcap(0xA1B2_C3D4, number, &[(0, 0, 1, b"1")]);
        let mut reader = CaptureReader::from(&*file, "test").unwrap();
        let packet = reader.next().unwrap().unwrap();
        assert_eq!((packet.link_number, packet.link), (link, known));
    }
}

#[test]
fn pcapng_of_several_sections_interfaces_orders_resolutions_and_kinds_of_packets() {
    let mut file = Vec::new();
    for order in BOTH {
        let offset = match order {
            Order::Little => (-1i64).to_le_bytes(),
            Order::Big => (-1i64).to_be_bytes(),
        };
        file.extend(order.section());
        file.extend(order.interface(1, 0, &[]));
        file.extend(order.interface(
            1,
            3,
            &[
                (2, b"eth1\0"),
                (3, b"not \xFF UTF-8"),
                (9, &[0x80 + 10]),
                (14, &offset),
                (9, &[9]),
            ],
        ));
        // Interfaces may be described between packets; unknown blocks may be anywhere.
        file.extend(order.block(0x7777_7777, &[0xEE; 5]));
        file.extend(order.enhanced(0, 1_700_000_000_123_456, b"micro"));
        file.extend(order.enhanced(1, 3 << 9, b"2^-10 of a second"));
        file.extend(order.interface(101, 2, &[(9, &[12]), (1, b"comment")]));
        file.extend(order.enhanced(2, 7_999, b"a packet of picoseconds"));
        // The obsolete block: interface 1, 9 drops.
        let mut body = [order.half(1), order.half(9)].concat();
        body.extend(order.words(&[0, 2 << 10, 3, 8]));
        body.extend(b"old");
        file.extend(order.block(2, &body));
        // The simple block.
        let mut body = order.words(&[5]);
        body.extend(b"plain");
        file.extend(order.block(3, &body));
        // An enhanced one with options.
        let mut body = order.words(&[0, 0, 5, 1, 1]);
        body.extend(b"x\0\0\0");
        body.extend(order.options(&[(1, b"\xFF\xFE a comment"), (2, &[0; 4])]));
        file.extend(order.block(6, &body));
    }
    let mut want = Vec::new();
    for first in [0, 3] {
        want.extend([
            Kept::whole(first, 1_700_000_000_123_456_000, b"micro"),
            Kept::whole(first + 1, 500_000_000, b"2^-10 of a second"),
            Kept::whole(first + 2, 7, b"a packet of picoseconds"),
            Kept::whole(first + 1, 1_000_000_000, b"old"),
            Kept::whole(first, 0, b"plain"),
            Kept::whole(first, 5000, b"x"),
        ]);
        let [.., picoseconds, old, simple, _] = &mut want[..] else {
            unreachable!()
        };
        picoseconds.link_number = 101;
        old.wire_len = 8;
        simple.stamp = Stamp::Missing;
    }
    assert_eq!(read_whole(&file), want);

    let mut reader = CaptureReader::from(&*file, "test").unwrap();
    assert!(reader.interfaces().is_empty());
    reader.next().unwrap();
    assert_eq!(reader.interfaces().len(), 2);
    rest(&mut reader);
    assert_eq!(reader.interfaces().len(), 6);
    let eth1 = &reader.interfaces()[4];
    assert_eq!(eth1.name, "eth1");
    assert_eq!(eth1.description, "not \u{FFFD} UTF-8");
    assert_eq!((eth1.snap_len, eth1.offset), (3, -1));
    assert_eq!(eth1.resolution.to_string(), "2^-10 s");
    let text = format!("{}", reader.interfaces()[5].resolution);
    assert_eq!(text, "10^-12 s");
}

#[test]
fn a_simple_packet_is_as_long_as_the_snap_length_of_the_first_interface() {
    for order in BOTH {
        let mut file = order.section();
        file.extend(order.interface(1, 6, &[]));
        for (wire_len, octets) in [(5, &b"plain"[..]), (1000, b"sliced")] {
            let mut body = order.words(&[wire_len]);
            body.extend(octets);
            file.extend(order.block(3, &body));
        }
        let mut want = [Kept::whole(0, 0, b"plain"), Kept::whole(0, 0, b"sliced")];
        want[1].wire_len = 1000;
        want.iter_mut()
            .for_each(|packet| packet.stamp = Stamp::Missing);
        assert_eq!(read_whole(&file), want);
    }
}

#[test]
fn a_section_in_the_other_order_counts_interfaces_anew() {
    let mut file = Order::Big.start();
    file.extend(Order::Little.section());
    file.extend(Order::Little.enhanced(0, 0, b"of nobody"));
    let (packets, e) = read(&file);
    assert!(packets.is_empty());
    let e = e.unwrap();
    let text = "a packet of interface 0, but 0 are described before it";
    assert!(e.to_string().contains(text), "{e}");
    assert_eq!(e.octet(), (file.len() - 44) as u64);
}

#[derive(Clone, Debug)]
struct AnyPacket {
    interface: u32,
    at: u64,
    bytes: Vec<u8>,
    /// Difference between the length on the wire and the captured length, in octets.
    more: u32,
    comment: String,
}

fn any_packet() -> impl Strategy<Value = AnyPacket> {
    (
        0u32..3,
        any::<u64>(),
        prop_oneof![
            vec(any::<u8>(), 0..300),
            (0usize..20_000).prop_map(|n| vec![7; n])
        ],
        prop_oneof![Just(0), 0u32..5000],
        prop_oneof![Just(String::new()), ".{0,40}"],
    )
        .prop_map(|(interface, at, bytes, more, comment)| AnyPacket {
            interface,
            at,
            bytes,
            more,
            comment,
        })
}

const NAMED: [Interface<'_>; 3] = [
    Interface {
        name: "eth0",
        description: "",
        link: LinkType::Ethernet,
        snap_len: 0,
    },
    Interface {
        name: "",
        description: "behind the switch",
        link: LinkType::RawIp,
        snap_len: 100,
    },
    Interface {
        name: "any",
        description: "all",
        link: LinkType::LinuxCooked2,
        snap_len: 0,
    },
];

fn write(packets: &[AnyPacket]) -> (Vec<u8>, Vec<Kept>) {
    let mut octets = Vec::new();
    let mut writer = CaptureWriter::to(&mut octets, &Options::default(), &NAMED).unwrap();
    for packet in packets {
        let AnyPacket {
            interface,
            at,
            ref bytes,
            ..
        } = *packet;
        let wire_len = bytes.len() as u32 + packet.more;
        writer
            .packet_commented(interface, at, bytes, wire_len, &packet.comment)
            .unwrap();
    }
    writer.finish().unwrap();
    let want = packets.iter().map(|packet| {
        let most = if packet.interface == 1 {
            100
        } else {
            usize::MAX
        };
        Kept {
            interface: packet.interface,
            at: packet.at,
            stamp: Stamp::Valid,
            link_number: [1, 101, 276][packet.interface as usize],
            wire_len: packet.bytes.len() as u32 + packet.more,
            bytes: packet.bytes[..packet.bytes.len().min(most)].to_vec(),
        }
    });
    let want = want.collect();
    (octets, want)
}

/// Returns its octets in pieces of changing length.
struct Piecemeal<'a> {
    octets: &'a [u8],
    piece: usize,
}

impl Read for Piecemeal<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.piece = (self.piece * 31 + 7) % 97;
        if self.piece.is_multiple_of(5) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let len = self.piece.min(room.len());
        (&mut self.octets).take(len as u64).read(room)
    }
}

proptest! {
    #[test]
    fn output_of_the_writer_is_read_back(
        packets in vec(any_packet(), 0..20),
        at in any::<prop::sample::Index>(),
        piece in 0usize..97,
    ) {
        let (octets, want) = write(&packets);
        prop_assert_eq!(&read_whole(&octets), &want);
        let piecemeal = Piecemeal { octets: &octets, piece };
        let mut reader = CaptureReader::from(piecemeal, "test").unwrap();
        let (got, e) = rest(&mut reader);
        prop_assert!(e.is_none(), "{:?}", e);
        prop_assert_eq!(&got, &want);
        if !want.is_empty() {
            for (got, want) in reader.interfaces().iter().zip(NAMED) {
                prop_assert_eq!(&got.name, want.name);
                prop_assert_eq!(&got.description, want.description);
                prop_assert_eq!((got.link, got.snap_len), (Some(want.link), want.snap_len));
                prop_assert_eq!(got.resolution, Resolution::NANOSECONDS);
            }
        }
        let at = at.index(octets.len());
        for packed in [
            gzip(&octets),
            zstd(&octets),
            in_two(&octets, at, gzip),
            in_two(&octets, at, zstd),
        ] {
            prop_assert_eq!(&read_whole(&packed), &want);
        }
    }

    #[test]
    fn no_octets_panic_behind_a_header(
        pcap in any::<bool>(),
        octets in vec(prop_oneof![Just(0u8), 0u8..13, any::<u8>()], 0..300),
    ) {
        let head = match pcap {
            true => Order::Little.pcap(0xA1B2_C3D4, 1, &[]),
            false => Order::Little.start(),
        };
        read(&[head, octets].concat());
    }
}

/// Returns some packets, one of which is longer than everything before it.
fn some() -> Vec<AnyPacket> {
    let packet = |n: u32| AnyPacket {
        interface: n % 3,
        at: u64::from(1000 - n),
        bytes: vec![n as u8; (n * 7) as usize],
        more: n % 2,
        comment: if n == 2 { "why".into() } else { String::new() },
    };
    (0..6).map(packet).collect()
}

#[test]
fn a_file_cut_at_any_octet_returns_the_packets_before() {
    let (ng, want) = write(&some());
    let records: Vec<_> = want
        .iter()
        .map(|packet| (1, 2, packet.wire_len, &*packet.bytes))
        .collect();
    let pcap = Order::Big.pcap(0xA1B2_C3D4, 1, &records);
    for (file, least) in [(&ng, 28), (&pcap, 24)] {
        let whole = read_whole(file);
        let mut before = 0;
        for len in 0..file.len() {
            let (packets, e) = read(&file[..len]);
            assert_eq!(packets, whole[..packets.len()], "{len}");
            assert!(packets.len() >= before, "{len}");
            before = packets.len();
            let Some(e) = e else {
                // Between two records.
                assert!(len >= least, "{len}");
                continue;
            };
            if len == 0 {
                assert!(matches!(e.kind(), ReadErrorKind::Empty), "{e}");
                continue;
            }
            assert!(e.is_cut(), "{len}: {e}");
            assert!(e.octet() < len as u64, "{len}: {e}");
            assert_eq!(e.packets(), packets.len() as u64);
            let has_whole = e.to_string().contains("everything before it is complete");
            assert_eq!(has_whole, !packets.is_empty(), "{len}: {e}");
        }
        assert_eq!(before, whole.len() - 1);
    }
    // In compressed data, no position is between two records.
    for pack in [gzip, zstd] {
        let packed = pack(&ng);
        for len in 4..packed.len() {
            let (packets, e) = read(&packed[..len]);
            assert_eq!(packets, want[..packets.len()], "{len}");
            let e = e.expect("cut");
            assert!(
                e.is_cut() || matches!(e.kind(), ReadErrorKind::Empty),
                "{len}: {e}"
            );
        }
    }
}

#[test]
fn a_cut_file_is_reported_with_the_position() {
    let file = Order::Little.pcap(0xA1B2_C3D4, 1, &[(0, 0, 3, b"one"), (0, 0, 3, b"two")]);
    let text = failure(&file[..file.len() - 1]);
    assert!(
        text.starts_with("test: octet 43, after packet 1: the file ends in the middle"),
        "{text}"
    );
    let text = failure(&file[..30]);
    assert!(text.contains("octet 24, before the first packet"), "{text}");
}

#[test]
fn packets_of_any_length_up_to_the_limit_are_read() {
    let largest = vec![0xA5; MAX_PACKET];
    for order in BOTH {
        let mut file = order.pcap(0xA1B2_C3D4, 1, &[(0, 0, 1 << 20, &*largest); 3]);
        assert_eq!(read_whole(&file).len(), 3);
        file.extend(order.words(&[0, 0, MAX_PACKET as u32 + 1, 1 << 20]));
        let (packets, e) = read(&file);
        assert_eq!(packets.len(), 3);
        let e = e.unwrap();
        assert!(
            e.to_string().contains("262145 octets; at most 262144"),
            "{e}"
        );

        let mut file = order.start();
        file.extend(order.enhanced(0, 0, &largest));
        // With options that make its block longer than the longest packet's.
        let mut body = order.words(&[0, 0, 0, MAX_PACKET as u32, MAX_PACKET as u32]);
        body.extend(&largest);
        body.extend(order.options(&[(1, &[b'c'; 65_535][..]); 20]));
        file.extend(order.block(6, &body));
        file.extend(order.enhanced(0, 1, b"more"));
        let packets = read_whole(&file);
        assert_eq!(packets.len(), 3);
        assert_eq!(packets[1], Kept::whole(0, 0, &largest));
        file.extend(order.enhanced(0, 0, &[largest.clone(), vec![1]].concat()));
        assert!(failure(&file).contains("a packet of 262145 octets"));
    }
}

#[test]
fn unknown_blocks_are_skipped_up_to_the_limit() {
    for order in BOTH {
        let mut file = order.start();
        file.extend(order.block(0xBAD, &vec![0; MAX_BLOCK - 12]));
        file.extend(order.enhanced(0, 1, b"behind"));
        assert_eq!(read_whole(&file), [Kept::whole(0, 1, b"behind")]);
        for kind in [1, 2, 3, 6, 0xBAD] {
            let mut file = order.start();
            file.extend(order.words(&[kind, MAX_BLOCK as u32 + 4]));
            let text = failure(&file);
            assert!(
                text.contains("a block of 16777220 octets; at most"),
                "{text}"
            );
        }
    }
}

#[test]
fn a_bomb_is_skipped() {
    // 256 MiB, in a few kB.
    let block = Order::Little.block(0xBAD, &vec![0; MAX_BLOCK - 12]);
    let mut file = zstd(&Order::Little.start());
    for _ in 0..16 {
        file.extend(zstd(&block));
    }
    assert!(file.len() < 100_000);
    file.extend(zstd(&Order::Little.enhanced(0, 1, b"behind")));
    assert_eq!(read_whole(&file), [Kept::whole(0, 1, b"behind")]);
}

#[test]
fn interfaces_are_limited_over_all_sections_and_their_texts_too() {
    let text = "é".repeat(30_000);
    let mut file = Order::Big.section();
    file.extend(Order::Big.interface(1, 0, &[(2, text.as_bytes()), (3, &[0xFF; 300])]));
    file.extend(Order::Big.section());
    for _ in 1..MAX_INTERFACES {
        file.extend(Order::Big.interface(1, 0, &[]));
    }
    file.extend(Order::Big.enhanced(MAX_INTERFACES as u32 - 2, 1, b"last"));
    let mut reader = CaptureReader::from(&*file, "test").unwrap();
    let packet = Kept::new(reader.next().unwrap().unwrap());
    assert_eq!(
        packet,
        Kept::whole(MAX_INTERFACES as u32 - 1, 1000, b"last")
    );
    let first = &reader.interfaces()[0];
    assert_eq!(first.name, "é".repeat(127));
    assert_eq!(first.description, "\u{FFFD}".repeat(85));
    drop(reader);
    file.extend(Order::Big.interface(1, 0, &[]));
    assert!(failure(&file).contains("one more interface; at most 65536"));
}

#[test]
fn violations_of_the_format_are_reported() {
    let order = Order::Little;
    let block = |words: &[u32]| [order.start(), order.words(words)].concat();
    let interface = |options: &[u8]| {
        let body = [&[1, 0, 0, 0, 0, 0, 0, 0], options].concat();
        [order.section(), order.block(1, &body)].concat()
    };
    let mut version = order.section();
    version[12] = 2;
    let mut magic = order.section();
    magic[8] = 0;
    let mut length = [order.start(), order.enhanced(0, 0, b"1234")].concat();
    let last = length.len() - 4;
    length[last] = 40;
    let mut pcap = order.pcap(0xA1B2_C3D4, 1, &[]);
    pcap[4] = 3;
    for (file, want) in [
        (
            block(&[6, 8, 0, 8]),
            "a block of 8 octets, which is too short",
        ),
        (
            block(&[6, 33, 0, 8]),
            "a block of 33 octets, which is too short",
        ),
        (
            block(&[6, 12, 12]),
            "a block of 12 octets, which is too short",
        ),
        (
            block(&[3, 12, 12]),
            "a block of 12 octets, which is too short",
        ),
        (
            block(&[9, 16, 0, 12]),
            "16 octets by its start and 12 by its end",
        ),
        (length, "36 octets by its start and 40 by its end"),
        (
            block(&[6, 32, 0, 0, 0, 1, 1, 32]),
            "a packet of 1 octets in a block of 32",
        ),
        (
            block(&[3, 16, 1, 16]),
            "a packet of 1 octets in a block of 16",
        ),
        (
            block(&[6, 32, 1, 0, 0, 0, 0, 32]),
            "a packet of interface 1, but 1 are described",
        ),
        (version, "format version 2.0"),
        (pcap, "format version 3.4"),
        (magic, "malformed: the byte-order magic"),
        (interface(&[2, 0, 9, 0]), "longer than its block"),
        (interface(&[9, 0, 0, 0]), "if_tsresol"),
        (interface(&[14, 0, 4, 0, 0, 0, 0, 0]), "if_tsoffset"),
        (
            [order.section(), order.block(1, &[0; 4])].concat(),
            "without room for its fields",
        ),
        (b"BLF\0 log".to_vec(), "it begins with 42 4C 46 00"),
        (gzip(b"text"), "it begins with 74 65 78 74"),
        (gzip(&gzip(&order.start())), "it begins with 1F 8B 08"),
        (gzip(b""), "it is empty"),
        (vec![], "it is empty"),
    ] {
        let text = failure(&file);
        assert!(text.starts_with("test: ") && text.contains(want), "{text}");
    }
}

#[test]
fn an_out_of_range_time_does_not_end_the_reading() {
    let order = Order::Little;
    for (options, stamp) in [
        (&[][..], u64::MAX),
        (&[(9, &[0x80][..])], 1 << 40),
        (&[(9, &[9]), (14, &[0xFF; 8])], 999_999_999),
    ] {
        let file = [
            order.section(),
            order.interface(1, 0, options),
            order.enhanced(0, stamp, b"1"),
            order.enhanced(0, 2_000_000_000, b"2"),
        ];
        let packets = read_whole(&file.concat());
        let stamps: Vec<Stamp> = packets.iter().map(|packet| packet.stamp).collect();
        assert_eq!((stamps[0], packets[0].at), (Stamp::OutOfRange, 0));
        assert_eq!(packets[1].bytes, b"2");
    }
}

#[test]
fn decompression_errors_are_distinguished_from_truncation() {
    let (octets, want) = write(&some());
    for (pack, packing) in [
        (gzip as fn(&[u8]) -> _, Compression::Gzip),
        (zstd, Compression::Zstd),
    ] {
        let mut packed = in_two(&octets, octets.len() - 4, pack);
        let second = pack(&octets[octets.len() - 4..]);
        let at = packed.len() - second.len();
        packed[at..].fill(0x5A);
        let (packets, e) = read(&packed);
        assert_eq!(packets, want[..want.len() - 1]);
        let e = e.unwrap();
        assert!(!e.is_cut());
        assert!(
            matches!(e.kind(), ReadErrorKind::Unpack(p, _) if *p == packing),
            "{e}"
        );
        let text = format!("cannot decompress it ({packing}): ");
        assert!(e.to_string().contains(&text), "{e}");
    }
}

#[test]
fn a_file_can_be_rewound_after_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("capture");
    let (octets, want) = write(&some());
    let cut = &octets[..octets.len() - 1];
    for (file, packets) in [
        (octets.clone(), &want[..]),
        (gzip(&octets), &want[..]),
        (in_two(&octets, 300, zstd), &want[..]),
        (cut.to_vec(), &want[..want.len() - 1]),
        (gzip(cut), &want[..want.len() - 1]),
    ] {
        fs::write(&path, file).unwrap();
        let mut reader = CaptureReader::open(&path).unwrap();
        for round in 0..3 {
            assert_eq!(reader.packets(), 0);
            let (got, e) = rest(&mut reader);
            assert_eq!(got, packets, "{round}");
            assert_eq!(e.is_some(), packets.len() < want.len());
            assert_eq!(reader.packets(), packets.len() as u64);
            assert_eq!(reader.interfaces().len(), 3);
            reader.rewind().unwrap();
            // And in the middle of it.
            reader.next().unwrap().unwrap();
            reader.rewind().unwrap();
        }
    }
}

#[test]
fn a_pipe_returns_packets_immediately_and_cannot_be_rewound() {
    let (pipe, mut writer) = io::pipe().unwrap();
    let (octets, want) = write(&some());
    let first = write(&some()[..1]).0.len();
    writer.write_all(&octets[..first]).unwrap();
    let mut reader = CaptureReader::from(pipe, "standard input").unwrap();
    let packet = reader.next().unwrap().map(Kept::new);
    assert_eq!(packet.as_ref(), Some(&want[0]));
    writer.write_all(&octets[first..]).unwrap();
    drop(writer);
    assert_eq!(rest(&mut reader).0, want[1..]);
    let e = reader.rewind().unwrap_err();
    assert!(matches!(e.kind(), ReadErrorKind::Rewind(_)));
    let text = e.to_string();
    assert!(
        text.starts_with("standard input: ") && text.contains("save it to a file first"),
        "{text}"
    );
    assert!(reader.next().unwrap().is_none());
}

#[test]
fn an_unreadable_path_is_reported_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    for (path, want) in [
        (folder.path().join("missing"), "check the name"),
        (folder.path().to_path_buf(), "specify a file in that folder"),
        (PathBuf::from("/dev/null"), "it is empty"),
    ] {
        let e = CaptureReader::open(&path).err().unwrap();
        let (text, name) = (e.to_string(), path.display().to_string());
        assert!(text.starts_with(&name) && text.contains(want), "{text}");
    }
}

/// Returns the capture files in `folder`.
fn captures(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|e| e == "pcap" || e == "pcapng")
        })
        .collect();
    paths.sort();
    paths
}

/// Returns tshark's output for each packet: time, length, captured length.
fn by_tshark(path: &Path) -> Option<Vec<String>> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-T", "fields", "-r"]).arg(path);
    for field in ["frame.time_epoch", "frame.len", "frame.cap_len"] {
        command.args(["-e", field]);
    }
    let output = match command.output() {
        Ok(output) => output,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return None,
        Err(e) => panic!("tshark: {e}"),
    };
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(str::to_owned).collect())
}

/// Reads the captures, and compares them with tshark's output for the file that contains them all.
fn agrees_with_tshark(paths: &[PathBuf], all: &Path) {
    let Some(want) = by_tshark(all) else {
        fcn_skip::skipped!("comparing with tshark, which is not installed");
        return;
    };
    let mut got = Vec::new();
    for path in paths {
        let mut reader = CaptureReader::open(path).unwrap();
        while let Some(packet) = reader.next().unwrap() {
            let (seconds, rest) = (packet.at / 1_000_000_000, packet.at % 1_000_000_000);
            let (wire_len, len) = (packet.wire_len, packet.bytes.len());
            got.push(format!("{seconds}.{rest:09}\t{wire_len}\t{len}"));
        }
    }
    assert_eq!(got, want, "{}", all.display());
    println!("{}: {} packets", all.display(), got.len());
}

/// Combined as sections of one file: starting tshark takes longer than reading one of them.
#[test]
fn own_captures_are_read_as_by_tshark() {
    let paths = captures(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures"));
    let folder = tempfile::tempdir().unwrap();
    let all = folder.path().join("all.pcapng");
    let sections: Vec<_> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    fs::write(&all, sections.concat()).unwrap();
    assert!(!paths.is_empty());
    agrees_with_tshark(&paths, &all);
    agrees_with_tshark(std::slice::from_ref(&all), &all);
}

#[test]
fn foreign_captures_are_read_as_by_tshark() {
    match std::env::var_os("FCN_CAPTURES") {
        Some(folder) => {
            let paths = captures(Path::new(&folder));
            assert!(!paths.is_empty(), "no capture in {folder:?}");
            for path in &paths {
                agrees_with_tshark(std::slice::from_ref(path), path);
            }
        }
        None => fcn_skip::skipped!("FCN_CAPTURES names no folder of captures"),
    }
}
