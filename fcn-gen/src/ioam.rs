//! The IOAM traces that generated data packets carry.

use fcn_node::reaction_point::hpcc::HopCount;
use fcn_wire::ioam::{OPTION_PREFIX_LEN, TRACE_HEADER_LEN, TraceType};

/// IOAM trace that a flow's data packets carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoamTrace {
    /// True for an incremental trace, false for a pre-allocated one.
    pub incremental: bool,
    /// Number of nodes for which there is room.
    pub nodes: u8,
    /// Namespace.
    pub namespace: u16,
    /// True for the counts that HPCC needs, which switches write as packets leave, and receivers
    /// return.
    pub counts: bool,
}

impl IoamTrace {
    /// Data written by each node: hop limit and node identifier, interfaces, transit delay,
    /// namespace data (the link's load), queue depth.
    pub const TYPE: TraceType = TraceType::from_bits(0)
        .with(0)
        .with(1)
        .with(4)
        .with(5)
        .with(6);

    /// Returns the fields written by each node. Both sets have the same length.
    #[must_use]
    pub const fn trace_type(self) -> TraceType {
        if self.counts {
            HopCount::TYPE
        } else {
            Self::TYPE
        }
    }

    /// Returns the length of the trace in octets, with the data of all its nodes.
    #[must_use]
    pub const fn full_len(self) -> usize {
        Self::option_len(self.nodes as usize) - OPTION_PREFIX_LEN
    }

    /// Opt Data Len of an IPv6 IOAM option whose trace holds `nodes` nodes' data; the maximum is
    /// 255.
    #[must_use]
    pub const fn option_len(nodes: usize) -> usize {
        OPTION_PREFIX_LEN + TRACE_HEADER_LEN + nodes * Self::TYPE.node_len() * 4
    }
}
