//! Properties that must hold for any octets. libFuzzer searches for octets that violate them; the
//! corpus test of `fcn-link` (`tests/corpus.rs`) runs the same functions over the committed corpus.
//!
//! An input is a capture file. A function panics if the reader breaks a promise.

use fcn_link::capture_file::{
    CaptureReader, CaptureWriter, Interface, MAX_INTERFACES, MAX_PACKET, Options, Packet,
    ReadError, ReadErrorKind, ReadInterface,
};
use fcn_wire::LinkType;
use pcap_file::pcap::PcapParser;
use pcap_file::pcapng::{Block, PcapNgParser};
use std::io::{self, Read};

/// A target: a function that must not panic for any octets.
pub type Target = fn(&[u8]);

/// Every target with its name, which is also the name of its folder in `corpus/`.
pub const ALL: &[(&str, Target)] = &[("capture", capture)];

/// Maximum number of packets read: a few octets of compressed data may hold millions.
const MOST: usize = 4_000;
/// Maximum number of octets of packets read.
const MOST_OCTETS: u64 = 1 << 20;

/// A copy of a packet that outlives the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kept {
    interface: u32,
    /// `None` if the packet has no time stamp.
    at: Option<u64>,
    wire_len: u32,
    bytes: Vec<u8>,
}

impl Kept {
    fn from_packet(packet: &Packet<'_>) -> Self {
        Self {
            interface: packet.interface,
            at: packet.time(),
            wire_len: packet.wire_len,
            bytes: packet.bytes.to_vec(),
        }
    }
}

/// Result of a reader: packets, final error, and interfaces.
#[derive(Debug, Default)]
struct Content {
    packets: Vec<Kept>,
    error: Option<ReadError>,
    interfaces: Vec<ReadInterface>,
    /// True if all of it was read.
    ended: bool,
}

/// Reads a capture file. Packets must be bounded and well-formed, and the same for any division of
/// the input, in pcap-file, after writing them to a file and reading it again, and if several are
/// requested at a time.
pub fn capture(data: &[u8]) {
    let whole = read(data);
    let piecemeal = read(Piecemeal {
        octets: data,
        piece: data.len(),
    });
    assert_same(&whole, &piecemeal);
    let together = read_together(data);
    assert!((whole.packets.iter().zip(&together.packets)).all(|(a, b)| a == b));
    if whole.ended && together.ended {
        assert_same(&whole, &together);
    }
    for (ours, theirs) in whole.packets.iter().zip(by_pcap_file(data)) {
        let (at, wire_len, bytes) = theirs;
        // Times out of our range are within theirs.
        assert!(ours.at.is_none_or(|ours| at == Some(ours.into())));
        assert_eq!((ours.wire_len, &ours.bytes), (wire_len, &bytes));
    }
    written_again(&whole);
}

/// Asserts that two readings of the same octets agree. The amount of data before an error of
/// decompression is up to the decompressor, and depends on the pieces that it gets.
fn assert_same(a: &Content, b: &Content) {
    let unpack = |content: &Content| {
        let kind = content.error.as_ref().map(ReadError::kind);
        matches!(kind, Some(ReadErrorKind::Unpack(..)))
    };
    if unpack(a) || unpack(b) {
        assert!(a.packets.iter().zip(&b.packets).all(|(a, b)| a == b));
        return;
    }
    assert_eq!(a.packets, b.packets);
    assert_eq!(a.interfaces, b.interfaces);
    match (&a.error, &b.error) {
        (None, None) => {}
        (Some(a), Some(b)) => {
            let said = |e: &ReadError| (e.kind().to_string(), e.octet());
            assert_eq!(said(a), said(b));
        }
        (a, b) => panic!("{a:?}, then {b:?}"),
    }
}

fn read<R: Read + Send>(octets: R) -> Content {
    let mut content = Content::default();
    let mut reader = match CaptureReader::from(octets, "data") {
        Ok(reader) => reader,
        Err(e) => {
            check(&e, 0);
            content.ended = true;
            content.error = Some(e);
            return content;
        }
    };
    let mut behind = reader.octets();
    while content.packets.len() < MOST && behind < MOST_OCTETS {
        match reader.next() {
            Ok(Some(packet)) => {
                assert!(packet.bytes.len() <= MAX_PACKET);
                assert!(packet.wire_len as usize >= packet.bytes.len());
                assert!(packet.time().is_some() || packet.at == 0);
                assert_eq!(packet.link, LinkType::from_pcap(packet.link_number));
                content.packets.push(Kept::from_packet(&packet));
            }
            ended => {
                content.ended = true;
                content.error = ended.err();
                let again = reader.next().expect("no error behind the end");
                assert!(again.is_none(), "a packet behind the end");
                break;
            }
        }
        // Every record has a header, and follows the previous one.
        assert!(reader.octets() >= behind + 16);
        behind = reader.octets();
    }
    let packets = content.packets.len() as u64;
    assert_eq!(reader.packets(), packets);
    if let Some(e) = &content.error {
        check(e, packets);
        assert!(e.octet() >= behind);
    }
    content.interfaces = reader.interfaces().to_vec();
    assert!(content.interfaces.len() <= MAX_INTERFACES);
    for interface in &content.interfaces {
        assert!(interface.name.len() <= 255 && interface.description.len() <= 255);
    }
    for packet in &content.packets {
        assert!((packet.interface as usize) < content.interfaces.len());
    }
    content
}

/// Reads sixteen packets at a time.
fn read_together(octets: &[u8]) -> Content {
    let mut content = Content::default();
    let mut reader = match CaptureReader::from(octets, "data") {
        Ok(reader) => reader,
        Err(e) => {
            content.error = Some(e);
            content.ended = true;
            return content;
        }
    };
    while content.packets.len() < MOST && reader.octets() < MOST_OCTETS {
        match reader.next_batch(16) {
            Ok(Some(some)) => content
                .packets
                .extend(some.iter().map(|packet| Kept::from_packet(&packet))),
            ended => {
                content.ended = true;
                content.error = ended.err();
                break;
            }
        }
    }
    assert_eq!(reader.packets(), content.packets.len() as u64);
    content.interfaces = reader.interfaces().to_vec();
    content
}

/// Asserts that an error is one line that names the file, and counts the packets.
fn check(e: &ReadError, packets: u64) {
    let text = e.to_string();
    assert!(text.starts_with("data: ") && text.len() < 400, "{text}");
    assert!(!text.contains('\n'), "{text}");
    assert_eq!(e.packets(), packets);
}

/// Returns its octets in pieces of changing length.
struct Piecemeal<'a> {
    octets: &'a [u8],
    piece: usize,
}

impl Read for Piecemeal<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.piece = (self.piece * 31 + 7) % 97;
        if self.piece.is_multiple_of(11) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let len = self.piece.min(room.len()).min(self.octets.len());
        let (now, rest) = self.octets.split_at(len);
        room[..len].copy_from_slice(now);
        self.octets = rest;
        Ok(len)
    }
}

/// Returns the packets of an uncompressed file according to pcap-file, up to the first that it
/// rejects: time, length on the wire, octets.
fn by_pcap_file(data: &[u8]) -> Vec<(Option<u128>, u32, Vec<u8>)> {
    let mut packets = Vec::new();
    if let Ok((mut rest, parser)) = PcapParser::new(data) {
        while let Ok((behind, packet)) = parser.next_packet(rest) {
            let at = packet.timestamp().as_nanos();
            packets.push((Some(at), packet.orig_len(), packet.data().to_vec()));
            rest = behind;
        }
    }
    if let Ok((mut rest, mut parser)) = PcapNgParser::new(data) {
        while let Ok((behind, block)) = parser.next_block(rest) {
            match block {
                Block::EnhancedPacket(packet) => {
                    let at = Some(packet.timestamp.as_nanos());
                    packets.push((at, packet.original_len, packet.data.into_owned()));
                }
                Block::Packet(packet) => {
                    let at = Some(packet.timestamp.as_nanos());
                    packets.push((at, packet.original_len, packet.data.into_owned()));
                }
                Block::SimplePacket(packet) => {
                    packets.push((None, packet.original_len, packet.data.into_owned()));
                }
                _ => {}
            }
            rest = behind;
        }
    }
    packets
}

/// Asserts that our writer accepts the output of our reader, and our reader returns it again.
fn written_again(content: &Content) {
    let interfaces: Option<Vec<_>> = content
        .interfaces
        .iter()
        .map(|interface| {
            Some(Interface {
                name: &interface.name,
                description: &interface.description,
                link: interface.link?,
                snap_len: 0,
            })
        })
        .collect();
    let Some(interfaces) = interfaces else {
        return;
    };
    let mut octets = Vec::new();
    let mut writer = CaptureWriter::to(&mut octets, &Options::default(), &interfaces)
        .expect("interfaces that were read can be written");
    for packet in &content.packets {
        let at = packet.at.unwrap_or_default();
        writer
            .packet(packet.interface, at, &packet.bytes, packet.wire_len)
            .expect("packets that were read can be written");
    }
    writer.finish().expect("written to memory");
    let again = read(&*octets);
    // A copy may be longer, so that fewer of its packets are read.
    for (again, packet) in again.packets.iter().zip(&content.packets) {
        let at = Some(packet.at.unwrap_or_default());
        let want = Kept {
            at,
            ..packet.clone()
        };
        assert_eq!(*again, want);
    }
    assert!(again.error.is_none(), "{:?}", again.error);
}
