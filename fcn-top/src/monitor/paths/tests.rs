//! Paths from synthetic traces.

use super::*;
use fcn_wire::ioam::{NodeValues, OptType, TraceRepr, TraceType};
use proptest::prelude::*;

fn bits(bits: &[u8]) -> TraceType {
    bits.iter()
        .fold(TraceType::default(), |it, bit| it.with(*bit))
}

/// Returns a trace of these nodes, the first one passed given first, with `free` units of free
/// space (pre-allocated only).
fn trace(trace_type: TraceType, nodes: &[NodeValues<'_>], free: u8) -> Vec<u8> {
    let mut list = vec![0; usize::from(free) * 4];
    for node in nodes.iter().rev() {
        let mut room = [0; 256];
        let len = node.emit(trace_type, &mut room).unwrap();
        list.extend_from_slice(&room[..len]);
    }
    let header = TraceRepr {
        namespace_id: 5,
        node_len: trace_type.node_len() as u8,
        remaining_len: free,
        trace_type,
        ..TraceRepr::default()
    };
    [&header.to_bytes()[..], &list].concat()
}

fn observe(paths: &mut Paths, at: u64, kind: OptType, bytes: &[u8]) {
    paths.observe(at, &Trace::new_checked(kind, bytes).unwrap());
}

fn node(node_id: u64, queue_depth: u32) -> NodeValues<'static> {
    NodeValues {
        node_id,
        queue_depth,
        ingress: 1,
        egress: node_id as u32 + 100,
        transit_delay: queue_depth * 10,
        seconds: 7,
        fraction: queue_depth * 1000,
        ..NodeValues::default()
    }
}

#[test]
fn hops_are_in_path_order_in_both_kinds_of_trace() {
    let all = bits(&[0, 1, 2, 3, 4, 6]);
    for (kind, free) in [(OptType::Preallocated, 6), (OptType::Incremental, 0)] {
        let mut paths = Paths::new(10);
        observe(
            &mut paths,
            100,
            kind,
            &trace(all, &[node(11, 20), node(12, 30)], free),
        );
        observe(
            &mut paths,
            200,
            kind,
            &trace(all, &[node(11, 40), node(12, 10)], free),
        );
        let hops: Vec<_> = paths.hops().collect();
        let first = HopRecord {
            path: 1,
            traces: 2,
            hop: 1,
            node: Some(11),
            namespace: 5,
            ingress: Some(1),
            egress: Some(111),
            queue: Some(40),
            queue_mean: Some(30.0),
            queue_max: Some(40),
            delay: Some(400),
            delay_max: Some(400),
            between: None,
            last_seen: 200,
        };
        let second = HopRecord {
            hop: 2,
            node: Some(12),
            egress: Some(112),
            queue: Some(10),
            queue_mean: Some(20.0),
            queue_max: Some(30),
            delay: Some(100),
            delay_max: Some(300),
            // By its clock it was there before the previous node.
            between: None,
            ..first.clone()
        };
        assert_eq!(hops, [first, second]);
    }
}

#[test]
fn time_between_hops_supports_both_formats() {
    let stamps = bits(&[0, 2, 3]);
    let at = |node_id, seconds, fraction| NodeValues {
        node_id,
        seconds,
        fraction,
        ..NodeValues::default()
    };
    let kind = OptType::Incremental;
    let mut paths = Paths::new(10);
    let mut between = |nodes: [NodeValues<'_>; 2]| {
        observe(&mut paths, 1, kind, &trace(stamps, &nodes, 0));
        paths.hops().last().unwrap().between
    };
    // Nanoseconds: 999,999,000 to 1 s and 500 ns.
    assert_eq!(between([at(1, 7, 999_999_000), at(2, 8, 500)]), Some(1500));
    assert_eq!(between([at(1, 7, 0), at(2, u32::MAX, 500)]), None);
    assert_eq!(between([at(1, 7, 0), at(2, 7, u32::MAX)]), None);
    assert_eq!(between([at(1, 7, 100), at(2, 7, 99)]), None);
    // Halves and quarters of 2^32.
    assert_eq!(
        between([at(1, 7, 1 << 30), at(2, 7, 1 << 31)]),
        Some(250_000_000)
    );
    // A small fraction is no different on a path with that unit.
    assert_eq!(
        between([at(1, 7, 1 << 28), at(2, 7, 1 << 29)]),
        Some(62_500_000)
    );
}

#[test]
fn missing_values_are_empty() {
    let all = bits(&[0, 1, 2, 3, 4, 6]);
    let kind = OptType::Incremental;
    let nothing = NodeValues {
        hop_limit: 255,
        node_id: 0x00FF_FFFF,
        ingress: 0xFFFF,
        egress: 0xFFFF,
        seconds: u32::MAX,
        fraction: u32::MAX,
        transit_delay: u32::MAX,
        queue_depth: u32::MAX,
        ..NodeValues::default()
    };
    let mut paths = Paths::new(10);
    observe(&mut paths, 1, kind, &trace(all, &[nothing], 0));
    let hop = paths.hops().next().unwrap();
    assert_eq!((hop.node, hop.ingress, hop.egress), (None, None, None));
    assert_eq!(
        (hop.queue, hop.queue_mean, hop.queue_max),
        (None, None, None)
    );
    assert_eq!((hop.delay, hop.delay_max, hop.between), (None, None, None));
    // Earlier values remain in the mean and maximum, but not as the latest.
    let mut paths = Paths::new(10);
    observe(
        &mut paths,
        1,
        kind,
        &trace(bits(&[0, 4, 6]), &[node(3, 50)], 0),
    );
    let silent = NodeValues {
        queue_depth: u32::MAX,
        transit_delay: 0x8000_0007,
        ..node(3, 0)
    };
    observe(&mut paths, 2, kind, &trace(bits(&[0, 4, 6]), &[silent], 0));
    let hop = paths.hops().next().unwrap();
    assert_eq!(
        (hop.queue, hop.queue_mean, hop.queue_max),
        (None, Some(50.0), Some(50))
    );
    assert_eq!((hop.delay, hop.delay_max), (Some(1 << 31), Some(1 << 31)));
}

#[test]
fn a_path_is_identified_by_nodes_or_else_by_interfaces() {
    let kind = OptType::Preallocated;
    let mut paths = Paths::new(10);
    let mut number_of = |trace_type, nodes: &[NodeValues<'_>]| {
        observe(&mut paths, 1, kind, &trace(trace_type, nodes, 0));
        paths.paths.len()
    };
    let ids = bits(&[0, 1, 6]);
    assert_eq!(number_of(ids, &[node(1, 0), node(2, 0)]), 1);
    // Interfaces do not identify a node with a number.
    let elsewhere = NodeValues {
        egress: 9,
        ..node(2, 0)
    };
    assert_eq!(number_of(ids, &[node(1, 0), elsewhere]), 1);
    assert_eq!(number_of(ids, &[node(2, 0), node(1, 0)]), 2);
    assert_eq!(number_of(ids, &[node(1, 0)]), 3);
    let interfaces = bits(&[1, 6]);
    assert_eq!(number_of(interfaces, &[node(1, 0)]), 4);
    assert_eq!(number_of(interfaces, &[node(2, 0)]), 5);
    assert_eq!(number_of(interfaces, &[node(2, 7)]), 5);
    // Wide numbers are used as well.
    assert_eq!(number_of(bits(&[8, 6]), &[node(1, 0), node(2, 0)]), 5);
    assert_eq!(number_of(bits(&[9]), &[node(2, 0)]), 5);
    assert_eq!(number_of(bits(&[6]), &[node(1, 0)]), 6);
    let depths: Vec<_> = paths.hops().map(|hop| (hop.path, hop.hop)).collect();
    assert_eq!(
        depths,
        [
            (1, 1),
            (1, 2),
            (2, 1),
            (2, 2),
            (3, 1),
            (4, 1),
            (5, 1),
            (6, 1)
        ]
    );
}

#[test]
fn the_path_used_longest_ago_leaves() {
    let kind = OptType::Incremental;
    let mut paths = Paths::new(2);
    for (at, id) in [(1, 1), (2, 2), (3, 1), (4, 3)] {
        observe(
            &mut paths,
            at,
            kind,
            &trace(bits(&[0, 6]), &[node(id, 0)], 0),
        );
    }
    let left: Vec<_> = paths
        .hops()
        .map(|hop| (hop.path, hop.node, hop.traces))
        .collect();
    assert_eq!(left, [(1, Some(1), 2), (3, Some(3), 1)]);
    assert_eq!((paths.paths.len(), paths.paths.evicted()), (2, 1));
}

#[test]
fn empty_traces_are_ignored() {
    let kind = OptType::Preallocated;
    let mut paths = Paths::new(2);
    observe(&mut paths, 1, kind, &trace(bits(&[0, 6]), &[], 10));
    let mut ragged = trace(bits(&[0, 6]), &[node(1, 0), node(2, 0)], 0);
    ragged.pop();
    observe(&mut paths, 1, kind, &ragged);
    assert!(paths.paths.is_empty());
}

#[test]
fn the_first_hops_of_a_long_trace_count() {
    let nodes: Vec<_> = (1..=100).map(|id| node(id, 0)).collect();
    let kind = OptType::Incremental;
    let mut paths = Paths::new(2);
    observe(&mut paths, 1, kind, &trace(bits(&[0]), &nodes, 0));
    let ids: Vec<_> = paths.hops().filter_map(|hop| hop.node).collect();
    assert_eq!(ids, (1..=32).collect::<Vec<_>>());
}

proptest! {
    #[test]
    fn hostile_traces_are_handled(
        traces in proptest::collection::vec((any::<bool>(), proptest::collection::vec(any::<u8>(), 8..300)), 1..20),
    ) {
        let mut paths = Paths::new(4);
        for (at, (incremental, bytes)) in traces.iter().enumerate() {
            let kind = if *incremental { OptType::Incremental } else { OptType::Preallocated };
            observe(&mut paths, at as u64, kind, bytes);
            prop_assert!(paths.paths.len() <= 4 && paths.hops().count() <= 4 * MAX_HOPS);
        }
    }
}
