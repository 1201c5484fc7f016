//! The UDP checksum of a frame of which a part changes: only that part is summed (RFC 1624).

/// Octets of a frame that change, and where its UDP checksum is. Ranges begin at even offsets and do not overlap.
#[derive(Clone, Debug)]
pub struct Summed {
    /// Where the UDP checksum is; inside one of the ranges.
    checksum: usize,
    ranges: [core::ops::Range<usize>; 2],
}

impl Summed {
    /// For a frame in which no octet outside `ranges` changes, except those that UDP's checksum does not cover.
    pub const fn new(checksum: usize, ranges: [core::ops::Range<usize>; 2]) -> Self {
        Self { checksum, ranges }
    }

    /// Makes `change` in `frame`, and the checksum right again.
    #[inline]
    pub fn change(&self, frame: &mut [u8], change: impl FnOnce(&mut [u8])) {
        let old = self.replace(frame, 0);
        let before = self.sum(frame);
        change(frame);
        let after = self.sum(frame);
        // What was summed apart from the ranges, and the ranges as they are now. One's complement sums do not care in which
        // order octets stand in a word.
        let sum = u32::from(!old) + u32::from(!before) + u32::from(after);
        let new = match !fold(sum.into()) {
            // 0 would mean that there is none.
            0 => 0xFFFF,
            checksum => checksum,
        };
        self.replace(frame, new);
    }

    fn sum(&self, frame: &[u8]) -> u16 {
        let sum = self.ranges.iter().map(|range| {
            let octets = frame.get(range.clone()).unwrap_or_default();
            sum(octets)
        });
        fold(sum.sum())
    }

    fn replace(&self, frame: &mut [u8], new: u16) -> u16 {
        let field = frame
            .get_mut(self.checksum..)
            .and_then(|rest| rest.first_chunk_mut::<2>());
        field.map_or(0, |field| {
            u16::from_ne_bytes(core::mem::replace(field, new.to_ne_bytes()))
        })
    }
}

/// The sum of the octets' words, in the machine's own order; an odd octet at the end is left out, for there is none.
fn sum(octets: &[u8]) -> u64 {
    let (fours, rest) = octets.as_chunks::<4>();
    let (twos, _) = rest.as_chunks::<2>();
    let fours: u64 = fours
        .iter()
        .map(|four| u64::from(u32::from_ne_bytes(*four)))
        .sum();
    let twos: u64 = twos
        .iter()
        .map(|two| u64::from(u16::from_ne_bytes(*two)))
        .sum();
    fours + twos
}

/// The one's complement sum of the four words in `sum`.
const fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xFFFF_FFFF) + (sum >> 32);
    let sum = (sum & 0xFFFF) + (sum >> 16);
    let sum = (sum & 0xFFFF) + (sum >> 16);
    let sum = (sum & 0xFFFF) + (sum >> 16);
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_sum_stays_right(
            mut frame in proptest::collection::vec(any::<u8>(), 40usize).prop_map(|mut f| { f.truncate(40); f }),
            new in proptest::collection::vec(any::<u8>(), 40usize),
            a in 0usize..8, b in 8usize..12, c in 12usize..16, d in 16usize..20,
        ) {
            // Any words, of which the checksum is the one at 2·a.
            let (a, b, c, d) = (a * 2, b * 2, c * 2, d * 2);
            frame[a..a + 2].fill(0);
            let right = !fold(sum(&frame));
            frame[a..a + 2].copy_from_slice(&right.to_ne_bytes());
            let summed = Summed::new(a, [a..b, c..d]);
            summed.change(&mut frame, |frame| {
                for i in (a + 2..b).chain(c..d) {
                    frame[i] = new[i];
                }
            });
            prop_assert_eq!(fold(sum(&frame)), 0xFFFF);
            prop_assert_ne!(&frame[a..a + 2], &[0, 0][..]);
        }
    }
}
