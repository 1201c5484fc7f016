//! The older format (draft-ietf-opsawg-pcap): a header, then records, all of one interface.

use super::error::ReadErrorKind;
use super::interface::ReadInterface;
use super::stamp::{Resolution, Stamp};
use super::window::Window;
use super::{Found, Order, packet_len};
use pcap_file::Endianness;
use pcap_file::pcap::{PcapHeader, PcapTsResolution};

const HEADER_LEN: usize = 24;
/// Seconds, fraction of a second, captured length, original length.
const RECORD_LEN: usize = 4 * 4;
/// The only major version in use.
const VERSION: u16 = 2;
/// The bits of the link type field that hold the link type; the bits above are flags about a frame
/// check sequence.
const LINK_TYPE: u32 = 0x03FF_FFFF;

/// Properties of all records, from the file header.
pub(super) struct Pcap {
    order: Order,
    /// Nanoseconds per unit of the fraction of a second.
    part: u64,
}

impl Pcap {
    /// True if a file with this magic number is a pcap file.
    pub(super) const fn begins_with(magic: [u8; 4]) -> bool {
        matches!(
            magic,
            [0xA1, 0xB2, 0xC3, 0xD4]
                | [0xD4, 0xC3, 0xB2, 0xA1]
                | [0xA1, 0xB2, 0x3C, 0x4D]
                | [0x4D, 0x3C, 0xB2, 0xA1]
        )
    }

    /// Reads the header of the file.
    pub(super) fn start(window: &mut Window<'_>) -> Result<(Self, ReadInterface), ReadErrorKind> {
        let Ok((_, header)) = PcapHeader::from_slice(window.need(HEADER_LEN)?) else {
            return Err(ReadErrorKind::Malformed("the header of the file"));
        };
        if header.version_major != VERSION {
            let (major, minor) = (header.version_major, header.version_minor);
            return Err(ReadErrorKind::version(major, minor));
        }
        window.take(HEADER_LEN);
        let (part, resolution) = match header.ts_resolution {
            PcapTsResolution::MicroSecond => (1000, Resolution::MICROSECONDS),
            PcapTsResolution::NanoSecond => (1, Resolution::NANOSECONDS),
        };
        let order = match header.endianness {
            Endianness::Little => Order::Little,
            Endianness::Big => Order::Big,
        };
        let link = u32::from(header.datalink) & LINK_TYPE;
        let interface = ReadInterface::new(link, header.snaplen, resolution);
        Ok((Self { order, part }, interface))
    }

    /// Reads records that are completely in the window, up to `most`. An invalid one is left to
    /// [`next`](Self::next), which reports it.
    #[inline]
    pub(super) fn more(&self, window: &mut Window<'_>, most: usize, found: &mut Vec<Found>) {
        while found.len() < most
            && self.is_there(window)
            && let Ok(Some(one)) = self.next(window)
        {
            found.push(one);
        }
    }

    #[inline]
    fn is_there(&self, window: &Window<'_>) -> bool {
        let ready = window.ready();
        let Some([_, _, captured, _]) = self.order.words(ready) else {
            return false;
        };
        ready.len() - RECORD_LEN >= captured as usize
    }

    /// Reads the next record.
    #[inline]
    pub(super) fn next(&self, window: &mut Window<'_>) -> Result<Option<Found>, ReadErrorKind> {
        if window.is_at_end()? {
            return Ok(None);
        }
        let header = window.array::<RECORD_LEN>()?;
        let Some([seconds, parts, captured, wire_len]) = self.order.words(header) else {
            return Err(ReadErrorKind::Cut);
        };
        let len = packet_len(captured)?;
        window.need(RECORD_LEN + len)?;
        window.take(RECORD_LEN);
        // A fraction of more than a second is carried over; 63 bits suffice for the maximum of both
        // words.
        let at = u64::from(seconds) * 1_000_000_000 + u64::from(parts) * self.part;
        Ok(Some(Found {
            interface: 0,
            at,
            stamp: Stamp::Valid,
            wire_len,
            range: window.take(len),
        }))
    }
}
