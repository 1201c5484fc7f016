//! What a written capture says about itself: the section's comment and the number of packets.

use std::path::Path;

use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::blocks::section_header::SectionHeaderOption;
use pcap_file::pcapng::{Block, PcapNgReader};

use crate::failure::{Failure, Outcome};

/// A capture file, in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// What it shows: the comment of its section.
    pub about: String,
    /// The packets in it.
    pub packets: usize,
}

impl Written {
    /// Reads it from a pcapng file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(path: &Path) -> Outcome<Self> {
        let bytes = fs_err::read(path)?;
        let bad = |e: &dyn std::fmt::Display| {
            Failure::new(format!("{}: not a pcapng file: {e}", path.display()))
                .todo("write it anew: cargo xtask captures")
        };
        let mut reader = PcapNgReader::new(bytes.as_slice()).map_err(|e| bad(&e))?;
        let about = reader
            .section()
            .options
            .iter()
            .find_map(|option| match option {
                SectionHeaderOption::Common(CommonOption::Comment(text)) => Some(text.to_string()),
                _ => None,
            });
        let mut packets = 0;
        while let Some(block) = reader.next_block() {
            let (block, _) = block.map_err(|e| bad(&e))?;
            packets += usize::from(matches!(block, Block::EnhancedPacket(_)));
        }
        Ok(Self {
            about: about.unwrap_or_default(),
            packets,
        })
    }
}
