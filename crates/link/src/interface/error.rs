//! What can go wrong when an interface is asked for, in words for people.

use netlink_packet_core::DecodeError;
use std::fmt;
use std::io;

/// Names that are listed at most.
const LISTED: usize = 20;

/// Why something about an interface is not known.
#[derive(Debug)]
pub struct InterfaceError {
    interface: Option<String>,
    kind: InterfaceErrorKind,
}

/// What failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum InterfaceErrorKind {
    /// There is no such interface.
    Missing {
        /// Those there are.
        known: Vec<String>,
        /// The one that was probably meant.
        near: Option<String>,
    },
    /// It was there, but is not any more.
    Gone,
    /// The kernel cannot be asked, or refuses.
    Query {
        /// For what it was asked.
        what: &'static str,
        /// Why not.
        error: io::Error,
    },
    /// The kernel's answer cannot be understood.
    Reply {
        /// For what it was asked.
        what: &'static str,
        /// Why not.
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

    /// What failed.
    #[must_use]
    pub const fn kind(&self) -> &InterfaceErrorKind {
        &self.kind
    }

    /// The interface asked for; `None` when it was about all.
    #[must_use]
    pub fn interface(&self) -> Option<&str> {
        self.interface.as_deref()
    }
}

impl fmt::Display for InterfaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.interface {
            write!(f, "{name}: ")?;
        }
        match &self.kind {
            InterfaceErrorKind::Missing { known, near } => {
                f.write_str("there is no such interface")?;
                if let Some(near) = near {
                    write!(f, "; did you mean {near}?")?;
                }
                if known.is_empty() {
                    return f.write_str("; this network namespace has none at all");
                }
                let listed: Vec<_> = known.iter().take(LISTED).map(String::as_str).collect();
                let joint = if near.is_some() { " There" } else { "; there" };
                write!(f, "{joint} are: {}", listed.join(", "))?;
                match known.len().saturating_sub(LISTED) {
                    0 => Ok(()),
                    more => write!(f, " and {more} more (ip link)"),
                }
            }
            InterfaceErrorKind::Gone => {
                f.write_str("it is gone: deleted, unplugged or moved to another namespace")
            }
            InterfaceErrorKind::Query { what, error } => {
                write!(
                    f,
                    "cannot ask the kernel for its {what} (rtnetlink): {error}"
                )
            }
            InterfaceErrorKind::Reply { what, reason } => write!(
                f,
                "what the kernel says about its {what} (rtnetlink) cannot be understood: {reason}"
            ),
        }
    }
}

impl std::error::Error for InterfaceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            InterfaceErrorKind::Query { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// The name that differs least, if that is little.
fn near<'a>(name: &str, known: &'a [String]) -> Option<&'a str> {
    // The longest name that the kernel allows has 127 octets.
    if name.len() > 127 {
        return None;
    }
    let allowed = if name.chars().count() < 4 { 1 } else { 2 };
    known
        .iter()
        .map(|other| (distance(name, other), other.as_str()))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, other)| other)
}

/// Characters to insert, delete or replace that make one of the other (Levenshtein).
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.to_lowercase().chars().collect();
    // What it takes from the characters so far to each beginning of `to`.
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (done, c) in from.to_lowercase().chars().enumerate() {
        let mut last = done + 1;
        let mut next = vec![last];
        for (pair, other) in row.windows(2).zip(&to) {
            let &[diagonal, above] = pair else { continue };
            let replaced = diagonal + usize::from(c != *other);
            last = replaced.min(above + 1).min(last + 1);
            next.push(last);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn distances() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("eth0", "eth1", 1),
            ("eth0", "et0", 1),
            ("ETH0", "eth0", 0),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn message_of_a_missing_interface() {
        let e = InterfaceError::missing("eht0", names(&["lo", "eth0"]));
        assert_eq!(
            e.to_string(),
            "eht0: there is no such interface; did you mean eth0? There are: lo, eth0"
        );
        let e = InterfaceError::missing("wlan", names(&["lo", "eth0"]));
        assert_eq!(
            e.to_string(),
            "wlan: there is no such interface; there are: lo, eth0"
        );
        let many: Vec<_> = (0..30).map(|n| format!("tap-{n}")).collect();
        let e = InterfaceError::missing("x", many).to_string();
        assert!(e.ends_with("tap-19 and 10 more (ip link)"), "{e}");
    }
}
