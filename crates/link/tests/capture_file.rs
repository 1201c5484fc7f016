//! Writing capture files: they are read back by pcap-file, and never left incomplete.
#![cfg(unix)]

use fcn_link::capture_file::{
    CaptureWriter, Error, ErrorKind, Interface, MAX_COMMENT, MAX_PACKET, Options, Summary,
};
use fcn_wire::LinkType;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::{Block, PcapNgBlock, PcapNgReader, PcapNgWriter};
use pcap_file::{DataLink, Endianness};
use proptest::collection::vec;
use proptest::prelude::*;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

const ETHERNET: Interface<'_> = Interface {
    name: "eth0",
    description: "",
    link: LinkType::Ethernet,
    snap_len: 0,
};

#[derive(Clone, Debug)]
struct Packet {
    interface: u32,
    at: u64,
    bytes: Vec<u8>,
    /// Difference between the length on the wire and the captured length, in octets.
    more: u32,
    comment: String,
    /// True to write it by `packet_with`, which takes no comment.
    in_place: bool,
}

impl Packet {
    fn wire_len(&self) -> u32 {
        self.bytes.len() as u32 + self.more
    }

    fn write(&self, writer: &mut CaptureWriter<'_>) -> Result<(), Error> {
        let (bytes, wire_len) = (&self.bytes, self.wire_len());
        if self.in_place {
            let fill = |place: &mut [u8]| place.copy_from_slice(bytes);
            writer.packet_with(self.interface, self.at, bytes.len(), wire_len, fill)
        } else if self.comment.is_empty() {
            writer.packet(self.interface, self.at, bytes, wire_len)
        } else {
            writer.packet_commented(self.interface, self.at, bytes, wire_len, &self.comment)
        }
    }

    fn block(&self, snap_lens: &[u32; 3]) -> Block<'static> {
        let kept = match snap_lens[self.interface as usize] {
            0 => self.bytes.len(),
            most => self.bytes.len().min(most as usize),
        };
        let mut options = Vec::new();
        if !self.in_place && !self.comment.is_empty() {
            let comment = CommonOption::Comment(self.comment.clone().into());
            options.push(EnhancedPacketOption::Common(comment));
        }
        let block = EnhancedPacketBlock {
            interface_id: self.interface,
            timestamp: Duration::from_nanos(self.at),
            original_len: self.wire_len(),
            data: self.bytes[..kept].to_vec().into(),
            options,
        };
        block.into_block()
    }
}

fn packet() -> impl Strategy<Value = Packet> {
    (
        0u32..3,
        any::<u64>(),
        vec(any::<u8>(), 0..300),
        0u32..5000,
        prop_oneof![Just(String::new()), ".{0,40}"],
        any::<bool>(),
    )
        .prop_map(|(interface, at, bytes, more, comment, in_place)| Packet {
            interface,
            at,
            bytes,
            more,
            comment,
            in_place,
        })
}

fn interfaces<'a>(snap_lens: &[u32; 3], name: &'a str) -> [Interface<'a>; 3] {
    let interface = |link, description, snap_len| Interface {
        name,
        description,
        link,
        snap_len,
    };
    [
        interface(LinkType::Ethernet, "", snap_lens[0]),
        interface(LinkType::RawIp, "behind the switch", snap_lens[1]),
        interface(LinkType::LinuxCooked, "", snap_lens[2]),
    ]
}

/// Returns the blocks that a reader should find before the packets.
fn head(options: &Options<'_>, interfaces: &[Interface<'_>; 3]) -> Vec<Block<'static>> {
    let mut section = SectionHeaderBlock {
        endianness: Endianness::Little,
        ..SectionHeaderBlock::default()
    };
    for (text, option) in [
        (
            options.application,
            SectionHeaderOption::UserApplication as fn(_) -> _,
        ),
        (options.comment, |text| {
            SectionHeaderOption::Common(CommonOption::Comment(text))
        }),
    ] {
        if !text.is_empty() {
            section.options.push(option(text.to_owned().into()));
        }
    }
    let links = [DataLink::ETHERNET, DataLink::RAW, DataLink::LINUX_SLL];
    let mut blocks = vec![section.into_block()];
    for (interface, link) in interfaces.iter().zip(links) {
        let mut block = InterfaceDescriptionBlock::new(link, interface.snap_len);
        if !interface.name.is_empty() {
            let name = interface.name.to_owned().into();
            block.options.push(InterfaceDescriptionOption::IfName(name));
        }
        if !interface.description.is_empty() {
            let text = interface.description.to_owned().into();
            block
                .options
                .push(InterfaceDescriptionOption::IfDescription(text));
        }
        let nanoseconds = InterfaceDescriptionOption::IfTsResol(InterfaceTsResolution::NANO);
        block.options.push(nanoseconds);
        blocks.push(block.into_block());
    }
    blocks
}

fn read(octets: &[u8]) -> Vec<Block<'static>> {
    let mut reader = PcapNgReader::new(octets).unwrap();
    let mut blocks = vec![reader.section().clone().into_owned().into_block()];
    while let Some(block) = reader.next_block() {
        blocks.push(block.unwrap().0.into_owned());
    }
    blocks
}

fn capture(options: &Options<'_>, interfaces: &[Interface<'_>], packets: &[Packet]) -> Vec<u8> {
    let mut octets = Vec::new();
    let mut writer = CaptureWriter::to(&mut octets, options, interfaces).unwrap();
    for packet in packets {
        packet.write(&mut writer).unwrap();
    }
    let summary = writer.finish().unwrap();
    let packets = packets.len() as u64;
    assert_eq!(summary, Summary { packets });
    octets
}

proptest! {
    #[test]
    fn pcap_file_reads_what_was_written_and_would_write_the_same(
        texts in [".{0,30}", ".{0,30}", "[a-z0-9]{0,15}"],
        snap_lens in [0u32..400, 1u32..100, 0u32..3],
        packets in vec(packet(), 0..20),
    ) {
        let [comment, application, name] = &texts;
        let options = Options { comment, application };
        let interfaces = interfaces(&snap_lens, name);
        let octets = capture(&options, &interfaces, &packets);
        let mut want = head(&options, &interfaces);
        want.extend(packets.iter().map(|packet| packet.block(&snap_lens)));
        prop_assert_eq!(read(&octets), want.clone());

        let mut blocks = want.iter();
        let Some(Block::SectionHeader(section)) = blocks.next() else { unreachable!() };
        let mut theirs = PcapNgWriter::with_section_header(Vec::new(), section.clone()).unwrap();
        for block in blocks {
            theirs.write_block(block).unwrap();
        }
        prop_assert_eq!(theirs.into_inner(), octets);
    }
}

/// Returns packets that fill several buffers, each with different octets.
fn many() -> Vec<Packet> {
    (0..3000u32)
        .map(|n| Packet {
            interface: 0,
            at: 1_700_000_000_000_000_000 + u64::from(n),
            bytes: (0..n % 4097).map(|i| (i ^ n) as u8).collect(),
            more: 0,
            comment: if n % 7 == 0 {
                n.to_string()
            } else {
                String::new()
            },
            in_place: n % 3 == 0,
        })
        .collect()
}

#[test]
fn a_capture_of_many_buffers_is_complete_and_reproducible() {
    let packets = many();
    let octets = capture(&Options::default(), &[ETHERNET], &packets);
    assert!(octets.len() > 2 << 20);
    let blocks = read(&octets);
    assert_eq!(blocks.len(), 2 + packets.len());
    for (block, packet) in blocks[2..].iter().zip(&packets) {
        assert_eq!(*block, packet.block(&[0; 3]));
    }
    assert_eq!(capture(&Options::default(), &[ETHERNET], &packets), octets);
}

#[test]
fn the_largest_packet_with_the_largest_comment_fits() {
    let largest = Packet {
        interface: 0,
        at: 0,
        bytes: vec![0xA5; MAX_PACKET],
        more: 1,
        comment: "c".repeat(MAX_COMMENT),
        in_place: false,
    };
    let packets = vec![largest; 5];
    let blocks = read(&capture(&Options::default(), &[ETHERNET], &packets));
    assert_eq!(blocks[2..], vec![packets[0].block(&[0; 3]); 5]);
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect()
}

fn create(path: &Path) -> Result<CaptureWriter<'static>, Error> {
    CaptureWriter::create(path, &Options::default(), &[ETHERNET])
}

#[test]
fn a_file_has_its_name_only_when_it_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flows.pcapng");
    let packets = many();
    for before in [None, Some("what was there before")] {
        if let Some(text) = before {
            fs::write(&path, text).unwrap();
        }
        let mut writer = create(&path).unwrap();
        for packet in &packets {
            packet.write(&mut writer).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).ok().as_deref(), before);
        drop(writer);
        assert_eq!(fs::read_to_string(&path).ok().as_deref(), before);
        assert_eq!(names(folder.path()).len(), usize::from(before.is_some()));
    }
    let mut writer = create(&path).unwrap();
    for packet in &packets {
        packet.write(&mut writer).unwrap();
    }
    let summary = writer.finish().unwrap();
    assert_eq!(names(folder.path()), ["flows.pcapng"]);
    assert_eq!(summary.packets, packets.len() as u64);
    assert_eq!(
        fs::read(&path).unwrap(),
        capture(&Options::default(), &[ETHERNET], &packets)
    );
}

#[test]
fn a_file_has_the_permissions_of_any_new_file() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, plain) = (folder.path().join("a"), folder.path().join("b"));
    create(&ours).unwrap().finish().unwrap();
    fs::write(&plain, "").unwrap();
    let mode = |path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(ours), mode(plain));
}

#[test]
fn links_and_devices_are_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("file"), folder.path().join("link"));
    fs::write(&file, "old").unwrap();
    symlink(&file, &link).unwrap();
    create(&link).unwrap().finish().unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(read(&fs::read(&file).unwrap()).len(), 2);
    let null = folder.path().join("null");
    symlink("/dev/null", &null).unwrap();
    create(&null).unwrap().finish().unwrap();
    assert!(fs::metadata(&null).unwrap().file_type().is_char_device());
    assert_eq!(names(folder.path()).len(), 3);
}

#[test]
fn an_unwritable_path_is_refused_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let inside = |name: &str| folder.path().join(name);
    fs::write(inside("file"), "").unwrap();
    fs::create_dir(inside("folder")).unwrap();
    for (path, advice) in [
        (inside("missing/x.pcapng"), "create its folder first"),
        (inside("file/x.pcapng"), "not a folder"),
        (inside("folder"), "specify a file in that folder"),
        (inside(&"x".repeat(300)), "a shorter name"),
        (inside("folder/.."), "not a file name"),
    ] {
        let e = create(&path).err().unwrap();
        let text = e.to_string();
        assert!(
            text.starts_with(&path.display().to_string()) && text.contains(advice),
            "{text}"
        );
        assert!(!text.contains(".capture-"), "{text}");
        assert_eq!(e.file(), Some(&*path));
    }
    assert_eq!(names(folder.path()).len(), 2);
}

#[test]
fn a_full_disk_is_named_and_the_capture_cannot_be_finished() {
    // The kernel's device that is always full.
    let folder = tempfile::tempdir().unwrap();
    let full = folder.path().join("full");
    symlink("/dev/full", &full).unwrap();
    let text = create(&full).err().unwrap().to_string();
    assert!(
        text.contains("/full: cannot write it: ") && text.contains("free some space"),
        "{text}"
    );

    let mut writer = CaptureWriter::to(Full(1 << 20), &Options::default(), &[ETHERNET]).unwrap();
    let failed: Vec<_> = many()
        .iter()
        .filter_map(|p| p.write(&mut writer).err())
        .collect();
    // Later callers get the cause as well.
    let is_full = |error: &Error| matches!(error.kind(), ErrorKind::Write(e) if e.kind() == io::ErrorKind::StorageFull);
    assert!(failed.len() > 1 && failed.iter().all(is_full));
    assert!(is_full(&writer.finish().unwrap_err()));
}

/// A writer that takes this number of octets, then is full.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let taken = octets.len().min(self.0);
        self.0 -= taken;
        match taken {
            0 => Err(io::ErrorKind::StorageFull.into()),
            taken => Ok(taken),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_pipe_is_distinguished() {
    let (reader, pipe) = io::pipe().unwrap();
    let writer = CaptureWriter::to(pipe, &Options::default(), &[ETHERNET]).unwrap();
    drop(reader);
    let mut writer = writer;
    writer.packet(0, 0, &[1], 1).unwrap();
    let e = writer.finish().unwrap_err();
    assert!(e.is_broken_pipe(), "{e}");
}

#[test]
fn an_invalid_packet_is_refused_without_output() {
    let mut octets = Vec::new();
    let mut writer = CaptureWriter::to(&mut octets, &Options::default(), &[ETHERNET]).unwrap();
    let comment = "c".repeat(MAX_COMMENT + 1);
    for (result, reason) in [
        (
            writer.packet(1, 0, &[1], 1),
            "the file has 1 interfaces (numbered from 0)",
        ),
        (writer.packet(0, 0, &[1, 2], 1), "must be at least 2"),
        (
            writer.packet(0, 0, &[0; MAX_PACKET + 1], u32::MAX),
            "at most 262144",
        ),
        (
            writer.packet_commented(0, 0, &[1], 1, &comment),
            "at most 65535",
        ),
    ] {
        let text = result.unwrap_err().to_string();
        assert!(
            text.starts_with("capture: ") && text.contains(reason),
            "{text}"
        );
    }
    let never = |_: &mut [u8]| panic!("called");
    writer
        .packet_with(0, 0, usize::MAX, u32::MAX, never)
        .unwrap_err();
    // A caller that panics while it fills a packet has written none.
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        writer.packet_with(0, 0, 9, 9, |_| panic!("on purpose"))
    }));
    assert!(unwound.is_err());
    writer.packet(0, 5, &[7], 1).unwrap();
    assert_eq!(writer.finish().unwrap().packets, 1);
    assert_eq!(read(&octets).len(), 3);
}

#[test]
fn a_text_that_is_too_long_is_refused() {
    let long = "x".repeat(MAX_COMMENT + 1);
    let options = Options {
        comment: &long,
        ..Options::default()
    };
    let e = CaptureWriter::to(io::sink(), &options, &[ETHERNET])
        .err()
        .unwrap();
    assert!(matches!(e.kind(), ErrorKind::Text(_)));
    let named = Interface {
        name: &long,
        ..ETHERNET
    };
    let e = CaptureWriter::to(io::sink(), &Options::default(), &[named])
        .err()
        .unwrap();
    assert!(matches!(e.kind(), ErrorKind::Text(_)));
}
