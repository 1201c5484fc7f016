//! Interface descriptions of a capture file.

use super::Order;
use super::error::ReadErrorKind;
use super::stamp::{Clock, Resolution};
use fcn_wire::LinkType;

/// Maximum length kept of a name or description, in octets, so that no file can exhaust memory with
/// them.
const MAX_TEXT: usize = 255;

// Option codes of an interface description block (draft-ietf-opsawg-pcapng, section 4.2).
const OPT_END: u16 = 0;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
// Option codes of an interface statistics block (section 4.6).
const ISB_IFDROP: u16 = 5;
const ISB_OSDROP: u16 = 7;

/// An interface of a capture file that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadInterface {
    /// Name, at most 255 octets; empty if the file has none.
    pub name: String,
    /// Description for human readers, at most 255 octets; empty if the file has none.
    pub description: String,
    /// Link type of its packets; `None` if fcn-wire does not support it.
    pub link: Option<LinkType>,
    /// Number of its link type in the file (`LINKTYPE_…` of tcpdump.org).
    pub link_number: u32,
    /// Stated snap length: maximum number of octets kept of each packet; 0 for all. Packets may
    /// nevertheless be longer.
    pub snap_len: u32,
    /// Resolution of its time stamps.
    pub resolution: Resolution,
    /// Seconds that the file says to add to its time stamps; already included in
    /// [`Packet::at`](super::Packet::at).
    pub offset: i64,
    /// Packets dropped by the operating system, according to the statistics read so far; `None`
    /// without such statistics.
    pub dropped_by_system: Option<u64>,
    /// Packets dropped by the interface, likewise.
    pub dropped_by_interface: Option<u64>,
    clock: Clock,
}

impl ReadInterface {
    pub(super) fn new(link_number: u32, snap_len: u32, resolution: Resolution) -> Self {
        Self {
            name: String::new(),
            description: String::new(),
            link: LinkType::from_pcap(link_number),
            link_number,
            snap_len,
            resolution,
            offset: 0,
            dropped_by_system: None,
            dropped_by_interface: None,
            clock: Clock::new(resolution, 0),
        }
    }

    /// Parses the body of an interface description block.
    pub(super) fn parse(order: Order, body: &[u8]) -> Result<Self, ReadErrorKind> {
        // Link type, two reserved octets, snap length.
        let Some(([a, b, _, _, snap_len @ ..], options)) = body.split_first_chunk::<8>() else {
            return Err(ReadErrorKind::Malformed(
                "an interface description without room for its fields",
            ));
        };
        let link = u32::from(order.half([*a, *b]));
        let mut interface = Self::new(link, order.word(*snap_len), Resolution::MICROSECONDS);
        let (mut resolution, mut offset) = (None, None);
        each_option(order, options, |code, value| {
            // If an option occurs several times, the first one counts.
            match code {
                IF_NAME if interface.name.is_empty() => interface.name = text(value),
                IF_DESCRIPTION if interface.description.is_empty() => {
                    interface.description = text(value);
                }
                IF_TSRESOL => {
                    let [octet] = *value else {
                        return Err(ReadErrorKind::Malformed(
                            "the option if_tsresol with another length than 1",
                        ));
                    };
                    resolution.get_or_insert(Resolution::new(octet));
                }
                IF_TSOFFSET => {
                    let Ok(octets) = value.try_into() else {
                        return Err(ReadErrorKind::Malformed(
                            "the option if_tsoffset with another length than 8",
                        ));
                    };
                    offset.get_or_insert(order.long(octets) as i64);
                }
                _ => {}
            }
            Ok(())
        })?;
        interface.resolution = resolution.unwrap_or(Resolution::MICROSECONDS);
        interface.offset = offset.unwrap_or_default();
        interface.clock = Clock::new(interface.resolution, interface.offset);
        Ok(interface)
    }

    /// Processes the options of an interface statistics block. Counts are cumulative since the
    /// start of the capture, so the latest ones replace earlier ones. An invalid option does not
    /// affect packets, and does not end reading.
    pub(super) fn learn_statistics(&mut self, order: Order, options: &[u8]) {
        let _ = each_option(order, options, |code, value| {
            let count = value.try_into().ok().map(|octets| order.long(octets));
            match code {
                ISB_IFDROP => self.dropped_by_interface = count.or(self.dropped_by_interface),
                ISB_OSDROP => self.dropped_by_system = count.or(self.dropped_by_system),
                _ => {}
            }
            Ok(())
        });
    }

    #[inline]
    pub(super) const fn clock(&self) -> &Clock {
        &self.clock
    }
}

/// Calls `with` with the code and value of every option.
fn each_option<'a>(
    order: Order,
    mut octets: &'a [u8],
    mut with: impl FnMut(u16, &'a [u8]) -> Result<(), ReadErrorKind>,
) -> Result<(), ReadErrorKind> {
    while let Some(([a, b, c, d], rest)) = octets.split_first_chunk::<4>() {
        let code = order.half([*a, *b]);
        if code == OPT_END {
            break;
        }
        let len = usize::from(order.half([*c, *d]));
        let Some(value) = rest.get(..len) else {
            return Err(ReadErrorKind::Malformed(
                "an option of an interface description that is longer than its block",
            ));
        };
        with(code, value)?;
        octets = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(())
}

/// Returns the text up to the first zero, with which some writers end it. Octets that are not UTF-8
/// are replaced.
fn text(octets: &[u8]) -> String {
    let octets = octets.split(|octet| *octet == 0).next().unwrap_or_default();
    let kept = octets.get(..MAX_TEXT).unwrap_or(octets);
    let mut text = String::from_utf8_lossy(kept).into_owned();
    // The replacement character has three octets.
    text.truncate(text.floor_char_boundary(MAX_TEXT));
    text
}
