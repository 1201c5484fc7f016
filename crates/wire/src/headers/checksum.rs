//! Checksums of 16-bit words (RFC 1071), computed and patched incrementally (RFC 1624), and the
//! Fletcher checksum of routing protocols.

use crate::ipv6_ext::next_header;
use core::ops::Range;
use etherparse::checksum::Sum16BitWords;

/// Returns the checksum of `words`, with the field itself counted as zero.
fn finish(words: Sum16BitWords) -> u16 {
    words.ones_complement().to_be()
}

fn add(words: Sum16BitWords, parts: &[&[u8]]) -> Sum16BitWords {
    parts
        .iter()
        .fold(words, |words, part| words.add_slice(part))
}

/// Computes the checksum of the concatenated `parts`, its own field zero or left out; all but the
/// last part have even length.
pub(crate) fn internet(parts: &[&[u8]]) -> u16 {
    finish(add(Sum16BitWords::new(), parts))
}

/// Sums the words of the pseudo-header (RFC 768, RFC 8200 section 8.1) of `len` octets of
/// `protocol` between two addresses.
fn pseudo_header([source, destination]: [&[u8]; 2], protocol: u8, len: usize) -> Sum16BitWords {
    Sum16BitWords::new()
        .add_slice(source)
        .add_slice(destination)
        .add_4bytes((len as u32).to_be_bytes())
        .add_2bytes([0, protocol])
}

/// Computes the transport checksum of `len` octets of `protocol` between two addresses; `parts` are
/// as for [`internet`].
pub(crate) fn of_transport(
    addresses: [&[u8]; 2],
    protocol: u8,
    len: usize,
    parts: &[&[u8]],
) -> u16 {
    let words = pseudo_header(addresses, protocol, len);
    sent(protocol, finish(add(words, parts)))
}

/// Returns the sum of the pseudo-header alone: the field's content if the sender's hardware has yet
/// to complete the checksum.
pub(crate) fn of_pseudo_header(addresses: [&[u8]; 2], protocol: u8, len: usize) -> u16 {
    !finish(pseudo_header(addresses, protocol, len))
}

/// Returns the checksum as `protocol` sends it. RFC 768: 0 means that there is no checksum.
pub(crate) const fn sent(protocol: u8, checksum: u16) -> u16 {
    match (protocol, checksum) {
        (next_header::UDP, 0) => 0xFFFF,
        _ => checksum,
    }
}

/// Folds `sum` to the one's complement sum of its words.
pub(crate) const fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xFFFF_FFFF) + (sum >> 32);
    let sum = (sum & 0xFFFF) + (sum >> 16);
    let sum = (sum & 0xFFFF) + (sum >> 16);
    let sum = (sum & 0xFFFF) + (sum >> 16);
    sum as u16
}

/// Updates `checksum` after words changed by `delta`, the sum of the new words and of the
/// complements of the old ones (equation 3 of RFC 1624).
#[inline]
pub(crate) const fn patched(checksum: u16, delta: u64) -> u16 {
    !fold(!checksum as u64 + delta)
}

/// UDP checksum of a frame that changes only in part: only that part is summed.
#[derive(Clone, Debug)]
pub struct IncrementalUdpChecksum {
    /// Offset of the checksum; inside one of the ranges.
    at: usize,
    ranges: [Range<usize>; 2],
}

impl IncrementalUdpChecksum {
    /// Creates it for a frame in which no octet outside `ranges` changes, except octets not covered
    /// by the UDP checksum (at `at`, in one of the ranges). Ranges begin at even offsets and do not
    /// overlap.
    #[must_use]
    pub const fn new(at: usize, ranges: [Range<usize>; 2]) -> Self {
        Self { at, ranges }
    }

    /// Applies `change` to `frame` and updates the checksum.
    #[inline]
    pub fn change(&self, frame: &mut [u8], change: impl FnOnce(&mut [u8])) {
        let old = self.replace(frame, 0);
        let before = self.complement(frame);
        change(frame);
        let delta = u64::from(before) + u64::from(!self.complement(frame));
        self.replace(frame, sent(next_header::UDP, patched(old, delta)));
    }

    /// Returns the complement of the sum of the ranges' words, in native byte order, which does not
    /// affect sums.
    #[inline]
    fn complement(&self, frame: &[u8]) -> u16 {
        let words = self
            .ranges
            .iter()
            .fold(Sum16BitWords::new(), |words, range| {
                words.add_slice(frame.get(range.clone()).unwrap_or_default())
            });
        words.ones_complement()
    }

    fn replace(&self, frame: &mut [u8], new: u16) -> u16 {
        let field = frame
            .get_mut(self.at..)
            .and_then(|rest| rest.first_chunk_mut::<2>());
        field.map_or(0, |field| {
            u16::from_ne_bytes(core::mem::replace(field, new.to_ne_bytes()))
        })
    }
}

/// Computes the Fletcher checksum of ISO 8473, as used by LSPs and LSAs: the value for the two
/// octets at `field` of `covered`, which are counted as 0.
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
    // Octets after the first checksum octet; messages are at most 64 KiB long.
    let behind = covered.len() as i64 - field as i64 - 1;
    let x = (behind * c0 - c1).rem_euclid(255);
    let y = (c1 - (behind + 1) * c0).rem_euclid(255);
    // 0 would mean that there is no checksum; 255 is equivalent modulo 255.
    let nonzero = |v: i64| if v == 0 { 255 } else { v as u16 };
    nonzero(x) << 8 | nonzero(y)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Verifies as a receiver does: both sums over everything are 0 modulo 255.
    fn remainders(octets: &[u8]) -> (u32, u32) {
        octets.iter().fold((0, 0), |(c0, c1), octet| {
            let c0 = (c0 + u32::from(*octet)) % 255;
            (c0, (c1 + c0) % 255)
        })
    }

    #[test]
    fn fletcher_makes_both_sums_zero() {
        let mut octets: Vec<u8> = (0..=200u8).map(|i| i.wrapping_mul(37)).collect();
        for field in [0, 1, 14, 100, 199] {
            let value = fletcher(&octets, field);
            octets[field..field + 2].copy_from_slice(&value.to_be_bytes());
            assert_eq!(remainders(&octets), (0, 0), "{field}");
        }
        assert_eq!(fletcher(&[0; 4], 0), 0xFFFF);
    }
}
