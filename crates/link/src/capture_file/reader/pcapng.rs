//! The newer format (draft-ietf-opsawg-pcapng): sections of blocks. Interface descriptions,
//! interface statistics and packets are read; all other blocks are skipped.

use super::error::ReadErrorKind;
use super::interface::ReadInterface;
use super::stamp::Stamp;
use super::window::Window;
use super::{Found, MAX_BLOCK, MAX_INTERFACES, Order, packet_len};
use pcap_file::pcapng::blocks::{
    ENHANCED_PACKET_BLOCK, INTERFACE_DESCRIPTION_BLOCK, INTERFACE_STATISTIC_BLOCK, PACKET_BLOCK,
    SECTION_HEADER_BLOCK, SIMPLE_PACKET_BLOCK,
};

/// Type and length.
const HEADER_LEN: usize = 2 * 4;
/// The length, repeated.
const TRAILER_LEN: usize = 4;
/// The byte-order magic, after a section's type and length.
const BIG: [u8; 4] = [0x1A, 0x2B, 0x3C, 0x4D];
const LITTLE: [u8; 4] = [0x4D, 0x3C, 0x2B, 0x1A];
/// Type, length, byte-order magic, version, section length (2 words), and the length repeated.
const LEAST_SECTION_LEN: usize = HEADER_LEN + 4 * 4 + TRAILER_LEN;
/// The only major version in use.
const VERSION: u16 = 1;

/// State of the current section.
pub(super) struct Section {
    order: Order,
    /// Index of its first interface among all interfaces of the file.
    first: usize,
}

impl Section {
    /// True if a file with this magic number is a pcapng file: the type of its header is the same
    /// in both byte orders.
    pub(super) const fn begins_with(magic: [u8; 4]) -> bool {
        u32::from_le_bytes(magic) == SECTION_HEADER_BLOCK
    }

    /// Reads a section's header. The `first` interfaces described so far belong to earlier
    /// sections.
    pub(super) fn start(window: &mut Window<'_>, first: usize) -> Result<Self, ReadErrorKind> {
        let header = window.array::<{ HEADER_LEN + 4 }>()?;
        let order = match header.last_chunk() {
            Some(&BIG) => Order::Big,
            Some(&LITTLE) => Order::Little,
            _ => {
                return Err(ReadErrorKind::Malformed(
                    "the byte-order magic of a section header",
                ));
            }
        };
        let Some([_, len]) = order.words(header) else {
            return Err(ReadErrorKind::Cut);
        };
        let len = block_len(len, LEAST_SECTION_LEN)?;
        let block = complete_block(window, order, len)?;
        let Some([_, _, _, version]) = order.words(block) else {
            return Err(ReadErrorKind::Cut);
        };
        let (major, minor) = order.halves(version);
        if major != VERSION {
            return Err(ReadErrorKind::version(major, minor));
        }
        window.take(len);
        Ok(Self { order, first })
    }

    /// Reads up to and including the next packet.
    #[inline]
    pub(super) fn next(
        &mut self,
        window: &mut Window<'_>,
        interfaces: &mut Vec<ReadInterface>,
    ) -> Result<Option<Found>, ReadErrorKind> {
        loop {
            if window.is_at_end()? {
                return Ok(None);
            }
            let header = window.array::<HEADER_LEN>()?;
            let Some([kind, len]) = self.order.words(header) else {
                return Err(ReadErrorKind::Cut);
            };
            match kind {
                ENHANCED_PACKET_BLOCK => {
                    return self.packet(window, interfaces, len, enhanced).map(Some);
                }
                SIMPLE_PACKET_BLOCK => {
                    return self.packet(window, interfaces, len, simple).map(Some);
                }
                PACKET_BLOCK => {
                    return self.packet(window, interfaces, len, obsolete).map(Some);
                }
                // Its length may be in a different byte order from this section's.
                SECTION_HEADER_BLOCK => *self = Self::start(window, interfaces.len())?,
                INTERFACE_DESCRIPTION_BLOCK => self.interface(window, interfaces, len)?,
                INTERFACE_STATISTIC_BLOCK => self.statistics(window, interfaces, len)?,
                _ => self.skip(window, len)?,
            }
        }
    }

    #[inline]
    fn packet(
        &self,
        window: &mut Window<'_>,
        interfaces: &[ReadInterface],
        len: u32,
        layout: impl Fn(Order, &[u8], &[ReadInterface]) -> Option<Layout>,
    ) -> Result<Found, ReadErrorKind> {
        let len = block_len(len, HEADER_LEN + TRAILER_LEN)?;
        let block = complete_block(window, self.order, len)?;
        let mut found = self.found(block, interfaces, layout)?;
        found.shift(window.take(len).start);
        Ok(found)
    }

    /// Finds packets in the window, up to `most`, as long as complete, valid enhanced packet blocks
    /// follow each other, as nearly all blocks of a file do. The first other block is left to
    /// [`next`](Self::next).
    #[inline]
    pub(super) fn more(
        &self,
        window: &mut Window<'_>,
        interfaces: &[ReadInterface],
        most: usize,
        found: &mut Vec<Found>,
    ) {
        let start = window.start();
        let ready = window.ready();
        let mut at = 0;
        while found.len() < most {
            let octets = ready.get(at..).unwrap_or_default();
            let Some((len, mut one)) = self.regular(octets, interfaces) else {
                break;
            };
            one.shift(start + at);
            found.push(one);
            at += len;
        }
        window.take(at);
    }

    /// Returns the length and the packet of the enhanced packet block at the start, if it is
    /// complete and valid.
    #[inline]
    fn regular(&self, octets: &[u8], interfaces: &[ReadInterface]) -> Option<(usize, Found)> {
        let [kind, len] = self.order.words(octets)?;
        if kind != ENHANCED_PACKET_BLOCK {
            return None;
        }
        let len = block_len(len, HEADER_LEN + TRAILER_LEN).ok()?;
        let block = octets.get(..len)?;
        if !has_matching_trailer(self.order, block) {
            return None;
        }
        Some((len, self.found(block, interfaces, enhanced).ok()?))
    }

    /// Returns the packet of a complete block; its range is relative to the block's first octet.
    #[inline]
    fn found(
        &self,
        block: &[u8],
        interfaces: &[ReadInterface],
        layout: impl Fn(Order, &[u8], &[ReadInterface]) -> Option<Layout>,
    ) -> Result<Found, ReadErrorKind> {
        let len = block.len();
        let own = interfaces.get(self.first..).unwrap_or_default();
        let front = block.get(..len - TRAILER_LEN).unwrap_or_default();
        let Some(layout) = layout(self.order, front, own) else {
            return Err(bad_length(len));
        };
        let captured = packet_len(layout.captured)?;
        if layout.header_len + captured + TRAILER_LEN > len {
            return Err(ReadErrorKind::refused(format_args!(
                "a packet of {captured} octets in a block of {len}, which has no room for it"
            )));
        }
        let Some(interface) = own.get(layout.interface as usize) else {
            return Err(ReadErrorKind::refused(format_args!(
                "a packet of interface {}, but {} are described before it (numbered from 0)",
                layout.interface,
                own.len()
            )));
        };
        let (at, stamp) = match layout.stamp {
            None => (0, Stamp::Missing),
            Some(stamp) => match interface.clock().nanoseconds(stamp) {
                Some(at) => (at, Stamp::Valid),
                None => (0, Stamp::OutOfRange),
            },
        };
        Ok(Found {
            interface: self.first + layout.interface as usize,
            at,
            stamp,
            wire_len: layout.wire_len,
            range: layout.header_len..layout.header_len + captured,
        })
    }

    #[inline(never)]
    fn interface(
        &self,
        window: &mut Window<'_>,
        interfaces: &mut Vec<ReadInterface>,
        len: u32,
    ) -> Result<(), ReadErrorKind> {
        let len = block_len(len, HEADER_LEN + TRAILER_LEN)?;
        let block = complete_block(window, self.order, len)?;
        let body = block.get(HEADER_LEN..len - TRAILER_LEN).unwrap_or_default();
        let interface = ReadInterface::parse(self.order, body)?;
        if interfaces.len() >= MAX_INTERFACES {
            return Err(ReadErrorKind::refused(format_args!(
                "one more interface; at most {MAX_INTERFACES} are read"
            )));
        }
        interfaces.push(interface);
        window.take(len);
        Ok(())
    }

    #[inline(never)]
    fn statistics(
        &self,
        window: &mut Window<'_>,
        interfaces: &mut [ReadInterface],
        len: u32,
    ) -> Result<(), ReadErrorKind> {
        let len = block_len(len, HEADER_LEN + TRAILER_LEN)?;
        let block = complete_block(window, self.order, len)?;
        let body = block.get(HEADER_LEN..len - TRAILER_LEN).unwrap_or_default();
        // Interface and time (2 words).
        if let Some([number, _, _]) = self.order.words(body)
            && let Some(interface) = interfaces.get_mut(self.first.saturating_add(number as usize))
        {
            interface.learn_statistics(self.order, body.get(3 * 4..).unwrap_or_default());
        }
        window.take(len);
        Ok(())
    }

    #[inline(never)]
    fn skip(&self, window: &mut Window<'_>, len: u32) -> Result<(), ReadErrorKind> {
        let octets = block_len(len, HEADER_LEN + TRAILER_LEN)?;
        window.skip(octets - TRAILER_LEN)?;
        let again = self.order.word(*window.array()?);
        if again != len {
            return Err(differs(len, again));
        }
        window.take(TRAILER_LEN);
        Ok(())
    }
}

/// The fields that precede the packet in a packet block.
struct Layout {
    /// Offset of the packet, in octets.
    header_len: usize,
    /// Number within the section.
    interface: u32,
    stamp: Option<u64>,
    captured: u32,
    wire_len: u32,
}

/// Parses a block without its last word. Like the other parsers, returns `None` if the block is too
/// short for these fields.
#[inline]
fn enhanced(order: Order, block: &[u8], _: &[ReadInterface]) -> Option<Layout> {
    let [_, _, interface, high, low, captured, wire_len] = order.words(block)?;
    Some(Layout {
        header_len: 7 * 4,
        interface,
        stamp: Some(u64::from(high) << 32 | u64::from(low)),
        captured,
        wire_len,
    })
}

/// The packet block that the enhanced one replaced: half a word is the interface, the other half
/// counts drops.
fn obsolete(order: Order, block: &[u8], own: &[ReadInterface]) -> Option<Layout> {
    let layout = enhanced(order, block, own)?;
    let (interface, _) = order.halves(layout.interface);
    Some(Layout {
        interface: u32::from(interface),
        ..layout
    })
}

/// A packet of the section's first interface, without a time. Its captured length follows from the
/// length on the wire and the snap length.
fn simple(order: Order, block: &[u8], own: &[ReadInterface]) -> Option<Layout> {
    let [_, _, wire_len] = order.words(block)?;
    let most = match own.first().map(|interface| interface.snap_len) {
        None | Some(0) => u32::MAX,
        Some(snap_len) => snap_len,
    };
    Some(Layout {
        header_len: 3 * 4,
        interface: 0,
        stamp: None,
        captured: wire_len.min(most),
        wire_len,
    })
}

/// Returns the length of a block, if it is valid and within the limit.
#[inline]
fn block_len(len: u32, least: usize) -> Result<usize, ReadErrorKind> {
    let octets = len as usize;
    if octets < least || !octets.is_multiple_of(4) {
        return Err(bad_length(octets));
    }
    if octets > MAX_BLOCK {
        return Err(ReadErrorKind::refused(format_args!(
            "a block of {len} octets; at most {MAX_BLOCK} are read"
        )));
    }
    Ok(octets)
}

#[cold]
fn bad_length(len: usize) -> ReadErrorKind {
    ReadErrorKind::refused(format_args!(
        "a block of {len} octets, which is too short for its kind or no multiple of 4"
    ))
}

#[cold]
fn differs(len: u32, again: u32) -> ReadErrorKind {
    ReadErrorKind::refused(format_args!(
        "a block that has {len} octets by its start and {again} by its end"
    ))
}

/// Returns all octets of a block of stated length `len`, which must be repeated at its end.
#[inline]
fn complete_block<'w>(
    window: &'w mut Window<'_>,
    order: Order,
    len: usize,
) -> Result<&'w [u8], ReadErrorKind> {
    let block = window.need(len)?;
    if !has_matching_trailer(order, block) {
        return Err(differs(len as u32, last_word(order, block)));
    }
    Ok(block)
}

/// True if the length at the end of a block matches.
#[inline]
fn has_matching_trailer(order: Order, block: &[u8]) -> bool {
    last_word(order, block) as usize == block.len()
}

#[inline]
fn last_word(order: Order, block: &[u8]) -> u32 {
    block.last_chunk().map_or(0, |word| order.word(*word))
}
