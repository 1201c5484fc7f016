//! Packets out of captures and into one. Not here: what is changed in them.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;
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

/// The packets of a capture, pcap or pcapng.
///
/// # Errors
/// It cannot be read.
pub fn read(path: &Path) -> Outcome<Vec<Packet>> {
    let bad = |error: &dyn std::fmt::Display| {
        Failure::new(format!("cannot read {}: {error}", path.display()))
    };
    let content = fs::read(path).map_err(|e| Failure::io("read", path, &e))?;
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
        let mut reader =
            PcapReader::new(BufReader::new(content.as_slice())).map_err(|e| bad(&e))?;
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
    let file = File::create(path).map_err(|e| Failure::io("create", path, &e))?;
    let mut writer = PcapNgWriter::new(BufWriter::new(file)).map_err(|e| bad(&e))?;
    let mut links = Vec::new();
    for packet in packets {
        let known = links.iter().position(|link| *link == packet.link);
        let interface_id = match known {
            Some(id) => id,
            None => {
                writer
                    .write_pcapng_block(InterfaceDescriptionBlock {
                        linktype: DataLink::from(packet.link),
                        snaplen: 0,
                        options: Vec::new(),
                    })
                    .map_err(|e| bad(&e))?;
                links.push(packet.link);
                links.len() - 1
            }
        };
        let captured = u32::try_from(packet.bytes.len()).unwrap_or(u32::MAX);
        writer
            .write_pcapng_block(EnhancedPacketBlock {
                interface_id: u32::try_from(interface_id).unwrap_or(u32::MAX),
                timestamp: packet.time,
                original_len: packet.wire_len.max(captured),
                data: Cow::Borrowed(&packet.bytes),
                options: Vec::new(),
            })
            .map_err(|e| bad(&e))?;
    }
    writer
        .into_inner()
        .flush()
        .map_err(|e| Failure::io("write", path, &e))
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
