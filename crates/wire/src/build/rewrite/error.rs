//! Errors of creating rules and of rewriting packets.

use crate::frame::LinkType;
use crate::pnc::Prefix;

/// Reason why [`Rules`](super::Rules) cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RulesError {
    /// Two prefixes of different length or family.
    #[error("{from} cannot be mapped to {to}: use prefixes of the same length and IP version")]
    Prefixes {
        /// Prefix to be mapped.
        from: Prefix,
        /// Prefix to which it was to be mapped.
        to: Prefix,
    },
    /// A prefix that has a mapping already.
    #[error("{0} is mapped twice: remove one of the mappings")]
    PrefixTwice(Prefix),
    /// A value that has a mapping already.
    #[error("{what} {value:#x} is mapped twice: remove one of the mappings")]
    Twice {
        /// Kind of value: "MAC address", "VLAN id", "UDP port", "QP".
        what: &'static str,
        /// The value as a number.
        value: u64,
    },
    /// A value that its field cannot hold.
    #[error("{what} {value} is too large: use 0 to {max}")]
    Wide {
        /// Name of the field.
        what: &'static str,
        /// The value.
        value: u64,
        /// Largest value of the field.
        max: u64,
    },
    /// A range of UDP ports whose end is before its beginning.
    #[error("the range of UDP ports {first} to {last} is empty: put the lower port first")]
    EmptyRange {
        /// First port.
        first: u16,
        /// Last port.
        last: u16,
    },
}

/// Reason why a packet could not be rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RewriteError {
    /// The output buffer is too small for the rewritten packet; nothing was written.
    #[error("the rewritten packet needs {need} octets, the buffer has {have}")]
    Buffer {
        /// Octets needed.
        need: usize,
        /// Length of the buffer in octets.
        have: usize,
    },
    /// An Ethernet header was requested, but its EtherType cannot be determined.
    #[error(
        "this {link:?} packet cannot be put into an Ethernet frame: it is neither IPv4 nor IPv6, and its capture has \
         no EtherType; leave it out"
    )]
    NoEtherType {
        /// Link type of the capture.
        link: LinkType,
    },
}
