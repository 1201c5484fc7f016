//! Frames and values shared by the tests of several roles.

use crate::reaction_point::telemetry::HopLoad;
pub use fcn_observe::testing::*;
use fcn_wire::ioam::{NodeValues, TraceRepr, TraceType};

/// Returns a hop with an empty queue; capacity and throughput in 100 Mbit/s.
pub const fn hop(capacity_100mbps: u16, throughput_100mbps: u16) -> (HopLoad, u32) {
    let load = HopLoad {
        capacity_100mbps,
        throughput_100mbps,
    };
    (load, 0)
}

/// Builds a pre-allocated trace without free space, with load and queue depth of each hop.
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
