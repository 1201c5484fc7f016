//! Why rules cannot be made, or a packet cannot be rewritten.

use crate::frame::LinkType;
use crate::pnc::Prefix;
use core::fmt;

/// Why [`Rules`](super::Rules) cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RulesError {
    /// Two prefixes of different length or family.
    Prefixes {
        /// What was to be mapped.
        from: Prefix,
        /// What it was to be mapped to.
        to: Prefix,
    },
    /// A prefix that has a mapping already.
    PrefixTwice(Prefix),
    /// A value that has a mapping already.
    Twice {
        /// What is mapped: "MAC address", "VLAN id", "UDP port", "QP".
        what: &'static str,
        /// The value as a number.
        value: u64,
    },
    /// A value that its field cannot hold.
    Wide {
        /// Which field.
        what: &'static str,
        /// The value.
        value: u64,
        /// Greatest value of the field.
        max: u64,
    },
    /// A range of UDP ports whose end comes before its beginning.
    EmptyRange {
        /// First port.
        first: u16,
        /// Last port.
        last: u16,
    },
}

impl fmt::Display for RulesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefixes { from, to } => write!(
                f,
                "{}/{} cannot be mapped to {}/{}: give prefixes of the same length and IP version",
                from.address(),
                from.bits(),
                to.address(),
                to.bits()
            ),
            Self::PrefixTwice(prefix) => write!(
                f,
                "{}/{} is mapped twice: leave one of the mappings out",
                prefix.address(),
                prefix.bits()
            ),
            Self::Twice { what, value } => write!(
                f,
                "{what} {value:#x} is mapped twice: leave one of the mappings out"
            ),
            Self::Wide { what, value, max } => {
                write!(f, "{what} {value} is too large: give 0 to {max}")
            }
            Self::EmptyRange { first, last } => write!(
                f,
                "the range of UDP ports {first} to {last} is empty: give the lower port first"
            ),
        }
    }
}

impl core::error::Error for RulesError {}

/// Why a packet could not be rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RewriteError {
    /// The output buffer is too small for the rewritten packet; nothing was written.
    Buffer {
        /// Octets needed.
        need: usize,
        /// Octets of the buffer.
        have: usize,
    },
    /// An Ethernet header was asked for, and nothing says which EtherType it is to have.
    NoEtherType {
        /// What the capture says its packets begin with.
        link: LinkType,
    },
}

impl fmt::Display for RewriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Buffer { need, have } => write!(
                f,
                "the rewritten packet needs {need} octets, the buffer has {have}"
            ),
            Self::NoEtherType { link } => write!(
                f,
                "this {link:?} packet cannot be put into an Ethernet frame: it is neither IPv4 nor IPv6, and its \
                 capture gives no EtherType; leave it out"
            ),
        }
    }
}

impl core::error::Error for RewriteError {}
