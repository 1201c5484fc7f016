//! IPv6 extension headers (RFC 8200 section 4): iterating over the chain, reading and writing
//! options headers.
//!
//! The content of each option is in its own module: `fast_cnp.rs`, `proxy_address.rs`, `ioam.rs`.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  Hop-by-Hop or Destination Options
//! |  Next Header  |  Hdr Ext Len  |  options, padded to 8n        |   length: units of 8 octets after the first
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  an option
//! |act|c|  rest   | Opt Data Len  |  Option Data ...              |   act: action if it is unknown
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+  c: its data may change on the path
//! ```
//!
//! ```
//! use fcn_wire::Layer;
//! use fcn_wire::ipv6_ext::{Options, OptionsWriter, next_header};
//!
//! let mut header = [0; 8];
//! let mut writer = OptionsWriter::new(Layer::HopByHop, &mut header);
//! // Router Alert (RFC 2711), at 2n.
//! writer.option((2, 0), 5, &[&[0, 0]])?;
//! assert_eq!(writer.finish(next_header::UDP)?, 8);
//! let alert = Options::new(Layer::HopByHop, &header).next().unwrap()?;
//! assert_eq!((alert.kind, alert.offset, alert.data), (5, 2, &[0, 0][..]));
//! # Ok::<(), fcn_wire::Error>(())
//! ```

use crate::error::{Error, Result};
use crate::header::{fragment, ipv6, routing};
use crate::layer::Layer;
use crate::octets::{put, u8_at, u16_at};

/// IPv6 next-header and IPv4 protocol numbers that this crate parses.
pub mod next_header {
    /// Hop-by-Hop Options.
    pub const HOP_BY_HOP: u8 = 0;
    /// IPv4 in IP.
    pub const IPV4: u8 = 4;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// IPv6 in IP.
    pub const IPV6: u8 = 41;
    /// Routing header.
    pub const ROUTING: u8 = 43;
    /// Fragment header.
    pub const FRAGMENT: u8 = 44;
    /// GRE.
    pub const GRE: u8 = 47;
    /// Authentication header.
    pub const AUTHENTICATION: u8 = 51;
    /// No next header.
    pub const NONE: u8 = 59;
    /// Destination Options.
    pub const DESTINATION_OPTIONS: u8 = 60;
    /// OSPF.
    pub const OSPF: u8 = 89;
    /// MPLS in IP (RFC 4023).
    pub const MPLS: u8 = 137;
    /// ICMP for IPv4.
    pub const ICMPV4: u8 = 1;
    /// ICMP for IPv6.
    pub const ICMPV6: u8 = 58;
    /// Ethernet in IP (RFC 8986 section 10.1).
    pub const ETHERNET: u8 = 143;
}

/// Pad1 option type.
pub const PAD1: u8 = 0;
/// PadN option type.
pub const PADN: u8 = 1;
/// Maximum length of an options header in octets (Hdr Ext Len 255).
pub const MAX_OPTIONS_HEADER: usize = 8 * 256;
/// Bit of an option type: the option data may change on the path.
pub const CHANGE_BIT: u8 = 0x20;

/// One extension header, as found in a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtHeader {
    /// Type of the header.
    pub layer: Layer,
    /// Offset from the start of the IPv6 header, in octets.
    pub start: usize,
    /// Length in octets, from its own length field.
    pub len: usize,
    /// Its next-header value.
    pub next: u8,
}

/// Reads the header of number `kind` at `start` of `packet`.
///
/// Returns `None` if it is not an extension header that this crate can skip.
///
/// # Errors
/// Fails if the header does not end within `packet`.
#[inline]
pub fn read_header(packet: &[u8], kind: u8, start: usize) -> Option<Result<ExtHeader>> {
    let layer = match kind {
        next_header::HOP_BY_HOP => Layer::HopByHop,
        next_header::DESTINATION_OPTIONS => Layer::DestinationOptions,
        next_header::ROUTING => Layer::Routing,
        next_header::FRAGMENT => Layer::Fragment,
        next_header::AUTHENTICATION => Layer::Authentication,
        _ => return None,
    };
    let have = packet.len().saturating_sub(start);
    if have < 8 {
        return Some(Err(Error::short(layer, 8, have).at(start)));
    }
    let len = match layer {
        Layer::Fragment => fragment::LEN,
        // RFC 4302 section 2.2: in 4-octet units, minus 2.
        Layer::Authentication => (usize::from(u8_at(packet, start + 1)) + 2) * 4,
        _ => (usize::from(u8_at(packet, start + 1)) + 1) * 8,
    };
    if have < len {
        return Some(Err(Error::short(layer, len, have).at(start)));
    }
    Some(Ok(ExtHeader {
        layer,
        start,
        len,
        next: u8_at(packet, start),
    }))
}

/// Extension headers of an IPv6 packet, in order. Bounded by the packet: every header is at least 8
/// octets.
///
/// Ends after the first error, after a fragment that is not the first, and at the end of the chain.
#[derive(Clone, Debug)]
pub struct ExtHeaders<'a> {
    packet: &'a [u8],
    next: u8,
    at: usize,
    done: bool,
}

impl<'a> ExtHeaders<'a> {
    /// Iterates over the chain of `packet`, which begins with its IPv6 header.
    #[must_use]
    pub fn new(packet: &'a [u8]) -> Self {
        Self {
            packet,
            next: u8_at(packet, ipv6::NEXT),
            at: ipv6::LEN,
            done: packet.len() < ipv6::LEN,
        }
    }

    /// Returns the number of the upper-layer protocol, once the iterator has ended without an
    /// error.
    #[must_use]
    pub const fn upper_protocol(&self) -> u8 {
        self.next
    }

    /// Returns the offset of the upper-layer header, once the iterator has ended without an error.
    #[must_use]
    pub const fn upper_start(&self) -> usize {
        self.at
    }
}

impl Iterator for ExtHeaders<'_> {
    type Item = Result<ExtHeader>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let found = read_header(self.packet, self.next, self.at);
        self.done = true;
        if let Some(Ok(header)) = &found {
            (self.next, self.at) = (header.next, header.start + header.len);
            let is_later_fragment = header.layer == Layer::Fragment
                && u16_at(self.packet, header.start + fragment::OFFSET) >> 3 != 0;
            self.done = is_later_fragment;
        }
        found
    }
}

/// Returns the offset of the last segment from the start of `packet`, if `header` is a segment
/// routing header with segments left: checksums then cover that segment as the destination (RFC
/// 8200 section 8.1).
pub(crate) fn last_segment_at(packet: &[u8], header: &ExtHeader) -> Option<usize> {
    let field = |at| u8_at(packet, header.start + at);
    let is_on_its_way = header.layer == Layer::Routing
        && field(routing::TYPE) == routing::SEGMENT_ROUTING
        && field(routing::LEFT) > 0
        && header.len >= routing::SEGMENTS + 16;
    is_on_its_way.then_some(header.start + routing::SEGMENTS)
}

/// An option of an options header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Option<'a> {
    /// Option type: action (2 bits), change (1 bit), rest (5 bits).
    pub kind: u8,
    /// Offset of the option type from the start of the options header, in octets.
    pub offset: usize,
    /// Option data; empty for Pad1.
    pub data: &'a [u8],
}

impl Ipv6Option<'_> {
    /// Returns the length of the whole option in octets.
    #[must_use]
    pub const fn len(&self) -> usize {
        if self.kind == PAD1 {
            1
        } else {
            2 + self.data.len()
        }
    }

    /// Always returns false: an option has at least its type.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Returns true if the option data may change on the path.
    #[must_use]
    pub const fn may_change(&self) -> bool {
        self.kind & CHANGE_BIT != 0
    }

    /// Returns true for Pad1 and PadN.
    #[must_use]
    pub const fn is_padding(&self) -> bool {
        matches!(self.kind, PAD1 | PADN)
    }
}

/// Options of a Hop-by-Hop or Destination Options header.
///
/// Ends after the first option that runs past the header.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    header: &'a [u8],
    layer: Layer,
    at: usize,
    failed_at: Option<usize>,
}

impl<'a> Options<'a> {
    /// Iterates over the options of `header`, which begins with the Next Header octet and has the
    /// length it states.
    #[must_use]
    pub const fn new(layer: Layer, header: &'a [u8]) -> Self {
        Self {
            header,
            layer,
            at: 2,
            failed_at: None,
        }
    }

    /// Skips to the option that begins at `offset` of the header.
    #[must_use]
    pub(crate) const fn starting_at(mut self, offset: usize) -> Self {
        self.at = offset;
        self
    }

    /// Returns the offset in the header of the option that runs past it, once the iterator has
    /// ended on it.
    #[must_use]
    pub const fn failed_at(&self) -> Option<usize> {
        self.failed_at
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<Ipv6Option<'a>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let offset = self.at;
        let kind = *self.header.get(offset)?;
        if kind == PAD1 {
            self.at += 1;
            return Some(Ok(Ipv6Option {
                kind,
                offset,
                data: &[],
            }));
        }
        let len = self.header.get(offset + 1).map(|len| usize::from(*len));
        let data = len.and_then(|len| self.header.get(offset + 2..offset + 2 + len));
        let Some(data) = data else {
            return Some(Err(self.overrun(offset)));
        };
        self.at = offset + 2 + data.len();
        Some(Ok(Ipv6Option { kind, offset, data }))
    }
}

impl Options<'_> {
    /// Ends the iteration on the option at `offset`, which runs past the header.
    #[cold]
    fn overrun(&mut self, offset: usize) -> Error {
        self.at = self.header.len();
        self.failed_at = Some(offset);
        let room = self.header.len() - offset;
        let Some(len) = self.header.get(offset + 1) else {
            return Error::short(Layer::Ipv6Option, 2, room).at(offset);
        };
        let field = if self.layer == Layer::HopByHop {
            "Opt Data Len in Hop-by-Hop Options"
        } else {
            "Opt Data Len"
        };
        let len = usize::from(*len);
        Error::length(Layer::Ipv6Option, offset + 1, field, len, 0, room - 2)
    }
}

/// Writes a Hop-by-Hop or Destination Options header, option by option, with the padding required
/// by RFC 8200.
#[derive(Debug)]
pub struct OptionsWriter<'a> {
    out: &'a mut [u8],
    layer: Layer,
    at: usize,
    /// Maximum length of the header.
    room: usize,
}

impl<'a> OptionsWriter<'a> {
    /// Begins a header of kind `layer` in `out`.
    #[must_use]
    pub const fn new(layer: Layer, out: &'a mut [u8]) -> Self {
        let room = out.len();
        Self {
            out,
            layer,
            at: 2,
            room,
        }
    }

    /// Creates a writer that only counts octets.
    pub(crate) const fn measuring() -> Self {
        Self {
            room: usize::MAX,
            ..Self::new(Layer::DestinationOptions, &mut [])
        }
    }

    /// Returns the current length of the header in octets, with padding.
    pub(crate) const fn len(&self) -> usize {
        self.at.next_multiple_of(8)
    }

    /// Appends an option with the data `parts`, whose type octet lies at `multiple`·n+`rest` octets
    /// from the header's start.
    ///
    /// # Errors
    /// Fails if the buffer is too small or the data exceeds 255 octets.
    pub fn option(
        &mut self,
        (multiple, rest): (usize, usize),
        kind: u8,
        parts: &[&[u8]],
    ) -> Result<()> {
        let len = parts.iter().map(|part| part.len()).sum();
        let Ok(octet) = u8::try_from(len) else {
            let (at, field) = (self.at + 1, "Opt Data Len");
            return Err(Error::length(Layer::Ipv6Option, at, field, len, 0, 255));
        };
        let multiple = multiple.max(1);
        let pad = (multiple + rest % multiple - self.at % multiple) % multiple;
        self.pad(pad)?;
        self.room(self.at + 2 + len)?;
        put(self.out, self.at, &[kind, octet]);
        self.at += 2;
        for part in parts {
            put(self.out, self.at, part);
            self.at += part.len();
        }
        Ok(())
    }

    /// Pads to 8 octets, writes the header's first two octets, and returns its length.
    ///
    /// # Errors
    /// Fails if the buffer is too small or the header is longer than its length field can state.
    pub fn finish(mut self, next_header: u8) -> Result<usize> {
        self.pad((8 - self.at % 8) % 8)?;
        let units = self.at / 8 - 1;
        let Ok(units) = u8::try_from(units) else {
            return Err(Error::length(self.layer, 1, "Hdr Ext Len", units, 0, 255));
        };
        put(self.out, 0, &[next_header, units]);
        Ok(self.at)
    }

    fn pad(&mut self, len: usize) -> Result<()> {
        self.room(self.at + len)?;
        match len {
            0 => {}
            1 => put(self.out, self.at, &[PAD1]),
            n => {
                put(self.out, self.at, &[PADN, (n - 2) as u8]);
                if let Some(zeros) = self.out.get_mut(self.at + 2..self.at + n) {
                    zeros.fill(0);
                }
            }
        }
        self.at += len;
        Ok(())
    }

    fn room(&self, need: usize) -> Result<()> {
        if self.room < need {
            return Err(Error::buffer(self.layer, need, self.room));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_aligned_and_padded() {
        let mut out = [0xEE; 64];
        let mut w = OptionsWriter::new(Layer::DestinationOptions, &mut out);
        w.option((4, 2), 0x9E, &[&[7; 10], &[7; 6]]).unwrap();
        assert_eq!(w.finish(17).unwrap(), 24);
        assert_eq!(out[..4], [17, 2, 0x9E, 16]);
        assert_eq!(out[20..24], [PADN, 2, 0, 0]);
        let found: Vec<_> = Options::new(Layer::DestinationOptions, &out[..24])
            .map(Result::unwrap)
            .collect();
        assert_eq!(found.len(), 2);
        assert_eq!(
            (found[0].offset, found[0].len(), found[1].kind),
            (2, 18, PADN)
        );

        let mut w = OptionsWriter::new(Layer::HopByHop, &mut out);
        w.option((4, 0), 0x31, &[&[0; 10]]).unwrap();
        assert_eq!(w.finish(17).unwrap(), 16);
        assert_eq!(out[2..6], [PADN, 0, 0x31, 10]);
    }

    #[test]
    fn oversized_options_are_refused() {
        let mut out = [0; 16];
        let mut w = OptionsWriter::new(Layer::DestinationOptions, &mut out);
        assert!(w.option((1, 0), 9, &[&[0; 256]]).is_err());
        assert!(w.option((1, 0), 9, &[&[0; 15]]).is_err());
        w.option((1, 0), 9, &[&[0; 12]]).unwrap();
        assert_eq!(w.finish(6).unwrap(), 16);
    }

    #[test]
    fn an_option_past_its_header_is_an_error_at_its_length_field() {
        let header = [17, 0, 0x9E, 5, 0, 0, 0, 0];
        let mut options = Options::new(Layer::DestinationOptions, &header);
        let e = options.next().unwrap().unwrap_err();
        assert_eq!(
            e,
            Error::length(Layer::Ipv6Option, 3, "Opt Data Len", 5, 0, 4)
        );
        assert_eq!(options.next(), None);
        let mut options = Options::new(Layer::DestinationOptions, &[17, 0, 1, 3, 0, 0, 0, 9]);
        assert!(options.next().unwrap().is_ok());
        assert_eq!(options.next().unwrap().unwrap_err().offset, 7);
    }
}
