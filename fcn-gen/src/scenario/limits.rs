//! Limits of scenarios, and shared checks.

use super::error::{Refusal, refuse};
use crate::units::Ps;

/// Maximum number of hosts.
pub(super) const HOSTS: usize = 100_000;
/// Maximum number of switches: routes are stored for each pair.
pub(super) const SWITCHES: usize = 1_000;
/// Maximum number of links.
pub(super) const LINKS: usize = 200_000;
/// Maximum number of flows.
pub(super) const FLOWS: usize = 100_000;
/// Maximum number of vantage points.
pub(super) const VANTAGE_POINTS: usize = 256;
/// Maximum number of pairs of a host and a switch: each may be an entry in an access list.
pub(super) const HOSTS_TIMES_SWITCHES: usize = 4_000_000;
/// Maximum number of comparisons between names and patterns.
pub(super) const COMPARED: usize = 50_000_000;
/// Maximum number of prefixes in all access lists, and in the lists of served senders at every
/// switch.
pub(super) const LISTED: usize = 10_000_000;
/// Maximum number of nodes on the paths of all flows together.
pub(super) const ON_THE_WAY: usize = 10_000_000;
/// Maximum number of values and octets of text that `[defaults]` adds to all entries together.
pub(super) const SPREAD: usize = 50_000_000;
/// Maximum number of packets of an injection.
pub(super) const INJECTED: u64 = 10_000_000;
/// Payload lengths that RoCE permits, in octets (InfiniBand: path MTU).
pub(super) const MTUS: [u16; 5] = [256, 512, 1024, 2048, 4096];
/// Maximum length of a name.
const NAME: usize = 24;

/// Refuses more than `most` of something, at the value at `path`.
pub(super) fn at_most(
    now: usize,
    most: usize,
    what: &str,
    path: impl FnOnce() -> String,
) -> Result<(), Refusal> {
    if now > most {
        refuse!(
            path(),
            "that makes {now} {what}; at most {most} are allowed"
        );
    }
    Ok(())
}

/// Returns the end time of something with a start time: by default, the simulation's end.
pub(super) fn stop(
    (start, stop): (Ps, Option<Ps>),
    end: Ps,
    what: &str,
    path: impl FnOnce() -> String,
) -> Result<Ps, Refusal> {
    match stop {
        Some(stop) if stop <= start => {
            refuse!(path(), "{what} would stop at {stop}, but starts at {start}");
        }
        stop => Ok(stop.unwrap_or(start.max(end))),
    }
}

/// Checks that a name may be used in paths, patterns and file names.
pub(super) fn name(name: &str, path: impl FnOnce() -> String) -> Result<(), Refusal> {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > NAME || !name.chars().all(fine) {
        let rule = format!("letters, digits, - and _ are allowed, at most {NAME} of them");
        refuse!(path(), "`{name}` is not a valid name; {rule}");
    }
    Ok(())
}
