//! Frames and values that the tests of several roles share.

use crate::reaction_point::telemetry::HopLoad;
pub use fcn_observe::testing::*;
use fcn_wire::ioam::{NodeValues, TraceRepr, TraceType};

/// A hop with an empty queue, its capacity and throughput in 100 Mbit/s.
pub const fn hop(capacity_100mbps: u16, throughput_100mbps: u16) -> (HopLoad, u32) {
    let load = HopLoad {
        capacity_100mbps,
        throughput_100mbps,
    };
    (load, 0)
}

/// A pre-allocated trace without free room, with load and queue depth of each hop.
pub fn trace(hops: &[(HopLoad, u32)]) -> Vec<u8> {
    let trace_type = TraceType::default().with(5).with(6);
    let mut list = vec![0; hops.len() * 8];
    for (place, (load, queue_depth)) in list.chunks_mut(8).zip(hops) {
        let values = NodeValues {
            namespace_data: load.to_bits().into(),
            queue_depth: *queue_depth,
            ..NodeValues::default()
        };
        values.emit(trace_type, place).unwrap();
    }
    let header = TraceRepr {
        namespace_id: 1,
        node_len: 2,
        trace_type,
        ..TraceRepr::default()
    };
    [&header.to_bytes()[..], &list].concat()
}
