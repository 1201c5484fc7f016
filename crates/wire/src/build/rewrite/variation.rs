//! Variation between the loops of a replay, as rules for each loop.

use super::builder::not_empty;
use super::rules::{LoopOffsets, QPS};
use super::{Rules, RulesError};
use crate::bth::MAX_24;
use crate::pnc::Prefix;
use core::ops::RangeInclusive;
use std::sync::Arc;

/// Values that advance with every loop of a replay, in addition to the changes that [`Rules`] make
/// in all loops.
///
/// Loop number 0 uses the rules alone.
#[derive(Clone, Debug)]
pub struct LoopVariation {
    rules: Rules,
    psn_step: u32,
    port_step: u16,
    qp_step: i32,
}

impl LoopVariation {
    /// Creates a variation of `rules` without any step.
    #[must_use]
    pub fn new(rules: &Rules) -> Self {
        Self {
            rules: rules.clone(),
            psn_step: 0,
            port_step: 0,
            qp_step: 0,
        }
    }

    /// Adds `step` to PSNs with each loop, modulo 2^24.
    #[must_use]
    pub const fn psn(mut self, step: u32) -> Self {
        self.psn_step = step;
        self
    }

    /// Adds `step` to the UDP source ports within `range` with each loop, modulo its size. The
    /// range is also that of [`Rules::add_udp_source`](super::Rules::add_udp_source).
    ///
    /// # Errors
    /// Fails if the range is empty.
    pub fn udp_source(mut self, range: RangeInclusive<u16>, step: u16) -> Result<Self, RulesError> {
        not_empty(&range)?;
        Arc::make_mut(&mut self.rules.base).ports = Some(range);
        self.port_step = step;
        Ok(self)
    }

    /// Adds `step` to QP numbers with each loop, as [`Rules::add_qp`](super::Rules::add_qp) does.
    #[must_use]
    pub const fn qp(mut self, step: i32) -> Self {
        self.qp_step = step;
        self
    }

    /// Adds `step` to the host part of addresses within `prefix` with each loop, modulo the prefix
    /// size, after they were mapped. If several prefixes contain an address, the first one applies.
    #[must_use]
    pub fn addresses(mut self, prefix: Prefix, step: u64) -> Self {
        self.rules.addresses_in(&prefix).add_step(prefix, step);
        self
    }

    /// Returns the rules for loop `number`. Does not allocate.
    pub fn rules(&self, number: u64) -> Rules {
        let offsets = &self.rules.offsets;
        // The low 24 bits of the product are right even if it overflows.
        let psn = (number as u32).wrapping_mul(self.psn_step);
        let (_, size) = self.rules.base.port_range();
        let port = number % size * u64::from(self.port_step);
        // Both factors are less than 2^24.
        let round = number % u64::from(QPS);
        let qp = round as i64 * i64::from(self.qp_step).rem_euclid(QPS.into());
        Rules {
            base: Arc::clone(&self.rules.base),
            offsets: LoopOffsets {
                number,
                psn: offsets.psn.wrapping_add(psn) & MAX_24,
                port: offsets.port + port,
                qp: (offsets.qp + qp) % i64::from(QPS),
            },
        }
    }
}
