//! Limits of scenarios, and the checks that several of their parts share.

use super::error::{Refusal, refuse};
use crate::units::Ps;

/// Most hosts.
pub(super) const HOSTS: usize = 100_000;
/// Most switches: routes are kept for each pair.
pub(super) const SWITCHES: usize = 1_000;
/// Most links.
pub(super) const LINKS: usize = 200_000;
/// Most flows.
pub(super) const FLOWS: usize = 100_000;
/// Most vantage points.
pub(super) const VANTAGE_POINTS: usize = 256;
/// Most pairs of a host and a switch: each may be an entry in an access list.
pub(super) const HOSTS_TIMES_SWITCHES: usize = 4_000_000;
/// Most names that are compared with patterns, all together.
pub(super) const COMPARED: usize = 50_000_000;
/// Most prefixes in all access lists, and lists of who is served at every switch.
pub(super) const LISTED: usize = 10_000_000;
/// Most nodes on the ways of all flows together.
pub(super) const ON_THE_WAY: usize = 10_000_000;
/// Most values and octets of text that `[defaults]` puts into all entries together.
pub(super) const SPREAD: usize = 50_000_000;
/// Most packets of one injection.
pub(super) const INJECTED: u64 = 10_000_000;
/// Payloads of a packet that RoCE allows (InfiniBand: path MTU).
pub(super) const MTUS: [u16; 5] = [256, 512, 1024, 2048, 4096];
/// Longest name.
const NAME: usize = 24;

/// At most `most` of something, which the value at `path` makes.
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

/// When something that starts then stops: at the simulation's end, where nothing else is given.
pub(super) fn stop(
    (start, stop): (Ps, Option<Ps>),
    end: Ps,
    what: &str,
    path: impl FnOnce() -> String,
) -> Result<Ps, Refusal> {
    match stop {
        Some(stop) if stop <= start => {
            refuse!(path(), "{what} would stop at {stop} and start at {start}");
        }
        stop => Ok(stop.unwrap_or(start.max(end))),
    }
}

/// A name that can stand in paths, patterns and file names.
pub(super) fn name(name: &str, path: impl FnOnce() -> String) -> Result<(), Refusal> {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > NAME || !name.chars().all(fine) {
        let rule = format!("letters, digits, - and _ are allowed, at most {NAME} of them");
        refuse!(path(), "`{name}` is not a valid name; {rule}");
    }
    Ok(())
}
