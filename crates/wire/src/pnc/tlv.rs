//! What the routing codecs share: TLV regions, counting writers, and the two checksums. No protocol lives here.

use super::{Carrier, Report};
use crate::error::{Error, Result};
use crate::finding::Rule;
use crate::layer::Layer;
use crate::octets::{put, u8_at, u16_at};

/// A stretch of a message, in offsets from the message's start. `end` is what the enclosing length field says, and
/// lies behind `bytes` only where a capture was cut: then running off `bytes` ends a walk without a finding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) at: usize,
    pub(crate) end: usize,
}

/// One TLV or sub-TLV.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tlv<'a> {
    pub(crate) kind: u16,
    /// Offset of the length field.
    pub(crate) length_at: usize,
    /// The value; it may be cut.
    pub(crate) value: Region<'a>,
}

impl<'a> Tlv<'a> {
    /// The value, where it is there as a whole.
    pub(crate) fn octets(&self) -> Option<&'a [u8]> {
        self.value.bytes.get(self.value.at..self.value.end)
    }
}

impl<'a> Region<'a> {
    pub(crate) const fn new(bytes: &'a [u8], at: usize, end: usize) -> Self {
        Self { bytes, at, end }
    }

    pub(crate) const fn left(&self) -> usize {
        self.end.saturating_sub(self.at)
    }

    /// What is there behind the head, of `head` octets, of a TLV that runs past the region's end. `None`: it is the head
    /// that is not whole.
    pub(crate) fn overrun(&self, head: usize) -> Option<Carrier<'a>> {
        let offset = self.at + head;
        let octets = self.bytes.get(offset..self.end.min(self.bytes.len()))?;
        Some(Carrier { offset, octets })
    }

    pub(crate) const fn stop(&mut self) {
        self.at = self.end;
    }

    /// The next `n` octets. `None` ends the region: they run past its end (a finding over what is left of it), or the
    /// capture was cut before them.
    pub(crate) fn take(&mut self, n: usize, report: &mut Report<'_>) -> Option<&'a [u8]> {
        let (left, at) = (self.left(), self.at);
        if n > left {
            if at + left.min(1) <= self.bytes.len() {
                report.push(Rule::PncMalformed, at, left);
            }
            self.stop();
            return None;
        }
        let found = self.bytes.get(at..at + n);
        if found.is_some() {
            self.at = at + n;
        } else {
            self.stop();
        }
        found
    }

    /// The next `len` octets as a region of their own, which `length_at` (a field of `width` octets) asked for.
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
        let inner = Self::new(self.bytes, self.at, self.at + len);
        self.at += len;
        Some(inner)
    }

    /// The next TLV with one octet of type and one of length (IS-IS).
    pub(crate) fn narrow(&mut self, report: &mut Report<'_>) -> Option<Tlv<'a>> {
        if self.left() == 0 {
            return None;
        }
        let head = self.take(2, report)?;
        let length_at = self.at - 1;
        let value = self.sub(usize::from(u8_at(head, 1)), length_at, 1, report)?;
        Some(Tlv {
            kind: u16::from(u8_at(head, 0)),
            length_at,
            value,
        })
    }

    /// The next TLV with two octets of type, two of length, and padding to 4 octets that the length does not count (OSPF).
    pub(crate) fn wide(&mut self, report: &mut Report<'_>) -> Option<Tlv<'a>> {
        if self.left() == 0 {
            return None;
        }
        let head = self.take(4, report)?;
        let length_at = self.at - 2;
        let len = usize::from(u16_at(head, 2));
        let value = self.sub(len, length_at, 2, report)?;
        // The last padding may be missing.
        self.at = (self.at + len.next_multiple_of(4) - len).min(self.end);
        Some(Tlv {
            kind: u16_at(head, 0),
            length_at,
            value,
        })
    }
}

/// Writes what fits and counts all, so that one function serves for lengths and for octets.
pub(crate) struct Writer<'b> {
    out: &'b mut [u8],
    at: usize,
}

impl<'b> Writer<'b> {
    pub(crate) const fn new(out: &'b mut [u8]) -> Self {
        Self { out, at: 0 }
    }

    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn put(&mut self, octets: &[u8]) {
        put(self.out, self.at, octets);
        self.at += octets.len();
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.put(&[value]);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.put(&value.to_be_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.put(&value.to_be_bytes());
    }

    pub(crate) fn align4(&mut self, from: usize) {
        while !(self.at - from).is_multiple_of(4) {
            self.u8(0);
        }
    }

    pub(crate) fn patch(&mut self, at: usize, octets: &[u8]) {
        put(self.out, at, octets);
    }

    /// Sets the 16-bit length field at `at`.
    pub(crate) fn patch_len16(
        &mut self,
        layer: Layer,
        at: usize,
        field: &'static str,
        len: usize,
    ) -> Result<()> {
        let Ok(value) = u16::try_from(len) else {
            return Err(Error::length(layer, at, field, len, 0, 0xFFFF));
        };
        self.patch(at, &value.to_be_bytes());
        Ok(())
    }

    /// Sets the 8-bit length field at `at`.
    pub(crate) fn patch_len8(
        &mut self,
        layer: Layer,
        at: usize,
        field: &'static str,
        len: usize,
    ) -> Result<()> {
        let Ok(value) = u8::try_from(len) else {
            return Err(Error::length(layer, at, field, len, 0, 0xFF));
        };
        self.patch(at, &[value]);
        Ok(())
    }

    /// What was written so far from `from` on; empty while only counting.
    pub(crate) fn written(&self, from: usize) -> &[u8] {
        self.out.get(from..self.at).unwrap_or(&[])
    }

    /// The octets written, or how many the buffer lacks.
    pub(crate) fn finish(self, layer: Layer) -> Result<usize> {
        if self.at > self.out.len() {
            return Err(Error::buffer(layer, self.at, self.out.len()));
        }
        Ok(self.at)
    }
}

/// Fletcher checksum of ISO 8473, as LSPs and LSAs have it: the value for the two octets at `field` of `covered`, which
/// are taken as 0 for it.
pub(crate) fn fletcher(covered: &[u8], field: usize) -> u16 {
    let (mut c0, mut c1) = (0i64, 0i64);
    for (i, octet) in covered.iter().enumerate() {
        let value = if i == field || i == field + 1 {
            0
        } else {
            i64::from(*octet)
        };
        c0 = (c0 + value) % 255;
        c1 = (c1 + c0) % 255;
    }
    // Octets behind the first checksum octet; messages are at most 64 KiB long.
    let behind = covered.len() as i64 - field as i64 - 1;
    let x = (behind * c0 - c1).rem_euclid(255);
    let y = (c1 - (behind + 1) * c0).rem_euclid(255);
    // 0 would mean that there is no checksum; 255 is the same number modulo 255.
    let nonzero = |v: i64| if v == 0 { 255 } else { v as u16 };
    nonzero(x) << 8 | nonzero(y)
}

/// The Internet checksum (RFC 1071) over `parts`, each taken as if padded to an even number of octets.
pub(crate) fn internet(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u64;
    for part in parts {
        for pair in part.chunks(2) {
            sum += u64::from(u8_at(pair, 0)) << 8 | u64::from(u8_at(pair, 1));
        }
    }
    while sum > 0xFFFF {
        sum = (sum >> 16) + (sum & 0xFFFF);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Verifies as a receiver does: both sums over everything are 0 modulo 255.
    fn sums(octets: &[u8]) -> (u32, u32) {
        octets.iter().fold((0, 0), |(c0, c1), octet| {
            let c0 = (c0 + u32::from(*octet)) % 255;
            (c0, (c1 + c0) % 255)
        })
    }

    #[test]
    fn fletcher_makes_both_sums_vanish() {
        let mut octets: Vec<u8> = (0..=200u8).map(|i| i.wrapping_mul(37)).collect();
        for field in [0, 1, 14, 100, 199] {
            let value = fletcher(&octets, field);
            octets[field..field + 2].copy_from_slice(&value.to_be_bytes());
            assert_eq!(sums(&octets), (0, 0), "{field}");
        }
        assert_eq!(fletcher(&[0; 4], 0), 0xFFFF);
    }

    #[test]
    fn internet_checksum_of_the_rfc_1071_example() {
        let octets = [0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7];
        assert_eq!(internet(&[&octets]), !0xDDF2);
        assert_eq!(internet(&[&octets[..2], &octets[2..]]), !0xDDF2);
    }
}
