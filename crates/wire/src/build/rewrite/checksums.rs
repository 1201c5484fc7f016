//! `PacketPatcher`: writes fields into the new packet and updates the checksums over them.
//!
//! A checksum is updated by the difference that the written octets make (RFC 1624; for the ICRC,
//! the CRC's linearity), so that a wrong one stays wrong by the same amount and the cost does not
//! grow with the payload. It is recomputed only on request. `packet.rs` determines the writes and
//! the checksums.

use super::PriorIcrc;
use crate::bth::BTH_LEN;
use crate::checksum::{self, fold};
use crate::header::{ipv6, udp};
use crate::icrc::{self, ICRC_LEN, Reading, Verdict};
use crate::octets::{u8_at, u16_at, u32_at};
use arrayvec::ArrayVec;
use core::ops::Range;
use crc32fast::Hasher;

/// Maximum number of checksums around one field: at most 13 per packet (IP and transport of each of
/// 6 nested headers, ICRC), and the same number for each packet that is quoted in one.
pub(super) const MAX_SCOPES: usize = 48;

/// Addresses that a checksum covers as its pseudo-header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pseudo {
    /// First octet of the source address.
    pub(super) source: usize,
    /// First octet of the destination address: the last segment's if others come before it.
    pub(super) destination: usize,
    /// Length of an address, in octets.
    pub(super) len: usize,
    /// Upper-layer protocol.
    pub(super) protocol: u8,
}

/// A checksum of 16-bit words.
#[derive(Clone, Debug)]
pub(super) struct Sum {
    /// Offset of the checksum.
    pub(super) at: usize,
    /// Range that it covers, as far as captured.
    pub(super) body: Range<usize>,
    pub(super) pseudo: Option<Pseudo>,
    /// True if the whole body is present, so that the sum could be recomputed.
    pub(super) whole: bool,
}

/// An ICRC.
#[derive(Clone, Copy, Debug)]
pub(super) struct Icrc {
    /// First octet of the IP header.
    pub(super) ip: usize,
    /// First octet of the UDP header.
    pub(super) udp: usize,
    /// First octet of the ICRC.
    pub(super) at: usize,
    /// Result of verifying it, if that was done.
    pub(super) verdict: Option<Verdict>,
    /// Reading for repairing it if it is right by none.
    pub(super) default: Reading,
}

#[derive(Clone, Debug)]
enum Scope {
    /// With the sum of the changes so far.
    Sum(Sum, u64),
    /// With the range of octets written so far.
    Icrc(Icrc, Range<usize>),
}

/// The new packet, being written. Offsets are from the start of the old packet.
#[derive(Debug)]
pub(super) struct PacketPatcher<'a> {
    old: &'a [u8],
    new: &'a mut [u8],
    /// Difference between an offset in the new packet and the same one in the old packet.
    shift: usize,
    repair: bool,
    scopes: ArrayVec<Scope, MAX_SCOPES>,
}

impl<'a> PacketPatcher<'a> {
    /// Creates a canvas; `new` holds `old` from octet `before` on, moved to `after`.
    pub(super) fn new(
        old: &'a [u8],
        new: &'a mut [u8],
        (before, after): (usize, usize),
        repair: bool,
    ) -> Self {
        Self {
            old,
            new,
            shift: after.wrapping_sub(before),
            repair,
            scopes: ArrayVec::new(),
        }
    }

    /// Returns the original packet.
    pub(super) const fn old(&self) -> &'a [u8] {
        self.old
    }

    /// Includes further writes to the range of `sum` in it.
    pub(super) fn open_sum(&mut self, sum: Sum) {
        self.open(Scope::Sum(sum, 0));
    }

    /// Includes further writes to the range of the ICRC in it.
    pub(super) fn open_icrc(&mut self, icrc: Icrc) {
        self.open(Scope::Icrc(icrc, 0..0));
    }

    fn open(&mut self, scope: Scope) {
        // The limit is never exceeded: see MAX_SCOPES.
        let full = self.scopes.try_push(scope).is_err();
        debug_assert!(!full);
    }

    /// Returns the number of open checksums.
    pub(super) fn open_count(&self) -> usize {
        self.scopes.len()
    }

    /// Writes `value` at `at`, if that range was fully captured.
    #[inline]
    pub(super) fn write<const N: usize>(&mut self, at: usize, value: [u8; N]) {
        let place = self.new.get_mut(at.wrapping_add(self.shift)..);
        let Some(place) = place.and_then(|rest| rest.first_chunk_mut::<N>()) else {
            return;
        };
        let was = core::mem::replace(place, value);
        if was == value {
            return;
        }
        for scope in &mut self.scopes {
            scope.note(at, &was, &value);
        }
    }

    /// Closes all but the first `count` checksums, innermost first, and updates them. Returns the
    /// previous state of the ICRC among them.
    pub(super) fn close(&mut self, count: usize) -> Option<PriorIcrc> {
        let mut was = None;
        while self.scopes.len() > count {
            match self.scopes.pop() {
                Some(Scope::Sum(sum, delta)) => self.close_sum(&sum, delta),
                Some(Scope::Icrc(icrc, range)) => was = Some(self.close_icrc(&icrc, &range)),
                None => break,
            }
        }
        was
    }

    fn close_sum(&mut self, sum: &Sum, delta: u64) {
        let value = if self.repair && sum.whole {
            self.computed(sum)
        } else if delta.is_multiple_of(0xFFFF) {
            return;
        } else {
            let value = checksum::patched(u16_at(self.old, sum.at), delta);
            checksum::sent(sum.pseudo.map_or(0, |p| p.protocol), value)
        };
        self.write(sum.at, value.to_be_bytes());
    }

    fn range(&self, range: Range<usize>) -> &[u8] {
        let (start, end) = (
            range.start.wrapping_add(self.shift),
            range.end.wrapping_add(self.shift),
        );
        self.new.get(start..end).unwrap_or_default()
    }

    /// Computes the correct checksum.
    fn computed(&self, sum: &Sum) -> u16 {
        let before = self.range(sum.body.start..sum.at);
        let behind = self.range(sum.at + 2..sum.body.end);
        // The field is at an even offset, so leaving it out is the same as counting it as zero.
        match sum.pseudo {
            None => checksum::internet(&[before, behind]),
            Some(pseudo) => {
                let addresses = [pseudo.source, pseudo.destination];
                let addresses = addresses.map(|at| self.range(at..at + pseudo.len));
                let (len, parts) = (sum.body.len(), [before, behind]);
                checksum::of_transport(addresses, pseudo.protocol, len, &parts)
            }
        }
    }

    fn close_icrc(&mut self, icrc: &Icrc, range: &Range<usize>) -> PriorIcrc {
        let (start, end) = (icrc.ip, icrc.at + ICRC_LEN);
        let udp = icrc.udp - icrc.ip;
        let old = self.old.get(start..end).unwrap_or_default();
        let found = u32_at(old, icrc.at - icrc.ip).swap_bytes();
        let has_extensions = u8_at(old, 0) >> 4 == 6 && udp > ipv6::LEN;
        // Fields before the addresses are masked (flow label) or never written.
        let covered = range.start.max(icrc.ip + ipv6::SOURCE)..range.end;
        let unchanged = covered.is_empty();
        // Readings differ in the range between IPv6 header and BTH, and so in the distance of the
        // former from the end. Zero is sent by senders that leave the field to their hardware: it
        // stays.
        let by_reading = has_extensions && covered.start < icrc.udp + udp::LEN;
        let must_know = self.repair || !unchanged && (found == 0 || by_reading);
        let verdict = match icrc.verdict {
            None if must_know => Some(icrc::verify(old, udp)),
            verdict => verdict,
        };
        let (was, reading, expected) = match verdict {
            None => (PriorIcrc::Kept, Reading::default(), found),
            Some(Verdict::Good(reading)) => {
                let was = PriorIcrc::Good(reading);
                (was, reading.unwrap_or_default(), found)
            }
            Some(Verdict::Bad { expected, .. }) => (PriorIcrc::Bad, Reading::default(), expected),
            Some(Verdict::Unchecked) => return PriorIcrc::Unrepaired,
        };
        if !self.repair && (unchanged || was == PriorIcrc::Bad && found == 0) {
            return was;
        }
        let value = if self.repair {
            let reading = if was == PriorIcrc::Bad {
                icrc.default
            } else {
                reading
            };
            icrc::compute(self.range(start..icrc.at), udp, reading)
        } else if by_reading {
            icrc::compute(self.range(start..icrc.at), udp, reading)
                .map(|new| found ^ expected ^ new)
        } else {
            Some(found ^ self.difference(covered, icrc))
        };
        let Some(value) = value else {
            return PriorIcrc::Unrepaired;
        };
        self.write(icrc.at, value.to_le_bytes());
        was
    }

    /// Returns the change of the CRC at `icrc.at` caused by the octets written in `covered`, none
    /// of which is masked.
    ///
    /// A CRC is linear over GF(2): the exclusive-or of two packets' CRCs is the CRC of the packets'
    /// exclusive-or, with an initial value of zero.
    fn difference(&self, covered: Range<usize>, icrc: &Icrc) -> u32 {
        const CHUNK: usize = 64;
        // Up to the payload, whose length mostly has few bits set.
        let end = covered.end.max(icrc.udp + udp::LEN + BTH_LEN).min(icrc.at);
        let old = self.old.get(covered.start..end).unwrap_or_default();
        let new = self.range(covered.start..end);
        // crc32fast keeps the complement of the register.
        let mut crc = Hasher::new_with_initial(!0);
        for (old, new) in old.chunks(CHUNK).zip(new.chunks(CHUNK)) {
            let mut changed = [0; CHUNK];
            for (changed, (old, new)) in changed.iter_mut().zip(old.iter().zip(new)) {
                *changed = old ^ new;
            }
            crc.update(changed.get(..old.len()).unwrap_or_default());
        }
        append_zeros(crc, icrc.at - end)
    }
}

/// Returns the CRC, without its complement, of the data fed to `crc` followed by `count` octets of
/// zero.
fn append_zeros(mut crc: Hasher, count: usize) -> u32 {
    const ZEROS: [u8; 1024] = [0; 1024];
    // Combining takes one multiplication for each set bit of the count, which costs about as much
    // as feeding this many octets. Payload lengths mostly have few bits set.
    if count > ZEROS.len() * count.count_ones() as usize {
        let mut crc = Hasher::new_with_initial(!crc.finalize());
        crc.combine(&Hasher::new_with_initial_len(0, count as u64));
        return crc.finalize();
    }
    let mut left = count;
    while left > 0 {
        let now = left.min(ZEROS.len());
        crc.update(ZEROS.get(..now).unwrap_or_default());
        left -= now;
    }
    !crc.finalize()
}

impl Scope {
    fn note(&mut self, at: usize, was: &[u8], value: &[u8]) {
        match self {
            Self::Sum(sum, delta) => {
                *delta += changed(&sum.body, at, was, value);
                if let Some(pseudo) = sum.pseudo {
                    for start in [pseudo.source, pseudo.destination] {
                        *delta += changed(&(start..start + pseudo.len), at, was, value);
                    }
                }
            }
            Self::Icrc(icrc, range) => {
                let start = at.max(icrc.ip);
                let end = (at + value.len()).min(icrc.at);
                if start < end {
                    *range = if Range::is_empty(range) {
                        start..end
                    } else {
                        range.start.min(start)..range.end.max(end)
                    };
                }
            }
        }
    }
}

/// Returns the change of a sum over `body` when `value` overwrites `was` at `at`: equation 3 of RFC
/// 1624, without the checksum.
#[inline]
fn changed(body: &Range<usize>, at: usize, was: &[u8], value: &[u8]) -> u64 {
    let start = at.max(body.start);
    let end = (at + value.len()).min(body.end);
    if start >= end {
        return 0;
    }
    let words = |octets: &[u8]| -> u64 {
        octets
            .get(start - at..end - at)
            .unwrap_or_default()
            .chunks(2)
            .map(|word| match *word {
                [high, low] => u64::from(u16::from_be_bytes([high, low])),
                [high] => u64::from(high) << 8,
                _ => 0,
            })
            .sum()
    };
    // The complement of a word is its difference from 0xFFFF; an odd octet counts as the first of
    // its word.
    let count = (end - start).div_ceil(2) as u64;
    let sum = fold(words(value) + count * 0xFFFF - words(was));
    // RFC 1071 section 2: at an odd offset, the octets of each word are swapped.
    let odd = !(start - body.start).is_multiple_of(2);
    u64::from(if odd { sum.swap_bytes() } else { sum })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailing_zeros_match_for_both_methods() {
        for count in [
            0usize, 1, 3, 255, 1023, 1024, 1025, 2048, 4092, 4096, 8192, 9000, 16384, 65535,
        ] {
            let mut fed = Hasher::new_with_initial(!0);
            fed.update(b"what was written");
            let crc = fed.clone();
            fed.update(&vec![0; count]);
            assert_eq!(append_zeros(crc, count), !fed.finalize(), "{count}");
        }
    }

    #[test]
    fn sums_follow_odd_and_partial_writes() {
        let sum = |bytes: &[u8]| {
            let words = bytes.chunks(2);
            fold(
                words
                    .map(|w| u64::from(w[0]) << 8 | u64::from(w.get(1).copied().unwrap_or(0)))
                    .sum(),
            )
        };
        let old: Vec<u8> = (0..40u8).map(|i| i.wrapping_mul(7) + 1).collect();
        for body in [0..40, 3..40, 4..21, 7..8, 0..19] {
            for at in 0..40 {
                for len in 0..=(40 - at).min(17) {
                    let mut new = old.clone();
                    new[at..at + len]
                        .iter_mut()
                        .for_each(|octet| *octet = octet.wrapping_mul(3) ^ 0x5A);
                    let (was, value) = (&old[at..at + len], &new[at..at + len]);
                    let by = changed(&body, at, was, value);
                    let followed = fold(u64::from(sum(&old[body.clone()])) + by);
                    let anew = sum(&new[body.clone()]);
                    assert_eq!(followed % 0xFFFF, anew % 0xFFFF, "{body:?} {at} {len}");
                }
            }
        }
    }
}
