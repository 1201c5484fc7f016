//! A capture as the octets of a pcapng file: nanosecond stamps, a comment on each packet.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use fcn_wire::LinkType;
use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};

use super::scene::{Capture, EPOCH};
use crate::failure::{Failure, Outcome};

/// The pcapng file of `capture`, with an interface for each link type in it.
///
/// # Errors
/// What the pcapng writer refuses.
pub fn pcapng(capture: &Capture) -> Outcome<Vec<u8>> {
    let refused = |e: &dyn std::fmt::Display| {
        Failure::new(format!(
            "{}: cannot be written as pcapng: {e}",
            capture.file_name()
        ))
    };
    let mut section = SectionHeaderBlock::default();
    section
        .options
        .push(SectionHeaderOption::Common(CommonOption::Comment(
            Cow::Borrowed(capture.about),
        )));
    let mut writer =
        PcapNgWriter::with_section_header(Vec::new(), section).map_err(|e| refused(&e))?;
    let mut interfaces: BTreeMap<&str, u32> = BTreeMap::new();
    for packet in &capture.packets {
        let (name, link) = match packet.link {
            LinkType::RawIp => ("raw0", DataLink::RAW),
            LinkType::LinuxCooked => ("any0", DataLink::LINUX_SLL),
            _ => ("eth0", DataLink::ETHERNET),
        };
        let next = interfaces.len() as u32;
        let interface_id = *interfaces.entry(name).or_insert(next);
        if interface_id == next {
            let mut block = InterfaceDescriptionBlock::new(link, 0);
            block.options.push(InterfaceDescriptionOption::IfTsResol(
                InterfaceTsResolution::NANO,
            ));
            block
                .options
                .push(InterfaceDescriptionOption::IfName(Cow::Borrowed(name)));
            writer.write_pcapng_block(block).map_err(|e| refused(&e))?;
        }
        let block = EnhancedPacketBlock {
            interface_id,
            timestamp: EPOCH + Duration::from_nanos(packet.at),
            original_len: packet.wire_len as u32,
            data: Cow::Borrowed(&packet.bytes),
            options: vec![EnhancedPacketOption::Common(CommonOption::Comment(
                Cow::Borrowed(&packet.comment),
            ))],
        };
        writer.write_pcapng_block(block).map_err(|e| refused(&e))?;
    }
    Ok(writer.into_inner())
}
