//! The time that callers pass to the roles.

use core::time::Duration;

/// Time since a start that the caller chose. Roles only compare and subtract times; one that lies before the
/// last is taken as no time having passed.
pub type Time = Duration;

/// A duration in whole nanoseconds; more than 584 years count as that.
pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
