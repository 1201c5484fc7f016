//! Packets out of captures and into one. Not here: what is changed in them.

use std::borrow::Cow;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pcap_file::DataLink;
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionBlock;
use pcap_file::pcapng::{Block, PcapNgReader, PcapNgWriter};

use crate::failure::{Failure, Outcome};

/// pcapng files begin with it.
const PCAPNG_MAGIC: [u8; 4] = [0x0A, 0x0D, 0x0D, 0x0A];

/// A captured packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Link type, as capture files number them.
    pub link: u32,
    /// When.
    pub time: Duration,
    /// What was captured.
    pub bytes: Vec<u8>,
    /// Octets on the wire.
    pub wire_len: u32,
}

impl Packet {
    /// A whole packet.
    #[must_use]
    pub fn whole(link: u32, bytes: Vec<u8>) -> Self {
        let wire_len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        Self {
            link,
            time: Duration::ZERO,
            bytes,
            wire_len,
        }
    }
}

/// The files in a folder with these endings, in order.
///
/// # Errors
/// It cannot be read.
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

/// The packets of a capture, pcap or pcapng.
///
/// # Errors
/// It cannot be read.
pub fn read(path: &Path) -> Outcome<Vec<Packet>> {
    let bad = |error: &dyn std::fmt::Display| {
        Failure::new(format!("cannot read {}: {error}", path.display()))
    };
    let content = fs_err::read(path)?;
    let mut packets = Vec::new();
    if content.starts_with(&PCAPNG_MAGIC) {
        let mut reader = PcapNgReader::new(content.as_slice()).map_err(|e| bad(&e))?;
        let mut links = Vec::new();
        while let Some(block) = reader.next_block() {
            match block.map_err(|e| bad(&e))?.0 {
                Block::SectionHeader(_) => links.clear(),
                Block::InterfaceDescription(interface) => {
                    links.push(u32::from(interface.linktype));
                }
                Block::EnhancedPacket(packet) => packets.push(Packet {
                    link: *links
                        .get(packet.interface_id as usize)
                        .ok_or_else(|| bad(&"a packet of no interface"))?,
                    time: packet.timestamp,
                    wire_len: packet.original_len,
                    bytes: packet.data.into_owned(),
                }),
                _ => {}
            }
        }
    } else {
        let mut reader = PcapReader::new(content.as_slice()).map_err(|e| bad(&e))?;
        let link = u32::from(reader.header().datalink);
        while let Some(packet) = reader.next_packet() {
            let packet = packet.map_err(|e| bad(&e))?;
            packets.push(Packet {
                link,
                time: packet.timestamp(),
                wire_len: packet.orig_len(),
                bytes: packet.into_data().into_owned(),
            });
        }
    }
    Ok(packets)
}

/// Writes packets into a pcapng file, an interface for each link type.
///
/// # Errors
/// It cannot be written.
pub fn write(path: &Path, packets: &[Packet]) -> Outcome {
    let bad = |error: &dyn std::fmt::Display| {
        Failure::new(format!("cannot write {}: {error}", path.display()))
    };
    let file = BufWriter::new(fs_err::File::create(path)?);
    let mut writer = PcapNgWriter::new(file).map_err(|e| bad(&e))?;
    let mut links = Vec::new();
    for packet in packets {
        let known = links.iter().position(|link| *link == packet.link);
        let interface_id = known.unwrap_or(links.len());
        if known.is_none() {
            links.push(packet.link);
            let interface = InterfaceDescriptionBlock {
                linktype: DataLink::from(packet.link),
                snaplen: 0,
                options: Vec::new(),
            };
            writer.write_pcapng_block(interface).map_err(|e| bad(&e))?;
        }
        let captured = u32::try_from(packet.bytes.len()).unwrap_or(u32::MAX);
        let block = EnhancedPacketBlock {
            interface_id: interface_id as u32,
            timestamp: packet.time,
            original_len: packet.wire_len.max(captured),
            data: Cow::Borrowed(&packet.bytes),
            options: Vec::new(),
        };
        writer.write_pcapng_block(block).map_err(|e| bad(&e))?;
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
        let mut packets = vec![
            Packet::whole(1, vec![1; 60]),
            Packet::whole(101, vec![]),
            Packet::whole(1, vec![2; 3]),
        ];
        packets[2].wire_len = 9;
        packets[1].time = Duration::from_micros(7);
        write(&path, &packets).unwrap();
        assert_eq!(read(&path).unwrap(), packets);
        assert!(read(&folder.path().join("none")).is_err());
    }
}
