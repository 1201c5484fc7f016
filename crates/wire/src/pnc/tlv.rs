//! Shared parts of the routing codecs: a TLV walker, flags among sub-TLVs, a writer with length
//! fields. Nothing here is specific to one protocol.
//!
//! ```text
//! Narrow:          | Type (8) | Length (8) | Value                 IS-IS, BGP's capabilities and parameters
//! Extended:        | Type (8) | Length (16) | Value                BGP's parameters by RFC 9072
//! Attribute:       | Flags (8) | Type (8) | Length (8 or 16) | Value            BGP
//! Characteristic:  | Code (16) | Length (16) | Value                            BGP
//! Padded:          | Type (16) | Length (16) | Value, padding to 4 octets       OSPF
//! ```

use super::{Advertisement, Carrier, Prefix, Report};
use crate::error::{Error, ErrorKind, Result};
use crate::finding::Rule;
use crate::layer::Layer;
use crate::octets::{put, u8_at, u16_at};

/// A range of a message, in offsets from the message's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region<'a> {
    /// Octets present: incomplete only if the capture was truncated. Running out of them ends a
    /// walk without a finding.
    pub(crate) octets: &'a [u8],
    pub(crate) at: usize,
    end: usize,
}

/// Flag of a path attribute: its length has two octets.
pub(crate) const EXTENDED_LENGTH: u8 = 0x10;

/// Encoding of a TLV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Narrow,
    Extended,
    Attribute,
    Characteristic,
    Padded,
}

/// A TLV or sub-TLV.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tlv<'a> {
    /// Type, which follows the flags in an attribute.
    pub(crate) kind: u16,
    pub(crate) at: usize,
    /// Offset of the length field.
    pub(crate) length_at: usize,
    /// Value; may be truncated.
    pub(crate) value: Region<'a>,
}

impl<'a> Region<'a> {
    /// Creates the region from `at` to `end` of a message whose captured octets are `bytes`.
    pub(crate) fn new(bytes: &'a [u8], at: usize, end: usize) -> Self {
        let there = end.min(bytes.len());
        let octets = bytes.get(at..there).unwrap_or_default();
        Self { octets, at, end }
    }

    /// Creates a region of all `octets`, which begin at offset `at` of the message.
    pub(crate) const fn whole(octets: &'a [u8], at: usize) -> Self {
        let end = at + octets.len();
        Self { octets, at, end }
    }

    pub(crate) const fn left(&self) -> usize {
        self.end.saturating_sub(self.at)
    }

    pub(crate) const fn stop(&mut self) {
        (self.octets, self.at) = (&[], self.end);
    }

    /// Takes the next `n` octets. `None` ends the region: the octets run past its end (a finding
    /// over the rest of it), or the capture ends before them.
    pub(crate) fn take(&mut self, n: usize, report: &mut Report<'_>) -> Option<&'a [u8]> {
        let left = self.left();
        if n > left && self.octets.len() >= left.min(1) {
            report.push(Rule::PncMalformed, self.at, left);
        }
        let found = self.octets.get(..n).filter(|_| n <= left);
        match found {
            Some(_) => _ = self.split(n),
            None => self.stop(),
        }
        found
    }

    /// Takes the next `len` octets as a region of their own; the field at `length_at`, of `width`
    /// octets, gives the length.
    pub(crate) fn sub(
        &mut self,
        len: usize,
        length_at: usize,
        width: usize,
        report: &mut Report<'_>,
    ) -> Option<Self> {
        if len > self.left() {
            report.push(Rule::PncMalformed, length_at, width);
            self.stop();
            return None;
        }
        Some(self.split(len))
    }

    /// Splits off the first `len` octets, which must not exceed the region.
    fn split(&mut self, len: usize) -> Self {
        let (octets, rest) = self.octets.split_at(len.min(self.octets.len()));
        let (at, end) = (self.at, self.at + len);
        (self.octets, self.at) = (rest, end);
        Self { octets, at, end }
    }

    /// Takes the next TLV. `None`: the region ends, or the capture ends within the TLV's header. An
    /// error ends the region.
    pub(crate) fn tlv(&mut self, shape: Shape) -> Option<Result<Tlv<'a>>> {
        let (octets, at, left) = (self.octets, self.at, self.left());
        let extended = usize::from(u8_at(octets, 0) & EXTENDED_LENGTH != 0);
        let (layer, field, length_at, width) = match shape {
            Shape::Narrow => (Layer::IsIs, "TLV length", 1, 1),
            Shape::Extended => (Layer::Bgp, "Parameter Length", 1, 2),
            Shape::Attribute => (Layer::Bgp, "attribute length", 2, 1 + extended),
            Shape::Characteristic => (Layer::Bgp, "Characteristic Length", 2, 2),
            // Used for both versions: an IGP's error becomes a finding, whose layer is known.
            Shape::Padded => (Layer::Ospf2, "TLV length", 2, 2),
        };
        let head = length_at + width;
        if left < head && !octets.is_empty() {
            self.stop();
            return Some(Err(Error::short(layer, head, left).at(at)));
        }
        if octets.len() < head {
            self.stop();
            return None;
        }
        let len = match width {
            1 => usize::from(u8_at(octets, length_at)),
            _ => usize::from(u16_at(octets, length_at)),
        };
        let length_at = at + length_at;
        if len > left - head {
            self.stop();
            let most = left - head;
            return Some(Err(Error::length(layer, length_at, field, len, 0, most)));
        }
        self.split(head);
        let value = self.split(len);
        if shape == Shape::Padded {
            // The last padding may be missing.
            self.split((len.next_multiple_of(4) - len).min(self.left()));
        }
        Some(Ok(Tlv {
            kind: shape.kind(octets),
            at,
            length_at,
            value,
        }))
    }

    /// Takes the next TLV of an IGP; a TLV that runs past the region is a finding and ends the
    /// region.
    pub(crate) fn next(&mut self, shape: Shape, report: &mut Report<'_>) -> Option<Tlv<'a>> {
        self.tlv(shape)?
            .map_err(|e| {
                let len = match e.kind {
                    ErrorKind::Short { have, .. } => have,
                    _ => shape.width(),
                };
                report.push(Rule::PncMalformed, e.offset, len);
            })
            .ok()
    }
}

impl Shape {
    /// Returns the type of the TLV at the start of `octets`.
    fn kind(self, octets: &[u8]) -> u16 {
        match self {
            Self::Narrow | Self::Extended => u8_at(octets, 0).into(),
            _ => u16_at(octets, 0),
        }
    }

    /// Returns the width in octets of an IGP's type, and of its length.
    const fn width(self) -> usize {
        if matches!(self, Self::Narrow) { 1 } else { 2 }
    }
}

/// Sub-TLV with the flags of a prefix: its type, and the PNC bit in its first octet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlagsSubTlv {
    pub(crate) shape: Shape,
    pub(crate) kind: u16,
    pub(crate) pnc: u8,
}

impl FlagsSubTlv {
    /// Returns true if the flags have a valid length: whole 32-bit words in OSPF (RFC 9792 section
    /// 2), any length except 0 in IS-IS; an empty value conveys nothing.
    pub(crate) fn has_good_length(self, sub: &Tlv<'_>) -> bool {
        let len = sub.value.left();
        len > 0 && (self.shape != Shape::Padded || len.is_multiple_of(4))
    }

    /// Reads the flags among the sub-TLVs `subs` into `found`.
    pub(crate) fn read<'a>(
        self,
        mut subs: Region<'a>,
        found: &mut Advertisement<'a>,
        report: &mut Report<'_>,
    ) {
        let (width, ospf) = (self.shape.width(), self.shape == Shape::Padded);
        while subs.left() > 0 {
            let head = subs;
            let Some(sub) = subs.next(self.shape, report) else {
                // Flags that run past their end still count as flags.
                if self.shape.kind(head.octets) == self.kind && found.carrier.is_none() {
                    found.carrier = head.octets.get(2 * width..).map(|octets| Carrier {
                        offset: head.at + 2 * width,
                        octets,
                    });
                }
                return;
            };
            if sub.kind != self.kind {
                continue;
            }
            let (good, several) = (self.has_good_length(&sub), found.carrier.is_some());
            if !good && (ospf || !several) {
                report.push(Rule::PncFlagsLength, sub.length_at, width);
            }
            if several {
                report.push(Rule::PncSeveral, sub.at, width);
                continue;
            }
            let Region { octets, at, .. } = sub.value;
            if octets.len() < sub.value.left() {
                continue;
            }
            found.carrier = Some(Carrier { offset: at, octets });
            if found.ignored || !good {
                continue;
            }
            // RFC 9792 section 2: no more words than the set bits need.
            if ospf && octets.len() > 4 && octets.ends_with(&[0; 4]) {
                report.push(Rule::PncFlagsExcess, sub.length_at, 2);
            }
            found.flag_offset = Some(at);
            found.pnc = u8_at(octets, 0) & self.pnc != 0;
        }
    }

    /// Writes the sub-TLV with `flags`, if any.
    pub(crate) fn write(self, w: &mut Writer, flags: Option<&[u8]>) -> Result<()> {
        let Some(flags) = flags else { return Ok(()) };
        match self.shape {
            Shape::Narrow => w.put(&[self.kind as u8]),
            _ => w.u16(self.kind),
        }
        w.counted_octets(self.shape.width(), "sub-TLV length", flags)?;
        if self.shape == Shape::Padded {
            w.put(&[0; 3][..flags.len().next_multiple_of(4) - flags.len()]);
        }
        Ok(())
    }
}

/// Writes a message; each length field is set once its content is written.
pub(crate) struct Writer {
    layer: Layer,
    out: Vec<u8>,
}

impl Writer {
    pub(crate) const fn new(layer: Layer) -> Self {
        let out = Vec::new();
        Self { layer, out }
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.out
    }

    pub(crate) const fn len(&self) -> usize {
        self.out.len()
    }

    pub(crate) fn put(&mut self, octets: &[u8]) {
        self.out.extend_from_slice(octets);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.put(&value.to_be_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.put(&value.to_be_bytes());
    }

    /// Writes the first `len` octets of a prefix's address.
    pub(crate) fn address(&mut self, prefix: Prefix, len: usize) {
        self.put(prefix.padded().get(..len).unwrap_or_default());
    }

    pub(crate) fn patch(&mut self, at: usize, octets: &[u8]) {
        put(&mut self.out, at, octets);
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.out.truncate(len);
    }

    /// Sets the length field `field`, of one or two octets, at `at`.
    pub(crate) fn patch_len(
        &mut self,
        at: usize,
        width: usize,
        field: &'static str,
        len: usize,
    ) -> Result<()> {
        let most = if width == 1 { 0xFF } else { 0xFFFF };
        if len > most {
            return Err(Error::length(self.layer, at, field, len, 0, most));
        }
        match width {
            1 => self.patch(at, &[len as u8]),
            _ => self.patch(at, &(len as u16).to_be_bytes()),
        }
        Ok(())
    }

    /// Writes a length field of one or two octets, followed by the content that it counts.
    pub(crate) fn counted(
        &mut self,
        width: usize,
        field: &'static str,
        write: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let at = self.len();
        self.out.resize(at + width, 0);
        write(self)?;
        self.patch_len(at, width, field, self.len() - at - width)
    }

    /// Writes a length field of one or two octets, followed by `octets`.
    pub(crate) fn counted_octets(
        &mut self,
        width: usize,
        field: &'static str,
        octets: &[u8],
    ) -> Result<()> {
        self.counted(width, field, |w| {
            w.put(octets);
            Ok(())
        })
    }

    /// Writes a path attribute, with a length of two octets if its value needs it.
    pub(crate) fn attribute(&mut self, flags: u8, kind: u8, value: &[u8]) -> Result<()> {
        let (extended, width) = match value.len() {
            0..=0xFF => (0, 1),
            _ => (EXTENDED_LENGTH, 2),
        };
        self.put(&[flags | extended, kind]);
        self.counted_octets(width, "attribute length", value)
    }

    /// Returns the octets written from `from` on.
    pub(crate) fn octets_from(&self, from: usize) -> &[u8] {
        self.out.get(from..).unwrap_or_default()
    }
}
