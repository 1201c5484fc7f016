//! Why rules cannot be made, or a packet cannot be rewritten.

use crate::frame::LinkType;
use crate::pnc::Prefix;

/// Why [`Rules`](super::Rules) cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RulesError {
    /// Two prefixes of different length or family.
    #[error("{from} cannot be mapped to {to}: give prefixes of the same length and IP version")]
    Prefixes {
        /// What was to be mapped.
        from: Prefix,
        /// What it was to be mapped to.
        to: Prefix,
    },
    /// A prefix that has a mapping already.
    #[error("{0} is mapped twice: leave one of the mappings out")]
    PrefixTwice(Prefix),
    /// A value that has a mapping already.
    #[error("{what} {value:#x} is mapped twice: leave one of the mappings out")]
    Twice {
        /// What is mapped: "MAC address", "VLAN id", "UDP port", "QP".
        what: &'static str,
        /// The value as a number.
        value: u64,
    },
    /// A value that its field cannot hold.
    #[error("{what} {value} is too large: give 0 to {max}")]
    Wide {
        /// Which field.
        what: &'static str,
        /// The value.
        value: u64,
        /// Greatest value of the field.
        max: u64,
    },
    /// A range of UDP ports whose end comes before its beginning.
    #[error("the range of UDP ports {first} to {last} is empty: give the lower port first")]
    EmptyRange {
        /// First port.
        first: u16,
        /// Last port.
        last: u16,
    },
}

/// Why a packet could not be rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RewriteError {
    /// The output buffer is too small for the rewritten packet; nothing was written.
    #[error("the rewritten packet needs {need} octets, the buffer has {have}")]
    Buffer {
        /// Octets needed.
        need: usize,
        /// Octets of the buffer.
        have: usize,
    },
    /// An Ethernet header was asked for, and nothing says which EtherType it is to have.
    #[error(
        "this {link:?} packet cannot be put into an Ethernet frame: it is neither IPv4 nor IPv6, and its capture gives no \
         EtherType; leave it out"
    )]
    NoEtherType {
        /// What the capture says its packets begin with.
        link: LinkType,
    },
}
