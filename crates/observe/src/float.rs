//! Functions of floating-point numbers whose last bits do not depend on the machine's C library, so that
//! an analysis has the same result everywhere.

/// Logarithms and powers.
pub trait Float: Copy {
    /// Returns the natural logarithm.
    fn natural_log(self) -> Self;
    /// Returns e raised to this power.
    fn exponential(self) -> Self;
}

impl Float for f32 {
    #[inline]
    fn natural_log(self) -> Self {
        libm::logf(self)
    }

    #[inline]
    fn exponential(self) -> Self {
        libm::expf(self)
    }
}

impl Float for f64 {
    #[inline]
    fn natural_log(self) -> Self {
        libm::log(self)
    }

    #[inline]
    fn exponential(self) -> Self {
        libm::exp(self)
    }
}
