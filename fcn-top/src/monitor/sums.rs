//! Sums that stop at their greatest value; and sums in 16 bits, for what there are many of. What is summed is not their
//! business.

/// A sum that stops at its greatest value.
pub trait Sum: Copy + Default {
    /// With `amount` added.
    #[must_use]
    fn plus(self, amount: u64) -> Self;
    /// As a wide number.
    fn wide(self) -> u64;
}

impl Sum for u32 {
    #[inline]
    fn plus(self, amount: u64) -> Self {
        self.saturating_add(Self::try_from(amount).unwrap_or(Self::MAX))
    }

    #[inline]
    fn wide(self) -> u64 {
        self.into()
    }
}

impl Sum for u64 {
    #[inline]
    fn plus(self, amount: u64) -> Self {
        self.saturating_add(amount)
    }

    #[inline]
    fn wide(self) -> u64 {
        self
    }
}

/// Bits of the mantissa behind the leading one.
const MANTISSA: u32 = 11;
/// The leading one.
const ONE: u64 = 1 << MANTISSA;
/// Greatest shift of a mantissa that 16 bits tell of.
const MAX_SHIFT: u32 = (1 << (u16::BITS - MANTISSA)) - 2;

/// A sum in 16 bits.
///
/// Five bits say how far the other eleven, with a one in front, are shifted; as in floating point, the smallest numbers
/// have no one in front. So numbers up to 4096 are exact; greater ones are rounded by one part in 4096 at most. The greatest
/// is 4095 · 2^30, about 4.4 · 10^12; what is more counts as that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Compact(u16);

impl Compact {
    /// The number that is nearest to `sum`.
    #[inline]
    #[must_use]
    pub fn of(sum: u64) -> Self {
        if sum < 2 * ONE {
            return Self(sum as u16);
        }
        let shift = sum.ilog2() - MANTISSA;
        if shift > MAX_SHIFT {
            return Self(u16::MAX);
        }
        // Rounded up to the next power of two, it has just the bits of that.
        let mantissa = (sum >> (shift - 1)).div_ceil(2) - ONE;
        let bits = (u64::from(shift + 1) << MANTISSA) + mantissa;
        Self(u16::try_from(bits).unwrap_or(u16::MAX))
    }

    /// The number.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u64 {
        let bits = self.0 as u64;
        match (bits >> MANTISSA).checked_sub(2) {
            None => bits,
            Some(shift) => (bits & (ONE - 1) | ONE) << (shift + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_numbers_are_exact_and_great_ones_end_somewhere() {
        for sum in 0..=4096 {
            assert_eq!(Compact::of(sum).get(), sum);
        }
        assert_eq!(Compact::of(4097).get(), 4098);
        assert_eq!(Compact::of(8191).get(), 8192);
        let greatest = 4095 << 30;
        assert_eq!(Compact::of(greatest).get(), greatest);
        assert_eq!(Compact::of(greatest + (1 << 30)).get(), greatest);
        assert_eq!(Compact::of(u64::MAX).get(), greatest);
    }

    #[test]
    fn all_of_them_are_told_apart_in_their_order() {
        for bits in 0..u16::MAX {
            let (this, next) = (Compact(bits), Compact(bits + 1));
            assert_eq!(Compact::of(this.get()), this);
            assert!(this.get() < next.get());
        }
    }

    proptest! {
        #[test]
        fn it_is_the_nearest(sum in 0..4096_u64 << 30, shift in 0..42_u32) {
            let sum = sum >> shift;
            let error = Compact::of(sum).get().abs_diff(sum);
            prop_assert!(error as f64 <= sum as f64 / 4096.0, "{sum} {error}");
        }
    }
}
