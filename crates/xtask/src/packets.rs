//! Capture files: reading and writing packets. Not here: the processing of packets.

use std::borrow::Cow;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use pcap_file::DataLink;
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::{Block, PcapNgReader, PcapNgWriter};

use crate::failure::Outcome;

/// Magic number of pcapng files.
const PCAPNG_MAGIC: [u8; 4] = [0x0A, 0x0D, 0x0D, 0x0A];

/// Content of a capture file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    /// Comment of its section.
    pub comment: String,
    /// Packets of the capture.
    pub packets: Vec<Packet>,
}

/// A captured packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Number of its interface among those of its section; 0 in a pcap file.
    pub interface: u32,
    /// Link type, by its number in capture files.
    pub link: u32,
    /// Time of capture.
    pub time: Duration,
    /// Captured octets.
    pub bytes: Vec<u8>,
    /// Length on the wire, in octets.
    pub wire_len: u32,
}

/// Returns the files in a folder with these extensions, sorted.
///
/// # Errors
/// The folder cannot be read.
pub fn files(folder: &Path, endings: &[&str]) -> Outcome<Vec<PathBuf>> {
    let fits = |path: &PathBuf| {
        let ending = path.extension().and_then(|ending| ending.to_str());
        ending.is_some_and(|ending| endings.contains(&ending))
    };
    let entries = fs_err::read_dir(folder)?.flatten();
    let mut files: Vec<_> = entries.map(|entry| entry.path()).filter(fits).collect();
    files.sort();
    Ok(files)
}

/// Reads a capture, pcap or pcapng.
///
/// # Errors
/// The capture cannot be read.
pub fn read(path: &Path) -> Outcome<Capture> {
    let content = fs_err::read(path)?;
    let read = match content.starts_with(&PCAPNG_MAGIC) {
        true => pcapng(&content),
        false => pcap(&content),
    };
    read.with_context(|| format!("cannot read {}", path.display()))
}

fn pcapng(content: &[u8]) -> Outcome<Capture> {
    let mut reader = PcapNgReader::new(content)?;
    let comment = |option: &SectionHeaderOption<'_>| match option {
        SectionHeaderOption::Common(CommonOption::Comment(text)) => Some(text.to_string()),
        _ => None,
    };
    let mut capture = Capture {
        comment: (reader.section().options.iter().find_map(comment)).unwrap_or_default(),
        packets: Vec::new(),
    };
    let mut links = Vec::new();
    while let Some(block) = reader.next_block() {
        match block?.0 {
            Block::SectionHeader(_) => links.clear(),
            Block::InterfaceDescription(interface) => links.push(u32::from(interface.linktype)),
            Block::EnhancedPacket(packet) => capture.packets.push(Packet {
                interface: packet.interface_id,
                link: *links
                    .get(packet.interface_id as usize)
                    .context("a packet of no interface")?,
                time: packet.timestamp,
                wire_len: packet.original_len,
                bytes: packet.data.into_owned(),
            }),
            _ => {}
        }
    }
    Ok(capture)
}

fn pcap(content: &[u8]) -> Outcome<Capture> {
    let mut reader = PcapReader::new(content)?;
    let link = u32::from(reader.header().datalink);
    let mut capture = Capture::default();
    while let Some(packet) = reader.next_packet() {
        let packet = packet?;
        capture.packets.push(Packet {
            interface: 0,
            link,
            time: packet.timestamp(),
            wire_len: packet.orig_len(),
            bytes: packet.into_data().into_owned(),
        });
    }
    Ok(capture)
}

/// Writes the packets captured on Ethernet interfaces into a pcapng file, in order of time, with a
/// comment.
///
/// # Errors
/// The file cannot be written.
pub fn write_seen(path: &Path, comment: &str, interfaces: &[(&str, Vec<Packet>)]) -> Outcome {
    let section = SectionHeaderBlock {
        options: vec![SectionHeaderOption::Common(CommonOption::Comment(
            comment.into(),
        ))],
        ..SectionHeaderBlock::default()
    };
    let file = BufWriter::new(fs_err::File::create(path)?);
    let mut writer = PcapNgWriter::with_section_header(file, section)?;
    for (name, _) in interfaces {
        writer.write_pcapng_block(InterfaceDescriptionBlock {
            linktype: DataLink::ETHERNET,
            snaplen: 0,
            options: vec![
                InterfaceDescriptionOption::IfName((*name).into()),
                InterfaceDescriptionOption::IfTsResol(InterfaceTsResolution::NANO),
            ],
        })?;
    }
    let seen = (0..).zip(interfaces);
    let seen = seen.flat_map(|(id, (_, packets))| packets.iter().map(move |packet| (id, packet)));
    let mut seen: Vec<(u32, &Packet)> = seen.collect();
    seen.sort_by_key(|(_, packet)| packet.time);
    for (interface_id, packet) in seen {
        writer.write_pcapng_block(EnhancedPacketBlock {
            interface_id,
            timestamp: packet.time,
            original_len: packet.wire_len,
            data: Cow::Borrowed(&packet.bytes),
            options: Vec::new(),
        })?;
    }
    Ok(writer.into_inner().flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tshark::TempDir;

    #[test]
    fn what_is_written_is_read() {
        let folder = TempDir::new(false).unwrap();
        let path = folder.path().join("a.pcapng");
        let packet = |time, interface, wire_len| Packet {
            interface,
            link: 1,
            time: Duration::from_nanos(time),
            bytes: vec![1; 60],
            wire_len,
        };
        let (late, early) = (packet(9, 0, 60), packet(7, 1, 99));
        let [a, b] = [&late, &early].map(|packet| vec![packet.clone()]);
        write_seen(&path, "why", &[("a", a), ("b", b)]).unwrap();
        let capture = read(&path).unwrap();
        assert_eq!(capture.comment, "why");
        assert_eq!(capture.packets, [early, late]);
        assert!(read(&folder.path().join("none")).is_err());
    }
}
