//! Limits of scenarios, and the checks that several of their parts share.

use super::error::Refusal;
use super::schema::Maybe;
use core::fmt::Display;
use core::ops::{Range, RangeInclusive};
use fcn_wire::Profile;
use toml::Spanned;

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

/// Knows where a key's value stands, where the file or a setting has it.
pub(super) type PlaceOf<'a> = &'a dyn Fn(&str) -> Option<Range<usize>>;

/// Refuses code points that the drafts forbid, at the code point's own place.
pub(super) fn profile(profile: &Profile, place_of: PlaceOf<'_>) -> Result<(), Refusal> {
    profile.validate().map_err(|error| {
        let own = error
            .name()
            .and_then(|name| place_of(&format!("profile.{name}")));
        Refusal {
            span: own.or_else(|| place_of("profile")),
            message: error.to_string(),
        }
    })
}

/// The value, or `default` where there is none; refused outside `allowed`.
pub(super) fn within<T: PartialOrd + Display + Copy>(
    value: &Maybe<T>,
    default: T,
    allowed: RangeInclusive<T>,
    what: &str,
) -> Result<T, Refusal> {
    let Some(value) = value else {
        return Ok(default);
    };
    let number = *value.get_ref();
    if allowed.contains(&number) {
        return Ok(number);
    }
    let (from, to) = (allowed.start(), allowed.end());
    Err(Refusal::at(
        value,
        format!("{number} is no {what}; {from} to {to} are allowed"),
    ))
}

/// A probability, 0 to 1.
pub(super) fn probability(value: &Maybe<f64>, default: f64) -> Result<f64, Refusal> {
    within(value, default, 0.0..=1.0, "probability")
}

/// At most `most` of something.
pub(super) fn count(now: usize, most: usize, what: &str, at: Range<usize>) -> Result<(), Refusal> {
    if now > most {
        return Err(Refusal::span(
            at,
            format!("that makes {now} {what}; at most {most} are allowed"),
        ));
    }
    Ok(())
}

/// A name that can stand in paths, patterns and file names.
pub(super) fn name(name: &Spanned<String>) -> Result<(), Refusal> {
    let text = name.get_ref();
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if text.is_empty() || text.len() > NAME || !text.chars().all(fine) {
        let rule = format!("letters, digits, - and _ are allowed, at most {NAME} of them");
        return Err(Refusal::at(name, format!("`{text}` is no name; {rule}")));
    }
    Ok(())
}
