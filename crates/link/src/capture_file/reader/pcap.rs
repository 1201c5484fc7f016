//! The older format (draft-ietf-opsawg-pcap): a header, then records, all of one interface.

use super::error::ReadErrorKind;
use super::interface::ReadInterface;
use super::stamp::Resolution;
use super::window::Window;
use super::{Found, Order, packet_len};
use pcap_file::Endianness;
use pcap_file::pcap::{PcapHeader, PcapTsResolution};

const HEADER_LEN: usize = 24;
/// Seconds, parts of a second, captured length, original length.
const RECORD_LEN: usize = 4 * 4;
/// The only major version there is.
const VERSION: u16 = 2;
/// The part of the link type's word that is the link type; above it are flags about a frame check sequence.
const LINK_TYPE: u32 = 0x03FF_FFFF;

/// What the header says about the records.
pub(super) struct Pcap {
    order: Order,
    /// Nanoseconds in a part of a second.
    part: u64,
}

impl Pcap {
    /// Whether a file that begins so is one.
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

    /// Finds the records that are whole in the window, until there are `most`. Where one is not as it should be,
    /// [`next`](Self::next) has to look.
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
        // Parts beyond a second are carried over; 63 bits are enough for the most that two words can say.
        let at = u64::from(seconds) * 1_000_000_000 + u64::from(parts) * self.part;
        Ok(Some(Found {
            interface: 0,
            at: Some(at),
            wire_len,
            place: window.take(len),
        }))
    }
}
