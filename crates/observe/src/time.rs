//! The time that callers pass to the roles.

use core::time::Duration;

/// Time since a start chosen by the caller. Roles only compare and subtract times; a time before
/// the last one counts as no time elapsed.
pub type Time = Duration;

/// Returns a duration in whole nanoseconds, saturating at `u64::MAX` (584 years).
pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
