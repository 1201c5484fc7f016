//! The blocks of a pcapng file (draft-ietf-opsawg-pcapng). Blocks written once are built by
//! pcap-file; the enhanced packet block, written for every packet, is laid out here.
//!
//! pcap-file is not used for packets because its writer lays out every block twice, the first time
//! to find the length, and one field at a time. In `benches/capture_writer.rs` it takes 74 to 109
//! ns for a packet of 118 octets, compared with 11 to 16 ns here. It also needs the packet in a
//! separate buffer, and a `Vec` for each comment.

use super::{Interface, Options};
use fcn_wire::LinkType;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness};

const ENHANCED_PACKET: u32 = 6;
/// Block type, block length, interface, time stamp (2), captured length, original length.
pub(super) const HEADER_LEN: usize = 7 * 4;
/// The block length, repeated.
const TRAILER_LEN: usize = 4;
const OPT_COMMENT: u16 = 1;
/// Option code and length.
const OPTION_HEADER_LEN: usize = 4;
/// The end of the options: code 0, length 0.
const OPTIONS_END: [u8; 4] = [0; 4];

/// Encodes the section header and the interface descriptions, little-endian on every machine.
pub(super) fn head(options: &Options<'_>, interfaces: &[Interface<'_>]) -> Result<Vec<u8>, String> {
    let texts = [
        (
            options.application,
            SectionHeaderOption::UserApplication as fn(_) -> _,
        ),
        (options.comment, |text| {
            SectionHeaderOption::Common(CommonOption::Comment(text))
        }),
    ];
    let section = SectionHeaderBlock {
        endianness: Endianness::Little,
        options: texts
            .into_iter()
            .filter(|(text, _)| !text.is_empty())
            .map(|(text, option)| option(text.into()))
            .collect(),
        ..SectionHeaderBlock::default()
    };
    let mut writer = PcapNgWriter::with_section_header(Vec::new(), section)
        .map_err(|e| format!("the section header: {e}"))?;
    for interface in interfaces {
        writer
            .write_pcapng_block(description(interface))
            .map_err(|e| format!("interface `{}`: {e}", interface.name))?;
    }
    Ok(writer.into_inner())
}

/// Encodes the description of one more interface. pcap-file writes blocks only after a section
/// header, which is removed here.
pub(super) fn another(interface: &Interface<'_>) -> Result<Vec<u8>, String> {
    let section = head(&Options::default(), &[])?;
    head(&Options::default(), &[*interface]).map(|mut blocks| blocks.split_off(section.len()))
}

fn description<'a>(interface: &Interface<'a>) -> InterfaceDescriptionBlock<'a> {
    let mut block = InterfaceDescriptionBlock::new(data_link(interface.link), interface.snap_len);
    if !interface.name.is_empty() {
        let name = InterfaceDescriptionOption::IfName(interface.name.into());
        block.options.push(name);
    }
    if !interface.description.is_empty() {
        let text = InterfaceDescriptionOption::IfDescription(interface.description.into());
        block.options.push(text);
    }
    let nanoseconds = InterfaceDescriptionOption::IfTsResol(InterfaceTsResolution::NANO);
    block.options.push(nanoseconds);
    block
}

const fn data_link(link: LinkType) -> DataLink {
    match link {
        LinkType::Ethernet => DataLink::ETHERNET,
        LinkType::RawIp => DataLink::RAW,
        LinkType::LinuxCooked => DataLink::LINUX_SLL,
        LinkType::LinuxCooked2 => DataLink::LINUX_SLL2,
        LinkType::Null => DataLink::NULL,
        LinkType::InfiniBand => DataLink::INFINIBAND,
        LinkType::Erf => DataLink::ERF,
    }
}

/// The fields that precede the packet data in an enhanced packet block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub interface: u32,
    /// Nanoseconds since the epoch.
    pub at: u64,
    pub captured: u32,
    pub wire_len: u32,
}

/// Maximum length of the block for a packet of `len` octets with a comment of `comment` octets.
pub(super) const fn most_octets(len: usize, comment: usize) -> usize {
    HEADER_LEN + len + 3 + OPTION_HEADER_LEN + comment + 3 + OPTIONS_END.len() + TRAILER_LEN
}

/// Completes the block at the start of `out`, in which the packet data already follows the first
/// [`HEADER_LEN`] octets.
///
/// Returns the length of the block. If `out` has fewer than [`most_octets`], returns `None` and
/// leaves `out` in an unspecified state.
#[inline]
pub(super) fn finish(out: &mut [u8], head: Head, comment: &str) -> Option<usize> {
    let captured = head.captured as usize;
    let padded = captured.next_multiple_of(4);
    let (header, rest) = out.split_first_chunk_mut::<HEADER_LEN>()?;
    // At most three octets of padding; any excess is overwritten by what follows.
    *rest.get_mut(captured..)?.first_chunk_mut::<4>()? = [0; 4];
    let options = if comment.is_empty() {
        0
    } else {
        finish_comment(rest.get_mut(padded..)?, comment)?
    };
    let len = HEADER_LEN + padded + options + TRAILER_LEN;
    let words = [
        ENHANCED_PACKET,
        len as u32,
        head.interface,
        (head.at >> 32) as u32,
        head.at as u32,
        head.captured,
        head.wire_len,
    ];
    for (place, word) in header.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    *rest.get_mut(padded + options..)?.first_chunk_mut()? = (len as u32).to_le_bytes();
    Some(len)
}

/// Writes the comment option and the end of options, and returns their length.
fn finish_comment(out: &mut [u8], comment: &str) -> Option<usize> {
    let len = u16::try_from(comment.len()).ok()?;
    let (header, rest) = out.split_first_chunk_mut::<OPTION_HEADER_LEN>()?;
    let [[a, b], [c, d]] = [OPT_COMMENT.to_le_bytes(), len.to_le_bytes()];
    *header = [a, b, c, d];
    let (text, rest) = rest.split_at_mut_checked(comment.len())?;
    text.copy_from_slice(comment.as_bytes());
    let pad = comment.len().next_multiple_of(4) - comment.len();
    rest.get_mut(..pad + OPTIONS_END.len())?.fill(0);
    Some(OPTION_HEADER_LEN + comment.len() + pad + OPTIONS_END.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_types_have_the_numbers_that_fcn_wire_reads() {
        for link in [
            LinkType::Ethernet,
            LinkType::RawIp,
            LinkType::LinuxCooked,
            LinkType::LinuxCooked2,
            LinkType::Null,
            LinkType::InfiniBand,
            LinkType::Erf,
        ] {
            assert_eq!(LinkType::from_pcap(data_link(link).into()), Some(link));
        }
    }

    #[test]
    fn a_block_is_laid_out_as_the_standard_says() {
        let mut out = [0xEE; 60];
        out[HEADER_LEN..HEADER_LEN + 5].copy_from_slice(b"octet");
        let head = Head {
            interface: 2,
            at: 0x0102_0304_0506_0708,
            captured: 5,
            wire_len: 9,
        };
        assert_eq!(finish(&mut out, head, "why"), Some(52));
        assert_eq!(
            out[..52],
            [
                6, 0, 0, 0, 52, 0, 0, 0, 2, 0, 0, 0, 4, 3, 2, 1, 8, 7, 6, 5, 5, 0, 0, 0, 9, 0, 0,
                0, //
                b'o', b'c', b't', b'e', b't', 0, 0, 0, 1, 0, 3, 0, b'w', b'h', b'y', 0, 0, 0, 0,
                0, //
                52, 0, 0, 0,
            ]
        );
        assert_eq!(finish(&mut out, head, ""), Some(40));
        assert_eq!(out[33..40], [0, 0, 0, 40, 0, 0, 0]);
    }

    #[test]
    fn most_octets_are_enough_for_every_pad() {
        for len in 0..9usize {
            for comment in ["", "1", "12", "123", "1234"] {
                let mut out = vec![0; most_octets(len, comment.len())];
                let head = Head {
                    interface: 0,
                    at: 0,
                    captured: len as u32,
                    wire_len: len as u32,
                };
                assert!(
                    finish(&mut out, head, comment).is_some_and(|n| n % 4 == 0 && n <= out.len())
                );
            }
        }
    }
}
