//! Errors of looking up an interface, with messages for users.

use netlink_packet_core::DecodeError;
use std::io;
use thiserror::Error;

/// Maximum number of names listed.
const LISTED: usize = 20;

/// Reason why a property of an interface is unknown.
#[derive(Debug, Error)]
#[error("{}{kind}", interface.as_ref().map(|name| format!("{name}: ")).unwrap_or_default())]
pub struct InterfaceError {
    interface: Option<String>,
    kind: InterfaceErrorKind,
}

/// The kind of failure.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InterfaceErrorKind {
    /// There is no such interface.
    #[error("no such interface{}", others(known, near.as_deref()))]
    Missing {
        /// The interfaces that exist.
        known: Vec<String>,
        /// The one that was probably meant.
        near: Option<String>,
    },
    /// The interface no longer exists.
    #[error("it is gone: deleted, unplugged or moved to another namespace")]
    Gone,
    /// The kernel cannot be queried, or refuses.
    #[error("cannot ask the kernel for its {what} (rtnetlink): {error}")]
    Query {
        /// Subject of the query.
        what: &'static str,
        /// The error of the query.
        error: io::Error,
    },
    /// The kernel's answer cannot be parsed.
    #[error("cannot parse the kernel's answer about its {what} (rtnetlink): {reason}")]
    Reply {
        /// Subject of the query.
        what: &'static str,
        /// Reason of the parser.
        reason: String,
    },
}

impl InterfaceError {
    #[cold]
    pub(super) fn missing(name: &str, known: Vec<String>) -> Self {
        let near = near(name, &known).map(ToOwned::to_owned);
        Self {
            interface: Some(name.to_owned()),
            kind: InterfaceErrorKind::Missing { known, near },
        }
    }

    #[cold]
    pub(super) fn gone(name: &str) -> Self {
        Self {
            interface: Some(name.to_owned()),
            kind: InterfaceErrorKind::Gone,
        }
    }

    #[cold]
    pub(super) fn query(what: &'static str, error: io::Error) -> Self {
        Self {
            interface: None,
            kind: InterfaceErrorKind::Query { what, error },
        }
    }

    #[cold]
    pub(super) fn reply(what: &'static str, error: &DecodeError) -> Self {
        Self {
            interface: None,
            kind: InterfaceErrorKind::Reply {
                what,
                reason: error.to_string(),
            },
        }
    }

    pub(super) fn on(mut self, name: &str) -> Self {
        self.interface.get_or_insert_with(|| name.to_owned());
        self
    }

    /// Returns the kind of failure.
    #[must_use]
    pub const fn kind(&self) -> &InterfaceErrorKind {
        &self.kind
    }
}

/// Describes the interface that was probably meant, and lists those that exist.
fn others(known: &[String], near: Option<&str>) -> String {
    let meant = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
    if known.is_empty() {
        return meant + "; this network namespace has no interfaces";
    }
    let joint = if near.is_some() { " There" } else { "; there" };
    let listed = known.get(..LISTED).unwrap_or(known).join(", ");
    let more = match known.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!(" and {more} more (ip link)"),
    };
    format!("{meant}{joint} are: {listed}{more}")
}

/// Returns the most similar name, if the difference is small.
fn near<'a>(name: &str, known: &'a [String]) -> Option<&'a str> {
    // The kernel allows names of at most 127 octets.
    if name.len() > 127 {
        return None;
    }
    let allowed = if name.chars().count() < 4 { 1 } else { 2 };
    known
        .iter()
        .map(|other| {
            let distance = strsim::levenshtein(&name.to_lowercase(), &other.to_lowercase());
            (distance, other.as_str())
        })
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, other)| other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn message_of_a_missing_interface() {
        let e = InterfaceError::missing("eht0", names(&["lo", "eth0"]));
        assert_eq!(
            e.to_string(),
            "eht0: no such interface; did you mean eth0? There are: lo, eth0"
        );
        let e = InterfaceError::missing("ETH", names(&["lo", "eth0"]));
        assert!(e.to_string().contains("did you mean eth0?"), "{e}");
        let e = InterfaceError::missing("wlan", names(&["lo", "eth0"]));
        assert_eq!(
            e.to_string(),
            "wlan: no such interface; there are: lo, eth0"
        );
        let many: Vec<_> = (0..30).map(|n| format!("tap-{n}")).collect();
        let e = InterfaceError::missing("x", many).to_string();
        assert!(e.ends_with("tap-19 and 10 more (ip link)"), "{e}");
    }
}
